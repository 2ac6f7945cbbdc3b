"""Webhooks against real servers on this machine: retries, deadlines, and nowhere else."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ralphloop.notify.notifier import Message
from ralphloop.notify.webhook import Webhook, is_public

MESSAGE = Message(
    id="r1/1-blocked", kind="blocked", title="shop: waits", text="Which one?", run="r1"
)


class Server(ThreadingHTTPServer):
    """Answers with the given codes, the last one for ever, and remembers what it was asked."""

    def __init__(self, *answers: int, location: str = "") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = list(answers)
        self.location = location
        self.bodies: list[dict[str, str]] = []
        self.heads: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}/hook/secret-part?a=b"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    def do_POST(self) -> None:
        """Remember it and answer."""
        server = self.server
        assert isinstance(server, Server)
        assert self.path == "/hook/secret-part?a=b"
        length = int(self.headers["Content-Length"])
        server.bodies.append(json.loads(self.rfile.read(length)))
        server.heads.append(dict(self.headers))
        answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
        self.send_response(answer)
        if server.location:
            self.send_header("Location", server.location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


@contextmanager
def serving(*answers: int, location: str = "") -> Iterator[Server]:
    """A server for the time of a test."""
    with Server(*answers, location=location) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def hook(url: str, pauses: list[float] | None = None, timeout_s: float = 5.0) -> Webhook:
    """A webhook that may talk to this machine and does not really pause."""
    return Webhook(url, private=True, timeout_s=timeout_s, sleep=(pauses or []).append)


def test_a_message_is_one_post_with_json() -> None:
    """The receiver gets all of it, and a key to recognise it by."""
    with serving(204) as server:
        assert hook(server.url).send(MESSAGE) == ""
    assert server.bodies == [
        {
            "id": "r1/1-blocked",
            "kind": "blocked",
            "title": "shop: waits",
            "text": "Which one?",
            "run": "r1",
        }
    ]
    assert server.heads[0]["Content-Type"] == "application/json"
    assert server.heads[0]["Idempotency-Key"] == "r1/1-blocked"


@pytest.mark.parametrize("trouble", [500, 503, 429, 408])
def test_what_may_pass_is_tried_again_with_growing_pauses(trouble: int) -> None:
    """Twice in trouble, then well: the same message three times, the same key."""
    pauses = [0.0]
    with serving(trouble, trouble, 200) as server:
        assert hook(server.url, pauses).send(MESSAGE) == ""
    assert len(server.bodies) == 3
    assert {head["Idempotency-Key"] for head in server.heads} == {"r1/1-blocked"}
    assert pauses == [0.0, 2.0, 4.0]


def test_after_three_times_it_gives_up_with_words() -> None:
    """The problem names the host and never the rest of the address."""
    with serving(503) as server:
        problem = hook(server.url).send(MESSAGE)
    assert len(server.bodies) == 3
    assert problem == "notification: webhook 127.0.0.1 answered 503"


@pytest.mark.parametrize("answer", [400, 401, 404, 410])
def test_a_clear_no_is_not_repeated(answer: int) -> None:
    """Asking again would not change the answer."""
    with serving(answer) as server:
        assert hook(server.url).send(MESSAGE).endswith(f"answered {answer}")
    assert len(server.bodies) == 1


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_never_followed(code: int) -> None:
    """Not even to another server that would answer well."""
    with serving(200) as other, serving(code, location=other.url) as server:
        problem = hook(server.url).send(MESSAGE)
    assert other.bodies == []
    assert len(server.bodies) == 1
    assert "redirects, which is not followed" in problem


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1"])
def test_private_addresses_are_refused_unless_allowed(host: str) -> None:
    """However the address of this machine is spelled, nothing is sent to it unasked."""
    pauses = [0.0]
    with serving(200) as server:
        url = f"http://{host}:{server.server_port}/hook/secret-part?a=b"
        problem = Webhook(url, sleep=pauses.append).send(MESSAGE)
    assert server.bodies == []
    assert "webhook_private" in problem or "cannot be reached" in problem
    assert "secret-part" not in problem


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.9.9", "169.254.169.254", "100.64.0.1",
        "0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0", "fd00::1",
        "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1",
    ],
)  # fmt: skip
def test_addresses_behind_the_wall_are_not_public(address: str) -> None:
    """Private, local, shared, multicast, and the same wrapped in IPv6."""
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::101:101"]
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    """Those are what webhooks are for."""
    assert is_public(address)


def test_nobody_listening_is_a_problem_in_words() -> None:
    """A closed port is said, not raised."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        problem = hook(f"http://127.0.0.1:{port}/").send(MESSAGE)
    assert problem.startswith("notification: webhook 127.0.0.1 cannot be reached")


def test_https_means_encrypted() -> None:
    """A server that speaks no TLS gets no message."""
    with serving(200) as server:
        problem = hook(server.url.replace("http:", "https:")).send(MESSAGE)
    assert server.bodies == []
    assert "cannot be reached" in problem


@contextmanager
def talking(say: Callable[[socket.socket], None]) -> Iterator[str]:
    """A service that is no web server; gives its address."""
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                peer, _ = listening.accept()
                with peer:
                    say(peer)
            except OSError:
                continue  # nobody came, or whoever came has left

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            over.set()
            thread.join()


def _drip(peer: socket.socket) -> None:
    while True:  # until whoever listens has left
        peer.sendall(b"H")
        time.sleep(0.05)


def _greet(peer: socket.socket) -> None:
    peer.recv(65_536)
    peer.sendall(b"220 mail.example.com ESMTP\r\n")


def test_a_peer_that_drips_cannot_hold_us() -> None:
    """Bytes that come one by one never run into a socket's timeout, but into ours."""
    with talking(_drip) as url:
        problem = hook(url, timeout_s=0.3).send(MESSAGE)
    assert "127.0.0.1" in problem


def test_an_answer_that_is_no_http_is_a_problem_in_words() -> None:
    """Some other service on that port is said, not raised."""
    with talking(_greet) as url:
        assert "webhook 127.0.0.1 does not speak HTTP" in hook(url).send(MESSAGE)


@pytest.mark.parametrize(
    "url",
    ["ftp://example.com/", "example.com/hook", "http://", "https://user:pw@example.com/", "http://[::1",
     "http://example.com:99999/", "file:///etc/passwd", "http://exa mple.com/\r\nX: y", "http://exämple.com/"],
)  # fmt: skip
def test_an_address_that_is_none_is_said_beforehand(url: str) -> None:
    """A mistake in the settings is known before the night, and nothing is tried."""
    webhook = Webhook(url, private=True, sleep=_fail)
    assert webhook.problem.startswith("notification: the webhook must be http(s)://")
    assert webhook.send(MESSAGE) == webhook.problem


def _fail(_: float) -> None:
    raise AssertionError("nothing should be tried again")
