"""Effects: what an iteration owes to the user's repository.

Each can be done twice without harm: a mark by its value, a progress entry by its header, leftovers
by their ref, a commit by its trailer.  A successor does again whatever was not marked as applied.
"""

from __future__ import annotations

from functools import partial

from ralphloop.atomic import kill_point
from ralphloop.core.effects import AddProgress, AnyEffect, CommitStory, MarkStory, SaveLeftovers
from ralphloop.core.interventions import CommitRefused, Committed, LeftoversSaved
from ralphloop.core.planning import facts_of
from ralphloop.core.story_after import failure_text
from ralphloop.core.story_state import MAX_FAILURE_CHARS, Standing
from ralphloop.journal.records import IterationRecord
from ralphloop.journal.views import PROGRESS_VIEW, ProgressEntry, add_progress
from ralphloop.loop.requests import add_note
from ralphloop.loop.runner import Runner
from ralphloop.proc.steps import Steps, aside
from ralphloop.repo.measures import Snapshot
from ralphloop.repo.own_files import OwnFiles, never_committed, project_prefix
from ralphloop.repo.work_tree import Repository


def apply_effects(runner: Runner, number: int, *, settle: bool = True) -> Steps[None]:
    """Do what iteration `number` owes, then say that it is done.

    Without `settle` a mere entry in progress.txt is made sure of later, while the next agent works.
    """
    runner.settle()
    record = runner.journal.effects_of(runner.run, number)
    if record is None or record.applied_at is not None:
        return
    for effect in record.effects:
        kill_point(f"effect.{effect.kind}.before")
        yield from _do(runner, record, effect)
        kill_point(f"effect.{effect.kind}.after")
        if isinstance(effect, CommitStory | SaveLeftovers):
            runner.committed, runner.after = True, None
    runner.unsettled = number
    if settle or not all(isinstance(effect, AddProgress) for effect in record.effects):
        runner.settle()
    if record.owes(CommitStory) or record.owes(SaveLeftovers):
        prune_objects(runner)


def _do(runner: Runner, record: IterationRecord, effect: AnyEffect) -> Steps[None]:
    match effect:
        case MarkStory():
            _mark(runner, effect)
        case AddProgress():
            _progress(runner, record, effect)
        case SaveLeftovers():
            yield from _set_aside(runner, record, effect)
        case CommitStory():
            yield from _commit(runner, record, effect)


def prune_objects(runner: Runner) -> None:
    """Keep only the trees that open stories may still be compared with or restored to."""
    open_states = [s for s in runner.session.stories.values() if s.standing is not Standing.PASSED]
    trees = {state.start_tree for state in open_states} | {runner.session.frozen.start_tree}
    runner.measure.prune(tree for tree in trees if tree)


def _mark(runner: Runner, effect: MarkStory) -> None:
    file = runner.stories()
    if file is not None and file.list.get(effect.story) is not None:
        file.mark(effect.story, passes=True)


def _progress(runner: Runner, record: IterationRecord, effect: AddProgress) -> None:
    root = runner.setup.project.root
    entry = ProgressEntry(
        run=record.run,
        iteration=record.n,
        at=effect.at,
        task=effect.task,
        outcome=effect.outcome,
        summary=effect.summary,
    )
    add_progress(root / PROGRESS_VIEW, entry, root=root)


def _set_aside(runner: Runner, record: IterationRecord, effect: SaveLeftovers) -> Steps[None]:
    """Save what the story left behind and clean up after it; the next story is told otherwise."""
    repo, story = runner.setup.repo, effect.story
    if repo is None:
        return
    from ralphloop.repo.set_aside import set_aside

    frozen = runner.session.frozen
    work = partial(
        set_aside,
        repo,
        runner.measure,
        run=record.run,
        number=record.n,
        story_id=story,
        start=Snapshot(tree=effect.tree, head=effect.head or None, branch=frozen.branch or None),
        dirty_at_start=bool(frozen.dirty),
    )
    saved = yield from aside(lambda _: work())
    runner.intervene(LeftoversSaved(story=story, ref=saved.ref))
    if still_there := "; ".join(filter(None, (saved.problem, *saved.left))):
        add_note(runner, f"changes of {story}, set aside, are still there: {still_there}")


def _commit(runner: Runner, record: IterationRecord, effect: CommitStory) -> Steps[None]:
    from ralphloop.repo.commit import CommitStatus, PathsPolicy, commit_story, find_commit

    repo = runner.setup.repo
    if repo is None or find_commit(repo, run=record.run, iteration=record.n):
        return
    work = partial(
        commit_story,
        repo,
        story_id=effect.story,
        title=effect.title,
        run=record.run,
        iteration=record.n,
        grade=effect.grade,
        paths=PathsPolicy(own=_private(runner, repo), leave=_not_ours(runner)),
    )
    result = yield from aside(lambda _: work())  # hooks may take minutes
    if result.status is CommitStatus.REFUSED:
        said = f"the commit was refused: {result.feedback}"
        yield from _reopen(runner, record, effect.story, said)
        return
    commitless = result.status is CommitStatus.NOTHING
    runner.intervene(Committed(story=effect.story, notes=result.notes, commitless=commitless))
    if result.rewritten and (failure := (yield from _recheck(runner))):
        said = f"a commit hook changed files; then:\n{failure}"
        yield from _reopen(runner, record, effect.story, said)


def _private(runner: Runner, repo: Repository) -> OwnFiles:
    return never_committed(project_prefix(repo.root, runner.setup.project.root))


def _not_ours(runner: Runner) -> frozenset[str]:
    """What was dirty when the run began and nobody touched since."""
    frozen = runner.session.frozen
    if not frozen.dirty:
        return frozenset()
    start = Snapshot(tree=frozen.start_tree, head=frozen.start_head or None)
    if runner.measure.known(start) != start:
        return frozenset(frozen.dirty)  # nobody can tell any more: it stays where it is
    changed = runner.measure.diff(start, runner.measure.tree())
    return frozenset(frozen.dirty) - frozenset(changed.paths)


def _recheck(runner: Runner) -> Steps[str]:
    """A hook rewrote what was checked: check again; what failed now, in its own words."""
    results = yield from runner.run_checks(runner.session.frozen.checks, to_the_end=True)
    return failure_text(results, MAX_FAILURE_CHARS)


def _reopen(runner: Runner, record: IterationRecord, story: str, failure: str) -> Steps[None]:
    """What could not be committed has not passed: the agent gets the message, so many times."""
    file = runner.stories()
    if file is not None and file.list.get(story) is not None:
        file.mark(story, passes=False)
    facts = facts_of(
        runner.story_list(),
        runner.session.stories,
        runner.story(story),
        only=runner.setup.options.only,
    )
    before = runner.session.story(story).standing
    others, now = bool(facts.others), runner.clock()
    runner.intervene(CommitRefused(story=story, failure=failure, others=others, at=now))
    state = runner.session.story(story)
    if before is Standing.PASSED and state.standing is Standing.SET_ASIDE:
        leftovers = SaveLeftovers(story=story, tree=state.start_tree, head=state.start_head)
        yield from _set_aside(runner, record, leftovers)
