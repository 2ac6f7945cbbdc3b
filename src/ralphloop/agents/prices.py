"""What tokens cost, for agents that do not say: a small table.

A row is of one model by its exact name, with or without a date behind it, or of a family that it
states itself (`claude-sonnet-4*`): names that only begin alike are other models at other prices.
What `[prices]` of the settings states comes first, then a person's own `prices.toml`, beside their
`config.toml`, then our rows.  A model without a row is taken to cost as much as the dearest of its
provider, so that a limit of money holds; that is an assumption and is called one.

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
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from ralphloop.agents.cli_records import Record, codex_home, record_of
from ralphloop.agents.environment import clean_environment
from ralphloop.atomic import write_atomic
from ralphloop.config.load import user_file
from ralphloop.config.model import AgentSection
from ralphloop.core.model import Outcome, Response, Usage, Value
from ralphloop.core.price import Price
from ralphloop.core.sentences import NO_PRICE
from ralphloop.errors import Finding, InputError, Level, unreadable
from ralphloop.readers import reader_name
from ralphloop.readers.values import Document, document_at, document_of, text_at
from ralphloop.room import read_regular

CANNOT_BE_KEPT = "max_cost_usd cannot be kept: "

_ROW = (
    'Below a line [models], a row is "name" = { input = 1.0, output = 2.0 }, and where they'
    " are known cache_read and cache_write: dollars for a million tokens."
)
_LARGEST_TABLE = 1 << 20
_NAME_NO_COST = frozenset({"codex", "gemini"})
_FAMILY = re.compile(r"[a-z]+")
_FAMILY_OF_READER = {"codex": "gpt", "gemini": "gemini", "claude": "claude"}
_DATE = re.compile(r"[-@]20\d\d-?\d\d-?\d\d$")

Rows = Mapping[str, Price]  # by a model's name, or the beginning of one with a `*`
NO_ROWS: Rows = MappingProxyType({})


class PriceList(Value, frozen=True, forbid_unknown_fields=True):
    models: dict[str, Price]
    checked: str = ""  # the day somebody last compared it with what the providers say
    unpriced: tuple[str, ...] = ()  # models that have no row because nobody knows their price


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
        raise InputError(str(error), _ROW, place=str(file)) from error


class TakenTable(NamedTuple):
    """A person's table after it took the rows of a file."""

    rows: int
    place: Path


def take_table(file: Path) -> TakenTable:
    """Put the rows of a file into the person's own table, before those that stand there."""
    place = own_file()
    if place is None:
        raise InputError("there is no home directory for your own prices", "set HOME")
    try:
        text = read_regular(file, most=_LARGEST_TABLE).decode("utf-8")
        told = msgspec.convert(tomllib.loads(text), type=PriceList)
    except OSError as error:
        raise unreadable(error, file) from error
    except ValueError as error:  # of TOML, encoding and validation
        raise InputError(str(error), _ROW, place=str(file)) from error
    rows = {**own_prices().models, **told.models}
    lines = ["# Dollars for a million tokens; these rows come before those of ralph.", "[models]"]
    for name, price in sorted(rows.items()):
        inside = ", ".join(f"{key} = {cell}" for key, cell in price.stated.items())
        lines.append(f"{json.dumps(name)} = {{ {inside} }}")
    place.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(place, ("\n".join(lines) + "\n").encode(), within=place.parent)
    own_prices.cache_clear()
    return TakenTable(len(told.models), place)


def all_prices(stated: Rows = NO_ROWS) -> dict[str, Price]:
    """Our rows, with a person's own before them, and what settings state before both."""
    return {**our_prices().models, **own_prices().models, **stated}


def price_of(model: str, stated: Rows = NO_ROWS) -> Price | None:
    """What the table says of a model, or None."""
    rows = all_prices(stated)
    name = _bare(model)
    for exact in (model, name, _DATE.sub("", name)):
        if exact in rows:
            return rows[exact]
    families = (row for row in rows if row.endswith("*") and name.startswith(row[:-1]))
    return rows.get(max(families, key=len, default=""))


class AssumedPrice(NamedTuple):
    """What a model without a row is taken to cost, and after which row."""

    price: Price
    row: str


def assumed_price(model: str, reader: str = "", stated: Rows = NO_ROWS) -> AssumedPrice:
    """The dearest row of the model's provider, told by its name or else by its CLI; of all rows
    where neither tells.  A model that is free says nothing about another."""
    rows = {name: row for name, row in all_prices(stated).items() if not row.is_free}
    named = _FAMILY.match(_bare(model).lower())
    for family in (named.group() if named else "", _FAMILY_OF_READER.get(reader, "")):
        of_family = {name: row for name, row in rows.items() if _family_of(name) == family}
        if family and of_family:
            return _dearest(of_family)
    return _dearest(rows)


def _bare(model: str) -> str:
    """A model's name without its provider before it and its variant behind it."""
    name = model.rsplit("/", 1)[-1].rsplit("|", 1)[-1]  # `$runtime|openai|name(openai)`
    return name.split("[", 1)[0].split("(", 1)[0]


