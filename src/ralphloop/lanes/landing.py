"""Landing: one story at a time, judged in the very state that is committed.

A story of a train (`lanes.train`) was judged before its turn, on top of what might have landed by
then; that counts where it has come true (`come_true`).

What passed in a lane is put onto the newest landed commit, and judged there anew; the last step of
the commit it then owes moves the run's branch.  A conflict, or red where it was green alone and
something landed meanwhile, is nobody's failed attempt: it goes back with the words of both sides.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from ralphloop.atomic import kill_point
from ralphloop.core.events import StoryReturned
from ralphloop.core.interventions import VerifyRan
from ralphloop.core.iteration import AddProgress, CommitStory
from ralphloop.core.model import CheckStatus, Decision, LandingConflict, Story, Value
from ralphloop.core.run_state import LaneNote, Standing, VerifySeen
from ralphloop.core.step import step
from ralphloop.errors import RepositoryError
from ralphloop.journal.records import IterationRecord
from ralphloop.journal.views import PROGRESS_VIEW, add_progress
from ralphloop.lanes import inner_repositories
from ralphloop.lanes.branch import keep_up, land
from ralphloop.lanes.conflicts import given_up, joined_words, names, told
from ralphloop.lanes.pool import Lane, LanePool, TreeWorkspace, keep_inner, make_ready, save_work
from ralphloop.lanes.worktrees import (
    PutOnto,
    bring_inner,
    name_of,
    put_onto,
    remove,
    unsolved,
)
from ralphloop.loop.begin import Round
from ralphloop.loop.effects import apply_effects, find_commit_for
from ralphloop.loop.judging import Judgement, Measurement, judge, learn_from, record
from ralphloop.loop.loop import TO_BE_CHECKED, announce_story_result, what_it_showed
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace
from ralphloop.proc.threads import in_thread
from ralphloop.repo.git import printable
from ralphloop.repo.merge import entries
from ralphloop.repo.preflight import no_room
from ralphloop.repo.set_aside import ref_name, write_files
from ralphloop.repo.work_tree import OwnFiles, Repository
from ralphloop.text.plain import one_line, some

_MOST_LANDED = 200
_MOST_TRIES = 5
_NAMED = 5
_TOGETHER = (
    "Your work was green alone and is red on top of that: {red}. It is on top of it now. Make both"
    " work together; what landed must keep working."
)


class LandingWorkspace(TreeWorkspace):
    """The landing tree: what is committed in it moves the run's branch."""

    pool: LanePool  # whose stories land here; it is there before anything lands

    def reserve_money(self, left: float) -> float:
        return self.pool.reserve_money(self.pool.lands, left)

    def reserve_tokens(self, left: int) -> int:
        return self.pool.reserve_tokens(self.pool.lands, left)

    def where_kept(self, story: str, number: int) -> str:
        """Where a person finds what a commit leaves out of a lane's work, in words."""
        pool = self.pool
        run = pool.run.id
        kept = [f"git show {ref_name(run, number, 'lanes')}"]
        holding = pool.book.lane_of(story)
        if holding:
            repo = pool.lane(holding).place.repo
            base = pool.note(holding).base or repo.head() or "HEAD"
            where = pool.directory / inner_repositories.KEPT / f"{run}-{number}"
            made = inner_repositories.made_inside(repo, base)
            kept += [printable(str(where / path)) for path in made]
        return some(kept, _NAMED)

    def land(self) -> None:
        land(self.pool)


_MOST_CRITERIA = 6
_LONGEST_CRITERION = 160


class LandedCommit(NamedTuple):
    story: str  # empty: it is of no story
    did: str  # what it is called and what it changed, in words


class LaidWork(Value, kw_only=True):
    """The work of a story on top of a commit, in a landing tree, to be judged there."""

    base: str  # the commit
    begun: Round  # as if its story had begun with what that holds
    work: str  # the lane's work as a commit; empty: there was nothing to save
    put: PutOnto
    landed: tuple[LandedCommit, ...]  # since the story began
    verify_seen: VerifySeen | None = None  # what its command shows without the work; None: as known
    remarks: tuple[str, ...] = ()
    problem: str = ""  # what stands in the way of its checks, in words
    is_unsolved: bool = False  # the problem is a conflict that its agent left in files


