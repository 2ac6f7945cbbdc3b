"""A story that renames the code it changes: its old tests are tried with the new name in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.guards import told
from tests.loop.projects import CALC, TESTS, UNITTEST, sandbox

RENAMES = """
def sh(*words): subprocess.run(words, check=True)
if START > 1: done(); sys.exit()
sh("git", "mv", "calc.py", "sums.py")
sh("git", "mv", "tests/test_calc.py", "tests/test_sums.py")
code, tests = pathlib.Path("sums.py"), pathlib.Path("tests/test_sums.py")
code.write_text(code.read_text() + "def triple(x):\\n    return 3 * x\\n\\n\\n")
more = "    def test_triples(self):\\n        self.assertEqual(sums.triple(2), 6)\\n\\n"
tests.write_text(tests.read_text().replace("calc", "sums") + more)
"""
NOT_ASKED = '[proof]\nask_for_tests = "off"\n'
COMMITS = 'sh("git", "add", "-A"); sh("git", "commit", "-qm", "renamed"); done()\n'
# The old test says 4: it is bent to what the broken code says, under cover of the rename.
BREAKS = """
code.write_text(code.read_text().replace("return 2 * x", "return 5 * x"))
tests.write_text(tests.read_text().replace("sums.double(2), 4", "sums.double(2), 10"))
"""
# What was there before and is only called otherwise is no work of the story: nothing proves it.
LOOKS_AT_NOTHING = """
tests.write_text(tests.read_text().replace("self.assertEqual(sums.triple(2), 6)", "sums.triple(2)"))
"""


@pytest.mark.parametrize(
    "agent, grade, word",
    [
        pytest.param(RENAMES + COMMITS, "verified", "proved by test_triples", id="honest"),
        pytest.param(RENAMES + BREAKS + COMMITS, "needs review", "test_doubles", id="bent"),
        pytest.param(RENAMES + LOOKS_AT_NOTHING + COMMITS, "checked", "not proven", id="vacuous"),
    ],
)
def test_old_tests_are_tried_under_the_new_name(
    tmp_path: Path, agent: str, grade: str, word: str
) -> None:
    """A moved test that says the same is no finding; one that says something else is shown."""
    files = {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS}
    box = sandbox(tmp_path, agent, checks=UNITTEST, files=files, toml=NOT_ASKED)
    done = box.run()
    assert done.code == 0, told(done)
    last = box.records()[-1].verdict
    assert last.grade == grade, told(done)
    assert word in "; ".join((*last.reasons, *last.look_at))
    assert not [words for words in last.look_at if "gone together" in words or "compared" in words]
