"""Shell scripts, recipes and package scripts, read as text: which commands stand in them.  Pure.

As far as that can be told without a shell; what cannot is no command, never a guess.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import NamedTuple

SHELLS = frozenset("sh bash dash zsh ash ksh . source".split())
_LONGEST_LINE = 20_000
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w{0,99})=(.*)", re.DOTALL)
_STEP_OVER = frozenset(
    "env cross-env cross-env-shell exec command time nice nohup stdbuf if then do else !".split()
)
_ENDS = frozenset({"&&", "||", ";", "|", "&", ";;", "\n"})


def bare(argv: tuple[str, ...], env: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command without what stands before it, and the environment that was set there."""
    given, at = dict(env), 0
    while at < len(argv):
        if found := _ASSIGNMENT.fullmatch(argv[at]):
            given[found[1]] = found[2]
        elif PurePosixPath(argv[at]).name not in _STEP_OVER:
            break
        at += 1
    return argv[at:], given


def script_names(words: Sequence[str]) -> tuple[str, ...]:
    """The script of package.json that a package manager is told to run."""
    plain = [word for word in words if not word.startswith("-")]
    if any(word.startswith(("-w", "--workspace", "--prefix", "-C", "--filter")) for word in words):
        return ()  # somewhere else
    if plain[:1] in (["run"], ["run-script"], ["exec"], ["x"]):
        return tuple(plain[1:2])
    return tuple("test" if word == "t" else word for word in plain[:1])


def is_shell(text: str) -> bool:
    first = text.partition("\n")[0]
    return first.startswith("#!") and any(
        first.rstrip().endswith(shell) for shell in SHELLS - {"."}
    )


def commands(text: str) -> Iterator[tuple[str, ...]]:
    """The commands in a shell script, as far as they can be told apart without a shell."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        with suppress(ValueError):  # an open quote: the rest of the line is unknown
            for word in lexer:
                if word in _ENDS or set(word) <= set("()"):
                    if words:
                        yield tuple(words)
                    words = []
                else:
                    words.append(word)
            if words := _before_redirection(words):
                yield tuple(words)


def _before_redirection(words: list[str]) -> list[str]:
    at = next((number for number, word in enumerate(words) if word[0] in "<>"), len(words))
    return words[:at]


# --- makefiles -------------------------------------------------------------------------------

_VARIABLE = re.compile(r"^(?:export )?(\w+)\s*(?::|\?|\+)?:?=\s*(.*)$")
_RULE = re.compile(r"^([^\s:#=][^:#=]*?)(?:\s+[^:=]*)?:(?!=)([^#]*)")
_USE = re.compile(r"\$\((\w+)\)|\$\{(\w+)\}|\{\{\s*(\w+)\s*\}\}")


class _Recipe(NamedTuple):
    needs: list[str]
    lines: list[str]


def makefile(text: str) -> dict[str, _Recipe]:
    """Targets with what they need and do."""
    variables: dict[str, str] = {}
    recipes: dict[str, _Recipe] = {}
    current: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line[:1] in ("\t", " ") and line.strip():
            words = line.strip().lstrip("@-+ ")
            ignored = "-" in line[: line.index(words)]  # whether it fails; how loud it is, is not
            for name in current:
                recipes[name].lines.append(f"{'-' * ignored}{words}")
        elif found := _VARIABLE.match(line):
            variables.setdefault(found[1], found[2].partition(" #")[0].strip())
        elif (found := _RULE.match(line)) and not line.startswith("."):
            current = found[1].split()
            for name in current:
                recipes.setdefault(name, _Recipe([], [])).needs.extend(found[2].split())

    def value(used: re.Match[str]) -> str:
        return variables.get(next(filter(None, used.groups())), "")

    for recipe in recipes.values():
        for _ in range(3):
            recipe.lines[:] = [_USE.sub(value, line)[:_LONGEST_LINE] for line in recipe.lines]
    return recipes


def needed(recipes: Mapping[str, _Recipe], wanted: Sequence[str]) -> Iterator[str]:
    """The text of these recipes, and of those they need, each once."""
    waiting, seen = list(wanted), set[str]()
    while waiting:
        name = waiting.pop(0)
        if name not in seen and (recipe := recipes.get(name)):
            seen.add(name)
            waiting += recipe.needs
            yield "\n".join(recipe.lines)
