"""Repositories inside of a lane: submodules, and those an agent made.

Git keeps of a repository inside another one nothing but the name of a commit; its content lies with
the work tree, and goes with it.  So before a lane is saved, used by another story or removed:

- commits made in a submodule, and what is not committed in it, are brought into the submodule's
  repository of the checkout, or into the checkout's own where that has none, under a ref;
- a repository that an agent made is no part of any commit.  It is copied into the landing tree, so
  that it is judged there as it would be in the checkout, and is moved to `<lanes>/kept` before its
  lane is used for anything else.

Git is started in a submodule only where its repository lies in the directory of ours: no sandboxed
agent writes there.  One with a repository of its own in the work tree has settings of the agent's.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ralphloop.core.merging import SUBMODULE
from ralphloop.core.model import Value
from ralphloop.errors import RepositoryError
from ralphloop.repo.git import ANYHOW, Git, first_lines, printable
from ralphloop.repo.merge import entries
from ralphloop.repo.set_aside import scratch_index
from ralphloop.repo.work_tree import Repository

KEPT = "kept"  # beside the lanes
UNCOMMITTED = "-uncommitted"
_NOT_IN_REFS = re.compile(r"[^A-Za-z0-9_]+")
_FETCH = tuple(
    "-c protocol.file.allow=always fetch --quiet --no-tags --no-write-fetch-head"
    " --no-recurse-submodules --no-auto-maintenance --update-shallow".split()
)
_LONG_S = 600.0


class Submodule(Value, kw_only=True):
    path: str
    commit: str  # that the index has of it


def submodules(repo: Repository) -> list[Submodule]:
    """What the index of a work tree holds of other repositories."""
    found = []
    for line in repo.git.run("ls-files", "-z", "--stage").split(b"\0"):
        meta, _, path = line.partition(b"\t")
        if meta.startswith(SUBMODULE.encode()):
            found.append(Submodule(path=os.fsdecode(path), commit=meta.split(b" ")[1].decode()))
    return found


def made_inside(repo: Repository, base: str) -> list[str]:
    """Repositories that came into being in a work tree and are nobody's submodules."""
    status = repo.status(deep=False).entries
    untracked = (os.fsdecode(it.path) for it in status if it.is_untracked)
    found = [path.rstrip("/") for path in untracked if path.endswith("/")]
    known = submodules(repo)
    if not known:
        return found
    named = _names(repo)
    before = entries(repo.git, base, (os.fsencode(it.path) for it in known))
    for one in known:
        is_known = one.path in named or os.fsencode(one.path) in before
        if not is_known or (repo.root / one.path / ".git").is_dir():
            found.append(one.path)
    return found


def _names(repo: Repository) -> dict[str, str]:
    """What `.gitmodules` calls each submodule, by its path."""
    args = ("config", "--file", ".gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$")
    found = (it.partition("\n") for it in repo.git.names(*args, ok=ANYHOW))
    keys = {path: key for key, _, path in found}
    return {
        path: key.removeprefix("submodule.").removesuffix(".path") for path, key in keys.items()
    }


def checked_out(repo: Repository, path: str, root: Path | None = None) -> Repository | None:
    """A submodule of a work tree of this repository; None: it is not there, or somebody else's."""
    place = (root or repo.root) / path
    if not (place / ".git").is_file():
        return None
    try:
        found = Repository.open(place)
    except RepositoryError:
        return None
    is_ours = found.root == place and found.git_dir.is_relative_to(repo.common_dir)
    return found if is_ours else None


def keep_commits(repo: Repository, home: Path, base: str, ref: str) -> None:
    """Bring what was done in submodules since `base` to where the checkout can find it."""
    known = submodules(repo)
    before = entries(repo.git, base, (os.fsencode(it.path) for it in known)) if known else {}
    for one in known:
        inside = checked_out(repo, one.path)
        head = inside.head() if inside else None
        if inside is None or head is None:
            continue
        was = before.get(os.fsencode(one.path))
        target = ref_of(ref, one.path)
        if was is None or was.name != head:
            _bring(_store(repo, home, one.path), inside.root, head, target)
        if left := _uncommitted(inside, head):
            _bring(_store(repo, home, one.path), inside.root, left, f"{target}{UNCOMMITTED}")


def ref_of(ref: str, path: str) -> str:
    """Where the commits of one submodule are kept that belong to what a ref keeps."""
    return f"{ref}-{_NOT_IN_REFS.sub('-', path)}"


