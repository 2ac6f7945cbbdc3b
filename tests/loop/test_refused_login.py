"""A login that is refused: which key or login to look at, by agent."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.loop.projects import LIBRARY, Sandbox, sandbox

CLAUDE = """
result({words!r}, is_error=True, cost=0, terminal_reason="api_error", api_error_status={status})
sys.exit(1)
"""
GEMINI = """
event(type="init", session_id="g-1", model="gemini-2.5-pro")
error = {{"type": "unknown", "message": {words!r}}}
event(type="result", status="error", error=error, stats={{}})
sys.exit({status} % 256)
"""
AGENTS = {"claude": CLAUDE, "gemini": GEMINI}
KEYS = {"claude": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY"}
LOGIN = {"claude": "run `claude` once and log in", "gemini": "or run `gemini` once and log in"}


def with_agent(tmp_path: Path, agent: str, words: str, status: int, *, key: bool) -> Sandbox:
    """A project whose agent's account is refused in these words, with a key or a login."""
    box = sandbox(tmp_path, "", checks=[["true"]])
    place = tmp_path / "bin"
    place.mkdir()
    asked = "if '--version' in sys.argv or '--help' in sys.argv: sys.exit()\n"
    body = AGENTS[agent].format(words=words, status=status)
    program = place / agent
    program.write_text(f"#!{sys.executable}\nimport sys\n{asked}{LIBRARY}{body}")
    program.chmod(0o755)
    passed = f'pass_env = ["{KEYS[agent]}"]' if key else ""
    config = box.root / "ralph.toml"
    config.write_text(
        config.read_text().replace('name = "command"', f'name = "{agent}"\n{passed}', 1)
    )
    box.git("commit", "-qam", agent)
    box.env |= {"PATH": f"{place}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    if key:
        box.env[KEYS[agent]] = "it-is-wrong"
    return box


@pytest.mark.parametrize("agent", sorted(AGENTS))
@pytest.mark.parametrize("key", [True, False])
def test_a_refused_login_names_what_to_look_at(tmp_path: Path, agent: str, key: bool) -> None:
    """The key that was passed on, or else the way to log in; the key itself is never shown."""
    done = with_agent(tmp_path, agent, "invalid x-api-key", 401, key=key).run()
    assert done.code == 69, done.text
    assert "invalid x-api-key" in done.out
    assert (f"look at {KEYS[agent]}, which {agent} was given" in done.out) is key
    assert (LOGIN[agent] in done.out) is not key
    assert "it-is-wrong" not in done.text


def test_money_and_models_are_no_matter_of_logging_in(tmp_path: Path) -> None:
    """Another account would not help against an unknown model."""
    done = with_agent(tmp_path, "claude", "model: nope is not found", 404, key=True).run()
    assert done.code == 69, done.text
    assert "look at" not in done.out


@pytest.mark.parametrize(
    "file, content, logged_in",
    [
        ("", "", False),
        (".gemini/oauth_creds.json", "{}", True),
        (".gemini/.env", "GEMINI_API_KEY=x", True),
        (".gemini/.env", "OTHER=x", False),
    ],
)
def test_doctor_sees_a_gemini_without_a_key(
    tmp_path: Path, file: str, content: str, logged_in: bool
) -> None:
    """Neither a key that is passed on nor a login: a warning with the way out."""
    box = with_agent(tmp_path, "gemini", "", 401, key=False)
    if file:
        (tmp_path / ".gemini").mkdir()
        (tmp_path / file).write_text(content)
    doctor = box.ralph("doctor")
    assert doctor.code == 0, doctor.text
    assert ("gemini has neither a key nor a login" in doctor.out) is not logged_in


def test_doctor_is_content_with_a_gemini_key(tmp_path: Path) -> None:
    """A key that is passed on is enough."""
    doctor = with_agent(tmp_path, "gemini", "", 401, key=True).ralph("doctor")
    assert "neither a key" not in doctor.out
