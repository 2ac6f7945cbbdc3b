"""The published views: right when written, harmless when missing, stale or damaged."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.core import breaker
from ralphloop.core.breaker import BreakerInput, BreakerState
from ralphloop.core.iteration import AddProgress
from ralphloop.core.model import Circuit, Story, StoryList, Transition
from ralphloop.core.policy import Policy
from ralphloop.core.run_state import RunState, Standing, StoryState
from ralphloop.core.totals import Totals
from ralphloop.journal.journal import Journal
from ralphloop.journal.records import RunRecord, RunStatus
from ralphloop.journal.views import (
    CIRCUIT_VIEW,
    PROGRESS_VIEW,
    SESSION_VIEW,
    add_progress,
    circuit_view,
    iteration_list,
    progress_text,
    publish,
    session_view,
)
from tests.journal.support import NOON, new_iteration, new_run, run_iterations

RUN = RunRecord(
    id="20261115-120000-abcdef",
    status=RunStatus.RUNNING,
    mode="script",
    session="",
    started_at=NOON,
    last_activity=NOON + 20_700,
    ended_at=None,
    decision="",
    reason="",
    prd_path="docs/specs/project/prd.json",
    branch="main",
    head="",
    pid=1,
    pid_started=0,
    continues=None,
    config={},
    totals=Totals(iterations=15, tasks_completed=9, files_modified=40, commits=8),
)
OPENS_AT_ONCE = Policy(same_error_threshold=1)
STORIES = StoryList(
    stories=tuple(Story(id=f"US-{n}", title="", index=n, passes=n < 8) for n in range(10)),
    source="prd.json",
)
ASIDE = StoryState(standing=Standing.SET_ASIDE)
STATE = RunState(commits=5, stories={"US-7": ASIDE, "US-8": ASIDE, "of another list": ASIDE})
SESSION = session_view(RUN, STATE, STORIES)
ENTRY = AddProgress(at=NOON, task="US-003", outcome="passed", summary="Added the parser")


def test_S04_the_session_view_has_its_shape() -> None:
    """The session file carries the agreed keys, times in UTC, and the totals."""
    assert SESSION == {
        "session_id": "20261115-120000-abcdef",
        "start_time": "2026-11-15T12:00:00Z",
        "last_activity": "2026-11-15T17:45:00Z",
        "iterations": 15,
        "stories_completed": 8,
        "stories_failed": 1,
        "circuit_state": "CLOSED",
        "prd_path": "docs/specs/project/prd.json",
        "total_tasks_completed": 9,
        "total_files_modified": 40,
        "total_commits": 13,
    }


def test_the_circuit_view_has_its_shape() -> None:
    """The circuit file carries state, reason, counters against thresholds, and history."""
    change = Transition(
        at=NOON,
        before=Circuit.CLOSED,
        after=Circuit.HALF_OPEN,
        reason="no progress\nin 3 loops",
        iteration=3,
    )
    state = BreakerState(
        circuit=Circuit.HALF_OPEN,
        reason="no progress in 3 loops",
        since=NOON,
        no_progress=3,
        same_error=1,
        last_error="TypeError: x",
        opened_count=0,
        history=(change,),
    )
    assert circuit_view(state, Policy()) == {
        "state": "HALF_OPEN",
        "reason": "no progress in 3 loops",
        "since": "2026-11-15T12:00:00Z",
        "no_progress": 3,
        "same_error": 1,
        "last_error": "TypeError: x",
        "thresholds": {
            "preset": "standard",
            "no_progress": 3,
            "same_error": 5,
            "output_decline_percent": 70,
            "cooldown_minutes": 0,
        },
        "opened_count": 0,
        "history": [
            {
                "at": "2026-11-15T12:00:00Z",
                "from": "CLOSED",
                "to": "HALF_OPEN",
                "reason": "no progress in 3 loops",
                "iteration": 3,
            }
        ],
    }


def test_the_circuit_view_is_bounded() -> None:
    """However often the circuit moved, fifty changes stay, none longer than a paragraph."""
    state = BreakerState(last_error="e" * 100_000)
    for n in range(80):
        failed = BreakerInput(iteration=n, progress=False, error="x" * 9_000)
        state = breaker.step(breaker.reset(state, iteration=n, at=None), failed, OPENS_AT_ONCE)
    view: dict[str, Any] = circuit_view(state, Policy())
    assert [change["iteration"] for change in view["history"]][-1] == 79
    assert len(view["history"]) == 50
    assert len(view["last_error"]) == 500
    assert len(json.dumps(view)) < 50_000


@pytest.mark.parametrize("since", [1e20, -1e20, float("nan")])
def test_D32_a_time_no_calendar_holds_does_not_cost_the_view(since: float) -> None:
    """A clock that went wild leaves the time out and the rest in."""
    assert circuit_view(BreakerState(since=since), Policy())["since"] is None


def test_a_view_is_valid_json_and_ends_with_a_newline(tmp_path: Path) -> None:
    """Tools and people can read what is published."""
    assert publish(tmp_path / SESSION_VIEW, SESSION, root=tmp_path) == ""
    text = (tmp_path / SESSION_VIEW).read_text()
    assert json.loads(text) == SESSION
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="D33_empty"),
        pytest.param(b"null", id="D34_null"),
        pytest.param(b"invalid json{", id="D35_invalid"),
        pytest.param(b"\x00\xff" * 999, id="binary"),
        pytest.param(b"ralph-1\n" * 5_000 + b'{"session_id": "x"}', id="F19_thousands_of_lines"),
        pytest.param(b'{"state": "CLOSED", "session_id": "stale"}', id="stale"),
        pytest.param(None, id="missing"),
    ],
)
@pytest.mark.parametrize("name", [SESSION_VIEW, CIRCUIT_VIEW])
def test_a_damaged_view_is_simply_written_anew(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    """Whatever a crash or a tool left there, the next view is whole and from the journal."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    view = SESSION if name == SESSION_VIEW else circuit_view(BreakerState(), Policy())
    assert publish(tmp_path / name, view, root=tmp_path) == ""
    assert json.loads((tmp_path / name).read_text()) == view


