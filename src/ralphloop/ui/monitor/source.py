"""From what is watched to what the monitor knows: events become lines of a log, once each."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable

from ralphloop.config.model import Config
from ralphloop.core.events import AgentStep, IterationStarted, LoopEvent
from ralphloop.errors import RalphError
from ralphloop.night.values import Night
from ralphloop.night.watch import EVENTS_READ, Watch, Watched
from ralphloop.project import Project
from ralphloop.text.plain import one_line
from ralphloop.ui.monitor import happenings
from ralphloop.ui.monitor.stories import story_rows
from ralphloop.ui.monitor.values import Facts, LogLine

LOG_KEPT = EVENTS_READ
_EVENTS_KEPT = 400  # of the running iteration
_TRY_AGAIN_S = 2.0


class Source:
    """One project, as the monitor sees it."""

    def __init__(
        self, project: Project, *, run: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.project = project
        self._clock = clock
        self._watch = Watch(project, run=run, clock=clock)
        self._facts = nothing_known(project)
        self._told = False
        self._quiet_until = 0.0
        self._forget_events()

    def poll(self) -> Facts | None:
        """What is known now; None where nothing has changed."""
        now = self._clock()
        if now < self._quiet_until:
            return None
        try:
            seen = self._watch.poll()
            facts = self._taken_in(seen) if seen else None
        except RalphError as error:
            self.close()
            self._quiet_until = now + _TRY_AGAIN_S
            facts = nothing_known(self.project, trouble=error)
        if facts is None or (self._told and facts == self._facts):
            return None
        self._facts, self._told = facts, True
        return facts

    def close(self) -> None:
        """Let the journal go; the next look opens it again."""
        self._watch.close()

    def _forget_events(self) -> None:
        self._log: deque[LogLine] = deque(maxlen=LOG_KEPT)
        self._shown_log: tuple[LogLine, ...] = ()
        self._steps: deque[tuple[float, AgentStep]] = deque(maxlen=_EVENTS_KEPT)
        self._limit_words = ""

    def _taken_in(self, seen: Watched) -> Facts:
        if seen.is_new_run:
            self._forget_events()
        self._tell(seen.events)
        night, before = seen.night, self._facts.night
        newest = night.newest
        at, step = self._steps[-1] if self._steps else (None, None)
        signs = [sign for sign in (seen.last_output, at) if sign]
        same = self._told and night.stories is before.stories
        return Facts(
            night=night,
            stories=self._facts.stories if same else story_rows(night),
            log=self._shown_log,
            actions=happenings.actions(step for _, step in self._steps),
            answered=step is not None and step.kind == "result",
            last_output=max(signs, default=newest.started_at if newest else None),
            usage=seen.usage,
            limit_words=self._limit_words,
            learned=seen.learned,
        )

    def _tell(self, events: Iterable[LoopEvent]) -> None:
        """Fold new events into the log; the newest ones of a long run are kept."""
        for event in events:
            self._log.extend(happenings.log_lines(event))
            if isinstance(event.what, IterationStarted):
                self._steps.clear()
            elif isinstance(step := event.what, AgentStep):
                self._steps.append((event.at, step))
                if step.kind == "limit":
                    self._limit_words = one_line(step.summary, 80)
        if events:
            self._shown_log = tuple(self._log)


def nothing_known(project: Project, trouble: RalphError | None = None) -> Facts:
    """Before the first look, or where the journal cannot be read."""
    return Facts(
        night=Night(project=project, now=0.0, config=Config()),
        trouble=one_line(trouble.message, 500) if trouble else "",
        way_out=one_line(trouble.next_step, 500) if trouble else "",
    )
