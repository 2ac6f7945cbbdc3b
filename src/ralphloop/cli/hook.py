"""`ralph hook`: what the Claude Code plugin calls.

The events of every session (stop, stop-failure, session-start, session-end) are answered before
this module is ever imported.  Here are the commands a person types in a session: Claude Code hands
them over as JSON before it expands them, so no shell ever sees their arguments, and an answer that
needs no model costs nothing.
"""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ralphloop.cli import output
from ralphloop.cli.plugin import PREFIX, is_short_command
from ralphloop.errors import RalphError, UsageError
from ralphloop.hook.answer import Answer, refused
from ralphloop.hook.entry import EVENTS, read_input, write_answer
from ralphloop.journal.holder import read_holder
from ralphloop.proc.run import Output, ourselves, run_command
from ralphloop.project import find_project

if TYPE_CHECKING:
    from ralphloop.loop.prepare import Options

_DETACH_TIMEOUT_S = 300.0
_TAKEN_FROM_RUN = frozenset(
    "specs_dir prd prompt resume max_iterations max_cost max_time only dry_run reset_circuit"
    " allow_dirty allow_red".split()
)


@click.command()
@click.argument("event")
def hook(event: str) -> None:
    """Answer a hook of a Claude Code session; its JSON comes on stdin.

    EVENT is stop, stop-failure, session-start, session-end or command.  `ralph hook cancel` ends
    the loop that a session carries here.
    """
    if event == "command":
        write_answer(_answered(read_input()))
    elif event == "cancel":
        output.emit_lines([_cancelled_from_here()])
    else:
        # A newer plugin may ask what we do not know; no session may suffer from that.
        known = ", ".join((*EVENTS, "command", "cancel"))
        output.note(f"there is no hook {event[:40]!r}; known are {known}")


def _answered(given: dict[str, Any]) -> Answer | None:
    prefix, name = _spelled(given)
    handler = _COMMANDS.get(name)
    if handler is None or not (prefix == PREFIX or is_short_command(name)):
        return None
    try:
        return handler(given)
    except RalphError as error:
        return refused(f"{error.message}\n  next: {error.next_step}")
    except click.ClickException as error:
        words = f"/{prefix}{name}: {error.format_message()}"
        return refused(f"{words}\n  next: /{prefix}ralph takes {_flags()}")
    except Exception as error:  # noqa: BLE001 - a session must never suffer from our mistakes
        return refused(f"internal error: {type(error).__name__}: {error}")


def _spelled(given: dict[str, Any]) -> tuple[str, str]:
    """What stands before the command's name as it was typed, and the name."""
    before, colon, name = str(given.get("command_name", "")).rpartition(":")
    return before + colon, name


def _start(given: dict[str, Any]) -> Answer:
    cwd = Path(str(given.get("cwd") or Path.cwd()))
    words, in_script_mode = without_mode(_split(str(given.get("command_args", ""))))
    if in_script_mode:
        return _detached(words, cwd)
    from ralphloop.hook.sessions import begin
    from ralphloop.loop.prepare import prepare

    wanted = _parser().make_context("/ralph", list(words)).params
    setup = prepare(_options(wanted, cwd, str(given.get("session_id", ""))))
    if wanted["dry_run"]:
        from ralphloop.cli.run import show_plan

        return refused(_printed(lambda: show_plan(setup, as_json=False)))
    prefix, _ = _spelled(given)
    return begin(setup, transcript=str(given.get("transcript_path", "")), prefix=prefix)


def _cancel(given: dict[str, Any]) -> Answer:
    from ralphloop.hook.sessions import release

    project = find_project(Path(str(given.get("cwd") or Path.cwd())))
    holder = read_holder(project.directory)
    if holder is None or not holder.is_lease:
        return refused("No loop goes on in this session.")
    if holder.session != given.get("session_id"):
        return refused(
            "The loop here belongs to another session. `ralph hook cancel` in a terminal ends it."
        )
    was_on = release(project, holder, "cancelled by a person")
    go_on = f"/{_spelled(given)[0]}ralph --continue"
    return refused(f"The loop is cancelled; {go_on} would go on." if was_on else "It was over.")


def _status(_: dict[str, Any]) -> Answer:
    from ralphloop.cli.status import show_status

    return refused(_printed(show_status))


_COMMANDS: dict[str, Callable[[dict[str, Any]], Answer]] = {
    "ralph": _start,
    "cancel-ralph": _cancel,
    "ralph-status": _status,
}


def without_mode(words: Sequence[str]) -> tuple[list[str], bool]:
    """The words without --mode and --overnight, and whether they ask for script mode."""
    rest, mode, given = [], "hook", iter(words)
    for word in given:
        if word == "--overnight":
            mode = "script"
        elif word == "--mode" or word.startswith("--mode="):
            mode = word.partition("=")[2] or next(given, "")
        else:
            rest.append(word)
    if mode not in ("hook", "script"):
        raise UsageError(f"--mode takes hook or script, not {mode!r}", "Say --mode script.")
    return rest, mode == "script"


def _split(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError as error:
        raise UsageError(f"cannot read the arguments: {error}", "Close the quotation.") from None


def _parser() -> click.Command:
    """The flags of `ralph run` that make sense inside a session, read the same way."""
    from ralphloop.cli.run import run

    taken = [param for param in run.params if param.name in _TAKEN_FROM_RUN]
    return click.Command("ralph", params=taken, add_help_option=False)


def _flags() -> str:
    options = [param.opts[0] for param in _parser().params if param.opts[0].startswith("--")]
    return ", ".join([*options, "--mode hook|script", "--overnight"])


def _options(wanted: dict[str, Any], cwd: Path, session: str) -> Options:
    from ralphloop.cli.run import options_of

    if not session:
        raise UsageError("the hook did not say which session it is", "Update Claude Code.")
    paths = {name: cwd / wanted[name] for name in ("specs_dir", "prd", "prompt") if wanted[name]}
    return options_of(wanted | paths, start=cwd, session=session)


def _detached(words: Sequence[str], cwd: Path) -> Answer:
    """Script mode is a process of its own: it outlives this session."""
    argv = [*ourselves(), "run", "--detach", *words]
    ended = run_command(argv, cwd=cwd, timeout_s=_DETACH_TIMEOUT_S, output=Output.TOGETHER)
    return refused(ended.said)


def _printed(show: Callable[[], None]) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        show()
    return printed.getvalue()


def _cancelled_from_here() -> str:
    from ralphloop.hook.sessions import release

    project = find_project(Path.cwd())
    holder = read_holder(project.directory)
    if holder is None or not holder.is_lease:
        return "No loop inside a session goes on here."
    release(project, holder, "cancelled from a terminal")
    return f"The loop of session {output.safe(holder.session)} is cancelled."
