"""The loop: story → breaker → prompt → agent → evidence → journal → effects → views → decision."""

from functools import partial
from typing import NamedTuple

import msgspec

from ralphloop.core.events import StoryPassed, StoryReopened, StorySetAside
from ralphloop.core.interventions import CooledDown, MarkedByHand, VerifyRan
from ralphloop.core.model import (
    CheckResult,
    CheckStatus,
    Circuit,
    Decision,
    ExitDecision,
    Story,
    StoryList,
)
from ralphloop.core.planning import IDLE, choose, ending, marked_by_hand
from ralphloop.core.policy import reached
from ralphloop.core.proof import MOST_NAMES, TestReport
from ralphloop.core.run_state import Standing, VerifySeen, verify_was
from ralphloop.errors import InputError
from ralphloop.loop.before import move_base
from ralphloop.loop.begin import Round, begin
from ralphloop.loop.effects import apply_effects, second_chance, take_back, tell_taken_back
from ralphloop.loop.judging import Judgement, judge, learn_from, record
from ralphloop.loop.own_commits import HeadMove, go_on_from, look_at_head
from ralphloop.loop.repair import trouble
from ralphloop.loop.requests import handle_requests, pause
from ralphloop.loop.runner import Runner
from ralphloop.loop.steadily import steadily
from ralphloop.loop.waiting import all_away, hold, wait_after, wait_for_agent, wait_if_needed
from ralphloop.proc.steps import Steps, beside, short
from ralphloop.repo.snapshot import Snapshot

TO_BE_CHECKED = (
    "the checks of iteration {} are still to be run: `ralph run --continue` runs them, and not the"
    " agent"
)
# What the stories alone decide, and only when nobody works on one of them.
NOT_NOW = (ExitDecision.CONTINUE, ExitDecision.BLOCKED, ExitDecision.NO_RUNNABLE_STORY)


async def run_loop(runner: Runner) -> Decision:
    while True:
        if decision := await _before(runner):
            return decision
        try:
            choosing = partial(choose_next, runner)
            chosen = await beside(steadily(runner, partial(short, choosing)))
            if isinstance(chosen, Decision):
                return chosen
            if await beside(saw_verify(runner, chosen[0])):
                continue  # that took its time: look at everything again
            if (until := all_away(runner)) is not None:
                if decision := await wait_for_agent(runner, until):
                    return decision
                continue
            start = partial(begin, runner, *chosen)
            begun = await beside(steadily(runner, partial(short, start)))
        except InputError as error:  # a person is in the middle of editing it
            if decision := await hold(runner, error.message):
                return decision
            continue
        runner.held_for = ""
        if decision := await _iterate(runner, begun):
            return decision


async def _before(runner: Runner) -> Decision | None:
    """What stops or delays the next start."""
    handle_requests(runner)
    while True:
        if decision := not_again(runner) or await wait_if_needed(runner):
            return decision
        looking = partial(_look_around, runner)
        look = await beside(steadily(runner, partial(short, looking)))
        if look.trouble:
            if decision := await hold(runner, look.trouble):
                return decision
            continue
        if look.move is None:
            return None
        if look.move.obstacle:
            runner.expected_head = look.now.head or ""  # meant, once a person resumes
            resume = "`ralph resume` goes on from there"
            pause(runner, f"{look.move.words}; {resume}. {look.move.obstacle}")


class _Surroundings(NamedTuple):
    """The repository between two starts."""

    now: Snapshot
    trouble: str = ""  # why the next start has to wait
    move: HeadMove | None = None  # of HEAD, by somebody else


def _look_around(runner: Runner) -> _Surroundings:
    """What stands in the way of the next start; a commit that does not is taken in."""
    now, expected = runner.tree(), runner.expected_head
    if reason := trouble(runner, now):
        return _Surroundings(now, trouble=reason)
    move = look_at_head(runner, expected, now)
    if move is not None and not move.obstacle:
        go_on_from(runner, now, move)
    return _Surroundings(now, move=move)


def not_again(runner: Runner) -> Decision | None:
    """What ends the run instead of another start."""
    if runner.stop.requested:
        return runner.interrupted
    if runner.session.state.breaker.circuit is Circuit.OPEN:
        runner.intervene(CooledDown(at=runner.clock()))
    circuit = runner.session.state.breaker
    if circuit.circuit is Circuit.OPEN:  # still: its cool-down is not over
        return Decision(word=ExitDecision.CIRCUIT_OPEN, reasons=(circuit.reason,))
    decision = reached(runner.limits, runner.totals(), runner.clock())
    return by_name(runner, decision) if decision else None


def choose_next(runner: Runner) -> tuple[Story | None, StoryList | None] | Decision:
    """The next story and the list it is in, where there is one; why none can be worked on."""
    stories = listed(runner)
    if stories is None:
        return None, None
    story = choose(stories, runner.session.stories, only=runner.setup.options.only)
    if story is None:
        decision = by_name(runner, IDLE)
        return choose_next(runner) if decision is IDLE else decision
    if runner.session.story(story.id).has_a_chance:
        runner.intervene(second_chance(runner, story.id))
    move_base(runner, story.id)
    return story, stories


