"""Running an agent: start it, read it, watch it, stop it with everything it started.

One that exits has 5 s for what it left behind.  One whose clock runs out, that a person stops, that
hangs on after its result or will never work is stopped with SIGINT, SIGTERM and SIGKILL to the
whole tree.  Output is redacted before anybody sees it, reader and disk alike.
"""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial

import msgspec

from ralphloop.agents.base import Launch
from ralphloop.agents.environment import local_time
from ralphloop.agents.meter import Meter, Reading
from ralphloop.agents.prices import Rows
from ralphloop.agents.transcript import Transcript
from ralphloop.core.events import AgentStep
from ralphloop.core.iteration import Result
from ralphloop.core.model import Ceiling, Outcome, ProcessEnd
from ralphloop.proc.child import Child, Clocks, FileProbe
from ralphloop.proc.sandbox import exit_code_of, in_words, refused_paths
from ralphloop.proc.threads import StopSignal
from ralphloop.proc.tree import (
    AT_ONCE,
    ProcessTree,
    Stages,
    become_subreaper,
    children_now,
    gentle,
    names_of,
)
from ralphloop.readers import reader_for
from ralphloop.readers.acp import Acp
from ralphloop.readers.base import SAME_ERRORS
from ralphloop.readers.own_words import BoundedText
from ralphloop.readers.stream import Reader
from ralphloop.redaction import Joiner, Redactor, secret_values
from ralphloop.text.durations import format_duration

_SAMPLE_S = 0.5  # how often the tree is remembered where orphans do not come to us
_COLLECT_S = 5.0
_LAST_WORDS_S = 0.5
_MOST_LAST_WORDS_S = 5.0
_LEFTOVER_FIRST_S = 1.0
_CEILING_GRACE_S = 1.0
_GOODBYE_S = 2.0
_GOODBYE_AT_CEILING_S = 0.25
_TURN_ENDED_S = 3.0  # an agent that we speak with stays until it is told to go
_METER_S = 0.3  # how often it is looked at what it has used


class Cause(Enum):
    NONE = auto()  # it ended by itself
    WALL_CLOCK = auto()
    STALLED = auto()
    REQUESTED = auto()
    RESULT = auto()  # it had said its result and did not go
    FATAL = auto()
    ERROR_LOOP = auto()  # the same error again and again
    CEILING = auto()  # it used as much as it may
    OUT_OF_TIME = auto()  # of the run


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """How long the agent may do what; zero switches a clock off."""

    wall_s: float = 0.0
    stall_s: float = 0.0
    after_result_grace_s: float = 30.0
    exit_grace_s: float = 5.0
    stop_grace_s: float = 5.0
    adopt_orphans: bool = True
    is_over: Callable[[], str] = str  # why the time of the whole run is over, once it is
    is_too_much: Callable[[Reading], str] | None = None  # which ceiling it has met, once it has
    ceiling: Ceiling = ""  # whose that is
    prices: Rows = field(default_factory=dict)  # that settings state, for what it has used so far


