"""Driving the monitor without a terminal: start it, let it come to rest, take its picture."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from ralphloop.ui.monitor.app import Monitor
from ralphloop.ui.monitor.paint import plain
from tests.ui.monitor_nights import Night

NOISE = (
    (re.compile(r"@font-face \{.*?\}", re.S), ""),
    (re.compile(r"\s*<clipPath id=\"[^\"]*-line-.*?</clipPath>", re.S), ""),
    (re.compile(r" clip-path=\"url\(#[^)]*-line-\d+\)\""), ""),
    (re.compile(r"terminal-\d+-"), "t-"),
)


@asynccontextmanager
async def watching(
    night: Night, size: tuple[int, int] = (80, 24), *, live: bool | None = True, **options: Any
) -> AsyncIterator[tuple[Monitor, Pilot[None]]]:
    """The monitor beside a night, at rest; `live`: we carry the run, or (None) another process."""
    with night.held_elsewhere() if live is None else night.held() if live else nullcontext():
        app = Monitor(night.project, clock=night.clock, **options)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.value is not None)
            await rest(app, pilot)
            yield app, pilot


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Wait for something to become true, and fail where it never does."""
    for _ in range(1_000):
        if condition():
            return
        await pilot.pause(0.02)
    raise AssertionError("it never happened")


async def rest(app: App[Any], pilot: Pilot[Any]) -> list[str]:
    """The rows of text on the screen once several looks in a row show the same."""
    before: list[str] = []
    same = 0
    for _ in range(500):
        await pilot.pause()
        await pilot.pause(0.02)
        rows = [strip.text for strip in app.screen._compositor.render_strips()]
        same = same + 1 if rows == before else 0
        if same == 3:
            return rows
        before = rows
    raise AssertionError("the screen never came to rest")


async def picture(app: Monitor, pilot: Pilot[None]) -> str:
    """The screen at rest as SVG, without what says nothing about it."""
    await rest(app, pilot)
    svg = app.export_screenshot(title="ralph monitor", simplify=True)
    for pattern, instead in NOISE:
        svg = pattern.sub(instead, svg)
    return svg


async def words(app: Monitor, pilot: Pilot[None]) -> str:
    """All text on the screen at rest."""
    return "\n".join(await rest(app, pilot))


def told(app: Monitor) -> list[str]:
    """The notes the person was shown."""
    return [note.message for note in app._notifications]


def header(app: Monitor) -> str:
    """The header's words."""
    assert app.value is not None
    return "\n".join(plain(line) for line in app.value.header(200))
