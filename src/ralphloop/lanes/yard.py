"""The lanes of one run: which story is in which of them, and where each began.

The book is written to the journal before a work tree is touched, so that a successor can do again
what was begun.  A story takes a lane up once what that held is saved, and is moved onto a newer
commit once its work is one; giving a lane back does nothing: the next one saves what is left.
"""

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.core.events import LanesMended
from ralphloop.core.interventions import PutOntoLanded, TakenIntoLane
from ralphloop.core.model import CheckStatus, Story
from ralphloop.core.run_state import Book, LaneNote, Standing
from ralphloop.core.totals import Expense
from ralphloop.errors import InputError, RepositoryError, UsageError
from ralphloop.journal.journal import Journal
from ralphloop.journal.views import PROGRESS_VIEW
from ralphloop.lanes import inner, worktrees
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
from ralphloop.project import Project
from ralphloop.repo.checks import last_lines
from ralphloop.repo.git import printable
from ralphloop.repo.merge import entries
from ralphloop.repo.set_aside import ref_name
from ralphloop.repo.snapshot import Snapshotter
from ralphloop.repo.work_tree import Repository, never_committed, project_prefix
from ralphloop.stories.source import StoryFile, read


class Lane(msgspec.Struct):
    place: LaneTree
    workspace: Workspace
    busy: str = ""  # the story that is worked on now
    lost: str = ""  # what somebody deleted that it held, in words
    left: str = ""  # the tree in which its last start was saved as the note's work
    begun: Round | None = None  # a start that is written ahead, till it is watched
    written: Judgement | None = None  # its last start, as it was written down
    share: float | None = None  # dollars that its start may use, or has used
    took: Expense | None = None  # by its start, whose agent has ended, till that is written

    @property
    def number(self) -> int:
        return self.place.number


class Yard(msgspec.Struct):
    """Everything the lanes of a run share."""

    home: Setup  # as the person started it, in the checkout
    run: Run
    workspace: Workspace  # of the landing tree, with the one session of the run
    landing: LaneTree
    outside: Snapshotter  # measures the checkout
    directory: Path
    book: Book
    lanes: dict[int, Lane] = msgspec.field(default_factory=dict)
    hold: Callable[[LaneTree], object] = lambda _: None  # keeps others out of a work tree

    @property
    def journal(self) -> Journal:
        return self.run.journal

    @property
    def checkout(self) -> Repository:
        return repository_of(self.home)

    def close(self) -> None:
        own = (self.outside, self.workspace.measure)
        for measure in (*own, *(lane.workspace.measure for lane in self.lanes.values())):
            measure.close()

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

    def lands_on(self, branch: str) -> None:
        """Let stories land on this branch from now on."""
        self.keep(branch=branch)
        self.workspace.site = msgspec.structs.replace(self.workspace.site, lands_on=branch)

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
            workspace = Workspace(site, number=number, lane_branch=place.branch)
            place = msgspec.structs.replace(place, repo=site.repo or place.repo)
            note = self.note(number)
            lost = ""
            if note.story and not note.onto and worktrees.is_empty(place):
                # It was made anew under its story: as that began, with the work that was saved.
                worktrees.stand(place, note.base or self.tip())
                worktrees.put_onto(place, note.work)
                lost = f"the files of {place.root} were deleted"
            self.lanes[number] = Lane(place, workspace, lost=lost)
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
    env = dict(home.options.env)
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


def mend_landing(yard: Yard) -> bool:
    """Make the landing tree again where somebody deleted it; whether it was."""
    place = yard.landing
    if not worktrees.is_gone(place):
        return False
    _made_again(yard, place, yard.tip())
    yard.workspace.touched()
    yard.say(f"{place.root} was deleted by somebody; it was made again")
    return True


def mend_lane(yard: Yard, lane: Lane) -> bool:
    """Make a lane again where somebody deleted it: as its story began, with what was saved."""
    place = lane.place
    note = yard.note(lane.number)
    base = note.base or yard.tip()
    if not worktrees.is_gone(place):
        stands_on_it = place.repo.branch() == place.branch  # a new one stands on none
        if stands_on_it and worktrees.bring_branch_back(place, base):
            yard.say(f"the branch {place.branch} was deleted by somebody; it was made again")
        return False
    _made_again(yard, place, base)
    if place.repo.head() == base and not note.onto:
        worktrees.put_onto(place, note.work)  # what it met then it meets again
    lane.workspace.touched()
    lane.lost = f"the files of {place.root} were deleted"
    return True


