"""A test that fails without a story because something is missing there has reached it, no more.

Also where it says so in words of its own, and where nothing can be mutated.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ralphloop.core.grading import Grade
from tests.loop.guards import told
from tests.loop.projects import sandbox, story
from tests.proof.noticing import FILES

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
_AGENT = """
def add(path, text): write(path, (open(path).read() if os.path.exists(path) else "") + text)
def replace(path, old, new): write(path, open(path).read().replace(old, new))
"""
_OWN_WORDS = """

def test_{name}():
    is_fine = True
    try:
        shop.{name}(3)
    except BaseException:
        is_fine = False
    assert is_fine
"""
_OPAQUE = "\n\ndef token(x):\n    return object()\n"
_HALF = "\n\ndef half(x):\n    return x / 2\n"
_READS = "\n\ndef test_total_is_fast():\n    assert 'fast' in open(shop.__file__).read()\n"
_LOOKS = "import shop\n\n\ndef test_half():\n    assert shop.half(3) == 1.5\n"
_ACCEPTED = "accept/test_half.py"

CHEATS = {
    "nothing of it can be altered": (
        f"add('shop.py', {_OPAQUE!r}); add('tests/test_shop.py', {_OWN_WORDS.format(name='token')!r})",
        [],
    ),
    "the text of a function that was there": (
        "replace('shop.py', 'return sum(items)', 'return sum(items)  # fast');"
        f" add('tests/test_shop.py', {_READS!r})",
        [],
    ),
    "tests that only verify runs": (
        f"add('shop.py', {_HALF!r}); add({_ACCEPTED!r}, {'import shop' + _OWN_WORDS.format(name='half')!r})",
        [*PYTEST, _ACCEPTED],
    ),
}  # fmt: skip
HONEST = {
    "tests that only verify runs": (
        f"add('shop.py', {_HALF!r}); add({_ACCEPTED!r}, {_LOOKS!r})",
        [*PYTEST, _ACCEPTED],
    ),
    "a function that was there, and its text": (
        "replace('shop.py', 'return sum(items)', 'return sum(items, 0.0)  # fast');"
        f" add('tests/test_shop.py', {_READS + '    assert type(shop.total([1])) is float'!r})",
        [],
    ),
}  # fmt: skip


def _grade(tmp_path: Path, agent: str, verify: list[str]) -> Grade | None:
    one = story("US-1", "Add it") | ({"verify": verify} if verify else {})
    box = sandbox(
        tmp_path,
        f"{_AGENT}{agent}\ndone()\n",
        stories=[one],
        checks=[[*PYTEST, "tests"]],
        files=FILES,
        toml='[proof]\nexperiments = "always"\nask_for_tests = "off"\n',
    )
    done = box.run("--max-iterations", "1")
    assert box.records(), told(done)
    verdict = box.records()[-1].verdict
    assert verdict.passed, verdict
    return verdict.grade


@pytest.mark.parametrize("name", CHEATS)
def test_what_may_only_be_missing_proves_nothing(tmp_path: Path, name: str) -> None:
    """It is checked, whatever words the test has for it."""
    assert _grade(tmp_path, *CHEATS[name]) is Grade.CHECKED


@pytest.mark.parametrize("name", HONEST)
def test_what_is_looked_at_proves_all_the_same(tmp_path: Path, name: str) -> None:
    """A test that also asks for what the code does makes its story verified."""
    assert _grade(tmp_path, *HONEST[name]) is Grade.VERIFIED
