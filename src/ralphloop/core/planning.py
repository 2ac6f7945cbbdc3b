"""Which story is worked on next, and how a run ends, in words (`ENDINGS`), when none can be.

A story is ready when it is open and everything it depends on has passed; the lowest priority number
comes first, stories without one last, then file order.
"""

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection
from enum import StrEnum
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import NamedTuple

import msgspec

from ralphloop.core.model import (
    Decision,
    ExitDecision,
    RunLimit,
    Story,
    StoryFacts,
    StoryList,
    Value,
)
from ralphloop.core.policy import Limits
from ralphloop.core.run_state import Standing, States, state_of
from ralphloop.core.totals import Expense, Totals
from ralphloop.text.plain import counted
from ralphloop.text.status_block import StatusBlock, advice_of

_LIMITS = (ExitDecision.MAX_ITERATIONS, ExitDecision.BUDGET_EXHAUSTED, ExitDecision.USAGE_LIMIT)
IDLE = Decision(word=ExitDecision.NO_RUNNABLE_STORY)  # nothing can be worked on
_BY_STORIES = (ExitDecision.BLOCKED, ExitDecision.NO_RUNNABLE_STORY, *_LIMITS)


def ready(stories: StoryList, *, unavailable: Collection[str] = ()) -> list[Story]:
    passed = {story.id for story in stories.stories if story.passes}
    apart = frozenset(unavailable)
    found = (
        story
        for story in stories.stories
        if not story.passes and story.id not in apart and passed.issuperset(story.depends_on)
    )
    return sorted(found, key=rank)


def rank(story: Story) -> tuple[bool, int | float, int]:
    return (story.priority is None, story.priority or 0, story.index)


def choose(stories: StoryList, states: States, *, only: str | None = None) -> Story | None:
    """Dependency-ready, by priority, by file order; then stories set aside, once more each."""
    return next(iter(who_starts(stories, states, room=1, only=only)), None)


MOST_RETURNS = 2  # from landing; then a story waits until it is alone


class WaitsFor(StrEnum):
    """What a story that could be worked on waits for."""

    LANE = "lane"  # every one is busy
    COLLISION = "collision"  # another story is expected to change the same files
    ANOTHER_ALONE = "another_alone"  # another story came back too often: nothing runs beside it
    BEING_ALONE = "being_alone"  # it came back too often itself
    LIMITS = "limits"  # of the whole run: a lane is free, and no more may be paid for at once
    STORIES = "stories"  # it depends on them


class StoryWait(Value, kw_only=True):
    """Why a story does not start now, and because of which other one."""

    waits_for: WaitsFor = WaitsFor.LANE
    other: str = ""  # by name; several in words

    @property
    def words(self) -> str:
        match self.waits_for:
            case WaitsFor.LANE:
                return "every lane is busy"
            case WaitsFor.COLLISION:
                return f"it may collide with {self.other}"
            case WaitsFor.ANOTHER_ALONE:
                return f"{self.other} is worked on alone, after it came back from landing twice"
            case WaitsFor.BEING_ALONE:
                return "it came back from landing twice: it waits until it is alone"
            case WaitsFor.LIMITS:
                return "no more at once within the limits"
            case WaitsFor.STORIES:
                return f"it needs {self.other} first"


class Plan(Value, kw_only=True):
    """What starts now beside what is in flight, and what waits, each with the reason."""

    starts: tuple[Story, ...] = ()
    waits: dict[str, StoryWait] = msgspec.field(default_factory=dict)


def assign(
    stories: StoryList,
    states: States,
    *,
    flying: Collection[str] = (),
    room: int,
    only: str | None = None,
) -> Plan:
    """Who starts in which order where `room` more can, and why each of the others waits."""
    candidates = _candidates(stories, states, flying, only)
    in_flight = candidates.in_flight
    starts = _start_in_order(candidates.fresh, in_flight, states, room)
    started = {story.id for story in starts}
    waits = {it.id: in_flight.wait_of(it) for it in candidates.fresh if it.id not in started}
    return Plan(starts=tuple(starts), waits=waits)


