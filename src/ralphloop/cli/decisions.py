"""Decisions tried out, on one output, labelled cases, a scripted night or a recorded one; nothing
is started, and nothing in the project is written."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
from msgspec.structs import asdict

from ralphloop.agents.environment import local_time
from ralphloop.cli import output
from ralphloop.cli.given import Pairs, json_option, pairs_option
from ralphloop.config.load import load_config, with_settings
from ralphloop.config.model import CircuitSection, Config, policy_of
from ralphloop.core.iteration import Result, Start
from ralphloop.core.model import Evidence, ExitDecision, ProcessEnd, Response
from ralphloop.core.policy import Limits
from ralphloop.core.run_state import RunState
from ralphloop.core.step import Step, step
from ralphloop.errors import ExitCode, InputError, RepositoryError, unreadable
from ralphloop.journal.records import RunRecord
from ralphloop.night.look import config_of, find_run, look, reading
from ralphloop.project import Project, find_project
from ralphloop.readers import NAMES, reader_for
from ralphloop.replay.cases import SCENARIOS, judge, parse_cases, play
from ralphloop.replay.nights import ReplayedNight, exported
from ralphloop.replay.nights import replay as play_night
from ralphloop.text.durations import iso
from ralphloop.text.plain import counted
from ralphloop.text.status_block import StatusBlock

_MOST_WORDS = 300
_CHUNK = 1 << 16
_NIGHTS = click.Choice(sorted(SCENARIOS))


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
                    mark, colour = ("ok  ", "green") if result.ok else ("FAIL", "red")
                    told = [f"{output.paint(mark, colour)} {output.safe(result.id)}"]
                    for it in result.mismatches:
                        got, want = (output.safe(repr(x))[:200] for x in (it.got, it.expected))
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


@click.command()
@click.option(
    "--scenario", "name", type=_NIGHTS, help="Which night to play; without it all are listed."
)
@pairs_option("--set", "A setting as in ralph.toml, e.g. circuit.no_progress_threshold=5.")
@json_option("One object per step.")
def simulate(name: str | None, settings: Pairs, as_json: bool) -> None:
    """Play a scripted sequence through the core and show state, transition and decision.

    Nothing is started and nothing is written; the settings of the current directory apply.
    """
    if name is None:
        titles = (f"  {name:<15} {scenario.title}" for name, scenario in SCENARIOS.items())
        output.emit_lines(["Scenarios (ralph simulate --scenario NAME):", *titles])
        return
    policy = policy_of(load_config(Path.cwd(), env=os.environ, flags=dict(settings)).config)
    if not as_json:
        output.emit_lines([f"{output.paint(name, 'bold')}: {SCENARIOS[name].title}"])
    for number, (turn, state, taken) in enumerate(play(SCENARIOS[name], policy), start=1):
        breaker = state.breaker
        moved = taken.analysis.transition if taken else breaker.history[-1]
        data = {
            "step": number,
            "says": turn.says,
            **output.picked(breaker, "circuit", "no_progress", "same_error"),
            "transition": moved,
            "stuck": [pattern.name for pattern in taken.analysis.stuck] if taken else [],
            "decision": taken.decision.word if taken else None,
            "reasons": taken.decision.reasons if taken else (),
        }
        below = [f"{moved.before} → {moved.after}: {moved.reason}"] if moved else []
        if taken:
            below += [f"stuck: {pattern.detail}" for pattern in taken.analysis.stuck]
            if taken.analysis.decline:
                below.append(f"warning: {taken.analysis.decline.detail}")
            style = () if taken.decision.word is ExitDecision.CONTINUE else ("bold",)
            below.append(output.paint(taken.decision.sentence, *style))
        circuit = output.paint(f"{breaker.circuit:<9}", output.CIRCUIT[breaker.circuit])
        lines = [f"{number:>3}  {circuit}  {turn.says}", *(" " * 16 + line for line in below)]
        output.show(lines, data, as_json=as_json, indent=None)


@click.command()
@click.argument("run", required=False)
@pairs_option("--set", "Another setting for that night, e.g. limits.max_attempts=1.")
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the night as a case for `ralph eval`, without names, paths and secrets.",
)
@json_option("One object.")
def replay(run: str | None, settings: Pairs, export: Path | None, as_json: bool) -> int:
    """Fold the recorded evidence of RUN (or the last run) again, and say where it parts.

    Nothing is started and nothing in the project is written.  Exit code 0 if journal and code
    agree, or if other settings were tried; 1 if they do not agree.
    """
    record, night, config = _played(find_project(), run, dict(settings))
    if export is not None:
        policy = policy_of(config, mode=record.mode)
        export.write_bytes(exported(record.id, policy, night))
        output.note(f"Wrote {export}; `ralph eval {export}` plays it.")
    data = {
        "v": 1,
        "run": record.id,
        "identical": night.is_identical,
        "saved_usd": night.saved_usd,
        "starts": [
            {
                "iteration": again.record.n,
                "story": again.record.story,
                "made": again.taken is not None,
                "why_not": again.why_not or None,
                "decision": again.taken.decision.word if again.taken else None,
                "differs": again.differs,
            }
            for again in night.starts
        ],
        "stories": {
            name: {"recorded": was.standing, "replayed": now.standing}
            for name, (was, now) in night.stories.items()
        },
    }
    output.show(_night_lines(record, night, settings), data, as_json=as_json)
    return ExitCode.COMPLETE if night.is_identical or settings else ExitCode.HALTED


def _played(
    project: Project, wanted: str | None, settings: Mapping[str, str]
) -> tuple[RunRecord, ReplayedNight, Config]:
    """The run, the same night decided again, and the settings it had."""
    with reading(project) as journal:
        record = find_run(journal, None if wanted == "last" else wanted)
        if record is None:
            raise RepositoryError("no run has been recorded here yet", "ralph run")
        beginning = journal.part(RunState, record.id)
        if beginning is None:
            told = f"run {record.id} was begun by an older version, which did not keep enough"
            step = "`ralph log` and `ralph report` show it; newer runs can be replayed."
            raise InputError(told, step)
        config = config_of(project, record)
        # The names of limits and thresholds are enough.
        full = {key: f"circuit.{key}" for key in CircuitSection.__struct_fields__}
        full |= {key: f"limits.{key}" for key in settings if "." not in key and key not in full}
        named = {full.get(key, key): value for key, value in settings.items()}
        changed = with_settings(config, named)
        limits = {
            name: getattr(changed.limits, name)
            for name in Limits.__struct_fields__
            if f"limits.{name}" in named
        }
        night = play_night(
            journal,
            record.id,
            beginning=beginning,
            policy=policy_of(changed, mode=record.mode),
            resumes=config.agent.context == "resume",
            other_limits=limits,
        )
    return record, night, config


def _night_lines(record: RunRecord, night: ReplayedNight, settings: Pairs) -> Iterator[str]:
    wanted = ", ".join(f"{key} = {value}" for key, value in settings)
    head = f"run {record.id}, {counted(len(night.starts), 'start')}"
    yield f"{head}{f', with {wanted}' if wanted else ''}"
    for again in night.starts:
        start = f"  [{again.record.n}] {output.safe(again.record.story or 'the prompt')}"
        if again.taken is None:
            cost = f"${again.record.cost_usd:.2f}"
            yield f"{start}: not paid ({cost}): {output.safe(again.why_not)}"
        yield from (f"{start}: {output.safe(words)[:_MOST_WORDS]}" for words in again.differs)
        if again.differs and again.record.record.response.is_cut:
            yield "    its words were longer than what the journal keeps; that may be why"
    for name, both in night.stories.items():
        was, now = both
        before, after = (
            state.standing.replace("_", " ") + (f" ({state.grade})" if state.grade else "")
            for state in both
        )
        attempts = f", {counted(now.attempts, 'failed attempt')} instead of {was.attempts}"
        same = before == after
        yield f"  {output.safe(name or 'the prompt')}: {before} → {after}{attempts if same else ''}"
    if night.is_identical:
        yield "identical: every decision, verdict and story as the journal has it"
    elif not settings:
        yield output.paint("journal and code part; see above", "yellow")
    else:
        left_out = sum(again.taken is None for again in night.starts)
        others = sum(bool(again.differs) for again in night.starts)
        words = f"{counted(left_out, 'start')} (${night.saved_usd:.2f}) would not have been paid"
        words += f"; {counted(others, 'decision')} would have been another" if others else ""
        reach = "as far as the recorded evidence reaches: what would have run instead is not known"
        yield f"{words} ({reach})"
