"""Clone what the benchmarks compare with: `python -m benchmarks.peers [--newest]`.

Other supervisors and the public task set go into `peers/`, which git ignores, at the commits that
docs/benchmarks.md was measured with.  What is there already stays as it is.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.checkpoints import __main__ as checkpoints
from benchmarks.nights.supervisors import SUPERVISORS

PEERS = Path("peers")
_CLONE_S = 1800.0
_BUILD_S = 1800.0


class Peer(NamedTuple):
    """A repository of somebody else's."""

    source: str
    place: Path
    commit: str  # that was measured
    made: str = ""  # the file that a build leaves; empty: nothing is built
    build: tuple[str, ...] = ()

    @property
    def is_there(self) -> bool:
        return (self.place / self.made).exists()


class CannotMakeError(Exception):
    """What somebody else's command said when it failed."""


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    failed = 0
    for peer in peers_in(options.peers):
        print(f"{peer.place}: ", end="", flush=True)
        if peer.is_there:
            print("is there")
            continue
        try:
            print(_make(peer, newest=options.newest))
        except CannotMakeError as why:
            failed += 1
            print(f"not made: {why}")
    if failed:
        sys.stderr.write(f"error: {failed} could not be made; the others can be run without them\n")
    return 1 if failed else 0


def peers_in(directory: Path) -> list[Peer]:
    """Everything that the benchmarks look for there."""
    found = [
        Peer(kind.source, directory / kind.home, kind.commit, kind.made, kind.build)
        for kind in SUPERVISORS
        if kind.home
    ]
    tasks = directory / checkpoints.PROBLEMS.relative_to(PEERS).parts[0]
    return [*found, Peer(checkpoints.SOURCE, tasks, checkpoints.COMMIT)]


def _make(peer: Peer, *, newest: bool) -> str:
    """What was made of it, in words; raises CannotMakeError."""
    if not peer.place.exists():
        half = peer.place.with_name(f"{peer.place.name}.half")
        shutil.rmtree(half, ignore_errors=True)
        half.parent.mkdir(parents=True, exist_ok=True)
        _do(["git", "clone", "--quiet", peer.source, str(half)], Path.cwd(), _CLONE_S)
        if not newest:
            _do(["git", "checkout", "--quiet", "--detach", peer.commit], half, _CLONE_S)
        half.rename(peer.place)
    if peer.build:
        _do(peer.build, peer.place, _BUILD_S)
    commit = _do(["git", "log", "-1", "--format=%h of %cs"], peer.place, _CLONE_S)
    return f"{commit.strip()}{', built' if peer.build else ''}"


def _do(command: Sequence[str], directory: Path, seconds: float) -> str:
    """What a command printed; raises CannotMakeError."""
    words = " ".join(command)
    try:
        ended = subprocess.run(
            command,
            cwd=directory,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise CannotMakeError(f"{command[0]} is not installed ({words})") from None
    except subprocess.TimeoutExpired:
        raise CannotMakeError(f"it took more than {seconds / 60:.0f} minutes: {words}") from None
    if ended.returncode:
        raise CannotMakeError(f"{words}: {_cause(ended.stderr) or f'exit code {ended.returncode}'}")
    return ended.stdout


def _cause(said: str) -> str:
    """The line that says why: git gives advice behind it."""
    lines = said.strip().splitlines()
    named = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return (named or lines[-1:] or [""])[0]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--peers", type=Path, default=PEERS, help="where they go")
    parser.add_argument(
        "--newest", action="store_true", help="their newest commits, not those that were measured"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
