"""Tool calls and refusals as an agent reports them, bounded.

Calls and their results come as separate events tied by an id; calls may overlap.  Only the last
calls are kept, their number is not lost.
"""

from __future__ import annotations

from ralphloop.core.model import AgentEvent, Denial, ToolCall
from ralphloop.readers.values import Document, brief, documents_of, text_of

MAX_CALLS = 50
MAX_DENIALS = 100
_SUMMARY = 160
_ID = 200

# The argument that says most about a call, best first; names differ between the CLIs.
_TELLING = (
    *("file_path", "filePath", "notebook_path", "command", "cmd", "pattern", "path", "query"),
    *("url", "skill", "description", "prompt", "tool", "name"),
)


def summarise(arguments: Document) -> str:
    """The one argument a person wants to see: file, command or pattern."""
    for key in _TELLING:
        if value := text_of(arguments.get(key)):
            return brief(value, _SUMMARY)
    changed = [text_of(change.get("path")) for change in documents_of(arguments.get("changes"))]
    return brief(", ".join(filter(None, changed[:5])), _SUMMARY)


class ToolLog:
    """The last tool calls, and how many there were."""

    def __init__(self) -> None:
        self.count = 0
        self._calls: dict[str, ToolCall] = {}

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(self._calls.values())

    def knows(self, call_id: str) -> bool:
        return call_id[:_ID] in self._calls

    def name_of(self, call_id: str) -> str:
        call = self._calls.get(call_id[:_ID])
        return call.name if call else ""

    def summary_of(self, call_id: str) -> str:
        call = self._calls.get(call_id[:_ID])
        return call.summary if call else ""

    def start(self, call_id: str, name: str, arguments: Document) -> AgentEvent:
        """Note that a call was made."""
        self.count += 1
        name, summary = brief(name, 80), summarise(arguments)
        self._calls[call_id[:_ID] or f"#{self.count}"] = ToolCall(name=name, summary=summary)
        if len(self._calls) > MAX_CALLS:
            del self._calls[next(iter(self._calls))]
        return AgentEvent(kind="tool", summary=brief(f"{name} {summary}"))

    def finish(self, call_id: str, *, ok: bool) -> AgentEvent | None:
        """Note how a call ended; None if it is not known (any more)."""
        call = self._calls.get(call_id[:_ID])
        if call is None:
            return None
        self._calls[call_id[:_ID]] = ToolCall(name=call.name, summary=call.summary, ok=ok)
        return AgentEvent(kind="tool_result", summary=call.name, ok=ok)


class Denials:
    """Refused calls, each counted once however often it is reported."""

    def __init__(self) -> None:
        self._denials: dict[str, Denial] = {}

    def __bool__(self) -> bool:
        return bool(self._denials)

    @property
    def all(self) -> tuple[Denial, ...]:
        return tuple(self._denials.values())

    def add(self, call_id: str, tool: str, summary: str) -> None:
        """Note a refusal; a later report of the same call may add what the first lacked."""
        key = call_id[:_ID] or f"#{len(self._denials)}"
        known = self._denials.get(key)
        if known is not None and known.summary:
            return
        if known is not None or len(self._denials) < MAX_DENIALS:
            denial = Denial(tool=brief(tool, 80), summary=brief(summary, _SUMMARY))
            self._denials[key] = denial

    def sentence(self) -> str:
        """How many calls of which tools were refused."""
        names = sorted({denial.tool for denial in self._denials.values() if denial.tool})
        calls = (
            "1 tool call was"
            if len(self._denials) == 1
            else f"{len(self._denials)} tool calls were"
        )
        return brief(f"{calls} refused: {', '.join(names)}" if names else f"{calls} refused")
