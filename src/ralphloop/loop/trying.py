"""Finding out what a green story's tests are worth, by running them crosswise.

The old tests run with the new code, the new tests with the old code, and a failing test of ours
beside the story's own, within the time there is.  A story's own command that turned green runs as a
whole with the tests as they were when it was red.  Each exchange of files is written ahead: a crash
at any moment leaves a `Swap` in the journal, which is put back before anything else happens.  Where
somebody saved a file meanwhile, the story is judged anew.
"""

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from ralphloop.atomic import kill_point
from ralphloop.core import proof
from ralphloop.core.events import ExperimentBegun, ExperimentEnded
from ralphloop.core.grading import VERIFY
from ralphloop.core.model import CheckResult, CheckStatus, Evidence
from ralphloop.core.proof import Canary, Runs, TestReport, Trial
from ralphloop.core.run_state import VerifySeen, verify_was
from ralphloop.errors import GitDisturbed, RepositoryError
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import SWAP_KEY
from ralphloop.loop.before import results_before
from ralphloop.loop.begin import Round
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import CLEANED_UP, Workspace
from ralphloop.proc.threads import in_thread
from ralphloop.project import Project
from ralphloop.repo.checks import check_of, run_checks, run_once, verify_of
from ralphloop.repo.experiment import Swap, covered, obstacle, put_back, split, swap_of, undo
from ralphloop.repo.named import CANARY, canary, file_of, placed, sweep
from ralphloop.repo.runners import FoundRunner, find_runner
from ralphloop.repo.set_aside import ref_name, write_files
from ralphloop.repo.snapshot import Change, Snapshot, Snapshotter
from ralphloop.repo.work_tree import Repository, project_prefix
from ralphloop.text.plain import some

OLD_TESTS = "the old tests with the new code"
NEW_TESTS = "the new tests with the old code"
VERIFY_AS_IT_WAS = "verify with the old tests and the new code"
VERIFY_WITHOUT_IT = "verify with the new tests and the old code"
WITHOUT = "everything as it was without the story"
ROOM = "experiment"  # in our own directory: what is exchanged
_SHARES = {True: 0.7, False: 2.2}  # of the check's own time, where files can be run alone or not
_LEAST_S = 60.0  # starting a runner takes its time, however short the check is


class _Cut(Exception):
    """The run is to stop."""


class _Disturbed(Exception):
    """Somebody wrote into the work tree meanwhile."""


class _Impossible(Exception):
    """It cannot be tried, and why."""


async def tried(
    run: Run, workspace: Workspace, begun: Round, checked: Snapshot, evidence: Evidence
) -> tuple[Evidence, str]:
    """Compare and try what the story did; `checked` is the work tree before its checks ran.

    Returns the evidence with what came out, and what somebody else wrote meanwhile, in words.
    """
    workspace.touched()
    measure = workspace.measure
    trial = Trial()
    end = measure.tree()
    start = measure.known(begun.story_began)
    changes = measure.changes(start.tree, end.tree)
    wrote = {change.path: change.before for change in measure.changes(checked.tree, end.tree)}
    # What the checks told before the story, and whether that was in quite another tree.
    before = results_before(run, workspace, start.tree)
    tolerated = frozenset(evidence.comparison.tolerated)
    story = _Story(run, workspace, begun, start, end, wrote, changes, before.is_exact, tolerated)
    results = zip(run.session.frozen.checks, evidence.checks or (), strict=False)
    try:
        for argv, now in results:
            lab = _Lab(story, argv, now, before.of(now.name))
            trial = trial.joined(await lab.tried())
        if own := _own_command(story, evidence, is_proven=bool(trial.proven)):
            trial = trial.joined(await own.tried())
    except _Cut:
        return msgspec.structs.replace(evidence, trial=trial, checked_tree="", checks_cut=True), ""
    except _Disturbed as saved:
        return evidence, str(saved)
    finally:
        workspace.touched()
    tree = measure.tree().tree  # runs may write what the checks wrote
    return msgspec.structs.replace(evidence, trial=trial, checked_tree=tree, checks_cut=False), ""


