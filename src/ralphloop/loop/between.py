"""What a person changes of a run while nobody works on it.

The last run's state is changed as its loop would have changed it, and the next start finds it so.
A note is kept for whoever starts next; a budget belongs to a run that can be continued.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ralphloop.config.model import Config, policy_of
from ralphloop.core.events import LoopEvent, RequestAnswered
from ralphloop.core.interventions import Accepted, AnyIntervention, StoryRejected
from ralphloop.core.model import Story, StoryList
from ralphloop.core.policy import Extra
from ralphloop.core.run_state import Desk, Session
from ralphloop.errors import InputError, UsageError
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import RunLock
from ralphloop.journal.queries import NOTES_KEY, SWAP_KEY
from ralphloop.journal.records import Wish
from ralphloop.loop.confine import confined_repository
from ralphloop.loop.requests import Refused, wished
from ralphloop.night.look import commits_of, config_of, listed, own_commits
from ralphloop.project import Project, relative
from ralphloop.repo.commit import with_trailers
from ralphloop.repo.set_aside import ref_name, take_out, without
from ralphloop.repo.snapshot import Snapshotter
from ralphloop.repo.story_change import id_of_change
from ralphloop.repo.work_tree import OwnFiles, Repository, never_progress, project_prefix
from ralphloop.room import claim
from ralphloop.stories.names import slug
from ralphloop.stories.source import mark
from ralphloop.text.plain import clean, one_line

_SEARCHED_RUNS = 200
_MOST_PATHS = 500
_NO_RUN = "`ralph run` starts one."
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


def ask_between_runs(project: Project, kind: str, wish: Wish) -> str:
    with _held(project, wish.story) as between:
        journal = between.journal
        session = between.session
        now = time.time()
        try:
            change, answer = wished(session, between.story, kind, wish, now)
        except Refused as error:
            raise UsageError(str(error), _LOOK) from None
        if isinstance(change, str):  # for the prompts of whatever run comes next
            known = Desk(notes=tuple(journal.meta(NOTES_KEY) or ()))
            journal.set_meta(NOTES_KEY, known.noted(change).notes)
        elif isinstance(change, Extra):
            candidate = journal.resume_candidate(now)
            if candidate is None or candidate.expired:
                lacking = "there is no unfinished run to raise it for"
                raise UsageError(f"{lacking}; `ralph run --max-cost` sets the next", _LOOK)
            journal.save_part(session.run, msgspec.structs.replace(session.desk, extra=change))
        else:
            between.intervene(change)
        told = RequestAnswered(kind=kind, answer=answer)
        journal.append_events([LoopEvent(run=session.run, at=now, what=told)])
    return answer


def accept(project: Project, story: str) -> None:
    """A person looked at a story and takes it: it passed, or is again what they had sent back."""
    with _held(project, story) as between:
        if not between.session.story(story).is_rejected_again:
            _passed(between, story)
        between.intervene(Accepted(story=story))


def send_back(project: Project, story: str, why: str) -> str:
    """Take a passed story's commits out, open it again with these words; says what was done."""
    with _held(project, story) as between:
        stories, one = _passed(between, story)
        if later := [s.id for s in stories.stories if s.passes and story in s.depends_on]:
            words = f"{', '.join(later[:3])} depends on {story} and has passed"
            raise UsageError(words, f"Send that back first: ralph reject {later[0]} …")
        source = Path(stories.source)
        ref = ""
        work = ""
        shows = _own_commits(between.journal, project, story)
        if shows:
            repo = confined_repository(project, between.config)
            prefix = project_prefix(repo.root, project.root)
            listed_in = f"{prefix}{relative(source, project.root)}"
            own = never_progress(prefix, [listed_in])
            tree = without(repo, shows, own)
            work = _known_by(repo, shows[-1], own)
            count = len(between.session.story(story).answers) + 1
            ref = ref_name(between.session.run, count, f"rejected/{slug(story)}")
        mark(source, {story: False}, within=source.parent)
        if shows:
            trailers = {"Ralph-Story": story, "Ralph-Kept": ref}
            subject = with_trailers(f'Revert "{story}: {one.title}"', trailers)
            head, rest = subject.split("\n\n", 1)
            message = f"{head}\n\n{clean(why).strip()}\n\n{rest}"
            keep = (ref, shows[-1].rpartition("..")[2])
            take_out(repo, tree, message, also=[listed_in], keep=keep)
        back = StoryRejected(story=story, why=why, kept=ref, work=work, at=time.time())
        between.intervene(back)
    if not ref:
        return f"{story} is open again; it has no commit to take out"
    return f"{story} is open again; its commits are taken out, the attempt is kept: git show {ref}"


def _known_by(repo: Repository, show: str, own: OwnFiles) -> str:
    """What the change of a commit or of a range (`A..B`) is known by, our own files left out."""
    first, _, last = show.partition("..")
    old, new = (first, last) if last else (f"{show}~1", show)
    paths = [path for path in repo.paths_between(old, new) if path not in own]
    is_told = 0 < len(paths) <= _MOST_PATHS  # a command line has an end
    return id_of_change(repo.git, old, new, *paths) if is_told else ""


def _passed(between: HeldRun, story: str) -> tuple[StoryList, Story]:
    stories = between.stories
    found = between.story(story)
    if stories is None or found is None:
        words = f"there is no story {one_line(story, 60)!r}"
        raise UsageError(words, "`ralph stories` lists them.")
    if not found.passes:
        raise UsageError(f"{story} has not passed", f"To open it again: ralph retry {story}")
    return stories, found


def _own_commits(journal: Journal, project: Project, story: str) -> list[str]:
    """Of the newest run that passed it, since it was last sent back."""
    for run in journal.runs(_SEARCHED_RUNS):
        made = journal.interventions(run.id)
        back = (
            it for it in made if isinstance(it.change, StoryRejected) and it.change.story == story
        )
        since = max((it.after for it in back), default=0)
        mine = (it for it in journal.every_iteration(run.id, brief=True) if it.n > since)
        if shows := own_commits(mine, commits_of(project, run, journal)).get(story):
            return shows
    return []


@contextmanager
def _held(project: Project, story: str) -> Iterator[HeldRun]:
    if not project.journal.exists():
        raise UsageError("nothing has run here yet", _NO_RUN)
    claim(project.directory)
    now = time.time()
    run = f"person-{os.getpid()}"
    with (
        RunLock(project.directory, run=run, now=now),
        Journal.open(project.journal, check=False) as journal,
    ):
        record = journal.errand(story) or journal.latest_night()
        if record is None and story:
            raise UsageError("nothing of the list has run yet", _NO_RUN)
        record = record or journal.latest_run()
        if record is None:
            raise UsageError("nothing has run here yet", _NO_RUN)
        if journal.meta(SWAP_KEY) is not None:  # an experiment was cut off
            from ralphloop.loop.trying import restore

            repo = confined_repository(project, config_of(project, record))
            restore(journal, repo, Snapshotter(repo, project.directory / "objects"), project)
        config = config_of(project, record)
        stories, problem = listed(project, record, config)
        if problem:
            raise InputError(problem, "`ralph doctor` checks the story list.")
        yield HeldRun(journal, journal.session(record.id), config, stories)
