"""Which stories start beside each other, which wait, and why; never more than the limits allow."""

from __future__ import annotations

import re
from functools import partial
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ralphloop.core.model import Story, StoryList
from ralphloop.core.planning import (
    MOST_RETURNS,
    InFlight,
    Plan,
    StoryWait,
    WaitsFor,
    assign,
    pays_for,
    ready,
    room_for,
    who_starts,
)
from ralphloop.core.policy import Limits
from ralphloop.core.run_state import (
    Attempt,
    LandingReturns,
    Standing,
    StoryBase,
    StoryState,
)
from ralphloop.core.totals import Expense, Totals


def listed(*stories: Story) -> StoryList:
    """A list of these stories."""
    return StoryList(stories=stories, source="prd.json")


def one(name: str, index: int = 0, **more: object) -> Story:
    """A story by its name."""
    return Story(id=name, title=name, index=index, **more)  # type: ignore[arg-type]


A, B, C = (one(name, number) for number, name in enumerate("abc"))
BACK = StoryState(landing=LandingReturns(count=MOST_RETURNS))
ASIDE = StoryState(standing=Standing.SET_ASIDE)
CASES = {
    "in order": ((A, B, C), {}, [], 2, ["a", "b"], {"c": "every lane is busy"}),
    "by priority": ((one("a", priority=2), one("b", 1, priority=1)), {}, [], 1, ["b"], None),
    "not twice": ((A, B), {}, ["a"], 1, ["b"], {}),
    "after what it depends on": ((A, one("b", 1, depends_on=("a",))), {}, ["a"], 2, [], {}),
    "blocked waits": ((A, B), {"a": StoryState(standing=Standing.BLOCKED)}, [], 2, ["b"], {}),
    "overlap last": (
        (A, one("b", 1, touches=("src/api/**",)), one("c", 2), one("x", 3, touches=("src/",))),
        {},
        ["x"],
        2,
        ["a", "c"],
        {"b": "it may collide with x"},
    ),
    "overlap where nothing else can go": (
        (one("b", 1, touches=("src/api/**",)), one("x", 3, touches=("src/",))),
        {},
        ["x"],
        1,
        ["b"],
        {},
    ),
    "met before": (
        (A, B, C),
        {"b": StoryState(landing=LandingReturns(collided=("a",)))},
        ["a"],
        1,
        ["c"],
        None,
    ),
    "alone after two returns": (
        (A, B),
        {"b": BACK},
        ["a"],
        1,
        [],
        {"b": "it came back from landing twice: it waits until it is alone"},
    ),
    "nothing beside the one that is alone": ((A, B), {"b": BACK}, ["b"], 1, [], None),
    "alone at last": ((B,), {"b": BACK}, [], 2, ["b"], {}),
    "second chance when nobody works": ((A, B), {"a": ASIDE}, ["b"], 1, [], {}),
    "second chance": ((A,), {"a": ASIDE}, [], 2, ["a"], {}),
    "no third chance": (
        (A,),
        {"a": StoryState(standing=Standing.SET_ASIDE, attempt=Attempt(second_chance=True))},
        [],
        2,
        [],
        {},
    ),
    "no room": ((A,), {}, [], 0, [], {"a": "every lane is busy"}),
}


@pytest.mark.parametrize("case", CASES)
def test_who_starts_and_who_waits(case: str) -> None:
    """Dependencies, priority, overlap, returns and second chances, one by one."""
    stories, states, flying, room, starts, waits = CASES[case]
    plan = assign(listed(*stories), states, flying=flying, room=room)
    assert [story.id for story in plan.starts] == starts
    assert waits is None or {name: wait.words for name, wait in plan.waits.items()} == waits


@pytest.mark.parametrize(
    ("mine", "theirs", "meet"),
    [
        ("src/**", "src/api/x.py", True),
        ("src/api/", "src/web/", False),
        ("./src/a.py", "src/a.py", True),
        ("*.md", "src/", True),
        ("docs/*.md", "docs/a.md", True),
        ("src/a", "src/b", False),
    ],
)
def test_patterns_meet_as_far_as_their_beginnings_tell(mine: str, theirs: str, meet: bool) -> None:
    """Where it cannot be told, they may meet."""
    in_flight = InFlight({})
    in_flight.add(one("b", touches=(theirs,)))
    assert bool(in_flight.first_met(one("a", touches=(mine,)))) is meet


STORIES = st.lists(
    st.builds(
        lambda n, deps, touches, passes: one(
            f"s{n}", n, depends_on=tuple(f"s{d}" for d in deps if d < n), touches=tuple(touches),
            passes=passes,
        ),
        st.integers(0, 9),
        st.lists(st.integers(0, 9), max_size=2),
        st.lists(st.sampled_from(["src/", "docs/", "src/api/"]), max_size=2),
        st.booleans(),
    ),
    max_size=10,
    unique_by=lambda story: story.id,
)  # fmt: skip
STATES = st.dictionaries(
    st.sampled_from([f"s{n}" for n in range(10)]),
    st.builds(
        StoryState,
        standing=st.sampled_from([Standing.OPEN, Standing.SET_ASIDE, Standing.BLOCKED]),
        landing=st.builds(LandingReturns, count=st.integers(0, 3)),
        attempt=st.builds(Attempt, second_chance=st.booleans()),
    ),
)


