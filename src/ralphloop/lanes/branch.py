"""The run's branch among others: who moved it, who stands on it, and how what landed stays known.

A ref of ours (`refs/ralph/landed/<run>`) moves with the branch in one step, so what landed is known
whatever happens to the branch.  One that was deleted is made again.  Commits that a person put on
top of it are taken in: stories land on them.  One that was moved elsewhere, or by an agent, or that
somebody stands on is left to them: the run goes on beside it, on a branch that has everything, and
says so.
"""

from collections.abc import Iterable
from contextlib import suppress

from ralphloop.atomic import kill_point
from ralphloop.core.model import Value
from ralphloop.errors import RepositoryError
from ralphloop.lanes.branch_names import branches_for, who_stands_on
from ralphloop.lanes.pool import LanePool
from ralphloop.lanes.worktrees import SIGNED, reset_to_commit
from ralphloop.repo.commit import with_trailers
from ralphloop.repo.git import first_lines
from ralphloop.repo.set_aside import scratch_index
from ralphloop.repo.work_tree import Repository
from ralphloop.room import read_regular
from ralphloop.text.plain import counted, one_line, some

_NAMED = 3


class MadeBranch(Value, kw_only=True):
    """A branch for stories to land on, and why it is not the one that was wanted, in words."""

    name: str
    instead: str = ""


def make_branch(repo: Repository, wanted: Iterable[str], tip: str) -> MadeBranch:
    """Make the first of these names that git takes a branch at this commit, or find it there."""
    git = repo.git.writing()
    problem = ""
    first = ""
    for name in wanted:
        ref = f"refs/heads/{name}"
        if repo.commit_of(ref) == tip:
            return MadeBranch(name=name, instead=problem)
        told = ("-m", "ralph: a run in lanes")
        ended = git.attempt("update-ref", *told, ref, tip, "0" * len(tip))
        if ended.returncode == 0:
            return MadeBranch(name=name, instead=problem)
        first = first or name
        problem = problem or f"{first} cannot be made ({first_lines(ended.stderr)})"
    raise RepositoryError(f"no branch could be made: {problem}", "Delete the one in the way.")


def keep_up(pool: LanePool) -> None:
    """Look at what somebody did to the branch since it was moved last, and say what follows."""
    checkout = pool.checkout
    book = pool.book
    branch = f"refs/heads/{book.branch}"
    git = checkout.git
    ours = pool.tip()
    theirs = checkout.commit_of(branch)
    if not checkout.commit_of(book.kept_at):
        git.writing().run("update-ref", book.kept_at, ours)
    if theirs == ours:
        return
    if not theirs:
        made = make_branch(checkout, [book.branch, *branches_for(checkout, pool.run.id)], ours)
        pool.land_on(made.name)
        again = "it" if made.name == book.branch else made.name
        told = f"the branch {book.branch} was deleted by somebody"
        pool.say(f"{told}; {again} was made again, with all that landed")
    elif _was_an_agent(pool, ours, theirs):
        _go_on_beside(pool, ours, f"{book.branch} was moved by an agent to {theirs[:12]}")
    elif git.contains(theirs, ours):
        git.writing().run("update-ref", book.kept_at, theirs, ours)
        names = git.line("log", "--format=%h %s (%an)", f"{ours}..{theirs}", "--").splitlines()
        said = some([one_line(name, 80) for name in names], _NAMED)
        pool.say(f"{book.branch} has commits of somebody else, stories land on top: {said}")
        reset_to_commit(pool.landing, theirs)
        pool.workspace.touched()
    else:
        _go_on_beside(pool, ours, _was_moved(pool, theirs, ours))


def _was_an_agent(pool: LanePool, ours: str, theirs: str) -> bool:
    """Whether the agent of a lane moved the branch, or made what is new on it: nobody judged that.

    Git signs what it does with its lane's name, in commits and in the branch's reflog.
    """
    repo = pool.checkout
    signed = repo.git.line("log", "--format=%cn", f"{ours}..{theirs}", "--").splitlines()
    log = b""
    with suppress(OSError):
        log = read_regular(repo.common_dir / "logs" / "refs" / "heads" / pool.book.branch)
    signed += [line.decode("utf-8", "replace") for line in log.splitlines()[-1:]]
    return any(SIGNED in name for name in signed)


