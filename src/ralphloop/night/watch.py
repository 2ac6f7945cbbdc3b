"""Watching a project: the journal, polled by one pragma, and the few files around it.

The files (story list, learnings, the transcript of the running agent) may be missing, half written
or broken at any moment; the rest is still shown.

`poll` returns what is there now, or nothing.  While an agent works, most writes are its events:
then only they and the run's own row are read.  Everything else is read again when any other event,
a write without an event or a changed file says so.  Each look is one short transaction.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from ralphloop.config.model import Config
from ralphloop.core.breaker import BreakerState
from ralphloop.core.events import KINDS, AgentStep, LoopEvent
from ralphloop.core.model import Usage
from ralphloop.core.run_state import Desk, Frozen, RunState
from ralphloop.core.story_state import StoryState
from ralphloop.errors import RalphError
from ralphloop.journal.holder import Holder
from ralphloop.journal.lock import live_holder
from ralphloop.journal.queries import JournalReader
from ralphloop.journal.records import IterationRecord, Request, RunRecord, SavedState, Wait
from ralphloop.night.look import Listed, config_of, listed, look_at, story_file
from ralphloop.night.values import Night
from ralphloop.project import Project
from ralphloop.readers import reader_for, reader_name
from ralphloop.readers.stream import Reader
from ralphloop.room import open_regular
from ralphloop.text.plain import one_line

EVENTS_READ = 2_000
_ITERATIONS_READ = 8
_LOOK_AROUND_S = 1.0
_LOOK_FOR_LEARNINGS_S = 5.0
_BITE = 4 * 1024 * 1024
_T = TypeVar("_T")
Mark = tuple[int, int, int]


# Pages are read by threads of their own.  msgspec lays a type out at its first use, and two threads
# that do so at once crash it: so it is done here, for all that they read.
msgspec.json.Decoder(tuple[RunRecord, IterationRecord, Request, Wait, SavedState])
for kind in KINDS.values():
    msgspec.json.Decoder(kind)
msgspec.json.Decoder(tuple[Config, BreakerState, Desk, Frozen, RunState, StoryState])


class Learned(NamedTuple):
    """What was learned so far, as the files say."""

    captured: int = 0
    categories: tuple[tuple[str, int], ...] = ()  # most frequent first
    skills: int = 0
    waiting: int = 0  # for a person's yes or no


class Tail:
    """The transcript of a running agent, read as it grows: its usage and last sign of life."""

    def __init__(self, path: Path, reader: str) -> None:
        self.path = path
        self._reader: Reader = reader_for(reader)
        self._offset = 0
        self._mark: Mark | None = None

    @property
    def usage(self) -> Usage:
        return self._reader.dialect.usage

    @property
    def last_output(self) -> float | None:
        """When the agent last wrote something."""
        return self._mark[1] / 1e9 if self._mark else None

    def advance(self) -> bool:
        """Take what is new, a bite at a time; True where there was something."""
        mark = mark_of(self.path)
        if mark is None or (mark == self._mark and self._offset >= mark[2]):
            return False
        self._mark = mark
        try:
            with open_regular(self.path) as file:
                file.seek(self._offset)
                chunk = file.read(_BITE)
        except OSError:
            return False
        self._offset += len(chunk)
        self._reader.feed(chunk)
        return True


class _Kept(Generic[_T]):
    """What was read from files, read again only when one of them changed."""

    def __init__(self, value: _T) -> None:
        self.value = value
        self._key: object = None

    def renew(self, key: object, read: Callable[[], _T]) -> bool:
        """True where it may be different now."""
        if key == self._key:
            return False
        self._key, self.value = key, read()
        return True


@dataclass(frozen=True)
class Watched:
    """One look: how things stand, and what happened since the look before."""

    night: Night
    events: tuple[LoopEvent, ...]
    is_new_run: bool  # the events are the newest of another run than before
    learned: Learned
    usage: Usage  # of the running agent, so far
    last_output: float | None  # when it last wrote something


class Watch:
    """One project, watched."""

    def __init__(
        self, project: Project, *, run: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.project = project
        self._wanted = run
        self._clock = clock
        self._journal: JournalReader | None = None
        self._opened: int | None = None
        self._night: Night | None = None
        self._run, self._seq = "", 0  # whose events were read, and up to where
        self._looked = self._looked_for_learnings = -1e18
        self._stories: _Kept[Listed] = _Kept((None, ""))
        self._learned = _Kept(Learned())
        self._tail: Tail | None = None

    def poll(self) -> Watched | None:
        """What is there now; None where nothing was written.  Raises what the journal raises."""
        now = self._clock()
        around = now - self._looked >= _LOOK_AROUND_S or now < self._looked
        if around:
            self._looked = now
        journal = self._open(around)
        written = journal.changed()
        grown = self._tail.advance() if self._tail else False
        outside = self._look_around(now) if around else False
        if not (written or grown or outside or self._night is None):
            return None
        with journal.snapshot():
            return self._look(journal, now, written=written, outside=outside)

    def close(self) -> None:
        """Let the journal go; the next look opens it again and tells everything anew."""
        if self._journal is not None:
            self._journal.close()
        self._journal = self._night = None
        self._run, self._seq = "", 0

    # --- around the journal ------------------------------------------------------------------

    def _open(self, around: bool) -> JournalReader:
        """The journal; a file that came, went or was replaced is opened anew."""
        if around or self._opened is None:  # a run that begins is seen at once
            mark = mark_of(self.project.journal)
            inode = mark[0] if mark else None
            if self._journal is not None and inode != self._opened:
                self.close()
            self._opened = inode
        if self._journal is None:
            self._journal = JournalReader.open(self.project.journal)
        return self._journal

    def _look_around(self, now: float) -> bool:
        """True where something beside the journal is different."""
        if self._night is None:
            return True
        changed = self._read_stories(self._night.run, self._night.config)
        before, holder = self._night.holder, self._holder(now)
        changed |= (before and before.run) != (holder and holder.run)
        if now - self._looked_for_learnings >= _LOOK_FOR_LEARNINGS_S:
            self._looked_for_learnings = now
            changed |= self._read_learnings()
        return changed

    def _read_stories(self, run: RunRecord | None, config: Config) -> bool:
        """True where the list may be another one now."""
        path = None
        if run is None or run.prd_path:  # a plain loop has none
            with suppress(RalphError):
                path = story_file(self.project, run, config)
        key = (run and run.prd_path, path, mark_of(path) if path else None)
        return self._stories.renew(key, lambda: listed(self.project, run, config))

    def _read_learnings(self) -> bool:
        folder, claude = self.project.directory / "learnings", self.project.root / ".claude"
        places = {
            folder: "learning-*.yaml",
            claude / "skills": "*-learned/SKILL.md",
            claude / "commands": "*-learned.md",
        }
        key = [mark_of(path) for path in (*places, folder / "index.json")]
        return self._learned.renew(key, lambda: _learned(self.project, places))

    def _holder(self, now: float) -> Holder | None:
        holder = live_holder(self.project.directory, now)
        other = holder is not None and self._wanted is not None and holder.run != self._wanted
        return None if other else holder

    # --- reading -----------------------------------------------------------------------------

    def _look(self, journal: JournalReader, now: float, *, written: bool, outside: bool) -> Watched:
        holder, before = self._holder(now), self._night
        wanted = self._wanted or (holder.run if holder else None)  # it may only be about to begin
        run = journal.find_run(wanted) if wanted else journal.latest_run()
        is_new_run = run is not None and run.id != self._run
        fresh = self._events(journal, run) if run and (written or is_new_run) else []
        small = [isinstance(it.what, AgentStep) and it.what.kind != "result" for it in fresh]
        only_steps = bool(fresh) and all(small)
        known = before is not None and run and before.run and before.run.id == run.id
        if before is not None and run and known and not outside and (only_steps or not written):
            pending = tuple(journal.pending_requests(run.id))
            self._night = replace(before, run=run, pending=pending)
        else:
            config = config_of(self.project, run)
            self._read_stories(run, config)
            if before is None:
                self._read_learnings()
            kept, newest = (config, self._stories.value), _ITERATIONS_READ
            self._night = look_at(
                self.project, journal, run, now=now, holder=holder, known=kept, newest=newest
            )
        tail = self._follow(self._night)
        return Watched(
            night=self._night,
            events=tuple(fresh),
            is_new_run=is_new_run,
            learned=self._learned.value,
            usage=tail.usage if tail else Usage(),
            last_output=tail.last_output if tail else None,
        )

    def _events(self, journal: JournalReader, run: RunRecord) -> list[LoopEvent]:
        """Events since the last look; of a run not seen before the newest ones."""
        if run.id == self._run:
            fresh = journal.events_since(self._seq, EVENTS_READ, run=run.id)
        else:
            self._run, self._seq = run.id, 0
            fresh = journal.last_events(run.id, EVENTS_READ)
        self._seq = fresh[-1].seq if fresh else self._seq
        return fresh

    def _follow(self, night: Night) -> Tail | None:
        """The transcript of the iteration that runs now."""
        newest = night.current
        if newest is None:
            self._tail = None
            return None
        path = self.project.transcripts / newest.run / f"{newest.n}.log"
        if self._tail is None or self._tail.path != path:
            agent = night.config.agent
            self._tail = Tail(path, reader_name(agent.name, agent.format))
            self._tail.advance()
        return self._tail


def mark_of(path: Path) -> Mark | None:
    """Changes when the file does; None where there is none."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns, state.st_size


def _learned(project: Project, places: Mapping[Path, str]) -> Learned:
    from ralphloop.learning.store import load_index

    patterns = load_index(project).patterns
    kinds = Counter(one_line(known.category, 20) for known in patterns)
    try:
        captured, *skills = (sum(1 for _ in at.glob(name)) for at, name in places.items())
    except OSError:
        return Learned()
    waiting = sum(known.waits for known in patterns)
    return Learned(captured, tuple(kinds.most_common(4)), sum(skills), waiting)