@given(STORIES, STATES, st.integers(0, 4), st.data())
def test_a_plan_is_always_possible(
    stories: list[Story], states: dict[str, StoryState], room: int, data: st.DataObject
) -> None:
    """Never more than fit, nobody twice, nobody before its turn, and never two beside one alone."""
    ready = [s.id for s in stories if not s.passes]
    flying = data.draw(st.lists(st.sampled_from(ready), unique=True, max_size=3)) if ready else []
    plan = assign(listed(*stories), states, flying=flying, room=room)
    started = list(plan.starts)
    passed = {s.id for s in stories if s.passes}
    assert len(started) <= room
    assert not {s.id for s in started} & {*flying, *passed, *plan.waits}
    assert len({s.id for s in started}) == len(started)
    assert all(passed.issuperset(s.depends_on) for s in started)
    alone = [s for s in started if states.get(s.id, StoryState()).landing.count >= MOST_RETURNS]
    assert not alone or (len(started) == 1 and not flying)


def plain_overlap(mine: str, theirs: str) -> bool:
    """Whether one pattern begins the other, up to its first wildcard."""
    a = re.split(r"[*?[]", mine)[0].removeprefix("./")
    b = re.split(r"[*?[]", theirs)[0].removeprefix("./")
    return a.startswith(b) or b.startswith(a)


class Plain:
    """The same decision, each asked of each: slow, and easy to believe."""

    def __init__(self, states: dict[str, StoryState]) -> None:
        self.states = states

    def state(self, story: Story) -> StoryState:
        """What is known of it."""
        return self.states.get(story.id, StoryState())

    def met(self, story: Story, there: list[Story]) -> str:
        """The first it may collide with."""
        for other in there:
            before = other.id in self.state(story).landing.collided
            since = story.id in self.state(other).landing.collided
            pairs = product(story.touches, other.touches)
            if before or since or any(plain_overlap(*pair) for pair in pairs):
                return other.id
        return ""

    def kept_back(self, story: Story, there: list[Story]) -> StoryWait | None:
        """Why it may not start beside these."""
        for other in there:
            if self.state(other).landing.count >= MOST_RETURNS:
                return StoryWait(waits_for=WaitsFor.ANOTHER_ALONE, other=other.id)
        if there and self.state(story).landing.count >= MOST_RETURNS:
            return StoryWait(waits_for=WaitsFor.BEING_ALONE)
        return None

    def fresh(self, stories: StoryList, flying: list[str]) -> list[Story]:
        """Who could start, in order."""
        able = ready(stories, unavailable=flying)
        apart = (Standing.BLOCKED, Standing.SET_ASIDE)
        fresh = [story for story in able if self.state(story).standing not in apart]
        if fresh or flying:
            return fresh
        return [story for story in able if self.state(story).has_a_chance][:1]

    def plan(self, stories: StoryList, flying: list[str], room: int) -> Plan:
        """Who starts and who waits."""
        fresh = self.fresh(stories, flying)
        there = [story for story in stories.stories if story.id in flying]
        starts = list[Story]()
        while len(starts) < room:
            free = [story for story in fresh if self.kept_back(story, there) is None]
            if not free:
                break
            best = min(
                free, key=lambda it: (not self.state(it).base.lost, bool(self.met(it, there)))
            )
            fresh.remove(best)
            there.append(best)
            starts.append(best)
        waits = {}
        for story in fresh:
            other = self.met(story, there)
            wait = StoryWait(waits_for=WaitsFor.LANE)
            if other:
                wait = StoryWait(waits_for=WaitsFor.COLLISION, other=other)
            waits[story.id] = self.kept_back(story, there) or wait
        return Plan(starts=tuple(starts), waits=waits)


NAMES = [f"s{n}" for n in range(14)]
PATTERNS = st.sampled_from(
    ["", "*", "src/", "src/**", "./src/api/", "src/api/x.py", "src/api/x", "docs/*.md", "docs/a.md"]
)
MANY = st.lists(
    st.builds(
        lambda n, touches, priority: one(NAMES[n], n, touches=tuple(touches), priority=priority),
        st.integers(0, 13),
        st.lists(PATTERNS, max_size=3),
        st.integers(0, 2),
    ),
    unique_by=lambda story: story.id,
)
KNOWN = st.dictionaries(
    st.sampled_from(NAMES),
    st.builds(
        StoryState,
        standing=st.sampled_from(Standing),
        landing=st.builds(
            LandingReturns,
            count=st.sampled_from([0, 0, 0, 1, 2, 3]),
            collided=st.lists(st.sampled_from(NAMES), max_size=2).map(tuple),
        ),
        attempt=st.builds(Attempt, second_chance=st.booleans()),
        base=st.builds(StoryBase, lost=st.sampled_from([{}, {}, {"1f": "reset"}])),
    ),
)


