"""The live console: events as lines that scroll, and on a terminal a status that stays.

Words in events come from story files and agents: what they hold besides, such as terminal control
sequences, is taken off.  The lines (`Telling`) also serve pipes, logs, the monitor and the page.
"""

import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ralphloop.core import events
from ralphloop.core.events import LoopEvent, RunStarted
from ralphloop.core.model import CheckResult, CheckStatus, Circuit, ExitDecision, Outcome
from ralphloop.core.planning import decided
from ralphloop.core.policy import limit_words
from ralphloop.core.sentences import is_about_the_agent
from ralphloop.core.totals import money, quota_words, spent_words, token_words
from ralphloop.text.durations import clock, clock_time, format_duration, parse_iso
from ralphloop.text.plain import counted, one_line, some
from ralphloop.ui.monitor.paint import CIRCUIT_TONES, Tone, bar, plain

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

_LONGEST_LINE = 2_000
_MOST_LOOKS = 3
_MOST_TESTS = 3
_QUIET = (events.StoryPassed, events.StoryHeldBack, events.CircuitChanged, events.RunFinished)
_WARNING = (events.LaneLeft, events.LanesMended)
_SILENT_WHEN_GOOD = ("tool_result", "result", "status")
_WORDS: dict[type[events.Event], str] = {  # of events whose fields say all
    events.StatusAsked: "    asked for the status block that its answer lacks",
    events.StorySetAside: "  ⊘ {it.story} is set aside: {it.reason}",
    events.StoryBlocked: "  ? {it.story} waits for you: {it.reason}",
    events.StoryReopened: "  ↻ {it.story} is open again: {it.reason}",
    events.StoryReturned: "  ↻ {it.story} goes back to its lane: {it.reason}",
    events.LaneLeft: "  ! {it.story}: {it.reason}",
    events.LanesMended: "  ! {it.reason}",
    events.CommitsSeen: "  {it.words}; the run goes on from there",
    events.CircuitChanged: "  circuit {it.before} → {it.after}: {it.reason}",
    events.RequestAnswered: "  {it.kind}: {it.answer}",
    events.Unknown: "{it.name}",
}
_TONES = {
    events.RunStarted: Tone.STRONG,
    events.Preflight: Tone.QUIET,
    events.IterationStarted: Tone.STRONG,
    events.StoryPassed: Tone.GOOD,
    events.StorySetAside: Tone.WARN,
    events.StoryBlocked: Tone.WARN,
    events.Waiting: Tone.WARN,
    events.RequestAnswered: Tone.BUSY,
    events.RunFinished: Tone.STRONG,
}
_STYLES = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.QUIET: "dim",
    Tone.GOOD: "green",
    Tone.WARN: "yellow",
    Tone.BAD: "red",
    Tone.BUSY: "cyan",
}


class PlainConsole:
    """Lines only: for pipes, logs and terminals that cannot do more."""

    def __init__(self, *, verbosity: int = 0) -> None:
        self._telling = Narrator(verbosity)
        self._day = ""

    def show(self, event: LoopEvent) -> None:
        day = clock(event.at, form="%Y-%m-%d")
        for line in self._telling.lines(event):
            at = f"{clock(event.at, form='%H:%M')} {line.lane}"
            if self._day not in ("", day):
                self._print(at, day, Tone.PLAIN)
            self._day = day
            self._print(at, line.text, line.tone)

    def _print(self, at: str, line: str, tone: Tone) -> None:
        try:
            sys.stdout.write(f"{at}{line}\n")
            sys.stdout.flush()
        except OSError:
            pass  # whoever was looking is gone; the run goes on

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """The screen for somebody else, who asks a question: nothing is drawn over it."""
        yield

    def close(self) -> None:
        """Nothing is left on the screen that would have to go."""


