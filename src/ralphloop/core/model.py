"""The values everything is decided on, frozen; times are epoch seconds handed in by the caller.

Three families that never mix: **claim**, what the agent says (`StatusBlock`, the text in a
`Response`); **evidence**, what we measured ourselves (`Evidence`, `CheckResult` in `proof`);
**verdict**, what we conclude (`Analysis`, `Decision`).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, Self

import msgspec

from ralphloop.core import Value as Value  # noqa: PLC0414
from ralphloop.core.criteria import CriterionEvidence
from ralphloop.core.proof import CheckResult as CheckResult  # noqa: PLC0414 - a home for them too
from ralphloop.core.proof import CheckStatus as CheckStatus  # noqa: PLC0414
from ralphloop.core.proof import Trial
from ralphloop.core.totals import TOKENS as TOKENS  # noqa: PLC0414
from ralphloop.core.totals import Totals, Windows
from ralphloop.core.totals import Usage as Usage  # noqa: PLC0414
from ralphloop.text.status_block import Status, StatusBlock

Ceiling = Literal["", "start", "share", "run"]
OutputFormat = Literal["text", "json", "json_array", "jsonl"]


class Outcome(StrEnum):
    COMPLETED = "completed"
    DENIED = "denied"  # tools were refused and nothing came of it
    EMPTY = "empty"
    USAGE_LIMIT = "usage_limit"
    TRANSIENT = "transient"  # API or network
    FATAL = "fatal"  # authentication, billing, unknown model
    LIMIT = "limit"  # the agent's own turns, budget or context
    INTERRUPTED = "interrupted"
    KILLED = "killed"
    TIMEOUT = "timeout"  # our wall clock
    STALLED = "stalled"  # our stall clock
    STARTUP_ERROR = "startup_error"
    ERROR = "error"

    @property
    def is_infrastructure(self) -> bool:
        """True where the ending says nothing about the agent's work."""
        return self in _INFRASTRUCTURE

    @property
    def words(self) -> str:
        return _IN_WORDS.get(self) or str(self).replace("_", " ")


_IN_WORDS = {
    Outcome.DENIED: "tools refused",
    Outcome.EMPTY: "no answer",
    Outcome.TRANSIENT: "outage",
    Outcome.FATAL: "cannot work",
    Outcome.LIMIT: "its own limit",
    Outcome.TIMEOUT: "out of time",
    Outcome.STALLED: "silent",
    Outcome.STARTUP_ERROR: "did not start",
}
_INFRASTRUCTURE = frozenset("usage_limit transient fatal interrupted killed startup_error".split())


class ExitDecision(StrEnum):
    """What to do after an iteration; the words other tools read."""

    CONTINUE = "continue"
    PROJECT_COMPLETE = "project_complete"
    BLOCKED = "blocked"
    MAX_ITERATIONS = "max_iterations"
    TEST_SATURATION = "test_saturation"
    CIRCUIT_OPEN = "circuit_open"
    BUDGET_EXHAUSTED = "budget_exhausted"
    USAGE_LIMIT = "usage_limit"
    INTERRUPTED = "interrupted"
    NO_RUNNABLE_STORY = "no_runnable_story"
    ERROR = "error"


class RunLimit(StrEnum):
    """A limit of a whole run, by the name of its setting."""

    ITERATIONS = "max_iterations"
    COST = "max_cost_usd"
    TOKENS = "max_tokens"
    TIME = "max_time"
    UNTIL = "until"


class Circuit(StrEnum):
    CLOSED = "CLOSED"
    HALF_OPEN = "HALF_OPEN"
    OPEN = "OPEN"


class Story(Value, kw_only=True):
    """One unit of work; texts are clean Unicode without NUL, the id may hold anything else."""

    id: str
    title: str
    index: int  # position in the file, the last word on order
    description: str = ""
    criteria: tuple[str, ...] = ()
    priority: int | float | None = None  # lowest first; None comes last
    passes: bool = False
    notes: str = ""
    depends_on: tuple[str, ...] = ()
    parent_spec: str | None = None
    verify: tuple[str, ...] | None = None  # argv, never run by a shell
    exit_signal: bool = False  # tasks files: passing this one may end the run
    about_tests: bool = False
    touches: tuple[str, ...] = ()  # path patterns it is expected to change
    machine: tuple[str, ...] = ()  # what a machine has to have that works on it, such as gpu