async def run_agent(
    launch: Launch,
    *,
    sink: Transcript,
    rules: Rules,
    stop: StopSignal,
    on_event: Callable[[AgentStep], None] = lambda _: None,
    on_start: Callable[[int, float], None] = lambda _pid, _started: None,
    file_probe: FileProbe | None = None,
) -> Result:
    """Run an agent to its end, whatever that is; nothing of it is left when this returns.

    `on_start` is told pid and start time at once, for the journal.  `file_probe` returns a value
    that changes when files of the work tree do; it is asked rarely, in a thread.
    """
    began = time.monotonic()
    box = launch.box
    reader = reader_for(launch.reader)
    adopting = rules.adopt_orphans and become_subreaper()
    strangers = children_now() if adopting else frozenset[int]()
    try:
        argv = launch.argv
        env = launch.env
        child = Child(*(box.start(argv, launch.cwd, env) if box else (argv, env)), cwd=launch.cwd)
    except (OSError, ValueError) as error:
        # An outcome, not an exception: the loop counts them.
        words = f"cannot start {launch.argv[0]}: {error}"
        sink.err(f"{words}\n".encode("utf-8", "replace"))
        end = ProcessEnd(exit_code=127 if isinstance(error, FileNotFoundError) else 126)
        response = reader.finish(exit_code=end.exit_code, stderr=words)
        response = msgspec.structs.replace(response, outcome=Outcome.STARTUP_ERROR, reason=words)
        return Result(end=end, response=response, stderr_tail=words)
    boxed = box is not None
    tree = ProcessTree(child.pid, launch.mark, strangers=strangers, adopting=adopting, boxed=boxed)
    run = _Run(launch, rules, sink, stop, on_event, reader, child, tree)
    try:
        on_start(child.pid, tree.started)
        await run.to_the_end(file_probe)
        return run.finished(time.monotonic() - began)
    finally:
        run.leave_nothing_behind()
        if box:
            box.disarm()


