"""The question at a red baseline: it can be seen and answered, and nobody waits for it for ever."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralphloop.cli import output
from ralphloop.proc.run import ourselves
from tests.loop.projects import IGNORED, UNITTEST, Sandbox, sandbox, story

QUESTION = "Start anyway? [y/N]"
RED = """\
import unittest

import calc


class Calc(unittest.TestCase):
    def test_doubles(self):
        self.assertEqual(calc.double(2), 4)

    def test_halves(self):
        self.assertEqual(calc.half(4), 2)
"""
MENDS = "write('calc.py', 'def double(x): return 2 * x\\ndef half(x): return x // 2\\n'); done()"
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """`ralph run` on a terminal of its own, and what a person sees there."""

    def __init__(self, box: Sandbox, *arguments: str) -> None:
        ours, theirs = pty.openpty()
        env = {**box.environment(), "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
        env.pop("NO_COLOR", None)
        self.descriptor = ours
        self.process = subprocess.Popen(
            [*ourselves(), "run", *arguments],
            cwd=box.root,
            env=env,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.bytes = b""

    @property
    def text(self) -> str:
        """Everything that was drawn, without colours and cursor movements."""
        return _CODES.sub("", self.bytes.decode("utf-8", "replace")).replace("\r", "")

    def look(self, seconds: float) -> None:
        """Take in what is drawn within this time."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.descriptor], [], [], left)[0]:
                try:
                    self.bytes += os.read(self.descriptor, 65536)
                except OSError:  # nobody is on the other side any more
                    return

    def see(self, words: str, timeout: float = 60) -> None:
        """Look until these words are there."""
        until = time.monotonic() + timeout
        while words not in self.text:
            assert time.monotonic() < until, self.text
            self.look(0.1)

    def type(self, words: str) -> None:
        """Press these keys."""
        os.write(self.descriptor, words.encode())

    def ends(self, timeout: float = 60) -> int:
        """The exit code, once it has one."""
        until = time.monotonic() + timeout
        while self.process.poll() is None:
            assert time.monotonic() < until, self.text
            self.look(0.1)
        self.look(0.2)
        return self.process.returncode


@pytest.fixture
def red(tmp_path: Path) -> Sandbox:
    """A project whose tests are red before any work."""
    files = {
        **IGNORED,
        "calc.py": "def double(x): return 2 * x\n",
        "tests/__init__.py": "",
        "tests/test_calc.py": RED,
    }
    listed = [story("US-1", "Halve a number")]
    return sandbox(tmp_path, MENDS, stories=listed, checks=UNITTEST, files=files)


@pytest.fixture
def terminal(red: Sandbox, request: pytest.FixtureRequest) -> Iterator[Terminal]:
    """A run of it, up to the question."""
    shown = Terminal(red, *getattr(request, "param", ()))
    yield shown
    if shown.process.poll() is None:
        shown.process.kill()
        shown.process.wait()
    os.close(shown.descriptor)


IN_BOTH = pytest.mark.parametrize(
    "terminal", [(), ("--lanes", "1")], ids=["checkout", "lanes"], indirect=True
)


@IN_BOTH
def test_the_question_names_check_and_tests_and_nothing_is_drawn_over_it(
    red: Sandbox, terminal: Terminal
) -> None:
    """It is the last thing on the screen, with its choices, and no clock ticks below it."""
    terminal.see(QUESTION)
    asked = terminal.text
    words = " ".join(asked.split())
    is_red = "python3 -m unittest discover -s tests -t . is red before any work"
    assert f"{is_red}: tests/test_calc.py::Calc::test_halves. {QUESTION}" in words
    terminal.look(2.5)
    assert terminal.text == asked
    terminal.type("y\n")
    assert terminal.ends() == 0, terminal.text
    assert red.starts == 1
    assert "US-1 passed" in terminal.text


@pytest.mark.parametrize("answer", ["n\n", "\n", "maybe\n"], ids=["no", "enter", "else"])
def test_anything_but_yes_ends_as_without_a_terminal(
    red: Sandbox, terminal: Terminal, answer: str
) -> None:
    """No agent is started, and the way out is said."""
    terminal.see(QUESTION)
    terminal.type(answer)
    assert terminal.ends() == 66, terminal.text
    assert red.starts == 0
    assert "--allow-red" in terminal.text


def test_what_was_typed_before_it_was_asked_is_no_answer(red: Sandbox, terminal: Terminal) -> None:
    """A key that was meant for something else starts no night."""
    terminal.see("getting ready")
    terminal.type("y\n")
    terminal.see(QUESTION)
    terminal.look(1.0)
    assert terminal.process.poll() is None
    assert red.starts == 0
    terminal.type("n\n")
    assert terminal.ends() == 66


def test_ctrl_c_at_the_question_ends_it(red: Sandbox, terminal: Terminal) -> None:
    """It is an interruption like any other."""
    terminal.see(QUESTION)
    terminal.process.send_signal(2)
    assert terminal.ends() == 130, terminal.text
    assert red.starts == 0


def test_no_answer_in_time_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is there: it does not wait for ever."""
    ours, theirs = pty.openpty()
    try:
        with os.fdopen(theirs) as stream:
            monkeypatch.setattr("sys.stdin", stream)
            began = time.monotonic()
            assert output.answers_yes("Start anyway?", within_s=0.3) is False
            assert 0.3 <= time.monotonic() - began < 5
            assert output.ANSWER_S == 60
    finally:
        os.close(ours)


def test_without_a_terminal_nothing_is_asked(red: Sandbox) -> None:
    """It ends with 66 and the same words as ever."""
    done = red.run()
    assert done.code == 66
    assert "[y/N]" not in done.text
    assert "--allow-red" in done.err
