"""Sending a story back that passed: it leaves the branch, and is done again with a person's words.

What the branch would hold without it is thought out first (`repo.taking_out`).  Where nobody is in
the way, the checks decide: the files are exchanged for a moment, as for an experiment, and put back
whatever happens.  Green: it goes.  Red, or somebody in the way: what stands on it is named by test
and by story, and a person decides whether that goes with it, all of it stays, or what is wrong
becomes a story of its own.

What is then done is written ahead: who is killed in the middle of it leaves a note in the journal,
and whoever comes next does the rest.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.atomic import kill_point
from ralphloop.core.interventions import Accepted, StoryRejected
from ralphloop.core.model import CheckResult, CheckStatus, Value
from ralphloop.core.own_work import PathEntry
from ralphloop.core.proposals import Proposal, ProposalOrigin, ProposalStanding
from ralphloop.core.run_state import StoryState
from ralphloop.errors import ExitCode, RalphError, RepositoryError
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import REJECTION_KEY, SENT_BACK_KEY, SWAP_KEY
from ralphloop.loop.confine import confined_checks, confined_repository
from ralphloop.loop.exchanging import ROOM, restore
from ralphloop.loop.offline_requests import HeldRun, hold_last_run, insist_on_passed
from ralphloop.loop.proposing import keep_proposal
from ralphloop.night.look import config_of, own_changes
from ralphloop.project import Project, relative
from ralphloop.repo.checks import check_of, run_checks
from ralphloop.repo.commit import with_trailers
from ralphloop.repo.experiment import covered, obstacle, swap_of, undo
from ralphloop.repo.merge import entries
from ralphloop.repo.named import file_of
from ralphloop.repo.set_aside import ref_name, write_files
from ralphloop.repo.snapshot import Snapshotter
from ralphloop.repo.story_change import id_of_change
from ralphloop.repo.taking_out import (
    InTheWay,
    KeptAttempt,
    ShownChange,
    authors_of_word,
    commits_of_change,
    refuse_own_changes,
    shown_change,
    take_out,
    tree_without,
    users_of_its_names,
)
from ralphloop.repo.work_tree import OwnFiles, Repository, never_progress, project_prefix
from ralphloop.stories.adding import add_story
from ralphloop.stories.names import slug
from ralphloop.stories.source import mark
from ralphloop.text.plain import clean, one_line, some

_MOST_PATHS = 500
_MOST_TESTS = 50
_MOST_ROUNDS = 20
_MOST_KEPT = 20  # rejections that can be undone
_SHORT = 10  # characters of a commit's name


class RejectionChoice(StrEnum):
    """What becomes of a story that cannot go alone."""

    TOGETHER = "together"  # what stands on it goes as well
    KEEP = "keep"
    FOLLOW_UP = "follow_up"  # it stays, and what is wrong becomes a story of its own


class Dependent(Value, kw_only=True):
    """A story that stands on another one."""

    story: str
    title: str
    why: tuple[str, ...]


class StandsOnIt(Value, kw_only=True):
    """What keeps a story from being taken out alone."""

    story: str
    going: tuple[str, ...]  # what a person has agreed to send back so far
    dependents: tuple[Dependent, ...]
    others: tuple[str, ...] = ()  # what no story is known for, in words

    def lines(self) -> Iterator[str]:
        """All of it for a person, one thing a line."""
        what = some(list(self.going))
        yield f"{what} cannot be taken out without what stands on it:"
        for one in self.dependents:
            yield f"{one.story} ({one.title}): {'; '.join(one.why)}"
        yield from self.others


class NotAlone(RalphError):
    """Something stands on a story, and nobody said what is to become of it."""

    exit_code = ExitCode.BLOCKED


Decide = Callable[[StandsOnIt], RejectionChoice]
Tell = Callable[[str], None]


class Rejecting(Value, kw_only=True):
    """What is about to be done; written ahead."""

    run: str  # whose state has the stories
    head: str  # of the branch, before
    tree: str  # it will hold, but for our own files
    message: str
    stories: tuple[StoryRejected, ...]
    source: str  # the story file
    listed_in: str  # the same, from the repository's root
    keep: tuple[KeptAttempt, ...] = ()  # empty: there is no commit to take out
    before: dict[str, StoryState] = msgspec.field(default_factory=dict)  # how they stood


class SentBack(Value, kw_only=True):
    """What was done, for whoever wants it undone."""

    run: str  # whose state has the stories
    commit: str = ""  # that took their changes out; empty: there was nothing to take out
    before: dict[str, StoryState]
    after: dict[str, StoryState]  # whoever stands otherwise was spoken about or worked on since
    source: str
    listed_in: str


class Rejected(NamedTuple):
    words: str  # what was done
    stories: tuple[str, ...] = ()  # that are open again


def send_back(project: Project, story: str, why: str, *, decide: Decide, tell: Tell) -> Rejected:
    """Take a passed story out, with what stands on it where `decide` says so; or keep it."""
    with hold_last_run(project, story) as held:
        rejection = _Rejection(project, held, story, why, tell)
        for _ in range(_MOST_ROUNDS):
            found = rejection.look()
            if found is None:
                return rejection.carry_out()
            choice = decide(found)
            if choice is RejectionChoice.KEEP:
                return Rejected(f"{story} stays as it is; nothing was changed")
            if choice is RejectionChoice.FOLLOW_UP:
                return Rejected(rejection.open_follow_up())
            rejection.take_along(found)
    raise RepositoryError(f"there is no end to what stands on {story}", "Revert it by hand.")


class Ground(NamedTuple):
    """Where a story is taken out of, and brought back to."""

    repo: Repository
    own: OwnFiles
    listed_in: str  # the story file, from the repository's root


def ground_of(project: Project, held: HeldRun, source: Path) -> Ground:
    repo = confined_repository(project, held.config)
    prefix = project_prefix(repo.root, project.root)
    listed_in = f"{prefix}{relative(source, project.root)}"
    return Ground(repo, never_progress(prefix, [listed_in]), listed_in)


class _Rejection:
    """One story on its way out, and what goes with it."""

    def __init__(self, project: Project, held: HeldRun, story: str, why: str, tell: Tell) -> None:
        passed = insist_on_passed(held, story)
        self._project = project
        self._held = held
        self._why = clean(why).strip()
        self._tell = tell
        self._stories = passed.stories
        self._story = passed.story
        self._source = Path(self._stories.source)
        self._going: dict[str, list[str]] = {story: []}  # with what shows the change of each
        self._ground: Ground | None = None  # None: there is no commit to take out
        self._tree = ""
        self._is_tried = False  # the checks have run without it

    def look(self) -> StandsOnIt | None:
        """What stands on the stories that are to go; None: nothing does."""
        self._is_tried = False
        declared = [*self._declared()]
        if declared:
            return self._stands(declared)
        for name in self._going:
            self._going[name] = own_changes(self._held.journal, self._project, name)
        if not any(self._going.values()):
            return None
        ground = self._find_ground()
        shown = self._shown(ground.repo)
        found = tree_without(ground.repo, shown, ground.own)
        if found.in_the_way:
            return self._in_the_way(ground.repo, found.in_the_way)
        self._tree = found.tree
        refuse_own_changes(ground.repo, found.tree)
        if _was_checked(ground, shown, found.tree):
            return None
        red = self._red_without(ground)
        return self._red(ground.repo, shown, red) if red else None

    def take_along(self, found: StandsOnIt) -> None:
        """Send back what stands on it, too; raises where that is nothing of ours."""
        if not found.dependents:
            raise RepositoryError(
                "\n".join(found.lines()), "Revert that by hand first, or use --follow-up or --keep."
            )
        for one in found.dependents:
            self._going.setdefault(one.story, [])

    def open_follow_up(self) -> str:
        """Keep the story, and make one of its own of what is wrong; what was done, in words."""
        story = self._story.id
        made = add_story(
            self._source,
            {
                "title": one_line(self._why, 80),
                "description": self._why,
                "acceptanceCriteria": [one_line(self._why, 500)],
                "notes": f"Follow-up of {story}, which a person looked at and kept.",
                "dependsOn": [story],
            },
        )
        wanted = Proposal(
            id="",
            text=self._why,
            origin=ProposalOrigin.FOLLOW_UP,
            story=story,
            run=self._held.session.run,
            at=time.time(),
            standing=ProposalStanding.ACCEPTED,  # by the same words
            became=made,
        )
        keep_proposal(self._held.journal, wanted)
        self._held.intervene(Accepted(story=story))
        name = relative(self._source, self._project.root)
        return f"{story} stays; {made}, which says what is wrong, was added to {name}"

    def carry_out(self) -> Rejected:
        """Take them out and open them again."""
        ground = self._ground
        backs = [self._sent_back(name, shows) for name, shows in self._going.items()]
        keep = []
        for back in backs:
            shows = self._going[back.story]
            if back.kept and ground is not None:
                keep.append(KeptAttempt(back.kept, shown_change(ground.repo, shows[-1]).new))
        head = ground.repo.head() if ground is not None else None
        job = Rejecting(
            run=self._held.session.run,
            head=head or "",
            tree=self._tree,
            message=self._message(keep),
            stories=tuple(backs),
            source=str(self._source),
            listed_in=ground.listed_in if ground is not None else "",
            keep=tuple(keep),
            before={name: self._held.session.story(name) for name in self._going},
        )
        self._held.journal.set_meta(REJECTION_KEY, job)
        kill_point("rejection.noted")
        _finish(self._held, ground.repo if ground is not None else None, job)
        return Rejected(self._told(backs), tuple(self._going))

    def _declared(self) -> Iterator[Dependent]:
        """Those that passed and, by the list itself, depend on what is to go."""
        for one in self._stories.stories:
            on = [name for name in one.depends_on if name in self._going]
            if one.passes and on and one.id not in self._going:
                yield Dependent(story=one.id, title=one.title, why=(f"it depends on {on[0]}",))

    def _sent_back(self, name: str, shows: Sequence[str]) -> StoryRejected:
        session = self._held.session
        why = self._why
        if name != self._story.id:
            why = f"{self._story.id}, on which this one stood, was sent back: {why}"
        if not shows or self._ground is None:
            return StoryRejected(story=name, why=why, at=time.time(), half_opens=True)
        count = len(session.story(name).notes.answers) + 1
        return StoryRejected(
            story=name,
            why=why,
            kept=ref_name(session.run, count, f"rejected/{slug(name)}"),
            work=_known_by(self._ground, shows[-1]),
            at=time.time(),
            half_opens=True,
        )

    def _message(self, keep: Sequence[KeptAttempt]) -> str:
        """What the commit says: the story, why, and what goes with it."""
        story = self._story
        first = keep[0].ref if keep else ""
        trailers = {"Ralph-Story": story.id, "Ralph-Kept": first}
        written = with_trailers(f'Revert "{story.id}: {story.title}"', trailers)
        subject, rest = written.split("\n\n", 1)
        body = [self._why]
        others = [name for name in self._going if name != story.id]
        if others:
            body.append(f"With what stood on it: {', '.join(others)}")
        return "\n\n".join([subject, *body, rest])

    def _told(self, backs: Sequence[StoryRejected]) -> str:
        names = ", ".join(back.story for back in backs)
        kept = [back.kept for back in backs if back.kept]
        is_one = len(backs) == 1
        told = f"{names} is open again" if is_one else f"{names} are open again"
        if not kept:
            return f"{told}; it has no commit to take out"
        told += f"; {'its' if is_one else 'their'} commits are taken out"
        if self._is_tried:
            told += ", the checks are green without them"
        told += f", the attempt{'' if len(kept) == 1 else 's'} "
        return f"{told}{'is' if len(kept) == 1 else 'are'} kept: git show {' '.join(kept)}"

    def _find_ground(self) -> Ground:
        if self._ground is None:
            self._ground = ground_of(self._project, self._held, self._source)
        return self._ground

    def _shown(self, repo: Repository) -> list[ShownChange]:
        return [shown_change(repo, show) for shows in self._going.values() for show in shows]

    def _stands(self, dependents: Iterable[Dependent], others: Iterable[str] = ()) -> StandsOnIt:
        return StandsOnIt(
            story=self._story.id,
            going=tuple(self._going),
            dependents=tuple(dependents),
            others=tuple(others),
        )

    def _in_the_way(self, repo: Repository, found: Iterable[InTheWay]) -> StandsOnIt:
        """Who changed the very lines, by story; what is nobody's by its commit."""
        reasons = _Reasons(self._owners(repo), self._going)
        for one in found:
            for commit in one.commits:
                short = commit[:_SHORT]
                if not reasons.add(commit, f"{short} {one.how} {one.path}"):
                    subject = repo.git.line("log", "-1", "--format=%s", commit)
                    reasons.others.append(f"{short} ({one_line(subject, 60)}) {one.how} {one.path}")
            if not one.commits:
                reasons.others.append(f"somebody {one.how} {one.path}")
        return self._stands(self._named(reasons), reasons.others)

    def _red(
        self, repo: Repository, shown: Sequence[ShownChange], red: Sequence[CheckResult]
    ) -> StandsOnIt:
        """Whose tests fail without it; else who uses what it brought, else who came after it."""
        reasons = _Reasons(self._owners(repo), self._going)
        unexplained = []
        for check in red:
            for test in check.failing_tests[:_MOST_TESTS]:
                authors = _authors_of_test(repo, test)
                if not any(reasons.add(commit, f"{test} fails without it") for commit in authors):
                    unexplained.append(f"{test} fails without it")
            if not check.failing_tests:
                unexplained.append(f"{check.name} fails without it{_last_line(check)}")
        if unexplained:
            for commit in users_of_its_names(repo, shown, self._tree):
                reasons.add(commit, f"{commit[:_SHORT]} uses what it brought")
        return self._stands(self._named(reasons), unexplained)

    def _named(self, reasons: _Reasons) -> Iterator[Dependent]:
        for name, why in reasons.by_story.items():
            story = self._stories.get(name)
            title = story.title if story is not None else ""
            yield Dependent(story=name, title=title, why=tuple(dict.fromkeys(why)))

    def _owners(self, repo: Repository) -> dict[str, str]:
        """By commit the story that passed with it, of all stories that still pass."""
        owners: dict[str, str] = {}
        for story in self._stories.stories:
            if not story.passes:
                continue
            for show in own_changes(self._held.journal, self._project, story.id):
                for commit in commits_of_change(repo, shown_change(repo, show)):
                    owners[commit] = story.id
        return owners

    def _red_without(self, ground: Ground) -> list[CheckResult]:
        """The checks that fail without the stories and do not fail with them."""
        how = f"without {some(list(self._going))}"
        tried = checks_of_tree(self._project, self._held, ground, self._tree, how, self._tell)
        self._is_tried = tried.has_run
        return list(tried.newly_red)


