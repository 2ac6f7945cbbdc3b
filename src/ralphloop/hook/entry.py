"""The quick answer to a hook: is this any business of ours?

Hooks run at every stop of every session of whoever installed the plugin.  Almost always there is no
lease on the way up from the session's directories; then not even stdin is read.  Only a loop of
*this* session loads the rest.  The exit code is always 0, stdout holds nothing or one JSON object.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # the real one costs half of what this path may cost
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ralphloop.journal.holder import Holder

EVENTS = ("stop", "stop-failure", "session-start", "session-end")
_LEASE = os.path.join(".ralph", "holder.json")  # noqa: PTH118 - pathlib costs more than the answer
_MOST_INPUT = 64 << 20
_MOST_LEASE = 64 << 10


def main(event: str) -> int:
    """Answer one event; the session goes on whatever becomes of us."""
    try:
        _answer(event)
    except Exception as error:  # noqa: BLE001 - a session must never suffer from our mistakes
        say(f"ralph: {type(error).__name__}: {error}")
    return 0


def read_input() -> dict[str, object]:
    """The hook's JSON object; anything else is an empty one."""
    import json

    data = sys.stdin.buffer.read(_MOST_INPUT)
    try:
        given = json.loads(data.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        say("ralph: the hook's input is not JSON")
        return {}
    return given if isinstance(given, dict) else {}


def write_answer(answer: dict[str, object] | None) -> None:
    import json

    if answer:
        text = json.dumps(answer, ensure_ascii=False)
        sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
        sys.stdout.flush()


def say(words: str) -> None:
    """Words for whoever looks into the hook's log; never part of the answer."""
    sys.stderr.write(words.encode("ascii", "backslashreplace").decode() + "\n")


def _answer(event: str) -> None:
    project = os.environ.get("CLAUDE_PROJECT_DIR", "")
    try:
        here = os.getcwd()  # noqa: PTH109
    except OSError:
        here = ""  # the directory is gone
    leases = dict.fromkeys(_leases(project, here))
    if project and not leases:
        return  # what Claude Code told us is enough to know
    given = read_input()
    leases |= dict.fromkeys(_leases(_text(given.get("cwd"))))
    for lease in leases:
        if (found := _ours(event, lease, _text(given.get("session_id")))) is not None:
            import gc

            gc.disable()  # so short a process needs no garbage collector
            # Without backports, and without the module that `uuid` asks for the system's name.
            platform = type(sys)("platform")
            vars(platform)["system"] = lambda: os.uname().sysname
            light = {"typing_extensions": None, "platform": platform}
            sys.modules.update(light)  # type: ignore[arg-type]
            import msgspec  # noqa: F401

            del sys.modules["platform"]  # whoever needs more of it gets the real one
            from pathlib import Path

            from ralphloop.hook.turn import handle

            write_answer(handle(event, given, Path(lease).parent, found))
            sys.stderr.flush()
            os._exit(0)  # tidying up a process that ends anyway would cost a tenth of the turn


def _ours(event: str, lease: str, session: str) -> Holder | None:
    """Who holds the project, where the lease is this session's, or one that has run out."""
    if event != "session-start" and not _names(lease, session):
        say(f"ralph: {lease} belongs to another session or run")
        return None
    import time
    from pathlib import Path

    from ralphloop.journal.holder import read_holder

    holder = read_holder(Path(lease).parent)
    if holder is None or not holder.is_lease:
        return None
    is_over = event == "session-start" and not holder.lease_holds(time.time())
    return holder if holder.session == session or is_over else None


def _names(lease: str, session: str) -> bool:
    """A first look: a file that does not even contain the session's id is not its lease."""
    import json

    try:
        # Neither through a link nor waiting for a pipe or a terminal that stands in its place.
        file = os.open(lease, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY)
        try:
            return bool(session) and json.dumps(session).encode() in os.read(file, _MOST_LEASE)
        finally:
            os.close(file)
    except OSError:
        return False


def _leases(*starts: str) -> Iterator[str]:
    """Every lease file on the way up from these directories."""
    for start in starts:
        directory = start if os.path.isabs(start) else ""  # noqa: PTH117
        above = ""
        while directory != above:
            lease = os.path.join(directory, _LEASE)  # noqa: PTH118
            if os.path.exists(lease):  # noqa: PTH110
                yield lease
            above = directory
            directory = os.path.dirname(directory)  # noqa: PTH120


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
