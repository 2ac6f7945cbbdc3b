"""What has to be found out next about a start that has ended.

The shell finds it out and asks again until nothing is left; each answer is a part of `Evidence`.
What costs most comes last, and only where it can still change something: of a story nobody claims,
or whose checks are red, nothing is tried.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec.structs import replace

from ralphloop.core.analyzer import Claim, claim_of, is_refused, settle
from ralphloop.core.grading import Grade, Proof, is_green, judge_story
from ralphloop.core.iteration import Result, Start
from ralphloop.core.model import Evidence, Outcome
from ralphloop.core.policy import UNANSWERED, Policy, reached
from ralphloop.core.proof import Trial
from ralphloop.core.run_state import RunState
from ralphloop.core.story_after import used
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
    if _is_to_be_asked(state, start, result, evidence, policy):
        return Need.STATUS
    claim = claim_of(result.heard, passes_set=evidence.passes_set)
    outcome = settle(result.heard, result.end, evidence)
    if outcome.is_infrastructure or is_refused(result.heard, outcome) or evidence.returned:
        return None
    every = policy.interim_checks  # without a claim, so that the agent hears how things stand
    is_due = every > 0 and (start.state.unclaimed + 1) % every == 0
    if evidence.checks is None and (claim.story or claim.exit_signal or is_due):
        return Need.CHECKS
    if claim.story and start.story and not evidence.checks_cut:
        return _to_be_doubted(start, claim, evidence, policy)
    return None


def _to_be_doubted(start: Start, claim: Claim, evidence: Evidence, policy: Policy) -> Need | None:
    """Of a story that is claimed: what may speak against it, the dearest last."""
    if evidence.doubts is None:
        return Need.DOUBTS
    proof = proof_of(start, claim, evidence, policy)
    if evidence.trial is None and proof.changed and is_green(proof):
        return Need.TRIAL
    verdict = judge_story(proof)
    stands = verdict.passed and verdict.grade is not Grade.NEEDS_REVIEW
    return Need.OPINIONS if policy.doubts and evidence.opinions is None and stands else None


def _is_to_be_asked(
    state: RunState, start: Start, result: Result, evidence: Evidence, policy: Policy
) -> bool:
    """A finished answer without a block, and asking for it is possible, new and within limits."""
    response = result.response
    is_missing = settle(response, result.end, evidence) is Outcome.COMPLETED and not response.status
    is_new = result.asked is None and state.unanswered < UNANSWERED
    if not (is_missing and is_new and result.can_be_asked and policy.ask_for_status):
        return False
    usage = used(response, start.state)
    paid = replace(
        state,
        cost_usd=state.cost_usd + usage.dollars,
        tokens=state.tokens + usage.fresh_tokens,
        active_s=state.active_s + result.end.duration_s,
    )
    totals = totals_with(paid, usage, evidence)
    return reached(policy.limits, totals, evidence.at or 0.0) is None


def proof_of(start: Start, claim: Claim, evidence: Evidence, policy: Policy) -> Proof:
    """Everything the story is judged on."""
    checks = evidence.checks or ()
    began = start.state.start_tree or start.tree
    return Proof(
        claimed=claim.story,
        already_done=claim.already_done,
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


def totals_with(state: RunState, now: Usage, evidence: Evidence) -> Totals:
    """What the run has used, this start's money and tokens included."""
    if evidence.used is None:
        known = Totals(cost_usd=state.cost_usd, active_s=state.active_s)
        return replace(known, input_tokens=state.tokens, iterations=state.iterations)
    before = evidence.used
    return replace(
        before,
        iterations=state.iterations,
        cost_usd=before.cost_usd + now.dollars,
        input_tokens=before.input_tokens + now.fresh_tokens,
    )
