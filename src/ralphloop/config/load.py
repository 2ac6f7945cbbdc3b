"""All layers made one: defaults < user file < ralph.toml < environment < flags.

A later layer replaces a whole value, lists and tables included, so that what is in force can be
read in one place, with its origin.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec

from ralphloop.config.known_agents import shipped_agents
from ralphloop.config.model import SANDBOX_WORDS, SECTIONS, Config, Safety, settings
from ralphloop.config.values import did_you_mean, read_value, shown
from ralphloop.errors import InputError, RalphError, UsageError
from ralphloop.project import CONFIG_NAME, agent_directories, tree_top
from ralphloop.room import read_regular

DEFAULT = "default"
_AT_LINE = re.compile(r"at line (\d+)")
_BARE_WORD = re.compile(r"([\w.-]{1,60})\s*=\s*[A-Za-z~./][^\"'\[{=#]*(?:#.*)?")
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


class LoadedConfig(msgspec.Struct, frozen=True):
    config: Config
    origins: dict[str, str]  # dotted name → "default", a file, "environment NAME" or "flag"
    notes: tuple[str, ...] = ()  # what the project wanted and did not get
    without: Config = Config()  # what would hold without the project's file: ours, and the user's


class Problem(msgspec.Struct, frozen=True):
    place: str
    message: str
    on_command_line: bool = False


class CheckedConfig(NamedTuple):
    loaded: LoadedConfig  # as far as the settings can be read
    problems: tuple[Problem, ...]


def load_config(
    root: Path, *, env: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> LoadedConfig:
    """The settings of the project in `root`, or an error that names the first problem."""
    loaded, problems = check_config(root, env=env, flags=flags)
    if problems:
        raise _as_error(problems)
    return loaded


def check_config(
    root: Path, *, env: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> CheckedConfig:
    """The settings as far as they can be read, and everything that is wrong with them."""
    layers = _Layers(Config())
    if own := user_file(env):
        layers.add_file(own, str(own))
    without = layers.config
    ceiling = without.agent.safety
    whose = layers.origins["agent.safety"]
    layers.add_file(root / CONFIG_NAME, CONFIG_NAME, tree_top(root))
    notes = layers.hold_safety(ceiling, whose) if whose != DEFAULT else ()
    layers.add_environment(env)
    layers.add_flags(flags or {})
    loaded = LoadedConfig(layers.config, layers.origins, notes, without)
    return CheckedConfig(loaded, tuple(layers.problems or _contradictions(loaded, root)))


def with_settings(config: Config, flags: Mapping[str, str]) -> Config:
    """The same settings with these on top, as text like on a command line."""
    layers = _Layers(config)
    layers.add_flags(flags)
    if layers.problems:
        raise _as_error(layers.problems)
    return layers.config


def user_file(env: Mapping[str, str]) -> Path | None:
    """Where a person's own settings live, if there is a place for them."""
    base = env.get("XDG_CONFIG_HOME", "")
    if Path(base).is_absolute():
        return Path(base) / "ralph" / "config.toml"
    home = env.get("HOME", "")
    return Path(home) / ".config" / "ralph" / "config.toml" if home else None


class _Layers:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.origins = dict.fromkeys(settings(), DEFAULT)
        self.problems: list[Problem] = []

    def add_file(self, path: Path, name: str, within: Path | None = None) -> None:
        """The settings of one TOML file; a missing file gives none."""
        document, problem = _read_toml(path, within)
        if problem:
            self._wrong(name, problem)
        for section, table in document.items():
            if section not in SECTIONS:
                is_table = isinstance(table, dict)
                unknown = f"unknown {'section' if is_table else 'key'} {shown(section)}"
                problem = f"{unknown}{did_you_mean(section, SECTIONS)}"
                if not is_table and (home := _home_of(section)):
                    problem = f"{section} stands outside a section; it belongs under [{home}]"
                self._wrong(name, problem)
            elif not isinstance(table, dict):
                message = f"expected a table, got {shown(table)}; begin it with [{section}]"
                self._wrong(f"{name}: {section}", message)
            else:
                for key, raw in _keys_of(section, table).items():
                    full = f"{section}.{key}"
                    if full in settings():
                        self._set(full, raw, name, f"{name}: {full}")
                        continue
                    own = [each.key for each in settings().values() if each.section == section]
                    hint = did_you_mean(key, own)
                    if not hint and (home := _home_of(key)):
                        hint = f"; it belongs under [{home}]"
                    self._wrong(f"{name}: {full[:60]}", f"unknown key{hint}")

    def hold_safety(self, ceiling: Safety, whose: str) -> tuple[str, ...]:
        """A project may ask for more safety than the person's own settings do, never for less."""
        agent = self.config.agent
        levels = get_args(Safety)
        notes = []
        if levels.index(agent.safety) < levels.index(ceiling):
            notes.append(f'{CONFIG_NAME} asks for safety = "{agent.safety}"')
            agent = msgspec.structs.replace(agent, safety=ceiling)
            self.origins["agent.safety"] = whose
        refused = (*SANDBOX_WORDS, "RALPH_SANDBOX")
        free = {name: it for name, it in agent.env.items() if name not in refused}
        if free != agent.env and self.origins["agent.env"] == CONFIG_NAME:
            notes.append(f"{CONFIG_NAME} says that this machine is a sandbox")
            agent = msgspec.structs.replace(agent, env=free)
        self.config = msgspec.structs.replace(self.config, agent=agent)
        holds = f'your own settings say safety = "{ceiling}", and that holds'
        return tuple(f"{note}; {holds}" for note in notes)

    def add_environment(self, env: Mapping[str, str]) -> None:
        """`RALPH_<SECTION>_<KEY>` and the three older names; an empty variable is not set."""
        ours = {f"RALPH_{name.replace('.', '_')}".upper(): name for name in settings()}
        known = _SEED_VARIABLES | ours
        for variable, name in known.items():
            if env.get(variable):
                origin = f"environment {variable}"
                self._set(name, env[variable], origin, origin, from_text=True)
        prefixes = tuple(f"RALPH_{section.upper()}_" for section in SECTIONS)
        for variable in env.keys() - known.keys() - _NOT_SETTINGS:
            if variable.startswith(prefixes):
                close = did_you_mean(variable, known)
                self._wrong("environment", f"unknown setting {variable[:60]}{close}")

    def add_flags(self, flags: Mapping[str, object]) -> None:
        """Dotted names from the command line; None means the flag was not given."""
        for name, raw in flags.items():
            if raw is not None and name in settings():
                place = f"command line: {name}"
                is_text = isinstance(raw, str)
                self._set(name, raw, FLAG, place, from_text=is_text)
            elif raw is not None:
                hint = did_you_mean(name, settings())
                self._wrong("command line", f"unknown setting {name[:60]}{hint}", FLAG)

    def _set(
        self, name: str, raw: object, origin: str, place: str, *, from_text: bool = False
    ) -> None:
        setting = settings()[name]
        try:
            value = read_value(setting, raw, from_text=from_text)
        except ValueError as error:
            self._wrong(place, str(error), origin)
            return
        before = getattr(self.config, setting.section)
        section = msgspec.structs.replace(before, **{setting.key: value})
        self.config = msgspec.structs.replace(self.config, **{setting.section: section})
        self.origins[name] = origin

    def _wrong(self, place: str, message: str, origin: str = "") -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(Problem(place, message, origin == FLAG))


