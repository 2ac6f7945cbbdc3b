"""The lines of an answer, each with what it is, and what the agent says in its own words.

One scanner for all who read Markdown as agents write it (`scan`); nothing is dropped: who reads
claims wants speech alone, who reads errors also looks into fences and quotes.

Only speech can state something about the work, and not all of it claims: items and headings name
things, and what was announced ("The banner reads:") or stands under a heading of wishes ("Next
steps") is no report.  Inline code stands for "some thing" (`…`), never for the words inside it.

Every pattern is anchored or bounded, so the cost is linear in the text.
"""

from collections.abc import Iterator
from enum import Enum, auto
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ralphloop.text.plain import LazyRegex, any_case, clean

_MAX_MARKER = 400  # a longer line is neither marker nor fence
_MAX_BLOCK = 400  # lines; a longer "block" is a lost marker

_FENCE = LazyRegex(r"[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?(?P<run>`{3,}|~{3,})(?P<info>.{0,400})")
_BLOCK_BEGIN = any_case(r"[-—*_#` \t]*RALPH[_ ]STATUS[-—*_#`: \t]*")
_BLOCK_END = any_case(r"[-—*_#` \t]*END[_ ]RALPH[_ ]STATUS[-—*_#`: \t]*")
_FIELD = r"(?:[-*•][ \t]+)?[*_`]{0,3}[A-Z]+(?:[_ ][A-Z]+)*[*_`]{0,3}[ \t]*:"
_BLOCK_FIELD = LazyRegex(rf"[ \t]*{_FIELD}")
_QUOTE = LazyRegex(r"[ \t]*>[> \t]*")
_DIFF_START = LazyRegex(r"diff --git |@@ -\d")
_DIFF_LINE = LazyRegex(r"[ +\-@\\]|index |new file|deleted file|similarity|rename |diff --git ")
_COMMENT = LazyRegex(r"<!--[^\n]*?-->")

EXHIBIT = "…"  # stands for something that is shown
STORY = any_case(r"\b[a-z][a-z0-9]{0,9}-\d{1,6}\b")
# read of a paragraph, from its end
_MAX_LINE = 4_000
_MAX_LINES = 200

_SHOWN_LINE = LazyRegex(
    r"[+|>]|-(?![-\s])|@@|//|/\*|\d{1,7}(?:\t|[ ]?[→│|]|:[ ]{2})"  # diffs, tables, code, listings
    rf"|{_FIELD}|[a-z_]+: "
    r"|\[?(?:\d{4}-\d\d-\d\d[T ]|\d\d:\d\d:\d\d)"  # log lines
    r"|\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR)\b[\]: ]|\[(?:info|warn|debug|error)\]"
    r"|[$%❯][ ]\S|[-=*_ ]{3,}$|diff --git "  # prompts, rules
)
_ITEM = LazyRegex(r"[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+(?=\S)|[ \t]*\[[ xX]\]")
_OPEN_BOX = LazyRegex(r"[ \t]*(?:[-*•][ \t]+)?\[ ?\]")
_HEADING = LazyRegex(r" {0,3}#{1,6}[ \t]+")
_WISH = any_case(
    r"next|remain|to-?do|criteri|requirement|definition|plan\b|goal|missing|open|left|expect"
    r"|example"
)
_LABEL = any_case(r"\W*(?:summary|results?|status|verdict|conclusion|in short)\W*")
_CODE_SPAN = LazyRegex(r"(?<!`)`++([^`\n]{1,400})`++")
_SENTENCE_END = LazyRegex(r"(?<!\be\.g)(?<!\bi\.e)[.!?]{1,9}[)\]\"'”’*_]{0,4}(?=\s|$)")
_WRAPPED = 50  # a line at least this long may have been wrapped in mid-sentence
_COURTESY = LazyRegex(
    r"(?:please )?(?:just )?(?:let me know (?:if|should)|feel free|reach out|i'm happy|happy to"
    r"|thank|if you (?:have|want|need|would|'d|like|prefer)|(?:is there )?any(?:thing else"
    r"| questions)|hope this helps|(?:would you like|(?:do you )?want) me to (?!.* or )"
    r"|can i help|(?:shall|should) (?:i|we) (?:continue|proceed|go (?:on|ahead)|keep going"
    r"|move on))\b"
)


class Kind(Enum):
    SPEECH = auto()  # blank lines too: they end paragraphs
    CODE = auto()
    BLOCK = auto()  # a status block, its markers included
    QUOTE = auto()
    DIFF = auto()
    COMMENT = auto()


class Line(NamedTuple):
    text: str
    kind: Kind
    language: str = ""  # of the fence it stands in


class Fence(NamedTuple):
    run: str
    language: str

    @property
    def is_diff(self) -> bool:
        return self.language.startswith(("diff", "patch", "udiff"))


def fence_after(fence: Fence | None, run: str, info: str) -> Fence | None:
    """The code fence that is open behind such a line, by CommonMark's rules."""
    if fence:
        return None if run.startswith(fence.run) and not info.strip() else fence
    is_inline = run[0] == "`" and "`" in info
    return None if is_inline else Fence(run, (info.split() or [""])[0].lower())


