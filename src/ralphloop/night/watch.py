"""Watching a project: the journal, polled by one pragma, and the few files around it.

The files may be missing, half written or broken at any moment; the rest is still shown.  While an
agent works, most writes are its events: then only they and the run's own row are read, until any
other event, a write without one or a changed file says otherwise.  A look is one short transaction.
"""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.config.model import Config
from ralphloop.core.breaker import BreakerState
from ralphloop.core.events import KINDS, AgentStep, LoopEvent
from ralphloop.core.model import Usage
from ralphloop.core.run_state import OperatorOverrides, RunBaseline, RunState, StoryState
from ralphloop.errors import RalphError
from ralphloop.journal.queries import JournalReader
from ralphloop.journal.records import IterationRecord, Request, RunRecord, Wait
from ralphloop.night.look import Listed, config_of, holder_of, listed, look_at, story_file
from ralphloop.night.values import Night
from ralphloop.project import Project
from ralphloop.readers import reader_for, reader_name
from ralphloop.room import open_regular
from ralphloop.text.plain import one_line

EVENTS_READ = 2_000
_LOOK_AROUND_S = 1.0
_BITE = 4 * 1024 * 1024
Mark = tuple[int, int, int]


# Pages are read by threads of their own.  msgspec lays a type out at its first use, and two threads
# that do so at once crash it: so it is done here, for all that they read.
msgspec.json.Decoder(tuple[RunRecord, IterationRecord, Request, Wait])
for kind in KINDS.values():
    msgspec.json.Decoder(kind)
msgspec.json.Decoder(
    tuple[Config, BreakerState, OperatorOverrides, RunBaseline, RunState, StoryState]
)


class Seen(NamedTuple):
    """What a look brought."""

    night: Night
    fresh: list[LoopEvent]  # events since the last look
    is_anew: bool  # another run, or the first look: what was told before no longer holds


class Lessons(NamedTuple):
    captured: int = 0
    categories: tuple[tuple[str, int], ...] = ()  # most frequent first
    skills: int = 0
    waiting: int = 0  # for a person's yes or no


class Tail:
    """The transcript of a running agent, read as it grows: its usage and last sign of life."""

    def __init__(self, path: Path, reader: str) -> None:
        self.path = path
        self._reader = reader_for(reader)
        self._offset = 0
        self.usage = Usage()
        self.last_output: float | None = None

    def advance(self) -> bool:
        """Take what is new, a bite at a time; True where there was something."""
        mark = mark_of(self.path)
        if mark is None or self._offset >= mark[2]:
            return False
        self.last_output = mark[1] / 1e9
        try:
            with open_regular(self.path) as file:
                file.seek(self._offset)
                chunk = file.read(_BITE)
        except OSError:
            return False
        self._offset += len(chunk)
        self._reader.feed(chunk)
        self.usage = self._reader.dialect.usage
        return True


