"""One written value → one checked value, and back.

Environment variables and `key=value` flags carry text, so numbers and lists are read from text
there.  Everything that is wrong becomes a `ValueError`: what was expected, what was found.
"""

import json
import re
import reprlib
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, get_args, get_origin

import msgspec

from ralphloop.config.addresses import HIDDEN, fingerprinted, shown_address
from ralphloop.config.model import Config, Setting
from ralphloop.core.price import Price
from ralphloop.text.durations import parse_clock, parse_duration
from ralphloop.text.plain import closest

_LONGEST_SHOWN = 60
_TYPE_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}
_TYPE = re.compile(r"`(\w+)`")
_SHARE = re.compile(r"(\d{1,2}) ?%", re.ASCII)
_ITEM = re.compile(r" - at `\$\[(\d+)\].*")
_ADDRESS = re.compile(r"(?:[\w.-]{1,253}|\[[0-9a-f:.]{2,45}\]):\d{1,5}", re.ASCII)
_MOST_ADDRESSES = 32
_ROWS = (
    '"name" = { input = 1.0, output = 2.0 }, where known with cache_read and cache_write:'
    " dollars for a million tokens"
)
_SECRET_FORMS = ("variables", "address", "addresses")


def read_value(setting: Setting, raw: object, *, from_text: bool) -> object:
    """The setting's value, or a ValueError that says what was expected."""
    refuse_nul(raw)
    prepared = _prepare(setting.form, raw, from_text=from_text)
    try:
        return msgspec.convert(prepared, setting.kind, strict=not from_text)
    except msgspec.ValidationError as error:
        # What msgspec says, in the words of the file.
        problem = str(error)
        words = _enum_words(setting.kind)
        item = _ITEM.search(problem)
        if problem.startswith("Invalid enum value") and words:
            got = raw[int(item[1])] if item and isinstance(raw, list | tuple) else raw
            hint = did_you_mean(str(got), words)
            told = f"expected one of {', '.join(words)}, got {shown(got)}{hint}"
            raise ValueError(told) from error
        said = re.split(", got | - at ", problem)[0]
        expected = _in_our_words(said)
        where = f" as item {int(item[1]) + 1}" if item else ""
        # Variables may hold keys, and an error message may end up anywhere.
        found = "something else" if setting.form in _SECRET_FORMS else shown(raw)
        told = f"{expected[0].lower()}{expected[1:]}{where}, got {found}"
        raise ValueError(told) from error


def _in_our_words(problem: str) -> str:
    """What msgspec says of a type, as people call it."""
    return _TYPE.sub(lambda found: _TYPE_WORDS.get(found[1], found[1]), problem)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question naming the closest known word, or nothing."""
    meant = closest(word.replace("-", "_"), known)
    return f"; did you mean {meant}?" if meant else ""


def shown(value: object) -> str:
    """A value much as a person wrote it, cut to a readable length."""
    if isinstance(value, list | tuple | dict):
        return reprlib.repr(value)
    try:
        text = str(value)
    except ValueError:  # Python refuses to print integers of thousands of digits
        return "a number of thousands of digits"
    text = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    if isinstance(value, str):
        return f'"{text}"'
    return text.lower() if isinstance(value, bool) else text


def refuse_nul(raw: object) -> None:
    """A NUL can be written in TOML but neither in a command line nor in a file name."""
    if isinstance(raw, str) and "\0" in raw:
        raise ValueError("contains a NUL character")
    if isinstance(raw, list | tuple):
        for item in raw:
            refuse_nul(item)
    if isinstance(raw, dict):
        refuse_nul(list(raw.values()))


def _prepare(form: str, raw: object, *, from_text: bool) -> object:
    """What was written, in the shape that its type has."""
    if form in _SHAPES:
        return _SHAPES[form](raw)
    if not isinstance(raw, str):
        return _variables(raw) if form == "variables" else raw
    if form in _SHAPES_OF_TEXT:
        return _SHAPES_OF_TEXT[form](raw)
    if not from_text:
        return raw
    if form == "words":
        return raw.replace(",", " ").split()
    return _variables(raw) if form == "variables" else raw.strip()


def _duration(raw: object) -> float:
    if isinstance(raw, str | int | float) and not isinstance(raw, bool):
        return parse_duration(raw)
    raise ValueError(f'expected a duration such as "15m" or "1h30m", got {shown(raw)}')


def _clock(text: str) -> str:
    return parse_clock(text) if text.strip() else ""


def _share(raw: object) -> float:
    """A part of one, written as a percentage; empty is none of it."""
    if raw in ("", 0):
        return 0.0
    if isinstance(raw, str) and (found := _SHARE.fullmatch(raw.strip())):
        return int(found[1]) / 100
    raise ValueError(f'expected a share below 100% such as "20%", got {shown(raw)}')


def _network(raw: object) -> object:
    """One word for all of it or nothing, or the addresses that can be reached."""
    raw = raw.replace(",", " ").split() if isinstance(raw, str) else raw
    if not isinstance(raw, list | tuple) or list(raw) in (["open"], ["none"]):
        return raw
    for address in raw:
        if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
            wanted = 'expected "open", "none" or addresses such as "api.anthropic.com:443"'
            raise ValueError(f"{wanted}, got {shown(address)}")
    if not 0 < len(raw) <= _MOST_ADDRESSES:
        raise ValueError(f"expected 1 to {_MOST_ADDRESSES} addresses, got {len(raw)}")
    return raw


def _addresses(raw: object) -> object:
    """Of services, each with its scheme; what is wrong with one is said without showing it."""
    raw = raw.split() if isinstance(raw, str) else raw
    for position, address in enumerate(raw if isinstance(raw, list | tuple) else (), 1):
        if not isinstance(address, str) or "://" not in address:
            wanted = 'expected addresses such as "ntfys://my-topic" or "jsons://host/path"'
            raise ValueError(f"{wanted}; item {position} is none")
    return raw


def _prices(raw: object) -> object:
    """Rows by a model's name; as text they are JSON, `{"name": {…}}`."""
    if isinstance(raw, str):
        try:
            raw = msgspec.json.decode(raw)
        except (ValueError, RecursionError) as error:
            wanted = 'expected JSON such as {"name": {"input": 1.0, "output": 2.0}}'
            raise ValueError(f"{wanted}, got {shown(raw)}") from error
    for name, row in raw.items() if isinstance(raw, dict) else ():
        try:
            msgspec.convert(row, Price)
        except msgspec.ValidationError as error:
            problem = _in_our_words(str(error).replace(" - at `$.", " for `"))
            told = f"{problem[0].lower()}{problem[1:]}"
            raise ValueError(f"the row of {shown(name)}: {told}; expected {_ROWS}") from error
    return raw


