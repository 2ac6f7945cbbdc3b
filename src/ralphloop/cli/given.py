"""What a person writes on the command line, read the same way by every command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from ralphloop.core.durations import parse_duration
from ralphloop.errors import UsageError
from ralphloop.housekeeping import parse_size
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import RunRecord

Pairs = Sequence[tuple[str, str]]
_SEARCHED_RUNS = 500


class _Written(click.ParamType):  # type: ignore[type-arg] # generic in newer versions only
    """A value with a reader of its own, whose words say what is wrong."""

    def __init__(self, name: str, read: Callable[[str], object]) -> None:
        self.name, self._read = name, read

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"expected KEY=VALUE, got {text!r}")
    return key.strip(), value.strip()


DURATION = _Written("duration", parse_duration)
SIZE = _Written("size", parse_size)
PAIR = _Written("key=value", _pair)


def find_run(journal: Queries, wanted: str | None) -> RunRecord | None:
    """The newest run, or the one whose id is, begins or ends like that."""
    if wanted is None:
        return journal.latest_run()
    if exact := journal.find_run(wanted):
        return exact
    runs = journal.runs(_SEARCHED_RUNS)
    close = [run for run in runs if run.id.startswith(wanted) or run.id.endswith(wanted)]
    if len(close) == 1:
        return close[0]
    names = ", ".join(run.id for run in (close or runs)[:5])
    what = f"{len(close)} runs are called" if close else "there is no run"
    raise UsageError(f"{what} {wanted[:60]!r}", f"name one of: {names}" if names else "ralph run")
