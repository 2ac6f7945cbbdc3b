"""The supervisor killed with SIGKILL at every kill point and at random moments, then continued.

Whatever the moment, `ralph run --continue` ends with the same commits, trees, marks and progress
entries as a run that was never killed; no money is forgotten or counted twice, no process is left.
`make torture` kills at every pass of every point and twenty times as often at random.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ralphloop.night.look import has_unfinished_run
from ralphloop.project import Project
from tests.guarantees import Measured
from tests.kill_points import (
    BRINGING_BACK_POINTS,
    EFFECT_POINTS,
    EXPERIMENT_POINTS,
    JOURNAL_POINTS,
    LANE_POINTS,
    REJECTION_POINTS,
    to_be_killed_at,
)
from tests.loop import kill_scenario
from tests.loop.kill_scenario import Remains, assert_as_if_never_killed, assert_views_are_whole
from tests.loop.projects import Done, Sandbox

SOURCE = Path(__file__).parents[2] / "src" / "ralphloop"
TORTURE = bool(os.environ.get("TORTURE_KILLS"))
RANDOM_KILLS = int(os.environ.get("TORTURE_KILLS", "10"))
KILLS_A_RUN = 5
DEEPEST_PASS = 60 if TORTURE else 0

# No run passes these, and why.
NEVER_IN_A_RUN = {
    "migrate": "only a journal of an older release is migrated",
    "add_request": "requests are written by the commands that ask, not by the run",
    "rejected": "a person sends back between runs: test_rejecting_killed.py",
    "brought_back": "and takes that back between runs: test_undoing_a_rejection.py",
}
# The agent ran, and what it was paid for is not in the journal: the work is done again and paid
# again, as its own book shows.
WHILE_THE_AGENT_RAN = (
    "journal.start_iteration.committed",
    "journal.set_agent_pid.uncommitted",
    "journal.set_agent_pid.committed",
    "journal.agent_ended.uncommitted",
)
NEEDS_THE_FULL_NIGHT = ("set_aside", "begin_wait", "end_wait", "put_story", "intervene")
NEEDS_A_TEST_RUNNER = "experiment"
LATER_PASSES = (
    "atomic.written:6",
    "append.written:3",
    "journal.finish_iteration.uncommitted:2",
    "effect.progress.after:2",
    "effect.commit.before:3",
    "experiment.written:2",
    "experiment.returned:2",
    "experiment.ran:2",
)


def is_passed(point: str) -> bool:
    """Whether a run goes through it."""
    return not any(f".{name}." in point for name in NEVER_IN_A_RUN)


def night_of(point: str) -> str:
    """The smallest night in which the point is passed."""
    if NEEDS_A_TEST_RUNNER in point:
        return "proof"
    later = ":" in point
    return "full" if later or any(name in point for name in NEEDS_THE_FULL_NIGHT) else "short"


POINTS = [
    point for point in (*JOURNAL_POINTS, *EFFECT_POINTS, *EXPERIMENT_POINTS) if is_passed(point)
]
NIGHTS: dict[str, Callable[[Path], Sandbox]] = {
    "full": kill_scenario.full,
    "short": kill_scenario.short,
    "proof": kill_scenario.proof,
}


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Remains]:
    """What nights leave behind that were never killed."""
    found = {}
    for name, night in NIGHTS.items():
        box = night(tmp_path_factory.mktemp(name))
        done = box.run()
        assert done.code == 0, done.text
        found[name] = kill_scenario.remains(box)
    assert found["full"].cost == pytest.approx(0.4)
    assert found["full"].progress[1] == ("second", "failed")
    return found


def going_on(box: Sandbox) -> tuple[str, ...]:
    """How a person goes on: a run that was not written down, or was through, is none to continue."""
    project = Project(box.root)
    has_begun = project.journal.exists() and has_unfinished_run(project)
    return ("--continue",) if has_begun else ()


def killed_at(box: Sandbox, point: str, *arguments: str) -> bool:
    """Run until the point kills it; False where the run never passed it."""
    done = box.run(*arguments, env=to_be_killed_at(point))
    assert done.code in (-signal.SIGKILL, 0), done.text
    return done.code != 0


@pytest.mark.parametrize("point", [*POINTS, *LATER_PASSES])
def test_S04_AC3_a_kill_at_any_point_changes_nothing(
    tmp_path: Path, point: str, untouched: dict[str, Remains], measured: Measured
) -> None:
    """Killed there and continued, everything is as if nothing had happened."""
    night = night_of(point)
    box = NIGHTS[night](tmp_path)
    resuming: tuple[str, ...] = ()
    if ".reopen_run." in point:
        assert killed_at(box, "effect.mark.before")
        resuming = ("--continue",)
    assert killed_at(box, point, *resuming), f"{point} was not passed"
    assert_views_are_whole(box)
    done = box.run(*going_on(box))
    assert_as_if_never_killed(box, done, untouched[night])
    measured(abs(len(box.subjects()) - len(untouched[night].subjects)))
    if point.partition(":")[0] not in WHILE_THE_AGENT_RAN:
        left = kill_scenario.remains(box)
        assert left.cost == untouched[night].cost
        assert left.iterations == untouched[night].iterations


@pytest.mark.parametrize("seed", range(RANDOM_KILLS // KILLS_A_RUN))
def test_kills_at_random_moments_change_nothing(
    tmp_path: Path, seed: int, untouched: dict[str, Remains], measured: Measured
) -> None:
    """Killed again and again at moments nobody chose, the night still ends as it should."""
    box = kill_scenario.full(tmp_path)
    moments = random.Random(seed)
    kills = 0
    while kills < KILLS_A_RUN:
        process = box.start(*going_on(box))
        time.sleep(moments.uniform(0.05, 1.5))
        process.kill()
        out, err = process.communicate(timeout=60)
        assert process.returncode in (0, -signal.SIGKILL), out + err
        assert_views_are_whole(box)
        kills += 1
    done = box.run(*going_on(box)) if process.returncode else finished(process, out, err)
    assert_as_if_never_killed(box, done, untouched["full"])
    measured(abs(len(box.subjects()) - len(untouched["full"].subjects)))


def finished(process: subprocess.Popen[str], out: str, err: str) -> Done:
    """A run that ended before its kill came."""
    return Done(process.returncode, out, err)


@pytest.mark.skipif(not TORTURE, reason="make torture")
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.timeout(1_200)
def test_a_kill_at_every_pass_changes_nothing(
    tmp_path: Path, point: str, untouched: dict[str, Remains]
) -> None:
    """The second and every later pass of a point is as safe as the first."""
    for turn in range(2, DEEPEST_PASS):
        place = tmp_path / str(turn)
        place.mkdir()
        box = kill_scenario.full(place)
        resuming: tuple[str, ...] = ()
        if ".reopen_run." in point:
            assert killed_at(box, "effect.mark.before")
            resuming = ("--continue",)
        if not killed_at(box, f"{point}:{turn}", *resuming):
            return
        assert_as_if_never_killed(box, box.run(*going_on(box)), untouched["full"])


def test_every_kill_point_is_listed_and_accounted_for() -> None:
    """A new point is killed at, or has a reason why no run passes it."""
    source = "".join(
        path.read_text()
        for room in ("loop", "journal", "repo", ".")
        for path in (SOURCE / room).glob("*.py")
    )
    plain = set(re.findall(r'kill_point\("([a-z_.]+)"\)', source))
    listed = {*JOURNAL_POINTS, *EFFECT_POINTS, *EXPERIMENT_POINTS}
    # tests/lanes, test_rejecting_killed.py, test_undoing_a_rejection.py
    elsewhere = {*LANE_POINTS, *REJECTION_POINTS, *BRINGING_BACK_POINTS}
    assert plain <= {*listed, *elsewhere}
    assert {point for point in listed if not is_passed(point)} == {
        f"journal.{name}.{moment}"
        for name in NEVER_IN_A_RUN
        for moment in ("uncommitted", "committed")
    }
    assert set(WHILE_THE_AGENT_RAN) <= listed
