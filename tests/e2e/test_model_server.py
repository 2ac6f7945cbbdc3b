"""The scripted model itself: formats, faults, matching, record and bill; needs no CLI."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.clis import ROOT
from tests.e2e.model_server import (
    ALWAYS,
    BadScript,
    Failure,
    ModelServer,
    Prices,
    Scene,
    ToolUse,
    Turn,
    Usage,
    edit,
    fail,
    read,
    say,
    scenes_of,
    shell,
    use,
    write,
)

Json = dict[str, Any]

MESSAGES = "/v1/messages?beta=true"
RESPONSES = "/v1/responses"
CHAT = "/v1/chat/completions"
STREAM_GENERATE = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
GENERATE = "/v1beta/models/gemini-2.5-pro:generateContent"

BILL = Usage(input=1000, output=50, cache_read=300)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ModelServer]:
    """A server whose failures the test looks at itself."""
    with ModelServer(root=tmp_path) as server:
        yield server


class Answer:
    """What came back, whole or cut."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.cut = False
        try:
            self.data = response.read()
        except (http.client.IncompleteRead, ConnectionError):
            self.data, self.cut = b"", True

    @property
    def json(self) -> Json:
        """The body as one object."""
        decoded: Json = json.loads(self.data)
        return decoded

    @property
    def events(self) -> list[Json]:
        """The body as server-sent events."""
        lines = [line for line in self.data.decode().splitlines() if line.startswith("data: {")]
        return [json.loads(line.removeprefix("data: ")) for line in lines]


def post(server: ModelServer, path: str, body: Json, *, timeout_s: float = 10) -> Answer:
    """Ask the server."""
    address = server.url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=timeout_s)
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        return Answer(connection.getresponse())
    finally:
        connection.close()


def asked(path: str, prompt: str = "hi", *, stream: bool = True) -> Json:
    """The body by which each provider's client asks."""
    if path == MESSAGES:
        user = {"role": "user", "content": [{"type": "text", "text": prompt}]}
        return {"model": "m", "stream": stream, "system": "be brief", "messages": [user]}
    if path == RESPONSES:
        content = [{"type": "input_text", "text": prompt}]
        user = {"type": "message", "role": "user", "content": content}
        return {"model": "m", "stream": stream, "instructions": "be brief", "input": [user]}
    if path == CHAT:
        system = {"role": "system", "content": "be brief"}
        tools = [{"type": "function", "function": {"name": "bash"}}]
        messages = [system, {"role": "user", "content": prompt}]
        return {"model": "m", "stream": stream, "messages": messages, "tools": tools}
    user = {"role": "user", "parts": [{"text": prompt}]}
    return {"systemInstruction": {"parts": [{"text": "be brief"}]}, "contents": [user]}


def streamed_text(path: str, answer: Answer) -> str:
    """The text of a streamed answer, put together as a client does."""
    pieces = []
    for event in answer.events:
        if path == MESSAGES:
            pieces.append(event.get("delta", {}).get("text", ""))
        elif path == RESPONSES:
            pieces.append(event["delta"] if event["type"].endswith("text.delta") else "")
        elif path == CHAT:
            deltas = [choice["delta"].get("content") or "" for choice in event["choices"]]
            pieces.append("".join(deltas))
        else:
            parts = event["candidates"][0]["content"]["parts"]
            pieces.append("".join(part.get("text", "") for part in parts))
    return "".join(pieces)


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES, CHAT, STREAM_GENERATE])
def test_streams_the_text_of_a_turn_and_bills_it(stage: ModelServer, path: str) -> None:
    """Every format streams the same words, and the bill is what the script says."""
    stage.play(say("All done, really.", usage=BILL))
    answer = post(stage, path, asked(path))
    assert (answer.status, streamed_text(path, answer)) == (200, "All done, really.")
    assert (stage.billed, stage.unexpected) == (BILL, [])
    assert answer.headers["content-type"] == "text/event-stream"


def test_whole_answers_hold_text_and_usage(stage: ModelServer) -> None:
    """Clients that do not stream get one object."""
    stage.play(say("one", usage=BILL), say("two", usage=BILL), say("three", usage=BILL))
    claude = post(stage, MESSAGES, asked(MESSAGES, stream=False)).json
    chat = post(stage, CHAT, asked(CHAT, stream=False)).json
    gemini = post(stage, GENERATE, asked(GENERATE)).json
    assert claude["content"] == [{"type": "text", "text": "one"}]
    assert claude["usage"]["cache_read_input_tokens"] == 300
    assert chat["choices"][0]["message"]["content"] == "two"
    assert chat["usage"]["prompt_tokens"] == 1300
    assert gemini["candidates"][0]["content"]["parts"] == [{"text": "three"}]
    assert gemini["usageMetadata"]["promptTokenCount"] == 1300


