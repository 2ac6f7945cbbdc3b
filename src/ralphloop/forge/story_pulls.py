"""A branch for each story of a run, so that each can be a pull request of its own.

A story's change is put onto the base in objects, without the files that ralph keeps for itself (the
list, progress.txt).  Where it does not go there alone it goes onto the branch of an earlier story:
of one it depends on, else of the newest that fits.  The same story on the same base is the same
commit, so that nothing is pushed twice.  Checks ran on all of the run together; whether a part is
green by itself is for the checks there to say.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from ralphloop.core.merging import Entry, Put
from ralphloop.repo.git import Git
from ralphloop.repo.merge import Labels, entries, merged, tree_of_index
from ralphloop.repo.set_aside import scratch_index
from ralphloop.repo.taking_out import ShownChange, shown_change
from ralphloop.repo.work_tree import OwnFiles, Repository
from ralphloop.stories.names import slug


class StoryWork(NamedTuple):
    """A passed story and what shows its change."""

    story: str
    shows: Sequence[str]  # what `git show` takes, oldest first
    depends_on: Sequence[str] = ()


class StoryBranch(NamedTuple):
    story: str
    name: str
    commit: str
    base: str  # the branch it goes to: the base, or that of the story it stands on
    stands_on: str = ""  # that story; empty: on none


class SplitRun(NamedTuple):
    branches: list[StoryBranch]
    left: dict[str, str]  # stories that have none, and why


class _Ground(NamedTuple):
    """Something that a story can be put onto."""

    branch: str
    commit: str
    story: str = ""


def split_run(
    repo: Repository, own: OwnFiles, run: str, works: Sequence[StoryWork], base: str, tip: str
) -> SplitRun:
    """The branches of a run's stories, in their order; `tip` is the commit of the base."""
    branches: list[StoryBranch] = []
    left: dict[str, str] = {}
    for work in works:
        made = _placed(repo, own, run, work, _grounds(work, branches, base, tip))
        if made is None:
            left[work.story] = "it goes onto no other branch without a conflict"
        elif repo.git.contains(tip, made.commit) or not _adds(repo.git, made, branches, tip):
            left[work.story] = f"{base} has all of it already"
        else:
            branches.append(made)
    return SplitRun(branches, left)


def _grounds(
    work: StoryWork, branches: Sequence[StoryBranch], base: str, tip: str
) -> list[_Ground]:
    """What a story can be put onto, the best first."""
    earlier = [_Ground(one.name, one.commit, one.story) for one in reversed(branches)]
    needed = [one for one in earlier if one.story in work.depends_on]
    others = [one for one in earlier if one not in needed]
    return [*needed, _Ground(base, tip), *others]


def _placed(
    repo: Repository, own: OwnFiles, run: str, work: StoryWork, grounds: Sequence[_Ground]
) -> StoryBranch | None:
    """A story on the first ground that takes it; None: none does."""
    shown = [shown_change(repo, show) for show in work.shows]
    for ground in grounds:
        commit = _commit_on(repo, own, shown, ground.commit)
        if commit:
            name = f"ralph/{run}-{slug(work.story)}"
            return StoryBranch(work.story, name, commit, ground.branch, ground.story)
    return None


def _adds(git: Git, made: StoryBranch, branches: Sequence[StoryBranch], tip: str) -> bool:
    """Whether the commit differs from what it stands on."""
    below = next((one.commit for one in branches if one.name == made.base), tip)
    return git.line("rev-parse", f"{made.commit}^{{tree}}") != git.line(
        "rev-parse", f"{below}^{{tree}}"
    )


def _commit_on(repo: Repository, own: OwnFiles, shown: Sequence[ShownChange], onto: str) -> str:
    """One commit with a story's change on top of another; empty where both are in conflict."""
    if not shown:
        return ""
    tree = onto
    labels = Labels(landed=onto[:10], own="the story")
    for change in shown:
        work = _without_own(repo, own, change)
        found = merged(repo, change.old, tree, work, labels)
        if found.conflicts:
            return ""
        tree = found.tree
    last = shown[-1].new
    told = repo.git.line("log", "-1", "--format=%an%x00%ae%x00%aI%x00%cI", last, "--").split("\0")
    names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE")
    git = repo.git.writing().adapted(env=dict(zip(names, told, strict=True)))
    message = repo.git.run("log", "-1", "--format=%B", last, "--")
    made = git.run("commit-tree", tree, "-p", onto, "-F", "-", stdin=message)
    return made.decode().strip()


def _without_own(repo: Repository, own: OwnFiles, change: ShownChange) -> str:
    """The tree after a change, with the files that are ours as they were before it."""
    ours = [path for path in repo.paths_between(change.old, change.new) if path in own]
    if not ours:
        return change.new
    names = [os.fsencode(path) for path in ours]
    before = entries(repo.git, change.old, names)
    puts = {
        path: Put(entry=Entry(mode=entry.mode, name=entry.name)) for path, entry in before.items()
    }
    with scratch_index(repo, change.new) as git:
        return tree_of_index(git, puts, [path for path in names if path not in before])
