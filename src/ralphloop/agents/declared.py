"""Agents that are nothing but a command line; the prompt goes over stdin.

Most are a TOML file and no code (docs/reference/agents.md); the user's comes before ours of the
same name.  The others are programs of the user's own, which get the user's keys: any command
(`agent.command` is its argv), and our scripted one, for which it names the script.  That one is
shipped because a loop that can only be tried with a paid model is not tried at all.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

import msgspec

from ralphloop.agents.base import Agent, AgentRequest, Inquiry, Launch
from ralphloop.agents.environment import (
    API_KEYS,
    agent_environment,
    ask,
    clean_environment,
    find_program,
    missing_program,
    withheld_keys,
)
from ralphloop.agents.foresight import refusals_in
from ralphloop.atomic import write_atomic
from ralphloop.config.known_agents import SHIPPED
from ralphloop.config.model import AgentSection, Safety
from ralphloop.errors import AgentUnavailable, Finding, InputError, Level, RalphError
from ralphloop.proc.run import ourselves
from ralphloop.proc.sandbox import BOXED
from ralphloop.project import agent_directories
from ralphloop.room import read_regular

Words = tuple[str, ...]
_EXAMPLE = 'set it in ralph.toml, for example: command = ["./my-agent", "--quiet"]'
_FIX = 'name the script in ralph.toml: command = ["night.yaml"]'

_VERSION = re.compile(r"\d{1,6}(?:\.\d{1,6}){1,3}")
_PROMPT = "{prompt}"
_PROMPT_FILE = "{prompt_file}"
_LONGEST_WORD = 131_071  # of one argument, by the system
_MCP_TOOL = re.compile(r"mcp__(?P<server>[\w-]{1,100}?)__(?P<tool>[\w-]{1,100})")


class _SafetyFlags(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    minimal: Words | None = None
    moderate: Words | None = None
    strict: Words | None = None
    asking: Words | None = None
    reading: Words | None = None
    boxed: Words | None = None

    def of(self, level: Safety, env: Mapping[str, str] | None = None) -> Words | None:
        """The flags of a level; in a sandbox of ours an agent needs none of its own."""
        if env and env.get(BOXED) == "1" and self.boxed is not None and level != "minimal":
            return self.boxed
        flags: Words | None = getattr(self, level)
        return flags


class Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    fix: str
    ask: Words = ()
    files: Words = ()  # one of them, or one of the keys, is enough
    expires: str = ""  # where its end is written down: a file and the keys in it
    renewal: str = ""  # likewise what it is renewed with by itself
    lasts: str = ""  # how to make one that lasts, where that is not `fix`

    def is_there(self, keys: Words, env: Mapping[str, str], cwd: Path) -> bool:
        """A key is passed on, named in a file of variables, or somebody has logged in."""
        if any(map(env.get, keys)):
            return True
        home = Path(env.get("HOME") or "/")
        for file in self.files:
            place = home / file[2:] if file.startswith("~/") else cwd / file
            with suppress(OSError):
                if ".env" not in (place.name, place.suffix):
                    is_there = place.exists()
                else:
                    variables = read_regular(place).decode("utf-8", "replace")
                    is_there = any(f"{key}=" in variables for key in keys)
                if is_there:
                    return True
        return False


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    program: str
    reader: str = "text"
    protocol: Literal["stdin", "acp"] = "stdin"  # how it is spoken with
    start: Words
    resume: Words = ()
    model: Words = ()
    keys: Words = ()
    install: str = "set agent.binary in ralph.toml"
    tested: Words = ()
    note: str = ""
    allow: Words = ()
    home: Words = ()
    writes: Words = ()
    guards: Words = ()
    safety: _SafetyFlags = _SafetyFlags()
    env: dict[str, str] = {}
    login: Login | None = None
    # Files with instructions that it reads in a project, such as AGENTS.md.
    memory: Words = ()
    litter: Words = ()  # names it leaves in a project: never committed, never counted as work
    cannot: Words = ()  # what it does not do, each in a few words
    needs: Words = ()  # tools without which no story is done, by its own names
    refuses: Words = ()  # where its own settings refuse tools: files and the keys in them
    tries: Words = ()  # runs a command as its tools would, without a model
    paid_by_use: bool = False  # there is no subscription: every token has its price


class _TellsPrompt:
    """The prompt for a program that does not read it from its input."""

    def __init__(self, request: AgentRequest) -> None:
        self._request = request

    def word(self, word: str) -> str:
        """A word of the command line with the prompt, or the name of its file, in its place."""
        if _PROMPT_FILE in word:
            return word.replace(_PROMPT_FILE, str(self._file()))
        if _PROMPT not in word:
            return word
        prompt = self._request.prompt.replace("\0", "")
        whole = word.replace(_PROMPT, prompt)
        if len(whole.encode("utf-8", "replace")) > _LONGEST_WORD:
            message = "the prompt is too long for a word of a command line (128 KiB)"
            raise AgentUnavailable(message, "let its start say {prompt_file} instead of {prompt}")
        return whole

    def _file(self) -> Path:
        request = self._request
        place = request.settings_dir / f"prompt-{request.run_id}-{request.iteration}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        data = request.prompt.encode("utf-8", "replace")
        write_atomic(place, data, within=place.parent, durable=False)
        return place


class DeclaredAgent(Agent):
    def __init__(self, declaration: Declaration) -> None:
        self.it = declaration
        self.name = declaration.name
        self.keys = declaration.keys
        self.resumes = bool(declaration.resume) or declaration.protocol == "acp"
        self.paid_by_use = declaration.paid_by_use
        self.login = declaration.login.fix if declaration.login else ""

    @property
    def tells_login(self) -> bool:
        """Whether it can be told for nothing that somebody is logged in."""
        login = self.it.login
        return login is not None and bool(login.ask or login.files)

    def tells_login_life(self, env: Mapping[str, str]) -> bool:
        """Whether it can be told when a login ends; a key has no end that we would wait for."""
        login = self.it.login
        return any(map(env.get, self.it.keys)) or (login is not None and bool(login.expires))

    def launch(self, request: AgentRequest) -> Launch:
        env = agent_environment(request, defaults=self.it.env)
        for problem in self.refusals(request.config.safety, env):
            raise AgentUnavailable(problem.message, problem.fix)
        words = [self.program(request.config), *self.words(request, env)]
        if self.it.protocol == "acp":
            from ralphloop.agents.acp_client import AcpClient

            launch = request.launch(words, env, "acp", stdin=b"")
            return launch._replace(client=AcpClient(request))
        if not any(_PROMPT in word or _PROMPT_FILE in word for word in words):
            return request.launch(words, env, self.it.reader)
        told = _TellsPrompt(request)
        return request.launch([told.word(word) for word in words], env, self.it.reader, stdin=b"")

    def check(self, inquiry: Inquiry) -> list[Finding]:
        config, cwd, inherited, why_not, box = inquiry
        env = clean_environment(config, inherited)
        name = self.program(config)
        program = find_program(name, env, cwd)
        if program is None:
            return [missing_program(name, self.it.install, cwd)]
        # What nobody should have to find out: about permissions, and keys not passed on.
        about = [Finding(Level.INFO, self.it.note)] if self.it.note else []
        if config.safety == "minimal":
            skipped = f"{self.name} runs with all permission prompts skipped"
            about.append(Finding(Level.WARNING, skipped))
        if names := [one for one in config.allow if not self.allowing(one)]:
            message = f"agent.allow is not passed on to {self.name}: {', '.join(names)}"
            about.append(Finding(Level.INFO, message))
        if names := withheld_keys(config, inherited, self.it.keys):
            message = (
                f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} set but not passed on"
            )
            fix = "name it in agent.pass_env to bill that account"
            about.append(Finding(Level.INFO, message, fix))
        about += self.refusals(config.safety, env)
        for refusal in refusals_in(self.it.refuses, self.it.needs, env, cwd):
            message = f"{self.name} may not use {', '.join(refusal.tools)} here ({refusal.place})"
            about.append(Finding(Level.WARNING, message, "take that rule out of its settings"))
        if reason := why_not(program):
            there = f"{self.name}: {program} is there; not started: {reason}"
            return [Finding(Level.INFO, there), *about]
        answer = ask([program, "--version"], env, cwd, box)
        stated = _VERSION.search(answer.said) if answer and answer.returncode == 0 else None
        version = stated.group() if stated else ""
        return [self._stated(version), *about, *self.answers(inquiry, program, env, version)]

    def words(self, request: AgentRequest, env: Mapping[str, str]) -> Iterator[str]:
        config = request.config
        flags = self.it.safety
        resume = request.resume
        allowed = (word for name in config.allow for word in self.allowing(name))
        safety: Words | None = None
        if not request.tools:
            safety = flags.asking
        elif request.reads_only and env.get(BOXED) != "1":
            # In a sandbox of ours, which keeps it from writing, another one inside may not start.
            safety = flags.asking if flags.reading is None else flags.reading
        if safety is None:
            safety = (*(flags.of(config.safety, env) or ()), *allowed)
        lists: dict[str, Words] = {
            "{safety}": safety,
            "{model}": tuple(
                word.replace("{value}", config.model) for word in self.it.model if config.model
            ),
            "{args}": config.args,
            "{session}": (resume,) if resume else (),
        }
        for word in self.it.resume if resume and self.it.resume else self.it.start:
            yield from lists.get(word, (word,))

    def allowing(self, name: str) -> Words:
        """The words that let a tool run without asking; none where it cannot be told so."""
        match = _MCP_TOOL.fullmatch(name)
        return tuple(word.format(**match.groupdict()) for word in self.it.allow) if match else ()

    def refusals(self, safety: Safety, env: Mapping[str, str]) -> Iterator[Finding]:
        flags = self.it.safety
        if flags.of(safety, env) is None:
            known = ", ".join(level for level in get_args(Safety) if flags.of(level) is not None)
            message = f'{self.name} cannot be run with safety = "{safety}"'
            yield Finding(Level.ERROR, message, f"what it knows: {known}")

    def answers(
        self, inquiry: Inquiry, program: str, env: Mapping[str, str], version: str
    ) -> Iterator[Finding]:
        """What the program itself says of what it needs."""
        login = self.it.login
        asked = [program, *login.ask] if login and login.ask else []
        answer = ask(asked, env, inquiry.cwd, inquiry.box) if asked else None
        # Only warnings: with a provider of one's own no login is needed, and nobody can tell.
        if login and answer and answer.returncode != 0:
            yield Finding(Level.WARNING, f"{self.name} is not logged in", login.fix)
        if login and login.files and not login.is_there(self.it.keys, env, inquiry.cwd):
            yield Finding(Level.WARNING, f"{self.name} has neither a key nor a login", login.fix)

    def program(self, config: AgentSection) -> str:
        binary = config.binary or self.it.program
        # Only a tilde is replaced: `./x` must not become `x`, which would be looked for on PATH.
        return str(Path(binary).expanduser()) if binary.startswith("~") else binary

    def _stated(self, version: str) -> Finding:
        """The version found, and whether it is one that this release was tested with."""
        name = self.name
        tested = self.it.tested
        if not version:
            fix = f"run `{name} --version` to see what it says"
            return Finding(Level.WARNING, f"{name} does not state its version", fix)
        known_good = any(f"{version}.".startswith(f"{known}.") for known in tested)
        if known_good or not tested:
            return Finding(Level.INFO, f"{name} {version}")
        return Finding(Level.INFO, f"{name} {version} (tested with {', '.join(tested)})")


def load_declared(name: str, directories: Sequence[Path] = ()) -> DeclaredAgent | None:
    file = next((file for file in _declarations(directories) if file.stem == name), None)
    return None if file is None else DeclaredAgent(declaration(file))


def declaration(file: Path) -> Declaration:
    try:
        told = msgspec.convert(tomllib.loads(read_regular(file).decode("utf-8")), Declaration)
    except (OSError, ValueError) as error:
        # TOML, encoding and validation errors are all ValueErrors with a readable message.
        fix = "`ralph docs reference/agents` has all keys with an example"
        raise InputError(str(error), fix, place=file.name) from error
    if told.name != file.stem:
        message = f'its name is "{told.name}", and it is looked for as {file.stem}'
        fix = f'Call it {told.name}.toml, or set name = "{file.stem}" in it.'
        raise InputError(message, fix, place=file.name)
    return told


def declared_names(directories: Sequence[Path] = ()) -> tuple[str, ...]:
    return tuple(sorted({file.stem for file in _declarations(directories)}))


def shipped_declarations() -> tuple[Declaration, ...]:
    """Every agent that comes with us and is a program to be found on PATH."""
    return tuple(map(declaration, _declarations(())))


def litter_of(names: Iterable[str], root: Path) -> tuple[str, ...]:
    """What these agents leave in a project beside their work, as patterns of names."""
    found: dict[str, None] = {}
    for name in names:
        agent = load_declared(name, agent_directories(root))
        for pattern in agent.it.litter if agent else ():
            found[pattern.rstrip("/") + "/"] = None  # a file of that name, or a whole directory
    return tuple(found)


def memory_files(name: str, root: Path) -> tuple[str, ...]:
    """The files with instructions that an agent reads in a project; none where nobody says it."""
    agent = load_declared(name, agent_directories(root))
    return agent.it.memory if agent else ()


def declared_homes() -> Iterator[str]:
    """What the agents that come with us keep in the home directory."""
    for one in shipped_declarations():
        yield from one.home


def _declarations(directories: Sequence[Path]) -> Iterator[Path]:
    for directory in (*directories, SHIPPED):
        yield from sorted(directory.glob("*.toml"))


class CommandAgent(Agent):
    name = "command"
    keys = API_KEYS

    def launch(self, request: AgentRequest) -> Launch:
        config = request.config
        if not config.command:
            raise InputError('the agent "command" has no command', _EXAMPLE, place="agent.command")
        env = agent_environment(request, drop_keys=False)
        return request.launch((*config.command, *config.args), env, config.format)

    def check(self, inquiry: Inquiry) -> list[Finding]:
        config, cwd, inherited, *_ = inquiry
        if not config.command:
            return [Finding(Level.ERROR, 'the agent "command" has no command', _EXAMPLE)]
        env = clean_environment(config, inherited, drop_keys=False)
        if find_program(config.command[0], env, cwd) is None:
            fix = "check agent.command in ralph.toml"
            return [missing_program(config.command[0], fix, cwd)]
        return []


class ScriptedAgent(Agent):
    name = "scripted"  # it resumes nothing: a script foresees every start

    def launch(self, request: AgentRequest) -> Launch:
        from ralphloop.agents.script import STATE_VARIABLE, load_script

        path = _script_path(request.config, request.cwd)
        state = {STATE_VARIABLE: str(request.settings_dir / "scripted-state.json")}
        env = agent_environment(request, drop_keys=False, defaults=state)
        player = ourselves("ralphloop.agents.scripted_main")
        words = (*player, str(path), *request.conversation)
        return request.launch(words, env, load_script(path).format)

    def check(self, inquiry: Inquiry) -> list[Finding]:
        from ralphloop.agents.script import load_script

        try:
            path = _script_path(inquiry.config, inquiry.cwd)
            load_script(path)
        except RalphError as error:
            return [Finding(Level.ERROR, error.message, error.next_step or _FIX)]
        return [Finding(Level.INFO, f"a scripted agent plays {path.name}: no model is asked")]


def _script_path(config: AgentSection, cwd: Path) -> Path:
    if len(config.command) != 1:
        raise InputError('the agent "scripted" has no script', _FIX, place="agent.command")
    return cwd / config.command[0]


COMMAND = CommandAgent()
SCRIPTED = ScriptedAgent()
