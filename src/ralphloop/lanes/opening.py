"""A run with lanes from its beginning to its end: opened, recovered, and brought home.

The run's branch is the stories' `branchName` where nobody stands on it, else `ralph/<run>`.  At the
end the checkout's branch is moved forward to it, but only if its tree is clean and nobody moved it;
and so is one that the run has left to whoever stands on it (`lanes.branch`).
After a crash an iteration whose agent had ended is judged again from its lane, on to its landing.
"""

import os
import time
from contextlib import ExitStack
from functools import partial

from msgspec.structs import replace

from ralphloop.core.merging import SUBMODULE
from ralphloop.core.model import Decision, ExitDecision
from ralphloop.core.planning import pays_for
from ralphloop.core.run_state import Book, Session
from ralphloop.core.totals import quota_words
from ralphloop.errors import GitDisturbed, RalphError, RepositoryError, UsageError
from ralphloop.journal.lock import RunLock
from ralphloop.journal.queries import JournalReader
from ralphloop.lanes import worktrees
from ralphloop.lanes.branch import keep_up, land, make_branch
from ralphloop.lanes.branch_names import (
    branches_for,
    holds_what_landed,
    is_of_a_run,
    landed_ref,
    who_stands_on,
)
from ralphloop.lanes.coordinator import Coordinator, keeps_to_its_share
from ralphloop.lanes.landing import again, land_iteration, settle
from ralphloop.lanes.meanwhile import blob_at, blob_of, digest, watch_again, way_to_have_it
from ralphloop.lanes.stash import hear_of_stashes
from ralphloop.lanes.yard import Yard, finish_move, made_ready, repository_of, site_in
from ralphloop.loop.agent import recover_iteration
from ralphloop.loop.effects import take_back
from ralphloop.loop.open import EndedRun, HeldProject, attended, held, open_run, recover
from ralphloop.loop.prepare import Setup
from ralphloop.loop.run import Asks, Run, Sink, Tell, nobody_says_yes
from ralphloop.loop.steadily import steadily
from ralphloop.loop.workspace import Workspace
from ralphloop.proc.threads import StopSignal, in_thread, short
from ralphloop.project import RALPH_DIR
from ralphloop.repo.git import printable
from ralphloop.repo.merge import changes
from ralphloop.repo.work_tree import Repository, has_again
from ralphloop.text.plain import some

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
        return candidate is not None and journal.part(Book, candidate.run.id) is not None


async def run_in_lanes(
    setup: Setup, *, stop: StopSignal, sink: Sink, tell: Tell, asks: Asks = nobody_says_yes
) -> EndedRun:
    opening = held(setup, stop=stop, sink=sink, tell=tell, asks=asks)
    with opening as outer, ExitStack() as locks:
        locks.callback(_end_setups, tell)
        yard = await open_yard(outer)
        hold = partial(RunLock, run=outer.run.id, now=time.time(), lane=True)
        locks.callback(yard.close)
        locks.enter_context(hold(yard.landing.root / RALPH_DIR))
        yard.hold = lambda place: locks.enter_context(hold(place.root / RALPH_DIR))

        async def work(_: Run, workspace: Workspace) -> Decision:
            try:
                decision = await Coordinator(yard).run()
            finally:
                yard.close()
            workspace.touched()
            return decision

        ended = await attended(yard.run, yard.workspace, work)
        home = partial(bring_home, yard, ended.told.decision, tell)
        try:
            await steadily(yard.run, partial(short, home))
        except GitDisturbed as error:  # nothing is lost: it is on the run's branch
            tell(f"{error.message}; {_left_there(yard)}.")
        return ended


def _end_setups(tell: Tell) -> None:
    if ended := worktrees.end_setups():
        tell(f"Ended what lanes.setup had left at work: {', '.join(ended)}.")


async def settle_lanes(setup: Setup, *, stop: StopSignal, sink: Sink, tell: Tell) -> None:
    """Before a run in the checkout: what a run in lanes that was cut off left to do."""
    with held(setup, stop=stop, sink=sink, tell=tell) as outer:
        await _settled(outer)


