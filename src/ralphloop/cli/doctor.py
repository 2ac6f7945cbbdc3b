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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, suppress
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from ralphloop import __version__
from ralphloop.agents.base import AGENTS, Inquiry, load_agent
from ralphloop.agents.environment import find_program
from ralphloop.agents.prices import cost_problems
from ralphloop.cli import output
from ralphloop.cli.shared.options import json_option
from ralphloop.config.known_agents import OF_THE_USER, known_agents
from ralphloop.config.load import DEFAULT, LoadedConfig, Problem, check_config
from ralphloop.config.model import AgentSection, Config
from ralphloop.core.model import StoryList
from ralphloop.errors import ExitCode, Finding, Level, RalphError, RepositoryError
from ralphloop.journal.authenticity import Belief
from ralphloop.journal.database import belief_in
from ralphloop.journal.lock import live_holder, tree_holder
from ralphloop.journal.records import RunRecord
from ralphloop.lanes.lacking import lacking_in_lanes
from ralphloop.learning import OWN_FILES as LEARNED
from ralphloop.loop.confine import NoSandbox, wanted, working_box
from ralphloop.loop.prepare import PROMPT_NAME, Worker, is_reviewer, open_repository
from ralphloop.loop.probing import login_problems
from ralphloop.night.look import reading, story_file
from ralphloop.notify.notifier import unsendable
from ralphloop.proc import programs
from ralphloop.project import CONFIG_NAME, Project, agent_directories, find_project, relative
from ralphloop.prompts import other_checks
from ralphloop.repo.checks import cannot_start, may_need_shell, not_installed
from ralphloop.repo.preflight import disk_space, inspect
from ralphloop.repo.work_tree import Repository, never_progress, project_prefix
from ralphloop.room import read_regular
from ralphloop.stories.names import label
from ralphloop.stories.source import load, resolve_parent_spec
from ralphloop.text.plain import counted
from ralphloop.trust import grants_of, missing

_COLOURS = {Level.OK: "green", Level.INFO: "dim", Level.WARNING: "yellow", Level.ERROR: "red"}
_INDENT = 21
_SCRIPT_BYTES = 2_000
_MOST_PROBLEMS = 10
_A_NIGHT_S = 12 * 3600.0
_AWAKE = ("systemd-inhibit", "caffeinate")


class Sign(NamedTuple):
    area: str
    level: Level
    message: str
    fix: str = ""
    code: ExitCode = ExitCode.REPO_NOT_READY  # what a run would end with, for errors


@click.command()
@click.option(
    "--agents", is_flag=True, help="Every agent: installed, logged in, which limits hold."
)
@json_option("One object: ok and the findings.")
def doctor(agents: bool, as_json: bool) -> int:
    """Look at everything a run needs: git, settings, stories, checks, agents, journal.

    Ends with 0 if nothing stands in the way of a run, else with the code that run would end with.
    """
    if agents:
        _show_agents(find_project(), os.environ, as_json=as_json)
        return ExitCode.COMPLETE
    seen = list(_examine(find_project(), os.environ))
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


def _show_agents(project: Project, env: Mapping[str, str], *, as_json: bool) -> None:
    """Every agent that is known here, the installed ones first."""
    from ralphloop.agents.survey import survey

    loaded, _ = check_config(project.root, env=env)

    def why_not(name: str, program: str) -> str:
        own = loaded.config.agent if name == loaded.config.agent.name else AgentSection()
        return _why_not(name, program, project, loaded, own, env)

    with chdir("/"):
        found = list(survey(project.root, loaded.config.agent, env, why_not))
    looks = sorted(found, key=lambda it: not it.installed)
    lines: list[str] = []
    for look in looks:
        state = look.installed or f"not installed: {look.install}"
        is_ready = look.installed and not look.login and look.login_is_known
        lines += output.row(look.name, state, "green" if is_ready else "dim", width=_INDENT)
        told = [look.login, *look.warnings]
        if look.installed and not look.login_is_known:
            told.append("whether it is logged in is not known before a start: `ralph run --probe`")
        elif look.installed and not look.login and not look.login_life_is_known:
            told.append("how long its login lasts is not known: a key of your own does not end")
        for words in filter(None, told):
            lines += output.row("", words, "yellow", width=_INDENT)
        for words in (f"limits that hold: {look.limits}", *look.cannot):
            lines += output.row("", words, width=_INDENT)
    names = ("name", "installed", "login", "warnings", "limits", "cannot", "tested")
    data = {"v": 1, "agents": [output.picked(look, *names) for look in looks]}
    output.show(lines, data, as_json=as_json)


