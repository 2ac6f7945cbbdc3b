"""Looking: everything that is asked of the journal, the lock and the story file.

Everything but the journal may be missing or broken without hiding the rest: a story file that
cannot be read is a sentence, not an error.  What another version wrote is read as far as it goes.
"""

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from ralphloop.config.load import check_config
from ralphloop.config.model import Config
from ralphloop.core import readable
from ralphloop.core.events import LoopEvent, RunFinished
from ralphloop.core.interventions import Committed
from ralphloop.core.model import Circuit, Story, StoryList
from ralphloop.core.planning import StoryWait, WaitsFor, assign, room_for
from ralphloop.core.policy import HOUR
from ralphloop.core.run_state import LanesState, Standing, States, StoryState, state_of
from ralphloop.core.totals import Expense
from ralphloop.errors import RalphError, UsageError
from ralphloop.journal.authenticity import Belief
from ralphloop.journal.database import belief_in
from ralphloop.journal.holder import Holder
from ralphloop.journal.lock import live_holder
from ralphloop.journal.queries import SWAP_KEY, JournalReader, Queries
from ralphloop.journal.records import IterationRecord, ResumeCandidate, RunRecord
from ralphloop.night.values import ErrandLook, Night, State, StoryLook
from ralphloop.project import ERRANDS, Project
from ralphloop.stories.graph import plan
from ralphloop.stories.source import find_source, load
from ralphloop.text.durations import iso
from ralphloop.text.plain import counted, some
from ralphloop.trust import insist_on_place

_EVENT_PAGE = 2_000
_MOST_EVENTS = 100_000  # a night of ten thousand iterations; what a person did is early or rare
_MOST_COMMITS = 5_000
_SEARCHED_RUNS = 500
_RUNS_WITH_CHANGES = 200
_NEWEST = 8  # iterations
_MOST_ERRANDS = 5
UNTOUCHED = "story"  # what one is called whose name nobody wrote down
_HEX = re.compile(r"[0-9a-f]{7,64}")
Listed = tuple[StoryList | None, str]  # the story list, or why there is none


def look(project: Project, *, now: float | None = None, run: str = "") -> Night:
    """Look at a project, or at one run of it; raises only where the journal cannot be read."""
    now = time.time() if now is None else now
    holder = holder_of(project, now, run)
    wanted = run or (holder.run if holder else "")
    with JournalReader.open(project.journal) as journal, journal.snapshot():
        record = journal.find_run(wanted) if wanted else journal.latest_night()
        return look_at(project, journal, record, now=now, holder=holder)


def look_at_list(project: Project) -> Night:
    """Look at the list of the project, also while an errand is worked on."""
    now = time.time()
    holder = holder_of(project, now)
    with JournalReader.open(project.journal) as journal, journal.snapshot():
        held = journal.find_run(holder.run) if holder else None
        if held is None or held.prd_path.startswith(ERRANDS):
            held = journal.latest_night()
        carries = holder if holder and held and holder.run == held.id else None
        return look_at(project, journal, held, now=now, holder=carries)


def holder_of(project: Project, now: float, run: str = "") -> Holder | None:
    """Who carries the project at this moment, or just this run of it."""
    holder = live_holder(project.directory, now)
    return holder if holder is not None and run in ("", holder.run) else None


def look_at(
    project: Project,
    journal: Queries,
    run: RunRecord | None,
    *,
    now: float,
    holder: Holder | None,
    known: tuple[Config, Listed] | None = None,
) -> Night:
    """One run of a project as it stands; without one, what is known from the run before."""
    config = known[0] if known else config_of(project, run)
    story_list, problem = known[1] if known else listed(project, run, config)
    latest = run or journal.latest_night()
    session = journal.seen_session(latest.id if latest else "")
    if run is not None and _is_history(journal, run):
        then = list_then(journal, run, session.stories, story_list)
        story_list = then.stories
        states = _decided_since(journal, then.states)
        session = structs.replace(session, state=structs.replace(session.state, stories=states))
        problem = ""
    book = journal.part(LanesState, run.id) if run else None
    if book and story_list:  # the file of the checkout is as old as the run
        passed = (name for name, one in session.stories.items() if one.standing is Standing.PASSED)
        story_list = story_list.with_passes(dict.fromkeys(passed, True))
    candidate = journal.resume_candidate(now)
    night = Night(
        project=project,
        now=now,
        config=config,
        story_list=story_list,
        stories_problem=problem,
        run=run,
        session=session,
        holder=holder,
        wait=journal.open_wait(run.id) if run and holder else None,
        iterations=tuple(journal.latest_iterations(run.id, _NEWEST)) if run else (),
        pending=tuple(journal.pending_requests(run.id)) if run else (),
        calls=journal.starts_since(now - HOUR),
        expired=candidate.expired if candidate else False,
        book=book,
        flying=tuple(journal.unfinished_iterations(run.id)) if run else (),
        through=journal.through(run.id) if run and book and holder else {},
        errands=tuple(_errands(project, journal, run, candidate, now=now)),
        proposals=tuple(one for one in journal.proposals() if one.is_open),
        exchanged=journal.meta(SWAP_KEY) is not None and holder is None,
    )
    looks = stories_of(story_list, session.stories, _waits(night, journal.dearest()))
    return replace(night, stories=tuple(looks))


