"""What one attempt leaves for the next."""

from __future__ import annotations

from ralphloop.core.handover import criteria_met, failing_tests, sharing_files
from ralphloop.core.model import CheckResult, CheckStatus, Story
from ralphloop.core.proof import TestReport
from ralphloop.core.run_state import StoryNotes, StoryState

STORY = Story(
    id="US-1",
    title="Sizes",
    index=0,
    criteria=(
        "A sign is allowed (seen: test_sign in tests/test_size.py passes)",
        "Rubbish is refused (seen: test_rubbish)",
        "The help says so",
        "The command works (seen: python -m sizes -1K)",
    ),
    verify=("python", "-m", "sizes", "-1K"),
)


def check(**changes: object) -> CheckResult:
    """A red run in which one of two named tests passed."""
    report = TestReport(
        passed={"tests/test_size.py::test_sign[1]": 2}, failed={"tests.test_size.test_rubbish": 1}
    )
    result = CheckResult(
        name="pytest",
        status=CheckStatus.FAILED,
        failing_tests=("tests.test_size.test_rubbish",),
        report=report,
    )
    return CheckResult(**{**{f: getattr(result, f) for f in result.__struct_fields__}, **changes})


def test_a_criterion_is_met_by_the_test_it_names() -> None:
    """A named test that passed says so; a red one, and no test at all, say nothing."""
    assert criteria_met(STORY, [check()]) == (1,)
    assert criteria_met(STORY, [check(report=None)]) == ()


def test_a_criterion_is_met_by_the_storys_own_command() -> None:
    """The command that it names as its proof, green, is its proof."""
    green = CheckResult(name="verify", status=CheckStatus.PASSED)
    assert criteria_met(STORY, [green]) == (4,)


def test_failing_tests_are_named_once() -> None:
    """Two checks that run the same test name it once; green ones name none."""
    assert failing_tests([check(), check()]) == ("tests.test_size.test_rubbish",)
    assert failing_tests([check(status=CheckStatus.PASSED)]) == ()


def changed(*files: str) -> StoryState:
    """A story whose starts changed these files."""
    return StoryState(notes=StoryNotes(changed=files))


def test_stories_share_files_that_say_something() -> None:
    """What nearly every story changes brings none of them together."""
    states = {
        "A": changed("src/a.py", "CHANGELOG.md"),
        "B": changed("src/b.py", "CHANGELOG.md"),
        "C": changed("src/c.py", "CHANGELOG.md"),
        "ME": changed("src/a.py"),
    }
    assert sharing_files(states, "ME", {"src/a.py", "CHANGELOG.md"}) == {"A"}
    assert sharing_files(states, "ME", {"CHANGELOG.md"}) == frozenset()
