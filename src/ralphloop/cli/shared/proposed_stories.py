"""Proposed stories in a terminal: shown, made a story of the list, dropped."""

import sys
from collections.abc import Iterator, Sequence

import click

from ralphloop.cli import output
from ralphloop.core.proposals import USUAL_CRITERION, Proposal
from ralphloop.errors import UsageError
from ralphloop.loop.proposing import decide, drop, make_story
from ralphloop.night.look import config_of, reading, story_file
from ralphloop.project import Project
from ralphloop.text.plain import one_line

_KEYS = "[a]ccept  [d]rop  [s]kip  [q]uit"
_INDENT = 5


def open_proposals(project: Project) -> list[Proposal]:
    """What waits for a person's yes or no."""
    if not project.journal.exists():
        return []
    with reading(project) as journal:
        return [one for one in journal.proposals() if one.is_open]


def proposal_called(project: Project, name: str) -> Proposal:
    """The open one of this id; raises where there is none."""
    found = next((one for one in open_proposals(project) if one.id == name), None)
    if found is None:
        words = f"nothing that waits is called {one_line(name, 40)!r}"
        raise UsageError(words, "`ralph stories proposed` lists what is proposed.")
    return found


def shown_proposal(one: Proposal) -> Iterator[str]:
    yield from output.row(one.id, one.text, "bold", width=_INDENT)
    yield from output.row("", one.provenance, width=_INDENT)


def accept_proposal(
    project: Project, one: Proposal, criteria: Sequence[str], title: str = ""
) -> str:
    """Make it a story of the list, with what will be seen when it is done; the story's id."""
    if not criteria:
        criteria = (_ask_for_criterion(one),)
    path = story_file(project, None, config_of(project, None))
    made = make_story(path, one, criteria, title)
    decide(project, made)
    return made.became


def _ask_for_criterion(one: Proposal) -> str:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        step = f"ralph stories accept {one.id} -c 'what will be seen when it is done'"
        raise UsageError("a story needs a criterion", step)
    asked = "What will be seen when it is done"
    return str(click.prompt(asked, default=USUAL_CRITERION, err=True)).strip()


def walk_proposals(project: Project, proposals: Sequence[Proposal]) -> None:
    """One after the other, key by key."""
    for number, one in enumerate(proposals, start=1):
        output.emit_lines([output.paint(f"proposed {number} of {len(proposals)}", "dim")])
        output.emit_lines(shown_proposal(one))
        key = output.key(f"{' ' * _INDENT}{_KEYS} ", "adsq")
        if key == "a":
            made = accept_proposal(project, one, ())
            output.emit_lines(output.row("", f"{made} was added to the list.", width=_INDENT))
        elif key == "d":
            drop(project, one)
        elif key == "q":
            return
        output.emit_lines([""])
