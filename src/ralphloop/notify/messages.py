"""Which event of a run becomes which message to a person.

Few a night: a circuit that opens ends the run, so the end is not told again; a usage limit is told
once, and called lifted only when the agent has worked again; a story that waits is told at once
only while others go on.  At most `most - 1` are sent before the end, and the last of them says so.

Each says what to do about it: a command, and beside it the page where one is served.
"""

import shlex

import msgspec

from ralphloop.core import events
from ralphloop.core.events import LoopEvent
from ralphloop.core.iteration import Iteration
from ralphloop.core.model import Circuit, ExitDecision, Value
from ralphloop.core.planning import decided
from ralphloop.core.totals import quota_words, spent_words
from ralphloop.text.durations import clock_time, format_duration, iso
from ralphloop.text.plain import counted, one_line
from ralphloop.text.status_block import Status

_NEAR = 0.8
_WORKING = ("tool", "tool_result")  # what an agent cannot do while it is out of quota
_KINDS = {ExitDecision.BLOCKED: "blocked", ExitDecision.CIRCUIT_OPEN: "circuit_open"}
_COMMANDS = {  # kind → what a person types to look or to answer
    "blocked": "ralph answer",
    "circuit_open": "ralph report",
    "run_finished": "ralph review",
    "budget": "ralph budget",
}
_LOOK = "ralph status"


class Message(Value, kw_only=True):
    """What a person is told; commands and webhooks get it as JSON, services its title and text."""

    id: str  # the same however often it has to be sent
    kind: str  # run_finished, blocked, circuit_open, usage_limit, usage_limit_lifted, budget,
    # on_hold
    title: str
    text: str
    run: str = ""
    ts: str = ""
    is_last: bool = False  # nothing more will be told before the run ends
    story: str = ""  # that waits for an answer
    command: str = ""  # what to type about it
    page: str = ""  # where the page is served that shows it; it holds no secret

    @property
    def way(self) -> str:
        """What to do about it, in words: on the page, or by the command."""
        verb = "Answer" if self.kind == "blocked" else "Look"
        places = filter(None, (self.page, f"`{self.command}`" if self.command else ""))
        return f"{verb}: {' or '.join(places)}"


class Decider:
    """Remembers what was told, and decides what comes next.  Pure."""

    def __init__(self, most: int = 6) -> None:
        self._most = most
        self._sent = 0
        self._run = events.RunStarted()
        self._event: LoopEvent  # the newest
        self._told: set[str] = set()
        self._is_limited = False

    def on_event(self, event: LoopEvent) -> Message | None:
        self._run = events.as_of_now(self._run, event.what)
        self._event = event
        match event.what:
            case events.AgentStep(kind=kind) if kind in _WORKING:
                return self._lifted()
            case events.IterationFinished(iteration=ended):
                return self._after_iteration(ended)
            case events.CircuitChanged(after=Circuit.OPEN, reason=reason):
                text = f"{_sentence(reason)} The run stops."
                return self._message("circuit_open", "the circuit is open", text)
            case events.Waiting(kind="quota", until=str()) as what if not self._is_limited:
                self._is_limited = True
                pause = format_duration(what.seconds)
                back = clock_time(event.at + what.seconds, event.at)
                text = f"{_sentence(what.reason)} It goes on at {back}, in {pause}."
                return self._limited("usage_limit", "usage limit reached", text)
            case events.Waiting(needs_you=True, until=str(), reason=reason):
                title = f"on hold: {one_line(reason, 60)}"
                return self._limited("on_hold", title, _sentence(reason), once=True)
            case events.RunFinished(decision=word, reasons=reasons, limit=limit):
                if word is ExitDecision.CIRCUIT_OPEN and "the circuit is open" in self._told:
                    return None
                why = "; ".join(reasons)
                kind = _KINDS.get(word, "run_finished")
                return self._message(kind, decided(word, limit), _sentence(why) if why else "")
        return None

    def _after_iteration(self, ended: Iteration) -> Message | None:
        works = not ended.analysis.outcome.is_infrastructure
        if works and (lifted := self._lifted()):
            return lifted
        status = ended.analysis.status
        goes_on = ended.decision.word is ExitDecision.CONTINUE
        if status is not None and status.status is Status.BLOCKED and goes_on:
            story = ended.story.id if ended.story else ""
            asks = status.recommendation or "see `ralph stories`"
            text = f"{story} waits for a person: {_sentence(asks)} Other stories go on."
            told = self._limited("blocked", f"{story} waits for you", text, once=True)
            if told is not None:
                command = f'ralph answer {shlex.quote(story)} "…"'
                return msgspec.structs.replace(told, story=story, command=_encodable(command))
        # What is used up ends the run, which is told anyway.
        run = self._run
        if _NEAR * run.max_cost_usd <= run.cost_usd < run.max_cost_usd:
            text = f"${run.cost_usd:.2f} of ${run.max_cost_usd:.2f} is spent."
        elif _NEAR * run.max_tokens <= run.tokens < run.max_tokens:
            text = f"{run.tokens:,} of {run.max_tokens:,} tokens are used."
        else:
            return None
        return self._limited("budget", "80 % of the budget is spent", text, once=True)

    def _lifted(self) -> Message | None:
        if not self._is_limited:
            return None
        self._is_limited = False
        return self._limited("usage_limit_lifted", "usage limit lifted", "The agent works again.")

    def _limited(self, kind: str, what: str, text: str, *, once: bool = False) -> Message | None:
        """A message that only comes while there is room for it, and if so asked only once."""
        room = self._most - 1 - self._sent
        if room <= 0 or (once and what in self._told):
            return None
        message = self._message(kind, what, text)
        if room > 1:
            return message
        words = f"{message.text} This is the last message before the run ends."
        return msgspec.structs.replace(message, text=words, is_last=True)

    def _message(self, kind: str, what: str, text: str) -> Message:
        self._sent += 1
        self._told.add(what)
        run = self._run
        event = self._event
        stories = f"{run.passed} of {counted(run.stories, 'story')} passed" if run.stories else ""
        spent = spent_words(run.cost_usd, run.unpriced)
        spent = spent if run.unpriced else f"{spent} spent"
        stands = ", ".join(filter(None, (stories, spent, quota_words(run.quota, event.at))))
        head = f"{run.project or 'ralph'}: {what}"
        body = f"{text} {stands}."
        return Message(
            id=f"{event.run}/{self._sent}-{kind}",
            kind=kind,
            title=_encodable(one_line(head, 100)),
            text=_encodable(one_line(body, 400)),
            run=event.run,
            ts=iso(event.at),
            command=_COMMANDS.get(kind, _LOOK),
        )


def _encodable(line: str) -> str:
    """The same for any encoder: agents print half characters too."""
    return line.encode("utf-8", "replace").decode()


def _sentence(words: str) -> str:
    return words if words.endswith((".", "?", "!", "…")) else f"{words}."
