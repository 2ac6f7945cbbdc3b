"""What `ralph doctor` looks at, in the order a run meets it.

Nothing is changed, and nothing is started that the project names: whoever looks at a repository has
not said yet that they trust it.
"""

from __future__ import annotations

import platform
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ralphloop import __version__
from ralphloop.agents.programs import find_program
from ralphloop.cli.doctor_agents import agent_findings
from ralphloop.config.load import check_config
from ralphloop.config.model import CommitPolicy, Config
from ralphloop.core.story import StoryList
from ralphloop.errors import ExitCode, RalphError, RepositoryError
from ralphloop.findings import Finding, Level
from ralphloop.journal.lock import live_holder, tree_holder
from ralphloop.journal.reader import JournalReader
from ralphloop.journal.records import RunRecord
from ralphloop.loop.setup import relative
from ralphloop.notify.channels import unsendable
from ralphloop.project import Project
from ralphloop.stories.files import resolve_parent_spec
from ralphloop.stories.names import label
from ralphloop.stories.source import find_source, load
from ralphloop.text.plain import counted
from ralphloop.workspace.checks import cannot_start, may_need_shell
from ralphloop.workspace.own_files import never_progress, project_prefix
from ralphloop.workspace.preflight import disk_space, inspect
from ralphloop.workspace.repo import Repository

_MOST_PROBLEMS = 10
_AWAKE = ("systemd-inhibit", "caffeinate")
_WAL_VERSION = b"\x02\x02"  # read and write version in the header of a SQLite file


class Seen(NamedTuple):
    """One thing that was looked at."""

    area: str
    level: Level
    message: str
    fix: str = ""
    code: ExitCode = ExitCode.REPO_NOT_READY  # what a run would end with, for errors


def examine(project: Project, env: Mapping[str, str]) -> Iterator[Seen]:
    """Look at everything, one by one."""
    versions = f"{__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    yield Seen("ralph", Level.OK, versions)
    loaded, problems = check_config(project.root, env=env)
    latest, journal = _journal(project)
    yield from _repository(project, loaded.config, latest)
    for problem in problems[:_MOST_PROBLEMS]:
        message = f"{problem.place}: {problem.message}"
        fix = "correct it; `ralph config validate` lists all problems"
        yield Seen("settings", Level.ERROR, message, fix, ExitCode.BAD_INPUT)
    if not problems:
        changed = sum(origin != "default" for origin in loaded.origins.values())
        yield Seen("settings", Level.OK, f"valid, {changed} differ from the defaults")
    stories, seen = _stories(project, loaded.config)
    yield from seen
    yield from _checks(project, loaded.config, stories, env)
    for finding in agent_findings(project, loaded, env):
        yield Seen("agent", *finding[:3], code=ExitCode.AGENT_UNAVAILABLE)
    yield from _awake(loaded.config)
    for words in unsendable(loaded.config.notify):
        yield Seen("notify", Level.WARNING, words, "install it, or correct [notify] in ralph.toml")
    yield journal
    yield _lock(project)


def _repository(project: Project, config: Config, latest: RunRecord | None) -> Iterator[Seen]:
    try:
        repo = Repository.open(project.root).looked_at()
    except RepositoryError as error:
        has_git = shutil.which("git") is not None
        yield Seen("git", Level.WARNING if has_git else Level.ERROR, error.message, error.next_step)
        yield from map(_found, disk_space(project.root))
        return
    yield Seen("git", Level.OK, repo.git.line("version").removeprefix("git version "))
    findings = inspect(
        repo,
        store=project.directory / "objects",
        own=never_progress(project_prefix(repo.root, project.root), [config.stories.prd]),
        commits=config.git.commit is CommitPolicy.STORY,
        # What an unfinished run left in the work tree is no obstacle to continuing it.
        allow_dirty=latest is not None and latest.status.is_unfinished,
        looking=True,
    )
    yield from map(_found, findings)


def _found(finding: Finding) -> Seen:
    return Seen("repository", *finding[:3])


def _stories(project: Project, config: Config) -> tuple[StoryList | None, list[Seen]]:
    named = project.root / config.stories.prd
    try:
        path = named if named.exists() else find_source(project.root)
    except RalphError as error:
        return None, [Seen("stories", Level.WARNING, error.message, error.next_step)]
    try:
        stories = load(path).list
        for story in stories.stories:
            if not story.passes:
                resolve_parent_spec(story, specs_dir=path.parent, repo_root=project.root)
    except RalphError as error:
        wrong = Seen("stories", Level.ERROR, error.message, error.next_step, ExitCode.BAD_INPUT)
        return None, [wrong]
    words = f"{counted(stories.total, 'story')}, {stories.passed} passed"
    return stories, [Seen("stories", Level.OK, f"{relative(path, project.root)}: {words}")]


def _checks(
    project: Project, config: Config, stories: StoryList | None, env: Mapping[str, str]
) -> Iterator[Seen]:
    if not config.checks.commands:
        fix = "set checks.commands in ralph.toml; `ralph init` finds those of your stack"
        yield Seen("checks", Level.WARNING, "none: stories can only be `claimed`", fix)
    for argv in config.checks.commands:
        command, found = " ".join(argv), bool(find_program(argv[0], env, project.root))
        if trouble := cannot_start(argv, found=found):
            yield Seen("checks", Level.ERROR, f"{command}: {trouble.words}", trouble.fix)
        elif trouble := may_need_shell(argv):
            yield Seen("checks", Level.WARNING, f"{command}: {trouble.words}", trouble.fix)
        else:
            yield Seen("checks", Level.OK, command)
    for story in stories.stories if stories else ():
        if (
            story.verify
            and not story.passes
            and not find_program(story.verify[0], env, project.root)
        ):
            message = f"verify of {label(story.id)}: {story.verify[0]} was not found"
            yield Seen("checks", Level.WARNING, message, "unless the story itself makes it")


def _awake(config: Config) -> Iterator[Seen]:
    if not config.session.keep_awake:
        return
    found = next((name for name in _AWAKE if shutil.which(name)), None)
    if found:
        yield Seen("sleep", Level.OK, f"{found} keeps the machine awake during a run")
    else:
        message = "nothing here keeps the machine awake during a run"
        yield Seen("sleep", Level.WARNING, message, "switch automatic sleep off for the night")


def _journal(project: Project) -> tuple[RunRecord | None, Seen]:
    """The newest run, and whether the journal can be read."""
    try:
        if not project.journal.exists():
            return None, Seen("journal", Level.OK, "none yet")
        with JournalReader.open(project.journal) as journal:
            latest = journal.latest_run()
        mode = "" if _uses_wal(project.journal) else "; without a write-ahead log, so it is slower"
    except RalphError as error:
        wrong = Seen("journal", Level.ERROR, error.message, error.next_step, error.exit_code)
        return None, wrong
    newest = f"newest run {latest.id}" if latest else "no run yet"
    return latest, Seen("journal", Level.OK, f"can be read, {newest}{mode}")


def _uses_wal(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(20)[18:] == _WAL_VERSION


def _lock(project: Project) -> Seen:
    now = time.time()
    if beside := tree_holder(project.directory, now):
        message = f"run {beside.run} in {beside.project} holds this work tree"
        return Seen("lock", Level.INFO, message, "`ralph stop` there ends it")
    holder = live_holder(project.directory, now)
    if holder is None:
        return Seen("lock", Level.OK, "nobody holds the project")
    message = f"run {holder.run} goes on (process {holder.pid})"
    return Seen("lock", Level.INFO, message, "`ralph status` shows it, `ralph stop` ends it")
