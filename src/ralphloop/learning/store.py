"""What was learned, on disk: the directory `.ralph/learnings`, and the file that everybody has.

The YAML files are the truth and are only ever added.  Every value in them is written as JSON, which
is YAML too; what a person makes of a file is read as well.  The JSON files are derived and may be
deleted; `parsed.json` is kept because a YAML library takes its time.

What everybody has is one tracked file of JSON lines sorted by id, so two clones that learned apart
mostly merge by themselves; with `merge=union` in `.gitattributes` always.  Any state a merge leaves
can be read: of two lines about one pattern the later one holds, lines that are none are left out
and named.  Nothing is ever removed: what no longer holds says so.  A pattern gets in once it is
established, a person's word at once; of agents' words that somebody forgot the id alone.

`decisions.yaml` holds what only this machine may know: the words that were forgotten, and decisions
of older versions.  It is no cache, so one that cannot be read is an error, not an empty list.
"""

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from ralphloop.atomic import write_atomic
from ralphloop.errors import InputError, RalphError
from ralphloop.learning import SHARED_FILES
from ralphloop.learning.aggregate import aggregate
from ralphloop.learning.model import MAX_TEXT, EntryWord, Index, Learning, NoteKind, SharedEntry
from ralphloop.learning.skills import read
from ralphloop.learning.standing import with_changes, with_files
from ralphloop.learning.wording import is_plain_path
from ralphloop.project import Project
from ralphloop.room import read_regular
from ralphloop.text.durations import iso
from ralphloop.text.plain import one_line

MAX_LEARNINGS = 5_000
MAX_ENTRIES = 2_000
SECTIONS = {
    NoteKind.SUCCESS: "successes",
    NoteKind.FAILURE: "failures",
    NoteKind.DISCOVERY: "discoveries",
}
_DECISIONS = "decisions.yaml"
_INDEX = "index.json"
_PARSED = "parsed.json"
_LARGEST = 64 * 1024
_LARGEST_SHARED = 4 << 20
_MAX_HUNK = 800
_MOST_COMMITS = 500
_MOST_BRACKETS = 500
_HEAD = ("task_id", "outcome", "timestamp", "captured")
_PROVENANCE = ("run", "iteration", "commit", "files", "carried", "content", "asked")
_OUTCOMES = {"success": "passed", "failure": "failed"}
_UNPRINTABLE = re.compile(r"[\x7f-\xa0\xad\u2028\u2029\ufeff\ufffe\uffff]")
_Parsed = tuple[tuple[int, int], Learning]  # with time and size of the file
_T = TypeVar("_T")


def directory(project: Project) -> Path:
    return project.directory / "learnings"


def save(project: Project, name: str, data: bytes, *, durable: bool = False) -> None:
    path = directory(project) / name
    room = project.directory
    write_atomic(path, data, within=room, durable=durable, parents=True)


class KeptLearnings(NamedTuple):
    """What the directory holds."""

    learnings: list[Learning]  # oldest first
    problems: list[str]  # what could not be read, in words


class Known(NamedTuple):
    """What everybody has and what was decided here."""

    entries: dict[str, SharedEntry]  # by id
    problems: list[str]  # what could not be read, in words


def load_all(project: Project) -> KeptLearnings:
    """The newest learnings, as far as they can be read."""
    place = directory(project)
    known = _derived(project, _PARSED, dict[str, _Parsed]) or {}
    found = dict[str, _Parsed]()
    problems = list[str]()
    names = (path.name for path in place.glob("learning-*.yaml"))
    # Names end in date, time and milliseconds.
    for name in sorted(names, key=lambda name: (name.rsplit("-", 3)[1:], name))[-MAX_LEARNINGS:]:
        try:
            status = (place / name).stat()
            stamp = (status.st_mtime_ns, status.st_size)
            old = known.get(name)
            found[name] = old if old and old[0] == stamp else (stamp, _load(place / name))
        except (OSError, ValueError) as error:
            problems.append(f"{name}: {str(error)[:200]}")
    if found.keys() != known.keys() or any(found[name] is not known[name] for name in found):
        save(project, _PARSED, msgspec.json.encode(found))
    learnings = (learning for _, learning in found.values())
    ordered = sorted(learnings, key=lambda one: (one.timestamp, one.iteration))
    return KeptLearnings(ordered, problems[:20])


