"""What an agent did to the history of the branch.

HEAD after an agent has to contain HEAD before it.  Where it does not, the commits that left are
kept under a ref and named, the agent is asked about it once, and stories whose commits went with
them are open again.
"""

from __future__ import annotations

from ralphloop.core.story_state import StoryState
from ralphloop.loop.runner import Runner
from ralphloop.text.plain import counted, one_line
from ralphloop.workspace.measures import Snapshot
from ralphloop.workspace.repo import Lost, Repository, contains, has_again, keep_lost


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
    from ralphloop.workspace.set_aside import ref_name

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
