"""A run with lanes from its beginning to its end: opened, recovered, and brought home.

The run's branch is the stories' `branchName` where nobody stands on it, else `ralph/<run>`.  At the
end the checkout's branch is moved forward to it, but only if its tree is clean and nobody moved it;
and so is one that the run has left to whoever stands on it (`lanes.branch`).
After a crash an iteration whose agent had ended is judged again from its lane, on to its landing.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from msgspec.structs import replace

from ralphloop.core.merging import SUBMODULE
from ralphloop.core.model import ExitDecision
from ralphloop.core.planning import pays_for
from ralphloop.core.run_state import LanesState, Session
from ralphloop.core.totals import quota_words
from ralphloop.errors import GitDisturbed, RalphError, RepositoryError, UsageError
from ralphloop.journal.queries import JournalReader
from ralphloop.journal.records import IterationRecord
from ralphloop.lanes import worktrees
from ralphloop.lanes.branch import keep_up, make_branch
from ralphloop.lanes.branch_names import (
    branches_for,
    holds_what_landed,
    is_of_a_run,
    landed_ref,
    who_stands_on,
)
from ralphloop.lanes.checkout_watch import (
    blob_at,
    blob_of,
    digest,
    report_work_outside,
    way_to_have_it,
)
from ralphloop.lanes.coordinator import Coordinator
from ralphloop.lanes.lacking import for_want_of, lacking_in_lanes
from ralphloop.lanes.landing import LandingWorkspace, land_iteration, redo_owed_effects, settle
from ralphloop.lanes.pool import (
    Lane,
    LanePool,
    LaneWorkspace,
    MakesLane,
    TreeLocks,
    ensure_ready,
    finish_move,
    repository_of,
    site_in,
)
from ralphloop.lanes.stash import hear_of_stashes
from ralphloop.loop.agent import recover_iteration, stop_agent_of
from ralphloop.loop.effects import take_back
from ralphloop.loop.open import (
    EndedRun,
    HeldProject,
    attended,
    carried,
    hold_project,
    open_run,
    recover,
)
from ralphloop.loop.prepare import Setup
from ralphloop.loop.run import Asks, Sink, Tell, nobody_says_yes
from ralphloop.loop.steadily import steadily, steadily_now
from ralphloop.loop.workspace import Workspace
from ralphloop.proc.threads import StopSignal, side_by_side
from ralphloop.repo.git import printable
from ralphloop.repo.merge import changes
from ralphloop.repo.work_tree import Repository, has_again
from ralphloop.text.plain import counted, some

_MERGE_S = 600.0


def wanted(setup: Setup) -> bool:
    """Whether a run works in lanes: it is asked for, or the one to be settled first did."""
    asked = "lanes.count" in setup.options.flags
    if setup.options.session or setup.site.is_errand or (setup.stories is None and not asked):
        return False
    if setup.config.lanes.count:
        return True
    with JournalReader.open(setup.project.journal) as journal:
        candidate = journal.resume_candidate(time.time(), errand=False)
        return candidate is not None and journal.part(LanesState, candidate.run.id) is not None


def fleet_of(setup: Setup) -> str:
    """Who carries the starts of a run to other machines; empty: all are made here.

    It is asked for, or carried those of the run that goes on.
    """
    asked = "fleet.server" in setup.options.flags
    if setup.site.is_errand or (setup.stories is None and not asked):
        return ""
    if setup.config.fleet.server or not setup.options.resume:
        return setup.config.fleet.server
    with JournalReader.open(setup.project.journal) as journal:
        candidate = journal.resume_candidate(time.time(), errand=False)
        book = journal.part(LanesState, candidate.run.id) if candidate else None
    return book.fleet if book else ""


async def run_in_lanes(
    setup: Setup,
    *,
    stop: StopSignal,
    sink: Sink,
    tell: Tell,
    asks: Asks = nobody_says_yes,
    make_lane: MakesLane = LaneWorkspace,
) -> EndedRun:
    """A whole run in lanes; `make_lane` says what a lane is a place of."""
    holding = hold_project(setup, stop=stop, sink=sink, tell=tell, asks=asks)
    with holding as outer, ExitStack() as locks:
        locks.callback(_end_setups, tell)
        pool = await open_pool(outer, make_lane)
        locks.callback(pool.close)
        pool.locks = TreeLocks(locks, outer.run.id)
        pool.hold(pool.landing)
        async with carried(pool.run, pool.workspace) as under_way:
            try:
                under_way.decision = await Coordinator(pool).run()
            finally:
                pool.close()
            pool.workspace.touched()
        ended = under_way.ended
        home = partial(bring_home, pool, ended.told.decision, tell)
        try:
            await steadily_now(pool.run, home)
        except GitDisturbed as error:  # nothing is lost: it is on the run's branch
            tell(f"{error.message}; {_left_there(pool)}.")
        return ended


def _end_setups(tell: Tell) -> None:
    if ended := worktrees.end_setups():
        tell(f"Ended what lanes.setup had left at work: {', '.join(ended)}.")


async def settle_lanes(setup: Setup, *, stop: StopSignal, sink: Sink, tell: Tell) -> None:
    """Before a run in the checkout: what a run in lanes that was cut off left to do."""
    with hold_project(setup, stop=stop, sink=sink, tell=tell) as outer:
        await _settle_unfinished(outer)


async def open_pool(outer: HeldProject, make_lane: MakesLane = LaneWorkspace) -> LanePool:
    """Settle what a crash left, then the landing tree, then the run in it."""
    home = outer.run.setup
    journal = outer.run.journal
    name = outer.run.id
    tell = outer.run.tell
    checkout = repository_of(home)
    now = time.time()
    _insist_on_stories(home, checkout)
    candidate = journal.resume_candidate(now, errand=False)
    resumes = bool(home.options.resume and candidate and not candidate.expired)
    if candidate and resumes and journal.part(LanesState, candidate.run.id) is None:
        raise UsageError(
            "the unfinished run works in the checkout, not in lanes",
            "Go on with it: ralph run --continue --lanes 0; or begin anew: ralph run --lanes N",
        )
    before = await _settle_unfinished(outer, make_lane)
    open_trees = partial(_open_trees, outer, before, make_lane, resumes=resumes)
    pool = await steadily_now(outer.run, open_trees)
    book = pool.book
    if dirty := checkout.dirty_paths(home.site.own):
        names = some([printable(path) for path in dirty])
        tell(f"warning: changes of your checkout stay there and are no part of the run: {names}")
    tip = pool.tip()
    try:
        await steadily(outer.run, partial(pool.workspace.prepare, tip))
        await ensure_ready(pool, pool.workspace)
        pool.keep()  # before the run exists: none is ever without its lanes
        pool.run = await open_run(pool.run, pool.workspace)
    except RalphError as error:
        if journal.find_run(name) is None:  # nothing began: no branch of it is left
            is_new = is_of_a_run(book.branch) and name in book.branch
            refs = [book.kept_at]
            if is_new:
                refs.append(f"refs/heads/{book.branch}")
            for ref in refs:
                checkout.git.writing().attempt("update-ref", "-d", ref, tip)
        if not isinstance(error, RepositoryError) or isinstance(error, GitDisturbed):
            raise
        lacking = lacking_in_lanes(home.project.root, home.config, checkout)
        raise for_want_of(error, lacking) from error
    _tell_lanes(pool, tell)
    return pool


def _open_trees(
    outer: HeldProject, before: LanesState | None, make_lane: MakesLane, *, resumes: bool
) -> LanePool:
    """The lanes of a run and its landing tree; a branch to land on where it goes on with none."""
    home = outer.run.setup
    book = before if resumes else None
    if book is None:
        book = _new_book(home, repository_of(home), outer.run.id, before, outer.run.tell)
    book = replace(book, count=home.config.lanes.count or book.count)
    return _pool_of(outer, outer.run.session, book, make_lane)


def _tell_lanes(pool: LanePool, tell: Tell) -> None:
    """Where they are; and what quota and budget can pay for, before several spend it at once."""
    run = pool.run
    count = pool.book.count
    where = f"{pool.directory}, landing on {pool.book.branch}"
    tell(f"{counted(count, 'lane')} in {where}; your checkout stays as it is.")
    if count <= 1:
        return
    dearest = pool.journal.dearest()
    is_capped = run.config.agent.keeps_to_budget
    if words := pays_for(run.limits, run.totals(), dearest, capped=is_capped):
        tell(words)
    used = quota_words(run.session.state.usage_windows, run.clock(), resets=True)
    sooner = "Several agents at once reach a usage limit sooner; all of them wait for it"
    tell(f"{sooner} together ({used})." if used else f"{sooner} together.")


def _insist_on_stories(home: Setup, checkout: Repository) -> None:
    if home.stories is None:
        raise UsageError("lanes work on stories", "Leave out --prompt, or --lanes.")
    if home.config.git.commit != "story":
        raise UsageError("lanes land by commits", 'Set commit = "story" under [git].')
    if home.site.has_neighbours:
        raise UsageError(
            "lanes have work trees of their own", 'Set scope = "repository" under [git].'
        )
    if worktrees.read_mark(checkout.git_dir) is not None:
        raise UsageError("this is a lane itself: a lane starts no lanes", "Go to the checkout.")
    if problem := checkout.unfinished():
        raise RepositoryError(problem.message, problem.fix)
    if where := worktrees.tested_instead(checkout, home.config.checks.commands):
        raise RepositoryError(where, f"Take it out of there (deactivate) and {worktrees.MAKE_IT}")
    if checkout.head() is None:
        raise RepositoryError("there is no commit yet", "Commit what you have, then start again.")


def _new_book(
    home: Setup, checkout: Repository, run: str, before: LanesState | None, tell: Tell
) -> LanesState:
    """A branch to land on; lanes that hold work of open stories keep it."""
    head = checkout.head() or ""
    origin = checkout.branch() or ""
    name = home.stories.list.branch_name if home.stories else None
    wanted = ""
    tip = head
    if before and before.branch != name and (waiting := _waiting(checkout, before)):
        if not checkout.git.contains(waiting, head):
            raise _merge_first(home, before)
        # the checkout has only to follow
        wanted = before.branch
        tip = waiting
    elif name and name != origin:
        tip = checkout.commit_of(f"refs/heads/{name}") or head
        wanted = name
    names = [*branches_for(checkout, run)]
    if wanted and (place := who_stands_on(checkout, wanted)) is not None:
        tell(f"Somebody stands on {wanted} ({place}): stories land on {names[0]}.")
    elif wanted and checkout.commit_of(f"refs/heads/{wanted}") not in ("", tip):
        moved = f"{wanted} was moved by somebody and lacks what the last run landed"
        tell(f"{moved}; that is kept: stories land on {names[0]}, which has it.")
    elif wanted:
        names.insert(0, wanted)
    made = make_branch(checkout, names, tip)
    if made.instead:
        tell(f"{made.instead}: stories land on {made.name}.")
    kept_at = landed_ref(run)
    checkout.git.writing().run("update-ref", kept_at, tip)
    return LanesState(
        branch=made.name,
        kept_at=kept_at,
        origin=origin if made.name != name else "",
        origin_head=head,
        on=origin,
        lanes=before.lanes if before else {},
        kept=before.kept if before else {},
    )


def insist_on_what_landed(setup: Setup) -> None:
    """No run in the checkout without what the last one landed: all of it would be done again."""
    if setup.repo is None or setup.site.is_errand or setup.options.session:
        return
    with JournalReader.open(setup.project.journal) as journal:
        newest = journal.latest_run()
        book = journal.part(LanesState, newest.id) if newest else None
    if book and _waiting(setup.repo, book):
        raise _merge_first(setup, book)


def _waiting(checkout: Repository, book: LanesState) -> str:
    """What landed for the branch of the checkout and is not in it; empty where it is."""
    tip = checkout.commit_of(f"refs/heads/{book.branch}")  # without it, they do without
    tip = tip and checkout.commit_of(holds_what_landed(checkout, book))
    mine = bool(book.origin) and checkout.branch() in (book.origin, *book.left)
    return tip if tip and mine and not has_again(checkout, checkout.head(), tip) else ""


def _merge_first(home: Setup, book: LanesState) -> RepositoryError:
    return RepositoryError(
        f"what the last run landed is on {holds_what_landed(repository_of(home), book)}"
        f" and not in {repository_of(home).branch()}",
        f"{way_to_have_it(home, book)}; or to do without it: git branch -D {book.branch}",
    )


def _pool_of(
    outer: HeldProject, session: Session, book: LanesState, make_lane: MakesLane
) -> LanePool:
    """The lanes of a book, and the tree they land in."""
    home = outer.run.setup
    checkout = repository_of(home)
    project = home.project.root
    directory = worktrees.directory_of(checkout, project, home.config.lanes.where)
    book = replace(book, kept_at=book.kept_at or landed_ref(session.run))
    tip = checkout.commit_of(book.kept_at) or checkout.commit_of(f"refs/heads/{book.branch}")
    tip = tip or checkout.head() or ""
    landing = worktrees.open_tree(checkout, project, directory, 0, tip)
    known = home.stories
    path = home.site.listed
    if book.own_list is None and known is not None:  # found out once, when the run begins
        own = True
        seen = book.seen
        if path:
            # One that was changed is the user's alone only where nothing that landed is in the
            # branch's: the marks of theirs are as old as their commit then.
            theirs = blob_of(checkout, path, known.path)
            was = blob_at(checkout, "HEAD", path)
            landed = blob_at(checkout, tip, path)
            own = not (landed and was) or theirs != was == landed
            seen = digest(known.path) if theirs == was else ""
        book = replace(book, own_list=own, seen=seen)
    listed = "" if book.own_list else path
    site = site_in(home, landing, listed=listed, lands_on=book.branch)
    workspace = LandingWorkspace(site, landing, lock=outer.checkout.lock)
    run = outer.run if session is outer.run.session else outer.run.of_session(session)
    # One that goes on has as many as it had, whatever the settings say.
    lanes = replace(home.config.lanes, count=book.count)
    run.setup = replace(home, config=replace(home.config, lanes=lanes))
    measure = outer.checkout.measure
    pool = LanePool(home, run, workspace, measure, directory, book, make_lane=make_lane)
    workspace.pool = pool
    return pool


async def _settle_unfinished(
    outer: HeldProject, make_lane: MakesLane = LaneWorkspace
) -> LanesState | None:
    """Bring unfinished runs in line, wherever they worked; what the last lanes held."""
    journal = outer.run.journal
    book = None
    for record in journal.unfinished_runs():
        session = journal.session(record.id)
        if (found := journal.part(LanesState, record.id)) is not None:
            open_them = partial(_pool_of, outer, session, found, make_lane)
            pool = await steadily_now(outer.run, open_them)
            with attended(pool.run, pool.workspace):
                done = await steadily(outer.run, partial(recover_lanes, pool))
            book = book or pool.book
        else:  # it worked in the checkout
            site = outer.run.setup.site_of_stories(record.prd_path)
            workspace = Workspace(site, lock=outer.checkout.lock)
            put_back = workspace.restore_experiment(journal)
            done = [put_back] if put_back else []
            done += await recover(outer.run.of_session(session), workspace)
            workspace.close()
        for words in done:
            outer.run.tell(f"Recovered: {words}.")
    newest = journal.latest_run()
    return book or (journal.part(LanesState, newest.id) if newest else None)


async def recover_lanes(pool: LanePool) -> list[str]:
    """Do what was begun; returns what was done, in words."""
    journal = pool.journal
    run = pool.run.id
    if worktrees.is_empty(pool.landing):  # somebody deleted it
        worktrees.reset_to_commit(pool.landing, pool.tip())
    put_back = pool.workspace.restore_experiment(journal)
    done = [put_back] if put_back else []
    for number, note in tuple(pool.book.lanes.items()):
        if note.onto:
            await finish_move(pool, pool.lane(number))
            done.append(f"moved the work of {note.story} in lane {number}")
    for owing in journal.owed_effects(run):
        holding = pool.book.lane_of(owing.story)
        await redo_owed_effects(pool, owing)
        if holding:
            settle(pool, holding, owing.story or "", owing.n)
        done.append(f"finished what iteration {owing.n} had left to do")
    keep_up(pool)  # what is owed lands in the state in which it was checked
    cuts = journal.unfinished_iterations(run)
    gone = take_back(pool.run, pool.workspace) if cuts else {}
    done += [f"{story} is open again: {reason}" for story, reason in gone.items()]
    lanes = [pool.lane(pool.book.lane_of(cut.story) or 1) for cut in cuts]
    elsewhere: dict[int, list[IterationRecord]] = {}
    landing = asyncio.Lock()
    for cut, lane in zip(cuts, lanes, strict=True):
        if lane.workspace.gave_away(pool.run, cut.n):
            elsewhere.setdefault(lane.number, []).append(cut)
        else:
            done += await _recover_in_lane(pool, lane, [cut], landing)
    waiting = [
        _recover_in_lane(pool, pool.lane(number), given, landing)
        for number, given in elsewhere.items()
    ]
    for words in await side_by_side(waiting):
        done += words
    pool.close()
    return done


async def _recover_in_lane(
    pool: LanePool, lane: Lane, cuts: Sequence[IterationRecord], landing: asyncio.Lock
) -> list[str]:
    """Bring what was begun in one lane to its end, one after the other; `landing` is one tree."""
    done = []
    for cut in cuts:
        given_away = lane.workspace.gave_away(pool.run, cut.n)
        stopped = () if given_away else stop_agent_of(cut)
        if lane.lost:
            lane.workspace.astray = (lane.lost,)
        else:
            found = report_work_outside(pool, lane, cut.n, cut.story or "")
            lane.workspace.astray = found
        await hear_of_stashes(pool, lane, None)
        recovered = await recover_iteration(pool.run, lane.workspace, cut, stopped)
        if recovered.judged is not None:
            async with landing:
                await land_iteration(pool, lane, recovered.judged)
        done.append(recovered.words)
    return done


def _left_there(pool: LanePool) -> str:
    book = pool.book
    return f"what landed is on {book.branch}; to have it: {way_to_have_it(pool.home, book)}"


def bring_home(pool: LanePool, decision: ExitDecision, tell: Tell) -> None:
    """Move the branch of the checkout forward if nobody is disturbed by it, or say how."""
    checkout = pool.checkout
    book = pool.book
    home = pool.home
    tip = pool.tip()
    has_it = False
    here = checkout.branch() or ""
    head = checkout.head() or ""
    is_unmoved = bool(book.origin) and here == book.origin and head == book.origin_head
    stands_on_ours = here in book.left and checkout.git.contains(tip, head)
    may_follow = (is_unmoved or stands_on_ours) and tip != head
    is_free = not checkout.unfinished_operation() and not checkout.dirty_paths(home.site.own)
    if may_follow and is_free:
        git = checkout.git.writing().adapted(config=(f"core.hooksPath={os.devnull}",))
        ended = git.attempt("merge", "--ff-only", "--quiet", tip, timeout_s=_MERGE_S)
        has_it = ended.returncode == 0
    if has_it:
        words = f"{here} has what landed"
        if moved := _moved_submodules(checkout, book.origin_head, tip):
            words += f"; for {some(moved)}: git submodule update"
        pool.keep(seen=digest(home.stories.path) if home.stories else "")
        if is_unmoved:
            pool.keep(origin_head=tip)
        if decision is ExitDecision.PROJECT_COMPLETE and is_of_a_run(book.branch):
            _forget_branch(pool, tip)
        if stands_on_ours:
            pool.keep(branch=here)  # which their own branch does not have yet
    elif tip == book.origin_head:
        words = "nothing landed"
    elif tip == head:
        words = f"{here} has what landed"
    else:
        words = _left_there(pool)
    pool.keep(ended=words)
    tell(f"{words}.")


def _forget_branch(pool: LanePool, tip: str) -> None:
    """Delete the branch of a run that is over and that the checkout has, and our ref of it."""
    git = pool.checkout.git.writing()
    branch = pool.book.branch
    if who_stands_on(pool.checkout, branch) is None:
        git.attempt("update-ref", "-d", f"refs/heads/{branch}", tip)
        git.attempt("update-ref", "-d", pool.book.kept_at, tip)


def _moved_submodules(checkout: Repository, before: str, after: str) -> list[str]:
    """Submodules that stand on another commit since; their files are not touched."""
    found = changes(checkout.git, before, after)
    paths = [it.path for it in found if it.new is not None and it.new.mode == SUBMODULE]
    return [printable(os.fsdecode(path)) for path in paths]
