"""Secrets are taken out before anything is stored, shown or sent to an agent again.

Most tokens are known by how they begin.  The rest stands in an address, in a header, in a command
or beside a name that sounds secret; there it must look random, so that git hashes, identifiers,
calls and types after `token =` survive.  For passwords, which people choose, less is enough.

So that a flood of ordinary output costs little, a search for the letters every secret of a kind
begins with (where a pattern begins with plain letters, `re` is faster than `bytes.find`) comes
before a bounded pattern.  None can look at more than `_LONGEST` bytes, so time is linear.  Only
characters of the secret itself are replaced, never quotes or backslashes: JSON stays JSON.

`Redactor` passes on the whole lines of a stream at once (no secret but a PEM key spans a line); of
an unfinished one the last `_LONGEST` bytes are held back, because a secret may go on.

An answer that streams spells a token over many events, so no pattern sees the whole.  `Joiner`
reads the pieces of events that follow each other as one text and empties those that hold a part of
a secret; it holds them back until the text has gone on far enough.
"""

import base64
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import NamedTuple

REPLACEMENT = b"[redacted]"

_LONGEST = 8 * 1024
_LONGEST_KEY_BLOCK = 16 * 1024
_SHORTEST_KNOWN_VALUE = 8

_regex = cache(re.compile)  # most patterns are never needed: what they look for is not there


class _Rule(NamedTuple):
    """A kind of secret: where to look, and what must stand there."""

    start: bytes  # a pattern that begins with a plain letter or sign, which makes the search fast
    pattern: bytes
    plausible: Callable[[re.Match[bytes]], bool] = lambda _match: True
    any_case: bool = False


_WORDS = re.compile(rb"[A-Za-z]+[0-9]{0,2}|[0-9]+")
_BETWEEN_WORDS = re.compile(rb"[._/:@-]+")


def _looks_random(value: bytes, least_entropy: float = 3.0) -> bool:
    """Letters and digits mixed; no names such as `process.env.GITHUB_TOKEN_2`, `oauth2-proxy`."""
    has_letter = any(65 <= byte & 0xDF <= 90 for byte in value)
    if not has_letter or not _digits(value):
        return False
    shares = (count / len(value) for count in Counter(value).values())
    if -sum(share * math.log2(share) for share in shares) < least_entropy:
        return False
    parts = (part for part in _BETWEEN_WORDS.split(value) if part)
    return not all(_WORDS.fullmatch(part) for part in parts)


def _digits(value: bytes) -> int:
    return sum(48 <= byte <= 57 for byte in value)


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


def _turns(value: bytes) -> int:
    """How often letters and digits take turns; names do so once or twice, keys all the time."""
    kinds = [_kind(byte) for byte in value]
    return sum(one is not other for one, other in pairwise(kind for kind in kinds if kind))


def _kind(byte: int) -> str:
    if 48 <= byte <= 57:
        return "digit"
    return "letter" if 65 <= byte & 0xDF <= 90 else ""


def _in_a_file(match: re.Match[bytes]) -> bool:
    """Bare, with blanks around the sign, as in .ini files: it must look like nothing but a key."""
    value = match["secret"]
    return _turns(value) >= 4 and _looks_random(value, 3.5)


def _password_in_a_file(match: re.Match[bytes]) -> bool:
    value = match["secret"]
    return _turns(value) >= 3 and _digits(value) >= 2 and _looks_random(value, 2.5)


def _ends(match: re.Match[bytes]) -> bool:
    """A name would go on, or be called."""
    after = match.string[match.end() : match.end() + 1]
    return after not in {b"(", b"[", b".", b"_"}


def _name_and_password(match: re.Match[bytes]) -> bool:
    """`name:password` in base64."""
    value = match["secret"]
    try:
        told = base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except ValueError:
        return False
    return b":" in told[1:] and told.isascii() and told.decode().isprintable()


# What stands in the place of a password and is none: types, and words for one to come.
_NO_SECRETS = frozenset(
    b"any bool bytes changeme-later false int none null optional password passwd required secret"
    b" secretstr self str string text true undefined unknown value xxx yes".split()
)


