"""What an agent did to the story list while it ran."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.core.model import Story
from ralphloop.stories.source import compare, load, mark
from tests.stories.builders import raw_story, story, story_list, write_prd

FULL: dict[str, object] = {
    "description": "Do it well",
    "criteria": ("It works", "It is fast"),
    "verify": ("pytest", "-q"),
    "parent_spec": "S01.md",
    "priority": 1,
}


def changes(before: Story, after: Story) -> tuple[dict[str, bool], dict[str, list[str]]]:
    """What became of one story."""
    return compare(story_list(before), story_list(after))


def test_an_untouched_list_has_no_changes() -> None:
    """Two equal readings differ in nothing."""
    assert changes(story("A", **FULL), story("A", **FULL)) == ({}, {})


def test_a_changed_mark_is_a_claim_to_put_back() -> None:
    """Marks that changed in either direction are named with what they say now."""
    before = story_list(story("A"), story("B", passes=True), story("C"))
    after = story_list(story("A", passes=True), story("B"), story("C"))
    assert compare(before, after) == ({"A": False, "B": True}, {})


def test_a_new_story_that_arrives_as_passed_is_a_claim_too() -> None:
    """An agent cannot add finished work."""
    found = compare(story_list(story("A")), story_list(story("A"), story("B", passes=True)))
    assert found == ({"B": False}, {})


def test_C15_open_stories_that_were_deleted_are_not_done() -> None:
    """Deleting what is open leaves a list that looks finished; what is gone is named."""
    before = story_list(story("init", passes=True), story("A"), story("B"))
    _, less = compare(before, story_list(story("init", passes=True)))
    assert less == {name: ["was removed from the list"] for name in ("A", "B")}


def test_a_renamed_story_is_gone() -> None:
    """An id is the identity: another one is another story."""
    assert changes(story("A"), story("A2")) == ({}, {"A": ["was removed from the list"]})


@pytest.mark.parametrize(
    "now, what",
    [
        ({"criteria": ()}, "all acceptance criteria were removed"),
        ({"criteria": ("It works",)}, 'a criterion was removed: "It is fast"'),
        ({"criteria": ("It works", "It is okay")}, 'a criterion was changed: "It is fast"'),
        ({"criteria": ("It works", "It works")}, 'a criterion was changed: "It is fast"'),
        ({"verify": None}, "the verify command was removed"),
        ({"verify": ("true",)}, "the verify command was changed"),
        ({"description": "  "}, "the description was emptied"),
        ({"title": ""}, "the title was emptied"),
        ({"parent_spec": None}, "the parent spec was removed"),
        ({"parent_spec": "easy.md"}, "the parent spec was changed"),
        ({"exit_signal": True}, "it was given the permission to end the run"),
    ],
)
def test_a_story_that_asks_for_less_is_weakened(now: dict[str, object], what: str) -> None:
    """Each way to make a story easier is named in words."""
    found = changes(story("A", **FULL), story("A", **{**FULL, **now}))
    assert found == ({}, {"A": [f"asks for less: {what}"]})


@pytest.mark.parametrize(
    "was, now",
    [
        ({}, {"criteria": ("New one",)}),
        ({}, {"verify": ("pytest",)}),
        ({}, {"description": "More words"}),
        ({"criteria": ("It works",)}, {"criteria": ("it  works.", "And more")}),
        ({"criteria": ("a", "b")}, {"criteria": ("b", "a")}),
        ({"exit_signal": True}, {"exit_signal": False}),
        ({"notes": "old"}, {"notes": "what I learned"}),
        ({"priority": 1}, {"priority": 2}),
        ({"title": "One"}, {"title": "Other"}),
        ({}, {"depends_on": ("B",)}),
    ],
)
def test_asking_for_as_much_or_more_is_allowed(
    was: dict[str, object], now: dict[str, object]
) -> None:
    """Additions, notes, order and punctuation are not tampering."""
    assert changes(story("A", **was), story("A", **now)) == ({}, {})


@given(st.lists(st.text(max_size=10), max_size=5), st.lists(st.text(max_size=10), max_size=5))
def test_adding_criteria_never_weakens(was: list[str], more: list[str]) -> None:
    """Whatever the criteria say, keeping them all and adding some is no tampering."""
    found = changes(story("A", criteria=tuple(was)), story("A", criteria=(*more, *was)))
    assert found == ({}, {})


def test_claims_found_in_a_file_can_be_put_back_in_it(tmp_path: Path) -> None:
    """Comparing two loads and restoring the marks gives the first file again."""
    path = write_prd(tmp_path, raw_story("A", passes=False), raw_story("B", passes=True))
    before, original = load(path), path.read_bytes()
    path.write_bytes(
        original.replace(b"true", b"0").replace(b"false", b"true").replace(b"0", b"false")
    )
    mark(path, compare(before.list, load(path).list)[0])
    assert path.read_bytes() == original
