"""Every agent that is known here: whether it is installed and logged in, and which limits hold.

Nothing is started but a program's own `--version` and its question about the login, and that only
where starting it is allowed.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from ralphloop.agents.base import Inquiry, load_agent
from ralphloop.agents.declared import DeclaredAgent, declared_names
from ralphloop.agents.environment import clean_environment, find_program
from ralphloop.config.model import AgentSection
from ralphloop.core import Value
from ralphloop.errors import Finding, Level
from ralphloop.project import agent_directories

_HOLD = {
    "text": "time and starts only: it reports no tokens",
    "auto": "money and tokens where its output tells them",
    "droid": "money and tokens between starts, time inside one",
    "acp": "money and tokens, inside a start by an estimate",
}
_ALL_HOLD = "money and tokens, also inside a start"


class AgentLook(Value, kw_only=True):
    name: str
    installed: str = ""  # the version, or where it is; empty: it is not
    login: str = ""  # what is wrong with it and how to mend it, or empty
    login_is_known: bool = True  # False: nobody can ask without paying for a start
    login_life_is_known: bool = True  # False: it may end during the night, and nobody can tell
    warnings: tuple[str, ...] = ()  # what else is wrong
    limits: str = ""  # which hold
    cannot: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    install: str = ""


def limits_that_hold(reader: str, protocol: str = "stdin") -> str:
    """Which limits hold for an agent, by how it is read."""
    return _HOLD.get("acp" if protocol == "acp" else reader, _ALL_HOLD)


def survey(
    root: Path,
    config: AgentSection,
    env: Mapping[str, str],
    why_not: Callable[[str, str], str] = lambda _name, _program: "",
) -> Iterator[AgentLook]:
    """All agents that come with us or are declared in the project, by name.

    `why_not` says of an agent and its program why it must not be started; empty where it may.
    """
    folders = agent_directories(root)
    for name in declared_names(folders):
        agent = load_agent(name, directories=folders)
        if isinstance(agent, DeclaredAgent):
            own = config if config.name == name else AgentSection(name=name)
            inquiry = Inquiry(own, root, env, partial(why_not, name))
            yield _look(agent, inquiry)


def _look(agent: DeclaredAgent, inquiry: Inquiry) -> AgentLook:
    it = agent.it
    known = AgentLook(
        name=it.name,
        limits=limits_that_hold(it.reader, it.protocol),
        cannot=it.cannot,
        tested=it.tested,
        install=it.install,
    )
    env = clean_environment(inquiry.config, inquiry.inherited)
    program = find_program(agent.program(inquiry.config), env, inquiry.cwd)
    if program is None:
        return known
    first, *rest = agent.check(inquiry) or [Finding(Level.INFO, program)]
    wrong = [finding for finding in rest if finding.level is not Level.INFO]
    logins = [finding for finding in wrong if "log" in finding.message]
    others = [finding for finding in wrong if finding not in logins]
    return msgspec.structs.replace(
        known,
        installed=first.message,
        login="; ".join(map(_in_words, logins)),
        login_is_known=agent.tells_login,
        login_life_is_known=agent.tells_login_life(env),
        warnings=tuple(map(_in_words, others)),
    )


def _in_words(finding: Finding) -> str:
    return f"{finding.message}: {finding.fix}" if finding.fix else finding.message
