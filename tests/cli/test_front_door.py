"""The front door: help, old spellings, and the exit code of every way a command can end."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from ralphloop import __version__
from ralphloop.cli import output
from ralphloop.cli.main import COMMANDS, run, spelled_out
from ralphloop.errors import UsageError
from tests.conftest import RunRalph

TROUBLE = """
import click
from ralphloop import errors

@click.command()
@click.argument("kind")
def trouble(kind):
    if kind == "interrupt":
        raise KeyboardInterrupt
    if kind == "abort":
        raise click.Abort
    if kind == "bug":
        raise KeyError("nobody expected this")
    if kind == "file":
        raise click.FileError("notes.txt", "gone")
    if kind == "code":
        return 4
    raise getattr(errors, kind)("it went \\x1b[31mwrong\\x07", "do this")
"""


@pytest.fixture
def _trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that ends in any way one asks for."""
    (tmp_path / "trouble_command.py").write_text(TROUBLE)
    monkeypatch.setattr("ralphloop.cli.__path__", [str(tmp_path)])
    monkeypatch.setitem(COMMANDS, "trouble", ("trouble_command", "End badly"))
    monkeypatch.delitem(sys.modules, "ralphloop.cli.trouble_command", raising=False)


def test_version_is_printed(tmp_path: Path, run_ralph: RunRalph) -> None:
    """`ralph --version` names the program and its version."""
    done = run_ralph("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"ralph {__version__}\n")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_help_lists_every_command(
    arguments: list[str], tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Both help options show all commands and spend nothing."""
    done = run_ralph(*arguments, cwd=tmp_path)
    assert done.returncode == 0
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_listed_command_can_be_used(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each row of the table leads to a command that answers --help."""
    assert run([name, "--help"]) == 0
    assert f"Usage: ralph {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["conifg"], "there is no command 'conifg'\n  next: Did you mean `ralph config`?\n"),
        (["\x1b]0;title"], "there is no command"),
        (["--nope"], "No such option '--nope'"),
        (["config", "show", "--nope"], "next: ralph config show --help"),
        (["config", "show", "extra"], "unexpected extra argument"),
        (["config", "nope"], "No such command 'nope'"),
        (["stat"], "next: Did you mean `ralph status` or `ralph stats`?\n"),
        (
            ["--agent", "x", "run"],
            "next: options stand behind the command, such as: ralph run --agent",
        ),
        (["run", "-q", "-v"], "-q and -v ask for the opposite"),
        (["run", "--max-time", "8"], "8 of what? Say 8h, 8m or 8s"),
        (["run", "--max-cost", "five"], "'five' is no amount of dollars, such as 20 or $2.50"),
        (["run", "--max-iterations", "three"], "'three' is no whole number, such as 20"),
        (["--mode", "hook"], "--mode takes only: script"),
        (["--mode"], "--mode takes only: script"),
    ],
)
def test_bad_usage_is_64_on_stderr(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bad command line never ends with click's 2, which would mean "blocked"."""
    assert run(arguments) == 64
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    "old, new",
    [
        (["--mode", "script", "specs", "-v"], ["run", "specs", "-v"]),
        (["--mode=script"], ["run"]),
        (["--cb-reset"], ["circuit", "reset"]),
        (["--cb-status", "--json"], ["circuit", "status", "--json"]),
        (["run", "--cb-reset"], ["run", "--cb-reset"]),
        (["analyze", "--mode"], ["analyze", "--mode"]),
        ([], []),
    ],
)
def test_old_spellings_mean_commands(old: list[str], new: list[str]) -> None:
    """The flags of the first documents lead to their commands, only where they come first."""
    assert spelled_out(old) == new


def test_an_unknown_mode_is_refused() -> None:
    """Only script mode can be asked for on the command line."""
    with pytest.raises(UsageError):
        spelled_out(["--mode", "fast"])


