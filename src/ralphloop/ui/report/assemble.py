"""`build`: what is recorded of a run becomes one frozen `Report`.  Pure, apart from the reading.

Stories are sorted by what their ending is worth; with what a person should do about them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from ralphloop.core import events
from ralphloop.core.events import LoopEvent
from ralphloop.core.grading import Grade
from ralphloop.core.model import ExitDecision, Transition
from ralphloop.core.planning import ended, ending_of
from ralphloop.core.story_state import Standing
from ralphloop.journal.records import RunRecord, Wait
from ralphloop.night.look import Record
from ralphloop.night.own_commits import OwnCommits
from ralphloop.night.values import Night, StoryLook, next_steps
from ralphloop.text.plain import counted
from ralphloop.ui.report.tally import Account, LaneTally, Tally
from ralphloop.ui.report.values import (
    MOST_SPANS,
    Cost,
    Group,
    NextStep,
    ProofCounts,
    Report,
    ReportNote,
    Rung,
    Series,
    Span,
    Spending,
    StoryLine,
    Teller,
    Times,
)

MOST_DECISIONS = 60
MOST_BARS = 100
MOST_POINTS = 300
MOST_STORY_BARS = 12
MOST_STORIES = 500
MOST_LOOKS = 10
MOST_UNTRIED = 5
ALWAYS = ("verified", "checked", "claimed", "review", "failed", "waiting")  # even with none
_MOST_STEPS = 5
_UNDONE = ("failed", "open")
_TOLD_ALREADY = (ExitDecision.PROJECT_COMPLETE, ExitDecision.BLOCKED)  # by the counts
# In the order a person should look at them.
_GROUPS = (
    ("waiting", "Waiting for you", "?", "Only a person can answer what is asked here."),
    (
        "review",
        "Needs review",
        "!",
        "Green, but a person should look at what was found.",
    ),
    ("failed", "Failed", "✗", "Tried, and not passed."),
    ("claimed", "Only claimed", "~", "The agent says so; no check could prove it."),
    ("checked", "Checked", "✓", "All checks are green; none proves this story in particular."),
    ("verified", "Verified", "✓✓", "Something is red without it and green with it."),
    ("by_hand", "By hand", "☞", "A person marked it as passed."),
    ("open", "Not finished", "○", "Not begun, or not done yet."),
    ("earlier", "Passed before this run", "·", "Nothing was done about them in this run."),
)
_GRADES: dict[str, str] = {
    Grade.NEEDS_REVIEW: "review",
    Grade.BY_HAND: "by_hand",
    Grade.CLAIMED: "claimed",
    Grade.CHECKED: "checked",
    Grade.VERIFIED: "verified",
}
_T = TypeVar("_T")


def build(record: Record, secrets: tuple[str, ...] = ()) -> Report:
    """Everything there is to say about a run."""
    night, run, say = record.night, record.run, Teller(secrets)
    tally = Tally(say, OwnCommits(record.commits))
    for iteration in record.iterations():
        tally.see(iteration)
    told = _Events(record.events(), say)
    waits = record.waits(MOST_SPANS)
    moves = _moves(night, run, tally)
    groups = tuple(_groups(night, tally))
    decisions = _decisions(run, [*tally.decisions, *told.notes], waits, moves, say)
    return Report(
        run=run.id,
        project=say(night.project.root.name, 100),
        branch=say(run.branch, 100),
        agent=f"{night.config.agent.name} {night.config.agent.models}".strip(),
        started_at=run.started_at,
        ended_at=run.ended_at,
        as_of=_last_sign(run),
        decision=run.decision,
        reason=say(run.reason, 500),
        headline=_headline(night, run, groups),
        passed=night.passed,
        total=night.total,
        groups=groups,
        next_steps=tuple(_next_steps(groups, night, say)),
        spending=_spending(night, len(tally.passes)),
        rungs=tuple(_rungs(night, tally)),
        times=_times(night, tally),
        decisions=tuple(decisions[-MOST_DECISIONS:]),
        decisions_left_out=max(0, len(decisions) - MOST_DECISIONS),
        near_misses=tally.near_misses(),
        tampering=tuple(tally.tampering),
        tampering_left_out=tally.tampering_count - len(tally.tampering),
        learnings=tuple(say(words) for words in record.learnings[:MOST_DECISIONS]),
        warnings=(*told.warnings, *_untried(tally)),
        proof=_proof(groups),
        series=_series(tally, moves, waits, told, run),
    )


def _last_sign(run: RunRecord) -> float:
    return run.ended_at or run.last_activity


def _headline(night: Night, run: RunRecord, groups: Iterable[Group]) -> str:
    counts = {group.key: group.count for group in groups}
    stories = f"{night.passed} of {counted(night.total, 'story')} passed"
    parts = [stories if night.total and run.prd_path else "a plain loop"]
    wait = "waits for you" if counts["waiting"] == 1 else "wait for you"
    told = {"waiting": wait, "failed": "failed", "review": "to review"}
    parts += [f"{counts[key]} {words}" for key, words in told.items() if counts[key]]
    if run.ended_at is None:
        parts.append("its process is gone" if night.died else "still running")
    elif (ending := ending_of(run.decision, run.reason)) and run.decision not in _TOLD_ALREADY:
        parts.append(ending.words)
    return ", ".join(parts)


# --- stories ---------------------------------------------------------------------------------


def _groups(night: Night, tally: Tally) -> Iterator[Group]:
    """All groups that have stories, and those a reader always looks for."""
    sorted_in: dict[str, list[StoryLook]] = {key: [] for key, *_ in _GROUPS}
    for look in night.stories:
        sorted_in[_key(look, tally.stories.get(look.story.id))].append(look)
    room, checks = MOST_STORIES, [shlex.join(argv) for argv in night.session.frozen.checks]
    for key, title, mark, meaning in _GROUPS:
        members = sorted_in[key]
        if members or key in ALWAYS:
            shown = tuple(_story(look, key, tally, checks) for look in members[:room])
            room -= len(shown)
            rest = len(members) - len(shown)
            yield Group(key, title, mark, meaning, len(members), shown, rest)


def _key(look: StoryLook, spent: Account | None) -> str:
    """The group of a story, from how it stands and what this run spent on it."""
    if look.standing is Standing.PASSED:
        key = _GRADES.get(look.grade, "claimed")
        return key if spent or key in ("review", "by_hand") else "earlier"
    if look.standing is Standing.BLOCKED:
        return "waiting"
    tried = look.state.attempts or (spent and spent.failed)
    return "failed" if look.standing is Standing.SET_ASIDE or tried else "open"


def _story(look: StoryLook, key: str, tally: Tally, checks: Sequence[str]) -> StoryLine:
    say, story = tally.say, look.story
    spent = tally.stories.get(story.id, Account())
    own = shlex.join(story.verify) if story.verify else "verify"
    proof = (
        own if name == "verify" else next((c for c in checks if _is_named(c, name)), name)
        for name in spent.checks
    )
    open_words = "begun, not done yet" if spent.iterations else "not begun"
    return StoryLine(
        id=say(story.id, 60) or "the prompt",
        title=say(story.title, 200) if story.id else "",
        reason=say(look.state.reason or (open_words if key == "open" else "")),
        attempts=spent.failed,
        iterations=spent.iterations,
        cost_usd=spent.cost_usd,
        unpriced=spent.unpriced,
        tokens=spent.tokens,
        seconds=spent.seconds,
        look=" && ".join(f"git show {commit}" for commit in tally.own.by_story.get(story.id, ())),
        proof=tuple(say(command, 500) for command in proof),
        bring_back=say(look.bring_back, 250) if key == "failed" else "",
        look_at=tuple(say(words, 400) for words in spent.look_at[:MOST_LOOKS]),
        remarks=tuple(say(words, 400) for words in spent.remarks),
        last_lines=tuple(say(words, 200) for words in spent.last_lines if key in _UNDONE),
    )


def _is_named(command: str, name: str) -> bool:
    """A check is named after the beginning of its command line, without the directory."""
    return command.startswith(name) or f"/{name}" in command


def _next_steps(groups: Iterable[Group], night: Night, say: Teller) -> Iterator[NextStep]:
    """What a person should do now, most urgent first."""
    by_key, steps = {group.key: group for group in groups}, list(next_steps(night))
    told = [(step.kind, NextStep(say(step.words), say(step.command))) for step in steps]
    yield from (step for kind, step in told if kind == "answer")
    for line in by_key["review"].stories[:_MOST_STEPS]:
        yield NextStep(f"Review {line.id}: {line.reason}", line.look)
    for line in by_key["failed"].stories[:_MOST_STEPS]:
        if line.bring_back:
            words = f"{line.id} was set aside. To bring its unfinished work back:"
            yield NextStep(words, line.bring_back)
    for line in [one for one in by_key["checked"].stories if one.look_at][:_MOST_STEPS]:
        yield NextStep(f"Look at {line.id}: {line.look_at[0]}", line.look)
    if claimed := by_key["claimed"].count:
        words = f"{counted(claimed, 'story')} {'is' if claimed == 1 else 'are'} only claimed"
        yield NextStep(f"{words}: look at the change, and set checks.commands in ralph.toml.")
    yield from (step for kind, step in told if kind not in ("answer", "review"))


def _proof(groups: Iterable[Group]) -> ProofCounts:
    by_key = {group.key: group for group in groups}
    weaker = [line for key in ("checked", "claimed") for line in by_key[key].stories]
    return ProofCounts(
        proven=by_key["verified"].count,
        not_proven=by_key["checked"].count + by_key["claimed"].count,
        look_at=sum(bool(line.look_at) for line in weaker),
        needs_review=by_key["review"].count,
    )


def _untried(tally: Tally) -> Iterator[str]:
    """What could not be tried, each once."""
    for words, times in tally.untried.most_common(MOST_UNTRIED):
        yield tally.say(f"{words} ({counted(times, 'story')})")


# --- what happened ---------------------------------------------------------------------------


class _Events:
    """The few things only the event stream knows; it may be pruned, then they are missing."""

    def __init__(self, told: Iterable[LoopEvent], say: Teller) -> None:
        self.notes: list[ReportNote] = []
        self.first_circuit = ""
        self.lanes = LaneTally(say)
        warnings: dict[str, None] = {}
        for event in told:
            self.lanes.see(event)
            match event.what:
                case events.RunStarted(circuit=circuit) if not self.first_circuit:
                    self.first_circuit = str(circuit)
                case events.RunStarted():
                    self.notes.append(ReportNote("the run was continued", event.at))
                case events.Preflight(warnings=said):
                    warnings.update((say(words), None) for words in said)
                case events.StoryReturned() as what:
                    words = f"{what.story} went back to lane {what.lane}: {what.reason}"
                    self.notes.append(ReportNote(say(words), event.at))
                case events.LaneLeft() as what:
                    self.notes.append(ReportNote(say(f"{what.story}: {what.reason}"), event.at))
                case events.RequestAnswered() as what:
                    who = "the agent" if what.by_agent else "a person"
                    words = f"{who} asked: {what.kind}; {what.answer}"
                    self.notes.append(ReportNote(say(words), event.at))
        self.warnings = tuple(warnings)[:MOST_DECISIONS]


def _moves(night: Night, run: RunRecord, tally: Tally) -> list[Transition]:
    """The circuit's changes during the run, resets and handing back included, in order."""
    found = {(move.at, move.before, move.after): move for move in tally.moves}
    for entry in night.circuit.history:
        if entry.at is not None and run.started_at <= entry.at <= _last_sign(run):
            found.setdefault((entry.at, entry.before, entry.after), entry)
    return sorted((move for move in found.values() if not move.is_note), key=_at)


