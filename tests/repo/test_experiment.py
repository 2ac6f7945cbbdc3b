"""Files exchanged in place and brought back: byte by byte, from any moment, whoever saved meanwhile."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ralphloop.repo import beneath
from ralphloop.repo.experiment import (
    MOST_PATHS,
    Swap,
    covered,
    obstacle,
    put_back,
    split,
    swap_of,
    undo,
)
from ralphloop.repo.outside import excludes_changed, hidden, ignored_since, newly_imported
from ralphloop.repo.runners import find_runner
from ralphloop.repo.snapshot import Change, Snapshotter
from ralphloop.repo.work_tree import Repository
from tests.repo.sandbox import Sandbox

REF = "refs/ralph/experiment/run/1"
PYTEST = ("python", "-m", "pytest")


class Exchange:
    """A story's change in a real repository, one side of it undone."""

    def __init__(self, box: Sandbox) -> None:
        self.box, self.room = box, box.root / ".ralph/experiment"
        box.write("code.py", "old code\n")
        box.write("gone.py", "was here\n")
        box.write("run.sh", "old\n").chmod(0o755)
        box.write("deep/er/kept.py", "x\n")
        box.commit("start")
        self.repo = Repository.open(box.root)
        self.measure = Snapshotter(self.repo, box.store)
        self.start = self.measure.tree()
        box.write("code.py", "new code\r\n\x00")
        box.remove("gone.py")
        box.write("run.sh", "new\n").chmod(0o755)
        box.write("new/place.py", "new\n")
        (box.root / "link").symlink_to("code.py")
        self.end = self.measure.tree()
        self.changes = self.measure.changes(self.start.tree, self.end.tree)
        told = {"run": "run", "number": 1, "what": "all", "start": self.start.tree}
        self.swap: Swap = swap_of(self.changes, **told, end=self.end.tree)

    def undo(self) -> None:
        """One side as it was before."""
        undo(self.repo, self.measure, self.swap, self.room)

    def back(self) -> tuple[str, ...]:
        """All as the story left it."""
        return put_back(self.repo, self.measure, self.swap, self.room, REF)


def test_one_side_is_as_it_was_and_then_all_is_back(box: Sandbox) -> None:
    """Old content, modes and absences; then the very bytes, and the tree that must be there."""
    one = Exchange(box)
    one.undo()
    assert one.measure.tree().tree == one.start.tree
    assert box.read("gone.py") == "was here\n"
    assert not (box.root / "link").is_symlink()
    assert stat.S_IMODE((box.root / "run.sh").stat().st_mode) & stat.S_IXUSR
    assert one.back() == ()
    assert one.measure.tree().tree == one.end.tree
    assert (box.root / "code.py").read_bytes() == b"new code\r\n\x00"
    assert (box.root / "link").readlink() == Path("code.py")