def who_starts(
    stories: StoryList,
    states: States,
    *,
    flying: Collection[str] = (),
    room: int,
    only: str | None = None,
) -> tuple[Story, ...]:
    """Who starts in which order where `room` more can; a story is never in two lanes.

    One that rewrote history comes first: its work must not go into another story's commit.  What
    may collide with a story in flight comes after the rest; one that came back twice waits until
    nothing else is, and then nothing else starts.
    """
    candidates = _candidates(stories, states, flying, only)
    return tuple(_start_in_order(candidates.fresh, candidates.in_flight, states, room))


class _Candidates(NamedTuple):
    fresh: list[Story]  # who could start, in order
    in_flight: "InFlight"


def _candidates(
    stories: StoryList, states: States, flying: Collection[str], only: str | None
) -> _Candidates:
    """Who could start, and beside whom."""
    away = frozenset(flying)
    able = [it for it in ready(stories, unavailable=away) if only in (None, it.id)]
    fresh = [it for it in able if state_of(states, it.id).standing in _CAN_START]
    if not (fresh or away):
        aside = (it for it in able if state_of(states, it.id).has_a_chance)
        fresh = list(islice(aside, 1))
    in_flight = InFlight(states)
    for story in stories.stories:
        if story.id in away:
            in_flight.add(story)
    return _Candidates(fresh, in_flight)


_CAN_START = (Standing.OPEN, Standing.PASSED)  # passed: a person took the mark away


class _Candidate(NamedTuple):
    """Who is next; compared in this order."""

    is_ordinary: bool  # it rewrote no history
    may_collide: bool
    rank: int
    story: Story


def _start_in_order(
    fresh: list[Story], in_flight: "InFlight", states: States, room: int
) -> list[Story]:
    """Who starts where so many more can; each is in flight from then on."""
    starts = list[Story]()
    queue = list[_Candidate]()
    for number, story in enumerate(fresh):
        lost = state_of(states, story.id).base.lost
        queue.append(_Candidate(not lost, False, number, story))
    heapify(queue)
    while queue and len(starts) < room:
        first = heappop(queue)
        if in_flight.must_wait(first.story) is not None:
            continue
        # Whom one meets is looked up when its turn comes; then it may be another's turn.
        if not first.may_collide and in_flight.first_met(first.story):
            heappush(queue, first._replace(may_collide=True))
            continue
        in_flight.add(first.story)
        starts.append(first.story)
    return starts


