"""The journal as its writer sees it: runs, iterations, totals, and what survives what."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralphloop.core.events import AgentStep, IterationFinished, LoopEvent, StatusAsked, Unknown
from ralphloop.core.iteration import CommitStory, Iteration, MarkStory
from ralphloop.core.model import Analysis
from ralphloop.core.run_state import (
    Attempt,
    StoryState,
)
from ralphloop.core.totals import Expense
from ralphloop.errors import JournalError
from ralphloop.journal.journal import Journal, new_run_id
from ralphloop.journal.records import IterationRecord, RunStatus, Wish
from tests.journal.support import (
    DAY,
    NOON,
    finished,
    new_iteration,
    new_run,
    run_iterations,
    saved_state,
)


def test_run_ids_sort_by_time_and_differ() -> None:
    """A run's id tells when it began, fits into a git ref and is not met twice."""
    ids = [new_run_id(NOON), new_run_id(NOON), new_run_id(NOON + 1)]
    assert ids[0].startswith("20261115-120000-")
    assert len(set(ids)) == 3
    assert max(ids) == ids[2]


def test_a_run_reads_back_as_it_was_begun(journal: Journal) -> None:
    """What is known of a run at its start is kept."""
    journal.begin_run(msgspec.structs.replace(new_run(), config={"agent": {"name": "claude"}}))
    run = journal.find_run("r1")
    assert run is not None
    assert run.status is RunStatus.RUNNING
    assert run.config == {"agent": {"name": "claude"}}
    assert (run.started_at, run.last_activity, run.ended_at) == (NOON, NOON, None)
    assert journal.find_run("r2") is None


def test_an_iteration_is_open_then_owed_then_done(journal: Journal) -> None:
    """A crash finds each iteration in exactly one of the states recovery knows."""
    journal.begin_run(new_run())
    journal.start_iteration(new_iteration(1))
    journal.set_agent_pid("r1", 1, pid=4711, pid_started=NOON + 60)
    assert [(i.n, i.pid) for i in journal.unfinished_iterations("r1")] == [(1, 4711)]
    assert journal.owed_effects("r1") == []

    effects = (MarkStory(story="US-1"), CommitStory())
    journal.finish_iteration(finished(1, effects=effects))
    assert journal.unfinished_iterations() == []
    assert [i.effects for i in journal.owed_effects()] == [effects]

    journal.mark_applied("r1", 1, now=NOON + 95)
    journal.mark_applied("r1", 1, now=NOON + 99)
    done = journal.iteration("r1", 1)
    assert journal.owed_effects() == []
    assert done is not None
    assert [*map(tuple, journal.rows("SELECT applied_at FROM iterations"))] == [(NOON + 95,)]
    assert done.record == Iteration(analysis=Analysis(progress=True))


def test_an_iteration_that_owes_nothing_is_done_at_once(journal: Journal) -> None:
    """Without effects there is nothing to come back for."""
    journal.begin_run(new_run())
    journal.start_iteration(new_iteration(1))
    journal.finish_iteration(finished(1))
    assert journal.owed_effects() == []


def test_nothing_is_started_or_finished_twice(journal: Journal) -> None:
    """A second start or end of an iteration is an error that changes no total."""
    journal.begin_run(new_run())
    run_iterations(journal, 1)
    before = journal.totals("r1")
    with pytest.raises(JournalError):
        journal.start_iteration(new_iteration(1))
    with pytest.raises(JournalError, match="finished"):
        journal.finish_iteration(finished(1))
    with pytest.raises(JournalError, match="never started"):
        journal.finish_iteration(finished(2))
    assert journal.totals("r1") == before


@pytest.mark.parametrize("known", [True, False])
def test_what_does_not_exist_is_refused(journal: Journal, known: bool) -> None:
    """Writing to a run or iteration that is not there is an error, not a silent nothing."""
    if known:
        journal.begin_run(new_run("other"))
    with pytest.raises(JournalError):
        journal.start_iteration(new_iteration(1))
    with pytest.raises(JournalError):
        journal.set_agent_pid("r1", 1, pid=1, pid_started=0)
    with pytest.raises(JournalError):
        journal.mark_applied("r1", 1, now=NOON)
    with pytest.raises(JournalError):
        journal.end_run("r1", now=NOON, status=RunStatus.STOPPED)
    with pytest.raises(JournalError):
        journal.reopen_run("r1", now=NOON, pid=1)
    assert journal.unfinished_iterations() == []


