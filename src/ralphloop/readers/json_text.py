"""Decoding one JSON text that may be damaged."""

from __future__ import annotations

import re

import msgspec

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

    def __init__(self, *, truncated: bool) -> None:
        super().__init__("truncated" if truncated else "malformed")
        self.truncated = truncated


def opens_document(line: Bytes) -> bool:
    """Whether a line without leading blanks begins like a JSON object or an array of objects."""
    return line[:1] in (b"{", b"[") and _OPENING.match(line) is not None


def decode(data: Bytes) -> object:
    """Decode one JSON text, forgiving invalid UTF-8 and lone surrogates; raises Unreadable."""
    try:
        return msgspec.json.decode(data)
    except DAMAGES as damage:
        if data.isascii() and b"\\u" not in data:
            raise _unreadable(damage) from None
    try:
        return msgspec.json.decode(_repaired(data))
    except DAMAGES as damage:
        raise _unreadable(damage) from None


def _unreadable(damage: Exception) -> Unreadable:
    cut = isinstance(damage, msgspec.DecodeError) and "truncated" in str(damage)
    return Unreadable(truncated=cut)


def _repaired(data: Bytes) -> Bytes:
    """Cut emoji and stray bytes become replacement characters; the rest is untouched."""
    if not data.isascii():
        data = data.decode("utf-8", "replace").encode()
    return _ESCAPE.sub(lambda match: rb"\ufffd" if match["lone"] else match[0], data)
