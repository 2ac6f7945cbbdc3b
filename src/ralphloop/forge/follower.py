"""A pull request brought to green: looked at, worked on by ordinary runs, pushed, answered.

One row of the journal says how far it is; every step can be done again.  A story carries in its
`source` what it was made of, an answer its mark, and a push is none where the remote has it: so who
is killed between doing and noting finds what was done.

The person who follows it holds the budget: what its stories cost counts with the run's own limits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from ralphloop.atomic import kill_point
from ralphloop.config.model import Config
from ralphloop.core.following import (
    CheckState,
    Complaint,
    ComplaintKind,
    Follow,
    FollowEnd,
    FollowStep,
    MergeFacts,
    Next,
    PullLook,
    decide_next,
    why_not_merge,
)
from ralphloop.core.proposals import Proposal, ProposalOrigin
from ralphloop.core.run_state import Standing
from ralphloop.errors import ExitCode, RepositoryError
from ralphloop.forge.attribution import (
    BranchWork,
    commit_for,
    owners_of_line,
    owners_of_text,
    work_on,
)
from ralphloop.forge.budget import left_of, pause
from ralphloop.forge.merging_base import go_forward, has_markers, prepare_merge, take_back
from ralphloop.forge.pulls import (
    CheckSeen,
    PullRemark,
    PullState,
    checks_of,
    line_remarks,
    log_of,
    may_write,
    merge,
    pull_state,
    reply_to_line,
    reviews,
    say,
    settled_remarks,
    talk,
)
from ralphloop.forge.words import last_lines, quoted
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import FOLLOW_KEY
from ralphloop.journal.records import RunRecord
from ralphloop.loop.prepare import Options
from ralphloop.loop.proposing import keep_proposal
from ralphloop.night.look import look, reading
from ralphloop.night.values import StoryLook
from ralphloop.project import Project
from ralphloop.repo.github import HubPlace, Offer, fetch_base, offer, push
from ralphloop.repo.work_tree import Repository
from ralphloop.stories.adding import add_story
from ralphloop.stories.provenance import story_made_of
from ralphloop.stories.source import load
from ralphloop.text.plain import one_line
from ralphloop.ui.report.render import escaped

_MARK = "<!-- ralph: {} -->"
_MOST_REMARKS = 10  # stories of one round, besides the one for all red jobs
_MOST_JOBS = 5
_LOG_LINES = 60
_LOG_ROOM = 4_000
_QUIET_LOOKS = 4  # without any check, before we believe that there are none
_ADDRESSED = ("ralph:", "ralph,", "/ralph", "@ralph")
_ASKS = "CHANGES_REQUESTED"
_DECIDING = (_ASKS, "APPROVED", "DISMISSED")
_CRITERIA = {
    ComplaintKind.CHECKS: "What the logs show as wrong is put right here, not hidden or skipped",
    ComplaintKind.CONFLICT: "No file of the conflict has a conflict marker left",
}
_USUAL = "What is asked for is done"
_AND_SHOWN = "Where a test can show it, one fails without the change"

Work = Callable[[Options], int]
Tell = Callable[[str], None]


class FollowedPlace(NamedTuple):
    """Where a followed pull request lives, here and there."""

    project: Project
    repo: Repository
    hub: HubPlace
    config: Config
    kept: frozenset[str]  # branches that nothing is pushed to
    source: Path  # the story file


class Heard(NamedTuple):
    """A remark that wants something."""

    kind: ComplaintKind
    remark: PullRemark

    @property
    def item(self) -> str:
        return f"{self.kind} {self.remark.id}"


class Follower:
    """One pull request, followed until it is green or somebody has to look."""

    def __init__(
        self,
        place: FollowedPlace,
        follow: Follow,
        *,
        work: Work,
        options: Options,
        tell: Tell,
    ) -> None:
        self._place = place
        self._git = place.repo.git
        self.follow = follow
        self._work = work
        self._options = options
        self._tell = tell
        self._looks = 0  # at this commit, without a check
        self._said = ""

    def run(self) -> Follow:
        """Follow it to an end."""
        self._note()
        while not self.follow.is_over:
            if self.follow.step is FollowStep.LOOKING:
                self._look()
            elif self.follow.step is FollowStep.OPENING:
                self._open()
            elif self.follow.step is FollowStep.WORKING:
                self._work_on()
            elif self.follow.step is FollowStep.PUSHING:
                self._push()
            else:
                self._answer()
        return self.follow

    # --- looking -------------------------------------------------------------------------------

    def _look(self) -> None:
        may_write.cache_clear()
        pull = pull_state(self._place.hub, self.follow.number)
        checks = checks_of(self._place.hub, pull.head.sha)
        self._looks += 1
        heard = [*self._heard(pull)]
        seen = PullLook(
            is_open=pull.state == "open",
            is_merged=pull.is_merged,
            head=pull.head.sha,
            has_conflict=None if pull.mergeable is None else not pull.mergeable,
            checks={one.name: one.state for one in checks},
            red_at_base=self._red_at_base(pull, checks),
            remarks=tuple(one.item for one in heard),
            is_quiet=bool(checks) or self._looks >= _QUIET_LOOKS,
        )
        follows = decide_next(self.follow, seen)
        if follows.ends is not None:
            self._end(follows.ends, follows.why)
        elif follows.works:
            self._take_up(pull, checks, heard, follows)
        else:
            self._wait(follows.why)

    def _wait(self, why: str) -> None:
        if why != self._said:
            self._tell(f"pull request #{self.follow.number}: {why}")
            self._said = why
        until = self.follow.until
        if until and time.time() >= until:
            self._end(FollowEnd.LIMIT, f"the time of the run is over: {why}")
            return
        pause(self._place.config.git.follow_every, until)

    def _red_at_base(self, pull: PullState, checks: Iterable[CheckSeen]) -> frozenset[str]:
        red = frozenset(one.name for one in checks if one.state is CheckState.BAD)
        if not red or not pull.base.sha:
            return frozenset()
        there = checks_of(self._place.hub, pull.base.sha)
        return red & {one.name for one in there if one.state is CheckState.BAD}

    def _heard(self, pull: PullState) -> Iterator[Heard]:
        """What people who may write ask for, and nobody has answered."""
        hub = self._place.hub
        number = pull.number
        lines = line_remarks(hub, number)
        said = talk(hub, number)
        ours = "\n".join(one.body or "" for one in (*lines, *said))
        wanted = []
        for one in _wishes(lines, reviews(hub, number), said):
            is_ours = "<!-- ralph:" in (one.remark.body or "")
            is_known = one.item in self.follow.heard or _MARK.format(one.item) in ours
            if not is_ours and not is_known and one.remark.words:
                wanted.append(one)
        settled = frozenset[int]()
        if any(one.kind is ComplaintKind.LINE for one in wanted):
            settled = settled_remarks(hub, number)
        for one in wanted:
            is_settled = one.kind is ComplaintKind.LINE and one.remark.id in settled
            if not is_settled and may_write(hub, one.remark.by):
                yield one

    # --- what becomes of it --------------------------------------------------------------------

    def _take_up(
        self, pull: PullState, checks: Iterable[CheckSeen], heard: Iterable[Heard], why: Next
    ) -> None:
        """Say whose work it is, and note it; what is nobody's is proposed to a person."""
        self._tell(f"pull request #{pull.number}: {why.why}")
        base = fetch_base(self._git, self.follow.remote, self.follow.base)
        work = work_on(self._git, base, "HEAD")
        if not work.stories:
            self._end(FollowEnd.NOT_OURS, f"no story of a run has a commit on {self.follow.branch}")
            return
        complaints: list[Complaint] = []
        merging = None
        if pull.mergeable is False:
            prepared = prepare_merge(self._place.repo, self.follow.base, base)
            listed = self._place.source.name
            if any(Path(path).name == listed for path in prepared.merge.paths):
                why_not = f"{listed} itself is in conflict with {self.follow.base}"
                self._end(FollowEnd.WAITS, why_not)
                return
            # Nothing else in the same round: checks and comments are about the branch as it was.
            complaints = [prepared.complaint]
            merging = prepared.merge
        else:
            complaints += self._about_checks(work, pull, checks, why.red)
            complaints += self._about_remarks(work, heard)
        if not complaints:
            nobodys = "what is asked for is about no work of a run: it is proposed"
            self._end(FollowEnd.NOT_OURS, nobodys)
            return
        self._note(complaints=tuple(complaints), merging=merging, step=FollowStep.OPENING)

    def _about_checks(
        self, work: BranchWork, pull: PullState, checks: Iterable[CheckSeen], red: tuple[str, ...]
    ) -> Iterator[Complaint]:
        """One story for all red jobs: mostly one thing is wrong."""
        jobs = [one for one in checks if one.name in red and one.state is CheckState.BAD]
        if not jobs:
            return
        texts = []
        for job in jobs[:_MOST_JOBS]:
            end = last_lines(log_of(self._place.hub, job), _LOG_LINES, _LOG_ROOM)
            texts.append(quoted(f"The end of what the job {one_line(job.name, 80)} printed", end))
        names = ", ".join(one_line(job.name, 60) for job in jobs[:_MOST_JOBS])
        yield Complaint(
            kind=ComplaintKind.CHECKS,
            item=f"checks {pull.head.sha[:12]}",
            title=one_line(f"Make green what is red on the pull request: {names}", 120),
            text="\n\n".join(texts),
            belongs_to=owners_of_text(work, texts),
            is_settled=True,
        )

    def _about_remarks(self, work: BranchWork, heard: Iterable[Heard]) -> Iterator[Complaint]:
        for one in list(heard)[:_MOST_REMARKS]:
            said = one.remark
            if one.kind is ComplaintKind.LINE:
                line = said.line or said.original_line
                commit = said.commit_id if said.line else said.original_commit_id
                owners = owners_of_line(self._git, work, said.path, line, commit)
                where = f" about {said.path}"
                if line:
                    where += f" line {line}"
            else:
                owners = owners_of_text(work, [said.words])
                where = ""
            if not owners:
                self._propose(said)
                self._note(heard=(*self.follow.heard, one.item))
                continue
            yield Complaint(
                kind=one.kind,
                item=one.item,
                title=one_line(f"Do what the review asks for: {said.words}", 110),
                text=quoted(f"What {said.by} says{where}", said.words),
                by=said.by,
                remark=said.id,
                belongs_to=owners,
            )

    def _propose(self, said: PullRemark) -> None:
        """Keep what is about no work of ours for a person's yes or no."""
        wanted = Proposal(
            id="",
            text=f"{said.path}: {said.words}",
            origin=ProposalOrigin.COMMENT,
            run=self.follow.run,
            at=time.time(),
            by=said.by,
            link=said.html_url,
        )
        with Journal.open(self._place.project.journal, check=False) as journal:
            done = keep_proposal(journal, wanted)
        if done is not None:
            self._tell(f"about no work of this run, proposed as {done.id}: {said.path}")

    def _open(self) -> None:
        """A story for each complaint, also where one was made before a crash."""
        if self.follow.merging is not None:
            go_forward(self._git, self.follow.merging)
            kill_point("follow.merged_base")
        opened = []
        for one in self.follow.complaints:
            made = story_made_of(self._place.source, self._source_of(one))
            made = made or self._make_story(one)
            kill_point("follow.opened")
            opened.append(replace(one, story=made))
        names = tuple(one.story for one in opened)
        for one in opened:
            about = f", about {', '.join(one.belongs_to)}" if one.belongs_to else ""
            self._tell(f"{one.story}: {one.title}{about}")
        stories = tuple(dict.fromkeys((*self.follow.stories, *names)))
        self._note(complaints=tuple(opened), stories=stories, step=FollowStep.WORKING)

    def _source_of(self, one: Complaint) -> dict[str, str]:
        return {"pull_request": self._name, "item": one.item}

    @cached_property
    def _name(self) -> str:
        return f"{self.follow.repository}#{self.follow.number}"

    def _make_story(self, one: Complaint) -> str:
        known = {story.id for story in load(self._place.source).list.stories}
        owners = [name for name in one.belongs_to if name in known]
        about = f" It is about the work of {', '.join(one.belongs_to)}." if one.belongs_to else ""
        fields = {
            "title": one.title,
            "description": f"Under pull request #{self.follow.number}.{about}\n\n{one.text}",
            "acceptanceCriteria": [_CRITERIA.get(one.kind, _USUAL), _AND_SHOWN],
            "dependsOn": owners,
            "source": self._source_of(one),
        }
        return add_story(self._place.source, fields)

    # --- working -------------------------------------------------------------------------------

    def _work_on(self) -> None:
        for one in self.follow.complaints:
            if self._standing(one.story) is not Standing.OPEN:
                continue
            unfinished = self._unfinished_run()
            flags = self._flags(unfinished)
            if flags is None:
                return
            self._insist_on_branch()
            is_merge = one.kind is ComplaintKind.CONFLICT
            options = replace(
                self._options,
                prd=self._place.source,
                only=one.story,
                resume=bool(unfinished),
                allow_red=self._options.allow_red or is_merge,
                flags={**self._options.flags, **flags},
            )
            code = self._work(options)
            kill_point("follow.worked")
            if code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
                self._end(FollowEnd.INTERRUPTED, "it was interrupted", for_good=False)
                return
        self._note(step=FollowStep.PUSHING)

    def _insist_on_branch(self) -> None:
        here = self._git.line("branch", "--show-current")
        if here != self.follow.source:
            raise RepositoryError(
                f"the checkout is on {here or 'no branch'}, the pull request is of"
                f" {self.follow.source}",
                f"git switch {self.follow.source}, then the same command again",
            )

    def _standing(self, story: str) -> Standing:
        seen = self._seen(story)
        return seen.standing if seen else Standing.OPEN

    def _seen(self, story: str) -> StoryLook | None:
        return next((it for it in look(self._place.project).stories if it.story.id == story), None)

    def _unfinished_run(self) -> str:
        """The run of this follow that was cut off, which goes on; empty: none was."""
        with reading(self._place.project) as journal:
            found = journal.resume_candidate(time.time())
        if found is None or found.expired or found.run.started_at < self.follow.began_at:
            return ""
        return found.run.id

    def _flags(self, going_on: str) -> dict[str, object] | None:
        """What is left of the run's limits; None: one is used up, and it has ended."""
        is_new_budget = any(name.startswith("limits.") for name in self._options.flags)
        since = self.follow.began_at if is_new_budget else self.follow.first_at
        night = "" if is_new_budget else self.follow.run
        left = left_of(
            self._place.project,
            self._place.config,
            since,
            self.follow.until,
            night=night,
            going_on=going_on,
        )
        if left.used_up:
            step = "ralph pr --follow --max-cost …, --max-iterations …, --max-time … gives it more"
            self._end(FollowEnd.LIMIT, f"{left.used_up}: {step}")
            return None
        return {"session.on_end": "", "lanes.count": 0, **left.flags}

    # --- pushing and answering -----------------------------------------------------------------

    def _push(self) -> None:
        passed = [one for one in self.follow.complaints if self._has_passed(one.story)]
        merging = self.follow.merging
        if merging is not None and (not passed or has_markers(self._git, merging)):
            self._end(FollowEnd.NO_PROGRESS, f"the conflict with {self.follow.base} was not solved")
            return
        there = pull_state(self._place.hub, self.follow.number).head.sha
        if there not in (self.follow.head, self._git.line("rev-parse", "HEAD")):
            why = f"somebody else pushed to {self.follow.branch}: it is theirs now"
            self._end(FollowEnd.TAKEN_OVER, why)
            return
        if passed:
            follow = self.follow
            what = offer(
                self._git,
                follow.remote,
                follow.source,
                follow.run,
                follow.base,
                self._place.kept,
            )
            push(self._git, what)
            kill_point("follow.pushed")
            self._note(head=what.commit, step=FollowStep.ANSWERING)
            self._tell(f"pushed {what.commit[:10]} to {what.branch}")
        else:
            self._note(step=FollowStep.ANSWERING)

    def _has_passed(self, story: str) -> bool:
        return self._standing(story) is Standing.PASSED

    def _answer(self) -> None:
        """Tell everybody what became of what they said, once."""
        passed = False
        for number, one in enumerate(self.follow.complaints):
            passed = passed or self._has_passed(one.story)
            if one.is_settled:
                continue
            if not self._is_answered(one):
                self._reply(one)
                kill_point("follow.answered")
            known = list(self.follow.complaints)
            known[number] = replace(one, is_settled=True)
            self._note(complaints=tuple(known))
        items = tuple(one.item for one in self.follow.complaints)
        undone = [one.story for one in self.follow.complaints if not self._has_passed(one.story)]
        self._looks = 0
        self._note(
            complaints=(),
            merging=None,
            heard=(*self.follow.heard, *items),
            round=self.follow.round + 1,
            step=FollowStep.LOOKING,
        )
        if not passed:
            self._end(FollowEnd.NO_PROGRESS, f"{', '.join(undone)}: {self._reason(undone[0])}")

    def _reason(self, story: str) -> str:
        seen = self._seen(story)
        reason = seen.state.reason if seen else ""
        return escaped(one_line(reason or "it has not passed", 200))

    def _is_answered(self, one: Complaint) -> bool:
        hub = self._place.hub
        number = self.follow.number
        mark = _MARK.format(one.item)
        said = line_remarks(hub, number) if one.kind is ComplaintKind.LINE else talk(hub, number)
        return any(mark in (it.body or "") for it in said)

    def _reply(self, one: Complaint) -> None:
        text = f"{self._outcome(one)}\n\n{_MARK.format(one.item)}"
        if one.kind is ComplaintKind.LINE:
            reply_to_line(self._place.hub, self.follow.number, one.remark, text)
        else:
            say(self._place.hub, self.follow.number, f"To what {one.by} said: {text}")

    def _outcome(self, one: Complaint) -> str:
        seen = self._seen(one.story)
        if seen is None or seen.standing is not Standing.PASSED:
            return f"Not done ({one.story}): {self._reason(one.story)}"
        base = f"refs/ralph/base/{self.follow.base}"
        commit = commit_for(self._git, base, one.story)
        where = f" in {commit}" if commit else ""
        return f"Done{where} ({one.story}, {seen.grade})."

    # --- ends ----------------------------------------------------------------------------------

    def _end(self, how: FollowEnd, why: str, *, for_good: bool = True) -> None:
        """Keep that it is over; what was interrupted goes on the next time."""
        if self.follow.merging is not None and for_good:  # nobody may push what is not solved
            ref = take_back(self._git, self.follow.merging, self.follow.run)
            why += f"; the branch is as it was before the merge, which is kept: git log {ref}"
        self._note(ended=how, why=why, is_kept=for_good)

    def _note(self, *, is_kept: bool = True, **changed: object) -> None:
        self.follow = replace(self.follow, **changed)
        if is_kept:
            with Journal.open(self._place.project.journal, check=False) as journal:
                journal.put("note_follow", {FOLLOW_KEY.format(self.follow.run): self.follow})

    def merge_when_green(self) -> str:
        """Merge it where nothing speaks against that; why it was not, in words."""
        hub = self._place.hub
        pull = pull_state(hub, self.follow.number)
        base = fetch_base(self._git, self.follow.remote, self.follow.base)
        names = {*work_on(self._git, base, "HEAD").all_stories, *self.follow.stories}
        seen = {it.story.id: it for it in look(self._place.project).stories if it.story.id in names}
        passed = {name: it for name, it in seen.items() if it.standing is Standing.PASSED}
        last: dict[str, str] = {}
        for one in reviews(hub, pull.number):
            if one.state in _DECIDING and may_write(hub, one.by):
                last[one.by] = one.state
        facts = MergeFacts(
            grades={name: it.grade for name, it in passed.items()},
            open_stories=tuple(name for name in names if name not in passed),
            asked_for_changes=tuple(who for who, state in last.items() if state == _ASKS),
            is_draft=pull.draft,
        )
        if why := why_not_merge(facts):
            return why
        if pull.head.sha != self.follow.head:
            return "somebody pushed to it meanwhile"
        merge(hub, pull.number, pull.head.sha)
        self._note(ended=FollowEnd.MERGED, why="every story is verified, nobody asked for changes")
        return ""


