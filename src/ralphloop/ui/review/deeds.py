"""What the screen may ask for; who can do it hands it in.  The screen itself does none of it."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ralphloop.core.proposals import Proposal


class InTheWayOfIt(NamedTuple):
    """Why a story cannot be sent back alone."""

    lines: tuple[str, ...]
    can_go_together: bool  # what stands on it are stories, which can go as well


class DeedDone(NamedTuple):
    """What was done, and what became of which stories by it."""

    words: str
    open_again: tuple[str, ...] = ()
    waiting_again: tuple[str, ...] = ()  # what they had decided about these is undone


Choose = Callable[[InTheWayOfIt], str]  # "together", "follow_up" or "keep"


class Deeds(Protocol):
    """Each does what the command of that name does; what cannot be done is a RalphError."""

    def accept(self, story: str) -> DeedDone: ...
    def take_back(self, story: str) -> DeedDone: ...
    def send_back(self, story: str, why: str, choose: Choose) -> DeedDone: ...
    def ask(self, story: str, words: str) -> DeedDone: ...
    def make_story(self, one: Proposal, criterion: str) -> DeedDone: ...
    def drop(self, one: Proposal) -> DeedDone: ...
