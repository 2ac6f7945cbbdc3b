"""Is a check told to look at less than before?

Compares the two sides of a file that configures checks: options that leave tests out, rules that
are switched off, thresholds lowered, scripts that always succeed, pipelines that no longer stop.
What to look for is data (`data/check_files.toml`): expressions for what weakens when it is new and
for what weakens when it is gone.  TOML and INI are also read as settings, so that a list written
over several lines, or under another name, is the same list.
"""

from __future__ import annotations

import configparser
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files

import msgspec

from ralphloop.core.model import Value

_LONGEST_LINE = 500
_LONGEST_FINDING = 160
_INI = (".ini", ".cfg", ".flake8", ".coveragerc")
_ON = frozenset({"true", "yes", "on"})


class _Rule(Value, frozen=True):
    """What one kind of file must not have more of, or less; the data file says how."""

    says: str
    files: str
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    fewer: tuple[str, ...] = ()
    lower: tuple[str, ...] = ()
    deleted: str = ""


@cache
def _rules() -> list[_Rule]:
    text = files("ralphloop.repo").joinpath("data/check_files.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text)["rule"], list[_Rule])


def _rules_for(path: str) -> list[_Rule]:
    return [rule for rule in _rules() if re.search(rule.files, path)]


def is_configuration(path: str) -> bool:
    """True for files that tell a check what to do."""
    return bool(_rules_for(path))


def weakenings(path: str, before: bytes, after: bytes | None) -> list[str]:
    """Everything in which the new side asks less than the old one, in words."""
    rules = _rules_for(path)
    if after is None:
        # A configuration may move to another file; that alone proves nothing.
        return [rule.deleted for rule in rules if rule.deleted]
    if not rules:
        return []
    old, new = (Counter(_lines(path, side.decode("utf-8", "replace"))) for side in (before, after))
    gone, came = "\n".join((old - new).elements()), "\n".join((new - old).elements())
    return [
        f"{rule.says}: {what[:_LONGEST_FINDING]}"
        for rule in rules
        if (what := ", ".join(_weaker(rule, gone, came)))
    ]


def _weaker(rule: _Rule, old: str, new: str) -> Iterator[str]:
    yield from _found(rule.new, new) - _found(rule.new, old)
    yield from _found(rule.gone, old) - _found(rule.gone, new)
    fewer, left = _found(rule.fewer, old), _found(rule.fewer, new)
    if not left - fewer:
        yield from fewer - left
    floors, numbers = (dict(_numbers(rule.lower, side)) for side in (old, new))
    for name, floor in floors.items():
        if numbers.get(name, 0) < floor:
            yield f"{name} went from {floor} to {numbers.get(name, 'nothing')}"


def _found(expressions: Iterable[str], text: str) -> Counter[str]:
    return Counter(
        found[found.lastindex or 0].strip()
        for expression in expressions
        for found in re.finditer(expression, text, re.MULTILINE)
    )


def _numbers(expressions: Iterable[str], text: str) -> Iterator[tuple[str, int]]:
    for expression in expressions:
        for name, number in re.findall(expression, text):
            yield name, int(number[:9])


def _lines(path: str, text: str) -> list[str]:
    """The lines of a file, and its settings where the format is known."""
    lines = [line.strip() for line in text.splitlines()]
    name = path.rpartition("/")[2]
    try:
        if name.endswith(".toml"):
            lines += _settings(name, tomllib.loads(text))
        elif name.endswith(_INI):
            parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
            parser.read_string(text)
            lines += _settings(name, {part: dict(parser.items(part)) for part in parser.sections()})
    except (tomllib.TOMLDecodeError, configparser.Error, RecursionError):
        pass  # the check itself will say so
    return [line[:_LONGEST_LINE] for line in lines]


def _settings(place: str, value: object) -> Iterator[str]:
    """Every word of every setting, behind where it stands."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _settings(f"{place}/{key}", inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _settings(place, inner)
    else:
        for word in re.split(r"[\s,]+", str(value or "")):
            yield f"{place} = {'true' if word.lower() in _ON else word}"
