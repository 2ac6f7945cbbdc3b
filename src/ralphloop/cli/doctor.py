"""`ralph doctor`: everything a run needs, looked at one by one, each problem with its fix."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.cli.doctor_checks import Seen, examine
from ralphloop.cli.layout import row
from ralphloop.errors import ExitCode, Level
from ralphloop.project import find_project
from ralphloop.text.plain import counted

_COLOURS = {Level.OK: "green", Level.INFO: "dim", Level.WARNING: "yellow", Level.ERROR: "red"}
_INDENT = 21


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One object: ok and the findings.")
def doctor(as_json: bool) -> int:
    """Look at everything a run needs: git, settings, stories, checks, agents, journal.

    Ends with 0 if nothing stands in the way of a run, else with the code that run would end with.
    """
    seen = list(examine(find_project(Path.cwd()), os.environ))
    code = _exit_code(seen)
    if as_json:
        output.emit_json(
            {
                "v": 1,
                "ok": code is ExitCode.COMPLETE,
                "exit_code": int(code),
                "findings": [
                    {"area": s.area, "level": s.level, "message": s.message, "fix": s.fix}
                    for s in seen
                ],
            }
        )
    else:
        output.emit_lines(_lines(seen))
    return code


def _exit_code(seen: Sequence[Seen]) -> ExitCode:
    """The code of the first error: what a run would meet first."""
    return next((each.code for each in seen if each.level is Level.ERROR), ExitCode.COMPLETE)


def _lines(seen: Sequence[Seen]) -> Iterator[str]:
    for each in seen:
        label = f"{each.level:<9}{each.area}"
        yield from row(label, each.message, _COLOURS[each.level], width=_INDENT)
        if each.fix:
            yield from row("", f"fix: {each.fix}", width=_INDENT)
    yield ""
    yield _summary(seen)


def _summary(seen: Sequence[Seen]) -> str:
    errors = sum(each.level is Level.ERROR for each in seen)
    warnings = sum(each.level is Level.WARNING for each in seen)
    if errors:
        return f"{counted(errors, 'error')}, {counted(warnings, 'warning')}: a run would not start."
    if warnings:
        return f"{counted(warnings, 'warning')}, nothing that stops a run."
    return "All is well."
