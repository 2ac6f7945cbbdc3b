"""BMAD: epics with their stories, story files, and the status of the sprint beside them.

`Story 1.1: …` is a story, as a heading of an epic, as an item of its list, or as a file of its own,
which then counts.  Given, when, then become one criterion for each thing that is seen.  Whether one
is done is said by its file or by `sprint-status.yaml`; an epic alone does not say.
"""

import re
from collections.abc import Collection, Sequence

from ralphloop.plan.importers.reading import (
    BULLET,
    Conversion,
    Document,
    Entry,
    GivenWhenThen,
    Heading,
    Unread,
    checkbox_of,
    heading_of,
    made,
    margin_of,
    numbered_lines,
    plain,
    says_done,
    source_of,
    still_needed,
    title_of,
    whole_title,
)
from ralphloop.text.headings import CRITERIA_HEADINGS
from ralphloop.text.plain import one_line

KIND = "BMAD"
SPRINT = "sprint-status.yaml"
_NAME = r"[A-Za-z]{0,4}\d{1,3}(?:[.-]\d{1,3}){1,3}[a-z]?"
_STORY = re.compile(rf"(?:user )?story\s+(?P<id>{_NAME})\b\W{{0,6}}(?P<title>\S.*)", re.IGNORECASE)
_LISTED = re.compile(
    rf"(?:user )?story\s+(?P<id>{_NAME})\b\s*[:–—-]\s*(?P<title>\S.*)", re.IGNORECASE
)
_UNNUMBERED = re.compile(r"(?:user )?story\s*(?:[:#–—]|\s-\s)", re.IGNORECASE)
_EPIC = re.compile(r"epic\s+(?P<number>\d{1,3})\b\W{0,6}(?P<title>.*)", re.IGNORECASE)
_STORY_ID = re.compile(rf"(?<![\w.]){_NAME}(?!\w|\.\w)")
_WHOLE_EPIC = re.compile(r"epic\s+(\d{1,3})\b", re.IGNORECASE)
_PARTS = {
    **dict.fromkeys(sorted(CRITERIA_HEADINGS), "criteria"),
    "status": "status", "prerequisites": "needs",
    "prerequisite": "needs", "dependencies": "needs", "depends on": "needs",
    "technical notes": "notes", "dev notes": "notes", "notes": "notes",
    "technical tasks": "tasks", "tasks": "tasks", "tasks / subtasks": "tasks",
    "tasks/subtasks": "tasks", "story": "description", "user story": "description",
    "description": "description",
}  # fmt: skip
_SKIPPED = frozenset({"change log", "dev agent record", "qa results", "file list"})
_LABEL = re.compile(
    rf"\W{{0,4}}(?P<label>{'|'.join(sorted(_PARTS, key=len, reverse=True))})"
    r"(?:\s*\([^)]{0,60}\))?\s*(?::|$)\s*(?P<rest>.*)",
    re.IGNORECASE,
)
_HEADED = re.compile(
    r"\W{0,6}(?:\d{1,2}\.\s+)?(?P<label>[^(]{1,80}?)[\s:]*(?:\(.{0,80})?[\W_]{0,6}"
)
_SPRINT_LINE = re.compile(
    r"\s+(?P<id>\d{1,3}(?:-\d{1,3}[a-z]?\b){1,3})(?:-[\w-]{0,200})?:\s*(?P<status>[\w-]{1,40})"
)
_WHOLE_SCENARIO = re.compile(r"\W{0,6}(?:\d{1,3}\W{1,4})?given\b.{1,1500}\bthen\b", re.IGNORECASE)
_EMPHASISED = re.compile(r"(?<![\w*])\*([^*`]{1,200})\*(?![\w*])")
_LONGEST_GROUP = 60
_BLOCKED_BY_IT = re.compile(r"\b(?:blocks|blocking|unblocks|enables|required by)\b", re.IGNORECASE)
_NOTHING = re.compile(r"\W*(?:none|n/a|nothing|no\b)", re.IGNORECASE)