class _Crossed(msgspec.Struct, kw_only=True):
    old_tests: TestReport | None = None
    new_tests: TestReport | None = None
    song: Canary = Canary.UNTRIED
    excused: frozenset[str] = frozenset()  # failed with the new code, and passed the second time
    by_chance: frozenset[str] = frozenset()  # do not do the same twice, so they prove nothing
    untried: tuple[str, ...] = ()


class _Story(msgspec.Struct, frozen=True):
    run: Run
    workspace: Workspace
    begun: Round
    start: Snapshot
    end: Snapshot
    wrote: dict[str, str | None]  # by the checks themselves, and what was there before
    changes: list[Change]
    is_exact: bool  # what the checks show without it is known
    tolerated: frozenset[str]  # checks that are red only in ways they were before


class _Side(msgspec.Struct, frozen=True):
    """One side of a story's change, and the tree that has it as it was."""

    changes: tuple[Change, ...]
    tree: str


class _Lab:
    """One check of a story while it is tried."""

    def __init__(
        self, story: _Story, argv: Sequence[str], now: CheckResult, was: CheckResult
    ) -> None:
        self.story = story
        self.run = story.run
        self.workspace = story.workspace
        self.argv = argv
        self.now = now
        self.was = was
        repo = self.workspace.repo
        measure = self.workspace.measure
        self.root = self.workspace.root
        self.room = self.workspace.project.directory
        self.found = found = find_runner(argv, self.root)
        self.until = 0.0
        self.took_s = 0.0
        self.is_exact = story.is_exact  # `was` is what the check shows without the story
        baseline = self.run.session.frozen.baseline
        self.behaved = any(it.behaved for it in baseline if it.name == now.name)
        # The change taken apart, as this runner sees it.
        prefix = project_prefix(repo.root, self.root) if repo else ""
        loads = {f"{prefix}{path}" for path in (found.loads(self.root) if found else ())}
        scripts = [*loads, *(f"{prefix}{path}" for path in (found.scripts if found else ()))]
        sides = split(story.changes, measure.sides(story.changes), found, scripts, prefix)
        # What the checks alone made is nobody's code: they make it anew in every run.
        code = tuple(it for it in sides.code if story.wrote.get(it.path, "") is not None)
        loaded = tuple(it.path for it in sides.tests if it.path in loads and it.before)
        self.sides = msgspec.structs.replace(sides, code=code, loaded=loaded)

    async def tried(self) -> Trial:
        began = time.monotonic()
        if not self.is_exact and (found := (await self._without_the_story())):
            self.was = found
            self.is_exact = True
        now = self.now
        was = self.was
        sides = self.sides
        crossed = _Crossed()
        is_fine = now.status is CheckStatus.PASSED or now.name in self.story.tolerated
        if is_fine and self.found and now.report and was.report:
            if not (sides.has_tests and sides.code):  # what one side alone shows is known already
                new_tests = was.report if sides.code else now.report
                crossed = _Crossed(old_tests=was.report, new_tests=new_tests)
            try:
                crossed = await self._crosswise(self.found, was.report, now.report, crossed)
            except _Impossible as why:
                crossed.untried = (f"not tried: {why}",) if str(why) else ()
        elif not now.report:
            crossed = _Crossed(untried=(f"{now.name} names no tests",))
        in_words = proof.disbelief(was, now, behaved=self.behaved, canary=crossed.song)
        in_numbers = proof.fewer(was, now, tests_changed=sides.has_tests)
        named = proof.concluded(self._runs(crossed))
        # Nothing that could not be judged, or was judged twice, makes a story verified.
        is_sure = crossed.old_tests and crossed.song is not Canary.SILENT and not crossed.excused
        proven = named.proven if is_sure and not sides.loaded else ()
        proven = tuple(name for name in proven if name not in crossed.by_chance)
        named = msgspec.structs.replace(named, proven=proven)
        flaky = sorted(crossed.excused | crossed.by_chance)
        said = {"flaky": flaky, "changed, and loaded by the settings of the runner": sides.loaded}
        told_too = (f"{words}: {some(names)}" for words, names in said.items() if names)
        untried = (*crossed.untried, *told_too)
        rest = Trial(
            untried=untried, discounted=self._discounted(crossed), took_s=time.monotonic() - began
        )
        return in_words.joined(in_numbers).joined(named).joined(rest)

    def _discounted(self, crossed: _Crossed) -> tuple[str, ...]:
        """What was red and is green, where nobody saw it green with the tests as they were."""
        was_red = self.was.status is CheckStatus.FAILED
        if not (was_red and self.sides.had_tests) or crossed.old_tests is not None:
            return ()
        return (self.now.name, *self.was.failing_tests)

    async def _without_the_story(self) -> CheckResult | None:
        """What the check shows in a state in which it never ran; None where nobody can find out."""
        run = self.run
        workspace = self.workspace
        story = self.story
        wrote = story.wrote  # by checks, which make it anew
        changes = [it for it in story.changes if wrote.get(it.path, "") is not None]
        is_wanted = run.policy.experiments != "off" and not workspace.shares
        if not is_wanted or workspace.repo is None or obstacle(workspace.measure, changes):
            return None
        if run.patience and run.patience.left() < 2 * self.now.duration_s + 1:
            return None
        check = check_of(self.argv, run.config.checks.timeout, workspace.check_box)

        def carry_out(gone: Callable[[], bool]) -> tuple[CheckResult, ...]:
            return run_checks([check], self.root, stop=lambda: gone() or run.stop.requested)

        try:
            with self._exchanged(WITHOUT, _Side(tuple(changes), story.start.tree)):
                ran = await in_thread(carry_out)
        except _Impossible:
            return None
        if not ran:
            raise _Cut
        return ran[0]

    def _runs(self, crossed: _Crossed) -> Runs:
        now = self.now
        sides = self.sides
        return Runs(
            before=self.was.report,
            end=now.report,
            old_tests=crossed.old_tests,
            new_tests=crossed.new_tests,
            tests_changed=sides.has_tests,
            is_unsure=not self.is_exact or sides.tests_in_code,
            flaky=crossed.excused | frozenset(now.failing_tests if now.flaky else ()),
        )

    async def _crosswise(
        self, found: FoundRunner, before: TestReport, end: TestReport, crossed: _Crossed
    ) -> _Crossed:
        """The runs themselves: crosswise where both sides changed, and one with our own test."""
        sides = self.sides
        both = bool(self.sides.has_tests and self.sides.code)
        if not (sides.has_tests or sides.code):
            return crossed
        tells = can_be_told(found)
        alone = tells and not (both and sides.has_settings)
        self._begin(alone=alone, exchanges=both)
        if both:
            crossed = await self._exchanges(found, before, end, alone=alone)
        bird = canary(found, before.passed, self.root) if self.behaved and tells else None
        if bird is None:
            return crossed
        # A failing test of ours among the story's own, with everything as the story left it: a
        # runner can be forged by code, by settings and by a test, and by all of them together.
        files = sides.files(old=False) if self._left_s > self.took_s else []
        names = [] if files or not found.runner.select else [bird.name]
        with placed(bird, self.root, self.room / CANARY):  # others are loaded first: they may forge
            only = [*(files or ([bird.beside] if names else [])), bird.path]
            report = await self._run(found, only, names)
        if report is None or any(bird.name in name for name in report.errors):
            crossed.untried += ("our own failing test could not be run",)
            crossed.song = Canary.SILENT
        else:
            crossed.by_chance |= report.failed.keys() & end.passed.keys()
            crossed.song = bird.seen(report)
        return crossed

    async def _exchanges(
        self, found: FoundRunner, before: TestReport, end: TestReport, *, alone: bool
    ) -> _Crossed:
        """Each side as it was; what a test is blamed or believed for it does a second time."""
        tests = self._old_tests()
        old = self.sides.files(old=True) if alone else None
        crossed = _Crossed(old_tests=before)
        if old != []:
            with self._exchanged(OLD_TESTS, tests):
                crossed.old_tests = await self._run(found, old)
        new = self._concerned(found, before, end, crossed.old_tests)
        if new != []:
            with self._exchanged(NEW_TESTS, self._old_code()):
                crossed.new_tests = await self._run(found, new)
                names = proof.by_chance(end, crossed.new_tests) if crossed.new_tests else []
                # A story whose old tests object cannot be verified anyway.
                if names and not proof.concluded(self._runs(crossed)).old:
                    again = await self._again(found, names)
                    chance = (name for name in names if not again or name not in again.failed)
                    crossed.by_chance = frozenset(chance)
        else:
            crossed.new_tests = before
        told = {OLD_TESTS: crossed.old_tests, NEW_TESTS: crossed.new_tests}
        crossed.untried = tuple(
            f"{it} could not be judged" for it, came in told.items() if not came
        )
        judged = proof.concluded(self._runs(crossed)).old
        if names := [one.name for one in judged if one.fate.is_challenged]:
            with self._exchanged(OLD_TESTS, tests):
                again = await self._again(found, names)
            passed = again.passed if again else {}  # also as a row beside one that fails
            excused = (it for it in names if it in passed and not proof.is_failing(again, it))
            crossed.excused = frozenset(excused)
        return crossed

    def _concerned(
        self, found: FoundRunner, before: TestReport, end: TestReport, tried: TestReport | None
    ) -> list[str] | None:
        """The files to run with the old code: changed ones, and where tests are new or fail."""
        if not can_be_told(found) or self.sides.mixed:
            return None
        failing = [name for name in before.passed if tried and proof.is_failing(tried, name)]
        files = [file_of(name) for name in failing]
        if not all(files):
            return None  # a runner that names no files: all of them
        files += [file_of(name) for name in end.passed if name not in before.passed]
        wanted = dict.fromkeys((*self.sides.files(old=False), *filter(None, files)))
        return [name for name in wanted if (self.root / name).is_file()]

    async def _again(self, found: FoundRunner, names: list[str]) -> TestReport | None:
        """Just these tests once more, where the runner can be told."""
        files = [file_of(name) for name in names] if can_be_told(found) else [""]
        only = list(dict.fromkeys(files)) if all(files) else None
        return await self._run(found, only, names)

    @property
    def _left_s(self) -> float:
        return self.until - time.monotonic()

    def _begin(self, *, alone: bool, exchanges: bool) -> None:
        """Whether there is a way and enough time; from here on it runs."""
        run = self.run
        workspace = self.workspace
        repo = self.workspace.repo
        sides = self.sides
        wanted = run.policy.experiments
        if wanted == "off":
            raise _Impossible
        if repo is None or workspace.shares:
            raise _Impossible("others work here too" if repo else "there is no git repository")
        if workspace.checks_clean_up:
            raise _Impossible(CLEANED_UP)
        changes = (*sides.tests, *sides.code)
        if exchanges and (why := obstacle(workspace.measure, changes)):
            raise _Impossible(why)
        baseline = {it.name: it.duration_s for it in run.session.frozen.baseline}
        share = _SHARES[alone] * baseline.get(self.now.name, self.now.duration_s)
        is_free = wanted == "always"
        room = 4 * run.config.checks.timeout if is_free else max(_LEAST_S, share)
        left = run.patience.left() if run.patience else room
        if left < min(room, share + 1):
            raise _Impossible("there is no time left for it in this turn")
        self.until = time.monotonic() + min(room, left)

    async def _run(
        self, found: FoundRunner, files: Sequence[str] | None, names: Sequence[str] = ()
    ) -> TestReport | None:
        run = self.run
        workspace = self.workspace
        began = time.monotonic()
        if self._left_s <= 0:
            return None
        timeout = min(self._left_s, run.config.checks.timeout)
        check = check_of(self.argv, timeout, workspace.check_box)

        def run_tests(gone: Callable[[], bool]) -> CheckResult | None:
            stop = lambda: gone() or run.stop.requested  # noqa: E731
            select = found.runner.named(names)
            return run_once(check, found, self.root, files=files, select=select, stop=stop)

        result = await in_thread(run_tests)
        if result is None:
            raise _Cut
        self.took_s = time.monotonic() - began
        return result.report

    def _old_tests(self) -> _Side:
        """The tests as they were: whole files, and the docstrings of those that hold code too."""
        texts = {it.path: it.old_tests for it in self.sides.mixed}
        return self._with_texts(self.sides.tests, texts)

    def _old_code(self) -> _Side:
        texts = {it.path: it.old_code for it in self.sides.mixed}
        return self._with_texts([it for it in self.sides.code if it.path not in texts], texts)

    def _with_texts(self, changes: Sequence[Change], texts: dict[str, bytes]) -> _Side:
        """These changes, and those to files that are to be replaced by other texts."""
        measure = self.workspace.measure
        start = self.story.start.tree
        end = self.story.end.tree
        if not texts:
            return _Side(tuple(changes), start)
        tree = measure.with_texts(start, texts)
        mixed = [change for change in measure.changes(tree, end) if change.path in texts]
        return _Side((*changes, *mixed), tree)

    @contextmanager
    def _exchanged(self, what: str, side: _Side) -> Iterator[None]:
        """One side as it was before, written ahead; then everything as the story left it."""
        run = self.run
        workspace = self.workspace
        repo = self.workspace.repo
        story = self.story
        number = story.begun.number
        name = story.begun.story.id if story.begun.story else ""
        if repo is None:
            raise _Impossible("there is no git repository")
        swap = swap_of(
            side.changes,
            run=run.id,
            number=number,
            what=what,
            start=side.tree,
            end=story.end.tree,
            covered=covered(repo.root, side.changes),
        )
        begins = ExperimentBegun(story=name, what=what, start=swap.start, end=swap.end)
        event = run.new_event(begins, number)
        # Written ahead: whoever comes next puts back what is about to be exchanged.
        run.journal.put("begin_experiment", {SWAP_KEY: swap}, [event])
        run.sink(event)
        saved: tuple[str, ...] = ()
        is_undone = False
        try:
            try:
                undo(repo, workspace.measure, swap, self.room / ROOM)
            except GitDisturbed:
                raise
            except RepositoryError as error:
                raise _Impossible(error.message) from error
            is_undone = True
            yield
            kill_point("experiment.ran")
        finally:
            if is_undone and not (self.room / ROOM).exists():
                self._rescue(repo, swap)
            saved = _put_back(repo, workspace.measure, swap, self.room)
            ended = run.new_event(ExperimentEnded(story=name, what=what), number)
            run.journal.put("end_experiment", {SWAP_KEY: None}, [ended])
            run.sink(ended)
        found = workspace.measure.changes(swap.end, workspace.measure.tree().tree)
        others = sorted({change.path for change in found} - story.wrote.keys())
        if words := (*saved, *((f"{some(others)} changed meanwhile",) if others else ())):
            raise _Disturbed("; ".join(words))

    def _rescue(self, repo: Repository, swap: Swap) -> None:
        """Write the files of the story anew: what ran has removed our directory, and them in it."""
        from ralphloop.loop.repair import put_back_own_files

        put_back_own_files(self.run, self.workspace)
        self.workspace.checks_clean_up = True
        ref = f"{ref_name(swap.run, swap.number, 'experiment')}-in-the-way"
        measure = self.workspace.measure
        try:
            if swap.moved:
                objects = measure.object_variables()
                write_files(repo, swap.end, [*swap.moved], ref=ref, objects=objects)
        except RepositoryError as error:
            raise RepositoryError(
                f"{CLEANED_UP} while files of the story were exchanged: {some([*swap.moved])}"
                " cannot be brought back",
                'Let the check spare .ralph, or set experiments = "off" under [proof];'
                " then: ralph run --continue",
            ) from error


