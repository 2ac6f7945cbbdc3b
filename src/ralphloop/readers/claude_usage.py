"""Tokens and money of one start of Claude Code.

`total_cost_usd` and `modelUsage` of a result run up over the process and, after `--resume`, over
the whole conversation; where `model_usage_since_last_result` is printed (stream-json) these
increments are summed, so that a resumed start costs what it alone cost.

What no result reports (the process was killed, an answer cut off and asked for again) is estimated
from the stream.  A message comes as several events with one id: it counts once, with the largest
number of each kind.
"""

from typing import Any

import msgspec

from ralphloop.core.totals import TOKENS, Usage
from ralphloop.readers.values import Document, amount_of, count_of, document_at, document_of

_OPEN_MESSAGES = 64  # messages that may still grow: subagents answer side by side

_STREAM_KEYS = tuple(
    f"{kind}_tokens" for kind in ("input", "output", "cache_read_input", "cache_creation_input")
)
_MODEL_KEYS = tuple(
    f"{kind}Tokens" for kind in ("input", "output", "cacheReadInput", "cacheCreationInput")
)


class ClaudeUsage:
    def __init__(self) -> None:
        self._reported = Usage()
        self._growing: dict[str, Usage] = {}
        self._settled = Usage()

    @property
    def value(self) -> Usage:
        streamed = sum(self._growing.values(), self._settled)
        if not streamed.total_tokens:
            return self._reported
        return self._reported + msgspec.structs.replace(streamed, estimated=True)

    def streamed(self, message_id: str, usage: Document) -> None:
        """A message shows its usage so far."""
        if not usage:
            return
        key = message_id[:100]
        seen = _tokens(usage, _STREAM_KEYS)
        known = self._growing.get(key)
        if known == seen:
            return
        if known:
            both = {name: max(getattr(known, name), getattr(seen, name)) for name in TOKENS}
            seen = Usage(**both)
        self._growing[key] = seen
        if len(self._growing) > _OPEN_MESSAGES:
            self._settled += self._growing.pop(next(iter(self._growing)))

    def reported(self, result: Document) -> None:
        """A result settles the account up to here."""
        streamed = sum(self._growing.values(), self._settled)
        self._growing, self._settled = {}, Usage()
        increment = result.get("model_usage_since_last_result")
        if isinstance(increment, dict):
            told = _of_models(increment)
            # An answer that was cut off is missing from the result, though its tokens were used.
            missing = {it: max(0, getattr(streamed, it) - getattr(told, it)) for it in TOKENS}
            # More output alone is no sign of one: it is counted differently on the way.
            was_cut = any(missing[name] for name in TOKENS if name != "output_tokens")
            self._reported += told + (Usage(**missing, estimated=True) if was_cut else Usage())
            return
        # Without increments the newest running total is all there is.
        told = _of_models(document_at(result, "modelUsage"))
        if not told.total_tokens:
            tokens = _tokens(document_at(result, "usage"), _STREAM_KEYS)
            told = msgspec.structs.replace(tokens, cost_usd=told.cost_usd)
        total = amount_of(result.get("total_cost_usd"))
        self._reported = msgspec.structs.replace(
            told,
            cost_usd=total if total is not None else told.cost_usd or None,
            cumulative=True,  # of the whole conversation, where it was resumed
        )


def _tokens(usage: Document, keys: tuple[str, ...]) -> Usage:
    named = zip(TOKENS, keys, strict=True)
    counts: dict[str, Any] = {name: count_of(usage.get(key)) for name, key in named}
    told = Usage(**counts)
    total = count_of(usage.get("total_tokens"))
    if 0 < total < told.total_tokens:  # some programs count what the cache served as input, too
        cached = told.cache_read_tokens + told.cache_write_tokens
        return msgspec.structs.replace(told, input_tokens=max(0, told.input_tokens - cached))
    return told


def _of_models(models: Document) -> Usage:
    total = Usage(cost_usd=0.0)
    for value in models.values():
        model = document_of(value)
        cost = amount_of(model.get("costUSD"))
        total += msgspec.structs.replace(_tokens(model, _MODEL_KEYS), cost_usd=cost)
    return total
