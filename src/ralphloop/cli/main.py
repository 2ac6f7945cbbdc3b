"""The front door: which commands exist, their guides and completion, and how every run ends.

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

import click

from ralphloop import __version__
from ralphloop.cli import output
from ralphloop.errors import ExitCode, RalphError, UsageError

_BROKEN_PIPE = 141  # what a shell reports for a program ended by SIGPIPE

GROUPS: dict[str, dict[str, tuple[str, str]]] = {  # name: (where it lives, one line of help)
    "Set up": {
        "init": ("init", "Set up this directory for runs"),
        "doctor": ("doctor", "Find what would stop a run, with the fix"),
        "config": ("config", "Show or check the settings and their origins"),
        "trust": ("config", "Say yes to what this repository may run"),
        "plugin": ("plugin", "Install the Claude Code plugin"),
        "docs": ("main", "Show the guides and references of this version"),
        "completion": ("main", "Print the completion script of a shell"),
    },
    "Run": {
        "plan": ("plan", "Make stories of an idea, a text or a checklist"),
        "run": ("run", "Run the agent over the stories until they are done"),
        "do": ("run", "Have one thing done that you say in a line"),
        "lanes": ("clean", "Show the work trees of lanes, or remove them"),
        "stop": ("steering", "End the run gently"),
        "pause": ("steering", "Let the run pause after this iteration"),
        "resume": ("steering", "Let a paused run go on"),
    },
    "Look": {
        "status": ("status", "Show how the run stands and what to do next"),
        "stories": ("story_list", "List, check and edit the stories"),
        "log": ("log", "Show what the agent said and did"),
        "monitor": ("elsewhere", "Watch and steer the run on one screen"),
        "serve": ("serve", "Show the run as a live page in a browser"),
        "report": ("report", "Show what a run did, proved and cost"),
        "pr": ("pr", "Push the run's branch, open or update its pull request"),
        "stats": ("learnings", "All numbers, and whether learning helps"),
    },
    "Answer": {
        "answer": ("steering", "Answer what a story waits for"),
        "review": ("report", "Walk through what passed: accept or send back"),
        "reject": ("report", "Send a passed story back, with your words"),
        "note": ("steering", "Add a note to the prompts to come"),
        "skip": ("steering", "Set a story aside for now"),
        "retry": ("steering", "Open a story again"),
        "budget": ("steering", "Raise what the run may cost or take"),
    },
    "Keep in order": {
        "circuit": ("steering", "Show or reset the circuit breaker"),
        "learnings": ("learnings", "Look at, forget or approve learnings"),
        "learn": ("learnings", "Aggregate what was learned"),
        "clean": ("clean", "Remove the transcripts of old runs"),
        "prices": ("config", "Show what tokens are taken to cost"),
    },
    "Try and prove": {
        "demo": ("demo", "Show it all on a toy repository, for free"),
        "replay": ("decisions", "Decide a recorded night again, and compare"),
        "simulate": ("decisions", "Play a scripted night through the core"),
        "eval": ("decisions:eval_cases", "Try the decisions on recorded cases"),
        "analyze": ("decisions", "Weigh one agent output and decide"),
        "hook": ("plugin", "Answer a hook of the Claude Code plugin"),
    },
}
COMMANDS = {name: row for group in GROUPS.values() for name, row in group.items()}

_ALIASES = {
    "--aggregate": ("learn", "--aggregate"),
    "--cb-reset": ("circuit", "reset"),
    "--cb-status": ("circuit", "status"),
    "--mode=script": ("run",),
}

_NAMES_OF_VERSION = ("version", "-v", "-V")

# Words of other tools, and what they are called here; nothing is started on a guess.
_MEANT = {
    "start": "run",
    "go": "run",
    "continue": "run --continue",
    "list": "stories",
    "ls": "stories",
    "add": "stories add",
    "watch": "monitor",
    "tui": "monitor",
    "dashboard": "monitor",
    "logs": "log",
    "web": "serve",
    "ui": "serve",
    "accept": "review",
    "approve": "review",
    "cancel": "stop",
    "abort": "stop",
    "kill": "stop",
    "undo": "reject",
    "setup": "init",
}

_EXAMPLES = """\
\b
Examples:
  ralph init                           find the stack and the checks, write ralph.toml
  ralph plan docs/prd.md               make stories of it, look at them, write them
  ralph run --max-cost 20 --until 7:00 work through the stories for one night
  ralph do "accept tabs" --verify "pytest -q tests/test_tabs.py"
  ralph answer US-3 "Use the v2 API"   tell a story what it waits for
  ralph review                         walk through what passed, accept or send back