def test_no_bytecode_of_the_other_side_is_taken_for_it(box: Sandbox) -> None:
    """Same size, written in the same second: Python would run the code that is not there."""
    one = Exchange(box)
    soon = int(time.time()) + 30.0
    for path in one.swap.moved:
        os.utime(box.root / path, (soon, soon), follow_symlinks=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ralphloop.repo.beneath.move_in", _dated(soon))
        one.undo()
    assert int((box.root / "code.py").stat().st_mtime) != int(soon)


def _dated(seconds: float) -> Callable[..., None]:
    """Files that are written in that very second."""
    whole = beneath.move_in

    def move_in(room: Path, name: str, root: Path, path: str, **how: bool) -> None:
        whole(room, name, root, path, **how)
        beneath.touch(root, path, seconds)

    return move_in


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory on another file system than the repository's."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one file system only")
    with tempfile.TemporaryDirectory(dir=memory, prefix="ralph-test-") as place:
        yield Path(place)


def test_files_are_copied_to_another_file_system(box: Sandbox, elsewhere: Path) -> None:
    """What cannot be renamed is copied there and back: bytes, modes and links, and nothing left."""
    one = Exchange(box)
    one.room = elsewhere / "room"
    one.undo()
    assert one.measure.tree().tree == one.start.tree
    assert one.back() == ()
    assert one.measure.tree().tree == one.end.tree
    assert (box.root / "link").readlink() == Path("code.py")
    assert list(one.room.iterdir()) == []
    assert not list(box.root.rglob("*.tmp"))


def test_a_copy_that_was_cut_off_is_nothing_that_somebody_saved(
    box: Sandbox, elsewhere: Path
) -> None:
    """Killed between the copy and the removal, both are the same file."""
    one = Exchange(box)
    one.room = elsewhere / "room"
    one.room.mkdir()
    (one.room / "0").write_bytes((box.root / next(iter(one.swap.moved))).read_bytes())
    assert one.back() == ()
    assert one.measure.tree().tree == one.end.tree


def test_a_directory_in_the_place_of_a_removed_file_is_there_again(box: Sandbox) -> None:
    """Prose and ignored files are on no side: they leave with their directory and come back."""
    one = Exchange(box)
    box.write("gone.py/notes.md", "prose\n")
    box.write("gone.py/__pycache__/x.pyc", "built\n")
    one.end = one.measure.tree()
    changes = [it for it in one.changes if it.path == "gone.py"]
    told = {"run": "run", "number": 1, "what": "all", "start": one.start.tree}
    under = covered(box.root, changes)
    one.swap = swap_of(changes, **told, end=one.end.tree, covered=under)
    one.undo()
    assert box.read("gone.py") == "was here\n"
    for _ in range(2):  # twice does no harm
        assert one.back() == ()
        assert box.read("gone.py/notes.md") == "prose\n"
        assert box.read("gone.py/__pycache__/x.pyc") == "built\n"


def test_putting_back_twice_does_no_harm(box: Sandbox) -> None:
    """Whoever comes second finds nothing left to do."""
    one = Exchange(box)
    assert one.back() == ()  # nothing was exchanged yet
    one.undo()
    one.back()
    assert one.back() == ()
    assert one.measure.tree().tree == one.end.tree


@given(moved=st.integers(0, 4), written=st.booleans())
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_cut_off_anywhere_it_comes_back(
    tmp_path_factory: pytest.TempPathFactory, moved: int, written: bool
) -> None:
    """Some files moved, some written: what the story left is there again."""
    one = Exchange(Sandbox(tmp_path_factory.mktemp("cut")))
    one.room.mkdir(parents=True)
    for number, path in list(enumerate(one.swap.moved))[:moved]:
        (one.box.root / path).rename(one.room / str(number))
        if written and (old := one.swap.moved[path]):
            text = one.measure.contents([old])[old]
            (one.box.root / path).write_bytes(text)
    assert one.back() == ()
    assert one.measure.tree().tree == one.end.tree


def test_what_somebody_saved_meanwhile_is_kept(box: Sandbox) -> None:
    """Under a ref, by name; the story's own files are back."""
    one = Exchange(box)
    one.undo()
    box.write("code.py", "a person's\n")
    box.write("gone.py", "a person's too\n")
    box.write("new/place.py", "and this\n")
    assert sorted(one.back()) == ["code.py", "gone.py", "new/place.py"]
    assert box.git("show", f"{REF}:code.py") == "a person's"
    assert box.git("show", f"{REF}:gone.py") == "a person's too"
    assert one.measure.tree().tree == one.end.tree


def test_what_is_brought_back_is_newer_than_what_was_built_meanwhile(box: Sandbox) -> None:
    """A build tool that looks at times builds it again."""
    one = Exchange(box)
    old = 1_000_000_000
    os.utime(box.root / "code.py", (old, old))
    one.undo()
    one.back()
    assert (box.root / "code.py").stat().st_mtime > old


def test_no_room_on_the_disk_is_needed_to_bring_it_back(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written: it is moved."""
    one = Exchange(box)
    one.undo()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr(Path, "write_text", full)
    assert one.back() == ()
    assert (box.root / "code.py").read_bytes() == b"new code\r\n\x00"


def test_what_cannot_be_exchanged_is_said(box: Sandbox) -> None:
    """Too large to be kept, too many, a directory in a file's place, a name nobody can write."""
    one = Exchange(box)
    assert obstacle(one.measure, one.changes) == ""
    blob = one.changes[0].after or one.changes[0].before
    named = [Change(path=path, before=blob, after=blob) for path in ("a", "a/b")]
    assert "directory" in obstacle(one.measure, named)
    assert "more than" in obstacle(one.measure, named * MOST_PATHS)
    odd = Change(path="\udcff.py", before=blob, after=blob)
    assert "name" in obstacle(one.measure, [odd])
    box.write("large.bin", b"x" * (6 << 20))
    after = one.measure.tree()
    assert "large.bin" in obstacle(one.measure, one.measure.changes(one.end.tree, after.tree))


SIDES = {
    "tests/test_a.py": "tests",
    "src/a.test.ts": "tests",
    "test.js": "tests",
    "tests/data/a.json": "settings",
    "conftest.py": "settings",
    "pytest.ini": "settings",
    "pytest.py": "settings",
    "check.sh": "settings",
    "src/a.py": "code",
    "README.md": "neither",
    ".github/workflows/tests.yaml": "code",
    "requirements/tests.txt": "code",
    "requirements/tests/pins.txt": "settings",
}


@pytest.mark.parametrize(("path", "side"), SIDES.items(), ids=SIDES)
def test_each_path_is_on_one_side(tmp_path: Path, path: str, side: str) -> None:
    """Tests and what a runner obeys on one, everything else but prose on the other."""
    found = find_runner(PYTEST, tmp_path)
    change = Change(path=path, before="1", after="2")
    sides = split([change], {}, found, ["check.sh"])
    assert bool(sides.tests) is (side in ("tests", "settings"))
    assert bool(sides.code) is (side == "code")
    if path != "test.js":
        assert sides.has_settings is (side == "settings")


def test_a_file_is_one_of_tests_where_the_runner_found_some_in_it(tmp_path: Path) -> None:
    """Whatever its name: mocha runs all of `test/`, helpers among them."""
    found = find_runner(["mocha"], tmp_path)
    changes = [Change(path=path, before="1", after="2") for path in ("test/api.js", "test/x.js")]
    sides = split(changes, {}, found, (), tested=frozenset({"test/api.js"}))
    assert sides.files(old=True) == ["test/api.js"]
    assert sides.has_settings
    assert not split(changes[:1], {}, found, (), tested=sides.tested).has_settings


def test_of_a_shared_file_only_the_runners_section_counts(tmp_path: Path) -> None:
    """A new dependency in pyproject.toml is code, a new option for pytest is not."""
    found = find_runner(PYTEST, tmp_path)
    plain = b'[project]\nname = "a"\n'
    texts = {
        "1": plain,
        "2": plain + b'dependencies = ["b"]\n',
        "3": plain + b'[tool.pytest.ini_options]\naddopts = "-k a"\n',
    }
    change = Change(path="pyproject.toml", before="1", after="2")
    assert split([change], texts, found, ()).code
    change = Change(path="pyproject.toml", before="1", after="3")
    assert split([change], texts, found, ()).has_settings


def test_what_no_commit_would_hold_is_found(box: Sandbox) -> None:
    """Files git was told not to look at, and sources in ignored places; what is built is not meant."""
    box.write("a.py")
    box.write(".gitignore", "lib/\nlocal.py\n__pycache__/\n")
    box.commit("start")
    repo = Repository.open(box.root)
    assert hidden(repo, ["a.py", "b.py"]) == []
    box.git("update-index", "--assume-unchanged", "a.py")
    assert hidden(repo, ["a.py", "b.py"]) == ["a.py"]
    for path in ("lib/deep/impl.py", "local.py", "lib/image.png", "__pycache__/x.py"):
        box.write(path)
    now = (box.root / "local.py").stat().st_mtime
    assert sorted(ignored_since(repo, now - 60, now + 60)) == ["lib/deep/impl.py", "local.py"]
    assert ignored_since(repo, now + 60, now + 120) == []
    assert not excludes_changed(repo, now + 60)
    box.write(".git/info/exclude", "*.py\n")
    assert excludes_changed(repo, now - 60)


def test_an_ignored_file_counts_where_a_new_line_imports_it() -> None:
    """Not where it was imported before, is only mentioned, or shares a name with something else."""
    ignored = ["local/more.py", "rates.py", "lib/__init__.py", "gen/out.js"]
    sides = [
        (b"import rates\n", b"import rates\nfrom local.more import more\n"),
        (None, b'const out = require("./gen/out");\nx = "lib"\n# local and more\n'),
        (b"import gone\n", None),
    ]
    assert newly_imported(ignored, sides) == ["local/more.py", "gen/out.js"]
