"""One iteration weighed: what the agent claims against what was measured.

Nothing here decides; it states facts, each with the side it came from.  Facts come from evidence
where there is any and from the claim where there is none; unknown is not a fact.
"""

from msgspec.structs import replace

from ralphloop.core.iteration import Result
from ralphloop.core.model import (
    Analysis,
    CheckStatus,
    Evidence,
    Indicators,
    Outcome,
    ProcessEnd,
    Response,
)
from ralphloop.core.progress import Progress, failed_checks
from ralphloop.text import claims
from ralphloop.text.plain import counted, one_line
from ralphloop.text.signatures import error_signature
from ralphloop.text.status_block import Status, StatusBlock, TestsStatus, WorkType
from ralphloop.text.test_paths import only_tests


def hear(result: Result, evidence: Evidence) -> Analysis:
    """How a start ended and what the agent says it has done, before anything is believed."""
    response = result.heard
    block, words = response.status, final_words(response)
    outcome = settle(response, result.end, evidence)
    says_so = evidence.passes_set or claims.has_promise(words)
    if block is None:
        says_so = says_so or claims.claims_completion(words) is not None
    elif block.status is not Status.BLOCKED:
        says_so = says_so or block.status is Status.COMPLETE or (block.tasks_completed or 0) >= 1
    return Analysis(
        outcome=outcome,
        status=block,
        exit_signal=bool(block and block.exit_signal and response.status_is_final),
        # The request itself was refused: too long, too large, a safeguard, a hook.
        refused=outcome in (Outcome.ERROR, Outcome.LIMIT) and not response.model_output,
        story_claimed=says_so,
        already_done=claims.says_already_done(words) is not None,
    )


def analyze(
    said: Analysis, response: Response, evidence: Evidence, moved: Progress, *, iteration: int
) -> Analysis:
    """Everything one iteration says, before history is added."""
    words, failed = final_words(response), failed_checks(evidence)
    # Changed paths beat the claimed work type.
    on_tests = said.status is not None and said.status.work_type is WorkType.TESTING
    on_tests = only_tests(evidence.work_files) if evidence.work_files else on_tests
    question = claims.question_to_person(words)
    return replace(
        said,
        iteration=iteration,
        indicators=_indicators(evidence, said.status, words),
        confidence=_confidence(said, evidence),
        progress=moved.made,
        progress_reasons=moved.reasons,
        # In the agent's own last words, else in the output of the last failing check.
        error_signature=error_signature(words)
        or (error_signature(failed[-1].output_tail) if failed else None),
        test_only=on_tests and not evidence.stories.about_tests,
        question=question,
        warnings=(
            *_warnings(said, response, evidence, question),
            *(moved.reasons if moved.treading else ()),
        ),
    )


def final_words(response: Response) -> str:
    """The agent's last own words, bounded by the reader: what a claim may be read from."""
    return response.final_text if response.final_text is not None else response.text


def _indicators(evidence: Evidence, block: StatusBlock | None, words: str) -> Indicators:
    """Tests are measured where a check ran, claimed where none did."""
    all_passed = None if evidence.stories.total is None else not evidence.open_stories
    said = block.tests_status if block else None
    states = {check.status for check in evidence.checks or ()} - {CheckStatus.NO_TESTS}
    passing = said is TestsStatus.PASSING if said and said is not TestsStatus.NOT_RUN else None
    if evidence.checks:
        passing = states == {CheckStatus.PASSED} if states else None
    return Indicators(
        all_tasks_done=all_passed,
        no_pending_stories=all_passed,
        tests_passing=passing,
        status_complete=None if block is None else block.status is Status.COMPLETE,
        text_says_done=claims.has_promise(words) or claims.says_done(words) is not None,
    )


def _confidence(said: Analysis, evidence: Evidence) -> float:
    """How far claim and evidence agree, 0 to 1; it informs and never decides."""
    if said.says_nothing:
        return 0.0
    block, score = said.status, 0.3
    if block is not None:
        score += 0.3 if not block.problems and not block.truncated else 0.1
    if evidence.files_changed is not None:
        score += 0.2
    if evidence.checks:
        score += 0.2
    if _files_contradict(evidence, block):
        score -= 0.3
    if failed_checks(evidence) and block and block.tests_status is TestsStatus.PASSING:
        score -= 0.3
    return round(min(1.0, max(0.0, score)), 2)


def _files_contradict(evidence: Evidence, block: StatusBlock | None) -> bool:
    """A different world, not a different way of counting."""
    if block is None or block.files_modified is None or evidence.files_changed is None:
        return False
    claimed, measured = block.files_modified, evidence.files_changed
    return (claimed == 0) != (measured == 0) or claimed >= 2 * measured + 3


def _warnings(
    said: Analysis, response: Response, evidence: Evidence, question: str | None
) -> tuple[str, ...]:
    """Each warning contains its word: status, truncated, files, denied, evidence, question."""
    found = list(response.warnings)
    if response.denials:
        tools = ", ".join(sorted({denial.tool for denial in response.denials}))
        found.append(
            f"denied: {counted(len(response.denials), 'tool call', 'was')} refused ({tools})"
        )
    if said.says_nothing:
        return tuple(found)
    block = said.status
    if block is None:
        found.append("no status block (RALPH_STATUS) in the answer; its words were used instead")
    if block is None and evidence.is_empty:
        found.append("no evidence either: nothing was measured and nothing was reported")
    if block and block.truncated:
        found.append("the status block is truncated (no end marker): EXIT_SIGNAL counts false")
    if block and _files_contradict(evidence, block):
        reported, changed = block.files_modified, evidence.files_changed
        found.append(f"files: the agent reports {reported} modified, {changed} changed")
    if question:
        found.append(f"question to a person, nobody is there: {one_line(question)}")
    return tuple(found)


_GOOD = frozenset({Outcome.COMPLETED, Outcome.DENIED, Outcome.EMPTY})


def settle(response: Response, end: ProcessEnd, evidence: Evidence) -> Outcome:
    """How the start ended: our clocks beat the exit code, a good result beats our clocks."""
    if end.interrupted:
        return Outcome.INTERRUPTED
    if response.outcome in _GOOD:
        if response.outcome is not Outcome.DENIED:
            return response.outcome
        claimed = response.status.files_modified if response.status else None
        changed = claimed if evidence.files_changed is None else evidence.files_changed
        # Refused tools matter only if nothing came of the start.
        return Outcome.COMPLETED if changed else Outcome.DENIED
    if end.out_of_time:
        return Outcome.INTERRUPTED
    if end.timed_out:
        return Outcome.TIMEOUT
    if end.stalled:
        waited_for_api = response.retrying or not response.model_output
        return Outcome.TRANSIENT if waited_for_api else Outcome.STALLED
    return response.outcome
