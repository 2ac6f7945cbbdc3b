"""Running git: no prompts, a deadline, errors in words."""

from __future__ import annotations

import os

import pytest

from ralphloop.errors import RepositoryError
from ralphloop.repo.git import Git, literal_pathspecs
from tests.repo.sandbox import Sandbox


def test_errors_carry_gits_own_first_words(box: Sandbox) -> None:
    """The reader sees what git said."""
    with pytest.raises(RepositoryError, match=r"git rev-parse failed: fatal: .*nonsense"):
        Git(box.root).run("rev-parse", "nonsense")


def test_a_deadline_is_an_error_that_names_the_command(box: Sandbox) -> None:
    """A git that hangs is reported with the time it was given."""
    with pytest.raises(RepositoryError, match=r"did not finish within 0\.3 s"):
        Git(box.root).run("-c", "alias.hang=!sleep 30", "hang", timeout_s=0.3)


def test_git_gets_no_terminal_no_editor_and_the_c_locale(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the user's environment says, nothing can ask or page."""
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("GIT_EDITOR", "vim")
    monkeypatch.setenv("GPG_TTY", "/dev/pts/0")
    script = (
        'alias.tell=!echo "$LC_ALL,$GIT_EDITOR,$GIT_TERMINAL_PROMPT,$GPG_TTY,$GIT_OPTIONAL_LOCKS"'
    )
    git = Git(box.root)
    assert git.line("-c", script, "tell") == "C,:,0,,0"
    assert git.writing().line("-c", script, "tell") == "C,:,0,,"


def test_pathspecs_match_only_themselves() -> None:
    """Wildcards, magic and bytes that are no text are taken literally."""
    paths = ["*.py", ":(exclude)x", os.fsdecode(b"\xff")]
    expected = b":(top,literal)*.py\0:(top,literal):(exclude)x\0:(top,literal)\xff\0"
    assert literal_pathspecs(paths) == expected
