"""Which model an agent uses where `agent.model` does not say it.

Gemini names it in its stream.  Codex does not, but the record it keeps of every conversation does,
and that is what was used, whoever chose it.  Before a start only their own settings can be asked.
What both are silent about is unknown: defaults inside a program change with its version, and with
what its server says, so none is written down here.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ralphloop.agents.environment import clean_environment
from ralphloop.config.model import AgentSection
from ralphloop.core.model import Response
from ralphloop.readers.values import document_at, document_of, text_at, text_of

_CONVERSATION = re.compile(r"[0-9A-Za-z-]{8,64}")
_MOST_BYTES = 64 << 20
_TURN = b'"type":"turn_context"'


def chosen_model(reader: str, config: AgentSection, inherited: Mapping[str, str]) -> str:
    """The model that settings name before a start, ours or the agent's own; empty: nobody did."""
    env = clean_environment(config, inherited)
    if reader == "codex":
        return config.model or _codex_setting(env)
    if reader == "gemini":
        model = config.model or env.get("GEMINI_MODEL") or _gemini_setting(env)
        # `auto`, `pro` and the like are decided inside, and its stream tells how.
        return model if model.startswith("gemini-") else ""
    return config.model


def used_model(response: Response, config: AgentSection, inherited: Mapping[str, str]) -> str:
    """The model of a start that has ended, by the best witness there is."""
    if response.model:
        return response.model
    env = clean_environment(config, inherited)
    recorded = _codex_record(env, response.session_id or "") if response.reader == "codex" else ""
    return recorded or chosen_model(response.reader, config, inherited)


def _codex_home(env: Mapping[str, str]) -> Path:
    return Path(env.get("CODEX_HOME") or Path(env.get("HOME") or "/") / ".codex")


def _codex_setting(env: Mapping[str, str]) -> str:
    settings = _settings(_codex_home(env) / "config.toml")
    profile = document_at(document_at(settings, "profiles"), text_at(settings, "profile"))
    return text_at(profile, "model") or text_at(settings, "model")


def _codex_record(env: Mapping[str, str], conversation: str) -> str:
    """The model of the newest turn in what codex wrote down of a conversation."""
    if not _CONVERSATION.fullmatch(conversation):
        return ""
    sessions, found = _codex_home(env) / "sessions", ""
    try:
        for file in sessions.glob(f"*/*/*/rollout-*-{conversation}.jsonl"):
            for line in _lines(file):
                if _TURN in line[:200]:
                    turn = document_at(document_of(json.loads(line)), "payload")
                    found = text_at(turn, "model") or found
    except (OSError, ValueError):
        pass  # cut short, or not to be read: what was found stands
    return found


def _lines(file: Path) -> list[bytes]:
    """Its lines, up to a bound; none of what is no file."""
    if not file.is_file():
        return []
    with file.open("rb") as opened:
        return opened.readlines(_MOST_BYTES)


def _gemini_setting(env: Mapping[str, str]) -> str:
    settings = _settings(Path(env.get("HOME") or "/") / ".gemini" / "settings.json")
    return text_at(document_at(settings, "model"), "name") or text_of(settings.get("model"))


def _settings(file: Path) -> dict[str, Any]:
    """Somebody else's settings; whatever is wrong with them is theirs to say."""
    try:
        text = file.read_text(encoding="utf-8")
        return document_of(tomllib.loads(text) if file.suffix == ".toml" else json.loads(text))
    except (OSError, ValueError, RecursionError):
        return {}
