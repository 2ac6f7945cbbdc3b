"""A night to show to others: numbers, grades and kinds of findings, and nothing of the project.

What is shown is picked, never filtered: no words of an agent, no names of files, tests, branches or
people come here at all.  Titles of stories are shown only where somebody asks for them, without
secrets.  It is one page that needs no network, or one picture.
"""

import io
import re
from pathlib import Path
from typing import NamedTuple

from ralphloop.core.totals import short_cost, spent_words
from ralphloop.errors import UsageError
from ralphloop.night.review_values import Doubt, FindingKind, ReviewList
from ralphloop.redaction import redact
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted, one_line
from ralphloop.ui.report.values import Report

MOST_ROWS = 30
_CAUGHT = (FindingKind.WEAKENED, FindingKind.REPEATED, FindingKind.IN_VAIN, FindingKind.VACUOUS)
_FONTS = re.compile(r"@font-face \{[^}]{0,1000}\}")
_PARTS = ("working", "checking", "proving", "waiting", "other")
_STYLES = {
    Doubt.SENT_BACK: "red",
    Doubt.ASKED: "red",
    Doubt.CLAIMED: "yellow",
    Doubt.CHECKED: "yellow",
    Doubt.BY_HAND: "dim",
    Doubt.VERIFIED: "green",
}


class SharedRow(NamedTuple):
    """A story: how well it is proven, what it cost, what was found."""

    name: str  # a number, or its title where that may be shown
    doubt: Doubt
    spent: str
    found: str


class SharedPart(NamedTuple):
    """A part of the time."""

    name: str
    words: str
    percent: float


class SharedNight(NamedTuple):
    headline: str
    caught: str  # what looked done and was not; empty: nothing
    rows: tuple[SharedRow, ...]
    left_out: int
    parts: tuple[SharedPart, ...]


def shared_night(report: Report, listed: ReviewList, *, titles: bool) -> SharedNight:
    """What may be shown of a night."""
    totals = report.spending.totals
    total_s = report.times["total_s"]
    entries = [*listed.items, *listed.accepted]
    of_the_night = [one for one in entries if one.run == report.run]
    caught = [one for one in of_the_night if any(kind in _CAUGHT for kind in one.kinds)]
    rows = []
    for number, one in enumerate(of_the_night[:MOST_ROWS], start=1):
        title = one_line(redact(one.title), 80) if titles else ""
        found = ", ".join(kind for kind in one.kinds if kind is not FindingKind.DOUBTED)
        spent = short_cost(one.cost_usd, one.unpriced)
        rows.append(SharedRow(title or f"story {number}", one.doubt, spent, found))
    told = f"{report.passed} of {counted(report.total, 'story')} passed"
    cost = spent_words(totals.cost_usd, totals.unpriced)
    return SharedNight(
        headline=f"{told} · {cost} · {format_duration(total_s)}",
        caught=f"{counted(len(caught), 'story')} called done, and not proven" if caught else "",
        rows=tuple(rows),
        left_out=max(0, len(of_the_night) - MOST_ROWS),
        parts=tuple(_parts(report)),
    )


def _parts(report: Report) -> list[SharedPart]:
    whole = report.times["total_s"] or 1.0
    found = []
    for name in _PARTS:
        seconds = report.times.get(f"{name}_s", 0.0)
        if seconds > 0:
            found.append(SharedPart(name, format_duration(seconds), 100 * seconds / whole))
    return found


def as_shared(night: SharedNight, file: Path) -> bytes:
    """The night as the kind of file that its name says."""
    kind = file.suffix.lower()
    if kind in (".html", ".htm"):
        return _as_page(night).encode()
    if kind == ".svg":
        return _as_picture(night).encode()
    raise UsageError(f"a night is shared as .html or .svg, not {kind or 'without an ending'}")


def _as_page(night: SharedNight) -> str:
    from jinja2 import FileSystemLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("share.html.j2").render(night=night)


def _as_picture(night: SharedNight) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Console(record=True, file=io.StringIO(), width=100, force_terminal=True)
    drawn.print(Text(night.headline, style="bold"))
    if night.caught:
        drawn.print(Text(night.caught, style="bold red"))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for row in night.rows:
        style = _STYLES[row.doubt]
        table.add_row(Text(row.name), Text(row.doubt, style=style), row.spent, Text(row.found))
    drawn.print(table)
    drawn.print(Text(" · ".join(f"{one.name} {one.words}" for one in night.parts), style="dim"))
    # Fonts of the machine: those that are named there would come from the network.
    return _FONTS.sub("", drawn.export_svg(title="ralph: a night"))
