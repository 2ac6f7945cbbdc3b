"""What has to be found out next about a start that has ended.

The shell finds it out and asks again until nothing is left; each answer is a part of `Evidence`.
What costs most comes last, and only where it can still change something: of a story nobody claims,
or whose checks are red, nothing is tried.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec.structs import replace

from ralphloop.core.analyzer import hear
from ralphloop.core.grading import Grade, Proof, is_green, judge_story
from ralphloop.core.iteration import Result, Start
from ralphloop.core.model import Analysis, Evidence, Outcome
from ralphloop.core.policy import UNANSWERED, Policy, reached
from ralphloop.core.proof import Trial
from ralphloop.core.run_state import RunState
from ralphloop.core.story_after import accounted
from ralphloop.core.story_state import verify_was
from ralphloop.core.totals import Totals, Usage

VERIFY = "verify"  # the name of the check that is a story's own command


class Need(StrEnum):
    """What is to be found out next."""

    STATUS = "status"  # ask the same conversation for the block that is missing
    CHECKS = "checks"  # run them, the story's own command among them
    DOUBTS = "doubts"  # look at what the story did to stories, settings, history and scripts
    TRIAL = "trial"  # compare its tests with those before, and try them crosswise
    OPINIONS = "opinions"  # let those doubt who may


def needs(
    state: RunState, start: Start, result: Result, evidence: Evidence, policy: Policy
) -> Need | None:
    """What to find out before the start can be judged; None once nothing is left."""
    said = hear(result, evidence)
    is_missing = said.outcome is Outcome.COMPLETED and said.status is None and result.asked is None
    may_be_asked = result.can_be_asked and policy.ask_for_status and state.unanswered < UNANSWERED
    if is_missing and may_be_asked:
        usage, _ = accounted(start.state, result.response)
        totals = totals_with(state, result, usage, evidence)
        if not reached(policy.limits, totals, evidence.at or 0.0):
            return Need.STATUS
    if said.says_nothing or evidence.returned:
        return None
    every = policy.interim_checks  # without a claim, so that the agent hears how things stand
    is_due = every > 0 and (start.state.unclaimed + 1) % every == 0
    if evidence.checks is None and (said.claims_done or is_due):
        return Need.CHECKS
    if not (said.story_claimed and start.story) or evidence.checks_cut:
        return None
    if evidence.doubts is None:  # from here on: what may speak against it, the dearest last
        return Need.DOUBTS
    proof = proof_of(start, said, evidence, policy)
    if evidence.trial is None and proof.changed and is_green(proof):
        return Need.TRIAL
    verdict = judge_story(proof)
    stands = verdict.passed and verdict.grade is not Grade.NEEDS_REVIEW
    return Need.OPINIONS if policy.doubts and evidence.opinions is None and stands else None


def proof_of(start: Start, said: Analysis, evidence: Evidence, policy: Policy) -> Proof:
    """Everything the story is judged on."""
    checks = evidence.checks or ()
    began = start.state.start_tree or start.tree
    return Proof(
        claimed=said.story_claimed,
        already_done=said.already_done,
        changed=evidence.tree is None or began != evidence.tree,
        checks=tuple(check for check in checks if check.name != VERIFY),
        tolerated=evidence.comparison.tolerated,
        verify=next((check for check in checks if check.name == VERIFY), None),
        verify_was=verify_was(start.state, start.story) if start.story else None,
        turned_green=evidence.comparison.turned_green,
        trial=evidence.trial or Trial(),
        changed_tests=policy.changed_tests,
        doubts=(*(evidence.doubts or ()), *(evidence.opinions or ())),
        challenged=start.state.challenged,
    )


def totals_with(state: RunState, result: Result, now: Usage, evidence: Evidence) -> Totals:
    """What the run has used, this start's money and tokens included."""
    known = evidence.used or Totals(
        cost_usd=state.cost_usd,
        input_tokens=state.tokens,
        active_s=state.active_s + result.end.duration_s,
    )
    return replace(
        known,
        iterations=state.iterations,
        cost_usd=known.cost_usd + now.dollars,
        input_tokens=known.input_tokens + now.fresh_tokens,
    )
