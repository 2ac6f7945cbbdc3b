"""What a person decides by: the claim, the evidence and the change of the work alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop.core.work_diff import FileSide, MarkKind
from ralphloop.forge.evidence import tables_of
from ralphloop.night.look import look
from ralphloop.night.review import review_list, review_story
from ralphloop.night.review_values import Doubt, StoryReview, Worth
from ralphloop.project import Project
from tests.loop.projects import IGNORED, UNITTEST, Sandbox, sandbox, story
from tests.ui.page_visits import Visits

SHOP = """\
def total(prices):
    return round(sum(prices) + 0.0001, 2)
"""
TESTS = """\
import unittest

import shop


class Shop(unittest.TestCase):
    def test_total(self):
        self.assertEqual(shop.total([0.125]), 0.13)
"""
AGENT = """
if STORY == "US-1":
    # Honest: a function and a test that fails without it.
    append("shop.py", "\\n\\ndef doubled(price):\\n    return price * 2\\n")
    append("tests/test_shop.py",
           "\\n    def test_doubled(self):\\n        self.assertEqual(shop.doubled(21), 42)\\n")
    print("I added doubled() and a test of it.\\n\\nFOUND: total() knows no currency at all\\n")
elif STORY == "US-2":
    # The answers in a table, which the tests repeat.
    write("rates.py", "def rate(country):\\n    return {'DE': 19.5, 'FR': 20.25}[country]\\n")
    write("tests/test_rates.py",
          "import unittest\\n\\nimport rates\\n\\n\\nclass Rates(unittest.TestCase):\\n"
          "    def test_rate(self):\\n        self.assertEqual(rates.rate('DE'), 19.5)\\n"
          "        self.assertEqual(rates.rate('FR'), 20.25)\\n")
    print("Rates for every country are looked up.\\n\\nDOUBT: only two countries were named\\n")
elif STORY == "US-4":
    # As honest, and with a test for all that was asked.
    append("shop.py", "\\n\\ndef halved(price):\\n    return price / 2\\n")
    append("tests/test_shop.py",
           "\\n    def test_halved(self):\\n        self.assertEqual(shop.halved(42), 21)\\n")
    print("I added halved() and a test of it.\\n")
else:
    # A test is made to ask for less, and the code no longer rounds up.
    write("shop.py", open("shop.py").read().replace(" + 0.0001", ""))
    write("tests/test_shop.py", open("tests/test_shop.py").read().replace(
        "assertEqual(shop.total([0.125]), 0.13)", "assertAlmostEqual(shop.total([0.125]), 0.13, 1)"))
    print("I made the rounding test robust.\\n")
done()
"""
APPEND = """
def append(name, text):
    with open(name, "a") as file:
        file.write(text)

"""
STORIES = [
    story("US-1", "Double a price", acceptanceCriteria=["doubled(21) is 42", "Nothing else moves"]),
    story("US-2", "Know the rate of a country", acceptanceCriteria=["rate('DE') is 19.5"]),
    story("US-3", "Round a total", acceptanceCriteria=["total([0.125]) is 0.13"]),
]
COVERED = story("US-4", "Halve a price", acceptanceCriteria=["halved(42) is 21"])
FILES = {**IGNORED, "shop.py": SHOP, "tests/__init__.py": "", "tests/test_shop.py": TESTS}


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A night of four: honest work twice, a table of answers, a weakened test."""
    place = tmp_path_factory.mktemp("night")
    stories = [COVERED, *STORIES]
    made = sandbox(place, APPEND + AGENT, stories=stories, checks=UNITTEST, files=FILES)
    assert made.run().code == 0
    return made


def reviewed(box: Sandbox, name: str) -> StoryReview:
    """One story of that night, by its id in any case."""
    project = Project(box.root)
    listed = review_list(project)
    assert listed is not None
    item = listed.item(name)
    assert item is not None
    return review_story(project, item)


def test_the_list_goes_by_doubt(box: Sandbox) -> None:
    """What was challenged comes first, what is proven last; each has its finding and its cost."""
    listed = review_list(Project(box.root))
    assert listed is not None
    assert [one.story for one in listed.items] == ["US-3", "US-2", "US-1", "US-4"]
    doubts = [Doubt.ASKED, Doubt.CHECKED, Doubt.VERIFIED, Doubt.VERIFIED]
    assert [one.doubt for one in listed.items] == doubts
    assert listed.items[0].starts == 2
    assert "4 of 4 stories passed" in listed.headline
    assert "1 story needs review" in listed.headline


