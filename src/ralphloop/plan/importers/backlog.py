"""Backlog.md: a file a task, with front matter and acceptance criteria.

What is done, completed or archived is left out.  A task that has parts waits for them.
"""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ralphloop.errors import InputError
from ralphloop.plan.importers.reading import (
    BULLET,
    Conversion,
    Document,
    Entry,
    NumberedLine,
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
from ralphloop.stories.documents import YamlDocument
from ralphloop.stories.shapes import Problems
from ralphloop.text.plain import one_line

KIND = "Backlog.md"
CONFIG = ("config.yml", "config.yaml")
_FRONT = re.compile(r"---[ \t]*\n(?P<front>.*?)^---[ \t]*$", re.MULTILINE | re.DOTALL)
_BARE_NAME = re.compile(r"^(\s*(?:-|[\w-]+:)[ \t]+)(@[^\n]*)$", re.MULTILINE)  # `assignee: @me`
_NUMBERED = re.compile(r"#\d{1,3}\s+")
_RANKS = {"critical": 1, "high": 1, "medium": 2, "low": 3}
_NOTES = ("implementation plan", "implementation notes", "notes")
_CRITERIA = ("acceptance criteria", "definition of done")
_DIGITS = re.compile(r"\d+")


class _Task:
    def __init__(self, document: Document, front: dict[str, object]) -> None:
        self.document = document
        self.front = front
        self.name = str(front.get("id", "")).strip()
        self.title = plain(str(front.get("title", "")))
        self.criteria: list[str] = []
        self.description: list[str] = []
        self.notes: list[str] = []

    @property
    def key(self) -> str:
        return self.name.casefold()

    def names(self, key: str) -> list[str]:
        """A list of ids in the front matter, or a single one."""
        value = self.front.get(key)
        listed = value if isinstance(value, list) else [value]
        return [str(one).strip() for one in listed if one not in (None, "")]


def read(documents: Sequence[Document]) -> Conversion:
    """The open tasks, in the order they are given there."""
    unread = list[Unread]()
    tasks: dict[str, _Task] = {}
    for document in documents:
        if document.name in CONFIG:
            continue
        task = _task(document, unread)
        if task is not None:
            tasks[task.key] = task
    done = {key for key, task in tasks.items() if _is_done(task)}
    needs = {key: _needs(task, tasks, unread) for key, task in tasks.items() if key not in done}
    for key in needs:
        for parent in tasks[key].names("parent_task_id") + tasks[key].names("parent"):
            if parent.casefold() in needs:
                needs[parent.casefold()].append(key)
    entries = list[Entry]()
    for key in sorted(needs, key=lambda one: _order(tasks[one])):
        waits_for = [tasks[one].name for one in still_needed(needs[key], done)]
        entries.append(_entry(tasks[key], waits_for))
    return Conversion(entries, KIND, len(done), unread=tuple(unread))


def _task(document: Document, unread: list[Unread]) -> _Task | None:
    text = document.text.replace("\r\n", "\n")
    found = _FRONT.match(text)
    if found is None:
        unread.append(Unread(document.path, 1, "no front matter"))
        return None
    problems = Problems(Path(document.name))
    try:
        front = YamlDocument(_BARE_NAME.sub(r'\1"\2"', found["front"]), problems).data
    except InputError as error:
        unread.append(Unread(document.path, 1, f"its front matter: {one_line(error.message, 120)}"))
        return None
    if not isinstance(front, dict) or not front.get("id") or not front.get("title"):
        unread.append(Unread(document.path, 1, "no id or no title in its front matter"))
        return None
    task = _Task(document, {str(key): value for key, value in front.items()})
    loose = _read_body(task, numbered_lines(text)[found.group().count("\n") + 1 :])
    if not _is_done(task):
        unread += loose
    return task


def _read_body(task: _Task, lines: Sequence[NumberedLine]) -> list[Unread]:
    """Take what stands below the front matter; what is left over is given back."""
    loose = list[Unread]()
    section = ""
    group = ""
    for line in lines:
        heading = heading_of(line.text)
        if heading is not None and heading.depth <= 2:
            section = heading.words.lower()
            group = ""
            if section not in (*_NOTES, *_CRITERIA, "description"):
                task.description.append(heading.words)
        elif section in _CRITERIA and heading is not None:
            group = f"{heading.words}: "
        elif section in _CRITERIA:
            _add_criterion(task, group, line, loose)
        elif section in _NOTES:
            task.notes.append(line.text.rstrip())
        else:
            task.description.append(line.text.rstrip())
    return loose


def _add_criterion(task: _Task, group: str, line: NumberedLine, unread: list[Unread]) -> None:
    box = checkbox_of(line.text)
    bullet = BULLET.fullmatch(line.text)
    if bullet is not None and margin_of(line.text) < 2:
        words = _NUMBERED.sub("", box.text if box else bullet["text"], count=1)
        task.criteria.append(f"{group}{plain(words)}")
    elif line.text.strip() and line.text[0] in " \t" and task.criteria:
        words = plain(box.text if box else bullet["text"] if bullet else line.text)
        joint = "; " if bullet and not task.criteria[-1].endswith(":") else " "
        task.criteria[-1] += f"{joint}{words}"
    elif line.text.strip():
        path = task.document.path
        unread.append(Unread(path, line.number, "no item of the criteria", line.text))


def _is_done(task: _Task) -> bool:
    folders = PurePosixPath(task.document.path).parts[:-1]
    return says_done(str(task.front.get("status", ""))) or "completed" in folders


def _needs(task: _Task, tasks: dict[str, _Task], unread: list[Unread]) -> list[str]:
    """The tasks it waits for, as far as they are here."""
    found = list[str]()
    for name in task.names("dependencies"):
        if name.casefold() in tasks:
            found.append(name.casefold())
        else:
            unread.append(Unread(task.document.path, 1, "depends on what is not here", name))
    return found


def _order(task: _Task) -> tuple[float, list[int]]:
    """By the place a person gave it on the board, then by its number."""
    place = task.front.get("ordinal")
    at = float(place) if isinstance(place, int | float) else float("inf")
    return at, [int(number) for number in _DIGITS.findall(task.name)]


def _entry(task: _Task, waits_for: list[str]) -> Entry:
    labels = task.front.get("labels")
    return made(
        id=task.name,
        title=title_of(task.title),
        description="\n".join([whole_title(task.title), *task.description]).strip(),
        acceptanceCriteria=task.criteria,
        priority=_RANKS.get(str(task.front.get("priority", "")).lower()),
        notes="\n".join(task.notes).strip(),
        dependsOn=waits_for,
        labels=[str(one) for one in labels] if isinstance(labels, list) else None,
        source=source_of(task.document, 1, KIND, task.name),
    )
