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
from ralphloop.loop.effects import apply_effects, restore_saved_work, take_back, tell_taken_back
from ralphloop.loop.judge_place import place_for
from ralphloop.loop.judging import Judgement, judge, learn_from, record
from ralphloop.loop.own_commits import HeadMove, go_on_from, look_at_head
from ralphloop.loop.proposing import accept_found
from ralphloop.loop.repair import trouble
from ralphloop.loop.requests import handle_requests, pause
from ralphloop.loop.run import Run
from ralphloop.loop.steadily import steadily, steadily_now
from ralphloop.loop.waiting import all_away, hold, wait_after, wait_for_agent, wait_if_needed
from ralphloop.loop.workspace import Workspace
from ralphloop.repo.snapshot import Snapshot

TO_BE_CHECKED = (
    "the checks of iteration {} are still to be run: `ralph run --continue` runs them, and not the"
    " agent"
)
# What the stories alone decide, and only when nobody works on one of them.
NOT_NOW = (ExitDecision.CONTINUE, ExitDecision.BLOCKED, ExitDecision.NO_RUNNABLE_STORY)


async def run_loop(run: Run, workspace: Workspace) -> Decision:
    while True:
        if decision := await _before(run, workspace):
            return decision
        try:
            chosen = await steadily_now(run, lambda: choose_next(run, workspace))
            if chosen.decision is not None:
                return chosen.decision
            if await run_verify_before_first_start(run, workspace, chosen.story):
                continue  # that took its time: look at everything again
            if (until := all_away(run)) is not None:
                if decision := await wait_for_agent(run, workspace, until):
                    return decision
                continue
            write_ahead = partial(begin, run, workspace, chosen.story, chosen.stories)
            begun = await steadily_now(run, write_ahead)
        except InputError as error:  # a person is in the middle of editing it
            if decision := await hold(run, workspace, error.message):
                return decision
            continue
        run.held_for = ""
        if decision := await _iterate(run, workspace, begun):
            return decision


async def _before(run: Run, workspace: Workspace) -> Decision | None:
    """What stops or delays the next start."""
    run.beat()
    handle_requests(run, workspace)
    while True:
        cool_down_circuit(run)
        if decision := reason_to_stop(run, workspace) or await wait_if_needed(run, workspace):
            return decision
        look = await steadily_now(run, lambda: _look_around(run, workspace))
        if look.trouble:
            if decision := await hold(run, workspace, look.trouble):
                return decision
            continue
        if look.move is None:
            return None
        if look.move.obstacle:
            workspace.expected_head = look.now.head or ""  # meant, once a person resumes
            resume = "`ralph resume` goes on from there"
            pause(run, f"{look.move.words}; {resume}. {look.move.obstacle}")


class _Surroundings(NamedTuple):
    """The repository between two starts."""

    now: Snapshot
    trouble: str = ""  # why the next start has to wait
    move: HeadMove | None = None  # of HEAD, by somebody else


def _look_around(run: Run, workspace: Workspace) -> _Surroundings:
    """What stands in the way of the next start; a commit that does not is taken in."""
    now = workspace.tree()
    expected = workspace.expected_head
    if reason := trouble(run, workspace, now):
        return _Surroundings(now, trouble=reason)
    move = look_at_head(run, workspace, expected, now)
    if move is not None and not move.obstacle:
        go_on_from(run, workspace, now, move)
    return _Surroundings(now, move=move)


def cool_down_circuit(run: Run) -> None:
    """Let an open circuit be half open again, once its cool-down is over."""
    if run.session.state.breaker.circuit is Circuit.OPEN:
        run.intervene(CooledDown(at=run.clock()))


def reason_to_stop(run: Run, workspace: Workspace) -> Decision | None:
    """What ends the run instead of another start; None where nothing does."""
    if run.stop.requested:
        return run.interrupted
    circuit = run.session.state.breaker
    if circuit.circuit is Circuit.OPEN:  # still: its cool-down is not over
        return Decision(word=ExitDecision.CIRCUIT_OPEN, reasons=(circuit.reason,))
    decision = reached(run.limits, run.totals(), run.clock())
    return final_decision(run, workspace, decision) if decision else None


class NextStory(NamedTuple):
    """What comes next: a story and the list it is in, or a plain prompt, or the end."""

    story: Story | None = None
    stories: StoryList | None = None  # None: a plain loop, or the end
    decision: Decision | None = None  # why nothing can be worked on


def choose_next(run: Run, workspace: Workspace) -> NextStory:
    """The next story, begun where it left off; the decision where there is none to work on."""
    only = run.setup.options.only
    while True:
        stories = reload_stories(run, workspace)
        if stories is None:
            return NextStory()
        story = choose(stories, run.session.stories, only=only)
        if story is not None:
            break
        decision = final_decision(run, workspace, IDLE)
        if decision is not IDLE:
            return NextStory(decision=decision)
        # A story turned out to be open again: choose once more.
    if run.session.story(story.id).has_a_chance:
        run.intervene(restore_saved_work(run, workspace, story.id))
    move_base(run, workspace, story.id)
    return NextStory(story=story, stories=stories)


