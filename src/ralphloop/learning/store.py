"""The directory `.ralph/learnings`: one YAML file a learning, a person's decisions, the index.

The YAML files are the truth and are only ever added.  The JSON files (the index, and `parsed.json`
with what was read before) are derived and may be deleted.
`decisions.yaml` holds what a person approved or forgot; it is no cache, so one that cannot be
read is an error, not an empty list.  `known.json` names every pattern that was fit to be published
here; without it nothing published is removed.  The newest `MAX_LEARNINGS` files are read, older
ones rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.errors import InputError
from ralphloop.learning import yaml_file
from ralphloop.learning.aggregate import aggregate
from ralphloop.learning.model import Decided, Index, Learning
from ralphloop.project import Project
from ralphloop.room import open_regular

MAX_LEARNINGS = 5_000
_DECISIONS = "decisions.yaml"
_INDEX = "index.json"
_PARSED = "parsed.json"
_KNOWN = "known.json"
_Parsed = tuple[tuple[int, int], Learning]  # with time and size of the file


def directory(project: Project) -> Path:
    return project.directory / "learnings"


def save(project: Project, name: str, learning: Learning) -> Path:
    """Write one learning; the same name again writes the same file."""
    path = directory(project) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, yaml_file.render(learning).encode(), within=project.directory, durable=False)
    return path


def load_all(project: Project) -> tuple[list[Learning], list[str]]:
    """All learnings, oldest first, and what could not be read, in words."""
    place = directory(project)
    known, found, problems = _load_parsed(place), dict[str, _Parsed](), list[str]()
    names = (path.name for path in place.glob("learning-*.yaml"))
    for name in sorted(names, key=_by_time)[-MAX_LEARNINGS:]:
        try:
            status = (place / name).stat()
            stamp = (status.st_mtime_ns, status.st_size)
            old = known.get(name)
            found[name] = old if old and old[0] == stamp else (stamp, _load(place / name))
        except (OSError, ValueError) as error:
            problems.append(f"{name}: {str(error)[:200]}")
    if found.keys() != known.keys() or any(found[name] is not known[name] for name in found):
        write_atomic(
            place / _PARSED, msgspec.json.encode(found), within=project.directory, durable=False
        )
    learnings = (learning for _, learning in found.values())
    return sorted(learnings, key=lambda one: (one.timestamp, one.iteration)), problems[:20]


def rebuild(project: Project, *, now: float) -> Index:
    """Aggregate all learnings anew and keep the result."""
    learnings, problems = load_all(project)
    index = aggregate(learnings, load_decisions(project), now=now)
    index = msgspec.structs.replace(index, problems=tuple(problems))
    path = directory(project) / _INDEX
    if path.parent.is_dir():  # looking at a project that never learned leaves no trace in it
        write_atomic(path, msgspec.json.encode(index), within=project.directory, durable=False)
    return index


def load_index(project: Project) -> Index:
    """The patterns as last aggregated; empty where there are none yet."""
    path = directory(project) / _INDEX
    try:
        return msgspec.json.decode(path.read_bytes(), type=Index)
    except (OSError, msgspec.DecodeError):
        return Index()


def load_decisions(project: Project) -> list[Decided]:
    """What a person decided, oldest first."""
    path = directory(project) / _DECISIONS
    try:
        raw = yaml_file.load_yaml(path.read_text("utf-8"))
        return msgspec.convert(raw or [], list[Decided])
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot be read: {str(error)[:200]}", "Repair it, or move it away.", place=str(path)
        ) from None


def save_decisions(project: Project, decisions: Sequence[Decided]) -> None:
    """Keep what a person decided."""
    lines: list[str] = []
    for decided in decisions:
        values = {key: getattr(decided, key) for key in decided.__struct_fields__}
        lines += (line.removeprefix("  ") for line in yaml_file.listed(values))
    path = directory(project) / _DECISIONS
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, ("\n".join(lines) + "\n").encode(), within=project.directory)


def add_known(project: Project, ids: Iterable[str]) -> frozenset[str]:
    """Remember these patterns; all that were ever known here."""
    path = directory(project) / _KNOWN
    try:
        before = msgspec.json.decode(path.read_bytes(), type=frozenset[str])
    except (OSError, msgspec.DecodeError):
        before = frozenset()
    known = before.union(ids)
    if known != before:
        write_atomic(path, msgspec.json.encode(sorted(known)), within=project.root, durable=False)
    return known


def _load(path: Path) -> Learning:
    with open_regular(path) as file:
        data = file.read(yaml_file.LARGEST + 1)
    if len(data) > yaml_file.LARGEST:
        raise ValueError("is too large for a learning")
    return yaml_file.parse(data.decode())


def _by_time(name: str) -> tuple[list[str], str]:
    """Names end in date, time and milliseconds."""
    return name.rsplit("-", 3)[1:], name


def _load_parsed(place: Path) -> dict[str, _Parsed]:
    """What was read before, so that an unchanged file is not read again."""
    try:
        return msgspec.json.decode((place / _PARSED).read_bytes(), type=dict[str, _Parsed])
    except (OSError, msgspec.DecodeError):
        return {}