def _store(repo: Repository, home: Path, path: str) -> Git:
    """The repository in which the checkout looks for the commits of a submodule."""
    place = checked_out(repo, path, home)
    git_dir = place.git_dir if place else repo.common_dir
    hooks = f"core.hooksPath={os.devnull}"
    return Git(git_dir, config=(hooks,), env={"GIT_DIR": str(git_dir)})


def _bring(store: Git, source: Path, commit: str, ref: str) -> None:
    """Have a commit of another repository under a ref."""
    git = store.writing()
    if git.attempt("cat-file", "-e", f"{commit}^{{commit}}").returncode:
        told = f"{commit}:{ref}"
        ended = git.attempt(*_FETCH, str(source), f"+{told}", timeout_s=_LONG_S)
        if ended.returncode:
            raise RepositoryError(
                f"what was committed in {printable(str(source))} cannot be kept:"
                f" {first_lines(ended.stderr)}",
                "Bring it into your checkout's submodule yourself (git fetch), then: ralph run"
                " --continue",
            )
    git.run("update-ref", ref, commit)


def _uncommitted(inside: Repository, head: str) -> str:
    """A commit of what differs from its HEAD in a submodule; empty where nothing does."""
    if not inside.dirty_paths(deep=False):
        return ""
    with scratch_index(inside, head) as git:
        git.attempt("add", "--all", "--ignore-errors", "--", ":/", timeout_s=_LONG_S)
        tree = git.line("write-tree")
        if tree == git.line("rev-parse", f"{head}^{{tree}}"):
            return ""
        commit = git.line("commit-tree", tree, "-p", head, "-m", "not committed in the submodule")
        git.run("update-ref", "refs/ralph/uncommitted", commit)  # to be fetched by its name
        return commit


def check_out_kept(repo: Repository, home: Path) -> None:
    """Make the submodules whose commits are in the checkout alone: no remote could give them."""
    missing = [it for it in submodules(repo) if not os.path.lexists(repo.root / it.path / ".git")]
    names = _names(repo) if missing else {}
    for one in missing:
        store = _store(repo, home, one.path)
        kept = ("for-each-ref", "--count=1", f"--points-at={one.commit}", "refs/ralph/")
        is_kept = bool(store.line(*kept, ok=ANYHOW))
        if one.path not in names or checked_out(repo, one.path, home) is None or not is_kept:
            continue
        key = f"submodule.{names[one.path]}.url"
        git = repo.git.confined(None).writing()
        url = git.line("config", "--get", key, ok=ANYHOW)
        local = ("-c", "protocol.file.allow=always", "-c", f"{key}={store.cwd}")
        update = ("submodule", "--quiet", "update", "--init", "--", one.path)
        git.attempt(*local, *update, timeout_s=_LONG_S)
        made = checked_out(repo, one.path)
        if url and made is not None:  # what is pushed goes where it always goes
            made.git.writing().attempt("remote", "set-url", "origin", url)


def follow(repo: Repository, home: Path, ref: str = "") -> None:
    """Let every submodule that is checked out stand on the commit that the index has of it.

    `ref` names what is kept of a lane: what was not committed in its submodules is brought along.
    """
    if not (repo.root / ".gitmodules").exists():
        return
    for one in submodules(repo):
        place = checked_out(repo, one.path)
        if place is None:
            continue
        git = place.git.writing().adapted(config=(f"core.hooksPath={os.devnull}",))
        store = _store(repo, home, one.path)
        left = ""
        if ref:
            args = ("rev-parse", "--verify", "--quiet")
            left = store.line(*args, f"{ref_of(ref, one.path)}{UNCOMMITTED}", ok=ANYHOW)
        for commit in filter(None, (one.commit, left)):
            if git.attempt("cat-file", "-e", f"{commit}^{{commit}}").returncode:
                git.attempt(*_FETCH, str(store.cwd), commit, timeout_s=_LONG_S)
        # Where nobody has the commit, it stays where it was; whoever measures it sees that.
        git.attempt("checkout", "--quiet", "--force", "--detach", one.commit, timeout_s=_LONG_S)
        git.attempt("clean", "-ffdq", timeout_s=_LONG_S)
        if left and git.attempt("read-tree", "--reset", "-u", left).returncode == 0:
            git.attempt("reset", "--quiet")


def keep_aside(repo: Repository, base: str, where: Path) -> Iterator[Path]:
    """Move the repositories that an agent made out of a lane; where each is now."""
    for path in made_inside(repo, base):
        target = where / path
        if os.path.lexists(target):
            target = where / f"{path}-{os.urandom(4).hex()}"
        target.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            (repo.root / path).rename(target)
            yield target
