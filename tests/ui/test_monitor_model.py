"""What the monitor says: the state of a run in words, the time left with its basis, the panels."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.core.events import AgentStep, LoopEvent, RequestAnswered, StatusAsked
from ralphloop.journal.journal import Journal
from ralphloop.journal.records import RunRecord
from ralphloop.project import Project
from ralphloop.ui.monitor.moments import LOG_KEPT, Facts, Source
from ralphloop.ui.monitor.paint import Line, Tone, cut, fit, plain, plain_ascii, width_of
from ralphloop.ui.monitor.panels import Screen
from tests import sentences
from tests.ui import monitor_nights as nights
from tests.ui.monitor_nights import CONFIG, EVENING, RUN, Night


def screen_of(night: Night, *, live: bool = True, run: str | None = None) -> Screen:
    """The screen beside a night, read from its journal."""
    source = Source(night.project, run=run, clock=night.clock)
    try:
        if live:
            with night.held():
                return Screen(facts_of(source), night.clock())
        return Screen(facts_of(source), night.clock())
    finally:
        source.close()


def facts_of(source: Source) -> Facts:
    """What a first look finds."""
    facts = source.poll()
    assert facts is not None
    return facts


def said(lines: Iterable[Line]) -> str:
    """The words of a panel."""
    return "\n".join(plain(line) for line in lines)


def head(screen: Screen) -> str:
    """The words of the header."""
    return said(screen.header(200))


def test_lanes_are_a_strip_with_the_queue_and_what_waits(tmp_path: Path) -> None:
    """What each lane does and since when; the log tells lanes apart; a story says why it waits."""
    screen = screen_of(nights.in_lanes(tmp_path))
    assert said(screen.now()).splitlines()[:4] == [
        "1│ US-002 waits for landing, 1 before it, 50s",
        "2│ US-003 lands, 1m 20s",
        "3│ US-004 works, came back from landing, 50s",
        "4│ US-005 works, 20s",
    ]
    rows = {row.id: (row.standing, row.verdict) for row in screen.facts.stories}
    assert rows["US-007"] == ("waits on US-006", "it needs US-006 first")
    assert rows["US-008"] == ("open", "every lane is busy")
    fourth = [line.text for line in screen.facts.log if line.lane == "4│ "]
    assert len(fourth) == 2
    assert "US-005" in fourth[0]
    assert [step.summary for step in screen.facts.actions] == ["Read src/shop/export.py"]


# --- states ----------------------------------------------------------------------------------


def test_a_running_agent_is_shown_with_its_last_sign_of_life(tmp_path: Path) -> None:
    """Story, iteration, attempt, time since the last output, tokens so far, last actions."""
    screen = screen_of(nights.running(tmp_path))
    assert "RUNNING" in head(screen)
    assert "US-004 Checkout validates the address before payment" in said(screen.now())
    assert "iteration 5, attempt 2/3, 1m 32s" in said(screen.now())
    assert "last output 12s ago · claude sonnet" in said(screen.now())
    assert "48 k in, 2,400 out" in said(screen.now())
    assert said(list(screen.actions())[-2:]).endswith(
        "✓ Write tests/test_checkout.py\n· Bash pytest -q tests/test_checkout.py"
    )


def test_silence_is_told_against_the_stall_limit(tmp_path: Path) -> None:
    """An agent that was silent for half of what it may be is a warning."""
    screen = screen_of(nights.stuck(tmp_path))
    assert ("no output for 6m 40s (of 10m 00s)", Tone.WARN) in list(screen.now())[2]


def test_the_moment_between_answer_and_verdict_is_named(tmp_path: Path) -> None:
    """Once the agent gave its result, what takes time is ours."""
    night = nights.running(tmp_path)
    night.tell("agent_event", night.n, kind="result", summary="Done.", ok=True)
    assert "measuring and checking" in said(screen_of(night).now())


def test_a_run_whose_process_is_gone_has_died(tmp_path: Path) -> None:
    """A run that says it runs while nobody carries it is not shown as running."""
    screen = screen_of(nights.running(tmp_path), live=False)
    assert "DIED" in head(screen)
    assert sentences.GO_ON in said(screen.todo())
    assert not screen.facts.night.is_live


def test_waiting_for_quota_counts_down(tmp_path: Path) -> None:
    """How long, until when, and why."""
    night = nights.waiting(tmp_path)
    before = said(screen_of(night).quota())
    night.clock.now += 60
    after = screen_of(night)
    assert before.startswith("goes on in 57m 38s (23:15)\nusage limit reached")
    assert said(after.quota()).startswith("goes on in 56m 38s (23:15)")
    assert "WAITING" in head(after)
    assert "5-hour limit reached" in said(after.quota())


def test_pausing_and_paused_are_two_things(tmp_path: Path) -> None:
    """A pause that was asked for begins after the iteration."""
    night = nights.running(tmp_path)
    night.journal.set_meta(f"desk:{RUN}", {"paused": "paused by a person"})
    assert "PAUSING" in head(screen_of(night))
    until = night.clock() + 3600
    night.journal.begin_wait(RUN, kind="pause", reason="paused", now=night.clock(), until=until)
    screen = screen_of(night)
    assert "PAUSED" in head(screen)
    assert screen.facts.night.is_paused
    assert "wait" not in head(screen)  # nobody knows how long a person takes


def test_preflight_is_shown_as_a_start(tmp_path: Path) -> None:
    """A process that holds the project without a run yet is about to begin one."""
    night = Night(tmp_path)
    with night.held("another"):
        screen = screen_of(night, live=False)
    assert "STARTING" in head(screen)


@pytest.mark.parametrize(
    ("decision", "state", "advice"),
    [
        ("project_complete", "COMPLETE", "git log"),
        ("blocked", "WAITS FOR YOU", "ralph run --continue"),
        ("circuit_open", "CIRCUIT OPEN", "--reset-circuit"),
        ("budget_exhausted", "LIMIT REACHED", "--max-cost"),
        ("error", "ERROR", "ralph doctor"),
        ("interrupted", "STOPPED", "ralph run --continue"),
    ],
)
def test_every_ending_says_what_to_do_next(
    tmp_path: Path, decision: str, state: str, advice: str
) -> None:
    """The state, the reason of the run, and a command."""
    night = Night(tmp_path)
    night.begin()
    night.end(decision, "for this reason")
    screen = screen_of(night, live=False)
    assert state in head(screen)
    assert "for this reason" in head(screen)
    assert advice in said(screen.todo())


def test_requests_nobody_answered_are_in_the_header(tmp_path: Path) -> None:
    """What was asked is visible until it is answered."""
    night = nights.running(tmp_path)
    number = night.journal.add_request(RUN, kind="pause", now=night.clock())
    assert number is not None
    assert "asked: pause" in head(screen_of(night))
    night.journal.answer_request(number, "pausing", now=night.clock())
    assert "asked" not in head(screen_of(night))


# --- header ----------------------------------------------------------------------------------


def test_the_time_left_names_its_basis(tmp_path: Path) -> None:
    """Three stories took 18.5 minutes, four are left: those that wait for a person are not."""
    shown = head(screen_of(nights.running(tmp_path)))
    assert "~25 min: 4 stories left at ~6 min each" in shown


def test_waiting_is_not_counted_as_work_but_added_to_the_time_left(tmp_path: Path) -> None:
    """An hour of waiting must not make the stories slower."""
    shown = head(screen_of(nights.waiting(tmp_path)))
    assert "~80 min: 4 stories left at ~6 min each + 58 min wait" in shown


def test_no_estimate_before_something_passed(tmp_path: Path) -> None:
    """A number without a basis is not given."""
    night = Night(tmp_path)
    night.begin()
    night.start("US-001")
    assert "8 stories left; no estimate before one passes" in head(screen_of(night))


def test_money_is_shown_against_the_raised_budget(tmp_path: Path) -> None:
    """What a person added counts."""
    night = nights.running(tmp_path)
    assert "$1.68 of $10.00" in head(screen_of(night))
    night.journal.set_meta(f"desk:{RUN}", {"extra": {"cost_usd": 2.5, "time_s": 3600.0}})
    shown = head(screen_of(night))
    assert "$1.68 of $12.50" in shown
    assert "18m 32s of 11h 00m" in shown


# --- stories and panels ----------------------------------------------------------------------


def test_each_story_has_its_state_attempts_grade_and_verdict(tmp_path: Path) -> None:
    """One row says where a story stands and why."""
    rows = {row.id: row for row in screen_of(nights.running(tmp_path)).facts.stories}
    assert (rows["US-001"].standing, rows["US-001"].tone) == ("verified", Tone.GOOD)
    assert rows["US-003"].standing == "checked"
    assert rows["US-004"].standing == "running"
    assert (rows["US-006"].standing, rows["US-006"].attempts) == ("waits for you", 1)
    assert rows["US-006"].verdict == "Is there a Volapük dictionary?"
    assert rows["US-007"].standing == "waits on US-006"


def test_weak_grades_are_not_green(tmp_path: Path) -> None:
    """Claimed and to be reviewed are told apart from proven."""
    rows = {
        row.standing: row for row in screen_of(nights.finished(tmp_path), live=False).facts.stories
    }
    assert rows["claimed"].tone is Tone.WARN
    assert (rows[sentences.NEEDS_REVIEW].tone, rows[sentences.NEEDS_REVIEW].mark) == (
        Tone.WARN,
        "!",
    )


def test_a_story_a_person_marked_is_not_taken_for_proven(tmp_path: Path) -> None:
    """It has the grade that `ralph status` and the report give it."""
    night = nights.running(tmp_path)
    night.write_stories("US-001", "US-002", "US-003", "US-008")
    rows = {row.id: row.standing for row in screen_of(night).facts.stories}
    assert rows["US-008"] == "by hand"


def test_a_run_whose_process_still_writes_its_report_has_ended(tmp_path: Path) -> None:
    """The holder of the project is the run's own process, not the start of another."""
    screen = screen_of(nights.finished(tmp_path))
    assert "COMPLETE" in head(screen)
    assert not screen.facts.night.is_live


