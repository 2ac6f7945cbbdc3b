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

What is *not* a secret matters as much: git hashes, identifiers, dotted names, calls and type
annotations after `token =` survive, because the values next to a secret-sounding name must look
random.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

REPLACEMENT = b"[redacted]"

_LONGEST = 8 * 1024
_LONGEST_KEY_BLOCK = 16 * 1024
_SHORTEST_KNOWN_VALUE = 8


class _Span(NamedTuple):
    """A secret, and the whole match around it that must not be cut in two."""

    match_start: int
    start: int
    end: int


class _Rule(NamedTuple):
    start: re.Pattern[bytes]  # begins with a plain letter or sign, which makes the search fast
    pattern: re.Pattern[bytes]
    plausible: Callable[[re.Match[bytes]], bool]
    any_case: bool = False
    before: int = 0  # bytes of a secret that stand before its `start`


# --- does a value look random? ---------------------------------------------------------------

_WORDS = re.compile(rb"[A-Za-z]+[0-9]{0,2}|[0-9]+")
_BETWEEN_WORDS = re.compile(rb"[._/:@-]+")


def _entropy(value: bytes) -> float:
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())


def _is_made_of_words(value: bytes) -> bool:
    """True for `process.env.GITHUB_TOKEN_2`, `oauth2-proxy`: names, not random characters."""
    parts = (part for part in _BETWEEN_WORDS.split(value) if part)
    return all(_WORDS.fullmatch(part) for part in parts)


def _looks_random(value: bytes) -> bool:
    has_digit = any(48 <= byte <= 57 for byte in value)
    has_letter = any(65 <= byte & 0xDF <= 90 for byte in value)
    return has_digit and has_letter and _entropy(value) >= 3.0 and not _is_made_of_words(value)


def _always(_match: re.Match[bytes]) -> bool:
    return True


def _random_value(match: re.Match[bytes]) -> bool:
    return _looks_random(match["secret"])


def _assigned_value(match: re.Match[bytes]) -> bool:
    """A literal next to a secret-sounding name: quoted, or bare as in `.env` files and headers."""
    value = match["secret"]
    if match["quote"]:
        return _looks_random(value)
    after = match.string[match.end() : match.end() + 1]
    digits = sum(48 <= byte <= 57 for byte in value)
    return len(value) >= 16 and digits >= 2 and after not in {b"(", b"["} and _looks_random(value)


# --- the kinds of secrets --------------------------------------------------------------------
# Quantifiers are possessive: a place that is no secret after all is left without backtracking.


def _token(start: bytes, *tokens: bytes, random: bool = False, before: int = 0) -> _Rule:
    """Tokens known by how they begin, not in the middle of a longer word."""
    pattern = re.compile(rb"(?<![A-Za-z0-9])(?P<secret>" + b"|".join(tokens) + rb")")
    plausible = _random_value if random else _always
    return _Rule(re.compile(start), pattern, plausible, before=before)


def _named(start: bytes, name: bytes) -> _Rule:
    """A value assigned to a secret-sounding name.

    Bare values count only without blanks around `=`, or after `: `; with blanks it is code.
    """
    pattern = re.compile(
        rb"(?i:" + name + rb")[A-Za-z0-9_-]{0,24}+[\\\"']{0,3}+"
        rb"(?:[ \t]{0,4}+(?::=|=>|[:=])[ \t]{0,4}+\\{0,2}+(?P<quote>[\"'])|=|:[ ])"
        rb"(?P<secret>[A-Za-z0-9_./+=~@$%^&*!#:-]{12,512}+)"
    )
    return _Rule(re.compile(start), pattern, _assigned_value, any_case=True)


_BEFORE_KEY = b"|".join(
    rb"(?<=" + word + joint + rb")"
    for word in (b"api", b"access", b"account", b"signing", b"encryption", b"auth")
    for joint in (b"", b"[_-]")
)

_RULES: tuple[_Rule, ...] = (
    _token(rb"sk-", rb"sk-[A-Za-z0-9_-]{20,512}+", random=True),
    _token(
        rb"g(?:h[pousr]_|ithub_pat_|lpat-)",
        rb"gh[pousr]_[A-Za-z0-9]{30,255}+",
        rb"github_pat_[A-Za-z0-9_]{30,255}+",
        rb"glpat-[A-Za-z0-9_-]{20,255}+",
    ),
    _token(rb"k_live_", rb"[sr]k_live_[A-Za-z0-9]{16,255}+", before=1),
    _token(
        rb"A(?:[KS]IA|Iza)",
        rb"A[KS]IA[0-9A-Z]{16}(?![0-9A-Za-z])",
        rb"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
    ),
    _token(rb"xox", rb"xox[a-z]-[A-Za-z0-9-]{10,255}+"),
    _token(rb"ya29\.", rb"ya29\.[A-Za-z0-9_-]{20,2048}+"),
    _token(rb"npm_", rb"npm_[A-Za-z0-9]{30,64}+", random=True),
    _token(rb"hf_", rb"hf_[A-Za-z0-9]{30,64}+", random=True),
    _token(rb"pypi-AgE", rb"pypi-AgE[A-Za-z0-9_-]{50,1024}+"),
    _token(
        rb"eyJ",
        rb"eyJ[A-Za-z0-9_-]{8,1024}+\.eyJ[A-Za-z0-9_-]{4,4096}+\.[A-Za-z0-9_-]{8,1024}+",
    ),
    _Rule(
        re.compile(rb"bearer "),
        re.compile(rb"(?i:bearer)[ ]{1,3}+(?P<secret>[A-Za-z0-9._~+/=-]{12,4096}+)"),
        _random_value,
        any_case=True,
    ),
    _Rule(
        re.compile(rb"authorization"),
        re.compile(
            rb"(?i:authorization)[\\\"']{0,3}+[ ]{0,3}+[:=][ ]{0,3}+[\\\"']{0,3}+"
            rb"(?i:bearer|basic|token)[ ]{1,3}+(?P<secret>[A-Za-z0-9._~+/=-]{8,4096}+)"
        ),
        _always,
        any_case=True,
    ),
    _Rule(
        re.compile(rb"://"),
        re.compile(
            rb"://[^\s/:@\"'<>\\]{1,64}+:(?P<secret>[^\s/:@\"'<>\\{}$\[\]]{3,128}+)@(?=[A-Za-z0-9])"
        ),
        _always,
    ),
    _named(rb"passw", rb"passw(?:or)?d"),
    _named(rb"secret", rb"secret"),
    _named(rb"token", rb"token"),
    _named(rb"credential", rb"credential"),
    _named(rb"key", rb"(?:" + _BEFORE_KEY + rb")key"),
)

_BEGIN = b"-----BEGIN "
_KEY_BEGIN = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# What may stand between the two, also with line ends escaped as in JSON; no quotes, so that code
# which merely mentions both markers is left alone.
_KEY_TEXT = re.compile(rb"(?:[A-Za-z0-9+/=:,.() \r\n\t-]|\\[nr]){0,16384}+")
_KEY_LINES = re.compile(rb"(?:(?:\s|\\[nr]){0,4}+[A-Za-z0-9+/=]{40,80}+){1,200}+")


# --- finding ---------------------------------------------------------------------------------


def _places(data: bytes, literal: bytes) -> Iterator[int]:
    at = data.find(literal)
    while at != -1:
        yield at
        at = data.find(literal, at + len(literal))


def _spans_of(rule: _Rule, haystack: bytes, data: bytes) -> Iterator[_Span]:
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
    for rule in _RULES:
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
    goes_on = text is not None and text.end() == len(data)
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
