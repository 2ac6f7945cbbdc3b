"""`ralph plan --seal`: acceptance tests by an agent that will not do the work, sealed after a yes.

What it proposes is shown to a person and to nobody else: neither the tests nor the output in which
they stood are kept anywhere in the project, and no commit ever has them.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from ralphloop.agents.base import Inquiry
from ralphloop.cli import output
from ralphloop.cli.shared.agreement import settle_trust
from ralphloop.cli.shared.seals import keep_sealed, warn_of_reach
from ralphloop.config.model import AgentRung, AgentSection, Config
from ralphloop.core.model import Story
from ralphloop.core.totals import spent_words
from ralphloop.errors import AgentUnavailable, InputError, Level, UsageError
from ralphloop.loop.confine import confine
from ralphloop.loop.prepare import Setup, assemble
from ralphloop.plan.acceptance import (
    MOST_STORIES,
    Acceptance,
    AcceptanceBrief,
    write_acceptance,
)
from ralphloop.plan.asking import Asker
from ralphloop.repo.work_tree import project_prefix
from ralphloop.sealed import sealed_files
from ralphloop.stories.names import label
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted, one_line, some

_STORY = "seal"  # the name under which a scripted agent knows these starts
_MARK = "@"


class Author(NamedTuple):
    """An agent that writes tests, by its name and the model it uses; empty: its own choice."""

    agent: str
    model: str
    section: AgentSection  # the settings it is started with

    def __str__(self) -> str:
        return f"{self.agent}:{self.model}" if self.model else self.agent


def author_of(words: str, config: Config) -> Author:
    """Whom `--seal` means; refused where that may be who will do the work."""
    name, _, model = words.removeprefix(_MARK).partition(":")
    if not name:
        raise UsageError("--seal names no agent", "ralph plan --seal codex, or: --seal claude:opus")
    own = config.agent
    author = Author(name, model, _section_for(name, model, own))
    for worker in (*own.rungs(), *(AgentRung(one, "") for one in own.fallback)):
        if worker.agent != name or (worker.model and model and worker.model != model):
            continue
        told = f"{author} is who works on the stories"
        if worker.model != model:
            told = f"{author} may well be who works on the stories, {name} {worker.model}".rstrip()
        raise UsageError(
            f"{told} (ralph.toml), and nobody judges by tests of their own",
            "Name another agent, or another model where both are named: --seal AGENT:MODEL",
        )
    return author


def _section_for(name: str, model: str, own: AgentSection) -> AgentSection:
    """Those of the run's own agent where it is the same one; others start with their defaults."""
    alone = msgspec.structs.replace(own, name=name, model=model, fallback=(), escalate=())
    return alone if name == own.name else msgspec.structs.replace(alone, binary="", args=())


class Means(NamedTuple):
    """What asking may still take; no dollars: as many as it needs."""

    dollars: float | None
    seconds: float


class SealedPlan(NamedTuple):
    """What became of the tests that somebody wrote."""

    acceptance: Acceptance = Acceptance()
    is_sealed: bool = False
    dollars: float = 0.0
    unpriced: int = 0

    def as_data(self) -> Mapping[str, object]:
        """For `--json`: by path and story, without their text."""
        return {
            "files": [{"path": it.path, "stories": it.stories} for it in self.acceptance.files],
            "none": [msgspec.to_builtins(it) for it in self.acceptance.none],
            "sealed": self.is_sealed,
            "cost_usd": self.dollars,
            "unpriced": self.unpriced,
        }


def seal_for(
    setup: Setup, author: Author, stories: Sequence[Story], means: Means, *, has_yes: bool
) -> SealedPlan:
    """Have tests written for these stories, show them, and seal them once somebody says yes."""
    repo = setup.repo
    if repo is None:
        step = "git init, and commit what is there."
        raise InputError("sealed tests need a git repository", step)
    project = setup.project
    if len(stories) > MOST_STORIES:
        told = f"{len(stories)} stories are more than one answer can hold tests for"
        raise UsageError(told, f"Plan and seal at most {MOST_STORIES} at a time.")
    prefix = project_prefix(repo.root, project.root)
    known = sealed_files(project.root, os.environ)
    taken = frozenset(it.path.removeprefix(prefix) for it in known)
    brief = AcceptanceBrief(tuple(stories), taken)
    found = _ask(setup, author, brief, means)
    _show(found.acceptance, whole=not has_yes)
    files = found.acceptance.files
    if not files:
        output.note(f"{author} wrote no test; nothing was sealed")
        return found
    question = f"Seal {counted(len(files), 'file')}?"
    if not has_yes and not click.confirm(question, default=False, err=True):
        output.note("Nothing was sealed, and the tests were not kept.")
        return found
    for file in files:
        content = file.text.encode()
        keep_sealed(project, repo, f"{prefix}{file.path}", content, file.stories, by=str(author))
    output.note(f"Sealed {counted(len(files), 'file')}: {some([it.path for it in files])}.")
    output.note("They are kept in your state directory and nowhere else: include it in backups.")
    warn_of_reach(project)
    return found._replace(is_sealed=True)


def _ask(setup: Setup, author: Author, brief: AcceptanceBrief, means: Means) -> SealedPlan:
    """What the agent proposes, and what that cost."""
    used_up = means.seconds <= 0 or (means.dollars is not None and means.dollars <= 0)
    if used_up:
        step = f"The stories are there: ralph plan --seal {author}, with a higher --max-cost."
        raise AgentUnavailable("planning has used up what it may take", step)
    config = msgspec.structs.replace(setup.config, agent=author.section)
    asked = assemble(setup.options, setup.project, config, None, setup.repo)
    asked = msgspec.structs.replace(asked, grants=setup.grants)
    settle_trust(asked)
    asked = confine(asked)
    worker = asked.workers[0]
    site = asked.site
    box = site.agent_boxes.get(worker.name)
    inquiry = Inquiry(worker.config, setup.project.root, site.env_for(worker.name), box=box)
    for finding in worker.agent.check(inquiry):
        if finding.level is Level.ERROR:
            raise AgentUnavailable(finding.message, finding.fix)
    most = f"${means.dollars:.2f} and " if means.dollars is not None else ""
    bounds = f"at most {most}{format_duration(means.seconds)}"
    output.note(f"asking {worker.by} for acceptance tests, which only reads: {bounds}")
    # What it prints has the tests in it: no agent may find that in the project.
    with tempfile.TemporaryDirectory(prefix="ralph-seal-") as room:
        asker = Asker(
            asked,
            max_cost=means.dollars or 0.0,
            max_time=means.seconds,
            tell=_silent,
            story=_STORY,
            room=Path(room),
        )
        try:
            acceptance = write_acceptance(asker, asked, brief, output.note)
        finally:
            if asker.starts:
                paid = spent_words(asker.usage.dollars, asker.unpriced)
                output.note(f"asked {worker.by} {counted(asker.starts, 'time')}: {paid}")
    return SealedPlan(acceptance, dollars=asker.usage.dollars, unpriced=asker.unpriced)


def _silent(_line: str) -> None:
    """Say nothing: what it does meanwhile may have the tests in it."""


def _show(acceptance: Acceptance, *, whole: bool) -> None:
    """The tests, for a person who is there; else by name, since a log may lie in the project."""
    for file in acceptance.files:
        whose = some([label(name) for name in file.stories])
        output.note(f"--- {file.path}, for {whose}")
        if whole:
            output.note(f"{file.text.rstrip()}\n")
    for one in acceptance.none:
        output.note(f"no test for {label(one.story)}: {one_line(one.why, 300)}")
