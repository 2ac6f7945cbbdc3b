"""Effects: what an iteration owes to the user's repository.

Each can be done twice without harm (a mark by its value, a progress entry by its header, leftovers
by their ref, a commit by its trailer): a successor does again whatever was not marked as applied.

A story stays passed only while something upholds it (`take_back`): the iteration that made it pass,
with its effects done, and, where that owed a commit, one with its mark that HEAD contains (a rebase
keeps it); a person's word; or a mark in the story file that HEAD holds when no agent ran since,
because squashing commits is theirs to do.
"""

from contextlib import suppress
from functools import partial
from pathlib import PurePath
from typing import NamedTuple

from ralphloop.atomic import kill_point, sync_file
from ralphloop.core.events import LeftoversKept, StoryReopened
from ralphloop.core.grading import Grade
from ralphloop.core.interventions import (
    CommitRefused,
    Committed,
    LeftoversSaved,
    PassKeptByPerson,
    PassTakenBack,
    SecondChance,
)
from ralphloop.core.iteration import AddProgress, AnyEffect, CommitStory, MarkStory, SaveLeftovers
from ralphloop.core.planning import facts_of
from ralphloop.core.run_state import MAX_FAILURE_CHARS, Standing, StoryNotes, StoryState
from ralphloop.core.story_after import failure_text
from ralphloop.errors import InputError, RalphError
from ralphloop.journal.views import PROGRESS_VIEW, add_progress
from ralphloop.loop.before import move_base
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace
from ralphloop.proc.threads import in_thread
from ralphloop.repo.snapshot import Snapshot
from ralphloop.repo.work_tree import Repository, never_committed, project_prefix
from ralphloop.stories.source import load
from ralphloop.text.plain import some
from ralphloop.text.remarks import summary_of

_MOST_NAMED = 50
_MOST_SAID = 800


async def apply_effects(
    run: Run,
    workspace: Workspace,
    number: int,
    effects: tuple[AnyEffect, ...],
) -> None:
    """Do what an iteration owes, and write down that nothing is owed any more."""
    root = workspace.project.root
    repo = workspace.repo
    for effect in effects:
        kill_point(f"effect.{effect.kind}.before")
        match effect:
            case MarkStory():
                workspace.mark({effect.story: True})
            case AddProgress():
                add_progress(root / PROGRESS_VIEW, run.id, number, effect, root=root)
            case SaveLeftovers() if repo is not None:
                await _set_aside(run, workspace, repo, number, effect)
            case CommitStory() if repo is not None:
                await _commit(run, workspace, repo, number, effect)
        kill_point(f"effect.{effect.kind}.after")
    _ensure_applied(run, workspace, number)
    if any(isinstance(effect, CommitStory | SaveLeftovers) for effect in effects):
        workspace.touched()
        workspace.expected_head = (repo.head() if repo else None) or ""
        if workspace.number or workspace.lands_on:
            return  # what other lanes have measured is needed as well
        workspace.measure.prune(filter(None, _trees_to_keep(run)))


def _trees_to_keep(run: Run) -> set[str]:
    """The trees that open stories may still be compared with or restored to."""
    trees = {run.session.baseline.start_tree}
    for state in run.session.stories.values():
        if state.standing is Standing.PASSED:
            continue
        trees |= {state.base.start_tree, state.base.left_tree}
        trees |= {footprint.tree for footprint in state.streak.trail}
    return trees


def _ensure_applied(run: Run, workspace: Workspace, number: int) -> None:
    """Make sure of what was written, then say that it is done."""
    with suppress(RalphError):  # a view that cannot be synced is no reason to stop
        sync_file(workspace.root / PROGRESS_VIEW)
    run.journal.mark_applied(run.id, number, now=run.clock())


async def _set_aside(
    run: Run, workspace: Workspace, repo: Repository, number: int, effect: SaveLeftovers
) -> None:
    """Save what the story left behind and clean up after it; the next story is told otherwise."""
    from ralphloop.repo.set_aside import set_aside

    story = effect.story
    baseline = run.session.baseline
    work = partial(
        set_aside,
        repo,
        workspace.measure,
        run=run.id,
        number=number,
        story_id=story,
        start=Snapshot(
            tree=effect.tree, head=effect.head or None, branch=workspace.branch_to_keep(run) or None
        ),
        dirty_at_start=bool(baseline.dirty),
    )
    saved = await in_thread(lambda _: work())
    records = (one.record for one in run.journal.iterations(run.id) if one.story == story)
    said = "\n".join(call.summary for record in records for call in record.response.tool_calls)
    # Those that no tool of the agent named come first: they may be a person's.
    files = tuple(sorted(saved.files, key=lambda it: PurePath(it).name in said)[:_MOST_NAMED])
    workspace.touched()
    left = workspace.tree().tree
    run.intervene(LeftoversSaved(story=story, ref=saved.ref, files=files, left=left))
    if files:
        run.emit(LeftoversKept(story=story, ref=saved.ref, files=files), number)
    if still_there := "; ".join(filter(None, (saved.problem, *saved.left))):
        run.add_note(f"changes of {story}, set aside, are still there: {still_there}")


