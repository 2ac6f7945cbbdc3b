"""Comparing what a reader or ralph counted with what the scripted model billed."""

from __future__ import annotations

from ralphloop.core import model
from tests.e2e.model_server import Prices, Usage

# What Claude Code 2.1.325 itself reckons with for its default model, in dollars per million.
CLAUDE_PRICES = Prices(input=4, output=20, cache_read=0.2, cache_write=5)


def as_usage(counted: model.Usage) -> Usage:
    """What a reader counted, in the words of the script."""
    return Usage(
        input=counted.input_tokens,
        output=counted.output_tokens,
        cache_read=counted.cache_read_tokens,
        cache_write=counted.cache_write_tokens,
    )
