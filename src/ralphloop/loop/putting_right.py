"""What an agent broke that is not its own, put right before anything is measured or written.

`git clean -fdx` takes `.ralph/` with it, agents like branches of their own, and a merge may be left
half done.  None of these is worth a night: the first two can be put right, the third is for the
agent itself to end.

History: HEAD after an agent has to contain HEAD before it.
Where it does not, the commits that left are kept under a ref and named, the agent is asked about it
once, and stories whose commits went with them are open again.

What only a person can put right (a branch, HEAD, a full disk) is named before the next start.
"""

from __future__ import annotations

from ralphloop.atomic import write_atomic
from ralphloop.core.story_state import StoryState
from ralphloop.errors import Level
from ralphloop.loop.requests import add_note
from ralphloop.loop.runner import Runner
from ralphloop.repo import object_store
from ralphloop.repo.measures import Snapshot
from ralphloop.repo.preflight import disk_space
from ralphloop.repo.work_tree import Lost, Repository, contains, has_again, keep_lost
from ralphloop.room import claim
from ralphloop.text.plain import counted, one_line


def put_back_own_files(runner: Runner) -> None:
    """The lock and the journal, where our directory was deleted; what is open is still known."""
    project, deleted = runner.setup.project, False
    claim(project.directory)
    if runner.lock is not None:
        deleted = runner.lock.renew_if_deleted(runner.clock())
    if runner.journal.put_back_if_deleted() or deleted:
        object_store.prepare(project.directory / "objects")
        gone = "the journal was put back, transcripts and reports are gone"
        runner.remarks = (*runner.remarks, f"{project.directory.name} was deleted: {gone}")


def back_on_the_branch(runner: Runner, number: int, before: Snapshot, listed: bytes) -> str:
    """Be on the branch of the run again; words where what the agent did elsewhere stays there."""
    repo, branch = runner.setup.repo, runner.session.frozen.branch
    if repo is None or not branch or runner.setup.options.session:
        return ""
    from ralphloop.repo.set_aside import bring_back, is_on, ref_name, return_to_branch

    if is_on(repo, branch):
        return ""
    there = repo.branch() or "no branch"
    add_note(runner, f"Do not switch branches: stay on {branch}.")
    if return_to_branch(repo, branch, since=before.head, head=repo.head()):
        remark = f"the agent switched from {branch} to {there}; its commits are on {branch} again"
        runner.remarks = (*runner.remarks, remark)
        return ""
    if repo.unfinished_operation() is not None:
        return ""  # for the agent itself to end
    ref = ref_name(runner.run, number, "lost")
    measure, own = runner.measure, runner.setup.own
    if not bring_back(repo, measure, branch, before=before, ref=ref, own=own):
        return f"the agent left {branch} for {there}"
    known = runner.setup.stories
    if known is not None and listed:
        write_atomic(known.path, listed, within=runner.setup.within)
    return (
        f"the agent left {branch} for {there}: what it did there is kept at {ref}, not on {branch}"
    )


def left_open(runner: Runner) -> str:
    """The operation the agent left git in the middle of, in words with the way out."""
    repo = runner.setup.repo
    problem = repo.unfinished() if repo is not None else None
    runner.session.left_open = problem.message if problem else ""
    return f"{problem.message}: {problem.fix}" if problem else ""


def lost_heads(
    runner: Runner, number: int, state: StoryState, before: Snapshot, after: Snapshot
) -> dict[str, str]:
    """What left the branch while agents worked on the story: the old heads, each with its words."""
    repo, branch = runner.setup.repo, runner.session.frozen.branch
    if repo is None or (after.branch or "") != branch:
        return state.lost
    still = {h: words for h, words in state.lost.items() if not has_again(repo, after.head, h)}
    old = before.head
    if old is None or old == after.head or contains(repo, after.head, old):
        return still
    from ralphloop.repo.set_aside import ref_name

    words = _kept(repo, branch, ref_name(runner.run, number, "lost"), old, after.head)
    # Undoing a rewrite takes commits out too: the ones that were in its place.
    return still if state.lost and not still else {**still, old: words}


def _kept(repo: Repository, branch: str, ref: str, old: str, new: str | None) -> str:
    lost = keep_lost(repo, ref, old, new)
    if not lost.kept:
        return f"history was rewritten: what {branch} held is gone from the repository"
    return (
        f"history was rewritten: {counted(lost.count, 'commit')} left {branch or 'HEAD'}"
        f" ({_named(lost)}); kept at {ref}"
    )


def _named(lost: Lost) -> str:
    more = f" and {lost.count - len(lost.named)} more" if lost.count > len(lost.named) else ""
    return ", ".join(one_line(name, 60) for name in lost.named) + more


def trouble(runner: Runner, now: Snapshot) -> str:
    """Why the next start has to wait until somebody put it right, or nothing."""
    full = [f for f in disk_space(runner.setup.project.root) if f.level is Level.ERROR]
    if full:
        return full[0].message
    repo, branch = runner.setup.repo, runner.session.frozen.branch
    if repo is None or not branch:
        return ""
    if problem := repo.unfinished():
        # One that the agent left is for the agent to end, as often as it has attempts.
        theirs = problem.message == runner.session.left_open
        return "" if theirs else f"{problem.message}: {problem.fix}"
    if now.branch != branch:
        there = now.branch or "detached"
        return f"the branch is {there} now, the run works on {branch}: `git switch {branch}`"
    return ""


def moved_head(runner: Runner, now: Snapshot) -> str:
    """Somebody committed while no agent ran: a person should say that this is meant."""
    expected = runner.session.expected_head
    if not expected or now.head == expected:
        return ""
    return f"HEAD moved to {(now.head or 'nothing')[:12]} while no agent ran"
