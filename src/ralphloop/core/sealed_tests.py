"""What sealed tests say of a story: by name alone, because nobody else may read them.

A sealed test of the story has to be green.  One that was green before and is red now speaks against
whatever story is judged.  Others that are red were red before: they are for stories to come.
"""

from collections.abc import Collection, Iterable

from ralphloop.core import Value
from ralphloop.core.proof import CheckResult, CheckStatus, TestReport
from ralphloop.core.sentences import short_name
from ralphloop.text.plain import counted, some

SEALED = "sealed tests"  # the name of the check
_MOST_NAMED = 10


class SealedRun(Value, kw_only=True):
    """One run of everything that is sealed."""

    report: TestReport | None = None  # None: no runner named a test
    is_green: bool = True  # what ran ended well
    output: str = ""
    duration_s: float = 0.0


class SealedVerdict(Value, kw_only=True):
    result: CheckResult
    turned_green: tuple[str, ...] = ()  # were red, and are green: that proves the story


def judge_sealed(
    now: SealedRun,
    before: CheckResult | None,
    own_files: Collection[str],
    *,
    shows_output: bool = False,
) -> SealedVerdict:
    """What the sealed tests say of a story; `own_files` are those sealed for it.

    `before` is what they showed without the story, where anybody knows.
    """
    if now.report is None:
        return SealedVerdict(result=_without_names(now, own_files, shows_output=shows_output))
    was = before.report if before else None
    failing = [*now.report.failed, *now.report.errors]
    against = [name for name in failing if _speaks_against(name, was, own_files)]
    told = some([short_name(name) for name in against], _MOST_NAMED)
    total = len({*now.report.passed, *failing})
    words = f"fail: {len(against)} of {counted(total, 'sealed test')} ({told})" if against else ""
    result = CheckResult(
        name=SEALED,
        status=CheckStatus.FAILED if against else CheckStatus.PASSED,
        output_tail=now.output if shows_output and against else _names_only(words),
        duration_s=now.duration_s,
        failing_tests=tuple(short_name(name) for name in against),
        report=_without_words(now.report),
        why=words,
    )
    return SealedVerdict(result=result, turned_green=tuple(_turned_green(was, now.report)))


def _speaks_against(name: str, was: TestReport | None, own_files: Collection[str]) -> bool:
    """Whether a red sealed test is this story's business."""
    is_own = any(name.startswith(path) for path in own_files)
    was_green = was is not None and name in was.passed
    return is_own or was_green


def _turned_green(was: TestReport | None, now: TestReport) -> Iterable[str]:
    """Those that did not pass before and do now."""
    if was is None:
        return
    for name in now.passed:
        if name not in was.passed and name not in now.failed:
            yield as_sealed(name)


def _without_names(
    now: SealedRun, own_files: Collection[str], *, shows_output: bool
) -> CheckResult:
    """The same where only the exit code tells: red counts where something is sealed for it."""
    is_red = bool(own_files) and not now.is_green
    words = "fail" if is_red else ""
    return CheckResult(
        name=SEALED,
        status=CheckStatus.FAILED if is_red else CheckStatus.PASSED,
        output_tail=now.output if shows_output and is_red else _names_only(words),
        duration_s=now.duration_s,
        why=words,
    )


def _names_only(words: str) -> str:
    """What an agent is told of red sealed tests."""
    if not words:
        return ""
    return f"Sealed tests {words}. You cannot read them; the criteria say what they ask for.\n"


def _without_words(report: TestReport) -> TestReport:
    """The same without what failing tests said."""
    return TestReport(
        passed=report.passed, failed=report.failed, errors=report.errors, skipped=report.skipped
    )


def as_sealed(name: str) -> str:
    """A sealed test as people are told of it."""
    return f"sealed {short_name(name)}"
