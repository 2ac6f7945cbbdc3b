"""Which changes are a story's own, although others worked in the same files between its starts.

What a story is compared with is the tree it began with, moved on by everything that others changed
since: other stories, a person, what was taken out again.  Its own changes of earlier starts are not
in it, wherever they went meanwhile, into another story's commit for instance.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from ralphloop.core import Value


class PathEntry(Value, frozen=True, kw_only=True):
    """What stands at a path of a tree."""

    mode: str
    content: str  # the name of its content


class PathChange(Value, frozen=True, kw_only=True):
    """What stood at a path at one moment and at a later one; None: nothing."""

    before: PathEntry | None = None
    after: PathEntry | None = None


class Moved(Value, frozen=True, kw_only=True):
    """How the tree that a story began with has to be changed to be what stands without it now."""

    taken: dict[str, PathEntry | None]  # as others left these paths; None: nothing is there
    contested: dict[
        str, PathEntry | None
    ]  # the story changed them, and then others: as they are now


def moved_on(own: Mapping[str, PathChange], others: Mapping[str, PathChange]) -> Moved:
    """Take over what others changed after a story's last start.

    `own` is what the story had changed up to there, `others` what differs since.  Where both
    changed a path, its content has to be merged; where that cannot be done, nobody knows whose it
    is, and it counts as theirs: a story is never proven by what somebody else wrote.
    """
    taken: dict[str, PathEntry | None] = {}
    contested: dict[str, PathEntry | None] = {}
    for path, change in others.items():
        mine = own.get(path)
        if mine is None:
            taken[path] = change.after
        elif change.after != mine.before:  # else they only took back what the story did
            contested[path] = change.after
    return Moved(taken=taken, contested=contested)


def change_id(diff: bytes) -> str:
    """What a change is known by wherever it stands: its lines, without their numbers.

    `diff` is a patch as git writes it, with some lines around each change.  Spaces count, because
    in some languages they are all there is to mend.  Empty where nothing changed.
    """
    lines = list(_without_positions(diff.splitlines()))
    return hashlib.sha256(b"\n".join(lines)).hexdigest() if lines else ""


def _without_positions(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a patch that stay the same when others change the file as well."""
    content = b""
    for line in lines:
        if line.startswith(b"index "):  # the names of both contents
            content = line.split(b" ")[1].partition(b"..")[2]
        elif line.startswith(b"@@ "):
            yield b"@@"
        elif line.startswith(b"Binary files "):  # of these there are no lines
            yield content
        else:
            yield line