def _decisions(
    run: RunRecord, notes: list[ReportNote], waits: list[Wait], moves: list[Transition], say: Teller
) -> list[ReportNote]:
    """Every decision with its reason, in order."""
    for move in moves:
        words = f"circuit {move.before} → {move.after}: {move.reason}"
        notes.append(ReportNote(say(words), move.at))
    notes += [ReportNote(say(f"waited: {wait.reason}"), wait.started_at) for wait in waits]
    notes.sort(key=_at)
    if run.decision:
        words = f"the run ended: {ended(run.decision, run.reason)}"
        notes.append(ReportNote(say(words), run.ended_at))
    return notes


def _at(item: ReportNote | Transition) -> float:
    return item.at or 0.0


# --- numbers ---------------------------------------------------------------------------------


def _spending(night: Night, passes: int) -> Spending:
    totals, most = night.totals, night.limits.max_cost_usd
    return Spending(
        totals=totals,
        total_tokens=totals.total_tokens,
        fresh_tokens=totals.fresh_tokens,
        max_tokens=night.limits.max_tokens,
        max_cost_usd=most,
        cost_share=totals.cost_usd / most if most and not totals.unpriced else None,
        max_iterations=night.limits.max_iterations,
        quota=night.quota,
        cost_per_pass_usd=totals.cost_usd / passes if passes and not totals.unpriced else None,
    )


