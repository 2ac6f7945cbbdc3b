"""Everything one can ask the journal, for its writer and for its readers alike.

Lists are asked for by key (`after`, `seq`), never by offset, so that the last page of a long night
costs what the first one does.  `JournalReader` is for those who only look: `changed` costs one
pragma, so a screen may ask it several times a second.
"""

import sqlite3
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import msgspec

from ralphloop.core import readable
from ralphloop.core.breaker import BreakerState
from ralphloop.core.events import IterationFinished, Landing, LoopEvent, RunFinished, event_of
from ralphloop.core.following import Follow
from ralphloop.core.interventions import AnyIntervention, RejectionTakenBack, StoryRejected
from ralphloop.core.iteration import AnyEffect, Iteration, MarkStory
from ralphloop.core.proof import TestReport
from ralphloop.core.proposals import Proposal
from ralphloop.core.queueing import QueueEntry
from ralphloop.core.run_state import (
    LanesState,
    OperatorOverrides,
    RunBaseline,
    RunState,
    Session,
    StoryState,
    first_state,
)
from ralphloop.core.totals import Expense, Totals
from ralphloop.errors import JournalError
from ralphloop.journal.database import Database, open_for_reading
from ralphloop.journal.old_words import (
    finish_with_values,
    iteration_with_values,
    limit_named_in,
)
from ralphloop.journal.records import (
    AgentThrough,
    InterventionRecord,
    IterationRecord,
    KnownResults,
    Request,
    ResumeCandidate,
    RunRecord,
    Wait,
    Wish,
)
from ralphloop.journal.story_shape import run_state_in_parts, story_in_parts
from ralphloop.project import ERRANDS
from ralphloop.text.durations import is_expired

SESSION_HOURS = 24.0
QUOTA_KEY = "quota:{}"  # when each agent of a run may start again
REPORTS_KEY = "reports:{}"  # the named results of a run's newest passed story, or of the baseline
RESULTS_KEY = "results:{}:{}"  # of a run's checks when that iteration had passed, with all names
GIVEN_KEY = "fleet_order:{}"  # a start that was given to another machine, by run/iteration
NOTES_KEY = "notes"  # said between two runs, for the next
ASKINGS_KEY = "askings"
SWAP_KEY = "experiment"  # the files that are exchanged right now
REJECTION_KEY = "rejection"  # the stories that are being taken out right now
SENT_BACK_KEY = "sent_back"  # what was taken out last, as long as it can be brought back
BRINGING_BACK_KEY = "bringing_back"  # the stories that are being brought back right now
CIRCUIT_KEY = "circuit"
PROPOSAL_KEY = "proposal:{}"  # a story that somebody proposes, a row each
QUEUE_KEY = "queue:{}"  # an item of a queue that was taken, a row each
FOLLOW_KEY = "follow:{}"  # the pull request of a run on its way to green, a row each
IS_ERRAND = f"(prd_path LIKE '{ERRANDS}%')"
_R = TypeVar("_R", bound=msgspec.Struct)
_P = TypeVar("_P", RunBaseline, OperatorOverrides, RunState, LanesState)
_Read = Callable[[object, type[Any]], Any]
# What is kept of a run: what was fixed, what a person changed, for a replay the first state, lanes.
# Their keys are those of the first version, which old journals have.
PARTS = {
    RunBaseline: "frozen:{}",
    OperatorOverrides: "desk:{}",
    RunState: "beginning:{}",
    LanesState: "lanes:{}",
}
_TABLES: dict[type[msgspec.Struct], str] = {
    RunRecord: "runs",
    IterationRecord: "iterations",
    InterventionRecord: "interventions",
    Wait: "waits",
    Request: "requests",
}


class RejectionRecord(NamedTuple):
    """A story that a person sent back."""

    after: int  # the last iteration before it
    story: str


