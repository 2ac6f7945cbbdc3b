"""What the monitor knows (`Facts`); texts of agents and files are one bounded, clean line here."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import UNSET, structs

from ralphloop.config.model import Config
from ralphloop.core import events
from ralphloop.core.events import LoopEvent
from ralphloop.core.grading import Grade
from ralphloop.core.model import Usage
from ralphloop.core.planning import WaitsFor
from ralphloop.core.run_state import Standing
from ralphloop.errors import RalphError
from ralphloop.night.values import Night, StoryLook
from ralphloop.night.watch import EVENTS_READ, Lessons, Seen, Watch
from ralphloop.project import Project
from ralphloop.text.plain import one_line
from ralphloop.ui.console import LogLine, Narrator, seen_step
from ralphloop.ui.monitor import paint
from ralphloop.ui.monitor.paint import Tone

LOG_KEPT = EVENTS_READ
_EVENTS_KEPT = 400  # of the running iteration
_ACTIONS_KEPT = 40
_LONGEST_LINE = 500
_WEAK_GRADES = (Grade.CLAIMED, Grade.NEEDS_REVIEW, "")


class Standpoint(NamedTuple):
    """How a story stands, as it is shown."""

    mark: str
    words: str  # the grade, "waits for you", "waits on US-2"
    tone: Tone


class StoryRow(NamedTuple):
    id: str
    title: str
    mark: str
    standing: str
    tone: Tone
    attempts: int  # failed ones
    verdict: str  # what the last iteration came to


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that was read, at one moment; the clock is not among it."""

    night: Night
    trouble: str = ""  # why the journal cannot be read
    way_out: str = ""
    stories: tuple[StoryRow, ...] = ()
    log: tuple[LogLine, ...] = ()
    actions: tuple[events.AgentStep, ...] = ()  # what the agent did, as it is told
    answered: bool = False  # the agent gave its result; what follows is ours
    last_output: float | None = None
    usage: Usage = field(default_factory=Usage)  # of the running agent, so far
    limit_words: str = ""  # the newest word about quota
    learned: Lessons = field(default_factory=Lessons)


def nothing_known(project: Project, trouble: RalphError | None = None) -> Facts:
    """Before the first look, or where the journal cannot be read."""
    return Facts(
        night=Night(project=project, now=0.0, config=Config()),
        trouble=one_line(trouble.message, 500) if trouble else "",
        way_out=one_line(trouble.next_step, 500) if trouble else "",
    )


class Source(Watch):
    _facts: Facts | None = None

    def poll(self) -> Facts | None:
        """What is known now; None where nothing has changed."""
        try:
            seen = self.look_again()
            facts = self._take_in(seen) if seen else None
        except RalphError as error:
            self.close()
            facts = nothing_known(self.project, trouble=error)
        if facts is None or facts == self._facts:
            return None
        self._facts = facts
        return facts

    def _forget_events(self) -> None:
        self._log: deque[LogLine] = deque(maxlen=LOG_KEPT)
        self._steps: deque[tuple[int | None, float, events.AgentStep]] = deque(maxlen=_EVENTS_KEPT)
        self._limit_words = ""
        self._telling = Narrator(verbosity=1)

    def _take_in(self, seen: Seen) -> Facts:
        """Keep what is new, and make facts of all that is known."""
        night, fresh, anew = seen
        if anew:
            self._forget_events()
        for event in fresh:
            self._keep(event)
        before = self._facts
        newest = night.newest
        tail = self.tail
        same = before is not None and night.stories is before.night.stories
        n = night.current.n if night.current else None
        steps = [(at, step) for it, at, step in self._steps if n in (None, it)]
        at, newest_step = steps[-1] if steps else (None, None)
        signs = [sign for sign in (tail and tail.last_output, at) if sign]
        return Facts(
            night=night,
            stories=before.stories if before and same else story_rows(night),
            log=before.log if before and not (fresh or anew) else tuple(self._log),
            actions=_actions(step for _, step in steps),
            answered=newest_step is not None and newest_step.kind == "result",
            last_output=max(signs, default=newest.started_at if newest else None),
            usage=tail.usage if tail else Usage(),
            limit_words=self._limit_words,
            learned=self.learned,
        )

    def _keep(self, event: LoopEvent) -> None:
        for told in self._telling.lines(event):
            indent = "  " if told.text.startswith(" ") else ""
            short = indent + one_line(told.text, _LONGEST_LINE)
            self._log.append(told._replace(text=short))
        if isinstance(event.what, events.AgentStep):
            self._steps.append((event.iteration, event.at, event.what))
            if event.what.kind == "limit":
                self._limit_words = one_line(event.what.summary, 80)


def story_rows(night: Night) -> tuple[StoryRow, ...]:
    passed = {look.story.id for look in night.stories if look.story.passes}
    current = {one.story or "" for one in night.working}
    return tuple(
        StoryRow(
            one_line(look.story.id, 60),
            one_line(look.story.title, 200),
            *_standing(look, passed, current),
            attempts=look.failed,
            verdict=one_line(look.state.reason or look.waits, 300),
        )
        for look in night.stories
    )


def _standing(look: StoryLook, passed: set[str], current: set[str]) -> Standpoint:
    """How a story stands, given which have passed and which are worked on."""
    if look.story.id in current and look.standing is Standing.OPEN:
        return Standpoint(paint.RUNNING, "running", Tone.BUSY)
    if look.standing is Standing.PASSED:
        mark = paint.REVIEW if look.grade == Grade.NEEDS_REVIEW else paint.PASSED
        tone = Tone.WARN if look.grade in _WEAK_GRADES else Tone.GOOD
        return Standpoint(mark, one_line(look.grade, 20) or "passed", tone)
    if look.standing is Standing.BLOCKED:
        return Standpoint(paint.BLOCKED, "waits for you", Tone.WARN)
    if look.standing is Standing.SET_ASIDE:
        return Standpoint(paint.ASIDE, "set aside", Tone.WARN)
    needs = [one_line(name, 20) for name in look.story.depends_on if name not in passed]
    if needs:
        more = f" +{len(needs) - 1}" if len(needs) > 1 else ""
        return Standpoint(paint.WAITING, f"waits on {needs[0]}{more}", Tone.QUIET)
    if look.wait is not None and look.wait.waits_for is not WaitsFor.LANE:
        return Standpoint(paint.WAITING, "waits", Tone.QUIET)
    return Standpoint(paint.OPEN, "begun" if look.state.totals.iterations else "open", Tone.PLAIN)


def _actions(steps: Iterable[events.AgentStep]) -> tuple[events.AgentStep, ...]:
    """The last actions of an iteration; a tool's result is told with its call."""
    told: list[events.AgentStep] = []
    for step in steps:
        if step.kind == "tool_result" and isinstance(step.ok, bool):
            name = step.summary.partition(" ")[0]
            for index in reversed(range(max(0, len(told) - 20), len(told))):
                call = told[index]
                if call.kind == "tool" and call.ok is UNSET and call.summary.startswith(name):
                    told[index] = structs.replace(call, ok=step.ok)
                    break
        elif action := seen_step(step):
            told.append(action)
    return tuple(told[-_ACTIONS_KEPT:])
