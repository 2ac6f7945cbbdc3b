"""What a run of a check says test by test, and what may be concluded from it.

Names are the runner's own, with the file where it tells one (`tests/test_a.py::TestX::test_y`,
`src/sum.test.js > adds > small`).  The rows of a parameter table are folded into their function and
counted, because honest work renumbers their ids.

A story is tried crosswise: its code with the tests as they were shows what was weakened, its tests
with the code as it was show what it proves.  The `Trial` is all that is kept and graded.

A test that was red before has turned green where it runs and passes, also as it was: one that is
gone, skipped or made easier has not.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain

import msgspec

from ralphloop.core import Value, sentences
from ralphloop.core.mutation import Mutation
from ralphloop.text.plain import counted, some
from ralphloop.text.stubs import MARK

MOST_NAMES = 50
_TEST_DIRECTORIES = frozenset({"test", "tests", "__tests__", "spec"})
_TEST_MARKS = ("_test.", ".test.", ".spec.")


def is_test_path(path: str) -> bool:
    """Whether a path holds tests by its name; letter case is ignored, `Tests/` is common in C#."""
    *directories, name = path.lower().replace("\\", "/").rstrip("/").split("/")
    if not _TEST_DIRECTORIES.isdisjoint(directories) or name == "conftest.py":
        return True
    return name.startswith("test_") or any(mark in name for mark in _TEST_MARKS)


class TestCounts(Value, kw_only=True):
    """How many there were; None: the runner does not say."""

    __test__ = False  # pytest takes the name for a test class

    passed: int | None = None
    failed: int | None = None  # errors included
    skipped: int | None = None
    deselected: int | None = None


class TestReport(Value, kw_only=True):
    """Named results of one run of a check: how many rows of each test ended in that way."""

    __test__ = False

    passed: dict[str, int] = msgspec.field(default_factory=dict)
    failed: dict[str, int] = msgspec.field(default_factory=dict)  # inside a running test
    errors: dict[str, int] = msgspec.field(default_factory=dict)  # not imported, not set up
    skipped: dict[str, int] = msgspec.field(default_factory=dict)
    said: dict[str, str] = msgspec.field(default_factory=dict)  # first lines, of failing tests

    @property
    def counts(self) -> TestCounts:
        return TestCounts(
            passed=sum(self.passed.values()),
            failed=sum(self.failed.values()) + sum(self.errors.values()),
            skipped=sum(self.skipped.values()),
        )


