"""One story makes ready what a later one makes use of; and old tests that nobody could try."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ralphloop.core.grading import Grade
from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox, story

pytestmark = pytest.mark.timeout(300)
CHECK = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
TEST = "def test_double():\n    assert calc.double(2) == 4\n"
FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\ntestpaths = ["tests"]\n',
    "calc.py": "def double(x):\n    return 2 * x\n\n\ndef half(x):\n    return x / 2\n",
    "tests/test_calc.py": f"import calc\n\n\n{TEST}\n\ndef test_half():\n    assert calc.half(4) == 2\n",
    ".gitignore": ".ralph/\n.ralph-session.json\n.ralph-circuit-state.json\n__pycache__/\n",
}
BROKEN = {"calc.py": FILES["calc.py"].replace("2 * x", "2 * x + (x == 2)")}
WITHOUT = FILES["tests/test_calc.py"].replace(f"{TEST}\n\n", "")
PATCHING = """\
import calc
import pytest


@pytest.fixture(autouse=True)
def doubles(monkeypatch):
    monkeypatch.setattr(calc, "double", lambda x: 2 * x)
"""
STEPS = {
    "emptied": {"tests/test_calc.py": FILES["tests/test_calc.py"].replace("== 4", "is not None")},
    "removed": {"tests/test_calc.py": WITHOUT},
    "moved and emptied": {
        "tests/test_calc.py": WITHOUT,
        "tests/test_sums.py": "import calc\n\n\ndef test_double():\n    assert calc.double(2)\n",
    },
    "deselected": {
        "pyproject.toml": FILES["pyproject.toml"]
        + 'addopts = "--deselect tests/test_calc.py::test_double"\n'
    },
    "deselected by a new file": {
        "pytest.ini": "[pytest]\npythonpath = .\naddopts = --deselect tests/test_calc.py::test_double\n"
    },
    "patched by a fixture": {"tests/conftest.py": PATCHING},
}
MOVED = {"tests/test_calc.py": WITHOUT, "tests/test_sums.py": f"import calc\n\n\n{TEST}"}
OF_NONE = FILES["calc.py"].replace("2 * x", "2 * (x or 0)")
TEST_OF_NONE = "\n\ndef test_none():\n    assert calc.double(None) == 0\n"
AGENT = """
for path, text in json.loads((STATE / "works.json").read_text())[STORY].items():
    write(path, text)
    os.utime(path, (time.time() + 2 * START,) * 2)  # same size, same second: stale bytecode
done(words=f"{STORY} is done, start {START}.")
"""


def _feature(number: int) -> dict[str, str]:
    """Honest work with a test of its own."""
    return {
        f"plus_{number}.py": f"def plus(x):\n    return x + {number}\n",
        f"tests/test_plus_{number}.py": f"import plus_{number}\n\n\ndef test_plus():\n"
        f"    assert plus_{number}.plus(5) == {5 + number}\n",
    }


def _played(tmp_path: Path, *works: dict[str, str]) -> tuple[Sandbox, list[Any]]:
    """The verdicts on stories that are done in this way, the last of each."""
    stories = [story(f"US-{number}") for number in range(1, len(works) + 1)]
    settings = '[proof]\nexperiments = "always"\nask_for_tests = "off"\n'
    box = sandbox(tmp_path, AGENT, stories=stories, checks=[CHECK], files=FILES, toml=settings)
    named = {f"US-{number}": work for number, work in enumerate(works, 1)}
    (box.state / "works.json").write_text(json.dumps(named))
    box.env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = box.run("--max-iterations", str(2 * len(works)), timeout=250)
    found = {record.story.id: record.verdict for record in box.records() if record.story}
    assert set(found) == set(named), told(done)
    return box, [found[name] for name in named]


@pytest.mark.parametrize("step", STEPS)
def test_a_story_that_breaks_what_an_earlier_one_left_unwatched_is_shown(
    tmp_path: Path, step: str
) -> None:
    """Its test as it was when the run began fails with its code, and only with that."""
    _, [first, second] = _played(tmp_path, _feature(1) | STEPS[step], _feature(2) | BROKEN)
    assert first.grade is Grade.VERIFIED
    assert second.grade is Grade.CHECKED, second
    [words] = second.look_at
    assert "test_double, as it was when the run began, fails" in words


def test_work_on_what_an_earlier_story_tests_elsewhere_is_verified(tmp_path: Path) -> None:
    """A test that only moved still says what it said."""
    more = {"calc.py": OF_NONE, "tests/test_sums.py": MOVED["tests/test_sums.py"] + TEST_OF_NONE}
    _, [first, second] = _played(tmp_path, _feature(1) | MOVED, more)
    assert (first.grade, second.grade) == (Grade.VERIFIED, Grade.VERIFIED), second


def test_what_an_earlier_story_rightly_expects_otherwise_is_none_of_a_later_one(
    tmp_path: Path,
) -> None:
    """The old test fails without the later story, too."""
    changed = {
        "calc.py": FILES["calc.py"].replace("2 * x", "2 * x + 1"),
        "tests/test_calc.py": FILES["tests/test_calc.py"].replace("== 4", "== 5"),
    }
    more = {"calc.py": changed["calc.py"].replace("x / 2", "(x or 0) / 2")}
    test = "\n\ndef test_half_of_none():\n    assert calc.half(None) == 0\n"
    more["tests/test_calc.py"] = changed["tests/test_calc.py"] + test
    _, [first, second] = _played(tmp_path, changed, more)
    assert (first.grade, second.grade) == (Grade.CHECKED, Grade.VERIFIED), second


def test_nothing_is_proven_where_the_old_tests_cannot_be_tried(tmp_path: Path) -> None:
    """A file too large to be exchanged must not hide that a test was weakened."""
    asset = {"tests/asset.bin": "\0" * 6_000_000}
    _, [verdict] = _played(tmp_path, _feature(1) | BROKEN | STEPS["emptied"] | asset)
    assert verdict.grade is Grade.CHECKED, verdict
    assert any("old tests" in words for words in verdict.reasons)
