"""`ralph analyze`: weigh one agent output and say what would be decided."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import click

from ralphloop.agents.environment import local_time
from ralphloop.cli import output
from ralphloop.config.load import load_config
from ralphloop.config.policy import policy_of
from ralphloop.core.analysis_json import analysis_object
from ralphloop.core.iteration import Result, Start
from ralphloop.core.model import Analysis, Decision, Evidence, ProcessEnd, Response
from ralphloop.core.run_state import RunState
from ralphloop.core.step import step
from ralphloop.errors import InputError
from ralphloop.journal.circuit import load_circuit
from ralphloop.journal.reader import JournalReader
from ralphloop.project import Project, find_project
from ralphloop.readers import reader_for
from ralphloop.readers.base import Reader
from ralphloop.text.durations import iso
from ralphloop.text.status import StatusBlock

_CHUNK = 1 << 16


@click.command()
@click.argument("file", default="-", type=click.Path(path_type=str, allow_dash=True))
@click.option(
    "--agent",
    type=click.Choice(["auto", "text", "claude", "codex", "gemini", "opencode"]),
    default="auto",
    help="Whose output this is.  [default: found out]",
)
@click.option("--exit-code", type=int, default=0, help="The agent's exit code.  [default: 0]")
@click.option("--json", "as_json", is_flag=True, help="The whole analysis as one object.")
def analyze(file: str, agent: str, exit_code: int, as_json: bool) -> None:
    """Weigh one agent's output (FILE, or - for standard input) and say what would be decided.

    Only the output is known here: no files were measured and no checks were run, so claims
    stand in for evidence.  Always exits 0, whatever it finds.
    """
    now = time.time()
    reader = _feed(reader_for(agent), file)
    response = reader.finish(exit_code=exit_code, now=local_time(now, os.environ))
    project = find_project(Path.cwd())
    policy = policy_of(load_config(project.root, env=os.environ).config)
    result = Result(response=response, end=ProcessEnd(exit_code=exit_code))
    taken = step(_known_state(project), Start(), result, Evidence(at=now), policy)
    if as_json:
        output.emit_json(
            analysis_object(taken.analysis, taken.decision, response, timestamp=iso(now))
        )
    else:
        output.emit_lines(_summary(taken.analysis, taken.decision, response))


def _known_state(project: Project) -> RunState:
    """Iteration and circuit of the journal, if there is one."""
    with JournalReader.open(project.journal) as journal:
        latest = journal.latest_run()
        starts = latest.totals.starts if latest else 0
        return RunState(starts=starts, breaker=load_circuit(journal))


def _feed(reader: Reader, file: str) -> Reader:
    try:
        with click.open_file(file, "rb") as stream:
            while chunk := stream.read(_CHUNK):
                reader.feed(chunk)
    except OSError as error:
        raise InputError(error.strerror or str(error), place=file) from None
    return reader


def _summary(analysis: Analysis, decision: Decision, response: Response) -> Iterator[str]:
    yield f"decision    {output.paint(output.safe(decision.sentence), 'bold')}"
    reason = f" ({output.safe(response.reason)})" if response.reason else ""
    yield f"outcome     {analysis.outcome}{reason}, read as {response.reader} {response.format}"
    yield f"status      {_status_line(analysis.status, analysis.exit_signal)}"
    yield f"indicators  {analysis.indicators.count}, confidence {analysis.confidence:.2f}"
    if analysis.error_signature:
        yield f"error       {output.safe(analysis.error_signature)}"
    if response.usage.total_tokens or response.usage.cost_usd is not None:
        yield f"usage       {_usage_line(response)}"
    for warning in analysis.warnings:
        yield f"warning     {output.safe(warning)}"


def _status_line(block: StatusBlock | None, exit_signal: bool) -> str:
    if block is None:
        return "no RALPH_STATUS block"
    signal = "true" if exit_signal else "false"
    rest = f": {output.safe(block.recommendation)}" if block.recommendation else ""
    problems = f" ({'; '.join(block.problems)})" if block.problems else ""
    return f"{block.status or 'unreadable'}, EXIT_SIGNAL {signal}{rest}{problems}"


def _usage_line(response: Response) -> str:
    usage = response.usage
    cost = "no price known" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    return f"{usage.total_tokens:,} tokens, {cost}{' (estimated)' if usage.estimated else ''}"
