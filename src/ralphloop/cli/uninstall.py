"""`ralph uninstall`: show what ralph has left on this machine, and remove it after a yes.

Three questions, because the answers differ: what lies in this project, what git keeps of attempts
(refs, which may be the only copy of work that was set aside), and what is kept for this user.  What
a person wrote or an agent committed is never removed: settings of the repository, stories,
branches, commits, declared agents, sealed tests.
"""

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import click

from ralphloop.cli import output
from ralphloop.cli.plugin import plugin_directory
from ralphloop.cli.plugin import uninstall as remove_plugin
from ralphloop.cli.shared.agreement import insist_on_person
from ralphloop.config.load import user_file
from ralphloop.errors import (
    AgentUnavailable,
    ExitCode,
    LockedError,
    RepositoryError,
    UsageError,
)
from ralphloop.journal.lock import live_holder
from ralphloop.journal.views import CIRCUIT_VIEW, SESSION_VIEW
from ralphloop.lanes.clean_tree import clean_root
from ralphloop.learning.skills import made_places
from ralphloop.project import CONFIG_NAME, Project, find_project
from ralphloop.repo.work_tree import Repository
from ralphloop.room import common_place, file_of, state_directory
from ralphloop.text.plain import counted

_REFS = "refs/ralph/"
_OF_A_PERSON = ("agents",)  # in .ralph: agents that somebody declared
_SEALED = "sealed"  # in the state directory: tests that somebody wrote
_KEPT = f"{CONFIG_NAME}, PROMPT.md, stories, agents of your own, branches, commits"


class Leftover(NamedTuple):
    path: Path
    what: str


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--yes", is_flag=True, help="Remove all but the refs, without asking.")
@click.option("--refs", is_flag=True, help="With --yes: the refs of kept attempts, too.")
def uninstall(dry_run: bool, yes: bool, refs: bool) -> int:
    """Show what ralph left in this project and for you; ask, and remove it.

    Never removed: what you wrote (settings, stories, agents of your own, sealed tests), branches
    and commits.
    """
    project = find_project()
    insist_on_person("an agent does not uninstall what watches it")
    here = list(_of_project(project))
    kept = _refs_of(project)
    mine = list(_of_user())
    output.emit_lines(_listed(f"In {project.root}", here))
    output.emit_lines(_listed_refs(kept))
    output.emit_lines(_listed("For you, in every project", mine))
    output.emit_lines(["Not removed", f"  {_KEPT}", ""])
    asking = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    if dry_run or not (yes or asking):
        output.emit_lines(["Nothing was removed. On a terminal it asks; --yes removes it."])
        return ExitCode.COMPLETE
    problems = list[str]()
    if here and _agreed("Remove what lies in this project?", yes=yes):
        _insist_on_quiet(project)
        problems += _remove(here)
        _remove_if_empty(project.directory)
    if kept and (refs if yes else _agreed("Remove the refs? Their work is then gone", yes=False)):
        _remove_refs(project, kept)
    if mine and _agreed("Remove what is kept for you?", yes=yes):
        problems += _remove_plugin()
        problems += _remove(mine)
        _remove_if_empty(state_directory(os.environ))
    for problem in problems:
        output.error(problem)
    program = "pipx uninstall ralphloop, or uv tool uninstall ralphloop"
    output.emit_lines([f"Done. The program itself: {program}"])
    return ExitCode.REPO_NOT_READY if problems else ExitCode.COMPLETE


def _of_project(project: Project) -> Iterator[Leftover]:
    """What ralph made in a project, and what it keeps about it elsewhere."""
    if project.directory.is_dir() and not project.directory.is_symlink():
        for entry in sorted(project.directory.iterdir()):
            if entry.name not in _OF_A_PERSON:
                yield Leftover(entry, _WHAT.get(entry.name, ""))
    for name in (SESSION_VIEW, CIRCUIT_VIEW):
        if (project.root / name).exists():
            yield Leftover(project.root / name, "a view of the last run")
    for place in made_places(project.root):
        yield Leftover(project.root / place.path, "a skill made of what was learned")
    env = os.environ
    elsewhere = (
        (clean_root(project.root, env), "the clean copy in which checks run"),
        (file_of("trust", common_place(project.root), env), "what you agreed to here"),
        (file_of("heads", project.journal.resolve(), env), "the signature of the journal"),
        (file_of("page", project.root.resolve(), env), "devices that may see the page"),
        (file_of("projects", project.root.resolve(), env), "where this project is"),
    )
    for path, what in elsewhere:
        if path is not None and path.exists():
            yield Leftover(path, what)


