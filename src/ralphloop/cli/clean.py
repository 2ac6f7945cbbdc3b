"""What runs leave on the disk, and how to be rid of it: `ralph clean`, which a run does by itself
when it ends, and `ralph lanes`.

A run that can still be continued keeps everything, and so does the newest one against the size:
whoever looks in the morning finds the night complete.  Only what carries a run's name is ever
touched, links are never followed, and the journal keeps what it knows.

Cleaning lanes removes nothing unsaved: what a lane holds beyond its commits becomes a commit under
`refs/ralph/lanes/` first, where a run that can be continued finds it again.
"""

import os
import re
import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, chain
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from ralphloop.agents.base import mark_of
from ralphloop.cli import output
from ralphloop.cli.given import DefaultGroup, number, size
from ralphloop.core.run_state import Book, LaneNote
from ralphloop.errors import ExitCode
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import RunLock, live_holder
from ralphloop.journal.views import PROGRESS_VIEW
from ralphloop.lanes import inner
from ralphloop.lanes.branch_names import LANDED, is_of_a_lane, is_of_a_run, own_branches
from ralphloop.lanes.worktrees import (
    LaneTree,
    listed,
    read_mark,
    remove,
    without_hooks,
    work_of,
)
from ralphloop.loop.confine import confined_repository
from ralphloop.night.look import config_of, look, reading
from ralphloop.proc.tree import stop_tree
from ralphloop.project import Project, find_project
from ralphloop.repo.git import printable
from ralphloop.repo.set_aside import ref_name
from ralphloop.repo.work_tree import Repository, project_prefix
from ralphloop.text.plain import counted, some

_KEPT = "20"
_LARGEST = "2GB"
KEEP_RUNS = number(_KEPT)
MAX_BYTES = size(_LARGEST)
_RUN = re.compile(r"([0-9]{8}-[0-9]{6}-[0-9a-f]{6})(?:\.|$)")
_ROOMS = ("transcripts", "reports")
_SHOWN = 10
_REFS = "--format=%(refname)%09%(contents:subject)%09%(committerdate:short)"


class Leftovers(NamedTuple):
    run: str
    paths: tuple[Path, ...]
    bytes: int


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option(
    "--keep-runs", default=_KEPT, show_default=True, type=number, help="Keep so many newest runs."
)
@click.option(
    "--max-size", default=_LARGEST, show_default=True, type=size, help="Keep at most this much."
)
def clean(dry_run: bool, keep_runs: int, max_size: int) -> int:
    """Remove transcripts and reports of old runs; ralph run does it by itself.

    A run that goes on or can be continued keeps everything.
    """
    project = find_project()
    gone, left, problems = tidy(project, keep_runs=keep_runs, max_bytes=max_size, dry_run=dry_run)
    kept = f"{counted(len(left), 'run')}, {_size(*left)}"
    lines = [f"Nothing to remove: {kept}."]
    if gone:
        freed = f"{'Would free' if dry_run else 'Freed'} {_size(*gone)}"
        lines = [f"{freed} of {counted(len(gone), 'run')}; kept {kept}."]
        lines += [f"  {run.run}  {_size(run)}" for run in gone[:_SHOWN]]
        if len(gone) > _SHOWN:
            lines.append(f"  and {len(gone) - _SHOWN} older ones")
    output.emit_lines(lines)
    for problem in problems:
        output.error(f"cannot remove {problem}")
    return ExitCode.REPO_NOT_READY if problems else ExitCode.COMPLETE


def _size(*runs: Leftovers) -> str:
    from rich.filesize import decimal

    return decimal(sum(run.bytes for run in runs))