class _Story:
    def __init__(self, document: Document, line: int, name: str, title: str, epic: str) -> None:
        self.document = document
        self.line = line
        self.name = name.replace("-", ".")
        self.title = _EMPHASISED.sub(r"\1", plain(title)).rstrip("*: ")
        self.epic = epic
        self.part = "description"
        self.told: dict[str, list[str]] = {}
        self.criteria: list[str] = []
        self.scenario: GivenWhenThen | None = None
        self.group = ""  # what the criteria that follow are about
        self.has_grouped = False  # one has followed
        self.part_depth = 0  # of the heading that began the part
        self.margin = 0  # of the criterion that was added last
        self.needs_line = line
        self.is_file = False

    def add(self, number: int, line: str) -> None:
        """One more line, where the last label says it belongs."""
        label = _LABEL.fullmatch(plain(line)) if line.strip() else None
        if label is not None:
            self.begin(_PARTS[label["label"].lower()], number)
            line = label["rest"]
        if not line.strip().strip("-*_="):
            return
        if self.part == "criteria":
            self._add_criterion(line)
        elif self.part != "skipped":
            self.told.setdefault(self.part, []).append(plain(line))
        if label is not None and self.part in ("needs", "status"):
            self.begin("description", number)

    def begin(self, part: str, number: int, depth: int = 0) -> None:
        self.begin_group("")
        self.part = part
        self.part_depth = depth
        if part == "needs":
            self.needs_line = number

    def begin_group(self, words: str) -> None:
        """What follows is about this; a group of which nothing followed is a criterion itself."""
        self.close()
        if self.group and not self.has_grouped:
            self.criteria.append(self.group)
        self.group = words
        self.has_grouped = False

    def _add_criterion(self, line: str) -> None:
        is_whole = _WHOLE_SCENARIO.match(plain(line)) is not None
        if self.scenario is not None and (is_whole or self.scenario.ends_before(line)):
            self.close()
        scenario = self.scenario or GivenWhenThen()
        if not is_whole and scenario.take(line):
            self.scenario = scenario
            return
        box = checkbox_of(line)
        bullet = BULLET.fullmatch(line)
        words = plain(box.text if box else bullet["text"] if bullet else line)
        margin = margin_of(line)
        if self.scenario is not None:
            self.scenario.go_on(words)
        elif bullet is None and words.endswith(":"):
            if len(words) <= _LONGEST_GROUP:
                self.begin_group(words.rstrip(":"))
        elif bullet is None and self.criteria:
            self.criteria[-1] = f"{self.criteria[-1]} {words}"
        elif bullet is not None and self.criteria and margin >= self.margin + 2:
            joint = " " if self.criteria[-1].endswith(":") else "; "
            self.criteria[-1] = f"{self.criteria[-1]}{joint}{words}"
        else:
            self._keep([words])
            self.margin = margin

    def _keep(self, criteria: list[str]) -> None:
        lead = f"{self.group}: " if self.group else ""
        self.criteria += [f"{lead}{one}" for one in criteria]
        self.has_grouped = self.has_grouped or bool(criteria)

    def close(self) -> None:
        """The scenario has ended."""
        if self.scenario is not None:
            self._keep(self.scenario.criteria())
        self.scenario = None

    @property
    def is_done(self) -> bool:
        return says_done(" ".join(self.told.get("status", ())))


def has_stories(document: Document) -> bool:
    """Whether a numbered story stands in it."""
    return bool(_stories(document, []))


def read(documents: Sequence[Document]) -> Conversion:
    """The open stories of epics and story files."""
    found: dict[str, _Story] = {}
    unread = list[Unread]()
    project = ""
    for document in documents:
        if document.name == SPRINT:
            continue
        listed = _stories(document, unread)
        if not listed:
            unread.append(Unread(document.path, 1, "no `Story 1.1: …` in it"))
        for story in listed:
            known = found.get(story.name)
            says_more = known is not None and not known.criteria and bool(story.criteria)
            if known is None or story.is_file or says_more:
                story.epic = story.epic or (known.epic if known else "")
                found[story.name] = story
        project = project or _project(document)
    done = {story.name for story in found.values() if story.is_done}
    done |= _done_in_sprint(documents, found)
    entries = [
        _entry(story, found, done, unread) for story in found.values() if story.name not in done
    ]
    return Conversion(entries, KIND, len(done), one_line(project), unread=tuple(unread))


