"""What the wire formats of the providers have in common.

A wire reads a request into a `Question` and turns a turn of the script into the pieces of an
answer.  Each piece says how many tokens it states, so that an answer that breaks in the middle
bills exactly what the client was told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol

from tests.e2e.model_server.script import Failure, ToolUse, Turn, Usage

Json = dict[str, Any]

_NOTES = ("<system-reminder>", "<environment_context>", "<session_context>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a request asks for."""

    model: str
    system: str = ""
    prompts: tuple[str, ...] = ()  # what the user said, oldest first; no tool results
    tools: tuple[str, ...] = ()  # offered to the model
    stream: bool = True
    side: bool = False  # a call of the CLI's own, beside the conversation


class Piece(NamedTuple):
    """Some bytes of an answer and the tokens they state."""

    data: bytes
    usage: Usage = Usage()


class Wire(Protocol):
    """One provider's format."""

    name: ClassVar[str]

    def question(self, path: str, body: Json) -> Question:
        """What the request asks for."""

    def stream(self, turn: Turn, question: Question, number: int) -> Iterator[Piece]:
        """The answer as server-sent events."""

    def whole(self, turn: Turn, question: Question, number: int) -> Json:
        """The answer in one object."""

    def side_answer(self, body: Json) -> str:
        """What to say to a call of the CLI's own."""

    def failure(self, failure: Failure) -> Json:
        """The body of an error."""

    def failure_event(self, failure: Failure, number: int) -> bytes:
        """An error inside the stream."""

    def tool(self, call: ToolUse) -> ToolUse:
        """A neutral call as the CLI on this wire knows it."""


def event(data: Json, name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def pieces_of(text: str) -> list[str]:
    """A text in at least three pieces, none of them long, as a model streams it."""
    size = max(1, min(2_000, -(-len(text) // 3)))
    return [text[start : start + size] for start in range(0, len(text), size)]


def texts_of(content: object, *kinds: str) -> list[str]:
    """The texts of a message whose content is a string or a list of parts."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    parts = [part for part in content if isinstance(part, dict)]
    return [str(part.get("text", "")) for part in parts if part.get("type") in kinds]


def sorted_out(messages: Iterable[tuple[str, Sequence[str]]]) -> tuple[str, tuple[str, ...]]:
    """The system's text and the user's messages, from messages by role.

    What a CLI itself tells the model in the user's name belongs to the system.
    """
    system: list[str] = []
    prompts: list[str] = []
    for role, texts in messages:
        notes = [text for text in texts if text.startswith(_NOTES)] if role == "user" else texts
        system += notes
        if own := [text for text in texts if text not in notes]:
            prompts.append("\n".join(own))
    return "\n".join(system), tuple(prompts)


def heredoc_patch(*lines: str) -> str:
    """The command by which codex edits files."""
    body = "\n".join(("*** Begin Patch", *lines, "*** End Patch"))
    return f"apply_patch <<'EOF'\n{body}\nEOF\n"


def prefixed(mark: str, text: str) -> Sequence[str]:
    """Every line of a text with a mark before it."""
    return [mark + line for line in text.removesuffix("\n").split("\n")]


def renamed(call: ToolUse, names: dict[str, str], keys: dict[str, str]) -> ToolUse:
    """A call with other names for the tool and its arguments; unknown tools stay as they are."""
    if call.name not in names:
        return call
    arguments = {keys.get(key, key): value for key, value in call.arguments.items()}
    return replace(call, name=names[call.name], arguments=arguments)