async def open_yard(outer: HeldProject) -> Yard:
    """Settle what a crash left, then the landing tree, then the run in it."""
    home = outer.run.setup
    journal = outer.run.journal
    name = outer.run.id
    tell = outer.run.tell
    checkout = repository_of(home)
    now = time.time()
    _insist(home, checkout)
    candidate = journal.resume_candidate(now, errand=False)
    resumes = bool(home.options.resume and candidate and not candidate.expired)
    if candidate and resumes and journal.part(Book, candidate.run.id) is None:
        raise UsageError(
            "the unfinished run works in the checkout, not in lanes",
            "Go on with it: ralph run --continue --lanes 0; or begin anew: ralph run --lanes N",
        )
    before = await _settled(outer)
    if resumes and before:
        book = before
    else:
        new_book = partial(_new_book, home, checkout, name, before, tell)
        book = await steadily(outer.run, partial(short, new_book))
    count = home.config.lanes.count or book.count
    book = replace(book, count=count)
    open_them = partial(_yard, outer, outer.run.session, book)
    yard = await steadily(outer.run, partial(short, open_them))
    if dirty := checkout.dirty_paths(home.site.own):
        names = some([printable(path) for path in dirty])
        tell(f"warning: changes of your checkout stay there and are no part of the run: {names}")
    tip = yard.tip()
    try:
        stand = partial(worktrees.stand, yard.landing, tip)
        await steadily(outer.run, lambda: in_thread(lambda _: stand()))
        await made_ready(yard, yard.landing)
        yard.keep()  # before the run exists: none is ever without its lanes
        yard.run = await open_run(yard.run, yard.workspace)
    except RalphError:
        if journal.find_run(name) is None:  # nothing began: no branch of it is left
            is_new = is_of_a_run(book.branch) and name in book.branch
            for ref in (book.kept_at, *([f"refs/heads/{book.branch}"] if is_new else [])):
                checkout.git.writing().attempt("update-ref", "-d", ref, tip)
        raise
    _tell_lanes(yard, tell)
    return yard


def _tell_lanes(yard: Yard, tell: Tell) -> None:
    """Where they are; and what quota and budget can pay for, before several spend it at once."""
    run = yard.run
    count = yard.book.count
    where = f"{yard.directory}, landing on {yard.book.branch}"
    tell(f"{count} lane{'s' * (count > 1)} in {where}; your checkout stays as it is.")
    if count <= 1:
        return
    left = run.limits, run.totals(), yard.journal.dearest()
    if words := pays_for(*left, capped=keeps_to_its_share(run)):
        tell(words)
    used = quota_words(run.session.state.quota, run.clock(), resets=True)
    sooner = "Several agents at once reach a usage limit sooner; all of them wait for it"
    tell(f"{sooner} together ({used})." if used else f"{sooner} together.")


def _insist(home: Setup, checkout: Repository) -> None:
    if home.stories is None:
        raise UsageError("lanes work on stories", "Leave out --prompt, or --lanes.")
    if home.config.git.commit != "story":
        raise UsageError("lanes land by commits", 'Set commit = "story" under [git].')
    if home.site.shares:
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