def _commands(raw: object) -> object:
    raw = [raw] if isinstance(raw, str) else raw
    if not isinstance(raw, list | tuple):
        return raw
    commands = [_split(item) if isinstance(item, str) else item for item in raw]
    for position, (item, command) in enumerate(zip(raw, commands, strict=True), 1):
        if isinstance(command, list | tuple) and not any(command[:1]):
            raise ValueError(f"item {position} is an empty command")
        if isinstance(item, str) and command[0].startswith("-"):
            raise ValueError(
                f"item {position} is {shown(command[0])}, which is an option and no command; "
                'one command is a list in the list: [["pytest", "-q"]]'
            )
    return commands


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        reason = str(error).lower()
        raise ValueError(f"cannot split {shown(text)} into arguments: {reason}") from error


def _variables(raw: object) -> object:
    if isinstance(raw, str):
        pairs = [pair.partition("=") for pair in _split(raw)]
        if odd := next((name for name, equals, _ in pairs if not equals), ""):
            raise ValueError(f"expected NAME=value pairs, got {shown(odd)}")
        raw = {name: value for name, _, value in pairs}
    for name in raw if isinstance(raw, dict) else ():
        if not name or "=" in name or "\0" in name:
            raise ValueError(f"{shown(name)} cannot be the name of an environment variable")
    return raw


_SHAPES: dict[str, Callable[[object], object]] = {
    "duration": _duration,
    "share": _share,
    "network": _network,
    "commands": _commands,
    "addresses": _addresses,
    "prices": _prices,
}
_SHAPES_OF_TEXT: dict[str, Callable[[str], object]] = {"clock": _clock, "argv": _split}


def _enum_words(kind: object) -> tuple[str, ...]:
    if get_origin(kind) is Literal:
        return get_args(kind)
    return next((words for part in get_args(kind) if (words := _enum_words(part))), ())


_HOUR = 3600
_MINUTE = 60


def shown_value(setting: Setting, value: object) -> object:
    """The value as it may be shown: variables may be keys, an address may hold one."""
    if setting.form == "variables" and isinstance(value, dict):
        return dict.fromkeys(value, HIDDEN)
    if setting.form == "prices" and isinstance(value, dict):
        return {name: price.stated for name, price in value.items()}
    return _each_address(setting, value, shown_address)


def line_to_agree_to(setting: Setting, value: object) -> str:
    """`key = value` for a person who is asked; of an address only what tells it from another."""
    return toml_line(setting, _each_address(setting, value, fingerprinted))


def _each_address(setting: Setting, value: object, show: Callable[[str], str]) -> object:
    if setting.form == "addresses" and isinstance(value, Sequence):
        return tuple(map(show, value))
    if setting.form == "address" and isinstance(value, str) and value:
        return show(value)
    return value


def toml_line(setting: Setting, value: object) -> str:
    """`key = value`, as it would stand in its section."""
    if setting.form == "duration" and isinstance(value, float):
        return f'{setting.key} = "{exact_duration(value)}"'
    if setting.form == "share" and isinstance(value, float):
        return f'{setting.key} = "{value:.0%}"' if value else f'{setting.key} = ""'
    if setting.form == "network" and value in (("open",), ("none",)):
        return f'{setting.key} = "{value[0]}"'
    return f"{setting.key} = {toml_value(value)}"


def toml_value(value: object) -> str:
    if isinstance(value, str):
        return _toml_string(value)
    if isinstance(value, Price):
        value = value.stated
    if isinstance(value, Mapping):
        pairs = (f"{_toml_string(key)} = {toml_value(item)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    return json.dumps(value)  # numbers and booleans are written alike


def exact_duration(seconds: float) -> str:
    """`10h`, `1h30m`, `90.5s`: reads back as the same number of seconds."""
    if seconds != int(seconds):
        return f"{seconds:f}s".rstrip("0s").rstrip(".") + "s"
    hours, rest = divmod(int(seconds), _HOUR)
    minutes, left = divmod(rest, _MINUTE)
    parts = [(hours, "h"), (minutes, "m"), (left, "s")]
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0"


def _toml_string(text: str) -> str:
    # A JSON string is a TOML string, but TOML wants DEL escaped as well.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def storable(config: Config) -> Config:
    """The settings as they may be kept: what could be a secret is hidden."""
    replace = msgspec.structs.replace
    agent = replace(config.agent, env=dict.fromkeys(config.agent.env, HIDDEN))
    notify = replace(
        config.notify,
        urls=(HIDDEN,) * len(config.notify.urls),
        webhook=HIDDEN if config.notify.webhook else "",
    )
    return replace(config, agent=agent, notify=notify)
