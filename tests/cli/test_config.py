"""`ralph config`: the settings in force, their origins, and what is wrong with them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from tests.conftest import RunRalph


def test_show_prints_a_toml_file_with_origins(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Each line says where its value comes from, and the whole can be read back."""
    (tmp_path / "ralph.toml").write_text('[checks]\ncommands = ["pytest -q"]\n')
    done = run_ralph("config", "show", cwd=tmp_path, env={"CB_SAME_ERROR_THRESHOLD": "8"})
    assert done.returncode == 0
    shown = tomllib.loads(done.stdout)
    assert shown["checks"]["commands"] == [["pytest", "-q"]]
    assert shown["circuit"]["same_error_threshold"] == 8
    lines = [line for line in done.stdout.splitlines() if " = " in line]
    origins = {line.split(" = ")[0]: line.split("# ")[-1] for line in lines}
    assert origins["commands"] == "ralph.toml"
    assert origins["same_error_threshold"] == "environment CB_SAME_ERROR_THRESHOLD"
    assert origins["max_time"] == "default"


def test_show_as_json_gives_value_and_origin(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Programs get one object by dotted name, durations in seconds."""
    (tmp_path / "ralph.toml").write_text('[limits]\nmax_time = "1h"\n')
    done = run_ralph("config", "show", "--json", cwd=tmp_path)
    settings = json.loads(done.stdout)
    assert settings["limits.max_time"] == {"value": 3600.0, "origin": "ralph.toml"}
    assert settings["agent.name"] == {"value": "claude", "origin": "default"}


def test_show_works_from_a_directory_below(tmp_path: Path, run_ralph: RunRalph) -> None:
    """The project's file counts wherever in the project one stands."""
    (tmp_path / "ralph.toml").write_text("[limits]\nmax_attempts = 7\n")
    (tmp_path / "src").mkdir()
    done = run_ralph("config", "show", "--json", cwd=tmp_path / "src")
    assert json.loads(done.stdout)["limits.max_attempts"]["value"] == 7


def test_every_command_reads_the_user_file(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A person's own settings live in the XDG configuration directory, and count everywhere."""
    user = tmp_path / "xdg" / "ralph" / "config.toml"
    user.parent.mkdir(parents=True)
    user.write_text('[agent]\nmodel = "opus"\n[circuit]\nno_progress_threshold = 7\n')
    env = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    done = run_ralph("config", "show", "--json", cwd=tmp_path, env=env)
    assert json.loads(done.stdout)["agent.model"] == {"value": "opus", "origin": str(user)}
    assert "0 of 7" in run_ralph("circuit", "status", cwd=tmp_path, env=env).stdout


def test_show_hides_the_agents_variables(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Names are shown, values are not: they may be keys."""
    (tmp_path / "ralph.toml").write_text('[agent.env]\nKEY = "sk-secret"\n')
    for arguments in (["config", "show"], ["config", "show", "--json"]):
        done = run_ralph(*arguments, cwd=tmp_path)
        assert "KEY" in done.stdout
        assert "secret" not in done.stdout


def test_show_hides_what_of_an_address_may_be_a_secret(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Service and host are enough to know which one it is, as text and as JSON."""
    settings = '[notify]\nurls = ["tgram://123:abcdefghij/99"]\n'
    settings += 'webhook = "https://hooks.example.com/s3cret"\n'
    (tmp_path / "ralph.toml").write_text(settings)
    shown = run_ralph("config", "show", cwd=tmp_path).stdout
    assert 'urls = ["tgram://***"]' in shown
    assert 'webhook = "https://hooks.example.com/***"' in shown
    as_json = run_ralph("config", "show", "--json", cwd=tmp_path).stdout
    assert "abcdefghij" not in shown + as_json
    assert "s3cret" not in shown + as_json


def test_another_address_is_another_line_to_agree_to(tmp_path: Path, run_ralph: RunRalph) -> None:
    """What is asked hides the secret, is stored without it, and sees that it changed."""
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    project = tmp_path / "project"
    project.mkdir()

    def trust(address: str, *options: str) -> str:
        (project / "ralph.toml").write_text(f'[notify]\nurls = ["{address}"]\n')
        return run_ralph("trust", *options, cwd=project, env=state).stdout

    said = trust("tgram://123:abcdefghij/99", "--yes")
    assert 'notify.urls = ["tgram://*** (' in said
    assert "agreed to; " in trust("tgram://123:abcdefghij/99", "--show")
    assert "not agreed to yet" in trust("tgram://123:another-one/99", "--show")
    kept = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert b"tgram://***" in kept
    assert b"abcdefghij" not in kept
    assert "abcdefghij" not in said


def test_show_refuses_bad_settings(tmp_path: Path, run_ralph: RunRalph) -> None:
    """What cannot be in force is not shown as if it were."""
    (tmp_path / "ralph.toml").write_text("[limits]\nmax_iteration = 5\n")
    done = run_ralph("config", "show", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (65, "")
    assert (
        "ralph.toml: limits.max_iteration: unknown key; did you mean max_iterations?" in done.stderr
    )
    assert "\n  next: " in done.stderr


def test_validate_says_ok_and_what_was_read(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Good settings are confirmed with their sources."""
    (tmp_path / "ralph.toml").write_text("[limits]\nmax_attempts = 5\n")
    done = run_ralph("config", "validate", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("OK: 1 from ralph.toml, ")


def test_validate_names_every_problem(tmp_path: Path, run_ralph: RunRalph) -> None:
    """All problems of all sources come at once, with exit code 65."""
    (tmp_path / "ralph.toml").write_text('[limits]\nmax_time = "soon"\nmax_cost = 1\n')
    done = run_ralph("config", "validate", cwd=tmp_path, env={"RALPH_GIT_COMMIT": "always"})
    assert (done.returncode, done.stdout) == (65, "")
    assert done.stderr.count("error: ") == 3
    assert "3 problems" in done.stderr


def test_validate_as_json_lists_the_problems(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Programs get place and message, with the same exit code."""
    (tmp_path / "ralph.toml").write_text("[git]\ncommit = 1\n")
    done = run_ralph("config", "validate", "--json", cwd=tmp_path)
    assert done.returncode == 65
    assert json.loads(done.stdout) == {
        "ok": False,
        "problems": [{"place": "ralph.toml: git.commit", "message": "expected text, got 1"}],
    }


def test_control_characters_in_a_file_do_not_reach_the_terminal(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """A key may be named like an escape sequence; the message stays plain text."""
    (tmp_path / "ralph.toml").write_text('["\\u001b[2Jx"]\na = 1\n')
    done = run_ralph("config", "validate", cwd=tmp_path)
    assert done.returncode == 65
    assert "\x1b" not in done.stderr
