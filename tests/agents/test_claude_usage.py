"""Tokens of a start that no result reported: summed from the stream, each message once."""

from __future__ import annotations

import pytest

from ralphloop.readers.claude_usage import ClaudeUsage


def test_a_long_stream_without_a_result_loses_no_message() -> None:
    """Messages that are long over still count, however many came after them."""
    counted = ClaudeUsage()
    for number in range(200):
        counted.streamed(f"m{number}", {"input_tokens": 10, "output_tokens": 1})
        counted.streamed(f"m{number}", {"input_tokens": 10, "output_tokens": 3})
    assert (counted.value.input_tokens, counted.value.output_tokens) == (2_000, 600)
    assert counted.value.estimated


@pytest.mark.parametrize(
    "total, cost", [({"total_cost_usd": 0.75}, 0.75), ({"total_cost_usd": 0.0}, 0.0), ({}, 0.5)]
)
def test_without_a_total_the_models_say_what_it_cost(total: dict[str, float], cost: float) -> None:
    """The total of a result stands, zero too; where it has none its models are added up."""
    models = {"a": {"inputTokens": 10, "costUSD": 0.25}, "b": {"inputTokens": 5, "costUSD": 0.25}}
    counted = ClaudeUsage()
    counted.reported({"modelUsage": models, **total})
    assert (counted.value.input_tokens, counted.value.cost_usd) == (15, cost)


def test_a_result_without_any_cost_leaves_it_unknown() -> None:
    """Tokens alone are not free of charge."""
    counted = ClaudeUsage()
    counted.reported({"usage": {"input_tokens": 10}})
    assert (counted.value.input_tokens, counted.value.cost_usd) == (10, None)
