"""One pass over a run's iterations: sums, per-story facts, and what went almost wrong.

The journal hands out iterations page by page; of each only a few numbers and bounded words are
kept, so a night of ten thousand costs megabytes, not gigabytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from ralphloop.core.effects import SaveLeftovers
from ralphloop.core.model import Circuit, ExitDecision, Outcome, Transition
from ralphloop.core.story_state import is_failed_attempt
from ralphloop.journal.records import IterationRecord
from ralphloop.text.status import Status
from ralphloop.ui.report.values import Cost, NearMiss, Note, Passed
from ralphloop.ui.report.words import Teller

MOST_EXAMPLES = 5
MOST_TAMPERING = 20
_SHORT = 200
_HEX = re.compile(r"[0-9a-f]{7,64}")


@dataclass
class StoryTally:
    """What this run spent on one story."""

    iterations: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    tokens: int = 0
    seconds: float = 0.0
    failed: int = 0  # attempts
    shows: list[str] = field(default_factory=list)  # what `git show` takes for its own commits
    checks: tuple[str, ...] = ()  # names of those that ran last


@dataclass
class Tally:
    """Everything the report needs from the iterations of a run."""

    say: Teller
    commits: Mapping[int, str] = field(default_factory=dict)  # iteration → the commit it made
    working_s: float = 0.0
    checking_s: float = 0.0
    stories: dict[str, StoryTally] = field(default_factory=dict)
    spent: list[Cost] = field(default_factory=list)
    passes: list[Passed] = field(default_factory=list)
    moves: list[Transition] = field(default_factory=list)
    decisions: list[Note] = field(default_factory=list)
    tampering: list[Note] = field(default_factory=list)
    tampering_count: int = 0
    _row: tuple[str, str, bool] = ("", "", False)  # story, HEAD before it, did the agent commit
    _near: dict[str, list[Note]] = field(default_factory=dict)
    _near_counts: Counter[str] = field(default_factory=Counter)

    def see(self, it: IterationRecord) -> None:
        """Take one iteration in; one that is still going on says nothing yet."""
        if it.finished_at is None:
            return
        self._spend(it)
        self._judge(it)
        self._see_commit(it)
        for key, _, rule in _RULES:
            for words in rule(it):
                self._near_counts[key] += 1
                self._keep_example(key, self._note(it, words))
        for finding in it.record.findings:
            self.tampering_count += 1
            if len(self.tampering) < MOST_TAMPERING:
                self.tampering.append(self._note(it, finding))

    def _keep_example(self, key: str, note: Note) -> None:
        found = self._near.setdefault(key, [])
        if len(found) < MOST_EXAMPLES and note.words not in (known.words for known in found):
            found.append(note)

    def near_misses(self) -> tuple[NearMiss, ...]:
        """Those that happened, in the order of the table."""
        return tuple(
            NearMiss(
                key=key, title=title, count=self._near_counts[key], examples=tuple(self._near[key])
            )
            for key, title, _ in _RULES
            if key in self._near
        )

    def _spend(self, it: IterationRecord) -> None:
        story = self.stories.setdefault(it.story or "", StoryTally())
        seconds = it.record.end.duration_s
        story.iterations += 1
        story.cost_usd += it.cost_usd
        story.unpriced += it.unpriced
        story.tokens += it.total_tokens
        story.seconds += seconds
        if it.checks:
            story.checks = tuple(check.name for check in it.checks)
        self.working_s += seconds
        self.checking_s += sum(check.duration_s for check in it.checks)
        self.spent.append(Cost(str(it.n), it.cost_usd, it.total_tokens, it.unpriced))

    def _see_commit(self, it: IterationRecord) -> None:
        """A story's own commit, with those the agent made while it worked on nothing else."""
        story, head, own = self._row
        if story != (it.story or ""):
            story, head, own = it.story or "", it.head, False
        own = own or it.commits > 0
        if commit := self.commits.get(it.n):
            first = f"{head[:10]}.." if own and _HEX.fullmatch(head) else ""
            self.stories[story].shows.append(f"{first}{commit[:10]}")
            head, own = commit, False
        self._row = (story, head, own)

    def _judge(self, it: IterationRecord) -> None:
        verdict, at = it.record.verdict, it.finished_at or it.started_at
        failed = is_failed_attempt(it.record.analysis, passed=verdict.passed)
        failed = failed or (it.status == Status.BLOCKED and not verdict.passed)
        self.stories[it.story or ""].failed += failed and not _is_outage(it)
        if verdict.passed:
            grade = str(verdict.grade or "")
            self.passes.append(
                Passed(at=at, count=len(self.passes) + 1, story=self.say(it.story, 60), grade=grade)
            )
        if moved := it.record.analysis.transition:
            self.moves.append(msgspec.structs.replace(moved, at=moved.at or at))
        if it.status == Status.BLOCKED:
            self.decisions.append(self._note(it, f"waits for a person: {_said(it)}"))
        if it.owes(SaveLeftovers):
            words = "; ".join(verdict.reasons)
            self.decisions.append(self._note(it, f"was set aside, attempt {it.attempt}: {words}"))

    def _note(self, it: IterationRecord, words: object) -> Note:
        return Note(
            words=self.say(words, _SHORT),
            at=it.finished_at,
            iteration=it.n,
            story=self.say(it.story or "", 60),
        )


