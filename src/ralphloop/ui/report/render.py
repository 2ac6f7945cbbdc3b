"""The report as one HTML file that needs nothing else, and as Markdown.

In HTML autoescape makes every word text, and the page's own policy forbids scripts and network.  In
Markdown words are escaped so that they cannot become links, images, HTML, mentions or references;
commands stand in code spans long enough to hold anything.  A picture is strips of boxes in percent:
the browser stretches them, but not the words.  Nothing is told by colour alone: position, labels
and hatching say it too, and every picture carries its numbers as a table.
"""

import os
import re
from collections.abc import Sequence
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ralphloop.core.totals import UNKNOWN, cost_words, money, spent_words, token_words
from ralphloop.text.durations import clock, format_duration
from ralphloop.text.plain import counted, number
from ralphloop.ui.report.assemble import ALWAYS
from ralphloop.ui.report.values import MOST_SPANS, Report, StoryLine

_HERE = Path(__file__).parent
# An underscore within a word is only itself.
_ACTIVE = re.compile(r"[\\`*\[\]<>|~&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
# What GitHub makes a link of, or takes as a word to close an issue.
_LINK = re.compile(r"(?<![\w.])@(?=\w)|#(?=\w)|\bGH-(?=\d)|:/(?=/)|\bwww(?=\.)", re.IGNORECASE)
_LIST_SIGN = re.compile(r"^([#+\-=]|\d+[.)])")
_TICKS = re.compile(r"`+")
_GAPS = re.compile(r"\n{3,}")
_NIGHT = 20 * 3600.0


def as_html(report: Report, zone: tzinfo | None = None) -> str:
    """The whole page; times are those of `zone`, or of this machine."""
    return _rendered("report.html.j2", report, zone, most_spans=MOST_SPANS)


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
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
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
    start = report.started_at
    span = max(report.as_of - report.started_at, 1.0)
    form = "%H:%M" if span < _NIGHT else "%m-%d %H:%M"  # a night needs no dates
    environment.filters |= {
        "clock": partial(clock, zone=zone),
        "moment": partial(clock, zone=zone, form=form),
        "place": lambda at: 100 * min(max((at - start) / span, 0.0), 1.0),
        "lasted": lambda spans, kind: format_duration(
            sum(one.end - one.start for one in spans if one.kind == kind)
        ),
        "duration": format_duration,
        "money": money,
        "cost_words": cost_words,
        "spent_words": spent_words,
        "known": lambda amount, starts: number(amount) if amount or not starts else UNKNOWN,
        "used": _used,
        "without_answer": lambda starts: (
            f", and {counted(starts, 'start')} without an answer" if starts else ""
        ),
        "number": number,
        "percent": "{:.0%}".format,
        "counted": counted,
        "words": escaped,
        "code": code,
    }
    by_key = {group.key: group for group in report.groups}
    shares = _shares(report)
    return environment.get_template(name).render(
        report=report,
        tiles=[by_key[key] for key in ALWAYS],
        shares=shares,
        spans=", ".join(
            f"{one.name} {format_duration(one.seconds)}" for one in shares if one.seconds
        ),
        zone=clock(report.started_at, zone, "%Z") or "local time",
        ticks=[clock(start + span * third / 3, zone, form) for third in range(4)],
        **more,
    )


def _used(story: StoryLine) -> str:
    """What a story has used, without what it has not."""
    parts = [counted(story.iterations, "iteration")]
    if story.attempts:
        parts.append(counted(story.attempts, "failed attempt"))
    parts.append(spent_words(story.cost_usd, story.unpriced))
    parts.append(token_words(story.tokens, story.iterations, number))
    if story.seconds >= 1:
        parts.append(format_duration(story.seconds))
    return ", ".join(parts)


class TimeShare(NamedTuple):
    """One part of the time."""

    name: str
    seconds: int
    start: float  # in percent of the whole, as the next
    width: float


def _shares(report: Report) -> list[TimeShare]:
    """Where the time went, in whole seconds that together are the whole."""
    names = ("working", "checking", "proving", "waiting", "other")
    parts = whole_seconds([report.times[f"{name}_s"] for name in names], report.times["total_s"])
    total = sum(parts) or 1
    start = 0.0
    shares = []
    for name, seconds in zip(names, parts, strict=True):
        width = 100 * seconds / total
        shares.append(TimeShare(name, seconds, start, width))
        start += width
    return shares


def whole_seconds(parts: Sequence[float], total: float) -> list[int]:
    """The parts in whole seconds whose sum is the total in whole seconds: those with the largest
    rest are rounded up."""
    found = [int(part) for part in parts]
    missing = int(total) - sum(found)
    by_rest = sorted(range(len(parts)), key=lambda at: found[at] - parts[at])
    for at in by_rest[: max(0, missing)]:
        found[at] += 1
    return found
