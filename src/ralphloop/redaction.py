"""Secrets are taken out before anything is stored, shown or sent to an agent again.

A secret is found in two steps, so that a flood of ordinary output costs little: a search for the
letters every secret of a kind begins with (`ghp_`, `token`, …; where a pattern begins with plain
letters, `re` is faster than `bytes.find`), and only at such a place is a bounded pattern tried.  No
pattern can look at more than `_LONGEST` bytes, so time is linear whatever the input.  Only
characters of the secret itself are replaced, never quotes or backslashes: a JSON line stays a JSON
line.

`Redactor` does the same for a stream.  Whole lines are passed on at once (no secret but a PEM
key spans a line); of an unfinished line the last `_LONGEST` bytes are held back, because a
secret may go on in the next chunk.

Which kinds there are is said in `secret_kinds`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ralphloop.secret_kinds import RULES, Rule

REPLACEMENT = b"[redacted]"

_LONGEST = 8 * 1024
_LONGEST_KEY_BLOCK = 16 * 1024
_SHORTEST_KNOWN_VALUE = 8


class _Span(NamedTuple):
    """A secret, and the whole match around it that must not be cut in two."""

    match_start: int
    start: int
    end: int


_BEGIN = b"-----BEGIN "
_KEY_BEGIN = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# What may stand between the two, also quoted, with the line numbers of a tool, or with escapes of
# JSON inside of JSON; no quotation marks, so that code which merely mentions both is left alone.
_ARROW = rb"\xe2\x86\x92"  # behind a line number
_ESCAPED = rb"\\{1,4}+(?:[nrt]|u2192)"
_LONGEST_SIGN = 10  # an arrow, escaped twice
_KEY_TEXT = re.compile(
    rb"(?:[A-Za-z0-9+/=:,.() \r\n\t>|-]|" + _ARROW + rb"|" + _ESCAPED + rb"){0,16384}+"
)
_KEY_LINES = re.compile(
    rb"(?:(?:[\s>|+-]|" + _ESCAPED + rb"){0,12}+"
    rb"(?:[0-9]{1,6}+(?:[\s:|]|" + _ARROW + rb"|" + _ESCAPED + rb"))?+"
    rb"[A-Za-z0-9+/=]{40,80}+){1,200}+"
)


# --- finding ---------------------------------------------------------------------------------


def _places(data: bytes, literal: bytes) -> Iterator[int]:
    at = data.find(literal)
    while at != -1:
        yield at
        at = data.find(literal, at + len(literal))


def _spans_of(rule: Rule, haystack: bytes, data: bytes) -> Iterator[_Span]:
    found = rule.start.search(haystack)
    while found:
        at = found.start() - rule.before
        match = rule.pattern.match(data, at) if at >= 0 else None
        if match and rule.plausible(match):
            yield _Span(at, *match.span("secret"))
        # Go on behind what was looked at, secret or not: nothing is read twice.
        found = rule.start.search(haystack, (match or found).end())


def _token_spans(data: bytes) -> Iterator[_Span]:
    lowered = data.lower()
    for rule in RULES:
        yield from _spans_of(rule, lowered if rule.any_case else data, data)


def _end_of_key(data: bytes, begin: re.Match[bytes], limit: int) -> int | None:
    text = _KEY_TEXT.match(data, begin.end(), limit)
    end = _KEY_END.search(data, begin.end(), text.end() if text else begin.end())
    found = end or _KEY_LINES.match(data, begin.end(), limit)
    return found.end() if found else None


def _key_spans(data: bytes) -> Iterator[_Span]:
    places = [*_places(data, _BEGIN), len(data)]
    for at, following in pairwise(places):
        begin = _KEY_BEGIN.match(data, at)
        if begin and (end := _end_of_key(data, begin, following)):
            yield _Span(at, at, end)


def _unfinished_key(data: bytes) -> int | None:
    """Where a private key begins whose end has not come yet."""
    at = data.rfind(_BEGIN, max(0, len(data) - _LONGEST_KEY_BLOCK))
    begin = _KEY_BEGIN.match(data, at) if at != -1 else None
    text = _KEY_TEXT.match(data, begin.end()) if begin else None
    # A sign of several bytes may be cut in two.
    goes_on = text is not None and text.end() > len(data) - _LONGEST_SIGN
    return at if goes_on and not _KEY_END.search(data, at) else None


def _known_spans(data: bytes, known: tuple[bytes, ...]) -> Iterator[_Span]:
    for value in known:
        for at in _places(data, value):
            yield _Span(at, at, at + len(value))


def _spans(data: bytes, known: tuple[bytes, ...]) -> list[_Span]:
    return sorted({*_token_spans(data), *_key_spans(data), *_known_spans(data, known)})


def _replace(data: bytes, spans: Iterable[_Span]) -> bytes:
    pieces, done = [], 0
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        if span.start >= done:
            pieces += [data[done : span.start], REPLACEMENT]
        done = max(done, span.end)
    return b"".join([*pieces, data[done:]]) if pieces else data


# --- what callers use ------------------------------------------------------------------------

_SECRET_NAME_PARTS = frozenset(
    {"KEY", "KEYS", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS", "CREDENTIAL", "CREDENTIALS",
     "APIKEY", "PAT", "PASSPHRASE"}
)  # fmt: skip


def secret_values(env: Mapping[str, str]) -> tuple[str, ...]:
    """Values of the variables whose names look secret; paths, short and numeric ones are not."""
    return tuple(
        value
        for name, value in env.items()
        if _sounds_secret(name)
        and len(value) >= _SHORTEST_KNOWN_VALUE
        and not value.startswith(("/", "~", "./"))
        and not value.isdigit()
    )


@lru_cache(maxsize=1024)
def _sounds_secret(name: str) -> bool:
    return not _SECRET_NAME_PARTS.isdisjoint(name.upper().split("_"))


def _known_literals(secrets: Iterable[str]) -> tuple[bytes, ...]:
    """Each secret as it may stand in output: line by line, in bounded pieces, JSON-escaped."""
    literals: set[bytes] = set()
    for secret in secrets:
        for line in secret.splitlines():
            raw = line.strip().encode("utf-8", "surrogateescape")
            escaped = raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
            for form in (raw, escaped):
                half = _LONGEST // 2
                literals.update(form[at : at + half] for at in range(0, len(form), half))
    return tuple(
        sorted((it for it in literals if len(it) >= _SHORTEST_KNOWN_VALUE), key=len, reverse=True)
    )


def redact_bytes(data: bytes, secrets: Iterable[str] = ()) -> bytes:
    """The data with every recognised secret replaced."""
    return _replace(data, _spans(data, _known_literals(secrets)))


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with every recognised secret replaced."""
    data = text.encode("utf-8", "surrogatepass")
    return redact_bytes(data, secrets).decode("utf-8", "surrogatepass")


