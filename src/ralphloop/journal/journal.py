"""The journal's writer: write ahead, finish in one transaction, apply, and say so.

A crash leaves exactly one of: nothing, an iteration without an end (`unfinished_iterations`), or
one whose effects may be half done (`owed_effects`).  Totals and the folded state move in the same
transaction as the iteration, so no restart can lose or repeat them.

Heartbeats, events, process ids and the mark that effects are done do not wait for the disk.  A
power cut may take the last of them: what was shown is not what was decided, a process does not
outlive the power, and effects may be done again.
"""

import math
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

import msgspec

from ralphloop import atomic
from ralphloop.core.events import IterationFinished, LoopEvent
from ralphloop.core.interventions import AnyIntervention
from ralphloop.core.model import RunLimit
from ralphloop.core.policy import Policy
from ralphloop.core.run_state import (
    LanesState,
    OperatorOverrides,
    RunBaseline,
    RunState,
    Session,
    StoryState,
)
from ralphloop.core.totals import Expense
from ralphloop.errors import JournalError
from ralphloop.journal.authenticity import Belief, insist
from ralphloop.journal.database import Database, open_for_writing
from ralphloop.journal.queries import ASKINGS_KEY, CIRCUIT_KEY, IS_ERRAND, PARTS, Queries
from ralphloop.journal.records import (
    FinishedIteration,
    IterationRecord,
    RunRecord,
    RunStatus,
    json_text,
)
from ralphloop.journal.story_shape import stored_run_state, stored_story
from ralphloop.project import ERRANDS
from ralphloop.text.durations import stamp

_LARGEST_EVENT_BYTES = 64 * 1024
_LARGEST_INTEGER = 2**53
_TOLD = ("run", "n", "finished_at", "outcome", "decision", "status", "end_tree")
_SUMS = tuple(
    name for name in Expense.__struct_fields__ if name not in ("counted", "cost_estimated")
)

# Time that passed since the last sign of life belongs to the run only while a process carried it.
_ALIVE = (
    "UPDATE runs SET active_s = active_s + (status = 'running') * MAX(0, :now - last_activity),"
    " last_activity = CASE status WHEN 'running' THEN :now ELSE last_activity END"
)


def new_run_id(now: float) -> str:
    """An id that sorts by time, fits into a git ref and is not met twice."""
    return f"{stamp(now)}-{os.urandom(3).hex()}"


