"""The front door: which commands exist, and how every one of them ends.

Commands are a table, so that `ralph --help` imports none of them.  A command returns nothing or a
sentence to be printed (all went well), or its exit code, and raises a `RalphError` for everything
that has a next step; only here it becomes words on stderr and an exit code.
"""

import importlib
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralphloop import __version__
from ralphloop.cli import output
from ralphloop.cli.shared.help_page import HelpContext, with_help_page
from ralphloop.errors import ExitCode, RalphError, UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_EVERYTHING = "ralphloop.every_command"  # in a context: its help is about all of them
_BROKEN_PIPE = 141  # what a shell reports for a program ended by SIGPIPE

# Each command is the module of its name beside this one, and has one line of help.  The first are
# what a first night needs: with their heads they fit on a terminal of 80 by 24.
FIRST: dict[str, tuple[str, ...]] = {
    "Set up": ("init", "doctor", "plan", "stories"),
    "Run": ("run", "do", "stop"),
    "Look": ("status", "monitor", "serve", "log"),
    "Decide": ("answer", "review", "report"),
}
GROUPS: dict[str, dict[str, str]] = {
    "Set up": {
        "init": "Set up this directory for runs",
        "doctor": "Find what would stop a run, with the fix",
        "config": "Show or check the settings and their origins",
        "trust": "Say yes to what this repository may run",
        "plugin": "Install the Claude Code plugin",
        "mcp": "Answer an assistant that asks about the run",
        "docs": "Show the guides and references of this version",
        "completion": "Print the completion script of a shell",
        "uninstall": "Show what ralph left on this machine, and remove it",
    },
    "Run": {
        "plan": "Make stories of an idea, a text or a checklist",
        "seal": "Take acceptance tests out of every agent's reach",
        "unseal": "Bring sealed tests back into the work tree",
        "run": "Run the agent over the stories until they are done",
        "do": "Have one thing done that you say in a line",
        "lanes": "Show the work trees of lanes, or remove them",
        "fleet": "Work for other machines, or have them work for you",
        "stop": "End the run gently",
        "pause": "Let the run pause after this iteration",
        "resume": "Let a paused run go on",
    },
    "Look": {
        "status": "Show how the run stands and what to do next",
        "stories": "List, check and edit the stories",
        "log": "Show what the agent said and did",
        "monitor": "Watch and steer the run on one screen",
        "serve": "Show the run as a live page in a browser",
        "report": "Show what a run did, proved and cost",
        "pr": "Push the run's branch, open or update its pull request",
        "stats": "All numbers, and whether learning helps",
    },
    "Decide": {
        "answer": "Answer what a story waits for",
        "review": "Walk through what passed: accept or send back",
        "reject": "Send a passed story back, with your words",
        "note": "Add a note to the prompts to come",
        "skip": "Set a story aside for now",
        "retry": "Open a story again",
        "budget": "Raise what the run may cost or take",
    },
    "Maintenance": {
        "circuit": "Show or reset the circuit breaker",
        "learnings": "Look at, forget, approve or update learnings",
        "clean": "Remove the transcripts of old runs",
        "prices": "Show token prices",
    },
    "Try and prove": {
        "demo": "Show it all on a toy repository, for free",
        "replay": "Decide a recorded night again, and compare",
        "simulate": "Play a scripted night through the core",
        "eval": "Try the decisions on recorded cases",
        "analyze": "Weigh one agent output and decide",
        "hook": "Answer a hook of the Claude Code plugin",
    },
}
COMMANDS = {name: words for group in GROUPS.values() for name, words in group.items()}
# Old names that go on working; the list shows what they are a part of now.
OLDER = {"learn": "learnings update"}
_FUNCTIONS = {"eval": "eval_cases"}  # the name of a builtin is none for a function

_ALIASES = {
    "--aggregate": ("learn", "--aggregate"),
    "--cb-reset": ("circuit", "reset"),
    "--cb-status": ("circuit", "status"),
    "--mode=script": ("run",),
}

_NAMES_OF_VERSION = ("version", "-v", "-V")

# Words of other tools for what only looks: they do the same.
SYNONYMS = {
    "list": ("stories",),
    "ls": ("stories",),
    "logs": ("log",),
    "watch": ("monitor",),
    "tui": ("monitor",),
    "dashboard": ("monitor",),
    "web": ("serve",),
    "ui": ("serve",),
    "accept": ("review",),
    "approve": ("review",),
}