class LiveConsole(PlainConsole):
    """Lines above, a status below that is redrawn twice a second."""

    def __init__(self, *, verbosity: int = 0) -> None:
        super().__init__(verbosity=verbosity)
        self._run = RunStarted()
        self._began = self._sign = time.monotonic()
        self._now: tuple[int | None, events.IterationStarted] | None = None
        self._flying: dict[int | None, str] = {}  # what each lane does
        self._action = ""
        self._wait: tuple[str, float] | None = None
        self._live: Live | None = self._begin_drawing()

    def _begin_drawing(self) -> "Live":
        """A status that is redrawn from now on; one that was stopped knows of lines above it."""
        from rich.console import Console
        from rich.live import Live

        live = Live(
            get_renderable=self._status,
            console=Console(highlight=False, soft_wrap=False),
            refresh_per_second=2,
            transient=True,
        )
        live.start()
        return live

    @contextmanager
    def suspended(self) -> Iterator[None]:
        was_drawing = self._drawing() is not None
        self._stop_drawing()
        try:
            yield
        finally:
            if was_drawing and sys.stdout.isatty():
                self._live = self._begin_drawing()

    def close(self) -> None:
        self._stop_drawing()

    def show(self, event: LoopEvent) -> None:
        self._sign = time.monotonic()
        self._run = events.as_of_now(self._run, event.what)
        match event.what:
            case RunStarted(active_s=active_s):  # of a session that may be continued
                self._began = self._sign - active_s
            case events.IterationStarted() as what:
                self._now = (event.iteration, what)
                self._wait = None
                self._action = "starting"
                if what.lane:
                    self._flying[event.iteration] = f"lane {what.lane}  {what.story}: {what.title}"
            case events.AgentStep() as what:
                self._action = step_words(what) or self._action
            case events.ExperimentBegun(what=tried):
                self._action = f"trying {tried}"
            case events.IterationFinished(iteration=kept):
                self._flying.pop(event.iteration, None)
                self._action = kept.analysis.outcome.words
            case events.Waiting(until=until, reason=reason):
                self._wait = (reason, parse_iso(until)) if until else None
        super().show(event)

    def _print(self, at: str, line: str, tone: Tone) -> None:
        live = self._drawing()
        if live is None:
            self._stop_drawing()
            super()._print(at, line, tone)
            return
        from rich.text import Text

        words = line.lstrip(" ")
        console = live.console
        indent = " " * (len(at) + len(line) - len(words))
        has_mark = words[1:2] == " "
        hang = f"{indent}  " if has_mark else indent  # below the words, not below their mark
        try:
            room = max(20, console.width - len(hang))
            for row, text in enumerate(Text(words, _STYLES[tone]).wrap(console, room)):
                head = (at.ljust(len(indent)), "dim") if row == 0 else hang
                console.print(Text.assemble(head, text), soft_wrap=True)
        except OSError:
            self._stop_drawing()  # it went in this very moment; the run goes on

    def _drawing(self) -> "Live | None":
        """The status that is drawn; none once the terminal was closed or the log took its place."""
        return self._live if sys.stdout.isatty() else None

    def _stop_drawing(self) -> None:
        """Draw no more, and leave nothing behind."""
        live = self._live
        self._live = None
        if live is None:
            return
        live.console.quiet = not sys.stdout.isatty()
        with suppress(OSError):
            live.stop()

    def _status(self) -> "RenderableType":
        from rich.text import Text

        run = self._run
        now = time.monotonic()
        passed = "plain loop" if run.project else "getting ready"
        if run.stories:
            passed = f"{plain(bar(run.passed / run.stories, 24))} {run.passed}/{run.stories}"
        text = Text(passed, no_wrap=True, overflow="ellipsis")
        if self._now:
            number, what = self._now
            text.append(f"  [{number}] {one_line(what.story or 'the prompt', 60)}", "bold")
            text.append(f" {one_line(what.title, 40)}")
        text.append(f"\n{format_duration(now - self._began)}")
        text.append(f" of {format_duration(run.max_time_s)}" if run.max_time_s else "")
        text.append(f"  {spent_words(run.cost_usd, run.unpriced)}")
        text.append(f" of {money(run.max_cost_usd)}" if run.max_cost_usd else "")
        if run.max_tokens:
            text.append(f"  {run.tokens:,} of {run.max_tokens:,} tokens")
        quota = quota_words(run.quota, time.time())
        text.append(f"  {quota}" if quota else "")
        if run.circuit != Circuit.CLOSED:
            text.append("  circuit ").append(run.circuit, _STYLES[CIRCUIT_TONES[run.circuit]])
        if self._wait:
            reason, until = self._wait
            left = format_duration(max(0, until - time.time()))
            return text.append(f"  waiting {left}: {one_line(reason, 60)}", "dim")
        for words in self._flying.values():
            text.append(f"\n{one_line(words, 100)}")
        action = one_line(self._action, 60)
        return text.append(f"  {action} ({format_duration(now - self._sign)} ago)", "dim")


