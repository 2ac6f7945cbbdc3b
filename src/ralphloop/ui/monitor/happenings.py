"""Journal events as the monitor tells them: lines of the log, and the agent's last actions.  Pure.

The wording of the log is the console's (`ui.lines`).  Only what an agent does is told shorter:
results that went well and status blocks say nothing a person watching needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ralphloop.core import events
from ralphloop.core.events import LoopEvent
from ralphloop.core.model import Circuit
from ralphloop.text.plain import one_line
from ralphloop.ui.lines import event_lines
from ralphloop.ui.monitor.values import Action, LogLine, Tone

_LONGEST_LINE = 500
_ACTIONS_KEPT = 40
_BLOCK = "---RALPH_STATUS---"
_SILENT_WHEN_GOOD = ("tool_result", "result", "status")
_TONES = {
    events.IterationStarted: Tone.STRONG,
    events.StoryPassed: Tone.GOOD,
    events.StorySetAside: Tone.WARN,
    events.StoryBlocked: Tone.WARN,
    events.Waiting: Tone.WARN,
    events.RequestAnswered: Tone.BUSY,
    events.RunStarted: Tone.STRONG,
    events.RunFinished: Tone.STRONG,
    events.Preflight: Tone.QUIET,
}
_CIRCUIT_TONES = {Circuit.CLOSED: Tone.GOOD, Circuit.HALF_OPEN: Tone.WARN, Circuit.OPEN: Tone.BAD}


def log_lines(event: LoopEvent) -> Iterator[LogLine]:
    """What there is to say about an event."""
    what = event.what
    if isinstance(what, events.AgentStep):
        yield from _agent_line(event.at, what)
        return
    tone = _TONES.get(type(what), Tone.PLAIN)
    if isinstance(what, events.CircuitChanged):
        tone = _CIRCUIT_TONES[what.after]
    for line in [what.name] if isinstance(what, events.Unknown) else event_lines(event):
        bad = Tone.WARN if line.lstrip().startswith("!") else tone
        indent = "  " if line.startswith(" ") else ""
        yield LogLine(at=event.at, text=indent + one_line(line, _LONGEST_LINE), tone=bad)


def action_of(step: events.AgentStep) -> Action | None:
    """What an agent's event says, where it says something."""
    ok = step.ok if isinstance(step.ok, bool) else None
    if step.kind in _SILENT_WHEN_GOOD and ok is not False:
        return None
    words = one_line(step.summary.split(_BLOCK)[0], _LONGEST_LINE)
    return Action(kind=step.kind, words=words, ok=ok) if words else None


def actions(steps: Iterable[events.AgentStep]) -> tuple[Action, ...]:
    """The last actions of an iteration; a tool's result is told with its call."""
    told: list[Action] = []
    for step in steps:
        if step.kind == "tool_result" and isinstance(step.ok, bool):
            _settle(told, step.summary, ok=step.ok)
        elif action := action_of(step):
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


def _agent_line(at: float, step: events.AgentStep) -> Iterator[LogLine]:
    action = action_of(step)
    if action is None:
        return
    words = {"tool": action.words, "text": f"“{action.words}”"}.get(
        action.kind, f"{action.kind}: {action.words}"
    )
    mark = "✗ " if action.ok is False else ""
    tone = Tone.WARN if action.ok is False else Tone.QUIET
    yield LogLine(at=at, text=f"  {mark}{words}", tone=tone)
