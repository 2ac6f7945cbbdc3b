"""From what was measured to a verdict: checks, tampering, grade, decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ralphloop.core.analyzer import Claim, claim_of
from ralphloop.core.grading import Proof, StoryVerdict, judge_story
from ralphloop.core.limits import reached
from ralphloop.core.model import CheckResult, CheckStatus, Evidence, StoryFacts, Usage, Value
from ralphloop.core.outcome import settle
from ralphloop.core.planning import runnable_besides
from ralphloop.core.run_state import Happening, Step, advance
from ralphloop.core.spending import Totals, cost_of
from ralphloop.core.story import Story, StoryList
from ralphloop.core.story_state import verify_was
from ralphloop.loop.crew import at_work
from ralphloop.loop.iteration import Worked
from ralphloop.loop.runner import VERIFY, Runner
from ralphloop.proc.steps import Steps
from ralphloop.workspace.baseline import Comparison, compare
from ralphloop.workspace.measures import Snapshot

if TYPE_CHECKING:
    from ralphloop.workspace.tamper import Review


class Noted(Value, kw_only=True):
    """What the agent answered when it was asked about the attempt, and what that used."""

    notes: tuple[Any, ...] = ()
    usage: Usage = Usage()


class Judged(Value, kw_only=True):
    """An iteration with its verdict."""

    worked: Worked
    step: Step
    verdict: StoryVerdict
    evidence: Evidence
    checks: tuple[CheckResult, ...]
    findings: tuple[str, ...] = ()  # tampering and the like, for the next prompt and the report
    tolerated: tuple[str, ...] = ()  # tests that were red before
    noted: Noted = Noted()
    cut_short: bool = False  # not all checks could be run: nothing of this may be written down


def judge(runner: Runner, worked: Worked) -> Steps[Judged]:
    """Run the checks where something is claimed, weigh everything, decide."""
    claim = claim_of(worked.finished.response, passes_set=worked.passes_set)
    evidence = _measured(worked)
    outcome = settle(worked.finished.response, worked.finished.end, evidence)
    checks: tuple[CheckResult, ...] = ()
    cut_short = False
    if not outcome.is_infrastructure and (claim.story or claim.exit_signal):
        checks = yield from _checks(runner, worked)
        cut_short = _cut_short(runner, worked, checks)
    verdict, findings, comparison = _verdict(runner, worked, claim, checks)
    if outcome.is_infrastructure:
        verdict = StoryVerdict(passed=False, reasons=(f"the start ended {outcome}",))
    elif worked.unfinished and claim.story:
        verdict = StoryVerdict(passed=False, reasons=(worked.unfinished,))
    evidence = msgspec.structs.replace(
        evidence, checks=checks or None, stories_passed=int(verdict.passed)
    )
    return Judged(
        worked=worked,
        step=_advance(runner, worked, evidence),
        verdict=verdict,
        evidence=evidence,
        checks=checks,
        findings=tuple(dict.fromkeys((*worked.findings, *findings))),
        tolerated=comparison.tolerated_failures,
        cut_short=cut_short,
    )


def _measured(worked: Worked) -> Evidence:
    return Evidence(
        files_changed=worked.changed.count,
        commits=worked.commits.count,
        tree=worked.after.tree,
        work_files=worked.changed.work_files(),
    )


def _checks(runner: Runner, worked: Worked) -> Steps[tuple[CheckResult, ...]]:
    runner.after = None  # checks leave files behind
    story = worked.begun.story
    verify = story.verify if story is not None else None
    return runner.run_checks(runner.session.frozen.checks, verify=verify)


def _verdict(
    runner: Runner, worked: Worked, claim: Claim, checks: tuple[CheckResult, ...]
) -> tuple[StoryVerdict, tuple[str, ...], Comparison]:
    begun = worked.begun
    comparison = compare(runner.session.frozen.baseline, checks, runner.config.checks.baseline)
    if begun.story is None:
        return StoryVerdict(passed=False), (), comparison
    start = Snapshot(tree=begun.state.start_tree or begun.before.tree, head=begun.before.head)
    seen = _review(runner, worked, start) if claim.story else None
    findings = _tampering(worked, seen) if seen else ()
    verify = next((check for check in checks if check.name == VERIFY), None)
    proof = Proof(
        claimed=claim.story,
        already_done=claim.already_done,
        changed=start.tree != worked.after.tree,
        checks=tuple(check for check in checks if check.name != VERIFY),
        tolerated=comparison.tolerated,
        verify=verify,
        verify_was=verify_was(begun.state, begun.story),
        turned_green=bool(comparison.turned_green),
        tests_added=bool(seen and seen.tests_added > 0),
        tampering=findings,
        challenged=set(findings) <= set(begun.state.challenged),
    )
    return judge_story(proof), findings, comparison


def _cut_short(runner: Runner, worked: Worked, checks: tuple[CheckResult, ...]) -> bool:
    """Stopped in the middle of the checks: what did not run proves nothing."""
    story = worked.begun.story
    wanted = len(runner.session.frozen.checks) + bool(story and story.verify)
    return runner.stop.requested and len(checks) < wanted


def _review(runner: Runner, worked: Worked, start: Snapshot) -> Review:
    """What the story did to tests and checks since it began."""
    from ralphloop.workspace.tamper import review

    return review(runner.measure, start, worked.after, runner.session.frozen.checks)


def _tampering(worked: Worked, seen: Review) -> tuple[str, ...]:
    """What now asks for less than before, what is gone, what was not its to change, in words."""
    found = [*seen.challenges, *worked.lost.values(), *worked.meddled]
    found += [f"story {story} was removed from the list" for story in worked.changes.removed]
    for story, what in worked.changes.weakened.items():
        found += [f"story {story} asks for less: {words}" for words in what]
    return tuple(found)


def _advance(runner: Runner, worked: Worked, evidence: Evidence) -> Step:
    story, stories = worked.begun.story, worked.stories
    facts = StoryFacts()
    others = None
    if stories is not None:
        others = _others(runner, stories, story, passed=bool(evidence.stories_passed))
        facts = StoryFacts(
            total=stories.total,
            passed=stories.passed,
            current=story.id if story else None,
            about_tests=bool(story and story.about_tests),
            exit_signal=bool(story and story.exit_signal),
        )
    happening = Happening(
        response=worked.finished.response,
        evidence=evidence,
        end=worked.finished.end,
        facts=facts,
        passes_set=worked.passes_set,
        others_runnable=others,
        limit=reached(runner.limits, _totals_with(runner, worked)),
        fallback=_someone_else(runner, worked),
        at=runner.clock(),
    )
    allowed = runner.limits.max_iterations
    policy = msgspec.structs.replace(runner.setup.policy, max_iterations=allowed)
    return advance(runner.session.state, happening, policy)


def _others(runner: Runner, stories: StoryList, story: Story | None, *, passed: bool) -> int:
    """How many other stories can run now; one that passed opens the way for its dependents."""
    if runner.setup.options.only is not None:
        return 0
    if story is None:
        return runnable_besides(stories, runner.session.stories, None)
    after = stories.with_passes({story.id: True}) if passed else stories
    return runnable_besides(after, runner.session.stories, story.id)


def _someone_else(runner: Runner, worked: Worked) -> bool:
    """Another agent of the crew could take over now."""
    others = [member for member in runner.setup.crew if member is not worked.begun.member]
    return at_work(others, runner.session.quota, runner.clock()) is not None


def _totals_with(runner: Runner, worked: Worked) -> Totals:
    """The session's totals, this start included: it is not written down yet."""
    totals = runner.totals()
    cost = cost_of(worked.finished.response, worked.begun.state)
    return msgspec.structs.replace(totals, cost_usd=totals.cost_usd + cost)


def failure_text(checks: tuple[CheckResult, ...], limit: int) -> str:
    """The output of the checks that failed, the end of each, for the next prompt."""
    failed = [check for check in checks if check.status is CheckStatus.FAILED]
    share = limit // max(1, len(failed))
    return "\n\n".join(f"$ {check.name}\n{check.output_tail[-share:]}" for check in failed)
