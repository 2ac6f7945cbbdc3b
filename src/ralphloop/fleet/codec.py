"""What a Temporal server keeps, encrypted: tickets, beats, results and the words of failures.

Every payload becomes one of AES-GCM with the id of its key.  Whoever has a key reads nothing that
came in plain text: else a server could give orders of its own.  What cannot be read is not an error
here, since that would be a stack trace in the middle of somebody's night: it arrives as the reason
(`Illegible`), and whoever expected it refuses with these words.  Only such a refusal travels in
the open, since the other side could not read it otherwise; it names machines and ids of keys.
"""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.converter import (
    DataConverter,
    DefaultFailureConverterWithEncodedAttributes,
    PayloadCodec,
    default,
)

from ralphloop.errors import RalphError, UsageError
from ralphloop.fleet.keys import Key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_ENCODING = "encoding"
_PLAIN = b"json/plain"
_SEALED = b"binary/ralph-aes-gcm"
_KEY_ID = "ralph-key"
_NOTE = "ralph-note"  # of what only we mark; a server that forges it says no more than "refused"
_UNREADABLE = b"unreadable"
_OPEN = b"open"
_NONCE = 12


class Illegible(RalphError):
    """What came cannot be read here, and why."""


class SaidOpenly(Illegible):
    """What came was said without a key: it proves nothing of who said it."""


class Codec(PayloadCodec):
    """Encrypts with the first of its keys and reads with any; without keys all is plain text."""

    def __init__(self, keys: Sequence[Key] = ()) -> None:
        self.ids = tuple(key.id for key in keys)
        self._ciphers = _ciphers(keys)

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._sealed(it) for it in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._opened(it) for it in payloads]

    def _sealed(self, payload: Payload) -> Payload:
        if not self.ids or payload.metadata.get(_NOTE) == _OPEN:
            return payload
        key = self.ids[0]
        nonce = os.urandom(_NONCE)
        inside = self._ciphers[key].encrypt(nonce, payload.SerializeToString(), key.encode())
        metadata = {_ENCODING: _SEALED, _KEY_ID: key.encode()}
        return Payload(metadata=metadata, data=nonce + inside)

    def _opened(self, payload: Payload) -> Payload:
        if payload.metadata.get(_ENCODING) != _SEALED:
            if not self.ids or payload.metadata.get(_NOTE) == _OPEN:
                return payload
            return _unreadable("it came in plain text, and only what is encrypted is taken here")
        key = payload.metadata.get(_KEY_ID, b"").decode("ascii", "replace")[:80]
        if not self.ids:
            return _unreadable(f"it is encrypted with the key {key}, and no key is set here")
        if key not in self._ciphers:
            have = ", ".join(self.ids)
            return _unreadable(f"it is encrypted with the key {key}, and here is {have}")
        from cryptography.exceptions import InvalidTag

        data = payload.data
        try:
            inside = self._ciphers[key].decrypt(data[:_NONCE], data[_NONCE:], key.encode())
        except (InvalidTag, ValueError):
            return _unreadable(f"it was changed on its way (key {key})")
        return Payload.FromString(inside)


def _ciphers(keys: Sequence[Key]) -> Mapping[str, "AESGCM"]:
    if not keys:
        return {}
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        words = "encrypting what goes through a server needs the library cryptography"
        raise UsageError(words, "pip install 'ralphloop[fleet]'") from None
    return {key.id: AESGCM(key.secret) for key in keys}


def _noted(text: str, note: bytes) -> Payload:
    return Payload(metadata={_ENCODING: _PLAIN, _NOTE: note}, data=msgspec.json.encode(text))


def _unreadable(why: str) -> Payload:
    return _noted(why, _UNREADABLE)


def in_the_open(text: str) -> RawValue:
    """A text that is not encrypted, for somebody who has another key or none."""
    return RawValue(_noted(text, _OPEN))


def text_in(value: RawValue) -> str:
    """The text that came; raises where it cannot be read, or be relied on."""
    try:
        text = msgspec.json.decode(value.payload.data, type=str)
    except msgspec.DecodeError:
        raise Illegible("it is no text") from None
    note = value.payload.metadata.get(_NOTE)
    if note == _OPEN:
        raise SaidOpenly(text)
    if note == _UNREADABLE:
        raise Illegible(text)
    return text


def converter_with(codec: Codec) -> DataConverter:
    """How a client and its workers write and read everything."""
    from dataclasses import replace

    if not codec.ids:
        return replace(default(), payload_codec=codec)
    failures = DefaultFailureConverterWithEncodedAttributes
    return replace(default(), payload_codec=codec, failure_converter_class=failures)