def test_a_story_that_left_the_list_is_still_shown(tmp_path: Path) -> None:
    """What the journal remembers does not vanish with an edit."""
    night = nights.running(tmp_path)
    night.titles.pop("US-001")
    night.write_stories("US-002", "US-003")
    rows = screen_of(night).facts.stories
    assert (rows[-1].id, rows[-1].title) == ("US-001", sentences.NOT_LISTED)


def test_a_broken_story_file_costs_only_the_list(tmp_path: Path) -> None:
    """The rest of the screen stays, and the reason is named."""
    night = nights.running(tmp_path)
    (tmp_path / "prd.json").write_text("{")
    screen = screen_of(night)
    assert "RUNNING" in head(screen)
    assert "prd.json" in screen.stories_note


def test_the_plain_loop_has_one_row(tmp_path: Path) -> None:
    """Without a story list the prompt is the work, even beside a story file."""
    night = Night(tmp_path)
    night.titles = {"": ""}
    night.begin(prd_path="")
    night.start("")
    night.finish("", state={"attempts": 1})
    screen = screen_of(night)
    assert [row.title for row in screen.facts.stories] == ["the prompt"]
    assert screen.stories_note == "Enter opens one"
    assert "left" not in head(screen)


def test_the_last_result_of_every_check_is_shown(tmp_path: Path) -> None:
    """A check keeps its last result until it runs again, from the baseline on."""
    night = Night(tmp_path)
    night.begin()
    assert "✓ pytest -q  passed 39.8 s, before the first" in said(screen_of(night).checks())
    night.start("US-002")
    night.finish("US-002", claimed=True, checks=(nights.FAILED,))
    night.start("US-002", 2)
    night.finish("US-002", outcome="transient")
    shown = said(screen_of(night).checks())
    assert "✗ pytest -q  failed 41.3 s, iteration 1" in shown
    assert "tests/test_prices.py::test_decimal_comma" in shown
    assert "✓ ruff check .  passed 0.4 s, before the first" in shown