class Watch:
    def __init__(
        self, project: Project, *, run: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.project = project
        self._wanted = run or ""
        self._clock = clock
        self._journal: JournalReader | None = None
        self._opened: int | None = None
        self._night: Night | None = None
        self._seq = 0  # up to where its events were read
        self._looked = -1e18
        self._stories: Listed = (None, "")
        self._stories_key: object = None  # what they were read from
        self.learned = Lessons()
        self._learned_key: object = None
        self.tail: Tail | None = None

    def look_again(self) -> Seen | None:
        """How things stand and what is new; None where nothing is."""
        now = self._clock()
        around = abs(now - self._looked) >= _LOOK_AROUND_S
        if around:
            self._looked = now
        journal = self._open()
        written = journal.changed()
        grown = self.tail.advance() if self.tail else False
        outside = around and self._read_learnings()  # something beside the journal is different
        if around and self._night is not None:
            has_other_stories = self._read_stories(self._night.run, self._night.config)
            outside = outside or has_other_stories
            before = self._night.holder
            holder = holder_of(self.project, now, self._wanted)
            held_before = before.run if before else None
            held_now = holder.run if holder else None
            outside = outside or held_before != held_now
        if not (written or grown or outside or self._night is None):
            return None
        with journal.snapshot():
            return self._look(journal, now, written=written, outside=outside)

    def close(self) -> None:
        """Let the journal go; the next look opens it again and tells everything anew."""
        if self._journal is not None:
            self._journal.close()
        self._journal = self._night = None

    def _open(self) -> JournalReader:
        """The journal; a file that came, went or was replaced is opened anew."""
        mark = mark_of(self.project.journal)
        inode = mark[0] if mark else None
        if self._journal is not None and inode != self._opened:
            self.close()
        self._opened = inode
        if self._journal is None:
            self._journal = JournalReader.open(self.project.journal)
        return self._journal

    def _read_stories(self, run: RunRecord | None, config: Config) -> bool:
        """Read the list where its file changed; True where it may be another one now."""
        path = None
        if run is None or run.prd_path:  # a plain loop has none
            with suppress(RalphError):
                path = story_file(self.project, run, config)
        key = (run and run.prd_path, path, mark_of(path) if path else None)
        if key == self._stories_key:
            return False
        self._stories_key = key
        self._stories = listed(self.project, run, config)
        return True

    def _read_learnings(self) -> bool:
        """Count what was learned where that changed; True where it did."""
        from ralphloop.learning.store import load_index

        folder = self.project.directory / "learnings"
        root = self.project.root
        places = {
            root / ".claude/skills": "*-learned/SKILL.md",
            root / ".agents/skills": "*-learned/SKILL.md",
            root / ".claude/commands": "*-learned.md",
        }
        key = [mark_of(path) for path in (folder, *places, folder / "index.json")]
        if key == self._learned_key:
            return False
        self._learned_key = key
        self.learned = Lessons()
        patterns = load_index(self.project).patterns
        kinds = Counter(one_line(known.category, 20) for known in patterns)
        with suppress(OSError):
            captured = sum(1 for _ in folder.glob("learning-*.yaml"))
            found = (path for at, name in places.items() for path in at.glob(name))
            # One skill may lie in two places.
            skills = {path.parent.name if path.name == "SKILL.md" else path.stem for path in found}
            waiting = sum(known.waits for known in patterns)
            self.learned = Lessons(captured, tuple(kinds.most_common(4)), len(skills), waiting)
        return True

    def _look(self, journal: JournalReader, now: float, *, written: bool, outside: bool) -> Seen:
        holder = holder_of(self.project, now, self._wanted)
        before = self._night
        wanted = self._wanted or (holder.run if holder else "")  # it may only be about to begin
        run = journal.find_run(wanted) if wanted else journal.latest_night()
        known = before.run.id if before and before.run else ""
        anew = before is None or (run is not None and run.id != known)
        fresh: list[LoopEvent] = []
        if run is not None and anew:
            self._seq = 0
            fresh = journal.last_events(run.id, EVENTS_READ)
        elif run is not None and written:
            fresh = journal.events_since(run.id, self._seq, EVENTS_READ)
        self._seq = fresh[-1].seq if fresh else self._seq
        small = [isinstance(it.what, AgentStep) and it.what.kind != "result" for it in fresh]
        little = (fresh and all(small)) or not written
        if before and run and little and not (anew or outside):
            pending = tuple(journal.pending_requests(run.id))
            self._night = replace(before, run=run, pending=pending)
        else:
            config = config_of(self.project, run)
            self._read_stories(run, config)
            kept = (config, self._stories)
            self._night = look_at(self.project, journal, run, now=now, holder=holder, known=kept)
        self._follow(self._night)
        return Seen(self._night, fresh, anew)

    def _follow(self, night: Night) -> None:
        newest = night.current
        path = self.project.transcripts / newest.run / f"{newest.n}.log" if newest else None
        if path is None:
            self.tail = None
        elif self.tail is None or self.tail.path != path:
            agent = night.config.agent
            self.tail = Tail(path, reader_name(agent.name, agent.format))
            self.tail.advance()


def mark_of(path: Path) -> Mark | None:
    """Changes when the file does; None where there is none."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns, state.st_size