def _new_book(home: Setup, checkout: Repository, run: str, before: Book | None, tell: Tell) -> Book:
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
    return Book(
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
        book = journal.part(Book, newest.id) if newest else None
    if book and _waiting(setup.repo, book):
        raise _merge_first(setup, book)


def _waiting(checkout: Repository, book: Book) -> str:
    """What landed for the branch of the checkout and is not in it; empty where it is."""
    tip = checkout.commit_of(f"refs/heads/{book.branch}")  # without it, they do without
    tip = tip and checkout.commit_of(holds_what_landed(checkout, book))
    mine = bool(book.origin) and checkout.branch() in (book.origin, *book.left)
    return tip if tip and mine and not has_again(checkout, checkout.head(), tip) else ""


def _merge_first(home: Setup, book: Book) -> RepositoryError:
    return RepositoryError(
        f"what the last run landed is on {holds_what_landed(repository_of(home), book)}"
        f" and not in {repository_of(home).branch()}",
        f"{way_to_have_it(home, book)}; or to do without it: git branch -D {book.branch}",
    )


def _yard(outer: HeldProject, session: Session, book: Book) -> Yard:
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
    workspace = Workspace(site, lock=outer.checkout.lock)
    run = outer.run if session is outer.run.session else outer.run.of_session(session)
    place = replace(landing, repo=site.repo or landing.repo)  # whose git is confined as well
    yard = Yard(home, run, workspace, place, outer.checkout.measure, directory, book)
    workspace.lands = partial(land, yard)
    return yard


async def _settled(outer: HeldProject) -> Book | None:
    """Bring unfinished runs in line, wherever they worked; what the last lanes held."""
    journal = outer.run.journal
    book = None
    for record in journal.unfinished_runs():
        session = journal.session(record.id)
        if (found := journal.part(Book, record.id)) is not None:
            open_them = partial(_yard, outer, session, found)
            yard = await steadily(outer.run, partial(short, open_them))
            done = await steadily(outer.run, partial(recover_lanes, yard))
            book = book or yard.book
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
    return book or (journal.part(Book, newest.id) if newest else None)


async def recover_lanes(yard: Yard) -> list[str]:
    """Do what was begun; returns what was done, in words."""
    journal = yard.journal
    run = yard.run.id
    if worktrees.is_empty(yard.landing):  # somebody deleted it
        worktrees.stand(yard.landing, yard.tip())
    put_back = yard.workspace.restore_experiment(journal)
    done = [put_back] if put_back else []
    for number, note in tuple(yard.book.lanes.items()):
        if note.onto:
            await finish_move(yard, yard.lane(number))
            done.append(f"moved the work of {note.story} in lane {number}")
    for owing in journal.owed_effects(run):
        holding = yard.book.lane_of(owing.story)
        await again(yard, owing)
        if holding:
            settle(yard, holding, owing.story or "", owing.n)
        done.append(f"finished what iteration {owing.n} had left to do")
    keep_up(yard)  # what is owed lands in the state in which it was checked
    cuts = journal.unfinished_iterations(run)
    gone = take_back(yard.run, yard.workspace) if cuts else {}
    done += [f"{story} is open again: {reason}" for story, reason in gone.items()]
    lanes = [yard.lane(yard.book.lane_of(cut.story) or 1) for cut in cuts]
    for cut, lane in zip(cuts, lanes, strict=True):
        watch_again(yard, lane, cut.n, cut.story or "")
        if lost := lane.lost:
            lane.workspace.left_lane = partial(str, lost)
        await hear_of_stashes(yard, lane, None)
        conclude = partial(land_iteration, yard, lane)
        done.append(await recover_iteration(yard.run, lane.workspace, cut, conclude))
    yard.close()
    yard.workspace.close()
    return done


def _left_there(yard: Yard) -> str:
    book = yard.book
    return f"what landed is on {book.branch}; to have it: {way_to_have_it(yard.home, book)}"


def bring_home(yard: Yard, decision: ExitDecision, tell: Tell) -> None:
    """Move the branch of the checkout forward if nobody is disturbed by it, or say how."""
    checkout = yard.checkout
    book = yard.book
    home = yard.home
    tip = yard.tip()
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
        yard.keep(seen=digest(home.stories.path) if home.stories else "")
        if is_unmoved:
            yard.keep(origin_head=tip)
        if decision is ExitDecision.PROJECT_COMPLETE and is_of_a_run(book.branch):
            _forget_branch(yard, tip)
        if stands_on_ours:
            yard.keep(branch=here)  # which their own branch does not have yet
    elif tip == book.origin_head:
        words = "nothing landed"
    elif tip == head:
        words = f"{here} has what landed"
    else:
        words = _left_there(yard)
    yard.keep(ended=words)
    tell(f"{words}.")


def _forget_branch(yard: Yard, tip: str) -> None:
    """Delete the branch of a run that is over and that the checkout has, and our ref of it."""
    git = yard.checkout.git.writing()
    branch = yard.book.branch
    if who_stands_on(yard.checkout, branch) is None:
        git.attempt("update-ref", "-d", f"refs/heads/{branch}", tip)
        git.attempt("update-ref", "-d", yard.book.kept_at, tip)


def _moved_submodules(checkout: Repository, before: str, after: str) -> list[str]:
    """Submodules that stand on another commit since; their files are not touched."""
    found = changes(checkout.git, before, after)
    paths = [it.path for it in found if it.new is not None and it.new.mode == SUBMODULE]
    return [printable(os.fsdecode(path)) for path in paths]
