"""Which event of a run becomes which message.  Pure.

One message an event, few a night: a circuit that opens ends the run, so the end is not told again;
a usage limit is told once, however often it is met, and called lifted only when the agent has
worked again; a story that waits is told at once only while others go on.  Before the run ends at
most `most - 1` messages are sent, and the last of them says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ralphloop.core.endings import ENDINGS
from ralphloop.core.model import Circuit, ExitDecision, Outcome, Value
from ralphloop.core.totals import spent_words
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import one_line
from ralphloop.text.status import Status

Event = Mapping[str, Any]
_NEAR = 0.8
_LONGEST = 400
_WORKING = ("tool", "tool_result")  # what an agent cannot do while it is out of quota
_KINDS = {ExitDecision.BLOCKED: "blocked", ExitDecision.CIRCUIT_OPEN: "circuit_open"}


class Message(Value, kw_only=True):
    """What a person is told; its JSON goes to commands and webhooks."""

    id: str  # the same however often it has to be sent
    kind: str  # run_finished, blocked, circuit_open, usage_limit, usage_limit_lifted, budget
    title: str
    text: str
    run: str = ""
    ts: str = ""
    is_last: bool = False  # nothing more will be told before the run ends


class Decider:
    """Remembers what was told, and decides what comes next."""

    def __init__(self, most: int = 6) -> None:
        self._most = most
        self._sent = 0
        self._project = "ralph"
        self._passed = self._total = 0
        self._spent = self._budget = 0.0
        self._unpriced = 0
        self._told: set[str] = set()
        self._is_limited = False
        self._is_open = False

    def on_event(self, event: Event) -> Message | None:
        """The message this event is worth, if it is worth one."""
        handler = _HANDLERS.get(event.get("type", ""))
        return handler(self, event) if handler else None

    def _run_started(self, event: Event) -> None:
        self._project = str(event.get("project") or "ralph")
        self._passed, self._total = int(event.get("passed", 0)), int(event.get("stories", 0))
        self._budget = float(event.get("max_cost_usd", 0.0))
        self._spent = float(event.get("cost_usd", 0.0))  # of a run that is continued
        self._unpriced = int(event.get("unpriced", 0))

    def _request_answered(self, event: Event) -> None:
        self._budget = float(event.get("max_cost_usd", self._budget))

    def _story_passed(self, _: Event) -> None:
        self._passed += 1

    def _agent_event(self, event: Event) -> Message | None:
        return self._lifted(event) if event.get("kind") in _WORKING else None

    def _iteration_finished(self, event: Event) -> Message | None:
        self._spent += float(event.get("cost_usd", 0.0))
        self._unpriced += int(event.get("unpriced", 0))
        outcome = str(event.get("outcome", ""))
        works = outcome in set(Outcome) and not Outcome(outcome).is_infrastructure
        lifted = self._lifted(event) if works else None
        return lifted or self._blocked(event) or self._near_budget(event)

    def _blocked(self, event: Event) -> Message | None:
        goes_on = event.get("decision") == ExitDecision.CONTINUE
        if event.get("status") != Status.BLOCKED or not goes_on:
            return None
        story = str(event.get("story", ""))
        asks = event.get("recommendation") or "see `ralph stories`"
        text = f"{story} waits for a person: {asks}. Other stories go on."
        return self._once(f"blocked {story}", "blocked", f"{story} waits for you", text, event)

    def _near_budget(self, event: Event) -> Message | None:
        # What is used up ends the run, which is told anyway.
        if not self._budget or not _NEAR * self._budget <= self._spent < self._budget:
            return None
        text = f"${self._spent:.2f} of ${self._budget:.2f} is spent. {self._standing()}"
        return self._once("budget", "budget", "80 % of the budget is spent", text, event)

    def _circuit_changed(self, event: Event) -> Message | None:
        self._is_open = event.get("after") == Circuit.OPEN
        if not self._is_open:
            return None
        text = f"{event.get('reason', '')}. The run stops. {self._standing()}"
        return self._message("circuit_open", "the circuit is open", text, event)

    def _waiting(self, event: Event) -> Message | None:
        if event.get("kind") != "quota" or not event.get("until") or self._is_limited:
            return None
        self._is_limited = True
        pause = format_duration(float(event.get("seconds", 0.0)))
        text = f"{event.get('reason', '')}. It goes on in {pause}. {self._standing()}"
        return self._limited("usage_limit", "usage limit reached", text, event)

    def _lifted(self, event: Event) -> Message | None:
        if not self._is_limited:
            return None
        self._is_limited = False
        text = f"The agent works again. {self._standing()}"
        return self._limited("usage_limit_lifted", "usage limit lifted", text, event)

    def _run_finished(self, event: Event) -> Message | None:
        decision = str(event.get("decision", ""))
        if decision == ExitDecision.CIRCUIT_OPEN and self._is_open:
            return None  # told when it opened
        word = ExitDecision(decision) if decision in set(ExitDecision) else ExitDecision.ERROR
        self._passed, self._total = int(event.get("passed", 0)), int(event.get("total", 0))
        self._spent = float(event.get("cost_usd", self._spent))
        self._unpriced = int(event.get("unpriced", self._unpriced))
        reasons = "; ".join(str(reason) for reason in event.get("reasons", ()))
        text = f"{reasons}. {self._standing()}" if reasons else self._standing()
        return self._message(_KINDS.get(word, "run_finished"), ENDINGS[word].words, text, event)

    def _standing(self) -> str:
        stories = f"{self._passed} of {self._total} stories passed, " if self._total else ""
        if self._unpriced:
            return f"{stories}{spent_words(self._spent, self._unpriced)}."
        return f"{stories}${self._spent:.2f} spent."

    def _once(self, key: str, kind: str, what: str, text: str, event: Event) -> Message | None:
        if key in self._told:
            return None
        self._told.add(key)
        return self._limited(kind, what, text, event)

    def _limited(self, kind: str, what: str, text: str, event: Event) -> Message | None:
        """A message that only comes while there is room for it."""
        room = self._most - 1 - self._sent
        if room <= 0:
            return None
        message = self._message(kind, what, text, event)
        if room > 1:
            return message
        words = f"{message.text} This is the last message before the run ends."
        return msgspec.structs.replace(message, text=words, is_last=True)

    def _message(self, kind: str, what: str, text: str, event: Event) -> Message:
        self._sent += 1
        run = str(event.get("run", ""))
        return Message(
            id=f"{run}/{self._sent}-{kind}",
            kind=kind,
            title=_sendable(f"{self._project}: {what}", 100),
            text=_sendable(text, _LONGEST),
            run=run,
            ts=str(event.get("ts", "")),
        )


def _sendable(text: str, limit: int) -> str:
    """One bounded line that any encoder takes: agents print half characters too."""
    return one_line(text, limit).encode("utf-8", "replace").decode()


_HANDLERS: dict[str, Callable[[Decider, Event], Message | None]] = {
    "run_started": Decider._run_started,  # noqa: SLF001
    "request_answered": Decider._request_answered,  # noqa: SLF001
    "story_passed": Decider._story_passed,  # noqa: SLF001
    "agent_event": Decider._agent_event,  # noqa: SLF001
    "iteration_finished": Decider._iteration_finished,  # noqa: SLF001
    "circuit_changed": Decider._circuit_changed,  # noqa: SLF001
    "waiting": Decider._waiting,  # noqa: SLF001
    "run_finished": Decider._run_finished,  # noqa: SLF001
}
