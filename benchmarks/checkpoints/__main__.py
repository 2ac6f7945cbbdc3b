"""Replay checkpoints: `python -m benchmarks.checkpoints DIR [--agent A] [--out FILE]`."""

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
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.checkpoints.play import AGENTS, RALPH, CannotPlayError, Replay, Stage
from benchmarks.checkpoints.problems import CannotSetUpError, Problem, interpreter, problems_in
from benchmarks.checkpoints.show import table

BEGIN = "<!-- checkpoints: begin -->"
END = "<!-- checkpoints: end -->"
RESULTS = Path(__file__).with_name("results.json")


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    if options.page:
        write_down(options.out or RESULTS, options.page)
        return 0
    found = [] if options.problems is None else problems_in(options.problems)
    asked = [it for it in found if not options.problem or it.name in options.problem]
    if not asked:
        sys.stderr.write(
            f"error: no problems in {options.problems}\n"
            "  next: git clone https://github.com/SprocketLab/slop-code-bench; name its problems/\n"
        )
        return 2
    book = Book(options.out)
    until = time.monotonic() + 60 * options.minutes
    venvs = options.venvs or options.problems / ".venvs"

    def play(problem: Problem) -> None:
        def python() -> Path:
            return interpreter(problem, venvs, options.python)

        _play(problem, options.agent or AGENTS, options.checkpoints, python, book, until)

    # One problem after the other in a thread: some start servers, always on the same port.
    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        for _ in pool.map(play, asked):
            continue  # what a replay raised is raised here
    print(table(book.replays))
    return 0


class Book:
    """The replays so far, in a file that is written anew after each of them."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        known = json.loads(path.read_text()) if path is not None and path.exists() else {}
        found = [Replay(**it) for it in known.get("replays", [])]
        self._replays = {(it.problem, it.checkpoint, it.agent): it for it in found}

    @property
    def replays(self) -> list[Replay]:
        with self._lock:
            order = sorted(self._replays, key=lambda it: (it[0], it[1], AGENTS.index(it[2])))
            return [self._replays[key] for key in order]

    def has(self, problem: str, checkpoint: int, agent: str) -> bool:
        """Whether it was played before, in this call or another."""
        with self._lock:
            return (problem, checkpoint, agent) in self._replays

    def add(self, replay: Replay) -> None:
        """Keep one, and say it."""
        with self._lock:
            self._replays[replay.problem, replay.checkpoint, replay.agent] = replay
        words = replay.note or f"{replay.grade or 'not passed'}, {replay.failed} failed"
        print(f"{replay.problem} {replay.checkpoint} {replay.agent}: {words}", flush=True)
        if self._path is not None:
            self._path.write_text(json.dumps(self.whole(), indent=1) + "\n")

    def whole(self) -> dict[str, Any]:
        """Everything, with date and version."""
        version = subprocess.run(
            [str(RALPH), "--version"], capture_output=True, encoding="utf-8", check=True
        )
        return {
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "version": version.stdout.strip(),
            "replays": [asdict(it) for it in self.replays],
        }


def _play(
    problem: Problem,
    agents: Sequence[str],
    most: int,
    python: Callable[[], Path],
    book: Book,
    until: float,
) -> None:
    """Play the checkpoints of one problem by these agents, as far as time allows."""
    for number in range(1, min(problem.checkpoints, most) + 1):
        missing = [it for it in agents if not book.has(problem.name, number, it)]
        if not missing or time.monotonic() > until:
            continue
        with tempfile.TemporaryDirectory(
            prefix="checkpoint-", ignore_cleanup_errors=True
        ) as scratch:
            try:
                stage = Stage(problem, number, python(), Path(scratch).resolve())
                reference = stage.reference()
            except (CannotSetUpError, CannotPlayError) as error:
                for agent in missing:
                    told = Replay(
                        problem=problem.name, checkpoint=number, agent=agent, note=str(error)
                    )
                    book.add(told)
                continue
            for agent in missing:
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
    parser.add_argument("problems", type=Path, nargs="?", help="the problems of a clone")
    parser.add_argument("--problem", action="append", default=[], help="this one; again for more")
    parser.add_argument("--agent", action="append", default=[], choices=AGENTS)
    parser.add_argument("--checkpoints", type=int, default=99, help="so many of each problem")
    parser.add_argument("--jobs", type=int, default=2, help="problems at the same time")
    parser.add_argument("--minutes", type=float, default=240, help="begin nothing after that")
    parser.add_argument("--venvs", type=Path, help="where each problem's packages are installed")
    parser.add_argument(
        "--python", default=sys.executable, help="which runs the problems; some need 3.12"
    )
    parser.add_argument("--out", type=Path, help="raw results as JSON; what is there is not redone")
    parser.add_argument("--page", type=Path, help="run nothing: put the results into a page")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
