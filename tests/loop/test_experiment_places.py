"""What runs while files are exchanged for an experiment may do anything to their places."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lanes.yards import stories_of, yard
from tests.loop.guards import told
from tests.loop.projects import IGNORED, UNITTEST, Sandbox, sandbox

ALWAYS = '[proof]\nexperiments = "always"\n'
OLD_PKG = "def double(x):\n    return 2 * x\n"
NEW_PKG = OLD_PKG + "def halve(x):\n    return x // 2\n"
A_TEST = """\
import unittest

from pkg import mod


class Mod(unittest.TestCase):
    def test_doubles(self):
        self.assertEqual(mod.double(2), 4)
"""
LINKED = """
import os, shutil, unittest
from pkg import mod

class Halve(unittest.TestCase):
    def test_halves(self):
        if "BaseException" in open(mod.__file__).read():
            shutil.rmtree("pkg")
            os.symlink({outside!r}, "pkg")
        self.assertEqual(mod.halve(4), 2)
"""
PLAIN_FILES = {
    "pkg/__init__.py": "",
    "pkg/mod.py": OLD_PKG,
    "tests/__init__.py": "",
    "tests/test_mod.py": A_TEST,
    **IGNORED,
}
HALVES = f"write('pkg/mod.py', {NEW_PKG!r})\n"
HALVE_TEST = (
    "import unittest\nfrom pkg import mod\nclass Halve(unittest.TestCase):\n"
    "    def test_halves(self):\n        self.assertEqual(mod.halve(4), 2)\n"
)


def test_putting_back_follows_no_link(tmp_path: Path) -> None:
    """A test that puts a link where the package was gets nothing written or read behind it."""
    outside = tmp_path / "home"
    outside.mkdir()
    (outside / "mod.py").write_text("a person's own\n")
    agent = f"{HALVES}write('tests/test_halve.py', {LINKED.format(outside=str(outside))!r})\ndone()"
    box = sandbox(tmp_path, agent, checks=UNITTEST, files=PLAIN_FILES, toml=ALWAYS)
    done = box.run("--max-iterations", "2")
    assert (outside / "mod.py").read_text() == "a person's own\n", told(done)
    assert [path.name for path in outside.iterdir()] == ["mod.py"], told(done)
    blobs = box.git("cat-file", "--batch-all-objects", "--batch-check").splitlines()
    texts = [box.git("cat-file", "blob", it.split()[0]) for it in blobs if " blob " in it]
    assert "a person's own" not in texts, told(done)
    assert not (box.root / "pkg").is_symlink()
    assert (box.root / "pkg/mod.py").read_text() == NEW_PKG
    assert done.code in (0, 3), told(done)
    assert "cannot be put back" not in done.text, told(done)


# The old code makes a directory where the story has a file.
MAKES = """\
import os


def settings():
    os.makedirs("settings.d", exist_ok=True)
    with open("settings.d/default", "w") as file:
        file.write("1")
    return 1
"""
READS = """\
def settings():
    with open("settings.d") as file:
        return int(file.read())
"""
OLD_SETTINGS_TEST = """\
import unittest

import app


class App(unittest.TestCase):
    def test_settings(self):
        self.assertEqual(app.settings(), 1)