CALLS = (write("a.py", "x = 1\ny = 2\n"), edit("a.py", "x = 1", "x = 3"), shell("ls"))


def test_neutral_tools_become_those_of_claude(stage: ModelServer, tmp_path: Path) -> None:
    """Paths are whole, names are Claude Code's."""
    stage.play(use(*CALLS, read("a.py"), ToolUse("Skill", {"skill": "x"})))
    answer = post(stage, MESSAGES, asked(MESSAGES, stream=False)).json
    calls = [(block["name"], block["input"]) for block in answer["content"]]
    place = str(tmp_path / "a.py")
    assert calls == [
        ("Write", {"file_path": place, "content": "x = 1\ny = 2\n"}),
        ("Edit", {"file_path": place, "old_string": "x = 1", "new_string": "x = 3"}),
        ("Bash", {"command": "ls", "description": "scripted"}),
        ("Read", {"file_path": place}),
        ("Skill", {"skill": "x"}),
    ]
    assert answer["stop_reason"] == "tool_use"


def test_streamed_tool_input_is_put_together_again(stage: ModelServer, tmp_path: Path) -> None:
    """The pieces of a call's arguments are one JSON text."""
    stage.play(use(CALLS[0]))
    events = post(stage, MESSAGES, asked(MESSAGES)).events
    pieces = [event["delta"].get("partial_json", "") for event in events if "delta" in event]
    assert json.loads("".join(pieces))["content"] == "x = 1\ny = 2\n"


def test_neutral_tools_become_commands_for_codex(stage: ModelServer, tmp_path: Path) -> None:
    """Codex edits by `apply_patch` in a heredoc."""
    stage.play(use(*CALLS))
    events = post(stage, RESPONSES, asked(RESPONSES)).events
    items = events[-1]["response"]["output"]
    commands = [json.loads(item["arguments"])["cmd"] for item in items]
    assert f"*** Add File: {tmp_path / 'a.py'}\n+x = 1\n+y = 2\n*** End" in commands[0]
    assert "@@\n-x = 1\n+x = 3\n*** End Patch\nEOF" in commands[1]
    assert commands[2] == "ls"


def test_neutral_tools_become_those_of_gemini_and_opencode(stage: ModelServer) -> None:
    """Each has its own names for tools and arguments."""
    stage.play(use(CALLS[1]), use(CALLS[1]))
    gemini = post(stage, GENERATE, asked(GENERATE)).json
    call = gemini["candidates"][0]["content"]["parts"][0]["functionCall"]
    assert (call["name"], call["args"]["new_string"]) == ("replace", "x = 3")
    chat = post(stage, CHAT, asked(CHAT, stream=False)).json
    function = chat["choices"][0]["message"]["tool_calls"][0]["function"]
    assert (function["name"], json.loads(function["arguments"])["newString"]) == ("edit", "x = 3")


@pytest.mark.parametrize(
    "path, kind",
    [
        (MESSAGES, "rate_limit_error"),
        (RESPONSES, "rate_limit_exceeded"),
        (CHAT, "rate_limit_exceeded"),
        (STREAM_GENERATE, "RESOURCE_EXHAUSTED"),
    ],
)
def test_errors_are_worded_as_the_provider_does(stage: ModelServer, path: str, kind: str) -> None:
    """An HTTP error has status, headers and the provider's body, and bills nothing."""
    stage.play(fail(429, "slow down", headers={"retry-after": "3"}, extra={"hint": "x"}))
    answer = post(stage, path, asked(path))
    assert (answer.status, answer.headers["retry-after"]) == (429, "3")
    error = answer.json["error"]
    assert (error["message"], error["hint"]) == ("slow down", "x")
    assert kind in (error.get("type"), error.get("status"))
    assert stage.billed == Usage()


def test_times_are_filled_in_when_the_answer_goes_out(stage: ModelServer) -> None:
    """A reset time is relative to the answer, wherever it stands."""
    headers = {"anthropic-ratelimit-unified-reset": "{now+3}"}
    stage.play(fail(429, headers=headers, extra={"resets_at": "{now+3}"}))
    answer = post(stage, MESSAGES, asked(MESSAGES))
    resets_at = answer.json["error"]["resets_at"]
    assert 2 <= resets_at - time.time() <= 3.5
    assert answer.headers["anthropic-ratelimit-unified-reset"] == str(resets_at)


def test_a_verbatim_body_is_sent_as_it_is(stage: ModelServer) -> None:
    """A proxy's HTML page with status 200 can be played."""
    stage.play(fail(200, body="<html>login</html>"))
    answer = post(stage, MESSAGES, asked(MESSAGES))
    assert (answer.status, answer.data) == (200, b"<html>login</html>")


