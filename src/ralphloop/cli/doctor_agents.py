"""Which agents are installed, which version, and whether it is one that ralph is tested with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from ralphloop.agents.base import AGENTS, Level, Problem, load_agent
from ralphloop.agents.declared import declared_names
from ralphloop.config.load import agent_directories
from ralphloop.config.model import AgentSection
from ralphloop.errors import RalphError
from ralphloop.project import Project

_NEED_SETTINGS = frozenset({"command", "scripted"})  # nothing to look for unless they are chosen


class AgentSeen(NamedTuple):
    level: str  # ok, info, warning, error
    message: str
    fix: str = ""


def agents_seen(
    project: Project, config: AgentSection, env: Mapping[str, str]
) -> Iterator[AgentSeen]:
    """The chosen agent first, then its fallbacks, then the others there are."""
    chosen = str(config.name)
    fallbacks = [str(name) for name in config.fallback if str(name) != chosen]
    names = list(dict.fromkeys([chosen, *fallbacks, *_others(project)]))

    def ask(name: str) -> list[Problem]:
        return _asked(project, config if name == chosen else AgentSection(), name, env)

    # Programs take their time to state their version; together they take the slowest one's.
    with ThreadPoolExecutor(max_workers=4) as pool:
        for name, problems in zip(names, pool.map(ask, names), strict=True):
            if name == chosen:
                yield from _chosen(name, problems)
            else:
                yield from _another(problems, needed=name in fallbacks)


def _others(project: Project) -> list[str]:
    known = {*AGENTS, *declared_names(agent_directories(project.root))}
    return sorted(known - _NEED_SETTINGS)


def _asked(
    project: Project, config: AgentSection, name: str, env: Mapping[str, str]
) -> list[Problem]:
    try:
        agent = load_agent(name, directories=agent_directories(project.root))
        return agent.check(config, cwd=project.root, inherited=env)
    except RalphError as error:
        return [Problem(level=Level.ERROR, message=error.message, fix=error.next_step)]


def _chosen(name: str, problems: list[Problem]) -> Iterator[AgentSeen]:
    if not problems:
        yield AgentSeen("ok", f"{name}, chosen")
    for problem in problems:
        if problem.level is Level.INFO:
            yield AgentSeen("ok", f"{problem.message}, chosen", problem.fix)
        else:
            yield AgentSeen(problem.level, problem.message, problem.fix)


def _another(problems: list[Problem], *, needed: bool) -> Iterator[AgentSeen]:
    """An agent that is not chosen stops nothing; a fallback that is missing is worth a word."""
    for problem in problems[:1] if not needed else problems:
        missing = problem.level is Level.ERROR
        level = "warning" if missing and needed else "info"
        words = f"{problem.message}, a fallback" if needed else problem.message
        yield AgentSeen(level, words, problem.fix if missing else "")