@settings(max_examples=400)
@given(MANY, KNOWN, st.integers(0, 6), st.data())
def test_the_index_answers_as_asking_each_would(
    stories: list[Story], states: dict[str, StoryState], room: int, data: st.DataObject
) -> None:
    """Who starts, in which order, and whom each other one waits for."""
    names = [story.id for story in stories]
    flying = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=5)) if names else []
    found = assign(listed(*stories), states, flying=flying, room=room)
    assert found == Plain(states).plan(listed(*stories), flying, room)
    assert who_starts(listed(*stories), states, flying=flying, room=room) == found.starts


@given(
    st.integers(0, 8),
    st.integers(0, 8),
    st.integers(0, 20),
    st.integers(0, 20),
    st.floats(0, 100),
    st.floats(0, 100),
    st.floats(0, 10),
)
@example(0, 0, 0, 1, 0.5, 1.0, 2.225e-309)
def test_those_in_flight_never_overrun_the_limits(
    lanes: int, flying: int, most: int, done: int, money: float, spent: float, cost: float
) -> None:
    """So many start that all of them together stay within the iterations and lanes there are."""
    limits = Limits(max_iterations=most, max_cost_usd=money)
    totals = Totals(iterations=done, cost_usd=spent)
    dearest = Expense(cost_usd=cost) if done else None
    working = [None] * flying
    room = room_for(limits, totals, lanes=lanes, flying=working, dearest=dearest)
    assert room >= 0
    assert room == 0 or room + flying <= lanes
    assert not most or room == 0 or done + flying + room <= most
    if money and done and cost and room and room + flying > 1:
        assert spent + (room + flying) * cost <= money * (1 + 1e-9)


def test_what_is_not_written_yet_is_spent() -> None:
    """An agent that has ended and waits to land has used its money: nobody else gets it."""
    limits, used = Limits(max_cost_usd=1.0, max_tokens=100), Totals(iterations=1, cost_usd=0.3)
    dear = Expense(cost_usd=0.3, input_tokens=10)
    room = partial(room_for, limits, used, lanes=4, dearest=dear)
    assert room(flying=[]) == 2
    assert room(flying=[None]) == 1
    assert room(flying=[Expense(cost_usd=0.3)]) == 1
    assert room(flying=[Expense(cost_usd=0.7)]) == 0
    assert room(flying=[Expense(input_tokens=100)]) == 0


def test_the_first_start_is_made_alone_where_nobody_knows_what_it_takes() -> None:
    """But for money that agents keep to themselves; without a limit all of them go."""
    room = partial(room_for, totals=Totals(), lanes=4, dearest=None)
    money, tokens = Limits(max_cost_usd=1.0), Limits(max_tokens=100)
    assert room(money, flying=[]) == 1
    assert room(money, flying=[None]) == 0
    assert room(money, flying=[], capped=True) == 4
    assert room(tokens, flying=[], capped=True) == 1
    assert room(Limits(), flying=[None]) == 3
    free = room_for(money, Totals(iterations=1), lanes=4, flying=[], dearest=Expense())
    assert free == 4  # of what names no price nobody can say what it costs


MONEY, TOKENS = Limits(max_cost_usd=1.0), Limits(max_tokens=100)
LEFT = {
    "money": (MONEY, None, False, "$0.70", True),
    "money that agents keep to": (MONEY, None, True, "$0.70", False),
    "money, and what a start costs": (
        MONEY,
        Expense(cost_usd=0.3),
        False,
        "$0.70, some 2 starts",
        False,
    ),
    "tokens": (TOKENS, None, True, "90 tokens", True),
    "tokens, and what a start takes": (
        TOKENS,
        Expense(input_tokens=30),
        True,
        "90 tokens, some 3 starts",
        False,
    ),
    "iterations": (Limits(max_iterations=5), None, False, "4 iterations", False),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_is_left_for_all_lanes_together_is_said(case: str) -> None:
    """And that the first start is made alone, exactly where it is."""
    limits, dearest, capped, words, alone = LEFT[case]
    totals = Totals(iterations=1, cost_usd=0.3, input_tokens=10)
    said = pays_for(limits, totals, dearest, capped=capped)
    assert said.removesuffix(".").split(": ")[1].split("; ")[0] == words
    assert ("the first start is made alone" in said) is alone
    room = room_for(limits, totals, lanes=4, flying=[], dearest=dearest, capped=capped)
    assert not alone or room == 1
    assert pays_for(Limits(), totals, dearest, capped=capped) == ""
