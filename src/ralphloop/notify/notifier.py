"""Events in, messages out, on a thread of its own.

`on_event` only decides and queues: it never waits, never raises, never prints.  What could not be
sent is kept as words for whoever closes the notifier.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from ralphloop.config.model import NotifySection
from ralphloop.notify.channels import Channel, channels_for
from ralphloop.notify.messages import Decider, Message
from ralphloop.redaction import redact

_MOST_PROBLEMS = 10
_PATIENCE_S = 20.0


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

    def on_event(self, line: Mapping[str, Any]) -> None:
        """Take one event of the run, in the shape of `ralph run --json`."""
        if not self._channels:
            return
        try:
            message = self._decider.on_event(line)
        except (TypeError, ValueError, ArithmeticError) as error:
            self._note(f"notification: an event could not be read: {error}")
            return
        if message is not None:
            self._start()
            self._queue.put(self._redacted(message))

    def close(self, patience_s: float = _PATIENCE_S) -> tuple[str, ...]:
        """Wait a little for what is still to be sent; returns all problems in words."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(patience_s)
            if self._thread.is_alive():
                self._note("notification: the last one was not sent in time")
        return tuple(self._problems)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_all, name="notify", daemon=True)
            self._thread.start()

    def _send_all(self) -> None:
        while (message := self._queue.get()) is not None:
            for channel in self._channels:
                try:
                    problem = channel.send(message)
                except Exception as error:  # noqa: BLE001 - one channel must not silence the others
                    problem = f"notification: {type(error).__name__}: {error}"
                self._note(problem)

    def _redacted(self, message: Message) -> Message:
        return msgspec.structs.replace(
            message,
            title=redact(message.title, self._secrets),
            text=redact(message.text, self._secrets),
        )

    def _note(self, problem: str) -> None:
        if problem and len(self._problems) < _MOST_PROBLEMS:
            self._problems.setdefault(redact(problem, self._secrets))