@dataclass(eq=False)
class _Run:
    launch: Launch
    rules: Rules
    sink: Transcript
    stop: StopSignal
    on_event: Callable[[AgentStep], None]
    reader: Reader
    child: Child
    tree: ProcessTree

    def __post_init__(self) -> None:
        now = time.monotonic()
        wall = time.time()
        rules = self.rules
        limits = rules.wall_s, rules.stall_s
        self._clocks = Clocks(self.tree.members, *limits, monotonic=now, wall=wall)
        secrets = secret_values({**os.environ, **self.launch.env})
        self._clean_out, self._clean_err = Redactor(secrets), Redactor(secrets)
        self._joined = Joiner()
        self._stderr = BoundedText(head=8 * 1024, tail=56 * 1024)
        self._output_bytes = 0
        self._last_step = now
        self._meter = Meter(self.launch, rules.prices) if rules.is_too_much else None
        self._cause = Cause.NONE
        self._words = ""
        self._leftovers: tuple[str, ...] = ()
        self._everybody = partial(self.tree.members, thorough=True)
        self._refused: dict[str, None] = {}
        self._to_say: asyncio.Queue[bytes] = asyncio.Queue()
        self._turn_ended = asyncio.Event()
        self._is_over = False  # it has exited, and nobody of its tree is left
        self._readers: list[asyncio.Task[None]] = []

    async def to_the_end(self, probe: FileProbe | None) -> None:
        writer = asyncio.create_task(self._tell())
        self._readers = [
            asyncio.create_task(self.child.read("stdout", self._take_out)),
            asyncio.create_task(self.child.read("stderr", self._take_err)),
        ]
        try:
            await self._watch(probe)
            if self._cause is Cause.NONE:
                await self._settle()
            else:
                members = self._everybody()
                if self._cause is Cause.RESULT and self.launch.client is None:
                    self._leftovers = names_of(m for m in members if m.pid != self.child.pid)
                await self._say_goodbye()
                patience = self.rules.stop_grace_s
                if self._cause is Cause.CEILING:  # every moment costs
                    patience = min(patience, _CEILING_GRACE_S)
                await self._end_all(gentle(patience))
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.child.exited(), 1.0)
            # Read what is still in the pipes; whoever else holds them open is not waited for.
            deadline = time.monotonic() + _MOST_LAST_WORDS_S
            heard = -1
            while heard != self._output_bytes and time.monotonic() < deadline:
                if all(reader.done() for reader in self._readers):
                    break
                heard = self._output_bytes
                await asyncio.wait(self._readers, timeout=_LAST_WORDS_S)
            self._raise_reading_errors()
            out = self._joined.feed(self._clean_out.finish()) + self._joined.finish()
            self._pass_on(out, self._clean_err.finish())
        finally:
            await _cancel(writer, *self._readers)

    async def _tell(self) -> None:
        """Hand over the prompt, or speak with the agent until its turn has ended."""
        client = self.launch.client
        if client is None:
            await self.child.write_all(self.launch.stdin)
            return
        self._to_say.put_nowait(client.greeting())
        while not self._has_ended_turn:
            await self.child.write(await self._to_say.get())
        await self.child.write_all(b"")  # nothing more is said: it may go

    async def _say_goodbye(self) -> None:
        """Ask an agent that we speak with to end its turn, and give it a moment to do so."""
        client = self.launch.client
        if client is None or not (wish := client.goodbye(self.reader.dialect)):
            return
        self._to_say.put_nowait(wish)
        patience = _GOODBYE_AT_CEILING_S if self._cause is Cause.CEILING else _GOODBYE_S
        with suppress(TimeoutError):
            await asyncio.wait_for(self._turn_ended.wait(), patience)

    @property
    def _has_ended_turn(self) -> bool:
        return self.reader.dialect.result_seen and self._to_say.empty()

    async def _watch(self, probe: FileProbe | None) -> None:
        """Until the agent exits or there is a reason to stop it."""
        exited = asyncio.create_task(self.child.exited())
        asked = asyncio.create_task(self.stop.wait())
        house_s = _COLLECT_S if self.tree.adopting else _SAMPLE_S
        pause = min(self._clocks.tick_s, house_s)
        if self._meter is not None:
            pause = min(pause, _METER_S)
        next_look = 0.0
        first = asyncio.FIRST_COMPLETED
        try:
            while self._cause is Cause.NONE:
                await asyncio.wait({exited, asked}, timeout=pause, return_when=first)
                if exited.done():
                    return
                if asked.done():
                    self._cause = Cause.REQUESTED
                    self._words = self.stop.reason
                    return
                self._raise_reading_errors()
                now = time.monotonic()
                self._clocks.tick(now, time.time())
                if now >= next_look:
                    next_look = now + house_s
                    self.tree.keep_house()
                self._cause, self._words = await self._look(probe, now)
        finally:
            await _cancel(exited, asked)

    async def _look(self, probe: FileProbe | None, now: float) -> tuple[Cause, str]:
        """Why it has to be stopped now, if it has."""
        # Counted from its last visible step: background work may start a second turn.
        quiet = now - self._last_step
        rules = self.rules
        said = self.reader.dialect
        if said.fatal_hint:
            return Cause.FATAL, said.fatal_hint
        if said.error_loop:
            return Cause.ERROR_LOOP, f"the same error came {SAME_ERRORS} times: {said.error_loop}"
        grace = rules.after_result_grace_s if self.launch.client is None else _TURN_ENDED_S
        if said.result_seen and quiet >= grace:
            words = "it had given its result and did not exit"
            return Cause.RESULT, words if self.launch.client is None else ""
        if self._meter is not None and rules.is_too_much is not None:
            words = rules.is_too_much(self._meter.read(said))
            if words:
                return Cause.CEILING, words
        if self._clocks.out_of_time:
            return Cause.WALL_CLOCK, f"still running after {format_duration(rules.wall_s)}"
        if words := rules.is_over():
            return Cause.OUT_OF_TIME, words
        if await self._clocks.is_stalled(now, probe):
            limit = format_duration(rules.stall_s)
            return Cause.STALLED, f"no output, no work, no file change for {limit}"
        return Cause.NONE, ""

    async def _settle(self) -> None:
        """After a normal exit: a moment for what it left running, then stop that too."""
        deadline = time.monotonic() + self.rules.exit_grace_s
        pause = 0.005
        while not self.tree.is_empty():
            if time.monotonic() >= deadline or self.stop.requested:
                self._leftovers = names_of(self._everybody())
                patience = self.rules.stop_grace_s
                await self._end_all(gentle(patience, min(patience, _LEFTOVER_FIRST_S)))
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.1)
        self._is_over = True

    async def _end_all(self, stages: Stages) -> None:
        for pause in self.tree.stopping(stages, lambda: self.stop.at_once):
            await asyncio.sleep(pause)

    def leave_nothing_behind(self) -> None:
        """However this ended, also by an error of ours: kill what lives, close what is open."""
        if not self._is_over and (self.child.exit_code is None or not self.tree.is_empty()):
            self.tree.stop(AT_ONCE)
            self.child.reap()
        self.child.close()
        self.tree.close()

    def finished(self, duration_s: float) -> Result:
        code = self.child.exit_code
        end = ProcessEnd(
            exit_code=code if self.launch.box is None else exit_code_of(code),
            timed_out=self._cause is Cause.WALL_CLOCK,
            stalled=self._cause is Cause.STALLED,
            interrupted=self._cause is Cause.REQUESTED,
            out_of_time=self._cause is Cause.OUT_OF_TIME,
            ceiling=self._met_ceiling(),
            duration_s=duration_s,
        )
        stderr = self._stderr.value()
        now = local_time(time.time(), self.launch.env)
        response = self.reader.finish(exit_code=end.exit_code, stderr=stderr, now=now)
        if refused := in_words(list(self._refused), self.launch.box):
            warnings = (*response.warnings, *refused)
            response = msgspec.structs.replace(response, warnings=warnings)
        if self._cause is Cause.CEILING and response.outcome is not Outcome.COMPLETED:
            response = msgspec.structs.replace(response, outcome=Outcome.LIMIT, reason=self._words)
        if self._cause is Cause.FATAL:
            response = msgspec.structs.replace(response, outcome=Outcome.FATAL, reason=self._words)
        return Result(
            end=end,
            response=response,
            stopped_because=self._words,
            leftovers=self._leftovers,
            stderr_tail=stderr,
        )

    def _met_ceiling(self) -> Ceiling:
        """Whose ceiling ended it: ours while it ran, or the agent's own word for the same one."""
        is_ours = self._cause is Cause.CEILING or self.reader.dialect.budget_ended
        return self.rules.ceiling if is_ours else ""

    def _take_out(self, chunk: bytes) -> None:
        self._output_bytes += len(chunk)
        self._clocks.sign_of_life()
        self._pass_on(self._joined.feed(self._clean_out.feed(chunk)), b"")

    def _take_err(self, chunk: bytes) -> None:
        self._clocks.sign_of_life()
        self._pass_on(b"", self._clean_err.feed(chunk))

    def _pass_on(self, out: bytes, err: bytes) -> None:
        """Clean output: to disk, and to those who make something of it."""
        box = self.launch.box
        for clean, sink in ((out, self.sink.out), (err, self.sink.err)):
            if clean:
                sink(clean)
            # What the sandbox kept it from writing, by its own words.
            if box is not None and (b"Read-only file system" in clean or b"EROFS" in clean):
                self._refused |= dict.fromkeys(refused_paths(clean.decode("utf-8", "replace"), box))
        if err:
            self._stderr.add(err.decode("utf-8", "replace"))
        # What it says while it is being stopped must not replace its result, or why it cannot work.
        if out and self._cause not in {Cause.RESULT, Cause.FATAL, Cause.ERROR_LOOP}:
            steps = list(self.reader.feed(out))
            if self.launch.client is not None and isinstance(self.reader.dialect, Acp):
                dialect = self.reader.dialect
                for reply in self.launch.client.replies(dialect):
                    self._to_say.put_nowait(reply)
                steps += dialect.steps
                dialect.steps = []
                if dialect.result_seen:
                    self._turn_ended.set()
                    self._to_say.put_nowait(b"")  # whoever waits to say more sees that it is over
            for event in steps:
                self._last_step = time.monotonic()
                self.on_event(event)

    def _raise_reading_errors(self) -> None:
        for task in self._readers:
            if task.done():
                task.result()


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    going_on = [task for task in tasks if task.cancel()]
    if going_on:
        await asyncio.wait(going_on)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not complain about it
