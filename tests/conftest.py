"""What every test gets: a home, a git identity and an environment that are not the developer's."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import settings

from ralphloop.proc.run import ourselves
from tests.starting import end_server, run_to_end
from tests.tools import missing

pytest_plugins = ["tests.guarantees", "tests.attacks"]

# Machines under load miss deadlines; slowness is measured by benchmarks, not by chance.
settings.register_profile("ralph", deadline=None, print_blob=True, max_examples=60)
settings.register_profile("thorough", parent=settings.get_profile("ralph"), max_examples=2_000)
settings.load_profile("ralph")

_GIT_IDENTITY = """\
[user]
    name = Test
    email = test@example.com
[init]
    defaultBranch = main
    templateDir = {template}
[commit]
    gpgSign = false
[maintenance]
    auto = false
[core]
    fsync = none
"""


# Thousands of collected tests are looked at by every full collection of garbage, and never are any.
gc.disable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a program that is not on this machine."""
    for mark in item.iter_markers("tool"):
        lacking = [] if mark.kwargs.get("optional") else missing(mark.args)
        if lacking:
            pytest.skip(f"not on this machine: {', '.join(lacking)}")


def pytest_collection_finish() -> None:
    """From here on garbage is collected, what was collected before is not looked at again."""
    gc.freeze()
    gc.enable()


# A shell that starts us in the background has its children ignore Ctrl-C; tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


class RunRalph(Protocol):
    """The real command as a function."""

    def __call__(
        self, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run it with these arguments in that directory."""


@pytest.fixture(scope="session", autouse=True)
def _own_surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing of the person who runs the tests leaks in or gets changed."""
    home = tmp_path_factory.mktemp("home")
    # Without the samples of hooks: they would be most of the files of most repositories.
    for part in ("info", "hooks"):
        (home / "template" / part).mkdir(parents=True)
    (home / ".gitconfig").write_text(_GIT_IDENTITY.format(template=home / "template"))
    # The interpreter itself: a version manager's stand-in starts thirty processes to find it.
    (home / "bin").mkdir()
    for name in ("python", "python3"):
        (home / "bin" / name).symlink_to(Path(sys.executable).resolve())
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("RALPH_", "CB_", "GIT_"))]:
            patch.delenv(name)
        # Bytecode: compiling all of us at every start would be most of what a start costs.
        for name in (
            "NO_COLOR",
            "FORCE_COLOR",
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "PYTHONDONTWRITEBYTECODE",
        ):
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(home))
        patch.setenv("PATH", f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}")
        patch.setenv("RALPH_TRUST", "1")  # the tests' own settings; tests about trust take it away
        patch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield
        end_server()


@pytest.fixture(scope="session")
def run_ralph() -> RunRalph:
    """Run the real command in a process of its own (see `tests/starting.py`)."""

    def run(
        *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        command = [*ourselves(), *arguments]
        surroundings = {**os.environ, **(env or {})}
        done = run_to_end(command, given=stdin.encode(), timeout=60, cwd=cwd, env=surroundings)
        out, err = done.stdout.decode(), done.stderr.decode()
        return subprocess.CompletedProcess(command, done.returncode, out, err)

    return run
