"""Landing: one story at a time, judged in the very state that is committed.

What passed in a lane is put onto the newest landed commit, and judged there anew; the last step of
the commit it then owes moves the run's branch.  A conflict, or red where it was green alone and
something landed meanwhile, is nobody's failed attempt: it goes back with the words of both sides.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from ralphloop.atomic import kill_point
from ralphloop.core.events import StoryReturned
from ralphloop.core.interventions import VerifyRan
from ralphloop.core.iteration import AddProgress, CommitStory
from ralphloop.core.model import CheckStatus, Decision, LandingConflict, Story
from ralphloop.core.run_state import LaneNote, Standing, VerifySeen
from ralphloop.core.step import step
from ralphloop.errors import RepositoryError
from ralphloop.journal.records import IterationRecord
from ralphloop.journal.views import PROGRESS_VIEW, add_progress
from ralphloop.lanes import inner
from ralphloop.lanes.branch import keep_up
from ralphloop.lanes.conflicts import given_up, names, told
from ralphloop.lanes.worktrees import bring_inner, name_of, put_onto, stand, unsolved
from ralphloop.lanes.yard import Lane, Yard, keep_inner, ready, saved
from ralphloop.loop.begin import Round
from ralphloop.loop.effects import apply_effects, made_for
from ralphloop.loop.judging import Judgement, Measurement, judge, learn_from, record
from ralphloop.loop.loop import TO_BE_CHECKED, announce_story_result, what_it_showed
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace
from ralphloop.proc.threads import in_thread
from ralphloop.repo.git import printable
from ralphloop.repo.merge import entries
from ralphloop.repo.preflight import no_room
from ralphloop.repo.set_aside import ref_name
from ralphloop.repo.work_tree import Repository
from ralphloop.text.plain import one_line, some

_MOST_LANDED = 200
_MOST_TRIES = 5
_NAMED = 5
_TOGETHER = (
    "Your work was green alone and is red on top of that: {red}. It is on top of it now. Make both"
    " work together; what landed must keep working."
)


def landed_since(repo: Repository, base: str, tip: str) -> list[tuple[str, str]]:
    """What came onto the branch, oldest first: each story and what it did, in words."""
    form = "--format=%x00%(trailers:key=Ralph-Story,valueonly,separator=%x20)%n%h %s"
    args = ("log", "--reverse", f"--max-count={_MOST_LANDED}", "--name-only", "--no-renames", form)
    said = repo.git.run(*args, f"{base}..{tip}", "--").decode("utf-8", "replace")
    found = []
    for entry in said.split("\0")[1:]:
        story, subject, *paths = entry.split("\n")
        named = some([printable(path) for path in paths if path], _NAMED)
        found.append((story.strip(), f"{one_line(subject, 100)} (it changed {named})"))
    return found


async def land_iteration(yard: Yard, lane: Lane, judged: Judgement) -> Decision | None:
    """Land an iteration where it would pass; None where the landing's own checks were cut short.

    It can be begun again after any error: what is written down is not decided a second time.
    """
    number = judged.begun.number
    is_written = decided(lane, judged)
    if not is_written:
        if judged.step.verdict.passed:
            judged = await tried_on_the_newest(yard, lane, judged)
            if judged.cut_short:
                return None
        lane.written = record(yard.run, judged)
    judged = lane.written or judged
    done = judged.step
    has_landed = judged.step.verdict.passed
    run = yard.run
    workspace = yard.workspace if has_landed else lane.workspace
    if not is_written:
        if has_landed:
            add_earlier(run, workspace, number, done.story)
            workspace.where_kept = partial(_where_kept, yard, lane, number)
        kill_point("landing.recorded")
        await apply_effects(run, workspace, number, done.effects)
    for owing in yard.journal.owed_effects(run.id):
        if owing.n == number:
            await again(yard, owing)
    learn_from(run, workspace, judged)
    if has_landed:
        announce_story_result(run, judged.begun.story, number)
    back = judged.evidence.returned
    if back is not None:
        returns = run.session.story(done.story).returns
        told = StoryReturned(story=done.story, lane=lane.number, reason=back.words, returns=returns)
        run.emit(told, number)
    settle(yard, lane.number, done.story, number)
    return done.decision


def decided(lane: Lane, judged: Judgement) -> bool:
    """Whether this very start was written down already."""
    return lane.written is not None and lane.written.begun.number == judged.begun.number


def settle(yard: Yard, number: int, story: str, iteration: int) -> None:
    """A story that is done with its lane gives it back; landed work needs no ref any more."""
    standing = yard.run.session.story(story).standing
    if standing is Standing.PASSED:
        ref = ref_name(yard.run.id, iteration, "lanes")
        if not _left_behind(yard.landing.repo, ref):
            yard.landing.git.attempt("update-ref", "-d", ref)
        if yard.note(number).story == story:
            keep_inner(yard, yard.lane(number), f"{yard.run.id}-{iteration}")
    if standing in (Standing.PASSED, Standing.SET_ASIDE) and yard.note(number).story == story:
        yard.write(number, story="")


def _left_behind(repo: Repository, ref: str) -> bool:
    """Whether a lane's work holds a file that its landed commit left out."""
    work = repo.commit_of(ref)
    if not work:
        return False
    own = frozenset(repo.paths_between(f"{work}~1", work, "--diff-filter=A"))
    return not own.isdisjoint(repo.paths_between("HEAD", work, "--diff-filter=A"))


