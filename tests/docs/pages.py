"""Pages that are run: what a reader would type, and what they were told they would see.

In a block tagged `console` a line that begins with `$ ` is typed; what follows it is what comes of
it, where `…` stands for anything (alone on its line: for any lines).  Without such lines only the
exit code counts: 0, unless the line says `# exit code N`.  A line that ends with `⏎` shows an answer
typed behind a question, one that ends with a key behind `[q]uit` shows that key; such a command runs
on a terminal of its own.  A block that begins with a comment of nothing but a path is that file.
Blocks that are only to be looked at are tagged `text`.
"""

from __future__ import annotations

import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fcntl import ioctl
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)
_CODE = re.compile(r"#.*\bexit code (\d+)")
_TYPED = re.compile(r"(?P<question>.*: )(?P<answer>.*)⏎|(?P<menu>.*\[q\]uit )(?P<key>\w)")
_PATIENCE_S = 240


@dataclass
class Command:
    """One line that is typed, and what is shown below it."""

    typed: str
    shown: list[str] = field(default_factory=list)

    @property
    def code(self) -> int:
        """How it ends."""
        found = _CODE.search(self.typed)
        return int(found[1]) if found else 0

    @property
    def answers(self) -> list[tuple[str, str]]:
        """What is typed while it runs: behind which words, and which keys."""
        found = [match for line in self.shown if (match := _TYPED.fullmatch(line))]
        return [(it["question"] or it["menu"], it["key"] or f"{it['answer']}\r") for it in found]

    @property
    def keystrokes(self) -> int:
        """All keys, Enter included; a comment is not typed."""
        line = self.typed.partition("  #")[0].rstrip()
        return len(line) + 1 + sum(len(keys) for _, keys in self.answers)

    def agrees(self, output: str) -> bool:
        """Whether this came of it."""
        if not self.shown:
            return True
        lines = (r"(?:.*\n)*?" if line.strip() == "…" else _line(line) for line in self.shown)
        return re.fullmatch("".join(lines), f"{output.rstrip()}\n") is not None


def _line(shown: str) -> str:
    """What a shown line stands for."""
    words = (re.escape(part) for part in shown.removesuffix("⏎").rstrip().split("…"))
    return ".*".join(words) + r"[ ]*\n"


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """The language and the text of every block of a page."""
    yield from _BLOCK.findall(page.read_text(encoding="utf-8"))


def file_in(text: str) -> str:
    """The path of a file that a block is to be saved as: the comment it begins with."""
    found = re.match(r"(?:#!.*\n)?# ([\w./-]+)\n", text)
    return found[1] if found else ""


def commands(text: str) -> list[Command]:
    """What is typed in a block."""
    found: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        elif found and found[-1].typed.endswith("\\"):
            found[-1].typed += f"\n{line}"
        elif found:
            found[-1].shown.append(line)
    return found


@dataclass
class Shell:
    """Where a page is run: a directory to begin in, and an environment."""

    start: Path
    env: Mapping[str, str]

    @property
    def here(self) -> Path:
        """Where the last command left us."""
        place = Path(self.env["HOME"]) / "where"
        return Path(place.read_text().strip()) if place.exists() else self.start

    def save(self, name: str, text: str) -> None:
        """What a reader does with a block that names a file."""
        path = self.here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if text.startswith("#!") else 0o644)

    def run(self, command: Command) -> tuple[int, str]:
        """The exit code and everything that was printed."""
        here = str(self.here)
        script = f"trap 'pwd > \"$HOME/where\"' EXIT\n{command.typed}\n"
        argv = ["bash", "-c", script]
        if command.answers:
            return self._on_terminal(argv, here, command.answers)
        done = subprocess.run(
            argv,
            cwd=here,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        return done.returncode, _plain(done.stdout)

    def _on_terminal(
        self, argv: list[str], here: str, answers: list[tuple[str, str]]
    ) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        process = subprocess.Popen(
            argv, cwd=here, env=dict(self.env), stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        said, seen, waiting = "", 0, list(answers)
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until and (chunk := _chunk(ours)) is not None:
            said += chunk
            words = waiting[0][0].replace("…", "").strip()[-20:] if waiting else ""
            # Not before it is silent: what comes while a terminal changes its mode is lost.
            if waiting and not chunk and words in said[seen:]:
                seen = said.index(words, seen) + len(words)
                os.write(ours, waiting.pop(0)[1].encode())
        os.close(ours)
        if time.monotonic() >= until:
            process.kill()
        return process.wait(), _plain(said)


def _chunk(terminal: int) -> str | None:
    """What came since; nothing yet is empty, the end is None."""
    if not select.select([terminal], [], [], 0.5)[0]:
        return ""
    try:
        return os.read(terminal, 65_536).decode("utf-8", "replace") or None
    except OSError:  # Linux' way to say that the other side is closed
        return None


def _plain(text: str) -> str:
    """As one sees it: without colours and carriage returns."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r\n", "\n").replace("\r", "")
