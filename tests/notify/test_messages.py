"""Which events become messages, and how few."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.core.events import CircuitChanged, LoopEvent
from ralphloop.core.model import Circuit, ExitDecision
from ralphloop.notify.messages import Decider, Message
from tests.notify.events import ended, finished, line, quota, quota_over, started, tool


def told(*events: LoopEvent, most: int = 6) -> list[Message]:
    """The messages a run of these events is worth."""
    decider = Decider(most)
    return [message for event in events if (message := decider.on_event(event)) is not None]


def kinds(*events: LoopEvent, most: int = 6) -> list[str]:
    """Their kinds."""
    return [message.kind for message in told(*events, most=most)]


def test_a_quiet_run_is_told_once_at_its_end() -> None:
    """Iterations, steps and passed stories are nobody's alarm."""
    events = [started(), tool(), finished(), line("story_passed", 1, story="US-1")]
    (message,) = told(*events, ended("project_complete", "all 4 stories have passed", passed=4))
    assert message.kind == "run_finished"
    assert message.title == "shop: all done"
    assert message.text == "all 4 stories have passed. 4 of 4 stories passed, $4.10 spent."
    assert message.id == "r1/1-run_finished"


@pytest.mark.parametrize(
    "dollars, words", [(0.0, "unknown cost."), (1.2, "$1.20 + unknown (3 starts).")]
)
def test_an_unknown_cost_is_not_told_as_none(dollars: float, words: str) -> None:
    """Starts that nobody knows the price of are counted, not taken for free."""
    end = ended("project_complete", passed=4, cost_usd=dollars, unpriced=3)
    (message,) = told(started(), end)
    assert message.text.endswith(f"4 of 4 stories passed, {words}")


@pytest.mark.parametrize("decision", [word for word in ExitDecision if word != "continue"])
def test_every_ending_is_told(decision: ExitDecision) -> None:
    """However a run ends, a person hears of it, with the reason."""
    (message,) = told(started(), ended(decision, "because"))
    assert message.text.startswith("because. ")


def test_an_ending_of_a_newer_version_is_still_told() -> None:
    """An unknown word is no reason to stay silent."""
    assert kinds(started(), ended("something_new")) == ["run_finished"]


def test_a_circuit_that_opens_is_told_once() -> None:
    """It ends the run: the end is not told again."""
    opened = line("circuit_changed", 5, before="HALF_OPEN", after="OPEN", reason="no progress")
    messages = told(started(), opened, ended("circuit_open", "no progress"))
    assert [message.kind for message in messages] == ["circuit_open"]
    assert "no progress. The run stops." in messages[0].text


def test_a_circuit_found_open_is_told_by_the_end() -> None:
    """A run that begins with an open circuit has no change to tell, only its end."""
    assert kinds(started(), ended("circuit_open", "it was open")) == ["circuit_open"]


def test_half_open_is_no_message() -> None:
    """A nudge is not worth waking anybody."""
    assert kinds(started(), line("circuit_changed", 3, before="CLOSED", after="HALF_OPEN")) == []


def test_a_usage_limit_is_told_once_and_its_lifting_when_the_agent_works() -> None:
    """Limit after limit is one message; a wait that ends is not yet a limit that is lifted."""
    limited = finished(outcome="usage_limit", cost_usd=0.0)
    events = [started(), quota(), quota_over(), limited, quota(), quota_over(), tool(), tool()]
    assert kinds(*events) == ["usage_limit", "usage_limit_lifted"]


def test_an_agent_without_tools_lifts_the_limit_by_finishing() -> None:
    """An iteration that ended well is proof enough."""
    assert kinds(started(), quota(), quota_over(), finished()) == [
        "usage_limit",
        "usage_limit_lifted",
    ]


def test_a_wait_that_a_person_ends_lifts_nothing() -> None:
    """Stopped while waiting: reached, then the end."""
    assert kinds(started(), quota(), quota_over(), ended("interrupted")) == [
        "usage_limit",
        "run_finished",
    ]


def test_other_waits_are_no_message() -> None:
    """Outages and pauses are the loop's own business."""
    waits = [line("waiting", kind=kind, until="x", seconds=9.0) for kind in ("outage", "pause")]
    assert kinds(started(), *waits) == []


def test_the_budget_is_told_once_at_four_fifths() -> None:
    """At 80 % and not before, not again, and not when it is used up anyway."""
    spend = [finished(cost_usd=cost) for cost in (7.9, 0.2, 0.5)]
    assert kinds(started(), *spend) == ["budget"]
    assert kinds(started(), finished(cost_usd=7.9)) == []
    assert kinds(started(), finished(cost_usd=10.5)) == []
    assert kinds(started(max_cost_usd=0.0), finished(cost_usd=99.0)) == []