def _where_kept(yard: Yard, lane: Lane, number: int) -> str:
    """Where a person finds what a commit leaves out of a lane's work, in words."""
    run = yard.run.id
    note = yard.note(lane.number)
    repo = lane.place.repo
    kept = [f"git show {ref_name(run, number, 'lanes')}"]
    where = yard.directory / inner.KEPT / f"{run}-{number}"
    made = inner.made_inside(repo, note.base or repo.head() or "HEAD")
    return some([*kept, *(printable(str(where / path)) for path in made)], _NAMED)


async def tried_on_the_newest(yard: Yard, lane: Lane, judged: Judgement) -> Judgement:
    """The same, tried again where somebody committed on the branch while it was checked there."""
    keep_up(yard)
    for _ in range(_MOST_TRIES):
        done = await tried_to_land(yard, lane, judged)
        keep_up(yard)
        if done.cut_short or not done.step.verdict.passed:
            break
        if yard.tip() == done.begun.state.start_head:
            break
    return done


async def tried_to_land(yard: Yard, lane: Lane, judged: Judgement) -> Judgement:
    """The same iteration, judged on top of everything that has landed."""
    run = yard.run
    landing = yard.workspace
    note = yard.note(lane.number)
    number = judged.begun.number
    tip = yard.tip()
    work = await saved(yard, lane, ref_name(run.id, number, "lanes"))
    yard.write(lane.number, work=work)
    lane.left = judged.measured.after.tree
    await in_thread(lambda _: stand(yard.landing, tip))
    landing.touched()
    before = landing.tree()
    stories = landing.story_list()
    landed = landed_since(yard.landing.repo, note.base, tip)
    seen = judged.begun.state.verify_before
    if landed and seen is not None:
        seen = await _seen_without(run, landing, judged.begun.story, seen)
        await in_thread(lambda _: stand(yard.landing, tip))  # it may have left files behind
        landing.touched()
    state = replace(judged.begun.state, start_tree=before.tree, start_head=tip, verify_before=seen)
    begun = replace(  # as if its story had begun with what has landed
        judged.begun,
        before=before,
        state=state,
        stories=stories,
        list_bytes=landing.story_bytes(),
    )
    ref = ref_name(run.id, number, "lanes")
    conflicts = await in_thread(lambda _: put_onto(yard.landing, work, ref=ref))
    kill_point("landing.put")
    if conflicts:
        files = some(names(conflicts), _NAMED)
        words = told(conflicts, name_of(yard.landing.repo, work))
        here = replace(judged, begun=begun)
        return _returned(run, here, landed, words, "conflict with", f" in {files}")
    await in_thread(lambda _: bring_inner(lane.place, yard.landing, note.base))
    problem = await ready(yard, yard.landing)
    marked = unsolved(yard.landing) if note.work else ""  # it was put onto something before
    landing.remarks = (*landing.remarks, *_given_up(yard.landing.repo, note, work))
    look = partial(_look, landing, begun, judged, marked or problem)
    done = await judge(run, landing, begun, judged.result, look)
    kill_point("landing.judged")
    if not done.step.verdict.passed and (full := no_room(yard.landing.root)):
        raise RepositoryError(full, "Make room, then: ralph run --continue")  # nobody's fault
    red = [it.name for it in done.evidence.checks or () if it.status is CheckStatus.FAILED]
    if done.cut_short or done.step.verdict.passed or not landed or marked or not (red or problem):
        return done
    failing = some(red or ["setup"], _NAMED)
    words = _TOGETHER.format(red=failing)
    return _returned(run, done, landed, words, f"{failing} fails together with")


