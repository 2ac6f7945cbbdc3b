"""Which agents `ralph doctor` finds, and what they say of themselves.

A program is asked only if it is the user's own: found on their PATH, outside of the project.  One
that the project names (by a path in `ralph.toml`, by a declaration, by the environment it sets) is
looked for and not started.  Those that are asked are asked in the root directory, because many
programs obey files in the directory they are started in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from pathlib import Path

import msgspec

from ralphloop.agents.base import AGENTS, Agent, load_agent
from ralphloop.agents.declared import declared_names
from ralphloop.agents.prices import cost_problems
from ralphloop.config.load import Loaded
from ralphloop.config.model import AgentSection
from ralphloop.errors import RalphError
from ralphloop.findings import Finding, Level
from ralphloop.project import CONFIG_NAME, Project, agent_directories

_NEED_SETTINGS = frozenset({"command", "scripted"})  # nothing to look for unless they are chosen
_NAMED = "the project names it"
_INSIDE = "it lies in the project"


def agent_findings(project: Project, loaded: Loaded, env: Mapping[str, str]) -> Iterator[Finding]:
    """The chosen agent first, then its fallbacks, then the others there are."""
    config, places = loaded.config.agent, agent_directories(project.root)
    chosen = str(config.name)
    fallbacks = [str(name) for name in config.fallback if str(name) != chosen]
    others = sorted({*AGENTS, *declared_names(places)} - _NEED_SETTINGS)
    names = list(dict.fromkeys([chosen, *fallbacks, *others]))
    own = _without_path(loaded)

    def ask(name: str, agent: Agent | RalphError) -> list[Finding]:
        if isinstance(agent, RalphError):
            return [Finding(Level.ERROR, agent.message, agent.next_step)]
        theirs = _named_by_project(name, loaded, places)

        def why_not(program: str) -> str:
            return _NAMED if theirs else _INSIDE if _is_inside(program, project.root, env) else ""

        settings = own if name == chosen else AgentSection()
        limited = name in (chosen, *fallbacks) and loaded.config.limits.max_cost_usd > 0
        found = agent.check(settings, cwd=project.root, inherited=env, why_not=why_not)
        costs = cost_problems(name, settings, limited=limited)
        return [*(found or [Finding(Level.INFO, name)]), *costs]

    agents = [_loaded(name, places) for name in names]
    # Programs take their time to state their version; together they take the slowest one's.
    with chdir("/"), ThreadPoolExecutor(max_workers=4) as pool:
        answers = list(pool.map(ask, names, agents))
    for name, findings in zip(names, answers, strict=True):
        if name == chosen:
            yield from _chosen_agent(findings)
        else:
            yield from _other_agent(findings, needed=name in fallbacks)


def _set_by_project(loaded: Loaded, key: str) -> bool:
    return loaded.origins[f"agent.{key}"] == CONFIG_NAME


def _without_path(loaded: Loaded) -> AgentSection:
    """The settings, but the project does not say where programs are looked for."""
    config = loaded.config.agent
    if not _set_by_project(loaded, "env"):
        return config
    rest = {name: value for name, value in config.env.items() if name != "PATH"}
    return msgspec.structs.replace(config, env=rest)


def _named_by_project(name: str, loaded: Loaded, places: Sequence[Path]) -> bool:
    """True where the project says what is started, or with which environment."""
    config = loaded.config.agent
    if name not in AGENTS and any((place / f"{name}.toml").exists() for place in places):
        return True
    if name != config.name:
        return False
    by_path = "/" in config.binary or config.binary.startswith("~")
    return (by_path and _set_by_project(loaded, "binary")) or (
        bool(config.env) and _set_by_project(loaded, "env")
    )


def _is_inside(program: str, root: Path, env: Mapping[str, str]) -> bool:
    """True for a program of the project, or of the work tree around it, also behind links."""
    home = Path(env.get("HOME") or "/")
    # A home directory kept in git holds the user's own programs.
    tops = (top for top in (root, *root.parents) if (top / ".git").exists() and top != home)
    trees = {root, next(tops, root)}
    path = Path(program)
    real = (path.resolve(), path.parent.resolve())
    return any(place.is_relative_to(tree) for place in real for tree in trees)


def _loaded(name: str, places: Sequence[Path]) -> Agent | RalphError:
    """Not for threads: msgspec lays a type out at its first use, and two at once crash it."""
    try:
        return load_agent(name, directories=places)
    except RalphError as error:
        return error


def _chosen_agent(findings: list[Finding]) -> Iterator[Finding]:
    """Its version, marked as the chosen one's, then whatever else there is to say."""
    first, *rest = findings
    if first.level is Level.INFO:
        first = first._replace(level=Level.OK, message=f"{first.message}, chosen")
    yield from (first, *rest)


def _other_agent(findings: list[Finding], *, needed: bool) -> Iterator[Finding]:
    """An agent that is not chosen stops nothing; a fallback that is missing is worth a word."""
    for position, finding in enumerate(findings if needed else findings[:1]):
        missing = finding.level is Level.ERROR
        level = Level.WARNING if missing and needed else Level.INFO
        suffix = ", a fallback" if needed and position == 0 else ""
        yield Finding(level, f"{finding.message}{suffix}", finding.fix if missing else "")
