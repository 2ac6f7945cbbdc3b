"""What can break in a night with machines, each at a moment that is drawn by lot.

A night is three workers, behind cables of their own where this machine lets us make networks, and
stories whose agents take a second or two.  A fault strikes when so many starts have begun, and a
moment later: never before the night or after it.  What it breaks it mends, or the night goes on
without it; what has to hold afterwards is the same for all (`held_to_the_end`).
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.fleet.machines import (
    Server,
    WorkerProcess,
    end_workers,
    eventually,
    machine,
    of_machine,
    real_sshd,
    start_worker,
    temporal_server,
)
from tests.fleet.networks import Network, can_be_made, git_served, networks
from tests.fleet.nights import (
    LEASE,
    OTHER_VERSION,
    at_work,
    billed,
    ended,
    iterations,
    other_version,
    paid_yard,
)
from tests.loop.projects import Sandbox

LOT = logging.getLogger(__name__)  # shown where a night fails
AGENT = """
import random
step()
time.sleep(random.uniform(0.2, 1.2))
write(f"{STORY}.txt", "half")
step()
time.sleep(random.uniform(0.2, 1.2))
write(f"{STORY}.txt", STORY)
done()
"""
NAMES = ("one", "two", "three")
_LEASE_S = 6.0
_A_STORY = 0.02  # dollars that an agent uses which nothing disturbs
_NIGHT_S = 400.0
_MONEY = "RALPH_LIMITS_MAX_COST_USD"
NOTHING = "nothing"
BUDGET = "the budget reached"


def stories_of_night(count: int) -> tuple[str, ...]:
    """So many names."""
    return tuple(f"S{number:02}" for number in range(1, count + 1))


def drawn() -> random.Random:
    """What draws the moments: by FLEET_SEED, else anew; which it was is said."""
    seed = os.environ.get("FLEET_SEED") or str(int.from_bytes(os.urandom(3)))
    LOT.warning("the same moments again: FLEET_SEED=%s", seed)
    return random.Random(seed)


@dataclass
class Night:
    """A night that goes on, and what can be done to it."""

    box: Sandbox
    names: tuple[str, ...]  # of its stories
    lot: random.Random
    arguments: tuple[str, ...]
    env: dict[str, str]
    run: subprocess.Popen[str] = field(init=False)
    said: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """Type `ralph run`."""
        self.run = self.box.start(*self.arguments, env=self.env)

    def go_on(self, **more: str) -> None:
        """Type `ralph run --continue`."""
        self.run = self.box.start("--continue", env={**self.env, **more})

    def begun(self) -> int:
        """How many starts have begun."""
        return len(list(self.box.state.glob("begun-*")))

    def wait_for_its_moment(self) -> None:
        """Until so many starts have begun, by lot, and a moment longer."""
        count = self.lot.randint(1, max(1, len(self.names) * 2 // 3))
        moment = self.lot.uniform(0.0, 2.5)
        LOT.warning("after %d starts and %.2f s", count, moment)
        eventually(lambda: self.begun() >= count or self.run.poll() is not None, _NIGHT_S)
        time.sleep(moment)
        assert self.run.poll() is None, ended(self.run)

    def wait(self, low: float, high: float) -> None:
        """Some seconds, by lot."""
        seconds = self.lot.uniform(low, high)
        LOT.warning("for %.2f s", seconds)
        time.sleep(seconds)

    def over(self) -> int:
        """How the run ended, once it has."""
        said = ended(self.run, _NIGHT_S)
        self.said.append(said)
        return self.run.returncode

    @property
    def text(self) -> str:
        """Everything that its runs have said."""
        return "\n".join(self.said)


@dataclass
class ServedNight(Night):
    """A night on workers of a Temporal server."""

    server: Server = field(kw_only=True)
    place: Path = field(kw_only=True)
    cables: dict[str, Network] = field(kw_only=True)
    workers: dict[str, WorkerProcess] = field(default_factory=dict, kw_only=True)

    def any_machine(self) -> str:
        """One of them, by lot."""
        name = self.lot.choice(NAMES)
        LOT.warning("it strikes %s", name)
        return name

    def start_machine(self, name: str, env: dict[str, str] | None = None) -> None:
        """A worker on that machine."""
        cable = self.cables.get(name)
        more = f"--server {cable.here}:{self.server.port}" if cable else ""
        self.workers[name] = start_worker(
            self.box,
            self.server,
            self.place,
            name,
            more=more,
            inside=cable.inside if cable else (),
            env=env,
        )


@contextmanager
def served_night(
    place: Path, lot: random.Random, count: int, limits: Mapping[str, str]
) -> Iterator[ServedNight]:
    """A night that has begun, with three workers on a server of its own."""
    names = stories_of_night(count)
    box = paid_yard(place, AGENT, names=names)
    with ExitStack() as stack:
        cables = dict[str, Network]()
        if can_be_made():
            server = stack.enter_context(temporal_server(place, "0.0.0.0"))
            port = stack.enter_context(git_served(place))
            cables = dict(zip(NAMES, stack.enter_context(networks(len(NAMES))), strict=True))
            for name, cable in cables.items():
                machine(place, name, repos={"app": f"git://{cable.here}:{port}/app.git"})
        else:
            server = stack.enter_context(temporal_server(place))
        arguments = ("--fleet", server.address)
        night = ServedNight(
            box,
            names,
            lot,
            arguments,
            {**LEASE, **limits},
            server=server,
            place=place,
            cables=cables,
        )
        try:
            for name in NAMES:
                night.start_machine(name)
            night.begin()
            yield night
            eventually(lambda: at_work(box) == [], 60)
        finally:
            end_workers(night.workers.values())


@contextmanager
def ssh_night(place: Path, lot: random.Random, count: int) -> Iterator[Night]:
    """A night that has begun, on a machine behind a real sshd."""
    names = stories_of_night(count)
    box = paid_yard(place, AGENT, names=names)
    with real_sshd(box, place) as env:
        night = Night(box, names, lot, ("--fleet", "ssh:127.0.0.1"), {**LEASE, **env})
        night.begin()
        yield night
        eventually(lambda: at_work(box) == [], 60)


def nothing(night: Night) -> None:
    """Nothing breaks."""


def connection_cut(night: Night) -> None:
    """A connection by ssh ends, where there is one just then."""
    for child in psutil.Process(night.run.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if child.name() == "ssh":
                child.kill()


def worker_killed(night: ServedNight) -> None:
    """A worker is killed with -9; later there is a new one on its machine."""
    name = night.any_machine()
    night.workers[name].kill()
    eventually(lambda: of_machine(night.box, name) == [])
    night.start_machine(name)


def machine_gone(night: ServedNight) -> None:
    """Worker, hand and agent vanish at once; the machine is started again."""
    name = night.any_machine()
    for pid in of_machine(night.box, name):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    night.workers[name].kill()
    night.start_machine(name)


def worker_frozen(night: ServedNight) -> None:
    """A worker stands still for longer than its lease, and goes on."""
    name = night.any_machine()
    _asleep(night, [night.workers[name].process.pid], 9.0, 14.0)


def suspended(night: ServedNight) -> None:
    """A whole machine stands still for longer than its lease, and wakes up."""
    _asleep(night, of_machine(night.box, night.any_machine()), 9.0, 14.0)


def dozing(night: ServedNight) -> None:
    """A whole machine stands still for a moment."""
    _asleep(night, of_machine(night.box, night.any_machine()), 0.5, 4.0)


def _asleep(night: ServedNight, processes: list[int], low: float, high: float) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        night.wait(low, high)
    finally:
        for pid in processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def cut_off(night: ServedNight) -> None:
    """A cable is out, for less or more than the lease."""
    cable = night.cables[night.any_machine()]
    cable.cut()
    try:
        night.wait(1.0, 3 * _LEASE_S)
    finally:
        cable.join()


def server_restarted(night: ServedNight) -> None:
    """The server is killed and started again, within the lease or after it."""
    night.server.kill()
    night.wait(0.0, 2 * _LEASE_S)
    night.server.start()


def run_killed(night: Night) -> None:
    """The run is killed, and taken up within the lease or after it."""
    night.run.kill()
    night.over()
    night.wait(0.0, 2 * _LEASE_S)
    night.go_on()


def remote_away(night: ServedNight) -> None:
    """The shared remote does not answer for a while."""
    bare = night.place / "app.git"
    away = bare.rename(night.place / "away.git")
    night.wait(1.0, 2 * _LEASE_S)
    away.rename(bare)


def upgraded(night: ServedNight) -> None:
    """A machine is drained, comes back with another version, and then with the right one."""
    name = night.any_machine()
    drained = night.box.ralph("fleet", "drain", name, "--server", night.server.address)
    assert drained.code == 0, drained.text
    night.workers[name].process.wait(60)
    night.start_machine(name, other_version(night.place))
    refused = f"{name} has ralph {OTHER_VERSION}"
    refuses = night.workers[name].log
    eventually(lambda: refused in refuses.read_text() or night.run.poll() is not None)
    night.wait(0.0, 5.0)
    end_workers([night.workers[name]])
    night.start_machine(name)


def interrupted(night: Night) -> None:
    """Ctrl+C, after which no agent is at work, and `--continue`."""
    began = time.monotonic()
    night.run.send_signal(signal.SIGINT)
    assert night.over() == 130, night.text
    assert time.monotonic() - began < 20
    left = [line for line in at_work(night.box) if "agent.py" in line]
    assert left == []
    night.go_on()


def budget_reached(night: ServedNight) -> None:
    """The money is used up, by lot early or late; more is given, and the night goes on."""
    assert night.over() == 3, night.text
    limit = json.loads(night.env[_MONEY])
    used = sum(billed(night.box, one.n) for one in iterations(night.box))
    assert used <= limit + len(NAMES) * _A_STORY / 2, "more than a step of each beyond it"
    night.env = dict(LEASE)
    night.go_on()


def part_of_the_money(lot: random.Random, count: int) -> dict[str, str]:
    """A limit that such a night reaches, early or late by lot."""
    part = lot.uniform(0.2, 0.8)
    LOT.warning("money for %.0f of a hundred", 100 * part)
    return {_MONEY: f"{part * count * _A_STORY:.3f}"}


SSH_FAULTS: dict[str, Callable[[Night], None]] = {
    NOTHING: nothing,
    "a connection cut": connection_cut,
    "a run killed": run_killed,
    "Ctrl+C": interrupted,
}
FAULTS: dict[str, Callable[[ServedNight], None]] = {
    NOTHING: nothing,
    "kill -9 of a worker": worker_killed,
    "a machine gone": machine_gone,
    "a worker frozen and thawed": worker_frozen,
    "a machine suspended": suspended,
    "a machine dozing": dozing,
    "a partition": cut_off,
    "a server restarted": server_restarted,
    "a run killed": run_killed,
    "a remote away": remote_away,
    "a worker upgraded": upgraded,
    "Ctrl+C": interrupted,
    BUDGET: budget_reached,
}
