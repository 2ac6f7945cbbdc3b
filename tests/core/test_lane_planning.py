"""Which stories start beside each other, which wait, and why; never more than the limits allow."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ralphloop.core.model import Story, StoryList
from ralphloop.core.planning import MOST_RETURNS, assign, collides, pays_for, room_for
from ralphloop.core.policy import Limits
from ralphloop.core.run_state import Standing, StoryState
from ralphloop.core.totals import Expense, Totals


def listed(*stories: Story) -> StoryList:
    """A list of these stories."""
    return StoryList(stories=stories, source="prd.json")


def one(name: str, index: int = 0, **more: object) -> Story:
    """A story by its name."""
    return Story(id=name, title=name, index=index, **more)  # type: ignore[arg-type]


A, B, C = (one(name, number) for number, name in enumerate("abc"))
BACK = StoryState(returns=MOST_RETURNS)
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
    "met before": ((A, B, C), {"b": StoryState(collided=("a",))}, ["a"], 1, ["c"], None),
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
        {"a": StoryState(standing=Standing.SET_ASIDE, second_chance=True)},
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
    assert waits is None or plan.waits == waits


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
    found = collides(one("a", touches=(mine,)), [one("b", touches=(theirs,))], {})
    assert bool(found) is meet


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
        returns=st.integers(0, 3),
        second_chance=st.booleans(),
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
    alone = [s for s in started if states.get(s.id, StoryState()).returns >= MOST_RETURNS]
    assert not alone or (len(started) == 1 and not flying)


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
