"""Sending messages on a thread of its own.

`Notifier.on_event` never waits, never raises, never prints; what could not be sent is kept as words
for whoever closes it.  Programs get an argv and a deadline, never a shell; a command of the work
tree, which agents may have changed by then, runs where `begin` lets it.
"""

import html
import os
import queue
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from ralphloop.config.model import NotifySection
from ralphloop.core.events import LoopEvent
from ralphloop.errors import RalphError
from ralphloop.notify.messages import Decider, Message
from ralphloop.proc import programs
from ralphloop.proc.programs import Beginning
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
# How a command of the settings is begun: its words and its environment, in a sandbox or not.
Begin = Callable[[Sequence[str]], Beginning]


# Where the page shows a story, or all of it; empty where nobody serves one.
PageOf = Callable[[str], str]


def no_page(_story: str) -> str:
    return ""


def as_it_is(argv: Sequence[str]) -> Beginning:
    """As the person would start it."""
    return Beginning(argv, os.environ)


class Notifier:
    def __init__(
        self,
        config: NotifySection,
        *,
        cwd: Path | None = None,
        secrets: Iterable[str] = (),
        channels: Sequence[Channel] | None = None,
        begin: Begin = as_it_is,
        page_of: PageOf = no_page,
    ) -> None:
        self._page_of = page_of
        self._channels = channels_for(config, cwd, begin) if channels is None else channels
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
        shown = msgspec.structs.replace(message, page=self._page_of(message.story))
        title = redact(shown.title, self._secrets)
        text = redact(f"{shown.text} {shown.way}", self._secrets)
        self._queue.put(msgspec.structs.replace(shown, title=title, text=text))

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
        return _run(_own("osascript", *script, message.title, message.text))
    # The body is markup there; the title is not.
    text = html.escape(message.text, quote=False)
    return _run(_own("notify-send", "--app-name=ralph", "--", message.title, text))


def _own(program: str, *words: str) -> Beginning:
    """A program of this machine, never one that an agent could have put on PATH."""
    return Beginning((programs.find(program) or program, *words), programs.trusted_environment())


def to_command(
    message: Message,
    argv: Sequence[str],
    cwd: Path | None,
    timeout_s: float = _TIMEOUT_S,
    begin: Begin = as_it_is,
) -> str:
    """A command that reads the message as JSON on its standard input."""
    try:
        beginning = begin(argv)
    except (OSError, RalphError) as error:
        return f"notification: {argv[0]} could not be started: {error}"
    return _run(
        beginning, msgspec.json.encode(message), cwd=cwd, timeout_s=timeout_s, named=argv[0]
    )


def channels_for(config: NotifySection, cwd: Path | None, begin: Begin = as_it_is) -> list[Channel]:
    found: list[Channel] = []
    if config.desktop:
        found.append(to_desktop)
    if config.command:
        found.append(partial(to_command, argv=config.command, cwd=cwd, begin=begin))
    if config.urls or config.webhook:
        from ralphloop.notify.services import send_to_address, send_to_webhook

        found += [partial(send_to_address, address=address) for address in config.urls]
        if config.webhook:
            private = config.webhook_private
            found.append(partial(send_to_webhook, url=config.webhook, private=private))
    return found


def unsendable(config: NotifySection) -> list[str]:
    """What would keep messages from being sent, as far as it can be known beforehand."""
    bubble = "osascript" if sys.platform == "darwin" else "notify-send"
    wanted = [bubble] if config.desktop else []
    wanted += config.command[:1]
    gone = [program for program in wanted if shutil.which(program) is None]
    found = [f"notifications: {program} was not found" for program in gone]
    return [*found, *_unusable_addresses(config)]


def not_installed(config: NotifySection) -> str:
    """What to install where the addresses of the settings need it; else nothing."""
    if not (config.urls or config.webhook):
        return ""
    from ralphloop.notify.services import NOT_INSTALLED, is_installed

    return "" if is_installed() else NOT_INSTALLED


def _unusable_addresses(config: NotifySection) -> Iterator[str]:
    if problem := not_installed(config):
        yield problem
        return
    if not (config.urls or config.webhook):
        return
    from ralphloop.notify.services import wrong_address, wrong_webhook

    problems = [wrong_address(address) for address in config.urls]
    problems += [wrong_webhook(config.webhook)] if config.webhook else []
    yield from filter(None, problems)


def _run(
    beginning: Beginning,
    stdin: bytes = b"",
    *,
    cwd: Path | None = None,
    timeout_s: float = _TIMEOUT_S,
    named: str = "",
) -> str:
    name = named or Path(beginning.argv[0]).name
    where = ""
    if beginning.confined:
        where = ", in the sandbox, because it is a command of the work tree"
    try:
        ended = run_command(
            beginning.argv,
            cwd=cwd,
            env=beginning.env,
            stdin=stdin,
            timeout_s=timeout_s,
            output=Output.NOTHING,
        )
    except (OSError, ValueError) as error:
        return f"notification: {name} could not be started: {error}"
    if ended.timed_out:
        return f"notification: {name} did not end within {timeout_s:g} s{where}"
    return f"notification: {name} ended with {ended.returncode}{where}" if ended.returncode else ""
