"""Tests that start a program and look at what it prints prove a story; how it ended proves nothing.

All stories are handed in one after the other, in one run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ralphloop.core.grading import Grade
from tests.loop.guards import told
from tests.loop.projects import IGNORED, sandbox, story

_MAIN = """\
import sys


def main(words):
    command, *rest = words
    if command == "hello":
        print("hello " + rest[0])
        return 0
    print("no such command", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""
_TESTS = """\
import subprocess
import sys


def run(*words):
    return subprocess.run([sys.executable, "-m", "tool", *words], stdout=subprocess.PIPE)


def test_hello():
    ended = run("hello", "you")
    assert ended.returncode == 0
    assert ended.stdout == b"hello you\\n"
"""
_FILES = {"tool/__init__.py": "", "tool/__main__.py": _MAIN, "tests/test_cli.py": _TESTS, **IGNORED}
_END = '    print("no such command"'
_SCRIPT = """\
import sys


def {name}(words):
    return {what}


if __name__ == "__main__":
    print({name}(sys.argv[1:]))
"""
_STARTS = """\
import subprocess
import sys


def test_{name}():
    ended = subprocess.run([sys.executable, "scripts/{name}.py", "1", "2"], stdout=subprocess.PIPE)
    assert ended.returncode == 0
"""


def _command(name: str, what: str, asserted: str) -> dict[str, list[str]]:
    """Another command in the one function that there is, and its test."""
    code = f'    if command == "{name}":\n        print({what})\n        return 0\n{_END}'
    test = (
        f'from test_cli import run\n\n\ndef test_{name}():\n    ended = run("{name}", "1", "2")\n'
    )
    return {
        "tool/__main__.py": [_END, code],
        f"tests/test_{name}.py": ["", f"{test}    assert ended.returncode == 0\n{asserted}"],
    }


def _script(name: str, what: str, asserted: str) -> dict[str, list[str]]:
    """A program of its own, and its test."""
    return {
        f"scripts/{name}.py": ["", _SCRIPT.format(name=name, what=what)],
        f"tests/test_{name}.py": ["", _STARTS.format(name=name) + asserted],
    }


_HONEST = {
    "US-1": _command("count", "len(rest)", "    assert ended.stdout.strip() == b'2'\n"),
    "US-2": _script("total", "sum(map(int, words))", "    assert ended.stdout == b'3\\n'\n"),
    # It fell over before: that it does no longer is what was asked for.
    "US-3": {
        "tool/__main__.py": ['rest[0])', 'rest[0] if rest else "hello")'],
        "tests/test_cli.py": [
            "\n\ndef test_hello",
            '\n\ndef test_nobody():\n    assert run("hello").returncode == 0\n\n\ndef test_hello',
        ],
    },
}  # fmt: skip
_CHEATS = {
    "US-4": _command("last", "rest[0]", ""),
    "US-5": _script("mean", "len(words)", ""),
    # One that is altered makes the program fall over: the test sees no more than that.
    "US-6": _script("pick", "[*words, 1][len(words)]", "    assert ended.stdout\n"),
}
_AGENT = """
for path, (old, new) in json.loads((STATE / "works.json").read_text())[STORY].items():
    before = pathlib.Path(path).read_text() if os.path.exists(path) else ""
    write(path, before.replace(old, new, 1) if old else before + new)
done(words=f"{STORY} is done.")
"""


@pytest.mark.timeout(600)
def test_what_a_program_prints_is_proof_and_how_it_ends_is_none(tmp_path: Path) -> None:
    """New commands, new scripts and a crash that is gone; their twins ask for a good end alone."""
    works = _HONEST | _CHEATS
    box = sandbox(
        tmp_path,
        _AGENT,
        stories=[story(name, f"Add {name}") for name in works],
        checks=[[sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]],
        files=_FILES,
        toml='[proof]\nexperiments = "always"\nask_for_tests = "off"\n',
    )
    box.env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    (box.state / "works.json").write_text(json.dumps(works))
    done = box.run("--max-iterations", "12", timeout=500)
    verdicts = {it.story.id: it.verdict for it in box.records() if it.story is not None}
    assert all(one.passed for one in verdicts.values()), told(done)
    wanted = dict.fromkeys(_HONEST, Grade.VERIFIED) | dict.fromkeys(_CHEATS, Grade.CHECKED)
    words = {name: one.reasons for name, one in verdicts.items()}
    assert {name: one.grade for name, one in verdicts.items()} == wanted, words
    assert "a command, which says nothing about what it does (test_last)" in words["US-4"][-1]
