"""The beginning of an iteration: its prompt, and its words in the journal before the agent."""

import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ralphloop.core.events import AgentChanged, IterationStarted
from ralphloop.core.grading import VERIFY
from ralphloop.core.handover import sharing_files
from ralphloop.core.iteration import LearnedPart, PromptSize, Start
from ralphloop.core.model import Circuit, Story, StoryList, Value
from ralphloop.core.run_state import AGENT_GONE, Session, StoryState
from ralphloop.errors import InputError
from ralphloop.journal.records import IterationRecord
from ralphloop.journal.views import PROGRESS_VIEW, progress_tail
from ralphloop.loop.prepare import (
    Setup,
    Site,
    Worker,
    at_work,
    back_at,
    first_back,
    on_accounts,
    spec_of,
    team,
)
from ralphloop.loop.repair import Settings, read_settings
from ralphloop.loop.run import Run, StandIn
from ralphloop.loop.workspace import Workspace
from ralphloop.project import LANDING, LANE_VARIABLE, Project, relative
from ralphloop.prompts import (
    DEFAULT_BUDGET,
    SHORT_BUDGET,
    OtherLane,
    Parts,
    ProgressEntry,
    Prompt,
    build_prompt,
    room_besides,
)
from ralphloop.repo.snapshot import Snapshot
from ralphloop.room import CLEAN, new_file, open_regular, state_directory
from ralphloop.text.durations import iso

_PROGRESS_BYTES = 64_000
_SPEC_BYTES = 1 << 20
_ENTRY = re.compile(r"^## Iteration .*\nTask: (.*)\nOutcome: (.*)\nSummary: (.*)$", re.M)


class PreparedPrompt(Value, kw_only=True):
    """What an agent is told, and what of it is earlier learning."""

    prompt: Prompt
    carried: LearnedPart = LearnedPart()


class Round(Value, kw_only=True):
    """An iteration that has begun, as the journal knows it."""

    number: int
    worker: Worker  # the agent that is started
    story: Story | None
    stories: StoryList | None
    state: StoryState  # of the story, before
    before: Snapshot
    prompt: Prompt
    transcript: Path
    list_bytes: bytes  # the story file, to be put back should an agent break it
    settings: Settings | None = None  # the files that say how the run works; None: not known
    stashes: frozenset[str] | None = None  # what was stashed; None: not known
    head_log: int | None = None  # how long the log of HEAD was; None: not known
    carried: LearnedPart = LearnedPart()  # what the prompt brings of earlier learning

    @property
    def story_began(self) -> Snapshot:
        """What stands without the story: where it began, with all that others changed since."""
        return Snapshot(tree=self.state.base.start_tree or self.before.tree, head=self.before.head)

    @property
    def start(self) -> Start:
        prompt = self.prompt
        return Start(
            story=self.story,
            state=self.state,
            tree=self.before.tree,
            head=self.before.head or "",
            agent=self.worker.name,
            model=self.worker.config.model,
            clocks=self.worker.clocks,
            prompt=PromptSize(characters=len(prompt.text), left_out=prompt.left_out),
            learning=self.carried.share,
        )


