"""One place in which work is done or judged: the checkout, a lane, the landing tree.

What is known of its files is known here alone: the tree that was measured last, the story file as
it was read, where HEAD was left, who holds the place.  Whoever writes into it says so by `touched`.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ralphloop.core.grading import VERIFY
from ralphloop.core.model import CheckResult, CheckStatus, Story, StoryList
from ralphloop.core.policy import HOUR
from ralphloop.journal import views
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import KernelLock, RunLock, neighbours, try_turn, wait_for_turn
from ralphloop.journal.queries import SWAP_KEY
from ralphloop.loop.prepare import Site
from ralphloop.loop.run import Run
from ralphloop.proc.sandbox import Box
from ralphloop.proc.threads import in_thread
from ralphloop.project import Project
from ralphloop.repo.snapshot import PlainSnapshotter, Snapshot, Snapshotter
from ralphloop.repo.work_tree import OwnFiles, Repository
from ralphloop.stories.source import StoryFile, load, mark, read

if TYPE_CHECKING:
    from pathlib import Path

    from ralphloop.loop.judging import Repaired


CLEANED_UP = "a check removes what git ignores, and .ralph with it"
_FRESH_S = 0.5
_VIEWS_S = 0.25
_NOT_RUN = CheckResult(
    name=VERIFY,
    status=CheckStatus.FAILED,
    output_tail="not run: nobody has said yet that this `verify` command may be run here."
    " A person looks at it and says yes with: ralph trust",
)
Gone = Callable[[], bool]  # whether nobody waits for it any more


class _Seen(msgspec.Struct, frozen=True):
    at: float
    tree: Snapshot


class _Read(msgspec.Struct, frozen=True):
    data: bytes
    stories: StoryList


class Workspace:
    def __init__(
        self,
        site: Site,
        *,
        number: int = 0,
        lane_branch: str = "",
        lock: RunLock | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.site = site
        self.number = number  # of the lane; 0: the checkout, or the landing tree
        self.lane_branch = lane_branch  # what the agent of a lane stands on
        self.lock = lock  # None: a session's turn, or the pool of lanes, holds the place
        self.clock = clock
        self.measure = measure_of(site)
        self.expected_head = ""  # where we left HEAD; empty: not known yet
        self.left_open = ""  # a merge or the like that the agent began and did not end
        self.remarks: tuple[str, ...] = ()  # what was put right while the agent ran
        self.left_lane: Callable[[], str] = str  # what the agent did outside of it, in words
        self.lands: Callable[[], None] | None = None  # moves the run's branch to what was committed
        self.where_kept: Callable[[], str] = str  # what a commit leaves out of a lane, in words
        # What was put right after the agent ended, where measuring it was cut off.
        self.repaired: Repaired | None = None
        self.put_back = 0  # how often our own directory had to be put back
        self.checks_clean_up = False  # a check removes what git ignores, our own directory with it
        # Takes its part of the money that is left, where others start beside it.
        self.reserve_money: Callable[[float], float] | None = None
        self._seen: _Seen | None = None
        self._read: _Read | None = None
        self._published = 0.0

    # Where it is

    @property
    def project(self) -> Project:
        return self.site.project

    @property
    def root(self) -> "Path":
        return self.site.project.root

    @property
    def repo(self) -> Repository | None:
        return self.site.repo

    @property
    def stories(self) -> StoryFile | None:
        """The story file as it was when the place was found; None: a plain loop."""
        return self.site.stories

    @property
    def within(self) -> "Path":
        return self.site.within

    @property
    def own(self) -> OwnFiles:
        return self.site.own

    @property
    def lands_on(self) -> str:
        return self.site.lands_on

    @property
    def check_box(self) -> Box | None:
        return self.site.check_box

    @property
    def shares(self) -> bool:
        """Others may work beside us in the same work tree."""
        return self.site.shares

    def branch_to_keep(self, run: Run) -> str:
        """The branch the agent is to stay on; empty where none has to be kept."""
        if self.number:
            return self.lane_branch
        return "" if self.lands_on else run.session.frozen.branch

    # What is in it

    def touched(self) -> None:
        """Look at the files anew: somebody changed them."""
        self._seen = None

    def tree(self) -> Snapshot:
        """The work tree; what was seen a moment ago is seen again without asking git."""
        now = self.clock()
        if self._seen is None or not 0 <= now - self._seen.at < _FRESH_S:
            self._seen = _Seen(now, self.measure.tree())
        return self._seen.tree

    def story_list(self) -> StoryList | None:
        """The stories as they are on disk now: a person may have edited them."""
        known = self.stories
        if known is None:
            return None
        data = read(known.path)
        if self._read is None or self._read.data != data:
            self._read = _Read(data, load(known.path).list)
        return self._read.stories

    def story_bytes(self) -> bytes:
        """The story file as it was read last; nothing where there is none."""
        return self._read.data if self._read else b""

    def story(self, name: str) -> Story | None:
        stories = self.story_list()
        return stories.get(name) if stories else None

    def mark(self, wanted: Mapping[str, bool]) -> None:
        """Set marks in the story file, of stories that are still there."""
        known = self.stories
        stories = self.story_list()
        if known is None or stories is None:
            return
        marks = {story: passes for story, passes in wanted.items() if stories.get(story)}
        written = mark(known.path, marks, within=self.within)
        is_known = self._read is not None and self._read.data == written.before
        self._read = _Read(written.after, stories.with_passes(marks)) if is_known else None

    # What is done in it

    async def run_checks(
        self,
        run: Run,
        commands: Iterable[Sequence[str]],
        *,
        verify: Sequence[str] | None = None,
        to_the_end: bool = False,
    ) -> tuple[CheckResult, ...]:
        """The results of these commands, and of the one that proves a story; a stop ends them."""
        from ralphloop.repo.checks import check_of, run_checks, verify_of

        timeout = run.config.checks.timeout
        wanted = [check_of(argv, timeout, self.check_box) for argv in commands]
        untrusted = bool(verify) and not run.setup.may_verify(verify or ())
        if verify and not untrusted:
            wanted.append(verify_of(verify, timeout, self.check_box))
        carry_out = run.patience.run if run.patience else run_checks

        def is_over(gone: Gone) -> bool:
            return gone() or (run.stop.requested and not to_the_end)

        put_back_before = self.put_back
        turn = None
        if self.shares and wanted:
            turn = await self._take_turn(run, is_over)
            if turn is None:
                return ()
        try:
            results = await in_thread(
                lambda gone: carry_out(wanted, self.root, stop=lambda: is_over(gone))
            )
        finally:
            self.touched()  # checks leave files behind
            if turn is not None:
                turn.release()
        if wanted:
            self._look_after_checks(run, put_back_before)
        return (*results, _NOT_RUN) if untrusted and len(results) == len(wanted) else results

    def _look_after_checks(self, run: Run, put_back_before: int) -> None:
        """Have our own directory again where a check removed it, and know that one does."""
        from ralphloop.loop.repair import put_back_own_files

        put_back_own_files(run, self)
        if self.put_back > put_back_before:
            self.checks_clean_up = True
            self.measure.tree()  # what was measured before is written down again

    async def _take_turn(self, run: Run, is_over: Callable[[Gone], bool]) -> KernelLock | None:
        """The turn to run checks in a work tree with others; None where the run stops first."""
        directory = self.project.directory
        now = run.clock()
        if (turn := try_turn(directory)) is not None:
            return turn
        others = ", ".join(f"{one.run} in {one.project}" for one in neighbours(directory, now))
        reason = f"checks take turns in this work tree; it is the turn of {others or 'another run'}"
        with run.waiting("pause", reason, now + HOUR):  # nobody knows how long
            return await in_thread(lambda gone: wait_for_turn(directory, lambda: is_over(gone)))

    def restore_experiment(self, journal: Journal) -> str:
        """Put back what an experiment that was cut off left exchanged; what was done, in words."""
        is_clean = not (self.project.directory / "canary").exists()
        if journal.meta(SWAP_KEY) is None and is_clean:
            return ""
        from ralphloop.loop.trying import restore

        self.touched()
        return restore(journal, self.repo, self.measure, self.project)

    def publish(self, run: Run, *, at_once: bool = False) -> None:
        """Write the views, not too often; one that cannot be written is no reason to stop."""
        now = self.clock()
        if not at_once and 0 <= now - self._published < _VIEWS_S:
            return
        self._published = now
        record = run.journal.find_run(run.id)
        if record is None:
            return
        root = self.project.directory.parent
        state = run.session.state
        view = views.session_view(record, state, self.story_list())
        views.publish(root / views.SESSION_VIEW, view, root=root)
        circuit = views.circuit_view(state.breaker, run.setup.policy)
        views.publish(root / views.CIRCUIT_VIEW, circuit, root=root)

    def close(self) -> None:
        self.measure.close()


def measure_of(site: Site) -> Snapshotter:
    store = site.project.directory / "objects"
    if site.repo is None:
        return PlainSnapshotter(site.project.root, store, site.own, kept=site.is_of_session)
    return Snapshotter(site.repo, store, site.own, kept=site.is_of_session)