"""
NEW_SETTINGS_TEST = OLD_SETTINGS_TEST.replace("settings(), 1)", "settings(), 2)")
IN_PLACE = f"""
import shutil
shutil.rmtree("settings.d", ignore_errors=True)
write("settings.d", "2")
write("app.py", {READS!r})
write("tests/test_app.py", {NEW_SETTINGS_TEST!r})
done()
"""
APP = {
    "app.py": MAKES,
    "tests/__init__.py": "",
    "tests/test_app.py": OLD_SETTINGS_TEST,
    ".gitignore": IGNORED[".gitignore"] + "settings.d/\n",
}


def in_the_checkout(tmp_path: Path, agent: str, files: dict[str, str]) -> tuple[Sandbox, list[str]]:
    """A project, and how it is run."""
    box = sandbox(tmp_path, agent, checks=UNITTEST, files=files, toml=ALWAYS)
    return box, ["--max-iterations", "3"]


def in_lanes(tmp_path: Path, agent: str, files: dict[str, str]) -> tuple[Sandbox, list[str]]:
    """The same with lanes."""
    stories = stories_of("US-1")
    box = yard(tmp_path, agent, stories=stories, checks=UNITTEST, files=files, toml=ALWAYS)
    return box, ["--lanes", "2", "--max-iterations", "3"]


Where = Callable[[Path, str, dict[str, str]], tuple[Sandbox, list[str]]]


@pytest.mark.parametrize("where", [in_the_checkout, in_lanes])
def test_a_directory_in_the_place_of_a_file_gives_way(tmp_path: Path, where: Where) -> None:
    """Made by the old code while it was tried, it does not end the night; the story's file is back."""
    box, arguments = where(tmp_path, IN_PLACE, APP)
    done = box.run(*arguments)
    assert done.code == 0, told(done)
    assert box.git("show", "HEAD:settings.d") == "2", told(done)
    assert box.git("show", "HEAD:app.py") == READS.strip(), told(done)
    assert box.git("status", "--porcelain") == ""
    assert box.run(*arguments[:-2], "--continue").code == 64  # it finished


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory on another file system than the test's."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one file system only")
    with tempfile.TemporaryDirectory(dir=memory, prefix="ralph-test-") as place:
        yield Path(place)


def test_lanes_on_another_file_system_are_proven_as_well(tmp_path: Path, elsewhere: Path) -> None:
    """Files cannot be renamed from there to our directory: they are copied, and it is verified."""
    agent = f"{HALVES}write('tests/test_halve.py', {HALVE_TEST!r})\ndone()"
    toml = f'{ALWAYS}[lanes]\nwhere = "{elsewhere}"\n'
    box = yard(
        tmp_path,
        agent,
        stories=stories_of("US-1"),
        checks=UNITTEST,
        files=PLAIN_FILES,
        toml=toml,
    )
    done = box.run("--lanes", "1", "--max-iterations", "3")
    assert done.code == 0, told(done)
    assert "US-1 passed (verified)" in done.text, told(done)


def test_a_check_that_removes_what_git_ignores_ends_no_night(tmp_path: Path) -> None:
    """Our directory goes with it: it is put back, that is said, and nothing is exchanged there."""
    agent = f"{HALVES}write('tests/test_halve.py', {HALVE_TEST!r})\nwrite(STORY)\ndone()"
    box = sandbox(
        tmp_path,
        agent,
        stories=2,
        checks=[["git", "clean", "-fdXq"], *UNITTEST],
        files=PLAIN_FILES,
        toml=ALWAYS,
    )
    done = box.run("--max-iterations", "4")
    assert done.code == 0, told(done)
    assert box.starts == 2
    assert "a check removes what git ignores, and .ralph with it" in done.text
    assert box.git("status", "--porcelain") == ""
    assert len(box.records()) == 2
    assert any("not tried: a check removes" in it for it in box.records()[0].verdict.remarks)
    assert box.run("--continue").code == 64  # it finished


CLEANS = """
import shutil, unittest
from pkg import mod

class Halve(unittest.TestCase):
    def test_halves(self):
        if "BaseException" in open(mod.__file__).read():
            shutil.rmtree(".ralph")
        self.assertEqual(mod.halve(4), 2)
"""


def test_files_that_are_lost_with_our_directory_are_named(tmp_path: Path) -> None:
    """Removed only while files are exchanged, it takes them along: said plainly, and one goes on."""
    agent = f"{HALVES}write('tests/test_halve.py', {CLEANS!r})\ndone()"
    box = sandbox(tmp_path, agent, checks=UNITTEST, files=PLAIN_FILES, toml=ALWAYS)
    done = box.run("--max-iterations", "3")
    assert done.code == 66, told(done)
    assert "while files of the story were exchanged: pkg/mod.py cannot be brought back" in done.text
    settings = box.root / "ralph.toml"
    settings.write_text(settings.read_text().replace('"always"', '"off"'))
    box.git("commit", "-q", "-m", "as advised", "ralph.toml")
    again = box.run("--continue")
    assert again.code == 0, told(again)
    assert box.git("show", "HEAD:pkg/mod.py") == NEW_PKG.strip()
