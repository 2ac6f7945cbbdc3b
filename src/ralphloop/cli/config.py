"""`ralph config`, `ralph prices`, and `ralph trust`, which is also asked where a run begins.

Shown are exactly the lines of the repository that can run a program or loosen safety, each with its
file and with what was agreed to before.  An agent is no person: below one nothing is agreed to.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import click

from ralphloop.agents.prices import our_prices, own_file, own_prices
from ralphloop.cli import output
from ralphloop.cli.given import DefaultGroup, json_option
from ralphloop.config.load import DEFAULT, check_config, load_config
from ralphloop.config.model import settings
from ralphloop.config.values import HIDDEN, toml_line
from ralphloop.core.run_state import Standing
from ralphloop.errors import ExitCode, InputError, LockedError, UsageError
from ralphloop.journal.database import belief_in
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import live_holder
from ralphloop.journal.seal import Belief, insist
from ralphloop.loop.prepare import Options, Setup, prepare
from ralphloop.night.look import found_story_file, look
from ralphloop.proc.process_table import MARK_VARIABLE, find_process, mark_on
from ralphloop.proc.tree import is_inside
from ralphloop.project import RALPH_DIR, Project, find_project, tree_top
from ralphloop.room import claim, common_place, refuse_links
from ralphloop.stories.names import label
from ralphloop.stories.source import load
from ralphloop.text.plain import counted
from ralphloop.trust import Grant, agree, grants_of, load_record, not_trusted, pin_of, revoke

_COMMENT_COLUMN = 40


@click.group(cls=DefaultGroup)
def config() -> None:
    """Show or check the settings and where they come from."""


@config.command()
@json_option("One object: name → value and origin.")
def show(as_json: bool) -> None:
    """Print every setting in force with its origin, in the form of a ralph.toml."""
    loaded = load_config(find_project().root, env=os.environ)
    section = ""
    lines = list[str]()
    data = dict[str, object]()
    for name, setting in settings().items():
        if setting.section != section:
            section = setting.section
            lines.append(output.paint(f"[{section}]", "bold"))
        value: object = getattr(getattr(loaded.config, section), setting.key)
        if setting.form == "variables" and isinstance(value, dict):
            value = dict.fromkeys(value, HIDDEN)  # they may be keys
        data[name] = {"value": value, "origin": loaded.origins[name]}
        origin = output.paint(f"# {output.safe(loaded.origins[name])}", "dim")
        line = output.safe(toml_line(setting, value))
        lines.append(f"{line:<{_COMMENT_COLUMN}} {origin}")
    output.show(lines, data, as_json=as_json)


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


@click.command()
@json_option("Print one JSON object.")
def prices(as_json: bool) -> None:
    """Show what tokens are taken to cost, for agents that name no price."""
    own = own_prices().models
    checked = our_prices().checked
    rows = {**our_prices().models, **own}
    kinds = ("input", "output", "cache_read", "cache_write")
    width = max(map(len, rows))
    heads = "".join(f"{kind.replace('_', ' '):>12}" for kind in kinds)
    lines = [f"Dollars for a million tokens, checked {checked}; `*` is a family of names."]
    lines += [f"{'':{width}}{heads}"]
    models = {}
    for name, price in sorted(rows.items()):
        cells = {kind: getattr(price, kind) for kind in kinds}
        # The cache costs as much as input where nobody says.
        cells = {kind: price.input if cell is None else cell for kind, cell in cells.items()}
        models[name] = {**cells, "own": name in own}
        shown = "".join(f"{cell:>12}" for cell in cells.values())
        lines.append(output.safe(f"{name:{width}}{shown}{'  yours' if name in own else ''}"))
    lines += ["A model without a row counts tokens only (limits.max_tokens)."]
    lines += output.row("your own", f"{own_file()}{'' if own else ' (not there)'}")
    data = {"checked": checked, "override": str(own_file() or ""), "models": models}
    output.show(lines, data, as_json=as_json)


@click.command()
@click.option("--show", is_flag=True, help="Print the lines and their hash; change nothing.")
@click.option("--yes", is_flag=True, help="Agree without being asked.")
@click.option("--revoke", "forget", is_flag=True, help="Forget everything agreed to here.")
@click.option("--journal", is_flag=True, help="Accept a journal that ralph does not believe.")
@click.option("--prd", type=click.Path(path_type=Path), help="The story file.")
def trust(show: bool, yes: bool, forget: bool, journal: bool, prd: Path | None) -> str | None:
    """Look at what this repository may run here, and say yes to it once.

    These are settings that start a program or loosen safety, declared agents, and commands of
    stories.  The answer is kept outside of the repository and holds for all its work trees.
    """
    project = find_project()
    if journal:
        belief = belief_in(project.journal)
        if belief is Belief.OURS:
            there = project.journal.exists()
            return "The journal is what ralph wrote." if there else "No journal yet."
        if show:
            output.emit_lines(_about_journal(project, belief))
            return None
        insist_on_person()
        _adopt(project, belief, yes=yes)
        return "Accepted as it is."
    if forget:
        insist_on_person()
        gone = revoke(project.root, os.environ)
        return "Forgotten: the next run asks." if gone else "There was nothing."
    grants = _grants(project, prd)
    lacking = load_record(project.root, os.environ).new(grants)
    if not grants:
        return "Nothing in this repository's settings runs a program or loosens safety."
    if show or not lacking:
        asks = f"not agreed to yet: {counted(len(lacking), 'line')}; `ralph trust` asks"
        state = asks if lacking else "agreed to; `ralph trust --revoke` forgets it"
        output.emit_lines([*_lines(grants), state, f"hash: {pin_of(grants)}"])
        return None
    insist_on_person()
    if not _said_yes(_question(project.root, lacking), "Trust them?", given=yes):
        raise not_trusted(grants, lacking)
    agree(project.root, os.environ, grants)
    return "Agreed. A run asks again only when one of these lines changes."


def trusted_setup(options: Options) -> Setup:
    """Everything a run needs, with a person's yes: asked for on a terminal, else it ends here."""
    setup = prepare(options)
    settle_trust(setup)
    belief = belief_in(setup.project.journal)
    is_waived = setup.trusts_all and belief is Belief.FOREIGN
    if belief is not Belief.OURS and not is_waived:
        _adopt(setup.project, belief)
    return setup


