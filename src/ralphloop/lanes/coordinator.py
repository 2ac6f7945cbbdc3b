"""Who works where: the loop of a run with lanes.

What is decided between two starts (limits, waits, a person's wishes, the next stories) is decided
here, once for all.  Lanes share the run's session, so what one finds out (a usage limit, an open
circuit) the others know.  A decision to end lets those in flight end their iteration, and land.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from ralphloop.core.events import Landing, Waiting
from ralphloop.core.model import Decision, ExitDecision, Story, StoryList
from ralphloop.core.planning import IDLE, Plan, assign, room_for
from ralphloop.core.policy import HOUR, reached
from ralphloop.errors import GitDisturbed, InputError, RalphError
from ralphloop.lanes.branch import keep_up
from ralphloop.lanes.landing import land_iteration, stopped
from ralphloop.lanes.meanwhile import Edits, watch
from ralphloop.lanes.stash import hear_of_stashes
from ralphloop.lanes.yard import Lane, Yard, mend_landing, mend_lane, take_up
from ralphloop.loop.agent import run_agent
from ralphloop.loop.begin import Round, begin
from ralphloop.loop.judging import Judgement, judge
from ralphloop.loop.loop import (
    NOT_NOW,
    cool_down_circuit,
    final_decision,
    reason_to_stop,
    reload_stories,
    run_verify_before_first_start,
)
from ralphloop.loop.requests import handle_requests
from ralphloop.loop.run import Run
from ralphloop.loop.steadily import Disturbance, steadily
from ralphloop.loop.waiting import all_away, hold, wait_after, wait_for_agent, wait_if_needed
from ralphloop.proc.threads import short
from ralphloop.repo.preflight import no_room

_NO_ROOM_S = 5.0
_MOST_MENDS = 50
_ROOM_HELPS = "it goes on by itself once there is room"
_T = TypeVar("_T")


class _Over(Exception):
    """The run ends before a start is through."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision


def keeps_to_its_share(run: Run) -> bool:
    """Whether every agent can be told how much money it may spend."""
    return all(worker.agent.name == "claude" for worker in run.setup.workers)