class TriedTree(NamedTuple):
    """What the checks say of a tree that is not there yet."""

    newly_red: tuple[CheckResult, ...] = ()  # fails there, and not in what is there
    has_run: bool = False


def checks_of_tree(
    project: Project, held: HeldRun, ground: Ground, tree: str, how: str, tell: Tell
) -> TriedTree:
    """Run the checks of the run in another tree, put there for a moment; `how` it differs."""
    commands = held.session.baseline.checks
    if not commands:
        return TriedTree()
    timeout = held.config.checks.timeout
    box = confined_checks(project, held.config, ground.repo)
    checks = [check_of(argv, timeout, box) for argv in commands]
    with _files_of(held, project, ground, tree) as why_not:
        if why_not:
            tell(f"the checks were not run {how}: {why_not}")
            return TriedTree()
        tell(f"running the checks {how}: {some([it.name for it in checks])}")
        results = run_checks(checks, project.root)
    red = [it for it in results if it.status is CheckStatus.FAILED]
    if not red:
        return TriedTree(has_run=True)
    tell("red; running them once more as it is")
    names = {it.name for it in red}
    as_it_is = run_checks([it for it in checks if it.name in names], project.root)
    return TriedTree(tuple(_newly_red(red, as_it_is)), has_run=True)


class _Reasons:
    """Why each story stands on what is to go."""

    def __init__(self, owners: Mapping[str, str], going: Container[str]) -> None:
        self.by_story: dict[str, list[str]] = {}
        self.others: list[str] = []
        self._owners = owners
        self._going = going

    def add(self, commit: str, why: str) -> bool:
        """Note a reason for the story of a commit; False where it is of none that could go."""
        story = self._owners.get(commit, "")
        if not story or story in self._going:
            return False
        self.by_story.setdefault(story, []).append(why)
        return True


