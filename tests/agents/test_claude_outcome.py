"""Claude Code: how a start ended."""

from __future__ import annotations

from typing import Any

import pytest

from ralphloop.core.model import Outcome
from ralphloop.core.totals import Window
from tests.agents.events import api_error, init, read_claude, result, retry, said, text


@pytest.mark.parametrize(
    "error, status, outcome",
    [
        ("authentication_failed", 401, Outcome.FATAL),
        ("oauth_org_not_allowed", 403, Outcome.FATAL),
        ("invalid_request", 413, Outcome.LIMIT),
        ("account_on_hold", None, Outcome.FATAL),
        ("verification_required", None, Outcome.FATAL),
        ("billing_error", 400, Outcome.FATAL),
        ("model_not_found", 404, Outcome.FATAL),
        ("cloud_credential_error", None, Outcome.FATAL),
        ("rate_limit", 429, Outcome.TRANSIENT),
        ("overloaded", 529, Outcome.TRANSIENT),
        ("server_error", None, Outcome.TRANSIENT),
        ("unknown", 502, Outcome.TRANSIENT),
        ("unknown", 401, Outcome.FATAL),
        ("unknown", None, Outcome.ERROR),
        ("invalid_request", 400, Outcome.ERROR),
    ],
)
def test_api_errors_by_kind(error: str, status: int | None, outcome: Outcome) -> None:
    """The kind of the last API error decides, then its status; `success` and words do not."""
    failed = result(
        "It failed.", is_error=True, terminal_reason="api_error", api_error_status=status
    )
    got = read_claude(init(), api_error("It failed.", error, status), failed, exit_code=1)
    assert got.outcome is outcome


@pytest.mark.parametrize(
    "more, outcome",
    [
        ({"terminal_reason": "max_turns", "subtype": "error_max_turns"}, Outcome.LIMIT),
        ({"terminal_reason": None, "subtype": "error_max_turns"}, Outcome.LIMIT),
        ({"terminal_reason": "budget_exhausted"}, Outcome.LIMIT),
        ({"terminal_reason": "prompt_too_long", "api_error_status": 400}, Outcome.LIMIT),
        ({"terminal_reason": "structured_output_retry_exhausted"}, Outcome.LIMIT),
        ({"terminal_reason": "aborted_tools"}, Outcome.INTERRUPTED),
        ({"api_error": "connection_failed"}, Outcome.TRANSIENT),
        ({"api_error": "usage_limit_reached", "api_error_status": 429}, Outcome.USAGE_LIMIT),
        ({"subtype": "error_during_execution", "num_turns": 0}, Outcome.STARTUP_ERROR),
        ({"startup_failure_reason": "bypass_root"}, Outcome.STARTUP_ERROR),
        ({"stop_reason": "refusal", "terminal_reason": "api_error"}, Outcome.ERROR),
    ],
)
def test_failed_results_by_reason(more: dict[str, Any], outcome: Outcome) -> None:
    """A failed result is classified by its fields, in their order."""
    got = read_claude(
        init(), result("words about a connection", is_error=True, **more), exit_code=1
    )
    assert got.outcome is outcome


@pytest.mark.parametrize(
    "words, outcome",
    [
        ("Credit balance is too low", Outcome.FATAL),
        ("Invalid API key · Fix external API key", Outcome.FATAL),
        ("Not logged in · Please run /login", Outcome.FATAL),
        ("You've hit your weekly limit · resets Nov 20, 11:34am (UTC)", Outcome.USAGE_LIMIT),
        ("Claude AI usage limit reached|1749924000", Outcome.USAGE_LIMIT),
        (
            "API Error: Connection refused — a firewall or proxy may be blocking it",
            Outcome.TRANSIENT,
        ),
    ],
)
def test_json_results_without_fields_are_known_by_their_sentence(
    words: str, outcome: Outcome
) -> None:
    """Older versions and the json format give only the sentence, with exit code 0 or 1."""
    for code in (0, 1):
        got = read_claude(
            {"type": "result", "subtype": "success", "is_error": True, "result": words},
            exit_code=code,
        )
        assert got.outcome is outcome