def _meant(match: re.Match[bytes]) -> bool:
    """Something that is meant, and no name for it, no path and no row of signs."""
    value = match["secret"].lower()
    if value in _NO_SECRETS or value.startswith((b"/", b"./", b"~", b"[")):
        return False
    after = match.string[match.end() : match.end() + 1]
    return len(set(value)) > 2 and after not in {b"(", b"["}


# Quantifiers are possessive: a place that is no secret after all is left without backtracking.

# How "-----BEGIN … PRIVATE KEY" goes on behind its beginning, in base64.
_KEYS_IN_BASE64 = (
    rb"BQUklWQVRFI|BSU0EgUFJJVkFURS|BFQyBQUklWQVRFI|BPUEVOU1NIIFBSSVZBVEUg|BFTkNSWVBURUQg"
)

# What stands behind the scheme of a service that messages are sent to.
_SERVICE = rb"[A-Za-z0-9_:@/-]{16,256}+"
_GITLAB = rb"[A-Za-z0-9_-]{20,300}+(?:\.[0-9a-z]{9})?+"

# How a token begins, how it goes on, and whether it must look random to be believed.
_TOKENS = (
    (rb"sk-", rb"[A-Za-z0-9_-]{20,512}+", True),
    (rb"shp(?:at|ca|pa|ss)_", rb"[A-Fa-f0-9]{32}", True),
    (rb"sk_(?:live|prod|test)_", rb"[A-Za-z0-9]{16,255}+", False),
    (rb"rk_(?:live|prod|test)_", rb"[A-Za-z0-9]{16,255}+", False),
    (rb"gh[pousr]_", rb"[A-Za-z0-9]{30,255}+", False),
    (rb"github_pat_", rb"[A-Za-z0-9_]{30,255}+", False),
    (rb"gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|soat)-", _GITLAB, False),
    (rb"glc_", rb"[A-Za-z0-9+/]{32,400}+", True),
    (rb"glsa_", rb"[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}", False),
    (rb"gotifys?://", _SERVICE, True),
    (rb"gsk_", rb"[A-Za-z0-9]{30,128}+", False),
    (rb"A[KS]IA", rb"[0-9A-Z]{16}(?![0-9A-Za-z])", False),
    (rb"ABSK", rb"[A-Za-z0-9+/]{100,300}+", True),
    (rb"AC", rb"[0-9a-f]{32}(?![0-9A-Za-z])", False),
    (rb"AIza", rb"[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])", False),
    (rb"AKCp", rb"[A-Za-z0-9]{69}", False),
    (rb"AT(?:ATT|BB|CTT|STT)", rb"[A-Za-z0-9_=-]{28,400}+", True),
    (rb"A3-", rb"[A-Z0-9]{6}-[A-Z0-9]{6}-?[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3}", False),
    (rb"AGE-SECRET-KEY-1", rb"[A-Z0-9]{40,64}+", False),
    (rb"CCIP(?:AT|RJ)_", rb"[A-Za-z0-9]{20,24}+_[A-Fa-f0-9]{40}", False),
    (rb"HRKU-AA", rb"[A-Za-z0-9_-]{40,80}+", False),
    (rb"LS0tLS1CRUdJTi", rb"(?:" + _KEYS_IN_BASE64 + rb")[A-Za-z0-9+/=]{40,8000}+", False),
    (rb"LTAI", rb"[A-Za-z0-9]{20}(?![A-Za-z0-9])", True),
    (rb"NRAK-", rb"[A-Z0-9]{27}(?![A-Z0-9])", True),
    (rb"PMAK-", rb"[a-f0-9]{24}-[a-f0-9]{34}", False),
    (rb"SG\.", rb"[A-Za-z0-9_-]{16,32}+\.[A-Za-z0-9_-]{30,64}+", False),
    (rb"SK", rb"[0-9a-f]{32}(?![0-9A-Za-z])", False),
    (rb"xox[a-z]-", rb"[A-Za-z0-9-]{10,255}+", False),
    (rb"xapp-", rb"[A-Za-z0-9-]{20,255}+", False),
    (rb"xai-", rb"[A-Za-z0-9]{40,128}+", False),
    (rb"xkeysib-", rb"[a-f0-9]{64}-[A-Za-z0-9]{16}", False),
    (rb"dckr_[op]at_", rb"[A-Za-z0-9_-]{20,64}+", False),
    (rb"do[opr]_v1_", rb"[a-f0-9]{32,64}+", False),
    (rb"dapi", rb"[a-f0-9]{32}(?![A-Za-z0-9])", False),
    (rb"dp\.[a-z]{2,6}\.", rb"[A-Za-z0-9._-]{40,60}+", True),
    (rb"dt0c01\.", rb"[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}", False),
    (rb"discord://", _SERVICE, True),
    (rb"discord(?:app)?\.com/api/webhooks/", rb"[0-9]{10,24}+/[A-Za-z0-9_-]{20,128}+", False),
    (rb"figd_", rb"[A-Za-z0-9_-]{40,64}+", True),
    (rb"fo1_", rb"[A-Za-z0-9_-]{43}", True),
    (rb"fm[12][ar]?_", rb"[A-Za-z0-9+/=]{100,4000}+", True),
    (rb"hv[sbr]\.", rb"[A-Za-z0-9_-]{20,255}+", True),
    (rb"hf_", rb"[A-Za-z0-9]{30,64}+", True),
    (rb"hooks\.slack\.com/", rb"[a-z]{5,12}+/[A-Za-z0-9/]{20,128}+", True),
    (rb"lin_(?:api|oauth)_", rb"[A-Za-z0-9]{32,64}+", True),
    (rb"nfp_", rb"[A-Za-z0-9]{36}(?![A-Za-z0-9])", True),
    (rb"npm_", rb"[A-Za-z0-9]{30,64}+", True),
    (rb"ntn_", rb"[0-9]{8,12}+[A-Za-z0-9]{30,40}+", False),
    (rb"ops_eyJ", rb"[A-Za-z0-9+/=_-]{200,4000}+", False),
    (rb"pover://", _SERVICE, True),
    (rb"pplx-", rb"[A-Za-z0-9]{40,64}+", True),
    (rb"pscale_(?:oauth|pw|tkn)_", rb"[A-Za-z0-9_=.-]{32,64}+", True),
    (rb"pul-", rb"[a-f0-9]{40}(?![A-Za-z0-9])", False),
    (rb"pypi-AgE", rb"[A-Za-z0-9_-]{50,1024}+", False),
    (rb"r8_", rb"[A-Za-z0-9]{37}(?![A-Za-z0-9])", True),
    (rb"rdme_", rb"[a-z0-9]{70}", False),
    (rb"rubygems_", rb"[a-f0-9]{48}", False),
    (rb"sbp_", rb"[a-f0-9]{40}(?![A-Za-z0-9])", False),
    (rb"secret_", rb"[A-Za-z0-9]{43}(?![A-Za-z0-9_])", True),
    (rb"sgp_", rb"(?:[A-Fa-f0-9]{16}_|local_)?[A-Fa-f0-9]{40}(?![A-Za-z0-9])", False),
    (rb"sha256~", rb"[A-Za-z0-9_-]{43}", False),
    (rb"shippo_(?:live|test)_", rb"[A-Fa-f0-9]{40}", False),
    (rb"slack://", _SERVICE, True),
    (rb"sntry[su]_", rb"[A-Za-z0-9+/=_]{40,400}+", True),
    (rb"sq0(?:atp|csp)-", rb"[A-Za-z0-9_-]{22,60}+", False),
    (rb"tgram://", _SERVICE, True),
    (rb"whsec_", rb"[A-Za-z0-9+/=]{24,128}+", True),
    (rb"ya29\.", rb"[A-Za-z0-9_-]{20,2048}+", False),
    (rb"eyJ", rb"[\w-]{8,1024}+\.eyJ[\w-]{4,4096}+\.[\w-]{8,1024}+", False),
    (rb"eyJrIjoi", rb"[A-Za-z0-9]{70,400}+", False),
)


