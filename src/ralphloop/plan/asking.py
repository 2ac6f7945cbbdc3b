"""Asking an agent something about a repository that it may read and not change.

Each question is one start, bounded in time and money, with the flags that let an agent only read;
in a sandbox of ours the work tree is read-only besides.  What it can still do is measured: where
the work tree, a branch or git's settings are not what they were, the answer is not used.

A repair goes on with the same conversation where the agent can; the others hear everything again.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from ralphloop.agents.base import AgentRequest
from ralphloop.agents.models import as_recorded
from ralphloop.agents.prices import priced
from ralphloop.agents.process import Rules, run_agent
from ralphloop.agents.transcript import Transcript
from ralphloop.core.model import AgentEvent, Outcome, Response, Usage
from ralphloop.core.story_after import conversation, used
from ralphloop.core.story_state import StoryState
from ralphloop.errors import AgentUnavailable, RepositoryError
from ralphloop.loop.prepare import Member, Setup
from ralphloop.loop.signals import signals_to
from ralphloop.plan.draft import plan_room
from ralphloop.proc.sandbox import Box, Place
from ralphloop.proc.steps import StopSignal
from ralphloop.project import RALPH_DIR, Project
from ralphloop.readers import reader_for
from ralphloop.room import read_regular
from ralphloop.text.plain import some

STORY = "plan"  # the name under which a scripted agent knows these starts
_STALL_S = 300.0
_MOST_FILES = 50_000


class Asker:
    """One conversation with one agent, and what it has cost so far."""

    def __init__(
        self,
        setup: Setup,
        *,
        max_cost: float,
        max_time: float,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.usage, self.unpriced, self.starts = Usage(), 0, 0
        self._setup, self._tell = setup, tell
        self._max_cost, self._until = max_cost, time.monotonic() + max_time
        self._run = f"plan-{uuid.uuid4().hex[:12]}"
        self._talk = StoryState()
        self._said: list[str] = []

    @property
    def member(self) -> Member:
        return self._setup.crew[0]

    def ask(self, prompt: str, again: str = "") -> str:
        """Its answer to a prompt, or to what is to be said after it in the same conversation."""
        resume = self._talk.session_id if again and self.member.agent.resumes else ""
        text = again if resume else "\n\n".join([prompt, *self._said[-1:], again]).strip()
        before = fingerprint(self._setup)
        response = asyncio.run(self._started(text, resume))
        if changed := differences(before, fingerprint(self._setup)):
            raise RepositoryError(
                f"the work tree changed while {self.member.name} read it: {some(changed)};"
                " its answer was not used",
                "Look at the change with `git status`. If it was yours, run the command again.",
            )
        self._said = [f"# Your answer before\n\n{_words_of(response)[:60_000]}\n"]
        return _words_of(response)

    async def _started(self, prompt: str, resume: str) -> Response:
        left = self._max_cost - self.usage.dollars if self._max_cost else None
        wall = self._until - time.monotonic()
        if wall <= 0 or (left is not None and left <= 0):
            what = "--max-time" if wall <= 0 else f"--max-cost ${self._max_cost:.2f}"
            raise AgentUnavailable(f"{what} is used up", "Raise it, or plan a smaller piece.")
        self.starts += 1
        member, project = self.member, self._setup.project
        box = self._setup.agent_boxes.get(member.name)
        request = AgentRequest(
            config=member.config,
            settings_dir=project.directory / "agent",
            prompt=prompt,
            cwd=project.root,
            run_id=self._run,
            iteration=self.starts,
            inherited=self._setup.env_for(member),
            box=_read_only(box, self._setup) if box else None,
            story_id=STORY,
            session_id=None if resume else str(uuid.uuid4()),
            resume=resume or None,
            budget_usd=left,
            reads_only=True,
        )
        launch, stop = member.agent.launch(request), StopSignal()
        log = plan_room(project.directory) / f"{self._run}-{self.starts}.log"
        with Transcript(log) as sink, signals_to(stop, project.log, self._tell):
            finished = await run_agent(
                launch,
                reader=reader_for(launch.reader),
                sink=sink,
                rules=Rules(wall_s=wall, stall_s=min(_STALL_S, wall)),
                stop=stop,
                on_event=self._heard,
            )
        return self._booked(finished.response, log)

    def _heard(self, event: AgentEvent) -> None:
        if event.kind == "tool" and event.summary:
            self._tell(event.summary)

    def _booked(self, response: Response, log: Path) -> Response:
        """The same, once it is paid for; raises where there is no answer in it."""
        response = as_recorded(response, self.member.config, self._setup.options.env)
        if response.usage.total_tokens:
            usage = priced(response.usage, response.model or "")
            response = msgspec.structs.replace(response, usage=usage)
        own = used(response, self._talk)
        self.usage = self.usage + own
        self.unpriced += response.model_output and own.cost_usd is None
        self._talk = msgspec.structs.replace(
            self._talk,
            session_usage=conversation(response, self._talk),
            session_id=response.session_id or "",
        )
        if response.outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt
        if response.outcome not in (Outcome.COMPLETED, Outcome.DENIED):
            reason = response.reason or str(response.outcome)
            raise AgentUnavailable(
                f"{self.member.name} gave no answer: {reason}",
                f"What it printed is in {log.relative_to(self._setup.project.root)}.",
            )
        return response


def _words_of(response: Response) -> str:
    return response.final_text or response.text


def _read_only(box: Box, setup: Setup) -> Box:
    """The same box, whose work tree cannot be written."""
    root = str(setup.repo.root if setup.repo and not setup.repo.scope else setup.project.root)
    own = str(setup.project.directory / "agent")
    places = {
        path: Place.READ
        if kind is Place.WRITE and f"{path}/".startswith(f"{root}/") and not path.startswith(own)
        else kind
        for path, kind in box.places.items()
    }
    return msgspec.structs.replace(box, places=places)


# --- whether anything changed ------------------------------------------------------------------


def fingerprint(setup: Setup) -> dict[str, str]:
    """Everything that reading must leave as it is, each with a mark that changes with it."""
    repo = setup.repo
    if repo is None:
        return dict(_files(setup.project))
    own = setup.project.directory.resolve()
    marks = {
        (name := os.fsdecode(one.path)): f"{one.staged}{one.unstaged} {_mark(repo.root / name)}"
        for one in repo.status().entries
        if not (repo.root / os.fsdecode(one.path)).is_relative_to(own)
    }
    marks["git's branches"] = hashlib.sha256(repo.git.run("for-each-ref")).hexdigest()
    marks["HEAD"] = f"{repo.branch()} {repo.head()}"
    for name in ("config", "hooks", "info"):
        place = repo.common_dir / name
        inside = sorted(place.iterdir()) if place.is_dir() else [place]
        marks[f".git/{name}"] = " ".join(_content(path) for path in inside)
    return marks


def _content(path: Path) -> str:
    """By what it holds: git itself touches these files without changing them."""
    try:
        return f"{path.name}:{hashlib.sha256(read_regular(path, most=1 << 26)).hexdigest()}"
    except OSError:
        return f"{path.name}:-"


def _files(project: Project) -> Iterator[tuple[str, str]]:
    """Where there is no git: every file but our own, as far as one can count."""
    seen = 0
    for folder, names, files in os.walk(project.root):
        names[:] = [name for name in names if name not in (RALPH_DIR, ".git")]
        for name in files:
            path = Path(folder, name)
            yield str(path.relative_to(project.root)), _mark(path)
        seen += len(files)
        if seen > _MOST_FILES:
            return


def _mark(path: Path) -> str:
    try:
        found = path.lstat()
    except OSError:
        return "gone"
    return f"{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """What is not as it was."""
    names = {**before, **after}
    return [name for name in names if before.get(name) != after.get(name)]