def _errands(
    project: Project,
    journal: Queries,
    run: RunRecord | None,
    candidate: ResumeCandidate | None,
    *,
    now: float,
) -> Iterator[ErrandLook]:
    """What was given in words since a run of the list began, each once, as it stands."""
    if run is not None and run.prd_path.startswith(ERRANDS):
        return  # it is shown itself
    holder = holder_of(project, now)
    resumable = candidate.run.id if candidate and not candidate.expired else ""
    seen = set[str]()
    for errand in journal.latest_errands(_MOST_ERRANDS):
        is_older = run is not None and errand.started_at < run.started_at
        if is_older or errand.prd_path in seen:
            continue
        seen.add(errand.prd_path)
        try:
            story = load(project.root / errand.prd_path).list.stories[0]
        except (RalphError, IndexError):
            continue  # somebody tidied up
        state = state_of(journal.story_states(errand.id, readable), story.id)
        is_live = holder is not None and holder.run == errand.id
        can_continue = errand.id == resumable and not is_live
        yield ErrandLook(errand, StoryLook(story, state), is_live, can_continue)


def _waits(night: Night, dearest: Expense | None) -> dict[str, StoryWait]:
    """Why open stories wait while lanes work; decided as the run decides it."""
    stories = night.story_list
    book = night.book
    flying = [it.story or "" for it in night.working]
    starts = night.state is State.RUNNING and night.circuit.circuit is not Circuit.OPEN
    if stories is None or book is None or not (flying and starts):
        return {}
    free = book.count - len(flying)
    most = night.config.limits.calls_per_hour
    at_work: list[Expense | None] = [None for _ in flying]
    capped = night.config.agent.keeps_to_budget
    room = room_for(
        night.limits, night.totals, lanes=book.count, flying=at_work, dearest=dearest, capped=capped
    )
    room = min(room, max(0, most - night.calls)) if most else room
    found = {}
    for name, wait in assign(
        stories, night.session.stories, flying=flying, room=room
    ).waits.items():
        is_kept_back = wait.waits_for is WaitsFor.LANE and room < free
        found[name] = StoryWait(waits_for=WaitsFor.LIMITS) if is_kept_back else wait
    passed = {story.id for story in stories.stories if story.passes}
    for story in stories.stories:
        needs = [name for name in story.depends_on if name not in passed]
        if needs and not story.passes:
            found[story.id] = StoryWait(waits_for=WaitsFor.STORIES, other=some(needs, 2))
    return found


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
    """The story file of the run, else the one a run would find, if it may be opened."""
    if run is not None:
        return project.root / run.prd_path
    path = found_story_file(project, config)
    loaded, _ = check_config(project.root, env=os.environ)
    insist_on_place(loaded, project.root, path, os.environ)
    return path


def found_story_file(project: Project, config: Config) -> Path:
    """The story file that a run would find, wherever the repository leads."""
    named = project.root / config.stories.prd
    return named if named.exists() else find_source(project.root)


def stories_of(
    story_list: StoryList | None, states: States, waits: Mapping[str, StoryWait] = {}
) -> Iterator[StoryLook]:
    """The list's stories, then those only the journal remembers."""
    stories = story_list.stories if story_list else ()
    for story in stories:
        state = state_of(states, story.id)
        yield StoryLook(story, state, wait=waits.get(story.id))
    for name in sorted(states.keys() - {story.id for story in stories}):
        if name or not stories:
            title = "no longer in the story list" if name else "the prompt"
            yield StoryLook(Story(id=name, title=title, index=0), states[name], is_listed=False)


def _is_history(journal: Queries, run: RunRecord) -> bool:
    """Whether a later run had the same list: then the file says nothing about this one."""
    if run.ended_at is None or not run.prd_path:
        return False
    later = (one for one in journal.runs(_SEARCHED_RUNS) if one.started_at > run.started_at)
    return any(one.prd_path == run.prd_path for one in later)


class ListThen(NamedTuple):
    """A story list as a run left it."""

    stories: StoryList
    states: dict[str, StoryState]