def _was_checked(ground: Ground, shown: Sequence[ShownChange], tree: str) -> bool:
    """Whether without it the branch is just what it was before it: that was checked then."""
    for old in {change.old for change in shown}:
        if all(path in ground.own for path in ground.repo.paths_between(old, tree)):
            return True
    return False


def _newly_red(
    without: Iterable[CheckResult], with_it: Iterable[CheckResult]
) -> Iterator[CheckResult]:
    """What is red only without the story, each with the tests that fail only then."""
    known = {it.name: it for it in with_it}
    for check in without:
        now = known.get(check.name)
        if now is None or now.status is not CheckStatus.FAILED:
            yield check
            continue
        new = tuple(test for test in check.failing_tests if test not in now.failing_tests)
        if new:
            yield msgspec.structs.replace(check, failing_tests=new)


def _authors_of_test(repo: Repository, test: str) -> list[str]:
    """The commits that wrote a test, by its name."""
    name = re.split(r"::| > |[./](?=\w+$)", test.partition("[")[0])[-1].strip()
    return authors_of_word(repo, name, file_of(test))


def _last_line(check: CheckResult) -> str:
    lines = [line.strip() for line in check.output_tail.splitlines() if line.strip()]
    return f": {one_line(lines[-1], 120)}" if lines else ""


