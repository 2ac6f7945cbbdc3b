"""`build`: what is recorded of a run becomes one frozen `Report`.  Pure, apart from the reading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ralphloop.core import events
from ralphloop.core.endings import ENDINGS
from ralphloop.core.events import LoopEvent
from ralphloop.core.model import Circuit, ExitDecision, Transition
from ralphloop.journal.records import RunRecord, Wait
from ralphloop.night.past import Record
from ralphloop.night.values import Night
from ralphloop.text.plain import counted
from ralphloop.ui.report.groups import Librarian, next_steps
from ralphloop.ui.report.tally import Tally
from ralphloop.ui.report.values import (
    MOST_SPANS,
    Cost,
    Group,
    Note,
    Report,
    Series,
    Span,
    Spending,
    Times,
)
from ralphloop.ui.report.words import Teller, thinned

MOST_DECISIONS = 60
MOST_BARS = 100
MOST_POINTS = 300
MOST_STORY_BARS = 12
_WORST = [str(state) for state in Circuit]
_TOLD_ALREADY = (ExitDecision.PROJECT_COMPLETE, ExitDecision.BLOCKED)  # by the counts


def build(record: Record, secrets: tuple[str, ...] = ()) -> Report:
    """Everything there is to say about a run."""
    night, run, say = record.night, record.run, Teller(secrets)
    tally = Tally(say, record.commits)
    for iteration in record.iterations():
        tally.see(iteration)
    events = _Events(record.events(), say)
    waits = record.waits(MOST_SPANS)
    moves = _moves(night, run, tally)
    groups = Librarian(say, tally, night).groups()
    decisions = _decisions(run, tally, events, waits, moves)
    return Report(
        run=run.id,
        project=say(night.project.root.name, 100),
        branch=say(run.branch, 100),
        agent=f"{night.config.agent.name} {night.config.agent.model}".strip(),
        started_at=run.started_at,
        ended_at=run.ended_at,
        as_of=_last_sign(run),
        decision=run.decision,
        reason=say(run.reason, 500),
        headline=_headline(night, run, groups),
        passed=night.passed,
        total=night.total,
        groups=groups,
        next_steps=next_steps(groups, run.decision),
        spending=_spending(night, len(tally.passes)),
        times=_times(night, tally),
        decisions=tuple(decisions[-MOST_DECISIONS:]),
        decisions_left_out=max(0, len(decisions) - MOST_DECISIONS),
        near_misses=tally.near_misses(),
        tampering=tuple(tally.tampering),
        tampering_left_out=tally.tampering_count - len(tally.tampering),
        learnings=tuple(say(words) for words in record.learnings[:MOST_DECISIONS]),
        warnings=events.warnings,
        series=_series(tally, moves, waits, events.first_circuit, run),
    )


def _series(
    tally: Tally, moves: list[Transition], waits: list[Wait], first_circuit: str, run: RunRecord
) -> Series:
    costs, end = _story_costs(tally), _last_sign(run)
    rest = costs[MOST_STORY_BARS:]
    return Series(
        passed=thinned(tally.passes, MOST_POINTS),
        iterations=tuple(_bars(tally.spent)),
        stories=tuple(costs[:MOST_STORY_BARS]),
        other_stories=_sum(f"{len(rest)} others", rest) if rest else None,
        circuit=tuple(_spans(moves, first_circuit, run.started_at, end, tally.say)),
        circuit_changes=len(moves),
        waits=tuple(_wait(wait, end, tally.say) for wait in waits),
    )


def _last_sign(run: RunRecord) -> float:
    return run.ended_at or run.last_activity


class _Events:
    """The few things only the event stream knows; it may be pruned, then they are missing."""

    def __init__(self, told: Iterable[LoopEvent], say: Teller) -> None:
        self.notes: list[Note] = []
        self.first_circuit = "CLOSED"
        warnings: dict[str, None] = {}
        begun = False
        for event in told:
            match event.what:
                case events.RunStarted(circuit=circuit) if not begun:
                    self.first_circuit, begun = str(circuit), True
                case events.RunStarted():
                    self.notes.append(Note(words="the run was continued", at=event.at))
                case events.Preflight():
                    warnings.update((say(words), None) for words in event.what.warnings)
                case events.RequestAnswered() as what:
                    who = "the agent" if what.by_agent else "a person"
                    words = f"{who} asked: {what.kind}; {what.answer}"
                    self.notes.append(Note(words=say(words), at=event.at))
        self.warnings = tuple(warnings)[:MOST_DECISIONS]


def _moves(night: Night, run: RunRecord, tally: Tally) -> list[Transition]:
    """The circuit's changes during the run, resets and handing back included, in order."""
    end = _last_sign(run)
    found = {(move.at, move.before, move.after): move for move in tally.moves}
    for entry in night.circuit.history:
        if entry.at is not None and run.started_at <= entry.at <= end:
            found.setdefault((entry.at, entry.before, entry.after), entry)
    return sorted((move for move in found.values() if not move.is_note), key=_at)


