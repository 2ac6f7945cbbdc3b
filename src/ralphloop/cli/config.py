"""`ralph config`: which settings are in force, where each comes from, whether they are right.

`ralph prices`: what tokens are taken to cost where an agent does not say, and since when.

`ralph trust`, and the same question where a run is about to begin.

Shown are exactly the lines of the repository that can run a program or loosen safety, each with its
file; one that is different from what was agreed to stands below what it was.  The answer is kept in
the user's state directory.  An agent is no person: below one, nothing can be agreed to.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from ralphloop.agents.prices import Price, our_prices, own_file, own_prices
from ralphloop.cli import output
from ralphloop.cli.given import DefaultGroup, json_option
from ralphloop.config.load import DEFAULT, Loaded, check_config, load_config
from ralphloop.config.model import Setting, settings
from ralphloop.config.values import HIDDEN, toml_line
from ralphloop.core.story_state import Standing
from ralphloop.errors import ExitCode, InputError, LockedError, UsageError
from ralphloop.journal.database import belief_in
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import live_holder
from ralphloop.journal.seal import Belief, insist
from ralphloop.loop.prepare import Options, Setup, prepare
from ralphloop.night.look import look, story_file
from ralphloop.proc.process_table import find_process, mark_on
from ralphloop.project import Project, find_project, relative
from ralphloop.room import claim, refuse_links
from ralphloop.stories.names import label
from ralphloop.stories.source import load
from ralphloop.text.plain import counted
from ralphloop.trust import (
    Grant,
    TrustRecord,
    agree,
    grants_of,
    load_record,
    not_trusted,
    pin_of,
    revoke,
)

_COMMENT_COLUMN = 40


@click.group(cls=DefaultGroup, default="show")
def config() -> None:
    """Show or check the settings and where they come from."""


@config.command()
@json_option("One object: name → value and origin.")
def show(as_json: bool) -> None:
    """Print every setting in force with its origin, in the form of a ralph.toml."""
    loaded = load_config(find_project().root, env=os.environ)
    data = {
        name: {"value": _visible(setting, loaded), "origin": loaded.origins[name]}
        for name, setting in settings().items()
    }
    output.show(_in_sections(loaded), data, as_json=as_json)


def _in_sections(loaded: Loaded) -> Iterator[str]:
    section = ""
    for name, setting in settings().items():
        if setting.section != section:
            section = setting.section
            yield output.paint(f"[{section}]", "bold")
        line = output.safe(toml_line(setting, _visible(setting, loaded)))
        origin = output.paint(f"# {output.safe(loaded.origins[name])}", "dim")
        yield f"{line:<{_COMMENT_COLUMN}} {origin}"


@config.command()
@json_option("One object: ok and the problems.")
def validate(as_json: bool) -> int:
    """Check ralph.toml, your own settings and the environment; name every problem."""
    loaded, problems = check_config(find_project().root, env=os.environ)
    if as_json:
        found = [output.picked(each, "place", "message") for each in problems]
        output.emit_json({"ok": not problems, "problems": found})
    elif problems:
        for problem in problems:
            output.error(f"{problem.place}: {problem.message}")
        words = counted(len(problems), "problem")
        output.note(f"{words}. `ralph config show` prints the settings once they are right.")
    else:
        counts = Counter(loaded.origins.values())
        defaults = counts.pop(DEFAULT, 0)
        parts = [f"{count} from {origin}" for origin, count in counts.items()]
        output.emit_lines([f"OK: {', '.join([*parts, f'{defaults} by default'])}"])
    return ExitCode.BAD_INPUT if problems else ExitCode.COMPLETE


def _visible(setting: Setting, loaded: Loaded) -> object:
    """The value, except that variables for the agent may be keys and are not shown."""
    value: object = getattr(getattr(loaded.config, setting.section), setting.key)
    if setting.form == "variables" and isinstance(value, dict):
        return dict.fromkeys(value, HIDDEN)
    return value


# --- prices ----------------------------------------------------------------------------------


@click.command()
@json_option("Print one JSON object.")
def prices(as_json: bool) -> None:
    """Show what tokens are taken to cost, for agents that name no price."""
    own = own_prices().models
    rows = {**our_prices().models, **own}
    models = {name: _cells(price) | {"own": name in own} for name, price in rows.items()}
    data = {"checked": our_prices().checked, "override": str(own_file() or ""), "models": models}
    output.show(_table(rows, own), data, as_json=as_json)


def _cells(price: Price) -> dict[str, object]:
    """What each kind of token costs; the cache as much as input where nobody says."""
    return {
        "input": price.input,
        "output": price.output,
        "cache_read": price.input if price.cache_read is None else price.cache_read,
        "cache_write": price.input if price.cache_write is None else price.cache_write,
    }


def _table(rows: dict[str, Price], own: dict[str, Price]) -> Iterator[str]:
    width = max(map(len, rows))
    yield f"Dollars for a million tokens, checked {our_prices().checked}; `*` is a family of names."
    heads = "".join(f"{head:>12}" for head in ("input", "output", "cache read", "cache write"))
    yield f"{'':{width}}{heads}"
    for name in sorted(rows):
        cells = "".join(f"{cell:>12}" for cell in _cells(rows[name]).values())
        yield output.safe(f"{name:{width}}{cells}{'  yours' if name in own else ''}")
    yield "A model without a row counts tokens only (limits.max_tokens)."
    yield from output.row("your own", f"{own_file()}{'' if own else ' (not there)'}")


# --- trust -----------------------------------------------------------------------------------


@click.command()
@click.option("--show", is_flag=True, help="Print the lines and their hash; change nothing.")
@click.option("--yes", is_flag=True, help="Agree without being asked.")
@click.option("--revoke", "forget", is_flag=True, help="Forget everything agreed to here.")
@click.option("--journal", is_flag=True, help="Accept a journal that ralph does not believe.")
@click.option("--prd", type=click.Path(path_type=Path), help="The story file.")
def trust(show: bool, yes: bool, forget: bool, journal: bool, prd: Path | None) -> int:
    """Look at what this repository may run here, and say yes to it once.

    These are settings that start a program or loosen safety, declared agents, and commands of
    stories.  The answer is kept outside of the repository and holds for all its work trees.
    """
    project = find_project()
    if journal:
        return _accept_journal(project, show=show, yes=yes)
    if forget:
        insist_on_person()
        gone = revoke(project.root, os.environ)
        output.emit_lines(["Forgotten: the next run asks." if gone else "There was nothing."])
        return ExitCode.COMPLETE
    grants = _grants(project, prd)
    record = load_record(project.root, os.environ)
    lacking = record.new(grants)
    if show or not lacking:
        output.emit_lines(_shown(grants, lacking))
        return ExitCode.COMPLETE
    insist_on_person()
    if not _said_yes(_question(lacking, record), "Trust them?", given=yes):
        raise not_trusted(grants, lacking)
    agree(project.root, os.environ, grants)
    output.emit_lines(["Agreed. A run asks again only when one of these lines changes."])
    return ExitCode.COMPLETE


def trusted_setup(options: Options) -> Setup:
    """Everything a run needs, with a person's yes: asked for on a terminal, else it ends here."""
    setup = prepare(options)
    settle_trust(setup)
    belief = belief_in(setup.project.journal)
    is_waived = setup.trusts_all and belief is Belief.FOREIGN
    if belief is not Belief.OURS and not is_waived:
        if _marked():
            insist(belief, setup.project.journal)
        _adopt(setup.project, belief)
    return setup