@contextmanager
def _files_of(held: HeldRun, project: Project, ground: Ground, tree: str) -> Iterator[str]:
    """The work tree as that tree for as long as this lasts; or why that cannot be, in words.

    It is written ahead as an experiment is: who is killed meanwhile leaves nothing out.
    """
    repo = ground.repo
    measure = Snapshotter(repo, project.directory / "objects", ground.own)
    now = measure.tree()
    paths = [path for path in repo.paths_between("HEAD", tree) if path not in ground.own]
    stored = entries(repo.git, tree, map(os.fsencode, paths))
    wanted: dict[str, PathEntry | None] = dict.fromkeys(paths)
    for path, entry in stored.items():
        wanted[os.fsdecode(path)] = PathEntry(mode=entry.mode, content=entry.name)
    start = measure.with_entries(now.tree, wanted)
    changes = measure.changes(start, now.tree)
    why_not = obstacle(measure, changes)
    if why_not:
        yield why_not
        return
    swap = swap_of(
        changes,
        run=held.session.run,
        number=held.session.number,
        what="the work tree without a story",
        start=start,
        end=now.tree,
        covered=covered(repo.root, changes),
    )
    room = project.directory / ROOM
    held.journal.put("begin_experiment", {SWAP_KEY: swap})
    try:
        undo(repo, measure, swap, room)
        yield ""
    finally:
        if not room.exists() and swap.moved:  # what ran has removed our directory
            ref = f"{ref_name(swap.run, swap.number, 'experiment')}-in-the-way"
            objects = measure.object_variables()
            write_files(repo, swap.end, [*swap.moved], ref=ref, objects=objects)
        restore(held.journal, repo, measure, project)
        measure.close()


