"""A story's change taken apart, and one side of it replaced by what was there before.

The **test side** says what is tested: test paths, snapshots, settings of a runner, scripts that
checks run.  The rest is the **code side**, but for prose, which is on neither.  It is done in
place: whatever is installed or generated beside the sources belongs to this work tree.

Examples are tests wherever they stand: prose whose examples changed is on the test side, and of a
Python file the docstrings are, while its code is on the other (`Mixed`).

What is undone is moved, not copied: bringing it back takes no room on the disk.  Whoever finds a
`Swap` written down puts it back.  A file that is not what the swap put there was saved by somebody
meanwhile: it is kept under a ref and named.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from ralphloop.atomic import kill_point
from ralphloop.core.model import Value
from ralphloop.core.proof import is_test_path
from ralphloop.core.sides import Side
from ralphloop.errors import RepositoryError
from ralphloop.repo import beneath
from ralphloop.repo.bytecode import outdate_bytecode
from ralphloop.repo.git import printable
from ralphloop.repo.judges import is_setting
from ralphloop.repo.private_git import blob_name
from ralphloop.repo.runners import FoundRunner
from ralphloop.repo.set_aside import keep_files, ref_name, write_files
from ralphloop.repo.snapshot import Change, Snapshotter
from ralphloop.repo.work_tree import Repository
from ralphloop.text.doctests import Crossed, crossed, examples
from ralphloop.text.renames import RenamedFile
from ralphloop.text.rust_tests import crossed_modules, doc_examples
from ralphloop.text.setting_parts import crossed_parts

MOST_PATHS = 2_000
_SNAPSHOTS = (".snap", ".ambr")
_SHARED_BY_PARTS = frozenset({"Cargo.toml", "pom.xml", "build.gradle", "build.gradle.kts"})
_PROSE = (".md", ".rst", ".adoc")
_ABOUT_TESTS = (".github", ".gitlab", ".circleci", ".buildkite", ".woodpecker", "requirements")


class Mixed(Value, kw_only=True):
    """A file of the code side whose docstrings are on the test side: each exchanged alone."""

    path: str
    old_tests: bytes  # the code as it is, with the examples as they were
    old_code: bytes  # the code as it was, with the examples as they are


class Sides(Value, kw_only=True):
    tests: tuple[Change, ...] = ()
    code: tuple[Change, ...] = ()
    mixed: tuple[Mixed, ...] = ()  # among the code
    has_settings: bool = False  # or helpers and data: which tests they concern cannot be said
    tests_in_code: bool = False
    loaded: tuple[str, ...] = ()  # by the runner's settings, and changed: whose side is it on?
    unknown: tuple[Change, ...] = ()  # among the code: nobody can say whose word they are
    tested: frozenset[str] = frozenset()  # files in which the runner found tests, whatever the name
    first: frozenset[str] = frozenset()  # tests that set things up before any of their package
    prefix: str = ""  # of the project in its repository

    @property
    def has_tests(self) -> bool:
        """Something that says what is tested differs."""
        return bool(self.tests or self.mixed)

    @property
    def only_removes_tests(self) -> bool:
        """Files of tests went, no helper among them, and nothing else differs on their side."""
        is_more = self.mixed or self.has_settings
        return not is_more and all(it.after is None for it in self.tests)

    @property
    def held_back(self) -> tuple[Change, ...]:
        """What has to be as it was for a command to count: all that was there and judges.

        New tests stay, since a command may name them; new settings, which it may obey, do not, nor
        does what is run before any test of its package.
        """
        return tuple(
            it
            for it in self.tests
            if it.before is not None or _runs_first(it.path) or it.path in self.first
        )

    @property
    def had_tests(self) -> bool:
        """And was there before."""
        return bool(self.mixed) or any(change.before is not None for change in self.tests)

    def files(self, *, old: bool) -> list[str]:
        """The test files that were there before, or are there now, from the project's root."""
        there = (one for one in self.tests if (one.before if old else one.after) is not None)
        found = (one.path for one in there if self.holds_tests(one.path))
        return [path.removeprefix(self.prefix) for path in found]

    def holds_tests(self, path: str) -> bool:
        """Whether a file holds tests, by its name or because the runner found some in it."""
        return is_test_file(path) or path in self.tested


