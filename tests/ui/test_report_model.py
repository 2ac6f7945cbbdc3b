"""What the report says of a night: groups, money, near misses, decisions, next steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.core.grading import Grade
from ralphloop.core.iteration import SaveLeftovers
from ralphloop.journal.journal import Journal
from ralphloop.text.plain import number
from ralphloop.ui.report.assemble import ALWAYS, MOST_BARS, MOST_DECISIONS
from ralphloop.ui.report.render import whole_seconds
from ralphloop.ui.report.tally import Stretch, time_spent
from ralphloop.ui.report.values import MOST_SPANS, Group, Report, Teller
from tests import sentences
from tests.ui.report_nights import (
    EVENING,
    RUN,
    Night,
    eventful,
    open_journal,
    story,
    story_list,
    told,
)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """A new journal."""
    with open_journal(tmp_path) as opened:
        yield opened


def group(report: Report, key: str) -> Group:
    """One group of stories."""
    return next(group for group in report.groups if group.key == key)


def ids(report: Report, key: str) -> list[str]:
    """The stories of one group."""
    return [line.id for line in group(report, key).stories]


def test_every_story_stands_in_the_group_its_ending_is_worth(journal: Journal) -> None:
    """Verified, checked, claimed, to review, failed, waiting, by hand and open are told apart."""
    found = told(journal, eventful(journal))
    assert {g.key: [line.id for line in g.stories] for g in found.groups} == {
        "waiting": ["US-7"],
        "review": ["US-2"],
        "failed": ["US-4"],
        "claimed": ["US-5"],
        "checked": ["US-3"],
        "verified": ["US-1", "US-6"],
        "by_hand": ["US-8"],
        "open": ["US-9"],
    }
    assert (found.passed, found.total) == (6, 9)
    assert found.headline == "6 of 9 stories passed, 1 waits for you, 1 failed, 1 to review"


def test_a_story_names_its_question_its_commits_and_its_proof(journal: Journal) -> None:
    """Each claim of the report can be seen for oneself with one command."""
    stories = eventful(journal)
    commit = "c" * 40
    found = told(journal, stories, commits={1: commit})
    first = group(found, "verified").stories[0]
    assert first.look == "git show cccccccccc"
    assert first.proof == ("pytest -q",)
    assert group(found, "waiting").stories[0].reason == "Which tax rate applies to gift cards?"
    aside = group(found, "failed").stories[0]
    assert aside.bring_back == f"git cherry-pick --no-commit refs/ralph/set-aside/{RUN}/9"
    assert aside.look == ""  # nothing was committed
    assert (aside.attempts, aside.iterations) == (3, 4)


def test_a_story_shows_its_own_commits_and_no_others(journal: Journal) -> None:
    """Whatever lay between its first start and its pass; a story without a commit shows nothing."""
    night = Night(journal)
    night.iteration("US-1", head="a" * 40, effects=(SaveLeftovers(story="US-1"),))
    night.passes("US-2", head="a" * 40)
    night.iteration("US-3", head="b" * 40, commits=2)
    night.passes("US-3", head="d" * 40)
    night.passes("US-1", head="e" * 40)
    night.iteration("US-4", head="f" * 40, commits=1)
    commits = {2: "b" * 40, 4: "e" * 40, 5: "f" * 40}
    found = told(journal, story_list(*(story(n) for n in range(1, 5))), commits=commits)
    assert {line.id: line.look for g in found.groups for line in g.stories} == {
        "US-1": "git show ffffffffff",
        "US-2": "git show bbbbbbbbbb",
        "US-3": "git show bbbbbbbbbb..eeeeeeeeee",  # the agent had committed on the way
        "US-4": "",
    }


def test_failed_attempts_are_counted_over_the_whole_run(journal: Journal) -> None:
    """Being set aside and taken up again starts a new count for the loop, not for the reader."""
    night = Night(journal)
    for _ in range(3):
        night.iteration("US-1", state={"attempts": 3, "standing": "set_aside"})
    night.iteration("US-1", outcome="transient")
    night.passes("US-1")
    (line,) = group(told(journal, story_list(story(1))), "verified").stories
    assert (line.attempts, line.iterations) == (3, 5)


def test_a_story_marked_by_a_person_is_not_a_failed_one(journal: Journal) -> None:
    """As in the list of stories: the file says that it passed, a person said so."""
    Night(journal).iteration("US-1", state={"attempts": 1})
    assert ids(told(journal, story_list(story(1, passes=True))), "by_hand") == ["US-1"]


def test_a_verify_command_is_shown_as_its_own_proof(journal: Journal) -> None:
    """The story's own command stands beside the project's checks, quoted for a shell."""
    night = Night(journal)
    night.iteration(
        "US-1",
        verdict={"passed": True, "grade": "verified"},
        checks=[{"name": "pytest -q", "status": "passed"}, {"name": "verify", "status": "passed"}],
        state={"standing": "passed", "grade": "verified"},
    )
    found = told(journal, story_list(story(1, verify=("sh", "-c", "a && b"))))
    assert group(found, "verified").stories[0].proof == ("pytest -q", "sh -c 'a && b'")


def test_money_is_held_against_the_budget_as_a_person_raised_it(journal: Journal) -> None:
    """Ten dollars allowed and five added are fifteen."""
    found = told(journal, eventful(journal)).spending
    assert found.max_cost_usd == 15.0
    assert found.cost_share == pytest.approx(found.totals.cost_usd / 15.0)
    assert found.totals.iterations == 12
    assert found.cost_per_pass_usd == pytest.approx(found.totals.cost_usd / 5)


def test_the_night_is_split_into_working_checking_and_waiting(journal: Journal) -> None:
    """The parts add up to the whole."""
    times = told(journal, eventful(journal)).times
    assert times["waiting_s"] == 96 * 60
    assert times["checking_s"] == 5 * 40 + 38 + 4
    names = ("working", "checking", "proving", "waiting", "other")
    parts = sum(times[f"{name}_s"] for name in names)
    assert parts == pytest.approx(times["total_s"])


def test_proving_is_told_with_its_mutants(journal: Journal) -> None:
    """What tests notice of changed code is tried after everything else, and takes time as well."""
    night = Night(journal)
    trial = {"took_s": 5.0, "mutation": {"took_s": 7.0}}
    night.iteration("US-1", evidence={"trial": trial}, end={"duration_s": 60.0})
    assert told(journal, story_list(story(1))).times["proving_s"] == pytest.approx(12.0)


def test_near_misses_are_counted_by_kind(journal: Journal) -> None:
    """Everything that almost went wrong is named, repeated words only once."""
    found = {miss.key: miss for miss in told(journal, eventful(journal)).near_misses}
    assert {key: miss.count for key, miss in found.items()} == {
        "false_done": 1,
        "early_exit": 1,
        "half_open": 1,
        "circles": 3,
        "outages": 1,
        "denied": 3,
        "leftovers": 1,
    }
    assert [note.words for note in found["circles"].examples] == [
        "same error: E: no such column: total"
    ]
    assert "overloaded" in found["outages"].examples[0].words


def test_flaky_checks_stops_and_tolerated_failures_are_near_misses(journal: Journal) -> None:
    """A check that changed its mind, a start that hung, a test that stays red: all are told."""
    night = Night(journal)
    flaky = {"name": "pytest -q", "status": "passed", "flaky": True, "failing_tests": ["t::a"]}
    night.iteration("US-1", checks=[flaky], tolerated=["t::old"])
    night.iteration("US-1", outcome="stalled", stopped_because="10m without a sign of life")
    found = {m.key: m.examples[0].words for m in told(journal, None).near_misses}
    assert found == {
        "flaky": "pytest -q: t::a",
        "tolerated": "t::old",
        "stopped": "silent: 10m without a sign of life",
    }


def test_tampering_is_told_with_its_iteration(journal: Journal) -> None:
    """What was weakened stands in a section of its own."""
    (note,) = told(journal, eventful(journal)).tampering
    assert (note.iteration, note.story) == (2, "US-2")
    assert "3 tests were skipped" in note.words


def test_decisions_are_told_in_order_with_their_reasons(journal: Journal) -> None:
    """Waits, circuit changes, stories set aside, a person's wishes, the end."""
    words = [note.words for note in told(journal, eventful(journal)).decisions]
    assert [text.split(":")[0] for text in words] == [
        "waited",
        "waited",
        "circuit CLOSED → HALF_OPEN",
        "was set aside, attempt 1",
        "a person asked",
        "waits for a person",
        "the run ended",
    ]


