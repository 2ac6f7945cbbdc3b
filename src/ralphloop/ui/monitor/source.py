"""Reading beside a run: the journal, polled by one pragma, and the few files around it.

`poll` returns new `Facts` or nothing.  While an agent works, most writes are its events: then
only they and the run's own row are read.  Everything else is read again when any other event, a
write without an event or a changed file says so.  Each look is one short transaction.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ralphloop.core.breaker import BreakerState
from ralphloop.core.model import CheckResult, Usage
from ralphloop.core.story import Story
from ralphloop.errors import RalphError
from ralphloop.journal.circuit import load_circuit
from ralphloop.journal.lock import live_holder
from ralphloop.journal.reader import JournalReader
from ralphloop.journal.records import Event, IterationRecord, Request, RunRecord, SavedState, Wait
from ralphloop.project import Project
from ralphloop.readers import reader_name
from ralphloop.text.plain import one_line
from ralphloop.ui.monitor import happenings, model
from ralphloop.ui.monitor.beside import LearnedWatch, StoryWatch, Tail, mark_of
from ralphloop.ui.monitor.values import Facts, LogLine

LOG_KEPT = 2_000
_EVENTS_KEPT = 400  # of the running iteration
_ITERATIONS_READ = 8
_LOOK_AROUND_S = 1.0
_LOOK_FOR_LEARNINGS_S = 5.0
_TRY_AGAIN_S = 2.0
_HOUR = 3600.0


class _Lengths(msgspec.Struct):
    lengths: tuple[int, ...] = ()


# Pages are read by threads of their own.  msgspec lays a type out at its first use, and two threads
# that do so at once crash it: so it is done here, for all that they read.
msgspec.json.Decoder(
    tuple[RunRecord, IterationRecord, Event, Request, Wait, SavedState, CheckResult, BreakerState]
)


class Source:
    """One project, watched."""

    def __init__(
        self, project: Project, *, run: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.project = project
        self._wanted = run
        self._clock = clock
        self._journal: JournalReader | None = None
        self._opened: int | None = None
        self._facts = Facts(project=project.root.name)
        self._told = False
        self._quiet_until = 0.0
        self._looked = self._looked_for_learnings = -1e18
        self._stories = StoryWatch()
        self._learned = LearnedWatch(project)
        self._tail: Tail | None = None
        self._forget_events()

    def poll(self) -> Facts | None:
        """What is known now; None where nothing has changed."""
        now = self._clock()
        if now < self._quiet_until:
            return None
        try:
            facts = self._look(now)
        except RalphError as error:
            self.close()
            self._quiet_until = now + _TRY_AGAIN_S
            facts = Facts(
                project=self.project.root.name,
                trouble=one_line(error.message, 500),
                way_out=one_line(error.next_step, 500),
            )
        if facts is None or (self._told and facts == self._facts):
            return None
        self._facts, self._told = facts, True
        return facts

    def story(self, key: str) -> Story:
        """A story as its file tells it, or only its name where it is not there."""
        found = self._stories.list.get(key) if self._stories.list else None
        return found or Story(id=key, title="", index=0)

    def close(self) -> None:
        """Let the journal go; the next look opens it again."""
        if self._journal is not None:
            self._journal.close()
        self._journal = None
        self._forget_events()

    def _forget_events(self) -> None:
        self._run = ""
        self._seq = 0
        self._log: deque[LogLine] = deque(maxlen=LOG_KEPT)
        self._shown_log: tuple[LogLine, ...] = ()
        self._steps: deque[Event] = deque(maxlen=_EVENTS_KEPT)
        self._limit_words = ""

    # --- looking -----------------------------------------------------------------------------

    def _look(self, now: float) -> Facts | None:
        around = now - self._looked >= _LOOK_AROUND_S or now < self._looked
        if around:
            self._looked = now
        journal = self._open(around)
        written = journal.changed()
        grown = self._tail.advance() if self._tail else False
        outside = self._look_around(now) if around else False
        if not (written or grown or outside or not self._told):
            return None
        with journal.snapshot():
            return self._gather(journal, now, written=written, outside=outside)

    def _open(self, around: bool) -> JournalReader:
        """The journal; a file that came, went or was replaced is opened anew."""
        look = around or self._opened is None  # a run that begins is seen at once
        if self._journal is not None and look and self._inode() != self._opened:
            self.close()
        if self._journal is None:
            self._opened = self._inode()
            self._journal = JournalReader.open(self.project.journal)
        return self._journal

    def _inode(self) -> int | None:
        mark = mark_of(self.project.journal)
        return mark[0] if mark else None

    def _look_around(self, now: float) -> bool:
        """True where something beside the journal is different."""
        run = self._facts.run
        changed = self._stories.look(self._story_file(run))
        changed |= self._alive(run, now) != (self._facts.live, self._facts.starting)
        if now - self._looked_for_learnings >= _LOOK_FOR_LEARNINGS_S:
            self._looked_for_learnings = now
            changed |= self._learned.look()
        return changed

    def _story_file(self, run: RunRecord | None) -> Path | None:
        """The run's own list; a plain loop has none."""
        name = run.prd_path if run else "prd.json"
        return self.project.root / name if name else None

    def _alive(self, run: RunRecord | None, now: float) -> tuple[bool, bool]:
        """Whether a process carries this run, and whether one is about to begin another."""
        holder = live_holder(self.project.directory, now)
        if holder is None:
            return False, False
        live = run is not None and run.status.is_unfinished and holder.run == run.id
        return live, not live and self._wanted is None

    def _without_journal(self, now: float) -> Facts:
        self._stories.look(self._story_file(None))
        return Facts(
            project=self.project.root.name,
            starting=self._alive(None, now)[1],
            stories=model.story_rows(self._stories.list, {}, None),
            list_problem=self._stories.problem,
        )

    # --- reading -----------------------------------------------------------------------------

    def _gather(self, journal: JournalReader, now: float, *, written: bool, outside: bool) -> Facts:
        run = journal.find_run(self._wanted) if self._wanted else journal.latest_run()
        if run is None:
            return self._without_journal(now)
        fresh = self._new_events(journal, run) if written or run.id != self._run else []
        only_steps = bool(fresh) and all(event.type == "agent_event" for event in fresh)
        known = self._told and self._facts.run is not None and self._facts.run.id == run.id
        if known and not outside and (only_steps or not written):
            return self._quick(self._facts, journal, run)
        if not known:
            self._stories.look(self._story_file(run))
            self._learned.look()
        return self._quick(self._whole(journal, run, now), journal, run)

    def _quick(self, facts: Facts, journal: JournalReader, run: RunRecord) -> Facts:
        """What moves while an agent works."""
        newest = facts.newest
        tail = self._follow(run, newest)
        step = self._steps[-1] if self._steps else None
        signs = [tail.last_output if tail else None, step.at if step else None]
        return msgspec.structs.replace(
            facts,
            run=run,
            log=self._shown_log,
            actions=happenings.actions(self._steps),
            answered=step is not None and step.data.get("kind") == "result",
            last_output=max((sign for sign in signs if sign), default=None)
            or (newest.started_at if newest else None),
            usage=tail.usage if tail else Usage(),
            limit_words=self._limit_words,
            pending=tuple(journal.pending_requests(run.id)),
        )

    def _whole(self, journal: JournalReader, run: RunRecord, now: float) -> Facts:
        latest = journal.latest_iterations(run.id, _ITERATIONS_READ)
        newest = latest[0] if latest else None
        states = journal.story_states(run.id)
        live, starting = self._alive(run, now)
        working = live and newest is not None and newest.finished_at is None
        current = (newest.story or "") if newest is not None and working else None
        desk = _mapping(journal.meta(f"desk:{run.id}"))
        extra = _mapping(desk.get("extra"))
        saved = journal.saved_state(run.id)
        story = states.get((newest.story or "") if newest else "", {})
        return Facts(
            project=self.project.root.name,
            run=run,
            live=live,
            starting=starting,
            paused=one_line(str(desk.get("paused", ""))),
            extra_cost=_number(extra.get("cost_usd")),
            extra_time=_number(extra.get("time_s")),
            wait=journal.open_wait(run.id),
            newest=newest,
            checks=_checks(journal, run.id, latest),
            circuit=load_circuit(journal),
            lengths=_decoded(saved.state).lengths if saved else (),
            stories=model.story_rows(self._stories.list, states, current),
            story_cost=_number(story.get("cost_usd")),
            story_unpriced=int(_number(story.get("unpriced"))),
            list_problem=self._stories.problem,
            calls=journal.starts_since(now - _HOUR),
            learned=self._learned.learned,
        )

    def _new_events(self, journal: JournalReader, run: RunRecord) -> list[Event]:
        """Events since the last look, folded into the log; the newest ones of a long run."""
        if run.id != self._run:
            self._forget_events()
            self._run = run.id
            fresh = _last_events(journal, run.id)
        else:
            fresh = journal.events_since(self._seq, LOG_KEPT, run=run.id)
        for event in fresh:
            self._seq = event.seq
            self._log.extend(happenings.log_lines(event))
            if event.type == "iteration_started":
                self._steps.clear()
            elif event.type == "agent_event":
                self._steps.append(event)
                if event.data.get("kind") == "limit":
                    self._limit_words = one_line(str(event.data.get("summary", "")), 80)
        if fresh:
            self._shown_log = tuple(self._log)
        return fresh

    def _follow(self, run: RunRecord, newest: IterationRecord | None) -> Tail | None:
        """The transcript of the iteration that runs now."""
        if newest is None or newest.finished_at is not None:
            self._tail = None
            return None
        path = self.project.transcripts / run.id / f"{newest.n}.log"
        if self._tail is None or self._tail.path != path:
            agent = _mapping(run.config.get("agent"))
            self._tail = Tail(path, reader_name(agent.get("name"), agent.get("format")))
            self._tail.advance()
        return self._tail