def listed(runner: Runner) -> StoryList | None:
    """The stories as they are; a mark that changed while no agent ran is a person's word."""
    stories = runner.story_list()
    if stories is not None:
        marks = marked_by_hand(stories, runner.session.stories)
        runner.intervene(MarkedByHand(marks=marks))
    return stories


def saw_verify(runner: Runner, story: Story | None) -> Steps[bool]:
    """Run a story's own command before its first start, and again once others have worked.

    Returns whether it ran.
    """
    if story is None or not story.verify or not runner.setup.may_verify(story.verify):
        return False
    state = runner.session.story(story.id)
    if not state.verify_again and (state.iterations or verify_was(state, story) is not None):
        return False  # begun, or it is known what the command shows
    seen = yield from runner.run_checks((), verify=story.verify)
    runner.seen = None  # it may have left files behind
    if seen:
        shown = what_it_showed(story.verify, seen[0])
        # Green with the story's own work of an earlier start: nobody knows whose doing that is.
        has_work = bool(state.start_tree) and state.start_tree != state.left_tree
        is_known = shown.status is not CheckStatus.PASSED or not has_work
        runner.intervene(VerifyRan(story=story.id, seen=shown if is_known else None))
    return True


def what_it_showed(argv: tuple[str, ...], result: CheckResult) -> VerifySeen:
    """What is kept of a story's own command, run before anybody worked on it."""
    from ralphloop.repo.named import file_of  # most turns run no command

    status = CheckStatus.NO_TESTS if result.ran_nothing else result.status
    report = result.report or TestReport()
    return VerifySeen(
        argv=argv,
        status=status,
        failed=tuple(report.failed)[:MOST_NAMES],
        # What names no file that is there is a test that is yet to be written.
        broken=tuple(name for name in report.errors if file_of(name))[:MOST_NAMES],
    )


async def _iterate(runner: Runner, begun: Round) -> Decision | None:
    """One start of the agent, to its end; a decision where it is not to continue."""
    from ralphloop.loop.agent import run_agent  # a session's turns start no agent

    judged = await beside(judge(runner, begun, await run_agent(runner, begun)))
    if judged.cut_short:  # among the checks: it stays unfinished, for them to be run again
        runner.owed_usd = judged.step.spent.cost_usd
        stopped, words = runner.interrupted, TO_BE_CHECKED.format(begun.number)
        return msgspec.structs.replace(stopped, reasons=(*stopped.reasons, words))
    decision = await beside(concluded(runner, judged, settle=False))
    is_outage = judged.step.analysis.outcome.is_infrastructure
    if decision or not is_outage or runner.stop.requested:
        return decision
    return await wait_after(runner, judged)


def concluded(runner: Runner, judged: Judgement, *, settle: bool = True) -> Steps[Decision | None]:
    """Write it down, do what it owes, learn from it, publish it; then whether it was the last."""
    judged = record(runner, judged)
    begun, step = judged.begun, judged.step
    owed = partial(apply_effects, runner, begun.number, step.effects, settle=settle)
    yield from steadily(runner, owed)
    learn_from(runner, judged)
    decision = step.decision
    runner.publish()
    if step.verdict.passed and not has_passed(runner, begun.story, begun.number):
        return None if decision.word in (*NOT_NOW, ExitDecision.PROJECT_COMPLETE) else decision
    if decision.word is ExitDecision.INTERRUPTED and runner.stop.requested:
        return runner.interrupted  # only we know whether it was a person or a signal
    if decision.word is ExitDecision.CONTINUE or not_upheld(runner, decision):
        return None
    return by_name(runner, decision)


def not_upheld(runner: Runner, decision: Decision) -> bool:
    """The last look before all is called done: a story may be open again."""
    if decision.word is not ExitDecision.PROJECT_COMPLETE:
        return False
    gone = take_back(runner)
    tell_taken_back(runner, None, gone)
    return bool(gone)


def has_passed(runner: Runner, story: Story | None, number: int) -> bool:
    """Said once the work is safe; a commit that was refused took the pass back."""
    if story is None:
        return True
    state = runner.session.story(story.id)
    if state.standing is Standing.PASSED:
        passed = StoryPassed(
            story=story.id, title=story.title, grade=state.grade, reasons=(state.reason,)
        )
        runner.emit(passed, number)
        return True
    held_back = StorySetAside if state.standing is Standing.SET_ASIDE else StoryReopened
    runner.emit(held_back(story=story.id, title=story.title, reason=state.reason), number)
    return False


def by_name(runner: Runner, decision: Decision) -> Decision:
    """The same decision with the stories by name, unless the last look shows them open again."""
    stories, states = runner.story_list(), runner.session.stories
    newest = runner.journal.latest_iterations(runner.run, 1)
    last = newest[0].record.analysis.status if newest else None
    named = ending(decision, stories, states, only=runner.setup.options.only, last=last)
    return decision if named != decision and not_upheld(runner, named) else named