def _rungs(night: Night, tally: Tally) -> Iterator[Rung]:
    """Who passed what for how much, from below; one agent alone needs no telling."""
    agent = night.config.agent
    ladder = [f"{name} {model}".rstrip() for name, model in agent.rungs()]
    if not agent.escalate and len(tally.rungs) < 2:
        return
    for name in sorted(tally.rungs, key=lambda name: ([*ladder, name].index(name), name)):
        rung = tally.rungs[name]
        yield Rung(tally.say(name, 60), rung.passed, rung.iterations, rung.cost_usd, rung.unpriced)


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


def _series(
    tally: Tally, moves: list[Transition], waits: list[Wait], told: _Events, run: RunRecord
) -> Series:
    say, end = tally.say, _last_sign(run)
    costs = [
        Cost(say(story, 60) or "the prompt", spent.cost_usd, spent.tokens, spent.unpriced)
        for story, spent in tally.stories.items()
    ]
    costs.sort(key=lambda cost: (-cost.cost_usd, -cost.tokens))
    rest = costs[MOST_STORY_BARS:]
    circuit = _spans(moves, told.first_circuit or "CLOSED", run.started_at, end, say)
    return Series(
        passed=tuple(part[-1] for part in _parts(tally.passes, MOST_POINTS)),
        # Neighbours summed up, so that a picture has no more bars than an eye can see.
        iterations=tuple(_sum(part) for part in _parts(tally.spent, MOST_BARS)),
        stories=tuple(costs[:MOST_STORY_BARS]),
        other_stories=_sum(rest, f"{len(rest)} others") if rest else None,
        circuit=tuple(circuit[-MOST_SPANS:]),
        circuit_changes=len(moves),
        waits=tuple(
            Span(
                wait.kind,
                say(wait.reason),
                wait.started_at,
                wait.ended_at or max(end, wait.started_at),
            )
            for wait in waits
        ),
        lanes=tuple(told.lanes.spans[-MOST_SPANS:]),
    )


def _spans(
    moves: list[Transition], first: str, start: float, end: float, say: Teller
) -> list[Span]:
    """The circuit's states one after the other."""
    found: list[Span] = []
    state, since, reason = first, start, "as it was when the run began"
    for move in moves:
        found.append(Span(state, reason, since, _at(move)))
        state, since, reason = str(move.after), _at(move), say(move.reason)
    return [*found, Span(state, reason, since, max(since, end))]


def _sum(costs: Sequence[Cost], name: str = "") -> Cost:
    """Several as one, called after the first and the last of them."""
    names = dict.fromkeys((costs[0].name, costs[-1].name))
    return Cost(
        name or "–".join(names),
        sum(cost.cost_usd for cost in costs),
        sum(cost.tokens for cost in costs),
        sum(cost.unpriced for cost in costs),
    )


def _parts(items: Sequence[_T], most: int) -> list[Sequence[_T]]:
    """Neighbours in at most so many parts."""
    size = -(-len(items) // most) or 1
    return [items[start : start + size] for start in range(0, len(items), size)]
