"""Watching for everybody who looks: one reader, however many browsers.

Pieces are rendered only when the journal changed, once.  A browser that reads slowly is waited for
and then gets the newest state: nothing is queued for anybody.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from ralphloop.ui.page.guard import Visitor
from ralphloop.ui.page.parts import Piece

MOST_STREAMS = 24
MOST_OF_ONE = 4  # of one device: browsers open six connections, and forms need one, too
_LOOK_S = 0.5
_BEAT_S = 15.0
_T = TypeVar("_T")
_Seen = TypeVar("_Seen")
_Found_co = TypeVar("_Found_co", covariant=True)
Seat = tuple[str, object]  # the device, and which of its windows


class Polled(Protocol[_Found_co]):
    """What is looked at; it belongs to one thread."""

    def poll(self) -> _Found_co | None:
        """What there is to see; None where nothing has changed."""

    def close(self) -> None: ...


class Board(NamedTuple, Generic[_Seen]):
    version: int
    facts: _Seen
    pieces: Mapping[str, Piece]


class Live(Generic[_Seen]):
    def __init__(
        self,
        source: Polled[_Seen],
        paint: Callable[[_Seen, float], Mapping[str, Piece]],
        *,
        nothing: _Seen,
        every_s: float = _LOOK_S,
    ) -> None:
        self._source = source
        self._paint = paint
        self._every_s = every_s
        # The journal belongs to the thread that opened it, and reading must not hold up the others.
        self._reader = ThreadPoolExecutor(1, "reader")
        self._board = Board(0, nothing, {})
        self._looking = asyncio.Lock()
        self._moved = asyncio.Condition()
        self._seats: list[Seat] = []  # of streams, the oldest first

    async def read(self, work: Callable[[], _T]) -> _T:
        """Do something that reads, without holding up the others."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, work)

    async def board(self) -> Board[_Seen]:
        async with self._looking:
            if new := await self.read(self._look):
                self._board = new
        if new:
            async with self._moved:
                self._moved.notify_all()
        return self._board

    def _look(self) -> Board[_Seen] | None:
        """A new one; None where nothing has changed."""
        facts = self._source.poll()
        before = self._board
        if facts is None and before.version:
            return None
        facts = before.facts if facts is None else facts
        return Board(before.version + 1, facts, self._paint(facts, time.time()))

    async def watch(self) -> None:
        """Look again and again while there are streams; runs as long as the server does."""
        while True:
            with suppress(Exception):  # one look that fails must not be the last
                if self._seats:
                    await self.board()
            await asyncio.sleep(self._every_s)

    def close(self) -> None:
        self._reader.submit(self._source.close)
        self._reader.shutdown()

    async def stream(
        self, visitor: Visitor, has: Mapping[str, str], is_known: Callable[[], bool]
    ) -> AsyncIterator[str]:
        """Server-sent events for one window of a device, until it goes or is known no more."""
        seat = (visitor.cookie, object())
        mine = [one for one in self._seats if one[0] == visitor.cookie]
        if len(mine) >= MOST_OF_ONE:  # the newest is looked at; the oldest may be long dead
            self._seats.remove(mine[0])
            async with self._moved:
                self._moved.notify_all()
        if len(self._seats) < MOST_STREAMS:
            self._seats.append(seat)
        try:
            async for told in self._changes(seat, visitor.word, dict(has)):
                if not is_known():
                    return
                yield told
            yield _event("full", [])
        finally:
            self._seats = [one for one in self._seats if one != seat]

    async def _changes(self, seat: Seat, word: str, has: dict[str, str]) -> AsyncIterator[str]:
        """The pieces a browser does not have, now and whenever they change, while it has a seat."""
        board: Board[_Seen] | None = await self.board()
        seen = 0
        while seat in self._seats:
            pieces: Mapping[str, Piece] = {}
            if board:
                seen = board.version
                pieces = board.pieces
            new = {name: one for name, one in pieces.items() if has.get(name) != one.digest}
            has |= {name: one.digest for name, one in new.items()}
            told = [[name, one.digest, one.of(word)] for name, one in new.items()]
            yield _event("parts", told)  # also an empty one: a sign of life
            board = await self._newer(seen, seat)

    async def _newer(self, than: int, seat: Seat) -> Board[_Seen] | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_BEAT_S), self._moved:
                while self._board.version <= than and seat in self._seats:
                    await self._moved.wait()
        return self._board if self._board.version > than else None


def _event(name: str, data: list[list[str]]) -> str:
    return f"event: {name}\ndata: {msgspec.json.encode(data).decode()}\n\n"
