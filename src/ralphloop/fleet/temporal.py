"""Temporal as the carrier: an order is a standalone activity.

Its id is that of the order and is never taken twice, it is attempted once, and heartbeats keep it
alive.  Where a machine refuses, it has started nothing: the same order is given away under the next
id (`~1`), and that machine asks for no order for a while.  There is no workflow: the journal of the
run is the truth, and outlives the run.  Who is there is read from the pollers of a queue, whose
identity says what a machine has.

A busy server can say that an order has begun while its answer to the machine was lost
(temporalio/temporal#11733).  So a machine begins only once the server has its sign of life, and an
order of which the server has none was begun by nobody: it is given away again.
"""

import asyncio
import time
from collections.abc import Container, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cache
from itertools import combinations, count
from pathlib import Path
from typing import Any

import msgspec
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    DescribeTaskQueueRequest,
)
from temporalio.client import (
    ActivityExecutionDescription,
    ActivityExecutionStatus,
    ActivityFailureError,
    ActivityHandle,
    Client,
)
from temporalio.common import ActivityIDReusePolicy, RawValue, RetryPolicy
from temporalio.exceptions import ActivityAlreadyStartedError, ApplicationError, CancelledError
from temporalio.exceptions import TimeoutError as TimedOut
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode, TLSConfig

from ralphloop import __version__
from ralphloop.config.model import FleetSection
from ralphloop.core import Value
from ralphloop.errors import AgentUnavailable, InputError, UsageError
from ralphloop.fleet.carrier import Delivery, Hear, Refusals, Seat, ended_by
from ralphloop.fleet.codec import Codec, Illegible, SaidOpenly, converter_with, text_in
from ralphloop.fleet.keys import keys_of, why_apart
from ralphloop.fleet.reaching import address_of, context_of, wants_tls, why_not
from ralphloop.fleet.values import MOST_WORDS, Beat, Ticket
from ralphloop.loop.run import Tell
from ralphloop.proc.threads import StopSignal, in_thread

CARRY = "ralph.carry"
DRAIN = "ralph.drain"
MOST_LABELS = 4
_MORE = 1 / 3  # of the lease: the server gives a machine up later than its hand stops the agent
_LOOK_S = 2.0
_RPC = timedelta(seconds=10)
_CONNECT_S = 15.0
_STOPPING_S = 15.0
_MOST_KEPT = 200
_CLAIM_PART = 3  # of the lease: so long a machine has to claim an order
_LEAST_CLAIM_S = 5.0
_MOST_UNCLAIMED = 20  # times one order; then something else is wrong
_PASSING = {
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.UNKNOWN,
    RPCStatusCode.INTERNAL,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.ABORTED,
}
_AWAY = {RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}


class Identity(Value, kw_only=True):
    """What a worker says of its machine with every poll."""

    name: str
    slots: int = 1
    version: str = ""
    labels: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    accounts: Mapping[str, str] = msgspec.field(default_factory=dict)
    keys: tuple[str, ...] = ()  # by their ids


async def connect(server: str, section: FleetSection, env: Mapping[str, str]) -> Client:
    """A client of that server, with the certificates and the key of the settings."""
    address_of(server)  # these two say what is wrong with the settings
    context_of(section)
    tls: bool | TLSConfig = wants_tls(section)
    if section.tls_ca or section.tls_cert:
        tls = TLSConfig(
            server_root_ca_cert=_read(section.tls_ca),
            client_cert=_read(section.tls_cert),
            client_private_key=_read(section.tls_key),
        )
    key = None
    if section.api_key:
        key = env.get(section.api_key)
        if not key:
            raise InputError(f"the variable {section.api_key} is not set", place="fleet.api_key")
    converter = converter_with(Codec(keys_of(section, env)))
    try:
        async with asyncio.timeout(_CONNECT_S):
            client = await Client.connect(
                server,
                namespace=section.namespace,
                tls=tls,
                api_key=key,
                data_converter=converter,
                runtime=_silent(),
            )
    except (RuntimeError, RPCError, ValueError, TimeoutError) as error:  # all that its client says
        said = str(error)
        why = await in_thread(lambda _: why_not(server, section, said))
        raise AgentUnavailable(
            f"no Temporal server answers at {server}: {why.words}", why.next_step
        ) from None
    await _find_namespace(client, server)
    return client


@cache
def _silent() -> Runtime:
    """Temporal's library without its log: that goes to stdout, where data goes."""
    return Runtime(telemetry=TelemetryConfig(logging=None))


