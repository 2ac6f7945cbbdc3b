"""codex: turns, retries, limits."""

from __future__ import annotations

from typing import Any

import pytest

from ralphloop.core.model import Outcome, RateLimit, Response
from ralphloop.core.totals import Window
from ralphloop.readers import read, reader_for
from tests.agents.events import FALSE_BLOCK, NOW, TRUE_BLOCK, item, lines

STARTED = ({"type": "thread.started", "thread_id": "t-1"}, {"type": "turn.started"})
COMPLETED = {
    "type": "turn.completed",
    "usage": {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 20},
}
LIMIT = (
    "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit "
    "https://chatgpt.com/settings/usage to purchase more credits or try again at 10:29 PM."
)


def codex(*events: dict[str, Any], exit_code: int = 0, stderr: str = "") -> Response:
    """Read these events as one turn."""
    return read(
        lines(*STARTED, *events),
        agent="codex",
        exit_code=exit_code,
        stderr=stderr,
        now=NOW,
    )


def failed(message: str) -> dict[str, Any]:
    """The turn failed with this message."""
    return {"type": "turn.failed", "error": {"message": message}}


def test_the_last_message_before_the_end_is_final() -> None:
    """Earlier messages are the agent's words, the last one is its answer."""
    got = codex(
        item("agent_message", text=TRUE_BLOCK), item("agent_message", text=FALSE_BLOCK), COMPLETED
    )
    assert got.final_text == FALSE_BLOCK
    assert got.status is not None
    assert not got.status.exit_signal
    assert got.status_is_final
    assert got.session_id == "t-1"


def test_cached_tokens_are_part_of_the_input() -> None:
    """Fresh and cached input are told apart and not counted twice."""
    usage = codex(item("agent_message", text="ok"), COMPLETED).usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (40, 60, 20)
    assert usage.total_tokens == 120
    assert usage.cost_usd is None


def test_usage_is_of_the_whole_conversation() -> None:
    """A turn after `resume` counts the turns before it too, and says so to whoever adds up."""
    assert codex(item("agent_message", text="ok"), COMPLETED).usage.cumulative
    assert not codex(item("agent_message", text="ok")).usage.cumulative


def test_command_output_and_echoes_are_no_claim() -> None:
    """A block in a command's output, or in the echoed prompt, is not the agent's word."""
    got = codex(
        item("user_message", text=TRUE_BLOCK),
        item(
            "command_execution",
            command="cat log",
            aggregated_output=TRUE_BLOCK,
            exit_code=0,
            status="completed",
        ),
        item("reasoning", text=TRUE_BLOCK),
        item("agent_message", text="Read the log."),
        COMPLETED,
    )
    assert got.status is None
    assert got.text == "Read the log."


@pytest.mark.parametrize(
    "message, outcome",
    [
        (LIMIT, Outcome.USAGE_LIMIT),
        ("unexpected status 401 Unauthorized: Incorrect API key provided", Outcome.FATAL),
        ("exceeded retry limit, last status: 401 Unauthorized", Outcome.FATAL),
        ("Missing environment variable: `OPENAI_API_KEY`.", Outcome.FATAL),
        ("Quota exceeded. Check your plan and billing details.", Outcome.FATAL),
        ("The model `gpt-9` does not exist or you do not have access to it.", Outcome.FATAL),
        ("exceeded retry limit, last status: 429 Too Many Requests", Outcome.TRANSIENT),
        ("unexpected status 503 Service Unavailable", Outcome.TRANSIENT),
        ("stream disconnected before completion: upstream died", Outcome.TRANSIENT),
        ("Codex ran out of room in the model's context window. Start a new thread", Outcome.LIMIT),
        ("unexpected status 400 Bad Request: unknown parameter", Outcome.ERROR),
    ],
)
def test_failed_turns_by_message(message: str, outcome: Outcome) -> None:
    """The message of turn.failed says what kind of failure it was."""
    got = codex({"type": "error", "message": message}, failed(message), exit_code=1)
    assert got.outcome is outcome
    assert got.final_text is None


def test_an_error_without_a_failed_turn_says_why_it_ended() -> None:
    """A stream that stops at its error failed of that; killed, or answered after it, it did not."""
    error = {"type": "error", "message": LIMIT}
    words = item("agent_message", text="On it.")
    assert codex(error, exit_code=1).outcome is Outcome.USAGE_LIMIT
    assert codex(words, error, exit_code=1).outcome is Outcome.USAGE_LIMIT
    assert codex(words, error, exit_code=-9).outcome is Outcome.KILLED
    assert codex(error, words, exit_code=1).outcome is Outcome.ERROR