def agree_to_typed(project: Project, path: Path) -> None:
    """Who types a command wants it run; an agent that does so says yes to nothing."""
    if not _marked():
        mine = [one for one in _grants(project, path) if one.origin == relative(path, project.root)]
        agree(project.root, os.environ, mine)


def settle_trust(setup: Setup) -> None:
    """A person's yes to what the settings may run: asked for on a terminal, else it ends here."""
    root, options = setup.project.root, setup.options
    if lacking := setup.lacking():
        record = load_record(root, options.env)
        pinned = options.trust or _marked()
        if pinned or not _said_yes(_question(lacking, record), "Trust them?"):
            setup.insist_on_trust()
        agree(root, options.env, setup.grants)
    refuse_links(setup.project.directory)


def _accept_journal(project: Project, *, show: bool, yes: bool) -> int:
    belief = belief_in(project.journal)
    if belief is Belief.OURS:
        there = project.journal.exists()
        output.emit_lines(["The journal is what ralph wrote." if there else "No journal yet."])
        return ExitCode.COMPLETE
    if show:
        output.emit_lines(_about_journal(project, belief))
        return ExitCode.COMPLETE
    insist_on_person()
    _adopt(project, belief, yes=yes)
    output.emit_lines(["Accepted as it is."])
    return ExitCode.COMPLETE


