"""A story's mark in the list it came from: set, taken back, and nothing else touched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.errors import InputError
from ralphloop.stories.provenance import ListSource, with_mark

BACKLOG = b"---\r\nid: task-7\r\ntitle: Export\r\nstatus: In Progress\r\n---\r\n\r\nstatus: no\r\n"
STORY_LINE = b"# Story 1.2: List\n\nStatus: review\n\nWords.\n"
STORY_SECTION = b"# Story 1.2: List\n\n## Status\n\nDraft\n\n## Story\n"
MASTER = {
    "master": {"tasks": [{"id": 3, "title": "T", "status": "pending", "subtasks": [
        {"id": 1, "title": "A", "status": "done"}, {"id": 2, "title": "B", "status": "pending"}]}]}
}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [
        (
            ListSource("t.md", 1, "Kiro", "1.1 Write"),
            b"  - [ ] 1.1 Write\n",
            b"  - [x] 1.1 Write\n",
        ),
        (
            ListSource("t.md", 9, "checklist", "A"),
            b"* [-] A\r\n* [ ] B\r\n",
            b"* [x] A\r\n* [ ] B\r\n",
        ),
        (ListSource("t.md", 2, "checklist", "A"), b"- [ ] A\n- [ ] A\n", b"- [ ] A\n- [x] A\n"),
        (
            ListSource("t.md", 1, "Backlog.md", "task-7"),
            BACKLOG,
            BACKLOG.replace(b"In Progress", b"Done"),
        ),
        (
            ListSource("t.md", 1, "BMAD", "status"),
            STORY_LINE,
            STORY_LINE.replace(b"review", b"done"),
        ),
        (
            ListSource("t.md", 1, "BMAD", "status"),
            STORY_SECTION,
            STORY_SECTION.replace(b"Draft", b"done"),
        ),
    ],
)
def test_the_mark_is_set_and_no_other_byte_is_touched(
    source: ListSource, before: bytes, after: bytes
) -> None:
    """By the words of the item, and by its line where the words stand twice."""
    assert with_mark(source, before, is_done=True) == after
    assert with_mark(source, after, is_done=True) == after
    again = with_mark(source, after, is_done=False)
    assert with_mark(source, again, is_done=True) == after


def test_with_its_last_part_a_task_is_done() -> None:
    """And only then; everything else in the file stays as it is written."""
    text = json.dumps(MASTER, indent=4).encode()
    done = json.loads(
        with_mark(ListSource("t.json", 1, "task-master", "master:3.2"), text, is_done=True)
    )
    (task,) = done["master"]["tasks"]
    assert (task["status"], [one["status"] for one in task["subtasks"]]) == (
        "done",
        ["done", "done"],
    )
    open_again = text.replace(b'"done"', b'"pending"')
    half = with_mark(ListSource("t.json", 1, "task-master", "master:3.1"), open_again, is_done=True)
    assert half.count(b'"done"') == 1


@pytest.mark.parametrize(
    "source",
    [
        ListSource("t.md", 1, "Kiro", "gone"),
        ListSource("t.md", 9, "Kiro", "twice"),
        ListSource("t.md", 1, "Backlog.md", "task-1"),
        ListSource("t.md", 1, "BMAD", "status"),
    ],
)
def test_what_is_not_there_exactly_once_is_not_written(source: ListSource) -> None:
    """It is said instead."""
    with pytest.raises(InputError, match="exactly once"):
        with_mark(source, b"- [ ] twice\n- [ ] twice\n", is_done=True)


@pytest.mark.parametrize(
    "file", ["../tasks.md", "/etc/tasks.md", ".git/config", "a/../../b.md", ".ralph/x.md", ""]
)
def test_a_place_outside_of_the_project_is_none(file: str) -> None:
    """Story files are untrusted."""
    assert not ListSource(file, 1, "Kiro", "x").can_be_marked


@given(
    st.lists(st.sampled_from(["- [ ] a", "- [x] b", "words", "", "  * [X] c\r"]), max_size=8),
    st.booleans(),
)
def test_setting_a_mark_changes_at_most_one_character(lines: list[str], is_done: bool) -> None:
    """Whatever else stands in the list."""
    data = "\n".join(lines).encode()
    try:
        after = with_mark(ListSource("t.md", 1, "checklist", "a"), data, is_done=is_done)
    except InputError:
        assert lines.count("- [ ] a") != 1
        return
    assert len(after) == len(data)
    assert sum(one != other for one, other in zip(data, after, strict=True)) <= 1
