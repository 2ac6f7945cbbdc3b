"""What tokens cost, for agents that do not say: a small table, and nothing where it has no row.

A row is of one model by its exact name, with or without a date behind it, or of a family that it
states itself (`claude-sonnet-4*`): names that only begin alike are other models at other prices.  A
person's own `prices.toml`, beside their `config.toml`, comes before our rows.

Where `agent.model` does not say which model it was, Gemini's stream does, and the record that Codex
keeps of every conversation.  Otherwise it is unknown: defaults inside a program change with its
version, and with what its server says.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import msgspec

from ralphloop.agents.environment import clean_environment
from ralphloop.config.load import user_file
from ralphloop.config.model import AgentSection
from ralphloop.core.model import Response, Usage, Value
from ralphloop.core.totals import Windows, updated
from ralphloop.errors import Finding, InputError, Level
from ralphloop.readers import reader_name
from ralphloop.readers.codex import windows_of
from ralphloop.readers.values import Document, document_at, document_of, text_at

CANNOT_BE_KEPT = "max_cost_usd cannot be kept: "

_NAME_NO_COST = frozenset({"codex", "gemini"})
_CONVERSATION = re.compile(r"[0-9A-Za-z-]{8,64}")
_MOST_BYTES = 64 << 20
_TELLING = (b'"turn_context"', b'"rate_limits"')
_DATE = re.compile(r"[-@]20\d\d-?\d\d-?\d\d$")

Dollars = Annotated[float, msgspec.Meta(ge=0)]


class Price(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars for a million tokens; what the cache costs is as much as input where nobody says."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None

    def of(self, usage: Usage) -> float:
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        return (
            usage.input_tokens * self.input
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
            + usage.output_tokens * self.output
        ) / 1_000_000


class PriceList(Value, frozen=True, forbid_unknown_fields=True):
    models: dict[str, Price]
    checked: str = ""  # the day somebody last compared it with what the providers say


@cache
def our_prices() -> PriceList:
    text = files("ralphloop.agents").joinpath("prices.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), type=PriceList)


def own_file() -> Path | None:
    settings = user_file(os.environ)
    return settings.with_name("prices.toml") if settings else None


@cache
def own_prices() -> PriceList:
    """What a person wrote down; the same for as long as we run."""
    file = own_file()
    try:
        if file is None:
            return PriceList(models={})
        return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), type=PriceList)
    except FileNotFoundError:
        return PriceList(models={})
    except (OSError, ValueError) as error:  # TOML, encoding and validation errors are ValueErrors
        fix = 'A row is [models] "name" = { input = 1.0, output = 2.0 }; `ralph prices` shows more.'
        raise InputError(str(error), fix, place=str(file)) from error


def price_of(model: str) -> Price | None:
    rows = {**our_prices().models, **own_prices().models}
    name = model.rsplit("/", 1)[-1].split("[", 1)[0]
    for exact in (model, name, _DATE.sub("", name)):
        if exact in rows:
            return rows[exact]
    families = (row for row in rows if row.endswith("*") and name.startswith(row[:-1]))
    return rows.get(max(families, key=len, default=""))


def why_unpriced(agent: str, config: AgentSection, env: Mapping[str, str]) -> str:
    """Why no start of this agent will have a price; empty where that cannot be known before."""
    reader = reader_name(agent, config.format)
    if reader == "text":
        return "plain text names no price"
    if reader not in _NAME_NO_COST:
        return ""
    model = chosen_model(reader, config, env)
    return f"no price is known for {model}" if model and not price_of(model) else ""


def cost_problems(
    agent: str, config: AgentSection, env: Mapping[str, str], *, limited: bool
) -> Iterator[Finding]:
    """A limit of money that will be none; a table that cannot be read is an error at once."""
    own_prices()
    if limited and (why := why_unpriced(agent, config, env)):
        fix = "limit tokens, iterations or time (max_tokens, max_iterations, max_time)"
        yield Finding(Level.WARNING, f"{CANNOT_BE_KEPT}{why}", fix)


def priced(usage: Usage, model: str) -> Usage:
    """The usage with its cost estimated, where the agent did not say it, or only a part of it."""
    said = usage.cost_usd is not None and not usage.estimated
    if said or not (price := price_of(model)):
        return usage
    cost_usd = max(price.of(usage), usage.cost_usd or 0.0)
    return msgspec.structs.replace(usage, cost_usd=cost_usd, estimated=True)


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


def billed(response: Response, config: AgentSection, inherited: Mapping[str, str]) -> Response:
    """A start that has ended with its model, its usage windows and what it cost."""
    model = response.model or ""
    limit = response.rate_limit
    if response.reader == "codex":
        env = clean_environment(config, inherited)
        recorded, windows = _codex_record(env, response.session_id or "")
        model = model or recorded
        limit = msgspec.structs.replace(limit, windows=limit.windows or windows)
    model = model or chosen_model(response.reader, config, inherited)
    usage = priced(response.usage, model) if response.usage.total_tokens else response.usage
    return msgspec.structs.replace(response, model=model or None, rate_limit=limit, usage=usage)


def _codex_home(env: Mapping[str, str]) -> Path:
    return Path(env.get("CODEX_HOME") or Path(env.get("HOME") or "/") / ".codex")


def _codex_record(env: Mapping[str, str], conversation: str) -> tuple[str, Windows]:
    """Model and windows of the newest turn in what codex wrote down of a conversation."""
    model = ""
    windows = Windows()
    if not _CONVERSATION.fullmatch(conversation):
        return model, windows
    try:
        for file in (_codex_home(env) / "sessions").glob(f"*/*/*/rollout-*-{conversation}.jsonl"):
            if not file.is_file():
                continue
            with file.open("rb") as opened:
                lines = opened.readlines(_MOST_BYTES)
            for line in lines:
                if any(word in line for word in _TELLING):
                    told = document_at(document_of(json.loads(line)), "payload")
                    model = text_at(told, "model") or model
                    windows = updated(windows, windows_of(document_at(told, "rate_limits")))
    except (OSError, ValueError):
        pass  # cut short, or not to be read: what was found stands
    return model, windows


def _settings(file: Path) -> Document:
    """Somebody else's settings; whatever is wrong with them is theirs to say."""
    try:
        text = file.read_text(encoding="utf-8")
        return document_of(tomllib.loads(text) if file.suffix == ".toml" else json.loads(text))
    except (OSError, ValueError, RecursionError):
        return {}
