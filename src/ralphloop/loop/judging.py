"""From what was measured to a decision: find out what `needs` names, then take the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ralphloop.core.iteration import Result
from ralphloop.core.model import Evidence, Usage, Value
from ralphloop.core.planning import facts_of
from ralphloop.core.run_state import RunState
from ralphloop.core.step import Need, Step, needs, step
from ralphloop.loop.crew import at_work
from ralphloop.loop.iteration import Begun, Measured
from ralphloop.loop.runner import Runner
from ralphloop.proc.steps import Steps
from ralphloop.repo.checks import compare
from ralphloop.repo.measures import Snapshot

if TYPE_CHECKING:
    from ralphloop.repo.tamper import Review


class Judged(Value, kw_only=True):
    """An iteration with its verdict."""

    begun: Begun
    result: Result
    after: Snapshot
    evidence: Evidence
    before: RunState  # the state the step was taken from
    step: Step
    notes: tuple[object, ...] = ()  # what the agent answered when it was asked about the attempt
    asking: Usage = Usage()  # what that used

    @property
    def cut_short(self) -> bool:
        """Not all checks could be run: nothing of this may be written down."""
        return self.step.iteration.evidence.checks_cut


def judge(runner: Runner, measured: Measured) -> Steps[Judged]:
    """Find out all that is needed, weigh everything, decide."""
    start, result, evidence = measured.begun.start, measured.result, measured.evidence
    state, policy = runner.session.state, runner.policy
    while need := needs(state, start, result, evidence, policy):
        evidence = yield from _found_out(runner, measured, evidence, need)
    evidence = _with_surroundings(runner, measured, evidence)
    state = runner.session.state  # a person may have been heard meanwhile
    return Judged(
        begun=measured.begun,
        result=result,
        after=measured.after,
        evidence=evidence,
        before=state,
        step=step(state, start, result, evidence, policy),
    )


def up_to_date(runner: Runner, judged: Judged) -> Judged:
    """The same, decided again if something changed the run since."""
    state = runner.session.state
    if state is judged.before:
        return judged
    again = step(state, judged.begun.start, judged.result, judged.evidence, runner.policy)
    return msgspec.structs.replace(judged, before=state, step=again)


def _found_out(
    runner: Runner, measured: Measured, evidence: Evidence, need: Need
) -> Steps[Evidence]:
    if need is Need.CHECKS:
        return (yield from _checked(runner, measured.begun, evidence))
    seen = _review(runner, measured)
    return msgspec.structs.replace(
        evidence, doubts=_doubts(measured, seen), tests_added=seen.tests_added > 0
    )


def _checked(runner: Runner, begun: Begun, evidence: Evidence) -> Steps[Evidence]:
    runner.after = None  # checks leave files behind
    frozen, verify = runner.session.frozen, begun.story.verify if begun.story else None
    checks = yield from runner.run_checks(frozen.checks, verify=verify)
    wanted = len(frozen.checks) + (verify is not None)
    return msgspec.structs.replace(
        evidence,
        checks=checks,
        checks_cut=runner.stop.requested and len(checks) < wanted,
        comparison=compare(frozen.baseline, checks, runner.config.checks.baseline),
    )


def _review(runner: Runner, measured: Measured) -> Review:
    """What the story did to tests and checks since it began."""
    from ralphloop.repo.tamper import review

    begun = measured.begun
    start = Snapshot(tree=begun.state.start_tree or begun.before.tree, head=begun.before.head)
    changes = runner.measure.diff(start, measured.after).changes
    return review(changes, runner.measure.contents, runner.session.frozen.checks)


def _doubts(measured: Measured, seen: Review) -> tuple[str, ...]:
    """What now asks for less than before, what is gone, what was not its to change, in words."""
    found = [*seen.challenges, *measured.evidence.lost.values(), *measured.meddled]
    found += [f"story {story} was removed from the list" for story in measured.changes.removed]
    for story, what in measured.changes.weakened.items():
        found += [f"story {story} asks for less: {words}" for words in what]
    return tuple(found)


def _with_surroundings(runner: Runner, measured: Measured, evidence: Evidence) -> Evidence:
    """What the decision has to know of the list, the budgets and the other agents."""
    begun, now = measured.begun, runner.clock()
    others = [member for member in runner.setup.crew if member is not begun.member]
    return msgspec.structs.replace(
        evidence,
        stories=facts_of(
            measured.stories,
            runner.session.stories,
            begun.story,
            only=runner.setup.options.only,
        ),
        used=runner.totals(),
        fallback=at_work(others, runner.session.quota, now) is not None,
        at=now,
    )
