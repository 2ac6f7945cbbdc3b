"""`ralph replay`: a recorded night decided again; nothing is started and nothing in the project is
written."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import click

from ralphloop.cli import output
from ralphloop.cli.shared.options import Pairs, complete_run, json_option, pairs_option
from ralphloop.config.load import with_settings
from ralphloop.config.model import CircuitSection, Config, policy_of
from ralphloop.core.policy import Limits
from ralphloop.core.run_state import RunState, StoryState
from ralphloop.errors import ExitCode, InputError, NothingRan
from ralphloop.journal.records import RunRecord
from ralphloop.night.look import config_of, find_run, reading
from ralphloop.night.values import machine_of
from ralphloop.project import Project, find_project
from ralphloop.replay.nights import ReplayedNight, exported
from ralphloop.replay.nights import replay as play_night
from ralphloop.text.plain import counted

_MOST_WORDS = 300


@click.command()
@click.argument("run", required=False, shell_complete=complete_run)
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
    record, night, config = _play_again(find_project(), run, dict(settings))
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
                "machine": machine_of(again.record) or None,
                "made": again.taken is not None,
                "why_not": again.why_not or None,
                "decision": again.taken.decision.word if again.taken else None,
                "differs": again.differs,
            }
            for again in night.starts
        ],
        "stories": {
            name: {"recorded": both.recorded.standing, "replayed": both.replayed.standing}
            for name, both in night.stories.items()
        },
    }
    output.show(_night_lines(record, night, settings), data, as_json=as_json)
    return ExitCode.COMPLETE if night.is_identical or settings else ExitCode.HALTED


class Replayed(NamedTuple):
    record: RunRecord
    night: ReplayedNight  # the same one, decided again
    config: Config  # the settings it had


def _play_again(project: Project, wanted: str | None, settings: Mapping[str, str]) -> Replayed:
    """The run, decided again."""
    with reading(project) as journal:
        record = find_run(journal, None if wanted == "last" else wanted)
        if record is None:
            raise NothingRan
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
    return Replayed(record, night, config)


def _night_lines(record: RunRecord, night: ReplayedNight, settings: Pairs) -> Iterator[str]:
    wanted = ", ".join(f"{key} = {value}" for key, value in settings)
    head = f"run {record.id}, {counted(len(night.starts), 'start')}"
    yield f"{head}{f', with {wanted}' if wanted else ''}"
    for again in night.starts:
        machine = machine_of(again.record)
        where = f" on {machine}" if machine else ""
        story = again.record.story or "the prompt"
        start = f"  [{again.record.n}] {output.safe(f'{story}{where}')}"
        if again.taken is None:
            cost = f"${again.record.cost_usd:.2f}"
            yield f"{start}: not paid ({cost}): {output.safe(again.why_not)}"
        yield from (f"{start}: {output.safe(words)[:_MOST_WORDS]}" for words in again.differs)
        if again.differs and again.record.record.response.is_cut:
            yield "    its words were longer than what the journal keeps; that may be why"
    for name, both in night.stories.items():
        was = both.recorded
        now = both.replayed
        before = _stood(was)
        after = _stood(now)
        failed = counted(now.attempt.failed, "failed attempt")
        more = f", {failed} instead of {was.attempt.failed}" if before == after else ""
        yield f"  {output.safe(name or 'the prompt')}: {before} → {after}{more}"
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


def _stood(state: StoryState) -> str:
    grade = f" ({state.proof.grade})" if state.proof.grade else ""
    return state.standing.replace("_", " ") + grade