def _finish(held: HeldRun, repo: Repository | None, job: Rejecting) -> None:
    """Do what is written ahead, or what is left of it; raises where a hook refuses the commit."""
    source = Path(job.source)
    names = [back.story for back in job.stories]
    mark(source, dict.fromkeys(names, False), within=source.parent)
    kill_point("rejection.marked")
    refused = ""
    if job.keep and repo is not None and repo.head() == job.head:
        refused = take_out(repo, job.tree, job.message, also=[job.listed_in], keep=job.keep)
    kill_point("rejection.committed")
    told = [made.change for made in held.journal.interventions(held.session.run)]
    for back in job.stories:
        if back not in told:
            held.intervene(back)
        kill_point("rejection.told")
    done = [] if refused else [_sent_back(held, repo, job)]
    known = msgspec.convert(held.journal.meta(SENT_BACK_KEY) or [], list[SentBack])
    kept = [*known, *done][-_MOST_KEPT:]
    held.journal.put("rejected", {REJECTION_KEY: None, SENT_BACK_KEY: kept})
    if refused:
        raise RepositoryError(
            f"the story is out of the work tree, but the commit was refused: {refused}",
            "Commit it yourself; `git status` shows what changed.",
        )


def _sent_back(held: HeldRun, repo: Repository | None, job: Rejecting) -> SentBack:
    """What is kept of it: how the stories stood and stand, and the commit."""
    commit = ""
    if job.keep and repo is not None:
        args = ("rev-list", "--first-parent", "--reverse", f"{job.head}..HEAD", "--")
        commit = next(iter(repo.git.line(*args).split()), "")
    return SentBack(
        run=job.run,
        commit=commit,
        before=job.before,
        after={back.story: held.session.story(back.story) for back in job.stories},
        source=job.source,
        listed_in=job.listed_in,
    )


def finish_rejection(project: Project, journal: Journal) -> str:
    """Do the rest of a rejection that was cut off; what was done, in words."""
    found = journal.meta(REJECTION_KEY)
    if not found:
        return ""
    job = msgspec.convert(found, type=Rejecting)
    config = config_of(project, journal.find_run(job.run))
    held = HeldRun(journal, journal.session(job.run), config, None)
    repo = confined_repository(project, config) if job.keep else None
    _finish(held, repo, job)
    names = ", ".join(back.story for back in job.stories)
    return f"finished what was cut off: {names} sent back"


def _known_by(ground: Ground, show: str) -> str:
    """What the change of a commit or of a range (`A..B`) is known by, our own files left out."""
    old, new = shown_change(ground.repo, show)
    paths = [path for path in ground.repo.paths_between(old, new) if path not in ground.own]
    is_told = 0 < len(paths) <= _MOST_PATHS  # a command line has an end
    return id_of_change(ground.repo.git, old, new, *paths) if is_told else ""