def test_an_error_inside_the_stream_ends_it(stage: ModelServer) -> None:
    """Half of the answer comes, then the provider's error event."""
    overloaded = Failure(status=529, message="too much")
    stage.play(say("All done, really.", break_off=overloaded, usage=BILL))
    answer = post(stage, MESSAGES, asked(MESSAGES))
    assert answer.events[-1]["error"] == {"type": "overloaded_error", "message": "too much"}
    assert "really" not in streamed_text(MESSAGES, answer)


def test_a_cut_answer_bills_what_it_had_stated(stage: ModelServer) -> None:
    """A connection lost in the middle costs what the client was told, no more."""
    stage.play(say("All done, really.", cut="middle", usage=BILL), say("again"))
    assert post(stage, MESSAGES, asked(MESSAGES)).cut
    assert stage.requests[0].billed == Usage(input=1000, output=1, cache_read=300)
    assert not post(stage, MESSAGES, asked(MESSAGES)).cut


def test_a_connection_can_be_lost_before_the_answer(stage: ModelServer) -> None:
    """The client sees a reset and no status."""
    stage.play(say("never", cut="start"))
    with pytest.raises(ConnectionError):
        post(stage, MESSAGES, asked(MESSAGES))
    assert (stage.requests[0].status, stage.billed) == (0, Usage())


def test_a_client_that_leaves_during_silence_is_noticed(stage: ModelServer) -> None:
    """A killed agent is seen as such, and nobody waits for it."""
    stage.play(say("All done, really.", pause_s=30))
    with pytest.raises(TimeoutError):
        post(stage, MESSAGES, asked(MESSAGES), timeout_s=0.3)
    deadline = time.monotonic() + 5
    while not stage.requests[0].abandoned and time.monotonic() < deadline:
        time.sleep(0.02)
    assert stage.requests[0].abandoned
    assert not stage.requests[0].finished


def test_stopping_the_server_ends_its_silence(tmp_path: Path) -> None:
    """A hang in the script does not hang the test."""
    began = time.monotonic()
    with ModelServer(root=tmp_path) as server:
        server.play(say("never", delay_s=60))
        with pytest.raises(TimeoutError):
            post(server, MESSAGES, asked(MESSAGES), timeout_s=0.2)
    assert time.monotonic() - began < 5


def test_delays_hold_the_answer_back(stage: ModelServer) -> None:
    """Silence before and in the middle of an answer lasts as long as the script says."""
    stage.play(say("slow", delay_s=0.2, pause_s=0.2))
    began = time.monotonic()
    answer = post(stage, MESSAGES, asked(MESSAGES))
    assert time.monotonic() - began >= 0.4
    assert streamed_text(MESSAGES, answer) == "slow"


def test_turns_are_played_in_order_and_repeated_as_often_as_said(stage: ModelServer) -> None:
    """The n-th request gets the n-th turn, counting repetitions."""
    stage.play(fail(529, times=2), say("ok"), fail(500, times=ALWAYS))
    statuses = [post(stage, MESSAGES, asked(MESSAGES)).status for _ in range(6)]
    assert statuses == [529, 529, 200, 500, 500, 500]
    assert stage.stage.unplayed == []


def test_a_word_in_the_prompt_selects_the_scene(stage: ModelServer) -> None:
    """Stories get their own scripts; the rest is answered by the scene for any prompt."""
    stage.play(say("second"), when="US-002").play(say("first"), when="US-001").play(say("any"))
    answers = [
        streamed_text(MESSAGES, post(stage, MESSAGES, asked(MESSAGES, prompt)))
        for prompt in ("do US-001 now", "whatever", "do US-002 now")
    ]
    assert answers == ["first", "any", "second"]


def test_the_newest_message_counts(stage: ModelServer) -> None:
    """In a resumed conversation the last word of the user selects the scene."""
    stage.play(say("first"), when="US-001").play(say("second"), when="US-002")
    body = asked(MESSAGES, "do US-001 now")
    body["messages"] += [
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "now US-002"},
    ]
    assert streamed_text(MESSAGES, post(stage, MESSAGES, body)) == "second"


def test_requests_beyond_the_script_are_reported(stage: ModelServer) -> None:
    """They are answered, so that no client retries, and kept for the test to see."""
    stage.play(say("only"), when="US-001")
    answer = post(stage, MESSAGES, asked(MESSAGES, "something else"))
    assert "no more turns" in streamed_text(MESSAGES, answer)
    assert len(stage.unexpected) == 1
    assert [scene.when for scene in stage.stage.unplayed] == ["US-001"]


