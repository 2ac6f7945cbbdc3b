"""`ralph lanes`: the work trees of lanes, shown or removed.

Cleaning removes nothing unsaved: what a lane holds beyond its commits becomes a commit under
`refs/ralph/lanes/` first, where a run that can be continued finds it again.
"""

import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import click
import msgspec

from ralphloop.agents.base import mark_of
from ralphloop.cli import output
from ralphloop.cli.shared.options import DefaultGroup
from ralphloop.core.run_state import LaneNote, LanesState
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import RunLock
from ralphloop.journal.views import PROGRESS_VIEW
from ralphloop.lanes import inner_repositories
from ralphloop.lanes.branch_names import LANDED, is_of_a_lane, is_of_a_run, own_branches
from ralphloop.lanes.worktrees import (
    LaneTree,
    LinkedTree,
    linked_trees,
    read_mark,
    remove,
    without_hooks,
    work_of,
)
from ralphloop.loop.confine import confined_repository
from ralphloop.night.look import config_of, look
from ralphloop.proc.tree import stop_tree
from ralphloop.project import Project, find_project
from ralphloop.repo.git import printable
from ralphloop.repo.set_aside import ref_name
from ralphloop.repo.work_tree import Repository, project_prefix
from ralphloop.text.plain import some

_REFS = "--format=%(refname)%09%(contents:subject)%09%(committerdate:short)"


@click.group(cls=DefaultGroup)
def lanes() -> None:
    """Show the work trees of lanes, or remove them."""


@lanes.command("show")
def show_lanes() -> None:
    """Show work trees, branches, processes and saved work."""
    project = find_project()
    repo = Repository.open(project.root)
    night = look(project)
    book = night.book or LanesState()
    working = {look.number: look for look in night.lanes}
    pids = {it.n: it.pid for it in night.flying}
    lines = list[str]()
    trees = list(_trees(repo, project.root))
    for root, _, branch in trees:
        lane = int(root.name) if root.name.isdigit() else 0
        story = book.lanes.get(lane, LaneNote()).story
        busy = working.get(lane)
        held = story and f"holds {story}"
        if busy and busy.iteration:
            held = f"{busy.words(night.now)}, process {pids[busy.iteration]}"
        lines.append(f"{root}  {branch or 'landing tree'}  {held or 'idle'}")
    lines += [f"waiting: {some(names)}: {why}" for why, names in night.waiting.items()]
    own = [f"refs/heads/{branch}" for branch in own_branches(repo)]
    kept = repo.git.line("for-each-ref", _REFS, *own, "refs/ralph/lanes/")
    for line in kept.splitlines():
        ref, subject, date = (*line.split("\t"), "", "")[:3]
        branch = ref.removeprefix("refs/heads/")
        if branch == ref:
            lines.append(f"saved {date}: {subject}: git show {ref}")
        elif not is_of_a_lane(branch):
            lines.append(f"branch {branch}: git merge {branch}")
    if not trees:
        lines.append("No lanes. `ralph run --lanes 2` makes them.")
    elif night.holder is None:
        lines.append("ralph lanes clean removes them; what they hold is saved first.")
    output.emit_lines(map(output.safe, lines))


@lanes.command("clean")
def clean_lanes() -> None:
    """Remove the work trees and branches of lanes; what they hold is saved first."""
    project = find_project()
    now = time.time()
    with (
        RunLock(project.directory, run="lanes-clean", now=now) as lock,
        Journal.open(project.journal, check=False) as journal,
    ):
        # Agents that a run which was killed has left in lanes; the iterations stay unfinished.
        ended = [*lock.ended]
        for run in journal.unfinished_runs():
            for cut in journal.unfinished_iterations(run.id):
                ended += stop_tree(cut.pid, cut.pid_started, mark_of(cut.run, cut.n))
        told = [f"ended {words}, left by a run that was killed" for words in ended]
        output.emit_lines(map(output.safe, chain(told, _cleaned(project, journal))))


