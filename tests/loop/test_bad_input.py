"""Whatever is wrong with the input: a clear error that names the place, 65, and nothing changed.

The tables go through the command in this process, because each case is a millisecond there and a
third of a second in a process of its own; one of each kind is run for real as well.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ralphloop.cli.main import run as run_command
from tests.loop.projects import Sandbox, contents, sandbox, story

Refused = Callable[..., str]
WORKS = "write(f'src/a.txt', START); done()"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once and copied for every case."""
    place = tmp_path_factory.mktemp("template")
    sandbox(place, WORKS, checks=[["true"]])
    return place


@pytest.fixture
def box(tmp_path: Path, template: Path) -> Sandbox:
    """A repository in which everything is right so far."""
    shutil.copytree(template, tmp_path, symlinks=True, dirs_exist_ok=True)
    return Sandbox(tmp_path / "repo", tmp_path / "state")


@pytest.fixture
def refused(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Refused:
    """`ralph run` with these arguments: it must end 65 and leave everything as it was."""
    monkeypatch.chdir(box.root)
    for name, value in box.environment().items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str, code: int = 65) -> str:
        before = contents(box.root)
        assert run_command(["run", *arguments]) == code
        assert contents(box.root) == before
        assert box.starts == 0
        said = capfd.readouterr()
        assert said.out == ""
        return said.err

    return run


# --- prd.json --------------------------------------------------------------------------------

GOOD = json.dumps(story("US-1"))


def listed(*stories: str) -> str:
    """A story file with these stories, as text."""
    return '{"userStories": [' + ", ".join(stories) + "]}"


def changed(**fields: Any) -> str:
    """A story file whose one story differs in these fields."""
    return listed(json.dumps(story("US-1", **fields)))


BROKEN_PRD: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "is empty"),
    "blank": (" \n", "is empty"),
    "not JSON": ("hello", "line 1, column 1"),
    "cut off": ('{"userStories": [', "the file ends here"),
    "a comma too many": ('{"userStories": [],}', "line 1"),
    "a comment": (f"{listed(GOOD)} // mine", "comments"),
    "a merge conflict": ('{"a": 1,\n<<<<<<< HEAD\n"b": 2}', "line 2"),
    "a fence": (f"```json\n{listed(GOOD)}\n```", "fence"),
    "two documents": (listed(GOOD) * 2, "line 1"),
    "nested for ever": ('{"userStories": ' + "[" * 100_000, "nested too deeply"),
    "not a number": ('{"userStories": [], "a": NaN}', "NaN"),
    "not UTF-8": (b'{"userStories": [\xff\xfe]}', "UTF-8"),
    "binary": (bytes(range(256)), "UTF-8"),
    "a NUL": ('{"userStories": "\x00"}', "line 1"),
    "a list": (f"[{GOOD}]", "found a list"),
    "a text": ('"text"', "text"),
    "null": ("null", "found null"),
    "no stories": ("{}", "userStories"),
    "stories that are no list": ('{"userStories": {}}', "must be a list"),
    "an empty list": ('{"userStories": []}', "is empty"),
    "a story that is a number": (listed("5"), "userStories[0]"),
    "a story without an id": (listed('{"title": "x"}'), "id: missing"),
    "a story without a title": (listed('{"id": "x"}'), "title: missing"),
    "an empty id": (changed(id=""), "id: is empty"),
    "an id that is a list": (changed(id=["US-1"]), "id: must be text"),
    "an id twice": (listed(GOOD, GOOD), "US-1"),
    "passes in words": (changed(passes="yes"), "passes"),
    "passes as a number": (changed(passes=1), "passes"),
    "a priority in words": (changed(priority="high"), "priority"),
    "criteria that are a number": (changed(acceptanceCriteria=3), "acceptanceCriteria"),
    "criteria of numbers": (changed(acceptanceCriteria=[3]), "acceptanceCriteria"),
    "a dependency on nothing": (changed(dependsOn=["US-9"]), "US-9"),
    "a dependency on itself": (changed(dependsOn=["US-1"]), "depends on itself"),
    "a circle": (
        listed(
            json.dumps(story("a", dependsOn=["b"])),
            json.dumps(story("b", dependsOn=["c"])),
            json.dumps(story("c", dependsOn=["a"])),
        ),
        "a",
    ),
    "dependencies in a text": (changed(dependsOn={"a": 1}), "dependsOn"),
    "a verify that is a number": (changed(verify=7), "verify"),
    "a verify with an open quote": (changed(verify="test -f 'a"), "verify"),
    "a verify with a NUL": (changed(verify=["test", "\x00"]), "verify"),
    "a spec outside": (changed(parent_spec="../../etc/passwd"), "../../etc/passwd"),
    "a spec by its full name": (changed(parent_spec="/etc/passwd"), "/etc/passwd"),
    "a spec that is not there": (changed(parent_spec="specs/none.md"), "specs/none.md"),
    "a spec that is a directory": (changed(parent_spec="src"), "src"),
    "a branch git would not take": (
        json.dumps({"branchName": "a..b", "userStories": [story("US-1")]}),
        "a..b",
    ),
}


