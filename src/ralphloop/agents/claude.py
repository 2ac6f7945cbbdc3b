"""Claude Code, unattended.

Partial messages are asked for, so that a long answer is not silence.  The prompt goes over stdin
alone: an argument ends at 128 KiB and may look like a flag.  The session id is ours, so that a
conversation is resumed by name and never by "the latest".  Turns and money are capped by the agent
itself too: it can stop between two tool calls and we cannot.

Its flags differ between releases, and an unknown one ends the start at once: a program is asked for
its `--help` once, and what can be done without is left out and said before the night.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ralphloop.agents.base import AgentRequest, Inquiry
from ralphloop.agents.declared import DeclaredAgent, Words, declaration
from ralphloop.agents.environment import ask, find_program, outer_sandbox, withheld_keys
from ralphloop.atomic import write_atomic
from ralphloop.config.known_agents import SHIPPED
from ralphloop.config.model import Safety
from ralphloop.errors import Finding, Level
from ralphloop.proc.sandbox import BOXED, Box

_SMALLEST_BUDGET_USD = 0.01
_OUTER_SANDBOX = (
    "if this machine is itself a sandbox that may be lost, "
    'say so in ralph.toml: agent.env = { IS_SANDBOX = "1" }'
)

_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]{1,60}")
_UPDATE = "update Claude Code: claude update, or npm install -g @anthropic-ai/claude-code"
# Flags that a release may not know, and what follows where one is left out; nothing is said of
# `--tools` (a question about the status block is then asked with tools at hand), and `--settings`
# cannot be done without.  `--max-turns` is in no help and known to all.
_NOT_KNOWN_TO_ALL = {
    "--settings": "",
    "--tools": "",
    "--permission-prompts": "what is not allowed is refused all the same, but the agent may try"
    " it again",
    "--max-budget-usd": "money is looked at between two starts only",
    "--include-partial-messages": "a long answer is silence until it ends",
    "--setting-sources": "settings.local.json counts too",
}

_TOOLS = (
    *("Agent", "Edit", "Glob", "Grep", "LS", "MultiEdit", "NotebookEdit", "NotebookRead", "Read"),
    *("Skill", "Task", "TodoWrite", "Write"),
)
_NETWORK_TOOLS = ("WebFetch", "WebSearch")
_READING_TOOLS = ("Glob", "Grep", "LS", "Read")
_WRITING_TOOLS = ("Agent", "Bash", "Edit", "MultiEdit", "NotebookEdit", "Task", "Write")

# Work for a person (publishing, other machines, other rights) and what no story needs to read.
_COMMANDS_DENIED = (
    *("curl", "doas", "gh", "git push", "npm publish", "scp", "ssh", "su", "sudo"),
    *("twine upload", "wget"),
)
_PLACES_DENIED = ".aws/** .config/gh/** .gnupg/** .netrc .npmrc .pypirc .ssh/**".split()
_DENIED = (
    *_NETWORK_TOOLS,
    *(f"Bash({command}:*)" for command in _COMMANDS_DENIED),
    *(f"Read(~/{place})" for place in _PLACES_DENIED),
    *("Read(**/.env)", "Read(**/.env.*)", "Edit(.ralph/**)", "Edit(.git/**)"),
)


class ClaudeAgent(DeclaredAgent):
    tells_login = True

    def words(self, request: AgentRequest, env: Mapping[str, str]) -> Iterator[str]:
        program = find_program(self.program(request.config), env, request.cwd)
        unknown = _unknown_flags(_usage_of(program or "", env, request.cwd, request.box))
        yield from self.it.start
        for flag in _flags(request):
            if unknown.isdisjoint(flag[:1]):
                yield from flag
        yield from request.config.args

    def allowing(self, name: str) -> Words:
        return (name,)  # in the settings, whatever it is

    def refusals(self, safety: Safety, env: Mapping[str, str]) -> Iterator[Finding]:
        boxed = env.get(BOXED) == "1" or outer_sandbox(env)
        if safety == "minimal" and os.geteuid() == 0 and not boxed:
            message = "Claude Code does not skip permission prompts for root"
            yield Finding(Level.ERROR, message, f'use safety = "moderate", or, {_OUTER_SANDBOX}')

    def answers(
        self, inquiry: Inquiry, program: str, env: Mapping[str, str], version: str
    ) -> Iterator[Finding]:
        usage = _usage_of(program, env, inquiry.cwd, inquiry.box)
        safety = inquiry.config.safety
        unknown = _unknown_flags(usage)
        name = f"claude {version}".rstrip()
        if safety == "minimal":
            unknown -= {"--settings", "--permission-prompts"}
        if "--settings" in unknown:
            message = f'safety = "{safety}" needs --settings, which {name} does not know'
            yield Finding(Level.ERROR, message, _UPDATE)
        for flag in sorted(unknown):
            if follows := _NOT_KNOWN_TO_ALL[flag]:
                message = f"{name} does not know {flag}: {follows}"
                yield Finding(Level.WARNING, message, _UPDATE)
        # A release without that command would take the words for a prompt, and spend money on it.
        has_it = re.search(r"^ {1,8}auth\b", usage, re.MULTILINE)
        asked = [program, "auth", "status"]
        answer = ask(asked, env, inquiry.cwd, inquiry.box) if has_it else None
        if answer and re.search(rb'"loggedIn"\s*:\s*false\b', answer.stdout):
            fix = self.login
            if names := withheld_keys(inquiry.config, inquiry.inherited, self.it.keys):
                fix += f', or pass your key on: agent.pass_env = ["{names[0]}"]'
            yield Finding(Level.ERROR, "claude is not logged in", fix)


def _flags(request: AgentRequest) -> Iterator[tuple[str, ...]]:
    yield ("--include-partial-messages",)
    yield "--setting-sources", "user,project"
    yield request.conversation
    if request.config.model:
        yield "--model", request.config.model
    if request.max_turns > 0:
        yield "--max-turns", str(request.max_turns)
    if not request.tools:
        yield "--tools", ""
    elif request.reads_only:
        yield "--tools", ",".join(_READING_TOOLS)
    if request.budget_usd is not None:
        yield "--max-budget-usd", f"{max(request.budget_usd, _SMALLEST_BUDGET_USD):.4f}"
    if request.config.safety == "minimal" and not request.reads_only:
        yield ("--dangerously-skip-permissions",)
        return
    yield "--settings", str(_write_settings(request))
    # Nobody is there to be asked; said so, the model is told not to try again.
    yield "--permission-prompts", "none"


def _write_settings(request: AgentRequest) -> Path:
    """Put the settings file where the agent is told to look; unchanged files are not touched."""
    directory = request.settings_dir
    kind = str(request.config.safety)
    tools = ("Bash", *_TOOLS, *request.config.allow)
    permissions: dict[str, Words] = {"allow": (*tools, *_NETWORK_TOOLS)}
    if request.reads_only:
        kind = "reading"
        denied = (*_WRITING_TOOLS, *_NETWORK_TOOLS, *(one for one in _DENIED if "Read(" in one))
        permissions = {"allow": _READING_TOOLS, "deny": denied}
    elif kind == "strict":  # in a sandbox of ours, or not at all
        permissions = {"allow": tools, "deny": _DENIED}
    path = directory / f"claude-{kind}.json"
    # A person's own mode, such as "plan", is for sessions in which somebody sits.
    settings = msgspec.json.encode({"permissions": {"defaultMode": "default", **permissions}})
    data = msgspec.json.format(settings, indent=2) + b"\n"
    try:
        if path.read_bytes() == data:
            return path
    except FileNotFoundError:
        directory.mkdir(parents=True, exist_ok=True)
    write_atomic(path, data, within=directory, durable=False)
    return path


_answers: dict[tuple[str, int, int], str] = {}


def _usage_of(program: str, env: Mapping[str, str], cwd: Path, box: Box | None) -> str:
    """What its help says; empty where it cannot be asked."""
    try:
        found = os.stat(program)  # noqa: PTH116 - a path as text is all that is needed
    except OSError:
        return ""
    key = program, found.st_ino, found.st_mtime_ns
    if key not in _answers:
        answer = ask([program, "--help"], env, cwd, box)
        _answers[key] = answer.said[:65536] if answer else ""
    return _answers[key]


def _unknown_flags(usage: str) -> frozenset[str]:
    known = set(_FLAG.findall(usage))
    return frozenset(_NOT_KNOWN_TO_ALL.keys() - known if "--output-format" in known else ())


AGENT = ClaudeAgent(declaration(SHIPPED / "claude.toml"))
