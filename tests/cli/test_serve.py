"""`ralph serve` through the front door: a real server, real requests, real signals."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from ralphloop.proc.run import ourselves
from tests.conftest import RunRalph
from tests.starting import Started
from tests.ui.monitor_nights import Night, running
from tests.ui.page_visits import Answered


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Night]:
    """An agent works on the fourth story."""
    night = running(tmp_path / "shop")
    with night.held():
        yield night


class Served:
    """A page that is being served."""

    def __init__(self, process: subprocess.Popen[bytes], address: str) -> None:
        self.process, self.address = process, address

    def ask(self, method: str, end: str = "", cookie: str = "", **fields: str) -> Answered:
        """One request to something below the path."""
        with self.open(method, end, cookie, **fields) as answer:
            headers = [(name.lower(), value) for name, value in answer.getheaders()]
            return Answered(answer.status, headers, answer.read())

    @contextmanager
    def open(
        self, method: str, end: str = "", cookie: str = "", **fields: str
    ) -> Iterator[http.client.HTTPResponse]:
        """The beginning of an answer."""
        parts = urlsplit(self.address)
        with closing(http.client.HTTPConnection(parts.netloc, timeout=20)) as link:
            headers = {"Origin": f"http://{parts.netloc}", "Cookie": cookie}
            if fields:
                headers["Content-Type"] = "application/x-www-form-urlencoded"
            link.request(method, f"{parts.path}{end}", urlencode(fields) or None, headers)
            with link.getresponse() as answer:
                yield answer

    def enter(self, address: str = "") -> str:
        """Use a printed address up; the cookie, or nothing."""
        token = urlsplit(address or self.address).query.removeprefix("token=")
        return self.ask("POST", "enter", token=token).header("set-cookie").partition(";")[0]


@contextmanager
def served(root: Path, *options: str, env: Mapping[str, str] | None = None) -> Iterator[Served]:
    """The real command, until it is ended."""
    pipe = subprocess.PIPE
    argv = [*ourselves(), "serve", *options]
    with Started[bytes](
        argv, cwd=root, env={**os.environ, **(env or {})}, stdout=pipe, stderr=pipe
    ) as process:
        try:
            assert process.stdout is not None
            yield Served(process, process.stdout.readline().decode().strip())
        finally:
            process.kill()


def test_the_printed_address_opens_the_page(night: Night) -> None:
    """Once, by a form; then the device is known and sees the run."""
    with served(night.project.root) as page:
        assert page.address.startswith("http://127.0.0.1:")
        asks = page.ask("GET", f"?{urlsplit(page.address).query}").text
        assert "Open ralph" in asks
        cookie = page.enter()
        assert page.enter() == ""
        shown = page.ask("GET", cookie=cookie).text
        assert "Checkout validates the address" in shown


def test_ending_it_ends_the_page_alone(night: Night) -> None:
    """Ctrl+C, also while a browser listens; what is said stands beside the address."""
    with served(night.project.root) as page:
        cookie = page.enter()
        assert page.process.stderr is not None
        with page.open("GET", "events", cookie) as listening:
            assert listening.readline() == b"event: parts\n"
            page.process.send_signal(signal.SIGINT)
            said = page.process.stderr.read().decode()
            assert page.process.wait(20) == 130
    assert "Only this machine reaches it" in said
    assert "Ctrl+C ends the page, not the run" in said
    assert night.requests() == []


def test_a_known_device_comes_back_after_a_kill(night: Night) -> None:
    """Same port, same path, same cookie."""
    with served(night.project.root) as page:
        cookie, before = page.enter(), urlsplit(page.address)
    with served(night.project.root) as page:
        after = urlsplit(page.address)
        assert (after.netloc, after.path) == (before.netloc, before.path)
        assert page.ask("GET", cookie=cookie).status == 200


def test_one_more_address_and_none_at_all(night: Night, run_ralph: RunRalph) -> None:
    """From another terminal, while the page is served."""
    root = night.project.root
    assert run_ralph("serve", "--new-token", cwd=root).returncode == 64
    with served(root) as page:
        more = run_ralph("serve", "--new-token", cwd=root)
        cookie = page.enter(more.stdout.strip())
        assert page.ask("GET", cookie=cookie).status == 200
        assert run_ralph("serve", "--revoke", cwd=root).stdout == "1 device forgotten.\n"
        assert page.ask("GET", cookie=cookie).status == 401


def test_a_port_that_is_taken_is_said(night: Night, run_ralph: RunRalph) -> None:
    """With what to do: the page may be served already."""
    with served(night.project.root) as page:
        port = urlsplit(page.address).port
        done = run_ralph("serve", "--port", str(port), cwd=night.project.root)
        assert (done.returncode, "--new-token" in done.stderr) == (75, True)


def test_without_the_extra_it_says_how_to_install_it(
    night: Night, run_ralph: RunRalph, tmp_path: Path
) -> None:
    """Everything else of ralph works without it."""
    (tmp_path / "none").mkdir()
    gone = "raise ModuleNotFoundError('gone', name='starlette')\n"
    (tmp_path / "none" / "starlette.py").write_text(gone)
    path = os.pathsep.join([str(tmp_path / "none"), os.environ.get("PYTHONPATH", "")])
    done = run_ralph("serve", cwd=night.project.root, env={"PYTHONPATH": path})
    assert (done.returncode, done.stdout) == (69, "")
    assert "not installed (starlette)" in done.stderr
    assert 'pip install "ralphloop[web]"' in done.stderr


def test_other_interfaces_are_asked_for_and_said(night: Night) -> None:
    """With what that means; names get an address of their own."""
    options = ("--host", "0.0.0.0", "--port", "0", "--name", "here.example", "--read-only")
    with served(night.project.root, *options) as page:
        assert page.process.stdout is not None
        assert page.process.stdout.readline().decode().startswith("https://here.example/")
        assert page.process.stderr is not None
        said = "".join(page.process.stderr.readline().decode() for _ in range(2))
    assert "Everybody who reaches 0.0.0.0 can ask for it, and nothing is encrypted" in said
    assert "it only shows" in said
