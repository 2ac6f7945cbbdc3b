"""The loop.

next story → breaker → prompt → agent → evidence → analysis → journal → effects → views → decision
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ralphloop.core.events import StoryPassed, StoryReopened, StorySetAside
from ralphloop.core.interventions import MarkedByHand, SecondChance, VerifyRan
from ralphloop.core.limits import reached
from ralphloop.core.model import Decision, ExitDecision
from ralphloop.core.planning import choose, ending, marked_by_hand, nothing_to_run
from ralphloop.core.step import Step
from ralphloop.core.story import Story, StoryList
from ralphloop.core.story_state import Standing, VerifySeen, verify_was
from ralphloop.errors import InputError
from ralphloop.loop.effects import apply_effects
from ralphloop.loop.ending import stays_open
from ralphloop.loop.iteration import Begun, begin, measured, run_agent
from ralphloop.loop.judging import Judged, judge
from ralphloop.loop.memory import ask_about, learn_from
from ralphloop.loop.putting_right import moved_head, trouble
from ralphloop.loop.recording import record
from ralphloop.loop.requests import handle_requests, pause
from ralphloop.loop.runner import Runner
from ralphloop.loop.upheld import take_back, tell_taken_back
from ralphloop.loop.waiting import hold, wait_after, wait_if_needed
from ralphloop.proc.steps import Steps, beside

_DECIDED_BY_STORIES = (
    ExitDecision.BLOCKED,
    ExitDecision.CONTINUE,
    ExitDecision.NO_RUNNABLE_STORY,
    ExitDecision.PROJECT_COMPLETE,
)


async def run_loop(runner: Runner) -> Decision:
    """Work until the project is done or going on would make no sense."""
    while True:
        if decision := await _before(runner):
            return decision
        try:
            chosen = choose_next(runner)
            if isinstance(chosen, Chosen) and await beside(saw_verify(runner, chosen.story)):
                continue  # that took its time: look at everything again
            begun = begin(runner, *chosen) if isinstance(chosen, Chosen) else chosen
        except InputError as error:  # a person is in the middle of editing it
            if decision := await hold(runner, error.message):
                return decision
            continue
        if isinstance(begun, Decision):
            return begun
        runner.held_for = ""
        if decision := await _iterate(runner, begun):
            return decision


async def _before(runner: Runner) -> Decision | None:
    """What stops or delays the next start."""
    handle_requests(runner)
    while True:
        if decision := not_again(runner):
            return decision
        if decision := await wait_if_needed(runner):
            return decision
        if runner.stop.requested:
            return interrupted(runner)  # that is what ended the wait
        now = runner.look()
        if reason := trouble(runner, now):
            if decision := await hold(runner, reason):
                return decision
        elif moved := moved_head(runner, now):
            runner.session.expected_head = now.head or ""  # meant, once a person resumes
            pause(runner, f"{moved}; `ralph resume` goes on from there")
        else:
            return None


def not_again(runner: Runner) -> Decision | None:
    """What ends the run instead of another start."""
    if runner.stop.requested:
        return interrupted(runner)
    if decision := stays_open(runner):
        return decision
    if decision := reached(runner.limits, runner.totals()):
        return _ending(runner, decision)
    return None


class Chosen(NamedTuple):
    """What comes next; no story where there is no list."""

    story: Story | None
    stories: StoryList | None


def choose_next(runner: Runner) -> Chosen | Decision:
    """The next story; a decision where none can be worked on."""
    stories, story = _current_list(runner), None
    if stories is not None:
        choice = choose(stories, runner.session.stories, only=runner.setup.options.only)
        if choice is None:
            only, last = runner.setup.options.only, runner.last_block()
            decision = nothing_to_run(stories, runner.session.stories, only=only, last=last)
            return choose_next(runner) if _not_upheld(runner, decision) else decision
        if choice.second_chance:
            runner.intervene(SecondChance(story=choice.story.id))
        story = choice.story
    return Chosen(story, stories)


def saw_verify(runner: Runner, story: Story | None) -> Steps[bool]:
    """Run a story's own command before its first start; False where that need not be."""
    if story is None or not _lacks_verify(runner, story):
        return False
    runner.after = None  # it may leave files behind
    seen = yield from runner.run_checks((), verify=story.verify)
    status = seen[0].status if seen else None
    if status is not None:
        shown = VerifySeen(argv=story.verify or (), status=status)
        runner.intervene(VerifyRan(story=story.id, seen=shown))
    return True


