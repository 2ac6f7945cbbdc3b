"""What a person asks of a run from the monitor, and how the answer comes back.

While a run goes on a wish is a row in its journal; where none does, the command of that name does
it.  What changes a run asks first, or can be taken back with another key.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from textual import work
from textual.app import App, SuspendNotSupported

from ralphloop.errors import RalphError
from ralphloop.journal.records import RequestStatus, Wish
from ralphloop.night.values import StoryLook
from ralphloop.proc.run import ourselves, run_in_front
from ralphloop.project import Project
from ralphloop.text.plain import one_line
from ralphloop.ui import steering
from ralphloop.ui.monitor.moments import Facts, nothing_known
from ralphloop.ui.monitor.screens import Dialog

_STOP_WORDS = (
    "Stop the run?  The agent is asked to end now; what it did so far stays in the work tree, "
    "and `ralph run --continue` goes on from there."
)


class Wishing(App[None]):
    """The part of the monitor that asks."""

    def __init__(self, project: Project, clock: Callable[[], float], **options: Any) -> None:
        super().__init__(**options)
        self.project, self._clock = project, clock
        self._facts: Facts = nothing_known(project)  # until the first look
        self._asked: set[int] = set()

    def _marked(self) -> StoryLook | None:
        """The story that is marked."""
        raise NotImplementedError

    def action_pause(self) -> None:
        self._ask("resume" if self._facts.night.is_paused else "pause", Wish())

    @work
    async def action_stop(self) -> None:
        if await self._asked_dialog(_STOP_WORDS, yes="Stop it"):
            self._ask("stop", Wish())

    @work
    async def action_note(self) -> None:
        words = "A note for the agent; it goes into the next prompt."
        if text := await self._asked_dialog(words, hint="use the v2 API"):
            self._ask("note", Wish(text=text))

    @work
    async def action_budget(self) -> None:
        words, check = "Raise the budget by so much money or time.", steering.budget_of
        if text := await self._asked_dialog(words, hint="5.00 or 2h", check=check):
            self._ask("budget", check(text))

    def action_answer(self) -> None:
        if (marked := self._marked()) is not None:
            self._answer_story(marked.story.id)

    @work
    async def _answer_story(self, story: str) -> None:
        looks = (look for look in self._facts.night.stories if look.story.id == story)
        asks = one_line(next((look.state.reason for look in looks), ""), 1_000)
        words = f"{one_line(story, 60)} asks: {asks or 'nothing in words'}"
        if text := await self._asked_dialog(words, hint="your answer, for its next prompt"):
            self._ask("answer", Wish(story=story, text=text))

    @work
    async def action_skip(self) -> None:
        if (marked := self._marked()) is None:
            return
        words = f"Skip {one_line(marked.story.id, 60)} for now?  r takes it up again."
        if await self._asked_dialog(words, yes="Skip it"):
            self._ask("skip", Wish(story=marked.story.id))

    def action_retry(self) -> None:
        if (marked := self._marked()) is not None:
            self._ask("retry", Wish(story=marked.story.id))

    @work
    async def action_reset(self) -> None:
        words = f"Close the circuit?  It is {self._facts.night.circuit.circuit}, look at why first."
        if await self._asked_dialog(words, yes="Close it"):
            self._ask("reset_circuit", Wish())

    async def _asked_dialog(
        self, words: str, *, hint: str = "", yes: str = "", check: Callable[[str], object] = str
    ) -> str | None:
        return await self.push_screen_wait(Dialog(words, hint=hint, yes=yes, check=check))

    def _ask(self, kind: str, wish: Wish) -> None:
        if self._facts.night.is_live:
            self._write_request(self._facts.night.session.run, kind, wish)
        else:
            self._do_between(kind, wish)

    @work(thread=True)
    def _do_between(self, kind: str, wish: Wish) -> None:
        went_well, words = steering.do_between(self.project, kind, wish)
        self.call_later(self._tell, words, bad=not went_well)

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

    def _in_front(self, program: str, *arguments: str) -> None:
        """A command in this terminal, then the monitor again."""
        argv = [*(ourselves() if program == "ralph" else (program,)), *arguments]
        try:
            with self.suspend():
                run_in_front(argv, cwd=self.project.root)
                input("\nEnter goes back to the monitor ")
        except (SuspendNotSupported, EOFError):
            self._tell(f"In a shell: {shlex.join([program, *arguments])}")
