"""The pictures as plain geometry: the template turns it into SVG, one element for each value.

Nothing is told by colour alone: position, labels and hatching say it too, and every picture carries
its numbers as a table.  Pure; the number of shapes is bounded by the series it draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple

from ralphloop.core.totals import cost_words, money
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted
from ralphloop.ui.report.values import MOST_SPANS, Report, Span
from ralphloop.ui.report.words import clock, moment, number

# One unit is a pixel at most: text of 15 units is readable in two columns and on a phone.
WIDTH = 560
_LEFT, _RIGHT, _TOP = 102, 10, 18
_PLOT = WIDTH - _LEFT - _RIGHT
_PANEL = 100
_ROW = 44
_LANE = 30
_NAMES, _VALUES = 140, 104  # beside the bars of the stories
_LONGEST_NAME = 15
_MOST_DOTS = 60
_Shown = Callable[[float], str]


class Bar(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    style: str
    label: str  # shown on pointing at it, read aloud by screen readers


class Line(NamedTuple):
    x1: float
    y1: float
    x2: float
    y2: float
    style: str


class Text(NamedTuple):
    x: float
    y: float
    words: str
    anchor: str = "start"


class Picture(NamedTuple):
    key: str
    title: str
    summary: str  # the same in one sentence; alone where there is nothing to draw
    height: float = 0
    bars: Sequence[Bar] = ()
    lines: Sequence[Line] = ()
    texts: Sequence[Text] = ()
    curve: str = ""
    dots: Sequence[tuple[float, float]] = ()
    head: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()
    width: float = WIDTH


def pictures(report: Report, zone: tzinfo | None = None) -> list[Picture]:
    """All pictures of a report."""
    return [
        _stories_over_time(report, zone),
        _per_iteration(report),
        _per_story(report),
        _circuit(report, zone),
        _waits(report, zone),
    ]


class _TimeAxis:
    def __init__(self, start: float, end: float, zone: tzinfo | None) -> None:
        self._start, self._span, self._zone = start, max(end - start, 1.0), zone

    def x(self, at: float) -> float:
        """Where a moment lies."""
        share = min(max((at - self._start) / self._span, 0.0), 1.0)
        return round(_LEFT + share * _PLOT, 1)

    def ticks(self, bottom: float) -> tuple[list[Line], list[Text]]:
        """Four moments along the bottom."""
        moments = [self._start + self._span * third / 3 for third in range(4)]
        lines = [Line(self.x(at), bottom, self.x(at), bottom + 5, "axis") for at in moments]
        texts = [
            Text(self.x(at), bottom + 20, moment(at, self._span, self._zone), anchor)
            for at, anchor in zip(moments, ("start", "middle", "middle", "end"), strict=True)
        ]
        return lines, texts


def _stories_over_time(report: Report, zone: tzinfo | None) -> Picture:
    points, title = report.series.passed, "Stories over time"
    if not points:
        return Picture("stories", title, "No story passed in this run.")
    before = max(report.passed - points[-1].count, 0)
    top, bottom, axis = max(report.total, points[-1].count), _TOP + _PANEL, _axis(report, zone)

    def y(count: float) -> float:
        return round(bottom - count / top * _PANEL, 1)

    path, level = [f"{_LEFT},{y(before)}"], before
    for point in points:
        path.append(f"{axis.x(point.at)},{y(level)}")
        level = before + point.count
        path.append(f"{axis.x(point.at)},{y(level)}")
    ticks, times = axis.ticks(bottom)
    labels = [
        Text(_LEFT - 6, bottom + 5, "0", "end"),
        Text(_LEFT - 6, _TOP + 5, f"all {top}", "end"),
    ]
    return Picture(
        "stories",
        title,
        f"{counted(points[-1].count, 'story')} passed in this run.",
        bottom + 28,
        lines=[_flat(bottom, "axis"), _flat(_TOP, "goal"), *ticks],
        texts=[*times, *labels],
        curve=" ".join([*path, f"{WIDTH - _RIGHT},{y(level)}"]),
        dots=[(axis.x(p.at), y(before + p.count)) for p in points if len(points) <= _MOST_DOTS],
        head=("time", "story", "grade", "passed so far"),
        rows=[(clock(p.at, zone), p.story, p.grade, f"{p.count:,}") for p in points],
    )


def _per_iteration(report: Report) -> Picture:
    costs, title = report.series.iterations, "Cost and tokens per iteration"
    if not costs:
        return Picture("iterations", title, "No iteration has ended yet.")
    low = _TOP + 10 + _PANEL + 40
    dollars = [(c.name, c.cost_usd, cost_words(c.cost_usd, c.unpriced)) for c in costs]
    upper = _panel(dollars, _TOP + 10, "cost", money)
    lower = _panel([(c.name, c.tokens, number(c.tokens)) for c in costs], low, "tokens", number)
    texts = [
        Text(_LEFT, _TOP, "cost in dollars"),
        Text(_LEFT, low - 10, "tokens"),
        Text(_LEFT, low + _PANEL + 20, f"iteration {costs[0].name}"),
        Text(WIDTH - _RIGHT, low + _PANEL + 20, costs[-1].name, "end"),
    ]
    return Picture(
        "iterations",
        title,
        f"{counted(report.spending.totals.starts, 'start')} in {counted(len(costs), 'bar')}.",
        low + _PANEL + 28,
        bars=[*upper.bars, *lower.bars],
        lines=[*upper.lines, *lower.lines],
        texts=[*texts, *upper.texts, *lower.texts],
        head=("iteration", "cost", "tokens"),
        rows=[(c.name, cost_words(c.cost_usd, c.unpriced), f"{c.tokens:,}") for c in costs],
    )


def _panel(
    values: Sequence[tuple[str, float, str]], top: float, style: str, shown: _Shown
) -> Picture:
    """Upright bars, each with its value in words, with an axis of their own."""
    peak, bottom = _round_up(max(value for _, value, _ in values)), top + _PANEL
    step = _PLOT / len(values)
    width = round(max(min(step * 0.8, 60.0), 1.0), 1)
    bars = []
    for position, (name, value, words) in enumerate(values):
        tall, x = round(value / peak * _PANEL, 1), round(_LEFT + (position + 0.1) * step, 1)
        bars.append(Bar(x, bottom - tall, width, tall, style, f"iteration {name}: {words}"))
    levels = {bottom: shown(0), bottom - _PANEL / 2: shown(peak / 2), top: shown(peak)}
    return Picture(
        "",
        "",
        "",
        bars=bars,
        lines=[_flat(y, "axis" if y == bottom else "grid") for y in levels],
        texts=[Text(_LEFT - 6, y + 5, words, "end") for y, words in levels.items()],
    )


def _per_story(report: Report) -> Picture:
    stories, title = report.series.stories, "Cost and tokens per story"
    if not stories:
        return Picture("per-story", title, "No story was worked on.")
    room = WIDTH - _NAMES - _VALUES
    most_cost = max(story.cost_usd for story in stories) or 1.0
    most_tokens = max(story.tokens for story in stories) or 1
    bars, texts = [], []
    for row, story in enumerate(stories):
        y, name = _TOP + row * _ROW, story.name
        short = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
        cost = max(round(story.cost_usd / most_cost * room, 1), 1)
        tokens = max(round(story.tokens / most_tokens * room, 1), 1)
        label = f"{name}: {cost_words(story.cost_usd, story.unpriced)}, {story.tokens:,} tokens"
        bars += [Bar(_NAMES, y, cost, 14, "cost", label)]
        bars += [Bar(_NAMES, y + 17, tokens, 14, "tokens", label)]
        texts += [
            Text(_NAMES - 8, y + 20, short, "end"),
            Text(_NAMES + cost + 6, y + 13, cost_words(story.cost_usd, story.unpriced)),
            Text(_NAMES + tokens + 6, y + 30, f"{number(story.tokens)} tok"),
        ]
    bottom, others = _TOP + len(stories) * _ROW, report.series.other_stories
    if others is not None:
        dollars = cost_words(others.cost_usd, others.unpriced)
        words = f"{others.name}: {dollars}, {number(others.tokens)} tok"
        texts.append(Text(_NAMES, bottom + 13, words))
    return Picture(
        "per-story",
        title,
        "The dearest first; plain bars are dollars, hatched ones tokens.",
        bottom + (22 if others else 0),
        bars=bars,
        texts=texts,
        head=("story", "cost", "tokens"),
        rows=[
            (s.name, cost_words(s.cost_usd, s.unpriced), f"{s.tokens:,}")
            for s in (*stories, *((others,) if others else ()))
        ],
    )


def _circuit(report: Report, zone: tzinfo | None) -> Picture:
    spans, changes = report.series.circuit, report.series.circuit_changes
    summary = f"It stayed {spans[-1].kind} all the time."
    if changes:
        summary = f"It changed {counted(changes, 'time')} and ended {spans[-1].kind}."
    drawn = _lanes(_axis(report, zone), ("OPEN", "HALF_OPEN", "CLOSED"), spans if changes else ())
    return drawn._replace(
        key="circuit", title="Circuit", summary=summary, **_span_table("state", spans, zone)
    )


def _waits(report: Report, zone: tzinfo | None) -> Picture:
    waits = report.series.waits
    quota = sum(wait.end - wait.start for wait in waits if wait.kind == "quota")
    newest = "the newest " if len(waits) == MOST_SPANS else ""
    told = f"{newest}{counted(len(waits), 'wait')}; {format_duration(quota)} for the usage limit."
    summary = told if waits else "It never had to wait."
    drawn = _lanes(_axis(report, zone), (), waits)
    return drawn._replace(
        key="waits", title="Waiting", summary=summary, **_span_table("what for", waits, zone)
    )


def _span_table(kind: str, spans: Iterable[Span], zone: tzinfo | None) -> dict[str, Any]:
    rows = [
        (clock(s.start, zone), s.kind, format_duration(s.end - s.start), s.reason) for s in spans
    ]
    return {"head": ("from", kind, "for", "why"), "rows": rows}


def _axis(report: Report, zone: tzinfo | None) -> _TimeAxis:
    return _TimeAxis(report.started_at, report.as_of, zone)


def _lanes(axis: _TimeAxis, names: Sequence[str], spans: Sequence[Span]) -> Picture:
    """One row for each kind; what happened lies in its row, whatever its colour."""
    if not spans:
        return Picture("", "", "")
    kinds = list(dict.fromkeys([*names, *(span.kind for span in spans)]))
    bottom = _TOP + len(kinds) * _LANE
    ticks, texts = axis.ticks(bottom)
    texts += [
        Text(_LEFT - 6, _TOP + row * _LANE + 20, kind, "end") for row, kind in enumerate(kinds)
    ]
    bars = []
    for span in spans:
        x, y = axis.x(span.start), _TOP + kinds.index(span.kind) * _LANE + 4
        wide = round(max(axis.x(span.end) - x, 2.0), 1)
        label = f"{span.kind}: {span.reason}"
        bars.append(Bar(x, y, wide, _LANE - 8, f"lane-{span.kind}", label))
    lines = [_flat(_TOP + row * _LANE, "grid") for row in range(len(kinds) + 1)]
    return Picture("", "", "", bottom + 28, bars=bars, lines=[*lines, *ticks], texts=texts)


def _flat(y: float, style: str) -> Line:
    return Line(_LEFT, y, WIDTH - _RIGHT, y, style)


def _round_up(value: float) -> float:
    """The next round number."""
    if value < 1e-9:  # a fraction of nothing, down to where logarithms end
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    return float(
        next(step * size for step in (1, 1.5, 2, 3, 5, 8, 10) if step * size >= value * 0.999)
    )
