"""The files that decide what a check or a story's own command does, also one step away.

A word of the command that names a file of the work tree, and its program if that lies inside; the
recipe of a Makefile, a script of package.json, and the files that a shell script, such a recipe or
such a script names in turn.  Tests that a runner is told to run are no scripts: what became of them
is found out by running them.
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

_WORD = re.compile(r"[\w@%+./-]{1,200}")
_MOST_WORDS = 2_000
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_MANAGERS = ("npm", "pnpm", "yarn", "bun")
_SOURCES = (".py", ".js", ".ts", ".jsx", ".tsx", ".mjs", ".cjs", ".go", ".rs", ".rb", ".java")

Read = Callable[[str], str]  # the text of a file on one side of the change; empty: none


def weakened_scripts(
    commands: Iterable[Sequence[str]], changed: Iterable[str], old: Read, new: Read
) -> Iterator[str]:
    """What was done to the files behind these commands, in words; paths are the project's."""
    there = frozenset(changed)
    for argv in dict.fromkeys(map(tuple, commands)):
        words = set(_words(argv))
        texts, others = _recipes(argv, old), _recipes(argv, new)
        for file, text in texts.items():
            if text and text != others.get(file, ""):
                yield f"what {shlex.join(argv)[:80]} runs was changed in {file}"
        read = [old(word) for word in words if word in there or _is_script(word)]
        further = {found for text in (*texts.values(), *read) for found in _named(text)}
        for path in sorted(there & (words | further)):
            if not (is_test_path(path) and path.endswith(_SOURCES)) and path not in texts:
                yield f"{printable(path)}, which a check runs, was changed"


def _is_script(word: str) -> bool:
    return "/" in word or PurePosixPath(word).suffix in (".sh", ".bash", ".mk", *_SOURCES)


def _words(argv: Sequence[str]) -> Iterator[str]:
    """Each word as a path, and those of a text that a shell is given."""
    for word in argv:
        yield word.removeprefix("./")
        if " " in word:
            yield from _named(word)


def _named(text: str) -> list[str]:
    return [word.removeprefix("./") for word in _WORD.findall(text)[:_MOST_WORDS]]


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
