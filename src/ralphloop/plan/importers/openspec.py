"""OpenSpec: `tasks.md` of a change, with the scenarios of its `specs/`.

A task is a story; the sections give the order.  Nothing in the format says which task a scenario
belongs to, so all of them are asked of the task that closes the change: they have to hold then.
"""

import re
from collections.abc import Sequence

from ralphloop.plan.importers.reading import (
    BULLET,
    Conversion,
    Document,
    Entry,
    GivenWhenThen,
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

KIND = "OpenSpec"
_NUMBER = re.compile(r"\**(?P<id>\d{1,3}(?:\.\d{1,3}){1,3})\.?\**[:)]?\s+(?P<title>\S.*)")
_HEADED = re.compile(r"task\s+(?P<task>\d{1,3}\.\d{1,3}\b.*)", re.IGNORECASE)
_FINISHED = re.compile(r"✅|\[x\]|\bcompleted?\b", re.IGNORECASE)
_SCENARIO = re.compile(r"scenario:\s*(\S.*)", re.IGNORECASE)
_CHANGES = re.compile(r"(added|modified|removed|renamed)\b", re.IGNORECASE)


class _Task(ListedItem):
    def __init__(self, number: int, text: str, margin: int, section: str, *, is_done: bool) -> None:
        found = _NUMBER.fullmatch(text)
        self.name = found["id"] if found else ""
        super().__init__(plain(found["title"] if found else text))
        self.line = number
        self.item = text
        self.margin = margin
        self.section = section
        self.is_done = is_done


def read(documents: Sequence[Document]) -> Conversion:
    """The open tasks of a change."""
    tasks_md = documents[0]
    unread = list[Unread]()
    tasks = _tasks(tasks_md, unread)
    scenarios = list[str]()
    for spec in documents[1:]:
        if spec.name == "spec.md":
            scenarios += _scenarios(spec, unread)
    open_tasks = [task for task in tasks if not task.is_done]
    entries = list[Entry]()
    for task in open_tasks:
        criteria = list(task.details)
        if task is open_tasks[-1]:
            criteria += scenarios
        entries.append(
            made(
                id=task.name,
                title=title_of(task.title),
                description="\n".join(filter(None, [whole_title(task.title), task.section])),
                acceptanceCriteria=criteria,
                parent_spec=_spec_path(documents),
                source=source_of(tasks_md, task.line, KIND, task.item),
            )
        )
    done = len(tasks) - len(open_tasks)
    return Conversion(entries, KIND, done, unread=tuple(unread))


def _tasks(document: Document, unread: list[Unread]) -> list[_Task]:
    """Every task in order, with the items below it."""
    tasks = list[_Task]()
    section = ""
    for number, line in numbered_lines(document.text):
        if heading := heading_of(line):
            named = _HEADED.fullmatch(heading.words)
            if named:
                is_done = _FINISHED.search(heading.words) is not None
                tasks.append(_Task(number, named["task"], -1, section, is_done=is_done))
            else:
                section = heading.words
            continue
        box = checkbox_of(line)
        bullet = BULLET.fullmatch(line)
        now = tasks[-1] if tasks else None
        is_task = box is not None and (
            now is None or box.margin <= now.margin or _NUMBER.fullmatch(box.text) is not None
        )
        if box is not None and is_task:
            tasks.append(_Task(number, box.text, box.margin, section, is_done=box.is_done))
        elif bullet is not None and now is not None and margin_of(line) > now.margin:
            now.details.append(plain(box.text if box else bullet["text"]))
        elif bullet is not None:
            unread.append(Unread(document.path, number, "an item without a box", bullet["text"]))
        elif now is not None and line.strip() and margin_of(line) > max(now.margin, 0):
            now.go_on(plain(line))
    return tasks


def _spec_path(documents: Sequence[Document]) -> str | None:
    """What every task leans on: the only spec of the change, else its proposal."""
    specs = [one.path for one in documents[1:] if one.name == "spec.md"]
    proposals = [one.path for one in documents[1:] if one.name == "proposal.md"]
    found = specs if len(specs) == 1 else proposals or specs
    return found[0] if found else None


def _scenarios(spec: Document, unread: list[Unread]) -> list[str]:
    """Every scenario as one criterion; what is to be removed has none."""
    found = list[str]()
    title = ""
    scenario = GivenWhenThen()
    is_removed = False
    for number, line in [*numbered_lines(spec.text), (0, "# end")]:
        heading = heading_of(line)
        if heading is None:
            if title and line.strip() and not scenario.take(line):
                bullet = BULLET.fullmatch(line)
                scenario.go_on(plain(bullet["text"] if bullet else line))
            continue
        if title and not is_removed:
            found.append(scenario.as_one(title))
        title = ""
        scenario = GivenWhenThen()
        if named := _SCENARIO.fullmatch(heading.words):
            title = named[1]
        elif _CHANGES.match(heading.words):
            is_removed = heading.words.lower().startswith("removed")
        elif is_removed and heading.depth > 2:
            unread.append(
                Unread(spec.path, number, "a removed requirement asks for nothing", heading.words)
            )
    return found
