"""Repositories in which `ralph plan` is tried, with a scripted agent that answers what it is told to."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def git(root: Path, *arguments: str) -> str:
    """What git answers."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout


def repository(root: Path, answers: Sequence[object] = (), **files: str) -> Path:
    """A repository whose agent gives these answers, one for each start; texts as they are."""
    root.mkdir(exist_ok=True)
    git(root, "init", "-q")
    starts = [[*_steps(answer)] for answer in answers] or [[{"say": "nothing"}]]
    (root / "script.json").write_text(json.dumps({"stories": {"plan": starts}}))
    (root / "ralph.toml").write_text('[agent]\nname = "scripted"\ncommand = ["script.json"]\n')
    (root / ".gitignore").write_text(".ralph/\n")
    for name, text in files.items():
        (root / name).write_text(text)
    git(root, "add", ".")
    git(root, "commit", "-qm", "Begin")
    return root


def _steps(answer: object) -> list[Json]:
    if isinstance(answer, list):  # steps of its own
        return answer
    said = answer if isinstance(answer, str) else json.dumps(answer)
    usage = {"input_tokens": 1000, "output_tokens": 100, "cost_usd": 0.25}
    return [{"say": said}, {"usage": usage}]


def story(name: str, title: str, *criteria: str, **more: Any) -> Json:
    """One proposed story."""
    texts = criteria or (f"`{name.lower()}` prints {name}",)
    seen = [{"text": text, "seen": f"tests/test_{name.lower()}.py passes"} for text in texts]
    return {"id": name, "title": title, "criteria": seen, **more}


def stories(*listed: Json) -> Json:
    """A whole answer."""
    return {"stories": list(listed)}


def listed(root: Path, name: str = "prd.json") -> list[Json]:
    """The stories of the list as it was written."""
    written: list[Json] = json.loads((root / name).read_text())["userStories"]
    return written


class Terminal:
    """A command with a terminal on which somebody types when asked; `ralph plan`, if none is named."""

    def __init__(
        self,
        root: Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        command: str = "plan",
    ) -> None:
        self._master, slave = pty.openpty()
        argv = [sys.executable, "-m", "ralphloop", command, *arguments]
        surroundings = {**os.environ, "TERM": "xterm", "COLUMNS": "100", **(env or {})}
        self._process = subprocess.Popen(
            argv, cwd=root, stdin=slave, stdout=slave, stderr=slave, env=surroundings,
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.shown, self._seen = "", 0

    def wait_for(self, words: str) -> Terminal:
        """Read until these words are shown behind those that were waited for before."""
        deadline = time.monotonic() + 60
        while words not in self.shown[self._seen :]:
            assert time.monotonic() < deadline, self.shown
            assert self._read(), f"ended before {words!r}: {self.shown}"
        self._seen = self.shown.index(words, self._seen) + len(words)
        return self

    def _read(self) -> bool:
        """A little more of what is shown; False once the program has ended."""
        if not select.select([self._master], [], [], 1.0)[0]:
            return True
        try:
            self.shown += os.read(self._master, 4096).decode("utf-8", "replace")
        except OSError:
            return False
        return True

    def type(self, keys: str) -> Terminal:
        """Press keys."""
        os.write(self._master, keys.encode())
        return self

    def press(self, key: str) -> Terminal:
        """Press a key once one is waited for: what is typed before that is thrown away."""
        deadline = time.monotonic() + 60
        while termios.tcgetattr(self._master)[3] & termios.ICANON:
            assert time.monotonic() < deadline, self.shown
            time.sleep(0.01)
        return self.type(key)

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        os.close(self._master)
        return self._process.wait(timeout=60)
