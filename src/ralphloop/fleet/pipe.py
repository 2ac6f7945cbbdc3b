"""A hand at the other end of a pipe, on this machine or through ssh."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ralphloop.fleet.carrier import Hear
from ralphloop.fleet.values import Beat, Ticket, Word
from ralphloop.proc.child import Child

_MOST_LINE = 1 << 20
_KEPT_ERRORS = 4_000
_GOES_S = 3.0
_ALIVE = msgspec.json.encode(Word()) + b"\n"


class HandPipe:
    """Starts a hand, tells it that somebody is there, and hears its beats."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self._child = Child(argv, env, cwd=cwd)
        self._line = b""
        self._errors = b""
        self.beat = Beat()

    async def say(self, word: Word) -> None:
        """Tell the hand something; nobody may be there any more."""
        with suppress(ValueError):  # the pipe is closed
            await self._child.write(msgspec.json.encode(word) + b"\n")

    async def hold(self, ticket: Ticket, hear: Hear, *, reassures: bool = True) -> Beat:
        """Hand over a ticket and hear the hand to its end; its last beat.

        `reassures`: that we hold the pipe is enough to know that somebody is there.
        """
        await self._child.write(msgspec.json.encode(ticket) + b"\n")
        alive = asyncio.create_task(self._reassure(ticket.lease_s / 6 if reassures else 0.0))
        errors = asyncio.create_task(self._child.read("stderr", self._take_errors))
        try:
            await self._child.read("stdout", lambda chunk: self._take(chunk, hear))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._child.exited(), _GOES_S)
        finally:
            for task in (alive, errors):
                task.cancel()
            await asyncio.gather(alive, errors, return_exceptions=True)
        return self.beat

    def said(self) -> str:
        """The end of what came by its standard error."""
        return self._errors.decode("utf-8", "replace").strip()

    @property
    def exit_code(self) -> int | None:
        """Of the program that leads there; None while it runs."""
        return self._child.exit_code

    def close(self) -> None:
        """Hang up: a hand that hears nobody stops its agent, and goes."""
        self._child.close()
        if self._child.exit_code is None:
            with suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGTERM)
            self._child.reap()

    async def _reassure(self, every_s: float) -> None:
        while every_s:
            await self._child.write(_ALIVE)
            await asyncio.sleep(every_s)

    def _take(self, chunk: bytes, hear: Hear) -> None:
        *lines, self._line = (self._line + chunk).split(b"\n")
        self._line = self._line[-_MOST_LINE:]
        for line in lines:
            with suppress(msgspec.DecodeError):  # a greeting of the other machine's shell
                self.beat = msgspec.json.decode(line, type=Beat)
                hear(self.beat)

    def _take_errors(self, chunk: bytes) -> None:
        self._errors = (self._errors + chunk)[-_KEPT_ERRORS:]
