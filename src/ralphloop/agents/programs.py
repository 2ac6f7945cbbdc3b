"""Finding an agent's program and asking it simple questions before anything is spent."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ralphloop.errors import Finding, Level
from ralphloop.proc.run import Output, run_command

# Why a program that was found must not be started; empty where it may.
WhyNot = Callable[[str], str]

_PATIENCE_S = 20.0
_VERSION = re.compile(r"\d{1,6}(?:\.\d{1,6}){1,3}")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program said."""

    exit_code: int
    output: str


def asked_freely(_: str) -> str:
    """Before a run every program may be asked: the run starts it anyway."""
    return ""


def program_of(binary: str, default: str) -> str:
    """The configured program, or the usual name of it."""
    # Only a tilde is replaced: `./x` must not become `x`, which would be looked for on PATH.
    return str(Path(binary).expanduser()) if binary.startswith("~") else binary or default


def find_program(program: str, env: Mapping[str, str], cwd: Path) -> str | None:
    """The path that would be started, or None; a name with a slash is relative to `cwd`."""
    if "/" in program:
        program = str(cwd / program)
    return shutil.which(program, path=env.get("PATH"))


def missing_program(program: str, install: str, cwd: Path) -> Finding:
    """Why a program cannot be started, and what to do."""
    path = cwd / program
    if "/" in program and path.is_file() and not os.access(path, os.X_OK):
        return Finding(Level.ERROR, f"{program} is not executable", f"chmod +x {program}")
    where = "does not exist" if "/" in program else "is not on PATH"
    return Finding(Level.ERROR, f"{program} {where}", install)


def ask(argv: Sequence[str], env: Mapping[str, str]) -> Answer | None:
    """Run a program that answers and exits; None where it does not."""
    try:
        ended = run_command(argv, env=env, timeout_s=_PATIENCE_S, output=Output.TOGETHER)
    except (OSError, ValueError):
        return None
    if ended.timed_out:
        return None
    return Answer(ended.returncode, ended.stdout[:65536].decode("utf-8", "replace"))


def version_of(program: str, env: Mapping[str, str]) -> str | None:
    """The version a program states, such as `2.1.325`."""
    answer = ask([program, "--version"], env)
    match = _VERSION.search(answer.output) if answer and answer.exit_code == 0 else None
    return match.group() if match else None


def not_started(name: str, program: str, reason: str) -> Finding:
    """What is said of a program that is there and was asked nothing."""
    return Finding(Level.INFO, f"{name}: {program} is there; not started: {reason}")


def version_problem(name: str, version: str | None, tested: Sequence[str]) -> Finding:
    """The version found, and whether it is one that this release was tested with."""
    if version is None:
        return Finding(
            Level.WARNING,
            f"{name} does not state its version",
            f"run `{name} --version` to see what it says",
        )
    known_good = any(version == known or version.startswith(f"{known}.") for known in tested)
    if known_good or not tested:
        return Finding(Level.INFO, f"{name} {version}")
    shown = ", ".join(tested)
    return Finding(Level.INFO, f"{name} {version} (tested with {shown})")
