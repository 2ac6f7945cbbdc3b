"""What one start may use while it runs: money and tokens, of its own or of what the run has left.

Where the settings name nothing for a single start, it may use what is left to the run, divided by
the lanes that are at work, and of the money no more than a story's share while another story can
run: one start that runs away must not take the night of the others.  A start is ended before the
step that would pass its ceiling; what a person adds to the run's budget meanwhile raises it, but
with lanes beside it only that of the next starts: each of those under way would take all of it.
"""

from collections.abc import Callable

from ralphloop.agents.meter import Reading
from ralphloop.core import Value
from ralphloop.core.model import Ceiling, Usage
from ralphloop.core.policy import Limits
from ralphloop.core.totals import money
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace

_LEAST_USD = 0.0001  # zero would mean that there is no limit


class StartLimits(Value, kw_only=True):
    """What a start may use of each, and the setting that says so; 0 means no limit."""

    usd: float = 0.0
    usd_setting: str = ""
    tokens: int = 0
    tokens_setting: str = ""

    def met_by(self, reading: Reading) -> str:
        """Which limit another step would pass, in words; empty where none."""
        used = reading.used
        if 0 < self.usd < reading.ahead.dollars:
            spent = f"it used {money(used.dollars)} of {money(self.usd)}"
            return f"{spent}, and another step would pass it ({self.usd_setting})"
        if 0 < self.tokens < reading.ahead.fresh_tokens:
            spent = f"it used {used.fresh_tokens:,} of {self.tokens:,} tokens"
            return f"{spent}, and another step would pass it ({self.tokens_setting})"
        return ""


class StartBudget(Value, kw_only=True):
    """What the run leaves for one start; None means no limit."""

    usd: float | None = None
    tokens: int | None = None
    is_share: bool = False  # the money is what one story may use, not all that is left

    @property
    def is_used_up(self) -> bool:
        """Nothing may be started with it."""
        return (self.usd is not None and self.usd <= 0) or (
            self.tokens is not None and self.tokens <= 0
        )


def budget_after(run: Run, workspace: Workspace, spent: Usage) -> StartBudget:
    """What is left for more of a start that has used so much, which is not yet written down."""
    usd = run.money_left()
    if usd is not None:
        usd = workspace.reserve_money(usd) - spent.dollars
    tokens = tokens_left(run)
    if tokens is not None:
        tokens = workspace.reserve_tokens(tokens) - spent.fresh_tokens
    return StartBudget(usd=usd, tokens=tokens)


def tokens_left(run: Run) -> int | None:
    """Tokens that the run has left by what is written down; None without a limit."""
    most = run.limits.max_tokens
    return max(0, most - run.totals().fresh_tokens) if most else None


def ceiling_kind(run: Run, *, is_share: bool = False) -> Ceiling:
    """Whose ceiling a start meets: with lanes beside it, only its own part is used up.

    Where it has other limits as well it may meet one of those, which says nothing of its story.
    """
    limits = run.config.limits
    has_own = bool(limits.max_start_cost_usd or limits.max_start_tokens)
    if is_share and not (has_own or run.limits.max_tokens):
        return "share"
    return "start" if is_share or has_own or run.config.lanes.count > 1 else "run"


def start_ceiling(run: Run, budget: StartBudget) -> Callable[[Reading], str] | None:
    """Says which ceiling a start has met, from what it has used; None where there is none."""
    own = run.config.limits
    at_start = run.limits
    is_limited = own.max_start_cost_usd or own.max_start_tokens
    if not is_limited and budget.usd is None and budget.tokens is None:
        return None

    def words(reading: Reading) -> str:
        return _start_limits(run, budget, at_start).met_by(reading)

    return words


def limits_of_start(run: Run, budget: StartBudget) -> StartLimits:
    """What a start may use as things stand now, as data."""
    return _start_limits(run, budget, run.limits)


def _start_limits(run: Run, budget: StartBudget, at_start: Limits) -> StartLimits:
    """The same for one that began with those limits of the run."""
    own = run.config.limits
    now = at_start if run.config.lanes.count > 1 else run.limits
    usd = own.max_start_cost_usd
    usd_setting = "limits.max_start_cost_usd"
    if budget.usd is not None:
        left = budget.usd + now.max_cost_usd - at_start.max_cost_usd
        if not usd or left < usd:
            usd = max(left, _LEAST_USD)
            usd_setting = "limits.max_story_share" if budget.is_share else "limits.max_cost_usd"
    tokens = own.max_start_tokens
    tokens_setting = "limits.max_start_tokens"
    if budget.tokens is not None:
        tokens_left = budget.tokens + now.max_tokens - at_start.max_tokens
        if not tokens or tokens_left < tokens:
            tokens = max(tokens_left, 1)
            tokens_setting = "limits.max_tokens"
    return StartLimits(
        usd=usd, usd_setting=usd_setting, tokens=tokens, tokens_setting=tokens_setting
    )
