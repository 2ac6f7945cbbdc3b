"""Lists as people and loops keep them: story headings, and Markdown checklists.

A PRD whose headings are stories (`### US-001: …`), or ticked items (`- [ ] …`, fix_plan.md), of
which the lines below an item are its criteria.  What is ticked or marked as done there is left out:
that it is done is somebody's word.
"""

import re
import shlex
from collections.abc import Sequence

from ralphloop.plan.importers.reading import (
    Conversion,
    Document,
    Entry,
    NumberedLine,
    made,
    margin_of,
    numbered_lines,
    plain,
    source_of,
    title_of,
    whole_title,
)
from ralphloop.text.headings import CRITERIA_HEADINGS
from ralphloop.text.plain import one_line

HEADINGS = "headings"
CHECKLIST = "checklist"
_MOST_INTRO = 1_000
_HEADING = re.compile(r"(#{1,6})\s+(.{1,500})")
_NAME = r"[A-Za-z]{1,12}-\d{1,6}|(?:user )?(?:story|task|feature) #?\d{1,4}"
_ID = re.compile(_NAME, re.IGNORECASE)
_STORY = re.compile(
    rf"[*_`\[]{{0,3}}(?P<id>{_NAME})[*_`\]]{{0,3}}\s*[:.)–—-]*\s*(?P<title>\S.*)", re.IGNORECASE
)
_OWN_ID = re.compile(r"\**(?P<id>[A-Z]{1,12}-\d{1,6})\**\s*[:.)–—-]\s*(?P<title>\S.*)")
_BULLET = re.compile(
    r"\s{0,40}(?:[-*+]|\d{1,4}[.)])\s+(?:\[(?P<tick>[ xX✓✔✅~-])\]\s+)?(?P<text>\S.*)"
)
_LABELS = {
    **dict.fromkeys(sorted(CRITERIA_HEADINGS), "criteria"),
    "criteria": "criteria", "description": "description",
    "depends on": "depends", "dependencies": "depends", "blocked by": "depends",
    "verify": "verify", "verification": "verify", "priority": "priority", "note": "notes",
    "notes": "notes", "status": "status",
}  # fmt: skip
_LABEL = re.compile(
    rf"\s*[-*]?\s*\**(?P<label>{'|'.join(_LABELS)})\**:\**\s*(?P<rest>.*)", re.IGNORECASE
)
_DONE = re.compile(r"\b(?:done|completed?|finished|passed|closed|archive)\b", re.IGNORECASE)
_RANKS = {"critical": 1, "urgent": 1, "high": 1, "medium": 2, "normal": 2, "low": 3, "later": 4}
_RANK = re.compile(rf"\b({'|'.join(_RANKS)})\b", re.IGNORECASE)
_TITLED = re.compile(r"^(?:PRD|Product Requirements(?: Document)?)\s*[:–—-]\s*")


def read(documents: Sequence[Document]) -> Conversion | None:
    """The stories of a text; None where it is prose."""
    lines = numbered_lines(documents[0].text)
    return _headings(lines, documents[0]) or _checklist(lines, documents[0])


