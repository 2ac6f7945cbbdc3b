"""One pass over a run's iterations: sums, per-story facts, and what went almost wrong.

The journal hands out iterations page by page; of each only a few numbers and bounded words are
kept, so a night of ten thousand costs megabytes, not gigabytes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from ralphloop.core import events
from ralphloop.core.events import LoopEvent
from ralphloop.core.iteration import SaveLeftovers
from ralphloop.core.model import CheckStatus, Circuit, ExitDecision, Outcome, Transition
from ralphloop.core.story_state import is_failed_attempt
from ralphloop.journal.records import IterationRecord
from ralphloop.night.own_commits import OwnCommits
from ralphloop.night.values import ended_words
from ralphloop.text.plain import clean
from ralphloop.text.status_block import Status
from ralphloop.ui.report.values import Cost, LaneSpan, NearMiss, Passed, ReportNote, Teller

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
    "outages": "Starts that came to nothing and were tried again",
    "stopped": "Starts that had to be stopped",
    "denied": "Tools the agent was refused",
    "flaky": "Flaky checks: red, then green",
    "tolerated": "Tests that were red before and still are",
    "leftovers": "Processes left behind and stopped",
}


@dataclass
class Account:
    """What this run spent on one story, or with one agent and its model."""

    iterations: int = 0
    passed: int = 0
    failed: int = 0  # attempts
    cost_usd: float = 0.0
    unpriced: int = 0
    tokens: int = 0
    seconds: float = 0.0
    checks: tuple[str, ...] = ()  # names of those that ran last
    look_at: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    last_lines: tuple[str, ...] = ()  # of what failed last, else of the last words


@dataclass
class Tally:
    """Everything the report needs from the iterations of a run."""

    say: Teller
    own: OwnCommits = field(default_factory=lambda: OwnCommits({}))
    working_s: float = 0.0
    checking_s: float = 0.0
    stories: dict[str, Account] = field(default_factory=lambda: defaultdict(Account))
    rungs: dict[str, Account] = field(default_factory=lambda: defaultdict(Account))
    spent: list[Cost] = field(default_factory=list)
    passes: list[Passed] = field(default_factory=list)
    moves: list[Transition] = field(default_factory=list)
    decisions: list[ReportNote] = field(default_factory=list)
    tampering: list[ReportNote] = field(default_factory=list)
    tampering_count: int = 0
    untried: Counter[str] = field(default_factory=Counter)  # what could not be tried, and how often
    _near: dict[str, list[ReportNote]] = field(default_factory=lambda: defaultdict(list))
    _near_counts: Counter[str] = field(default_factory=Counter)

    def see(self, it: IterationRecord) -> None:
        """Take one iteration in; one that is still going on says nothing yet."""
        if it.finished_at is None:
            return
        self._spend(it)
        self._judge(it, it.finished_at)
        self.own.see(it)
        for key, words in _near_misses(it):
            self._near_counts[key] += 1
            note, found = self._note(it, words), self._near[key]
            if len(found) < _MOST_EXAMPLES and note.words not in (known.words for known in found):
                found.append(note)
        self.tampering_count += len(it.record.findings)
        room = _MOST_TAMPERING - len(self.tampering)
        self.tampering += [self._note(it, words) for words in it.record.findings[:room]]

    def near_misses(self) -> tuple[NearMiss, ...]:
        """Those that happened."""
        return tuple(
            NearMiss(key, title, self._near_counts[key], tuple(self._near[key]))
            for key, title in _NEAR_MISSES.items()
            if key in self._near
        )

    def _spend(self, it: IterationRecord) -> None:
        seconds = it.record.end.duration_s
        for account in (self.stories[it.story or ""], self.rungs[it.record.by]):
            account.iterations += 1
            account.passed += it.record.verdict.passed
            account.cost_usd += it.cost_usd
            account.unpriced += it.unpriced
            account.tokens += it.total_tokens
            account.seconds += seconds
            account.checks = tuple(check.name for check in it.checks) or account.checks
        self.working_s += seconds
        self.checking_s += sum(check.duration_s for check in it.checks)
        self.spent.append(Cost(str(it.n), it.cost_usd, it.total_tokens, it.unpriced))

    def _judge(self, it: IterationRecord, at: float) -> None:
        verdict, analysis = it.record.verdict, it.record.analysis
        is_blocked = it.status == Status.BLOCKED
        failed = is_failed_attempt(analysis, passed=verdict.passed)
        failed = failed or (is_blocked and not verdict.passed)
        self.stories[it.story or ""].failed += failed and not _is_outage(it)
        if not _is_outage(it):
            self.stories[it.story or ""].last_lines = () if verdict.passed else _last_lines(it)
        if verdict.passed:
            name, grade = self.say(it.story, 60), str(verdict.grade or "")
            self._proof(it)
            self.passes.append(Passed(at, len(self.passes) + 1, name, grade))
        if moved := analysis.transition:
            self.moves.append(msgspec.structs.replace(moved, at=moved.at or at))
        if is_blocked:
            asked = analysis.status.recommendation if analysis.status else ""
            self.decisions.append(self._note(it, f"waits for a person: {asked or _NO_REASON}"))
        if it.owes(SaveLeftovers):
            words = "; ".join(verdict.reasons)
            self.decisions.append(self._note(it, f"was set aside, attempt {it.attempt}: {words}"))

    def _proof(self, it: IterationRecord) -> None:
        """What was seen of the tests of a story that passed."""
        trial, story = it.record.evidence.trial, self.stories[it.story or ""]
        story.look_at = it.record.verdict.look_at
        story.remarks = trial.remarks if trial else ()
        self.untried.update(trial.untried if trial else ())

    def _note(self, it: IterationRecord, words: str) -> ReportNote:
        return ReportNote(
            self.say(words, _SHORT), it.finished_at, it.n, self.say(it.story or "", 60)
        )


def _near_misses(it: IterationRecord) -> Iterator[tuple[str, str]]:
    """What went almost wrong: which kind, and how."""
    kept, analysis, verdict = it.record, it.record.analysis, it.record.verdict
    moved, why, how = analysis.transition, kept.why_it_ended or _NO_REASON, ended_words(it)
    ended = why if why.startswith(how) else f"{how}: {why}"
    if analysis.story_claimed and not verdict.passed and not _is_outage(it):
        yield "false_done", "claimed, but " + ("; ".join(verdict.reasons) or "it was not so")
    if analysis.exit_signal and it.decision == ExitDecision.CONTINUE:
        yield "early_exit", "; ".join(kept.decision.reasons) or "said the project was complete"
    if moved is not None and moved.after is Circuit.HALF_OPEN:
        yield "half_open", moved.reason
    for pattern in analysis.stuck:
        yield "circles", f"{pattern.name.replace('_', ' ')}: {pattern.detail}"
    if _is_outage(it) and it.outcome != Outcome.USAGE_LIMIT:
        yield "outages", ended
    if it.outcome in (Outcome.TIMEOUT, Outcome.STALLED):
        yield "stopped", ended
    for denial in kept.response.denials:
        yield "denied", f"{denial.tool} {denial.summary}"
    for check in it.checks:
        if check.flaky:
            tests = ", ".join(check.failing_tests[:3])
            yield "flaky", f"{check.name}{': ' + tests if tests else ''}"
    yield from (("tolerated", test) for test in kept.tolerated)
    yield from (("leftovers", process) for process in kept.leftovers)


def _last_lines(it: IterationRecord) -> tuple[str, ...]:
    """The end of the output of a check that failed, else of what the agent said."""
    failed = [check.output_tail for check in it.checks if check.status is CheckStatus.FAILED]
    words = failed[-1] if failed else (it.record.response.final_text or "").split(_BLOCK)[0]
    lines = (line.rstrip() for line in clean(words[-_MOST_OUTPUT:]).splitlines())
    return tuple(line for line in lines if line.strip(" -=_"))[-_MOST_EXAMPLES:]


def _is_outage(it: IterationRecord) -> bool:
    return it.outcome in set(Outcome) and Outcome(it.outcome).is_infrastructure


class LaneTally:
    """Who was in which lane, when it came to land, and what went back."""

    def __init__(self, say: Teller) -> None:
        self.spans: list[LaneSpan] = []
        self._say = say
        self._open: dict[int | None, tuple[events.IterationStarted, float]] = {}
        self._queued: dict[int | None, float] = {}
        self._landed = 0.0  # when the landing tree was free again

    def see(self, event: LoopEvent) -> None:
        match event.what:
            case events.IterationStarted() as what if what.lane:
                self._open[event.iteration] = (what, event.at)
            case events.Landing():
                self._queued[event.iteration] = event.at
            case events.IterationFinished() if event.iteration in self._open:
                self._finished(event.iteration, event.at)
            case events.StoryReturned() as what:
                self._add("returned", f"{what.story} went back: {what.reason}", event.at, what.lane)

    def _finished(self, number: int | None, end: float) -> None:
        what, start = self._open.pop(number)
        queued = self._queued.pop(number, end)
        turn = min(max(queued, self._landed), end)
        self._add("working", f"{what.story}, iteration {number}", start, what.lane, queued)
        self._add("queued", f"{what.story} waited for landing", queued, what.lane, turn)
        self._add("landing", f"{what.story} was landing", turn, what.lane, end)
        self._landed = end if queued < end else self._landed

    def _add(self, kind: str, words: str, start: float, lane: int, end: float = 0.0) -> None:
        if end - start >= 1 or kind in ("working", "returned"):
            self.spans.append(LaneSpan(kind, self._say(words), start, max(start, end), lane))
