"""Which event of a run becomes which message.  Pure.

One message an event, few a night: a circuit that opens ends the run, so the end is not told again;
a usage limit is told once, however often it is met, and called lifted only when the agent has
worked again; a story that waits is told at once only while others go on.  Before the run ends at
most `most - 1` messages are sent, and the last of them says so.
"""

import msgspec

from ralphloop.core import events
from ralphloop.core.events import LoopEvent
from ralphloop.core.iteration import Iteration
from ralphloop.core.model import Circuit, ExitDecision, Value
from ralphloop.core.planning import ending_of
from ralphloop.core.quota import quota_words
from ralphloop.core.totals import spent_words
from ralphloop.text.durations import clock_time, format_duration, iso
from ralphloop.text.plain import counted, one_line
from ralphloop.text.status_block import Status

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
        self._unpriced = self._tokens = self._most_tokens = 0
        self._quota = ""
        self._told: set[str] = set()
        self._is_limited = False
        self._is_open = False

    def on_event(self, event: LoopEvent) -> Message | None:
        match event.what:
            case events.RunStarted() as what:
                self._project = what.project or "ralph"
                self._passed, self._total = what.passed, what.stories
                self._budget, self._spent = what.max_cost_usd, what.cost_usd
                self._unpriced = what.unpriced
                self._tokens, self._most_tokens = what.tokens, what.max_tokens
            case events.RequestAnswered(max_cost_usd=float(budget)) as what:
                self._budget, self._most_tokens = budget, what.max_tokens or 0
            case events.StoryPassed():
                self._passed += 1
            case events.AgentStep(kind=kind) if kind in _WORKING:
                return self._lifted(event)
            case events.IterationFinished(iteration=ended, spent=spent):
                self._spent += spent.cost_usd
                self._unpriced += spent.unpriced
                self._tokens += spent.fresh_tokens
                self._quota = quota_words(ended.response.windows, event.at) or self._quota
                works = not ended.analysis.outcome.is_infrastructure
                lifted = self._lifted(event) if works else None
                return lifted or self._blocked(event, ended) or self._near_budget(event)
            case events.CircuitChanged(after=after, reason=reason):
                self._is_open = after is Circuit.OPEN
                text = f"{_sentence(reason)} The run stops. {self._standing()}"
                if self._is_open:
                    return self._message("circuit_open", "the circuit is open", text, event)
            case events.Waiting(kind="quota", until=str()) as what if not self._is_limited:
                self._is_limited = True
                pause = format_duration(what.seconds)
                back = clock_time(event.at + what.seconds, event.at)
                text = (
                    f"{_sentence(what.reason)} It goes on at {back}, in {pause}. {self._standing()}"
                )
                text = f"{text} {self._standing()}"
                return self._limited("usage_limit", "usage limit reached", text, event)
            case events.RunFinished() as what:
                return self._run_finished(event, what)
        return None

    def _blocked(self, event: LoopEvent, ended: Iteration) -> Message | None:
        status, goes_on = ended.analysis.status, ended.decision.word is ExitDecision.CONTINUE
        if status is None or status.status is not Status.BLOCKED or not goes_on:
            return None
        story = ended.story.id if ended.story else ""
        asks = status.recommendation or "see `ralph stories`"
        text = f"{story} waits for a person: {_sentence(asks)} Other stories go on."
        return self._limited("blocked", f"{story} waits for you", text, event, once=True)

    def _near_budget(self, event: LoopEvent) -> Message | None:
        # What is used up ends the run, which is told anyway.
        tokens, most = self._tokens, self._most_tokens
        if self._budget and _NEAR * self._budget <= self._spent < self._budget:
            text = f"${self._spent:.2f} of ${self._budget:.2f} is spent. {self._standing()}"
        elif most and _NEAR * most <= tokens < most:
            text = f"{tokens:,} of {most:,} tokens are used. {self._standing()}"
        else:
            return None
        return self._limited("budget", "80 % of the budget is spent", text, event, once=True)

    def _lifted(self, event: LoopEvent) -> Message | None:
        if not self._is_limited:
            return None
        self._is_limited = False
        text = f"The agent works again. {self._standing()}"
        return self._limited("usage_limit_lifted", "usage limit lifted", text, event)

    def _run_finished(self, event: LoopEvent, what: events.RunFinished) -> Message | None:
        word = what.decision
        if word is ExitDecision.CIRCUIT_OPEN and self._is_open:
            return None  # told when it opened
        self._passed, self._total = what.passed, what.total
        self._spent, self._unpriced = what.cost_usd, what.unpriced
        reasons = "; ".join(what.reasons)
        text = f"{_sentence(reasons)} {self._standing()}" if reasons else self._standing()
        ending = ending_of(word, reasons)
        words = ending.words if ending else str(word)
        return self._message(_KINDS.get(word, "run_finished"), words, text, event)

    def _standing(self) -> str:
        total = counted(self._total, "story")
        stories = f"{self._passed} of {total} passed, " if self._total else ""
        quota = f", {self._quota}" if self._quota else ""
        if self._unpriced:
            return f"{stories}{spent_words(self._spent, self._unpriced)}{quota}."
        return f"{stories}${self._spent:.2f} spent{quota}."

    def _limited(
        self, kind: str, what: str, text: str, event: LoopEvent, *, once: bool = False
    ) -> Message | None:
        """A message that only comes while there is room for it, and if so asked only once."""
        room = self._most - 1 - self._sent
        if room <= 0 or (once and what in self._told):
            return None
        self._told.add(what)
        message = self._message(kind, what, text, event)
        if room > 1:
            return message
        words = f"{message.text} This is the last message before the run ends."
        return msgspec.structs.replace(message, text=words, is_last=True)

    def _message(self, kind: str, what: str, text: str, event: LoopEvent) -> Message:
        self._sent += 1
        return Message(
            id=f"{event.run}/{self._sent}-{kind}",
            kind=kind,
            title=_sendable(f"{self._project}: {what}", 100),
            text=_sendable(text, _LONGEST),
            run=event.run,
            ts=iso(event.at),
        )


def _sentence(words: str) -> str:
    return words if words.endswith((".", "?", "!", "…")) else f"{words}."


def _sendable(text: str, limit: int) -> str:
    """One bounded line that any encoder takes: agents print half characters too."""
    return one_line(text, limit).encode("utf-8", "replace").decode()
