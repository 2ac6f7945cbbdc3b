"""What an agent broke that is not its own, put right before anything is measured or written.

`git clean -fdx` takes `.ralph/` with it, agents like branches of their own, and a merge may be left
half done.  None of these is worth a night: the first two can be put right without touching a file
of the work tree, the third is for the agent itself to end.
"""

from __future__ import annotations

import msgspec

from ralphloop.loop.requests import add_note
from ralphloop.loop.runner import Runner
from ralphloop.workspace import object_store
from ralphloop.workspace.branch_return import return_to_branch
from ralphloop.workspace.measures import Snapshot


def put_back_own_files(runner: Runner) -> None:
    """The lock and the journal, where our directory was deleted; what is open is still known."""
    project, deleted = runner.setup.project, False
    if runner.lock is not None:
        deleted = runner.lock.renew_if_deleted(runner.clock())
    if runner.journal.put_back_if_deleted() or deleted:
        object_store.prepare(project.directory / "objects")
        gone = "the journal was put back, transcripts and reports are gone"
        runner.remarks = (*runner.remarks, f"{project.directory.name} was deleted: {gone}")


def back_on_the_branch(runner: Runner, before: Snapshot, after: Snapshot) -> Snapshot:
    """Where the agent switched to a branch that only adds to ours, ours takes that over."""
    repo, branch = runner.setup.repo, runner.session.frozen.branch
    if repo is None or not branch or after.branch == branch or runner.setup.options.session:
        return after
    if not return_to_branch(repo, branch, since=before.head, head=after.head):
        return after
    there = after.branch or "no branch"
    remark = f"the agent switched from {branch} to {there}; its commits are on {branch} again"
    runner.remarks = (*runner.remarks, remark)
    add_note(runner, f"Do not switch branches: stay on {branch}.")
    return msgspec.structs.replace(after, branch=branch)


def left_open(runner: Runner) -> str:
    """The operation the agent left git in the middle of, in words with the way out."""
    repo = runner.setup.repo
    problem = repo.unfinished() if repo is not None else None
    runner.session.left_open = problem.message if problem else ""
    return f"{problem.message}: {problem.fix}" if problem else ""
