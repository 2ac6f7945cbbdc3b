"""`ralph doctor`: everything a run needs, looked at in the order a run meets it.

Nothing is changed, and nothing is started that the project names (by a path in `ralph.toml`, by a
declaration, by the environment it sets): whoever looks at a repository has not said yet that they
trust it.  An agent's program is asked what it is only if it is wanted and found on the user's PATH,
outside of the project; in the root directory, because many programs obey files where they start.
"""

import os
import platform
import shutil
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from ralphloop import __version__
from ralphloop.agents.base import AGENTS, Inquiry, load_agent
from ralphloop.agents.declared import declared_names
from ralphloop.agents.environment import find_program
from ralphloop.agents.prices import cost_problems
from ralphloop.cli import output
from ralphloop.cli.given import json_option
from ralphloop.config.load import LoadedConfig, check_config
from ralphloop.config.model import AgentSection, Config
from ralphloop.core.model import StoryList
from ralphloop.errors import ExitCode, Finding, Level, RalphError, RepositoryError
from ralphloop.journal.database import belief_in
from ralphloop.journal.lock import live_holder, tree_holder
from ralphloop.journal.records import RunRecord
from ralphloop.journal.seal import Belief
from ralphloop.loop.confine import NoSandbox, wanted, working_box
from ralphloop.loop.prepare import open_repository
from ralphloop.night.look import reading, story_file
from ralphloop.notify.notifier import unsendable
from ralphloop.proc import programs
from ralphloop.project import CONFIG_NAME, Project, agent_directories, find_project, relative
from ralphloop.repo.checks import cannot_start, may_need_shell, not_installed
from ralphloop.repo.preflight import disk_space, inspect
from ralphloop.repo.work_tree import Repository, never_progress, project_prefix
from ralphloop.stories.names import label
from ralphloop.stories.source import load, resolve_parent_spec
from ralphloop.text.plain import counted
from ralphloop.trust import grants_of, missing

_COLOURS = {Level.OK: "green", Level.INFO: "dim", Level.WARNING: "yellow", Level.ERROR: "red"}
_INDENT = 21
_SCRIPT_BYTES = 2_000
_MOST_PROBLEMS = 10
_AWAKE = ("systemd-inhibit", "caffeinate")
_NEED_SETTINGS = frozenset({"command", "scripted"})  # nothing to look for unless they are chosen


class Sign(NamedTuple):
    area: str
    level: Level
    message: str
    fix: str = ""
    code: ExitCode = ExitCode.REPO_NOT_READY  # what a run would end with, for errors


@click.command()
@json_option("One object: ok and the findings.")
def doctor(as_json: bool) -> int:
    """Look at everything a run needs: git, settings, stories, checks, agents, journal.

    Ends with 0 if nothing stands in the way of a run, else with the code that run would end with.
    """
    seen = list(_examined(find_project(), os.environ))
    # The first error is what a run would meet first.
    code = next((each.code for each in seen if each.level is Level.ERROR), ExitCode.COMPLETE)
    found = [output.picked(each, "area", "level", "message", "fix") for each in seen]
    data = {"v": 1, "ok": code is ExitCode.COMPLETE, "exit_code": int(code), "findings": found}
    lines: list[str] = []
    for each in seen:
        label = f"{each.level:<9}{each.area}"
        lines += output.row(label, each.message, _COLOURS[each.level], width=_INDENT)
        if each.fix:
            lines += output.row("", f"fix: {each.fix}", width=_INDENT)
    levels = Counter(each.level for each in seen)
    doubts = counted(levels[Level.WARNING], "warning")
    words = f"{doubts}, nothing that stops a run." if levels[Level.WARNING] else "All is well."
    if levels[Level.ERROR]:
        words = f"{counted(levels[Level.ERROR], 'error')}, {doubts}: a run would not start."
    output.show([*lines, "", words], data, as_json=as_json)
    return code


