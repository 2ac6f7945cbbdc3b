"""Whose failure it is: the same table for every agent, whatever stream the word came by."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ralphloop.core.model import Outcome
from ralphloop.readers import read
from ralphloop.readers.base import SAME_ERRORS
from tests.agents.events import NOW, SESSION, TRUE_BLOCK, lines
from tests.agents.test_recordings import start

EVERY = ("text", "claude", "codex", "gemini", "opencode", "droid", "auto")
ON_STDERR = [
    ("429 You have reached your weekly usage limit. It will reset in 2h", Outcome.USAGE_LIMIT),
    ("Last error: 429 You exceeded your monthly premium request allowance", Outcome.USAGE_LIMIT),
    ("Authentication failed with provider at http://h/v1 (HTTP 401).", Outcome.FATAL),
    ('{"status":"error","message":"401 bad key"}', Outcome.FATAL),
    ("openai.AuthenticationError: Error code: 401 - bad key", Outcome.FATAL),
    ("Error: insufficient_quota: check your billing details", Outcome.FATAL),
    ("error: model_not_found: no-such-model", Outcome.FATAL),
    ("Error: 429 Too Many Requests", Outcome.TRANSIENT),
    ("Error: 529 overloaded", Outcome.TRANSIENT),
    ("TypeError: fetch failed", Outcome.TRANSIENT),
    ("connect ECONNREFUSED 127.0.0.1:4000", Outcome.TRANSIENT),
    ("Your input exceeds the context window of this model.", Outcome.LIMIT),
]


@pytest.mark.parametrize("agent", EVERY)
@pytest.mark.parametrize("line, outcome", ON_STDERR)
def test_stderr_of_a_start_that_came_to_nothing_has_an_owner(
    line: str, outcome: Outcome, agent: str
) -> None:
    """With exit code 1, or 0 and not a word, what stderr says of the provider is the outcome."""
    noise = "(node:1) ExperimentalWarning: x\n"
    failed = read(
        b"", agent=agent, exit_code=1, stderr=f"{noise}{line}\n    at f (x.js:1)\n", now=NOW
    )
    assert failed.outcome is outcome
    if agent != "gemini":  # which exits so when it is stopped
        assert read(b"", agent=agent, exit_code=0, stderr=line, now=NOW).outcome is outcome


def test_a_relative_reset_is_waited_for() -> None:
    """`It will reset in 2h` on stderr is two hours from now."""
    got = read(b"", agent="text", exit_code=1, stderr=ON_STDERR[0][0], now=NOW)
    assert got.rate_limit.rejected
    assert got.rate_limit.resets_at == int(NOW.timestamp()) + 7_200


@pytest.mark.parametrize(
    "line",
    [
        "error: unknown option '--network-timeout'",
        "error: missing required argument 'api-key-401'",
        "agent: /opt/429/bin/agent: No such file or directory",
        "ModuleNotFoundError: No module named 'connection'",
        "Error: Could not find the droid binary for linux-x64.",
        "usage: agent [--login] [--rate-limit N]",
        "Error: EACCES: permission denied, open '/home/u/.config/503'",
    ],
)
def test_what_is_wrong_here_is_no_outage(line: str) -> None:
    """A wrong option or a missing file is a start that failed, however it is called."""
    assert read(b"", agent="text", exit_code=1, stderr=line).outcome is Outcome.STARTUP_ERROR


@pytest.mark.parametrize(
    "last, outcome",
    [
        ("Error: 429 Too Many Requests", Outcome.TRANSIENT),
        (
            "litellm.AuthenticationError: AuthenticationError: OpenAIException - bad key",
            Outcome.FATAL,
        ),
        ("✗ Error: usage limit reached, try again in 3h", Outcome.USAGE_LIMIT),
        ("I added the 429 page.", Outcome.ERROR),
        ("Unauthorized users get a 401 now.", Outcome.ERROR),
    ],
)
def test_the_last_words_of_a_failed_start_count(last: str, outcome: Outcome) -> None:
    """On stdout only a line that calls itself an error does; honest words are an ordinary failure."""
    got = read(f"Working.\n{last}\n".encode(), agent="text", exit_code=1, now=NOW)
    assert got.outcome is outcome


def test_a_good_answer_is_good_whatever_stderr_says() -> None:
    """Retries that were overcome leave their traces on stderr."""
    got = read(b"Done.", agent="text", exit_code=0, stderr="Error: 429, retrying\n401\n")
    assert got.outcome is Outcome.COMPLETED


def test_a_program_that_is_no_longer_maintained_did_not_start() -> None:
    """Its notice with exit code 0 is no answer; the same words in one are."""
    notice = (
        b"kimi-cli is no longer maintained. Please switch to kimi-code:\n"
        b"  uv tool install kimi-code\n"
    )
    got = read(notice, agent="text", exit_code=0)
    assert got.outcome is Outcome.STARTUP_ERROR
    assert "no longer maintained" in got.reason
    for answer in (
        f"left-pad is no longer maintained, use padStart.\n\n{TRUE_BLOCK}",
        "I replaced left-pad.\nIt is no longer maintained.",
        "The parser is no longer maintained by hand.",
    ):
        assert read(answer.encode(), agent="text").outcome is Outcome.COMPLETED


def overflows(count: int, *, tool: bool = False) -> bytes:
    """What opencode prints where the context is too long, and stays so."""
    session = {"sessionID": "ses_1", "timestamp": 1}
    error = {"name": "ContextOverflowError", "data": {"message": "prompt is too long: 9 tokens"}}
    state = {"status": "completed", "input": {}, "metadata": {}}
    done: dict[str, Any] = {"tool": "bash", "callID": "c", "state": state}
    one: list[dict[str, Any]] = [
        {"type": "step_start", **session, "part": {}},
        {"type": "text", **session, "part": {"text": "Summary so far."}},
        {"type": "step_finish", **session, "part": {"reason": "stop"}},
        *([{"type": "tool_use", **session, "part": done}] if tool else []),
        {"type": "error", **session, "error": error},
    ]
    return lines(*(one * count))


def test_the_same_error_again_and_again_is_a_limit() -> None:
    """However the rest of the stream looks, and with the error's own sentence."""
    got = read(overflows(SAME_ERRORS), agent="opencode", exit_code=0)
    assert got.outcome is Outcome.LIMIT
    assert got.reason == "prompt is too long: 9 tokens"
    finish = {"type": "step_finish", "sessionID": "ses_1", "part": {"reason": "stop"}}
    stuck = overflows(SAME_ERRORS) + lines({**finish, "timestamp": 2})
    assert read(stuck, agent="opencode", exit_code=0).outcome is Outcome.LIMIT


