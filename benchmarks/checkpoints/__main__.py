"""Replay checkpoints: `python -m benchmarks.checkpoints [DIR] [--short | --all] [--out FILE]`.

The usual form plays a sample that is always the same: the first two checkpoints of the problems in
`SAMPLE`, the old program and the emptied tests only where there is an old program.  What stands in
the file of results, judged by the same source of ours, is not played again: a run that was cut off
goes on where it was.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.checkpoints.play import AGENTS, RALPH, CannotPlayError, Replay, Stage
from benchmarks.checkpoints.problems import CannotSetUpError, Problem, interpreter, problems_in
from benchmarks.checkpoints.show import table
from benchmarks.progress import Progress
from ralphloop.atomic import write_atomic

BEGIN = "<!-- checkpoints: begin -->"
END = "<!-- checkpoints: end -->"
RESULTS = Path(__file__).with_name("results.json")
SOURCES = "src/ralphloop"
SOURCE = "https://github.com/SprocketLab/slop-code-bench"
COMMIT = "feeab5a"  # of it, that was measured
PROBLEMS = Path("peers/slop-code-bench/problems")
BEING_MADE = Path("peers/checkpoints.json")

# Those whose reference solution passes its tests where the clone is whole but for large files.
SAMPLE = (
    "circuit_eval code_search dag_execution database_migration dynamic_buffer"
    " dynamic_config_service_api etl_pipeline eve_industry file_backup file_merger file_query_tool"
    " layered_config_synthesizer log_query metric_transform_lang migrate_configs trajectory_api"
).split()
SHORT = ("code_search", "dynamic_buffer")
_SAMPLED = 2  # checkpoints of each


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    if options.page:
        write_down(options.out or RESULTS, options.page)
        return 0
    asked = [it for it in problems_in(options.problems) if _is_asked(it.name, options)]
    if not asked:
        sys.stderr.write(f"error: no problems in {options.problems}\n  next: make peers\n")
        return 2
    book = Book(options.out or BEING_MADE, code_of(Path.cwd()))
    book.begin([one for it in asked for one in _to_play(it, options, book)], options.jobs)
    until = time.monotonic() + 60 * options.minutes
    venvs = options.venvs or options.problems / ".venvs"

    def play(problem: Problem) -> None:
        def python() -> Path:
            return interpreter(problem, venvs, options.python)

        _play(problem, _to_play(problem, options, book), python, book, until)

    # One problem after the other in a thread: some start servers, always on the same port.
    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        for _ in pool.map(play, asked):
            continue  # what a replay raised is raised here
    print(table(book.replays))
    return 0


class Asked(NamedTuple):
    """One story that is to be played."""

    problem: str
    checkpoint: int
    agent: str


def code_of(root: Path) -> str:
    """Which source of ours judges; with a mark where it differs from the last commit."""
    named = _said("git", "-C", str(root), "rev-parse", "--short", f"HEAD:{SOURCES}")
    changed = _said("git", "-C", str(root), "status", "--porcelain", "--", SOURCES)
    return f"{named}+" if changed else named


def _is_asked(problem: str, options: argparse.Namespace) -> bool:
    if options.problem:
        return problem in options.problem
    return options.all or problem in (SHORT if options.short else SAMPLE)


def _to_play(problem: Problem, options: argparse.Namespace, book: Book) -> list[Asked]:
    """What was asked for and is not in the book yet."""
    most = options.checkpoints or (problem.checkpoints if options.all else _SAMPLED)
    agents = options.agent or AGENTS
    every = [
        Asked(problem.name, number, agent)
        for number in range(1, min(problem.checkpoints, most) + 1)
        for agent in agents
        # Before the first checkpoint there is no program, and no test that could be emptied.
        if number > 1 or options.agent or agent not in ("previous", "emptied")
    ]
    return [one for one in every if not book.has(one)]


def _measured() -> dict[Asked, float]:
    """How long each took when it was last measured."""
    known = json.loads(RESULTS.read_text())["replays"] if RESULTS.exists() else []
    return {Asked(it["problem"], it["checkpoint"], it["agent"]): it["seconds"] for it in known}


def _said(*command: str) -> str:
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", check=False
    ).stdout.strip()


class Book:
    """The replays so far, in a file that is written anew after each of them."""

    def __init__(self, path: Path, code: str) -> None:
        self._path = path
        self.code = code
        self._lock = threading.RLock()
        self._progress: Progress[Asked] = Progress([], {}, 1)
        known = json.loads(path.read_text()) if path.exists() else {}
        found = [Replay(**it) for it in known.get("replays", [])]
        self._replays = {Asked(it.problem, it.checkpoint, it.agent): it for it in found}

    @property
    def replays(self) -> list[Replay]:
        with self._lock:
            order = sorted(self._replays, key=lambda it: (it[0], it[1], AGENTS.index(it[2])))
            return [self._replays[key] for key in order]

    def begin(self, todo: Sequence[Asked], jobs: int) -> None:
        """Say how much there is to do."""
        self._progress = Progress(todo, _measured(), jobs)
        print(self._progress.beginning(), flush=True)

    def has(self, asked: Asked) -> bool:
        """Whether it was judged before by the same source, in this call or another."""
        with self._lock:
            known = self._replays.get(asked)
            return known is not None and known.code == self.code

    def add(self, replay: Replay) -> None:
        """Keep one, and say it."""
        key = Asked(replay.problem, replay.checkpoint, replay.agent)
        words = replay.note or f"{replay.grade or 'not passed'}, {replay.failed} failed"
        print(" ".join(map(str, key)) + f": {words} ({self._progress.after(key)})", flush=True)
        with self._lock:  # also while it is written: else an older page may come last
            self._replays[key] = replace(replay, code=self.code)
            page = json.dumps(self.whole(), indent=1) + "\n"
            write_atomic(self._path, page.encode(), parents=True)

    def whole(self) -> dict[str, Any]:
        """Everything, with date and version."""
        version = subprocess.run(
            [str(RALPH), "--version"], capture_output=True, encoding="utf-8", check=True
        )
        return {
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "version": version.stdout.strip(),
            "code": self.code,
            "replays": [asdict(it) for it in self.replays],
        }


def _play(
    problem: Problem,
    asked: Sequence[Asked],
    python: Callable[[], Path],
    book: Book,
    until: float,
) -> None:
    """Play checkpoints of one problem, as far as time allows."""
    for number in sorted({one.checkpoint for one in asked}):
        agents = [one.agent for one in asked if one.checkpoint == number]
        if time.monotonic() > until:
            return
        with tempfile.TemporaryDirectory(
            prefix="checkpoint-", ignore_cleanup_errors=True
        ) as scratch:
            try:
                stage = Stage(problem, number, python(), Path(scratch).resolve())
                reference = stage.reference()
            except (CannotSetUpError, CannotPlayError) as error:
                for agent in agents:
                    told = Replay(
                        problem=problem.name, checkpoint=number, agent=agent, note=str(error)
                    )
                    book.add(told)
                continue
            for agent in agents:
                if time.monotonic() < until:
                    book.add(stage.play(agent, reference))


def write_down(results: Path, page: Path) -> None:
    """Put the tables of raw results into a page."""
    whole = json.loads(results.read_text())
    replays = [Replay(**it) for it in whole["replays"]]
    before, mark, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{mark}\n{table(replays)}\n{END}{after}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoints", description=__doc__)
    parser.add_argument(
        "problems", type=Path, nargs="?", default=PROBLEMS, help="the problems of a clone"
    )
    parser.add_argument("--short", action="store_true", help="two problems: five minutes")
    parser.add_argument("--all", action="store_true", help="every checkpoint: many hours")
    parser.add_argument("--problem", action="append", default=[], help="this one; again for more")
    parser.add_argument("--agent", action="append", default=[], choices=AGENTS)
    parser.add_argument("--checkpoints", type=int, default=0, help="so many of each problem")
    parser.add_argument("--jobs", type=int, default=2, help="problems at the same time")
    parser.add_argument("--minutes", type=float, default=240, help="begin nothing after that")
    parser.add_argument("--venvs", type=Path, help="where each problem's packages are installed")
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="which runs the problems; a newer one is looked for where one needs it",
    )
    parser.add_argument("--out", type=Path, help="raw results as JSON; what is there is not redone")
    parser.add_argument("--page", type=Path, help="run nothing: put the results into a page")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
