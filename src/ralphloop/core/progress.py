"""Progress is content, not noise.

Changed files in a tree not seen before, a check that turned green, a story that passed.  An empty
commit, a tree seen before and a bare claim are none; the claim stands in only where nothing could
be measured.
"""

from __future__ import annotations

import msgspec

from ralphloop.core.model import CheckResult, CheckStatus, Evidence, Value
from ralphloop.text.status import StatusBlock

MAX_TREES = 2_000
MAX_GREENED = 500


class Memory(Value, kw_only=True):
    """What earlier iterations showed, as far as progress needs it."""

    trees: tuple[str, ...] = ()
    checks: dict[str, CheckStatus] = msgspec.field(default_factory=dict)
    greened: tuple[tuple[str, str], ...] = ()  # (check, tree): a turn counts once in each tree


class Progress(Value, kw_only=True):
    made: bool
    reasons: tuple[str, ...] = ()
    turned_green: tuple[str, ...] = ()
    revisited: bool = False  # files changed, but only back to a tree seen before


def assess(evidence: Evidence, claim: StatusBlock | None, memory: Memory) -> Progress:
    """Whether an iteration moved the work forward, and how we know."""
    green = _turned_green(evidence, memory)
    passed = evidence.stories_passed or 0
    reasons = [f"{passed} {'story' if passed == 1 else 'stories'} passed"] if passed > 0 else []
    reasons += [f"check {name} turned green" for name in green]
    if content := _content(evidence, claim, memory):
        reasons.append(content)
    changed = bool(evidence.files_changed)
    return Progress(
        made=bool(reasons),
        reasons=tuple(reasons),
        turned_green=green,
        revisited=changed and evidence.tree is not None and evidence.tree in memory.trees,
    )


def remember(memory: Memory, evidence: Evidence, progress: Progress) -> Memory:
    """The memory after an iteration; bounded."""
    trees = memory.trees
    if evidence.tree is not None and evidence.tree not in trees:
        trees = (*trees, evidence.tree)[-MAX_TREES:]
    greened = memory.greened
    if progress.turned_green and evidence.tree is not None:
        new = tuple((name, evidence.tree) for name in progress.turned_green)
        greened = (*greened, *new)[-MAX_GREENED:]
    return Memory(trees=trees, checks=_last_states(memory, evidence), greened=greened)


def failed_checks(evidence: Evidence) -> tuple[CheckResult, ...]:
    return tuple(c for c in evidence.checks or () if c.status is CheckStatus.FAILED)


def _content(evidence: Evidence, claim: StatusBlock | None, memory: Memory) -> str:
    if evidence.tree is not None and evidence.tree in memory.trees:
        return ""
    if evidence.files_changed is None:
        return _claimed_content(evidence, claim)
    return f"{evidence.files_changed} files changed" if evidence.files_changed > 0 else ""


def _claimed_content(evidence: Evidence, claim: StatusBlock | None) -> str:
    """Where files could not be measured the claim stands in."""
    if evidence.commits:
        return f"{evidence.commits} commits"
    claimed = claim.files_modified if claim else None
    return f"{claimed} files claimed (not measured)" if claimed else ""


def _turned_green(evidence: Evidence, memory: Memory) -> tuple[str, ...]:
    """Checks that were red when they last ran and are green now, once per check and tree."""
    return tuple(
        check.name
        for check in evidence.checks or ()
        if check.status is CheckStatus.PASSED
        and memory.checks.get(check.name) is CheckStatus.FAILED
        and (check.name, evidence.tree) not in memory.greened
    )


def _last_states(memory: Memory, evidence: Evidence) -> dict[str, CheckStatus]:
    ran = {c.name: c.status for c in evidence.checks or () if c.status is not CheckStatus.NO_TESTS}
    return memory.checks | ran if ran else memory.checks
