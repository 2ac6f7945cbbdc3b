"""`ralph stop`: end the run gently."""

import os
import signal
import time

import click

from ralphloop.cli.shared.options import duration
from ralphloop.cli.shared.steering import write_request
from ralphloop.errors import LockedError
from ralphloop.journal.records import RunStatus, Wish
from ralphloop.night.look import holder_of, look
from ralphloop.project import Project, find_project
from ralphloop.text.durations import format_duration

_STEP_S = 0.1
_RECOVERS = "`ralph run --continue` recovers it."


@click.command()
@click.option(
    "--timeout", default="30s", type=duration, show_default=True, help="How long to wait."
)
def stop(timeout: float) -> str:
    """Ask the run to stop: the agent is ended, everything is recorded, nothing is lost."""
    return stop_run(find_project(), timeout)


def stop_run(project: Project, timeout: float) -> str:
    """Ask the run of a project to stop and wait for its end; how it ended, in words."""
    holder = holder_of(project, time.time())
    if holder is None:
        night = look(project)
        died = night.run and f"; the process of run {night.run.id} is gone. {_RECOVERS}"
        return f"No run is going on{died if night.died else '.'}"
    is_heard = write_request(project, holder.run, "stop", Wish()) is not None
    if not is_heard and not holder.is_lease and holder.host == os.uname().nodename:
        try:  # a run that still gets ready reads no wishes; it hears signals
            os.kill(holder.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass  # it has ended in this very moment
        except PermissionError:
            told = f"process {holder.pid} belongs to another user"
            raise LockedError(told, "Ask them, or stop it as root.") from None
    deadline = time.monotonic() + timeout
    while holder_of(project, time.time(), holder.run) is not None:
        if time.monotonic() >= deadline:
            raise LockedError(
                f"run {holder.run} was asked to stop and has not ended after"
                f" {format_duration(timeout)}",
                f"Wait for it, or end process {holder.pid}; `ralph status` shows how it stands.",
            )
        time.sleep(_STEP_S)
    run = look(project, run=holder.run).run
    if run is None:
        return f"Run {holder.run} ended before it began."
    if run.status is RunStatus.RUNNING:
        return f"Run {run.id} died; {_RECOVERS}"
    reason = run.reason or run.decision
    if run.status is RunStatus.COMPLETE:
        return f"Run {run.id} is complete: {reason}."
    return f"Run {run.id} has stopped: {reason}. `ralph run --continue` goes on with it."
