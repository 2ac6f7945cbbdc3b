"""What a person can do now, from how things stand."""

from __future__ import annotations

from collections.abc import Iterator

from ralphloop.core.endings import ENDINGS
from ralphloop.core.model import Circuit, ExitDecision
from ralphloop.core.story_state import Standing
from ralphloop.night.values import Night, State
from ralphloop.project import CONFIG_NAME
from ralphloop.text.plain import counted


def next_steps(night: Night) -> Iterator[str]:
    """One or two sentences, each with a command."""
    if night.state is State.NONE:
        yield _first_step(night)
    elif night.state is State.PAUSED and night.session.desk.paused:
        yield "`ralph resume` lets it go on, `ralph stop` ends it"
    elif night.is_live:
        yield "`ralph log -f` follows it, `ralph stop` ends it"
    elif night.state is State.COMPLETE:
        yield "look at the work: `ralph stories`, `git log`"
    else:
        asking, decision = night.count(Standing.BLOCKED), night.run.decision if night.run else ""
        if asking and decision != ExitDecision.BLOCKED:  # whose own advice says the same
            wait = "waits" if asking == 1 else "wait"
            yield f"{counted(asking, 'story')} {wait} for you: `ralph stories` says for what"
        yield _after_stop(night)


def _first_step(night: Night) -> str:
    if night.story_list is not None:
        return "`ralph run --dry-run` shows the plan and costs nothing; `ralph run` starts"
    if (night.project.root / CONFIG_NAME).exists():
        return "`ralph doctor` says what is missing; `ralph init` writes a sample story list"
    return "`ralph init` sets this directory up"


def _after_stop(night: Night) -> str:
    go_on = "`ralph run`" if night.expired else "`ralph run --continue`"
    if night.circuit.circuit is Circuit.OPEN:
        return f"look at the reason, then `ralph circuit reset` and {go_on}"
    if night.expired:
        return "`ralph run` begins a new session; what is known of the stories is kept"
    decision = night.run.decision if night.run else ""
    ending = ENDINGS.get(decision)
    if ending and not night.died and decision != ExitDecision.INTERRUPTED:
        return f"{ending.advice} `{ending.command}`"
    return f"{go_on} goes on where it stopped"
