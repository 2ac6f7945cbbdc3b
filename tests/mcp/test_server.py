"""Calls wait for their turn, and can be taken back; what a tool does wrong ends nothing."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from ralphloop.errors import UsageError
from ralphloop.mcp.server import OfferedTool, Server

PATIENCE_S = 30


class Nothing(msgspec.Struct):
    """No argument."""


class Wires:
    """Both ends of a conversation with a server in a thread."""

    def __init__(self, server: Server) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self._out = os.fdopen(ours_out, "wb", buffering=0)
        self._in = os.fdopen(ours_in, "rb")
        self._theirs = (os.fdopen(theirs_in, "rb"), os.fdopen(theirs_out, "wb"))
        self._serving = threading.Thread(target=server.serve, args=self._theirs)
        self._serving.start()

    def tell(self, method: str, number: int | None = None, **params: Any) -> None:
        """A request, or without a number a notification."""
        said: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            said["id"] = number
        self._out.write(json.dumps(said).encode() + b"\n")

    def call(self, number: int, name: str) -> None:
        """Call a tool."""
        self.tell("tools/call", number, name=name, arguments={})

    def hear(self) -> dict[str, Any]:
        """The next answer."""
        found: dict[str, Any] = json.loads(self._in.readline())
        return found

    def rest(self) -> list[dict[str, Any]]:
        """Close our side; what is answered until it ends."""
        self._out.close()
        self._serving.join(PATIENCE_S)
        assert not self._serving.is_alive()
        self._theirs[1].close()
        return [json.loads(line) for line in self._in]

    def close(self) -> None:
        """All ends."""
        for end in (self._out, self._in, *self._theirs):
            end.close()


@contextmanager
def wires(*tools: tuple[str, Callable[[Any], str]]) -> Iterator[Wires]:
    """A server of these tools that has been greeted."""
    offered = [OfferedTool(name, name, "Does it.", Nothing, does) for name, does in tools]
    server = Server(offered, version="1", instructions="", tidy=str)
    made = Wires(server)
    try:
        made.tell("initialize", 0, protocolVersion="2025-11-25")
        made.hear()
        yield made
    finally:
        made.close()


def test_a_call_that_is_taken_back_is_not_answered_or_not_even_begun() -> None:
    """The result of one that goes on is dropped, one that waits never runs, the next is answered."""
    has_begun, may_end = threading.Event(), threading.Event()
    ran = []

    def slow(_: Nothing) -> str:
        has_begun.set()
        assert may_end.wait(PATIENCE_S)
        return "slow"

    def quick(_: Nothing) -> str:
        ran.append("quick")
        return "quick"

    with wires(("slow", slow), ("quick", quick)) as it:
        it.call(1, "slow")
        assert has_begun.wait(PATIENCE_S)
        it.call(2, "quick")
        it.call(3, "quick")
        it.tell("notifications/cancelled", requestId=1)
        it.tell("notifications/cancelled", requestId=2)
        it.tell("ping", 4)
        assert it.hear()["id"] == 4
        may_end.set()
        assert [answer["id"] for answer in it.rest()] == [3]
        assert ran == ["quick"]


def test_an_id_that_is_waited_for_is_not_taken_again() -> None:
    """Two answers under one id could not be told apart."""
    may_end = threading.Event()

    def slow(_: Nothing) -> str:
        assert may_end.wait(PATIENCE_S)
        return "slow"

    with wires(("slow", slow)) as it:
        it.call(1, "slow")
        it.call(1, "slow")
        assert "still waited for" in it.hear()["error"]["message"]
        may_end.set()
        assert it.hear()["result"]["content"][0]["text"] == "slow"
        it.call(1, "slow")
        assert "result" in it.hear()


def test_what_goes_wrong_in_a_tool_is_told_and_the_next_call_is_answered() -> None:
    """An error of ours with its next step, any other one with its type."""

    def refuses(_: Nothing) -> str:
        raise UsageError("no run is going on", "ralph run")

    def breaks(_: Nothing) -> str:
        raise KeyError("x")

    with wires(("refuses", refuses), ("breaks", breaks)) as it:
        told = []
        for number, name in enumerate(["refuses", "breaks", "refuses"], start=1):
            it.call(number, name)
            result = it.hear()["result"]
            assert result["isError"]
            told.append(result["content"][0]["text"])
    expected = "error: no run is going on\nnext: ralph run"
    assert told == [expected, "internal error: KeyError: 'x'", expected]


def test_what_was_asked_before_the_end_is_answered() -> None:
    """A client that closes its side at once still gets every answer."""
    with wires(("quick", lambda _: "quick")) as it:
        for number in range(1, 6):
            it.call(number, "quick")
        assert [answer["id"] for answer in it.rest()] == [1, 2, 3, 4, 5]
