"""Which event of a run becomes which message, and sending it on a thread of its own.

Few a night: a circuit that opens ends the run, so the end is not told again; a usage limit is told
once, and called lifted only when the agent has worked again; a story that waits is told at once
only while others go on.  At most `most - 1` are sent before the end, and the last of them says so.

`Notifier.on_event` never waits, never raises, never prints; what could not be sent is kept as words
for whoever closes it.  Programs get an argv and a deadline, never a shell; a command of the work
tree, which agents may have changed by then, runs where `begin` lets it.
"""

import html
import os
import queue
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from ralphloop.config.model import NotifySection
from ralphloop.core import events
from ralphloop.core.events import LoopEvent
from ralphloop.core.iteration import Iteration
from ralphloop.core.model import Circuit, ExitDecision, Value
from ralphloop.core.planning import decided
from ralphloop.core.totals import quota_words, spent_words
from ralphloop.errors import RalphError
from ralphloop.proc import programs
from ralphloop.proc.programs import Beginning
from ralphloop.proc.run import Output, run_command
from ralphloop.redaction import redact
from ralphloop.text.durations import clock_time, format_duration, iso
from ralphloop.text.plain import counted, one_line
from ralphloop.text.status_block import Status

_NEAR = 0.8
_WORKING = ("tool", "tool_result")  # what an agent cannot do while it is out of quota
_KINDS = {ExitDecision.BLOCKED: "blocked", ExitDecision.CIRCUIT_OPEN: "circuit_open"}
_MOST_PROBLEMS = 10
_PATIENCE_S = 20.0
_TIMEOUT_S = 15.0
_MAC = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


class Message(Value, kw_only=True):
    """What a person is told; its JSON goes to commands and webhooks."""

    id: str  # the same however often it has to be sent
    kind: str  # run_finished, blocked, circuit_open, usage_limit, usage_limit_lifted, budget,
    # on_hold
    title: str
    text: str
    run: str = ""
    ts: str = ""
    is_last: bool = False  # nothing more will be told before the run ends


Channel = Callable[[Message], str]
# How a command of the settings is begun: its words and its environment, in a sandbox or not.
Begin = Callable[[Sequence[str]], Beginning]


def as_it_is(argv: Sequence[str]) -> Beginning:
    """As the person would start it."""
    return Beginning(argv, os.environ)


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
            case events.RunFinished(decision=word, reasons=reasons):
                if word is ExitDecision.CIRCUIT_OPEN and "the circuit is open" in self._told:
                    return None
                why = "; ".join(reasons)
                kind = _KINDS.get(word, "run_finished")
                return self._message(kind, decided(word, why), _sentence(why) if why else "")
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
            if told := self._limited("blocked", f"{story} waits for you", text, once=True):
                return told
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
        # Any encoder takes that: agents print half characters too.
        said = one_line(head, 100), one_line(body, 400)
        title, words = (line.encode("utf-8", "replace").decode() for line in said)
        return Message(
            id=f"{event.run}/{self._sent}-{kind}",
            kind=kind,
            title=title,
            text=words,
            run=event.run,
            ts=iso(event.at),
        )


def _sentence(words: str) -> str:
    return words if words.endswith((".", "?", "!", "…")) else f"{words}."


