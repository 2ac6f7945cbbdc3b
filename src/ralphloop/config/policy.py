"""The thresholds of the core, taken from the settings."""

from __future__ import annotations

from ralphloop.config.model import Config
from ralphloop.core.policy import Mode, Policy


def policy_of(config: Config, *, mode: Mode = Mode.SCRIPT) -> Policy:
    """What the settings mean for the decisions."""
    circuit = config.circuit
    return Policy(
        preset=circuit.preset,
        exit_gate=config.exit.gate,
        no_progress_threshold=circuit.no_progress_threshold,
        same_error_threshold=circuit.same_error_threshold,
        output_decline_percent=circuit.output_decline_percent,
        cooldown_minutes=circuit.cooldown_minutes,
        test_saturation=circuit.test_saturation,
        max_iterations=config.limits.max_iterations,
        on_usage_limit=config.limits.on_usage_limit,
        mode=mode,
    )
