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
from ralphloop.core.planning import decided
from ralphloop.core.quota import quota_words
from ralphloop.core.totals import money, spent_words
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
        self._run = events.RunStarted()
        self._told: set[str] = set()
        self._is_limited = False

    def on_event(self, event: LoopEvent) -> Message | None:
        self._run = events.as_of_now(self._run, event.what)
        match event.what:
            case events.AgentStep(kind=kind) if kind in _WORKING:
                return self._lifted(event)
            case events.IterationFinished(iteration=ended):
                works = not ended.analysis.outcome.is_infrastructure
                lifted = self._lifted(event) if works else None
                return lifted or self._blocked(event, ended) or self._near_budget(event)
            case events.CircuitChanged(after=Circuit.OPEN, reason=reason):
                text = f"{_sentence(reason)} The run stops."
                return self._message("circuit_open", "the circuit is open", text, event)
            case events.Waiting(kind="quota", until=str()) as what if not self._is_limited:
                self._is_limited = True
                pause = format_duration(what.seconds)
                back = clock_time(event.at + what.seconds, event.at)
                text = f"{_sentence(what.reason)} It goes on at {back}, in {pause}."
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
        run = self._run
        if _NEAR * run.max_cost_usd <= run.cost_usd < run.max_cost_usd:
            text = f"${run.cost_usd:.2f} of ${run.max_cost_usd:.2f} is spent."
        elif _NEAR * run.max_tokens <= run.tokens < run.max_tokens:
            text = f"{run.tokens:,} of {run.max_tokens:,} tokens are used."
        else:
            return None
        return self._limited("budget", "80 % of the budget is spent", text, event, once=True)

    def _lifted(self, event: LoopEvent) -> Message | None:
        if not self._is_limited:
            return None
        self._is_limited = False
        return self._limited(
            "usage_limit_lifted", "usage limit lifted", "The agent works again.", event
        )

    def _run_finished(self, event: LoopEvent, what: events.RunFinished) -> Message | None:
        word, reasons = what.decision, "; ".join(what.reasons)
        if word is ExitDecision.CIRCUIT_OPEN and "the circuit is open" in self._told:
            return None
        text = _sentence(reasons) if reasons else ""
        return self._message(_KINDS.get(word, "run_finished"), decided(word, reasons), text, event)

    def _standing(self, at: float) -> str:
        run = self._run
        stories = f"{run.passed} of {counted(run.stories, 'story')} passed" if run.stories else ""
        spent = f"{money(run.cost_usd)} spent" if not run.unpriced else ""
        spent = spent or spent_words(run.cost_usd, run.unpriced)
        return ", ".join(filter(None, (stories, spent, quota_words(run.quota, at)))) + "."

    def _limited(
        self, kind: str, what: str, text: str, event: LoopEvent, *, once: bool = False
    ) -> Message | None:
        """A message that only comes while there is room for it, and if so asked only once."""
        room = self._most - 1 - self._sent
        if room <= 0 or (once and what in self._told):
            return None
        message = self._message(kind, what, text, event)
        if room > 1:
            return message
        words = f"{message.text} This is the last message before the run ends."
        return msgspec.structs.replace(message, text=words, is_last=True)

    def _message(self, kind: str, what: str, text: str, event: LoopEvent) -> Message:
        """Words about an event, and behind them how the run stands."""
        self._sent += 1
        self._told.add(what)
        return Message(
            id=f"{event.run}/{self._sent}-{kind}",
            kind=kind,
            title=_sendable(f"{self._run.project or 'ralph'}: {what}", 100),
            text=_sendable(f"{text} {self._standing(event.at)}", _LONGEST),
            run=event.run,
            ts=iso(event.at),
        )


def _sentence(words: str) -> str:
    return words if words.endswith((".", "?", "!", "…")) else f"{words}."


def _sendable(text: str, limit: int) -> str:
    """One bounded line that any encoder takes: agents print half characters too."""
    return one_line(text, limit).encode("utf-8", "replace").decode()
