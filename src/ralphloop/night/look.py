"""Looking: everything that is asked of the journal, the lock and the story file.

`look` gives a moment of a project as a value, `arranged` its stories in the order they will run.

Everything but the journal may be missing or broken without hiding the rest: a story file that
cannot be read is a sentence, not an error.  What another version wrote is read as far as it goes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ralphloop.config.load import check_config
from ralphloop.config.model import Config
from ralphloop.core import readable
from ralphloop.core.policy import HOUR
from ralphloop.core.story import Story, StoryList
from ralphloop.core.story_state import Standing, States, StoryState
from ralphloop.errors import RalphError
from ralphloop.journal.holder import Holder
from ralphloop.journal.lock import live_holder
from ralphloop.journal.queries import JournalReader, Queries
from ralphloop.journal.records import RunRecord
from ralphloop.journal.session import seen_session
from ralphloop.night.values import Night, StoryLook
from ralphloop.project import Project
from ralphloop.stories.graph import plan
from ralphloop.stories.source import find_source, load

Listed = tuple[StoryList | None, str]  # the story list, or why there is none


def look(project: Project, *, now: float) -> Night:
    """Look at a project; raises only where the journal itself cannot be read."""
    holder = live_holder(project.directory, now)
    with JournalReader.open(project.journal) as journal, journal.snapshot():
        latest = journal.latest_run()
        begun = holder is None or (latest is not None and latest.id == holder.run)
        return look_at(project, journal, latest if begun else None, now=now, holder=holder)


def look_at(
    project: Project,
    journal: Queries,
    run: RunRecord | None,
    *,
    now: float,
    holder: Holder | None,
    known: tuple[Config, Listed] | None = None,
    newest: int = 2,
) -> Night:
    """One run of a project as it stands; without one, what is known from the run before."""
    config = known[0] if known else config_of(project, run)
    story_list, problem = known[1] if known else listed(project, run, config)
    latest = run or journal.latest_run()
    session = seen_session(journal, latest.id if latest else "")
    candidate = journal.resume_candidate(now)
    return Night(
        project=project,
        now=now,
        config=config,
        story_list=story_list,
        stories_problem=problem,
        stories=tuple(stories_of(story_list, session.stories)),
        run=run,
        session=session,
        holder=holder,
        wait=journal.open_wait(run.id) if run and holder else None,
        iterations=tuple(journal.latest_iterations(run.id, newest)) if run else (),
        pending=tuple(journal.pending_requests(run.id)) if run else (),
        calls=journal.starts_since(now - HOUR),
        expired=candidate.expired if candidate else False,
    )


def config_of(project: Project, run: RunRecord | None) -> Config:
    """The settings a run was started with, flags included; else those one would start with."""
    if run is not None and run.config:
        return readable(run.config, Config)
    # As far as they can be read: their problems are `ralph config`'s business.
    return check_config(project.root, env=os.environ)[0].config


def listed(project: Project, run: RunRecord | None, config: Config) -> Listed:
    """The story list of the run, else the one a run would use; or why there is none."""
    if run is not None and not run.prd_path:
        return None, ""  # a plain loop has none
    try:
        return load(story_file(project, run, config)).list, ""
    except RalphError as error:
        return None, error.message


def story_file(project: Project, run: RunRecord | None, config: Config) -> Path:
    """The story file of the run, else the one a run would find."""
    named = project.root / (run.prd_path if run else config.stories.prd)
    return named if run or named.exists() else find_source(project.root)


def stories_of(story_list: StoryList | None, states: States) -> Iterator[StoryLook]:
    """The list's stories, then those only the journal remembers."""
    stories = story_list.stories if story_list else ()
    for story in stories:
        yield StoryLook(story, states.get(story.id, StoryState()))
    for name in sorted(states.keys() - {story.id for story in stories}):
        if name or not stories:
            title = "no longer in the story list" if name else "the prompt"
            yield StoryLook(Story(id=name, title=title, index=0), states[name], is_listed=False)


class Placed(NamedTuple):
    """One story of the list and its turn."""

    look: StoryLook
    position: int | None  # in which order it runs; None: it does not, or has passed
    why: str  # the position's reason, or why there is none


def arranged(story_list: StoryList, states: States) -> Iterator[Placed]:
    """The open stories in the order they run, those that cannot, then the passed ones."""
    position = 0
    for step in plan(story_list, unavailable=dict(_unavailable(states))):
        position += step.runs
        look = StoryLook(step.story, states.get(step.story.id, StoryState()))
        yield Placed(look, position if step.runs else None, step.reason)
    for story in story_list.stories:
        if story.passes:
            state = states.get(story.id, StoryState())
            why = state.reason if state.standing is Standing.PASSED else "marked by a person"
            yield Placed(StoryLook(story, state), None, why)


def _unavailable(states: States) -> Iterator[tuple[str, str]]:
    for story, state in states.items():
        if state.standing is Standing.BLOCKED:
            yield story, f"waits for a person: {state.reason or 'no reason was given'}"
        elif state.standing is Standing.SET_ASIDE:
            chance = "" if state.second_chance else "; one more chance when all else is done"
            yield story, f"set aside: {state.reason or 'no reason was given'}{chance}"