@pytest.mark.parametrize("name", BROKEN_PRD)
def test_a_broken_prd_is_named(box: Sandbox, refused: Refused, name: str) -> None:
    """The message says which file and what about it."""
    content, place = BROKEN_PRD[name]
    path = box.root / "prd.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = refused()
    assert "prd.json" in said or "story US-1: parent_spec" in said
    assert place in said


def test_a_story_file_that_is_no_file(box: Sandbox, refused: Refused, tmp_path: Path) -> None:
    """A directory, a pipe, a link in a circle or to nowhere: named, and never waited for."""
    path = box.root / "prd.json"
    path.unlink()
    path.mkdir()
    assert "prd.json" in refused()
    path.rmdir()
    os.mkfifo(path)
    assert "prd.json" in refused()
    path.unlink()
    path.symlink_to("prd.json")
    assert "prd.json" in refused()
    path.unlink()
    path.symlink_to(tmp_path / "nowhere.json")
    assert "prd.json" in refused()


@pytest.mark.parametrize("arguments", [["--prd", "none.json"], ["none/"], ["--prompt", "none.md"]])
def test_a_file_that_is_not_there(refused: Refused, arguments: list[str]) -> None:
    """What was named on the command line and is missing is named again."""
    assert "none" in refused(*arguments)


# --- tasks.yaml ------------------------------------------------------------------------------

BROKEN_TASKS: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "is empty"),
    "a tab": ("tasks:\n\t- id: a\n", "line 2"),
    "an open bracket": ("tasks: [", "line 1"),
    "a text": ("just words", "tasks"),
    "a list": ("- id: a\n", "tasks"),
    "tasks that are no list": ("tasks: 5\n", "tasks"),
    "no tasks": ("other: 1\n", "tasks"),
    "a task without an id": ("tasks:\n  - title: x\n", "id"),
    "an id twice": ("tasks:\n  - {id: a, title: x}\n  - {id: a, title: y}\n", "a"),
    "a key twice": ("tasks:\n  - id: a\n    id: b\n    title: x\n", "id"),
    "an exit signal in words": (
        "tasks:\n  - {id: a, title: x, exit_signal: maybe}\n",
        "exit_signal",
    ),
    "passes in words": ("tasks:\n  - {id: a, title: x, passes: nope}\n", "passes"),
    "a Python object": ("tasks: !!python/object/apply:os.system ['true']\n", "tasks.yaml"),
    "a bomb": (
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(
            f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n"
            for n in range(9)
        )
        + "tasks: *j\n",
        "tasks",
    ),
    "two documents": ("tasks:\n  - {id: a, title: x}\n---\ntasks: []\n", "tasks.yaml"),
    "not UTF-8": (b"tasks:\n  - {id: \xff, title: x}\n", "UTF-8"),
    "nested for ever": ("tasks: " + "[" * 3_000, "tasks.yaml"),
}


@pytest.mark.parametrize("name", BROKEN_TASKS)
def test_a_broken_task_list_is_named(box: Sandbox, refused: Refused, name: str) -> None:
    """The message says which file and what about it; nothing in it is ever run or built."""
    (box.root / "prd.json").unlink()
    content, place = BROKEN_TASKS[name]
    path = box.root / "tasks.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = refused()
    assert "tasks.yaml" in said
    assert place in said


# --- ralph.toml ------------------------------------------------------------------------------

BROKEN_TOML: dict[str, tuple[str | bytes, str]] = {
    "not TOML": ("[agent\n", "line 1"),
    "a key twice": ("[limits]\nmax_iterations = 1\nmax_iterations = 2\n", "line 3"),
    "an unknown section": ("[limit]\nmax_iterations = 1\n", "limits"),
    "an unknown key": ("[limits]\nmax_iteration = 1\n", "max_iterations"),
    "a number in words": ('[limits]\nmax_iterations = "many"\n', "limits.max_iterations"),
    "a negative number": ("[limits]\nmax_iterations = -1\n", "limits.max_iterations"),
    "a fraction": ("[limits]\nmax_iterations = 1.5\n", "limits.max_iterations"),
    "infinite money": ("[limits]\nmax_cost_usd = inf\n", "limits.max_cost_usd"),
    "no number": ("[limits]\nmax_cost_usd = nan\n", "limits.max_cost_usd"),
    "a time in words": ('[limits]\nmax_time = "a while"\n', "limits.max_time"),
    "a threshold of zero": ("[circuit]\nno_progress_threshold = 0\n", "no_progress_threshold"),
    "an unknown preset": ('[circuit]\npreset = "lax"\n', "circuit.preset"),
    "more than everything": ("[circuit]\noutput_decline_percent = 170\n", "output_decline"),
    "an unknown gate": ('[exit]\ngate = "maybe"\n', "exit.gate"),
    "an agent nobody knows": ('[agent]\nname = "clod"\n', "clod"),
    "an agent with a path as its name": ('[agent]\nname = "../x"\n', "agent.name"),
    "a command that is a number": ('[agent]\nname = "command"\ncommand = 5\n', "agent.command"),
    "checks that are a number": ("[checks]\ncommands = 5\n", "checks.commands"),
    "an empty check": ("[checks]\ncommands = [[]]\n", "checks.commands"),
    "a check with an open quote": ('[checks]\ncommands = ["test \'a"]\n', "checks.commands"),
    "a section that is a number": ("limits = 5\n", "limits"),
    "not UTF-8": (b"[agent]\nmodel = '\xff'\n", "UTF-8"),
    "nested for ever": ("a = " + "[" * 5_000, "ralph.toml"),
    "far too large": ("# " + "x" * 300_000, "ralph.toml"),
}


