"""What stands on the screen.  Widgets are handed values and draw; they read and decide nothing."""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Button, Footer, Input, OptionList, Static, TabbedContent, TabPane, Tabs

from ralphloop.ui.monitor.pages import Page
from ralphloop.ui.monitor.paint import Line, Tone, line, plain_ascii

Open = Callable[[str, int], None]
_STYLES = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.QUIET: "dim",
    Tone.GOOD: "$text-success",
    Tone.WARN: "$text-warning",
    Tone.BAD: "$text-error bold",
    Tone.BUSY: "$text-primary",
}


def content(widget: Widget, spans: Line) -> Content:
    """The line as Textual shows it; nothing in it is markup."""
    in_ascii = widget.app.has_class("-ascii")
    shown = ((plain_ascii(text) if in_ascii else text, _STYLES[tone]) for text, tone in spans)
    return Content.assemble(*(span for span in shown if span[0]))


class Panel(Static):
    """A few lines; where they are too many, the last ones are shown if `newest_last`."""

    def __init__(
        self,
        name: str,
        title: str = "",
        *,
        newest_last: bool = False,
        resized: Callable[[], object] | None = None,  # where the lines depend on the width
    ) -> None:
        super().__init__(id=name)
        self.border_title = title
        self._newest_last = newest_last
        self._resized = resized
        self._lines: Sequence[Line] = ()
        self._shown: Sequence[Line] | None = None

    def show(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        shown = lines[-max(1, self.content_size.height) :] if self._newest_last else lines
        if shown != self._shown:
            # A new layout of the screen costs ten times a redraw.
            resized = self.styles.is_auto_height and len(shown) != len(self._shown or ())
            self._shown = shown
            self.update(Content("\n").join(content(self, line) for line in shown), layout=resized)

    def on_resize(self) -> None:
        self.show(self._lines)
        if self._resized:
            self._resized()


class Rows(OptionList):
    """Many lines, of which only the visible are drawn; one is marked and may be chosen."""

    HELP = """\
✓ passed, with its grade · ▶ at work · ? waits for you · ⊘ set aside · ! to review ·
○ open · · waits on another · 2✗ two attempts failed"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
        Binding("g", "first", show=False),
        Binding("G", "last", show=False),
    ]

    def __init__(self, name: str | None = None, title: str = "") -> None:
        super().__init__(id=name, markup=False)
        self.border_title = title

    def fill(self, lines: Iterable[Line]) -> None:
        marked = self.highlighted
        top = self.scroll_y
        self.set_options(content(self, line) for line in lines)
        self.highlighted = marked
        self.scroll_to(y=top, animate=False, force=True)

    def find(self, term: str, step: int) -> int:
        """Mark the next line with the term, upwards (-1) or downwards (1); how many have it."""
        texts = (str(option.prompt).casefold() for option in self.options)
        found = [at for at, text in enumerate(texts) if term.casefold() in text] if term else []
        start = self.highlighted
        if start is None:
            start = len(self.options) if step < 0 else -1
        beyond = [at for at in found[::step] if (at - start) * step > 0]
        self.highlighted = next(iter([*beyond, *found[::step]]), None)
        return len(found)


class Paper(Rows):
    """Many lines to read, of which only a search marks one; who is at the end stays there."""

    # Keys that would move the mark.
    action_cursor_up = Widget.action_scroll_up
    action_cursor_down = Widget.action_scroll_down
    action_page_up = Widget.action_page_up
    action_page_down = Widget.action_page_down
    action_first = Widget.action_scroll_home
    action_last = Widget.action_scroll_end

    class Scrolled(Message):
        """A person looked back, or is at the end again."""

    is_at_end = True

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self.is_at_end != self.is_vertical_scroll_end:
            self.is_at_end = self.is_vertical_scroll_end
            self.post_message(self.Scrolled())

    def extend(self, lines: Iterable[Line]) -> None:
        follow = self.is_at_end
        self.add_options(content(self, line) for line in lines)
        if follow:
            self.follow()

    def follow(self) -> None:
        self.highlighted = None
        self.call_after_refresh(self.scroll_end, animate=False, immediate=True, force=True)


class Field(Input):
    """One line to type into; a cursor that blinks would redraw the screen for ever."""

    def __init__(self, placeholder: str, *, name: str | None = None) -> None:
        super().__init__(placeholder=placeholder, id=name, max_length=1_000)
        self.cursor_blink = False


class Search(Field):
    """The line below `Rows` that takes a term; hidden until somebody searches."""

    def __init__(self, placeholder: str, *, rows: Callable[[], Rows], step: int) -> None:
        super().__init__(placeholder, name="find")
        self._rows = rows
        self._step = step
        self.found = 0
        self._followed = False

    def begin(self) -> None:
        rows = self._rows()
        self._followed = isinstance(rows, Paper) and rows.is_at_end
        self.display = True
        self.focus()

    def end(self) -> bool:
        """Hide it; False where nobody searched."""
        searched = self.display
        self.display = False
        self.found = 0
        if searched:
            rows = self._rows()
            if isinstance(rows, Paper):
                rows.highlighted = None
                if self._followed and self._step < 0:  # a log, that grows
                    rows.follow()
            rows.focus()
        return searched

    @on(Input.Submitted)
    def _find(self, event: Input.Submitted) -> None:
        self.found = self._rows().find(event.value, self._step)
        if not self.found and event.value:
            self.notify("not found", timeout=2)


class PageScreen(Screen[None]):
    """Pages of text, one at a time, with search; lines may lead to an iteration."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Back"),
        Binding("slash", "search", "Search"),
        Binding("left", "turn(-1)", "Page", show=False),
        Binding("right,tab", "turn(1)", "Next page"),
        *(Binding(str(n), f"page({n - 1})", show=False) for n in range(1, 7)),
    ]

    def __init__(self, pages: Sequence[Page], *, title: str, follow: Open) -> None:
        super().__init__()
        self._pages = pages
        self._title = title
        self._follow = follow

    def compose(self) -> ComposeResult:
        with TabbedContent():
            for number, page in enumerate(self._pages):
                with TabPane(Content(f"{number + 1} {page.title}"), id=f"page-{number}"):
                    yield Rows() if page.links else Paper()
        yield Search("search; Enter: next, Esc: back", rows=self._rows, step=1)
        yield Footer()

    def on_mount(self) -> None:
        for page, rows in zip(self._pages, self.query(Rows), strict=True):
            rows.border_title = content(rows, line(self._title))
            rows.fill(page.lines)
            first = min(page.links, default=None)  # at once, unless there is much to read before
            rows.highlighted = 0 if first and first > self.app.size.height - 6 else first
        self.query_one(Tabs).display = len(self._pages) > 1
        self._rows().focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """One page alone is not turned."""
        return action not in ("turn", "page") or len(self._pages) > 1

    def _rows(self) -> Rows:
        return self.query_one(f"#{self.query_one(TabbedContent).active or 'page-0'} Rows", Rows)

    @on(TabbedContent.TabActivated)
    def _turned(self) -> None:
        self._rows().focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        number = int((self.query_one(TabbedContent).active or "page-0").removeprefix("page-"))
        if target := self._pages[number].links.get(event.option_index):
            self._follow(*target)

    def action_turn(self, by: int) -> None:
        tabs = self.query_one(Tabs)
        if by > 0:
            tabs.action_next_tab()
        else:
            tabs.action_previous_tab()

    def action_page(self, number: int) -> None:
        if number < len(self._pages):
            self.query_one(TabbedContent).active = f"page-{number}"

    def action_leave(self) -> None:
        if not self.query_one(Search).end():
            self.dismiss()

    def action_search(self) -> None:
        self.query_one(Search).begin()


class Question(NamedTuple):
    """What a person is asked: a line of text, or a yes where there is no hint."""

    words: str
    hint: str = ""
    yes: str = ""  # what it means
    read: Callable[[str], str] = str  # what it refuses with a ValueError is to be corrected


class Dialog(ModalScreen[str | None]):
    BINDINGS: ClassVar[list[BindingType]] = [  # a line that is typed into takes letters before them
        Binding("y", "dismiss('yes')", "Yes"),
        Binding("n,escape", "dismiss(None)", "No"),
    ]

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        asked = self._question
        with Vertical(classes="dialog"):
            yield Static(asked.words, markup=False)
            if asked.hint:
                yield Field(asked.hint)
                yield Static("Enter sends it, Esc goes back", classes="hint", markup=False)
                return
            with Horizontal():
                yes = "screen.dismiss('yes')"
                no = "screen.dismiss(None)"
                yield Button(f"y  {asked.yes}", "error", id="yes", action=yes, compact=True)
                yield Button("n  Go back", action=no, compact=True)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        text = event.value.strip()
        try:
            self.dismiss(self._question.read(text) if text else None)
        except ValueError as error:
            self.query_one(".hint", Static).update(Content(f"Not so: {error}"))
