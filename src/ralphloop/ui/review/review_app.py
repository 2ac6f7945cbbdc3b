"""The review on a screen: stories by doubt, and the one in hand with claim, evidence and change.

Stories are read by one thread and what a person decides is done by another, one thing after the
other: sending back runs the checks, and nobody has to wait for them.  What cannot be done is said
in place, the words that were typed are kept, and the story is in the list again.
"""

import queue
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import ClassVar, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, OptionList, Static
from textual.worker import get_current_worker

from ralphloop.core.proposals import USUAL_CRITERION, Proposal
from ralphloop.errors import RalphError
from ralphloop.night.review_values import ReviewEntry, ReviewList, StoryReview
from ralphloop.text.plain import counted, one_line
from ralphloop.ui.monitor.paint import Line, Tone, cut, fit, line, width_of
from ralphloop.ui.monitor.screens import Field, Panel, Paper, Rows
from ralphloop.ui.monitor.terminal_app import TerminalApp
from ralphloop.ui.review.deeds import DeedDone, Deeds, InTheWayOfIt
from ralphloop.ui.review.paper import (
    DOUBT_TONES,
    Shown,
    is_long_change,
    proposal_paper,
    story_paper,
)

_LIST_FROM = 110  # columns: a narrower screen has the list in one line
_LIST_WIDTH = 34
_GLANCE_S = 0.1
_NOTHING_LEFT = "Everything here has been looked at.  q ends the review."


class ReviewStanding(StrEnum):
    """What became of a story in this review."""

    WAITING = ""
    BUSY = "…"
    ACCEPTED = "accepted"
    SENT_BACK = "sent back"
    ASKED = "asked"
    SKIPPED = "skipped"
    DROPPED = "dropped"
    ADDED = "added"

    @property
    def is_decided(self) -> bool:
        return self in (self.ACCEPTED, self.SENT_BACK, self.DROPPED, self.ADDED, self.BUSY)


class Asking(StrEnum):
    """What the line that is typed into is for."""

    WHY = "Why? Enter sends it back, Esc keeps your words and goes on"
    QUESTION = "Your question: the next prompt has it. Enter asks, Esc goes back"
    CRITERION = "What will be seen when it is done? Enter makes a story of it, Esc goes back"


@dataclass
class _Item:
    """A story or a proposal, and how far the person is with it."""

    name: str
    entry: ReviewEntry | None = None
    proposal: Proposal | None = None
    review: StoryReview | None = None
    standing: ReviewStanding = ReviewStanding.WAITING
    before: ReviewStanding = ReviewStanding.WAITING  # what it was until something is done about it
    problem: str = ""  # why it could not be done
    typed: dict[Asking, str] = field(default_factory=dict)


class _Deed(NamedTuple):
    item: _Item
    standing: ReviewStanding  # once it is done
    act: Callable[[], DeedDone]


def _title(item: _Item) -> str:
    if item.entry is not None:
        return item.entry.title
    return item.proposal.title if item.proposal is not None else ""


class Reviewed(NamedTuple):
    """What was decided."""

    accepted: tuple[str, ...]
    sent_back: tuple[str, ...]
    left: int  # that nobody decided about


class Choice(ModalScreen[str]):
    """What becomes of a story that cannot be sent back alone."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "dismiss('together')", "Together"),
        Binding("f", "dismiss('follow_up')", "Follow-up"),
        Binding("k,escape", "dismiss('keep')", "Keep"),
    ]

    def __init__(self, found: InTheWayOfIt) -> None:
        super().__init__()
        self._found = found

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static("\n".join(self._found.lines), markup=False)
            together = "t  send all of it back together\n" if self._found.can_go_together else ""
            rest = "f  keep it, and add a story with your words\nk  keep everything as it is"
            yield Static(f"\n{together}{rest}", markup=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only stories can go together."""
        return parameters != ("together",) or self._found.can_go_together