def tidy(
    project: Project,
    *,
    keep_runs: int = KEEP_RUNS,
    max_bytes: int = MAX_BYTES,
    dry_run: bool = False,
) -> tuple[list[Leftovers], list[Leftovers], list[str]]:
    """Remove what is beyond the bounds; what that was (`dry_run`: would be), what is kept, and
    what could not be removed."""
    # What is there, newest run first; names that are no run's are not ours.
    paths: dict[str, list[Path]] = {}
    for room in _ROOMS:
        directory = project.directory / room
        # A link here could lead anywhere: what it names was not put there by us.
        if directory.is_symlink() or project.directory.is_symlink():
            continue
        # Where it is not there, or not ours to read, there is nothing to remove.
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                if not entry.is_symlink() and (match := _RUN.match(entry.name)):
                    paths.setdefault(match[1], []).append(Path(entry.path))
    runs = sorted(paths.items(), reverse=True)
    found = [Leftovers(run, tuple(own), sum(map(_size_of, own))) for run, own in runs]
    # Runs that go on or can be continued.
    holder = live_holder(project.directory, time.time())
    with reading(project) as journal:
        unfinished = [run.id for run in journal.unfinished_runs()]
    protected = {holder.run if holder else None, *unfinished}
    going = to_remove(found, protected, keep_runs=keep_runs, max_bytes=max_bytes)
    problems = []
    for path in () if dry_run else (path for each in going for path in each.paths):
        try:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            problems.append(f"{path}: {error.strerror or error}")
    return going, [each for each in found if each not in going], problems


def to_remove(
    found: Sequence[Leftovers], protected: Collection[str | None], *, keep_runs: int, max_bytes: int
) -> list[Leftovers]:
    """Which of these runs, newest first, are beyond the bounds."""
    totals = accumulate(each.bytes for each in found)  # of this run and all newer ones
    return [
        each
        for position, (each, total) in enumerate(zip(found, totals, strict=True))
        if (position >= keep_runs or (position > 0 and total > max_bytes))
        and each.run not in protected
    ]


def _size_of(path: Path) -> int:
    files = [path]
    if path.is_dir():
        walk = os.walk(path, followlinks=False)
        files = [Path(folder) / name for folder, _, names in walk for name in names]
    total = 0
    for file in files:
        with suppress(OSError):  # gone in this very moment: a run goes on
            total += file.lstat().st_size
    return total


@click.group(cls=DefaultGroup)
def lanes() -> None:
    """Show the work trees of lanes, or remove them."""


@lanes.command("show")
def show_lanes() -> None:
    """Show work trees, branches, processes and saved work."""
    project = find_project()
    repo = Repository.open(project.root)
    night = look(project)
    book = night.book or Book()
    working = {look.number: look for look in night.lanes}
    pids = {it.n: it.pid for it in night.flying}
    lines = list[str]()
    trees = list(_trees(repo, project.root))
    for root, _, branch in trees:
        lane = int(root.name) if root.name.isdigit() else 0
        story = book.lanes.get(lane, LaneNote()).story
        busy = working.get(lane)
        held = story and f"holds {story}"
        if busy and busy.iteration:
            held = f"{busy.words(night.now)}, process {pids[busy.iteration]}"
        lines.append(f"{root}  {branch or 'landing tree'}  {held or 'idle'}")
    lines += [f"waiting: {some(names)}: {why}" for why, names in night.waiting.items()]
    own = [f"refs/heads/{branch}" for branch in own_branches(repo)]
    kept = repo.git.line("for-each-ref", _REFS, *own, "refs/ralph/lanes/")
    for line in kept.splitlines():
        ref, subject, date = (*line.split("\t"), "", "")[:3]
        branch = ref.removeprefix("refs/heads/")
        if branch == ref:
            lines.append(f"saved {date}: {subject}: git show {ref}")
        elif not is_of_a_lane(branch):
            lines.append(f"branch {branch}: git merge {branch}")
    if not trees:
        lines.append("No lanes. `ralph run --lanes 2` makes them.")
    elif night.holder is None:
        lines.append("ralph lanes clean removes them; what they hold is saved first.")
    output.emit_lines(map(output.safe, lines))


@lanes.command("clean")
def clean_lanes() -> None:
    """Remove the work trees and branches of lanes; what they hold is saved first."""
    project = find_project()
    now = time.time()
    with (
        RunLock(project.directory, run="lanes-clean", now=now) as lock,
        Journal.open(project.journal, check=False) as journal,
    ):
        # Agents that a run which was killed has left in lanes; the iterations stay unfinished.
        ended = [*lock.ended]
        for run in journal.unfinished_runs():
            for cut in journal.unfinished_iterations(run.id):
                ended += stop_tree(cut.pid, cut.pid_started, mark_of(cut.run, cut.n))
        told = [f"ended {words}, left by a run that was killed" for words in ended]
        output.emit_lines(map(output.safe, chain(told, _cleaned(project, journal))))


