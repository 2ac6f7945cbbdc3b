"""One learning for each attempt that ended, from the journal's record of it.

An attempt ends when its story passes, is blocked or set aside, or when a claim or a start without
progress failed.  Work that moves on teaches nothing yet, and an outage nothing at all.  Capturing
the same iteration again writes the same file, so it can be done after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ralphloop.core.effects import SaveLeftovers
from ralphloop.core.model import Outcome, Value
from ralphloop.core.story import Story
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import IterationRecord
from ralphloop.learning import store
from ralphloop.learning.extract import (
    Record,
    is_copy,
    judged,
    notes_of,
    recommendation,
    work_files,
)
from ralphloop.learning.model import MAX_FILES, MAX_NOTES, Learning, Note
from ralphloop.learning.words import is_plain_path
from ralphloop.project import Project
from ralphloop.redaction import redact
from ralphloop.stories.names import slug
from ralphloop.text.durations import iso

_EARLIER = 10
_SHORTEST_SECRET = 8
_PROOF = ("file ", "check ", "error ", "commit ")


class Captured(Value, kw_only=True):
    """What became of it; `problem` is for the log, never a reason to stop."""

    name: str = ""  # of the file; empty: there was nothing to write
    outcome: str = ""
    notes: int = 0
    problem: str = ""


def capture(
    project: Project,
    journal: Queries,
    run: str,
    iteration: int,
    story: Story,
    *,
    commit: str = "",
    secrets: Iterable[str] = (),
) -> Captured:
    """Write down what a finished iteration taught; never raises."""
    try:
        return _capture(project, journal, run, iteration, story, commit, tuple(secrets))
    except Exception as error:  # noqa: BLE001 - nothing that can be learned is worth a run
        return Captured(problem=f"no learning was captured: {type(error).__name__}: {error}"[:300])


def ended_as(iteration: IterationRecord) -> str:
    """How the attempt ended, or nothing where it has not."""
    if not iteration.outcome or _is_outage(iteration):
        return ""
    if iteration.record.verdict.passed:
        return "passed"
    if iteration.status == "BLOCKED":
        return "blocked"
    if iteration.owes(SaveLeftovers):
        return "set_aside"
    found = iteration.record.analysis
    return "failed" if found.story_claimed or not found.progress else ""


def _is_outage(iteration: IterationRecord) -> bool:
    """No change of ours made it go away."""
    return bool(iteration.outcome) and Outcome(iteration.outcome).is_infrastructure


def _capture(
    project: Project,
    journal: Queries,
    run: str,
    number: int,
    story: Story,
    commit: str,
    secrets: tuple[str, ...],
) -> Captured:
    iteration = journal.iteration(run, number)
    if iteration is None or not (outcome := ended_as(iteration)):
        return Captured()
    before = journal.story_iterations(run, story.id, _EARLIER) if outcome == "passed" else []
    # Before anything is cut to size: half a secret would not be recognised.
    earlier = [
        _redacted(msgspec.to_builtins(one.record), secrets)
        for one in before
        if one.n < number and not _is_outage(one)
    ]
    record = _redacted(msgspec.to_builtins(iteration.record), secrets)
    found = _notes(project, story, record, earlier)[:MAX_NOTES]
    if commit and outcome == "passed":
        found = [_with_commit(note, commit) for note in found]
    notes = tuple(found)
    if outcome == "failed" and not notes:
        return Captured(outcome=outcome)  # the next attempt will have more to tell
    files = dict.fromkeys(path for one in (record, *earlier) for path in work_files(one))
    learning = Learning(
        task_id=iteration.story or "",
        outcome=outcome,
        timestamp=iso(iteration.finished_at or iteration.started_at),
        notes=notes,
        captured=any(item.startswith(_PROOF) for note in notes for item in note.evidence),
        run=iteration.run,
        iteration=iteration.n,
        commit=commit,
        files=tuple(files)[:MAX_FILES],
        carried=iteration.record.learning.ids,
    )
    path = store.save(project, _name(story, iteration), learning)
    return Captured(name=path.name, outcome=outcome, notes=len(notes))


def _notes(project: Project, story: Story, record: Record, earlier: list[Record]) -> list[Note]:
    text = " ".join((story.id, story.title, story.description, *story.criteria, story.notes))
    root = project.root.resolve()

    def exists(path: str) -> bool:
        there = is_plain_path(path) and (root / path).is_file()
        return there and (root / path).resolve().is_relative_to(root)

    measured = notes_of(record, earlier, story_text=text, exists=exists)
    checks = [check["name"] for check in record.get("evidence", {}).get("checks") or ()]
    asked = msgspec.convert(record.get("learning", {}).get("asked", []), list[Note])
    told = [text, recommendation(record)]
    said = [judged(note, checks, exists) for note in asked if not is_copy(note.text, told)]
    return [*measured, *said]


def _with_commit(note: Note, commit: str) -> Note:
    """Words without any other evidence gain none by a commit they are not about."""
    if note.source.is_free_text and not note.evidence:
        return note
    return msgspec.structs.replace(note, evidence=(*note.evidence, f"commit {commit[:12]}"))


def _redacted(value: Any, secrets: tuple[str, ...]) -> Any:
    """The same data without secrets in any of its texts."""
    if isinstance(value, str):
        return redact(value, secrets) if len(value) >= _SHORTEST_SECRET else value
    if isinstance(value, dict):
        return {key: _redacted(item, secrets) for key, item in value.items()}
    return [_redacted(item, secrets) for item in value] if isinstance(value, list) else value


def _name(story: Story, iteration: IterationRecord) -> str:
    at = iteration.finished_at or iteration.started_at
    stamp = iso(at).translate(str.maketrans("T", "-", "-:Z"))
    return f"learning-{slug(story.id)}-{stamp}-{int(at * 1000) % 1000:03d}.yaml"
