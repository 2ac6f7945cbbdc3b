"""A real, headless Chromium, steered through the pipe it offers to debuggers.

Commands and events are JSON ended by NUL on two file descriptors; no library, no port, no network.
Everything the page tries to load and everything it complains about is kept.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.tools import TOOLS

NAMES = TOOLS["chromium"]
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
_TIMEOUT_S = 60.0
_ON_3_AND_4 = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_chromium() -> str:
    """The browser on this machine; says how to get one where there is none."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    raise FileNotFoundError(
        f"none of {', '.join(NAMES)} is on PATH: install it, e.g. `apt-get install chromium`"
    )


class Page:
    """One page, and what it did while it was looked at."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._buffer = b""
        self._last = 0
        self._session = ""
        self.requests: list[str] = []
        self.complaints: list[str] = []

    def attach(self) -> None:
        """Open a page and listen to all it does."""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        attached = self.command("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime", "Audits"):
            self.command(f"{domain}.enable")

    def show(self, path: Path, *, width: int = 1100, dark: bool = False) -> None:
        """Load a file from disk at that width."""
        self.visit(path.as_uri(), width=width, dark=dark)

    def visit(self, url: str, *, width: int = 1100, height: int = 900, dark: bool = False) -> None:
        """Load an address on a screen of that size."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])
        self.requests.clear()
        self.complaints.clear()
        self.command("Page.navigate", url=url)
        self._wait_for("Page.loadEventFired")

    def until(self, expression: str, timeout: float = _TIMEOUT_S) -> None:
        """Wait until a JavaScript expression is true, over page loads too."""
        deadline = time.monotonic() + timeout
        while not self.value(expression):
            assert time.monotonic() < deadline, f"it never became true: {expression}"
            time.sleep(0.1)

    def press(self, key: str, text: str = "") -> None:
        """A key of the keyboard, down and up."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}.get(key, 0)
        known: dict[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        typed = {"text": text} if text else {}
        self.command("Input.dispatchKeyEvent", type="keyDown", **known, **typed)
        self.command("Input.dispatchKeyEvent", type="keyUp", **known)

    def names(self) -> list[tuple[str, str]]:
        """Role and name of everything a screen reader finds."""
        nodes = self.command("Accessibility.getFullAXTree")["nodes"]
        return [
            (one["role"]["value"], one.get("name", {}).get("value", ""))
            for one in nodes
            if not one["ignored"]
        ]

    def value(self, expression: str) -> Any:
        """What a JavaScript expression says about the page."""
        answer = self.command("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def screenshot(self, *, whole: bool = True) -> bytes:
        """The page as PNG."""
        shot = self.command(
            "Page.captureScreenshot",
            format="png",
            captureBeyondViewport=whole,
            optimizeForSpeed=False,
        )
        return base64.b64decode(shot["data"])

    def pdf(self) -> bytes:
        """The page as it would be printed."""
        return base64.b64decode(self.command("Page.printToPDF")["data"])

    def command(self, method: str, /, **params: Any) -> dict[str, Any]:
        """Ask the browser and wait for its answer; events in between are noted."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result

    def _wait_for(self, event: str) -> None:
        while self._receive().get("method") != event:
            pass

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + _TIMEOUT_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            chunk = os.read(self._from, 1 << 20)
            assert chunk, "the browser is gone"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method in ("Runtime.exceptionThrown", "Audits.issueAdded"):
            self.complaints.append(json.dumps(params)[:500])
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(params["args"])[:500])


@contextmanager
def browser(cwd: Path) -> Iterator[Page]:
    """A browser with a profile of its own, gone afterwards."""
    # Its sockets need a short path: the directory of a test may be too long for one.
    with tempfile.TemporaryDirectory(prefix="c-", ignore_cleanup_errors=True) as home:
        ours_in, its_out = _high(os.pipe())
        its_in, ours_out = _high(os.pipe())
        command = [find_chromium(), *FLAGS, f"--user-data-dir={home}/profile"]
        process = subprocess.Popen(
            [sys.executable, "-c", _ON_3_AND_4, str(its_in), str(its_out), *command],
            env={**os.environ, "HOME": home, "TMPDIR": home},
            cwd=cwd,
            pass_fds=(its_in, its_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(its_in)
        os.close(its_out)
        try:
            page = Page(ours_out, ours_in)
            page.attach()
            yield page
            page.command("Browser.close")
        finally:
            os.close(ours_out)
            os.close(ours_in)
            _wait(process)


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _high(pipe: tuple[int, int]) -> tuple[int, int]:
    """The same pipe, away from the numbers the browser expects its own ends at."""
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in pipe]
    for end in pipe:
        os.close(end)
    return high[0], high[1]