def _decisions(
    run: RunRecord, tally: Tally, events: _Events, waits: list[Wait], moves: list[Transition]
) -> list[Note]:
    found, say = [*tally.decisions, *events.notes], tally.say
    for move in moves:
        words = f"circuit {move.before} → {move.after}: {move.reason}"
        found.append(Note(words=say(words), at=move.at))
    for wait in waits:
        found.append(Note(words=say(f"waited: {wait.reason}"), at=wait.started_at))
    found.sort(key=_at)
    if run.decision:
        words = f"ended the run: {run.decision}{': ' + run.reason if run.reason else ''}"
        found.append(Note(words=say(words), at=run.ended_at))
    return found


def _at(item: Note | Transition) -> float:
    return item.at or 0.0


def _headline(night: Night, run: RunRecord, groups: tuple[Group, ...]) -> str:
    counts = {group.key: group.count for group in groups}
    stories = f"{night.passed} of {counted(night.total, 'story')} passed"
    parts = [stories if night.total and run.prd_path else "a plain loop"]
    if waiting := counts["waiting"]:
        parts.append(f"{waiting} {'waits' if waiting == 1 else 'wait'} for you")
    if failed := counts["failed"]:
        parts.append(f"{failed} failed")
    if review := counts["review"]:
        parts.append(f"{review} to review")
    if run.ended_at is None:
        parts.append("its process is gone" if night.died else "still running")
    elif run.decision in ENDINGS and run.decision not in _TOLD_ALREADY:
        parts.append(ENDINGS[run.decision].words)
    return ", ".join(parts)


def _spending(night: Night, passes: int) -> Spending:
    totals, most = night.totals, night.limits.max_cost_usd
    return Spending(
        totals=totals,
        total_tokens=totals.total_tokens,
        max_cost_usd=most,
        cost_share=totals.cost_usd / most if most and not totals.unpriced else None,
        max_iterations=night.limits.max_iterations,
        cost_per_pass_usd=totals.cost_usd / passes if passes and not totals.unpriced else None,
    )


def _times(night: Night, tally: Tally) -> Times:
    total, waiting = night.active_s, night.totals.waited_s
    return Times(
        working_s=tally.working_s,
        checking_s=tally.checking_s,
        waiting_s=waiting,
        other_s=max(0.0, total - waiting - tally.working_s - tally.checking_s),
        total_s=total,
        max_s=night.limits.max_time,
    )


def _bars(spent: list[Cost]) -> Iterator[Cost]:
    """Neighbouring iterations summed up, so that a picture has no more bars than an eye can see."""
    size = -(-len(spent) // MOST_BARS) or 1
    for start in range(0, len(spent), size):
        part = spent[start : start + size]
        name = part[0].name if len(part) == 1 else f"{part[0].name}–{part[-1].name}"
        yield _sum(name, part)


def _story_costs(tally: Tally) -> list[Cost]:
    """What each story cost, the most expensive first."""
    costs = [
        Cost(tally.say(story, 60) or "the prompt", spent.cost_usd, spent.tokens, spent.unpriced)
        for story, spent in tally.stories.items()
    ]
    return sorted(costs, key=lambda cost: (-cost.cost_usd, -cost.tokens))


def _sum(name: str, costs: list[Cost]) -> Cost:
    return Cost(
        name,
        sum(cost.cost_usd for cost in costs),
        sum(cost.tokens for cost in costs),
        sum(cost.unpriced for cost in costs),
    )


def _spans(
    moves: list[Transition], first: str, start: float, end: float, say: Teller
) -> list[Span]:
    """The circuit's states one after the other; of too many, neighbours as one, the worst shown."""
    found: list[Span] = []
    state, since, reason = first, start, "as it was when the run began"
    for move in moves:
        found.append(Span(state, reason, since, _at(move)))
        state, since, reason = str(move.after), _at(move), say(move.reason)
    found.append(Span(state, reason, since, max(since, end)))
    size = -(-len(found) // MOST_SPANS)
    if size == 1:
        return found
    parts = [found[at : at + size] for at in range(0, len(found), size)]
    return [
        Span(
            max((span.kind for span in part), key=_WORST.index),
            f"the worst of {len(part)} states",
            part[0].start,
            part[-1].end,
        )
        for part in parts
    ]


def _wait(wait: Wait, end: float, say: Teller) -> Span:
    over = wait.ended_at if wait.ended_at is not None else max(end, wait.started_at)
    return Span(wait.kind, say(wait.reason), wait.started_at, over)