class ReviewApp(TerminalApp[Reviewed]):
    CSS_PATH = "review.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [  # the footer cuts the last ones where it is narrow
        Binding("a", "accept", "Accept"),
        Binding("r", "send_back", "Send back"),
        Binding("d", "drop", "Drop"),
        Binding("question_mark", "ask", "Ask"),
        Binding("s", "skip", "Skip"),
        Binding("u", "undo", "Undo"),
        Binding("space", "page_down", "Page"),
        Binding("n,right", "move(1)", "Next"),
        Binding("p,left", "move(-1)", "Back", show=False),
        Binding("q", "leave", "Quit"),
        Binding("enter", "whole", "Whole", priority=True),
        Binding("f", "files", "Files"),
        Binding("o", "output", "Output"),
        Binding("t", "theme", show=False),
        Binding("escape", "stop_typing", show=False, priority=True),
        Binding("ctrl+c", "leave", show=False, priority=True),
    ]

    def __init__(
        self,
        listed: ReviewList,
        *,
        title: str,
        read: Callable[[ReviewEntry], StoryReview],
        deeds: Deeds,
        in_ascii: bool = False,
        dark: bool = True,
    ) -> None:
        super().__init__(in_ascii=in_ascii, dark=dark)
        self.title = title
        self._listed = listed
        self._read = read
        self._deeds = deeds
        self._items = [_Item(one.story, entry=one) for one in listed.items]
        self._items += [_Item(one.id, proposal=one) for one in listed.proposals]
        self._at = 0
        self._shown = Shown()
        self._room = Size(80, 24)
        self._is_over = False  # nothing is left, and nobody has gone back to a story since
        self._news: Line = ()  # what became of the last decision
        self._undoable: list[_Item] = []
        self._waiting: queue.Queue[_Deed] = queue.Queue()
        self._pending = 0
        self._asking: Asking | None = None
        self._is_leaving = False
        self._header = Panel("header", resized=self._draw_header)
        self._list = Rows("stories", "By doubt")
        self._list.can_focus = False
        self._paper = Paper("story")
        self._said = Panel("said")
        self._field = Field("", name="words")

    def compose(self) -> ComposeResult:
        yield self._header
        with Horizontal(id="body"):
            yield self._list
            yield self._paper
        yield self._said
        yield self._field
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self._paper.focus()
        self._load()
        self._work_off()
        self._go_to(0)

    def on_resize(self, event: Resize) -> None:
        self._room = event.size
        self.screen_stack[0].set_class(event.size.width >= _LIST_FROM, "-wide")
        self.call_after_refresh(self._draw)

    @property
    def _item(self) -> _Item | None:
        return self._items[self._at] if self._items else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that can do nothing now are not there."""
        if action in ("stop_typing", "leave", "command_palette"):
            return action != "stop_typing" or self._asking is not None
        if self._asking is not None or len(self.screen_stack) > 1:
            return False
        item = self._item
        is_open = item is not None and not item.standing.is_decided
        if action == "undo":
            return bool(self._undoable)
        if action in ("accept", "skip"):
            return is_open
        if action == "drop":
            return is_open and item is not None and item.proposal is not None
        if action in ("send_back", "ask"):
            has_passed = item is not None and item.entry is not None and item.entry.has_passed
            return is_open and has_passed
        if action in ("whole", "files", "output"):
            has_more = action != "whole" or self._is_long(item)
            return item is not None and item.entry is not None and has_more
        return True

    # What is shown.

    @work(thread=True)
    def _load(self) -> None:
        """Read the stories in the order in which they are looked at."""
        worker = get_current_worker()
        for item in self._items:
            if worker.is_cancelled:
                return
            if item.entry is not None and item.review is None:
                item.review = self._read_one(item.entry)
                self.call_later(self._draw_if_shown, item)

    def _read_one(self, entry: ReviewEntry) -> StoryReview:
        try:
            return self._read(entry)
        except RalphError as error:
            return StoryReview(entry=entry, finding=entry.finding, diff_problem=error.message)

    def _draw_if_shown(self, item: _Item) -> None:
        if item is self._item:
            self._draw()

    def _draw(self) -> None:
        self._draw_header()
        self._list.fill(self._list_lines())
        self._list.highlighted = self._at if self._items else None
        item = self._item
        width = max(20, self._paper.scrollable_content_region.width)
        if item is None:
            self._paper.fill([line(_NOTHING_LEFT)])
        elif self._is_over:
            self._paper.fill(self._summary())
        elif item.proposal is not None:
            self._paper.fill(proposal_paper(item.proposal, width))
        elif item.review is None:
            self._paper.fill([line((f"{item.name}: reading…", Tone.QUIET))])
        else:
            self._paper.fill(story_paper(item.review, width, self._shown))
        self._draw_said()
        self.refresh_bindings()

    def _is_long(self, item: _Item | None) -> bool:
        """Whether more of the change can be shown than at first."""
        width = max(20, self._paper.scrollable_content_region.width)
        review = item.review if item is not None else None
        return review is not None and is_long_change(review, width)

    def _summary(self) -> list[Line]:
        """What was decided, and what comes next."""
        by_standing: dict[str, list[str]] = {}
        for item in self._items:
            by_standing.setdefault(str(item.standing), []).append(item.name)
        lines = [line(("That was all.", Tone.STRONG)), ()]
        for standing, names in by_standing.items():
            lines.append(line((f"{standing}: ", Tone.QUIET), ", ".join(names)))
        lines += [(), line(("q quits, u takes the last one back, p goes back.", Tone.QUIET))]
        if ReviewStanding.SENT_BACK in by_standing:
            lines.append(line(("`ralph run` takes up what was sent back.", Tone.QUIET)))
        return lines

    def _draw_header(self) -> None:
        width = max(20, self._header.content_size.width or self._room.width)
        left = sum(1 for one in self._items if not one.standing.is_decided)
        told = f"{self.title} · {self._listed.headline}"
        lines = [line((cut(told, width), Tone.STRONG))]
        if self._room.width < _LIST_FROM:
            lines.append(self._strip(width))
        else:
            lines.append(line((f"{left} of {len(self._items)} left to look at", Tone.QUIET)))
        self._header.show(lines)

    def _strip(self, width: int) -> Line:
        """The list in one line, the story in hand among its neighbours."""
        place = f"{self._at + 1} of {len(self._items)} "
        spans = [(place, Tone.QUIET)]
        room = width - width_of(place)
        for item in self._items[max(0, self._at - 1) :]:
            mark = "✓" if item.standing.is_decided else self._mark(item)
            words = f" {mark} {item.name} "
            room -= width_of(words)
            if room < 0:
                break
            is_here = item is self._item
            tone = Tone.STRONG if is_here else Tone.QUIET
            spans.append((f"[{words.strip()}] " if is_here else words, tone))
        return tuple(spans)

    @staticmethod
    def _mark(item: _Item) -> str:
        return item.entry.mark if item.entry else "+"

    def _list_lines(self) -> list[Line]:
        width = max(10, self._list.scrollable_content_region.width)
        return [self._list_line(item, width) for item in self._items]

    def _list_line(self, item: _Item, width: int) -> Line:
        if item.standing is not ReviewStanding.WAITING:
            told = f"{fit('·', 3)}{item.name} {item.standing}: {_title(item)}"
            return line((cut(told, width), Tone.QUIET))
        entry = item.entry
        title = _title(item)
        tone = DOUBT_TONES[entry.doubt] if entry else Tone.BUSY
        if entry and entry.hints and tone is Tone.GOOD:
            tone = Tone.WARN  # proven, and yet something speaks for a closer look
        rest = max(0, width - 3 - width_of(item.name) - 1)
        return line(
            (fit(self._mark(item), 3), tone), (f"{item.name} ", Tone.STRONG), cut(title, rest)
        )

    def _draw_said(self) -> None:
        """What happened to the story in hand, or what went wrong."""
        item = self._item
        lines: list[Line] = []
        if item is not None and item.problem:
            lines.append(line((item.problem, Tone.BAD)))
        elif item is not None and item.standing is ReviewStanding.BUSY:
            lines.append(line((f"{item.name} is being worked on: {self._busy_words}", Tone.BUSY)))
        elif item is not None and item.standing is not ReviewStanding.WAITING:
            lines.append(line((f"{item.name}: {item.standing}", Tone.GOOD)))
        elif self._pending:
            lines.append(line((self._busy_words, Tone.BUSY)))
        elif self._news:
            lines.append(self._news)
        self._said.display = bool(lines)
        self._said.show(lines)

    @property
    def _busy_words(self) -> str:
        return f"{counted(self._pending, 'decision', 'is')} being carried out"

    @on(OptionList.OptionSelected, "#stories")
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self._go_to(event.option_index)

    def _go_to(self, at: int) -> None:
        self._at = max(0, min(at, len(self._items) - 1))
        self._is_over = False
        self._shown = Shown()
        self._draw()
        self._paper.scroll_home(animate=False, force=True)

    def _go_on(self) -> None:
        """To the next one that nobody decided about; stay where there is none."""
        order = [*range(self._at + 1, len(self._items)), *range(self._at)]
        for at in order:
            if self._items[at].standing is ReviewStanding.WAITING:
                self._go_to(at)
                return
        self._is_over = bool(self._items)
        self._draw()
        self._paper.scroll_home(animate=False, force=True)

    def action_move(self, by: int) -> None:
        self._go_to(self._at + by)

    def action_page_down(self) -> None:
        self._paper.action_page_down()

    def action_whole(self) -> None:
        self._show(self._shown._replace(whole_change=not self._shown.whole_change))

    def action_files(self) -> None:
        self._show(self._shown._replace(files_only=not self._shown.files_only))

    def action_output(self) -> None:
        self._show(self._shown._replace(output=not self._shown.output))

    def _show(self, shown: Shown) -> None:
        self._shown = shown
        self._draw()

    def action_theme(self) -> None:
        if not self.no_color:
            self.theme = "textual-light" if self.theme == "textual-dark" else "textual-dark"

    # What is decided.

    def action_accept(self) -> None:
        item = self._item
        if item is None:
            return
        if item.proposal is not None:
            self._type(Asking.CRITERION, USUAL_CRITERION)
        else:
            self._carry_out(
                _Deed(item, ReviewStanding.ACCEPTED, partial(self._deeds.accept, item.name))
            )

    def action_send_back(self) -> None:
        self._type(Asking.WHY)

    def action_ask(self) -> None:
        self._type(Asking.QUESTION)

    def action_drop(self) -> None:
        item = self._item
        if item is not None and item.proposal is not None:
            drop = partial(self._deeds.drop, item.proposal)
            self._carry_out(_Deed(item, ReviewStanding.DROPPED, drop))

    def action_skip(self) -> None:
        item = self._item
        if item is not None:
            item.standing = ReviewStanding.SKIPPED
            self._undoable.append(item)
            self._go_on()

    def action_undo(self) -> None:
        """Take the last decision back."""
        if not self._undoable:
            return
        item = self._undoable.pop()
        self._at = self._items.index(item)
        self._is_over = False
        if item.standing is ReviewStanding.SKIPPED:
            item.standing = ReviewStanding.WAITING
        else:
            self._carry_out(
                _Deed(item, ReviewStanding.WAITING, partial(self._deeds.take_back, item.name)),
                stays=True,
            )
        self._draw()

    def _type(self, asking: Asking, usual: str = "") -> None:
        """Open the line for words; what was typed before is there again."""
        item = self._item
        if item is None:
            return
        self._asking = asking
        self._field.value = item.typed.get(asking, usual)
        self._field.display = True
        self._field.focus()
        item.problem = ""
        self._said.show([line((f"{item.name}: {asking}", Tone.BUSY))])
        self._said.display = True
        self.refresh_bindings()

    @on(Input.Changed, "#words")
    def _typed(self, event: Input.Changed) -> None:
        if self._item is not None and self._asking is not None:
            self._item.typed[self._asking] = event.value

    @on(Input.Submitted, "#words")
    def _submitted(self, event: Input.Submitted) -> None:
        item = self._item
        asking = self._asking
        words = one_line(event.value, 1_000)
        self.action_stop_typing()
        if item is None or not words:
            return
        if asking is Asking.WHY:
            act = partial(self._deeds.send_back, item.name, words, self._choose)
            self._carry_out(_Deed(item, ReviewStanding.SENT_BACK, act))
        elif asking is Asking.QUESTION:
            act = partial(self._deeds.ask, item.name, words)
            self._carry_out(_Deed(item, ReviewStanding.ASKED, act))
        elif item.proposal is not None:
            act = partial(self._deeds.make_story, item.proposal, words)
            self._carry_out(_Deed(item, ReviewStanding.ADDED, act))

    def action_stop_typing(self) -> None:
        self._asking = None
        self._field.display = False
        self._paper.focus()
        self._draw()

    def _carry_out(self, deed: _Deed, *, stays: bool = False) -> None:
        """Have it done, and go on to the next one meanwhile."""
        deed.item.before = deed.item.standing
        deed.item.standing = ReviewStanding.BUSY
        deed.item.problem = ""
        self._pending += 1
        self._waiting.put(deed)
        if stays:
            self._draw()
        else:
            self._go_on()

    @work(thread=True)
    def _work_off(self) -> None:
        """Do what was decided, in that order."""
        worker = get_current_worker()
        while not worker.is_cancelled:
            try:
                deed = self._waiting.get(timeout=_GLANCE_S)
            except queue.Empty:
                continue
            try:
                done = deed.act()
            except RalphError as error:
                words = f"{deed.item.name}: {error.message}  {error.next_step}".strip()
                self.call_later(self._failed, deed, words)
            else:
                self.call_later(self._done, deed, done)

    def _choose(self, found: InTheWayOfIt) -> str:
        """What a person wants of a story that something stands on; asked on the screen."""
        answered: Future[str] = Future()

        def settle(choice: str | None) -> None:
            answered.set_result(choice or "keep")

        self.call_from_thread(self.push_screen, Choice(found), settle)
        while True:
            with suppress(TimeoutError):
                return answered.result(timeout=_GLANCE_S)
            if not self.is_running:  # the screen is gone: nothing is changed
                return "keep"

    def _done(self, deed: _Deed, done: DeedDone) -> None:
        self._pending -= 1
        item = deed.item
        is_kept = deed.standing is ReviewStanding.SENT_BACK and item.name not in done.open_again
        item.standing = ReviewStanding.WAITING if is_kept else deed.standing
        item.problem = done.words if is_kept else ""
        self._is_over = self._is_over and not is_kept
        for other in self._items:
            if other.name in done.open_again and other is not item:
                other.standing = ReviewStanding.SENT_BACK
            elif other.name in done.waiting_again:
                other.standing = ReviewStanding.WAITING
        if item.standing in (ReviewStanding.ACCEPTED, ReviewStanding.SENT_BACK):
            self._undoable.append(item)
        self._news = line((one_line(done.words, 300), Tone.GOOD))
        self._after_deed()

    def _failed(self, deed: _Deed, words: str) -> None:
        self._pending -= 1
        deed.item.standing = deed.item.before
        deed.item.problem = words
        self._is_over = False
        self._news = line((one_line(words, 300), Tone.BAD))
        self._after_deed()

    def _after_deed(self) -> None:
        if self._is_leaving and not self._pending:
            self._end()
        elif self._asking is None:
            self._draw()

    def action_leave(self) -> None:
        if not self._pending:
            self._end()
            return
        self._is_leaving = True
        self._said.display = True
        self._said.show([line((f"Ends when that is done: {self._busy_words}", Tone.BUSY))])

    def _end(self) -> None:
        standings = {item.name: item.standing for item in self._items if item.entry}
        accepted = tuple(name for name, it in standings.items() if it is ReviewStanding.ACCEPTED)
        sent_back = tuple(name for name, it in standings.items() if it is ReviewStanding.SENT_BACK)
        left = sum(1 for it in standings.values() if not it.is_decided)
        self.exit(Reviewed(accepted, sent_back, left))