class Said(NamedTuple):
    """One line about an event, before it is cut to size."""

    text: str
    is_warning: bool = False
    is_told_once: bool = False  # it holds for every start alike


class LogLine(NamedTuple):
    at: float
    text: str  # one line, indented where it belongs to the one above
    tone: Tone
    lane: str = ""  # `2│ ` where it happened in the second


class Narrator:
    """What there is to say about the events of a run; nothing for agent steps unless asked."""

    def __init__(self, verbosity: int = 0) -> None:
        self._verbosity = verbosity
        self._titled: set[str] = set()  # stories whose title was told
        self._tried: dict[int | None, list[str]] = {}  # iteration → what was tried in it
        self._lanes: dict[int | None, str] = {}  # iteration → the lane it is in
        self._told_once: set[str] = set()

    def lines(self, event: LoopEvent) -> Iterator[LogLine]:
        what = event.what
        verbosity = self._verbosity
        if isinstance(what, events.IterationStarted) and what.lane:
            self._lanes[event.iteration] = f"{what.lane}│ "
        if verbosity < 0 and not isinstance(what, _QUIET):
            return
        if verbosity < 1 and isinstance(what, events.AgentStep):
            return
        tried: list[str] = []
        if isinstance(what, events.ExperimentBegun):  # told after the agent's end and the checks
            self._tried.setdefault(event.iteration, []).append(what.what)
        elif isinstance(what, events.IterationFinished):
            tried = self._tried.pop(event.iteration, [])
        lane = self._lanes.get(event.iteration, "")
        tone = _TONES.get(type(what), Tone.PLAIN)
        if isinstance(what, events.CircuitChanged):
            tone = CIRCUIT_TONES[what.after]
        elif isinstance(what, events.AgentStep):
            tone = Tone.WARN if what.ok is False else Tone.QUIET
        for said in self._drop_known(_tell(event, self._titled, tried)):
            words = one_line(said.text, _LONGEST_LINE)
            indent = " " * (len(said.text) - len(said.text.lstrip(" ")))
            its_tone = Tone.WARN if said.is_warning else tone
            yield LogLine(event.at, indent + words, its_tone, lane)

    def _drop_known(self, lines: Iterable[Said]) -> Iterator[Said]:
        """The lines without what holds for every start and was told of an earlier one."""
        for said in lines:
            if said.is_told_once and said.text in self._told_once:
                continue
            if said.is_told_once:
                self._told_once.add(said.text)
            yield said


def seen_step(step: events.AgentStep) -> events.AgentStep | None:
    """The step as a person is told of it; results that went well and status blocks say nothing."""
    if step.kind in _SILENT_WHEN_GOOD and step.ok is not False:
        return None
    words = one_line(step.summary.split("---RALPH_STATUS---")[0], 500)
    return replace(step, summary=words) if words else None


def step_words(step: events.AgentStep) -> str:
    """What an agent says or does, where that says something."""
    seen = seen_step(step)
    if seen is None:
        return ""
    match step.kind:
        case "tool" | "limit" | "result":
            return seen.summary
        case "text":
            return f"“{seen.summary}”"
        case "tool_result":
            return f"{seen.summary} failed"
    return f"{step.kind}: {seen.summary}"


def short_duration(seconds: float) -> str:
    """A duration with tenths while they still matter."""
    return f"{seconds:.1f}s" if seconds < 10 else format_duration(seconds)