class Foresight(Value, kw_only=True):
    """What was found out about a story before its turn, on top of what might have landed by then.

    It says nothing of what doubters think: they are asked once it is known what stands.
    """

    laid: LaidWork
    done: Judgement


def landed_since(repo: Repository, base: str, tip: str, own: OwnFiles) -> list[LandedCommit]:
    """What came onto the branch, oldest first; every commit changes files of ours, which tell
    nobody anything."""
    form = "--format=%x00%(trailers:key=Ralph-Story,valueonly,separator=%x20)%n%h %s"
    args = ("log", "--reverse", f"--max-count={_MOST_LANDED}", "--name-only", "--no-renames", form)
    said = repo.git.run(*args, f"{base}..{tip}", "--").decode("utf-8", "replace")
    found = []
    for entry in said.split("\0")[1:]:
        story, subject, *paths = entry.split("\n")
        theirs = [printable(path) for path in paths if path and path not in own]
        did = one_line(subject, 100)
        if theirs:
            did += f" (it changed {some(theirs, _NAMED)})"
        found.append(LandedCommit(story.strip(), did))
    return found


async def land_iteration(
    pool: LanePool, lane: Lane, judged: Judgement, seen: Foresight | None = None
) -> Decision | None:
    """Land an iteration where it would pass; None where the landing's own checks were cut short.

    It can be begun again after any error: what is written down is not decided a second time.
    `seen` is what was found out before its turn.
    """
    number = judged.begun.number
    pool.lands = lane.number
    is_written = is_written_down(lane, judged)
    if not is_written:
        if judged.step.verdict.passed:
            known = await come_true(pool, lane, judged, seen) if seen else None
            judged = known or await try_on_the_newest(pool, lane, judged)
            if judged.cut_short:
                return None
        lane.written = record(pool.run, judged)
    judged = lane.written or judged
    done = judged.step
    has_landed = judged.step.verdict.passed
    run = pool.run
    workspace = pool.workspace if has_landed else lane.workspace
    if not is_written:
        if has_landed:
            add_earlier(run, workspace, number, done.story)
        kill_point("landing.recorded")
        await apply_effects(run, workspace, number, done.effects)
    for owing in pool.journal.owed_effects(run.id):
        if owing.n == number:
            await redo_owed_effects(pool, owing)
    learn_from(run, workspace, judged)
    if has_landed:
        announce_story_result(run, judged.begun.story, number)
    back = judged.evidence.returned
    if back is not None:
        returns = run.session.story(done.story).landing.count
        told = StoryReturned(story=done.story, lane=lane.number, reason=back.words, returns=returns)
        run.emit(told, number)
    settle(pool, lane.number, done.story, number)
    return done.decision


def is_written_down(lane: Lane, judged: Judgement) -> bool:
    """Whether this very start was written down already."""
    return lane.written is not None and lane.written.begun.number == judged.begun.number


def settle(pool: LanePool, number: int, story: str, iteration: int) -> None:
    """A story that is done with its lane gives it back; landed work needs no ref any more."""
    standing = pool.run.session.story(story).standing
    if standing is Standing.PASSED:
        ref = ref_name(pool.run.id, iteration, "lanes")
        if not _left_behind(pool.landing.repo, ref):
            pool.landing.git.attempt("update-ref", "-d", ref)
        if pool.note(number).story == story:
            keep_inner(pool, pool.lane(number), f"{pool.run.id}-{iteration}")
    if standing in (Standing.PASSED, Standing.SET_ASIDE) and pool.note(number).story == story:
        pool.write(number, story="")


def _left_behind(repo: Repository, ref: str) -> bool:
    """Whether a lane's work holds a file that its landed commit left out."""
    work = repo.commit_of(ref)
    if not work:
        return False
    own = frozenset(repo.paths_between(f"{work}~1", work, "--diff-filter=A"))
    return not own.isdisjoint(repo.paths_between("HEAD", work, "--diff-filter=A"))


async def try_on_the_newest(pool: LanePool, lane: Lane, judged: Judgement) -> Judgement:
    """The same, tried again where somebody committed on the branch while it was checked there."""
    keep_up(pool)
    for _ in range(_MOST_TRIES):
        done = await try_to_land(pool, lane, judged)
        keep_up(pool)
        if done.cut_short or not done.step.verdict.passed:
            break
        if pool.tip() == done.begun.state.base.start_head:
            break
        judged = _with_doubters_of(judged, done)
    return done


