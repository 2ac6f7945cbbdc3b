"""Keys with which what goes through a server is encrypted: one a line, in a file or a variable.

The first key of a list writes, all of them read: so a new key is first added behind the others on
every machine, then put first, and the old one goes last.  A key is known by an id made from it, so
there is nothing beside a key that could be wrong; the id is no secret.
"""

import base64
import binascii
import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ralphloop.atomic import write_atomic
from ralphloop.config.model import FleetSection
from ralphloop.core import Value
from ralphloop.errors import InputError, UsageError, unreadable
from ralphloop.room import read_regular

_BYTES = 32
_ID_DIGITS = 8
_WORDS = b"ralph fleet key"
_MODE = 0o600
_MAKE = "ralph fleet key makes one."


class Key(Value, kw_only=True):
    """One key; its id may be shown to anybody."""

    secret: bytes

    @property
    def id(self) -> str:
        return hashlib.sha256(_WORDS + self.secret).hexdigest()[:_ID_DIGITS]

    @property
    def line(self) -> str:
        return base64.urlsafe_b64encode(self.secret).decode()

    def __repr__(self) -> str:
        return f"Key({self.id})"


def new_key() -> Key:
    return Key(secret=os.urandom(_BYTES))


def keys_in(text: str, place: str) -> tuple[Key, ...]:
    """The keys of a file or a variable; what is wrong is said without a word of it."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        word = line.partition("#")[0].strip()
        if not word:
            continue
        secret = b""
        with suppress(binascii.Error, ValueError):
            secret = base64.b64decode(word.encode("ascii"), altchars=b"-_", validate=True)
        if len(secret) != _BYTES:
            raise InputError(f"line {number} is no key of {_BYTES} bytes", _MAKE, place=place)
        found.append(Key(secret=secret))
    if not found:
        raise InputError("there is no key in it", _MAKE, place=place)
    return tuple(dict.fromkeys(found))


def keys_of(section: FleetSection, env: Mapping[str, str]) -> tuple[Key, ...]:
    """The keys that the settings name; none where they name none."""
    if section.codec_key_file and section.codec_key:
        raise InputError("a file and a variable are named; name one", place="fleet.codec_key")
    if section.codec_key:
        text = env.get(section.codec_key)
        if not text:
            words = f"the variable {section.codec_key} is not set"
            raise InputError(words, place="fleet.codec_key")
        return keys_in(text, section.codec_key)
    if not section.codec_key_file:
        return ()
    path = Path(section.codec_key_file).expanduser()
    return keys_in(_read(path), str(path))


def _read(path: Path) -> str:
    try:
        found = path.stat()
        text = read_regular(path)
    except OSError as error:
        step = f"Bring it here from a machine that has it, or make one: ralph fleet key {path}"
        raise InputError(f"{path}: {error.strerror}", step, place="fleet.codec_key_file") from None
    if found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) & 0o077:
        raise InputError(
            f"others on this machine can read {path}",
            f"chmod 600 {path}",
            place="fleet.codec_key_file",
        )
    return text.decode("utf-8", "replace")


def make_key(path: Path, *, add: bool) -> tuple[Key, ...]:
    """Write a new key to a file of one's own, or behind those that it has; all that are there."""
    made = new_key()
    if add:
        text = _read(path)
        keys = keys_in(text, str(path))
        write_atomic(path, f"{text.rstrip()}\n{made.line}\n".encode())
        return (*keys, made)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    except FileExistsError:
        raise UsageError(
            f"{path} is there already, and is left as it is",
            "--add puts another key behind those in it; or name another file",
        ) from None
    except OSError as error:
        raise unreadable(error, path) from None
    with os.fdopen(file, "wb") as out:
        out.write(f"{made.line}\n".encode())
    return (made,)


def why_apart(ours: Sequence[str], name: str, theirs: Sequence[str]) -> str:
    """Why we and a machine cannot read each other, by the ids of our keys; empty: we can."""
    if not ours and not theirs:
        return ""
    if not theirs:
        return f"{name} has no key, and this side encrypts with {ours[0]}"
    if not ours:
        return f"{name} encrypts with the key {theirs[0]}, and there is none here"
    if ours[0] not in theirs:
        return f"{name} does not have the key {ours[0]} of this side"
    if theirs[0] not in ours:
        return f"{name} encrypts with the key {theirs[0]}, which this side does not have"
    return ""