def _examined(project: Project, env: Mapping[str, str]) -> Iterator[Sign]:
    versions = f"{__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    yield Sign("ralph", Level.OK, versions)
    # Others use the name, too: the `ralph` that a shell would start may not be this one.
    found = shutil.which("ralph", path=env.get("PATH"))
    own = Path(sys.prefix, "bin").resolve()
    other = found if found and Path(found).resolve().parent != own else None
    if other and b"ralphloop" not in Path(other).read_bytes()[:_SCRIPT_BYTES]:
        fix = "type `ralphloop` instead, or put this one's directory first on PATH"
        yield Sign("ralph", Level.WARNING, f"`ralph` on PATH is another program: {other}", fix)
    loaded, problems = check_config(project.root, env=env)
    latest, journal = _journal(project)
    yield from _repository(project, loaded.config, latest)
    for problem in problems[:_MOST_PROBLEMS]:
        message = f"{problem.place}: {problem.message}"
        fix = "correct it; `ralph config validate` lists all problems"
        yield Sign("settings", Level.ERROR, message, fix, ExitCode.BAD_INPUT)
    if not problems:
        changed = sum(origin != "default" for origin in loaded.origins.values())
        yield Sign("settings", Level.OK, f"valid; {changed} set, the others have their defaults")
    stories, seen = _stories(project, loaded.config)
    yield seen
    listed, source = (stories.stories, Path(stories.source)) if stories else ((), None)
    if lacking := missing(grants_of(loaded, project.root, listed, source), project.root, env):
        words = f"{counted(len(lacking), 'line')} of this repository can run programs here"
        fix = "look at them and say yes: ralph trust"
        yield Sign("trust", Level.WARNING, f"{words}; nobody has said yes to them", fix)
    yield from _checks(project, loaded.config, stories, env)
    yield _sandbox(project, loaded.config, env)
    for finding in _agents(project, loaded, env):
        yield Sign("agent", *finding[:3], code=ExitCode.AGENT_UNAVAILABLE)
    if loaded.config.session.keep_awake:
        helper = next((name for name in _AWAKE if programs.find(name)), "")
        words = f"{helper or 'nothing here'} keeps the machine awake during a run"
        fix = "" if helper else "switch automatic sleep off for the night"
        yield Sign("sleep", Level.OK if helper else Level.WARNING, words, fix)
    for words in unsendable(loaded.config.notify):
        yield Sign("notify", Level.WARNING, words, "install it, or correct [notify] in ralph.toml")
    yield journal
    yield _lock(project, loaded.config)


def _repository(project: Project, config: Config, latest: RunRecord | None) -> Iterator[Sign]:
    try:
        repo = Repository.open(project.root)
    except RepositoryError as error:
        has_git = programs.find("git") is not None
        yield Sign("git", Level.WARNING if has_git else Level.ERROR, error.message, error.next_step)
        yield from (Sign("repository", *finding[:3]) for finding in disk_space(project.root))
        return
    yield Sign("git", Level.OK, repo.git.line("version").removeprefix("git version "))
    prefix = project_prefix(repo.root, project.root)
    only_looking = repo.git.adapted(env={"GIT_NO_LAZY_FETCH": "1"})  # git fetches nothing
    repo = msgspec.structs.replace(
        repo, git=only_looking, scope=prefix if config.git.scope == "project" else ""
    )
    findings = inspect(
        repo,
        store=project.directory / "objects",
        own=never_progress(prefix, [config.stories.prd]),
        commits=config.git.commit == "story",
        # What an unfinished run left in the work tree is no obstacle to continuing it.
        allow_dirty=latest is not None and latest.status.is_unfinished,
        looking=True,
    )
    yield from (Sign("repository", *finding[:3]) for finding in findings)


def _stories(project: Project, config: Config) -> tuple[StoryList | None, Sign]:
    try:
        path = story_file(project, None, config)
    except RalphError as error:
        return None, Sign("stories", Level.WARNING, error.message, error.next_step)
    try:
        stories = load(path).list
        for story in stories.stories:
            if not story.passes:
                resolve_parent_spec(story, specs_dir=path.parent, repo_root=project.root)
    except RalphError as error:
        return None, Sign("stories", Level.ERROR, error.message, error.next_step, error.exit_code)
    words = f"{counted(stories.total, 'story')}, {stories.passed} passed"
    return stories, Sign("stories", Level.OK, f"{relative(path, project.root)}: {words}")


def _checks(
    project: Project, config: Config, stories: StoryList | None, env: Mapping[str, str]
) -> Iterator[Sign]:
    if not config.checks.commands:
        fix = "set checks.commands in ralph.toml; `ralph init` finds those of your stack"
        yield Sign("checks", Level.WARNING, "none: stories can only be `claimed`", fix)
    for argv in config.checks.commands:
        command = " ".join(argv)
        found = bool(find_program(argv[0], env, project.root))
        if trouble := cannot_start(argv, found=found):
            yield Sign("checks", Level.ERROR, f"{command}: {trouble.words}", trouble.fix)
        elif trouble := may_need_shell(argv) or not_installed(argv, project.root):
            yield Sign("checks", Level.WARNING, f"{command}: {trouble.words}", trouble.fix)
        else:
            yield Sign("checks", Level.OK, command)
    for story in stories.stories if stories else ():
        program = story.verify[0] if story.verify and not story.passes else ""
        if program and not find_program(program, env, project.root):
            message = f"verify of {label(story.id)}: {program} was not found"
            yield Sign("checks", Level.WARNING, message, "unless the story itself makes it")


def _sandbox(project: Project, config: Config, env: Mapping[str, str]) -> Sign:
    """Whether a box works here, by trying one around `true`; nothing of the project is started."""
    mode, why = wanted(config, env)
    demanded = mode == "on"
    try:
        working_box(config, project, open_repository(project.root), env)
    except NoSandbox as error:
        level = Level.WARNING if mode == "auto" else Level.INFO
        words = f"none works here: {error.message}" + (f" ({why})" if why else "")
        return Sign("sandbox", Level.ERROR if demanded else level, words, error.next_step)
    except RalphError as error:
        return Sign("sandbox", Level.ERROR, error.message, error.next_step, error.exit_code)
    if mode == "off":
        fix = '[sandbox] mode = "auto" confines the agent, the checks and git\'s hooks'
        return Sign("sandbox", Level.INFO, "bubblewrap works here and is not used", fix)
    because = "on, because of safety" if config.agent.safety == "strict" else f"mode = {mode}"
    return Sign("sandbox", Level.OK, f"bubblewrap works ({because})")