def reload_stories(run: Run, workspace: Workspace) -> StoryList | None:
    """The stories as they are; a mark that changed while no agent ran is a person's word."""
    stories = workspace.story_list()
    if stories is not None:
        marks = marked_by_hand(stories, run.session.stories)
        run.intervene(MarkedByHand(marks=marks))
    return stories


async def run_verify_before_first_start(
    run: Run, workspace: Workspace, story: Story | None
) -> bool:
    """Run a story's own command before its first start, and again once others have worked.

    Returns whether it ran.
    """
    if story is None or not story.verify or not run.setup.may_verify(story.verify):
        return False
    from ralphloop.loop.sealing import names_sealed  # few stories have such a command

    if names_sealed(run, workspace, story):
        return False  # what is sealed ran before any work
    state = run.session.story(story.id)
    is_known = state.totals.iterations > 0 or verify_was(state, story) is not None
    if is_known and not state.base.verify_again:
        return False  # begun, or it is known what the command shows
    place = await place_for(run, workspace, workspace.tree())
    seen = await place.run_checks(run, (), verify=story.verify)
    workspace.touched()  # it may have left files behind
    if seen:
        shown = what_it_showed(story.verify, seen[0])
        # Green with the story's own work of an earlier start: nobody knows whose doing that is.
        has_work = bool(state.base.start_tree) and state.base.start_tree != state.base.left_tree
        is_known = shown.status is not CheckStatus.PASSED or not has_work
        run.intervene(VerifyRan(story=story.id, seen=shown if is_known else None))
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


async def _iterate(run: Run, workspace: Workspace, begun: Round) -> Decision | None:
    """One start of the agent, to its end; a decision where it is not to continue."""
    from ralphloop.loop.agent import run_agent  # a session's turns start no agent

    judged = await judge(run, workspace, begun, await run_agent(run, workspace, begun))
    if judged.cut_short:  # among the checks: it stays unfinished, for them to be run again
        run.owed_usd = judged.step.spent.cost_usd
        stopped = run.interrupted
        words = TO_BE_CHECKED.format(begun.number)
        return msgspec.structs.replace(stopped, reasons=(*stopped.reasons, words))
    decision = await finish_iteration(run, workspace, judged)
    is_outage = judged.step.analysis.outcome.is_infrastructure
    if decision or not is_outage or run.stop.requested:
        return decision
    return await wait_after(run, workspace, judged)


async def finish_iteration(run: Run, workspace: Workspace, judged: Judgement) -> Decision | None:
    """Write it down, do what it owes, learn from it, publish it; then whether it was the last."""
    judged = record(run, judged)
    begun = judged.begun
    step = judged.step
    owed = partial(apply_effects, run, workspace, begun.number, step.effects)
    await steadily(run, owed)
    learn_from(run, workspace, judged)
    decision = step.decision
    has_more = accept_found(run, workspace)
    workspace.publish(run)
    if step.verdict.passed and not announce_story_result(run, begun.story, begun.number):
        return None if decision.word in (*NOT_NOW, ExitDecision.PROJECT_COMPLETE) else decision
    if decision.word is ExitDecision.INTERRUPTED and run.stop.requested:
        return run.interrupted  # only we know whether it was a person or a signal
    if decision.word is ExitDecision.CONTINUE or reopen_unproven_stories(run, workspace, decision):
        return None
    if has_more and decision.word is ExitDecision.PROJECT_COMPLETE:
        return None  # what was found is a story now
    return final_decision(run, workspace, decision)


def reopen_unproven_stories(run: Run, workspace: Workspace, decision: Decision) -> bool:
    """The last look before all is called done: a story may be open again."""
    if decision.word is not ExitDecision.PROJECT_COMPLETE:
        return False
    gone = take_back(run, workspace)
    tell_taken_back(run, workspace, None, gone)
    return bool(gone)


def announce_story_result(run: Run, story: Story | None, number: int) -> bool:
    """Said once the work is safe; a commit that was refused took the pass back."""
    if story is None:
        return True
    state = run.session.story(story.id)
    if state.standing is Standing.PASSED:
        passed = StoryPassed(
            story=story.id, title=story.title, grade=state.proof.grade, reasons=(state.reason,)
        )
        run.emit(passed, number)
        return True
    held_back = StorySetAside if state.standing is Standing.SET_ASIDE else StoryReopened
    run.emit(held_back(story=story.id, title=story.title, reason=state.reason), number)
    return False


def final_decision(run: Run, workspace: Workspace, decision: Decision) -> Decision:
    """The same decision with the stories by name, unless the last look shows them open again."""
    stories = workspace.story_list()
    states = run.session.stories
    newest = run.journal.latest_iterations(run.id, 1)
    last = newest[0].record.analysis.status if newest else None
    named = ending(decision, stories, states, only=run.setup.options.only, last=last)
    if named != decision and reopen_unproven_stories(run, workspace, named):
        return decision
    return named
