"""JSON and YAML as text: strict reading, and setting single values without touching anything else.

Refused is what would make us guess or do more than read: a key twice in one object, NaN; in YAML
tags that build objects, aliases (a few lines expand to gigabytes), several documents.

Writing never serialises: the one value is replaced in the original text, so that everything else
stays.  Where a line may be added is YAML's own affair, so such text is parsed again: the data
differs in just these values or the edit is refused.
"""

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ralphloop.errors import InputError
from ralphloop.stories.names import quoted
from ralphloop.stories.shapes import Problems
from ralphloop.text.plain import LazyRegex

Node = Any  # ruamel's nodes are typed too loosely to help
Entry = Mapping[str, object]
Edits = Mapping[int, tuple[str, bool | str]]  # entry of the list → key, value
Span = tuple[int, int]
_Splice = tuple[int, int, str]  # which span to replace, and by what

_MAX_PLACE = 200
_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN_KEY = LazyRegex(r"[A-Za-z_][A-Za-z0-9_]{0,59}")
_MARKDOWN = LazyRegex(r"\s*(?:#{1,3} \S|[-*] \S|[A-Za-z][\w'-]* [a-z])")
_DASH = LazyRegex(r"[ \t]*-[ \t]*")
_COLON = LazyRegex(r"[ \t]*:")
_PLAIN_WORD = LazyRegex(r"[A-Za-z]\w*(?:[ -]\w+)*")
_NOT_A_WORD = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_KNOWN_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp")
)
_HINTS = {
    "<<<<<<<": "an unresolved merge conflict",
    "```": "a Markdown fence around the JSON",
    "//": "JSON has no comments",
    "/*": "JSON has no comments",
    "#": "JSON has no comments",
    "'": "use double quotes",
}
_skip_value = json.JSONDecoder().raw_decode


