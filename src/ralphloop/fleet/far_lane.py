"""A lane whose agent works on another machine.

Its work tree here is a mirror: what is measured, put right, judged, marked and landed is the
mirror, by the very steps that judge a lane of this machine.  Only a start goes elsewhere, with the
checks of the lane; their results are a claim, and count for sending work back, never for landing.

An order is in the journal before anybody has it, and its number is never given away again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from ralphloop import __version__
from ralphloop.agents.transcript import stderr_path
from ralphloop.config.model import AgentSection
from ralphloop.core.accounts import LONGEST_LABEL, AgentPlaces
from ralphloop.core.events import AgentStep
from ralphloop.core.iteration import Result
from ralphloop.core.model import CheckResult, Outcome, ProcessEnd, Response
from ralphloop.core.policy import reached, time_left
from ralphloop.core.run_state import AGENT_GONE
from ralphloop.errors import JournalError, RalphError, RepositoryError
from ralphloop.fleet.carrier import Carrier, Delivery
from ralphloop.fleet.hand import ERRORS, ORDER, PROMPT, REPORT, TRANSCRIPT
from ralphloop.fleet.parcels import (
    NoParcel,
    Parcel,
    RemoteAway,
    SharedRemote,
    files_of,
    lay,
    pack,
    unpack,
)
from ralphloop.fleet.values import Beat, GivenOrder, Ticket, WorkOrder, WorkReport, refs_of
from ralphloop.journal.queries import GIVEN_KEY
from ralphloop.lanes.pool import LanePool, LaneWorkspace
from ralphloop.lanes.worktrees import LaneTree
from ralphloop.loop.agent import money_of_start
from ralphloop.loop.ceiling import StartBudget, ceiling_kind, limits_of_start
from ralphloop.loop.prepare import Site, back_at
from ralphloop.loop.run import Run
from ralphloop.loop.steadily import steadily
from ralphloop.loop.workspace import AgentOrder
from ralphloop.proc.threads import StopSignal, in_thread
from ralphloop.repo.checks import check_of
from ralphloop.repo.preflight import no_room
from ralphloop.repo.work_tree import never_committed, project_prefix
from ralphloop.room import new_file
from ralphloop.text.plain import one_line

_AGAIN_S = 3.0
_NOTED_S = 5.0
_LOOK_S = 1.0
_GLANCE_S = 0.2  # at a second stop, which is at once
_LATE_REPORT_S = 5.0
_STOPPING_S = 15.0  # for a report that was paid for
_SLACK_S = 3600.0  # for fetching, making ready and checks, beside the agent itself
_DAY_S = 24 * 3600.0
_LONGEST_NAME = 60  # of a machine, which gives it itself
_T = TypeVar("_T")
_NO_ANSWER = Response(reader="", outcome=Outcome.INTERRUPTED)


class Fleet(NamedTuple):
    """What the lanes of one run share."""

    carrier: Carrier
    remote: SharedRemote
    repository: str
    server: str
    places: dict[str, AgentPlaces]  # the machines, as far as they are known


class _Brought(NamedTuple):
    """What came back from another machine, and the tree it came as."""

    tree: str
    report: WorkReport


class FarLane(LaneWorkspace):
    def __init__(self, site: Site, place: LaneTree, pool: LanePool, fleet: Fleet) -> None:
        super().__init__(site, place, pool)
        self._fleet = fleet
        self._brought: _Brought | None = None
        self._machine = ""
        self._told = ""  # the machine that was said to have the order
        self._slot = 0
        self._steps_shown = 0
        self._noted = 0.0
        if pool.book.fleet != fleet.server:
            pool.keep(fleet=fleet.server)

    # One start

    async def start(self, run: Run, order: AgentOrder) -> Result:
        name = ticket_of(run.id, order)
        if run.journal.meta(GIVEN_KEY.format(name)) is not None:
            raise RepositoryError(f"the order {name} was given away before")
        self._brought = None
        self._steps_shown = 0
        self._told = ""
        if self._pool.note(self.number).machine:  # of the start before; nobody has this one yet
            self._pool.write(self.number, machine="")
        files = await self._in_peace(run, lambda: self._files(f"{name}: files"))
        work = self._work_order(run, order)
        content = {ORDER: msgspec.json.encode(work), PROMPT: order.prompt.encode()}
        repo = self._fleet.remote.repo
        commit = await self._in_peace(run, lambda: pack(repo, content, f"{name}: order", files))
        ref = refs_of(name)[0]

        remote = self._fleet.remote.until(_stopped_for(run, 0.0))

        def send() -> str:
            remote.send(commit, ref)
            return commit

        if not await self._patiently(run, send, "given away", within_limits=order.until_run_ends):
            return _not_started(_why_over(run) or "stopped before it was given away")
        given = GivenOrder(
            ticket=self._ticket(run, order, name, commit),
            lane=self.number,
            log=order.log,
            files=files,
        )
        key = GIVEN_KEY.format(name)

        async def written() -> None:  # ahead: whoever comes next finds it out there
            run.journal.set_meta(key, given)

        await self.with_room(written)
        return await self._carried(run, given, within_limits=order.until_run_ends)

    def gave_away(self, run: Run, number: int) -> bool:
        return self._given(run, number) is not None

    async def take_up(self, run: Run, number: int) -> Result | None:
        given = self._given(run, number)
        if given is None:
            return None
        where = f" on {given.machine}" if given.machine else ""
        run.tell(f"Iteration {number} was given away{where}: waiting for how it ends.")
        hear = partial(self._hear, run, given)
        delivery = await self._fleet.carrier.take_up(given.ticket, hear, run.stop)
        return await self._received(run, given, delivery)

    async def _carried(self, run: Run, given: GivenOrder, *, within_limits: bool) -> Result:
        """How an order ended; `within_limits`: one that nobody has at a limit is taken back."""
        stop = StopSignal()
        watching = asyncio.create_task(self._watch(run, stop, within_limits=within_limits))
        try:
            hear = partial(self._hear, run, given)
            delivery = await self._fleet.carrier.carry(given.ticket, hear, stop)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        if stop.requested and not (run.stop.requested or self._told or delivery.beat.report):
            return _not_started(stop.reason)
        return await self._received(run, given, delivery)

    async def _watch(self, run: Run, stop: StopSignal, *, within_limits: bool) -> None:
        """Pass on that the run is to stop, and stop what waits for a machine at its limits."""
        while True:
            if run.stop.requested and not stop.requested:
                stop.request(run.stop.reason)
            if run.stop.at_once:
                stop.request()
            may_wait = self._told or not within_limits
            with suppress(RalphError):  # the loop meets it too, and says so
                if not (may_wait or stop.requested) and (words := _why_over(run)):
                    stop.request(words)
            if run.stop.requested:
                await asyncio.sleep(_GLANCE_S)
                continue
            with suppress(TimeoutError):  # the moment is over
                await asyncio.wait_for(run.stop.wait(), _LOOK_S)

    def _given(self, run: Run, number: int) -> GivenOrder | None:
        saved = run.journal.meta(GIVEN_KEY.format(f"{run.id}/{number}"))
        return None if saved is None else msgspec.convert(saved, GivenOrder)

    def _ticket(self, run: Run, order: AgentOrder, name: str, commit: str) -> Ticket:
        story = self.story(order.story) if order.story else None
        asks = not order.tools  # its conversation is where it was
        return Ticket(
            id=name,
            order=commit,
            repository=self._fleet.repository,
            version=__version__,
            labels=story.machine if story else (),
            lease_s=run.config.fleet.lease,
            most_s=order.wall_s + _SLACK_S if order.wall_s else _DAY_S,
            machine=self._machine if asks else "",
            slot=self._slot if asks else 0,
            agent=order.agent.name,
            away={} if asks else _away(run, order.agent),
        )

    def _work_order(self, run: Run, order: AgentOrder) -> WorkOrder:
        """The start as data; keys, variables and programs of this machine stay here."""
        config = run.config
        agent = order.agent
        story = self.story(order.story) if order.story else None
        budget = StartBudget(
            usd=order.budget_usd, tokens=order.budget_tokens, is_share=order.is_share
        )
        left = time_left(run.limits, run.totals(), run.clock()) if order.until_run_ends else None
        start = msgspec.structs.replace(
            order,
            prompt="",
            agent=AgentSection(name=agent.name, model=agent.model, format=agent.format),
            budget_usd=money_of_start(run, order),
        )
        settings = {"agent.name": config.agent.name, "agent.model": config.agent.model}
        return WorkOrder(
            start=start,
            project=project_prefix(self._pool.checkout.root, self._pool.home.project.root),
            lane=self.number,
            limits=limits_of_start(run, budget),
            ceiling=ceiling_kind(run, is_share=order.is_share),
            prices=dict(config.prices.models),
            time_left_s=left.seconds if left else None,
            time_words=left.words if left else "",
            checks=tuple(tuple(argv) for argv in run.session.baseline.checks),
            check_timeout_s=config.checks.timeout,
            verify=story.verify if story else None,
            settings={name: value for name, value in settings.items() if value},
            strictness={"agent.safety": agent.safety, "sandbox.mode": config.sandbox.mode},
        )

    def _files(self, words: str) -> str:
        prefix = project_prefix(self._pool.checkout.root, self._pool.home.project.root)
        own = never_committed(prefix, litter=self._pool.home.site.litter)
        return files_of(self.place.repo, own.patterns, words)

    # What is heard meanwhile

    def _hear(self, run: Run, given: GivenOrder, beat: Beat) -> None:
        """Show what a machine says, and keep what it has used so far.

        What cannot be written for want of room is said no more; the order goes on.
        """
        try:
            self._show(run, given, beat)
        except JournalError as error:
            if not no_room(self._pool.home.project.directory, said=error):
                raise

    def _show(self, run: Run, given: GivenOrder, beat: Beat) -> None:
        self._note_account(given.ticket.agent, beat)
        if beat.away_until:
            return  # which was said when it began to wait
        if beat.refused:
            run.tell(f"warning: lane {self.number}: {beat.refused}; another machine is asked")
            return
        number = int(given.ticket.mark.partition("/")[2])
        if beat.has_begun and beat.machine not in ("", self._told):
            self._told = beat.machine
            self._pool.write(self.number, machine=one_line(beat.machine, _LONGEST_NAME))
            run.tell(f"lane {self.number}: iteration {number} is on {beat.machine}")
        self._machine = beat.machine or self._machine
        self._slot = beat.slot or self._slot
        for step in beat.steps:
            if step.number > self._steps_shown:
                self._steps_shown = step.number
                run.emit(AgentStep(kind=step.kind, summary=step.summary), number)
        now = time.monotonic()
        if now - self._noted > _NOTED_S and (beat.usd or beat.tokens or beat.has_answered):
            self._noted = now
            noted = msgspec.structs.replace(
                given,
                machine=beat.machine,
                account=beat.account,
                usd=beat.usd,
                tokens=beat.tokens,
                has_answered=beat.has_answered,
            )
            run.journal.put("fleet_beat", {GIVEN_KEY.format(given.ticket.id): noted}, durable=False)

    def _note_account(self, agent: str, beat: Beat) -> None:
        """Keep with which account a machine works."""
        if (beat.machine and beat.has_begun) or beat.away_until:
            known = self._fleet.places.get(beat.machine, AgentPlaces())
            self._fleet.places[beat.machine] = known.with_one(
                agent, one_line(beat.account, LONGEST_LABEL)
            )

    # How it ended

    async def _received(self, run: Run, given: GivenOrder, delivery: Delivery) -> Result:
        """The result, with the files that came with it in the mirror, and where it was made."""
        if delivery.how != "refused":
            self._hear(run, given, delivery.beat)  # of a short start it is the first that is heard
        result = await self._outcome(run, given, delivery)
        machine = delivery.beat.machine or given.machine
        account = delivery.beat.account or given.account
        if self._brought is not None:
            machine = self._brought.report.machine
            account = self._brought.report.account
        return msgspec.structs.replace(
            result,
            machine=one_line(machine, _LONGEST_NAME),
            account=one_line(account, LONGEST_LABEL),
        )

    async def _outcome(self, run: Run, given: GivenOrder, delivery: Delivery) -> Result:
        """What came back, or what is known of a start of which nothing did."""
        commit = delivery.beat.report
        if delivery.how == "lost" and not commit:
            commit = await self._late_report(run, given)
        if commit:
            words = "the report could not be fetched"
            try:
                if (parcel := await self._fetched(run, given, commit)) is not None:
                    return await self._unpacked(run, given, parcel)
            except NoParcel as error:
                where = delivery.beat.machine or given.machine or "a machine"
                words = f"the report of {where} cannot be read: {error}"
            delivery = msgspec.structs.replace(delivery, how="lost", words=words)
        if delivery.how == "refused":
            response = Response(reader="", outcome=Outcome.STARTUP_ERROR, reason=delivery.words)
            return Result(response=response, end=ProcessEnd(exit_code=None))
        return self._lost(run, given, delivery)

    def _lost(self, run: Run, given: GivenOrder, delivery: Delivery) -> Result:
        """A start of which nothing came back but what was heard: that much was paid for."""
        beat = delivery.beat
        number = given.ticket.mark.partition("/")[2]
        run.tell(f"warning: iteration {number}: {delivery.words}")
        heard = msgspec.structs.replace(
            given, usd=max(beat.usd, given.usd), tokens=max(beat.tokens, given.tokens)
        )
        is_stop = run.stop.requested
        response = Response(
            reader="",
            outcome=Outcome.INTERRUPTED if is_stop else Outcome.KILLED,
            reason=delivery.words,
            usage=heard.usage,
            model_output=beat.has_answered or given.has_answered,
        )
        return Result(
            response=response,
            end=ProcessEnd(exit_code=None, interrupted=is_stop),
            stopped_because=delivery.words,
        )

    async def _late_report(self, run: Run, given: GivenOrder) -> str:
        """What a hand that lost its supervisor has reported all the same; empty: nothing."""
        ref = refs_of(given.ticket.id)[1]
        remote = self._fleet.remote.until(_stopped_for(run, _LATE_REPORT_S))
        until = time.monotonic() + _LATE_REPORT_S
        while True:
            try:
                if commit := await self._in_peace(run, lambda: remote.names(ref)):
                    return commit
            except RemoteAway:
                return ""
            if time.monotonic() > until or run.stop.requested:
                return ""
            await asyncio.sleep(1.0)

    async def _fetched(self, run: Run, given: GivenOrder, commit: str) -> Parcel | None:
        """The report of this name; None where the run ends before the remote has answered."""
        ref = refs_of(given.ticket.id)[1]
        remote = self._fleet.remote.until(_stopped_for(run, _STOPPING_S))
        if await self._patiently(run, lambda: remote.fetch(ref), "fetched") != commit:
            return None
        return await self._in_peace(run, lambda: unpack(remote.repo, commit))

    async def _unpacked(self, run: Run, given: GivenOrder, parcel: Parcel) -> Result:
        try:
            report = msgspec.json.decode(parcel.content.get(REPORT, b""), type=WorkReport)
        except msgspec.DecodeError as error:
            raise NoParcel(str(error)) from error
        log = self.project.transcripts / given.ticket.run / given.log

        async def brought() -> str:
            await in_thread(lambda _: lay(self.place, parcel))
            self.touched()
            _keep_words(log, parcel)
            return self.tree().tree

        tree = await self._steadily(run, brought)
        self._machine = report.machine
        self._slot = report.slot
        self._brought = _Brought(tree, report)
        return report.result

    async def _in_peace(self, run: Run, work: Callable[[], _T]) -> _T:
        """What comes of work for git, beside the event loop; begun again as all steps are."""

        async def steps() -> _T:
            return await in_thread(lambda _: work())

        return await self._steadily(run, steps)

    async def _steadily(self, run: Run, steps: Callable[[], Awaitable[_T]]) -> _T:
        """What comes of steps; begun again where git was killed, or the disk was full."""
        return await self.with_room(partial(steadily, run, steps))

    async def _patiently(
        self, run: Run, ask: Callable[[], str], what: str, *, within_limits: bool = False
    ) -> str:
        """What the remote answers, once it does; empty where the run is stopped first.

        `within_limits`: or is at one; what was paid for is waited for longer than that.
        """
        said = False
        while True:
            try:
                return await self._in_peace(run, ask)
            except RemoteAway as error:
                if not said:
                    run.tell(f"warning: lane {self.number} waits to have its work {what}: {error}")
                said = True
            if run.stop.requested or (within_limits and _why_over(run)):
                return ""
            with suppress(TimeoutError):  # the moment is over
                await asyncio.wait_for(run.stop.wait(), _AGAIN_S)

    # What was checked over there

    async def run_checks(
        self,
        run: Run,
        commands: Iterable[Sequence[str]],
        *,
        verify: Sequence[str] | None = None,
        to_the_end: bool = False,
    ) -> tuple[CheckResult, ...]:
        wanted = [tuple(argv) for argv in commands]
        known = self._known(run, wanted, verify)
        if known:
            return known
        return await super().run_checks(run, wanted, verify=verify, to_the_end=to_the_end)

    def _known(
        self, run: Run, commands: Sequence[Sequence[str]], verify: Sequence[str] | None
    ) -> tuple[CheckResult, ...]:
        """What these commands said on the other machine, of just the files that are here now."""
        brought = self._brought
        if brought is None or not brought.report.checks:
            return ()
        by_name = {result.name: result for result in brought.report.checks}
        found = [by_name.get(check_of(argv).name) for argv in commands]
        if verify:
            may = run.setup.may_verify(verify)
            found.append(brought.report.verify if may else None)
        if any(it is None for it in found) or self.tree().tree != brought.tree:
            return ()
        return tuple(it for it in found if it is not None)


def _keep_words(log: Path, parcel: Parcel) -> None:
    """Keep what the agent has printed, as if it had worked here."""
    log.parent.mkdir(parents=True, exist_ok=True)
    for name, path in {TRANSCRIPT: log, ERRORS: stderr_path(log)}.items():
        if (data := parcel.content.get(name)) is not None:
            with new_file(path) as file:
                file.write(data)


def ticket_of(run: str, order: AgentOrder) -> str:
    """The id of an order: of a start, or of the question that follows it."""
    return f"{run}/{order.number}" + ("" if order.tools else ".status")


def _away(run: Run, agent: AgentSection) -> dict[str, float]:
    """The accounts of an agent that have to wait now, and until when."""
    known = run.session.state.agent_available_at
    same = [it for it in run.workers if (it.name, it.config.model) == (agent.name, agent.model)]
    found = {it.account: back_at(it, known) for it in same}
    gone = run.clock() + _DAY_S  # none of them in this run
    now = run.clock()
    return {
        account: gone if back == AGENT_GONE else back
        for account, back in found.items()
        if back == AGENT_GONE or back > now
    }


def _stopped_for(run: Run, seconds: float) -> Callable[[], bool]:
    """Says whether the run was to stop so long ago; asked twice, it is at once."""
    since = 0.0

    def is_over() -> bool:
        nonlocal since
        if run.stop.requested and not since:
            since = time.monotonic()
        return run.stop.at_once or (since > 0 and time.monotonic() - since >= seconds)

    return is_over


def _why_over(run: Run) -> str:
    """Why nothing is to be started any more: a stop, or a limit of the run; empty: it may be."""
    if run.stop.requested:
        return run.stop.reason or "stopped"
    over = reached(run.limits, run.totals(), run.clock())
    return over.reasons[0] if over else ""


def _not_started(reason: str) -> Result:
    response = msgspec.structs.replace(_NO_ANSWER, reason=reason)
    return Result(
        response=response,
        end=ProcessEnd(exit_code=None, interrupted=True),
        stopped_because=reason,
    )
