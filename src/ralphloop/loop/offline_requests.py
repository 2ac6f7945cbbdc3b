"""What a person changes of a run while nobody works on it.

The last run's state is changed as its loop would have changed it, and the next start finds it so.
A note is kept for whoever starts next; a budget belongs to a run that can be continued.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from ralphloop.config.model import Config, policy_of
from ralphloop.core.events import LoopEvent, RequestAnswered
from ralphloop.core.interventions import AcceptanceTakenBack, Accepted, AnyIntervention
from ralphloop.core.model import Story, StoryList
from ralphloop.core.policy import ExtraBudget
from ralphloop.core.run_state import OperatorOverrides, Session
from ralphloop.errors import START_ONE, InputError, NothingRan, UsageError
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import RunLock
from ralphloop.journal.queries import BRINGING_BACK_KEY, NOTES_KEY, REJECTION_KEY, SWAP_KEY
from ralphloop.journal.records import Wish
from ralphloop.loop.confine import confined_repository
from ralphloop.loop.requests import Refused, grant_wish
from ralphloop.night.look import config_of, listed
from ralphloop.project import Project
from ralphloop.repo.snapshot import Snapshotter
from ralphloop.room import ensure_private_dir
from ralphloop.text.plain import one_line

_LOOK = "`ralph status` and `ralph stories` show how it stands."


class HeldRun(msgspec.Struct):
    """The last run of a project, held by a person for a moment."""

    journal: Journal
    session: Session
    config: Config
    stories: StoryList | None

    def intervene(self, change: AnyIntervention) -> None:
        self.journal.intervene(self.session, change, policy_of(self.config), now=time.time())

    def story(self, name: str) -> Story | None:
        return self.stories.get(name) if self.stories else None


def ask_offline(project: Project, kind: str, wish: Wish) -> str:
    """Grant a person's wish while no run goes on; what they are told."""
    with hold_last_run(project, wish.story) as held:
        journal = held.journal
        session = held.session
        now = time.time()
        try:
            granted = grant_wish(session, held.story, kind, wish, now)
        except Refused as error:
            raise UsageError(str(error), _LOOK) from None
        change = granted.change
        if isinstance(change, str):  # for the prompts of whatever run comes next
            known = OperatorOverrides(notes=tuple(journal.meta(NOTES_KEY) or ()))
            journal.set_meta(NOTES_KEY, known.noted(change).notes)
        elif isinstance(change, ExtraBudget):
            candidate = journal.resume_candidate(now)
            if candidate is None or candidate.expired:
                lacking = "there is no unfinished run to raise it for"
                raise UsageError(f"{lacking}; `ralph run --max-cost` sets the next", _LOOK)
            journal.save_part(session.run, msgspec.structs.replace(session.overrides, extra=change))
        else:
            held.intervene(change)
        told = RequestAnswered(kind=kind, answer=granted.answer)
        journal.append_events([LoopEvent(run=session.run, at=now, what=told)])
    return granted.answer


def accept(project: Project, story: str) -> None:
    """A person looked at a story and takes it: it passed, or is again what they had sent back."""
    with hold_last_run(project, story) as held:
        if not held.session.story(story).is_same_as_sent_back:
            insist_on_passed(held, story)
        held.intervene(Accepted(story=story))


def take_back_acceptance(project: Project, story: str) -> None:
    """A story that a person took waits for their eyes again."""
    with hold_last_run(project, story) as held:
        insist_on_passed(held, story)
        if not held.session.story(story).proof.accepted:
            raise UsageError(f"{story} was not accepted", "`ralph review` shows what waits.")
        held.intervene(AcceptanceTakenBack(story=story))


class PassedStory(NamedTuple):
    stories: StoryList
    story: Story


def insist_on_passed(held: HeldRun, story: str) -> PassedStory:
    """The story in its list; raises where it has not passed."""
    stories = held.stories
    found = held.story(story)
    if stories is None or found is None:
        words = f"there is no story {one_line(story, 60)!r}"
        raise UsageError(words, "`ralph stories` lists them.")
    if not found.passes:
        raise UsageError(f"{story} has not passed", f"To open it again: ralph retry {story}")
    return PassedStory(stories, found)


@contextmanager
def hold_last_run(project: Project, story: str) -> Iterator[HeldRun]:
    if not project.journal.exists():
        raise NothingRan
    ensure_private_dir(project.directory)
    now = time.time()
    run = f"person-{os.getpid()}"
    with (
        RunLock(project.directory, run=run, now=now),
        Journal.open(project.journal, check=False) as journal,
    ):
        record = journal.errand(story) or journal.latest_night()
        if record is None and story:
            raise UsageError("nothing of the list has run yet", START_ONE)
        record = record or journal.latest_run()
        if record is None:
            raise NothingRan
        if journal.meta(SWAP_KEY) is not None:  # an experiment was cut off
            from ralphloop.loop.exchanging import restore

            repo = confined_repository(project, config_of(project, record))
            restore(journal, repo, Snapshotter(repo, project.directory / "objects"), project)
        finish_decisions(project, journal)
        config = config_of(project, record)
        stories, problem = listed(project, record, config)
        if problem:
            raise InputError(problem, "`ralph doctor` checks the story list.")
        yield HeldRun(journal, journal.session(record.id), config, stories)


def finish_decisions(project: Project, journal: Journal) -> list[str]:
    """Do the rest of what a person decided and was cut off; what was done, in words."""
    done = []
    if journal.meta(REJECTION_KEY) is not None:
        from ralphloop.loop.rejecting import finish_rejection  # few are cut off

        done.append(finish_rejection(project, journal))
    if journal.meta(BRINGING_BACK_KEY) is not None:
        from ralphloop.loop.bringing_back import finish_bringing_back

        done.append(finish_bringing_back(project, journal))
    return done
