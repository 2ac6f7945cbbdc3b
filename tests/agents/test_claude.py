"""Claude Code: whose words count, what a start cost, what shows while it runs."""

from __future__ import annotations

from typing import Any

import pytest

from ralphloop.core.model import Outcome
from ralphloop.readers import reader_for
from tests.agents.events import (
    FALSE_BLOCK,
    TRUE_BLOCK,
    api_error,
    init,
    lines,
    read_claude,
    result,
    retry,
    said,
    text,
    tool_result,
    tool_use,
)

# --- own words -------------------------------------------------------------------------------


def test_the_block_of_the_final_message_is_final() -> None:
    """The result repeats the last message; its block counts once, and as final."""
    answer = f"All green.\n\n{TRUE_BLOCK}"
    got = read_claude(init(), said(text(answer)), result(answer))
    assert got.status is not None
    assert got.status.exit_signal
    assert got.status_is_final
    assert got.text == answer
    assert got.text_chars == len(answer)


def test_a_block_in_an_earlier_message_is_not_final() -> None:
    """A block before the final message is found, and marked as not final."""
    got = read_claude(
        init(), said(text(TRUE_BLOCK)), said(text("Now the docs.")), result("Now the docs.")
    )
    assert got.status is not None
    assert not got.status_is_final
    assert got.text == f"{TRUE_BLOCK}\n\nNow the docs."


@pytest.mark.parametrize(
    "foreign",
    [
        tool_result(TRUE_BLOCK),
        said(text(TRUE_BLOCK), parent_tool_use_id="toolu_1"),
        said(text(TRUE_BLOCK), agent_id="a7"),
        said(tool_use("Write", file_path="x", content=TRUE_BLOCK)),
        {
            "type": "user",
            "isSynthetic": True,
            "message": {"role": "user", "content": [text(TRUE_BLOCK)]},
        },
        {"type": "user", "isReplay": True, "message": {"role": "user", "content": TRUE_BLOCK}},
        api_error(TRUE_BLOCK, "unknown"),
        said({"type": "thinking", "thinking": TRUE_BLOCK}),
    ],
    ids=[
        "tool result",
        "subagent",
        "agent id",
        "tool input",
        "synthetic",
        "replay",
        "error",
        "thought",
    ],
)
def test_other_peoples_blocks_are_nobodys_claim(foreign: dict[str, Any]) -> None:
    """Only the main agent's own messages can carry a status block."""
    got = read_claude(init(), foreign, said(text("Read the log.")), result("Read the log."))
    assert got.status is None
    assert got.text == "Read the log."


def test_the_last_of_several_results_counts() -> None:
    """After background work a second turn ends with its own result, and that one is final."""
    got = read_claude(
        init(),
        said(text(TRUE_BLOCK)),
        result(TRUE_BLOCK),
        init(),
        said(text(FALSE_BLOCK)),
        result(FALSE_BLOCK),
    )
    assert got.final_text == FALSE_BLOCK
    assert got.status is not None
    assert not got.status.exit_signal
    assert got.status_is_final


def test_words_after_the_last_result_are_not_final() -> None:
    """A second turn that never ended leaves the first result, but the newer block wins."""
    got = read_claude(
        init(),
        said(text(TRUE_BLOCK)),
        result(TRUE_BLOCK),
        init(),
        said(text(FALSE_BLOCK)),
        exit_code=143,
    )
    assert got.outcome is Outcome.COMPLETED
    assert got.final_text == TRUE_BLOCK
    assert got.status is not None
    assert not got.status.exit_signal
    assert not got.status_is_final


def test_without_a_result_nothing_is_final() -> None:
    """A stream that breaks off has no final message, whatever its last words claim."""
    got = read_claude(init(), said(text(TRUE_BLOCK)), exit_code=143)
    assert got.outcome is Outcome.KILLED
    assert got.final_text is None
    assert got.status is not None
    assert not got.status_is_final


def test_a_result_without_messages_is_the_message() -> None:
    """The json format prints the result alone; it is the agent's word."""
    got = read_claude(result(TRUE_BLOCK))
    assert got.status_is_final
    assert got.text == TRUE_BLOCK


def test_an_error_sentence_is_no_claim() -> None:
    """What the CLI wrote into a failed result is shown, but it is not the agent's text."""
    got = read_claude(
        init(), result(TRUE_BLOCK, is_error=True, terminal_reason="api_error"), exit_code=1
    )
    assert got.final_text == TRUE_BLOCK
    assert got.status is None
    assert got.text == ""


# --- usage -----------------------------------------------------------------------------------


def increment(cost: float, tokens: int) -> dict[str, Any]:
    """Usage since the last result."""
    return {
        "m": {"inputTokens": tokens, "outputTokens": 1, "cacheReadInputTokens": 7, "costUSD": cost}
    }


def test_increments_of_all_results_are_summed() -> None:
    """Two results of one start cost their two increments, whatever the running totals say."""
    got = read_claude(
        init(),
        result("a", total_cost_usd=9.0, model_usage_since_last_result=increment(0.25, 10)),
        result("b", total_cost_usd=9.5, model_usage_since_last_result=increment(0.5, 20)),
    )
    assert got.usage.cost_usd == pytest.approx(0.75)
    assert (got.usage.input_tokens, got.usage.output_tokens, got.usage.cache_read_tokens) == (
        30,
        2,
        14,
    )


