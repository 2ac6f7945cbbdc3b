"""Two changes of one text put together line by line, without looking at the lines around them.

A merge as git makes it takes two changes that merely touch for a conflict, so that two entries
appended to one list already are one.  Here only lines that both sides changed are.

Where equal lines stand beside each other, nobody can say between which of them a line was added:
what was added may slide along such lines, out of what the other side changed.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_HEADER = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


class LineChange(NamedTuple):
    """Lines of a text that others took the place of; none, where `start` is `end`: added there."""

    start: int  # the first, counted from zero
    end: int  # behind the last
    new: tuple[bytes, ...]

    @property
    def is_addition(self) -> bool:
        return self.start == self.end


class MergedLines(NamedTuple):
    text: bytes
    clashes: tuple[LineChange, ...]  # of our side, where the other one changed the same lines


def lines_of(text: bytes) -> list[bytes]:
    """The lines of a text with their ends, as git counts them."""
    lines = text.split(b"\n")
    last = lines.pop()
    ended = [line + b"\n" for line in lines]
    return [*ended, last] if last else ended


def line_changes(diff: bytes, after: Sequence[bytes]) -> list[LineChange]:
    """What a diff without context (`-U0`) says, given the lines of the newer text."""
    found = []
    for header in _HEADER.finditer(diff):
        start = int(header[1])
        count = int(header[2] or b"1")
        new_start = int(header[3])
        new_count = int(header[4] or b"1")
        if count:
            start -= 1  # of no lines git names the one before
        if new_count:
            new_start -= 1
        new = tuple(after[new_start : new_start + new_count])
        found.append(LineChange(start, start + count, new))
    return found


def merged_lines(
    base: Sequence[bytes], theirs: Sequence[LineChange], ours: Sequence[LineChange]
) -> MergedLines:
    """The base with both sides' changes; where they clash, theirs stands."""
    slid = _out_of_the_way(base, theirs, ours)
    clashes = []
    wanted = [(change, False) for change in slid]
    for change in _out_of_the_way(base, ours, slid):
        if change in slid:
            continue  # both did the same
        if any(_clash(change, other) for other in slid):
            clashes.append(change)
        else:
            wanted.append((change, True))
    # At one place what was there before stands first: ours.
    wanted.sort(key=lambda one: (one[0].start, one[0].end, not one[1]))
    text: list[bytes] = []
    at = 0
    for change, _ in wanted:
        text += base[at : change.start]
        text += change.new
        at = max(at, change.end)
    text += base[at:]
    return MergedLines(b"".join(text), tuple(clashes))


def followed(
    own: Sequence[LineChange], later: Sequence[LineChange], base: Sequence[bytes]
) -> tuple[LineChange, ...] | None:
    """Where these lines stand after a later change of the text; None where it changed them."""
    slid = _out_of_the_way(base, later, own)
    if any(_clash(one, other) for one in own for other in slid):
        return None
    return tuple(
        LineChange(_moved(one.start, slid, is_end=False), _moved(one.end, slid, is_end=True), ())
        for one in own
    )


def _moved(place: int, later: Sequence[LineChange], *, is_end: bool) -> int:
    """A place between two lines after the changes before it."""
    at = place
    for change in later:
        is_before = change.end < place or (change.end == place and not is_end)
        if is_before:
            at += len(change.new) - (change.end - change.start)
    return at


def _clash(one: LineChange, other: LineChange) -> bool:
    """Whether two changes take the same lines, or one adds into what the other takes."""
    if one.is_addition and other.is_addition:
        return False
    return max(one.start, other.start) < min(one.end, other.end) or (
        _is_inside(one, other) or _is_inside(other, one)
    )


def _is_inside(addition: LineChange, other: LineChange) -> bool:
    return addition.is_addition and other.start < addition.start < other.end


def _out_of_the_way(
    base: Sequence[bytes], changes: Sequence[LineChange], others: Sequence[LineChange]
) -> list[LineChange]:
    """The same changes, each beside what others changed where equal lines let it stand there."""
    return [_beside(base, change, changes, others) for change in changes]


def _beside(
    base: Sequence[bytes],
    change: LineChange,
    own: Sequence[LineChange],
    others: Sequence[LineChange],
) -> LineChange:
    if not any(_clash(change, other) for other in others):
        return change
    for place in _slidden(base, change):
        first = min(place.start, change.start)
        last = max(place.end, change.end)
        if any(it != change and first <= it.end and it.start <= last for it in own):
            continue  # what it would pass is no longer what it was
        if not any(_clash(place, other) for other in others):
            return place
    return change


def _slidden(base: Sequence[bytes], change: LineChange) -> Iterator[LineChange]:
    """The same addition or removal wherever else it gives the same text, the nearest first."""
    if change.new and not change.is_addition:
        return
    for step in (1, -1):
        place = _slid(base, change, step)
        while place is not None:
            yield place
            place = _slid(base, place, step)


def _slid(base: Sequence[bytes], change: LineChange, step: int) -> LineChange | None:
    """The change one line further down or up; None where that is another change."""
    passed = change.end if step > 0 else change.start - 1  # the line it passes
    if not 0 <= passed < len(base):
        return None
    lines = change.new or tuple(base[change.start : change.end])
    if lines[0 if step > 0 else -1] != base[passed]:
        return None
    new = change.new
    if new:
        new = (*new[1:], base[passed]) if step > 0 else (base[passed], *new[:-1])
    return LineChange(change.start + step, change.end + step, new)
