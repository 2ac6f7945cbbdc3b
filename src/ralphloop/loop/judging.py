"""From an agent that has ended to a decision that is written down.

`judge` puts right what is not the agent's to change, measures, finds out what `needs` names and
takes the `step`.  `record` writes what the step decided in one transaction, and tells it.  What
learning makes of it decides nothing and ends no run.
"""

from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from ralphloop.core.events import IterationFinished, StoryBlocked, StorySetAside
from ralphloop.core.iteration import Result
from ralphloop.core.model import ChangedFiles, Evidence, Outcome, Value
from ralphloop.core.needs import Need, needs
from ralphloop.core.planning import facts_of
from ralphloop.core.progress import footprint, is_trodden
from ralphloop.core.proof import Trial
from ralphloop.core.run_state import RunState
from ralphloop.core.step import Step, step
from ralphloop.core.story import StoryList
from ralphloop.core.story_state import Standing
from ralphloop.journal.records import FinishedIteration
from ralphloop.journal.session import load_reports, quota_key, reports_key
from ralphloop.loop.begin import Begun
from ralphloop.loop.doubting import beside_the_tests, opinions
from ralphloop.loop.effects import take_back, tell_taken_back
from ralphloop.loop.prepare import at_work, quota_after
from ralphloop.loop.repair import (
    back_on_the_branch,
    left_open,
    lost_heads,
    put_back_own_files,
    put_back_settings,
    read_back,
    stashed,
)
from ralphloop.loop.runner import Runner
from ralphloop.proc.steps import Steps
from ralphloop.repo.snapshot import Snapshot

_WAITING = {Standing.SET_ASIDE: StorySetAside, Standing.BLOCKED: StoryBlocked}


class Measured(Value, kw_only=True):
    """The work tree and the story list after the agent ended."""

    after: Snapshot
    evidence: Evidence  # as far as it is known without running anything
    stories: StoryList | None  # as the list is now, claims put back
    doubts: tuple[str, ...] = ()  # what was taken away or was not its to change, in words


class Judged(Value, kw_only=True):
    """An iteration with its verdict."""

    begun: Begun
    result: Result
    after: Snapshot
    evidence: Evidence
    doubts: tuple[str, ...] = ()  # what was measured beside the evidence
    before: RunState  # the state the step was taken from
    step: Step

    @property
    def cut_short(self) -> bool:
        """Not all checks could be run: nothing of this may be written down."""
        return self.step.iteration.evidence.checks_cut


def judge(
    runner: Runner, begun: Begun, result: Result, look: Callable[[], Measured] | None = None
) -> Steps[Judged]:
    """Measure, find out all that is needed, weigh everything, decide."""
    look = look or partial(_measured, runner, begun)
    measured, start, policy = look(), begun.start, runner.policy
    evidence, state, disturbed = measured.evidence, runner.session.state, ""
    while need := needs(state, start, result, evidence, policy):
        found: dict[str, object] = {}
        if need is Need.CHECKS:
            found = yield from _checked(runner, begun)
        elif need is Need.DOUBTS:
            doubts = (*measured.doubts, *beside_the_tests(runner, begun, measured.after, evidence))
            found = {"doubts": tuple(dict.fromkeys(doubts))}
        elif need is Need.OPINIONS:
            found = {"opinions": (yield from opinions(runner, begun, measured.after))}
        elif disturbed:
            found = {"trial": Trial(untried=(f"not tried again: {disturbed}",))}
        else:
            from ralphloop.loop.trying import tried

            came = yield from tried(runner, begun, measured.after, evidence)
            found = {"trial": came.trial, "checked_tree": came.tree, "checks_cut": came.is_cut}
            if disturbed := came.saved:  # what was checked is there no more: look at all again
                runner.remarks = (*measured.evidence.remarks, disturbed)
                measured, found = look(), {}
                evidence = measured.evidence
        evidence = msgspec.structs.replace(evidence, **found)
    now, mine = runner.clock(), begun.member.clocks[result.response.outcome is Outcome.FATAL]
    others = [one for one in runner.setup.crew if mine not in one.clocks]
    only, states = runner.setup.options.only, runner.session.stories
    evidence = msgspec.structs.replace(
        evidence,
        stories=facts_of(runner.as_known(measured.stories), states, begun.story, only=only),
        used=runner.totals(),
        fallback=at_work(others, runner.session.quota, now) is not None,
        at=now,
    )
    state = runner.session.state  # a person may have been heard meanwhile
    return Judged(
        begun=begun,
        result=result,
        after=measured.after,
        evidence=evidence,
        doubts=measured.doubts,
        before=state,
        step=step(state, start, result, evidence, policy),
    )