def _runs_first(path: str) -> bool:
    return is_setting(path) or PurePosixPath(path).name == "__init__.py"


_SETS_UP_IN_GO = re.compile(
    rb"^(?:func (?:TestMain|init)\(|var [^=\n]{1,200}=\s*func\()", re.MULTILINE
)


def _sets_up(path: str, text: bytes | None) -> bool:
    """Whether a file of tests runs something before the tests of the others beside it."""
    return path.endswith("_test.go") and _SETS_UP_IN_GO.search(text or b"") is not None


def is_test_file(path: str) -> bool:
    name = PurePosixPath(path).name
    return is_test_path(name) and name != "conftest.py" and not name.endswith(_SNAPSHOTS)


def split(
    changes: Iterable[Change],
    contents: Mapping[str, bytes],
    found: FoundRunner | None,
    scripts: Iterable[str],
    prefix: str = "",
    sides: Mapping[str, Side] | None = None,
    tested: frozenset[str] = frozenset(),
) -> Sides:
    """Take a change apart; `contents` are those of its files, by the names of the blobs.

    `sides` say whose word a path is, as far as that is known, `tested` where the runner has found
    tests.
    """
    known = sides or {}
    guarded = {path for path, side in known.items() if side in (Side.PERSON, Side.AGENT)}
    guarded.update(scripts)
    has_settings = False
    tests: list[Change] = []
    code: list[Change] = []
    mixed: list[Mixed] = []
    for change in changes:
        path = change.path
        old = contents.get(change.before or "")
        new = contents.get(change.after or "")
        obeyed = found is not None and (
            found.runner.obeys(path)
            or found.runner.own_settings(path, old) != found.runner.own_settings(path, new)
        )
        # Tests and their data; a workflow or a list of packages is only named after them.
        top, name = (PurePosixPath(path).parts[at].lower() for at in (0, -1))
        is_data = name.partition(".")[0] in ("test", "tests", "spec") and top not in _ABOUT_TESTS
        parts = _crossed_settings(found, path, old, new) if obeyed else None
        if parts is not None:
            code.append(change)
            has_settings = True
            mixed.append(Mixed(path=path, old_tests=parts.new_code, old_code=parts.old_code))
        elif obeyed or is_test_path(path) or is_data or path in guarded:
            tests.append(change)
            has_settings |= obeyed or not (is_test_file(path) or path in tested)
        elif path.endswith((*_PROSE, ".txt")) and _examples(old) != _examples(new) and old:
            tests.append(change)
            has_settings = True
        elif old and new and (both := _crossed(path, old, new)):
            # Where all of its code is as it was, the examples are the whole change.
            (tests if both.new_code == old else code).append(change)
            has_settings = True
            if both.new_code != old:
                crossing = {"old_tests": both.new_code, "old_code": both.old_code}
                mixed.append(Mixed(path=path, **crossing))
        elif not path.endswith(_PROSE):
            code.append(change)
    return Sides(
        tests=tuple(tests),
        code=tuple(code),
        mixed=tuple(mixed),
        prefix=prefix,
        has_settings=has_settings,
        tests_in_code=any(_holds_tests(it, contents) for it in code),
        unknown=tuple(it for it in code if known.get(it.path) is Side.UNKNOWN),
        tested=tested,
        first=frozenset(it.path for it in tests if _sets_up(it.path, contents.get(it.after or ""))),
    )


def with_renamed_tests(
    sides: Sides, files: Iterable[RenamedFile], contents: Mapping[str, bytes]
) -> Sides:
    """The same, where files of Rust have another name and took their tests along.

    With the new code the tests run as they stood in the file of the old name.
    """
    by_path = {it.path: it for it in sides.code}
    known = set[str]()
    mixed = list[Mixed]()
    for pair in files:
        gone = by_path[pair.gone]
        came = by_path[pair.came]
        old = contents.get(gone.before or "")
        new = contents.get(came.after or "")
        if not (pair.came.endswith(".rs") and old and new):
            continue
        try:
            both = crossed_modules(old, new)
        except ValueError:
            continue
        known |= {pair.gone, pair.came} if doc_examples(old) == doc_examples(new) else set()
        if both is not None:
            crossing = {"old_tests": both.new_code, "old_code": both.old_code}
            mixed.append(Mixed(path=pair.came, **crossing))
    rest = [it for it in sides.code if it.path not in known]
    return msgspec.structs.replace(
        sides,
        mixed=(*sides.mixed, *mixed),
        has_settings=sides.has_settings or bool(mixed),
        tests_in_code=any(_holds_tests(it, contents) for it in rest),
    )


