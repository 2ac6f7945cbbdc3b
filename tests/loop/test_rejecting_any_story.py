"""Ten stories of one night, with one changelog and one file of tests: each can be sent back.

What stands on a story is named by test and story, and a person decides what becomes of it.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.loop.guards import told
from tests.loop.projects import IGNORED, UNITTEST, Sandbox, sandbox, story

SHOP = "def one():\n    return 1\n"
TESTS = """\
import unittest

import shop


class Shop(unittest.TestCase):
    def test_one(self):
        self.assertEqual(shop.one(), 1)
"""
FILES = {
    **IGNORED,
    "CHANGELOG.md": "# Changelog\n\n- One.",
    "shop.py": SHOP,
    "tests/__init__.py": "",
    "tests/test_shop.py": TESTS,
    "docs/usage.md": "# Usage\n\nFirst line.\n\nSecond line.\n\nThird line.\n",
    "old.py": "x = 1\n",
}
AGENT = """
import re
number = int(STORY.split("-")[1])

def append(name, text):
    with open(name, "a") as file:
        file.write(text)

def function(name, body, call, value):
    append("shop.py", f"\\n\\ndef {name}:\\n    return {body}\\n")
    word = name.split("(")[0]
    append("tests/test_shop.py",
           f"\\n    def test_{word}(self):\\n        self.assertEqual(shop.{call}, {value})\\n")

def edit(name, old, new):
    text = open(name).read()
    assert old in text, text
    write(name, text.replace(old, new))

append("CHANGELOG.md", f"\\n- {STORY}.")
if number == 1: function("net(x)", "x * 100", "net(1)", 100)
elif number == 2: function("tax(x)", "x * 19", "tax(1)", 19)
elif number == 3: function("gross(x)", "net(x) + tax(x)", "gross(1)", 119)
elif number == 4: function("label(x)", "f'price {x}'", "label(1)", "'price 1'")
elif number == 5:
    edit("shop.py", "f'price {x}'", "f'Price {x}'")
    edit("tests/test_shop.py", "'price 1'", "'Price 1'")
elif number == 6:
    os.rename("docs/usage.md", "docs/manual.md"); function("six()", "6", "six()", 6)
elif number == 7: edit("docs/manual.md", "Third line.", "The third line.")
elif number == 8: os.remove("old.py"); function("eight()", "8", "eight()", 8)
elif number == 9: write("nine.py", "nine = 9\\n"); function("nine()", "9", "nine()", 9)
else: function("ten()", "10", "ten()", 10)
done()
"""
TOML = '\n[proof]\nexperiments = "off"\n'
ALONE = ["US-3", "US-5", "US-6", "US-7", "US-8", "US-9", "US-10"]


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """The ten stories, all passed; every test has a copy of its own."""
    titles = [story(f"US-{n}", f"Part {n}") for n in range(1, 11)]
    place = tmp_path_factory.mktemp("night")
    box = sandbox(place, AGENT, stories=titles, checks=UNITTEST, toml=TOML, files=FILES)
    done = box.run(timeout=300)
    assert done.code == 0, told(done)
    return box


@pytest.fixture
def box(night: Sandbox, tmp_path: Path) -> Sandbox:
    """A morning after that night."""
    root = tmp_path / "repo"
    shutil.copytree(night.root, root, symlinks=True)
    return replace(night, root=root)


def open_stories(box: Sandbox) -> list[str]:
    """Which have not passed."""
    return [name for name, passes in box.passes().items() if not passes]


@pytest.mark.parametrize("name", ALONE)
def test_a_story_that_nothing_stands_on_goes_alone(box: Sandbox, name: str) -> None:
    """Its lines leave the shared files, whatever was appended behind them, and nobody else's."""
    said = box.ralph("reject", name, "no")
    assert said.code == 0, told(said)
    assert open_stories(box) == [name]
    entries = {line for line in (box.root / "CHANGELOG.md").read_text().splitlines() if line}
    others = {f"- US-{n}." for n in range(1, 11)} - {f"- {name}."}
    assert entries == {"# Changelog", "- One.", *others}
    assert box.git("status", "--porcelain") == ""
    assert f"git show refs/ralph/rejected/{name.lower()}" in said.out
    done = box.ralph("doctor")
    assert "unfinished" not in done.text


