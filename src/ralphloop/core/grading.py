"""Whether a claimed story passes, and how well that is proven.

Only green checks that we ran ourselves make a story pass.  `verified` needs something that is red
without the story and green with it, and nothing that is doubted or for a person to look at.
"""

from enum import StrEnum
from typing import Literal

from ralphloop.core import sentences
from ralphloop.core.model import CheckResult, CheckStatus, Value
from ralphloop.core.proof import Trial

VERIFY = "verify"  # the name of the check that is a story's own command
UNCHANGED = "nothing changed since the story began"
SENT_BACK = "this is what you sent back, unchanged"
SENT_BACK_TOLD = (
    "This is the very change that a person sent back: not one line differs. Do what they asked for"
    " instead. Where it is right as it is, report BLOCKED and say why: only they can accept it."
)
HOLLOW = "only new files without content appeared since the story began"
DOUBT = "doubt of "  # how a finding begins whose words are another command's


class Grade(StrEnum):
    VERIFIED = "verified"  # red without the story, green with it
    CHECKED = "checked"  # all green, nothing of that
    CLAIMED = "claimed"  # there was nothing to check it with
    NEEDS_REVIEW = "needs review"  # green, but a person should look at what was found
    BY_HAND = "by hand"  # a person said so


# What follows where tests expect something else, or went with their code: at most `checked`, and
# shown; it needs review; the agent is asked first.
ChangedTests = Literal["show", "review", "ask"]
# Whether an agent is asked, once, for a test of what its own tests run and never look at.
AskForTests = Literal["auto", "off"]


class Proof(Value, kw_only=True):
    claimed: bool
    already_done: bool = False  # the agent says the work was there before
    changed: bool = True  # something changed since the story began
    sent_back: bool = False  # its change is one that a person sent back
    hollow: bool = False  # and that is new files with nothing in them, no more
    checks: tuple[CheckResult, ...] = ()  # its own command among them
    tolerated: tuple[str, ...] = ()  # checks that are red only in ways they were before
    verify_was: CheckStatus | None = None  # before the story's first start; None: not known
    turned_green: tuple[str, ...] = ()  # checks and named tests that were red before the run
    trial: Trial = Trial()
    changed_tests: ChangedTests = "show"
    ask_for_tests: AskForTests = "off"
    doubts: tuple[str, ...] = ()  # found beside the tests: stories, settings, history, scripts
    challenged: tuple[str, ...] = ()  # what was put to the agent before

    @property
    def verify_turned_green(self) -> bool:
        """Its own command was red before and is green; green at the second try proves nothing."""
        own = (check for check in self.checks if check.name == VERIFY)
        is_green = any(it.status is CheckStatus.PASSED and not it.flaky for it in own)
        return is_green and self.verify_was is CheckStatus.FAILED

    @property
    def is_work_ignored(self) -> bool:
        """What made its own command green is in no commit."""
        own = (check for check in self.checks if check.name == VERIFY)
        has_need = not self.changed or any(it.needs_ignored for it in own)
        return self.verify_turned_green and has_need


class StoryVerdict(Value, kw_only=True):
    passed: bool = False
    grade: Grade | None = None
    reasons: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()  # what the agent is told and has to answer for
    look_at: tuple[str, ...] = ()  # for a person, with names and values
    remarks: tuple[str, ...] = ()  # for the report alone


def judge_story(proof: Proof) -> StoryVerdict:
    return _not_done(proof) or _judge_done(proof)


def _not_done(proof: Proof) -> StoryVerdict | None:
    """Why there is nothing to be judged; None where there is."""
    if not proof.claimed:
        return _no("the agent does not call it done")
    if red := _red(proof):
        return _no(*(f"{check.name} {check.why or 'failed'}" for check in red))
    if not (proof.changed or proof.already_done or proof.verify_turned_green):
        return _no(UNCHANGED)
    if proof.sent_back:
        return _no(SENT_BACK, asked=(SENT_BACK_TOLD,))
    if proof.hollow and not (proof.already_done or _shows_something(proof)):
        return _no(HOLLOW)
    return None


def _judge_done(proof: Proof) -> StoryVerdict:
    """What green work is worth, and what its agent has to answer for."""
    if made_up := proof.trial.contradictions:
        return _no(*made_up, asked=made_up)
    trial = proof.trial
    look_at = proof.trial.look_at
    asked = look_at if proof.changed_tests == "ask" else ()
    findings = (*proof.doubts, *trial.challenges, *asked)  # what the agent has to answer for
    known = {_key(finding) for finding in proof.challenged}  # was put to the agent before
    known |= {
        now
        for now, before in zip(trial.challenges, trial.challenges_before, strict=True)
        if before in known
    }
    if any(_key(finding) not in known for finding in findings):
        return _no(*(f"{sentences.ASKED}{finding}" for finding in findings), asked=findings)
    if findings or (proof.changed_tests == "review" and look_at):
        return _yes(proof, Grade.NEEDS_REVIEW, *(findings or look_at))
    graded = _graded(proof)
    if wanted := _wanted_test(proof, graded):
        return _no(f"{sentences.ASKED}{wanted}", asked=(wanted,))
    return graded