def _made_again(yard: Yard, place: LaneTree, commit: str) -> None:
    """Make a tree again that somebody deleted, and keep others out of it as before."""
    is_held = place.repo.git_dir.is_dir()  # our lock lies in there
    worktrees.bring_back(yard.checkout, place, commit)
    if not is_held:
        yard.hold(place)


async def take_up(yard: Yard, lane: Lane, story: Story) -> None:
    """Make the lane hold the story's work on the commit where the story begins."""
    number = lane.number
    run = yard.run
    workspace = lane.workspace
    mend_lane(yard, lane)
    if lane.lost:
        goes_on = yard.note(number).story == story.id
        rest = f", and {story.id} goes on from what was saved" if goes_on else ""
        yard.say(f"{lane.lost} by somebody; it was made again{rest}")
        lane.lost = ""
    state = run.session.story(story.id)
    if yard.note(number).onto:
        await finish_move(yard, lane)
    if yard.note(number).story != story.id:
        await _give_away(yard, lane)
        tip = yard.tip()
        await in_thread(lambda _: worktrees.stand(lane.place, tip))
        await made_ready(yard, lane.place)
        await _proven(yard, lane, tip)
        _bring_files(yard, lane, story)
        workspace.touched()
        kept = yard.book.kept.get(story.id, "")
        if kept or state.start_tree or state.start_head:
            tree = workspace.tree()
            began = {"tree": tree.tree, "head": tree.head or ""} if kept else {}
            run.intervene(TakenIntoLane(story=story.id, **began))
        onto = tip if kept else ""
        yard.write(number, story=story.id, base=tip, work=kept, onto=onto, met={})
        if kept:
            await finish_move(yard, lane)
            yard.keep(kept={name: it for name, it in yard.book.kept.items() if name != story.id})
    elif state.start_head and state.start_head != yard.note(number).base:
        ref = ref_name(run.id, run.session.number, f"lanes-{number}")
        work = await saved(yard, lane, ref, known=yard.note(number).work)
        yard.write(number, work=work, onto=state.start_head)  # ahead: it can be done again
        await finish_move(yard, lane)
    await made_ready(yard, lane.place)
    _bring_files(yard, lane, story)
    if run.session.story(story.id).has_a_chance:
        run.intervene(restore_saved_work(run, workspace, story.id))


async def _give_away(yard: Yard, lane: Lane) -> None:
    """Save what the lane holds, for its story where that is still open, else under its ref."""
    note = yard.note(lane.number)
    run = yard.run
    workspace = lane.workspace
    ref = f"{ref_name(run.id, run.session.number, 'lanes')}-lane{lane.number}"
    if not note.base and [path.name for path in lane.place.root.iterdir()] == [".git"]:
        return  # it is new
    workspace.touched()
    work = note.work
    if not work or workspace.tree().tree != lane.left:  # else nobody touched it since
        work = await saved(yard, lane, ref, known=work)
    keep_inner(yard, lane, f"{run}-{run.session.number}-lane{lane.number}")
    if not note.story:
        return
    kept = dict(yard.book.kept)
    if work and run.session.story(note.story).standing in (Standing.OPEN, Standing.BLOCKED):
        kept[note.story] = work
    yard.keep(lanes={**yard.book.lanes, lane.number: LaneNote()}, kept=kept)


async def saved(yard: Yard, lane: Lane, ref: str, *, known: str = "") -> str:
    """What the lane holds as one commit, or the one that is known where it is just that."""
    note = yard.note(lane.number)
    place = lane.place
    prefix = project_prefix(yard.checkout.root, yard.home.project.root)
    # What of a lane's files never lands: it is written once, where it lands.
    leave = [*never_committed(prefix).patterns, f"{prefix}{PROGRESS_VIEW}"]
    leave += [yard.home.site.listed] if yard.book.own_list and yard.home.site.listed else []
    base = note.base or place.repo.head() or yard.tip()
    words = f"{note.story or 'left'}: work of lane {lane.number}"
    work = partial(worktrees.work_of, place, base, leave, words, ref, known=known)
    return await in_thread(lambda _: work())


async def finish_move(yard: Yard, lane: Lane) -> None:
    """Do what was written ahead; conflicts are left for the agent to solve, who is told of them."""
    note = yard.note(lane.number)
    place = lane.place
    await in_thread(lambda _: _make_way(yard, lane, note))
    await in_thread(lambda _: worktrees.stand(place, note.onto, keep_inner=True))
    name = worktrees.name_of(place.repo, note.work) if note.work else ""
    conflicts = await in_thread(lambda _: worktrees.put_onto(place, note.work, ref=name))
    lane.workspace.touched()
    met = dict(note.met)
    if conflicts:
        met[note.work] = conflicts
        words = told(conflicts, name)
        yard.run.intervene(PutOntoLanded(story=note.story, told=words))
    yard.write(lane.number, base=note.onto, onto="", met=met)


