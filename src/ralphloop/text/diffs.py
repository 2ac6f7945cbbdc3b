"""A whole diff, in parts that somebody can take in: nothing is cut silently.

A diff is expected as git writes it for text (`--text`): what a repository says of its own files, in
attributes, decides nothing.  A file whose content is no text is named in one line.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

_SECTION = re.compile(r"^diff --git ", re.MULTILINE)
_HUNKS = "\n@@ "
_NO_TEXT = "\0"


def diff_parts(diff: str, longest: int) -> list[str]:
    """The diff in parts of at most so many characters, files whole where that is possible."""
    parts: list[str] = []
    for section in _sections(diff):
        for piece in _pieces(_named_only(section), longest):
            if parts and len(parts[-1]) + len(piece) <= longest:
                parts[-1] += piece
            else:
                parts.append(piece)
    return parts or [""]


def _sections(diff: str) -> Iterator[str]:
    """What is said of each file."""
    starts = [found.start() for found in _SECTION.finditer(diff)]
    for start, end in pairwise([*starts, len(diff)]):
        yield diff[start:end]


def _named_only(section: str) -> str:
    """The same, with one line in the place of content that is no text."""
    head, _, body = section.partition(_HUNKS)
    if _NO_TEXT not in body:
        return section
    return f"{head}\n(its content is not text: {len(body)} characters are not shown)\n"


def _pieces(section: str, longest: int) -> Iterator[str]:
    """A long section in pieces, each under the file's own lines; a very long line is broken."""
    if len(section) <= longest:
        yield section
        return
    head, _, _ = section.partition(_HUNKS)
    top = f"{head}\n" if len(head) < longest // 2 else ""
    rest = section[len(top) :]
    room = longest - len(top) - 1
    while rest:
        end = len(rest)
        if end > room:
            end = rest.rfind("\n", 0, room) + 1 or room
        piece = rest[:end]
        rest = rest[end:]
        yield top + piece + ("" if piece.endswith("\n") else "\n")
