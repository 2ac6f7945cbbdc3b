"""An assistant speaks with `ralph mcp` as the protocol has it, and with one that is broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralphloop.mcp.json_rpc import LONGEST_MESSAGE
from ralphloop.mcp.server import LONGEST_ANSWER, MOST_WAITING
from tests.cli.nights import Night
from tests.mcp.client import REVISION, client

READING = {"status", "stories", "question", "review"}


def test_a_conversation_from_greeting_to_goodbye(tmp_path: Path) -> None:
    """Greeting, list, calls and ping are answered by id; closing the pipe ends it with 0."""
    Night(tmp_path).begin()
    with client(tmp_path) as it:
        greeting = it.greet()
        assert greeting["protocolVersion"] == REVISION
        assert greeting["serverInfo"]["name"] == "ralph"
        assert "tools" in greeting["capabilities"]
        assert "never an" in greeting["instructions"]
        assert it.ask("ping")["result"] == {}
        words, is_error = it.call("status")
        assert "0 of 4 passed" in words
        assert not is_error
        words, is_error = it.call("stories")
        assert "S-1: Story 1" in words
        assert not is_error
        assert it.end() == 0


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2026-07-28", REVISION),
        ("1999-01-01", REVISION),
        ("", REVISION),
    ],
)
def test_a_revision_is_agreed_on(tmp_path: Path, asked: str, agreed: str) -> None:
    """The newest that is spoken here and not newer than what the client asked for."""
    with client(tmp_path) as it:
        assert it.greet(asked)["protocolVersion"] == agreed


def test_tools_say_what_they_take_and_whether_they_change_anything(tmp_path: Path) -> None:
    """Each has a schema that refuses unknown arguments, and says whether it only looks."""
    with client(tmp_path) as it:
        it.greet()
        tools = it.tools()
        for tool in tools.values():
            assert tool["inputSchema"]["type"] == "object"
            assert tool["inputSchema"]["additionalProperties"] is False
            assert tool["description"].endswith(".")
        reading = {name for name in tools if tools[name]["annotations"]["readOnlyHint"]}
        assert reading >= READING
        assert set(tools) - reading == {"answer", "note", "stop", "accept", "send_back"}
        assert set(tools["send_back"]["inputSchema"]["required"]) == {"story", "why"}


def test_read_only_offers_nothing_that_changes(tmp_path: Path) -> None:
    """Neither in the list nor by name."""
    with client(tmp_path, "--read-only") as it:
        it.greet()
        assert all(tool["annotations"]["readOnlyHint"] for tool in it.tools().values())
        refused = it.ask("tools/call", name="note", arguments={"text": "x"})
        assert refused["error"]["code"] == -32602


def test_another_directory_can_be_named(tmp_path: Path) -> None:
    """An assistant that is started elsewhere says where the project is."""
    root = tmp_path / "project"
    root.mkdir()
    Night(root).begin()
    with client(tmp_path, "--project", str(root)) as it:
        it.greet()
        assert "S-1: Story 1" in it.call("stories")[0]


@pytest.mark.parametrize(
    ("sent", "code", "answers"),
    [
        (b"{", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b'{"params": ' + b'{"a":' * 10_000, -32700, None),
        (b'[{"jsonrpc": "2.0", "id": 7, "method": "ping"}]', -32600, None),
        (b'"ping"', -32600, None),
        (b'{"id": 7, "method": "ping"}', -32600, 7),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": []}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "resources/list"}', -32601, 7),
        (b'{"jsonrpc": "2.0", "id": "a", "method": "server/discover"}', -32601, "a"),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/list"}', -32600, 7),
        (b'"' + b"x" * (2 * LONGEST_MESSAGE) + b'"', -32600, None),
    ],
    ids=lambda it: repr(it)[:40],
)
def test_what_is_no_request_is_refused_and_the_conversation_goes_on(
    tmp_path: Path, sent: bytes, code: int, answers: str | int | None
) -> None:
    """An error with its code and, where there is one, the id; the next ping is answered."""
    with client(tmp_path) as it:
        it.tell(sent)
        refused = it.hear()
        assert (refused["error"]["code"], refused["id"]) == (code, answers)
        assert it.ask("ping")["result"] == {}


def test_what_nobody_waits_for_is_not_answered(tmp_path: Path) -> None:
    """Notifications, known or not, answers and empty lines."""
    with client(tmp_path) as it:
        it.greet()
        it.tell({"jsonrpc": "2.0", "method": "notifications/whatever", "params": {}})
        it.tell({"jsonrpc": "2.0", "id": 99, "result": {}})
        it.tell(b"")
        it.tell(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": []}}
        )
        assert it.ask("ping")["result"] == {}


def test_wrong_calls_are_told_in_words(tmp_path: Path) -> None:
    """An unknown tool is an error of the protocol, wrong arguments are one the model can read."""
    Night(tmp_path).begin()
    with client(tmp_path) as it:
        it.greet()
        assert it.ask("tools/call", name="rm", arguments={})["error"]["code"] == -32602
        assert it.ask("tools/call", name=["status"])["error"]["code"] == -32602
        assert it.ask("tools/call", name="status", arguments=[1])["error"]["code"] == -32602
        words, is_error = it.call("answer", story="S-1")
        assert "text" in words
        assert is_error
        words, is_error = it.call("status", path="/etc")
        assert "path" in words
        assert is_error
        words, is_error = it.call("answer", story="S-9", text="Yes")
        assert "S-9" in words
        assert "next:" in words
        assert is_error


def test_a_directory_without_anything_says_what_to_do(tmp_path: Path) -> None:
    """As the command would."""
    with client(tmp_path) as it:
        it.greet()
        assert "ralph init" in it.call("status")[0]
        words, is_error = it.call("note", text="Use the v2 API")
        assert "nothing has run here yet" in words
        assert is_error


def test_secrets_and_control_characters_stay_here(tmp_path: Path) -> None:
    """What a story says is told without keys, and without what moves a cursor."""
    night = Night(tmp_path).begin()
    token = "zq" * 20
    listed = [{"id": "S-1", "title": f"Use {token} \x1b[2J and AKIA{'Q7' * 8}", "passes": False}]
    (tmp_path / "prd.json").write_text(json.dumps({"userStories": listed}))
    night.iterate()
    with client(tmp_path, env={"DEPLOY_TOKEN": token}) as it:
        it.greet()
        words, _ = it.call("stories")
        assert "S-1: Use" in words
        assert token not in words
        assert "AKIA" not in words
        assert "\x1b" not in words


def test_a_long_answer_is_cut_and_says_so(tmp_path: Path) -> None:
    """A list of any length leaves room for a conversation."""
    Night(tmp_path, stories=3_000).begin()
    with client(tmp_path) as it:
        it.greet()
        words, _ = it.call("stories")
        assert len(words) <= LONGEST_ANSWER
        assert words.endswith("the rest is left out")


def test_only_so_many_calls_wait(tmp_path: Path) -> None:
    """Who asks without listening is refused; every call is answered just once."""
    Night(tmp_path, stories=400).begin()
    with client(tmp_path) as it:
        it.greet()
        count = 3 * MOST_WAITING
        asked = [it.send("tools/call", name="stories", arguments={}) for _ in range(count)]
        answers = [it.hear() for _ in asked]
        assert sorted(answer["id"] for answer in answers) == asked
        refused = [answer for answer in answers if "error" in answer]
        assert {answer["error"]["message"] for answer in refused} <= {"too many calls wait already"}
        assert refused
        assert it.call("question") == ("No story waits for you.", False)
