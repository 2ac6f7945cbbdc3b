"""Words with a tone: marks, bars, columns.  Pure.

Widths are counted in terminal cells, so that wide characters in titles do not break columns.  Every
sign of ours has a like in ASCII of the same width, for terminals that have nothing else.
"""

import unicodedata
from collections.abc import Sequence
from enum import StrEnum


class Tone(StrEnum):
    """What words mean, not how they look."""

    PLAIN = ""
    STRONG = "strong"
    QUIET = "quiet"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    BUSY = "busy"


Span = tuple[str, Tone]
Line = tuple[Span, ...]
PASSED = "✓"
FAILED = "✗"
RUNNING = "▶"
BLOCKED = "?"
ASIDE = "⊘"
REVIEW = "!"
OPEN = "○"
WAITING = "·"
CLOCK = "◔"
PAUSED = "‖"
STOPPED = "■"
_FULL = "█"
_EMPTY = "░"
_LEVELS = "▁▂▃▄▅▆▇█"
_TO_ASCII = str.maketrans(f"✓✗▶⊘○·◔‖■░{_LEVELS}•–—−“”„‘’→…×▲", '+x>/o-~=#._.-=+*##----"""\'\'>.x^')
CIRCUIT_TONES = {"CLOSED": Tone.GOOD, "HALF_OPEN": Tone.WARN, "OPEN": Tone.BAD}


def plain_ascii(text: str) -> str:
    """The text in ASCII and as wide: known signs by their like, others as question marks."""
    if text.isascii():
        return text
    made: list[str] = []
    for char in text.translate(_TO_ASCII):
        base = unicodedata.normalize("NFKD", char)[0]  # a letter without its accent
        made.append(base if base.isascii() else "?" * width_of(char))
    return "".join(made)


def width_of(text: str) -> int:
    from rich.cells import cell_len

    return len(text) if text.isascii() else cell_len(text)


def cut(text: str, width: int) -> str:
    """The text in at most so many cells."""
    from rich.cells import set_cell_size

    if width_of(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…" if width > 0 else ""


def fit(text: str, width: int) -> str:
    """The text in exactly so many cells."""
    text = cut(text, width)
    return text + " " * (width - width_of(text))


def line(*spans: Span | str) -> Line:
    return tuple((span, Tone.PLAIN) if isinstance(span, str) else span for span in spans)


def plain(spans: Line) -> str:
    """The line without its tones."""
    return "".join(text for text, _ in spans)


def beside(left: Line, right: Line, width: int) -> Line:
    """Two parts at both ends of a line; where they do not fit, the left one is cut."""
    room = width - width_of(plain(right))
    done: list[Span] = []
    for text, tone in left:
        done.append((cut(text, room), tone))
        room -= width_of(done[-1][0])
    return (*done, (" " * max(0, room), Tone.PLAIN), *right)


def bar(share: float, width: int = 10) -> Line:
    """A bar that is filled to a share; never full before all is done."""
    share = min(1.0, max(0.0, share))
    filled = int(share * width)
    if share > 0:
        filled = max(1, filled)  # what was begun is seen
    return ((_FULL * filled, Tone.BUSY), (_EMPTY * (width - filled), Tone.QUIET))


def pips(count: int, most: int) -> Line:
    """A counter against its threshold: the nearer, the louder."""
    shown = min(most, 10)
    filled = min(shown, count)
    tone = Tone.WARN if count else Tone.QUIET
    if count >= most > 0:
        tone = Tone.BAD
    return ((_FULL * filled, tone), (_EMPTY * (shown - filled), Tone.QUIET))


def spark(values: Sequence[int], width: int = 24) -> str:
    """The newest values as a row of small columns, measured against the largest."""
    shown = values[-width:]
    top = max(shown, default=0)
    return "".join(_LEVELS[value * 7 // top] for value in shown) if top > 0 else ""
