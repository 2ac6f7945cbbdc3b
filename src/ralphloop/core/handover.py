"""What one attempt leaves for the next: which criteria were seen as met, who shares files.

Nothing is decided by it.  A criterion is seen as met where it names tests and every one of them
passed by name, or where it names the story's own command and that is green; of all others nobody
knows anything.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from ralphloop.core.grading import VERIFY
from ralphloop.core.model import CheckResult, CheckStatus, Story
from ralphloop.core.run_state import StoryState
from ralphloop.text.plain import LazyRegex

MOST_FAILING = 20
MOST_CHANGED = 60
_EVERYBODYS = 3  # stories that changed a file, from which on it may say nothing
# By itself or at the end of its id; `test_size.py` is a file.
_TEST_NAME = LazyRegex(r"(?<![/\w])(?:test_\w{1,100}|Test[A-Z]\w{1,100})(?!\w|\.\w)")


def failing_tests(checks: Iterable[CheckResult]) -> tuple[str, ...]:
    """The tests that failed, by name, not too many."""
    failed = (check for check in checks if check.status is CheckStatus.FAILED)
    names = dict.fromkeys(name for check in failed for name in check.failing_tests)
    return tuple(names)[:MOST_FAILING]


def criteria_met(story: Story, checks: Sequence[CheckResult]) -> tuple[int, ...]:
    """The numbers, from 1 on, of criteria that were seen as met when the checks ran."""
    passed = set[str]()
    red = set[str]()
    for check in checks:
        if check.report is None:
            continue
        passed |= _last_words(check.report.passed)
        red |= _last_words(check.report.failed) | _last_words(check.report.errors)
        red |= _last_words(check.report.skipped)
    command = " ".join(story.verify or ())
    is_green = any(it.name == VERIFY and it.status is CheckStatus.PASSED for it in checks)
    met = list[int]()
    for number, criterion in enumerate(story.criteria, 1):
        named = set(_TEST_NAME.findall(criterion))
        by_tests = bool(named) and named <= passed - red
        by_command = is_green and bool(command) and command in criterion
        if by_tests or by_command:
            met.append(number)
    return tuple(met)


def _last_words(names: Iterable[str]) -> set[str]:
    """Names of tests without where they are: `tests/test_a.py::TestB::test_c` → `test_c`."""
    return {name.replace("::", ".").partition("[")[0].rpartition(".")[2] for name in names}


def sharing_files(
    states: Mapping[str, StoryState], story: str, files: Collection[str]
) -> frozenset[str]:
    """The other stories that changed one of these files; what nearly all change says nothing."""
    others = {name: set(state.notes.changed) for name, state in states.items() if name != story}
    changed = {name: paths for name, paths in others.items() if paths}
    by = Counter(path for paths in changed.values() for path in paths)
    most = max(_EVERYBODYS, len(changed) / 2)
    telling = {path for path in files if by[path] < most}
    return frozenset(name for name, paths in changed.items() if paths & telling)
