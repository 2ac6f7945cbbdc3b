"""What already is a list of tasks becomes stories without any model.  Pure.

Four kinds are known: a story file of this or another tool (JSON or YAML), a PRD whose headings are
stories (`### US-001: …`), and a Markdown checklist (`- [ ] …`, fix_plan.md), of which the lines
below an item are its criteria.  Everything else is prose, and an agent's to read.

What is ticked or marked as done there is left out: that it is done is somebody's word, and only
what ralph saw itself, or a person marks here, passes.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ralphloop.core.story import Story, StoryList
from ralphloop.errors import InputError
from ralphloop.stories.lint import KNOWN_KEYS
from ralphloop.stories.shapes import Problems, find_list
from ralphloop.stories.source import decoded, load
from ralphloop.text.plain import clean, one_line

Entry = dict[str, object]  # one story in the shape of prd.json

LONGEST_TITLE = 200
_MOST_INTRO = 1_000
_READ = KNOWN_KEYS - {"touches", "labels", "estimate"}
_DATA = frozenset({".json", ".yaml", ".yml"})
_HEADING = re.compile(r"(#{1,6})\s+(.{1,500})")
_NAME = r"[A-Za-z]{1,12}-\d{1,6}|(?:user )?(?:story|task|feature) #?\d{1,4}"
_STORY = re.compile(
    rf"[*_`\[]{{0,3}}(?P<id>{_NAME})[*_`\]]{{0,3}}\s*[:.)–—-]*\s*(?P<title>\S.*)", re.IGNORECASE
)
_ITEM = re.compile(
    r"(?P<margin>\s{0,40})(?:[-*+]|\d{1,4}[.)])\s+\[(?P<mark>[ xX✓~-])\]\s+(?P<text>\S.*)"
)
_BULLET = re.compile(r"(?P<margin>\s{0,40})(?:[-*+]|\d{1,4}[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>\S.*)")
_LABEL = re.compile(
    r"\s*[-*]?\s*\**(?P<label>acceptance criteria|criteria|description|depends on|dependencies"
    r"|blocked by|verify|verification|priority|notes?|status)\s*:?\**\s*:?\**\s*(?P<rest>.*)",
    re.IGNORECASE,
)
_ID = re.compile(_NAME, re.IGNORECASE)
_OWN_ID = re.compile(r"\**(?P<id>[A-Z]{1,12}-\d{1,6})\**\s*[:.)–—-]\s*(?P<title>\S.*)")
_DONE_SECTION = re.compile(r"\b(?:completed|done|finished|archive)\b", re.IGNORECASE)
_RANKS = {"critical": 1, "urgent": 1, "high": 1, "medium": 2, "normal": 2, "low": 3, "later": 4}
_RANK = re.compile(rf"\b({'|'.join(_RANKS)})\b", re.IGNORECASE)


class Converted(NamedTuple):
    """The open stories of a text, and what it says of them together."""

    entries: list[Entry]
    kind: str
    done: int = 0  # left out
    project: str = ""
    description: str = ""


def convert(text: str, name: str) -> Converted | None:
    """The stories of a file of this name; None where it is prose."""
    if Path(name).suffix.lower() in _DATA:
        return _story_file(text, Path(name))
    text = clean(text)
    if text.lstrip()[:1] in "{[" and text.strip():
        return _story_file(text, Path("stdin.json"))
    return _headings(text) or _checklist(text)


# --- story files of this and other tools --------------------------------------------------------


def _story_file(text: str, path: Path) -> Converted:
    """Whatever shape it has, as it is read; what is wrong with it is said."""
    text = _unwrapped(text) if path.suffix == ".json" else text
    stories = load(path, data=text.encode()).list
    raw = find_list(decoded(path, text), Problems(path)).entries
    passed = {story.id for story in stories.stories if story.passes}
    pairs = zip(stories.stories, raw, strict=True)
    entries = [_entry_of(story, one, passed) for story, one in pairs if not story.passes]
    return Converted(entries, "story file", len(passed), stories.project, stories.description)


def _unwrapped(text: str) -> str:
    """A bare list, or one object around the file, as generators write them."""
    try:
        root = json.loads(text)
    except (ValueError, RecursionError):
        return text  # and the reader says why not
    if isinstance(root, list):
        return json.dumps({"userStories": root})
    inner = (
        [one for one in root.values() if isinstance(one, dict)] if isinstance(root, dict) else []
    )
    wraps = len(inner) == 1 and not any(isinstance(one, list) for one in root.values())
    return json.dumps(inner[0]) if wraps else text


def _entry_of(story: Story, raw: object, passed: set[str]) -> Entry:
    """In one shape, with the keys that nobody reads."""
    more = {str(key): value for key, value in raw.items()} if isinstance(raw, dict) else {}
    kept = {key: value for key, value in more.items() if key not in _READ}
    return kept | made(
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


def made(**fields: object) -> Entry:
    """One story; what says nothing is left out."""
    return {key: value for key, value in fields.items() if value not in ("", [], None)}


# --- headings ------------------------------------------------------------------------------------


class _Draft:
    """A story whose lines are still being read."""

    def __init__(self, title: str, name: str = "", margin: int = 0) -> None:
        self.title, self.name, self.margin = title, name, margin
        self.fields: dict[str, list[str]] = {}
        self.part = "description"

    def add(self, line: str) -> None:
        """One more line; a label says where it and what follows belongs."""
        if (label := _LABEL.fullmatch(line)) and (label["rest"] == "" or ":" in line):
            self.part = _part(label["label"].lower())
            line = label["rest"]
        bullet = _BULLET.fullmatch(line)
        if _ITEM.fullmatch(line) or (bullet and self.part == "description"):
            self.part = "criteria"
        words = (bullet["text"] if bullet else line).strip()
        if words and not set(words) <= set("-*_="):
            self.fields.setdefault(self.part, []).append(words)
        if label and label["rest"] and self.part not in ("criteria", "notes"):
            self.part = "description"  # such a label is one line

    def entry(self, *, priority: int | None = None, done: Collection[str] = ()) -> Entry:
        told = {part: [_plain(line) for line in lines] for part, lines in self.fields.items()}
        ranks = [int(n) for n in re.findall(r"\d{1,6}", " ".join(told.get("priority", ())))]
        needs = _ID.findall(" ".join(told.get("depends", ())))
        return made(
            id=self.name,
            title=one_line(_plain(self.title), LONGEST_TITLE),
            description="\n".join(told.get("description", ())),
            acceptanceCriteria=told.get("criteria", []),
            priority=ranks[0] if ranks else priority,
            notes="\n".join(told.get("notes", ())),
            dependsOn=[name for name in dict.fromkeys(needs) if name not in done],
            verify=_argv(" ".join(self.fields.get("verify", ())[:1])),
        )

    @property
    def is_done(self) -> bool:
        said = " ".join(self.fields.get("status", ())).lower()
        return bool(re.search(r"\b(?:done|complete|completed|passed|closed)\b", said))


def _part(label: str) -> str:
    if label in ("depends on", "dependencies", "blocked by"):
        return "depends"
    known = {"acceptance criteria": "criteria", "note": "notes", "verification": "verify"}
    return known.get(label, label)


def _plain(text: str) -> str:
    """Without the marks of emphasis, which are for the eye."""
    return re.sub(r"\*\*|__", "", text).strip()


def _argv(text: str) -> list[str] | None:
    """A command in backticks, or the whole line where there are none."""
    quoted = re.search(r"`([^`]{1,500})`", text)
    try:
        return shlex.split(quoted[1] if quoted else text) or None
    except ValueError:
        return None


def _headings(text: str) -> Converted | None:
    """A PRD whose stories are headings; other sections are what it is about."""
    drafts: list[_Draft] = []
    sections, level, now, intro, project = 0, 0, None, list[str](), ""
    for line in _outside_fences(text):
        heading = _HEADING.fullmatch(line.rstrip())
        if heading is None:
            if now is not None:
                now.add(line)
            elif sections <= 1:
                intro.append(line.strip())
            continue
        sections, depth, words = sections + 1, len(heading[1]), heading[2].rstrip("# ")
        story = _STORY.fullmatch(words) if depth > 1 else None
        if story is not None:
            now, level = _Draft(story["title"], _id(story["id"])), depth
            drafts.append(now)
        elif now is not None and depth > level:
            now.add(f"{words}:")  # a part of the story, such as its criteria
        else:
            now = None
            project = project or (_project(words) if depth == 1 else "")
    if not drafts:
        return None
    done = {draft.name for draft in drafts if draft.is_done}
    entries = [draft.entry(done=done) for draft in drafts if not draft.is_done]
    told = one_line(" ".join(intro), _MOST_INTRO)
    return Converted(entries, "headings", len(drafts) - len(entries), project, told)


def _id(text: str) -> str:
    return text if "-" in text else " ".join(text.split())


def _project(words: str) -> str:
    return one_line(re.sub(r"^(?:PRD|Product Requirements(?: Document)?)\s*[:–—-]\s*", "", words))


def _outside_fences(text: str) -> Iterator[str]:
    """The lines that are no code."""
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            yield line


# --- checklists ----------------------------------------------------------------------------------


def _checklist(text: str) -> Converted | None:
    """Ticked lists as they are kept by hand; None where prose outweighs them."""
    drafts: list[tuple[_Draft, bool, int | None]] = []
    done_section, rank, others, project = False, None, 0, ""
    for line in _outside_fences(text):
        if heading := _HEADING.fullmatch(line.rstrip()):
            done_section = bool(_DONE_SECTION.search(heading[2]))
            found = _RANK.search(heading[2])
            rank = _RANKS[found[1].lower()] if found else None
            project = project or (_project(heading[2]) if len(heading[1]) == 1 else "")
            continue
        item, now = _ITEM.fullmatch(line), drafts[-1][0] if drafts else None
        margin = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        if item and (now is None or margin <= now.margin):
            words = _OWN_ID.fullmatch(item["text"])
            named = (words["title"], words["id"]) if words else (item["text"], "")
            ticked = item["mark"] != " " or done_section
            drafts.append((_Draft(*named, margin), ticked, rank))
        elif now is not None and line.strip() and margin > now.margin:
            now.add(line)
        else:
            others += bool(line.strip()) and _BULLET.fullmatch(line) is None
    if not drafts or others > len(drafts):
        return None
    entries = [draft.entry(priority=rank) for draft, ticked, rank in drafts if not ticked]
    return Converted(entries, "checklist", len(drafts) - len(entries), project)


def story_values(entries: list[Entry], others: Mapping[str, str]) -> StoryList:
    """The values of these stories beside others (id → title); InputError says all that is wrong."""
    stubs = [{"id": name, "title": title} for name, title in others.items()]
    data = json.dumps({"userStories": [*entries, *stubs]}).encode()
    try:
        return load(Path("plan"), data=data).list
    except InputError as error:
        message = error.message.removeprefix("plan: ")
        raise InputError(message, "Nothing was written.") from None