def _given_up(repo: Repository, note: LaneNote, work: str) -> Iterator[str]:
    """What a story let go of when it met what had landed, in words for a person."""
    for before, conflicts in note.met.items():
        for one in conflicts:
            paths = {one.path, one.own_path}
            landed, now = (entries(repo.git, it, paths) for it in (note.base, work or note.base))
            if landed == now and not one.kind.has_markers:
                yield given_up(one, name_of(repo, before))


async def _seen_without(
    run: Run, landing: Workspace, story: Story | None, known: VerifySeen
) -> VerifySeen:
    """What the story's own command shows on everything that landed, before its work is there."""
    if story is None or story.verify != known.argv or known.status is CheckStatus.PASSED:
        return known
    ran = await landing.run_checks(run, (), verify=story.verify)
    if not ran:
        return known  # stopped: so will the checks be
    seen = what_it_showed(known.argv, ran[0])
    run.intervene(VerifyRan(story=story.id, seen=seen))
    return seen


def _look(landing: Workspace, begun: Round, judged: Judgement, problem: str) -> Measurement:
    """What is measured where it lands: the tree there, all else as the lane showed it."""
    landing.touched()
    after = landing.tree()
    remarks = landing.remarks
    landing.remarks = ()
    evidence = replace(
        judged.evidence,
        tree=after.tree,
        head=after.head or "",
        checks=None,
        doubts=None,
        trial=None,
        opinions=None,
        work="",
        remarks=(*judged.evidence.remarks, *remarks, *((problem,) if problem else ())),
        unfinished=problem or judged.evidence.unfinished,
    )
    return replace(judged.measured, after=after, evidence=evidence, stories=begun.stories)


def _returned(
    run: Run,
    judged: Judgement,
    landed: Sequence[tuple[str, str]],
    to_do: str,
    words: str,
    rest: str = "",
) -> Judgement:
    """The same iteration as one that goes back to its lane, told what landed meanwhile."""
    others = tuple(dict.fromkeys(story for story, _ in landed if story))
    lines = [f"- {did}" for _, did in landed[-_NAMED:]]
    said = "\n".join(["While you worked, this landed on the branch:", *lines, to_do])
    met = some(others, _NAMED) or "what landed meanwhile"
    back = LandingConflict(words=f"{words} {met}{rest}", told=said, others=others)
    evidence = replace(judged.evidence, returned=back)
    state = run.session.state
    done = step(state, judged.begun.start, judged.result, evidence, run.policy)
    return replace(judged, evidence=evidence, before=state, step=done)


def add_earlier(run: Run, landing: Workspace, number: int, story: str) -> None:
    """The entries of the story's earlier starts, before the one that landed."""
    root = landing.project.root
    for done in run.journal.story_iterations(run.id, story):
        for effect in done.effects if done.n < number else ():
            if isinstance(effect, AddProgress):
                add_progress(root / PROGRESS_VIEW, run.id, done.n, effect, root=root)


async def again(yard: Yard, owing: IterationRecord) -> None:
    """Do what an iteration owes, where it passed in the state that was checked."""
    run = yard.run
    landing = yard.workspace
    place = yard.landing
    number = yard.book.lane_of(owing.story)
    if not owing.owes(CommitStory):
        workspace = yard.lane(number).workspace if number else landing
        await apply_effects(run, workspace, owing.n, owing.effects)
        return
    made = any(
        made_for(run, landing, place.repo, owing.n, effect)
        for effect in owing.effects
        if isinstance(effect, CommitStory)
    )
    if not made and landing.tree().tree != owing.end_tree:
        work = place.repo.commit_of(ref_name(run.id, owing.n, "lanes"))
        tip = yard.tip()
        await in_thread(lambda _: stand(place, tip))
        ref = ref_name(run.id, owing.n, "lanes")
        await in_thread(lambda _: put_onto(place, work, ref=ref))
        if number:
            lane = yard.lane(number)
            await in_thread(lambda _: bring_inner(lane.place, place, yard.note(number).base))
        landing.touched()
    if number:
        landing.where_kept = partial(_where_kept, yard, yard.lane(number), owing.n)
    if not made:
        add_earlier(run, landing, owing.n, owing.story or "")
    await apply_effects(run, landing, owing.n, owing.effects)


def stopped(yard: Yard, lane: Lane, judged: Judgement, why: Decision) -> Decision:
    """The run ends before a start is through: what is left of it is done later, without agent."""
    number = judged.begun.number
    words = f"what iteration {number} owes is still to be done: `ralph run --continue` does it"
    if not decided(lane, judged):
        yard.run.owed_usd += judged.step.spent.cost_usd
        words = TO_BE_CHECKED.format(number)
    return replace(why, reasons=(*why.reasons, words))
