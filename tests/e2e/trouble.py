"""Trouble that needs more than a status: usage limits, as the providers tell them."""

from __future__ import annotations

from tests.e2e.model_server import Turn, fail

_UNIFIED = "anthropic-ratelimit-unified"


def claude_usage_limit(*, resets_in_s: int, times: int = 1) -> Turn:
    """The five-hour limit of a subscription is reached."""
    reset = f"{{now+{resets_in_s}}}"
    headers = {
        f"{_UNIFIED}-status": "rejected",
        f"{_UNIFIED}-reset": reset,
        f"{_UNIFIED}-representative-claim": "five_hour",
        f"{_UNIFIED}-5h-status": "rejected",
        f"{_UNIFIED}-5h-reset": reset,
        f"{_UNIFIED}-5h-utilization": "1.0",
        f"{_UNIFIED}-overage-status": "rejected",
        f"{_UNIFIED}-overage-disabled-reason": "org_level_disabled",
        "retry-after": str(resets_in_s),
    }
    message = "This request would exceed your account's rate limit. Please try again later."
    return fail(429, message, headers=headers, times=times)


def codex_usage_limit(*, resets_at: int, times: int = 1) -> Turn:
    """The limit of a ChatGPT plan is reached."""
    return fail(
        429,
        "The usage limit has been reached",
        kind="usage_limit_reached",
        extra={"plan_type": "plus", "resets_at": resets_at},
        times=times,
    )
