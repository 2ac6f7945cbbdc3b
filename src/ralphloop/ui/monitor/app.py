"""The monitor's application: it draws the newest `Screen` and passes on what a person asks.

One thread polls the source five times a second.  Widgets are touched here alone.  Each wish is the
command of that name, run by a thread of its own, so there is one way of doing each thing.  What
changes a run asks first, or can be taken back with another key.
"""

import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult, SuspendNotSupported, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Grid, Horizontal, Vertical
from textual.events import Click, DescendantFocus, Resize
from textual.geometry import Size
from textual.screen import Screen as TextualScreen
from textual.widgets import Footer, Input, OptionList
from textual.worker import get_current_worker

from ralphloop.core.model import Circuit
from ralphloop.core.run_state import Standing
from ralphloop.errors import RalphError
from ralphloop.night.values import Advice, StoryLook
from ralphloop.proc import programs
from ralphloop.proc.run import ourselves, run_command, run_in_front
from ralphloop.project import Project
from ralphloop.text.durations import parse_duration
from ralphloop.text.plain import one_line
from ralphloop.ui.monitor import pages, screens
from ralphloop.ui.monitor.moments import LOG_KEPT, Facts, Source, nothing_known
from ralphloop.ui.monitor.paint import RUNNING, line
from ralphloop.ui.monitor.panels import Screen, log_line, story_lines
from ralphloop.ui.monitor.screens import (
    Dialog,
    Field,
    PageScreen,
    Panel,
    Paper,
    Question,
    Rows,
    Search,
)
from ralphloop.ui.monitor.terminal_app import TerminalApp


def budget_flag(text: str) -> str:
    """`$2.50` or `5` dollars, `2h` of time, `9000 tokens`; ValueError says what is wrong."""
    words = text.strip().removeprefix("+").strip()
    if words.endswith("tokens") and (tokens := int(words.removesuffix("tokens"))) > 0:
        return f"--tokens={tokens}"
    try:
        dollars = float(words.removeprefix("$"))
    except ValueError:
        if (seconds := parse_duration(words)) <= 0:
            raise ValueError("nothing to add") from None
        return f"--time={seconds:.0f}s"
    if not 0 < dollars < 1e6:
        raise ValueError("an amount above zero is needed")
    return f"--cost={dollars}"


POLL_S = 0.2
_PANELS = {
    "now": "",
    "health": "Health",
    "circuit": "Circuit",
    "checks": "Checks",
    "quota": "Quota",
    "learned": "Learnings",
}

_QUESTIONS = {
    "stop": Question(
        "Stop the run?  The agent is asked to end now; what it did so far stays in the work tree,"
        " and `ralph run --continue` goes on from there.",
        yes="Stop it",
    ),
    "note": Question("A note for the agent; it goes into the next prompt.", "use the v2 API"),
    "budget": Question(
        "Raise the budget by so much money or time.", "5.00 or 2h", read=budget_flag
    ),
    "answer": Question("{story} asks: {asks}", "your answer, for its next prompt"),
    "skip": Question("Skip {story} for now?  r takes it up again.", yes="Skip it"),
    "circuit reset": Question("Close the circuit?  Look at why first.", yes="Close it"),
}
_KEYS_OF = {
    Standing.OPEN: ("skip",),
    Standing.SET_ASIDE: ("retry",),
    Standing.BLOCKED: ("answer", "retry"),
    Standing.PASSED: (),
}
_SOMETIMES = ("wish", "report", "copy", "iteration", "history", "open")


