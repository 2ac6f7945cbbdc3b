"""One learning for each attempt that ended, from the journal's record of it; no model is asked.

Work that moves on teaches nothing yet; an outage, a limit, a killed process nothing at all.
Capturing an iteration again writes the same file, so it can be done after a crash.  Beside what we
measured, the agent's own words count where it marks them as something learned, but never as
evidence: a file counts if it is there, a check if we ran it.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ralphloop.core.iteration import Iteration, SaveLeftovers
from ralphloop.core.model import CheckStatus, Outcome, Story
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import IterationRecord
from ralphloop.learning import store
from ralphloop.learning.leads import is_code, words_defined_in
from ralphloop.learning.model import MAX_TEXT, Learning, Note, NoteKind, NoteSource
from ralphloop.learning.wording import (
    SECRETS,
    category_of,
    is_plain_path,
    paths_in,
    remedy,
    suspicion,
    words_of,
)
from ralphloop.project import Project
from ralphloop.redaction import redact_bytes
from ralphloop.stories.names import slug
from ralphloop.text.durations import iso, stamp
from ralphloop.text.lines import own_lines
from ralphloop.text.plain import LazyRegex, clean, one_line
from ralphloop.text.signatures import error_signature

INVITATION = "LEARNED:"

_EARLIER = 10
_MAX_FILES = 30
_MAX_FAILURES = 4
_MAX_WORDS = 6
_NAMED_FILES = 6
_COPIED = 0.8
# Programs that make files: what others print is no remedy.
_COMMAND = LazyRegex(
    r"(?:make|just|task|npm run|yarn|pnpm|cargo|go|uv run|poetry run) [\w:./ -]{1,60}"
)
# What the machine or the network does to a check is nothing that a change repairs.
_WEATHER = LazyRegex(
    r"\bkilled\b|out of memory|no space left|connection (?:refused|reset|aborted)|timed? ?out"
    r"|rate limit|too many requests|overloaded|unavailable|unreachable|name resolution|not resolve"
    r"|\b(?:429|502|503|529)\b|cannot allocate|disk quota|signal 9|oom"
)

_MARKED = LazyRegex(
    r" {0,3}(?:[-*+] )?\**(?:learned|learning|lesson|gotcha|pattern|discovery)\**:\**\s+(.+)", re.I
)


def capture(
    project: Project,
    journal: Queries,
    run: str,
    number: int,
    story: Story,
    *,
    commit: str = "",
    secrets: Iterable[str] = (),
) -> str:
    """Write down what a finished iteration taught; what went wrong, in words, never raises."""
    try:
        iteration = journal.iteration(run, number)
        if iteration is None or not (outcome := ended_as(iteration)):
            return ""
        passed = outcome == "passed"
        before = journal.story_iterations(run, story.id, _EARLIER) if passed else []
        earlier = [
            one.record
            for one in before
            if one.n < number and (one.record.verdict.passed or one.outcome == Outcome.COMPLETED)
        ]
        # Before anything is cut to size: half a secret would not be recognised.
        told = redact_bytes(msgspec.json.encode([iteration.record, *earlier]), tuple(secrets))
        attempts = msgspec.json.decode(told, type=list[Iteration])
        learning = _learned(project, story, iteration, outcome, attempts, commit)
        # The next attempt will have more to tell; but what did this one carry?
        if learning.notes or learning.carried or outcome != "failed":
            at = iteration.finished_at or iteration.started_at
            moment = f"{stamp(at)}-{int(at * 1000) % 1000:03d}"
            store.save(project, f"learning-{slug(story.id)}-{moment}.yaml", store.render(learning))
    except Exception as error:  # noqa: BLE001 - nothing that can be learned is worth a run
        return f"no learning was captured: {type(error).__name__}: {error}"[:300]
    return ""


def ended_as(iteration: IterationRecord) -> str:
    """How the attempt ended, or nothing where it has not."""
    if not iteration.outcome or Outcome(iteration.outcome).is_infrastructure:
        return ""
    if iteration.record.verdict.passed:
        return "passed"
    if iteration.status == "BLOCKED":
        return "blocked"
    if iteration.owes(SaveLeftovers):
        return "set_aside"
    if iteration.record.evidence.returned is not None:
        return ""  # it was good where it was made, and goes on
    found = iteration.record.analysis
    return "failed" if found.story_claimed or not found.progress else ""


def content_of(story: Story) -> str:
    """A digest of what the story asks for; its id, which returns in every list, is no part."""
    asked = "\n".join((story.title, story.description, *story.criteria))
    return hashlib.sha256(asked.encode("utf-8", "replace")).hexdigest()[:12]


def _learned(
    project: Project,
    story: Story,
    iteration: IterationRecord,
    outcome: str,
    attempts: Sequence[Iteration],
    commit: str,
) -> Learning:
    root = project.root.resolve()

    def exists(path: str) -> bool:
        there = is_plain_path(path) and (root / path).is_file()
        return there and (root / path).resolve().is_relative_to(root)

    def defines(path: str, text: str) -> bool:
        return bool(words_defined_in(root, path, text))

    notes = []
    if outcome == "passed" or iteration.outcome == Outcome.COMPLETED:  # it came to its own end
        earlier = attempts[1:]
        notes = notes_of(attempts[0], earlier, story=story, exists=exists, defines=defines)
    every = (path for one in attempts for path in one.evidence.work_files or ())
    changed = tuple(dict.fromkeys(filter(is_plain_path, every)))[:_MAX_FILES]
    return Learning(
        task_id=iteration.story or "",
        outcome=outcome,
        timestamp=iso(iteration.finished_at or iteration.started_at),
        notes=tuple(notes),
        captured=any(note.evidence for note in notes),
        run=iteration.run,
        iteration=iteration.n,
        commit=commit,
        files=changed,
        carried=iteration.record.learning.ids,
        content=content_of(story),
        asked=tuple(path for path in changed if path in asked_for(story, changed)),
    )


def asked_for(story: Story, changed: Iterable[str]) -> set[str]:
    """Which of the changed files the story itself asks for, by path, name or pattern."""
    said = " ".join((story.title, story.description, *story.criteria, story.notes))
    named = {path.strip("/").removeprefix("./") for path in paths_in(said)}
    found = set[str]()
    for path in changed:
        name = path.rpartition("/")[2]
        stem = name.partition(".")[0]
        is_named = (
            path in named or name in named or (len(stem) > 3 and stem.isupper() and stem in said)
        )
        if is_named or any(fnmatchcase(path, pattern) for pattern in story.touches):
            found.add(path)
    return found


def notes_of(
    record: Iteration,
    earlier: Sequence[Iteration],
    *,
    story: Story,
    exists: Callable[[str], bool],
    defines: Callable[[str, str], bool] = lambda _path, _text: False,
) -> list[Note]:
    """Everything the attempt taught; `earlier` are the story's records before it, newest first.
    `defines` says whether a file has the code that a text names."""
    measured = _failed(record)
    if record.verdict.passed:
        # What earlier attempts failed at and went away since: what was changed, and what was run
        # only now, without what our checks are.
        checks = [check.name for check in record.evidence.checks or ()]
        tried = {
            call.summary for before in earlier for call in before.response.tool_calls if call.ok
        }
        commands = [call.summary for call in record.response.tool_calls if call.ok]
        new = [one for one in commands if one not in tried and _COMMAND.fullmatch(one)]
        ran = [one for one in new if not any(one in name for name in checks)][-1:]
        failures: dict[str, _GoneFailure] = {}
        for number, before in enumerate(earlier):  # newest first: where it was seen last counts
            since = (record, *earlier[:number])
            for note in _failed(before):
                failures.setdefault(note.text, _GoneFailure(note, _changed_since(since, story)))
        measured = [gone.told(ran) for gone in list(failures.values())[:_MAX_FAILURES]]
    # What did not fit on what had landed was good where it was made, and so were its words.
    heard = (record, *(before for before in earlier if before.evidence.returned is not None))
    said = {note.text: note for one in heard for note in _own_words(one, story, exists, defines)}
    return [*measured, *said.values()]


class _GoneFailure(NamedTuple):
    """A failure, and the files that were changed after it was seen last."""

    note: Note
    files: list[str]

    def told(self, ran: Sequence[str]) -> Note:
        seen = [*(f"file {path}" for path in self.files), *(f"command {one}" for one in ran)]
        return replace(
            self.note,
            lesson=remedy(self.files, ran),
            category=category_of(self.files, self.note.text),
            evidence=(*self.note.evidence, *seen),
        )


def _changed_since(since: Sequence[Iteration], story: Story) -> list[str]:
    """What was changed in these starts and may have mended something: code, else what the story
    did not ask for anyway (a line in a changelog mends no test)."""
    every = (path for one in since for path in one.evidence.work_files or ())
    changed = list(dict.fromkeys(filter(is_plain_path, every)))
    code = [path for path in changed if is_code(path)]
    asked = asked_for(story, changed)
    return (code or [path for path in changed if path not in asked])[:_NAMED_FILES]


def _failed(record: Iteration) -> list[Note]:
    """What an attempt ended in: failing checks, else the error in the agent's last words."""
    found = list[tuple[NoteSource, str, tuple[str, ...]]]()
    checks = record.evidence.checks or ()
    failed = [check for check in checks if check.status is CheckStatus.FAILED]
    for check in failed[:_MAX_FAILURES]:
        # By its command, without the directory of its program, and its error.
        program, *words = check.name.split(" ")
        name = one_line(" ".join([program.rpartition("/")[2], *words]), 80)
        error = error_signature(check.output_tail) or ", ".join(check.failing_tests[:3])
        what = one_line(error or "no error was named", 200)
        seen = f"check {name}", f"error {what}"
        found.append((NoteSource.CHECK, f"`{name}` failed: {what}", seen))
    if not failed and (told := record.analysis.error_signature):
        found.append((NoteSource.ERROR, f"an attempt ended in: {told}", (f"error {told}",)))
    return [
        Note(
            kind=NoteKind.FAILURE,
            text=one_line(text, MAX_TEXT),
            category=category_of((), text),
            source=source,
            evidence=tuple(one_line(item, MAX_TEXT) for item in evidence),
        )
        for source, text, evidence in found
        if not _WEATHER.search(text.lower())
    ]


