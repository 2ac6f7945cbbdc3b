"""What a story finds: the tree that stands without it, and what the checks showed there.

"Old" and "before" mean: without the story's own changes, on top of everything that landed since it
began.  A story that asked, was set aside or was cut short finds what others did meanwhile, and none
of that is its own; what it did itself in an earlier start still is.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ralphloop.core.interventions import OthersWorked
from ralphloop.core.model import CheckResult, CheckStatus, Value
from ralphloop.core.proof import TestReport
from ralphloop.journal.queries import REPORTS_KEY, RESULTS_KEY
from ralphloop.journal.records import KnownResults
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace
from ralphloop.repo.snapshot import Snapshotter

_MOST_KEPT = 8  # passed stories whose results are kept, beside the baseline
_LOOKED_BACK = 20  # iterations, of a run that an older version began


def move_base(run: Run, workspace: Workspace, story: str) -> None:
    """Take what others changed since the story's last start for what stands without it."""
    state = run.session.story(story)
    if not (state.base.start_tree and state.base.left_tree):
        return  # it has not begun, or nobody knows how it left the work tree
    now = workspace.tree()
    if now.tree == state.base.left_tree:
        return
    from ralphloop.repo.story_change import tree_without  # few stories are interrupted

    base = tree_without(workspace.measure, state.base.start_tree, state.base.left_tree, now.tree)
    moved = OthersWorked(story=story, tree=base, head=now.head or "", left=now.tree)
    run.intervene(moved)


class Before(Value, kw_only=True):
    """The results of the checks in the tree that a story is compared with."""

    results: dict[str, CheckResult]
    is_exact: bool  # False: they ran in another tree, the newest one there is

    def of(self, check: str) -> CheckResult:
        nobody_knows = CheckResult(name=check, status=CheckStatus.PASSED)
        return self.results.get(check, nobody_knows)


def comparable(was: CheckResult, now: CheckResult) -> CheckResult:
    """What a check showed before, with names as far as it names tests now.

    Where it found no test, it has named all of them: those that come are new.
    """
    found_none = was.status is CheckStatus.NO_TESTS and was.report is None
    if found_none and now.report is not None:
        return replace(was, report=TestReport())
    return was


def results_before(run: Run, workspace: Workspace, tree: str) -> Before:
    """What the checks showed in this tree, else in the newest one in which they were green."""
    known = workspace.known_results(run) or [_as_older_versions_kept_it(run)]
    first = {result.name: result for result in known[-1].checks}
    newest = known[0]
    exact = next((one for one in known if tree in one.trees), None)
    if exact is None and any(_is_same(workspace.measure, one, tree) for one in newest.trees):
        exact = newest
    if exact is not None:
        return Before(results=first | _by_name(exact.checks), is_exact=True)
    # How many passed elsewhere says nothing about how many should pass here.
    elsewhere = [replace(result, counts=None) for result in newest.checks]
    return Before(results=first | _by_name(elsewhere), is_exact=False)


def _by_name(results: Sequence[CheckResult]) -> dict[str, CheckResult]:
    return {result.name: result for result in results}


def _is_same(measure: Snapshotter, one: str, other: str) -> bool:
    """Whether two trees hold the same, as far as contents are kept at all."""
    if not (measure.has(one) and measure.has(other)):
        return False
    changes = measure.changes(one, other)
    names = {name for it in changes for name in (it.before, it.after) if name}
    kept = measure.kept(names)
    return not any(kept.issuperset(filter(None, (it.before, it.after))) for it in changes)


def _as_older_versions_kept_it(run: Run) -> KnownResults:
    """The baseline, or the newest passed story's results; only of those the names were kept."""
    baseline = run.session.baseline
    newest = run.journal.latest_iterations(run.id, _LOOKED_BACK)
    passed = next((it for it in newest if it.record.verdict.passed), None)
    reports = run.journal.reports(run.id)
    found = _by_name((*baseline.results, *(passed.checks if passed else ())))
    return KnownResults(
        trees=(passed.end_tree if passed else baseline.start_tree,),
        checks=tuple(replace(it, report=reports.get(it.name)) for it in found.values()),
    )


def results_to_keep(
    run: Run, number: int, checks: Sequence[CheckResult], trees: Sequence[str]
) -> Mapping[str, object]:
    """What is to be written down of green checks, by key: the next stories are compared with it.

    The number is that of the iteration, 0 for the baseline.
    """
    return dict(_kept(run, number, checks, trees))


def _kept(
    run: Run, number: int, checks: Sequence[CheckResult], trees: Sequence[str]
) -> Iterator[tuple[str, object]]:
    newest = KnownResults(
        number=number,
        trees=tuple(dict.fromkeys(filter(None, trees))),
        checks=tuple(replace(result, output_tail="") for result in checks),
    )
    yield RESULTS_KEY.format(run.id, number), newest
    reports = {result.name: result.report for result in checks if result.report is not None}
    yield REPORTS_KEY.format(run.id), run.journal.reports(run.id) | reports
    older = [one.number for one in run.journal.known_results(run.id) if one.number]
    for gone in older[_MOST_KEPT - 1 :]:
        yield RESULTS_KEY.format(run.id, gone), None
