"""What would fail in the night is found out before it: the probe, and the life of a login."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from ralphloop.agents.base import Inquiry, load_agent
from ralphloop.config.model import AgentSection
from ralphloop.loop.prepare import Worker
from ralphloop.loop.probing import login_problems
from tests.loop.projects import sandbox

GREEN = [["test", "-d", "."]]
WRITES = "write('ralph-probe.txt', 'ralph'); print('OK')"
DENIED = """
event(type="system", subtype="init", session_id="s-1", uuid="u")
says("I may not.")
result("I may not.")
"""


def test_a_probe_says_that_an_agent_answers_and_may_write(tmp_path: Path) -> None:
    """One start for each agent; what it wrote is gone, no run was made."""
    box = sandbox(tmp_path, WRITES, checks=GREEN)
    done = box.ralph("run", "--probe")
    assert done.code == 0, done.text
    assert "it answered, it may write here" in done.text
    assert box.starts == 1
    assert not (box.root / "ralph-probe.txt").exists()
    assert box.git("status", "--porcelain").strip() == ""


def test_a_probe_says_what_went_wrong(tmp_path: Path) -> None:
    """An agent that writes nothing, and one whose key is refused, end it with 69."""
    silent = sandbox(tmp_path / "a", DENIED, checks=GREEN, output="claude").ralph("run", "--probe")
    assert silent.code == 69, silent.text
    assert "it did not write here" in silent.text
    refused = "print('Error: 401 bad api key', file=sys.stderr); sys.exit(1)"
    done = sandbox(tmp_path / "b", refused, checks=GREEN).ralph("run", "--probe")
    assert done.code == 69, done.text
    assert "no answer: Error: 401 bad api key" in done.text


def test_a_login_that_ends_before_the_run_is_said(tmp_path: Path) -> None:
    """Where it cannot be renewed; otherwise, and with a token that lasts, there is nothing to say."""
    worker = Worker(agent=load_agent("claude"), config=AgentSection())
    file = tmp_path / ".claude" / ".credentials.json"
    file.parent.mkdir()
    env = {"HOME": str(tmp_path)}
    now = time.time()

    def said(**told: object) -> list[str]:
        file.write_text(json.dumps({"claudeAiOauth": told}))
        return [it.fix for it in login_problems(worker, env, until=now + 36_000)]

    assert "claude setup-token" in said(expiresAt=(now + 3_600) * 1000)[0]
    assert said(expiresAt=(now + 90_000) * 1000) == []
    assert said(expiresAt=(now + 3_600) * 1000, refreshToken="r") == []
    assert said(expiresAt="soon") == []
    env["CLAUDE_CODE_OAUTH_TOKEN"] = "t"
    assert said(expiresAt=(now + 3_600) * 1000) == []


def token(ends: float) -> str:
    """A JSON Web Token that says when it ends."""
    told = base64.urlsafe_b64encode(json.dumps({"exp": int(ends)}).encode()).decode().rstrip("=")
    return f"e30.{told}.c2ln"


@pytest.mark.parametrize(
    "name, place, told",
    [
        ("codex", ".codex/auth.json", {"tokens": {"access_token": "{token}"}}),
        ("gemini", ".gemini/oauth_creds.json", {"expiry_date": "{milliseconds}"}),
        ("qwen", ".qwen/oauth_creds.json", {"expiry_date": "{milliseconds}"}),
    ],
)
def test_the_life_of_other_logins_is_read_too(
    tmp_path: Path, name: str, place: str, told: dict[str, Any]
) -> None:
    """By the number that stands there, or by what the token says of itself; a key has no end."""
    worker = Worker(agent=load_agent(name), config=AgentSection(name=name))
    file = tmp_path / place
    file.parent.mkdir()
    env = {"HOME": str(tmp_path)}
    now = time.time()

    def said(ends: float, more: str = "") -> list[str]:
        text = json.dumps(told).replace('"{milliseconds}"', str(int(ends * 1000)))
        text = text.replace("{token}", token(ends))
        if more:
            inner = "access_token" in text
            at = '"access_token"' if inner else '"expiry_date"'
            text = text.replace(at, f'"refresh_token": "{more}", {at}')
        file.write_text(text)
        return [it.message for it in login_problems(worker, env, until=now + 36_000)]

    [sentence] = said(now + 3_600)
    assert sentence.startswith(f"{name}'s login ends ")
    assert said(now + 90_000) == []
    assert said(now + 3_600, more="r") == []
    file.write_text("not json")
    assert list(login_problems(worker, env, until=now + 36_000)) == []


@pytest.mark.parametrize(
    "name, place, told, tools",
    [
        ("claude", ".claude/settings.json", {"permissions": {"deny": ["Write"]}}, "Write"),
        ("claude", ".claude/settings.json", {"permissions": {"deny": ["Edit(**)"]}}, "Edit"),
        ("gemini", ".gemini/settings.json", {"tools": {"exclude": ["replace"]}}, "replace"),
        ("opencode", "opencode.json", {"permission": {"bash": {"*": "deny"}}}, "bash"),
        ("opencode", "opencode.json", {"permission": {"edit": "deny"}}, "edit"),
        ("qwen", ".qwen/settings.json", {"permissions": {"deny": ["edit"]}}, "edit"),
        ("claude", ".claude/settings.json", {"permissions": {"deny": ["Bash(rm:*)"]}}, ""),
        ("opencode", "opencode.json", {"permission": {"bash": {"rm *": "deny"}}}, ""),
    ],
)
def test_what_its_own_settings_refuse_is_said_before(
    tmp_path: Path, name: str, place: str, told: dict[str, Any], tools: str
) -> None:
    """A tool that no story is done without; a rule about some commands is none."""
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(json.dumps(told))
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho 1.0\n")
    program.chmod(0o755)
    config = AgentSection(name=name, binary=str(program))
    env = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    findings = load_agent(name).check(Inquiry(config, tmp_path, env))
    said = [it.message for it in findings if "may not use" in it.message]
    where = f"({place}, {'permission' if name == 'opencode' else next(iter(told))}"
    assert [tools in one and where in one for one in said] == ([True] if tools else [])


def test_a_sandbox_that_lets_nothing_be_written_is_said(tmp_path: Path) -> None:
    """It is tried with the words of the level, without a model, and leaves nothing."""
    box = sandbox(tmp_path, "done()", checks=GREEN)
    codex = tmp_path / "codex"
    settings = box.root / "ralph.toml"
    lines = settings.read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("command =", "format"))]
    named = "\n".join(kept).replace('name = "command"', f'name = "codex"\nbinary = "{codex}"')
    settings.write_text(named + "\n")
    box.git("commit", "-qam", "codex")
    script = """#!/bin/sh
echo "$@" >> {state}/asked
case "$1" in
--version) echo 0.166.0;;
sandbox) {sandbox};;
exec) cat > /dev/null; echo '{{"type":"turn.failed","error":{{"message":"401 bad key"}}}}'; exit 1;;
esac
"""
    refused = "echo 'touch: Read-only file system' >&2; exit 1"
    for does, is_said in ((refused, True), ('for last; do :; done; touch "$last"', False)):
        codex.write_text(script.format(state=box.state, sandbox=does))
        codex.chmod(0o755)
        done = box.run()
        said = " ".join(done.text.split())
        assert ("codex's sandbox lets its tools write nothing here" in said) is is_said, said
        assert not (box.root / "ralph-probe.txt").exists()
    asked = (box.state / "asked").read_text()
    assert 'sandbox -c sandbox_mode="workspace-write"' in asked
