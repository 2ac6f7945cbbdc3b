"""The pictures of the tutorial, drawn from what the real commands print: `make pictures`.

The project and the agent are those of `tests/docs/rooms.py`: a script plays the model, everything
else is real.  A picture is SVG with the reader's own fonts; nothing of it is drawn by hand.
"""

from __future__ import annotations

import asyncio
import io
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text
from textual.app import App

from ralphloop.cli.shared.review_deeds import ProjectDeeds
from ralphloop.night.review import review_list, review_story
from ralphloop.project import Project
from ralphloop.ui.monitor.app import Monitor
from ralphloop.ui.review.review_app import ReviewApp
from tests.docs import rooms
from tests.docs.pages import ROOT, Shell

IMAGES = ROOT / "docs" / "images"
COLUMNS = 100
_PATIENCE_S = 120.0
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.S)
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\x1b[=>]|\r(?!\n)")


class Picture(NamedTuple):
    """One command as it is shown."""

    name: str
    typed: str
    keys: str = ""  # that are pressed once it asks
    on_terminal: bool = True  # a run draws a clock there, which is no line to show
    most: int = 44  # lines


BEFORE = [
    Picture("tutorial-init", "ralph init", keys="\r"),
    Picture(
        "tutorial-stories",
        "ralph stories add \"Greet by name\" -c \"greet('Ada') returns 'Hello, Ada'\"",
    ),
    Picture("tutorial-dry-run", "ralph run --dry-run", most=30),
    Picture("tutorial-run", "ralph run", on_terminal=False),
]
AFTER = [
    Picture("tutorial-status", "ralph status"),
    Picture("tutorial-answer", "ralph answer"),
    Picture("tutorial-report", "ralph report", on_terminal=False, most=50),
]
MORE = 'ralph stories add "Greet in German" -c "german.greet(\'Ada\') greets in German"'


def main() -> int:
    """Draw them all; what was written."""
    with tempfile.TemporaryDirectory(prefix="pictures-") as place:
        room = rooms.shell(Path(place))
        room = Shell(room.start, {**room.env, "COLUMNS": str(COLUMNS), "RALPH_TRUST": "1"})
        rooms.in_project(room)
        for picture in BEFORE[:2]:
            draw(picture, room)
        run(MORE, room)
        run("git add -A && git commit -qm 'Set up ralph'", room)
        for picture in (*BEFORE[2:], *AFTER):
            draw(picture, room)
        project = Project(room.here)
        draw_screen("tutorial-monitor", "ralph monitor", lambda: Monitor(project))
        draw_screen("tutorial-review", "ralph review", lambda: review_screen(project))
    return 0


def draw(picture: Picture, room: Shell) -> None:
    """Run the command and write what it printed as a picture."""
    said = on_terminal(picture, room) if picture.on_terminal else run(picture.typed, room)
    home = str(room.start)
    lines = _CONTROL.sub("", said).replace("\r\n", "\n").replace(home, "~").rstrip().split("\n")
    if len(lines) > picture.most:
        lines = [*lines[: picture.most], "…"]
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "bold green"), (picture.typed, "bold")))
    console.print(Text.from_ansi("\n".join(lines)))
    made = console.export_svg(title="greeter", theme=MONOKAI, unique_id=picture.name)
    write(picture.name, made)


def draw_screen(name: str, title: str, make: Callable[[], App[Any]]) -> None:
    """A screen after the night, as the toolkit itself draws it."""

    async def look() -> str:
        app = make()
        async with app.run_test(size=(COLUMNS, 34)) as pilot:
            await pilot.pause(1.5)
            return app.export_screenshot(title=title)

    write(name, asyncio.run(look()))


def review_screen(project: Project) -> App[Any]:
    """The screen of `ralph review`, for what waits in a project."""
    listed = review_list(project)
    assert listed is not None
    return ReviewApp(
        listed,
        title=project.root.name,
        read=lambda entry: review_story(project, entry),
        deeds=ProjectDeeds(project),
    )


def write(name: str, svg: str) -> None:
    """Without fonts that would be fetched from elsewhere."""
    path = IMAGES / f"{name}.svg"
    path.write_text(_FONTS.sub("", svg), encoding="utf-8")
    sys.stdout.write(f"{path.relative_to(ROOT)}\n")


def run(typed: str, room: Shell) -> str:
    """What a command prints into a pipe, complaints included."""
    done = subprocess.run(
        ["bash", "-c", typed],
        cwd=room.here,
        env=dict(room.env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    return done.stdout


def on_terminal(picture: Picture, room: Shell) -> str:
    """What it prints on a terminal, with its colours; keys are pressed when it waits."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    process = subprocess.Popen(
        ["bash", "-c", picture.typed],
        cwd=room.here,
        env={**room.env, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    keys = list(picture.keys)
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        if not select.select([ours], [], [], 3.0)[0]:
            if keys:
                os.write(ours, keys.pop(0).encode())
            continue
        try:
            chunk = os.read(ours, 65_536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        said += chunk
    os.close(ours)
    process.wait(timeout=_PATIENCE_S)
    return said.decode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main())
