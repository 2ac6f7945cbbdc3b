"""Machines with accounts of their own: a usage limit is of one account, wherever that is used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.fleet.machines import Server, eventually, machine, over_ssh, temporal_server, workers
from tests.fleet.nights import LEASE, ended, held_to_the_end, iterations, paid_yard
from tests.loop.projects import Sandbox

pytestmark = pytest.mark.e2e
# The first start on `one` meets the limit of its account; while that holds, so would every other.
AGENT = """
ACCOUNT = (STATE / f"account-{HERE}").read_text()
limit = STATE / f"limit-{ACCOUNT}"
(STATE / f"at-{NUMBER}").write_text(f"{time.time()} {HERE}")
if HERE == "one" and not limit.exists():
    limit.write_text(str(int(time.time()) + int((STATE / "long").read_text())))
if limit.exists() and time.time() < int(limit.read_text()):
    event(type="result", subtype="success", is_error=True, session_id="s-1", num_turns=1,
        result=f"Claude AI usage limit reached|{limit.read_text()}", total_cost_usd=0,
        permission_denials=[], usage={"input_tokens": 0, "output_tokens": 0})
    sys.exit(1)
step()
time.sleep(1.5)
write(f"{STORY}.txt", STORY)
done()
"""
NAMES = ("A", "B", "C")


class _At(NamedTuple):
    moment: float
    machine: str


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own."""
    with temporal_server(tmp_path) as found:
        yield found


def _site(tmp_path: Path, limit_s: int, **accounts: str) -> Sandbox:
    """Machines with these accounts; a limit resets after so many seconds."""
    box = paid_yard(tmp_path, AGENT, names=NAMES)
    (box.state / "long").write_text(str(limit_s))
    for name, account in accounts.items():
        (box.state / f"account-{name}").write_text(account)
    return box


def _seen(box: Sandbox, server: Server) -> list[dict[str, Any]]:
    """The machines that a person is shown."""
    told = box.ralph("fleet", "status", "--server", server.address, "--json")
    found: list[dict[str, Any]] = json.loads(told.out)["machines"] if told.code == 0 else []
    return found


def _started(box: Sandbox) -> list[_At]:
    found = (path.read_text().split() for path in box.state.glob("at-*"))
    return sorted(_At(float(moment), name) for moment, name in found)


def _resets_at(box: Sandbox, account: str) -> float:
    return float((box.state / f"limit-{account}").read_text())


def test_another_account_goes_on(tmp_path: Path, server: Server) -> None:
    """The limit of one account stops its machine alone; every screen says so, and when it is back."""
    box = _site(tmp_path, 90, one="work", two="home")
    with ExitStack() as stack:
        for name, account in (("one", "work"), ("two", "home")):
            stack.enter_context(workers(box, server, tmp_path, name, more=f"--account {account}"))
        eventually(lambda: len(_seen(box, server)) == 2)
        run = box.start("--fleet", server.address, env=LEASE)
        eventually(lambda: "waits until" in box.ralph("status").out or run.poll() is not None)
        status = box.ralph("status").out
        accounts = {it["name"]: it["accounts"] for it in _seen(box, server)}
        said = ended(run)

    assert run.returncode == 0, said
    resets_at = _resets_at(box, "work")
    early = [it.machine for it in _started(box) if it.moment < resets_at]
    assert early.count("one") == 1, early  # the one that met it
    assert early.count("two") >= 2, early
    assert "command (work) waits until" in status
    assert "command (home) takes over: command (work) is away until" in said
    assert accounts == {"one": {"": "work"}, "two": {"": "home"}}
    limited = [one for one in iterations(box) if one.outcome == "usage_limit"]
    assert [one.record.clocks.of_limit for one in limited] == ["command (work)"]
    held_to_the_end(box, *NAMES)


@pytest.mark.slow
def test_a_machine_that_comes_while_all_wait_goes_on(tmp_path: Path, server: Server) -> None:
    """Its account need not wait, so neither does the run."""
    box = _site(tmp_path, 300, one="work", two="home")
    with ExitStack() as stack:
        stack.enter_context(workers(box, server, tmp_path, "one", more="--account work"))
        run = box.start("--fleet", server.address, env=LEASE)
        eventually(lambda: "waiting" in box.ralph("status").out)
        stack.enter_context(workers(box, server, tmp_path, "two", more="--account home"))
        said = ended(run)

    assert run.returncode == 0, said
    resets_at = _resets_at(box, "work")
    assert all(it.moment < resets_at for it in _started(box))
    held_to_the_end(box, *NAMES)


@pytest.mark.slow
def test_one_account_is_waited_for_on_all_its_machines(tmp_path: Path, server: Server) -> None:
    """Two machines with one label: what one of them meets, the other one waits for as well."""
    box = _site(tmp_path, 10, one="team", two="team")
    with workers(box, server, tmp_path, "one", "two", more="--account team"):
        run = box.start("--fleet", server.address, env=LEASE)
        said = ended(run)

    assert run.returncode == 0, said
    limit = _resets_at(box, "team")
    first = next(it.moment for it in _started(box) if it.machine == "one")
    between = [it for it in _started(box) if first + 3 < it.moment < limit]
    assert between == []
    assert "usage limit of command (team) reached" in said
    held_to_the_end(box, *NAMES)


def test_accounts_are_told_apart_over_ssh(tmp_path: Path) -> None:
    """Without a server, too: machines say with their first word which account they have."""
    box = _site(tmp_path, 90, one="work", two="home")
    machine(tmp_path, "one", account="work")
    machine(tmp_path, "two", account="home")
    done = box.run("--fleet", "ssh:one,two", env={**over_ssh(box, tmp_path), **LEASE})

    assert done.code == 0, done.text
    early = [it.machine for it in _started(box) if it.moment < _resets_at(box, "work")]
    assert early.count("one") == 1, early
    assert early.count("two") >= 2, early
    held_to_the_end(box, *NAMES)
