"""The RALPH_STATUS block: its grammar, its checks, its canonical form.

`docs/reference/status-block.md` has its fields and says which block of a message counts.  The
reader is tolerant in form (bold, bullets, case, quotes, comments) and strict in meaning:
EXIT_SIGNAL is true only when it says exactly that.  What may be a quotation counts only where it
ends the answer; a block without its end marker is never believed in its EXIT_SIGNAL, and only used
when no whole one exists.
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec

from ralphloop.text.lines import Fence, fence_after
from ralphloop.text.plain import LazyRegex, any_case, clean

BEGIN = "---RALPH_STATUS---"
END = "---END_RALPH_STATUS---"

MAX_BLOCK = 1 << 14  # characters; a longer "block" is a lost marker, not a block


class Status(StrEnum):
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    BLOCKED = "BLOCKED"


class TestsStatus(StrEnum):
    __test__ = False  # the name is the field's; pytest would take it for a test class

    PASSING = "PASSING"
    FAILING = "FAILING"
    NOT_RUN = "NOT_RUN"


class WorkType(StrEnum):
    IMPLEMENTATION = "IMPLEMENTATION"
    TESTING = "TESTING"
    DOCUMENTATION = "DOCUMENTATION"
    REFACTORING = "REFACTORING"


class StatusBlock(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the agent reports of itself; absent or unreadable fields are None."""

    status: Status | None = None
    tasks_completed: int | None = None
    files_modified: int | None = None
    tests_status: TestsStatus | None = None
    work_type: WorkType | None = None
    exit_signal: bool = False
    recommendation: str = ""
    truncated: bool = False
    problems: tuple[str, ...] = ()


EXIT = "EXIT_SIGNAL"
# What each line is in the block, and how it is read; in the order in which they are written.
_FIELDS: dict[str, tuple[str, Any]] = {
    "STATUS": ("status", Status),
    "TASKS_COMPLETED_THIS_LOOP": ("tasks_completed", int),
    "FILES_MODIFIED": ("files_modified", int),
    "TESTS_STATUS": ("tests_status", TestsStatus),
    "WORK_TYPE": ("work_type", WorkType),
    EXIT: ("exit_signal", bool),
    "RECOMMENDATION": ("recommendation", str),
}
REQUIRED = tuple(_FIELDS)
_EXPECTED = {int: "a number", bool: "true or false"}
Fields = dict[str, str]

_FIELD = LazyRegex(
    r"[ \t]*(?:[-*•][ \t]+|\d{1,2}[.)][ \t]+)?"  # a bullet
    r"[*_`\"']{0,3}(?P<key>[A-Za-z][A-Za-z_]*(?:[ -][A-Za-z_]+){0,4})[*_`\"']{0,3}[ \t]*:"
    r"[*_`]{0,3}[ \t]*(?P<value>.*)"
)
_COMMENT = LazyRegex(r"[ \t]#.*$")
_WRAPPING = "*_`\"'“”‘’ \t"
_SIGNS = LazyRegex(r"^[^\w|/<({\[]+")  # "✅ COMPLETE"
_INTEGER = LazyRegex(r"\d+")
_ALTERNATIVES = any_case(r"[A-Z_]+\s*[|/]\s*[A-Z_]+")

