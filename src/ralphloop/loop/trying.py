"""Finding out what a green story's tests are worth, by running them crosswise.

Names and numbers are compared with those before the story; that costs nothing.  Then, within the
time there is, the old tests run with the new code, the new tests with the old code, and a failing
test of ours with them.  Each exchange of files is written ahead, undone and compared with what the
story left: a crash at any moment leaves a `Swap` in the journal, which is put back before anything
else happens.  Where somebody saved a file meanwhile, the story is judged anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import msgspec

from ralphloop.atomic import kill_point
from ralphloop.core.events import ExperimentBegun, ExperimentEnded
from ralphloop.core.model import CheckResult, CheckStatus, Evidence, Value
from ralphloop.core.policy import Experiments
from ralphloop.core.proof import (
    Canary,
    Runs,
    TestCounts,
    TestReport,
    Told,
    Trial,
    concluded,
    disbelief,
    fewer,
)
from ralphloop.errors import RepositoryError
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import SWAP_KEY
from ralphloop.journal.session import load_reports
from ralphloop.loop.begin import Begun
from ralphloop.loop.runner import Runner
from ralphloop.proc.steps import Steps, aside
from ralphloop.repo.checks import check_of, run_named
from ralphloop.repo.experiment import Sides, Swap, obstacle, put_back, split, swap_of, undo
from ralphloop.repo.named import CANARY, PlacedTest, canary, placed, sweep
from ralphloop.repo.own_files import project_prefix
from ralphloop.repo.runners import FoundRunner, find_runner
from ralphloop.repo.set_aside import ref_name
from ralphloop.repo.snapshot import Change, Snapshot, Snapshotter
from ralphloop.repo.work_tree import Repository
from ralphloop.text.plain import some

OLD_TESTS, NEW_TESTS = "the old tests with the new code", "the new tests with the old code"
ROOM = "experiment"  # in our own directory: what is exchanged
_SHARES = {True: 0.7, False: 2.2}  # of the check's own time, where files can be run alone or not
_LOOKED_BACK = 20  # iterations
_LEAST_S = 60.0  # starting a runner takes its time, however short the check is


class Tried(Value, kw_only=True):
    """What came out, and whether the work tree is still what was checked."""

    trial: Trial
    is_cut: bool = False  # somebody stopped the run meanwhile
    saved: str = ""  # what somebody else wrote meanwhile, in words


class _Cut(Exception):
    """The run is to stop."""


class _Disturbed(Exception):
    """Somebody wrote into the work tree meanwhile."""


class _Impossible(Exception):
    """It cannot be tried, and why."""


def tried(runner: Runner, begun: Begun, checked: Snapshot, evidence: Evidence) -> Steps[Tried]:
    """Compare and try what the story did; `checked` is the work tree before its checks ran."""
    runner.seen = None
    measure, trial = runner.measure, Trial()
    end = measure.tree()
    start = measure.known(
        Snapshot(tree=begun.state.start_tree or begun.before.tree, head=begun.before.head)
    )
    changes = measure.changes(start.tree, end.tree)
    wrote = frozenset(change.path for change in measure.changes(checked.tree, end.tree))
    before, is_unsure = _before(runner, start.tree)
    story = _Story(runner, begun, start, end, wrote, changes, is_unsure)
    results = zip(runner.session.frozen.checks, evidence.checks or (), strict=False)
    try:
        for argv, now in results:
            lab = _Lab(story, argv, now, before.get(now.name, Told()))
            trial = trial.joined((yield from lab.tried()))
    except _Cut:
        return Tried(trial=trial, is_cut=True)
    except _Disturbed as saved:
        return Tried(trial=trial, saved=str(saved))
    finally:
        runner.seen = None
    return Tried(trial=trial)


def _before(runner: Runner, tree: str) -> tuple[dict[str, Told], bool]:
    """What the checks told before the story, and whether that was in quite another tree."""
    frozen, reports = runner.session.frozen, load_reports(runner.journal, runner.run)
    newest = runner.journal.latest_iterations(runner.run, _LOOKED_BACK)
    passed = next((it.checks for it in newest if it.record.verdict.passed), ())
    known = {it.name: _told(it) for it in (*frozen.baseline, *passed)}
    told = {
        name: msgspec.structs.replace(it, report=reports.get(name)) for name, it in known.items()
    }
    return told, tree not in {frozen.start_tree, *(it.end_tree for it in newest)}


def _told(result: CheckResult) -> Told:
    nothing = result.status is CheckStatus.NO_TESTS
    return Told(
        report=result.report,
        counts=TestCounts(passed=0) if nothing else result.counts,
        is_green=result.status is CheckStatus.PASSED,
    )


class _Crossed(Value, kw_only=True):
    """What the runs crosswise showed of one check."""

    old_tests: TestReport | None = None
    new_tests: TestReport | None = None
    song: Canary = Canary.UNTRIED
    flaky: frozenset[str] = frozenset()
    untried: tuple[str, ...] = ()
    tests_changed: bool = False


class _Story(msgspec.Struct, frozen=True):
    """The story that is tried, and the work tree around it."""

    runner: Runner
    begun: Begun
    start: Snapshot
    end: Snapshot
    wrote: frozenset[str]  # by the checks themselves
    changes: list[Change]
    is_unsure: bool

    def sides(self, found: FoundRunner | None) -> Sides:
        """The change taken apart, as this runner sees it."""
        repo, measure = self.runner.setup.repo, self.runner.measure
        prefix = project_prefix(repo.root, self.runner.setup.project.root) if repo else ""
        scripts = [f"{prefix}{path}" for path in (found.scripts if found else ())]
        names = (name for it in self.changes for name in (it.before, it.after) if name)
        return split(self.changes, measure.contents(names), found, scripts, prefix)


class _Lab:
    """One check of a story while it is tried."""

    def __init__(self, story: _Story, argv: Sequence[str], now: CheckResult, was: Told) -> None:
        self.story, self.runner, self.argv, self.now, self.was = story, story.runner, argv, now, was
        self.root = self.runner.setup.project.root
        self.room = self.runner.setup.project.directory
        self.found = find_runner(argv, self.root)
        self.sides = story.sides(self.found)
        self.until = 0.0

    def tried(self) -> Steps[Trial]:
        """The check, seen against how it was."""
        began, now, was, sides = time.monotonic(), self.now, self.was, self.sides
        crossed, told = _Crossed(tests_changed=bool(sides.tests)), _told(now)
        if now.status is CheckStatus.PASSED and self.found and now.report and was.report:
            try:
                crossed = yield from self._crosswise(self.found, was.report, now.report)
            except _Impossible as why:
                untried = (f"not tried: {why}",) if str(why) else ()
                crossed = _Crossed(tests_changed=bool(sides.tests), untried=untried)
        elif not now.report:
            crossed = msgspec.structs.replace(crossed, untried=(f"{now.name} names no tests",))
        runs = Runs(
            before=was.report,
            end=now.report,
            old_tests=crossed.old_tests,
            new_tests=crossed.new_tests,
            tests_changed=crossed.tests_changed,
            is_unsure=self.story.is_unsure or sides.tests_in_code,
            flaky=crossed.flaky | frozenset(now.failing_tests if now.flaky else ()),
        )
        in_words = disbelief(now.name, was, told, behaved=self._behaved, canary=crossed.song)
        in_numbers = fewer(now.name, was, told, tests_changed=bool(sides.tests))
        rest = Trial(untried=crossed.untried, took_s=time.monotonic() - began)
        return in_words.joined(in_numbers).joined(concluded(runs)).joined(rest)

    @property
    def _behaved(self) -> bool:
        baseline = self.runner.session.frozen.baseline
        return any(it.behaved for it in baseline if it.name == self.now.name)

    def _crosswise(
        self, found: FoundRunner, before: TestReport, end: TestReport
    ) -> Steps[_Crossed]:
        """The runs themselves; where one side is empty, the result is known already."""
        sides, both = self.sides, bool(self.sides.tests and self.sides.code)
        if not sides.code:
            changed = bool(sides.tests)
            return _Crossed(old_tests=before, new_tests=end, tests_changed=changed)
        alone = can_be_told(found) and not (both and sides.has_settings)
        old, new = (sides.files(old=which) if alone else None for which in (True, False))
        self._begin(alone=alone)
        crossed = _Crossed(old_tests=before, new_tests=before)
        if both and old != []:
            crossed = yield from self._old_tests(found, before, old)
        if crossed.song is Canary.UNTRIED:
            song = yield from self._canary_alone(found, before)
            crossed = msgspec.structs.replace(crossed, song=song)
        tests: TestReport | None = before
        if both and new != []:
            with self._exchanged(NEW_TESTS, sides.code):
                tests = yield from self._run(found, new)
        untried = list(crossed.untried)
        for what, report in {OLD_TESTS: crossed.old_tests, NEW_TESTS: tests}.items():
            untried += [f"{what} could not be judged"] * (report is None)
        return msgspec.structs.replace(crossed, new_tests=tests, untried=tuple(untried))

    def _old_tests(
        self, found: FoundRunner, before: TestReport, files: list[str] | None
    ) -> Steps[_Crossed]:
        """The old tests with the new code, our canary among them; what fails is run once more."""
        bird = self._bird(found, before) if files else None
        with self._exchanged(OLD_TESTS, self.sides.tests):
            with placed(bird, self.root, self._note) if bird else nullcontext():
                only = [*files, bird.path] if files and bird else files
                report = yield from self._run(found, only)
            failing = {name for name in before.passed if report and name in report.failed}
            again = None
            if failing:
                named = {name.partition("::")[0] for name in failing}
                again = yield from self._run(found, [f for f in files or () if f in named] or files)
        flaky = {name for name in failing if again and name not in again.failed | again.errors}
        return _Crossed(
            old_tests=report,
            song=_song(bird, report),
            flaky=frozenset(flaky),
            untried=(f"flaky: {some(sorted(flaky))}",) if flaky else (),
            tests_changed=True,
        )

    def _canary_alone(self, found: FoundRunner, before: TestReport) -> Steps[Canary]:
        if (bird := self._bird(found, before)) is None:
            return Canary.UNTRIED
        with placed(bird, self.root, self._note):
            report = yield from self._run(found, [bird.path])
        return _song(bird, report)

    @property
    def _note(self) -> Path:
        return self.room / CANARY

    def _bird(self, found: FoundRunner, before: TestReport) -> PlacedTest | None:
        there = self._behaved and can_be_told(found)
        return canary(found, list(before.passed), self.root) if there else None

    def _begin(self, *, alone: bool) -> None:
        """Whether there is a way and enough time; from here on it runs."""
        runner, repo, sides = self.runner, self.runner.setup.repo, self.sides
        wanted = runner.policy.experiments
        if wanted is Experiments.OFF:
            raise _Impossible
        if repo is None or runner.setup.shares:
            raise _Impossible("others work here too" if repo else "there is no git repository")
        if why := obstacle(runner.measure, (*sides.tests, *sides.code)):
            raise _Impossible(why)
        baseline = {it.name: it.duration_s for it in runner.session.frozen.baseline}
        share = _SHARES[alone] * baseline.get(self.now.name, self.now.duration_s)
        is_free = wanted is Experiments.ALWAYS
        room = 4 * runner.config.checks.timeout if is_free else max(_LEAST_S, share)
        left = runner.time_left() if runner.time_left else room
        if left < min(room, share + 1):
            raise _Impossible("there is no time left for it in this turn")
        self.until = time.monotonic() + min(room, left)

    def _run(self, found: FoundRunner, files: Sequence[str] | None) -> Steps[TestReport | None]:
        """One run of the tests; None where nothing can be said of it."""
        runner, left = self.runner, self.until - time.monotonic()
        if left <= 0:
            return None
        timeout = min(left, runner.config.checks.timeout)
        check = check_of(self.argv, timeout, runner.setup.check_box)

        def run(gone: Callable[[], bool]) -> CheckResult | None:
            stop = lambda: gone() or runner.stop.requested  # noqa: E731
            return run_named(check, found, self.root, files=files, stop=stop)

        result = yield from aside(run)
        if result is None:
            raise _Cut
        return result.report

    @contextmanager
    def _exchanged(self, what: str, changes: Sequence[Change]) -> Iterator[None]:
        """One side as it was before, written ahead; then everything as the story left it."""
        runner, repo, story = self.runner, self.runner.setup.repo, self.story
        number, name = story.begun.number, story.begun.story.id if story.begun.story else ""
        if repo is None:
            raise _Impossible("there is no git repository")
        swap = swap_of(
            changes,
            run=runner.run,
            number=number,
            what=what,
            start=story.start.tree,
            end=story.end.tree,
        )
        begins = ExperimentBegun(story=name, what=what, start=swap.start, end=swap.end)
        event = runner.made(begins, number)
        runner.journal.begin_experiment(swap, [event])
        runner.sink(event)
        saved: tuple[str, ...] = ()
        try:
            try:
                undo(repo, runner.measure, swap, self.room / ROOM)
            except RepositoryError as error:
                raise _Impossible(error.message) from error
            yield
            kill_point("experiment.ran")
        finally:
            saved = _put_back(repo, runner.measure, swap, self.room)
            ended = runner.made(ExperimentEnded(story=name, what=what), number)
            runner.journal.end_experiment([ended])
            runner.sink(ended)
        found = runner.measure.changes(swap.end, runner.measure.tree().tree)
        others = sorted({change.path for change in found} - story.wrote)
        if words := (*saved, *((f"{some(others)} changed meanwhile",) if others else ())):
            raise _Disturbed("; ".join(words))


def _song(bird: PlacedTest | None, report: TestReport | None) -> Canary:
    """How our own failing test came out."""
    if bird is None or report is None:
        return Canary.UNTRIED
    cannot_run = any(bird.name in name for name in report.errors)
    return Canary.UNTRIED if cannot_run else bird.seen(report)


def can_be_told(found: FoundRunner) -> bool:
    """Whether the runner takes some files, and nothing else is run then."""
    return found.callable and bool(found.runner.only)


# --- putting back ----------------------------------------------------------------------------


def begun_swap(journal: Journal) -> Swap | None:
    """An exchange of files that was written down and not yet ended."""
    found = journal.meta(SWAP_KEY)
    return msgspec.convert(found, type=Swap) if found else None


def restore(journal: Journal, repo: Repository | None, measure: Snapshotter, room: Path) -> str:
    """Put back what an experiment that was cut off had exchanged; what was done, in words."""
    sweep(room.parent, room / CANARY)
    swap = begun_swap(journal)
    if swap is None or repo is None:
        return ""
    saved = _put_back(repo, measure, swap, room)
    journal.end_experiment(())
    told = f"; {'; '.join(saved)}" if saved else ""
    return f"put back the files that were exchanged for an experiment{told}"


def _put_back(repo: Repository, measure: Snapshotter, swap: Swap, room: Path) -> tuple[str, ...]:
    ref = ref_name(swap.run, swap.number, "experiment")
    try:
        foreign = put_back(repo, measure, swap, room / ROOM, ref)
    except OSError as error:
        raise RepositoryError(
            f"the work tree cannot be put back as the story left it: {error}",
            "Make room on the disk and give yourself write permission, then: ralph run --continue",
        ) from error
    with suppress(OSError):
        (room / ROOM).rmdir()
    return (f"{some(foreign)} was saved meanwhile and is kept at {ref}",) if foreign else ()
