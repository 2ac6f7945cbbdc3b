"""A real git repository to try things on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ralphloop.repo.snapshot import Snapshot, Snapshotter
from ralphloop.repo.work_tree import OwnFiles, Repository


class Sandbox:
    """A repository in a temporary directory, driven by the git command line."""

    def __init__(self, root: Path, *init_args: str) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", *init_args)
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.org")

    @property
    def store(self) -> Path:
        """Where our own objects go."""
        return self.root / ".ralph" / "objects"

    def git(self, *args: str, check: bool = True) -> str:
        """Run git and give what it printed."""
        done = subprocess.run(
            ["git", *args],
            cwd=self.root,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"git {args} failed: {done.stderr.decode()}")
        return os.fsdecode(done.stdout).rstrip("\n")

    def write(self, path: str, content: str | bytes = "content\n") -> Path:
        """Write a file, with its directories."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        target.write_bytes(data)
        return target

    def read(self, path: str) -> str:
        """The text of a file."""
        return (self.root / path).read_text(encoding="utf-8")

    def remove(self, path: str) -> None:
        """Delete a file or a link."""
        (self.root / path).unlink()

    def commit(self, message: str = "work") -> str:
        """Commit everything there is."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def hook(self, name: str, script: str) -> Path:
        """Install a git hook."""
        path = self.write(f".git/hooks/{name}", f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def repository(self) -> Repository:
        """What the code under test sees."""
        return Repository.open(self.root)

    def snapshotter(self, own: OwnFiles | None = None, *, kept: bool = False) -> Snapshotter:
        """A measure of this work tree."""
        return Snapshotter(self.repository(), self.store, own, kept=kept)

    def git_files(self) -> dict[str, tuple[int, bytes | None]]:
        """Every file under `.git` with size and small content, to prove that none changed."""
        return {
            str(file.relative_to(self.root)): (
                file.stat().st_size,
                file.read_bytes() if file.stat().st_size < 100_000 else None,
            )
            for file in sorted((self.root / ".git").rglob("*"))
            if file.is_file()
        }


def statuses(measure: Snapshotter, before: Snapshot, after: Snapshot) -> dict[str, str]:
    """Changed paths with their status letters."""
    changes = measure.changes(before.tree, after.tree)
    return {it.path: "A" if it.before is None else "M" if it.after else "D" for it in changes}
