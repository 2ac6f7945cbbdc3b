"""One learning for each attempt that ended, from the journal's record of it; no model is asked.

Work that moves on teaches nothing yet; an outage, a limit, a killed process teach nothing at all.
Capturing the same iteration again writes the same file, so it can be done after a crash.

What it taught is read off what we measured in it and in the earlier attempts at the story (checks
that failed, and what changed when they turned green), and off the agent's own words where it marks
them as something learned.  Evidence is never taken from a claim: a file counts if it is there, a
check if we ran it.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from ralphloop.core.iteration import Iteration, SaveLeftovers
from ralphloop.core.model import CheckResult, CheckStatus, Outcome
from ralphloop.core.story import Story
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import IterationRecord
from ralphloop.learning import store
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
from ralphloop.text.lazy_regex import LazyRegex
from ralphloop.text.lines import own_lines
from ralphloop.text.plain import clean, one_line
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
        if iteration is not None and (outcome := ended_as(iteration)):
            before = (
                journal.story_iterations(run, story.id, _EARLIER) if outcome == "passed" else []
            )
            earlier = [one.record for one in before if one.n < number and _teaches(one)]
            # Before anything is cut to size: half a secret would not be recognised.
            told = redact_bytes(msgspec.json.encode([iteration.record, *earlier]), tuple(secrets))
            attempts = msgspec.json.decode(told, type=list[Iteration])
            learning = _learned(project, story, iteration, outcome, attempts, commit)
            # The next attempt will have more to tell; but what did this one carry?
            if learning.notes or learning.carried or outcome != "failed":
                at = iteration.finished_at or iteration.started_at
                moment = f"{stamp(at)}-{int(at * 1000) % 1000:03d}"
                store.save(project, f"learning-{slug(story.id)}-{moment}.yaml", learning)
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
    found = iteration.record.analysis
    return "failed" if found.story_claimed or not found.progress else ""


def _teaches(iteration: IterationRecord) -> bool:
    """The agent came to its own end."""
    return iteration.record.verdict.passed or iteration.outcome == Outcome.COMPLETED


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

    notes = []
    if _teaches(iteration):
        notes = notes_of(attempts[0], attempts[1:], story=story, exists=exists)
    files = dict.fromkeys(path for one in attempts for path in _work_files(one))
    return Learning(
        task_id=iteration.story or "",
        outcome=outcome,
        timestamp=iso(iteration.finished_at or iteration.started_at),
        notes=tuple(notes),
        captured=any(note.evidence for note in notes),
        run=iteration.run,
        iteration=iteration.n,
        commit=commit,
        files=tuple(files)[:_MAX_FILES],
        carried=iteration.record.learning.ids,
        content=content_of(story),
    )


# --- what it taught --------------------------------------------------------------------------


def notes_of(
    record: Iteration,
    earlier: Sequence[Iteration],
    *,
    story: Story,
    exists: Callable[[str], bool],
) -> list[Note]:
    """Everything the attempt taught; `earlier` are the story's records before it, newest first."""
    measured = _failed(record)
    if record.verdict.passed:
        measured = list(_fixed(record, earlier))
    text = " ".join((story.id, story.title, story.description, *story.criteria, story.notes))
    status = record.analysis.status
    told = [text, status.recommendation if status else ""]
    # Outside code and status blocks, and nothing about secrets or people.
    marked = filter(None, map(_MARKED.match, own_lines(clean(record.response.final_text))))
    said = (one_line(found[1], MAX_TEXT) for found in marked)
    kept = (line for line in said if suspicion(line) != SECRETS and "[redacted]" not in line)
    own = [line for line in kept if not is_copy(line, told)]
    checks = [check.name for check in record.evidence.checks or () if check.name]
    return [*measured, *(_seen(line, checks, exists) for line in own[:_MAX_WORDS])]


def _work_files(record: Iteration) -> tuple[str, ...]:
    return tuple(path for path in record.evidence.work_files or () if is_plain_path(path))


def _failed(record: Iteration) -> list[Note]:
    """What an attempt ended in: failing checks, else the error in the agent's last words."""
    checks = record.evidence.checks or ()
    failed = [check for check in checks if check.status is CheckStatus.FAILED]
    signature = record.analysis.error_signature
    if signature and not failed:
        text = f"an attempt ended in: {signature}"
        found = [_failure(text, NoteSource.ERROR, f"error {signature}")]
    else:
        found = [_check_failed(check) for check in failed[:_MAX_FAILURES]]
    return [note for note in found if not _WEATHER.search(note.text.lower())]


def _check_failed(check: CheckResult) -> Note:
    """A check by its command, without the directory of its program, and its error."""
    program, *words = check.name.split(" ")
    name = one_line(" ".join([program.rpartition("/")[2], *words]), 80)
    error = error_signature(check.output_tail) or ", ".join(check.failing_tests[:3])
    what = one_line(error or "no error was named", 200)
    return _failure(f"`{name}` failed: {what}", NoteSource.CHECK, f"check {name}", f"error {what}")


def _failure(text: str, source: NoteSource, *evidence: str) -> Note:
    return Note(
        kind=NoteKind.FAILURE,
        text=one_line(text, MAX_TEXT),
        category=category_of((), text),
        source=source,
        evidence=tuple(one_line(item, MAX_TEXT) for item in evidence),
    )


def _fixed(record: Iteration, earlier: Sequence[Iteration]) -> Iterator[Note]:
    """Failures of earlier attempts that this one made go away, and what changed."""
    files = _work_files(record)[:_NAMED_FILES]
    tried = {command for before in earlier for command in _commands(before)}
    ran = [command for command in _commands(record) if command not in tried][-1:]
    seen = [*(f"file {path}" for path in files), *(f"command {command}" for command in ran)]
    failures = {note.text: note for before in earlier for note in _failed(before)}
    for note in list(failures.values())[:_MAX_FAILURES]:
        yield replace(
            note,
            lesson=remedy(files, ran),
            category=category_of(files, note.text),
            evidence=(*note.evidence, *seen),
        )


def _commands(record: Iteration) -> list[str]:
    """Commands that ended well, without those that our checks are."""
    checks = [check.name for check in record.evidence.checks or ()]
    found = (call.summary for call in record.response.tool_calls if call.ok)
    return [
        command
        for command in found
        if _COMMAND.fullmatch(command) and not any(command in name for name in checks)
    ]


def _seen(said: str, checks: Sequence[str], exists: Callable[[str], bool]) -> Note:
    """A model's words with the evidence that we can see for them ourselves."""
    files = [path for path in paths_in(said) if exists(path)][:_NAMED_FILES]
    ran = [f"check {name}" for name in checks if name in said]
    evidence = (*(f"file {path}" for path in files), *ran)
    return Note(text=said, category=category_of(files, said), evidence=evidence)


def is_copy(text: str, originals: Sequence[str]) -> bool:
    """True where nearly all words of the text come from one of the originals."""
    words = words_of(text)
    return not words or any(
        len(words & words_of(original)) >= _COPIED * len(words) for original in originals
    )
