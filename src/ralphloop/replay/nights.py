"""A recorded night, folded again: what the journal says against what the code decides now.

With other settings the fold goes its own way: a start the changed night would not have made is
named and left out; what it would have made instead nobody knows.

Exported, a night is a decision case that can be shown to others: names of stories, files and checks
become numbers, and of the agent's words only the status block is kept.
"""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from ralphloop.core.grading import StoryVerdict
from ralphloop.core.interventions import (
    AnyIntervention,
    Committed,
    LeftoversSaved,
    OthersWorked,
    SecondChance,
    VerifyRan,
)
from ralphloop.core.iteration import Iteration, KeptAnswer, Result, Start
from ralphloop.core.model import CheckStatus, Decision, ExitDecision, Outcome, Value
from ralphloop.core.policy import Limits, Policy
from ralphloop.core.proof import is_test_path
from ralphloop.core.run_state import LanesState, RunState, Standing, StoryState
from ralphloop.core.step import Step, step
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import IterationRecord
from ralphloop.replay.cases import Case, CaseEvidence, CaseIteration, CaseStories, judge
from ralphloop.text import status_block

_INSTEAD = {
    Standing.SET_ASIDE: "would have been set aside",
    Standing.BLOCKED: "would have waited for a person",
    Standing.PASSED: "would have passed",
}


class Rerun(Value, kw_only=True):
    record: IterationRecord
    taken: Step | None = None  # None: it would not have been made
    why_not: str = ""
    differs: tuple[str, ...] = ()  # what the journal says otherwise, in words


class StoryDifference(Value, kw_only=True):
    """A story at the end of the night, as the journal has it and as it is decided now."""

    recorded: StoryState
    replayed: StoryState

    @property
    def is_real(self) -> bool:
        was = self.recorded
        now = self.replayed
        same_grade = was.standing is now.standing and was.proof.grade == now.proof.grade
        failed = was.attempt.failed
        if was.standing is Standing.BLOCKED and failed == now.attempt.failed + 1:
            failed -= 1  # earlier versions counted a question as a failed attempt
        return not same_grade or failed != now.attempt.failed


class ReplayedNight(Value, kw_only=True):
    starts: tuple[Rerun, ...] = ()
    stories: dict[str, StoryDifference] = msgspec.field(default_factory=dict)  # where there is one

    @property
    def is_identical(self) -> bool:
        return not self.stories and all(one.taken and not one.differs for one in self.starts)

    @property
    def saved_usd(self) -> float:
        return sum(one.record.cost_usd for one in self.starts if one.taken is None)


def replay(
    journal: Queries,
    run: str,
    *,
    beginning: RunState,
    policy: Policy,
    resumes: bool,
    other_limits: dict[str, object],
) -> ReplayedNight:
    """Fold a recorded run again; `other_limits` replace those that were in force."""
    fold = _Fold(beginning, policy, other_limits, resumes)
    changes = journal.interventions(run)
    starts = []
    records = journal.every_iteration(run)
    if journal.part(LanesState, run) is not None:
        # As they were decided: in lanes a later start may well be over before an earlier one.
        brief = journal.every_iteration(run, brief=True)
        over = sorted(brief, key=lambda one: one.finished_at or 0.0)
        records = filter(None, (journal.iteration(run, known.n) for known in over))
    for record in records:
        if (ended := record.finished_at) is None:
            continue
        # Before the start, or while its agent worked.
        while changes and (changes[0].after < record.n or changes[0].at < ended):
            fold.change(changes.pop(0).change)
        starts.append(fold.start(record))
    for late in changes:
        fold.change(late.change)
    kept = journal.story_states(run)
    differing = {}
    for name in dict.fromkeys((*kept, *fold.state.stories)):
        was = kept.get(name, StoryState())
        now = fold.state.story(name)
        both = StoryDifference(recorded=was, replayed=now)
        if both.is_real:
            differing[name] = both
    return ReplayedNight(starts=tuple(starts), stories=differing)


