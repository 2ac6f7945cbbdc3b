"""The lanes of one run: which story is in which of them, and where each began.

The book is written to the journal before a work tree is touched, so that a successor can do again
what was begun.  A story takes a lane up once what that held is saved, and is moved onto a newer
commit once its work is one; giving a lane back does nothing: the next one saves what is left.
"""

import os
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.core.events import LanesMended
from ralphloop.core.interventions import PutOntoLanded, TakenIntoLane
from ralphloop.core.model import CheckStatus, Story
from ralphloop.core.run_state import LaneNote, LanesState, Standing
from ralphloop.core.totals import Expense
from ralphloop.errors import InputError, RepositoryError, UsageError
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import RunLock
from ralphloop.journal.views import PROGRESS_VIEW
from ralphloop.lanes import inner_repositories, worktrees
from ralphloop.lanes.conflicts import told
from ralphloop.lanes.worktrees import LaneTree
from ralphloop.loop.begin import Round
from ralphloop.loop.confine import confine_site
from ralphloop.loop.effects import restore_saved_work
from ralphloop.loop.judging import Judgement
from ralphloop.loop.prepare import Setup, Site, spec_of
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace
from ralphloop.proc.threads import in_thread
from ralphloop.project import LANE_VARIABLE, RALPH_DIR, Project
from ralphloop.prompts import OtherLane
from ralphloop.repo.checks import last_lines
from ralphloop.repo.git import printable
from ralphloop.repo.merge import entries
from ralphloop.repo.set_aside import ref_name
from ralphloop.repo.snapshot import Snapshotter
from ralphloop.repo.work_tree import Repository, never_committed, project_prefix
from ralphloop.stories.source import StoryFile, read
from ralphloop.text.durations import format_duration

_T = TypeVar("_T")


class TreeWorkspace(Workspace):
    """A work tree of ours as a place to work or to judge in."""

    def __init__(
        self,
        site: Site,
        place: LaneTree,
        *,
        lock: RunLock | None = None,
        scratch: Path | None = None,
    ) -> None:
        branch = place.branch
        super().__init__(site, number=place.number, lane_branch=branch, lock=lock, scratch=scratch)
        self.seat = place.seat
        # Whose git is confined as well.
        self.place = msgspec.structs.replace(place, repo=site.repo or place.repo)

    def refit(self, site: Site) -> None:
        super().refit(site)
        self.place = msgspec.structs.replace(self.place, repo=site.repo or self.place.repo)

    async def prepare(self, commit: str) -> None:
        place = self.place
        await in_thread(lambda _: worktrees.reset_to_commit(place, commit))
        self.touched()


class LaneWorkspace(TreeWorkspace):
    """A lane: its agent has others beside it, and may go astray."""

    def __init__(self, site: Site, place: LaneTree, pool: "LanePool") -> None:
        super().__init__(site, place)
        self._pool = pool
        self.astray: tuple[str, ...] = ()  # what its last agent did outside of it, in words

    def reserve_money(self, left: float) -> float:
        return self._pool.reserve_money(self.number, left)

    def reserve_tokens(self, left: int) -> int:
        return self._pool.reserve_tokens(self.number, left)

    def left_lane(self) -> str:
        return "; ".join(self.astray)

    async def with_room(self, steps: Callable[[], Awaitable[_T]]) -> _T:
        waits = self._pool.waits_for_room
        return await (steps() if waits is None else waits(self._pool.lanes[self.number], steps))

    def beside(self) -> Sequence[OtherLane]:
        others = (it for it in self._pool.lanes.values() if it.workspace is not self and it.busy)
        return [
            OtherLane(story=lane.busy, files=self._pool.files_in(lane))
            for lane in sorted(others, key=lambda it: it.number)
        ]