def make_directory(path: Path) -> None:
    """A directory where the view should be."""
    path.mkdir()


def make_way_out(path: Path) -> None:
    """A link that leads out of the project."""
    path.symlink_to("/dev/null")


def make_circle(path: Path) -> None:
    """A link to itself."""
    path.symlink_to(path)


@pytest.mark.parametrize("obstacle", [make_directory, make_way_out, make_circle, os.mkfifo])
def test_what_cannot_be_written_is_a_sentence_and_no_error(
    tmp_path: Path, obstacle: Callable[[Path], None]
) -> None:
    """An obstacle in a view's place never stops a run; it is named instead."""
    obstacle(tmp_path / PROGRESS_VIEW)
    problem = add_progress(tmp_path / PROGRESS_VIEW, "r1", 3, ENTRY, root=tmp_path)
    assert PROGRESS_VIEW in problem
    if obstacle is not os.mkfifo:  # a pipe is simply replaced by the view
        obstacle(tmp_path / SESSION_VIEW)
        assert SESSION_VIEW in publish(tmp_path / SESSION_VIEW, SESSION, root=tmp_path)


def test_undecodable_text_in_a_view_is_written(tmp_path: Path) -> None:
    """Half surrogate pairs in a path or reason do not break the view."""
    view = {**SESSION, "prd_path": "a\udc80.json"}
    assert publish(tmp_path / SESSION_VIEW, view, root=tmp_path) == ""
    assert json.loads((tmp_path / SESSION_VIEW).read_text())["prd_path"] == "a?.json"


def test_SKILL_iterations_are_listed_one_by_one(journal: Journal) -> None:
    """`ralph status --json` shows each iteration with number, time, status, counts, decision."""
    journal.begin_run(new_run())
    run_iterations(journal, 2)
    journal.start_iteration(new_iteration(3))
    run = journal.find_run("r1")
    assert run is not None
    listed: dict[str, Any] = iteration_list(run, RunState(), journal.iterations("r1", brief=True))
    assert (listed["session_id"], listed["started_at"]) == ("r1", "2026-11-15T12:00:00Z")
    assert listed["iterations"][1] == {
        "number": 2,
        "timestamp": "2026-11-15T12:02:30Z",
        "status": "IN_PROGRESS",
        "tasks_completed": 0,
        "files_modified": 2,
        "exit_decision": "continue",
        "outcome": "completed",
        "story": "US-1",
        "machine": None,
    }
    assert listed["iterations"][2]["exit_decision"] is None
    assert listed["total_files_modified"] == 4


