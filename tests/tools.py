"""Programs that a machine may have or not, and a machine without them.

`@pytest.mark.tool("tmux")` says that a test needs a program: it is skipped where that is absent.
With `optional=True` it says that the program makes a difference: the test holds with and without.
Both kinds run in `make without`, in a PATH from which all of them are gone:

    python -m tests.tools PROGRAM [WORDS...]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

# Each by the name that tests use, with the programs that it stands for.
TOOLS = {
    "bwrap": ("bwrap",),
    "socat": ("socat",),
    "tmux": ("tmux",),
    "chromium": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    "gh": ("gh",),
    "npm": ("npm", "npx"),
}
_BOX = ("bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "true")


@cache
def is_there(tool: str) -> bool:
    """True where the program is on PATH; a sandbox must work as well."""
    if not any(map(shutil.which, TOOLS[tool])):
        return False
    if tool != "bwrap":
        return True
    return subprocess.run(_BOX, capture_output=True, check=False).returncode == 0


def missing(tools: Iterable[str]) -> list[str]:
    """Those that are not there."""
    return [tool for tool in tools if not is_there(tool)]


def path_without(place: Path, *tools: str) -> str:
    """A PATH of one directory, with links to everything that PATH finds but these tools."""
    hidden = {program for tool in tools or TOOLS for program in TOOLS[tool]}
    place.mkdir(parents=True, exist_ok=True)
    for directory in map(Path, os.environ["PATH"].split(os.pathsep)):
        programs = directory.iterdir() if directory.is_dir() else ()
        for program in programs:
            link = place / program.name
            is_wanted = program.name not in hidden and not link.is_symlink()
            if is_wanted and os.access(program, os.X_OK):
                link.symlink_to(program.absolute())
    return str(place)


def main(argv: list[str]) -> int:
    """Run a command as on a machine without any of the tools; its exit code."""
    with tempfile.TemporaryDirectory(prefix="without-") as place:
        env = {**os.environ, "PATH": path_without(Path(place) / "bin")}
        return subprocess.run(argv, env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
