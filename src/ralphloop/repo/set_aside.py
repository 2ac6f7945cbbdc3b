"""Setting a stuck story aside: its leftovers are saved, then the work tree is as it was.

Saved is what differs from the story's start, as one commit on the head it started from, under
`refs/ralph/set-aside/<run>/<n>`: one `git cherry-pick` brings it back.  What the agent committed
stays in history and is undone by an ordinary commit.  Nothing is restored where the work tree was
dirty when the run began, or where the repository stands somewhere else by now.  Twice ends as once.

Where an agent left the branch of the run and its commits add to it, the branch simply has them.
Anything else is kept under a ref, uncommitted files included, and taken out of the work tree.
"""

import os
import re
import stat
import tempfile
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ralphloop.core.model import Value
from ralphloop.repo import beneath
from ralphloop.repo.commit import CommitStatus, commit_paths, with_trailers
from ralphloop.repo.git import (
    PATHSPECS_ON_STDIN,
    Git,
    failure,
    literal_pathspecs,
    nul_ended,
    printable,
)
from ralphloop.repo.private_git import update_index
from ralphloop.repo.snapshot import Change, Snapshot, Snapshotter
from ralphloop.repo.work_tree import Repository, run_retrying_on_lock, wait_for_locks

LARGEST_SAVED_FILE = 100 * 1024 * 1024
_AS_A_PATCH = tuple(  # of a commit, or of what lies between two
    "diff-tree --root --no-commit-id -p --binary --full-index --no-renames --no-ext-diff"
    " --no-textconv".split()
)
_NOT_IN_REFS = re.compile(r"[^A-Za-z0-9_-]+")


class SetAside(Value, frozen=True, kw_only=True):
    ref: str = ""  # empty: there were none
    files: tuple[str, ...] = ()  # what went from the work tree, new files first
    left: tuple[str, ...] = ()  # paths that were not saved and stay, with the reason
    problem: str = ""  # why the work tree is not as it was, apart from `left`


class Aside(msgspec.Struct):
    repo: Repository
    measure: Snapshotter
    start: Snapshot
    ref: str
    left: list[str] = []

    def leftovers(self) -> list[Change]:
        """What differs from the start and can be saved; the rest is noted in `left`."""
        now = self.measure.tree()
        self.start = self.measure.known(self.start)
        changes = self.measure.changes(self.start.tree, now.tree)
        kept = self.measure.kept(it.before for it in changes if it.before is not None)
        self.left = []
        saved = []
        for change in changes:
            reason = "" if change.is_submodule else self._why_not(change, kept)
            if reason:
                self.left.append(f"{printable(change.path)} ({reason})")
            else:
                saved.append(change)
        return saved

    def _why_not(self, change: Change, kept: Container[str]) -> str:
        """Why a change cannot be saved and taken back; empty where it can."""
        if change.after is not None and (reason := _unsaveable(self.repo.root / change.path)):
            return reason
        is_known = change.before is None or change.before in kept
        return "" if is_known else "its earlier content was not kept"

    def held_by_head(self, changes: list[Change]) -> list[str]:
        """Those paths that HEAD holds otherwise than the story's start."""
        if self.repo.head() is None:
            return []
        differs = {it.path for it in self.measure.changes(self.start.tree, "HEAD^{tree}")}
        return [change.path for change in changes if change.path in differs]

    def commit_without_leftovers(self, changes: list[Change]) -> str:
        """Make a commit like the first head, without what it holds of the leftovers already.

        Another story's commit may have taken some of them along.
        """
        head = self.start.head or ""
        entries = self.measure.entries_changed(f"{head}^{{tree}}", self.start.tree)
        wanted = [change.path for change in changes if change.path in entries]
        if not wanted:
            return head
        with scratch_index(self.repo, head) as git:
            for path in wanted:
                entry = entries[path].after
                if entry is None:
                    git.run("update-index", "--force-remove", "--", path)
                    continue
                content = self.measure.git().run("cat-file", "blob", entry.content)
                git.run("hash-object", "-w", "--stdin", stdin=content)
                info = f"{entry.mode},{entry.content},{path}"
                git.run("update-index", "--add", "--replace", "--cacheinfo", info)
            words = with_trailers("without what was set aside", {})
            return git.line("commit-tree", git.line("write-tree"), "-p", head, "-m", words)

    def save(self, changes: list[Change], message: str, *onto: str) -> str:
        """A commit with the leftovers on top of these, or of the first head; its name."""
        base = (self.commit_without_leftovers(changes),) if self.start.head is not None else ()
        parents = onto or base
        gone: list[bytes] = []
        here: list[bytes] = []
        for change in changes:
            paths = gone if change.after is None else here
            paths.append(os.fsencode(change.path))
        with scratch_index(self.repo, *parents[:1]) as git:
            update_index(git, here, gone)
            return _keep(git, self.ref, message, *parents)

    def restore(self, changes: list[Change]) -> None:
        """Put paths back to their state at the story's start, in work tree and index."""
        restore_files(
            self.repo,
            self.start.tree,
            changes,
            ref=self.ref,
            objects=self.measure.object_variables(),
        )
        self.unstage()

    def uncovered(self) -> list[Change]:
        """New files that only the story's own rules of what is ignored had hidden."""
        return [change for change in self.leftovers() if change.before is None]

    def add(self, changes: list[Change], message: str) -> None:
        """Save these as well, in the same commit as what was saved before."""
        parents = (self.start.head,) if self.start.head is not None else ()
        with scratch_index(self.repo, self.ref) as git:
            update_index(git, [os.fsencode(change.path) for change in changes], [])
            _keep(git, self.ref, message, *parents)

    def unstage(self) -> None:
        """Forget what the story staged, also what is in the work tree no more.

        The work tree was clean when the run began, so nothing that is staged is anybody else's.
        """
        args = ("reset", "--quiet", *self.repo.only)
        ended = run_retrying_on_lock(self.repo, self.repo.git.writing(), *args)
        if ended.returncode != 0:
            raise failure(args, ended)


