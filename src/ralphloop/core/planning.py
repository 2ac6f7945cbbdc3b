"""Which story is worked on next, and how a run ends, in words (`ENDINGS`), when none can be.

A story is ready when it is open and everything it depends on has passed; the lowest priority number
comes first, stories without one last, then file order.
"""

import re
from collections.abc import Collection, Iterable

import msgspec

from ralphloop.core.model import Decision, ExitDecision, Story, StoryFacts, StoryList, Value
from ralphloop.core.policy import Limits
from ralphloop.core.run_state import Standing, States, state_of
from ralphloop.core.totals import Expense, Totals
from ralphloop.text.plain import counted
from ralphloop.text.status_block import StatusBlock

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
    return next(iter(assign(stories, states, room=1, only=only).starts), None)


MOST_RETURNS = 2  # from landing; then a story waits until it is alone
BUSY = "every lane is busy"


class Plan(Value, kw_only=True):
    """What starts now beside what is in flight, and what waits, each with the reason."""

    starts: tuple[Story, ...] = ()
    waits: dict[str, str] = msgspec.field(default_factory=dict)


def assign(
    stories: StoryList,
    states: States,
    *,
    flying: Collection[str] = (),
    room: int,
    only: str | None = None,
) -> Plan:
    """Who starts in which order where `room` more can; a story is never in two lanes.

    One that rewrote history comes first: its work must not go into another story's commit.  What
    may collide with a story in flight comes after the rest; one that came back twice waits until
    nothing else is, and then nothing else starts.
    """
    known = {story.id: state_of(states, story.id) for story in stories.stories}
    able = [s for s in ready(stories, unavailable=flying) if only in (None, s.id)]
    waiting = [s for s in able if known[s.id].standing is not Standing.BLOCKED]
    fresh = [s for s in waiting if known[s.id].standing is not Standing.SET_ASIDE]
    starts = list[Story]()
    there = [s for s in stories.stories if s.id in flying]
    if not (fresh or flying):
        fresh = [s for s in waiting if known[s.id].has_a_chance][:1]
    while len(starts) < room:
        free = [one for one in fresh if not _must_wait(one, there, states)]
        if not free:
            break
        story = min(free, key=lambda s: (not known[s.id].lost, bool(collides(s, there, states))))
        fresh.remove(story)
        there.append(story)
        starts.append(story)
    waits = {}
    for story in fresh:
        other = collides(story, there, states)
        busy = f"it may collide with {other}" if other else BUSY
        waits[story.id] = _must_wait(story, there, states) or busy
    return Plan(starts=tuple(starts), waits=waits)


def _must_wait(story: Story, there: list[Story], states: States) -> str:
    """Why a story waits although a lane may be free; empty where it need not."""
    alone = next((s.id for s in there if state_of(states, s.id).returns >= MOST_RETURNS), "")
    if alone:
        return f"{alone} is worked on alone, after it came back from landing twice"
    if there and state_of(states, story.id).returns >= MOST_RETURNS:
        return "it came back from landing twice: it waits until it is alone"
    return ""


def collides(story: Story, others: Iterable[Story], states: States) -> str:
    """The first of the others that is expected to change the same files; empty: none."""
    met = state_of(states, story.id).collided
    for one in others:
        known = one.id in met or story.id in state_of(states, one.id).collided
        if known or any(_overlap(a, b) for a in story.touches for b in one.touches):
            return one.id
    return ""


def _overlap(*patterns: str) -> bool:
    """Whether two path patterns may name the same file, as far as their plain beginnings tell."""
    a, b = (re.split(r"[*?[]", pattern)[0].removeprefix("./") for pattern in patterns)
    return a.startswith(b) or b.startswith(a)


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
    spent = totals.cost_usd + sum(it.cost_usd for it in ended)
    tokens = totals.fresh_tokens + sum(it.fresh_tokens for it in ended)
    for most, used, one, many in (
        (limits.max_cost_usd, spent, each.cost_usd, capped),
        (limits.max_tokens, tokens, each.fresh_tokens, False),
    ):
        if not most or (not one and (dearest or many)):
            continue
        paid = min(lanes, max(0, most - used) / one) if one else 1
        room = min(room, max(int(paid), used < most) - (len(flying) - len(ended)))
    return max(0, room)


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
        wish = last.recommendation or "no reason given"
        told.append(f"the agent wanted to go on: {wish}")
    return Decision(word=ExitDecision.PROJECT_COMPLETE, reasons=tuple(told))


def unless_taken_away(decision: Decision, stories: StoryList | None, states: States) -> Decision:
    """A list that an agent made shorter is not complete before a person says so."""
    if decision.word is not ExitDecision.PROJECT_COMPLETE or stories is None:
        return decision
    asked = (story for state in states.values() for story in state.asked)
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


ENDINGS: dict[str, Ending] = {
    ExitDecision.PROJECT_COMPLETE: Ending("all done", "Look at it:", "git log --stat"),
    ExitDecision.CIRCUIT_OPEN: Ending(
        "the circuit is open", "Look at why the circuit opened, then:", f"{_ON} --reset-circuit"
    ),
    ExitDecision.TEST_SATURATION: Ending("only tests were written", "Look at the story, then:"),
    ExitDecision.BLOCKED: Ending("waits for you", "Once it is answered:"),
    ExitDecision.MAX_ITERATIONS: Ending(
        "out of iterations", "To go on with more of them:", f"{_ON} --max-iterations N"
    ),
    ExitDecision.BUDGET_EXHAUSTED: Ending(
        "out of budget", "To go on with more of it:", f"{_ON} --max-cost X"
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
_OF_LIMITS = {  # what a reason names → how the run is out of it, and what gives it more
    "(limits.max_cost_usd)": ("out of budget", "--max-cost X"),
    "(limits.max_tokens)": ("out of tokens", "--max-tokens N"),
    "(limits.max_time)": ("out of time", "--max-time D"),
    "(limits.until)": ("out of time", "--until HH:MM"),
}


def decided(decision: str, reason: str = "") -> str:
    found = ending_of(decision, reason)
    return found.words if found else decision.replace("_", " ")


def ended(decision: str, reason: str) -> str:
    """The same with its reason, which may say it all."""
    words = decided(decision, reason)
    if reason.startswith(words) or (reason and decision == ExitDecision.BLOCKED):
        return reason
    return f"{words}: {reason}" if reason else words


def ending_of(decision: str, reason: str) -> Ending | None:
    """An end in words; one by a limit with the flag that gives more of that."""
    found = ENDINGS.get(decision)
    limit = next((more for name, more in _OF_LIMITS.items() if name in reason), None)
    if found is None or limit is None or decision not in _LIMITS:
        return found
    words = limit[0] if decision == ExitDecision.BUDGET_EXHAUSTED else found.words
    return Ending(words, found.advice, f"{_ON} {limit[1]}")
