"""What an agent's own files tell of a night before it begins, for nothing.

Two things: when a login ends that is not renewed by itself, and which tools its own settings refuse
that a story needs.  Where to look is data (`[login] expires`, `refuses` in its TOML), a place in a
file: `~/.acme/auth.json:tokens.access_token`.  They are somebody else's files: what cannot be read
there is not known, and nothing is said of it.
"""

import base64
import binascii
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ralphloop.readers.values import document_of
from ralphloop.room import read_regular

_LARGEST_FILE = 1 << 20
_DENY = "deny"
_MILLISECONDS_FROM = 10**11  # a number of seconds would be in the year 5138


class Refusal(NamedTuple):
    """Tools that an agent's own settings refuse, and where."""

    tools: tuple[str, ...]
    place: str


def login_ends(expires: str, renewal: str, env: Mapping[str, str], cwd: Path) -> float | None:
    """The moment at which a login ends; None where it is renewed, or nobody can tell."""
    if renewal and value_at(renewal, env, cwd):
        return None
    return _moment(value_at(expires, env, cwd)) if expires else None


def refusals_in(
    places: Sequence[str], needed: Sequence[str], env: Mapping[str, str], cwd: Path
) -> Iterator[Refusal]:
    """What of the needed tools is refused, place by place."""
    for place in places:
        refused = frozenset(_refused_names(value_at(place, env, cwd)))
        found = [tool for tool in needed if tool in refused or "*" in refused]
        if found:
            yield Refusal(tuple(found), place.replace(":", ", "))


def value_at(place: str, env: Mapping[str, str], cwd: Path) -> object:
    """What stands at a place in a file, or None."""
    name, _, keys = place.rpartition(":")
    home = Path(env.get("HOME") or "/")
    path = home / name[2:] if name.startswith("~/") else cwd / name
    try:
        text = read_regular(path, most=_LARGEST_FILE).decode("utf-8")
        value: object = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError, RecursionError):
        return None
    for key in keys.split("."):
        value = document_of(value).get(key)
    return value


def _refused_names(value: object) -> Iterator[str]:
    """The names in a list of refused tools, or those that a table denies, each as a whole.

    A rule about some commands or some files leaves the tool itself usable.
    """
    if isinstance(value, list):
        for rule in value:
            name, _, about = str(rule).partition("(")
            if about in ("", "*)", "**)"):
                yield name
        return
    for name, said in document_of(value).items():
        if said == _DENY or document_of(said).get("*") == _DENY:
            yield name


def _moment(value: object) -> float | None:
    """Seconds since 1970 of a number, of a date or of the end that a token states itself."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value / 1000 if value > _MILLISECONDS_FROM else float(value)
    if not isinstance(value, str):
        return None
    if value.count(".") == 2:
        return _moment(_stated_by_token(value))
    try:
        return datetime.fromisoformat(value).timestamp()
    except ValueError:
        return None


def _stated_by_token(token: str) -> object:
    """When a JSON Web Token says that it ends; its signature is no matter of ours."""
    middle = token.split(".")[1]
    try:
        told = base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4))
        return document_of(json.loads(told)).get("exp")
    except (binascii.Error, ValueError, RecursionError):
        return None