class Coordinator:
    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self._run = yard.run
        self._landing = yard.workspace
        self._queue = asyncio.Lock()  # the landing tree: first come, first landed
        self._queued = 0
        self._tasks: dict[asyncio.Task[Decision | None], Lane] = {}
        self._outage: Judgement | None = None  # a start that came to nothing, to be waited for
        self._stories: StoryList | None = None
        self._edits = Edits(yard)
        self._met_full = 0  # how often the disk was found to be full
        self._lands: Lane | None = None  # whose story is in the landing tree now
        self._mends = 0  # how often a tree had to be made again

    async def run(self) -> Decision:
        end: Decision | None = None
        try:
            while True:
                if end is None:
                    end = await self._next()
                if not self._tasks:
                    mend_landing(self.yard)
                    if (named := final_decision(self._run, self._landing, end or IDLE)) is not IDLE:
                        return named
                    continue  # a story turned out to be open
                done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._tasks.pop(task).busy = ""
                end = next((decision for task in done if (decision := task.result())), end)
        finally:
            if self._tasks:  # an error of one lane: the others end with their iteration
                self._run.stop.request("another lane met an error")
                await asyncio.wait(self._tasks)
                self._tasks.clear()

    async def _next(self) -> Decision | None:
        """Start what can start; held where what comes before that cannot be written down."""
        disturbance = Disturbance(self._run)
        try:
            while True:
                try:
                    return await self._started()
                except GitDisturbed as error:
                    disturbed = error
                except RalphError as error:
                    if not (full := self._no_room(error)):
                        raise
                    if decision := await self._held(full):
                        return decision
                    continue
                await disturbance.sit_out(disturbed)
        finally:
            disturbance.over()

    async def _started(self) -> Decision | None:
        """Start what can start; a decision where nothing is to start any more."""
        if decision := await self._before():
            return decision
        while (stories := self._listed()) is None:
            if decision := await hold(self._run, self._landing, "the story file cannot be read"):
                return decision
        for story in self.plan(stories).starts:
            lane = await asyncio.to_thread(self._free_lane, story.id)
            lane.busy = story.id
            self._tasks[asyncio.create_task(self._work(lane, story))] = lane
        return None

    async def _before(self) -> Decision | None:
        """What stops or delays the next start, for all lanes alike."""
        run = self._run
        workspace = self._landing
        run.beat()
        handle_requests(run, workspace)
        if not self._queue.locked():  # what lands now looks for itself
            mend_landing(self.yard)
            keep_up(self.yard)
        while True:
            cool_down_circuit(run)
            if decision := reason_to_stop(run, workspace) or await wait_if_needed(run, workspace):
                return decision
            outage = self._outage
            self._outage = None
            if outage and (decision := await wait_after(run, workspace, outage)):
                return decision
            if (until := all_away(run)) is not None:
                if decision := await wait_for_agent(run, workspace, until):
                    return decision
                continue
            if not (low := self._no_room()):
                return None
            if decision := await self._held(low):
                return decision

    def _listed(self) -> StoryList | None:
        """The stories as the landing tree has them; while something lands, as they were before."""
        run = self._run
        workspace = self._landing
        with suppress(InputError):
            if not self._queue.locked():
                self._edits.take_over()
                self._stories = reload_stories(run, workspace)
        return run.as_known(self._stories)

    def plan(self, stories: StoryList) -> Plan:
        """Which stories start now, and why others wait."""
        run = self._run
        flying = [lane.busy for lane in self._tasks.values()]
        count = self.yard.book.count
        most = run.config.limits.calls_per_hour
        room = room_for(
            run.limits,
            run.totals(),
            lanes=count,
            flying=[lane.took for lane in self._tasks.values()],
            dearest=run.journal.dearest(),
            capped=keeps_to_its_share(run),
        )
        if most:
            room = min(room, most - run.journal.starts_since(run.clock() - HOUR))
        only = run.setup.options.only
        return assign(stories, run.session.stories, flying=flying, room=room, only=only)

    def _free_lane(self, story: str) -> Lane:
        """The lane that holds the story's work, else an idle one, one without work first."""
        yard = self.yard
        busy = {lane.number for lane in self._tasks.values()}
        held = yard.book.lane_of(story)
        if held and held not in busy:
            return yard.lane(held)
        idle = [n for n in range(1, max(yard.book.count, 1) + 1) if n not in busy]
        return yard.lane(min(idle, key=lambda n: (bool(yard.note(n).story), n)))

    def share(self, lane: Lane, left: float) -> float:
        """What a lane may spend so that all together never spend more than is left."""
        others = [
            it.share for it in self._tasks.values() if it is not lane and it.share is not None
        ]
        free = self.yard.book.count - len(others)
        lane.share = max(0.0, left - sum(others)) / max(1, free)
        return lane.share

    async def _work(self, lane: Lane, story: Story) -> Decision | None:
        """One start of the agent in a lane, to its landing; a decision where it ends the run."""
        run = self._run
        workspace = lane.workspace
        judged: Judgement | None = None
        workspace.reserve_money = lambda left: self.share(lane, left)
        try:
            await self._with_room(lane, lambda: take_up(self.yard, lane, story))
            await run_verify_before_first_start(run, workspace, story)
            if run.stop.requested:
                return run.interrupted
            begun = await self._with_room(lane, lambda: short(lambda: self._begun(lane, story)))
            result = await run_agent(run, workspace, begun)
            await self._with_room(lane, lambda: self._put_right(lane, begun))
            judged = await self._with_room(lane, lambda: judge(run, workspace, begun, result))
            lane.took = judged.step.spent
            lane.share = lane.took.cost_usd
            decision = await self._concluded(lane, judged)
        except _Over as over:
            return stopped(self.yard, lane, judged, over.decision) if judged else over.decision
        finally:
            lane.share = lane.took = None
        if judged.step.analysis.outcome.is_infrastructure and not run.stop.requested:
            self._outage = judged
        return decision

    def _begun(self, lane: Lane, story: Story) -> Round:
        """The start of an agent, written ahead, with what is outside of its lane."""
        run = self._run
        workspace = lane.workspace
        if lane.begun is None:
            lane.begun = begin(run, workspace, story, run.as_known(workspace.story_list()))
        watch(self.yard, lane, lane.begun)
        begun = lane.begun
        lane.begun = None
        return begun

    def _no_room(self, said: object = "") -> str:
        found = no_room(self.yard.landing.root, self.yard.home.project.directory, said=said)
        if found:
            self._met_full += 1
        return found

    def _mend(self, lane: Lane) -> bool:
        """Make the trees again that a lane works with and somebody deleted; whether any was."""
        found = mend_lane(self.yard, lane)
        if found:
            lost = lane.lost
            lane.workspace.left_lane = lambda: lost
        if self._lands is None or self._lands is lane:
            found = mend_landing(self.yard) or found
        if found:
            self._mends += 1
        return found and self._mends <= _MOST_MENDS

    async def _put_right(self, lane: Lane, begun: Round) -> None:
        """Put right what is not this agent's doing, before anything of it is measured."""
        self._mend(lane)
        await hear_of_stashes(self.yard, lane, begun.stashes)

    async def _with_room(self, lane: Lane, steps: Callable[[], Awaitable[_T]]) -> _T:
        """Take steps that can be begun again until there was room: a full disk makes checks red.

        They are also begun again where somebody deleted a tree that they work in.
        """
        said: object = ""
        while True:
            while full := self._no_room(said):
                said = ""
                if decision := await self._held(full):
                    raise _Over(decision)
            met_before = self._met_full
            try:
                came = await steadily(self._run, steps)
            except (RalphError, OSError) as error:
                if not self._no_room(said := error) and not self._mend(lane):
                    raise
                continue
            if isinstance(came, Judgement) and self._mend(lane):
                continue
            is_red = isinstance(came, Judgement) and not came.step.verdict.passed
            if not (is_red and (self._no_room() or self._met_full > met_before)):
                return came

    async def _held(self, full: str) -> Decision | None:
        """Wait a little for room; where not even that can be written down, all the same."""
        run = self._run
        workspace = self._landing
        decision = None
        reason = f"{full}; {_ROOM_HELPS}"
        is_new = reason != run.held_for
        try:
            decision = await hold(run, workspace, reason)
            decision = decision or reached(run.limits.of_time, run.totals(), run.clock())
        except RalphError:
            if is_new:  # it can be said, but not written
                run.sink(run.new_event(Waiting(kind="pause", reason=reason)))
            await asyncio.sleep(_NO_ROOM_S)
        return run.interrupted if run.stop.requested else decision

    async def _concluded(self, lane: Lane, judged: Judgement) -> Decision | None:
        """Write it down; where it would pass, in its turn and where it lands."""
        run = self._run
        workspace = self._landing
        begun = judged.begun
        if judged.cut_short:
            raise _Over(run.interrupted)
        if not judged.step.verdict.passed:
            return await self._written(lane, judged)
        story = begun.story.id if begun.story else ""
        told = Landing(story=story, lane=lane.number, ahead=self._queued)
        self._queued += 1

        async def tell() -> None:  # as a step that can be begun again
            run.emit(told, begun.number)

        try:
            await self._with_room(lane, tell)
            async with self._queue:
                self._lands = lane
                if run.stop.requested:
                    raise _Over(run.interrupted)
                decision = await self._written(lane, judged)
                mend_landing(self.yard)
                workspace.publish(run)
                self._stories = workspace.story_list()
        finally:
            self._queued -= 1
            if self._lands is lane:
                self._lands = None
        return decision

    async def _written(self, lane: Lane, judged: Judgement) -> Decision | None:
        decision = await self._with_room(lane, lambda: land_iteration(self.yard, lane, judged))
        if decision is None:
            raise _Over(self._run.interrupted)
        if decision.word is ExitDecision.INTERRUPTED:
            return self._run.interrupted if self._run.stop.requested else None
        # That nothing is left to do is found out when nobody works.
        return None if decision.word in NOT_NOW else decision
