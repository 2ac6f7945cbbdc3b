"""What earlier stories of a run did to its tests, and a later one makes use of.

A story that empties a test breaks nothing by it, and one that breaks what this test watched has
changed no test.  So the tests run once more as they were when the run first started, where other
stories changed them since.  Who fails there with the story's code, and not without it, was made
easier before it was needed.
"""

from ralphloop.core.proof import Fate, OldTest, TestReport, Trial, is_failing
from ralphloop.loop.bench import Bench
from ralphloop.loop.exchanging import Impossible, OldSide, exchanged
from ralphloop.repo.experiment import is_test_file

FIRST_TESTS = "the tests as they were when the run began"
FIRST_TESTS_WITHOUT = f"{FIRST_TESTS}, without the story"


async def try_first_tests(bench: Bench) -> Trial:
    """Tests that only stay green because an earlier story changed them."""
    end = bench.now.report
    if end is None or bench.found is None or not bench.sides.code:
        return Trial()
    first = bench.first_tests()
    if first is None:
        return Trial()
    try:
        return await _compared(bench, first, end)
    except Impossible as why:
        untried = f"not tried with the tests as they were when the run began: {why}"
        return Trial(untried=(untried,) if str(why) else ())


async def _compared(bench: Bench, first: OldSide, end: TestReport) -> Trial:
    without = _with_old_code(bench, first)
    bench.begin(alone=False, exchanged=without.changes)
    files = _files(bench, first)
    failing = await _failing(bench, FIRST_TESTS, first, files)
    broken = [name for name in failing if not is_failing(end, name)]
    if not broken:
        return Trial()
    with exchanged(bench.story, FIRST_TESTS_WITHOUT, without):
        before = await bench.run_tests(files)
    fine = before.report.passed if before and before.report else {}
    broken = [name for name in broken if name in fine]
    again = await _failing(bench, FIRST_TESTS, first, files) if broken else {}
    return Trial(
        old=tuple(
            OldTest(name=name, fate=Fate.EARLIER, was=again[name])
            for name in broken
            if name in again
        )
    )


async def _failing(
    bench: Bench, what: str, side: OldSide, files: list[str] | None
) -> dict[str, str]:
    """What fails in a running test, and its words."""
    with exchanged(bench.story, what, side):
        result = await bench.run_tests(files)
    report = result.report if result else None
    return {name: report.said.get(name, "") for name in report.failed} if report else {}


def _with_old_code(bench: Bench, first: OldSide) -> OldSide:
    """The same, with the product as it was without the story."""
    story = bench.story
    paths = {change.path for change in (*first.changes, *bench.sides.code)}
    changes = story.place.measure.changes(first.tree, story.end.tree)
    return OldSide(changes=tuple(it for it in changes if it.path in paths), tree=first.tree)


def _files(bench: Bench, first: OldSide) -> list[str] | None:
    """The files to run: those that are as they were, or all where settings differ."""
    prefix = bench.sides.prefix
    paths = [change.path.removeprefix(prefix) for change in first.changes]
    is_telling = bench.can_be_told and all(is_test_file(path) for path in paths)
    return paths if is_telling else None