def set_aside(
    repo: Repository,
    measure: Snapshotter,
    *,
    run: str,
    number: int,
    story_id: str,
    start: Snapshot,
    dirty_at_start: bool = False,
) -> SetAside:
    """Save what a story left behind and, where that is safe, clean up after it."""
    aside = Aside(repo, measure, start, ref_name(run, number))
    trailers = {"Ralph-Run": run, "Ralph-Story": story_id}
    words = with_trailers(f"{story_id}: set aside", trailers)
    wait_for_locks(repo)
    changes = aside.leftovers()
    commit = repo.commit_of(aside.ref)
    is_again = bool(commit)
    if commit:  # by an attempt that was interrupted: nothing but what it saved may be restored
        saved = frozenset(repo.paths_between(aside.start.head, commit))
        changes = [change for change in changes if change.path in saved]
    elif changes:
        commit = aside.save(changes, words)
    obstacle = ""  # why the work tree must not be touched
    if dirty_at_start:
        obstacle = "the work tree was dirty when the run began"
    elif operation := repo.unfinished_operation():
        obstacle = f"a {operation} is in progress"
    elif (branch := repo.branch()) != start.branch:
        obstacle = f"the branch is {branch or 'detached'} now, it was {start.branch}"
    problem = obstacle if commit else ""  # without leftovers there is nothing to clean
    if not obstacle:
        aside.restore(changes)
        # Of an earlier attempt nobody can tell what a person made since.
        if changes and not is_again and (uncovered := aside.uncovered()):
            aside.add(uncovered, words)
            aside.restore(uncovered)
            changes += uncovered
        held = aside.held_by_head(changes)
        base = aside.start.head
        if held or repo.head() != base:
            # Undo what is committed of it, by its agent or with another story: the work tree may be
            # back where HEAD is not.
            between = repo.paths_between(base, "HEAD")
            theirs = (path for path in between if path not in measure.own)
            if changes:
                trailers["Ralph-Set-Aside"] = aside.ref
            message = with_trailers(f"{story_id}: set aside, back to its start", trailers)
            done = commit_paths(repo, [*dict.fromkeys((*held, *theirs))], message)
            problem = done.feedback if done.status is CommitStatus.REFUSED else ""
    left = tuple(aside.left[:20])
    new_first = sorted(changes, key=lambda change: change.before is not None)
    files = () if obstacle else tuple(printable(change.path) for change in new_first)
    return SetAside(ref=aside.ref if commit else "", files=files, left=left, problem=problem)


