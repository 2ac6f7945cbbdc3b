"""Messages through apprise, against real servers on this machine; and nowhere else."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ralphloop.config.model import NotifySection
from ralphloop.notify.messages import Message
from ralphloop.notify.notifier import unsendable
from ralphloop.notify.services import (
    NOT_INSTALLED,
    is_public,
    send_to_address,
    send_to_webhook,
    wrong_webhook,
)
from tests.loop.projects import sandbox

MESSAGE = Message(
    id="r1/1-blocked", kind="blocked", title="shop: waits", text="Which one?", run="r1"
)


class Server(ThreadingHTTPServer):
    """Answers with the given codes, the last one for ever, and remembers what it was asked."""

    def __init__(self, *answers: int, location: str = "") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = list(answers)
        self.location = location
        self.paths: list[str] = []
        self.bodies: list[bytes] = []
        self.heads: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}/hook/secret-part?a=b%2Fc"

    @property
    def said(self) -> list[dict[str, object]]:
        """What was posted, as JSON."""
        return [json.loads(body) for body in self.bodies]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    def do_POST(self) -> None:
        """Remember it and answer."""
        server = self.server
        assert isinstance(server, Server)
        server.paths.append(self.path)
        server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
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


def post(url: str, *, deadline_s: float = 30.0) -> str:
    """Send to a webhook that may be on this machine, without real pauses."""
    return send_to_webhook(MESSAGE, url, private=True, pause_s=0.01, deadline_s=deadline_s)


# --- a webhook, as it always was ----------------------------------------------------------------


def test_a_message_is_one_post_with_json() -> None:
    """The receiver gets all of it and nothing else, at just that address, with a key."""
    with serving(204) as server:
        assert post(server.url) == ""
    assert server.said == [
        {
            "id": "r1/1-blocked",
            "kind": "blocked",
            "title": "shop: waits",
            "text": "Which one?",
            "run": "r1",
        }
    ]
    assert server.paths == ["/hook/secret-part?a=b%2Fc"]
    assert server.heads[0]["Content-Type"] == "application/json"
    assert server.heads[0]["Idempotency-Key"] == "r1/1-blocked"


@pytest.mark.parametrize("trouble", [500, 503, 429, 408])
def test_what_may_pass_is_tried_again(trouble: int) -> None:
    """Twice in trouble, then well: the same message three times, the same key."""
    with serving(trouble, trouble, 200) as server:
        assert post(server.url) == ""
    assert len(server.bodies) == 3
    assert {head["Idempotency-Key"] for head in server.heads} == {"r1/1-blocked"}


def test_after_three_times_it_gives_up_with_words() -> None:
    """The problem names host and answer, and never the rest of the address."""
    with serving(503) as server:
        problem = post(server.url)
    assert len(server.bodies) == 3
    assert problem.startswith("notification: webhook 127.0.0.1 did not take it: ")
    assert "503" in problem
    assert "secret-part" not in problem


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_never_followed(code: int) -> None:
    """Not even to another server that would answer well."""
    with serving(200) as other, serving(code, location=other.url) as server:
        problem = post(server.url)
    assert other.bodies == []
    assert str(code) in problem


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1"])
def test_private_addresses_are_refused_unless_allowed(host: str) -> None:
    """However the address of this machine is spelled, nothing is sent to it unasked."""
    with serving(200) as server:
        url = f"http://{host}:{server.server_port}/hook/secret-part"
        problem = send_to_webhook(MESSAGE, url, pause_s=0.01)
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
        problem = post(f"http://127.0.0.1:{port}/")
    assert problem.startswith("notification: webhook 127.0.0.1 did not take it")


def test_https_means_encrypted() -> None:
    """A server that speaks no TLS gets no message."""
    with serving(200) as server:
        problem = post(server.url.replace("http:", "https:"))
    assert server.bodies == []
    assert "did not take it" in problem


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
    for _ in range(200):  # or until whoever listens has left
        peer.sendall(b"H")
        time.sleep(0.05)


def _greet(peer: socket.socket) -> None:
    peer.recv(65_536)
    peer.sendall(b"220 mail.example.com ESMTP\r\n")


def test_a_peer_that_drips_cannot_hold_us() -> None:
    """Bytes that come one by one never run into a socket's timeout, but into ours."""
    began = time.monotonic()
    with talking(_drip) as url:
        problem = post(url, deadline_s=0.3)
        took = time.monotonic() - began
    assert "did not take it" in problem
    assert took < 8  # dripping goes on for ten seconds, three times


def test_an_answer_that_is_no_http_is_a_problem_in_words() -> None:
    """Some other service on that port is said, not raised."""
    with talking(_greet) as url:
        assert "webhook 127.0.0.1 did not take it" in post(url)


