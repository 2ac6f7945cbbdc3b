"""Plain text: what an exit code and a CLI's own sentence mean, and what honest words do not."""

from __future__ import annotations

import pytest

from ralphloop.core.model import Outcome
from ralphloop.readers import read, reader_for
from tests.agents.events import NOW, TRUE_BLOCK


@pytest.mark.parametrize(
    "output, code, outcome",
    [
        ("All done.", 0, Outcome.COMPLETED),
        ("", 0, Outcome.EMPTY),
        (" \n\n", 0, Outcome.EMPTY),
        ("half a sen", 143, Outcome.KILLED),
        ("", -9, Outcome.KILLED),
        ("", 130, Outcome.KILLED),
        ("sh: agent: not found", 127, Outcome.STARTUP_ERROR),
        ("", 126, Outcome.STARTUP_ERROR),
        ("It broke.", 2, Outcome.ERROR),
        ("", 2, Outcome.STARTUP_ERROR),
    ],
)
def test_text_is_judged_by_its_exit_code(output: str, code: int, outcome: Outcome) -> None:
    """Words and an exit code are all there is."""
    assert read(output.encode(), agent="text", exit_code=code).outcome is outcome


SENTENCES = [
    ("API Error: Connection refused — a firewall or proxy may be blocking it", Outcome.TRANSIENT),
    (
        "API Error: 529 Overloaded. This is a server-side issue, usually temporary.",
        Outcome.TRANSIENT,
    ),
    ("API Error: Request rejected (429) · slow down", Outcome.TRANSIENT),
    ("API Error: 500 Internal server error.", Outcome.TRANSIENT),
    ("API Error: 401 OAuth token has expired.", Outcome.FATAL),
    ("API Error: 400 messages.0: bad thing", Outcome.ERROR),
    ("Request timed out", Outcome.TRANSIENT),
    ("Error: Reached max turns (2)", Outcome.LIMIT),
    ("Error: Exceeded USD budget (0.5)", Outcome.LIMIT),
    ("Prompt is too long", Outcome.LIMIT),
    ("Execution error", Outcome.INTERRUPTED),
    ("Invalid API key · Please run /login", Outcome.FATAL),
    ("Not logged in · Please run /login", Outcome.FATAL),
    ("Credit balance is too low", Outcome.FATAL),
    ("Failed to authenticate. API Error: 403 Your API key does not have permission", Outcome.FATAL),
    ("Your usage allocation has been disabled by your admin", Outcome.FATAL),
    ("You've hit your limit · resets 5pm (Europe/Vilnius)", Outcome.USAGE_LIMIT),
    ("You've hit your 5-hour limit · resets 10:27pm (UTC)", Outcome.USAGE_LIMIT),
    ("You've hit your session limit · resets 9pm (UTC)", Outcome.USAGE_LIMIT),
    ("You’ve hit your usage limit. Try again at 10:29 PM.", Outcome.USAGE_LIMIT),
    ("You've reached your weekly limit", Outcome.USAGE_LIMIT),
    ("You're out of extra usage · resets 9pm", Outcome.USAGE_LIMIT),
    ("5-hour limit reached ∙ resets 3pm", Outcome.USAGE_LIMIT),
    ("Claude AI usage limit reached|1749924000", Outcome.USAGE_LIMIT),
]


@pytest.mark.parametrize("agent", ["text", "claude", "auto"])
@pytest.mark.parametrize("sentence, outcome", SENTENCES)
def test_a_sentence_of_the_cli_is_understood(sentence: str, outcome: Outcome, agent: str) -> None:
    """As the whole answer, or as the last line of a failed one, it says how the start ended."""
    alone = f"{sentence}\n".encode()
    assert read(alone, agent=agent, exit_code=1, now=NOW).outcome is outcome
    assert read(alone, agent=agent, exit_code=0, now=NOW).outcome is outcome
    after_words = f"Starting.\n{sentence}\n".encode()
    assert read(after_words, agent=agent, exit_code=1, now=NOW).outcome is outcome
    assert read(after_words, agent=agent, exit_code=0, now=NOW).outcome is Outcome.COMPLETED


