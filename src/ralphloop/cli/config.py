"""`ralph config`: which settings are in force, where each comes from, whether they are right.

`ralph prices`: what tokens are taken to cost where an agent does not say, and since when.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import click

from ralphloop.agents.prices import Price, our_prices, own_file, own_prices
from ralphloop.cli import output
from ralphloop.cli.given import DefaultGroup, json_option
from ralphloop.config.load import DEFAULT, Loaded, check_config, load_config
from ralphloop.config.model import Form, Setting, settings
from ralphloop.config.values import HIDDEN, toml_line
from ralphloop.errors import ExitCode
from ralphloop.project import find_project
from ralphloop.text.plain import counted

_COMMENT_COLUMN = 40


@click.group(cls=DefaultGroup, default="show")
def config() -> None:
    """Show or check the settings and where they come from."""


@config.command()
@json_option("One object: name → value and origin.")
def show(as_json: bool) -> None:
    """Print every setting in force with its origin, in the form of a ralph.toml."""
    loaded = load_config(find_project().root, env=os.environ)
    if as_json:
        output.emit_json(
            {
                name: {"value": _visible(setting, loaded), "origin": loaded.origins[name]}
                for name, setting in settings().items()
            }
        )
        return
    section = ""
    for name, setting in settings().items():
        if setting.section != section:
            section = setting.section
            output.emit_lines([output.paint(f"[{section}]", "bold")])
        line = output.safe(toml_line(setting, _visible(setting, loaded)))
        origin = output.paint(f"# {output.safe(loaded.origins[name])}", "dim")
        output.emit_lines([f"{line:<{_COMMENT_COLUMN}} {origin}"])


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


def _visible(setting: Setting, loaded: Loaded) -> object:
    """The value, except that variables for the agent may be keys and are not shown."""
    value: object = getattr(getattr(loaded.config, setting.section), setting.key)
    if setting.form is Form.VARIABLES and isinstance(value, dict):
        return dict.fromkeys(value, HIDDEN)
    return value


# --- prices ----------------------------------------------------------------------------------


@click.command()
@json_option("Print one JSON object.")
def prices(as_json: bool) -> None:
    """Show what tokens are taken to cost, for agents that name no price."""
    own = own_prices().models
    rows = {**our_prices().models, **own}
    if as_json:
        output.emit_json(
            {
                "checked": our_prices().checked,
                "override": str(own_file() or ""),
                "models": {
                    name: _cells(price) | {"own": name in own} for name, price in rows.items()
                },
            }
        )
    else:
        output.emit_lines(_table(rows, own))


def _cells(price: Price) -> dict[str, object]:
    """What each kind of token costs; the cache as much as input where nobody says."""
    return {
        "input": price.input,
        "output": price.output,
        "cache_read": price.input if price.cache_read is None else price.cache_read,
        "cache_write": price.input if price.cache_write is None else price.cache_write,
    }


def _table(rows: dict[str, Price], own: dict[str, Price]) -> Iterator[str]:
    width = max(map(len, rows))
    yield f"Dollars for a million tokens, checked {our_prices().checked}; `*` is a family of names."
    heads = "".join(f"{head:>12}" for head in ("input", "output", "cache read", "cache write"))
    yield f"{'':{width}}{heads}"
    for name in sorted(rows):
        cells = "".join(f"{cell:>12}" for cell in _cells(rows[name]).values())
        yield output.safe(f"{name:{width}}{cells}{'  yours' if name in own else ''}")
    yield "A model without a row counts tokens only (limits.max_tokens)."
    yield from output.row("your own", f"{own_file()}{'' if own else ' (not there)'}")
