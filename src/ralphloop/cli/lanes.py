"""`ralph lanes`: the work trees, branches and saved work of lanes, and how to be rid of them.

Cleaning removes nothing that is not saved: what a lane holds beyond its commits becomes a commit
under `refs/ralph/lanes/` first, and a run that can be continued finds it again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from ralphloop.cli import output
from ralphloop.cli.given import DefaultGroup
from ralphloop.core.run_state import Book, LaneNote
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import RunLock
from ralphloop.journal.session import book_key, load_book
from ralphloop.journal.views import PROGRESS_VIEW
from ralphloop.lanes.worktrees import LaneTree, listed, read_mark, remove, work_of
from ralphloop.night.look import look
from ralphloop.project import Project, find_project
from ralphloop.repo.set_aside import ref_name
from ralphloop.repo.work_tree import Repository, contains
from ralphloop.text.plain import some

_FORM = "--format=%(refname)%09%(contents:subject)%09%(committerdate:short)"


@click.group(cls=DefaultGroup, default="show", invoke_without_command=True)
def lanes() -> None:
    """Show the work trees of lanes, or remove them."""


@lanes.command()
def show() -> None:
    """Show work trees, branches, processes and saved work."""
    project = find_project()
    output.emit_lines(map(output.safe, _shown(project, Repository.open(project.root))))


@lanes.command()
def clean() -> None:
    """Remove the work trees and branches of lanes; what they hold is saved first."""
    project = find_project()
    repo, now = Repository.open(project.root), time.time()
    with (
        RunLock.acquire(project.directory, run="lanes-clean", now=now),
        Journal.open(project.journal, check=False) as journal,
    ):
        output.emit_lines(map(output.safe, _cleaned(repo, journal)))


def _trees(repo: Repository) -> Iterator[tuple[Path, Path, str]]:
    for root, git_dir, branch in listed(repo):
        mark = read_mark(git_dir)
        if mark is not None and mark.home == str(repo.root):
            yield root, git_dir, branch


def _shown(project: Project, repo: Repository) -> Iterator[str]:
    night = look(project, now=time.time())
    book = night.book or Book()
    working = {look.number: look for look in night.lanes}
    pids = {it.n: it.pid for it in night.flying}
    trees = list(_trees(repo))
    for root, _, branch in trees:
        number = int(root.name) if root.name.isdigit() else 0
        story, busy = book.lanes.get(number, LaneNote()).story, working.get(number)
        held = story and f"holds {story}"
        if busy and busy.iteration:
            held = f"{busy.words(night.now)}, process {pids[busy.iteration]}"
        yield f"{root}  {branch or 'landing tree'}  {held or 'idle'}"
    for why, names in night.waiting.items():
        yield f"waiting: {some(names)}: {why}"
    branches = repo.git.line("for-each-ref", "--format=%(refname:short)", "refs/heads/ralph/")
    for branch in branches.splitlines():
        if not branch.startswith("ralph/lane-"):
            yield f"branch {branch}: git merge {branch}"
    for line in repo.git.line("for-each-ref", _FORM, "refs/ralph/").splitlines():
        ref, subject, date = (*line.split("\t"), "", "")[:3]
        if ref.startswith("refs/ralph/lanes"):
            yield f"saved {date}: {subject}: git show {ref}"
    if not trees:
        yield "No lanes. `ralph run --lanes 2` makes them."
    elif night.holder is None:
        yield "ralph lanes clean removes them; what they hold is saved first."


def _cleaned(repo: Repository, journal: Journal) -> Iterator[str]:
    run = journal.latest_run()
    name, book = run.id if run else "none", load_book(journal, run.id) if run else None
    book = book or Book()
    for root, git_dir, branch in list(_trees(repo)):
        number = int(root.name) if root.name.isdigit() else 0
        note, saved = book.lanes.get(number, LaneNote()), ""
        if (root / ".git").exists() and number:
            place = LaneTree(number, Repository.open(root))
            ref = f"{ref_name(name, int(time.time()), 'lanes')}-lane{number}"
            base = note.base or place.repo.head() or ""
            words = f"{note.story or 'a lane'}: when it was cleaned"
            saved = work_of(place, base, [PROGRESS_VIEW], words, ref, known=note.work)
            if saved and saved != note.work:
                yield f"saved what {root} held: git show {ref}"
        kept = {**book.kept, **({note.story: saved} if note.story and saved else {})}
        rest = {n: one for n, one in book.lanes.items() if n != number}
        book = msgspec.structs.replace(book, lanes=rest, kept=kept)
        if run is not None:
            journal.set_meta(book_key(run.id), book)
        git = repo.git.writing()
        if git.attempt("worktree", "remove", "--force", "--force", str(root)).returncode:
            remove(root)
            remove(git_dir)
        if branch.startswith("ralph/lane-"):
            git.attempt("branch", "-D", branch)
        yield f"removed {root}"
        if root.parent.is_dir() and not any(root.parent.iterdir()):
            root.parent.rmdir()
    for branch in repo.git.line(
        "branch", "--list", "ralph/2*", "--format=%(refname:short)"
    ).split():
        if branch != book.branch and contains(repo, repo.head(), branch):
            repo.git.writing().attempt("branch", "-D", branch)
            yield f"removed branch {branch}, which your branch has"