class Lane(msgspec.Struct):
    workspace: LaneWorkspace
    busy: str = ""  # the story that is worked on now
    is_to_start: bool = False  # it is made ready for a start that is not yet written down
    lost: str = ""  # what somebody deleted that it held, in words
    left: str = ""  # the tree in which its last start was saved as the note's work
    begun: Round | None = None  # a start that is written ahead, till it is watched
    written: Judgement | None = None  # its last start, as it was written down
    reserved_usd: float | None = None  # dollars that its start may use, or has used
    reserved_tokens: int | None = None  # the same of tokens
    took: Expense | None = None  # by its start, whose agent has ended, till that is written

    @property
    def has_its_part(self) -> bool:
        """Whether what its start may use is taken from what others may."""
        return self.reserved_usd is not None or self.reserved_tokens is not None

    @property
    def number(self) -> int:
        return self.workspace.number

    @property
    def place(self) -> LaneTree:
        return self.workspace.place


class TreeLocks:
    """Keeps others out of the work trees of a run until it ends."""

    def __init__(self, locks: ExitStack, run: str) -> None:
        self._locks = locks
        self._run = run

    def hold(self, place: LaneTree) -> None:
        directory = place.root / RALPH_DIR
        self._locks.enter_context(RunLock(directory, run=self._run, now=time.time(), lane=True))


class WaitsForRoom(Protocol):
    """Takes steps of a lane until there was room for them."""

    async def __call__(self, lane: Lane, steps: Callable[[], Awaitable[_T]]) -> _T: ...


MakesLane = Callable[[Site, LaneTree, "LanePool"], LaneWorkspace]


