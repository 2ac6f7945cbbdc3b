"""What the settings mean for the decisions of the core."""

from __future__ import annotations

from ralphloop.config.model import CommitPolicy, Config, LimitsSection
from ralphloop.core.limits import Limits
from ralphloop.core.policy import Mode, Policy


def policy_of(config: Config, *, mode: Mode = Mode.SCRIPT) -> Policy:
    """The thresholds."""
    circuit = config.circuit
    return Policy(
        preset=circuit.preset,
        exit_gate=config.exit.gate,
        no_progress_threshold=circuit.no_progress_threshold,
        same_error_threshold=circuit.same_error_threshold,
        output_decline_percent=circuit.output_decline_percent,
        cooldown_minutes=circuit.cooldown_minutes,
        test_saturation=circuit.test_saturation,
        limits=limits_of(config.limits),
        ask_for_status=config.agent.ask_for_status,
        commits=config.git.commit is CommitPolicy.STORY,
        on_usage_limit=config.limits.on_usage_limit,
        mode=mode,
    )


def limits_of(section: LimitsSection) -> Limits:
    """What a run may use."""
    return Limits(**{name: getattr(section, name) for name in Limits.__struct_fields__})