def list_then(
    journal: Queries, run: RunRecord, states: States, today: StoryList | None
) -> ListThen:
    """The stories of an earlier run as it left them, by its own rows; today's file has words for
    those that are still the same."""
    titles: dict[str, str] = {}
    for iteration in journal.every_iteration(run.id):
        story = iteration.record.story
        if story is not None and iteration.story:
            titles[iteration.story] = story.title
    known = {story.id: story for story in today.stories} if today else {}
    stories = []
    for index, name in enumerate(name for name in states if name):
        passes = states[name].standing is Standing.PASSED
        title = titles.get(name, "")
        story = known.get(name)
        if story is None or (title and not story.title.startswith(title)):
            story = Story(id=name, title=title or name, index=index)
        stories.append(structs.replace(story, passes=passes, index=index))
    stories.sort(key=lambda story: known[story.id].index if story.id in known else len(known))
    found = dict(states)
    # Of others in that list only their number was written down.
    end = _end_of(journal, run)
    passed = sum(story.passes for story in stories)
    for number in range(1, end.total - len(stories) + 1):
        passes = number <= end.passed - passed
        title = "passed before" if passes else "not begun then"
        name = f"{UNTOUCHED} {number}"
        stories.append(Story(id=name, title=title, index=len(stories), passes=passes))
        if passes:
            found[name] = StoryState(standing=Standing.PASSED)
    return ListThen(StoryList(stories=tuple(stories), source=run.prd_path), found)


def _decided_since(journal: Queries, states: dict[str, StoryState]) -> dict[str, StoryState]:
    """Those states, with what a person took or sent back later: their word is written down with the
    newest run, and what they decided is nowhere a thing to do."""
    newest = journal.latest_night()
    known = journal.story_states(newest.id, readable) if newest else {}
    found = {}
    for name, state in states.items():
        now = state_of(known, name).proof
        proof = structs.replace(state.proof, works_sent_back=now.works_sent_back)
        if now.accepted and now.commit == proof.commit and now.work == proof.work:
            proof = structs.replace(proof, accepted=True)
        found[name] = structs.replace(state, proof=proof)
    return found


def _end_of(journal: Queries, run: RunRecord) -> RunFinished:
    """What was said when the run ended; nothing where that was not written down."""
    for event in reversed(journal.last_events(run.id, _EVENT_PAGE)):
        if isinstance(event.what, RunFinished):
            return event.what
    return RunFinished()


class Position(NamedTuple):
    look: StoryLook
    position: int | None  # in which order it runs; None: it does not, or has passed
    why: str  # the position's reason, or why there is none


def arranged(story_list: StoryList, states: States) -> Iterator[Position]:
    """The open stories in the order they run, those that cannot, then the passed ones."""
    position = 0
    unavailable: dict[str, str] = {}
    for name, state in states.items():
        why = state.reason or "no reason was given"
        if state.standing is Standing.BLOCKED:
            unavailable[name] = f"waits for a person: {why}"
        elif state.standing is Standing.SET_ASIDE:
            chance = (
                "" if state.attempt.second_chance else "; one more chance when all else is done"
            )
            unavailable[name] = f"set aside: {why}{chance}"
    for step in plan(story_list, unavailable=unavailable):
        position += step.runs
        look = StoryLook(step.story, state_of(states, step.story.id))
        yield Position(look, position if step.runs else None, step.reason)
    for story in story_list.stories:
        if story.passes:
            state = state_of(states, story.id)
            why = state.reason if state.standing is Standing.PASSED else "marked by a person"
            yield Position(StoryLook(story, state), None, why)


@dataclass(frozen=True)
class RecordedRun:
    """A run, and everything that can be found out about it."""

    night: Night
    run: RunRecord
    journal: Queries
    commits: Mapping[int, str] = field(default_factory=dict)  # iteration → the commit it made
    learnings: tuple[str, ...] = ()

    def iterations(self) -> Iterator[IterationRecord]:
        return self.journal.every_iteration(self.run.id)

    def events(self) -> Iterator[LoopEvent]:
        """What happened, in order; it may be pruned, then it is missing."""
        seq = seen = 0
        while seen < _MOST_EVENTS:
            page = self.journal.events_since(self.run.id, seq, _EVENT_PAGE)
            if not page:
                return
            yield from page
            seq = page[-1].seq
            seen = seen + len(page)


