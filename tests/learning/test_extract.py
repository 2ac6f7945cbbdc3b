"""What can be learned without asking a model."""

from __future__ import annotations

import msgspec
import pytest

from ralphloop.core.iteration import Iteration
from ralphloop.learning.capturing import notes_of
from ralphloop.learning.model import Note, NoteKind, NoteSource
from tests.learning.support import record, red, story

FILES = {"src/api/list.py", "tests/test_list.py", "src/api"}
FAILURE = red(
    "pytest -q", "E   KeyError: 'limit'\nFAILED tests/test_list.py::test_limit - KeyError"
)


def extracted(*records: dict[str, object]) -> list[Note]:
    """The notes of the first record, the others being earlier attempts."""
    now, *earlier = (msgspec.convert(one, Iteration) for one in records)
    about = story(title="Add paging to the list")
    return notes_of(now, earlier, story=about, exists=lambda path: path in FILES)


def of(notes: list[Note], source: NoteSource) -> list[Note]:
    """The notes from one source."""
    return [one for one in notes if one.source is source]


def test_a_failure_and_the_change_that_made_it_go_away() -> None:
    """A check that failed before and is green now yields the error and the files that changed."""
    now = record(passed=True, files=["src/api/list.py"])
    (note,) = of(extracted(now, record(checks=[FAILURE])), NoteSource.CHECK)
    assert note.kind is NoteKind.FAILURE
    assert "`pytest -q` failed" in note.text
    assert "KeyError" in note.text
    assert note.lesson == "went away with a change in `src/api/list.py`"
    assert "check pytest -q" in note.evidence
    assert "file src/api/list.py" in note.evidence


def test_what_was_changed_since_the_failure_made_it_go_away() -> None:
    """Also by a start in between that nobody judged; a line in a changelog mends no test."""
    now = record(passed=True, files=["CHANGELOG.md"])
    between = record(files=["src/api/list.py"])
    (note,) = of(extracted(now, between, record(checks=[FAILURE])), NoteSource.CHECK)
    assert note.lesson == "went away with a change in `src/api/list.py`"


def test_a_command_that_came_with_the_repair_is_named() -> None:
    """What ran only when it turned green is part of the lesson; checks and plain tools are not."""
    calls = [("make schema", True), ("pytest -q", True), ("make wrong", False), ("ls src", True)]
    tools = [{"name": "Bash", "summary": words, "ok": ok} for words, ok in calls]
    now = record(passed=True, files=["src/api/list.py"], tools=tools)
    (note,) = of(extracted(now, record(checks=[FAILURE])), NoteSource.CHECK)
    assert note.lesson == "went away with a change in `src/api/list.py` and `make schema`"
    assert "command make schema" in note.evidence
    (note,) = of(extracted(now, record(checks=[FAILURE], tools=tools)), NoteSource.CHECK)
    assert "make" not in note.lesson


def test_an_attempt_that_fails_says_in_what() -> None:
    """Failing checks are named; without one, the error the agent ended in."""
    (note,) = extracted(record(checks=[FAILURE]))
    assert (note.lesson, note.source) == ("", NoteSource.CHECK)
    (note,) = extracted(record(error="ModuleNotFoundError: No module named 'yaml'"))
    assert note.source is NoteSource.ERROR
    assert "ModuleNotFoundError" in note.text


def test_checks_are_named_without_the_place_of_their_program() -> None:
    """Where an interpreter lies is no part of what was learned."""
    (note,) = extracted(record(checks=[red("/opt/py/bin/python -m pytest", "error: x is y")]))
    assert note.text.startswith("`python -m pytest` failed")


def test_the_agents_own_words() -> None:
    """Lines it marks as learned are taken with the evidence we see for them."""
    said = """\
LEARNED: the cursor in src/api/list.py is opaque, never parse it
- **Gotcha:** the clock is frozen in tests

Some closing words.
- nothing that it marks
"""
    notes = of(extracted(record(passed=True, said=said)), NoteSource.AGENT)
    assert [one.text for one in notes] == [
        "the cursor in src/api/list.py is opaque, never parse it",
        "the clock is frozen in tests",
    ]
    assert [one.evidence for one in notes] == [("file src/api/list.py",), ()]


@pytest.mark.parametrize(
    "said",
    [
        "```\nLEARNED: from a file that was shown\n```",
        "> LEARNED: from a quotation",
        "        LEARNED: from an echoed prompt",
        "---RALPH_STATUS---\nLEARNED: inside the block\n---END_RALPH_STATUS---",
        "LEARNED:",
        "LEARNED: Add paging to the list",
        "LEARNED: page through the results with the new cursor",
        "I have learned: nothing",
    ],
)
def test_exhibits_and_copies_are_not_its_words(said: str) -> None:
    """Quotations, code, the story told back and the RECOMMENDATION are nothing learned."""
    now = record(
        passed=True, said=said, recommendation="Page through the results with the new cursor"
    )
    assert not of(extracted(now), NoteSource.AGENT)


def test_copies_are_told_by_their_words() -> None:
    """Most words from the original make a copy, some do not."""
    original = "Users can page through the list of orders by date"
    new = "orders are paged by an opaque cursor made in src/db.py"
    said = f"LEARNED: page through the list of orders\nLEARNED: {new}"
    notes = extracted(record(passed=True, said=said, recommendation=original))
    assert [one.text for one in notes] == [new]


def test_notes_are_bounded() -> None:
    """However much an agent says, few short notes remain."""
    said = "\n".join(f"LEARNED: {'word ' * 5_000} number {n}" for n in range(500))
    notes = extracted(record(passed=True, said=said))
    assert len(notes) <= 6
    assert all(len(one.text) <= 300 for one in notes)


def test_words_of_a_start_that_went_back_to_its_lane_are_kept() -> None:
    """What did not fit on what had landed was good where it was made; what failed is not heard."""
    told = "LEARNED: the cursor in src/api/list.py is opaque, never parse it"
    went_back = record(said=told, files=["src/api/list.py"])
    went_back["evidence"]["returned"] = {"told": "conflict with US-2"}
    now = record(passed=True, said="Both stand now.", files=["src/api/list.py"])
    (note,) = of(extracted(now, went_back), NoteSource.AGENT)
    assert "opaque" in note.text
    twice = of(extracted(record(passed=True, said=told), went_back), NoteSource.AGENT)
    assert len(twice) == 1
    assert of(extracted(now, record(said=told)), NoteSource.AGENT) == []
