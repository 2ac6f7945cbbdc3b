"""The journal's writer: write ahead, finish in one transaction, apply, and say so.

The life of an iteration: `start_iteration` before the agent is spawned, `finish_iteration` with
everything that is known and the effects it owes, `mark_applied` once those are done.  A crash
leaves exactly one of: nothing, an iteration without an end (`unfinished_iterations`), or one whose
effects may be half done (`owed_effects`).  Totals and the folded state move in the same
transaction as the iteration, so no restart can lose or repeat them.

Heartbeats, events, process ids and the mark that effects are done are written without waiting
for the disk.  A power cut may take the last of them: what was shown is not what was decided, a
process does not outlive the power, and effects may be done again.
"""

import math
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

import msgspec

from ralphloop import atomic
from ralphloop.core.events import LoopEvent
from ralphloop.core.interventions import AnyIntervention
from ralphloop.core.run_state import RunState
from ralphloop.core.totals import Spent
from ralphloop.errors import JournalError
from ralphloop.journal.database import Database, open_for_writing
from ralphloop.journal.queries import ASKINGS_KEY, CIRCUIT_KEY, IS_ERRAND, SWAP_KEY, Queries
from ralphloop.journal.records import (
    FinishedIteration,
    IterationRecord,
    RequestStatus,
    RunRecord,
    RunStatus,
    json_text,
)
from ralphloop.journal.seal import Belief, insist
from ralphloop.project import ERRANDS
from ralphloop.text.durations import stamp

_LARGEST_EVENT_BYTES = 64 * 1024
_LARGEST_INTEGER = 2**53
_TOLD = ("run", "n", "finished_at", "outcome", "decision", "status", "end_tree")
_SUMS = tuple(name for name in Spent.__struct_fields__ if name not in ("counted", "cost_estimated"))

# Time that passed since the last sign of life belongs to the run only while a process carried it.
_ALIVE = (
    "UPDATE runs SET active_s = active_s + MAX(0, :now - last_activity), last_activity = :now"
    " WHERE id = :run AND status = 'running'"
)


def new_run_id(now: float) -> str:
    """An id that sorts by time, fits into a git ref and is not met twice."""
    return f"{stamp(now)}-{os.urandom(3).hex()}"


