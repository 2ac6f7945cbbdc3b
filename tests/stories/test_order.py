"""Which story comes next: dependency-ready, then priority, then file order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralphloop.core.model import StoryList
from ralphloop.core.planning import ready
from ralphloop.stories.graph import plan
from tests.stories.builders import story, story_list


def run_all(stories: StoryList, unavailable: frozenset[str] = frozenset()) -> list[str]:
    """Take the next story and pass it, until there is none."""
    order: list[str] = []
    while able := ready(stories, unavailable=unavailable):
        order.append(able[0].id)
        stories = stories.with_passes({able[0].id: True})
    return order


@st.composite
def story_lists(draw: st.DrawFn) -> StoryList:
    """Lists with random priorities, marks and dependencies without cycles."""
    count = draw(st.integers(0, 8))
    shuffled = draw(st.permutations(range(count)))
    priorities = st.none() | st.integers(-2, 3) | st.sampled_from([0.5, 1.5])
    stories = []
    for number in range(count):
        earlier = [f"S{other}" for other in range(count) if shuffled[other] < shuffled[number]]
        depends_on = draw(st.lists(st.sampled_from(earlier), unique=True)) if earlier else []
        stories.append(
            story(
                f"S{number}",
                priority=draw(priorities),
                passes=draw(st.booleans()),
                depends_on=tuple(depends_on),
            )
        )
    return story_list(*stories)


def test_S04_AC5_stories_run_in_file_order_where_nothing_else_is_said() -> None:
    """Without priorities and dependencies the file's order is the order."""
    assert run_all(story_list(story("C"), story("A"), story("B"))) == ["C", "A", "B"]


def test_S04_AC5_passed_stories_are_not_run_again() -> None:
    """Only open stories are chosen."""
    stories = story_list(story("A", passes=True), story("B"), story("C", passes=True))
    assert run_all(stories) == ["B"]


def test_S04_AC5_the_lowest_priority_number_comes_first() -> None:
    """Numbers order stories, fractions and negatives too; without a number comes last."""
    stories = story_list(
        story("none"),
        story("two", priority=2),
        story("ten", priority=10),
        story("half", priority=1.5),
        story("minus", priority=-1),
        story("zero", priority=0),
    )
    assert run_all(stories) == ["minus", "zero", "half", "two", "ten", "none"]


def test_S04_AC5_equal_priorities_keep_file_order() -> None:
    """File order decides between equals."""
    assert run_all(story_list(*(story(name, priority=1) for name in "ZAM"))) == ["Z", "A", "M"]


def test_S04_AC5_a_dependency_comes_before_priority() -> None:
    """The most urgent story still waits for what it depends on."""
    stories = story_list(
        story("urgent", priority=0, depends_on=("base",)),
        story("base", priority=9),
        story("other", priority=5),
    )
    assert run_all(stories) == ["other", "base", "urgent"]


def test_S04_AC5_every_dependency_must_have_passed() -> None:
    """One open dependency of several is enough to wait."""
    stories = story_list(
        story("A", passes=True), story("B"), story("C", priority=1, depends_on=("A", "B"))
    )
    assert [one.id for one in ready(stories)] == ["B"]


def test_S04_AC5_a_story_set_aside_takes_its_dependents_with_it() -> None:
    """What is unavailable is passed over, and what needs it waits."""
    stories = story_list(
        story("A", priority=1),
        story("B", depends_on=("A",)),
        story("C", depends_on=("B",)),
        story("D"),
    )
    assert run_all(stories, unavailable=frozenset({"A"})) == ["D"]


def test_nothing_is_next_when_all_is_done_or_waiting() -> None:
    """There is no next story in an empty, finished or fully waiting list."""
    assert not ready(story_list())
    assert not ready(story_list(story("A", passes=True)))
    assert not ready(story_list(story("A")), unavailable=["A"])


def test_the_plan_says_why_in_words() -> None:
    """Every open story is listed with the reason for its place, those that cannot run last."""
    stories = story_list(
        story("done", passes=True),
        story("waits", depends_on=("apart",)),
        story("late", priority=3, depends_on=("done", "soon")),
        story("apart", priority=1),
        story("soon", priority=2),
        story("also", depends_on=("done",)),
    )
    steps = plan(stories, unavailable={"apart": "set aside: three failed attempts"})
    assert [(step.story.id, step.reason, step.runs) for step in steps] == [
        ("soon", "priority 2", True),
        ("late", "priority 3, after done, soon", True),
        ("also", "no priority, after done", True),
        ("waits", "waits for apart", False),
        ("apart", "set aside: three failed attempts", False),
    ]


def test_many_dependencies_are_counted() -> None:
    """A long list of ids stays a short phrase."""
    names = [f"S{n}" for n in range(1, 8)]
    *_, last = plan(story_list(*map(story, names), story("last", depends_on=tuple(names))))
    assert last.reason == "no priority, after S1, S2, S3, S4, S5 and 2 more"


@given(story_lists(), st.sets(st.sampled_from([f"S{n}" for n in range(8)])))
def test_the_plan_is_what_will_happen(stories: StoryList, apart: set[str]) -> None:
    """The planned order equals taking and passing the next story again and again."""
    steps = plan(stories, unavailable=dict.fromkeys(apart, "set aside"))
    assert [step.story.id for step in steps if step.runs] == run_all(stories, frozenset(apart))
    assert {step.story.id for step in steps} == {
        one.id for one in stories.stories if not one.passes
    }


@given(story_lists())
def test_nothing_ready_has_an_open_dependency(stories: StoryList) -> None:
    """What a story needs has passed before it can run."""
    able = ready(stories)
    passed = {one.id for one in stories.stories if one.passes}
    assert all(passed.issuperset(one.depends_on) for one in able)


def test_a_long_chain_is_no_problem() -> None:
    """Ten thousand stories that each need the one before are planned without recursion."""
    chain = story_list(
        *(story(f"S{n}", depends_on=(f"S{n + 1}",) if n < 9999 else ()) for n in range(10_000))
    )
    assert [step.story.id for step in plan(chain)][:2] == ["S9999", "S9998"]
    assert not any(step.runs for step in plan(chain, unavailable={"S9999": "set aside"}))
