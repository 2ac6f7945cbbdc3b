"""One moment of a project, as a value; what follows from its parts is a property of it."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from ralphloop.config.model import Config, policy_of
from ralphloop.core.accounts import party_named
from ralphloop.core.breaker import BreakerState
from ralphloop.core.criteria import (
    LONGEST_CRITERION,
    Coverage,
    CriterionEvidence,
    coverage_of,
)
from ralphloop.core.grading import Grade
from ralphloop.core.model import Circuit, ExitDecision, Outcome, Story, StoryList
from ralphloop.core.planning import ENDINGS, StoryWait, ending_of
from ralphloop.core.policy import Limits, Policy, raised
from ralphloop.core.proposals import Proposal
from ralphloop.core.run_state import LaneNote, LanesState, Session, Standing, StoryState
from ralphloop.core.totals import Totals, quota_words
from ralphloop.journal.holder import Holder
from ralphloop.journal.records import (
    AgentThrough,
    IterationRecord,
    Request,
    RunRecord,
    RunStatus,
    Wait,
)
from ralphloop.project import CONFIG_NAME, ERRANDS, Project, git_directory
from ralphloop.readers.failures import is_too_long
from ralphloop.text.durations import clock_time, elapsed, format_duration
from ralphloop.text.plain import agreeing, counted, one_line, some

_MOST_ASKED = 5
_MOST_NAMED = 3
_EMPTY_LIST = "there is nothing to do"  # what a list without stories is told by
ACCEPTED = "accepted"  # how a story is told that needed review and was taken by a person
SENT_BACK_SINCE = "sent back since"  # how an earlier run's story is told that a person sent back


class State(StrEnum):
    NONE = "none"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    STOPPED = "stopped"
    COMPLETE = "complete"


@dataclass(frozen=True)
class StoryLook:
    story: Story
    state: StoryState
    is_listed: bool = True  # False: only the journal remembers it
    wait: StoryWait | None = None  # it waits while lanes work

    @property
    def waits(self) -> str:
        """Why it does while lanes work, in words; empty where it does not."""
        return self.wait.words if self.wait else ""

    @property
    def standing(self) -> Standing:
        """Where it stands; of a story in the list only its file says that it has passed."""
        if self.story.passes:
            return Standing.PASSED
        taken_back = self.is_listed and self.state.standing is Standing.PASSED
        return Standing.OPEN if taken_back else self.state.standing

    @property
    def grade(self) -> str:
        """How well a passed story is proven; the journal does not know those a person marked, and
        what needed review needs none once a person took it."""
        if self.standing is not Standing.PASSED:
            return ""
        if self.state.standing is not Standing.PASSED:
            return str(Grade.BY_HAND)
        proof = self.state.proof
        if self.is_sent_back_since:
            return SENT_BACK_SINCE
        return ACCEPTED if proof.accepted and proof.grade == Grade.NEEDS_REVIEW else proof.grade

    @property
    def is_accepted(self) -> bool:
        """A person looked at it since it passed, and took it."""
        return self.standing is Standing.PASSED and self.state.proof.accepted

    @property
    def is_sent_back_since(self) -> bool:
        """It passed in an earlier run, and a person sent that very change back later."""
        has_passed = self.state.standing is Standing.PASSED
        return has_passed and self.state.proof.work in self.state.proof.works_sent_back

    @property
    def is_unreviewed(self) -> bool:
        """It passed, in whichever run, and nobody has looked at it; a mark by hand is a look."""
        has_passed = self.standing is Standing.PASSED and bool(self.grade)
        is_decided = self.is_accepted or self.is_sent_back_since
        return has_passed and not is_decided and self.grade != Grade.BY_HAND

    @property
    def criteria(self) -> tuple[CriterionEvidence, ...]:
        """What shows that each criterion is met, as it was found when the story was last judged."""
        known = {one.criterion: one for one in self.state.proof.criteria}
        told = (criterion[:LONGEST_CRITERION] for criterion in self.story.criteria)
        return tuple(known.get(it) or CriterionEvidence(criterion=it) for it in told)

    @property
    def coverage(self) -> Coverage:
        """How many of its criteria something speaks of; of a story nobody judged so it is empty."""
        return coverage_of(self.criteria) if self.state.proof.criteria else Coverage()

    @property
    def failed(self) -> int:
        """Attempts that failed; older versions kept only those since it was last taken up."""
        return max(self.state.totals.failed, self.state.attempt.failed)

    @property
    def bring_back(self) -> str:
        """The command that brings the leftovers of a story set aside back."""
        ref = "" if self.story.passes else self.state.base.saved_ref
        return f"git cherry-pick --no-commit {shlex.quote(ref)}" if ref else ""


class ErrandLook(NamedTuple):
    """Something that was given in words, beside the list of the project."""

    run: RunRecord
    look: StoryLook
    is_live: bool = False
    can_continue: bool = False  # `ralph run --continue` goes on with it

    def words(self, now: float) -> str:
        """What it is and how it stands, in one line."""
        story = self.look.story
        return f"{one_line(story.id, 60)} “{one_line(story.title, 100)}”: {self.how(now)}"

    def how(self, now: float) -> str:
        if self.is_live:
            return "is worked on"
        look = self.look
        run = self.run
        words = f"{look.standing} ({look.grade})" if look.grade else self._unfinished
        ago = format_duration(elapsed(run.ended_at or run.last_activity, now))
        return f"{words}, {ago} ago"

    @property
    def _unfinished(self) -> str:
        if self.look.standing is Standing.BLOCKED:
            return "waits for you"
        return f"not done: {one_line(self.look.state.reason or self.run.reason, 160)}".rstrip(": ")


class LaneLook(NamedTuple):
    number: int
    story: str
    doing: str
    since: float | None = None
    iteration: int = 0  # 0: nobody works there
    machine: str = ""  # that its agent works on; empty: this one

    def words(self, now: float) -> str:
        age = f", {format_duration(elapsed(self.since, now))}" if self.since else ""
        return f"{one_line(self.story, 60)} {self.doing}{age}".strip()


@dataclass(frozen=True, kw_only=True)
class Night:
    """How things stand in a project; with another `now` it is the same moment, a little later."""

    project: Project
    now: float = field(compare=False)
    config: Config
    story_list: StoryList | None = None
    stories_problem: str = ""  # why the story list cannot be shown
    stories: tuple[StoryLook, ...] = ()  # as listed, then those only the journal remembers
    run: RunRecord | None = None
    session: Session = field(default_factory=lambda: Session(run=""))
    holder: Holder | None = None  # of the project; where there is no run, about to begin one
    wait: Wait | None = None
    iterations: tuple[IterationRecord, ...] = ()  # the newest ones, newest first
    pending: tuple[Request, ...] = ()  # what a person asked and nobody answered yet
    calls: int = 0  # starts in the last hour
    expired: bool = False  # too old to be continued
    book: LanesState | None = None  # of its lanes
    flying: tuple[IterationRecord, ...] = ()  # what goes on or was cut off, newest last
    # Those of them in lanes whose agent is through.
    through: dict[int, AgentThrough] = field(default_factory=dict)
    errands: tuple[ErrandLook, ...] = ()  # since that run began, newest first
    proposals: tuple[Proposal, ...] = ()  # stories that somebody proposes, and nobody decided on
    exchanged: bool = False  # files of the work tree are not what the story left: a run was killed

    @property
    def state(self) -> State:
        run = self.run
        wait = self.wait
        if run is None:
            return State.NONE if self.holder is None else State.RUNNING
        if run.status is RunStatus.COMPLETE:
            return State.STOPPED if self.open_again else State.COMPLETE
        if run.status is not RunStatus.RUNNING or self.holder is None:
            return State.STOPPED
        if self.is_paused:
            return State.PAUSED
        is_waiting = wait is not None and wait.until > self.now
        return State.WAITING if is_waiting else State.RUNNING

    @property
    def open_since(self) -> tuple[StoryLook, ...]:
        """Of a run that ended complete the stories that are open: sent back, or added since."""
        if self.run is None or self.run.status is not RunStatus.COMPLETE:
            return ()
        return tuple(look for look in self.counted if look.standing is not Standing.PASSED)

    @property
    def open_again(self) -> tuple[StoryLook, ...]:
        """Those of them that it had worked on: a person wants them done again."""
        found = (look for look in self.open_since if look.standing is Standing.OPEN)
        return tuple(look for look in found if look.state.totals.iterations)

    @property
    def same_as_sent_back(self) -> tuple[StoryLook, ...]:
        """Stories that are called done with just the change that a person sent back."""
        listed = (look for look in self.counted if look.standing is not Standing.PASSED)
        return tuple(look for look in listed if look.state.is_same_as_sent_back)

    @property
    def is_live(self) -> bool:
        return self.state in (State.RUNNING, State.WAITING, State.PAUSED)

    @property
    def died(self) -> bool:
        """The journal says it runs, but nobody holds the project."""
        return self.run is not None and self.run.status is RunStatus.RUNNING and not self.is_live

    @property
    def newest(self) -> IterationRecord | None:
        return self.iterations[0] if self.iterations else None

    @property
    def wait_s(self) -> float:
        return max(0.0, self.wait.until - self.now) if self.wait else 0.0

    @property
    def working(self) -> tuple[IterationRecord, ...]:
        """The iterations that go on now; in lanes there may be several."""
        return self.flying if self.is_live else ()

    @property
    def asking(self) -> tuple[StoryLook, ...]:
        beside = (errand.look for errand in self.errands)
        every = (*self.counted, *beside)
        return tuple(look for look in every if look.standing is Standing.BLOCKED)

    @property
    def asked(self) -> str:
        """What a person asked of the run and nobody answered yet, in words."""
        return ", ".join(dict.fromkeys(one_line(request.kind, 20) for request in self.pending))

    @property
    def is_paused(self) -> bool:
        """Or will be, once the current iteration has ended."""
        return bool(self.session.overrides.paused or (self.wait and self.wait.kind == "pause"))

    @property
    def current(self) -> IterationRecord | None:
        """The iteration that goes on, or was cut off."""
        return self.flying[-1] if self.flying else None

    @property
    def lanes(self) -> tuple[LaneLook, ...]:
        """What each lane does; none where the run has none."""
        if self.book is None or not self.is_live:
            return ()
        working = {self.book.lane_of(it.story): it for it in self.flying}
        found: list[LaneLook] = []
        for number in sorted({*range(1, max(self.book.count, 1) + 1), *working} - {0}):
            it = working.get(number)
            if it is None:
                held = self.book.lanes.get(number, LaneNote()).story
                why = next((f": {one.waits}" for one in self.stories if one.story.id == held), "")
                doing = f"waits{why}".strip(": ") if held else "is free"
                found.append(LaneLook(number, held, doing))
                continue
            through = self.through.get(it.n)
            since = through.since if through else it.started_at
            doing = self._lane_doing(it)
            where = self.machine_of(it)
            found.append(LaneLook(number, it.story or "", doing, since, it.n, where))
        return tuple(found)

    def _lane_doing(self, it: IterationRecord) -> str:
        """How far an iteration in a lane is, in words."""
        if it.n not in self.through:
            came_back = self.session.story(it.story).landing.count
            where = self.machine_of(it)
            works = f"works on {where}" if where else "works"
            return f"{works}, came back from landing" if came_back else works
        if not self.through[it.n].lands:
            return "is checked"
        queue = [n for n, one in self.through.items() if one.lands]
        before = queue.index(it.n)
        on = self.through[it.n].on
        if not before:
            return "lands"
        if on is None:
            return f"waits for landing, {before} before it"
        ahead = {one.story for one in self.flying if one.n in queue[:before]}
        below = [name for name in on if name in ahead]  # the others have landed
        return f"is judged on top of {some(below)}" if below else f"is judged, {before} before it"

    def machine_of(self, it: IterationRecord) -> str:
        return machine_of(it, self.book)

    @property
    def waiting(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for look in self.stories:
            if look.waits:
                found.setdefault(look.waits, []).append(look.story.id)
        return found

    @property
    def last(self) -> IterationRecord | None:
        return next((each for each in self.iterations if each.finished_at is not None), None)

    @property
    def totals(self) -> Totals:
        return self.run.totals if self.run else Totals()

    @property
    def active_s(self) -> float:
        since = elapsed(self.run.last_activity, self.now) if self.run and self.is_live else 0.0
        return self.totals.active_s + since

    @property
    def limits(self) -> Limits:
        """What the session may use, with what a person added to it; 0 means no limit."""
        return raised(self.policy.limits, self.session.overrides.extra)

    @property
    def quota(self) -> str:
        """How much of a subscription's windows is used; after the run, as it was at its end."""
        at = self.run.ended_at if self.run and self.run.ended_at else self.now
        windows = quota_words(self.session.state.usage_windows, at, resets=True)
        return ", ".join(filter(None, (windows, *self.accounts_away)))

    @property
    def accounts_away(self) -> tuple[str, ...]:
        """Which accounts of agents on other machines wait, in words; none after the run."""
        if not self.is_live:
            return ()
        known = self.session.state.agent_available_at
        return tuple(
            f"{name} waits until {clock_time(until, self.now)}"
            for name, until in known.items()
            if until > self.now and party_named(name).account
        )

    @property
    def circuit(self) -> BreakerState:
        return self.session.state.breaker

    @property
    def policy(self) -> Policy:
        return policy_of(self.config)

    @property
    def passed(self) -> int:
        return self.count(Standing.PASSED)

    @property
    def total(self) -> int:
        return len(self.counted)

    @property
    def grades(self) -> dict[str, int]:
        counts = Counter(look.grade for look in self.counted)
        told = (*map(str, Grade), ACCEPTED, SENT_BACK_SINCE)
        return {grade: counts[grade] for grade in told if counts[grade]}

    @property
    def unreviewed(self) -> tuple[StoryLook, ...]:
        """Stories that passed, in this run or an earlier one, and that nobody has looked at."""
        return tuple(look for look in self.counted if look.is_unreviewed)

    @property
    def warnings(self) -> list[str]:
        """What was worth a warning in the last iteration, signs of going in circles included."""
        if self.last is None:
            return []
        found = self.last.record.analysis
        return [*found.warnings, *(f"stuck: {pattern.detail}" for pattern in found.stuck)]

    @property
    def reasons(self) -> list[str]:
        return list(self.last.record.decision.reasons) if self.last else []

    @cached_property
    def counted(self) -> tuple[StoryLook, ...]:
        """The stories of the list; where it cannot be read, those the journal remembers."""
        listed = tuple(look for look in self.stories if look.is_listed)
        return listed or tuple(look for look in self.stories if look.story.id)

    def count(self, standing: Standing) -> int:
        return sum(look.standing is standing for look in self.counted)


