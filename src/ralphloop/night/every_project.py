"""Every project of this user that had a run, watched together.

Each is the same look as on its own screens.  A journal that cannot be read says so in its place and
hides nobody else.
"""

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ralphloop.errors import RalphError
from ralphloop.journal.known_projects import known_projects
from ralphloop.night.values import Night
from ralphloop.night.watch import Watch
from ralphloop.project import Project
from ralphloop.text.plain import one_line

_LOOK_AROUND_S = 5.0  # for projects that came or went


class ProjectLook(NamedTuple):
    """How one project stands, or why that cannot be seen."""

    key: str  # names it in an address
    project: Project
    night: Night | None
    trouble: str = ""

    @property
    def questions(self) -> int:
        return len(self.night.asking) if self.night else 0

    @property
    def to_review(self) -> int:
        """Stories that `ralph review` would show."""
        if self.night is None:
            return 0
        return len(self.night.unreviewed) + len(self.night.same_as_sent_back)

    @property
    def proposed(self) -> int:
        return len(self.night.proposals) if self.night else 0

    @property
    def waits(self) -> bool:
        """Whether something waits for a person."""
        return bool(self.questions or self.to_review or self.proposed)

    @property
    def turn(self) -> tuple[int, float]:
        """What a person looks at first comes first: what waits, what runs, what is newest."""
        run = self.night.run if self.night else None
        newest = run.last_activity if run else 0.0
        is_live = self.night is not None and self.night.is_live
        if self.waits:
            return 0, -newest
        return 1 if is_live else 2, -newest


class EveryProject:
    """Watches all of them; it belongs to one thread."""

    def __init__(self, env: Mapping[str, str], clock: Callable[[], float] = time.time) -> None:
        self._env = env
        self._clock = clock
        self._looked = -1e18
        self._watches: dict[Path, Watch] = {}
        self._looks: dict[Path, ProjectLook] = {}
        self._has_told = False

    def poll(self) -> tuple[ProjectLook, ...] | None:
        """How all stand, what waits for a person first; None where nothing has changed."""
        before = dict(self._looks)
        self._find_projects()
        for root, watch in self._watches.items():
            self._look(root, watch)
        if self._has_told and self._looks == before:
            return None
        self._has_told = True
        return tuple(sorted(self._looks.values(), key=lambda one: one.turn))

    def close(self) -> None:
        for watch in self._watches.values():
            watch.close()

    def _find_projects(self) -> None:
        now = self._clock()
        if abs(now - self._looked) < _LOOK_AROUND_S:
            return
        self._looked = now
        found = [known.project for known in known_projects(self._env)]
        there = {project.root for project in found}
        for gone in set(self._watches) - there:
            self._watches.pop(gone).close()
            self._looks.pop(gone, None)
        for project in found:
            if project.root not in self._watches:
                self._watches[project.root] = Watch(project, clock=self._clock)

    def _look(self, root: Path, watch: Watch) -> None:
        key = key_of(root)
        try:
            seen = watch.look_again()
        except RalphError as error:
            watch.close()
            trouble = one_line(f"{error.message}. {error.next_step}", 500)
            self._looks[root] = ProjectLook(key, watch.project, None, trouble)
            return
        if seen is not None:
            self._looks[root] = ProjectLook(key, watch.project, seen.night)


def key_of(root: Path) -> str:
    """A short name of a project that is the same every time and fits into an address."""
    return hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:12]
