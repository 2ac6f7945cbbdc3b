"""What is wrong with the command of a check, as far as its words or its output tell.  Pure.

Checks are run without a shell: `cd x && make` starts a program called cd, if there is one.  What
joins commands never works and stops a run; what might be a word of some program (`|`, `>`) is only
held against a check that is red.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

_BUILTINS = frozenset({"cd", "export", "source", ".", "alias", "ulimit", "umask", "unset"})
_JOINS = frozenset({"&&", "||"})
_PIPES = frozenset({"|", ">", ">>", "<", "2>", "2>&1", "&>", "&"})
_NO_MODULE = re.compile(r"No module named ['\"]?([\w.]{1,100})")
_MOST_LINES = 12
_LONGEST_LINE = 200


class Trouble(NamedTuple):
    """What is wrong, and what to do about it."""

    words: str
    fix: str


def cannot_start(argv: Sequence[str], *, found: bool) -> Trouble | None:
    """Why no run of this command can ever prove anything."""
    if joins := [word for word in argv if word in _JOINS] or [argv[0]] * (argv[0] in _BUILTINS):
        return _no_shell(argv, joins[0])
    if found:
        return None
    fix = f"install {argv[0]}, put it on PATH, or change checks.commands"
    if "/" in argv[0]:
        fix = "change checks.commands, or run with --allow-red if a story is to make it"
    return Trouble(f"{argv[0]} was not found", fix)


def may_need_shell(argv: Sequence[str]) -> Trouble | None:
    """Words that a shell would have understood; some program may mean them."""
    pipes = (word for word in argv if word in _PIPES)
    return _no_shell(argv, word) if (word := next(pipes, "")) else None


def why_red(argv: Sequence[str], output: str) -> Trouble | None:
    """What no story will make better; None where the work itself may be red."""
    if trouble := may_need_shell(argv):
        return trouble
    missing = _NO_MODULE.search(output)
    if missing and "-m" in argv[:-1] and argv[argv.index("-m") + 1] == missing[1]:
        fix = f"install {missing[1]} for {argv[0]}, or take the check out of checks.commands"
        return Trouble(missing[0], fix)
    return None


def last_lines(output: str) -> list[str]:
    """The end of an output, as much as fits on a screen."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return [line[:_LONGEST_LINE] for line in lines[-_MOST_LINES:]]


def _no_shell(argv: Sequence[str], word: str) -> Trouble:
    line = " ".join(part if part in _JOINS | _PIPES else shlex.quote(part) for part in argv)
    in_shell = json.dumps(["sh", "-c", line], ensure_ascii=False)
    words = f"no shell is used here, so `{word}` is only a word"
    return Trouble(words, f"make each command an entry of its own, or ask for a shell: {in_shell}")
