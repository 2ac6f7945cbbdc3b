"""Writing an iteration down: what the step decided, in one transaction, and telling it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ralphloop.core.events import IterationFinished, LoopEvent, StoryBlocked, StorySetAside
from ralphloop.core.limits import quota_wait
from ralphloop.core.step import Step
from ralphloop.core.story_state import Standing
from ralphloop.journal.records import FinishedIteration
from ralphloop.journal.session import CIRCUIT_KEY, encoded_state, quota_key
from ralphloop.loop import crew
from ralphloop.loop.judging import Judged, up_to_date
from ralphloop.loop.runner import Runner

_WAITING = {Standing.SET_ASIDE: StorySetAside, Standing.BLOCKED: StoryBlocked}


def record(runner: Runner, judged: Judged) -> Step:
    """Fold the iteration into the session and write everything at once."""
    judged = up_to_date(runner, judged)
    step, quota = judged.step, _quota_after(runner, judged)
    ended = _ended(runner, judged)
    runner.journal.finish_iteration(_finished(runner, judged, quota, ended))
    before = runner.session.state.breaker
    runner.session.state, runner.session.quota = step.state, quota
    runner.bus.tell(ended)
    _tell_more(runner, judged)
    runner.tell_circuit(before)
    return step


def _finished(
    runner: Runner, judged: Judged, quota: dict[str, float], ended: LoopEvent
) -> FinishedIteration:
    step, analysis = judged.step, judged.step.analysis
    learning = msgspec.structs.replace(step.iteration.learning, asked=judged.notes)
    return FinishedIteration(
        run=runner.run,
        n=judged.begun.number,
        finished_at=runner.clock(),
        outcome=str(analysis.outcome),
        decision=str(step.decision.word),
        status=str(analysis.status.status or "") if analysis.status else "",
        end_tree=judged.after.tree,
        spent=step.spent.with_usage(judged.asking),
        record=msgspec.structs.replace(step.iteration, learning=learning),
        effects=step.effects,
        state=encoded_state(step.state),
        stories={step.story: step.state.story(step.story)},
        meta={CIRCUIT_KEY: step.state.breaker, quota_key(runner.run): quota},
        events=(ended,),
    )


def _quota_after(runner: Runner, judged: Judged) -> dict[str, float]:
    """The agents' quota clocks: who has to wait, and until when."""
    now, limit = runner.clock(), judged.result.response.rate_limit
    wait = quota_wait(limit.resets_at if limit else None, now, judged.step.state.outages)
    outcome, name = judged.step.analysis.outcome, judged.begun.member.name
    return crew.after(runner.session.quota, name, outcome, round(now + wait, 1))


def _ended(runner: Runner, judged: Judged) -> LoopEvent:
    """What became of the iteration, for those who watch."""
    step = judged.step
    ended = IterationFinished(
        iteration=step.iteration,
        spent=step.spent.with_usage(judged.asking),
        attempts=step.state.story(step.story).attempts,
        warnings=tuple(_without_a_price(runner, judged)),
    )
    return runner.bus.made(ended, judged.begun.number)


def _without_a_price(runner: Runner, judged: Judged) -> Iterator[str]:
    """Said once, and only where it could not be known before: a limit that is none."""
    member, limit = judged.begun.member, runner.limits.max_cost_usd
    if not judged.step.spent.unpriced or not limit or runner.totals().unpriced:
        return
    from ralphloop.agents.prices import CANNOT_BE_KEPT, why_unpriced

    if why_unpriced(member.name, member.config):
        return
    model = judged.result.response.model or member.config.model
    why = f"no price is known for {model}" if model else "no cost was told"
    if judged.step.analysis.outcome.is_infrastructure:
        why = "this start was cut off before it told its cost"
    yield f"{CANNOT_BE_KEPT}{why}"


def _tell_more(runner: Runner, judged: Judged) -> None:
    """A story that waits now, for a person or for the others."""
    begun, state = judged.begun, judged.step.state.story(judged.step.story)
    kind, story = _WAITING.get(state.standing), begun.story
    if story is not None and kind is not None:
        told = kind(story=story.id, title=story.title, reason=state.reason)
        runner.bus.emit(told, begun.number)
