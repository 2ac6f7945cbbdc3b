"""The agents of a run: the first, and those that take over while it cannot work.

An agent that reached its usage limit comes back when the limit has reset; one that cannot work at
all (not logged in, no such model) is gone for the session.  Each has its own quota clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ralphloop.config.model import AgentSection
from ralphloop.core.model import Outcome, Value
from ralphloop.errors import AgentUnavailable, Finding
from ralphloop.project import Project, agent_directories

if TYPE_CHECKING:
    from ralphloop.agents.base import Agent, AgentRequest, Inquiry, Launch

GONE = -1.0
Quota = Mapping[str, float]  # agent -> when it may start again, or GONE


class Member(Value, kw_only=True):
    """One agent with its settings."""

    agent: Agent
    config: AgentSection

    @property
    def name(self) -> str:
        return self.agent.name


def muster(config: AgentSection, project: Project) -> tuple[Member, ...]:
    """The configured agent, then its fallbacks; those start with their own defaults."""
    from ralphloop.agents.base import load_agent

    folders = agent_directories(project.root)
    first = Member(agent=load_agent(config.name, directories=folders), config=config)
    others = [
        Member(
            agent=load_agent(name, directories=folders),
            config=msgspec.structs.replace(config, name=name, model="", binary="", args=()),
        )
        for name in config.fallback
        if name != config.name
    ]
    return (first, *others)


class _Session:
    """The agent that is there already: the session whose hooks we are."""

    name = "claude"
    keys = ()
    resumes = False

    def launch(self, request: AgentRequest) -> Launch:
        raise AgentUnavailable("a loop inside a session starts no agent", "Use `ralph run`.")

    def check(self, inquiry: Inquiry) -> list[Finding]:
        return []


def in_session(config: AgentSection) -> tuple[Member, ...]:
    """The crew of a loop inside an agent session: the session itself, and nobody else."""
    return (Member(agent=_Session(), config=config),)


def at_work(crew: Sequence[Member], quota: Quota, now: float) -> Member | None:
    """The first one that may start now."""
    return next((m for m in crew if 0 <= quota.get(m.name, 0.0) <= now), None)


def next_back(crew: Sequence[Member], quota: Quota) -> float | None:
    """When the first of those that wait may start again."""
    times = [until for m in crew if (until := quota.get(m.name, 0.0)) != GONE]
    return min(times, default=None)


def after(quota: Quota, name: str, outcome: Outcome, until: float) -> dict[str, float]:
    """The quota clocks after a start of `name`; a start that worked needs none."""
    rest = {agent: moment for agent, moment in quota.items() if agent != name}
    if outcome is Outcome.FATAL:
        return rest | {name: GONE}
    return rest | {name: until} if outcome is Outcome.USAGE_LIMIT else rest