# --- progress.txt ----------------------------------------------------------------------------


def test_PRD_a_progress_entry_has_its_format() -> None:
    """An entry is a header with time, run and iteration, three lines and a rule."""
    assert progress_text("r1", 3, ENTRY) == (
        "## Iteration 20261115-120000 (r1/3)\n"
        "Task: US-003\n"
        "Outcome: passed\n"
        "Summary: Added the parser\n"
        "---\n"
    )


def test_progress_only_grows(tmp_path: Path) -> None:
    """Entries are added at the end and what a person wrote stays."""
    file = tmp_path / PROGRESS_VIEW
    file.write_text("# Notes of mine")
    for n in (1, 2):
        assert add_progress(file, "r1", n, ENTRY, root=tmp_path) == ""
    text = file.read_text()
    assert text.startswith("# Notes of mine\n## Iteration ")
    assert text.count("## Iteration ") == 2
    assert text.endswith("---\n")


@pytest.mark.parametrize(
    "later", ["", "a person's note\n", "a note without an end", "x\n" * 50_000]
)
def test_an_entry_is_written_once(tmp_path: Path, later: str) -> None:
    """Writing it again after a crash changes nothing, whatever was added since."""
    file = tmp_path / PROGRESS_VIEW
    for n in (3, 4):
        add_progress(file, "r1", n, ENTRY, root=tmp_path)
    with file.open("a") as notes:
        notes.write(later)
    before, later_on = file.read_bytes(), msgspec.structs.replace(ENTRY, at=NOON + 99)
    for n in (3, 4):
        assert add_progress(file, "r1", n, later_on, root=tmp_path) == ""
        assert file.read_bytes() == before


def test_other_runs_and_longer_numbers_are_other_entries(tmp_path: Path) -> None:
    """r1/3 is neither r1/33 nor r11/3 nor r.1/3."""
    file = tmp_path / PROGRESS_VIEW
    for run, n in [("r1", 33), ("r11", 3), ("rx1", 3), ("r1", 3), ("r.1", 3)]:
        add_progress(file, run, n, ENTRY, root=tmp_path)
    assert file.read_text().count("## Iteration ") == 5


@given(cut=st.integers(min_value=0, max_value=len(progress_text("r1", 3, ENTRY))))
def test_an_entry_torn_by_a_power_cut_is_completed(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    """However much of an entry reached the disk, writing it again gives one whole entry."""
    root = tmp_path_factory.mktemp("torn")
    file = root / PROGRESS_VIEW
    whole = progress_text("r1", 3, ENTRY)
    file.write_text("before\n" + whole[:cut])
    assert add_progress(file, "r1", 3, ENTRY, root=root) == ""
    assert file.read_text() == "before\n" + whole


@given(st.text(), st.text())
def test_no_text_can_fake_an_entry(task: str, summary: str) -> None:
    """Whatever an agent says, an entry stays five lines with one header."""
    hostile = f"{summary}\n---\n## Iteration 20260101-000000 (r1/9)\nTask: fake"
    text = progress_text(
        "r1", 3, AddProgress(at=NOON, task=task, outcome="passed", summary=hostile)
    )
    lines = text.splitlines()
    assert len(lines) == 5
    assert len(re.findall(r"^## Iteration", text, re.MULTILINE)) == 1
    assert all(line.isprintable() for line in lines)
    assert len(lines[1]) <= 206
    assert len(lines[3]) <= 309


def test_a_huge_progress_file_costs_no_more(tmp_path: Path) -> None:
    """Only the end of the file is read, and it is added to, not rewritten."""
    file = tmp_path / PROGRESS_VIEW
    with file.open("wb") as big:
        big.truncate(3 * 1024**3)
        big.seek(0, 2)
        big.write(b"\n")
    assert add_progress(file, "r1", 3, ENTRY, root=tmp_path) == ""
    assert file.stat().st_size == 3 * 1024**3 + 1 + len(progress_text("r1", 3, ENTRY))
