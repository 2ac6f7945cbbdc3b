"""The reference documents name everything there is, with the right defaults."""

from __future__ import annotations

import json
import re
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import click
import msgspec
import pytest

from ralphloop.agents.declared import Declaration, Login, _SafetyFlags
from ralphloop.agents.script import (
    _ALONE,
    Condition,
    LimitFields,
    ScriptStep,
    SpawnFields,
    StatusFields,
    UsageFields,
    load_script,
)
from ralphloop.cli.main import COMMANDS, ralph
from ralphloop.cli.status import status_data
from ralphloop.config.model import settings
from ralphloop.config.values import toml_line
from ralphloop.core import events
from ralphloop.core.breaker import BreakerState
from ralphloop.core.model import Circuit, Transition
from ralphloop.core.totals import Window
from ralphloop.errors import ExitCode
from ralphloop.night.look import look
from ralphloop.night.values import ErrandLook
from ralphloop.project import Project
from tests.cli.nights import Night
from tests.conftest import RunRalph

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
STEERING = {"answer", "pause", "resume", "skip", "retry", "note", "budget"}
EVENTS = set(events.KINDS) - {"story_held_back", "unknown"}  # those are never sent


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


def keys_in(value: object) -> set[str]:
    """Every key of an object and of what is in it."""
    if isinstance(value, dict):
        return set(value) | {key for inner in value.values() for key in keys_in(inner)}
    if isinstance(value, list | tuple):
        return {key for inner in value for key in keys_in(inner)}
    return set()


def test_every_key_inside_of_the_status_object_is_documented(tmp_path: Path) -> None:
    """In the row of what it is part of; a night with everything in it has every part."""
    night = Night(tmp_path).begin().iterate().iterate("S-2", finished=False)
    now = time.time()
    with night.held():
        working = look(Project(tmp_path))
        night.journal.begin_wait(night.run, kind="quota", reason="limit", now=now, until=now + 600)
        waiting = look(Project(tmp_path))
    window = Window(agent="claude", kind="five_hour", used=0.5, resets_at=int(now))
    change = Transition(
        at=now, before=Circuit.CLOSED, after=Circuit.OPEN, reason="no progress", iteration=3
    )
    breaker = BreakerState(history=(change,))
    state = msgspec.structs.replace(working.session.state, usage_windows=(window,), breaker=breaker)
    session = msgspec.structs.replace(working.session, state=state)
    assert waiting.run is not None
    errand = ErrandLook(run=waiting.run, look=waiting.stories[0], is_live=False)
    working = replace(working, session=session, errands=(errand,))
    shown = section("commands.md", "ralph status")
    tried = set()
    missing = set()
    for seen in (working, waiting):
        data = msgspec.to_builtins(status_data(seen))
        for key, value in data.items():
            inside = keys_in(value)
            tried |= {key} if inside else set()
            told = next(line for line in shown.splitlines() if f"`{key}`" in line.split(" | ")[0])
            missing |= {f"{key}.{name}" for name in inside if not re.search(rf"\b{name}\b", told)}
    parts = "iterations session run holder waiting current last stories tokens quota limits circuit errands"
    assert tried == set(parts.split())
    assert missing == set()


def row(name: str, first: str) -> str:
    """The row of a document's tables that begins so."""
    found = [line for line in text(name).splitlines() if line.startswith(f"| `{first}")]
    assert len(found) == 1, f"{name} has {len(found)} rows for {first}"
    return found[0]


@pytest.mark.parametrize("kind", sorted(EVENTS))
def test_every_event_is_documented_with_its_keys(kind: str) -> None:
    """Whoever reads `--json` finds each type with all it can carry."""
    shown = row("events.md", f"{kind}`")
    fields = events.KINDS[kind].__struct_fields__
    if kind == "iteration_finished":
        fields, shown = tuple(events.IterationFinished().published()), text("events.md")
    assert [field for field in fields if f"`{field}`" not in shown] == []


def test_no_event_or_key_of_one_is_documented_that_does_not_exist() -> None:
    """What was removed is removed here, too."""
    finished = section("events.md", "iteration_finished")
    types = re.findall(r"^\| `(\w+)` \|", text("events.md").removesuffix(finished), re.M)
    assert set(types) == EVENTS
    keys = {
        key for line in re.findall(r"^\| (`.*?) \|", finished, re.M) for key in line.split(", ")
    }
    assert keys == {f"`{key}`" for key in events.IterationFinished().published()}