def _measured(runner: Runner, begun: Begun) -> Measured:
    """What is different now that the agent has ended, and what it broke that is not its own."""
    number, before = begun.number, begun.before
    put_back_own_files(runner)
    elsewhere = back_on_the_branch(runner, number, before, begun.list_bytes)
    meddled = put_back_settings(runner, number, begun.settings)
    listed = read_back(runner, begun.stories, begun.list_bytes, begun.state.asked)
    runner.seen = None
    after = runner.tree()
    runner.expected_head = after.head or ""  # if it moves, somebody else moved it
    lost = lost_heads(runner, number, begun.state, before, after)
    gone = take_back(runner) if lost and not runner.lane else {}  # a lane holds no landed work
    tell_taken_back(runner, number, gone)
    unfinished = left_open(runner) or elsewhere or (runner.left_lane() if runner.left_lane else "")
    remarks, runner.remarks = runner.remarks, ()
    changed = runner.measure.diff(before, after)
    commits = runner.measure.commits(before.head, after.head)
    hidden = stashed(runner, begun.stashes)
    said = (*listed.findings, *meddled, *remarks, *lost.values(), unfinished, hidden)
    evidence = Evidence(
        files_changed=changed.count,
        commits=commits.count,
        tree=after.tree,
        work_files=changed.work_files(),
        head=after.head or "",
        changed=ChangedFiles(
            count=changed.count,
            insertions=changed.insertions,
            deletions=changed.deletions,
            subjects=commits.subjects,
        ),
        remarks=tuple(filter(None, said)),
        unfinished=unfinished,
        passes_set=begun.story is not None and begun.story.id in listed.claimed,
        asked=listed.asked,
        lost=lost,
    )
    if runner.lane:  # what costs more is found out where it lands
        evidence = msgspec.structs.replace(evidence, doubts=(), trial=Trial(), opinions=())
    net_lines = _net_lines(runner, begun, evidence)
    evidence = msgspec.structs.replace(evidence, net_lines=net_lines)
    stories = listed.stories.with_passes(dict.fromkeys(gone, False)) if listed.stories else None
    doubts = (*lost.values(), *meddled, *listed.doubts)
    return Measured(after=after, evidence=evidence, stories=stories, doubts=doubts)


def _net_lines(runner: Runner, begun: Begun, evidence: Evidence) -> int | None:
    """What the story's last unclaimed iterations come to, where they may tread water."""
    window = runner.policy.treading_window
    trail = (*begun.state.trail, footprint(begun.before.tree, evidence))[-window:]
    if not 0 < window <= len(trail) or not is_trodden(trail):
        return None
    return runner.measure.net_lines(trail[0].tree, evidence.tree or "")


def _checked(runner: Runner, begun: Begun) -> Steps[dict[str, object]]:
    from ralphloop.repo.checks import compare

    runner.seen = None  # checks leave files behind
    frozen, verify = runner.session.frozen, begun.story.verify if begun.story else None
    checks = yield from runner.run_checks(frozen.checks, verify=verify)
    wanted = len(frozen.checks) + (verify is not None)
    return {
        "checks": checks,
        "checks_cut": runner.stop.requested and len(checks) < wanted,
        "comparison": compare(frozen.baseline, checks, runner.config.checks.baseline),
    }


# --- writing it down -------------------------------------------------------------------------


