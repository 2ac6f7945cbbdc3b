"""What the monitor looks like: a picture of each view in each state, small and large."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.image import SVGImageSnapshotExtension

from tests.ui import monitor_nights as nights
from tests.ui.monitor_nights import Night
from tests.ui.monitor_pilot import picture, rest, watching

SMALL, USUAL, LARGE = (80, 24), (120, 40), (200, 60)
SIZES = pytest.mark.parametrize("size", [SMALL, USUAL, LARGE], ids=["80x24", "120x40", "200x60"])


@pytest.fixture
def svg(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Pictures, one file each."""
    return snapshot.use_extension(SVGImageSnapshotExtension)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose path is the same on every machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Path("shop")


def look(night: Night, size: tuple[int, int], *keys: str, live: bool = True, **options: Any) -> str:
    """The monitor's picture after these keys."""

    async def watch() -> str:
        async with watching(night, size, live=live, **options) as (app, pilot):
            for key in keys:
                await pilot.press(key)
                await rest(app, pilot)
            return await picture(app, pilot)

    return asyncio.run(watch())


@SIZES
@pytest.mark.parametrize(
    ("make", "live"),
    [
        (nights.running, True),
        (nights.waiting, True),
        (nights.stuck, True),
        (nights.finished, False),
        (nights.open_circuit, False),
    ],
    ids=["running", "waiting_for_quota", "half_open", "finished", "circuit_open"],
)
def test_run_in_each_state(
    svg: SnapshotAssertion,
    root: Path,
    make: Callable[[Path], Night],
    live: bool,
    size: tuple[int, int],
) -> None:
    """A run is shown as it stands, with its reason."""
    assert look(make(root), size, live=live) == svg


def test_lanes(svg: SnapshotAssertion, root: Path) -> None:
    """A run in lanes has a line for each of them."""
    assert look(nights.in_lanes(root), (120, 40)) == svg


@SIZES
def test_no_run_yet(svg: SnapshotAssertion, root: Path, size: tuple[int, int]) -> None:
    """Without a run the stories are there, and how to start."""
    assert look(Night(root), size, live=False) == svg


@SIZES
def test_corrupt_journal(svg: SnapshotAssertion, root: Path, size: tuple[int, int]) -> None:
    """A journal that cannot be read is told in words, with the way out."""
    night = Night(root)
    night.journal.close()
    night.project.journal.write_bytes(b"not a journal at all")
    assert look(night, size, live=False) == svg


@pytest.mark.parametrize(
    ("keys", "size"),
    [
        pytest.param(("up", "up", "enter"), SMALL, id="story-80x24"),
        pytest.param(("up", "up", "enter"), LARGE, id="story-200x60"),
        pytest.param(("i",), SMALL, id="verdict-80x24"),
        pytest.param(("h", "down", "enter"), LARGE, id="verdict-200x60"),
        pytest.param(("i", "2"), SMALL, id="prompt-80x24"),
        pytest.param(("i", "3"), SMALL, id="transcript-80x24"),
        pytest.param(("h", "down", "down", "down", "enter", "4"), SMALL, id="checks-80x24"),
        pytest.param(("h",), SMALL, id="history-80x24"),
        pytest.param(("h", "right"), SMALL, id="runs-80x24"),
        pytest.param(("question_mark",), SMALL, id="help-80x24"),
    ],
)
def test_detail_views(
    svg: SnapshotAssertion, root: Path, keys: tuple[str, ...], size: tuple[int, int]
) -> None:
    """Each detail view has its own page."""
    assert look(nights.running(root), size, *keys) == svg


@pytest.mark.parametrize("key", ["s", "n", "b"], ids=["stop", "note", "budget"])
def test_dialogs(svg: SnapshotAssertion, root: Path, key: str) -> None:
    """A question is asked above the screen it is about."""
    assert look(nights.running(root), SMALL, key) == svg


def test_light_theme(svg: SnapshotAssertion, root: Path) -> None:
    """The screen is readable on a light background, too."""
    assert look(nights.running(root), (120, 40), dark=False) == svg


def test_ascii_has_nothing_but_ascii(svg: SnapshotAssertion, root: Path) -> None:
    """A terminal with ASCII only gets the same screen in ASCII, whatever titles hold."""
    night = nights.running(root)
    shown = look(night, SMALL, in_ascii=True)
    assert shown.replace("\N{NO-BREAK SPACE}", " ").isascii()
    assert shown == svg


@pytest.mark.parametrize("size", [(100, 60), (60, 30), (30, 10)], ids=lambda size: f"{size[0]}")
def test_other_sizes(svg: SnapshotAssertion, root: Path, size: tuple[int, int]) -> None:
    """Half a screen, a phone, a sliver: each shows what it can."""
    assert look(nights.running(root), size) == svg
