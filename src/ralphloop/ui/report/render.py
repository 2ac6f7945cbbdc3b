"""The report as one HTML file that needs nothing else, and as Markdown.

The templates only loop and format.  In HTML autoescape makes every word text, and the page's own
policy forbids scripts and network.  In Markdown words are escaped so that they cannot become links,
images, HTML, mentions or references; commands stand in code spans long enough to hold anything.

A picture is strips of boxes in percent: the browser stretches them to the room there is, and the
words beside them stay as large as all others.  Nothing is told by colour alone: position, labels
and hatching say it too, and every picture carries its numbers as a table.  The number of boxes is
bounded by the series it draws.
"""

import os
import re
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from ralphloop.core.totals import cost_words, money, spent_words
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted
from ralphloop.ui import clock, number
from ralphloop.ui.report.assemble import ALWAYS
from ralphloop.ui.report.values import MOST_SPANS, Cost, Report, Span, StoryLine

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
_STATES = ("OPEN", "HALF_OPEN", "CLOSED")


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
    names = ("working", "checking", "waiting", "other")
    parts = [report.times[f"{name}_s"] for name in names]
    widths = [100 * seconds / (sum(parts) or 1.0) for seconds in parts]
    return list(zip(names, parts, accumulate(widths, initial=0.0), widths, strict=False))


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


class Picture(NamedTuple):
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
        return 100 * min(max((at - self.start) / self.span, 0.0), 1.0)


def pictures(report: Report, zone: tzinfo | None = None) -> list[Picture]:
    """All pictures of a report."""
    axis, series = _TimeAxis(report, zone), report.series
    spans, waits, changes = series.circuit, series.waits, series.circuit_changes
    summary = f"It stayed {spans[-1].kind} all the time."
    if changes:
        summary = f"It changed {counted(changes, 'time')} and ended {spans[-1].kind}."
        summary += " The newest states are drawn." if len(spans) <= changes else ""
    circuit = Picture("circuit", "Circuit", summary, ("from", "state", "for", "why"))
    newest = "the newest " if len(waits) == MOST_SPANS else ""
    told = f"{newest}{counted(len(waits), 'wait')}; {_sum(waits, 'quota')} for the usage limit."
    summary = told if waits else "It never had to wait."
    waiting = Picture("waits", "Waiting", summary, ("from", "what for", "for", "why"))
    back = counted(sum(one.kind == "returned" for one in series.lanes), "story", "was")
    summary = f"At work, crossed: waiting to land ({_sum(series.lanes, 'queued')} in all), landing."
    lanes = Picture(
        "lanes", "Lanes", f"{summary} {back} sent back.", ("from", "lane", "for", "what")
    )
    names = [f"lane {n}" for n in sorted({one.lane for one in series.lanes})]
    return [
        _stories_over_time(report, axis),
        *([_timeline(lanes, axis, names, series.lanes)] if series.lanes else []),
        _per_iteration(report),
        _per_story(report),
        _timeline(circuit, axis, _STATES, spans if changes else ()),
        _timeline(waiting, axis, (), waits),
    ]


def _sum(spans: Sequence[Span], kind: str) -> str:
    return format_duration(sum(one.end - one.start for one in spans if one.kind == kind))


def _stories_over_time(report: Report, axis: _TimeAxis) -> Picture:
    """Steps: how many had passed from one moment to the next."""
    points = report.series.passed
    drawn = Picture("stories", "Stories over time", "No story passed in this run.")
    if not points:
        return drawn
    before = max(report.passed - points[-1].count, 0)
    top = max(report.total, before + points[-1].count)
    levels = [before, *(before + point.count for point in points)]
    places = [0.0, *sorted(axis.x(point.at) for point in points), 100.0]
    bars = [
        _column(start, end - start, level / top, "passed", f"{level:,} of {top:,}")
        for start, end, level in zip(places, places[1:], levels, strict=False)
    ]
    return drawn._replace(
        summary=f"{counted(points[-1].count, 'story')} passed in this run.",
        head=("time", "story", "grade", "passed so far"),
        rows=[(clock(p.at, axis.zone), p.story, p.grade, f"{p.count:,}") for p in points],
        strips=[Strip((f"all {top}", "0"), bars, _PANEL)],
        below=axis.ticks,
    )


