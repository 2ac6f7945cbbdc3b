"""Status blocks for tests, dressed in the ways models really write them."""

from __future__ import annotations

FIELDS = {
    "STATUS": "COMPLETE",
    "TASKS_COMPLETED_THIS_LOOP": "1",
    "FILES_MODIFIED": "3",
    "TESTS_STATUS": "PASSING",
    "WORK_TYPE": "IMPLEMENTATION",
    "EXIT_SIGNAL": "true",
    "RECOMMENDATION": "All requirements are met",
}
TEMPLATE = """---RALPH_STATUS---
STATUS: IN_PROGRESS | COMPLETE | BLOCKED
TASKS_COMPLETED_THIS_LOOP: <number>
FILES_MODIFIED: <number>
TESTS_STATUS: PASSING | FAILING | NOT_RUN
WORK_TYPE: IMPLEMENTATION | TESTING | DOCUMENTATION | REFACTORING
EXIT_SIGNAL: false | true
RECOMMENDATION: <one line summary>
---END_RALPH_STATUS---"""


def block(*, line: str = "{key}: {value}", end: bool = True, **fields: str) -> str:
    """A block with some fields replaced; `line` is how each field is written."""
    merged = FIELDS | fields
    lines = [line.format(key=key, value=value) for key, value in merged.items()]
    return "\n".join(["---RALPH_STATUS---", *lines, *(["---END_RALPH_STATUS---"] if end else [])])


def without(key: str) -> str:
    """A block that lacks one line."""
    return "\n".join(row for row in block().split("\n") if not row.startswith(f"{key}:"))


def replaced(key: str, value: str) -> str:
    """A block with one value replaced."""
    return "\n".join(
        f"{key}: {value}" if row.startswith(f"{key}:") else row for row in block().split("\n")
    )
