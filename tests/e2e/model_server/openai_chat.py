"""OpenAI Chat Completions, as opencode speaks it."""

# What each method does stands in the protocol, `wire.Wire`.
# ruff: noqa: D102

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from tests.e2e.model_server.openai_errors import openai_error
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

_TOOLS = {"write": "write", "edit": "edit", "read": "read", "shell": "bash"}
_SPEAKERS = ("system", "user")
_KEYS = {"path": "filePath", "old": "oldString", "new": "newString"}
# How other CLIs name the tool that writes a whole file: the first that a request offers is meant.
_WRITERS: dict[str, dict[str, str]] = {
    "write_file": {"path": "file_path", "content": "content"},  # Qwen Code
    "create": {"path": "path", "content": "file_text"},  # Copilot
    "Create": {"path": "file_path", "content": "content"},  # droid
    "editor": {"path": "path", "content": "new_text"},  # Cline
    "Write": {"path": "filepath", "content": "content"},  # cn
}
_SHELLS: dict[str, Json] = {
    "run_shell_command": {"is_background": False},
    "bash": {"description": "scripted"},
    "Execute": {"summary": "scripted", "riskLevel": "low", "riskLevelReason": "scripted"},
    "Bash": {},
}


class OpenAIChat:
    """`POST /v1/chat/completions`."""

    name: ClassVar[str] = "chat"

    def question(self, path: str, body: Json) -> Question:
        messages = [m for m in body.get("messages", []) if isinstance(m, dict)]
        spoken = [(m["role"], _texts(m)) for m in messages if m.get("role") in _SPEAKERS]
        system, prompts = sorted_out(spoken)
        tools = tuple(str(t.get("function", {}).get("name", "")) for t in body.get("tools") or [])
        return Question(
            model=str(body.get("model", "")),
            system=system,
            prompts=prompts,
            tools=tools,
            stream=bool(body.get("stream")),
            # Beside the conversation opencode asks for its title, without offering tools.
            side=not tools and "title" in system,
        )

    def stream(self, turn: Turn, question: Question, number: int) -> Iterator[Piece]:
        yield Piece(_chunk(question, number, {"role": "assistant", "content": ""}))
        for text in pieces_of(turn.text):
            yield Piece(_chunk(question, number, {"content": text}))
        for index, call in enumerate(self._calls(turn, number, question)):
            yield Piece(_chunk(question, number, {"tool_calls": [{"index": index, **call}]}))
        yield Piece(_chunk(question, number, {}, finish=_finish(turn)))
        last = {**_head(question, number), "choices": [], "usage": _usage(turn.usage)}
        yield Piece(event(last), turn.usage)
        yield Piece(b"data: [DONE]\n\n")

    def whole(self, turn: Turn, question: Question, number: int) -> Json:
        message: Json = {"role": "assistant", "content": turn.text or None}
        if turn.tools:
            message["tool_calls"] = self._calls(turn, number, question)
        choice = {"index": 0, "message": message, "finish_reason": _finish(turn)}
        head = {**_head(question, number), "object": "chat.completion"}
        return {**head, "choices": [choice], "usage": _usage(turn.usage)}

    def side_answer(self, body: Json) -> str:
        return "Scripted conversation"

    def failure(self, failure: Failure) -> Json:
        return openai_error(failure)

    def failure_event(self, failure: Failure, number: int) -> bytes:
        return event(openai_error(failure))

    def tool(self, call: ToolUse) -> ToolUse:
        known = renamed(call, _TOOLS, _KEYS)
        if known.name == "bash":
            return replace(known, arguments={"description": "scripted", **known.arguments})
        return known

    def _calls(self, turn: Turn, number: int, question: Question) -> list[Json]:
        calls = []
        for index, call in enumerate(turn.tools):
            known = _as_offered(call, question.tools) or self.tool(call)
            function = {"name": known.name, "arguments": json.dumps(dict(known.arguments))}
            name = f"call_scripted_{number:06}_{index}"
            calls.append({"id": name, "type": "function", "function": function})
        return calls


def _as_offered(call: ToolUse, offered: Sequence[str]) -> ToolUse | None:
    """The call by the name and the keys of a tool that this CLI offers; None: as opencode's."""
    if "write" in offered and "shell" in offered:
        return ToolUse(call.name, call.arguments)  # goose's are called as ours
    if "write" in offered:
        return None
    if call.name == "write" and "file_editor" in offered:  # OpenHands
        told = {"path": call.arguments["path"], "file_text": call.arguments["content"]}
        return ToolUse("file_editor", {"command": "create", "security_risk": "LOW", **told})
    if call.name == "write":
        for name, keys in _WRITERS.items():
            if name in offered:
                return ToolUse(name, {keys[key]: value for key, value in call.arguments.items()})
    if call.name == "shell":
        for name, more in _SHELLS.items():
            if name in offered:
                return ToolUse(name, {**more, **call.arguments})
    return None


def _texts(message: Json) -> list[str]:
    return texts_of(message.get("content"), "text")


def _head(question: Question, number: int) -> Json:
    return {
        "id": f"chatcmpl-scripted-{number:06}",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": question.model,
    }


def _chunk(question: Question, number: int, delta: Json, *, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({**_head(question, number), "choices": [choice]})


def _finish(turn: Turn) -> str:
    return "tool_calls" if turn.tools else "stop"


def _usage(usage: Usage) -> Json:
    read = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": read,
        "completion_tokens": usage.output,
        "total_tokens": read + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }
