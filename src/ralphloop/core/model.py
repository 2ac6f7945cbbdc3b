"""The values everything is decided on.

Three families that never mix:

* **claim**: what the agent says (`StatusBlock`, the text in a `Response`);
* **evidence**: what we measured ourselves (`Evidence`, `CheckResult`);
* **verdict**: what we conclude (`Analysis`, `Decision`).

All of them are frozen and know nothing of files, clocks or storage.  Times are epoch seconds
handed in by the caller.
"""

from __future__ import annotations

from enum import StrEnum
from typing import dataclass_transform

import msgspec

from ralphloop.text.status import StatusBlock


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of all values: immutable, compared by content, JSON without its defaults."""


# --- words -----------------------------------------------------------------------------------


class Outcome(StrEnum):
    """How one start of the agent ended."""

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


_INFRASTRUCTURE = frozenset(
    {
        Outcome.USAGE_LIMIT,
        Outcome.TRANSIENT,
        Outcome.FATAL,
        Outcome.INTERRUPTED,
        Outcome.KILLED,
        Outcome.STARTUP_ERROR,
    }
)


class OutputFormat(StrEnum):
    """The shape an agent's output had on the wire."""

    TEXT = "text"
    JSON = "json"
    JSON_ARRAY = "json_array"
    JSONL = "jsonl"


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


class Circuit(StrEnum):
    CLOSED = "CLOSED"
    HALF_OPEN = "HALF_OPEN"
    OPEN = "OPEN"


class CheckStatus(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NO_TESTS = "no_tests"  # nothing was collected: neither red nor green


# --- claims ----------------------------------------------------------------------------------


TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class Usage(Value, kw_only=True):
    """Tokens and money of one start; `cost_usd` is None where the agent names no price."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False  # summed from the stream because no result reported it
    cumulative: bool = False  # cost covers the whole resumed conversation, not this start alone

    @property
    def total_tokens(self) -> int:
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
        )

    def __add__(self, other: Usage) -> Usage:
        """Both together; the price is unknown only where neither names one."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            cost_usd=sum(costs) if costs else None,
            estimated=self.estimated or other.estimated,
            cumulative=self.cumulative or other.cumulative,
        )


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
    kind: str = ""  # five_hour, seven_day …
    utilization: float | None = None


class AgentEvent(Value, kw_only=True):
    """One visible step of a running agent, for the console, the log and the monitor."""

    kind: str  # text, tool, tool_result, retry, limit, status, result
    summary: str = ""  # one bounded line
    ok: bool | None = None


class Response(Value, kw_only=True):
    """One agent start as its own output tells it."""

    reader: str
    format: OutputFormat = OutputFormat.TEXT
    outcome: Outcome
    reason: str = ""  # why this outcome, one line
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
    rate_limit: RateLimit | None = None
    model_output: bool = False  # the model answered at all, so it was paid for
    retrying: bool = False  # the last event was a retry
    skills: tuple[str, ...] = ()
    plugin_errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


# --- evidence --------------------------------------------------------------------------------


class CheckResult(Value, kw_only=True):
    """One check command we ran ourselves."""

    name: str
    status: CheckStatus
    output_tail: str = ""
    duration_s: float = 0.0
    flaky: bool = False
    failing_tests: tuple[str, ...] = ()


class Evidence(Value, kw_only=True):
    """What we measured after an iteration; None means nobody could measure it."""

    files_changed: int | None = None
    commits: int | None = None
    tree: str | None = None
    checks: tuple[CheckResult, ...] | None = None
    stories_passed: int | None = None
    work_files: tuple[str, ...] | None = None


class ProcessEnd(Value, kw_only=True):
    """How the process ended, as the supervisor saw it."""

    exit_code: int | None = 0
    timed_out: bool = False
    stalled: bool = False
    interrupted: bool = False  # a person asked us to stop
    duration_s: float = 0.0


# --- context ---------------------------------------------------------------------------------


class StoryFacts(Value, kw_only=True):
    """The story list as it stands before an iteration; None total: there is no list."""

    total: int | None = None
    passed: int = 0
    current: str | None = None  # id of the story this iteration works on
    about_tests: bool = False
    exit_signal: bool = False  # tasks.yaml: passing this task may end the run


# --- verdicts --------------------------------------------------------------------------------


class StuckPattern(Value, kw_only=True):
    """A named sign of going in circles, with what was seen."""

    name: str  # same_error, same_reply, alternation, state_revisit, output_decline
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
        facts = (
            self.all_tasks_done,
            self.tests_passing,
            self.no_pending_stories,
            self.status_complete,
            self.text_says_done,
        )
        return sum(fact is True for fact in facts)


class Transition(Value, kw_only=True):
    """One change of the circuit's state, or a note about it."""

    iteration: int = 0
    before: Circuit
    after: Circuit
    reason: str
    at: float | None = None

    @property
    def is_note(self) -> bool:
        """An entry of the history that changed nothing."""
        return self.before is self.after


class Analysis(Value, kw_only=True):
    """One iteration weighed: claim against evidence."""

    iteration: int = 0
    outcome: Outcome = Outcome.COMPLETED
    status: StatusBlock | None = None
    exit_signal: bool = False
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
    def stuck_loop_detected(self) -> bool:
        return bool(self.stuck)


class Decision(Value, kw_only=True):
    """What to do next, and why, in words a person can read."""

    word: ExitDecision
    reasons: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        return f"{self.word}: {'; '.join(self.reasons)}" if self.reasons else str(self.word)
