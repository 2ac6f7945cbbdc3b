"""Anthropic Messages, as Claude Code speaks it."""

# What each method does stands in the protocol, `wire.Wire`.
# ruff: noqa: D102

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from tests.e2e.model_server.script import Failure, ToolUse, Turn, Usage
from tests.e2e.model_server.wire import (
    Json,
    Piece,
    Question,
    event,
    pieces_of,
    renamed,
    sorted_out,
    texts_of,
)

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_TOOLS = {"write": "Write", "edit": "Edit", "read": "Read", "shell": "Bash"}
_KEYS = {"path": "file_path", "old": "old_string", "new": "new_string"}


class Anthropic:
    """`POST /v1/messages`."""

    name: ClassVar[str] = "anthropic"

    def question(self, path: str, body: Json) -> Question:
        messages = [m for m in body.get("messages", []) if isinstance(m, dict)]
        spoken = [(str(m.get("role")), _texts(m)) for m in messages if not _is_machine(m)]
        system, prompts = sorted_out([("system", texts_of(body.get("system"), "text")), *spoken])
        return Question(
            model=str(body.get("model", "")),
            system=system,
            prompts=prompts,
            tools=tuple(str(tool.get("name", "")) for tool in body.get("tools", [])),
            stream=bool(body.get("stream")),
            side="count_tokens" in path or _is_side(body, prompts),
        )

    def stream(self, turn: Turn, question: Question, number: int) -> Iterator[Piece]:
        first = Usage(
            input=turn.usage.input,
            cache_read=turn.usage.cache_read,
            cache_write=turn.usage.cache_write,
            output=min(1, turn.usage.output),
        )
        message = {**self._message(question, number), "content": [], "usage": _usage(first)}
        yield Piece(_event("message_start", message=message), first)
        for index, block in enumerate(self._blocks(turn, number)):
            yield from _streamed(index, block)
        rest = Usage(output=turn.usage.output - first.output)
        final = {"stop_reason": _stop_reason(turn), "stop_sequence": None}
        yield Piece(_event("message_delta", delta=final, usage=_usage(turn.usage)), rest)
        yield Piece(_event("message_stop"))

    def whole(self, turn: Turn, question: Question, number: int) -> Json:
        return {
            **self._message(question, number),
            "content": self._blocks(turn, number),
            "stop_reason": _stop_reason(turn),
            "usage": _usage(turn.usage),
            "input_tokens": turn.usage.input,  # all that counting tokens asks for
        }

    def side_answer(self, body: Json) -> str:
        return "ok"

    def failure(self, failure: Failure) -> Json:
        kind = failure.kind or _KINDS.get(failure.status, "api_error")
        error = {"type": kind, "message": failure.message, **failure.extra}
        return {"type": "error", "error": error, "request_id": "req_scripted"}

    def failure_event(self, failure: Failure, number: int) -> bytes:
        return event(self.failure(failure), "error")

    def tool(self, call: ToolUse) -> ToolUse:
        known = renamed(call, _TOOLS, _KEYS)
        if known.name == "Bash":
            return replace(known, arguments={"description": "scripted", **known.arguments})
        return known

    def _message(self, question: Question, number: int) -> Json:
        return {
            "id": f"msg_scripted_{number:06}",
            "type": "message",
            "role": "assistant",
            "model": question.model,
            "stop_reason": None,
            "stop_sequence": None,
        }

    def _blocks(self, turn: Turn, number: int) -> list[Json]:
        blocks: list[Json] = [{"type": "text", "text": turn.text}] if turn.text else []
        for index, call in enumerate(turn.tools):
            known = self.tool(call)
            name = f"toolu_scripted_{number:06}_{index}"
            block = {"type": "tool_use", "id": name, "name": known.name}
            blocks.append({**block, "input": dict(known.arguments)})
        return blocks


def _is_side(body: Json, prompts: tuple[str, ...]) -> bool:
    """The quota probe of an interactive start, and what Claude Code 2.0 asks its small model."""
    small = "haiku" in str(body.get("model")) and not body.get("tools")
    return body.get("max_tokens") == 1 or small or prompts == ("Warmup",)


def _texts(message: Json) -> list[str]:
    return texts_of(message.get("content"), "text")


def _is_machine(message: Json) -> bool:
    """True for what neither user nor system say: answers and tool results."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    is_result = any(part.get("type") == "tool_result" for part in parts)
    return message.get("role") == "assistant" or is_result


def _streamed(index: int, block: Json) -> Iterator[Piece]:
    start: Json
    if block["type"] == "text":
        start = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces_of(block["text"])]
    else:
        start = {**block, "input": {}}
        parts = pieces_of(json.dumps(block["input"]))
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
    yield Piece(_event("content_block_start", index=index, content_block=start))
    for delta in deltas:
        yield Piece(_event("content_block_delta", index=index, delta=delta))
    yield Piece(_event("content_block_stop", index=index))


def _event(kind: str, **content: object) -> bytes:
    return event({"type": kind, **content}, kind)


def _stop_reason(turn: Turn) -> str:
    return "tool_use" if turn.tools else "end_turn"


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }
