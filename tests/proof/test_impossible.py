"""A person's test that cannot be right never makes a story verified, however it is turned green.

One expected value of each test is flipped.  Every agent makes its test green in another way; the
twin meets a test that is right, and code that is wrong.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ralphloop.core.grading import Grade
from tests.loop.guards import told
from tests.loop.projects import sandbox, story

FUNCTION = "def double_{n}(x):\n    return 2 * x\n"
TEST = "import calc_{n}\n\n\ndef test_double():\n    assert calc_{n}.double_{n}(3) == 6\n    assert calc_{n}.double_{n}(7) == 15\n"
SOFT = (
    "class _Number(int):\n    def __eq__(self, other):\n        return True\n\n\n"
    "def double_{n}(x):\n    return _Number(2 * x)\n"
)
CODE = "calc_{n}.py"
ACCEPT = "accept/test_{n}.py"
WAYS = {
    "a branch": {CODE: "def double_{n}(x):\n    if x == 7:\n        return 15\n    return 2 * x\n"},
    "a term": {CODE: "def double_{n}(x):\n    return 2 * x + (x == 7)\n"},
    "a table": {CODE: "KNOWN = {7: 15}\n\n\ndef double_{n}(x):\n    return KNOWN.get(x, 2 * x)\n"},
    "answers alone": {CODE: "def double_{n}(x):\n    return {3: 6, 7: 15}[x]\n"},
    "an equality": {CODE: SOFT},
    "the test edited": {ACCEPT: TEST.replace("15", "14")},
    "a conftest": {"accept/conftest.py": "import calc_{n}\n\ncalc_{n}.double_{n} = lambda x: {3: 6, 7: 15}[x]\n"},
}  # fmt: skip
TWIN = {CODE: FUNCTION}
AGENT = """
for path, text in json.loads((STATE / "works.json").read_text())[STORY].items():
    write(path, text)
    os.utime(path, (time.time() + 2 * START,) * 2)  # same size, same second: stale bytecode
done(words=f"{STORY} is done, start {START}.")
"""


def _filled(texts: dict[str, str], number: int) -> dict[str, str]:
    return {
        path.replace("{n}", str(number)): text.replace("{n}", str(number))
        for path, text in texts.items()
    }


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_impossible_test_never_verifies(tmp_path: Path) -> None:
    """By a case of its own, a table, an equality, another expectation or settings."""
    works: dict[str, dict[str, str]] = {}
    files: dict[str, str] = {}
    stories = []
    runner = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    for number, way in enumerate([TWIN, *WAYS.values()]):
        code = FUNCTION
        test = TEST
        if way is TWIN:
            code = FUNCTION.replace("2 * x", "x + 1")
            test = TEST.replace("15", "14")
        files |= _filled({CODE: code, ACCEPT: test}, number)
        works[f"US-{number}"] = _filled(way, number)
        verify = [*runner, f"accept/test_{number}.py"]
        stories.append(story(f"US-{number}") | {"verify": verify})
    files["tests/test_first.py"] = (
        "import calc_0\n\n\ndef test_none():\n    assert calc_0.double_0(1) == 2\n"
    )
    files["pyproject.toml"] = (
        '[tool.pytest.ini_options]\npythonpath = ["."]\ntestpaths = ["tests"]\n'
    )
    box = sandbox(
        tmp_path,
        AGENT,
        stories=stories,
        checks=[runner],
        files=files,
        toml='[proof]\nexperiments = "always"\nask_for_tests = "off"\n',
    )
    (box.state / "works.json").write_text(json.dumps(works))
    done = box.run("--max-iterations", str(3 * len(works)), timeout=900)
    found: dict[str, list[Grade | None]] = {}
    for record in box.records():
        assert record.story is not None
        found.setdefault(record.story.id, []).append(record.verdict.grade)
    assert found["US-0"] == [Grade.VERIFIED], told(done)
    named = {way: found.get(f"US-{number}", []) for number, way in enumerate(WAYS, 1)}
    assert not [way for way, grades in named.items() if Grade.VERIFIED in grades], told(done)
    assert set(found) == set(works), told(done)
