"""What happens in a run, as one stream of values: journal, console, log and `--json` see the same.

Each kind is stored under its tag; every field has a default, so that what an older version wrote
loads as well.  An iteration is stored once: the journal puts it back into `IterationFinished`.
"""

import msgspec
from msgspec import UNSET, UnsetType

from ralphloop.core import Value, readable, snake_case
from ralphloop.core.iteration import Iteration
from ralphloop.core.model import CheckStatus, Circuit, ExitDecision, RunLimit
from ralphloop.core.totals import Expense, Windows, updated
from ralphloop.text.durations import iso


class Event(Value, tag_field="type", tag=snake_case):
    @property
    def type(self) -> str:
        return str(self.__struct_config__.tag)

    def published(self) -> dict[str, object]:
        """Its fields in the shape of `ralph run --json`."""
        fields = msgspec.structs.asdict(self).items()
        return {name: msgspec.to_builtins(value) for name, value in fields if value is not UNSET}


class RunStarted(Event, kw_only=True):
    continued: bool = False
    project: str = ""
    branch: str = ""
    agent: str = ""
    model: str = ""
    stories: int = 0
    passed: int = 0
    cost_usd: float = 0.0  # of a session that is continued, as are the next three
    unpriced: int = 0
    tokens: int = 0  # without cache reads, as `max_tokens` counts them
    active_s: float = 0.0
    max_iterations: int = 0
    max_cost_usd: float = 0.0
    max_tokens: int = 0
    max_time_s: float = 0.0
    ends_at: float = 0.0  # epoch seconds
    reserve: float = 0.0
    quota: Windows = ()  # the windows of a subscription, as far as they are known
    circuit: Circuit = Circuit.CLOSED


class Preflight(Event, kw_only=True):
    said: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class IterationStarted(Event, kw_only=True):
    story: str | None = None
    title: str = ""
    attempt: int = 1
    lane: int = 0  # the one it is worked on in; 0: the checkout
    by: str = ""  # agent and model, where there are several
    passed: int = 0
    total: int = 0
    prompt_tokens: int = 0
    left_out: tuple[str, ...] = ()


class AgentChanged(Event, kw_only=True):
    agent: str = ""
    away: str = ""  # the one it stands in for; empty: the first one works again
    until: str | None = None  # when that one comes back; None: not in this run


class AgentStep(Event, kw_only=True, tag="agent_event"):
    kind: str = ""  # text, tool, tool_result, retry, limit, status, result
    summary: str = ""  # one bounded line
    ok: bool | UnsetType = UNSET


class StatusAsked(Event):
    """Its answer had no status block."""


class ExperimentBegun(Event, kw_only=True):
    """Files are exchanged for a moment; they are written down first."""

    story: str = ""
    what: str = ""  # is tried
    start: str = ""  # the tree the story began with
    end: str = ""  # the tree it left, which is there again afterwards


class ExperimentEnded(Event, kw_only=True):
    """Everything is as the story left it."""

    story: str = ""
    what: str = ""
    passed: int | None = None  # tests; None: it could not be judged
    failed: int | None = None


class IterationFinished(Event, kw_only=True):
    iteration: Iteration = Iteration()
    spent: Expense = Expense()
    attempts: int = 0  # failed ones of the story, this one included
    warnings: tuple[str, ...] = ()  # besides those of the analysis

    @property
    def all_warnings(self) -> tuple[str, ...]:
        doubters = self.iteration.evidence.doubters
        unheard = (f"{one.name} {one.unheard}" for one in doubters if one.unheard)
        return (*self.iteration.analysis.warnings, *self.warnings, *dict.fromkeys(unheard))

    @property
    def checks(self) -> dict[str, CheckStatus]:
        return {check.name: check.status for check in self.iteration.evidence.checks or ()}

    def published(self) -> dict[str, object]:
        kept = self.iteration
        analysis = self.iteration.analysis
        said = analysis.status
        fields = {
            "story": kept.story.id if kept.story else None,
            "machine": kept.machine or None,
            "outcome": analysis.outcome,
            "outcome_reason": kept.why_it_ended,
            "decision": kept.decision.word,
            "reasons": kept.decision.reasons,
            "verdict": kept.verdict.reasons,
            "passed": kept.verdict.passed,
            "claimed": analysis.story_claimed,
            "status": said.status or "" if said else "",
            "recommendation": said.recommendation if said else "",
            "progress": analysis.progress_reasons,
            "files_changed": kept.changed.count,
            "commits": kept.evidence.commits,
            "checks": self.checks,
            "warnings": self.all_warnings,
            "stuck": [pattern.detail for pattern in analysis.stuck],
            "cost_usd": self.spent.cost_usd,
            "unpriced": self.spent.unpriced,
            "tokens": self.spent.total_tokens,
            "duration_s": kept.end.duration_s,
            "quota": kept.response.windows,
            "attempts": self.attempts,
            "findings": kept.findings,
        }
        return dict(msgspec.to_builtins(fields))


class StoryPassed(Event, kw_only=True):
    story: str = ""
    title: str = ""
    grade: str = ""
    reasons: tuple[str, ...] = ()


