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

from ralphloop.atomic import kill_point
from ralphloop.core.events import LeftoversKept, StoryReopened
from ralphloop.core.grading import Grade
from ralphloop.core.interventions import (
    CommitRefused,
    Committed,
    LeftoversSaved,
    PassTakenBack,
    SecondChance,
    Vouched,
)
from ralphloop.core.iteration import AddProgress, AnyEffect, CommitStory, MarkStory, SaveLeftovers
from ralphloop.core.planning import facts_of
from ralphloop.core.run_state import MAX_FAILURE_CHARS, Standing, StoryState
from ralphloop.core.story_after import failure_text
from ralphloop.errors import InputError
from ralphloop.journal.views import PROGRESS_VIEW, add_progress
from ralphloop.loop.before import move_base
from ralphloop.loop.runner import Runner
from ralphloop.proc.steps import Steps, aside
from ralphloop.repo.snapshot import Snapshot
from ralphloop.repo.work_tree import Repository, never_committed, project_prefix
from ralphloop.stories.source import load
from ralphloop.text.plain import some

_MOST_NAMED = 50


def apply_effects(
    runner: Runner, number: int, effects: tuple[AnyEffect, ...], *, settle: bool = True
) -> Steps[None]:
    """Do what is owed; without `settle` a progress entry is ensured while the next agent works."""
    runner.settle()
    root, repo = runner.setup.project.root, runner.setup.repo
    for effect in effects:
        kill_point(f"effect.{effect.kind}.before")
        match effect:
            case MarkStory():
                runner.mark({effect.story: True})
            case AddProgress():
                add_progress(root / PROGRESS_VIEW, runner.run, number, effect, root=root)
            case SaveLeftovers() if repo is not None:
                yield from _set_aside(runner, repo, number, effect)
            case CommitStory() if repo is not None:
                yield from _commit(runner, repo, number, effect)
        kill_point(f"effect.{effect.kind}.after")
    runner.unsettled = number
    if settle or not all(isinstance(effect, AddProgress) for effect in effects):
        runner.settle()
    if any(isinstance(effect, CommitStory | SaveLeftovers) for effect in effects):
        runner.seen = None
        runner.expected_head = (repo.head() if repo else None) or ""
        if runner.lane or runner.setup.lands_on:
            return  # what other lanes have measured is needed as well
        # Only trees that open stories may still be compared with or restored to are kept.
        states = runner.session.stories.values()
        still_open = [one for one in states if one.standing is not Standing.PASSED]
        trees = {tree for one in still_open for tree in (one.start_tree, one.left_tree)}
        trees |= {step.tree for one in still_open for step in one.trail}
        runner.measure.prune(filter(None, {*trees, runner.session.frozen.start_tree}))


def _set_aside(runner: Runner, repo: Repository, number: int, effect: SaveLeftovers) -> Steps[None]:
    """Save what the story left behind and clean up after it; the next story is told otherwise."""
    from ralphloop.repo.set_aside import set_aside

    story, frozen = effect.story, runner.session.frozen
    work = partial(
        set_aside,
        repo,
        runner.measure,
        run=runner.run,
        number=number,
        story_id=story,
        start=Snapshot(tree=effect.tree, head=effect.head or None, branch=runner.branch or None),
        dirty_at_start=bool(frozen.dirty),
    )
    saved = yield from aside(lambda _: work())
    records = (one.record for one in runner.journal.iterations(runner.run) if one.story == story)
    said = "\n".join(call.summary for record in records for call in record.response.tool_calls)
    # Those that no tool of the agent named come first: they may be a person's.
    files = tuple(sorted(saved.files, key=lambda it: PurePath(it).name in said)[:_MOST_NAMED])
    runner.seen = None
    left = runner.tree().tree
    runner.intervene(LeftoversSaved(story=story, ref=saved.ref, files=files, left=left))
    if files:
        runner.emit(LeftoversKept(story=story, ref=saved.ref, files=files), number)
    if still_there := "; ".join(filter(None, (saved.problem, *saved.left))):
        runner.add_note(f"changes of {story}, set aside, are still there: {still_there}")


