"""What Temporal's client is told of the settings."""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.service import TLSConfig

from ralphloop.config.load import load_config
from ralphloop.errors import AgentUnavailable, InputError
from ralphloop.fleet import reaching, temporal
from tests.fleet.doors import Authority


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the client was asked to connect with."""
    found = dict[str, Any]()

    async def connect(server: str, **options: Any) -> object:
        found.update(options, server=server)
        found["keys"] = found.pop("data_converter").payload_codec.ids
        del found["runtime"]
        return object()

    async def nothing(client: object, server: str) -> None:
        """The namespace is there."""

    monkeypatch.setattr(Client, "connect", connect)
    monkeypatch.setattr(temporal, "_find_namespace", nothing)
    return found


def _connect(tmp_path: Path, lines: str, env: dict[str, str]) -> None:
    (tmp_path / "ralph.toml").write_text(f"[fleet]\n{lines}\n")
    section = load_config(tmp_path, env=env).config.fleet
    asyncio.run(temporal.connect("temporal.lan:7233", section, env))


def test_nothing_set_is_a_plain_connection(tmp_path: Path, told: dict[str, Any]) -> None:
    """The default namespace, no TLS, no key."""
    _connect(tmp_path, "", {})
    assert told == {
        "server": "temporal.lan:7233", "namespace": "default", "tls": False, "api_key": None,
        "keys": (),
    }  # fmt: skip


def test_certificates_of_files_and_a_namespace_reach_the_client(
    tmp_path: Path, told: dict[str, Any]
) -> None:
    """mTLS: the authority, the certificate and its key, by the bytes of the files."""
    authority = Authority(tmp_path)
    own = authority.certificate("me")
    files = {"ca": authority.file, "cert": own.file, "key": own.key}
    lines = [f'tls_{name} = "{path}"' for name, path in files.items()]
    _connect(tmp_path, "\n".join([*lines, 'namespace = "team.abc"']), {})
    assert told["namespace"] == "team.abc"
    assert told["tls"] == TLSConfig(
        server_root_ca_cert=authority.file.read_bytes(),
        client_cert=own.file.read_bytes(),
        client_private_key=own.key.read_bytes(),
    )


def test_a_key_comes_from_the_variable_that_is_named(tmp_path: Path, told: dict[str, Any]) -> None:
    """Temporal Cloud: TLS with the usual authorities, and an API key that no file holds."""
    _connect(tmp_path, 'tls = true\napi_key = "MY_KEY"', {"MY_KEY": "k-123"})
    assert told["tls"] is True
    assert told["api_key"] == "k-123"


def test_a_key_is_never_sent_in_plain_text(tmp_path: Path, told: dict[str, Any]) -> None:
    """As Temporal's own client does it, a key alone means TLS."""
    _connect(tmp_path, 'api_key = "MY_KEY"', {"MY_KEY": "k-123"})
    assert told["tls"] is True


def test_settings_by_environment_reach_the_client(tmp_path: Path, told: dict[str, Any]) -> None:
    """A worker's unit may set them as variables."""
    env = {"RALPH_FLEET_NAMESPACE": "other", "RALPH_FLEET_TLS": "true"}
    _connect(tmp_path, "", env)
    assert told["namespace"] == "other"
    assert told["tls"] is True


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('api_key = "MY_KEY"', "the variable MY_KEY is not set"),
        ('tls_ca = "/nowhere/ca.pem"', "/nowhere/ca.pem: No such file"),
        ('tls_ca = "{here}/words"', "/words holds no certificate"),
        ('tls_cert = "{here}/me.pem"', "a certificate needs its key"),
        ('tls_key = "{here}/me.key"', "a certificate needs its key"),
        ('tls_cert = "{here}/me.pem"\ntls_key = "{here}/you.key"', "is not the key of"),
        ('tls_cert = "{here}/words"\ntls_key = "{here}/me.key"', "are no certificate and its key"),
    ],
)
def test_what_is_missing_is_named(
    tmp_path: Path, told: dict[str, Any], line: str, words: str
) -> None:
    """Nobody connects without what was asked for, or with files that cannot work."""
    authority = Authority(tmp_path)
    authority.certificate("me")
    authority.certificate("you")
    (tmp_path / "words").write_text("no certificate\n")
    with pytest.raises(InputError, match=re.escape(words)):
        _connect(tmp_path, line.replace("{here}", str(tmp_path)), {})
    assert told == {}


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The real client against a port that nobody listens on."""
    section = load_config(tmp_path, env={}).config.fleet
    with pytest.raises(AgentUnavailable, match=r"no Temporal server answers at 127\.0\.0\.1:1"):
        asyncio.run(temporal.connect("127.0.0.1:1", section, {}))


def test_a_server_that_says_nothing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody listens and never answers, by TLS or without: that is told, and nobody waits for ever."""
    monkeypatch.setattr(temporal, "_CONNECT_S", 1.0)
    monkeypatch.setattr(reaching, "_TRY_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for tls in ("false", "true"):
            (tmp_path / "ralph.toml").write_text(f"[fleet]\ntls = {tls}\n")
            section = load_config(tmp_path, env={}).config.fleet
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            with pytest.raises(AgentUnavailable, match="it does not answer"):
                asyncio.run(temporal.connect(address, section, {}))


def test_an_address_without_a_port_is_told_as_that(tmp_path: Path) -> None:
    """The library would take one that nobody meant."""
    section = load_config(tmp_path, env={}).config.fleet
    with pytest.raises(InputError, match=r"'temporal\.lan' is not HOST:PORT"):
        asyncio.run(temporal.connect("temporal.lan", section, {}))
