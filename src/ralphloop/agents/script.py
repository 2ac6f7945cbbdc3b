"""The script of a scripted agent, as docs/reference/scripted-agent.md has it, in YAML or JSON.

Everything is checked before the first step is taken.
"""

from __future__ import annotations

import signal
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ralphloop.core import Value
from ralphloop.errors import InputError
from ralphloop.text.durations import parse_duration
from ralphloop.text.status_block import StatusBlock

STATE_VARIABLE = "RALPH_SCRIPT_STATE"  # the file that counts the starts

_LARGEST = 1_000_000

Argv = Annotated[list[str], msgspec.Meta(min_length=1)]
_Code = Annotated[int, msgspec.Meta(ge=0, le=255)]
_Hang = Literal["silent", "printing", "busy"]
_Fatal = Literal["authentication_failed", "billing_error", "model_not_found"]


class StatusFields(StatusBlock, frozen=True, forbid_unknown_fields=True):
    """A RALPH_STATUS block to print."""


class UsageFields(Value, forbid_unknown_fields=True):
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0


class SpawnFields(Value, forbid_unknown_fields=True):
    argv: Argv
    daemon: bool = False
    clear_env: bool = False
    hold_output: bool = False


class LimitFields(Value, forbid_unknown_fields=True):
    resets_in: str | float = "1h"
    kind: str = "five_hour"

    def __post_init__(self) -> None:
        parse_duration(self.resets_in)


class Condition(Value, forbid_unknown_fields=True, rename={"otherwise": "else"}):
    contains: str
    then: tuple[AnyStep, ...] = ()
    otherwise: tuple[AnyStep, ...] = ()


class ScriptStep(Value, forbid_unknown_fields=True):
    """One thing to do: exactly one word is set; None is the word without a value."""

    say: str | UnsetType = UNSET
    status: StatusFields | UnsetType = UNSET
    print: str | UnsetType = UNSET
    stderr: str | UnsetType = UNSET
    write: dict[str, str] | UnsetType = UNSET
    append: dict[str, str] | UnsetType = UNSET
    delete: list[str] | UnsetType = UNSET
    run: Argv | UnsetType = UNSET
    sleep: str | float | UnsetType = UNSET
    usage: UsageFields | UnsetType = UNSET
    deny: str | UnsetType | None = UNSET
    exit: _Code | UnsetType | None = UNSET
    crash: str | UnsetType | None = UNSET
    hang: _Hang | UnsetType | None = UNSET
    spawn: Argv | SpawnFields | UnsetType = UNSET
    usage_limit: LimitFields | UnsetType | None = UNSET
    transient: int | UnsetType | None = UNSET
    fatal: _Fatal | UnsetType | None = UNSET
    if_prompt: Condition | UnsetType = UNSET

    def said(self) -> dict[str, object]:
        return {k: v for k, v in msgspec.structs.asdict(self).items() if v is not UNSET}

    def __post_init__(self) -> None:
        """What types do not say: one word, paths, durations, signals."""
        if len(self.said()) != 1:
            raise ValueError("A step is one word, or one word with its value")
        for path in (*(self.write or ()), *(self.append or ()), *(self.delete or ())):
            pure = PurePosixPath(path)
            if pure.is_absolute() or ".." in pure.parts or not pure.parts or "\0" in path:
                raise ValueError(f"{path!r} is not a path inside the working directory")
        if self.sleep is not UNSET:
            parse_duration(self.sleep)
        if self.crash:
            signal_named(self.crash)


Alone = Literal["deny", "exit", "crash", "hang", "usage_limit", "transient", "fatal"]
AnyStep = ScriptStep | Alone

_ALONE: dict[str, object] = {
    "deny": "Bash",
    "exit": 1,
    "crash": "SIGKILL",
    "hang": "silent",
    "usage_limit": LimitFields(),
    "transient": 529,
    "fatal": "authentication_failed",
}


def deed(step: AnyStep) -> tuple[str, Any]:
    [(word, value)] = step.said().items() if isinstance(step, ScriptStep) else [(step, None)]
    return word, _ALONE[word] if value is None else value


_Starts = tuple[tuple[AnyStep, ...], ...]


class Script(Value, forbid_unknown_fields=True):
    format: Literal["claude", "text"] = "claude"
    stories: dict[str | int, _Starts] = msgspec.field(default_factory=dict)
    starts: _Starts = ()

    def __post_init__(self) -> None:
        if not self.stories and not self.starts:
            raise ValueError("The script says nothing: give it `stories` or `starts`")

    def steps(self, story: str, earlier_starts: int) -> tuple[AnyStep, ...] | None:
        """What to do at this start of this story; None where the script does not know it."""
        named = {str(name): starts for name, starts in self.stories.items()}
        starts = named.get(story) or self.starts
        return starts[min(earlier_starts, len(starts) - 1)] if starts else None


def load_script(path: Path) -> Script:
    """Read and check a script; raises `InputError` with the place of the first mistake."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", place=str(path)) from error
    if len(data) > _LARGEST:
        raise InputError(f"is larger than {_LARGEST:,} bytes", place=path.name)
    try:
        raw = msgspec.json.decode(data) if path.suffix == ".json" else _parse_yaml(data)
        return msgspec.convert(raw, Script)
    except ValueError as error:
        raise InputError(" ".join(str(error).split()), place=path.name) from error
    except RecursionError as error:
        raise InputError("is nested too deeply", place=path.name) from error


def _parse_yaml(data: bytes) -> object:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(data)
    except YAMLError as error:
        raise ValueError(str(error)) from error


def signal_named(name: str) -> signal.Signals:
    try:
        return signal.Signals[name if name.startswith("SIG") else f"SIG{name}"]
    except KeyError:
        raise ValueError(f"there is no signal {name!r}") from None
