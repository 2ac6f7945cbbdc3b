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
LANDING = "landing"  # the name of the tree that stories land in, beside those of the lanes
LANE_VARIABLE = "RALPH_LANE"  # tells agents, checks and setups in which lane they are; 0: none
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


class NotObeyed(NamedTuple):
    message: str
    next_step: str


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


def passed_over(start: Path) -> NotObeyed | None:
    """What stands above `start` and is not obeyed, with the way out; None where all is ours."""
    start = start.resolve()
    directory, foreign = _marked(start)
    return _not_obeyed(foreign) if foreign and directory != start else None


class _Marked(NamedTuple):
    directory: Path
    foreign: Path | None  # a mark in it that belongs to neither us nor root


def _marked(start: Path) -> _Marked:
    """The nearest directory upwards with a mark; else where we are."""
    me = os.geteuid()
    sudo = os.environ.get("SUDO_UID", "")
    owners = {0, me, int(sudo)} if me == 0 and sudo.isdecimal() else {0, me}
    for directory in (start, *start.parents):
        if marks := [directory / mark for mark in _MARKS if (directory / mark).exists()]:
            foreign = next((mark for mark in marks if mark.lstat().st_uid not in owners), None)
            return _Marked(directory, foreign)
    return _Marked(start, None)


def _not_obeyed(mark: Path) -> NotObeyed:
    return NotObeyed(
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
