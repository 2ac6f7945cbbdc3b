"""The documents of this version: where they are, what a terminal can do with their links, search.

A link to another page becomes the command that shows it (`ralph docs lanes#limits`); a picture
becomes its words.  What stands in code is left as it is.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

_WAYS = ("guides/*.md", "reference/*.md", "*.md", "decisions/*.md")
_FENCE = re.compile(r"^ {0,3}```", re.M)
_LINK = re.compile(
    r"(?P<picture>!?)\[(?P<words>(?:[^\[\]]|\[[^\[\]]{0,100}\]){0,500})\]\((?P<to>[^()\s]{1,300})\)"
)
_PICTURE = re.compile(r'<img [^>]*alt="(?P<words>[^"]*)"[^>]*>')
_HEADING = re.compile(r"(?P<level>#{1,6}) (?P<words>.*)")
_NO_WORD = re.compile(r"[^\w\- ]")
MOST_LINES = 3  # of a page that has a word


class DocPage(NamedTuple):
    """One page."""

    name: str  # with its directory, without its ending
    path: Path

    @property
    def text(self) -> str:
        """As it was written."""
        return self.path.read_text(encoding="utf-8")

    @property
    def title(self) -> str:
        """What it is about."""
        return self.text.partition("\n")[0].removeprefix("# ")


class FoundPage(NamedTuple):
    """A page that has the words, and its first lines that have one."""

    page: DocPage
    lines: list[str]


def every_page() -> dict[str, DocPage]:
    """Every page by its name; guides come first, decisions last."""
    from importlib.resources import files

    # A clone has them beside the package, an installation inside.
    package = Path(str(files("ralphloop")))
    places = (package / "docs", package.parents[1] / "docs")
    here = next(place for place in places if (place / "guides").is_dir())
    found = [path for way in _WAYS for path in sorted(here.glob(way))]
    named = {path.relative_to(here).with_suffix("").as_posix(): path for path in found}
    return {name: DocPage(name, path) for name, path in named.items()}


def page_called(asked: str, pages: Mapping[str, DocPage]) -> DocPage | None:
    """The page of this name, with its directory or without; also by the number of a decision."""
    name = asked.removesuffix(".md")
    alike = [page for known, page in pages.items() if f"/{known}".endswith(f"/{name}")]
    if not alike and re.fullmatch(r"\d{3}", name):
        alike = [page for known, page in pages.items() if known.startswith(f"decisions/{name}-")]
    return alike[0] if alike else None


def section_of(text: str, anchor: str) -> str:
    """The part of a page below the heading that a link names; empty where there is none."""
    level = 0
    kept: list[str] = []
    for line, is_code in _lines(text):
        heading = None if is_code else _HEADING.fullmatch(line)
        if heading is not None:
            depth = len(heading["level"])
            if level and depth <= level:
                break
            if not level and anchor_of(heading["words"]) == anchor:
                level = depth
        if level:
            kept.append(line)
    return "\n".join(kept)


def anchor_of(heading: str) -> str:
    """How a link names a heading."""
    return _NO_WORD.sub("", heading.lower()).replace(" ", "-")


def for_terminal(page: DocPage, text: str, pages: Mapping[str, DocPage]) -> str:
    """The text with links that can be followed there."""

    def shown(found: re.Match[str]) -> str:
        words = found["words"]
        if found["picture"]:
            return f"(picture: {words})"
        path, _, anchor = found["to"].partition("#")
        if "://" in path or path.startswith("mailto:"):
            return f"{words} ({path})" if words != path else words
        to = posixpath.normpath(posixpath.join(posixpath.dirname(page.name), path))
        target = page.name if not path else to.removesuffix(".md")
        if target not in pages:
            return words  # a file of the repository, which an installation does not have
        name = target.rpartition("/")[2]
        short = name if page_called(name, pages) == pages[target] else target
        where = f"{short}#{anchor}" if anchor else short
        return f"{words} (`ralph docs {where}`)"

    made = []
    for is_code, lines in groupby(_lines(text), key=itemgetter(1)):
        part = "\n".join(line for line, _ in lines)  # a link may go over two of them
        if not is_code:
            part = _PICTURE.sub(lambda found: f"(picture: {found['words']})", part)
            part = _LINK.sub(shown, part)
        made.append(part)
    return "\n".join(made)


def find_words(words: str, pages: Mapping[str, DocPage]) -> Iterator[FoundPage]:
    """Pages that have all of these words, in any case, those with one in their title first."""
    wanted = words.casefold().split()
    having = [it for it in pages.values() if all(one in it.text.casefold() for one in wanted)]
    having.sort(key=lambda it: not any(one in it.title.casefold() for one in wanted))
    for page in having:
        lines = [line.strip() for line in page.text.splitlines() if line.strip()]
        hits = [line for line in lines if all(one in line.casefold() for one in wanted)]
        hits = hits or [line for line in lines if any(one in line.casefold() for one in wanted)]
        yield FoundPage(page, [_plain(line) for line in hits[:MOST_LINES]])


def _plain(line: str) -> str:
    """A line without the marks of links."""
    return _LINK.sub(lambda found: found["words"], line).lstrip("#|- ").rstrip("| ")


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Every line, and whether it is code."""
    is_code = False
    for line in text.splitlines():
        is_fence = _FENCE.match(line) is not None
        yield line, is_code or is_fence
        is_code ^= is_fence
