"""What a person can do in the monitor: look around, search, and ask things of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from ralphloop.core.breaker import BreakerState
from ralphloop.core.model import Circuit
from ralphloop.journal.queries import CIRCUIT_KEY
from ralphloop.ui.monitor.app import Monitor, budget_flag
from ralphloop.ui.monitor.paint import plain
from tests import sentences
from tests.ui import monitor_nights as nights
from tests.ui.monitor_nights import RUN, Night
from tests.ui.monitor_pilot import header, rest, told, until, watching, words

Steps = Callable[[Monitor, Pilot[None], Night], Awaitable[None]]


def steered(night: Night, steps: Steps, *, live: bool | None = True, **options: Any) -> None:
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
    (("x", "y"), "skip", {"story": "US-004"}),
    (("c", "y"), "reset_circuit", {}),
    (("n", *"use v2", "enter"), "note", {"text": "use v2"}),
    (("b", *"$2.50", "enter"), "budget", {"cost_usd": 2.5}),
    (("b", *"90m", "enter"), "budget", {"time": 5400.0}),
    (("j", "j", "r"), "retry", {"story": "US-006"}),
    (("enter", *"yes", "enter"), "answer", {"story": "US-006", "text": "yes"}),
    (("a", *"no", "enter"), "answer", {"story": "US-006", "text": "no"}),
]


def was_asked(night: Night, *requests: tuple[str, dict[str, Any]]) -> bool:
    """Whether these are the requests in the journal, no more and no less."""
    return night.requests() == list(requests)


def was_told(app: Monitor, beginning: str) -> bool:
    """Whether the person was shown a note that begins so."""
    return any(note.startswith(beginning) for note in told(app))


def test_each_key_is_one_request_in_the_journal(tmp_path: Path) -> None:
    """The run is asked by a row, and the person is told what it answers."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        for keys, kind, payload in KEYS:
            for key in keys:
                await pilot.press("space" if key == " " else key)
                await pilot.pause(0.05)
            await until(pilot, partial(was_asked, night, (kind, payload)))
            await until(pilot, lambda: "asked:" in header(app))
            number = night.journal.pending_requests(RUN)[0].id
            night.journal.answer_request(number, f"heard: {kind}", now=night.clock())
            if kind not in ("stop", "reset_circuit"):  # whose commands do not wait for words
                await until(pilot, partial(was_told, app, f"run {RUN}: heard: {kind}"))

    steered(half_open(tmp_path), steps, live=None)


def test_a_story_that_was_read_late_is_not_previewed(tmp_path: Path) -> None:
    """Another one is marked by then, and its preview stays."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        marked = app.marked()
        late = next(look for look in app._facts.night.stories if look is not marked)
        app._fetch_preview(RUN, late)
        await app.workers.wait_for_complete([it for it in app.workers if it.group == "preview"])
        await rest(app, pilot)
        assert marked is not None
        assert str(app._panels["preview"].border_title) == marked.story.id

    steered(nights.running(tmp_path), steps, size=(120, 40))


def half_open(root: Path) -> Night:
    """A run at work whose circuit is not closed."""
    night = nights.running(root)
    night.journal.set_meta(CIRCUIT_KEY, BreakerState(circuit=Circuit.HALF_OPEN, no_progress=3))
    return night


def test_movement_keys_move_and_change_nothing(tmp_path: Path) -> None:
    """j, k, g and G are movement in every list, as elsewhere."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        marked = []
        for key in ("G", "k", "g", "j"):
            await press(app, pilot, key)
            look = app.marked()
            assert look is not None
            marked.append(look.story.id)
        assert marked == ["US-008", "US-007", "US-001", "US-002"]
        await pilot.pause(0.2)
        assert night.requests() == []

    steered(nights.running(tmp_path), steps)


def test_only_keys_that_can_do_something_are_shown(tmp_path: Path) -> None:
    """The footer follows the marked story and the state of the run."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        running = (await rest(app, pilot))[-1]
        await press(app, pilot, "G", "k", "k")
        waiting = (await rest(app, pilot))[-1]
        assert ("p Pause" in running, "x Skip" in running, "a Answer" in running) == (1, 1, 0)
        assert ("a Answer" in waiting, "r Retry" in waiting, "x Skip" in waiting) == (1, 1, 0)

    steered(nights.running(tmp_path), steps)


def test_after_the_end_the_list_of_what_to_do_has_the_cursor(tmp_path: Path) -> None:
    """The first thing that needs a person is marked, Enter asks for it, keys of a run are gone."""
    night = nights.running(tmp_path)
    night.end("circuit_open", "still no progress after 4 iterations")

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        rows = await rest(app, pilot)
        shown = "\n".join(rows)
        assert shown.index("Answer US-006") < shown.index("ralph run --continue --reset-circuit")
        assert "p Pause" not in rows[-1]
        await press(app, pilot, "enter")
        assert "US-006 asks: Is there a Volapük dictionary?" in await words(app, pilot)
        await press(app, pilot, "escape", "y")
        assert told(app) == ['Copied: ralph answer US-006 "…"']
        assert app.clipboard == 'ralph answer US-006 "…"'

    steered(night, steps, live=False)


def test_a_question_is_answered_without_a_run(tmp_path: Path) -> None:
    """Where no run goes on the answer is written by the command, and what it says is shown."""
    night = nights.running(tmp_path)
    night.end("blocked", "US-006 waits for a person: Is there a Volapük dictionary?")

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "enter", *"yes", "enter")
        await until(pilot, lambda: told(app))
        assert told(app)[0].startswith("US-006"), told(app)
        await until(pilot, lambda: "waits for you" not in str(app._facts.stories))

    steered(night, steps, live=False)


def test_stories_can_be_filtered(tmp_path: Path) -> None:
    """What is typed stays in the list; Enter goes on with it, Esc shows all again."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "slash", *"volap", "enter")
        shown = await words(app, pilot)
        assert "US-006" in shown
        assert "US-001" not in shown
        assert "a Answer" in shown
        await press(app, pilot, "escape")
        assert "US-001" in await words(app, pilot)

    steered(nights.running(tmp_path), steps)