class Journal(Queries):
    """The one writing connection of a run; short-lived ones add requests beside it."""

    @classmethod
    def open(cls, path: Path, *, check: bool = True) -> Self:
        """Open or create; `check=False` skips the search for damage, for quick commands."""
        journal = open_for_writing(cls, path, check=check)
        atomic.clean_leftovers(path.parent, now=time.time())
        return journal

    def insist_on_belief(self, *, accepts_foreign: bool) -> None:
        """End here with a journal that is not what we wrote, unless a person accepts it as it is.

        What was changed since we wrote it is accepted only by who has looked: `ralph trust`.
        """
        if accepts_foreign and self.belief is Belief.FOREIGN:
            self.adopt()
        insist(self.belief, self.path)

    def begin_run(self, new: RunRecord) -> None:
        """Begin a run; older unfinished ones are superseded, their story states taken over.

        An errand is no reason to give up a night, nor the other way round.
        """
        alike = f"{IS_ERRAND} = {new.prd_path.startswith(ERRANDS):d}"
        older = f"status IN ('running', 'stopped') AND {alike}"
        with self.write("begin_run") as db:
            _void_requests(db, new.started_at, older)
            db.run(f"UPDATE runs SET status = 'superseded' WHERE {older}")  # noqa: S608
            columns = msgspec.structs.asdict(new) | {"config": json_text(new.config)}
            columns |= {"last_activity": new.started_at}
            del columns["totals"]
            _insert(db, "runs", columns)
            if new.continues is not None:
                sql = "INSERT INTO stories SELECT ?, story, state FROM stories WHERE run = ?"
                db.run(sql, (new.id, new.continues))

    def reopen_run(
        self, run: str, *, now: float, pid: int, pid_started: float = 0.0, config: object = None
    ) -> None:
        """Go on with an unfinished run under a new process, with the settings of today."""
        with self.write("reopen_run") as db:
            changed = db.run(
                "UPDATE runs SET status = 'running', ended_at = NULL, decision = '', reason = '',"
                " used_up = NULL,"
                " last_activity = ?, pid = ?, pid_started = ?, config = COALESCE(?, config)"
                " WHERE id = ? AND status IN ('running', 'stopped')",
                (now, pid, pid_started, json_text(config) if config else None, run),
            )
            _expect_one(changed, f"run {run} is not there or can no longer be continued")

    def end_run(
        self,
        run: str,
        *,
        now: float,
        status: RunStatus,
        decision: str = "",
        reason: str = "",
        used_up: RunLimit | None = None,
    ) -> None:
        with self.write("end_run") as db:
            ended = {"status": status, "decision": decision, "reason": reason, "used_up": used_up}
            end = "status = :status, ended_at = :now, decision = :decision, reason = :reason"
            end += ", used_up = :used_up"
            changed = db.run(f"{_ALIVE}, {end} WHERE id = :run", {"now": now, "run": run} | ended)
            _expect_one(changed, f"there is no run {run}")
            _void_requests(db, now, "id = ?", run)

    def heartbeat(self, run: str, *, now: float) -> None:
        with self.write("heartbeat", durable=False) as db:
            db.run(f"{_ALIVE} WHERE id = :run", {"now": now, "run": run})

    def start_iteration(self, new: IterationRecord, events: Iterable[LoopEvent] = ()) -> None:
        """Write ahead: call this before the agent is started."""
        with self.write("start_iteration") as db:
            later = {"record": "{}", "effects": "[]", "counted": False}
            _insert(db, "iterations", msgspec.structs.asdict(new) | later)
            sql = f"{_ALIVE}, starts = starts + 1 WHERE id = :run"
            changed = db.run(sql, {"now": new.started_at, "run": new.run})
            _expect_one(changed, f"there is no run {new.run}")
            _append_events(db, events)

    def set_agent_pid(self, run: str, n: int, *, pid: int, pid_started: float) -> None:
        """Note which process the iteration became, so that a successor can stop it."""
        with self.write("set_agent_pid", durable=False) as db:
            sql = "UPDATE iterations SET pid = ?, pid_started = ? WHERE run = ? AND n = ?"
            _expect_one(db.run(sql, (pid, pid_started, run, n)), f"there is no iteration {run}/{n}")

    def finish_iteration(self, done: FinishedIteration) -> None:
        with self.write("finish_iteration") as db:
            told = {name: getattr(done, name) for name in _TOLD}
            kept = {"record": json_text(done.record), "effects": json_text(done.effects)}
            # Nothing owed is nothing left to do.
            applied = {"applied_at": None if done.effects else done.finished_at}
            # Numbers somebody reported: never negative or endless, never more than a column holds.
            cost = done.spent.cost_usd
            spent: dict[str, object] = {
                name: min(max(getattr(done.spent, name), 0), _LARGEST_INTEGER) for name in _SUMS
            }
            spent["cost_usd"] = max(0.0, cost) if math.isfinite(cost) else 0.0
            spent["counted"] = int(done.spent.counted)
            spent["cost_estimated"] = int(done.spent.cost_estimated)
            columns = spent | told | kept | applied
            # Its own name is not among them: indexes that hold it would be written again.
            named = ", ".join(f"{name} = :{name}" for name in columns if name not in ("run", "n"))
            where = "run = :run AND n = :n AND finished_at IS NULL"
            changed = db.run(f"UPDATE iterations SET {named} WHERE {where}", columns)  # noqa: S608
            _expect_one(changed, f"iteration {done.run}/{done.n} was never started or is finished")
            db.run(_ADD_TOTALS, columns | {"now": done.finished_at})
            _keep(db, done.run, done.n, done.state, done.stories)
            _set_meta(db, done.meta)
            _append_events(db, done.events)

    def mark_applied(self, run: str, n: int, *, now: float) -> None:
        """Note that the iteration's effects are all done; saying it twice changes nothing."""
        with self.write("mark_applied", durable=False) as db:
            once = "applied_at = COALESCE(applied_at, ?)"
            sql = f"UPDATE iterations SET {once} WHERE run = ? AND n = ?"  # noqa: S608
            _expect_one(db.run(sql, (now, run, n)), f"there is no iteration {run}/{n}")

    def append_events(self, events: Iterable[LoopEvent]) -> None:
        self.put("append_events", events=events, durable=False)

    def prune_events(self, *, keep_runs: int) -> int:
        """Drop the events of all but the newest runs; their iterations stay."""
        with self.write("prune_events") as db:
            newest = "SELECT id FROM runs ORDER BY seq DESC LIMIT ?"
            return db.run(f"DELETE FROM events WHERE run NOT IN ({newest})", (keep_runs,))  # noqa: S608

    def begin_wait(self, run: str, *, kind: str, reason: str, now: float, until: float) -> None:
        """Note that the run waits and until when; a wait it was in is replaced."""
        with self.write("begin_wait") as db:
            _end_wait(db, run, now)
            sql = "INSERT INTO waits (run, kind, reason, started_at, until) VALUES (?, ?, ?, ?, ?)"
            db.run(sql, (run, kind, reason, now, until))

    def end_wait(self, run: str, *, now: float) -> None:
        with self.write("end_wait") as db:
            _end_wait(db, run, now)

    def put_stories(self, run: str, states: Mapping[str, object]) -> None:
        with self.write("put_story") as db:
            _keep(db, run, 0, None, states)

    def intervene(
        self, session: Session, change: AnyIntervention, policy: Policy, *, now: float
    ) -> None:
        run = session.run
        after = session.number
        known = session.stories
        state = change.applied(session.state, policy)
        if state == session.state:
            return
        moved = {name: story for name, story in state.stories.items() if known.get(name) != story}
        with self.write("intervene") as db:
            columns = {"run": run, "after": after, "at": now, "change": json_text(change)}
            _insert(db, "interventions", columns)
            _keep(db, run, after, state, moved)
        session.state = state

    def save_part(
        self, run: str, part: RunBaseline | OperatorOverrides | RunState | LanesState
    ) -> None:
        stored = stored_run_state(part) if isinstance(part, RunState) else part
        self.set_meta(PARTS[type(part)].format(run), stored)

    def set_meta(self, key: str, value: object) -> None:
        self.put("set_meta", {key: value})

    def put(
        self,
        name: str,
        meta: Mapping[str, object] | None = None,
        events: Iterable[LoopEvent] = (),
        *,
        durable: bool = True,
    ) -> None:
        """What outlives runs and what happened, in one transaction of this name."""
        with self.write(name, durable=durable) as db:
            _set_meta(db, meta or {})
            _append_events(db, events)

    def count_asking(self, *, now: float, since: float) -> None:
        """Remember that an agent is asked for its status block, as long as it matters."""
        recent = [at for at in self.askings() if at >= since]
        self.set_meta(ASKINGS_KEY, [*recent, now])

    def add_request(self, run: str, *, kind: str, payload: object = None, now: float) -> int | None:
        """Ask something of a running loop; None where that run is not running."""
        with self.write("add_request") as db:
            sql = (
                "INSERT INTO requests (run, at, kind, payload) SELECT id, ?, ?, ?"
                " FROM runs WHERE id = ? AND status = 'running'"
            )
            changed = db.run(sql, (now, kind, json_text(payload or {}), run))
            row = db.row("SELECT last_insert_rowid()")
            return int(row[0]) if changed and row else None

    def answer_request(
        self, request: int, answer: str, *, now: float, refused: bool = False
    ) -> bool:
        """Answer a pending request; False where it is answered or void already."""
        with self.write("answer_request") as db:
            sql = (
                "UPDATE requests SET status = ?, answer = ?, answered_at = ?"
                " WHERE id = ? AND status = 'pending'"
            )
            status = "refused" if refused else "answered"
            return db.run(sql, (status, answer, now, request)) == 1