class Notifier:
    def __init__(
        self,
        config: NotifySection,
        *,
        cwd: Path | None = None,
        secrets: Iterable[str] = (),
        channels: Sequence[Channel] | None = None,
        begin: Begin = as_it_is,
    ) -> None:
        self._channels = channels_for(config, cwd, begin) if channels is None else channels
        self._decider = Decider(config.most)
        self._secrets = tuple(secrets)
        self._queue: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._problems: dict[str, None] = {}

    def on_event(self, event: LoopEvent) -> None:
        if not self._channels or not (message := self._decider.on_event(event)):
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_all, name="notify", daemon=True)
            self._thread.start()
        title, text = (redact(words, self._secrets) for words in (message.title, message.text))
        self._queue.put(msgspec.structs.replace(message, title=title, text=text))

    def close(self, patience_s: float = _PATIENCE_S) -> tuple[str, ...]:
        """Wait a little for what is still to be sent; returns all problems in words."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(patience_s)
            if self._thread.is_alive():
                self._note("notification: the last one was not sent in time")
        return tuple(self._problems)

    def _send_all(self) -> None:
        while (message := self._queue.get()) is not None:
            for channel in self._channels:
                try:
                    problem = channel(message)
                except Exception as error:  # noqa: BLE001 - one channel must not silence the others
                    problem = f"notification: {type(error).__name__}: {error}"
                self._note(problem)

    def _note(self, problem: str) -> None:
        if problem and len(self._problems) < _MOST_PROBLEMS:
            self._problems.setdefault(redact(problem, self._secrets))


def to_desktop(message: Message) -> str:
    """A bubble on the screen of this machine, by whatever program this system has for it."""
    if sys.platform == "darwin":
        script = [word for line in _MAC for word in ("-e", line)]
        return _run(_own("osascript", *script, message.title, message.text))
    # The body is markup there; the title is not.
    text = html.escape(message.text, quote=False)
    return _run(_own("notify-send", "--app-name=ralph", "--", message.title, text))


def _own(program: str, *words: str) -> Beginning:
    """A program of this machine, never one that an agent could have put on PATH."""
    return Beginning((programs.find(program) or program, *words), programs.trusted_environment())


def to_command(
    message: Message,
    argv: Sequence[str],
    cwd: Path | None,
    timeout_s: float = _TIMEOUT_S,
    begin: Begin = as_it_is,
) -> str:
    """A command that reads the message as JSON on its standard input."""
    try:
        beginning = begin(argv)
    except (OSError, RalphError) as error:
        return f"notification: {argv[0]} could not be started: {error}"
    return _run(
        beginning, msgspec.json.encode(message), cwd=cwd, timeout_s=timeout_s, named=argv[0]
    )


def channels_for(config: NotifySection, cwd: Path | None, begin: Begin = as_it_is) -> list[Channel]:
    found: list[Channel] = []
    if config.desktop:
        found.append(to_desktop)
    if config.command:
        found.append(partial(to_command, argv=config.command, cwd=cwd, begin=begin))
    if config.webhook:
        from ralphloop.notify.webhook import Webhook

        found.append(Webhook(config.webhook, private=config.webhook_private).send)
    return found


def unsendable(config: NotifySection) -> list[str]:
    """What would keep messages from being sent, as far as it can be known beforehand."""
    bubble = "osascript" if sys.platform == "darwin" else "notify-send"
    programs = ([bubble] if config.desktop else []) + list(config.command[:1])
    gone = [program for program in programs if shutil.which(program) is None]
    found = [f"notifications: {program} was not found" for program in gone]
    if config.webhook:
        from ralphloop.notify.webhook import Webhook

        found.append(Webhook(config.webhook).problem)
    return [problem for problem in found if problem]


def _run(
    beginning: Beginning,
    stdin: bytes = b"",
    *,
    cwd: Path | None = None,
    timeout_s: float = _TIMEOUT_S,
    named: str = "",
) -> str:
    name = named or Path(beginning.argv[0]).name
    where = ", in the sandbox, because it is a command of the work tree" * beginning.confined
    try:
        ended = run_command(
            beginning.argv,
            cwd=cwd,
            env=beginning.env,
            stdin=stdin,
            timeout_s=timeout_s,
            output=Output.NOTHING,
        )
    except (OSError, ValueError) as error:
        return f"notification: {name} could not be started: {error}"
    if ended.timed_out:
        return f"notification: {name} did not end within {timeout_s:g} s{where}"
    return f"notification: {name} ended with {ended.returncode}{where}" if ended.returncode else ""
