"""`ralph config`: the settings in force and where they come from."""

import os
from collections import Counter

import click

from ralphloop.cli import output
from ralphloop.cli.shared.options import DefaultGroup, json_option
from ralphloop.config.load import DEFAULT, check_config, load_config
from ralphloop.config.model import settings
from ralphloop.config.values import shown_value, toml_line
from ralphloop.errors import ExitCode
from ralphloop.project import find_project
from ralphloop.text.plain import counted

_COMMENT_COLUMN = 40


@click.group(cls=DefaultGroup)
def config() -> None:
    """Show or check the settings and where they come from."""


@config.command()
@json_option("One object: name → value and origin.")
def show(as_json: bool) -> None:
    """Print every setting in force with its origin, in the form of a ralph.toml."""
    loaded = load_config(find_project().root, env=os.environ)
    section = ""
    lines = list[str]()
    data = dict[str, object]()
    for name, setting in settings().items():
        if setting.section != section:
            section = setting.section
            lines.append(output.paint(f"[{section}]", "bold"))
        value = shown_value(setting, getattr(getattr(loaded.config, section), setting.key))
        data[name] = {"value": value, "origin": loaded.origins[name]}
        origin = output.paint(f"# {output.safe(loaded.origins[name])}", "dim")
        line = output.safe(toml_line(setting, value))
        lines.append(f"{line:<{_COMMENT_COLUMN}} {origin}")
    output.show(lines, data, as_json=as_json)


@config.command()
@json_option("One object: ok and the problems.")
def validate(as_json: bool) -> int:
    """Check ralph.toml, your own settings and the environment; name every problem."""
    loaded, problems = check_config(find_project().root, env=os.environ)
    if as_json:
        found = [output.picked(each, "place", "message") for each in problems]
        output.emit_json({"ok": not problems, "problems": found})
    elif problems:
        for problem in problems:
            output.error(f"{problem.place}: {problem.message}")
        words = counted(len(problems), "problem")
        output.note(f"{words}. `ralph config show` prints the settings once they are right.")
    else:
        counts = Counter(loaded.origins.values())
        defaults = counts.pop(DEFAULT, 0)
        parts = [f"{count} from {origin}" for origin, count in counts.items()]
        output.emit_lines([f"OK: {', '.join([*parts, f'{defaults} by default'])}"])
    return ExitCode.BAD_INPUT if problems else ExitCode.COMPLETE
