"""What the supervisor costs: an iteration against a bare shell loop, late against early, memory.

* An agent in a git repository, journal on, no checks, no commit: the wall clock from one start to
  the next, against `agent; git status; git rev-parse` in a shell, both starting the same program.
  Once it does nothing, once it changes a file each time.  In turns, and the middle one of the
  ratios counts, so that a busy machine slows both.  Goal: at most 2 times.  Ours syncs twice, the
  shell never, so what two syncs take on this disk at this moment is printed beside it.  Where the
  rest of the time goes: docs/decisions/008.
* The same in a run that has 10,000 iterations behind it, against one that has 10, in turns, so that
  a busy machine slows both.  Goal: at most 1.2 times.
* Resident memory while an agent prints 1 GB.  Goal: at most 80 MB, and flat.

With `--short` there are fewer rounds, and no gigabyte.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import msgspec

from ralphloop.core.run_state import RunState
from ralphloop.journal.queries import JournalReader

# By its path, because a shell has a `true` of its own that costs no process.
AGENT = [shutil.which("true") or "/bin/true"]
CHANGING = ["/bin/sh", "-c", "echo $$ >> file_0.py"]
ITERATIONS = 30
SHORT = "--short" in sys.argv
PAIRS = 3 if SHORT else 9
ROUNDS = 1 if SHORT else 3
EARLY, LATE = 10, 10_000
GIGABYTE = 1 << 30
TREES_REMEMBERED = 2_000

CONFIG = """\
[agent]
name = "command"
command = {command}
[limits]
max_iterations = 0
calls_per_hour = 0
max_attempts = 0
[circuit]
no_progress_threshold = 1000000
[git]
commit = "never"
[session]
keep_awake = false
"""


def project(place: Path, command: list[str]) -> Path:
    """A small repository whose agent is this command."""
    place.mkdir(parents=True)
    stories = [{"id": "US-1", "title": "Do nothing", "passes": False, "priority": 1}]
    (place / "prd.json").write_text(json.dumps({"userStories": stories}, indent=2))
    (place / "ralph.toml").write_text(CONFIG.format(command=json.dumps(command)))
    (place / ".gitignore").write_text(".ralph/\n.ralph-session.json\n.ralph-circuit-state.json\n")
    for n in range(50):
        (place / f"file_{n}.py").write_text(f"x = {n}\n")
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run(["git", *args], cwd=place, check=True, env=environment())
    return place


def environment() -> dict[str, str]:
    """Ours, with an identity for git."""
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    identity = {f"GIT_{name}": "bench@example.com" for name in names}
    return {**os.environ, "RALPH_TRUST": "1", **identity}


def iterate(place: Path, upto: int) -> None:
    """Let the run go on until it has so many iterations."""
    argv = [sys.executable, "-m", "ralphloop", "run", "--continue", "-q"]
    done = subprocess.run(
        [*argv, "--max-iterations", str(upto)],
        cwd=place,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode != 3:
        raise SystemExit(f"ralph ended {done.returncode}: {done.stderr.decode()[-500:]}")


def steps(place: Path, newest: int) -> list[float]:
    """Seconds from each start to the next, for the newest iterations."""
    with JournalReader.open(place / ".ralph" / "journal.db") as journal:
        run = journal.latest_run()
        assert run is not None
        starts = [i.started_at for i in journal.latest_iterations(run.id, newest)]
    return [late - early for late, early in pairwise(starts)]


def shell_loop(place: Path, times: int, agent: list[str]) -> float:
    """Seconds an iteration of the bare loop takes."""
    program = f"{shlex.join(agent)} < {place / 'ralph.toml'}"
    body = f"{program}; git status --porcelain > /dev/null; git rev-parse HEAD > /dev/null"
    script = f"i=0; while [ $i -lt {times} ]; do {body}; i=$((i+1)); done"
    began = time.perf_counter()
    subprocess.run(["sh", "-c", script], cwd=place, env=environment(), check=True)
    return (time.perf_counter() - began) / times


def two_syncs(place: Path) -> float:
    """Seconds that two syncs of a file take, as the journal does for each iteration."""
    took = []
    with (place / ".ralph" / "sync").open("wb", buffering=0) as file:
        for _ in range(2 * ITERATIONS):
            file.seek(0)
            file.write(b"x" * 20_000)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    return 2 * statistics.median(took)


def overhead(root: Path, agent: list[str]) -> float:
    """One iteration against the bare loop."""
    print("a file changes each time" if agent is CHANGING else "nothing changes")
    place = project(root / f"young-{len(agent)}", agent)
    iterate(place, 5)
    ours, bare, syncs, upto = [], [], [], 5
    for _ in range(PAIRS):
        syncs.append(two_syncs(place))
        bare.append(shell_loop(place, ITERATIONS, agent))
        upto += ITERATIONS
        iterate(place, upto)
        ours.append(statistics.median(steps(place, ITERATIONS)))
    ratios = sorted(mine / theirs for mine, theirs in zip(ours, bare, strict=True))
    print(f"an iteration               {min(ours) * 1e3:8.1f} ms    (the fastest round)")
    print(f"the bare shell loop        {min(bare) * 1e3:8.1f} ms    (the fastest round)")
    print(f"two syncs on this disk     {statistics.median(syncs) * 1e3:8.1f} ms")
    ratio, least, most = statistics.median(ratios), ratios[0], ratios[-1]
    print(f"ratio     {ratio:8.2f}  ({least:.2f} to {most:.2f})      (goal: at most 2)")
    return ratio


def age(place: Path) -> None:
    """Give a run 10,000 iterations by copying its first ten, and a memory as full as it gets."""
    with closing(sqlite3.connect(place / ".ralph" / "journal.db")) as db, db:
        names = [row[1] for row in db.execute("PRAGMA table_info(iterations)")]
        columns = [{"n": "n + :by", "end_tree": "end_tree || :by"}.get(n, n) for n in names]
        copy = (
            f"INSERT INTO iterations SELECT {', '.join(columns)} FROM iterations WHERE n <= :first"
        )
        for by in range(EARLY, LATE, EARLY):
            db.execute(copy, {"by": by, "first": EARLY})
        db.execute("UPDATE runs SET iterations = :n, starts = :n", {"n": LATE})
        (state,) = db.execute("SELECT state FROM states ORDER BY after DESC").fetchone()
        run = msgspec.json.decode(state, type=RunState)
        trees = tuple(f"{n:040x}" for n in range(TREES_REMEMBERED))
        memory = msgspec.structs.replace(run.memory, trees=(*trees, *run.memory.trees))
        full = msgspec.structs.replace(run, memory=memory, iterations=LATE, starts=LATE)
        db.execute("UPDATE states SET after = ?, state = ?", (LATE, msgspec.json.encode(full)))
        db.execute("DELETE FROM seal")  # one without a signature is accepted with RALPH_TRUST
    progress = place / "progress.txt"
    progress.write_bytes(progress.read_bytes() * (LATE // EARLY))


def late_against_early(root: Path) -> float:
    """Iteration 10,000 against iteration 10."""
    early = project(root / "early", AGENT)
    iterate(early, EARLY)
    late = root / "late"
    shutil.copytree(early, late, symlinks=True)
    age(late)
    times: dict[Path, list[float]] = {early: [], late: []}
    upto = {early: EARLY, late: LATE}
    for _ in range(ROUNDS):
        for place in (early, late):
            upto[place] += 20
            iterate(place, upto[place])
            times[place] += steps(place, 20)
    first, last = (statistics.median(times[place]) for place in (early, late))
    print(f"iteration {EARLY:>6,}           {first * 1e3:8.1f} ms")
    print(f"iteration {LATE:>6,}           {last * 1e3:8.1f} ms")
    print(f"ratio                      {last / first:8.2f}      (goal: at most 1.2)")
    return last / first


def memory(root: Path) -> float:
    """Resident megabytes of the supervisor while its agent prints a gigabyte."""
    flood = f"for _ in range({GIGABYTE >> 20}): print(('x' * 79 + chr(10)) * 13107)"
    peaks: dict[str, float] = {}
    for name, script in (("a word", "print('word')"), ("1 GB", flood)):
        place = project(root / f"memory-{len(peaks)}", [sys.executable, "-c", script])
        argv = [sys.executable, "-m", "ralphloop", "run", "-q", "--max-iterations", "1"]
        began = time.perf_counter()
        process = subprocess.Popen(
            argv, cwd=place, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        peaks[name] = watch(process)
        took = time.perf_counter() - began
        print(f"an agent that prints {name:6} {peaks[name]:8.1f} MB     ({took:.1f} s)")
    more = peaks["1 GB"] - peaks["a word"]
    print(f"on top of a word           {more:8.1f} MB     (goal: 80 MB in all)")
    return peaks["1 GB"]


def watch(process: subprocess.Popen[bytes]) -> float:
    """The most a process ever had resident, until it ends."""
    peak = 0.0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        lines = [line for line in status.splitlines() if line.startswith("VmHWM")]
        peak = max([peak, *(int(line.split()[1]) / 1024 for line in lines)])
        time.sleep(0.02)
    return peak


def main() -> None:
    """Measure everything and print it."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        overhead(root, AGENT)
        overhead(root, CHANGING)
        late_against_early(root)
        if not SHORT:
            memory(root)


if __name__ == "__main__":
    main()
