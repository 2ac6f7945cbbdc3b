"""One iteration weighed: where claim and evidence speak of different worlds."""

from __future__ import annotations

import msgspec
import pytest

from ralphloop.core.analyzer import analyze, hear
from ralphloop.core.iteration import Result
from ralphloop.core.model import Analysis, CheckResult, CheckStatus, Evidence, Outcome, Response
from ralphloop.core.progress import Memory, assess
from ralphloop.text.status_block import StatusBlock, TestsStatus


def weighed(claimed: int | None, measured: int | None) -> Analysis:
    """The analysis of an answer that reports so many files, where so many changed."""
    return analysis(StatusBlock(files_modified=claimed), Evidence(files_changed=measured))


def analysis(block: StatusBlock | None, evidence: Evidence) -> Analysis:
    """The analysis of an answer with this block."""
    response = Response(
        reader="text", outcome=Outcome.COMPLETED, reason="", status=block, final_text="Worked."
    )
    said = hear(Result(response=response), evidence)
    return analyze(said, response, evidence, assess(evidence, block, Memory()), iteration=1)


@pytest.mark.parametrize(
    "claimed, measured",
    [(1, 0), (0, 1), (5, 1), (7, 2), (23, 10), (1_000, 1)],
    ids=str,
)
def test_a_count_of_another_world_is_told(claimed: int, measured: int) -> None:
    """All instead of nothing, nothing instead of something, or twice as much and three more."""
    found = weighed(claimed, measured)
    words = f"files: the agent reports {claimed} modified, {measured} changed"
    assert words in found.warnings
    assert found.confidence < weighed(measured, measured).confidence


@pytest.mark.parametrize(
    "claimed, measured",
    [(0, 0), (1, 1), (4, 1), (6, 2), (22, 10), (1, 9), (None, 3), (3, None), (None, None)],
    ids=str,
)
def test_another_way_of_counting_is_not_told(claimed: int | None, measured: int | None) -> None:
    """A few more than were measured, fewer, or a number nobody gave are no contradiction."""
    assert not [words for words in weighed(claimed, measured).warnings if "files:" in words]


@pytest.mark.parametrize("flaw", [{"problems": ("STATUS is unknown",)}, {"truncated": True}])
def test_a_flawed_block_is_trusted_less(flaw: dict[str, object]) -> None:
    """A block with problems or without its end is worth more than none and less than a whole."""
    none, flawed, whole = (
        analysis(block, Evidence()).confidence
        for block in (None, msgspec.structs.replace(StatusBlock(), **flaw), StatusBlock())
    )
    assert none < flawed < whole


RED = (CheckResult(name="tests", status=CheckStatus.FAILED),)


def test_what_was_measured_is_trusted_more() -> None:
    """Counted files and checks that ran, one by one."""
    block = StatusBlock(files_modified=1)
    measured = (Evidence(), Evidence(files_changed=1), Evidence(files_changed=1, checks=RED))
    nothing, files, both = (analysis(block, evidence).confidence for evidence in measured)
    assert nothing < files < both


def test_who_calls_red_tests_passing_is_trusted_less() -> None:
    """Than one who says that they fail; that something fails is no reason by itself."""
    honest, wrong = (
        analysis(StatusBlock(tests_status=told), Evidence(checks=RED)).confidence
        for told in (TestsStatus.FAILING, TestsStatus.PASSING)
    )
    assert wrong < honest
    green = (CheckResult(name="tests", status=CheckStatus.PASSED),)
    passing = StatusBlock(tests_status=TestsStatus.PASSING)
    assert analysis(passing, Evidence(checks=green)).confidence == honest


def test_only_changed_paths_that_all_hold_tests_are_work_on_tests() -> None:
    """One other path among them is work on the product, and no path at all says nothing."""
    for files, told in (
        ((), False),
        (("tests/a.py", "b_test.go"), True),
        (("tests/a.py", "src/b.py"), False),
    ):
        assert analysis(StatusBlock(), Evidence(work_files=files)).test_only is told
