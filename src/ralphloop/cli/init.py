"""`ralph init`: look at the repository, write what a run needs, and say what to do next.

Everything is found out and validated before the first file is written.  What exists is only
replaced by an explicit yes: on a terminal one is asked for each file, elsewhere `--overwrite` says
so.  A story list is never replaced by the sample.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from ralphloop.agents.programs import find_program
from ralphloop.cli import output
from ralphloop.cli.init_files import (
    GITIGNORE,
    Billing,
    Planned,
    Stories,
    billing_of,
    choose_agent,
    find_stories,
    planned_files,
)
from ralphloop.cli.layout import row
from ralphloop.config.load import check_config, user_file
from ralphloop.config.model import AgentName
from ralphloop.errors import ExitCode, RepositoryError
from ralphloop.project import CONFIG_NAME
from ralphloop.repo.work_tree import Repository
from ralphloop.stacks.detect import Detected, detect
from ralphloop.text.plain import counted

_LABEL_WIDTH = 10


@click.command()
@click.option(
    "--prd",
    type=click.Path(path_type=Path),
    help="Your story file; one outside this directory is copied.",
)
@click.option(
    "--agent", metavar="NAME", help="claude, codex, gemini, opencode, command or scripted."
)
@click.option("--yes", is_flag=True, help="Create without asking; what exists is left alone.")
@click.option("--overwrite", is_flag=True, help="Replace ralph.toml and PROMPT.md if they exist.")
def init(prd: Path | None, agent: str | None, yes: bool, overwrite: bool) -> int:
    """Set up this directory: ralph.toml, PROMPT.md, a story list, .gitignore.

    The stack and the commands that prove its work are detected from the files here.
    """
    root = Path.cwd()
    stories = find_stories(root, prd)
    detected = detect(root, directories=_own_stacks())
    name = choose_agent(root, agent)
    billing = billing_of(name, os.environ)
    files = planned_files(root, detected, stories, name, billing)
    output.emit_lines(_found(root, detected, name, billing))
    asking = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    if asking and not click.confirm(f"Set up ralph in {root}?", default=True, err=True):
        output.emit_lines(["Nothing was written."])
        return ExitCode.COMPLETE
    written = [each.name for each in files if _settle(each, asking=asking, overwrite=overwrite)]
    output.emit_lines(_kept_stories(stories))
    output.emit_lines(_doubts(root, stories, written))
    output.emit_lines(_next_steps(root, stories, name, written))
    return ExitCode.COMPLETE


def _row(label: str, text: str) -> Iterator[str]:
    return row(label, text, width=_LABEL_WIDTH)


def _own_stacks() -> tuple[Path, ...]:
    settings = user_file(os.environ)
    return (settings.parent / "stacks",) if settings else ()


def _found(root: Path, detected: Detected, agent: str, billing: Billing) -> Iterator[str]:
    tools = f" ({', '.join(detected.tools)})" if detected.tools else ""
    yield from _row("stack", f"{detected.title}{tools}")
    yield from _check_lines(root, detected)
    missing = "" if agent_is_there(agent, root) else ", which is not on PATH yet"
    yield from _row("agent", f"{agent}{missing}")
    if billing.words:
        yield from _row("limit", billing.words)
    for hint in (*detected.hints, *_place(root)):
        yield from _row("note", hint)
    yield ""


def _check_lines(root: Path, detected: Detected) -> Iterator[str]:
    label = "checks"
    for argv in detected.checks:
        there = find_program(argv[0], os.environ, root) is not None
        missing = "" if there else f" ({argv[0]} is not on PATH yet)"
        yield from _row(label, f"{shlex.join(argv)}{missing}")
        label = ""
    if not detected.checks:
        words = "none found: until ralph.toml names some, stories can only be `claimed`"
        yield from _row("checks", words)


def agent_is_there(agent: str, root: Path) -> bool:
    """Whether the agent could be started; those without a program of their own always can."""
    if agent in (AgentName.COMMAND, AgentName.SCRIPTED):
        return True
    return find_program(agent, os.environ, root) is not None


def _place(root: Path) -> Iterator[str]:
    try:
        top = Repository.open(root).root
    except RepositoryError as error:
        yield f"{error.message}; without git, less can be verified"
        return
    if top.resolve() != root.resolve():
        yield f"this is a part of the repository at {top}; ralph will work on this part"


def _settle(file: Planned, *, asking: bool, overwrite: bool) -> bool:
    """Write one file unless that would take something away unasked; False: left alone."""
    fate = file.fate()
    if fate == "exists" and not (overwrite and file.replaceable):
        question = f"{file.name} exists. Replace it?"
        if not (asking and click.confirm(question, default=False, err=True)):
            hint = " (--overwrite replaces it)" if file.replaceable else ""
            output.emit_lines(_row("kept", f"{file.name}: it exists{hint}"))
            return False
    if fate == "same":
        output.emit_lines(_row("kept", f"{file.name}: it is up to date"))
        return False
    file.write()
    verb = {"new": "created", "exists": "replaced", "grows": "extended"}[fate]
    output.emit_lines(_row(verb, f"{file.name}{file.remark}"))
    return True


def _kept_stories(stories: Stories) -> Iterator[str]:
    if stories.there is not None:
        listed = stories.there
        words = f"{stories.name}: {counted(listed.total, 'story')}, {listed.passed} passed"
        yield from _row("kept", words)


def _doubts(root: Path, stories: Stories, written: list[str]) -> Iterator[str]:
    """What a file that was left alone may need."""
    loaded, problems = check_config(root, env=os.environ)
    for problem in problems[:1]:
        yield from _row("note", f"{problem.place}: {problem.message} (ralph config validate)")
    if not problems and CONFIG_NAME not in written and loaded.config.stories.prd != stories.name:
        words = f'{CONFIG_NAME} names other stories; for these: stories.prd = "{stories.name}"'
        yield from _row("note", words)


def _next_steps(root: Path, stories: Stories, agent: str, written: list[str]) -> Iterator[str]:
    steps = []
    if agent in (AgentName.COMMAND, AgentName.SCRIPTED) and CONFIG_NAME in written:
        steps.append(f"name your program in {CONFIG_NAME}: agent.command")
    if stories.is_sample:
        steps.append(f"edit {stories.name}: the stories in it are a sample")
    steps += _git_steps(root, written)
    steps += ["ralph run --dry-run   shows the plan and first prompt, spends nothing"]
    steps += ["ralph run             runs it"]
    yield ""
    yield "Next:"
    yield from (f"  {number}. {step}" for number, step in enumerate(steps, 1))


def _git_steps(root: Path, written: list[str]) -> Iterator[str]:
    try:
        Repository.open(root)
    except RepositoryError:
        yield "git init              (ralph commits each story that passes)"
        written = [*dict.fromkeys([*written, GITIGNORE])]
    if written:
        yield f"git add {shlex.join(written)}\n     git commit -m 'Set up ralph'"
