"""A story to decide about, as lines of a width: the claim, the evidence, the change.  Pure.

Where there is room, claim and evidence stand side by side; else one stands below the other.  The
same lines are drawn on the screen, printed in colour and printed plain.
"""

import textwrap
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ralphloop.core.proposals import Proposal
from ralphloop.core.work_diff import ChangedFile, DiffLine, FileSide, Mark, MarkKind
from ralphloop.night.review_values import Doubt, StoryReview, Worth
from ralphloop.text.plain import counted, on_screen, some
from ralphloop.ui.monitor.paint import Line, Tone, beside, cut, line, plain, width_of

SIDE_BY_SIDE = 80  # from so many cells on
_LONG_CHANGE = 120  # lines; of a longer one only the first are shown until somebody asks
_MOST_ROWS = 6  # of one line of code
_MOST_SAID = 8  # lines of the agent's words, until somebody asks
_LONGEST_WORD = 400
_WORTH_TONES = {Worth.GOOD: Tone.GOOD, Worth.WEAK: Tone.WARN, Worth.BAD: Tone.BAD}
_WORTH_MARKS = {Worth.GOOD: "✓", Worth.WEAK: "~", Worth.BAD: "✗"}
DOUBT_TONES = {
    Doubt.SENT_BACK: Tone.BAD,
    Doubt.ASKED: Tone.BAD,
    Doubt.CLAIMED: Tone.WARN,
    Doubt.CHECKED: Tone.WARN,
    Doubt.BY_HAND: Tone.QUIET,
    Doubt.VERIFIED: Tone.GOOD,
}
_MARK_TONES = {
    MarkKind.PROVES: Tone.GOOD,
    MarkKind.WEAKENED: Tone.BAD,
    MarkKind.CHANGED: Tone.WARN,
    MarkKind.VACUOUS: Tone.WARN,
    MarkKind.SURVIVOR: Tone.WARN,
    MarkKind.UNWATCHED: Tone.WARN,
    MarkKind.LITERAL: Tone.WARN,
}
_SIDE_WORDS = {FileSide.TEST: "test", FileSide.CODE: "code", FileSide.OTHER: "text"}


class Shown(NamedTuple):
    """How much of a story a person wants to see."""

    whole_change: bool = False
    files_only: bool = False
    output: bool = False  # all that was found out, and what ran


AT_FIRST = Shown()


def story_paper(review: StoryReview, width: int, shown: Shown = AT_FIRST) -> list[Line]:
    """Everything one decides by, in lines of at most this width."""
    lines = [*_head(review, width), ()]
    claim = [*_claim(review, shown)]
    evidence = [*_evidence(review, shown)]
    if width >= SIDE_BY_SIDE:
        left = width // 3
        right = width - left - 3
        lines += _columns(_wrapped(claim, left), _wrapped(evidence, right), left)
    else:
        lines += [*_wrapped(claim, width), (), *_wrapped(evidence, width)]
    lines += [(), *change_lines(review, width, shown)]
    return lines


def proposal_paper(one: Proposal, width: int) -> list[Line]:
    """A proposed story."""
    told = [
        _Part("proposed story", f"{one.id}  {one.title}", Tone.STRONG),
        _Part("", one.text),
        _Part("", one.provenance, Tone.QUIET),
    ]
    return list(_wrapped(told, width))


class _Part(NamedTuple):
    """Words that are wrapped as one, under or behind a heading."""

    head: str
    words: str
    tone: Tone = Tone.PLAIN
    indent: int = 0
    sign: str = ""
    sign_tone: Tone = Tone.PLAIN


def _head(review: StoryReview, width: int) -> Iterator[Line]:
    entry = review.entry
    grade = f"{entry.mark} {entry.doubt}"
    is_proven = entry.doubt is Doubt.VERIFIED
    right = line((grade, _coverage_tone(review) if is_proven else DOUBT_TONES[entry.doubt]))
    name = on_screen(f"{entry.story}: {entry.title}", colours=False)
    yield beside(line((name, Tone.STRONG)), right, width)
    is_flattering = review.worth is Worth.BAD and not entry.coverage.has_gap
    covered = "" if is_flattering else entry.coverage.words
    if covered:
        covered += " · "
    rest = entry.spent
    if entry.is_earlier:
        rest += " · of an earlier run"
    files = review.diff.files
    size = f" · +{review.diff.added} −{review.diff.removed} in {counted(len(files), 'file')}"
    room = max(0, width - width_of(covered))
    if files and width_of(rest + size) <= room:  # it stands above the change as well
        rest += size
    yield line((covered, _coverage_tone(review)), (cut(rest, room), Tone.QUIET))


