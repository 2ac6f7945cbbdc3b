"""Proposed stories: kept in the journal, one row each, and made into stories of the list.

What an agent found is written with the iteration it found it in.  Where `stories.accept_found` says
so, what was found becomes a story of the list at once, a few of them in a run.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ralphloop.core.events import Event, LoopEvent, StoryProposed
from ralphloop.core.proposals import (
    USUAL_CRITERION,
    Proposal,
    ProposalOrigin,
    ProposalStanding,
    propose,
)
from ralphloop.errors import RalphError
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import PROPOSAL_KEY
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace
from ralphloop.project import Project
from ralphloop.room import ensure_private_dir
from ralphloop.text.plain import one_line
from ralphloop.text.remarks import remarks_in


class Finds(msgspec.Struct, frozen=True):
    """What an iteration adds to the proposals: rows for the journal, and what is told."""

    rows: dict[str, object] = {}
    events: tuple[Event, ...] = ()


def finds_of(journal: Journal, answer: str | None, like: Proposal) -> Finds:
    """What an agent's last words propose; only its own final answer counts."""
    if answer is None:
        return Finds()
    known = {one.id: one for one in journal.proposals()}
    rows: dict[str, object] = {}
    told = list[Event]()
    for text in remarks_in(answer).found:
        done = propose(list(known.values()), replace(like, text=text))
        if done is None:
            continue
        one = done.proposal
        known[one.id] = one
        rows[PROPOSAL_KEY.format(one.id)] = one
        if done.is_new:
            told.append(event_of(one))
    return Finds(rows, tuple(told))


def event_of(one: Proposal) -> StoryProposed:
    return StoryProposed(
        proposal=one.id,
        text=one.text,
        origin=one.origin,
        story=one.story,
        by=one.by,
        became=one.became,
    )


def keep_proposal(journal: Journal, wanted: Proposal) -> Proposal | None:
    """Write down what somebody proposes outside of a start: a follow-up, a pull request's comment;
    None where too many wait.

    With an event where it is new.  The same comment, known by its link, is one proposal however
    often it is read; and whatever `stories.accept_found` says, what stands under a pull request
    waits for a person: whoever may comment may write anything.
    """
    from ralphloop.redaction import redact

    done = propose(journal.proposals(), replace(wanted, text=redact(wanted.text)))
    if done is None:
        return None
    one = done.proposal
    # A person's decision goes along: what they wanted and was made a story waits for nobody.
    if done.is_new or wanted.became:
        one = replace(one, standing=wanted.standing, became=wanted.became)
    journal.set_meta(PROPOSAL_KEY.format(one.id), one)
    newest = journal.latest_run()
    if done.is_new and newest is not None:
        journal.append_events([LoopEvent(run=newest.id, at=one.at, what=event_of(one))])
    return one


def accept_found(run: Run, workspace: Workspace) -> bool:
    """Make stories of what was found in this run, where the settings say so; whether any was.

    In lanes the list is the branch's, and `lanes.found_stories` adds to it.
    """
    listed = workspace.stories
    is_elsewhere = workspace.number or workspace.lands_on or workspace.site.is_errand
    if listed is None or is_elsewhere:
        return False
    accepted = acceptable(run)
    for one in accepted:
        try:
            made = make_story(listed.path, one, (USUAL_CRITERION,))
        except RalphError as error:
            run.tell(f"{one.id} was not made a story: {error.message}")
            return False
        keep_accepted(run, made)
        workspace.touched()
    return bool(accepted)


def acceptable(run: Run) -> list[Proposal]:
    """What agents found in this run and may become a story by itself, within its bound."""
    settings = run.config.stories
    if not settings.accept_found:
        return []
    found = (one for one in run.journal.proposals() if one.origin is ProposalOrigin.FOUND)
    mine = [one for one in found if one.run == run.id]
    left = settings.max_found - sum(bool(one.became) for one in mine)
    if not settings.max_found:
        left = len(mine)
    return [one for one in mine if one.is_open][: max(0, left)]


def keep_accepted(run: Run, made: Proposal) -> None:
    """Write down which story a proposal became, and say so."""
    run.journal.set_meta(PROPOSAL_KEY.format(made.id), made)
    run.emit(event_of(made))


def make_story(
    source: Path, one: Proposal, criteria: Sequence[str], title: str = "", *, name: str = ""
) -> Proposal:
    """Add a story for a proposal to the list, of the next number where it has no name; the
    proposal, accepted."""
    from ralphloop.stories.adding import add_story  # most answers propose nothing

    fields = {
        "id": name,
        "title": one_line(title, 200) or one.title,
        "description": one.text,
        "acceptanceCriteria": list(criteria),
        "notes": f"Proposed as {one.id}: {one.provenance}.",
    }
    made = add_story(source, fields)
    return replace(one, standing=ProposalStanding.ACCEPTED, became=made)


def decide(project: Project, changed: Proposal) -> None:
    """Keep what a person made of a proposal; a run that goes on sees it."""
    ensure_private_dir(project.directory)
    with Journal.open(project.journal, check=False) as journal:
        journal.set_meta(PROPOSAL_KEY.format(changed.id), changed)


def drop(project: Project, one: Proposal) -> None:
    decide(project, replace(one, standing=ProposalStanding.DROPPED))
