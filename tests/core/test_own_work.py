"""Which changes are a story's own: trees as mappings from paths to contents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.core.own_work import PathChange, PathEntry, change_id, moved_on

Tree = dict[str, str]
TREES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xyz"))


def entry(tree: Tree, path: str) -> PathEntry | None:
    """What stands at a path."""
    return PathEntry(mode="100644", content=tree[path]) if path in tree else None


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
    assert moved.contested == {"a": PathEntry(mode="100644", content="z")}
    assert moved.taken == {"b": None, "c": PathEntry(mode="100644", content="x")}


PATCH = b"""\
diff --git a/app.py b/app.py
index 1111111..2222222 100644
--- a/app.py
+++ b/app.py
@@ -10,3 +10,4 @@ def f():
 a
+    b
 c
"""
BINARY = b"""\
diff --git a/x.png b/x.png
index 1111111..2222222 100644
Binary files a/x.png and b/x.png differ
"""


def test_a_change_is_known_by_its_lines_and_not_by_where_they_stand() -> None:
    """Others moved it down the file, and its content was another before."""
    moved = PATCH.replace(b"@@ -10,3 +10,4 @@ def f():", b"@@ -99,3 +101,4 @@ def g():")
    assert change_id(PATCH) == change_id(moved.replace(b"1111111..2222222", b"3333333..4444444"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"+    b", b"+  b"),
        (b"+    b", b"+    d"),
        (b"+    b\n", b"+    b\n+    b\n"),
        (b"app.py", b"other.py"),
        (b" c\n", b" d\n"),
    ],
    ids=["spaces", "words", "lines", "file", "place"],
)
def test_another_change_is_another_one(old: bytes, new: bytes) -> None:
    """Its own lines, their file and what stands around them tell it."""
    assert change_id(PATCH) != change_id(PATCH.replace(old, new))


def test_a_file_without_lines_is_known_by_its_content() -> None:
    """What it was before does not matter."""
    assert change_id(BINARY) == change_id(BINARY.replace(b"1111111", b"3333333"))
    assert change_id(BINARY) != change_id(BINARY.replace(b"2222222", b"3333333"))


def test_no_change_is_known_by_nothing() -> None:
    """It is like no other."""
    assert change_id(b"") == ""
