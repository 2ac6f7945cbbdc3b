"""Undoing a rejection: the stories that were sent back stand as they stood, and their work is back.

An ordinary commit takes the commit of the rejection out again, by the same means as stories are
taken out; where what comes of it was never checked, the checks decide.  It is refused where
somebody worked on the story since or spoke about it, where a run began, and where later work is in
the way: then nothing is changed.  What is done is written ahead, as a rejection is.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.atomic import kill_point
from ralphloop.core.interventions import RejectionTakenBack
from ralphloop.core.model import Value
from ralphloop.errors import RepositoryError, UsageError
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import BRINGING_BACK_KEY, SENT_BACK_KEY, Queries
from ralphloop.loop.confine import confined_repository
from ralphloop.loop.offline_requests import HeldRun, hold_last_run
from ralphloop.loop.rejecting import Ground, SentBack, Tell, checks_of_tree, ground_of
from ralphloop.night.look import config_of
from ralphloop.project import Project
from ralphloop.repo.commit import with_trailers
from ralphloop.repo.set_aside import ref_name
from ralphloop.repo.taking_out import commit_tree, refuse_own_changes, shown_change, tree_without
from ralphloop.repo.work_tree import Repository
from ralphloop.stories.source import mark
from ralphloop.text.plain import agreeing, some

_LOOK = "`ralph stories` shows how it stands."
_SHORT = 10  # characters of a commit's name
_MOST_SHOWN = 3


class BringingBack(Value, kw_only=True):
    """What is about to be done; written ahead."""

    undone: SentBack
    head: str = ""  # of the branch, before; empty: there is no commit to make
    tree: str = ""  # it will hold
    message: str = ""


class BroughtBack(NamedTuple):
    words: str  # what was done
    stories: tuple[str, ...]  # that stand as before


def bring_back(project: Project, story: str, *, tell: Tell) -> BroughtBack:
    """Undo the rejection of a story, and of what went with it; raises where that cannot be."""
    with hold_last_run(project, story) as held:
        undone = _rejection_of(held, story)
        _insist_on_nothing_since(held, undone)
        job = BringingBack(undone=undone)
        repo = None
        if undone.commit:
            ground = ground_of(project, held, Path(undone.source))
            repo = ground.repo
            tree = _tree_with(project, held, ground, undone, tell)
            job = BringingBack(
                undone=undone, head=repo.head() or "", tree=tree, message=_message(held, undone)
            )
        held.journal.set_meta(BRINGING_BACK_KEY, job)
        kill_point("bringing_back.noted")
        _finish(held, repo, job)
    return BroughtBack(_told(undone), tuple(undone.before))


def can_be_brought_back(project: Project, story: str) -> bool:
    """Whether it was sent back, and nobody did that again or marked it since."""
    with hold_last_run(project, story) as held:
        listed = held.story(story)
        is_open = listed is not None and not listed.passes
        return is_open and any(story in one.before for one in _rejections(held.journal))


def _rejections(journal: Queries) -> list[SentBack]:
    return msgspec.convert(journal.meta(SENT_BACK_KEY) or [], list[SentBack])


def _rejection_of(held: HeldRun, story: str) -> SentBack:
    """The newest rejection that took this story along."""
    found = [one for one in _rejections(held.journal) if story in one.before]
    if not found:
        raise UsageError(f"{story} was not sent back, or that was undone", _LOOK)
    return found[-1]


def _insist_on_nothing_since(held: HeldRun, undone: SentBack) -> None:
    """Raise where the stories are no longer as the rejection left them."""
    by_hand = _LOOK
    if undone.commit:
        by_hand = f"To have the change back all the same: git revert {undone.commit[:_SHORT]}"
    if held.session.run != undone.run:
        names = some(list(undone.before))
        raise UsageError(f"a run has begun since {names} went back to the list", by_hand)
    for name, stood in undone.after.items():
        listed = held.story(name)
        if listed is None:
            raise UsageError(f"{name} is no longer in the list", by_hand)
        if listed.passes:
            raise UsageError(f"{name} has been marked as passed since", by_hand)
        if held.session.story(name) != stood:
            raise UsageError(f"something was said or done about {name} since", by_hand)


def _tree_with(
    project: Project, held: HeldRun, ground: Ground, undone: SentBack, tell: Tell
) -> str:
    """What the branch would hold with the stories; raises where that is not to be had."""
    repo = ground.repo
    short = undone.commit[:_SHORT]
    if not repo.git.contains("HEAD", undone.commit):
        raise RepositoryError(f"{short}, which took it out, is not in this branch", _LOOK)
    change = shown_change(repo, undone.commit)
    found = tree_without(repo, [change], ground.own)
    if found.in_the_way:
        told = [f"{one.path} was changed since" for one in found.in_the_way]
        words = f"{some(list(undone.before))} cannot be brought back: {some(told, _MOST_SHOWN)}"
        raise RepositoryError(words, f"By hand: git revert {short}")
    refuse_own_changes(repo, found.tree)
    differing = repo.paths_between(change.old, found.tree)
    if all(path in ground.own for path in differing):  # then that was checked
        return found.tree
    how = f"with {some(list(undone.before))}"
    red = checks_of_tree(project, held, ground, found.tree, how, tell).newly_red
    if red:
        tests = [test for check in red for test in check.failing_tests] or [it.name for it in red]
        does = agreeing(len(tests), "fails")
        words = f"{some(tests, _MOST_SHOWN)} {does} {how}: later work does not go with it"
        raise RepositoryError(words, f"By hand: git revert {short}")
    return found.tree


def _message(held: HeldRun, undone: SentBack) -> str:
    first = next(iter(undone.before))
    listed = held.story(first)
    title = listed.title if listed is not None else ""
    written = with_trailers(f'Reapply "{first}: {title}"', {"Ralph-Story": first})
    others = list(undone.before)[1:]
    if not others:
        return written
    subject, rest = written.split("\n\n", 1)
    return "\n\n".join([subject, f"With what stood on it: {', '.join(others)}", rest])


def _told(undone: SentBack) -> str:
    names = list(undone.before)
    told = f"{some(names)} {agreeing(len(names), 'stands')} as before, undone"
    return f"{told} by an ordinary commit" if undone.commit else told


def _finish(held: HeldRun, repo: Repository | None, job: BringingBack) -> None:
    """Do what is written ahead, or what is left of it; raises where a hook refuses the commit."""
    undone = job.undone
    source = Path(undone.source)
    mark(source, dict.fromkeys(undone.before, True), within=source.parent)
    kill_point("bringing_back.marked")
    refused = ""
    if job.head and repo is not None and repo.head() == job.head:
        ref = ref_name(undone.run, held.session.number, "brought-back")
        refused = commit_tree(repo, job.tree, job.message, also=[undone.listed_in], ref=ref)
    kill_point("bringing_back.committed")
    for name, before in undone.before.items():
        held.intervene(RejectionTakenBack(story=name, before=before))
        kill_point("bringing_back.told")
    rest = [one for one in _rejections(held.journal) if one != undone]
    held.journal.put("brought_back", {BRINGING_BACK_KEY: None, SENT_BACK_KEY: rest})
    if refused:
        raise RepositoryError(
            f"the work is back in the work tree, but the commit was refused: {refused}",
            "Commit it yourself; `git status` shows what changed.",
        )


def finish_bringing_back(project: Project, journal: Journal) -> str:
    """Do the rest of what was cut off; what was done, in words."""
    job = msgspec.convert(journal.meta(BRINGING_BACK_KEY), type=BringingBack)
    config = config_of(project, journal.find_run(job.undone.run))
    held = HeldRun(journal, journal.session(job.undone.run), config, None)
    repo = confined_repository(project, config) if job.head else None
    _finish(held, repo, job)
    return f"finished what was cut off: {some(list(job.undone.before))} brought back"