def _with_doubters_of(judged: Judgement, done: Judgement) -> Judgement:
    """The same with who was asked in a try that counts for nothing: that was paid all the same."""
    evidence = replace(
        judged.evidence, reviewed=done.evidence.reviewed, doubters=done.evidence.doubters
    )
    return replace(judged, evidence=evidence)


async def try_to_land(pool: LanePool, lane: Lane, judged: Judgement) -> Judgement:
    """The same iteration, judged on top of everything that has landed."""
    run = pool.run
    landing = pool.workspace
    laid = await lay_work(pool, lane, judged, landing, pool.tip())
    if laid.verify_seen is not None:
        run.intervene(VerifyRan(story=judged.step.story, seen=laid.verify_seen))
    if laid.put.conflicts:
        files = some(names(laid.put.conflicts), _NAMED)
        words = told(laid.put.conflicts, name_of(pool.landing.repo, laid.work))
        here = replace(judged, begun=laid.begun)
        return _returned(run, here, laid.landed, words, "conflict with", f" in {files}")
    laid = await make_laid_ready(pool, lane, landing, laid)
    look = partial(_look, landing, laid, judged)
    done = await judge(run, landing, laid.begun, judged.result, look)
    kill_point("landing.judged")
    _insist_on_room(landing, done)
    return _sent_back_where_red(run, done, laid)


async def lay_work(
    pool: LanePool, lane: Lane, judged: Judgement, landing: TreeWorkspace, base: str
) -> LaidWork:
    """Put what a lane holds onto a commit in a landing tree; it can be done again."""
    note = pool.note(lane.number)
    number = judged.begun.number
    ref = ref_name(pool.run.id, number, "lanes")
    work = await save_work(pool, lane, ref)
    pool.write(lane.number, work=work)
    lane.left = judged.measured.after.tree
    await landing.prepare(base)
    before = landing.tree()
    stories = landing.story_list()
    listed = landing.story_bytes()
    landed = landed_since(landing.place.repo, note.base, base, pool.home.site.own)
    known = judged.begun.state
    seen = None
    if landed and known.base.verify_before is not None:
        story = judged.begun.story
        seen = await _run_verify_without_work(pool.run, landing, story, known.base.verify_before)
        await landing.prepare(base)  # it may have left files behind
    standing = replace(
        known.base,
        start_tree=before.tree,
        start_head=base,
        verify_before=seen or known.base.verify_before,
    )
    begun = replace(
        judged.begun,
        before=before,
        state=replace(known, base=standing),
        stories=stories,
        list_bytes=listed,
    )
    put = await in_thread(lambda _: put_onto(landing.place, work, ref=ref))
    kill_point("landing.put")
    is_moved = bool(note.work)  # it was put onto something before
    marked = unsolved(landing.place) if is_moved and not put.conflicts else ""
    remarks = (*_given_up(landing.place.repo, note, work), joined_words(put.joined))
    return LaidWork(
        base=base,
        begun=begun,
        work=work,
        put=put,
        landed=tuple(landed),
        verify_seen=seen,
        remarks=tuple(filter(None, remarks)),
        problem=marked,
        is_unsolved=bool(marked),
    )


async def make_laid_ready(
    pool: LanePool, lane: Lane, landing: TreeWorkspace, laid: LaidWork
) -> LaidWork:
    """Bring along what checks need beside the work; with what stands in their way, in words."""
    base = pool.note(lane.number).base
    await in_thread(lambda _: bring_inner(lane.place, landing.place, base))
    problem = await make_ready(pool, landing)
    return replace(laid, problem=laid.problem or problem)


def _insist_on_room(landing: TreeWorkspace, done: Judgement) -> None:
    """Raises where a full disk may have made checks red: that is nobody's fault."""
    if not done.step.verdict.passed and (full := no_room(landing.place.root)):
        raise RepositoryError(full, "Make room, then: ralph run --continue")


