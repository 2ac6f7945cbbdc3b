"""The report as one HTML file that needs nothing else, and as Markdown.

The templates only loop and format.  In HTML autoescape makes every word text, and the page's own
policy forbids scripts and network.  In Markdown words are escaped so that they cannot become links,
images, HTML or mentions; commands stand in code spans long enough to hold anything.

The pictures are plain geometry: the template turns it into SVG, one element for each value.
Nothing is told by colour alone: position, labels and hatching say it too, and every picture carries
its numbers as a table.  The number of shapes is bounded by the series it draws.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ralphloop.core.totals import cost_words, money, spent_words
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted
from ralphloop.ui import clock, number
from ralphloop.ui.report.assemble import ALWAYS
from ralphloop.ui.report.values import MOST_SPANS, Cost, Report, Span

_HERE = Path(__file__).parent
# An underscore within a word is only itself.
_ACTIVE = re.compile(r"[\\`*\[\]<>|~&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_MENTION = re.compile(r"@(?=\w)")
_LIST_SIGN = re.compile(r"^([#+\-=]|\d+[.)])")
_TICKS = re.compile(r"`+")
_GAPS = re.compile(r"\n{3,}")
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
_NIGHT = 20 * 3600.0


def as_html(report: Report, zone: tzinfo | None = None) -> str:
    """The whole page; times are those of `zone`, or of this machine."""
    drawn = pictures(report, zone)
    return _rendered("report.html.j2", report, zone, pictures=drawn, shares=_shares(report))


def as_markdown(report: Report, zone: tzinfo | None = None) -> str:
    """The same for a terminal or a pull request, without the pictures."""
    return _GAPS.sub("\n\n", _rendered("report.md.j2", report, zone)).strip() + "\n"


def escaped(text: str) -> str:
    """Words that stay words in Markdown."""
    text = _MENTION.sub("@\u200b", _ACTIVE.sub(r"\\\g<0>", text))
    return _LIST_SIGN.sub(r"\\\1", text)


def code(text: str) -> str:
    """A Markdown code span that holds whatever the text holds."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _rendered(name: str, report: Report, zone: tzinfo | None, **more: object) -> str:
    from jinja2 import FileSystemBytecodeCache, FileSystemLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Compiled templates stand beside our compiled modules, and are trusted like those.
    compiled = _HERE / "__pycache__"
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(_HERE),
        bytecode_cache=(
            FileSystemBytecodeCache(str(compiled)) if os.access(compiled, os.W_OK) else None
        ),
        autoescape=name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "clock": partial(clock, zone=zone),
        "moment": partial(moment, span=report.as_of - report.started_at, zone=zone),
        "duration": format_duration,
        "money": money,
        "cost_words": cost_words,
        "spent_words": spent_words,
        "number": number,
        "percent": "{:.0%}".format,
        "counted": counted,
        "words": escaped,
        "code": code,
    }
    by_key = {group.key: group for group in report.groups}
    return environment.get_template(name).render(
        report=report,
        tiles=[by_key[key] for key in ALWAYS],
        zone=clock(report.started_at, zone, "%Z") or "local time",
        **more,
    )


def _shares(report: Report) -> list[tuple[str, float, float, float]]:
    """Where the time went: name, seconds, start and width in percent of the whole."""
    found, start = [], 0.0
    names = ("working", "checking", "waiting", "other")
    parts = {name: float(getattr(report.times, f"{name}_s")) for name in names}
    whole = sum(parts.values()) or 1.0
    for name, seconds in parts.items():
        width = round(100 * seconds / whole, 2)
        found.append((name, seconds, round(start, 2), width))
        start += width
    return found


# --- pictures --------------------------------------------------------------------------------


