"""The report as one HTML file that needs nothing else, and as Markdown.

The templates only loop and format.  In HTML autoescape makes every word text, and the page's own
policy forbids scripts and network.  In Markdown words are escaped so that they cannot become links,
images, HTML or mentions; commands stand in code spans long enough to hold anything.
"""

from __future__ import annotations

import os
import re
from datetime import tzinfo
from functools import partial
from pathlib import Path

from ralphloop.core.totals import cost_words, money, spent_words
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted
from ralphloop.ui import clock, number
from ralphloop.ui.report.assemble import ALWAYS
from ralphloop.ui.report.pictures import moment, pictures
from ralphloop.ui.report.values import Report

_HERE = Path(__file__).parent
# An underscore within a word is only itself.
_ACTIVE = re.compile(r"[\\`*\[\]<>|~&]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_MENTION = re.compile(r"@(?=\w)")
_LIST_SIGN = re.compile(r"^([#+\-=]|\d+[.)])")
_TICKS = re.compile(r"`+")
_GAPS = re.compile(r"\n{3,}")


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