def test_the_circuit_is_shown_with_counters_trend_and_reason(tmp_path: Path) -> None:
    """State, counts against thresholds, output sizes as columns, last transition and why."""
    shown = said(screen_of(nights.stuck(tmp_path)).circuit())
    assert shown.startswith("HALF_OPEN for 6m")
    assert "███ 3 of 3" in shown
    assert "▆▆▇█▅▆▆ 374" in shown
    assert "CLOSED → HALF_OPEN 6m ago: no progress in 3 iterations in a row" in shown


def test_learnings_are_counted_from_their_files(tmp_path: Path) -> None:
    """Captured, categories, skills, and when the next aggregation is due."""
    night = nights.running(tmp_path)
    folder = night.project.directory / "learnings"
    folder.mkdir()
    for n in range(3):
        (folder / f"learning-US-00{n}-20261115-22000{n}.yaml").write_text("task_id: x\n")
    known = [
        {"id": "x", "text": "y", "category": category, "standing": standing}
        for category, standing in (
            ("testing", "noted"),
            ("testing", "established"),
            ("api", "proposed"),
        )
    ]
    (folder / "index.json").write_text(json.dumps({"patterns": known}))
    skill = tmp_path / ".claude" / "skills" / "testing-learned"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\n")
    shown = said(screen_of(night).learned())
    assert shown.splitlines() == [
        "3 captured, 1 skill",
        "testing 2, api 1",
        "1 to decide: ralph learnings review",
        "next aggregation in 1 story",
    ]