def machine_of(it: IterationRecord, book: LanesState | None = None) -> str:
    """The machine on which the agent of an iteration works or worked; empty: this one."""
    if it.finished_at is not None:
        return it.record.machine
    return book.lanes.get(book.lane_of(it.story), LaneNote()).machine if book else ""


def open_words(stories: Sequence[StoryLook]) -> str:
    """Which stories are open."""
    names = some([look.story.id for look in stories], _MOST_NAMED)
    return f"{names} {agreeing(len(stories), 'is')} open"


def ended_words(outcome: str) -> str:
    """How a start ended, for a person; whatever another version wrote."""
    known = outcome in set(Outcome)
    return Outcome(outcome).words if known else outcome.replace("_", " ")


class Advice(NamedTuple):
    words: str
    command: str = ""
    kind: str = "look"  # or answer, review, run
    story: str = ""
    wants_value: bool = False  # the command is no command before a person has filled it in

    def __str__(self) -> str:
        return f"{self.words} `{self.command}`" if self.command else self.words


def _how_to_go_on(look: StoryLook) -> Advice:
    """What a story that waits for a person needs; no answer shortens a request."""
    name = look.story.id
    reason = one_line(look.state.reason, 300) or "no reason was given"
    if look.state.attempt.refusals and is_too_long(reason):
        words = (
            f"{name}'s request is too long for the model ({reason}). Split the story, shorten its"
            " specification or PROMPT.md, or name a model with more room (agent.model); then:"
        )
        return Advice(words, f"ralph retry {shlex.quote(name)}", "run", name)
    return Advice(
        f"Answer {name}: {reason}", f'ralph answer {shlex.quote(name)} "…"', "answer", name
    )