def _examine(project: Project, env: Mapping[str, str]) -> Iterator[Sign]:
    """All that is found, in the order in which a run would meet it."""
    loaded, problems = check_config(project.root, env=env)
    config = loaded.config
    journal = _journal(project)
    stories = _stories(project, config)
    yield from _versions(env)
    yield from _repository(project, config, journal.latest)
    yield from _settings(loaded, problems)
    yield stories.sign
    yield from _trust(project, loaded, stories.listed, env)
    yield from _checks(project, config, stories.listed, env)
    yield from _lanes(project, config)
    yield _sandbox(project, config, env)
    for finding in _agents(project, loaded, env):
        code = ExitCode.AGENT_UNAVAILABLE
        yield Sign("agent", finding.level, finding.message, finding.fix, code)
    if config.session.keep_awake:
        yield _sleep()
    for words in unsendable(config.notify):
        yield Sign("notify", Level.WARNING, words, "install it, or correct [notify] in ralph.toml")
    yield journal.sign
    yield _lock(project, config)


def _versions(env: Mapping[str, str]) -> Iterator[Sign]:
    versions = f"{__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    yield Sign("ralph", Level.OK, versions)
    # Others use the name, too: the `ralph` that a shell would start may not be this one.
    found = shutil.which("ralph", path=env.get("PATH"))
    own = Path(sys.prefix, "bin").resolve()
    if found is None or Path(found).resolve().parent == own:
        return
    if b"ralphloop" not in Path(found).read_bytes()[:_SCRIPT_BYTES]:
        fix = "type `ralphloop` instead, or put this one's directory first on PATH"
        yield Sign("ralph", Level.WARNING, f"`ralph` on PATH is another program: {found}", fix)


def _settings(loaded: LoadedConfig, problems: Sequence[Problem]) -> Iterator[Sign]:
    for problem in problems[:_MOST_PROBLEMS]:
        message = f"{problem.place}: {problem.message}"
        fix = "correct it; `ralph config validate` lists all problems"
        yield Sign("settings", Level.ERROR, message, fix, ExitCode.BAD_INPUT)
    if not problems:
        changed = [name for name, origin in loaded.origins.items() if origin != DEFAULT]
        words = f"valid; {len(changed)} set, the others have their defaults"
        yield Sign("settings", Level.OK, words)


def _trust(
    project: Project, loaded: LoadedConfig, stories: StoryList | None, env: Mapping[str, str]
) -> Iterator[Sign]:
    root = project.root
    grants = grants_of(loaded, root)
    if stories is not None:
        grants = grants_of(loaded, root, stories.stories, Path(stories.source))
    if lacking := missing(grants, root, env):
        words = f"{counted(len(lacking), 'line')} of this repository can run programs here"
        fix = "look at them and say yes: ralph trust"
        yield Sign("trust", Level.WARNING, f"{words}; nobody has said yes to them", fix)


def _sleep() -> Sign:
    helper = next((name for name in _AWAKE if programs.find(name)), "")
    if helper:
        return Sign("sleep", Level.OK, f"{helper} keeps the machine awake during a run")
    words = "nothing here keeps the machine awake during a run"
    return Sign("sleep", Level.WARNING, words, "switch automatic sleep off for the night")


