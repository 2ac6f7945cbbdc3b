"""Small values the journal's tests are made of, and the way to run code in a process to be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ralphloop.core.iteration import AnyEffect, Iteration, MarkStory
from ralphloop.core.model import Analysis
from ralphloop.core.run_state import RunState
from ralphloop.core.totals import Expense
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import FinishedIteration, IterationRecord, RunRecord

ROOT = Path(__file__).parent.parent.parent
NOON = 1_794_744_000.0
DAY = 86_400.0


def new_run(run: str = "r1", *, at: float = NOON, continues: str | None = None) -> RunRecord:
    """A run as the loop would begin it."""
    return RunRecord(
        id=run, started_at=at, prd_path="prd.json", pid=os.getpid(), continues=continues
    )


def new_iteration(n: int, run: str = "r1", *, story: str | None = "US-1") -> IterationRecord:
    """An iteration that starts n minutes after noon."""
    return IterationRecord(run=run, n=n, started_at=NOON + n * 60, story=story, tree=f"before-{n}")


def finished(
    n: int, run: str = "r1", *, effects: tuple[AnyEffect, ...] = (), cost: float = 0.5
) -> FinishedIteration:
    """The end of that iteration half a minute later."""
    return FinishedIteration(
        run=run,
        n=n,
        finished_at=NOON + n * 60 + 30,
        outcome="completed",
        decision="continue",
        status="IN_PROGRESS",
        end_tree=f"tree-{n}",
        spent=Expense(
            cost_usd=cost, input_tokens=100, output_tokens=10, files_modified=2, commits=1
        ),
        record=Iteration(analysis=Analysis(progress=True)),
        effects=effects,
        state=RunState(starts=n),
    )


def run_iterations(journal: Journal, count: int, run: str = "r1") -> None:
    """Start, finish and apply so many iterations."""
    first = journal.next_number(run)
    for n in range(first, first + count):
        journal.start_iteration(new_iteration(n, run))
        journal.finish_iteration(finished(n, run, effects=(MarkStory(),)))
        journal.mark_applied(run, n, now=NOON + n * 60 + 40)


def python(
    *arguments: str, env: dict[str, str] | None = None, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run Python with the package and the tests on its path."""
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def start_python(*arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """Start Python likewise and talk to it by its standard input and output."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=environment(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    """This environment with the package and the tests importable."""
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **(extra or {})}


def saved_state(journal: Queries, run: str) -> tuple[int, bytes]:
    """The folded state of a run, behind the last iteration it contains."""
    row = journal.row("SELECT after, state FROM states WHERE run = ?", (run,))
    return (row["after"], row["state"]) if row else (0, b"")