class LanePool(msgspec.Struct):
    """Everything the lanes of a run have in common."""

    home: Setup  # as the person started it, in the checkout
    run: Run
    workspace: TreeWorkspace  # of the landing tree, with the one session of the run
    outside: Snapshotter  # measures the checkout
    directory: Path
    book: LanesState
    lanes: dict[int, Lane] = msgspec.field(default_factory=dict)
    lands: int = 0  # the lane whose story is where it lands: doubters are asked at its expense
    # Further landing trees, by number: in these the stories of a train are judged.
    bays: dict[int, TreeWorkspace] = msgspec.field(default_factory=dict)
    locks: TreeLocks | None = None  # None: whoever opened the pool holds them another way
    make_lane: MakesLane = LaneWorkspace  # a place that works here, or one that works elsewhere
    waits_for_room: WaitsForRoom | None = None  # None: nothing is started yet

    @property
    def landing(self) -> LaneTree:
        return self.workspace.place

    @property
    def journal(self) -> Journal:
        return self.run.journal

    @property
    def checkout(self) -> Repository:
        return repository_of(self.home)

    def close(self) -> None:
        """Nobody works in any of its places any more; they can be closed twice."""
        self.outside.close()
        self.workspace.close()
        for bay in self.bays.values():
            bay.close()
        for lane in self.lanes.values():
            lane.workspace.close()

    def tip(self) -> str:
        """The newest landed commit."""
        repo = self.checkout
        book = self.book
        tip = repo.commit_of(book.kept_at) or repo.commit_of(f"refs/heads/{book.branch}")
        if not tip:
            raise RepositoryError(
                f"the branch {self.book.branch}, which stories land on, is gone",
                f"Bring it back: git branch {self.book.branch} COMMIT (git reflog knows it; the run"
                f" began at {self.book.origin_head[:12]}), then: ralph run --continue",
            )
        return tip

    def land_on(self, branch: str) -> None:
        """Let stories land on this branch from now on."""
        self.keep(branch=branch)
        self.workspace.refit(msgspec.structs.replace(self.workspace.site, lands_on=branch))

    def reserve_money(self, number: int, left: float) -> float:
        """What a lane may spend so that all together never spend more than is left."""
        lane = self.lanes[number]
        others = [it.reserved_usd for it in self.lanes.values() if it is not lane]
        rest = max(0.0, left - sum(dollars for dollars in others if dollars is not None))
        dearest = self.journal.dearest() or Expense()
        lane.reserved_usd = rest / self._parts(lane, left, dearest.cost_usd)
        return lane.reserved_usd

    def reserve_tokens(self, number: int, left: int) -> int:
        """What tokens a lane may use so that all together never use more than are left."""
        lane = self.lanes[number]
        others = [it.reserved_tokens for it in self.lanes.values() if it is not lane]
        rest = max(0, left - sum(tokens for tokens in others if tokens is not None))
        dearest = self.journal.dearest() or Expense()
        lane.reserved_tokens = rest // self._parts(lane, left, dearest.fresh_tokens)
        return lane.reserved_tokens

    def _parts(self, lane: Lane, left: float, each: float) -> int:
        """Among how many starts the rest is divided: those that may yet be made beside it.

        A lane whose agent has ended, and which only waits to land, starts again soon; and no more
        start than what is left can pay for, where it can pay for one.
        """
        count = self.book.count
        paid = (int(left / each) if each else 0) or count
        others = (it for it in self.lanes.values() if it is not lane)
        at_work = sum(it.has_its_part and it.took is None for it in others)
        return max(1, min(count, paid) - at_work)

    def files_in(self, lane: Lane) -> tuple[str, ...]:
        """What was changed in a lane so far, while its agent works.

        Nothing where git is busy, or where the agent took the lane's tree away: that is for the
        lane itself to find, and no reason why another one could not begin.
        """
        note = self.note(lane.number)
        base = note.base
        if not base or note.story != lane.busy:  # it is not made ready for that story yet
            return ()
        git = lane.place.repo.git
        own = lane.workspace.own
        found = dict[str, None]()
        for asked in (
            ("diff", "--name-only", "-z", "--no-renames", base),
            ("ls-files", "-z", "--others", "--exclude-standard"),
        ):
            try:
                ended = git.attempt(*asked)
            except RepositoryError:
                return ()
            if ended.returncode == 0:
                found |= dict.fromkeys(map(os.fsdecode, ended.stdout.split(b"\0")))
        return tuple(printable(path) for path in found if path and path not in own)

    def hold(self, place: LaneTree) -> None:
        """Keep others out of a work tree."""
        if self.locks is not None:
            self.locks.hold(place)

    def say(self, words: str) -> None:
        """Tell what somebody changed around the lanes, once the run is there for all to see."""
        if self.journal.find_run(self.run.id) is None:
            self.run.tell(f"{words[:1].upper()}{words[1:]}.")
        else:
            self.run.emit(LanesMended(reason=words))

    def note(self, number: int) -> LaneNote:
        return self.book.lanes.get(number, LaneNote())

    def write(self, number: int, **changes: object) -> None:
        note = msgspec.structs.replace(self.note(number), **changes)
        self.keep(lanes={**self.book.lanes, number: note})

    def keep(self, **changes: object) -> None:
        self.book = msgspec.structs.replace(self.book, **changes)
        self.journal.save_part(self.run.id, self.book)

    def lane(self, number: int) -> Lane:
        """The lane of this number, opened or made where it has not been yet."""
        if number not in self.lanes:
            project = self.home.project.root
            place = worktrees.open_tree(self.checkout, project, self.directory, number, self.tip())
            self.hold(place)
            site = site_in(self.home, place, listed=self.home.site.listed)
            workspace = self.make_lane(site, place, self)
            place = workspace.place
            note = self.note(number)
            lost = ""
            if note.story and not note.onto and worktrees.is_empty(place):
                # It was made anew under its story: as that began, with the work that was saved.
                worktrees.reset_to_commit(place, note.base or self.tip())
                worktrees.put_onto(place, note.work)
                lost = f"the files of {place.root} were deleted"
            self.lanes[number] = Lane(workspace, lost=lost)
        return self.lanes[number]


def repository_of(setup: Setup) -> Repository:
    """The repository of the checkout: without one there are no lanes."""
    if setup.repo is None:
        raise UsageError("lanes are work trees of a git repository, and there is none", "git init")
    return setup.repo