def test_side_calls_are_answered_without_the_script(stage: ModelServer) -> None:
    """Titles, token counts and routers take no turn and cost nothing."""
    stage.play(say("main"))
    title = {key: value for key, value in asked(CHAT).items() if key != "tools"}
    titled = {"role": "system", "content": "You are a title generator."}
    title["messages"] = [titled, *title["messages"]]
    assert "Scripted" in streamed_text(CHAT, post(stage, CHAT, title))
    counted = post(stage, "/v1/messages/count_tokens", asked(MESSAGES, stream=False)).json
    assert "input_tokens" in counted
    choice = {"type": "string", "enum": ["flash", "pro"]}
    schema = {"type": "object", "properties": {"model_choice": choice, "why": {"type": "string"}}}
    config = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    routed = post(stage, GENERATE, {**asked(GENERATE), "generationConfig": config}).json
    answer = json.loads(routed["candidates"][0]["content"]["parts"][0]["text"])
    assert answer == {"model_choice": "flash", "why": "scripted"}
    assert (len(stage.side_calls), stage.requests, stage.billed) == (3, [], Usage())


def test_requests_are_recorded(stage: ModelServer) -> None:
    """Prompt, system, tools, skills and any text of the body can be looked up."""
    stage.play(say("ok"))
    body = asked(MESSAGES, "the prompt")
    listed = "The following skills are available for use:\n\n- learned: Use “it”.\n- debug: x"
    body["messages"][0]["content"].insert(
        0, {"type": "text", "text": f"<system-reminder>\n{listed}\n</system-reminder>"}
    )
    post(stage, MESSAGES, {**body, "tools": [{"name": "Bash", "description": "runs ‘things’"}]})
    exchange = stage.wait_for_request(1)
    assert (exchange.prompt, exchange.question.tools) == ("the prompt", ("Bash",))
    assert exchange.question.system.startswith("be brief")
    assert exchange.skills == ("learned", "debug")
    assert exchange.mentions("runs ‘things’")
    assert not exchange.mentions("runs nothing")


def test_unknown_places_are_refused(stage: ModelServer) -> None:
    """What nobody plays is a 404, not a turn."""
    assert post(stage, "/api/telemetry", {}).status == 404
    assert stage.stage.exchanges == []


def test_cost_follows_prices() -> None:
    """Dollars are tokens times dollars per million."""
    prices = Prices(input=4, output=20, cache_read=0.2)
    assert Usage(input=1400, output=130, cache_read=300).cost(prices) == pytest.approx(0.00826)


def test_scripts_are_read_from_json() -> None:
    """Every kind of turn can be written down."""
    turns = [
        {"text": "On it.", "tools": [{"write": {"path": "a", "content": "b"}}]},
        {"fail": {"status": 529, "headers": {"retry-after": "1"}}, "times": 2},
        {"text": "Done.", "usage": {"input": 5}, "cut": "middle", "pause_s": 1.5},
    ]
    assert scenes_of({"scenes": [{"when": "US-001", "turns": turns}]}) == (
        Scene(
            when="US-001",
            turns=(
                use(write("a", "b"), text="On it."),
                fail(529, times=2, headers={"retry-after": "1"}),
                Turn(text="Done.", usage=Usage(input=5), cut="middle", pause_s=1.5),
            ),
        ),
    )
    assert scenes_of([{"text": "x"}]) == (Scene(turns=(say("x"),)),)


@pytest.mark.parametrize(
    "data, place",
    [
        ({"turns": []}, "a script is"),
        ([{"txt": "x"}], r"turns\[0\]: unknown key 'txt'"),
        ([{"text": "x"}, 7], r"turns\[1\]: expected an object"),
        ([{"usage": {"inputs": 1}}], r"turns\[0\].usage: unknown key 'inputs'"),
        ([{"tools": [{"write": {}, "read": {}}]}], r"turns\[0\].tools: a tool call"),
        ({"scenes": [{"when": "x"}]}, r"scenes\[0\]: .*turns"),
    ],
)
def test_bad_scripts_name_the_place(data: object, place: str) -> None:
    """Whoever writes a script is told where it is wrong."""
    with pytest.raises(BadScript, match=place):
        scenes_of(data)


def test_it_runs_as_a_program(tmp_path: Path) -> None:
    """People can play a script for a CLI they start by hand."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "hello"}]))
    command = [sys.executable, "-m", "tests.e2e.model_server", str(script)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = process.stdout.readline().split()[3].rstrip(",")
        address = url.removeprefix("http://")
        connection = http.client.HTTPConnection(address, timeout=10)
        connection.request("POST", MESSAGES, json.dumps(asked(MESSAGES, stream=False)))
        assert b"hello" in connection.getresponse().read()
        connection.close()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 0
    assert "billed: Usage(input=100, output=20" in rest
