"""JSON-RPC 2.0, one message a line: what came, or what is wrong with it.

Batches are no part of the revisions that are spoken here, and are refused as one message.
"""

from enum import IntEnum
from typing import TypeAlias

import msgspec

from ralphloop.core.model import Value

LONGEST_MESSAGE = 1 << 20
Id: TypeAlias = str | int
Json: TypeAlias = dict[str, object]


class ErrorCode(IntEnum):
    """The codes of JSON-RPC that are used here."""

    PARSE = -32_700
    REQUEST = -32_600
    METHOD = -32_601
    PARAMS = -32_602


class RpcRequest(Value, kw_only=True):
    """It waits for an answer under its id."""

    id: Id
    method: str
    params: Json


class Notification(Value, kw_only=True):
    """Nobody waits for an answer."""

    method: str
    params: Json


class Malformed(Value, kw_only=True):
    """What is answered to a line that is no message."""

    id: Id | None = None
    code: ErrorCode
    words: str


class _Wire(msgspec.Struct):
    jsonrpc: str = ""
    method: str | None = None
    id: Id | msgspec.UnsetType | None = msgspec.UNSET
    params: Json = {}


_DECODER = msgspec.json.Decoder(_Wire)


def read(line: bytes) -> RpcRequest | Notification | Malformed | None:
    """What a line says; None for an answer, since nothing is asked from here."""
    if len(line) > LONGEST_MESSAGE:
        return Malformed(code=ErrorCode.REQUEST, words="the message is too long")
    try:
        found = _DECODER.decode(line)
    except msgspec.ValidationError as error:
        return Malformed(code=ErrorCode.REQUEST, words=f"not a request: {error}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Malformed(code=ErrorCode.PARSE, words="not a line of JSON")
    if found.jsonrpc != "2.0":
        words = 'not a request: "jsonrpc" has to be "2.0"'
        return Malformed(id=_known(found.id), code=ErrorCode.REQUEST, words=words)
    if found.method is None:
        return None
    if found.id is msgspec.UNSET:
        return Notification(method=found.method, params=found.params)
    if found.id is None:
        return Malformed(code=ErrorCode.REQUEST, words="not a request: its id is null")
    return RpcRequest(id=found.id, method=found.method, params=found.params)


def result(answers: Id, what: Json) -> bytes:
    """The answer to a request, as a line."""
    return _line({"jsonrpc": "2.0", "id": answers, "result": what})


def error(answers: Id | None, code: ErrorCode, words: str) -> bytes:
    """What is answered where a request cannot be answered, as a line."""
    return _line({"jsonrpc": "2.0", "id": answers, "error": {"code": code, "message": words}})


def _known(given: Id | msgspec.UnsetType | None) -> Id | None:
    return None if given is msgspec.UNSET else given


def _line(what: Json) -> bytes:
    return msgspec.json.encode(what) + b"\n"