def _repository(project: Project, config: Config, latest: RunRecord | None) -> Iterator[Sign]:
    try:
        repo = Repository.open(project.root)
    except RepositoryError as error:
        has_git = programs.find("git") is not None
        yield Sign("git", Level.WARNING if has_git else Level.ERROR, error.message, error.next_step)
        for finding in disk_space(project.root):
            yield Sign("repository", finding.level, finding.message, finding.fix)
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
        own=never_progress(prefix, [f"{prefix}{name}" for name in (config.stories.prd, *LEARNED)]),
        commits=config.git.commit == "story",
        # What an unfinished run left in the work tree is no obstacle to continuing it.
        allow_dirty=latest is not None and latest.status.is_unfinished,
        looking=True,
    )
    for finding in findings:
        yield Sign("repository", finding.level, finding.message, finding.fix)


class _SeenStories(NamedTuple):
    listed: StoryList | None
    sign: Sign


def _stories(project: Project, config: Config) -> _SeenStories:
    try:
        path = story_file(project, None, config)
    except RalphError as error:
        sign = Sign("stories", Level.WARNING, error.message, error.next_step)
        return _SeenStories(None, sign)
    try:
        stories = load(path).list
        for story in stories.stories:
            if not story.passes:
                resolve_parent_spec(story, specs_dir=path.parent, repo_root=project.root)
    except RalphError as error:
        sign = Sign("stories", Level.ERROR, error.message, error.next_step, error.exit_code)
        return _SeenStories(None, sign)
    words = f"{counted(stories.total, 'story')}, {stories.passed} passed"
    sign = Sign("stories", Level.OK, f"{relative(path, project.root)}: {words}")
    return _SeenStories(stories, sign)


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
    prompt = project.root / PROMPT_NAME
    wrong = ""
    with suppress(OSError):
        wrong = other_checks(
            read_regular(prompt).decode("utf-8", "replace"), config.checks.commands
        )
    if wrong:
        fix = f"remove it from {PROMPT_NAME}"
        yield Sign("checks", Level.WARNING, f"{PROMPT_NAME} {wrong}", fix)
    for story in stories.stories if stories else ():
        program = story.verify[0] if story.verify and not story.passes else ""
        if program and not find_program(program, env, project.root):
            message = f"verify of {label(story.id)}: {program} was not found"
            yield Sign("checks", Level.WARNING, message, "unless the story itself makes it")


def _lanes(project: Project, config: Config) -> Iterator[Sign]:
    """What a lane, and the tree stories are judged in, will not have."""
    level = Level.WARNING if config.lanes.count else Level.INFO
    repo = None
    with suppress(RepositoryError):  # said elsewhere
        repo = open_repository(project.root)
    for lacking in lacking_in_lanes(project.root, config, repo):
        yield Sign("lanes", level, lacking.words, lacking.fix)


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


class _SeenJournal(NamedTuple):
    latest: RunRecord | None
    sign: Sign


def _journal(project: Project) -> _SeenJournal:
    try:
        if not project.journal.exists():
            return _SeenJournal(None, Sign("journal", Level.OK, "none yet"))
        with reading(project) as journal:
            latest = journal.latest_run()
        belief = belief_in(project.journal)
    except RalphError as error:
        sign = Sign("journal", Level.ERROR, error.message, error.next_step, error.exit_code)
        return _SeenJournal(None, sign)
    newest = f"newest run {latest.id}" if latest else "no run yet"
    if belief is not Belief.OURS:
        words = f"is {belief}: it can be read and is not believed, {newest}"
        return _SeenJournal(latest, Sign("journal", Level.WARNING, words, "ralph trust --journal"))
    return _SeenJournal(latest, Sign("journal", Level.OK, f"can be read, {newest}"))


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
    others = sorted(set(known_agents(project.root)).difference(OF_THE_USER))
    ladder = [name for name, _ in config.rungs()]
    others_found = list[str]()
    doubters = [argv[0][1:] for argv in loaded.config.checks.doubt if is_reviewer(argv)]
    for name in dict.fromkeys((*ladder, *config.fallback, *doubters, *others)):
        first, *rest = _ask_agent(name, project, loaded, env)
        if name == ladder[0]:
            if first.level is Level.INFO:
                first = Finding(Level.OK, f"{first.message}, chosen", first.fix)
            yield from (first, *rest)
        elif name in ladder:
            first = first._replace(message=f"{first.message}, on the ladder")
            yield from map(_of_no_first_choice, (first, *rest))
        elif name in config.fallback:
            first = first._replace(message=f"{first.message}, a fallback")
            yield from map(_of_no_first_choice, (first, *rest))
        elif name in doubters:
            first = first._replace(message=f"{first.message}, a reviewer (checks.doubt)")
            yield from map(_of_no_first_choice, (first, *rest))
        else:
            others_found.append(first.message)
    if others_found:
        yield Finding(Level.INFO, f"not chosen: {'; '.join(others_found)}")


