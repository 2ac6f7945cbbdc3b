"""What already is a list of tasks becomes stories without any model.  Pure.

That is a story file of this or another tool, a PRD whose headings are stories (`### US-001: …`), or
a Markdown checklist (`- [ ] …`, fix_plan.md), of which the lines below an item are its criteria.
What is ticked or marked as done there is left out: that it is done is somebody's word.
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ralphloop.stories.lint import KNOWN_KEYS
from ralphloop.stories.source import load, story_text
from ralphloop.text.lines import own_lines
from ralphloop.text.plain import clean, one_line

Entry = dict[str, object]  # one story in the shape of prd.json

_MOST_INTRO = 1_000
_READ = KNOWN_KEYS - {"touches", "labels", "estimate"}
_DATA = frozenset({".json", ".yaml", ".yml"})
_HEADING = re.compile(r"(#{1,6})\s+(.{1,500})")
_NAME = r"[A-Za-z]{1,12}-\d{1,6}|(?:user )?(?:story|task|feature) #?\d{1,4}"
_ID = re.compile(_NAME, re.IGNORECASE)
_STORY = re.compile(
    rf"[*_`\[]{{0,3}}(?P<id>{_NAME})[*_`\]]{{0,3}}\s*[:.)–—-]*\s*(?P<title>\S.*)", re.IGNORECASE
)
_OWN_ID = re.compile(r"\**(?P<id>[A-Z]{1,12}-\d{1,6})\**\s*[:.)–—-]\s*(?P<title>\S.*)")
_BULLET = re.compile(
    r"\s{0,40}(?:[-*+]|\d{1,4}[.)])\s+(?:\[(?P<tick>[ xX✓~-])\]\s+)?(?P<text>\S.*)"
)
_LABELS = {
    "acceptance criteria": "criteria", "criteria": "criteria", "description": "description",
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


class Conversion(NamedTuple):
    """The open stories of a text, and what it says of them together."""

    entries: list[Entry]
    kind: str
    done: int = 0  # left out
    project: str = ""
    description: str = ""


def convert(text: str, name: str) -> Conversion | None:
    """The stories of a file of this name; None where it is prose."""
    if Path(name).suffix.lower() in _DATA:
        return _story_file(text, Path(name))
    text = clean(text)
    if text.lstrip().startswith("{"):
        return _story_file(text, Path("stdin.json"))
    lines = list(own_lines(text))
    return _headings(lines) or _checklist(lines)


def made(**fields: object) -> Entry:
    """One story; what says nothing is left out."""
    return {key: value for key, value in fields.items() if value not in ("", [], None)}


def _story_file(text: str, path: Path) -> Conversion:
    """Whatever shape it has, as it is read; what is wrong with it is said."""
    stories = load(path, data=text.encode()).list
    raw = story_text(path, text.encode()).listing.entries
    passed = {story.id for story in stories.stories if story.passes}
    entries = list[Entry]()
    for story, one in zip(stories.stories, raw, strict=True):
        if story.passes:
            continue
        # In one shape, with the keys that nobody reads.
        more = {str(key): value for key, value in one.items()} if isinstance(one, dict) else {}
        entry = made(
            id=story.id,
            title=story.title,
            description=story.description,
            acceptanceCriteria=list(story.criteria),
            priority=story.priority,
            notes=story.notes,
            dependsOn=[name for name in story.depends_on if name not in passed],
            verify=list(story.verify) if story.verify else None,
            parent_spec=story.parent_spec,
        )
        entries.append({key: more[key] for key in more if key not in _READ} | entry)
    return Conversion(entries, "story file", len(passed), stories.project, stories.description)


class _Lines:
    def __init__(self, found: re.Match[str] | None, words: str, *, done: bool = False) -> None:
        self.name, self.title = (found["id"], found["title"]) if found else ("", words)
        self.ticked = done
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
        words = re.sub(r"\*\*|__", "", bullet["text"] if bullet else line).strip()
        if words.strip("-*_="):
            self.told.setdefault(self.part, []).append(words)
        if label and label["rest"] and self.part not in ("criteria", "notes"):
            self.part = "description"  # such a label is one line

    @property
    def is_done(self) -> bool:
        return self.ticked or _DONE.search(" ".join(self.told.get("status", ()))) is not None

    def entry(self, done: set[str]) -> Entry:
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
            title=one_line(re.sub(r"\*\*|__", "", self.title)),
            description=said.get("description"),
            acceptanceCriteria=self.told.get("criteria"),
            priority=int(rank[0]) if rank else self.rank or None,
            notes=said.get("notes"),
            dependsOn=[name for name in needs if name not in done],
            verify=verify,
        )


def _converted(found: Sequence[_Lines], kind: str, project: str, told: str = "") -> Conversion:
    done = {one.name for one in found if one.is_done}
    entries = [one.entry(done) for one in found if not one.is_done]
    name = one_line(_TITLED.sub("", project))
    return Conversion(entries, kind, len(found) - len(entries), name, one_line(told, _MOST_INTRO))


def _headings(lines: Sequence[str]) -> Conversion | None:
    """A PRD whose stories are headings; other sections are what it is about."""
    found: list[_Lines] = []
    sections = 0
    level = 0
    intro = ""
    project = ""
    for line in lines:
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
            found.append(_Lines(story, words))
        elif level and depth > level:
            found[-1].add(f"{words}:")  # a part of the story, such as its criteria
        else:
            level = 0
            project = project or words * (depth == 1)
    return _converted(found, "headings", project, intro) if found else None


def _checklist(lines: Sequence[str]) -> Conversion | None:
    """Ticked lists as they are kept by hand; None where prose outweighs them."""
    found: list[_Lines] = []
    section = ""
    others = 0
    project = ""
    for line in filter(str.strip, lines):
        if heading := _HEADING.fullmatch(line.rstrip()):
            section = heading[2]
            project = project or section * (len(heading[1]) == 1)
            continue
        bullet = _BULLET.fullmatch(line)
        wide = line.expandtabs(4)
        margin = len(wide) - len(wide.lstrip())
        now = found[-1] if found else None
        if bullet and bullet["tick"] and (now is None or margin <= now.margin):
            done = bullet["tick"] != " " or _DONE.search(section) is not None
            found.append(_Lines(_OWN_ID.fullmatch(bullet["text"]), bullet["text"], done=done))
            rank = _RANK.search(section)
            found[-1].rank = _RANKS[rank[1].lower()] if rank else 0
            found[-1].margin = margin
        elif now is not None and margin > now.margin:
            now.add(line)
        else:
            others += bullet is None
    return _converted(found, "checklist", project) if others <= len(found) > 0 else None
