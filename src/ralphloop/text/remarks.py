"""What an agent may say beside its status block: what it found, what it doubts, and its summary.

Only its own last words count, and in them only lines outside fences, quotations and the block; a
line that is indented like our template, or holds nothing but dots, is an echo of the prompt.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ralphloop.text.lines import Kind, own_lines, scan
from ralphloop.text.plain import LazyRegex, clean, one_line

FOUND = "FOUND:"
DOUBT = "DOUBT:"
MOST_REMARKS = 5  # of one kind in one answer
LONGEST_REMARK = 400
_MOST_TEXT = 64_000
_MARKED = LazyRegex(r" {0,3}(?:[-*+] )?\**(found|doubt)\**:\**\s+(.+)", re.I)
_ANY_MARK = LazyRegex(
    r" {0,3}(?:[-*+] )?\**(?:found|doubt|learned|learning|lesson|gotcha|pattern|discovery)\**:",
    re.I,
)
_WORD = LazyRegex(r"\w{2,}")
_CUT = "[…]"


class Remarks(NamedTuple):
    found: tuple[str, ...] = ()  # broken or missing outside of the story
    doubts: tuple[str, ...] = ()  # what a person should look at


def remarks_in(text: str) -> Remarks:
    """The lines that an agent marked so, each once, not too many and none too long."""
    lines: dict[str, list[str]] = {"found": [], "doubt": []}
    for line in own_lines(clean(text[-_MOST_TEXT:])):
        marked = _MARKED.match(line)
        if marked is None:
            continue
        kept = lines[marked[1].lower()]
        said = one_line(marked[2].strip(" *"), LONGEST_REMARK)
        if len(_WORD.findall(said)) >= 2 and said not in kept and len(kept) < MOST_REMARKS:
            kept.append(said)
    return Remarks(tuple(lines["found"]), tuple(lines["doubt"]))


def answer_without_block(text: str, most: int) -> str:
    """All that was said, without status blocks; of too much the beginning and the end."""
    spoken = (line.text for line in scan(clean(text)) if line.kind is not Kind.BLOCK)
    said = "\n".join(spoken).strip()
    if len(said) <= most:
        return said
    room = most - len(_CUT) - 2
    head = said[: room * 3 // 4].rpartition("\n")[0] or said[: room * 3 // 4]
    rest = said[-(room // 4) :]
    tail = rest.partition("\n")[2] or rest
    return f"{head}\n{_CUT}\n{tail}"


def summary_of(answer: str, most: int) -> str:
    """What the agent says it did: the first paragraphs of its answer, without marked lines."""
    kept = list[str]()
    size = 0
    for paragraph in _paragraphs(answer):
        if kept and size + len(paragraph) > most:
            break
        kept.append(one_line(paragraph, most))
        size += len(paragraph)
    return "\n".join(kept)


def _paragraphs(answer: str) -> Iterator[str]:
    lines = list[str]()
    for line in own_lines(clean(answer)):
        spoken = line.strip().lstrip("#>").strip()
        if spoken and not _ANY_MARK.match(line):
            lines.append(spoken)
        elif lines:
            yield " ".join(lines)
            lines = []
    if lines:
        yield " ".join(lines)
