"""Which of two values of a setting is looser: the one that lets more happen before somebody looks.

Settings without a direction (a command, an address) are not here: any other value of theirs is one
to agree to.  Zero means "no limit" wherever a limit may be switched off.
"""

from collections.abc import Callable
from typing import Any

Comparison = Callable[[Any, Any], bool]  # (what holds, what is wanted): is the second looser?


def is_looser(name: str, holds: object, wanted: object) -> bool:
    """True where the wanted value lets more happen, or nobody can say that it does not."""
    if holds == wanted:
        return False
    compare = _COMPARED.get(name)
    return compare is None or compare(holds, wanted)


def has_direction(name: str) -> bool:
    return name in _COMPARED


def _higher(holds: float, wanted: float) -> bool:
    return wanted > holds


def _lower(holds: float, wanted: float) -> bool:
    return wanted < holds


def _higher_or_none(holds: float, wanted: float) -> bool:
    if wanted == 0:
        return True
    return holds != 0 and wanted > holds


def _sooner(holds: float, wanted: float) -> bool:
    """Of a pause that ends by itself; 0: only a person ends it."""
    if wanted == 0:
        return False
    return holds == 0 or wanted < holds


def _another_clock(holds: str, wanted: str) -> bool:
    """Times of day go round: any other one may be the later."""
    return holds not in ("", wanted)


def _reaches_more(holds: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    if wanted == ("none",) or holds == ("open",):
        return False
    return not set(wanted) <= set(holds)


def _names_more(holds: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return not set(wanted) <= set(holds)


def _names_fewer(holds: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return not set(wanted) >= set(holds)


def _from_loosest(*words: str) -> Comparison:
    order = {word: position for position, word in enumerate(words)}

    def compare(holds: str, wanted: str) -> bool:
        return order[wanted] < order[holds]

    return compare


_COMPARED: dict[str, Comparison] = {
    "agent.safety": _from_loosest("minimal", "moderate", "strict"),
    "checks.timeout": _higher_or_none,
    "checks.baseline": _from_loosest("tolerate", "strict"),
    "proof.experiments": _from_loosest("off", "auto", "always"),
    "proof.changed_tests": _from_loosest("show", "review", "ask"),
    "proof.ask_for_tests": _from_loosest("off", "auto"),
    "limits.max_iterations": _higher_or_none,
    "limits.max_cost_usd": _higher_or_none,
    "limits.max_tokens": _higher_or_none,
    "limits.max_time": _higher_or_none,
    "limits.calls_per_hour": _higher_or_none,
    "limits.iteration_timeout": _higher_or_none,
    "limits.stall_timeout": _higher_or_none,
    "limits.max_attempts": _higher_or_none,
    "limits.max_story_share": _higher_or_none,
    "limits.reserve": _lower,
    "limits.until": _another_clock,
    "limits.on_usage_limit": _from_loosest("wait", "stop"),
    "circuit.preset": _from_loosest("standard", "strict"),
    "circuit.no_progress_threshold": _higher,
    "circuit.same_error_threshold": _higher,
    "circuit.output_decline_percent": _higher,
    "circuit.cooldown_minutes": _sooner,
    "circuit.test_saturation": _higher_or_none,
    "circuit.treading_window": _higher_or_none,
    "circuit.treading_lines": _lower,
    "circuit.interim_checks": _higher_or_none,
    "exit.gate": _from_loosest("explicit", "dual"),
    "stories.accept_found": _higher,
    "stories.write_back": _higher,
    "stories.max_found": _higher_or_none,
    "sandbox.mode": _from_loosest("off", "auto", "on"),
    "sandbox.network": _reaches_more,
    "sandbox.write": _names_more,
    "sandbox.hide": _names_fewer,
    "sandbox.git": _from_loosest("guarded", "read-only"),
}
