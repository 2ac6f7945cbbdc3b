"""Settings of the documentation take no mutants from the product."""

from __future__ import annotations

import sys
from pathlib import Path

from ralphloop.core.grading import Grade
from tests.loop.guards import told
from tests.loop.projects import sandbox, story

AGENT = """
rows = (f"value_{number} = {number}" for number in range(400))
write("docs/conf.py", chr(10).join(rows))
write("shop.py", "def half(x):" + chr(10) + "    return x / 2" + chr(10))
write("tests/test_shop.py", "import shop" + chr(10) * 3 + "def test_half():" + chr(10) + "    assert shop.half(9) == 4.5" + chr(10))
done(words=f"{STORY} is done.")
"""


def test_a_long_conf_py_hides_no_function(tmp_path: Path) -> None:
    """It comes first by its name, and is tried last."""
    box = sandbox(
        tmp_path,
        AGENT,
        stories=[story("US-1", "Halve a price")],
        checks=[[sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]],
        files={
            "docs/conf.py": "project = 'shop'\n",
            "tests/test_first.py": "def test_one():\n    assert 1\n",
            "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
        },
        toml='[proof]\nask_for_tests = "off"\n',
    )
    box.env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = box.run("--max-iterations", "2", timeout=300)
    [record] = box.records()
    assert record.verdict.grade is Grade.VERIFIED, told(done)
    assert "half()" in record.verdict.reasons[0]