def test_what_to_do_next_begins_with_what_waits_for_a_person(journal: Journal) -> None:
    """Question first, then review, then leftovers, then how to go on."""
    steps = told(journal, eventful(journal)).next_steps
    assert steps[0].words == "Answer US-7: Which tax rate applies to gift cards?"
    assert steps[1].words.startswith("Review US-2")
    assert steps[2].command.startswith("git cherry-pick")
    assert steps[-1].command == sentences.GO_ON


@pytest.mark.parametrize(
    "decision, words, command",
    [
        ("circuit_open", "the circuit is open", "ralph run --continue --reset-circuit"),
        ("budget_exhausted", "out of budget", "ralph run --continue --max-cost X"),
        ("max_iterations", "out of iterations", "ralph run --continue --max-iterations N"),
        ("error", "ended by an error", "ralph run --continue"),
        ("no_runnable_story", "nothing more to run", "ralph run"),
        ("interrupted", "interrupted", "ralph run --continue"),
    ],
)
def test_each_ending_has_its_words_and_its_way_on(
    journal: Journal, decision: str, words: str, command: str
) -> None:
    """The headline says how it ended, the last step how to go on."""
    Night(journal).end(decision, "why")
    found = told(journal, story_list(story(1)))
    assert found.headline == f"0 of 1 story passed, {words}"
    assert found.next_steps[-1].command == command