def _tell(event: LoopEvent, titled: set[str], tried: Sequence[str]) -> Iterator[Said]:
    """What there is to say about an event; `titled` are the stories whose title was told, `tried`
    are the experiments of an iteration that has finished."""
    if isinstance(event.what, events.IterationFinished):
        yield from _iteration_finished(event.what, event, tried)
        return
    warns = isinstance(event.what, _WARNING)
    for words in _words_of(event, titled):
        yield Said(words, warns)


def _words_of(event: LoopEvent, titled: set[str]) -> Iterator[str]:  # noqa: C901, PLR0912 - by kind
    if words := _WORDS.get(type(event.what)):
        yield words.format(it=event.what)
    match event.what:
        case events.RunStarted() as what:
            yield from _run_started(event.run, what)
        case events.Preflight(said=said):
            yield from (f"preflight: {line}" for line in said)
        case events.IterationStarted() as what:
            yield from _iteration_started(event.iteration, what, titled)
        case events.AgentChanged(agent=agent, away=""):
            yield f"  {agent} works again"
        case events.AgentChanged(agent=agent, away=away, until=until):
            back = "cannot work in this run"
            if until:
                back = f"is away until {clock_time(parse_iso(until), event.at)}"
            yield f"  {agent} takes over: {away} {back}"
        case events.AgentStep() as what:
            mark = "✗ " if what.ok is False else ""
            words = step_words(what)
            if words:
                yield f"    {mark}{words}"
        case events.StoryPassed() as what:
            yield f"  ✓ {what.story} passed ({what.grade}): {'; '.join(what.reasons)}"
        case events.StoryProposed(proposal=name, text=text, became=""):
            yield f"  found: {text} ({name}: ralph stories proposed)"
        case events.StoryProposed(proposal=name, became=became):
            called = "a story" if became == name else became
            yield f"  {name} is {called} now, because stories.accept_found says so"
        case events.Landing(in_train=True) as what:
            if what.ahead:
                below = f"on top of {some(what.on)}" if what.on else "without those before it"
                yield f"  {what.story} is judged {below}, to land in its turn"
        case events.Landing(story=story, ahead=ahead):
            # Said while it goes on: how the agent ended is told with what comes of it.
            how = f"waits for landing, {ahead} before it" if ahead else "is judged for landing"
            yield f"  {story} {how}"
        case events.StoriesEdited(changes=changes):
            yield from (f"  {words}" for words in changes)
        case events.LeftoversKept(ref=ref, files=files):
            back = f"git restore --source={ref} -- {shlex.quote(f':/{files[0]}')}"
            yield f"    kept at {ref}: {some(files)}; one of them is yours? {back}"
        case events.Waiting(kind="pause", until=str(), reason=reason, seconds=s) if s >= 1:
            yield f"  on hold: {reason}"
        case events.Waiting(until=str(until), reason=reason, seconds=s) if s >= 1:
            end = clock_time(parse_iso(until), event.at)
            yield f"  waiting {format_duration(s)} until {end}: {reason}"
        case events.RunFinished() as what:
            yield from _run_finished(what, event.at)


def _run_started(run: str, what: events.RunStarted) -> Iterator[str]:
    verb = "goes on" if what.continued else "starts"
    total = counted(what.stories, "story")
    stories = f", {what.passed} of {total} passed" if what.stories else ""
    agent = f"{what.agent}{' ' + what.model if what.model else ''}"
    where = f" on branch {what.branch}" if what.branch else ""
    yield f"run {run} {verb}: {what.project}{where}, agent {agent}{stories}"
    told = limit_words(what.max_iterations, what.max_cost_usd, what.max_tokens, what.max_time_s)
    if what.ends_at:
        told.append(f"until {clock_time(what.ends_at, what.ends_at)}")
    if what.reserve:
        told.append(f"{what.reserve:.0%} of each usage window is left")
    limits = ", ".join(told) or "none"
    # That nothing is wrong with the breaker is no news.
    circuit = "" if what.circuit == Circuit.CLOSED else f"; circuit {what.circuit}"
    yield f"limits: {limits}{circuit}"


