"""What providers say when a request fails: whose failure it is, whatever stream it comes by."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop.core.model import Outcome
from ralphloop.readers import read
from ralphloop.readers.failures import concerns_login, failure_verdict
from tests.agents.events import NOW, lines

_LINES = Path(__file__).with_name("providers.txt").read_text().splitlines()
ROWS = [line.split("|", 2) for line in _LINES if not line.startswith("#")]


@pytest.mark.parametrize("owner, provider, words", ROWS)
def test_a_providers_sentence_has_its_owner(owner: str, provider: str, words: str) -> None:
    """On stderr of a failed start, as an error event and as the failed result of a stream."""
    outcome = Outcome(owner)
    on_stderr = read(b"", agent="text", exit_code=1, stderr=f"{words}\n", now=NOW)
    assert on_stderr.outcome is outcome, provider
    assert failure_verdict(words).outcome is outcome, provider
    failed = {"type": "turn.failed", "error": {"message": words}}
    begun = {"type": "thread.started", "thread_id": "t"}
    got = read(lines(begun, failed), agent="codex", exit_code=1, now=NOW)
    assert got.outcome is outcome, provider


def test_a_login_is_not_to_blame_for_a_certificate() -> None:
    """Who is told to look at a login has one that is wrong."""
    assert not concerns_login("unable to verify the first certificate")
    assert not concerns_login("This request requires more credits")
    assert concerns_login("invalid x-api-key")


@pytest.mark.parametrize(
    "words",
    [
        "AssertionError: expected 3 models loaded, got 2",
        "FAILED tests/test_login.py::test_access_is_denied",
        "E   ValueError: region is empty",
        "the certificate page is done",
        "user not found in fixtures.json",
    ],
)
def test_words_of_the_work_itself_have_no_provider(words: str) -> None:
    """What a test of the project says on stderr is an ordinary failure of the start."""
    got = read(b"Working.", agent="text", exit_code=1, stderr=f"{words}\n", now=NOW)
    assert got.outcome is Outcome.ERROR
