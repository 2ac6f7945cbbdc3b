"""How things stand in a project: one look at journal, lock and story file, as a value.

Everything but the journal may be missing or broken without hiding the rest: a story file that
cannot be read is a sentence here, not an error.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from ralphloop.config.load import check_config
from ralphloop.config.model import Config
from ralphloop.config.policy import policy_of
from ralphloop.core.breaker import BreakerState
from ralphloop.core.durations import elapsed
from ralphloop.core.grading import Grade
from ralphloop.core.policy import Policy
from ralphloop.core.session import Session
from ralphloop.core.spending import Totals
from ralphloop.core.story import Story, StoryList
from ralphloop.core.story_state import Standing, StoryState
from ralphloop.errors import RalphError
from ralphloop.journal.holder import Holder
from ralphloop.journal.lock import live_holder
from ralphloop.journal.reader import JournalReader
from ralphloop.journal.records import IterationRecord, RunRecord, RunStatus, Wait
from ralphloop.journal.session import load_session
from ralphloop.project import Project
from ralphloop.stories.source import find_source, load


class State(StrEnum):
    NONE = "none"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    STOPPED = "stopped"
    COMPLETE = "complete"


@dataclass(frozen=True, kw_only=True)
class Overview:
    """One moment of a project."""

    project: Project
    now: float
    state: State
    config: Config
    stories: StoryList | None = None
    stories_problem: str = ""  # why the story list cannot be shown
    run: RunRecord | None = None
    session: Session = field(default_factory=lambda: Session(run=""))
    holder: Holder | None = None
    wait: Wait | None = None
    current: IterationRecord | None = None  # the iteration that goes on, or was cut off
    last: IterationRecord | None = None  # the last one that was finished
    expired: bool = False  # too old to be continued

    @property
    def totals(self) -> Totals:
        return self.run.totals if self.run else Totals()

    @property
    def circuit(self) -> BreakerState:
        return self.session.state.breaker

    @property
    def policy(self) -> Policy:
        return policy_of(self.config)

    @property
    def is_live(self) -> bool:
        return self.state in (State.RUNNING, State.WAITING, State.PAUSED)

    @property
    def died(self) -> bool:
        """The journal says it runs, but nobody holds the project."""
        return self.run is not None and self.run.status is RunStatus.RUNNING and not self.is_live

    @property
    def active_s(self) -> float:
        """Time the run has used, up to this moment."""
        since = elapsed(self.run.last_activity, self.now) if self.run and self.is_live else 0.0
        return self.totals.active_s + since

    @property
    def grades(self) -> dict[str, int]:
        """How many stories passed with which grade, best first."""
        passed = [story for story in self._listed if story.passes]
        counts = Counter(grade_of(story, self.session.story(story.id)) for story in passed)
        known = [str(grade) for grade in Grade]
        return {grade: counts[grade] for grade in known if counts[grade]}

    @property
    def warnings(self) -> list[str]:
        """What was worth a warning in the last iteration, signs of going in circles included."""
        if self.last is None:
            return []
        found = self.last.record.analysis
        return [*found.warnings, *(f"stuck: {pattern.detail}" for pattern in found.stuck)]

    @property
    def reasons(self) -> list[str]:
        """Why the last decision was taken."""
        return list(self.last.record.decision.reasons) if self.last else []

    def count(self, standing: Standing) -> int:
        """How many open stories stand like that."""
        return sum(
            not story.passes and self.session.story(story.id).standing is standing
            for story in self._listed
        )

    @property
    def _listed(self) -> tuple[Story, ...]:
        return self.stories.stories if self.stories else ()


def grade_of(story: Story, state: StoryState) -> str:
    """The grade of a passed story; one the journal knows nothing of was marked by a person."""
    if story.passes and state.standing is not Standing.PASSED:
        return str(Grade.BY_HAND)
    return state.grade if story.passes else ""


def look(project: Project, *, now: float) -> Overview:
    """Look at a project; raises only where the journal itself cannot be read."""
    config = _settings(project)
    holder = live_holder(project.directory, now)
    with JournalReader.open(project.journal) as journal, journal.snapshot():
        latest = journal.latest_run()
        session = load_session(journal, latest.id if latest else "")
        starting = holder is not None and (latest is None or latest.id != holder.run)
        run = None if starting else latest
        wait = journal.open_wait(run.id) if run else None
        newest = journal.latest_iterations(run.id, 2) if run else []
        candidate = journal.resume_candidate(now)
    stories, problem = _stories(project, run, config)
    return Overview(
        project=project,
        now=now,
        state=_state(run, session, wait, now, live=holder is not None),
        config=_config_of(run, config) if holder else config,
        stories=stories,
        stories_problem=problem,
        run=run,
        session=session,
        holder=holder,
        wait=wait if holder else None,
        current=next((each for each in newest if each.finished_at is None), None),
        last=next((each for each in newest if each.finished_at is not None), None),
        expired=candidate.expired if candidate else False,
    )


def _state(
    run: RunRecord | None, session: Session, wait: Wait | None, now: float, *, live: bool
) -> State:
    if run is None:
        return State.RUNNING if live else State.NONE
    if run.status is RunStatus.COMPLETE:
        return State.COMPLETE
    if run.status is not RunStatus.RUNNING or not live:
        return State.STOPPED
    if session.desk.paused or (wait is not None and wait.kind == "pause"):
        return State.PAUSED
    return State.WAITING if wait is not None and wait.until > now else State.RUNNING


def _settings(project: Project) -> Config:
    """The settings as far as they can be read: their problems are `ralph config`'s business."""
    loaded, _ = check_config(project.root, env=os.environ)
    return loaded.config


def _config_of(run: RunRecord | None, otherwise: Config) -> Config:
    """The settings a run was started with, flags included."""
    try:
        return msgspec.convert(run.config, Config) if run and run.config else otherwise
    except msgspec.ValidationError:
        return otherwise  # written by another version


def _stories(
    project: Project, run: RunRecord | None, config: Config
) -> tuple[StoryList | None, str]:
    """The story list of the run, else the one a run would use; or why there is none."""
    if run is not None and not run.prd_path:
        return None, ""  # a plain loop has none
    try:
        named = project.root / (run.prd_path if run else config.stories.prd)
        return load(named if run or named.exists() else find_source(project.root)).list, ""
    except RalphError as error:
        return None, error.message
