"""Tokens and money of one start of Claude Code.

`total_cost_usd` and `modelUsage` of a result run up
over the process and, after `--resume`, over the whole conversation.
`model_usage_since_last_result` is the increment, side calls included; where it is printed
(stream-json) the increments are summed, so a resumed start costs what it alone cost.

What no result reports (the process was killed, an answer was cut off and asked for again) is
estimated from the usage in the stream.  One message comes as several events with the same id: it
counts once, with the largest number of each kind.
"""

from typing import Any

import msgspec

from ralphloop.core.totals import TOKENS, Usage
from ralphloop.readers.values import Document, count_of, document_at, document_of, money_of

_OPEN_MESSAGES = 64  # messages that may still grow: subagents answer side by side

_STREAM_KEYS = tuple(
    f"{kind}_tokens" for kind in ("input", "output", "cache_read_input", "cache_creation_input")
)
_MODEL_KEYS = tuple(
    f"{kind}Tokens" for kind in ("input", "output", "cacheReadInput", "cacheCreationInput")
)


class ClaudeUsage:
    """Adds up what results report and what the stream shows since the last one."""

    def __init__(self) -> None:
        self._reported = Usage()
        self._growing: dict[str, Usage] = {}
        self._settled = Usage()

    @property
    def value(self) -> Usage:
        streamed = self._since_last_result()
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
        streamed, self._growing, self._settled = self._since_last_result(), {}, Usage()
        increment = result.get("model_usage_since_last_result")
        if isinstance(increment, dict):
            told = _of_models(increment)
            self._reported += told + _unreported(streamed, told)
        else:
            self._reported = _running_total(result)

    def _since_last_result(self) -> Usage:
        return sum(self._growing.values(), self._settled)


def _unreported(streamed: Usage, told: Usage) -> Usage:
    """An answer that was cut off is missing from the result, though its tokens were used."""
    missing = {name: max(0, getattr(streamed, name) - getattr(told, name)) for name in TOKENS}
    # More output alone is no sign of one: it is counted differently on the way.
    was_cut = any(missing[name] for name in TOKENS if name != "output_tokens")
    return Usage(**missing, estimated=True) if was_cut else Usage()


def _running_total(result: Document) -> Usage:
    """Without increments the newest running total is all there is."""
    told = _of_models(document_at(result, "modelUsage"))
    if not told.total_tokens:
        tokens = _tokens(document_at(result, "usage"), _STREAM_KEYS)
        told = msgspec.structs.replace(tokens, cost_usd=told.cost_usd)
    total = money_of(result.get("total_cost_usd"))
    return msgspec.structs.replace(
        told,
        cost_usd=total if total is not None else told.cost_usd or None,
        cumulative=True,  # of the whole conversation, where it was resumed
    )


def _tokens(usage: Document, keys: tuple[str, ...]) -> Usage:
    counts: dict[str, Any] = {
        name: count_of(usage.get(key)) for name, key in zip(TOKENS, keys, strict=True)
    }
    return Usage(**counts)


def _of_models(models: Document) -> Usage:
    total = Usage(cost_usd=0.0)
    for value in models.values():
        model = document_of(value)
        cost = money_of(model.get("costUSD"))
        total += msgspec.structs.replace(_tokens(model, _MODEL_KEYS), cost_usd=cost)
    return total