@pytest.mark.parametrize(
    "struct", [Declaration, Login, _SafetyFlags], ids=lambda it: str(it.__name__)
)
def test_every_key_of_a_declared_agent_is_documented(struct: type[msgspec.Struct]) -> None:
    """With its default, and in the example, which is one that can be read."""
    example = tomllib.loads(re.findall(r"```toml\n(.*?)```", text("agents.md"), re.S)[0])
    declared = msgspec.convert(example, Declaration)
    for field in msgspec.structs.fields(struct):
        if field.name in {"safety", "env", "login"}:
            assert f"`[{field.name}]`" in text("agents.md")
            assert getattr(declared, field.name)
        elif struct is _SafetyFlags:
            assert f"`{field.name}`" in text("agents.md")
            assert getattr(declared.safety, field.name)
        else:
            default = "required" if field.required else f"`{json.dumps(field.default)}`"
            assert f"| `{field.name}` | {default.replace('()', '[]')} |" in text("agents.md")
            of = declared.login if struct is Login else declared
            assert getattr(of, field.name) != field.default


def _without_links(page: str) -> str:
    """The words of a page, whether its links are written as in the file or told as commands."""
    told = re.sub(r" \((?:`ralph docs [^`]+`|https?://[^)]+)\)", "", page)
    return re.sub(r"\[([^\]]+)\]\((?:https?://|[\w./-]+\.md)[^)]*\)", r"\1", told)


def test_a_mistake_in_a_declared_agent_leads_to_its_page(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """The message names a page that the command shows, wherever it is installed."""
    (tmp_path / "agents.d").mkdir()
    (tmp_path / "agents.d" / "mine.toml").write_text('name = "mine"\nprogramm = "x"\n')
    (tmp_path / "ralph.toml").write_text('[agent]\nname = "mine"\n')
    (tmp_path / "prd.json").write_text('{"userStories": [{"id": 1, "title": "One"}]}')
    done = run_ralph("run", "--dry-run", cwd=tmp_path)
    assert done.returncode == ExitCode.BAD_INPUT
    assert "`ralph docs reference/agents`" in done.stderr
    shown = run_ralph("docs", "reference/agents", cwd=tmp_path).stdout
    assert _without_links(shown) == _without_links(text("agents.md"))


@pytest.mark.parametrize("word", ScriptStep.__struct_fields__)
def test_every_word_of_a_script_is_documented(word: str) -> None:
    """With what it means alone, where it may stand alone; and what is inside of it."""
    shown = row("scripted-agent.md", f"{word}: ")
    alone = {"usage_limit": "both as they are"}.get(word) or f"`{_ALONE.get(word)}`"
    assert shown.endswith(f"| {alone} |" if word in _ALONE else "| |")
    inner: dict[str, type[msgspec.Struct]] = {
        "status": StatusFields,
        "usage": UsageFields,
        "spawn": SpawnFields,
        "usage_limit": LimitFields,
        "if_prompt": Condition,
    }
    if word in inner:
        fields = {it.encode_name for it in msgspec.structs.fields(inner[word])}
        fields -= {"truncated", "problems"}  # how a block was read; nobody writes them
        assert [it for it in fields if f"`{it}`" not in shown] == []


def test_the_script_that_is_shown_can_be_played(tmp_path: Path) -> None:
    """The example of the page is one."""
    shown = re.findall(r"```yaml\n(.*?)```", text("scripted-agent.md"), re.S)[0]
    (tmp_path / "night.yaml").write_text(shown)
    assert load_script(tmp_path / "night.yaml").steps("US-001", 0)


def test_all_pages_are_listed_and_a_wrong_name_is_refused(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Guides first, each with its title; what does not exist is a mistake in the command line."""
    listed = run_ralph("docs", cwd=tmp_path).stdout
    assert listed.splitlines()[0].startswith("guides/")
    pages = [*REFERENCE.glob("*.md"), *(REFERENCE.parent / "guides").glob("*.md")]
    assert [it for it in pages if f"{it.parent.name}/{it.stem} " not in listed] == []
    assert run_ralph("docs", "nothing", cwd=tmp_path).returncode == ExitCode.USAGE