def test_a_run_that_goes_on_is_reported_as_it_stands(journal: Journal) -> None:
    """No end, no next step, and an iteration under way is not counted."""
    night = Night(journal)
    night.passes("US-1")
    from ralphloop.journal.records import IterationRecord

    journal.start_iteration(IterationRecord(run=RUN, n=2, started_at=night.now, story="US-2"))
    found = told(journal, story_list(story(1), story(2)), live=True)
    assert found.ended_at is None
    assert found.headline == "1 of 2 stories passed, still running"
    died = told(journal, story_list(story(1), story(2)))
    assert died.headline == "1 of 2 stories passed, its process is gone"
    assert len(found.series.iterations) == 1


def test_a_plain_loop_has_one_nameless_story(tmp_path: Path) -> None:
    """Without a story list the prompt is what was worked on."""
    from ralphloop.journal.records import RunRecord

    with open_journal(tmp_path) as journal:
        journal.begin_run(RunRecord(id=RUN, started_at=EVENING))
        journal.put_stories(RUN, {"": {"standing": "open", "attempts": 1, "reason": "no claim"}})
        found = told(journal, None, live=True)
    assert found.headline == "a plain loop, 1 failed, still running"
    assert ids(found, "failed") == ["the prompt"]


@pytest.mark.parametrize("count", [0, 1, 500])
def test_any_number_of_stories_is_told(journal: Journal, count: int) -> None:
    """None, one and five hundred stories; the six groups that matter are always there."""
    found = told(journal_with(journal), story_list(*(story(n) for n in range(1, count + 1))))
    assert found.total == count
    assert set(ALWAYS) <= {g.key for g in found.groups}


def journal_with(journal: Journal) -> Journal:
    """A journal with an empty run."""
    Night(journal)
    return journal


def test_of_thousands_of_stories_the_most_urgent_are_shown(journal: Journal) -> None:
    """The page is bounded; what waits for a person is never what is left out."""
    Night(journal)
    journal.put_stories(RUN, {"US-2000": {"standing": "blocked", "reason": "which?"}})
    found = told(journal, story_list(*(story(n) for n in range(1, 2001))))
    assert ids(found, "waiting") == ["US-2000"]
    assert group(found, "open").count == 1999
    assert group(found, "open").more == 1999 - 499
    assert sum(len(g.stories) for g in found.groups) == 500


def test_stories_that_passed_earlier_are_not_this_nights_work(journal: Journal) -> None:
    """A story this run never worked on counts as passed, in a group of its own."""
    Night(journal)
    journal.put_stories(RUN, {"US-1": {"standing": "passed", "grade": str(Grade.VERIFIED)}})
    found = told(journal, story_list(story(1, passes=True)))
    assert ids(found, "earlier") == ["US-1"]
    assert ids(found, "verified") == []
    assert found.passed == 1


def test_a_story_that_left_the_list_is_still_reported(journal: Journal) -> None:
    """What was spent on it does not vanish with it."""
    Night(journal).passes("US-9")
    found = told(journal, story_list(story(1)))
    assert group(found, "verified").stories[0].title == sentences.NOT_LISTED


def test_the_circuit_is_told_with_what_happened_between_iterations(journal: Journal) -> None:
    """A reset is in no iteration, but in the circuit's own history."""
    night = Night(journal)
    opened = {"iteration": 1, "before": "CLOSED", "after": "OPEN", "reason": "5 × same error"}
    opened["at"] = EVENING + 360
    night.iteration("US-1", analysis={"transition": opened})
    reset = {"iteration": 1, "before": "OPEN", "after": "CLOSED", "reason": "manual reset"}
    earlier = {**reset, "at": EVENING - 9_000}
    history = [earlier, opened, {**reset, "at": EVENING + 500}]
    journal.set_meta("circuit", {"history": history})
    night.now += 600
    night.end("interrupted")
    series = told(journal, None).series
    assert [span.kind for span in series.circuit] == ["CLOSED", "OPEN", "CLOSED"]
    assert series.circuit[1].start == EVENING + 360
    assert series.circuit[1].end == EVENING + 500


