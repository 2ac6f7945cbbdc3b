"""`build`: what is recorded of a run becomes one frozen `Report`.  Pure, apart from the reading."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import asdict

from ralphloop.core.grading import Grade
from ralphloop.core.model import ExitDecision, Transition
from ralphloop.core.planning import decided, ended, ending_of
from ralphloop.core.run_state import Standing
from ralphloop.journal.records import RunRecord, Wait
from ralphloop.night.look import RecordedRun, own_commits
from ralphloop.night.values import SENT_BACK_SINCE, Night, StoryLook, next_steps
from ralphloop.text.plain import agreeing, counted, some
from ralphloop.text.remarks import summary_of
from ralphloop.ui.report.tally import Account, Tally, time_spent
from ralphloop.ui.report.values import (
    MOST_SPANS,
    Group,
    NextStep,
    Report,
    ReportNote,
    Series,
    Span,
    Spending,
    StoryLine,
    Teller,
    Used,
    UsedBy,
)

MOST_DECISIONS = 60
MOST_BARS = 100
MOST_POINTS = 300
MOST_STORY_BARS = 12
MOST_STORIES = 500
MOST_LOOKS = 10
MOST_UNTRIED = 5
MOST_PROPOSED = 10
MOST_MACHINES = 50
MOST_SAID = 500
ALWAYS = ("verified", "checked", "claimed", "review", "failed", "waiting")  # even with none
_MOST_STEPS = 5
_UNDONE = ("failed", "open")
_BEGUN = ("waiting", "open")  # what lies there is theirs; of one set aside it is saved
_MOST_CHANGED = 5
_EARLIER = "earlier"
_TOLD_ALREADY = (ExitDecision.PROJECT_COMPLETE, ExitDecision.BLOCKED)  # by the counts
# In the order a person should look at them.
_GROUPS = {  # title, mark, meaning
    "waiting": ("Waiting for you", "?", "Only a person can answer what is asked here."),
    "review": ("Needs review", "!", "Green, but a person should look at what was found."),
    "failed": ("Failed", "✗", "Tried, and not passed."),
    "claimed": ("Only claimed", "~", "The agent says so; no check could prove it."),
    "checked": ("Checked", "✓", "All checks are green; none proves this story in particular."),
    "verified": ("Verified", "✓✓", "Something fails without it and passes with it."),
    "accepted": ("Accepted", "✓", "It needed review; a person looked at it and took it."),
    "sent_back": ("Sent back since", "↩", "It passed in this run; a person sent it back later."),
    "by_hand": ("By hand", "☞", "A person marked it as passed."),
    "open": ("Not finished", "○", "Not begun, or not done yet."),
    "earlier": ("Passed before this run", "·", "Nothing was done about them in this run."),
}
_GRADES: dict[str, str] = {  # else as it is
    Grade.NEEDS_REVIEW: "review",
    Grade.BY_HAND: "by_hand",
    SENT_BACK_SINCE: "sent_back",
}
Groups = Mapping[str, Group]
_T = TypeVar("_T")


def build(record: RecordedRun, secrets: tuple[str, ...] = ()) -> Report:
    night = record.night
    run = record.run
    say = Teller(secrets)
    every = record.journal.every_iteration(run.id, brief=True)
    tally = Tally(say, own_commits(every, record.commits), in_lanes=night.book is not None)
    for iteration in record.iterations():
        tally.see(iteration)
    for event in record.events():
        tally.hear(event)
    as_of = run.ended_at or run.last_activity
    waits = record.journal.waits(run.id, MOST_SPANS)[::-1]
    moves = _moves(record, tally, as_of)
    groups = {group.key: group for group in _groups(night, tally)}
    decisions = _decisions(run, tally, waits, moves)
    untried = tally.untried.most_common(MOST_UNTRIED)
    return Report(
        run=run.id,
        project=say(night.project.root.name, 100),
        branch=say(run.branch, 100),
        agent=f"{night.config.agent.name} {night.config.agent.models}".strip(),
        started_at=run.started_at,
        ended_at=run.ended_at,
        as_of=as_of,
        decision=run.decision,
        reason=say(run.reason, 500),
        headline=_headline(night, run, groups),
        passed=night.passed,
        total=night.total,
        groups=tuple(groups.values()),
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
        warnings=(
            *list(tally.warnings)[:MOST_DECISIONS],
            *(say(f"{words} ({counted(times, 'story')})") for words, times in untried),
        ),
        proposed=tuple(
            say(f"{one.id}: {one.text} ({one.provenance})", 500)
            for one in night.proposals[:MOST_PROPOSED]
        ),
        machines=tuple(
            tally.machines[name].of(say(name, 60))
            for name in sorted(tally.machines)[:MOST_MACHINES]
        ),
        proof=_proof(groups),
        series=_series(tally, moves, waits, run.started_at, as_of),
    )


def _headline(night: Night, run: RunRecord, groups: Groups) -> str:
    stories = f"{night.passed} of {counted(night.total, 'story')} passed"
    parts = [stories if night.total and run.prd_path else "a plain loop"]
    wait = agreeing(groups["waiting"].count, "waits")
    told = {"waiting": f"{wait} for you", "failed": "failed", "review": "to review"}
    parts += [f"{groups[key].count} {words}" for key, words in told.items() if groups[key].count]
    if run.ended_at is None:
        parts.append("its process is gone" if night.died else "still running")
    elif (ending := ending_of(run.decision, run.used_up)) and run.decision not in _TOLD_ALREADY:
        parts.append(ending.words)
    return ", ".join(parts)


def _groups(night: Night, tally: Tally) -> Iterator[Group]:
    """All groups that have stories, and those a reader always looks for."""
    sorted_in: dict[str, list[StoryLook]] = {key: [] for key in _GROUPS}
    for look in night.stories:
        spent = tally.stories.get(look.story.id)
        key = "open"
        if look.standing is Standing.PASSED:
            key = _GRADES.get(look.grade, look.grade)
            key = key if key in _GROUPS else "claimed"
            key = key if spent or key in ("review", "accepted", "by_hand") else "earlier"
        elif look.standing is Standing.BLOCKED:
            key = "waiting"
        elif (
            look.standing is Standing.SET_ASIDE
            or look.state.attempt.failed
            or (spent and spent.failed)
        ):
            key = "failed"
        sorted_in[key].append(look)
    room = MOST_STORIES
    checks = [shlex.join(argv) for argv in night.session.baseline.checks]
    for key, members in sorted_in.items():
        if members or key in ALWAYS:
            members.sort(key=lambda look: not look.coverage.has_gap)  # the doubtful ones first
            shown = tuple(_story(look, key, tally, checks) for look in members[:room])
            room -= len(shown)
            rest = len(members) - len(shown)
            yield Group(key, *_GROUPS[key], len(members), shown, rest)


def _story(look: StoryLook, key: str, tally: Tally, checks: Sequence[str]) -> StoryLine:
    say = tally.say
    story = look.story
    spent = tally.stories.get(story.id, Account())
    own = shlex.join(story.verify) if story.verify else "verify"
    proof: list[str] = []
    for name in spent.checks:
        # It is called like the beginning of its command line, without the directory.
        command = next((c for c in checks if c.startswith(name) or f"/{name}" in c), name)
        proof.append(own if name == "verify" else command)
    open_words = "begun, not done yet" if spent.used.iterations else "not begun"
    return StoryLine(
        id=say(story.id, 60) or "the prompt",
        title=say(story.title, 200) if story.id else "",
        reason=say(look.state.reason or (open_words if key == "open" else "")),
        attempts=spent.failed,
        look=" && ".join(f"git show {commit}" for commit in tally.own.get(story.id, ())),
        proof=tuple(say(command, 500) for command in proof),
        bring_back=say(look.bring_back, 250) if key == "failed" else "",
        look_at=tuple(say(words, 400) for words in spent.look_at[:MOST_LOOKS]),
        remarks=tuple(say(words, 400) for words in spent.remarks),
        gap=look.coverage.words if look.coverage.has_gap and key != _EARLIER else "",
        criteria=tuple(
            say(f"{one.criterion} ({one.words})", 400)
            for one in look.state.proof.criteria
            if key != _EARLIER
        ),
        last_lines=tuple(say(words, 200) for words in spent.last_lines if key in _UNDONE),
        # Of what passed before this run the report of its own run says the rest.
        said=""
        if key == _EARLIER
        else say(summary_of(look.state.notes.said, MOST_SAID), MOST_SAID),
        doubts=tuple(say(words, 400) for words in look.state.notes.doubted),
        accepted=look.is_accepted,
        changed=say(some(look.state.notes.changed, _MOST_CHANGED), 400) if key in _BEGUN else "",
        machines=tuple(say(name, 60) for name in spent.machines),
        **asdict(spent.used),
    )


def _next_steps(groups: Groups, night: Night, say: Teller) -> Iterator[NextStep]:
    told = [(one.kind, NextStep(say(one.words), say(one.command))) for one in next_steps(night)]
    yield from (step for kind, step in told if kind == "answer")
    for line in groups["review"].stories[:_MOST_STEPS]:
        yield NextStep(f"Review {line.id}: {line.reason}", line.look)
    if not groups["review"].count:
        yield from (step for kind, step in told if kind == "review")
    for line in groups["failed"].stories[:_MOST_STEPS]:
        if line.bring_back:
            words = f"{line.id} was set aside. To bring its unfinished work back:"
            yield NextStep(words, line.bring_back)
    unseen = [one for one in groups["checked"].stories if one.look_at and not one.accepted]
    for line in unseen[:_MOST_STEPS]:
        yield NextStep(f"Look at {line.id}: {line.look_at[0]}", line.look)
    accepted = sum(line.accepted for line in groups["claimed"].stories)
    if claimed := groups["claimed"].count - accepted:
        words = f"{counted(claimed, 'story', 'is')} only claimed: look at the change"
        yield NextStep(f"{words}, and set checks.commands in ralph.toml.")
    yield from (step for kind, step in told if kind not in ("answer", "review"))


def _proof(groups: Groups) -> dict[str, int]:
    """The stories that passed, by what there is to do about them."""
    weaker = [groups["checked"], groups["claimed"]]
    unseen = [line for group in weaker for line in group.stories if not line.accepted]
    return {
        "proven": groups["verified"].count,
        "not_proven": sum(group.count for group in weaker),
        "look_at": sum(bool(line.look_at) for line in unseen),
        "needs_review": groups["review"].count,
    }


def _moves(record: RecordedRun, tally: Tally, as_of: float) -> list[Transition]:
    """The circuit's changes during the run, resets and handing back included, in order."""
    found = {(move.at, move.before, move.after): move for move in tally.moves}
    for entry in record.night.circuit.history:
        if entry.at is not None and record.run.started_at <= entry.at <= as_of:
            found.setdefault((entry.at, entry.before, entry.after), entry)
    return sorted((move for move in found.values() if not move.is_note), key=_at)


