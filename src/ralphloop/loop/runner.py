"""The tools of one run, in one place: what the steps of the loop share."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralphloop.atomic import sync_file
from ralphloop.config.model import Config
from ralphloop.core.breaker import BreakerState, moves
from ralphloop.core.events import CircuitChanged, Event, LoopEvent, Waiting
from ralphloop.core.grading import VERIFY
from ralphloop.core.interventions import AnyIntervention
from ralphloop.core.model import CheckResult, CheckStatus, Decision, ExitDecision, Story, StoryList
from ralphloop.core.policy import HOUR, Limits, Policy, money_left, raised
from ralphloop.core.run_state import Desk, Session, Standing
from ralphloop.core.totals import Totals
from ralphloop.errors import RalphError
from ralphloop.journal import views
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import KernelLock, RunLock, neighbours, try_turn, wait_for_turn
from ralphloop.journal.queries import SWAP_KEY
from ralphloop.loop.prepare import Setup
from ralphloop.proc.steps import Steps, StopSignal, aside
from ralphloop.repo.snapshot import PlainSnapshotter, Snapshot, Snapshotter
from ralphloop.stories.source import load, mark, read
from ralphloop.text.durations import iso

if TYPE_CHECKING:
    from ralphloop.loop.judging import Repaired
    from ralphloop.repo.checks import Check

_BEAT_S = 1.0
_FRESH_S = 0.5
_VIEWS_S = 0.25
PATIENCE_S = 8 * 60.0  # Claude Code ends a hook after ten minutes
_NOT_RUN = CheckResult(
    name=VERIFY,
    status=CheckStatus.FAILED,
    output_tail="not run: nobody has said yet that this `verify` command may be run here."
    " A person looks at it and says yes with: ralph trust",
)
CLEANED_UP = "a check removes what git ignores, and .ralph with it"
Sink = Callable[[LoopEvent], None]  # whoever wants to see events; it must not raise
Tell = Callable[[str], None]  # words for whoever started the run
Asks = Callable[[str, Callable[[], bool]], bool]  # a question, when to stop asking: was it a yes?


def nobody(_: object) -> None:
    """Nobody looks."""


def nobody_says_yes(_question: str, _over: Callable[[], bool]) -> bool:
    """Nobody is there to be asked."""
    return False


class Patience:
    """A session waits for its checks, so long and no longer: what they would prove is a claim."""

    def __init__(self, baseline: Sequence[CheckResult] = (), *, slow: bool = False) -> None:
        took = sum(result.duration_s for result in baseline)  # when the run began
        self.slow = slow or took > PATIENCE_S
        self._until = 0.0

    def left(self) -> float:
        """Seconds that this turn still has for checks and experiments."""
        return max(0.0, self._until - time.monotonic()) if self._until else PATIENCE_S

    def run(
        self, wanted: "list[Check]", cwd: Path, stop: Callable[[], bool]
    ) -> tuple[CheckResult, ...]:
        """The results; none where they would say that all is well and not all of them ran."""
        from ralphloop.repo.checks import run_checks

        if self.slow or not wanted:
            return ()
        is_first, self._until = not self._until, self._until or time.monotonic() + PATIENCE_S
        results = run_checks(wanted, cwd, stop=lambda: stop() or not self.left())
        if len(results) == len(wanted):
            return results
        self.slow |= is_first  # what came later had only the rest of the time
        return results if any(it.status is CheckStatus.FAILED for it in results) else ()


class Runner(msgspec.Struct):
    setup: Setup
    session: Session
    journal: Journal
    measure: Snapshotter
    stop: StopSignal
    clock: Callable[[], float] = time.time
    sink: Sink = nobody
    tell: Tell = nobody
    asks: Asks = nobody_says_yes
    last_beat: float = 0.0
    unsettled: int | None = None  # the iteration whose effects are done, but not yet made sure of
    seen: tuple[float, Snapshot] | None = None  # the work tree; None: something ran since
    published: float = 0.0  # when the views were written last
    read: tuple[bytes, StoryList] | None = None  # the story file as it was read last
    patience: Patience | None = None  # where a session waits for the turn to end
    lock: RunLock | None = None  # None: a session's turn holds the project
    owed_usd: float = 0.0  # what an agent cost whose checks are still to be run
    stands_in: tuple[str, str] = ("", "")  # the agent that is away, and who works instead
    held_for: str = ""  # what the run is held for, said once
    expected_head: str = ""  # where we left HEAD; empty: not known yet
    left_open: str = ""  # a merge or the like that the agent began and did not end
    lane: int = 0  # the lane whose work tree this is; 0: the run's own
    lane_branch: str = ""  # what its agent stands on
    lands: Callable[[], None] | None = None  # moves the run's branch to what was committed here
    left_lane: Callable[[], str] = str  # what the agent did outside of its lane, in words
    share: Callable[[float], float] | None = None  # of the money left, where others start beside us
    remarks: tuple[str, ...] = ()  # what was put right while the agent ran, for its record
    repaired: "Repaired | None" = None  # and after it ended, where measuring was cut off
    put_back: int = 0  # how often our own directory had to be put back
    checks_clean_up: bool = False  # a check removes what git ignores, our own directory with it
    where_kept: Callable[[], str] = str  # what a commit leaves out of a lane, in words

    @property
    def config(self) -> Config:
        return self.setup.config

    @property
    def run(self) -> str:
        return self.session.run

    @property
    def limits(self) -> Limits:
        return raised(self.setup.policy.limits, self.session.desk.extra)

    @property
    def policy(self) -> Policy:
        return msgspec.structs.replace(self.setup.policy, limits=self.limits)

    @property
    def branch(self) -> str:
        """The branch the agent is to stay on; empty where none has to be kept."""
        if self.lane:
            return self.lane_branch
        return "" if self.setup.lands_on else self.session.frozen.branch

    @property
    def money_left(self) -> float | None:
        """Dollars that the next start may use, or None without a limit."""
        left = money_left(self.limits, self.totals())
        return left if left is None or self.share is None else self.share(left)

    @property
    def interrupted(self) -> Decision:
        return Decision(word=ExitDecision.INTERRUPTED, reasons=(self.stop.reason or "stopped",))

    def made(self, what: Event, iteration: int | None = None) -> LoopEvent:
        """An event of now, for a caller that writes it with something else."""
        return LoopEvent(run=self.run, at=self.clock(), what=what, iteration=iteration)

    def emit(self, what: Event, iteration: int | None = None) -> None:
        event = self.made(what, iteration)
        self.journal.append_events([event])
        self.sink(event)

    def totals(self) -> Totals:
        now = self.clock()
        if not 0 <= now - self.last_beat < _BEAT_S:
            self.journal.heartbeat(self.run, now=now)
            self.last_beat = now
        return self.journal.totals(self.run)

    def free_at(self) -> float | None:
        """When the hour allows for another start; None: now."""
        most, now = self.config.limits.calls_per_hour, self.clock()
        if not most or self.journal.starts_since(now - HOUR) < most:
            return None
        return (self.journal.nth_newest_start(most) or now) + HOUR

    def run_checks(
        self,
        commands: Iterable[Sequence[str]],
        *,
        verify: Sequence[str] | None = None,
        to_the_end: bool = False,
    ) -> Steps[tuple[CheckResult, ...]]:
        """Run these commands, and the one that proves a story; a stop ends them early."""
        from ralphloop.repo.checks import check_of, run_checks, verify_of

        timeout = self.config.checks.timeout
        box = self.setup.check_box
        wanted = [check_of(argv, timeout, box) for argv in commands]
        untrusted = bool(verify) and not self.setup.may_verify(verify or ())
        if verify and not untrusted:
            wanted.append(verify_of(verify, timeout, box))
        run = self.patience.run if self.patience else run_checks
        root = self.setup.project.root

        def stopped(gone: Callable[[], bool]) -> bool:
            return gone() or (self.stop.requested and not to_the_end)

        turn, put_back = None, self.put_back
        if self.setup.shares and wanted and (turn := (yield from self._turn(stopped))) is None:
            return ()
        try:
            ran = yield from aside(lambda gone: run(wanted, root, stop=lambda: stopped(gone)))
        finally:
            if turn is not None:
                turn.release()
        if wanted:
            self._look_after_checks(put_back)
        return (*ran, _NOT_RUN) if untrusted and len(ran) == len(wanted) else ran

    def _look_after_checks(self, put_back: int) -> None:
        """Have our own directory again where a check removed it, and know that one does."""
        from ralphloop.loop.repair import put_back_own_files

        put_back_own_files(self)
        if self.put_back > put_back:
            self.checks_clean_up = True
            self.measure.tree()  # what was measured before is written down again

    def _turn(self, stopped: Callable[[Callable[[], bool]], bool]) -> Steps[KernelLock | None]:
        """The turn to run checks in a work tree with others; a wait for it is told."""
        directory, now = self.setup.project.directory, self.clock()
        if (turn := try_turn(directory)) is not None:
            return turn
        others = ", ".join(f"{one.run} in {one.project}" for one in neighbours(directory, now))
        reason = f"checks take turns in this work tree; it is the turn of {others or 'another run'}"
        with self.waiting("pause", reason, now + HOUR):  # nobody knows how long
            turn = yield from aside(lambda gone: wait_for_turn(directory, lambda: stopped(gone)))
        return turn

    @contextmanager
    def waiting(
        self, kind: str, reason: str, until: float, *, aloud: bool = True, needs_you: bool = False
    ) -> Iterator[None]:
        """A wait that is written down before it begins, so that a restart goes on waiting."""
        now = self.clock()
        self.journal.begin_wait(self.run, kind=kind, reason=reason, now=now, until=until)
        if aloud:
            ends, seconds = iso(until), until - now
            self.emit(
                Waiting(kind=kind, reason=reason, until=ends, seconds=seconds, needs_you=needs_you)
            )
        yield
        self.journal.end_wait(self.run, now=self.clock())
        self.emit(Waiting(kind=kind, reason="over"))

    def tree(self) -> Snapshot:
        """The work tree; what was seen a moment ago is seen again without asking git."""
        if self.seen is None or not 0 <= self.clock() - self.seen[0] < _FRESH_S:
            snapshot = self.measure.tree()
            self.seen = (self.clock(), snapshot)
        return self.seen[1]

    def forget(self) -> None:
        """Look at everything anew: somebody changed the files."""
        self.seen = self.read = None

    def restored(self) -> str:
        """Put back what an experiment that was cut off left exchanged; what was done, in words."""
        project = self.setup.project
        if self.journal.meta(SWAP_KEY) is None and not (project.directory / "canary").exists():
            return ""
        from ralphloop.loop.trying import restore

        return restore(self.journal, self.setup.repo, self.measure, project)

    def settle(self) -> None:
        """Make sure of the last iteration's effects, and say that nothing is owed any more."""
        number, self.unsettled = self.unsettled, None
        if number is None:
            return
        with suppress(RalphError):  # a view that cannot be synced is no reason to stop
            sync_file(self.setup.project.root / views.PROGRESS_VIEW)
        self.journal.mark_applied(self.run, number, now=self.clock())

    def intervene(self, change: AnyIntervention) -> None:
        """Change the state outside of an iteration, here and in the journal."""
        before = self.session.state.breaker
        self.journal.intervene(self.session, change, self.policy, now=self.clock())
        self.tell_circuit(before)

    def change_desk(self, desk: Desk) -> None:
        self.session.desk = desk
        self.journal.save_part(self.run, desk)

    def add_note(self, text: str, story: str = "") -> None:
        """Something for the prompts to come, once."""
        self.change_desk(self.session.desk.noted(text, story))

    def tell_circuit(self, before: BreakerState) -> None:
        for moved in moves(before, self.session.state.breaker):
            change = CircuitChanged(before=moved.before, after=moved.after, reason=moved.reason)
            self.emit(change, self.session.number or None)

    def story_list(self) -> StoryList | None:
        """The stories as they are on disk now: a person may have edited them."""
        known = self.setup.stories
        if known is None:
            return None
        data = read(known.path)
        if self.read is None or self.read[0] != data:
            self.read = (data, load(known.path).list)
        return self.read[1]

    def story(self, name: str) -> Story | None:
        stories = self.story_list()
        return stories.get(name) if stories else None

    def mark(self, wanted: Mapping[str, bool]) -> None:
        """Set marks in the story file, of stories that are still there."""
        known, stories = self.setup.stories, self.story_list()
        if known is None or stories is None:
            return
        marks = {story: passes for story, passes in wanted.items() if stories.get(story)}
        before, after = mark(known.path, marks, within=self.setup.within)
        is_known = self.read is not None and self.read[0] == before
        self.read = (after, stories.with_passes(marks)) if is_known else None

    def as_known(self, stories: StoryList | None) -> StoryList | None:
        """The list with the marks the journal knows: a lane's own file is as old as its start."""
        states = self.session.stories.items()
        passed = {name: True for name, one in states if one.standing is Standing.PASSED}
        return stories.with_passes(passed) if stories else None

    def publish(self, *, at_once: bool = False) -> None:
        """Write the views, not too often; one that cannot be written is no reason to stop."""
        if not at_once and 0 <= self.clock() - self.published < _VIEWS_S:
            return
        self.published = self.clock()
        record = self.journal.find_run(self.run)
        if record is None:
            return
        root, state = self.setup.project.directory.parent, self.session.state
        view = views.session_view(record, state, self.story_list())
        views.publish(root / views.SESSION_VIEW, view, root=root)
        circuit = views.circuit_view(state.breaker, self.setup.policy)
        views.publish(root / views.CIRCUIT_VIEW, circuit, root=root)


def measure_of(setup: Setup) -> Snapshotter:
    store = setup.project.directory / "objects"
    kept = bool(setup.options.session)  # its loop is a new process every turn
    if setup.repo is None:
        return PlainSnapshotter(setup.project.root, store, setup.own, kept=kept)
    return Snapshotter(setup.repo, store, setup.own, kept=kept)
