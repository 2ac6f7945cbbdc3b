"""Files of settings that a test runner shares with the product: its own parts, and the rest.

`Cargo.toml` says what is built and how tests are run, and so does `pom.xml`.  Two versions of such
a file are crossed like two versions of a source with its examples: the one with the runner's own
parts of the other.  Tables of TOML are told by their headers and keys, parts of a `pom.xml` by
their tags, both without changing a word of what is kept.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ralphloop.text.doctests import Crossed

_LARGEST = 1 << 18
_HEADER = re.compile(r"^\s*\[{1,2}([^\]\n]{1,200})\]{1,2}\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_.\"'-]{1,200})\s*=")
_OF_TESTS = re.compile(r"test|surefire|failsafe", re.IGNORECASE)
_PLUGIN = "plugin"
_BUILD = "build"


def crossed_parts(path: str, old: bytes, new: bytes, keys: Collection[str]) -> Crossed | None:
    """The two versions crossed; None where nothing but such parts differs, or nobody can tell."""
    if max(len(old), len(new)) > _LARGEST:
        return None
    try:
        crossed = _crossed_xml if path.endswith(".xml") else _crossed_toml
        both = crossed(old.decode(), new.decode(), keys)
    except ValueError:
        return None
    if both is None:
        return None
    new_code, old_code = (text.encode() for text in both)
    return Crossed(new_code=new_code, old_code=old_code)


# TOML


class _Entry(NamedTuple):
    table: str  # the header it stands below; empty: none
    is_own: bool
    is_header: bool
    text: str


def _crossed_toml(old: str, new: str, keys: Collection[str]) -> tuple[str, str] | None:
    """Both crossed, None where the rest is the same; ValueError where one cannot be read."""
    entries = [_entries(text, keys) for text in (old, new)]
    for text, found in zip((old, new), entries, strict=True):
        if "".join(one.text for one in found) != text:
            raise ValueError("a file of settings cannot be taken apart")
    was, now = entries
    rests = ([it.text.rstrip() for it in found if not it.is_own] for found in entries)
    if next(rests) == next(rests):
        return None
    both = (_with_own(now, was), _with_own(was, now))
    for text in (old, new, *both):
        tomllib.loads(text)
    return both


def _entries(text: str, keys: Collection[str]) -> list[_Entry]:
    """The headers and settings of a file, each with the lines that belong to it."""
    found = list[_Entry]()
    table = ""
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line)
        key = _KEY.match(line)
        if header:
            table = _plain(header[1])
            found.append(_Entry(table, _is_below(table, keys), True, line))
        elif key or not found:
            name = ".".join(filter(None, [table, _plain(key[1]) if key else ""]))
            found.append(_Entry(table, _is_below(name, keys), False, line))
        else:
            found[-1] = found[-1]._replace(text=found[-1].text + line)
    return found


def _plain(name: str) -> str:
    return ".".join(part.strip(" \"'") for part in name.split("."))


def _is_below(name: str, keys: Collection[str]) -> bool:
    return any(name == key or name.startswith(f"{key}.") for key in keys)


def _with_own(base: Sequence[_Entry], other: Sequence[_Entry]) -> str:
    """What is not the runner's own of the one, with what is of the other."""
    waiting = [one for one in other if one.is_own]
    parts = list[str]()
    for one in base:
        if one.is_own:
            continue
        parts.append(one.text)
        if one.is_header:  # settings of the runner in a table that it shares
            inside = [it for it in waiting if it.table == one.table]
            waiting = [it for it in waiting if it.table != one.table]
            parts += (_ended(it.text) for it in inside)
    if any(not _is_whole(one, waiting) for one in waiting):
        raise ValueError("a table of settings is not there")
    parts += (f"\n{_ended(it.text)}" if it.is_header else _ended(it.text) for it in waiting)
    return "".join(map(_ended, parts)) if waiting else "".join(parts)


def _is_whole(one: _Entry, waiting: Sequence[_Entry]) -> bool:
    """Whether its table comes along."""
    return one.is_header or any(it.is_header and it.table == one.table for it in waiting)


def _ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


# XML


class _Part(NamedTuple):
    tag: str
    start: int
    end: int


def own_parts_of_xml(text: str, keys: Collection[str]) -> tuple[str, ...]:
    """The runner's own parts of a `pom.xml`: elements of these tags, and plugins for tests."""
    return tuple(text[it.start : it.end] for it in _parts(text, keys))


def _parts(text: str, keys: Collection[str]) -> list[_Part]:
    found = sorted(it for tag in keys for it in _elements(text, tag))
    found.sort(key=lambda it: it.start)
    outer = list[_Part]()
    for one in found:
        is_own = one.tag != _PLUGIN or _OF_TESTS.search(text[one.start : one.end])
        if is_own and not (outer and one.start < outer[-1].end):
            outer.append(one)
    return outer


def _elements(text: str, tag: str) -> Iterator[_Part]:
    """Elements of a tag that stand in no other of it."""
    at = 0
    while (start := text.find(f"<{tag}>", at)) >= 0:
        end = text.find(f"</{tag}>", start)
        if end < 0:
            raise ValueError("an element has no end")
        at = end + len(f"</{tag}>")
        yield _Part(tag, start, at)


def _crossed_xml(old: str, new: str, keys: Collection[str]) -> tuple[str, str] | None:
    """Both crossed, None where the rest is the same; ValueError where one cannot be read."""
    if _without_parts(old, keys).split() == _without_parts(new, keys).split():
        return None
    return (_with_parts(new, old, keys), _with_parts(old, new, keys))


def _without_parts(text: str, keys: Collection[str]) -> str:
    kept = list[str]()
    at = 0
    for one in _parts(text, keys):
        kept.append(text[at : one.start])
        at = one.end
    return "".join((*kept, text[at:]))


def _with_parts(base: str, other: str, keys: Collection[str]) -> str:
    """The one without its own parts, and with those of the other."""
    text = _without_parts(base, keys)
    for one in _parts(other, keys):
        around = f"</{_PLUGIN}s>" if one.tag == _PLUGIN else f"</{_BUILD}>"
        place = text.find(around)
        if place < 0:
            raise ValueError("there is no place for a part")
        text = f"{text[:place]}{other[one.start : one.end]}\n{text[place:]}"
    return text
