"""What tests with real CLIs share: a scripted model, a world of their own, no process left behind.

Tests that need a CLI carry the marker `e2e` (`e2e_all` for all the others) and
run only where this directory is asked for: `make test` needs no Node.js.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.model_server import ModelServer
from tests.e2e.processes import named, processes_of

pytest.register_assert_rewrite("tests.e2e.bills", "tests.e2e.projects")

HERE = Path(__file__).parent
_GRACE_S = 3.0


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of this directory."""
    config.addinivalue_line("markers", "e2e: needs claude or codex; run by `make e2e`")
    config.addinivalue_line("markers", "e2e_all: needs another CLI; run by `make e2e-all`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests with real CLIs out unless they are asked for by path."""
    paths = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    if any(path.is_relative_to(HERE) for path in paths):
        return
    left_out = [item for item in items if _needs_cli(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not _needs_cli(item)]


def _needs_cli(item: pytest.Item) -> bool:
    return bool(item.get_closest_marker("e2e") or item.get_closest_marker("e2e_all"))


@dataclass(frozen=True, slots=True)
class World:
    """The directories of one test."""

    home: Path  # HOME of the CLI; its TMPDIR is inside
    work: Path  # where it works


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A home and a work directory that are new and empty."""
    (home := tmp_path / "home").mkdir()
    (work := tmp_path / "work").mkdir()
    return World(home=home, work=work)


@pytest.fixture
def server(world: World) -> Iterator[ModelServer]:
    """A scripted model; a request that no script foresaw fails the test."""
    with ModelServer(root=world.work) as server:
        yield server
        assert server.unexpected == []


@pytest.fixture(autouse=True)
def _no_process_left(tmp_path: Path) -> Iterator[None]:
    """Whatever a test starts is gone when it ends."""
    yield
    deadline = time.monotonic() + _GRACE_S
    while (left := processes_of(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.05)
    names = [named(process) for process in left]
    for process in left:
        process.kill()
    assert names == []