def _lacks_verify(runner: Runner, story: Story) -> bool:
    """Not begun, and nobody knows yet what its own command shows."""
    state = runner.session.story(story.id)
    is_new = state.iterations == 0 and verify_was(state, story) is None
    return bool(story.verify) and is_new


async def _iterate(runner: Runner, begun: Begun) -> Decision | None:
    """One start of the agent, to its end; a decision where it is not to continue."""
    # A session's turns start no agent, and are spared these.
    from ralphloop.loop.ahead import write_end
    from ralphloop.loop.asking import asked_for_status

    finished = await asked_for_status(runner, begun, await run_agent(runner, begun))
    write_end(runner, begun, finished)
    judged = await beside(judge(runner, measured(runner, begun, finished)))
    if judged.cut_short:
        return _checks_owed(runner, judged)
    judged = await ask_about(runner, judged)
    step = record(runner, judged)
    await beside(apply_effects(runner, begun.number, settle=False))
    learn_from(runner, judged)
    if decision := concluded(runner, judged, step):
        return decision
    outcome = step.analysis.outcome
    if not outcome.is_infrastructure or runner.stop.requested:
        return None
    quota = judged.result.response.rate_limit
    return await wait_after(runner, outcome, quota.resets_at if quota else None)


def _checks_owed(runner: Runner, judged: Judged) -> Decision:
    """Stopped among the checks: the iteration stays unfinished, for them to be run again."""
    runner.owed_usd = judged.step.spent.cost_usd
    words = (
        f"the checks of iteration {judged.begun.number} are still to be run:"
        " `ralph run --continue` runs them, and not the agent"
    )
    stopped = interrupted(runner)
    return msgspec.structs.replace(stopped, reasons=(*stopped.reasons, words))


def concluded(runner: Runner, judged: Judged, step: Step) -> Decision | None:
    """After an iteration whose effects are done: publish it, and say whether it was the last."""
    begun, decision = judged.begun, step.decision
    runner.remember_head(judged.after)
    runner.publish_now_and_then()
    if step.verdict.passed and not _has_passed(runner, begun.story, begun.number):
        return None if decision.word in _DECIDED_BY_STORIES else decision
    if decision.word is ExitDecision.INTERRUPTED and runner.stop.requested:
        return interrupted(runner)  # only we know whether it was a person or a signal
    if decision.word is ExitDecision.CONTINUE or _not_upheld(runner, decision):
        return None
    return _ending(runner, decision)


def _not_upheld(runner: Runner, decision: Decision) -> bool:
    """The last look before all is called done: a story may be open again."""
    if decision.word is not ExitDecision.PROJECT_COMPLETE:
        return False
    gone = take_back(runner)
    tell_taken_back(runner, None, gone)
    return bool(gone)


def _has_passed(runner: Runner, story: Story | None, number: int) -> bool:
    """Said once the work is safe; a commit that was refused took the pass back."""
    if story is None:
        return True
    state = runner.session.story(story.id)
    if state.standing is Standing.PASSED:
        passed = StoryPassed(
            story=story.id, title=story.title, grade=state.grade, reasons=(state.reason,)
        )
        runner.bus.emit(passed, number)
        return True
    held_back = StorySetAside if state.standing is Standing.SET_ASIDE else StoryReopened
    runner.bus.emit(held_back(story=story.id, title=story.title, reason=state.reason), number)
    return False


def interrupted(runner: Runner) -> Decision:
    """A person, or a signal, ended the run."""
    return Decision(word=ExitDecision.INTERRUPTED, reasons=(runner.stop.reason or "stopped",))


def _current_list(runner: Runner) -> StoryList | None:
    """The list on disk; a mark that changed while no agent ran is a person's word."""
    stories = runner.story_list()
    if stories is not None:
        runner.intervene(MarkedByHand(marks=marked_by_hand(stories, runner.session.stories)))
    return stories


def _ending(runner: Runner, decision: Decision) -> Decision:
    """The same decision with the stories by name, unless the last look shows them open again."""
    named = ending(
        decision,
        runner.story_list(),
        runner.session.stories,
        only=runner.setup.options.only,
        last=runner.last_block(),
    )
    return decision if named != decision and _not_upheld(runner, named) else named
