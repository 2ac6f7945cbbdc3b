"""The journal's head, known outside: whether what is in it is what ralph wrote there.

Every row that is believed later adds its keyed fingerprint to one sum; events are only shown,
requests are signed by themselves.  Triggers of our connection, never in the file, hand over each
row that goes or comes, so it costs microseconds however long the night is.  Number and sum are
signed with a key of the user's state directory, which has the last number safe on disk too.

A journal is believed if its signature is ours, its rows add up, and its number is not below the one
known outside.  A foreign signature is never renewed, and rows that did not add up never do; only
`adopt` counts anew, for a person who has looked.  An agent without a sandbox could read the key.
"""

import os
import sqlite3
from contextlib import suppress
from enum import StrEnum
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ralphloop.atomic import temporary_name
from ralphloop.errors import NotTrusted, RepositoryError
from ralphloop.room import file_of, read_state, state_directory, write_state

_TABLES: Final = (
    "runs", "states", "iterations", "stories", "interventions", "waits", "meta",
)  # fmt: skip
_SIZE = 32
_HEAD_SIZE = 40  # longer than any, so that the newest covers the one before
_WHOLE = 1 << (8 * _SIZE)


class Belief(StrEnum):
    OURS = "ours"
    FOREIGN = "foreign"  # not signed by us: from elsewhere, or from before there were signatures
    CHANGED = "changed"  # signed by us once, and not what we wrote last


class SignedSum(NamedTuple):
    seq: int  # of the transaction that signed it
    total: int  # over all rows that are believed