class _Fold(msgspec.Struct):
    state: RunState
    policy: Policy
    other_limits: dict[str, object]
    resumes: bool
    ended: Decision | None = None

    def change(self, change: AnyIntervention) -> None:
        """What no iteration did; a second chance is given only to what is set aside here too."""
        if isinstance(change, SecondChance) and not self.state.story(change.story).has_a_chance:
            return
        self.state = change.applied(self.state, self.policy)
        if not isinstance(change, Committed | LeftoversSaved | OthersWorked | VerifyRan):
            self.ended = None  # a person went on; those are the loop's own

    def start(self, record: IterationRecord) -> Rerun:
        kept = record.record
        state = self.state.story(record.story)
        why_not = ""
        if self.ended is not None and self.ended.word is not ExitDecision.INTERRUPTED:
            why_not = f"the run would have ended: {self.ended.sentence}"
        elif record.story is not None and state.standing is not Standing.OPEN:
            reason = f": {state.reason}" if state.reason else ""
            why_not = f"{record.story} {_INSTEAD[state.standing]} before{reason}"
        if why_not:
            return Rerun(record=record, why_not=why_not)
        goes_on = self.resumes and state.conversation.agent == kept.agent
        start = Start(
            story=kept.story,
            state=state if goes_on else state.fresh_conversation(),
            tree=record.tree,
            head=record.head,
            agent=kept.agent,
            model=kept.model,
            clocks=kept.clocks,
            prompt=kept.prompt,
            learning=kept.learning,
        )
        limits = replace(kept.limits, **self.other_limits)
        policy = replace(self.policy, limits=limits)
        # What passed is to be decided again where it is judged here.
        passed = None if kept.story is not None else kept.evidence.stories_passed
        evidence = replace(kept.evidence, changed=kept.changed, stories_passed=passed)
        taken = step(self.state, start, _result(kept), evidence, policy)
        self.state = taken.state
        # Where the journal has the same end, a person went on: that start is followed by others.
        went_on = taken.decision.word in (ExitDecision.CONTINUE, kept.decision.word)
        self.ended = None if went_on else taken.decision
        return Rerun(record=record, taken=taken, differs=tuple(_differences(record, taken)))


def _result(kept: Iteration) -> Result:
    return Result(
        response=kept.response.response(),
        asked=kept.asked.response() if kept.asked else None,
        end=kept.end,
        stopped_because=kept.stopped_because,
        leftovers=kept.leftovers,
        stderr_tail=kept.stderr_tail,
        machine=kept.machine,
    )


def _differences(record: IterationRecord, taken: Step) -> Iterator[str]:
    kept = record.record
    now = taken.iteration
    # Which limit it was, earlier versions said in the reason alone.
    same_word = kept.decision.word is now.decision.word
    if not same_word or kept.decision.reasons != now.decision.reasons:
        yield f"decision {kept.decision.sentence} → {now.decision.sentence}"
    if not _is_same(kept.verdict, now.verdict):
        yield f"story {_verdict(kept)} → {_verdict(now)}"
    before = [effect.kind for effect in record.effects]
    after = [effect.kind for effect in taken.effects]
    if before != after:
        yield f"owed: {', '.join(before) or 'nothing'} → {', '.join(after) or 'nothing'}"
        return
    for name in kept.analysis.__struct_fields__:
        # Left-out starts move the numbers of later ones; that is no difference.
        was = getattr(kept.analysis, name)
        is_now = getattr(now.analysis, name)
        if was != is_now and name not in ("iteration", "transition"):
            yield f"{name.replace('_', ' ')}: {was} → {is_now}"


def _is_same(one: StoryVerdict, other: StoryVerdict) -> bool:
    """Whether two verdicts have the same consequences; the words of another version may differ."""
    if (one.passed, one.grade) != (other.passed, other.grade):
        return False
    return bool(one.asked) == bool(other.asked)


