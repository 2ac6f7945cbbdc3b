"""What holds for any bytes: no exception, no dependence on chunking, linear time, flat memory."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ralphloop.readers import NAMES, read, reader_for
from tests.agents.events import NOW, TRUE_BLOCK, init, item, lines, opencode, result, said, text
from tests.agents.test_recordings import reader_of

RECORDED = sorted((Path(__file__).parent / "recordings").rglob("stdout"))
AGENTS = st.sampled_from(NAMES)
CODES = st.sampled_from([0, 1, 2, 41, 53, 127, 143, 145, 173, -9, -15, None])
KEYS = st.sampled_from(
    "type subtype message content text item part state error usage event result status role id "
    "session_id sessionID is_error tool_use_id name input model rate_limit_info resetsAt stats "
    "modelUsage errors permission_denials tokens cache reason delta tool_name terminal_reason".split()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)
KINDS = st.sampled_from(
    "system assistant user result stream_event rate_limit_event init message tool_use tool_result "
    "error text step_start step_finish item.completed item.started thread.started turn.started "
    "turn.completed turn.failed".split()
)


@given(st.binary(max_size=2_000), AGENTS, CODES, st.text(max_size=200))
def test_no_bytes_raise(data: bytes, agent: str, code: int | None, stderr: str) -> None:
    """Arbitrary bytes give a response."""
    got = read(data, agent=agent, exit_code=code, stderr=stderr, now=NOW)
    assert got.outcome
    json.dumps([got.text, got.final_text, got.reason])


@given(
    st.lists(st.tuples(KINDS, st.dictionaries(KEYS, JSON, max_size=8)), max_size=8), AGENTS, CODES
)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_no_events_raise(
    events: list[tuple[str, dict[str, object]]], agent: str, code: int | None
) -> None:
    """Known event types with fields of any shape give a response."""
    data = lines(*({"type": kind} | fields for kind, fields in events))
    assert read(data, agent=agent, exit_code=code, now=NOW).outcome


ODD: tuple[object, ...] = (
    None,
    True,
    -1,
    1e308,
    10**30,
    "",
    [],
    {},
    [None],
    {"type": 5},
    "<synthetic>",
    [[[]]],
)


def twisted(value: object, chance: Random) -> object:
    """The same JSON with a few fields of another type, and a few missing."""
    if chance.random() < 0.04:
        return chance.choice(ODD)
    if isinstance(value, dict):
        kept = [(key, field) for key, field in value.items() if chance.random() > 0.02]
        return {key: twisted(field, chance) for key, field in kept}
    if isinstance(value, list):
        return [twisted(inner, chance) for inner in value]
    return value


def twisted_line(line: bytes, chance: Random) -> bytes:
    """A line of a recording, its fields twisted if it is JSON."""
    try:
        return json.dumps(twisted(json.loads(line), chance)).encode()
    except ValueError:
        return line


@given(st.sampled_from(RECORDED), st.integers(0), CODES)
def test_twisted_recordings_are_read(path: Path, seed: int, code: int | None) -> None:
    """Real events with fields of the wrong type give a response, and short visible steps."""
    chance = Random(seed)
    output = [twisted_line(line, chance) for line in path.read_bytes()[:40_000].split(b"\n")]
    reader = reader_for(reader_of(path.parent.parent.name))
    for line in output:
        for step in reader.feed(line + b"\n"):
            assert len(step.summary) <= 200
            assert "\n" not in step.summary
    assert reader.finish(exit_code=code, now=NOW).outcome


@given(st.sampled_from(RECORDED), st.data())
def test_damaged_recordings_are_read(path: Path, data: st.DataObject) -> None:
    """A real output with a piece cut out, repeated or overwritten gives a response."""
    output = path.read_bytes()[:20_000]
    start = data.draw(st.integers(0, len(output)))
    end = data.draw(st.integers(start, len(output)))
    filling = data.draw(st.sampled_from([b"", b"\n", b"\xff\x00", output[start:end] * 2]))
    damaged = output[:start] + filling + output[end:]
    assert read(damaged, agent=reader_of(path.parent.parent.name), exit_code=1, now=NOW).outcome


@given(st.sampled_from(RECORDED), st.lists(st.integers(1, 5_000), min_size=1, max_size=20))
def test_chunks_do_not_matter(path: Path, sizes: list[int]) -> None:
    """Cut anywhere, the same bytes give the same response."""
    output, agent = path.read_bytes()[:20_000], reader_of(path.parent.parent.name)
    reader = reader_for(agent)
    position = number = 0
    while position < len(output):
        size = sizes[number % len(sizes)]
        reader.feed(output[position : position + size])
        position, number = position + size, number + 1
    assert reader.finish(exit_code=0) == read(output, agent=agent, exit_code=0)


# --- time ------------------------------------------------------------------------------------


def one_line(size: int) -> bytes:
    """One assistant line of the given size."""
    return lines(init(), said(text("x" * size)), result())


def many_blocks(size: int) -> bytes:
    """Nothing but status blocks."""
    return lines(init(), said(text(f"{TRUE_BLOCK}\n" * (size // len(TRUE_BLOCK)))), result())


def deep(size: int) -> bytes:
    """Nested brackets that never close, line after line."""
    return (b'{"a":' + b"[" * 50_000 + b"\n") * (size // 50_000 + 1)


def unclosed_objects(size: int) -> bytes:
    """Objects that are opened and closed at the wrong depth."""
    return b'{"a": {\n}\n' * (size // 10)


def open_array(size: int) -> bytes:
    """An array that is closed again and again without being complete."""
    return b"[{\n" + b"]\n" * (size // 2)


def fences(size: int) -> bytes:
    """Code fences that never close."""
    return b'```\n{"type":"x"}\n' * (size // 18)


def tiny_deltas(size: int) -> bytes:
    """An answer of single letters."""
    piece = lines({"type": "message", "role": "assistant", "content": "x", "delta": True})
    return piece * (size // len(piece))


def escapes(size: int) -> bytes:
    """A line of lone surrogates."""
    return lines(init()) + b'{"type":"x","y":"' + rb"\ud83d" * (size // 6) + b'"}\n'


def bytes_that_are_no_text(size: int) -> bytes:
    """Invalid UTF-8 in one line."""
    return b"\xff\xfe" * (size // 2)


def empty_lines(size: int) -> bytes:
    """Nothing, many times."""
    return b"\n" * size


HOSTILE: list[tuple[str, Callable[[int], bytes]]] = [
    ("claude", one_line),
    ("claude", many_blocks),
    ("claude", deep),
    ("auto", unclosed_objects),
    ("auto", open_array),
    ("auto", fences),
    ("gemini", tiny_deltas),
    ("claude", escapes),
    ("text", bytes_that_are_no_text),
    ("auto", empty_lines),
]


def cpu_time(agent: str, data: bytes) -> float:
    """The lesser CPU time of two readings, in pieces of 64 KiB."""
    times = []
    for _ in range(2):
        reader, start = reader_for(agent), time.process_time()
        for position in range(0, len(data), 1 << 16):
            reader.feed(data[position : position + (1 << 16)])
        reader.finish(exit_code=0)
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("agent, make", HOSTILE, ids=[make.__name__ for _, make in HOSTILE])
def test_time_grows_with_the_size_and_not_faster(agent: str, make: Callable[[int], bytes]) -> None:
    """Four times the hostile output takes about four times as long."""
    small, large = make(150_000), make(600_000)
    assert cpu_time(agent, large) <= 10 * cpu_time(agent, small) + 0.05


# --- memory ----------------------------------------------------------------------------------


def endless_text() -> Iterator[bytes]:
    """Plain lines."""
    yield from [b"a line of an answer like any other\n" * 1_900] * 120


def endless_line() -> Iterator[bytes]:
    """One line of text."""
    yield from [b"x" * 65_536] * 120


def endless_messages() -> Iterator[bytes]:
    """Messages and calls of one turn."""
    yield lines(init())
    event = lines(said(text("words " * 100)), said({"type": "tool_use", "id": "t", "name": "Read"}))
    yield from [event * 50] * 120


def endless_items() -> Iterator[bytes]:
    """Items of codex with ever new ids."""
    for number in range(20_000):
        yield lines(item("command_execution", "started", id=f"item_{number}", command="ls " * 100))


def endless_steps() -> Iterator[bytes]:
    """Steps of opencode."""
    yield from [lines(opencode("text", text="words " * 1_000))] * 1_000


@pytest.mark.parametrize(
    "agent, make",
    [
        ("auto", endless_text),
        ("claude", endless_line),
        ("claude", endless_messages),
        ("codex", endless_items),
        ("opencode", endless_steps),
        ("text", endless_text),
    ],
    ids=["auto", "one line", "claude", "codex", "opencode", "text"],
)
def test_memory_is_flat(agent: str, make: Callable[[], Iterator[bytes]]) -> None:
    """After the buffers are full, more output needs no more memory."""
    reader = reader_for(agent)
    tracemalloc.start()
    try:
        for chunk in make():
            reader.feed(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6_000_000
    assert len(reader.finish(exit_code=0).text) < 300_000
