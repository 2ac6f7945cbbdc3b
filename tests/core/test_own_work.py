"""Which changes are a story's own: trees as mappings from paths to contents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralphloop.core.own_work import Entry, PathChange, moved_on

Tree = dict[str, str]
TREES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xyz"))


def entry(tree: Tree, path: str) -> Entry | None:
    """What stands at a path."""
    return Entry(mode="100644", content=tree[path]) if path in tree else None


def changes(before: Tree, after: Tree) -> dict[str, PathChange]:
    """Every path in which two trees differ."""
    return {
        path: PathChange(before=entry(before, path), after=entry(after, path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    }


def without(start: Tree, left: Tree, now: Tree) -> Tree:
    """The tree without the story, contested paths as they are now."""
    moved = moved_on(changes(start, left), changes(left, now))
    made = dict(start)
    for path, found in (moved.taken | moved.contested).items():
        if found is None:
            made.pop(path, None)
        else:
            made[path] = found.content
    return made


@given(TREES, TREES)
def test_a_story_that_changed_nothing_is_compared_with_what_is_there(
    start: Tree, now: Tree
) -> None:
    """All that differs is somebody else's."""
    assert without(start, start, now) == now


@given(TREES, TREES)
def test_where_nobody_else_worked_it_is_compared_with_its_beginning(
    start: Tree, left: Tree
) -> None:
    """All that differs is its own."""
    assert without(start, left, left) == start


@given(TREES, TREES, TREES)
def test_what_differs_in_the_end_is_what_the_story_left_there(
    start: Tree, left: Tree, now: Tree
) -> None:
    """A path counts as its own only where it stands as the story left it."""
    base = without(start, left, now)
    for path, change in changes(base, now).items():
        assert change.before == entry(start, path)
        assert change.after == entry(left, path)
    for path in changes(start, left):
        if now.get(path) == left.get(path):
            assert base.get(path) == start.get(path)


@given(TREES, TREES)
def test_taking_a_story_out_again_leaves_nothing_of_its_own(start: Tree, left: Tree) -> None:
    """Its beginning is what stands without it, and what is there."""
    assert without(start, left, start) == start


def test_a_path_that_both_changed_is_contested() -> None:
    """Its content has to be merged; a change of somebody else's alone is taken over."""
    moved = moved_on(
        changes({"a": "x"}, {"a": "y"}), changes({"a": "y", "b": "x"}, {"a": "z", "c": "x"})
    )
    assert moved.contested == {"a": Entry(mode="100644", content="z")}
    assert moved.taken == {"b": None, "c": Entry(mode="100644", content="x")}