def site_in(home: Setup, place: LaneTree, *, listed: str, lands_on: str = "") -> Site:
    """Another work tree as a place to work in; what is ours stays with the checkout."""
    checkout = repository_of(home)
    prefix = project_prefix(checkout.root, home.project.root)
    project = Project(place.root / prefix, home.project.root)
    stories = home.stories
    within = None
    if stories is not None and listed:
        stories = StoryFile(place.root / listed, stories.list)
        within = place.root
    specs = home.site.specs_dir
    if specs.is_relative_to(checkout.root):
        specs = place.root / specs.relative_to(checkout.root)
    env = {**home.options.env, LANE_VARIABLE: str(place.seat)}
    if place.number:
        name = env.get("GIT_COMMITTER_NAME") or checkout.git.line(
            "config", "--get", "user.name", ok=(0, 1)
        )
        env["GIT_COMMITTER_NAME"] = f"{name or 'ralph'} {place.signature}"
    site = msgspec.structs.replace(
        home.site,
        project=project,
        repo=place.repo,
        stories=stories,
        within=within or home.site.within,
        specs_dir=specs,
        env=env,
        lands_on=lands_on,
    )
    return confine_site(home, site).site


def mend_landing(pool: LanePool) -> bool:
    """Make the landing tree again where somebody deleted it; whether it was."""
    place = pool.landing
    if not worktrees.is_gone(place):
        return False
    make_again(pool, place, pool.tip())
    pool.workspace.touched()
    pool.say(f"{place.root} was deleted by somebody; it was made again")
    return True


def mend_lane(pool: LanePool, lane: Lane) -> bool:
    """Make a lane again where somebody deleted it: as its story began, with what was saved."""
    place = lane.place
    note = pool.note(lane.number)
    base = note.base or pool.tip()
    if not worktrees.is_gone(place):
        stands_on_it = place.repo.branch() == place.branch  # a new one stands on none
        if stands_on_it and worktrees.bring_branch_back(place, base):
            pool.say(f"the branch {place.branch} was deleted by somebody; it was made again")
        return False
    make_again(pool, place, base)
    if place.repo.head() == base and not note.onto:
        worktrees.put_onto(place, note.work)  # what it met then it meets again
    lane.workspace.touched()
    lane.lost = f"the files of {place.root} were deleted"
    return True


def make_again(pool: LanePool, place: LaneTree, commit: str) -> None:
    """Make a tree again that somebody deleted, and keep others out of it as before."""
    is_held = place.repo.git_dir.is_dir()  # our lock lies in there
    worktrees.bring_back(pool.checkout, place, commit)
    if not is_held:
        pool.hold(place)


async def take_up(pool: LanePool, lane: Lane, story: Story) -> None:
    """Make the lane hold the story's work on the commit where the story begins."""
    number = lane.number
    run = pool.run
    workspace = lane.workspace
    mend_lane(pool, lane)
    if lane.lost:
        goes_on = pool.note(number).story == story.id
        rest = f", and {story.id} goes on from what was saved" if goes_on else ""
        pool.say(f"{lane.lost} by somebody; it was made again{rest}")
        lane.lost = ""
    state = run.session.story(story.id)
    if pool.note(number).onto:
        await finish_move(pool, lane)
    if pool.note(number).story != story.id:
        await _give_away(pool, lane)
        tip = pool.tip()
        await workspace.prepare(tip)
        await ensure_ready(pool, workspace)
        await prove_green(pool, workspace, tip)
        _bring_files(pool, lane, story)
        workspace.touched()
        kept = pool.book.kept.get(story.id, "")
        if kept or state.base.start_tree or state.base.start_head:
            tree = workspace.tree()
            began = {"tree": tree.tree, "head": tree.head or ""} if kept else {}
            run.intervene(TakenIntoLane(story=story.id, **began))
        onto = tip if kept else ""
        pool.write(number, story=story.id, base=tip, work=kept, onto=onto, met={})
        if kept:
            await finish_move(pool, lane)
            pool.keep(kept={name: it for name, it in pool.book.kept.items() if name != story.id})
    elif state.base.start_head and state.base.start_head != pool.note(number).base:
        ref = ref_name(run.id, run.session.number, f"lanes-{number}")
        work = await save_work(pool, lane, ref, known=pool.note(number).work)
        pool.write(number, work=work, onto=state.base.start_head)  # ahead: it can be done again
        await finish_move(pool, lane)
    await ensure_ready(pool, workspace)
    _bring_files(pool, lane, story)
    if run.session.story(story.id).has_a_chance:
        run.intervene(restore_saved_work(run, workspace, story.id))


