"""Where settings are written: files, the environment, the command line.

Each source yields `Given` values (which setting, what was written, where) and reports `Problem`s
to a list that is handed in, so that one reading serves both `load_config`, which stops, and
`ralph config validate`, which lists everything.
"""

from __future__ import annotations

import errno
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ralphloop.config.model import Setting, sections, settings
from ralphloop.config.values import did_you_mean, shown

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