def _wanted_test(proof: Proof, graded: StoryVerdict) -> str:
    """What the agent is asked to test, once a story; empty where nothing is or it was asked."""
    in_vain = proof.trial.mutation.in_vain
    if proof.ask_for_tests == "off" or graded.grade is not Grade.CHECKED or not in_vain:
        return ""
    if any(finding.startswith(sentences.NO_TEST_NOTICES) for finding in proof.challenged):
        return ""
    return sentences.add_a_test(in_vain[0].words)


def _shows_something(proof: Proof) -> bool:
    """Whether anything is green with a story without content that was not there without it."""
    trial = proof.trial
    new_tests = (*trial.proven, *trial.reached, *trial.vacuous, *trial.unloadable, *trial.unseen)
    return proof.verify_turned_green or bool(proof.turned_green) or bool(new_tests)


def is_green(proof: Proof) -> bool:
    """Something ran, and nothing is red that was not before."""
    return bool(proof.checks) and not _red(proof)


def _red(proof: Proof) -> list[CheckResult]:
    failed = (check for check in proof.checks if check.status is CheckStatus.FAILED)
    return [check for check in failed if check.name not in proof.tolerated]


def _key(finding: str) -> str:
    """What a finding is known by: a doubter never says the same twice."""
    return finding.partition(":")[0] if finding.startswith(DOUBT) else finding


def _graded(proof: Proof) -> StoryVerdict:
    trial = proof.trial
    green = [check.name for check in proof.checks if check.status is CheckStatus.PASSED]
    if not green:
        return _yes(proof, Grade.CLAIMED, "no check could prove it")
    if not proof.changed:
        if proof.is_work_ignored:
            return _yes(proof, Grade.CHECKED, sentences.IGNORED_WORK)
        return _yes(proof, Grade.CHECKED, "already there before the story began, checks are green")
    if trial.look_at:
        return _yes(proof, Grade.CHECKED, sentences.look_at(trial.look_at))
    if trial.mutation.literal:  # which says more than that one of its answers is a test's
        return _yes(proof, Grade.CHECKED, trial.mutation.reason)
    if shams := (*trial.peeking, *trial.mutation.soft):
        return _yes(proof, Grade.CHECKED, sentences.peeking(shams))
    if proven := _proven_by(proof):
        return _yes(proof, Grade.VERIFIED, proven)
    return _yes(proof, Grade.CHECKED, f"{', '.join(green)} green", *_why_not_verified(proof))


def _proven_by(proof: Proof) -> str:
    """What proves a story whose checks are all green, in words; empty where nothing does."""
    trial = proof.trial
    is_own_work = proof.verify_turned_green and not proof.is_work_ignored
    if is_own_work and VERIFY not in trial.discounted:
        return sentences.VERIFY_PROVES
    if turned_green := [it for it in proof.turned_green if it not in trial.discounted]:
        return sentences.turned_green(turned_green)
    if is_proven_by_behaviour(trial):
        return sentences.proved_by(trial.proven)
    # Where nobody knows what the old tests say, what the new ones notice is half of it.
    is_noticed = trial.mutation.is_proof and not (trial.unjudged or trial.unsteady)
    return trial.mutation.reason if is_noticed else ""


def is_proven_by_behaviour(trial: Trial) -> bool:
    """Whether a test fails without the story by what the code does, and passes with it.

    One that only misses a name there shows that it reaches the story's code.
    """
    return bool(trial.proven)


def _why_not_verified(proof: Proof) -> tuple[str, ...]:
    """What might have proven a story whose checks are all green, and does not."""
    trial = proof.trial
    why = (trial.mutation.reason,) if trial.mutation.reason else trial.unproving[:1]
    if trial.unjudged:
        why = (sentences.unjudged(trial.unjudged),)
    elif trial.unsteady:
        why = (sentences.unsteady(trial.unsteady),)
    if proof.is_work_ignored:
        return (sentences.IGNORED_WORK,)
    if proof.verify_was is CheckStatus.PASSED:
        return (*why, "its own verify command was green before, too: that proves nothing")
    if proof.verify_turned_green and sentences.VERIFY_GREEN_WITHOUT in proof.trial.untried:
        return (*why, sentences.VERIFY_GREEN_WITHOUT)
    if proof.verify_turned_green:
        return (*why, "its own verify command is not green with the tests as they were")
    if proof.verify_was is CheckStatus.NO_TESTS and not why:
        return ("the tests that its own verify command runs came with the story",)
    return why


def _yes(proof: Proof, grade: Grade, *reasons: str) -> StoryVerdict:
    trial = proof.trial
    remarks = (*trial.remarks, *trial.mutation.remarks, *trial.untried)
    told = {"look_at": trial.look_at, "remarks": remarks}
    return StoryVerdict(passed=True, grade=grade, reasons=reasons, **told)


def _no(*reasons: str, asked: tuple[str, ...] = ()) -> StoryVerdict:
    return StoryVerdict(passed=False, reasons=reasons, asked=asked)
