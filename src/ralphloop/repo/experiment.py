"""A story's change taken apart, and one side of it replaced by what was there before, in place.

The **test side** is everything that says what is tested: test paths, snapshots, the files a runner
reads its settings from, scripts that checks run.  The rest is the **code side**, but for prose,
which is on neither.  Undoing the test side leaves the old tests with the new code, undoing the code
side the new tests with the old code.  In place, because whatever is installed or generated beside
the sources belongs to this work tree.

What is undone is moved into our own directory, not copied: bringing it back takes no room on the
disk, and every byte is as it was.  A `Swap` says what is where; whoever finds one written down puts
it back, as often as it takes.  A file that is not what the swap put there was saved by somebody
meanwhile: it is kept under a ref and named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

import msgspec

from ralphloop.atomic import kill_point
from ralphloop.core.model import Value
from ralphloop.errors import RepositoryError
from ralphloop.repo.git import printable
from ralphloop.repo.runners import FoundRunner
from ralphloop.repo.set_aside import keep_files, remove_file, write_files
from ralphloop.repo.snapshot import Change, Snapshotter
from ralphloop.repo.work_tree import Repository
from ralphloop.text.test_paths import is_test_path

MOST_PATHS = 2_000
_TEST_STEMS = ("test", "tests", "spec")
_SNAPSHOTS = (".snap", ".ambr")
_PROSE = (".md", ".rst", ".adoc")
_ABOUT_TESTS = (".github", ".gitlab", ".circleci", ".buildkite", ".woodpecker", "requirements")


class Sides(Value, kw_only=True):
    """What a story changed, by what it is for."""

    tests: tuple[Change, ...] = ()
    code: tuple[Change, ...] = ()
    has_settings: bool = False  # or helpers and data: which tests they concern cannot be said
    tests_in_code: bool = False
    loaded: tuple[str, ...] = ()  # by the runner's settings, and changed: whose side is it on?
    prefix: str = ""  # of the project in its repository

    def files(self, *, old: bool) -> list[str]:
        """The test files that were there before, or are there now, from the project's root."""
        there = (one for one in self.tests if (one.before if old else one.after) is not None)
        return [one.path.removeprefix(self.prefix) for one in there if is_test_file(one.path)]


def is_test_file(path: str) -> bool:
    """A file that a runner can be told to run, by its name."""
    name = PurePosixPath(path).name
    return is_test_path(name) and name != "conftest.py" and not name.endswith(_SNAPSHOTS)


def _is_for_tests(path: str) -> bool:
    """Tests and their data; a workflow or a list of packages is only named after them."""
    stem = PurePosixPath(path).name.partition(".")[0].lower()
    is_about = PurePosixPath(path).parts[0].lower() in _ABOUT_TESTS
    return is_test_path(path) or (stem in _TEST_STEMS and not is_about)


def split(
    changes: Iterable[Change],
    contents: Mapping[str, bytes],
    found: FoundRunner | None,
    scripts: Iterable[str],
    prefix: str = "",
) -> Sides:
    """Take a change apart; `contents` are those of its files, by the names of the blobs."""
    tests, code, has_settings, guarded = [], [], False, set(scripts)
    for change in changes:
        path, sides = change.path, (change.before, change.after)
        old, new = (contents.get(name or "") for name in sides)
        obeyed = found is not None and (
            found.runner.obeys(path)
            or found.runner.own_settings(path, old) != found.runner.own_settings(path, new)
        )
        if obeyed or _is_for_tests(path) or path in guarded:
            tests.append(change)
            has_settings |= obeyed or not is_test_file(path)
        elif not path.endswith(_PROSE):
            code.append(change)
    held = (contents.get(name or "") for it in code for name in (it.before, it.after))
    return Sides(
        tests=tuple(tests),
        code=tuple(code),
        prefix=prefix,
        has_settings=has_settings,
        tests_in_code=any(b"#[test]" in text or b"\n>>> " in text for text in held if text),
    )


