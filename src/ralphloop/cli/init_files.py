"""The files of `ralph init`: what they will contain, and how one is written.

They are rendered from templates that are data of the room `prompts`.  The templates are ours, the
values come from the user's repository: the sandbox keeps a project's description from being
anything but text.  Which agent is written down, and whether its work is paid by use, is found here.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ralphloop.agents.base import AGENTS
from ralphloop.agents.declared import declared_names
from ralphloop.agents.environment import API_KEYS
from ralphloop.agents.programs import find_program
from ralphloop.atomic import write_atomic
from ralphloop.config.load import DEFAULT, check_config
from ralphloop.config.model import AgentName
from ralphloop.config.values import toml_value
from ralphloop.core.story import StoryList
from ralphloop.errors import InputError, UsageError
from ralphloop.project import CONFIG_NAME, agent_directories
from ralphloop.prompts.build import DEFAULT_INSTRUCTIONS, STATUS_SECTION
from ralphloop.stacks.detect import Detected
from ralphloop.stories.source import find_source, load

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment


GITIGNORE = ".gitignore"
PROMPT_NAME = "PROMPT.md"
_IGNORED = (".ralph/", ".ralph-session.json", ".ralph-circuit-state.json")
_DOCUMENTS = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", "README.md")
_PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    AgentName.COMMAND: ("./my-agent",),
    AgentName.SCRIPTED: ("night.yaml",),
}


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One file, before it is written."""

    root: Path
    name: str
    data: bytes
    remark: str = ""
    replaceable: bool = True  # by --overwrite
    grows: bool = False  # only ever extended

    def fate(self) -> str:
        """What writing it would do: new, same, exists, grows."""
        try:
            before = (self.root / self.name).read_bytes()
        except FileNotFoundError:
            return "new"
        except OSError:
            return "exists"  # whatever it is, it is not ours
        if before == self.data:
            return "same"
        return "grows" if self.grows else "exists"

    def write(self) -> None:
        """Put it there, in one step; never through a link that leads out of the project."""
        write_atomic(self.root / self.name, self.data, within=self.root)


@dataclass(frozen=True, kw_only=True)
class Stories:
    """Where the stories are, or will be."""

    name: str  # from the project's directory
    there: StoryList | None = None  # None: the file is still to be written
    copied: bytes | None = None  # from a file outside

    @property
    def is_sample(self) -> bool:
        return self.there is None and self.copied is None


def find_stories(root: Path, given: Path | None) -> Stories:
    """The story file that is given or there already, validated; else the sample to be written."""
    if given is not None:
        return _given_stories(root, given)
    loaded, _ = check_config(root, env=os.environ)
    named = loaded.config.stories.prd
    if (root / named).exists():
        return Stories(name=named, there=load(root / named).list)
    try:
        path = find_source(root)
    except InputError:
        return Stories(name="prd.json")
    return Stories(name=path.name, there=load(path).list)


def _given_stories(root: Path, given: Path) -> Stories:
    listed = load(given).list
    path = root / given
    if ".." not in given.parts and path.is_relative_to(root):
        return Stories(name=path.relative_to(root).as_posix(), there=listed)
    name = "prd.json" if listed.kind == "prd" else "tasks.yaml"
    return Stories(name=name, copied=given.read_bytes())


def planned_files(
    root: Path, detected: Detected, stories: Stories, agent: str, billing: Billing
) -> list[Planned]:
    """Everything that would be written, in order."""
    documents = tuple(name for name in _DOCUMENTS if (root / name).is_file())
    config = rendered(
        CONFIG_NAME,
        agent=agent,
        command=_PLACEHOLDERS.get(agent, ()),
        keys=billing.keys,
        checks=detected.checks,
        max_cost_usd=billing.max_cost_usd,
        prd=stories.name,
    )
    prompt = rendered(PROMPT_NAME, project=detected, documents=documents)
    return [
        Planned(root=root, name=CONFIG_NAME, data=config.encode()),
        Planned(root=root, name=PROMPT_NAME, data=prompt.encode()),
        *_story_file(root, detected, stories),
        Planned(root=root, name=GITIGNORE, data=ignoring(_read(root / GITIGNORE)), grows=True),
    ]