class StoryList(Value, kw_only=True):
    """A *view* of a file that belongs to somebody else.  Nothing is written back from here, so that
    keys we do not know survive: marking splices one value into the raw text."""

    stories: tuple[Story, ...]
    source: str
    project: str = ""
    description: str = ""
    branch_name: str | None = None

    @property
    def total(self) -> int:
        return len(self.stories)

    @property
    def passed(self) -> int:
        return sum(story.passes for story in self.stories)

    def get(self, story_id: str) -> Story | None:
        return next((story for story in self.stories if story.id == story_id), None)

    def with_passes(self, wanted: Mapping[str, bool]) -> Self:
        stories = tuple(
            msgspec.structs.replace(story, passes=wanted[story.id]) if story.id in wanted else story
            for story in self.stories
        )
        return msgspec.structs.replace(self, stories=stories)


class ToolCall(Value, kw_only=True):
    name: str
    summary: str = ""  # file, command or pattern, one bounded line
    ok: bool | None = None  # None: no result was seen


class Denial(Value, kw_only=True):
    tool: str
    summary: str = ""


class RateLimit(Value, kw_only=True):
    """The newest word about quota; `rejected` means the limit is reached."""

    rejected: bool = False
    resets_at: int | None = None  # epoch seconds
    windows: Windows = ()


NO_LIMIT = RateLimit()  # by which what was told of none is left out where answers are kept


class Response(Value, kw_only=True):
    """One agent start as its own output tells it."""

    reader: str
    format: OutputFormat = "text"
    outcome: Outcome
    reason: str = ""  # why this outcome, one line
    crash: str = ""  # what the agent crashed of; empty where it did not give up by itself
    status: StatusBlock | None = None
    status_is_final: bool = False  # the block stands in the final message
    final_text: str | None = None  # last result's text; None: the stream ended without one
    text: str = ""  # the agent's own messages, joined, bounded head and tail
    text_chars: int = 0  # their full length, before bounding
    session_id: str | None = None
    model: str | None = None
    usage: Usage = Usage()
    tool_calls: tuple[ToolCall, ...] = ()  # the last ones, bounded
    tool_call_count: int = 0
    denials: tuple[Denial, ...] = ()
    rate_limit: RateLimit = NO_LIMIT
    model_output: bool = False  # the model answered at all, so it was paid for
    retrying: bool = False  # the last event was a retry
    warnings: tuple[str, ...] = ()

    @property
    def final_words(self) -> str:
        """The agent's last own words, bounded by the reader: what a claim may be read from."""
        return self.final_text if self.final_text is not None else self.text


class Comparison(Value, frozen=True, kw_only=True):
    """What a run of the checks says, seen against the one before any work was done."""

    tolerated: tuple[str, ...] = ()  # checks that fail only as they did before
    tolerated_failures: tuple[str, ...] = ()  # the tests behind them, by name
    turned_green: tuple[str, ...] = ()  # checks and named tests that were red


class ChangedFiles(Value, kw_only=True):
    count: int = 0
    insertions: int | None = None  # None: too many to count, or no git
    deletions: int | None = None
    subjects: tuple[str, ...] = ()  # of the agent's own commits


class StoryFacts(Value, kw_only=True):
    """The story list around an iteration; None total: there is no list."""

    total: int | None = None
    passed: int = 0
    current: str | None = None  # id of the story this iteration works on
    about_tests: bool = False
    exit_signal: bool = False  # tasks.yaml: passing this task may end the run
    others: int = 0  # other stories that can run
    others_if_passed: int = 0  # the same once this one has passed


class LandingConflict(Value, kw_only=True):
    """Why work that was green in its lane could not land as it is."""

    words: str = ""
    told: str = ""  # to the agent: what landed meanwhile, and what is in the way
    others: tuple[str, ...] = ()  # the stories that landed since it began


class DoubterAsked(Value, kw_only=True):
    """A command or an agent that was asked what it doubts, and what asking it used."""

    name: str
    doubted: bool = False
    unheard: str = ""  # why nothing was heard of it
    usage: Usage = Usage()


