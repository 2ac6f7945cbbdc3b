"""Kiro: `tasks.md` of a spec, with the `requirements.md` beside it.

A task is a story; one that has parts is told by its parts.  `_Requirements: 1.1, 2.3_` become its
criteria, word by word.  Tasks marked `*` are optional there and left out here, by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ralphloop.plan.importers.reading import (
    BULLET,
    Conversion,
    Document,
    Entry,
    ListedItem,
    Unread,
    checkbox_of,
    heading_of,
    made,
    margin_of,
    numbered_lines,
    plain,
    source_of,
    title_of,
    whole_title,
)
from ralphloop.text.plain import counted, some

KIND = "Kiro"
_NUMBER = re.compile(r"(?P<id>\d{1,3}(?:\.\d{1,3}){0,3})\.?\s+(?P<title>\S.*)")
_REFERENCES = re.compile(
    r"[_*\s-]*(?:validates:?\s*)?Requirements?\W{0,4}[:：\s]\s*(?P<listed>.{1,500}?)[_*\s]*",
    re.IGNORECASE,
)
_IN_ANOTHER_TONGUE = re.compile(
    r"\s*[-*+]\s+_[^_:：]{1,20}[:：]\s*(?P<listed>\d[\d., 、，]{0,300})_\s*"
)
_REFERENCE = re.compile(r"\d{1,3}(?:\.\d{1,3})?")
_REFERENCE_RANGE = re.compile(
    r"(?P<of>\d{1,3})\.(?P<first>\d{1,3})\s*[-–—~]\s*(?:(?P=of)\.)?(?P<last>\d{1,3})\b"
)
_REQUIREMENT = re.compile(r"(?:requirement|req)\W{0,3}(\d{1,3})\b", re.IGNORECASE)
_NUMBERED = re.compile(r"\D{1,20}(\d{1,3})\b.*")  # `### 需求 1`
_CRITERION = re.compile(
    r"\s*(?:(?:[-*+]\s+)?\**(?P<number>\d{1,3})(?:\.(?P<part>\d{1,3}))?[.)]?\**\s+)(?P<text>\S.*)"
)


class _Task(ListedItem):
    def __init__(self, number: int, text: str, margin: int) -> None:
        found = _NUMBER.fullmatch(plain(text))
        self.name = found["id"] if found else ""
        super().__init__(found["title"] if found else plain(text))
        self.line = number
        self.item = text
        self.margin = margin
        self.is_done = False
        self.is_optional = False
        self.references: list[str] = []
        self.reference_line = number
        self.parent: _Task | None = None
        self.has_parts = False

    def above(self) -> Iterator[_Task]:
        parent = self.parent
        while parent is not None:
            yield parent
            parent = parent.parent


def read(documents: Sequence[Document]) -> Conversion:
    """The open tasks of a spec."""
    tasks_md = documents[0]
    unread = list[Unread]()
    tasks = list(_tasks(tasks_md, unread))
    requirements = next((one for one in documents[1:] if one.name == "requirements.md"), None)
    known = _criteria_of(requirements) if requirements else {}
    entries = list[Entry]()
    done = 0
    optional = list[_Task]()
    for task in tasks:
        if task.has_parts:
            continue
        if task.is_done:
            done += 1
        elif task.is_optional or any(one.is_optional for one in task.above()):
            optional.append(task)
        else:
            entries.append(_entry(task, known, tasks_md, requirements, unread))
    told = []
    if optional:
        names = some([f"{one.name or one.title} (line {one.line})" for one in optional], 50)
        told.append(f"{counted(len(optional), 'task')} optional there (`*`): left out: {names}")
    return Conversion(entries, KIND, done, unread=tuple(unread), told=tuple(told))


def _tasks(document: Document, unread: list[Unread]) -> Iterator[_Task]:
    """Every task in order, each with the one it is a part of."""
    open_ones = list[_Task]()  # the task of each level above the line
    for number, line in numbered_lines(document.text):
        if heading_of(line) is not None:
            open_ones = []
            continue
        box = checkbox_of(line)
        bullet = BULLET.fullmatch(line)
        now = open_ones[-1] if open_ones else None
        if box is not None and (
            now is None or box.margin <= now.margin or _NUMBER.fullmatch(plain(box.text))
        ):
            task = _Task(number, box.text, box.margin)
            task.is_done = box.is_done
            task.is_optional = box.is_optional or task.title.endswith("*")
            open_ones = [one for one in open_ones if _is_part(task, one)]
            if open_ones:
                task.parent = open_ones[-1]
                task.parent.has_parts = True
            open_ones.append(task)
            yield task
        elif now is not None and (named := _references_of(line)):
            now.references += _numbers_in(named["listed"])
            now.reference_line = number
            if not _REFERENCE.search(named["listed"]):
                unread.append(Unread(document.path, number, "names no requirement by number", line))
        elif now is not None and bullet is not None and margin_of(line) > now.margin:
            now.details.append(plain(box.text if box else bullet["text"]).strip("_"))
        elif now is not None and bullet is None and line.strip() and margin_of(line) > now.margin:
            now.go_on(plain(line))
        elif bullet is not None:
            unread.append(Unread(document.path, number, "an item without a box", bullet["text"]))


def _references_of(line: str) -> re.Match[str] | None:
    return _REFERENCES.fullmatch(line) or _IN_ANOTHER_TONGUE.fullmatch(line)


def _numbers_in(listed: str) -> list[str]:
    """The requirements that are named, those between two ends of a range too."""
    found = list[str]()
    for one in _REFERENCE_RANGE.finditer(listed):
        found += [f"{one['of']}.{part}" for part in range(int(one["first"]), int(one["last"]) + 1)]
    return found + _REFERENCE.findall(_REFERENCE_RANGE.sub("", listed))


def _is_part(task: _Task, other: _Task) -> bool:
    """Whether a task belongs to one above it, by its number or by its margin."""
    if task.name and other.name:
        return task.name.startswith(f"{other.name}.")
    return task.margin > other.margin


def _entry(
    task: _Task,
    known: dict[str, list[str]],
    document: Document,
    requirements: Document | None,
    unread: list[Unread],
) -> Entry:
    criteria = list(task.details)
    for name in dict.fromkeys(task.references):
        asked = known.get(name, [])
        criteria += asked
        if not asked:
            where = requirements.name if requirements else "a requirements.md beside it"
            why = f"requirement {name} is not in {where}"
            unread.append(Unread(document.path, task.reference_line, why))
    parents = [one.title for one in task.above()]
    told = [detail for one in task.above() for detail in one.details]
    return made(
        id=task.name,
        title=title_of(task.title),
        description="\n".join(filter(None, [whole_title(task.title), *reversed(parents), *told])),
        acceptanceCriteria=criteria,
        parent_spec=requirements.path if requirements else None,
        source=source_of(document, task.line, KIND, task.item),
    )


def _criteria_of(requirements: Document) -> dict[str, list[str]]:
    """What each number asks for: `1.2` one criterion, `1` all of them."""
    return _listed_in(requirements, _REQUIREMENT) or _listed_in(requirements, _NUMBERED)


def _listed_in(requirements: Document, named_by: re.Pattern[str]) -> dict[str, list[str]]:
    """The criteria below the headings that are requirements by this pattern."""
    found: dict[str, list[str]] = {}
    requirement = ""
    depth = 0  # of the requirement's heading
    is_listing = False
    now = ""  # the criterion that a line without a number goes on with
    for _, line in numbered_lines(requirements.text):
        if heading := heading_of(line):
            now = ""
            named = named_by.match(heading.words)
            is_criteria = "criteria" in heading.words.lower()
            if named and (not requirement or heading.depth <= depth):
                requirement = named[1]
                depth = heading.depth
                is_listing = False
            elif heading.depth <= depth and not is_criteria:
                requirement = ""
            else:
                is_listing = is_criteria or named_by is _NUMBERED
            continue
        if plain(line).lower().startswith("acceptance criteria"):
            is_listing = True
        asked = _CRITERION.fullmatch(line)
        if requirement and is_listing and asked:
            part = asked["part"] or asked["number"]
            now = f"{requirement}.{part}"
            found.setdefault(now, []).append(f"{now}: {plain(asked['text'])}")
        elif now and line.strip() and margin_of(line) >= 2:
            found[now][-1] = f"{found[now][-1]} {plain(line)}"
        elif line.strip():
            now = ""
    for name, asked_for in list(found.items()):
        found.setdefault(name.partition(".")[0], []).extend(asked_for)
    return found
