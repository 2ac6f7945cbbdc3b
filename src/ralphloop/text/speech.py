"""What an agent says in its own words, apart from what it shows.

A message mixes speech with exhibits: status blocks, code, quotations, tables, diffs, listings, log
lines.  Only speech can state something about the work.  `speech` is all of it; `last_paragraph` is
where an answer ends, in sentences, after closing courtesies ("Let me know if …") are left out.

A sentence may be spoken and still claim nothing: items and headings name things, and what was
announced ("The banner reads:") or stands under a heading of wishes ("Next steps") is no report.
Inline code stands for "some thing" (`…`), never for the words inside it.

Every pattern is anchored or bounded, so the cost is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from ralphloop.text.lazy_regex import LazyRegex
from ralphloop.text.lines import Kind, scan
from ralphloop.text.plain import clean

EXHIBIT = "…"  # stands for something that is shown
STORY = LazyRegex(r"\b[a-z][a-z0-9]{0,9}-\d{1,6}\b", re.IGNORECASE)
_MAX_LINE, _MAX_LINES = 4_000, 200  # read of a paragraph, from its end

_SHOWN_LINE = LazyRegex(
    r"[+|>]|-(?![-\s])|@@|//|/\*|\d{1,7}(?:\t|[ ]?[→│|]|:[ ]{2})"  # diffs, tables, code, listings
    r"|(?:[-*•][ \t]+)?[*_`]{0,3}[A-Z]+(?:_[A-Z]+)*[*_`]{0,3}[ \t]*:|[a-z_]+: "  # fields
    r"|\[?(?:\d{4}-\d\d-\d\d[T ]|\d\d:\d\d:\d\d)"  # log lines
    r"|\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR)\b[\]: ]|\[(?:info|warn|debug|error)\]"
    r"|[$%❯][ ]\S|[-=*_ ]{3,}$|diff --git "  # prompts, rules
)
_ITEM = LazyRegex(r"[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+(?=\S)|[ \t]*\[[ xX]\]")
_OPEN_BOX = LazyRegex(r"[ \t]*(?:[-*•][ \t]+)?\[ ?\]")
_HEADING = LazyRegex(r" {0,3}#{1,6}[ \t]+")
_WISH = LazyRegex(
    r"next|remain|to-?do|criteri|requirement|definition|plan\b|goal|missing|open|left|expect"
    r"|example",
    re.IGNORECASE,
)
_LABEL = LazyRegex(r"\W*(?:summary|results?|status|verdict|conclusion|in short)\W*", re.IGNORECASE)
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


class Said(NamedTuple):
    text: str
    may_claim: bool = True  # no list item, no heading, nothing that was announced or wished


def speech(text: str) -> str:
    """What remains when blocks, code, quotations, tables, diffs and logs are taken out."""
    spoken = (lines for lines in _paragraphs(clean(text)) if lines != [EXHIBIT])
    return "\n\n".join("\n".join(lines) for lines in spoken)


@lru_cache(maxsize=2)
def last_paragraph(text: str) -> tuple[Said, ...]:
    """The sentences of the last paragraph, after closing courtesies are left out."""
    paragraphs = _paragraphs(clean(text))
    while paragraphs:
        said = list(_sentences(paragraphs.pop()))
        while said and (said[-1].text == EXHIBIT or _COURTESY.match(said[-1].text.lower())):
            said.pop()
        if said:
            claims = not _announces(paragraphs)
            return tuple(Said(one.text, one.may_claim and claims) for one in said)
    return ()


def _announces(before: list[list[str]]) -> bool:
    """Whether the paragraphs before introduce the next one as something shown or wished."""
    headings = (line for lines in reversed(before) for line in lines if _HEADING.match(line))
    heading = next(headings, "")
    return _introduces(before[-1][-1] if before else "") or bool(_WISH.search(heading))


def _introduces(line: str) -> bool:
    return line.rstrip("*_ ").endswith(":") and not _LABEL.fullmatch(line)


def _paragraphs(text: str) -> list[list[str]]:
    """The speech of a text, cut at blank lines and at everything that is shown."""
    paragraphs: list[list[str]] = [[]]
    in_list = code = False
    for line in scan(text):
        spoken = line.text.rstrip() if line.kind is Kind.SPEECH else ""
        in_list = _ITEM.match(spoken) is not None or (in_list and spoken[:1] in {"", " ", "\t"})
        code = not in_list and spoken.startswith(("    ", "\t")) and (code or not paragraphs[-1])
        if spoken and not code and not _is_shown(spoken):
            paragraphs[-1].append(spoken)
        elif spoken or line.kind is not Kind.SPEECH:
            paragraphs += [[EXHIBIT], []]
        elif paragraphs[-1]:
            paragraphs.append([])
    return [lines for lines in paragraphs if lines]


def _is_shown(line: str) -> bool:
    return _SHOWN_LINE.match(line.lstrip()) is not None or line.count(" | ") >= 2


def _sentences(lines: list[str]) -> Iterator[Said]:
    """The last sentences of a paragraph; a wrapped line goes on with the one before."""
    announced, units, size = False, list[str](), 0
    for line in (line[-_MAX_LINE:] for line in lines[-_MAX_LINES:]):
        if units and size < _MAX_LINE and _continues(line, units[-1]):
            units[-1] += f" {line.strip()}"
            size += len(line)
        else:
            units.append(line)
            size = len(line)
    for unit in units:
        lead = _ITEM.match(unit) or _HEADING.match(unit)
        may_claim = not (lead or announced)
        if _OPEN_BOX.match(unit):
            yield Said("still open", may_claim=False)
        yield from (Said(text, may_claim) for text in _split(unit[lead.end() if lead else 0 :]))
        announced = _introduces(unit) if lead is None else announced


def _continues(line: str, before: str) -> bool:
    if _HEADING.match(before) or _HEADING.match(line) or _ITEM.match(line):
        return False
    wrapped = len(before) >= _WRAPPED and not before.endswith((".", "!", "?", ":", ";"))
    return line.lstrip()[0].islower() or wrapped


def _split(unit: str) -> Iterator[str]:
    text = _CODE_SPAN.sub(_spoken_code, unit).strip()
    start = 0
    for end in _SENTENCE_END.finditer(text):
        yield text[start : end.end()].strip()
        start = end.end()
    if rest := text[start:].strip():
        yield rest


def _spoken_code(span: re.Match[str]) -> str:
    """Inline code stands for some thing, never for its words, unless it names a story."""
    return span[1] if STORY.fullmatch(span[1]) else EXHIBIT
