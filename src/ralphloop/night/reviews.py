"""What waits for a person's eyes, of whichever run: the one list that every way of reviewing walks.

A story that passed waits until somebody accepts it or sends it back, also when later runs have
begun since.  What was given in words is beside the list and waits like the rest.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ralphloop.core import readable
from ralphloop.core.grading import Grade
from ralphloop.core.run_state import Standing, state_of
from ralphloop.errors import RalphError
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import RunRecord
from ralphloop.night.look import (
    commits_of,
    find_run,
    holder_of,
    look_at,
    own_commits,
    reading,
)
from ralphloop.night.values import ACCEPTED, SENT_BACK_SINCE, StoryLook
from ralphloop.project import Project
from ralphloop.stories.source import load

# What most needs a person comes first; an unknown grade is one of another version.
_FIRST = (
    Grade.NEEDS_REVIEW,
    Grade.CLAIMED,
    Grade.CHECKED,
    Grade.BY_HAND,
    Grade.VERIFIED,
    ACCEPTED,
    SENT_BACK_SINCE,
)
_MOST_ERRANDS = 50
_MOST_RUNS = 50  # whose commits are looked for


class ReviewItem(NamedTuple):
    """A story to look at."""

    look: StoryLook
    shows: tuple[str, ...]  # what `git show` takes, oldest first: a commit, or a range `A..B`
    run: str  # in which it passed; empty: nobody knows
    is_earlier: bool  # that was not the newest run


def to_review(
    project: Project, run: str | None = None, *, now: float, everything: bool = False
) -> tuple[ReviewItem, ...]:
    """What waits for a person's eyes, most doubtful first and then the newest; of one run only if
    it is named; with what was accepted where `everything` is asked for."""
    with reading(project) as journal, journal.snapshot():
        wanted = find_run(journal, run) if run else None
        found = [*_listed(project, journal, now, everything=everything)]
        found += _errands(project, journal, everything=everything)
        if wanted is not None:
            found = [one for one in found if one.run == wanted.id]
    return tuple(sorted(found, key=_urgency))


def _urgency(one: ReviewItem) -> tuple[int, bool]:
    """How soon a person should look: what did not pass first, then by how well it is proven."""
    grade = one.look.grade
    rank = _FIRST.index(grade) if grade in _FIRST else -1
    return rank, one.is_earlier


def _is_shown(look: StoryLook, *, everything: bool) -> bool:
    return look.is_unreviewed or (everything and look.standing is Standing.PASSED)


def _listed(
    project: Project, journal: Queries, now: float, *, everything: bool
) -> Iterator[ReviewItem]:
    """Stories of the list, as it is now."""
    newest = journal.latest_night()
    if newest is None:
        return
    night = look_at(project, journal, newest, now=now, holder=holder_of(project, now, newest.id))
    shown = [look for look in night.counted if _is_shown(look, everything=everything)]
    passed_in = _runs_of_passes(journal, newest)
    commits = _Commits(project, journal)
    for look in night.same_as_sent_back:
        yield ReviewItem(look, (), newest.id, is_earlier=False)
    for look in shown:
        run = passed_in.get(look.story.id)
        shows = commits.of(run, look)
        name = run.id if run else ""
        yield ReviewItem(look, shows, name, is_earlier=name != newest.id)


def _runs_of_passes(journal: Queries, newest: RunRecord) -> dict[str, RunRecord]:
    """By story the run in which it passed, of those that had the same list."""
    runs: dict[str, RunRecord | None] = {}
    found = {}
    for name, iteration in journal.passing_iterations().items():
        if iteration.run not in runs:
            runs[iteration.run] = journal.find_run(iteration.run)
        run = runs[iteration.run]
        if run is not None and run.prd_path == newest.prd_path:
            found[name] = run
    return found


def _errands(project: Project, journal: Queries, *, everything: bool) -> Iterator[ReviewItem]:
    """What was given in words, each once, as it stands."""
    commits = _Commits(project, journal)
    newest = journal.latest_night()
    seen = set[str]()
    for errand in journal.latest_errands(_MOST_ERRANDS):
        if errand.prd_path in seen:
            continue
        seen.add(errand.prd_path)
        try:
            story = load(project.root / errand.prd_path).list.stories[0]
        except (RalphError, IndexError):
            continue  # somebody tidied up
        look = StoryLook(story, state_of(journal.story_states(errand.id, readable), story.id))
        if look.state.is_same_as_sent_back or _is_shown(look, everything=everything):
            is_earlier = newest is not None and errand.started_at < newest.started_at
            yield ReviewItem(look, commits.of(errand, look), errand.id, is_earlier)


class _Commits:
    """The commits of stories; those of a run are looked for once, and of so many runs only."""

    def __init__(self, project: Project, journal: Queries) -> None:
        self._project = project
        self._journal = journal
        self._known: dict[str, dict[str, list[str]]] = {}

    def of(self, run: RunRecord | None, look: StoryLook) -> tuple[str, ...]:
        noted = look.state.proof.commit
        alone = (noted[:10],) if noted else ()
        if run is None:
            return alone
        if run.id not in self._known:
            if len(self._known) >= _MOST_RUNS:
                return alone
            made = commits_of(self._project, run, self._journal)
            every = self._journal.every_iteration(run.id, brief=True)
            self._known[run.id] = own_commits(every, made)
        return tuple(self._known[run.id].get(look.story.id, alone))