def test_secrets_never_reach_a_report(journal: Journal) -> None:
    """Neither what looks like a key nor the value of a known secret."""
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    night = Night(journal)
    night.iteration(
        "US-1",
        status="BLOCKED",
        analysis={"status": {"recommendation": f"use {token} or hunter2-hunter2"}},
        state={"standing": "blocked", "reason": f"use {token} or hunter2-hunter2"},
    )
    night.end("blocked", f"needs {token}")
    import msgspec

    text = msgspec.json.encode(
        told(journal, story_list(story(1, f"title {token}")), secrets=("hunter2-hunter2",))
    ).decode()
    assert token not in text
    assert "hunter2-hunter2" not in text
    assert "[redacted]" in text


def test_ten_thousand_iterations_stay_one_page(journal: Journal) -> None:
    """Pictures are aggregated, lists are cut, sums are exact."""
    night = Night(journal)
    moved = {"before": "CLOSED", "after": "HALF_OPEN", "reason": "none"}
    night.iteration(
        "US-1", analysis={"transition": moved, "stuck": [{"name": "same_error", "detail": "E"}]}
    )
    night.passes("US-2")
    multiply_iterations(journal, 10_000)
    found = told(journal, story_list(story(1), story(2)))
    assert len(found.series.iterations) <= MOST_BARS
    assert found.series.iterations[-1].name.endswith("–10000")
    total = sum(cost.tokens for cost in found.series.iterations)
    assert total == sum(cost.tokens for cost in found.series.stories)
    assert len(found.series.circuit) <= MOST_SPANS
    assert found.series.circuit_changes == 5_000
    assert len(found.decisions) == MOST_DECISIONS
    assert found.decisions_left_out == 5_000 - MOST_DECISIONS
    assert {miss.key: miss.count for miss in found.near_misses}["circles"] == 5_000
    assert len(found.series.passed) <= 300
    assert found.series.passed[-1].count == 5_000


def multiply_iterations(journal: Journal, count: int) -> None:
    """Repeat the first two iterations up to that number, in one statement."""
    columns = [row["name"] for row in journal.rows("PRAGMA table_info(iterations)")]
    shift = {"n": "n + 2 * k", "started_at": "started_at + k", "finished_at": "finished_at + k"}
    chosen = ", ".join(shift.get(name, name) for name in columns)
    with journal.write("finish_iteration") as db:
        db.run(
            f"WITH RECURSIVE ks(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM ks WHERE k < ?)"
            f" INSERT INTO iterations ({', '.join(columns)})"
            f" SELECT {chosen} FROM iterations, ks WHERE n <= 2",
            (count // 2 - 1,),
        )


@given(text=st.text(max_size=5_000))
def test_any_text_becomes_one_bounded_line(text: str) -> None:
    """Whatever an agent writes, the report gets a line."""
    said = Teller()(text, 80)
    assert len(said) <= 80
    assert said.isprintable() or not set(said) & set("\n\r\x1b\x00\u202e")


@pytest.mark.parametrize(
    "value, words", [(0, "0"), (9_999, "9,999"), (86_000, "86 k"), (1_400_000, "1.4 M")]
)
def test_numbers_are_readable(value: int, words: str) -> None:
    """Three digits and a unit."""
    assert number(value) == words


def test_a_landing_that_came_back_is_no_failure(journal: Journal) -> None:
    """It was good in its lane: no failed attempt, and nobody said done that was not."""
    night = Night(journal)
    back = {"returned": {"words": "conflict with US-2 in CHANGELOG.md"}}
    claimed = {"story_claimed": True, "progress": True}
    verdict = {"passed": False, "reasons": ["goes back to its lane"]}
    night.iteration("US-1", analysis=claimed, verdict=verdict, evidence=back)
    night.passes("US-1")
    found = told(journal, story_list(story(1)))
    (line,) = group(found, "verified").stories
    assert line.attempts == 0
    assert not found.near_misses


def test_what_goes_on_at_once_counts_once() -> None:
    """Two agents that work for ten minutes side by side have worked for ten minutes of the night."""
    side_by_side = [
        Stretch("working", 0.0, 600.0),
        Stretch("working", 0.0, 600.0),
        Stretch("checking", 500.0, 700.0),
        Stretch("proving", 650.0, 750.0),
    ]
    assert time_spent(side_by_side) == {"working": 600.0, "checking": 100.0, "proving": 50.0}


@given(st.lists(st.floats(0, 1e6), min_size=5, max_size=5))
def test_seconds_that_are_shown_add_up(parts: list[float]) -> None:
    """Rounded to whole seconds, the parts are still the whole."""
    whole = whole_seconds(parts, sum(parts))
    assert sum(whole) == int(sum(parts))
    assert all(abs(one - part) <= 1 for one, part in zip(whole, parts, strict=True))
