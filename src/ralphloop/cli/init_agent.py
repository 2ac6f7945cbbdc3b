"""Which agent `ralph init` writes down, and whether its work is paid by use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ralphloop.agents.base import AGENTS
from ralphloop.agents.declared import declared_names
from ralphloop.agents.environment import API_KEYS
from ralphloop.agents.programs import find_program
from ralphloop.config.load import DEFAULT, check_config
from ralphloop.config.model import AgentName
from ralphloop.errors import UsageError
from ralphloop.project import agent_directories

COST_CAP_USD = 20.0
_LOOKED_FOR = (AgentName.CLAUDE, AgentName.CODEX, AgentName.GEMINI, AgentName.OPENCODE)
_KEYS: dict[str, frozenset[str]] = {
    AgentName.CLAUDE: frozenset({"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}),
    AgentName.CODEX: frozenset({"OPENAI_API_KEY", "CODEX_API_KEY"}),
    AgentName.GEMINI: frozenset({"GEMINI_API_KEY", "GOOGLE_API_KEY"}),
    AgentName.SCRIPTED: frozenset(),
}
_PAID_BY_USE = frozenset({AgentName.OPENCODE})  # it has no subscription of its own


class Billing(NamedTuple):
    """How runs are paid, as far as one can tell from here."""

    max_cost_usd: float = 0.0
    keys: tuple[str, ...] = ()
    words: str = ""


def choose_agent(root: Path, wanted: str | None) -> str:
    """The agent asked for, else the one settings name, else the first that is installed."""
    if wanted is not None:
        _demand(root, wanted)
        return wanted
    env = os.environ
    loaded, _ = check_config(root, env=env)
    if loaded.origins["agent.name"] != DEFAULT:
        return str(loaded.config.agent.name)
    installed = (name for name in _LOOKED_FOR if find_program(name, env, root))
    return str(next(installed, AgentName.CLAUDE))


def _demand(root: Path, name: str) -> None:
    known = {*AGENTS, *declared_names(agent_directories(root))}
    if name not in known:
        listed = ", ".join(sorted(known))
        raise UsageError(f"--agent: there is no agent {name[:40]!r}", f"One of: {listed}.")


def billing_of(agent: str, env: Mapping[str, str]) -> Billing:
    """A cap where every token has its price."""
    keys = tuple(sorted(name for name in _KEYS.get(agent, API_KEYS) if env.get(name)))
    if keys:
        why = f"{' and '.join(keys)} {'is' if len(keys) == 1 else 'are'} set"
    elif agent in _PAID_BY_USE:
        why = f"{agent} is paid by use"
    else:
        return Billing()
    words = f"${COST_CAP_USD:.0f} a session (max_cost_usd), because {why}"
    return Billing(COST_CAP_USD, keys, words)
