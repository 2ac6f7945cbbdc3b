"""One sentence says what a story's proof is, and it is the same wherever a person reads it."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from ralphloop.project import Project
from tests.github.hub import Shop
from tests.loop.guards import told
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Sandbox, story
from tests.ui.page_visits import Elements, Visits

_CODE = "def {name}(x):\n    return {what}\n\n\n"
_TEST = "    def test_{name}(self):\n        {asserted}\n\n"


def _new(name: str, what: str, asserted: str) -> list[list[str]]:
    return [
        ["calc.py", "", _CODE.format(name=name, what=what)],
        ["tests/test_calc.py", "", _TEST.format(name=name, asserted=asserted)],
    ]


_WORKS = {
    "US-1": [
        ["calc.py", "return 2 * x", "return 2 * x if x >= 0 else 0"],
        ["tests/test_calc.py", "", _TEST.format(name="below", asserted="self.assertEqual(calc.double(-1), 0)")],
    ],
    "US-2": _new("half", "x / 2", "self.assertEqual(calc.half(3), 1.5)"),
    "US-3": _new("third", "x / 3", "calc.third(3)"),
    "US-4": _new("price", "{3: 7, 5: 9}[x]", "self.assertEqual((calc.price(3), calc.price(5)), (7, 9))"),
    "US-5": [["calc.py", "", "class Cart:\n    pass\n\n\n"], ["tests/test_calc.py", "", _TEST.format(name="fine", asserted="self.assertTrue(calc)")]],
    "US-6": [
        ["calc.py", "return 2 * x if", "return 3 * x if"],
        ["tests/test_calc.py", "self.assertEqual(calc.double(2), 4)", "self.assertTrue(calc.double(2))"],
    ],
}  # fmt: skip
_SENTENCES = {
    "US-1": "proved by test_below (fails before, passes after)",
    "US-2": "proved by test_half: it notices if half() returns something else",
    "US-3": "not proven: no test notices if third() returns something else (calc.py:9)",
    "US-4": "not proven: price() only hands out answers that its own tests repeat",
    "US-5": "not proven: the new tests pass without it too (test_fine)",
    "US-6": "test weakened: test_doubles. Its old version fails on the new code; the new version"
    " passes on the old code too",
}
_AGENT = """
for path, old, new in json.loads((STATE / "works.json").read_text())[STORY]:
    text = pathlib.Path(path).read_text()
    if new not in text:
        write(path, text.replace(old, new, 1) if old else text + new)
done(words=f"{STORY} is done, start {START}.")
"""


def _screens(box: Sandbox, console: str, tmp_path: Path) -> dict[str, str]:
    """Everything a person may read about the night, each as one line."""
    with Visits(Project(box.root), tmp_path / "pages") as visits:
        known = visits.known()
        page = " ".join(Elements(visits.get(place, known).text).words for place in ("", "review"))
    status = json.loads(box.ralph("status", "--json").out)
    found = {
        "console": console,
        "report": box.ralph("report", "--md").out.replace("\\", ""),
        "page of the report": html.unescape(box.ralph("report", "--html").out),
        "review": box.ralph("review").out,
        "page": page,
        "pull request": box.ralph("pr", "--dry-run").text.replace("\\", ""),
        "status --json": json.dumps(status, ensure_ascii=False),
    }
    return {name: " ".join(words.split()) for name, words in found.items()}


@pytest.mark.timeout(300)
def test_a_story_is_told_in_the_same_sentence_on_every_screen(tmp_path: Path) -> None:
    """Of each kind of proof one: console, report, review, page, pull request and status agree."""
    shop = Shop(
        tmp_path,
        _AGENT,
        stories=[story(name, f"Add {name}") for name in _WORKS],
        checks=UNITTEST,
        files={"calc.py": CALC, "tests/test_calc.py": TESTS, "tests/__init__.py": "", **IGNORED},
        toml='[proof]\nexperiments = "always"\nask_for_tests = "off"\n',
    )
    box = shop.box
    (box.state / "works.json").write_text(json.dumps(_WORKS))
    done = box.run("--max-iterations", "8", timeout=250)
    assert [it.verdict.passed for it in box.records()].count(True) == len(_WORKS), told(done)
    screens = _screens(box, done.text, tmp_path)
    missing = {
        screen: [name for name, words in _SENTENCES.items() if words not in text]
        for screen, text in screens.items()
    }
    assert missing == {key: [] for key in screens}, "\n".join(screens.values())
