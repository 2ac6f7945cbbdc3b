"""Two widgets: a `Panel` that shows a few lines, and `Rows` for everything that is long.

`Rows` draws only the lines that are visible, whatever their number, so that ten thousand stories
or a long transcript cost what a screenful costs.  Both are handed values and draw; they read
nothing and decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click, MouseScrollUp, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual
from textual.widgets import Input, Static

from ralphloop.ui.monitor.paint import plain, plain_ascii
from ralphloop.ui.monitor.values import Line, Span, Tone

STYLES = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.QUIET: "dim",
    Tone.GOOD: "$text-success",
    Tone.WARN: "$text-warning",
    Tone.BAD: "$text-error bold",
    Tone.BUSY: "$text-primary",
    Tone.FOUND: "reverse bold",
}


def content(line: Line, *, in_ascii: bool) -> Content:
    """The line as Textual shows it; nothing in it is markup."""
    shown = ((plain_ascii(text) if in_ascii else text, STYLES[tone]) for text, tone in line)
    return Content.assemble(*(span for span in shown if span[0]))


class Field(Input):
    """One line to type into; a cursor that blinks would redraw the screen for ever."""

    def __init__(self, placeholder: str, *, name: str | None = None) -> None:
        super().__init__(placeholder=placeholder, id=name, max_length=1_000)
        self.cursor_blink = False


class Panel(Static):
    """A few lines; where they are too many, the last ones are shown if `newest_last`."""

    def __init__(
        self, *, name: str, title: str = "", newest_last: bool = False, in_ascii: bool = False
    ) -> None:
        super().__init__(id=name)
        self.border_title = title
        self._newest_last, self._in_ascii = newest_last, in_ascii
        self._lines: Sequence[Line] = ()
        self._shown: Sequence[Line] | None = None

    def show(self, lines: Sequence[Line]) -> None:
        """Draw it again where it says something else now."""
        self._lines = lines
        room = self.content_size.height
        shown = lines[-max(1, room) :] if self._newest_last else lines
        if shown != self._shown:
            # A new layout of the screen costs ten times a redraw.
            resized = self.styles.is_auto_height and len(shown) != len(self._shown or ())
            self._shown = shown
            parts = (content(line, in_ascii=self._in_ascii) for line in shown)
            self.update(Content("\n").join(parts), layout=resized)

    def on_resize(self) -> None:
        self.show(self._lines)


class Rows(ScrollView, can_focus=True):
    """Many lines, one of which may be chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "move_page(-1)", show=False),
        Binding("pagedown", "move_page(1)", show=False),
        Binding("home", "move_to(0)", show=False),
        Binding("end", "move_to(-1)", show=False),
        Binding("enter", "choose", "Open", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--cursor"}
    DEFAULT_CSS = """
    Rows { overflow-x: hidden; }
    Rows > .rows--cursor { background: $surface-lighten-1; }
    Rows:focus > .rows--cursor {
        background: $block-cursor-background;
        color: $block-cursor-foreground;
    }
    """

    class Chosen(Message):
        """Enter, or a click on the line that is marked already."""

        def __init__(self, rows: Rows, index: int) -> None:
            super().__init__()
            self.rows, self.index = rows, index

        @property
        def control(self) -> Rows:
            return self.rows

    def __init__(
        self, *, name: str, title: str, cursor: bool = True, in_ascii: bool = False
    ) -> None:
        super().__init__(id=name)
        self.border_title = Content(plain_ascii(title) if in_ascii else title)
        self._in_ascii = in_ascii
        self.cursor: int | None = 0 if cursor else None
        self.moved = False  # by a person
        self.follow = False
        self.term = ""
        self._count = 0
        self._draw: Callable[[int, int], Line] = lambda _index, _width: ()

    def fill(self, count: int, draw: Callable[[int, int], Line]) -> None:
        """Show other lines: `draw` gives one by its number and a width."""
        grown = count != self._count
        self._count, self._draw = count, draw
        if grown:
            self.virtual_size = Size(self.size.width, count)
        if self.cursor is not None:
            self.cursor = min(self.cursor, max(0, count - 1))
        self.call_after_refresh(self.keep_following)
        self.refresh()

    def keep_following(self) -> None:
        """Go to the last line, unless a person looks back."""
        if self.follow:  # by force: before its first refresh it does not know that it can scroll
            self.scroll_end(animate=False, immediate=True, force=True)
            self.vertical_scrollbar.position = self.scroll_y

    def point_at(self, index: int) -> None:
        """Mark a line and bring it into view."""
        if self.cursor is None or not self._count:
            return
        self.cursor = min(max(0, index), self._count - 1)
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)
        self.refresh()

    def find(self, term: str, step: int) -> int | None:
        """Bring the next line with the term into view, upwards (-1) or downwards (1)."""
        self.term = term.casefold()
        self.refresh()
        if not term or not self._count:
            return None
        start = int(self.scroll_y) + (self.size.height - 1 if step < 0 and self.follow else 0)
        for distance in range(1 - (self.follow and step < 0), self._count + 1):
            index = (start + step * distance) % self._count
            if self.term in plain(self._draw(index, 10_000)).casefold():
                self.follow = False
                self.scroll_to(y=index, animate=False, immediate=True)
                return index
        return None

    def matches(self) -> int:
        """How many lines carry the term."""
        lines = (plain(self._draw(index, 10_000)).casefold() for index in range(self._count))
        return sum(self.term in text for text in lines) if self.term else 0

    # --- drawing -----------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        here = index == self.cursor
        style = self.get_visual_style("rows--cursor") if here else self.visual_style
        if index >= self._count or width <= 0:
            return Strip.blank(max(0, width), self.visual_style.rich_style)
        line = self._draw(index, width)
        if here and self.app.no_color:
            line = tuple((text, Tone.FOUND) for text, _ in line)
        elif here and self.has_focus:  # colours would not show on the cursor's own
            line = tuple((text, Tone.STRONG if tone else tone) for text, tone in line)
        shown = content(_highlighted(line, self.term), in_ascii=self._in_ascii)
        strips = Visual.to_strips(self, shown, width, 1, style)
        return strips[0].extend_cell_length(width, style.rich_style).crop(0, width)

    def on_resize(self, _: Resize) -> None:
        self.virtual_size = Size(self.size.width, self._count)
        self.call_after_refresh(self.keep_following)

    # --- moving ------------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        if self.cursor is None:
            self._scroll(by)
        else:
            self.moved = True
            self.point_at(self.cursor + by)

    def action_move_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - 1))

    def action_move_to(self, index: int) -> None:
        last = self._count - 1
        if self.cursor is None:
            self._scroll(self._count if index else -self._count)
        else:
            self.moved = True
            self.point_at(last if index else 0)

    def action_choose(self) -> None:
        if self.cursor is not None and self._count:
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: Click) -> None:
        """The first click marks a line, a click on a marked one opens it."""
        at = event.get_content_offset(self)
        if at is None or self.cursor is None:
            return
        index = at.y + int(self.scroll_y)
        if index >= self._count:
            return
        if index == self.cursor and (self.moved or event.chain > 1):
            self.action_choose()
        self.moved = True
        self.cursor = index
        self.refresh()

    def on_mouse_scroll_up(self, _: MouseScrollUp) -> None:
        self.follow = False

    def _scroll(self, by: int) -> None:
        target = self.scroll_y + by
        self.follow = self.follow and by > 0
        self.scroll_to(y=target, animate=False, immediate=True)