def second_chance(runner: Runner, story: str) -> SecondChance:
    """The story once more, from what it left behind where that can be put back."""
    from ralphloop.repo.set_aside import return_saved

    repo, ref = runner.setup.repo, runner.session.story(story).saved_ref
    if repo is None or not ref or not repo.commit_of(ref):
        return SecondChance(story=story)
    move_base(runner, story)  # what could not be cleaned away is still its own
    before = runner.tree()
    began = runner.session.story(story).start_tree or before.tree
    problem = return_saved(repo, ref)
    runner.seen = None
    told = "This is a second chance: what earlier tries left is in the work tree. Go on from there."
    if problem:
        told = f"Work of earlier tries could not be put back ({problem}); see: git show {ref}"
    head = before.head or ""
    return SecondChance(story=story, told=told, tree=began, head=head, left=runner.tree().tree)


def _commit(runner: Runner, repo: Repository, number: int, effect: CommitStory) -> Steps[None]:
    """Commit the story and land it; what could not be committed has not passed."""
    story, failure = effect.story, ""
    if found := made_for(runner, repo, number, effect):
        differs = _difference(runner, effect, found, effect.tree)
        if differs or runner.session.story(story).commit != found:
            made = Committed(story=story, differs=differs, commit=found, iteration=number)
            runner.intervene(made)
    else:
        failure = yield from _committed(runner, repo, number, effect)
    if not failure:
        land(runner)
        return
    # The agent gets the message, so many times.
    runner.mark({story: False})
    only, states = runner.setup.options.only, runner.session.stories
    others = facts_of(runner.story_list(), states, runner.story(story), only=only).others
    before, refused_at = runner.session.story(story).standing, runner.clock()
    runner.intervene(
        CommitRefused(story=story, failure=failure, others=bool(others), at=refused_at)
    )
    state = runner.session.story(story)
    if before is Standing.PASSED and state.standing is Standing.SET_ASIDE:
        leftovers = SaveLeftovers(story=story, tree=state.start_tree, head=state.start_head)
        yield from _set_aside(runner, repo, number, leftovers)


def made_for(runner: Runner, repo: Repository, number: int, effect: CommitStory) -> str:
    """The commit that was made for an iteration already; empty where none was.

    It says so itself, or we wrote its name down; where a hook rewrote the message and a crash left
    no note, it is known by its parent and by what it holds.
    """
    from ralphloop.repo.commit import find_commit
    from ralphloop.repo.outside import find_by_content

    if found := find_commit(repo, run=runner.run, iteration=number):
        return found
    noted = runner.session.story(effect.story).commit
    if noted and repo.git.contains(repo.head(), noted):
        return noted
    return find_by_content(repo, runner.measure, parent=effect.head, tree=effect.tree)


def _committed(runner: Runner, repo: Repository, number: int, effect: CommitStory) -> Steps[str]:
    """Commit the story; why that came to nothing, in words."""
    from ralphloop.repo.commit import CommitStatus, commit_story, story_message

    own = never_committed(project_prefix(repo.root, runner.setup.project.root), within=repo.scope)
    message = story_message(
        effect.story, effect.title, run=runner.run, iteration=number, grade=effect.grade
    )
    work = partial(commit_story, repo, message, own=own, leave=_not_ours(runner))
    result = yield from aside(lambda _: work())  # hooks may take minutes
    if result.status is CommitStatus.REFUSED:
        return f"the commit was refused: {result.feedback}"
    # Where a hook rewrote files, what it left is checked now.
    checked = runner.measure.tree().tree if result.rewritten else effect.tree
    notes = result.notes
    if result.leaves_out and (where := runner.where_kept()):
        notes = (*notes, f"what was not committed is kept: {where}")
    runner.intervene(
        Committed(
            story=effect.story,
            notes=notes,
            commitless=result.status is CommitStatus.NOTHING,
            commit=result.commit,
            iteration=number,
            differs=_difference(runner, effect, result.head or "HEAD", checked),
        )
    )
    if not result.rewritten:
        return ""
    results = yield from runner.run_checks(runner.session.frozen.checks, to_the_end=True)
    failure = failure_text(results, MAX_FAILURE_CHARS)
    return f"a commit hook changed files; then:\n{failure}" if failure else ""