def _coverage_tone(review: StoryReview) -> Tone:
    """How good a sign that is: tests of what is not proven are none."""
    entry = review.entry
    if entry.coverage.has_gap:
        return Tone.WARN
    return Tone.GOOD if entry.doubt is Doubt.VERIFIED else Tone.QUIET


def _claim(review: StoryReview, shown: Shown) -> Iterator[_Part]:
    """What the agent says."""
    claim = review.claim
    by = claim.by if claim.by not in ("", "command") else "the agent"
    yield _Part(f"CLAIM · {by}", "")
    said = claim.said.split("\n") if claim.said else []
    told = said if shown.output else said[:_MOST_SAID]
    for paragraph in told or ["(it says nothing)"]:
        yield _Part("", f"“{paragraph}”" if said else paragraph, Tone.PLAIN if said else Tone.QUIET)
    for doubt in claim.doubts:
        yield _Part("", f"its doubt: {doubt}", Tone.WARN, sign="?", sign_tone=Tone.WARN)
    for found in claim.found:
        yield _Part("", f"found besides: {found}", sign="+", sign_tone=Tone.QUIET)


def _evidence(review: StoryReview, shown: Shown) -> Iterator[_Part]:
    """What was found."""
    tone = _WORTH_TONES[review.worth]
    yield _Part("EVIDENCE", "")
    sign = _WORTH_MARKS[review.worth]
    yield _Part("", review.finding, tone, sign=sign, sign_tone=tone)
    for words in review.shown_by:
        yield _Part("", words, Tone.QUIET, indent=2)
    for words in review.look_at:
        if words not in review.finding:
            yield _Part("", f"look at: {words}", Tone.WARN, sign="!", sign_tone=Tone.WARN)
    if review.unwatched:
        words = f"watched by no test: {some(review.unwatched, 3)}"
        yield _Part("", words, Tone.WARN, sign="▲", sign_tone=Tone.WARN)
    if review.diff.literals and review.worth is not Worth.GOOD:
        values = some([one.value for one in review.diff.literals], 6)
        words = f"in code and test alike: {values}"
        yield _Part("", words, Tone.WARN, sign="=", sign_tone=Tone.WARN)
    yield from _criteria(review)
    if shown.output:
        yield from _all_found_out(review)


def _criteria(review: StoryReview) -> Iterator[_Part]:
    """Each criterion with what speaks of it."""
    if review.criteria:
        legend = " · ✓ proven, ~ tested, ✗ not"
        yield _Part(f"CRITERIA{legend if review.is_judged else ''}", "")
    if review.entry.coverage.has_gap:
        yield _Part("", review.entry.coverage.words, Tone.BAD)
    for one in review.criteria_looks:
        tone = Tone.PLAIN if one.worth is Worth.WEAK else _WORTH_TONES[one.worth]
        sign = _WORTH_MARKS[one.worth] if review.is_judged else "-"
        yield _Part("", one.criterion, sign=sign, sign_tone=tone)
        if review.is_judged:
            quiet = Tone.BAD if one.worth is Worth.BAD else Tone.QUIET
            yield _Part("", one.words, quiet, indent=2)


def _all_found_out(review: StoryReview) -> Iterator[_Part]:
    yield _Part("CHECKS", "")
    for words in review.checks or ("none ran",):
        yield _Part("", words, sign="-")
    if review.remarks:
        yield _Part("ALSO SEEN", "")
    for words in review.remarks:
        yield _Part("", words, sign="-")


def _wrapped(parts: Iterable[_Part], width: int) -> Iterator[Line]:
    """Parts as lines of at most this width; words are broken only where they do not fit at all."""
    is_first = True
    for part in parts:
        if part.head:
            if not is_first:
                yield ()
            yield line((cut(part.head, width), Tone.BUSY))
        is_first = False
        if not part.words:
            continue
        sign = f"{part.sign} " if part.sign else ""
        room = max(8, width - part.indent - width_of(sign))
        words = on_screen(part.words, colours=False)[: _LONGEST_WORD * 4]
        for number, text in enumerate(textwrap.wrap(words, room, break_on_hyphens=False)):
            before = (sign, part.sign_tone) if number == 0 else (" " * len(sign), Tone.PLAIN)
            yield line(" " * part.indent, before, (text, part.tone))


