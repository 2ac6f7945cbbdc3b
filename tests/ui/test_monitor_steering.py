"""What a person can do in the monitor: look around, search, and ask things of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from ralphloop.ui.monitor.app import Monitor
from ralphloop.ui.steering import budget_of
from tests.ui import monitor_nights as nights
from tests.ui.monitor_nights import RUN, Night
from tests.ui.monitor_pilot import header, rest, told, until, watching, words

Steps = Callable[[Monitor, Pilot[None], Night], Awaitable[None]]


def steered(night: Night, steps: Steps, *, live: bool = True, **options: Any) -> None:
    """Run the monitor beside a night and take these steps in it."""

    async def watch() -> None:
        async with watching(night, live=live, **options) as (app, pilot):
            await steps(app, pilot, night)

    asyncio.run(watch())


async def press(app: Monitor, pilot: Pilot[None], *keys: str) -> None:
    """Press keys, each once the last one has taken effect."""
    for key in keys:
        await pilot.press(key)
        await rest(app, pilot)


KEYS: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    (("p",), "pause", {}),
    (("s", "y"), "stop", {}),
    (("k",), "skip", {"story": "US-004"}),
    (("a",), "set_aside", {"story": "US-004"}),
    (("c",), "reset_circuit", {}),
    (("n", *"use v2", "enter"), "note", {"text": "use v2"}),
    (("b", *"$2.50", "enter"), "budget", {"cost_usd": 2.5}),
    (("b", *"90m", "enter"), "budget", {"time": 5400.0}),
    (("up", "up", "r"), "retry", {"story": "US-002"}),
]


def was_asked(night: Night, *requests: tuple[str, dict[str, Any]]) -> bool:
    """Whether these are the requests in the journal, no more and no less."""
    return night.requests() == list(requests)


def was_told(app: Monitor, beginning: str) -> bool:
    """Whether the person was shown a note that begins so."""
    return any(note.startswith(beginning) for note in told(app))


def test_each_key_is_one_request_in_the_journal(tmp_path: Path) -> None:
    """The run is asked by a row, and the person is told that it was."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        wanted: list[tuple[str, dict[str, Any]]] = []
        for keys, kind, payload in KEYS:
            wanted.append((kind, payload))
            for key in keys:
                await pilot.press("space" if key == " " else key)
                await pilot.pause(0.05)
            await until(pilot, partial(was_asked, night, *wanted))
            await until(pilot, partial(was_told, app, f"Asked: {kind.replace('_', ' ')}"))
        await until(pilot, lambda: "asked:" in header(app))

    steered(nights.running(tmp_path), steps)


def test_the_answer_is_shown(tmp_path: Path) -> None:
    """What the loop answers reaches the person who asked."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await pilot.press("p")
        await until(pilot, night.requests)
        number = night.journal.pending_requests(RUN)[0].id
        await until(pilot, lambda: app._asked)
        night.journal.answer_request(number, "pausing after this iteration", now=night.clock())
        await until(pilot, lambda: "pause: pausing after this iteration" in told(app))
        assert "asked:" not in header(app)

    steered(nights.running(tmp_path), steps)


def test_a_request_the_run_did_not_live_to_answer_is_told(tmp_path: Path) -> None:
    """An end voids what was asked, and says so."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await pilot.press("p")
        await until(pilot, lambda: app._asked)
        night.end("interrupted", "a person stopped the run")
        await until(pilot, lambda: "pause: the run ended before it could answer" in told(app))
        await until(pilot, lambda: "STOPPED" in header(app))

    steered(nights.running(tmp_path), steps)


def test_a_paused_run_is_resumed_by_the_same_key(tmp_path: Path) -> None:
    """One key for both, by how the run stands."""
    night = nights.running(tmp_path)
    night.journal.set_meta(f"desk:{RUN}", {"paused": "paused by a person"})

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await pilot.press("p")
        await until(pilot, night.requests)
        assert night.requests() == [("resume", {})]

    steered(night, steps)


def test_a_dialog_that_is_left_asks_nothing(tmp_path: Path) -> None:
    """No, Esc and an empty line change nothing."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        for keys in (("s", "n"), ("s", "escape"), ("n", "escape"), ("b", "enter")):
            await press(app, pilot, *keys)
            await pilot.pause(0.1)
            assert (night.requests(), len(app.screen_stack)) == ([], 1), keys

    steered(nights.running(tmp_path), steps)


def test_stop_asks_before_it_stops(tmp_path: Path) -> None:
    """The question says what becomes of the work."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "s")
        assert "ralph run --continue" in await words(app, pilot)
        assert night.requests() == []
        assert await pilot.click("#yes")
        await until(pilot, night.requests)
        assert night.requests() == [("stop", {})]

    steered(nights.running(tmp_path), steps)


@pytest.mark.parametrize("key", ["p", "s", "n", "b", "k", "r", "c"])
def test_without_a_run_nothing_is_asked(tmp_path: Path, key: str) -> None:
    """There is nobody to ask, and that is said."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, key)
        await until(pilot, lambda: told(app))
        assert told(app)[0].startswith("No run is going on")
        assert night.requests() == []

    steered(nights.finished(tmp_path), steps, live=False)


def test_steering_keys_mean_nothing_in_other_views(tmp_path: Path) -> None:
    """Whoever reads a transcript does not skip a story by a slip of the finger."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "i", "k", "p", "a", "c")
        await pilot.pause(0.3)
        assert night.requests() == []

    steered(nights.running(tmp_path), steps)


