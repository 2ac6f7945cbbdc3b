"""What can be asked of a directory, as facts written in one line.

    "Cargo.toml"                  there is such a file (`*` stands for any part of one name)
    "tests/"                      there is such a directory
    "pyproject.toml#tool.ruff"    the file (TOML, JSON, INI) has that key
    "package.json#scripts.test~x" … and its value contains the text x
    "Makefile~\\ntest:"            the file contains that text; `\\n` also fits its first line
    "tests/test*.py~unittest"     one of a few such files does
    "$pytest"                     there is such a program on PATH

Nothing is run and nothing is searched recursively.  Files are read up to a bound, once; what cannot
be read or parsed has no keys.
"""

from __future__ import annotations

import configparser
import json
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from ralphloop.stacks.table import Rule
from ralphloop.text.plain import one_line

_LARGEST_FILE = 1 << 20
_MOST_ENTRIES = 2_000
_MOST_READ = 20  # files that one pattern may make us read


class Directory:
    """One directory, asked for facts."""

    def __init__(self, root: Path, *, search_path: str | None = None) -> None:
        self.root = root
        self._search_path = search_path  # of programs; None: this process's own
        self._texts: dict[str, str] = {}
        self._documents: dict[str, object] = {}

    def meets(self, rule: Rule) -> bool:
        """Whether an entry of the table applies here."""
        return (
            (not rule.if_any or any(map(self.holds, rule.if_any)))
            and all(map(self.holds, rule.if_all))
            and not any(map(self.holds, rule.unless))
        )

    def holds(self, fact: str) -> bool:
        """Whether a fact is true."""
        if fact.startswith("$"):
            return shutil.which(fact[1:], path=self._search_path) is not None
        place, tilde, text = fact.partition("~")
        name, hash_sign, key = place.partition("#")
        if hash_sign:
            value = self._value(name, key)
            return value is not None and (not tilde or text in json.dumps(value, default=str))
        if tilde:
            return any(text in "\n" + self._text(each) for each in self._names(name))
        return self._exists(name)

    def text_at(self, fact: str) -> str:
        """The value under a key (`file#key`) or behind a word (`file~word `), on one line."""
        name, hash_sign, key = fact.partition("#")
        if hash_sign:
            value = self._value(name, key)
            return one_line(value) if isinstance(value, str) else ""
        name, _, word = fact.partition("~")
        lines = self._text(name).splitlines()
        found = next((line[len(word) :] for line in lines if line.startswith(word)), "")
        return one_line(found)

    def _exists(self, name: str) -> bool:
        if "*" in name:
            return next(self._matching(name), None) is not None
        path = self.root / name
        return path.is_dir() if name.endswith("/") else path.is_file()

    def _names(self, name: str) -> Iterator[str]:
        if "*" not in name:
            return iter((name,))
        matching = (str(path.relative_to(self.root)) for path in self._matching(name))
        return islice(matching, _MOST_READ)

    def _matching(self, pattern: str) -> Iterator[Path]:
        """Files that match, out of a bounded number of entries of one directory."""
        directory = (self.root / pattern).parent
        try:
            for path in islice(directory.iterdir(), _MOST_ENTRIES):
                if path.match(Path(pattern).name) and path.is_file():
                    yield path
        except OSError:
            return  # no such directory, or not ours to read: nothing matches

    def _text(self, name: str) -> str:
        if name not in self._texts:
            self._texts[name] = _bounded_text(self.root / name)
        return self._texts[name]

    def _value(self, name: str, key: str) -> object:
        if name not in self._documents:
            self._documents[name] = _parsed(name, self._text(name))
        value = self._documents[name]
        for part in key.split("."):
            if not isinstance(value, Mapping):
                return None
            value = value.get(part)
        return value


def _bounded_text(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_LARGEST_FILE).decode("utf-8-sig", "replace")
    except OSError:
        return ""  # what cannot be read says nothing


def _parsed(name: str, text: str) -> object:
    try:
        if name.endswith(".json"):
            return json.loads(text) if text else None
        if name.endswith((".cfg", ".ini")):
            return _sections(text)
        return tomllib.loads(text)
    except (ValueError, RecursionError, configparser.Error):
        return None  # a file its own tools could not read either


def _sections(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.read_string(text)
    return {name: dict(parser.items(name)) for name in parser.sections()}
