"""The base merged into the branch where both are in conflict: a commit with markers, then a story.

The merge is made in objects, by the rules that lanes land by, and the checkout goes forward to it.
Its commit stays here until a story has solved it and the checks are green: what has a marker left
is not pushed, and what could not be solved is taken back, kept under a ref of its own.
"""

import os
import re
from typing import NamedTuple

from ralphloop.core.following import BaseMerge, Complaint, ComplaintKind
from ralphloop.errors import RepositoryError
from ralphloop.lanes.conflicts import words_of
from ralphloop.repo.commit import with_trailers
from ralphloop.repo.git import ANYHOW, Git, failure, printable
from ralphloop.repo.merge import Labels, merged
from ralphloop.repo.work_tree import Repository
from ralphloop.text.plain import counted

_MOST_TOLD = 20
_MARKER = re.compile(rb"^(?:<{7,}|>{7,})(?: |\r?$)", re.MULTILINE)
_TIMEOUT_S = 600.0


class PreparedMerge(NamedTuple):
    merge: BaseMerge
    complaint: Complaint


def prepare_merge(repo: Repository, base: str, commit: str) -> PreparedMerge:
    """The merge of a base into HEAD as a commit that nothing points to, and what is in conflict."""
    git = repo.git
    before = git.line("rev-parse", "HEAD")
    common = git.line("merge-base", before, commit)
    labels = Labels(landed=f"{base} {commit[:10]}", own=f"this branch {before[:10]}")
    found = merged(repo, common, commit, before, labels)
    subject = f"Merge {base} into {git.line('branch', '--show-current')}"
    message = with_trailers(subject, {"Ralph-Merge": commit})
    made = git.writing().line("commit-tree", found.tree, "-p", before, "-p", commit, "-m", message)
    paths = [printable(os.fsdecode(one.path)) for one in found.conflicts]
    count = counted(len(paths), "path", "is")
    task = (
        f"{base} was merged into this branch, and {count} in conflict. Solve it so that what came"
        f" from {base} keeps working and so does what this branch brought; leave no conflict"
        f" marker. What landed is {base}, yours is this branch as it was: {before}."
    )
    lines = [
        task,
        f"What came from {base}: git diff {before}...{commit}",
        f"What this branch brought: git diff {commit}...{before}",
    ]
    lines += [f"- {words_of(one, before)}" for one in found.conflicts[:_MOST_TOLD]]
    if len(paths) > _MOST_TOLD:
        lines.append(f"- and {len(paths) - _MOST_TOLD} more")
    complaint = Complaint(
        kind=ComplaintKind.CONFLICT,
        item=f"conflict {commit[:12]}",
        title=f"Solve the conflict with {base}",
        text="\n".join(lines),
        is_settled=True,
    )
    return PreparedMerge(
        BaseMerge(before=before, base=commit, commit=made, paths=tuple(paths)), complaint
    )


def go_forward(git: Git, merge: BaseMerge) -> None:
    """Stand on the merge, where nobody's changes are in the way; raises where they are."""
    if git.contains("HEAD", merge.commit):
        return
    quiet = git.writing().adapted(config=(f"core.hooksPath={os.devnull}",))
    args = ("merge", "--ff-only", "--quiet", merge.commit)
    ended = quiet.attempt(*args, timeout_s=_TIMEOUT_S)
    if ended.returncode:
        raise RepositoryError(
            f"the merge of the base could not be brought into the checkout:"
            f" {failure(args, ended).message}",
            "Commit or take away what you changed, then the same command again.",
        )


def has_markers(git: Git, merge: BaseMerge) -> list[str]:
    """The paths of a merge that still have a conflict marker in HEAD."""
    found = []
    for path in merge.paths:
        blob = git.line("rev-parse", "--verify", "--quiet", f"HEAD:{path}", ok=ANYHOW)
        if blob and _MARKER.search(git.run("cat-file", "blob", blob)):
            found.append(path)
    return found


def take_back(git: Git, merge: BaseMerge, run: str) -> str:
    """Stand where we stood before the merge, and keep the attempt; the ref that keeps it."""
    ref = f"refs/ralph/merges/{run}/{merge.base[:12]}"
    head = git.line("rev-parse", "HEAD")
    if git.contains("HEAD", merge.commit):
        git.writing().run("update-ref", ref, head)
        git.writing().run("reset", "--keep", "--quiet", merge.before, timeout_s=_TIMEOUT_S)
    return ref