def _own_words(
    record: Iteration,
    story: Story,
    exists: Callable[[str], bool],
    defines: Callable[[str, str], bool],
) -> list[Note]:
    """What the agent marks as learned, outside code and status blocks, with what we see of it."""
    lines = own_lines(clean(record.response.final_text))
    marked = list(filter(None, map(_MARKED.match, lines)))
    if not marked:
        return []
    asked = " ".join((story.id, story.title, story.description, *story.criteria, story.notes))
    status = record.analysis.status
    told = [words_of(asked), words_of(status.recommendation if status else "")]
    checks = [check.name for check in record.evidence.checks or () if check.name]
    notes = list[Note]()
    for found in marked:
        said = one_line(found[1], MAX_TEXT)
        words = words_of(said)
        copied = any(len(words & original) >= _COPIED * len(words) for original in told)
        if copied or not words or suspicion(said) == SECRETS or "[redacted]" in said:
            continue
        files = [path for path in paths_in(said) if exists(path)][:_NAMED_FILES]
        if not files:  # what it worked on, where the words name something of it
            worked_on = filter(exists, record.evidence.work_files or ())
            files = [path for path in worked_on if defines(path, said)][:_NAMED_FILES]
        ran = [f"check {name}" for name in checks if name in said]
        evidence = (*(f"file {path}" for path in files), *ran)
        notes.append(Note(text=said, category=category_of(files, said), evidence=evidence))
        if len(notes) == _MAX_WORDS:
            break
    return notes
