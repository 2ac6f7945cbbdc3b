"""The monitor's application: it draws the newest `Screen` and passes on what a person asks.

One thread polls the source five times a second and posts what is new; a timer redraws what only
the clock moves.  Requests are written by threads of their own.  Widgets are touched here alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import tzinfo
from functools import partial
from itertools import takewhile
from threading import Event
from typing import ClassVar

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, Horizontal, Vertical
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Size
from textual.widgets import Footer, Input, OptionList

from ralphloop.errors import RalphError
from ralphloop.journal.records import RequestStatus, Wish
from ralphloop.project import Project
from ralphloop.text.plain import one_line
from ralphloop.ui import steering
from ralphloop.ui.monitor import pages
from ralphloop.ui.monitor.moments import LOG_KEPT, Facts, LogLine, Source, nothing_known
from ralphloop.ui.monitor.paint import RUNNING, plain_ascii
from ralphloop.ui.monitor.panels import Screen, log_line, story_line
from ralphloop.ui.monitor.screens import Dialog, Load, Panel, Paper, Reading, Rows, Search

POLL_S = 0.2
_PANELS = {
    "now": "",
    "health": "Health",
    "circuit": "Circuit",
    "checks": "Checks",
    "quota": "Quota",
    "learned": "Learnings",
}
_STOP_WORDS = (
    "Stop the run?  The agent is asked to end now; what it did so far stays in the work tree, "
    "and `ralph run --continue` goes on from there."
)


class Monitor(App[None]):
    """One run on one screen."""

    CSS_PATH = "monitor.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "Pause"),
        Binding("s", "stop", "Stop"),
        Binding("n", "note", "Note"),
        Binding("b", "budget", "Budget"),
        Binding("k", "story('skip')", "Skip"),
        Binding("r", "story('retry')", "Retry"),
        Binding("a", "story('set_aside')", "Set aside", show=False),
        Binding("c", "reset", "Reset circuit", show=False),
        Binding("i", "iteration", "Iteration", show=False),
        Binding("h", "history", "History"),
        Binding("slash", "search", "Search"),
        Binding("f", "follow", "Follow", show=False),
        Binding("t", "theme", "Theme", show=False),
        Binding("question_mark", "help", "Help"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", show=False, priority=True),
        Binding("escape", "leave_search", show=False),
    ]

    def __init__(
        self,
        project: Project,
        *,
        run: str | None = None,
        in_ascii: bool = False,
        dark: bool = True,
        zone: tzinfo | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        bare = bool(os.environ.get("NO_COLOR"))
        super().__init__(ansi_color=True if bare else None)
        self.theme = "ansi-dark" if bare else "textual-dark" if dark else "textual-light"
        self.animation_level = "none"
        self.set_class(in_ascii, "-ascii")
        self.project = project
        self.source = Source(project, run=run, clock=clock)
        self.value: Screen | None = None
        self._facts = self._unknown = nothing_known(project)  # until the first look
        self._zone, self._clock = zone, clock
        self._room = Size(80, 24)
        self._ended = Event()
        self._asked: set[int] = set()
        self._pointed = 0  # the story that we marked, not a person
        self._last_told: LogLine | None = None
        self._header = Panel("header")
        self._story_view = Rows("stories", "Stories")
        self._log_view = Paper("log", "Log")
        self._panels = {name: Panel(name, title) for name, title in _PANELS.items()}
        self._panels["actions"] = Panel("actions", newest_last=True)

    def compose(self) -> ComposeResult:
        made, log = self._panels, self._log_view
        yield self._header
        with Horizontal(id="body"):
            yield self._story_view
            with Vertical(id="side"):
                with Vertical(id="working") as working:
                    working.border_title = "Now"
                    yield made["now"]
                    yield made["actions"]
                yield made["health"]
                with Grid(id="small"):
                    yield from (made[name] for name in ("circuit", "checks", "quota", "learned"))
        yield log
        yield Search("search the log; Enter: older, Esc: back", rows=lambda: log, step=-1)
        yield Footer(compact=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the main view mean nothing over another one."""
        return action == "quit" or len(self.screen_stack) <= 1

    def on_mount(self) -> None:
        self._story_view.focus()
        self._watch()
        self.set_interval(1.0, self._draw)

    @work(thread=True)
    def _watch(self) -> None:
        """Read what is new until the monitor ends; drawing is left to the application's thread."""
        while not self._ended.is_set():
            facts = self.source.poll()
            if facts is not None:
                self.call_later(self._fresh, facts)
            if self._asked:
                self._look_for_answers()
            self._ended.wait(POLL_S)
        self.source.close()

    def on_unmount(self) -> None:
        self._ended.set()

    # --- drawing -----------------------------------------------------------------------------

    def _fresh(self, facts: Facts) -> None:
        first, before, self._facts = self.value is None, self._facts, facts
        self._draw()
        if first or before.stories is not facts.stories:
            self._show_stories()
        if first or before.log is not facts.log:
            self._show_log(facts.log)

    def _draw(self) -> None:
        if self._facts is self._unknown:
            return
        before = self.value
        self.value = screen = Screen(self._facts, self._clock(), self._zone)
        self._header.show(tuple(screen.header(self._header.content_size.width)))
        self._panels["now"].set_class(not self._facts.night.is_working, "-idle")
        if before is None or before.facts.trouble != self._facts.trouble:
            self._choose_layout()
        for name, panel in self._panels.items():
            panel.show(tuple(getattr(screen, name)()))

    def on_resize(self, event: Resize) -> None:
        self._room = event.size
        self._choose_layout()
        self.call_after_refresh(self._draw)
        self.call_after_refresh(self._show_stories)

    def _choose_layout(self) -> None:
        """The layout that fits, all of it at once; the style sheet has one for each."""
        width, height = self._room
        fitting = {
            "-tall": height >= 34,
            "-wide": width >= 110 and height >= 34,
            "-half": 72 <= width < 110 and height >= 50,
            "-slim": width < 72,
            "-unreadable": bool(self._facts.trouble),
        }
        self.screen_stack[0].set_classes(" ".join(name for name, fits in fitting.items() if fits))

    def _show_stories(self) -> None:
        rows, view = self._facts.stories, self._story_view
        width = view.scrollable_content_region.width
        view.fill(story_line(row, width) for row in rows)
        note = self.value.stories_note if self.value else ""
        view.border_subtitle = Content(plain_ascii(note) if self.has_class("-ascii") else note)
        if view.highlighted in (None, self._pointed):  # else a person looks at another one
            current = (at for at, row in enumerate(rows) if row.mark == RUNNING)
            view.highlighted = self._pointed = next(current, self._pointed)

    def _show_log(self, log: tuple[LogLine, ...]) -> None:
        """Add what is new; of a very long night the oldest lines are let go now and then."""
        fresh = list(takewhile(lambda entry: entry is not self._last_told, reversed(log)))[::-1]
        self._last_told = log[-1] if log else None
        if len(fresh) == len(log) or self._log_view.option_count > 2 * LOG_KEPT:
            self._log_view.clear_options()
            fresh = list(log)
        self._log_view.extend(log_line(entry, self._zone) for entry in fresh)
        self._tell_follow()

    @on(Paper.Scrolled)
    @on(Input.Submitted, "#find")
    def _tell_follow(self) -> None:
        number = self.query_one(Search).found
        found = f"{number} found, " if number else ""
        follows = "following" if self._log_view.is_at_end else "f follows"
        self._log_view.border_subtitle = found + follows

    # --- views -------------------------------------------------------------------------------

    @on(OptionList.OptionSelected, "#stories")
    def _open_story(self, event: OptionList.OptionSelected) -> None:
        row, night = self._facts.stories[event.option_index], self._facts.night
        look = night.stories[event.option_index]
        load = partial(pages.story_pages, self.project, night.session.run, look)
        self._read(load, f"{row.id} {row.title}")

    def _open_iteration(self, run: str, n: int) -> None:
        """An iteration of a run, or with number 0 all of them."""
        if n:
            self._read(partial(pages.iteration_pages, self.project, run, n), f"Iteration {n}")
        else:
            self._read(partial(pages.history_pages, self.project, run), f"Run {run}")

    def _read(self, load: Load, title: str) -> None:
        name = one_line(title, 100)
        self.push_screen(Reading(load, title=name, follow=self._open_iteration))

    @on(Click, "#working")
    def action_iteration(self) -> None:
        if newest := self._facts.night.newest:
            self._open_iteration(newest.run, newest.n)

    def action_history(self) -> None:
        self._open_iteration(self._facts.night.session.run, 0)

    def action_help(self) -> None:
        self._read(pages.help_pages, "Help")

    def action_theme(self) -> None:
        if not self.no_color:
            self.theme = "textual-light" if self.theme == "textual-dark" else "textual-dark"

    # --- the log -----------------------------------------------------------------------------

    def action_follow(self) -> None:
        self._log_view.follow()

    def action_search(self) -> None:
        self.query_one(Search).begin()

    def action_leave_search(self) -> None:
        if self.query_one(Search).end():
            self._tell_follow()
            self._story_view.focus()

    # --- steering ----------------------------------------------------------------------------

    def action_pause(self) -> None:
        self._ask("resume" if self._facts.night.is_paused else "pause", Wish())

    @work
    async def action_stop(self) -> None:
        if await self._answer(_STOP_WORDS, yes="Stop it"):
            self._ask("stop", Wish())

    @work
    async def action_note(self) -> None:
        words = "A note for the agent; it goes into the next prompt."
        if text := await self._answer(words, hint="use the v2 API"):
            self._ask("note", Wish(text=text))

    @work
    async def action_budget(self) -> None:
        words = "Raise the budget by so much money or time."
        try:
            if text := await self._answer(words, hint="5.00 or 2h"):
                self._ask("budget", steering.budget_of(text))
        except ValueError as error:
            self._tell(f"Not a budget: {error}", bad=True)

    async def _answer(self, question: str, *, hint: str = "", yes: str = "") -> str | None:
        dialog = Dialog(question, hint=hint, yes=yes)
        return await self.push_screen_wait(dialog) if self._is_live() else None

    def action_story(self, kind: str) -> None:
        marked = self._story_view.highlighted
        if marked is not None and self._facts.stories:
            self._ask(kind, Wish(story=self._facts.night.stories[marked].story.id))

    def action_reset(self) -> None:
        if not self._facts.night.is_live:
            self._tell("No run is going on. In a shell: ralph circuit reset")
            return
        self._ask("reset_circuit", Wish())

    def _is_live(self) -> bool:
        live = self._facts.night.run is not None and self._facts.night.is_live
        if not live:
            self._tell("No run is going on; there is nobody to ask.", bad=True)
        return live

    def _ask(self, kind: str, wish: Wish) -> None:
        if self._is_live():
            self._write_request(self._facts.night.session.run, kind, wish)

    @work(thread=True)
    def _write_request(self, run: str, kind: str, wish: Wish) -> None:
        try:
            number = steering.ask(self.project, run, kind, wish, self._clock())
        except RalphError as error:
            self.call_later(self._tell, f"{error.message}. {error.next_step}", bad=True)
            return
        if number is None:
            words = "This run is not going on. ralph run --continue goes on with it"
            self.call_later(self._tell, words, bad=True)
            return
        self._asked.add(number)
        self.call_later(self._tell, f"Asked: {kind.replace('_', ' ')} {wish.story}".rstrip())

    def _look_for_answers(self) -> None:
        try:
            found = steering.settled(self.project, tuple(self._asked))
        except RalphError:
            return  # the journal cannot be read right now, which the screen says
        for request in found:
            self._asked.discard(request.id)
            is_void = request.status is RequestStatus.VOID
            words = "the run ended before it could answer" if is_void else request.answer
            refused = request.status is RequestStatus.REFUSED
            self.call_later(self._tell, f"{request.kind}: {words}", bad=refused)

    def _tell(self, words: str, *, bad: bool = False) -> None:
        self.notify(one_line(words, 300), severity="error" if bad else "information", markup=False)
