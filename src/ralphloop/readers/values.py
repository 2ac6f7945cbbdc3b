"""Reading untyped JSON without trusting it: a field that is missing, of another type, negative or
absurd becomes a harmless value, so that it never costs the rest of an event."""

import math
import re
from typing import TypeVar

import msgspec

_Item = TypeVar("_Item")
Document = dict[str, object]  # one decoded JSON object

_MOST = 10**15  # more tokens or seconds than anyone will ever see


def short_text_of(value: object) -> str | None:
    """An id or a name, bounded; None where there is none."""
    return value[:200] if isinstance(value, str) and value else None


def count_of(value: object) -> int:
    """A count that is never negative; anything else is zero."""
    if type(value) is int:
        return value if 0 <= value <= _MOST else max(0, min(value, _MOST))
    if isinstance(value, float) and math.isfinite(value):
        return min(max(int(value), 0), _MOST)
    return 0


def status_code_of(value: object) -> int | None:
    number = count_of(value)
    return number if 100 <= number <= 599 else None


def amount_of(value: object) -> float | None:
    """Dollars, or a part of something; None where none is named."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _MOST else None


def share_of(value: object, whole: float = 1.0) -> float | None:
    """The used part of a whole, 1 where it is all of it, or None."""
    amount = amount_of(value)
    return None if amount is None else min(amount / whole, 2.0)


def document_of(value: object) -> Document:
    return value if isinstance(value, dict) else {}


def listed(value: object, kind: type[_Item]) -> list[_Item]:
    """What of that kind stands in a list; whatever else does is left out."""
    return [item for item in value if isinstance(item, kind)] if isinstance(value, list) else []


def text_at(document: Document, key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""


def count_at(document: Document, key: str) -> int:
    return count_of(document.get(key))


def document_at(document: Document, key: str) -> Document:
    return document_of(document.get(key))


def documents_at(document: Document, key: str) -> list[Document]:
    return listed(document.get(key), dict)


Bytes = bytes | bytearray

BLANK = b" \t\r\xef\xbb\xbf"  # a byte order mark is blank, too

_OPENING = re.compile(rb'\{\s*(?:"|\}\s*$|$)|\[\s*(?:\{|\]\s*$|$)')
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|\\."
)

DAMAGES = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # what decoding may raise


class Unreadable(Exception):
    """Bytes that are no JSON; `truncated` if more bytes could still make them so."""

    def __init__(self, damage: Exception) -> None:
        super().__init__(str(damage))
        self.truncated = isinstance(damage, msgspec.DecodeError) and "truncated" in str(damage)


def opens_document(line: Bytes) -> bool:
    """Whether a line without leading blanks begins like a JSON object or an array of objects."""
    return line[:1] in (b"{", b"[") and _OPENING.match(line) is not None


def decode(data: Bytes) -> object:
    """Decode one JSON text, forgiving invalid UTF-8 and lone surrogates; raises Unreadable."""
    try:
        return msgspec.json.decode(data)
    except DAMAGES as damage:
        if data.isascii() and b"\\u" not in data:
            raise Unreadable(damage) from None
    # Cut emoji and stray bytes become replacement characters; the rest is untouched.
    if not data.isascii():
        data = data.decode("utf-8", "replace").encode()
    data = _ESCAPE.sub(lambda match: rb"\ufffd" if match["lone"] else match[0], data)
    try:
        return msgspec.json.decode(data)
    except DAMAGES as damage:
        raise Unreadable(damage) from None
