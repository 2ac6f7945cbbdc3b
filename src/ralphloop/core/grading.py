"""Whether a claimed story passes, and how well that is proven.

Only green checks that we ran ourselves make a story pass; the grade says how much they prove.
"""

from __future__ import annotations

from enum import StrEnum

from ralphloop.core.model import CheckResult, CheckStatus, Value

UNCHANGED = "nothing changed since the story began"


class Grade(StrEnum):
    VERIFIED = "verified"  # its own proof or a check turned green, or there are new tests
    CHECKED = "checked"  # all green, nothing of that
    CLAIMED = "claimed"  # there was nothing to check it with
    NEEDS_REVIEW = "needs review"  # green, but tests or stories were weakened on the way
    BY_HAND = "by hand"  # a person said so


class Proof(Value, kw_only=True):
    """Everything a story's pass is judged on."""

    claimed: bool
    already_done: bool = False  # the agent says the work was there before
    changed: bool = True  # something changed since the story began
    checks: tuple[CheckResult, ...] = ()
    tolerated: tuple[str, ...] = ()  # checks that are red only in ways they were before
    verify: CheckResult | None = None
    verify_was: CheckStatus | None = None  # before the story's first start; None: not known
    turned_green: bool = False  # a check or a named test went red -> green in this story
    tests_added: bool = False
    tampering: tuple[str, ...] = ()
    challenged: bool = False  # the same findings were put to the agent before

    @property
    def verify_turned_green(self) -> bool:
        """Its own command was red without the story and is green with it."""
        is_green = self.verify is not None and self.verify.status is CheckStatus.PASSED
        return is_green and self.verify_was is CheckStatus.FAILED


class StoryVerdict(Value, kw_only=True):
    passed: bool = False
    grade: Grade | None = None
    reasons: tuple[str, ...] = ()


def judge_story(proof: Proof) -> StoryVerdict:
    """Pass or not, with the grade and the reasons in words."""
    if not proof.claimed:
        return _no("the agent does not claim it")
    checks = [*proof.checks, *([proof.verify] if proof.verify else [])]
    failed = [check.name for check in checks if check.status is CheckStatus.FAILED]
    if red := [name for name in failed if name not in proof.tolerated]:
        return _no(*(f"{name} failed" for name in red))
    if not (proof.changed or proof.already_done or proof.verify_turned_green):
        return _no(UNCHANGED)
    if proof.tampering and not proof.challenged:
        return _no(*(f"challenged: {finding}" for finding in proof.tampering))
    if proof.tampering:
        return _yes(Grade.NEEDS_REVIEW, *proof.tampering)
    return _graded(proof, [check.name for check in checks if check.status is CheckStatus.PASSED])


def _graded(proof: Proof, green: list[str]) -> StoryVerdict:
    if not green:
        return _yes(Grade.CLAIMED, "no check could prove it")
    if proof.verify_turned_green:
        where = () if proof.changed else ("its work is in ignored files",)
        return _yes(Grade.VERIFIED, "its own verify command was red and is green", *where)
    if not proof.changed:
        return _yes(Grade.CHECKED, "already there before the story began, checks are green")
    if proof.verify and proof.verify.name in green and proof.verify_was is None:
        return _yes(Grade.VERIFIED, "its own verify command passed")
    if proof.turned_green:
        return _yes(Grade.VERIFIED, "a check or test turned from red to green")
    if proof.tests_added:
        return _yes(Grade.VERIFIED, "tests were added and all is green")
    return _yes(Grade.CHECKED, f"{', '.join(green)} green")


def _yes(grade: Grade, *reasons: str) -> StoryVerdict:
    return StoryVerdict(passed=True, grade=grade, reasons=reasons)


def _no(*reasons: str) -> StoryVerdict:
    return StoryVerdict(passed=False, reasons=reasons)