def _decisions(
    run: RunRecord, tally: Tally, waits: list[Wait], moves: list[Transition]
) -> list[ReportNote]:
    told = [(f"circuit {move.before} → {move.after}: {move.reason}", move.at) for move in moves]
    told += [(f"waited: {wait.reason}", wait.started_at) for wait in waits]
    notes = [*tally.notes, *(ReportNote(tally.say(words), at) for words, at in told)]
    notes.sort(key=_at)
    if run.decision == ExitDecision.BLOCKED:  # who waits and for what was told
        words = f"the run ended: {decided(run.decision)}"
        notes.append(ReportNote(tally.say(words), run.ended_at))
    elif run.decision:
        words = f"the run ended: {ended(run.decision, run.reason, run.used_up)}"
        notes.append(ReportNote(tally.say(words), run.ended_at))
    return notes


def _at(item: ReportNote | Transition) -> float:
    return item.at or 0.0


def _spending(night: Night, passes: int) -> Spending:
    totals = night.totals
    most = night.limits.max_cost_usd
    return Spending(
        totals=totals,
        total_tokens=totals.total_tokens,
        fresh_tokens=totals.fresh_tokens,
        max_tokens=night.limits.max_tokens,
        max_cost_usd=most,
        cost_share=totals.cost_usd / most if most and not totals.unpriced else None,
        max_iterations=night.limits.max_iterations,
        unanswered=max(0, totals.starts - totals.iterations - len(night.flying)),
        quota=night.quota,
        cost_per_pass_usd=totals.cost_usd / passes if passes and not totals.unpriced else None,
    )