_WHAT = {
    "journal.db": "the journal: all runs",
    "transcripts": "what agents said and did",
    "reports": "reports",
    "learnings": "what was learned",
}


def _of_user() -> Iterator[Leftover]:
    """What is kept for this user; sealed tests stay."""
    state = state_directory(os.environ)
    if state is not None and state.is_dir():
        for entry in sorted(state.iterdir()):
            if entry.name != _SEALED:
                yield Leftover(entry, "state of all your projects")
    own = user_file(os.environ)
    if own is not None and own.parent.is_dir():
        yield Leftover(own.parent, "your own settings and prices")
    if plugin_directory().exists():
        yield Leftover(plugin_directory(), "the Claude Code plugin")


def _refs_of(project: Project) -> list[str]:
    """The refs of ours, in which attempts are kept that are in no branch."""
    try:
        repo = Repository.open(project.root)
        return repo.git.line("for-each-ref", "--format=%(refname)", _REFS).splitlines()
    except RepositoryError:
        return []


def _listed(title: str, found: Sequence[Leftover]) -> Iterator[str]:
    yield output.paint(title, "bold")
    if not found:
        yield "  nothing"
    for one in found:
        what = f"  ({one.what})" if one.what else ""
        yield f"  {output.safe(str(one.path))}{what}"
    yield ""


def _listed_refs(refs: Sequence[str]) -> Iterator[str]:
    if refs:
        yield output.paint("In git", "bold")
        words = counted(len(refs), "ref")
        yield f"  {words} below {_REFS} (attempts that were kept; perhaps their only copy)"
        yield ""


def _agreed(question: str, *, yes: bool) -> bool:
    return yes or output.answers_yes(question)


def _insist_on_quiet(project: Project) -> None:
    """End here while a run goes on, or where work of lanes or sealed tests would be lost."""
    if holder := live_holder(project.directory, time.time()):
        raise LockedError(f"run {holder.run} is going on", "Stop it first: ralph stop")
    sealed = file_of(_SEALED, common_place(project.root), os.environ)
    if sealed is not None and sealed.exists():
        step = "Bring them back first: `ralph seal --list`, `ralph unseal`"
        raise UsageError("tests of this project are sealed", step)
    lanes = project.directory / "lanes"
    if lanes.is_dir() and any(lanes.iterdir()):
        raise UsageError("work trees of lanes are there", "Save what they hold: ralph lanes clean")


def _remove(found: Sequence[Leftover]) -> Iterator[str]:
    """Remove each; what could not be removed is told."""
    for one in found:
        try:
            if one.path.is_dir() and not one.path.is_symlink():
                shutil.rmtree(one.path)
            else:
                one.path.unlink(missing_ok=True)
        except OSError as error:
            yield f"cannot remove {one.path}: {error.strerror or error}"


def _remove_if_empty(directory: Path | None) -> None:
    """A directory of ours in which nothing is left."""
    if directory is not None:
        with suppress(OSError):  # something is left in it, or it is gone
            directory.rmdir()


def _remove_refs(project: Project, refs: Sequence[str]) -> None:
    repo = Repository.open(project.root)
    words = "".join(f"delete {ref}\n" for ref in refs)
    repo.git.run("update-ref", "--stdin", stdin=words.encode())


def _remove_plugin() -> Iterator[str]:
    """Take the plugin out of Claude Code, where it is in it."""
    if not plugin_directory().exists():
        return
    try:
        click.get_current_context().invoke(remove_plugin)
    except AgentUnavailable as error:
        yield f"the plugin stays in Claude Code: {error.message}. {error.next_step}"
