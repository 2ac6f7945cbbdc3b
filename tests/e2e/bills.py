"""Comparing what a reader or ralph counted with what the scripted model billed."""

from __future__ import annotations

import pytest

from ralphloop.core import model
from tests.e2e.model_server import ModelServer, Prices, Usage
from tests.e2e.projects import Project, counted

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


def assert_dollars_billed(made: Project, server: ModelServer) -> None:
    """What ralph says Claude Code spent is what the model billed, to the token and to the cent."""
    status = made.status()
    assert counted(status) == server.billed
    assert status["cost_usd"] == pytest.approx(server.billed.cost(CLAUDE_PRICES))
