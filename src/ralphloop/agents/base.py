"""What an agent is to the supervisor: a command line, an environment, a prompt, a reader.

`AGENTS` maps names to the place of their adapter, so that only the one in use is imported; agents
that differ in nothing but flags are TOML files (`declared`).  Adapters start nothing themselves.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ralphloop.config.model import AgentSection
from ralphloop.core.model import Value
from ralphloop.errors import Finding, InputError
from ralphloop.proc.sandbox import Box


def mark_of(run_id: str, iteration: int) -> str:
    """What every process of one start carries, known again after a crash from the journal."""
    return f"{run_id}/{iteration}"


class Client(Protocol):
    """Speaks with an agent over its pipes, for one turn."""

    def greeting(self) -> bytes:
        """What is said first."""

    def replies(self, dialect: Any) -> Iterator[bytes]:
        """Answers to everything the agent sent that waits for one."""

    def goodbye(self, dialect: Any) -> bytes:
        """The wish that the turn be ended; empty where none has begun."""


class Launch(NamedTuple):
    argv: tuple[str, ...]
    env: Mapping[str, str]
    stdin: bytes
    cwd: Path
    reader: str  # name of the reader for its output
    mark: str
    box: Box | None = None
    model: str = ""  # that the settings name
    resumed: str = ""  # the conversation that is gone on with
    client: Client | None = None  # who speaks with it, where it is a conversation


class AgentRequest(Value, kw_only=True):
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
    box: Box | None = None  # what it is confined to
    tools: bool = True  # False: a question only, where the agent can be started so
    reads_only: bool = False  # it looks at the work tree and changes nothing, where it can be told

    @property
    def conversation(self) -> tuple[str, ...]:
        """The flags that name it, as Claude Code and our own scripted agent understand them."""
        if self.resume:
            return "--resume", self.resume
        return ("--session-id", self.session_id) if self.session_id else ()

    def launch(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        reader: str,
        *,
        stdin: bytes | None = None,
    ) -> Launch:
        """This start, by these words; the prompt goes over stdin unless they hold it."""
        if stdin is None:
            stdin = self.prompt.encode("utf-8", "replace")
        mark = mark_of(self.run_id, self.iteration)
        return Launch(
            argv=tuple(argv),
            env=env,
            stdin=stdin,
            cwd=self.cwd,
            reader=reader,
            mark=mark,
            box=self.box,
            model=self.config.model,
            resumed=self.resume or "",
        )


class Inquiry(NamedTuple):
    """What is asked before anything is spent: would this agent work, with these settings, here?"""

    config: AgentSection
    cwd: Path
    inherited: Mapping[str, str]
    # Why a program that was found must not be started; empty where it may, as before a run.
    why_not: Callable[[str], str] = lambda _program: ""
    box: Box | None = None  # what it is confined to


class Agent(Protocol):
    name: str
    keys: Collection[str] = ()  # variables by which its work may be billed
    login: str = ""  # what to do where its login was refused; empty where nobody knows
    resumes: bool = False  # a conversation that has ended can be gone on with
    paid_by_use: bool = False  # there is no subscription: every token has its price

    def launch(self, request: AgentRequest) -> Launch:
        """The process to start; raises `AgentUnavailable` where the configuration forbids it."""

    def check(self, inquiry: Inquiry) -> list[Finding]:
        """Found, executable, which version, logged in, and what should be said aloud."""


AGENTS: dict[str, str] = {
    "claude": "ralphloop.agents.claude:AGENT",
    "command": "ralphloop.agents.declared:COMMAND",
    "scripted": "ralphloop.agents.declared:SCRIPTED",
}


def load_agent(name: str, *, directories: Sequence[Path] = ()) -> Agent:
    """The agent of this name: one of ours, or a TOML file in one of the directories."""
    if place := AGENTS.get(name):
        module, _, attribute = place.partition(":")
        ours: Agent = getattr(import_module(module), attribute)
        return ours
    from ralphloop.agents.declared import declared_names, load_declared

    if (declared := load_declared(name, directories)) is not None:
        return declared
    known = ", ".join(sorted({*AGENTS, *declared_names(directories)}))
    raise InputError(f"there is no agent named {name!r}", f"choose one of: {known}")