def test_the_limit_resets_at_the_end_of_the_minute_that_is_named() -> None:
    """10:29 PM without a zone is local, and over at 10:30."""
    got = codex(failed(LIMIT), exit_code=1)
    assert got.rate_limit.rejected
    assert got.rate_limit.resets_at == 1_794_781_800


def test_reconnecting_is_a_retry_and_may_be_pointless() -> None:
    """A retry is no failure; one for a wrong key will never succeed."""
    reader = reader_for("codex")
    hints = []
    for message in (
        "Reconnecting... waiting for network",
        "Reconnecting... 1/5 (status 401 Unauthorized)",
    ):
        reader.feed(lines(*STARTED, {"type": "error", "message": message}))
        hints.append(reader.dialect.fatal_hint is not None)
    assert hints == [False, True]
    got = reader.finish(exit_code=-15)
    assert got.retrying
    assert got.outcome is Outcome.FATAL


def test_ctrl_c_leaves_no_terminal_event() -> None:
    """Exit code 1 without turn.failed before any answer is how it ends on SIGINT."""
    assert codex(exit_code=1).outcome is Outcome.INTERRUPTED
    assert codex(item("agent_message", text="a"), exit_code=1).outcome is Outcome.ERROR


@pytest.mark.parametrize("code", [0, 1])
def test_a_stream_cut_inside_a_command_was_killed(code: int) -> None:
    """It would have said how the turn ended; between two commands it is its own error."""
    command = item("command_execution", "started", command="make", status="in_progress")
    ended = item("command_execution", command="make", status="completed", exit_code=0)
    words = item("agent_message", text="On it.")
    assert codex(words, command, exit_code=code).outcome is Outcome.KILLED
    assert codex(words, command, ended, exit_code=code).outcome is Outcome.ERROR
    assert codex(words, command, failed("bad field"), exit_code=code).outcome is Outcome.ERROR


def test_a_declined_command_is_a_denial() -> None:
    """Only a refusal the event itself names counts; a read-only file system does not."""
    command: dict[str, Any] = {"command": "rm x", "aggregated_output": "", "exit_code": None}
    got = codex(
        item("command_execution", status="declined", **command),
        item("agent_message", text="ok"),
        COMPLETED,
    )
    assert got.outcome is Outcome.DENIED
    got = codex(
        item("command_execution", status="failed", **command),
        item("agent_message", text="ok"),
        COMPLETED,
    )
    assert got.outcome is Outcome.COMPLETED


def test_a_turn_without_an_answer_is_empty() -> None:
    """Completed, but nothing was said."""
    assert codex(COMPLETED).outcome is Outcome.EMPTY


def test_a_call_shows_once_and_ends() -> None:
    """item.started and item.completed are one call."""
    command = {"command": "ls", "aggregated_output": ""}
    got = codex(
        item("command_execution", "started", status="in_progress", **command),
        item("command_execution", status="completed", **command),
        item("agent_message", text="ok"),
        COMPLETED,
    )
    assert got.tool_call_count == 1
    assert got.tool_calls[0].ok is True


@pytest.mark.parametrize("inside", [None, "msg", "payload"])
def test_usage_windows_are_read_wherever_they_come(inside: str | None) -> None:
    """By their length, not by their place; what is no number is no word about quota."""
    primary = {"used_percent": 12.5, "window_minutes": 300, "resets_at": 1_794_781_666}
    limits = {"primary": primary, "secondary": {"used_percent": 4, "window_minutes": 10_080}}
    told = {"type": "token_count", "rate_limits": limits}
    event = {"type": "event_msg", inside: told} if inside else told
    got = codex(event, item("agent_message", text="ok"), COMPLETED)
    assert not got.rate_limit.rejected
    assert got.rate_limit.windows == (
        Window(kind="five_hour", used=0.125, resets_at=1_794_781_666),
        Window(kind="seven_day", used=0.04),
    )
    odd = {"rate_limits": {"primary": {"used_percent": "many"}, "secondary": 7}, "type": "x"}
    assert codex(odd, item("agent_message", text="ok"), COMPLETED).rate_limit == RateLimit()


@pytest.mark.parametrize(
    "minutes, kind", [(299, "five_hour"), (10_079, "seven_day"), (60, "60 minutes"), (0, "primary")]
)
def test_a_usage_window_is_named_by_its_length(minutes: int, kind: str) -> None:
    """A minute short is the same window; another length is its own name, none that of its place."""
    limits = {"primary": {"used_percent": 50, "window_minutes": minutes}}
    got = codex({"type": "token_count", "rate_limits": limits}, COMPLETED)
    assert got.rate_limit.windows == (Window(kind=kind, used=0.5),)