def record(runner: Runner, judged: Judged) -> Step:
    """Fold the iteration into the session and write everything at once."""
    begun, result, before = judged.begun, judged.result, runner.session.state
    if before is not judged.before:  # something changed the run since: decide again
        again = step(before, begun.start, result, judged.evidence, runner.policy)
        judged = msgspec.structs.replace(judged, before=before, step=again)
    done, analysis = judged.step, judged.step.analysis
    now, away = runner.clock(), round(done.away_until, 1)
    clock = begun.member.clocks[analysis.outcome is Outcome.FATAL]
    quota = quota_after(runner.session.quota, clock, analysis.outcome, away)
    state = done.state.story(done.story)
    told = IterationFinished(
        iteration=done.iteration,
        spent=done.spent,
        attempts=state.attempts,
        warnings=tuple(_without_a_price(runner, judged)),
    )
    ended = runner.made(told, begun.number)
    runner.journal.finish_iteration(
        FinishedIteration(
            run=runner.run,
            n=begun.number,
            finished_at=now,
            outcome=str(analysis.outcome),
            decision=str(done.decision.word),
            status=str(analysis.status.status or "") if analysis.status else "",
            end_tree=judged.after.tree,
            spent=done.spent,
            record=done.iteration,
            effects=done.effects,
            state=done.state,
            stories={done.story: state},
            meta={quota_key(runner.run): quota, **_newest_reports(runner, judged)},
            events=(ended,),
        )
    )
    runner.session.state, runner.session.quota = done.state, quota
    runner.sink(ended)
    kind, story = _WAITING.get(state.standing), begun.story
    if story is not None and kind is not None:
        waits = kind(story=story.id, title=story.title, reason=state.reason)
        runner.emit(waits, begun.number)
    runner.tell_circuit(before.breaker)
    return done


def _newest_reports(runner: Runner, judged: Judged) -> dict[str, object]:
    """What the next story is compared with: the tests as a passed one leaves them."""
    checks = judged.evidence.checks or ()
    newest = {result.name: result.report for result in checks if result.report is not None}
    if not judged.step.verdict.passed or not newest:
        return {}
    return {reports_key(runner.run): load_reports(runner.journal, runner.run) | newest}


def _without_a_price(runner: Runner, judged: Judged) -> Iterator[str]:
    """Said once, and only where it could not be known before: a limit that is none."""
    member, limit = judged.begun.member, runner.limits.max_cost_usd
    if not judged.step.spent.unpriced or not limit or runner.totals().unpriced:
        return
    from ralphloop.agents.prices import CANNOT_BE_KEPT, why_unpriced

    if why_unpriced(member.name, member.config, runner.setup.options.env):
        return
    response = judged.result.response
    model = response.model or member.config.model
    why = f"no price is known for {model}" if model else "no cost was told"
    if response.reader == "codex" and not model:
        why = "codex does not name its model"
    if judged.step.analysis.outcome.is_infrastructure:
        why = "this start was cut off before it told its cost"
    yield f"{CANNOT_BE_KEPT}{why}"


# --- what it taught --------------------------------------------------------------------------


def learn_from(runner: Runner, judged: Judged) -> None:
    """Write down what an attempt taught, and aggregate every few stories."""
    config, story, step = runner.config.learning, judged.begun.story, judged.step
    silent = step.analysis.outcome is Outcome.EMPTY and not step.iteration.changed.count
    silent = silent or step.analysis.refused
    if runner.setup.options.session and not step.verdict.passed:
        return  # a person waits for the turn to end
    if not config.enabled or story is None or silent:
        return
    from ralphloop.learning.capturing import capture
    from ralphloop.learning.publish import after_story
    from ralphloop.redaction import secret_values

    project, state = runner.setup.project, runner.session.story(story.id)
    head = runner.expected_head  # of the commit made for the story, or the agent's last one
    has_commit = state.standing is Standing.PASSED and head != state.start_head
    capture(
        project,
        runner.journal,
        runner.run,
        judged.begun.number,
        story,
        commit=head if has_commit else "",
        secrets=secret_values(runner.setup.options.env),
    )
    if state.standing is not Standing.OPEN:
        ended = sum(s.standing is not Standing.OPEN for s in runner.session.stories.values())
        after_story(project, config, ended_stories=ended, now=runner.clock())
