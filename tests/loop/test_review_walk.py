"""Walking through a night by key: what cannot be done is said in place, and the walk goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.projects import IGNORED, UNITTEST, Sandbox, sandbox, story
from tests.plan.projects import Terminal

SHOP = "def one():\n    return 1\n"
TESTS = """\
import unittest

import shop


class Shop(unittest.TestCase):
    def test_one(self):
        self.assertEqual(shop.one(), 1)
"""
AGENT = """
def append(name, text):
    with open(name, "a") as file:
        file.write(text)

bodies = {"US-1": "100", "US-2": "two() + 19" if "alone" in PROMPT else "us_1() + 19", "US-3": "3"}
word = STORY.lower().replace("-", "_")
append("shop.py", f"\\n\\ndef {word}():\\n    return {bodies[STORY]}\\n")
value = {"US-1": 100, "US-2": 119, "US-3": 3}[STORY]
append("tests/test_shop.py",
       f"\\n    def test_{word}(self):\\n        self.assertEqual(shop.{word}(), {value})\\n")
done()
"""
FILES = {**IGNORED, "shop.py": SHOP, "tests/__init__.py": "", "tests/test_shop.py": TESTS}
TOML = '\n[proof]\nexperiments = "off"\n'
KEYS = "[q]uit"


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    """Three stories that passed; the second one uses what the first one made."""
    listed = [story(f"US-{n}", acceptanceCriteria=["it is done"]) for n in (1, 2, 3)]
    made = sandbox(tmp_path, AGENT, stories=listed, checks=UNITTEST, toml=TOML, files=FILES)
    assert made.run().code == 0
    return made


def review(box: Sandbox) -> Terminal:
    """`ralph review` on a terminal that cannot draw."""
    return Terminal(box.root, command="review", env=box.environment({"TERM": "dumb"}))


def reject_first(walk: Terminal) -> Terminal:
    """Send the first story back, until something is said to stand on it."""
    walk.wait_for(KEYS).press("r").wait_for("Why").type("not so\n")
    walk.wait_for("US-1 cannot be taken out without what stands on it")
    walk.wait_for("US-2 (Do US-2)").wait_for("test_us_2 fails without it")
    return walk.wait_for("[k]eep")


def test_what_stands_on_it_goes_along_and_is_not_shown_again(box: Sandbox) -> None:
    """One key sends both back; the walk goes on with the one that is left."""
    walk = reject_first(review(box)).press("t")
    walk.wait_for("US-1, US-2 are open again").wait_for("2 of 3")
    walk.wait_for("US-3: Do US-3").wait_for(KEYS).press("a")
    assert walk.end() == 0
    assert box.passes() == {"US-1": False, "US-2": False, "US-3": True}


def test_it_may_stay_and_become_a_story_of_its_own(box: Sandbox) -> None:
    """The words that were typed are the story's."""
    walk = reject_first(review(box)).press("f")
    walk.wait_for("US-1 stays; US-4").wait_for("2 of 3").wait_for(KEYS).press("q")
    assert walk.end() == 0
    assert box.passes() == {"US-1": True, "US-2": True, "US-3": True, "US-4": False}
    assert '"title": "not so"' in (box.root / "prd.json").read_text()


def test_what_is_kept_is_untouched(box: Sandbox) -> None:
    """And the next one is shown."""
    head = box.git("rev-parse", "HEAD")
    walk = reject_first(review(box)).press("k")
    walk.wait_for("US-1 stays as it is").wait_for("2 of 3").wait_for(KEYS).press("q")
    assert walk.end() == 0
    assert box.git("rev-parse", "HEAD") == head


def test_an_error_is_shown_in_place_and_the_words_are_kept(box: Sandbox) -> None:
    """A person's uncommitted change is in the way; once it is not, enter is enough."""
    mine = (box.root / "shop.py").read_text()
    (box.root / "shop.py").write_text(f"{mine}\n# mine\n")
    walk = review(box)
    for _ in range(2):
        walk.wait_for(KEYS).press("s")
    walk.wait_for(KEYS).press("r").wait_for("Why").type("it is too slow\n")
    walk.wait_for("shop.py has changes of yours").wait_for("Commit or stash them first")
    (box.root / "shop.py").write_text(mine)
    walk.wait_for(KEYS).press("r").wait_for("it is too slow").type("\n")
    walk.wait_for("US-2 is open again")  # the others hand out their tests' answers, and came first
    assert walk.end() == 0
    assert box.passes() == {"US-1": True, "US-2": False, "US-3": True}
    assert "it is too slow" in box.git("log", "-1", "--format=%B")
