"""Claude Code, unattended.

The prompt goes over stdin alone (an argument ends at 128 KiB and may look like a flag).  The
output is stream-json with partial messages, so that a long answer is not silence.  The session id
is ours, so that a conversation can be resumed by name and never by "the latest".  Turns and money
are capped by the agent itself too, because it can stop between two tool calls and we cannot.

What Claude Code may do at each level of safety, as the settings file we hand to it.  The file goes
by `--settings` from a directory of ours, never into the user's own settings; user and project
settings stay in force beside it.

The flags that this Claude Code knows, by its own `--help`.  Releases of a year differ in them, and
an unknown one ends the start at once.  What can be done without is left out, and what follows is
said before the night.  A program is asked once for as long as it is the same file; one whose answer
lists no flags is taken for a newest one.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ralphloop.agents.base import AgentRequest, Launch
from ralphloop.agents.environment import (
    agent_environment,
    clean_environment,
    said_aloud,
    withheld_keys,
)
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
from ralphloop.atomic import write_atomic
from ralphloop.config.model import AgentSection, Safety
from ralphloop.errors import AgentUnavailable, Finding, Level

TESTED = ("2.0.76", "2.1")

_INSTALL = "npm install -g @anthropic-ai/claude-code, or set agent.binary in ralph.toml"
_KEYS = frozenset({"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"})
_SANDBOX_WORDS = ("IS_SANDBOX", "CLAUDE_CODE_BUBBLEWRAP")
_SMALLEST_BUDGET_USD = 0.01

# Unless the user says otherwise: no side traffic, startup failures as a result line, no work that
# outlives the answer, and a stream that falls silent is retried after two minutes, not five.
_DEFAULTS = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_STARTUP_FAILURE_RESULTS": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS": "120000",
}

_ROOT_MESSAGE = "Claude Code does not skip permission prompts for root"
_OUTER_SANDBOX = (
    "if this machine is itself a sandbox that may be lost, "
    'say so in ralph.toml: agent.env = { IS_SANDBOX = "1" }'
)
_ROOT_FIX = f'use safety = "moderate", or, {_OUTER_SANDBOX}'


class ClaudeAgent:
    """Starts `claude -p`."""

    name = "claude"
    resumes = True

    def launch(self, request: AgentRequest) -> Launch:
        config = request.config
        env = agent_environment(request, defaults=_DEFAULTS)
        if config.safety is Safety.MINIMAL and _refused_to_root(env):
            raise AgentUnavailable(_ROOT_MESSAGE, _ROOT_FIX)
        name = program_of(config.binary, "claude")
        usage = usage_of(find_program(name, env, request.cwd) or "", env)
        flags = (
            ("-p",),
            ("--output-format", "stream-json"),
            ("--verbose",),
            ("--include-partial-messages",),
            ("--setting-sources", "user,project"),
            request.conversation,
            *_limits(request),
            *_permissions(request, env),
        )
        unknown = unknown_flags(usage)
        known = (word for flag in flags if unknown.isdisjoint(flag[:1]) for word in flag)
        return Launch(
            argv=(name, *known, *config.args),
            env=env,
            stdin=request.stdin,
            cwd=request.cwd,
            reader="claude",
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
        name = program_of(config.binary, "claude")
        program = find_program(name, env, cwd)
        if program is None:
            return [missing_program(name, _INSTALL, cwd)]
        about = [
            *said_aloud(self.name, config, inherited, _KEYS),
            *_safety_problems(config.safety, env),
        ]
        if reason := why_not(program):
            return [not_started(self.name, program, reason), *about]
        version = version_of(program, env)
        return [
            version_problem("claude", version, TESTED),
            *about,
            *flag_problems(usage_of(program, env), version, config.safety),
            *_login_problems(program, config, env, inherited),
        ]


def _limits(request: AgentRequest) -> Iterator[tuple[str, ...]]:
    if request.config.model:
        yield "--model", request.config.model
    if request.max_turns > 0:
        yield "--max-turns", str(request.max_turns)
    if not request.tools:
        yield "--tools", ""
    if request.budget_usd is not None:
        yield "--max-budget-usd", f"{max(request.budget_usd, _SMALLEST_BUDGET_USD):.4f}"


def _permissions(request: AgentRequest, env: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    safety = request.config.safety
    if safety is Safety.MINIMAL:
        yield ("--dangerously-skip-permissions",)
        return
    settings = write_settings(request.settings_dir, safety, sandboxed=_in_sandbox(env))
    yield "--settings", str(settings)
    # Nobody is there to be asked; said so, the model is told not to try again.
    yield "--permission-prompts", "none"


def _in_sandbox(env: Mapping[str, str]) -> bool:
    """Somebody said that the whole machine is one."""
    return any(env.get(word) == "1" for word in _SANDBOX_WORDS)


def _refused_to_root(env: Mapping[str, str]) -> bool:
    return os.geteuid() == 0 and not _in_sandbox(env)


def _safety_problems(safety: Safety, env: Mapping[str, str]) -> list[Finding]:
    if safety is Safety.MINIMAL and _refused_to_root(env):
        return [Finding(Level.ERROR, _ROOT_MESSAGE, _ROOT_FIX)]
    if safety is Safety.STRICT and sys.platform == "linux" and not _in_sandbox(env):
        missing = [name for name in ("bwrap", "socat") if not shutil.which(name)]
        if missing:
            verb = "is" if len(missing) == 1 else "are"
            message = f'safety = "strict" needs a sandbox: {" and ".join(missing)} {verb} missing'
            fix = f"install bubblewrap and socat with your package manager, or {_OUTER_SANDBOX}"
            return [Finding(Level.ERROR, message, fix)]
    return []


def _login_problems(
    program: str, config: AgentSection, env: Mapping[str, str], inherited: Mapping[str, str]
) -> list[Finding]:
    if _logged_in(program, env) is not False:
        return []
    fix = "run `claude` once and log in"
    if names := withheld_keys(config, inherited, _KEYS):
        fix += f', or pass your key on: agent.pass_env = ["{names[0]}"]'
    return [Finding(Level.ERROR, "claude is not logged in", fix)]


def _logged_in(program: str, env: Mapping[str, str]) -> bool | None:
    """What `claude auth status` says; None where it cannot be asked."""
    # A release without that command would take the words for a prompt, and spend money on it.
    if not re.search(r"^ {1,8}auth\b", usage_of(program, env), re.MULTILINE):
        return None
    answer = ask([program, "auth", "status"], env)
    try:
        status = msgspec.json.decode(answer.output, type=_AuthStatus) if answer else None
    except msgspec.DecodeError:
        return None
    return status.loggedIn if status else None


class _AuthStatus(msgspec.Struct):
    loggedIn: bool | None = None  # noqa: N815 its name, not ours


AGENT = ClaudeAgent()


_TOOLS = (
    *("Agent", "Edit", "Glob", "Grep", "LS", "MultiEdit", "NotebookEdit", "NotebookRead", "Read"),
    *("Skill", "Task", "TodoWrite", "Write"),
)
_NETWORK_TOOLS = ("WebFetch", "WebSearch")

# Work for a person (publishing, other machines, other rights) and what no story needs to read.
_DENIED = (
    *_NETWORK_TOOLS,
    *(
        f"Bash({command}:*)"
        for command in ("curl", "doas", "gh", "git push", "npm publish", "scp", "ssh", "su")
    ),
    *(f"Bash({command}:*)" for command in ("sudo", "twine upload", "wget")),
    *(f"Read(~/{place})" for place in (".aws/**", ".config/gh/**", ".gnupg/**", ".netrc")),
    *(f"Read(~/{place})" for place in (".npmrc", ".pypirc", ".ssh/**")),
    *("Read(**/.env)", "Read(**/.env.*)", "Edit(.ralph/**)", "Edit(.git/**)"),
)

_SANDBOX = {
    "enabled": True,
    "failIfUnavailable": True,
    "autoAllowBashIfSandboxed": True,
    "allowUnsandboxedCommands": False,
}


def settings_for(safety: Safety, *, sandboxed: bool) -> dict[str, object]:
    """The settings of `moderate` or `strict`; `sandboxed`: the machine around us is one."""
    if safety is not Safety.STRICT:
        return {"permissions": {"allow": ["Bash", *_TOOLS, *_NETWORK_TOOLS]}}
    if sandboxed:
        return {"permissions": {"allow": ["Bash", *_TOOLS], "deny": list(_DENIED)}}
    # Bash is let through by the sandbox alone: outside of it nothing runs.
    return {"permissions": {"allow": list(_TOOLS), "deny": list(_DENIED)}, "sandbox": _SANDBOX}


def write_settings(directory: Path, safety: Safety, *, sandboxed: bool) -> Path:
    """Put the settings file where the agent is told to look; unchanged files are not touched."""
    path = directory / f"claude-{safety}.json"
    settings = msgspec.json.encode(settings_for(safety, sandboxed=sandboxed))
    data = msgspec.json.format(settings, indent=2) + b"\n"
    try:
        if path.read_bytes() == data:
            return path
    except FileNotFoundError:
        directory.mkdir(parents=True, exist_ok=True)
    write_atomic(path, data, within=directory, durable=False)
    return path


_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]{1,60}")
_UPDATE = "update Claude Code: claude update, or npm install -g @anthropic-ai/claude-code"
_SETTINGS, _PROMPTS = "--settings", "--permission-prompts"
_TOOLS_FLAG = "--tools"  # without it a question about the status block is asked with tools at hand
# What follows where it is left out.  `--max-turns` is in no help and known to all.
_OPTIONAL = {
    _PROMPTS: "what is not allowed is refused all the same, but the agent may try it again",
    "--max-budget-usd": "money is looked at between two starts only",
    "--include-partial-messages": "a long answer is silence until it ends",
    "--setting-sources": "settings.local.json counts too",
}

_answers: dict[tuple[str, int, int], str] = {}


def usage_of(program: str, env: Mapping[str, str]) -> str:
    """What its help says; empty where it cannot be asked."""
    try:
        found = os.stat(program)  # noqa: PTH116 - a path as text is all that is needed
    except OSError:
        return ""
    key = program, found.st_ino, found.st_mtime_ns
    if key not in _answers:
        answer = ask([program, "--help"], env)
        _answers[key] = answer.output if answer else ""
    return _answers[key]


def unknown_flags(usage: str) -> frozenset[str]:
    """The flags of ours that its help does not list."""
    known = set(_FLAG.findall(usage))
    return frozenset() if "--output-format" not in known else frozenset(_ours() - known)


def flag_problems(usage: str, version: str | None, safety: Safety) -> Iterator[Finding]:
    """What cannot be kept with this release, and what follows from what is left out."""
    unknown, name = unknown_flags(usage), f"claude {version or ''}".rstrip()
    if safety is Safety.MINIMAL:
        unknown -= {_SETTINGS, _PROMPTS}
    if _SETTINGS in unknown:
        message = f'safety = "{safety}" needs --settings, which {name} does not know'
        yield Finding(Level.ERROR, message, _UPDATE)
    for flag in sorted(unknown & _OPTIONAL.keys()):
        yield Finding(Level.WARNING, f"{name} does not know {flag}: {_OPTIONAL[flag]}", _UPDATE)


def _ours() -> set[str]:
    return {_SETTINGS, _TOOLS_FLAG, *_OPTIONAL}