def render(learning: Learning) -> bytes:
    lines = _mapping({key: getattr(learning, key) for key in _HEAD})
    for kind, section in SECTIONS.items():
        notes = [note for note in learning.notes if note.kind is kind]
        lines.append(f"{section}:" if notes else f"{section}: []")
        for note in notes:
            entry = {"description": note.text}
            if kind is NoteKind.FAILURE:
                entry = {"pattern": note.text, "lesson": note.lesson}
            more = {"category": note.category, "source": note.source, "evidence": note.evidence}
            lines += _mapping({**entry, **more}, "    ", listed=True)
    lines.append("provenance:")
    lines += _mapping({key: getattr(learning, key) for key in _PROVENANCE}, indent="  ")
    return "\n".join([*lines, ""]).encode()


def parse(text: str) -> Learning:
    """A learning from its file's text; ValueError where it is none."""
    raw = msgspec.convert(_load_yaml(text), dict[str, Any])
    notes = [
        {**entry, "kind": kind, "text": entry.get("pattern") or entry.get("description")}
        for kind, name in SECTIONS.items()
        for entry in msgspec.convert(raw.get(name) or [], list[dict[str, Any]])
    ]
    flat = {**(raw.get("provenance") or {}), **{key: raw[key] for key in _HEAD if key in raw}}
    flat["timestamp"] = str(flat.get("timestamp", ""))  # YAML makes a date of a bare one
    outcome = flat.get("outcome", "")
    flat["outcome"] = _OUTCOMES.get(outcome, outcome)
    flat["notes"] = [note for note in notes if note["text"]]
    return msgspec.convert(flat, Learning)


def _mapping(values: Mapping[str, Any], indent: str = "", *, listed: bool = False) -> list[str]:
    """One line a value: JSON, and within it only characters that YAML allows."""
    lines = []
    for key, value in values.items():
        made = msgspec.json.encode(value).decode()
        made = _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", made)
        lines.append(f"{indent}{key}: {made}")
    if listed:
        lines[0] = f"{indent[2:]}- {lines[0].strip()}"
    return lines


