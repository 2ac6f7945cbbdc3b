"""Asking something of a run that goes on: stop, pause, resume, skip, retry, note, budget, circuit.

A wish is a row in the journal that the loop reads and answers.  Whoever asks waits a moment for the
answer and goes: the wish stays.  The circuit outlives runs: without one it is reset right there.
"""

import os
import shlex
import signal
import sys
import time

import click
from click.shell_completion import CompletionItem
from msgspec.structs import replace

from ralphloop.cli import output
from ralphloop.cli.given import DefaultGroup, dollars, duration, json_option, number
from ralphloop.config.load import load_config
from ralphloop.config.model import policy_of
from ralphloop.core import breaker
from ralphloop.core.breaker import BreakerState
from ralphloop.core.model import Circuit
from ralphloop.core.run_state import LaneNote
from ralphloop.errors import JournalError, LockedError, RalphError, UsageError
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import CIRCUIT_KEY
from ralphloop.journal.records import RunStatus, Wish
from ralphloop.journal.views import CIRCUIT_VIEW, circuit_view, publish
from ralphloop.loop.between import ask_between_runs
from ralphloop.night.look import holder_of, look, reading
from ralphloop.proc.process_table import started_at
from ralphloop.proc.tree import is_inside
from ralphloop.project import Project, find_project
from ralphloop.room import claim
from ralphloop.text.durations import elapsed, format_duration
from ralphloop.text.plain import against, counted

_PATIENCE_S = 5.0
_STEP_S = 0.1
_RECOVERS = "`ralph run --continue` recovers it."
_BETWEEN = frozenset({"answer", "note", "budget", "skip", "retry"})
_VERBS = {"answer": "take your answer", "note": "take a note", "budget": "raise its budget"}
_SHOWN = 10


