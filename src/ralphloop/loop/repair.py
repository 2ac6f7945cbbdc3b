"""What an agent broke that is not its own, put right before anything is measured or written.

`git clean -fdx` takes `.ralph/` with it, and agents like branches of their own: both are put right.
A merge left half done is for the agent itself to end; what only a person can put right (a branch,
HEAD, a full disk) is named before the next start.

History: HEAD after an agent has to contain HEAD before it.  Where it does not, the commits that
left are kept under a ref and named, the agent is asked about it once, and stories whose commits
went with them are open again.

Settings are for a person to say.  A run keeps those it began with, the next one reads these files
again: so what changed in them while an agent worked is put back, kept under a ref and said.
Whether a person did it meanwhile cannot be told; between two starts nobody looks.

Stories: a mark an agent set is a claim and is put back, and so is a file it made unreadable.  What
it removed or made weaker stays, but the stories as they were asked are kept with the one that was
worked on, so that a later claim is held against them.
"""

import os
from pathlib import Path

import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.core.model import Story, StoryList, Value
from ralphloop.core.run_state import StoryState
from ralphloop.errors import InputError, Level
from ralphloop.loop.prepare import PROMPT_NAME
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace
from ralphloop.project import CONFIG_NAME, agent_directories
from ralphloop.repo import private_git
from ralphloop.repo.preflight import disk_space
from ralphloop.repo.snapshot import Snapshot
from ralphloop.repo.work_tree import concerns, has_again, is_name, keep_lost, project_prefix
from ralphloop.room import ensure_private_dir, read_regular
from ralphloop.stories.source import compare
from ralphloop.text.plain import counted, one_line, some

_LARGEST = 1 << 20
_MOST_FILES = 100
_MOST_ASKED = 50
_SWITCHED = "checkout: moving from "  # what git writes into HEAD's log
_LINK = b"\0link to "  # no text begins like this

Settings = dict[str, bytes]  # content, or where a link leads


def put_back_own_files(run: Run, workspace: Workspace) -> None:
    """The lock and the journal, where our directory was deleted; what is open is still known."""
    project = workspace.project
    deleted = False
    ensure_private_dir(project.directory)
    if workspace.lock is not None:
        deleted = workspace.lock.renew_if_deleted(run.clock())
    if run.journal.put_back_if_deleted() or deleted:
        private_git.prepare(project.directory / "objects")
        workspace.put_back += 1
        gone = "the journal was put back, transcripts and reports are gone"
        workspace.remarks = (*workspace.remarks, f"{project.directory.name} was deleted: {gone}")


def back_on_the_branch(
    run: Run, workspace: Workspace, number: int, before: Snapshot, listed: bytes
) -> str:
    """Be on the branch of the run again; words where what the agent did elsewhere stays there."""
    repo = workspace.repo
    branch = workspace.branch_to_keep(run)
    if repo is None or not branch or run.setup.options.session:
        return ""
    from ralphloop.repo.set_aside import bring_back, ref_name

    if not repo.git_dir.exists() or repo.branch() == branch:
        return ""  # what is gone is named by whoever measures it
    there = repo.branch() or "no branch"
    run.add_note(f"Do not switch branches: stay on {branch}.")
    if repo.unfinished_operation() is not None:
        return ""  # for the agent itself to end
    ref = ref_name(run.id, number, "lost")
    kept = bring_back(repo, workspace.measure, branch, before=before, ref=ref)
    if kept is None:
        return f"the agent left {branch} for {there}"
    if not kept:
        remark = f"the agent switched from {branch} to {there}; its commits are on {branch} again"
        workspace.remarks = (*workspace.remarks, remark)
        return ""
    known = workspace.stories
    if known is not None and listed:
        write_atomic(known.path, listed, within=workspace.within)
    return (
        f"the agent left {branch} for {there}: what it did there is kept at {ref}, not on {branch}"
    )


def note_left_open(workspace: Workspace) -> str:
    """The operation the agent left git in the middle of, in words with the way out."""
    repo = workspace.repo
    problem = repo.unfinished() if repo is not None else None
    workspace.left_open = problem.message if problem else ""
    return f"{problem.message}: {problem.fix}" if problem else ""


