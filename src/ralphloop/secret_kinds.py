"""The kinds of secrets: how each begins, what it looks like, and when it is believed.

Most tokens are known by how they begin.  The rest stands beside a name that sounds secret, in an
address, in a header or in a command.  What is *not* a secret matters as much: git hashes,
identifiers, dotted names, calls and type annotations after `token =` survive, because the values
next to a secret-sounding name must look random.  Passwords are chosen by people and short, so for
them less is enough.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple


class Rule(NamedTuple):
    """A kind of secret: where to look, and what must stand there."""

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


def _looks_random(value: bytes, entropy: float = 3.0) -> bool:
    has_letter = any(65 <= byte & 0xDF <= 90 for byte in value)
    if not has_letter or not _digits(value):
        return False
    return _entropy(value) >= entropy and not _is_made_of_words(value)


def _digits(value: bytes) -> int:
    return sum(48 <= byte <= 57 for byte in value)


def _always(_match: re.Match[bytes]) -> bool:
    return True


def _random_value(match: re.Match[bytes]) -> bool:
    return _looks_random(match["secret"])


def _in_address(match: re.Match[bytes]) -> bool:
    """A password, or a token in the place of the name."""
    return bool(match["user"]) or (len(match["secret"]) >= 16 and _random_value(match))


def _assigned_value(match: re.Match[bytes]) -> bool:
    """A literal next to a secret-sounding name: quoted, or bare as in `.env` files and headers."""
    value = match["secret"]
    if match["quote"]:
        return _looks_random(value)
    return len(value) >= 16 and _is_bare(match) and _looks_random(value)


def _password(match: re.Match[bytes]) -> bool:
    """The same for what people choose themselves: shorter, and less random."""
    return bool(match["quote"] or _is_bare(match)) and _looks_random(match["secret"], 2.5)


def _is_bare(match: re.Match[bytes]) -> bool:
    """A value and no code: one digit is in many a name, and calls go on."""
    after = match.string[match.end() : match.end() + 1]
    return _digits(match["secret"]) >= 2 and after not in {b"(", b"["}


# --- the kinds of secrets --------------------------------------------------------------------
# Quantifiers are possessive: a place that is no secret after all is left without backtracking.


def _token(start: bytes, *tokens: bytes, random: bool = False, before: int = 0) -> Rule:
    """Tokens known by how they begin, not in the middle of a longer word."""
    pattern = re.compile(rb"(?<![A-Za-z0-9])(?P<secret>" + b"|".join(tokens) + rb")")
    plausible = _random_value if random else _always
    return Rule(re.compile(start), pattern, plausible, before=before)


def _named(
    start: bytes,
    name: bytes,
    joint: bytes = rb"=|:[ ]",
    plausible: Callable[[re.Match[bytes]], bool] = _assigned_value,
    shortest: int = 12,
) -> Rule:
    """A value assigned to a secret-sounding name.

    Bare values count only without blanks around `=`, or after `: `; with blanks it is code.
    """
    pattern = re.compile(
        rb"(?i:" + name + rb")[A-Za-z0-9_-]{0,24}+[\\\"']{0,3}+"
        rb"(?:[ \t]{0,4}+(?::=|=>|[:=])[ \t]{0,4}+\\{0,2}+(?P<quote>[\"'])|" + joint + rb")"
        rb"(?P<secret>[A-Za-z0-9_./+=~@$%^&*!#:-]{" + str(shortest).encode() + rb",512}+)"
    )
    return Rule(re.compile(start), pattern, plausible, any_case=True)


_BEFORE_KEY = b"|".join(
    rb"(?<=" + word + joint + rb")"
    for word in (b"api", b"access", b"account", b"signing", b"encryption", b"auth")
    for joint in (b"", b"[_-]")
)

_ASSIGNED = rb"[\\\"']{0,3}+[ ]{0,3}+[:=][ ]{0,3}+[\\\"']{0,3}+"

# One search costs the same whatever follows its first letter, so kinds that share it share a rule.
RULES: tuple[Rule, ...] = (
    _token(
        rb"s(?:k-|hp[acps][aost]_)",
        rb"sk-[A-Za-z0-9_-]{20,512}+",
        rb"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}",
        random=True,
    ),
    _token(
        rb"g(?:h[pousr]_|ithub_pat_|lpat-|sk_)",
        rb"gh[pousr]_[A-Za-z0-9]{30,255}+",
        rb"github_pat_[A-Za-z0-9_]{30,255}+",
        rb"glpat-[A-Za-z0-9_-]{20,255}+",
        rb"gsk_[A-Za-z0-9]{30,128}+",
    ),
    _token(rb"k_live_", rb"[sr]k_live_[A-Za-z0-9]{16,255}+", before=1),
    _token(
        rb"A(?:[KS]IA|Iza|GE-SECRET-KEY-1)",
        rb"A[KS]IA[0-9A-Z]{16}(?![0-9A-Za-z])",
        rb"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
        rb"AGE-SECRET-KEY-1[A-Z0-9]{40,64}+",
    ),
    _token(
        rb"x(?:ox|app-|ai-)",
        rb"xox[a-z]-[A-Za-z0-9-]{10,255}+",
        rb"xapp-[A-Za-z0-9-]{20,255}+",
        rb"xai-[A-Za-z0-9]{40,128}+",
    ),
    _token(
        rb"d(?:o[opr]_v1_|api|iscord(?:app)?\.com/api/w)",
        rb"do[opr]_v1_[a-f0-9]{32,64}+",
        rb"dapi[a-f0-9]{32}(?![A-Za-z0-9])",
        rb"discord(?:app)?\.com/api/webhooks/[0-9]{10,24}+/[A-Za-z0-9_-]{20,128}+",
    ),
    _token(
        rb"h(?:v[sbr]\.|f_|ooks\.slack\.com/)",
        rb"hv[sbr]\.[A-Za-z0-9_-]{20,255}+",
        rb"hf_[A-Za-z0-9]{30,64}+",
        rb"hooks\.slack\.com/[a-z]{5,12}+/[A-Za-z0-9/]{20,128}+",
        random=True,
    ),
    _token(rb"SG\.", rb"SG\.[A-Za-z0-9_-]{16,32}+\.[A-Za-z0-9_-]{30,64}+"),
    _token(rb"ya29\.", rb"ya29\.[A-Za-z0-9_-]{20,2048}+"),
    _token(rb"npm_", rb"npm_[A-Za-z0-9]{30,64}+", random=True),
    _token(rb"pypi-AgE", rb"pypi-AgE[A-Za-z0-9_-]{50,1024}+"),
    _token(
        rb"eyJ",
        rb"eyJ[A-Za-z0-9_-]{8,1024}+\.eyJ[A-Za-z0-9_-]{4,4096}+\.[A-Za-z0-9_-]{8,1024}+",
    ),
    Rule(  # of a bot of Telegram, behind its number
        re.compile(rb":AA"),
        re.compile(rb"(?<=[0-9]{8}):(?P<secret>AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])"),
        _always,
    ),
    Rule(
        re.compile(rb"bearer "),
        re.compile(rb"(?i:bearer)[ ]{1,3}+(?P<secret>[A-Za-z0-9._~+/=-]{12,4096}+)"),
        _random_value,
        any_case=True,
    ),
    Rule(
        re.compile(rb"authorization"),
        re.compile(
            rb"(?i:authorization)" + _ASSIGNED + rb"(?i:bearer|basic|token)[ ]{1,3}+"
            rb"(?P<secret>[A-Za-z0-9._~+/=-]{8,4096}+)"
        ),
        _always,
        any_case=True,
    ),
    Rule(
        re.compile(rb"cookie"),
        re.compile(
            rb"(?i:cookie)" + _ASSIGNED + rb"(?P<secret>"
            rb"(?:[A-Za-z0-9_.-]{1,64}+=[A-Za-z0-9._~+/=%:-]{0,1024}+(?:;[ ]?+)?+){1,6}+)"
        ),
        _random_value,
        any_case=True,
    ),
    Rule(
        re.compile(rb"://"),
        re.compile(
            rb"://(?P<user>[^\s/:@\"'<>\\]{0,64}+:)?+"
            rb"(?P<secret>[^\s/:@\"'<>\\{}$\[\]]{3,255}+)@(?=[A-Za-z0-9])"
        ),
        _in_address,
    ),
    Rule(
        re.compile(rb"mysql"),
        re.compile(
            rb"(?i:mysql)[a-z]{0,8}+(?:[ ]{1,3}+(?!-p)[^\s\"'\\]{1,64}+){0,12}+"
            rb"[ ]{1,3}+-p(?P<secret>[^\s\"'\\]{4,128}+)"
        ),
        _always,
        any_case=True,
    ),
    # Behind a blank as well: that is how .netrc is written; and inside of an element of XML.
    _named(
        rb"pass",
        rb"passw(?:or)?d|passphrase|(?<=[_-])pass(?![a-z])",
        rb"=|:[ ]|[ ]{1,3}+|>",
        _password,
        shortest=8,
    ),
    _named(rb"secret", rb"secret"),
    _named(rb"token", rb"token(?!i[sz])"),
    _named(rb"credential", rb"credential"),
    _named(rb"key", rb"(?:" + _BEFORE_KEY + rb")key"),
)
