"""What a repository is built on, and how its work is proven.

One TOML file for each stack says it in facts, as `docs/reference/configuration.md` has them; a
`\\n` in a fact also fits the first line of its file.  Files in a directory of the user's come
before ours, by file name.

Nothing is run and nothing is searched recursively.  Files are read up to a bound; what cannot be
read or parsed has no keys.
"""

import configparser
import json
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from itertools import islice
from pathlib import Path

import msgspec

from ralphloop.errors import InputError
from ralphloop.room import read_regular
from ralphloop.text.plain import one_line, some

_LARGEST_FILE = 1 << 20
_MOST_READ = 20  # files that one pattern may make us read
_NOT_PROJECTS = frozenset({"node_modules", "target", "build", "dist", "vendor", "venv", "tests"})
Words = tuple[str, ...]


class StackRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    if_any: Words = ()
    if_all: Words = ()
    unless: Words = ()


class Tool(StackRule, frozen=True, kw_only=True):
    title: str
    says: str = ""
    words: dict[str, Words] = {}


class CheckRule(StackRule, frozen=True, kw_only=True):
    purpose: str
    command: Words


class Sentence(StackRule, frozen=True, kw_only=True):
    text: str


class Stack(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    title: str
    order: int = 50
    marks: Words = ()
    names: Words = ()
    descriptions: Words = ()
    tools: tuple[Tool, ...] = ()
    checks: tuple[CheckRule, ...] = ()
    says: tuple[Sentence, ...] = ()
    leaves: dict[str, str] = {}  # a line for .gitignore -> a file that its tools make there
    monorepo: tuple[Sentence, ...] = ()


def load_stacks(directories: Sequence[Path] = ()) -> tuple[Stack, ...]:
    ours = Path(str(files("ralphloop.stacks") / "data"))
    found: dict[str, Path] = {}
    for directory in (*directories, ours):
        for file in sorted(directory.glob("*.toml")):
            found.setdefault(file.name, file)
    stacks = []
    for file in found.values():
        try:
            stacks.append(msgspec.convert(tomllib.loads(read_regular(file).decode()), Stack))
        except (OSError, ValueError) as error:
            # TOML, encoding and validation errors are all ValueErrors with a readable message.
            step = "Correct the file, or remove it: the stacks that ship with ralph stay."
            raise InputError(str(error), step, place=str(file)) from error
    return tuple(sorted(stacks, key=lambda stack: (stack.order, stack.name)))


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str = ""
    title: str = ""  # of its stacks; empty: nothing was recognised
    tools: tuple[str, ...] = ()
    checks: tuple[tuple[str, ...], ...] = ()  # commands that prove its work
    says: tuple[str, ...] = ()  # sentences for the prompt
    hints: tuple[str, ...] = ()  # sentences for the person
    leaves: dict[str, str] = {}  # a line for .gitignore -> a file that its tools make there


class Directory:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._documents: dict[str, object] = {}

    def meets(self, rule: StackRule) -> bool:
        return (
            (not rule.if_any or any(map(self.holds, rule.if_any)))
            and all(map(self.holds, rule.if_all))
            and not any(map(self.holds, rule.unless))
        )

    def said(self, sentences: Sequence[Sentence]) -> Iterator[str]:
        return (sentence.text for sentence in sentences if self.meets(sentence))

    def holds(self, fact: str) -> bool:
        if fact.startswith("$"):
            return shutil.which(fact[1:]) is not None
        place, tilde, text = fact.partition("~")
        name, hash_sign, key = place.partition("#")
        if hash_sign:
            value = self._value(name, key)
            return value is not None and (not tilde or text in json.dumps(value, default=str))
        if tilde:
            matching = islice(self._matching(name), _MOST_READ)
            return any(text in "\n" + self._text(each) for each in matching)
        if name.endswith("/"):
            return (self.root / name).is_dir()
        return next(self._matching(name), None) is not None

    def text_at(self, fact: str) -> str:
        """The value under a key (`file#key`) or behind a word (`file~word `), on one line."""
        name, hash_sign, key = fact.partition("#")
        if hash_sign:
            value = self._value(name, key)
            return one_line(value) if isinstance(value, str) else ""
        name, _, word = fact.partition("~")
        lines = self._text(self.root / name).splitlines()
        found = next((line[len(word) :] for line in lines if line.startswith(word)), "")
        return one_line(found)

    def _matching(self, pattern: str) -> Iterator[Path]:
        """Files that match, out of a bounded number of entries of one directory."""
        path = self.root / pattern
        try:
            entries = islice(path.parent.iterdir(), 2_000) if "*" in pattern else (path,)
            yield from (each for each in entries if each.match(path.name) and each.is_file())
        except OSError:
            return  # no such directory, or not ours to read: nothing matches

    def _text(self, path: Path) -> str:
        with suppress(OSError):  # what cannot be read says nothing
            return read_regular(path, most=_LARGEST_FILE).decode("utf-8-sig", "replace")
        return ""

    def _value(self, name: str, key: str) -> object:
        if name not in self._documents:
            self._documents[name] = parsed(name, self._text(self.root / name))
        return value_at(self._documents[name], key)


def _titles(stacks: Iterable[Stack]) -> str:
    """What they are called; Java with two build tools is one."""
    return " and ".join(dict.fromkeys(stack.title for stack in stacks))


def detect(root: Path, *, directories: Sequence[Path] = ()) -> Detection:
    table = load_stacks(directories)
    directory = Directory(root)
    fitting = _fitting(table, directory)
    used = fitting or [stack for stack in table if not stack.marks]
    tools = list[str]()
    checks = list[Words]()
    says = list[str]()
    leaves = dict[str, str]()
    for stack in used:
        tool = next((tool for tool in stack.tools if directory.meets(tool)), Tool(title=""))
        tools.append(tool.title)
        checks += _checks(stack, tool, directory)
        says += (tool.says, *directory.said(stack.says))
        leaves |= stack.leaves
    return Detection(
        name=_first_text(used, "names", directory) or root.resolve().name or "project",
        description=_first_text(used, "descriptions", directory),
        title=_titles(fitting),
        tools=tuple(filter(None, tools)),
        checks=tuple(checks),
        says=tuple(filter(None, says)),
        hints=tuple(_hints(table, used, directory)),
        leaves=leaves,
    )


def _fitting(table: Sequence[Stack], directory: Directory) -> list[Stack]:
    return [stack for stack in table if any(map(directory.holds, stack.marks))]


def _checks(stack: Stack, tool: Tool, directory: Directory) -> Iterator[Words]:
    done: set[str] = set()
    for rule in stack.checks:
        if rule.purpose not in done and directory.meets(rule):
            done.add(rule.purpose)
            slots = {
                word: tool.words.get(word[1:-1], ()) for word in rule.command if word[:1] == "{"
            }
            yield tuple(each for word in rule.command for each in slots.get(word, (word,)))


def _first_text(stacks: Sequence[Stack], field: str, directory: Directory) -> str:
    places = (place for stack in stacks for place in getattr(stack, field))
    return next((text for place in places if (text := directory.text_at(place))), "")


def _hints(table: Sequence[Stack], used: Sequence[Stack], directory: Directory) -> Iterator[str]:
    """What is special here, and which directories are projects of their own: `web (Node)`."""
    for stack in used:
        yield from directory.said(stack.monorepo)
    try:
        candidates = sorted(
            path
            for path in directory.root.iterdir()
            if not path.name.startswith(".") and path.name not in _NOT_PROJECTS and path.is_dir()
        )
    except OSError:
        return  # not ours to list: then nothing is known about it
    below = []
    for path in candidates[:100]:
        if stacks := _fitting(table, Directory(path)):
            below.append(f"{path.name} ({_titles(stacks)})")
    if below:
        yield (
            f"There is more below: {some(below)}. Checks run in this directory, so add "
            "theirs by hand, or set up ralph in the directory the stories are about."
        )


def parsed(name: str, text: str) -> object:
    """The values in a file of settings; None where it cannot be read."""
    try:
        if name.endswith(".json"):
            return json.loads(text) if text else None
        if name.endswith((".cfg", ".ini")):
            parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
            parser.read_string(text)
            return {section: dict(parser.items(section)) for section in parser.sections()}
        return tomllib.loads(text)
    except (ValueError, RecursionError, configparser.Error):
        return None  # a file its own tools could not read either


def value_at(document: object, key: str) -> object:
    """The value under a dotted key; None where there is none."""
    for part in key.split("."):
        if not isinstance(document, Mapping):
            return None
        document = document.get(part)
    return document
