"""Which account agents use here, as far as their files say it without a program being started.

What is told of it is a few letters of a hash of the account's own long number: the same login on
two machines is known as the same, and nobody learns whose it is.  Where a key or a token is used
instead, nobody can tell whose that is: a person gives such a machine a label.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.core.accounts import LONGEST_LABEL, of_any_agent
from ralphloop.errors import RalphError
from ralphloop.room import read_regular
from ralphloop.text.plain import one_line

_MOST_BYTES = 32 << 20
_LETTERS = 6
_SHORTEST = 16  # what is shorter could be guessed


class _Login(NamedTuple):
    """Where an agent keeps who is logged in, and what is used in its place."""

    file: Callable[[Mapping[str, str]], Path]
    way: tuple[str, ...]  # of keys, to the account's number
    instead: tuple[str, ...]  # variables


def _claude_file(env: Mapping[str, str]) -> Path:
    own = env.get("CLAUDE_CONFIG_DIR")
    return Path(own or env.get("HOME", "/")) / ".claude.json"


def _codex_file(env: Mapping[str, str]) -> Path:
    own = env.get("CODEX_HOME")
    return (Path(own) if own else Path(env.get("HOME", "/"), ".codex")) / "auth.json"


_LOGINS = {
    "claude": _Login(
        _claude_file,
        ("oauthAccount", "accountUuid"),
        (
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
        ),
    ),
    "codex": _Login(_codex_file, ("tokens", "account_id"), ("OPENAI_API_KEY", "CODEX_API_KEY")),
}


def accounts_here(label: str, env: Mapping[str, str]) -> dict[str, str]:
    """The labels of the accounts that agents use on this machine, by agent."""
    if label := one_line(label, LONGEST_LABEL):
        return of_any_agent(label)
    found = {agent: _account(agent, login, env) for agent, login in _LOGINS.items()}
    return {agent: account for agent, account in found.items() if account}


def _account(agent: str, login: _Login, env: Mapping[str, str]) -> str:
    if any(env.get(name) for name in login.instead):
        return ""
    with suppress(OSError, RalphError, msgspec.DecodeError):
        number = _at(
            msgspec.json.decode(read_regular(login.file(env), most=_MOST_BYTES)), login.way
        )
        if len(number) >= _SHORTEST:
            return hashlib.sha256(f"{agent} {number}".encode()).hexdigest()[:_LETTERS]
    return ""


def _at(value: object, way: Iterable[str]) -> str:
    for key in way:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
