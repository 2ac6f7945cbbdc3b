"""How machines name the accounts of their agents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralphloop.core.accounts import account_in
from ralphloop.fleet.logins import accounts_here

NUMBER = "7c0e8f3a-1111-4222-8333-944455566677"
OTHER = "8c0e8f3a-1111-4222-8333-944455566677"


def _claude(home: Path, number: str = NUMBER) -> dict[str, str]:
    home.mkdir(exist_ok=True)
    login = {"oauthAccount": {"accountUuid": number, "emailAddress": "me@example.com"}}
    (home / ".claude.json").write_text(json.dumps(login))
    return {"HOME": str(home)}


def _codex(home: Path, number: str = NUMBER) -> dict[str, str]:
    (home / ".codex").mkdir(parents=True, exist_ok=True)
    login = {"OPENAI_API_KEY": None, "tokens": {"account_id": number}}
    (home / ".codex/auth.json").write_text(json.dumps(login))
    return {"HOME": str(home)}


@pytest.mark.parametrize(("agent", "made"), [("claude", _claude), ("codex", _codex)])
def test_one_login_has_one_name_on_every_machine(tmp_path: Path, agent: str, made: object) -> None:
    """The same on two machines, another one for another account; it shows nothing of either."""
    assert callable(made)
    here, there = (accounts_here("", made(tmp_path / name)) for name in ("here", "there"))
    other = accounts_here("", made(tmp_path / "other", OTHER))

    assert here == there
    assert here[agent] != other[agent]
    assert len(here[agent]) == 6
    assert here[agent] not in NUMBER


def test_a_label_is_of_all_agents(tmp_path: Path) -> None:
    """It goes before every login."""
    accounts = accounts_here("work", _claude(tmp_path))
    assert [account_in(accounts, name) for name in ("claude", "codex")] == ["work", "work"]


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"])
def test_a_key_names_no_account(tmp_path: Path, name: str) -> None:
    """Where the login is not what is used, nobody knows whose account it is."""
    assert accounts_here("", {**_claude(tmp_path), name: "sk-something"}) == {}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"oauthAccount": 3}', '{"oauthAccount": {"accountUuid": "short"}}']
)
def test_what_cannot_be_read_is_no_account(tmp_path: Path, text: str) -> None:
    """Another shape, a broken file and a number that could be guessed say nothing."""
    (tmp_path / ".claude.json").write_text(text)
    assert accounts_here("", {"HOME": str(tmp_path)}) == {}
    assert accounts_here("", {"HOME": str(tmp_path / "nowhere")}) == {}
