"""What an iteration costs the journal at the beginning of a night and after 10,000 of them.

Makes every write, question and view of an iteration as the loop does, synced to disk, on a young
run and on a long one in turns, so that a busy machine slows both; prints the medians and their
ratio, goal at most 1.2 (measured once more if missed).  Also: size of the file, cost of opening it.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

import msgspec

from ralphloop.core.events import AgentStep, LoopEvent
from ralphloop.core.iteration import AddProgress, Iteration
from ralphloop.core.run_state import RunState
from ralphloop.core.totals import Expense
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import JournalReader
from ralphloop.journal.records import FinishedIteration, IterationRecord, RunRecord
from ralphloop.journal.views import add_progress, publish, session_view

ITERATIONS = 10_000
FIRST = 10
ROUNDS = 150
GOAL = 1.2
STATE = RunState(lengths=tuple(range(400)))
RECORD = msgspec.convert(
    {"analysis": {"warnings": ["x" * 80] * 5}, "evidence": {"work_files": ["src/a.py"] * 20}},
    Iteration,
)


def iterate(journal: Journal, root: Path, n: int) -> None:
    """Everything the loop writes around one iteration."""
    now = 1_794_744_000.0 + n
    journal.start_iteration(IterationRecord(run="r", n=n, started_at=now, story=f"US-{n % 50}"))
    journal.set_agent_pid("r", n, pid=1, pid_started=now)
    journal.append_events([LoopEvent(run="r", at=now, what=AgentStep(), iteration=n)] * 5)
    journal.finish_iteration(
        FinishedIteration(
            run="r",
            n=n,
            finished_at=now + 0.5,
            outcome="completed",
            decision="continue",
            end_tree=f"{n:040}",
            spent=Expense(cost_usd=0.01, output_tokens=100),
            record=RECORD,
            effects=(AddProgress(),),
            state=STATE,
            stories={f"US-{n % 50}": {"attempts": n}},
            meta={"circuit": {"state": "CLOSED"}},
        )
    )
    entry = AddProgress(at=now, task="US", outcome="no_progress")
    add_progress(root / "progress.txt", "r", n, entry, root=root)
    journal.mark_applied("r", n, now=now + 0.6)
    ask(journal, root)


def ask(journal: Journal, root: Path) -> None:
    """What the loop asks between two iterations, and the view it publishes."""
    journal.pending_requests("r")
    run = journal.find_run("r")
    if run is not None:
        view = session_view(run, RunState(), None)
        publish(root / ".ralph-session.json", view, root=root)


def lengthen(root: Path) -> None:
    """Fill a run up to 10,000 iterations with copies of its first ones, past the journal's code."""
    connection = sqlite3.connect(root / ".ralph" / "journal.db")
    names = [row[1] for row in connection.execute("PRAGMA table_info(iterations)")]
    columns = [{"n": "n + :by", "end_tree": "end_tree || :by"}.get(name, name) for name in names]
    copy = f"INSERT INTO iterations SELECT {', '.join(columns)} FROM iterations WHERE n <= :first"
    with connection:
        for by in range(FIRST, ITERATIONS - FIRST, FIRST):
            connection.execute(copy, {"by": by, "first": FIRST})
    connection.close()
    progress = root / "progress.txt"
    progress.write_bytes(progress.read_bytes() * (ITERATIONS // FIRST))


def begin(root: Path) -> Journal:
    """A run with its first iterations done."""
    journal = Journal.open(root / ".ralph" / "journal.db")
    journal.begin_run(RunRecord(id="r", started_at=0.0))
    for n in range(1, FIRST + 1):
        iterate(journal, root, n)
    return journal


def timed(journal: Journal, root: Path) -> tuple[float, float]:
    """CPU and wall seconds of the next iteration."""
    n = journal.next_number("r")
    cpu, wall = time.process_time(), time.perf_counter()
    iterate(journal, root, n)
    return time.process_time() - cpu, time.perf_counter() - wall


def medians(spent: list[tuple[float, float]]) -> tuple[float, float]:
    """Median CPU and wall milliseconds."""
    cpu, wall = zip(*spent, strict=True)
    return statistics.median(cpu) * 1000, statistics.median(wall) * 1000


def measure() -> float:
    """Measure both runs in turns, print what they took, and return the worse of the ratios."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        young, old = Path(one), Path(two)
        with begin(young) as early, begin(old) as late:
            lengthen(old)
            turns = [(timed(early, young), timed(late, old)) for _ in range(ROUNDS)]
        report_opening(old / ".ralph" / "journal.db")
    first, last = (medians(list(spent)) for spent in zip(*turns, strict=True))
    print(f"iteration after {FIRST:6}: {first[0]:6.2f} ms CPU {first[1]:6.2f} ms wall")
    print(f"iteration after {ITERATIONS:6}: {last[0]:6.2f} ms CPU {last[1]:6.2f} ms wall")
    return max(last[0] / first[0], last[1] / first[1])


def report_opening(path: Path) -> None:
    """What a screen pays for its first look at the long run."""
    start = time.perf_counter()
    with JournalReader.open(path) as reader:
        reader.latest_iterations("r", 20)
    took = (time.perf_counter() - start) * 1000
    size = path.stat().st_size / 1e6
    print(f"journal {size:.1f} MB; a reader opens it and asks for 20 iterations in {took:.1f} ms")


def main() -> None:
    ratio = measure()
    if ratio > GOAL:
        ratio = min(ratio, measure())
    print(f"ratio {ratio:.2f} (goal {GOAL})")
    raise SystemExit(ratio > GOAL)


if __name__ == "__main__":
    main()