def test_one_message_in_several_events_is_counted_once() -> None:
    """Without a result the stream is summed: one message id once, its largest numbers."""
    grown = said(text("b"), message_id="m1")
    grown["message"]["usage"] = {"input_tokens": 100, "output_tokens": 40}
    got = read_claude(
        init(),
        said(text("a"), message_id="m1"),
        grown,
        said(text("c"), message_id="m2"),
        exit_code=-9,
    )
    assert got.usage.estimated
    assert (got.usage.input_tokens, got.usage.output_tokens) == (200, 41)
    assert got.usage.cost_usd is None


def test_usage_is_known_while_it_runs() -> None:
    """The live cost follows the stream and is settled by the result."""
    reader = reader_for("claude")
    known = []
    for event in (said(text("a")), result("a", model_usage_since_last_result=increment(0.25, 500))):
        reader.feed(lines(event))
        known.append((reader.dialect.usage.input_tokens, reader.dialect.usage.estimated))
    assert known == [(100, True), (500, False)]


def test_partial_messages_give_the_estimate() -> None:
    """The final numbers of a streamed message are in its message_delta."""
    start = {
        "type": "message_start",
        "message": {"id": "m1", "usage": {"input_tokens": 80, "output_tokens": 1}},
    }
    delta = {"type": "message_delta", "usage": {"output_tokens": 33}}
    got = read_claude(
        init(),
        {"type": "stream_event", "event": start, "api_message_id": "m1"},
        {
            "type": "stream_event",
            "event": {"type": "content_block_delta", "index": 0},
            "api_message_id": "m1",
        },
        {"type": "stream_event", "event": delta, "api_message_id": "m1"},
        exit_code=143,
    )
    assert (got.usage.input_tokens, got.usage.output_tokens) == (80, 33)
    assert got.model_output


def test_an_interrupted_answer_is_not_free() -> None:
    """The result of an aborted turn leaves out the answer that was cut; the stream has it."""
    start = {
        "type": "message_start",
        "message": {"id": "m1", "usage": {"input_tokens": 80, "output_tokens": 1}},
    }
    aborted = result(
        None,
        is_error=True,
        subtype="error_during_execution",
        terminal_reason="aborted_streaming",
        model_usage_since_last_result={},
    )
    got = read_claude(init(), {"type": "stream_event", "event": start}, aborted)
    assert got.outcome is Outcome.INTERRUPTED
    assert got.usage.input_tokens == 80
    assert got.usage.estimated


def test_absurd_numbers_do_no_harm() -> None:
    """Negative, infinite or non-numeric usage counts as nothing."""
    odd = {"input_tokens": -5, "output_tokens": "many", "cache_read_input_tokens": True}
    got = read_claude(init(), result("x", usage=odd, total_cost_usd=-3))
    assert got.usage.total_tokens == 0
    assert got.usage.cost_usd is None


# --- while it runs ---------------------------------------------------------------------------


def test_a_fatal_retry_is_hinted_at_once() -> None:
    """Ten retries of a wrong key are not worth waiting for; an answer takes the hint back."""
    reader = reader_for("claude")
    hints = []
    for event in (
        retry("overloaded", 529),
        retry("authentication_failed", 401),
        said(text("hello")),
    ):
        reader.feed(lines(event))
        hints.append(reader.dialect.fatal_hint)
    assert hints == [None, "authentication_failed (401)", None]


def test_another_turn_takes_the_result_back() -> None:
    """The grace clock runs after a result, and stops when the agent goes on."""
    reader = reader_for("claude")
    seen = []
    for event in (init(), said(text("a")), result("a"), init()):
        reader.feed(lines(event))
        seen.append(reader.dialect.result_seen)
    assert seen == [False, False, True, False]


def test_visible_steps_are_short_lines() -> None:
    """Steps show words, calls and their ends, each on one bounded line."""
    reader = reader_for("claude")
    steps = reader.feed(
        lines(
            init(),
            said(text("first line\nsecond " + "long " * 200)),
            said(tool_use("Bash", command="npm test")),
            tool_result("boom", is_error=True),
            retry("overloaded", 529),
            result("done"),
        )
    )
    assert [step.kind for step in steps] == ["text", "tool", "tool_result", "retry", "result"]
    assert all(len(step.summary) <= 200 and "\n" not in step.summary for step in steps)
    assert steps[1].summary == "Bash npm test"
    assert steps[2].ok is False


def test_only_the_last_calls_are_kept_but_all_are_counted() -> None:
    """A thousand calls cost no more memory than fifty."""
    events = [said(tool_use("Read", call_id=f"t{n}", file_path=f"f{n}")) for n in range(1000)]
    got = read_claude(init(), *events, result())
    assert got.tool_call_count == 1000
    assert len(got.tool_calls) == 50
    assert got.tool_calls[-1].summary == "f999"


def test_events_of_wrong_shape_are_ignored() -> None:
    """Fields of any type in any place cost nothing but themselves."""
    odd: list[dict[str, Any]] = [
        {"type": "assistant", "message": {"content": "just text", "usage": [], "id": 7}},
        {"type": "assistant", "message": {"content": [1, None, {"type": "text", "text": 5}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": 5}]}},
        {"type": "system", "subtype": ["init"]},
        {"type": "system", "subtype": "api_retry", "error": {}, "attempt": "x"},
        {"type": "rate_limit_event", "rate_limit_info": "soon"},
        {"type": "stream_event", "event": None},
        {"type": ["result"]},
        {"type": "brand_new", "session_id": 5},
    ]
    got = read_claude(init(), *odd, said(text("fine")), result("fine"))
    assert got.outcome is Outcome.COMPLETED
    assert got.text == "fine"
