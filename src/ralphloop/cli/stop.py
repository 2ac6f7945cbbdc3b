"""`ralph stop`: end the run that goes on, gently, and wait until it has ended."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.cli.given import DURATION
from ralphloop.cli.steering import running
from ralphloop.errors import LockedError
from ralphloop.journal.holder import Holder
from ralphloop.journal.reader import JournalReader
from ralphloop.journal.records import RunRecord, RunStatus
from ralphloop.project import Project, find_project
from ralphloop.text.durations import format_duration
from ralphloop.ui.steering import ask

_STEP_S = 0.1


@click.command()
@click.option(
    "--timeout", default="30s", type=DURATION, show_default=True, help="How long to wait."
)
def stop(timeout: float) -> None:
    """Ask the run to stop: the agent is ended, everything is recorded, nothing is lost."""
    project = find_project(Path.cwd())
    holder = running(project)
    if holder is None:
        output.emit_lines([_nothing_runs(project)])
        return
    if ask(project, holder.run, "stop", {}, time.time()) is None:
        _signal(holder)
    if not _ended(project, holder, timeout):
        raise LockedError(
            f"run {holder.run} was asked to stop and has not ended after"
            f" {format_duration(timeout)}",
            f"Wait for it, or end process {holder.pid}; `ralph status` shows how it stands.",
        )
    output.emit_lines([output.safe(_what_became_of(project, holder))])


def _signal(holder: Holder) -> None:
    """A run that still gets ready reads no wishes; it hears signals."""
    if holder.is_lease or holder.host != os.uname().nodename:
        return
    try:
        os.kill(holder.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has ended in this very moment
    except PermissionError:
        raise LockedError(
            f"process {holder.pid} belongs to another user", "Ask them, or stop it as root."
        ) from None


def _ended(project: Project, holder: Holder, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while (now := running(project)) is not None and now.run == holder.run:
        if time.monotonic() >= deadline:
            return False
        time.sleep(_STEP_S)
    return True


def _nothing_runs(project: Project) -> str:
    latest = _latest(project)
    if latest is not None and latest.status is RunStatus.RUNNING:
        return (
            f"No run is going on; the process of run {latest.id} is gone."
            " `ralph run --continue` recovers it."
        )
    return "No run is going on."


def _what_became_of(project: Project, holder: Holder) -> str:
    latest = _latest(project)
    if latest is None or latest.id != holder.run:
        return f"Run {holder.run} ended before it began."
    if latest.status is RunStatus.COMPLETE:
        return f"Run {latest.id} is complete: {latest.reason or latest.decision}."
    if latest.status is RunStatus.RUNNING:
        return f"Run {latest.id} died; `ralph run --continue` recovers it."
    reason = latest.reason or latest.decision
    return f"Run {latest.id} has stopped: {reason}. `ralph run --continue` goes on with it."


def _latest(project: Project) -> RunRecord | None:
    with JournalReader.open(project.journal) as journal:
        return journal.latest_run()
