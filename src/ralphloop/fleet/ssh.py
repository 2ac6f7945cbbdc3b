"""A fleet without a server: a pipe through ssh to a hand on each machine.

The machines are chosen here, one order at a time for each.  The end of the pipe ends the agent
there, so an order never outlives the run that gave it away; what its hand could still report lies
on the shared remote.

A machine that cannot be reached has refused nothing: others are asked meanwhile, then it again.
"""

import asyncio
import shlex
import time
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ralphloop.fleet.carrier import Delivery, Hear, How, Seat, ended_by
from ralphloop.fleet.pipe import HandPipe
from ralphloop.fleet.values import Beat, Ticket, Word
from ralphloop.loop.run import Tell
from ralphloop.proc.threads import StopSignal
from ralphloop.text.plain import some

PREFIX = "ssh:"
_STOPPING_S = 15.0
_LOOK_S = 1.0  # whether an account has stopped waiting, or a machine may be asked again
_AGAIN_S = 10.0  # after a machine could not be reached
_NO_CONNECTION = 255  # the exit code of ssh where it is not that of the command over there
# What it says where waiting helps nobody: the machine has answered, or ssh was started wrongly.
_TO_BE_PUT_RIGHT = (
    "permission denied",
    "host key verification failed",
    "too many authentication failures",
    "no matching ",
    "bad configuration option",
    "usage: ssh",
)
_NO_SUCH_NAME = "could not resolve hostname"
_FOR_NOW = "temporary failure"


class _AgentThere(NamedTuple):
    """An agent on one machine, which has one account."""

    host: str
    agent: str