class InFlight:
    """The stories that are worked on, indexed by what they are expected to change.

    Thousands wait while hundreds are in flight, and each is asked whom it would meet.
    """

    def __init__(self, states: States) -> None:
        self._states = states
        self._names = list[str]()  # in the order they came
        self._alone = ""  # the first that must be worked on alone
        self._places = dict[str, int]()  # of each name in that order
        self._met = dict[str, int]()  # by name: the first that met it in a landing
        self._beginnings = dict[str, int]()  # of a path: the first that changes something there
        self._sorted = list[str]()  # the same beginnings
        self._lengths = list[int]()  # of them, each once
        self._known = dict[str, int]()  # by beginning: whom it meets, as long as nobody comes

    def add(self, story: Story) -> None:
        place = len(self._names)
        landing = state_of(self._states, story.id).landing
        self._names.append(story.id)
        self._places.setdefault(story.id, place)
        if not self._alone and landing.count >= MOST_RETURNS:
            self._alone = story.id
        for name in landing.collided:
            self._met.setdefault(name, place)
        for pattern in story.touches:
            beginning = _plain_beginning(pattern)
            if beginning in self._beginnings:
                continue
            self._beginnings[beginning] = place
            insort(self._sorted, beginning)
            if len(beginning) not in self._lengths:
                insort(self._lengths, len(beginning))
        self._known.clear()

    def must_wait(self, story: Story) -> StoryWait | None:
        """Why a story waits although a lane may be free; None where it need not."""
        if self._alone:
            return StoryWait(waits_for=WaitsFor.ANOTHER_ALONE, other=self._alone)
        if self._names and state_of(self._states, story.id).landing.count >= MOST_RETURNS:
            return StoryWait(waits_for=WaitsFor.BEING_ALONE)
        return None

    def wait_of(self, story: Story) -> StoryWait:
        """Why a story that did not start waits."""
        if (wait := self.must_wait(story)) is not None:
            return wait
        if other := self.first_met(story):
            return StoryWait(waits_for=WaitsFor.COLLISION, other=other)
        return StoryWait(waits_for=WaitsFor.LANE)

    def first_met(self, story: Story) -> str:
        """The first of them that is expected to change the same files; empty: none."""
        nobody = len(self._names)
        place = self._met.get(story.id, nobody)
        for name in state_of(self._states, story.id).landing.collided:
            place = min(place, self._places.get(name, nobody))
        for pattern in story.touches:
            place = min(place, self._first_at(_plain_beginning(pattern)))
        return self._names[place] if place < nobody else ""

    def _first_at(self, beginning: str) -> int:
        """The first that changes what begins so, or begins what lies there."""
        if beginning in self._known:
            return self._known[beginning]
        place = len(self._names)
        found = self._beginnings
        for length in self._lengths[: bisect_right(self._lengths, len(beginning))]:
            there = found.get(beginning[:length])
            if there is not None and there < place:
                place = there
        for longer in islice(self._sorted, bisect_left(self._sorted, beginning), None):
            if not longer.startswith(beginning):
                break
            place = min(place, found[longer])
        self._known[beginning] = place
        return place


@lru_cache(maxsize=20_000)
def _plain_beginning(pattern: str) -> str:
    """Of a path pattern, as far as it names one path: what may be compared."""
    return re.split(r"[*?[]", pattern)[0].removeprefix("./")


def room_for(
    limits: Limits,
    totals: Totals,
    *,
    lanes: int,
    flying: Collection[Expense | None],
    dearest: Expense | None,
    capped: bool = False,
) -> int:
    """How many more may start so that those in flight overrun no limit of the whole run.

    Who flies is at work (None), or its agent has ended and took so much.  A start is expected to
    take what the `dearest` took; while nobody knows that, one starts alone, but for money where
    agents keep to a share of it themselves (`capped`).  With nobody at work one may always start.
    """
    room = lanes - len(flying)
    if limits.max_iterations:
        room = min(room, limits.max_iterations - totals.iterations - len(flying))
    each = dearest or Expense()
    ended = [one for one in flying if one is not None]
    at_work = len(flying) - len(ended)
    if limits.max_cost_usd and (each.cost_usd or not (dearest or capped)):
        spent = totals.cost_usd + sum(it.cost_usd for it in ended)
        paid = _starts_paid_for(limits.max_cost_usd - spent, each.cost_usd, lanes)
        room = min(room, paid - at_work)
    if limits.max_tokens and (each.fresh_tokens or not dearest):
        used = totals.fresh_tokens + sum(it.fresh_tokens for it in ended)
        paid = _starts_paid_for(limits.max_tokens - used, each.fresh_tokens, lanes)
        room = min(room, paid - at_work)
    return max(0, room)


def _starts_paid_for(left: float, each: float, lanes: int) -> int:
    """How many starts may share what is left; one where nobody knows what a start takes."""
    if not each:
        return 1
    if left <= 0:
        return 0
    return max(1, int(min(lanes, left / each)))