async def _find_namespace(client: Client, server: str) -> None:
    """See that the server has the namespace of this client."""
    name = client.namespace
    request = DescribeNamespaceRequest(namespace=name)
    try:
        await client.workflow_service.describe_namespace(request, timeout=_RPC)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise InputError(
                f"the Temporal server at {server} has no namespace {name!r}",
                f"Make it (temporal operator namespace create -n {name}), or name another one.",
                place="fleet.namespace",
            ) from None
        words = f"the Temporal server at {server} says nothing of the namespace {name!r}"
        raise AgentUnavailable(f"{words}: {error.message[:300]}") from None


def _read(path: str) -> bytes | None:
    return Path(path).expanduser().read_bytes() if path else None


def queue_of(repository: str, labels: tuple[str, ...] = ()) -> str:
    """Where orders of a repository wait for a machine that has these labels."""
    return f"ralph:{repository}" + (f":{'+'.join(sorted(labels))}" if labels else "")


def queues_of(repository: str, labels: tuple[str, ...]) -> list[str]:
    """Every queue that a machine with these labels serves."""
    if len(labels) > MOST_LABELS:
        raise InputError(f"more than {MOST_LABELS} labels", "Name what stories ask for.")
    sets = (some for size in range(len(labels) + 1) for some in combinations(sorted(labels), size))
    return [queue_of(repository, some) for some in sets]


def own_queue(machine: str) -> str:
    """Where orders wait that only this machine can work off."""
    return f"ralph@{machine}"


def keys_at(client: Client) -> tuple[str, ...]:
    """The ids of the keys on this side."""
    codec = client.data_converter.payload_codec
    return codec.ids if isinstance(codec, Codec) else ()


async def last_beat(description: ActivityExecutionDescription) -> Beat | None:
    """The newest sign of life that the server knows and that can be read here."""
    details = await description.heartbeat_details([RawValue])
    if not details:
        return None
    with suppress(msgspec.DecodeError, Illegible):
        return msgspec.json.decode(text_in(details[0]), type=Beat)
    return None


class ServerWatch:
    """Says once that a server does not answer any more, and once that it does again."""

    def __init__(self, client: Client, tell: Tell) -> None:
        self._address = client.service_client.config.target_host
        self._tell = tell
        self._is_away = False

    def note(self, *, answers: bool) -> None:
        """It has been asked something."""
        if answers == (not self._is_away):
            return
        self._is_away = not answers
        how = "answers again" if answers else "does not answer; it is waited for"
        self._tell(f"The Temporal server at {self._address} {how}.")


