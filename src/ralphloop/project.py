"""Where things are in the user's repository.

Settings are looked for upwards, where on a shared machine somebody else may have put theirs (think
of `/tmp/ralph.toml`): what belongs to neither us nor root is not obeyed.
"""

import os
from pathlib import Path
from typing import NamedTuple

from ralphloop.errors import RepositoryError

RALPH_DIR = ".ralph"
CONFIG_NAME = "ralph.toml"
ERRANDS = f"{RALPH_DIR}/do/"  # where stories given on the command line lie, each a file of its own
_MARKS = (RALPH_DIR, CONFIG_NAME, ".git")


class Project(NamedTuple):
    """The paths of one project; nothing here touches the disk."""

    root: Path
    home: Path | None = None  # whose directory of ours it uses; None: its own (a lane has none)

    @property
    def directory(self) -> Path:
        return (self.home or self.root) / RALPH_DIR

    @property
    def journal(self) -> Path:
        return self.directory / "journal.db"

    @property
    def transcripts(self) -> Path:
        return self.directory / "transcripts"

    @property
    def log(self) -> Path:
        return self.directory / "ralph.log"


def find_project(start: Path | None = None) -> Project:
    """The nearest directory upwards with a mark of ours or of git; else `start`; default: here."""
    start = (start or Path.cwd()).resolve()
    directory, foreign = _marked(start)
    if foreign is None or directory != start:
        return Project(start if foreign else directory)
    # Who goes into a directory that is wholly somebody else's knows where they are.
    if foreign.lstat().st_uid != directory.stat().st_uid:
        raise RepositoryError(*_not_obeyed(foreign))
    return Project(directory)


def passed_over(start: Path) -> tuple[str, str] | None:
    """What stands above `start` and is not obeyed, with the way out; None where all is ours."""
    start = start.resolve()
    directory, foreign = _marked(start)
    return _not_obeyed(foreign) if foreign and directory != start else None


def _marked(start: Path) -> tuple[Path, Path | None]:
    """The nearest directory upwards with a mark, and a mark in it of neither us nor root."""
    me = os.geteuid()
    sudo = os.environ.get("SUDO_UID", "")
    owners = {0, me, int(sudo)} if me == 0 and sudo.isdecimal() else {0, me}
    for directory in (start, *start.parents):
        if marks := [directory / mark for mark in _MARKS if (directory / mark).exists()]:
            return directory, next((m for m in marks if m.lstat().st_uid not in owners), None)
    return start, None


def _not_obeyed(mark: Path) -> tuple[str, str]:
    return (
        f"{mark} belongs to another user and is not obeyed",
        f"If you trust it: `chown` it to yourself, or work in {mark.parent} as its owner.",
    )


def git_directory(start: Path) -> Path | None:
    """Git's directory of the work tree around a path; linked work trees have one each."""
    for place in (start, *start.parents):
        found = place / ".git"
        try:
            if found.is_file():
                found = place / found.read_text("utf-8").removeprefix("gitdir:").strip()
            if (found / "HEAD").exists():
                return found.resolve()
        except (OSError, ValueError):
            return None  # git itself says what is wrong with it
    return None


def tree_top(root: Path) -> Path:
    """The work tree around a project; the project itself where there is none."""
    return next((place for place in (root, *root.parents) if (place / ".git").exists()), root)


def agent_directories(root: Path) -> tuple[Path, ...]:
    return (root / "agents.d", root / RALPH_DIR / "agents")


def relative(path: Path, root: Path) -> str:
    """The path as people write it from the project's root."""
    try:
        return path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return str(path)