_ADD_TOTALS = (
    f"{_ALIVE}, {', '.join(f'{name} = {name} + :{name}' for name in _SUMS)},"
    " iterations = iterations + :counted, cost_estimated = MAX(cost_estimated, :cost_estimated)"
    " WHERE id = :run"
)


def _insert(db: Database, table: str, columns: Mapping[str, object]) -> None:
    names = ", ".join(columns)
    slots = ", ".join(f":{name}" for name in columns)
    db.run(f"INSERT INTO {table} ({names}) VALUES ({slots})", dict(columns))  # noqa: S608


def _append_events(db: Database, events: Iterable[LoopEvent]) -> None:
    sql = "INSERT INTO events (run, iteration, at, type, data) VALUES (?, ?, ?, ?, ?)"
    for event in events:
        what: object = event.what
        if isinstance(what, IterationFinished):  # the iteration has a row of its own
            what = {"attempts": what.attempts, "warnings": what.warnings}
        data = json_text(what)
        if len(data) > _LARGEST_EVENT_BYTES:
            data = json_text({"left_out": len(data)})
        db.run(sql, (event.run, event.iteration, event.at, event.what.type, data))


def _end_wait(db: Database, run: str, now: float) -> None:
    db.run(
        "UPDATE runs SET waited_s = waited_s + COALESCE((SELECT SUM(MAX(0, :now - started_at))"
        " FROM waits WHERE run = :run AND ended_at IS NULL), 0) WHERE id = :run",
        {"now": now, "run": run},
    )
    db.run("UPDATE waits SET ended_at = ? WHERE run = ? AND ended_at IS NULL", (now, run))