def pays_for(limits: Limits, totals: Totals, dearest: Expense | None, *, capped: bool) -> str:
    """What is left for all lanes together, in words; empty without a limit."""
    one = dearest or Expense()
    said = list[str]()
    if limits.max_cost_usd:
        left = limits.max_cost_usd - totals.cost_usd
        each = f", some {int(left / one.cost_usd)} starts" if one.cost_usd else ""
        said.append(f"${left:.2f}{each}")
    if limits.max_tokens:
        rest = limits.max_tokens - totals.fresh_tokens
        each = f", some {rest // one.fresh_tokens} starts" if one.fresh_tokens else ""
        said.append(f"{rest:,} tokens{each}")
    if limits.max_iterations:
        said.append(counted(limits.max_iterations - totals.iterations, "iteration"))
    alone = limits.max_tokens or (limits.max_cost_usd and not capped)
    if alone and dearest is None:
        said.append("the first start is made alone, since nobody knows yet what one takes")
    return f"Left for all lanes together: {'; '.join(said)}." if said else ""


def rungs_in_order(failed: int, count: int) -> list[int]:
    """Whom a story is given to after so many failed attempts: its rung, then up, then down."""
    own = min(failed, count - 1)
    return sorted(range(count), key=lambda rung: (rung < own, abs(rung - own)))


def runnable_besides(stories: StoryList, states: States, story_id: str | None) -> int:
    """How many other stories could be worked on now, second chances included."""
    others = (state_of(states, one.id) for one in ready(stories) if one.id != story_id)
    return sum(state.standing is Standing.OPEN or state.has_a_chance for state in others)


def facts_of(
    stories: StoryList | None, states: States, story: Story | None, *, only: str | None
) -> StoryFacts:
    if stories is None:
        return StoryFacts()
    name = story.id if story else None
    done = stories.with_passes({story.id: True}) if story else stories
    others = [runnable_besides(each, states, name) for each in (stories, done)]
    return StoryFacts(
        total=stories.total,
        passed=stories.passed,
        current=name,
        about_tests=bool(story and story.about_tests),
        exit_signal=bool(story and story.exit_signal),
        others=0 if only else others[0],
        others_if_passed=0 if only else others[1],
    )


def marked_by_hand(stories: StoryList, states: States) -> dict[str, bool]:
    """Marks that changed while no agent ran: a person's word."""
    return {
        story.id: story.passes
        for story in stories.stories
        if story.passes != (state_of(states, story.id).standing is Standing.PASSED)
    }


def ending(
    decision: Decision,
    stories: StoryList | None,
    states: States,
    *,
    only: str | None = None,
    last: StatusBlock | None = None,
) -> Decision:
    """The same decision with the stories by name; a limit met with the last story is no end."""
    if stories is None or decision.word not in _BY_STORIES:
        return decision
    left = [story for story in stories.stories if not story.passes and only in (None, story.id)]
    if left and decision.word in _LIMITS:
        return decision
    known = {story.id: state_of(states, story.id) for story in left}
    waiting = {name: one for name, one in known.items() if one.standing is Standing.BLOCKED}
    if waiting:
        asks = (f"{name} waits for a person: {one.reason}" for name, one in waiting.items())
        return Decision(word=ExitDecision.BLOCKED, reasons=tuple(asks))
    if left:
        names = ", ".join(list(known)[:5])
        words = f"every open story is set aside or waits on one that is: {names}"
        return Decision(word=ExitDecision.NO_RUNNABLE_STORY, reasons=(words,))
    if others := stories.total - stories.passed:  # the project is not complete while they are open
        words = f"{only} has passed, which was asked for (--story)"
        reasons = (f"{words}; {counted(others, 'story')} left open",)
        return Decision(word=ExitDecision.NO_RUNNABLE_STORY, reasons=reasons)
    everything = "the only story has" if stories.total == 1 else f"all {stories.total} stories have"
    told = [f"{everything} passed"]
    if last and not last.exit_signal:
        wish = advice_of(last.recommendation) or "no reason given"
        told.append(f"the agent wanted to go on: {wish}")
    return Decision(word=ExitDecision.PROJECT_COMPLETE, reasons=tuple(told))


