"""The files that decide what a check or a story's own command does, also one step away.

The program if it lies inside the work tree, the script that a shell or an interpreter is given; the
recipe of a Makefile, a script of package.json, and the files that a script, such a recipe or such
an entry executes in turn.  A file that a command merely reads is no script, nor is a test that a
runner is told to run: what became of that is found out by running it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import PurePosixPath

import msgspec

from ralphloop.repo.git import printable
from ralphloop.text.test_paths import is_test_path

_MOST_LINES = 2_000
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_MANAGERS = ("npm", "pnpm", "yarn", "bun")
_SHELLS = ("sh", "bash", "dash", "zsh", "ash", "ksh", ".", "source")
_INTERPRETER = re.compile(r"(?:python|pypy|node|ruby|perl|php|deno|bun|tsx)[\d.]*")
_BEFORE = ("env", "exec", "time", "nice", "then", "do", "else", "if", "!", "&&", "||")
# Of what an interpreter is given, only what is named like a check: the rest may be the product.
_CHECKING = re.compile(r"(?:^|/)(?:scripts?|tools?|bin|ci|hack)/|check|verif|test|lint|review")

Read = Callable[[str], str]  # the text of a file on one side of the change; empty: none


def weakened_scripts(
    commands: Iterable[Sequence[str]], changed: Iterable[str], old: Read, new: Read
) -> Iterator[str]:
    """What was done to the files behind these commands, in words; paths are the project's."""
    there = frozenset(changed)
    for argv in dict.fromkeys(map(tuple, commands)):
        texts, others = _recipes(argv, old), _recipes(argv, new)
        for file, text in texts.items():
            if text and text != others.get(file, ""):
                yield f"what {shlex.join(argv)[:80]} runs was changed in {file}"
        given = [word for word in argv if " " in word]  # a text for a shell
        scripts = set(_executed(argv))
        scripts |= {path for text in (*given, *texts.values()) for path in _in_text(text)}
        scripts |= {path for script in sorted(scripts) for path in _in_text(old(script))}
        for path in sorted(there & scripts):
            if old(path):
                yield f"{printable(path)}, which a check runs, was changed"


def _executed(words: Sequence[str]) -> Iterator[str]:
    """The files of the work tree that a command executes."""
    rest = list(words)
    while rest and (rest[0] in _BEFORE or re.fullmatch(r"\w{1,100}=.*", rest[0])):
        rest = rest[1:]
    if not rest:
        return
    program, plain = PurePosixPath(rest[0]).name, [it for it in rest[1:] if it[:1] != "-"]
    if "/" in rest[0] and not rest[0].startswith("/"):
        yield rest[0].removeprefix("./")
    path = plain[0].removeprefix("./") if plain else ""
    by_name = _CHECKING.search(path) and not (is_test_path(path) and "-m" in rest)
    if program in _SHELLS or (_INTERPRETER.fullmatch(program) and by_name):
        yield path


def _in_text(text: str) -> Iterator[str]:
    """The files that the lines of a shell script execute."""
    for line in text.splitlines()[:_MOST_LINES]:
        for command in re.split(r"[;|&]+", line.lstrip("@-+ \t")[:500]):
            with suppress(ValueError):  # an open quote
                yield from _executed(shlex.split(command, comments=True))


def _recipes(argv: Sequence[str], read: Read) -> dict[str, str]:
    """The texts behind `make target` and `npm run script`, by the files they stand in."""
    program = PurePosixPath(argv[0]).name
    plain = [word for word in argv[1:] if not word.startswith("-") and "=" not in word]
    if program in ("make", "gmake"):
        found = ((name, read(name)) for name in _MAKEFILES)
        return {name: _recipe(text, plain[:1]) for name, text in found if text}
    if program in _MANAGERS:
        name = (plain[1:2] if plain[:1] in (["run"], ["run-script"]) else plain[:1]) or ["test"]
        script = "test" if name[0] == "t" else name[0]
        with suppress(msgspec.DecodeError, AttributeError, RecursionError):
            scripts = msgspec.json.decode(read("package.json") or b"{}").get("scripts") or {}
            texts = [str(scripts.get(f"{when}{script}", "")) for when in ("pre", "", "post")]
            return {"package.json": "\n".join(texts).strip()}
    return {}


def _recipe(text: str, wanted: Sequence[str]) -> str:
    """The lines of one target, of what it needs, and of everything that is set for all."""
    rules: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line[:1] in ("\t", " ") and line.strip():
            current.append(line.strip())
        elif found := re.match(r"([\w./-]{1,100})\s*::?(?!=)([^#]{0,500})", line):
            current = rules.setdefault(found[1], [])
            current.append(f": {found[2].strip()}")
    first = [name for name in rules if not name.startswith(".")][:1]
    names = list(wanted or first)
    needed = [word for name in names for line in rules.get(name, ()) for word in line.split()]
    told = [line for name in dict.fromkeys((*names, *needed)) for line in rules.get(name, ())]
    return "\n".join(told)
