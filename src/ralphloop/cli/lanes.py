"""`ralph lanes`: the work trees, branches and saved work of lanes, and how to be rid of them.

Cleaning removes nothing unsaved: what a lane holds beyond its commits becomes a commit under
`refs/ralph/lanes/` first, where a run that can be continued finds it again.
"""

import time
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

import click
import msgspec

from ralphloop.agents.base import mark_of
from ralphloop.cli import output
from ralphloop.cli.given import DefaultGroup
from ralphloop.core.run_state import Book, LaneNote
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import RunLock
from ralphloop.journal.views import PROGRESS_VIEW
from ralphloop.lanes.worktrees import LaneTree, listed, read_mark, remove, work_of
from ralphloop.night.look import look
from ralphloop.proc.tree import stop_tree
from ralphloop.project import find_project
from ralphloop.repo.set_aside import ref_name
from ralphloop.repo.work_tree import Repository
from ralphloop.text.plain import some

_FORM = "--format=%(refname)%09%(contents:subject)%09%(committerdate:short)"


@click.group(cls=DefaultGroup, default="show")
def lanes() -> None:
    """Show the work trees of lanes, or remove them."""


@lanes.command()
def show() -> None:
    """Show work trees, branches, processes and saved work."""
    project = find_project()
    repo, night = Repository.open(project.root), look(project, now=time.time())
    book = night.book or Book()
    working = {look.number: look for look in night.lanes}
    pids = {it.n: it.pid for it in night.flying}
    lines, trees = list[str](), list(_trees(repo))
    for root, _, branch in trees:
        number = int(root.name) if root.name.isdigit() else 0
        story, busy = book.lanes.get(number, LaneNote()).story, working.get(number)
        held = story and f"holds {story}"
        if busy and busy.iteration:
            held = f"{busy.words(night.now)}, process {pids[busy.iteration]}"
        lines.append(f"{root}  {branch or 'landing tree'}  {held or 'idle'}")
    lines += [f"waiting: {some(names)}: {why}" for why, names in night.waiting.items()]
    branches = repo.git.line("for-each-ref", "--format=%(refname:short)", "refs/heads/ralph/")
    for branch in branches.splitlines():
        if not branch.startswith("ralph/lane-"):
            lines.append(f"branch {branch}: git merge {branch}")
    for line in repo.git.line("for-each-ref", _FORM, "refs/ralph/").splitlines():
        ref, subject, date = (*line.split("\t"), "", "")[:3]
        if ref.startswith("refs/ralph/lanes"):
            lines.append(f"saved {date}: {subject}: git show {ref}")
    if not trees:
        lines.append("No lanes. `ralph run --lanes 2` makes them.")
    elif night.holder is None:
        lines.append("ralph lanes clean removes them; what they hold is saved first.")
    output.emit_lines(map(output.safe, lines))


@lanes.command()
def clean() -> None:
    """Remove the work trees and branches of lanes; what they hold is saved first."""
    project = find_project()
    repo, now = Repository.open(project.root), time.time()
    with (
        RunLock(project.directory, run="lanes-clean", now=now) as lock,
        Journal.open(project.journal, check=False) as journal,
    ):
        # Agents that a run which was killed has left in lanes; the iterations stay unfinished.
        runs = journal.unfinished_runs()
        left = [cut for run in runs for cut in journal.unfinished_iterations(run.id)]
        ended = [*lock.ended]
        for cut in left:
            ended += stop_tree(cut.pid, cut.pid_started, mark_of(cut.run, cut.n))
        told = [f"ended {words}, left by a run that was killed" for words in ended]
        output.emit_lines(map(output.safe, chain(told, _cleaned(repo, journal))))


def _trees(repo: Repository) -> Iterator[tuple[Path, Path, str]]:
    for root, git_dir, branch in listed(repo):
        mark = read_mark(git_dir)
        if mark is not None and mark.home == str(repo.root):
            yield root, git_dir, branch


def _cleaned(repo: Repository, journal: Journal) -> Iterator[str]:
    run = journal.latest_run()
    book = (journal.part(Book, run.id) if run else None) or Book()
    cut = {it.story for it in journal.unfinished_iterations(run.id)} if run else set()
    for root, git_dir, branch in list(_trees(repo)):
        if (root / ".git").exists() and root.name.isdigit():
            place = LaneTree(int(root.name), Repository.open(root))
            saved = ref_name(run.id if run else "none", int(time.time()), "lanes")
            ref = f"{saved}-lane{root.name}"
            before, book = book, _saved(book, place, ref, cut)
            if repo.commit_of(ref):
                yield f"saved what {root} held: git show {ref}"
            if run is not None and book != before:
                journal.save_part(run.id, book)
        git = repo.git.writing()
        if git.attempt("worktree", "remove", "--force", "--force", str(root)).returncode:
            remove(root)
            remove(git_dir)
        if branch.startswith("ralph/lane-"):
            git.attempt("branch", "-D", branch)
        yield f"removed {root}"
        if root.parent.is_dir() and not any(root.parent.iterdir()):
            root.parent.rmdir()
    args = ("branch", "--list", "ralph/2*", "--format=%(refname:short)")
    for branch in repo.git.line(*args).split():
        if branch != book.branch and repo.git.contains(repo.head(), branch):
            repo.git.writing().attempt("branch", "-D", branch)
            yield f"removed branch {branch}, which your branch has"


def _saved(book: Book, place: LaneTree, ref: str, cut: Collection[str | None]) -> Book:
    """The book without a lane, whose work is a commit now; of a story that is `cut` off it is put
    back where it was, since that is still to be judged."""
    note = book.lanes.get(place.number, LaneNote())
    base = note.base or place.repo.head() or ""
    words = f"{note.story or 'a lane'}: when it was cleaned"
    work = work_of(place, base, [PROGRESS_VIEW], words, ref, known=note.work)
    lanes, kept = dict(book.lanes), dict(book.kept)
    lanes.pop(place.number, None)
    if note.story in cut:
        lanes[place.number] = LaneNote(story=note.story, base=base, work=work, onto=base)
    elif note.story and work:
        kept[note.story] = work
    return msgspec.structs.replace(book, lanes=lanes, kept=kept)
