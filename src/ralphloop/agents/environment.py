"""The environment an agent is started in.

It is ours, minus what would mislead it: variables by which a parent Claude session is recognised
(a nested start refuses to work), git's variables that point at another repository, and API keys
(a stray key bills another account) unless the configuration names them.  Agents that are the
user's own program get everything but the first two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from ralphloop.agents.base import AgentRequest
from ralphloop.atomic import KILL_VARIABLE
from ralphloop.config.model import AgentSection, Safety
from ralphloop.errors import Finding, Level
from ralphloop.proc.table import MARK_VARIABLE
from ralphloop.repo.git import OTHER_REPOSITORY

_PARENT_SESSION = frozenset(
    {
        "CLAUDECODE",
        "CLAUDE_PID",
        "CLAUDE_ENV_FILE",
        "CLAUDE_PROJECT_DIR",
        "CLAUDE_PLUGIN_ROOT",
        "CLAUDE_AGENT_SDK_VERSION",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_HOST_SESSION_ID",
        "CLAUDE_CODE_REMOTE",
    }
)
_PARENT_SESSION_BEGINNINGS = (
    "CLAUDE_SESSION_",
    "CLAUDE_CODE_SESSION",
    "CLAUDE_CODE_PARENT_",
    "CLAUDE_CODE_REMOTE_",
)

API_KEYS = frozenset(
    {
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "AZURE_OPENAI_API_KEY",
        "CODEX_API_KEY",
        "DEEPSEEK_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_GENERATIVE_AI_API_KEY",
        "GROQ_API_KEY",
        "MISTRAL_API_KEY",
        "OPENAI_API_KEY",
        "OPENROUTER_API_KEY",
        "XAI_API_KEY",
    }
)


def _misleads(name: str) -> bool:
    return (
        name == KILL_VARIABLE  # speaks of this process alone
        or name in _PARENT_SESSION
        or name in OTHER_REPOSITORY
        or name.startswith(_PARENT_SESSION_BEGINNINGS)
    )


def clean_environment(
    config: AgentSection, inherited: Mapping[str, str], *, drop_keys: bool = True
) -> dict[str, str]:
    """What of our own environment an agent gets, and what the configuration adds to it."""
    passed = set(config.pass_env)
    kept = {
        name: value
        for name, value in inherited.items()
        if name in passed or not (_misleads(name) or (drop_keys and name in API_KEYS))
    }
    return {**kept, **config.env}


def agent_environment(
    request: AgentRequest,
    *,
    drop_keys: bool = True,
    defaults: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The whole environment of one start; the configuration has the last word."""
    return {
        **(defaults or {}),
        **clean_environment(request.config, request.inherited, drop_keys=drop_keys),
        "RALPH_RUN_ID": request.run_id,
        "RALPH_ITERATION": str(request.iteration),
        "RALPH_STORY_ID": _as_variable(request.story_id or ""),
        **request.config.env,
        # Not theirs to change: it is how everything the agent starts is found again.
        MARK_VARIABLE: request.mark,
    }


def _as_variable(text: str) -> str:
    """Story ids may hold anything; a variable holds neither NUL nor half a character."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def local_time(now: float, env: Mapping[str, str]) -> datetime:
    """This moment in the zone that a program with this environment takes for local."""
    return datetime.fromtimestamp(now, UTC).astimezone(_zone(env.get("TZ")))


def _zone(name: str | None) -> tzinfo | None:
    """The zone with its rules; None, the offset that holds now, where they are not to be had."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        if name is not None:
            return ZoneInfo(name.removeprefix(":") or "UTC")
        with Path("/etc/localtime").open("rb") as rules:
            return ZoneInfo.from_file(rules)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # as a POSIX rule, no zone data, no file
        return None


def withheld_keys(
    config: AgentSection, inherited: Mapping[str, str], relevant: Iterable[str] = API_KEYS
) -> tuple[str, ...]:
    """Keys that are set here and not passed on, to be said aloud."""
    wanted = {*config.pass_env, *config.env}
    return tuple(sorted(name for name in relevant if inherited.get(name) and name not in wanted))


def said_aloud(
    agent: str,
    config: AgentSection,
    inherited: Mapping[str, str],
    keys: Iterable[str],
    note: str = "",
) -> Iterator[Finding]:
    """What nobody should have to find out: about permissions, and keys that are not passed on."""
    if note:
        yield Finding(Level.INFO, note)
    if config.safety is Safety.MINIMAL:
        yield Finding(Level.WARNING, f"{agent} runs with all permission prompts skipped")
    if names := withheld_keys(config, inherited, keys):
        are_set = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} set but not passed on"
        yield Finding(Level.INFO, are_set, "name it in agent.pass_env to bill that account")
