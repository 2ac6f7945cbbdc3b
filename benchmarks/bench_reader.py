"""Reading throughput: our Claude reader against bare msgspec decoding of the same lines.

Two transcripts: one of whole messages and tool results, one of partial messages (many small
lines).  Reach: at least 100 MB/s, or half the speed of decoding alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import msgspec

from ralphloop.readers import reader_for

SIZE = 48 * 1024 * 1024
CHUNK = 64 * 1024
RUNS = 3


def messages(number: int) -> Iterator[dict[str, object]]:
    """One round trip: a thought, a tool call, its result."""
    session = "5f0f3a52-6d0e-4c0b-9a55-0c7d1f2e9b10"
    usage = {"input_tokens": 100, "cache_read_input_tokens": 20_000, "output_tokens": 1}

    def said(block: dict[str, object]) -> dict[str, object]:
        return {
            "type": "assistant",
            "message": {
                "id": f"msg_{number:024}",
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-5-5",
                "content": [block],
                "stop_reason": None,
                "usage": usage,
            },
            "parent_tool_use_id": None,
            "session_id": session,
            "uuid": f"00000000-0000-4000-8000-{number:012}",
        }

    yield said({"type": "text", "text": "The lease is taken in one statement now. " * 8})
    call = f"toolu_{number:024}"
    arguments = {"file_path": f"/srv/app/src/module_{number}.py"}
    yield said({"type": "tool_use", "id": call, "name": "Read", "input": arguments})
    content = "".join(f"{line}\tvalue = compute({line})\n" for line in range(120))
    yield {
        "type": "user",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": call, "content": content}],
        },
        "session_id": session,
        "tool_use_result": {"type": "text", "file": {"content": content, "numLines": 120}},
    }


def deltas(number: int) -> Iterator[dict[str, object]]:
    """A partial message: many lines of a few hundred bytes."""
    for index in range(40):
        yield {
            "type": "stream_event",
            "event": {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": f"piece {index} of the answer "},
            },
            "session_id": "5f0f3a52-6d0e-4c0b-9a55-0c7d1f2e9b10",
            "uuid": f"00000000-0000-4000-8000-{number:012}",
            "api_message_id": f"msg_{number:024}",
        }


def transcript(make: Callable[[int], Iterator[dict[str, object]]]) -> bytes:
    lines: list[bytes] = []
    size = number = 0
    while size < SIZE:
        for event in make(number):
            lines.append(json.dumps(event, separators=(",", ":")).encode())
            size += len(lines[-1]) + 1
        number += 1
    return b"\n".join(lines) + b"\n"


def best(action: Callable[[bytes], object], data: bytes) -> float:
    """Megabytes per second, best of a few runs."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        action(data)
        times.append(time.perf_counter() - start)
    return len(data) / min(times) / 1e6


def decode_all(data: bytes) -> None:
    for line in data.split(b"\n"):
        if line:
            msgspec.json.decode(line)


def read_all(data: bytes) -> None:
    reader = reader_for("claude")
    for start in range(0, len(data), CHUNK):
        reader.feed(data[start : start + CHUNK])
    reader.finish(exit_code=0)


def main() -> int:
    failed = False
    for name, make in (("messages", messages), ("partial messages", deltas)):
        data = transcript(make)
        decoding, reading = best(decode_all, data), best(read_all, data)
        reached = reading >= 100 or reading >= 0.5 * decoding
        failed = failed or not reached
        print(
            f"{name:17} read {reading:6.0f} MB/s   msgspec alone {decoding:6.0f} MB/s   "
            f"ratio {reading / decoding:.2f}   {'ok' if reached else 'TOO SLOW'}"
        )
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