def unless_taken_away(decision: Decision, stories: StoryList | None, states: States) -> Decision:
    """A list that an agent made shorter is not complete before a person says so."""
    if decision.word is not ExitDecision.PROJECT_COMPLETE or stories is None:
        return decision
    asked = (story for state in states.values() for story in state.proof.asked)
    gone = {story.id for story in asked if not story.passes and stories.get(story.id) is None}
    words = tuple(
        f"{story} waits for a person: it was removed from the list while an agent worked;"
        " put it back, or go on without it"
        for story in sorted(gone)
    )
    return Decision(word=ExitDecision.BLOCKED, reasons=words) if words else decision


_ON = "ralph run --continue"


class Ending(msgspec.Struct, frozen=True):
    words: str  # the end of a sentence that begins with the project
    advice: str
    command: str = _ON
    wants_value: bool = False  # the command names what a person has to fill in


ENDINGS: dict[str, Ending] = {
    ExitDecision.PROJECT_COMPLETE: Ending("all done", "Look at it:", "git log --stat"),
    ExitDecision.CIRCUIT_OPEN: Ending(
        "the circuit is open", "Look at why the circuit opened, then:", f"{_ON} --reset-circuit"
    ),
    ExitDecision.TEST_SATURATION: Ending("only tests were written", "Look at the story, then:"),
    ExitDecision.BLOCKED: Ending("waits for you", "Once it is answered:"),
    ExitDecision.MAX_ITERATIONS: Ending(
        "out of iterations", "To go on with more of them:", f"{_ON} --max-iterations N", True
    ),
    ExitDecision.BUDGET_EXHAUSTED: Ending(
        "out of budget", "To go on with more of it:", f"{_ON} --max-cost X", True
    ),
    ExitDecision.USAGE_LIMIT: Ending(
        "stopped by the usage limit", "Once the usage limit is lifted:"
    ),
    ExitDecision.NO_RUNNABLE_STORY: Ending(
        "nothing more to run",
        "`ralph stories` says why; a new run takes what is open:",
        "ralph run",
    ),
    ExitDecision.ERROR: Ending(
        "ended by an error", "Find out what is wrong (`ralph doctor`), then:"
    ),
    ExitDecision.INTERRUPTED: Ending("interrupted", "To go on where it stopped:"),
}


class MoreOfLimit(NamedTuple):
    words: str  # how a run is out of it
    flag: str  # gives it more


_MORE_OF_LIMITS = {
    RunLimit.COST: MoreOfLimit("out of budget", "--max-cost X"),
    RunLimit.TOKENS: MoreOfLimit("out of tokens", "--max-tokens N"),
    RunLimit.TIME: MoreOfLimit("out of time", "--max-time D"),
    RunLimit.UNTIL: MoreOfLimit("out of time", "--until HH:MM"),
}


def decided(decision: str, limit: RunLimit | None = None) -> str:
    found = ending_of(decision, limit)
    return found.words if found else decision.replace("_", " ")


def ended(decision: str, reason: str, limit: RunLimit | None = None) -> str:
    """The same with its reason, which may say it all."""
    words = decided(decision, limit)
    if reason.startswith(words) or (reason and decision == ExitDecision.BLOCKED):
        return reason
    return f"{words}: {reason}" if reason else words


def ending_of(decision: str, limit: RunLimit | None = None) -> Ending | None:
    """An end in words; one by a limit with the flag that gives more of that."""
    found = ENDINGS.get(decision)
    more = _MORE_OF_LIMITS.get(limit) if limit else None
    if found is None or more is None or decision not in _LIMITS:
        return found
    words = more.words if decision == ExitDecision.BUDGET_EXHAUSTED else found.words
    return Ending(words, found.advice, f"{_ON} {more.flag}", wants_value=True)