def _token_rules() -> Iterator[_Rule]:
    """One search costs the same whatever follows its first letter, so kinds share it."""
    kinds: dict[bytes, list[tuple[bytes, bytes, bool]]] = {}
    for token in _TOKENS:
        kinds.setdefault(token[0][:1], []).append(token)
    for letter, alike in kinds.items():
        starts = b"|".join(start[1:] for start, _, _ in alike)
        certain = b"|".join(start + rest for start, rest, random in alike if not random)
        doubtful = b"|".join(start + rest for start, rest, random in alike if random)
        groups = [b"(?P<doubtful>" + doubtful + b")"] if doubtful else []
        groups += [certain] if certain else []
        pattern = rb"(?<![A-Za-z0-9])(?P<secret>" + b"|".join(groups) + b")"
        yield _Rule(letter + b"(?:" + starts + b")", pattern, _is_token)


def _is_token(match: re.Match[bytes]) -> bool:
    is_doubtful = match.groupdict().get("doubtful") is not None
    return not is_doubtful or _random_value(match)


def _named(
    start: bytes,
    name: bytes,
    joint: bytes = rb"=|:[ ]",
    plausible: Callable[[re.Match[bytes]], bool] = _assigned_value,
    shortest: int = 12,
) -> _Rule:
    """A value assigned to a secret-sounding name; bare, with blanks around `=`, it is code."""
    pattern = (
        rb"(?i:" + name + rb")[A-Za-z0-9_-]{0,24}+[\\\"']{0,3}+"
        rb"(?:[ \t]{0,4}+(?::=|=>|[:=])[ \t]{0,4}+\\{0,2}+(?P<quote>[\"'])|" + joint + rb")"
        rb"(?P<secret>[A-Za-z0-9_./+=~@$%^&*!#:-]{" + str(shortest).encode() + rb",512}+)"
    )
    return _Rule(start, pattern, plausible, any_case=True)