class _OwnLab(_Lab):
    """A story's own command that was red and is green: is that the story's doing?"""

    def __init__(
        self, story: _Story, argv: Sequence[str], now: CheckResult, seen: VerifySeen
    ) -> None:
        super().__init__(story, argv, now, now)
        self.red = TestReport(
            failed=dict.fromkeys(seen.failed, 1), errors=dict.fromkeys(seen.broken, 1)
        )

    async def tried(self) -> Trial:
        began = time.monotonic()
        sides = self.sides
        own = proof.OwnCommand(
            command=shlex.join(self.argv),
            red=self.red,
            end=self.now.report,
            tests_changed=sides.has_tests,
            had_changed=sides.had_tests,
            is_unsure=sides.tests_in_code,
            settings_changed=sides.has_settings,
        )
        untried: tuple[str, ...] = ()
        if sides.has_tests:
            try:
                own = await self._both_ways(own)
            except _Impossible as why:
                if sides.had_tests or sides.has_settings:
                    words = str(why) or "experiments are off"
                    untried = (f"verify was not tried with the tests as they were: {words}",)
                else:  # tests were only added: those that were there are as they were
                    own = msgspec.structs.replace(own, tests_changed=False)
        rest = Trial(untried=untried, took_s=time.monotonic() - began)
        return proof.own_command(own, VERIFY).joined(rest)

    async def _both_ways(self, own: proof.OwnCommand) -> proof.OwnCommand:
        """With the tests as they were; where that is red, also as they are and without the code."""
        self._begin(alone=False, exchanges=True)
        with self._exchanged(VERIFY_AS_IT_WAS, self._old_tests()):
            old = await self._as_a_whole()
            if old and old.status is CheckStatus.FAILED and not old.ran_nothing:
                old = await self._as_a_whole()  # what fails by chance is nobody's fault
        own = msgspec.structs.replace(own, old_tests=old)
        if old is None or old.status is CheckStatus.PASSED:
            return own
        if not self.sides.code:
            return msgspec.structs.replace(own, new_tests=self.now)
        with self._exchanged(VERIFY_WITHOUT_IT, self._old_code()):
            new = await self._as_a_whole()
            lucky = await self._by_chance(new)
        return msgspec.structs.replace(own, new_tests=new, by_chance=lucky)

    async def _by_chance(self, new: CheckResult | None) -> frozenset[str]:
        """Tests that fail without the code, and do not do so a second time."""
        end = self.now.report
        if end is None or new is None or new.report is None:
            return frozenset()
        names = proof.by_chance(end, new.report)
        again = (await self._as_a_whole()) if names else None
        failed = again.report.failed if again and again.report else {}
        return frozenset(name for name in names if name not in failed)

    async def _as_a_whole(self) -> CheckResult | None:
        """The very command; None where there is no time left."""
        if self._left_s <= 0:
            return None
        run = self.run
        workspace = self.workspace
        timeout = min(self._left_s, run.config.checks.timeout)
        check = verify_of(self.argv, timeout, workspace.check_box)

        def carry_out(gone: Callable[[], bool]) -> CheckResult | None:
            stop = lambda: gone() or run.stop.requested  # noqa: E731
            return run_once(check, self.found, self.root, whole=True, stop=stop)

        result = await in_thread(carry_out)
        if result is None:
            raise _Cut
        return result