class TemporalCarrier:
    def __init__(self, client: Client, repository: str, tell: Tell) -> None:
        self._client = client
        self._repository = repository
        self._server = ServerWatch(client, tell)
        self._working = dict[str, str]()  # machines by the orders they are on

    async def seats(self) -> list[Seat]:
        return await seats_at(self._client, queue_of(self._repository))

    async def carry(self, ticket: Ticket, hear: Hear, stop: StopSignal) -> Delivery:
        """Give the order to a machine that takes it: who refuses has started nothing."""
        return await self._carry_on(ticket, hear, stop, Refusals(), given=0)

    async def _carry_on(
        self, ticket: Ticket, hear: Hear, stop: StopSignal, refusals: Refusals, given: int
    ) -> Delivery:
        """Give away an order that these have refused, while there is somebody else to ask.

        It was `given` so many times already, each under an id of its own.
        """
        unclaimed = 0
        for number in count(given):
            delivery = await self._carry_once(ticket, _id(ticket, number), hear, stop)
            if delivery.is_unclaimed and not stop.requested and unclaimed < _MOST_UNCLAIMED:
                unclaimed += 1
                continue
            if delivery.how != "refused" or not delivery.beat.refused:
                return delivery
            refusals.note(delivery)
            if ticket.machine or not await self._comes_to_be_asked(ticket, refusals, stop):
                break
            hear(delivery.beat)
        if stop.requested:
            return Delivery(how="lost", words=stop.reason)
        return msgspec.structs.replace(delivery, words=refusals.words)

    async def _comes_to_be_asked(
        self, ticket: Ticket, refusals: Refusals, stop: StopSignal
    ) -> bool:
        """Wait until there is somebody to ask; False where that is nobody, or the run stops."""
        while not stop.requested:
            if refusals.let_back(time.time()) or await self._others(ticket, refusals.machines):
                return True
            if not refusals.may_pass:
                return False
            await _pause(stop)
        return False

    async def _others(self, ticket: Ticket, but: Container[str]) -> bool:
        """Is there a machine that could take an order which these have refused?"""
        queue = queue_of(self._repository, ticket.labels)
        try:
            seats = await seats_at(self._client, queue)
        except AgentUnavailable:
            return False
        # Who has its slots full does not poll, and is not among those that do.
        polling = {it.name for it in seats if it.version == __version__ and not it.apart}
        return any(name not in but for name in polling | set(self._working.values()))

    async def _carry_once(
        self, ticket: Ticket, name: str, hear: Hear, stop: StopSignal
    ) -> Delivery:
        queue = queue_of(self._repository, ticket.labels)
        if ticket.machine:
            queue = own_queue(ticket.machine)
        lease = timedelta(seconds=ticket.lease_s * (1 + _MORE))
        while True:
            try:
                handle: ActivityHandle[RawValue] = await self._client.start_activity(
                    CARRY,
                    msgspec.json.encode(ticket).decode(),
                    id=name,
                    task_queue=queue,
                    result_type=RawValue,
                    start_to_close_timeout=timedelta(seconds=ticket.most_s),
                    # Who alone could answer may be gone.
                    schedule_to_start_timeout=lease if ticket.machine else None,
                    heartbeat_timeout=lease,
                    id_reuse_policy=ActivityIDReusePolicy.REJECT_DUPLICATE,
                    retry_policy=RetryPolicy(maximum_attempts=1),
                    rpc_timeout=_RPC,
                )
                self._server.note(answers=True)
                break
            except ActivityAlreadyStartedError:  # an answer of the server that got lost
                handle = self._client.get_activity_handle(name, result_type=RawValue)
                break
            except RPCError as error:
                if error.status not in _PASSING:
                    words = f"the server took no order: {error.message[:300]}"
                    return Delivery(how="refused", words=words)
                self._server.note(answers=error.status not in _AWAY)
            if stop.requested:
                return Delivery(how="lost", words=stop.reason)
            await _pause(stop)
        return await self._watch(ticket, handle, hear, stop)

    async def take_up(self, ticket: Ticket, hear: Hear, stop: StopSignal) -> Delivery:
        # Machines may have refused it since: what is under way has the newest of its ids.
        number = await self._newest_given(ticket, stop)
        handle = self._client.get_activity_handle(_id(ticket, number), result_type=RawValue)
        delivery = await self._watch(ticket, handle, hear, stop)
        refusals = Refusals()
        if delivery.how == "refused" and not ticket.machine:
            refusals.note(delivery)
        elif not delivery.is_unclaimed:
            return delivery
        return await self._carry_on(ticket, hear, stop, refusals, given=number + 1)

    async def _newest_given(self, ticket: Ticket, stop: StopSignal) -> int:
        """How often an order was given away again; 0 where the server knows nothing of it."""
        number = 0
        while await self._knows(_id(ticket, number + 1), stop):
            number += 1
        return number

    async def _knows(self, name: str, stop: StopSignal) -> bool:
        """Whether the server has an order of this id; one that is away is waited for."""
        handle = self._client.get_activity_handle(name)
        while not stop.requested:
            try:
                await handle.describe(rpc_timeout=_RPC)
            except RPCError as error:
                if not _passes(error):
                    return False
                self._server.note(answers=error.status not in _AWAY)
                await _pause(stop)
                continue
            self._server.note(answers=True)
            return True
        return False

    async def close(self) -> None:
        """The client goes with the process."""

    async def _watch(
        self, ticket: Ticket, handle: ActivityHandle[RawValue], hear: Hear, stop: StopSignal
    ) -> Delivery:
        """The same as `_wait`, and know meanwhile which machine is on it."""

        def heard(beat: Beat) -> None:
            if beat.has_begun:
                self._working[ticket.id] = beat.machine
            hear(beat)

        try:
            return await self._wait(ticket, handle, heard, stop)
        finally:
            self._working.pop(ticket.id, None)

    async def _wait(
        self, ticket: Ticket, handle: ActivityHandle[RawValue], hear: Hear, stop: StopSignal
    ) -> Delivery:
        """Look at an order until it has ended; a server that is away for a while is waited for."""
        heard = Beat()
        asked_at: float | None = None
        claim = _Claim(time_to_claim(ticket))
        while True:
            try:
                seen = await handle.describe(include_heartbeat_details=True, rpc_timeout=_RPC)
                self._server.note(answers=True)
                if (beat := await last_beat(seen)) is not None and beat != heard:
                    heard = beat
                    hear(beat)
                if seen.status is not ActivityExecutionStatus.RUNNING:
                    return await _ended(handle, seen, heard)
                if claim.is_overdue(seen):
                    await handle.terminate(reason="no machine has it", rpc_timeout=_RPC)
                    continue  # who claimed it just before that is seen now
                if stop.requested and asked_at is None:
                    # A person's own words are nobody's business there.
                    await handle.cancel(reason="stopped", rpc_timeout=_RPC)
                    asked_at = time.monotonic()
            except RPCError as error:
                if not _passes(error):
                    words = "the server knows nothing of the order"
                    return Delivery(how="lost", beat=heard, words=words)
                self._server.note(answers=error.status not in _AWAY)
                if stop.requested and asked_at is None:
                    asked_at = time.monotonic()
            if asked_at is not None and time.monotonic() - asked_at > _STOPPING_S:
                where = heard.machine or "a machine"
                words = f"{where} did not answer within {_STOPPING_S:.0f} s of being stopped"
                return Delivery(how="lost", beat=heard, words=words)
            await _pause(stop, least_s=0.5 if asked_at is not None else 0.0)


