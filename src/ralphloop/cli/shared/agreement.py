"""A person's yes to what a repository may run: asked for where a run begins, and by `ralph trust`.

Shown are exactly the lines of the repository that can run a program or loosen safety, each with its
file and with what was agreed to before.  An agent is no person: below one nothing is agreed to.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.config.load import load_config
from ralphloop.core.run_state import Standing
from ralphloop.errors import InputError, LockedError, NotTrusted, UsageError
from ralphloop.journal.authenticity import Belief, insist
from ralphloop.journal.database import belief_in
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import live_holder
from ralphloop.loop.prepare import Options, Setup, prepare
from ralphloop.night.look import found_story_file, look
from ralphloop.proc.process_table import MARK_VARIABLE, find_process, mark_on
from ralphloop.proc.tree import is_inside
from ralphloop.project import RALPH_DIR, Project, find_project, tree_top
from ralphloop.room import common_place, ensure_private_dir, refuse_links
from ralphloop.stories.names import label
from ralphloop.stories.source import load
from ralphloop.text.plain import counted
from ralphloop.trust import Grant, agree, grants_of, load_record

_SAID_NO = "you said no to what this repository may run; nothing was started"


def trusted_setup(options: Options) -> Setup:
    """Everything a run needs, with a person's yes: asked for on a terminal, else it ends here."""
    setup = prepare(options)
    settle_trust(setup)
    belief = belief_in(setup.project.journal)
    is_waived = setup.trusts_all and belief is Belief.FOREIGN
    if belief is not Belief.OURS and not is_waived:
        adopt_journal(setup.project, belief)
    return setup


def agree_to(project: Project, prd: Path | None, *origins: str) -> None:
    """Who typed or made these wants them run; an agent that does so says yes to nothing."""
    if not _is_below_an_agent():
        mine = [one for one in grants_of_project(project, prd) if one.origin in origins]
        agree(project.root, os.environ, mine)


def settle_trust(setup: Setup) -> None:
    """A person's yes to what the settings may run: asked for on a terminal, else it ends here."""
    root = setup.project.root
    options = setup.options
    if lacking := setup.lacking():
        if options.trust or not has_yes(question_about(root, lacking), "Trust them?"):
            if not options.trust and _can_be_asked():
                raise NotTrusted(_SAID_NO, "Change those lines, or look again: ralph trust")
            setup.insist_on_trust()
        agree(root, options.env, setup.grants)
    refuse_links(setup.project.directory)


def describe_journal(project: Project, belief: Belief) -> Iterator[str]:
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
            grade = f" ({state.proof.grade})" if state.proof.grade else ""
            yield output.safe(f"  {label(story.story.id)}: {state.standing}{grade}")


def adopt_journal(project: Project, belief: Belief, *, yes: bool = False) -> None:
    """Believe the journal after a person's yes; else it ends here."""
    if not has_yes(describe_journal(project, belief), "Believe it?", given=yes):
        insist(belief, project.journal)
    ensure_private_dir(project.directory)
    if holder := live_holder(project.directory, time.time()):
        raise LockedError(f"run {holder.run} is going on", "Stop it first: ralph stop")
    with Journal.open(project.journal) as journal:
        journal.adopt()


def grants_of_project(
    project: Project, prd: Path | None, agent: str | None = None
) -> tuple[Grant, ...]:
    """What a run here needs a yes to, with the agent of the settings or with another one."""
    flags = {"agent.name": agent} if agent else {}
    loaded = load_config(project.root, env=os.environ, flags=flags)
    try:
        stories = load(prd or found_story_file(project, loaded.config))
    except InputError:
        return grants_of(loaded, project.root)  # without stories, or with a mistake a run names
    return grants_of(loaded, project.root, stories.list.stories, stories.path)


def has_yes(lines: Iterable[str], question: str, *, given: bool = False) -> bool:
    """A person's yes to what is shown, by an option or on a terminal that is no agent's."""
    if given:
        output.emit_lines(lines)
    elif _can_be_asked():
        for line in lines:
            output.note(line)
        return click.confirm(question, default=False, err=True)
    return given


def _can_be_asked() -> bool:
    """A person is at the terminal, and no agent."""
    return sys.stdin.isatty() and sys.stderr.isatty() and not _is_below_an_agent()


def question_about(root: Path, lacking: Sequence[Grant]) -> Iterator[str]:
    record = load_record(root, os.environ)
    again = "changed since they were agreed to" if record.grants else "not been agreed to here"
    yield f"Settings of this repository that can run programs or loosen safety have {again}:"
    yield from grant_lines(lacking, record.before)


def grant_lines(
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


def _is_below_an_agent() -> bool:
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
    if _is_below_an_agent():
        step = "End your turn and say in RECOMMENDATION what a person should look at."
        raise UsageError(refusal, step)