def _wishes(
    lines: Iterable[PullRemark], judged: Iterable[PullRemark], said: Iterable[PullRemark]
) -> Iterator[Heard]:
    """What of all that is said wants something done, whoever says it."""
    for remark in lines:
        # Further down a thread people mostly talk to each other, or say thanks.
        if remark.in_reply_to_id is None or _is_addressed(remark):
            yield Heard(ComplaintKind.LINE, remark)
    for remark in judged:
        if remark.state == _ASKS:
            yield Heard(ComplaintKind.REVIEW, remark)
    for remark in said:
        if _is_addressed(remark):
            yield Heard(ComplaintKind.TALK, remark)


def _is_addressed(remark: PullRemark) -> bool:
    return remark.words.lower().startswith(_ADDRESSED)


def begin(
    night: RunRecord,
    what: Offer,
    repository: str,
    number: int,
    config: Config,
    kept: Follow | None,
    rounds: int,
) -> Follow:
    """Go on with what was cut off; what had come to an end is followed anew, by a person's wish."""
    if kept is not None and not kept.is_over and kept.number == number:
        return kept
    now = time.time()
    limit = config.limits.max_time
    same = kept if kept is not None and kept.number == number else None
    return Follow(
        run=night.id,
        repository=repository,
        number=number,
        remote=what.remote,
        source=what.source,
        branch=what.branch,
        base=what.base,
        began_at=now,
        first_at=same.first_at if same else now,
        until=now + limit if limit else 0.0,
        rounds=rounds,
        head=what.commit,
        heard=same.heard if same else (),
        stories=same.stories if same else (),
    )


_EXIT_CODES = {
    FollowEnd.GREEN: ExitCode.COMPLETE,
    FollowEnd.MERGED: ExitCode.COMPLETE,
    FollowEnd.ROUNDS: ExitCode.LIMIT,
    FollowEnd.LIMIT: ExitCode.LIMIT,
    FollowEnd.INTERRUPTED: ExitCode.INTERRUPTED,
}


def exit_code_of(follow: Follow) -> ExitCode:
    """Somebody has to look, unless it is green, merged or out of means."""
    if follow.ended is None:
        return ExitCode.INTERNAL
    return _EXIT_CODES.get(follow.ended, ExitCode.BLOCKED)