class Queries(Database):
    @cached_property
    def _brief(self) -> str:
        """The short columns there are: a reader may meet a journal before its migration."""
        there = self.rows("SELECT name FROM pragma_table_info('iterations')")
        short = set(IterationRecord.__struct_fields__) - {"record", "effects"}
        return ", ".join(short.intersection(row["name"] for row in there))

    def _all(self, kind: type[_R], which: str, *parameters: object, columns: str = "*") -> list[_R]:
        """What rows of this kind say; not strict, because SQLite has no booleans."""
        found = []
        sql = f"SELECT {columns} FROM {_TABLES[kind]} {which}"  # noqa: S608
        for row in map(dict, self.rows(sql, parameters)):
            for name in _DECODERS.keys() & row.keys():
                row[name] = _DECODERS[name](row[name])
            if kind is RunRecord and row.get("used_up") is None:
                row["used_up"] = limit_named_in(row["reason"])
            # A run's totals stand among its columns.
            found.append(msgspec.convert({**row, "totals": row}, kind, strict=False))
        return found

    def _one(self, kind: type[_R], which: str, *parameters: object) -> _R | None:
        return next(iter(self._all(kind, which, *parameters)), None)

    def find_run(self, run: str) -> RunRecord | None:
        return self._one(RunRecord, "WHERE id = ?", run)

    def latest_run(self) -> RunRecord | None:
        """The newest run, whatever became of it; an errand only where nothing else has run."""
        return self._one(RunRecord, f"ORDER BY {IS_ERRAND}, seq DESC LIMIT 1")

    def latest_night(self) -> RunRecord | None:
        """The newest run that was no errand."""
        return self._one(RunRecord, f"WHERE NOT {IS_ERRAND} ORDER BY seq DESC LIMIT 1")

    def latest_errands(self, limit: int) -> list[RunRecord]:
        """The newest runs of errands, newest first."""
        return self._all(RunRecord, f"WHERE {IS_ERRAND} ORDER BY seq DESC LIMIT ?", limit)

    def errand(self, story: str) -> RunRecord | None:
        newest = "WHERE prd_path = ? ORDER BY seq DESC LIMIT 1"
        return self._one(RunRecord, newest, f"{ERRANDS}{story}.json")

    def unfinished_runs(self, *, errand: bool | None = None) -> list[RunRecord]:
        """Runs that were neither completed nor replaced, newest first; all, or one kind of them."""
        kind = "" if errand is None else f"AND {IS_ERRAND} = {errand:d}"
        where = f"WHERE status IN ('running', 'stopped') {kind}"
        return self._all(RunRecord, f"{where} ORDER BY seq DESC")

    def resume_candidate(self, now: float, *, errand: bool | None = None) -> ResumeCandidate | None:
        """What `--continue` finds; a wait that is still to end keeps a run from expiring."""
        run = next(iter(self.unfinished_runs(errand=errand)), None)
        if run is None:
            return None
        wait = self.open_wait(run.id)
        last_sign = max(run.last_activity, wait.until if wait else 0.0)
        expired = is_expired(last_sign, now, SESSION_HOURS)
        return ResumeCandidate(run=run, expired=expired)

    def runs(self, limit: int = 20) -> list[RunRecord]:
        return self._all(RunRecord, "ORDER BY seq DESC LIMIT ?", limit)

    def totals(self, run: str) -> Totals:
        row = self.row("SELECT * FROM runs WHERE id = ?", (run,))
        return msgspec.convert(dict(row), Totals, strict=False) if row else Totals()

    def dearest(self) -> Expense | None:
        """The most that a start of the newest run, or of the one before, took; None: none did."""
        fresh = "MAX(input_tokens + output_tokens + cache_write_tokens)"
        sql = f"SELECT MAX(cost_usd), {fresh} FROM iterations WHERE run = ? AND counted"  # noqa: S608
        for run in self.runs(2):
            row = self.row(sql, (run.id,))
            if row and row[0] is not None:
                return Expense(cost_usd=float(row[0]), input_tokens=int(row[1]))
        return None

    def part(self, kind: type[_P], run: str) -> _P | None:
        """A part of a run; None where it had none, or an older version did not keep it."""
        key = PARTS[kind]
        saved = self.meta(key.format(run))
        if saved is None:
            return None
        written = run_state_in_parts(saved) if key == PARTS[RunState] else saved
        return msgspec.convert(written, kind, strict=False)

    def session(self, run: str) -> Session:
        """The session as the journal left it; the circuit is the one that outlives sessions."""
        try:
            return self.seen_session(run, msgspec.convert)
        except msgspec.DecodeError as error:
            raise JournalError(
                f"the state of run {run} in {self.path} cannot be read: {error}",
                "Start a new session with `ralph run`; story states are kept.",
            ) from None

    def seen_session(self, run: str, read: _Read = readable) -> Session:
        """The session for those who only look: what another version wrote, as far as it goes."""
        saved = self.row("SELECT state FROM states WHERE run = ?", (run,))
        baseline = read(self.meta(PARTS[RunBaseline].format(run)) or {}, RunBaseline)
        stories = self.story_states(run, read)
        state = first_state(baseline, self.circuit(), stories)
        if saved is not None:
            kept = read(msgspec.json.decode(saved["state"]), RunState)
            state = msgspec.structs.replace(kept, breaker=state.breaker, stories=stories)
        if not state.agent_available_at:  # earlier versions kept it beside the state
            known = dict(self.meta(QUOTA_KEY.format(run)) or {})
            state = msgspec.structs.replace(state, agent_available_at=known)
        return Session(
            run=run,
            state=state,
            baseline=baseline,
            overrides=read(
                self.meta(PARTS[OperatorOverrides].format(run)) or {}, OperatorOverrides
            ),
            number=self.next_number(run) - 1,
        )

    def circuit(self) -> BreakerState:
        """The circuit as last written; a fresh project starts CLOSED."""
        try:
            return msgspec.convert(self.meta(CIRCUIT_KEY) or {}, type=BreakerState)
        except msgspec.ValidationError as error:
            raise JournalError(
                f"the circuit's state in {self.path} cannot be read: {error}",
                "ralph circuit reset writes it anew.",
            ) from None

    def reports(self, run: str) -> dict[str, TestReport]:
        try:
            found = self.meta(REPORTS_KEY.format(run)) or {}
            return msgspec.convert(found, dict[str, TestReport])
        except msgspec.ValidationError:
            return {}  # another version's: then nothing is compared

    def known_results(self, run: str) -> list[KnownResults]:
        """What checks showed at the baseline and after passed stories, newest first."""
        sql = "SELECT value FROM meta WHERE key GLOB ?"
        rows = self.rows(sql, (RESULTS_KEY.format(run, "*"),))
        kept = (msgspec.json.decode(row["value"]) for row in rows)
        try:
            found = [msgspec.convert(one, KnownResults) for one in kept if one is not None]
        except msgspec.ValidationError:
            return []  # another version's: then nothing is compared
        return sorted(found, key=lambda one: one.number, reverse=True)

    def proposals(self) -> list[Proposal]:
        """Stories that somebody proposed, in the order in which they came, decided or not."""
        sql = "SELECT value FROM meta WHERE key GLOB ?"
        rows = self.rows(sql, (PROPOSAL_KEY.format("*"),))
        found = [readable(msgspec.json.decode(row["value"]), Proposal) for row in rows]
        return sorted(found, key=lambda one: (len(one.id), one.id))

    def follows(self) -> list[Follow]:
        """Pull requests that are or were followed, the one that was begun last at the end."""
        sql = "SELECT value FROM meta WHERE key GLOB ?"
        rows = self.rows(sql, (FOLLOW_KEY.format("*"),))
        found = [msgspec.convert(msgspec.json.decode(row["value"]), Follow) for row in rows]
        return sorted(found, key=lambda one: one.began_at)

    def queue_entries(self) -> list[QueueEntry]:
        """The items of queues that were taken, whatever became of them."""
        sql = "SELECT value FROM meta WHERE key GLOB ? ORDER BY key"
        rows = self.rows(sql, (QUEUE_KEY.format("*"),))
        return [msgspec.convert(msgspec.json.decode(row["value"]), QueueEntry) for row in rows]

    def iteration(self, run: str, n: int) -> IterationRecord | None:
        return self._one(IterationRecord, "WHERE run = ? AND n = ?", run, n)

    def iterations(
        self, run: str, *, after: int = 0, limit: int = 100, brief: bool = False
    ) -> list[IterationRecord]:
        """Iterations in order; `brief` leaves out the two long columns."""
        columns = self._brief if brief else "*"
        page = "WHERE run = ? AND n > ? ORDER BY n LIMIT ?"
        return self._all(IterationRecord, page, run, after, limit, columns=columns)

    def every_iteration(self, run: str, *, brief: bool = False) -> Iterator[IterationRecord]:
        after = 0
        while page := self.iterations(run, after=after, limit=1_000 if brief else 250, brief=brief):
            yield from page
            after = page[-1].n

    def latest_iterations(self, run: str, limit: int = 20) -> list[IterationRecord]:
        return self._all(IterationRecord, "WHERE run = ? ORDER BY n DESC LIMIT ?", run, limit)

    def story_iterations(self, run: str, story: str, limit: int = 100) -> list[IterationRecord]:
        newest = "WHERE run = ? AND story = ? ORDER BY n DESC LIMIT ?"
        return self._all(IterationRecord, newest, run, story, limit)

    def passing_iterations(self) -> dict[str, IterationRecord]:
        """For each story the newest iteration of any run that marked it, its effects done."""
        which = (
            "WHERE applied_at IS NOT NULL AND finished_at IS NOT NULL"
            " AND instr(effects, '\"mark\"') ORDER BY started_at"
        )
        columns = "run, n, story, started_at, effects"
        found = self._all(IterationRecord, which, columns=columns)
        return {one.story: one for one in found if one.story and one.owes(MarkStory)}

    def next_number(self, run: str) -> int:
        row = self.row("SELECT MAX(n) FROM iterations WHERE run = ?", (run,))
        return (row[0] or 0) + 1 if row else 1

    def unfinished_iterations(self, run: str | None = None) -> list[IterationRecord]:
        """Iterations that were started and never finished: a crash happened there."""
        return self._flagged("iterations_open", "finished_at IS NULL", run)

    def owed_effects(self, run: str | None = None) -> list[IterationRecord]:
        """Iterations that were finished while their effects may not all be done."""
        where = "finished_at IS NOT NULL AND applied_at IS NULL"
        return self._flagged("iterations_owed", where, run)

    def _flagged(self, index: str, where: str, run: str | None) -> list[IterationRecord]:
        # The index holds only these rows; without the hint SQLite may walk all of a long run.
        which = f"INDEXED BY {index} WHERE {where} AND run = COALESCE(?, run) ORDER BY run, n"
        return self._all(IterationRecord, which, run)

    def starts_since(self, moment: float) -> int:
        """Agent starts of all runs from that moment on, for limits by the hour."""
        sql = "SELECT COUNT(*) FROM iterations WHERE started_at >= ?"
        row = self.row(sql, (moment,))
        return (int(row[0]) if row else 0) + sum(at >= moment for at in self.askings())

    def nth_newest_start(self, n: int) -> float | None:
        sql = "SELECT started_at FROM iterations ORDER BY started_at DESC LIMIT ?"
        starts = [float(row[0]) for row in self.rows(sql, (max(1, n),))]
        newest = sorted((*starts, *self.askings()), reverse=True)
        return newest[max(1, n) - 1] if len(newest) >= n else None

    def askings(self) -> list[float]:
        """When agents were asked for a missing status block in the last hour; starts as well."""
        return msgspec.convert(self.meta(ASKINGS_KEY) or [], list[float])

    def interventions(self, run: str) -> list[InterventionRecord]:
        return self._all(InterventionRecord, "WHERE run = ? ORDER BY seq", run)

    def rejections(self, run: str) -> list[RejectionRecord]:
        """Which stories a person sent back, in order; those they brought back are none."""
        found: list[RejectionRecord] = []
        for made in self.interventions(run):
            change = made.change
            if isinstance(change, StoryRejected):
                found.append(RejectionRecord(made.after, change.story))
            elif isinstance(change, RejectionTakenBack):
                undone = max(at for at, one in enumerate(found) if one.story == change.story)
                del found[undone]
        return found

    def story_states(self, run: str, read: _Read = msgspec.convert) -> dict[str, StoryState]:
        rows = self.rows("SELECT story, state FROM stories WHERE run = ?", (run,))
        return {
            row["story"]: read(story_in_parts(msgspec.json.decode(row["state"])), StoryState)
            for row in rows
        }

    def meta(self, key: str) -> Any:
        """A value that outlives runs, such as the circuit's state; None where unset."""
        row = self.row("SELECT value FROM meta WHERE key = ?", (key,))
        return msgspec.json.decode(row["value"]) if row else None

    def open_wait(self, run: str) -> Wait | None:
        """The wait the run is in, or was in when it died."""
        newest = "WHERE run = ? AND ended_at IS NULL ORDER BY id DESC LIMIT 1"
        return self._one(Wait, newest, run)

    def waits(self, run: str, limit: int = 100) -> list[Wait]:
        return self._all(Wait, "WHERE run = ? ORDER BY id DESC LIMIT ?", run, limit)

    def pending_requests(self, run: str) -> list[Request]:
        return self._all(Request, "WHERE run = ? AND status = 'pending' ORDER BY id", run)

    def find_request(self, request: int) -> Request | None:
        return self._one(Request, "WHERE id = ?", request)

    def events_since(self, run: str, seq: int, limit: int = 500) -> list[LoopEvent]:
        sql = "SELECT * FROM events WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?"
        return [self._event(row) for row in self.rows(sql, (run, seq, limit))]

    def last_events(self, run: str, limit: int) -> list[LoopEvent]:
        sql = "SELECT * FROM events WHERE run = ? ORDER BY seq DESC LIMIT ?"
        return [self._event(row) for row in self.rows(sql, (run, limit))][::-1]

    def through(self, run: str, searched: int = 5_000) -> dict[int, AgentThrough]:
        """Of those that go on, whose agent is through, in order: do they land, and since when."""
        newest = "SELECT * FROM events WHERE run = ? ORDER BY seq DESC LIMIT ?"
        is_last = "type = 'agent_event' AND json_extract(data, '$.kind') = 'result'"
        going_on = "SELECT n FROM iterations WHERE run = ? AND finished_at IS NULL"
        where = f"iteration IN ({going_on}) AND (type = 'landing' OR {is_last}) ORDER BY seq"
        sql = f"SELECT iteration, type, at, data FROM ({newest}) WHERE {where}"  # noqa: S608
        rows = self.rows(sql, (run, searched, run))
        found = {
            n: AgentThrough(at, lands=True, on=_judged_on(data))
            for n, kind, at, data in rows
            if kind == "landing"
        }
        for n, _, at, _ in rows:
            if n not in found or not found[n].lands:
                found[n] = AgentThrough(at, lands=False)
        return found

    def _event(self, row: sqlite3.Row) -> LoopEvent:
        what = event_of(row["type"], msgspec.json.decode(row["data"]))
        n = row["iteration"]
        if isinstance(what, RunFinished):
            what = finish_with_values(what)
        if isinstance(what, IterationFinished) and (kept := self.iteration(row["run"], n)):
            what = msgspec.structs.replace(what, iteration=kept.record, spent=kept)
        return LoopEvent(run=row["run"], at=row["at"], what=what, iteration=n, seq=row["seq"])


