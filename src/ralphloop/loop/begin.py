"""The beginning of an iteration: its prompt, and its words in the journal before the agent."""

import hashlib
from contextlib import suppress
from pathlib import Path

from ralphloop.core.events import AgentChanged, IterationStarted
from ralphloop.core.iteration import LearnedPart, PromptSize, Start
from ralphloop.core.model import Circuit, Story, StoryList, Value
from ralphloop.core.run_state import Session, StoryState
from ralphloop.errors import InputError
from ralphloop.journal.records import IterationRecord
from ralphloop.journal.views import PROGRESS_VIEW, progress_tail
from ralphloop.loop.prepare import GONE, Setup, Worker, at_work, back_at, spec_of, team
from ralphloop.loop.repair import Settings, read_settings
from ralphloop.loop.runner import Runner
from ralphloop.project import relative
from ralphloop.prompts import DEFAULT_BUDGET, SHORT_BUDGET, Parts, Prompt, build_prompt
from ralphloop.repo.snapshot import Snapshot
from ralphloop.room import new_file, open_regular
from ralphloop.text.durations import iso

_PROGRESS_BYTES = 12_000
_SPEC_BYTES = 1 << 20


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
    carried: LearnedPart = LearnedPart()  # what the prompt brings of earlier learning

    @property
    def story_began(self) -> Snapshot:
        """What stands without the story: where it began, with all that others changed since."""
        return Snapshot(tree=self.state.start_tree or self.before.tree, head=self.before.head)

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
            prompt=PromptSize(characters=len(prompt.text), left_out=prompt.left_out),
            learning=self.carried.share,
        )


def begin(runner: Runner, story: Story | None, stories: StoryList | None) -> Round:
    """Write the iteration ahead: after a crash another process can go on where it ended."""
    session, now = runner.session, runner.clock()
    number = session.number + 1
    workers = team(runner.setup.workers, session.story(story.id if story else None).failed)
    worker = at_work(workers, session.quota, now) or workers[0]
    _tell_agent(runner, workers[0], worker)
    state = _state_before(runner, story.id if story else None, worker)
    before, settings = runner.tree(), read_settings(runner.setup.project.root)
    stashes = frozenset(runner.setup.repo.stashes()) if runner.setup.repo else None
    carried = carried_for(runner.setup, story, worker)
    prompt = brief(runner.setup, session, story, stories, learned=carried.text)
    folder = runner.setup.project.transcripts / runner.run
    folder.mkdir(parents=True, exist_ok=True)
    prompt_path = folder / f"{number}.prompt.md"
    encoded = prompt.text.encode("utf-8", "surrogatepass")
    written = prompt.text.encode("utf-8", "replace")
    if not runner.setup.options.session:  # which reads it; else it is for people, and a story
        from ralphloop.redaction import redact_bytes  # may hold a secret

        written = redact_bytes(written)
    with new_file(prompt_path) as file:
        file.write(written)
    started = runner.made(
        IterationStarted(
            story=story.id if story else None,
            title=story.title if story else "",
            attempt=state.attempts + 1,
            lane=runner.lane,
            by=worker.by if len(workers) > 1 else "",
            passed=stories.passed if stories else 0,
            total=stories.total if stories else 0,
            prompt_tokens=prompt.estimated_tokens,
            left_out=prompt.left_out,
        ),
        number,
    )
    runner.journal.start_iteration(
        IterationRecord(
            run=runner.run,
            n=number,
            started_at=now,
            story=story.id if story else None,
            attempt=state.attempts + 1,
            head=before.head or "",
            tree=before.tree,
            prompt_digest=hashlib.sha256(encoded).hexdigest(),
            prompt_path=str(prompt_path.relative_to(runner.setup.project.directory.parent)),
        ),
        [started],
    )
    session.number = number
    runner.sink(started)
    return Round(
        number=number,
        worker=worker,
        story=story,
        stories=stories,
        state=state,
        before=before,
        prompt=prompt,
        transcript=folder / f"{number}.log",
        list_bytes=runner.read[0] if runner.read else b"",
        settings=settings,
        stashes=stashes,
        carried=carried,
    )