def restore_saved_work(run: Run, workspace: Workspace, story: str) -> SecondChance:
    """The story once more, from what it left behind where that can be put back."""
    from ralphloop.repo.set_aside import return_saved

    repo = workspace.repo
    ref = run.session.story(story).base.saved_ref
    if repo is None or not ref or not repo.commit_of(ref):
        return SecondChance(story=story)
    move_base(run, workspace, story)  # what could not be cleaned away is still its own
    before = workspace.tree()
    began = run.session.story(story).base.start_tree or before.tree
    problem = return_saved(repo, ref)
    workspace.touched()
    told = "This is a second chance: what earlier tries left is in the work tree. Go on from there."
    if problem:
        told = f"Work of earlier tries could not be put back ({problem}); see: git show {ref}"
    return SecondChance(
        story=story,
        told=told,
        tree=began,
        head=before.head or "",
        left=workspace.tree().tree,
        put_back=not problem,
    )


async def _commit(
    run: Run, workspace: Workspace, repo: Repository, number: int, effect: CommitStory
) -> None:
    """Commit the story and land it; what could not be committed has not passed."""
    story = effect.story
    failure = ""
    if found := find_commit_for(run, workspace, repo, number, effect):
        differs = _difference(run, workspace, effect, found, effect.tree)
        if differs or run.session.story(story).proof.commit != found:
            made = Committed(story=story, differs=differs, commit=found, iteration=number)
            run.intervene(made)
    else:
        failure = await _commit_story(run, workspace, repo, number, effect)
    if not failure:
        workspace.land()
        return
    # The agent gets the message, so many times.
    workspace.mark({story: False})
    only = run.setup.options.only
    states = run.session.stories
    others = facts_of(workspace.story_list(), states, workspace.story(story), only=only).others
    before = run.session.story(story).standing
    refused_at = run.clock()
    run.intervene(CommitRefused(story=story, failure=failure, others=bool(others), at=refused_at))
    state = run.session.story(story)
    if before is Standing.PASSED and state.standing is Standing.SET_ASIDE:
        leftovers = SaveLeftovers(
            story=story, tree=state.base.start_tree, head=state.base.start_head
        )
        await _set_aside(run, workspace, repo, number, leftovers)


def find_commit_for(
    run: Run, workspace: Workspace, repo: Repository, number: int, effect: CommitStory
) -> str:
    """The commit that was made for an iteration already; empty where none was.

    It says so itself, or we wrote its name down; where a hook rewrote the message and a crash left
    no note, it is known by its parent and by what it holds.
    """
    from ralphloop.repo.commit import find_commit
    from ralphloop.repo.outside import find_by_content

    if found := find_commit(repo, run=run.id, iteration=number):
        return found
    noted = run.session.story(effect.story).proof.commit
    if noted and repo.git.contains(repo.head(), noted):
        return noted
    return find_by_content(repo, workspace.measure, parent=effect.head, tree=effect.tree)


async def _commit_story(
    run: Run, workspace: Workspace, repo: Repository, number: int, effect: CommitStory
) -> str:
    """Commit the story; why that came to nothing, in words."""
    from ralphloop.repo.commit import CommitStatus, commit_story, story_message

    prefix = project_prefix(repo.root, workspace.project.root)
    own = never_committed(prefix, within=repo.scope, litter=workspace.site.litter)
    message = story_message(
        effect.story,
        effect.title,
        run=run.id,
        iteration=number,
        grade=effect.grade,
        body=_own_words(run.session.story(effect.story).notes),
    )
    leave = _not_ours(run, workspace) | _repositories_found(run, workspace, repo, effect)
    work = partial(commit_story, repo, message, own=own, leave=leave)
    result = await in_thread(lambda _: work())  # hooks may take minutes
    if result.status is CommitStatus.REFUSED:
        return f"the commit was refused: {result.feedback}"
    # Where a hook rewrote files, what it left is checked now.
    checked = workspace.measure.tree().tree if result.rewritten else effect.tree
    notes = result.notes
    if result.leaves_out and (where := workspace.where_kept(effect.story, number)):
        notes = (*notes, f"what was not committed is kept: {where}")
    run.intervene(
        Committed(
            story=effect.story,
            notes=notes,
            commitless=result.status is CommitStatus.NOTHING,
            commit=result.commit,
            iteration=number,
            differs=_difference(run, workspace, effect, result.head or "HEAD", checked),
        )
    )
    if not result.rewritten:
        return ""
    results = await workspace.run_checks(run, run.session.baseline.checks, to_the_end=True)
    failure = failure_text(results, MAX_FAILURE_CHARS)
    return f"a commit hook changed files; then:\n{failure}" if failure else ""


def _own_words(notes: StoryNotes) -> str:
    """What the agent says it did, and what it doubts, for the commit's message."""
    said = summary_of(notes.said, _MOST_SAID)
    return "\n".join(filter(None, (said, *(f"Doubt: {one}" for one in notes.doubted))))