# Words of other tools for what spends, writes or ends something: nothing is done on a guess.
_MEANT = {
    "start": "run",
    "go": "run",
    "continue": "run --continue",
    "add": "stories add",
    "cancel": "stop",
    "abort": "stop",
    "kill": "stop",
    "undo": "reject",
    "setup": "init",
    "remove": "uninstall",
}

# Options of other tools and guesses, and what they are called here.
_OPTIONS_MEANT = {
    "--background": "--detach",
    "--budget": "--max-cost",
    "--cost": "--max-cost",
    "--criteria": "--criterion",
    "--daemon": "--detach",
    "--file": "--prd",
    "--force": "--overwrite",
    "--hours": "--max-time",
    "--iterations": "--max-iterations",
    "--jobs": "--lanes",
    "--max-budget": "--max-cost",
    "--max-budget-usd": "--max-cost",
    "--max-loops": "--max-iterations",
    "--max-turns": "--max-iterations",
    "--parallel": "--lanes",
    "--resume": "--continue",
    "--time": "--max-time",
    "--timeout": "--max-time",
    "--tool": "--agent",
    "--watch": "--monitor",
    "--workers": "--lanes",
}
_LIKE_ENOUGH = 0.75  # of two options: below, a suggestion is a guess

# They take words of a person, of which one may be `help`.
_TAKES_WORDS = ("answer", "do", "note", "plan", "reject")

_EXAMPLES = """\
\b
Examples:
  ralph init                            find stack and checks, write ralph.toml
  ralph plan docs/prd.md                make stories of it, look, write them
  ralph run --max-cost 20 --until 7:00  work through the stories for one night
  ralph do "accept tabs" --verify "pytest -q tests/test_tabs.py"
  ralph answer US-3 "Use the v2 API"    tell a story what it waits for
  ralph review                          walk through what passed

\b
The same by other names: list, ls (stories), logs (log), watch, tui (monitor),
web, ui (serve), accept, approve (review), learn (learnings update),
--mode script (run), --cb-status, --cb-reset (circuit), --aggregate (learn).
"""