def lost_heads(
    run: Run,
    workspace: Workspace,
    number: int,
    state: StoryState,
    before: Snapshot,
    after: Snapshot,
) -> dict[str, str]:
    """What left the branch while agents worked on the story: the old heads, each with its words."""
    repo = workspace.repo
    branch = workspace.branch_to_keep(run)
    if repo is None or (after.branch or "") != branch:
        return state.base.lost
    still = {h: words for h, words in state.base.lost.items() if not has_again(repo, after.head, h)}
    old = before.head
    if old is None or old == after.head or repo.git.contains(after.head, old):
        return still
    if after.head and not concerns(repo, old, f"^{after.head}"):
        return still  # somebody beside us took back what is theirs
    from ralphloop.repo.set_aside import ref_name

    ref = ref_name(run.id, number, "lost")
    words = f"history was rewritten: what {branch} held is gone from the repository"
    if lost := keep_lost(repo, ref, old, after.head):
        count, newest = lost
        named = ", ".join(one_line(name, 60) for name in newest)
        more = f" and {count - len(newest)} more" if count > len(newest) else ""
        words = f"history was rewritten: {counted(count, 'commit')} left {branch or 'HEAD'}"
        words += f" ({named}{more}); kept at {ref}"
    # Undoing a rewrite takes commits out too: the ones that were in its place.
    return still if state.base.lost and not still else {**still, old: words}


def stashed(workspace: Workspace, before: frozenset[str] | None) -> str:
    """Work that is in no file now, because it was stashed while the agent ran; in words."""
    repo = workspace.repo
    found = repo.stashes() if repo is not None and before is not None else {}
    if workspace.number:  # all work trees share them, and git's words name the branch
        own = f"n {workspace.lane_branch}: "
        found = {commit: words for commit, words in found.items() if own in words}
    new = [one_line(words, 80) for commit, words in found.items() if commit not in (before or ())]
    if not new or list(found)[-1] in (before or ()):
        return ""
    return (
        f"work was stashed, so it does not count: it is in stash@{{0}} ({new[-1]});"
        " `git stash pop` brings it back"
    )


def left_on_a_branch(
    workspace: Workspace, since: int | None, before: Snapshot, after: Snapshot
) -> str:
    """Commits that were made while the agent ran, and that HEAD went away from; in words.

    What was brought along in another way (squashed, picked) is in the files, and so is not meant.
    """
    repo = workspace.repo
    if repo is None or since is None or not after.head:
        return ""
    moves = repo.head_moves(since)
    made = {move.after for move in moves if not move.words.startswith(_SWITCHED)}
    left = [move for move in moves if move.words.startswith(_SWITCHED) and move.before in made]
    if not left:
        return ""
    began = workspace.measure.known(before)  # an agent may have removed all of our own files
    here = {change.path for change in workspace.measure.changes(began.tree, after.tree)}
    for move in reversed(left):
        tip = move.before
        there = move.words.removeprefix(_SWITCHED).partition(" to ")[0]
        is_detached = is_name(there)
        if not is_detached and repo.commit_of(f"refs/heads/{there}") != tip:
            continue  # it was removed, or went on
        if repo.git.contains(after.head, tip):
            continue
        base = repo.git.line("merge-base", after.head, tip, ok=(0, 1))
        if here.issuperset(repo.paths_between(base or None, tip)):
            continue
        number = int(repo.git.line("rev-list", "--count", tip, f"^{after.head}", "--"))
        is_one = number == 1
        return (
            f"{counted(number, 'commit')} {'is' if is_one else 'are'} on"
            f" {'no branch' if is_detached else one_line(there, 80)} and not on"
            f" {after.branch or 'HEAD'}, so {'it does' if is_one else 'they do'} not count:"
            f" `git merge {tip[:10] if is_detached else one_line(there, 80)}` brings"
            f" {'it' if is_one else 'them'} along"
        )
    return ""


def trouble(run: Run, workspace: Workspace, now: Snapshot) -> str:
    """Why the next start has to wait until somebody put it right, or nothing."""
    for finding in disk_space(workspace.project.root):
        if finding.level is Level.ERROR:
            return finding.message
    repo = workspace.repo
    branch = workspace.branch_to_keep(run)
    if repo is None or not branch:
        return ""
    if problem := repo.unfinished():
        # One that the agent left is for the agent to end, as often as it has attempts.
        theirs = problem.message == workspace.left_open
        return "" if theirs else f"{problem.message}: {problem.fix}"
    if now.branch != branch:
        there = now.branch or "detached"
        return f"the branch is {there} now, the run works on {branch}: `git switch {branch}`"
    return ""


def read_settings(root: Path) -> Settings:
    """The files by their names from the project's root, without very large ones."""
    found: Settings = {}
    paths = [root / CONFIG_NAME, root / PROMPT_NAME]
    for folder in agent_directories(root):
        if folder.is_symlink():
            paths.append(folder)
        elif folder.is_dir():
            paths += sorted(folder.glob("*.toml"))[:_MOST_FILES]
    for path in paths:
        try:
            if path.is_symlink():
                content = _LINK + os.fsencode(path.readlink())
            else:
                content = read_regular(path, most=_LARGEST + 1)
        except OSError:
            continue
        if len(content) <= _LARGEST:
            found[path.relative_to(root).as_posix()] = content
    return found


