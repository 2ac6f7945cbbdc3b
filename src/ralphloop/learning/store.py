"""The directory `.ralph/learnings`: one YAML file a learning, decisions of this machine, the index.

The YAML files are the truth and are only ever added, in the shape people know: successes, failures,
discoveries.  Every value in them is written as JSON, which is YAML too; what a person makes of a
file is read as well.  The JSON files are derived and may be deleted: the index, and `parsed.json`
with what was read before, because a YAML library takes its time.

What everybody has is in the shared file (`shared`).  `decisions.yaml` holds what only this machine
may know of a decision: the words of agents that a person forgot, and decisions of older versions.
It is no cache, so one that cannot be read is an error, not an empty list.  The newest
`MAX_LEARNINGS` files are read, older ones rest.
"""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.errors import InputError, RalphError
from ralphloop.learning import shared
from ralphloop.learning.aggregate import aggregate
from ralphloop.learning.model import Index, Learning, Note, NoteKind, SharedEntry
from ralphloop.project import Project
from ralphloop.room import read_regular

MAX_LEARNINGS = 5_000
SECTIONS = {
    NoteKind.SUCCESS: "successes",
    NoteKind.FAILURE: "failures",
    NoteKind.DISCOVERY: "discoveries",
}
_DECISIONS = "decisions.yaml"
_INDEX = "index.json"
_PARSED = "parsed.json"
_LARGEST = 64 * 1024
_MOST_BRACKETS = 500
_HEAD = ("task_id", "outcome", "timestamp", "captured")
_PROVENANCE = ("run", "iteration", "commit", "files", "carried", "content")
_OUTCOMES = {"success": "passed", "failure": "failed"}
_UNPRINTABLE = re.compile(r"[\x7f-\xa0\xad\u2028\u2029\ufeff\ufffe\uffff]")
_Parsed = tuple[tuple[int, int], Learning]  # with time and size of the file
_T = TypeVar("_T")


def directory(project: Project) -> Path:
    return project.directory / "learnings"


# --- learnings -------------------------------------------------------------------------------


def save(project: Project, name: str, learning: Learning) -> None:
    _write(project, name, render(learning))


def load_all(project: Project) -> tuple[list[Learning], list[str]]:
    """All learnings, oldest first, and what could not be read, in words."""
    place, known = directory(project), _derived(project, _PARSED, dict[str, _Parsed]) or {}
    found, problems = dict[str, _Parsed](), list[str]()
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
        _write(project, _PARSED, msgspec.json.encode(found))
    learnings = (learning for _, learning in found.values())
    return sorted(learnings, key=lambda one: (one.timestamp, one.iteration)), problems[:20]


def render(learning: Learning) -> bytes:
    lines = _mapping({key: getattr(learning, key) for key in _HEAD})
    for kind, section in SECTIONS.items():
        entries = [_entry(note) for note in learning.notes if note.kind is kind]
        lines += [f"{section}:" if entries else f"{section}: []", *_listed(entries, indent="  ")]
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
    flat["outcome"] = _OUTCOMES.get(word := flat.get("outcome", ""), word)
    flat["notes"] = [note for note in notes if note["text"]]
    return msgspec.convert(flat, Learning)


def _entry(note: Note) -> dict[str, Any]:
    main = "description" if note.kind is NoteKind.DISCOVERY else "pattern"
    lesson = {"lesson": note.lesson} if note.kind is NoteKind.FAILURE else {}
    reusable = {"reusable": True} if note.kind is NoteKind.SUCCESS else {}
    about = {"category": note.category, **reusable}
    return {main: note.text, **lesson, **about, "source": note.source, "evidence": note.evidence}


def _listed(entries: Iterable[Mapping[str, Any]], indent: str = "") -> Iterator[str]:
    for entry in entries:
        first, *rest = _mapping(entry, f"{indent}  ")
        yield from (f"{indent}- {first.strip()}", *rest)


def _mapping(values: Mapping[str, Any], indent: str = "") -> list[str]:
    """One line a value: JSON, and within it only characters that YAML allows."""
    lines = []
    for key, value in values.items():
        made = msgspec.json.encode(value).decode()
        made = _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", made)
        lines.append(f"{indent}{key}: {made}")
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


# --- patterns --------------------------------------------------------------------------------


def rebuild(project: Project, *, now: float) -> Index:
    learnings, problems = load_all(project)
    entries, unread = load_entries(project)
    root = project.root
    index = aggregate(
        learnings, entries.values(), now=now, exists=lambda path: (root / path).exists()
    )
    index = msgspec.structs.replace(index, problems=(*problems, *unread))
    if directory(project).is_dir():  # looking at a project that never learned leaves no trace in it
        _write(project, _INDEX, msgspec.json.encode(index))
    return index


def load_index(project: Project) -> Index:
    return _derived(project, _INDEX, Index) or Index()


def current(project: Project) -> Index:
    """The patterns for the next start: a fresh clone has none of its own, and others may decide."""
    places = directory(project) / _INDEX, shared.path_of(project.root)
    if not (directory(project).is_dir() or places[1].is_file()):
        return Index()
    index, known = (path.stat().st_mtime_ns if path.is_file() else 0 for path in places)
    with suppress(RalphError, OSError):  # said at the next aggregation; a start does not wait
        if not index or known > index:
            return rebuild(project, now=time.time())
    return load_index(project)


def load_entries(project: Project) -> tuple[dict[str, SharedEntry], list[str]]:
    """What everybody has and what was decided here, by id, and what could not be read."""
    found, problems = shared.load(project.root)
    return shared.merged([*_decisions(project), *found]), problems


def decide(project: Project, decided: Sequence[SharedEntry]) -> None:
    """Keep a person's word, for everybody; words of agents that were forgotten stay here."""
    kept = shared.merged([*_decisions(project), *decided])
    entries = [msgspec.to_builtins(entry) for entry in kept.values()]
    _write(project, _DECISIONS, "\n".join([*_listed(entries), ""]).encode(), durable=True)
    found, _ = shared.load(project.root)
    shared.save(project.root, shared.merged([*found, *map(shared.for_everybody, decided)]))


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


def _write(project: Project, name: str, data: bytes, *, durable: bool = False) -> None:
    path = directory(project) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, data, within=project.directory, durable=durable)
