"""The stack table: one TOML file for each stack, described in `docs/reference/configuration.md`.

`if_any`, `if_all` and `unless` take facts (see `detect`); all three must agree.  Files in a
directory of the user's come before ours, by file name.
"""

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import msgspec

from ralphloop.errors import InputError

Words = tuple[str, ...]


class StackRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When an entry of the table applies."""

    if_any: Words = ()
    if_all: Words = ()
    unless: Words = ()


class Tool(StackRule, frozen=True, kw_only=True):
    title: str
    says: str = ""
    words: dict[str, Words] = {}


class CheckRule(StackRule, frozen=True, kw_only=True):
    purpose: str
    command: Words


class Sentence(StackRule, frozen=True, kw_only=True):
    text: str


class Stack(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    name: str
    title: str
    order: int = 50
    marks: Words = ()
    names: Words = ()
    descriptions: Words = ()
    tools: tuple[Tool, ...] = ()
    checks: tuple[CheckRule, ...] = ()
    says: tuple[Sentence, ...] = ()
    monorepo: tuple[Sentence, ...] = ()


def load_stacks(directories: Sequence[Path] = ()) -> tuple[Stack, ...]:
    ours = Path(str(files("ralphloop.stacks") / "data"))
    found: dict[str, Path] = {}
    for directory in (*directories, ours):
        for file in sorted(directory.glob("*.toml")):
            found.setdefault(file.name, file)
    return tuple(sorted(map(_read, found.values()), key=lambda stack: (stack.order, stack.name)))


def _read(file: Path) -> Stack:
    try:
        return msgspec.convert(tomllib.loads(file.read_text("utf-8")), Stack)
    except (OSError, ValueError) as error:
        # TOML, encoding and validation errors are all ValueErrors with a readable message.
        step = "Correct the file, or remove it: the stacks that ship with ralph stay."
        raise InputError(str(error), step, place=str(file)) from error