def _iteration_started(
    number: int | None, what: events.IterationStarted, titled: set[str]
) -> Iterator[str]:
    story = f"{what.story}: {what.title}" if what.story else "the prompt"
    if what.story and story in titled:
        story = what.story
    titled.add(story)
    attempt = f", attempt {what.attempt}" if what.attempt > 1 else ""
    by = f", {what.by}" if what.by else ""
    yield f"[{number}] {story}{attempt}{by} ({what.prompt_tokens:,} prompt tokens)"
    yield from (f"    left out of the prompt: {part}" for part in what.left_out)


def _iteration_finished(
    what: events.IterationFinished, event: LoopEvent, tried: Sequence[str]
) -> Iterator[Said]:
    """How the agent ended, its checks, what was tried, and what speaks against it."""
    kept = what.iteration
    analysis = what.iteration.analysis
    took = short_duration(kept.end.duration_s)
    spent = spent_words(what.spent.cost_usd, what.spent.unpriced)
    files = kept.changed.count
    commits = kept.evidence.commits or 0
    work = f"{counted(files, 'file')} changed" if files or commits else "nothing changed"
    work += f", {counted(commits, 'commit')}" if commits else ""
    quota = quota_words(kept.response.windows, event.at)
    ended = analysis.outcome
    crash = "" if kept.stopped_because else kept.response.crash
    how = "crashed" if crash else ended.words
    how = "completed in" if ended is Outcome.COMPLETED else f"{how} after"
    where = f"{took} on {kept.machine}" if kept.machine else took
    facts = [where, spent, work, quota]
    yield Said(f"    {how} {', '.join(words for words in facts if words)}")
    if crash:
        yield Said(
            f"    {crash.rstrip('.')}. All of it: ralph log --iteration {event.iteration} --stderr"
        )
    elif kept.why_it_ended and analysis.outcome is not Outcome.COMPLETED:
        yield Said(f"    {kept.why_it_ended}")
    if kept.evidence.checks:
        results = (_check_words(check) for check in kept.evidence.checks)
        yield Said(f"    checks: {', '.join(results)}")
    for experiment in dict.fromkeys(tried):
        yield Said(f"    tried {experiment}")
    if analysis.story_claimed and not kept.verdict.passed:
        yield Said(f"    it says done, but {'; '.join(kept.verdict.reasons)}", is_warning=True)
    told = "; ".join(kept.verdict.reasons)  # which the verdict says below
    for words in kept.verdict.look_at[:_MOST_LOOKS]:
        if words not in told:
            yield Said(f"    look at: {words}")
    stuck = (pattern.detail for pattern in analysis.stuck)
    for words in (*what.all_warnings, *stuck, *kept.findings):
        yield Said(f"    ! {words}", is_warning=True, is_told_once=is_about_the_agent(words))


def _check_words(check: CheckResult) -> str:
    """How a check came out, with the tests that made it so."""
    words = f"{check.name} {check.status.replace('_', ' ')}"
    if check.status is not CheckStatus.FAILED or not check.failing_tests:
        return words
    return f"{words} ({some(check.failing_tests, _MOST_TESTS)})"


def _run_finished(what: events.RunFinished, at: float) -> Iterator[str]:
    total = counted(what.total, "story")
    stories = f"{what.passed} of {total} passed, " if what.total else ""
    how = decided(what.decision, what.limit)
    used = (
        counted(what.iterations, "iteration"),
        spent_words(what.cost_usd, what.unpriced),
        token_words(what.tokens, what.iterations),
        format_duration(what.duration_s),
    )
    yield f"run ended: {how}. {stories}{', '.join(used)}"
    yield from (f"  {reason}" for reason in what.reasons)
    if quota := quota_words(what.quota, at, resets=True):
        yield f"  quota: {quota}"
    if what.decision is not ExitDecision.BLOCKED:  # then they are the reasons
        yield from (f"  ? {words}" for words in what.waiting)