def _crossed(path: str, old: bytes, new: bytes) -> Crossed | None:
    """The tests of a file and its code exchanged; None where no test differs, or nobody can tell.

    Of Python these are the examples in docstrings, of Rust the modules of tests.
    """
    try:
        if path.endswith(".rs"):
            return crossed_modules(old, new)
        if not path.endswith(".py") or (b">>>" not in old and b">>>" not in new):
            return None
        return crossed(old, new)
    except ValueError:
        return None


def _crossed_settings(
    found: FoundRunner | None, path: str, old: bytes | None, new: bytes | None
) -> Crossed | None:
    """A file of settings and the runner's own parts of it exchanged; None where it goes as one."""
    name = PurePosixPath(path).name
    if found is None or not (old and new) or found.runner.obeys(path):
        return None
    if name not in _SHARED_BY_PARTS:
        return None
    return crossed_parts(path, old, new, found.runner.sections.get(name, ()))


def _examples(text: bytes | None) -> tuple[str, ...]:
    return examples((text or b"").decode("utf-8", "replace"))


def _holds_tests(change: Change, contents: Mapping[str, bytes]) -> bool:
    """Whether tests stand among this code that cannot be told apart from it."""
    old, new = (contents.get(name or "") for name in (change.before, change.after))
    if change.path.endswith(".rs"):
        return _holds_tests_of_rust(old or b"", new)
    if not change.path.endswith(".py"):
        return any(b"#[test]" in text or b"\n>>> " in text for text in (old, new) if text)
    if not (old and _examples(old)):
        return False
    try:
        crossed(old, new or b"")
    except ValueError:
        return True
    return new is None


def _holds_tests_of_rust(old: bytes, new: bytes | None) -> bool:
    """Whether tests went with their file, stand outside of modules, or are examples that differ."""
    if new is None:
        return b"#[test]" in old
    try:
        crossed_modules(old, new)
    except ValueError:
        return True
    return doc_examples(old) != doc_examples(new)


class Swap(Value, kw_only=True):
    """One side of a change while it is undone; written ahead."""

    run: str
    number: int  # of the iteration
    what: str  # is tried, in words
    start: str  # the tree the story began with
    end: str  # the tree it left
    moved: dict[str, str] = msgspec.field(default_factory=dict)  # what is there now, and the blob
    added: dict[str, str] = msgspec.field(default_factory=dict)  # what is not, and the blob it was
    covered: tuple[str, ...] = ()  # of these: where something else stands by now, a directory say
    in_clean_tree: bool = False  # which is laid anew before it is used: nothing is put back there


def obstacle(measure: Snapshotter, changes: Sequence[Change], beside: Sequence[Change] = ()) -> str:
    """Why these paths cannot be exchanged and brought back; empty where they can.

    `beside` stays as it is meanwhile, and may stand in the way.
    """
    if len(changes) > MOST_PATHS:
        return f"more than {MOST_PATHS:,} files changed"
    names = {name for change in changes for name in (change.before, change.after) if name}
    kept = measure.kept(names)
    for change in changes:
        path = printable(change.path)
        if not kept.issuperset(filter(None, (change.before, change.after))):
            return f"{path} is too large to be kept, or a repository of its own"
        if path != change.path:
            return f"{path} has a name that cannot be written down"
    paths = {change.path for change in (*changes, *beside)}
    for path in sorted(paths):
        if any(str(parent) in paths for parent in PurePosixPath(path).parents):
            return f"{path} is in a directory that was a file, or the other way round"
    return ""


def covered(root: Path, changes: Sequence[Change]) -> tuple[str, ...]:
    """Paths that the story removed and where something stands that is on neither side."""
    gone = (change.path for change in changes if change.after is None)
    return tuple(path for path in gone if beneath.look_at(root, path) is not None)


