"""YAML as text: safe reading, and setting single values without touching anything else.

ruamel.yaml parses to nodes that know where they stand in the text.  The value to change is
replaced there, so comments, quotes, order and indentation survive to the last character; dumping
the file again would re-wrap and re-indent it.

What was written is parsed again before anybody else sees it, because where a line may be added is
YAML's own affair: either the data differs in just these values or the edit is refused.

Refused: tags that build objects, aliases (a few lines of them expand to gigabytes), keys that
stand twice, several documents.  Parsing is pure Python and slow, hence the low size bound.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ralphloop.errors import InputError
from ralphloop.stories.fields import Problems
from ralphloop.stories.names import quoted

Node = Any  # ruamel's nodes are typed too loosely to help
Edits = Mapping[int, tuple[str, bool | str]]

_MAX_BYTES = 1_000_000  # about 6 s, dense data three times that
_MAX_COMPLAINT = 200
_KNOWN_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp")
)
_COLON = re.compile(r"[ \t]*:")
_PLAIN_WORD = re.compile(r"[A-Za-z]\w*(?:[ -]\w+)*")
_NOT_A_WORD = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


class YamlDocument:
    """The text of one YAML file and the data in it."""

    max_bytes = _MAX_BYTES

    def __init__(self, text: str, problems: Problems) -> None:
        self.text = text
        self._problems = problems
        self._root, self.data = _parse(text, problems)

    def with_values(self, list_key: str, edits: Edits) -> str:
        """The text with one member set in some entries of a root list: index → (key, value)."""
        nodes = next(node.value for name, node in self._root.value if name.value == list_key)
        splices = [
            _splice(self.text, nodes[index], key, _rendered(value))
            for index, (key, value) in edits.items()
        ]
        text = _apply(self.text, sorted(splices))
        if not _differs_by(self.data, text, list_key, edits):
            where = ", ".join(f"{list_key}[{index}]" for index in edits)
            reason = 'no place was found to write its mark: add "passes: false" to it'
            raise self._problems.fail(where, reason)
        return text


def _differs_by(data: Any, text: str, list_key: str, edits: Edits) -> bool:
    """True where the new text says what the old data says, but for these values."""
    entries = list(data[list_key])
    for index, (key, value) in edits.items():
        entries[index] = {**entries[index], key: value}
    try:
        _, read_back = _parse(text, Problems(Path()))
    except InputError:
        return False
    return bool(read_back == {**data, list_key: entries})


def _parse(text: str, problems: Problems) -> tuple[Any, object]:
    """The root node, which knows where things stand, and the plain data."""
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        with warnings.catch_warnings(action="ignore"):  # an anchor defined twice warns
            return _read(text, problems)
    except MarkedYAMLError as error:
        raise problems.fail(_place(error.problem_mark), _complaint(error)) from None
    except YAMLError as error:
        raise problems.fail("", f"not valid YAML: {quoted(str(error).splitlines()[0])}") from None
    except RecursionError:
        raise problems.fail("", "is nested too deeply") from None
    except ValueError as error:
        # A scalar that looks like a number or a date and is none, such as 2024-99-99.
        raise problems.fail("", f"holds a value that is none: {quoted(str(error))}") from None


def _read(text: str, problems: Problems) -> tuple[Any, object]:
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)  # the C parser would not give positions
    root = yaml.compose(text)
    if root is None:
        return None, None
    _check_nodes(root, problems)
    return root, yaml.constructor.construct_document(root)


def _check_nodes(root: Node, problems: Problems) -> None:
    """Stop at the first thing that is more than plain data."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if complaint := _more_than_data(node, seen):
            raise problems.fail(_place(node.start_mark), complaint)
        seen.add(id(node))
        stack.extend(_children(node))


def _more_than_data(node: Node, seen: set[int]) -> str:
    if id(node) in seen:
        return "is used again by an alias (*): write it out"
    if node.tag not in _KNOWN_TAGS:
        return f"the tag {quoted(node.tag)} is not allowed"
    if node.id == "mapping" and any(name.id != "scalar" for name, _ in node.value):
        return "has a key that is no plain text"
    return ""


def _children(node: Node) -> list[Node]:
    if node.id == "mapping":
        return [part for pair in node.value for part in pair]
    return list(node.value) if node.id == "sequence" else []


def _place(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""


def _complaint(error: Any) -> str:
    from ruamel.yaml.constructor import DuplicateKeyError

    problem = str(error.problem or "cannot be read").splitlines()[0]
    if isinstance(error, DuplicateKeyError):
        return problem.split(" with value")[0]
    if problem.startswith("but ") and error.context:
        problem = f"{error.context} {problem}"
    return f"not valid YAML: {problem[:_MAX_COMPLAINT]}"


def _splice(text: str, entry: Node, key: str, value: str) -> tuple[int, int, str]:
    """Which span to replace, and by what, so that the entry has this member."""
    for name, node in entry.value:
        if name.value == key:
            start, end = node.start_mark.index, node.end_mark.index
            return (start, end, value) if end > start else _filled(text, name, value)
    return _insertion(text, entry, f"{key}: {value}")


def _filled(text: str, name: Node, value: str) -> tuple[int, int, str]:
    """A value for a key that has none; where it would stand, only the key can tell."""
    colon = _COLON.match(text, name.end_mark.index)
    at = colon.end() if colon else name.end_mark.index
    return at, at, f" {value}" if colon else f": {value}"


def _insertion(text: str, entry: Node, member: str) -> tuple[int, int, str]:
    """A new member behind the title or the id, whichever does not go over several lines."""
    ends = [
        node.end_mark.index
        for wanted in ("title", "id")
        for name, node in entry.value
        if name.value == wanted and node.style not in ("|", ">")
    ]
    if not ends:
        return 0, 0, ""  # nothing changes, which reading back refuses
    end = ends[0]
    if entry.flow_style:
        return end, end, f", {member}"
    line_end = text.find("\n", end)
    at = len(text) if line_end < 0 else line_end
    if text[at - 1] == "\r":
        at -= 1
    newline = "\r\n" if "\r\n" in text else "\n"
    return at, at, f"{newline}{' ' * entry.start_mark.column}{member}"


def _apply(text: str, splices: list[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    done = 0
    for start, end, new in splices:
        parts += [text[done:start], new]
        done = end
    return "".join([*parts, text[done:]])


def _rendered(value: bool | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    plain = _PLAIN_WORD.fullmatch(value) and value.casefold() not in _NOT_A_WORD
    return value if plain else json.dumps(value)
