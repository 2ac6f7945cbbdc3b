"""Events as the CLIs print them, for tests that need one more than the recordings have."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from ralphloop.core.model import Response
from ralphloop.readers import read

NOW = datetime.fromtimestamp(1_794_775_000, UTC)
SESSION = "5f0f3a52-6d0e-4c0b-9a55-0c7d1f2e9b10"

TRUE_BLOCK = """---RALPH_STATUS---
STATUS: COMPLETE
TASKS_COMPLETED_THIS_LOOP: 1
FILES_MODIFIED: 3
TESTS_STATUS: PASSING
WORK_TYPE: IMPLEMENTATION
EXIT_SIGNAL: true
RECOMMENDATION: All requirements are met
---END_RALPH_STATUS---"""
FALSE_BLOCK = TRUE_BLOCK.replace("COMPLETE\n", "IN_PROGRESS\n", 1).replace("true", "false")


def lines(*events: dict[str, Any]) -> bytes:
    """JSON Lines."""
    return b"".join(json.dumps(event, ensure_ascii=False).encode() + b"\n" for event in events)


# --- claude ----------------------------------------------------------------------------------


def init(**more: Any) -> dict[str, Any]:
    """The first event of a turn."""
    return {"type": "system", "subtype": "init", "session_id": SESSION, "uuid": "u"} | more


def said(*blocks: dict[str, Any], message_id: str = "msg_1", **more: Any) -> dict[str, Any]:
    """An assistant event."""
    usage = {"input_tokens": 100, "output_tokens": 1}
    message = {"id": message_id, "model": "claude-opus-5-5", "content": blocks, "usage": usage}
    return {"type": "assistant", "message": message, "session_id": SESSION, "uuid": "u"} | more


def text(words: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words}


def tool_use(name: str, call_id: str = "toolu_1", **arguments: Any) -> dict[str, Any]:
    """A block that calls a tool."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def tool_result(
    content: str, call_id: str = "toolu_1", *, is_error: bool = False
) -> dict[str, Any]:
    """The user event that ends a call."""
    block = {
        "type": "tool_result",
        "tool_use_id": call_id,
        "content": content,
        "is_error": is_error,
    }
    return {"type": "user", "message": {"role": "user", "content": [block]}, "session_id": SESSION}


def result(words: str | None = "done", **more: Any) -> dict[str, Any]:
    """A result event; a good one unless told otherwise."""
    event = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "num_turns": 2,
        "terminal_reason": "completed",
        "session_id": SESSION,
        "total_cost_usd": 0.5,
        "permission_denials": [],
    }
    return event | ({} if words is None else {"result": words}) | more


def retry(error: str, status: int | None = None) -> dict[str, Any]:
    """A request is tried again."""
    return {
        "type": "system",
        "subtype": "api_retry",
        "attempt": 1,
        "max_retries": 10,
        "error_status": status,
        "error": error,
        "session_id": SESSION,
    }


def api_error(words: str, error: str, status: int | None = None, **more: Any) -> dict[str, Any]:
    """The synthetic message with which the CLI reports a failed request."""
    event = said(text(words), is_api_error_message=True, error=error, api_error_status=status)
    event["message"] |= {"model": "<synthetic>", "usage": {"input_tokens": 0}}
    return event | more


def read_claude(*events: dict[str, Any], exit_code: int = 0, stderr: str = "") -> Response:
    """Read these events as one start of Claude Code on the evening of 2026-11-15."""
    return read(lines(*events), agent="claude", exit_code=exit_code, stderr=stderr, now=NOW)


# --- the others ------------------------------------------------------------------------------


def item(kind: str, state: str = "completed", **more: Any) -> dict[str, Any]:
    """An item event of codex."""
    return {"type": f"item.{state}", "item": {"id": "item_1", "type": kind} | more}


def gemini(kind: str, **more: Any) -> dict[str, Any]:
    """An event of gemini."""
    return {"type": kind, "timestamp": "2026-11-15T20:39:11.132Z"} | more


def opencode(kind: str, session: str = "ses_1", **part: Any) -> dict[str, Any]:
    """An event of opencode with its part."""
    return {"type": kind, "sessionID": session, "part": part}
