"""The report as one HTML file that needs nothing else, and as Markdown.

The templates only loop and format.  In HTML autoescape makes every word text, and the page's own
policy forbids scripts and network.  In Markdown words are escaped so that they cannot become links,
images, HTML, mentions or references; commands stand in code spans long enough to hold anything.

A picture is strips of boxes in percent: the browser stretches them to the room there is, and the
words beside them stay as large as all others.  Nothing is told by colour alone: position, labels
and hatching say it too, and every picture carries its numbers as a table.  The number of boxes is
bounded by the series it draws.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ralphloop.core.totals import cost_words, money, spent_words
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted
from ralphloop.ui import clock, number
from ralphloop.ui.report.assemble import ALWAYS
from ralphloop.ui.report.values import MOST_SPANS, Cost, LaneSpan, Report, Span, StoryLine

_HERE = Path(__file__).parent
# An underscore within a word is only itself.
_ACTIVE = re.compile(r"[\\`*\[\]<>|~&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
# What GitHub makes a link of, or takes as a word to close an issue.
_LINK = re.compile(r"(?<![\w.])@(?=\w)|#(?=\w)|\bGH-(?=\d)|:/(?=/)|\bwww(?=\.)", re.IGNORECASE)
_LIST_SIGN = re.compile(r"^([#+\-=]|\d+[.)])")
_TICKS = re.compile(r"`+")
_GAPS = re.compile(r"\n{3,}")
_PANEL, _ROW, _LANE = 100, 40, 26  # how tall strips are
_NIGHT = 20 * 3600.0


def as_html(report: Report, zone: tzinfo | None = None) -> str:
    """The whole page; times are those of `zone`, or of this machine."""
    drawn = pictures(report, zone)
    return _rendered("report.html.j2", report, zone, pictures=drawn, shares=_shares(report))


def as_markdown(
    report: Report, zone: tzinfo | None = None, *, brief: bool = False, cost: bool = True
) -> str:
    """The same for a terminal, without the pictures; `brief` for who reviews the change."""
    text = _rendered("report.md.j2", report, zone, brief=brief, cost=cost)
    return _GAPS.sub("\n\n", text).strip() + "\n"


def escaped(text: str) -> str:
    """Words that stay words in Markdown."""
    text = _LINK.sub("\\g<0>\u200b", _ACTIVE.sub(r"\\\g<0>", text))
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
        "used": _used,
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
        spans=", ".join(f"{n} {format_duration(s)}" for n, s, *_ in _shares(report) if s >= 1),
        zone=clock(report.started_at, zone, "%Z") or "local time",
        **more,
    )


def _used(story: StoryLine) -> str:
    """What a story has used, without what it has not."""
    parts = (
        counted(story.iterations, "iteration"),
        story.attempts and counted(story.attempts, "failed attempt"),
        spent_words(story.cost_usd, story.unpriced),
        story.tokens and f"{number(story.tokens)} tokens",
        story.seconds >= 1 and format_duration(story.seconds),
    )
    return ", ".join(str(part) for part in parts if part)


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
    """A box in a strip, in percent of it, from the top left corner."""

    x: float
    y: float
    width: float
    height: float
    style: str
    label: str  # shown on pointing at it, read aloud by screen readers


class Strip(NamedTuple):
    """One row of a picture: words before it, its bars, words behind it."""

    before: tuple[str, ...]  # from top to bottom
    bars: Sequence[Bar]
    height: int = _LANE
    after: tuple[str, ...] = ()


@dataclass
class Picture:
    """What is drawn, and the same as a table."""

    key: str
    title: str
    summary: str  # the same in one sentence; alone where there is nothing to draw
    head: tuple[str, ...] = ()
    rows: Sequence[tuple[str, ...]] = ()
    strips: Sequence[Strip] = ()
    below: Sequence[str] = ()  # along the bottom, from left to right


class _TimeAxis:
    def __init__(self, report: Report, zone: tzinfo | None) -> None:
        self.start, self.zone = report.started_at, zone
        self.span = max(report.as_of - report.started_at, 1.0)
        moments = (self.start + self.span * third / 3 for third in range(4))
        self.ticks = [moment(at, self.span, zone) for at in moments]

    def x(self, at: float) -> float:
        """Where a moment lies."""
        return round(100 * min(max((at - self.start) / self.span, 0.0), 1.0), 2)


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
    lanes = [_in_lanes(report.series.lanes, axis)] if report.series.lanes else []
    return [stories, *lanes, _per_iteration(report), _per_story(report), circuit, waiting]


def _stories_over_time(report: Report, axis: _TimeAxis) -> Picture:
    """Steps: how many had passed from one moment to the next."""
    points = report.series.passed
    drawn = Picture("stories", "Stories over time", "No story passed in this run.")
    if not points:
        return drawn
    drawn.summary = f"{counted(points[-1].count, 'story')} passed in this run."
    drawn.head = ("time", "story", "grade", "passed so far")
    drawn.rows = [(clock(p.at, axis.zone), p.story, p.grade, f"{p.count:,}") for p in points]
    before = max(report.passed - points[-1].count, 0)
    top = max(report.total, before + points[-1].count)
    levels = [before, *(before + point.count for point in points)]
    places = sorted(axis.x(point.at) for point in points)
    steps = zip([0.0, *places], [*places, 100.0], levels, strict=True)
    bars = [
        _column(start, round(end - start, 2), level / top, "passed", f"{level:,} of {top:,}")
        for start, end, level in steps
    ]
    drawn.strips, drawn.below = [Strip((f"all {top}", "0"), bars, _PANEL)], axis.ticks
    return drawn


def _column(x: float, width: float, share: float, style: str, label: str) -> Bar:
    """A bar that stands on the bottom of its strip."""
    tall = round(100 * share, 2)
    return Bar(x, round(100 - tall, 2), width, tall, style, label)


def _per_iteration(report: Report) -> Picture:
    costs = report.series.iterations
    drawn = Picture("iterations", "Cost and tokens per iteration", "No iteration has ended yet.")
    if not costs:
        return drawn
    starts, bars = counted(report.spending.totals.starts, "start"), counted(len(costs), "bar")
    drawn.summary = f"{starts} in {bars}; plain ones are dollars, hatched ones tokens."
    drawn.head, drawn.rows = ("iteration", "cost", "tokens"), _cost_rows(costs)
    dollars = [(cost.cost_usd, cost_words(cost.cost_usd, cost.unpriced)) for cost in costs]
    tokens = [(float(cost.tokens), f"{number(cost.tokens)} tokens") for cost in costs]
    drawn.below = [f"iteration {costs[0].name}", costs[-1].name]
    step = 100 / len(costs)
    drawn.strips = strips = []
    for style, values, shown in (("cost", dollars, money), ("tokens", tokens, number)):
        peak = _round_up(max(value for value, _ in values))
        columns = [
            _column(
                round((place + 0.1) * step, 2),
                round(min(0.8 * step, 12), 2),
                min(1.0, value / peak),
                style,
                f"iteration {cost.name}: {words}",
            )
            for place, (cost, (value, words)) in enumerate(zip(costs, values, strict=True))
        ]
        strips.append(Strip((shown(peak), shown(peak / 2), shown(0)), columns, _PANEL))
    return drawn


def _per_story(report: Report) -> Picture:
    stories, others = report.series.stories, report.series.other_stories
    drawn = Picture("per-story", "Cost and tokens per story", "No story was worked on.")
    if not stories:
        return drawn
    drawn.summary = "The dearest first; plain bars are dollars, hatched ones tokens."
    drawn.head = ("story", "cost", "tokens")
    drawn.rows = _cost_rows([*stories, *([others] if others else [])])
    most_cost = max(story.cost_usd for story in stories) or 1.0
    most_tokens = max(story.tokens for story in stories) or 1
    drawn.strips = strips = []
    for story in stories:
        cost, tokens = cost_words(story.cost_usd, story.unpriced), f"{number(story.tokens)} tok"
        share, part = story.cost_usd / most_cost, story.tokens / most_tokens
        bars = (
            Bar(0, 4, round(max(100 * share, 0.3), 2), 42, "cost", f"{story.name}: {cost}"),
            Bar(0, 54, round(max(100 * part, 0.3), 2), 42, "tokens", f"{story.name}: {tokens}"),
        )
        strips.append(Strip((story.name,), bars, _ROW, (cost, tokens)))
    if others:
        cost = cost_words(others.cost_usd, others.unpriced)
        drawn.below = [f"{others.name}: {cost}, {number(others.tokens)} tok"]
    return drawn


def _cost_rows(costs: Sequence[Cost]) -> list[tuple[str, ...]]:
    return [(c.name, cost_words(c.cost_usd, c.unpriced), f"{c.tokens:,}") for c in costs]


def _lanes(drawn: Picture, axis: _TimeAxis, names: Sequence[str], spans: Sequence[Span]) -> None:
    """One row for each kind; what happened lies in its row, whatever its colour."""
    if not spans:
        return
    drawn.rows = [
        (clock(s.start, axis.zone), _row(s), format_duration(s.end - s.start), s.reason)
        for s in spans
    ]
    lanes: dict[str, list[Bar]] = {name: [] for name in names}
    for span in spans:
        x = min(axis.x(span.start), 99.5)
        width = round(max(axis.x(span.end) - x, 0.5), 2)  # to be seen at all
        label = f"{span.kind}: {span.reason}"
        lanes.setdefault(_row(span), []).append(Bar(x, 8, width, 84, f"lane-{span.kind}", label))
    drawn.strips = [Strip((kind,), bars) for kind, bars in lanes.items()]
    drawn.below = axis.ticks


def _in_lanes(spans: Sequence[LaneSpan], axis: _TimeAxis) -> Picture:
    queued = format_duration(sum(one.end - one.start for one in spans if one.kind == "queued"))
    back = counted(sum(one.kind == "returned" for one in spans), "story", "was")
    summary = f"At work, crossed: waiting to land ({queued} in all), landing. {back} sent back."
    drawn = Picture("lanes", "Lanes", summary, ("from", "lane", "for", "what"))
    _lanes(
        drawn, axis, sorted({_row(span) for span in spans}, key=lambda row: (len(row), row)), spans
    )
    return drawn


def _row(span: Span) -> str:
    return f"lane {span.lane}" if isinstance(span, LaneSpan) else span.kind


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