def test_errors_between_which_tools_work_are_no_loop() -> None:
    """An error that is overcome each time does not end a start."""
    done = [
        {"type": "step_start", "sessionID": "ses_1", "part": {}},
        {"type": "text", "sessionID": "ses_1", "part": {"text": "Done."}},
        {"type": "step_finish", "sessionID": "ses_1", "part": {"reason": "stop"}},
    ]
    got = read(overflows(3 * SAME_ERRORS, tool=True) + lines(*done), agent="opencode")
    assert got.outcome is Outcome.COMPLETED


def test_a_failed_result_has_its_sentence_in_error_message() -> None:
    """`result.error.message` of Claude's kin is read, by words alone where no code is named."""
    head = {"session_id": SESSION, "uuid": "u"}
    for message, outcome in (
        ("[API Error: 401 bad key]", Outcome.FATAL),
        ("You have reached your weekly usage limit. Resets in 3h", Outcome.USAGE_LIMIT),
        ("something else", Outcome.ERROR),
    ):
        result = {
            "type": "result",
            "subtype": "error_during_execution",
            "is_error": True,
            "num_turns": 1,
            "error": {"message": message},
        }
        got = read(lines({**head, **result}), agent="claude", exit_code=1, now=NOW)
        assert (got.outcome, got.reason) == (outcome, message)


def test_an_older_qwen_calls_a_refused_key_a_success() -> None:
    """A message without a token that is the error's sentence is no answer."""
    head = {"session_id": SESSION, "uuid": "u"}
    words = "[API Error: 401 bad key]"
    free = {"input_tokens": 0, "output_tokens": 0}
    message = {"id": "m", "model": "q", "content": [{"type": "text", "text": words}], "usage": free}
    result = {"subtype": "success", "is_error": False, "num_turns": 1, "result": words}
    stream = lines(
        {"type": "assistant", **head, "message": message},
        {"type": "result", **head, **result, "usage": free},
    )
    got = read(stream, agent="claude")
    assert got.outcome is Outcome.FATAL
    assert not got.model_output


def test_what_the_cache_served_is_counted_once() -> None:
    """Where `input_tokens` contains it, as `total_tokens` shows, it is taken off."""
    stdout, code, stderr = start("qwen/plain")
    used = read(stdout, agent="claude", exit_code=code, stderr=stderr).usage
    assert (used.input_tokens, used.cache_read_tokens, used.output_tokens) == (200, 1400, 40)


def test_auto_looks_at_more_than_the_first_line() -> None:
    """Droid begins as Claude Code does; what follows tells whose it is."""
    stdout, code, _ = start("droid/stream")
    got = read(stdout, agent="auto", exit_code=code)
    assert (got.reader, got.outcome, got.final_text) == ("droid", "completed", "Hello there.")
    assert got.tool_call_count == 1


def test_a_stream_of_nobody_we_know_is_text() -> None:
    """It begins as Claude Code's does and goes on otherwise: the exit code says how it ended."""
    init = {"type": "system", "subtype": "init", "session_id": SESSION}
    other = {"type": "delta", "body": "Hello", "session_id": SESSION}
    stream = lines(init, *([other] * 40))
    got = read(stream, agent="auto", exit_code=0)
    assert (got.reader, got.outcome) == ("text", Outcome.COMPLETED)
    assert json.dumps("Hello") in got.text
    assert read(stream, agent="auto", exit_code=1).outcome is Outcome.ERROR


@pytest.mark.parametrize("side", ["│", "┃", "║"])
def test_a_frame_does_not_hide_the_block(side: str) -> None:
    """Openhands draws a frame around the last message; its sides are not the agent's words."""
    inside = ["Done.", "", *TRUE_BLOCK.split("\n")]
    body = "\n".join(f"{side} {line:<70} {side}" for line in inside)
    got = read(f"╭{'─' * 72}╮\n{body}\n╰{'─' * 72}╯\n".encode(), agent="text")
    assert got.status is not None
    assert got.status.exit_signal
    assert got.status_is_final
