"""What a real Temporal server keeps of a night whose machines have a key, and what it costs to lack it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio import activity
from temporalio.client import ActivityFailureError, Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from ralphloop.config.model import FleetSection
from ralphloop.fleet import temporal
from ralphloop.fleet.keys import make_key
from tests.fleet.machines import (
    Server,
    end_workers,
    eventually,
    start_worker,
    temporal_server,
    workers,
)
from tests.fleet.nights import LEASE, begun, ended, held_to_the_end, paid_yard
from tests.lanes.yards import starts
from tests.loop.projects import Sandbox

pytestmark = pytest.mark.e2e
SECRET = "plugh-xyzzy"
# A says something that its beats carry, and is at work until it is told to go on.
AGENT = f"""
step()
event(type="assistant", session_id="s-1", parent_tool_use_id=None, message={{
    "id": "m-s", "role": "assistant", "model": "made-up-9",
    "content": [{{"type": "text", "text": "{SECRET}"}}],
    "usage": {{"input_tokens": 0, "output_tokens": 0}}}})
if STORY == "A":
    (STATE / "works").write_text(HERE)
    until("go", 60)
write(f"{{STORY}}.txt", STORY)
done()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own."""
    with temporal_server(tmp_path) as found:
        yield found


def _key(path: Path, *, add: bool = False) -> dict[str, str]:
    """The environment of somebody who has a key in that file."""
    make_key(path, add=add)
    return {"RALPH_FLEET_CODEC_KEY_FILE": str(path)}


def _plain(words: str) -> str:
    """The same without the ends of lines."""
    return " ".join(words.split())


def _where(box: Sandbox, name: str) -> str:
    return (box.state / f"where-{name}-1").read_text().split()[0]


def _kept(server: Server) -> bytes:
    """Every byte that the server has written."""
    server.kill()
    return b"".join(it.read_bytes() for it in server.place.glob("temporal.db*"))


@pytest.mark.parametrize("is_encrypted", [True, False], ids=["with a key", "without"])
def test_the_server_keeps_no_word_of_a_ticket_or_a_beat(
    tmp_path: Path, server: Server, *, is_encrypted: bool
) -> None:
    """With a key none of it is in its database, which has all of it without one."""
    key = _key(tmp_path / "fleet.key") if is_encrypted else {}
    box = paid_yard(tmp_path, AGENT, names=("A", "B"))
    with workers(box, server, tmp_path, "one", "two", more_env=key):
        run = begun(box, server, "--json", env={**LEASE, **key})

        def is_told() -> bool:
            said = box.ralph("fleet", "status", "--server", server.address, env=key)
            return "(agent)" in said.out

        eventually(is_told)
        order = box.git("ls-remote", "origin", "refs/ralph/orders/*/1").split()[0]
        (box.state / "go").touch()
        said = ended(run)

    assert run.returncode == 0, said
    assert SECRET in said  # the step came by a beat and was shown
    held_to_the_end(box, "A", "B")
    kept = _kept(server)
    assert (SECRET.encode() not in kept) is is_encrypted
    assert (order.encode() not in kept) is is_encrypted
    assert (b"binary/ralph-aes-gcm" in kept) is is_encrypted


def test_a_machine_without_the_key_refuses_and_the_others_do_the_work(
    tmp_path: Path, server: Server
) -> None:
    """It says so where it is, in the run and in the status; no start is lost by it."""
    key = _key(tmp_path / "fleet.key")
    other = _key(tmp_path / "other.key")
    names = ("B", "C", "D")
    box = paid_yard(tmp_path, AGENT, names=names)
    found = [
        start_worker(box, server, tmp_path, "good", env=key),
        start_worker(box, server, tmp_path, "bare"),
        start_worker(box, server, tmp_path, "wrong", env=other),
    ]

    def are_all_seen() -> bool:
        """A worker has begun a moment before the server knows it."""
        said = box.ralph("fleet", "status", "--server", server.address, env=key)
        return all(it.name in said.out for it in found)

    try:
        eventually(are_all_seen)
        done = box.run("--fleet", server.address, "--lanes", "3", env={**LEASE, **key})
        said = box.ralph("fleet", "status", "--server", server.address, env=key)
    finally:
        end_workers(found)

    assert done.code == 0, done.text
    assert "bare has no key" in done.text
    assert "wrong does not have the key" in done.text
    assert "bare has no key" in _plain(said.out)
    assert "wrong does not have the key" in _plain(said.out)
    refused = [it.log.read_text() for it in found[1:] if "cannot read" in it.log.read_text()]
    assert all("Traceback" not in it.log.read_text() for it in found)
    assert refused
    assert {_where(box, name) for name in names} == {"good"}
    assert [starts(box, name) for name in names] == [1, 1, 1]
    held_to_the_end(box, *names)


@pytest.mark.parametrize("has_lanes", [False, True], ids=["at once", "by its refusals"])
def test_a_run_that_nobody_can_read_ends_with_words(
    tmp_path: Path, server: Server, *, has_lanes: bool
) -> None:
    """Without the key of the workers nothing starts, hangs or is shown as a stack trace."""
    key = _key(tmp_path / "fleet.key")
    box = paid_yard(tmp_path, AGENT, names=("A",))
    arguments = ["--lanes", "1"] if has_lanes else []
    with workers(box, server, tmp_path, "one", more_env=key) as found:
        done = box.run("--fleet", server.address, *arguments, env=LEASE)
        said = box.ralph("fleet", "status", "--server", server.address)
        drain = box.ralph("fleet", "drain", "one", "--server", server.address)
        is_there = found["one"].process.poll() is None
        drained = box.ralph("fleet", "drain", "one", "--server", server.address, env=key)
        found["one"].process.wait(30)

    assert done.code == 64, done.text
    assert "one encrypts with the key" in done.text
    assert "codec_key_file" in done.text
    assert "one encrypts with the key" in _plain(said.out)
    assert drain.code == 64, drain.text
    assert "one refused: who asks has to have its key" in drain.text
    assert is_there
    assert drained.code == 0, drained.text
    assert "Traceback" not in done.text + drain.text + found["one"].log.read_text()
    assert starts(box, "A") == 0


def test_keys_are_exchanged_while_machines_are_at_work(tmp_path: Path, server: Server) -> None:
    """One has the new key first, the other last: both read all of it, and the night goes on."""
    old = tmp_path / "old.key"
    env = _key(old)
    both = tmp_path / "both.key"
    both.write_bytes(old.read_bytes())
    both.chmod(0o600)
    make_key(both, add=True)
    new_first = tmp_path / "new-first.key"
    new_first.touch(0o600)
    new_first.write_text("".join(reversed(both.read_text().splitlines(keepends=True))))
    before = {"RALPH_FLEET_CODEC_KEY_FILE": str(both)}
    after = {"RALPH_FLEET_CODEC_KEY_FILE": str(new_first)}
    names = ("A", "B", "C")
    box = paid_yard(tmp_path, AGENT, names=names)
    found = [
        start_worker(box, server, tmp_path, "one", env=before),
        start_worker(box, server, tmp_path, "two", env=after),
        start_worker(box, server, tmp_path, "late", env=env),
    ]
    try:
        run = begun(box, server, env={**LEASE, **before})
        run.kill()
        run.communicate()
        (box.state / "go").touch()
        done = box.run("--continue", env={**LEASE, **after})
    finally:
        end_workers(found)

    assert done.code == 0, done.text
    assert "late does not have the key" in done.text
    assert [starts(box, name) for name in names] == [1, 1, 1]
    held_to_the_end(box, *names)


def test_the_words_of_a_failure_are_encrypted_on_the_server(tmp_path: Path, server: Server) -> None:
    """What an activity raises can be read by whoever has the key, and by nobody else."""
    path = tmp_path / "fleet.key"
    make_key(path, add=False)
    section = FleetSection(codec_key_file=str(path))

    @activity.defn(name="fails")
    async def fails() -> None:
        activity.heartbeat(SECRET)
        raise ApplicationError(SECRET, SECRET, non_retryable=True)

    async def asked(client: Client) -> str:
        handle = await client.start_activity(
            "fails", id="f", task_queue="q", start_to_close_timeout=timedelta(seconds=20)
        )
        with pytest.raises(ActivityFailureError) as failed:
            await handle.result()
        return str(failed.value.cause)

    async def all_of_it() -> str:
        client = await temporal.connect(server.address, section, {})
        async with Worker(client, task_queue="q", activities=[fails]):
            return await asked(client)

    assert SECRET in asyncio.run(all_of_it())
    kept = _kept(server)
    assert b"Encoded failure" in kept
    assert SECRET.encode() not in kept
