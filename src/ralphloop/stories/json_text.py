"""JSON as text: strict reading, and setting single values without touching anything else.

Reading refuses what would make us guess (a key twice in one object) or what is no JSON (NaN).
Writing never serialises: the standard library's decoder tells where each value ends, so the one
value to change is found in the original text and replaced there.  Indentation, key order, escapes,
line endings and unknown keys stay because nobody touches them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import msgspec

from ralphloop.stories.fields import Problems
from ralphloop.stories.names import quoted
from ralphloop.text.lazy_regex import LazyRegex

_SPACE = re.compile(r"[ \t\n\r]+")
_PLAIN_KEY = LazyRegex(r"[A-Za-z_][A-Za-z0-9_]*")
_skip_value = json.JSONDecoder().raw_decode

_MAX_BYTES = 50_000_000
_MAX_PLACE = 200

_HINTS = (
    ("<<<<<<<", "an unresolved merge conflict"),
    ("```", "a Markdown fence around the JSON"),
    ("//", "JSON has no comments"),
    ("/*", "JSON has no comments"),
    ("#", "JSON has no comments"),
    ("'", "use double quotes"),
)


class _Constant(msgspec.Struct, frozen=True):
    word: str


class _Path(msgspec.Struct, frozen=True):
    """A place as a chain of steps, written out only when it is needed."""

    parent: _Path | None
    step: str | int


class JsonDocument:
    """The text of one JSON file and the data in it."""

    max_bytes = _MAX_BYTES

    def __init__(self, text: str, problems: Problems) -> None:
        self.text = text
        self.data = _parse(text, problems)
        self._problems = problems

    def with_values(self, list_key: str, edits: Mapping[int, tuple[str, bool | str]]) -> str:
        """The text with one member set in some entries of a root list: index → (key, value)."""
        try:
            return self._spliced(list_key, edits)
        except RecursionError:
            raise self._problems.fail("", "is nested too deeply") from None

    def _spliced(self, list_key: str, edits: Mapping[int, tuple[str, bool | str]]) -> str:
        spliced: list[str] = []
        done = 0
        for index, (start, _) in enumerate(_elements(self.text, _list_start(self.text, list_key))):
            if index in edits:
                at, end, new = _splice(self.text, start, *edits[index])
                spliced += [self.text[done:at], new]
                done = end
        return "".join([*spliced, self.text[done:]])


class _Member(msgspec.Struct, frozen=True):
    key: str
    key_start: int
    key_end: int
    start: int
    end: int


def _members(text: str, brace: int) -> Iterator[_Member]:
    """The members of the object whose `{` is at `brace`."""
    at = _after_space(text, brace + 1)
    while text[at] != "}":
        key, key_end = _skip_value(text, at)
        start = _after_space(text, _after_space(text, key_end) + 1)
        _, end = _skip_value(text, start)
        yield _Member(key, at, key_end, start, end)
        at = _next_item(text, end)


def _elements(text: str, bracket: int) -> Iterator[tuple[int, int]]:
    """Start and end of each element of the array whose `[` is at `bracket`."""
    at = _after_space(text, bracket + 1)
    while text[at] != "]":
        _, end = _skip_value(text, at)
        yield at, end
        at = _next_item(text, end)


def _list_start(text: str, key: str) -> int:
    root = _after_space(text, 0)
    return next(member.start for member in _members(text, root) if member.key == key)


def _splice(text: str, brace: int, key: str, value: bool | str) -> tuple[int, int, str]:
    """Which span to replace, and by what, so that the object has this member."""
    members = list(_members(text, brace))
    for member in members:
        if member.key == key:
            return member.start, member.end, json.dumps(value)
    return _insertion(text, brace, members, f'"{key}"', json.dumps(value))


def _insertion(
    text: str, brace: int, members: list[_Member], key: str, value: str
) -> tuple[int, int, str]:
    """A new last member, spaced like the one before it."""
    if not members:
        return brace + 1, brace + 1, f"{key}: {value}"
    last = members[-1]
    before = members[-2].end if len(members) > 1 else brace + 1
    gap = text[before : last.key_start]
    comma = gap if len(members) > 1 else f",{gap or ' '}"
    colon = text[last.key_end : last.start]
    return last.end, last.end, f"{comma}{key}{colon}{value}"


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _next_item(text: str, end: int) -> int:
    at = _after_space(text, end)
    return _after_space(text, at + 1) if text[at] == "," else at


def _parse(text: str, problems: Problems) -> object:
    repeated: list[tuple[dict[str, object], str]] = []
    constants: list[_Constant] = []

    def keep(pairs: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(pairs)
        if len(made) != len(pairs):
            repeated.append((made, _first_repeated(pairs)))
        return made

    def note(word: str) -> _Constant:
        constants.append(_Constant(word))
        return constants[-1]

    try:
        data: object = json.loads(text, object_pairs_hook=keep, parse_constant=note)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise problems.fail(place, f"not valid JSON: {_complaint(error)}") from None
    except RecursionError:
        raise problems.fail("", "is nested too deeply") from None
    except ValueError:
        # The only other ValueError of the decoder: Python's bound on the digits of an integer.
        raise problems.fail("", "holds a number with thousands of digits") from None
    if repeated or constants:
        _locate(data, repeated, problems)
    return data


def _first_repeated(pairs: list[tuple[str, object]]) -> str:
    seen: set[str] = set()
    return next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]


def _complaint(error: json.JSONDecodeError) -> str:
    rest = error.doc[error.pos : error.pos + 8]
    for mark, hint in _HINTS:
        if rest.startswith(mark):
            return hint
    before = error.doc[max(0, error.pos - 200) : error.pos].rstrip()
    if rest[:1] in ("}", "]") and before.endswith(","):
        return "a comma before the closing bracket"
    return error.msg if rest else f"{error.msg}, but the file ends here"


def _locate(
    data: object, repeated: list[tuple[dict[str, object], str]], problems: Problems
) -> None:
    """Find the objects and constants that were noted while decoding, and name their places."""
    keys = {id(made): key for made, key in repeated}
    stack: list[tuple[object, _Path | None]] = [(data, None)]
    while stack:
        value, path = stack.pop()
        if isinstance(value, _Constant):
            problems.add(_written(path), f"{value.word} is not a JSON value")
        elif isinstance(value, dict):
            if id(value) in keys:
                reason = f"the key {quoted(keys[id(value)])} stands here twice"
                problems.add(_written(path), reason)
            stack += [(item, _Path(path, step)) for step, item in reversed(value.items())]
        elif isinstance(value, list):
            stack += [(value[at], _Path(path, at)) for at in range(len(value) - 1, -1, -1)]


def _written(path: _Path | None) -> str:
    steps: list[str] = []
    while path is not None:
        if isinstance(path.step, int):
            steps.append(f"[{path.step}]")
        else:
            plain = len(path.step) <= 60 and _PLAIN_KEY.fullmatch(path.step)
            steps.append(f".{path.step}" if plain else f"[{quoted(path.step)}]")
        path = path.parent
    return "".join(reversed(steps)).removeprefix(".")[:_MAX_PLACE]
