"""Journal events as the monitor tells them: lines of the log, and the agent's last actions.  Pure.

The wording of the log is the console's (`ui.lines`).  Only what an agent does is told shorter:
results that went well and status blocks say nothing a person watching needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ralphloop.journal.records import Event
from ralphloop.text.plain import one_line
from ralphloop.ui.lines import event_lines
from ralphloop.ui.monitor.values import Action, LogLine, Tone

_LONGEST_LINE = 500
_ACTIONS_KEPT = 40
_BLOCK = "---RALPH_STATUS---"
_SILENT_WHEN_GOOD = ("tool_result", "result", "status")
_TONES = {
    "iteration_started": Tone.STRONG,
    "story_passed": Tone.GOOD,
    "story_set_aside": Tone.WARN,
    "story_blocked": Tone.WARN,
    "waiting": Tone.WARN,
    "request_answered": Tone.BUSY,
    "run_started": Tone.STRONG,
    "run_finished": Tone.STRONG,
    "preflight": Tone.QUIET,
}
_CIRCUIT_TONES = {"CLOSED": Tone.GOOD, "HALF_OPEN": Tone.WARN, "OPEN": Tone.BAD}


def log_lines(event: Event) -> Iterator[LogLine]:
    """What there is to say about an event."""
    if event.type == "agent_event":
        yield from _agent_line(event)
        return
    tone = _tone(event)
    data = {**event.data, "type": event.type, "run": event.run, "iteration": event.iteration}
    try:
        lines = list(event_lines(data))
    except (KeyError, TypeError, ValueError, AttributeError):
        lines = [event.type]  # written by another version, or too long to be kept
    for line in lines:
        bad = Tone.WARN if line.lstrip().startswith("!") else tone
        indent = "  " if line.startswith(" ") else ""
        yield LogLine(at=event.at, text=indent + one_line(line, _LONGEST_LINE), tone=bad)


def action_of(event: Event) -> Action | None:
    """What an agent's event says, where it says something."""
    kind, ok = str(event.data.get("kind", "")), event.data.get("ok")
    ok = ok if isinstance(ok, bool) else None
    if kind in _SILENT_WHEN_GOOD and ok is not False:
        return None
    words = one_line(str(event.data.get("summary", "")).split(_BLOCK)[0], _LONGEST_LINE)
    return Action(kind=kind, words=words, ok=ok) if words else None


def actions(events: Iterable[Event]) -> tuple[Action, ...]:
    """The last actions of an iteration; a tool's result is told with its call."""
    told: list[Action] = []
    for event in events:
        kind, ok = event.data.get("kind"), event.data.get("ok")
        if kind == "tool_result" and isinstance(ok, bool):
            _settle(told, str(event.data.get("summary", "")), ok=ok)
        elif action := action_of(event):
            told.append(action)
    return tuple(told[-_ACTIONS_KEPT:])


def _settle(told: list[Action], tool: str, *, ok: bool) -> None:
    """Note the result beside the newest call of that tool."""
    name = tool.partition(" ")[0]
    for index in range(len(told) - 1, max(-1, len(told) - 20), -1):
        call = told[index]
        if call.kind == "tool" and call.ok is None and call.words.startswith(name):
            told[index] = msgspec.structs.replace(call, ok=ok)
            return


def _agent_line(event: Event) -> Iterator[LogLine]:
    action = action_of(event)
    if action is None:
        return
    words = {"tool": action.words, "text": f"“{action.words}”"}.get(
        action.kind, f"{action.kind}: {action.words}"
    )
    mark = "✗ " if action.ok is False else ""
    tone = Tone.WARN if action.ok is False else Tone.QUIET
    yield LogLine(at=event.at, text=f"  {mark}{words}", tone=tone)


def _tone(event: Event) -> Tone:
    if event.type == "circuit_changed":
        return _CIRCUIT_TONES.get(str(event.data.get("after")), Tone.WARN)
    return _TONES.get(event.type, Tone.PLAIN)