def _about_journal(project: Project, belief: Belief) -> Iterator[str]:
    """What believing it would mean."""
    yield "The journal is not believed:" + (
        " something else than ralph changed it since ralph wrote it last."
        if belief is Belief.CHANGED
        else " it was not written here by this ralph, or before journals were signed."
    )
    night = look(project, now=time.time())
    if night.run is None:
        yield "  it knows no run"
        return
    used = night.run.totals
    yield output.safe(
        f"  newest run {night.run.id}: {night.run.status}, {counted(used.iterations, 'iteration')},"
        f" ${used.cost_usd:.2f}, circuit {night.circuit.circuit}"
    )
    for story in night.stories:
        if story.state.standing is not Standing.OPEN:
            state = story.state
            words = f"{state.standing} ({state.grade})" if state.grade else str(state.standing)
            yield output.safe(f"  {label(story.story.id)}: {words}")


def _adopt(project: Project, belief: Belief, *, yes: bool = False) -> None:
    """Believe the journal after a person's yes; else it ends here."""
    if not _said_yes(_about_journal(project, belief), "Believe it?", given=yes):
        insist(belief, project.journal)
    claim(project.directory)
    if holder := live_holder(project.directory, time.time()):
        raise LockedError(f"run {holder.run} is going on", "Stop it first: ralph stop")
    with Journal.open(project.journal) as journal:
        journal.adopt()


def _grants(project: Project, prd: Path | None) -> tuple[Grant, ...]:
    loaded = load_config(project.root, env=os.environ)
    try:
        stories = load(prd or story_file(project, None, loaded.config))
    except InputError:
        return grants_of(loaded, project.root)  # without stories, or with a mistake a run names
    return grants_of(loaded, project.root, stories.list.stories, stories.path)


def _said_yes(lines: Iterable[str], question: str, *, given: bool = False) -> bool:
    """A person's yes to what is shown, on the terminal or by an option."""
    if given:
        output.emit_lines(lines)
    elif sys.stdin.isatty() and sys.stderr.isatty():
        for line in lines:
            output.note(line)
        return click.confirm(question, default=False, err=True)
    return given


def _question(lacking: Sequence[Grant], record: TrustRecord) -> Iterator[str]:
    again = "changed since they were agreed to" if record.grants else "not been agreed to here"
    yield f"Settings of this repository that can run programs or loosen safety have {again}:"
    yield from _lines(lacking, record)


def _lines(grants: Sequence[Grant], record: TrustRecord) -> Iterator[str]:
    origin = ""
    for grant in grants:
        if grant.origin != origin:
            origin = grant.origin
            yield output.safe(f"  {origin}")
        if before := record.before(grant):
            yield output.safe(f"  - {before}")
        yield output.safe(f"  {'+' if before else ' '} {grant.shown}")


def _shown(grants: Sequence[Grant], lacking: Sequence[Grant]) -> Iterator[str]:
    if not grants:
        yield "Nothing in this repository's settings runs a program or loosens safety."
        return
    yield from _lines(grants, TrustRecord())
    if lacking:
        yield f"not agreed to yet: {counted(len(lacking), 'line')}; `ralph trust` asks"
    else:
        yield "agreed to; `ralph trust --revoke` forgets it"
    yield f"hash: {pin_of(grants)}"


def _marked() -> bool:
    """True below an agent of any run."""
    proc = find_process(os.getpid())
    while proc is not None and proc.pid > 1:
        if mark_on(proc.pid):
            return True
        proc = find_process(proc.parent)
    return False


def insist_on_person(refusal: str = "an agent cannot agree to what a repository may run") -> None:
    """End here below an agent of any run."""
    if _marked():
        raise UsageError(
            refusal,
            "End your turn and say in RECOMMENDATION what a person should look at.",
        )