class Swap(Value, kw_only=True):
    """One side of a change while it is undone; written ahead."""

    run: str
    number: int  # of the iteration
    what: str  # is tried, in words
    start: str  # the tree the story began with
    end: str  # the tree it left
    moved: dict[str, str] = msgspec.field(default_factory=dict)  # what is there now, and the blob
    added: dict[str, str] = msgspec.field(default_factory=dict)  # what is not, and the blob it was

    @property
    def paths(self) -> dict[str, str]:
        return {**self.moved, **self.added}


def obstacle(measure: Snapshotter, changes: Sequence[Change]) -> str:
    """Why these paths cannot be exchanged and brought back; empty where they can."""
    if len(changes) > MOST_PATHS:
        return f"more than {MOST_PATHS:,} files changed"
    names = {name for change in changes for name in (change.before, change.after) if name}
    kept, paths = measure.kept(names), {change.path for change in changes}
    for change in changes:
        path = printable(change.path)
        if not kept.issuperset(filter(None, (change.before, change.after))):
            return f"{path} is too large to be kept, or a repository of its own"
        if path != change.path:
            return f"{path} has a name that cannot be written down"
        if any(str(parent) in paths for parent in PurePosixPath(change.path).parents):
            return f"{path} is in a directory that was a file, or the other way round"
    return ""


def swap_of(changes: Sequence[Change], **told: object) -> Swap:
    """These changes undone."""
    moved = {it.path: it.before or "" for it in changes if it.after is not None}
    added = {it.path: it.before or "" for it in changes if it.after is None}
    return Swap(**msgspec.convert(told, dict), moved=moved, added=added)


def undo(repo: Repository, measure: Snapshotter, swap: Swap, room: Path) -> None:
    """Move what the swap names out of the way, and write what was there before."""
    room.mkdir(parents=True, exist_ok=True)
    try:
        for number, path in enumerate(swap.moved):
            os.rename(repo.root / path, room / str(number))  # noqa: PTH104 - a link moves as itself
    except OSError as error:
        raise RepositoryError(f"{printable(path)} cannot be moved: {error.strerror}") from error
    kill_point("experiment.moved")
    old = [path for path, blob in swap.paths.items() if blob]
    if old:
        write_files(repo, measure, swap.start, old)
        for number, path in enumerate(swap.moved):
            _date_apart(repo.root / path, room / str(number))
    kill_point("experiment.written")


def _date_apart(path: Path, other: Path) -> None:
    """Another second than that of the file it stands for: by it Python knows its bytecode."""
    with suppress(OSError):
        now, then = path.lstat().st_mtime, other.lstat().st_mtime
        if int(now) == int(then):
            os.utime(path, (now + 1, now + 1), follow_symlinks=False)


def put_back(
    repo: Repository, measure: Snapshotter, swap: Swap, room: Path, ref: str
) -> tuple[str, ...]:
    """Everything as the story left it; the paths that somebody saved meanwhile, kept at `ref`."""
    away = {path: room / str(number) for number, path in enumerate(swap.moved)}
    out = [path for path, place in away.items() if os.path.lexists(place)]
    foreign = _foreign(measure, repo.root, {p: swap.paths[p] for p in (*out, *swap.added)})
    if foreign:
        words = "files that were saved while an experiment ran"
        keep_files(repo, ref, {path: (repo.root / path).read_bytes() for path in foreign}, words)
    for path in swap.added:
        remove_file(repo.root, path)
    for path in out:
        target = repo.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        away[path].replace(target)
        os.utime(target, follow_symlinks=False)  # newer than whatever was built meanwhile
        kill_point("experiment.returned")
    return tuple(foreign)


def _foreign(measure: Snapshotter, root: Path, expected: Mapping[str, str]) -> list[str]:
    """Files that are not what the swap wrote there."""
    there = [
        path for path in expected if (root / path).is_file() and not (root / path).is_symlink()
    ]
    if not there:
        return []
    names = "".join(f"{path}\n" for path in there)
    found = measure.git().run("hash-object", "--stdin-paths", stdin=os.fsencode(names))
    blobs = found.decode().split()
    return [path for path, blob in zip(there, blobs, strict=True) if blob != expected[path]]
