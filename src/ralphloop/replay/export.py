"""A night as a decision case that can be shown to others.

What decides stays: status blocks, outcomes, measured numbers, trees, checks.  Names of stories,
files and checks become numbers; of the agent's words only the status block is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ralphloop.core.iteration import KeptAnswer
from ralphloop.core.model import CheckStatus, Evidence, Outcome
from ralphloop.core.policy import Policy
from ralphloop.replay.cases import Case, judge
from ralphloop.replay.nights import Again, ReplayedNight
from ralphloop.text import status
from ralphloop.text.test_paths import is_test_path

_SAID = "Worked on the story."
# What a text reader takes for such an ending.
_ENDINGS: Mapping[Outcome, dict[str, Any]] = {
    Outcome.USAGE_LIMIT: {"output": "Claude AI usage limit reached|1", "exit_code": 1},
    Outcome.TRANSIENT: {"stderr": "API Error: 529 overloaded_error", "exit_code": 1},
    Outcome.FATAL: {"stderr": "Invalid API key", "exit_code": 1},
    Outcome.TIMEOUT: {"timed_out": True, "exit_code": None},
    Outcome.STALLED: {"stalled": True, "exit_code": None},
    Outcome.EMPTY: {"output": ""},
}


def exported(run: str, policy: Policy, night: ReplayedNight) -> bytes:
    """One line for `ralph eval`."""
    names: dict[str, str] = {}
    kept = [again.record.record for again in night.starts]
    first = kept[0].evidence.stories if kept else None
    case: dict[str, Any] = {
        "id": f"night-{run}",
        "title": "a recorded night",
        "source": "ralph replay --export",
        "agent": "text",
        "policy": _thresholds(policy),
        "limits": msgspec.to_builtins(kept[0].limits) if kept else {},
        "iterations": [_iteration(again, names) for again in night.starts],
    }
    if first is not None and first.total is not None:
        case["stories"] = {"total": first.total, "passed": first.passed}
    return msgspec.json.encode(_without_what_is_lost(case)) + b"\n"


def _without_what_is_lost(case: dict[str, Any]) -> dict[str, Any]:
    """Only expectations that the case can meet: without names and words some are out of reach."""
    result = judge(msgspec.convert(case, Case), {})
    for wrong in result.mismatches:
        del case["iterations"][wrong.iteration - 1]["expect"][wrong.key]
    if result.mismatches:
        case["title"] += f"; {len(result.mismatches)} decisions need what was left out"
    return case


def _thresholds(policy: Policy) -> dict[str, Any]:
    plain = msgspec.to_builtins(policy)
    return {key: value for key, value in plain.items() if key not in ("limits", "commits")}


def _iteration(again: Again, names: dict[str, str]) -> dict[str, Any]:
    kept, record = again.record.record, again.record
    analysis = kept.analysis
    given = kept.asked is not None and kept.asked.status is not None  # the block that claims it
    found: dict[str, Any] = {
        "output": _said(kept.response, claimed=analysis.story_claimed and not given),
        "exit_code": kept.end.exit_code,
        "duration_s": kept.end.duration_s,
        "story_about_tests": kept.evidence.stories.about_tests,
        "story_exit_signal": kept.evidence.stories.exit_signal,
        "work_files": _files(kept.evidence.work_files or ()),
        "evidence": _evidence(kept.evidence, names),
        "expect": {
            "decision": record.decision,
            "outcome": record.outcome,
            "progress": analysis.progress,
            "circuit": str(analysis.circuit),
        },
        **_ENDINGS.get(analysis.outcome, {}),
    }
    if kept.asked is not None:
        found["asked"] = _said(kept.asked, claimed=False)
    if record.story is not None:
        found["story"] = names.setdefault(record.story, f"S-{len(names) + 1}")
    return found


def _said(kept: KeptAnswer, *, claimed: bool) -> str:
    block = kept.status
    if block is None:
        return "The story is complete." if claimed else _SAID
    silent = msgspec.structs.replace(block, recommendation="", problems=())
    return f"{_SAID}\n\n{status.render(silent)}\n"


def _files(paths: tuple[str, ...]) -> list[str]:
    return [
        f"tests/test_{number}.py" if is_test_path(path) else f"src/file_{number}.py"
        for number, path in enumerate(paths, start=1)
    ]


def _evidence(evidence: Evidence, names: dict[str, str]) -> dict[str, Any]:
    checks = evidence.checks or ()
    word = None
    if checks:
        failed = any(check.status is CheckStatus.FAILED for check in checks)
        word = "failed" if failed else str(checks[-1].status)
    tree = names.setdefault(f"tree {evidence.tree}", f"t{len(names)}") if evidence.tree else None
    return {
        "files_changed": evidence.files_changed,
        "commits": evidence.commits,
        "checks": word,
        "stories_passed": evidence.stories_passed,
        "tree": tree,
    }