class _Item:
    """A heading or a ticked item, and the lines that belong to it."""

    def __init__(self, line: int, named: re.Match[str] | None, words: str) -> None:
        self.line = line
        self.item = words
        self.name = named["id"] if named else ""
        self.title = named["title"] if named else words
        self.is_ticked = False
        self.rank = 0
        self.margin = 0
        self.part = "description"
        self.told: dict[str, list[str]] = {}

    def add(self, line: str) -> None:
        """One more line; a label says where it and what follows belongs."""
        label = _LABEL.fullmatch(line)
        if label:
            self.part = _LABELS[label["label"].lower()]
            line = label["rest"]
        bullet = _BULLET.fullmatch(line)
        if bullet and (bullet["tick"] or self.part == "description"):
            self.part = "criteria"
        words = plain(bullet["text"] if bullet else line)
        if words.strip("-*_="):
            self.told.setdefault(self.part, []).append(words)
        if label and label["rest"] and self.part not in ("criteria", "notes"):
            self.part = "description"  # such a label is one line

    @property
    def is_done(self) -> bool:
        return self.is_ticked or _DONE.search(" ".join(self.told.get("status", ()))) is not None

    def entry(self, done: set[str], document: Document, kind: str) -> Entry:
        words = plain(self.title)
        said = {part: "\n".join(lines) for part, lines in self.told.items()}
        rank = re.search(r"\d{1,6}", said.get("priority", ""))
        needs = dict.fromkeys(_ID.findall(said.get("depends", "")))
        command = said.get("verify", "")  # in backticks, or the whole where there are none
        quoted = re.search(r"`([^`]{1,500})`", command)
        try:
            verify = shlex.split(quoted[1] if quoted else command)
        except ValueError:
            verify = []
        return made(
            id=self.name,
            title=title_of(words),
            description="\n".join(filter(None, [whole_title(words), said.get("description")])),
            acceptanceCriteria=self.told.get("criteria"),
            priority=int(rank[0]) if rank else self.rank or None,
            notes=said.get("notes"),
            dependsOn=[name for name in needs if name not in done],
            verify=verify,
            source=source_of(document, self.line, kind, self.item) if document.path else None,
        )


def _converted(
    found: Sequence[_Item], document: Document, kind: str, project: str, told: str = ""
) -> Conversion:
    done = {one.name for one in found if one.is_done}
    entries = [one.entry(done, document, kind) for one in found if not one.is_done]
    name = one_line(_TITLED.sub("", project))
    return Conversion(entries, kind, len(found) - len(entries), name, one_line(told, _MOST_INTRO))


def _headings(lines: Sequence[NumberedLine], document: Document) -> Conversion | None:
    """A PRD whose stories are headings; other sections are what it is about."""
    found: list[_Item] = []
    sections = 0
    level = 0
    intro = ""
    project = ""
    for number, line in lines:
        heading = _HEADING.fullmatch(line.rstrip())
        if heading is None:
            if level:
                found[-1].add(line)
            elif sections <= 1:
                intro += f" {line}"
            continue
        sections = sections + 1
        depth = len(heading[1])
        words = heading[2].rstrip("# ")
        if depth > 1 and (story := _STORY.fullmatch(words)):
            level = depth
            found.append(_Item(number, story, words))
        elif level and depth > level:
            found[-1].add(f"{words}:")  # a part of the story, such as its criteria
        else:
            level = 0
            if depth == 1 and not project:
                project = words
    return _converted(found, document, HEADINGS, project, intro) if found else None


def _checklist(lines: Sequence[NumberedLine], document: Document) -> Conversion | None:
    """Ticked lists as they are kept by hand; None where prose outweighs them."""
    found: list[_Item] = []
    section = ""
    others = 0
    project = ""
    for number, line in lines:
        if not line.strip():
            continue
        if heading := _HEADING.fullmatch(line.rstrip()):
            section = heading[2]
            if len(heading[1]) == 1 and not project:
                project = section
            continue
        bullet = _BULLET.fullmatch(line)
        margin = margin_of(line)
        now = found[-1] if found else None
        if bullet and bullet["tick"] and (now is None or margin <= now.margin):
            item = _Item(number, _OWN_ID.fullmatch(bullet["text"]), bullet["text"])
            item.is_ticked = bullet["tick"] != " " or _DONE.search(section) is not None
            rank = _RANK.search(section)
            item.rank = _RANKS[rank[1].lower()] if rank else 0
            item.margin = margin
            found.append(item)
        elif now is not None and margin > now.margin:
            now.add(line)
        elif bullet is None:
            others += 1
    is_list = 0 < len(found) >= others
    return _converted(found, document, CHECKLIST, project) if is_list else None
