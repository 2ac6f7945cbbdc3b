"""opencode: steps, rejected permissions, errors."""

from __future__ import annotations

from typing import Any

import pytest

from ralphloop.core.model import Outcome, Response
from ralphloop.readers import read, reader_for
from tests.agents.events import FALSE_BLOCK, TRUE_BLOCK, lines, opencode

START = opencode("step_start", type="step-start")


def said(words: str, session: str = "ses_1") -> dict[str, Any]:
    """A text part."""
    return opencode("text", session, type="text", text=words)


def finish(reason: str = "stop", cost: float = 0.25) -> dict[str, Any]:
    """The end of a step."""
    tokens = {
        "total": 170,
        "input": 100,
        "output": 20,
        "reasoning": 30,
        "cache": {"read": 15, "write": 5},
    }
    return opencode("step_finish", reason=reason, tokens=tokens, cost=cost)


def call(name: str, status: str = "completed", **more: Any) -> dict[str, Any]:
    """A tool call that is over."""
    return opencode(
        "tool_use",
        tool=name,
        callID="c1",
        state={"status": status, "input": {"filePath": "a"}} | more,
    )


def error(name: str = "APIError", **data: Any) -> dict[str, Any]:
    """An error event."""
    return {"type": "error", "sessionID": "ses_1", "error": {"name": name, "data": data}}


def run(*events: dict[str, Any], exit_code: int = 0, stderr: str = "") -> Response:
    """Read these events as one start."""
    return read(lines(*events), agent="opencode", exit_code=exit_code, stderr=stderr)


def test_the_last_step_carries_the_answer() -> None:
    """Text of earlier steps is the agent's word; the step that stopped is final."""
    got = run(
        START,
        said(TRUE_BLOCK),
        call("read"),
        finish("tool-calls"),
        START,
        said("Done."),
        said(FALSE_BLOCK),
        finish(),
    )
    assert got.final_text == f"Done.\n\n{FALSE_BLOCK}"
    assert got.status is not None
    assert not got.status.exit_signal
    assert got.status_is_final
    assert got.session_id == "ses_1"


def test_steps_are_summed() -> None:
    """Tokens and dollars of all steps add up; thoughts are output."""
    usage = run(START, finish("tool-calls"), START, said("ok"), finish()).usage
    assert (usage.input_tokens, usage.output_tokens) == (200, 100)
    assert (usage.cache_read_tokens, usage.cache_write_tokens) == (30, 10)
    assert usage.cost_usd == 0.5


def test_another_session_is_a_subagent() -> None:
    """Words of a child session are not the main agent's."""
    got = run(START, said(TRUE_BLOCK, "ses_2"), said("ok"), finish())
    assert got.status is None
    assert got.text == "ok"


def test_a_rejected_permission_ends_the_run_with_code_0() -> None:
    """The last step wanted tools, one was rejected: denied, by the event or by stderr."""
    rejected = call(
        "write", "error", error="The user rejected permission to use this specific tool call."
    )
    assert run(START, rejected, finish("tool-calls")).outcome is Outcome.DENIED
    notice = "! permission requested: edit (out.txt); auto-rejecting"
    assert run(START, finish("tool-calls"), stderr=notice).outcome is Outcome.DENIED
    assert run(START, finish("tool-calls")).outcome is Outcome.ERROR


def test_an_unavailable_tool_is_denied_only_if_it_exists() -> None:
    """`write` that is not offered was forbidden; `nope` was invented."""
    for wanted, outcome in (("write", Outcome.DENIED), ("nope", Outcome.COMPLETED)):
        got = run(
            START,
            call("invalid", input={"tool": wanted}),
            finish("tool-calls"),
            START,
            said("ok"),
            finish(),
        )
        assert got.outcome is outcome


@pytest.mark.parametrize(
    "event, outcome",
    [
        (
            error(message="Incorrect API key provided", statusCode=401, isRetryable=False),
            Outcome.FATAL,
        ),
        (error(message="slow down", statusCode=429, isRetryable=True), Outcome.TRANSIENT),
        (
            error(message="no", statusCode=429, responseBody='{"code":"insufficient_quota"}'),
            Outcome.FATAL,
        ),
        (
            error(
                message="no",
                statusCode=429,
                isRetryable=True,
                responseBody='{"code":"insufficient_quota"}',
            ),
            Outcome.FATAL,
        ),
        (error(message="Cannot connect to API", isRetryable=True), Outcome.TRANSIENT),
        (error(message="Cannot parse", isRetryable=False), Outcome.ERROR),
        (error(message="bad request", statusCode=400, isRetryable=False), Outcome.ERROR),
        (error("ProviderModelNotFoundError", modelID="x"), Outcome.FATAL),
        (error("ProviderAuthError", message="no key"), Outcome.FATAL),
        (error("MessageAbortedError", message="aborted"), Outcome.INTERRUPTED),
        (error("MessageOutputLengthError"), Outcome.LIMIT),
        (error("UnknownError", message="Unexpected server error."), Outcome.STARTUP_ERROR),
    ],
)
def test_errors_by_name_and_status(event: dict[str, Any], outcome: Outcome) -> None:
    """The error event says what happened; unknown ones before any answer are a bad start."""
    assert run(event, exit_code=1).outcome is outcome


def test_an_error_is_told_in_its_own_words_or_by_its_name() -> None:
    """The message is the reason; an error without one has only its name."""
    assert run(error("ProviderAuthError", message="no key"), exit_code=1).reason == "no key"
    nameless = run(error("ProviderModelNotFoundError", modelID="x"), exit_code=1)
    assert nameless.reason == "ProviderModelNotFoundError"


def test_an_answer_that_was_gone_on_from_is_not_final() -> None:
    """A step that begins after `stop` takes the last word back, until it stops itself."""
    answered = (START, said(TRUE_BLOCK), finish())
    assert run(*answered).status_is_final
    cut = run(*answered, START, exit_code=-9)
    assert cut.final_text is None
    assert not cut.status_is_final


@pytest.mark.parametrize(
    "status, code, ok", [("completed", 0, True), ("completed", 2, False), ("error", None, False)]
)
def test_a_call_went_well_if_it_completed_with_code_0(
    status: str, code: int | None, ok: bool
) -> None:
    """A tool that failed, or a command with another exit code, is a call that went wrong."""
    got = run(START, call("bash", status, metadata={"exit": code}), said("ok"), finish())
    assert [each.ok for each in got.tool_calls] == [ok]


def test_an_error_that_was_overcome_is_forgotten() -> None:
    """A later step that stops is what counts."""
    got = run(error(message="slow", statusCode=429), START, said("ok"), finish())
    assert got.outcome is Outcome.COMPLETED


def test_result_seen_follows_the_steps() -> None:
    """It is through after `stop`, and not after `tool-calls`."""
    reader = reader_for("opencode")
    seen = []
    for event in (START, finish("tool-calls"), START, said("ok"), finish()):
        reader.feed(lines(event))
        seen.append(reader.dialect.result_seen)
    assert seen == [False, False, False, False, True]


def test_a_full_answer_is_a_limit() -> None:
    """`length` means the output limit cut the answer."""
    assert run(START, said("half"), finish("length")).outcome is Outcome.LIMIT
