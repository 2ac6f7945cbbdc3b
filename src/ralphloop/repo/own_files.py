"""The files ralph itself writes into the user's repository.

They are never progress, and most of them are never committed.  A pattern is a path from the
repository's root; one that ends in `/` is a whole directory, and `*` stands for any part of one
name.  Where a run keeps to its project (`within`), whatever lies beside that counts as little.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_PRIVATE = (".ralph/", ".ralph-session.json", ".ralph-circuit-state.json")
_PUBLISHED = ("progress.txt",)


class OwnFiles:
    """A set of path patterns with a fast answer."""

    def __init__(self, patterns: Iterable[str], *, within: str = "") -> None:
        wanted = sorted(set(patterns))
        self.patterns = (*wanted, *((f"!{within}",) if within else ()))
        self._within = within
        plain = [p for p in wanted if "*" not in p]
        self._paths = frozenset(p for p in plain if not p.endswith("/"))
        self._directories = tuple(p for p in plain if p.endswith("/"))
        wild = (re.escape(p).replace(r"\*", "[^/]*") for p in wanted if "*" in p)
        self._wild = [re.compile(w if w.endswith("/") else rf"{w}\Z") for w in wild]

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str):
            return False
        if path in self._paths or path.startswith(self._directories):
            return True
        if not path.startswith(self._within):
            return True
        return f"{path}/" in self._directories or any(wild.match(path) for wild in self._wild)


def never_committed(project: str = "", *, within: str = "") -> OwnFiles:
    """What only this machine needs: the journal's directory and the two JSON views."""
    return OwnFiles((f"{project}{name}" for name in _PRIVATE), within=within)


def never_progress(project: str = "", also: Iterable[str] = (), *, within: str = "") -> OwnFiles:
    """Everything ralph writes; `also` names story files and learned files, from the root."""
    ours = (f"{project}{name}" for name in (*_PRIVATE, *_PUBLISHED))
    return OwnFiles((*ours, *also), within=within)


def project_prefix(root: Path, project: Path) -> str:
    """Where the project lies in its repository, as a prefix of paths: `` or `packages/api/`."""
    place = project.resolve()
    if not place.is_relative_to(root.resolve()):
        return ""
    relative = place.relative_to(root.resolve()).as_posix()
    return "" if relative == "." else f"{relative}/"
