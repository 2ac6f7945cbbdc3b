"""Two changes of one text, put together by the lines alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralphloop.text.line_changes import (
    LineChange,
    MergedLines,
    followed,
    line_changes,
    lines_of,
    merged_lines,
)

BASE = lines_of(b"a\nb\nc\nd\n")


def test_what_merely_touches_is_no_clash() -> None:
    """An entry is taken out from between two others, one of which came later."""
    theirs = [LineChange(2, 2, (b"later\n",))]
    ours = [LineChange(1, 2, ())]
    assert merged_lines(BASE, theirs, ours) == MergedLines(b"a\nlater\nc\nd\n", ())


def test_the_same_line_is_a_clash_and_theirs_stands() -> None:
    """Nobody can say what the line would be without the one who wrote it first."""
    theirs = [LineChange(1, 2, (b"B\n",))]
    ours = [LineChange(0, 2, (b"x\n",)), LineChange(3, 4, ())]
    merged = merged_lines(BASE, theirs, ours)
    assert merged.clashes == (ours[0],)
    assert merged.text == b"a\nB\nc\n"


def test_a_line_added_into_what_goes_is_a_clash() -> None:
    """Somebody went on inside of what the other wrote."""
    theirs = [LineChange(2, 2, (b"into it\n",))]
    ours = [LineChange(1, 3, ())]
    assert merged_lines(BASE, theirs, ours).clashes == (ours[0],)


def test_equal_lines_do_not_hide_where_something_was_added() -> None:
    """A diff may say that the next test begins before the blank line, or behind it."""
    base = lines_of(b"one\n\ntwo\n\n")
    theirs = [LineChange(3, 3, (b"\n", b"three\n"))]  # the same as at the end
    ours = [LineChange(2, 4, ())]
    assert merged_lines(base, theirs, ours) == MergedLines(b"one\n\nthree\n\n", ())


def test_what_both_took_away_is_gone_once() -> None:
    """The other side did the very same."""
    change = LineChange(1, 2, ())
    assert merged_lines(BASE, [change], [change]) == MergedLines(b"a\nc\nd\n", ())


def test_lines_are_followed_through_later_changes() -> None:
    """What is added before them moves them; who changes them is noticed."""
    own = [LineChange(1, 3, ())]
    above = [LineChange(0, 0, (b"x\n", b"y\n"))]
    assert followed(own, above, BASE) == (LineChange(3, 5, ()),)
    assert followed(own, [LineChange(3, 3, (b"x\n",))], BASE) == (LineChange(1, 3, ()),)
    assert followed(own, [LineChange(1, 1, (b"x\n",))], BASE) == (LineChange(2, 4, ()),)
    assert followed(own, [LineChange(2, 3, ())], BASE) is None


def test_a_diff_without_context_is_read() -> None:
    """Git names the line before, where there is none to name."""
    diff = b"@@ -2 +2 @@ f\n-b\n+B\n@@ -4,0 +5,2 @@\n+e\n+f\n@@ -1,2 +0,0 @@\n"
    after = lines_of(b"a\nB\nc\nd\ne\nf")
    assert line_changes(diff, after) == [
        LineChange(1, 2, (b"B\n",)),
        LineChange(4, 4, (b"e\n", b"f")),
        LineChange(0, 2, ()),
    ]


def test_a_block_that_went_before_it_does_not_take_its_blank_lines() -> None:
    """Which of two blank lines was taken out, nobody can say."""
    base = lines_of(b"one\n\n\nsix\n\n\neight\n")
    theirs = [LineChange(3, 6, ())]  # six and the blank lines behind it
    ours = [LineChange(4, 7, ())]  # eight and the blank lines before it
    assert merged_lines(base, theirs, ours) == MergedLines(b"one\n", ())


@given(
    st.lists(st.sampled_from([b"a\n", b"b\n", b"\n"]), max_size=8),
    st.lists(st.sampled_from([b"a\n", b"x\n", b"\n"]), min_size=1, max_size=4),
    st.data(),
)
def test_who_appends_is_never_in_the_way_of_the_one_before(
    first: list[bytes], added: list[bytes], data: st.DataObject
) -> None:
    """Of lines appended one after the other each can be taken out, whatever is beside them."""
    later = data.draw(st.lists(st.sampled_from([b"a\n", b"y\n", b"\n"]), min_size=1, max_size=4))
    base = [*first, *added]
    end = len(base)
    theirs = [LineChange(end, end, tuple(later))]
    ours = [LineChange(len(first), end, ())]
    assert merged_lines(base, theirs, ours) == MergedLines(b"".join([*first, *later]), ())
