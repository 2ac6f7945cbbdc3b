"""A usage limit that names only a clock time, as codex does: local, cut to the minute, undated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guarantees import Measured
from tests.loop.projects import sandbox

ZONES = ("America/New_York", "UTC", "Asia/Kolkata")
LIMIT = """
def limit(seconds):
    moment = time.time() + seconds
    write(STATE / "moment", int(moment))
    clock = time.strftime("%I:%M %p", time.localtime(moment)).lstrip("0")
    words = f"You've hit your usage limit. Upgrade to Pro or try again at {clock}."
    event(type="thread.started", thread_id="t-1")
    event(type="turn.started")
    event(type="turn.failed", error={"message": words})
    sys.exit(1)

def finish():
    write("a.txt")
    event(type="turn.started")
    event(type="item.completed", item={"id": "i", "type": "agent_message", "text": "It is done."})
    event(type="turn.completed", usage={"input_tokens": 100, "output_tokens": 20})
"""


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("seconds", [0, 3600])
def test_a_clock_time_is_the_end_of_that_minute_here(
    tmp_path: Path, zone: str, seconds: int
) -> None:
    """The limit is over when the minute is, in the zone the agent was started in."""
    box = sandbox(tmp_path, f"{LIMIT}\nlimit({seconds})", output="codex")
    done = box.run("--no-wait", env={"TZ": zone})
    assert done.code == 3, done.text
    moment = int((box.state / "moment").read_text())
    assert box.records()[0].response.resets_at == moment // 60 * 60 + 60


def test_the_zone_of_the_agents_own_settings_counts(tmp_path: Path) -> None:
    """A TZ in agent.env is the zone in which the agent speaks."""
    box = sandbox(tmp_path, f"{LIMIT}\nlimit(3600)", output="codex")
    config = box.root / "ralph.toml"
    env = 'env = { TZ = "Pacific/Auckland" }\n'
    config.write_text(config.read_text().replace("[checks]", f"{env}[checks]", 1))
    box.git("commit", "-qam", "zone")
    box.run("--no-wait", env={"TZ": "America/New_York"})
    moment = int((box.state / "moment").read_text())
    assert box.records()[0].response.resets_at == moment // 60 * 60 + 60


@pytest.mark.parametrize("zone", ZONES)
def test_a_time_just_past_is_tried_again_soon(tmp_path: Path, zone: str) -> None:
    """Minutes ago is not tomorrow: the run goes on and finishes."""
    agent = f"{LIMIT}\nif START == 1: limit(-150)\nfinish()"
    box = sandbox(tmp_path, agent, output="codex", checks=[["test", "-d", "."]])
    done = box.run(env={"TZ": zone})
    assert done.code == 0, done.text
    assert box.starts == 2


def test_a_time_that_stays_past_is_asked_less_and_less_often(
    tmp_path: Path, measured: Measured
) -> None:
    """A clock that is wrong does not make a start every second."""
    box = sandbox(tmp_path, f"{LIMIT}\nlimit(-600)", output="codex", limits='max_time = "10s"')
    done = box.run()
    assert done.code == 3, done.text
    assert box.starts <= 3
    measured(box.starts)
