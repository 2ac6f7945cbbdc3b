"""Which model an agent uses where `agent.model` does not say it.

Gemini names it in its stream.  Codex does not, but the record it keeps of every conversation does,
and that is what was used, whoever chose it; how full its usage windows are stands there too.
Before a start only their own settings can be asked.  What both are silent about is unknown:
defaults inside a program change with its version, and with what its server says, so none is
written down here.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ralphloop.agents.environment import clean_environment
from ralphloop.config.model import AgentSection
from ralphloop.core.model import RateLimit, Response
from ralphloop.core.quota import Windows, updated
from ralphloop.readers.codex import windows_of
from ralphloop.readers.values import Document, document_at, document_of, text_at

_CONVERSATION = re.compile(r"[0-9A-Za-z-]{8,64}")
_MOST_BYTES = 64 << 20
_TELLING = (b'"turn_context"', b'"rate_limits"')


def chosen_model(reader: str, config: AgentSection, inherited: Mapping[str, str]) -> str:
    """The model that settings name before a start, ours or the agent's own; empty: nobody did."""
    env = clean_environment(config, inherited)
    if reader == "codex":
        settings = _settings(_codex_home(env) / "config.toml")
        profile = document_at(document_at(settings, "profiles"), text_at(settings, "profile"))
        return config.model or text_at(profile, "model") or text_at(settings, "model")
    if reader == "gemini":
        settings = _settings(Path(env.get("HOME") or "/") / ".gemini" / "settings.json")
        own = text_at(document_at(settings, "model"), "name") or text_at(settings, "model")
        model = config.model or env.get("GEMINI_MODEL") or own
        # `auto`, `pro` and the like are decided inside, and its stream tells how.
        return model if model.startswith("gemini-") else ""
    return config.model


def as_recorded(response: Response, config: AgentSection, inherited: Mapping[str, str]) -> Response:
    """A start that has ended with its model and usage windows, by the best witness there is."""
    model, limit = response.model or "", response.rate_limit
    if response.reader == "codex":
        env = clean_environment(config, inherited)
        recorded, windows = _codex_record(env, response.session_id or "")
        model = model or recorded
        if windows and not (limit and limit.windows):
            limit = msgspec.structs.replace(limit or RateLimit(), windows=windows)
    model = model or chosen_model(response.reader, config, inherited)
    return msgspec.structs.replace(response, model=model or None, rate_limit=limit)


def _codex_home(env: Mapping[str, str]) -> Path:
    return Path(env.get("CODEX_HOME") or Path(env.get("HOME") or "/") / ".codex")


def _codex_record(env: Mapping[str, str], conversation: str) -> tuple[str, Windows]:
    """Model and windows of the newest turn in what codex wrote down of a conversation."""
    model, windows = "", Windows()
    if not _CONVERSATION.fullmatch(conversation):
        return model, windows
    try:
        for file in (_codex_home(env) / "sessions").glob(f"*/*/*/rollout-*-{conversation}.jsonl"):
            for line in _lines(file):
                if any(word in line for word in _TELLING):
                    told = document_at(document_of(json.loads(line)), "payload")
                    model = text_at(told, "model") or model
                    windows = updated(windows, windows_of(document_at(told, "rate_limits")))
    except (OSError, ValueError):
        pass  # cut short, or not to be read: what was found stands
    return model, windows


def _lines(file: Path) -> list[bytes]:
    """Its lines, up to a bound; none of what is no file."""
    if not file.is_file():
        return []
    with file.open("rb") as opened:
        return opened.readlines(_MOST_BYTES)


def _settings(file: Path) -> Document:
    """Somebody else's settings; whatever is wrong with them is theirs to say."""
    try:
        text = file.read_text(encoding="utf-8")
        return document_of(tomllib.loads(text) if file.suffix == ".toml" else json.loads(text))
    except (OSError, ValueError, RecursionError):
        return {}
