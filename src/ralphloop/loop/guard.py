"""What can change under a running loop: the branch, HEAD, the disk."""

from __future__ import annotations

from ralphloop.findings import Level
from ralphloop.loop.runner import Runner
from ralphloop.workspace.measures import Snapshot
from ralphloop.workspace.preflight import disk_space


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
