"""A client of `ralph mcp`: the real command, spoken to line by line."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ralphloop.proc.run import ourselves
from tests.starting import Started

REVISION = "2025-11-25"


class Client:
    """One conversation."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._next = 0

    def tell(self, what: object) -> None:
        """Send a message as it is."""
        assert self.process.stdin is not None
        line = what if isinstance(what, bytes) else json.dumps(what).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """The next line that is answered."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "it ended"
        found: dict[str, Any] = json.loads(line)
        assert found["jsonrpc"] == "2.0"
        return found

    def send(self, method: str, **params: Any) -> int:
        """Ask for something without waiting; its id."""
        self._next += 1
        self.tell({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._next

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask for something and wait for the answer to just that."""
        asked = self.send(method, **params)
        answer = self.hear()
        assert answer["id"] == asked
        return answer

    def greet(self, revision: str = REVISION) -> dict[str, Any]:
        """How every conversation begins."""
        about = {"name": "a test", "version": "1"}
        answer = self.ask("initialize", protocolVersion=revision, capabilities={}, clientInfo=about)
        self.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        found: dict[str, Any] = answer["result"]
        return found

    def tools(self) -> dict[str, dict[str, Any]]:
        """The tools that are offered, by name."""
        return {tool["name"]: tool for tool in self.ask("tools/list")["result"]["tools"]}

    def call(self, name: str, **arguments: Any) -> tuple[str, bool]:
        """What a tool says, and whether that is an error."""
        result = self.ask("tools/call", name=name, arguments=arguments)["result"]
        (content,) = result["content"]
        assert content["type"] == "text"
        return content["text"], result["isError"]

    def end(self) -> int:
        """Close our side; how it ended."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(timeout=30)


@contextmanager
def client(root: Path, *arguments: str, env: dict[str, str] | None = None) -> Iterator[Client]:
    """`ralph mcp` in a directory, and somebody who speaks to it."""
    pipe = subprocess.PIPE
    with Started[bytes](
        [*ourselves(), "mcp", *arguments],
        cwd=root,
        env={**os.environ, **(env or {})},
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    ) as process:
        try:
            yield Client(process)
        finally:
            process.kill()
