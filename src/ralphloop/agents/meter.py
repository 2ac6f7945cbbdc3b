"""What a start has used so far, and what it will have used after its next step.

The stream tells, where its CLI reports each step; else what the CLI writes down beside it.  A CLI
that does neither is bounded by time and by the number of its starts alone.
"""

import time
from typing import NamedTuple

import msgspec

from ralphloop.agents.base import Launch
from ralphloop.agents.cli_records import record_of
from ralphloop.agents.prices import Rows, priced
from ralphloop.core.model import TOKENS, Usage
from ralphloop.readers.base import Dialect

_BETWEEN_READS_S = 0.3


class Reading(NamedTuple):
    used: Usage
    ahead: Usage  # with another step as large as the last


class Meter:
    def __init__(self, launch: Launch, prices: Rows) -> None:
        self._launch = launch
        self._prices = prices
        self._record = record_of(launch.reader, launch.env)
        self._record.look(launch.resumed)
        self._before = self._record.usage  # what earlier starts of the conversation used
        self._next_read = 0.0
        self._steps = 0
        self._seen = Usage()
        self._last_step = Usage()

    def read(self, dialect: Dialect) -> Reading:
        """The usage now, priced; the first step is no measure for the next: it reads the prompt."""
        used = self._used(dialect)
        if used.total_tokens > self._seen.total_tokens:
            self._steps += 1
            if self._steps > 1:
                self._last_step = _difference(used, self._seen)
            self._seen = used
        return Reading(self._priced(used, dialect), self._priced(used + self._last_step, dialect))

    def _used(self, dialect: Dialect) -> Usage:
        told = dialect.usage
        now = time.monotonic()
        if now >= self._next_read:
            self._next_read = now + _BETWEEN_READS_S
            self._record.look(dialect.session_id or "")
        noted = _difference(self._record.usage, self._before)
        return noted if noted.total_tokens > told.total_tokens else told

    def _priced(self, usage: Usage, dialect: Dialect) -> Usage:
        model = dialect.model or self._record.model or self._launch.model
        if usage.cost_usd is not None and not usage.estimated:
            return usage
        guess = msgspec.structs.replace(usage, estimated=True)
        return priced(guess, model, dialect.name, self._prices)


def _difference(now: Usage, before: Usage) -> Usage:
    tokens = {name: max(0, getattr(now, name) - getattr(before, name)) for name in TOKENS}
    cost = None
    if now.cost_usd is not None:
        cost = max(0.0, now.cost_usd - (before.cost_usd or 0.0))
    return Usage(**tokens, cost_usd=cost)
