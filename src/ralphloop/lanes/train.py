"""A train: several green stories judged at once, each on top of those before it, landed in order.

Each is judged in a landing tree of its own (`landing-1`, …), a *bay*, on a commit that nobody ever
sees: what will have landed by then, as far as anybody can tell.  When its turn comes, what stands
is compared with that.  Where it is the same, what was found out is true, and the story lands as
every story does, in the one landing tree; otherwise it is judged again.  One that turns out to be
red goes back to its lane, and those behind it are judged again, without another start.

So a train decides nothing and writes nothing down: it knows some answers before they are asked for.
Whatever happens to it, a crash, a bay that somebody deleted, costs time and nothing else.
"""

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from ralphloop.atomic import kill_point
from ralphloop.core.events import Landing
from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.core.run_state import Standing
from ralphloop.errors import RalphError
from ralphloop.journal.journal import Journal
from ralphloop.journal.records import KnownResults
from ralphloop.lanes import worktrees
from ralphloop.lanes.landing import Foresight, LaidWork, judge_ahead, lay_work
from ralphloop.lanes.pool import (
    Lane,
    LanePool,
    TreeWorkspace,
    ensure_ready,
    make_again,
    prove_green,
    site_in,
)
from ralphloop.lanes.worktrees import LaneTree, put_onto, reset_to_commit
from ralphloop.loop.judging import Judgement
from ralphloop.loop.prepare import Site
from ralphloop.loop.run import Run
from ralphloop.proc.threads import in_thread
from ralphloop.project import RALPH_DIR
from ralphloop.repo.commit import with_trailers
from ralphloop.text.plain import one_line

_LONGEST_REASON = 300
Chain = tuple[int, ...]  # iterations that are expected to land, in order


class Car(msgspec.Struct, eq=False, kw_only=True):
    """A green story on its way from a lane to the run's branch."""

    lane: Lane
    judged: Judgement
    on: Chain | None = None  # those it is judged on top of; None: it is not
    presumed: str = ""  # the commit that those behind it are judged on; empty: not laid yet
    is_tried: bool = False  # all that can be found out before its turn is found out
    seen: Foresight | None = None
    task: asyncio.Task[Foresight | None] | None = None
    failure: BaseException | None = None  # that nobody expects
    # By its checks, in the tree that those behind it stand on; None: nothing they can count on.
    results: KnownResults | None = None
    checked: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    @property
    def number(self) -> int:
        return self.judged.begun.number

    @property
    def story(self) -> str:
        return self.judged.step.story or ""

    @property
    def may_land(self) -> bool:
        """Whether those behind it are to be judged on top of it."""
        if not self.is_tried:
            return bool(self.presumed)
        return self.seen is not None and self.seen.done.step.verdict.passed

    def put_off(self) -> None:
        """Have it judged again: what it stood on will not land like that."""
        self.on = None
        self.presumed = ""
        self.is_tried = False
        self.seen = None
        self.results = None
        self.checked.set()  # who waits for it is put off as well
        self.checked = asyncio.Event()
        if self.task is not None:
            self.task.cancel()

    def end_of(self, task: "asyncio.Task[Foresight | None]") -> None:
        """Take what its judging came to, unless it was put off meanwhile."""
        self.task = None
        self.checked.set()
        if task.cancelled() or self.on is None:
            return
        self.is_tried = True
        self.failure = task.exception()
        if self.failure is None:
            self.seen = task.result()


class Bay(TreeWorkspace):
    """A further landing tree: what is judged in it lands elsewhere."""

    def __init__(self, site: Site, place: LaneTree) -> None:
        # As a clean tree: it is laid anew each time, nothing is ever put back in it.
        super().__init__(site, place, scratch=site.project.root / RALPH_DIR)
        self._car: Car | None = None
        self._ahead: Car | None = None  # whose work is the newest below it
        self._laid: LaidWork | None = None

    def receive(self, car: Car | None, ahead: Car | None = None) -> None:
        self._car = car
        self._ahead = ahead
        self._laid = None

    def hold_laid(self, laid: LaidWork) -> None:
        """What it holds from now on, till the next one comes."""
        self._laid = laid

    def known_results(self, run: Run) -> list[KnownResults]:
        theirs = self._ahead.results if self._ahead else None
        return [*([theirs] if theirs else []), *super().known_results(run)]

    async def run_checks(
        self,
        run: Run,
        commands: Iterable[Sequence[str]],
        *,
        verify: Sequence[str] | None = None,
        to_the_end: bool = False,
    ) -> tuple[CheckResult, ...]:
        """The same; and once the story before it has run its own, which it is compared with."""
        wanted = list(commands)
        tree = self.tree().tree if self._laid else ""
        results = await super().run_checks(run, wanted, verify=verify, to_the_end=to_the_end)
        if self._laid is None or self._car is None:
            return results
        is_red = any(it.status is CheckStatus.FAILED for it in results)
        if not is_red and not run.stop.requested:
            self._car.results = KnownResults(number=self._car.number, trees=(tree,), checks=results)
        self._car.checked.set()
        if self._ahead is not None:
            await self._ahead.checked.wait()
        return results

    def restore_experiment(self, journal: Journal) -> str:
        """Lay all of it anew: git was not left in peace while files were exchanged in here."""
        laid = self._laid
        if laid is not None:
            reset_to_commit(self.place, laid.base)
            put_onto(self.place, laid.work)
            self.touched()
        return ""


