"""A `git` that stands before the real one on PATH, writes down what it is asked, and may die."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.loop.projects import Sandbox

_SCRIPT = """\
#!/bin/sh
# The subcommand is the first word that is neither an option nor the value of `-c`.
previous=""; command=""
for word in "$@"; do
    case "$previous" in -c|-C) previous=""; continue;; esac
    case "$word" in -c|-C) previous="$word";; -*) ;; *) command="$word"; break;; esac
done
echo "$command" >> "$FAKE_GIT/asked"
if [ -e "$FAKE_GIT/dies" ] && [ "$command" = "$(cat "$FAKE_GIT/dies")" ]; then
    echo x >> "$FAKE_GIT/times"
    number=$(wc -l < "$FAKE_GIT/times")
    first=$(cat "$FAKE_GIT/first"); last=$(cat "$FAKE_GIT/last")
    if [ "$number" -ge "$first" ] && [ "$number" -le "$last" ]; then
        if [ -e "$FAKE_GIT/works" ]; then "$REAL_GIT" "$@"; fi
        kill -9 $$
    fi
fi
exec "$REAL_GIT" "$@"
"""


class FakeGit:
    """The git of a sandbox."""

    def __init__(self, box: Sandbox, place: Path) -> None:
        self.place = place
        place.mkdir()
        script = place / "git"
        script.write_text(_SCRIPT)
        script.chmod(0o755)
        real = shutil.which("git")
        assert real is not None
        path = f"{place}{os.pathsep}{os.environ['PATH']}"
        box.env |= {"PATH": path, "FAKE_GIT": str(place), "REAL_GIT": real}

    def dies(self, command: str, *, first: int = 1, times: int = 1, works: bool = False) -> None:
        """It is killed when it is asked that for the n-th time; `works`: after it was done."""
        (self.place / "dies").write_text(command)
        (self.place / "first").write_text(str(first))
        (self.place / "last").write_text(str(first + times - 1))
        if works:
            (self.place / "works").touch()

    @property
    def deaths(self) -> int:
        """How often it has died."""
        path = self.place / "times"
        asked = len(path.read_text().splitlines()) if path.exists() else 0
        first = int((self.place / "first").read_text())
        last = int((self.place / "last").read_text())
        return max(0, min(asked, last) - first + 1)

    @property
    def asked(self) -> list[str]:
        """Every subcommand, in order."""
        return (self.place / "asked").read_text().splitlines()
