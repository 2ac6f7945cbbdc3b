"""Machines that cannot be reached for a while: nobody has begun, so they are waited for."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from ralphloop import __version__
from ralphloop.fleet import ssh
from ralphloop.fleet.carrier import Delivery
from ralphloop.fleet.ssh import SshCarrier
from ralphloop.fleet.values import Ticket
from ralphloop.proc.threads import StopSignal
from tests.fleet.machines import eventually, fleet_yard, machine, over_ssh
from tests.lanes.yards import landed_once, starts
from tests.loop.projects import Sandbox
from tests.tables import some_of

TICKET = Ticket(id="run/1", order="0" * 40, repository="app", version=__version__)
# A stand-in for ssh to machines; those of which there is a file cannot be reached, for its words.
AWAY = """\
#!/bin/sh
if test -e {away}/$1; then cat {away}/$1 >&2; exit 255; fi
exec {real} "$@"
"""
REFUSED = "ssh: connect to host one port 22: Connection refused\n"


def _may_be_away(box: Sandbox, tmp_path: Path) -> dict[str, str]:
    """The environment of a run whose machines are away while a file says so."""
    env = over_ssh(box, tmp_path)
    script = tmp_path / "perhaps-ssh"
    script.write_text(AWAY.format(away=tmp_path / "away", real=env["RALPH_FLEET_SSH"]))
    script.chmod(0o755)
    (tmp_path / "away").mkdir()
    return env | {"RALPH_FLEET_SSH": str(script)}


def test_machines_that_are_all_away_are_waited_for(tmp_path: Path) -> None:
    """It is said once, with the reason; once one is back the story is worked on, by one start."""
    box = fleet_yard(tmp_path, names=("A",))
    machine(tmp_path, "one")
    env = _may_be_away(box, tmp_path)
    (tmp_path / "away/one").write_text(REFUSED)
    (tmp_path / "away/two").write_text(REFUSED)
    run = box.start("--fleet", "ssh:one,two", env=env)
    journal = box.root / ".ralph/journal.db"
    eventually(journal.exists)
    time.sleep(6)
    assert run.poll() is None, run.communicate()
    (tmp_path / "away/one").unlink()
    out, err = run.communicate(timeout=100)

    assert run.returncode == 0, out + err
    assert (
        err.count("one does not answer: ssh: connect to host one port 22: Connection refused") == 1
    )
    assert "one answers again" in err
    assert [it.analysis.outcome for it in box.records()] == ["completed"]
    assert starts(box, "A") == 1
    landed_once(box, "main", "A")


def test_the_time_of_a_run_ends_its_waiting_for_machines(tmp_path: Path) -> None:
    """3, as always when the time is over: nothing was started, and nothing was paid."""
    box = fleet_yard(tmp_path, names=("A",))
    env = _may_be_away(box, tmp_path)
    (tmp_path / "away/one").write_text(REFUSED)
    done = box.run("--fleet", "ssh:one", "--max-time", "3s", env=env)

    assert done.code == 3, done.text
    assert "one does not answer" in done.err
    assert starts(box, "A") == 0


ENDS = {
    "nobody may log in": (255, "me@one: Permission denied (publickey).", "refused"),
    "no such name": (
        255,
        "ssh: Could not resolve hostname one: Name or service not known",
        "refused",
    ),
    "ralph is not there": (127, "sh: ralph: command not found", "refused"),
    "names are not known for now": (
        255,
        "ssh: Could not resolve hostname one: Temporary failure in name resolution",
        "lost",
    ),
    "no route": (255, "ssh: connect to host one port 22: No route to host", "lost"),
    "closed": (255, "Connection closed by 192.0.2.1 port 22", "lost"),
}


def _carried(tmp_path: Path, script: str, hosts: list[str]) -> tuple[Delivery, list[str], float]:
    """What becomes of an order of a run that is stopped after a moment, its words and how long."""
    hand = tmp_path / "ssh"
    hand.write_text(f"#!/bin/sh\n{script}\n")
    hand.chmod(0o755)
    said: list[str] = []

    async def asked() -> Delivery:
        carrier = SshCarrier(hosts, [str(hand)], ["ralph"], os.environ, said.append)
        stop = StopSignal()
        asyncio.get_running_loop().call_later(1.5, stop.request, "a person's word")
        return await asyncio.wait_for(carrier.carry(TICKET, lambda _: None, stop), 10)

    began = time.monotonic()
    delivery = asyncio.run(asked())
    return delivery, said, time.monotonic() - began


@pytest.mark.parametrize("how", some_of(ENDS, ENDS))
def test_a_refusal_is_told_from_an_outage(tmp_path: Path, how: tuple[int, str, str]) -> None:
    """Who has to be put right by a person refuses, as ever; for the others a stop is heard."""
    code, words, ends = how
    delivery, said, took = _carried(tmp_path, f"echo '{words}' >&2; exit {code}", ["one", "two"])

    assert delivery.how == ends, delivery
    assert took < 5
    assert len(said) == (2 if ends == "lost" else 0), said
    if ends == "lost":
        assert delivery.words == "a person's word"
        assert said[0] == f"warning: one does not answer: {words}; it is asked again every 10 s."


def test_another_machine_takes_what_one_that_is_away_cannot(tmp_path: Path) -> None:
    """The order goes to whoever answers, at once."""
    report = '{"machine": "two", "report": "f"}'
    script = f"test $1 = one && {{ echo no route >&2; exit 255; }}\nread ticket\necho '{report}'"
    delivery, _, took = _carried(tmp_path, script, ["one", "two"])

    assert delivery.how == "done", delivery
    assert took < 1.5


def test_a_machine_that_was_heard_is_away_whatever_becomes_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A router that starts anew knows no names: whoever has answered before is waited for."""
    monkeypatch.setattr(ssh, "_AGAIN_S", 0.1)
    unknown = "ssh: Could not resolve hostname one: Name or service not known"
    hand = tmp_path / "ssh"
    there = '{"machine": "one", "report": "f"}'
    hand.write_text(
        f"#!/bin/sh\ntest -e {tmp_path}/gone && {{ rm {tmp_path}/gone; echo {unknown} >&2; exit 255; }}\n"
        f"read ticket\necho '{there}'\n"
    )
    hand.chmod(0o755)
    said: list[str] = []

    async def asked() -> list[str]:
        carrier = SshCarrier(["one"], [str(hand)], ["ralph"], os.environ, said.append)
        first = await carrier.carry(TICKET, lambda _: None, StopSignal())
        (tmp_path / "gone").touch()
        second = await asyncio.wait_for(carrier.carry(TICKET, lambda _: None, StopSignal()), 10)
        return [first.how, second.how]

    assert asyncio.run(asked()) == ["done", "done"]
    assert len(said) == 2, said
    assert said[1] == "one answers again."
