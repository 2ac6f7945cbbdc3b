"""`ralph analyze`, `ralph eval`, `ralph simulate` and `ralph circuit`, through the real command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralphloop.core import breaker
from ralphloop.core.breaker import BreakerState
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import CIRCUIT_KEY
from ralphloop.project import Project
from tests.conftest import RunRalph
from tests.text.blocks import block

PUBLIC = Path(__file__).parent.parent / "cases" / "public.jsonl"
SKILL_KEYS = [
    "timestamp",
    "iteration",
    "ralph_status",
    "completion_indicators",
    "exit_decision",
    "stuck_loop_detected",
    "circuit_breaker_state",
]
SKILL_STATUS_KEYS = {
    "found",
    "status",
    "tasks_completed",
    "files_modified",
    "tests_status",
    "work_type",
    "exit_signal",
    "recommendation",
}


def claude_result(text: str, **more: Any) -> str:
    """One result object as `claude -p --output-format json` prints it."""
    fields = {"type": "result", "subtype": "success", "is_error": False, "result": text}
    return json.dumps(fields | {"session_id": "s-1", "num_turns": 1, "total_cost_usd": 0.5} | more)


def analyze(run_ralph: RunRalph, cwd: Path, text: str, *options: str) -> dict[str, Any]:
    """The analysis object the real command prints for this output."""
    done = run_ralph("analyze", "-", "--json", *options, cwd=cwd, stdin=text)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_S02_AC7_S03_AC1_json_output_gives_structured_fields(
    run_ralph: RunRalph, tmp_path: Path
) -> None:
    """Claude's JSON result is read: status, session, cost, decision."""
    found = analyze(run_ralph, tmp_path, claude_result("Done.\n\n" + block()))
    assert found["ralph_status"]["exit_signal"] is True
    assert found["ralph_status"]["files_modified"] == 3
    assert found["session_id"] == "s-1"
    assert found["usage"]["cost_usd"] == 0.5
    assert found["exit_decision"] == "project_complete"


def test_SKILL_analysis_output_has_the_published_shape(run_ralph: RunRalph, tmp_path: Path) -> None:
    """The fixed keys are there, in their order, with their types."""
    found = analyze(run_ralph, tmp_path, block(STATUS="IN_PROGRESS", EXIT_SIGNAL="false"))
    assert list(found)[: len(SKILL_KEYS)] == SKILL_KEYS
    assert found["ralph_status"].keys() >= SKILL_STATUS_KEYS
    assert found["iteration"] == 1
    assert found["circuit_breaker_state"] == "CLOSED"
    assert found["exit_decision"] == "continue"
    assert isinstance(found["completion_indicators"], int)


def test_S03_AC7_a_missing_block_warns_and_falls_back(run_ralph: RunRalph, tmp_path: Path) -> None:
    """Without a block the words are used, with a warning, and the run goes on."""
    found = analyze(run_ralph, tmp_path, "All tests pass and the project is complete.\n")
    assert found["ralph_status"]["found"] is False
    assert found["story_claimed"] is True
    assert found["exit_decision"] == "continue"
    assert any("status" in warning for warning in found["warnings"])


def test_SKILL_errors_malformed_json_is_read_as_text(run_ralph: RunRalph, tmp_path: Path) -> None:
    """A cut JSON object ends in no signal, a warning and exit code 0."""
    found = analyze(run_ralph, tmp_path, claude_result("x" + block())[:-60])
    assert found["exit_decision"] == "continue"
    assert found["ralph_status"]["exit_signal"] is False


READ = {
    "a sign before a value": ("{signed}", "status", "COMPLETE"),
    "bold blanks around the markers": ("{bold}", "status", "COMPLETE"),
    "a comment behind the last paragraph": (
        "The project is complete.\n\n<!-- end -->",
        "text_says_done",
        True,
    ),
    "an error in inline code": (
        "The build reports `error[E0382]` in the loader.",
        "error_signature",
        "error[E0382]",
    ),
    "a quoted error that was fixed": (
        "It stopped:\n\n> TypeError: x is no function\n\nFixed.",
        "error_signature",
        None,
    ),
    "a heading in capitals": ("CRITICAL FIX: the lock", "error_signature", None),
}


@pytest.mark.parametrize("what", READ)
def test_analyze_reads_what_is_meant(run_ralph: RunRalph, tmp_path: Path, what: str) -> None:
    """Dress and place of words do not change what is read from them."""
    text, key, expected = READ[what]
    signed = block(STATUS="✅ COMPLETE")
    bold = block().replace("---RALPH_STATUS---", "** ---RALPH_STATUS--- **")
    found = analyze(run_ralph, tmp_path, text.format(signed=signed, bold=bold))
    places = (found, found["ralph_status"], found["indicators"])
    assert next(place[key] for place in places if key in place) == expected


