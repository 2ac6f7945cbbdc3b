"""`ralph eval`: try the decisions on labelled cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from ralphloop.cli import output
from ralphloop.cli.given import PAIR, Pairs
from ralphloop.errors import ExitCode, InputError
from ralphloop.replay.cases import CaseResult, judge, parse_cases


@click.command("eval")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One object per case.")
@click.option(
    "--policy",
    "settings",
    multiple=True,
    type=PAIR,
    help="Override a threshold in every case, e.g. no_progress_threshold=4. Repeatable.",
)
def eval_cases(files: Sequence[Path], as_json: bool, settings: Pairs) -> int:
    """Play labelled cases (JSON Lines) through the readers and the core and compare.

    Exit code 0 if every case agrees, 1 if one does not.
    """
    overrides: dict[str, Any] = dict(settings)
    tally: list[tuple[str, int, int]] = []
    for path in files:
        agreed = total = 0
        for result in _results(path, overrides):
            total, agreed = total + 1, agreed + result.ok
            _show(result, as_json)
        tally.append((str(path), agreed, total))
    if not as_json:
        output.emit_lines(_table(tally))
    everything = all(agreed == total for _, agreed, total in tally)
    return ExitCode.COMPLETE if everything else ExitCode.HALTED


def _results(path: Path, overrides: dict[str, Any]) -> Iterator[CaseResult]:
    try:
        with path.open("rb") as lines:
            for case in parse_cases(lines, str(path)):
                yield judge(case, overrides)
    except OSError as error:
        raise InputError(error.strerror or str(error), place=str(path)) from None


def _show(result: CaseResult, as_json: bool) -> None:
    if as_json:
        output.emit_json(_as_data(result), indent=None)
        return
    mark = output.paint("ok  ", "green") if result.ok else output.paint("FAIL", "red")
    lines = [f"{mark} {output.safe(result.id)}"]
    for wrong in result.mismatches:
        lines.append(
            f"       iteration {wrong.iteration}: {wrong.key} is {_shown(wrong.got)},"
            f" expected {_shown(wrong.expected)}"
        )
    output.emit_lines(lines)


def _as_data(result: CaseResult) -> dict[str, Any]:
    return {
        "id": result.id,
        "ok": result.ok,
        "mismatches": [
            {"iteration": m.iteration, "key": m.key, "expected": m.expected, "got": m.got}
            for m in result.mismatches
        ],
        "decisions": list(result.decisions),
    }


def _shown(value: object) -> str:
    return output.safe(repr(value))[:200]


def _table(tally: Sequence[tuple[str, int, int]]) -> Iterator[str]:
    width = max(len("cases"), *(len(name) for name, _, _ in tally))
    yield ""
    yield f"{'cases':<{width}}  agree  differ  total"
    for name, agreed, total in tally:
        yield f"{name:<{width}}  {agreed:>5}  {total - agreed:>6}  {total:>5}"