def swap_of(changes: Sequence[Change], **told: object) -> Swap:
    moved = {it.path: it.before or "" for it in changes if it.after is not None}
    added = {it.path: it.before or "" for it in changes if it.after is None}
    return Swap(**msgspec.convert(told, dict), moved=moved, added=added)


_UNDER = "under-"  # what covers the place of an old file, by its number


def undo(repo: Repository, measure: Snapshotter, swap: Swap, room: Path) -> None:
    """Move what the swap names out of the way, and write what was there before."""
    room.mkdir(parents=True, exist_ok=True)
    for path in swap.added:
        if part := beneath.obstacle_on_the_way(repo.root, path):
            raise RepositoryError(f"{printable(part)} is where {printable(path)} had a directory")
    path = ""
    try:
        for number, path in enumerate(swap.moved):
            beneath.move_out(repo.root, path, room, str(number))
        for number, path in enumerate(swap.covered):
            beneath.move_out(repo.root, path, room, f"{_UNDER}{number}")
    except OSError as error:
        raise RepositoryError(f"{printable(path)} cannot be moved: {error.strerror}") from error
    kill_point("experiment.moved")
    old = [path for path, blob in (swap.moved | swap.added).items() if blob]
    if old:
        ref = f"{ref_name(swap.run, swap.number, 'experiment')}-in-the-way"
        write_files(repo, swap.start, old, ref=ref, objects=measure.object_variables())
        # Another second than that of the file it stands for: by it Python knows its bytecode.
        for number, path in enumerate(swap.moved):
            now = beneath.look_at(repo.root, path)
            was = beneath.look_at(room, str(number))
            if now and was and int(now.st_mtime) == int(was.st_mtime):
                beneath.touch(repo.root, path, now.st_mtime + 1)
    outdate_bytecode(repo.root, swap.moved | swap.added)
    kill_point("experiment.written")


def put_back(
    repo: Repository, measure: Snapshotter, swap: Swap, room: Path, ref: str
) -> tuple[str, ...]:
    """Everything as the story left it; the paths that somebody saved meanwhile, kept at `ref`."""
    moved = {path: str(number) for number, path in enumerate(swap.moved)}
    under = {path: f"{_UNDER}{number}" for number, path in enumerate(swap.covered)}
    away = {
        path: name
        for path, name in (moved | under).items()
        if room.is_dir() and beneath.look_at(room, name) is not None
    }
    # What was not moved yet, or is back already, is what the story left.
    empty = [path for path in swap.added if path not in under]
    concerned = [*away, *empty]
    foreign: dict[str, bytes] = {}
    for path in concerned:
        back = beneath.read(room, away[path]) if path in away else None
        foreign |= _foreign(repo, measure, swap, path, back)
    if foreign:
        keep_files(repo, ref, foreign, "files that were saved while an experiment ran")
    for path in concerned:
        beneath.clear(repo.root, path)
    for path in empty:
        beneath.remove(repo.root, path)  # and the directories that were made for it
    for path, name in away.items():
        beneath.move_in(room, name, repo.root, path)
        beneath.touch(repo.root, path)  # newer than whatever was built meanwhile
        kill_point("experiment.returned")
    outdate_bytecode(repo.root, away)
    return tuple(foreign)


def _foreign(
    repo: Repository, measure: Snapshotter, swap: Swap, path: str, back: bytes | None
) -> dict[str, bytes]:
    """What stands at a path, or on the way to it, and is neither the old file nor the one to come.

    What a swap wrote as a link comes from a tree: there is nothing to keep of it.
    """
    found = beneath.standing(repo.root, path)
    found.pop(f"{path}{beneath.LINK}", None)
    here = found.get(path)
    if here is not None and (here == back or _is_blob(repo, measure, swap, path, here)):
        del found[path]
    return found


def _is_blob(repo: Repository, measure: Snapshotter, swap: Swap, path: str, content: bytes) -> bool:
    """Whether this is the content that the swap wrote there, in git's eyes."""
    expected = (swap.moved | swap.added)[path]
    if not expected:
        return False
    if blob_name(repo.object_format, content) == expected:
        return True
    asked = ("hash-object", "--stdin", f"--path={path}")  # other line endings, say
    return measure.git().run(*asked, stdin=content).decode().strip() == expected
