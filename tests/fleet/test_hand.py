"""The hand of a machine: which tickets it refuses, and what it does when nobody is there any more."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from ralphloop import __version__
from ralphloop.fleet.leash import Leash
from ralphloop.proc.run import ourselves
from tests.fleet.machines import eventually

TICKET = {"id": "run/1", "order": "0" * 40, "repository": "app", "version": __version__}


def _said_by_hand(tmp_path: Path, ticket: dict[str, Any], **machine: Any) -> dict[str, Any]:
    """The last beat of a hand that was given this ticket."""
    own = {
        "name": "one",
        "repos": {"app": str(tmp_path / "gone.git")},
        "where": str(tmp_path / "w"),
    }
    argv = [*ourselves(), "fleet", "hand", "--machine", json.dumps({**own, **machine})]
    done = subprocess.run(
        argv, input=json.dumps(ticket).encode() + b"\n", capture_output=True, check=True, timeout=60
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_another_version_is_refused(tmp_path: Path) -> None:
    """Both versions are named, and nothing is fetched."""
    beat = _said_by_hand(tmp_path, {**TICKET, "version": "0.0.1"})

    assert beat["refused"].startswith(f"one has ralph {__version__}, and the order is of 0.0.1")
    assert not (tmp_path / "w").exists()


def test_no_repository_is_taken_from_an_order(tmp_path: Path) -> None:
    """What is not on the list by its name is refused, a path or an address among them."""
    for name in ("other", "../app", "file:///tmp", ""):
        beat = _said_by_hand(tmp_path, {**TICKET, "repository": name})
        assert "is not on the list of one (app)" in beat["refused"]


def test_an_id_is_never_more_than_a_name(tmp_path: Path) -> None:
    """It stands in refs, so whatever else it could mean to git is refused."""
    for name in ("run/1:refs/heads/main", "../run/1", "run", "run/1 --upload-pack=x"):
        beat = _said_by_hand(tmp_path, {**TICKET, "id": name})
        assert "is no id of an order" in beat["refused"]


def test_a_clone_that_fails_is_said(tmp_path: Path) -> None:
    """Where the repository cannot be fetched nothing was started, and the reason is git's."""
    beat = _said_by_hand(tmp_path, TICKET)

    assert "gone.git" in beat["refused"]


SLOW_DOOR = """\
#!/bin/sh
# stand-in for the ssh that git uses, at which a clone takes longer than any lease
echo $$ > {place}/asked
exec sleep 20
"""


def test_a_machine_is_there_while_it_clones(tmp_path: Path) -> None:
    """A large repository takes minutes the first time: signs of life go on, and a stop is heard."""
    door = tmp_path / "door"
    door.write_text(SLOW_DOOR.format(place=tmp_path))
    door.chmod(0o755)
    own = {"name": "one", "repos": {"app": "ssh://far/app.git"}, "where": str(tmp_path / "w")}
    argv = [*ourselves(), "fleet", "hand", "--machine", json.dumps(own)]
    with subprocess.Popen(
        argv,
        env={**os.environ, "GIT_SSH_COMMAND": str(door)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as hand:
        assert hand.stdin
        assert hand.stdout
        hand.stdin.write(json.dumps(TICKET).encode() + b"\n")
        hand.stdin.flush()
        eventually((tmp_path / "asked").exists)
        began = time.monotonic()
        beat = json.loads(hand.stdout.readline())
        hand.stdin.write(b'{"stop": "enough"}\n')
        hand.stdin.close()
        *_, last = hand.stdout
        took = time.monotonic() - began

    assert beat == {"machine": "one"}
    assert json.loads(last)["refused"].startswith("git clone ssh://far/app.git: ")
    assert took < 10
    assert not (tmp_path / "w/app/clone").exists()


def test_a_leash_is_cut_by_silence_alone() -> None:
    """Every word makes it as long as before."""
    leash = Leash(0.3)
    seen = [leash.is_cut]
    time.sleep(0.35)
    seen.append(leash.is_cut)
    leash.hear()
    seen.append(leash.is_cut)

    assert seen == [False, True, False]