def return_saved(repo: Repository, ref: str) -> str:
    """Put saved leftovers back into the work tree, all or nothing; why not, in words."""
    patch = repo.git.attempt(*_AS_A_PATCH, ref)
    if patch.returncode or patch.timed_out or patch.overflowed:
        return "it cannot be read"
    git = repo.git.writing()
    apply = ("apply", "--whitespace=nowarn")
    there = git.attempt(*apply, "--reverse", "--check", stdin=patch.stdout)
    if there.returncode == 0:
        return ""  # nobody took it away
    ended = git.attempt(*apply, stdin=patch.stdout)
    return "" if ended.returncode == 0 else "other work has changed the same places since"


def ref_name(run: str, number: int, kind: str = "set-aside") -> str:
    """Where what left the work tree in an iteration is kept: a story's leftovers, or lost work."""
    return f"refs/ralph/{kind}/{_NOT_IN_REFS.sub('-', run) or 'run'}/{number}"


def _unsaveable(path: Path) -> str:
    """Why the content of a path cannot be put into a commit; empty where it can."""
    if path.is_symlink():
        return ""
    if path.is_dir():
        return "a repository of its own"
    if not os.access(path, os.R_OK):
        return "not readable"
    return "too large to save" if path.stat().st_size > LARGEST_SAVED_FILE else ""


def restore_files(
    repo: Repository,
    tree: str,
    changes: Iterable[Change],
    *,
    ref: str,
    objects: Mapping[str, str] | None = None,
) -> None:
    """Take these changes back in the work tree: each path as it was `before`, and as in `tree`.

    What a submodule stood on is kept at `ref` in it; what stands in the way of a file at
    `ref`-in-the-way.
    """
    files: list[str] = []
    for change in changes:
        if change.before is None:
            # A repository of its own stays: nobody else may have what is in it.
            if not _is_directory(repo.root, change.path):
                beneath.remove(repo.root, change.path)
        elif change.is_submodule:
            _stand_submodule(repo, change.path, change.before, ref)
        else:
            files.append(change.path)
    if files:
        write_files(repo, tree, files, ref=f"{ref}-in-the-way", objects=objects)


def _stand_submodule(repo: Repository, path: str, commit: str, ref: str) -> None:
    """Bring a submodule back to a commit; where it stood is kept in it."""
    git = msgspec.structs.replace(repo.git, cwd=repo.root / path).writing()
    git = git.adapted(config=(f"core.hooksPath={os.devnull}",))
    git.run("update-ref", ref, "HEAD")
    git.run("reset", "--quiet", "--keep", commit)


def write_files(
    repo: Repository,
    tree: str,
    paths: Sequence[str],
    *,
    ref: str,
    objects: Mapping[str, str] | None = None,
) -> None:
    """Write these files of a tree; what stood in their place is kept at `ref` and goes.

    `objects` is where git finds the tree, where it is not the repository's own.
    """
    # The objects of it may be ours alone, but the conversions are the user's.
    with scratch_index(repo, tree, **(objects or {})) as git:
        written = Path(git.env["GIT_INDEX_FILE"]).with_name("files")
        written.mkdir()
        args = ("checkout-index", "--force", "--quiet", f"--prefix={written}/", "-z", "--stdin")
        git.run(*args, stdin=nul_ended(map(os.fsencode, paths)))
        make_way(repo, [path for path in paths if _is_blocked(repo.root, path)], ref)
        for path in paths:
            beneath.move_in(written, path, repo.root, path, durable=False)


def make_way(repo: Repository, paths: Iterable[str], ref: str) -> None:
    """Have nothing at these paths nor on the way to them; what stood there is kept at `ref`."""
    found: dict[str, bytes] = {}
    blocked = list(paths)
    for path in blocked:
        found |= beneath.standing(repo.root, path)
    if found:
        keep_files(repo, ref, found, "files that stood in the place of others")
    for path in blocked:
        beneath.clear(repo.root, path)


