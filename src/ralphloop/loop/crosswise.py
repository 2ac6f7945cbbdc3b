"""One check of a green story, tried crosswise.

The old tests run with the new code, the new tests with the old code, and a failing test of ours
beside the story's own, within the time there is.
"""

import time
from pathlib import PurePosixPath

import msgspec

from ralphloop.core import proof
from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.core.proof import Canary, Runs, TestReport, Trial
from ralphloop.loop.before import comparable
from ralphloop.loop.bench import Bench
from ralphloop.loop.exchanging import Impossible, OldSide, exchanged
from ralphloop.repo.experiment import obstacle
from ralphloop.repo.judges import is_about_packages
from ralphloop.repo.named import CANARY, canary, canary_in_place, file_of
from ralphloop.repo.runners import FoundRunner
from ralphloop.text.plain import some
from ralphloop.text.stubs import MARK

OLD_TESTS = "the old tests with the new code"
NEW_TESTS = "the new tests with the old code"
WITHOUT_DATA = "the tests without the change of {}"
WITHOUT = "everything as it was without the story"


class CrosswiseRuns(msgspec.Struct, kw_only=True):
    """What came of the runs."""

    old_tests: TestReport | None = None  # with the new code
    new_tests: TestReport | None = None  # with the old code
    canary: Canary = Canary.UNTRIED
    excused: frozenset[str] = frozenset()  # failed with the new code, and passed the second time
    by_chance: frozenset[str] = frozenset()  # do not do the same twice, so they prove nothing
    untried: tuple[str, ...] = ()
    is_left_to_mutants: bool = False  # the new tests did not run with the old code
    is_unjudged: bool = False  # the old tests ran with the new code, and told nothing


async def try_check(bench: Bench, was: CheckResult) -> Trial:
    """What a check is worth for a story; `was` is the newest that is known from before it."""
    began = time.monotonic()
    is_start_known = bench.story.is_start_known
    if not is_start_known:
        found = await _without_the_story(bench)
        if found is not None:
            was = bench.as_named_now(comparable(found, bench.now))
            is_start_known = True
    trial = await _CheckOnTrial(bench, was, is_start_known=is_start_known).tried()
    return trial.joined(Trial(took_s=time.monotonic() - began))


async def _without_the_story(bench: Bench) -> CheckResult | None:
    """What the check shows in a state in which it never ran; None where nobody can find out."""
    story = bench.story
    run = story.run
    place = story.place
    changes = tuple(it for it in story.changes if not story.is_made_by_checks(it.path))
    if run.policy.experiments == "off" or place.has_neighbours or place.repo is None:
        return None
    if obstacle(place.measure, changes):
        return None
    if run.patience and run.patience.left() < 2 * bench.now.duration_s + 1:
        return None
    try:
        with exchanged(story, WITHOUT, OldSide(changes=changes, tree=story.start.tree)):
            return await bench.run_as_ever()
    except Impossible:
        return None


