"""`ralph do`: have one thing done that is said in a line.

It lies in a file of its own below `.ralph/do`, so that a run of it is like any other; the
project's story list, and a night that could be continued, are left alone.
"""

import hashlib
import os
import shlex
import sys
from pathlib import Path

import click
import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.cli.shared.agreement import agree_to
from ralphloop.cli.shared.foreground import run_here
from ralphloop.cli.shared.run_options import common_options, options_of
from ralphloop.config.load import load_config
from ralphloop.errors import UsageError
from ralphloop.project import ERRANDS, find_project, relative
from ralphloop.repo.private_git import make_directory
from ralphloop.stories.names import quoted
from ralphloop.text.command_line import NO_SHELL, word_for_a_shell
from ralphloop.text.plain import one_line

_LONGEST_TITLE = 72
_MOST_WORDS = 100_000


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--verify", metavar="COMMAND", help="Red now, green when it is done; no shell.")
@click.option("--checks", is_flag=True, help="Only the checks of ralph.toml prove it (default).")
@common_options
def do(words: tuple[str, ...], verify: str | None, checks: bool, **wanted: object) -> int:
    """Have one thing done, without a story file.

    \b
    ralph do "make the parser accept tabs" \\
        --verify "pytest -q tests/test_parser.py"

    WORDS say what is to be done; - reads them from standard input.  It ends when COMMAND, which is
    run before and after, and the checks of ralph.toml are green, or says why not.  What was
    interrupted goes on with: ralph run --continue
    """
    if verify is not None and checks:
        raise UsageError("--verify and --checks both say what proves it", "Leave one of them out.")
    text = (sys.stdin.read(_MOST_WORDS) if words == ("-",) else " ".join(words)).strip()
    if not text:
        raise UsageError("say what is to be done", 'ralph do "make the parser accept tabs"')
    try:
        argv = shlex.split(verify or "")
    except ValueError as error:
        raise UsageError(f"--verify: {error}", 'Quote it once more: --verify "pytest -q"') from None
    if word := word_for_a_shell(verify or ""):
        step = """If you want one: --verify "sh -c '…'\""""
        raise UsageError(f"--verify uses {quoted(word)}: {NO_SHELL}", step)
    if verify is not None and not argv:
        raise UsageError("--verify names no command", '--verify "pytest -q tests/test_parser.py"')
    project = find_project()
    if not argv and not load_config(project.root, env=os.environ).config.checks.commands:
        raise UsageError(
            "nothing here could tell whether it is done",
            'Name a command that fails now: --verify "pytest -q tests/test_parser.py",'
            " or have checks found: ralph init",
        )
    # The same file for the same words.
    text = text[:_MOST_WORDS]
    digest = hashlib.sha256("\0".join([text, *argv]).encode()).hexdigest()
    name = f"DO-{digest[:6]}"
    title = one_line(text.splitlines()[0], _LONGEST_TITLE)
    story = {
        "id": name,
        "title": title,
        "description": text if text != title else "",
        "acceptanceCriteria": [f"`{shlex.join(argv)}` succeeds"] if argv else [],
        **({"verify": argv} if argv else {}),
        "passes": False,
    }
    path = project.root / ERRANDS / f"{name}.json"
    data = msgspec.json.format(msgspec.json.encode({"userStories": [story]}))
    make_directory(project.directory)
    write_atomic(path, data + b"\n", within=project.directory, parents=True)
    agree_to(project, path, relative(path, project.root))
    return run_here(options_of({**wanted, "prd": path}, start=Path.cwd()))
