"""What a start gave, and what is kept of it."""

from __future__ import annotations

import msgspec
import pytest

from ralphloop.core.iteration import Iteration, KeptAnswer, Result
from ralphloop.core.model import Outcome, RateLimit, Response
from ralphloop.core.totals import Window
from ralphloop.readers import reader_for
from ralphloop.text.status_block import Status, StatusBlock

UNSAID = Response(reader="text", outcome=Outcome.COMPLETED, final_text="Worked.", text="Worked.")
BLOCK = StatusBlock(status=Status.COMPLETE)
GIVEN = Response(reader="text", outcome=Outcome.COMPLETED, status=BLOCK, status_is_final=True)


def test_an_answer_is_heard_with_the_block_that_came_when_it_was_asked_for() -> None:
    """Its words stay, and that it had to be asked; one that was asked in vain is as it was."""
    heard = Result(response=UNSAID, asked=GIVEN).heard
    assert (heard.status, heard.status_is_final, heard.final_text) == (BLOCK, True, "Worked.")
    assert len(heard.warnings) == 1
    assert Result(response=UNSAID).heard == Result(response=UNSAID, asked=UNSAID).heard == UNSAID


@pytest.mark.parametrize(
    "ours, theirs, words",
    [("silent too long", "killed", "silent too long"), ("", "no such model", "no such model")],
)
def test_why_it_ended_is_said_by_who_ended_it(ours: str, theirs: str, words: str) -> None:
    """Our reason before the agent's, and its own where we did nothing."""
    kept = Iteration(stopped_because=ours, response=KeptAnswer(reason=theirs))
    assert kept.why_it_ended == words
    assert Iteration().why_it_ended == ""


@pytest.mark.parametrize(
    "answer",
    [
        UNSAID,
        Response(reader="text", outcome=Outcome.KILLED, text="Half a sen"),
        Response(
            reader="text",
            outcome=Outcome.USAGE_LIMIT,
            final_text="",
            rate_limit=RateLimit(resets_at=9, windows=(Window(kind="five_hour", used=0.5),)),
        ),
    ],
    ids=["finished", "cut off", "refused"],
)
def test_a_short_answer_comes_back_as_it_was(answer: Response) -> None:
    """Its end with it: one that was cut off has words, and no last ones."""
    assert KeptAnswer.of(answer).response() == answer


def test_where_no_limit_was_told_of_none_is_written_down() -> None:
    """A night has thousands of answers, and most of them know nothing of limits."""
    answer = reader_for("text").finish(exit_code=0)
    assert b"rate_limit" not in msgspec.json.encode(answer)
    assert b"rate_limit" not in msgspec.json.encode(KeptAnswer.of(answer))