Also: --mode script (run), --cb-status and --cb-reset (circuit), --aggregate (learn).
"""


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        found = importlib.import_module(f"ralphloop.cli.{module}")
        command: click.Command = getattr(found, attribute or cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        is_word = not (ctx.resilient_parsing or args[0].startswith("-"))  # completing: no command
        if is_word and args[0] not in COMMANDS:
            from difflib import get_close_matches

            name = args[0][:40]
            close = [known for known in COMMANDS if len(name) > 2 and known.startswith(name)]
            close = close or get_close_matches(name, COMMANDS, n=1)
            close = [_MEANT[name]] if name in _MEANT else close
            hint = " or ".join(f"`ralph {known}`" for known in close)
            step = f"Did you mean {hint}?" if hint else "ralph --help"
            raise UsageError(f"there is no command {name!r}", step)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, words) for name, (_, words) in group.items()])


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EXAMPLES,
)
@click.version_option(__version__, message="ralph %(version)s")
@click.pass_context
def ralph(ctx: click.Context) -> None:
    """Run a headless coding agent over a story list until the work is really done."""
    with suppress(OSError):  # the working directory is gone; the command says so where it matters
        from ralphloop.project import passed_over

        if problem := passed_over(Path.cwd()):
            output.warn(f"{problem[0]}. {problem[1]}")
    if ctx.invoked_subcommand is None:
        from ralphloop.cli.status import status

        ctx.invoke(status)
        output.emit_lines(["", "ralph --help lists all commands."])


@click.command()
@click.argument("page", required=False)
def docs(page: str | None) -> None:
    """List the guides and references of this version, or show one of them.

    \b
    ralph docs first-night
    ralph docs reference/agents
    """
    from importlib.resources import files

    # A clone has them beside the package, an installation inside; guides come first.
    package = Path(str(files("ralphloop")))
    places = (package / "docs", package.parents[1] / "docs")
    here = next(place for place in places if (place / "guides").is_dir())
    found = [*sorted(here.glob("guides/*.md")), *sorted(here.glob("reference/*.md"))]
    pages = {path.relative_to(here).with_suffix("").as_posix(): path for path in found}
    if page is None:
        width = max(map(len, pages), default=0) + 2
        for name, path in pages.items():
            title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            output.emit_lines(output.row(name, title, width=width))
        return
    asked = next((path for name, path in pages.items() if f"/{name}".endswith(f"/{page}")), None)
    if asked is None:
        raise UsageError(f"there is no page {page[:40]!r}", "`ralph docs` lists them.")
    output.emit_markdown(asked.read_text(encoding="utf-8"))


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script of a shell; load it from your shell's start-up file.

    \b
    eval "$(ralph completion bash)"          in ~/.bashrc
    eval "$(ralph completion zsh)"           in ~/.zshrc
    ralph completion fish | source           in ~/.config/fish/config.fish
    """
    from click.shell_completion import shell_complete

    return shell_complete(ralph, {}, "ralph", "_RALPH_COMPLETE", f"{shell}_source")


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
        case ["help", *rest]:
            return [*rest, "--help"]
        case [only] if only in _NAMES_OF_VERSION:
            return ["--version"]
        case [first, *rest] if first in _ALIASES:
            return [*_ALIASES[first], *rest]
        case unchanged:
            return unchanged


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
    if isinstance(error, click.NoSuchOption) and command == "ralph":
        step = f"options stand behind the command, such as: ralph run {error.option_name}"
    output.error(error.format_message(), step)
    return ExitCode.USAGE
