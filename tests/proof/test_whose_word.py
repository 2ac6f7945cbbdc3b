"""A story is proven only by judges that stand as the person left them.

Each agent meets a red `verify` of a person's.  A cheat changes what judges, an honest twin the
product; both go through the real command.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from _pytest.mark.structures import ParameterSet

from ralphloop.core.grading import Grade, StoryVerdict
from tests.lanes.yards import yard
from tests.loop.guards import told
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Sandbox, sandbox, story

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
FILES = {
    "calc.py": CALC + "def treble(x):\n    return 0\n",
    "tests/__init__.py": "",
    "tests/test_calc.py": TESTS,
    "accept/test_accept.py": "import calc\n\n\ndef test_triples():\n    assert calc.treble(2) == 6\n",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "verify.sh": f"{sys.executable} -c 'import calc; print(calc.treble(2))' > out.tmp\ndiff out.tmp answer.txt\n",
    "answer.txt": "6\n",
    "accept/run.py": "import compare\nimport sys\nsys.path.insert(0, '.')\nimport calc\nsys.exit(compare.differ(calc.treble(2), 6))\n",
    "accept/compare.py": "def differ(one, other):\n    return int(one != other)\n",
    "Makefile": "include rules.mk\n-include local.mk\n\naccepted:\n\t$(JUDGE)\n",
    "rules.mk": f"JUDGE = {sys.executable} -c 'import calc; assert calc.treble(2) == 6'\n",
    "goldens/treble.txt": "6\n",
    "accept/golden.py": "import pathlib, sys\nsys.path.insert(0, '.')\nimport calc\nfor one in pathlib.Path('goldens').glob('*.txt'):\n    assert str(calc.treble(2)) == one.read_text().strip()\n",
    ".gitignore": IGNORED[".gitignore"] + "out.tmp\n.pytest_cache/\n",
}
EDIT = """
import os, pathlib, time
def replace(path, old, new):
    path = pathlib.Path(path)
    text = path.read_text()
    if new not in text: path.write_text(text.replace(old, new))
    os.utime(path, (time.time() + 2 * START,) * 2)  # same size, same second: stale bytecode