def test_finishing_writes_everything_or_nothing(journal: Journal) -> None:
    """State, stories, meta and events move with the iteration or not at all."""
    journal.begin_run(new_run())
    journal.start_iteration(new_iteration(1))
    done = msgspec.structs.replace(
        finished(1),
        stories={"US-1": {"attempts": 1}},
        meta={"circuit": {"state": "OPEN"}},
        events=(LoopEvent(run="r1", at=NOON, what=IterationFinished(), iteration=1),),
    )
    with pytest.raises(TypeError):
        journal.finish_iteration(msgspec.structs.replace(done, stories={"US-2": object()}))
    assert saved_state(journal, "r1") == (0, b"")
    assert journal.meta("circuit") is None
    assert len(journal.unfinished_iterations()) == 1

    journal.finish_iteration(done)
    assert saved_state(journal, "r1") == (1, b'{"starts":1}')
    assert journal.story_states("r1") == {"US-1": StoryState(attempt=Attempt(failed=1))}
    assert journal.meta("circuit") == {"state": "OPEN"}
    assert [event.what.type for event in journal.events_since("r1", 0)] == ["iteration_finished"]


def test_totals_survive_a_restart(journal: Journal, path: Path) -> None:
    """Budgets go on where they were, whoever opens the journal next."""
    journal.begin_run(new_run())
    run_iterations(journal, 3)
    journal.close()
    with Journal.open(path) as again:
        totals = again.totals("r1")
    assert (totals.starts, totals.iterations) == (3, 3)
    assert totals.cost_usd == pytest.approx(1.5)
    assert totals.total_tokens == 330
    assert (totals.files_modified, totals.commits) == (6, 3)


def test_a_start_without_model_output_is_no_iteration(journal: Journal) -> None:
    """Infrastructure that failed before the model spoke is a start, and not an iteration."""
    journal.begin_run(new_run())
    journal.start_iteration(new_iteration(1))
    journal.finish_iteration(msgspec.structs.replace(finished(1), spent=Expense(counted=False)))
    totals = journal.totals("r1")
    assert (totals.starts, totals.iterations) == (1, 0)


def test_one_estimate_marks_the_whole_cost(journal: Journal) -> None:
    """A sum with an estimate in it is an estimate."""
    journal.begin_run(new_run())
    for n, estimated in enumerate([False, True, False], start=1):
        journal.start_iteration(new_iteration(n))
        spent = Expense(cost_usd=1, cost_estimated=estimated)
        journal.finish_iteration(msgspec.structs.replace(finished(n), spent=spent))
    assert journal.totals("r1").cost_estimated


@pytest.mark.parametrize("cost", [math.nan, math.inf, -5.0])
def test_numbers_no_budget_can_hold_count_as_nothing(journal: Journal, cost: float) -> None:
    """A cost that is no number, endless or negative neither fails nor pays back."""
    journal.begin_run(new_run())
    journal.start_iteration(new_iteration(1))
    spent = Expense(cost_usd=cost, input_tokens=10**30, output_tokens=-4)
    journal.finish_iteration(msgspec.structs.replace(finished(1), spent=spent))
    totals = journal.totals("r1")
    assert (totals.cost_usd, totals.input_tokens, totals.output_tokens) == (0.0, 2**53, 0)


def test_undecodable_text_is_stored(journal: Journal) -> None:
    """Half surrogate pairs, as broken output gives, do not end the night."""
    journal.begin_run(new_run())
    journal.start_iteration(
        IterationRecord(run="r1", n=1, started_at=NOON, story="a\udc80", prompt_path="\x00")
    )
    record = Iteration(agent="\ud800", findings=("\udfff", "é"))
    journal.finish_iteration(msgspec.structs.replace(finished(1), record=record))
    done = journal.iteration("r1", 1)
    assert done is not None
    assert done.story == "a?"
    assert done.record == Iteration(agent="?", findings=("?", "é"))


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.floats(allow_nan=True, allow_infinity=True),
            st.integers(),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_totals_are_the_sum_of_the_iterations(
    tmp_path_factory: pytest.TempPathFactory, spendings: list[tuple[bool, float, int, bool]]
) -> None:
    """However iterations end, the run's totals are what adding them up gives."""
    with Journal.open(tmp_path_factory.mktemp("sum") / "journal.db") as journal:
        journal.begin_run(new_run())
        for n, (counted, cost, tokens, finishes) in enumerate(spendings, start=1):
            journal.start_iteration(new_iteration(n))
            if finishes:
                spent = Expense(counted=counted, cost_usd=cost, output_tokens=tokens)
                journal.finish_iteration(msgspec.structs.replace(finished(n), spent=spent))
        totals = journal.totals("r1")
        rows = journal.iterations("r1")
    assert totals.starts == len(spendings)
    assert totals.iterations == sum(row.counted for row in rows)
    assert totals.cost_usd == pytest.approx(sum(row.cost_usd for row in rows))
    assert totals.output_tokens == sum(row.output_tokens for row in rows)


