"""The ways a message can go; each returns why it could not be sent, or nothing.

Programs get an argv and a deadline, never a shell.
"""

from __future__ import annotations

import html
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from ralphloop.config.model import NotifySection
from ralphloop.notify.messages import Message
from ralphloop.proc.run import Output, run_command

_TIMEOUT_S = 15.0
_MAC = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


class Channel(Protocol):
    """One way to tell a person."""

    def send(self, message: Message) -> str:
        """Send it; returns the problem in words, or nothing."""


class Desktop:
    """A bubble on the screen of this machine."""

    def send(self, message: Message) -> str:
        """Show it by whatever program this system has for it."""
        if sys.platform == "darwin":
            script = [word for line in _MAC for word in ("-e", line)]
            return _run(["osascript", *script, message.title, message.text])
        # The body is markup there; the title is not.
        text = html.escape(message.text, quote=False)
        return _run(["notify-send", "--app-name=ralph", "--", message.title, text])


class Command:
    """A command that reads the message as JSON on its standard input."""

    def __init__(
        self, argv: Sequence[str], cwd: Path | None, timeout_s: float = _TIMEOUT_S
    ) -> None:
        self._argv, self._cwd, self._timeout_s = list(argv), cwd, timeout_s

    def send(self, message: Message) -> str:
        """Run it once."""
        body = msgspec.json.encode(message)
        return _run(self._argv, body, cwd=self._cwd, timeout_s=self._timeout_s)


def channels_for(config: NotifySection, cwd: Path | None) -> list[Channel]:
    """What the settings ask for."""
    found: list[Channel] = []
    if config.desktop:
        found.append(Desktop())
    if config.command:
        found.append(Command(config.command, cwd))
    if config.webhook:
        from ralphloop.notify.webhook import Webhook

        found.append(Webhook(config.webhook, private=config.webhook_private))
    return found


def unsendable(config: NotifySection) -> list[str]:
    """What would keep messages from being sent, as far as it can be known beforehand."""
    found = []
    bubble = "osascript" if sys.platform == "darwin" else "notify-send"
    for program in ([bubble] if config.desktop else []) + list(config.command[:1]):
        if shutil.which(program) is None:
            found.append(f"notifications: {program} was not found")
    if config.webhook:
        from ralphloop.notify.webhook import Webhook

        if problem := Webhook(config.webhook).problem:
            found.append(problem)
    return found


def _run(
    argv: list[str], stdin: bytes = b"", *, cwd: Path | None = None, timeout_s: float = _TIMEOUT_S
) -> str:
    try:
        ended = run_command(argv, cwd=cwd, stdin=stdin, timeout_s=timeout_s, output=Output.NOTHING)
    except (OSError, ValueError) as error:
        return f"notification: {argv[0]} could not be started: {error}"
    if ended.timed_out:
        return f"notification: {argv[0]} did not end within {timeout_s:g} s"
    return f"notification: {argv[0]} ended with {ended.returncode}" if ended.returncode else ""