def _keep(
    db: Database, run: str, after: int, state: RunState | None, stories: Mapping[str, object]
) -> None:
    """The folded state after that iteration; circuit and stories have places of their own."""
    if state is not None:
        sql = (
            "INSERT INTO states (run, after, state) VALUES (?, ?, ?)"
            " ON CONFLICT (run) DO UPDATE SET after = ?2, state = ?3"  # a replaced row would move
        )
        rest = msgspec.json.encode(msgspec.structs.replace(state, stories={}))
        db.run(sql, (run, after, rest))
        _set_meta(db, {CIRCUIT_KEY: state.breaker})
    sql = (
        "INSERT INTO stories (run, story, state) VALUES (?, ?, ?)"
        " ON CONFLICT (run, story) DO UPDATE SET state = ?3"
    )
    for story, one in stories.items():
        stored = stored_story(one) if isinstance(one, StoryState) else one
        db.run(sql, (run, story, json_text(stored)))


def _set_meta(db: Database, values: Mapping[str, object]) -> None:
    sql = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = ?2"
    for key, value in values.items():
        db.run(sql, (key, json_text(value)))


def _void_requests(db: Database, now: float, which_runs: str, *parameters: object) -> None:
    sql = (
        "UPDATE requests SET status = 'void', answered_at = ? WHERE status = 'pending'"  # noqa: S608
        f" AND run IN (SELECT id FROM runs WHERE {which_runs})"
    )
    db.run(sql, (now, *parameters))


def _expect_one(changed: int, otherwise: str) -> None:
    if changed != 1:
        raise JournalError(otherwise, "Look at `ralph status`; this should not happen.")