def _trees(repo: Repository, project: Path) -> Iterator[LinkedTree]:
    for tree in linked_trees(repo):
        mark = read_mark(tree.git_dir)
        if mark is None or mark.home != str(repo.root):
            continue
        if mark.project in (None, project_prefix(repo.root, project)):
            yield tree


def _cleaned(project: Project, journal: Journal) -> Iterator[str]:
    run = journal.latest_run()
    config = config_of(project, run)
    repo = confined_repository(project, config)
    book = (journal.part(LanesState, run.id) if run else None) or LanesState()
    cut = {it.story for it in journal.unfinished_iterations(run.id)} if run else set()
    for root, git_dir, branch in list(_trees(repo, project.root)):
        if (root / ".git").exists() and root.name.isdigit():
            place = LaneTree(int(root.name), confined_repository(project, config, root))
            saved = ref_name(run.id if run else "none", int(time.time()), "lanes")
            ref = f"{saved}-lane{root.name}"
            made = _made_inside(book, place, run.id if run else "none")
            before = book
            book = _saved(book, place, ref, cut)
            if repo.commit_of(ref):
                yield f"saved what {root} held: git show {ref}"
            if run is not None and book != before:
                journal.save_part(run.id, book)
            yield from made
        git = without_hooks(repo)
        if git.attempt("worktree", "remove", "--force", "--force", str(root)).returncode:
            remove(root)
            remove(git_dir)
        if is_of_a_lane(branch):
            git.attempt("branch", "-D", branch)
        yield f"removed {root}"
        with suppress(OSError):  # others, or a person, keep something there
            root.parent.rmdir()
            if root.parent.parent.suffix == ".lanes":  # of several projects
                root.parent.parent.rmdir()
    yield from _without_old_branches(repo, book)


def _without_old_branches(repo: Repository, book: LanesState) -> Iterator[str]:
    """Delete what earlier runs landed on and the branch of the checkout has; what, in words."""
    # Outside of any box: with the last lane its directory went, which a box would bind.
    git = without_hooks(repo)
    head = repo.head()
    for branch in filter(is_of_a_run, own_branches(repo)):
        if branch == book.branch or not git.contains(head, branch):
            continue
        if git.attempt("branch", "-D", branch).returncode == 0:
            yield f"removed branch {branch}, which your branch has"
    for ref in git.line("for-each-ref", "--format=%(refname)", LANDED).splitlines():
        if ref != book.kept_at and git.contains(head, ref):
            git.attempt("update-ref", "-d", ref)


def _made_inside(book: LanesState, place: LaneTree, run: str) -> Iterator[str]:
    """Keep the repositories that an agent made in a lane; where they are now, in words."""
    base = book.lanes.get(place.number, LaneNote()).base or place.repo.head() or "HEAD"
    where = place.root.parent / inner_repositories.KEPT / f"{run}-lane{place.number}"
    for kept in inner_repositories.keep_aside(place.repo, base, where):
        yield f"kept a repository made in {place.root}: {printable(str(kept))}"


def _saved(book: LanesState, place: LaneTree, ref: str, cut: Collection[str | None]) -> LanesState:
    """The book without a lane, whose work is a commit now; of a story that is `cut` off it is put
    back where it was, since that is still to be judged."""
    note = book.lanes.get(place.number, LaneNote())
    base = note.base or place.repo.head() or ""
    words = f"{note.story or 'a lane'}: when it was cleaned"
    work = work_of(place, base, [PROGRESS_VIEW], words, ref, known=note.work)
    lanes = dict(book.lanes)
    kept = dict(book.kept)
    lanes.pop(place.number, None)
    if note.story in cut:
        lanes[place.number] = LaneNote(story=note.story, base=base, work=work, onto=base)
    elif note.story and work:
        kept[note.story] = work
    return msgspec.structs.replace(book, lanes=lanes, kept=kept)