class JsonDocument:
    max_bytes = 50_000_000

    def __init__(self, text: str, problems: Problems) -> None:
        self.text = text
        self.data = _parse_json(text, problems)

    def spans(self, list_key: str) -> list[Span]:
        """Where the entries of a root list stand in the text."""
        root = _items(self.text, _after_space(self.text, 0))
        entries = next(item.start for item in root if item.key == list_key)
        return [(entry.start, entry.end) for entry in _items(self.text, entries)]

    def with_values(self, list_key: str, edits: Edits) -> str:
        """One member set in some entries of a root list; a new one is spaced like the last."""
        text = self.text
        spans = self.spans(list_key)
        splices = list[_Splice]()
        for at, (key, new) in edits.items():
            brace = spans[at][0]
            value = json.dumps(new)
            members = list(_items(text, brace))
            there = next((member for member in members if member.key == key), None)
            if there is not None:
                splices.append((there.start, there.end, value))
            else:
                last = members[-1]
                comma = f",{text[brace + 1 : last.key_start] or ' '}"
                if len(members) > 1:
                    comma = text[members[-2].end : last.key_start]
                colon = text[last.key_end : last.start]
                splices.append((last.end, last.end, f'{comma}"{key}"{colon}{value}'))
        return _spliced(text, splices)

    def written(self, entry: Entry, before: str) -> str:
        """A new entry, indented like its neighbours; on one line where they are."""
        margin = before.rpartition("\n")[2]
        if margin.strip():
            return json.dumps(entry, ensure_ascii=False)
        step = "\t" if "\t" in margin else " " * max(1, len(margin) // 2)
        return json.dumps(entry, ensure_ascii=False, indent=step).replace("\n", f"\n{margin}")

    def joined(self, pieces: list[str], spans: list[Span]) -> str:
        """The entries of a list, with what stands between two of them now."""
        before = self.text[: spans[0][0]]
        between = f",{before[len(before.rstrip()) :] or ' '}"
        if len(spans) > 1:
            between = self.text[spans[0][1] : spans[1][0]]
        return between.join(pieces)

    def filled(self, list_key: str, entries: list[Entry]) -> str:
        """The text with these in a root list that is empty now, on lines of their own if it is."""
        text = self.text
        root = _items(text, _after_space(text, 0))
        place = next(item for item in root if item.key == list_key)
        margin = text[text.rfind("\n", 0, place.key_start) + 1 : place.key_start]
        if margin.strip():
            pieces = ", ".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
            return _spliced(text, [(place.start, place.end, f"[{pieces}]")])
        inner = margin * 2
        lines = [json.dumps(entry, ensure_ascii=False, indent=margin) for entry in entries]
        pieces = ",".join(f"\n{line}".replace("\n", f"\n{inner}") for line in lines)
        return _spliced(text, [(place.start, place.end, f"[{pieces}\n{margin}]")])


class _Yaml(NamedTuple):
    """A YAML text as it was read."""

    root: Node  # knows where things stand
    data: Any


class YamlDocument:
    max_bytes = 1_000_000  # about 6 s, dense data three times that

    def __init__(self, text: str, problems: Problems) -> None:
        self.text = text
        self._problems = problems
        read = _parse_yaml(text, problems)
        self._root = read.root
        self.data = read.data

    def spans(self, list_key: str) -> list[Span]:
        """Where the lines of each entry of a block list stand, from dash to dash."""
        found = next(node for name, node in self._root.value if name.value == list_key)
        if found.flow_style or not found.value:
            return []
        starts = [self.text.rfind("\n", 0, node.start_mark.index) + 1 for node in found.value]
        after = [name.start_mark.index for name, _ in self._root.value]
        end = min((at for at in after if at > starts[-1]), default=len(self.text))
        return list(pairwise([*starts, end]))

    def filled(self, list_key: str, entries: list[Entry]) -> str:
        """The text with these in a root list that is written as empty now."""
        found = next(node for name, node in self._root.value if name.value == list_key)
        pieces = "".join(f"\n{self.written(entry, self.text)}" for entry in entries)
        splice = (found.start_mark.index, found.end_mark.index, pieces)
        return _spliced(self.text, [splice])

    def written(self, entry: Entry, before: str) -> str:
        dash = _DASH.match(self.text, len(before))
        first = dash[0] if dash else "- "
        lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
        return first + f"\n{' ' * len(first)}".join(lines)

    def joined(self, pieces: list[str], _: list[Span]) -> str:
        return "".join(piece if piece.endswith("\n") else f"{piece}\n" for piece in pieces)

    def with_values(self, list_key: str, edits: Edits) -> str:
        nodes = next(node.value for name, node in self._root.value if name.value == list_key)
        text = _spliced(
            self.text,
            [_yaml_splice(self.text, nodes[at], key, value) for at, (key, value) in edits.items()],
        )
        entries = list(self.data[list_key])
        for index, (key, value) in edits.items():
            entries[index] = {**entries[index], key: value}
        try:
            read_back = _parse_yaml(text, Problems(Path())).data
        except InputError:
            read_back = None
        if read_back != {**self.data, list_key: entries}:
            where = ", ".join(f"{list_key}[{index}]" for index in edits)
            reason = 'no place was found to write its mark: add "passes: false" to it'
            raise self._problems.fail(where, reason)
        return text


def _spliced(text: str, splices: list[_Splice]) -> str:
    parts: list[str] = []
    done = 0
    for start, end, new in sorted(splices):
        parts += [text[done:start], new]
        done = end
    return "".join([*parts, text[done:]])


class _Item(NamedTuple):
    """A member of an object, or an element of an array, which has no key."""

    key: str
    key_start: int
    key_end: int
    start: int
    end: int


def _items(text: str, at: int) -> Iterator[_Item]:
    """What stands in the object or the array that begins here."""
    is_object = text[at] == "{"
    at = _after_space(text, at + 1)
    while text[at] not in "}]":
        key = ""
        key_start = at
        key_end = at
        if is_object:
            key, key_end = _skip_value(text, at)
            at = _after_space(text, _after_space(text, key_end) + 1)
        _, end = _skip_value(text, at)
        yield _Item(key, key_start, key_end, at, end)
        at = _after_space(text, end)
        if text[at] == ",":
            at = _after_space(text, at + 1)


class _Place(NamedTuple):
    """Where a value of a JSON text stands."""

    start: int
    end: int


def place_in(text: str, way: Sequence[object]) -> _Place | None:
    """Where the value at the end of this way of keys and positions stands; None: nowhere."""
    at = _after_space(text, 0)
    end = len(text.rstrip())
    for step in way:
        if text[at : at + 1] not in ("{", "["):
            return None
        inside = list(_items(text, at))
        names: list[object] = [item.key for item in inside]
        if text[at] == "[":
            names = list(range(len(inside)))
        if step not in names:
            return None
        found = inside[names.index(step)]
        at = found.start
        end = found.end
    return _Place(at, end)


def line_of(text: str, way: Sequence[object]) -> int:
    """The line in which a value of a JSON text begins; the first where there is no such value."""
    place = place_in(text, way)
    return text.count("\n", 0, place.start) + 1 if place else 1


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _parse_json(text: str, problems: Problems) -> object:
    odd: dict[int, tuple[object, str]] = {}  # the object is kept so that its id stays its own

    def keep(pairs: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(pairs)
        if len(made) != len(pairs):
            counts = Counter(name for name, _ in pairs)
            name = next(name for name in counts if counts[name] > 1)
            odd[id(made)] = made, f"the key {quoted(name)} stands here twice"
        return made

    def note(word: str) -> object:
        made = object()
        odd[id(made)] = made, f"{word} is not a JSON value"
        return made

    try:
        data: object = json.loads(text, object_pairs_hook=keep, parse_constant=note)
    except json.JSONDecodeError as error:
        if _MARKDOWN.match(text):
            step = f"Make stories of it: ralph plan {problems.path}"
            reason = "this is Markdown, not a story list"
            raise InputError(reason, step, place=problems.path.name) from None
        place = f"line {error.lineno}, column {error.colno}"
        raise problems.fail(place, f"not valid JSON: {_json_complaint(error)}") from None
    except RecursionError:
        raise problems.fail("", "is nested too deeply") from None
    except ValueError:
        # The only other ValueError of the decoder: Python's bound on the digits of an integer.
        raise problems.fail("", "holds a number with thousands of digits") from None
    for place, value in _places(data) if odd else ():
        if id(value) in odd:
            problems.add(place, odd[id(value)][1])
    return data


def _json_complaint(error: json.JSONDecodeError) -> str:
    rest = error.doc[error.pos : error.pos + 8]
    for mark, hint in _HINTS.items():
        if rest.startswith(mark):
            return hint
    before = error.doc[max(0, error.pos - 200) : error.pos].rstrip()
    if rest[:1] in ("}", "]") and before.endswith(","):
        return "a comma before the closing bracket"
    return error.msg if rest else f"{error.msg}, but the file ends here"


def _places(data: object) -> Iterator[tuple[str, object]]:
    """Every value with its place, in the order of the file; on a stack, for it may be deep."""
    stack = [("", data)]
    while stack:
        place, value = stack.pop()
        yield place, value
        inside: list[tuple[str, object]] = []
        if isinstance(value, dict):
            for key, inner in value.items():
                step = f".{key}" if _PLAIN_KEY.fullmatch(key) else f"[{quoted(key)}]"
                inside.append((f"{place}{step}".removeprefix(".")[:_MAX_PLACE], inner))
        elif isinstance(value, list):
            inside = [(f"{place}[{at}]"[:_MAX_PLACE], inner) for at, inner in enumerate(value)]
        stack += reversed(inside)


def _parse_yaml(text: str, problems: Problems) -> _Yaml:
    """The text as nodes and as plain data; what is wrong with it is raised."""
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="safe", pure=True)  # the C parser would not give positions
    try:
        with warnings.catch_warnings(action="ignore"):  # an anchor defined twice warns
            root = yaml.compose(text)
            if root is None:
                return _Yaml(None, None)
            _check_nodes(root, problems)
            return _Yaml(root, yaml.constructor.construct_document(root))
    except MarkedYAMLError as error:
        problem = str(error.problem or "cannot be read").splitlines()[0]
        if problem.startswith("but ") and error.context:
            problem = f"{error.context} {problem}"
        complaint = f"not valid YAML: {problem[:200]}"
        if isinstance(error, DuplicateKeyError):
            complaint = problem.split(" with value")[0]
        raise problems.fail(_yaml_place(error.problem_mark), complaint) from None
    except YAMLError as error:
        raise problems.fail("", f"not valid YAML: {quoted(str(error).splitlines()[0])}") from None
    except RecursionError:
        raise problems.fail("", "is nested too deeply") from None
    except ValueError as error:
        # A scalar that looks like a number or a date and is none, such as 2024-99-99.
        raise problems.fail("", f"holds a value that is none: {quoted(str(error))}") from None


def _check_nodes(root: Node, problems: Problems) -> None:
    """Stop at the first thing that is more than plain data."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        is_mapping = node.id == "mapping"
        complaint = ""
        if id(node) in seen:
            complaint = "is used again by an alias (*): write it out"
        elif node.tag not in _KNOWN_TAGS:
            complaint = f"the tag {quoted(node.tag)} is not allowed"
        elif is_mapping and any(name.id != "scalar" for name, _ in node.value):
            complaint = "has a key that is no plain text"
        if complaint:
            raise problems.fail(_yaml_place(node.start_mark), complaint)
        seen.add(id(node))
        if is_mapping:
            stack += [part for pair in node.value for part in pair]
        elif node.id == "sequence":
            stack += node.value


def _yaml_place(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""


def _yaml_splice(text: str, entry: Node, key: str, value: bool | str) -> _Splice:
    """So that the entry has this member; a new one stands behind the title or the id."""
    is_word = isinstance(value, str) and _PLAIN_WORD.fullmatch(value)
    plain = is_word and str(value).casefold() not in _NOT_A_WORD
    new = str(value) if plain else json.dumps(value)
    for name, node in entry.value:
        if name.value == key:
            start = node.start_mark.index
            end = node.end_mark.index
            if end > start:
                return start, end, new
            # The key has no value yet; where it would stand, only the key can tell.
            colon = _COLON.match(text, name.end_mark.index)
            at = colon.end() if colon else name.end_mark.index
            return at, at, f" {new}" if colon else f": {new}"
    ends = [
        node.end_mark.index
        for wanted in ("title", "id")
        for name, node in entry.value
        if name.value == wanted and node.style not in ("|", ">")  # these go over several lines
    ]
    if not ends:
        return 0, 0, ""  # nothing changes, which reading back refuses
    if entry.flow_style:
        return ends[0], ends[0], f", {key}: {new}"
    line_end = text.find("\n", ends[0])
    at = len(text) if line_end < 0 else line_end
    if text[at - 1] == "\r":
        at -= 1
    newline = "\r\n" if "\r\n" in text else "\n"
    return at, at, f"{newline}{' ' * entry.start_mark.column}{key}: {new}"
