"""One place in which work is done or judged: the checkout, a lane, the landing tree.

What is known of its files is known here alone: the tree that was measured last, the story file as
it was read, where HEAD was left, who holds the place.  Whoever writes into it says so by `touched`.

`Workspace` is the person's checkout.  Another place is a class of its own that does some of these
another way, and `loop` asks no place which one it is:

- `prepare(commit)`: hold this commit and nothing else;
- `start(run, order)`: one start of an agent, from an order that is data to a result that is data;
- `gave_away(…)`, `take_up(…)`: a start that is under way elsewhere, whoever began it;
- `run_checks(…)`: the results of commands in there;
- `tree()`, `touched()`, `story_list()`, `mark()`: what is in its files;
- `reserve_money(left)`, `reserve_tokens(left)`, `left_lane()`, `beside()`, `where_kept(…)`,
  `land()`, `with_room(steps)`: what a place knows that has others beside it;
- `close()`: nobody works in there any more.

A place on another machine has a mirror of its files here, and everything that is measured, judged,
marked and committed is the mirror: it does `prepare`, `start` and `close` its own way, and has
brought the agent's files into the mirror when `start` returns (docs/decisions/078).
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ralphloop.config.model import AgentSection
from ralphloop.core.grading import VERIFY
from ralphloop.core.iteration import Result
from ralphloop.core.model import CheckResult, CheckStatus, Story, StoryList, Value
from ralphloop.core.policy import HOUR
from ralphloop.journal import views
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import KernelLock, RunLock, neighbours, try_turn, wait_for_turn
from ralphloop.journal.queries import SWAP_KEY
from ralphloop.journal.records import KnownResults
from ralphloop.loop.prepare import Site
from ralphloop.loop.run import Run
from ralphloop.proc.sandbox import Box
from ralphloop.proc.threads import in_thread
from ralphloop.project import RALPH_DIR, Project
from ralphloop.prompts import OtherLane
from ralphloop.repo.snapshot import PlainSnapshotter, Snapshot, Snapshotter
from ralphloop.repo.work_tree import OwnFiles, Repository
from ralphloop.stories.source import StoryFile, load, mark, read

if TYPE_CHECKING:
    from pathlib import Path

    from ralphloop.loop.judge_place import CleanTree
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
_T = TypeVar("_T")


class _Seen(msgspec.Struct, frozen=True):
    at: float
    tree: Snapshot


class _Read(msgspec.Struct, frozen=True):
    data: bytes
    stories: StoryList


class AgentOrder(Value, kw_only=True):
    """One start of an agent, as data: all that a place on another machine has to be sent."""

    agent: AgentSection
    prompt: str
    run: str
    number: int  # of the iteration
    story: str | None = None
    log: str  # the name of its transcript
    session_id: str | None = None  # ours to choose, for a new conversation
    resume: str | None = None  # the conversation to go on with
    budget_usd: float | None = None
    is_share: bool = False  # of a story, with which the run is not at its end
    budget_tokens: int | None = None
    max_turns: int = 0
    tools: bool = True  # False: a question only
    wall_s: float = 0.0  # zero switches a clock off
    stall_s: float = 0.0
    until_run_ends: bool = True  # False: it may outlast the time of the run


class Workspace:
    """The checkout, and what every place has in common with it."""

    def __init__(
        self,
        site: Site,
        *,
        number: int = 0,
        lane_branch: str = "",
        lock: RunLock | None = None,
        scratch: "Path | None" = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.site = site
        self.number = number  # of the lane; 0: the checkout, or the landing tree
        self.seat = number  # what tells it from all others at work: RALPH_LANE of what runs here
        self.lane_branch = lane_branch  # what the agent of a lane stands on
        self.lock = lock  # None: a session's turn, or the pool of lanes, holds the place
        self.clock = clock
        # Where files of an experiment are moved to: on the file system of the place itself.
        own = site.project.root / RALPH_DIR if site.lands_on else site.project.directory
        self.scratch = scratch or own
        self.is_clean_tree = scratch is not None  # nobody works here: it is laid anew each time
        self.clean_tree: CleanTree | None = None  # where its stories are judged instead
        self.measure = measure_of(site)
        self.expected_head = ""  # where we left HEAD; empty: not known yet
        self.left_open = ""  # a merge or the like that the agent began and did not end
        self.remarks: tuple[str, ...] = ()  # what was put right while the agent ran
        # What was put right after the agent ended, where measuring it was cut off.
        self.repaired: Repaired | None = None
        self.put_back = 0  # how often our own directory had to be put back
        self.checks_clean_up = False  # a check removes what git ignores, our own directory with it
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
    def has_neighbours(self) -> bool:
        """Others may work beside us in the same work tree."""
        return self.site.has_neighbours

    def branch_to_keep(self, run: Run) -> str:
        """The branch the agent is to stay on; empty where none has to be kept."""
        if self.number:
            return self.lane_branch
        return "" if self.lands_on else run.session.baseline.branch

    def refit(self, site: Site) -> None:
        """Be the same place with other boxes around it, or another branch to land on."""
        self.site = site

    # What a place knows that has others beside it

    def reserve_money(self, left: float) -> float:
        """Take what the next start in here may use of the dollars that are left to the run."""
        return left

    def reserve_tokens(self, left: int) -> int:
        """Take what the next start in here may use of the tokens that are left to the run."""
        return left

    def left_lane(self) -> str:
        """What the last agent did outside of its place, in words; nobody leaves the checkout."""
        return ""

    def beside(self) -> Sequence[OtherLane]:
        """What is worked on in other places at the same time; beside the checkout is nobody."""
        return ()

    def where_kept(self, story: str, number: int) -> str:
        """Where a person finds what the commit of an iteration left out; empty: it is in here."""
        return ""

    async def with_room(self, steps: Callable[[], Awaitable[_T]]) -> _T:
        """What comes of steps that can be begun again: with others beside it a place waits until
        there is room on the disk; else a full one is an error."""
        return await steps()

    def land(self) -> None:
        """Give what was committed in here to whoever waits for it; in the checkout nobody does."""

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

    def known_results(self, run: Run) -> list[KnownResults]:
        """What the checks showed in states that a story may stand on, the newest first."""
        return run.journal.known_results(run.id)

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
        self.mark_sources(marks)

    def mark_sources(self, wanted: Mapping[str, bool]) -> list[str]:
        """Have the lists that stories were read from say the same; whose mark was another one.

        What cannot be written there is remarked upon: such a list is a view, not the truth.
        """
        from ralphloop.stories.provenance import set_marks

        if not self.site.sources:
            return []
        done = set_marks(self.root, self.site.sources, wanted)
        new = [words for words in done.problems if words not in self.remarks]
        self.remarks = (*self.remarks, *new)
        return done.changed

    # What is done in it

    async def prepare(self, commit: str) -> None:
        """Hold this commit and nothing else; the checkout is its owner's, and stays as it is."""

    async def start(self, run: Run, order: AgentOrder) -> Result:
        """How one start of an agent in here ended; nothing of it is at work when this returns."""
        from ralphloop.loop.agent import start_here  # a session's turns start no agent

        return await start_here(run, self, order)

    def gave_away(self, run: Run, number: int) -> bool:
        """Whether that start was given to another machine; nobody else ends its agent then."""
        return False

    async def take_up(self, run: Run, number: int) -> Result | None:
        """How a start ended that a predecessor gave away; None where it gave none away."""
        return None

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
        wanted = [check_of(argv, timeout, self.check_box, lane=self.seat) for argv in commands]
        untrusted = bool(verify) and not run.setup.may_verify(verify or ())
        if verify and not untrusted:
            wanted.append(verify_of(verify, timeout, self.check_box, lane=self.seat))
        carry_out = run.patience.run if run.patience else run_checks

        def is_over(gone: Gone) -> bool:
            return gone() or (run.stop.requested and not to_the_end)

        put_back_before = self.put_back
        turn = None
        if self.has_neighbours and wanted:
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

    def make_scratch(self) -> "Path":
        """Make the directory for what an experiment puts aside; where it is."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        return self.scratch

    def restore_experiment(self, journal: Journal) -> str:
        """Put back what an experiment that was cut off left exchanged; what was done, in words."""
        is_clean = not (self.scratch / "canary").exists()
        if journal.meta(SWAP_KEY) is None and is_clean:
            return ""
        from ralphloop.loop.exchanging import restore

        self.touched()
        return restore(journal, self.repo, self.measure, self.project, room=self.scratch)

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
        """Nobody works in here any more; it can be closed twice, and is after an error too."""
        self.measure.close()
        if self.clean_tree is not None:
            self.clean_tree.close()


def measure_of(site: Site) -> Snapshotter:
    store = site.project.directory / "objects"
    if site.repo is None:
        return PlainSnapshotter(site.project.root, store, site.own, kept=site.is_of_session)
    return Snapshotter(site.repo, store, site.own, kept=site.is_of_session)
