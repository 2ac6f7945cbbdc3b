"""Tokens of a start that no result reported: summed from the stream, each message once."""

from __future__ import annotations

from ralphloop.readers.claude_usage import ClaudeUsage


def test_a_long_stream_without_a_result_loses_no_message() -> None:
    """Messages that are long over still count, however many came after them."""
    counted = ClaudeUsage()
    for number in range(200):
        counted.streamed(f"m{number}", {"input_tokens": 10, "output_tokens": 1})
        counted.streamed(f"m{number}", {"input_tokens": 10, "output_tokens": 3})
    assert (counted.value.input_tokens, counted.value.output_tokens) == (2_000, 600)
    assert counted.value.estimated
