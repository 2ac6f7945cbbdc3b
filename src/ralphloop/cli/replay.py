"""`ralph replay`: a recorded night through the deciding core again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralphloop.cli import output
from ralphloop.cli.given import PAIR, Pairs
from ralphloop.errors import ExitCode, InputError, RepositoryError
from ralphloop.journal.records import RunRecord
from ralphloop.project import Project, find_project
from ralphloop.replay.nights import Again, ReplayedNight
from ralphloop.text.plain import counted

if TYPE_CHECKING:
    from ralphloop.config.model import Config

_MOST_WORDS = 300


@click.command()
@click.argument("run", required=False)
@click.option(
    "--set",
    "settings",
    multiple=True,
    type=PAIR,
    help="Another setting for that night, e.g. limits.max_attempts=1. Repeatable.",
)
@click.option(
    "--export",
    "export",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the night as a case for `ralph eval`, without names, paths and secrets.",
)
@click.option("--json", "as_json", is_flag=True, help="One object.")
def replay(run: str | None, settings: Pairs, export: Path | None, as_json: bool) -> int:
    """Fold the recorded evidence of RUN (or the last run) again, and say where it parts.

    Nothing is started and nothing in the project is written.  Exit code 0 if journal and code
    agree, or if other settings were tried; 1 if they do not agree.
    """
    project = find_project(Path.cwd())
    record, night, cases = _played(project, run, dict(settings))
    if export is not None:
        export.write_bytes(cases)
        output.note(f"Wrote {export}; `ralph eval {export}` plays it.")
    if as_json:
        output.emit_json(_as_data(record, night))
    else:
        output.emit_lines(_told(record, night, settings))
    return ExitCode.COMPLETE if night.is_identical or settings else ExitCode.HALTED


def _played(
    project: Project, wanted: str | None, settings: dict[str, str]
) -> tuple[RunRecord, ReplayedNight, bytes]:
    from ralphloop.config.model import Context, policy_of
    from ralphloop.core.policy import Mode
    from ralphloop.journal.queries import JournalReader
    from ralphloop.journal.session import load_beginning
    from ralphloop.night.look import config_of
    from ralphloop.night.past import find_run
    from ralphloop.replay.export import exported
    from ralphloop.replay.nights import replay as play

    with JournalReader.open(project.journal) as journal:
        record = find_run(journal, None if wanted == "last" else wanted)
        if record is None:
            raise RepositoryError("no run has been recorded here yet", "ralph run")
        beginning = load_beginning(journal, record.id)
        if beginning is None:
            raise InputError(
                f"run {record.id} was begun by an older version, which did not keep enough",
                "`ralph log` and `ralph report` show it; newer runs can be replayed.",
            )
        config = config_of(project, record)
        changed, limits = _changed(config, settings)
        night = play(
            journal,
            record.id,
            beginning=beginning,
            policy=policy_of(changed, mode=Mode(record.mode)),
            resumes=config.agent.context is Context.RESUME,
            other_limits=limits,
        )
    return record, night, exported(record.id, policy_of(config, mode=Mode(record.mode)), night)


def _changed(config: Config, settings: Mapping[str, str]) -> tuple[Config, dict[str, object]]:
    """The settings of that night with others on top, and the limits among those."""
    from ralphloop.config.load import with_settings
    from ralphloop.core.limits import Limits

    named = {_full(key): value for key, value in settings.items()}
    changed = with_settings(config, named)
    limits = {
        name: getattr(changed.limits, name)
        for name in Limits.__struct_fields__
        if f"limits.{name}" in named
    }
    return changed, limits


def _full(key: str) -> str:
    """A key as in ralph.toml; the names of limits and thresholds are enough."""
    from ralphloop.config.model import CircuitSection, LimitsSection

    if "." in key:
        return key
    sections = {"limits": LimitsSection, "circuit": CircuitSection}
    found = (name for name, section in sections.items() if key in section.__struct_fields__)
    return f"{next(found, 'limits')}.{key}"


def _told(record: RunRecord, night: ReplayedNight, settings: Pairs) -> Iterator[str]:
    wanted = ", ".join(f"{key} = {value}" for key, value in settings)
    head = f"run {record.id}, {counted(len(night.starts), 'start')}"
    yield f"{head}{f', with {wanted}' if wanted else ''}"
    for again in night.starts:
        yield from _start(again)
    for name, (was, now) in night.stories.items():
        grades = (f" ({state.grade})" if state.grade else "" for state in (was, now))
        before, after = (
            f"{state.standing.replace('_', ' ')}{grade}"
            for state, grade in zip((was, now), grades, strict=True)
        )
        attempts = f", {counted(now.attempts, 'failed attempt')} instead of {was.attempts}"
        same = before == after
        yield f"  {output.safe(name or 'the prompt')}: {before} → {after}{attempts if same else ''}"
    yield _sum(night, changed=bool(settings))


def _start(again: Again) -> Iterator[str]:
    record = again.record
    name = f"[{record.n}] {output.safe(record.story or 'the prompt')}"
    if again.taken is None:
        yield f"  {name}: not paid (${record.cost_usd:.2f}): {output.safe(again.why_not)}"
    for words in again.differs:
        yield f"  {name}: {output.safe(words)[:_MOST_WORDS]}"
    if again.words_cut and again.differs:
        yield "    its words were longer than what the journal keeps; that may be why"


def _sum(night: ReplayedNight, *, changed: bool) -> str:
    if night.is_identical:
        return "identical: every decision, verdict and story as the journal has it"
    if not changed:
        return output.paint("journal and code part; see above", "yellow")
    left_out = sum(again.taken is None for again in night.starts)
    others = sum(bool(again.differs) for again in night.starts)
    parts = [f"{counted(left_out, 'start')} (${night.saved_usd:.2f}) would not have been paid"]
    if others:
        parts.append(f"{counted(others, 'decision')} would have been another")
    reach = "as far as the recorded evidence reaches: what would have run instead is not known"
    return f"{'; '.join(parts)} ({reach})"


def _as_data(record: RunRecord, night: ReplayedNight) -> dict[str, Any]:
    return {
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
                "decision": str(again.taken.decision.word) if again.taken else None,
                "differs": list(again.differs),
            }
            for again in night.starts
        ],
        "stories": {
            name: {"recorded": str(was.standing), "replayed": str(now.standing)}
            for name, (was, now) in night.stories.items()
        },
    }