class CheckStatus(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NO_TESTS = "no_tests"  # nothing was collected: neither red nor green


class CheckResult(Value, kw_only=True):
    name: str
    status: CheckStatus
    output_tail: str = ""
    duration_s: float = 0.0
    flaky: bool = False
    failing_tests: tuple[str, ...] = ()
    report: TestReport | None = None  # test by test, where the runner gives one; never journaled
    counts: TestCounts | None = None  # in numbers, as far as they are known
    behaved: bool = False  # at the baseline: a failing test of ours came out failed, and it as well
    why: str = ""  # it is red, as words behind its name; empty: it failed
    ran_nothing: bool = False  # a story's own command found no test to run, which is red
    needs_ignored: bool = False  # it is green only with files that git ignores

    @property
    def numbers(self) -> TestCounts:
        if self.report:
            return self.report.counts
        nothing = self.status is CheckStatus.NO_TESTS
        return TestCounts(passed=0) if nothing else self.counts or TestCounts()


class Fate(StrEnum):
    """What became of a test that was there before the story."""

    LOST = "lost"  # missing, skipped or with fewer rows, though nothing of the test side changed
    WEAKENED = "weakened"  # as it was it fails on the new code, as it is it passes on the old too
    REMOVED = "removed"  # as it was it fails on the new code, and it is no more
    SKIPPED = "skipped"  # as it was it fails on the new code, and it is not run any more
    UNSOLVED = "unsolved"  # it was red, and is gone or skipped
    CHANGED = "changed"  # another expectation: as it is it fails on the old code
    GONE = "gone"  # with the code it tested
    UNCLEAR = "unclear"  # nobody could find out which of these
    EARLIER = "earlier"  # as it was when the run began it fails on the new code, and on that alone

    @property
    def is_challenged(self) -> bool:
        """Put to the agent; the others are for a person to look at."""
        return self in (Fate.LOST, Fate.WEAKENED, Fate.REMOVED, Fate.SKIPPED, Fate.UNSOLVED)


_FATES: dict[Fate, Callable[[Sequence[str]], str]] = {  # in the order they are told
    Fate.LOST: sentences.lost,
    Fate.WEAKENED: sentences.weakened,
    Fate.REMOVED: sentences.removed,
    Fate.SKIPPED: sentences.skipped,
    Fate.UNSOLVED: sentences.unsolved,
    Fate.GONE: sentences.gone,
    Fate.UNCLEAR: sentences.unclear,
    Fate.EARLIER: sentences.earlier,
}


# What older versions said of these, and wrote down as put to an agent.
_FATES_BEFORE = {
    Fate.LOST: "no longer run in full, though no test file changed",
    Fate.WEAKENED: "as they were they fail on the new code, as they are they pass on the old too",
    Fate.REMOVED: "removed, and as they were they fail on the new code",
    Fate.SKIPPED: "skipped, and as they were they fail on the new code",
    Fate.UNSOLVED: "were red, and are gone or skipped instead of green",
}


class OldTest(Value, kw_only=True):
    """A test from before the story that, as it was, does not pass with the new code."""

    name: str
    fate: Fate
    was: str = ""  # what its old form says of the new code
    now: str = ""  # what its new form says of the old code


class Trial(Value, kw_only=True):
    """What came out of comparing and trying; small, so that a night can be decided again."""

    contradictions: tuple[str, ...] = ()  # why a check cannot be believed, in words
    old: tuple[OldTest, ...] = ()
    proven: tuple[str, ...] = ()  # fail without the story by what the code does, and pass here
    reached: tuple[str, ...] = ()  # the same, but only because something is missing there
    vacuous: tuple[str, ...] = ()  # new, and pass without the story's code too
    unloadable: tuple[str, ...] = ()  # new, and cannot even be loaded without it
    skipping: tuple[str, ...] = ()  # new, and skipped without it
    unseen: tuple[str, ...] = ()  # new, and nobody saw how they do without it
    idle: tuple[str, ...] = ()  # removed or cut, and would pass as they were
    moved: tuple[str, ...] = ()  # gone there and new here: the old form passes, the new one too
    needed: tuple[str, ...] = ()  # changed files that verify needs: an expectation, or the product
    needed_by_tests: tuple[str, ...] = ()  # the same, that tests need which were there before
    discounted: tuple[str, ...] = ()  # checks and tests whose turning green proves nothing here
    untried: tuple[str, ...] = ()  # what could not be tried or judged, in words
    unjudged: tuple[str, ...] = ()  # checks whose old tests ran with the new code and told nothing
    unsteady: tuple[str, ...] = ()  # old tests that fail with the new code, and not twice
    peeking: tuple[str, ...] = ()  # code of the story that looks at who judges it, in words
    mutation: Mutation = Mutation()  # what the tests notice where its code does something else
    took_s: float = 0.0

    @property
    def challenges(self) -> tuple[str, ...]:
        """What the agent has to answer for, in words that stay the same."""
        return tuple(_told(self.old, [fate for fate in _FATES if fate.is_challenged]))

    @property
    def challenges_before(self) -> tuple[str, ...]:
        """The same in the words of older versions, which may have put them to the agent."""
        by_fate = _by_fate(self.old)
        return tuple(
            f"{words}: {some(by_fate[fate])}"
            for fate, words in _FATES_BEFORE.items()
            if fate in by_fate
        )

    @property
    def look_at(self) -> tuple[str, ...]:
        """What a person should look at, with old and new values."""
        changed = (one for one in self.old if one.fate is Fate.CHANGED)
        found = (sentences.expects_otherwise(one.name, one.was, one.now) for one in changed)
        needed = (sentences.needed(self.needed),) if self.needed else ()
        if self.needed_by_tests:
            needed = (*needed, sentences.needed_by_tests(self.needed_by_tests))
        return (*found, *needed, *_told(self.old, (Fate.EARLIER, Fate.GONE, Fate.UNCLEAR)))

    @property
    def misses_nothing(self) -> bool:
        """Every test that passes was seen to pass without the story's code, too."""
        differing = (*self.proven, *self.reached, *self.unloadable, *self.skipping)
        return not (differing or self.unseen or self.untried)

    @property
    def unproving(self) -> tuple[str, ...]:
        """Why tests that came with the story prove nothing."""
        told = (
            (sentences.vacuous, self.vacuous),
            (sentences.moved, self.moved),
            (sentences.reached, self.reached),
            (sentences.unloadable, self.unloadable),
            (sentences.skipping, self.skipping),
            (sentences.unseen, self.unseen),
        )
        return tuple(say(names) for say, names in told if names)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is said in the report, and nothing else."""
        told = self
        if self.proven or self.mutation.is_proof:  # names missing or moved are then no news
            told = msgspec.structs.replace(self, reached=(), unloadable=(), moved=())
        idle = (sentences.idle(self.idle),) if self.idle else ()
        return (*told.unproving, *idle)

    def joined(self, other: "Trial") -> "Trial":
        """Both together: those of two checks, or of two ways to look."""
        apart = ("took_s", "mutation")
        names = (name for name in Trial.__struct_fields__ if name not in apart)
        both = {name: (*getattr(self, name), *getattr(other, name)) for name in names}
        kept = {name: tuple(dict.fromkeys(it))[:MOST_NAMES] for name, it in both.items()}
        mutation = self.mutation.joined(other.mutation)
        return Trial(**kept, mutation=mutation, took_s=self.took_s + other.took_s)


def _told(old: Iterable[OldTest], fates: Iterable[Fate]) -> Iterator[str]:
    by_fate = _by_fate(old)
    for fate in fates:
        if fate in by_fate:
            yield _FATES[fate](by_fate[fate])


def _by_fate(old: Iterable[OldTest]) -> dict[Fate, list[str]]:
    names: dict[Fate, list[str]] = {}
    for one in old:
        names.setdefault(one.fate, []).append(one.name)
    return names


class Runs(Value, kw_only=True):
    """One check before the story, after it, and crosswise; None: there are no names."""

    before: TestReport | None = None
    end: TestReport | None = None
    old_tests: TestReport | None = None  # with the new code
    new_tests: TestReport | None = None  # with the old code
    tests_changed: bool = False  # something of the test side differs
    only_removed: bool = False  # all that differs on the test side are files that are gone
    is_unsure: bool = False  # tests stand in code files too, or `before` is not quite the start
    flaky: frozenset[str] = frozenset()


def concluded(runs: Runs) -> Trial:
    before = runs.before
    end = runs.end
    if before is None or end is None:
        return Trial()
    lost = [name for name, rows in before.passed.items() if end.passed.get(name, 0) < rows]
    if not runs.tests_changed:
        fate = Fate.UNCLEAR if runs.is_unsure else Fate.LOST
        judged: dict[str, OldTest | None] = {n: OldTest(name=n, fate=fate) for n in lost}
    else:
        still_red = before.failed.keys() & end.failed.keys()
        failing = [
            name
            for name in before.passed
            if name not in still_red and is_failing(runs.old_tests, name)
        ]
        judged = {name: _judged(runs, end, name) for name in dict.fromkeys((*lost, *failing))}
        judged = _without_bystanders(judged, end) if runs.only_removed else judged
    red = {name: _since_red(runs, end, name) for name in _red_before(before, end, runs.old_tests)}
    found = (*judged.values(), *red.values())
    over = [*lost, *(name for name in red if name not in end.passed and not is_failing(end, name))]
    trial = Trial(
        old=tuple(one for one in found if one is not None)[:MOST_NAMES],
        idle=tuple(name for name in over if (judged | red)[name] is None)[:MOST_NAMES],
    )
    if (crossed := runs.new_tests) is None:
        return trial
    return _known_again(trial.joined(_without_the_code(before, end, crossed, runs.flaky)))


def _without_bystanders(
    judged: Mapping[str, OldTest | None], end: TestReport
) -> dict[str, OldTest | None]:
    """The same, where files went that cannot be compiled any more, and others with them.

    What passes at the end stands in a file that nobody touched.  A test that is gone is told.
    """
    if not any(one is not None and one.fate is Fate.GONE for one in judged.values()):
        return dict(judged)
    return {
        name: None if one and one.fate is Fate.UNCLEAR and name in end.passed else one
        for name, one in judged.items()
    }


def _known_again(trial: Trial) -> Trial:
    """The same, where tests of one name that went in one place and came in another have moved."""
    gone = {sentences.short_name(name) for name in trial.idle}
    moved = tuple(name for name in trial.vacuous if sentences.short_name(name) in gone)
    if not moved:
        return trial
    names = {sentences.short_name(name) for name in moved}
    return msgspec.structs.replace(
        trial,
        moved=moved,
        vacuous=tuple(name for name in trial.vacuous if name not in moved),
        idle=tuple(name for name in trial.idle if sentences.short_name(name) not in names),
    )


def _without_the_code(
    before: TestReport, end: TestReport, crossed: TestReport, flaky: frozenset[str]
) -> Trial:
    """What the tests that pass now do without the story's code."""
    had = {*before.passed, *before.failed, *before.errors, *before.skipped}
    new = [name for name in end.passed if name not in had]
    proven = [name for name in failing_without(end, crossed) if name not in flaky]
    reached = [name for name in _only_reaching(end, crossed) if name not in flaky]
    vacuous = [name for name in new if name in crossed.passed and name not in crossed.failed]
    known = {*proven, *reached, *vacuous, *flaky, *crossed.skipped}
    rest = [name for name in new if name not in known]
    unloadable = [name for name in rest if is_failing(crossed, name)]
    return Trial(
        proven=tuple(proven),
        reached=tuple(reached),
        vacuous=tuple(vacuous),
        unloadable=tuple(unloadable),
        skipping=tuple(name for name in new if name in crossed.skipped),
        unseen=tuple(name for name in rest if name not in unloadable),
    )


def _red_before(before: TestReport, end: TestReport, tried: TestReport | None) -> list[str]:
    """Tests that did not pass before; of a file that could not be loaded, those that it holds."""
    # What names no place in a file is a fixture, which is told of only where it fails.
    broken = tuple(name for name in before.errors if "(" not in name)
    if not broken:
        return [name for name in before.failed if name not in before.passed]
    at_the_end = list(_told_names(end))
    told = (*at_the_end, *(_told_names(tried) if tried else ()))
    loaded = {it for it in broken if any(it != one and one.startswith(it) for one in at_the_end)}
    found = dict.fromkeys((*before.failed, *(name for name in told if name.startswith(broken))))
    return [name for name in found if name not in before.passed and name not in loaded]


def _told_names(report: TestReport) -> Iterator[str]:
    return chain(report.passed, report.failed, report.errors, report.skipped)


def _since_red(runs: Runs, end: TestReport, name: str) -> OldTest | None:
    """What became of a test that was red; None where it is green as it was, or as red as it was."""
    tried = runs.old_tests if runs.tests_changed else end
    if is_failing(end, name) or (tried is not None and _passes(tried, name)):
        return None
    if name in end.passed:
        return _judged(runs, end, name) if is_failing(tried, name) else None
    return OldTest(name=name, fate=Fate.UNCLEAR if runs.is_unsure else Fate.UNSOLVED)


def _passes(report: TestReport, name: str) -> bool:
    return name in report.passed and not is_failing(report, name)


def failing_without(end: TestReport, crossed: TestReport) -> list[str]:
    """Tests that pass with the story's code and fail without it by what the code does."""
    return [name for name in _failing(end, crossed) if not _says(_MISSING, crossed, name)]


def _only_reaching(end: TestReport, crossed: TestReport) -> list[str]:
    """Tests that pass with the story's code and cannot be carried out without it."""
    broken = [name for name in end.passed if name in crossed.errors and name not in end.failed]
    failing = [*_failing(end, crossed), *broken]
    return [name for name in failing if _says(_MISSING, crossed, name)]


def _failing(end: TestReport, crossed: TestReport) -> list[str]:
    return [name for name in end.passed if name in crossed.failed and name not in end.failed]


def _judged(runs: Runs, end: TestReport, name: str) -> OldTest | None:
    """What became of one old test; None where its old form passes on the new code."""
    tried = runs.old_tests
    crossed = runs.new_tests or TestReport()
    if tried is None:
        return OldTest(name=name, fate=Fate.UNCLEAR)
    if (not is_failing(tried, name) and name in tried.passed) or name in runs.flaky:
        return None
    has_run = name in tried.failed
    is_over = name not in end.passed
    is_moot = not has_run or _says(_ABSENT, tried, name)
    if is_moot and is_over:
        fate = Fate.GONE if has_run or is_failing(tried, name) else Fate.UNCLEAR
    elif is_over:
        fate = Fate.SKIPPED if name in end.skipped else Fate.REMOVED
    elif has_run and name in crossed.failed:
        fate = Fate.CHANGED
    else:
        fate = Fate.WEAKENED if not is_moot and name in crossed.passed else Fate.UNCLEAR
    was, now = (report.said.get(name, "") for report in (tried, crossed))
    return OldTest(name=name, fate=fate, was=was, now=now)


def is_failing(report: TestReport | None, name: str) -> bool:
    """It failed, or what it stands in could not be loaded."""
    if report is None or (name in report.passed and name not in report.failed):
        return False
    return name in report.failed or name.startswith(tuple(report.errors))


_IMPORT = (
    r"^(?:E +)?(?:\w+\.)*(?:ImportError|ModuleNotFoundError|SyntaxError)\b|Cannot find module"
    r"|Failed to (?:load|resolve)|does not provide an export"
)
_ABSENT = (
    f"{_IMPORT}|^(?:E +)?(?:AttributeError: (?!'NoneType')|NameError:)"
    "|is not (?:a function|a constructor|defined)"
)
# The same of a test that could not be carried out because something is not there yet: a parameter,
# an option, a stub of ours in the place of a name.
_MISSING = (
    f"{_ABSENT}|^(?:E +)?(?:NotImplementedError|SystemExit)|{re.escape(MARK)}"
    r"|unexpected keyword argument|takes (?:no|\d+|from \d+ to \d+) (?:positional )?argument"
    "|to be (?:defined|a function)|toBeDefined"
)


def _says(pattern: str, report: TestReport, name: str) -> bool:
    """Its failure reads like this; one without words says nothing of the kind."""
    return re.search(pattern, report.said.get(name, "")) is not None


class OwnCommand(Value, kw_only=True):
    """A story's own command that was red and is green, and what it shows with one side as it was.

    It is run as a whole: what its exit code says counts, whether it names tests or not.
    """

    command: str
    red: TestReport = TestReport()  # the tests that did not pass before, by name
    end: TestReport | None = None
    tests_changed: bool = False  # something of the test side differs
    had_changed: bool = False  # and that was there before
    is_unsure: bool = False  # tests stand in code files too
    old_tests: CheckResult | None = None  # with the new code; None: it was not tried
    new_tests: CheckResult | None = None  # with the old code
    by_chance: frozenset[str] = frozenset()  # tests that do not fail there a second time
    settings_changed: bool = False  # of its runner, which may tell old code from new
    changed: tuple[str, ...] = ()  # files that judge and are not as they were
    nothing_changed: bool = False  # of the product
    needed: tuple[
        str, ...
    ] = ()  # changed files that it needs, and nobody knows whose word they are


def new_tests_of(
    end: TestReport, new: CheckResult | None, by_chance: frozenset[str], *, settings: bool
) -> Trial:
    """What tests are worth that came with the story and stand in no check.

    `new` is the command with the old code; `settings`: those of its runner changed as well.
    """
    if new is None or new.report is None:
        return Trial(unseen=tuple(end.passed)[:MOST_NAMES])
    found = _without_the_code(TestReport(), end, new.report, by_chance)
    return msgspec.structs.replace(found, proven=(), reached=()) if settings else found


def own_command(own: OwnCommand, name: str) -> Trial:
    """Whether turning green proves the story: only if it is green with the tests as they were, and
    every test that was red has run and passed.  `name` is the command's among the checks.

    Tests that came with the story prove it like any others: by failing without its code.
    """
    old = own.old_tests
    new = own.new_tests
    tried = old.report if old else None
    # Whatever ran with the old tests was there before, also if nobody could name it then.
    had = msgspec.structs.replace(own.red, failed=own.red.failed | (tried.failed if tried else {}))
    runs = Runs(
        before=had,
        end=own.end,
        old_tests=tried,
        new_tests=new.report if new else None,
        tests_changed=own.tests_changed,
        is_unsure=own.is_unsure,
    )
    named = concluded(runs)
    is_green = not own.tests_changed or (old is not None and old.status is CheckStatus.PASSED)
    found = named.old
    if not (is_green or found or (tried and own.end)) and old and not old.ran_nothing:
        found = _unnamed(own) if own.had_changed else ()
    if is_green and not found and not named.idle:
        return _green_both_ways(own, name)
    why = "" if is_green or found or old is None else "verify is red with the tests as they were"
    is_moot = is_green or bool(found) or own.settings_changed
    proven = () if is_moot else named.proven
    return Trial(
        old=found,
        idle=named.idle,
        discounted=(name,),
        proven=tuple(it for it in proven if it not in own.by_chance),
        reached=() if is_moot else named.reached,
        untried=tuple(filter(None, [why])),
    )


def _green_both_ways(own: OwnCommand, name: str) -> Trial:
    """Of a command that is green with all that judges as it was: does it need the story?"""
    new = own.new_tests
    if own.nothing_changed or (new is not None and new.status is CheckStatus.PASSED):
        return Trial(discounted=(name,), untried=(sentences.VERIFY_GREEN_WITHOUT,))
    if own.needed:
        return Trial(discounted=(name,), needed=own.needed)
    return Trial()


def _unnamed(own: OwnCommand) -> tuple[OldTest, ...]:
    """The command itself in place of the tests that it does not name."""
    if own.new_tests is None:
        fate = Fate.UNCLEAR
    else:
        is_easier = own.new_tests.status is CheckStatus.PASSED
        fate = Fate.WEAKENED if is_easier else Fate.CHANGED
    files = f" ({some(own.changed, 3)})" if own.changed else ""
    was = _last_line(own.old_tests.output_tail) if own.old_tests else ""
    return (OldTest(name=f"`{own.command}`{files}", fate=fate, was=was),)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


class Canary(StrEnum):
    """How our own failing test came out."""

    UNTRIED = ""
    FAILED = "failed"  # as it must
    PASSED = "passed"
    ABSENT = "absent"
    SILENT = "silent"  # its run told nothing


def disbelief(before: CheckResult, now: CheckResult, *, behaved: bool, canary: Canary) -> Trial:
    """Why a green check is no evidence; `behaved`: at the baseline our failing test came out
    failed, and the command did not end well."""
    check = now.name
    found = []
    was = before.numbers
    numbers = now.numbers
    is_green = now.status is CheckStatus.PASSED
    if before.report is not None and now.report is None:
        found.append(f"{check} is green, but wrote no results, which it did before")
    # Without the canary's word, a check that was green with failures before means nothing by it.
    was_green = before.status is CheckStatus.PASSED
    is_used_to_it = not behaved and was_green and bool(was.failed)
    if is_green and numbers.failed and not is_used_to_it:
        failed = sorted((now.report.failed | now.report.errors) if now.report else ())
        named = f": {some(failed)}" if failed else ""
        words = f"{counted(numbers.failed, 'test')} failed, and yet {check} ended well{named}"
        found.append(words)
    is_named = before.report is not None and now.report is not None
    if was.passed and numbers.passed == 0 and not numbers.failed and not is_named:
        found.append(f"no test passed in {check}, {was.passed} did before")
    if behaved and canary in (Canary.PASSED, Canary.ABSENT):
        passed = f"passed: what {check} says of its tests cannot be believed"
        how = passed if canary is Canary.PASSED else f"was left out: {check} does not run all tests"
        found.append(f"a test of ours that must fail {how}")
    return Trial(contradictions=tuple(found))


def fewer(before: CheckResult, now: CheckResult, *, tests_changed: bool) -> Trial:
    """Without names: whether fewer tests passed than before, and what may account for it."""
    was = before.numbers
    numbers = now.numbers
    if (before.report and now.report) or not was.passed or not numbers.passed:
        return Trial()
    left_out = (numbers.deselected or 0) > (was.deselected or 0)
    if numbers.passed >= was.passed and not left_out:
        return Trial()
    fate = Fate.UNCLEAR if tests_changed and not left_out else Fate.LOST
    name = f"{numbers.passed} tests of {now.name} passed, {was.passed} before"
    return Trial(old=(OldTest(name=name, fate=fate),))