def _own_command(story: _Story, evidence: Evidence, *, is_proven: bool) -> _OwnLab | None:
    """The story's own command, where it was red before and is green.

    One that found no test before can only prove by tests that came with the story, and need not
    where the checks have done so.
    """
    named = story.begun.story
    state = story.begun.state
    own = next((it for it in evidence.checks or () if it.name == VERIFY), None)
    seen = state.verify_before
    if named is None or not named.verify or own is None or seen is None:
        return None
    was = verify_was(state, named)
    was_red = was is CheckStatus.FAILED or (was is CheckStatus.NO_TESTS and not is_proven)
    is_green = own.status is CheckStatus.PASSED
    return _OwnLab(story, named.verify, own, seen) if was_red and is_green else None


def can_be_told(found: FoundRunner) -> bool:
    """Whether the runner takes some files, and nothing else is run then."""
    return found.callable and bool(found.runner.only)


def restore(
    journal: Journal, repo: Repository | None, measure: Snapshotter, project: Project
) -> str:
    """Put back what an experiment that was cut off had exchanged; what was done, in words."""
    room = project.directory
    sweep(project.root, room / CANARY)
    if not (found := journal.meta(SWAP_KEY)) or repo is None:
        return ""
    swap = msgspec.convert(found, type=Swap)
    saved = _put_back(repo, measure, swap, room)
    journal.put("end_experiment", {SWAP_KEY: None})
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
