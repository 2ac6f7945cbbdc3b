"""`RALPH_LANE`: agents, checks and setups know in which lane they are."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.lanes.yards import stories_of, yard
from tests.loop.projects import Sandbox

AGENT = """
say(f"agent-{os.environ['RALPH_LANE']}")
say(f"begun-{STORY}")
until("begun-A")
until("begun-B")
write(f"{STORY}.txt")
done()
"""
ALONE = """
say(f"agent-{os.environ['RALPH_LANE']}")
write(f"{STORY}.txt")
done()
"""


def _notes(who: str) -> list[str]:
    """A command that notes in which lane it runs."""
    code = (
        "import os, pathlib;"
        f" name = '{who}-' + os.environ['RALPH_LANE'];"
        " pathlib.Path(os.environ['TEST_STATE'], name).touch()"
    )
    return [sys.executable, "-S", "-c", code]


def _seen(box: Sandbox, who: str) -> set[str]:
    return {path.name.removeprefix(f"{who}-") for path in box.state.glob(f"{who}-*")}


def test_every_lane_has_a_number_of_its_own(tmp_path: Path) -> None:
    """Two agents at once, their checks and their setups have 1 and 2; where they land it is 0."""
    toml = f"[lanes]\nsetup = {json.dumps([_notes('setup')])}"
    stories = stories_of("A", "B")
    box = yard(tmp_path, AGENT, stories=stories, checks=[_notes("check")], toml=toml)

    done = box.run("--lanes", "2")

    assert done.code == 0, done.err
    assert _seen(box, "agent") == {"1", "2"}
    assert _seen(box, "check") == {"0", "1", "2"}
    assert _seen(box, "setup") == {"0", "1", "2"}


def test_the_checkout_is_number_nought(tmp_path: Path) -> None:
    """Without lanes it is 0, also where ralph itself was started in a lane of another run."""
    box = yard(tmp_path, ALONE, stories=stories_of("A"), checks=[_notes("check")])

    done = box.run(env={"RALPH_LANE": "7"})

    assert done.code == 0, done.err
    assert _seen(box, "agent") == {"0"}
    assert _seen(box, "check") == {"0"}
