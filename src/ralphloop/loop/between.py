"""What a person changes of a run while nobody works on it.

The same wishes as during a run, done at once instead of asked for: the project is held for that
moment, the last run's state is changed as its loop would have changed it, and the next start finds
it so.  A note is kept for whoever starts next; a budget belongs to a run that can be continued.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

from ralphloop.config.model import Config, policy_of
from ralphloop.core.events import LoopEvent, RequestAnswered
from ralphloop.core.interventions import AnyIntervention
from ralphloop.core.run_state import Desk, Session
from ralphloop.core.story import Story, StoryList
from ralphloop.errors import InputError, UsageError
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import RunLock
from ralphloop.journal.session import NOTES_KEY, change_desk, change_session, load_session
from ralphloop.loop.requests import Refused, wished
from ralphloop.night.look import config_of, listed
from ralphloop.project import Project
from ralphloop.room import claim

_NO_RUN = "`ralph run` starts one."


class Between(msgspec.Struct, kw_only=True):
    """The last run of a project, held by a person for a moment."""

    journal: Journal
    session: Session
    config: Config
    stories: StoryList | None
    is_resumable: bool

    def clock(self) -> float:
        return time.time()

    def intervene(self, change: AnyIntervention) -> None:
        """Change the run's state, here and in the journal."""
        policy = policy_of(self.config)
        change_session(self.journal, self.session, change, policy, now=self.clock())

    def story(self, name: str) -> Story | None:
        return self.stories.get(name) if self.stories else None

    def add_note(self, text: str) -> None:
        """Something for the prompts of whatever run comes next."""
        known = Desk(notes=tuple(self.journal.meta(NOTES_KEY) or ()))
        self.journal.set_meta(NOTES_KEY, known.noted(text).notes)

    def raise_budget(self, **more: float) -> None:
        if not self.is_resumable:
            raise Refused(
                "there is no unfinished run to raise it for; `ralph run --max-cost` sets the next"
            )
        desk = self.session.desk
        raised = msgspec.structs.replace(desk, extra=desk.extra.raised_by(**more))
        change_desk(self.journal, self.session, raised)


def ask_between_runs(project: Project, kind: str, payload: Mapping[str, object]) -> str:
    """Do what was asked of the last run, and say so."""
    with _held(project) as between:
        try:
            answer = wished(between, kind, payload)
        except Refused as error:
            raise UsageError(
                str(error), "`ralph status` and `ralph stories` show how it stands."
            ) from None
        told = RequestAnswered(kind=kind, answer=answer)
        event = LoopEvent(run=between.session.run, at=between.clock(), what=told)
        between.journal.append_events([event])
    return answer


@contextmanager
def _held(project: Project) -> Iterator[Between]:
    if not project.journal.exists():
        raise UsageError("nothing has run here yet", _NO_RUN)
    claim(project.directory)
    now = time.time()
    run = f"person-{os.getpid()}"
    with (
        RunLock.acquire(project.directory, run=run, now=now),
        Journal.open(project.journal, check=False) as journal,
    ):
        record = journal.latest_run()
        if record is None:
            raise UsageError("nothing has run here yet", _NO_RUN)
        config = config_of(project, record)
        stories, problem = listed(project, record, config)
        if problem:
            raise InputError(problem, "`ralph doctor` checks the story list.")
        candidate = journal.resume_candidate(now)
        yield Between(
            journal=journal,
            session=load_session(journal, record.id),
            config=config,
            stories=stories,
            is_resumable=candidate is not None and not candidate.expired,
        )