def land(runner: Runner) -> None:
    """Move the run's branch to what was committed in the landing tree, where this is one."""
    if runner.lands is not None:
        runner.lands()


def _difference(runner: Runner, effect: CommitStory, commit: str, checked: str) -> str:
    """Where a commit is not what was checked for it, in words."""
    from ralphloop.repo.outside import differing

    repo, state = runner.setup.repo, runner.session.story(effect.story)
    if repo is None or not effect.tree or runner.setup.shares:
        return ""
    filters = runner.session.frozen.filters
    found = differing(repo, runner.measure, state.start_tree, checked, commit, filters)
    names = [path for path in found if path not in _not_ours(runner)]
    return f"committed is not what was checked: {some(names)}" if names else ""


def _not_ours(runner: Runner) -> frozenset[str]:
    """What was dirty when the run began and nobody touched since."""
    frozen = runner.session.frozen
    if not frozen.dirty:
        return frozenset()
    start = Snapshot(tree=frozen.start_tree, head=frozen.start_head or None)
    if runner.measure.known(start) != start:
        return frozenset(frozen.dirty)  # nobody can tell any more: it stays where it is
    changes = runner.measure.changes(start.tree, runner.measure.tree().tree)
    return frozenset(frozen.dirty).difference(change.path for change in changes)


def take_back(runner: Runner, *, agent_ran: bool = True) -> dict[str, str]:
    """Open again what nothing upholds; the reason for each of these stories."""
    stories = runner.story_list()
    known = {s.id: runner.session.story(s.id) for s in (stories.stories if stories else ())}
    passed = {
        story: state
        for story, state in known.items()
        if state.standing is Standing.PASSED and state.grade != Grade.BY_HAND
    }
    gone = _unproven(runner, passed) if passed else {}
    if gone and not agent_ran:  # what the story file in HEAD calls passed is a person's word
        repo, path, said = runner.setup.repo, runner.setup.listed, set[str]()
        if repo is not None and path:
            shown = repo.git.attempt("cat-file", "blob", f"HEAD:{path}")
            with suppress(InputError):  # none is committed there, or none that can be read
                listed = load(repo.root / path, data=shown.stdout).list.stories
                said = {story.id for story in listed if story.passes}
        vouched = [story for story, reason in gone.items() if story in said and "commit" in reason]
        runner.intervene(Vouched(stories=tuple(vouched)))
        gone = {story: reason for story, reason in gone.items() if story not in vouched}
    if gone:
        runner.mark(dict.fromkeys(gone, False))
        runner.intervene(PassTakenBack(reasons=gone))
    return gone


def tell_taken_back(runner: Runner, number: int | None, gone: dict[str, str]) -> None:
    for story, reason in gone.items():
        found = runner.story(story)
        title = found.title if found else ""
        runner.emit(StoryReopened(story=story, title=title, reason=reason), number)


def _unproven(runner: Runner, passed: dict[str, StoryState]) -> dict[str, str]:
    """What each of these passes lacks, in words; without those that lack nothing."""
    proofs, branch = runner.journal.passing_iterations(), runner.session.frozen.branch or "HEAD"
    repo, gone, marks = runner.setup.repo, {}, set[str]()
    if repo is not None and (names := {proofs[it].run for it in passed if it in proofs}):
        from ralphloop.repo.commit import marks_since

        # Ids sort by the second; two runs in one would be told apart by chance.
        runs = [run for run in map(runner.journal.find_run, names) if run is not None]
        first = min(runs, key=lambda run: run.started_at) if len(runs) == len(names) else None
        marks = marks_since(repo, first.head if first else "")  # one look at the log of HEAD
    for story, state in passed.items():
        proof = proofs.get(story)
        committed = proof is not None and proof.owes(CommitStory) and not state.commitless
        if proof is None:
            gone[story] = "no finished iteration in the journal made it pass"
        elif committed and repo and f"{proof.run}/{proof.n}" not in marks:
            if state.commit and repo.git.contains(repo.head(), state.commit):
                continue  # a hook took the mark from its message
            gone[story] = f"its commit is no longer in {branch}"
    return gone