def test_a_limit_of_tokens_is_told_as_one_of_money() -> None:
    """At 80 %, with the numbers; what a person added moves it."""
    (message,) = told(started(max_tokens=100), finished(output_tokens=80))
    assert message.text.startswith("80 of 100 tokens are used. ")
    more = line("request_answered", kind="budget", max_cost_usd=0.0, max_tokens=200)
    assert kinds(started(max_tokens=100), more, finished(output_tokens=80)) == []


def test_a_raised_budget_is_the_one_that_counts() -> None:
    """What a person added moves the four fifths; another answer does not."""
    raised = line("request_answered", kind="budget", answer="raised", max_cost_usd=20.0)
    assert kinds(started(), raised, finished(cost_usd=8.5)) == []
    noted = line("request_answered", kind="note", answer="it goes into the next prompt")
    assert kinds(started(), noted, finished(cost_usd=8.5)) == ["budget"]


def test_a_continued_run_remembers_what_was_spent() -> None:
    """What an earlier process spent counts."""
    assert kinds(started(cost_usd=7.5), finished(cost_usd=1.0)) == ["budget"]


def test_a_blocked_story_is_told_at_once_while_others_go_on() -> None:
    """The question can be answered while the night goes on; each story asks once."""
    asks = finished(status="BLOCKED", story="US-2", recommendation="Which database?")
    (message,) = told(started(), asks, asks)
    assert message.kind == "blocked"
    assert "US-2 waits for a person: Which database?" in message.text


def test_a_question_that_ends_the_run_is_told_by_the_end() -> None:
    """One event, one message."""
    last = finished(status="BLOCKED", decision="blocked", story="US-2")
    assert kinds(started(), last, ended("blocked", "US-2 waits for a person: why?")) == ["blocked"]


def test_there_are_only_a_few_and_the_last_one_says_so() -> None:
    """Room for five before the end; the end always comes through."""
    asks = [finished(status="BLOCKED", story=f"US-{n}", cost_usd=0.0) for n in range(50)]
    messages = told(started(), *asks, ended("blocked", "many wait"), most=6)
    assert len(messages) == 6
    assert [message.is_last for message in messages] == [False] * 4 + [True, False]
    assert "This is the last message before the run ends." in messages[4].text
    assert messages[5].text.startswith("many wait")


def test_with_room_for_one_only_the_end_is_told() -> None:
    """`most = 1` is the quietest setting."""
    assert kinds(started(), quota(), tool(), ended("project_complete"), most=1) == ["run_finished"]


def test_words_are_one_bounded_line() -> None:
    """Ten kilobytes of control characters and half a character become one line."""
    (message,) = told(started(), ended("error", "\x1b[31m\ud800" + "boom\n" * 5_000))
    assert msgspec.json.encode(message)
    assert len(message.text) <= 400
    assert "\n" not in message.text
    assert "\x1b" not in message.text


EVENTS = st.lists(
    st.sampled_from(
        [
            started(), tool(), quota(), quota_over(), finished(), finished(outcome="usage_limit"),
            finished(status="BLOCKED"), finished(cost_usd=8.5), line("story_passed"),
            line("circuit_changed", after="OPEN"), line("circuit_changed", after="CLOSED"),
        ]
    ),
    max_size=200,
)  # fmt: skip


@given(events=EVENTS, most=st.integers(1, 8))
def test_no_night_is_noisy(events: list[LoopEvent], most: int) -> None:
    """Whatever happens, messages are few and each has a name of its own."""
    opened = sum(event.what == CircuitChanged(after=Circuit.OPEN) for event in events)
    messages = told(started(), *events, ended("error"), most=most)
    assert len(messages) <= most + opened
    assert len({message.id for message in messages}) == len(messages)


def test_every_message_says_what_to_do_about_it() -> None:
    """A command for each kind; a question names its story, and an odd id is quoted."""
    asks = finished(status="BLOCKED", recommendation="Which colour?", story="US 7")
    (blocked, end) = told(started(), asks, ended("project_complete"))
    assert (blocked.story, blocked.command) == ("US 7", "ralph answer 'US 7' \"…\"")
    assert blocked.way == "Answer: `ralph answer 'US 7' \"…\"`"
    assert (end.story, end.way) == ("", "Look: `ralph review`")
    shown = msgspec.structs.replace(blocked, page="https://here.example/#US%207")
    assert shown.way == "Answer: https://here.example/#US%207 or `ralph answer 'US 7' \"…\"`"