@pytest.mark.parametrize("name", BROKEN_TOML)
def test_a_broken_configuration_is_named(box: Sandbox, refused: Refused, name: str) -> None:
    """The message says which setting, or which line."""
    content, place = BROKEN_TOML[name]
    path = box.root / "ralph.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = refused()
    assert "ralph.toml" in said or name.startswith("an agent nobody")
    assert place in said


# --- PROMPT.md -------------------------------------------------------------------------------

BROKEN_PROMPTS: dict[str, tuple[bytes, str]] = {
    "five megabytes": (b"word " * 1_000_000, "4.8 MB"),
    "not UTF-8": (b"line one\nline \xff two\n", "line 2"),
    "a NUL": (b"text\x00text", "NUL"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), "UTF-8"),
}


@pytest.mark.parametrize("name", BROKEN_PROMPTS)
@pytest.mark.parametrize("given", [True, False])
def test_a_broken_prompt_is_named(box: Sandbox, refused: Refused, name: str, given: bool) -> None:
    """PROMPT.md and the file of --prompt are held to the same."""
    content, place = BROKEN_PROMPTS[name]
    (box.root / ("task.md" if given else "PROMPT.md")).write_bytes(content)
    said = refused(*(["--prompt", "task.md"] if given else []))
    assert ("task.md" if given else "PROMPT.md") in said
    assert place in said


def test_a_prompt_that_is_a_directory_or_empty(box: Sandbox, refused: Refused) -> None:
    """Both are named; an empty PROMPT.md is no error, because we have words of our own."""
    (box.root / "task.md").write_text("  \n")
    assert "is empty" in refused("--prompt", "task.md")
    (box.root / "PROMPT.md").mkdir()
    assert "PROMPT.md" in refused()


def test_an_empty_prompt_file_leaves_our_own_words(box: Sandbox) -> None:
    """With an empty PROMPT.md the prompt is the default one."""
    (box.root / "PROMPT.md").write_text("")
    box.git("add", "-A")
    box.git("commit", "-qm", "prompt")
    assert box.run().code == 0
    assert "RALPH_STATUS" in box.prompt(1)


# --- the command line ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["--max-iterations", "-1"],
        ["--max-iterations", "many"],
        ["--max-cost", "-0.5"],
        ["--max-time", "soon"],
        ["--calls", "x"],
        ["--agent", "../evil"],
        ["--no-such-flag"],
        ["a", "b"],
    ],
)
def test_a_bad_command_line_is_64(refused: Refused, arguments: list[str]) -> None:
    """Usage errors have a code of their own, and nothing was touched."""
    assert refused(*arguments, code=64)


# --- for real --------------------------------------------------------------------------------

FOR_REAL: dict[str, dict[str, str]] = {
    "prd.json": {"prd.json": '{"userStories": [', "place": "prd.json"},
    "ralph.toml": {"ralph.toml": "[agent\n", "place": "ralph.toml"},
    "PROMPT.md": {"PROMPT.md": "\x00", "place": "PROMPT.md"},
    "parent spec": {"prd.json": changed(parent_spec="../../etc/passwd"), "place": "parent_spec"},
}


@pytest.mark.parametrize("name", FOR_REAL)
def test_the_real_command_refuses_and_changes_nothing(box: Sandbox, name: str) -> None:
    """Also for --detach, --continue and --dry-run."""
    files: dict[str, Any] = dict(FOR_REAL[name])
    place = files.pop("place")
    for path, content in files.items():
        (box.root / path).write_text(content)
    before = contents(box.root)
    for arguments in ([], ["--dry-run"], ["--detach"], ["--continue"]):
        done = box.run(*arguments)
        assert done.code == 65, done.text
        assert place in done.err
        assert "root:" not in done.text
    assert contents(box.root) == before