def test_learning_that_is_off_is_named(tmp_path: Path) -> None:
    """No aggregation is announced that will not come."""
    night = Night(tmp_path)
    night.begin(learning={"enabled": False})
    assert said(screen_of(night).learned()) == "learning is off"


# --- the source ------------------------------------------------------------------------------


def test_nothing_new_is_nothing(tmp_path: Path) -> None:
    """A look without a change gives nothing to draw."""
    night = nights.running(tmp_path)
    source = Source(night.project, clock=night.clock)
    with night.held():
        assert source.poll() is not None
        assert source.poll() is None
        night.clock.now += 10
        assert source.poll() is None
        night.acts("Read README.md", every=0.0)
        facts = source.poll()
    source.close()
    assert facts is not None
    assert facts.actions[-1].summary == "Read README.md"


def test_a_growing_transcript_is_a_sign_of_life(tmp_path: Path) -> None:
    """Output that is no visible step still counts, and its tokens do."""
    night = nights.running(tmp_path)
    source = Source(night.project, clock=night.clock)
    with night.held():
        first = facts_of(source)
        night.clock.now += 300
        night.transcript(tokens=90_000)
        second = facts_of(source)
    source.close()
    assert second.last_output == night.clock()
    assert second.usage.output_tokens > first.usage.output_tokens


def test_a_run_that_begins_later_is_found(tmp_path: Path) -> None:
    """The monitor may be there before the journal and before the run."""
    project = Project(tmp_path)
    source = Source(project, clock=lambda: EVENING)
    assert facts_of(source).night.run is None
    night = Night(tmp_path)
    night.begin()
    facts = facts_of(source)
    source.close()
    assert facts.night.run is not None
    assert facts.log


def test_a_new_run_replaces_the_old_one_on_the_screen(tmp_path: Path) -> None:
    """The newest run is followed, with its own log."""
    night = nights.finished(tmp_path)
    source = Source(night.project, clock=night.clock)
    old = facts_of(source)
    new = RunRecord(id="next", started_at=night.clock(), prd_path="prd.json", config=CONFIG)
    night.journal.begin_run(new)
    answered = RequestAnswered(kind="note", answer="news")
    night.journal.append_events([LoopEvent(run="next", at=night.clock(), what=answered)])
    facts = facts_of(source)
    source.close()
    assert facts.night.run is not None
    assert facts.night.run.id == "next"
    assert [line.text for line in facts.log] == ["  note: news"]
    assert len(old.log) > 10


def test_an_earlier_run_can_be_looked_at(tmp_path: Path) -> None:
    """Its own end and its own log, although newer runs wrote after it."""
    night = nights.finished(tmp_path)
    night.journal.begin_run(RunRecord(id="next", started_at=night.clock(), prd_path="prd.json"))
    noise = LoopEvent(run="next", at=0.0, what=StatusAsked())
    night.journal.append_events([noise] * 3 * LOG_KEPT)
    screen = screen_of(night, live=False, run=RUN)
    assert "COMPLETE" in head(screen)
    assert screen.facts.log[-1].text.endswith("tests were added and all is green")


def test_the_log_of_a_long_run_is_bounded(tmp_path: Path) -> None:
    """Only the newest lines are kept, at the start and later."""
    night = nights.running(tmp_path)
    step = LoopEvent(run=RUN, at=0.0, what=AgentStep(kind="tool", summary="Read a.py"))
    night.journal.append_events([step] * 2 * LOG_KEPT)
    source = Source(night.project, clock=night.clock)
    assert len(facts_of(source).log) == LOG_KEPT
    night.tell("request_answered", kind="note", answer="news")
    log = facts_of(source).log
    assert (len(log), log[-1].text) == (LOG_KEPT, "  note: news")
    source.close()