@pytest.mark.parametrize(
    "url",
    ["ftp://example.com/", "example.com/hook", "http://", "https://user:pw@example.com/", "http://[::1",
     "http://example.com:99999/", "file:///etc/passwd", "http://exa mple.com/\r\nX: y", "http://exämple.com/"],
)  # fmt: skip
def test_an_address_that_is_none_is_said_beforehand(url: str) -> None:
    """A mistake in the settings is known before the night, and nothing is tried."""
    assert wrong_webhook(url).startswith("notification: the webhook must be http(s)://")
    assert post(url) == wrong_webhook(url)


# --- services by their address ------------------------------------------------------------------


def test_a_service_gets_title_and_text() -> None:
    """Here one that takes plain JSON; a hundred others are an address each."""
    with serving(200) as server:
        address = f"json://127.0.0.1:{server.server_port}/any/topic"
        assert send_to_address(MESSAGE, address, pause_s=0.01) == ""
    assert server.said[0]["title"] == "shop: waits"
    assert server.said[0]["message"] == "Which one?"


def test_a_service_of_ones_own_is_spoken_to_in_its_own_way() -> None:
    """Ntfy on a machine of one's own: the topic is in the body, the text as ntfy wants it."""
    with serving(200) as server:
        address = f"ntfy://127.0.0.1:{server.server_port}/night-watch"
        assert send_to_address(MESSAGE, address, pause_s=0.01) == ""
    assert server.said[0]["topic"] == "night-watch"
    assert server.said[0]["message"] == "Which one?"


def test_a_service_that_refuses_is_named_without_its_secret() -> None:
    """The scheme is enough to know which line of the settings it is."""
    with serving(401) as server:
        address = f"gotify://127.0.0.1:{server.server_port}/AbCdEfGh12345678"
        problem = send_to_address(MESSAGE, address, pause_s=0.01)
    assert problem.startswith("notification: gotify://*** did not take it")
    assert "AbCdEfGh12345678" not in problem


def test_an_unknown_service_is_said_beforehand_without_its_secret() -> None:
    """With where to find those that are known."""
    problems = unsendable(NotifySection(urls=("slak://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXr",)))
    assert problems[0].startswith("notification: slak://*** is no address that apprise understands")
    assert "TIiajkdnlazkcOXr" not in problems[0]


def test_nothing_is_loaded_or_written_before_a_message(tmp_path: Path) -> None:
    """Whoever is not told anything pays nothing for it, and apprise keeps nothing on the disk."""
    code = (
        "import sys\n"
        "from ralphloop.config.model import NotifySection\n"
        "from ralphloop.notify.notifier import Notifier\n"
        "Notifier(NotifySection(urls=('ntfys://x',), webhook='https://example.com/'))\n"
        "assert 'apprise' not in sys.modules and 'requests' not in sys.modules\n"
        "from ralphloop.notify.services import wrong_address\n"
        "assert wrong_address('ntfys://x') == ''\n"
        "assert 'apprise' in sys.modules\n"
    )
    env = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", code], check=True, env=env, cwd=tmp_path, timeout=60)
    assert list(tmp_path.iterdir()) == []


WITHOUT_APPRISE = """
import importlib.util
found = importlib.util.find_spec
def find_spec(name, package=None):
    return None if name == "apprise" else found(name, package)
importlib.util.find_spec = find_spec
"""


def test_without_apprise_the_night_goes_on_and_says_what_to_install(tmp_path: Path) -> None:
    """The doctor says it, a run says it before its first start and ends as it would have."""
    box = sandbox(tmp_path, 'write("a.txt")\ndone()', toml='[notify]\nurls = ["ntfys://x"]\n')
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "sitecustomize.py").write_text(WITHOUT_APPRISE)

    def ralph(*words: str) -> subprocess.CompletedProcess[str]:
        env = box.environment({"PYTHONPATH": str(tmp_path / "without")})
        command = [sys.executable, "-m", "ralphloop", *words]
        return subprocess.run(
            command, cwd=box.root, env=env, capture_output=True, text=True, check=False, timeout=100
        )

    assert NOT_INSTALLED in " ".join(ralph("doctor").stdout.split())
    done = ralph("run", "--trust")
    assert done.returncode == 0, done.stderr
    assert NOT_INSTALLED in done.stderr
    assert 'pip install "ralphloop[notify]"' in NOT_INSTALLED


def test_without_an_address_nothing_has_to_be_installed() -> None:
    """Desktop and command need no package."""
    assert unsendable(NotifySection(command=("true",))) == []


def test_a_run_tells_a_service_how_it_ended(tmp_path: Path) -> None:
    """Through the front door, by an address in the environment, which no file of ours holds."""
    with serving(200) as server:
        box = sandbox(tmp_path, 'write("a.txt")\ndone()')
        address = f"json://127.0.0.1:{server.server_port}/n1ght-s3cret"
        done = box.run(env={"RALPH_NOTIFY_URLS": address})
    assert done.code == 0, done.err
    assert "all done" in str(server.said[0]["title"])
    kept = [path for path in (box.root / ".ralph").rglob("*") if path.is_file()]
    assert [path for path in kept if b"n1ght-s3cret" in path.read_bytes()] == []
