"""All layers made one: defaults < user file < ralph.toml < environment < flags.

A later layer replaces a whole value, lists and tables included, so that what is in force can be
read in one place.  Every value keeps its origin.

Where settings are written: files, the environment, the command line.  Each source yields `Given`
values (which setting, what was written, where) and reports `Problem`s to a list that is handed in,
so that one reading serves both `load_config`, which stops, and `ralph config validate`, which lists
everything.
"""

from __future__ import annotations

import errno
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ralphloop.config.model import AgentName, Config, Setting, sections, settings
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


FLAG = "flag"  # the origin of what stands on the command line
_LARGEST_FILE = 256 * 1024
_MOST_PROBLEMS = 50
_SEED_VARIABLES = {
    "CB_NO_PROGRESS_THRESHOLD": "circuit.no_progress_threshold",
    "CB_SAME_ERROR_THRESHOLD": "circuit.same_error_threshold",
    "CB_OUTPUT_DECLINE_PERCENT": "circuit.output_decline_percent",
}
# Names that look like settings but carry the supervisor's own marks to its agents.
_NOT_SETTINGS = frozenset({"RALPH_AGENT_MARK"})


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong, and where."""

    place: str
    message: str
    on_command_line: bool = False


class Given(msgspec.Struct, frozen=True):
    """One setting as somebody wrote it."""

    setting: Setting
    raw: object
    origin: str
    place: str
    from_text: bool = False


def from_file(path: Path, name: str, problems: list[Problem]) -> Iterator[Given]:
    """The settings of one TOML file; a missing file gives none."""
    try:
        document = _read_toml(path)
    except FileNotFoundError:
        return
    except (OSError, ValueError, RecursionError) as error:
        problems.append(Problem(name, _unreadable(error)))
        return
    for section, table in document.items():
        if len(problems) >= _MOST_PROBLEMS:
            return
        yield from _from_table(section, table, name, problems)


def from_environment(env: Mapping[str, str], problems: list[Problem]) -> Iterator[Given]:
    """`RALPH_<SECTION>_<KEY>` and the three older names; an empty variable is not set."""
    variables = _SEED_VARIABLES | {_variable(setting): name for name, setting in settings().items()}
    for variable, name in variables.items():
        if env.get(variable):
            origin = f"environment {variable}"
            yield Given(settings()[name], env[variable], origin, origin, from_text=True)
    _report_unknown_variables(env, variables, problems)


def from_flags(flags: Mapping[str, object], problems: list[Problem]) -> Iterator[Given]:
    """Dotted names from the command line; None means the flag was not given."""
    for name, raw in flags.items():
        if raw is None:
            continue
        if name in settings():
            place = f"command line: {name}"
            text = isinstance(raw, str)
            yield Given(settings()[name], raw, FLAG, place, from_text=text)
        else:
            hint = did_you_mean(name, settings())
            problems.append(Problem("command line", f"unknown setting {name[:60]}{hint}", True))


def _read_toml(path: Path) -> dict[str, object]:
    with path.open("rb") as file:
        data = file.read(_LARGEST_FILE + 1)
    if len(data) > _LARGEST_FILE:
        raise OSError(errno.EFBIG, f"larger than {_LARGEST_FILE // 1024} KiB")
    # Some editors write a byte order mark; it carries no meaning.
    return tomllib.loads(data.decode("utf-8-sig"))


def _unreadable(error: OSError | ValueError | RecursionError) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8 text (byte {error.start})"
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    return f"is not valid TOML: {error}"


def _from_table(section: str, table: object, file: str, problems: list[Problem]) -> Iterator[Given]:
    if section not in sections():
        problems.append(Problem(file, _unknown_section(section, table)))
        return
    if not isinstance(table, dict):
        message = f"expected a table, got {shown(table)}; begin it with [{section}]"
        problems.append(Problem(f"{file}: {section}", message))
        return
    for key, raw in table.items():
        name = f"{section}.{key}"
        if name in settings():
            yield Given(settings()[name], raw, file, f"{file}: {name}")
        elif len(problems) < _MOST_PROBLEMS:
            problems.append(Problem(f"{file}: {name[:60]}", _unknown_key(section, key)))


def _unknown_section(section: str, table: object) -> str:
    homes = _homes_of(section)
    if not isinstance(table, dict) and homes:
        return f"{section} stands outside a section; it belongs under [{homes[0]}]"
    kind = "section" if isinstance(table, dict) else "key"
    return f"unknown {kind} {shown(section)}{did_you_mean(section, sections())}"


def _unknown_key(section: str, key: str) -> str:
    known = [setting.key for setting in settings().values() if setting.section == section]
    hint = did_you_mean(key, known)
    homes = _homes_of(key)
    if not hint and homes:
        hint = f"; it belongs under [{homes[0]}]"
    return f"unknown key{hint}"


def _homes_of(key: str) -> list[str]:
    return [setting.section for setting in settings().values() if setting.key == key]


def _variable(setting: Setting) -> str:
    return f"RALPH_{setting.section}_{setting.key}".upper()


def _report_unknown_variables(
    env: Mapping[str, str], known: Mapping[str, str], problems: list[Problem]
) -> None:
    prefixes = tuple(f"RALPH_{section.upper()}_" for section in sections())
    for variable in env:
        if not variable.startswith(prefixes) or variable in known or variable in _NOT_SETTINGS:
            continue
        if len(problems) < _MOST_PROBLEMS:
            close = did_you_mean(variable, known)
            problems.append(Problem("environment", f"unknown setting {variable[:60]}{close}"))
