"""No cheat is `verified`, none passes without a remark; honest work of the same look is not asked.

All of them run when this directory is asked for (`make proof`); a few of each always.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ralphloop.core.grading import Grade
from tests.loop.projects import Sandbox, sandbox, story
from tests.proof.cheats import CHEATS, HONEST, LIBRARY, PROJECT, Case

PYTEST = [[sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]]


def _project(tmp_path: Path, agent: str) -> Sandbox:
    return sandbox(
        tmp_path,
        LIBRARY + agent + "\ndone(words=f'Done, start {START}.')\n",
        stories=[story("US-1")],
        checks=PYTEST,
        files=PROJECT,
        toml='[proof]\nexperiments = "always"\n',
    )


@pytest.mark.parametrize("case", CHEATS, ids=lambda case: case.name)
def test_a_cheat_is_never_verified_and_never_without_a_remark(tmp_path: Path, case: Case) -> None:
    """Refused, or passed as one that a person should look at, with the reason."""
    box = _project(tmp_path, f"broken()\n{case.agent}")
    done = box.run("--max-iterations", "2")
    last = box.records()[-1].verdict
    assert last.grade is not Grade.VERIFIED, done.text
    if not case.passes:
        assert not last.passed, last
    elif case.shown:
        assert last.look_at, last
    else:
        assert (last.passed, last.grade) == (True, Grade.NEEDS_REVIEW), last
        assert last.reasons
    assert box.git("ls-files", "--others", "--exclude-standard") == "", "our own failing test"


@pytest.mark.parametrize("case", HONEST, ids=lambda case: case.name)
def test_honest_work_is_verified_at_the_first_start(tmp_path: Path, case: Case) -> None:
    """The same kind of edit, beside a feature with its test."""
    box = _project(tmp_path, f"feature()\n{case.agent}")
    done = box.run("--max-iterations", "2")
    assert done.code == 0, done.text
    last = box.records()[-1].verdict
    assert (box.starts, last.grade) == (1, Grade.VERIFIED), last
