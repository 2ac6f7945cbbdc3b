"""The grammar of the RALPH_STATUS block."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.text import status_block
from ralphloop.text.status_block import Status, StatusBlock, TestsStatus, WorkType, find_block
from tests.text.blocks import block, replaced, without


def parsed(text: str) -> StatusBlock:
    """The typed block of a text that holds one."""
    found = status_block.find_block(text)
    assert found is not None
    return found


def test_S02_AC8_a_canonical_block_gives_every_field() -> None:
    """All seven fields of a canonical block are read, typed."""
    assert parsed(block()) == StatusBlock(
        status=Status.COMPLETE,
        tasks_completed=1,
        files_modified=3,
        tests_status=TestsStatus.PASSING,
        work_type=WorkType.IMPLEMENTATION,
        exit_signal=True,
        recommendation="All requirements are met",
    )


def test_S02_AC12_a_block_with_all_required_fields_validates() -> None:
    """Nothing is wrong with a complete block."""
    assert parsed(block()).problems == ()


@pytest.mark.parametrize("key", status_block.REQUIRED)
def test_S02_AC12_each_missing_field_is_named(key: str) -> None:
    """A missing required field is the one problem that is named."""
    assert parsed(without(key)).problems == (f"{key} is missing",)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("STATUS", "FINISHED", "STATUS is 'FINISHED', expected one of IN_PROGRESS"),
        ("TESTS_STATUS", "green", "TESTS_STATUS is 'green', expected one of PASSING"),
        ("WORK_TYPE", "", "WORK_TYPE is empty, expected one of IMPLEMENTATION"),
        ("FILES_MODIFIED", "many", "FILES_MODIFIED is 'many', expected a number"),
        ("TASKS_COMPLETED_THIS_LOOP", "x[$(id)]", "expected a number"),
        ("EXIT_SIGNAL", "maybe", "EXIT_SIGNAL is 'maybe', expected true or false"),
    ],
)
def test_S02_AC12_each_unreadable_field_is_named(key: str, value: str, words: str) -> None:
    """An unreadable value is named with what was expected, and counts as absent."""
    problems = parsed(replaced(key, value)).problems
    assert len(problems) == 1
    assert words in problems[0]


@pytest.mark.parametrize(
    "value", ["true", "TRUE", "True", "**true**", "`true`", '"true"', "'true'"]
)
@pytest.mark.parametrize("comment", ["", " # all stories pass", "\t# done"])
def test_S03_AC2_exit_signal_true_in_any_dress(value: str, comment: str) -> None:
    """Emphasis, quotes, case and a trailing comment do not hide a true signal."""
    assert parsed(block(EXIT_SIGNAL=value + comment)).exit_signal is True


@pytest.mark.parametrize(
    "value",
    [
        "", "false", "FALSE", "yes", "1", "maybe", "true/false", "false | true", "<true or false>",
        "true once CI is green", "not true", "true, false", "true.", "ture", "# true", "null",
        "true#comment", "trueish", "tr ue", "`true` or `false`",
    ],
)  # fmt: skip
def test_SKILL_errors_ambiguous_exit_signal_is_false(value: str) -> None:
    """Anything but exactly true is false."""
    assert parsed(block(EXIT_SIGNAL=value)).exit_signal is False


def test_the_last_of_a_repeated_line_counts() -> None:
    """A line written again replaces the one before; a signal said twice alike is a signal."""
    again = "\nSTATUS: BLOCKED\nEXIT_SIGNAL: true\nFILES_MODIFIED: 9\n"
    found = parsed(block().replace("\n", again, 1))
    assert (found.status, found.files_modified) == (Status.COMPLETE, 3)
    assert found.exit_signal is True


def test_disputed_exit_signal_is_false() -> None:
    """Two EXIT_SIGNAL lines that disagree are no signal."""
    assert parsed(block().replace("\n", "\nEXIT_SIGNAL: false\n", 1)).exit_signal is False


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("COMPLETE", Status.COMPLETE),
        ("complete (all criteria met)", Status.COMPLETE),
        ("In Progress", Status.IN_PROGRESS),
        ("in-progress", Status.IN_PROGRESS),
        ("**BLOCKED** - needs a key", Status.BLOCKED),
        ("COMPLETED", None),
        ("INCOMPLETE", None),
        ("NOT COMPLETE", None),
        ("", None),
    ],
)
def test_SKILL_status_values_take_their_first_word(value: str, expected: Status | None) -> None:
    """Enums are their first word, and nothing that merely contains it."""
    assert parsed(block(STATUS=value)).status is expected


@pytest.mark.parametrize("work_type", list(WorkType))
def test_SKILL_work_type_values(work_type: WorkType) -> None:
    """Every WORK_TYPE of the table is read."""
    assert parsed(block(WORK_TYPE=work_type)).work_type is work_type


@pytest.mark.parametrize(
    ("value", "expected"),
    [("3", 3), ("about 4 files (~120 lines)", 4), ("3.7", 3), ("~2", 2), ("none", None),
     ("a[`id`]", None), ("9" * 400, 1_000_000_000)],
)  # fmt: skip
def test_numbers_are_their_first_integer(value: str, expected: int | None) -> None:
    """Units, floats and hostile text around a number do not matter."""
    assert parsed(block(FILES_MODIFIED=value)).files_modified == expected


texts = st.text(max_size=200)
blocks = st.builds(
    StatusBlock,
    status=st.none() | st.sampled_from(Status),
    tasks_completed=st.none() | st.integers(0, 10**9),
    files_modified=st.none() | st.integers(0, 10**9),
    tests_status=st.none() | st.sampled_from(TestsStatus),
    work_type=st.none() | st.sampled_from(WorkType),
    exit_signal=st.booleans(),
    recommendation=texts.map(status_block.tidy_recommendation),
)


@given(blocks, texts)
def test_a_rendered_block_parses_back_to_itself(original: StatusBlock, before: str) -> None:
    """Rendering and finding again changes nothing, whatever stands before the block."""
    found = find_block(
        before.replace("`", "'").replace("~", "-") + "\n\n" + status_block.render(original)
    )
    assert found is not None
    assert found == type(original)(
        **{name: getattr(original, name) for name in original.__struct_fields__}
        | {"problems": found.problems}
    )
    assert status_block.render(found) == status_block.render(original)


@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "replace")))
def test_parsing_never_raises(text: str) -> None:
    """Any text is data: the finder gives an answer."""
    find_block(text)


@pytest.mark.parametrize("words", ["none", "None.", "N/A", "-", "", "nothing"])
def test_words_that_recommend_nothing_are_no_advice(words: str) -> None:
    """Nobody is told "next: none"."""
    assert status_block.advice_of(words) == ""
    assert status_block.advice_of("none of the tests runs on Windows") != ""