class Monitor(TerminalApp[None]):
    CSS_PATH = "monitor.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [  # the footer cuts the last ones where it is narrow
        Binding("question_mark", "help", "Help"),
        Binding("q", "quit", "Quit", tooltip="the run goes on"),
        Binding("a", "wish('answer')", "Answer"),
        Binding("p", "wish('pause')", "Pause", tooltip="after this iteration"),
        Binding("p", "wish('resume')", "Go on"),
        Binding("s", "wish('stop')", "Stop", tooltip="gently; asks first"),
        Binding("n", "wish('note')", "Note", tooltip="for the next prompt"),
        Binding("b", "wish('budget')", "Budget", tooltip="more money or time"),
        Binding("x", "wish('skip')", "Skip", tooltip="set it aside for now; asks first"),
        Binding("r", "wish('retry')", "Retry", tooltip="open it again"),
        Binding("c", "wish('circuit reset')", "Reset circuit", tooltip="asks first"),
        Binding("o", "report", "Report"),
        Binding("y", "copy", "Copy", tooltip="the command of the marked line"),
        Binding("slash", "search", "Filter", tooltip="stories; in the log: search"),
        Binding("i", "iteration", "Iteration", tooltip="verdict, prompt, transcript, checks"),
        Binding("h", "history", "History"),
        Binding("space", "open", "Open", tooltip="the marked story"),
        Binding("f", "follow", "Follow", show=False),
        Binding("t", "theme", "Theme", show=False),
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
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(in_ascii=in_ascii, dark=dark)
        self.title = f"ralph: {project.root.name}"
        self.project = project
        self._clock = clock
        self.source = Source(project, run=run, clock=clock)
        self.value: Screen | None = None
        self._facts = self._unknown = nothing_known(project)  # until the first look
        self._room = Size(80, 24)
        self._pointed = 0  # the story that we marked, not a person
        self._listed: list[int] = []  # which stories are shown
        self._shown_steps: tuple[Advice, ...] = ()
        self._can = set[str]()
        self._previewed: StoryLook | None = None
        self._header = Panel("header", resized=self._draw_all)
        self._todo_view = Rows("todo", "What to do")
        self._story_view = Rows("stories", "Stories")
        self._filter = Field("filter by name or standing; Enter: done, Esc: all", name="filter")
        self._log_view = Paper("log", "Log")
        self._panels = {name: Panel(name, title) for name, title in _PANELS.items()}
        self._panels["actions"] = Panel("actions", newest_last=True)
        self._panels["preview"] = Panel("preview")

    def compose(self) -> ComposeResult:
        made = self._panels
        log = self._log_view
        yield self._header
        yield self._todo_view
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield self._story_view
                yield self._filter
                yield made["preview"]
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
        yield Footer(compact=True, show_command_palette=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that can do nothing now are not there; those of the main view only in it."""
        if action in ("quit", "command_palette"):
            return True
        name = str(parameters[0]) if action == "wish" else action
        return len(self.screen_stack) <= 1 and (action not in _SOMETIMES or name in self._can)

    def get_system_commands(self, screen: TextualScreen[Any]) -> Iterable[SystemCommand]:
        """All that has a key, and what the toolkit brings."""
        yield from super().get_system_commands(screen)
        for bound in screen.active_bindings.values():
            key = bound.binding
            if bound.node is self and bound.enabled and key.description:
                run = partial(self.run_action, key.action)
                yield SystemCommand(f"{key.description} ({key.key[:5]})", key.tooltip, run)

    def marked(self) -> StoryLook | None:
        """The story of the line that is marked; None where none is."""
        at = self._story_view.highlighted
        if at is None or at >= len(self._listed) or not self._facts.stories:
            return None
        return self._facts.night.stories[self._listed[at]]

    def _step(self) -> Advice | None:
        """The advice of the line that is marked; None where none is."""
        at = self._todo_view.highlighted if self._todo_view.has_focus else None
        if at is None or at >= len(self._shown_steps):
            return None
        return self._shown_steps[at]

    def _command(self) -> str:
        """What the marked line would have a person type; empty where it is nothing."""
        step = self._step()
        marked = self.marked()
        if step is not None or marked is None:
            return step.command if step else ""
        asked = f'ralph answer {shlex.quote(marked.story.id)} "…"'
        return asked if marked.standing is Standing.BLOCKED else marked.bring_back

    @on(OptionList.OptionHighlighted)
    @on(DescendantFocus)
    def _look_anew(self) -> None:
        """What follows from the line that is marked: what can be done, and the preview."""
        night = self._facts.night
        step = self._step()
        marked = self.marked()
        can = {"copy"} if self._command() else set[str]()
        if night.run is not None:
            can |= {"note", "budget", "report", "iteration", "history"}
            if night.is_live:
                can |= {"resume" if night.is_paused else "pause", "stop"}
            if night.circuit.circuit is not Circuit.CLOSED:
                can.add("circuit reset")
        if marked is not None:
            can |= {"open", *_KEYS_OF[marked.standing]}
        if self._facts.trouble:
            can = set()
        if can != self._can:
            self._can = can
            self.refresh_bindings()
        looks = night.stories if step and step.story else ()
        shown = next((look for look in looks if step and look.story.id == step.story), marked)
        if shown not in (None, self._previewed) and self._panels["preview"].display:
            self._previewed = shown
            self._fetch_preview(night.session.run, shown)

    @work(thread=True, exclusive=True, group="preview")
    def _fetch_preview(self, run: str, look: StoryLook) -> None:
        try:
            page = pages.story_pages(self.project, run, look)[0]
            panel = self._panels["preview"]
        except RalphError:
            return  # the screen says why

        def show() -> None:
            if look is self._previewed:  # a thread is not cancelled: another may be marked by now
                panel.border_title = screens.content(panel, line(one_line(look.story.id, 60)))
                panel.show(page.lines)

        self.call_later(show)

    def on_mount(self) -> None:
        self._header.show((line("reading…"),))
        self._story_view.focus()
        self._watch()
        self.set_interval(1.0, self._draw)

    @work(thread=True)
    def _watch(self) -> None:
        """Read what is new until the monitor ends; drawing is left to the application's thread."""
        worker = get_current_worker()
        while not worker.is_cancelled:
            facts = self.source.poll()
            if facts is not None:
                self.call_later(self._fresh, facts)
            time.sleep(POLL_S)
        self.source.close()

    def _fresh(self, facts: Facts) -> None:
        first = self.value is None
        before = self._facts
        self._facts = facts
        self._draw()
        if first or before.stories is not facts.stories:
            self._show_stories()
        if first or before.log is not facts.log:
            # What is new; of a very long night the oldest lines are let go now and then.
            log = facts.log
            last = before.log[-1] if before.log else None
            fresh = list(takewhile(lambda entry: entry is not last, reversed(log)))[::-1]
            if len(fresh) == len(log) or self._log_view.option_count > 2 * LOG_KEPT:
                self._log_view.clear_options()
                fresh = list(log)
            self._log_view.extend(map(log_line, fresh))
            self._tell_follow()
        if self.value and self.value.steps != self._shown_steps:
            # The list of what to do, and the cursor on it once a run is over.
            steps = self.value.steps
            view = self._todo_view
            is_new = not self._shown_steps
            self._shown_steps = steps
            view.display = bool(steps)
            self._choose_layout()
            view.fill(self.value.todo())
            view.highlighted = 0 if steps and view.highlighted is None else view.highlighted
            if not steps:
                self._story_view.focus()
            elif is_new:
                view.focus()
        self._look_anew()

    def _draw(self) -> None:
        if self._facts is self._unknown:
            return
        before = self.value
        self.value = screen = Screen(self._facts, self._clock())
        self._header.show(tuple(screen.header(self._header.content_size.width)))
        self._panels["now"].set_class(not self._facts.night.working, "-idle")
        if before is None or before.facts.trouble != self._facts.trouble:
            self._choose_layout()
        for name, panel in self._panels.items():
            if name != "preview":
                panel.show(tuple(getattr(screen, name)()))

    def on_resize(self, event: Resize) -> None:
        self._room = event.size
        self._choose_layout()
        self._draw_all()

    def _draw_all(self) -> None:
        """Once the new layout is there: lines are cut to their room."""
        self.call_after_refresh(self._draw)
        self.call_after_refresh(self._show_stories)

    def _choose_layout(self) -> None:
        """The layout that fits, all of it at once; the style sheet has one for each."""
        width, height = self._room
        fitting = {
            "-tall": height >= 34,
            "-wide": width >= 110 and height >= 34,
            "-broad": width >= 120 and height >= 34,
            "-slim": width < 72,
            "-unreadable": bool(self._facts.trouble),
            "-over": bool(self._shown_steps),
        }
        self.screen_stack[0].set_classes(" ".join(name for name, fits in fitting.items() if fits))

    def _show_stories(self) -> None:
        term = self._filter.value.casefold().strip()
        view = self._story_view
        at = [f"{row.id} {row.title} {row.standing}".casefold() for row in self._facts.stories]
        self._listed = [number for number, words in enumerate(at) if term in words]
        rows = [self._facts.stories[number] for number in self._listed]
        view.fill(story_lines(rows, view.scrollable_content_region.width))
        note = self.value.stories_note if self.value else ""
        view.border_subtitle = screens.content(view, line(note))
        if view.highlighted in (None, self._pointed):  # else a person looks at another one
            current = (at for at, row in enumerate(rows) if row.mark == RUNNING)
            view.highlighted = self._pointed = next(current, self._pointed)

    @on(Paper.Scrolled)
    @on(Input.Submitted, "#find")
    def _tell_follow(self) -> None:
        number = self.query_one(Search).found
        found = f"{number} found, " if number else ""
        follows = "following" if self._log_view.is_at_end else "f follows"
        self._log_view.border_subtitle = found + follows

    @on(OptionList.OptionSelected, "#stories")
    def _chosen_story(self) -> None:
        marked = self.marked()
        if marked is not None and marked.standing is Standing.BLOCKED:
            self.action_wish("answer")
        else:
            self.action_open()

    def action_open(self) -> None:
        if (look := self.marked()) is not None:
            load = partial(pages.story_pages, self.project, self._facts.night.session.run, look)
            self._read(load, f"{look.story.id} {look.story.title}")

    @on(OptionList.OptionSelected, "#todo")
    @work
    async def _chosen_step(self) -> None:
        """Do what is advised: answer here, anything else as in a shell."""
        step = self._step()
        if step is None or not step.command:
            return
        sure = Question(f"Run it in the background?  {step.command}", yes="Run")
        if step.kind == "answer":
            self.action_wish("answer", step.story)
        elif step.wants_value:
            self.action_copy()
        elif step.kind != "run" or await self.push_screen_wait(Dialog(sure)) == "yes":
            background = ["--detach"] if step.kind == "run" else []
            self.in_front(*shlex.split(step.command), *background)

    def action_report(self) -> None:
        self.in_front("ralph", "report", self._facts.night.session.run)

    def action_copy(self) -> None:
        if command := self._command():
            self.copy_to_clipboard(command)
            self.tell(f"Copied: {command}")

    def _open_iteration(self, run: str, n: int) -> None:
        """An iteration of a run, or with number 0 all of them."""
        if n:
            self._read(partial(pages.iteration_pages, self.project, run, n), f"Iteration {n}")
        else:
            self._read(partial(pages.history_pages, self.project, run), f"Run {run}")

    @work(thread=True, exclusive=True, group="reading")
    def _read(self, load: Callable[[], Sequence[pages.Page]], title: str) -> None:
        try:
            found = load()
        except RalphError as error:
            found = (pages.text_page("Problem", [error.message, error.next_step]),)
        open_it = self._open_iteration
        name = one_line(title, 100)
        self.call_later(lambda: self.push_screen(PageScreen(found, title=name, follow=open_it)))

    @on(Click, "#working")
    def action_iteration(self) -> None:
        if newest := self._facts.night.newest:
            self._open_iteration(newest.run, newest.n)

    def action_history(self) -> None:
        self._open_iteration(self._facts.night.session.run, 0)

    def action_help(self) -> None:
        if self.screen.query("HelpPanel"):
            self.action_hide_help_panel()
        else:
            self.action_show_help_panel()

    def action_theme(self) -> None:
        if not self.no_color:
            self.theme = "textual-light" if self.theme == "textual-dark" else "textual-dark"

    def action_follow(self) -> None:
        self._log_view.follow()

    def action_search(self) -> None:
        """In the log for a word, else among the stories."""
        if self._log_view.has_focus:
            self.query_one(Search).begin()
            return
        self._filter.display = True
        self._filter.focus()

    @on(Input.Changed, "#filter")
    def _filtered(self) -> None:
        self._show_stories()
        self._story_view.highlighted = 0 if self._listed else None

    @on(Input.Submitted, "#filter")
    def _filter_is_done(self) -> None:
        self._filter.display = bool(self._filter.value)
        self._story_view.focus()

    def action_leave_search(self) -> None:
        if self.query_one(Search).end():
            self._tell_follow()
        elif self._filter.display:
            self._filter.value = ""
            self._filter_is_done()

    @work
    async def action_wish(self, kind: str, story: str = "") -> None:
        looks = [look for look in self._facts.night.stories if look.story.id == story]
        look = looks[0] if looks else self.marked()
        said = list[str]()
        if kind in ("answer", "skip", "retry") and look is not None:
            said = [look.story.id]
        if question := _QUESTIONS.get(kind):
            asks = one_line(look.state.reason, 1_000) if look else ""
            words = question.words.format(story=one_line("".join(said), 60), asks=asks)
            text = await self.push_screen_wait(Dialog(question._replace(words=words)))
            if not text:
                return
            said += [text] if question.hint else []
        if kind == "budget":
            kind = f"budget {said[0]}"
            said = []
        given = ["--", *said] if said else []
        self._do(*kind.split(), *given)

    @work(thread=True)
    def _do(self, *arguments: str) -> None:
        argv = (*ourselves(), *arguments)
        worker = get_current_worker()
        env = programs.own_environment()
        done = run_command(argv, cwd=self.project.root, env=env, stop=lambda: worker.is_cancelled)
        self.call_later(self.tell, done.said, bad=done.returncode != 0)

    def tell(self, words: str, *, bad: bool = False) -> None:
        self.notify(one_line(words, 300), severity="error" if bad else "information", markup=False)

    def in_front(self, program: str, *arguments: str) -> None:
        argv = [*ourselves(), *arguments]
        env = programs.own_environment()
        if program != "ralph":
            argv = [programs.find(program) or program, *arguments]
            env = programs.trusted_environment()
        try:
            with self.suspend():
                run_in_front(argv, cwd=self.project.root, env=env)
                input("\nEnter goes back to the monitor ")
        except (SuspendNotSupported, EOFError):
            self.tell(f"In a shell: {shlex.join([program, *arguments])}")