def test_a_weakened_test_is_shown_by_what_its_old_version_says(box: Sandbox) -> None:
    """Claim and evidence: the agent's words, the sentence, and the two lines that show it."""
    found = reviewed(box, "us-3")
    assert found.claim.said.startswith("I made the rounding test robust.")
    assert found.finding.startswith("test weakened: test_total.")
    assert found.worth is Worth.BAD
    assert found.shown_by[0].startswith("test_total as it was, on the new code → ")
    assert "0.12 != 0.13" in found.shown_by[0]
    marks = [mark for file in found.diff.files for mark in file.marked]
    assert MarkKind.WEAKENED in {mark.kind for mark in marks}


def test_answers_in_a_table_are_marked_at_their_lines(box: Sandbox) -> None:
    """What stands in code and test alike is listed, and marked in the code."""
    found = reviewed(box, "US-2")
    assert {one.value for one in found.diff.literals} >= {"19.5", "20.25"}
    code = next(file for file in found.diff.files if file.path == "rates.py")
    assert [mark.kind for mark in code.marked].count(MarkKind.LITERAL) == 1
    assert found.claim.doubts == ("only two countries were named",)
    assert found.finding.startswith("not proven: rate() only hands out answers")


def test_each_criterion_has_its_test_or_none(box: Sandbox) -> None:
    """A criterion that a test speaks of has before and after; one that none does is red."""
    found = reviewed(box, "US-1")
    first, second = found.criteria_looks
    assert first.worth in (Worth.GOOD, Worth.WEAK)
    assert "test_doubled" in first.words
    assert second.worth is Worth.BAD
    assert second.words == "none: no test speaks of it"
    assert found.claim.found == ("total() knows no currency at all",)


def test_the_change_is_the_work_alone_tests_first(box: Sandbox) -> None:
    """The story file and the diary are named and not shown; tests stand before the code."""
    found = reviewed(box, "US-1")
    assert [file.path for file in found.diff.files] == ["tests/test_shop.py", "shop.py"]
    assert [file.side for file in found.diff.files] == [FileSide.TEST, FileSide.CODE]
    assert set(found.diff.own) == {"prd.json", "progress.txt"}
    added = [line.text for line in found.diff.files[1].hunks[0].lines if line.sign == "+"]
    assert added[-2:] == ["def doubled(price):", "    return price * 2"]
    assert (found.diff.added, found.diff.removed) == (7, 0)


def test_a_criterion_without_a_test_is_said_on_every_screen(box: Sandbox, tmp_path: Path) -> None:
    """Review, report, page and pull request say how many have one; that story comes first."""
    said = "1 of 2 criteria have a test"
    partly, fully = (one for one in reviews(box) if one.entry.doubt is Doubt.VERIFIED)
    assert (partly.entry.mark, partly.worth) == ("✓▲", Worth.WEAK)
    assert (fully.entry.mark, fully.worth) == ("✓✓", Worth.GOOD)
    head, *_, change = papers(box, "US-1").split("\n\n")
    assert said in head
    assert "its criterion has a test" in papers(box, "US-4")
    assert said not in change
    report = box.ralph("report").out
    assert f"- **{said}**" in report
    assert report.index("**US-1**") < report.index("**US-4**")
    looks = {one.story.id: one for one in look(Project(box.root)).stories}
    assert f"(verified, {said})" in tables_of([looks["US-1"]])
    with Visits(Project(box.root), tmp_path / "state") as visits:
        for page in ("", "review", "story?id=US-1"):
            shown = visits.get(page, visits.known()).text
            assert said in shown, page


def papers(box: Sandbox, name: str) -> str:
    """A story as `ralph review` prints it."""
    return box.ralph("review", name).out.partition("\n\n")[2]


def reviews(box: Sandbox) -> list[StoryReview]:
    """All stories that wait, as they are listed."""
    listed = review_list(Project(box.root))
    assert listed is not None
    return [reviewed(box, one.story) for one in listed.items]
