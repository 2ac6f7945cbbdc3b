"""Files of settings that a test runner shares with the product: its own parts, and the rest.

`Cargo.toml` says what is built and how tests are run, and so do `pom.xml` and `build.gradle`.  Two
versions of such a file are crossed like two versions of a source with its examples: the one with
the runner's own parts of the other.  Tables of TOML are told by their headers and keys, parts of a
`pom.xml` by their tags, blocks of Gradle by their first words, all without changing a word of what
is kept.
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
_WORD = re.compile(r"\w+")
_PLUGIN = "plugin"
_BUILD = "build"


def crossed_parts(path: str, old: bytes, new: bytes, keys: Collection[str]) -> Crossed | None:
    """The two versions crossed; None where nothing but such parts differs, or nobody can tell."""
    if max(len(old), len(new)) > _LARGEST:
        return None
    try:
        crossed = _crossed_toml if path.endswith(".toml") else _crossed_texts
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


# XML and Gradle


class _Part(NamedTuple):
    tag: str  # empty: a block of Gradle
    start: int
    end: int


def own_parts(path: str, text: str, keys: Collection[str]) -> tuple[str, ...]:
    """The runner's own parts of a `pom.xml` or a `build.gradle`; ValueError: it cannot be read.

    Elements of these tags, and plugins for tests; blocks that begin with one of these words.
    """
    is_xml = path.endswith(".xml")
    return tuple(text[it.start : it.end] for it in _parts(text, keys, is_xml=is_xml))


def _parts(text: str, keys: Collection[str], *, is_xml: bool) -> list[_Part]:
    return _elements_of(text, keys) if is_xml else list(_blocks(text, keys))


def _blocks(text: str, keys: Collection[str]) -> Iterator[_Part]:
    """Blocks in braces that stand in no other, and whose line names one of the words."""
    depth = 0
    start = -1
    at = 0
    for line in text.splitlines(keepends=True):
        if depth == 0 and start < 0 and not set(keys).isdisjoint(_WORD.findall(line)):
            start = at
        depth += line.count("{") - line.count("}")
        at += len(line)
        if start >= 0 and depth <= 0:
            yield _Part("", start, at)
            start = -1
    if depth != 0:
        raise ValueError("a block has no end")


def _elements_of(text: str, keys: Collection[str]) -> list[_Part]:
    found = sorted((it for tag in keys for it in _elements(text, tag)), key=lambda it: it.start)
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


def _crossed_texts(old: str, new: str, keys: Collection[str]) -> tuple[str, str] | None:
    """Both crossed, None where the rest is the same; ValueError where one cannot be read."""
    is_xml = old.lstrip().startswith("<")
    parts = [_parts(text, keys, is_xml=is_xml) for text in (old, new)]
    was, now = parts
    rest_was = _without(old, was)
    rest_now = _without(new, now)
    if rest_was.split() == rest_now.split():
        return None
    return (_with_parts(rest_now, old, was), _with_parts(rest_was, new, now))


def _without(text: str, parts: Sequence[_Part]) -> str:
    kept = list[str]()
    at = 0
    for one in parts:
        kept.append(text[at : one.start])
        at = one.end
    return "".join((*kept, text[at:]))


def _with_parts(base: str, other: str, parts: Sequence[_Part]) -> str:
    """The one, which has no parts of its own any more, with these of the other."""
    text = base
    for one in parts:
        around = f"</{_PLUGIN}s>" if one.tag == _PLUGIN else f"</{_BUILD}>"
        place = text.find(around) if one.tag else len(text)
        if place < 0:
            raise ValueError("there is no place for a part")
        text = f"{text[:place]}\n{other[one.start : one.end]}\n{text[place:]}"
    return text
