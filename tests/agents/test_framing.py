"""Finding documents in noise, and giving up on broken ones without losing the rest."""

from __future__ import annotations

import json

import pytest

from ralphloop.core.model import Outcome
from ralphloop.readers import read
from tests.agents.events import FALSE_BLOCK, TRUE_BLOCK, init, item, lines, result, said, text

ANSWER = f"Wired it up.\n\n{FALSE_BLOCK}"
RESULT = result(ANSWER)
STREAM = (init(), said(text(ANSWER)), RESULT)


@pytest.mark.parametrize(
    "output",
    [
        b"(node:4242) [DEP0040] DeprecationWarning: `punycode` is deprecated.\n" + lines(RESULT),
        lines(RESULT) + b"Failed to export 3 events\n",
        b"\n\n  \n" + lines(RESULT),
        b"\xef\xbb\xbf" + lines(RESULT),
        lines(RESULT).replace(b"\n", b"\r\n"),
        lines(RESULT).rstrip(),
        b"  " + lines(RESULT),
        json.dumps(RESULT, indent=2).encode(),
        b"warning: x\n" + json.dumps(RESULT, indent="\t").encode() + b"\nbye\n",
        json.dumps(RESULT, indent=2).replace("\n", "\r\n").encode(),
        json.dumps(STREAM).encode(),
        json.dumps(STREAM, indent=2).encode(),
        b"[\n" + b",\n".join(lines(event).rstrip() for event in STREAM) + b"\n]\n",
        lines(STREAM[0]) + b"\n[debug] hook ran in 12 ms\n{not json}\n" + lines(*STREAM[1:]),
        b"[1, 2]\n[]\n{}\n" + lines(*STREAM),
    ],
    ids=[
        *("node warning", "trailing line", "blank lines", "byte order mark", "crlf", "no newline"),
        *("indented", "pretty", "pretty in noise", "pretty crlf", "array", "pretty array"),
        *("array by lines", "banner", "foreign json"),
    ],
)
@pytest.mark.parametrize("agent", ["claude", "auto"])
def test_the_answer_is_found_in_any_dress(output: bytes, agent: str) -> None:
    """Noise around, before and between documents does not hide them."""
    got = read(output, agent=agent)
    assert got.reader == "claude"
    assert got.outcome is Outcome.COMPLETED
    assert got.final_text == ANSWER
    assert got.status is not None
    assert got.status_is_final


def test_arrays_are_told_from_lines() -> None:
    """The array of `json --verbose` is its own format."""
    assert read(json.dumps(STREAM).encode()).format == "json_array"
    assert read(lines(*STREAM)).format == "jsonl"
    assert read(json.dumps(RESULT, indent=2).encode()).format == "json"


def test_an_event_injected_into_a_line_costs_that_line_only() -> None:
    """Two writers on one pipe make one line unreadable; it is skipped, with a warning."""
    whole = lines(said(text("lost words")))
    torn = whole[:60] + lines({"type": "rate_limit_event"}) + whole[60:]
    got = read(lines(init()) + torn + lines(*STREAM[1:]), agent="claude")
    assert got.final_text == ANSWER
    assert any("malformed" in warning for warning in got.warnings)


def test_a_stream_cut_in_mid_line_keeps_its_whole_lines() -> None:
    """What came before the cut is read; there is no result, so nothing is final."""
    output = lines(init(), said(text(TRUE_BLOCK))) + lines(result(TRUE_BLOCK))[:-60]
    got = read(output, agent="claude", exit_code=143)
    assert got.outcome is Outcome.KILLED
    assert got.text == TRUE_BLOCK
    assert not got.status_is_final
    assert any("malformed" in warning for warning in got.warnings)


@pytest.mark.parametrize("agent", ["claude", "auto", "gemini"])
def test_a_cut_object_is_text_without_a_claim(agent: str) -> None:
    """A single object cut short says nothing: no signal, not completed, and a warning."""
    got = read(lines(result(f"Project complete.\n{TRUE_BLOCK}"))[:-60], agent=agent)
    assert got.outcome is Outcome.ERROR
    assert got.final_text is None
    assert not got.status_is_final
    assert got.format == "text"
    assert any("malformed" in warning for warning in got.warnings)


def test_a_cut_array_keeps_the_lines_that_are_whole() -> None:
    """An array printed line by line is saved up to the cut."""
    output = b"[\n" + b",\n".join(lines(event).rstrip() for event in STREAM)[:-30]
    got = read(output, agent="claude", exit_code=1)
    assert got.text == ANSWER
    assert got.final_text is None


def test_literal_line_breaks_in_a_string_fall_back_to_text() -> None:
    """Malformed JSON with a readable block in it: the block is found, but not as final."""
    broken = f'{{"type":"result","result":"Done.\n{TRUE_BLOCK}\n","is_error":false}}'
    got = read(broken.encode(), agent="claude")
    assert got.status is not None
    assert not got.status_is_final
    assert any("malformed" in warning for warning in got.warnings)


def test_a_broken_line_before_good_ones_is_noise() -> None:
    """An object that never closes does not swallow the events after it."""
    got = read(b'{"type":"system","subtype":"ini\n' + lines(*STREAM), agent="claude")
    assert got.final_text == ANSWER
    assert any("malformed" in warning for warning in got.warnings)


@pytest.mark.parametrize(
    "output",
    [
        b"{draft} notes for the importer\n" + FALSE_BLOCK.encode(),
        b"[x] wired the limiter\n[ ] docs\n" + FALSE_BLOCK.encode(),
        b'{"ok": true}\n',
        b"{}\n",
        b"[]",
        b'The result looks like this:\n{\n  "a": 1\n}\nand that is all.\n',
        b"```json\n" + lines(RESULT) + b"```\n" + FALSE_BLOCK.encode(),
    ],
    ids=[
        "brace",
        "checklist",
        "json answer",
        "empty object",
        "empty list",
        "snippet",
        "fenced event",
    ],
)
def test_text_that_looks_like_json_is_text(output: bytes) -> None:
    """An answer that begins with a brace, or quotes JSON, is read as it stands."""
    for agent in ("auto", "claude", "codex"):
        got = read(output, agent=agent)
        assert got.outcome is Outcome.COMPLETED
        assert got.text == output.decode()
        assert got.final_text == got.text
        assert not got.warnings


def test_a_cut_emoji_or_a_stray_byte_does_not_cost_a_result() -> None:
    """Lone surrogates and invalid UTF-8 become replacement characters."""
    line = lines(result("PLACE")).replace(
        b"PLACE", rb"cut \ud83d here, whole \ud83d\ude80, \\ud83d kept"
    )
    assert read(line, agent="claude").final_text == "cut \ufffd here, whole 🚀, \\ud83d kept"
    line = lines(result("PLACE")).replace(b"PLACE", b"stray \xff byte")
    assert read(line, agent="claude").final_text == "stray \ufffd byte"


def test_deep_nesting_is_noise() -> None:
    """A million brackets are skipped like any other line that cannot be read."""
    deep = b'{"a":' + b"[" * 1_000_000 + b"\n"
    assert read(lines(init()) + deep + lines(*STREAM[1:]), agent="claude").final_text == ANSWER
    assert read(deep + lines(*STREAM), agent="claude").final_text == ANSWER


def test_a_line_too_long_to_hold_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit a line is noise, and the next one is read again."""
    monkeypatch.setattr("ralphloop.readers.stream.MAX_LINE", 200_000)
    output = lines(init(), said(text("x" * 3_000_000)), *STREAM[1:])
    got = read(output, agent="claude")
    assert got.final_text == ANSWER
    assert got.text == ANSWER
    assert any("malformed" in warning for warning in got.warnings)


def test_a_document_too_long_to_hold_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that never ends is given up at the limit; nothing of the text is lost."""
    monkeypatch.setattr("ralphloop.readers.stream.MAX_DOCUMENT", 10_000)
    output = b"{\n" + b'  "key": "value",\n' * 2_000 + FALSE_BLOCK.encode()
    got = read(output, agent="auto")
    assert got.text_chars == len(output)
    assert got.status is not None


def test_each_dialect_is_told_from_the_others() -> None:
    """The first event settles whose output it is."""
    assert read(lines({"type": "thread.started", "thread_id": "t"})).reader == "codex"
    assert read(lines({"type": "error", "message": "Reconnecting... 1/5"})).reader == "codex"
    assert read(lines({"type": "error", "severity": "warning", "message": "x"})).reader == "gemini"
    assert read(lines({"type": "error", "sessionID": "s", "error": {}})).reader == "opencode"
    assert read(lines({"type": "result", "status": "success", "stats": {}})).reader == "gemini"
    assert read(lines({"type": "result", "subtype": "success", "result": "x"})).reader == "claude"
    assert read(lines({"result": "x"})).reader == "claude"
    assert read(lines({"session_id": "s", "response": "x", "stats": {}})).reader == "gemini"


def test_events_of_an_array_belong_to_one_dialect() -> None:
    """Once settled, an array's further objects are not offered to another dialect."""
    mixed = json.dumps([init(), item("agent_message", text=TRUE_BLOCK), result("ok")]).encode()
    got = read(mixed)
    assert got.reader == "claude"
    assert got.status is None