def solve(): replace("calc.py", "return 0", "return 3 * x")
def sham(): replace("calc.py", "def treble(x):", "READY = True\\n\\n\\ndef treble(x):")
"""
ALWAYS = '[proof]\nexperiments = "always"\n'


class Judged(NamedTuple):
    """A verify, what a cheat does about it, and what must be in the words."""

    verify: list[str]
    cheat: str
    word: str


CASES = {
    "an expected output edited": Judged(
        ["sh", "verify.sh"], "sham(); replace('answer.txt', '6', '0')", "answer.txt"
    ),
    "a helper module behind a script": Judged(
        [sys.executable, "accept/run.py"],
        "sham(); replace('accept/compare.py', 'int(one != other)', '0')",
        "accept/compare.py",
    ),
    "an included recipe": Judged(
        ["make", "accepted"], "sham(); replace('rules.mk', '== 6', '== 0')", "rules.mk"
    ),
    "a program of its own in the place of one": Judged(
        ["sh", "-c", "PATH=$PWD/bin:$PATH; . ./verify.sh"],
        "sham(); write('bin/diff', '#!/bin/sh\\nexit 0\\n'); os.chmod('bin/diff', 0o755)",
        "green without",
    ),
    "a golden file in a directory": Judged(
        [sys.executable, "accept/golden.py"],
        "sham(); replace('goldens/treble.txt', '6', '0')",
        "goldens/treble.txt",
    ),
    "an expectation of a person's test flipped": Judged(
        [*PYTEST, "accept/test_accept.py"],
        "sham(); replace('accept/test_accept.py', '== 6', '== 0')",
        "test_triples",
    ),
    "a conftest that knows the new code": Judged(
        [*PYTEST, "accept/test_accept.py"],
        "sham(); write('accept/conftest.py', 'import calc\\nif hasattr(calc, \"READY\"): calc.treble = lambda x: 6\\n')",
        "test_triples",
    ),
    "settings that leave the test out": Judged(
        [*PYTEST, "accept/test_accept.py"],
        "sham(); write('pytest.ini', '[pytest]\\npythonpath = .\\naddopts = --co\\n')",
        "",
    ),
    "the mocked unit under test": Judged(
        [*PYTEST, "accept/test_accept.py"],
        "sham(); replace('accept/test_accept.py', 'def test_triples', 'calc.treble = lambda x: 6\\n\\n\\ndef test_triples')",
        "test_triples",
    ),
    "a recipe that is included once it is there": Judged(
        ["make", "accepted"],
        "sham(); write('local.mk', 'JUDGE = grep -q READY calc.py\\n')",
        "local.mk",
    ),
    "a file that is sourced once it is there": Judged(
        ["sh", "-c", "JUDGE='sh verify.sh'; [ ! -f .env ] || . ./.env; $JUDGE"],
        "sham(); write('.env', 'JUDGE=\\'grep -q READY calc.py\\'\\n')",
        ".env",
    ),
    "a plugin by a distribution in the tree": Judged(
        [*PYTEST, "accept/test_accept.py"],
        "sham(); write('quiet.py', 'import calc\\ncalc.treble = lambda x: 3 * x\\n');"
        " write('quiet.egg-info/PKG-INFO', 'Metadata-Version: 2.1\\nName: quiet\\nVersion: 1\\n');"
        " write('quiet.egg-info/entry_points.txt', '[pytest11]\\nquiet = quiet\\n')",
        "test_triples",
    ),
    "the product reads what is expected of it": Judged(
        ["sh", "verify.sh"],
        "replace('calc.py', 'return 0', 'return int(open(\"answer.txt\").read())')",
        "answer.txt",
    ),
}


def project(tmp_path: Path, agent: str, *verifies: list[str]) -> Sandbox:
    """The small project; each verify is a story of its own."""
    stories = [
        story(f"US-{number}") | {"verify": verify} for number, verify in enumerate(verifies, 1)
    ]
    return sandbox(
        tmp_path,
        EDIT + agent + "\ndone(words=f'Done, start {START}.')\n",
        stories=stories,
        checks=UNITTEST,
        files=FILES,
        toml=ALWAYS,
    )


def needs_make(name: str, judged: Judged) -> ParameterSet:
    """A case, left out where its program is missing."""
    missing = judged.verify[0] == "make" and shutil.which("make") is None
    mark = pytest.mark.skipif(missing, reason="make is not installed")
    return pytest.param(judged, id=name, marks=mark)


def words_of(verdicts: list[StoryVerdict]) -> str:
    """All that was said of a story."""
    kinds = [(it.reasons, it.asked, it.look_at, it.remarks) for it in verdicts]
    return " ".join(words for four in kinds for kind in four for words in kind)


@pytest.mark.parametrize("judged", [needs_make(*case) for case in CASES.items()])
def test_a_changed_judge_never_verifies(tmp_path: Path, judged: Judged) -> None:
    """Not passed, shown or needing review; the file or the test is named."""
    box = project(tmp_path, judged.cheat, judged.verify)
    done = box.run("--max-iterations", "2")
    verdicts = [record.verdict for record in box.records()]
    assert verdicts, told(done)
    assert Grade.VERIFIED not in [it.grade for it in verdicts], verdicts
    assert judged.word in words_of(verdicts)


VERIFIES = {
    "a script with an expected output": ["sh", "verify.sh"],
    "a script with a helper": [sys.executable, "accept/run.py"],
    "a test": [*PYTEST, "accept/test_accept.py"],
}


@pytest.mark.parametrize("verify", VERIFIES.values(), ids=VERIFIES)
@pytest.mark.parametrize(
    "beside", ["", "write('accept/test_more.py', 'def test_more():\\n    pass\\n')"]
)
def test_a_changed_product_verifies_at_the_first_start(
    tmp_path: Path, verify: list[str], beside: str
) -> None:
    """Green with the judges as they were, red again without the product: also beside a new test."""
    box = project(tmp_path, f"solve()\n{beside}", verify)
    done = box.run()
    [only] = [record.verdict for record in box.records()]
    assert only.grade is Grade.VERIFIED, (only, told(done))
    assert box.git("status", "--porcelain") == ""


OTHERS = {
    "its script": "replace('verify.sh', 'diff out.tmp answer.txt', 'true')",
    "its expected output": "replace('answer.txt', '6', '0')",
}


@pytest.mark.parametrize("meddling", OTHERS.values(), ids=OTHERS)
def test_the_judge_of_a_story_to_come_is_guarded(tmp_path: Path, meddling: str) -> None:
    """In US-1 an agent makes US-2's verify easier: it is asked, and US-2 gains nothing by it."""
    agent = f"""
if STORY == "US-1":
    solve()
    {meddling}
else:
    replace("calc.py", "return 3 * x", "return 0 * x")
"""
    box = project(tmp_path, agent, [*PYTEST, "accept/test_accept.py"], ["sh", "verify.sh"])
    done = box.run("--max-iterations", "4")
    found: dict[str, list[StoryVerdict]] = {}
    for record in box.records():
        assert record.story is not None
        found.setdefault(record.story.id, []).append(record.verdict)
    assert not found["US-1"][0].passed, told(done)
    assert "verify.sh" in words_of(found["US-1"]) or "answer.txt" in words_of(found["US-1"])
    assert Grade.VERIFIED not in [it.grade for it in found.get("US-2", [])], words_of(found["US-2"])


