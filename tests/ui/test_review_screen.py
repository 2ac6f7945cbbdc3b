"""The review's screen: what it looks like, and what each key does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.image import SVGImageSnapshotExtension
from textual.pilot import Pilot

from ralphloop.ui.review.review_app import ReviewApp, Reviewed
from tests.ui import review_nights as nights
from tests.ui.monitor_pilot import NOISE, rest, until
from tests.ui.review_nights import Noted

SIZES = pytest.mark.parametrize(
    "size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"]
)


@pytest.fixture
def svg(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Pictures, one file each."""
    return snapshot.use_extension(SVGImageSnapshotExtension)


@asynccontextmanager
async def reviewing(
    deeds: Noted, size: tuple[int, int] = (80, 24), **options: Any
) -> AsyncIterator[tuple[ReviewApp, Pilot[Reviewed]]]:
    """The review of a night, at rest."""
    app = ReviewApp(nights.night(), title="shop", read=nights.read, deeds=deeds, **options)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: all(it.review for it in app._items if it.entry))
        await rest(app, pilot)
        yield app, pilot


def pictured(size: tuple[int, int], *keys: str, **options: Any) -> str:
    """The screen's picture after these keys."""

    async def look() -> str:
        async with reviewing(Noted(), size, **options) as (app, pilot):
            for key in keys:
                await pilot.press(key)
            await rest(app, pilot)
            app.clear_notifications()
            await rest(app, pilot)
            shown = app.export_screenshot(title="ralph review", simplify=True)
            for pattern, instead in NOISE:
                shown = pattern.sub(instead, shown)
            return re.sub(r"terminal-\d+", "t", shown)

    return asyncio.run(look())


def pressed(deeds: Noted, *keys: str, then: Callable[[ReviewApp], object] | None = None) -> str:
    """The words on the screen after these keys, each done before the next."""

    async def press() -> str:
        async with reviewing(deeds) as (app, pilot):
            for key in keys:
                await pilot.press(key)
                if deeds.may_go.is_set():
                    await until(pilot, lambda: not app._pending or len(app.screen_stack) > 1)
            rows = await rest(app, pilot)
            if then is not None:
                then(app)
            return "\n".join(rows)

    return asyncio.run(press())


@SIZES
def test_a_story_that_needs_review(
    svg: SnapshotAssertion, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claim and evidence side by side where there is room, else one below the other."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert pictured(size) == svg


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_all_that_was_found_out(
    svg: SnapshotAssertion, theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`o` shows what ran and what else was seen, on dark and on light ground."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert pictured((120, 40), "o", dark=theme == "dark") == svg


def test_accept_goes_on_and_undo_comes_back() -> None:
    """The next story is shown; taken back, the first one is in hand again."""
    deeds = Noted()
    shown = pressed(deeds, "a")
    assert "US-001: Greet a person by name" in shown
    shown = pressed(deeds, "a", "u")
    assert "US-005: Take percents off a total" in shown
    assert deeds.done == ["accept US-005", "accept US-005", "take back US-005"]


def test_a_story_is_sent_back_with_words() -> None:
    """They are typed below the story; Enter sends it back, and the next one is shown."""
    deeds = Noted()
    shown = pressed(deeds, "r", *"no", "enter")
    assert deeds.done == ["send back US-005: no"]
    assert "US-001: Greet" in shown
    shown = pressed(deeds, "r", *"no", "enter", "u")
    assert "US-005: Take percents off a total" in shown
    assert "sent back" not in shown
    assert deeds.done[1:] == ["send back US-005: no", "take back US-005"]


def test_words_are_kept_where_something_goes_wrong() -> None:
    """The error stands with the story, which waits again, and `r` offers the words."""
    deeds = Noted(problem="shop.py has changes of yours")
    shown = pressed(deeds, "r", *"slow", "enter", "p")
    assert "shop.py has changes of yours" in shown
    shown = pressed(deeds, "r", *"slow", "enter", "p", "r")
    assert "slow" in shown


def test_a_person_goes_on_while_checks_run() -> None:
    """What takes long does not hold the screen; it is told that it goes on."""
    deeds = Noted()
    deeds.may_go.clear()
    shown = pressed(deeds, "r", *"no", "enter", then=lambda _: deeds.may_go.set())
    assert "US-001: Greet" in shown
    assert "1 decision is being carried out" in shown


def test_what_stands_on_it_is_asked_about() -> None:
    """Kept, nothing is sent back and the story waits as before."""
    deeds = Noted(in_the_way=("US-005 cannot be taken out without what stands on it:", "US-9"))
    shown = pressed(deeds, "r", *"no", "enter")
    assert "cannot be taken out" in shown
    pressed(deeds, "r", *"no", "enter", "k")
    assert deeds.done[-1] == "keep US-005"


def test_a_question_a_skip_and_a_proposal() -> None:
    """`?` asks, `s` goes on without a word, `a` makes a story of a proposal, `d` drops one."""
    deeds = Noted()
    pressed(deeds, "question_mark", *"why", "enter", "s", "s", "a", "enter")
    assert deeds.done[0] == "ask US-005: why"
    assert deeds.done[1].startswith("make F-1: What is described is put right")
    pressed(deeds, "n", "n", "n", "d")
    assert deeds.done[-1] == "drop F-1"


def test_files_alone_and_the_whole_change() -> None:
    """`f` folds the change to its files and counts their marks."""
    shown = pressed(Noted(), "f", "end")
    assert "2 marks" not in shown
    assert "1 mark" in shown
    assert "abs(money" not in shown
