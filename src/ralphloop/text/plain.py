"""Text as models and terminals really emit it, made plain.

Every step is guarded by a cheap test: ordinary text passes fast, hostile text costs linear time.
Regular expressions are compiled when first used: they are large, and most starts need none.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

_Matches = Callable[..., re.Match[str] | None]


class LazyRegex:
    match: _Matches
    fullmatch: _Matches
    search: _Matches
    finditer: Callable[..., Iterator[re.Match[str]]]
    sub: Callable[..., str]
    findall: Callable[..., list[str]]
    split: Callable[..., list[str]]

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """The first question compiles it; from then on its own methods answer, without us."""
        method = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, method)
        return method


def any_case(source: str) -> LazyRegex:
    return LazyRegex(source, re.IGNORECASE)


_ANSI = LazyRegex(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links
    r"|\x1b[@-Z\\-_]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_SPACES = (
    "\u0085\u00a0\u2007\u202f\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a\u3000"
)
_DIRECTIONS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_INVISIBLE = (
    "\u200b\u200c\u200d\u2060\ufeff\u00ad"  # zero-width, byte order mark, soft hyphen
    f"{_DIRECTIONS}"
)
_CONTROL = "".join(  # but tab, newline and next line
    map(chr, (*range(9), *range(11, 32), *range(0x7F, 0x85), *range(0x86, 0xA0)))
)
_ODD = LazyRegex(f"[{_SPACES}{_INVISIBLE}{re.escape(_CONTROL)}]")
_ASCII_ODD = _CONTROL.encode()
_TABLE = {ord(char): " " for char in _SPACES} | {ord(char): None for char in _INVISIBLE + _CONTROL}
_SHOWN = {ord(char): f"<U+{ord(char):04X}>" for char in _DIRECTIONS}
_NOT_PRINTED = {ord(char): None for char in f"{_CONTROL}\x85" if char != "\x1b"} | _SHOWN
_COMPARED = 60  # characters: comparing takes quadratic time
_NOT_A_COLOUR = LazyRegex(r"\x1b(?!\[[0-9;]{1,12}m)")


def on_screen(text: str, *, colours: bool = True) -> str:
    """What may be printed: nothing that moves a cursor or turns words round, which is shown.
    Colours are ours to set: for a text of others `colours` is to be False."""
    text = text if text.isprintable() else text.translate(_NOT_PRINTED)
    if "\x1b" in text:
        text = _NOT_A_COLOUR.sub("", text) if colours else text.replace("\x1b", "")
    return text


def is_visible(text: str) -> bool:
    """True for a name that people can read and tell from another one."""
    seen = any(char.isprintable() and not char.isspace() for char in text)
    return seen and not any(ord(char) in _SHOWN for char in text)


def clean(text: str) -> str:
    """Take off colours, invisible characters and foreign line ends; keep the words."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub("", text)
    if text.isascii():  # ten times as fast as the search
        is_odd = len(text.encode().translate(None, _ASCII_ODD)) != len(text)
    else:
        is_odd = _ODD.search(text) is not None
    return text.translate(_TABLE) if is_odd else text


def one_line(text: str, limit: int = 200) -> str:
    """The text on one line, cut to `limit` characters with an ellipsis."""
    line = " ".join(clean(text[: limit * 8]).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def some(names: Sequence[str], most: int = 5) -> str:
    """The first of many names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The known word that was probably meant; of many and long ones only the first are compared."""
    from difflib import get_close_matches

    names = {name.casefold(): name for name in islice(known, 1000) if len(name) <= _COMPARED}
    close = get_close_matches(word[:_COMPARED].casefold(), names, n=1, cutoff=cutoff)
    return names[close[0]] if close else ""


def number(value: float) -> str:
    """`1,234`, `56.7 k`, `9 M`: enough to compare."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= max(size, 10_000):
            return f"{value / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{value:,.0f}"


def counted(number: int, noun: str, verb: str = "") -> str:
    """`1 story`, `2 stories`, `3,000 runs wait`; the verb is given as it goes with one."""
    does = f" {agreeing(number, verb)}" if verb else ""
    if number == 1:
        return f"1 {noun}{does}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}{does}"


def agreeing(number: int, verb: str) -> str:
    """`is` or `are`, `waits` or `wait`: the verb, given as it goes with one, for so many."""
    several = {"is": "are", "was": "were", "has": "have", "does": "do"}
    return verb if number == 1 else several.get(verb) or verb.removesuffix("s")


def against(count: int, most: int) -> str:
    """`2 of 3`, or `4, limit 3` where it is passed."""
    return f"{count} of {most}" if count <= most else f"{count}, limit {most}"
