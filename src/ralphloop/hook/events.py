"""What each event does to a loop of ours."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ralphloop.errors import RalphError
from ralphloop.hook.answer import Answer, told
from ralphloop.hook.carried import Call, take_turn
from ralphloop.hook.entry import say
from ralphloop.journal.holder import Holder
from ralphloop.project import Project
from ralphloop.room import own_opener

_LONGEST_LOG = 1 << 20


def handle(event: str, given: dict[str, Any], directory: Path, holder: Holder) -> Answer | None:
    """Answer an event; what goes wrong is told and logged, and the session stops as it would."""
    project = Project(directory.parent)
    call = Call(given, project, holder, time.time())
    try:
        return _HANDLERS[event](call)
    except RalphError as error:
        _log(project, f"{event}: {error.message}")
        return told(f"{error.message}. {error.next_step}")
    except Exception as error:  # noqa: BLE001 - a session must never suffer from our mistakes
        import traceback

        _log(project, f"{event}: {traceback.format_exc()}")
        return told(f"internal error: {type(error).__name__}: {error}; see .ralph/ralph.log")


def _stop(call: Call) -> Answer | None:
    from ralphloop.hook.stop import stopped

    return take_turn(call, stopped)


def _stop_failure(call: Call) -> Answer | None:
    from ralphloop.hook.failure import failed

    return take_turn(call, failed)


def _session_start(call: Call) -> Answer | None:
    from ralphloop.hook.sessions import session_started

    return session_started(call)


def _session_end(call: Call) -> Answer | None:
    from ralphloop.hook.sessions import session_ended

    return session_ended(call)


_HANDLERS = {
    "stop": _stop,
    "stop-failure": _stop_failure,
    "session-start": _session_start,
    "session-end": _session_end,
}


def _log(project: Project, words: str) -> None:
    say(f"ralph: {words}")
    try:
        with open(project.log, "a", encoding="utf-8", errors="replace", opener=own_opener) as log:
            if log.tell() < _LONGEST_LOG:
                log.write(f"hook {words}\n")
    except OSError:
        return  # no log can be written; the words go to the session anyway
