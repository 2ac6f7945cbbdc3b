"""Which agents there are.

One that is shipped is a TOML file in `agents/data` and nothing else: everybody who has to know a
name reads this list.  A project adds files of its own (`project.agent_directories`).
"""

from functools import cache
from pathlib import Path

from ralphloop.project import agent_directories

SHIPPED = Path(__file__).parents[1] / "agents" / "data"

# They start what the user names: any program, or a script of answers.
OF_THE_USER = ("command", "scripted")


@cache
def shipped_agents() -> tuple[str, ...]:
    """The names of all agents that come with ralph."""
    declared = sorted(file.stem for file in SHIPPED.glob("*.toml"))
    return (*declared, *OF_THE_USER)


def known_agents(root: Path) -> tuple[str, ...]:
    """The names of all agents that a run in this project could use."""
    own = {file.stem for place in agent_directories(root) for file in place.glob("*.toml")}
    return (*shipped_agents(), *sorted(own.difference(shipped_agents())))
