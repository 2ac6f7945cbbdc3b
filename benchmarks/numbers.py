"""All figures of docs/benchmarks.md again: `python -m benchmarks.numbers [--short]`.

Nights wait for most of their time and replayed tasks compute for most of theirs, so both run side
by side.  Raw results are left in `peers/nights.json` and `peers/checkpoints.json`; with `--publish`
they take the place of those in the repository, and the page is written anew.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from benchmarks import checkpoints, nights

PAGE = Path("docs/benchmarks.md")
PEERS = Path("peers")


class Part(NamedTuple):
    """One of the two benchmarks, as a command of its own."""

    module: str
    made: Path  # its raw results
    published: Path  # those that the page shows

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    def command(self, *options: str) -> list[str]:
        return [sys.executable, "-m", self.module, *options]


PARTS = tuple(
    Part(
        module=module.__name__,
        made=PEERS / f"{module.__name__.rpartition('.')[2]}.json",
        published=Path(module.__path__[0]) / "results.json",
    )
    for module in (nights, checkpoints)
)


def main(arguments: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.short and options.publish:
        parser.error("the page shows the whole of both; --publish goes without --short")
    PEERS.mkdir(exist_ok=True)
    began = time.monotonic()
    short = ["--short"] if options.short else []
    running = [_Running(part, short) for part in PARTS]
    failed = [it.part.name for it in running if it.end() != 0]
    minutes = (time.monotonic() - began) / 60
    print(f"It took {minutes:.0f} minutes; raw results are in {PEERS}/.")
    if failed:
        sys.stderr.write(f"error: {' and '.join(failed)} did not end well; see the lines above\n")
        return 1
    if options.publish:
        _publish()
    return 0


class _Running:
    """A benchmark under way, each line of which is shown with its name."""

    def __init__(self, part: Part, options: Sequence[str]) -> None:
        self.part = part
        self._process = subprocess.Popen(
            part.command("--out", str(part.made), *options),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        assert self._process.stdout is not None
        self._shown = threading.Thread(target=_show, args=(part.name, self._process.stdout))
        self._shown.start()

    def end(self) -> int:
        """Wait for it, and say how it ended."""
        ended = self._process.wait()
        self._shown.join()
        return ended


def _show(name: str, lines: IO[str]) -> None:
    with lines:
        for line in lines:
            print(f"{name} | {line}", end="", flush=True)


def _publish() -> None:
    """Put what was made into the repository, and into its page."""
    for part in PARTS:
        part.published.write_bytes(part.made.read_bytes())
        subprocess.run(part.command("--page", str(PAGE)), check=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.numbers", description=__doc__)
    parser.add_argument("--short", action="store_true", help="the short form of both: five minutes")
    parser.add_argument(
        "--publish", action="store_true", help="put the results into the repository and its page"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
