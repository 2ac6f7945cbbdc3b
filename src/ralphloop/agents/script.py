"""The script of a scripted agent: what it does at each start, as a YAML (or JSON) file.

    format: claude              # how it talks: claude (stream-json, the default) or text
    stories:                    # per story id, one list of steps per start; the last one repeats
      US-001:
        - - say: Looking around.
          - write: {src/app.py: "print('hello')\\n"}
          - status: {status: COMPLETE, tasks_completed: 1, tests_status: PASSING}
        - - say: Nothing left to do here.
    starts:                     # the same for every story that is not named above
      - - hang

A step is a word, or a mapping from one word to what it needs:

    say: TEXT                   the agent's own words; begins a new message
    status: {…}                 a RALPH_STATUS block at the end of the current message: status,
                                tasks_completed, files_modified, tests_status, work_type,
                                exit_signal, recommendation
    print: TEXT                 exactly this to stdout        stderr: TEXT   exactly this to stderr
    write: {PATH: TEXT}         append: {PATH: TEXT}          delete: [PATH]
    run: ARGV                   a command, waited for; its exit code is shown, not obeyed
    sleep: 2s                   a duration
    usage: {input_tokens: 900, output_tokens: 100, cost_usd: 0.02}
    deny: Bash                  a tool call that was refused
    exit: 3                     end at once with this code, without a result
    crash: SIGKILL              end by a signal to itself
    hang: silent                never end; also printing (output for ever) or busy (no output, but
                                the processor is at work)
    spawn: ARGV                 leave a child running; or {argv: ARGV, daemon: true (forked twice,
                                own session), clear_env: true, hold_output: true}
    usage_limit: {resets_in: 3s, kind: five_hour}    refused until then, exit code 1
    transient: 529              the API fails with this status, exit code 1
    fatal: authentication_failed        also billing_error, model_not_found; exit code 1
    if_prompt: {contains: TEXT, then: [STEP], else: [STEP]}

Without `exit`, `crash` or `hang` a start ends with the last message as its result and code 0.
Paths are inside the working directory.  Everything is checked before the first step is taken.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

import msgspec

from ralphloop.core.model import Value
from ralphloop.errors import InputError
from ralphloop.text.durations import parse_duration
from ralphloop.text.status import Status, TestsStatus, WorkType

Argv = Annotated[list[str], msgspec.Meta(min_length=1)]

_LARGEST = 1_000_000
_DEEPEST = 20


class StatusFields(Value, forbid_unknown_fields=True):
    """A RALPH_STATUS block to print."""

    status: Status | None = None
    tasks_completed: int | None = None
    files_modified: int | None = None
    tests_status: TestsStatus | None = None
    work_type: WorkType | None = None
    exit_signal: bool = False
    recommendation: str = ""


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


class Condition(Value, forbid_unknown_fields=True, rename={"otherwise": "else"}):
    contains: str
    then: tuple[Any, ...] = ()
    otherwise: tuple[Any, ...] = ()


class Step(Value):
    """One thing to do; `value` has the type that `_KINDS` gives for the word."""

    word: str
    value: Any = None


class Script(Value, kw_only=True):
    """What a scripted agent does."""

    format: Literal["claude", "text"] = "claude"
    stories: dict[str, tuple[tuple[Step, ...], ...]]
    starts: tuple[tuple[Step, ...], ...]

    def steps(self, story: str, earlier_starts: int) -> tuple[Step, ...] | None:
        """What to do at this start of this story; None where the script does not know it."""
        starts = self.stories.get(story) or self.starts
        return starts[min(earlier_starts, len(starts) - 1)] if starts else None


_FATAL = Literal["authentication_failed", "billing_error", "model_not_found"]
_HANG = Literal["silent", "printing", "busy"]

# The type of each word's value, and the value of a bare word (`...`: it needs one).
_KINDS: dict[str, tuple[Any, Any]] = {
    "say": (str, ...),
    "status": (StatusFields, ...),
    "print": (str, ...),
    "stderr": (str, ...),
    "write": (dict[str, str], ...),
    "append": (dict[str, str], ...),
    "delete": (list[str], ...),
    "run": (Argv, ...),
    "sleep": (str | float, ...),
    "usage": (UsageFields, ...),
    "deny": (str, "Bash"),
    "exit": (Annotated[int, msgspec.Meta(ge=0, le=255)], 1),
    "crash": (str, "SIGKILL"),
    "hang": (_HANG, "silent"),
    "spawn": (Argv | SpawnFields, ...),
    "usage_limit": (LimitFields, {}),
    "transient": (int, 529),
    "fatal": (_FATAL, "authentication_failed"),
    "if_prompt": (Condition, ...),
}


def load_script(path: Path) -> Script:
    """Read and check a script; raises `InputError` with the place of the first mistake."""
    raw = _parse(path)
    name = path.name
    if not isinstance(raw, dict):
        raise InputError("a script is a mapping with `stories` or `starts`", place=name)
    _known_keys(raw, ("format", "stories", "starts"), name)
    form = raw.get("format", "claude")
    if form not in {"claude", "text"}:
        raise InputError(f"must be claude or text, not {form!r}", place=f"{name}: format")
    stories = raw.get("stories") or {}
    if not isinstance(stories, dict):
        raise InputError("must be a mapping from story ids to starts", place=f"{name}: stories")
    script = Script(
        format=form,
        stories={
            str(story): _starts(starts, f"{name}: stories.{story}")
            for story, starts in stories.items()
        },
        starts=_starts(raw.get("starts") or [], f"{name}: starts"),
    )
    if not script.stories and not script.starts:
        raise InputError("the script says nothing: give it `stories` or `starts`", place=name)
    return script


def _parse(path: Path) -> object:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", place=str(path)) from error
    if len(data) > _LARGEST:
        raise InputError(f"is larger than {_LARGEST:,} bytes", place=path.name)
    try:
        return msgspec.json.decode(data) if path.suffix == ".json" else _parse_yaml(data)
    except (ValueError, RecursionError) as error:
        raise InputError(" ".join(str(error).split()), place=path.name) from error


def _parse_yaml(data: bytes) -> object:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(data)
    except YAMLError as error:
        raise ValueError(str(error)) from error


def _starts(raw: object, place: str) -> tuple[tuple[Step, ...], ...]:
    if not isinstance(raw, list):
        raise InputError("must be a list with one list of steps per start", place=place)
    return tuple(_steps(start, f"{place}[{n}]") for n, start in enumerate(raw))


def _steps(raw: object, place: str, depth: int = 0) -> tuple[Step, ...]:
    if not isinstance(raw, list):
        raise InputError("must be a list of steps", place=place)
    if depth > _DEEPEST:
        raise InputError("conditions are nested too deeply", place=place)
    return tuple(_step(step, f"{place}[{n}]", depth) for n, step in enumerate(raw))


def _step(raw: object, place: str, depth: int) -> Step:
    word, value = _word_and_value(raw, place)
    kind, default = _KINDS[word]
    if value is None:
        if default is ...:
            raise InputError(f"`{word}` needs a value", place=place)
        value = default
    try:
        converted = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"`{word}`: {error}", place=place) from error
    _check(word, converted, place)
    if isinstance(converted, Condition):
        converted = msgspec.structs.replace(
            converted,
            then=_steps(list(converted.then), f"{place}.then", depth + 1),
            otherwise=_steps(list(converted.otherwise), f"{place}.else", depth + 1),
        )
    return Step(word=word, value=converted)


def _word_and_value(raw: object, place: str) -> tuple[str, object]:
    if isinstance(raw, dict) and len(raw) == 1:
        [(word, value)] = raw.items()
    elif isinstance(raw, str):
        word, value = raw, None
    else:
        raise InputError("a step is one word, or one word with its value", place=place)
    _known_keys({word: value}, tuple(_KINDS), place)
    return str(word), value


def _known_keys(raw: dict[Any, Any], known: tuple[str, ...], place: str) -> None:
    for key in raw:
        if key not in known:
            close = get_close_matches(str(key), known, 1)
            hint = f"did you mean `{close[0]}`?" if close else f"known are: {', '.join(known)}"
            raise InputError(f"unknown word `{key}`", hint, place=place)


def _check(word: str, value: Any, place: str) -> None:
    """What types do not say: paths, durations, signals."""
    try:
        if check := _CHECKS.get(word):
            check(value)
    except ValueError as error:
        raise InputError(f"`{word}`: {error}", place=place) from error


def _inside(paths: Iterable[str]) -> None:
    for path in paths:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or not pure.parts or "\0" in path:
            raise ValueError(f"{path!r} is not a path inside the working directory")


def signal_named(name: str) -> signal.Signals:
    """`SIGKILL` or `KILL`."""
    try:
        return signal.Signals[name if name.startswith("SIG") else f"SIG{name}"]
    except KeyError:
        raise ValueError(f"there is no signal {name!r}") from None


_CHECKS: dict[str, Callable[[Any], object]] = {
    "write": _inside,
    "append": _inside,
    "delete": _inside,
    "sleep": parse_duration,
    "crash": signal_named,
    "usage_limit": lambda limit: parse_duration(limit.resets_in),
}