# --- what counts as a near miss --------------------------------------------------------------


def _false_done(it: IterationRecord) -> Iterator[str]:
    verdict = it.record.verdict
    if it.record.analysis.story_claimed and not verdict.passed and not _is_outage(it):
        yield "claimed, but " + ("; ".join(verdict.reasons) or "it was not so")


def _early_exit(it: IterationRecord) -> Iterator[str]:
    if it.record.analysis.exit_signal and it.decision == ExitDecision.CONTINUE:
        yield "; ".join(it.record.decision.reasons) or "said the project was complete"


def _half_open(it: IterationRecord) -> Iterator[str]:
    moved = it.record.analysis.transition
    if moved is not None and moved.after is Circuit.HALF_OPEN:
        yield moved.reason


def _circles(it: IterationRecord) -> Iterator[str]:
    for pattern in it.record.analysis.stuck:
        yield f"{pattern.name.replace('_', ' ')}: {pattern.detail}"


def _outages(it: IterationRecord) -> Iterator[str]:
    if _is_outage(it) and it.outcome != Outcome.USAGE_LIMIT:
        yield f"{it.outcome}: {_why(it)}"


def _stopped(it: IterationRecord) -> Iterator[str]:
    if it.outcome in (Outcome.TIMEOUT, Outcome.STALLED):
        yield f"{it.outcome}: {_why(it)}"


def _denied(it: IterationRecord) -> Iterator[str]:
    for denial in it.record.response.denials:
        yield f"{denial.tool} {denial.summary}"


def _flaky(it: IterationRecord) -> Iterator[str]:
    for check in it.checks:
        if check.flaky:
            tests = ", ".join(check.failing_tests[:3])
            yield f"{check.name}{': ' + tests if tests else ''}"


_RULES: tuple[tuple[str, str, Callable[[IterationRecord], Iterable[str]]], ...] = (
    ("false_done", "“Done” that was not, caught by the checks", _false_done),
    ("early_exit", "The agent wanted to end the run too early", _early_exit),
    ("half_open", "The circuit went half open", _half_open),
    ("circles", "Going in circles", _circles),
    ("outages", "Starts that came to nothing and were tried again", _outages),
    ("stopped", "Starts that had to be stopped", _stopped),
    ("denied", "Tools the agent was refused", _denied),
    ("flaky", "Flaky checks: red, then green", _flaky),
    ("tolerated", "Tests that were red before and still are", lambda it: it.record.tolerated),
    ("leftovers", "Processes left behind and stopped", lambda it: it.record.leftovers),
)


def _is_outage(it: IterationRecord) -> bool:
    return it.outcome in set(Outcome) and Outcome(it.outcome).is_infrastructure


def _why(it: IterationRecord) -> str:
    return it.record.why_it_ended or "no reason was given"


def _said(it: IterationRecord) -> str:
    block = it.record.analysis.status
    return (block.recommendation if block else "") or "no reason was given"