class Evidence(Value, kw_only=True):
    """What we measured after an iteration; None means nobody could measure it, or has yet."""

    files_changed: int | None = None
    commits: int | None = None
    tree: str | None = None
    head: str = ""  # the commit HEAD stood on; empty: not known
    checks: tuple[CheckResult, ...] | None = None
    stories_passed: int | None = None
    work_files: tuple[str, ...] | None = None
    net_lines: int | None = None  # over the story's last unclaimed iterations, this one included
    changed: ChangedFiles = ChangedFiles()
    comparison: Comparison = Comparison()
    checks_cut: bool = False  # stopped before all of them had run
    hollow: bool = False  # all that changed since the story began are new files without content
    doubts: tuple[str, ...] | None = None  # what it did to stories, settings, history, scripts
    work: str = ""  # what the story's own change is known by; empty: none, or nobody knows
    trial: Trial | None = None  # what its tests say crosswise
    criteria: tuple[CriterionEvidence, ...] = ()  # what shows that each one is met
    checked_tree: str = ""  # as it was when all of that was found out
    left_tree: str = ""  # as it was when everything had run; empty: as the agent left it
    opinions: tuple[str, ...] | None = None  # what commands that may only doubt have said
    reviewed: Usage = Usage()  # what agents among them used
    doubters: tuple[DoubterAsked, ...] = ()  # each of them, every time it was asked
    remarks: tuple[str, ...] = ()  # what was put right while the agent ran
    unfinished: str = ""  # why nothing can be judged: a merge half done, work that is elsewhere
    returned: LandingConflict | None = None  # it goes back to its lane
    passes_set: bool = False  # the agent flipped this story's `passes` itself
    asked: tuple[Story, ...] = ()  # stories as they were before an agent asked for less
    lost: dict[str, str] = msgspec.field(default_factory=dict)  # heads that left the branch
    stories: StoryFacts = StoryFacts()
    used: Totals | None = None  # by the run before this start; None: what the state has summed up
    fallback: bool = False  # another agent can take over
    at: float | None = None

    @property
    def open_stories(self) -> int:
        """How many have not passed, this one counted as it was judged; 0 without a list."""
        passed = self.stories.passed + (self.stories_passed or 0)
        return max(0, (self.stories.total or 0) - passed)


class ProcessEnd(Value, kw_only=True):
    exit_code: int | None = 0
    timed_out: bool = False
    stalled: bool = False
    interrupted: bool = False  # a person asked us to stop
    out_of_time: bool = False  # the run's time was over
    ceiling: Ceiling = ""  # which one it met while it ran: of a start, a story or the run
    duration_s: float = 0.0


class StuckPattern(Value, kw_only=True):
    name: str  # a row of `core.progress._STUCK_SIGNS`, or output_decline
    detail: str


class Indicators(Value, kw_only=True):
    """The facts that say "done"; each counts once, unknown ones do not count."""

    all_tasks_done: bool | None = None
    tests_passing: bool | None = None
    no_pending_stories: bool | None = None
    status_complete: bool | None = None
    text_says_done: bool = False

    @property
    def count(self) -> int:
        return sum(fact is True for fact in msgspec.structs.astuple(self))

    @property
    def named(self) -> str:
        words = (
            "all tasks done",
            "tests passing",
            "no pending stories",
            "STATUS is COMPLETE",
            "the text says done",
        )
        facts = msgspec.structs.astuple(self)
        return ", ".join(name for name, fact in zip(words, facts, strict=True) if fact)


class Transition(Value, kw_only=True):
    iteration: int = 0
    before: Circuit
    after: Circuit
    reason: str
    at: float | None = None

    @property
    def is_note(self) -> bool:
        return self.before is self.after


class Analysis(Value, kw_only=True):
    iteration: int = 0
    outcome: Outcome = Outcome.COMPLETED
    status: StatusBlock | None = None
    exit_signal: bool = False
    capped: bool = False  # our own ceiling ended it
    refused: bool = False  # nobody took the request: no model ever saw it
    story_claimed: bool = False
    already_done: bool = False  # the agent says the work was there before it began
    indicators: Indicators = Indicators()
    confidence: float = 0.0
    progress: bool = False
    progress_reasons: tuple[str, ...] = ()
    error_signature: str | None = None
    test_only: bool = False
    stuck: tuple[StuckPattern, ...] = ()
    decline: StuckPattern | None = None
    question: str | None = None
    circuit: Circuit = Circuit.CLOSED
    transition: Transition | None = None
    warnings: tuple[str, ...] = ()

    @property
    def says_nothing(self) -> bool:
        return self.outcome.is_infrastructure or self.refused

    @property
    def claims_done(self) -> bool:
        return self.story_claimed or self.exit_signal

    @property
    def is_blocked(self) -> bool:
        """The agent says that only a person can go on."""
        if self.outcome.is_infrastructure or self.status is None:
            return False
        return self.status.status is Status.BLOCKED


class Decision(Value, kw_only=True):
    word: ExitDecision
    reasons: tuple[str, ...] = ()
    limit: RunLimit | None = None  # that is used up, or would be

    @property
    def sentence(self) -> str:
        return f"{self.word}: {'; '.join(self.reasons)}" if self.reasons else str(self.word)
