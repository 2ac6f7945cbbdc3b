"""Looking: everything that is asked of the journal, the lock and the story file.

Everything but the journal may be missing or broken without hiding the rest: a story file that
cannot be read is a sentence, not an error.  What another version wrote is read as far as it goes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ralphloop.config.load import check_config
from ralphloop.config.model import Config
from ralphloop.core.limits import HOUR
from ralphloop.core.story import Story, StoryList
from ralphloop.core.story_state import StoryState
from ralphloop.errors import RalphError
from ralphloop.journal.holder import Holder
from ralphloop.journal.lock import live_holder
from ralphloop.journal.queries import JournalReader, Queries
from ralphloop.journal.records import RunRecord, readable
from ralphloop.journal.session import seen_session
from ralphloop.night.values import Night, StoryLook
from ralphloop.project import Project
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
    project: Project, journal: Queries, run: RunRecord | None, *, now: float, holder: Holder | None
) -> Night:
    """Look at one run of a project."""
    config = config_of(project, run)
    stories = listed(project, run, config)
    return night_of(project, journal, run, now=now, holder=holder, config=config, listed=stories)


def night_of(
    project: Project,
    journal: Queries,
    run: RunRecord | None,
    *,
    now: float,
    holder: Holder | None,
    config: Config,
    listed: Listed,
    newest: int = 2,
) -> Night:
    """A run as it stands; without one, what is known from the run before."""
    latest = run or journal.latest_run()
    session = seen_session(journal, latest.id if latest else "")
    candidate = journal.resume_candidate(now)
    return Night(
        project=project,
        now=now,
        config=config,
        story_list=listed[0],
        stories_problem=listed[1],
        stories=tuple(stories_of(listed[0], session.stories)),
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


def stories_of(
    story_list: StoryList | None, states: Mapping[str, StoryState]
) -> Iterator[StoryLook]:
    """The list's stories, then those only the journal remembers."""
    stories = story_list.stories if story_list else ()
    for story in stories:
        yield StoryLook(story, states.get(story.id, StoryState()))
    for name in sorted(states.keys() - {story.id for story in stories}):
        if name or not stories:
            title = "no longer in the story list" if name else "the prompt"
            yield StoryLook(Story(id=name, title=title, index=0), states[name], is_listed=False)
