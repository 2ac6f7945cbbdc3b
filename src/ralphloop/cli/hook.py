"""`ralph hook`: what the plugin calls.

The events of every session are answered before this module is ever imported.  Here are the commands
a person types in a session, handed over as JSON: no shell ever sees their arguments, and an answer
that needs no model costs nothing.
"""

import io
import shlex
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import click
import msgspec

from ralphloop.cli import output
from ralphloop.cli.shared.claude_commands import PREFIX, is_short_command
from ralphloop.core import readable
from ralphloop.errors import RalphError, UsageError
from ralphloop.hook.entry import EVENTS, read_input, write_answer
from ralphloop.hook.turn import Answer, refused
from ralphloop.journal.holder import read_holder
from ralphloop.proc.run import Output, ourselves, run_command
from ralphloop.project import find_project

_DETACH_TIMEOUT_S = 300.0
_TAKEN_FROM_RUN = frozenset(
    "specs_dir prd prompt resume limits__max_iterations limits__max_cost_usd limits__max_tokens"
    " limits__max_time limits__until only dry_run reset_circuit allow_dirty allow_red".split()
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
    command_name: str = ""
    command_args: str = ""
    cwd: str = ""
    session_id: str = ""
    transcript_path: str = ""

    @property
    def prefix(self) -> str:
        return self.command_name.removesuffix(self.name)

    @property
    def name(self) -> str:
        return self.command_name.rpartition(":")[2]

    @property
    def place(self) -> Path:
        return Path(self.cwd or Path.cwd())


def _answered(typed: _Typed) -> Answer | None:
    if not (typed.prefix == PREFIX or is_short_command(typed.name)):
        return None
    try:
        match typed.name:
            case "ralph":
                return _start(typed)
            case "cancel-ralph":
                return refused(_cancelled(typed.place, typed.session_id))
            case "ralph-status":
                from ralphloop.cli.status import status

                # With commands by the names they have in this session, where they have one.
                ralph = f"`/{typed.prefix}ralph"
                shown = _printed(lambda: click.Context(status).invoke(status))
                text = shown.replace("`ralph status`", f"{ralph}-status`")
                reset = "`ralph circuit reset` and `ralph run"
                text = text.replace(reset, f"{ralph} --reset-circuit").replace("`ralph run", ralph)
                holder = read_holder(find_project(typed.place).directory)
                if holder is not None and holder.session == typed.session_id:
                    text = text.replace("`ralph stop`", f"`/{typed.prefix}cancel-ralph`")
                return refused(text)
        return None
    except RalphError as error:
        return refused(f"{error.message}\n  next: {error.next_step}")
    except click.ClickException as error:
        words = f"/{typed.command_name}: {error.format_message()}"
        known = [param.opts[0] for param in _parser().params if param.opts[0].startswith("--")]
        flags = ", ".join([*known, "--mode hook|script", "--overnight"])
        return refused(f"{words}\n  next: /{typed.prefix}ralph takes {flags}")
    except Exception as error:  # noqa: BLE001 - a session must never suffer from our mistakes
        return refused(f"internal error: {type(error).__name__}: {error}")


def _start(typed: _Typed) -> Answer:
    try:
        given = iter(shlex.split(typed.command_args))
    except ValueError as error:
        raise UsageError(f"cannot read the arguments: {error}", "Close the quotation.") from None
    words = []
    mode = "hook"
    cwd = typed.place
    for word in given:
        if word == "--overnight":
            mode = "script"
        elif word == "--mode" or word.startswith("--mode="):
            mode = word.partition("=")[2] or next(given, "")
        else:
            words.append(word)
    if mode not in ("hook", "script"):
        raise UsageError(f"--mode takes hook or script, not {mode!r}", "Say --mode script.")
    if mode == "script":  # a process of its own: it outlives this session
        argv = [*ourselves(), "run", "--detach", *words]
        ended = run_command(argv, cwd=cwd, timeout_s=_DETACH_TIMEOUT_S, output=Output.TOGETHER)
        return refused(ended.said)
    import asyncio

    from ralphloop.cli.shared.dry_run import show_plan
    from ralphloop.cli.shared.run_options import options_of
    from ralphloop.hook.sessions import begin
    from ralphloop.loop.prepare import prepare

    wanted = _parser().make_context("/ralph", words).params
    if not typed.session_id:
        raise UsageError("the hook did not say which session it is", "Update Claude Code.")
    paths = {name: cwd / wanted[name] for name in ("specs_dir", "prd", "prompt") if wanted[name]}
    setup = prepare(options_of(wanted | paths, start=cwd, session=typed.session_id))
    if wanted["dry_run"]:
        return refused(_printed(lambda: show_plan(setup)))
    return asyncio.run(begin(setup, transcript=typed.transcript_path, prefix=typed.prefix))


def _parser() -> click.Command:
    from ralphloop.cli.run import run

    taken = [param for param in run.params if param.name in _TAKEN_FROM_RUN]
    return click.Command("ralph", params=taken, add_help_option=False)


def _printed(show: Callable[[], None]) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        show()
    return printed.getvalue()


def _cancelled(place: Path, session: str | None = None) -> str:
    """End the loop that this session carries; from a terminal the one of any session."""
    import asyncio

    from ralphloop.hook.sessions import release

    project = find_project(place)
    holder = read_holder(project.directory)
    if holder is None or not holder.is_lease:
        return "No loop inside a session goes on here."
    if session and session != holder.session:
        ends_it = "`ralph hook cancel` in a terminal ends it."
        return f"The loop here belongs to another session. {ends_it}"
    by = "by a person" if session else "from a terminal"
    if not asyncio.run(release(project, holder, f"cancelled {by}")):
        return "The loop was over."
    name = output.safe(holder.session)
    return f"The loop of session {name} is cancelled; --continue would go on."
