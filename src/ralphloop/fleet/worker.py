"""`ralph fleet worker`: takes orders from a Temporal server and gives each to a hand.

Heartbeats are sent blindly by Temporal's library, so the worker asks the server itself whether
anybody is there: only then the hand hears that somebody is.  An order is never attempted twice.
"""

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from datetime import timedelta

import msgspec
from temporalio import activity
from temporalio.client import ActivityExecutionStatus, Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from ralphloop import __version__
from ralphloop.fleet.machine import Machine
from ralphloop.fleet.pipe import HandPipe
from ralphloop.fleet.temporal import CARRY, DRAIN, Identity, own_queue, queues_of
from ralphloop.fleet.values import Beat, Ticket, Word
from ralphloop.loop.run import Tell
from ralphloop.proc.run import ourselves
from ralphloop.proc.threads import StopSignal
from ralphloop.proc.tree import stop_tree

_RPC = timedelta(seconds=5)
_HEARTBEAT = timedelta(seconds=2)
_ASK_PART = 8  # of the lease: so often it is asked whether anybody is there
_GOING = timedelta(hours=12)
_QUESTIONS = 2  # short questions to a conversation, beside the slots


class MachineWorker:
    def __init__(
        self, client: Client, machine: Machine, env: Mapping[str, str], tell: Tell
    ) -> None:
        self._client = client
        self._machine = machine
        self._env = env
        self._tell = tell
        self._free = asyncio.Semaphore(machine.slots)
        self._drained = asyncio.Event()
        self._stop = StopSignal()

    async def serve(self, stop: StopSignal, agents: tuple[str, ...]) -> None:
        """Work off orders until a stop, or until it is drained."""
        self._stop = stop
        machine = self._machine
        identity = msgspec.json.encode(
            Identity(
                name=machine.name,
                slots=machine.slots,
                version=__version__,
                labels=machine.labels,
                agents=agents,
            )
        ).decode()
        queues = [it for name in machine.repos for it in queues_of(name, machine.labels)]
        async with AsyncExitStack() as stack:
            for queue in queues:
                await stack.enter_async_context(self._poller(queue, identity, machine.slots))
            own = self._poller(own_queue(machine.name), identity, _QUESTIONS)
            await stack.enter_async_context(own)
            asked = asyncio.create_task(stop.wait())
            drained = asyncio.create_task(self._drained.wait())
            await asyncio.wait({asked, drained}, return_when=asyncio.FIRST_COMPLETED)
            for task in (asked, drained):
                task.cancel()
            if drained.done() and not stop.requested:
                self._tell(f"{machine.name} is drained: it ends with what it works on.")

    def _poller(self, queue: str, identity: str, slots: int) -> Worker:
        return Worker(
            self._client,
            task_queue=queue,
            activities=[self.carry, self.drain],
            identity=identity,
            max_concurrent_activities=slots,
            max_heartbeat_throttle_interval=_HEARTBEAT,
            default_heartbeat_throttle_interval=_HEARTBEAT,
            graceful_shutdown_timeout=_GOING,
        )

    @activity.defn(name=DRAIN)
    async def drain(self) -> None:
        """Take no more orders, and end once those under way have ended."""
        self._drained.set()

    @activity.defn(name=CARRY)
    async def carry(self, given: str) -> str:
        """Work off one order; the last beat of its hand."""
        ticket = msgspec.json.decode(given, type=Ticket)
        if ticket.machine:  # a short question to a conversation that is here
            return await self._work_off(ticket)
        while True:
            activity.heartbeat(_text(Beat(machine=self._machine.name)))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._free.acquire(), _HEARTBEAT.total_seconds())
                break
        try:
            return await self._work_off(ticket)
        finally:
            self._free.release()

    async def _work_off(self, ticket: Ticket) -> str:
        machine = self._machine
        machine.directory.mkdir(parents=True, exist_ok=True)
        argv = [*ourselves(), "fleet", "hand", "--machine", msgspec.json.encode(machine).decode()]
        self._tell(f"{ticket.id} of {ticket.repository} begins")
        pipe = HandPipe(argv, self._env, machine.directory)
        held = asyncio.create_task(pipe.hold(ticket, _heartbeat, reassures=False))
        asking = asyncio.create_task(self._ask_server(ticket, pipe))
        try:
            while not held.done():
                try:
                    await asyncio.wait({held})
                except asyncio.CancelledError:  # it is no longer wanted, or we are to go
                    await pipe.say(Word(stop="the order was taken back"))
            beat = held.result()
        finally:
            for task in (held, asking):
                task.cancel()
            await asyncio.gather(held, asking, return_exceptions=True)
            pipe.close()
        if not beat.is_last:  # the hand was killed: nobody else ends what it had started
            stop_tree(None, None, ticket.mark)
            words = pipe.said().splitlines()[-1:] or ["its hand was killed"]
            beat = msgspec.structs.replace(beat, machine=machine.name, failed=words[0])
        how = beat.refused or beat.failed or "reported"
        self._tell(f"{ticket.id} ended: {how}")
        return _text(beat)

    async def _ask_server(self, ticket: Ticket, pipe: HandPipe) -> None:
        """Tell the hand that somebody is there whenever the server says that the order is ours."""
        handle = self._client.get_activity_handle(ticket.id)
        every_s = max(0.2, ticket.lease_s / _ASK_PART)
        while True:
            word: Word | None = Word()
            try:
                seen = await handle.describe(rpc_timeout=_RPC)
                if seen.status is not ActivityExecutionStatus.RUNNING:
                    word = Word(stop="the server has given the order up")
            except RPCError as error:
                word = None  # it does not answer: nobody knows
                if error.status is RPCStatusCode.NOT_FOUND:
                    word = Word(stop="the server knows nothing of the order")
            if self._stop.requested:
                word = Word(stop=f"{self._machine.name} was stopped")
            if word is not None:
                await pipe.say(word)
            with suppress(TimeoutError):
                if self._stop.requested:
                    await asyncio.sleep(every_s)
                else:
                    await asyncio.wait_for(self._stop.wait(), every_s)


def _text(beat: Beat) -> str:
    return msgspec.json.encode(beat).decode()


def _heartbeat(beat: Beat) -> None:
    activity.heartbeat(_text(beat))


def installed_agents(env: Mapping[str, str]) -> tuple[str, ...]:
    """The shipped agents whose program is on this machine."""
    from ralphloop.config.known_agents import shipped_agents

    return tuple(name for name in shipped_agents() if shutil.which(name, path=env.get("PATH")))
