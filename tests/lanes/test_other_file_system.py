"""Lanes on another file system than the checkout: nothing is left untried for that."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lanes.yards import yard
from tests.loop.guards import told
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, story
from tests.loop.test_stories import known_grades

AGENT = """
calc, tests = pathlib.Path("calc.py"), pathlib.Path("tests/test_calc.py")
def add(path, text): path.write_text(path.read_text() + text)
add(calc, "def triple(x):\\n    return 3 * x\\n\\n\\n")
calc.write_text(calc.read_text().replace("2 * x", "x * 2 if x != 7 else 15"))
add(tests, "    def test_seven(self):\\n        self.assertEqual(calc.double(7), 15)\\n\\n")
done()
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory on another file system; skipped where there is none."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system that anybody may write to")
    if not os.access(memory, os.W_OK):
        pytest.skip("the second file system is read-only")
    with tempfile.TemporaryDirectory(dir=memory) as place:
        yield Path(place)


def test_a_story_is_tried_as_anywhere_else(tmp_path: Path, elsewhere: Path) -> None:
    """Its test runs on the old code, and proves it."""
    box = yard(
        tmp_path,
        AGENT,
        stories=[story("US-1")],
        checks=UNITTEST,
        files={"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS, **IGNORED},
        toml=f'[lanes]\nwhere = "{elsewhere}"\n[proof]\nexperiments = "always"\n',
    )
    done = box.run("--lanes", "1")
    assert done.code == 0, told(done)
    assert known_grades(box)["US-1"] == "verified", told(done)
