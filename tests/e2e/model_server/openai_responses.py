"""OpenAI Responses, as Codex speaks it.

Codex edits files by a command, `apply_patch` with a heredoc; so do our neutral tools.
"""

# What each method does stands in the protocol, `wire.Wire`.
# ruff: noqa: D102

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import ClassVar

from tests.e2e.model_server.openai_errors import openai_error
from tests.e2e.model_server.script import Failure, ToolUse, Turn, Usage
from tests.e2e.model_server.wire import (
    Json,
    Piece,
    Question,
    event,
    heredoc_patch,
    pieces_of,
    prefixed,
    sorted_out,
    texts_of,
)

_SPEAKERS = ("system", "developer", "user")


class OpenAIResponses:
    """`POST /v1/responses`."""

    name: ClassVar[str] = "responses"

    def question(self, path: str, body: Json) -> Question:
        items = [item for item in body.get("input", []) if isinstance(item, dict)]
        spoken = [(item["role"], _texts(item)) for item in items if item.get("role") in _SPEAKERS]
        system, prompts = sorted_out([("system", [str(body.get("instructions", ""))]), *spoken])
        return Question(
            model=str(body.get("model", "")),
            system=system,
            prompts=prompts,
            tools=tuple(str(t.get("name") or t.get("type")) for t in body.get("tools", [])),
            stream=bool(body.get("stream")),
        )

    def stream(self, turn: Turn, question: Question, number: int) -> Iterator[Piece]:
        response: Json = {"id": f"resp_scripted_{number:06}", "status": "in_progress"}
        yield Piece(_event("response.created", response=response))
        for index, item in enumerate(self._items(turn, number)):
            yield Piece(_event("response.output_item.added", output_index=index, item=item))
            for text in pieces_of(_text_of(item)):
                delta = {"item_id": item["id"], "output_index": index, "delta": text}
                yield Piece(_event("response.output_text.delta", content_index=0, **delta))
            yield Piece(_event("response.output_item.done", output_index=index, item=item))
        whole = self.whole(turn, question, number)
        yield Piece(_event("response.completed", response=whole), turn.usage)

    def whole(self, turn: Turn, question: Question, number: int) -> Json:
        return {
            "id": f"resp_scripted_{number:06}",
            "object": "response",
            "status": "completed",
            "model": question.model,
            "output": self._items(turn, number),
            "usage": _usage(turn.usage),
        }

    def side_answer(self, body: Json) -> str:
        return "ok"

    def failure(self, failure: Failure) -> Json:
        return openai_error(failure)

    def failure_event(self, failure: Failure, number: int) -> bytes:
        error = {"code": failure.kind or "server_error", "message": failure.message}
        response = {"id": f"resp_scripted_{number:06}", "status": "failed", "error": error}
        return _event("response.failed", response=response)

    def tool(self, call: ToolUse) -> ToolUse:
        commands = {"shell": _shell, "read": _read, "write": _write, "edit": _edit}
        if call.name not in commands:
            return call
        return ToolUse("exec_command", {"cmd": commands[call.name](call)})

    def _items(self, turn: Turn, number: int) -> list[Json]:
        items: list[Json] = []
        if turn.text:
            content = [{"type": "output_text", "text": turn.text, "annotations": []}]
            items.append({"type": "message", "role": "assistant", "content": content})
        for index, call in enumerate(turn.tools):
            known = self.tool(call)
            arguments = json.dumps(dict(known.arguments))
            called = {"type": "function_call", "call_id": f"call_scripted_{number:06}_{index}"}
            space, _, name = known.name.rpartition("__")  # a tool of an MCP server has a namespace
            called |= {"namespace": space} if space else {}
            items.append({**called, "name": name, "arguments": arguments})
        return [{"id": f"item_{number:06}_{n}", **item} for n, item in enumerate(items)]


def _texts(item: Json) -> list[str]:
    return texts_of(item.get("content"), "input_text")


def _text_of(item: Json) -> str:
    return str(item["content"][0]["text"]) if item["type"] == "message" else ""


def _shell(call: ToolUse) -> str:
    return str(call.arguments["command"])


def _read(call: ToolUse) -> str:
    return f"cat {shlex.quote(str(call.arguments['path']))}"


def _write(call: ToolUse) -> str:
    given = call.arguments
    return heredoc_patch(f"*** Add File: {given['path']}", *prefixed("+", str(given["content"])))


def _edit(call: ToolUse) -> str:
    given = call.arguments
    return heredoc_patch(
        f"*** Update File: {given['path']}",
        "@@",
        *prefixed("-", str(given["old"])),
        *prefixed("+", str(given["new"])),
    )


def _event(kind: str, **content: object) -> bytes:
    return event({"type": kind, **content}, kind)


def _usage(usage: Usage) -> Json:
    read = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + usage.output,
    }
