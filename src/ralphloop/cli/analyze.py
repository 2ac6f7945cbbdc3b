"""`ralph analyze`: weigh one output of an agent; nothing is started and nothing written."""

import os
import time
from collections.abc import Iterator

import click
from msgspec.structs import asdict

from ralphloop.agents.environment import local_time
from ralphloop.cli import output
from ralphloop.cli.shared.options import json_option
from ralphloop.config.load import load_config
from ralphloop.config.model import policy_of
from ralphloop.core.iteration import Result, Start
from ralphloop.core.model import Evidence, ProcessEnd, Response
from ralphloop.core.run_state import RunState
from ralphloop.core.step import Step, step
from ralphloop.errors import unreadable
from ralphloop.night.look import look
from ralphloop.project import find_project
from ralphloop.readers import NAMES, reader_for
from ralphloop.text.durations import iso
from ralphloop.text.status_block import StatusBlock

_CHUNK = 1 << 16


@click.command()
@click.argument("file", default="-", type=click.Path(path_type=str, allow_dash=True))
@click.option("--agent", type=click.Choice(NAMES), default="auto", help="Whose output this is.")
@click.option("--exit-code", type=int, default=0, help="The agent's exit code.  [default: 0]")
@json_option("The whole analysis as one object.")
def analyze(file: str, agent: str, exit_code: int, as_json: bool) -> None:
    """Weigh one agent's output (FILE, or - for standard input) and say what would be decided.

    Only the output is known here: no files were measured and no checks were run, so claims
    stand in for evidence.  Always exits 0, whatever it finds.
    """
    now = time.time()
    reader = reader_for(agent)
    try:
        with click.open_file(file, "rb") as stream:
            while chunk := stream.read(_CHUNK):
                reader.feed(chunk)
    except OSError as error:
        raise unreadable(error, file) from None
    response = reader.finish(exit_code=exit_code, now=local_time(now, os.environ))
    project = find_project()
    policy = policy_of(load_config(project.root, env=os.environ).config)
    result = Result(response=response, end=ProcessEnd(exit_code=exit_code))
    night = look(project, now=now)
    state = RunState(starts=night.totals.starts, breaker=night.circuit)
    taken = step(state, Start(), result, Evidence(at=now), policy)
    analysis = taken.analysis
    decision = taken.decision
    block = taken.analysis.status
    data = {
        "timestamp": iso(now),
        "iteration": analysis.iteration,
        "ralph_status": {
            "found": block is not None,
            **asdict(block or StatusBlock()),
            "exit_signal": analysis.exit_signal,
            "recommendation": (block and block.recommendation) or None,
        },
        "completion_indicators": analysis.indicators.count,
        "exit_decision": decision.word,
        "stuck_loop_detected": bool(analysis.stuck),
        "circuit_breaker_state": analysis.circuit,
        "outcome_reason": response.reason,
        "reasons": decision.reasons,
        **output.picked(analysis, "outcome", "confidence", "indicators", "progress"),
        **output.picked(analysis, "warnings", "error_signature", "story_claimed", "question"),
        "stuck": [{"pattern": each.name, "detail": each.detail} for each in analysis.stuck],
        **output.picked(response, "reader", "format", "session_id", "model", "usage"),
        "denials": [output.picked(denial, "tool", "summary") for denial in response.denials],
        "resets_at": response.rate_limit.resets_at,
    }
    output.show(_summary(taken, response), data, as_json=as_json)


def _summary(taken: Step, response: Response) -> Iterator[str]:
    analysis = taken.analysis
    block = taken.analysis.status
    usage = response.usage
    yield f"decision    {output.paint(output.safe(taken.decision.sentence), 'bold')}"
    reason = f" ({output.safe(response.reason)})" if response.reason else ""
    yield f"outcome     {analysis.outcome}{reason}, read as {response.reader} {response.format}"
    if block is None:
        yield "status      no RALPH_STATUS block"
    else:
        signal = "true" if analysis.exit_signal else "false"
        rest = f": {output.safe(block.recommendation)}" if block.recommendation else ""
        problems = f" ({'; '.join(block.problems)})" if block.problems else ""
        status = block.status or "unreadable"
        yield f"status      {status}, EXIT_SIGNAL {signal}{rest}{problems}"
    yield f"indicators  {analysis.indicators.count}, confidence {analysis.confidence:.2f}"
    if analysis.error_signature:
        yield f"error       {output.safe(analysis.error_signature)}"
    if usage.total_tokens or usage.cost_usd is not None:
        cost = "no price known" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
        estimated = " (estimated)" if usage.estimated else ""
        yield f"usage       {usage.total_tokens:,} tokens, {cost}{estimated}"
    for warning in analysis.warnings:
        yield f"warning     {output.safe(warning)}"
