"""What progress.txt says of an iteration."""

from __future__ import annotations

from ralphloop.core.iteration import Iteration
from ralphloop.core.model import Outcome
from ralphloop.text.plain import one_line

_FAILED_ENDINGS = (Outcome.ERROR, Outcome.TIMEOUT, Outcome.STALLED, Outcome.DENIED)
_LONGEST = 300


def entry_outcome(iteration: Iteration) -> str:
    """The word for how it went."""
    analysis = iteration.analysis
    if iteration.verdict.passed:
        return "passed"
    if analysis.outcome.is_infrastructure:
        return "interrupted"
    if analysis.is_blocked:
        return "blocked"
    if analysis.story_claimed or (analysis.outcome in _FAILED_ENDINGS and not analysis.progress):
        return "failed"
    return "in_progress" if analysis.progress else "no_progress"


def entry_summary(iteration: Iteration, grade: str) -> str:
    """One line: the grade, the agent's own words, and what contradicts them."""
    analysis, verdict = iteration.analysis, iteration.verdict
    said = analysis.status.recommendation if analysis.status else ""
    parts = [f"{grade}:" if verdict.passed else "", said]
    if not verdict.passed and analysis.story_claimed:
        parts.append(f"(claimed, but {'; '.join(verdict.reasons)})")
    if analysis.outcome is not Outcome.COMPLETED:
        parts.append(f"[{analysis.outcome}]")
    return one_line(" ".join(part for part in parts if part) or "no summary was given", _LONGEST)
