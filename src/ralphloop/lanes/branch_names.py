"""The names that lanes take in a repository, and who else stands on one of them.

Branches are common to all work trees of a repository.  Those of lanes carry the name of the work
tree and the project they belong to, unless that is the root of the main one.  Where a branch is
named `ralph`, git makes no `ralph/…` beside it: then all of ours begin with `ralph-lanes/`.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ralphloop.core.run_state import LanesState
from ralphloop.repo.work_tree import Repository, project_prefix

LANDED = "refs/ralph/landed/"
_PREFIX = "ralph"
_OTHER_PREFIX = "ralph-lanes"
_MOST_NAMES = 100
_OWN = re.compile(r"ralph(?:-lanes(?:-\d+)?)?/(lane-|\d{8}-)")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


def own_prefix(repo: Repository) -> str:
    """What the names of our branches begin with."""
    names = (_PREFIX, _OTHER_PREFIX, *(f"{_OTHER_PREFIX}-{n}" for n in range(2, _MOST_NAMES)))
    return next(name for name in names if not repo.commit_of(f"refs/heads/{name}"))


def branches_for(repo: Repository, run: str) -> Iterator[str]:
    """Names of branches that stories of a run may land on, the best one first."""
    first = f"{own_prefix(repo)}/{run}"
    yield first
    yield from (f"{first}-{n}" for n in range(2, _MOST_NAMES))


def owner_of(home: Repository, project: Path) -> str:
    """Whose lanes these are, as a part of a name; empty for the root of the main work tree."""
    tree = "" if home.git_dir == home.common_dir else home.git_dir.name
    return part_of_name("-".join(filter(None, (tree, project_prefix(home.root, project)))))


def part_of_name(text: str) -> str:
    """The same with nothing that a branch or a directory cannot be named."""
    return _NOT_IN_NAMES.sub("-", text).strip("-")


def lane_branch(home: Repository, project: Path, number: int) -> str:
    """The branch that the agent of a lane sees; its commits never leave it."""
    owner = owner_of(home, project)
    return f"{own_prefix(home)}/lane-{number}" + (f".{owner}" if owner else "")


def is_of_a_lane(branch: str) -> bool:
    found = _OWN.match(branch)
    return found is not None and found[1] == "lane-"


def is_of_a_run(branch: str) -> bool:
    """Whether we named the branch, for stories to land on."""
    found = _OWN.match(branch)
    return found is not None and found[1] != "lane-"


def own_branches(repo: Repository) -> list[str]:
    """All branches that bear a name of ours."""
    args = ("for-each-ref", "--format=%(refname:short)", f"refs/heads/{_PREFIX}*/*")
    return [name for name in repo.git.line(*args).splitlines() if _OWN.match(name)]


def landed_ref(run: str) -> str:
    """The ref of ours that holds the newest commit that landed in a run."""
    return f"{LANDED}{_NOT_IN_NAMES.sub('-', run) or 'run'}"


def who_stands_on(repo: Repository, branch: str) -> Path | None:
    """The work tree that has the branch checked out; None where nobody does."""
    wanted = f"branch refs/heads/{branch}"
    for entry in repo.git.line("worktree", "list", "--porcelain").split("\n\n"):
        first, *lines = entry.splitlines() or [""]
        if wanted in lines:
            return Path(first.removeprefix("worktree "))
    return None


def holds_what_landed(repo: Repository, book: LanesState) -> str:
    """A name for all that landed: the run's branch, or our ref where that was moved elsewhere."""
    kept = repo.commit_of(book.kept_at) if book.kept_at else ""
    tip = repo.commit_of(f"refs/heads/{book.branch}")
    return book.kept_at if kept and tip and not repo.git.contains(tip, kept) else book.branch
