"""Finding out what a green story's tests are worth, by running them crosswise.

Here the parts of a trial are joined: each check (`crosswise`), where that proves nothing what its
tests notice of the story's change (`mutating`), then the story's own command (`verifying`).  Files
are exchanged in the place in which the story is judged, which need not be the one in which its
agent worked.
"""

from msgspec.structs import replace

from ralphloop.core.grading import is_proven_by_behaviour
from ralphloop.core.model import CheckStatus, Evidence, Value
from ralphloop.core.proof import Trial
from ralphloop.core.removals import with_removals_asked_for
from ralphloop.loop.before import comparable, results_before
from ralphloop.loop.begin import Round
from ralphloop.loop.bench import Bench
from ralphloop.loop.crosswise import try_check
from ralphloop.loop.earlier import try_first_tests
from ralphloop.loop.exchanging import Disturbed, Stopped, StoryOnTrial
from ralphloop.loop.missing import absence_in, peeking_in
from ralphloop.loop.mutating import find_answers, find_asked_answers, texts_of, try_mutants
from ralphloop.loop.run import Run
from ralphloop.loop.verifying import try_verify
from ralphloop.loop.workspace import Workspace
from ralphloop.repo.bytecode import is_bytecode
from ralphloop.repo.snapshot import Snapshot


class Tried(Value, kw_only=True):
    evidence: Evidence  # with what came out
    disturbed: str = ""  # what somebody else wrote meanwhile, in words: it has to be judged anew


async def try_story(
    run: Run, place: Workspace, begun: Round, checked: Snapshot, evidence: Evidence
) -> Tried:
    """Compare and try what the story did, in this place.

    `checked` is the tree of the place before the checks ran there.
    """
    place.touched()
    story = _on_trial(run, place, begun, checked, evidence)
    trial = Trial()
    try:
        trial = await _join_parts(story, evidence)
    except Stopped:
        return Tried(evidence=replace(evidence, trial=trial, checked_tree="", checks_cut=True))
    except Disturbed as saved:
        return Tried(evidence=evidence, disturbed=str(saved))
    finally:
        place.touched()
    tree = place.measure.tree().tree  # runs may write what the checks wrote
    return Tried(evidence=replace(evidence, trial=trial, checked_tree=tree, checks_cut=False))


async def _join_parts(story: StoryOnTrial, evidence: Evidence) -> Trial:
    """Everything that is found out by running, one part after the other."""
    run = story.run
    before = results_before(run, story.place, story.start.tree)
    trial = Trial()
    for argv, now in zip(run.session.baseline.checks, evidence.checks or (), strict=False):
        was = comparable(before.of(now.name), now)
        bench = Bench(story, argv, now, was.report)
        was = bench.as_named_now(was)
        found = with_removals_asked_for(await try_check(bench, was), story.words)
        mutation = find_answers(bench)
        if not mutation.literal and was.status is CheckStatus.FAILED:  # of a person's red tests
            mutation = find_asked_answers(bench)
        absence = absence_in(bench, was.report, found)
        is_sure = is_proven_by_behaviour(trial.joined(found)) and not absence.may_be_all
        is_sure = is_sure and not texts_of(bench).compares
        if not mutation.literal and not is_sure:
            is_unnoticed = was.report is not None and found.misses_nothing
            mutation = await try_mutants(bench, was.report, is_old_code_unnoticed=is_unnoticed)
        found = absence.without_proof(found, mutation)
        found = found.joined(await try_first_tests(bench))
        beside = Trial(mutation=mutation, peeking=peeking_in(bench))
        trial = trial.joined(found).joined(beside)
    return trial.joined(await try_verify(story, evidence, is_proven=_is_proven(trial)))


def _is_proven(trial: Trial) -> bool:
    return bool(trial.proven or trial.reached or trial.mutation.is_proof)


def _on_trial(
    run: Run, place: Workspace, begun: Round, checked: Snapshot, evidence: Evidence
) -> StoryOnTrial:
    measure = place.measure
    end = measure.tree()
    start = measure.known(begun.story_began)
    wrote = {change.path: change.before for change in measure.changes(checked.tree, end.tree)}
    return StoryOnTrial(
        run=run,
        place=place,
        begun=begun,
        start=start,
        end=end,
        changes=tuple(
            it for it in measure.changes(start.tree, end.tree) if not is_bytecode(it.path)
        ),
        wrote=wrote,
        is_start_known=results_before(run, place, start.tree).is_exact,
        tolerated=frozenset(evidence.comparison.tolerated),
    )
