"""What a session spends, from its transcript: nothing else in a hook names tokens.

The transcript may lag behind and holds no subagents, so the numbers are an estimate and are marked
as one.  Only what was written since the last turn is read.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ralphloop.core.model import Usage
from ralphloop.hook.carried import Call, Turn
from ralphloop.readers.claude_usage import ClaudeUsage

_MOST_BYTES = 64 << 20
_MARK = b'"usage"'


def count_usage(call: Call, turn: Turn) -> tuple[Usage, str]:
    """Tokens and dollars since the last turn, and the model they went to."""
    lines, end = _new_lines(call.text("transcript_path"), turn.ledger.transcript_read)
    turn.note(transcript_read=end)
    counted, model = ClaudeUsage(), ""
    for line in lines:
        message = _message(line)
        usage = message.get("usage")
        if isinstance(usage, dict):
            counted.streamed(str(message.get("id", "")), usage)
            model = str(message.get("model", "")) or model
    if not model:
        return Usage(), ""
    from ralphloop.agents.prices import priced

    return priced(counted.value, model), model


def _new_lines(path: str, start: int) -> tuple[list[bytes], int]:
    """The whole lines after `start`, and where they end; a shorter file was written anew."""
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, 2)
            start = start if start <= size else 0
            file.seek(max(start, size - _MOST_BYTES))
            data = file.read(_MOST_BYTES)
            end = file.tell()
    except (OSError, ValueError):
        return [], start
    whole = data.rfind(b"\n") + 1
    return data[:whole].splitlines(), end - (len(data) - whole)


def _message(line: bytes) -> dict[str, object]:
    if _MARK not in line:
        return {}
    try:
        event = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return {}
    if not isinstance(event, dict) or event.get("type") != "assistant":
        return {}
    message = event.get("message")
    return message if isinstance(message, dict) else {}