class RowChain:
    """The running sum of one writing connection."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._db = connection
        self._place = os.fsencode(path.resolve())
        self._file = file_of("heads", path.resolve(), os.environ)
        self._key = _key()
        self._moved = 0
        self._newest: dict[str, tuple[tuple[object, ...], int]] = {}  # by table, with its value
        self._touched = self._is_ours = False
        self._seq = 0
        self._sum = 0
        self._outside: int | None = None  # the head's file, kept open while we write

    def belief(self) -> Belief:
        """Whether what is in the file is what we wrote; reads all of it."""
        found = self._signed()
        if found is None:
            rows = (f"SELECT 1 FROM {table} LIMIT 1" for table in self._present())  # noqa: S608
            is_empty = not any(self._db.execute(sql).fetchone() for sql in rows)
            return Belief.OURS if self._key and is_empty else Belief.FOREIGN
        is_ours = found.seq >= self._known() and found.total == self._counted()
        return Belief.OURS if is_ours else Belief.CHANGED

    def _signed(self) -> SignedSum | None:
        """The newest sum in the file; None where none of ours is there."""
        try:
            row = self._db.execute("SELECT seq, total, mac FROM seal").fetchone()
        except sqlite3.OperationalError:
            return None  # from before there were any
        if row is None or not self._key or not isinstance(row[1], bytes):
            return None
        seq = int(row[0])
        total = int.from_bytes(row[1], "big")
        return SignedSum(seq, total) if self._mac(seq, total) == row[2] else None

    def _present(self) -> list[str]:
        return [table for table in _TABLES if self._columns(table)]

    def _counted(self) -> int:
        total = 0
        for table in self._present():
            for row in self._db.execute(f"SELECT {self._columns(table)} FROM {table}"):  # noqa: S608
                total += self._fingerprint(table, tuple(row))
        return total % _WHOLE

    def _columns(self, table: str) -> str:
        names = self._db.execute(f"PRAGMA table_info({table})").fetchall()
        return ", ".join(row[1] for row in names)

    def _fingerprint(self, table: str, row: tuple[object, ...]) -> int:
        said = repr((table, row)).encode("utf-8", "backslashreplace")
        return int.from_bytes(blake2b(said, key=self._key, digest_size=_SIZE).digest(), "big")

    def _mac(self, seq: int, total: int) -> bytes:
        said = repr((self._place, seq, total)).encode()
        return blake2b(said, key=self._key, digest_size=_SIZE, person=b"ralph head").digest()

    def _known(self) -> int:
        try:
            head = msgspec.json.decode(read_state(self._file) or b"{}", type=dict[str, int])
        except msgspec.DecodeError:
            return 0  # the signature still tells whose it is
        return head.get("seq", 0)

    def attach(self) -> None:
        """From now on every change of a row moves the sum."""
        if not self._key:
            return
        self._db.execute("PRAGMA temp_store = MEMORY")
        self._db.execute("PRAGMA recursive_triggers = ON")  # else a replaced row goes unseen
        self._db.create_function("ralph_gone", -1, partial(self._move, -1))
        self._db.create_function("ralph_came", -1, partial(self._move, 1))
        made = []
        for table in _TABLES:
            names = self._columns(table).split(", ")
            gone = f"SELECT ralph_gone('{table}', OLD.{', OLD.'.join(names)});"
            came = f"SELECT ralph_came('{table}', NEW.{', NEW.'.join(names)});"
            for event, words in (("INSERT", came), ("DELETE", gone), ("UPDATE", gone + came)):
                made.append(
                    f"CREATE TEMP TRIGGER seal_{table}_{event} AFTER {event} ON main.{table}"
                    f" BEGIN {words} END;"
                )
        self._db.executescript("BEGIN;" + "".join(made) + "COMMIT;")

    def _move(self, sign: int, table: str, *row: object) -> None:
        # What goes is most often what came last: the state of a long run has 90 KB.
        last, known = self._newest.get(table, ((), 0))
        value = known if row == last else self._fingerprint(table, row)
        self._newest[table] = row, value
        self._moved += sign * value
        self._touched = True

    def begin(self) -> None:
        """At the begin of a transaction: go on from what the last writer signed."""
        found = self._signed()
        self._is_ours = found is not None
        start = found or SignedSum(0, 0)
        self._seq = start.seq
        self._sum = start.total
        self._moved = 0
        self._touched = False

    def finish(self) -> None:
        """At its end: sign the new sum, unless the old one was not ours."""
        if self._touched and self._is_ours:
            self._sign(self._seq + 1, (self._sum + self._moved) % _WHOLE)

    def adopt(self) -> None:
        """Sign everything as it is now; inside of a transaction."""
        if self._key:
            self._sign(max(self._seq, self._known()) + 1, self._counted())
            self._touched = False
            self._is_ours = True

    def _sign(self, seq: int, total: int) -> None:
        signed = (seq, total.to_bytes(_SIZE, "big"), self._mac(seq, total))
        sql = "INSERT OR REPLACE INTO seal (id, seq, total, mac) VALUES (1, ?, ?, ?)"
        self._db.execute(sql, signed)
        self._seq = seq
        self._sum = total

    def publish(self) -> None:
        """After a transaction that is safe on disk: nobody may come back with less."""
        if not self._is_ours or self._file is None:
            return
        # Not synced: the signature in the file tells as much, this only keeps older copies out.
        known = msgspec.json.encode({"seq": self._seq}).ljust(_HEAD_SIZE)
        with suppress(RepositoryError, OSError):
            if self._outside is None:
                write_state(self._file, known, durable=False)
                self._outside = os.open(self._file, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            os.pwrite(self._outside, known, 0)

    def close(self) -> None:
        if self._outside is not None:
            os.close(self._outside)
            self._outside = None


def insist(belief: Belief, path: Path) -> None:
    if belief is Belief.OURS:
        return
    why = (
        "was not written by this ralph in this place (it came from elsewhere, or from a version"
        " before journals were signed)"
        if belief is Belief.FOREIGN
        else "was changed by something else since ralph wrote it last"
    )
    raise NotTrusted(
        f"the journal {path} {why}; it can be read, but it is not believed",
        "Look at it with `ralph status` and `ralph report`, then accept it: ralph trust --journal."
        f" Or begin anew without it: mv '{path}' '{path}.old'",
    )


def _key() -> bytes:
    """The key of this user, made once; empty where it cannot be kept."""
    directory = state_directory(os.environ)
    path = directory / "heads" / "key" if directory else None
    if path is None:
        return b""
    if found := read_state(path):
        return found
    new = path.with_name(temporary_name())
    try:
        write_state(new, os.urandom(_SIZE))
        with suppress(FileExistsError):  # another process was quicker: its key counts
            path.hardlink_to(new)
    except (RepositoryError, OSError):
        return b""
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)
    return read_state(path) or b""
