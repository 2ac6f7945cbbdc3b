"""The reference documents name everything there is, with the right defaults."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from ralphloop.cli.main import COMMANDS, ralph
from ralphloop.cli.status import status_data
from ralphloop.config.model import settings
from ralphloop.config.values import toml_line
from ralphloop.errors import ExitCode
from ralphloop.night.look import look
from ralphloop.project import Project

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
STEERING = {"answer", "pause", "resume", "skip", "retry", "note", "budget"}


def text(name: str) -> str:
    """One of the documents."""
    return (REFERENCE / name).read_text(encoding="utf-8")


def section(name: str, heading: str) -> str:
    """The part of a document under a heading."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text(name), re.M | re.S)
    assert found is not None, f"{name} has no section {heading!r}"
    return found[1]


@pytest.mark.parametrize("name", sorted(settings()))
def test_every_setting_is_documented_with_its_default(name: str) -> None:
    """A key that exists stands in its section's table, with the value it has by default."""
    setting = settings()[name]
    value = toml_line(setting, setting.default).split(" = ", 1)[1]
    row = f"| `{setting.key}` | `{value}` |"
    assert row in section("configuration.md", f"[{setting.section}]")


def test_no_setting_is_documented_that_does_not_exist() -> None:
    """What was removed is removed here, too."""
    documented = {
        f"{part}.{key}"
        for part in re.findall(r"^## \[(\w+)\]$", text("configuration.md"), re.M)
        for key in re.findall(r"^\| `(\w+)` \|", section("configuration.md", f"[{part}]"), re.M)
    }
    assert documented == set(settings())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_documented_with_its_options(name: str) -> None:
    """Each command has its section, and each long option of it is named there."""
    shown = section("commands.md", "Steering" if name in STEERING else f"ralph {name}")
    command = ralph.get_command(click.Context(ralph), name)
    assert command is not None
    for parameter in command.params:
        longest = max(parameter.opts, key=len)
        if isinstance(parameter, click.Option) and longest not in (
            "--help",
            "--verbose",
            "--quiet",
        ):
            assert longest in shown, f"ralph {name} {longest}"


def test_every_exit_code_is_documented() -> None:
    """Scripts rely on them."""
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", text("exit-codes.md"), re.M)}
    assert documented == {int(code) for code in ExitCode}


def test_every_key_of_the_status_object_is_documented(tmp_path: Path) -> None:
    """Other tools read it."""
    shown = section("commands.md", "ralph status")
    data = status_data(look(Project(tmp_path), now=0.0))
    missing = [key for key in data if f"`{key}`" not in shown]
    assert missing == []
