"""task-master: `tasks.json`, with its tags and subtasks.

A task without subtasks is a story, else each of its subtasks is; what the task says of itself goes
along with them, and its test strategy is asked of the last.  Whoever waits for a task waits for all
of it.  Tasks of another tag than the current one have its name before their id.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ralphloop.plan.importers.reading import (
    Conversion,
    Document,
    Entry,
    Unread,
    made,
    plain,
    source_of,
    still_needed,
    title_of,
    whole_title,
)
from ralphloop.stories.documents import JsonDocument, line_of
from ralphloop.stories.shapes import Problems
from ralphloop.text.plain import counted, one_line

KIND = "task-master"
STATE = "state.json"
_CURRENT = "master"
_RANKS = {"critical": 1, "high": 1, "medium": 2, "low": 3}
_DONE = frozenset({"done", "completed"})
_LEFT = frozenset({"cancelled", "deferred"})  # nobody wants it now
Raw = dict[str, object]


class _Work:
    """A task without parts, or one part of a task."""

    def __init__(self, name: str, raw: Raw, tag: str, place: list[object]) -> None:
        self.name = name
        self.raw = raw
        self.tag = tag
        self.place = place  # the way to it in the file
        self.task: Raw | None = None  # the one it is a part of
        self.needs: list[str] = []
        self.is_last_part = False

    @property
    def status(self) -> str:
        return _status(self.raw)


def is_one(data: object) -> bool:
    """Whether this is what task-master writes, and no story list."""
    if not isinstance(data, dict):
        return False
    own = data.get("tasks")
    if isinstance(own, list):
        keys = {"testStrategy", "subtasks", "details"}
        return any(isinstance(one, dict) and keys & one.keys() for one in own)
    tagged = [one for one in data.values() if isinstance(one, dict)]
    return any(isinstance(one.get("tasks"), list) for one in tagged)


def read(documents: Sequence[Document]) -> Conversion:
    """The open work of every tag, that of the current one first."""
    tasks_json = documents[0]
    unread = list[Unread]()
    data = JsonDocument(tasks_json.text, Problems(Path(tasks_json.path))).data
    root = data if isinstance(data, dict) else {}
    current = _current_tag(documents)
    tags = [key for key, value in root.items() if _listed(value) is not None]
    if _listed(root) is not None:
        tags = [""]
    tags.sort(key=lambda tag: tag not in ("", current))
    told = list[str]()
    work = list[_Work]()
    for tag in tags:
        own = list(_work_of(tag, root, current, tasks_json, unread))
        work += own
        if tag not in ("", current) and own:
            told.append(f"tag {tag}: its ids begin with {tag}/")
    done = {one.name for one in work if one.status in _DONE}
    left = [one for one in work if one.status in _LEFT]
    if left:
        told.append(f"{counted(len(left), 'task')} cancelled or deferred there: left out")
    gone = done | {one.name for one in left}
    entries = [_entry(one, gone, tasks_json) for one in work if one.name not in gone]
    return Conversion(entries, KIND, len(done), unread=tuple(unread), told=tuple(told))


def _current_tag(documents: Sequence[Document]) -> str:
    for document in documents[1:]:
        if document.name == STATE:
            data = JsonDocument(document.text, Problems(Path(document.path))).data
            named = data.get("currentTag") if isinstance(data, dict) else None
            return str(named or _CURRENT)
    return _CURRENT


def _listed(value: object) -> list[object] | None:
    found = value.get("tasks") if isinstance(value, dict) else None
    return found if isinstance(found, list) else None


def _work_of(
    tag: str, root: Raw, current: str, document: Document, unread: list[Unread]
) -> Iterator[_Work]:
    """The pieces of work of a tag in order, each knowing what it waits for."""
    at: list[object] = [tag, "tasks"] if tag else ["tasks"]
    prefix = f"{tag}/" if tag not in ("", current) else ""
    tasks = dict[str, Raw]()
    places = dict[str, list[object]]()
    for index, raw in enumerate(_listed(root[tag] if tag else root) or []):
        place = [*at, index]
        if not isinstance(raw, dict) or not raw.get("id") or not raw.get("title"):
            line = line_of(document.text, place)
            unread.append(Unread(document.path, line, "a task without id or title"))
            continue
        name = f"{prefix}{raw['id']}"
        tasks[name] = raw
        places[name] = place
    parts = {name: _parts(name, raw) for name, raw in tasks.items()}
    for name, raw in tasks.items():
        outer = list[str]()
        for needed in _needs(raw, prefix):
            if needed in parts:
                outer += parts[needed] or [needed]
            elif any(needed in inner for inner in parts.values()):
                outer.append(needed)
            else:
                line = line_of(document.text, places[name])
                unread.append(Unread(document.path, line, "depends on what is not here", needed))
        if not parts[name]:
            whole = _Work(name, raw, tag, places[name])
            whole.needs = outer
            yield whole
            continue
        for index, (inner, part) in enumerate(parts[name].items()):
            one = _Work(inner, part, tag, [*places[name], "subtasks", index])
            one.task = raw
            one.needs = [*outer, *_inner_needs(part, name, parts, prefix)]
            one.is_last_part = inner == _last_open(parts[name])
            yield one


def _parts(name: str, raw: Raw) -> dict[str, Raw]:
    """The subtasks by their full ids; a finished task needs no look at its parts."""
    listed = raw.get("subtasks")
    found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    is_closed = str(raw.get("status", "")).lower() in _DONE | _LEFT
    if is_closed or not all(one.get("title") for one in found):
        return {}
    return {
        f"{name}.{str(one.get('id', number)).rpartition('.')[2]}": one
        for number, one in enumerate(found, start=1)
    }


def _last_open(parts: dict[str, Raw]) -> str:
    """The part that closes its task."""
    is_open = [name for name, raw in parts.items() if _status(raw) not in _DONE | _LEFT]
    return is_open[-1] if is_open else ""


def _status(raw: Raw) -> str:
    return str(raw.get("status", "pending")).strip().lower()


def _needs(raw: Raw, prefix: str) -> list[str]:
    listed = raw.get("dependencies")
    return [f"{prefix}{one}" for one in listed] if isinstance(listed, list) else []


def _inner_needs(part: Raw, task: str, parts: dict[str, dict[str, Raw]], prefix: str) -> list[str]:
    """What a subtask waits for: a number alone is a neighbour, else it is a full id."""
    found = list[str]()
    for named in _needs(part, ""):
        neighbour = f"{task}.{named}"
        if neighbour in parts[task]:
            found.append(neighbour)
        elif any(f"{prefix}{named}" in inner for inner in parts.values()):
            found.append(f"{prefix}{named}")
        else:
            found += parts.get(f"{prefix}{named}", {})
    return found


def _entry(work: _Work, gone: set[str], document: Document) -> Entry:
    raw = work.raw
    words = plain(str(raw["title"]))
    told = [whole_title(words), str(raw.get("description") or "")]
    criteria = [plain(str(raw.get("testStrategy") or ""))]
    if work.task is not None:
        told.insert(0, f"A part of: {work.task['title']}. {work.task.get('description') or ''}")
        if work.is_last_part:
            criteria.append(plain(str(work.task.get("testStrategy") or "")))
    priority = raw.get("priority") or (work.task or {}).get("priority")
    place = "/".join(str(step) for step in work.place)
    return made(
        id=work.name,
        title=title_of(words),
        description="\n".join(filter(None, told)),
        acceptanceCriteria=[one_line(one, 2_000) for one in criteria if one],
        priority=_RANKS.get(str(priority or "").lower()),
        notes=str(raw.get("details") or ""),
        dependsOn=still_needed((one for one in work.needs if one != work.name), gone),
        labels=[work.tag] if work.tag else None,
        source=source_of(
            document, line_of(document.text, work.place), KIND, f"{work.tag}:{_own_id(work)}"
        )
        | {"place": place},
    )


def _own_id(work: _Work) -> str:
    return work.name.rpartition("/")[2]