def _of_no_first_choice(finding: Finding) -> Finding:
    """What is found of an agent that is not the chosen one stops nothing."""
    if finding.level is Level.ERROR:
        return finding._replace(level=Level.WARNING)
    return Finding(Level.INFO, finding.message)


def _sets_env(loaded: LoadedConfig, settings: AgentSection) -> bool:
    """Whether the project says with which environment an agent is started."""
    return bool(settings.env) and loaded.origins["agent.env"] == CONFIG_NAME


def _why_not(
    name: str,
    program: str,
    project: Project,
    loaded: LoadedConfig,
    settings: AgentSection,
    env: Mapping[str, str],
) -> str:
    """Why a program that was found must not be started by somebody who only looks."""
    root = project.root
    by_path = "/" in settings.binary or settings.binary.startswith("~")
    # The project says what is started, or with which environment.
    is_theirs = _sets_env(loaded, settings)
    is_theirs |= by_path and loaded.origins["agent.binary"] == CONFIG_NAME
    places = agent_directories(root)
    is_theirs |= name not in AGENTS and any((it / f"{name}.toml").exists() for it in places)
    if is_theirs:
        return "the project names it"
    home = Path(env.get("HOME") or "/")
    path = Path(program)
    # Also the work tree around it; a home directory kept in git holds the user's own programs.
    tops = (top for top in (root, *root.parents) if (top / ".git").exists() and top != home)
    trees = {root, next(tops, root)}
    real = (path.resolve(), path.parent.resolve())
    if any(place.is_relative_to(tree) for place in real for tree in trees):
        return "it lies in the project"
    return ""


def _ask_agent(
    name: str, project: Project, loaded: LoadedConfig, env: Mapping[str, str]
) -> list[Finding]:
    """What an agent's program says about itself, if it may be started; at least one finding."""
    config = loaded.config.agent
    places = agent_directories(project.root)
    rungs = [model for rung, model in config.rungs() if rung == name]
    doubts = (f"@{name}",) in loaded.config.checks.doubt
    is_wanted = bool(rungs) or name in config.fallback or doubts
    stated = config if name == config.name else AgentSection()
    settings = stated
    if _sets_env(loaded, stated):
        # But the project does not say where programs are looked for.
        rest = {key: value for key, value in stated.env.items() if key != "PATH"}
        settings = msgspec.structs.replace(stated, env=rest)

    def why_not(program: str) -> str:
        why = _why_not(name, program, project, loaded, stated, env)
        return why if why or is_wanted else "it is not chosen"

    try:
        agent = load_agent(name, directories=places)
    except RalphError as error:
        return [Finding(Level.ERROR, error.message, error.next_step)]
    with chdir("/"):
        found = agent.check(Inquiry(settings, project.root, env, why_not))
    if is_wanted:
        until = time.time() + (loaded.config.limits.max_time or _A_NIGHT_S)
        worker = Worker(agent=agent, config=settings)
        found = [*found, *login_problems(worker, env, until=until)]
    limited = is_wanted and loaded.config.limits.max_cost_usd > 0
    models = [msgspec.structs.replace(settings, model=model) for model in rungs or [""]]
    prices = loaded.config.prices.models
    costs = [it for one in models for it in cost_problems(name, one, env, prices, limited=limited)]
    return [*(found or [Finding(Level.INFO, name)]), *dict.fromkeys(costs)]