class LazyGroup(click.Group):
    context_class = HelpContext

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS and cmd_name not in OLDER:
            return None
        module = importlib.import_module(f"ralphloop.cli.{cmd_name}")
        command: click.Command = getattr(module, _FUNCTIONS.get(cmd_name, cmd_name))
        return with_help_page(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        is_word = not (ctx.resilient_parsing or args[0].startswith("-"))  # completing: no command
        if is_word and args[0] not in COMMANDS and args[0] not in OLDER:
            from difflib import get_close_matches

            name = args[0][:40]
            close = [known for known in COMMANDS if len(name) > 2 and known.startswith(name)]
            close = close or get_close_matches(name, COMMANDS, n=1)
            close = [_MEANT[name]] if name in _MEANT else close
            hint = " or ".join(f"`ralph {known}`" for known in close)
            step = f"Did you mean {hint}?" if hint else "ralph --help"
            raise UsageError(f"there is no command {name!r}", step)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """The commands with the words of the help; none of them has to be loaded for it."""
        from click.shell_completion import CompletionItem

        every = {name: told for group in GROUPS.values() for name, told in group.items()}
        found = [
            CompletionItem(name, help=told)
            for name, told in sorted(every.items())
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What a first night needs, on one screen; `ralph help all` has the rest."""
        if ctx.meta.get(_EVERYTHING):
            super().format_help(ctx, formatter)
            return
        formatter.write(f"{output.paint('ralph COMMAND [OPTIONS]', 'bold')}\n")
        formatter.write(f"{self.help}\n\n")
        widest = max(len(name) for names in FIRST.values() for name in names)
        for title, names in FIRST.items():
            formatter.write_heading(title)
            with formatter.indentation():
                rows = [(f"{name:<{widest}}", COMMANDS[name]) for name in names]
                formatter.write_dl(rows)
        more = "ralph help all: every command.  ralph help run: one.  ralph docs: guides."
        formatter.write(f"\n{more}\n")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(group.items()))


def _show_all(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Every command, in the place of running one."""
    if wanted and not ctx.resilient_parsing:
        ctx.meta[_EVERYTHING] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EXAMPLES,
)
@click.option("--all-commands", is_flag=True, hidden=True, is_eager=True, callback=_show_all)
@click.version_option(__version__, message="ralph %(version)s")
@click.pass_context
def ralph(ctx: click.Context, all_commands: bool) -> None:  # noqa: ARG001 - it ends the command
    """Run a headless coding agent over a story list until the work is really done."""
    with suppress(OSError):  # the working directory is gone; the command says so where it matters
        from ralphloop.project import passed_over

        if problem := passed_over(Path.cwd()):
            output.warn(f"{problem.message}. {problem.next_step}")
    if ctx.invoked_subcommand is None:
        from ralphloop.cli.status import status

        ctx.invoke(status)
        output.emit_lines(["", "ralph --help lists all commands."])


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code, whatever happens."""
    output.prepare_streams()
    if wanted := os.environ.get("_RALPH_COMPLETE"):
        from click.shell_completion import shell_complete

        return shell_complete(ralph, {}, "ralph", "_RALPH_COMPLETE", wanted)
    try:
        # The steps of click's `main`, which would end a broken pipe with a code of its own.
        try:
            with ralph.make_context("ralph", spelled_out(arguments)) as ctx:
                result = ralph.invoke(ctx)
            if isinstance(result, str):
                output.emit_lines([output.safe(result)])
        except click.exceptions.Exit as ending:
            result = ending.exit_code
        sys.stdout.flush()  # here, where a reader that has left can still be handled
    except BrokenPipeError:
        output.silence(sys.stdout)
        return _BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        return ExitCode.INTERRUPTED
    except RalphError as error:
        output.error(error.message, error.next_step)
        return error.exit_code
    except click.ClickException as error:
        return _report_click_error(error)
    except Exception as error:  # noqa: BLE001 - the last place that can turn a bug into words
        if os.environ.get("RALPH_DEBUG"):
            import traceback

            output.note("".join(traceback.format_exception(error)).rstrip())
        else:
            step = "run the same command with RALPH_DEBUG=1 for the traceback, and report it"
            what = f"{type(error).__name__}: {error}"[:300]
            output.error(f"internal error: {what}", step)
        return ExitCode.INTERNAL
    return result if isinstance(result, int) else ExitCode.COMPLETE


def spelled_out(arguments: Sequence[str]) -> list[str]:
    """The same wish in terms of commands; the old spellings come first on the line."""
    pinned = (re.sub(r"^--trust=", "--trust-pin=", argument) for argument in arguments)
    match list(pinned):
        case ["--mode", "script", *rest]:
            return ["run", *rest]
        case ["--mode", *_]:
            raise UsageError("--mode takes only: script", "ralph run --help")
        case ["help", "all"]:
            return ["--all-commands"]
        case ["help", *rest]:
            return [*rest, "--help"]
        case [command, "help"] if _asks_for_help(command):
            return [command, "--help"]
        case [only] if only in _NAMES_OF_VERSION:
            return ["--version"]
        case [first, *rest] if first in _ALIASES:
            return [*_ALIASES[first], *rest]
        case [first, *rest] if first in SYNONYMS:
            return [*SYNONYMS[first], *rest]
        case unchanged:
            return unchanged


def _asks_for_help(command: str) -> bool:
    """Whether `help` behind it is a question, and neither a word for it nor a directory."""
    return command in COMMANDS and command not in _TAKES_WORDS and not Path("help").exists()


def _option_meant(error: click.NoSuchOption) -> str:
    """The option of the same command that was probably meant; empty where that is a guess."""
    from difflib import get_close_matches

    given = error.ctx.command.get_params(error.ctx) if error.ctx else []
    known = [name for option in given for name in option.opts if name.startswith("--")]
    meant = _OPTIONS_MEANT.get(error.option_name, "")
    if meant in known:
        return meant
    close = get_close_matches(error.option_name, known, n=1, cutoff=_LIKE_ENOUGH)
    return close[0] if close else ""


def _report_click_error(error: click.ClickException) -> int:
    """Usage errors are 64: click's own 2 would mean "blocked"."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        output.note(error.format_message())
        return ExitCode.USAGE
    if not isinstance(error, click.UsageError):
        output.error(error.format_message())
        return ExitCode.BAD_INPUT
    command = error.ctx.command_path if error.ctx else "ralph"
    step = f"{command} --help"
    message = error.format_message()
    if isinstance(error, click.NoSuchOption):
        message = f"No such option '{error.option_name}'."
        if command == "ralph":
            step = f"options stand behind the command, such as: ralph run {error.option_name}"
        elif meant := _option_meant(error):
            step = f"Did you mean {meant}? All options: {command} --help"
    output.error(message, step)
    return ExitCode.USAGE