class Journal(Queries):
    """The one writing connection of a run; short-lived ones add requests beside it."""

    @classmethod
    def open(cls, path: Path, *, check: bool = True) -> Self:
        """Open or create; `check=False` skips the search for damage, for quick commands."""
        database = open_for_writing(path, check=check)
        atomic.clean_leftovers(path.parent, now=time.time())
        return cls(database)

    def insist_on_belief(self, *, accepts_foreign: bool) -> None:
        """End here with a journal that is not what we wrote, unless a person accepts it as it is.

        What was changed since we wrote it is accepted only by who has looked: `ralph trust`.
        """
        if accepts_foreign and self._db.belief is Belief.FOREIGN:
            self._db.adopt()
        insist(self._db.belief, self.path)

    def adopt(self) -> None:
        self._db.adopt()

    def put_back_if_deleted(self) -> bool:
        """Write the journal anew where somebody deleted its file; True if that was needed."""
        if self._db.is_in_place:
            return False
        self._db.put_back()
        return True

    # --- runs --------------------------------------------------------------------------------

    def begin_run(self, new: RunRecord) -> None:
        """Begin a run; older unfinished ones are superseded, their story states taken over.

        An errand is no reason to give up a night, nor the other way round.
        """
        alike = f"{IS_ERRAND} = {new.prd_path.startswith(ERRANDS):d}"
        older = f"status IN ('running', 'stopped') AND {alike}"
        with self._db.write("begin_run") as db:
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
        with self._db.write("reopen_run") as db:
            changed = db.run(
                "UPDATE runs SET status = 'running', ended_at = NULL, decision = '', reason = '',"
                " last_activity = ?, pid = ?, pid_started = ?, config = COALESCE(?, config)"
                " WHERE id = ? AND status IN ('running', 'stopped')",
                (now, pid, pid_started, json_text(config) if config else None, run),
            )
            _expect_one(changed, f"run {run} is not there or can no longer be continued")

    def end_run(
        self, run: str, *, now: float, status: RunStatus, decision: str = "", reason: str = ""
    ) -> None:
        """End a run and void what was still asked of it."""
        with self._db.write("end_run") as db:
            db.run(_ALIVE, {"now": now, "run": run})
            changed = db.run(
                "UPDATE runs SET status = ?, ended_at = ?, decision = ?, reason = ? WHERE id = ?",
                (status, now, decision, reason, run),
            )
            _expect_one(changed, f"there is no run {run}")
            _void_requests(db, now, "id = ?", run)

    def heartbeat(self, run: str, *, now: float) -> None:
        with self._db.write("heartbeat", durable=False) as db:
            db.run(_ALIVE, {"now": now, "run": run})

    # --- iterations --------------------------------------------------------------------------

    def start_iteration(self, new: IterationRecord, events: Iterable[LoopEvent] = ()) -> None:
        """Write ahead: call this before the agent is started."""
        with self._db.write("start_iteration") as db:
            db.run(_ALIVE, {"now": new.started_at, "run": new.run})
            later = {"record": "{}", "effects": "[]", "counted": False}
            _insert(db, "iterations", msgspec.structs.asdict(new) | later)
            changed = db.run("UPDATE runs SET starts = starts + 1 WHERE id = ?", (new.run,))
            _expect_one(changed, f"there is no run {new.run}")
            _append_events(db, events)

    def set_agent_pid(self, run: str, n: int, *, pid: int, pid_started: float) -> None:
        """Note which process the iteration became, so that a successor can stop it."""
        with self._db.write("set_agent_pid", durable=False) as db:
            sql = "UPDATE iterations SET pid = ?, pid_started = ? WHERE run = ? AND n = ?"
            _expect_one(db.run(sql, (pid, pid_started, run, n)), f"there is no iteration {run}/{n}")

    def finish_iteration(self, done: FinishedIteration) -> None:
        """Write everything of an iteration, and all it changes, at once."""
        with self._db.write("finish_iteration") as db:
            db.run(_ALIVE, {"now": done.finished_at, "run": done.run})
            told = {name: getattr(done, name) for name in _TOLD}
            kept = {"record": json_text(done.record), "effects": json_text(done.effects)}
            # Nothing owed is nothing left to do.
            applied = {"applied_at": None if done.effects else done.finished_at}
            columns = _spent_columns(done.spent) | told | kept | applied
            named = ", ".join(f"{name} = :{name}" for name in columns)
            where = "run = :run AND n = :n AND finished_at IS NULL"
            changed = db.run(f"UPDATE iterations SET {named} WHERE {where}", columns)  # noqa: S608
            _expect_one(changed, f"iteration {done.run}/{done.n} was never started or is finished")
            db.run(_ADD_TOTALS, {"run": done.run} | _spent_columns(done.spent))
            _keep(db, done.run, done.n, done.state, done.stories)
            _set_meta(db, done.meta)
            _append_events(db, done.events)

    def mark_applied(self, run: str, n: int, *, now: float) -> None:
        """Note that the iteration's effects are all done; saying it twice changes nothing."""
        with self._db.write("mark_applied", durable=False) as db:
            once = "applied_at = COALESCE(applied_at, ?)"
            sql = f"UPDATE iterations SET {once} WHERE run = ? AND n = ?"  # noqa: S608
            _expect_one(db.run(sql, (now, run, n)), f"there is no iteration {run}/{n}")

    # --- events, waits, stories, meta --------------------------------------------------------

    def append_events(self, events: Iterable[LoopEvent]) -> None:
        self._put("append_events", events=events, durable=False)

    def prune_events(self, *, keep_runs: int) -> int:
        """Drop the events of all but the newest runs; their iterations stay."""
        with self._db.write("prune_events") as db:
            newest = "SELECT id FROM runs ORDER BY seq DESC LIMIT ?"
            return db.run(f"DELETE FROM events WHERE run NOT IN ({newest})", (keep_runs,))  # noqa: S608

    def begin_wait(self, run: str, *, kind: str, reason: str, now: float, until: float) -> None:
        """Note that the run waits and until when; a wait it was in is replaced."""
        with self._db.write("begin_wait") as db:
            _end_wait(db, run, now)
            sql = "INSERT INTO waits (run, kind, reason, started_at, until) VALUES (?, ?, ?, ?, ?)"
            db.run(sql, (run, kind, reason, now, until))

    def end_wait(self, run: str, *, now: float) -> None:
        with self._db.write("end_wait") as db:
            _end_wait(db, run, now)

    def put_stories(self, run: str, states: Mapping[str, object]) -> None:
        """Remember what is known of these stories, outside of an iteration's end."""
        with self._db.write("put_story") as db:
            _keep(db, run, 0, None, states)

    def intervene(
        self,
        run: str,
        change: AnyIntervention,
        *,
        after: int,
        now: float,
        state: RunState,
        stories: Mapping[str, object],
    ) -> None:
        """Write down what changed the run after that iteration, with all that it changed."""
        with self._db.write("intervene") as db:
            columns = {"run": run, "after": after, "at": now, "change": json_text(change)}
            _insert(db, "interventions", columns)
            _keep(db, run, after, state, stories)

    def set_meta(self, key: str, value: object) -> None:
        self._put("set_meta", {key: value})

    def begin_experiment(self, swap: object, events: Iterable[LoopEvent]) -> None:
        """Write ahead which files are about to be exchanged: whoever comes next puts them back."""
        self._put("begin_experiment", {SWAP_KEY: swap}, events)

    def end_experiment(self, events: Iterable[LoopEvent]) -> None:
        self._put("end_experiment", {SWAP_KEY: None}, events)

    def keep_agent_end(self, key: str, value: object) -> None:
        """Remember how an agent ended; a power cut may take that, and its work is done again."""
        self._put("agent_ended", {key: value}, durable=False)

    def _put(
        self,
        name: str,
        meta: Mapping[str, object] | None = None,
        events: Iterable[LoopEvent] = (),
        *,
        durable: bool = True,
    ) -> None:
        with self._db.write(name, durable=durable) as db:
            _set_meta(db, meta or {})
            _append_events(db, events)

    def count_asking(self, *, now: float, since: float) -> None:
        """Remember that an agent is asked for its status block, as long as it matters."""
        recent = [at for at in self.askings() if at >= since]
        self.set_meta(ASKINGS_KEY, [*recent, now])

    # --- requests ----------------------------------------------------------------------------

    def add_request(self, run: str, *, kind: str, payload: object = None, now: float) -> int | None:
        """Ask something of a running loop; None where that run is not running."""
        with self._db.write("add_request") as db:
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
        with self._db.write("answer_request") as db:
            sql = (
                "UPDATE requests SET status = ?, answer = ?, answered_at = ?"
                " WHERE id = ? AND status = 'pending'"
            )
            status = RequestStatus.REFUSED if refused else RequestStatus.ANSWERED
            return db.run(sql, (str(status), answer, now, request)) == 1


