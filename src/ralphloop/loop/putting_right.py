"""What an agent broke that is not its own, put right before anything is measured or written.

`git clean -fdx` takes `.ralph/` with it, agents like branches of their own, and a merge may be left
half done.  None of these is worth a night: the first two can be put right, the third is for the
agent itself to end.
"""

from __future__ import annotations

from ralphloop.atomic import write_atomic
from ralphloop.loop.requests import add_note
from ralphloop.loop.runner import Runner
from ralphloop.room import claim
from ralphloop.workspace import object_store
from ralphloop.workspace.measures import Snapshot
from ralphloop.workspace.snapshot import Snapshotter


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
    from ralphloop.workspace.branch_return import bring_back, is_on, return_to_branch
    from ralphloop.workspace.set_aside import ref_name

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
    if not isinstance(measure, Snapshotter) or not bring_back(
        repo, measure, branch, before=before, ref=ref, own=own
    ):
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
