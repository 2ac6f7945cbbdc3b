"""Our side of ACP, the Agent Client Protocol: what we send, and how we answer what is asked.

One turn: initialize, a new session or the one that is gone on with, the prompt.  We offer neither
files nor terminals: an agent works with its own tools, in its own sandbox or ours.  A request for a
permission is answered by `agent.safety`, and every answer is a step that is written down:

- minimal: everything is allowed;
- moderate: everything but changing files outside of the workspace;
- strict: reading, searching and changing files inside of the workspace;
- a question, or a look at the repository: reading and searching.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from ralphloop.agents.base import AgentRequest
from ralphloop.config.model import Safety
from ralphloop.readers.acp import INITIALIZE, PROMPT, PROTOCOL, SESSION, Acp
from ralphloop.readers.values import Document, document_at, documents_at, text_at

_METHOD_NOT_FOUND = -32_601
_LOOKS = frozenset({"read", "search", "think"})
_CHANGES = frozenset({"edit", "delete", "move"})
_PATHS = ("path", "file_path", "filePath", "abs_path", "absolute_path")  # of what a tool is given


class _Permission(NamedTuple):
    allowed: bool
    why: str


class AcpClient:
    """Speaks with one agent, for one turn."""

    def __init__(self, request: AgentRequest) -> None:
        self._prompt = request.prompt
        self._cwd = request.cwd
        self._resume = request.resume
        self._safety: Safety = request.config.safety
        self._only_looks = request.reads_only or not request.tools

    def greeting(self) -> bytes:
        """What is said first."""
        offered = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        params = {
            "protocolVersion": PROTOCOL,
            "clientCapabilities": offered,
            "clientInfo": {"name": "ralph", "version": "1"},
        }
        return _request(INITIALIZE, "initialize", params)

    def replies(self, dialect: Acp) -> Iterator[bytes]:
        """Answers to everything the agent sent that waits for one."""
        waiting = dialect.waiting
        dialect.waiting = []
        for document in waiting:
            yield self._reply(document, dialect)

    def goodbye(self, dialect: Acp) -> bytes:
        """The wish that the turn be ended; empty where none has begun."""
        if not dialect.session_id or dialect.result_seen:
            return b""
        params = {"sessionId": dialect.session_id}
        return _line({"method": "session/cancel", "params": params})

    def _reply(self, document: Document, dialect: Acp) -> bytes:
        method = text_at(document, "method")
        number = document.get("id")
        if method == "session/request_permission":
            result = self._permission(document_at(document, "params"), dialect)
            return _line({"id": number, "result": result})
        if method:
            error = {"code": _METHOD_NOT_FOUND, "message": f"not offered: {method[:100]}"}
            return _line({"id": number, "error": error})
        if number == INITIALIZE:
            return self._session(dialect)
        prompt = [{"type": "text", "text": self._prompt}]
        session = dialect.session_id or self._resume
        return _request(PROMPT, "session/prompt", {"sessionId": session, "prompt": prompt})

    def _session(self, dialect: Acp) -> bytes:
        params: Document = {"cwd": str(self._cwd), "mcpServers": []}
        if self._resume and dialect.can_load:
            dialect.session_id = self._resume  # the answer does not repeat it
            return _request(SESSION, "session/load", {"sessionId": self._resume, **params})
        return _request(SESSION, "session/new", params)

    def _permission(self, params: Document, dialect: Acp) -> Document:
        call = dialect.told_of(document_at(params, "toolCall"))
        name = text_at(call, "title") or text_at(call, "kind") or "a tool"
        decided = self._decide(call)
        dialect.permission_asked(call)
        wanted = (
            ("allow_once", "allow_always") if decided.allowed else ("reject_once", "reject_always")
        )
        offered = {text_at(one, "kind"): one for one in documents_at(params, "options")}
        chosen = next((offered[kind] for kind in wanted if kind in offered), None)
        word = "allowed" if decided.allowed else "refused"
        dialect.step("permission", f"{name} {word}: {decided.why}", ok=decided.allowed)
        if not decided.allowed:
            dialect.refused(text_at(call, "toolCallId"), name)
        if chosen is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen.get("optionId")}}

    def _decide(self, call: Document) -> _Permission:
        kind = text_at(call, "kind")
        if self._only_looks:
            return _Permission(kind in _LOOKS, "it is only asked to look")
        if self._safety == "minimal":
            return _Permission(True, "safety is minimal")
        is_inside = all(self._is_inside(place) for place in self._places(call))
        is_change = any(text_at(one, "type") == "diff" for one in documents_at(call, "content"))
        if kind in _CHANGES or is_change:
            why = "inside the workspace" if is_inside else "outside of the workspace"
            return _Permission(is_inside, why)
        if self._safety == "moderate":
            return _Permission(True, "safety is moderate")
        return _Permission(kind in _LOOKS and is_inside, "safety is strict")

    def _places(self, call: Document) -> Iterator[str]:
        for place in documents_at(call, "locations"):
            yield text_at(place, "path")
        for change in documents_at(call, "content"):
            if path := text_at(change, "path"):
                yield path
        arguments = document_at(call, "rawInput")
        yield from filter(None, (text_at(arguments, key) for key in _PATHS))

    def _is_inside(self, place: str) -> bool:
        try:
            root = self._cwd.resolve()
            return (root / place).resolve().is_relative_to(root)
        except (OSError, ValueError, RuntimeError):  # no path at all, or links that go in circles
            return False


def _request(number: int, method: str, params: Document) -> bytes:
    return _line({"id": number, "method": method, "params": params})


def _line(message: Document) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n"