HONEST = [
    "You've hit your limit now shows only at 100 % of the plan.",
    "Invalid API key handling was added to the client.",
    "Credit balance is too low for the demo tenant in the fixtures, so I raised it.",
    "Not logged in users are sent to the start page.",
    "Added tests: 5 requests per hour rate limit middleware.",
    "README documents a 5-hour limit and the API Error: 529 page.",
    "Execution error pages are translated.",
    "Usage limit reached mails are sent once.",
]


@pytest.mark.parametrize("answer", HONEST)
def test_the_same_words_in_an_honest_answer_mean_nothing(answer: str) -> None:
    """An answer about limits and keys is an answer; a failing one is an ordinary error."""
    for agent in ("text", "claude"):
        assert read(answer.encode(), agent=agent, exit_code=0).outcome is Outcome.COMPLETED
        assert read(answer.encode(), agent=agent, exit_code=1).outcome is Outcome.ERROR


def test_the_limit_is_told_with_its_reset() -> None:
    """Epoch, kind and rejection come from the sentence."""
    got = read(b"Claude AI usage limit reached|1749924000", agent="text", exit_code=1)
    assert got.rate_limit.rejected
    assert got.rate_limit.resets_at == 1_749_924_000


def test_the_whole_output_is_the_final_message() -> None:
    """Text is one message, and its block is final."""
    got = read(f"Notes.\n\n{TRUE_BLOCK}\n".encode(), agent="text")
    assert got.final_text == got.text
    assert got.status_is_final
    assert got.format == "text"


def test_text_is_never_taken_for_events() -> None:
    """An agent that prints text may print the events of others."""
    line = b'{"type":"result","subtype":"success","is_error":true,"result":"Credit balance is too low"}\n'
    got = read(line, agent="text")
    assert got.outcome is Outcome.COMPLETED
    assert got.reader == "text"


def test_stderr_explains_a_start_that_printed_nothing() -> None:
    """The first real line of stderr is the reason, or says what kind of failure it was."""
    noise = "(node:4121) ExperimentalWarning: x\n"
    got = read(b"", agent="text", exit_code=1, stderr=f"{noise}error: unknown option '--x'\nmore\n")
    assert (got.outcome, got.reason) == (Outcome.STARTUP_ERROR, "error: unknown option '--x'")
    got = read(b"", agent="text", exit_code=1, stderr="Not logged in · Please run /login\n")
    assert got.outcome is Outcome.FATAL


def test_noise_on_stderr_beside_an_answer_means_nothing() -> None:
    """A good answer is good whatever stderr says."""
    got = read(
        b"Done.", agent="text", exit_code=0, stderr="error: could not read the update channel"
    )
    assert got.outcome is Outcome.COMPLETED


def test_invalid_bytes_and_nul_do_not_hide_the_block() -> None:
    """Text with broken UTF-8 and NUL bytes is still read."""
    got = read(b"\xff\xfe caf\xc3\x00\n" + TRUE_BLOCK.encode() + b"\n\xf0\x9f", agent="text")
    assert got.status is not None
    assert got.status.exit_signal


def test_a_character_cut_between_chunks_is_whole_again() -> None:
    """Multi-byte characters survive any chunking."""
    reader = reader_for("text")
    for byte in "naïve 🚀 Straße".encode():
        reader.feed(bytes([byte]))
    assert reader.finish(exit_code=0).text == "naïve 🚀 Straße"


def test_the_last_line_shows() -> None:
    """While it runs, the newest line is the visible step."""
    steps = reader_for("text").feed(b"first\nsecond\n\n")
    assert [step.summary for step in steps] == ["second"]


def test_unknown_readers_are_an_error() -> None:
    """A name nobody knows is refused with the known ones."""
    with pytest.raises(ValueError, match="known are auto, text, claude"):
        reader_for("cursor")
