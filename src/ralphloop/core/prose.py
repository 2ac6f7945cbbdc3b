"""What an agent says in its own words, apart from what it shows.

A message mixes speech with exhibits: status blocks, code, quotations, tables, diffs, listings, log
lines.  Only speech can state something about the work, so everything else is taken out before
anybody looks for statements.  What is left keeps its paragraphs; inline code becomes `…`, a word
that stands for "some thing" and never for what was written inside it.

`sentences` then cuts the speech into the units that are judged one by one, each with its place:
its paragraph, whether it is a list item or a heading, and whether it stands in a list of wishes
(acceptance criteria, next steps …) where nothing is a report.

Every pattern is anchored or bounded, so the cost is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from ralphloop.core import status
from ralphloop.core.patterns import Pattern
from ralphloop.core.text import clean

ANYTHING = "…"  # stands for inline code and other things whose words are not the agent's

_SPEECH = 1 << 18  # characters of speech that are read, from the end
_LAST_WORDS = 1 << 14  # … when only the last paragraphs matter

_BLANKS = Pattern(r"\n{3,}")
_PROMISE = Pattern(r"<promise>[^<]{0,200}</promise>", re.IGNORECASE)
_FENCE = Pattern(r"[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?(`{3,}[^`]*|~{3,}.*)")
_BLOCK = Pattern(r"RALPH[_ ]STATUS", re.IGNORECASE)
_BLOCK_BEGIN = Pattern(r"[-—*_#` \t]*RALPH[_ ]STATUS[-—*_#`: \t]*", re.IGNORECASE)
_BLOCK_END = Pattern(r"[-—*_#` \t]*END[_ ]RALPH[_ ]STATUS[-—*_#`: \t]*", re.IGNORECASE)
_BLOCK_LINES = 400  # a longer "block" is a lost marker

_BULLET = Pattern(
    r"[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+(?:(?P<open>\[ ?\])[ \t]+|\[[xX]\][ \t]+)?(?=\S)"
)
_HEADING = Pattern(r" {0,3}#{1,6}[ \t]+(?=\S)")
_SHOWN = Pattern(
    r">|\+|-(?![-\s])|\||@@|"  # quotations, diff lines, tables
    r"\d{1,7}(?:\t|[ ]?[→│|]|:[ ]{2})|"  # a listing with line numbers
    r"(?:[-*•][ \t]+)?[*_`]{0,3}(?:STATUS|TASKS_COMPLETED_THIS_LOOP|FILES_MODIFIED|TESTS_STATUS"
    r"|WORK_TYPE|EXIT_SIGNAL|RECOMMENDATION)[*_`]{0,3}[ \t]*:|"  # a stray field of a block
    r"\[?(?:\d{4}-\d\d-\d\d[T ]|\d\d:\d\d:\d\d)|"  # log lines
    r"\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR)\b[\]: ]|\[(?:info|warn|debug|error)\]|"
    r"[$%❯][ ]\S|[-=*_ ]{3,}$"  # prompts, rules
)
_DIFF_HEADER = Pattern(r"diff --git |index [0-9a-f]{7,}\.\.|--- |\+\+\+ ")
_CODE_SPAN = Pattern(r"(?<!`)`++[^`\n]{1,400}`++")
_STORY_ID = Pattern(r"[A-Z][A-Za-z0-9]{0,9}-\d{1,6}(?:\.\d{1,4})?")

_SENTENCE_END = Pattern(r"[.!?]{1,9}[)\]\"'”’*_]{0,4}(?=\s|$)")
_ABBREVIATION = Pattern(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|incl)\.$", re.IGNORECASE)
_WISHES = Pattern(
    r"\b(?:remaining|remains?|to[ -]?dos?|next|left|criteri(?:a|on)|requirements?|definition|plan"
    r"|goals?|missing|pending|open|if|when|once|until|unless|before|must|should|will|would|needs?"
    r"|examples?|e\.g|patterns?|phrases?|words?|strings?|messages?|labels?|states|statuses"
    r"|goes through|can be|one of|values?|options?|either|checklist|expect(?:s|ed)?|conditions?"
    r"|looks? for|prompt|says?)\b",
    re.IGNORECASE,
)
_WRAPPED = 50  # a line at least this long may have been wrapped in mid-sentence


class Sentence(msgspec.Struct, frozen=True):
    """One sentence of speech and where it stands."""

    text: str
    paragraph: int
    kind: str  # text, item, open (an item with an empty check box), heading
    wished: bool = False  # an item of a list that says what should be, not what is


class _Unit(msgspec.Struct, frozen=True):
    """Lines that belong together: one list item, one heading, one run of text."""

    lines: list[str]
    paragraph: int
    kind: str
    wished: bool

    @property
    def text(self) -> str:
        return " ".join(self.lines)


def prose(text: str) -> str:
    """What remains when blocks, code, quotations, tables, diffs and logs are taken out."""
    paragraphs: list[list[str]] = [[]]
    text = _BLANKS.sub("\n\n", _PROMISE.sub(ANYTHING, clean(text)))
    for line in _spoken(own_lines(text)):
        if line:
            paragraphs[-1].append(_without_code(line))
        elif paragraphs[-1]:
            paragraphs.append([])
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines)


def own_lines(text: str) -> Iterator[str]:
    """The lines of a clean text outside fences and status blocks, each of those a blank line."""
    lines = text.split("\n")
    if "```" in text or "~~~" in text:
        lines = list(_without_fences(lines))
    return _without_blocks(lines) if _BLOCK.search(text) else iter(lines)


def sentences(text: str) -> list[Sentence]:
    """The sentences of the speech in a text, the last ones if there are too many."""
    return _cut(prose(text)[-_SPEECH:])


def last_sentences(text: str) -> list[Sentence]:
    """The sentences of the last few paragraphs."""
    return _cut(prose(text)[-_LAST_WORDS:])


def _cut(speech: str) -> list[Sentence]:
    return [
        Sentence(words, unit.paragraph, unit.kind, unit.wished)
        for unit in _units(speech.split("\n"))
        for words in _split(unit.text.strip())
    ]


def _without_fences(lines: Iterable[str]) -> Iterator[str]:
    fence = ""
    for line in lines:
        if fence:
            fence = "" if _closes(line.strip(), fence) else fence
        elif ("```" in line or "~~~" in line) and (opened := _FENCE.fullmatch(line)):
            mark = opened[1]
            fence = mark[: len(mark) - len(mark.lstrip(mark[0]))]
            yield ""
        else:
            yield line


def _closes(line: str, fence: str) -> bool:
    return line.startswith(fence) and not line.strip(fence[0])


def _without_blocks(lines: list[str]) -> Iterator[str]:
    index = 0
    while index < len(lines):
        if _is_marker(lines[index], _BLOCK_BEGIN):
            index = _after_block(lines, index + 1)
            yield ""
        else:
            yield lines[index]
            index += 1


def _is_marker(line: str, marker: Pattern) -> bool:
    return len(line) < 200 and "RALPH" in line.upper() and marker.fullmatch(line) is not None


def _after_block(lines: list[str], start: int) -> int:
    """The index behind the block; one without an end ends with its last field."""
    for index in range(start, min(start + _BLOCK_LINES, len(lines))):
        if _is_marker(lines[index], _BLOCK_END):
            return index + 1
        if _is_marker(lines[index], _BLOCK_BEGIN):
            break
    index = start
    while index < len(lines) and (not lines[index].strip() or _is_field(lines[index])):
        index += 1
    return index


def _is_field(line: str) -> bool:
    field = status.read_field(line[:400])
    return field is not None and field[0] in status.REQUIRED


def _spoken(lines: Iterable[str]) -> Iterator[str]:
    """Blank out the lines that show something instead of saying it."""
    in_hunk = in_list = False
    after_blank = True
    for line in lines:
        head = line.lstrip()
        in_hunk = line.startswith("@@") or (in_hunk and line[:1] in {" ", "+", "-", "\\"})
        bullet = head != "" and _BULLET.match(line) is not None
        in_list = bullet or (in_list and (not head or line[0] in " \t"))
        code = after_blank and not in_list and line.startswith(("    ", "\t"))
        after_blank = not head or code
        shown = in_hunk or code or _is_shown(head, bullet=bullet)
        yield "" if not head or shown else line.rstrip()


def _is_shown(head: str, *, bullet: bool) -> bool:
    if _SHOWN.match(head) or _DIFF_HEADER.match(head):
        return True
    return not bullet and head.count(" | ") >= 2


def _without_code(line: str) -> str:
    if "`" not in line:
        return line
    parts, start = [], 0
    for span in _CODE_SPAN.finditer(line):
        code = span[0].strip("` ")
        parts += [line[start : span.start()], code if _STORY_ID.fullmatch(code) else ANYTHING]
        start = span.end()
    return "".join([*parts, line[start:]])


def _units(lines: Iterable[str]) -> Iterator[_Unit]:
    """Group lines into list items, headings and runs of text."""
    unit: _Unit | None = None
    paragraph = 0
    outline = _Outline()
    for line in lines:
        if unit and line and _continues(line, unit):
            unit.lines.append(line.strip())
            continue
        if unit:
            outline.pass_by(unit)
            yield unit
        unit = _opened(line, paragraph, wished=outline.wishes) if line else None
        paragraph += not line
    if unit:
        yield unit


class _Outline:
    """Whether the list that comes next, by its heading or introduction, is a list of wishes."""

    def __init__(self) -> None:
        self._heading = self._introduction = False

    @property
    def wishes(self) -> bool:
        return self._heading or self._introduction

    def pass_by(self, unit: _Unit) -> None:
        line = unit.lines[-1]
        wish = _WISHES.search(line[-200:]) is not None
        if unit.kind == "heading":
            self._heading, self._introduction = wish, False
        elif unit.kind == "text":
            self._introduction = wish and line.endswith((":", ":**"))


def _continues(line: str, unit: _Unit) -> bool:
    if unit.kind == "heading" or _HEADING.match(line) or _BULLET.match(line):
        return False
    before = unit.lines[-1]
    return line.lstrip()[0].islower() or (
        len(before) >= _WRAPPED and not before.endswith((".", "!", "?", ":", ";"))
    )


def _opened(line: str, paragraph: int, *, wished: bool) -> _Unit:
    if heading := _HEADING.match(line):
        return _Unit([line[heading.end() :].strip(" #")], paragraph, "heading", wished=False)
    if bullet := _BULLET.match(line):
        kind = "open" if bullet["open"] else "item"
        return _Unit([line[bullet.end() :]], paragraph, kind, wished)
    return _Unit([line.strip()], paragraph, "text", wished=False)


def _split(text: str) -> Iterator[str]:
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if not _ABBREVIATION.search(text[max(start, end.end() - 8) : end.end()]):
            yield text[start : end.end()].strip()
            start = end.end()
    if rest := text[start:].strip():
        yield rest
