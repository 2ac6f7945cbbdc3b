"""A person's own commit while the run waits: the run goes on from there, or asks.

Where HEAD stands on top of where the run left it, on its branch, and what came on top touches
nothing that a story is at work on, nobody has to be asked: it is said whose commit it was.  It is
no story's work, because stories are compared with what stands without them.  Anything else (the
branch was moved back, our commits were amended, the same files were changed, a story's work was
taken along) is for a person to decide.
"""

from ralphloop.core.events import CommitsSeen
from ralphloop.core.model import Value
from ralphloop.core.run_state import Standing, StoryState
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace
from ralphloop.repo.git import printable
from ralphloop.repo.snapshot import Snapshot
from ralphloop.repo.work_tree import Repository, concerns
from ralphloop.text.plain import one_line, some

_MOST_NAMED = 3
_IN_THE_WAY = "With --lanes 1 a run has a work tree of its own, and your checkout is yours"


class HeadMove(Value, kw_only=True):
    """Where somebody put HEAD while no agent ran."""

    words: str  # whose commit, and which
    obstacle: str = ""  # what the run needs that it moved; empty: it can go on


def look_at_head(run: Run, workspace: Workspace, expected: str, now: Snapshot) -> HeadMove | None:
    """What happened to HEAD since the run left it there; None where that is nobody's business."""
    repo = workspace.repo
    if repo is None or not expected or now.head == expected:
        return None
    if now.head is None:
        return HeadMove(words="HEAD has no commit any more", obstacle=_IN_THE_WAY)
    if not concerns(repo, f"{expected}...{now.head}"):
        return None  # commits of those who work beside us
    newest = _described(repo, now.head)
    if not repo.git.contains(now.head, expected):
        moved = f"HEAD was moved to {newest.name}, and {expected[:7]}, where the run left it,"
        return HeadMove(words=f"{moved} is no part of that", obstacle=_IN_THE_WAY)
    words = f"{newest.whose} committed {newest.name}"
    count = int(repo.git.line("rev-list", "--count", f"{expected}..{now.head}", *repo.only))
    if count > 1:
        words += f" and {count - 1} more"
    words += " meanwhile"
    paths = _theirs(workspace, repo, expected, now.head)
    for story, touched in _at_work(run, workspace, now).items():
        if both := sorted(touched & paths):
            names = some([printable(path) for path in both], _MOST_NAMED)
            words += f", and {names} is what {story} is at work on"
            return HeadMove(words=words, obstacle=_IN_THE_WAY)
    return HeadMove(words=words)


def go_on_from(run: Run, workspace: Workspace, now: Snapshot, move: HeadMove) -> None:
    """Take the commit as it is, and say whose it was."""
    workspace.expected_head = now.head or ""
    run.emit(CommitsSeen(head=workspace.expected_head, words=move.words))


class _Described(Value, kw_only=True):
    whose: str  # `You`, or a name
    name: str  # short, with its subject


def _described(repo: Repository, commit: str) -> _Described:
    form = "--format=%h%x00%s%x00%ce%x00%cn"
    short, subject, email, author = repo.git.line("log", "-1", form, commit).split("\0")
    mine = repo.git.line("config", "--get", "user.email", ok=(0, 1))
    whose = "You" if email == mine or not author else one_line(author, 40)
    return _Described(whose=whose, name=f'{short} "{one_line(subject, 60)}"')


def _theirs(workspace: Workspace, repo: Repository, old: str, new: str) -> set[str]:
    """What their commits changed, without our own files: those are read anew anyway."""
    return {path for path in repo.paths_between(old, new) if path not in workspace.own}


def _unfinished(run: Run) -> dict[str, StoryState]:
    """Stories with a start behind them that are not done with."""
    states = run.session.stories.items()
    return {
        name: one
        for name, one in states
        if one.base.start_tree and one.standing in (Standing.OPEN, Standing.BLOCKED)
    }


def _at_work(run: Run, workspace: Workspace, now: Snapshot) -> dict[str, set[str]]:
    """What each unfinished story had changed when its last start ended."""
    measure = workspace.measure
    found = {}
    for name, state in _unfinished(run).items():
        starts = run.journal.story_iterations(run.id, name, 1)
        left = starts[0].end_tree if starts else ""
        if not left or not measure.has(left):
            left = now.tree  # nobody knows: all that differs may be its own
        began = measure.known(
            Snapshot(tree=state.base.start_tree, head=state.base.start_head or None)
        )
        found[name] = {change.path for change in measure.changes(began.tree, left)}
    return found
