"""A second opinion is given the whole change: no attribute and no padding keeps a line from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.loop.guards import told
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Done, Sandbox, sandbox

pytestmark = pytest.mark.attack

HALVE = """
write("calc.py", open("calc.py").read() + "\\n\\ndef halve(x):\\n    return x // 2  # the line\\n")
write("tests/test_halve.py", "import unittest, calc\\nclass H(unittest.TestCase):\\n    def test_halves(self):\\n        self.assertEqual(calc.halve(4), 2)\\n")
"""
DOUBTER = """#!/usr/bin/env python3
import json, pathlib, sys
given = json.load(sys.stdin)
with open({kept!r}, "a") as file:
    file.write(json.dumps(given) + "\\n")
if {doubts!r} and {doubts!r} in given["diff"]:
    print("that line is wrong")
    sys.exit(1)
"""


def doubted(
    tmp_path: Path, agent: str, *, doubts: str = "", lanes: int = 0
) -> tuple[Sandbox, Done, list[dict[str, object]]]:
    """A run with a command that keeps what it is given, and doubts a line."""
    doubter = tmp_path / "doubt.py"
    kept = tmp_path / "given"
    doubter.write_text(DOUBTER.format(kept=str(kept), doubts=doubts))
    doubter.chmod(0o755)
    files = {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS, **IGNORED}
    box = sandbox(tmp_path, agent + "done()\n", checks=UNITTEST, files=files)
    config = box.root / "ralph.toml"
    line = f"doubt = [[{json.dumps(str(doubter))}]]\n"
    config.write_text(config.read_text().replace("[limits]", line + "[limits]"))
    box.git("commit", "-qam", "doubt")
    done = box.run("--max-iterations", "2", "--lanes", str(lanes))
    return box, done, [json.loads(text) for text in kept.read_text().splitlines()]


@pytest.mark.parametrize("lanes", [0, 2])
@pytest.mark.parametrize(
    "attributes", ["*.py -diff", "*.py binary", "* diff=none", "*.py diff=blind"]
)
def test_no_attribute_hides_a_line(tmp_path: Path, attributes: str, lanes: int) -> None:
    """What the agent says of its files in .gitattributes is not what they are."""
    agent = f'write(".gitattributes", "{attributes}\\n")\n{HALVE}'
    _, done, given = doubted(tmp_path, agent, doubts="return x // 2  # the line", lanes=lanes)
    assert "# the line" in str(given[0]["diff"]), told(done)
    assert "that line is wrong" in done.text


def test_a_padded_change_is_given_in_parts(tmp_path: Path) -> None:
    """Each part goes to the doubter, its first and its last line are among them."""
    padding = 'write("aaa.txt", "".join(f"{n} padding\\n" for n in range(60_000)))\n'
    _, done, given = doubted(tmp_path, padding + HALVE)
    assert done.code == 0, told(done)
    assert len(given) > 1
    assert [one["part"] for one in given] == list(range(1, len(given) + 1))
    assert {one["parts"] for one in given} == {len(given)}
    whole = "".join(str(one["diff"]) for one in given)
    for line in ("+0 padding", "+59999 padding", "# the line"):
        assert line in whole
    assert all(len(str(one["diff"])) <= 400_000 for one in given)


def test_a_doubt_about_the_last_part_counts(tmp_path: Path) -> None:
    """Padding in front changes nothing."""
    padding = 'write("aaa.txt", "".join(f"{n} padding\\n" for n in range(60_000)))\n'
    _, done, _ = doubted(tmp_path, padding + HALVE, doubts="# the line")
    assert "that line is wrong" in done.text


def test_a_change_too_large_to_be_given_is_said_to_be(tmp_path: Path) -> None:
    """It passes at most as one that somebody should look at."""
    padding = 'for n in range(30):\n    write(f"aaa{n}.txt", "padding\\n" * 50_000)\n'
    box, done, given = doubted(tmp_path, padding + HALVE)
    assert 1 < len(given) <= 50
    assert "too large" in done.text
    assert box.records()[-1].verdict.grade != "verified"


def test_what_is_no_text_is_named_and_an_honest_change_is_one_part(tmp_path: Path) -> None:
    """A picture is one line; ordinary work is asked about once."""
    agent = HALVE + 'pathlib.Path("logo.png").write_bytes(b"\\x89PNG\\x00" + bytes(500_000))\n'
    box, done, given = doubted(tmp_path, agent)
    assert done.code == 0, told(done)
    [only] = given
    assert (only["part"], only["parts"]) == (1, 1)
    assert "logo.png" in str(only["diff"])
    assert "not text" in str(only["diff"])
    assert len(str(only["diff"])) < 5_000
    assert box.records()[-1].verdict.grade == "verified"
