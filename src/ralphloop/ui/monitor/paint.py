"""Words with a tone: marks, bars, columns.  Pure.

Widths are counted in terminal cells, so that wide characters and emoji in titles do not break
columns.  Every sign we use ourselves has a like in ASCII of the same width, so a terminal that
has nothing else gets the same screen.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import datetime, tzinfo

from ralphloop.ui.monitor.values import Line, LogLine, Span, StoryRow, Tone

PASSED, FAILED, RUNNING, BLOCKED, ASIDE, REVIEW = "✓", "✗", "▶", "?", "⊘", "!"
OPEN, WAITING, CLOCK, PAUSED, STOPPED = "○", "·", "◔", "‖", "■"
_FULL, _EMPTY, _LEVELS = "█", "░", "▁▂▃▄▅▆▇█"
_TO_ASCII = str.maketrans(f"✓✗▶⊘○·◔‖■░{_LEVELS}•–—−“”„‘’→…×", '+x>/o-~=#._.-=+*##----"""\'\'>.x')
_WIDE_ROW = 70  # from here on a story's row has room for its verdict
_SHORT = {"waits for you": "for you", "needs review": "review"}


def plain_ascii(text: str) -> str:
    """The text in ASCII and as wide: known signs by their like, others as question marks."""
    if text.isascii():
        return text
    return "".join(char if char.isascii() else _like(char) for char in text.translate(_TO_ASCII))


def _like(char: str) -> str:
    """A letter without its accent, or question marks."""
    base = unicodedata.normalize("NFKD", char)[0]
    return base if base.isascii() else "?" * width_of(char)


def width_of(text: str) -> int:
    """Terminal cells a text takes."""
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
    """A line of spans and plain words."""
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
    filled = int(share * width) or (1 if share > 0 else 0)
    return ((_FULL * filled, Tone.BUSY), (_EMPTY * (width - filled), Tone.QUIET))


def pips(count: int, most: int) -> Line:
    """A counter against its threshold: the nearer, the louder."""
    shown = min(most, 10)
    filled = min(shown, count)
    tone = Tone.BAD if count >= most > 0 else Tone.WARN if count else Tone.QUIET
    return ((_FULL * filled, tone), (_EMPTY * (shown - filled), Tone.QUIET))


def spark(values: Sequence[int], width: int = 24) -> str:
    """The newest values as a row of small columns, measured against the largest."""
    shown = values[-width:]
    top = max(shown, default=0)
    return "".join(_LEVELS[value * 7 // top] for value in shown) if top > 0 else ""


def number(value: float) -> str:
    """Three digits are enough to compare: `950`, `21.4k`, `3.2M`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f}{unit}"
    return f"{value:.0f}"


def clock(at: float, zone: tzinfo | None, form: str = "%H:%M") -> str:
    """The time of day on a person's wall."""
    return datetime.fromtimestamp(at).astimezone(zone).strftime(form)


def story_line(row: StoryRow, width: int) -> Line:
    """One story: its mark, name, failed attempts, standing, and where there is room, why."""
    wide = width >= _WIDE_ROW
    standing = row.standing if wide else _SHORT.get(row.standing, row.standing)
    name, size = min(12 if wide else 8, max(6, len(row.id))), 15 if wide else 9
    rest = width - name - size - 7
    why = rest // 2 if wide else 0
    return (
        (f"{row.mark} ", row.tone),
        (fit(row.id, name) + " ", Tone.STRONG),
        (fit(row.title, rest - why) + " ", Tone.PLAIN),
        (fit(f"{row.attempts}{FAILED}" if row.attempts else "", 3), Tone.WARN),
        (fit(standing, size), row.tone),
        (cut(row.verdict, why), Tone.QUIET),
    )


def log_line(entry: LogLine, width: int, zone: tzinfo | None) -> Line:
    """One line of the log with its time."""
    at = clock(entry.at, zone, "%H:%M:%S")
    return ((f"{at} ", Tone.QUIET), (cut(entry.text, max(8, width - 9)), entry.tone))


def folded(spans: Line, width: int) -> list[Line]:
    """The line as several that are no wider; later ones are indented below a label."""
    width = max(8, width)
    first = spans[0][0] if spans else ""
    indent = len(first) if len(spans) > 1 else len(first) - len(first.lstrip(" "))
    indent = indent if indent <= width // 2 else 0
    rows: list[Line] = []
    row: list[Span] = []
    room = width
    for text, tone in spans:
        rest = text
        while width_of(rest) > room:
            head = _head(rest, room)
            rows.append((*row, (head, tone)))
            row, room, rest = [(" " * indent, Tone.PLAIN)], width - indent, rest[len(head) :]
        row.append((rest, tone))
        room -= width_of(rest)
    return [*rows, tuple(row)]


def _head(text: str, cells: int) -> str:
    """As much of the text as so many cells hold, whole words where that is not too little."""
    end = cells if text.isascii() else 0
    while end < len(text) and not text.isascii() and (cells := cells - width_of(text[end])) >= 0:
        end += 1
    space = text.rfind(" ", end // 2, end)
    return text[: space + 1] if space >= 0 else text[:end]
