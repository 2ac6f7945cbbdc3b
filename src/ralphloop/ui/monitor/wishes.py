"""What a person asks of a run from the monitor: each wish is the command of that name.

The command knows whether a run goes on and waits for its answer, which is shown; so there is one
way of doing each thing.  What changes a run asks first, or can be taken back with another key.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from threading import Event
from typing import Any, NamedTuple

from textual import work
from textual.app import App, SuspendNotSupported

from ralphloop.night.values import StoryLook
from ralphloop.proc.run import ourselves, run_command, run_in_front
from ralphloop.project import Project
from ralphloop.text.plain import one_line
from ralphloop.ui.monitor.moments import Facts, nothing_known
from ralphloop.ui.monitor.screens import Dialog
from ralphloop.ui.steering import budget_flag


class _Question(NamedTuple):
    words: str
    hint: str = ""  # for a line of text
    yes: str = ""  # for a yes
    check: Callable[[str], object] = str


_QUESTIONS = {
    "stop": _Question(
        "Stop the run?  The agent is asked to end now; what it did so far stays in the work tree,"
        " and `ralph run --continue` goes on from there.",
        yes="Stop it",
    ),
    "note": _Question("A note for the agent; it goes into the next prompt.", "use the v2 API"),
    "budget": _Question(
        "Raise the budget by so much money or time.", "5.00 or 2h", check=budget_flag
    ),
    "answer": _Question("{story} asks: {asks}", "your answer, for its next prompt"),
    "skip": _Question("Skip {story} for now?  r takes it up again.", yes="Skip it"),
    "circuit reset": _Question("Close the circuit?  Look at why first.", yes="Close it"),
}


class Wishing(App[None]):
    """The part of the monitor that asks."""

    def __init__(self, project: Project, clock: Callable[[], float], **options: Any) -> None:
        super().__init__(**options)
        self.project, self._clock = project, clock
        self._facts: Facts = nothing_known(project)  # until the first look
        self._ended = Event()

    def marked(self) -> StoryLook | None:
        """The story that is marked."""
        raise NotImplementedError

    @work
    async def action_wish(self, kind: str, story: str = "") -> None:
        """Ask the person what has to be asked, then do it."""
        marked, question, said = self.marked(), _QUESTIONS.get(kind), []
        looks = [look for look in self._facts.night.stories if look.story.id == story]
        look = looks[0] if looks else marked
        if kind in ("answer", "skip", "retry") and look is not None:
            said = [look.story.id]
        if question is not None:
            asks = one_line(look.state.reason, 1_000) if look else ""
            words = question.words.format(story=one_line("".join(said), 60), asks=asks)
            dialog = Dialog(words, hint=question.hint, yes=question.yes, check=question.check)
            if not (text := await self.push_screen_wait(dialog)):
                return
            said += [text] if question.hint else []
        if kind == "budget":
            kind, said = f"budget {budget_flag(said[0])}", []
        self._do(*kind.split(), *(["--", *said] if said else []))

    @work(thread=True)
    def _do(self, *arguments: str) -> None:
        argv, over = (*ourselves(), *arguments), self._ended.is_set
        done = run_command(argv, cwd=self.project.root, stop=over)
        self.call_later(self.tell, done.said, bad=done.returncode != 0)

    def tell(self, words: str, *, bad: bool = False) -> None:
        """Show a note."""
        self.notify(one_line(words, 300), severity="error" if bad else "information", markup=False)

    def in_front(self, program: str, *arguments: str) -> None:
        """A command in this terminal, then the monitor again."""
        argv = [*(ourselves() if program == "ralph" else (program,)), *arguments]
        try:
            with self.suspend():
                run_in_front(argv, cwd=self.project.root)
                input("\nEnter goes back to the monitor ")
        except (SuspendNotSupported, EOFError):
            self.tell(f"In a shell: {shlex.join([program, *arguments])}")