def _load(path: Path) -> Learning:
    data = read_regular(path, most=_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError("is too large for a learning")
    learning = parse(data.decode())
    msgspec.json.encode(learning)  # half a character, written as an escape, is a ValueError
    return learning


def _load_yaml(text: str) -> Any:
    """Any YAML as plain data; ValueError where it cannot be read."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    if text.count("[") + text.count("{") > _MOST_BRACKETS:
        raise ValueError("is nested too deeply")  # nesting takes the library quadratic time
    try:
        return YAML(typ="safe", pure=True).load(text)
    except (YAMLError, RecursionError, ArithmeticError) as error:
        raise ValueError(f"is not readable as YAML: {str(error)[:200]}") from None


def rebuild(project: Project, *, now: float) -> Index:
    learnings, problems = load_all(project)
    entries, unread = load_entries(project)
    root = project.root
    index = aggregate(
        learnings, entries.values(), now=now, exists=lambda path: (root / path).exists()
    )
    own = tuple(one.commit for one in learnings if one.commit)[-_MOST_COMMITS:]
    found = with_changes(root, with_files(root, index.patterns), own)
    index = replace(index, patterns=tuple(found), own_commits=own, problems=(*problems, *unread))
    if directory(project).is_dir():  # looking at a project that never learned leaves no trace in it
        save(project, _INDEX, msgspec.json.encode(index))
    return index


def load_index(project: Project) -> Index:
    return _derived(project, _INDEX, Index) or Index()


def refresh_index(project: Project) -> Index:
    """The patterns for the next start, made anew where something was learned or decided since."""
    made = _modified(directory(project) / _INDEX)
    with suppress(RalphError, OSError):  # said at the next aggregation; a start does not wait
        learned = [_modified(path) for path in directory(project).glob("learning-*.yaml")]
        newest = max([_modified(shared_file(project.root)), *learned])
        if not made or newest > made:
            return rebuild(project, now=time.time())
    return load_index(project)


def _modified(path: Path) -> int:
    """When a file was last written, in nanoseconds; 0 where there is none."""
    return path.stat().st_mtime_ns if path.is_file() else 0


def moment(now: float) -> str:
    """When a line was written: a person may think again within a second."""
    return f"{iso(now)[:-1]}.{int(now % 1 * 1e6):06}Z"


def shared_file(root: Path, *, has_skills: bool = False) -> Path:
    """The file that is there, else where it would be made."""
    places = [root / name for name in SHARED_FILES]
    made = places[0] if has_skills or (root / ".claude").is_dir() else places[1]
    return next((path for path in places if path.is_file()), made)


def load_entries(project: Project) -> Known:
    """What everybody has and what was decided here, one entry a pattern."""
    shared = _read_shared(project.root)
    return Known(_merged([*_decisions(project), *shared.entries]), shared.problems)


def decide(project: Project, decided: Sequence[SharedEntry]) -> None:
    """Keep a person's word, for everybody; words of agents that were forgotten stay here."""
    kept = _merged([*_decisions(project), *decided])
    entries = (msgspec.to_builtins(entry) for entry in kept.values())
    lines = [line for entry in entries for line in _mapping(entry, "  ", listed=True)]
    save(project, _DECISIONS, "\n".join([*lines, ""]).encode(), durable=True)
    share(project.root, decided)


def share(root: Path, entries: Iterable[SharedEntry], *, has_skills: bool = False) -> str:
    """Tell everybody; what was done, in words, empty where the file says the same already."""
    path = shared_file(root, has_skills=has_skills)
    told = _read_shared(root).entries
    for one in entries:
        # Of words that are forgotten or undecided others get nothing but the id.
        bare = SharedEntry(id=one.id, word=one.word, kind=one.kind, source=one.source, at=one.at)
        holds = one.word in (EntryWord.APPROVED, EntryWord.ESTABLISHED)
        told.append(bare if one.source.is_free_text and not holds else one)
    data = b"".join(msgspec.json.encode(entry) + b"\n" for entry in _merged(told).values())
    before = read_regular(path) if path.is_file() else b""
    if data == before:
        return ""
    write_atomic(path, data, within=root, parents=True)
    name = path.relative_to(root).as_posix()
    if before:
        return f"updated {name}"
    # The lines that keep merges free of conflicts, where they are not there yet.
    attributes = (read(root / ".gitattributes") or b"").decode("utf-8", "replace")
    lines = [f"{name} merge=union", ".claude/skills/*-learned/SKILL.md merge=union"]
    if (root / ".agents/skills").is_dir():
        lines.append(".agents/skills/*-learned/SKILL.md merge=union")
    missing = " and ".join(f"`{line}`" for line in lines if line not in attributes)
    hint = f" (for merges without conflicts, add to .gitattributes: {missing})" if missing else ""
    return f"made {name}{hint}"


class _Shared(NamedTuple):
    entries: list[SharedEntry]  # of every line, whatever others say about the same pattern
    problems: list[str]


def _read_shared(root: Path) -> _Shared:
    """The lines of the file that everybody has, as far as they are entries."""
    entries = list[SharedEntry]()
    problems = list[str]()
    for name in SHARED_FILES:
        try:
            lines = read_regular(root / name, most=_LARGEST_SHARED).splitlines()
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(f"{name}: {error.strerror or error}")
            continue
        for number, line in enumerate(lines[: 2 * MAX_ENTRIES], 1):
            try:
                entries.append(_bounded(msgspec.json.decode(line, type=SharedEntry)))
            except (msgspec.DecodeError, UnicodeDecodeError):
                if line.strip():
                    problems.append(f"{name}, line {number}: no entry")
    return _Shared(entries, problems[:20])


def _bounded(entry: SharedEntry) -> SharedEntry:
    """Others wrote it: one line each, plain paths, no more than we would write."""
    return replace(
        entry,
        text=one_line(entry.text, MAX_TEXT),
        lesson=one_line(entry.lesson, MAX_TEXT),
        said=one_line(entry.said, 2 * MAX_TEXT),
        reason=one_line(entry.reason, MAX_TEXT),
        files=tuple(path for path in entry.files[:6] if is_plain_path(path)),
        hunk=entry.hunk[:_MAX_HUNK],
    )


def _merged(entries: Iterable[SharedEntry]) -> dict[str, SharedEntry]:
    """One entry a pattern, by id: the latest, and of two at once the one that says more."""
    found: dict[str, SharedEntry] = {}
    # Word and text only make every clone choose the same.
    for entry in sorted(
        entries, key=lambda one: (one.at, bool(one.text), one.word, one.text), reverse=True
    ):
        found.setdefault(entry.id, entry)
    return dict(sorted(found.items())[:MAX_ENTRIES])


def _decisions(project: Project) -> list[SharedEntry]:
    path = directory(project) / _DECISIONS
    try:
        return msgspec.convert(
            _load_yaml(read_regular(path).decode("utf-8")) or [], list[SharedEntry]
        )
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot be read: {str(error)[:200]}", "Repair it, or move it away.", place=str(path)
        ) from None


def _derived(project: Project, name: str, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(read_regular(directory(project) / name), type=kind)
    except (OSError, msgspec.DecodeError):
        return None
