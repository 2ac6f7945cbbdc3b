"""What a stranger installs: wheel and sdist, in clean environments of every Python there is.

`make dist` builds both and calls this; it needs the package index, and so is no part of `make test`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")


def main(directory: str) -> int:
    """Install and use everything in the directory; the number of failures."""
    built = sorted(Path(directory).resolve().glob("ralphloop-*"))
    failures = 0
    for python in found():
        for package in built:
            said = tried(python, package)
            failures += bool(said)
            sys.stdout.write(f"{python:<12} {package.name:<40} {said or 'works'}\n")
    return min(failures, 1)


def found() -> Iterator[str]:
    """Interpreters that can be started and make virtual environments."""
    for name in PYTHONS:
        if shutil.which(name):
            asked = subprocess.run(
                [name, "-c", "import venv, ensurepip"], capture_output=True, check=False
            )
            if asked.returncode == 0:
                yield name


def tried(python: str, package: Path) -> str:
    """What went wrong; nothing where all of it works."""
    with tempfile.TemporaryDirectory() as place:
        room, project = Path(place, "venv"), Path(place, "project")
        project.mkdir()
        ralph = room / "bin" / "ralph"
        env = {"HOME": place, "PATH": os.environ["PATH"], "RALPH_TRUST": "1"}
        env |= {
            f"GIT_{who}_{what}": "x@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        for argv in (
            [python, "-m", "venv", room],
            [room / "bin" / "pip", "install", "--quiet", package],
            ["git", "init", "-q", project],
            [ralph, "--version"],
            [room / "bin" / "ralphloop", "--help"],
            [ralph, "demo"],
            [ralph, "init", "--yes", "--agent", "scripted"],
            [ralph, "run", "--dry-run"],
            [ralph, "monitor", "--once"],
            [ralph, "stories", "schema"],
            [ralph, "plugin", "path"],
        ):
            cwd = project if argv[0] == ralph else place
            ended = subprocess.run(
                [str(word) for word in argv],
                cwd=cwd,
                env=env | _pip(),
                capture_output=True,
                text=True,
                check=False,
            )
            if ended.returncode:
                return f"{' '.join(map(str, argv))}: {ended.returncode} {ended.stderr[-400:]}"
    return ""


def _pip() -> dict[str, str]:
    """How this machine reaches the package index."""
    return {name: value for name, value in os.environ.items() if name.startswith("PIP_")}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
