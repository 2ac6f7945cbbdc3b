"""gemini: deltas, echoes, exit codes that are HTTP statuses."""

from __future__ import annotations

from typing import Any

import pytest

from ralphloop.core.model import Outcome, Response
from ralphloop.readers import read
from tests.agents.events import FALSE_BLOCK, TRUE_BLOCK, gemini, lines

STARTED = (
    gemini("init", session_id="g-1", model="gemini-2.5-pro"),
    gemini("message", role="user", content=TRUE_BLOCK),
)
SUCCESS = gemini(
    "result",
    status="success",
    stats={"input_tokens": 100, "output_tokens": 20, "total_tokens": 150, "cached": 30},
)


def answer(words: str, size: int = 5) -> list[dict[str, Any]]:
    """An answer in deltas."""
    pieces = [words[start : start + size] for start in range(0, len(words), size)]
    return [gemini("message", role="assistant", content=piece, delta=True) for piece in pieces]


def run(*events: dict[str, Any], exit_code: int | None = 0, stderr: str = "") -> Response:
    """Read these events after the usual beginning."""
    return read(lines(*STARTED, *events), agent="gemini", exit_code=exit_code, stderr=stderr)


def failed(message: str, kind: str = "unknown") -> dict[str, Any]:
    """A failed result."""
    return gemini("result", status="error", error={"type": kind, "message": message}, stats={})


def test_deltas_are_one_message() -> None:
    """A block cut into pieces is whole again, and the echoed prompt is not it."""
    got = run(*answer(f"Done.\n\n{FALSE_BLOCK}"), SUCCESS)
    assert got.final_text == f"Done.\n\n{FALSE_BLOCK}"
    assert got.status is not None
    assert not got.status.exit_signal
    assert got.status_is_final


def test_the_answer_is_what_follows_the_last_tool() -> None:
    """Text before a tool call is the agent's word, but not its final message."""
    call = gemini("tool_use", tool_name="write_file", tool_id="w", parameters={"file_path": "a.py"})
    ended = gemini("tool_result", tool_id="w", status="success")
    got = run(*answer(TRUE_BLOCK), call, ended, *answer("Written."), SUCCESS)
    assert got.final_text == "Written."
    assert got.status is not None
    assert not got.status_is_final
    silent = run(*answer(TRUE_BLOCK), call, ended, SUCCESS)
    assert silent.final_text == ""
    assert not silent.status_is_final
    assert silent.outcome is Outcome.EMPTY


def test_thoughts_are_billed_as_output() -> None:
    """The total has more than input and output; the difference was generated, too."""
    usage = run(*answer("ok"), SUCCESS).usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (70, 30, 50)


def test_what_it_says_of_fresh_input_stands() -> None:
    """Where it counts the input that was not cached itself, nothing is subtracted."""
    told = {**SUCCESS, "stats": {**SUCCESS["stats"], "input": 55}}
    assert run(*answer("ok"), told).usage.input_tokens == 55


def test_the_model_that_answers_is_known() -> None:
    """Its tokens are priced by the name it began with."""
    assert run(*answer("ok"), SUCCESS).model == "gemini-2.5-pro"


def test_the_model_that_did_the_work_is_the_one_that_is_priced() -> None:
    """Asked for `auto` a small model chooses and another one works: the most tokens tell."""
    counts = {"gemini-2.5-flash-lite": 40, "gemini-2.5-pro": 900}
    streamed = {name: {"total_tokens": count} for name, count in counts.items()}
    told = {**SUCCESS, "stats": {**SUCCESS["stats"], "models": streamed}}
    assert run(*answer("ok"), told).model == "gemini-2.5-pro"
    whole = {name: {"tokens": {"total": count}} for name, count in counts.items()}
    done = {"session_id": "g-1", "response": "ok", "stats": {"models": whole}}
    assert read(lines(done), agent="gemini", exit_code=0).model == "gemini-2.5-pro"


@pytest.mark.parametrize(
    "code, message, reason",
    [
        (145, '{"error": {"code": 401, "message": "bad key"}}', "bad key"),
        (145, "", "HTTP 401"),
        (52, "", "exit code 52"),
    ],
)
def test_the_reason_is_the_sentence_inside(code: int, message: str, reason: str) -> None:
    """Of a body in JSON its message; where nobody says anything, what the exit code means."""
    assert run(failed(message), exit_code=code).reason == reason


