"""The front door: help, old spellings, and the exit code of every way a command can end."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ralphloop import __version__
from ralphloop.cli import output
from ralphloop.cli.main import COMMANDS, FIRST, OLDER, ralph, run, spelled_out
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
    (tmp_path / "trouble.py").write_text(TROUBLE)
    monkeypatch.setattr("ralphloop.cli.__path__", [str(tmp_path)])
    monkeypatch.setitem(COMMANDS, "trouble", "End badly")
    monkeypatch.delitem(sys.modules, "ralphloop.cli.trouble", raising=False)


def test_version_is_printed(tmp_path: Path, run_ralph: RunRalph) -> None:
    """`ralph --version` names the program and its version."""
    done = run_ralph("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"ralph {__version__}\n")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"]])
def test_help_fits_on_one_screen(arguments: list[str], tmp_path: Path, run_ralph: RunRalph) -> None:
    """The commands of a first night and the prompt that follows: 80 columns, 24 lines."""
    done = run_ralph(*arguments, cwd=tmp_path, env={"COLUMNS": "80"})
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    first = [name for names in FIRST.values() for name in names]
    assert len(first) == 14
    assert [name for name in COMMANDS if f"\n  {name} " in done.stdout] == [
        name for name in COMMANDS if name in first
    ]
    assert "ralph help all" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_help_all_lists_every_command(tmp_path: Path, run_ralph: RunRalph) -> None:
    """What is not on the first screen is one step away."""
    done = run_ralph("help", "all", cwd=tmp_path)
    assert done.returncode == 0
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)


def lines_of_help(command: click.Command, path: str) -> Iterator[str]:
    """Every line of a command's help at 80 columns, and of those below it."""
    context = command.make_context(path, ["--help"], resilient_parsing=True)
    context.terminal_width = 80
    yield from command.get_help(context).splitlines()
    for name, below in getattr(command, "commands", {}).items():
        yield from lines_of_help(below, f"{path} {name}")


@pytest.mark.parametrize("name", [*sorted(COMMANDS), "help all"])
def test_no_help_is_broken_or_cut_at_80_columns(
    name: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """A terminal would break a longer line inside a word; dots would hide what a command does."""
    first = run_ralph(*name.split(), "--help", cwd=tmp_path, env={"COLUMNS": "80"}).stdout
    lines = first.splitlines()
    command = ralph.get_command(click.Context(ralph), name)
    if command is not None:
        lines += lines_of_help(command, f"ralph {name}")
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if line.endswith("...") and "Usage:" not in line] == []


@pytest.mark.parametrize("no_color, coloured", [("", True), ("1", False)])
def test_help_is_bold_and_has_one_colour_on_a_terminal(
    no_color: str, coloured: bool, tmp_path: Path
) -> None:
    """Heads stand out, names have the accent; elsewhere it is plain."""
    master, slave = pty.openpty()
    environment = {**os.environ, "NO_COLOR": no_color, "TERM": "xterm"}
    command = [sys.executable, "-m", "ralphloop", "--help"]
    subprocess.run(command, cwd=tmp_path, env=environment, stdout=slave, check=False, timeout=60)
    os.close(slave)
    shown = os.read(master, 8192).decode()
    os.close(master)
    assert ("\x1b[1mSet up:" in shown) is coloured
    assert ("\x1b[36minit" in shown) is coloured
    assert set(re.findall(r"\x1b\[(\d+)m", shown)) == ({"0", "1", "36"} if coloured else set())


@pytest.mark.parametrize("name", [*sorted(COMMANDS), *OLDER])
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
        (["run", "--max-budget", "5"], "next: Did you mean --max-cost?"),
        (["run", "--budget", "5"], "next: Did you mean --max-cost?"),
        (["run", "--max-iteration", "3"], "next: Did you mean --max-iterations?"),
        (["run", "--dryrun"], "next: Did you mean --dry-run?"),
        (["run", "--parallel", "3"], "next: Did you mean --lanes?"),
        (["run", "--timeout", "3h"], "next: Did you mean --max-time?"),
        (["init", "--force"], "next: Did you mean --overwrite?"),
        (["stories", "add", "x", "--criteria", "y"], "next: Did you mean --criterion?"),
        (["run", "--colour"], "next: ralph run --help"),
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
        (["--aggregate"], ["learn", "--aggregate"]),
        (["run", "help"], ["run", "--help"]),
        (["stories", "help"], ["stories", "--help"]),
        (["note", "help"], ["note", "help"]),
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
    asked |= {"_RALPH_COMPLETE": "fish_complete", "COMP_CWORD": "sta"}
    explained = run_ralph(cwd=tmp_path, env=asked).stdout
    assert "stats\tAll numbers, and whether learning helps" in explained  # with its comma
    assert 'string split --max 1 ","' in run_ralph("completion", "fish", cwd=tmp_path).stdout


def test_completing_behind_a_mistyped_command_is_no_error(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """A person in the middle of a line is not told off by a traceback."""
    asked = {"_RALPH_COMPLETE": "bash_complete", "COMP_WORDS": "ralph bogus ", "COMP_CWORD": "2"}
    done = run_ralph(cwd=tmp_path, env=asked)
    assert (done.returncode, done.stderr) == (0, "")