class SshCarrier:
    def __init__(
        self,
        hosts: Sequence[str],
        ssh: Sequence[str],
        program: Sequence[str],
        env: Mapping[str, str],
        tell: Tell,
    ) -> None:
        self._hosts = list(dict.fromkeys(hosts))
        self._ssh = ssh
        self._program = program
        self._env = env
        self._tell = tell
        self._idle = list(self._hosts)
        self._freed = asyncio.Event()  # a machine is idle again; another one each time
        self._working: dict[str, str] = {}
        self._waits: dict[_AgentThere, float] = {}  # until when its account does
        self._heard = set[str]()  # the machines that have said something in this run
        self._silent: dict[str, float] = {}  # when those that are away may be asked again

    async def seats(self) -> list[Seat]:
        """The machines that were named; none of them is asked."""
        return [Seat(name=host, works_on=_one(self._working.get(host))) for host in self._hosts]

    async def carry(self, ticket: Ticket, hear: Hear, stop: StopSignal) -> Delivery:
        """Give the order to the first machine that takes it: who refuses has started nothing."""
        refusals = dict[str, str]()
        while True:
            host = await self._take(ticket, stop, refusals)
            if not host:
                return Delivery(how="lost", words=stop.reason or "stopped")
            self._working[host] = ticket.id
            try:
                delivery = await self._carry_to(host, ticket, hear, stop)
            finally:
                self._working.pop(host, None)
                self._idle.append(host)
                self._freed.set()
                self._freed = asyncio.Event()
            if delivery.how != "refused":
                return delivery
            if delivery.is_away and not ticket.machine:
                self._note_silence(host, delivery.words)
                continue
            if until := delivery.beat.away_until:
                hear(delivery.beat)
                self._waits[_AgentThere(host, ticket.agent)] = until
                continue
            refusals[host] = delivery.words
            if ticket.machine or len(refusals) == len(self._hosts):
                return Delivery(how="refused", words="; ".join(refusals.values()))

    async def take_up(self, ticket: Ticket, hear: Hear, stop: StopSignal) -> Delivery:
        """What was given away ended with the pipe; perhaps it has reported."""
        return Delivery(how="lost", words="the connection ended with the run that had made it")

    async def close(self) -> None:
        """Every pipe has ended with its order."""

    async def _take(self, ticket: Ticket, stop: StopSignal, but: Container[str]) -> str:
        """A machine that is free and has not refused; empty where a stop came first."""
        stopped = asyncio.create_task(stop.wait())
        try:
            while not stop.requested:
                fit = (it for it in self._idle if it not in but and self._may_have(ticket, it))
                if first := next(fit, ""):
                    self._idle.remove(first)
                    return first
                freed = asyncio.create_task(self._freed.wait())
                await asyncio.wait(
                    {freed, stopped}, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED
                )
                freed.cancel()
            return ""
        finally:
            stopped.cancel()

    def _may_have(self, ticket: Ticket, host: str) -> bool:
        """Whether an order is for that machine, it is not away, and its account need not wait.

        A question goes to its conversation all the same, which is nowhere else.
        """
        if ticket.machine:
            return host == ticket.machine
        if self._silent.get(host, 0.0) > time.monotonic():
            return False
        return self._waits.get(_AgentThere(host, ticket.agent), 0.0) <= time.time()

    def _note_silence(self, host: str, words: str) -> None:
        """A machine cannot be reached: said once, however often it is asked."""
        if host not in self._silent:
            self._tell(f"warning: {words}; it is asked again every {_AGAIN_S:.0f} s.")
        self._silent[host] = time.monotonic() + _AGAIN_S

    def _note_word(self, host: str) -> None:
        self._heard.add(host)
        if self._silent.pop(host, None) is not None:
            self._tell(f"{host} answers again.")

    async def _carry_to(self, host: str, ticket: Ticket, hear: Hear, stop: StopSignal) -> Delivery:
        words = shlex.join([*self._program, "fleet", "hand", "--name", host])
        try:
            pipe = HandPipe([*self._ssh, host, words], self._env, Path.cwd())
        except OSError as error:
            return Delivery(how="refused", words=f"{self._ssh[0]} cannot be started: {error}")
        hear(Beat(machine=host))

        def heard(beat: Beat) -> None:
            self._note_word(host)
            hear(beat)

        held = asyncio.create_task(pipe.hold(ticket, heard))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({held, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not held.done():
                await pipe.say(Word(stop=stop.reason or "stopped"))
                await asyncio.wait({held}, timeout=_STOPPING_S)
            if not held.done():
                words = f"{host} did not answer within {_STOPPING_S:.0f} s of being stopped"
                return Delivery(how="lost", beat=pipe.beat, words=words)
            beat = held.result()
            if beat.is_last:
                return ended_by(beat)
            said = pipe.said()
            last = f": {said.splitlines()[-1]}" if said else ""
            # A hand that has not said a word has not begun.
            how: How = "lost" if beat.machine else "refused"
            if how == "refused" and self._is_away(host, pipe):
                return Delivery(how=how, words=f"{host} does not answer{last}", is_away=True)
            return Delivery(how=how, beat=beat, words=f"the connection to {host} ended{last}")
        finally:
            for task in (held, stopped):
                task.cancel()
            await asyncio.gather(held, stopped, return_exceptions=True)
            pipe.close()

    def _is_away(self, host: str, pipe: HandPipe) -> bool:
        """Whether nobody was reached, which may pass; a name that nobody knows is no machine."""
        said = pipe.said().lower()
        if pipe.exit_code != _NO_CONNECTION or any(it in said for it in _TO_BE_PUT_RIGHT):
            return False
        return host in self._heard or _NO_SUCH_NAME not in said or _FOR_NOW in said


def _one(ticket: str | None) -> tuple[str, ...]:
    return (ticket,) if ticket else ()


def hosts_in(server: str) -> list[str]:
    """The machines of `ssh:host1,host2`."""
    from ralphloop.errors import InputError

    hosts = [name.strip() for name in server.removeprefix(PREFIX).split(",")]
    wrong = [name for name in hosts if not name or name.startswith("-") or " " in name]
    if wrong:
        raise InputError(f"{some(wrong) or server!r} is no machine", "Such as ssh:host1,host2")
    return hosts
