"""A run on a live screen: `ralph monitor`; and somewhere else than in this terminal: `ralph run
--monitor` and `--detach`.

Inside tmux the current window is split.  Outside, a tmux server of its own is started, because a
running one would hand its panes an environment that is not ours; it ends with its last pane, and
the exit code is the loop's.  Detached, the run survives terminal, SSH and agent session.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.cli.config import trusted_setup
from ralphloop.errors import ExitCode, JournalError, UsageError
from ralphloop.loop.prepare import Options
from ralphloop.night.look import find_run, holder_of, reading
from ralphloop.proc import programs
from ralphloop.proc.run import ourselves, run_command, run_in_front, spawn
from ralphloop.project import find_project
from ralphloop.repo.private_git import make_directory
from ralphloop.room import own_opener, read_regular

_ONLY_ASCII = ("linux", "dumb", "vt100", "vt220")
_MONITOR = (*ourselves(), "monitor")
_LOOP = ourselves("ralphloop.cli.elsewhere")
_PATIENCE_S = 20.0
_STEP_S = 0.1
_ELSEWHERE = "`ralph monitor` shows the run in another terminal."


@click.command()
@click.argument("run", required=False)
@click.option("--theme", type=click.Choice(["dark", "light"]), default="dark", help="How it looks.")
@click.option("--ascii", "in_ascii", is_flag=True, help="Draw with ASCII only.")
@click.option("--once", is_flag=True, help="Print the screen as text and end.")
def monitor(run: str | None, theme: str, in_ascii: bool, once: bool) -> None:
    """Watch and steer the run of this project, or look at an earlier RUN.

    Works beside a run in another terminal, over SSH, after a run, and without one.  Where the
    terminal cannot draw, the screen is printed once as text.
    """
    project = find_project()
    if run is not None:
        with reading(project) as journal:
            found = find_run(journal, run)
        run = found.id if found else None
    in_ascii = (
        in_ascii
        or os.environ.get("TERM") in _ONLY_ASCII
        or os.environ.get("LC_ALL") in ("C", "POSIX")  # where Python speaks UTF-8 nevertheless
        or not output.speaks_unicode(sys.stdout)
    )
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if once or not terminal or os.environ.get("TERM", "") in ("", "dumb"):
        from ralphloop.ui.monitor.moments import Source
        from ralphloop.ui.monitor.paint import plain_ascii
        from ralphloop.ui.monitor.panels import Screen

        with closing(Source(project, run=run)) as source:
            facts = source.poll()
        if facts is None:
            return
        if facts.trouble:
            raise JournalError(facts.trouble, facts.way_out)
        width = shutil.get_terminal_size((100, 24)).columns
        lines = Screen(facts, time.time()).as_text(width)
        output.emit_lines(plain_ascii(line) if in_ascii else line for line in lines)
    else:
        from ralphloop.ui.monitor.app import Monitor

        Monitor(project, run=run, in_ascii=in_ascii, dark=theme == "dark").run()


def open_monitor(options: Options, arguments: Sequence[str]) -> int | None:
    """Put the monitor beside the loop; None where the loop goes on right here."""
    tmux = programs.find("tmux", options.env.get("PATH"))
    if tmux is None:
        step = f"apt install tmux, or brew install tmux. Or leave out --monitor: {_ELSEWHERE}"
        raise UsageError("tmux is not installed, so the screen cannot be split", step)
    trusted_setup(options)  # what is wrong with the call is told here, not in a pane
    where = ("-c", str(options.start))
    if options.env.get("TMUX"):
        pane = options.env.get("TMUX_PANE", "")
        target = ("-t", pane) if pane else ()
        ended = run_command((tmux, "split-window", "-h", "-d", *target, *where, *_MONITOR))
        if ended.returncode:
            output.warn(f"tmux cannot split this window: {ended.said}. {_ELSEWHERE}")
        return None
    rest = [argument for argument in arguments if argument != "--monitor"]
    server = (tmux, "-L", f"ralph-{os.getpid()}")
    shown = sys.stdin.isatty() and sys.stdout.isatty()
    # These two would be this terminal's size for every program in a pane.
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with tempfile.TemporaryDirectory(prefix="ralph-tmux-") as place:
        code = Path(place) / "code"
        session = ("new-session", *(() if shown else ("-d",)), *where, *_LOOP, str(code), *rest)
        split = (";", "split-window", "-h", *where, *_MONITOR)
        failed = run_in_front((*server, *session, *split), env=env)
        if run_command((*server, "has-session")).returncode == 0:
            why = "The run" if shown else "There is no terminal to show it in; the run"
            back = " ".join((*server, "attach"))
            output.note(f"{why} goes on in tmux. Come back to it with: {back}")
            return ExitCode.COMPLETE
        if failed and not code.exists():
            raise UsageError("tmux could not show the run", f"Leave out --monitor: {_ELSEWHERE}")
        return int(code.read_text()) if code.exists() else ExitCode.INTERRUPTED


def loop_pane(code: Path, arguments: Sequence[str]) -> int:
    """Run the loop in its pane; its last words stay until somebody has read them."""
    from ralphloop.cli.main import run

    ended = run(arguments)
    with suppress(OSError):  # whoever waited for it has detached
        code.write_text(str(int(ended)))
    if sys.stdin.isatty():
        output.note(f"\nThe run has ended (exit code {int(ended)}). Enter closes this pane.")
        sys.stdin.readline()
    return ended


def detach(options: Options, arguments: Sequence[str]) -> int:
    """Start the same command in the background; wait until it holds the project or ended."""
    project = trusted_setup(options).project
    make_directory(project.directory)
    argv = [*ourselves(), *(a for a in arguments if a != "--detach")]
    with open(project.log, "ab", opener=own_opener) as log:
        start = log.tell()
        env = {**options.env, "PYTHONUNBUFFERED": "1"}
        child = spawn(argv, cwd=options.start, env=env, stdout=log, stderr=log)
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        code = child.poll()
        if code is not None:
            output.note(read_regular(project.log)[start:].decode("utf-8", "replace").rstrip())
            return code
        holder = holder_of(project, time.time())
        if holder is not None and holder.pid == child.pid:
            break
        time.sleep(_STEP_S)
    where = f"Running in the background as process {child.pid}; log: {os.fspath(project.log)}"
    output.emit_lines([where, "Follow it: ralph status, ralph log -f.  Stop it: ralph stop"])
    return ExitCode.COMPLETE


if __name__ == "__main__":
    sys.exit(loop_pane(Path(sys.argv[1]), sys.argv[2:]))
