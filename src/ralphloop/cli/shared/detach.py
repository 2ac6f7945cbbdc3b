"""`ralph run --detach`: in the background a run survives terminal, SSH and agent session."""

import os
import time
from collections.abc import Sequence

from ralphloop.cli import output
from ralphloop.cli.shared.agreement import trusted_setup
from ralphloop.cli.shared.foreground import insist_on_run_to_continue
from ralphloop.errors import ExitCode
from ralphloop.loop.prepare import Options
from ralphloop.night.look import holder_of
from ralphloop.proc.run import ourselves, spawn
from ralphloop.repo.private_git import make_directory
from ralphloop.room import own_opener, read_regular

_PATIENCE_S = 20.0
_STEP_S = 0.1


def run_detached(options: Options, arguments: Sequence[str]) -> int:
    """Start the same command in the background; wait until it holds the project or ended."""
    setup = trusted_setup(options)
    insist_on_run_to_continue(setup)
    project = setup.project
    make_directory(project.directory)
    argv = [*ourselves(), *(a for a in arguments if a != "--detach")]
    with open(project.log, "ab", opener=own_opener) as log:
        start = log.tell()
        env = {**options.env, "PYTHONUNBUFFERED": "1"}
        child = spawn(argv, cwd=options.start, env=env, stdout=log, stderr=log)
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        code = child.poll()
        if code is not None:
            output.note(read_regular(project.log)[start:].decode("utf-8", "replace").rstrip())
            return code
        holder = holder_of(project, time.time())
        if holder is not None and holder.pid == child.pid:
            break
        time.sleep(_STEP_S)
    where = f"Running in the background as process {child.pid}; log: {os.fspath(project.log)}"
    output.emit_lines([where, "Follow it: ralph status, ralph log -f.  Stop it: ralph stop"])
    return ExitCode.COMPLETE