@pytest.mark.parametrize(
    "code, message, outcome",
    [
        (41, "Invalid auth method selected.", Outcome.FATAL),
        (42, "no such session", Outcome.STARTUP_ERROR),
        (44, "no sandbox", Outcome.STARTUP_ERROR),
        (52, "bad settings", Outcome.STARTUP_ERROR),
        (53, "Reached max session turns", Outcome.LIMIT),
        (55, "not trusted", Outcome.STARTUP_ERROR),
        (144, "bad field", Outcome.ERROR),
        (144, "API key not valid. Please pass a valid API key.", Outcome.FATAL),
        (144, "The input token count exceeds the maximum number of tokens allowed", Outcome.LIMIT),
        (145, "bad key", Outcome.FATAL),
        (146, "no money", Outcome.FATAL),
        (147, "not allowed", Outcome.FATAL),
        (157, "bad field", Outcome.LIMIT),
        (148, "models/nope is not found", Outcome.FATAL),
        (173, "Resource has been exhausted (e.g. check quota).", Outcome.TRANSIENT),
        (173, "You have exhausted your daily quota on this model.", Outcome.USAGE_LIMIT),
        (244, "Internal error", Outcome.TRANSIENT),
        (247, "The model is overloaded.", Outcome.TRANSIENT),
        (1, "exception TypeError: fetch failed sending request", Outcome.TRANSIENT),
        (1, "something else", Outcome.ERROR),
    ],
)
def test_failed_results_by_exit_code(code: int, message: str, outcome: Outcome) -> None:
    """The exit code is its own or an HTTP status modulo 256; the message refines it."""
    assert run(failed(f"[API Error: {message}]"), exit_code=code).outcome is outcome


def test_the_error_type_stands_in_for_the_exit_code() -> None:
    """Where the exit code is not known, the error's type tells."""
    assert run(failed("x", "FatalTurnLimitedError"), exit_code=None).outcome is Outcome.LIMIT
    assert run(failed("x", "FatalCancellationError"), exit_code=130).outcome is Outcome.INTERRUPTED


def test_exit_code_0_without_a_result_means_stopped() -> None:
    """SIGTERM and SIGINT look like this."""
    got = run(*answer(TRUE_BLOCK))
    assert got.outcome is Outcome.KILLED
    assert got.final_text is None
    assert not got.status_is_final


@pytest.mark.parametrize(
    "severity, message, outcome",
    [
        ("warning", "Loop detected, stopping execution", Outcome.LIMIT),
        ("error", "Maximum session turns exceeded", Outcome.LIMIT),
        ("error", "The model response was blocked due to safety settings.", Outcome.ERROR),
        ("warning", "Agent execution blocked: not now", Outcome.COMPLETED),
    ],
)
@pytest.mark.parametrize("status", ["success", "error"])
def test_what_it_says_before_a_result_is_why_it_ended(
    severity: str, message: str, outcome: Outcome, status: str
) -> None:
    """It stops itself and calls that a success, or fails without a word: its sentence counts."""
    told = gemini("error", severity=severity, message=message)
    got = run(*answer("On it."), told, {**SUCCESS, "status": status})
    if outcome is Outcome.COMPLETED and status == "error":
        outcome = Outcome.ERROR
    assert (got.outcome, got.reason) == (
        outcome,
        "it ended with a good result" if outcome is Outcome.COMPLETED else message,
    )


def test_an_error_that_was_followed_by_an_answer_is_over() -> None:
    """The model went on after it, so it ended nothing."""
    told = gemini("error", severity="error", message="The model returned an empty text response.")
    assert run(told, *answer("Done."), SUCCESS).outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    "name, problem, denied",
    [
        ("run_shell_command", "tool_not_registered", True),
        ("write_file", "tool_not_registered", True),
        ("read_file", "policy_violation", True),
        ("nope", "tool_not_registered", False),
        ("run_shell_command", "shell_execute_error", False),
    ],
)
def test_absent_tools_are_denials(name: str, problem: str, denied: bool) -> None:
    """A write or shell tool that is not there was not allowed; an invented one is a mistake."""
    call = gemini("tool_use", tool_name=name, tool_id="t", parameters={"command": "ls"})
    ended = gemini("tool_result", tool_id="t", status="error", error={"type": problem})
    got = run(call, ended, *answer("ok"), SUCCESS)
    assert bool(got.denials) is denied
    assert got.outcome is (Outcome.DENIED if denied else Outcome.COMPLETED)
    assert got.tool_calls[0].ok is False


def test_an_error_object_on_stdout_is_a_failed_answer() -> None:
    """The json format may print its error as an object."""
    failure = {"session_id": "g-1", "error": {"type": "Error", "message": "bad key", "code": 401}}
    got = read(lines(failure), agent="gemini", exit_code=145)
    assert got.outcome is Outcome.FATAL
    assert got.session_id == "g-1"


def test_the_json_format_counts_by_model() -> None:
    """Thoughts are billed as output and tools as input; more hits than prompt are not negative."""
    tokens = [
        {"prompt": 100, "cached": 30, "candidates": 20, "thoughts": 5, "tool": 2},
        {"prompt": 10, "cached": 40, "candidates": 1},
    ]
    models = {f"m{number}": {"tokens": each} for number, each in enumerate(tokens)}
    done = {"session_id": "g-1", "response": "ok", "stats": {"models": models}}
    usage = read(lines(done), agent="gemini", exit_code=0).usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (72, 70, 26)
