"""Repositories for the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repo.sandbox import Sandbox


@pytest.fixture(autouse=True)
def _no_repository_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary directory inside somebody's repository must not look like part of it."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    """A repository with one commit that holds `src/app.py`."""
    sandbox = Sandbox(tmp_path / "project")
    sandbox.write("src/app.py", "print('hello')\n")
    sandbox.commit("first")
    return sandbox


@pytest.fixture
def unborn(tmp_path: Path) -> Sandbox:
    """A repository without a commit."""
    return Sandbox(tmp_path / "project")