def _env(start: bytes, name: bytes) -> _Rule:
    """A line of an .env file says that it is one: whatever stands there is the secret."""
    value = rb"[\\\"']{0,3}+(?P<secret>[^\s\"'\\$<>{}()\[\],;`]{3,256}+)"
    return _Rule(start, rb"(?:" + name + rb")=" + value, _meant, any_case=True)


_BLANK = rb"(?:[ \t]|\\{1,2}t)"


def _written(
    start: bytes,
    name: bytes,
    value: bytes = rb"[A-Za-z0-9_./+=~-]{20,512}+",
    plausible: Callable[[re.Match[bytes]], bool] = _in_a_file,
) -> _Rule:
    """`name = value` in a file of settings: bare, with blanks, and nothing behind it."""
    pattern = (
        rb"(?i:"
        + name
        + rb")[A-Za-z0-9_-]{0,24}+"
        + _BLANK
        + rb"{1,4}+="
        + _BLANK
        + rb"{1,4}+(?P<secret>"
        + value
        + rb")(?=[ \t]{0,3}+(?:[\r\n,;\"]|\\[nr]|$))"
    )
    return _Rule(start, pattern, plausible, any_case=True)


def _of_aws(start: bytes, name: bytes) -> _Rule:
    """Such a key has forty characters, such a token hundreds: they need not look random."""
    quote = rb"(?:\\{0,3}+[\"'])?+"
    joint = quote + _BLANK + rb"{0,4}+[:=]" + _BLANK + rb"{0,4}+" + quote
    value = rb"(?P<secret>[A-Za-z0-9/+=]{38,4096}+)"
    return _Rule(start, rb"(?i:" + name + rb")" + joint + value, _ends, any_case=True)


def _queried(name: bytes) -> _Rule:
    """In an address, behind the question mark."""
    before = rb"(?:(?<=[?&])|(?<=[?&]access_)|(?<=[?&]api_)|(?<=[?&]auth_)|(?<=[?&]client_))"
    value = rb"[a-z]{0,6}+=(?P<secret>[A-Za-z0-9._~%+/-]{6,2048}+)"
    return _Rule(
        name, before + name + value, lambda found: _digits(found["secret"]) > 0, any_case=True
    )


_BEFORE_KEY = b"|".join(
    rb"(?<=" + word + joint + rb")"
    for word in (b"api", b"access", b"account", b"signing", b"encryption", b"auth")
    for joint in (b"", b"[_-]")
)

_ASSIGNED = rb"[\\\"']{0,3}+[ ]{0,3}+[:=][ ]{0,3}+[\\\"']{0,3}+"