def _story_file(root: Path, detected: Detected, stories: Stories) -> Iterator[Planned]:
    if stories.copied is not None:
        yield Planned(root=root, name=stories.name, data=stories.copied, remark=" (a copy)")
    elif stories.there is None:
        data = rendered("prd.json", project=detected).encode()
        remark = " (a sample with two stories)"
        yield Planned(root=root, name=stories.name, data=data, remark=remark, replaceable=False)


def ignoring(before: bytes) -> bytes:
    """A .gitignore with our own files in it; everything that was there stays as it is."""
    known = {line.strip().strip(b"/") for line in before.splitlines()}
    missing = [name for name in _IGNORED if name.strip("/").encode() not in known]
    if not missing:
        return before
    end = b"\r\n" if b"\r\n" in before else b"\n"
    gap = end if before and not before.endswith((b"\n", b"\r")) else b""
    return before + gap + b"".join(name.encode() + end for name in missing)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise InputError(reason, f"Look at {path}.", place=path.name) from None


COST_CAP_USD = 20.0
_LOOKED_FOR = (AgentName.CLAUDE, AgentName.CODEX, AgentName.GEMINI, AgentName.OPENCODE)
_KEYS: dict[str, frozenset[str]] = {
    AgentName.CLAUDE: frozenset({"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}),
    AgentName.CODEX: frozenset({"OPENAI_API_KEY", "CODEX_API_KEY"}),
    AgentName.GEMINI: frozenset({"GEMINI_API_KEY", "GOOGLE_API_KEY"}),
    AgentName.SCRIPTED: frozenset(),
}
_PAID_BY_USE = frozenset({AgentName.OPENCODE})  # it has no subscription of its own


class Billing(NamedTuple):
    """How runs are paid, as far as one can tell from here."""

    max_cost_usd: float = 0.0
    keys: tuple[str, ...] = ()
    words: str = ""


def choose_agent(root: Path, wanted: str | None) -> str:
    """The agent asked for, else the one settings name, else the first that is installed."""
    if wanted is not None:
        _demand(root, wanted)
        return wanted
    env = os.environ
    loaded, _ = check_config(root, env=env)
    if loaded.origins["agent.name"] != DEFAULT:
        return str(loaded.config.agent.name)
    installed = (name for name in _LOOKED_FOR if find_program(name, env, root))
    return str(next(installed, AgentName.CLAUDE))


def _demand(root: Path, name: str) -> None:
    known = {*AGENTS, *declared_names(agent_directories(root))}
    if name not in known:
        listed = ", ".join(sorted(known))
        raise UsageError(f"--agent: there is no agent {name[:40]!r}", f"One of: {listed}.")


def billing_of(agent: str, env: Mapping[str, str]) -> Billing:
    """A cap where every token has its price."""
    keys = tuple(sorted(name for name in _KEYS.get(agent, API_KEYS) if env.get(name)))
    if keys:
        why = f"{' and '.join(keys)} {'is' if len(keys) == 1 else 'are'} set"
    elif agent in _PAID_BY_USE:
        why = f"{agent} is paid by use"
    else:
        return Billing()
    words = f"${COST_CAP_USD:.0f} a session (max_cost_usd), because {why}"
    return Billing(COST_CAP_USD, keys, words)


def rendered(name: str, **values: Any) -> str:
    """One of the files; its template says which values it needs."""
    template = files("ralphloop.prompts") / "templates" / f"{name}.j2"
    return _environment().from_string(template.read_text("utf-8")).render(**values)


def _environment() -> SandboxedEnvironment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(
        autoescape=False,  # the results are Markdown, TOML and JSON, never HTML
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"toml": toml_value, "json": json.dumps, "command": shlex.join}
    environment.globals |= {
        "instructions": DEFAULT_INSTRUCTIONS.replace("# How to work", "## Task instructions", 1),
        "status_section": STATUS_SECTION,
    }
    return environment
