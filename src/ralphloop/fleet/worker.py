"""`ralph fleet worker`: takes orders from a Temporal server and gives each to a hand.

Heartbeats are sent blindly by Temporal's library, so the worker asks the server itself whether
anybody is there: only then the hand hears that somebody is.  An order is never attempted twice.

A machine that has refused an order polls for none for a while, longer each time: one that lacks
something would otherwise take every order from those that could work on it.
"""

import asyncio
import shutil
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from typing import Any

import msgspec
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.api.workflowservice.v1 import GetSystemInfoRequest
from temporalio.client import ActivityExecutionStatus, ActivityHandle, Client
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import (
    CustomSlotSupplier,
    FixedSizeSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    Worker,
    WorkerTuner,
)

from ralphloop import __version__
from ralphloop.fleet.codec import Illegible, in_the_open, text_in
from ralphloop.fleet.leash import clock
from ralphloop.fleet.machine import Machine
from ralphloop.fleet.pipe import HandPipe
from ralphloop.fleet.temporal import (
    CARRY,
    DRAIN,
    Identity,
    ServerWatch,
    is_claimed,
    keys_at,
    own_queue,
    queues_of,
)
from ralphloop.fleet.values import Beat, Ticket, Word
from ralphloop.loop.run import Tell
from ralphloop.proc.run import ourselves
from ralphloop.proc.threads import StopSignal
from ralphloop.proc.tree import stop_tree

_RPC = timedelta(seconds=5)
_HEARTBEAT = timedelta(seconds=2)
_ASK_PART = 8  # of the lease: so often it is asked whether anybody is there
_WATCH_S = 10.0
_GOING = timedelta(hours=12)
_CLAIM_S = 0.1
_QUIET_S = 5.0  # after a refusal, and twice as long after each that follows
_MOST_QUIET_S = 600.0
_NOTHING = RawValue(Payload())
_QUESTIONS = 2  # short questions to a conversation, beside the slots


class Quiet:
    """How long a machine that refuses keeps from asking for orders."""

    def __init__(self) -> None:
        self._refusals = 0
        self._until = 0.0

    def note(self, *, refused: bool, until: float = 0.0) -> None:
        """An order has ended so; what made it refuse is over then, where that is known."""
        if not refused:
            self._refusals = 0
            return
        wait_s = min(_QUIET_S * 2**self._refusals, _MOST_QUIET_S)
        if until:
            wait_s = min(wait_s, max(0.0, until - time.time()))
        self._refusals = min(self._refusals + 1, 30)
        self._until = clock() + wait_s

    async def over(self) -> None:
        """Wait until it may ask."""
        await asyncio.sleep(max(0.0, self._until - clock()))