def test_a_damaged_journal_is_told_and_a_repaired_one_is_read(tmp_path: Path) -> None:
    """Words instead of a crash, and no restart needed."""
    night = nights.finished(tmp_path)
    night.journal.close()
    good = tmp_path / "good.db"
    shutil.copy(night.project.journal, good)
    night.project.journal.write_bytes(b"garbage" * 100)
    source = Source(night.project, clock=night.clock)
    broken = Screen(facts_of(source), night.clock())
    assert "JOURNAL UNREADABLE" in head(broken)
    assert "Nothing was changed" in said(broken.now())
    night.project.journal.unlink()
    good.replace(night.project.journal)
    night.clock.now += 5
    assert "COMPLETE" in head(Screen(facts_of(source), night.clock()))
    source.close()


def test_events_of_another_version_do_not_matter(tmp_path: Path) -> None:
    """An event without the fields we know is named, not a crash."""
    night = nights.running(tmp_path)
    night.tell("story_vanished", night.n, left_out=70_000)
    night.tell("agent_event", night.n)
    assert screen_of(night).facts.log[-1].text == "story_vanished"


def test_records_of_another_version_do_not_matter(tmp_path: Path) -> None:
    """Whatever JSON stands in the journal, there is a screen."""
    night = nights.running(tmp_path)
    night.journal.put_stories(RUN, {"US-005": {"standing": 7, "attempts": "many", "reason": None}})
    night.journal.set_meta(f"desk:{RUN}", ["?"])
    night.journal.set_meta(f"frozen:{RUN}", {"baseline": [{"name": 1}]})
    assert "RUNNING" in head(screen_of(night))


def test_settings_of_another_version_are_read_as_far_as_they_are_known(tmp_path: Path) -> None:
    """A setting that is no more does not take the limits beside it along."""
    night = Night(tmp_path)
    night.begin(limits={"max_cost_usd": 7.0, "max_moons": 3})
    assert "$0.00 of $7.00" in head(screen_of(night))


def test_hostile_titles_are_one_line_of_harmless_text(tmp_path: Path) -> None:
    """No control sequence, no markup, no line break reaches the screen."""
    titles = ("\x1b[2J\x1b]0;gone\x07red\nsecond line", "[bold]markup[/] \u202eevil", "x" * 10_000)
    night = Night(tmp_path, titles=titles)
    shown = [row.title for row in screen_of(night, live=False).facts.stories]
    assert shown[:2] == ["red second line", "[bold]markup[/] evil"]
    assert len(shown[2]) == 200


def test_the_screen_as_text(tmp_path: Path) -> None:
    """Every panel is there, none wider than asked."""
    lines = list(screen_of(nights.running(tmp_path)).as_text(90))
    text = "\n".join(lines)
    for word in ("Stories:", "Now:", "Checks:", "Circuit:", "Quota:", "Learnings:", "Log:"):
        assert word in text
    assert max(width_of(line) for line in lines) <= 90


def test_ten_thousand_stories_are_read_and_drawn_quickly(tmp_path: Path) -> None:
    """The list may be as long as it likes; the log of its rows is not built again for each step."""
    night = Night(tmp_path, titles=tuple(f"Story {n}" for n in range(10_000)))
    night.begin()
    night.start("US-001")
    source = Source(night.project, clock=night.clock)
    with night.held():
        first = facts_of(source)
        night.acts("Read a.py", every=0.0)
        second = facts_of(source)
    source.close()
    assert len(first.stories) == 10_000
    assert second.stories is first.stories


# --- words -----------------------------------------------------------------------------------

TEXTS = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" "))


@given(TEXTS, st.integers(0, 40))
def test_a_column_is_exactly_as_wide_as_asked(text: str, width: int) -> None:
    """Whatever the characters, columns stay where they are."""
    assert width_of(fit(text, width)) == width
    assert width_of(cut(text, width)) <= width


@given(TEXTS)
def test_ascii_is_ascii(text: str) -> None:
    """Nothing else is left, whatever comes in."""
    assert plain_ascii(text).isascii()


def test_journal_is_only_read(tmp_path: Path) -> None:
    """Looking changes nothing."""
    night = nights.finished(tmp_path)
    night.journal.close()
    before = night.project.journal.read_bytes()
    screen_of(night, live=False)
    assert night.project.journal.read_bytes() == before
    Journal.open(night.project.journal).close()
