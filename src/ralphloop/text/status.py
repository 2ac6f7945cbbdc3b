"""The RALPH_STATUS block: its grammar, its checks, its canonical form.

    ---RALPH_STATUS---
    STATUS: IN_PROGRESS | COMPLETE | BLOCKED
    TASKS_COMPLETED_THIS_LOOP: <number>
    FILES_MODIFIED: <number>
    TESTS_STATUS: PASSING | FAILING | NOT_RUN
    WORK_TYPE: IMPLEMENTATION | TESTING | DOCUMENTATION | REFACTORING
    EXIT_SIGNAL: false | true
    RECOMMENDATION: <one line summary>
    ---END_RALPH_STATUS---

The reader is tolerant in form (bold, bullets, case, quotes, comments) and strict in meaning:
EXIT_SIGNAL is true only when it says exactly that.  Which of several blocks counts is decided in
`status_finder`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import TypeVar

import msgspec

from ralphloop.text.lazy_regex import LazyRegex
from ralphloop.text.plain import clean

BEGIN = "---RALPH_STATUS---"
END = "---END_RALPH_STATUS---"

STATUS = "STATUS"
TASKS = "TASKS_COMPLETED_THIS_LOOP"
FILES = "FILES_MODIFIED"
TESTS = "TESTS_STATUS"
WORK = "WORK_TYPE"
EXIT = "EXIT_SIGNAL"
RECOMMENDATION = "RECOMMENDATION"
REQUIRED = (STATUS, TASKS, FILES, TESTS, WORK, EXIT, RECOMMENDATION)

MAX_RECOMMENDATION = 500
_MAX_COUNT = 1_000_000_000


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


Fields = dict[str, str]
_Enum = TypeVar("_Enum", bound=StrEnum)

_FIELD = LazyRegex(
    r"[ \t]*(?:[-*•][ \t]+|\d{1,2}[.)][ \t]+)?"  # a bullet
    r"[*_`\"']{0,3}(?P<key>[A-Za-z][A-Za-z_]*(?:[ -][A-Za-z_]+){0,4})[*_`\"']{0,3}"
    r"[ \t]*:[*_`]{0,3}[ \t]*(?P<value>.*)"
)
_COMMENT = LazyRegex(r"[ \t]#.*$")
_WRAPPING = "*_`\"'“”‘’ \t"
_SIGNS = LazyRegex(r"[^\w|/<({\[]+")  # "✅ COMPLETE"
_INTEGER = LazyRegex(r"\d+")
_ALTERNATIVES = LazyRegex(r"[A-Z_]+\s*[|/]\s*[A-Z_]+", re.IGNORECASE)


def read_field(line: str) -> tuple[str, str] | None:
    """The key (upper case, underscores) and raw value of a `KEY: value` line, else None."""
    match = _FIELD.fullmatch(line)
    if match is None:
        return None
    key = re.sub(r"[ -]", "_", match["key"].strip("_")).upper()
    return key, match["value"].strip()


def read_fields(lines: Iterable[str]) -> Fields:
    """All fields of a block; the last of a repeated one counts, except that a disputed
    EXIT_SIGNAL is no signal."""
    fields: Fields = {}
    for line in lines:
        if (field := read_field(line)) is None:
            continue
        key, value = field
        if key == EXIT and key in fields and read_signal(fields[key]) != read_signal(value):
            value = ""
        fields[key] = value
    return fields


def read_signal(raw: str) -> bool:
    """Exactly `true` once the dress is off; everything else is false."""
    return _undressed(raw).lower() == "true"


def is_echo(fields: Fields) -> bool:
    """True when the template's alternatives are still there: nobody filled it in."""
    return any(
        _ALTERNATIVES.search(fields.get(key, "")) and _enum_count(kind, fields[key]) > 1
        for key, kind in ((STATUS, Status), (TESTS, TestsStatus), (WORK, WorkType))
    )


def to_block(fields: Fields, *, truncated: bool = False) -> StatusBlock:
    """The typed block; what cannot be read is absent and named in `problems`."""
    return StatusBlock(
        status=_enum(Status, fields.get(STATUS)),
        tasks_completed=_integer(fields.get(TASKS)),
        files_modified=_integer(fields.get(FILES)),
        tests_status=_enum(TestsStatus, fields.get(TESTS)),
        work_type=_enum(WorkType, fields.get(WORK)),
        exit_signal=not truncated and read_signal(fields.get(EXIT, "")),
        recommendation=tidy_recommendation(fields.get(RECOMMENDATION, "")),
        truncated=truncated,
        problems=tuple(validate(fields)),
    )


def validate(fields: Fields) -> list[str]:
    """Each missing or unreadable required field, named."""
    problems = [f"{key} is missing" for key in REQUIRED if key not in fields]
    for key, kind in ((STATUS, Status), (TESTS, TestsStatus), (WORK, WorkType)):
        if key in fields and _enum(kind, fields[key]) is None:
            allowed = ", ".join(kind)
            problems.append(f"{key} is {_shown(fields[key])}, expected one of {allowed}")
    problems += [
        f"{key} is {_shown(fields[key])}, expected a number"
        for key in (TASKS, FILES)
        if key in fields and _integer(fields[key]) is None
    ]
    if EXIT in fields and _undressed(fields[EXIT]).lower() not in ("true", "false"):
        problems.append(f"{EXIT} is {_shown(fields[EXIT])}, expected true or false")
    return problems


def render(block: StatusBlock) -> str:
    """The canonical text of a block; absent fields are left out."""
    values: list[tuple[str, object]] = [
        (STATUS, block.status),
        (TASKS, block.tasks_completed),
        (FILES, block.files_modified),
        (TESTS, block.tests_status),
        (WORK, block.work_type),
        (EXIT, "true" if block.exit_signal else "false"),
        (RECOMMENDATION, tidy_recommendation(block.recommendation) or None),
    ]
    lines = [f"{key}: {value}" for key, value in values if value is not None]
    return "\n".join([BEGIN, *lines, END])


def tidy_recommendation(raw: str) -> str:
    """One bounded line of plain characters."""
    line = " ".join(clean(raw).split())[:MAX_RECOMMENDATION]
    return line.strip("*` ")


def _undressed(raw: str) -> str:
    return _COMMENT.sub("", " " + raw).strip(_WRAPPING)


def _shown(raw: str) -> str:
    return repr(raw[:60]) if raw else "empty"


def _integer(raw: str | None) -> int | None:
    match = _INTEGER.search(raw[:200]) if raw else None
    return min(int(match.group()[:10]), _MAX_COUNT) if match else None


def _enum(kind: type[_Enum], raw: str | None) -> _Enum | None:
    """The member that is the value's first word: `PASSING (12 tests)` is PASSING."""
    words = _undressed(raw or "")[:100].upper()
    if signs := _SIGNS.match(words):
        words = words[signs.end() :]
    for member in kind:
        pattern = member.replace("_", r"[_ \t-]") + r"(?![A-Z0-9_])"
        if re.match(pattern, words):
            return member
    return None


def _enum_count(kind: type[StrEnum], raw: str) -> int:
    words = re.findall(r"[A-Z_]+", raw.upper())
    return sum(member in words for member in kind)