def _tell_agent(runner: Runner, first: Worker, worker: Worker) -> None:
    """Say who stands in for whom, where that is new, and when the one that is away is back."""
    away, other = first.clocks[1], worker.clocks[1]
    if worker is first and runner.stands_in[0] == away:
        runner.stands_in = ("", "")
        runner.emit(AgentChanged(agent=away))
    elif worker is not first and runner.stands_in != (away, other):
        runner.stands_in = (away, other)
        back = back_at(first, runner.session.quota)
        until = iso(back) if back != GONE else None
        runner.emit(AgentChanged(agent=other, away=away, until=until))


def begun_again(runner: Runner, cut: IterationRecord, stories: StoryList | None) -> Round:
    """An iteration that another process began, from the journal and the list as it was then."""
    known, failed = runner.setup.stories, runner.session.story(cut.story).failed
    worker = team(runner.setup.workers, failed)[0]
    return Round(
        number=cut.n,
        worker=worker,
        story=stories.get(cut.story) if stories and cut.story is not None else None,
        stories=stories,
        state=_state_before(runner, cut.story, worker),
        before=Snapshot(tree=cut.tree, head=cut.head or None),
        prompt=Prompt(text=""),
        transcript=runner.setup.project.transcripts / cut.run / f"{cut.n}.log",
        list_bytes=known.path.read_bytes() if known else b"",
    )


def _state_before(runner: Runner, story: str | None, worker: Worker) -> StoryState:
    """What is known of the story; of a conversation only where it will be gone on with."""
    state = runner.session.story(story)
    resumes = worker.config.context == "resume" and state.session_agent == worker.name
    return state if resumes else state.fresh_conversation()


def carried_for(setup: Setup, story: Story | None, worker: Worker) -> LearnedPart:
    """What earlier runs have learned for this story; a session reads skills and memory itself."""
    config = setup.config.learning
    if not config.enabled or setup.options.session:
        return LearnedPart()
    from ralphloop.learning.select import carry

    return carry(setup.project, story, config=config, agent=worker.name)


def brief(
    setup: Setup,
    session: Session,
    story: Story | None,
    stories: StoryList | None,
    *,
    learned: str = "",
) -> Prompt:
    desk, name = session.desk, story.id if story else ""
    state, spec, text = session.story(name), None, ""
    notes = (*desk.notes, *desk.own.get(name, ()))
    try:
        if story and (spec := spec_of(story, setup)) is not None:
            with open_regular(spec) as file:
                text = file.read(_SPEC_BYTES).decode("utf-8", "replace")
    except (InputError, OSError) as error:
        # It was there when the run began; an agent that removed it does not end the night.
        notes = (*notes, f"The parent specification cannot be read: {error}")
    progress = ""
    with suppress(OSError):
        tail = progress_tail(setup.project.root / PROGRESS_VIEW, _PROGRESS_BYTES)
        progress = tail.decode("utf-8", "replace")
        progress = progress[max(0, progress.find("## Iteration")) :]
    parts = Parts(
        instructions=setup.instructions,
        stories=stories,
        story=story,
        state=state,
        spec=text,
        spec_name=relative(spec, setup.project.root) if spec and text else "",
        learned=learned,
        checks=session.frozen.checks,
        nudge=_nudge(session),
        progress=progress,
        notes=notes,
        boxed=bool(setup.agent_boxes) and setup.config.sandbox.git == "read-only",
        in_session=bool(setup.options.session),
    )
    # A request that was refused may have been too long.
    return build_prompt(parts, budget=SHORT_BUDGET if state.refusals else DEFAULT_BUDGET)


def _nudge(session: Session) -> str:
    """In HALF_OPEN: what was tried, what failed, and that another way is needed."""
    state = session.state
    if state.breaker.circuit is not Circuit.HALF_OPEN:
        return ""
    lines = [f"The last {state.breaker.no_progress} runs changed nothing that counts."]
    if state.breaker.last_error:
        lines.append(f"The last error was: {state.breaker.last_error}")
    replies = [entry.reply[:200] for entry in state.window[-2:] if entry.reply]
    lines += [f'One of them said: "{reply}"' for reply in replies]
    lines.append(
        "Do not repeat that. Take a different and smaller step that changes a file, or report"
        " BLOCKED with what you need from a person."
    )
    return "\n".join(lines)
