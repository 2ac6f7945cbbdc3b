"""All layers made one: defaults < user file < ralph.toml < environment < flags.

A later layer replaces a whole value, lists and tables included, so that what is in force can be
read in one place.  Every value keeps its origin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ralphloop.config.model import AgentName, Config, settings
from ralphloop.config.sources import FLAG, Given, Problem, from_environment, from_file, from_flags
from ralphloop.config.values import did_you_mean, read_value, shown
from ralphloop.errors import InputError, RalphError, UsageError
from ralphloop.project import CONFIG_NAME, agent_directories

DEFAULT = "default"


class Loaded(msgspec.Struct, frozen=True):
    """The settings in force, and where each of them was set."""

    config: Config
    origins: dict[str, str]  # dotted name → "default", a file, "environment NAME" or "flag"


def load_config(
    root: Path, *, env: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> Loaded:
    """The settings of the project in `root`, or an error that names the first problem."""
    loaded, problems = check_config(root, env=env, flags=flags)
    if problems:
        raise _as_error(problems)
    return loaded


def check_config(
    root: Path, *, env: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> tuple[Loaded, tuple[Problem, ...]]:
    """The settings as far as they can be read, and everything that is wrong with them."""
    problems: list[Problem] = []
    values: dict[str, object] = {}
    origins = dict.fromkeys(settings(), DEFAULT)
    for given in _layers(root, env, flags or {}, problems):
        try:
            values[given.setting.name] = read_value(
                given.setting, given.raw, from_text=given.from_text
            )
        except ValueError as error:
            problems.append(Problem(given.place, str(error), given.origin == FLAG))
        else:
            origins[given.setting.name] = given.origin
    config = _assemble(values)
    if not problems:
        problems.extend(_contradictions(config, origins))
        problems.extend(_unknown_agents(config, origins, root))
    return Loaded(config, origins), tuple(problems)


def with_settings(config: Config, flags: Mapping[str, str]) -> Config:
    """The same settings with these on top, as text like on a command line."""
    problems: list[Problem] = []
    values: dict[str, object] = {}
    for given in from_flags(flags, problems):
        try:
            values[given.setting.name] = read_value(given.setting, given.raw, from_text=True)
        except ValueError as error:
            problems.append(Problem(given.place, str(error), on_command_line=True))
    if problems:
        raise _as_error(tuple(problems))
    return _assemble(values, config)


def user_file(env: Mapping[str, str]) -> Path | None:
    """Where a person's own settings live, if there is a place for them."""
    base = env.get("XDG_CONFIG_HOME", "")
    if Path(base).is_absolute():
        return Path(base) / "ralph" / "config.toml"
    home = env.get("HOME", "")
    return Path(home) / ".config" / "ralph" / "config.toml" if home else None


def _layers(
    root: Path, env: Mapping[str, str], flags: Mapping[str, object], problems: list[Problem]
) -> Iterator[Given]:
    if own := user_file(env):
        yield from from_file(own, str(own), problems)
    yield from from_file(root / CONFIG_NAME, CONFIG_NAME, problems)
    yield from from_environment(env, problems)
    yield from from_flags(flags, problems)


def _assemble(values: Mapping[str, object], config: Config | None = None) -> Config:
    config = config or Config()
    for name, value in values.items():
        section, key = name.split(".")
        changed = msgspec.structs.replace(getattr(config, section), **{key: value})
        config = msgspec.structs.replace(config, **{section: changed})
    return config


def _contradictions(config: Config, origins: Mapping[str, str]) -> Iterator[Problem]:
    """What each value alone cannot show."""
    agent = config.agent
    if AgentName.COMMAND in (agent.name, *agent.fallback) and not any(agent.command[:1]):
        chosen = "agent.name" if agent.name == AgentName.COMMAND else "agent.fallback"
        yield Problem(
            f"{origins[chosen]}: {chosen}",
            'is "command", so agent.command must say which: command = ["./my-agent"]',
        )


def _unknown_agents(config: Config, origins: Mapping[str, str], root: Path) -> Iterator[Problem]:
    """Names that are neither ours nor a file of the project."""
    words = tuple(str(name) for name in AgentName)
    named = [("agent.name", config.agent.name)]
    named += [("agent.fallback", name) for name in config.agent.fallback]
    for key, name in named:
        own = any((folder / f"{name}.toml").exists() for folder in agent_directories(root))
        if name not in words and not own:
            yield Problem(
                f"{origins[key]}: {key}",
                f"expected one of {', '.join(words)}, got {shown(name)}{did_you_mean(name, words)}",
                origins[key] == FLAG,
            )


def _as_error(problems: tuple[Problem, ...]) -> RalphError:
    first = problems[0]
    others = len(problems) - 1
    more = f" (and {others} more)" if others else ""
    if first.on_command_line:
        return UsageError(f"{first.place}: {first.message}{more}", "ralph config show")
    step = "correct it; `ralph config validate` lists every problem"
    return InputError(f"{first.message}{more}", step, place=first.place)
