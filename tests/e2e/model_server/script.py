"""What the scripted model says, as data.

A **turn** is the answer to one request: words, tool calls, tokens, and whatever goes wrong on the
way.  A **scene** is a row of turns, played in order; with `when` it answers only conversations
whose prompt contains that text.  Tool calls have neutral names (`write`, `edit`, `read`, `shell`;
any other name is sent as it is), so one script drives every CLI.

As JSON, with every key optional:

    {"scenes": [{"when": "US-001", "turns": [
        {"text": "On it.", "tools": [{"write": {"path": "a.py", "content": "x = 1\\n"}}]},
        {"fail": {"status": 529}, "times": 2},
        {"text": "Done.", "usage": {"input": 1200, "output": 80}}]}]}

A file may also hold one list of turns.  Where a header or an extra of a failure needs a time,
`{now+3}` becomes the epoch second three seconds after the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

Cut = Literal["", "start", "middle"]
ALWAYS = 0

_Fields = TypeVar("_Fields")


class BadScript(ValueError):
    """A script that cannot be played, with the place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Dollars per million tokens."""

    input: float
    output: float
    cache_read: float = 0.0
    cache_write: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one answer; `input` is what no cache served."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )

    def cost(self, prices: Prices) -> float:
        """What these tokens cost in dollars."""
        return (
            self.input * prices.input
            + self.output * prices.output
            + self.cache_read * prices.cache_read
            + self.cache_write * prices.cache_write
        ) / 1_000_000


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call of a tool, by its neutral name or by the CLI's own."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error of the API: as the whole answer, or as an event inside the stream."""

    status: int = 500
    kind: str = ""  # the provider's word for it; empty: the usual one for this status
    message: str = "the script says so"
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)  # more keys of the error object
    body: str | None = None  # sent instead of an error object, whatever the status


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The answer to one request."""

    text: str = ""
    tools: tuple[ToolUse, ...] = ()
    usage: Usage = Usage(input=100, output=20)
    headers: Mapping[str, str] = field(default_factory=dict)
    fail: Failure | None = None  # instead of an answer
    break_off: Failure | None = None  # an error event in the middle of the answer
    cut: Cut = ""  # the connection is lost: before the answer, or in the middle of it
    delay_s: float = 0.0  # silence before the answer
    pause_s: float = 0.0  # silence in the middle of it
    pace_s: float = 0.0  # time between two pieces
    times: int = 1  # how many requests get this answer; ALWAYS: all that follow


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Turns in order, for any conversation or for those whose prompt contains `when`."""

    turns: tuple[Turn, ...]
    when: str = ""


# --- terse words for tests -------------------------------------------------------------------


def say(text: str, **more: Any) -> Turn:
    """The model answers and ends its turn."""
    return Turn(text=text, **more)


def use(*tools: ToolUse, **more: Any) -> Turn:
    """The model calls tools, all at once."""
    return Turn(tools=tools, **more)


def fail(status: int, message: str = "the script says so", *, times: int = 1, **more: Any) -> Turn:
    """The API answers with an error."""
    return Turn(fail=Failure(status=status, message=message, **more), times=times)


def write(path: str, content: str) -> ToolUse:
    """Write a whole file; a path is relative to the project."""
    return ToolUse("write", {"path": path, "content": content})


def edit(path: str, old: str, new: str) -> ToolUse:
    """Replace whole lines; claude demands that the file was read before."""
    return ToolUse("edit", {"path": path, "old": old, "new": new})


def read(path: str) -> ToolUse:
    """Look into a file."""
    return ToolUse("read", {"path": path})


def shell(command: str) -> ToolUse:
    """Run a command."""
    return ToolUse("shell", {"command": command})


# --- from JSON -------------------------------------------------------------------------------


def scenes_of(data: object) -> tuple[Scene, ...]:
    """The scenes of a decoded script; raises `BadScript` with the place."""
    if isinstance(data, list):
        return (Scene(turns=_turns(data, "turns")),)
    if isinstance(data, dict) and isinstance(data.get("scenes"), list):
        return tuple(_scene(item, f"scenes[{n}]") for n, item in enumerate(data["scenes"]))
    raise BadScript('a script is a list of turns, or {"scenes": […]}')


def _scene(data: object, place: str) -> Scene:
    scene = _filled(Scene, data, place)
    return replace(scene, turns=_turns(scene.turns, f"{place}.turns"))


def _turns(data: object, place: str) -> tuple[Turn, ...]:
    return tuple(_turn(item, f"{place}[{n}]") for n, item in enumerate(_listed(data, place)))


def _turn(data: object, place: str) -> Turn:
    turn = _filled(Turn, data, place)
    nested: dict[str, Any] = {}
    for name, kind in (("usage", Usage), ("fail", Failure), ("break_off", Failure)):
        if isinstance(value := getattr(turn, name), dict):
            nested[name] = _filled(kind, value, f"{place}.{name}")
    calls = _listed(turn.tools, f"{place}.tools")
    return replace(turn, tools=tuple(_tool(call, f"{place}.tools") for call in calls), **nested)


def _tool(data: object, place: str) -> ToolUse:
    if not isinstance(data, dict) or len(data) != 1:
        raise BadScript(f'{place}: a tool call is {{"name": {{arguments}}}}')
    ((name, arguments),) = data.items()
    return ToolUse(name, dict(arguments))


def _listed(data: object, place: str) -> Sequence[object]:
    if not isinstance(data, list | tuple):
        raise BadScript(f"{place}: expected a list")
    return data


def _filled(kind: type[_Fields], data: object, place: str) -> _Fields:
    if not isinstance(data, dict):
        raise BadScript(f"{place}: expected an object")
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]  # always a dataclass
    if unknown := set(data) - known:
        raise BadScript(f"{place}: unknown key {min(unknown)!r}; known are {sorted(known)}")
    try:
        return kind(**data)
    except TypeError as error:
        raise BadScript(f"{place}: {error}") from error
