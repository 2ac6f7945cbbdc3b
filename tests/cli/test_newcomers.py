"""What newcomers type, and the right word back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop import __version__
from tests.conftest import RunRalph
from tests.loop.projects import sandbox

WORKS = "write(f'{STORY}.txt'); done()"


@pytest.mark.parametrize(
    "typed, meant",
    [
        ("start", "run"),
        ("go", "run"),
        ("continue", "run --continue"),
        ("list", "stories"),
        ("ls", "stories"),
        ("watch", "monitor"),
        ("tui", "monitor"),
        ("logs", "log"),
        ("web", "serve"),
        ("ui", "serve"),
        ("accept", "review"),
        ("approve", "review"),
        ("cancel", "stop"),
        ("add", "stories add"),
        ("upgrade", ""),
        ("statsu", "stats"),
    ],
)
def test_a_word_of_other_tools_is_answered_with_ours(
    typed: str, meant: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Nothing is started on a guess: the command is named, with 64."""
    done = run_ralph(typed, cwd=tmp_path)
    assert done.returncode == 64
    wanted = f"Did you mean `ralph {meant}`" if meant else "ralph --help"
    assert wanted in done.stderr


@pytest.mark.parametrize("words", [("help",), ("--help",), ("-h",)])
def test_help_is_help(words: tuple[str, ...], tmp_path: Path, run_ralph: RunRalph) -> None:
    """However it is asked for."""
    done = run_ralph(*words, cwd=tmp_path)
    assert done.returncode == 0
    assert "Set up" in done.stdout


def test_help_of_a_command_is_that_commands(tmp_path: Path, run_ralph: RunRalph) -> None:
    """As git, cargo and go take it."""
    assert run_ralph("help", "run", cwd=tmp_path).stdout == (
        run_ralph("run", "--help", cwd=tmp_path).stdout
    )
    added = run_ralph("help", "stories", "add", cwd=tmp_path)
    assert "--criterion" in added.stdout


@pytest.mark.parametrize("word", ["version", "-v", "-V", "--version"])
def test_the_version_is_told(word: str, tmp_path: Path, run_ralph: RunRalph) -> None:
    """By every name it has elsewhere."""
    done = run_ralph(word, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"ralph {__version__}\n")


def test_a_story_is_known_in_any_case(tmp_path: Path) -> None:
    """`us-2` is US-2, unless two differ by nothing else."""
    box = sandbox(tmp_path, WORKS, stories=2, checks=[["true"]])
    done = box.run("--story", "us-2")
    assert done.code in (0, 4), done.text
    assert box.passes() == {"US-1": False, "US-2": True}
    assert box.run("--story", "us-9").code == 65


def test_a_repository_without_a_commit_is_told_to_make_one(tmp_path: Path) -> None:
    """A stash is impossible there."""
    box = sandbox(tmp_path, WORKS, checks=[["true"]])
    box.git("update-ref", "-d", "HEAD")
    done = box.run()
    assert done.code == 66, done.text
    assert "there is no commit yet" in done.err
    assert "git add -A && git commit" in done.err
    assert "stash" not in done.err
