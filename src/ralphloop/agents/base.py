"""What an agent is to the supervisor: a command line, an environment, a prompt, a reader.

An agent is chosen by name.  `AGENTS` maps the names to the place of their adapter, so that only
the one in use is imported; agents that differ in nothing but flags are TOML files (see
`ralphloop.agents.declared`).  Adapters start nothing themselves: `launch` returns a value, and
`ralphloop.agents.process` runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from ralphloop.agents.programs import WhyNot, asked_freely
from ralphloop.config.model import AgentSection
from ralphloop.errors import Finding, InputError


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRequest:
    """One start of an agent."""

    config: AgentSection
    settings_dir: Path  # ours to write to: `.ralph/agent`
    prompt: str
    cwd: Path
    run_id: str
    iteration: int
    inherited: Mapping[str, str]  # the environment we were started with
    story_id: str | None = None
    session_id: str | None = None  # ours to choose, for a new conversation
    resume: str | None = None  # the conversation to go on with
    max_turns: int = 0
    budget_usd: float | None = None
    tools: bool = True  # False: a question only, where the agent can be started so

    @property
    def mark(self) -> str:
        """What every process of this start carries in its environment."""
        return mark_of(self.run_id, self.iteration)

    @property
    def conversation(self) -> tuple[str, ...]:
        """The flags that name it, as Claude Code and our own scripted agent understand them."""
        if self.resume:
            return "--resume", self.resume
        return ("--session-id", self.session_id) if self.session_id else ()

    @property
    def stdin(self) -> bytes:
        """The prompt as it is handed over."""
        return self.prompt.encode("utf-8", "replace")


def mark_of(run_id: str, iteration: int) -> str:
    """The mark of one start, found again after a crash from what the journal knows."""
    return f"{run_id}/{iteration}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """Everything needed to start the process."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    stdin: bytes
    cwd: Path
    reader: str  # name of the reader for its output
    mark: str


class Agent(Protocol):
    """How one kind of agent is started and asked about itself."""

    @property
    def name(self) -> str: ...

    @property
    def resumes(self) -> bool:
        """A conversation that has ended can be gone on with."""
        ...

    def launch(self, request: AgentRequest) -> Launch:
        """The process to start; raises `AgentUnavailable` where the configuration forbids it."""
        ...

    def check(
        self,
        config: AgentSection,
        *,
        cwd: Path,
        inherited: Mapping[str, str],
        why_not: WhyNot = asked_freely,
    ) -> list[Finding]:
        """Found, executable, which version, logged in, and what should be said aloud.

        A program for which `why_not` has a reason is asked nothing.
        """
        ...


AGENTS: dict[str, str] = {
    "claude": "ralphloop.agents.claude:AGENT",
    "command": "ralphloop.agents.command:AGENT",
    "scripted": "ralphloop.agents.scripted:AGENT",
}


def load_agent(name: str, *, directories: Sequence[Path] = ()) -> Agent:
    """The agent of this name: one of ours, or a TOML file in one of the directories."""
    if place := AGENTS.get(name):
        module, _, attribute = place.partition(":")
        return cast("Agent", getattr(import_module(module), attribute))
    from ralphloop.agents.declared import declared_names, load_declared

    if (declared := load_declared(name, directories)) is not None:
        return declared
    known = ", ".join(sorted({*AGENTS, *declared_names(directories)}))
    raise InputError(f"there is no agent named {name!r}", f"choose one of: {known}")
