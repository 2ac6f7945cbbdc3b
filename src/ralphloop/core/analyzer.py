"""What the agent claims against what was measured: facts, and no decision.

A fact comes from evidence where there is any, else from the claim; unknown is not a fact.
"""

from typing import NamedTuple

from msgspec.structs import replace

from ralphloop.core.iteration import Result
from ralphloop.core.model import Analysis, CheckStatus, Evidence, Indicators, Outcome, Response
from ralphloop.core.progress import Progress, failed_checks
from ralphloop.core.proof import is_test_path
from ralphloop.core.sentences import NO_STATUS_BLOCK
from ralphloop.text import claims
from ralphloop.text.plain import counted, one_line
from ralphloop.text.signatures import error_signature
from ralphloop.text.status_block import Status, StatusBlock, TestsStatus, WorkType

_UNMEASURED = Evidence()


def hear(result: Result, evidence: Evidence = _UNMEASURED) -> Analysis:
    """How a start ended and what the agent says it has done, before anything is believed."""
    response = result.heard
    block = response.status
    words = response.final_words
    outcome = _settled(result, evidence)
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
        capped=bool(result.end.ceiling),
        refused=not result.end.ceiling and _is_refused(outcome, response, evidence),
        story_claimed=says_so,
        already_done=claims.says_already_done(words) is not None,
    )


def _is_refused(outcome: Outcome, response: Response, evidence: Evidence) -> bool:
    """No model saw the request; one that changed files was seen, whatever its output shows."""
    has_worked = response.model_output or evidence.files_changed or evidence.commits
    return outcome in (Outcome.ERROR, Outcome.LIMIT) and not has_worked


def analyze(
    said: Analysis, response: Response, evidence: Evidence, moved: Progress, *, iteration: int
) -> Analysis:
    """Everything one iteration says, before history is added."""
    words = response.final_words
    failed = failed_checks(evidence)
    block = said.status
    # Tests are measured where a check ran, claimed where none did.
    told = block.tests_status if block else None
    passing = told is TestsStatus.PASSING if told and told is not TestsStatus.NOT_RUN else None
    if evidence.checks:
        states = {check.status for check in evidence.checks} - {CheckStatus.NO_TESTS}
        passing = states == {CheckStatus.PASSED} if states else None
    all_passed = None if evidence.stories.total is None else not evidence.open_stories
    # Changed paths beat the claimed work type.
    on_tests = block is not None and block.work_type is WorkType.TESTING
    on_tests = all(map(is_test_path, evidence.work_files)) if evidence.work_files else on_tests
    question = claims.question_to_person(words)
    trust = _trust(said, response, evidence, question)
    treading = moved.reasons if moved.treading else ()
    return replace(
        said,
        iteration=iteration,
        indicators=Indicators(
            all_tasks_done=all_passed,
            no_pending_stories=all_passed,
            tests_passing=passing,
            status_complete=None if block is None else block.status is Status.COMPLETE,
            text_says_done=claims.has_promise(words) or claims.says_done(words) is not None,
        ),
        confidence=trust.confidence,
        progress=moved.made,
        progress_reasons=moved.reasons,
        # In the agent's own last words, else in the output of the last failing check.
        error_signature=own_error(response)
        or (error_signature(failed[-1].output_tail) if failed else None),
        test_only=on_tests and not evidence.stories.about_tests,
        question=question,
        warnings=(*trust.warnings, *treading),
    )


def own_error(response: Response) -> str | None:
    """What fails by the agent's own last words, or what its program crashed of."""
    said = error_signature(response.final_words)
    if said is None and response.crash:
        return error_signature(response.crash) or response.crash
    return said


class ClaimTrust(NamedTuple):
    confidence: float  # how far claim and evidence agree, 0 to 1, which informs and never decides
    warnings: tuple[str, ...]  # each with its word: status, truncated, files, denied, question …


def _trust(
    said: Analysis, response: Response, evidence: Evidence, question: str | None
) -> ClaimTrust:
    """How far the agent's words can be believed, and what speaks against them."""
    found = list(response.warnings)
    score = 0.3
    block = said.status
    if response.denials:
        tools = ", ".join(sorted({denial.tool for denial in response.denials}))
        refused = counted(len(response.denials), "tool call", "was")
        found.append(f"denied: {refused} refused ({tools})")
    if said.says_nothing:
        return ClaimTrust(0.0, tuple(found))
    if block is None:
        if response.final_words.strip():
            found.append(f"{NO_STATUS_BLOCK}; its words were used instead")
        if not _is_measured(evidence):
            found.append("no evidence either: nothing was measured and nothing was reported")
    else:
        score += 0.1 if block.problems or block.truncated else 0.3
        if block.truncated:
            found.append("the status block is truncated (no end marker): EXIT_SIGNAL counts false")
        if contradiction := _files_contradicted(block, evidence):
            found.append(contradiction)
            score -= 0.3
        if failed_checks(evidence) and block.tests_status is TestsStatus.PASSING:
            score -= 0.3
    score += _measured_share(evidence)
    if question:
        found.append(f"question to a person: {one_line(question)}")
    return ClaimTrust(round(min(1.0, max(0.0, score)), 2), tuple(found))


def _measured_share(evidence: Evidence) -> float:
    """What is worth more because we counted and checked ourselves."""
    share = 0.0
    if evidence.files_changed is not None:
        share += 0.2
    if evidence.checks:
        share += 0.2
    return share


def _is_measured(evidence: Evidence) -> bool:
    counts = (evidence.files_changed, evidence.commits, evidence.tree, evidence.work_files)
    measured = any(count is not None for count in counts)
    return measured or evidence.checks is not None or bool(evidence.stories_passed)


def _files_contradicted(block: StatusBlock, evidence: Evidence) -> str:
    """Where claim and count are of a different world, not only counted in another way."""
    claimed = block.files_modified
    changed = evidence.files_changed
    if claimed is None or changed is None:
        return ""
    only_one_is_zero = (claimed == 0) != (changed == 0)
    if only_one_is_zero or claimed >= 2 * changed + 3:
        return f"files: the agent reports {claimed} modified, {changed} changed"
    return ""


def _settled(result: Result, evidence: Evidence) -> Outcome:
    """How the start ended: our clocks beat the exit code, a good result beats our clocks."""
    response = result.heard
    end = result.end
    if end.interrupted:
        return Outcome.INTERRUPTED
    if response.outcome is Outcome.COMPLETED:
        return response.outcome
    if end.ceiling:
        return Outcome.LIMIT
    if response.outcome is Outcome.EMPTY:
        return response.outcome
    if response.outcome is Outcome.DENIED:
        claimed = response.status.files_modified if response.status else None
        changed = claimed if evidence.files_changed is None else evidence.files_changed
        # Refused tools matter only if nothing came of the start.
        return Outcome.COMPLETED if changed else Outcome.DENIED
    return _by_clock(result) or _by_work(response.outcome, evidence)


def _by_clock(result: Result) -> Outcome | None:
    """What it means that one of our clocks ended it; None where none did."""
    response = result.heard
    end = result.end
    if end.out_of_time:
        return Outcome.INTERRUPTED
    if end.timed_out:
        return Outcome.TIMEOUT
    if not end.stalled:
        return None
    waited_for_api = response.retrying or not response.model_output
    return Outcome.TRANSIENT if waited_for_api else Outcome.STALLED


def _by_work(outcome: Outcome, evidence: Evidence) -> Outcome:
    """Whatever its output is taken for: who changed files did start."""
    has_worked = evidence.files_changed or evidence.commits
    return Outcome.ERROR if outcome is Outcome.STARTUP_ERROR and has_worked else outcome