_RULES: tuple[_Rule, ...] = (
    *_token_rules(),
    _Rule(  # of a bot of Telegram, behind its number
        rb":AA", rb"(?<=[0-9]{8}):(?P<secret>AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])"
    ),
    _Rule(  # of Terraform, behind its number; and of Azure
        rb"\.atlasv1\.", rb"(?<=[A-Za-z0-9]{14})(?P<secret>\.atlasv1\.[A-Za-z0-9_=-]{60,70}+)"
    ),
    _Rule(rb"Q~", rb"(?<=[A-Za-z0-9_~.]{3}[0-9])(?P<secret>Q~[A-Za-z0-9_~.-]{31,34}+)"),
    _Rule(  # what is kept of a password: htpasswd, shadow
        rb"\$",
        rb"(?P<secret>\$(?:2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}"
        rb"|(?:apr1|[156])\$(?:rounds=[0-9]{1,9}+\$)?+[./A-Za-z0-9]{1,40}+\$[./A-Za-z0-9]{20,90}+"
        rb"|[7y]\$[./A-Za-z0-9]{1,20}+\$[./A-Za-z0-9]{1,90}+\$[./A-Za-z0-9]{20,90}+"
        rb"|argon2i?d?\$v=[0-9]{1,4}+\$[a-z0-9=,]{1,60}+\$[+/A-Za-z0-9]{8,90}+\$[+/A-Za-z0-9]{16,90}+))",
    ),
    _Rule(rb"\{S", rb"(?P<secret>\{SS?HA\}[A-Za-z0-9+/]{27,60}+={0,2})"),
    _of_aws(rb"secret", rb"(?<=aws_)secret_(?:access_)?key"),
    _of_aws(rb"token", rb"(?<=aws_session_)token"),
    _Rule(  # of Kubernetes
        rb"key",
        rb"(?i:key-data)" + _ASSIGNED + rb"(?P<secret>[A-Za-z0-9+/=]{64,8000}+)",
        any_case=True,
    ),
    _Rule(  # of npm and Docker
        rb"auth",
        rb"(?<=[_\"'])(?i:auth)" + _ASSIGNED + rb"(?P<secret>[A-Za-z0-9+/]{8,1024}+={0,2})",
        _name_and_password,
        any_case=True,
    ),
    _Rule(
        rb"bearer ",
        rb"(?i:bearer)[ ]{1,3}+(?P<secret>[A-Za-z0-9._~+/=-]{12,4096}+)",
        _random_value,
        any_case=True,
    ),
    _Rule(
        rb"auth",
        rb"(?i:authorization)" + _ASSIGNED + rb"(?i:bearer|basic|token)[ ]{1,3}+"
        rb"(?P<secret>[A-Za-z0-9._~+/=-]{8,4096}+)",
        any_case=True,
    ),
    _Rule(
        rb"cookie",
        rb"(?i:cookie)" + _ASSIGNED + rb"(?P<secret>"
        rb"(?:[A-Za-z0-9_.-]{1,64}+=[A-Za-z0-9._~+/=%:-]{0,1024}+(?:;[ ]?+)?+){1,6}+)",
        _random_value,
        any_case=True,
    ),
    _Rule(
        rb"://",
        rb"://(?P<user>[^\s/:@\"'<>\\]{0,64}+:)?+"
        rb"(?P<secret>[^\s/:@\"'<>\\{}$\[\]]{3,255}+)@(?=[A-Za-z0-9])",
        _in_address,
    ),
    _Rule(
        rb"mysql",
        rb"(?i:mysql)[a-z]{0,8}+(?:[ ]{1,3}+(?!-p)[^\s\"'\\]{1,64}+){0,12}+"
        rb"[ ]{1,3}+-p(?P<secret>[^\s\"'\\]{4,128}+)",
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
    _env(rb"pass", rb"PASSW(?:OR)?D|(?<=_)PASS"),
    _env(rb"secret", rb"SECRET(?:_KEY)?"),
    _env(rb"token", rb"(?<=_)TOKEN"),
    _env(rb"key", rb"(?<=API_)KEY|(?<=PRIVATE_)KEY|(?<=ACCESS_)KEY"),
    *(_queried(name) for name in (rb"pass", rb"secret", rb"token", rb"key", rb"sig")),
    _Rule(  # the value of a key that is called so, in JSON and what looks like it
        rb"pass",
        rb"(?i:passw(?:or)?d)\\{0,3}+[\"'][ ]{0,2}+:[ ]{0,2}+\\{0,3}+[\"']"
        rb"(?P<secret>[^\s\"'\\<>{}$%]{3,256}+)(?=\\{0,3}+[\"'])",
        _meant,
        any_case=True,
    ),
    _Rule(  # and alone on a line, in YAML
        rb"pass",
        rb"(?<=[\s_-])(?i:passw(?:or)?d):[ ]{1,4}+"
        rb"(?P<secret>[a-z0-9][^\s\"'\\<>{}()\[\],$%|=#:.]{5,128}+)(?=[ ]{0,3}+(?:[\r\n]|\\n|$))",
        _meant,
        any_case=True,
    ),
    _written(
        rb"pass",
        rb"passw(?:or)?d|passphrase",
        rb"[^\s\"'\\$<>{}()\[\],;`]{8,128}+",
        _password_in_a_file,
    ),
    _written(rb"secret", rb"secret"),
    _written(rb"token", rb"token(?!i[sz])"),
    _written(rb"key", rb"(?:" + _BEFORE_KEY + rb")key"),
    _named(rb"secret", rb"secret"),
    _named(rb"token", rb"token(?!i[sz])"),
    _named(rb"credential", rb"credential"),
    _named(rb"key", rb"(?:" + _BEFORE_KEY + rb")key"),
)

# Secrets of all kinds that begin alike are looked for together: the search is what costs.
_ALIKE: dict[tuple[bytes, bool], list[_Rule]] = {}
for _rule in _RULES:
    _ALIKE.setdefault((_rule.start, _rule.any_case), []).append(_rule)

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


class _Span(NamedTuple):
    """A secret, and the whole match around it that must not be cut in two."""

    match_start: int
    start: int
    end: int


def _places(data: bytes, literal: bytes) -> Iterator[int]:
    """Where a literal stands, from the left."""
    at = data.find(literal)
    while at != -1:
        yield at
        at = data.find(literal, at + len(literal))


def _spans(data: bytes, known: tuple[bytes, ...] = ()) -> list[_Span]:
    """Every secret in the data, by where it stands; `known` are literal ones."""
    found = {_Span(at, at, at + len(value)) for value in known for at in _places(data, value)}
    for at, following in pairwise([*_places(data, _BEGIN), len(data)]):
        if begin := _KEY_BEGIN.match(data, at):
            text = _KEY_TEXT.match(data, begin.end(), following)
            end = _KEY_END.search(data, begin.end(), text.end() if text else begin.end())
            if whole := end or _KEY_LINES.match(data, begin.end(), following):
                found.add(_Span(at, at, whole.end()))
    lowered = data.lower()
    for (start, any_case), rules in _ALIKE.items():
        search = _regex(start).search
        haystack = lowered if any_case else data
        place = search(haystack)
        while place:
            seen = place.end()
            for rule in rules:
                match = _regex(rule.pattern).match(data, place.start())
                if match and rule.plausible(match):
                    found.add(_Span(place.start(), *match.span("secret")))
                seen = max(seen, match.end() if match else 0)
            # Go on behind what was looked at, secret or not: nothing is read twice.
            place = search(haystack, seen)
    return sorted(found)


def _replace(data: bytes, spans: Iterable[_Span]) -> bytes:
    pieces = []
    done = 0
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        if span.start >= done:
            pieces += [data[done : span.start], REPLACEMENT]
        done = max(done, span.end)
    return b"".join([*pieces, data[done:]]) if pieces else data


_SECRET_NAME_PARTS = frozenset(
    "KEY KEYS APIKEY TOKEN PAT SECRET PASSWORD PASSWD PASS PASSPHRASE"
    " CREDENTIAL CREDENTIALS".split()
)


_SECRET_NAMES = frozenset({"RALPH_NOTIFY_URLS", "RALPH_NOTIFY_WEBHOOK"})


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


def _sounds_secret(name: str) -> bool:
    words = name.upper().split("_")
    return name in _SECRET_NAMES or not _SECRET_NAME_PARTS.isdisjoint(words)


def _known_literals(secrets: Iterable[str]) -> tuple[bytes, ...]:
    """Each secret as it may stand in output: line by line, in bounded pieces, JSON-escaped."""
    literals: set[bytes] = set()
    half = _LONGEST // 2
    for line in (line for secret in secrets for line in secret.splitlines()):
        raw = line.strip().encode("utf-8", "surrogateescape")
        for form in (raw, raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"')):
            literals.update(form[at : at + half] for at in range(0, len(form), half))
    long_enough = (each for each in literals if len(each) >= _SHORTEST_KNOWN_VALUE)
    return tuple(sorted(long_enough, key=len, reverse=True))


def redact_bytes(data: bytes, secrets: Iterable[str] = ()) -> bytes:
    return _replace(data, _spans(data, _known_literals(secrets)))


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return redact_bytes(data, secrets).decode("utf-8", "surrogatepass")


class Redactor:
    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = _known_literals(secrets)
        self._held = b""
        # The byte before what is held: without it the middle of a word would look like its start.
        self._before = b""

    def feed(self, chunk: bytes) -> bytes:
        """What can be passed on now, without its secrets; the rest is held back."""
        data = self._before + self._held + chunk
        spans = _spans(data, self._known)
        # The last place where nothing that may still become a secret is torn apart.
        cut = max(data.rfind(b"\n") + 1, len(data) - _LONGEST)
        at = data.rfind(_BEGIN, max(0, len(data) - _LONGEST_KEY_BLOCK))
        begin = _KEY_BEGIN.match(data, at) if at != -1 else None
        text = _KEY_TEXT.match(data, begin.end()) if begin else None
        # Of a private key whose end has not come yet a sign of several bytes may be cut in two.
        goes_on = text is not None and text.end() > len(data) - _LONGEST_SIGN
        if goes_on and not _KEY_END.search(data, at):
            cut = min(cut, at)
        for span in reversed(spans):
            if span.match_start < cut < span.end:
                cut = span.match_start
        cut = max(cut, len(self._before))
        ready = _replace(data[:cut], (span for span in spans if span.end <= cut))
        ready = ready[len(self._before) :]
        self._held = data[cut:]
        self._before = data[cut - 1 : cut]
        return ready

    def finish(self) -> bytes:
        """What was held back, at the end of the stream."""
        data = self._before + self._held
        self._held = b""
        return _replace(data, _spans(data, self._known))[len(self._before) :]


_MARK = b"delta"
_PIECE = re.compile(
    rb'"(?:text|thinking|partial_json|content)"[ ]?:[ ]?"((?:[^"\\]|\\.){0,65536}+)"'
)
_BEHIND = 512  # characters that must follow before a piece may go
_MOST_HELD = 64 * 1024


class _HeldLine(NamedTuple):
    """A line, and where its piece of the text stands in it."""

    line: bytes
    start: int
    end: int


class Joiner:
    def __init__(self) -> None:
        self._rest = b""  # of a line that has not ended
        self._held: list[_HeldLine] = []
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        """What can be passed on now, without pieces that spell a secret together."""
        if not self._rest and not self._held and _MARK not in data:
            end = data.rfind(b"\n") + 1
            self._rest = data[end:] if b'"' in data[end:] else b""
            return data[: len(data) - len(self._rest)]
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        out = []
        for line in lines:
            piece = _PIECE.search(line) if _MARK in line else None
            if piece is None:
                out += [self._let_go(0), line + b"\n"]
                continue
            self._held.append(_HeldLine(line + b"\n", *piece.span(1)))
            self._size += piece.end(1) - piece.start(1)
            if self._size > 2 * _BEHIND or len(self._held) > 4 * _BEHIND:
                out.append(self._let_go(_BEHIND))
        if len(self._rest) > _MOST_HELD:
            out += [self._let_go(0), self._rest]
            self._rest = b""
        return b"".join(out)

    def finish(self) -> bytes:
        rest = self._rest
        self._rest = b""
        return self._let_go(0) + rest

    def _let_go(self, keep: int) -> bytes:
        """Pass on what is held but for the newest pieces, without those that spell a secret."""
        if not self._held:
            return b""
        text = b"".join(line[start:end] for line, start, end in self._held)
        secret = _spans(text)
        done = 0
        at = 0
        out = []
        for line, start, end in self._held:
            until = at + end - start
            if keep and until > len(text) - keep:
                break
            spelled = any(span.start < until and at < span.end for span in secret)
            out.append(line[:start] + REPLACEMENT + line[end:] if spelled else line)
            at = until
            done += 1
        self._held = self._held[done:]
        self._size = len(text) - at
        return b"".join(out)
