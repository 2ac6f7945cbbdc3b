"""A recorded night, folded again: what the journal says against what the code decides now.

The journal keeps what each start said and what was measured after it, the state the run began with
and every change between two iterations.  All of it goes through the same `step` once more.  With
other settings the fold goes its own way: a start the changed night would not have made is named
and left out; what it would have made instead nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ralphloop.core.interventions import AnyIntervention, SecondChance, intervene
from ralphloop.core.iteration import Iteration, Result, Start
from ralphloop.core.model import Analysis, Decision, Evidence, ExitDecision, Value
from ralphloop.core.policy import Policy
from ralphloop.core.run_state import RunState
from ralphloop.core.step import Step, step
from ralphloop.core.story_state import Standing, StoryState, load_states
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import InterventionRecord, IterationRecord

_PAGE = 200


class Again(Value, kw_only=True):
    """One recorded start, played again."""

    record: IterationRecord
    taken: Step | None = None  # None: it would not have been made
    why_not: str = ""
    differs: tuple[str, ...] = ()  # what the journal says otherwise, in words
    words_cut: bool = False  # the answer was longer than what the journal keeps


class ReplayedNight(Value, kw_only=True):
    """The whole of a run, played again."""

    starts: tuple[Again, ...] = ()
    stories: dict[str, tuple[StoryState, StoryState]] = msgspec.field(
        default_factory=dict
    )  # recorded and replayed, where they differ

    @property
    def is_identical(self) -> bool:
        return not self.stories and all(one.taken and not one.differs for one in self.starts)

    @property
    def saved_usd(self) -> float:
        """What the starts cost that would not have been made."""
        return sum(one.record.cost_usd for one in self.starts if one.taken is None)


def replay(
    journal: Queries,
    run: str,
    *,
    beginning: RunState,
    policy: Policy,
    resumes: bool,
    other_limits: dict[str, object],
) -> ReplayedNight:
    """Fold a recorded run again; `other_limits` replace those that were in force."""
    fold = _Fold(beginning, policy, other_limits, resumes=resumes)
    changes = journal.interventions(run)
    starts = []
    for record in _finished(journal, run):
        while changes and _came_before(changes[0], record):
            fold.change(changes.pop(0).change)
        starts.append(fold.start(record))
    for late in changes:
        fold.change(late.change)
    kept = load_states(journal.story_states(run))
    return ReplayedNight(starts=tuple(starts), stories=fold.differences(kept))


def _finished(journal: Queries, run: str) -> Iterator[IterationRecord]:
    after = 0
    while page := journal.iterations(run, after=after, limit=_PAGE):
        yield from (record for record in page if record.finished_at is not None)
        after = page[-1].n


def _came_before(change: InterventionRecord, record: IterationRecord) -> bool:
    """Before the start, or while its agent worked."""
    return change.after < record.n or change.at < (record.finished_at or 0.0)


class _Fold:
    """The state of a night while it is played."""

    def __init__(
        self,
        beginning: RunState,
        policy: Policy,
        other_limits: dict[str, object],
        *,
        resumes: bool,
    ) -> None:
        self._state = beginning
        self._policy = policy
        self._other = other_limits
        self._resumes = resumes
        self._ended: Decision | None = None

    def change(self, change: AnyIntervention) -> None:
        """What no iteration did; a second chance is given only to what is set aside here too."""
        if isinstance(change, SecondChance):
            story = self._state.story(change.story)
            if story.standing is not Standing.SET_ASIDE or story.second_chance:
                return
        self._state = intervene(self._state, change, self._policy)
        self._ended = None  # a person went on

    def start(self, record: IterationRecord) -> Again:
        if why_not := self._why_not(record):
            return Again(record=record, why_not=why_not)
        kept = record.record
        start = Start(
            number=record.n,
            story=kept.story,
            state=self._story_before(record),
            tree=record.tree,
            head=record.head,
            agent=kept.agent,
            prompt=kept.prompt,
            learning=kept.learning,
        )
        limits = msgspec.structs.replace(kept.limits, **self._other)
        policy = msgspec.structs.replace(self._policy, limits=limits)
        taken = step(self._state, start, _result(kept), _evidence(kept), policy)
        self._state = taken.state
        self._ended = taken.decision if taken.decision.word is not ExitDecision.CONTINUE else None
        return Again(
            record=record,
            taken=taken,
            differs=tuple(_differences(record, taken)),
            words_cut=kept.response.is_cut,
        )

    def _why_not(self, record: IterationRecord) -> str:
        if self._ended is not None and self._ended.word is not ExitDecision.INTERRUPTED:
            return f"the run would have ended: {self._ended.sentence}"
        story = self._state.story(record.story)
        if record.story is None or story.standing is Standing.OPEN:
            return ""
        words = {
            Standing.SET_ASIDE: "would have been set aside",
            Standing.BLOCKED: "would have waited for a person",
            Standing.PASSED: "would have passed",
        }
        reason = f": {story.reason}" if story.reason else ""
        return f"{record.story} {words[story.standing]} before{reason}"

    def _story_before(self, record: IterationRecord) -> StoryState:
        state = self._state.story(record.story)
        goes_on = self._resumes and state.session_agent == record.record.agent
        return state if goes_on else state.fresh_conversation()

    def differences(self, kept: dict[str, StoryState]) -> dict[str, tuple[StoryState, StoryState]]:
        """Stories that stand, or passed, otherwise than the journal says."""
        found = {}
        for name in dict.fromkeys((*kept, *self._state.stories)):
            was, now = kept.get(name, StoryState()), self._state.story(name)
            if _essence(was) != _essence(now):
                found[name] = (was, now)
        return found


def _essence(state: StoryState) -> tuple[Standing, str, int]:
    return state.standing, state.grade, state.attempts


def _result(kept: Iteration) -> Result:
    return Result(
        response=kept.response.response(),
        asked=kept.asked.response() if kept.asked else None,
        end=kept.end,
        stopped_because=kept.stopped_because,
        leftovers=kept.leftovers,
        stderr_tail=kept.stderr_tail,
    )


def _evidence(kept: Iteration) -> Evidence:
    judged_here = kept.story is not None  # what passed is to be decided again
    passed = None if judged_here else kept.evidence.stories_passed
    return msgspec.structs.replace(kept.evidence, changed=kept.changed, stories_passed=passed)


def _differences(record: IterationRecord, taken: Step) -> Iterator[str]:
    kept, now = record.record, taken.iteration
    if kept.decision != now.decision:
        yield f"decision {kept.decision.sentence} → {now.decision.sentence}"
    if kept.verdict != now.verdict:
        yield f"story {_verdict(kept)} → {_verdict(now)}"
    before = [effect.kind for effect in record.effects]
    after = [effect.kind for effect in taken.effects]
    if before != after:
        yield f"owed: {', '.join(before) or 'nothing'} → {', '.join(after) or 'nothing'}"
    elif _without_number(kept.analysis) != _without_number(now.analysis):
        yield from _weighed_otherwise(kept.analysis, now.analysis)


def _without_number(analysis: Analysis) -> Analysis:
    """Left-out starts move the numbers of later ones; that is no difference."""
    return msgspec.structs.replace(analysis, iteration=0, transition=None)


def _weighed_otherwise(kept: Analysis, now: Analysis) -> Iterator[str]:
    for name in kept.__struct_fields__:
        was, is_now = getattr(kept, name), getattr(now, name)
        if was != is_now and name not in ("iteration", "transition"):
            yield f"{name.replace('_', ' ')}: {was} → {is_now}"


def _verdict(kept: Iteration) -> str:
    verdict = kept.verdict
    words = f"passed ({verdict.grade})" if verdict.passed else "not passed"
    return f"{words}: {'; '.join(verdict.reasons)}" if verdict.reasons else words
