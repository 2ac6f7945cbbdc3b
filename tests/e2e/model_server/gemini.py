"""Gemini's `generateContent` and `streamGenerateContent`, as the Gemini CLI speaks them."""

# What each method does stands in the protocol, `wire.Wire`.
# ruff: noqa: D102

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from tests.e2e.model_server.script import Failure, ToolUse, Turn, Usage
from tests.e2e.model_server.wire import Json, Piece, Question, event, pieces_of, renamed, sorted_out

_TOOLS = {
    "write": "write_file",
    "edit": "replace",
    "read": "read_file",
    "shell": "run_shell_command",
}
_KEYS = {"path": "file_path", "old": "old_string", "new": "new_string"}
_KINDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
_MODEL = re.compile(r"/models/([^:/]+):")


class Gemini:
    """`POST /v1beta/models/<model>:…`."""

    name: ClassVar[str] = "gemini"

    def question(self, path: str, body: Json) -> Question:
        found = _MODEL.search(path)
        contents = [item for item in body.get("contents", []) if isinstance(item, dict)]
        spoken = [("user", _texts(item)) for item in contents if item.get("role") == "user"]
        system, prompts = sorted_out(
            [("system", _texts(body.get("systemInstruction", {}))), *spoken]
        )
        return Question(
            model=found[1] if found else "",
            system=system,
            prompts=prompts,
            tools=tuple(_declared(body)),
            stream="streamGenerateContent" in path,
            # The router and its kind ask for an object of a given shape.
            side="countTokens" in path or "responseMimeType" in body.get("generationConfig", {}),
        )

    def stream(self, turn: Turn, question: Question, number: int) -> Iterator[Piece]:
        for text in pieces_of(turn.text):
            yield Piece(event(_answer(question, number, [{"text": text}])))
        if calls := self._calls(turn):
            yield Piece(event(_answer(question, number, calls)))
        yield Piece(event(_ended(turn, question, number, [{"text": ""}])), turn.usage)

    def whole(self, turn: Turn, question: Question, number: int) -> Json:
        parts: list[Json] = [{"text": turn.text}] if turn.text else []
        return _ended(turn, question, number, [*parts, *self._calls(turn)])

    def side_answer(self, body: Json) -> str:
        config = body.get("generationConfig", {})
        schema = config.get("responseJsonSchema") or config.get("responseSchema") or {}
        return json.dumps(_example(schema))

    def failure(self, failure: Failure) -> Json:
        kind = failure.kind or _KINDS.get(failure.status, "INTERNAL")
        error = {"code": failure.status, "message": failure.message, "status": kind}
        return {"error": {**error, **failure.extra}}

    def failure_event(self, failure: Failure, number: int) -> bytes:
        return event(self.failure(failure))

    def tool(self, call: ToolUse) -> ToolUse:
        known = renamed(call, _TOOLS, _KEYS)
        if known.name == "replace":
            return replace(known, arguments={"instruction": "scripted", **known.arguments})
        return known

    def _calls(self, turn: Turn) -> list[Json]:
        calls = [self.tool(call) for call in turn.tools]
        return [{"functionCall": {"name": c.name, "args": dict(c.arguments)}} for c in calls]


def _texts(content: Json) -> list[str]:
    return [part["text"] for part in content.get("parts", []) if part.get("text")]


def _declared(body: Json) -> Iterator[str]:
    for group in body.get("tools", []):
        for declaration in group.get("functionDeclarations", []):
            yield str(declaration.get("name", ""))


def _answer(question: Question, number: int, parts: list[Json]) -> Json:
    content = {"role": "model", "parts": parts}
    return {
        "candidates": [{"index": 0, "content": content}],
        "modelVersion": question.model,
        "responseId": f"scripted-{number:06}",
    }


def _ended(turn: Turn, question: Question, number: int, parts: list[Json]) -> Json:
    answer = _answer(question, number, parts)
    answer["candidates"][0]["finishReason"] = "STOP"
    return {**answer, "usageMetadata": _usage(turn.usage)}


def _example(schema: Json) -> Any:
    """The smallest value that a JSON schema allows."""
    if choices := schema.get("enum"):
        return choices[0]
    kind = str(schema.get("type", "object")).lower()
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: _example(value) for name, value in properties.items()}
    return {"array": [], "boolean": False, "number": 0, "integer": 0}.get(kind, "scripted")


def _usage(usage: Usage) -> Json:
    read = usage.input + usage.cache_read + usage.cache_write
    return {
        "promptTokenCount": read,
        "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": read + usage.output,
    }
