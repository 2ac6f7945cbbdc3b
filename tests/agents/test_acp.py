"""Agents that speak ACP: unusual but legal messages, and such as somebody's agent really sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop.agents.acp_client import AcpClient
from ralphloop.agents.base import AgentRequest
from ralphloop.config.model import AgentSection, Safety
from ralphloop.core.model import Outcome
from ralphloop.readers import read
from ralphloop.readers.acp import Acp
from ralphloop.readers.values import Document
from tests.agents.events import NOW, lines

BEGUN: tuple[Document, ...] = (
    {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1, "_meta": {"x": 1}}},
    {"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}},
)


def update(kind: str, /, session: str = "s", **fields: object) -> Document:
    """A notification of a session."""
    params = {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def chunk(text: str, session: str = "s") -> Document:
    """Words of the agent."""
    return update("agent_message_chunk", session, content={"type": "text", "text": text})


def ended(**result: object) -> Document:
    """The answer to the prompt."""
    return {"jsonrpc": "2.0", "id": 3, "result": result}


@pytest.mark.parametrize(
    "messages, outcome, words",
    [
        ([chunk("done"), ended(stopReason="end_turn")], Outcome.COMPLETED, ""),
        ([chunk("done"), {**ended(stopReason="end_turn"), "id": "3"}], Outcome.COMPLETED, ""),
        ([chunk("done"), {**ended(stopReason="end_turn"), "id": 3.0}], Outcome.COMPLETED, ""),
        ([ended(stopReason="max_tokens")], Outcome.LIMIT, "output limit"),
        ([ended(stopReason="max_turn_requests")], Outcome.LIMIT, "too many turns"),
        ([ended(stopReason="refusal")], Outcome.ERROR, "refused"),
        ([ended(stopReason="cancelled")], Outcome.INTERRUPTED, "cancelled"),
        ([chunk("done"), ended(stopReason="error")], Outcome.ERROR, "ended with error"),
        ([chunk("work")], Outcome.ERROR, "an answer to its prompt"),
    ],
)
def test_how_a_turn_ends(messages: list[Document], outcome: Outcome, words: str) -> None:
    """Every reason of the protocol, reasons it does not know, and ids that only look different."""
    got = read(lines(*BEGUN, *messages), agent="acp", now=NOW)
    assert got.outcome is outcome, got.reason
    assert words in got.reason


@pytest.mark.parametrize(
    "error, outcome, words",
    [
        ({"code": -32000, "message": "Authentication required"}, Outcome.FATAL, "(Log in, key)"),
        ({"code": -32000, "message": "429 too many requests"}, Outcome.TRANSIENT, "429"),
        (
            {"code": -32603, "message": "Internal error", "data": {"error": {"message": "529"}}},
            Outcome.TRANSIENT,
            "529",
        ),
        ({"code": -32602, "message": "Invalid params"}, Outcome.STARTUP_ERROR, "Invalid params"),
    ],
)
def test_an_error_in_place_of_a_session(error: Document, outcome: Outcome, words: str) -> None:
    """Its owner is found by its words wherever they stand; a login names the ways there are."""
    ways = [{"id": "login", "name": "Log in"}, {"id": "key", "name": None}]
    first: Document = {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"protocolVersion": 1, "authMethods": ways},
    }
    got = read(
        lines(first, {"jsonrpc": "2.0", "id": 2, "error": error}), agent="acp", exit_code=1, now=NOW
    )
    assert got.outcome is outcome, got.reason
    assert words in got.reason


def test_another_version_and_no_session_are_refused() -> None:
    """What we cannot speak is said, not guessed at; an answer that comes twice is one."""
    newer: Document = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 2}}
    got = read(lines(newer), agent="acp", exit_code=0, now=NOW)
    assert got.outcome is Outcome.STARTUP_ERROR
    assert "version 2 of ACP" in got.reason
    nameless: Document = {"jsonrpc": "2.0", "id": 2, "result": {}}
    got = read(lines(BEGUN[0], nameless), agent="acp", exit_code=0, now=NOW)
    assert "no session" in got.reason
    dialect = Acp()
    for document in (*BEGUN, *BEGUN, {"jsonrpc": "2.0", "id": True, "result": {}}):
        dialect.see(document)
    assert [one["id"] for one in dialect.waiting] == [1, 2]


def test_words_of_another_session_are_not_the_agents() -> None:
    """A session that the agent opened for itself says nothing for it; blocks of content are text."""
    blocks = [
        {"type": "text", "text": "mine, "},
        {"type": "image"},
        {"type": "text", "text": "all"},
    ]
    got = read(
        lines(
            *BEGUN,
            update("plan", entries=[]),
            chunk("theirs", session="s-2"),
            update("agent_message_chunk", content=blocks),
            update("brand_new_kind", content=3),
            ended(stopReason="end_turn"),
        ),
        agent="acp",
        now=NOW,
    )
    assert got.final_text == "mine, all"


def test_a_call_that_is_over_at_once_or_told_by_updates_is_a_step() -> None:
    """Some agents tell of a call once, some only by its updates."""
    dialect = Acp()
    for document in (
        *BEGUN,
        update("tool_call", toolCallId="a", title="Read", kind="read", status="completed"),
        update("tool_call_update", toolCallId="b", title="Write", kind="edit"),
        update("tool_call_update", toolCallId="b", status="failed"),
    ):
        dialect.see(document)
    results = [(step.summary, step.ok) for step in dialect.steps if step.kind == "tool_result"]
    assert results == [("Read", True), ("Write", False)]


@pytest.mark.parametrize(
    "safety, told, asked, allowed",
    [
        ("moderate", {"kind": "edit", "locations": [{"path": "a.py"}]}, {}, True),
        ("moderate", {"kind": "edit", "locations": [{"path": "/etc/x"}]}, {}, False),
        ("strict", {"kind": "edit", "locations": [{"path": "a.py"}]}, {}, True),
        ("strict", {"kind": "execute"}, {}, False),
        ("moderate", {}, {"content": [{"type": "diff", "path": "/etc/x"}]}, False),
        ("moderate", {"kind": "edit"}, {"rawInput": {"file_path": "/etc/x"}}, False),
        ("moderate", {"kind": "edit"}, {"kind": None, "rawInput": {"path": "b/../a.py"}}, True),
    ],
)
def test_a_permission_is_decided_by_everything_said_of_the_call(
    tmp_path: Path, safety: Safety, told: Document, asked: Document, allowed: bool
) -> None:
    """The request may name no more than the call's id; what it is was said before."""
    request = AgentRequest(
        config=AgentSection(safety=safety),
        settings_dir=tmp_path,
        prompt="",
        cwd=tmp_path,
        run_id="r",
        iteration=1,
        inherited={},
    )
    client = AcpClient(request)
    dialect = Acp()
    options = [
        {"optionId": "no", "kind": "reject_always", "name": "No"},
        {"optionId": "ever", "kind": "allow_always", "name": "Ever"},
        {"optionId": "odd", "name": "Odd"},
    ]
    params = {"sessionId": "s", "toolCall": {"toolCallId": "c", **asked}, "options": options}
    call: Document = {
        "jsonrpc": "2.0",
        "id": "perm-1",
        "method": "session/request_permission",
        "params": params,
    }
    params_before = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T", **told}
    before = {**update(""), "params": {"sessionId": "s", "update": params_before}}
    for document in (*BEGUN, before):
        dialect.see(document)
    dialect.waiting = []
    dialect.see(call)
    [answer] = client.replies(dialect)
    assert b'"id":"perm-1"' in answer
    assert (b'"ever"' if allowed else b'"no"') in answer
