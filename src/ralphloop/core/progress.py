"""Progress is content: changed files in a new tree, a check that turned green, a story that passed.

An empty commit and a bare claim are none; the claim stands in only where nothing could be measured.
Over a row of unclaimed iterations the net difference counts: a handful of lines, in files touched
again and again, is treading water.

Signs of going in circles each say what they saw, for the nudge and the report.  Being stuck is a
flag, never a decision; infrastructure endings are not in the window at all.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import takewhile

import msgspec

from ralphloop.core.model import CheckResult, CheckStatus, Evidence, StuckPattern, Value
from ralphloop.core.policy import Policy
from ralphloop.text.plain import counted
from ralphloop.text.status_block import StatusBlock

MAX_TREES = 2_000
MAX_GREENED = 500
_MOST_FILES = 100


class Memory(Value, kw_only=True):
    trees: tuple[str, ...] = ()
    checks: dict[str, CheckStatus] = msgspec.field(default_factory=dict)
    greened: tuple[tuple[str, str], ...] = ()  # (check, tree): a turn counts once in each tree


class Progress(Value, kw_only=True):
    made: bool
    reasons: tuple[str, ...] = ()
    turned_green: tuple[str, ...] = ()
    revisited: bool = False  # files changed, but only back to a tree seen before
    treading: bool = False  # the last iterations together come to next to nothing


class Footprint(Value, kw_only=True):
    """What is kept of an unclaimed iteration: the tree it began with, and what it touched."""

    tree: str = ""
    files: tuple[str, ...] | None = ()  # None: unknown, or more than is kept


def footprint(tree: str, evidence: Evidence) -> Footprint:
    files = evidence.work_files
    if files is None and not evidence.files_changed:
        files = ()
    return Footprint(tree=tree, files=files if files is None or len(files) <= _MOST_FILES else None)


def is_trodden(trail: Sequence[Footprint]) -> bool:
    """Every file that these iterations changed was touched by more than one of them."""
    touched = Counter(file for step in trail for file in step.files or ())
    return 1 not in touched.values() and all(step.files is not None for step in trail)


def treading_water(trail: Sequence[Footprint], evidence: Evidence, policy: Policy) -> str:
    """Why the last of these iterations is no progress, in words; empty where it may be."""
    lines = evidence.net_lines
    last = trail[-policy.treading_window :]
    if not 0 < policy.treading_window <= len(last) or lines is None:
        return ""
    if lines >= policy.treading_lines or not is_trodden(last):
        return ""
    return (
        f"no net change: {len(last)} iterations without a claim differ by"
        f" {counted(lines, 'line')}, in the same files each time"
    )


def assess(evidence: Evidence, claim: StatusBlock | None, memory: Memory) -> Progress:
    green = tuple(  # was red when it last ran; once per check and tree
        check.name
        for check in evidence.checks or ()
        if check.status is CheckStatus.PASSED
        and memory.checks.get(check.name) is CheckStatus.FAILED
        and (check.name, evidence.tree) not in memory.greened
    )
    passed = evidence.stories_passed or 0
    changed = evidence.files_changed
    is_known = evidence.tree is not None and evidence.tree in memory.trees
    reasons = [f"{counted(passed, 'story')} passed"] if passed > 0 else []
    reasons += [f"check {name} turned green" for name in green]
    if changed and not is_known:
        reasons.append(f"{changed} files changed")
    elif changed is None and not is_known:  # nobody could count them: then the claim stands in
        if evidence.commits:
            reasons.append(f"{evidence.commits} commits")
        elif claim and claim.files_modified:
            reasons.append(f"{claim.files_modified} files claimed (not measured)")
    return Progress(
        made=bool(reasons),
        reasons=tuple(reasons),
        turned_green=green,
        revisited=bool(changed) and is_known,
    )


def remember(memory: Memory, evidence: Evidence, progress: Progress) -> Memory:
    trees = memory.trees
    if evidence.tree is not None and evidence.tree not in trees:
        trees = (*trees, evidence.tree)[-MAX_TREES:]
    greened = memory.greened
    if progress.turned_green and evidence.tree is not None:
        new = tuple((name, evidence.tree) for name in progress.turned_green)
        greened = (*greened, *new)[-MAX_GREENED:]
    ran = {c.name: c.status for c in evidence.checks or () if c.status is not CheckStatus.NO_TESTS}
    return Memory(trees=trees, checks=memory.checks | ran, greened=greened)


def failed_checks(evidence: Evidence) -> tuple[CheckResult, ...]:
    return tuple(c for c in evidence.checks or () if c.status is CheckStatus.FAILED)


WINDOW = 8
MAX_LENGTHS = 50
_DECLINE_HISTORY = 3  # earlier iterations a decline is measured against
_REPLY_CHARS = 1_500
_SIMILAR = 0.85
_SHORTEST_ALTERNATION = 3  # A B A
_NOISE = re.compile(r"\d+|[^\w\s]+")


class WindowEntry(Value, kw_only=True):
    error: str | None = None
    reply: str = ""  # normalised, bounded
    tree: str | None = None
    progress: bool = False
    revisited: bool = False


def normalise_reply(prose: str) -> str:
    """A reply without numbers, punctuation and case: what is left is what it says."""
    head = prose[:_REPLY_CHARS]
    tail = prose[_REPLY_CHARS:][-_REPLY_CHARS:]
    return " ".join(_NOISE.sub(" ", f"{head} {tail}").lower().split())


def detect_stuck_loop(window: Sequence[WindowEntry], policy: Policy) -> tuple[StuckPattern, ...]:
    """The signs of going in circles that the last iterations show."""
    found = []
    for name, look in _STUCK_SIGNS.items():
        if words := look(window, policy):
            found.append(StuckPattern(name=name, detail=words))
    return tuple(found)


def signs_for_prompt(window: Sequence[WindowEntry], policy: Policy) -> tuple[str, ...]:
    """The signs that the next prompt tells, in words: each while there is a next prompt.

    A sign that needs a longer row than the circuit allows would be seen when the circuit opens, and
    help nobody.  So for the prompt a row is as long as it can be before that.
    """
    allowed = policy.no_progress_threshold
    if policy.preset == "strict":  # which opens at once
        allowed -= 1
    if policy.no_progress_threshold <= 0:
        return _words(detect_stuck_loop(window, policy))
    capped = msgspec.structs.replace(
        policy,
        stuck_same_error=min(policy.stuck_same_error, max(2, allowed)),
        stuck_same_reply=min(policy.stuck_same_reply, max(2, allowed)),
        stuck_alternation=min(policy.stuck_alternation, max(_SHORTEST_ALTERNATION, allowed)),
        stuck_revisits=min(policy.stuck_revisits, max(2, allowed)),
    )
    return _words(detect_stuck_loop(window, capped))


def _words(signs: Sequence[StuckPattern]) -> tuple[str, ...]:
    return tuple(sign.detail for sign in signs)


def _same_error(window: Sequence[WindowEntry], policy: Policy) -> str:
    """Progress in between does not excuse it."""
    most = policy.stuck_same_error
    error = window[-1].error if window else None
    row = list(takewhile(lambda entry: entry.error == error, reversed(window)))
    if not most or error is None or len(row) < most:
        return ""
    return f"the same error {len(row)} times: {error}"


def _same_reply(window: Sequence[WindowEntry], policy: Policy) -> str:
    most = policy.stuck_same_reply
    replies = [entry.reply for entry in _idle(window)[:most]]
    if not most or len(replies) < most or not all(replies):
        return ""
    if not all(similar(replies[0], other) for other in replies[1:]):
        return ""
    return f"nearly the same reply {len(replies)} times: {replies[0][:80]}"


def _alternation(window: Sequence[WindowEntry], policy: Policy) -> str:
    """A B A B; of several the first is told."""
    most = policy.stuck_alternation
    last = _idle(window)[:most]
    views: dict[str, list[str | None]] = {
        "states of the work tree": [entry.tree for entry in last],
        "errors": [entry.error for entry in last],
        "replies": [entry.reply or None for entry in last],
    }
    for what, values in views.items():
        if most and len(values) == most and _alternates(values):
            return f"to and fro between two {what}"
    return ""


def _alternates(values: Sequence[str | None]) -> bool:
    is_whole = None not in values and len(values) > 2
    return is_whole and values[0] != values[1] and values[2:] == values[:-2]


def _state_revisit(window: Sequence[WindowEntry], policy: Policy) -> str:
    most = policy.stuck_revisits
    last = _idle(window)[:most]
    if not most or len(last) < most or not all(entry.revisited for entry in last):
        return ""
    return f"{most} times back to a work tree seen before"


def _idle(window: Sequence[WindowEntry]) -> list[WindowEntry]:
    """The last iterations without progress, newest first."""
    return list(takewhile(lambda entry: not entry.progress, reversed(window)))


# Each says in words what it saw, or nothing.
_STUCK_SIGNS: dict[str, Callable[[Sequence[WindowEntry], Policy], str]] = {
    "same_error": _same_error,
    "same_reply": _same_reply,
    "alternation": _alternation,
    "state_revisit": _state_revisit,
}


def window_size(policy: Policy) -> int:
    """How many iterations have to be remembered for the signs above."""
    signs = (policy.stuck_same_error, policy.stuck_same_reply, policy.stuck_revisits)
    return max(WINDOW, policy.stuck_alternation, *signs)


def output_decline(chars: int, earlier: Sequence[int], percent: int) -> StuckPattern | None:
    """A fall of the agent's own text by more than `percent` against the median before."""
    if percent <= 0 or len(earlier) < _DECLINE_HISTORY:
        return None
    from statistics import median  # costs as much as the rest of this room

    usual = median(earlier)
    if usual <= 0 or chars >= usual * (100 - percent) / 100:
        return None
    fall = 100 - 100 * chars / usual
    return StuckPattern(
        name="output_decline",
        detail=f"output fell by {fall:.0f} %: {chars} characters, usually {usual:.0f}",
    )


def similar(one: str, other: str) -> bool:
    """Near-identical by their three-word sequences."""
    if one == other:
        return True
    first = _triples(one)
    second = _triples(other)
    union = len(first | second)
    return bool(union) and len(first & second) / union >= _SIMILAR


def _triples(text: str) -> set[tuple[str, ...]]:
    """Every three words that follow each other; a shorter text is one of its own."""
    words = text.split()
    return {tuple(words[at : at + 3]) for at in range(max(1, len(words) - 2))}
