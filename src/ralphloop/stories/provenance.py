"""Where a story came from, and its mark there: a box, or a word for its status.

With `stories.write_back` the list that a story was read from says what ralph saw: its mark is set
when the story passes and taken back when it does not stand.  Whoever else sets one only claims it.
An item is known by its own words, not by its line, because lists are edited; where it is not there
exactly once, nothing is written.  All of this is text in, text out; only `set_marks` writes.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ralphloop.errors import InputError, RalphError
from ralphloop.stories.documents import JsonDocument, place_in
from ralphloop.stories.shapes import Listing, Problems, identity
from ralphloop.stories.source import rewrite, story_text

BOXES = frozenset({"spec-kit", "OpenSpec", "Kiro", "checklist"})
FRONT_MATTER = "Backlog.md"
TASK_MASTER = "task-master"
STATUS_LINE = "BMAD"
_BOX = re.compile(
    r"(\s{0,40}(?:[-*+]\s{0,8}|\d{1,4}[.)]\s{1,8})\[)([ xX✓✔✅~-])(\]\\?\*?\s+)(\S.*?)\s*"
)
_STATUS = re.compile(r"(status:[ \t]*)(\S.*?)[ \t]*")
_LABEL = re.compile(r"(\W{0,4}status\W{0,4}:?\W{0,4})(\w[\w -]*?)?\s*", re.IGNORECASE)
_DONE = re.compile(r"\W*(?:done|completed?|closed|finished)\b", re.IGNORECASE)
_FINISHED = frozenset({"done", "completed", "cancelled"})


class ListSource(NamedTuple):
    """The item of a list that a story was read from."""

    file: str  # from the project's root
    line: int
    format: str
    item: str

    @property
    def can_be_marked(self) -> bool:
        known = {FRONT_MATTER, TASK_MASTER, STATUS_LINE, *BOXES}
        parts = PurePosixPath(self.file).parts
        is_inside = bool(parts) and parts[0] != "/" and not {"..", ".git", ".ralph"} & set(parts)
        return self.format in known and is_inside and bool(self.item)


def sources_of(listing: Listing) -> dict[str, ListSource]:
    """The stories whose marks can be set where they came from."""
    found = dict[str, ListSource]()
    for raw in listing.entries:
        name = identity(raw)
        told = raw.get("source") if isinstance(raw, dict) else None
        if name is None or not isinstance(told, dict):
            continue
        line = told.get("line")
        source = ListSource(
            str(told.get("file", "")),
            line if isinstance(line, int) else 1,
            str(told.get("format", "")),
            str(told.get("item", "")),
        )
        if source.can_be_marked:
            found[name] = source
    return found


def story_made_of(path: Path, source: Mapping[str, object]) -> str:
    """The story of a list that says it was made of this; empty: none does."""
    for raw in story_text(path).listing.entries:
        if isinstance(raw, dict) and raw.get("source") == source:
            return identity(raw) or ""
    return ""


class MarksSet(NamedTuple):
    changed: list[str]  # stories whose mark was another one
    problems: list[str]  # what could not be written, in words


def set_marks(
    root: Path, sources: Mapping[str, ListSource], wanted: Mapping[str, bool]
) -> MarksSet:
    """Have the marks of these stories say what is wanted, each in its own file."""
    changed = list[str]()
    problems = list[str]()
    for story, is_done in wanted.items():
        source = sources.get(story)
        if source is None:
            continue
        try:
            written = rewrite(
                root / source.file, partial(with_mark, source, is_done=is_done), within=root
            )
        except RalphError as error:
            problems.append(f"{story} could not be marked in {source.file}: {error.message}")
            continue
        if written.after != written.before:
            changed.append(story)
    return MarksSet(changed, problems)


def with_mark(source: ListSource, data: bytes, *, is_done: bool) -> bytes:
    """The file with this item marked, the same where it says so already."""
    text = data.decode("utf-8", "surrogateescape")
    if source.format in BOXES:
        text = _with_box(source, text, is_done=is_done)
    elif source.format == TASK_MASTER:
        text = _with_json_status(source, text, is_done=is_done)
    else:
        text = _with_status(source, text, is_done=is_done)
    return text.encode("utf-8", "surrogateescape")


def _missing(source: ListSource) -> InputError:
    return InputError("it does not stand there exactly once any more", place=source.file)


def _with_box(source: ListSource, text: str, *, is_done: bool) -> str:
    lines = text.splitlines(keepends=True)
    found = [
        index
        for index, line in enumerate(lines)
        if (box := _BOX.fullmatch(line)) and box[4] == source.item.strip()
    ]
    if source.line - 1 in found:
        found = [source.line - 1]
    if len(found) != 1:
        raise _missing(source)
    box = _BOX.fullmatch(lines[found[0]])
    if box is not None and (box[2] in "xX✓✔✅") is not is_done:
        line = lines[found[0]]
        tick = "x" if is_done else " "
        lines[found[0]] = f"{line[: box.start(2)]}{tick}{line[box.end(2) :]}"
    return "".join(lines)


def _with_status(source: ListSource, text: str, *, is_done: bool) -> str:
    """The status of a file that is one task: in its front matter, or in a line or section."""
    lines = text.splitlines(keepends=True)
    in_front = source.format == FRONT_MATTER
    words = ("Done", "To Do") if in_front else ("done", "ready-for-dev")
    pattern = _STATUS if in_front else _LABEL
    is_expected = False  # the word stands on a line of its own below the label
    for index, line in enumerate(lines):
        bare = line.rstrip("\r\n")
        found = pattern.fullmatch(bare)
        if is_expected and bare.strip():
            return _replaced(lines, index, 0, len(bare), words, is_done=is_done)
        if found is not None and found[2]:
            return _replaced(lines, index, found.start(2), found.end(2), words, is_done=is_done)
        is_expected = is_expected or found is not None
        if in_front and index and bare == "---":
            break
    raise _missing(source)


def _replaced(
    lines: list[str], index: int, start: int, end: int, words: tuple[str, str], *, is_done: bool
) -> str:
    line = lines[index]
    if (_DONE.match(line[start:end]) is not None) is not is_done:
        word = words[0] if is_done else words[1]
        lines[index] = f"{line[:start]}{word}{line[end:]}"
    return "".join(lines)


def _with_json_status(source: ListSource, text: str, *, is_done: bool) -> str:
    """The status of a task or a part; with its last part a task is done as well."""
    root = JsonDocument(text, Problems(Path(source.file))).data
    tag, _, name = source.item.partition(":")
    task, _, part = name.partition(".")
    way: list[object] = [tag, "tasks"] if tag else ["tasks"]
    holder = root.get(tag) if tag and isinstance(root, dict) else root
    tasks = holder.get("tasks") if isinstance(holder, dict) else None
    at = _position(tasks, task)
    if not isinstance(tasks, list) or at is None:
        raise _missing(source)
    way.append(at)
    parts = tasks[at].get("subtasks")
    if part:
        inner = _position(parts, part)
        if not isinstance(parts, list) or inner is None:
            raise _missing(source)
        others = [one for index, one in enumerate(parts) if index != inner]
        text = _with_word(source, text, [*way, "subtasks", inner], is_done=is_done)
        if not all(str(one.get("status")) in _FINISHED for one in others):
            return text
    return _with_word(source, text, way, is_done=is_done)


def _position(listed: object, name: str) -> int | None:
    """Where the task with this id stands."""
    for index, one in enumerate(listed if isinstance(listed, list) else ()):
        own = str(one.get("id", "")).rpartition(".")[2] if isinstance(one, dict) else ""
        if own == name:
            return index
    return None


def _with_word(source: ListSource, text: str, way: list[object], *, is_done: bool) -> str:
    place = place_in(text, [*way, "status"])
    if place is None:
        raise _missing(source)
    is_marked = text[place.start : place.end].strip('"').lower() in ("done", "completed")
    if is_marked is is_done:
        return text
    word = '"done"' if is_done else '"pending"'
    return f"{text[: place.start]}{word}{text[place.end :]}"