def _stories(document: Document, unread: list[Unread]) -> list[_Story]:
    found = list[_Story]()
    epic = ""
    depth = 0  # of the story that is open; 0: none is
    for number, line in numbered_lines(document.text):
        heading = heading_of(line)
        if heading is None:
            if depth:
                found[-1].add(number, line)
            elif listed := _in_list(line):
                found.append(_Story(document, number, listed["id"], listed["title"], epic))
            continue
        story = _STORY.fullmatch(heading.words)
        if story is not None:
            found.append(_Story(document, number, story["id"], story["title"], epic))
            found[-1].is_file = heading.depth == 1
            depth = heading.depth
        elif depth and heading.depth > depth:
            _begin_part(found[-1], heading, number)
        else:
            depth = 0
            if _EPIC.match(heading.words):
                epic = heading.words
            elif _UNNUMBERED.match(heading.words) and heading.depth > 1:
                unread.append(Unread(document.path, number, "a story without a number", line))
    for one in found:
        one.begin_group("")
    return found


def _in_list(line: str) -> re.Match[str] | None:
    """A story that is an item of an epic's list."""
    bullet = BULLET.fullmatch(line)
    return _LISTED.fullmatch(plain(bullet["text"])) if bullet else None


def _begin_part(story: _Story, heading: Heading, number: int) -> None:
    """A heading inside a story says where what follows belongs."""
    label = _label_of(heading.words)
    part = _PARTS.get(label)
    if part is None and story.part == "criteria" and heading.depth > story.part_depth > 0:
        story.begin_group(heading.words)
        return
    if part is None and label not in _SKIPPED and story.part != "skipped":
        part = "notes" if story.part == "notes" else "description"
    story.begin(part or "skipped", number, heading.depth)


def _label_of(words: str) -> str:
    """A heading without its number, its pictures and what stands in brackets behind it."""
    found = _HEADED.fullmatch(words)
    label = (found["label"] if found else words).strip().lower()
    longer = (known for known in CRITERIA_HEADINGS if label.startswith(known))
    return next(longer, label)


def _project(document: Document) -> str:
    for _, line in numbered_lines(document.text):
        heading = heading_of(line)
        if heading is None or heading.depth != 1:
            continue
        if not re.match(r"(?:user )?story\b|epic\s+\d", heading.words, re.IGNORECASE):
            return re.sub(r"\s*[-–—:]\s*Epics?(?: and Stories| Breakdown)?.*", "", heading.words)
    return ""


def _done_in_sprint(documents: Sequence[Document], found: Collection[str]) -> set[str]:
    """The stories that the status of the sprint calls done."""
    done = set[str]()
    for document in documents:
        if document.name != SPRINT:
            continue
        for line in document.text.splitlines():
            named = _SPRINT_LINE.match(line)
            if named is None or not says_done(named["status"]):
                continue
            numbers = named["id"].split("-")  # the last ones may belong to the title
            names = [".".join(numbers[:count]) for count in range(len(numbers), 1, -1)]
            done.update([name for name in names if name in found][:1])
    return done


def _entry(story: _Story, found: dict[str, _Story], done: set[str], unread: list[Unread]) -> Entry:
    told = {part: "\n".join(lines) for part, lines in story.told.items()}
    description = [whole_title(story.title), story.epic, told.get("description", "")]
    if tasks := told.get("tasks"):
        description.append(f"Tasks:\n{tasks}")
    return made(
        id=story.name,
        title=title_of(story.title),
        description="\n".join(filter(None, description)),
        acceptanceCriteria=story.criteria,
        dependsOn=still_needed(_needs(story, found, unread), done),
        notes=told.get("notes"),
        source=source_of(story.document, story.line, KIND, "status" if story.is_file else ""),
    )


def _needs(story: _Story, found: dict[str, _Story], unread: list[Unread]) -> list[str]:
    """The stories it waits for; what names none of them is told."""
    words = _BLOCKED_BY_IT.split(" ".join(story.told.get("needs", ())), maxsplit=1)[0]
    named = [name.replace("-", ".") for name in _STORY_ID.findall(words)]
    needs = [name for name in named if name in found and name != story.name]
    for number in _WHOLE_EPIC.findall(words):
        needs += [name for name in found if name.startswith(f"{number}.") and name != story.name]
    if words and not needs and not _NOTHING.match(words):
        unread.append(
            Unread(story.document.path, story.needs_line, "waits for what is no story here", words)
        )
    return needs
