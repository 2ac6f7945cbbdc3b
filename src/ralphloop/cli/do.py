"""`ralph do`: one story given in words, with the whole machinery behind it.

The story lies in a file of its own below `.ralph/do`, so that a run of it is like any other; the
project's story list, and a night that could be continued, are left alone.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from ralphloop.cli.config import agree_to_typed
from ralphloop.cli.run import common_options, options_of, run_here
from ralphloop.config.load import load_config
from ralphloop.errors import UsageError
from ralphloop.project import ERRANDS, Project, find_project

_LONGEST_TITLE = 72
_MOST_WORDS = 100_000


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--verify", metavar="COMMAND", help="Red now, green when it is done; no shell.")
@click.option("--checks", is_flag=True, help="Only the checks of ralph.toml prove it (default).")
@common_options
def do(
    words: tuple[str, ...],
    verify: str | None,
    checks: bool,
    verbose: int,
    quiet: bool,
    as_json: bool,
    **wanted: object,
) -> int:
    """Have one thing done, without a story file.

    \b
    ralph do "make the parser accept tabs" --verify "pytest -q tests/test_parser.py"

    WORDS say what is to be done; - reads them from standard input.  It ends when COMMAND, which is
    run before and after, and the checks of ralph.toml are green, or says why not.  What was
    interrupted goes on with: ralph run --continue
    """
    if verify is not None and checks:
        raise UsageError("--verify and --checks both say what proves it", "Leave one of them out.")
    text, argv = _text(words), _argv(verify)
    project = find_project()
    if not argv and not load_config(project.root, env=os.environ).config.checks.commands:
        raise UsageError(
            "nothing here could tell whether it is done",
            'Name a command that fails now: --verify "pytest -q tests/test_parser.py",'
            " or have checks found: ralph init",
        )
    path = _written(project, text, argv)
    agree_to_typed(project, path)
    options = options_of({**wanted, "prd": path}, start=Path.cwd())
    return run_here(options, verbose=verbose, quiet=quiet, as_json=as_json)


def _text(words: Sequence[str]) -> str:
    text = sys.stdin.read(_MOST_WORDS) if list(words) == ["-"] else " ".join(words)
    if not text.strip():
        raise UsageError("say what is to be done", 'ralph do "make the parser accept tabs"')
    return text.strip()[:_MOST_WORDS]


def _argv(verify: str | None) -> list[str]:
    try:
        argv = shlex.split(verify or "")
    except ValueError as error:
        raise UsageError(f"--verify: {error}", 'Quote it once more: --verify "pytest -q"') from None
    if verify is not None and not argv:
        raise UsageError("--verify names no command", '--verify "pytest -q tests/test_parser.py"')
    return argv


def _written(project: Project, text: str, argv: list[str]) -> Path:
    """The file with the story, the same one for the same words."""
    from ralphloop.atomic import write_atomic
    from ralphloop.repo.private_git import make_directory

    make_directory(project.directory)
    name = hashlib.sha256("\0".join([text, *argv]).encode()).hexdigest()[:6]
    title = " ".join(text.splitlines()[0].split())
    cut = f"{title[: _LONGEST_TITLE - 1]}…" if len(title) > _LONGEST_TITLE else title
    story = {
        "id": f"DO-{name}",
        "title": cut,
        "description": text if text != cut else "",
        "acceptanceCriteria": [f"`{shlex.join(argv)}` succeeds"] if argv else [],
        **({"verify": argv} if argv else {}),
        "passes": False,
    }
    path = project.root / ERRANDS / f"DO-{name}.json"
    path.parent.mkdir(exist_ok=True)
    data = msgspec.json.format(msgspec.json.encode({"userStories": [story]}))
    write_atomic(path, data + b"\n", within=project.directory)
    return path
