"""One start of the agent: write ahead, run, measure.

What comes out of it is a `Measured`: the response, the evidence, what happened to the story list.
Judging it is `judging`, writing it down is `recording`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from ralphloop.agents.base import Finished
from ralphloop.config.model import Context
from ralphloop.core.events import AgentStep, IterationStarted
from ralphloop.core.iteration import Carried, LearningShare, PromptSize, Result, Start
from ralphloop.core.limits import money_left
from ralphloop.core.model import AgentEvent, ChangedFiles, Evidence, Response, Value
from ralphloop.core.story import Story, StoryList
from ralphloop.core.story_state import StoryState
from ralphloop.errors import RalphError
from ralphloop.journal.records import IterationRecord, NewIteration
from ralphloop.loop.briefing import brief
from ralphloop.loop.crew import Member, at_work
from ralphloop.loop.putting_right import (
    back_on_the_branch,
    left_open,
    lost_heads,
    put_back_own_files,
)
from ralphloop.loop.runner import Runner
from ralphloop.loop.settings_guard import put_back_settings, read_settings
from ralphloop.loop.story_list import read_back
from ralphloop.loop.upheld import take_back, tell_taken_back
from ralphloop.prompts import Prompt
from ralphloop.repo.measures import Snapshot
from ralphloop.repo.work_tree import Repository
from ralphloop.room import new_file
from ralphloop.stories.guard import Changes

if TYPE_CHECKING:
    from ralphloop.agents.base import AgentRequest
    from ralphloop.agents.process import Rules


class Begun(Value, kw_only=True):
    """An iteration before the agent starts, as the journal knows it."""

    number: int
    member: Member  # the agent that is started
    story: Story | None
    stories: StoryList | None
    state: StoryState  # of the story, before
    before: Snapshot
    prompt: Prompt
    transcript: Path
    list_bytes: bytes  # the story file, to be put back should an agent break it
    carried: Carried = Carried()  # what the prompt brings of earlier learning

    @property
    def start(self) -> Start:
        """What the decision knows of it."""
        carried, prompt = self.carried, self.prompt
        return Start(
            number=self.number,
            story=self.story,
            state=self.state,
            tree=self.before.tree,
            head=self.before.head or "",
            agent=self.member.name,
            prompt=PromptSize(characters=len(prompt.text), left_out=prompt.left_out),
            learning=LearningShare(
                ids=carried.ids,
                skills=carried.skills,
                tokens=carried.tokens,
                held_out=carried.held_out,
            ),
        )


class Measured(Value, kw_only=True):
    """An iteration after the agent ended."""

    begun: Begun
    result: Result
    evidence: Evidence  # as far as it is known without running anything
    after: Snapshot
    changes: Changes  # of the story list
    stories: StoryList | None  # as it is now, claims put back
    meddled: tuple[str, ...] = ()  # settings of ours that were changed, in words


def begin(runner: Runner, story: Story | None, stories: StoryList | None) -> Begun:
    """Write the iteration ahead: from here on a crash leaves a trace of it."""
    session, now = runner.session, runner.clock()
    number = session.number + 1
    member = at_work(runner.setup.crew, session.quota, now) or runner.setup.crew[0]
    state = state_before(runner, story.id if story else None, member)
    before = runner.take_seen()
    runner.settings = read_settings(runner.setup.project.root)
    carried = _carried(runner, story, member)
    prompt = brief(runner.setup, session, story, stories, learned=carried.text)
    folder = runner.setup.project.transcripts / runner.run
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
    prompt_path = folder / f"{number}.prompt.md"
    with new_file(prompt_path) as file:
        file.write(prompt.text.encode("utf-8", "replace"))
    started = runner.bus.made(
        IterationStarted(
            story=story.id if story else None,
            title=story.title if story else "",
            attempt=state.attempts + 1,
            passed=stories.passed if stories else 0,
            total=stories.total if stories else 0,
            prompt_tokens=prompt.estimated_tokens,
            left_out=prompt.left_out,
        ),
        number,
    )
    runner.journal.start_iteration(
        NewIteration(
            run=runner.run,
            n=number,
            started_at=now,
            story=story.id if story else None,
            attempt=state.attempts + 1,
            head=before.head or "",
            tree=before.tree,
            prompt_digest=prompt.digest,
            prompt_path=str(prompt_path.relative_to(runner.setup.project.root)),
        ),
        [started],
    )
    session.number = number
    runner.bus.tell(started)
    return Begun(
        number=number,
        member=member,
        story=story,
        stories=stories,
        state=state,
        before=before,
        prompt=prompt,
        transcript=folder / f"{number}.log",
        list_bytes=runner.read[0] if runner.read else b"",
        carried=carried,
    )


def _carried(runner: Runner, story: Story | None, member: Member) -> Carried:
    """What earlier runs have learned for this story; a session reads skills and memory itself."""
    config = runner.config.learning
    if not config.enabled or runner.setup.options.session:
        return Carried()
    from ralphloop.learning.select import carry

    return carry(runner.setup.project, story, config=config, agent=member.name)


def begun_again(runner: Runner, cut: IterationRecord, stories: StoryList | None) -> Begun:
    """An iteration that another process began, from the journal and the list as it was then."""
    member = runner.setup.crew[0]
    return Begun(
        number=cut.n,
        member=member,
        story=stories.get(cut.story) if stories and cut.story is not None else None,
        stories=stories,
        state=state_before(runner, cut.story, member),
        before=_where_it_began(runner, cut),
        prompt=Prompt(text=""),
        transcript=runner.setup.project.transcripts / cut.run / f"{cut.n}.log",
        list_bytes=_list_bytes(runner),
    )


def _where_it_began(runner: Runner, cut: IterationRecord) -> Snapshot:
    """As it was written ahead; a journal from elsewhere knows commits that are not here."""
    repo = runner.setup.repo
    if repo is not None and cut.head:
        there = repo.git.attempt("cat-file", "-e", f"{cut.head}^{{commit}}").returncode == 0
        if not there:
            return runner.measure.tree()
    return Snapshot(tree=cut.tree, head=cut.head or None)


def state_before(runner: Runner, story: str | None, member: Member) -> StoryState:
    """What is known of the story; of a conversation only where it will be gone on with."""
    state = runner.session.story(story)
    resumes = member.config.context is Context.RESUME and state.session_agent == member.name
    return state if resumes else state.fresh_conversation()


def measured(runner: Runner, begun: Begun, finished: Finished) -> Measured:
    """What is different now that the agent has ended."""
    put_back_own_files(runner)
    elsewhere = back_on_the_branch(runner, begun.number, begun.before, begun.list_bytes)
    meddled = put_back_settings(runner, begun.number)
    listed = read_back(runner, begun.stories, begun.list_bytes, begun.state.asked)
    after = runner.measured()
    lost = lost_heads(runner, begun.number, begun.state, begun.before, after)
    gone = take_back(runner) if lost else {}
    tell_taken_back(runner, begun.number, gone)
    unfinished = left_open(runner) or elsewhere
    remarks, runner.remarks = runner.remarks, ()
    changed = runner.measure.diff(begun.before, after)
    commits = runner.measure.commits(begun.before.head, after.head)
    flipped = listed.changes.passes_flipped
    evidence = Evidence(
        files_changed=changed.count,
        commits=commits.count,
        tree=after.tree,
        work_files=changed.work_files(),
        head=after.head or "",
        changed=ChangedFiles(
            count=changed.count,
            insertions=changed.insertions,
            deletions=changed.deletions,
            subjects=commits.subjects,
        ),
        remarks=(
            *listed.findings,
            *meddled,
            *remarks,
            *lost.values(),
            *filter(None, [unfinished]),
        ),
        unfinished=unfinished,
        passes_set=begun.story is not None and flipped.get(begun.story.id) is True,
        asked=listed.asked,
        lost=lost,
    )
    return Measured(
        begun=begun,
        result=result_of(finished, begun),
        evidence=evidence,
        after=after,
        changes=listed.changes,
        stories=_reopened(listed.stories, gone),
        meddled=meddled,
    )


def result_of(finished: Finished, begun: Begun) -> Result:
    """What the decision knows of an agent that has ended."""
    asked = finished.asked
    return Result(
        response=_with_price(finished.response, begun),
        asked=_with_price(asked, begun) if asked else None,
        end=finished.end,
        stopped_because=finished.stopped_because,
        leftovers=finished.leftovers,
        stderr_tail=finished.stderr_tail,
    )


def _reopened(stories: StoryList | None, gone: Iterable[str]) -> StoryList | None:
    return stories.with_passes(dict.fromkeys(gone, False)) if stories and gone else stories


async def run_agent(runner: Runner, begun: Begun) -> Finished:
    """Start the agent and see it to its end."""
    from ralphloop.agents.process import Rules

    limits, left = runner.config.limits, money_left(runner.limits, runner.totals())
    request = request_for(runner, begun, budget_usd=left)
    rules = Rules(wall_s=limits.iteration_timeout, stall_s=limits.stall_timeout)
    return await run_request(runner, begun, request, rules, begun.transcript)


async def run_request(
    runner: Runner, begun: Begun, request: AgentRequest, rules: Rules, transcript: Path
) -> Finished:
    """One process of the agent, watched and written down."""
    from ralphloop.agents.process import run_agent as run
    from ralphloop.agents.transcript import Transcript
    from ralphloop.readers import reader_for

    launch, repo = begun.member.agent.launch(request), runner.setup.repo

    def told(event: AgentEvent) -> None:
        ok = UNSET if event.ok is None else event.ok
        runner.bus.emit(AgentStep(kind=event.kind, summary=event.summary, ok=ok), begun.number)

    def started(pid: int, since: float) -> None:
        runner.journal.set_agent_pid(runner.run, begun.number, pid=pid, pid_started=since)
        runner.settle()

    with Transcript(transcript) as sink:
        return await run(
            launch,
            reader=reader_for(launch.reader),
            sink=sink,
            rules=rules,
            stop=runner.stop,
            on_event=told,
            on_start=started,
            file_probe=(lambda: _fingerprint(repo)) if repo else None,
        )


def _with_price(response: Response, begun: Begun) -> Response:
    """The same with an estimate where the agent reports tokens and no money."""
    model = response.model or begun.member.config.model
    if not model or not response.usage.total_tokens:
        return response
    from ralphloop.agents.prices import priced

    return msgspec.structs.replace(response, usage=priced(response.usage, model))


def request_for(runner: Runner, begun: Begun, *, budget_usd: float | None) -> AgentRequest:
    """What the agent is started with."""
    import uuid

    from ralphloop.agents.base import AgentRequest

    resume = begun.state.session_id
    return AgentRequest(
        config=begun.member.config,
        settings_dir=runner.setup.project.directory / "agent",
        prompt=begun.prompt.text,
        cwd=runner.setup.project.root,
        run_id=runner.run,
        iteration=begun.number,
        inherited=runner.setup.options.env,
        story_id=begun.story.id if begun.story else None,
        session_id=None if resume else str(uuid.uuid4()),
        resume=resume or None,
        budget_usd=budget_usd,
    )


def _list_bytes(runner: Runner) -> bytes:
    return runner.setup.stories.path.read_bytes() if runner.setup.stories else b""


def _fingerprint(repo: Repository) -> str:
    """Changes whenever a file that git would report does; cheap enough to ask now and then."""
    digest = hashlib.sha256()
    try:
        for entry in repo.status().entries:
            path = repo.root / os.fsdecode(entry.path)
            try:
                stat = path.lstat()
                digest.update(f"{stat.st_mtime_ns}:{stat.st_size}:".encode())
            except OSError:
                digest.update(b"gone:")
            digest.update(entry.path + b"\0")
    except RalphError:
        return ""  # git is busy: no sign of life, and no sign of death
    return digest.hexdigest()