@contextmanager
def recorded(project: Project, wanted: str | None) -> Iterator[RecordedRun | None]:
    """The newest run, or the one that is called so; None where there is none."""
    from ralphloop.learning.model import PatternStanding, review_hint
    from ralphloop.learning.store import load_index

    with reading(project) as journal:
        run = find_run(journal, wanted)
        if run is None:
            yield None
            return
        now = time.time()
        holder = holder_of(project, now, run.id)
        night = look_at(project, journal, run, now=now, holder=holder)
        # What became of what was learned in it, each with its standing and the reason.
        since = iso(run.started_at)
        until = iso(run.ended_at or run.last_activity)
        known = load_index(project).patterns
        seen = [one for one in known if since <= one.touched <= until]
        seen.sort(key=lambda one: (not one.is_published, str(one.standing)))
        told = review_hint(known)
        for one in seen:
            held = one.standing is PatternStanding.HELD_BACK
            words = f" (ralph learnings why {one.id})" if held else f": {one.sentence}"
            told.append(f"{one.standing}{one.because}{words}")
        yield RecordedRun(night, run, journal, commits_of(project, run, journal), tuple(told))


def doubted(project: Project) -> str:
    """How the journal is not what we wrote there; empty where it is."""
    belief = belief_in(project.journal)
    return "" if belief is Belief.OURS else str(belief)


def reading(project: Project) -> JournalReader:
    return JournalReader.open(project.journal)


def has_run(project: Project) -> bool:
    if not project.journal.exists():
        return False
    with reading(project) as journal:
        return journal.latest_run() is not None


def has_unfinished_run(project: Project) -> bool:
    """Whether a run of any kind was neither completed nor replaced by another one."""
    with reading(project) as journal:
        return bool(journal.unfinished_runs())


def find_run(journal: Queries, wanted: str | None) -> RunRecord | None:
    """The newest run, or the one whose id is, begins or ends like that."""
    if wanted is None:
        return journal.latest_run()
    if exact := journal.find_run(wanted):
        return exact
    runs = journal.runs(_SEARCHED_RUNS)
    close = [run for run in runs if run.id.startswith(wanted) or run.id.endswith(wanted)]
    if len(close) == 1:
        return close[0]
    names = ", ".join(run.id for run in (close or runs)[:5])
    what = f"{counted(len(close), 'run', 'is')} called" if close else "there is no run"
    raise UsageError(f"{what} {wanted[:60]!r}", f"name one of: {names}" if names else "ralph run")


def commits_of(project: Project, run: RunRecord, journal: Queries) -> dict[int, str]:
    """The commits we made for the iterations of a run, by their trailers or as we noted them."""
    from ralphloop.repo.commit import marked_commits
    from ralphloop.repo.git import Git

    since = (f"^{run.head}",) if run.head else ()
    heads = ("HEAD", *((f"--branches={run.branch}",) if run.branch else ()))
    most = f"--max-count={_MOST_COMMITS}"
    found: dict[int, str] = {}
    with suppress(RalphError):  # no repository, or the branch is gone
        for commit, mark in marked_commits(Git(project.root), most, *heads, *since):
            name, _, number = mark.rpartition("/")
            if name == run.id and number.isdigit() and len(number) < 10:
                found.setdefault(int(number), commit)
        git = Git(project.root)
        for made in journal.interventions(run.id):
            one = made.change
            if not isinstance(one, Committed) or not one.commit or one.iteration in found:
                continue
            if git.contains("HEAD", one.commit) or git.contains(run.branch, one.commit):
                found[one.iteration] = one.commit
    return found


def own_commits(
    iterations: Iterable[IterationRecord], commits: Mapping[int, str]
) -> dict[str, list[str]]:
    """By story what `git show` takes, oldest first: a commit that was made for it, or a range
    `A..B` where its agent committed as well.  Iterations come in order, with our commits."""
    found: dict[str, list[str]] = {}
    # HEAD before it, did the agent commit
    story = ""
    head = ""
    own = False
    for it in iterations:
        if it.finished_at is None:
            continue
        if story != (it.story or ""):  # a row of them on one story belongs together
            story = it.story or ""
            head = it.head
            own = False
        own = own or it.commits > 0
        if commit := commits.get(it.n):
            first = f"{head[:10]}.." if own and _HEX.fullmatch(head) else ""
            found.setdefault(story, []).append(f"{first}{commit[:10]}")
            head = commit
            own = False
    return found


def own_changes(journal: Queries, project: Project, story: str) -> list[str]:
    """What shows a story's change in the newest run that passed it, since it was last sent back."""
    for run in journal.runs(_RUNS_WITH_CHANGES):
        back = (it for it in journal.rejections(run.id) if it.story == story)
        since = max((it.after for it in back), default=0)
        mine = (it for it in journal.every_iteration(run.id, brief=True) if it.n > since)
        if shows := own_commits(mine, commits_of(project, run, journal)).get(story):
            return shows
    return []
