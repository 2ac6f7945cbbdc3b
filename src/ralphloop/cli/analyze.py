"""`ralph analyze`: weigh one agent output and say what would be decided."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from ralphloop.agents.environment import local_time
from ralphloop.cli import output
from ralphloop.config.load import load_config
from ralphloop.config.model import policy_of
from ralphloop.core.iteration import Result, Start
from ralphloop.core.model import Analysis, Decision, Evidence, Indicators, ProcessEnd, Response
from ralphloop.core.run_state import RunState
from ralphloop.core.step import step
from ralphloop.errors import InputError
from ralphloop.journal.queries import JournalReader
from ralphloop.journal.session import load_circuit
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


def analysis_object(
    analysis: Analysis, decision: Decision, response: Response, *, timestamp: str
) -> dict[str, Any]:
    """One iteration's analysis in the published shape."""
    return {
        "timestamp": timestamp,
        "iteration": analysis.iteration,
        "ralph_status": _status(analysis.status, exit_signal=analysis.exit_signal),
        "completion_indicators": analysis.indicators.count,
        "exit_decision": str(decision.word),
        "stuck_loop_detected": analysis.stuck_loop_detected,
        "circuit_breaker_state": str(analysis.circuit),
        "outcome": str(analysis.outcome),
        "outcome_reason": response.reason,
        "confidence": analysis.confidence,
        "indicators": _indicators(analysis.indicators),
        "reasons": list(decision.reasons),
        "warnings": list(analysis.warnings),
        "error_signature": analysis.error_signature,
        "story_claimed": analysis.story_claimed,
        "question": analysis.question,
        "stuck": [{"pattern": p.name, "detail": p.detail} for p in analysis.stuck],
        "progress": analysis.progress,
        "reader": response.reader,
        "format": str(response.format),
        "session_id": response.session_id,
        "model": response.model,
        "usage": _usage(response),
        "denials": [{"tool": d.tool, "summary": d.summary} for d in response.denials],
        "resets_at": response.rate_limit.resets_at if response.rate_limit else None,
    }


def _status(block: StatusBlock | None, *, exit_signal: bool) -> dict[str, Any]:
    found = block or StatusBlock()
    return {
        "found": block is not None,
        "status": found.status,
        "tasks_completed": found.tasks_completed,
        "files_modified": found.files_modified,
        "tests_status": found.tests_status,
        "work_type": found.work_type,
        "exit_signal": exit_signal,
        "recommendation": found.recommendation or None,
        "problems": list(found.problems),
    }


def _indicators(indicators: Indicators) -> dict[str, bool | None]:
    return {name: getattr(indicators, name) for name in indicators.__struct_fields__}


def _usage(response: Response) -> dict[str, Any]:
    usage = response.usage
    return {name: getattr(usage, name) for name in usage.__struct_fields__}