def _column(x: float, width: float, share: float, style: str, label: str) -> Bar:
    """A bar that stands on the bottom of its strip."""
    return Bar(x, 100 - 100 * share, width, 100 * share, style, label)


def _per_iteration(report: Report) -> Picture:
    costs = report.series.iterations
    drawn = Picture("iterations", "Cost and tokens per iteration", "No iteration has ended yet.")
    if not costs:
        return drawn
    starts, bars = counted(report.spending.totals.starts, "start"), counted(len(costs), "bar")
    step, strips = 100 / len(costs), []
    for style, values, shown in (
        ("cost", [cost.cost_usd for cost in costs], money),
        ("tokens", [float(cost.tokens) for cost in costs], number),
    ):
        peak = max(*values, 1e-9)  # nothing is nothing of anything
        columns = [
            _column(
                (place + 0.1) * step,
                min(0.8 * step, 12),
                value / peak,
                style,
                f"iteration {cost.name}: {', '.join(_words(cost))}",
            )
            for place, (cost, value) in enumerate(zip(costs, values, strict=True))
        ]
        strips.append(Strip((shown(peak), shown(peak / 2), shown(0)), columns, _PANEL))
    return drawn._replace(
        summary=f"{starts} in {bars}; plain ones are dollars, hatched ones tokens.",
        head=("iteration", "cost", "tokens"),
        rows=_cost_rows(costs),
        strips=strips,
        below=[f"iteration {costs[0].name}", costs[-1].name],
    )


def _per_story(report: Report) -> Picture:
    stories, others = report.series.stories, report.series.other_stories
    drawn = Picture("per-story", "Cost and tokens per story", "No story was worked on.")
    if not stories:
        return drawn
    most_cost = max(story.cost_usd for story in stories) or 1.0
    most_tokens = max(story.tokens for story in stories) or 1
    strips = []
    for story in stories:
        words = _words(story)
        shares = (story.cost_usd / most_cost, story.tokens / most_tokens)
        bars = [
            Bar(0, y, max(100 * share, 0.3), 42, style, f"{story.name}: {told}")
            for y, style, share, told in zip(
                (4, 54), ("cost", "tokens"), shares, words, strict=True
            )
        ]
        strips.append(Strip((story.name,), bars, _ROW, words))
    return drawn._replace(
        summary="The dearest first; plain bars are dollars, hatched ones tokens.",
        head=("story", "cost", "tokens"),
        rows=_cost_rows([*stories, *([others] if others else [])]),
        strips=strips,
        below=[f"{others.name}: {', '.join(_words(others))}"] if others else (),
    )


def _words(cost: Cost) -> tuple[str, str]:
    return cost_words(cost.cost_usd, cost.unpriced), f"{number(cost.tokens)} tok"


def _cost_rows(costs: Sequence[Cost]) -> list[tuple[str, ...]]:
    return [(c.name, cost_words(c.cost_usd, c.unpriced), f"{c.tokens:,}") for c in costs]


def _timeline(
    drawn: Picture, axis: _TimeAxis, names: Iterable[str], spans: Sequence[Span]
) -> Picture:
    """One row for each kind or lane; what happened lies in its row, whatever its colour."""
    if not spans:
        return drawn
    found: dict[str, list[Bar]] = {name: [] for name in names}
    rows = []
    for span in spans:
        row, label = f"lane {span.lane}" if span.lane else span.kind, f"{span.kind}: {span.reason}"
        x = min(axis.x(span.start), 99.5)
        width = max(axis.x(span.end) - x, 0.5)  # to be seen at all
        found.setdefault(row, []).append(Bar(x, 8, width, 84, f"lane-{span.kind}", label))
        took = format_duration(span.end - span.start)
        rows.append((clock(span.start, axis.zone), row, took, span.reason))
    strips = [Strip((kind,), bars) for kind, bars in found.items()]
    return drawn._replace(rows=rows, strips=strips, below=axis.ticks)


def moment(at: float | None, span: float, zone: tzinfo | None = None) -> str:
    """A point in time within so many seconds: a night needs no dates."""
    return clock(at, zone, "%H:%M" if span < _NIGHT else "%m-%d %H:%M")
