"""What can change under a running loop: the branch, HEAD, the disk."""

from __future__ import annotations

from ralphloop.loop.runner import Runner
from ralphloop.workspace.preflight import Level, disk_space


def trouble(runner: Runner) -> str:
    """Why the next start has to wait, or nothing."""
    full = [f for f in disk_space(runner.setup.project.root) if f.level is Level.ERROR]
    return full[0].message if full else _repository_trouble(runner)


def _repository_trouble(runner: Runner) -> str:
    repo, frozen = runner.setup.repo, runner.session.frozen
    if repo is None or not frozen.branch:
        return ""
    branch = repo.branch()
    if branch != frozen.branch:
        return f"the branch is {branch or 'detached'} now, the run works on {frozen.branch}"
    expected = runner.session.expected_head
    if expected and (head := repo.head()) != expected:
        return f"HEAD moved to {(head or 'nothing')[:12]} while no agent ran"
    if operation := repo.unfinished_operation():
        return f"a {operation} is in progress"
    return ""
