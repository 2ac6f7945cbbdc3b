"""Running the tests of a Python project against mutants, all within one start of the runner.

What happens inside that start is in `data/mutants`: it is told which pieces there are and writes
down, line by line, which test runs what and what became of each mutant.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from ralphloop.core.model import Value
from ralphloop.core.mutation import AlwaysSays, Came, ChangedPiece, Edit, Reach, TriedMutant
from ralphloop.proof.python import BEND, EACH
from ralphloop.repo.checks import Check, run_confined
from ralphloop.repo.runners import FoundRunner

MUTANTS = Path(str(files("ralphloop.repo") / "data" / "mutants"))
_JOB = "RALPH_MUTANTS_JOB"
_LARGEST_ANSWER = 64 << 20
_KEPT = 64 * 1024
_LONGEST_WORDS = 200
_GRACE_S = 20.0  # to start the runner and to load the tests, on top of what they take


class MutantJob(Value, kw_only=True):
    pieces: tuple[ChangedPiece, ...]
    first: tuple[str, ...] = ()  # files whose tests run before others
    only: tuple[str, ...] | None = None  # files whose tests run at all; None: all
    seconds: float = 60.0  # for everything
    details_s: float = 10.0  # for what tells lines apart and decides nothing
    compares: bool = (
        False  # the change may say how something is compared: every result is looked at
    )
    asked: frozenset[str] = frozenset()  # names of functions that the story's own tests say


class MutantRun(Value, kw_only=True):
    """What one start found out."""

    reach: Reach = Reach()
    tried: tuple[TriedMutant, ...] = ()
    soft: tuple[str, ...] = ()  # what agrees with whatever it is compared with, in words
    always: tuple[AlwaysSays, ...] = ()
    trouble: str = ""  # why nothing was found out
    is_whole: bool = False  # it came to its end
    took_s: float = 0.0


def can_be_mutated(found: FoundRunner) -> bool:
    """Whether the mutants of this runner can share one start."""
    is_unittest = found.runner.name == "unittest" and "unittest" in found.argv
    return found.callable and hasattr(os, "fork") and (found.runner.name == "pytest" or is_unittest)


def run_mutants(
    check: Check,
    found: FoundRunner,
    cwd: Path,
    job: MutantJob,
    stop: Callable[[], bool] = lambda: False,
) -> MutantRun | None:
    """Try all mutants of a job; None where it was stopped."""
    began = time.monotonic()
    with TemporaryDirectory(prefix="ralph-", ignore_cleanup_errors=True) as scratch:
        out = Path(scratch, "out")
        told = {
            "root": str(cwd),
            "out": str(out),
            "scratch": scratch,
            "seconds": job.seconds,
            "details_s": job.details_s,
            "first": job.first,
            "only": job.only,
            "compares": job.compares,
            "pieces": [_told(piece, job.asked) for piece in job.pieces],
        }
        Path(scratch, "job.json").write_text(json.dumps(told), encoding="utf-8")
        ended = run_confined(
            msgspec.structs.replace(
                check, argv=found.apart(job.only, cwd), timeout_s=job.seconds + _GRACE_S
            ),
            cwd,
            _environment(found, cwd, scratch),
            keep=_KEPT,
            stop=stop,
            write=[scratch],
        )
        if ended.stopped:
            return None
        said = ended.stdout.decode("utf-8", "replace")
        return msgspec.structs.replace(_read(out, said), took_s=time.monotonic() - began)


def _environment(found: FoundRunner, root: Path, scratch: str) -> dict[str, str]:
    env = dict(os.environ)
    places = (f"{root}/node_modules/.bin", env.get("PATH", os.defpath))
    env |= {"PATH": os.pathsep.join(places), **found.env}
    paths = filter(None, [str(MUTANTS), env.get("PYTHONPATH", "")])
    env["PYTHONPATH"] = os.pathsep.join(paths)
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env[_JOB] = f"{scratch}/job.json"
    if found.runner.name == "pytest":
        own = "-p ralph_mutants_pytest"
        env["PYTEST_ADDOPTS"] = " ".join(filter(None, [env.get("PYTEST_ADDOPTS", ""), own]))
    return env


def _told(piece: ChangedPiece, asked: frozenset[str]) -> Mapping[str, object]:
    mutants = [
        {
            "operator": str(mutant.operator),
            "edits": [_span(edit) for edit in mutant.edits],
            "when_loaded": mutant.when_loaded,
            "is_detail": mutant.is_detail,
            "is_valued": any(edit.text.startswith((BEND, EACH)) for edit in mutant.edits),
        }
        for mutant in piece.mutants
    ]
    return {
        "path": piece.path,
        "is_function": piece.is_function,
        "returns": piece.returns,
        "is_added": piece.is_added and piece.is_function,
        "is_asked": piece.is_added and piece.name.removesuffix("()").rpartition(".")[2] in asked,
        "mutants": mutants,
        "probes": [
            {"line": probe.line, "edits": [_span(edit) for edit in probe.edits]}
            for probe in piece.probes
        ],
    }


def _span(edit: Edit) -> tuple[object, ...]:
    return (edit.line, edit.column, edit.last_line, edit.last_column, edit.text)


def _read(out: Path, said: str) -> MutantRun:
    """What was written down, as far as it can be read: the tests could have written there, too."""
    names = tuple[str, ...]()
    tests: dict[str, tuple[int, ...]] = {}
    lines: dict[str, tuple[int, ...]] = {}
    tried = list[TriedMutant]()
    trouble = ""
    is_whole = False
    for line in _written(out):
        with suppress(IndexError, TypeError, ValueError, msgspec.ValidationError):
            what, *rest = line
            if what == "tests":
                names = msgspec.convert(rest[0], tuple[str, ...])
            elif what == "reach":
                piece, reaching = msgspec.convert(rest, tuple[int, tuple[int, ...]])
                for test in reaching:
                    tests[names[test]] = (*tests.get(names[test], ()), piece)
            elif what == "line":
                lines[str(rest[0])] = msgspec.convert(rest[1], tuple[int, ...])
            elif what == "came":
                tried.append(_came(rest))
            elif what == "trouble":
                trouble = str(rest[0])
            elif what == "end":
                is_whole = True
    if not names and not trouble:
        words = [line.strip() for line in said.splitlines() if line.strip()]
        last = f" ({words[-1][:_LONGEST_WORDS]})" if words else ""
        trouble = f"the tests could not be run for it{last}"
    reach = Reach(tests=tests, lines=lines, names=names)
    return MutantRun(
        reach=reach,
        tried=tuple(tried),
        soft=tuple(dict.fromkeys(_soft_in(out))),
        always=tuple(_always_in(out)),
        trouble=trouble,
        is_whole=is_whole,
    )


def _soft_in(out: Path) -> Iterator[str]:
    """What agrees with whatever it is compared with, in words."""
    for what, *rest in _written(out):
        if what == "soft":
            with suppress(IndexError, msgspec.ValidationError):
                yield from msgspec.convert(rest[0], tuple[str, ...])


def _always_in(out: Path) -> Iterator[AlwaysSays]:
    """Functions that may say the same to whatever they are asked."""
    for what, *rest in _written(out):
        if what == "always":
            with suppress(msgspec.ValidationError):
                piece, answer = msgspec.convert(rest, tuple[int, bool])
                yield AlwaysSays(piece=piece, answer=answer)


def _came(told: Sequence[object]) -> TriedMutant:
    row = msgspec.convert(told, tuple[int, int, Came, str, str, str])
    piece, mutant, came, test, said, why = row
    return TriedMutant(piece=piece, mutant=mutant, came=came, test=test, said=said, why=why)


def _written(out: Path) -> Iterator[list[object]]:
    with suppress(OSError):
        if out.stat().st_size > _LARGEST_ANSWER:
            return
        for line in out.read_text("utf-8", "replace").splitlines():
            with suppress(ValueError, RecursionError):
                found = json.loads(line)
                if isinstance(found, list) and found:
                    yield found