# --- runs and sessions -----------------------------------------------------------------------


def test_S04_AC3_an_interrupted_run_is_found_and_goes_on(journal: Journal) -> None:
    """A stopped run is what `--continue` finds, under the same id and with its totals."""
    journal.begin_run(new_run())
    run_iterations(journal, 2)
    journal.end_run(
        "r1", now=NOON + 300, status=RunStatus.STOPPED, decision="interrupted", reason="Ctrl+C"
    )
    found = journal.resume_candidate(NOON + 400)
    assert found is not None
    assert (found.run.id, found.run.decision, found.expired) == ("r1", "interrupted", False)

    journal.reopen_run("r1", now=NOON + 400, pid=99, pid_started=NOON + 399)
    again = journal.find_run("r1")
    assert again is not None
    assert (again.status, again.pid, again.ended_at) == (RunStatus.RUNNING, 99, None)
    assert journal.next_number("r1") == 3
    assert again.totals.iterations == 2


def test_a_completed_run_is_archived(journal: Journal) -> None:
    """After completion there is nothing to continue."""
    journal.begin_run(new_run())
    journal.end_run("r1", now=NOON + 1, status=RunStatus.COMPLETE, decision="project_complete")
    assert journal.resume_candidate(NOON + 2) is None
    latest = journal.latest_run()
    assert latest is not None
    assert latest.decision == "project_complete"
    with pytest.raises(JournalError):
        journal.reopen_run("r1", now=NOON + 3, pid=1)


def test_a_new_run_supersedes_and_may_keep_story_states(journal: Journal) -> None:
    """Beside an unfinished run a new one begins; it takes over what is known of the stories."""
    journal.begin_run(new_run("r1"))
    journal.put_stories("r1", {"US-1": {"attempts": 2}})
    journal.begin_run(new_run("r2", at=NOON + 60, continues="r1"))
    old = journal.find_run("r1")
    assert old is not None
    assert old.status is RunStatus.SUPERSEDED
    assert journal.story_states("r2") == {"US-1": StoryState(attempt=Attempt(failed=2))}
    latest = next(iter(journal.unfinished_runs()), None)
    assert latest is not None
    assert latest.id == "r2"
    assert [run.id for run in journal.runs()] == ["r2", "r1"]


def test_effects_of_a_superseded_run_are_still_owed(journal: Journal) -> None:
    """What a crashed run left undone is found even when nobody continues it."""
    journal.begin_run(new_run("r1"))
    journal.start_iteration(new_iteration(1))
    journal.finish_iteration(finished(1, effects=(MarkStory(),)))
    journal.start_iteration(new_iteration(2))
    journal.begin_run(new_run("r2", at=NOON + 60))
    assert [(i.run, i.n) for i in journal.owed_effects()] == [("r1", 1)]
    assert [(i.run, i.n) for i in journal.unfinished_iterations()] == [("r1", 2)]
    assert journal.owed_effects("r2") == []


def test_S04_AC7_a_run_expires_after_a_day_without_a_sign_of_life(journal: Journal) -> None:
    """More than 24 hours after the last activity a session is too old; a heartbeat counts."""
    journal.begin_run(new_run())
    journal.heartbeat("r1", now=NOON + 3600)
    young = journal.resume_candidate(NOON + 3600 + DAY)
    old = journal.resume_candidate(NOON + 3601 + DAY)
    assert young is not None
    assert old is not None
    assert (young.expired, old.expired) == (False, True)


