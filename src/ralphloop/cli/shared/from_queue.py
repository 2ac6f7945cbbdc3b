"""`ralph run --from`: a run over the items of a queue, after a person's yes to its program."""

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ralphloop.agents.base import Inquiry
from ralphloop.atomic import write_atomic
from ralphloop.cli import output
from ralphloop.cli.shared.agreement import grants_of_project, insist_on_person, settle_trust
from ralphloop.cli.shared.foreground import run_here
from ralphloop.cli.shared.steering import refuse_agent
from ralphloop.config.load import load_config
from ralphloop.config.model import Config
from ralphloop.errors import AgentUnavailable, InputError, LockedError, UsageError
from ralphloop.journal.authenticity import insist
from ralphloop.journal.database import belief_in
from ralphloop.journal.lock import KernelLock
from ralphloop.loop.commands import begin_command
from ralphloop.loop.confine import confine
from ralphloop.loop.prepare import Options, Setup, assemble, open_repository
from ralphloop.loop.readiness import PreflightReport
from ralphloop.night.look import found_story_file
from ralphloop.project import Project, find_project
from ralphloop.room import ensure_private_dir

if TYPE_CHECKING:
    from ralphloop.forge.queues import Queue

_EMPTY = b'{\n  "userStories": []\n}\n'


def run_queue(
    options: Options, typed: str | None, *, watches: bool, besides: Sequence[str] = ()
) -> int:
    """Take items, work on them and report, once or as long as the run's limits last."""
    from ralphloop.forge.queue_run import QueuePlace, QueueRun

    if besides:
        raise UsageError("--from and --watch run here, over items", f"Leave out {besides[0]}.")
    project = find_project(options.start)
    refuse_agent(project, "run")
    insist_on_person("an agent takes nothing from a queue")
    loaded = load_config(project.root, env=options.env, flags=options.flags)
    argv = tuple(shlex.split(typed)) if typed else loaded.config.stories.queue
    if not argv:
        step = "--from github:label=ralph, or queue under [stories] in ralph.toml"
        raise UsageError("there is no queue to look at", step)
    repo = open_repository(project.root)
    setup = assemble(options, project, loaded.config, None, repo)
    setup = replace(setup, grants=grants_of_project(project, options.prd))
    settle_trust(setup)
    setup = _ready_to_work(setup)
    insist(belief_in(project.journal), project.journal)
    ensure_private_dir(project.directory)
    lock = KernelLock.attempt(project.directory / "queue")
    if lock is None:
        raise LockedError("another ralph works on a queue of this project", "Let it end.")
    try:
        place = QueuePlace(
            project=project,
            config=loaded.config,
            source=_story_file(project, options, loaded.config),
            queue=_queue(setup, argv),
            name=shlex.join(argv),
        )
        run = QueueRun(place, work=run_here, options=options, tell=output.note)
        return run.run(watches=watches)
    finally:
        lock.release()


def _ready_to_work(setup: Setup) -> Setup:
    """The same with its boxes; raises now, and not when others wait for what was claimed.

    From here on nothing of the tree is run outside of the box.
    """
    setup = confine(setup)
    if not setup.config.fleet.server:
        first = setup.workers[0]
        site = setup.site
        box = site.agent_boxes.get(first.name)
        inquiry = Inquiry(first.config, setup.project.root, site.env_for(first.name), box=box)
        PreflightReport().heed(first.agent.check(inquiry), AgentUnavailable)
    return setup


def _queue(setup: Setup, argv: tuple[str, ...]) -> "Queue":
    from ralphloop.forge.queues import GITHUB, CommandQueue, HubQueue, wanted_issues
    from ralphloop.repo.github import ask_of, remote_of

    if not argv[0].startswith(GITHUB):
        return CommandQueue(argv, partial(begin_command, setup))
    wanted = wanted_issues(argv[0])
    if setup.repo is None:
        raise InputError("there is no repository here whose issues could be read", "git init")
    own = None if wanted.repository else remote_of(setup.repo.git, "", None).place
    place = ask_of(wanted.repository or None, own).place
    return HubQueue(place, wanted.label, output.note)


def _story_file(project: Project, options: Options, config: Config) -> Path:
    """The list that items are added to; where there is none yet, an empty one."""
    if options.prd is not None:
        path = options.prd
    else:
        try:
            path = found_story_file(project, config)
        except InputError:
            path = project.root / config.stories.prd
    if not path.exists():
        write_atomic(path, _EMPTY, within=project.root)
    return path
