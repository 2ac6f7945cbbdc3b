"""What fails in a text, as one line that two runs can be compared by, and people can read.

A signature keeps what a person would tell two failures apart by (exception, error code, words,
quoted identifiers, names of tests, relative paths) and replaces what changes from run to run
(places, absolute directories, numbers, times, hashes, ids, addresses).  Of several errors it names
the first few, without wrappers and details where something specific is said.
"""

import re

from ralphloop.text.error_lines import NAME, find_error_lines
from ralphloop.text.plain import LazyRegex

_SOURCE = (
    r"(?:py|pyi|js|jsx|ts|tsx|mjs|cjs|rs|go|java|kts?|c|cc|cpp|cxx|h|hpp|rb|php|cs|swift|exs?|scala"
    r"|vue|svelte|sql|sh|html|css|json|ya?ml|toml|lua|dart|zig|hs|ml)"
)
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_IN_PATH = r"[\w.@+~/\\-]"
_ROOT = r"(?:~?/(?!/)|[A-Za-z]:\\)"
_NOISE = LazyRegex(  # a group is named after what stands for it, or after how it is replaced
    r"(?P<quoted>(?<!\w)[`'\"‘“](?P<inner>[^`'\"’”]{0,300})[`'\"’”](?!\w))"
    r"|(?P<url>\b[a-z][a-z+]{1,10}://[^\s'\"`<>)\]]+)"
    r"|(?P<id>\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b)"
    r"|(?P<time>\b\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?"
    r"(?:Z|[+-]\d\d:?\d\d)?\b|\b\d\d?:\d\d:\d\d(?:[.,]\d+)?"
    rf"|\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?(?:\d\d? {_MONTH}|{_MONTH} \d\d?)\b(?:,? \d{{4}})?"
    r"(?: \d\d:\d\d:\d\d)?"
    r"|\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|secs?|seconds?|s|mins?|minutes?|m|hours?|h)\b)"
    r"|(?P<path>[\w.@+-]+(?=, line \d)"
    rf"|(?:[A-Za-z]:)?{_IN_PATH}*(?:[/\\]{_IN_PATH}*|\.{_SOURCE}):\d+(?::\d+)?"
    rf"|{_IN_PATH}+\.{_SOURCE}\(\d+(?:,\d+)*\)|(?<=\bin |\bat ){_ROOT}[^\s'\"`<>,;:()\[\]]+)"
    rf"|(?P<absolute>(?<![\w.<>/~]){_ROOT}[^\s'\"`<>,;:()\[\]{{}}]+)"
    r"|(?P<relative>(?<![\w.<>/~-])(?:\.{1,2}/)*[\w.@+-]*[A-Za-z][\w.@+-]*(?:/[\w.@+-]+)+)"
    r"|(?P<address>\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b)|(?P<hex>\b0[xX][0-9a-fA-F]+)"
    r"|(?P<kept>(?<!exit )\b(?:status(?: code)?|HTTP(?:/[\d.]+)?)[ :=]+[1-5]\d\d\b)"
    r"|(?P<n>(?<![\w-])[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?"
    r"(?: ?(?:[KMGT]i?B|kB|bytes)\b|(?![A-Za-z0-9])))"
    r"|(?P<token>[A-Za-z0-9]*\d[A-Za-z0-9]*)"
)
_TEMPORARY = LazyRegex(
    r"(?i:[/\\](?:tmp(?:[-_.\d]\w*|\w{6,})?|temp(?:[-_.\d]\w*)?|var[/\\]folders|pytest-(?:of-)?\w+)"
    r"(?:[/\\]|$))"
)
_ERROR_CODE = LazyRegex(r"[A-Z]{1,6}\d{3,5}$")  # E0382, TS2345, CS0103
_HEX = LazyRegex(
    r"(?=.*\d)(?=\d*[a-fA-F])(?:[0-9a-fA-F]{7,}"
    r"|(?=\w*\d[a-fA-F]+\d|\w*[a-fA-F]\d+[a-fA-F])[0-9a-fA-F]{4,})$"
)
_ALTERNATION = LazyRegex(r"(?<=\d)(?=[A-Za-z])|(?<=[A-Za-z])(?=\d)")
_DIGITS = LazyRegex(r"\d+")
_PIECE = LazyRegex(r"[A-Za-z0-9]+")
_SEPARATOR = LazyRegex(r"[/\\]")
_EXTENSION = LazyRegex(r"(?<=.)\.[A-Za-z]\w{0,9}$")
# What ids look like and names do not: digits before letters (but `i18n`), hexadecimal, letters
# nobody can say; and where no extension says file, a few digits or a hump every other letter.
_OPAQUE = LazyRegex(
    r"(?![A-Za-z]\d\d[A-Za-z]$)(?=.{4})[A-Za-z]*\d+[A-Za-z]\w*$"
    r"|(?i:[a-f]{8,}|[b-df-hj-np-tv-xz]{6,})$"
)
_BARE_ID = LazyRegex(r"(?=.*\d).{1,3}$|(?=.{8})[A-Za-z]?(?:[A-Z]{1,2}[a-z]{0,2}){4,}$(?<![A-Z]{8})")
# An exception or a code before the first colon is identity, digits and all.
_HEAD = LazyRegex(rf"{NAME}|[A-Z]{{2,6}}-\d{{2,6}}(?=:)|error: \[[A-Z]+-\d+\]")
# So is the name of a failing test; its file, parameters and time are not.
_TEST = LazyRegex(
    r"(?P<verb>FAILED|ERROR|FAIL):?\s+(?P<id>\S*[./:\\][^\s\[]*|test_\w+)(?:\[[^\]]*\]?)?(?P<rest>.*)$"
)
_VERBOSE_TEST = LazyRegex(r"(?P<id>\S+::[^\s\[]+)(?:\[.*\])? (?P<verb>FAILED|ERROR)\b(?P<rest>)")
_NAMED_TEST = LazyRegex(
    r"--- FAIL: |● |[✖✕✗✘×] (?!\d+ problems?\b)|not ok |test \S+ .*FAILED$|.* > .* FAILED$|FAIL: "
)
_TEST_NOISE = LazyRegex(r"(?<=^not ok) \d+|\s*\(?\b\d+(?:\.\d+)? ?m?s\)?\s*$")
_PLURAL = LazyRegex(r"(?<=<n> )(error|failure|problem|test|example|file|suite|warning)s\b")
_FIRST_SENTENCE = LazyRegex(r"(.{25,}?[\w)'\"`\]>])[.!?]\s+[A-Z`]")


