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

import click
import msgspec

from ralphloop.cli import output
from ralphloop.cli.plugin import PREFIX, is_short_command
from ralphloop.core import readable
from ralphloop.errors import RalphError, UsageError
from ralphloop.hook.answer import Answer, refused
from ralphloop.hook.entry import EVENTS, read_input, write_answer
from ralphloop.journal.holder import read_holder
from ralphloop.proc.run import Output, ourselves, run_command
from ralphloop.project import find_project

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
        write_answer(_answered(readable(read_input(), _Typed)))
    elif event == "cancel":
        output.emit_lines([_cancelled(Path.cwd())])
    else:
        # A newer plugin may ask what we do not know; no session may suffer from that.
        known = ", ".join((*EVENTS, "command", "cancel"))
        output.note(f"there is no hook {event[:40]!r}; known are {known}")


class _Typed(msgspec.Struct, frozen=True):
    """A command as it was typed in a session."""

    command_name: str = ""
    command_args: str = ""
    cwd: str = ""
    session_id: str = ""
    transcript_path: str = ""

    @property
    def prefix(self) -> str:
        """What stands before the command's name."""
        return self.command_name.removesuffix(self.name)

    @property
    def name(self) -> str:
        return self.command_name.rpartition(":")[2]

    @property
    def place(self) -> Path:
        return Path(self.cwd or Path.cwd())


def _answered(typed: _Typed) -> Answer | None:
    handler = _COMMANDS.get(typed.name)
    if handler is None or not (typed.prefix == PREFIX or is_short_command(typed.name)):
        return None
    try:
        return handler(typed)
    except RalphError as error:
        return refused(f"{error.message}\n  next: {error.next_step}")
    except click.ClickException as error:
        words = f"/{typed.command_name}: {error.format_message()}"
        return refused(f"{words}\n  next: /{typed.prefix}ralph takes {_flags()}")
    except Exception as error:  # noqa: BLE001 - a session must never suffer from our mistakes
        return refused(f"internal error: {type(error).__name__}: {error}")


def _start(typed: _Typed) -> Answer:
    try:
        words, in_script_mode = without_mode(shlex.split(typed.command_args))
    except ValueError as error:
        raise UsageError(f"cannot read the arguments: {error}", "Close the quotation.") from None
    cwd = typed.place
    if in_script_mode:  # a process of its own: it outlives this session
        argv = [*ourselves(), "run", "--detach", *words]
        ended = run_command(argv, cwd=cwd, timeout_s=_DETACH_TIMEOUT_S, output=Output.TOGETHER)
        return refused(ended.said)
    from ralphloop.cli.run import options_of, show_plan
    from ralphloop.hook.sessions import begin
    from ralphloop.loop.prepare import prepare

    wanted = _parser().make_context("/ralph", words).params
    if not typed.session_id:
        raise UsageError("the hook did not say which session it is", "Update Claude Code.")
    paths = {name: cwd / wanted[name] for name in ("specs_dir", "prd", "prompt") if wanted[name]}
    setup = prepare(options_of(wanted | paths, start=cwd, session=typed.session_id))
    if wanted["dry_run"]:
        return refused(_printed(lambda: show_plan(setup, as_json=False)))
    return begin(setup, transcript=typed.transcript_path, prefix=typed.prefix)


def _cancel(typed: _Typed) -> Answer:
    return refused(_cancelled(typed.place, typed.session_id))


def _status(_: _Typed) -> Answer:
    from ralphloop.cli.status import show_status

    return refused(_printed(show_status))


_COMMANDS: dict[str, Callable[[_Typed], Answer]] = {
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


def _parser() -> click.Command:
    """The flags of `ralph run` that make sense inside a session, read the same way."""
    from ralphloop.cli.run import run

    taken = [param for param in run.params if param.name in _TAKEN_FROM_RUN]
    return click.Command("ralph", params=taken, add_help_option=False)


def _flags() -> str:
    options = [param.opts[0] for param in _parser().params if param.opts[0].startswith("--")]
    return ", ".join([*options, "--mode hook|script", "--overnight"])


def _printed(show: Callable[[], None]) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        show()
    return printed.getvalue()


def _cancelled(place: Path, session: str | None = None) -> str:
    """End the loop that this session carries; from a terminal the one of any session."""
    from ralphloop.hook.sessions import release

    project = find_project(place)
    holder = read_holder(project.directory)
    if holder is None or not holder.is_lease:
        return "No loop inside a session goes on here."
    if session and session != holder.session:
        return (
            "The loop here belongs to another session. `ralph hook cancel` in a terminal ends it."
        )
    by = "by a person" if session else "from a terminal"
    if not release(project, holder, f"cancelled {by}"):
        return "The loop was over."
    name = output.safe(holder.session)
    return f"The loop of session {name} is cancelled; --continue would go on."