class Train:
    """The stories that are green in their lanes, in the order in which they land."""

    def __init__(self, pool: LanePool) -> None:
        size = pool.home.config.lanes.train
        self._pool = pool
        self._cars: list[Car] = []
        self._free = list(range(size, 0, -1)) if size > 1 else []  # numbers of bays
        self._ready = set[int]()  # bays in which stories can be judged
        self._broken = set[int]()  # bays in which none can
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._cars)

    def join(self, lane: Lane, judged: Judgement) -> Car:
        """Let a story in as the last one; it leaves again whatever happens."""
        car = Car(lane=lane, judged=judged)
        self._cars.append(car)
        self._arrange()
        return car

    async def wait_for_turn(self, car: Car) -> None:
        """Return when nobody is before it and all that goes on about it has ended."""
        while self._cars[0] is not car or car.task is not None:
            await self._changed.wait()
        if car.failure is not None:
            raise car.failure

    async def leave(self, car: Car) -> None:
        """Let the next one have its turn: the story landed, went back, or the run ends."""
        self._cars.remove(car)
        if car.task is not None:
            car.task.cancel()
            await asyncio.wait([car.task])
        if self._pool.run.session.story(car.story).standing is Standing.PASSED:
            is_as_expected = self._has_come_true(car)
            for behind in self._cars:
                if behind.on is None:
                    continue
                rest = tuple(number for number in behind.on if number != car.number)
                if is_as_expected and rest != behind.on:
                    behind.on = rest
                else:
                    behind.put_off()
        self._arrange()
        self._wake()

    def _has_come_true(self, car: Car) -> bool:
        """Whether a story landed as those behind it were judged on top of."""
        if car.seen is None:
            return False
        return self._pool.workspace.tree().tree == car.seen.done.measured.after.tree

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _arrange(self) -> None:
        """Have every story judged that can be, each on top of those that are expected to land."""
        chain: Chain = ()
        ahead: Car | None = None
        for car in self._cars:
            if car.on is not None and car.on != chain:
                car.put_off()
            if car.task is None and not car.is_tried:
                if not self._free or self._pool.run.stop.requested:
                    return
                self._start(car, chain, ahead)
            if not car.is_tried and not car.presumed:
                return  # those behind it are judged once its work is laid
            if car.may_land:
                chain = (*chain, car.number)
                ahead = car

    def _start(self, car: Car, chain: Chain, ahead: Car | None) -> None:
        """Have a story judged in a free bay."""
        number = self._free.pop()
        car.on = chain
        task = asyncio.create_task(self._judge_in_bay(car, ahead, number))
        car.task = task

        def ended(_: asyncio.Task[Foresight | None]) -> None:  # also where it never began
            if number not in self._broken:
                self._free.append(number)
            car.end_of(task)
            self._arrange()
            self._wake()

        task.add_done_callback(ended)

    async def _judge_in_bay(self, car: Car, ahead: Car | None, number: int) -> Foresight | None:
        """What can be found out about a story before its turn; None where that is nothing."""
        try:
            bay = await self._open_bay(number)
            if bay is None:
                return None
            bay.receive(car, ahead)
            try:
                return await self._judge(car, bay, ahead.presumed if ahead else self._pool.tip())
            finally:
                bay.receive(None)
        except (RalphError, OSError):
            return None  # what stands in the way is met again, and said, at its turn

    async def _judge(self, car: Car, bay: Bay, base: str) -> Foresight | None:
        pool = self._pool
        laid = await lay_work(pool, car.lane, car.judged, bay, base)
        if laid.put.conflicts:
            return None  # at its turn it is known with what
        bay.hold_laid(laid)
        car.presumed = _commit_that_may_land(bay.place, car, base)
        kill_point("train.laid")
        self._tell(car)
        self._arrange()
        seen = await judge_ahead(pool, car.lane, car.judged, bay, laid)
        kill_point("train.judged")
        return seen

    def _tell(self, car: Car) -> None:
        """Say on top of which stories it is judged."""
        names = {one.number: one.story for one in self._cars}
        told = Landing(
            story=car.story,
            lane=car.lane.number,
            ahead=self._cars.index(car),
            in_train=True,
            on=tuple(names[number] for number in car.on or () if number in names),
        )
        self._pool.run.emit(told, car.number)

    async def _open_bay(self, number: int) -> Bay | None:
        """A bay that is ready; None where none can be made so, which is said once."""
        pool = self._pool
        tip = pool.tip()
        bay = pool.bays.get(number)
        if bay is not None and worktrees.is_gone(bay.place):
            make_again(pool, bay.place, tip)
        try:
            if not isinstance(bay, Bay):
                bay = await in_thread(lambda _: _make_bay(pool, number, tip))
                pool.hold(bay.place)
                pool.bays[number] = bay
            if number not in self._ready:
                await bay.prepare(tip)
                await ensure_ready(pool, bay)
                await prove_green(pool, bay, tip)
        except RalphError as error:
            self._broken.add(number)
            why = one_line(error.message, _LONGEST_REASON)
            pool.say(f"the train is shorter by one: {why}")
            return None
        self._ready.add(number)
        return bay


def _make_bay(pool: LanePool, number: int, commit: str) -> Bay:
    home = pool.home
    project = home.project.root
    place = worktrees.open_tree(pool.checkout, project, pool.directory, 0, commit, bay=number)
    listed = "" if pool.book.own_list else home.site.listed
    return Bay(site_in(home, place, listed=listed, lands_on=pool.book.branch), place)


def _commit_that_may_land(place: LaneTree, car: Car, base: str) -> str:
    """A commit as the story would make it, but for the marks; no branch ever has it."""
    story = car.judged.begun.story
    title = story.title if story else ""
    message = with_trailers(f"{car.story}: {title}", {"Ralph-Story": car.story})
    tree = place.git.line("write-tree")
    return place.git.line("commit-tree", tree, "-p", base, "-m", message)