class StoryProposed(Event, kw_only=True):
    """Somebody names something that is no story yet."""

    proposal: str = ""  # its id
    text: str = ""
    origin: str = ""  # found, follow_up, comment
    story: str = ""  # it came up at
    by: str = ""
    became: str = ""  # the story it was made into at once; empty: it waits for a person


class StoryHeldBack(Event, kw_only=True):
    story: str = ""
    title: str = ""
    reason: str = ""


class StorySetAside(StoryHeldBack):
    """It is quarantined for now."""


class StoryBlocked(StoryHeldBack):
    """It waits for a person."""


class StoryReopened(StoryHeldBack):
    """What passed its checks could not be committed, or nothing upholds it any more."""


class Landing(Event, kw_only=True):
    """A story is in the queue, or its turn has come."""

    story: str = ""
    lane: int = 0
    ahead: int = 0  # others before it; 0: it is tried now
    in_train: bool = False  # it is judged now, before its turn
    on: tuple[str, ...] = ()  # on top of these, which are expected to land before it


class LaneLeft(Event, kw_only=True):
    """An agent worked outside of its lane."""

    story: str = ""
    lane: int = 0
    reason: str = ""


class LanesMended(Event, kw_only=True):
    """Somebody changed what lanes work with, and what was done about it."""

    reason: str = ""


class StoryReturned(Event, kw_only=True):
    """What was green in its lane could not land: it goes back there."""

    story: str = ""
    lane: int = 0
    reason: str = ""
    returns: int = 0


class StoriesEdited(Event, kw_only=True):
    """The story file of the checkout was changed while lanes work."""

    changes: tuple[str, ...] = ()  # what that means for the run, a sentence each


class CommitsSeen(Event, kw_only=True):
    """Somebody committed in the checkout while no agent ran, and the run goes on from there."""

    head: str = ""
    words: str = ""  # whose, and which


class LeftoversKept(Event, kw_only=True):
    """The work of a story set aside, or of a person meanwhile, went from the work tree."""

    story: str = ""
    ref: str = ""
    files: tuple[str, ...] = ()


class CircuitChanged(Event, kw_only=True):
    before: Circuit = Circuit.CLOSED
    after: Circuit = Circuit.CLOSED
    reason: str = ""


class Waiting(Event, kw_only=True):
    kind: str = ""
    reason: str = ""
    until: str | None = None  # None: it is over
    seconds: float = 0.0
    needs_you: bool = False  # something has to be put right that only a person can


class RequestAnswered(Event, kw_only=True):
    kind: str = ""
    request: int = 0
    answer: str = ""
    by_agent: bool = False
    max_iterations: int | UnsetType = UNSET  # the limits, where it moved them
    max_cost_usd: float | UnsetType = UNSET
    max_tokens: int | UnsetType = UNSET
    max_time_s: float | UnsetType = UNSET


class RunFinished(Event, kw_only=True):
    decision: ExitDecision = ExitDecision.ERROR
    reasons: tuple[str, ...] = ()
    limit: RunLimit | None = None  # that ended it
    exit_code: int = 0
    passed: int = 0
    total: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    tokens: int = 0
    iterations: int = 0
    duration_s: float = 0.0
    quota: Windows = ()
    waiting: tuple[str, ...] = ()  # stories that wait for a person, with what they ask


class Unknown(Event, kw_only=True):
    """Written by another version, or too long to be kept."""

    name: str = ""

    @property
    def type(self) -> str:
        return self.name


KINDS = {
    str(kind.__struct_config__.tag): kind
    for kind in (*Event.__subclasses__(), *StoryHeldBack.__subclasses__())
}


def event_of(type_: str, data: dict[str, object]) -> Event:
    """The event that was stored so, as far as it can be read."""
    is_too_long = isinstance(data.get("left_out"), int)  # all that is left of it
    kind = Unknown if is_too_long else KINDS.get(type_, Unknown)
    return Unknown(name=type_) if kind is Unknown else readable(data, kind)


def as_of_now(run: RunStarted, what: Event) -> RunStarted:
    """How the run would begin now: what it has used and may use since this happened."""
    change: dict[str, object] = {}
    match what:
        case RunStarted():
            return what
        case RequestAnswered(max_cost_usd=float()):
            limits = ("max_iterations", "max_cost_usd", "max_tokens", "max_time_s")
            change = {name: getattr(what, name) or 0 for name in limits}
        case StoryPassed():
            change = {"passed": run.passed + 1}
        case IterationFinished(iteration=kept, spent=spent):
            change = {
                "cost_usd": run.cost_usd + spent.cost_usd,
                "unpriced": run.unpriced + spent.unpriced,
                "tokens": run.tokens + spent.fresh_tokens,
                "quota": updated(run.quota, kept.response.windows, kept.agent),
            }
        case CircuitChanged(after=after):
            change = {"circuit": after}
        case RunFinished() as end:
            used = {"cost_usd": end.cost_usd, "unpriced": end.unpriced}
            change = {"passed": end.passed, "stories": end.total, **used}
    return msgspec.structs.replace(run, **change)


class LoopEvent(Value, kw_only=True):
    run: str
    at: float
    what: Event
    iteration: int | None = None
    seq: int = 0  # in the journal

    def as_line(self) -> dict[str, object]:
        head = {"v": 1, "type": self.what.type, "ts": iso(self.at), "run": self.run}
        return {**head, "iteration": self.iteration, **self.what.published()}