def next_steps(night: Night) -> Iterator[Advice]:
    """What a person can do now, what waits for them first; the same on every screen."""
    for look in night.asking[:_MOST_ASKED]:
        yield _how_to_go_on(look)
    if more := night.asking[_MOST_ASKED:]:
        yield Advice(f"{counted(len(more), 'more story', 'waits')} for you:", "ralph answer")
    if not night.is_live:
        yield from _to_look_at(night)
    for errand in night.errands:
        if errand.can_continue and errand.look.standing is Standing.OPEN:
            words = f"To go on with {errand.look.story.id}:"
            yield Advice(words, "ralph run --continue", "run", errand.look.story.id)
    if night.state is not State.NONE:
        yield from _go_on(night)
    elif night.story_list is not None:
        yield Advice("To see the plan, which costs nothing:", "ralph run --dry-run")
        yield Advice("To start:", "ralph run", "run")
    elif (night.project.root / night.config.stories.prd).exists():
        yield from _mend_list(night)
    elif (night.project.root / CONFIG_NAME).exists():
        yield Advice("`ralph doctor` says what is missing; a sample story list:", "ralph init")
    else:
        yield Advice("To set this directory up:", "ralph init")


def _mend_list(night: Night) -> Iterator[Advice]:
    """What helps a story list that nobody can work with; one that is only empty needs a story."""
    if _EMPTY_LIST not in night.stories_problem:
        yield Advice(f"Correct {night.config.stories.prd}; what is wrong with it:", "ralph doctor")
    yield Advice("To add a story:", "ralph stories add …", wants_value=True)


