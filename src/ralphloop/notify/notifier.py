"""Events in, messages out, on a thread of its own.

`on_event` only decides and queues: it never waits, never raises, never prints.  What could not be
sent is kept as words for whoever closes the notifier.

A channel sends one message and returns why it could not, or nothing.  Programs get an argv and a
deadline, never a shell.
"""

import html
import queue
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from ralphloop.config.model import NotifySection
from ralphloop.core.events import LoopEvent
from ralphloop.notify.messages import Decider, Message
from ralphloop.proc.run import Output, run_command
from ralphloop.redaction import redact

_MOST_PROBLEMS = 10
_PATIENCE_S = 20.0
_TIMEOUT_S = 15.0
_MAC = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)
Channel = Callable[[Message], str]


class Notifier:
    """Tells a person what a run is worth being told for."""

    def __init__(
        self,
        config: NotifySection,
        *,
        cwd: Path | None = None,
        secrets: Iterable[str] = (),
        channels: Sequence[Channel] | None = None,
    ) -> None:
        self._channels = channels_for(config, cwd) if channels is None else channels
        self._decider = Decider(config.most)
        self._secrets = tuple(secrets)
        self._queue: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._problems: dict[str, None] = {}

    def on_event(self, event: LoopEvent) -> None:
        if not self._channels or not (message := self._decider.on_event(event)):
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_all, name="notify", daemon=True)
            self._thread.start()
        title, text = (redact(words, self._secrets) for words in (message.title, message.text))
        self._queue.put(msgspec.structs.replace(message, title=title, text=text))

    def close(self, patience_s: float = _PATIENCE_S) -> tuple[str, ...]:
        """Wait a little for what is still to be sent; returns all problems in words."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(patience_s)
            if self._thread.is_alive():
                self._note("notification: the last one was not sent in time")
        return tuple(self._problems)

    def _send_all(self) -> None:
        while (message := self._queue.get()) is not None:
            for channel in self._channels:
                try:
                    problem = channel(message)
                except Exception as error:  # noqa: BLE001 - one channel must not silence the others
                    problem = f"notification: {type(error).__name__}: {error}"
                self._note(problem)

    def _note(self, problem: str) -> None:
        if problem and len(self._problems) < _MOST_PROBLEMS:
            self._problems.setdefault(redact(problem, self._secrets))


def to_desktop(message: Message) -> str:
    """A bubble on the screen of this machine, by whatever program this system has for it."""
    if sys.platform == "darwin":
        script = [word for line in _MAC for word in ("-e", line)]
        return _run(["osascript", *script, message.title, message.text])
    # The body is markup there; the title is not.
    text = html.escape(message.text, quote=False)
    return _run(["notify-send", "--app-name=ralph", "--", message.title, text])


def to_command(
    message: Message, argv: Sequence[str], cwd: Path | None, timeout_s: float = _TIMEOUT_S
) -> str:
    """A command that reads the message as JSON on its standard input."""
    return _run(list(argv), msgspec.json.encode(message), cwd=cwd, timeout_s=timeout_s)


def channels_for(config: NotifySection, cwd: Path | None) -> list[Channel]:
    found: list[Channel] = []
    if config.desktop:
        found.append(to_desktop)
    if config.command:
        found.append(partial(to_command, argv=config.command, cwd=cwd))
    if config.webhook:
        from ralphloop.notify.webhook import Webhook

        found.append(Webhook(config.webhook, private=config.webhook_private).send)
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
