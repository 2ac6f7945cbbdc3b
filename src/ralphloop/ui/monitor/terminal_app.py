"""What all screens of ours in a terminal look like, whatever they show."""

import os
from typing import TypeVar

from textual.app import App

Ended = TypeVar("Ended")


class TerminalApp(App[Ended]):
    """Dark or light, without colours where the person wants none, and nothing that moves."""

    def __init__(self, *, in_ascii: bool, dark: bool) -> None:
        bare = bool(os.environ.get("NO_COLOR"))
        super().__init__(ansi_color=True if bare else None)
        self.theme = "textual-dark" if dark else "textual-light"
        if bare:
            self.theme = "ansi-dark"
        self.animation_level = "none"
        self.set_class(in_ascii, "-ascii")