def _passes(error: RPCError) -> bool:
    """Whether it is worth asking again; not where the server knows nothing of the order."""
    if error.status is RPCStatusCode.NOT_FOUND:
        return False
    if error.status not in _PASSING:
        raise AgentUnavailable(f"Temporal: {error.message[:300]}") from None
    return True


class _Claim:
    """Whether the machine that the server says has an order says so as well."""

    def __init__(self, most_s: float) -> None:
        self._most_s = most_s
        self._since: float | None = None  # it is said to have it, and has not said so

    def is_overdue(self, seen: ActivityExecutionDescription) -> bool:
        """The server has said so for too long."""
        if seen.last_started_time is None or is_claimed(seen):
            self._since = None
            return False
        if self._since is None:
            self._since = time.monotonic()
        return time.monotonic() - self._since > self._most_s


def is_claimed(seen: ActivityExecutionDescription) -> bool:
    """Whether the server has a sign of life of the machine that has the order."""
    return seen.last_heartbeat_time is not None or seen.has_heartbeat_details()


def _is_unclaimed(seen: ActivityExecutionDescription) -> bool:
    """Whether an order has ended that nobody ever had."""
    ended = (ActivityExecutionStatus.TIMED_OUT, ActivityExecutionStatus.TERMINATED)
    return seen.status in ended and not is_claimed(seen)


def time_to_claim(ticket: Ticket) -> float:
    """Seconds in which a machine has to claim an order that the server has given to it."""
    return max(_LEAST_CLAIM_S, ticket.lease_s / _CLAIM_PART)


_UNCLAIMED = Delivery(
    how="lost",
    words="the server gave it to a machine, and no machine has it",
    is_unclaimed=True,
)


def _id(ticket: Ticket, refusals: int) -> str:
    """The id of the activity that carries an order which was refused so often before."""
    return f"{ticket.id}~{refusals}" if refusals else ticket.id


async def _pause(stop: StopSignal, least_s: float = 0.0) -> None:
    """A moment; shorter where somebody stops the run."""
    if least_s:
        await asyncio.sleep(least_s)
        return
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), _LOOK_S)


async def _ended(
    handle: ActivityHandle[RawValue], seen: ActivityExecutionDescription, heard: Beat
) -> Delivery:
    """How an activity that is closed has ended."""
    if _is_unclaimed(seen):
        return _UNCLAIMED
    try:
        said = text_in(await _result(handle))
        return ended_by(msgspec.json.decode(said, type=Beat))
    except SaidOpenly as refusal:
        return _refused_openly(refusal)
    except Illegible as error:  # its report may lie on the shared remote all the same
        where = heard.machine or "a machine"
        return Delivery(how="lost", beat=heard, words=f"what {where} answered: {error}")
    except ActivityFailureError as failed:
        return Delivery(how="lost", beat=heard, words=_why(failed, heard))


async def _result(handle: ActivityHandle[RawValue]) -> RawValue:
    """What a closed activity answered; the library cancels its caller where the server is busy."""
    try:
        return await handle.result(rpc_timeout=_RPC)
    except asyncio.CancelledError as cancelled:
        if isinstance(cancelled.__cause__, RPCError):
            raise cancelled.__cause__ from None
        raise