def _difference(
    run: Run, workspace: Workspace, effect: CommitStory, commit: str, checked: str
) -> str:
    """Where a commit is not what was checked for it, in words."""
    from ralphloop.repo.inner import is_checkout_of
    from ralphloop.repo.outside import differing

    repo = workspace.repo
    state = run.session.story(effect.story)
    if repo is None or not effect.tree or workspace.has_neighbours:
        return ""
    filters = run.session.baseline.filters
    found = differing(repo, workspace.measure, state.base.start_tree, checked, commit, filters)
    but = _not_ours(run, workspace)
    tree = workspace.clean_tree
    if tree is not None and not tree.why_not:
        # No file of another work tree was in the tree that was judged, so none made it green.
        but |= {it for it in found if is_checkout_of(repo.root / it, repo.common_dir)}
    names = [path for path in found if path not in but]
    return f"committed is not what was checked: {some(names)}" if names else ""


def _not_ours(run: Run, workspace: Workspace) -> frozenset[str]:
    """What was dirty when the run began and nobody touched since."""
    baseline = run.session.baseline
    if not baseline.dirty:
        return frozenset()
    start = Snapshot(tree=baseline.start_tree, head=baseline.start_head or None)
    if workspace.measure.known(start) != start:
        return frozenset(baseline.dirty)  # nobody can tell any more: it stays where it is
    changes = workspace.measure.changes(start.tree, workspace.measure.tree().tree)
    return frozenset(baseline.dirty).difference(change.path for change in changes)


def _repositories_found(
    run: Run, workspace: Workspace, repo: Repository, effect: CommitStory
) -> frozenset[str]:
    """Repositories in the work tree that a story found there, and that are as it found them."""
    inner = [path for path in repo.dirty_paths(deep=False) if path.endswith("/")]
    began = run.session.story(effect.story).base.start_tree
    if not inner or not workspace.measure.has(began):
        return frozenset()
    changed = {change.path for change in workspace.measure.changes(began, effect.tree)}
    return frozenset(path for path in inner if path.rstrip("/") not in changed)


def take_back(run: Run, workspace: Workspace, *, agent_ran: bool = True) -> dict[str, str]:
    """Open again what nothing upholds; the reason for each of these stories."""
    stories = workspace.story_list()
    known = {s.id: run.session.story(s.id) for s in (stories.stories if stories else ())}
    passed = {
        story: state
        for story, state in known.items()
        if state.standing is Standing.PASSED and state.proof.grade != Grade.BY_HAND
    }
    gone = _unproven(run, workspace, passed) if passed else {}
    if gone and not agent_ran:  # what the story file in HEAD calls passed is a person's word
        repo = workspace.repo
        path = workspace.site.listed
        said = set[str]()
        if repo is not None and path:
            shown = repo.git.attempt("cat-file", "blob", f"HEAD:{path}")
            with suppress(InputError):  # none is committed there, or none that can be read
                listed = load(repo.root / path, data=shown.stdout).list.stories
                said = {story.id for story in listed if story.passes}
        vouched = [story for story, lack in gone.items() if story in said and lack.is_commit]
        run.intervene(PassKeptByPerson(stories=tuple(vouched)))
        gone = {story: lack for story, lack in gone.items() if story not in vouched}
    reasons = {story: lack.words for story, lack in gone.items()}
    if reasons:
        workspace.mark(dict.fromkeys(reasons, False))
        run.intervene(PassTakenBack(reasons=reasons))
    return reasons


def tell_taken_back(
    run: Run, workspace: Workspace, number: int | None, gone: dict[str, str]
) -> None:
    for story, reason in gone.items():
        found = workspace.story(story)
        title = found.title if found else ""
        run.emit(StoryReopened(story=story, title=title, reason=reason), number)


class MissingProof(NamedTuple):
    """What a pass lacks."""

    words: str
    is_commit: bool  # that was made for it; a person may have squashed it


def _unproven(
    run: Run, workspace: Workspace, passed: dict[str, StoryState]
) -> dict[str, MissingProof]:
    """What each of these passes lacks; without those that lack nothing."""
    proofs = run.journal.passing_iterations()
    branch = run.session.baseline.branch or "HEAD"
    repo = workspace.repo
    gone = {}
    marks = set[str]()
    if repo is not None and (names := {proofs[it].run for it in passed if it in proofs}):
        from ralphloop.repo.commit import marks_since

        # Ids sort by the second; two runs in one would be told apart by chance.
        runs = [run for run in map(run.journal.find_run, names) if run is not None]
        first = min(runs, key=lambda run: run.started_at) if len(runs) == len(names) else None
        marks = marks_since(repo, first.head if first else "")  # one look at the log of HEAD
    for story, state in passed.items():
        proof = proofs.get(story)
        committed = proof is not None and proof.owes(CommitStory) and not state.proof.commitless
        if proof is None:
            words = "no finished iteration in the journal made it pass"
            gone[story] = MissingProof(words, is_commit=False)
        elif committed and repo and f"{proof.run}/{proof.n}" not in marks:
            if state.proof.commit and repo.git.contains(repo.head(), state.proof.commit):
                continue  # a hook took the mark from its message
            gone[story] = MissingProof(f"its commit is no longer in {branch}", is_commit=True)
    return gone