def test_analyze_takes_iteration_and_circuit_from_the_journal(
    run_ralph: RunRalph, tmp_path: Path
) -> None:
    """In a project with a journal the circuit is the one that is there."""
    open_circuit(tmp_path)
    found = analyze(run_ralph, tmp_path, block())
    assert found["circuit_breaker_state"] == "OPEN"
    assert found["exit_decision"] == "circuit_open"


def test_analyze_speaks_to_people_too(run_ralph: RunRalph, tmp_path: Path) -> None:
    """The summary names decision, outcome and what was read."""
    (tmp_path / "out.txt").write_text("Half way.\n" + block(EXIT_SIGNAL="false"))
    done = run_ralph("analyze", "out.txt", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("decision    continue: the agent does not say that all is done")
    assert "outcome     completed" in done.stdout


def test_analyze_of_a_missing_file_is_bad_input(run_ralph: RunRalph, tmp_path: Path) -> None:
    """A file that is not there: 65, named, on stderr."""
    done = run_ralph("analyze", "nowhere.txt", cwd=tmp_path)
    assert done.returncode == 65
    assert "nowhere.txt" in done.stderr
    assert done.stdout == ""


def test_eval_agrees_with_the_public_cases(run_ralph: RunRalph, tmp_path: Path) -> None:
    """A line a case, a table, exit code 0."""
    done = run_ralph("eval", str(PUBLIC), cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-2000:]
    assert done.stdout.count("ok  ") == 234


def test_eval_reports_a_mismatch_and_exits_1(run_ralph: RunRalph, tmp_path: Path) -> None:
    """A wrong label is named by iteration, key, expected and got, in words and in JSON."""
    case = {
        "id": "wrong",
        "iterations": [{"output": "hello", "expect": {"decision": "blocked", "nonsense": 1}}],
    }
    (tmp_path / "cases.jsonl").write_text(json.dumps(case) + "\n")
    done = run_ralph("eval", "cases.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    assert "FAIL wrong" in done.stdout
    assert "iteration 1: decision is 'continue', expected 'blocked'" in done.stdout
    as_json = json.loads(run_ralph("eval", "cases.jsonl", "--json", cwd=tmp_path).stdout)
    assert as_json["ok"] is False
    assert as_json["decisions"] == ["continue"]
    assert as_json["mismatches"][0] == {
        "iteration": 1,
        "key": "decision",
        "expected": "blocked",
        "got": "continue",
    }


def test_eval_tries_other_thresholds(run_ralph: RunRalph, tmp_path: Path) -> None:
    """`--policy` overrides the case's own policy."""
    idle = {"output": "nothing", "evidence": {"files_changed": 0}, "expect": {"circuit": "CLOSED"}}
    case = {"id": "idle", "policy": {"preset": "standard"}, "iterations": [idle] * 3}
    (tmp_path / "cases.jsonl").write_text(json.dumps(case))
    assert run_ralph("eval", "cases.jsonl", cwd=tmp_path).returncode == 1
    done = run_ralph("eval", "cases.jsonl", "--policy", "no_progress_threshold=9", cwd=tmp_path)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("{not json", "cases.jsonl:2"),
        ('{"id": "x"}', "cases.jsonl:2"),
        ('{"id": "x", "iterations": "no"}', "cases.jsonl:2"),
        ('{"id": "x", "iterations": [], "policy": {"presett": "strict"}}', "policy of x"),
        ("[" * 100_000, "cases.jsonl:2"),
    ],
    ids=["json", "missing", "type", "policy", "deep"],
)
def test_eval_names_the_place_of_bad_input(
    run_ralph: RunRalph, tmp_path: Path, line: str, place: str
) -> None:
    """A broken case file is 65, with file and line."""
    good = json.dumps({"id": "good", "iterations": []})
    (tmp_path / "cases.jsonl").write_text(f"{good}\n{line}\n")
    done = run_ralph("eval", "cases.jsonl", cwd=tmp_path)
    assert done.returncode == 65
    assert place in done.stderr