_ADD_TOTALS = (
    f"UPDATE runs SET {', '.join(f'{name} = {name} + :{name}' for name in _SUMS)},"  # noqa: S608
    " iterations = iterations + :counted, cost_estimated = MAX(cost_estimated, :cost_estimated)"
    " WHERE id = :run"
)


def _insert(db: Database, table: str, columns: Mapping[str, object]) -> None:
    names = ", ".join(columns)
    slots = ", ".join(f":{name}" for name in columns)
    db.run(f"INSERT INTO {table} ({names}) VALUES ({slots})", dict(columns))  # noqa: S608


def _spent_columns(spent: Spent) -> dict[str, object]:
    """Numbers somebody reported: never negative or endless, never more than the file can hold."""
    told = {name: getattr(spent, name) for name in _SUMS if name != "cost_usd"}
    cost = spent.cost_usd
    return {
        **{name: min(max(count, 0), _LARGEST_INTEGER) for name, count in told.items()},
        "cost_usd": max(0.0, cost) if math.isfinite(cost) else 0.0,
        "counted": int(spent.counted),
        "cost_estimated": int(spent.cost_estimated),
    }


def _append_events(db: Database, events: Iterable[LoopEvent]) -> None:
    sql = "INSERT INTO events (run, iteration, at, type, data) VALUES (?, ?, ?, ?, ?)"
    for event in events:
        data = json_text(event.what.stored())
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
        sql = "INSERT OR REPLACE INTO states (run, after, state) VALUES (?, ?, ?)"
        rest = msgspec.json.encode(msgspec.structs.replace(state, stories={}))
        db.run(sql, (run, after, rest))
        _set_meta(db, {CIRCUIT_KEY: state.breaker})
    sql = "INSERT OR REPLACE INTO stories (run, story, state) VALUES (?, ?, ?)"
    for story, one in stories.items():
        db.run(sql, (run, story, json_text(one)))


def _set_meta(db: Database, values: Mapping[str, object]) -> None:
    for key, value in values.items():
        db.run("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, json_text(value)))


def _void_requests(db: Database, now: float, which_runs: str, *parameters: object) -> None:
    sql = (
        "UPDATE requests SET status = 'void', answered_at = ? WHERE status = 'pending'"  # noqa: S608
        f" AND run IN (SELECT id FROM runs WHERE {which_runs})"
    )
    db.run(sql, (now, *parameters))


def _expect_one(changed: int, otherwise: str) -> None:
    if changed != 1:
        raise JournalError(otherwise, "Look at `ralph status`; this should not happen.")
