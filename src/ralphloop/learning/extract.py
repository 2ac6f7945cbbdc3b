"""What an attempt taught, read off what we measured; no model is asked.  Pure.

Sources are the iteration's record in the journal and the earlier ones of the same story: checks
that failed and what made them green, the error an attempt ended in, commands that worked, files
that changed together, and the agent's own words where it marks them as something learned.  Evidence
is never taken from a claim: a file counts if it is there, a check if we ran it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ralphloop.learning.model import MAX_TEXT, Kind, Note, Source
from ralphloop.learning.words import category_of, is_plain_path, words_of
from ralphloop.text.lines import own_lines
from ralphloop.text.plain import clean, one_line
from ralphloop.text.signatures import error_signature

Record = dict[str, Any]
INVITATION = "LEARNED:"

_MAX_FAILURES = 4
_MAX_COMMANDS = 3
_MAX_WORDS = 6
_MAX_TOGETHER = 12
_NAMED_FILES = 6
_COPIED = 0.8

_MARKED = re.compile(
    r" {0,3}(?:[-*+] )?\**(?:learned|learning|lesson|gotcha|pattern|discovery)\**:\**\s+(.+)", re.I
)
_HEADING = re.compile(
    r" {0,3}(?:#{1,6} |[-*+] )?\**(?:key )?(?:learnings?|lessons?(?: learned)?|gotchas|codebase"
    r" patterns|discoveries)(?: for [a-z ]{1,40})?:?\**:?\s*",
    re.I,
)
_BULLET = re.compile(r" {0,8}(?:[-*+]|\d{1,2}[.)]) +(.+)")

# Commands worth knowing build, test or check; everything else an agent runs is its own affair.
_RUNNERS = (
    "pytest unittest tox nox ruff mypy pyright make just jest vitest eslint tsc gradle ./gradlew"
    " mvn rake rspec bats phpunit xcodebuild ctest cmake"
).split()
_RUNNER = re.compile(
    r"(?:(?:uv run|poetry run|npx|bunx|bundle exec|python3? -m) )?"
    rf"(?:{'|'.join(map(re.escape, _RUNNERS))}|(?:npm|pnpm|yarn|bun|cargo|go|dotnet|swift|mix|node)"
    r" (?:test|run|build|check|clippy|vet|--test)|python3? [\w./-]+\.py)\b[\w ./:=@,+-]*"
)


def notes_of(
    record: Record,
    earlier: Sequence[Record],
    *,
    story_text: str,
    exists: Callable[[str], bool],
) -> list[Note]:
    """Everything the attempt taught; `earlier` are the story's records before it, newest first."""
    passed = bool(_at(record, "verdict").get("passed"))
    files = work_files(record)
    return [
        *(_fixed(earlier, files) if passed else _failed(record)),
        *(_commands(record, files) if passed else ()),
        *(_together(files) if passed else ()),
        *_own_words(record, story_text, exists),
    ]


def work_files(record: Record) -> tuple[str, ...]:
    """Changed paths that can stand in a sentence."""
    files = _at(record, "evidence").get("work_files") or ()
    return tuple(path for path in files if is_plain_path(path))


# --- failures --------------------------------------------------------------------------------


def _fixed(earlier: Sequence[Record], files: tuple[str, ...]) -> Iterator[Note]:
    """Failures of earlier attempts that this one made go away."""
    named = files[:_NAMED_FILES]
    lesson = f"went away with a change in {', '.join(f'`{path}`' for path in named)}"
    seen: set[str] = set()
    for before in earlier:
        for note in _failed(before):
            if note.text not in seen and len(seen) < _MAX_FAILURES:
                seen.add(note.text)
                yield Note(
                    kind=Kind.FAILURE,
                    text=note.text,
                    lesson=lesson if named else "",
                    category=category_of(named, note.text),
                    source=note.source,
                    evidence=(*note.evidence, *(f"file {path}" for path in named)),
                )


def _failed(record: Record) -> Iterator[Note]:
    """What an attempt ended in: failing checks, else the error in the agent's last words."""
    checks = [check for check in _checks(record) if check.get("status") == "failed"]
    for check in checks[:_MAX_FAILURES]:
        name = _check_name(check)
        what = _signature(check)
        yield _failure(f"`{name}` failed: {what}", Source.CHECK, f"check {name}", f"error {what}")
    signature = _at(record, "analysis").get("error_signature")
    if signature and not checks:
        yield _failure(f"an attempt ended in: {signature}", Source.ERROR, f"error {signature}")