async def _give_away(pool: LanePool, lane: Lane) -> None:
    """Save what the lane holds, for its story where that is still open, else under its ref."""
    note = pool.note(lane.number)
    run = pool.run
    workspace = lane.workspace
    ref = f"{ref_name(run.id, run.session.number, 'lanes')}-lane{lane.number}"
    if not note.base and [path.name for path in lane.place.root.iterdir()] == [".git"]:
        return  # it is new
    workspace.touched()
    work = note.work
    if not work or workspace.tree().tree != lane.left:  # else nobody touched it since
        work = await save_work(pool, lane, ref, known=work)
    keep_inner(pool, lane, f"{run.id}-{run.session.number}-lane{lane.number}")
    if not note.story:
        return
    kept = dict(pool.book.kept)
    if work and run.session.story(note.story).standing in (Standing.OPEN, Standing.BLOCKED):
        kept[note.story] = work
    pool.keep(lanes={**pool.book.lanes, lane.number: LaneNote()}, kept=kept)


async def save_work(pool: LanePool, lane: Lane, ref: str, *, known: str = "") -> str:
    """What the lane holds as one commit, or the one that is known where it is just that."""
    note = pool.note(lane.number)
    place = lane.place
    prefix = project_prefix(pool.checkout.root, pool.home.project.root)
    # What of a lane's files never lands: it is written once, where it lands.
    own = never_committed(prefix, litter=pool.home.site.litter)
    leave = [*own.patterns, f"{prefix}{PROGRESS_VIEW}"]
    if pool.book.own_list and pool.home.site.listed:
        leave.append(pool.home.site.listed)
    base = note.base or place.repo.head() or pool.tip()
    words = f"{note.story or 'left'}: work of lane {lane.number}"
    work = partial(worktrees.work_of, place, base, leave, words, ref, known=known)
    return await in_thread(lambda _: work())


async def finish_move(pool: LanePool, lane: Lane) -> None:
    """Do what was written ahead; conflicts are left for the agent to solve, who is told of them."""
    note = pool.note(lane.number)
    place = lane.place
    await in_thread(lambda _: _make_way(pool, lane, note))
    await in_thread(lambda _: worktrees.reset_to_commit(place, note.onto, keep_inner=True))
    name = worktrees.name_of(place.repo, note.work) if note.work else ""
    put = await in_thread(lambda _: worktrees.put_onto(place, note.work, ref=name))
    lane.workspace.touched()
    met = dict(note.met)
    if put.conflicts:
        met[note.work] = put.conflicts
        words = told(put.conflicts, name)
        pool.run.intervene(PutOntoLanded(story=note.story, told=words))
    pool.write(lane.number, base=note.onto, onto="", met=met)


def _make_way(pool: LanePool, lane: Lane, note: LaneNote) -> None:
    """Move repositories that an agent made to where nothing that landed needs their place."""
    repo = lane.place.repo
    made = (
        os.fsencode(path) for path in inner_repositories.made_inside(repo, note.base or note.onto)
    )
    if entries(repo.git, note.onto, made):
        keep_inner(pool, lane, f"{pool.run.id}-{pool.run.session.number}")


