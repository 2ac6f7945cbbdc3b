"""How a scripted agent talks: in Claude's stream-json, or in plain text.

The stream-json events carry what the real ones carry as far as readers look at it, so that a
scripted run goes through the same code as a real one, cost and limits included.
"""

from __future__ import annotations

import sys
import time
import uuid
from datetime import UTC, datetime

import msgspec

from ralphloop.agents.script import UsageFields

_SENTENCES = {
    "authentication_failed": "Invalid API key · Please run /login",
    "billing_error": "Credit balance is too low",
    "model_not_found": "There's an issue with the selected model. It may not exist.",
}
_STATUS = {"authentication_failed": 401, "billing_error": 400, "model_not_found": 404}
_LIMIT_NAMES = {"five_hour": "5-hour", "seven_day": "weekly"}


def put(text: str) -> None:
    """Write to stdout at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def _limit_sentence(resets_at: int, kind: str) -> str:
    clock = datetime.fromtimestamp(resets_at, UTC).strftime("%I:%M%p").lstrip("0").lower()
    return f"You've hit your {_LIMIT_NAMES.get(kind, kind)} limit · resets {clock} (UTC)"


class Voice:
    """All that a scripted agent can express, in plain text, as simple programs print it."""

    def begin(self) -> None:
        """Text has no beginning."""

    def say(self, text: str) -> None:
        put(text.rstrip("\n") + "\n")

    def tool(self, name: str, call: dict[str, object], output: str, *, ok: bool) -> None:
        """Text does not show tools."""

    def deny(self, tool: str) -> None:
        put(f"{tool}: permission denied\n")

    def pay(self, usage: UsageFields) -> None:
        """Text has no price."""

    def result(self) -> None:
        """Text simply ends."""

    def interrupted(self) -> int:
        return 130

    def usage_limit(self, resets_at: int, kind: str) -> None:
        put(_limit_sentence(resets_at, kind) + "\n")

    def transient(self, status: int) -> None:
        put(f"API Error: {status} the service is overloaded\n")

    def fatal(self, error: str) -> None:
        put(_SENTENCES[error] + "\n")


class ClaudeVoice(Voice):
    """The same in one JSON event a line."""

    def __init__(self, session_id: str) -> None:
        self._session = session_id
        self._last_words = ""
        self._turns = 0
        self._input = self._output = 0
        self._cost = 0.0
        self._denials: list[dict[str, object]] = []
        self._began = time.monotonic()

    def begin(self) -> None:
        self._event("system", subtype="init", model="scripted", cwd=".", tools=["Bash", "Write"])

    def say(self, text: str) -> None:
        self._last_words = text
        self._assistant([{"type": "text", "text": text}])

    def tool(self, name: str, call: dict[str, object], output: str, *, ok: bool) -> None:
        tool_id = f"toolu_{uuid.uuid4().hex[:20]}"
        self._assistant([{"type": "tool_use", "id": tool_id, "name": name, "input": call}])
        result = {"type": "tool_result", "tool_use_id": tool_id, "content": output}
        message = {"role": "user", "content": [{**result, "is_error": not ok}]}
        self._event("user", message=message, parent_tool_use_id=None)

    def deny(self, tool: str) -> None:
        self._denials.append({"tool_name": tool, "tool_use_id": uuid.uuid4().hex, "tool_input": {}})
        self.tool(tool, {}, "Permission to use this tool has been denied.", ok=False)

    def pay(self, usage: UsageFields) -> None:
        self._input += usage.input_tokens
        self._output += usage.output_tokens
        self._cost += usage.cost_usd

    def result(self) -> None:
        self._result("success", "completed", is_error=False, result=self._last_words)

    def interrupted(self) -> int:
        self._result("error_during_execution", "aborted_streaming", is_error=True)
        return 0

    def usage_limit(self, resets_at: int, kind: str) -> None:
        info = {"status": "rejected", "resetsAt": resets_at, "rateLimitType": kind}
        self._event("rate_limit_event", rate_limit_info=info)
        words = _limit_sentence(resets_at, kind)
        self._api_error(words, "rate_limit", 429, api_error="usage_limit_reached")

    def transient(self, status: int) -> None:
        error = "overloaded" if status == 529 else "server_error"
        self._retry(error, status)
        self._api_error(f"API Error: {status} the service is overloaded", error, status)

    def fatal(self, error: str) -> None:
        self._retry(error, _STATUS[error])
        self._api_error(_SENTENCES[error], error, _STATUS[error])

    # --- events ---

    def _event(self, kind: str, **fields: object) -> None:
        event = {"type": kind, **fields, "session_id": self._session, "uuid": str(uuid.uuid4())}
        put(msgspec.json.encode(event).decode() + "\n")

    def _assistant(self, content: list[dict[str, object]]) -> None:
        self._turns += 1
        self._message("scripted", content)

    def _message(self, model: str, content: list[dict[str, object]], **fields: object) -> None:
        message = {
            "id": f"msg_{uuid.uuid4().hex[:20]}",
            "role": "assistant",
            "model": model,
            "content": content,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        self._event("assistant", message=message, parent_tool_use_id=None, **fields)

    def _retry(self, error: str, status: int) -> None:
        self._event(
            "system", subtype="api_retry", attempt=1, max_retries=1, retry_delay_ms=1,
            error_status=status, error=error,
        )  # fmt: skip

    def _api_error(self, words: str, error: str, status: int, api_error: str | None = None) -> None:
        failure: dict[str, object] = {"api_error_status": status}
        if api_error:
            failure["api_error"] = api_error
        words_said: list[dict[str, object]] = [{"type": "text", "text": words}]
        self._message("<synthetic>", words_said, error=error, is_api_error_message=True, **failure)
        self._result("success", "api_error", is_error=True, result=words, **failure)

    def _result(self, subtype: str, reason: str, *, is_error: bool, **fields: object) -> None:
        usage = {"input_tokens": self._input, "output_tokens": self._output}
        self._event(
            "result",
            subtype=subtype,
            is_error=is_error,
            terminal_reason=reason,
            num_turns=self._turns,
            duration_ms=int((time.monotonic() - self._began) * 1000),
            total_cost_usd=self._cost,
            usage=usage,
            permission_denials=self._denials,
            **fields,
        )
