"""The files that the guide of a fleet gives to a team: they fit together, and to what ralph does."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ralphloop.config.load import load_config
from ralphloop.errors import ExitCode
from tests.conftest import RunRalph

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "fleet.md"
_UNIT = re.compile(r"```ini\n(.*?)```", re.S)


def _compose() -> dict[str, Any]:
    (block,) = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.S)
    found: dict[str, Any] = YAML(typ="safe").load(block)
    return found


def _unit() -> str:
    (found,) = _UNIT.findall(GUIDE.read_text())
    return str(found)


def test_one_password_one_version_and_nothing_open_that_need_not_be() -> None:
    """Server and tools are of one version, all know the same password, the page is for this host."""
    services = _compose()["services"]
    said = [
        services["postgres"]["environment"]["POSTGRES_PASSWORD"],
        services["schema"]["environment"]["SQL_PASSWORD"],
        services["temporal"]["environment"]["POSTGRES_PWD"],
    ]
    assert len(set(said)) == 1
    images = {name: it["image"].rpartition(":") for name, it in services.items()}
    assert all(tag for _, _, tag in images.values()), "every image says its version"
    ours = {images[name][2] for name in ("schema", "temporal", "namespace")}
    assert len(ours) == 1
    assert services["ui"]["ports"] == ["127.0.0.1:8080:8080"]
    opened = {name for name, it in services.items() if "ports" in it}
    assert opened == {"temporal", "ui"}


def test_what_starts_waits_for_what_it_needs() -> None:
    """Database, its tables, server, namespace: each is waited for, and each of those can be told."""
    compose = _compose()
    services = compose["services"]
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[needed], (name, needed)
    assert set(services["temporal"]["depends_on"]) == {"schema"}
    assert set(services["schema"]["depends_on"]) == {"postgres"}
    named = {it.partition(":")[0] for it in services["postgres"]["volumes"]}
    assert named == set(compose["volumes"])


def test_the_server_has_standalone_activities() -> None:
    """The file it reads them from is the one that is put there, and can be read itself."""
    compose = _compose()
    server = compose["services"]["temporal"]
    (mounted,) = server["configs"]
    assert mounted["target"] == server["environment"]["DYNAMIC_CONFIG_FILE_PATH"]
    content = compose["configs"][mounted["source"]]["content"]
    assert YAML(typ="safe").load(content)["activity.enableStandalone"] == [{"value": True}]


@pytest.mark.parametrize("database", ["temporal", "temporal_visibility"])
def test_both_databases_get_their_tables(tmp_path: Path, database: str) -> None:
    """The script, as compose hands it on, with a stand-in for the tool."""
    (script,) = _compose()["services"]["schema"]["command"]
    tool = tmp_path / "temporal-sql-tool"
    tool.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/said\n')
    tool.chmod(0o755)
    argv = ["sh", "-euc", script.replace("$$", "$")]
    subprocess.run(argv, check=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    kind = database.removeprefix("temporal_")
    said = [it for it in (tmp_path / "said").read_text().splitlines() if f"--db {database} " in it]
    assert said == [
        f"--db {database} create",
        f"--db {database} setup-schema -v 0.0",
        f"--db {database} update-schema -d /etc/temporal/schema/postgresql/v12/{kind}/versioned",
    ]


def test_the_unit_says_what_a_worker_needs(tmp_path: Path, run_ralph: RunRalph) -> None:
    """It is started with a session, not again after a drain, and with options that there are."""
    lines = [line for line in _unit().splitlines() if line and not line.startswith("#")]
    assert not [line for line in lines if " #" in line], "systemd has no comments behind a line"
    assert "WantedBy=default.target" in lines  # without it, enabling does nothing
    assert "Restart=on-failure" in lines
    codes = f"RestartPreventExitStatus={ExitCode.USAGE:d} {ExitCode.BAD_INPUT:d}"
    assert codes in lines
    (start,) = (line for line in lines if line.startswith("ExecStart="))
    known = run_ralph("fleet", "worker", "--help", cwd=tmp_path).stdout
    options = [word for word in shlex.split(start) if word.startswith("--")]
    assert options == ["--server", "--repo"]
    assert all(word in known for word in options)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    """Every line is one that it knows."""
    unit = tmp_path / "ralph-worker.service"
    unit.write_text(_unit().replace("ExecStart=%h/.local/bin/ralph", f"ExecStart={sys.executable}"))
    argv = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    said = [line for line in done.stderr.splitlines() if unit.name in line]
    assert said == []


def test_every_setting_of_the_guide_is_one(tmp_path: Path) -> None:
    """What it has people write below [fleet] is understood."""
    blocks = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.S)
    assert blocks
    for block in blocks:
        assert set(tomllib.loads(block)) == {"fleet"}
        (tmp_path / "ralph.toml").write_text(block)
        load_config(tmp_path, env={})