def _columns(left: Iterable[Line], right: Iterable[Line], width: int) -> Iterator[Line]:
    """Two texts side by side; the left one is so wide."""
    lefts = list(left)
    rights = list(right)
    for number in range(max(len(lefts), len(rights))):
        one = lefts[number] if number < len(lefts) else ()
        other = rights[number] if number < len(rights) else ()
        room = max(0, width - width_of(plain(one)))
        yield (*one, (" " * room, Tone.PLAIN), (" │ ", Tone.QUIET), *other)


def change_lines(review: StoryReview, width: int, shown: Shown) -> list[Line]:
    """The change of the work, with what was found out at its lines."""
    return [*_change(review, width, shown)]


def _change(review: StoryReview, width: int, shown: Shown) -> Iterator[Line]:
    diff = review.diff
    own = f" · not shown: {some(diff.own, 3)}" if diff.own else ""
    if not diff.files:
        words = review.diff_problem or "nothing changed"
        yield line(("CHANGE", Tone.BUSY), (f" · {words}{own}", Tone.QUIET))
        return
    size = f"{counted(len(diff.files), 'file')}, +{diff.added} −{diff.removed}"
    head = line(("CHANGE", Tone.BUSY), (cut(f" · {size}{own}", width - 6), Tone.QUIET))
    yield head
    body = [made for file in diff.files for made in _file(file, width, shown)]
    is_long = len(body) > _LONG_CHANGE and not shown.whole_change
    yield from body[:_LONG_CHANGE] if is_long else body
    if is_long:
        rest = len(body) - _LONG_CHANGE
        yield line((f"… {rest} more lines: Enter shows all of it", Tone.BUSY))
    if diff.left_out:
        words = f"… {counted(diff.left_out, 'line')} of a very large change are not shown"
        yield line((words, Tone.WARN))


def _file(file: ChangedFile, width: int, shown: Shown) -> Iterator[Line]:
    note = f", {file.note}" if file.note else ""
    size = f"+{file.added} −{file.removed}"
    marks = counted(len(file.marked), "mark") if file.marked and shown.files_only else ""
    right = line((f"{marks}  {_SIDE_WORDS[file.side]}{note}  {size}".strip(), Tone.QUIET))
    name = on_screen(file.path, colours=False)
    yield beside(line(("▌", Tone.BUSY), (name, Tone.STRONG)), right, width)
    if shown.files_only:
        return
    for number, hunk in enumerate(file.hunks):
        if number or hunk.where:
            where = on_screen(hunk.where, colours=False)
            yield line((cut(f"   ⋯ {where}", width), Tone.QUIET))
        for one in hunk.lines:
            yield from _diff_line(one, width)


def _diff_line(one: DiffLine, width: int) -> Iterator[Line]:
    """A line of the change, and below it what was found out about it."""
    tones = {"+": Tone.GOOD, "-": Tone.BAD, " ": Tone.PLAIN}
    number = f"{one.new or one.old:>4} "
    text = on_screen(one.text, colours=False).expandtabs(4)
    rows = _rows(text, max(8, width - len(number) - 2))
    for at, row in enumerate(rows):
        before = f"{number}{one.sign} " if at == 0 else " " * (len(number) + 2)
        yield line((before[: len(number)], Tone.QUIET), (f"{before[-2:]}{row}", tones[one.sign]))
    indent = len(number) + 2 + len(text) - len(text.lstrip())
    for mark in one.marks if one.sign != "-" else ():
        yield from _mark(mark, min(indent, width // 3), width)


def _rows(text: str, room: int) -> list[str]:
    """A line of code on as many rows as it needs; of a very long one the first few."""
    if width_of(text) <= room:
        return [text]
    depth = " " * min(len(text) - len(text.lstrip()) + 4, room // 2)
    how = textwrap.TextWrapper(
        width=room, subsequent_indent=depth, drop_whitespace=False, break_on_hyphens=False
    )
    rows = how.wrap(text)
    if len(rows) > _MOST_ROWS:
        rows = [*rows[: _MOST_ROWS - 1], cut(rows[_MOST_ROWS - 1], room - 1) + "…"]
    return [cut(row, room) for row in rows]


def is_long_change(review: StoryReview, width: int) -> bool:
    """Whether only its beginning is shown until somebody asks."""
    every = Shown(whole_change=True)
    return len(change_lines(review, width, every)) > _LONG_CHANGE + 1


def _mark(mark: Mark, indent: int, width: int) -> Iterator[Line]:
    tone = _MARK_TONES[mark.kind]
    for number, text in enumerate(textwrap.wrap(mark.words, max(20, width - indent - 2))):
        sign = "▲ " if number == 0 else "  "
        yield line(" " * indent, (f"{sign}{text}", tone))