def _trees(repo: Repository, project: Path) -> Iterator[tuple[Path, Path, str]]:
    for root, git_dir, branch in listed(repo):
        mark = read_mark(git_dir)
        if mark is None or mark.home != str(repo.root):
            continue
        if mark.project in (None, project_prefix(repo.root, project)):
            yield root, git_dir, branch


def _cleaned(project: Project, journal: Journal) -> Iterator[str]:
    run = journal.latest_run()
    config = config_of(project, run)
    repo = confined_repository(project, config)
    book = (journal.part(Book, run.id) if run else None) or Book()
    cut = {it.story for it in journal.unfinished_iterations(run.id)} if run else set()
    for root, git_dir, branch in list(_trees(repo, project.root)):
        if (root / ".git").exists() and root.name.isdigit():
            place = LaneTree(int(root.name), confined_repository(project, config, root))
            saved = ref_name(run.id if run else "none", int(time.time()), "lanes")
            ref = f"{saved}-lane{root.name}"
            made = _made_inside(book, place, run.id if run else "none")
            before = book
            book = _saved(book, place, ref, cut)
            if repo.commit_of(ref):
                yield f"saved what {root} held: git show {ref}"
            if run is not None and book != before:
                journal.save_part(run.id, book)
            yield from made
        git = without_hooks(repo)
        if git.attempt("worktree", "remove", "--force", "--force", str(root)).returncode:
            remove(root)
            remove(git_dir)
        if is_of_a_lane(branch):
            git.attempt("branch", "-D", branch)
        yield f"removed {root}"
        with suppress(OSError):  # others, or a person, keep something there
            root.parent.rmdir()
            if root.parent.parent.suffix == ".lanes":  # of several projects
                root.parent.parent.rmdir()
    yield from _without_old_branches(repo, book)


def _without_old_branches(repo: Repository, book: Book) -> Iterator[str]:
    """Delete what earlier runs landed on and the branch of the checkout has; what, in words."""
    # Outside of any box: with the last lane its directory went, which a box would bind.
    git = without_hooks(repo)
    head = repo.head()
    for branch in filter(is_of_a_run, own_branches(repo)):
        if branch == book.branch or not git.contains(head, branch):
            continue
        if git.attempt("branch", "-D", branch).returncode == 0:
            yield f"removed branch {branch}, which your branch has"
    for ref in git.line("for-each-ref", "--format=%(refname)", LANDED).splitlines():
        if ref != book.kept_at and git.contains(head, ref):
            git.attempt("update-ref", "-d", ref)


def _made_inside(book: Book, place: LaneTree, run: str) -> Iterator[str]:
    """Keep the repositories that an agent made in a lane; where they are now, in words."""
    base = book.lanes.get(place.number, LaneNote()).base or place.repo.head() or "HEAD"
    where = place.root.parent / inner.KEPT / f"{run}-lane{place.number}"
    for kept in inner.keep_aside(place.repo, base, where):
        yield f"kept a repository made in {place.root}: {printable(str(kept))}"


def _saved(book: Book, place: LaneTree, ref: str, cut: Collection[str | None]) -> Book:
    """The book without a lane, whose work is a commit now; of a story that is `cut` off it is put
    back where it was, since that is still to be judged."""
    note = book.lanes.get(place.number, LaneNote())
    base = note.base or place.repo.head() or ""
    words = f"{note.story or 'a lane'}: when it was cleaned"
    work = work_of(place, base, [PROGRESS_VIEW], words, ref, known=note.work)
    lanes = dict(book.lanes)
    kept = dict(book.kept)
    lanes.pop(place.number, None)
    if note.story in cut:
        lanes[place.number] = LaneNote(story=note.story, base=base, work=work, onto=base)
    elif note.story and work:
        kept[note.story] = work
    return msgspec.structs.replace(book, lanes=lanes, kept=kept)
