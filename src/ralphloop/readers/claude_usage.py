"""Tokens and money of one start of Claude Code.

`total_cost_usd` and `modelUsage` of a result run up over the process and, after `--resume`, over
the whole conversation.  `model_usage_since_last_result` is the increment, side calls included;
where it is printed (stream-json) the increments are summed, so a resumed start costs what it alone
cost.

What no result reports (the process was killed, an answer was cut off and asked for again) is
estimated from the usage in the stream.  One message comes as several events with the same id: it
counts once, with the largest number of each kind.
"""

from __future__ import annotations

import msgspec

from ralphloop.core.model import Usage
from ralphloop.readers.values import Document, count_of, document_of, money_of

_Tokens = tuple[int, int, int, int]  # input, output, cache read, cache write

_NONE: _Tokens = (0, 0, 0, 0)
_OPEN_MESSAGES = 64  # messages that may still grow: subagents answer side by side

_STREAM_KEYS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_MODEL_KEYS = (
    "inputTokens",
    "outputTokens",
    "cacheReadInputTokens",
    "cacheCreationInputTokens",
)


class ClaudeUsage:
    """Adds up what results report and what the stream shows since the last one."""

    def __init__(self) -> None:
        self._reported = Usage()
        self._growing: dict[str, _Tokens] = {}
        self._settled = _NONE

    @property
    def value(self) -> Usage:
        """The best knowledge so far."""
        return _plus(self._reported, self._since_last_result())

    def streamed(self, message_id: str, usage: Document) -> None:
        """A message shows its usage so far."""
        if not usage:
            return
        key = message_id[:100]
        seen = _tokens(usage, _STREAM_KEYS)
        known = self._growing.get(key)
        if known == seen:
            return
        self._growing[key] = _largest(known, seen) if known else seen
        if len(self._growing) > _OPEN_MESSAGES:
            oldest = self._growing.pop(next(iter(self._growing)))
            self._settled = _sum(self._settled, oldest)

    def reported(self, result: Document) -> None:
        """A result settles the account up to here."""
        streamed, self._growing, self._settled = self._since_last_result(), {}, _NONE
        increment = result.get("model_usage_since_last_result")
        if isinstance(increment, dict):
            tokens, cost = _of_models(increment)
            self._add(tokens, cost)
            self._add_unreported(streamed, tokens)
        else:
            self._replace(result)

    def _since_last_result(self) -> _Tokens:
        total = self._settled
        for tokens in self._growing.values():
            total = _sum(total, tokens)
        return total

    def _add(self, tokens: _Tokens, cost: float) -> None:
        before = self._reported
        self._reported = msgspec.structs.replace(
            _plus(before, _NONE, tokens), cost_usd=(before.cost_usd or 0.0) + cost
        )

    def _add_unreported(self, streamed: _Tokens, reported: _Tokens) -> None:
        """An answer that was cut off is missing from the result, though its tokens were used."""
        missing = tuple(max(0, seen - told) for seen, told in zip(streamed, reported, strict=True))
        if missing[0] or missing[2] or missing[3]:
            self._reported = _plus(self._reported, (missing[0], missing[1], missing[2], missing[3]))

    def _replace(self, result: Document) -> None:
        """Without increments the newest running total is all there is."""
        tokens, cost = _of_models(document_of(result.get("modelUsage")))
        if tokens == _NONE:
            tokens = _tokens(document_of(result.get("usage")), _STREAM_KEYS)
        total = money_of(result.get("total_cost_usd"))
        self._reported = msgspec.structs.replace(
            _plus(Usage(), _NONE, tokens),
            cost_usd=total if total is not None else cost or None,
            cumulative=True,  # of the whole conversation, where it was resumed
        )


def _tokens(usage: Document, keys: tuple[str, str, str, str]) -> _Tokens:
    return (
        count_of(usage.get(keys[0])),
        count_of(usage.get(keys[1])),
        count_of(usage.get(keys[2])),
        count_of(usage.get(keys[3])),
    )


def _of_models(models: Document) -> tuple[_Tokens, float]:
    tokens, cost = _NONE, 0.0
    for value in models.values():
        model = document_of(value)
        tokens = _sum(tokens, _tokens(model, _MODEL_KEYS))
        cost += money_of(model.get("costUSD")) or 0.0
    return tokens, cost


def _sum(one: _Tokens, other: _Tokens) -> _Tokens:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3]


def _largest(one: _Tokens, other: _Tokens) -> _Tokens:
    return (
        max(one[0], other[0]),
        max(one[1], other[1]),
        max(one[2], other[2]),
        max(one[3], other[3]),
    )


def _plus(usage: Usage, estimated: _Tokens, known: _Tokens = _NONE) -> Usage:
    """The usage with more tokens; those seen only in the stream mark it as an estimate."""
    more = _sum(estimated, known)
    if more == _NONE:
        return usage
    return msgspec.structs.replace(
        usage,
        input_tokens=usage.input_tokens + more[0],
        output_tokens=usage.output_tokens + more[1],
        cache_read_tokens=usage.cache_read_tokens + more[2],
        cache_write_tokens=usage.cache_write_tokens + more[3],
        estimated=usage.estimated or estimated != _NONE,
    )
