"""Running small misbehaving programs as agents, and proving that nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ralphloop.agents.base import Launch
from ralphloop.agents.process import Rules, run_agent
from ralphloop.agents.transcript import Transcript
from ralphloop.core.events import AgentStep
from ralphloop.core.iteration import Result
from ralphloop.proc.process_table import MARK_VARIABLE, find_process, mark_on, process_table
from ralphloop.proc.threads import StopSignal

QUICK = Rules(exit_grace_s=0.2, stop_grace_s=0.3, after_result_grace_s=0.3)


@dataclass
class Stage:
    """One agent made of a few lines of Python, with everything needed to run it."""

    directory: Path
    mark: str = field(default_factory=lambda: f"test-{uuid.uuid4()}/1")
    events: list[AgentStep] = field(default_factory=list)
    started: list[tuple[int, float]] = field(default_factory=list)
    rules: Rules = QUICK

    @property
    def transcript(self) -> Path:
        """Where its output is kept."""
        return self.directory / "transcript.log"

    def launch(self, code: str, *, stdin: bytes = b"", reader: str = "text") -> Launch:
        """The agent as a process to start."""
        script = self.directory / "agent.py"
        script.write_text(textwrap.dedent(code))
        return Launch(
            argv=(sys.executable, "-S", "-E", str(script)),
            env={**os.environ, MARK_VARIABLE: self.mark},
            stdin=stdin,
            cwd=self.directory,
            reader=reader,
            mark=self.mark,
        )

    def run(
        self,
        code: str,
        *,
        rules: Rules | None = None,
        stdin: bytes = b"",
        reader: str = "text",
        meanwhile: Callable[[StopSignal], None] | None = None,
        file_probe: Callable[[], object] | None = None,
    ) -> Result:
        """Run it to its end and check that no process of it is left."""
        finished = asyncio.run(
            self._run(
                self.launch(code, stdin=stdin, reader=reader),
                rules or self.rules,
                meanwhile,
                file_probe,
            )
        )
        assert self.survivors() == []
        return finished

    async def _run(
        self,
        launch: Launch,
        rules: Rules,
        meanwhile: Callable[[StopSignal], None] | None,
        file_probe: Callable[[], object] | None,
    ) -> Result:
        stop = StopSignal()
        if meanwhile is not None:
            asyncio.get_running_loop().call_soon(meanwhile, stop)
        with Transcript(self.transcript) as sink:
            return await run_agent(
                launch,
                sink=sink,
                rules=rules,
                stop=stop,
                on_event=self.events.append,
                on_start=lambda pid, at: self.started.append((pid, at)),
                file_probe=file_probe,
            )

    def pids(self) -> list[int]:
        """Pids that the agent wrote to `pids`, one a line, when it started something."""
        file = self.directory / "pids"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def survivors(self) -> list[int]:
        """Who of the agent still lives: by its mark, by the pids it wrote down, by its own pid."""
        table = process_table()
        marked = [pid for pid in table if mark_on(pid) == self.mark and pid != os.getpid()]
        written = [*self.pids(), *(pid for pid, _ in self.started)]
        return sorted({*marked, *(pid for pid in written if is_alive(pid))})


def is_alive(pid: int) -> bool:
    """A process that runs; a zombie does not."""
    proc = find_process(pid)
    return proc is not None and proc.alive


def wait_until(condition: Callable[[], bool], patience_s: float = 30.0) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