def _sent_back_where_red(run: Run, done: Judgement, laid: LaidWork) -> Judgement:
    """The same, as one that goes back to its lane where it is red only with what landed."""
    red = [it.name for it in done.evidence.checks or () if it.status is CheckStatus.FAILED]
    is_fine = done.cut_short or done.step.verdict.passed
    if is_fine or not laid.landed or laid.is_unsolved or not (red or laid.problem):
        return done
    failing = some(red or ["setup"], _NAMED)
    joined = joined_words(laid.put.joined)
    words = "\n".join(filter(None, (_TOGETHER.format(red=failing), joined)))
    return _returned(run, done, laid.landed, words, f"{failing} fails together with")


async def judge_ahead(
    pool: LanePool, lane: Lane, judged: Judgement, landing: TreeWorkspace, laid: LaidWork
) -> Foresight | None:
    """Judge what was laid, before its turn; nothing is written down.  None: it was cut short."""
    laid = await make_laid_ready(pool, lane, landing, laid)
    look = partial(_look, landing, laid, judged, doubters=False)
    done = await judge(pool.run, landing, laid.begun, judged.result, look)
    _insist_on_room(landing, done)
    return None if done.cut_short else Foresight(laid=laid, done=done)


async def come_true(
    pool: LanePool, lane: Lane, judged: Judgement, seen: Foresight
) -> Judgement | None:
    """What was found out ahead, where it is true of what stands now; None where it is not.

    Where somebody commits on the branch just then it is found out anew.
    """
    run = pool.run
    landing = pool.workspace
    number = judged.begun.number
    keep_up(pool)
    tip = pool.tip()
    await landing.prepare(tip)
    kill_point("train.turn")
    before = landing.tree()
    if before.tree != seen.laid.begun.before.tree:
        return None
    known = seen.laid.begun.state
    state = replace(known, base=replace(known.base, start_head=tip))
    stories = landing.story_list()
    begun = replace(
        seen.laid.begun,
        before=before,
        state=state,
        stories=stories,
        list_bytes=landing.story_bytes(),
    )
    landed = landed_since(pool.landing.repo, pool.note(lane.number).base, tip, pool.home.site.own)
    laid = replace(seen.laid, base=tip, begun=begun, landed=tuple(landed))
    ref = ref_name(run.id, number, "lanes")
    await in_thread(lambda _: put_onto(pool.landing, laid.work, ref=ref))
    ready = await make_laid_ready(pool, lane, landing, laid)
    landing.touched()
    after = landing.tree()
    is_laid = after.tree == seen.done.measured.after.tree and ready.problem == laid.problem
    if not is_laid or not await in_thread(lambda _: _lay_what_checks_left(landing, seen, ref)):
        return None
    kill_point("train.taken")
    if laid.verify_seen is not None:
        run.intervene(VerifyRan(story=judged.step.story, seen=laid.verify_seen))
    evidence = replace(seen.done.evidence, head=tip, opinions=None)
    measured = replace(seen.done.measured, after=after, evidence=evidence, stories=stories)
    done = await judge(run, landing, begun, judged.result, lambda: measured)
    keep_up(pool)
    if done.step.verdict.passed and pool.tip() != tip:
        # Somebody committed on the branch while doubters were asked.
        return await try_on_the_newest(pool, lane, _with_doubters_of(judged, done))
    return _sent_back_where_red(run, done, laid)


def _lay_what_checks_left(landing: TreeWorkspace, seen: Foresight, ref: str) -> bool:
    """Have the files that checks wrote where they ran; whether all is as it was there."""
    left = seen.done.evidence.left_tree
    measure = landing.measure
    place = landing.place
    changes = measure.changes(seen.done.measured.after.tree, left) if left else []
    written = [it.path for it in changes if it.after]
    if written:
        objects = measure.object_variables()
        write_files(place.repo, left, written, ref=f"{ref}-in-the-way", objects=objects)
    for change in changes:
        if not change.after:
            remove(place.root / change.path)
    landing.touched()
    return not changes or landing.tree().tree == left


def _given_up(repo: Repository, note: LaneNote, work: str) -> Iterator[str]:
    """What a story let go of when it met what had landed, in words for a person."""
    for before, conflicts in note.met.items():
        for one in conflicts:
            paths = {one.path, one.own_path}
            landed = entries(repo.git, note.base, paths)
            now = entries(repo.git, work or note.base, paths)
            if landed == now and not one.kind.has_markers:
                yield given_up(one, name_of(repo, before))