def _is_blocked(root: Path, path: str) -> bool:
    """Whether a file cannot simply be put there: a directory, or no directory on the way."""
    return _is_directory(root, path) or bool(beneath.obstacle_on_the_way(root, path))


def _is_directory(root: Path, path: str) -> bool:
    found = beneath.look_at(root, path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def keep_files(repo: Repository, ref: str, files: Mapping[str, bytes], words: str) -> None:
    """Keep these contents, by paths from the repository's root, on top of HEAD."""
    head = repo.head()
    onto = () if head is None else (head,)
    with scratch_index(repo, *onto) as git:
        for path, content in files.items():
            blob = git.run("hash-object", "-w", "--stdin", stdin=content).decode().strip()
            how = ("--add", "--replace", "--cacheinfo")
            git.run("update-index", *how, f"100644,{blob},{path}")
        _keep(git, ref, with_trailers(words, {}), *onto)


@contextmanager
def scratch_index(repo: Repository, *tree: str, **env: str) -> Iterator[Git]:
    """Git with an index of its own that holds a tree, or nothing."""
    with tempfile.TemporaryDirectory(prefix="ralph-") as place:
        git = repo.git.writing().adapted(env={**env, "GIT_INDEX_FILE": f"{place}/index"})
        git.run("read-tree", *(tree or ("--empty",)))
        yield git


def _keep(git: Git, ref: str, message: str, *parents: str) -> str:
    """Commit what the index of this git holds, under a ref and nowhere else."""
    onto: list[str] = []
    for parent in parents:
        onto += ["-p", parent]
    commit = git.line("commit-tree", git.line("write-tree"), *onto, "-m", message)
    git.run("update-ref", ref, commit)
    return commit


def bring_back(
    repo: Repository, measure: Snapshotter, branch: str, *, before: Snapshot, ref: str
) -> str | None:
    """Be on `branch` again, with the commits of HEAD where they add to it; None where we cannot.

    Else it has the files of `before`, what stands elsewhere is kept under `ref`, which is returned.
    A branch that was deleted or renamed begins again, from where it was.
    """
    listed = repo.git.line("worktree", "list", "--porcelain").splitlines()
    if f"branch refs/heads/{branch}" in listed:
        return None  # another work tree stands on it: its files would no longer fit
    head = repo.head()
    tip = repo.commit_of(f"refs/heads/{branch}")
    base = tip or before.head
    if head and (not base or repo.git.contains(head, base)):
        _stand_on(repo, branch, head, tip)
        return ""
    if before.head is None:
        return None
    wait_for_locks(repo)
    there = tip if tip and repo.git.contains(tip, before.head) else before.head
    aside = Aside(repo, measure, before, ref)
    changes = aside.leftovers()
    if not repo.commit_of(ref):
        message = with_trailers(f"left {branch}: what was done elsewhere", {})
        rewritten = (tip,) if tip and tip != there else ()
        aside.save(changes, message, head or before.head, *rewritten)
    aside.restore(changes)
    _stand_on(repo, branch, there, tip)
    aside.unstage()
    # Files of ours are in no snapshot: where the other place had others, the branch's return.
    changed = repo.paths_between(head, there, "--diff-filter=d")
    if paths := [path for path in changed if path in measure.own]:
        args = ("checkout", "--quiet", there, *PATHSPECS_ON_STDIN)
        repo.git.writing().run(*args, stdin=literal_pathspecs(paths))
    return ref


def _stand_on(repo: Repository, branch: str, commit: str, tip: str) -> None:
    """Move a branch from `tip` to that commit, or begin it there, and HEAD onto it."""
    git = repo.git.writing()
    ref = f"refs/heads/{branch}"
    why = f"ralph: back on {branch}"
    git.run("update-ref", "-m", why, ref, commit, tip or "0" * len(commit))
    git.run("symbolic-ref", "-m", why, "HEAD", ref)