def test_the_chosen_story_is_previewed_where_there_is_room(tmp_path: Path) -> None:
    """Its question, or what failed with the last lines, the last words and the change."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "G", "k", "k")
        assert "asks          Is there a Volapük dictionary?" in await words(app, pilot)
        night.start("US-005")
        failed = nights.FAILED
        night.finish("US-005", claimed=True, reason="pytest -q failed", checks=(failed,))
        await press(app, pilot, "k")
        for text in ("test_decimal_comma", "1 failed, 61 passed", "All tests are green.", "+80 −6"):
            await until(pilot, partial(shows, app, text))

    steered(nights.running(tmp_path), steps, size=(120, 40))


def shows(app: Monitor, text: str) -> bool:
    """Whether the preview has these words."""
    return text in "\n".join(plain(line) for line in app._panels["preview"]._lines)


def test_the_palette_has_what_the_keys_have(tmp_path: Path) -> None:
    """Whoever forgets a key finds its command."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert {"Pause (p)", "Report (o)", "Theme"} <= set(titles)
        assert "Answer (a)" not in titles

    steered(nights.running(tmp_path), steps)


def test_a_request_the_run_did_not_live_to_answer_is_told(tmp_path: Path) -> None:
    """An end voids what was asked, and says so."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await pilot.press("p")
        await until(pilot, night.requests)
        night.end("interrupted", "a person stopped the run")
        await until(pilot, lambda: f"run {RUN} ended before it could answer" in told(app))
        await until(pilot, lambda: "STOPPED" in header(app))

    steered(nights.running(tmp_path), steps, live=None)


def test_a_paused_run_is_resumed_by_the_same_key(tmp_path: Path) -> None:
    """One key for both, by how the run stands."""
    night = nights.running(tmp_path)
    night.journal.set_meta(f"desk:{RUN}", {"paused": "paused by a person"})

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await pilot.press("p")
        await until(pilot, night.requests)
        assert night.requests() == [("resume", {})]

    steered(night, steps, live=None)


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
        assert sentences.GO_ON in await words(app, pilot)
        assert night.requests() == []
        assert await pilot.click("#yes")
        await until(pilot, night.requests)
        assert night.requests() == [("stop", {})]

    steered(nights.running(tmp_path), steps, live=None)


def test_without_a_run_nothing_is_asked_of_it(tmp_path: Path) -> None:
    """Keys that only a run could obey do nothing."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "p", "s", "c", "x", "r", "a")
        assert (len(app.screen_stack), told(app), night.requests()) == (1, [], [])

    steered(nights.finished(tmp_path), steps, live=False)


def test_steering_keys_mean_nothing_in_other_views(tmp_path: Path) -> None:
    """Whoever reads a transcript does not skip a story by a slip of the finger."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "i", "x", "p", "a", "c")
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
        await press(app, pilot, "tab", "slash", *"passed", "enter")
        first = await words(app, pilot)
        assert "US-003 passed (checked)" in first
        assert "found, f follows" in first
        await press(app, pilot, "enter", "enter")
        assert "US-002 passed (verified)" in await words(app, pilot)
        await press(app, pilot, "escape")
        assert "following" in await words(app, pilot)

    steered(nights.running(tmp_path), steps)


def test_a_search_without_a_match_says_so(tmp_path: Path) -> None:
    """Nothing moves and nothing crashes."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "tab", "slash", *"zebra", "enter")
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
        assert "US-006 asks: Is there a Volapük dictionary?" in await words(app, pilot)
        await press(app, pilot, "escape", "space")
        assert "Translate the manual into Volapük" in await words(app, pilot)
        await press(app, pilot, "escape", "r")
        await until(pilot, partial(was_asked, night, ("retry", {"story": "US-006"})))

    steered(nights.running(tmp_path), steps, live=None)


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
        assert "the agent does not say that all is done" in shown
        await press(app, pilot, "escape", "escape")
        assert len(app.screen_stack) == 1

    steered(nights.running(tmp_path), steps, size=(100, 40))


def test_earlier_runs_are_in_the_history(tmp_path: Path) -> None:
    """From the list of runs to the iterations of one of them."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "h", "right")
        assert "all done" in await words(app, pilot)
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
        budget_flag(text)


def test_a_wrong_budget_is_told(tmp_path: Path) -> None:
    """The person learns what is wrong where they typed it, and can correct it."""

    async def steps(app: Monitor, pilot: Pilot[None], night: Night) -> None:
        await press(app, pilot, "b", *"lots", "enter")
        shown = await words(app, pilot)
        assert "Not so: not a duration" in shown
        assert "lots" in shown
        assert night.requests() == []
        await press(app, pilot, *["backspace"] * 4, *"2h", "enter")
        await until(pilot, partial(was_asked, night, ("budget", {"time": 7200.0})))

    steered(nights.running(tmp_path), steps, live=None)
