"""Agents that are nothing but a command line: one TOML file each, no code.

    name = "codex"                       # the name in ralph.toml
    program = "codex"                    # found on PATH unless agent.binary says otherwise
    reader = "codex"                     # how its output is read
    start = ["exec", "--json", "{safety}", "{model}", "{args}", "-"]
    resume = ["exec", "resume", "{safety}", "{model}", "{args}", "{session}", "-"]   # optional
    model = ["-m", "{value}"]            # what {model} becomes where a model is set
    keys = ["OPENAI_API_KEY"]            # worth a note where they are set but not passed on
    install = "npm install -g @openai/codex"
    tested = ["0.166"]
    note = "…"                           # said at the start at every level, optional
    [safety]                             # what {safety} becomes; a level left out is refused
    minimal = ["--yolo"]
    moderate = []
    strict = []
    asking = ["--read-only"]             # instead, where it is only asked something; optional
    [env]                                # defaults for its environment
    NO_UPDATE = "1"
    [login]                              # optional: asks whether it is logged in
    ask = ["login", "status"]            # exit code 0 means yes
    fix = "codex login"

The prompt goes over stdin.  A file of the same name in a directory of the user comes before ours.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import msgspec

from ralphloop.agents.base import AgentRequest, Launch
from ralphloop.agents.environment import agent_environment, clean_environment, said_aloud
from ralphloop.agents.programs import (
    WhyNot,
    ask,
    asked_freely,
    find_program,
    missing_program,
    not_started,
    program_of,
    version_of,
    version_problem,
)
from ralphloop.config.model import AgentSection, Safety
from ralphloop.errors import AgentUnavailable, Finding, InputError, Level

Words = tuple[str, ...]


class _SafetyFlags(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    minimal: Words | None = None
    moderate: Words | None = None
    strict: Words | None = None
    asking: Words | None = None

    def of(self, level: Safety) -> Words | None:
        flags: Words | None = getattr(self, level.value)
        return flags

    def levels(self) -> str:
        return ", ".join(level for level in Safety if self.of(level) is not None)


class _Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ask: Words
    fix: str


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of one file."""

    name: str
    program: str
    reader: str
    start: Words
    resume: Words = ()
    model: Words = ()
    keys: Words = ()
    install: str = "set agent.binary in ralph.toml"
    tested: Words = ()
    note: str = ""
    safety: _SafetyFlags = _SafetyFlags()
    env: dict[str, str] = {}
    login: _Login | None = None


class DeclaredAgent:
    """Starts what a declaration describes."""

    def __init__(self, declaration: Declaration) -> None:
        self._it = declaration

    @property
    def name(self) -> str:
        return self._it.name

    @property
    def resumes(self) -> bool:
        return bool(self._it.resume)

    def launch(self, request: AgentRequest) -> Launch:
        config = request.config
        self._demand(config.safety)
        template = self._it.resume if request.resume and self._it.resume else self._it.start
        return Launch(
            argv=(
                program_of(config.binary, self._it.program),
                *self._filled_in(template, request),
            ),
            env=agent_environment(request, defaults=self._it.env),
            stdin=request.stdin,
            cwd=request.cwd,
            reader=self._it.reader,
            mark=request.mark,
        )

    def check(
        self,
        config: AgentSection,
        *,
        cwd: Path,
        inherited: Mapping[str, str],
        why_not: WhyNot = asked_freely,
    ) -> list[Finding]:
        env = clean_environment(config, inherited)
        name = program_of(config.binary, self._it.program)
        program = find_program(name, env, cwd)
        if program is None:
            return [missing_program(name, self._it.install, cwd)]
        try:
            self._demand(config.safety)
        except AgentUnavailable as error:
            return [Finding(Level.ERROR, error.message, error.next_step)]
        about = said_aloud(self.name, config, inherited, self._it.keys, self._it.note)
        if reason := why_not(program):
            return [not_started(self.name, program, reason), *about]
        return [
            version_problem(self._it.name, version_of(program, env), self._it.tested),
            *about,
            *self._login_problems(program, env),
        ]

    def _demand(self, safety: Safety) -> None:
        if self._it.safety.of(safety) is None:
            raise AgentUnavailable(
                f'{self.name} cannot be run with safety = "{safety}"',
                f"what it knows: {self._it.safety.levels()}",
            )

    def _filled_in(self, template: Words, request: AgentRequest) -> Iterator[str]:
        config, flags = request.config, self._it.safety
        asking = None if request.tools else flags.asking
        lists: dict[str, Words] = {
            "{safety}": asking if asking is not None else flags.of(config.safety) or (),
            "{model}": _with_value(self._it.model, config.model),
            "{args}": config.args,
            "{session}": (request.resume,) if request.resume else (),
        }
        for word in template:
            yield from lists.get(word, (word,))

    def _login_problems(self, program: str, env: Mapping[str, str]) -> list[Finding]:
        login = self._it.login
        answer = ask([program, *login.ask], env) if login else None
        if login is None or answer is None or answer.exit_code == 0:
            return []
        # Only a warning: with a provider of one's own no login is needed, and nobody can tell.
        return [Finding(Level.WARNING, f"{self.name} is not logged in", login.fix)]


def _with_value(flags: Words, value: str) -> Words:
    return tuple(flag.replace("{value}", value) for flag in flags) if value else ()


def load_declared(name: str, directories: Sequence[Path] = ()) -> DeclaredAgent | None:
    """The agent that a file of this name declares."""
    for file in _declarations(directories):
        if file.stem == name:
            return DeclaredAgent(_read(file))
    return None


def declared_names(directories: Sequence[Path] = ()) -> tuple[str, ...]:
    """Names of all declared agents."""
    return tuple(sorted({file.stem for file in _declarations(directories)}))


def _declarations(directories: Sequence[Path]) -> Iterator[Path]:
    ours = Path(str(files("ralphloop.agents") / "data"))
    for directory in (*directories, ours):
        yield from sorted(directory.glob("*.toml"))


def _read(file: Path) -> Declaration:
    try:
        return msgspec.convert(tomllib.loads(file.read_text("utf-8")), Declaration)
    except (OSError, ValueError) as error:
        # TOML, encoding and validation errors are all ValueErrors with a readable message.
        raise InputError(
            str(error), "see `ralphloop.agents.declared` for the keys", place=file.name
        ) from error