def _family_of(row: str) -> str:
    found = _FAMILY.match(row)
    return found.group() if found else ""


def _dearest(rows: Mapping[str, Price]) -> AssumedPrice:
    name = max(rows, key=lambda row: (rows[row].output, rows[row].input))
    return AssumedPrice(rows[name], name)


def why_unpriced(agent: str, config: AgentSection) -> str:
    """Why no start of this agent will have a price; empty where that cannot be known before."""
    is_text = reader_name(agent, config.format) == "text" or agent in _silent_agents()
    return "plain text names no price" if is_text else ""


@cache
def _silent_agents() -> frozenset[str]:
    """Agents that come with us and report no tokens."""
    from ralphloop.agents.declared import shipped_declarations

    silent = (one for one in shipped_declarations() if one.protocol != "acp")
    return frozenset(one.name for one in silent if one.reader == "text")


def assumption(model: str, reader: str = "", stated: Rows = NO_ROWS) -> str:
    """In words, what a model without a row is taken to cost; empty where it has one."""
    if not model or price_of(model, stated):
        return ""
    row = assumed_price(model, reader, stated).row
    assumed = f"an assumption is made, it is counted like {row}, the dearest of its provider"
    return f"{NO_PRICE} {model}: {assumed}"


def cost_problems(
    agent: str, config: AgentSection, env: Mapping[str, str], stated: Rows, *, limited: bool
) -> Iterator[Finding]:
    """A limit of money that will be none; a table that cannot be read is an error at once."""
    own_prices()
    if not limited:
        return
    if why := why_unpriced(agent, config):
        fix = "limit tokens, iterations or time (max_tokens, max_iterations, max_time)"
        yield Finding(Level.WARNING, f"{CANNOT_BE_KEPT}{why}", fix)
    reader = reader_name(agent, config.format)
    if reader not in _NAME_NO_COST:
        return
    if why := assumption(chosen_model(reader, config, env), reader, stated):
        fix = "say what it costs in [prices] or in your prices.toml: `ralph prices`"
        yield Finding(Level.WARNING, why, fix)


def priced(usage: Usage, model: str, reader: str = "", stated: Rows = NO_ROWS) -> Usage:
    """The usage with its cost estimated, where the agent did not say it, or only a part of it."""
    said = usage.cost_usd is not None and not usage.estimated
    price = price_of(model, stated)
    if price is None and model:
        price = assumed_price(model, reader, stated).price
    if said or price is None:
        return usage
    cost_usd = max(price.of(usage), usage.cost_usd or 0.0)
    return msgspec.structs.replace(usage, cost_usd=cost_usd, estimated=True)


def chosen_model(reader: str, config: AgentSection, inherited: Mapping[str, str]) -> str:
    """The model that settings name before a start, ours or the agent's own; empty: nobody did."""
    env = clean_environment(config, inherited)
    if reader == "codex":
        settings = _settings(codex_home(env) / "config.toml")
        profile = document_at(document_at(settings, "profiles"), text_at(settings, "profile"))
        return config.model or text_at(profile, "model") or text_at(settings, "model")
    if reader == "gemini":
        settings = _settings(Path(env.get("HOME") or "/") / ".gemini" / "settings.json")
        own = text_at(document_at(settings, "model"), "name") or text_at(settings, "model")
        model = config.model or env.get("GEMINI_MODEL") or own
        # `auto`, `pro` and the like are decided inside, and its stream tells how.
        return model if model.startswith("gemini-") else ""
    return config.model


def billed(
    response: Response,
    config: AgentSection,
    inherited: Mapping[str, str],
    stated: Rows,
    record: Record | None = None,
) -> Response:
    """A start that has ended with its model, its usage windows and what it cost.

    What its stream did not tell, for it was cut off, is taken from what the CLI wrote down.
    """
    if record is None:
        record = record_of(response.reader, clean_environment(config, inherited))
    record.look(response.session_id or "")
    limit = response.rate_limit
    limit = msgspec.structs.replace(limit, windows=limit.windows or record.windows)
    usage = response.usage
    was_cut = response.outcome not in (Outcome.COMPLETED, Outcome.DENIED, Outcome.EMPTY)
    if was_cut and record.usage.total_tokens > usage.total_tokens:
        usage = msgspec.structs.replace(record.usage, estimated=True)
    model = response.model or record.model or chosen_model(response.reader, config, inherited)
    warnings = response.warnings
    if usage.total_tokens:
        said = usage.cost_usd is not None and not usage.estimated
        usage = priced(usage, model, response.reader, stated)
        if not said and (why := assumption(model, response.reader, stated)):
            warnings = (*warnings, why)
    return msgspec.structs.replace(
        response, model=model or None, rate_limit=limit, usage=usage, warnings=warnings
    )


def _settings(file: Path) -> Document:
    """Somebody else's settings; whatever is wrong with them is theirs to say."""
    try:
        text = file.read_text(encoding="utf-8")
        return document_of(tomllib.loads(text) if file.suffix == ".toml" else json.loads(text))
    except (OSError, ValueError, RecursionError):
        return {}
