"""Who gets an order: machines that refuse, and orders that a predecessor gave away."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import ActivityExecutionStatus, Client
from temporalio.common import RawValue
from temporalio.exceptions import ActivityAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from ralphloop import __version__
from ralphloop.fleet import temporal
from ralphloop.fleet.carrier import Delivery
from ralphloop.fleet.ssh import SshCarrier
from ralphloop.fleet.values import Beat, Ticket
from ralphloop.proc.threads import StopSignal

TICKET = Ticket(id="run/1", order="0" * 40, repository="app", version=__version__)
DONE = Beat(machine="three", phase="sending", report="f" * 40)


class _Order:
    """An activity that has ended with this beat."""

    def __init__(self, said: Beat | None) -> None:
        self._said = said

    async def describe(self, **_: object) -> SimpleNamespace:
        """What the server tells of it; it knows nothing of one that was never given away."""
        if self._said is None:
            raise RPCError("no such activity", RPCStatusCode.NOT_FOUND, b"")
        return SimpleNamespace(
            status=ActivityExecutionStatus.COMPLETED,
            last_started_time=1.0,
            last_heartbeat_time=1.0,
            heartbeat_details=self._no_details,
        )

    async def _no_details(self, _: object) -> list[object]:
        return []

    async def result(self, **_: object) -> RawValue:
        """Its last beat, as a machine sends it."""
        assert self._said is not None
        text = msgspec.json.encode(msgspec.json.encode(self._said).decode())
        return RawValue(Payload(metadata={"encoding": b"json/plain"}, data=text))


class _Server:
    """A Temporal server with machines that poll, and orders that are there or end as they must."""

    def __init__(self, polling: tuple[str, ...], given: int, *ends: Beat) -> None:
        self.given = given  # by a predecessor
        self._ends = ends
        who = [temporal.Identity(name=name, version=__version__) for name in polling]
        self._pollers = [msgspec.json.encode(it).decode() for it in who]
        self.service_client = SimpleNamespace(config=SimpleNamespace(target_host="here:1"))
        self.data_converter = SimpleNamespace(payload_codec=None)
        self.namespace = "default"
        self.workflow_service = self

    async def describe_task_queue(self, *_: object, **__: object) -> SimpleNamespace:
        """Who polls, as of now."""
        seen = SimpleNamespace(ToSeconds=time.time)
        found = [SimpleNamespace(identity=it, last_access_time=seen) for it in self._pollers]
        return SimpleNamespace(pollers=found)

    async def start_activity(self, *_: object, id: str, **__: object) -> _Order:  # noqa: A002
        """The next order; an id is given once."""
        if self._number(id) < self.given:
            raise ActivityAlreadyStartedError(id, "CARRY")
        self.given += 1
        return self.get_activity_handle(id)

    def get_activity_handle(self, name: str, **_: object) -> _Order:
        """An order by its id."""
        number = self._number(name)
        return _Order(self._ends[number] if number < self.given else None)

    def _number(self, name: str) -> int:
        return int(name.partition("~")[2] or 0)


def _refused(machine: str, away_until: float = 0.0) -> Beat:
    return Beat(machine=machine, refused=f"{machine} refuses", away_until=away_until)


def _deliver(server: _Server, *, takes_up: bool = False) -> Delivery:
    carrier = temporal.TemporalCarrier(cast(Client, server), "app", lambda _: None)

    async def delivered() -> Delivery:
        carry: Any = carrier.take_up if takes_up else carrier.carry
        found: Delivery = await carry(TICKET, lambda _: None, StopSignal())
        return found

    return asyncio.run(delivered())


def test_an_account_is_waited_for_whoever_refuses_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two machines that refuse, one will work once its limit has reset: it is asked again."""
    monkeypatch.setattr(temporal, "_LOOK_S", 0.05)
    for first, second in (("one", "two"), ("two", "one")):
        until = {"one": time.time() + 0.5}
        refusals = [_refused(name, until.get(name, 0.0)) for name in (first, second)]
        delivery = _deliver(_Server(("one", "two"), 0, *refusals, DONE))

        assert delivery.how == "done", delivery


def test_an_order_that_everybody_refuses_is_refused() -> None:
    """Each is asked once, and all of their words are told."""
    server = _Server(("one", "two"), 0, _refused("one"), _refused("two"))
    delivery = _deliver(server)

    assert delivery.how == "refused"
    assert delivery.words == "one refuses; two refuses"
    assert server.given == 2


def test_the_machine_that_has_an_order_by_now_is_waited_for() -> None:
    """Two refused it before the run was killed; the third is busy, so nobody sees it poll."""
    refusals = [_refused("one"), _refused("two")]
    delivery = _deliver(_Server(("one", "two"), 3, *refusals, DONE), takes_up=True)

    assert delivery.how == "done", delivery
    assert delivery.beat.machine == "three"


def test_an_order_that_was_refused_when_the_run_was_killed_is_given_to_the_next() -> None:
    """It goes on where it was: with the machine that has not been asked yet."""
    delivery = _deliver(_Server(("one", "three"), 1, _refused("one"), DONE), takes_up=True)

    assert delivery.how == "done", delivery


def test_an_order_of_which_the_server_knows_nothing_is_never_given_again() -> None:
    """It may have been worked off long ago, and be forgotten there."""
    server = _Server(("one",), 0, DONE)
    delivery = _deliver(server, takes_up=True)

    assert delivery.how == "lost"
    assert server.given == 0


HAND = """\
#!/bin/sh
# stand-in for ssh and a hand: an account that waits refuses orders, and answers questions
read ticket
case "$ticket" in
*status*) echo '{{"machine": "one", "report": "f"}}' ;;
*) echo '{{"machine": "one", "refused": "it waits", "away_until": {until}}}' ;;
esac
"""


def test_a_question_is_put_to_a_machine_whose_account_waits(tmp_path: Path) -> None:
    """Its conversation is there and nowhere else: an answer without a block is not kept for hours."""
    hand = tmp_path / "hand"
    hand.write_text(HAND.format(until=time.time() + 3600))
    hand.chmod(0o755)
    question = msgspec.structs.replace(TICKET, id="run/2.status", machine="one", slot=1)

    async def asked() -> Delivery:
        carrier = SshCarrier(["one"], [str(hand)], ["ralph"], os.environ, print)
        stop = StopSignal()
        order = asyncio.create_task(carrier.carry(TICKET, lambda _: None, stop))
        await asyncio.sleep(0.5)
        stop.request()
        await order
        return await asyncio.wait_for(carrier.carry(question, lambda _: None, StopSignal()), 10)

    assert asyncio.run(asked()).how == "done"
