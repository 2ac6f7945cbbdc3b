"""All thresholds in one value, with the two presets: `strict` stops where `standard` warns first.

`Limits` are totals of the session and survive restarts: what is left is computed from the journal.
"""

from typing import Literal, Self

import msgspec

from ralphloop.core.grading import AskForTests, ChangedTests
from ralphloop.core.model import Decision, ExitDecision, RunLimit, Value
from ralphloop.core.totals import Totals, money
from ralphloop.text.durations import clock_time, format_duration
from ralphloop.text.plain import agreeing, counted

UNKNOWN_RESET_S = 900.0  # a usage limit that does not say when it ends
RESET_MARGIN_S = 1.0
HOUR = 3600.0
JUST_PAST_S = 3 * HOUR  # a reset so long ago is one that should have come by now


class Limits(Value, kw_only=True):
    """What a run may use; 0 switches a limit off."""

    max_iterations: int = 0
    max_cost_usd: float = 0.0
    max_tokens: int = 0  # without cache reads
    max_time: float = 0.0  # seconds of wall clock, waits included
    max_attempts: int = 0  # failed ones per story, then it is set aside
    max_story_share: float = 0.0  # of the limits above, for one story while another can run
    reserve: float = 0.0  # the part of each usage window that is left for the person
    ends_at: float = 0.0  # when `until` is, for the session

    @property
    def of_time(self) -> Self:
        """Those alone that may end an agent at work: what others spend beside it does not."""
        return msgspec.structs.replace(self, max_iterations=0, max_cost_usd=0.0, max_tokens=0)


class ExtraBudget(Value, kw_only=True):
    """What a person added to the budgets while the run went on."""

    cost_usd: float = 0.0
    tokens: int = 0
    time_s: float = 0.0
    iterations: int = 0
    ends_at: float = 0.0  # what `until` meant when the session began, or when it was said last

    def raised_by(self, **more: float) -> Self:
        raised = {name: getattr(self, name) + amount for name, amount in more.items()}
        return msgspec.structs.replace(self, **raised)


def limit_words(iterations: int, usd: float, tokens: int, seconds: float) -> list[str]:
    """The limits of a whole run that there are, each in words."""
    told = {
        counted(iterations, "iteration"): iterations,
        money(usd): usd,
        f"{tokens:,} tokens": tokens,
        format_duration(seconds): seconds,
    }
    return [words for words, limit in told.items() if limit]


def raised(limits: Limits, extra: ExtraBudget) -> Limits:
    """The limits with what a person added; one that is switched off stays so."""
    return msgspec.structs.replace(
        limits,
        max_cost_usd=limits.max_cost_usd and limits.max_cost_usd + extra.cost_usd,
        max_tokens=limits.max_tokens and limits.max_tokens + extra.tokens,
        max_time=limits.max_time and limits.max_time + extra.time_s,
        max_iterations=limits.max_iterations and limits.max_iterations + extra.iterations,
        ends_at=extra.ends_at,
    )


def named(limits: Limits) -> dict[str, float]:
    """The limits of a session as events and JSON name them; 0 means no limit."""
    return {
        "max_iterations": limits.max_iterations,
        "max_cost_usd": limits.max_cost_usd,
        "max_tokens": limits.max_tokens,
        "max_time_s": limits.max_time,
    }


def reached(limits: Limits, totals: Totals, at: float = 0.0) -> Decision | None:
    """The budget that is used up, if one is; its setting is named, for the advice at the end."""
    if 0 < limits.max_iterations <= totals.iterations:
        was = counted(limits.max_iterations, "iteration", "was")
        words = f"{was} allowed and {agreeing(limits.max_iterations, 'is')} used"
        return Decision(
            word=ExitDecision.MAX_ITERATIONS, reasons=(words,), limit=RunLimit.ITERATIONS
        )
    if 0 < limits.max_cost_usd <= totals.cost_usd:
        words = f"${totals.cost_usd:.2f} of ${limits.max_cost_usd:.2f} is spent"
        return _exhausted(words, RunLimit.COST)
    if 0 < limits.max_tokens <= totals.fresh_tokens:
        words = f"{totals.fresh_tokens:,} of {limits.max_tokens:,} tokens are used"
        return _exhausted(words, RunLimit.TOKENS)
    if 0 < limits.max_time <= totals.active_s:
        words = f"the run took {format_duration(totals.active_s)}, as long as it may"
        return _exhausted(words, RunLimit.TIME)
    if 0 < limits.ends_at <= at:
        words = f"it is {clock_time(at, at)}, the run was to end at {_end(limits)}"
        return _exhausted(words, RunLimit.UNTIL)
    return None


def _exhausted(words: str, limit: RunLimit) -> Decision:
    reason = f"{words} (limits.{limit})"
    return Decision(word=ExitDecision.BUDGET_EXHAUSTED, reasons=(reason,), limit=limit)


def _end(limits: Limits) -> str:
    return clock_time(limits.ends_at, limits.ends_at)


