"""The views over the main one: pages to read, a question to answer, a decision to confirm."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.widgets import Button, Footer, Input, Static, Tab, Tabs

from ralphloop.errors import RalphError
from ralphloop.ui.monitor.pages import Page, text_page
from ralphloop.ui.monitor.paint import folded
from ralphloop.ui.monitor.widgets import Field, Rows, Search

Load = Callable[[], tuple[Page, ...]]
Open = Callable[[str, int], None]


class Reading(Screen[None]):
    """Pages of text, one at a time, with search; lines may lead to an iteration."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Back"),
        Binding("slash", "search", "Search"),
        Binding("left", "turn(-1)", "Page", show=False),
        Binding("right,tab", "turn(1)", "Next page"),
        *(Binding(str(n), f"page({n - 1})", show=False) for n in range(1, 7)),
    ]

    class Loaded(Message):
        def __init__(self, pages: tuple[Page, ...]) -> None:
            super().__init__()
            self.pages = pages

    def __init__(self, load: Load, *, title: str, follow: Open, in_ascii: bool = False) -> None:
        super().__init__()
        self._load, self._follow = load, follow
        self._pages: tuple[Page, ...] = ()
        self._at = 0
        self._origin: list[int] = []  # of each line shown, the line of the page
        self._rows = Rows(name="reading", title=title, in_ascii=in_ascii)

    def compose(self) -> ComposeResult:
        yield Tabs()
        yield self._rows
        yield Search(self._rows, "search; Enter: next, Esc: back", step=1)
        yield Footer()

    def on_mount(self) -> None:
        self._rows.focus()
        self._fetch()

    @work(thread=True)
    def _fetch(self) -> None:
        try:
            pages = self._load()
        except RalphError as error:
            pages = (text_page("Problem", [error.message, error.next_step]),)
        self.post_message(self.Loaded(pages))

    @on(Loaded)
    async def _loaded(self, event: Loaded) -> None:
        self._pages = event.pages
        tabs = self.query_one(Tabs)
        for number, page in enumerate(event.pages):
            await tabs.add_tab(Tab(f"{number + 1} {page.title}", id=f"page-{number}"))
        tabs.display = len(event.pages) > 1
        self._show(0)

    @on(Tabs.TabActivated)
    def _turned(self, event: Tabs.TabActivated) -> None:
        self._show(int((event.tab.id or "page-0").removeprefix("page-")))

    def _show(self, number: int) -> None:
        """Show a page, its long lines folded."""
        self._at = number
        self._fold()
        links = self._pages[number].links if self._pages else {}
        shown = [at for at, origin in enumerate(self._origin) if origin in links]
        self._rows.cursor = shown[0] if shown and shown[0] < self._rows.size.height else None
        if shown and self._rows.cursor is None:
            self._rows.cursor = 0
        self._rows.scroll_to(y=0, animate=False)

    def _fold(self) -> None:
        if not self._pages or not self._rows.size.width:
            return
        width, lines, self._origin = self._rows.size.width - 2, [], []
        for number, line in enumerate(self._pages[self._at].lines):
            for row in folded(line, width):
                lines.append(row)
                self._origin.append(number)
        self._rows.fill(len(lines), lambda index, _: lines[index])

    def on_resize(self, _: Resize) -> None:
        self.call_after_refresh(self._fold)

    @on(Rows.Chosen)
    def _chosen(self, event: Rows.Chosen) -> None:
        event.stop()
        target = self._pages[self._at].links.get(self._origin[event.index])
        if target is not None:
            self._follow(*target)

    def action_turn(self, by: int) -> None:
        self.action_page((self._at + by) % max(1, len(self._pages)))

    def action_page(self, number: int) -> None:
        if number < len(self._pages):
            self.query_one(Tabs).active = f"page-{number}"

    def action_leave(self) -> None:
        if not self.query_one(Search).end():
            self.dismiss()

    def action_search(self) -> None:
        self.query_one(Search).begin()


class Question(ModalScreen[str | None]):
    """One line of text from a person, or nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Back")]

    def __init__(self, question: str, *, hint: str) -> None:
        super().__init__()
        self._question, self._hint = question, hint

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._question, markup=False)
            yield Field(self._hint)
            yield Static("Enter sends it, Esc goes back", classes="hint", markup=False)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)


class Confirm(ModalScreen[bool]):
    """A yes or no before something that cannot be taken back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Yes"),
        Binding("n,escape", "dismiss(False)", "No"),
    ]

    def __init__(self, question: str, *, yes: str) -> None:
        super().__init__()
        self._question, self._yes = question, yes

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(self._question, markup=False)
            with Horizontal():
                yield Button(f"y  {self._yes}", id="yes", compact=True, variant="error")
                yield Button("n  Go back", id="no", compact=True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")