def test_files_that_were_moved_and_deleted_come_back(box: Sandbox) -> None:
    """A renamed file has its old name again, with what others wrote into it since."""
    assert box.ralph("reject", "US-6", "no").code == 0
    assert "The third line." in (box.root / "docs/usage.md").read_text()
    assert not (box.root / "docs/manual.md").exists()
    assert box.ralph("reject", "US-8", "no").code == 0
    assert (box.root / "old.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("name", ["US-1", "US-2"])
def test_whose_test_fails_without_it_is_named_by_test_and_story(box: Sandbox, name: str) -> None:
    """The checks decide; nothing is touched, and a script can tell."""
    head = box.git("rev-parse", "HEAD")
    said = box.ralph("reject", name, "no")
    assert said.code == 2, told(said)
    assert "US-3 (Part 3): " in said.err
    assert "test_gross fails without it" in said.err
    assert "US-4" not in said.err
    assert "--with-dependents, --follow-up or --keep" in said.err
    assert box.git("rev-parse", "HEAD") == head
    assert box.git("status", "--porcelain") == ""
    assert open_stories(box) == []


def test_who_changed_the_same_lines_is_named_and_nobody_else(box: Sandbox) -> None:
    """Six later commits touch the same files, one the same lines."""
    said = box.ralph("reject", "US-4", "no")
    assert said.code == 2, told(said)
    commit = box.git("log", "--format=%H", "--grep=US-5: Part 5").strip()[:10]
    assert f"US-5 (Part 5): {commit} changed the same lines of shop.py" in said.err
    assert [name for name in ALONE if f"{name} (" in said.err] == ["US-5"]
    assert open_stories(box) == []


@pytest.mark.parametrize(("name", "also"), [("US-1", "US-3"), ("US-4", "US-5")])
def test_what_stands_on_it_goes_with_it_where_that_is_wanted(
    box: Sandbox, name: str, also: str
) -> None:
    """Both are open again, each with its own words, in one commit."""
    said = box.ralph("reject", name, "too", "slow", "--with-dependents")
    assert said.code == 0, told(said)
    assert open_stories(box) == [name, also]
    assert f"With what stood on it: {also}" in box.git("log", "-1", "--format=%B")
    assert "the checks are green without them" in said.out
    box.run("--max-iterations", "1")
    assert "sent back: too slow" in box.prompt(11)


def test_a_follow_up_is_a_story_with_the_persons_words(box: Sandbox) -> None:
    """The story stays, and what is wrong with it is done next."""
    said = box.ralph("reject", "US-1", "Net", "prices", "are", "rounded", "--follow-up")
    assert said.code == 0, told(said)
    assert "US-1 stays; US-11, which says what is wrong, was added to prd.json" in said.out
    assert open_stories(box) == ["US-11"]
    listed = (box.root / "prd.json").read_text()
    assert '"notes": "Follow-up of US-1, which a person looked at and kept."' in listed
    assert '"title": "Net prices are rounded"' in listed
    assert box.git("status", "--porcelain").split() == ["M", "prd.json"]


def test_what_is_kept_is_untouched(box: Sandbox) -> None:
    """It was asked for, so the exit code is that of something done."""
    head = box.git("rev-parse", "HEAD")
    said = box.ralph("reject", "US-1", "no", "--keep")
    assert said.code == 0, told(said)
    assert "US-1 stays as it is" in said.out
    assert box.git("rev-parse", "HEAD") == head
    assert open_stories(box) == []


def test_one_wish_at_a_time(box: Sandbox) -> None:
    """Two of them say different things."""
    said = box.ralph("reject", "US-1", "no", "--keep", "--follow-up")
    assert said.code == 64
    assert "say different things" in said.err


def test_a_persons_commit_on_the_same_lines_is_named(box: Sandbox) -> None:
    """It is no story, so it cannot be sent back with it."""
    path = box.root / "shop.py"
    path.write_text(path.read_text().replace("return 10\n", "return 5 + 5\n"))
    box.git("commit", "-qam", "mine")
    said = box.ralph("reject", "US-10", "no")
    assert said.code == 2, told(said)
    assert "(mine) changed the same lines of shop.py" in said.err
    said = box.ralph("reject", "US-10", "no", "--with-dependents")
    assert said.code == 66, told(said)
    assert open_stories(box) == []


def test_a_check_that_was_red_anyway_does_not_keep_a_story(box: Sandbox) -> None:
    """Only what fails without the story and not with it stands on it."""
    (box.root / "tests/test_mine.py").write_text(
        "import unittest\nclass Mine(unittest.TestCase):\n"
        "    def test_mine(self):\n        self.fail()\n"
    )
    said = box.ralph("reject", "US-9", "no")
    assert said.code == 0, told(said)
    assert open_stories(box) == ["US-9"]
    assert (box.root / "tests/test_mine.py").exists()