def begin(run: Run, workspace: Workspace, story: Story | None, stories: StoryList | None) -> Round:
    """Write the iteration ahead: after a crash another process can go on where it ended."""
    session = run.session
    now = run.clock()
    number = session.number + 1
    workers = team(run.setup.workers, session.story(story.id if story else None).totals.failed)
    accounts = on_accounts(workers, run.setup.places.values())
    free = _first_free(run, accounts, now)
    _tell_accounts(run, accounts, free)
    worker = replace(free, account="")  # which it will be is known once a machine has taken it
    _tell_agent(run, workers[0], worker)
    state = _state_before(run, story.id if story else None, worker)
    before = workspace.tree()
    settings = read_settings(workspace.project.root)
    stashes = frozenset(workspace.repo.stashes()) if workspace.repo else None
    head_log = workspace.repo.length_of_head_log() if workspace.repo else None
    told = brief(
        run.setup,
        workspace.site,
        session,
        story,
        stories,
        worker,
        work=_work_so_far(workspace, state, before),
        lanes=workspace.beside(),
    )
    prompt = told.prompt
    folder = workspace.project.transcripts / run.id
    folder.mkdir(parents=True, exist_ok=True)
    prompt_path = folder / f"{number}.prompt.md"
    encoded = prompt.text.encode("utf-8", "surrogatepass")
    written = prompt.text.encode("utf-8", "replace")
    if not run.setup.options.session:  # which reads it; else it is for people, and a story
        from ralphloop.redaction import redact_bytes  # may hold a secret

        written = redact_bytes(written)
    with new_file(prompt_path) as file:
        file.write(written)
    started = run.new_event(
        IterationStarted(
            story=story.id if story else None,
            title=story.title if story else "",
            attempt=state.attempt.failed + 1,
            lane=workspace.number,
            by=worker.by if len(workers) > 1 else "",
            passed=stories.passed if stories else 0,
            total=stories.total if stories else 0,
            prompt_tokens=prompt.estimated_tokens,
            left_out=prompt.left_out,
        ),
        number,
    )
    run.journal.start_iteration(
        IterationRecord(
            run=run.id,
            n=number,
            started_at=now,
            story=story.id if story else None,
            attempt=state.attempt.failed + 1,
            head=before.head or "",
            tree=before.tree,
            prompt_digest=hashlib.sha256(encoded).hexdigest(),
            prompt_path=str(prompt_path.relative_to(workspace.project.directory.parent)),
        ),
        [started],
    )
    session.number = number
    run.sink(started)
    return Round(
        number=number,
        worker=worker,
        story=story,
        stories=stories,
        state=state,
        before=before,
        prompt=prompt,
        transcript=folder / f"{number}.log",
        list_bytes=workspace.story_bytes(),
        settings=settings,
        stashes=stashes,
        head_log=head_log,
        carried=told.carried,
    )


def _first_free(run: Run, workers: Sequence[Worker], at: float) -> Worker:
    """Who of these is started at that time: the first that need not wait, else the first."""
    return at_work(workers, run.session.state.agent_available_at, at) or workers[0]


def _tell_agent(run: Run, first: Worker, worker: Worker) -> None:
    """Say who stands in for whom, where that is new, and when the one that is away is back."""
    now = StandIn(away=first.clocks.of_failure, instead=worker.clocks.of_failure)
    if worker == first and run.stands_in.away == now.away:
        run.stands_in = StandIn()
        run.emit(AgentChanged(agent=now.away))
    elif worker != first and run.stands_in != now:
        run.stands_in = now
        known = run.session.state.agent_available_at
        back = first_back(on_accounts([first], run.setup.places.values()), known)
        until = iso(back) if back is not None else None
        run.emit(AgentChanged(agent=now.instead, away=now.away, until=until))


def _tell_accounts(run: Run, workers: Iterable[Worker], free: Worker) -> None:
    """Say which account waits while another one is used, where that is new, and when it is back."""
    now = run.clock()
    for one in workers:
        name = one.clocks.of_limit
        back = back_at(one, run.session.state.agent_available_at)
        is_away = back == AGENT_GONE or back > now
        if one.account and is_away and name not in run.accounts_away:
            run.accounts_away.add(name)
            until = iso(back) if back != AGENT_GONE else None
            run.emit(AgentChanged(agent=free.clocks.of_limit, away=name, until=until))
        elif not is_away and name in run.accounts_away:
            run.accounts_away.remove(name)
            run.emit(AgentChanged(agent=name))