def _failure(text: str, source: Source, *evidence: str) -> Note:
    return Note(
        kind=Kind.FAILURE,
        text=one_line(text, MAX_TEXT),
        category=category_of((), text),
        source=source,
        evidence=tuple(one_line(item, MAX_TEXT) for item in evidence),
    )


def _check_name(check: Record) -> str:
    """The command without the directory of its program."""
    program, *words = check.get("name", "").split(" ")
    return one_line(" ".join([program.rpartition("/")[2], *words]), 80)


def _signature(check: Record) -> str:
    output = check.get("output_tail", "")
    tests = check.get("failing_tests") or ()
    return one_line(error_signature(output) or ", ".join(tests[:3]) or "no error was named", 200)


# --- what worked -----------------------------------------------------------------------------


def _commands(record: Record, files: tuple[str, ...]) -> Iterator[Note]:
    """Build and test commands that ended well, other than the checks themselves."""
    known = {check.get("name") for check in _checks(record)}
    calls = _at(record, "response").get("tools", ())
    worked = (call.get("summary", "") for call in calls if call.get("ok"))
    new = (run for run in dict.fromkeys(worked) if run not in known and _RUNNER.fullmatch(run))
    for run in list(new)[:_MAX_COMMANDS]:
        text = f"`{run}` works here"
        category = category_of(files, run)
        yield Note(kind=Kind.SUCCESS, text=text, category=category, source=Source.COMMAND)


def _together(files: tuple[str, ...]) -> Iterator[Note]:
    if 2 <= len(files) <= _MAX_TOGETHER:
        yield Note(
            kind=Kind.DISCOVERY,
            text=one_line(
                "changed together: " + ", ".join(f"`{path}`" for path in files), MAX_TEXT
            ),
            category=category_of(files),
            source=Source.FILES,
            evidence=tuple(f"file {path}" for path in files),
        )


# --- the agent's own words -------------------------------------------------------------------


def _own_words(record: Record, story_text: str, exists: Callable[[str], bool]) -> Iterator[Note]:
    told = [story_text, recommendation(record)]
    checks = [check.get("name", "") for check in _checks(record)]
    said = _marked_lines(_at(record, "response").get("final_text", ""))
    for text in [text for text in said if not is_copy(text, told)][:_MAX_WORDS]:
        yield judged(Note(kind=Kind.DISCOVERY, text=text), checks, exists)


def judged(note: Note, checks: Sequence[str], exists: Callable[[str], bool]) -> Note:
    """A model's note with the evidence that we can see for it ourselves."""
    said = f"{note.text} {note.lesson}"
    mentioned = [word for word in re.findall(r"[\w@+./-]+", said) if "." in word or "/" in word]
    paths = [path.rstrip(".") for path in mentioned if is_plain_path(path.rstrip("."))]
    files = [path for path in dict.fromkeys(paths) if exists(path)][:_NAMED_FILES]
    ran = [name for name in checks if name and name in said]
    return Note(
        kind=note.kind,
        text=one_line(note.text, MAX_TEXT),
        lesson=one_line(note.lesson, MAX_TEXT),
        category=category_of(files, said) if note.category == "general" else note.category,
        source=note.source,
        evidence=(*(f"file {path}" for path in files), *(f"check {name}" for name in ran)),
    )


def is_copy(text: str, originals: Sequence[str]) -> bool:
    """True where nearly all words of the text come from one of the originals."""
    words = words_of(text)
    return not words or any(
        len(words & words_of(original)) >= _COPIED * len(words) for original in originals
    )


def _marked_lines(text: str) -> Iterator[str]:
    """Lines that say they are something learned, outside code and status blocks."""
    listing = False
    for line in own_lines(clean(text)):
        if marked := _MARKED.match(line):
            yield one_line(marked[1], MAX_TEXT)
        elif _HEADING.fullmatch(line):
            listing = True
        elif listing and (bullet := _BULLET.match(line)):
            yield one_line(bullet[1], MAX_TEXT)
        elif line.strip():
            listing = False


def recommendation(record: Record) -> str:
    """The last line of the agent's status block."""
    status = _at(record, "analysis").get("status") or {}
    return str(status.get("recommendation", ""))


def _checks(record: Record) -> list[Record]:
    return _at(record, "evidence").get("checks") or []


def _at(record: Record, key: str) -> Record:
    found = record.get(key)
    return found if isinstance(found, dict) else {}
