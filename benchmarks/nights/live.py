"""A real model behind the nights: a relay on loopback that counts, and stops at a budget.

Every supervisor talks to the relay; it passes requests on with the key of the person who asked for
this, reads the tokens out of the answers, and refuses everything once the money is spent.
"""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.request
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast

from tests.e2e.model_server import Prices, Usage

PROVIDER = "https://api.anthropic.com"
_LONGEST_S = 600.0
_CHUNK = 64 * 1024
_LONGEST_BODY = 64 * 1024 * 1024
_HOP = {"host", "connection", "content-length", "accept-encoding", "transfer-encoding"}
_COUNTS = re.compile(
    rb'"(input_tokens|output_tokens|cache_read_input_tokens|cache_creation_input_tokens)"\s*:\s*(\d+)'
)
_NAMES = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_input_tokens": "cache_read",
    "cache_creation_input_tokens": "cache_write",
}


def usage_in(answer: bytes) -> Usage:
    """The tokens that an answer states; a stream says them more than once, growing."""
    found = dict[str, int]()
    for name, number in _COUNTS.findall(answer):
        key = _NAMES[name.decode()]
        found[key] = max(found.get(key, 0), int(number))
    return Usage(**found)


class Relay:
    """Passes requests on, and adds up what they cost; use it as a context manager."""

    def __init__(self, upstream: str, budget_usd: float, prices: Prices) -> None:
        self.upstream = upstream.rstrip("/")
        self.budget_usd = budget_usd
        self.prices = prices
        self._lock = threading.Lock()
        self._billed = Usage()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.relay = self  # type: ignore[attr-defined]  # how a handler finds it
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def billed(self) -> Usage:
        with self._lock:
            return self._billed

    @property
    def is_spent(self) -> bool:
        return self.billed.cost(self.prices) >= self.budget_usd

    def add(self, usage: Usage) -> None:
        """Count what an answer cost."""
        with self._lock:
            self._billed += usage


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _relay(self) -> Relay:
        return cast("Any", self.server).relay  # type: ignore[no-any-return]  # set by the relay

    def do_POST(self) -> None:
        """Pass one request on, unless the money is spent."""
        length = int(self.headers.get("content-length") or 0)
        if length > _LONGEST_BODY:
            self.close_connection = True
            self._refuse(413, "too long for the relay")
            return
        body = self.rfile.read(length)
        if self._relay.is_spent:
            self._refuse(400, "the budget of this benchmark is spent")
            return
        kept = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        request = urllib.request.Request(
            self._relay.upstream + self.path, data=body, headers=kept, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=_LONGEST_S) as answer:
                self._pass_back(answer.status, answer.headers, answer)
        except urllib.error.HTTPError as error:
            with error:
                self._pass_back(error.code, error.headers, error)
        except OSError as error:
            self._refuse(502, f"the provider cannot be reached: {error}")

    def _pass_back(self, status: int, headers: Message, answer: Any) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        whole = bytearray()
        try:
            while part := answer.read1(_CHUNK):
                whole += part
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
                self.wfile.flush()
        finally:
            # Before the client can know that it is over: its next request has to find it counted.
            if status == HTTPStatus.OK:
                self._relay.add(usage_in(bytes(whole)))
        self.wfile.write(b"0\r\n\r\n")

    def _refuse(self, status: int, words: str) -> None:
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
        data = json.dumps(error).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 its name in the library
        """Say nothing: what counts is added up."""