def begun_again(
    run: Run, workspace: Workspace, cut: IterationRecord, stories: StoryList | None
) -> Round:
    """An iteration that another process began, from the journal and the list as it was then."""
    known = workspace.stories
    workers = team(run.setup.workers, run.session.story(cut.story).totals.failed)
    accounts = on_accounts(workers, run.setup.places.values())
    # Nobody wrote down who it was; what it was chosen by is as it was then.
    worker = replace(_first_free(run, accounts, cut.started_at), account="")
    return Round(
        number=cut.n,
        worker=worker,
        story=stories.get(cut.story) if stories and cut.story is not None else None,
        stories=stories,
        state=_state_before(run, cut.story, worker),
        before=Snapshot(tree=cut.tree, head=cut.head or None),
        prompt=Prompt(text=""),
        transcript=workspace.project.transcripts / cut.run / f"{cut.n}.log",
        list_bytes=known.path.read_bytes() if known else b"",
    )


def _state_before(run: Run, story: str | None, worker: Worker) -> StoryState:
    """What is known of the story; of a conversation only where it will be gone on with."""
    state = run.session.story(story)
    resumes = worker.config.context == "resume" and state.conversation.agent == worker.name
    return state if resumes else state.fresh_conversation()


def _work_so_far(workspace: Workspace, state: StoryState, now: Snapshot) -> str:
    """What earlier starts at a story left in the work tree, committed or not, as a diffstat."""
    if not state.base.start_tree or state.base.start_tree == now.tree:
        return ""
    began = Snapshot(tree=state.base.start_tree, head=state.base.start_head or None)
    return workspace.measure.stat(began, now)


def _carried_for(
    setup: Setup, project: Project, story: Story | None, worker: Worker, most: int | None
) -> LearnedPart:
    """What earlier runs have learned for this story; a session reads skills and memory itself."""
    config = setup.config.learning
    if not config.enabled or setup.options.session:
        return LearnedPart()
    from ralphloop.learning.select import carry

    return carry(project, story, config=config, agent=worker.name, most=most)


def brief(
    setup: Setup,
    site: Site,
    session: Session,
    story: Story | None,
    stories: StoryList | None,
    worker: Worker,
    *,
    work: str = "",
    lanes: Sequence[OtherLane] = (),
) -> PreparedPrompt:
    """The prompt of a start: what is asked, where it stands, and what others know about it."""
    overrides = session.overrides
    name = story.id if story else ""
    state = session.story(name)
    spec = None
    text = ""
    notes = (*overrides.notes, *overrides.own.get(name, ()))
    try:
        if story and (spec := spec_of(story, site)) is not None:
            with open_regular(spec) as file:
                text = file.read(_SPEC_BYTES).decode("utf-8", "replace")
    except (InputError, OSError) as error:
        # It was there when the run began; an agent that removed it does not end the night.
        notes = (*notes, f"The parent specification cannot be read: {error}")
    parts = Parts(
        instructions=setup.instructions,
        stories=stories,
        story=story,
        state=_as_seen_from_here(state, session, story, setup, site),
        spec=text,
        spec_name=relative(spec, site.project.root) if spec and text else "",
        checks=session.baseline.checks,
        sealed=session.baseline.sealed,
        nudge=_nudge(session),
        work=work,
        lanes=_with_titles(lanes, stories),
        notes=notes,
        boxed=bool(site.agent_boxes) and setup.config.sandbox.git == "read-only",
        in_session=bool(setup.options.session),
    )
    is_first = not state.totals.iterations
    most = room_besides(parts) if story and is_first else None
    carried = _carried_for(setup, site.project, story, worker, most)
    parts = msgspec.structs.replace(
        parts,
        learned=carried.text,
        invited=carried.invited,
        progress=tuple(_recent(site, session, story)),
    )
    # A request that was refused may have been too long.
    budget = SHORT_BUDGET if state.attempt.refusals else DEFAULT_BUDGET
    return PreparedPrompt(prompt=build_prompt(parts, budget=budget), carried=carried)


def _with_titles(lanes: Sequence[OtherLane], stories: StoryList | None) -> tuple[OtherLane, ...]:
    titled = list[OtherLane]()
    for lane in lanes:
        known = stories.get(lane.story) if stories else None
        title = known.title if known else ""
        titled.append(msgspec.structs.replace(lane, title=title))
    return tuple(titled)