def agree_to(project: Project, prd: Path | None, *origins: str) -> None:
    """Who typed or made these wants them run; an agent that does so says yes to nothing."""
    if not _is_agents():
        mine = [one for one in _grants(project, prd) if one.origin in origins]
        agree(project.root, os.environ, mine)


def settle_trust(setup: Setup) -> None:
    """A person's yes to what the settings may run: asked for on a terminal, else it ends here."""
    root = setup.project.root
    options = setup.options
    if lacking := setup.lacking():
        if options.trust or not _said_yes(_question(root, lacking), "Trust them?"):
            setup.insist_on_trust()
        agree(root, options.env, setup.grants)
    refuse_links(setup.project.directory)


def _about_journal(project: Project, belief: Belief) -> Iterator[str]:
    yield "The journal is not believed:" + (
        " something else than ralph changed it since ralph wrote it last."
        if belief is Belief.CHANGED
        else " it was not written here by this ralph, or before journals were signed."
    )
    night = look(project)
    if night.run is None:
        yield "  it knows no run"
        return
    used = night.run.totals
    yield output.safe(
        f"  newest run {night.run.id}: {night.run.status}, {counted(used.iterations, 'iteration')},"
        f" ${used.cost_usd:.2f}, circuit {night.circuit.circuit}"
    )
    for story in night.stories:
        state = story.state
        if state.standing is not Standing.OPEN:
            grade = f" ({state.grade})" if state.grade else ""
            yield output.safe(f"  {label(story.story.id)}: {state.standing}{grade}")


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
        stories = load(prd or found_story_file(project, loaded.config))
    except InputError:
        return grants_of(loaded, project.root)  # without stories, or with a mistake a run names
    return grants_of(loaded, project.root, stories.list.stories, stories.path)


def _said_yes(lines: Iterable[str], question: str, *, given: bool = False) -> bool:
    """A person's yes to what is shown, by an option or on a terminal that is no agent's."""
    if given:
        output.emit_lines(lines)
    elif sys.stdin.isatty() and sys.stderr.isatty() and not _is_agents():
        for line in lines:
            output.note(line)
        return click.confirm(question, default=False, err=True)
    return given


def _question(root: Path, lacking: Sequence[Grant]) -> Iterator[str]:
    record = load_record(root, os.environ)
    again = "changed since they were agreed to" if record.grants else "not been agreed to here"
    yield f"Settings of this repository that can run programs or loosen safety have {again}:"
    yield from _lines(lacking, record.before)


def _lines(
    grants: Sequence[Grant], said_before: Callable[[Grant], str] = lambda _: ""
) -> Iterator[str]:
    origin = ""
    for grant in grants:
        if grant.origin != origin:
            origin = grant.origin
            yield output.safe(f"  {origin}")
        if before := said_before(grant):
            yield output.safe(f"  - {before}")
        instead = f"  (instead of {grant.instead})" if grant.instead else ""
        yield output.safe(f"  {'+' if before else ' '} {grant.shown}{instead}")


def _is_agents() -> bool:
    """True below an agent of any run, and for what a run of this project has adopted."""
    if os.environ.get(MARK_VARIABLE):
        return True
    proc = find_process(os.getpid())
    while proc is not None and proc.pid > 1:
        if mark_on(proc.pid):
            return True
        proc = find_process(proc.parent)
    return any(map(_is_adopted, _own_directories(find_project())))


def _is_adopted(directory: Path) -> bool:
    """True where the run that holds the directory is above us, in another session than ours."""
    holder = live_holder(directory, time.time())
    if holder is None or holder.is_lease or holder.host != os.uname().nodename:
        return False  # in a session person and agent use the same terminal
    return is_inside(holder.run, holder.pid)


def _own_directories(project: Project) -> Iterator[Path]:
    """Where a run that works here may be held: this project, or the checkout that lanes are of."""
    yield project.directory
    root = project.root.resolve()
    checkout = common_place(root).parent
    yield checkout / root.relative_to(tree_top(root).resolve()) / RALPH_DIR


def insist_on_person(refusal: str = "an agent cannot agree to what a repository may run") -> None:
    """End here for an agent of any run."""
    if _is_agents():
        step = "End your turn and say in RECOMMENDATION what a person should look at."
        raise UsageError(refusal, step)
