"""What a stranger installs: wheel and sdist, in clean environments of every Python there is.

`make dist` builds both and calls this; it needs the package index, and so is no part of `make test`.
Each is looked into, installed, used (demo, set up, a run that proves a story) and uninstalled.
"""

from __future__ import annotations

import email
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from email.message import Message
from pathlib import Path, PurePath

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
UNWANTED = {"__pycache__", ".venv", ".ralph", ".e2e-cache", ".hypothesis", "dist", "build"}
NAMES = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
NIGHT = {
    "starts": [
        [
            {"write": {"hello.txt": "Hello"}},
            {"status": {"status": "COMPLETE", "tasks_completed": 1}},
        ]
    ]
}


class Failed(Exception):
    """Something does not work; the words say what."""


def main(directory: str) -> int:
    """Look into, install and use everything in the directory; 1 where something does not work."""
    built = sorted(Path(directory).resolve().glob("ralphloop-*"))
    failures = 0
    for package in built:
        failures += _said("", package, *_looked_into(package))
    for python in found():
        for package in built:
            try:
                used(python, package)
                failures += _said(python, package)
            except Failed as error:
                failures += _said(python, package, str(error))
    return min(failures, 1)


def _said(python: str, package: Path, *troubles: str) -> int:
    sys.stdout.write(f"{python or 'content':<50} {package.name:<36} ")
    sys.stdout.write(f"{'; '.join(troubles) or 'works'}\n")
    sys.stdout.flush()
    return len(troubles)


def found() -> Iterator[str]:
    """One interpreter of each version that can be started and can make virtual environments."""
    home = Path.home()
    for version in VERSIONS:
        name = f"python{version}"
        places = [
            shutil.which(name) or name,
            *map(str, sorted(home.glob(f".pyenv/versions/{version}.*/bin/{name}"))),
            *map(str, sorted(home.glob(f".local/share/uv/python/*-{version}.*/bin/{name}"))),
        ]
        yield from [python for python in places if _starts(python)][:1]


def _starts(python: str) -> bool:
    try:
        argv = [python, "-c", "import venv, ensurepip"]
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _looked_into(package: Path) -> Iterator[str]:
    """What is in it that should not be, and what its metadata lacks."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            names = archive.namelist()
            metadata = archive.read(next(it for it in names if it.endswith("/METADATA")))
    else:
        with tarfile.open(package) as archive:
            names = archive.getnames()
            file = archive.extractfile(next(it for it in names if it.endswith("/PKG-INFO")))
            metadata = file.read() if file else b""
    yield from (f"{name} is in it" for name in names if UNWANTED & set(PurePath(name).parts))
    yield from (f"{name} is in it" for name in names if name.endswith((".pyc", ".db", ".log")))
    yield from _lacking(email.message_from_bytes(metadata))


def _lacking(metadata: Message) -> Iterator[str]:
    wanted = {"License-Expression": "MIT", "Description-Content-Type": "text/markdown"}
    for key, value in (wanted | {"Provides-Extra": "web"}).items():
        if value not in metadata.get_all(key, []):
            yield f"its {key} is not {value}"
    if not metadata.get_all("Project-URL"):
        yield "it has no address"
    if any(f"Programming Language :: Python :: {it}" not in str(metadata) for it in VERSIONS[:3]):
        yield "a version of Python is missing"
    from markdown_it import MarkdownIt

    page = MarkdownIt("commonmark").enable("table").render(str(metadata.get_payload()))
    if not (page.startswith("<h1>ralph</h1>") and "<table>" in page):
        yield "its long description is no page"


def used(python: str, package: Path) -> None:
    """All that a stranger does first; raises where it does not work."""
    with tempfile.TemporaryDirectory() as place:
        room, project = Path(place, "venv"), Path(place, "project")
        project.mkdir()
        (project / "night.yaml").write_text(json.dumps(NIGHT))
        ralph, pip = room / "bin" / "ralph", room / "bin" / "pip"
        verify = "grep -q Hello hello.txt"
        env = {"HOME": place, "PATH": os.environ["PATH"], **dict.fromkeys(NAMES, "x@example.org")}
        steps: list[list[str | Path]] = [
            [python, "-m", "venv", room],
            [pip, "install", "--quiet", package],
            ["git", "init", "-q"],
            [room / "bin" / "ralphloop", "--version"],
            [ralph, "--help"],
            [ralph, "demo"],
            [ralph, "init", "--yes", "--agent", "scripted"],
            ["git", "add", "-A"],
            ["git", "commit", "-qm", "Set up ralph"],
            [ralph, "run", "--dry-run"],
            [ralph, "do", "Say hello", "--verify", verify],
            ["git", "cat-file", "-e", "HEAD:hello.txt"],
            [ralph, "monitor", "--once"],
            [ralph, "report", "--html"],
            [ralph, "stories", "schema"],
            [ralph, "plugin", "path"],
            [ralph, "docs", "first-night"],
            [pip, "install", "--quiet", f"{package}[web]"],
            [room / "bin" / "python", "-c", "import starlette, uvicorn"],
            [pip, "uninstall", "--quiet", "--yes", "ralphloop"],
        ]
        for argv in steps:
            _run(argv, project, env)
        left = [it for it in room.glob("lib/*/site-packages/ralphloop*/**/*") if it.is_file()]
        if ralph.exists() or any(it.parent.name != "__pycache__" for it in left):
            raise Failed("something is left after it was uninstalled")


def _run(argv: Sequence[str | Path], cwd: Path, env: dict[str, str]) -> None:
    words = [str(word) for word in argv]
    ended = subprocess.run(
        words, cwd=cwd, env=env | _pip(), capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise Failed(f"{' '.join(words)}: {ended.returncode} {ended.stderr[-400:]}")


def _pip() -> dict[str, str]:
    """How this machine reaches the package index."""
    own = Path.home() / ".config" / "pip" / "pip.conf"
    given = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    return given | ({"PIP_CONFIG_FILE": str(own)} if own.exists() else {})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
