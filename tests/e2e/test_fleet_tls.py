"""A fleet whose server is behind TLS and asks everybody for a certificate, and every way to fail there."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ralphloop.proc.run import ourselves
from tests.fleet.doors import Authority, Certificate, Door, as_header, porter, tls_door
from tests.fleet.machines import (
    Server,
    end_workers,
    eventually,
    machine,
    start_worker,
    temporal_server,
)
from tests.fleet.nights import LEASE, begun, ended, held_to_the_end, paid_yard

pytestmark = pytest.mark.e2e
AGENT = """
step()
if STORY == "A":
    (STATE / "works").write_text(HERE)
    until("go", 60)
write(f"{STORY}.txt", STORY)
done()
"""
NAMES = ("A", "B", "C")
TEAM = "team"
KEY = "artistsecrets"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, in plain text."""
    with temporal_server(tmp_path) as found:
        yield found


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Who signs for the server and its clients."""
    return Authority(tmp_path / "certificates")


@pytest.fixture
def door(server: Server, authority: Authority) -> Iterator[Door]:
    """The way into that server for those who have a certificate."""
    with tls_door(server.port, authority.certificate("server"), authority.file) as found:
        yield found


def _tls(authority: Authority, own: Certificate | None) -> dict[str, object]:
    """The settings of somebody who believes that authority and shows that certificate."""
    found: dict[str, object] = {"tls": True, "tls_ca": str(authority.file)}
    return found | ({"tls_cert": str(own.file), "tls_key": str(own.key)} if own else {})


def _own(tmp_path: Path, name: str, **settings: object) -> dict[str, str]:
    """The environment of a person with these settings of their own."""
    place = machine(tmp_path, name, **settings)
    return {"XDG_CONFIG_HOME": str(place / "config")}


def _make_namespace(server: Server, name: str) -> None:
    program = Path(ourselves()[0]).parent / "temporal"
    argv = [str(program), "operator", "namespace", "create", "-n", name]
    subprocess.run([*argv, "--address", server.address], check=True, capture_output=True)


def test_a_night_through_tls_in_a_namespace_of_its_own(
    tmp_path: Path, server: Server, authority: Authority, door: Door
) -> None:
    """Worker, run, status and drain, each with a certificate; who is in another namespace sees nobody."""
    _make_namespace(server, TEAM)
    settings = {
        name: {**_tls(authority, authority.certificate(name)), "namespace": TEAM}
        for name in ("one", "two", "person")
    }
    box = paid_yard(tmp_path, AGENT, names=NAMES)
    person = _own(tmp_path, "person", **settings["person"])
    elsewhere = _own(tmp_path, "elsewhere", **_tls(authority, authority.certificate("guest")))
    found = []
    try:
        for name in ("one", "two"):
            machine(tmp_path, name, **settings[name])
            more = f"--server {door.address}"
            found.append(start_worker(box, server, tmp_path, name, more=more))
        run = begun(box, server, "--fleet", door.address, env={**LEASE, **person})
        said = box.ralph("fleet", "status", "--server", door.address, "--json", env=person)
        others = box.ralph("fleet", "status", "--server", door.address, env=elsewhere)
        (box.state / "go").touch()
        words = ended(run)
        for worker in found:
            asked = ("fleet", "drain", worker.name, "--server", door.address)
            drained = box.ralph(*asked, env=person)
            assert drained.code == 0, drained.text
            assert worker.process.wait(30) == 0
    finally:
        for worker in found:
            worker.process.kill()
            worker.process.wait()

    assert run.returncode == 0, words
    seats = json.loads(said.out)["machines"]
    assert [it["name"] for it in seats] == ["one", "two"]
    assert any(it["works_on"] for it in seats)
    assert "no worker polls" in others.text
    held_to_the_end(box, *NAMES)
    assert door.names == {"one", "two", "person", "guest"}


Wrong = Callable[[Path, Authority, Server, Door], tuple[str, dict[str, Any]]]


def _no_certificate(
    tmp_path: Path, authority: Authority, server: Server, door: Door
) -> tuple[str, dict[str, Any]]:
    return door.address, _tls(authority, None)


def _wrong_authority(
    tmp_path: Path, authority: Authority, server: Server, door: Door
) -> tuple[str, dict[str, Any]]:
    other = Authority(tmp_path / "other", "other")
    return door.address, _tls(other, authority.certificate("me"))


def _expired(
    tmp_path: Path, authority: Authority, server: Server, door: Door
) -> tuple[str, dict[str, Any]]:
    return door.address, _tls(authority, authority.certificate("me", valid=False))


def _stranger(
    tmp_path: Path, authority: Authority, server: Server, door: Door
) -> tuple[str, dict[str, Any]]:
    other = Authority(tmp_path / "other", "other")
    return door.address, _tls(authority, other.certificate("me"))


def _plain(
    tmp_path: Path, authority: Authority, server: Server, door: Door
) -> tuple[str, dict[str, Any]]:
    return door.address, {}


def _no_tls_there(
    tmp_path: Path, authority: Authority, server: Server, door: Door
) -> tuple[str, dict[str, Any]]:
    return server.address, _tls(authority, authority.certificate("me"))


def _no_namespace(
    tmp_path: Path, authority: Authority, server: Server, door: Door
) -> tuple[str, dict[str, Any]]:
    certificate = authority.certificate("me")
    return door.address, {**_tls(authority, certificate), "namespace": "nobody-made-it"}


@pytest.mark.parametrize(
    ("wrong", "words", "code"),
    [
        (_no_certificate, "it asks this side for a certificate, and none is set", 69),
        (_wrong_authority, "its certificate is signed by an authority that is not known here", 69),
        (_expired, "me.pem, has expired", 69),
        (_stranger, "me.pem, is signed by an authority that is not known there", 69),
        (_plain, "it speaks TLS, and TLS is off here", 69),
        (_no_tls_there, "it speaks no TLS, and TLS is on here", 69),
        (_no_namespace, "has no namespace 'nobody-made-it'", 65),
    ],
    ids=lambda it: it.__name__.strip("_") if callable(it) else None,
)
def test_who_cannot_come_in_is_told_why(
    tmp_path: Path,
    server: Server,
    authority: Authority,
    door: Door,
    wrong: Wrong,
    words: str,
    code: int,
) -> None:
    """The same words from every command, at once, and nothing is started.

    All of them come in by the same door: two ways to fail are tried with each.
    """
    address, settings = wrong(tmp_path, authority, server, door)
    box = paid_yard(tmp_path, AGENT, names=NAMES)
    env = _own(tmp_path, "me", **settings)
    commands = [
        ("fleet", "status", "--server", address),
        ("fleet", "drain", "one", "--server", address),
        ("fleet", "worker", "--server", address, "--repo", "app=/nowhere"),
        ("run", "--fleet", address),
    ]
    tried = commands if wrong in (_no_certificate, _no_namespace) else commands[:1]
    for command in tried:
        _told(box.ralph(*command, env=env, timeout=45), words, code)
    assert not (box.state / "starts").exists()


def _told(done: Any, words: str, code: int) -> None:
    assert done.code == code, done.text
    assert words in done.err, done.text
    assert "next:" in done.err
    assert "tonic" not in done.text
    assert done.out == ""


def test_a_server_whose_certificate_has_expired_is_not_believed(
    tmp_path: Path, server: Server, authority: Authority
) -> None:
    """Nor is one with a certificate of another name."""
    old = authority.certificate("old", valid=False)
    env = _own(tmp_path, "me", **_tls(authority, authority.certificate("me")))
    box = paid_yard(tmp_path, AGENT, names=NAMES)
    with tls_door(server.port, old, authority.file) as door:
        done = box.ralph("fleet", "status", "--server", door.address, env=env)
    _told(done, "its certificate has expired", 69)


def test_a_key_goes_to_the_server_by_tls_alone(
    tmp_path: Path, server: Server, authority: Authority
) -> None:
    """It is sent as it is meant to be; no setting sends it in plain text."""
    box = paid_yard(tmp_path, AGENT, names=NAMES)
    settings = {"api_key": "MY_KEY", "tls_ca": str(authority.file)}
    env = {**_own(tmp_path, "me", **settings), "MY_KEY": KEY}
    with tls_door(server.port, authority.certificate("server")) as door:
        done = box.ralph("fleet", "status", "--server", door.address, env=env)
        assert done.code == 0, done.text
        assert as_header(f"Bearer {KEY}") in door.heard
    bare = {**_own(tmp_path, "bare", api_key="MY_KEY"), "MY_KEY": KEY}
    plain = box.ralph("fleet", "status", "--server", server.address, env=bare)
    _told(plain, "it speaks no TLS, and TLS is on here", 69)


def test_a_key_that_the_server_does_not_know_is_told_as_that(
    tmp_path: Path, authority: Authority
) -> None:
    """In the words of the server, and promptly."""
    box = paid_yard(tmp_path, AGENT, names=NAMES)
    settings = {"api_key": "MY_KEY", "tls_ca": str(authority.file)}
    env = {**_own(tmp_path, "me", **settings), "MY_KEY": KEY}
    certificate = authority.certificate("server")
    with porter("Request unauthorized.") as sends, tls_door(sends.port, certificate) as door:
        done = box.ralph("fleet", "status", "--server", door.address, env=env, timeout=45)
    _told(done, "it refuses this side: Request unauthorized.", 69)


def test_a_server_without_standalone_activities_is_told_as_that(tmp_path: Path) -> None:
    """Older ones have to be told to have them; no start is counted, and nobody waits."""
    off = ("--dynamic-config-value", "activity.enableStandalone=false")
    box = paid_yard(tmp_path, AGENT, names=NAMES)
    with temporal_server(tmp_path, more=off) as server:
        worker = start_worker(box, server, tmp_path, "one")
        try:
            done = box.run("--fleet", server.address, env=LEASE)
            drained = box.ralph("fleet", "drain", "one", "--server", server.address)
        finally:
            end_workers([worker])
    assert done.code == 69, done.text
    assert "the server took no order: Standalone activity is disabled" in done.text
    assert drained.code == 69, drained.text
    assert "did not ask one: Standalone activity is disabled" in drained.err


def test_a_server_that_is_away_is_told_in_words_and_data_stays_data(
    tmp_path: Path, server: Server
) -> None:
    """Run and worker say once that it is waited for, and that it answers again; nothing else is on stdout."""
    box = paid_yard(tmp_path, AGENT, names=("A",))
    worker = start_worker(box, server, tmp_path, "one")
    env = {"RALPH_FLEET_LEASE": "60s"}
    run = begun(box, server, "--json", env=env)
    server.kill()
    away = f"The Temporal server at {server.address} does not answer; it is waited for."
    try:
        _wait_for_words(worker.log, away)
        server.start()
        _wait_for_words(worker.log, f"The Temporal server at {server.address} answers again.")
        (box.state / "go").touch()
        out, err = run.communicate(timeout=150)
    finally:
        worker.process.kill()
        worker.process.wait()

    assert run.returncode == 0, out + err
    assert [json.loads(line) for line in out.splitlines()]
    assert "retried" not in err + worker.log.read_text()
    held_to_the_end(box, "A")


def _wait_for_words(log: Path, words: str) -> None:
    eventually(lambda: words in log.read_text(), 60)
