"""One pass over a run's iterations and events: sums, facts of stories, what went almost wrong.

Of each only a few numbers and bounded words are kept: a night of ten thousand costs megabytes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from ralphloop.core import events
from ralphloop.core.events import LoopEvent
from ralphloop.core.iteration import SaveLeftovers
from ralphloop.core.model import CheckStatus, Circuit, ExitDecision, Outcome, Transition
from ralphloop.core.run_state import is_failed_attempt
from ralphloop.journal.records import IterationRecord
from ralphloop.night.values import ended_words, machine_of
from ralphloop.text.plain import clean
from ralphloop.text.status_block import Status
from ralphloop.ui.report.values import NearMiss, PassPoint, ReportNote, Span, Teller, Used, UsedBy

_MOST_EXAMPLES = 5
_MOST_TAMPERING = 20
_SHORT = 200
_MOST_OUTPUT = 4_000
_BLOCK = "---RALPH_STATUS---"
_NO_REASON = "no reason was given"
_NEAR_MISSES = {  # in the order they are told
    "false_done": "“Done” that was not, caught by the checks",
    "early_exit": "The agent wanted to end the run too early",
    "half_open": "The circuit went half open",
    "circles": "Going in circles",
    "outages": "Starts that failed and were tried again",
    "stopped": "Starts that had to be stopped",
    "denied": "Tools the agent was refused",
    "flaky": "Flaky checks: red, then green",
    "tolerated": "Tests that were red before and still are",
    "leftovers": "Processes left behind and stopped",
}


class Stretch(NamedTuple):
    """Something that was done for a while."""

    kind: str
    start: float
    end: float


KINDS = ("working", "checking", "proving")  # which of them counts where several go on at once


def _stretches(it: IterationRecord, finished: float) -> Iterator[Stretch]:
    """When its agent worked, its checks ran, and what they say was tried."""
    trial = it.record.evidence.trial
    lasted = {
        "working": it.record.end.duration_s,
        "checking": sum(check.duration_s for check in it.checks),
        "proving": trial.took_s + trial.mutation.took_s if trial else 0.0,
    }
    at = it.started_at
    for kind, seconds in lasted.items():
        end = min(at + seconds, finished)
        if end > at:
            yield Stretch(kind, at, end)
        at = max(at, end)


def time_spent(stretches: Iterable[Stretch]) -> dict[str, float]:
    """Seconds of each kind; of several at once only the first kind counts, and once."""
    spent = dict.fromkeys(KINDS, 0.0)
    moves = [(one.start, 1, one.kind) for one in stretches]
    moves += [(one.end, -1, one.kind) for one in stretches]
    moves.sort(key=lambda move: move[0])
    going_on = dict.fromkeys(KINDS, 0)
    before = 0.0
    for at, change, kind in moves:
        first = next((one for one in KINDS if going_on[one]), None)
        if first is not None:
            spent[first] += at - before
        going_on[kind] += change
        before = at
    return spent


@dataclass
class Account:
    used: Used = field(default_factory=Used)
    failed: int = 0  # attempts
    checks: tuple[str, ...] = ()  # names of those that ran last
    look_at: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    last_lines: tuple[str, ...] = ()  # of what failed last, else of the last words
    machines: dict[str, None] = field(default_factory=dict)  # that worked on it, in order


@dataclass
class Tally:
    say: Teller
    own: dict[str, list[str]]  # what was committed for each story
    stories: dict[str, Account] = field(default_factory=lambda: defaultdict(Account))
    rungs: dict[str, Used] = field(default_factory=lambda: defaultdict(Used))
    machines: dict[str, Used] = field(default_factory=lambda: defaultdict(Used))
    spent: list[UsedBy] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)  # of the time, as far as it is known
    in_lanes: bool = False
    passes: list[PassPoint] = field(default_factory=list)
    moves: list[Transition] = field(default_factory=list)
    notes: list[ReportNote] = field(default_factory=list)
    tampering: list[ReportNote] = field(default_factory=list)
    tampering_count: int = 0
    untried: Counter[str] = field(default_factory=Counter)  # what could not be tried, and how often
    # What only events know; they may be pruned, then it is missing.
    first_circuit: str = ""
    warnings: dict[str, None] = field(default_factory=dict)
    lanes: list[Span] = field(default_factory=list)
    _near: dict[str, list[ReportNote]] = field(default_factory=lambda: defaultdict(list))
    _near_counts: Counter[str] = field(default_factory=Counter)
    _flying: dict[int | None, tuple[events.IterationStarted, float]] = field(default_factory=dict)
    _queued: dict[int | None, float] = field(default_factory=dict)
    _judged: dict[int | None, float] = field(default_factory=dict)
    _made_on: dict[int | None, str] = field(default_factory=dict)  # iteration → machine
    _landed: float = 0.0  # when the landing tree was free again

    def see(self, it: IterationRecord) -> None:
        """Take one iteration in; one that is still going on says nothing yet."""
        if it.finished_at is None:
            return
        story = self.stories[it.story or ""]
        used = it.record
        cost = UsedBy(
            str(it.n),
            iterations=1,
            passed=int(used.verdict.passed),
            cost_usd=it.cost_usd,
            unpriced=it.unpriced,
            tokens=it.total_tokens,
            seconds=used.end.duration_s,
        )
        story.used += cost
        self.rungs[used.by] += cost
        if machine := machine_of(it):
            self.machines[machine] += cost
            story.machines[machine] = None
            self._made_on[it.n] = machine
        self.spent.append(cost)
        story.checks = tuple(check.name for check in it.checks) or story.checks
        self.stretches += _stretches(it, it.finished_at)
        self._judge(it, story, it.finished_at)
        for key, words in _near_misses(it, in_lanes=self.in_lanes):
            self._near_counts[key] += 1
            note = self._note(it, words)
            found = self._near[key]
            if len(found) < _MOST_EXAMPLES and note.words not in (known.words for known in found):
                found.append(note)
        self.tampering_count += len(used.findings)
        room = _MOST_TAMPERING - len(self.tampering)
        self.tampering += [self._note(it, words) for words in used.findings[:room]]

    def near_misses(self) -> tuple[NearMiss, ...]:
        return tuple(
            NearMiss(key, title, self._near_counts[key], tuple(self._near[key]))
            for key, title in _NEAR_MISSES.items()
            if key in self._near
        )

    def _judge(self, it: IterationRecord, story: Account, at: float) -> None:
        verdict = it.record.verdict
        analysis = it.record.analysis
        asks = it.status == Status.BLOCKED
        if not _is_outage(it):
            is_returned = it.record.evidence.returned is not None
            if is_failed_attempt(analysis, passed=verdict.passed) and not (asks or is_returned):
                story.failed += 1
            # The end of the output of a check that failed, else of what the agent said.
            red = [check.output_tail for check in it.checks if check.status is CheckStatus.FAILED]
            words = red[-1] if red else (it.record.response.final_text or "").split(_BLOCK)[0]
            lines = (line.rstrip() for line in clean(words[-_MOST_OUTPUT:]).splitlines())
            told = tuple(line for line in lines if line.strip(" -=_"))[-_MOST_EXAMPLES:]
            story.last_lines = () if verdict.passed else told
        if verdict.passed:
            trial = it.record.evidence.trial
            grade = str(verdict.grade or "")
            story.look_at = verdict.look_at
            story.remarks = trial.remarks if trial else ()
            self.untried.update(trial.untried if trial else ())
            self.passes.append(PassPoint(at, len(self.passes) + 1, self.say(it.story, 60), grade))
        if moved := analysis.transition:
            self.moves.append(msgspec.structs.replace(moved, at=moved.at or at))
        if asks:
            asked = analysis.status.recommendation if analysis.status else ""
            self.notes.append(self._note(it, f"waits for a person: {asked or _NO_REASON}"))
        if it.owes(SaveLeftovers):
            words = "; ".join(verdict.reasons)
            self.notes.append(self._note(it, f"was set aside, attempt {it.attempt}: {words}"))

    def _note(self, it: IterationRecord, words: str) -> ReportNote:
        return ReportNote(
            self.say(words, _SHORT), it.finished_at, it.n, self.say(it.story or "", 60)
        )

    def hear(self, event: LoopEvent) -> None:
        """Take in what happened between iterations, and where they were."""
        at = event.at
        words = ""
        self._follow(event)
        match event.what:
            case events.RunStarted(circuit=circuit):
                words = "the run was continued" if self.first_circuit else ""
                self.first_circuit = self.first_circuit or str(circuit)
            case events.Preflight(warnings=said):
                self.warnings.update((self.say(words), None) for words in said)
            case events.RequestAnswered() as what:
                who = "the agent" if what.by_agent else "a person"
                words = f"{who} asked: {what.kind}; {what.answer}"
            case events.LaneLeft() as what:
                words = f"{what.story}: {what.reason}"
            case events.LanesMended(reason=reason):
                words = reason
            case events.StoriesEdited(changes=changes):
                words = "; ".join(changes)
            case events.StoryReturned(story=story, lane=lane, reason=reason):
                words = f"{story} went back to lane {lane}: {reason}"
                self._in_lane("returned", f"{story} went back: {reason}", at, at, lane)
        if words:
            self.notes.append(ReportNote(self.say(words), at))

    def _follow(self, event: LoopEvent) -> None:
        number = event.iteration
        at = event.at
        match event.what:
            case events.IterationStarted() as what if what.lane:
                self._flying[number] = (what, at)
            case events.Landing(in_train=True):
                self._judged[number] = at
            case events.Landing():
                self._queued[number] = at
            case events.IterationFinished() if number in self._flying:
                # It worked, waited for its turn to land, and landed.
                what, start = self._flying.pop(number)
                name = what.story
                lane = what.lane
                queued = self._queued.pop(number, at)
                # In a train it is judged before its turn.
                turn = min(self._judged.pop(number, max(queued, self._landed)), at)
                machine = self._made_on.get(number, "")
                words = f"{name}, iteration {number}" + (f" on {machine}" if machine else "")
                self._in_lane("working", words, start, queued, lane)
                self._in_lane("queued", f"{name} waited for landing", queued, turn, lane)
                self._in_lane("landing", f"{name} was landing", turn, at, lane)
                self._landed = at if queued < at else self._landed

    def _in_lane(self, kind: str, words: str, start: float, end: float, lane: int) -> None:
        if end - start >= 1 or kind in ("working", "returned"):
            self.lanes.append(Span(kind, self.say(words), start, max(start, end), lane))


class Miss(NamedTuple):
    key: str
    words: str


def _near_misses(it: IterationRecord, *, in_lanes: bool) -> Iterator[Miss]:
    """What went almost wrong in an iteration."""
    kept = it.record
    analysis = it.record.analysis
    verdict = it.record.verdict
    moved = analysis.transition
    why = kept.why_it_ended or _NO_REASON
    how = ended_words(it.outcome)
    ended = why if why.startswith(how) else f"{how}: {why}"
    is_returned = kept.evidence.returned is not None  # it was good where it was made
    if analysis.story_claimed and not (verdict.passed or is_returned or _is_outage(it)):
        reasons = "; ".join(verdict.reasons) or "it was not so"
        yield Miss("false_done", f"claimed, but {reasons}")
    # In a lane nobody can know how far the others are.
    if analysis.exit_signal and it.decision == ExitDecision.CONTINUE and not in_lanes:
        reasons = "; ".join(kept.decision.reasons) or "said the project was complete"
        yield Miss("early_exit", reasons)
    if moved is not None and moved.after is Circuit.HALF_OPEN:
        yield Miss("half_open", moved.reason)
    for pattern in analysis.stuck:
        yield Miss("circles", f"{pattern.name.replace('_', ' ')}: {pattern.detail}")
    if _is_outage(it) and it.outcome != Outcome.USAGE_LIMIT:
        yield Miss("outages", ended)
    if it.outcome in (Outcome.TIMEOUT, Outcome.STALLED):
        yield Miss("stopped", ended)
    for denial in kept.response.denials:
        yield Miss("denied", f"{denial.tool} {denial.summary}")
    for check in it.checks:
        if check.flaky:
            tests = ", ".join(check.failing_tests[:3])
            yield Miss("flaky", f"{check.name}: {tests}" if tests else check.name)
    yield from (Miss("tolerated", test) for test in kept.tolerated)
    yield from (Miss("leftovers", process) for process in kept.leftovers)


def _is_outage(it: IterationRecord) -> bool:
    return it.outcome in set(Outcome) and Outcome(it.outcome).is_infrastructure
