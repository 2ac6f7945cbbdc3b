"""`ralph plugin` puts the plugin where Claude Code can use it; `ralph hook` is what that calls.

The plugin in the package calls the `ralph` on PATH.  A copy made here calls the one that made it by
its full path, so it also works from a virtual environment and with spaces in the path: hooks are
argument lists, never a line for a shell.

The events of every session are answered before this module is ever imported.  Here are the commands
a person types in a session, handed over as JSON: no shell ever sees their arguments, and an answer
that needs no model costs nothing.
"""

import io
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from importlib.resources import as_file, files
from pathlib import Path

import click
import msgspec

from ralphloop import __version__
from ralphloop.atomic import write_atomic
from ralphloop.cli import output
from ralphloop.core import readable
from ralphloop.errors import AgentUnavailable, RalphError, UsageError
from ralphloop.hook.entry import EVENTS, read_input, write_answer
from ralphloop.hook.turn import Answer, refused
from ralphloop.journal.holder import read_holder
from ralphloop.proc import programs
from ralphloop.proc.run import Output, ourselves, run_command
from ralphloop.project import find_project

PREFIX = "ralph:"
_NAME = "ralph@ralph"
_COMMANDS = Path("commands")
_WRITTEN_BY_US = b"<!-- written by `ralph plugin install` -->"
_HOOKS = Path("hooks/hooks.json")
_MANIFEST = Path(".claude-plugin/plugin.json")
_TIMEOUT_S = 120.0
_DETACH_TIMEOUT_S = 300.0
_TAKEN_FROM_RUN = frozenset(
    "specs_dir prd prompt resume limits__max_iterations limits__max_cost_usd limits__max_tokens"
    " limits__max_time limits__until only dry_run reset_circuit allow_dirty allow_red".split()
)


@click.group()
def plugin() -> None:
    """Use ralph inside Claude Code: /ralph, /ralph-plan, /cancel-ralph, /ralph-status."""


@plugin.command()
def path() -> str:
    """Print the plugin's directory, for `claude --plugin-dir`."""
    return str(_made())


@plugin.command()
def install() -> None:
    """Add the plugin to Claude Code, for you, in every project."""
    place = _made()
    taken = list[str]()
    _tell_claude(["plugin", "marketplace", "add", str(place)], ["plugin", "install", _NAME])
    for file in sorted((place / _COMMANDS).glob("*.md")):  # which get their short names, too
        short = _claude_home() / _COMMANDS / file.name
        if short.exists() and not is_short_command(file.stem):
            taken.append(f"/{file.stem}")
            continue
        write_atomic(short, file.read_bytes() + b"\n" + _WRITTEN_BY_US + b"\n", parents=True)
    ralph = f"/{PREFIX}ralph" if "/ralph" in taken else "/ralph"
    output.emit_lines([f"Installed. In a new session: {ralph} --dry-run, then {ralph} ({place})"])
    if taken:
        output.note(f"{', '.join(taken)} of your own stay yours; ours begin with /{PREFIX}")


@plugin.command()
def uninstall() -> str:
    """Take the plugin out of Claude Code again, with everything that `install` made."""
    for path in _claude_home().joinpath(_COMMANDS).glob("*.md"):
        if is_short_command(path.stem):
            path.unlink()
    steps = (["plugin", "uninstall", _NAME], ["plugin", "marketplace", "remove", "ralph"])
    _tell_claude(*steps, may_be_gone=True)
    shutil.rmtree(_place(), ignore_errors=True)
    with suppress(OSError):  # somebody else keeps something there, or it is gone
        _place().parent.rmdir()
    return "Uninstalled. Runs and their journals stay where they are."


def is_short_command(name: str) -> bool:
    """True where the person's own command of this name is one that we wrote."""
    try:
        return _WRITTEN_BY_US in (_claude_home() / _COMMANDS / f"{name}.md").read_bytes()
    except OSError:
        return False


def _claude_home() -> Path:
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")


def _tell_claude(*steps: list[str], may_be_gone: bool = False) -> None:
    claude = programs.find("claude")
    if claude is None:
        words = ", then ".join(f"/{' '.join(step)}" for step in steps)
        raise AgentUnavailable("claude is not on PATH", f"Say in a session: {words}")
    for step in steps:
        ended = run_command([claude, *step], timeout_s=_TIMEOUT_S)
        if ended.returncode != 0 and not (may_be_gone and "not found" in ended.said.lower()):
            told = f"`claude {' '.join(step)}` failed: {ended.said[-500:]}"
            raise AgentUnavailable(told, "Run that command to see more.")


def _made() -> Path:
    """The plugin with this very installation in its hooks and manifest; made anew each time."""
    place = _place()
    script = Path(sys.executable).with_name("ralph")
    called = [str(script)] if os.access(script, os.X_OK) else ourselves()
    with as_file(files("ralphloop.plugin")) as source:
        for file in sorted(source.rglob("*")):
            if file.is_file() and file.suffix in (".json", ".md"):
                name = file.relative_to(source)
                content = file.read_bytes()
                made = json.loads(content) if name in (_HOOKS, _MANIFEST) else {}
                if name == _MANIFEST:
                    made["version"] = __version__
                rules = [rule for event in made.get("hooks", {}).values() for rule in event]
                for handler in (handler for rule in rules for handler in rule["hooks"]):
                    handler["command"], handler["args"] = called[0], [*called[1:], *handler["args"]]
                if made:
                    content = (json.dumps(made, indent=2) + "\n").encode()
                write_atomic(place / name, content, parents=True)
    return place


def _place() -> Path:
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    home = base if base.is_absolute() else Path.home() / ".local" / "share"
    return home / "ralph" / "claude-plugin"


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

    from ralphloop.cli.run import options_of, show_plan
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
