"""All thresholds in one value, with the two presets.

`standard` warns first and stops second; `strict` stops at the first sign.  Any threshold may be
set on top of a preset.
"""

from __future__ import annotations

from enum import StrEnum

from ralphloop.core.limits import Limits
from ralphloop.core.model import Value


class ExitGate(StrEnum):
    DUAL = "dual"  # EXIT_SIGNAL and at least two indicators
    EXPLICIT = "explicit"  # EXIT_SIGNAL alone


class OnUsageLimit(StrEnum):
    WAIT = "wait"
    STOP = "stop"


class Mode(StrEnum):
    SCRIPT = "script"
    HOOK = "hook"


class Preset(StrEnum):
    STANDARD = "standard"
    STRICT = "strict"


class Policy(Value, kw_only=True, forbid_unknown_fields=True):
    """What counts as stuck, done and too much; 0 switches a limit off."""

    preset: Preset = Preset.STANDARD
    exit_gate: ExitGate = ExitGate.DUAL
    no_progress_threshold: int = 3
    same_error_threshold: int = 5
    output_decline_percent: int = 70
    cooldown_minutes: float = 0.0
    test_saturation: int = 3
    limits: Limits = Limits()
    ask_for_status: bool = True  # an answer without its block is put back to the agent, once
    commits: bool = True  # a passed story gets a commit of its own
    on_usage_limit: OnUsageLimit = OnUsageLimit.WAIT
    mode: Mode = Mode.SCRIPT

    @property
    def probes_before_opening(self) -> bool:
        """`standard` goes through HALF_OPEN; `strict` opens at once."""
        return self.preset is Preset.STANDARD

    @property
    def decline_opens(self) -> bool:
        return self.preset is Preset.STRICT


MIN_INDICATORS = 2  # of the dual gate
STUCK_ERRORS = 3  # same error: stuck
STUCK_REPLIES = 3  # near-identical replies
STUCK_ALTERNATION = 4  # A B A B
STUCK_REVISITS = 3  # trees seen before, in a row
DECLINE_HISTORY = 3  # earlier iterations a decline is measured against
STARTUP_ERRORS = 2  # in a row: something is broken here
UNANSWERED = 2  # times a status block was asked for in vain: it is not asked for again
PAID_FAILURES = 10  # infrastructure failures after model output, in a row
