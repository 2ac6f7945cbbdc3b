"""Who may open the page: addresses that work once, and the devices that used one.

An address printed in a terminal carries a *ticket*, good for one use within a quarter of an hour;
the browser that brings it becomes a *device* and gets a cookie.  Both are kept as digests, so
reading the file opens nothing, where no agent in a sandbox can look.  The file is read again
whenever it changed: another process may forget every device, and the page obeys at once.

Everything lies below an unguessable *path*.  Cookies know no ports: without it a browser would hand
ours to whatever else serves on this machine, such as the very program that the agent is writing.
It stays, so that a bookmark and a cookie outlive the server.

Each project has visitors of its own, and so has the page of all projects (`ralph serve --all`): who
was let in to the one is a stranger at the other.
"""

import fcntl
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ralphloop.night.watch import Mark, mark_of
from ralphloop.proc.process_table import started_at
from ralphloop.room import file_of, read_state, write_state

TICKET_S = 15 * 60.0
DEVICE_S = 30 * 86_400.0
_MOST_TICKETS = 10
_MOST_DEVICES = 20
_SAME_START_S = 2.0


class Entrance(msgspec.Struct, frozen=True):
    """A ticket or a device: the digest of what has to be brought, and until when it counts."""

    digest: str
    until: float


class Visitors(msgspec.Struct, frozen=True):
    path: str = ""
    addresses: tuple[str, ...] = ()  # where the page is served now, or was last
    server: tuple[int, float] = (0, 0.0)  # process and when it began
    tickets: tuple[Entrance, ...] = ()
    devices: tuple[Entrance, ...] = ()


class Devices:
    """The visitors of one project's page, or of the page of all projects."""

    def __init__(
        self, root: Path | None, env: Mapping[str, str], clock: Callable[[], float] = time.time
    ) -> None:
        # No project lies at a relative path.
        self._file = file_of("page", root.resolve() if root else Path("all"), env)
        self._clock = clock
        self._mark: Mark | None = None
        self._kept = Visitors()

    @property
    def kept(self) -> Visitors:
        """What the file says now; nothing where it cannot be read."""
        mark = mark_of(self._file) if self._file else None
        if mark is None or mark != self._mark:
            self._mark = mark
            self._kept = self._read()
        return self._kept

    @property
    def is_served(self) -> bool:
        """Whether the process that last served the page still does."""
        pid, began = self.kept.server
        since = started_at(pid) if pid else None
        return since is not None and abs(since - began) <= _SAME_START_S

    def open_at(self, addresses: tuple[str, ...], server: tuple[int, float]) -> None:
        """The page is served there from now on, below its path."""
        with self._changing() as change:
            path = self.kept.path or secrets.token_urlsafe(12)
            change(path=path, addresses=addresses, server=server)

    def issue_ticket(self) -> str:
        """A new word that lets one browser in."""
        word = secrets.token_urlsafe(32)
        with self._changing() as change:
            new = Entrance(_digest(word), self._clock() + TICKET_S)
            change(tickets=(*self._valid(self.kept.tickets), new)[-_MOST_TICKETS:])
        return word

    def exchange(self, word: str) -> str | None:
        """The cookie of a new device for a ticket, which is used up by it; None for any other."""
        with self._changing() as change:
            found = _find(word, self._valid(self.kept.tickets))
            if found is None:
                return None
            cookie = secrets.token_urlsafe(32)
            new = Entrance(_digest(cookie), self._clock() + DEVICE_S)
            change(
                tickets=tuple(one for one in self.kept.tickets if one.digest != found.digest),
                devices=(*self._valid(self.kept.devices), new)[-_MOST_DEVICES:],
            )
        return cookie

    def known(self, cookies: Iterable[str]) -> str | None:
        """The cookie among these that a device was given; None where there is none."""
        devices = self._valid(self.kept.devices)
        return next((cookie for cookie in cookies if _find(cookie, devices)), None)

    def forget(self) -> int:
        """Nobody is known any more; how many devices were."""
        with self._changing() as change:
            count = len(self._valid(self.kept.devices))
            change(tickets=(), devices=())
        return count

    def _valid(self, entrances: Iterable[Entrance]) -> tuple[Entrance, ...]:
        now = self._clock()
        return tuple(one for one in entrances if one.until > now)

    def _read(self) -> Visitors:
        try:
            return msgspec.json.decode(read_state(self._file) or b"{}", type=Visitors)
        except msgspec.DecodeError:
            return Visitors()  # then every device has to come again

    @contextmanager
    def _changing(self) -> Iterator[Callable[..., None]]:
        """Read, change and write with nobody in between."""
        if self._file is None or not self._file.exists():
            write_state(self._file, msgspec.json.encode(Visitors()))  # or says why it cannot

        def change(**new: object) -> None:
            write_state(self._file, msgspec.json.encode(replace(self.kept, **new)))
            self._mark = None

        with (self._file or Path()).with_suffix(".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._mark = None
            yield change


def form_word(cookie: str) -> str:
    """What every form of a device carries, so that only a page of ours can have sent it."""
    return hmac.new(cookie.encode(), b"form", hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    """Compared in constant time, whatever they hold."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _digest(word: str) -> str:
    return hashlib.sha256(word.encode("utf-8", "replace")).hexdigest()


def _find(word: str, entrances: Iterable[Entrance]) -> Entrance | None:
    """The one the word belongs to; all are compared, so that time tells nothing."""
    digest = _digest(word)
    return next(iter([one for one in entrances if hmac.compare_digest(one.digest, digest)]), None)