def scan(text: str) -> Iterator[Line]:
    """Every line of a text with what it is."""
    lines = text.split("\n")
    may_be_marked = "STATUS" in text.upper()
    block_end = 0
    fence: Fence | None = None
    in_diff = False
    in_comment = False
    for index, line in enumerate(lines):
        if may_be_marked and index >= block_end and _is_marker(line, _BLOCK_BEGIN):
            block_end = _after_block(lines, index + 1)
        if index < block_end:
            yield Line(line, Kind.BLOCK)
            continue
        found = _FENCE.fullmatch(line) if "```" in line or "~~~" in line else None
        after = fence_after(fence, found["run"], found["info"]) if found else fence
        if after is not fence:
            fence = after
            yield Line(line, Kind.CODE)
            continue
        if fence:
            yield Line(line, Kind.DIFF if fence.is_diff else Kind.CODE, fence.language)
            continue
        said = line
        if in_comment:
            _, closed, said = line.partition("-->")
            in_comment = not closed
        if "<!--" in said:
            said, opens, _ = _COMMENT.sub("", said).partition("<!--")
            in_comment = bool(opens)
        in_diff = bool((_DIFF_LINE if in_diff else _DIFF_START).match(said))
        if said != line and not said.strip():
            yield Line(said, Kind.COMMENT)
        elif in_diff:
            yield Line(said, Kind.DIFF)
        else:
            quote = _QUOTE.match(said)
            yield Line(said[quote.end() :], Kind.QUOTE) if quote else Line(said, Kind.SPEECH)


def own_lines(text: str) -> Iterator[str]:
    """The lines outside fences, status blocks and comments, each of those a blank line."""
    for line in scan(text):
        if line.kind in (Kind.CODE, Kind.BLOCK, Kind.COMMENT):
            yield ""
        else:
            yield f"> {line.text}" if line.kind is Kind.QUOTE else line.text


def _is_marker(line: str, marker: LazyRegex) -> bool:
    return len(line) < _MAX_MARKER and "STATUS" in line.upper() and bool(marker.fullmatch(line))


def _after_block(lines: list[str], start: int) -> int:
    """The index behind the block; one without an end ends with its last field."""
    for index in range(start, min(start + _MAX_BLOCK, len(lines))):
        if _is_marker(lines[index], _BLOCK_END):
            return index + 1
        if _is_marker(lines[index], _BLOCK_BEGIN):
            break
    index = start
    while index < len(lines) and (not lines[index].strip() or _BLOCK_FIELD.match(lines[index])):
        index += 1
    return index


class Statement(NamedTuple):
    text: str
    may_claim: bool = True  # no list item, no heading, nothing that was announced or wished


def speech(text: str) -> str:
    """What remains when blocks, code, quotations, tables, diffs and logs are taken out."""
    spoken = (lines for lines in _paragraphs(clean(text)) if lines != [EXHIBIT])
    return "\n\n".join("\n".join(lines) for lines in spoken)


@lru_cache(maxsize=2)
def last_paragraph(text: str) -> tuple[Statement, ...]:
    """The sentences of the last paragraph, after closing courtesies are left out."""
    paragraphs = _paragraphs(clean(text))
    while paragraphs:
        said = list(_sentences(paragraphs.pop()))
        while said and (said[-1].text == EXHIBIT or _COURTESY.match(said[-1].text.lower())):
            said.pop()
        if said:
            # Whether what stands before introduces this as something shown or wished.
            above = (line for lines in reversed(paragraphs) for line in lines)
            heading = next((line for line in above if _HEADING.match(line)), "")
            announced = _introduces(paragraphs[-1][-1]) if paragraphs else False
            claims = not (announced or _WISH.search(heading))
            return tuple(Statement(one.text, one.may_claim and claims) for one in said)
    return ()


def _introduces(line: str) -> bool:
    return line.rstrip("*_ ").endswith(":") and not _LABEL.fullmatch(line)


def _paragraphs(text: str) -> list[list[str]]:
    """The spoken lines of a text by paragraph; what is shown between them is one of its own."""
    paragraphs: list[list[str]] = [[]]
    in_list = False
    code = False
    for line in scan(text):
        spoken = line.text.rstrip() if line.kind is Kind.SPEECH else ""
        in_list = _ITEM.match(spoken) is not None or (in_list and spoken[:1] in {"", " ", "\t"})
        code = not in_list and spoken.startswith(("    ", "\t")) and (code or not paragraphs[-1])
        shown = code or _SHOWN_LINE.match(spoken.lstrip()) or spoken.count(" | ") >= 2
        if spoken and not shown:
            paragraphs[-1].append(spoken)
        elif spoken or line.kind is not Kind.SPEECH:
            paragraphs += [[EXHIBIT], []]
        elif paragraphs[-1]:
            paragraphs.append([])
    return [lines for lines in paragraphs if lines]


def _sentences(lines: list[str]) -> Iterator[Statement]:
    """The last sentences of a paragraph; a wrapped line goes on with the one before."""
    announced = False
    units = list[str]()
    size = 0
    for line in (line[-_MAX_LINE:] for line in lines[-_MAX_LINES:]):
        before = units[-1] if units and size < _MAX_LINE else ""
        is_apart = _HEADING.match(before) or _HEADING.match(line) or _ITEM.match(line)
        is_wrapped = len(before) >= _WRAPPED and not before.endswith((".", "!", "?", ":", ";"))
        if before and not is_apart and (is_wrapped or line.lstrip()[0].islower()):
            units[-1] += f" {line.strip()}"
            size += len(line)
        else:
            units.append(line)
            size = len(line)
    for unit in units:
        lead = _ITEM.match(unit) or _HEADING.match(unit)
        may_claim = not (lead or announced)
        if _OPEN_BOX.match(unit):
            yield Statement("still open", may_claim=False)
        # Inline code stands for some thing, never for its words, unless it names a story.
        text = _CODE_SPAN.sub(
            lambda span: span[1] if STORY.fullmatch(span[1]) else EXHIBIT,
            unit[lead.end() if lead else 0 :],
        ).strip()
        ends = [end.end() for end in _SENTENCE_END.finditer(text)]
        for start, end in pairwise((0, *ends, len(text))):
            if sentence := text[start:end].strip():
                yield Statement(sentence, may_claim)
        announced = _introduces(unit) if lead is None else announced