def _verdict(kept: Iteration) -> str:
    verdict = kept.verdict
    words = f"passed ({verdict.grade})" if verdict.passed else "not passed"
    return f"{words}: {'; '.join(verdict.reasons)}" if verdict.reasons else words


_SAID = "Worked on the story."
# What a text reader takes for such an ending.
_ENDINGS: Mapping[Outcome, Mapping[str, object]] = {
    Outcome.USAGE_LIMIT: {"output": "Claude AI usage limit reached|1", "exit_code": 1},
    Outcome.TRANSIENT: {"stderr": "API Error: 529 overloaded_error", "exit_code": 1},
    Outcome.FATAL: {"stderr": "Invalid API key", "exit_code": 1},
    Outcome.TIMEOUT: {"timed_out": True, "exit_code": None},
    Outcome.STALLED: {"stalled": True, "exit_code": None},
    Outcome.EMPTY: {"output": ""},
}


def exported(run: str, policy: Policy, night: ReplayedNight) -> bytes:
    """One line for `ralph eval`; without names and words some expectations are out of reach."""
    names: dict[str, str] = {}
    first = night.starts[0].record.record if night.starts else Iteration()
    total = first.evidence.stories.total
    passed = first.evidence.stories.passed
    thresholds = msgspec.to_builtins(replace(policy, limits=Limits(), commits=True))
    case = Case(
        id=f"night-{run}",
        title="a recorded night",
        source="ralph replay --export",
        agent="text",
        policy=thresholds,
        limits=msgspec.to_builtins(first.limits),
        stories=CaseStories(total=total, passed=passed) if total is not None else None,
        iterations=tuple(_iteration(again.record, names) for again in night.starts),
    )
    lost = judge(case, {}).mismatches
    for wrong in lost:
        del case.iterations[wrong.iteration - 1].expect[wrong.key]
    if lost:
        title = f"{case.title}; {len(lost)} decisions need what was left out"
        case = replace(case, title=title)
    return msgspec.json.encode(case) + b"\n"


def _iteration(record: IterationRecord, names: dict[str, str]) -> CaseIteration:
    kept = record.record
    evidence = record.record.evidence
    analysis = record.record.analysis
    given = kept.asked is not None and kept.asked.status is not None  # the block that claims it
    statuses = [str(check.status) for check in evidence.checks or ()]
    last_status = statuses[-1] if statuses else None
    found = CaseIteration(
        output=_said(kept.response, claimed=analysis.story_claimed and not given),
        asked=_said(kept.asked, claimed=False) if kept.asked is not None else None,
        exit_code=kept.end.exit_code,
        duration_s=kept.end.duration_s,
        story=record.story and names.setdefault(record.story, f"S-{len(names) + 1}"),
        story_about_tests=evidence.stories.about_tests,
        story_exit_signal=evidence.stories.exit_signal,
        work_files=tuple(
            f"tests/test_{number}.py" if is_test_path(path) else f"src/file_{number}.py"
            for number, path in enumerate(evidence.work_files or (), start=1)
        ),
        evidence=CaseEvidence(
            files_changed=evidence.files_changed,
            commits=evidence.commits,
            checks=CheckStatus.FAILED if CheckStatus.FAILED in statuses else last_status,
            stories_passed=evidence.stories_passed,
            tree=evidence.tree and names.setdefault(f"tree {evidence.tree}", f"t{len(names)}"),
            net_lines=evidence.net_lines,
        ),
        expect={
            "decision": record.decision,
            "outcome": record.outcome,
            "progress": analysis.progress,
            "circuit": str(analysis.circuit),
        },
    )
    return replace(found, **_ENDINGS.get(analysis.outcome, {}))


def _said(kept: KeptAnswer, *, claimed: bool) -> str:
    if kept.status is None:
        return "The story is complete." if claimed else _SAID
    silent = replace(kept.status, recommendation="", problems=())
    return f"{_SAID}\n\n{status_block.render(silent)}\n"