def test_a_waiting_run_does_not_expire(journal: Journal) -> None:
    """A week's wait for quota, survived by a restart, is no reason to forget the session."""
    journal.begin_run(new_run())
    until = NOON + 6 * DAY
    journal.begin_wait("r1", kind="usage_limit", reason="seven_day", now=NOON + 60, until=until)
    for now, expired in [(NOON + 5 * DAY, False), (until + DAY, False), (until + DAY + 1, True)]:
        found = journal.resume_candidate(now)
        assert found is not None
        assert found.expired == expired


def test_a_clock_set_back_expires_nothing(journal: Journal) -> None:
    """A last activity in the future is not old."""
    journal.begin_run(new_run(at=NOON + 9 * DAY))
    found = journal.resume_candidate(NOON)
    assert found is not None
    assert not found.expired


def test_active_time_leaves_out_the_time_nobody_ran(journal: Journal) -> None:
    """Time counts while a process carries the run, not between interruption and return."""
    journal.begin_run(new_run())
    journal.heartbeat("r1", now=NOON + 100)
    journal.end_run("r1", now=NOON + 130, status=RunStatus.STOPPED)
    journal.heartbeat("r1", now=NOON + 5000)
    journal.reopen_run("r1", now=NOON + 9000, pid=1)
    journal.heartbeat("r1", now=NOON + 9020)
    journal.heartbeat("r1", now=NOON)
    journal.heartbeat("r1", now=NOON + 5)
    assert journal.totals("r1").active_s == pytest.approx(155)


def test_waits_are_counted_once_and_replace_each_other(journal: Journal) -> None:
    """Waited time is the sum of the waits; ending one twice adds nothing."""
    journal.begin_run(new_run())
    journal.begin_wait("r1", kind="backoff", reason="503", now=NOON, until=NOON + 60)
    journal.begin_wait("r1", kind="usage_limit", reason="5h", now=NOON + 10, until=NOON + 99)
    journal.end_wait("r1", now=NOON + 40)
    journal.end_wait("r1", now=NOON + 50)
    assert journal.open_wait("r1") is None
    assert journal.totals("r1").waited_s == pytest.approx(40)
    assert [(w.kind, w.ended_at) for w in journal.waits("r1")] == [
        ("usage_limit", NOON + 40),
        ("backoff", NOON + 10),
    ]


def test_meta_outlives_runs(journal: Journal, path: Path) -> None:
    """The circuit's state belongs to the project, not to one run."""
    journal.begin_run(new_run())
    journal.set_meta("circuit", {"state": "OPEN", "opened_count": 1})
    journal.end_run("r1", now=NOON + 1, status=RunStatus.STOPPED)
    journal.close()
    with Journal.open(path) as again:
        again.begin_run(new_run("r2"))
        assert again.meta("circuit") == {"state": "OPEN", "opened_count": 1}
        assert again.meta("nothing") is None


# --- questions -------------------------------------------------------------------------------


def test_iterations_come_in_pages_by_number(journal: Journal) -> None:
    """Lists are read from a given number on, with or without their long columns."""
    journal.begin_run(new_run())
    run_iterations(journal, 7)
    assert [i.n for i in journal.iterations("r1", limit=3)] == [1, 2, 3]
    assert [i.n for i in journal.iterations("r1", after=5, limit=3)] == [6, 7]
    assert [i.n for i in journal.latest_iterations("r1", 2)] == [7, 6]
    assert journal.iterations("r1")[0].record.analysis.progress
    brief = journal.iterations("r1", brief=True)[0]
    assert (brief.record, brief.effects, brief.cost_usd) == (Iteration(), (), 0.5)


def test_iterations_of_one_story(journal: Journal) -> None:
    """A story's own iterations are found, newest first."""
    journal.begin_run(new_run())
    for n, story in enumerate(["a", "b", "a"], start=1):
        journal.start_iteration(new_iteration(n, story=story))
    assert [i.n for i in journal.story_iterations("r1", "a")] == [3, 1]


def test_starts_of_the_last_hour_count_over_all_runs(journal: Journal) -> None:
    """A limit by the hour is not reset by starting again."""
    journal.begin_run(new_run("r1"))
    for n in (1, 2):
        journal.start_iteration(new_iteration(n, "r1"))
    journal.begin_run(new_run("r2"))
    journal.start_iteration(new_iteration(3, "r2"))
    assert journal.starts_since(NOON) == 3
    assert journal.starts_since(NOON + 120) == 2
    assert journal.starts_since(NOON + 181) == 0


