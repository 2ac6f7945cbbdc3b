"""Where an agent is started: its program, its environment, and simple questions to it beforehand.

The environment is ours, minus variables by which a parent Claude session is recognised (a nested
start refuses to work), git's that point at another repository, and API keys (a stray key bills
another account) unless the configuration names them.  The user's own programs get those keys.
"""

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ralphloop.agents.base import Agent, AgentRequest, mark_of
from ralphloop.config.model import SANDBOX_WORDS, AgentSection
from ralphloop.errors import Finding, Level
from ralphloop.proc import programs
from ralphloop.proc.process_table import MARK_VARIABLE
from ralphloop.proc.run import CommandEnd, Output, run_command
from ralphloop.proc.sandbox import Box
from ralphloop.repo.git import OTHER_REPOSITORY
from ralphloop.trust import TRUST_VARIABLE

API_KEYS = frozenset(
    f"{account}_API_KEY"
    for account in (
        *("ANTHROPIC", "AZURE_OPENAI", "CODEX", "DEEPSEEK", "GEMINI", "GOOGLE", "GROQ", "MISTRAL"),
        *("GOOGLE_GENERATIVE_AI", "OPENAI", "OPENROUTER", "XAI"),
    )
) | {"ANTHROPIC_AUTH_TOKEN"}

# Nobody sits there to write a message, to sort a rebase or to type a password: git goes on with
# what it has, or fails at once.
NOBODY_THERE = {"GIT_EDITOR": ":", "GIT_SEQUENCE_EDITOR": ":", "GIT_TERMINAL_PROMPT": "0"}

_PATIENCE_S = 20.0
_PARENT_SESSION = re.compile(
    r"CLAUDECODE|CLAUDE_(?:PID|ENV_FILE|PROJECT_DIR|PLUGIN_ROOT|AGENT_SDK_VERSION|SESSION_.*)"
    r"|CLAUDE_CODE_(?:ENTRYPOINT|EXECPATH|SSE_PORT|CHILD_SESSION|HOST_SESSION_ID|SESSION.*"
    r"|PARENT_.*|REMOTE(?:_.*)?)"
)


def clean_environment(
    config: AgentSection, inherited: Mapping[str, str], *, drop_keys: bool = True
) -> dict[str, str]:
    """What of our own environment an agent gets, and what the configuration adds to it."""
    unwanted = {*OTHER_REPOSITORY, *(API_KEYS if drop_keys else ()), TRUST_VARIABLE}
    kept = {
        name: value
        for name, value in inherited.items()
        if name in config.pass_env or (name not in unwanted and not _PARENT_SESSION.fullmatch(name))
    }
    return {**kept, **config.env}


def agent_environment(
    request: AgentRequest, *, drop_keys: bool = True, defaults: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The whole environment of one start; the configuration has the last word."""
    # Story ids may hold anything; a variable holds neither NUL nor half a character.
    story = (request.story_id or "").replace("\0", "").encode("utf-8", "replace").decode()
    return {
        **(defaults or {}),
        **clean_environment(request.config, request.inherited, drop_keys=drop_keys),
        **NOBODY_THERE,
        "RALPH_RUN_ID": request.run_id,
        "RALPH_ITERATION": str(request.iteration),
        "RALPH_STORY_ID": story,
        **request.config.env,
        # Not theirs to change: it is how everything the agent starts is found again.
        MARK_VARIABLE: mark_of(request.run_id, request.iteration),
    }


def outer_sandbox(env: Mapping[str, str]) -> str:
    """The word by which somebody says that the whole machine is a sandbox; empty: nobody does."""
    return next((word for word in SANDBOX_WORDS if env.get(word) == "1"), "")


def withheld_keys(
    config: AgentSection, inherited: Mapping[str, str], relevant: Iterable[str]
) -> list[str]:
    """Keys that are set here and not passed on, to be said aloud."""
    wanted = {*config.pass_env, *config.env}
    return sorted(name for name in relevant if inherited.get(name) and name not in wanted)


def where_to_look(agent: Agent, config: AgentSection, inherited: Mapping[str, str]) -> str:
    """The key that was refused, or how to log in; empty for a program we know nothing of."""
    env = clean_environment(config, inherited)
    keys = [name for name in agent.keys if env.get(name)]
    key = f"look at {' and '.join(keys)}, which {agent.name} was given"
    return key if keys and agent.login else agent.login


def local_time(now: float, env: Mapping[str, str]) -> datetime:
    """This moment in the zone that a program with this environment takes for local."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    zone = None
    name = env.get("TZ")
    try:
        if name is not None:
            zone = ZoneInfo(name.removeprefix(":") or "UTC")
        else:
            with Path("/etc/localtime").open("rb") as rules:
                zone = ZoneInfo.from_file(rules)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass  # a POSIX rule, no zone data, no file: then the offset that holds now
    return datetime.fromtimestamp(now, UTC).astimezone(zone)


def find_program(program: str, env: Mapping[str, str], cwd: Path) -> str | None:
    """The path that would be started, or None; a name with a slash is relative to `cwd`."""
    if "/" in program:
        program = str(cwd / program)
    return shutil.which(program, path=env.get("PATH"))


def missing_program(program: str, install: str, cwd: Path) -> Finding:
    path = cwd / program
    if "/" in program and path.is_file() and not os.access(path, os.X_OK):
        return Finding(Level.ERROR, f"{program} is not executable", f"chmod +x {program}")
    where = "does not exist" if "/" in program else "is not on PATH"
    return Finding(Level.ERROR, f"{program} {where}", install)


def ask(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path, box: Box | None = None
) -> CommandEnd | None:
    """Run a program that answers and exits; None where it does not.

    One that an agent could have written, in the project's own packages, answers in its box.
    """
    try:
        if box is not None and programs.is_distrusted(argv[0]):
            argv, env = box.start(argv, cwd, env)
        ended = run_command(argv, env=env, timeout_s=_PATIENCE_S, output=Output.TOGETHER)
    except (OSError, ValueError):
        return None
    return None if ended.timed_out else ended