def test_a_write_is_on_the_screen_at_once(tmp_path: Path) -> None:
    """What the loop writes is shown without a key pressed."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        night.acts("Read docs/api.md", every=0.0)
        await until(
            pilot, lambda: app.value and app.value.facts.log[-1].text == "  Read docs/api.md"
        )
        assert "Read docs/api.md" in await words(app, pilot)

    steered(nights.running(tmp_path), steps)


def test_the_log_follows_until_a_person_looks_back(tmp_path: Path) -> None:
    """Scrolling up stops it, f starts it again."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "tab", "pageup")
        night.acts("Read later.md", every=0.0)
        await until(pilot, lambda: app.value and "later" in app.value.facts.log[-1].text)
        shown = await words(app, pilot)
        assert "f follows" in shown
        assert "Read later.md" not in shown.split("Log")[1]
        await press(app, pilot, "f")
        assert "Read later.md" in (await words(app, pilot)).split("Log")[1]

    steered(nights.running(tmp_path), steps)


def test_the_log_can_be_searched(tmp_path: Path) -> None:
    """Enter finds the next older line, the count is shown, Esc ends it."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "slash", *"passed", "enter")
        first = await words(app, pilot)
        assert "US-003 passed (checked)" in first
        assert "found, f follows" in first
        await press(app, pilot, "enter", "enter")
        assert "US-002 passed (verified)" in await words(app, pilot)
        await press(app, pilot, "escape")
        assert "found" not in await words(app, pilot)

    steered(nights.running(tmp_path), steps)


def test_a_search_without_a_match_says_so(tmp_path: Path) -> None:
    """Nothing moves and nothing crashes."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "slash", *"zebra", "enter")
        assert "not found" in told(app)

    steered(nights.running(tmp_path), steps)


def test_a_page_can_be_searched(tmp_path: Path) -> None:
    """Prompts and transcripts are long."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "i", "2", "slash", *"nothing else", "enter")
        assert "not found" not in " ".join(told(app))
        assert "on nothing else" in await words(app, pilot)
        await press(app, pilot, "escape", "escape")
        assert len(app.screen_stack) == 1

    steered(nights.running(tmp_path), steps)


def test_the_mouse_opens_a_story(tmp_path: Path) -> None:
    """A click marks a story and opens it; back again, it is the one that is steered."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await pilot.click("#stories", offset=(8, 6))
        await until(pilot, lambda: len(app.screen_stack) == 2)
        assert "Translate the manual into Volapük" in await words(app, pilot)
        assert "Is there a Volapük dictionary?" in await words(app, pilot)
        await press(app, pilot, "escape", "r")
        await until(pilot, partial(was_asked, night, ("retry", {"story": "US-006"})))

    steered(nights.running(tmp_path), steps)


def test_a_click_on_the_current_iteration_opens_it(tmp_path: Path) -> None:
    """The panel leads to its details."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await pilot.click("#working", offset=(5, 2))
        await until(pilot, lambda: len(app.screen_stack) == 2)
        assert "Iteration 5 on US-004, attempt 2" in await words(app, pilot)

    steered(nights.running(tmp_path), steps)


def test_from_a_story_to_its_iteration_and_back(tmp_path: Path) -> None:
    """Enter on an attempt opens it with its evidence and its reasons."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "up", "up", "enter")
        story = await words(app, pilot)
        assert "there is a test for it" in story
        await press(app, pilot, "enter")
        await until(pilot, lambda: len(app.screen_stack) == 3)
        shown = await words(app, pilot)
        assert "Iteration 3 on US-002" in shown
        assert "the agent set EXIT_SIGNAL false" in shown
        await press(app, pilot, "escape", "escape")
        assert len(app.screen_stack) == 1

    steered(nights.running(tmp_path), steps, size=(100, 40))


def test_earlier_runs_are_in_the_history(tmp_path: Path) -> None:
    """From the list of runs to the iterations of one of them."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "h", "right")
        assert "project_complete" in await words(app, pilot)
        await press(app, pilot, "enter")
        await until(pilot, lambda: len(app.screen_stack) == 3)
        assert "US-008" in await words(app, pilot)

    steered(nights.finished(tmp_path), steps, live=False)


def test_resizing_changes_the_layout_and_loses_nothing(tmp_path: Path) -> None:
    """From small to large and back, with a person watching."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        assert "Health" in await words(app, pilot)
        await pilot.resize_terminal(160, 50)
        large = await words(app, pilot)
        assert "Health" not in large
        assert "Circuit" in large
        assert "Learnings" in large
        await pilot.resize_terminal(20, 5)
        await rest(app, pilot)
        await pilot.resize_terminal(80, 24)
        assert "Health" in await words(app, pilot)

    steered(nights.running(tmp_path), steps)


def test_no_color_means_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR not one colour reaches the terminal, and the cursor is still seen."""
    monkeypatch.setenv("NO_COLOR", "1")

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await rest(app, pilot)
        background = app.screen.styles.background
        strips = [
            strip.apply_filter(colour, background)
            for strip in app.screen._compositor.render_strips()
            for colour in app._filters
            if type(colour).__name__ == "NoColor"
        ]
        styles = [segment.style for strip in strips for segment in strip if segment.style]
        assert styles
        assert all(style.color is None or style.color.is_default for style in styles)
        assert all(style.bgcolor is None or style.bgcolor.is_default for style in styles)
        assert any(style.reverse for style in styles)

    steered(nights.running(tmp_path), steps)


@pytest.mark.parametrize("text", ["", "nothing", "-5", "0", "1e9", "inf", "nan", "0s", "2 hours"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    """A slip of the finger must not open the purse."""
    with pytest.raises(ValueError):
        budget_of(text)


def test_a_wrong_budget_is_told(tmp_path: Path) -> None:
    """The person learns what is wrong, and nothing is asked."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "b", *"lots", "enter")
        await until(pilot, lambda: told(app))
        assert told(app)[0].startswith("Not a budget: not a duration")
        assert night.requests() == []

    steered(nights.running(tmp_path), steps)
