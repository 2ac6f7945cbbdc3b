"""`ralph eval`: labelled cases through readers and core; nothing is started and nothing written."""

from collections.abc import Sequence
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.cli.shared.options import Pairs, json_option, pairs_option
from ralphloop.errors import ExitCode, unreadable
from ralphloop.replay.cases import judge, parse_cases


@click.command("eval")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@json_option("One object per case.")
@pairs_option("--policy", "Override a threshold in every case, e.g. no_progress_threshold=4.")
def eval_cases(files: Sequence[Path], as_json: bool, settings: Pairs) -> int:
    """Play labelled cases (JSON Lines) through the readers and the core and compare.

    Exit code 0 if every case agrees, 1 if one does not.
    """
    width = max(len("cases"), *(len(str(path)) for path in files))
    table = ["", f"{'cases':<{width}}  agree  differ  total"]
    differ = 0
    for path in files:
        agreed = []
        try:
            with path.open("rb") as lines:
                for case in parse_cases(lines, str(path)):
                    result = judge(case, dict(settings))
                    agreed.append(result.ok)
                    mark = output.paint("FAIL", "red")
                    if result.ok:
                        mark = output.paint("ok  ", "green")
                    told = [f"{mark} {output.safe(result.id)}"]
                    for it in result.mismatches:
                        got = output.safe(repr(it.got))[:200]
                        want = output.safe(repr(it.expected))[:200]
                        where = f"       iteration {it.iteration}: {it.key}"
                        told.append(f"{where} is {got}, expected {want}")
                    output.show(told, result, as_json=as_json, indent=None)
        except OSError as error:
            raise unreadable(error, path) from None
        wrong = len(agreed) - sum(agreed)
        table.append(f"{path!s:<{width}}  {sum(agreed):>5}  {wrong:>6}  {len(agreed):>5}")
        differ += wrong
    if not as_json:
        output.emit_lines(table)
    return ExitCode.HALTED if differ else ExitCode.COMPLETE
