"""One side of a story's change as it was before, for as long as something runs.

Each exchange of files is written ahead: a crash at any moment leaves a `Swap` in the journal, which
is put back before anything else happens.  Where somebody saved a file meanwhile, the story is
judged anew.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from ralphloop.atomic import kill_point
from ralphloop.core.events import ExperimentBegun, ExperimentEnded
from ralphloop.errors import GitDisturbed, RepositoryError
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import SWAP_KEY
from ralphloop.loop.begin import Round
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import CLEANED_UP, Workspace
from ralphloop.project import Project
from ralphloop.repo.experiment import Swap, covered, put_back, swap_of, undo
from ralphloop.repo.named import CANARY, sweep
from ralphloop.repo.set_aside import ref_name, write_files
from ralphloop.repo.snapshot import Change, Snapshot, Snapshotter
from ralphloop.repo.work_tree import Repository, project_prefix
from ralphloop.text.plain import some

ROOM = "experiment"  # in our own directory: what is exchanged


class Stopped(Exception):
    """The run is to stop."""


class Disturbed(Exception):
    """Somebody wrote into the work tree meanwhile; what, in words."""


class Impossible(Exception):
    """It cannot be tried, and why; without words where nobody wants it tried."""


class StoryOnTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A story that is called done, and the place in which it is judged."""

    run: Run
    place: Workspace  # whose files are exchanged: the agent's own, or one that is the judge's alone
    begun: Round
    start: Snapshot  # what stands without the story
    end: Snapshot
    changes: tuple[Change, ...]  # from the one to the other
    wrote: dict[str, str | None]  # by the checks themselves, and what was there before
    is_start_known: bool  # what the checks show without the story is known
    tolerated: frozenset[str]  # checks that are red only in ways they were before

    @property
    def id(self) -> str:
        return self.begun.story.id if self.begun.story else ""

    @property
    def words(self) -> str:
        """What is asked for, as it stood when the story was started."""
        story = self.begun.story
        return "\n".join((story.title, story.description, *story.criteria)) if story else ""

    @property
    def prefix(self) -> str:
        """Of the project in its repository."""
        repo = self.place.repo
        return project_prefix(repo.root, self.place.root) if repo else ""

    def is_made_by_checks(self, path: str) -> bool:
        """Whether the checks alone made this file: it is nobody's work, they make it anew."""
        return path in self.wrote and self.wrote[path] is None


class OldSide(msgspec.Struct, frozen=True, kw_only=True):
    """Some of a story's changes, and the tree that has these paths as they were."""

    changes: tuple[Change, ...]
    tree: str


@contextmanager
def exchanged(story: StoryOnTrial, what: str, side: OldSide) -> Iterator[None]:
    """One side as it was before, written ahead; then everything as the story left it."""
    place = story.place
    repo = place.repo
    if repo is None:
        raise Impossible("there is no git repository")
    swap = swap_of(
        side.changes,
        run=story.run.id,
        number=story.begun.number,
        what=what,
        start=side.tree,
        end=story.end.tree,
        covered=covered(repo.root, side.changes),
        in_clean_tree=place.is_clean_tree,
    )
    _write_ahead(story, swap)
    room = place.scratch
    is_undone = False
    saved: tuple[str, ...] = ()
    try:
        try:
            undo(repo, place.measure, swap, room / ROOM)
        except GitDisturbed:
            raise
        except RepositoryError as error:
            raise Impossible(error.message) from error
        is_undone = True
        yield
        kill_point("experiment.ran")
    finally:
        if is_undone and not (room / ROOM).exists():
            _rescue(story, repo, swap)
        saved = _put_back(repo, place.measure, swap, room)
        _write_that_it_ended(story, swap)
    words = [*saved, *_changed_meanwhile(story)]
    if words:
        raise Disturbed("; ".join(words))


def _write_ahead(story: StoryOnTrial, swap: Swap) -> None:
    """Write down what is about to be exchanged: whoever comes next puts it back."""
    run = story.run
    begins = ExperimentBegun(story=story.id, what=swap.what, start=swap.start, end=swap.end)
    event = run.new_event(begins, swap.number)
    # A clean tree is laid anew before it is used again: there nothing has to be put back, and
    # several of them may be at work at once.
    ahead = {} if swap.in_clean_tree else {SWAP_KEY: swap}
    run.journal.put("begin_experiment", ahead, [event])
    run.sink(event)


def _write_that_it_ended(story: StoryOnTrial, swap: Swap) -> None:
    run = story.run
    event = run.new_event(ExperimentEnded(story=story.id, what=swap.what), swap.number)
    behind = {} if swap.in_clean_tree else {SWAP_KEY: None}
    run.journal.put("end_experiment", behind, [event])
    run.sink(event)


def _changed_meanwhile(story: StoryOnTrial) -> Iterator[str]:
    """What differs from the story's end although everything was put back, in words."""
    measure = story.place.measure
    found = measure.changes(story.end.tree, measure.tree().tree)
    others = sorted({change.path for change in found} - story.wrote.keys())
    if others:
        yield f"{some(others)} changed meanwhile"


def _rescue(story: StoryOnTrial, repo: Repository, swap: Swap) -> None:
    """Write the files of the story anew: what ran has removed our directory, and them in it."""
    from ralphloop.loop.repair import put_back_own_files

    place = story.place
    put_back_own_files(story.run, place)
    place.checks_clean_up = True
    ref = f"{ref_name(swap.run, swap.number, 'experiment')}-in-the-way"
    try:
        if swap.moved:
            objects = place.measure.object_variables()
            write_files(repo, swap.end, [*swap.moved], ref=ref, objects=objects)
    except RepositoryError as error:
        raise RepositoryError(
            f"{CLEANED_UP} while files of the story were exchanged: {some([*swap.moved])}"
            " cannot be brought back",
            'Let the check spare .ralph, or set experiments = "off" under [proof];'
            " then: ralph run --continue",
        ) from error


def restore(
    journal: Journal,
    repo: Repository | None,
    measure: Snapshotter,
    project: Project,
    *,
    room: Path | None = None,
) -> str:
    """Put back what an experiment that was cut off had exchanged; what was done, in words.

    `room` is where its files were moved to, if not into our own directory.
    """
    room = room or project.directory
    sweep(project.root, room / CANARY)
    found = journal.meta(SWAP_KEY)
    if not found or repo is None:
        return ""
    swap = msgspec.convert(found, type=Swap)
    if swap.in_clean_tree:
        journal.put("end_experiment", {SWAP_KEY: None})
        return ""
    saved = _put_back(repo, measure, swap, room)
    journal.put("end_experiment", {SWAP_KEY: None})
    told = f"; {'; '.join(saved)}" if saved else ""
    return f"put back the files that were exchanged for an experiment{told}"


def _put_back(repo: Repository, measure: Snapshotter, swap: Swap, room: Path) -> tuple[str, ...]:
    """Everything as the story left it; what somebody saved meanwhile, in words."""
    ref = ref_name(swap.run, swap.number, "experiment")
    try:
        foreign = put_back(repo, measure, swap, room / ROOM, ref)
    except OSError as error:
        raise RepositoryError(
            f"the work tree cannot be put back as the story left it: {error}",
            "Make room on the disk and give yourself write permission, then: ralph run --continue",
        ) from error
    with suppress(OSError):
        (room / ROOM).rmdir()
    return (f"{some(foreign)} was saved meanwhile and is kept at {ref}",) if foreign else ()
