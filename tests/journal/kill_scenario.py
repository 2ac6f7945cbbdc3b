"""A small supervisor that can be killed anywhere and started again: `python -m … DIRECTORY`.

It does four pieces of work.  Each is an iteration that owes a progress entry and a change of a
file; recovery is what the loop does: finish what was open as interrupted, apply what is owed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ralphloop.atomic import clean_leftovers, write_atomic
from ralphloop.core.breaker import BreakerState
from ralphloop.core.events import AgentStep, LoopEvent
from ralphloop.core.interventions import CircuitReset
from ralphloop.core.iteration import AddProgress
from ralphloop.core.model import Circuit
from ralphloop.core.policy import Policy
from ralphloop.core.run_state import RunState, Session
from ralphloop.core.totals import Expense
from ralphloop.journal import database
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import RunLock
from ralphloop.journal.queries import SWAP_KEY
from ralphloop.journal.records import (
    FinishedIteration,
    IterationRecord,
    RunRecord,
    RunStatus,
)
from ralphloop.journal.views import add_progress, publish, session_view

WORK = 4
NOW = 1_794_744_000.0
COST = 0.25


def main(root: Path) -> None:
    """Do the work, or what is left of it."""
    if os.environ.get("WITH_EXTRA_MIGRATION"):
        database.MIGRATIONS["m999_extra"] = "ALTER TABLE runs ADD COLUMN extra TEXT"
    directory = root / ".ralph"
    with RunLock(directory, run="r", now=NOW), Journal.open(directory / "journal.db") as j:
        clean_leftovers(root, now=NOW)
        if finished_work(j) < WORK or j.unfinished_runs():
            supervise(j, root)
        publish_session(j, root)


def supervise(journal: Journal, root: Path) -> None:
    """One run from wherever it stands to its end."""
    run = next(iter(journal.unfinished_runs()), None)
    if run is None:
        journal.begin_run(RunRecord(id="r", started_at=NOW, pid=os.getpid()))
    else:
        journal.reopen_run(run.id, now=NOW, pid=os.getpid())
    for left in journal.unfinished_iterations("r"):
        journal.finish_iteration(ended(left.n, "interrupted", cost=0.0))
    for owed in journal.owed_effects("r"):
        apply(journal, root, owed)
    steer_and_wait(journal)
    while finished_work(journal) < WORK:
        iterate(journal, root)
    journal.prune_events(keep_runs=1)
    journal.end_run("r", now=NOW, status=RunStatus.COMPLETE, decision="project_complete")


def steer_and_wait(journal: Journal) -> None:
    """Everything a loop writes beside its iterations."""
    journal.begin_wait("r", kind="usage_limit", reason="5h", now=NOW, until=NOW + 5)
    journal.heartbeat("r", now=NOW)
    journal.end_wait("r", now=NOW)
    asked = journal.add_request("r", kind="note", now=NOW)
    if asked is not None:
        journal.answer_request(asked, "noted", now=NOW)
    journal.set_meta("circuit", {"state": "CLOSED"})
    journal.put("begin_experiment", {SWAP_KEY: {"what": "the old tests"}})
    journal.put("end_experiment", {SWAP_KEY: None})
    journal.put_stories("r", {"US-1": {"attempts": 1}})
    after, reset = journal.next_number("r") - 1, CircuitReset(at=NOW)
    opened = BreakerState(circuit=Circuit.OPEN)
    session = Session(run="r", state=RunState(starts=after, breaker=opened), number=after)
    journal.intervene(session, reset, Policy(), now=NOW)


def iterate(journal: Journal, root: Path) -> None:
    """One iteration: write ahead, work, finish, apply."""
    n = journal.next_number("r")
    journal.start_iteration(IterationRecord(run="r", n=n, started_at=NOW, story="US-1"))
    journal.set_agent_pid("r", n, pid=1, pid_started=NOW)
    journal.append_events([LoopEvent(run="r", at=NOW, what=AgentStep(), iteration=n)])
    journal.put("agent_ended", {"agent_end:r": {"n": n}}, durable=False)
    journal.finish_iteration(ended(n, "completed", cost=COST))
    record = journal.iteration("r", n)
    assert record is not None
    apply(journal, root, record)


def ended(n: int, outcome: str, cost: float) -> FinishedIteration:
    """The end of an iteration with what it owes."""
    return FinishedIteration(
        run="r",
        n=n,
        finished_at=NOW + n,
        outcome=outcome,
        decision="continue",
        spent=Expense(cost_usd=cost, commits=int(outcome == "completed")),
        effects=(AddProgress(outcome=outcome),),
        state=RunState(starts=n),
    )


def apply(journal: Journal, root: Path, record: IterationRecord) -> None:
    """Do what the iteration owes; all of it may have been done before."""
    outcome = "passed" if record.outcome == "completed" else "interrupted"
    entry = AddProgress(at=record.finished_at or 0, task="US-1", outcome=outcome)
    problem = add_progress(root / "progress.txt", record.run, record.n, entry, root=root)
    assert not problem, problem
    write_atomic(root / "mark.txt", f"{record.n}\n".encode())
    journal.mark_applied(record.run, record.n, now=NOW)


def finished_work(journal: Journal) -> int:
    """How many pieces of work are done."""
    return sum(record.outcome == "completed" for record in journal.iterations("r"))


def publish_session(journal: Journal, root: Path) -> None:
    """The view of the run."""
    run = journal.find_run("r")
    assert run is not None
    view = session_view(run, RunState(), None)
    assert publish(root / ".ralph-session.json", view, root=root) == ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