def _rungs(night: Night, tally: Tally) -> Iterator[UsedBy]:
    """Who passed what for how much, from below; one agent alone needs no telling."""
    agent = night.config.agent
    ladder = [f"{name} {model}".rstrip() for name, model in agent.rungs()]
    if agent.escalate or len(tally.rungs) > 1:
        for name in sorted(tally.rungs, key=lambda name: ([*ladder, name].index(name), name)):
            yield tally.rungs[name].of(tally.say(name, 60))


def _times(night: Night, tally: Tally) -> dict[str, float]:
    """Where the time went; the parts are the whole, whatever went on at once."""
    total = night.active_s
    left = total
    times = {}
    for kind, seconds in (*time_spent(tally.stretches).items(), ("waiting", night.totals.waited_s)):
        part = min(seconds, left)
        left -= part
        times[f"{kind}_s"] = part
    return {**times, "other_s": left, "total_s": total, "max_s": night.limits.max_time}


def _series(
    tally: Tally, moves: list[Transition], waits: list[Wait], start: float, end: float
) -> Series:
    say = tally.say
    costs = [one.used.of(say(name, 60) or "the prompt") for name, one in tally.stories.items()]
    costs.sort(key=lambda cost: (-cost.cost_usd, -cost.tokens))
    rest = costs[MOST_STORY_BARS:]
    circuit: list[Span] = []
    state = tally.first_circuit or "CLOSED"
    since = start
    reason = "as it was when the run began"
    for move in moves:
        circuit.append(Span(state, reason, since, _at(move)))
        state = str(move.after)
        since = _at(move)
        reason = say(move.reason)
    circuit.append(Span(state, reason, since, max(since, end)))
    until = [wait.ended_at or max(end, wait.started_at) for wait in waits]
    return Series(
        passed=tuple(part[-1] for part in _parts(tally.passes, MOST_POINTS)),
        # Neighbours summed up, so that a picture has no more bars than an eye can see.
        iterations=tuple(
            sum(part, Used()).of("–".join(dict.fromkeys((part[0].name, part[-1].name))))
            for part in _parts(tally.spent, MOST_BARS)
        ),
        stories=tuple(costs[:MOST_STORY_BARS]),
        other_stories=sum(rest, Used()).of(f"{len(rest)} others") if rest else None,
        circuit=tuple(circuit[-MOST_SPANS:]),
        circuit_changes=len(moves),
        waits=tuple(
            Span(wait.kind, say(wait.reason), wait.started_at, over)
            for wait, over in zip(waits, until, strict=True)
        ),
        lanes=tuple(tally.lanes[-MOST_SPANS:]),
    )


def _parts(items: Sequence[_T], most: int) -> list[Sequence[_T]]:
    size = -(-len(items) // most) or 1
    return [items[start : start + size] for start in range(0, len(items), size)]
