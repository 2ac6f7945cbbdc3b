"""What the importers have in common: documents, their lines, and what comes of them."""

import re
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from ralphloop.text.lines import own_lines
from ralphloop.text.plain import clean, one_line

Entry = dict[str, object]  # one story in the shape of prd.json

CHECKBOX = re.compile(
    r"(?P<margin>\s{0,40})(?:[-*+]\s{0,8}|\d{1,4}[.)]\s{1,8})"
    r"\[(?P<tick>[ xX✓✔✅~-])\](?P<star>\\?\*?)\s+(?P<text>\S.*)"
)
BULLET = re.compile(r"(?P<margin>\s{0,40})(?:[-*+]|\d{1,4}[.)])\s+(?P<text>\S.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.{1,500})")
_EMPHASIS = re.compile(
    r"(?P<name>(?<!\w)__[a-z0-9]{1,40}(?:_[a-z0-9]{1,40}){0,5}__(?!\w))"  # `__init__` is a name
    r"|(?<!/)\*\*(?!/)|(?<!\w)__(?=\w)|(?<=\S)__(?!\w)"
)
_LONGEST_TITLE = 200
_DONE_WORD = re.compile(r"\W{0,9}(?:done|completed?|closed|finished)\b", re.IGNORECASE)
_STEP = re.compile(
    r"[-*+\s\d.)]{0,12}(?P<word>given|when|then|and|but)\b\**\s*[:,]?\s*(?P<rest>.*)",
    re.IGNORECASE,
)
_LONGEST_CRITERION = 2_000


class Document(NamedTuple):
    """A file that was read, by the name under which a person finds it."""

    path: str
    text: str

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def stem(self) -> str:
        return PurePosixPath(self.path).stem


class Unread(NamedTuple):
    """A line that became no part of a story, and why."""

    file: str
    line: int
    why: str
    words: str = ""

    def __str__(self) -> str:
        shown = f": {one_line(self.words, 80)}" if self.words else ""
        return f"{self.file}:{self.line}: {self.why}{shown}"


class Conversion(NamedTuple):
    """The open stories of a list, what it says of them together, and what was not read."""

    entries: list[Entry]
    kind: str
    done: int = 0  # left out
    project: str = ""
    description: str = ""
    unread: tuple[Unread, ...] = ()
    told: tuple[str, ...] = ()  # what was read, and left out on purpose


class NumberedLine(NamedTuple):
    number: int
    text: str


class Heading(NamedTuple):
    depth: int
    words: str


class Checkbox(NamedTuple):
    """A ticked or open item of a list."""

    margin: int
    is_done: bool
    is_optional: bool
    text: str


class ListedItem:
    """A task of a list: its words, and what stands below it."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.details: list[str] = []

    def go_on(self, words: str) -> None:
        """A line that is no item of its own belongs to the words before it."""
        if self.details:
            self.details[-1] = f"{self.details[-1]} {words}"
        else:
            self.title = f"{self.title} {words}"


def numbered_lines(text: str) -> list[NumberedLine]:
    """The lines with their numbers; those in fences and comments are blank."""
    lines = own_lines(clean(text))
    return [NumberedLine(number, line) for number, line in enumerate(lines, start=1)]


def heading_of(line: str) -> Heading | None:
    found = _HEADING.fullmatch(line.rstrip())
    return Heading(len(found[1]), plain(found[2].rstrip("# "))) if found else None


def checkbox_of(line: str) -> Checkbox | None:
    found = CHECKBOX.fullmatch(line.rstrip())
    if found is None:
        return None
    is_done = found["tick"] in "xX✓✔✅"
    return Checkbox(margin_of(line), is_done, bool(found["star"]), found["text"])


def margin_of(line: str) -> int:
    wide = line.expandtabs(4)
    return len(wide) - len(wide.lstrip())


def plain(text: str) -> str:
    """The words without bold marks; what is quoted as code stays as it is."""
    parts = text.split("`")
    is_paired = len(parts) % 2 == 1
    for index, part in enumerate(parts):
        is_code = index % 2 == 1 and (is_paired or index < len(parts) - 1)
        if not is_code:
            parts[index] = _EMPHASIS.sub(lambda mark: mark["name"] or "", part)
    return "`".join(parts).strip()


def title_of(words: str) -> str:
    """The words as a title: one line, cut where they are too many."""
    return one_line(words, _LONGEST_TITLE)


def whole_title(words: str) -> str:
    """All the words where a title had to be cut; nothing where it says everything."""
    line = one_line(words, _LONGEST_CRITERION)
    return line if len(line) > _LONGEST_TITLE else ""


def made(**fields: object) -> Entry:
    """One story; what says nothing is left out."""
    return {key: value for key, value in fields.items() if value not in ("", [], None)}


def says_done(status: str) -> bool:
    return _DONE_WORD.match(status) is not None


def source_of(document: Document, line: int, kind: str, item: str = "") -> Entry:
    """Where a story comes from, as it is kept with it; the item is how it is found there again."""
    return made(file=document.path, line=line, format=kind, item=item)


def still_needed(needs: Iterable[str], done: Collection[str]) -> list[str]:
    """What is waited for and not done, each once."""
    return [name for name in dict.fromkeys(needs) if name not in done]


class GivenWhenThen:
    """Given, when, then: what is seen, and what has to be so before."""

    def __init__(self) -> None:
        self._before: list[str] = []
        self._seen: list[str] = []
        self._is_seeing = False

    def take(self, line: str) -> bool:
        """Take a line that is one of its steps; False for any other line."""
        found = _STEP.fullmatch(plain(line))
        if found is None:
            return False
        word = found["word"].lower()
        rest = found["rest"].strip().rstrip(",;")
        if word == "then":
            self._is_seeing = True
        elif word in ("given", "when"):
            self._is_seeing = False
        steps = self._seen if self._is_seeing else self._before
        steps.append(rest if self._is_seeing else f"{word} {rest}")
        return True

    def ends_before(self, line: str) -> bool:
        """Whether this line is the first step of another scenario."""
        found = _STEP.fullmatch(plain(line))
        return bool(self._seen) and found is not None and found["word"].lower() in ("given", "when")

    def go_on(self, words: str) -> None:
        """Words on a line of their own belong to the step before them."""
        steps = self._seen if self._is_seeing else self._before
        if steps:
            steps[-1] = f"{steps[-1]} {words}"

    def criteria(self) -> list[str]:
        """One sentence for each thing that is seen."""
        before = ", ".join(self._before)
        led = f"{before}, then " if before else ""
        found = [_as_sentence(f"{led}{one}") for one in self._seen if one]
        if not found and before:
            found = [_as_sentence(before)]
        return found

    def as_one(self, title: str) -> str:
        """The whole as one criterion under its name."""
        parts = [*self._before, *(f"then {one}" for one in self._seen)]
        return one_line(f"{title}: {', '.join(parts)}" if parts else title, _LONGEST_CRITERION)


def _as_sentence(words: str) -> str:
    return one_line(words[:1].upper() + words[1:], _LONGEST_CRITERION)
