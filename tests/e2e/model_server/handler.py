"""One connection: from a request to the answer that the script has for it.

Everything that can go wrong with a provider goes wrong here by script: errors, rate limits, lost
connections, silence.  A client that goes away is noticed at once, so a killed agent leaves no
thread waiting.
"""

from __future__ import annotations

import json
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Protocol, cast

from tests.e2e.model_server.anthropic import Anthropic
from tests.e2e.model_server.gemini import Gemini
from tests.e2e.model_server.openai_chat import OpenAIChat
from tests.e2e.model_server.openai_responses import OpenAIResponses
from tests.e2e.model_server.script import Failure, ToolUse, Turn
from tests.e2e.model_server.stage import Exchange, Stage
from tests.e2e.model_server.wire import Json, Piece, Wire

_LONGEST_BODY = 64 * 1024 * 1024
_ROUTES: tuple[tuple[re.Pattern[str], Wire], ...] = (
    (re.compile(r"/v1/messages(/count_tokens)?"), Anthropic()),
    (re.compile(r"/v1/responses"), OpenAIResponses()),
    (re.compile(r"/v1/chat/completions"), OpenAIChat()),
    (re.compile(r"/v1beta/models/[^/]+:\w+"), Gemini()),
)
_FILE_TOOLS = ("write", "edit", "read")
_NOW = re.compile(r"\{now\+(\d+)\}")


class ClientGone(Exception):
    """The client closed the connection before the answer was through."""


class Cut(Exception):
    """The script wants the connection lost."""


class _Server(Protocol):
    stage: Stage
    root: Path
    stopping: threading.Event


class Handler(BaseHTTPRequestHandler):
    """Answers requests by the script of its server."""

    protocol_version = "HTTP/1.1"

    @property
    def _theatre(self) -> _Server:
        return cast("_Server", self.server)

    def do_GET(self) -> None:
        """There are no models to list; the CLIs know their own."""
        self._send_json(200, {"object": "list", "data": [], "models": []})

    def do_POST(self) -> None:
        """Answer one request."""
        length = int(self.headers.get("content-length") or 0)
        wire = _wire_for(self.path.partition("?")[0])
        if wire is None or length > _LONGEST_BODY:
            self.close_connection = True
            self._send_json(404, {"error": {"message": f"not played here: {self.path}"}})
            return
        body: Json = json.loads(self.rfile.read(length) or b"{}")
        question = wire.question(self.path, body)
        exchange = self._theatre.stage.admit(
            path=self.path,
            wire=wire.name,
            question=question,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
        )
        self._perform(wire, exchange)

    def _perform(self, wire: Wire, exchange: Exchange) -> None:
        try:
            self._answer(wire, exchange)
            exchange.finished = True
        except Cut:
            self._lose_connection()
        except (ClientGone, ConnectionError):
            exchange.abandoned = True
            self.close_connection = True
        finally:
            exchange.settled = True

    def _answer(self, wire: Wire, exchange: Exchange) -> None:
        turn = _at_home(exchange.turn, self._theatre.root)
        self._wait(turn.delay_s)
        if turn.cut == "start":
            raise Cut
        # An answer in one piece cannot break off: it fails as a whole.
        if failure := turn.fail or (turn.break_off if not exchange.question.stream else None):
            self._refuse(wire, exchange, failure)
            return
        if exchange.question.side:
            turn = replace(turn, text=wire.side_answer(exchange.body))
        if exchange.question.stream:
            self._stream(wire, exchange, turn)
        else:
            answer = wire.whole(turn, exchange.question, exchange.number)
            self._send_pieces("application/json", exchange, turn, _halves(answer, turn))

    def _refuse(self, wire: Wire, exchange: Exchange, failure: Failure) -> None:
        exchange.status = failure.status
        failure = _timed(failure)
        if failure.body is not None:
            self._send(failure.status, "text/html", failure.body.encode(), failure.headers)
        else:
            self._send_json(failure.status, wire.failure(failure), failure.headers)

    def _stream(self, wire: Wire, exchange: Exchange, turn: Turn) -> None:
        pieces = list(wire.stream(turn, exchange.question, exchange.number))
        if turn.break_off:
            broken = Piece(wire.failure_event(_timed(turn.break_off), exchange.number))
            pieces = [*pieces[: len(pieces) // 2], broken]
        self._send_pieces("text/event-stream", exchange, turn, pieces)

    def _send_pieces(
        self, kind: str, exchange: Exchange, turn: Turn, pieces: Iterable[Piece]
    ) -> None:
        self._begin(200, kind, turn.headers, {"transfer-encoding": "chunked"})
        exchange.status = 200
        pieces = list(pieces)
        for index, piece in enumerate(pieces):
            if index == len(pieces) // 2:
                self._wait(turn.pause_s)
                if turn.cut == "middle":
                    raise Cut
            self._wait(turn.pace_s)
            self._send_chunk(piece.data)
            exchange.billed += piece.usage
        self._send_chunk(b"")

    # --- HTTP ----------------------------------------------------------------------------------

    def _begin(self, status: int, kind: str, *headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        for group in headers:
            for name, value in group.items():
                self.send_header(name, _with_time(value))
        self.end_headers()

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _send(self, status: int, kind: str, data: bytes, headers: Mapping[str, str]) -> None:
        self._begin(status, kind, headers, {"content-length": str(len(data))})
        self.wfile.write(data)

    def _send_json(self, status: int, data: Json, headers: Mapping[str, str] | None = None) -> None:
        self._send(status, "application/json", json.dumps(data).encode(), headers or {})

    def _lose_connection(self) -> None:
        """Reset the connection instead of closing it, as a broken network does."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            readable, _, _ = select.select([self.connection], [], [], min(left, 0.1))
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise ClientGone
            if self._theatre.stopping.is_set():
                raise Cut

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 its name in the library
        """Say nothing: the record is in the exchanges."""


def _wire_for(path: str) -> Wire | None:
    return next((wire for pattern, wire in _ROUTES if pattern.fullmatch(path)), None)


def _halves(answer: Json, turn: Turn) -> list[Piece]:
    data = json.dumps(answer).encode()
    return [Piece(data[: len(data) // 2]), Piece(data[len(data) // 2 :], turn.usage)]


def _at_home(turn: Turn, root: Path) -> Turn:
    """A turn whose file tools know where the project is; the CLIs want whole paths."""
    return replace(turn, tools=tuple(_placed(call, root) for call in turn.tools))


def _placed(call: ToolUse, root: Path) -> ToolUse:
    if call.name not in _FILE_TOOLS:
        return call
    place = str(root / str(call.arguments["path"]))
    return replace(call, arguments={**call.arguments, "path": place})


def _timed(failure: Failure) -> Failure:
    extra = {name: _time_in(value) for name, value in failure.extra.items()}
    return replace(failure, extra=extra)


def _time_in(value: Any) -> Any:
    """A value in which a time is filled in; a time alone becomes a number."""
    if not isinstance(value, str) or not _NOW.search(value):
        return value
    filled = _with_time(value)
    return int(filled) if filled.isdigit() else filled


def _with_time(text: str) -> str:
    return _NOW.sub(lambda match: str(int(time.time()) + int(match[1])), text)