def _refused_openly(said: SaidOpenly) -> Delivery:
    """A machine that cannot read us refuses in plain text: no more is taken from it than that."""
    beat = Beat(refused="a machine refused, and nobody can read why")
    with suppress(msgspec.DecodeError):
        found = msgspec.json.decode(str(said), type=Beat)
        beat = Beat(machine=found.machine, refused=found.refused[:MOST_WORDS] or beat.refused)
    return ended_by(beat)


def _why(failed: ActivityFailureError, heard: Beat) -> str:
    where = heard.machine or "a machine"
    cause = failed.cause
    if isinstance(cause, TimedOut):
        return f"{where} was not heard of any more"
    if isinstance(cause, ApplicationError):
        return f"{where}: {cause.message[:300]}"
    if isinstance(cause, CancelledError):
        return f"{heard.machine} was stopped" if heard.machine else "no machine had it yet"
    return f"{where} gave it up: {str(cause)[:300]}"


async def seats_at(client: Client, queue: str, *, with_work: bool = False) -> list[Seat]:
    """The machines that poll a queue, and what each works on where that is asked for."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    )
    try:
        answer = await client.workflow_service.describe_task_queue(request, timeout=_RPC)
    except RPCError as error:
        words = f"the Temporal server does not say who is there: {error.message[:300]}"
        raise AgentUnavailable(words) from None
    works = await _works_on(client) if with_work else {}
    keys = keys_at(client)
    found = dict[str, Seat]()
    for poller in answer.pollers:
        who = _identity(poller.identity)
        if who is None:
            continue  # somebody else's worker
        since = max(0.0, time.time() - poller.last_access_time.ToSeconds())
        found[who.name] = Seat(
            name=who.name,
            slots=who.slots,
            version=who.version,
            labels=who.labels,
            agents=who.agents,
            accounts=who.accounts,
            heard=min(since, getattr(found.get(who.name), "heard", None) or since),
            works_on=tuple(works.get(who.name, ())),
            keys=who.keys,
            apart=why_apart(keys, who.name, who.keys),
        )
    return sorted(found.values(), key=lambda seat: seat.name)


def _identity(said: str | None) -> Identity | None:
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(said or "", type=Identity)
    return None


async def _works_on(client: Client) -> dict[str, list[str]]:
    """The orders that are under way, by machine, as far as the server's list has them."""
    found = dict[str, list[str]]()
    seen = 0
    query = f"ActivityType = '{CARRY}' AND ExecutionStatus = 'Running'"
    with suppress(RPCError):  # a list for people: without it the machines are still shown
        running: Any = client.list_activities(query)
        async for one in running:
            seen += 1
            if seen > _MOST_KEPT:
                break
            handle = client.get_activity_handle(one.activity_id)
            details = await handle.describe(include_heartbeat_details=True, rpc_timeout=_RPC)
            who = _identity(details.last_worker_identity)
            beat = await last_beat(details)
            if (
                beat is None and who is not None and details.has_heartbeat_details()
            ):  # said with a key that is not here
                beat = Beat(machine=who.name, phase="encrypted")
            if beat is not None and beat.machine:
                found.setdefault(beat.machine, []).append(
                    f"{one.activity_id.partition('~')[0]} ({beat.phase})"
                )
    return found


async def ask_to_drain(client: Client, machine: str) -> None:
    """Have a machine take no more orders, and go once it has worked off what it has."""
    try:
        handle: ActivityHandle[RawValue] = await client.start_activity(
            DRAIN,
            args=[machine] if keys_at(client) else [],  # with a key, the asker has to show that
            result_type=RawValue,
            id=f"drain-{machine}-{time.time_ns()}",
            task_queue=own_queue(machine),
            start_to_close_timeout=_RPC,
            schedule_to_start_timeout=_RPC,
            retry_policy=RetryPolicy(maximum_attempts=1),
            rpc_timeout=_RPC,
        )
        text_in(await _result(handle))
    except ActivityFailureError:
        raise UsageError(
            f"no worker named {machine!r} answers", "ralph fleet status shows who is there"
        ) from None
    except Illegible as refusal:
        raise UsageError(f"{machine} refused: {refusal}") from None
    except RPCError as error:
        words = f"the Temporal server did not ask {machine}: {error.message[:300]}"
        raise AgentUnavailable(words) from None