def _make_way(yard: Yard, lane: Lane, note: LaneNote) -> None:
    """Move repositories that an agent made to where nothing that landed needs their place."""
    repo = lane.place.repo
    made = (os.fsencode(path) for path in inner.made_inside(repo, note.base or note.onto))
    if entries(repo.git, note.onto, made):
        keep_inner(yard, lane, f"{yard.run.id}-{yard.run.session.number}")


def keep_inner(yard: Yard, lane: Lane, name: str) -> None:
    """Move the repositories that an agent made out of the lane, and say where they are."""
    note = yard.note(lane.number)
    repo = lane.place.repo
    where = yard.directory / inner.KEPT / name
    for place in inner.keep_aside(repo, note.base or repo.head() or "HEAD", where):
        kept = printable(str(place))
        words = f"A repository made in lane {lane.number} is in no commit; it is kept: {kept}"
        if note.story and yard.run.session.story(note.story).standing is not Standing.PASSED:
            yard.run.add_note(words, note.story)
        yard.run.tell(words)


async def made_ready(yard: Yard, place: LaneTree) -> None:
    """Make a work tree ready to be worked in; raises where that cannot be done."""
    before = place.mark().digest
    if why := (await ready(yard, place)):
        raise RepositoryError(
            f"lane {place.number or 'landing'} ({place.root}) is not ready: {why}",
            "See [lanes] setup and copy in ralph.toml: docs/guides/lanes.md",
        )
    if place.mark().digest != before:
        _fit_again(yard, place)


def _fit_again(yard: Yard, place: LaneTree) -> None:
    """Make the sandbox of a work tree anew: setup has put submodules where there were none."""
    if place.repo.git.box is None or not (place.root / ".gitmodules").exists():
        return
    if place.number:
        lane = yard.lanes[place.number]
        lane.workspace.site = confine_site(yard.home, lane.workspace.site).site
        lane.place = msgspec.structs.replace(place, repo=lane.workspace.repo or place.repo)
    else:
        yard.workspace.site = confine_site(yard.home, yard.workspace.site).site
        yard.landing = msgspec.structs.replace(place, repo=yard.workspace.repo or place.repo)


async def _proven(yard: Yard, lane: Lane, tip: str) -> None:
    """Run the checks in a lane that was made ready anew: what is red only there burns money."""
    place = lane.place
    frozen = yard.run.session.frozen
    mark = lane.place.mark()
    if mark.proven or not (mark.brought or yard.home.config.lanes.setup):
        return  # git made it, as it made the landing tree, where they are green
    seen = await lane.workspace.run_checks(yard.run, frozen.checks)
    if len(seen) < len(frozen.checks):
        return  # stopped
    green = {it.name for it in frozen.baseline if it.status is not CheckStatus.FAILED}
    for one in seen:
        if one.status is CheckStatus.FAILED and one.name in green:
            told = "\n".join(f"    {line}" for line in last_lines(one.output_tail))
            raise RepositoryError(
                f"lane {place.number} ({place.root}) is not ready: {one.name} is red in it, before"
                f" any work, and green in the landing tree\n{told}",
                "See [lanes] setup and copy in ralph.toml; checks of lanes run at the same time.",
            )
    # What checks leave behind is nobody's work.
    await in_thread(lambda _: worktrees.stand(place, tip))
    worktrees.write_mark(place, msgspec.structs.replace(mark, proven=True))


async def ready(yard: Yard, place: LaneTree) -> str:
    """Why a work tree cannot be worked in, in words; empty where it can."""
    home = yard.home
    stop = yard.run.stop
    workspace = yard.lane(place.number).workspace if place.number else yard.workspace
    made = partial(worktrees.make_ready, place, yard.checkout, home.project.root, home.config)
    box = workspace.check_box
    return await in_thread(lambda gone: made(lambda: stop.requested or gone(), box))


def _bring_files(yard: Yard, lane: Lane, story: Story) -> None:
    """Story file and spec, where no commit has them as the person has."""
    home = yard.home
    root = yard.checkout.root
    known = home.stories
    mine = lane.workspace.stories
    if known is not None and mine is not None and (yard.book.own_list or not mine.path.exists()):
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
