"""The scripted model behind HTTP: loopback only, a thread per connection.

with ModelServer(root=project) as server:
    server.play(use(write("a.py", "x = 1\\n")), say("Done."))
    ...                                     # run a CLI against server.url
    assert server.billed == Usage(input=200, output=40)
"""

from __future__ import annotations

import threading
import time
import traceback
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.e2e.model_server.handler import Handler
from tests.e2e.model_server.script import Scene, Turn, Usage
from tests.e2e.model_server.stage import Exchange, Stage


class ModelServer:
    """A scripted model; use it as a context manager."""

    def __init__(self, root: Path | None = None, port: int = 0, stage: Stage | None = None) -> None:
        self.stage = stage or Stage()
        self._http = _Http(self.stage, root or Path.cwd(), port)
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
        self._http.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def play(self, *turns: Turn, when: str = "") -> Self:
        """Add a scene: these turns, for prompts that contain `when`."""
        self.stage.play(Scene(turns=turns, when=when))
        return self

    @property
    def requests(self) -> list[Exchange]:
        """The requests of conversations, without the CLI's own side calls."""
        return [it for it in self.stage.exchanges if not it.question.side]

    @property
    def side_calls(self) -> list[Exchange]:
        """What the CLI asked beside the conversation."""
        return [it for it in self.stage.exchanges if it.question.side]

    @property
    def billed(self) -> Usage:
        """All tokens that clients were told of."""
        return sum((it.billed for it in self.stage.exchanges), Usage())

    @property
    def unexpected(self) -> list[str]:
        """Requests the script has no answer to, and failures of the server itself."""
        return list(self.stage.unexpected)

    def wait_for_request(self, number: int, timeout_s: float = 30.0) -> Exchange:
        """The conversation's request of this number, counted from 1, once it has come."""
        deadline = time.monotonic() + timeout_s
        while len(self.requests) < number:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no request {number} within {timeout_s:.0f} s")
            time.sleep(0.02)
        return self.requests[number - 1]


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # connections that are kept alive would hold up the end

    def __init__(self, stage: Stage, root: Path, port: int) -> None:
        self.stage = stage
        self.root = root
        self.stopping = threading.Event()
        super().__init__(("127.0.0.1", port), Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Keep what went wrong; a test looks there."""
        self.stage.complain(traceback.format_exc(limit=-3))