def _lanes_now(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    try:
        book = look(find_project()).book
    except RalphError:
        return []
    held = {str(n): note.story for n, note in book.lanes.items()} if book else {}
    return [CompletionItem(n, help=held[n]) for n in held if held[n] and n.startswith(typed)]


_LANE = click.Option(
    ["--lane"],
    type=number,
    shell_complete=_lanes_now,
    help="The story that this lane holds (`ralph lanes`).",
)


def _held_by(lane: int) -> str:
    book = look(find_project()).book
    if book is None or not (story := book.lanes.get(lane, LaneNote()).story):
        raise UsageError(f"lane {lane} holds no story", "`ralph lanes` shows what each one does.")
    return story


def _wish(kind: str, words: str, *takes: click.Parameter) -> click.Command:
    def asks(story: str | None = "", text: tuple[str, ...] = (), lane: int | None = None) -> str:
        if lane is not None and story:
            raise UsageError("a story and a lane were named", "Name one of them.")
        named = _held_by(lane) if lane is not None else story
        if named is None:
            raise UsageError("no story was named", f"ralph {kind} STORY, or ralph {kind} --lane N")
        return asked(find_project(), kind, Wish(story=named, text=" ".join(text)))

    return click.Command(kind, callback=asks, params=[*takes], help=words)


note = _wish(
    "note",
    "Add a note to the prompts to come, such as: use the v2 API; --lane: to one story's.",
    click.Argument(["text"], nargs=-1, required=True),
    _LANE,
)
pause = _wish("pause", "Let the run pause once the current iteration has ended.")
resume = _wish("resume", "Let a paused run go on.")
_OPENS = "Open a story again that was set aside or waits for a person."
skip = _wish("skip", "Set a story aside for now.", click.Argument(["story"], required=False), _LANE)
retry = _wish("retry", _OPENS, click.Argument(["story"]))


@click.command()
@click.argument("story", required=False)
@click.argument("text", nargs=-1)
@click.option("--lane", type=number, shell_complete=_lanes_now, help=_LANE.help)
def answer(story: str | None, text: tuple[str, ...], lane: int | None) -> str | None:
    """Answer what a story waits for; without words an editor opens, without a story all are shown.

    The story is open again, its next prompt has your words, and nothing that was tried before
    counts against it.

    \b
    ralph answer                          what waits for you
    ralph answer US-010 "Use the v2 API"  whether a run goes on or not
    ralph answer --lane 2 "Use the v2 API"
    """
    if lane is not None:
        story, text = _held_by(lane), (*filter(None, [story]), *text)
    waiting = {seen.story.id: seen.state.reason for seen in look(find_project()).asking}
    if story is None:
        for name, question in waiting.items():
            output.emit_lines(output.row("?", f"{name}: {question}", width=2))
            output.emit_lines(output.row("", f'ralph answer {shlex.quote(name)} "…"', width=2))
        return None if waiting else "No story waits for you."
    words = " ".join(text)
    if not words and not sys.stdin.isatty():
        raise UsageError("the answer has no words", f'ralph answer {story} "…"')
    if not words:
        question = "".join(f"# {line}\n" for line in waiting.get(story, "").splitlines())
        written = click.edit(f"\n{question}# Your answer; lines that begin with # are left out.\n")
        lines = [line for line in (written or "").splitlines() if not line.startswith("#")]
        words = "\n".join(lines).strip()
    if not words:
        raise UsageError("nothing was written, so nothing was answered", f"ralph answer {story}")
    return asked(find_project(), "answer", Wish(story=story, text=words))


@click.command()
@click.option("--cost", type=dollars, help="Dollars to add.")
@click.option("--tokens", type=number, help="Tokens to add.")
@click.option("--time", "more_time", type=duration, help="Time to add, such as 2h.")
def budget(cost: float | None, tokens: int | None, more_time: float | None) -> str:
    """Raise what the run may cost or use, or how long it may take."""
    if cost is tokens is more_time is None:
        raise UsageError("say by how much", "ralph budget --cost 5 --time 2h")
    more = Wish(cost_usd=cost or 0.0, tokens=tokens or 0, time=more_time or 0.0)
    return asked(find_project(), "budget", more)


def asked(project: Project, kind: str, wish: Wish) -> str:
    """Ask, wait a moment for the answer, and return what there is to say."""
    holder = holder_of(project, time.time())
    if holder is None and kind in _BETWEEN and not (kind == "note" and wish.story):
        answered = ask_between_runs(project, kind, wish)
        return f"{answered[0].upper()}{answered[1:]}."
    if holder is None:
        raise UsageError("no run is going on here", "`ralph run --continue` goes on with one.")
    request = ask(project, holder.run, kind, wish)
    if request is None:
        raise UsageError(f"run {holder.run} is still getting ready", "Try again in a moment.")
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        with reading(project) as journal:
            found = journal.find_request(request)
        if found is not None and found.status != "pending":
            break
        if time.monotonic() >= deadline:
            verb = _VERBS.get(kind, kind)
            return f"run {holder.run} was asked to {verb}; it answers when this iteration ends"
        time.sleep(_STEP_S)
    if found.status == "void":
        return f"run {holder.run} ended before it could answer"
    if found.status == "refused":
        raise UsageError(found.answer, "`ralph status` and `ralph stories` show how it stands.")
    return f"run {holder.run}: {found.answer}"


def ask(project: Project, run: str, kind: str, wish: Wish) -> int | None:
    """The number under which the answer will be found; None where the run reads no wishes."""
    if not project.journal.exists():
        return None
    refuse_agent(project, kind)
    claim(project.directory)
    signed = replace(wish, by=who_asks())
    with Journal.open(project.journal, check=False) as journal:
        return journal.add_request(run, kind=kind, payload=signed, now=time.time())


def who_asks() -> tuple[int, float]:
    """The run obeys no row without it, nor one of a process below its agent."""
    return os.getpid(), started_at(os.getpid()) or 0.0


def refuse_agent(project: Project, kind: str) -> None:
    """An agent that wishes something of its own run is refused, and the run says that it tried."""
    holder = holder_of(project, time.time())
    if holder is None or holder.is_lease:
        return  # in a session person and agent use the same terminal
    is_here = holder.host == os.uname().nodename
    if not is_inside(holder.run, holder.pid if is_here else 0):
        return
    with Journal.open(project.journal, check=False) as journal:
        journal.add_request(holder.run, kind=kind, now=time.time())
    raise UsageError(
        "an agent does not steer its own run; the person who runs it will read that it was tried",
        "End your turn and say what you need in RECOMMENDATION.",
    )


@click.command()
@click.option(
    "--timeout", default="30s", type=duration, show_default=True, help="How long to wait."
)
def stop(timeout: float) -> str:
    """Ask the run to stop: the agent is ended, everything is recorded, nothing is lost."""
    project = find_project()
    holder = holder_of(project, time.time())
    if holder is None:
        night = look(project)
        died = night.run and f"; the process of run {night.run.id} is gone. {_RECOVERS}"
        return f"No run is going on{died if night.died else '.'}"
    is_heard = ask(project, holder.run, "stop", Wish()) is not None
    if not is_heard and not holder.is_lease and holder.host == os.uname().nodename:
        try:  # a run that still gets ready reads no wishes; it hears signals
            os.kill(holder.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass  # it has ended in this very moment
        except PermissionError:
            told = f"process {holder.pid} belongs to another user"
            raise LockedError(told, "Ask them, or stop it as root.") from None
    deadline = time.monotonic() + timeout
    while holder_of(project, time.time(), holder.run) is not None:
        if time.monotonic() >= deadline:
            raise LockedError(
                f"run {holder.run} was asked to stop and has not ended after"
                f" {format_duration(timeout)}",
                f"Wait for it, or end process {holder.pid}; `ralph status` shows how it stands.",
            )
        time.sleep(_STEP_S)
    run = look(project, run=holder.run).run
    if run is None:
        return f"Run {holder.run} ended before it began."
    if run.status is RunStatus.RUNNING:
        return f"Run {run.id} died; {_RECOVERS}"
    reason = run.reason or run.decision
    if run.status is RunStatus.COMPLETE:
        return f"Run {run.id} is complete: {reason}."
    return f"Run {run.id} has stopped: {reason}. `ralph run --continue` goes on with it."


@click.group(cls=DefaultGroup)
def circuit() -> None:
    """Show or reset the circuit breaker of this project."""


@circuit.command()
@json_option("The published object.")
def status(as_json: bool) -> None:
    """Print the circuit's state, its counts and why it is so.  Always exits 0."""
    project = find_project()
    now = time.time()
    policy = policy_of(load_config(project.root, env=os.environ).config)
    state = look(project, now=now).circuit
    since = f" for {format_duration(elapsed(state.since, now))}" if state.since else ""
    reason = f": {output.safe(state.reason)}" if state.reason else ""
    error = f": {output.safe(state.last_error)}" if state.last_error else ""
    same = against(state.same_error, policy.same_error_threshold)
    lines = [
        f"circuit      {output.paint(state.circuit, output.CIRCUIT[state.circuit])}{since}{reason}",
        f"no progress  {against(state.no_progress, policy.no_progress_threshold)}",
        f"same error   {same}{error}",
        f"opened       {counted(state.opened_count, 'time')}, preset {policy.preset}",
    ]
    for entry in state.history[-_SHOWN:]:
        change = "" if entry.is_note else f"{entry.before} → {entry.after}, "
        lines.append(f"  iteration {entry.iteration}: {change}{output.safe(entry.reason)}")
    if state.circuit is Circuit.OPEN:
        lines.append("next         look at the reason, then: ralph circuit reset")
    output.show(lines, circuit_view(state, policy), as_json=as_json)


@circuit.command()
def reset() -> str:
    """Close the circuit and set its counts to zero."""
    project = find_project()
    now = time.time()
    if not project.journal.exists():
        return "The circuit is CLOSED; there was nothing to reset."
    claim(project.directory)
    holder = holder_of(project, now)
    if holder is not None and ask(project, holder.run, "reset_circuit", Wish()):
        return f"Run {holder.run} is going on; it was asked to reset its circuit."
    with Journal.open(project.journal, check=False) as journal:
        try:
            before = journal.circuit()
        except JournalError:
            before = BreakerState()  # what the error told the person to do
        state = breaker.reset(before, iteration=0, at=now)
        journal.set_meta(CIRCUIT_KEY, state)
    policy = policy_of(load_config(project.root, env=os.environ).config)
    publish(project.root / CIRCUIT_VIEW, circuit_view(state, policy), root=project.root)
    return f"The circuit was {before.circuit}; it is CLOSED now, both counts are zero."
