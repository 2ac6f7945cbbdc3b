"""`ralph run --monitor`: the loop and its monitor side by side in tmux.

Inside tmux the current window is split.  Outside, a tmux server of its own is started, because a
running one would hand its panes an environment that is not ours; it ends with its last pane, and
the exit code is the loop's.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ralphloop.cli import output
from ralphloop.cli.shared.agreement import trusted_setup
from ralphloop.errors import ExitCode, UsageError
from ralphloop.loop.prepare import Options
from ralphloop.proc import programs
from ralphloop.proc.run import ourselves, run_command, run_in_front

_MONITOR = (*ourselves(), "monitor")
_LOOP = ourselves("ralphloop.cli.shared.tmux")
_ELSEWHERE = "`ralph monitor` shows the run in another terminal."


def run_beside_monitor(options: Options, arguments: Sequence[str]) -> int | None:
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


if __name__ == "__main__":
    sys.exit(loop_pane(Path(sys.argv[1]), sys.argv[2:]))