class Bar(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    style: str
    label: str  # shown on pointing at it, read aloud by screen readers


class Rule(NamedTuple):
    x1: float
    y1: float
    x2: float
    y2: float
    style: str


class Caption(NamedTuple):
    x: float
    y: float
    words: str
    anchor: str = "start"


@dataclass
class Picture:
    """What is drawn so far."""

    key: str
    title: str
    summary: str  # the same in one sentence; alone where there is nothing to draw
    head: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()
    height: float = 0
    bars: list[Bar] = field(default_factory=list)
    lines: list[Rule] = field(default_factory=list)
    texts: list[Caption] = field(default_factory=list)
    curve: str = ""
    dots: Sequence[tuple[float, float]] = ()
    width: float = WIDTH

    def level(self, y: float, style: str, label: str = "") -> None:
        """A line from left to right, with its value before it."""
        self.lines.append(Rule(_LEFT, y, WIDTH - _RIGHT, y, style))
        if label:
            self.texts.append(Caption(_LEFT - 6, y + 5, label, "end"))

    def times(self, axis: _TimeAxis, bottom: float) -> None:
        """Four moments along the bottom."""
        self.height = bottom + 28
        for third, anchor in enumerate(("start", "middle", "middle", "end")):
            at = axis.start + axis.span * third / 3
            x, words = axis.x(at), moment(at, axis.span, axis.zone)
            self.lines.append(Rule(x, bottom, x, bottom + 5, "axis"))
            self.texts.append(Caption(x, bottom + 20, words, anchor))


class _TimeAxis:
    def __init__(self, report: Report, zone: tzinfo | None) -> None:
        self.start, self.zone = report.started_at, zone
        self.span = max(report.as_of - report.started_at, 1.0)

    def x(self, at: float) -> float:
        """Where a moment lies."""
        share = min(max((at - self.start) / self.span, 0.0), 1.0)
        return round(_LEFT + share * _PLOT, 1)


def pictures(report: Report, zone: tzinfo | None = None) -> list[Picture]:
    """All pictures of a report."""
    axis, spans, waits = _TimeAxis(report, zone), report.series.circuit, report.series.waits
    changes = report.series.circuit_changes
    summary = f"It stayed {spans[-1].kind} all the time."
    if changes:
        summary = f"It changed {counted(changes, 'time')} and ended {spans[-1].kind}."
        summary += " The newest states are drawn." if len(spans) <= changes else ""
    circuit = Picture("circuit", "Circuit", summary, ("from", "state", "for", "why"))
    _lanes(circuit, axis, ("OPEN", "HALF_OPEN", "CLOSED"), spans if changes else ())
    quota = sum(wait.end - wait.start for wait in waits if wait.kind == "quota")
    newest = "the newest " if len(waits) == MOST_SPANS else ""
    told = f"{newest}{counted(len(waits), 'wait')}; {format_duration(quota)} for the usage limit."
    summary = told if waits else "It never had to wait."
    waiting = Picture("waits", "Waiting", summary, ("from", "what for", "for", "why"))
    _lanes(waiting, axis, (), waits)
    stories = _stories_over_time(report, axis)
    return [stories, _per_iteration(report), _per_story(report), circuit, waiting]


def _stories_over_time(report: Report, axis: _TimeAxis) -> Picture:
    points = report.series.passed
    drawn = Picture("stories", "Stories over time", "No story passed in this run.")
    if not points:
        return drawn
    drawn.summary = f"{counted(points[-1].count, 'story')} passed in this run."
    drawn.head = ("time", "story", "grade", "passed so far")
    drawn.rows = [(clock(p.at, axis.zone), p.story, p.grade, f"{p.count:,}") for p in points]
    before = max(report.passed - points[-1].count, 0)
    top, bottom = max(report.total, points[-1].count), _TOP + _PANEL

    def y(count: float) -> float:
        return round(bottom - count / top * _PANEL, 1)

    drawn.level(bottom, "axis", "0")
    drawn.level(_TOP, "goal", f"all {top}")
    drawn.times(axis, bottom)
    path, level = [f"{_LEFT},{y(before)}"], before
    for point in points:
        path.append(f"{axis.x(point.at)},{y(level)}")
        level = before + point.count
        path.append(f"{axis.x(point.at)},{y(level)}")
    drawn.curve = " ".join([*path, f"{WIDTH - _RIGHT},{y(level)}"])
    drawn.dots = [(axis.x(p.at), y(before + p.count)) for p in points if len(points) <= _MOST_DOTS]
    return drawn


def _per_iteration(report: Report) -> Picture:
    costs = report.series.iterations
    drawn = Picture("iterations", "Cost and tokens per iteration", "No iteration has ended yet.")
    if not costs:
        return drawn
    starts, bars = counted(report.spending.totals.starts, "start"), counted(len(costs), "bar")
    drawn.summary = f"{starts} in {bars}."
    drawn.head, drawn.rows = ("iteration", "cost", "tokens"), _cost_rows(costs)
    low = _TOP + 10 + _PANEL + 40
    dollars = [(c.name, c.cost_usd, cost_words(c.cost_usd, c.unpriced)) for c in costs]
    _columns(drawn, dollars, _TOP + 10, "cost", money)
    _columns(drawn, [(c.name, c.tokens, number(c.tokens)) for c in costs], low, "tokens", number)
    drawn.height = low + _PANEL + 28
    drawn.texts += [
        Caption(_LEFT, _TOP, "cost in dollars"),
        Caption(_LEFT, low - 10, "tokens"),
        Caption(_LEFT, low + _PANEL + 20, f"iteration {costs[0].name}"),
        Caption(WIDTH - _RIGHT, low + _PANEL + 20, costs[-1].name, "end"),
    ]
    return drawn


def _columns(
    drawn: Picture,
    values: Sequence[tuple[str, float, str]],
    top: float,
    style: str,
    shown: Callable[[float], str],
) -> None:
    """Upright bars, each with its value in words, with an axis of their own."""
    peak, bottom = _round_up(max(value for _, value, _ in values)), top + _PANEL
    step = _PLOT / len(values)
    width = round(max(min(step * 0.8, 60.0), 1.0), 1)
    for position, (name, value, words) in enumerate(values):
        tall, x = round(value / peak * _PANEL, 1), round(_LEFT + (position + 0.1) * step, 1)
        drawn.bars.append(Bar(x, bottom - tall, width, tall, style, f"iteration {name}: {words}"))
    drawn.level(bottom, "axis", shown(0))
    drawn.level(bottom - _PANEL / 2, "grid", shown(peak / 2))
    drawn.level(top, "grid", shown(peak))


def _per_story(report: Report) -> Picture:
    stories, others = report.series.stories, report.series.other_stories
    drawn = Picture("per-story", "Cost and tokens per story", "No story was worked on.")
    if not stories:
        return drawn
    drawn.summary = "The dearest first; plain bars are dollars, hatched ones tokens."
    drawn.head = ("story", "cost", "tokens")
    drawn.rows = _cost_rows([*stories, *([others] if others else [])])
    room = WIDTH - _NAMES - _VALUES
    most_cost = max(story.cost_usd for story in stories) or 1.0
    most_tokens = max(story.tokens for story in stories) or 1
    for row, story in enumerate(stories):
        y, name = _TOP + row * _ROW, story.name
        short = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
        cost = max(round(story.cost_usd / most_cost * room, 1), 1)
        tokens = max(round(story.tokens / most_tokens * room, 1), 1)
        dollars = cost_words(story.cost_usd, story.unpriced)
        label = f"{name}: {dollars}, {story.tokens:,} tokens"
        drawn.bars.append(Bar(_NAMES, y, cost, 14, "cost", label))
        drawn.bars.append(Bar(_NAMES, y + 17, tokens, 14, "tokens", label))
        drawn.texts += [
            Caption(_NAMES - 8, y + 20, short, "end"),
            Caption(_NAMES + cost + 6, y + 13, dollars),
            Caption(_NAMES + tokens + 6, y + 30, f"{number(story.tokens)} tok"),
        ]
    drawn.height = _TOP + len(stories) * _ROW
    if others is not None:
        dollars = cost_words(others.cost_usd, others.unpriced)
        words = f"{others.name}: {dollars}, {number(others.tokens)} tok"
        drawn.texts.append(Caption(_NAMES, drawn.height + 13, words))
        drawn.height += 22
    return drawn


def _cost_rows(costs: Sequence[Cost]) -> list[tuple[str, ...]]:
    return [(c.name, cost_words(c.cost_usd, c.unpriced), f"{c.tokens:,}") for c in costs]


def _lanes(drawn: Picture, axis: _TimeAxis, names: Sequence[str], spans: Sequence[Span]) -> None:
    """One row for each kind; what happened lies in its row, whatever its colour."""
    if not spans:
        return
    drawn.rows = [
        (clock(s.start, axis.zone), s.kind, format_duration(s.end - s.start), s.reason)
        for s in spans
    ]
    kinds = list(dict.fromkeys([*names, *(span.kind for span in spans)]))
    drawn.level(_TOP, "grid")
    for row, kind in enumerate(kinds):
        drawn.level(_TOP + (row + 1) * _LANE, "grid")
        drawn.texts.append(Caption(_LEFT - 6, _TOP + row * _LANE + 20, kind, "end"))
    drawn.times(axis, _TOP + len(kinds) * _LANE)
    for span in spans:
        x, y = axis.x(span.start), _TOP + kinds.index(span.kind) * _LANE + 4
        wide = round(max(axis.x(span.end) - x, 2.0), 1)
        label = f"{span.kind}: {span.reason}"
        drawn.bars.append(Bar(x, y, wide, _LANE - 8, f"lane-{span.kind}", label))


def _round_up(value: float) -> float:
    """The next round number."""
    if value < 1e-9:  # a fraction of nothing, down to where logarithms end
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    return float(
        next(step * size for step in (1, 1.5, 2, 3, 5, 8, 10) if step * size >= value * 0.999)
    )


def moment(at: float | None, span: float, zone: tzinfo | None = None) -> str:
    """A point in time within so many seconds: a night needs no dates."""
    return clock(at, zone, "%H:%M" if span < _NIGHT else "%m-%d %H:%M")