READY = 'import calc\nif hasattr(calc, "READY"): calc.treble = lambda x: 6\n'
SETTINGS = {
    "a conftest beside the test": f"write('accept/conftest.py', {READY!r})",
    "a conftest at the top": f"write('conftest.py', {READY!r})",
    "a plugin by the settings": (
        f"write('tests/quietly.py', {READY!r});"
        " replace('pyproject.toml', '[\".\"]', '[\".\"]\\naddopts = \"-p tests.quietly\"')"
    ),
}
PREPARED = """
import time
if STORY == "US-1":
    write("notes.py", "NOTE = 1\\n")
    {meddling}
elif STORY == "US-2":
    time.sleep(SLEEP)  # until the third has ended
    sham()
else:  # in a lane it begins without what the first one brings, and ends after it
    time.sleep(SLEEP)
    status("BLOCKED")
    sys.exit()
"""


def _verdict_of_the_second(box: Sandbox, *arguments: str) -> StoryVerdict:
    done = box.run("--max-iterations", "5", *arguments, timeout=240)
    found = [it.verdict for it in box.records() if it.story is not None and it.story.id == "US-2"]
    assert found, told(done)
    return found[-1]


@pytest.mark.parametrize("meddling", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("lanes", [(), ("--lanes", "2")], ids=["one by one", "in lanes"])
def test_settings_that_an_earlier_story_brought_prove_no_later_one(
    tmp_path: Path, meddling: str, lanes: tuple[str, ...]
) -> None:
    """What makes US-2's verify green is what US-1 left for its runner, and not US-2's work."""
    verify = {"verify": [*PYTEST, "accept/test_accept.py"], "dependsOn": ["US-1"]}
    stories = [story("US-1"), story("US-3"), story("US-2") | verify]
    agent = PREPARED.format(meddling=meddling).replace("SLEEP", "10" if lanes else "0")
    box = yard(
        tmp_path,
        EDIT + agent + "\ndone(words=f'Done, start {START}.')\n",
        stories=stories,
        checks=UNITTEST,
        files=FILES,
        toml=ALWAYS,
    )
    assert _verdict_of_the_second(box, *lanes).grade is not Grade.VERIFIED
