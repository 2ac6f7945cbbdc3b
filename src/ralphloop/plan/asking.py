"""Asking an agent something about a repository that it may read and not change.

Each question is one start, bounded in time and money, with the flags that let an agent only read;
in a sandbox of ours the work tree is read-only besides.  What it can still do is measured: where
the work tree, a branch or git's settings are not what they were, the answer is not used.
"""

import asyncio
import hashlib
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from ralphloop.agents.base import AgentRequest
from ralphloop.agents.prices import billed
from ralphloop.agents.process import Rules, run_agent
from ralphloop.agents.transcript import Transcript
from ralphloop.core.iteration import Result
from ralphloop.core.model import Outcome, Usage
from ralphloop.core.run_state import Conversation
from ralphloop.core.story_after import accounted
from ralphloop.errors import AgentUnavailable, RepositoryError
from ralphloop.loop.confine import read_only
from ralphloop.loop.prepare import Setup
from ralphloop.loop.signals import signals_to
from ralphloop.loop.workspace import measure_of
from ralphloop.plan.draft import plan_room
from ralphloop.proc.threads import StopSignal
from ralphloop.project import RALPH_DIR
from ralphloop.repo.work_tree import Repository, never_committed, project_prefix
from ralphloop.room import read_regular
from ralphloop.text.plain import some

STORY = "plan"  # the name under which a scripted agent knows these starts
_STALL_S = 300.0
_LONGEST_ANSWER = 60_000  # as it is said again to an agent that forgets
_LARGEST_FILE = 1 << 26


class Asker:
    """One conversation with one agent, and what it has cost so far."""

    def __init__(
        self,
        setup: Setup,
        *,
        max_cost: float,
        max_time: float,
        tell: Callable[[str], None],
        story: str = STORY,
        room: Path | None = None,  # where its output is kept; else where plans are
    ) -> None:
        self.usage = Usage()
        self.unpriced = 0
        self.starts = 0
        self.seconds = 0.0
        self.worker = setup.workers[0]
        self._setup = setup
        self._tell = tell
        self._max_cost = max_cost
        self._max_time = max_time
        self._story = story
        self._room = room
        self._run, self._talk, self._said = f"plan-{uuid.uuid4().hex[:12]}", Conversation(), ""

    def ask(self, prompt: str, again: str = "", *, is_in_prompt: bool = False) -> str:
        """Its answer to a prompt, or to what is to be said after it in the same conversation.

        What the prompt says by now itself is not said a second time to an agent that gets it anew.
        """
        resume = self._talk.id if again and self.worker.agent.resumes else ""
        anew = [prompt] if is_in_prompt else [prompt, self._said, again]
        text = again if resume else "\n\n".join(filter(None, anew))
        repo = self._setup.repo
        project = self._setup.project
        own = never_committed(project_prefix(repo.root, project.root) if repo else "")
        with closing(measure_of(msgspec.structs.replace(self._setup.site, own=own))) as measure:
            before = measure.tree()
            held = _held(repo)
            finished = asyncio.run(self._started(text, resume))
            # First of all its time and its money are counted.
            prices = self._setup.config.prices.models
            env = self._setup.options.env
            response = billed(finished.response, self.worker.config, env, prices)
            accounts = accounted(self._talk, response)
            used = accounts.own
            self.usage = self.usage + used
            self.seconds = self.seconds + finished.end.duration_s
            self.unpriced += response.model_output and used.cost_usd is None
            name = response.session_id or ""
            self._talk = Conversation(id=name, usage=accounts.conversation)
            after = measure.tree()
            changed = [it.path for it in measure.changes(before.tree, after.tree)]
        now = _held(repo)
        if changed := [*changed, *(name for name in {**held, **now} if held[name] != now[name])]:
            raise RepositoryError(
                f"the work tree changed while {self.worker.name} read it: {some(changed)};"
                " its answer was not used",
                "Look at the change with `git status`. If it was yours, run the command again.",
            )
        if finished.end.interrupted:
            raise KeyboardInterrupt
        if response.outcome not in (Outcome.COMPLETED, Outcome.DENIED):
            why = finished.stopped_because or response.reason or str(response.outcome)
            where = f"What it printed is in {RALPH_DIR}/plan/{self._run}-{self.starts}.log."
            if self._room is not None:
                where = "What it printed was not kept."
            raise AgentUnavailable(f"{self.worker.name} gave no answer: {why}", where)
        answer = response.final_text or response.text
        self._said = f"# Your answer before\n\n{answer[:_LONGEST_ANSWER]}"
        return answer

    async def _started(self, prompt: str, resume: str) -> Result:
        left = self._max_cost - self.usage.dollars if self._max_cost else None
        wall = self._max_time - self.seconds
        if wall <= 0 or (left is not None and left <= 0):
            what = "--max-time" if wall <= 0 else f"--max-cost ${self._max_cost:.2f}"
            raise AgentUnavailable(f"{what} is used up", "Raise it, or plan a smaller piece.")
        self.starts += 1
        worker = self.worker
        project = self._setup.project
        box = self._setup.site.agent_boxes.get(worker.name)
        request = AgentRequest(
            config=worker.config,
            settings_dir=project.directory / "agent",
            prompt=prompt,
            cwd=project.root,
            run_id=self._run,
            iteration=self.starts,
            inherited=self._setup.site.env_for(worker.name),
            box=read_only(box, self._setup.site) if box else None,
            story_id=self._story,
            session_id=None if resume else str(uuid.uuid4()),
            resume=resume or None,
            budget_usd=left,
            reads_only=True,
        )
        launch = worker.agent.launch(request)
        stop = StopSignal()
        room = self._room or plan_room(project.directory)
        log = room / f"{self._run}-{self.starts}.log"
        with Transcript(log) as sink, signals_to(stop, project.log, self._tell):
            return await run_agent(
                launch,
                sink=sink,
                rules=Rules(wall_s=wall, stall_s=min(_STALL_S, wall)),
                stop=stop,
                on_event=lambda it: self._tell(it.summary) if it.kind == "tool" else None,
            )


def _held(repo: Repository | None) -> dict[str, str]:
    """What reading must leave as it is besides the work tree, each with a mark of it."""
    if repo is None:
        return {}
    marks = {
        "HEAD": f"{repo.branch()} {repo.head()}",
        "git's branches": hashlib.sha256(repo.git.run("for-each-ref")).hexdigest(),
    }
    for place in (repo.common_dir / name for name in ("config", "hooks", "info")):
        held = hashlib.sha256()
        for path in sorted(place.iterdir()) if place.is_dir() else [place]:
            held.update(bytes(path) + b"\0")
            with suppress(OSError):
                held.update(hashlib.sha256(read_regular(path, most=_LARGEST_FILE)).digest())
        # By what they hold: git itself touches these files without changing them.
        marks[f".git/{place.name}"] = held.hexdigest()
    return marks
