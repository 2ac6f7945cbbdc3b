"""`ralph run --detach`: a process of its own that survives terminal, SSH and agent session."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from ralphloop.cli import output
from ralphloop.errors import ExitCode
from ralphloop.journal.lock import live_holder
from ralphloop.loop.setup import Options, prepare
from ralphloop.loop.start import make_directory
from ralphloop.ourselves import ourselves
from ralphloop.proc.run import spawn
from ralphloop.room import own_opener

_PATIENCE_S = 20.0
_STEP_S = 0.1


def detach(options: Options, arguments: Sequence[str]) -> int:
    """Start the same command in the background; wait until it holds the project or ended."""
    project = prepare(options).project
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
            output.note(project.log.read_bytes()[start:].decode("utf-8", "replace").rstrip())
            return code
        holder = live_holder(project.directory, time.time())
        if holder is not None and holder.pid == child.pid:
            break
        time.sleep(_STEP_S)
    output.emit_lines(
        [
            f"Running in the background as process {child.pid}; log: {os.fspath(project.log)}",
            "Follow it: ralph status, ralph log -f.  Stop it: ralph stop",
        ]
    )
    return ExitCode.COMPLETE
