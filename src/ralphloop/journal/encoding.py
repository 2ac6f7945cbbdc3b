"""Values on their way into the journal, and back where another version wrote them.

They come from agents and files we do not control: half surrogate pairs, negative or endless
numbers.  A night must not end because a number could not be stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

_LARGEST_INTEGER = 2**53
_S = TypeVar("_S", bound=msgspec.Struct)


def text(value: str) -> str:
    """The text without half surrogate pairs, which undecodable output leaves behind."""
    return value.encode("utf-8", "replace").decode("utf-8")


def texts(values: Mapping[str, object]) -> dict[str, object]:
    """The same values with every text made storable."""
    return {
        name: text(value) if isinstance(value, str) else value for name, value in values.items()
    }


def count(value: int) -> int:
    """A number somebody reported: never negative, never more than the file can hold."""
    return min(max(value, 0), _LARGEST_INTEGER)


def money(value: float) -> float:
    """A cost somebody reported: finite and never negative."""
    return max(0.0, value) if math.isfinite(value) else 0.0


def json_text(value: object) -> str:
    """The value as JSON."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(_plain(msgspec.to_builtins(value))).decode()


def readable(written: object, kind: type[_S]) -> _S:
    """The value; of one that another version wrote, the parts that can be read."""
    with suppress(msgspec.ValidationError):
        return msgspec.convert(written, kind)
    found, kept = written if isinstance(written, dict) else {}, {}
    for field in msgspec.structs.fields(kind):
        if field.name in found:
            with suppress(msgspec.ValidationError):
                kept[field.name] = _readable(found[field.name], field.type)
    return kind(**kept)


def _readable(written: object, kind: Any) -> object:
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    if is_struct and not any(field.required for field in msgspec.structs.fields(kind)):
        return readable(written, kind)
    return msgspec.convert(written, kind)


def _plain(value: object) -> object:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {text(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
