"""Sealing a file, and saying who could still read it: for `ralph seal` and `ralph plan --seal`."""

import os
import time

from ralphloop.cli import output
from ralphloop.config.load import load_config
from ralphloop.errors import LockedError
from ralphloop.night.look import holder_of
from ralphloop.project import Project
from ralphloop.repo.work_tree import Repository
from ralphloop.sealed import SealedFile, digest_of, seal_file
from ralphloop.text.durations import iso


def refuse_while_running(project: Project) -> None:
    """What is sealed belongs to the next run: nothing is while one is at work."""
    if holder := holder_of(project, time.time()):
        raise LockedError(
            f"run {holder.run} is at work here", "Seal tests before a run, or: ralph stop"
        )


def keep_sealed(
    project: Project,
    repo: Repository,
    path: str,
    content: bytes,
    stories: tuple[str, ...],
    *,
    is_executable: bool = False,
    by: str = "",
) -> None:
    """Keep one file, with who sealed it when; `by` is who wrote it, if that is somebody else."""
    name = repo.git.line("config", "--get", "user.name", ok=(0, 1))
    file = SealedFile(
        path=path,
        digest=digest_of(content),
        is_executable=is_executable,
        sealed_at=iso(time.time()),
        by=f"{name}, written by {by}" if by else name,
        stories=stories,
    )
    seal_file(project.root, os.environ, file, content)


def warn_of_reach(project: Project) -> None:
    """Say where an agent could look all the same, and where sealed tests do not run."""
    config = load_config(project.root, env=os.environ).config
    if config.sandbox.mode == "off":
        output.warn(
            "without a sandbox an agent runs as you and could look into the state directory:"
            ' [sandbox] mode = "auto"'
        )
    if config.proof.clean_tree == "off" and not config.lanes.count:
        output.warn(
            'they only run in a clean tree, and [proof] clean_tree = "off": they do not run'
        )