def _journal(project: Project) -> tuple[RunRecord | None, Sign]:
    try:
        if not project.journal.exists():
            return None, Sign("journal", Level.OK, "none yet")
        with reading(project) as journal:
            latest = journal.latest_run()
        belief = belief_in(project.journal)
    except RalphError as error:
        return None, Sign("journal", Level.ERROR, error.message, error.next_step, error.exit_code)
    newest = f"newest run {latest.id}" if latest else "no run yet"
    if belief is not Belief.OURS:
        words = f"is {belief}: it can be read and is not believed, {newest}"
        return latest, Sign("journal", Level.WARNING, words, "ralph trust --journal")
    return latest, Sign("journal", Level.OK, f"can be read, {newest}")


def _lock(project: Project, config: Config) -> Sign:
    now = time.time()
    shared = config.git.scope == "project"
    if beside := tree_holder(project.directory, now, shared=shared):
        message = f"run {beside.run} in {beside.project} holds this work tree"
        return Sign("lock", Level.INFO, message, "`ralph stop` there ends it")
    holder = live_holder(project.directory, now)
    if holder is None:
        return Sign("lock", Level.OK, "nobody holds the project")
    message = f"run {holder.run} goes on (process {holder.pid})"
    return Sign("lock", Level.INFO, message, "`ralph status` shows it, `ralph stop` ends it")


def _agents(project: Project, loaded: LoadedConfig, env: Mapping[str, str]) -> Iterator[Finding]:
    """The chosen agent first, then its ladder and fallbacks, then which others there are."""
    config = loaded.config.agent
    places = agent_directories(project.root)
    others = sorted({*AGENTS, *declared_names(places)} - _NEED_SETTINGS)
    ladder = [name for name, _ in config.rungs()]
    others_found = list[str]()
    for name in dict.fromkeys(map(str, (*ladder, *config.fallback, *others))):
        found = _asked(name, project, loaded, env)
        words = found[0].message
        if name == ladder[0]:
            if found[0].level is Level.INFO:
                found[0] = Finding(Level.OK, f"{words}, chosen", found[0].fix)
        elif name in (*ladder, *config.fallback):
            role = "on the ladder" if name in ladder else "a fallback"
            found[0] = found[0]._replace(message=f"{words}, {role}")
            found = [  # what is found of an agent that is not chosen stops nothing
                it._replace(level=Level.WARNING)
                if it.level is Level.ERROR
                else Finding(Level.INFO, it.message)
                for it in found
            ]
        else:
            others_found.append(words)
            continue
        yield from found
    yield from (Finding(Level.INFO, f"not chosen: {'; '.join(others_found)}"),) * bool(others_found)


def _asked(
    name: str, project: Project, loaded: LoadedConfig, env: Mapping[str, str]
) -> list[Finding]:
    """What an agent's program says about itself, if it may be started; at least one finding."""
    config = loaded.config.agent
    places = agent_directories(project.root)
    rungs = [model for rung, model in config.rungs() if rung == name]
    is_wanted = bool(rungs) or name in config.fallback
    settings = config if name == config.name else AgentSection()
    sets_env = bool(settings.env) and loaded.origins["agent.env"] == CONFIG_NAME
    by_path = "/" in settings.binary or settings.binary.startswith("~")
    # The project says what is started, or with which environment.
    is_theirs = sets_env or (by_path and loaded.origins["agent.binary"] == CONFIG_NAME)
    is_theirs |= name not in AGENTS and any((it / f"{name}.toml").exists() for it in places)
    if sets_env:
        # But the project does not say where programs are looked for.
        rest = {key: value for key, value in settings.env.items() if key != "PATH"}
        settings = msgspec.structs.replace(settings, env=rest)

    def why_not(program: str) -> str:
        if is_theirs:
            return "the project names it"
        root = project.root
        home = Path(env.get("HOME") or "/")
        path = Path(program)
        # Also the work tree around it; a home directory kept in git holds the user's own programs.
        tops = (top for top in (root, *root.parents) if (top / ".git").exists() and top != home)
        trees = {root, next(tops, root)}
        real = (path.resolve(), path.parent.resolve())
        if any(place.is_relative_to(tree) for place in real for tree in trees):
            return "it lies in the project"
        return "" if is_wanted else "it is not chosen"

    try:
        agent = load_agent(name, directories=places)
    except RalphError as error:
        return [Finding(Level.ERROR, error.message, error.next_step)]
    with chdir("/"):
        found = agent.check(Inquiry(settings, project.root, env, why_not))
    limited = is_wanted and loaded.config.limits.max_cost_usd > 0
    models = [msgspec.structs.replace(settings, model=model) for model in rungs or [""]]
    costs = [it for one in models for it in cost_problems(name, one, env, limited=limited)]
    return [*(found or [Finding(Level.INFO, name)]), *dict.fromkeys(costs)]