def _contradictions(loaded: LoadedConfig, root: Path) -> Iterator[Problem]:
    """What each value alone cannot show: a command without its words, an agent nobody knows."""
    agent = loaded.config.agent
    origins = loaded.origins
    words = shipped_agents()
    rungs = [name for name, _ in agent.rungs() if name != agent.name]
    named = [
        ("agent.name", agent.name),
        *(("agent.fallback", name) for name in agent.fallback),
        *(("agent.escalate", name) for name in rungs),
    ]
    if agent.escalate and agent.model:
        place = origins["agent.model"]
        on_flag = origins["agent.model"] == FLAG
        message = "agent.escalate names the models: leave one of the two out"
        yield Problem(f"{place}: agent.model", message, on_flag)
    for key, name in named:
        own = any((folder / f"{name}.toml").exists() for folder in agent_directories(root))
        message = ""
        if name == "command" and not any(agent.command[:1]):
            message = 'is "command", so agent.command must say which: command = ["./my-agent"]'
        elif name not in words and not own:
            hint = did_you_mean(name, words)
            message = f"expected one of {', '.join(words)}, got {shown(name)}{hint}"
        if message:
            unknown_flag = name not in words and origins[key] == FLAG
            origin = "command line" if origins[key] == FLAG else origins[key]
            yield Problem(f"{origin}: {key}", message, unknown_flag)


def _as_error(problems: Sequence[Problem]) -> RalphError:
    first, *others = problems
    more = f" (and {len(others)} more)" if others else ""
    if first.on_command_line:
        is_agent = first.place.endswith("agent.name")
        step = "`ralph docs agents` tells how to add another." if is_agent else "ralph config show"
        return UsageError(f"{first.place}: {first.message}{more}", step)
    step = "correct it; `ralph config validate` lists every problem"
    return InputError(f"{first.message}{more}", step, place=first.place)


class _TomlFile(NamedTuple):
    document: dict[str, object]  # empty where there is a problem
    problem: str = ""


def _read_toml(path: Path, within: Path | None) -> _TomlFile:
    """What a file says; one that is not there says nothing."""
    try:
        data = read_regular(path, most=_LARGEST_FILE + 1, within=within)
        if len(data) > _LARGEST_FILE:
            return _TomlFile({}, f"cannot be read: larger than {_LARGEST_FILE // 1024} KiB")
        # Some editors write a byte order mark; it carries no meaning.
        text = data.decode("utf-8-sig")
        return _TomlFile(tomllib.loads(text))
    except FileNotFoundError:
        return _TomlFile({})
    except OSError as error:
        return _TomlFile({}, f"cannot be read: {error.strerror or error}")
    except UnicodeDecodeError as error:
        return _TomlFile({}, f"is not UTF-8 text (byte {error.start})")
    except RecursionError:
        return _TomlFile({}, "is nested too deeply")
    except ValueError as error:
        return _TomlFile({}, f"is not valid TOML: {error}{_lacks_quotes(text, str(error))}")


def _lacks_quotes(text: str, error: str) -> str:
    """What to do where the line that the error names has a bare word for a value."""
    named = _AT_LINE.search(error)
    lines = text.splitlines()
    if named is None or int(named[1]) > len(lines):
        return ""
    bare = _BARE_WORD.fullmatch(lines[int(named[1]) - 1].strip())
    return f'; text stands in quotes: {bare[1]} = "…"' if bare else ""


def _keys_of(section: str, table: dict[str, object]) -> dict[str, object]:
    """A section as its settings are called: a table right below [prices] is a row of `models`."""
    named = table.get("models", {})
    if section != "prices" or not isinstance(named, dict):
        return table
    rows = {name: it for name, it in table.items() if isinstance(it, dict) and name != "models"}
    others = {name: it for name, it in table.items() if not isinstance(it, dict)}
    return {"models": {**named, **rows}, **others}


def _home_of(key: str) -> str:
    return next((each.section for each in settings().values() if each.key == key), "")