def error_signature(text: str) -> str | None:
    """What fails in this text, without places, numbers and times; None: nothing does."""
    lines = find_error_lines(text).items()
    named = [(rank, name) for line, rank in lines if (name := _normalised(line))]
    best = max((rank for rank, _ in named), default=None)
    parts = dict.fromkeys(name for rank, name in named if rank == best)
    kept = [part for part in parts if not any(_tells(other, part) for other in parts)]
    return " | ".join(kept[:5])[:400].rstrip(" |") or None


def _tells(other: str, part: str) -> bool:
    """True where another part holds this one as whole words."""
    before, found, after = other.partition(part)
    return bool(found and (before or after)) and not (before[-1:].isalnum() or after[:1].isalnum())


def _normalised(line: str) -> str:
    """An error line without what changes from run to run."""
    text = " ".join(line.split())
    if test := _TEST.match(text) or _VERBOSE_TEST.match(text):
        file, _, name = test["id"].partition("::")
        name = name or _SEPARATOR.split(file.rstrip(":"))[-1]
        rest = _NOISE.sub(_replaced, _TEST_NOISE.sub("", test["rest"]))
        return _tidy(f"{test['verb']} {name}{rest}")
    if _NAMED_TEST.match(text):
        return _tidy(_TEST_NOISE.sub("", text))
    first = _FIRST_SENTENCE.match(text)
    text = first[1] if first else text
    head = _HEAD.match(text)
    kept = head[0] if head else ""
    counted = _NOISE.sub(_replaced, text[len(kept) :])
    return _tidy(kept + _PLURAL.sub(r"\1", counted))


def _tidy(text: str) -> str:
    return text.lstrip(" *_`").rstrip(" .,:;!*_`…-")[:160].rstrip()


def _replaced(match: re.Match[str]) -> str:
    is_code = match.lastgroup == "token" and _ERROR_CODE.match(match[0])
    return match[0] if is_code else _replaced_in_quotes(match)


def _replaced_in_quotes(match: re.Match[str]) -> str:
    """What stands for a piece of noise, by its kind."""
    kind = match.lastgroup or ""
    found = match[0]
    if kind == "quoted":  # words are identity, data is not
        inner = match["inner"]
        is_data = len(inner) > 80
        return "'<value>'" if is_data else f"'{_NOISE.sub(_replaced_in_quotes, inner)}'"
    if kind == "kept":
        return found
    named = {"absolute": _path, "relative": _way, "url": _url, "token": _token}.get(kind)
    return named(found) if named else f"<{kind}>"


def _path(path: str) -> str:
    """A file's name is identity, its directory is not; in a temporary directory neither is."""
    name = _SEPARATOR.split(path.rstrip("/\\."))[-1]
    if not name or _TEMPORARY.search(path):
        return "<path>"
    return f"<path>/{_last(name)}"


def _url(url: str) -> str:
    if url.startswith("file:"):
        return _path(url.removeprefix("file://"))
    return _way(url.partition("?")[0].rstrip("/.,:;"))


def _way(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{_tokens(folder)}{slash}{_last(name)}"


def _last(name: str) -> str:
    """The last part of a path: an id there changes from run to run, a file's name does not."""
    extension = _EXTENSION.search(name)
    rest = extension[0] if extension else ""
    stem = name.removesuffix(rest)
    opaque = stem.isdigit() or (not rest and _BARE_ID.match(stem))
    if opaque or any(_OPAQUE.match(piece) for piece in _PIECE.findall(stem)):
        return f"<id>{rest}"
    return _tokens(name)


def _tokens(text: str) -> str:
    return _PIECE.sub(lambda piece: _token(piece[0]), text)


def _token(token: str) -> str:
    """A word with digits in it: a hash, a random id, or a name with a number."""
    turns = len(_ALTERNATION.findall(token))
    if _HEX.match(token) or (turns >= 3 and len(token) >= 8) or (turns >= 2 and len(token) >= 16):
        return "<id>"
    return _DIGITS.sub("<n>", token)