_EVENT = LazyRegex(  # a marker, or a fence
    r"^ {0,3}(?:(?P<run>`{3,}|~{3,})(?P<info>[^\n]{0,400})|(?:[*_]{1,3} ?)?(?:---"
    r"|—) ?(?P<end>END[_ ])?RALPH[_ ]STATUS ?(?:---|—) ?[*_]{0,3})[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_PROMISE = r"[ \t]*<promise>[^<\n]*</promise>[ \t]*"
_TITLE = any_case(
    r"[ \t]{0,3}(?:#{1,6}[ \t]*[-—*_`]{0,3}RALPH[_ ]STATUS[-—*_`]{0,3}:?"
    r"|[*_]{0,3}RALPH[_ ]STATUS[*_]{0,3}:[*_]{0,3}|[*_]{2,3}RALPH[_ ]STATUS[*_]{2,3})[ \t]*#*"
    r"[ \t]*"
)
_TRAILER = any_case(
    rf"\s*| {{0,3}}(?:`{{3,}}|~{{3,}})\s*|{_PROMISE}|[-—*_#` \t]*END[_ ]RALPH[_ ]STATUS"
    r"[-—*_#`: \t]*|[ \t]*<!--[^\n]*-->[ \t]*"
)


class _Body(NamedTuple):
    """What stands behind a begin marker."""

    text: str
    end: int  # where it ends in the whole text
    fence: Fence | None  # around it
    truncated: bool


class _Field(NamedTuple):
    key: str  # in capitals, with underscores
    value: str  # as it is written


def find_block(text: str) -> StatusBlock | None:
    """The block that counts in an answer; None where there is none."""
    if text.isascii() and "\x1b" not in text and "ralph" not in text.lower():
        return None  # every form names it; invisible characters may hide the name
    text = clean(text)
    whole: StatusBlock | None = None
    unclosed: StatusBlock | None = None
    fenced: StatusBlock | None = None  # counts if nothing follows
    fenced_end = 0
    for body in _bodies(text):
        lines = body.text.split("\n") if len(body.text) <= MAX_BLOCK else []
        if body.truncated:  # it is read up to the first line that is no field
            lines = list(takewhile(lambda line: not line.strip() or _read_field(line), lines))
        block = _to_block(_read_fields(lines), truncated=body.truncated)
        if block is None or (body.fence and body.fence.is_diff):
            continue
        if body.fence:
            fenced = block
            fenced_end = body.end
        elif body.truncated:
            unclosed = block
        else:
            whole = block
    if fenced and all(map(_TRAILER.fullmatch, text[fenced_end:].split("\n"))):
        whole = fenced
    return _titled_block(text[-MAX_BLOCK:]) or whole or unclosed


def _bodies(text: str) -> Iterator[_Body]:
    """What follows each begin marker."""
    fence: Fence | None = None
    begin: int | None = None
    for event in _EVENT.finditer(text):
        if event["run"]:
            after = fence_after(fence, event["run"], event["info"])
            if after is fence:
                continue
            if begin is not None:
                yield _Body(text[begin : event.start()], event.start(), fence, truncated=True)
            fence = after
            begin = None
        elif not event["end"]:
            begin = event.end()
        elif begin is not None:
            yield _Body(text[begin : event.start()], event.end(), fence, truncated=False)
            begin = None
    if begin is not None:
        yield _Body(text[begin:], len(text), fence, truncated=True)


def _titled_block(tail: str) -> StatusBlock | None:
    """The YAML or heading form, if nothing but its fields stands between it and the end."""
    lines = tail.split("\n")
    while lines and _TRAILER.fullmatch(lines[-1]):
        lines.pop()
    for index in range(len(lines) - 1, -1, -1):
        if _TITLE.fullmatch(lines[index]):
            fields = _read_fields(lines[index + 1 :])
            return _to_block(fields) if fields.keys() & set(REQUIRED) else None
        if lines[index].strip() and _read_field(lines[index]) is None:
            return None
    return None


def _read_field(line: str) -> _Field | None:
    """The field that a `KEY: value` line holds; None where it is another line."""
    match = _FIELD.fullmatch(line)
    if match is None:
        return None
    key = re.sub(r"[ -]", "_", match["key"].strip("_")).upper()
    return _Field(key, match["value"].strip())


def _read_fields(lines: Iterable[str]) -> Fields:
    """The last of a repeated field counts, except that a disputed EXIT_SIGNAL is no signal."""
    fields: Fields = {}
    for key, value in filter(None, map(_read_field, lines)):
        told = {_undressed(raw).lower() == "true" for raw in (fields.get(key, value), value)}
        fields[key] = "" if key == EXIT and len(told) > 1 else value
    return fields


def _is_echo(fields: Fields) -> bool:
    """True when the template's alternatives are still there: nobody filled it in."""
    return any(
        issubclass(kind, StrEnum)
        and _ALTERNATIVES.search(fields.get(key, ""))
        and sum(member in re.findall(r"[A-Z_]+", fields[key].upper()) for member in kind) > 1
        for key, (_, kind) in _FIELDS.items()
    )


def _to_block(fields: Fields, *, truncated: bool = False) -> StatusBlock | None:
    """The typed block, or None for an echo; what cannot be read is absent and named."""
    if not fields or _is_echo(fields):
        return None
    problems = [f"{key} is missing" for key in REQUIRED if key not in fields]
    told: dict[str, object] = {}
    for key, (name, kind) in _FIELDS.items():
        told[name] = _value(fields.get(key, ""), kind)
        if key in fields and told[name] is None:
            shown = repr(fields[key][:60]) if fields[key] else "empty"
            expected = _EXPECTED.get(kind) or f"one of {', '.join(kind)}"
            problems.append(f"{key} is {shown}, expected {expected}")
    signal = not truncated and told["exit_signal"] is True
    told |= {"exit_signal": signal, "truncated": truncated, "problems": problems}
    return msgspec.convert(told, StatusBlock)


def _value(raw: str, kind: Any) -> object:
    """None where it cannot be read; a word counts at the beginning: `PASSING (12 tests)`."""
    if kind is str:
        return tidy_recommendation(raw)
    if kind is int:
        match = _INTEGER.search(raw[:200])
        return min(int(match.group()[:10]), 1_000_000_000) if match else None
    if kind is bool:
        return {"true": True, "false": False}.get(_undressed(raw).lower())
    words = _SIGNS.sub("", _undressed(raw)[:100].upper())
    for member in kind:
        if re.match(member.replace("_", r"[_ \t-]") + r"(?![A-Z0-9_])", words):
            return member
    return None


def _undressed(raw: str) -> str:
    return _COMMENT.sub("", " " + raw).strip(_WRAPPING)


def tidy_recommendation(raw: str) -> str:
    return " ".join(clean(raw).split())[:500].strip("*` ")


_NOTHING = frozenset({"", "-", "none", "n/a", "na", "nothing", "no", "null"})


def advice_of(recommendation: str) -> str:
    """What is recommended; empty where the words say that nothing is."""
    return "" if recommendation.strip(" .").casefold() in _NOTHING else recommendation


def render(block: StatusBlock) -> str:
    """The canonical text of a block; absent fields are left out."""
    told = {key: getattr(block, name) for key, (name, _) in _FIELDS.items()}
    told |= {EXIT: str(block.exit_signal).lower()}
    told |= {"RECOMMENDATION": tidy_recommendation(block.recommendation) or None}
    lines = [f"{key}: {value}" for key, value in told.items() if value is not None]
    return "\n".join([BEGIN, *lines, END])