def keep_inner(pool: LanePool, lane: Lane, name: str) -> None:
    """Move the repositories that an agent made out of the lane, and say where they are."""
    note = pool.note(lane.number)
    repo = lane.place.repo
    where = pool.directory / inner_repositories.KEPT / name
    for place in inner_repositories.keep_aside(repo, note.base or repo.head() or "HEAD", where):
        kept = printable(str(place))
        words = f"A repository made in lane {lane.number} is in no commit; it is kept: {kept}"
        if note.story and pool.run.session.story(note.story).standing is not Standing.PASSED:
            pool.run.add_note(words, note.story)
        pool.run.tell(words)


async def ensure_ready(pool: LanePool, workspace: TreeWorkspace) -> None:
    """Make a work tree ready to be worked in; raises where that cannot be done."""
    place = workspace.place
    before = place.mark().digest
    if why := (await make_ready(pool, workspace)):
        name = "lane landing" if not place.seat else place.name
        raise RepositoryError(
            f"{name} ({place.root}) is not ready: {why}",
            "See [lanes] setup and copy in ralph.toml: docs/guides/lanes.md",
        )
    if place.mark().digest != before:
        _fit_again(pool, workspace)


def _fit_again(pool: LanePool, workspace: TreeWorkspace) -> None:
    """Make the sandbox of a work tree anew: setup has put submodules where there were none."""
    place = workspace.place
    if place.repo.git.box is None or not (place.root / ".gitmodules").exists():
        return
    workspace.refit(confine_site(pool.home, workspace.site).site)


async def prove_green(pool: LanePool, workspace: TreeWorkspace, tip: str) -> None:
    """Run the checks in a tree that was made ready anew: what is red only there burns money."""
    place = workspace.place
    baseline = pool.run.session.baseline
    mark = place.mark()
    if mark.proven or not (mark.brought or pool.home.config.lanes.setup):
        return  # git made it, as it made the landing tree, where they are green
    seen = await workspace.run_checks(pool.run, baseline.checks)
    if len(seen) < len(baseline.checks):
        return  # stopped
    green = {it.name for it in baseline.results if it.status is not CheckStatus.FAILED}
    for one in seen:
        if one.status is CheckStatus.FAILED and one.name in green:
            told = "\n".join(f"    {line}" for line in last_lines(one.output_tail))
            raise RepositoryError(
                f"{place.name} ({place.root}) is not ready: {one.name} is red in it, before"
                f" any work, and green in the landing tree\n{told}",
                "See [lanes] setup and copy in ralph.toml; checks of lanes run at the same time.",
            )
    # What checks leave behind is nobody's work.
    await workspace.prepare(tip)
    worktrees.write_mark(place, msgspec.structs.replace(mark, proven=True))


async def make_ready(pool: LanePool, workspace: TreeWorkspace) -> str:
    """Why a work tree cannot be worked in, in words; empty where it can.

    What takes its time is told while it goes on.
    """
    home = pool.home
    place = workspace.place
    stop = pool.run.stop
    steps = worktrees.what_to_do(place, pool.checkout, home.project.root, home.config)
    name = place.name
    began = time.monotonic()
    if steps:
        pool.run.tell(f"{name} is made ready: {steps}")
    made = partial(worktrees.make_ready, place, pool.checkout, home.project.root, home.config)
    box = workspace.check_box
    why = await in_thread(lambda gone: made(lambda: stop.requested or gone(), box))
    if steps and not why and not stop.requested:
        pool.run.tell(f"{name} is ready after {format_duration(time.monotonic() - began)}")
    return why


def _bring_files(pool: LanePool, lane: Lane, story: Story) -> None:
    """Story file and spec, where no commit has them as the person has."""
    home = pool.home
    root = pool.checkout.root
    known = home.stories
    mine = lane.workspace.stories
    if known is not None and mine is not None and (pool.book.own_list or not mine.path.exists()):
        write_atomic(mine.path, read(known.path), within=lane.place.root, parents=True)
    try:
        spec = spec_of(story, home.site)
    except InputError:
        return  # said where the prompt is made
    if spec is not None and spec.is_relative_to(root):
        target = lane.place.root / spec.relative_to(root)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(spec, target)
