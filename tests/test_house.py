"""Rules no linter sees: names that mean one thing, pins that name no host, a page that is true."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import click
import pytest

from ralphloop.cli.main import COMMANDS, OLDER, ralph

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "ralphloop"
MODULES = sorted(PACKAGE.rglob("*.py"))

# A file name in several rooms stands for the same thing there: a command and what it commands, an
# agent and its reader, the values of a room, what Python imports when it starts.
SAME_THING = set("base claude model run sitecustomize values".split()) | set(COMMANDS)


def test_a_file_name_means_one_thing() -> None:
    """Who reads a name in two rooms may expect the same thing in both."""
    rooms = defaultdict(set)
    for path in MODULES:
        rooms[path.stem].add(path.parent)
    twice = {name for name, where in rooms.items() if len(where) > 1 and name != "__init__"}
    assert twice <= SAME_THING


def test_a_public_type_has_a_name_of_its_own() -> None:
    """Two classes of the same name make every reader look at the imports."""
    named = defaultdict(list)
    for path in MODULES:
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                named[node.name].append(path.name)
    assert {name for name, where in named.items() if len(where) > 1} == set()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_is_the_file_of_its_name(name: str) -> None:
    """Who has typed a command knows which file to open, whatever the command calls from there."""
    command = ralph.get_command(click.Context(ralph), name)
    assert command is not None
    assert command.callback is not None
    assert command.callback.__module__ == f"ralphloop.cli.{name}"


def test_beside_the_commands_stand_the_door_and_what_prints() -> None:
    """A file in `cli` is a command; what several of them use lies in `cli/shared`."""
    there = {path.stem for path in (PACKAGE / "cli").iterdir() if path.name != "__pycache__"}
    assert there == {*COMMANDS, *OLDER, "__init__", "main", "output", "shared"}
    shared = (PACKAGE / "cli" / "shared").glob("*.py")
    command = re.compile(r"^@\w+\.(command|group)\(", re.MULTILINE)
    assert [path.name for path in shared if command.search(path.read_text())] == []


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_pins_are_exact_hashed_and_name_no_host(name: str) -> None:
    """Every dependency is one version with hashes, whatever index a machine uses."""
    entries = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    pin = re.compile(r"[a-z0-9-]+==[^ ;]+( ; [^#]+?)?( +--hash=sha256:[0-9a-f]{64})+")
    assert [entry for entry in entries if not pin.fullmatch(entry.rstrip())] == []


def test_development_pins_agree_with_runtime_pins() -> None:
    """What is tested is what is installed."""
    runtime, development = (
        set(re.findall(r"^\S+==\S+", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements.txt", "requirements-dev.txt")
    )
    assert runtime <= development


def test_the_page_about_the_house_names_every_room() -> None:
    """`docs/architecture.md` lists the rooms there are, and no other."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = page.partition("## Rooms")[2].partition("## The way of one iteration")[0]
    named = set(re.findall(r"`([a-z_]+)`", table))
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    single = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert (rooms | single) - named == set()
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) <= rooms | single


def test_the_page_about_the_house_names_files_that_exist() -> None:
    """Whoever follows it to change something finds the file."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = page.partition("## Where to change what")[2]
    named = re.findall(r"`([a-z_]+/[a-z_]+\.py)`", table)
    assert len(named) > 5
    assert [name for name in named if not (PACKAGE / name).exists()] == []
