"""Orders and reports as commits on the shared remote.

A parcel is a commit whose tree holds a few files of ours.  Its parent is a commit with the files of
a work tree, and the parent of that is the commit on which the work tree stood.  So nothing of ours
is ever among somebody's files, and git sends only what the other side lacks.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ralphloop.core import Value
from ralphloop.errors import RepositoryError
from ralphloop.lanes import inner_repositories
from ralphloop.lanes.worktrees import LaneTree, reset_to_commit, without_hooks
from ralphloop.repo.git import first_lines, never
from ralphloop.repo.set_aside import scratch_index
from ralphloop.repo.work_tree import Repository, is_name, wait_for_locks

_LONG_S = 900.0
_MOST_BYTES = 64 << 20  # of one file in a parcel


class RemoteAway(RepositoryError):
    """The shared remote does not answer: that says nothing of what was asked of it."""


class NoParcel(RepositoryError):
    """What came is none of ours, or holds nothing that can be read."""


class Parcel(Value, kw_only=True):
    """A parcel that has arrived: its files, and what lies beneath."""

    commit: str
    files: str  # the commit with the files of the work tree
    head: str  # the commit on which that stood
    content: Mapping[str, bytes]


class SharedRemote(NamedTuple):
    """Where orders and reports lie, seen from one repository."""

    repo: Repository
    address: str  # a name of the repository's, or an address
    is_over: Callable[[], bool] = never  # whether nobody waits for its answer any more

    def until(self, is_over: Callable[[], bool]) -> "SharedRemote":
        """The same, waited for until that is so: one may take a connection and say nothing."""
        return self._replace(is_over=is_over)

    def send(self, commit: str, ref: str) -> None:
        """Have the remote keep a commit under a ref."""
        self._ask("push", "--quiet", "--force", self.address, f"{commit}:{ref}")

    def fetch(self, ref: str) -> str:
        """Bring a ref of ours here; the commit it names."""
        self._ask("fetch", "--quiet", "--no-tags", self.address, f"+{ref}:{ref}")
        return self.repo.commit_of(ref)

    def names(self, ref: str) -> str:
        """The commit that a ref of the remote names; empty where it has none."""
        said = self._ask("ls-remote", self.address, ref).split()
        return said[0].decode() if said else ""

    def forget(self, refs: Iterable[str]) -> None:
        """Delete refs of ours, there and here; what is gone already is no matter."""
        wanted = list(refs)
        git = without_hooks(self.repo)
        for ref in wanted:
            git.attempt("update-ref", "-d", ref)
        gone = (f":{ref}" for ref in wanted)
        git.until(self.is_over).attempt("push", "--quiet", self.address, *gone, timeout_s=_LONG_S)

    def listed(self, pattern: str) -> list[str]:
        """The refs of the remote that match."""
        lines = self._ask("ls-remote", self.address, pattern).decode().splitlines()
        return [line.split("\t")[1] for line in lines if "\t" in line]

    def _ask(self, *args: str) -> bytes:
        git = without_hooks(self.repo).adapted(config=("fetch.fsckObjects=true",))
        ended = git.until(self.is_over).attempt(*args, timeout_s=_LONG_S)
        if ended.stopped:
            raise RemoteAway(f"git {args[0]} {self.address}: stopped before it had answered")
        if ended.returncode != 0 or ended.timed_out:
            said = first_lines(ended.stderr) or f"exit code {ended.returncode}"
            raise RemoteAway(f"git {args[0]} {self.address}: {said}")
        return ended.stdout


def files_of(repo: Repository, leave: Iterable[str], words: str) -> str:
    """A commit on HEAD with everything in the work tree, but what git ignores and `leave` names."""
    wait_for_locks(repo)
    head = repo.head()
    if head is None:
        raise RepositoryError("there is no commit yet", "Commit what you have, then start again.")
    inner = inner_repositories.made_inside(repo, head)
    with scratch_index(repo, head) as git:
        but = (f":(exclude,top,literal){path}" for path in inner)
        ended = git.attempt("add", "--all", "--ignore-errors", "--", ":/", *but, timeout_s=_LONG_S)
        if ended.returncode not in (0, 1):  # what cannot be read is left out, as by a commit
            said = first_lines(ended.stderr)
            raise RepositoryError(f"the files in {repo.root} could not be read: {said}")
        specs = [f":(top,literal){path}" for path in leave]
        if specs:
            git.run("rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--", *specs)
        return _commit(git.line("write-tree"), repo, words, head)


def pack(repo: Repository, content: Mapping[str, bytes], words: str, files: str) -> str:
    """A parcel with these files, on top of a commit of a work tree's."""
    git = repo.git.writing()
    lines = []
    for name, data in content.items():
        blob = git.run("hash-object", "-w", "--stdin", "--no-filters", stdin=data or b"\n").decode()
        lines.append(f"100644 blob {blob.strip()}\t{name}\n")
    tree = git.run("mktree", stdin="".join(lines).encode()).decode().strip()
    return _commit(tree, repo, words, files)


def _commit(tree: str, repo: Repository, words: str, parent: str) -> str:
    who = {"NAME": "ralph", "EMAIL": "ralph@localhost"}
    env = {f"GIT_{role}_{key}": it for role in ("AUTHOR", "COMMITTER") for key, it in who.items()}
    git = repo.git.writing().adapted(env=env, config=("commit.gpgsign=false",))
    return git.line("commit-tree", tree, "-p", parent, "-m", words)


def unpack(repo: Repository, commit: str) -> Parcel:
    """What a parcel holds, whoever made it; raises where it is none."""
    beneath = [repo.commit_of(f"{commit}~{depth}") for depth in (1, 2)]
    if not is_name(commit) or not all(beneath):
        raise NoParcel(f"{commit[:12]} is no parcel of ralph's")
    content = dict[str, bytes]()
    for line in repo.git.run("ls-tree", "-z", "-l", commit).split(b"\0"):
        if not line:
            continue
        about, _, name = line.partition(b"\t")
        kind, blob, size = about.split()[1:]
        if kind == b"blob" and int(size) <= _MOST_BYTES:
            content[os.fsdecode(name)] = repo.git.run("cat-file", "blob", blob.decode())
    return Parcel(commit=commit, files=beneath[0], head=beneath[1], content=content)


def lay(place: LaneTree, parcel: Parcel) -> None:
    """Have a work tree of ours hold the files of a parcel, standing where they stood."""
    reset_to_commit(place, parcel.head)
    git = place.git
    git.run("read-tree", "--reset", "-u", f"{parcel.files}^{{tree}}", timeout_s=_LONG_S)
    git.run("reset", "--quiet", "--mixed", timeout_s=_LONG_S)
