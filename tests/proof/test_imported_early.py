"""A product that pytest imports for its own settings is watched like any other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ralphloop.core.grading import Grade
from tests.loop.guards import told
from tests.loop.projects import sandbox
from tests.proof.noticing import FILES

_SETTINGS = """\
[tool.pytest.ini_options]
pythonpath = ["."]
filterwarnings = ["error", "ignore::shop.ShopWarning"]
"""
_FILES = {
    **FILES,
    "shop.py": "class ShopWarning(UserWarning):\n    pass\n\n\ndef total(items):\n    return sum(items)\n",
    "pyproject.toml": _SETTINGS,
}
_AGENT = """
HALF = "\\n\\ndef half(x):\\n    if x is None:\\n        return 0\\n    return x / 2\\n"
TEST = "\\n\\ndef test_half():\\n    assert shop.half(3) == 1.5\\n"
for path, text in (("shop.py", HALF), ("tests/test_shop.py", TEST)):
    write(path, pathlib.Path(path).read_text() + text)
done(words="half() is there.")
"""


@pytest.mark.timeout(120)
def test_a_filter_of_warnings_hides_nothing_that_tests_run(tmp_path: Path) -> None:
    """The new function is noticed by its test, and only the line that no test runs is unwatched."""
    box = sandbox(
        tmp_path,
        _AGENT,
        checks=[[sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]],
        files=_FILES,
        toml='[proof]\nexperiments = "always"\nask_for_tests = "off"\n',
    )
    box.env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = box.run("--max-iterations", "2", timeout=100)
    verdict = box.records()[-1].verdict
    assert verdict.grade is Grade.VERIFIED, told(done)
    assert verdict.reasons[-1].startswith("proved by test_half: it notices if half()")
    assert verdict.remarks == ("1 of 2 changed lines is watched by no test: shop.py:11",)