class Share(Value, kw_only=True):
    """What one story has used since it was last taken up; waits are no part of it."""

    iterations: int = 0
    cost_usd: float = 0.0
    active_s: float = 0.0


def share_used(limits: Limits, used: Share, *, is_met: bool = False) -> str:
    """In words, which limit a story has had its share of; empty where it has not.

    `is_met`: a start was ended because another step would have passed the share of the money.
    """
    part = limits.max_story_share
    if part and is_met:
        return f"it used ${used.cost_usd:.2f} of ${limits.max_cost_usd:.2f}, its share"
    if not part or used.iterations < SHARE_FROM:
        return ""
    if 0 < limits.max_iterations * part <= used.iterations:
        most = counted(limits.max_iterations, "iteration")
        return f"it used {used.iterations} of {most}, its share"
    if 0 < limits.max_cost_usd * part <= used.cost_usd:
        return f"it used ${used.cost_usd:.2f} of ${limits.max_cost_usd:.2f}, its share"
    if 0 < limits.max_time * part <= used.active_s:
        spans = format_duration(used.active_s), format_duration(limits.max_time)
        return f"it worked {spans[0]} of {spans[1]}, its share"
    return ""


def money_left(limits: Limits, totals: Totals) -> float | None:
    return max(0.0, limits.max_cost_usd - totals.cost_usd) if limits.max_cost_usd else None


class TimeLeft(Value, kw_only=True):
    seconds: float = 0.0
    limit: RunLimit = RunLimit.TIME  # that says so
    words: str = ""


def time_left(limits: Limits, totals: Totals, at: float) -> TimeLeft | None:
    """What is left by the limit that ends the run first; None without one."""
    ends = []
    if limits.ends_at:
        left = max(0.0, limits.ends_at - at)
        words = f"{_end(limits)} (limits.{RunLimit.UNTIL})"
        ends.append(TimeLeft(seconds=left, limit=RunLimit.UNTIL, words=words))
    if limits.max_time:
        left = max(0.0, limits.max_time - totals.active_s)
        words = f"the {format_duration(left)} left (limits.{RunLimit.TIME})"
        ends.append(TimeLeft(seconds=left, limit=RunLimit.TIME, words=words))
    return min(ends, key=lambda one: one.seconds, default=None)


def backoff(outages: int, first: float) -> float:
    return float(min(300.0, first * 2 ** min(max(0, outages - 1), 20)))


def quota_wait(resets_at: float | None, now: float, outages: int) -> float:
    """Seconds until a usage limit is lifted; without a time, longer each time."""
    if resets_at is None or resets_at <= now - JUST_PAST_S:
        return float(min(HOUR, UNKNOWN_RESET_S * 2 ** min(max(0, outages - 1), 4)))
    if resets_at <= now:  # soon, and less and less often: somebody's clock is wrong
        return float(min(UNKNOWN_RESET_S, RESET_MARGIN_S * 4 ** min(max(1, outages), 6)))
    return resets_at - now + RESET_MARGIN_S


ExitGate = Literal["dual", "explicit"]  # EXIT_SIGNAL with two indicators at least, or alone
OnUsageLimit = Literal["wait", "stop"]
Experiments = Literal["auto", "always", "off"]  # auto: within a share of the check's own time
Mode = Literal["script", "hook"]
Preset = Literal["standard", "strict"]


class Policy(Value, kw_only=True, forbid_unknown_fields=True):
    """What counts as stuck, done and too much; 0 switches a limit off."""

    preset: Preset = "standard"
    exit_gate: ExitGate = "dual"
    no_progress_threshold: int = 3
    same_error_threshold: int = 5
    output_decline_percent: int = 70
    cooldown_minutes: float = 0.0
    test_saturation: int = 3
    treading_window: int = 6  # unclaimed iterations of a story that are looked at together
    treading_lines: int = 10  # they have to differ by so many, or they tread water
    stuck_same_error: int = 3  # so many times in a row, progress or not
    stuck_same_reply: int = 3  # near-identical ones in a row, without progress
    stuck_alternation: int = 4  # A B A B, without progress
    stuck_revisits: int = 3  # of trees seen before, in a row
    interim_checks: int = 5  # every so many unclaimed iterations in a row the checks run
    limits: Limits = Limits()
    ask_for_status: bool = True  # an answer without its block is put back to the agent, once
    experiments: Experiments = "auto"
    changed_tests: ChangedTests = "show"
    ask_for_tests: AskForTests = "auto"
    doubts: bool = False  # a command may doubt what is green
    commits: bool = True  # a passed story gets a commit of its own
    on_usage_limit: OnUsageLimit = "wait"
    mode: Mode = "script"


MIN_INDICATORS = 2  # of the dual gate
REFUSALS = 2  # of a story's request, in a row: it waits for a person
STARTUP_ERRORS = 2  # in a row: something is broken here
UNANSWERED = 2  # times a status block was asked for in vain: it is not asked for again
SHARE_FROM = 6  # iterations that every story may use
SILENT_STALLS = 3  # in a row: no word came before the stall clock ran out
PAID_FAILURES = 10  # infrastructure failures after model output, in a row