@pytest.mark.parametrize(
    "words",
    [
        "You've hit your limit · resets 5pm (Europe/Vilnius)",
        "You've reached your org's monthly spend cap · ask an admin",
        "You're out of usage credits · add funds",
        "Your org is out of usage · resets Dec 1",
        "Opus 6 requires usage credits · /upgrade",
    ],
)
def test_a_429_that_announces_a_limit_is_a_limit(words: str) -> None:
    """The sentence tells a usage limit from a 429 that passes."""
    failed = result(words, is_error=True, terminal_reason="api_error", api_error_status=429)
    got = read_claude(init(), api_error(words, "rate_limit", 429), failed, exit_code=1)
    assert got.outcome is Outcome.USAGE_LIMIT


def test_a_limit_without_an_event_takes_its_time_from_the_sentence() -> None:
    """The json format names the limit but not its epoch: the sentence is read."""
    words = "You've hit your 5-hour limit · resets 10:27pm (UTC)"
    got = read_claude(result(words, is_error=True, api_error="usage_limit_reached"), exit_code=1)
    assert got.rate_limit.resets_at == 1_794_781_620


def test_a_warning_about_the_limit_is_no_limit() -> None:
    """`allowed_warning` informs; the start was good."""
    info = {
        "status": "allowed_warning",
        "resetsAt": 17,
        "rateLimitType": "five_hour",
        "utilization": 0.93,
    }
    got = read_claude(
        init(),
        {"type": "rate_limit_event", "rate_limit_info": info},
        said(text("ok")),
        result("ok"),
    )
    assert got.outcome is Outcome.COMPLETED
    assert not got.rate_limit.rejected
    assert got.rate_limit.windows == (Window(kind="five_hour", used=0.93, resets_at=17),)


def test_paid_overage_is_no_rejection() -> None:
    """A rejected window that goes on as paid extra usage stops nobody."""
    info = {
        "status": "rejected",
        "resetsAt": 17,
        "rateLimitType": "five_hour",
        "isUsingOverage": True,
    }
    got = read_claude(
        init(),
        {"type": "rate_limit_event", "rate_limit_info": info},
        said(text("ok")),
        result("ok"),
    )
    assert not got.rate_limit.rejected


def test_limit_words_in_a_good_answer_mean_nothing() -> None:
    """An honest answer may speak of limits, keys and errors."""
    answer = "API Error: 529 is now retried; 'You've hit your limit' shows at 100 %."
    assert read_claude(init(), said(text(answer)), result(answer)).outcome is Outcome.COMPLETED


def test_good_result_then_killed_is_completed() -> None:
    """Background work that had to be killed does not undo a good result."""
    for code in (143, -9, 1):
        assert (
            read_claude(init(), said(text("ok")), result("ok"), exit_code=code).outcome
            is Outcome.COMPLETED
        )


@pytest.mark.parametrize(
    "events, code, outcome",
    [
        ([], 1, Outcome.STARTUP_ERROR),
        ([init()], 143, Outcome.KILLED),
        ([init()], -2, Outcome.KILLED),
        ([init(), said(text("a"))], 0, Outcome.ERROR),
        ([init(), said(text("a")), retry("overloaded", 529)], 1, Outcome.TRANSIENT),
        ([init(), retry("overloaded", 529)], 1, Outcome.TRANSIENT),
        ([init(), retry("overloaded", 529)], 143, Outcome.KILLED),
        ([init(), retry("authentication_failed", 401)], 143, Outcome.FATAL),
        ([init(), api_error("Overloaded", "overloaded", 529)], 1, Outcome.TRANSIENT),
        ([init()], 1, Outcome.STARTUP_ERROR),
    ],
)
def test_without_a_result(events: list[dict[str, Any]], code: int, outcome: Outcome) -> None:
    """No result: killed, still retrying, cut off after an answer, or never started."""
    assert read_claude(*events, exit_code=code).outcome is outcome


def test_an_empty_answer_is_empty_unless_tools_were_refused() -> None:
    """`result: ""` is empty; with refused tools it is denied."""
    assert read_claude(init(), result("")).outcome is Outcome.EMPTY
    refused = {"tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "ls"}}
    assert read_claude(init(), result("", permission_denials=[refused])).outcome is Outcome.DENIED


def test_structured_output_is_an_answer() -> None:
    """With a schema the answer is `structured_output`."""
    assert (
        read_claude(init(), result("", structured_output={"ok": True})).outcome is Outcome.COMPLETED
    )
