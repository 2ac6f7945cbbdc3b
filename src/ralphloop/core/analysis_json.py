"""The analysis object that other tools read.

Its keys are fixed; we only ever add some.
"""

from __future__ import annotations

from typing import Any

from ralphloop.core.model import Analysis, Decision, Indicators, Response
from ralphloop.text.status import StatusBlock


def analysis_object(
    analysis: Analysis, decision: Decision, response: Response, *, timestamp: str
) -> dict[str, Any]:
    """One iteration's analysis in the published shape."""
    return {
        "timestamp": timestamp,
        "iteration": analysis.iteration,
        "ralph_status": _status(analysis.status, exit_signal=analysis.exit_signal),
        "completion_indicators": analysis.indicators.count,
        "exit_decision": str(decision.word),
        "stuck_loop_detected": analysis.stuck_loop_detected,
        "circuit_breaker_state": str(analysis.circuit),
        "outcome": str(analysis.outcome),
        "outcome_reason": response.reason,
        "confidence": analysis.confidence,
        "indicators": _indicators(analysis.indicators),
        "reasons": list(decision.reasons),
        "warnings": list(analysis.warnings),
        "error_signature": analysis.error_signature,
        "story_claimed": analysis.story_claimed,
        "question": analysis.question,
        "stuck": [{"pattern": p.name, "detail": p.detail} for p in analysis.stuck],
        "progress": analysis.progress,
        "reader": response.reader,
        "format": str(response.format),
        "session_id": response.session_id,
        "model": response.model,
        "usage": _usage(response),
        "denials": [{"tool": d.tool, "summary": d.summary} for d in response.denials],
        "resets_at": response.rate_limit.resets_at if response.rate_limit else None,
    }


def _status(block: StatusBlock | None, *, exit_signal: bool) -> dict[str, Any]:
    found = block or StatusBlock()
    return {
        "found": block is not None,
        "status": found.status,
        "tasks_completed": found.tasks_completed,
        "files_modified": found.files_modified,
        "tests_status": found.tests_status,
        "work_type": found.work_type,
        "exit_signal": exit_signal,
        "recommendation": found.recommendation or None,
        "problems": list(found.problems),
    }


def _indicators(indicators: Indicators) -> dict[str, bool | None]:
    return {name: getattr(indicators, name) for name in indicators.__struct_fields__}


def _usage(response: Response) -> dict[str, Any]:
    usage = response.usage
    return {name: getattr(usage, name) for name in usage.__struct_fields__}