def steps(run_ralph: RunRalph, cwd: Path, scenario: str, *options: str) -> list[dict[str, Any]]:
    """The steps the real command plays."""
    done = run_ralph("simulate", "--scenario", scenario, "--json", *options, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_PRD_testing_plan_no_progress(run_ralph: RunRalph, tmp_path: Path) -> None:
    """HALF_OPEN at the third step, OPEN at the fourth; a setting moves both."""
    circuits = [step["circuit"] for step in steps(run_ralph, tmp_path, "no_progress")]
    assert circuits == ["CLOSED", "CLOSED", "HALF_OPEN", "OPEN"]
    moved = steps(run_ralph, tmp_path, "no_progress", "--set", "circuit.no_progress_threshold=5")
    assert [step["circuit"] for step in moved][4:] == ["HALF_OPEN", "OPEN"]


def test_PRD_testing_plan_same_error(run_ralph: RunRalph, tmp_path: Path) -> None:
    """OPEN at the fifth identical error; stuck from the third."""
    played = steps(run_ralph, tmp_path, "same_error")
    assert [step["circuit"] for step in played] == ["CLOSED"] * 4 + ["OPEN"]
    assert ["same_error" in step["stuck"] for step in played] == [False, False, True, True, True]


def test_PRD_testing_plan_reset(run_ralph: RunRalph, tmp_path: Path) -> None:
    """S02-AC3/AC4: OPEN answers circuit_open until the reset, then work goes on."""
    played = steps(run_ralph, tmp_path, "reset")
    assert [step["circuit"] for step in played][3:6] == ["OPEN", "OPEN", "CLOSED"]
    assert [step["decision"] for step in played][3:] == [
        "circuit_open",
        "circuit_open",
        None,
        "continue",
        "continue",
    ]


@pytest.mark.parametrize(
    ("scenario", "decision"),
    [
        ("complete", "project_complete"),
        ("testing", "test_saturation"),
        ("exit_signal", "project_complete"),
        ("blocked", "blocked"),
        ("false_done", "continue"),
        ("overloaded", "continue"),
        ("oscillation", "circuit_open"),
        ("output_decline", "continue"),
        ("recover", "continue"),
    ],
)
def test_PRD_testing_plan_scenarios_end_as_they_should(
    run_ralph: RunRalph, tmp_path: Path, scenario: str, decision: str
) -> None:
    """Each scripted night ends in its decision."""
    assert steps(run_ralph, tmp_path, scenario)[-1]["decision"] == decision


def test_simulate_without_a_scenario_lists_them(run_ralph: RunRalph, tmp_path: Path) -> None:
    """A newcomer sees what there is to play."""
    done = run_ralph("simulate", cwd=tmp_path)
    assert done.returncode == 0
    assert "no_progress" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "--scenario", "nope"),
        ("simulate", "--scenario", "reset", "--set", "novalue"),
        ("eval",),
        ("analyze", "--agent", "nobody"),
        ("circuit", "explode"),
    ],
)
def test_bad_usage_is_64(run_ralph: RunRalph, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A wrong command line never looks like "blocked"."""
    done = run_ralph(*arguments, cwd=tmp_path)
    assert done.returncode == 64
    assert "next:" in done.stderr or "Usage" in done.stderr


def open_circuit(root: Path) -> None:
    """A project whose circuit is OPEN."""
    project = Project(root)
    project.directory.mkdir()
    state = breaker.open_now(BreakerState(no_progress=4), "no progress", iteration=4, at=1.0)
    with Journal.open(project.journal) as journal:
        journal.set_meta(CIRCUIT_KEY, state)


def test_S02_AC4_circuit_reset_returns_to_closed(run_ralph: RunRalph, tmp_path: Path) -> None:
    """`ralph circuit reset` closes it, says so, and publishes the view."""
    open_circuit(tmp_path)
    before = json.loads(run_ralph("circuit", "status", "--json", cwd=tmp_path).stdout)
    assert before["state"] == "OPEN"
    done = run_ralph("--cb-reset", cwd=tmp_path)
    assert done.returncode == 0
    assert "was OPEN; it is CLOSED now" in done.stdout
    after = json.loads(run_ralph("--cb-status", "--json", cwd=tmp_path).stdout)
    assert (after["state"], after["no_progress"], after["same_error"]) == ("CLOSED", 0, 0)
    assert after["history"][-1]["from"] == "OPEN"
    assert json.loads((tmp_path / ".ralph-circuit-state.json").read_text()) == after


def test_circuit_status_of_an_empty_directory_is_closed(
    run_ralph: RunRalph, tmp_path: Path
) -> None:
    """Nothing there yet: CLOSED, exit 0, nothing written."""
    done = run_ralph("circuit", "status", cwd=tmp_path)
    assert (done.returncode, done.stdout.split()[1]) == (0, "CLOSED")
    assert run_ralph("circuit", "reset", cwd=tmp_path).returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_corrupt_circuit_view_is_never_believed(run_ralph: RunRalph, tmp_path: Path) -> None:
    """The file may say anything; the journal is the truth."""
    open_circuit(tmp_path)
    for content in ("", "null", "invalid json{", '{"state": "CLOSED"}'):
        (tmp_path / ".ralph-circuit-state.json").write_text(content)
        shown = json.loads(run_ralph("circuit", "status", "--json", cwd=tmp_path).stdout)
        assert shown["state"] == "OPEN"