@pytest.mark.usefixtures("_trouble")
@pytest.mark.parametrize(
    "kind, code",
    [
        ("UsageError", 64),
        ("InputError", 65),
        ("RepositoryError", 66),
        ("AgentUnavailable", 69),
        ("JournalError", 70),
        ("LockedError", 75),
    ],
)
def test_each_error_has_its_code_and_next_step(
    kind: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors are two calm lines on stderr, without terminal control characters."""
    assert run(["trouble", kind]) == code
    shown = capsys.readouterr()
    assert shown.err == "error: it went [31mwrong\n  next: do this\n"
    assert shown.out == ""


@pytest.mark.usefixtures("_trouble")
@pytest.mark.parametrize(
    "kind, code", [("interrupt", 130), ("abort", 130), ("file", 65), ("code", 4)]
)
def test_other_endings_keep_their_code(kind: str, code: int) -> None:
    """Ctrl+C, unreadable arguments and codes returned by a command come through."""
    assert run(["trouble", kind]) == code


@pytest.mark.usefixtures("_trouble")
def test_a_bug_is_70_with_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """An unexpected exception is one sentence and the way to the traceback."""
    assert run(["trouble", "bug"]) == 70
    shown = capsys.readouterr().err
    assert "internal error: KeyError: 'nobody expected this'" in shown
    assert "RALPH_DEBUG=1" in shown
    assert "Traceback" not in shown


@pytest.mark.usefixtures("_trouble")
def test_debugging_shows_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """RALPH_DEBUG=1 shows where the bug is, with the same exit code."""
    monkeypatch.setenv("RALPH_DEBUG", "1")
    assert run(["trouble", "bug"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    """`ralph config show | head -1` ends quietly."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "ralphloop", "config", "show"]
    done = subprocess.run(
        command, cwd=tmp_path, stdout=write_end, stderr=subprocess.PIPE, check=False, timeout=60
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (141, b"")


def test_complaints_nobody_reads_do_not_change_the_ending(tmp_path: Path) -> None:
    """The exit code is what is meant, also where its words cannot be written."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ralphloop", "stories"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=full,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stdout) == (65, b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(tmp_path: Path, closed: str) -> None:
    """Some schedulers start programs without any stream."""
    command = f'exec "$0" -m ralphloop status {closed}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("no_color, coloured", [("", True), ("1", False)])
def test_colour_only_on_a_terminal_that_wants_it(
    no_color: str, coloured: bool, tmp_path: Path
) -> None:
    """A terminal gets a red label unless NO_COLOR says otherwise."""
    master, slave = pty.openpty()
    environment = {**os.environ, "NO_COLOR": no_color, "TERM": "xterm"}
    command = [sys.executable, "-m", "ralphloop", "conifg"]
    subprocess.run(command, cwd=tmp_path, env=environment, stderr=slave, check=False, timeout=60)
    os.close(slave)
    shown = os.read(master, 4096).decode()
    os.close(master)
    assert "there is no command" in shown
    assert ("\x1b[31m" in shown) is coloured


def test_no_colour_in_a_pipe(tmp_path: Path, run_ralph: RunRalph) -> None:
    """What goes to a file or a program is plain text."""
    done = run_ralph("config", "show", cwd=tmp_path, env={"TERM": "xterm"})
    assert "[agent]" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "latin-1"])
def test_json_survives_any_stream(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON is valid JSON whatever the terminal's encoding and whatever the words."""
    value = {"name": "Größe 🎉", "odd": "\udc80"}
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding=encoding))
    output.prepare_streams()
    output.emit_json(value)
    sys.stdout.flush()
    assert json.loads(buffer.getvalue().decode(encoding)) == value


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_be_taught_the_commands(
    shell: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """The script asks ralph itself, which answers with commands and options."""
    script = run_ralph("completion", shell, cwd=tmp_path)
    assert script.returncode == 0
    assert "_RALPH_COMPLETE" in script.stdout


def test_commands_and_options_are_completed(tmp_path: Path, run_ralph: RunRalph) -> None:
    """What the shell asks in its environment is answered, and nothing else happens."""
    asked = {"_RALPH_COMPLETE": "bash_complete", "COMP_WORDS": "ralph st", "COMP_CWORD": "1"}
    done = run_ralph(cwd=tmp_path, env=asked)
    assert "plain,status" in done.stdout
    assert "plain,stories" in done.stdout
    assert "plain,run" not in done.stdout


def test_completing_behind_a_mistyped_command_is_no_error(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """A person in the middle of a line is not told off by a traceback."""
    asked = {"_RALPH_COMPLETE": "bash_complete", "COMP_WORDS": "ralph bogus ", "COMP_CWORD": "2"}
    done = run_ralph(cwd=tmp_path, env=asked)
    assert (done.returncode, done.stderr) == (0, "")