def put_back_settings(
    run: Run, workspace: Workspace, number: int, before: Settings | None
) -> tuple[str, ...]:
    """Put back what changed since the agent started, and keep it; what it was, in words."""
    repo = workspace.repo
    root = workspace.project.root
    now = read_settings(root) if before is not None else {}
    if before is None or now == before:
        return ()
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if repo is not None and not now.keys().isdisjoint(changed):
        from ralphloop.repo.set_aside import keep_files, ref_name

        ref = ref_name(run.id, number, "settings")
        prefix = project_prefix(repo.root, root)
        files = {}
        for name in now.keys() & set(changed):  # a link may stand where the branch has a directory
            link = ".link" if now[name].startswith(_LINK) else ""
            files[f"{prefix}{name}{link}"] = now[name]
        keep_files(repo, ref, files, "settings that were changed while an agent worked")
        remark = f"the settings as they were after the agent are kept at {ref}"
        workspace.remarks = (*workspace.remarks, remark)
    for name in changed:
        _restore(root, name, before.get(name))
    verb = "was" if len(changed) == 1 else "were"
    return (f"{', '.join(changed)} {verb} changed while the agent worked, and put back",)


def _restore(root: Path, name: str, content: bytes | None) -> None:
    path = root / name
    if any(parent.is_symlink() for parent in path.parents if parent.is_relative_to(root)):
        return  # beyond a link nothing is ours
    if content is None or path.is_symlink():
        path.unlink(missing_ok=True)
    if content is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if not content.startswith(_LINK):
        write_atomic(path, content, within=root)
    elif not path.is_dir():
        path.unlink(missing_ok=True)
        path.symlink_to(os.fsdecode(content.removeprefix(_LINK)))


def _take_directory_away(run: Run, workspace: Workspace, path: Path) -> str:
    """Remove a directory that an agent made in a file's place; the ref that keeps what was in it.

    Empty where there is no such directory.
    """
    repo = workspace.repo
    if repo is None or path.is_symlink() or not path.is_dir():
        return ""
    from ralphloop.repo.set_aside import make_way, ref_name

    if not path.parent.resolve().is_relative_to(repo.root):
        return ""  # beyond the repository nothing is ours to remove
    name = path.parent.resolve().relative_to(repo.root) / path.name
    ref = ref_name(run.id, run.session.number, "lost")
    ref = f"{ref}-story-file" if repo.commit_of(ref) else ref
    make_way(repo, [name.as_posix()], ref)
    return ref


class ListAfter(Value, kw_only=True):
    stories: StoryList | None = None
    marks: dict[str, bool] = msgspec.field(default_factory=dict)  # put back: they are ours to set
    asked: tuple[Story, ...] = ()  # as they were, where they were removed or weakened
    findings: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()  # what was removed or weakened, in words


def read_back(
    run: Run,
    workspace: Workspace,
    before: StoryList | None,
    content: bytes,
    asked: tuple[Story, ...],
) -> ListAfter:
    """Read the list again; `before` and `content` are from before the agent started."""
    known = workspace.stories
    within = workspace.within
    try:
        now = workspace.story_list() if before is not None else None
    except InputError as error:
        finding = f"the story file was made unreadable and was put back ({error.message})"
        if known is not None:
            if known.path.is_symlink() and not known.path.resolve().is_relative_to(within):
                known.path.unlink()  # what it leads to is not ours, the name is
            elif ref := _take_directory_away(run, workspace, known.path):
                finding = f"{finding}; what stood there is kept at {ref}"
            write_atomic(known.path, content, within=within)
        return ListAfter(stories=before, asked=asked, findings=(finding,))
    if before is None or now is None:
        return ListAfter()
    # The list before the agent, with what was taken from it earlier as it was.
    first = {story.id: story for story in asked}
    there = [
        msgspec.structs.replace(first.pop(story.id, story), passes=story.passes)
        for story in before.stories
    ]
    wanted = msgspec.structs.replace(before, stories=(*there, *first.values()))
    marks, less = compare(wanted, now)
    if marks:
        workspace.mark(marks)
    # A mark that an agent set in the list a story came from is a claim as well.
    passed = {story.id: story.passes for story in now.with_passes(marks).stories}
    for story in workspace.mark_sources(passed):
        marks[story] = passed[story]
    known_ids = {story.id for story in wanted.stories}
    added = [story.id for story in now.stories if story.id not in known_ids]
    words = f"{some(added)} {'was' if len(added) == 1 else 'were'} added to the list meanwhile"
    doubts = []
    for story, ways in less.items():
        doubts += [f"story {story} {how}" for how in ways]
    return ListAfter(
        stories=now.with_passes(marks),
        marks=marks,
        asked=tuple(story for story in wanted.stories if story.id in less)[:_MOST_ASKED],
        findings=(words,) if added else (),
        doubts=tuple(doubts),
    )