def _was_moved(pool: LanePool, theirs: str, ours: str) -> str:
    """That the branch no longer has what landed, in words."""
    count = int(pool.checkout.git.line("rev-list", "--count", f"{theirs}..{ours}", "--"))
    return (
        f"{pool.book.branch} was moved by somebody to {theirs[:12]} and lacks"
        f" {counted(count, 'landed commit')}, which {'is' if count == 1 else 'are'} kept"
    )


def _go_on_beside(pool: LanePool, tip: str, why: str) -> None:
    """Leave the branch to whoever has it and land on another one, which begins at this commit."""
    checkout = pool.checkout
    book = pool.book
    names = [name for name in branches_for(checkout, pool.run.id) if name != book.branch]
    made = make_branch(checkout, names, tip)
    pool.keep(left=(*book.left, book.branch))
    pool.land_on(made.name)
    checkout.git.writing().run("update-ref", book.kept_at, tip)
    pool.say(f"{why}; stories land on {made.name} from now on, which has all that landed")


def land(pool: LanePool) -> None:
    """Move the branch to what was committed in the landing tree; done once by whoever comes far."""
    head = pool.landing.repo.head() or ""
    if pool.checkout.git.contains(pool.tip(), head):
        return  # an earlier process came this far
    kill_point("landing.committed")
    move(pool, head, "ralph: landed")
    kill_point("landing.landed")


def move(pool: LanePool, commit: str, told: str) -> None:
    """Move the branch and our ref to a commit; beside it where it is not ours to move."""
    checkout = pool.checkout
    book = pool.book
    tip = pool.tip()
    branch = f"refs/heads/{book.branch}"
    git = checkout.git
    theirs = checkout.commit_of(branch)
    if theirs == commit:  # an earlier process came this far
        git.writing().run("update-ref", book.kept_at, commit)
        return
    if place := who_stands_on(checkout, book.branch):
        _go_on_beside(pool, commit, f"somebody stands on {book.branch} ({place})")
        return
    if theirs and (theirs != tip or not git.contains(commit, tip)):
        # It moved in the very moment between the checks and now.
        _go_on_beside(pool, commit, f"{book.branch} was moved by somebody to {theirs[:12]}")
        return
    none = "0" * len(commit)
    lines = [
        f"update {branch} {commit} {theirs or none}",
        f"update {book.kept_at} {commit}",
    ]
    order = "".join(f"{line}\n" for line in lines).encode()  # all of it, or nothing
    git.writing().run("update-ref", "-m", told, "--stdin", stdin=order)


def bring_list(pool: LanePool, text: bytes, head: str, subject: str) -> None:
    """A commit with this text of the list, or the one it has, on the run's branch; after `head` as
    well."""
    checkout = pool.checkout
    path = pool.home.site.listed
    tip = pool.tip()
    with scratch_index(checkout, tip) as git:
        if text:
            args = ("hash-object", "-w", f"--path={path}", "--stdin")
            blob = git.run(*args, stdin=text).decode().strip()
            mode = git.line("ls-files", "--stage", "--", f":/{path}").partition(" ")[0]
            git.run("update-index", "--add", "--cacheinfo", f"{mode or '100644'},{blob},{path}")
        tree = git.line("write-tree")
        parents = [tip, head] if head and not git.contains(tip, head) else [tip]
        if len(parents) > 1 and git.contains(head, tip):
            parents = [head]
        commit = parents[0]
        if len(parents) > 1 or tree != git.line("rev-parse", f"{commit}^{{tree}}"):
            onto = [part for parent in parents for part in ("-p", parent)]
            words = with_trailers(subject, {})
            commit = git.line("commit-tree", tree, *onto, "-m", words)
    if commit == tip:
        if pool.landing.repo.head() != tip:  # git was killed before it stood there
            reset_to_commit(pool.landing, tip)
            pool.workspace.touched()
        return
    kill_point("edited.committed")
    move(pool, commit, f"ralph: {subject}")
    kill_point("edited.landed")
    reset_to_commit(pool.landing, commit)
    pool.workspace.touched()