def _said(events: list[LoopEvent]) -> str:
    return "".join(event.what.summary for event in events if isinstance(event.what, AgentStep))


def test_events_are_read_from_a_number_on(journal: Journal) -> None:
    """Watchers get each event of a run once, in order."""
    journal.append_events(
        LoopEvent(run=run, at=NOON, what=AgentStep(summary=str(i)))
        for i, run in enumerate(["r1", "r2", "r1"])
    )
    first = journal.events_since("r1", 0, limit=1)
    assert _said(first) == "0"
    assert _said(journal.events_since("r1", first[-1].seq)) == "2"
    assert _said(journal.events_since("r1", 0)) == "02"
    assert _said(journal.last_events("r1", 1)) == "2"
    assert _said(journal.last_events("r1", 9)) == "02"


def test_a_huge_event_is_left_out_with_its_size(journal: Journal) -> None:
    """One event cannot fill the journal."""
    journal.append_events([LoopEvent(run="r1", at=NOON, what=AgentStep(summary="x" * 70_000))])
    assert journal.events_since("r1", 0)[0].what == Unknown(name="agent_event")


def test_events_of_old_runs_can_be_dropped(journal: Journal) -> None:
    """Cleaning drops the events of older runs and keeps their iterations."""
    for run in ("r1", "r2", "r3"):
        journal.begin_run(new_run(run))
        run_iterations(journal, 1, run)
        journal.append_events([LoopEvent(run=run, at=NOON, what=StatusAsked())])
    assert journal.prune_events(keep_runs=2) == 1
    assert [run for run in ("r1", "r2", "r3") if journal.events_since(run, 0)] == ["r2", "r3"]
    assert len(journal.iterations("r1")) == 1


# --- requests --------------------------------------------------------------------------------


def test_a_request_is_answered_once(journal: Journal, path: Path) -> None:
    """A request from another process is seen, answered, and then no longer pending."""
    journal.begin_run(new_run())
    with Journal.open(path, check=False) as beside:
        asked = beside.add_request("r1", kind="note", payload={"text": "use v2"}, now=NOON + 1)
        assert asked is not None
        assert [(r.kind, r.payload) for r in journal.pending_requests("r1")] == [
            ("note", Wish(text="use v2"))
        ]
        assert journal.answer_request(asked, "goes into the next prompt", now=NOON + 2)
        assert not journal.answer_request(asked, "again", now=NOON + 3)
        answered = beside.find_request(asked)
    assert answered is not None
    assert (answered.status, answered.answer) == (
        "answered",
        "goes into the next prompt",
    )
    assert journal.pending_requests("r1") == []


@pytest.mark.parametrize("how", ["ended", "superseded"])
def test_requests_are_void_when_the_run_ends(journal: Journal, how: str) -> None:
    """What was asked of a run that is over is void, and no more can be asked of it."""
    journal.begin_run(new_run())
    asked = journal.add_request("r1", kind="pause", now=NOON)
    assert asked is not None
    if how == "ended":
        journal.end_run("r1", now=NOON + 1, status=RunStatus.STOPPED)
    else:
        journal.begin_run(new_run("r2", at=NOON + 1))
    found = journal.row("SELECT status, answered_at FROM requests WHERE id = ?", (asked,))
    assert found is not None
    assert tuple(found) == ("void", NOON + 1)
    assert journal.add_request("r1", kind="pause", now=NOON + 2) is None
    assert not journal.answer_request(asked, "late", now=NOON + 3)


def test_requests_of_another_run_stay(journal: Journal) -> None:
    """Nobody is answered for a run that was not asked."""
    journal.begin_run(new_run())
    journal.add_request("r1", kind="pause", now=NOON)
    assert journal.pending_requests("r2") == []
    assert journal.add_request("nobody", kind="pause", now=NOON) is None


def test_a_record_of_another_version_is_read_as_far_as_it_can_be(journal: Journal) -> None:
    """A part that nobody here understands hides nothing else."""
    journal.begin_run(new_run())
    run_iterations(journal, 1)
    foreign = {"agent": "codex", "decision": {"word": "sideways"}, "moon": 1, "findings": ["x"]}
    journal.run("UPDATE iterations SET record = ?", (msgspec.json.encode(foreign).decode(),))
    found = journal.iterations("r1")[0].record
    assert found == Iteration(agent="codex", findings=("x",))