def _to_look_at(night: Night) -> Iterator[Advice]:
    """What a person looks at when a run has ended: stories, then what is proposed."""
    for look in night.same_as_sent_back[:_MOST_ASKED]:
        words = f"{look.story.id} is again what you sent back; to take it after all:"
        yield Advice(words, "ralph review", "review", look.story.id)
    if doubted := night.grades.get(Grade.NEEDS_REVIEW, 0):
        yield Advice(f"{counted(doubted, 'story', 'needs')} review:", "ralph review", "review")
    elif unseen := len(night.unreviewed):
        words = f"{counted(unseen, 'story', 'passed')} and nobody has looked yet:"
        yield Advice(words, "ralph review", "review")
    if found := len(night.proposals):
        words = f"{counted(found, 'story', 'is')} proposed, found on the way:"
        yield Advice(words, "ralph stories proposed")


def _go_on(night: Night) -> Iterator[Advice]:
    run = night.run
    decision = night.run.decision if night.run else ""
    if night.state is State.PAUSED and night.session.overrides.paused:
        yield Advice("`ralph stop` ends it; to let it go on:", "ralph resume")
    elif night.is_live:
        yield Advice("`ralph stop` ends it; to follow it:", "ralph log -f")
    elif decision == ExitDecision.NO_RUNNABLE_STORY and run and run.prd_path.startswith(ERRANDS):
        words = "See why in the report; say it another way:"
        yield Advice(words, "ralph do …", wants_value=True)
    elif night.open_since:
        names = open_words(night.open_since)
        yield Advice(f"{names}; a new session takes that up:", "ralph run", "run")
    elif night.expired:
        words = "A new session begins, what is known of the stories is kept:"
        yield Advice(words, "ralph run", "run")
    else:
        is_open = night.circuit.circuit is Circuit.OPEN
        word = ExitDecision.CIRCUIT_OPEN if is_open else decision
        answered = word == ExitDecision.BLOCKED and not night.count(Standing.BLOCKED)
        word = ExitDecision.INTERRUPTED if (night.died and not is_open) or answered else word
        ending = ending_of(word, run.used_up if run else None) or ENDINGS[ExitDecision.INTERRUPTED]
        kind = "look" if night.state is State.COMPLETE else "run"
        book = night.book
        command = ending.command
        if kind == "look" and book and book.branch in book.ended:  # it is not in the checkout
            command = f"{command} {book.branch}"
        advice = ending.advice
        if kind == "look" and git_directory(night.project.root) is None:
            advice = "Read what it did:"
            command = "ralph report"
        yield Advice(advice, command, kind, wants_value=ending.wants_value)
    if night.exchanged:
        yield Advice("An experiment was cut off: that also puts back the files exchanged for it")