class Redactor:
    """Redacts a stream: a secret split over two chunks is still one secret."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = _known_literals(secrets)
        self._held = b""
        # The byte before what is held: without it the middle of a word would look like its start.
        self._before = b""

    def feed(self, chunk: bytes) -> bytes:
        """What may be passed on now, redacted."""
        return self._pass_on(self._held + chunk, everything=False)

    def finish(self) -> bytes:
        """What was still held back, redacted."""
        return self._pass_on(self._held, everything=True) if self._held else b""

    def _pass_on(self, pending: bytes, *, everything: bool) -> bytes:
        offset = len(self._before)
        data = self._before + pending
        spans = _spans(data, self._known)
        cut = len(data) if everything else max(offset, _safe_cut(data, spans))
        ready = _replace(data[:cut], (span for span in spans if span.end <= cut))
        self._held, before = data[cut:], self._before
        self._before = data[cut - 1 : cut]
        return ready[len(before) :]


def _safe_cut(data: bytes, spans: list[_Span]) -> int:
    """The last place where nothing that may still become a secret is torn apart."""
    line_end = data.rfind(b"\n") + 1
    cut = line_end if len(data) - line_end <= _LONGEST else len(data) - _LONGEST
    open_key = _unfinished_key(data)
    if open_key is not None:
        cut = min(cut, open_key)
    for span in reversed(spans):
        if span.match_start < cut < span.end:
            cut = span.match_start
    return cut
