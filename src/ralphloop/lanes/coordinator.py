"""Who works where: the loop of a run with lanes.

What is decided between two starts (limits, waits, a person's wishes, the next stories) is decided
here, once for all.  Lanes share the run's session, so what one finds out (a usage limit, an open
circuit) the others know.  A decision to end lets those in flight end their iteration, and land.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from ralphloop.core.events import Landing, Waiting
from ralphloop.core.model import Decision, ExitDecision, Story, StoryList
from ralphloop.core.planning import IDLE, room_for, who_starts
from ralphloop.core.policy import HOUR, reached
from ralphloop.errors import GitDisturbed, InputError, RalphError
from ralphloop.lanes.branch import keep_up
from ralphloop.lanes.checkout_watch import Edits, report_work_outside, watch
from ralphloop.lanes.found_stories import take_in_found
from ralphloop.lanes.landing import Foresight, land_iteration, leave_for_later
from ralphloop.lanes.pool import Lane, LanePool, mend_landing, mend_lane, take_up
from ralphloop.lanes.stash import hear_of_stashes
from ralphloop.lanes.train import Train
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
from ralphloop.loop.steadily import Disturbance
from ralphloop.loop.waiting import (
    all_away,
    hold,
    slots_away,
    wait_after,
    wait_for_agent,
    wait_if_needed,
)
from ralphloop.repo.preflight import no_room

_NO_SPACE_S = 5.0
_MOST_MENDS = 50
_SPACE_HELPS = "it goes on by itself once there is room"
_T = TypeVar("_T")


class _Over(Exception):
    """The run ends before a start is through."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision


class Coordinator:
    def __init__(self, pool: LanePool) -> None:
        self.pool = pool
        self._run = pool.run
        self._landing = pool.workspace
        self._train = Train(pool)  # first come, first landed
        self._queue = asyncio.Lock()  # the landing tree
        self._tasks: dict[asyncio.Task[Decision | None], Lane] = {}
        self._outage: Judgement | None = None  # a start that came to nothing, to be waited for
        self._stories: StoryList | None = None
        self._edits = Edits(pool)
        self._met_full = 0  # how often the disk was found to be full
        self._lands: Lane | None = None  # whose story is in the landing tree now
        self._mends = 0  # how often a tree had to be made again
        pool.waits_for_room = self._with_space

    async def run(self) -> Decision:
        end: Decision | None = None
        try:
            while True:
                if end is None:
                    end = await self._next()
                if not self._tasks:
                    mend_landing(self.pool)
                    named = final_decision(self._run, self._landing, end or IDLE)
                    if named is not IDLE:
                        return named
                    continue  # a story turned out to be open
                done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._tasks.pop(task).busy = ""
                decisions = [task.result() for task in done]
                end = next(filter(None, decisions), end)
        finally:
            if self._tasks:  # an error of one lane: the others end with their iteration
                self._run.stop.request("another lane met an error")
                await asyncio.wait(self._tasks)
                self._tasks.clear()

    async def _next(self) -> Decision | None:
        """Start what can start; held where what comes before that cannot be written down."""
        while True:
            try:
                return await self._undisturbed(self._start_what_can)
            except RalphError as error:
                if not (full := self._lack_of_space(error)):
                    raise
            if decision := await self._hold_for_space(full):
                return decision

    async def _undisturbed(self, steps: Callable[[], Awaitable[_T]]) -> _T:
        """Take steps until git was left in peace; raises what stays."""
        disturbance = Disturbance(self._run)
        try:
            while True:
                try:
                    return await steps()
                except GitDisturbed as error:
                    disturbed = error
                await disturbance.sit_out(disturbed)
        finally:
            disturbance.over()

    async def _start_what_can(self) -> Decision | None:
        """Start what can start; a decision where nothing is to start any more."""
        if decision := await self._before():
            return decision
        while (stories := self._read_stories()) is None:
            if decision := await hold(self._run, self._landing, "the story file cannot be read"):
                return decision
        for story in self._next_starts(stories):
            lane = await asyncio.to_thread(self._free_lane, story.id)
            lane.busy = story.id
            lane.is_to_start = True
            self._tasks[asyncio.create_task(self._work(lane, story))] = lane
        return None

    async def _before(self) -> Decision | None:
        """What stops or delays the next start, for all lanes alike."""
        run = self._run
        workspace = self._landing
        run.beat()
        handle_requests(run, workspace)
        if not self._queue.locked():  # what lands now looks for itself
            mend_landing(self.pool)
            keep_up(self.pool)
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
            if not (low := self._lack_of_space()):
                return None
            if decision := await self._hold_for_space(low):
                return decision

    def _read_stories(self) -> StoryList | None:
        """The stories as the landing tree has them; while something lands, as they were before."""
        run = self._run
        workspace = self._landing
        with suppress(InputError):
            if not self._queue.locked():
                self._edits.take_over()
                take_in_found(self.pool)
                self._stories = reload_stories(run, workspace)
        return run.as_known(self._stories)

    def _next_starts(self, stories: StoryList) -> tuple[Story, ...]:
        """Which stories start now; why others wait is for `night` to say."""
        run = self._run
        flying = [lane.busy for lane in self._tasks.values()]
        count = max(1, self.pool.book.count - slots_away(run))
        most = run.config.limits.calls_per_hour
        room = room_for(
            run.limits,
            run.totals(),
            lanes=count,
            flying=[lane.took for lane in self._tasks.values()],
            dearest=run.journal.dearest(),
            capped=run.config.agent.keeps_to_budget,
        )
        if most:
            to_come = sum(lane.is_to_start for lane in self._tasks.values())
            room = min(room, most - run.journal.starts_since(run.clock() - HOUR) - to_come)
        only = run.setup.options.only
        return who_starts(stories, run.session.stories, flying=flying, room=room, only=only)

    def _free_lane(self, story: str) -> Lane:
        """The lane that holds the story's work, else an idle one, one without work first."""
        pool = self.pool
        busy = {lane.number for lane in self._tasks.values()}
        held = pool.book.lane_of(story)
        if held and held not in busy:
            return pool.lane(held)
        idle = [n for n in range(1, max(pool.book.count, 1) + 1) if n not in busy]
        return pool.lane(min(idle, key=lambda n: (bool(pool.note(n).story), n)))

    async def _work(self, lane: Lane, story: Story) -> Decision | None:
        """One start of the agent in a lane, to its landing; a decision where it ends the run."""
        run = self._run
        workspace = lane.workspace
        judged: Judgement | None = None
        try:
            await self._with_space(lane, lambda: take_up(self.pool, lane, story))
            await run_verify_before_first_start(run, workspace, story)
            if run.stop.requested:
                return run.interrupted
            begun = await self._with_space(lane, lambda: self._begin(lane, story))
            result = await run_agent(run, workspace, begun)
            await self._with_space(lane, lambda: self._put_right(lane, begun))
            judged = await self._with_space(lane, lambda: judge(run, workspace, begun, result))
            lane.took = judged.step.spent
            lane.reserved_usd = lane.took.cost_usd
            lane.reserved_tokens = lane.took.fresh_tokens
            decision = await self._conclude(lane, judged)
        except _Over as over:
            return (
                leave_for_later(self.pool, lane, judged, over.decision) if judged else over.decision
            )
        finally:
            lane.is_to_start = False
            lane.reserved_usd = None
            lane.reserved_tokens = None
            lane.took = None
        if judged.step.analysis.outcome.is_infrastructure and not run.stop.requested:
            self._outage = judged
        return decision

    async def _begin(self, lane: Lane, story: Story) -> Round:
        """The start of an agent, written ahead, with what is outside of its lane."""
        run = self._run
        workspace = lane.workspace
        if lane.begun is None:
            lane.begun = begin(run, workspace, story, run.as_known(workspace.story_list()))
            lane.is_to_start = False
        watch(self.pool, lane, lane.begun)
        begun = lane.begun
        lane.begun = None
        return begun

    def _lack_of_space(self, said: object = "") -> str:
        found = no_room(self.pool.landing.root, self.pool.home.project.directory, said=said)
        if found:
            self._met_full += 1
        return found

    def _mend(self, lane: Lane) -> bool:
        """Make the trees again that a lane works with and somebody deleted; whether any was."""
        found = mend_lane(self.pool, lane)
        if found:
            lane.workspace.astray = (lane.lost,)
        if self._lands is None or self._lands is lane:
            found = mend_landing(self.pool) or found
        if found:
            self._mends += 1
        return found and self._mends <= _MOST_MENDS

    async def _put_right(self, lane: Lane, begun: Round) -> None:
        """Put right what is not this agent's doing, before anything of it is measured."""
        self._mend(lane)
        if not lane.workspace.astray:
            story = begun.story.id if begun.story else ""
            found = report_work_outside(self.pool, lane, begun.number, story)
            lane.workspace.astray = found
        await hear_of_stashes(self.pool, lane, begun.stashes)

    async def _with_space(self, lane: Lane, steps: Callable[[], Awaitable[_T]]) -> _T:
        """Take steps that can be begun again until there was room: a full disk makes checks red.

        They are also begun again where somebody deleted a tree that they work in.
        """
        said: object = ""
        while True:
            while full := self._lack_of_space(said):
                said = ""
                if decision := await self._hold_for_space(full):
                    raise _Over(decision)
            met_before = self._met_full
            try:
                came = await self._undisturbed(steps)
            except (RalphError, OSError) as error:
                if not self._lack_of_space(said := error) and not self._mend(lane):
                    raise
                continue
            if isinstance(came, Judgement) and self._mend(lane):
                continue
            is_red = isinstance(came, Judgement) and not came.step.verdict.passed
            if not (is_red and (self._lack_of_space() or self._met_full > met_before)):
                return came

    async def _hold_for_space(self, full: str) -> Decision | None:
        """Wait a little for room; where not even that can be written down, all the same."""
        run = self._run
        workspace = self._landing
        decision = None
        reason = f"{full}; {_SPACE_HELPS}"
        is_new = reason != run.held_for
        try:
            decision = await hold(run, workspace, reason)
            decision = decision or reached(run.limits.of_time, run.totals(), run.clock())
        except RalphError:
            if is_new:  # it can be said, but not written
                run.sink(run.new_event(Waiting(kind="pause", reason=reason)))
            await asyncio.sleep(_NO_SPACE_S)
        return run.interrupted if run.stop.requested else decision

    async def _conclude(self, lane: Lane, judged: Judgement) -> Decision | None:
        """Write it down; where it would pass, in its turn and where it lands."""
        run = self._run
        workspace = self._landing
        begun = judged.begun
        if judged.cut_short:
            raise _Over(run.interrupted)
        if not judged.step.verdict.passed:
            return await self._write_down(lane, judged)
        story = begun.story.id if begun.story else ""
        car = self._train.join(lane, judged)
        told = Landing(story=story, lane=lane.number, ahead=len(self._train) - 1)

        async def tell() -> None:  # as a step that can be begun again
            run.emit(told, begun.number)

        try:
            await self._with_space(lane, tell)
            await self._train.wait_for_turn(car)
            async with self._queue:
                self._lands = lane
                if run.stop.requested:
                    raise _Over(run.interrupted)
                decision = await self._write_down(lane, judged, car.seen)
                mend_landing(self.pool)
                has_more = take_in_found(self.pool)
                if has_more and decision and decision.word is ExitDecision.PROJECT_COMPLETE:
                    decision = None  # what was found is a story now
                workspace.publish(run)
                self._stories = workspace.story_list()
        finally:
            await self._train.leave(car)
            if self._lands is lane:
                self._lands = None
        return decision

    async def _write_down(
        self, lane: Lane, judged: Judgement, seen: Foresight | None = None
    ) -> Decision | None:
        steps = partial(land_iteration, self.pool, lane, judged, seen)
        decision = await self._with_space(lane, steps)
        if decision is None:
            raise _Over(self._run.interrupted)
        if decision.word is ExitDecision.INTERRUPTED:
            return self._run.interrupted if self._run.stop.requested else None
        # That nothing is left to do is found out when nobody works.
        return None if decision.word in NOT_NOW else decision
