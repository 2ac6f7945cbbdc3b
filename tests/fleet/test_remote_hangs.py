"""A shared remote that takes the connection and says nothing: whoever wants to stop is heard."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.fleet.machines import ended_everywhere, eventually, fleet_yard, machine, over_ssh
from tests.lanes.yards import landed_once, starts
from tests.loop.projects import Sandbox
from tests.tables import some_of

# A stand-in for the ssh that git starts: what a file names never answers.
HANGS = """\
#!/bin/sh
for words; do :; done
kind=${{words%% *}}
if test -e {place}/$kind && {condition}; then echo $$ >> {place}/hung; exec sleep 300; fi
exec sh -c "$words"
"""
SOON_S = 12.0
WHERE = {
    "the order is not given away": ("git-receive-pack", "! test -e {state}/starts-A"),
    "the report is not brought": (
        "git-upload-pack",
        "test -e {state}/starts-A && test -z $MACHINE",
    ),
}


def _behind_ssh(
    box: Sandbox, tmp_path: Path, kind: str = "", condition: str = "true"
) -> dict[str, str]:
    """The environment of a run whose remote is behind a stand-in for ssh that may hang."""
    place = tmp_path / "hangs"
    place.mkdir()
    if kind:
        (place / kind).touch()
    script = tmp_path / "git-ssh"
    script.write_text(HANGS.format(place=place, condition=condition.format(state=box.state)))
    script.chmod(0o755)
    box.git("remote", "set-url", "origin", f"ssh://nowhere{tmp_path}/app.git")
    env = over_ssh(box, tmp_path)
    return env | {"GIT_SSH_COMMAND": str(script), "GIT_SSH_VARIANT": "simple"}


@pytest.mark.parametrize("where", some_of(WHERE, WHERE))
def test_a_stop_is_heard_while_the_remote_hangs(tmp_path: Path, where: tuple[str, str]) -> None:
    """130 within seconds, and nothing of git is left; once it answers `--continue` goes on."""
    box = fleet_yard(tmp_path, names=("A",))
    machine(tmp_path, "one")
    env = _behind_ssh(box, tmp_path, *where)
    run = box.start("--fleet", "ssh:one", env=env)
    eventually((tmp_path / "hangs/hung").exists)
    asked = time.monotonic()
    run.send_signal(signal.SIGINT)
    if "upload" in where[0]:  # what was paid for is waited for a little
        time.sleep(2)
        assert run.poll() is None
        run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=20)

    assert run.returncode == 130, out + err
    assert time.monotonic() - asked < SOON_S
    ended_everywhere(box)
    (tmp_path / "hangs" / where[0]).unlink()
    done = box.run("--continue", env=env)
    assert done.code == 0, done.text
    assert starts(box, "A") <= 2
    landed_once(box, "main", "A")


WAITS = """
write(f"{STORY}.txt", STORY)
if START == 1:
    say(f"works-{STORY}")
    until("go", 60)
done()
"""


def test_starts_that_were_given_away_are_taken_up_side_by_side_and_a_stop_is_heard(
    tmp_path: Path,
) -> None:
    """The remote says nothing of their reports: each is asked for at once, and `ralph stop` ends it."""
    box = fleet_yard(tmp_path, WAITS, names=("A", "B"))
    machine(tmp_path, "one")
    machine(tmp_path, "two")
    env = _behind_ssh(box, tmp_path)
    lease = {"RALPH_FLEET_LEASE": "6s"}
    run = box.start("--fleet", "ssh:one,two", env=env | lease)
    eventually(lambda: all((box.state / f"works-{name}").exists() for name in "AB"))
    run.kill()
    run.communicate()
    ended_everywhere(box)
    (tmp_path / "hangs/git-upload-pack").touch()
    again = box.start("--continue", env=env | lease)
    hung = tmp_path / "hangs/hung"
    eventually(lambda: hung.exists() and len(hung.read_text().split()) == 2, 20)
    asked = time.monotonic()
    stopped = box.ralph("stop")
    out, err = again.communicate(timeout=40)

    assert stopped.code == 0, stopped.text
    assert again.returncode == 130, out + err
    assert time.monotonic() - asked < 2 * SOON_S
    ended_everywhere(box)
    (tmp_path / "hangs/git-upload-pack").unlink()
    done = box.run("--continue", env=env)
    assert done.code == 0, done.text
    landed_once(box, "main", "A", "B")
