"""What is said of a file that the sandbox kept from being written."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop.proc.sandbox import Box, Place, in_words, refused_paths


def test_a_cache_is_offered_by_the_line_that_allows_it() -> None:
    """The person copies one line."""
    said = in_words(["/home/ada/.cache/tool/x.lock"])
    assert said[0].startswith('to allow it: [sandbox] write = ["/home/ada/.cache/tool"]')


def test_gits_own_directory_is_never_offered_to_be_written() -> None:
    """Its hooks and settings would be the agent's; there is a setting that guards just these."""
    said = in_words(["/home/ada/project/.git/index.lock"])
    assert said == [
        'to let it use git: [sandbox] git = "guarded"'
        " (the sandbox kept /home/ada/project/.git/index.lock from being written)"
    ]


def test_the_whole_cache_is_offered_and_each_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept by hashes has hundreds of directories, and git writes more than one file."""
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    cache = "/home/ada/.cache/go-build"
    said = in_words([f"{cache}/46/a-d", "/p/.git/index.lock", f"{cache}/47/b-d", "/p/.git/x"])
    assert said == [
        'to allow it: [sandbox] write = ["/home/ada/.cache/go-build"]'
        f" (the sandbox kept {cache}/46/a-d and 1 more from being written)",
        'to let it use git: [sandbox] git = "guarded"'
        " (the sandbox kept /p/.git/index.lock and 1 more from being written)",
    ]


@pytest.mark.parametrize(
    "words", ["Read-only file system", "read-only file system", "permission denied", "EROFS"]
)
def test_a_refusal_is_known_however_a_language_writes_it(words: str, tmp_path: Path) -> None:
    """Go writes the system's errors in small letters."""
    box = Box(program="bwrap", places={})
    assert refused_paths(f"open /home/ada/.cache/x-d: {words}\n", box) == ["/home/ada/.cache/x-d"]


def test_a_cache_with_programs_in_it_is_not_offered_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is started from there outside of the box would be the agent's."""
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/home/ada/.cache/tool/bin")
    (said,) = in_words(["/home/ada/.cache/tool/data/x"])
    assert said.startswith('to allow it: [sandbox] write = ["/home/ada/.cache/tool/data"]')


def test_a_project_whose_name_has_a_space_is_not_cut_there() -> None:
    """Half of its path would offer the directory that all projects are in."""
    root = "/home/ada/My Shop"
    places = {root: Place.WRITE, f"{root}/.git": Place.READ}
    box = Box(program="bwrap", places=places)
    line = f"fatal: Unable to create '{root}/.git/index.lock': Read-only file system"
    assert refused_paths(line, box) == [f"{root}/.git/index.lock"]
    assert refused_paths(f"touch: {root}/x: Permission denied", box) == []


def test_what_is_set_already_is_not_offered() -> None:
    """Guarded, git's settings, other work trees and submodules stay as they are."""
    places = {"/p": Place.WRITE, "/p/.git/objects": Place.WRITE, "/p/.git/worktrees": Place.READ}
    box = Box(program="bwrap", places=places)
    said = in_words(["/p/.git/worktrees/one"], box)
    assert said == ["the sandbox kept /p/.git/worktrees/one from being written"]
