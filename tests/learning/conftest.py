"""The project every test of learning works on."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project."""
    root = tmp_path / "project"
    root.mkdir()
    return Project(root)
