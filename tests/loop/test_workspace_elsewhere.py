"""A place on another machine: the loop takes it for any other, and only data goes there and back."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from ralphloop.core.iteration import Result
from ralphloop.core.model import ExitDecision, ProcessEnd
from ralphloop.errors import RepositoryError
from ralphloop.loop.loop import run_loop
from ralphloop.loop.open import EndedRun, carried, hold_project, open_run
from ralphloop.loop.prepare import Options, Site, prepare
from ralphloop.loop.run import Run, nobody
from ralphloop.loop.workspace import AgentOrder, Workspace
from ralphloop.proc.threads import StopSignal
from ralphloop.readers import reader_for
from tests.lanes.yards import stories_of, yard

AGENT = """
write("where.txt", os.getcwd())
write(f"{STORY}.txt")
done()
"""


def _work_off(wire: bytes, there: Path, state: Path) -> bytes:
    """The other machine: an order comes in as bytes, the agent works there, a result goes out."""
    order = msgspec.json.decode(wire, type=AgentOrder)
    env = {**os.environ, "TEST_STATE": str(state), "RALPH_STORY_ID": order.story or ""}
    ended = subprocess.run(
        order.agent.command,
        cwd=there,
        env=env,
        input=order.prompt.encode(),
        capture_output=True,
        check=False,
    )
    reader = reader_for("text")
    reader.feed(ended.stdout)
    response = reader.finish(exit_code=ended.returncode, stderr=ended.stderr.decode())
    result = Result(end=ProcessEnd(exit_code=ended.returncode), response=response)
    return msgspec.json.encode(result)


class FarWorkspace(Workspace):
    """The checkout here is the mirror of a clone that lies elsewhere."""

    def __init__(self, site: Site, there: Path, state: Path) -> None:
        super().__init__(site)
        self._there = there
        self._state = state
        self.orders: list[AgentOrder] = []
        self.is_closed = False

    def close(self) -> None:
        """Give the other machine back."""
        super().close()
        self.is_closed = True

    async def start(self, run: Run, order: AgentOrder) -> Result:
        """Send the order as bytes, and read the result from bytes."""
        self.orders.append(order)
        answer = await asyncio.to_thread(self._send, msgspec.json.encode(order))
        self.touched()
        return msgspec.json.decode(answer, type=Result)

    def _send(self, order: bytes) -> bytes:
        """Have an order worked off, and bring what came into being into the mirror."""
        shutil.rmtree(self._there, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", str(self.root), str(self._there)], check=True)
        answer = _work_off(order, self._there, self._state)
        listing = ["git", "ls-files", "--others", "--exclude-standard"]
        listed = subprocess.run(listing, cwd=self._there, capture_output=True, check=True)
        for name in listed.stdout.decode().splitlines():
            shutil.copyfile(self._there / name, self.root / name)
        return answer


def test_a_place_elsewhere_needs_no_other_loop(tmp_path: Path) -> None:
    """Stories worked on by an agent on another machine are judged, marked and committed here."""
    box = yard(tmp_path, AGENT, stories=stories_of("A", "B"))
    there = tmp_path / "there"
    orders: list[AgentOrder] = []

    async def night() -> EndedRun:
        setup = prepare(Options(start=box.root, env=box.environment()))
        with hold_project(setup, stop=StopSignal(), sink=nobody, tell=nobody) as new:
            far = FarWorkspace(new.checkout.site, there, box.state)
            run = await open_run(new.run, far)
            async with carried(run, far) as under_way:
                under_way.decision = await run_loop(run, far)
            orders.extend(far.orders)
            assert far.is_closed
            return under_way.ended

    ended = asyncio.run(night())

    assert ended.told.decision is ExitDecision.PROJECT_COMPLETE
    assert box.passes() == {"A": True, "B": True}
    assert (box.root / "where.txt").read_text() == str(there)
    assert [order.story for order in orders] == ["A", "B"]
    assert "A.txt" in box.git("show", "--stat", "--format=%s", "HEAD~1")


def test_a_place_elsewhere_is_given_back_after_an_error(tmp_path: Path) -> None:
    """Whatever ends a run, nothing is held on another machine that nobody uses."""
    box = yard(tmp_path, AGENT, stories=stories_of("A"))

    async def night() -> FarWorkspace:
        setup = prepare(Options(start=box.root, env=box.environment()))
        with hold_project(setup, stop=StopSignal(), sink=nobody, tell=nobody) as new:
            far = FarWorkspace(new.checkout.site, tmp_path / "there", box.state)
            run = await open_run(new.run, far)
            with pytest.raises(RepositoryError):
                async with carried(run, far):
                    raise RepositoryError("the other machine is gone")
            return far

    assert asyncio.run(night()).is_closed
