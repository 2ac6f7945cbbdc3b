"""The tree without a story, in objects alone: who is in the way, and who is not."""

from __future__ import annotations

from ralphloop.repo.taking_out import (
    Without,
    authors_of_word,
    shown_change,
    tree_without,
    users_of_its_names,
)
from ralphloop.repo.work_tree import never_progress
from tests.repo.sandbox import Sandbox


def without(box: Sandbox, *commits: str) -> Without:
    """The tree of HEAD without these commits."""
    repo = box.repository()
    shown = [shown_change(repo, commit) for commit in commits]
    return tree_without(repo, shown, never_progress())


def at(box: Sandbox, tree: str, path: str) -> str:
    """A file of a tree."""
    return box.git("show", f"{tree}:{path}")


def test_a_story_is_taken_out_however_the_user_reads_diffs(box: Sandbox) -> None:
    """Settings for the eyes of a person do not change what is taken out."""
    first = box.git("rev-parse", "HEAD^{tree}")
    box.write("src/app.py", "print('hallo')\n")
    box.write("src/new.py")
    commit = box.commit("US-1: a story")
    for name, value in (
        ("diff.noprefix", "true"),
        ("diff.colorMoved", "zebra"),
        ("diff.interHunkContext", "9"),
        ("diff.context", "5"),
        ("color.ui", "always"),
    ):
        box.git("config", name, value)
    assert without(box, commit) == Without(tree=first)


def test_a_file_that_somebody_else_renamed_is_found(box: Sandbox) -> None:
    """The lines go where they stand now."""
    lines = [f"line {n}\n" for n in range(20)]
    box.write("a.txt", "".join(lines))
    box.commit("before")
    box.write("a.txt", "".join([*lines[:9], "the story's\n", *lines[9:]]))
    story = box.commit("US-1")
    (box.root / "a.txt").rename(box.root / "b.txt")
    box.commit("renamed")
    found = without(box, story)
    assert not found.in_the_way
    assert at(box, found.tree, "b.txt") == "".join(lines).strip()


def test_a_new_file_that_was_renamed_is_gone(box: Sandbox) -> None:
    """It was all the story's, whatever it is called now."""
    box.write("a.txt", "one\ntwo\nthree\n")
    story = box.commit("US-1")
    (box.root / "a.txt").rename(box.root / "b.txt")
    box.commit("renamed")
    found = without(box, story)
    assert not found.in_the_way
    assert "b.txt" not in box.git("ls-tree", "-r", "--name-only", found.tree).split()


def test_what_somebody_else_deleted_stays_deleted(box: Sandbox) -> None:
    """Nothing of the story is left there to take out."""
    box.write("a.txt", "one\n")
    box.commit("before")
    box.write("a.txt", "one\ntwo\n")
    story = box.commit("US-1")
    (box.root / "a.txt").unlink()
    box.commit("deleted")
    found = without(box, story)
    assert found == Without(tree=box.git("rev-parse", "HEAD^{tree}"))


def test_who_changed_the_lines_is_named_through_renames_and_others(box: Sandbox) -> None:
    """Those who only touched the file are not in the way."""
    lines = [f"line {n}\n" for n in range(20)]
    box.write("a.txt", "".join(lines))
    box.commit("before")
    lines.insert(9, "the story's\n")
    box.write("a.txt", "".join(lines))
    story = box.commit("US-1")
    lines.insert(0, "above\n")
    box.write("a.txt", "".join(lines))
    box.commit("above it")
    (box.root / "a.txt").rename(box.root / "b.txt")
    box.commit("renamed")
    lines[10] = "the story's, changed\n"
    box.write("b.txt", "".join(lines))
    changed = box.commit("changed")
    lines.append("below\n")
    box.write("b.txt", "".join(lines))
    box.commit("below it")
    (found,) = without(box, story).in_the_way
    assert found.how == "changed the same lines of"
    assert found.commits == (changed,)


def test_a_binary_file_that_was_changed_since_is_in_the_way(box: Sandbox) -> None:
    """It has no lines: who touched it is named."""
    box.write("a.bin", "\0first")
    box.commit("before")
    box.write("a.bin", "\0second")
    story = box.commit("US-1")
    box.write("a.bin", "\0third")
    later = box.commit("later")
    (found,) = without(box, story).in_the_way
    assert (found.path, found.commits) == ("a.bin", (later,))


def test_two_stories_on_the_same_lines_go_together(box: Sandbox) -> None:
    """Who goes as well is in nobody's way, whichever is named first."""
    box.write("a.txt", "one\n")
    first = box.commit("before")
    box.write("a.txt", "two\n")
    story = box.commit("US-1")
    box.write("a.txt", "three\n")
    other = box.commit("US-2")
    for order in ((story, other), (other, story)):
        assert without(box, *order) == Without(tree=box.git("rev-parse", f"{first}^{{tree}}"))


def test_who_uses_a_name_that_only_the_story_brought_is_found(box: Sandbox) -> None:
    """Words that were there before are nobody's."""
    box.write("a.py", "def common():\n    return 1\n")
    box.commit("before")
    box.write("b.py", "def special():\n    return common()\n")
    story = box.commit("US-1")
    box.write("c.py", "from b import special\n")
    user = box.commit("US-2")
    box.write("d.py", "from a import common\n")
    box.commit("US-3")
    repo = box.repository()
    shown = [shown_change(repo, story)]
    tree = tree_without(repo, shown, never_progress()).tree
    assert users_of_its_names(repo, shown, tree) == [user]
    assert authors_of_word(repo, "special", "c.py") == [user]
    assert authors_of_word(repo, "nowhere") == []