async def _run_verify_without_work(
    run: Run, landing: Workspace, story: Story | None, known: VerifySeen
) -> VerifySeen | None:
    """What the story's own command shows on everything that landed, before its work is there.

    None: what is known of it still holds.
    """
    if story is None or story.verify != known.argv or known.status is CheckStatus.PASSED:
        return None
    ran = await landing.run_checks(run, (), verify=story.verify)
    return what_it_showed(known.argv, ran[0]) if ran else None  # stopped: so will the checks be


def _look(
    landing: Workspace, laid: LaidWork, judged: Judgement, *, doubters: bool = True
) -> Measurement:
    """What is measured where it lands: the tree there, all else as the lane showed it."""
    landing.touched()
    after = landing.tree()
    remarks = (*landing.remarks, *laid.remarks)
    landing.remarks = ()
    if laid.problem:
        remarks = (*remarks, laid.problem)
    evidence = replace(
        judged.evidence,
        tree=after.tree,
        head=after.head or "",
        checks=None,
        doubts=None,
        trial=None,
        opinions=None if doubters else (),
        work="",
        remarks=(*judged.evidence.remarks, *remarks),
        unfinished=laid.problem or judged.evidence.unfinished,
    )
    return replace(judged.measured, after=after, evidence=evidence, stories=laid.begun.stories)


def _returned(
    run: Run,
    judged: Judgement,
    landed: Sequence[LandedCommit],
    to_do: str,
    words: str,
    rest: str = "",
) -> Judgement:
    """The same iteration as one that goes back to its lane, told what landed meanwhile."""
    others = tuple(dict.fromkeys(it.story for it in landed if it.story))
    stories = judged.begun.stories
    lines = list[str]()
    for it in landed[-_NAMED:]:
        lines.append(f"- {it.did}")
        known = stories.get(it.story) if stories and it.story else None
        if known and known.criteria:
            asked = (one_line(text, _LONGEST_CRITERION) for text in known.criteria[:_MOST_CRITERIA])
            lines.append(f"  it was asked for: {'; '.join(asked)}")
    said = "\n".join(["Since this story began, this landed on the branch:", *lines, to_do])
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
        if done.n >= number:
            continue
        for effect in done.effects:
            if isinstance(effect, AddProgress):
                add_progress(root / PROGRESS_VIEW, run.id, done.n, effect, root=root)


async def redo_owed_effects(pool: LanePool, owing: IterationRecord) -> None:
    """Do what an iteration owes, where it passed in the state that was checked."""
    run = pool.run
    landing = pool.workspace
    place = pool.landing
    number = pool.book.lane_of(owing.story)
    if not owing.owes(CommitStory):
        workspace = pool.lane(number).workspace if number else landing
        await apply_effects(run, workspace, owing.n, owing.effects)
        return
    made = any(
        find_commit_for(run, landing, place.repo, owing.n, effect)
        for effect in owing.effects
        if isinstance(effect, CommitStory)
    )
    if not made and landing.tree().tree != owing.end_tree:
        work = place.repo.commit_of(ref_name(run.id, owing.n, "lanes"))
        tip = pool.tip()
        await landing.prepare(tip)
        ref = ref_name(run.id, owing.n, "lanes")
        await in_thread(lambda _: put_onto(place, work, ref=ref))
        if number:
            lane = pool.lane(number)
            await in_thread(lambda _: bring_inner(lane.place, place, pool.note(number).base))
        landing.touched()
    if not made:
        add_earlier(run, landing, owing.n, owing.story or "")
    await apply_effects(run, landing, owing.n, owing.effects)


def leave_for_later(pool: LanePool, lane: Lane, judged: Judgement, why: Decision) -> Decision:
    """The run ends before a start is through: what is left of it is done later, without agent."""
    number = judged.begun.number
    words = f"what iteration {number} owes is still to be done: `ralph run --continue` does it"
    if not is_written_down(lane, judged):
        pool.run.owed_usd += judged.step.spent.cost_usd
        words = TO_BE_CHECKED.format(number)
    return replace(why, reasons=(*why.reasons, words))