def _as_seen_from_here(
    state: StoryState, session: Session, story: Story | None, setup: Setup, site: Site
) -> StoryState:
    """The state with failed commands as they must be typed, and paths as they are where the agent
    works: it may have been judged in a tree that no agent can read."""
    if not state.notes.failure:
        return state
    from ralphloop.repo.checks import check_of

    typed = {check_of(argv).name: shlex.join(argv) for argv in session.baseline.checks if argv}
    if story and story.verify:
        typed[VERIFY] = shlex.join(story.verify)
    lines = list[str]()
    elsewhere = [*_places_of_judges(setup, site)]
    for told in state.notes.failure.split("\n"):
        line = told
        for place in elsewhere:
            line = place.sub("", line)
        is_command = line.startswith("$ ") and line[2:] in typed
        lines.append(f"$ {typed[line[2:]]}" if is_command else line)
    notes = msgspec.structs.replace(state.notes, failure="\n".join(lines))
    return msgspec.structs.replace(state, notes=notes)


def _places_of_judges(setup: Setup, site: Site) -> Iterator[re.Pattern[str]]:
    """How paths begin where this story may have been judged, and its agent does not work."""
    place = state_directory(setup.options.env)
    if place is not None:
        yield re.compile(rf"{re.escape(str(place / CLEAN))}/[^/\s]+/")
    is_lane = site.env.get(LANE_VARIABLE, "0") != "0"
    if is_lane and site.repo is not None:
        landing = site.repo.root.with_name(LANDING)
        yield re.compile(rf"{re.escape(str(landing))}(?:-\d+)?/")


def _recent(site: Site, session: Session, story: Story | None) -> Iterator[ProgressEntry]:
    """Entries of progress.txt, newest first: of this story, what it needs, and those near it."""
    text = ""
    with suppress(OSError):
        tail = progress_tail(site.project.root / PROGRESS_VIEW, _PROGRESS_BYTES)
        text = tail.decode("utf-8", "replace")
    entries = [
        ProgressEntry(task=task, outcome=outcome, summary=summary)
        for task, outcome, summary in _ENTRY.findall(text)
    ]
    entries.reverse()
    if story is None or not entries:
        yield from entries
        return
    if session.story(story.id).notes.said:  # which is told whole, and so is not told again
        own = next((it for it in entries if it.task.startswith(f"{story.id}: ")), None)
        entries = [it for it in entries if it is not own]
    names = (story.id, *story.depends_on, *_near(site, session, story))
    wanted = tuple(f"{name}: " for name in names)
    for entry in entries:
        if entry.task.startswith(wanted):
            yield entry


def _near(site: Site, session: Session, story: Story) -> Iterator[str]:
    """The stories that changed files which this one has changed or leads to."""
    others = (state for name, state in session.stories.items() if name != story.id)
    # In a session a person waits for every turn, and the conversation knows the other stories.
    if site.is_of_session or not any(state.notes.changed for state in others):
        return
    from ralphloop.learning.leads import is_code, story_files, tree_of

    own = session.story(story.id).notes.changed
    led_to = story_files(tree_of(site.project.root), story)
    files = {path for path in (*own, *led_to) if is_code(path)}
    yield from sorted(sharing_files(session.stories, story.id, files))


def _nudge(session: Session) -> str:
    """What was tried, what failed, and that another way is needed; empty while all goes well."""
    state = session.state
    is_doubtful = state.breaker.circuit is Circuit.HALF_OPEN
    if not is_doubtful and not state.stuck:
        return ""
    lines = []
    if is_doubtful:
        lines.append(f"The last {state.breaker.no_progress} runs changed nothing that counts.")
        if state.breaker.last_error:
            lines.append(f"The last error was: {state.breaker.last_error}")
        replies = [entry.reply[:200] for entry in state.window[-2:] if entry.reply]
        lines += [f'One of them said: "{reply}"' for reply in replies]
    lines += [f"This work goes in circles: {sign}." for sign in state.stuck]
    lines.append(
        "Do not repeat that. Take a different and smaller step that changes a file, or report"
        " BLOCKED with what you need from a person."
    )
    return "\n".join(lines)
