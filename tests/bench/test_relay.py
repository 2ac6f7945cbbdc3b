"""The relay before a real model: it passes on, counts, and stops at its budget."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from benchmarks.nights.live import Relay, usage_in
from benchmarks.nights.measure import PRICES
from tests.e2e.model_server import ALWAYS, ModelServer, Usage, say

ASKED = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
BILL = Usage(input=1_000, output=100, cache_read=50, cache_write=20)


def ask(url: str, *, stream: bool) -> bytes:
    """What a client gets."""
    body = json.dumps({**ASKED, "stream": stream}).encode()
    request = urllib.request.Request(f"{url}/v1/messages", data=body, method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        whole: bytes = answer.read()
    return whole


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_is_passed_on_and_counted(tmp_path: Path, stream: bool) -> None:
    """The client gets what the provider said; the tokens are those that stand in it."""
    with ModelServer(root=tmp_path) as server, Relay(server.url, 1.0, PRICES) as relay:
        server.play(say("Good evening.", usage=BILL))
        assert b"Good" in ask(relay.url, stream=stream)
        assert relay.billed == BILL


def test_nothing_is_asked_once_the_money_is_spent(tmp_path: Path) -> None:
    """The request that passes the limit is paid; the next one is refused and reaches nobody."""
    with ModelServer(root=tmp_path) as server, Relay(server.url, 0.001, PRICES) as relay:
        server.play(say("Yes.", usage=BILL, times=ALWAYS))
        ask(relay.url, stream=False)
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(relay.url, stream=False)
        assert refused.value.code == 400
        assert b"budget" in refused.value.read()
        assert len(server.requests) == 1


def test_numbers_of_a_stream_are_not_added_up_twice() -> None:
    """A stream says its tokens at the beginning and, grown, at the end."""
    stream = b'{"usage": {"input_tokens": 5, "output_tokens": 1}} {"usage": {"output_tokens": 40}}'
    assert usage_in(stream) == Usage(input=5, output=40)