class Search(Field):
    """The line below `Rows` that takes a term; hidden until somebody searches."""

    def __init__(self, rows: Rows, placeholder: str, *, step: int) -> None:
        super().__init__(placeholder, name="find")
        self._rows, self._step = rows, step
        self.display = False

    def begin(self) -> None:
        self.display = True
        self.focus()

    def end(self) -> bool:
        """Hide it; False where nobody searched."""
        searched, self.display = self.display, False
        if searched:
            self._rows.find("", self._step)
            self._rows.focus()
        return searched

    @on(Input.Submitted)
    def _find(self, event: Input.Submitted) -> None:
        if self._rows.find(event.value, self._step) is None and event.value:
            self.notify("not found", timeout=2)


def _highlighted(line: Line, term: str) -> Line:
    """The line with what was searched for set apart."""
    if not term or term not in plain(line).casefold():
        return line
    done: list[Span] = []
    for text, tone in line:
        done += _split(text, tone, term)
    return tuple(done)


def _split(text: str, tone: Tone, term: str) -> Sequence[Span]:
    folded, parts, start = text.casefold(), [], 0
    if len(folded) != len(text):  # casefolding changed lengths: positions would be wrong
        return [(text, tone)]
    while (at := folded.find(term, start)) >= 0:
        parts += [(text[start:at], tone), (text[at : at + len(term)], Tone.FOUND)]
        start = at + len(term)
    return [*parts, (text[start:], tone)]
