"""A run that ends while checks run: the agent was paid, so the checks are run again, not it."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests import sentences
from tests.guarantees import Measured
from tests.loop.projects import Sandbox, sandbox

AGENT = """
write(f'{STORY}.txt', START)
if START == 1: (STATE / 'slow').touch()
says('Done.')
result('Done.\\n\\n---RALPH_STATUS---\\nSTATUS: COMPLETE\\n---END_RALPH_STATUS---', cost=1.0)
"""
SLOW_ONCE = """
[ -e "$TEST_STATE/slow" ] || exit 0
rm "$TEST_STATE/slow"; touch "$TEST_STATE/checking"; exec sleep 15
"""
WAYS = {
    "killed": (signal.SIGKILL,),
    "interrupted": (signal.SIGINT,),
    "interrupted twice": (signal.SIGINT, signal.SIGINT),
    "terminated": (signal.SIGTERM,),
}


def cut_short(tmp_path: Path, *signals: signal.Signals) -> tuple[Sandbox, str]:
    """A run that got these signals while the first check after the first agent ran."""
    box = sandbox(tmp_path, AGENT, stories=2, checks=[["sh", "-c", SLOW_ONCE]], output="claude")
    process = box.start()
    deadline = time.monotonic() + 60
    while not (box.state / "checking").exists():
        assert time.monotonic() < deadline, "no check was run"
        time.sleep(0.02)
    for number in signals:
        process.send_signal(number)
        time.sleep(0.1)
    out, err = process.communicate(timeout=60)
    return box, out + err


@pytest.mark.parametrize("way", WAYS)
def test_a_finished_agent_is_judged_after_all(tmp_path: Path, way: str, measured: Measured) -> None:
    """Two stories are two starts and two dollars, however the checks were cut short."""
    box, _ = cut_short(tmp_path, *WAYS[way])
    assert box.passes() == {"US-1": False, "US-2": False}
    done = box.run("--continue", "--json")
    assert done.code == 0, done.text
    assert "ago: 1 iteration, $1.00, circuit" in done.err, "the judged one is counted"
    assert box.worked_on() == ["US-1", "US-2"]
    assert done.events("run_finished")[0]["cost_usd"] == pytest.approx(2.0)
    measured(done.events("run_finished")[0]["cost_usd"])
    assert done.events("run_finished")[0]["iterations"] == 2
    assert box.subjects() == ["start", "US-1: Do US-1", "US-2: Do US-2"]
    assert [event["story"] for event in done.events("story_passed")] == ["US-1", "US-2"]


def test_what_is_owed_is_said_with_what_it_cost(tmp_path: Path) -> None:
    """The end of the interrupted run names the checks that are still to be run."""
    _, said = cut_short(tmp_path, signal.SIGINT)
    assert "the checks of iteration 1 are still to be run" in said
    assert "$1.00" in said


def test_a_new_session_judges_it_too(tmp_path: Path) -> None:
    """Without `--continue` the work is not thrown away either."""
    box, _ = cut_short(tmp_path, signal.SIGINT)
    done = box.run()
    assert done.code == 0, done.text
    assert box.worked_on() == ["US-1", "US-2"]


def test_what_a_person_changed_meanwhile_is_judged(tmp_path: Path) -> None:
    """The checks see the files as they are now."""
    box, _ = cut_short(tmp_path, signal.SIGKILL)
    (box.root / "US-1.txt").write_text("by a person")
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert box.git("show", "HEAD~1:US-1.txt") == sentences.BY_A_PERSON
