"""Which projects of this user had a run: one small file each in the user's state directory.

Journals lie in their projects, and nothing else says where those are.  Only the path and the time
of the newest start are kept.  A project without a journal is forgotten when another one starts, and
so are the oldest of too many.  Where there is no such place nothing is kept: a run needs none.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ralphloop.errors import RalphError
from ralphloop.project import Project
from ralphloop.room import file_of, read_state, write_state

_KIND = "projects"
MOST_PROJECTS = 100


class KnownProject(msgspec.Struct, frozen=True):
    """Where a project is, and when a run of it was last started."""

    root: str
    at: float

    @property
    def project(self) -> Project:
        return Project(Path(self.root))


def remember_project(root: Path, env: Mapping[str, str], now: float) -> None:
    """Keep that a run of this project starts, and forget what is gone; never raises."""
    place = root.resolve()
    file = file_of(_KIND, place, env)
    if file is None:
        return
    with suppress(RalphError, OSError, UnicodeError):
        known = KnownProject(str(place), now)
        write_state(file, msgspec.json.encode(known), durable=False)
        _forget_stale(file.parent)


def known_projects(env: Mapping[str, str]) -> list[KnownProject]:
    """All that still have a journal, the newest start first."""
    any_file = file_of(_KIND, Path("/"), env)
    if any_file is None:
        return []
    found = [one for one in map(_read, _files(any_file.parent)) if one is not None]
    found = [one for one in found if one.project.journal.exists()]
    found.sort(key=lambda one: -one.at)
    return found[:MOST_PROJECTS]


def _files(directory: Path) -> list[Path]:
    try:
        return sorted(directory.glob("*.json"))
    except OSError:
        return []


def _read(file: Path) -> KnownProject | None:
    """What a file says; None where it says nothing that can be used."""
    try:
        known = msgspec.json.decode(read_state(file) or b"", type=KnownProject)
    except (msgspec.DecodeError, UnicodeError):
        return None
    is_path = Path(known.root).is_absolute() and "\0" not in known.root
    return known if is_path else None


def _forget_stale(directory: Path) -> None:
    """Remove what leads nowhere any more, and the oldest beyond the most that are kept."""
    kept = list[tuple[float, Path]]()
    for file in _files(directory):
        known = _read(file)
        if known is None or not known.project.journal.exists():
            file.unlink(missing_ok=True)
        else:
            kept.append((known.at, file))
    kept.sort()
    for _, file in kept[:-MOST_PROJECTS]:
        file.unlink(missing_ok=True)