def _last_events(journal: JournalReader, run: str) -> list[Event]:
    """The newest events of a run, which need not be the newest of the journal."""
    low, high = 0, journal.last_event()
    while low < high:
        middle = (low + high) // 2
        if journal.events_since(middle, 1, run=run):
            low = middle + 1
        else:
            high = middle
    return journal.events_since(max(0, low - LOG_KEPT), LOG_KEPT, run=run)


def _checks(
    journal: JournalReader, run: str, latest: list[IterationRecord]
) -> tuple[tuple[CheckResult, int], ...]:
    """The last result of every check, and the iteration it is from."""
    found: dict[str, tuple[CheckResult, int]] = {}
    for record in latest:
        for result in record.checks:
            found.setdefault(result.name, (result, record.n))
    for result in _results(_mapping(journal.meta(f"frozen:{run}")).get("baseline")):
        found.setdefault(result.name, (result, 0))
    return tuple(found.values())


def _results(values: object) -> list[CheckResult]:
    try:
        return msgspec.convert(values or [], list[CheckResult])
    except msgspec.ValidationError:
        return []  # written by another version


def _decoded(state: bytes) -> _Lengths:
    try:
        return msgspec.json.decode(state, type=_Lengths)
    except msgspec.DecodeError:
        return _Lengths()


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