def _judged_on(data: str) -> tuple[str, ...] | None:
    """The stories that one of a train is judged on top of; None: it waits for its turn."""
    what = event_of("landing", msgspec.json.decode(data))
    return what.on if isinstance(what, Landing) and what.in_train else None


def _kept(record: str) -> Iteration:
    """The record; of one that another version wrote, the parts that can be read."""
    try:
        kept = msgspec.json.decode(record, type=Iteration)
    except msgspec.ValidationError:
        kept = readable(msgspec.json.decode(record), Iteration)
    return iteration_with_values(kept)


def _wish(payload: str) -> Wish:
    """What was asked; whoever wrote the row may have written anything."""
    try:
        return msgspec.json.decode(payload, type=Wish)
    except msgspec.ValidationError as error:
        known = readable(msgspec.json.decode(payload), Wish)
        return msgspec.structs.replace(known, problem=str(error))


_DECODERS: dict[str, Callable[[str], object]] = {
    "config": msgspec.json.decode,
    "payload": _wish,
    "record": _kept,
    "effects": msgspec.json.Decoder(tuple[AnyEffect, ...]).decode,
    "change": msgspec.json.Decoder(AnyIntervention).decode,
}


class JournalReader(Queries):
    _seen: object = None

    @classmethod
    def open(cls, path: Path) -> Self:
        return open_for_reading(cls, path)

    def changed(self) -> bool:
        """True the first time, and whenever something was written since the last call."""
        row = self.row("PRAGMA data_version")
        version = row[0] if row else None
        is_new = version != self._seen
        self._seen = version
        return is_new
