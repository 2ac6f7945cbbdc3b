"""`ralph init` writes what a run needs, and takes nothing away."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ralphloop.cli.init import ignoring
from ralphloop.config.load import load_config
from ralphloop.core.planning import ready
from ralphloop.prompts import STATUS_SECTION, Parts, build_prompt
from ralphloop.readers import read
from ralphloop.stories.source import load
from tests.conftest import RunRalph

WRITTEN = ["ralph.toml", "PROMPT.md", "prd.json", "prd.schema.json", ".gitignore"]
PYTHON = '[project]\nname = "shop"\ndescription = "Sells {{ things }}"\n[tool.ruff]\n'
STORIES = {"project": "given", "userStories": [{"id": "G-1", "title": "Given", "passes": False}]}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A git repository with a small Python project."""
    root = tmp_path / "repo"
    (root / "tests").mkdir(parents=True)
    (root / "pyproject.toml").write_text(PYTHON)
    (root / "README.md").write_text("# Shop\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def settings(root: Path) -> dict[str, dict[str, object]]:
    """What the written ralph.toml says."""
    return tomllib.loads((root / "ralph.toml").read_text())


def contents(root: Path) -> dict[str, bytes]:
    """Every file outside .git with its content."""
    files = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def test_everything_a_run_needs_is_written(repo: Path, run_ralph: RunRalph) -> None:
    """A fresh repository gets settings, prompt, stories and ignore lines, all of them valid."""
    done = run_ralph("init", cwd=repo)
    assert done.returncode == 0, done.stderr
    assert all(f"created   {name}" in done.stdout for name in WRITTEN)
    config = load_config(repo, env={}).config
    assert config.checks.commands == (("pytest", "-q"), ("ruff", "check", "--no-fix", "."))
    assert config.limits.max_cost_usd == 0
    assert load(repo / config.stories.prd).list.total == 2
    assert (repo / ".gitignore").read_text().splitlines() == [
        ".ralph/",
        ".ralph-session.json",
        ".ralph-circuit-state.json",
        "__pycache__/",
        ".venv/",
    ]


@pytest.mark.parametrize(
    "files, ignored, added",
    [
        ({"test_a.py": ""}, "", ["__pycache__/", ".venv/"]),
        ({"test_a.py": ""}, "*.py[cod]\n.venv\n", []),
        ({"package.json": "{}"}, "", ["node_modules/"]),
        ({"package.json": "{}", "web/node_modules/own/index.js": ""}, "", []),
        ({"Cargo.toml": ""}, "/target\n", []),
        ({"Cargo.toml": "", "package.json": "{}"}, "", ["node_modules/", "/target/"]),
    ],
    ids=["python", "python ignored", "node", "node tracked", "rust ignored", "two stacks"],
)
def test_what_tools_leave_is_ignored(
    tmp_path: Path, run_ralph: RunRalph, files: dict[str, str], ignored: str, added: list[str]
) -> None:
    """`git add -A` after `init` takes no bytecode and no packages, unless they are tracked."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".gitignore").write_text(ignored)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    run_ralph("init", cwd=tmp_path)
    lines = (tmp_path / ".gitignore").read_text().splitlines()
    assert lines[len(ignored.splitlines()) + 3 :] == added


def test_it_says_what_to_do_next(repo: Path, run_ralph: RunRalph) -> None:
    """The last words are the way to the first run, which must not cost anything."""
    last = run_ralph("init", cwd=repo).stdout.split("Next:")[1]
    steps = [
        'ralph stories add "…"',
        "git add ralph.toml",
        "git commit",
        "ralph run --dry-run",
        "ralph run ",
    ]
    places = [last.index(step) for step in steps]
    assert places == sorted(places)
    assert not re.search(r"^.{81}", last, re.MULTILINE)


def test_what_was_written_can_be_committed_as_said(repo: Path, run_ralph: RunRalph) -> None:
    """The git commands that are printed work as they stand and leave a clean tree."""
    last = run_ralph("init", cwd=repo).stdout.split("Next:")[1]
    commands = re.findall(r"(git (?:add|commit).*)", last)
    subprocess.run(
        "git add pyproject.toml README.md; " + "; ".join(commands), shell=True, cwd=repo, check=True
    )
    left = subprocess.run(
        ["git", "status", "--porcelain"], cwd=repo, capture_output=True, check=True
    )
    assert left.stdout == b""


def test_S03_AC6_the_prompt_contains_the_status_section(repo: Path, run_ralph: RunRalph) -> None:
    """PROMPT.md has context, instructions, and the mandatory block with format and example."""
    run_ralph("init", cwd=repo)
    prompt = (repo / "PROMPT.md").read_text()
    assert STATUS_SECTION.strip() in prompt
    assert build_prompt(Parts(instructions=prompt)).text.count(STATUS_SECTION.strip()) == 1
    assert prompt.count("---RALPH_STATUS---") == 2, "the format and an example"
    sections = [line for line in prompt.splitlines() if line.startswith("## ")]
    assert sections == ["## Project context", "## Task instructions", "## RALPH_STATUS (mandatory)"]


def test_S03_AC6_an_echoed_prompt_claims_nothing(repo: Path, run_ralph: RunRalph) -> None:
    """An agent that repeats PROMPT.md has not reported a status."""
    run_ralph("init", cwd=repo)
    assert read((repo / "PROMPT.md").read_bytes(), agent="text").status is None


def test_S03_AC6_the_stack_is_filled_in(repo: Path, run_ralph: RunRalph) -> None:
    """Name, stack, tools and layout of this very project stand in the prompt; checks change."""
    run_ralph("init", cwd=repo)
    prompt = (repo / "PROMPT.md").read_text()
    assert prompt.startswith("# shop\n\nSells {{ things }}\n")
    for words in ("Stack: Python", "under tests/", "Read README.md"):
        assert words in prompt
    assert "pytest -q" not in prompt
    assert "{%" not in prompt


def test_a_stack_nobody_knows_is_said(repo: Path, run_ralph: RunRalph) -> None:
    """Without any mark of a stack, this is said, and the prompt names none."""
    (repo / "pyproject.toml").unlink()
    done = run_ralph("init", cwd=repo)
    assert "stack     not recognised" in done.stdout
    assert "- Stack:" not in (repo / "PROMPT.md").read_text()


@pytest.mark.parametrize(
    "mark, words", [("pom.xml", "Java (Maven)"), ("build.gradle", "Java (Gradle)")]
)
def test_a_build_tool_is_named_once(
    mark: str, words: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """It read "Java (Maven) (Maven)"."""
    (tmp_path / mark).touch()
    done = run_ralph("init", "--no-run", cwd=tmp_path)
    assert f"stack     {words}\n" in done.stdout


def test_the_sample_shows_verify_and_dependencies(repo: Path, run_ralph: RunRalph) -> None:
    """The sample is a valid list in which the second story waits for the first."""
    run_ralph("init", cwd=repo)
    stories = load(repo / "prd.json").list
    first, second = stories.stories
    assert ready(stories)[0] == first
    assert second.depends_on == (first.id,)
    assert first.verify == ("grep", "-q", "Getting started", "README.md")
    assert second.verify == ("grep", "-q", "Checks", "README.md")


def test_editors_find_the_schema_beside_the_sample(repo: Path, run_ralph: RunRalph) -> None:
    """The sample points to a tracked file: it works offline, in every clone, in every editor."""
    run_ralph("init", cwd=repo)
    named = json.loads((repo / "prd.json").read_text())["$schema"]
    assert (repo / named).read_text() == run_ralph("stories", "schema", cwd=repo).stdout
    assert "not read" not in run_ralph("stories", "check", cwd=repo).stdout


def test_no_schema_is_put_beside_stories_of_ones_own(repo: Path, run_ralph: RunRalph) -> None:
    """A file that somebody else wrote gets nothing written into it or beside it."""
    (repo / "prd.json").write_text(json.dumps(STORIES))
    run_ralph("init", cwd=repo)
    assert not (repo / "prd.schema.json").exists()


def test_the_first_story_replaces_the_sample(repo: Path, run_ralph: RunRalph) -> None:
    """Nobody wants the sample built; what a person changed in it is theirs and stays."""
    run_ralph("init", cwd=repo)
    run_ralph("stories", "add", "Greet", "-c", "`greet Ada` prints Hello", cwd=repo)
    run_ralph("stories", "add", "Greet in French", "-c", "prints `Bonjour`", cwd=repo)
    written = json.loads((repo / "prd.json").read_text())
    assert [story["id"] for story in written["userStories"]] == ["US-001", "US-002"]
    assert (written["project"], written["$schema"]) == ("shop", "./prd.schema.json")

    (repo / "prd.json").unlink()
    run_ralph("init", cwd=repo)
    edited = (repo / "prd.json").read_text().replace("how to get started", "what this is")
    (repo / "prd.json").write_text(edited)
    run_ralph("stories", "add", "Greet", "-c", "`greet Ada` prints Hello", cwd=repo)
    stories = load(repo / "prd.json").list.stories
    assert [story.id for story in stories] == ["SAMPLE-1", "SAMPLE-2", "SAMPLE-3"]


@pytest.mark.parametrize(
    "agent, key, capped",
    [
        ("claude", "ANTHROPIC_API_KEY", True),
        ("claude", "OPENAI_API_KEY", False),
        ("codex", "OPENAI_API_KEY", True),
        ("gemini", "GEMINI_API_KEY", True),
        ("opencode", "NOTHING", True),
        ("claude", "NOTHING", False),
    ],
)
def test_paying_by_use_gets_a_cap(
    agent: str, key: str, capped: bool, repo: Path, run_ralph: RunRalph
) -> None:
    """Where a key bills every token, a session costs at most 20 dollars, and init says so."""
    done = run_ralph("init", "--agent", agent, cwd=repo, env={key: "sk-secret-value"})
    assert settings(repo)["agent"]["name"] == agent
    assert settings(repo)["limits"].get("max_cost_usd", 0) == (20.0 if capped else 0)
    assert ("$20 a session" in done.stdout) is capped
    assert "sk-secret-value" not in done.stdout + (repo / "ralph.toml").read_text()


def test_a_key_is_named_but_not_passed_on(repo: Path, run_ralph: RunRalph) -> None:
    """Billing a key is the user's choice: the line that does it is there, commented out."""
    run_ralph("init", cwd=repo, env={"ANTHROPIC_API_KEY": "x"})
    assert '# pass_env = ["ANTHROPIC_API_KEY"]' in (repo / "ralph.toml").read_text()
    assert load_config(repo, env={}).config.agent.pass_env == ()


@pytest.mark.parametrize("agent", ["command", "scripted"])
def test_an_agent_of_ones_own_is_a_step_to_do(agent: str, repo: Path, run_ralph: RunRalph) -> None:
    """The placeholder makes a valid file, and the first step is to replace it."""
    done = run_ralph("init", "--agent", agent, cwd=repo)
    assert load_config(repo, env={}).config.agent.command
    assert "1. name your program in ralph.toml: agent.command" in done.stdout


def test_an_installed_agent_is_chosen(repo: Path, tmp_path: Path, run_ralph: RunRalph) -> None:
    """Without a wish, the agent is one that is on PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "codex").write_text("#!/bin/sh\n")
    (programs / "codex").chmod(0o755)
    git = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout
    (programs / "git").symlink_to(git.strip())
    run_ralph("init", cwd=repo, env={"PATH": str(programs)})
    assert settings(repo)["agent"]["name"] == "codex"


def test_a_second_time_changes_nothing(repo: Path, run_ralph: RunRalph) -> None:
    """Running it again is harmless and says that all is there."""
    run_ralph("init", cwd=repo)
    before = contents(repo)
    done = run_ralph("init", cwd=repo)
    assert done.returncode == 0
    assert contents(repo) == before
    assert done.stdout.count("it is up to date") == 4
    assert (
        "kept      prd.json: 2 stories, 0 passed; these are still the sample, not yours"
        in done.stdout
    )
    assert "git add" not in done.stdout


@pytest.mark.parametrize("flags", [[], ["--yes"]])
def test_existing_files_are_left_alone(flags: list[str], repo: Path, run_ralph: RunRalph) -> None:
    """Without a terminal nothing that exists is replaced; --yes does not mean that either."""
    mine = {"ralph.toml": "[limits]\nmax_iterations = 3\n", "PROMPT.md": "Mine.\n"}
    for name, text in mine.items():
        (repo / name).write_text(text)
    done = run_ralph("init", *flags, cwd=repo)
    assert {name: (repo / name).read_text() for name in mine} == mine
    assert "kept      ralph.toml: it exists (--overwrite replaces it)" in done.stdout
    assert "created   prd.json" in done.stdout


def test_overwrite_replaces_settings_and_prompt_but_no_stories(
    repo: Path, run_ralph: RunRalph
) -> None:
    """--overwrite is the explicit yes; a story list is more than a file and stays."""
    (repo / "ralph.toml").write_text("[limits]\nmax_iterations = 3\n")
    (repo / "PROMPT.md").write_text("Mine.\n")
    (repo / "prd.json").write_text(json.dumps(STORIES))
    done = run_ralph("init", "--overwrite", cwd=repo)
    assert "replaced  ralph.toml" in done.stdout
    assert "Mine." not in (repo / "PROMPT.md").read_text()
    assert json.loads((repo / "prd.json").read_text()) == STORIES


def test_stories_in_the_project_are_pointed_to(repo: Path, run_ralph: RunRalph) -> None:
    """A given file inside the directory stays where it is; the settings name it."""
    (repo / "docs").mkdir()
    (repo / "docs" / "stories.json").write_text(json.dumps(STORIES))
    done = run_ralph("init", "--prd", "docs/stories.json", cwd=repo)
    assert settings(repo)["stories"]["prd"] == "docs/stories.json"
    assert not (repo / "prd.json").exists()
    assert "kept      docs/stories.json: 1 story, 0 passed" in done.stdout


def test_stories_from_outside_are_copied(repo: Path, tmp_path: Path, run_ralph: RunRalph) -> None:
    """A given file outside the directory becomes its prd.json, byte for byte."""
    outside = tmp_path / "stories.json"
    outside.write_text(json.dumps(STORIES, indent=7))
    done = run_ralph("init", "--prd", str(outside), cwd=repo)
    assert (repo / "prd.json").read_bytes() == outside.read_bytes()
    assert "created   prd.json (a copy)" in done.stdout


def test_a_copy_replaces_stories_only_when_told(
    repo: Path, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Stories from outside do not silently take the place of those that are there."""
    outside = tmp_path / "stories.json"
    outside.write_text(json.dumps(STORIES))
    (repo / "prd.json").write_text("mine")
    assert run_ralph("init", "--prd", str(outside), cwd=repo).returncode == 0
    assert (repo / "prd.json").read_text() == "mine"
    run_ralph("init", "--prd", str(outside), "--overwrite", cwd=repo)
    assert json.loads((repo / "prd.json").read_text()) == STORIES


@pytest.mark.parametrize("there", [True, False], ids=["already there", "given"])
def test_invalid_stories_are_65_and_nothing_is_written(
    there: bool, repo: Path, run_ralph: RunRalph
) -> None:
    """A story file with a mistake in it is named with its place before anything happens."""
    name = "prd.json" if there else "other.json"
    (repo / name).write_text('{"userStories": [{"id": "A", "title": 3}]}')
    before = contents(repo)
    done = run_ralph("init", *([] if there else ["--prd", name]), cwd=repo)
    assert done.returncode == 65
    assert "userStories" in done.stderr
    assert contents(repo) == before


def test_a_missing_story_file_is_65(repo: Path, run_ralph: RunRalph) -> None:
    """A file that is not there cannot be pointed to."""
    done = run_ralph("init", "--prd", "nowhere.json", cwd=repo)
    assert done.returncode == 65
    assert "nowhere.json" in done.stderr


def test_tasks_files_and_configured_stories_are_found(repo: Path, run_ralph: RunRalph) -> None:
    """No sample is put beside a tasks.yaml or a story file that ralph.toml names."""
    (repo / "tasks.yaml").write_text("tasks:\n  - id: T1\n    title: One\n")
    run_ralph("init", cwd=repo)
    assert settings(repo)["stories"]["prd"] == "tasks.yaml"
    assert not (repo / "prd.json").exists()


def test_kept_settings_that_name_other_stories_are_noted(repo: Path, run_ralph: RunRalph) -> None:
    """Where ralph.toml is left alone, the line it needs is said."""
    (repo / "ralph.toml").write_text('[stories]\nprd = "old.json"\n')
    (repo / "new.json").write_text(json.dumps(STORIES))
    done = run_ralph("init", "--prd", "new.json", cwd=repo)
    assert 'stories.prd = "new.json"' in done.stdout


def test_kept_settings_with_a_mistake_are_noted(repo: Path, run_ralph: RunRalph) -> None:
    """An existing ralph.toml that cannot be used is not passed over in silence."""
    (repo / "ralph.toml").write_text("[limits]\nmax_iteration = 3\n")
    done = run_ralph("init", cwd=repo)
    assert "max_iteration" in done.stdout
    assert "ralph config validate" in done.stdout


def test_without_git_it_works_and_says_what_to_do(tmp_path: Path, run_ralph: RunRalph) -> None:
    """No repository is no obstacle; `git init` becomes the first step."""
    done = run_ralph("init", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "ralph.toml").exists()
    assert "is not inside a git repository" in " ".join(done.stdout.split())
    assert "git init" in done.stdout.split("Next:")[1]


def test_a_part_of_a_repository_can_be_the_project(repo: Path, run_ralph: RunRalph) -> None:
    """In a directory below the root the files go there, and that is said."""
    (repo / "api").mkdir()
    done = run_ralph("init", cwd=repo / "api")
    assert (repo / "api" / "ralph.toml").exists()
    assert not (repo / "ralph.toml").exists()
    assert "part of the repository" in done.stdout


@pytest.mark.parametrize("flags", [["--agent", "gpt"], ["--nope"], ["extra"]])
def test_bad_usage_is_64(flags: list[str], repo: Path, run_ralph: RunRalph) -> None:
    """A wrong option changes nothing and ends with 64."""
    before = contents(repo)
    assert run_ralph("init", *flags, cwd=repo).returncode == 64
    assert contents(repo) == before


@pytest.mark.skipif(
    not Path("/sys/kernel").is_dir(), reason="needs a directory nobody can write to"
)
def test_a_read_only_directory_is_66(run_ralph: RunRalph) -> None:
    """Where nothing can be written the error names the file and the way out."""
    done = run_ralph("init", "--yes", cwd=Path("/sys/kernel"))
    assert done.returncode == 66, done.stderr
    assert "cannot write /sys/kernel/ralph.toml" in done.stderr
    assert "next: " in done.stderr


def test_a_link_out_of_the_project_is_not_followed(
    repo: Path, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """A PROMPT.md that leads elsewhere is not written through, even with --overwrite."""
    outside = tmp_path / "outside.md"
    outside.write_text("mine")
    (repo / "PROMPT.md").symlink_to(outside)
    done = run_ralph("init", "--overwrite", cwd=repo)
    assert done.returncode == 66
    assert outside.read_text() == "mine"


@pytest.mark.parametrize(
    "before, after",
    [
        (b"", b".ralph/\n.ralph-session.json\n.ralph-circuit-state.json\n"),
        (b"*.pyc", b"*.pyc\n.ralph/\n.ralph-session.json\n.ralph-circuit-state.json\n"),
        (
            b"*.pyc\r\nx\r\n",
            b"*.pyc\r\nx\r\n.ralph/\r\n.ralph-session.json\r\n.ralph-circuit-state.json\r\n",
        ),
        (b"/.ralph\n", b"/.ralph\n.ralph-session.json\n.ralph-circuit-state.json\n"),
        (
            b".ralph-circuit-state.json\n# x\n.ralph-session.json \n.ralph/\n",
            b".ralph-circuit-state.json\n# x\n.ralph-session.json \n.ralph/\n",
        ),
        (b"\xff\xfe", b"\xff\xfe\n.ralph/\n.ralph-session.json\n.ralph-circuit-state.json\n"),
    ],
)
def test_gitignore_grows_without_disturbance(before: bytes, after: bytes) -> None:
    """What is there stays byte for byte, line ends are its own, nothing stands there twice."""
    assert ignoring(before) == after
    assert ignoring(after) == after


def on_a_terminal(cwd: Path, answers: str, *flags: str) -> tuple[int, str]:
    """Run `ralph init` with a terminal on which somebody types the answers."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "ralphloop", "init", *flags]
    process = subprocess.Popen(command, cwd=cwd, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    os.write(master, answers.encode())
    shown = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break  # the other end is closed: the program has ended
        shown += piece
    os.close(master)
    return process.wait(timeout=60), shown.decode()


def test_on_a_terminal_each_existing_file_is_asked_for(repo: Path) -> None:
    """A yes replaces the one file it was given for."""
    (repo / "ralph.toml").write_text("[limits]\nmax_iterations = 3\n")
    (repo / "PROMPT.md").write_text("Mine.\n")
    code, shown = on_a_terminal(repo, "y\nn\ny\n")
    assert code == 0
    assert "Set up ralph in" in shown
    assert (repo / "ralph.toml").read_text() == "[limits]\nmax_iterations = 3\n"
    assert "Mine." not in (repo / "PROMPT.md").read_text()


def test_on_a_terminal_a_no_writes_nothing(repo: Path) -> None:
    """Whoever declines leaves everything as it was."""
    before = contents(repo)
    code, shown = on_a_terminal(repo, "n\n")
    assert code == 0
    assert "Nothing was written." in shown
    assert contents(repo) == before


def test_on_a_terminal_yes_asks_nothing(repo: Path) -> None:
    """--yes creates what is missing and leaves the rest, without a question."""
    (repo / "PROMPT.md").write_text("Mine.\n")
    code, shown = on_a_terminal(repo, "", "--yes")
    assert code == 0
    assert "?" not in shown
    assert (repo / "PROMPT.md").read_text() == "Mine.\n"
    assert (repo / "prd.json").exists()


# --- checks are run before they are written ------------------------------------------------------


def _python_project(repo: Path, tests: str) -> None:
    """Tests of unittest, run by this Python; `ruff` and `mypy` are wanted and not there."""
    (repo / "pyproject.toml").write_text('[project]\nname = "shop"\n[tool.ruff]\n[tool.mypy]\n')
    (repo / "venv" / "bin").mkdir(parents=True)
    (repo / "venv" / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} -I "$@"\n')
    (repo / "venv" / "bin" / "python").chmod(0o755)
    (repo / "tests" / "test_one.py").write_text("import unittest\n" + tests)


GREEN = """
class T(unittest.TestCase):
    def test_x(self):
        pass
"""


def _no_tools(tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH has git and a shell, and no pytest."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "sh", "env"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    return {**os.environ, "PATH": str(tools)}


def test_a_check_that_cannot_start_is_left_out(
    repo: Path, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """What is missing is said, with how to get it; the checks that ran are written."""
    _python_project(repo, GREEN)
    (repo / "venv" / "bin" / "python").write_text(
        '#!/bin/sh\ncase $2 in ruff|mypy) echo "$0: No module named $2"; exit 1;; esac\n'
        f'exec {sys.executable} "$@"\n'
    )
    done = run_ralph("init", "--yes", cwd=repo, env=_no_tools(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "green     venv/bin/python -m unittest discover -q -s tests, in" in done.stdout
    assert "1 test passed" in " ".join(done.stdout.split())
    assert "left out  venv/bin/python -m mypy .: No module named mypy" in done.stdout
    assert "fix: venv/bin/python -m pip install mypy" in done.stdout
    assert settings(repo)["checks"]["commands"] == [
        ["venv/bin/python", "-m", "unittest", "discover", "-q", "-s", "tests"]
    ]
    assert "mypy" not in (repo / "PROMPT.md").read_text()


def test_a_red_check_is_written_and_shown(repo: Path, tmp_path: Path, run_ralph: RunRalph) -> None:
    """A person sees at once what a run would refuse to begin with."""
    _python_project(repo, GREEN.replace("pass", "self.fail('boom')"))
    (repo / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    done = run_ralph("init", "--yes", cwd=repo, env=_no_tools(tmp_path))
    assert "red       venv/bin/python -m unittest" in done.stdout
    assert "1 test failed" in " ".join(done.stdout.split())
    assert "AssertionError: boom" in done.stdout
    assert len(settings(repo)["checks"]["commands"]) == 1  # type: ignore[arg-type]


@pytest.mark.tool("bwrap")
def test_a_check_that_is_red_anyway_says_nothing_against_the_sandbox(
    repo: Path, run_ralph: RunRalph
) -> None:
    """The sandbox is tried with what is green outside; the other check is a matter of its own."""
    _python_project(repo, GREEN)
    (repo / "pyproject.toml").write_text('[project]\nname = "shop"\n[tool.ruff]\n')
    (repo / "venv" / "bin" / "python").write_text(
        f'#!/bin/sh\n[ "$2" = ruff ] && exit 1\nexec {sys.executable} -I "$@"\n'
    )
    done = run_ralph("init", "--yes", cwd=repo)
    assert "red       venv/bin/python -m ruff check" in done.stdout
    assert "and those green outside are green inside" in " ".join(done.stdout.split())
    assert settings(repo)["sandbox"] == {"mode": "auto"}


@pytest.mark.parametrize("flags", [[], ["--yes", "--no-run"]])
def test_nothing_of_the_repository_is_run_without_a_yes(
    flags: list[str], repo: Path, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Without a terminal and without --yes, and with --no-run, checks are written untried."""
    _python_project(repo, GREEN)
    (repo / "venv" / "bin" / "python").write_text("#!/bin/sh\ntouch ran\n")
    done = run_ralph("init", *flags, cwd=repo, env=_no_tools(tmp_path))
    assert done.returncode == 0, done.stderr
    assert not (repo / "ran").exists()
    assert len(settings(repo)["checks"]["commands"]) == 3  # type: ignore[arg-type]


def test_checks_are_not_run_for_settings_that_stay(
    repo: Path, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """A second time nothing is written, so there is nothing to try."""
    _python_project(repo, GREEN)
    run_ralph("init", cwd=repo, env=_no_tools(tmp_path))
    (repo / "venv" / "bin" / "python").write_text("#!/bin/sh\ntouch ran\n")
    run_ralph("init", "--yes", cwd=repo)
    assert not (repo / "ran").exists()


def test_a_directory_of_python_tests_is_recognised(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Without any file that describes the project."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_app.py").write_text("def test_it():\n    assert True\n")
    done = run_ralph("init", "--yes", "--no-run", cwd=tmp_path)
    assert "Python" in done.stdout.splitlines()[0]
    assert "pytest" in (tmp_path / "ralph.toml").read_text()


@pytest.mark.parametrize(
    "lock, command",
    [("", "npm install"), ("yarn.lock", "yarn install"), ("pnpm-lock.yaml", "pnpm install")],
)
def test_packages_that_are_not_installed_are_said_first(
    lock: str, command: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """A check that cannot find its own tool says nothing about the work."""
    manifest = '{"scripts": {"test": "vitest run"}, "devDependencies": {"vitest": "^2"}}'
    (tmp_path / "package.json").write_text(manifest)
    if lock:
        (tmp_path / lock).write_text("")
    done = run_ralph("init", "--yes", "--no-run", cwd=tmp_path)
    assert f"`{command}` first" in " ".join(done.stdout.split())
    (tmp_path / "node_modules").mkdir()
    again = run_ralph("init", "--yes", "--no-run", "--overwrite", cwd=tmp_path)
    assert "install` first" not in again.stdout
