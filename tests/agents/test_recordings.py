"""Every recording of a real CLI, against what was written down about it by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ralphloop.core.model import Response
from ralphloop.readers import read, reader_for

HERE = Path(__file__).parent
RECORDINGS = HERE / "recordings"
RECORDED_AT = datetime.fromtimestamp(1_794_775_000, UTC)  # the evening they were made
EXPECTED: dict[str, dict[str, Any]] = {
    row["recording"]: row
    for row in map(json.loads, (HERE / "expected.jsonl").read_text("utf-8").splitlines())
}


# The reader of an agent that has none of its own name.
READERS = {
    "qwen": "claude",
    **dict.fromkeys(("copilot", "cline", "cn", "aider", "openhands"), "text"),
}


def reader_of(name: str) -> str:
    """The reader for a recording, by its agent."""
    agent = name.split("/", 1)[0]
    return READERS.get(agent, agent)


def start(name: str) -> tuple[bytes, int, str]:
    """Output, exit code and stderr of a recorded start."""
    folder = RECORDINGS / name
    stderr = folder / "stderr"
    said = stderr.read_text("utf-8", "replace") if stderr.exists() else ""
    return (folder / "stdout").read_bytes(), int((folder / "rc").read_text()), said


@cache
def response(name: str, agent: str | None = None) -> Response:
    """The recording as its own reader, or another, reads it."""
    stdout, code, stderr = start(name)
    agent = agent or reader_of(name)
    return read(stdout, agent=agent, exit_code=code, stderr=stderr, now=RECORDED_AT)


def test_no_recording_is_forgotten() -> None:
    """Each recording has an expectation, and each expectation a recording."""
    recorded = {f"{path.parent.parent.name}/{path.parent.name}" for path in RECORDINGS.rglob("rc")}
    assert recorded == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_recording_is_read_right(name: str) -> None:
    """Outcome, final text, session id, usage, denials and reset time are those of the recording."""
    expected, got = EXPECTED[name], response(name)
    assert got.outcome == expected["outcome"], got.reason
    assert got.final_text == expected.get("final")
    assert got.session_id == expected.get("session")
    assert [got.usage.input_tokens, got.usage.output_tokens] == expected.get("tokens", [0, 0])
    assert got.usage.cost_usd == pytest.approx(expected.get("cost"))
    assert len(got.denials) == expected.get("denials", 0)
    assert got.rate_limit.resets_at == expected.get("resets_at")
    assert got.reader == reader_of(name)
    assert got.reason


@pytest.mark.parametrize("name", EXPECTED)
def test_cutting_the_stream_changes_nothing(name: str) -> None:
    """The same bytes in pieces of seven give the same response."""
    stdout, code, stderr = start(name)
    reader = reader_for(reader_of(name))
    for begin in range(0, len(stdout), 7):
        reader.feed(stdout[begin : begin + 7])
    assert reader.finish(exit_code=code, stderr=stderr, now=RECORDED_AT) == response(name)


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.startswith("claude/")])
def test_a_glance_is_as_good_as_a_look(name: str) -> None:
    """Events written with other blanks, which must be decoded in full, say the same."""
    stdout, code, stderr = start(name)
    spaced = stdout.replace(b'{"type":', b'{ "type": ')
    got = read(spaced, agent="claude", exit_code=code, stderr=stderr, now=RECORDED_AT)
    assert got == response(name)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_dialect_is_detected(name: str) -> None:
    """Without the agent's name, events are read by the right dialect and text as text."""
    named, detected = response(name), response(name, "auto")
    if named.format == "text":
        assert detected.reader == "text"
    else:
        assert detected == named


def test_only_estimates_are_marked() -> None:
    """Where a result reports the usage it is no estimate; where none came, it is."""
    assert not response("claude/stream_json").usage.estimated
    assert response("claude/kill_sigkill_in_bash").usage.estimated


def test_formats_on_the_wire() -> None:
    """Text, one object, an array and JSON Lines are told apart."""
    assert response("claude/text").format == "text"
    assert response("claude/json").format == "json"
    assert response("gemini/json").format == "json"
    assert response("claude/json_verbose").format == "json_array"
    assert response("claude/stream_json").format == "jsonl"
    assert response("claude/kill_sigkill_stream").format == "jsonl"


def test_resumed_starts_cost_what_they_alone_cost() -> None:
    """The running total of a resumed conversation ($0.0128) is not this start's price."""
    assert response("claude/session_3_continue").usage.cost_usd == pytest.approx(0.0008)


def test_what_the_session_started_with() -> None:
    """The model comes from the init event, also where a plugin is broken."""
    assert response("claude/plugin_dir_missing").model == "claude-opus-5-5"


def test_tool_calls_say_what_they_touched() -> None:
    """Each call has its name, file or command, and whether it worked."""
    calls = [
        (call.name, call.summary, call.ok) for call in response("claude/tools_default").tool_calls
    ]
    assert calls == [
        ("Write", "{WORK}/out.txt", False),
        ("Bash", "echo ran > bash.txt; cat out.txt", False),
    ]
    (call,) = response("opencode/tool_fails").tool_calls
    assert (call.name, call.ok) == ("bash", False)
    (call,) = response("codex/apply_patch_heredoc").tool_calls
    assert (call.name, call.summary, call.ok) == ("file_change", "{WORK}/patched.txt", True)


def test_denials_name_tool_and_target() -> None:
    """A refusal is counted once, though it is reported twice, and says what was refused."""
    refused = [(denial.tool, denial.summary) for denial in response("claude/tools_default").denials]
    assert refused == [
        ("Write", "{WORK}/out.txt"),
        ("Bash", "echo ran > bash.txt; cat out.txt"),
    ]


def test_model_output_is_what_was_paid_for() -> None:
    """An answer counts, a CLI's own error message does not."""
    assert response("claude/json").model_output
    assert response("claude/err_after_tool").model_output
    assert not response("claude/err_500").model_output
    assert not response("claude/usage_limit_oauth_text").model_output
    assert not response("codex/kill_sigterm").model_output
    assert response("codex/kill_sigterm_in_cmd").model_output


def test_retrying_is_the_last_sign_of_life() -> None:
    """A start that was cut off in its backoff says so; one that recovered does not."""
    assert response("claude/kill_sigterm_in_backoff").retrying
    assert response("codex/net_refused").retrying
    assert not response("claude/retry_watchdog_529").retrying


@pytest.mark.parametrize(
    "name, words",
    [
        ("claude/resume_missing", "No conversation found with session ID: 99999999"),
        ("claude/bad_flag", "unknown option '--no-such-flag'"),
        ("claude/max_turns", "Reached maximum number of turns (3)"),
        ("codex/not_git_sandboxed", "Not inside a trusted directory"),
        ("gemini/no_auth", "Please set an Auth method"),
        ("gemini/err_401_text", "bad key"),
        ("opencode/external_dir", "refused: write"),
    ],
)
def test_the_reason_is_in_words(name: str, words: str) -> None:
    """The reason is what the CLI said, not its chatter."""
    assert words in response(name).reason


def test_three_megabytes_in_one_line() -> None:
    """A huge answer, printed twice, is counted once and kept with its head and tail."""
    huge = "A" * 3_000_000
    template, _, _ = start("claude/stream_json")
    stdout = template.replace(b"Hello from the fake model.", huge.encode())
    got = read(stdout, agent="claude")
    assert got.outcome == "completed"
    assert got.text_chars == 3_000_000
    assert got.final_text is not None
    assert len(got.final_text) < 300_000
    assert "characters left out" in got.final_text