class _CheckOnTrial:
    def __init__(self, bench: Bench, was: CheckResult, *, is_start_known: bool) -> None:
        self.bench = bench
        self.was = was
        self.is_start_known = is_start_known  # `was` is what the check shows without the story
        first = bench.story.run.session.baseline.results
        self.behaved = any(it.behaved for it in first if it.name == bench.now.name)

    async def tried(self) -> Trial:
        now = self.bench.now
        sides = self.bench.sides
        crossed = await self._crossed()
        in_words = proof.disbelief(self.was, now, behaved=self.behaved, canary=crossed.canary)
        in_numbers = proof.fewer(self.was, now, tests_changed=sides.has_tests)
        named = proof.concluded(self._runs(crossed))
        named = msgspec.structs.replace(
            named,
            proven=self._surely(named.proven, crossed),
            reached=self._surely(named.reached, crossed),
        )
        beside = Trial(
            untried=self._untried(crossed),
            discounted=self._discounted(crossed),
            needed_by_tests=await self._needed(),
            unloadable=self._new_tests() if crossed.is_left_to_mutants else (),
            unjudged=(now.name,) if crossed.is_unjudged else (),
            unsteady=tuple(sorted(crossed.excused)),
        )
        return in_words.joined(in_numbers).joined(named).joined(beside)

    async def _needed(self) -> tuple[str, ...]:
        """Data of which nobody can say whose word it is, and that old tests need as it is now."""
        bench = self.bench
        end = bench.now.report
        before = self.was.report
        unknown = [it for it in bench.sides.unknown if not is_about_packages(it.path)]
        is_fine = bench.now.status is CheckStatus.PASSED or bench.now.name in bench.story.tolerated
        if not (unknown and is_fine and end and before):
            return ()
        what = WITHOUT_DATA.format(some([it.path for it in unknown]))
        side = OldSide(changes=tuple(unknown), tree=bench.story.start.tree)
        try:
            bench.begin(alone=False, exchanged=unknown)
            with exchanged(bench.story, what, side):
                tried = await self._report(None)
        except Impossible:
            return ()
        failed = tried.failed if tried else {}
        known = before.passed | before.failed
        needing = [it for it in failed if it in known and it in end.passed and it not in end.failed]
        return tuple(it.path for it in unknown) if needing else ()

    def _new_tests(self) -> tuple[str, ...]:
        """Those that came with the story."""
        had = self.was.report or TestReport()
        end = self.bench.now.report or TestReport()
        known = {*had.passed, *had.failed, *had.errors, *had.skipped}
        return tuple(name for name in end.passed if name not in known)

    def _surely(self, tests: tuple[str, ...], crossed: CrosswiseRuns) -> tuple[str, ...]:
        """Those that prove something: nothing that could not be judged, or was judged twice."""
        if crossed.old_tests is None or crossed.canary is Canary.SILENT:
            return ()
        if crossed.excused or self.bench.sides.loaded:
            return ()
        return tuple(name for name in tests if name not in crossed.by_chance)

    def _untried(self, crossed: CrosswiseRuns) -> tuple[str, ...]:
        told = list(crossed.untried)
        flaky = sorted(crossed.excused | crossed.by_chance)
        if flaky:
            told.append(f"flaky: {some(flaky)}")
        if self.bench.sides.loaded:
            words = "changed, and loaded by the settings of the runner"
            told.append(f"{words}: {some(self.bench.sides.loaded)}")
        return tuple(told)

    def _discounted(self, crossed: CrosswiseRuns) -> tuple[str, ...]:
        """What was red and is green, and not by the product.

        Nobody saw it green with the tests as they were, or it is green without the product too.
        """
        if self.was.status is not CheckStatus.FAILED:
            return ()
        red = self.was.failing_tests
        sides = self.bench.sides
        if (sides.had_tests or sides.has_settings) and crossed.old_tests is None:
            return (self.bench.now.name, *red)
        if sides.has_settings and crossed.old_tests:  # with new settings all of them have to run
            seen = tuple(crossed.old_tests.passed)
            if unseen := [name for name in red if not name.startswith(seen)]:
                return (self.bench.now.name, *unseen)
        without = crossed.new_tests.passed if crossed.new_tests else {}
        easy = [name for name in red if name in without]
        return (self.bench.now.name, *easy) if easy else ()

    def _runs(self, crossed: CrosswiseRuns) -> Runs:
        now = self.bench.now
        sides = self.bench.sides
        flaky = frozenset(now.failing_tests) if now.flaky else frozenset[str]()
        return Runs(
            before=self.was.report,
            end=now.report,
            old_tests=crossed.old_tests,
            new_tests=crossed.new_tests,
            tests_changed=sides.has_tests,
            only_removed=sides.only_removes_tests,
            is_unsure=not self.is_start_known or sides.tests_in_code,
            flaky=crossed.excused | flaky,
        )

    async def _crossed(self) -> CrosswiseRuns:
        """The runs, as far as there are names to compare and a way to run them."""
        now = self.bench.now
        sides = self.bench.sides
        before = self.was.report
        if now.report is None:
            return CrosswiseRuns(untried=(f"{now.name} names no tests",))
        is_fine = now.status is CheckStatus.PASSED or now.name in self.bench.story.tolerated
        if not is_fine or self.bench.found is None or before is None:
            return CrosswiseRuns()
        crossed = CrosswiseRuns()
        if not (sides.has_tests and sides.code):  # what one side alone shows is known already
            new_tests = before if sides.code else now.report
            crossed = CrosswiseRuns(old_tests=before, new_tests=new_tests)
        try:
            return await self._crosswise(self.bench.found, before, now.report, crossed)
        except Impossible as why:
            crossed.untried = (f"not tried: {why}",) if str(why) else ()
            # What mutants show is half of it, where nobody knows what the old tests say.
            crossed.is_unjudged = sides.had_tests and crossed.old_tests is None
            return crossed

    async def _crosswise(
        self, found: FoundRunner, before: TestReport, end: TestReport, crossed: CrosswiseRuns
    ) -> CrosswiseRuns:
        """The runs themselves: crosswise where both sides changed, and one with our own test."""
        bench = self.bench
        sides = bench.sides
        if not (sides.has_tests or sides.code):
            return crossed
        both = sides.has_tests and bool(sides.code)
        alone = bench.can_be_told and not (both and sides.has_settings)
        tests = bench.old_tests().changes if both else ()
        bench.begin(alone=alone, exchanged=tests)
        if both:
            crossed = await self._exchanges(before, end, alone=alone)
        if self.behaved and bench.can_be_told:
            await self._run_canary(found, before, end, crossed)
        return crossed

    async def _run_canary(
        self, found: FoundRunner, before: TestReport, end: TestReport, crossed: CrosswiseRuns
    ) -> None:
        """Run a failing test of ours among the story's own, with everything as the story left it.

        A runner can be forged by code, by settings and by a test, and by all of them together.
        """
        bench = self.bench
        root = bench.story.place.root
        modules = {_module_of(change.path) for change in bench.sides.code}
        ours = canary(found, (*before.passed, *before.failed), root, modules)
        if ours is None:
            return
        beside = bench.sides.files(old=False) if bench.left_s > bench.took_s else []
        names: list[str] = []
        if not beside and found.runner.select:
            names = [ours.name]
            beside = [ours.beside]
        with canary_in_place(ours, root, bench.story.place.make_scratch() / CANARY):
            # Others are loaded first: they may forge.
            report = await self._report([*beside, ours.path], names)
        if report is None or any(ours.name in name for name in report.errors):
            crossed.untried += ("our own failing test could not be run",)
            crossed.canary = Canary.SILENT
        else:
            crossed.by_chance |= report.failed.keys() & end.passed.keys()
            crossed.canary = ours.seen(report)

    async def _exchanges(
        self, before: TestReport, end: TestReport, *, alone: bool
    ) -> CrosswiseRuns:
        """Each side as it was; what a test is blamed or believed for it does a second time."""
        crossed = CrosswiseRuns(old_tests=before)
        await self._try_old_tests(crossed, before, alone=alone)
        told = {OLD_TESTS: crossed.old_tests}
        if why := self._why_not_without_code():
            crossed.untried = (f"{NEW_TESTS} not tried: {why}",)
        else:
            await self._try_new_tests(crossed, before, end)
            if not crossed.is_left_to_mutants:
                told[NEW_TESTS] = crossed.new_tests
        crossed.untried += tuple(
            f"{what} could not be judged" for what, report in told.items() if not report
        )
        await self._blame_twice(crossed)
        return crossed

    def _why_not_without_code(self) -> str:
        """What of the code cannot be taken away and brought back; empty where all of it can."""
        sides = self.bench.sides
        return obstacle(self.bench.story.place.measure, sides.code, sides.tests)

    async def _try_old_tests(
        self, crossed: CrosswiseRuns, before: TestReport, *, alone: bool
    ) -> None:
        files = self.bench.sides.files(old=True) if alone else None
        is_known = files == [] or before == TestReport()
        if is_known:  # no test was there before: what they show is known
            return
        with exchanged(self.bench.story, OLD_TESTS, self.bench.old_tests()):
            crossed.old_tests = await self._report(files)
            crossed.is_unjudged = crossed.old_tests is None and self.bench.left_s > 0

    async def _try_new_tests(
        self, crossed: CrosswiseRuns, before: TestReport, end: TestReport
    ) -> None:
        files = self._concerned(before, end, crossed.old_tests)
        if files == []:
            crossed.new_tests = before
            return
        hollow = self.bench.hollow_code()
        if hollow is not None and self._are_old_tests_fine(crossed, before):
            crossed.is_left_to_mutants = True
            return
        with exchanged(self.bench.story, NEW_TESTS, hollow or self.bench.stubbed_code()):
            crossed.new_tests = await self._report(files)
            if hollow is not None and crossed.new_tests is not None:
                crossed.new_tests = _only_reaching(crossed.new_tests)
            names = proof.failing_without(end, crossed.new_tests) if crossed.new_tests else []
            # A story whose old tests object cannot be verified anyway.
            if names and not proof.concluded(self._runs(crossed)).old:
                again = await self._again(names)
                chance = (name for name in names if not again or name not in again.failed)
                crossed.by_chance = frozenset(chance)

    def _are_old_tests_fine(self, crossed: CrosswiseRuns, before: TestReport) -> bool:
        """Whether hollow code could tell nothing more: it proves nothing, and nobody is blamed."""
        tried = crossed.old_tests
        is_green = self.was.status is CheckStatus.PASSED and not before.failed
        return is_green and tried is not None and not proof.concluded(self._runs(crossed)).old

    async def _blame_twice(self, crossed: CrosswiseRuns) -> None:
        """Excuse the old tests that pass with the new code when they are run a second time."""
        judged = proof.concluded(self._runs(crossed)).old
        names = [one.name for one in judged if one.fate.is_challenged]
        if not names:
            return
        with exchanged(self.bench.story, OLD_TESTS, self.bench.old_tests()):
            again = await self._again(names)
        passed = again.passed if again else {}  # also as a row beside one that fails
        excused = (it for it in names if it in passed and not proof.is_failing(again, it))
        crossed.excused = frozenset(excused)

    def _concerned(
        self, before: TestReport, end: TestReport, tried: TestReport | None
    ) -> list[str] | None:
        """The files to run with the old code: changed ones, and where tests are new or fail."""
        bench = self.bench
        if not bench.can_be_told or bench.sides.mixed:
            return None
        failing = [name for name in before.passed if tried and proof.is_failing(tried, name)]
        files = [file_of(name) for name in failing]
        if not all(files):
            return None  # a runner that names no files: all of them
        files += [file_of(name) for name in end.passed if name not in before.passed]
        wanted = dict.fromkeys((*bench.sides.files(old=False), *filter(None, files)))
        return [name for name in wanted if (bench.story.place.root / name).is_file()]

    async def _again(self, names: list[str]) -> TestReport | None:
        """Just these tests once more, where the runner can be told."""
        files = [file_of(name) for name in names] if self.bench.can_be_told else [""]
        only = list(dict.fromkeys(files)) if all(files) else None
        return await self._report(only, names)

    async def _report(
        self, files: list[str] | None, names: list[str] | tuple[str, ...] = ()
    ) -> TestReport | None:
        result = await self.bench.run_tests(files, names)
        return result.report if result else None


def _module_of(path: str) -> str:
    """What a file is imported as, without the packages around it."""
    found = PurePosixPath(path)
    return found.parent.name if found.stem == "__init__" else found.stem


def _only_reaching(report: TestReport) -> TestReport:
    """The same, where every failure may come from a function in which nothing is yet."""
    said = {name: f"{MARK}: {report.said.get(name, '')}" for name in report.failed}
    return msgspec.structs.replace(report, said=report.said | said)