class _QuietSlots(CustomSlotSupplier):
    """So many orders of a queue at once, and none while the machine is quiet."""

    def __init__(self, slots: int, quiet: Quiet) -> None:
        self._free = asyncio.Semaphore(slots)
        self._quiet = quiet
        self._loop = asyncio.get_running_loop()

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        await self._free.acquire()
        try:
            await self._quiet.over()
        except asyncio.CancelledError:
            self._free.release()
            raise
        return SlotPermit()

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """Nothing comes but by polling."""
        return None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """It was counted when it was reserved."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        with suppress(RuntimeError):  # the loop is closed: the worker has gone
            self._loop.call_soon_threadsafe(self._free.release)  # a thread of the library's calls


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
        self._quiet = Quiet()

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
                accounts=machine.accounts,
                keys=keys_at(self._client),
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
            looking = asyncio.create_task(self._watch_server())
            await asyncio.wait({asked, drained}, return_when=asyncio.FIRST_COMPLETED)
            for task in (asked, drained, looking):
                task.cancel()
            if drained.done() and not stop.requested:
                self._tell(f"{machine.name} is drained: it goes once what it works on has ended.")

    async def _watch_server(self) -> None:
        """Say when the server is away, and when it is back: its library waits for it in silence."""
        server = ServerWatch(self._client, self._tell)
        while True:
            await asyncio.sleep(_WATCH_S)
            try:
                await self._client.workflow_service.get_system_info(
                    GetSystemInfoRequest(), timeout=_RPC
                )
                server.note(answers=True)
            except RPCError:
                server.note(answers=False)

    def _poller(self, queue: str, identity: str, slots: int) -> Worker:
        one = FixedSizeSlotSupplier(1)
        quiet = _QuietSlots(slots, self._quiet)
        if queue == own_queue(self._machine.name):
            quiet = _QuietSlots(slots, Quiet())  # it can always be asked to drain
        tuner = WorkerTuner.create_composite(
            workflow_supplier=one,
            activity_supplier=quiet,
            local_activity_supplier=one,
            nexus_supplier=one,
        )
        return Worker(
            self._client,
            task_queue=queue,
            activities=[self.carry, self.drain],
            identity=identity,
            tuner=tuner,
            max_heartbeat_throttle_interval=_HEARTBEAT,
            default_heartbeat_throttle_interval=_HEARTBEAT,
            graceful_shutdown_timeout=_GOING,
        )

    @activity.defn(name=DRAIN)
    async def drain(self, given: RawValue = _NOTHING) -> str | RawValue:
        """Take no more orders, and end once those under way have ended."""
        if given is not _NOTHING or keys_at(self._client):
            try:
                text_in(given)
            except Illegible as error:
                return in_the_open(f"who asks has to have its key: {error}")
        self._drained.set()
        return ""

    @activity.defn(name=CARRY)
    async def carry(self, given: RawValue) -> str | RawValue:
        """Work off one order; the last beat of its hand."""
        try:
            ticket = msgspec.json.decode(text_in(given), type=Ticket)
        except (Illegible, msgspec.DecodeError) as error:
            words = f"{self._machine.name} cannot read the order: {error}"
            self._quiet.note(refused=True)
            self._tell(words)
            return in_the_open(_text(Beat(machine=self._machine.name, refused=words)))
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
        handle = self._client.get_activity_handle(activity.info().activity_id)
        if not await has_claimed(handle, machine.name, ticket.lease_s):
            self._tell(f"{ticket.id} is not ours any more: nothing was started")
            raise ApplicationError("it was taken back before it began", non_retryable=True)
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
        self._quiet.note(refused=bool(beat.refused), until=beat.away_until)
        how = beat.refused or beat.failed or "reported"
        self._tell(f"{ticket.id} ended: {how}")
        return _text(beat)

    async def _ask_server(self, ticket: Ticket, pipe: HandPipe) -> None:
        """Tell the hand that somebody is there whenever the server says that the order is ours."""
        handle = self._client.get_activity_handle(activity.info().activity_id)
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


async def has_claimed(handle: ActivityHandle[Any], machine: str, most_s: float) -> bool:
    """Whether the server knows that this machine has the order: only then it may begin."""
    until = clock() + most_s
    while clock() < until:
        activity.heartbeat(_text(Beat(machine=machine)))
        with suppress(RPCError):  # it does not answer: nobody knows
            seen = await handle.describe(include_heartbeat_details=True, rpc_timeout=_RPC)
            if seen.status is not ActivityExecutionStatus.RUNNING:
                return False
            if is_claimed(seen):
                return True
        await asyncio.sleep(_CLAIM_S)
    return False


def _text(beat: Beat) -> str:
    return msgspec.json.encode(beat).decode()


def _heartbeat(beat: Beat) -> None:
    activity.heartbeat(_text(beat))


def installed_agents(env: Mapping[str, str]) -> tuple[str, ...]:
    """The shipped agents whose program is on this machine."""
    from ralphloop.config.known_agents import shipped_agents

    return tuple(name for name in shipped_agents() if shutil.which(name, path=env.get("PATH")))
