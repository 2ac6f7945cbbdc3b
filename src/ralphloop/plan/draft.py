"""A plan before it is written: free ids, dependency order, what is wrong with it; then the writing.

Ids that are free are kept; others become the next ones in the style of the list, and every
`dependsOn` follows.  A story whose title stands in the list already is the same and left out, so
that planning a text twice adds nothing.  What cannot be run at all is a mistake, what may well go
wrong a remark.  Nothing here sets `passes` to anything but false.
"""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ralphloop.atomic import write_atomic
from ralphloop.core.model import Story, StoryList
from ralphloop.errors import InputError
from ralphloop.plan.importers.reading import Entry, made
from ralphloop.room import ensure_private_dir
from ralphloop.stories.graph import plan
from ralphloop.stories.lint import Remark, remarks
from ralphloop.stories.names import essence, label, next_id
from ralphloop.stories.shapes import Listing, identity
from ralphloop.stories.source import load, position, read, rearrange, story_text

MOST_STORIES = 500
_MOST_LOGS = 50


class Shelf(NamedTuple):
    """The story list that is there, or will be."""

    path: Path
    listing: Listing = Listing({}, "userStories", [])
    stories: tuple[Story, ...] = ()

    @property
    def titles(self) -> dict[str, str]:
        return {story.id: story.title for story in self.stories}


def look_at_shelf(path: Path) -> Shelf:
    """The list of this file; one that is there and cannot be read is an error."""
    if not path.exists():
        return Shelf(path)
    listing = story_text(path).listing
    return Shelf(path, listing, load(path).list.stories if listing.entries else ())


class Draft(NamedTuple):
    """Stories as they would be written, their values, and what is said about them."""

    entries: list[Entry]
    stories: tuple[Story, ...]
    remarks: list[Remark]
    told: list[str]  # what was left out or renamed


def drafted(
    found: Sequence[Entry], shelf: Shelf, *, renumber: bool = False, place: str = ""
) -> Draft:
    """The plan for this list; InputError with every mistake, at this place, where it cannot run."""
    if len(found) > MOST_STORIES:
        step = f"Plan at most {MOST_STORIES}."
        raise InputError(f"{len(found):,} stories at once", step, place=place)
    others = shelf.titles
    told = list[str]()
    names = dict[str, str]()
    fresh = list[Entry]()
    known = _known_titles(shelf)
    for number, entry in enumerate(found, start=1):
        name = str(entry.get("id") or f"#{number}")
        title = str(entry["title"])
        there = known.get((essence(title), _file_of(entry))) or known.get((essence(title), ""))
        if there:
            names[name] = there
            told.append(f"{label(title)}: already in the list as {label(there)}")
        else:
            fresh.append({**entry, "id": name})
    steps = plan(_values(fresh, {**others, **names}, place))  # in the order they would run
    ordered = [step.story for step in steps if step.story.index < len(fresh)]
    # Neither a number in the text nor words such as "Story 4" are ids.
    free = list[str]()
    if not renumber:
        free = [s.id for s in ordered if s.id not in others and s.id[0] != "#" and " " not in s.id]
    taken = [*free, *others]  # the style of the last counts, which is that of the list
    for story in ordered:
        if story.id in free:
            names[story.id] = story.id
        else:
            names[story.id] = next_id(taken)
            taken.append(names[story.id])
        if story.id in others:
            told.append(f"{label(story.id)} is taken: it becomes {label(names[story.id])}")
    entries = []
    for story in ordered:
        entry = fresh[story.index]
        rest = {key: entry[key] for key in entry if key not in ("id", "dependsOn", "passes")}
        needs = [names.get(name, name) for name in _needs(entry)]
        entries.append({"id": names[story.id], **rest, **made(dependsOn=needs), "passes": False})
    return examined(entries, shelf, told)


def _known_titles(shelf: Shelf) -> dict[tuple[str, str], str]:
    """The stories of the list by title and source; lists of two files may use the same words."""
    found = dict[tuple[str, str], str]()
    raw_ones = {identity(raw): raw for raw in shelf.listing.entries if isinstance(raw, dict)}
    for story in shelf.stories:
        file = _file_of(raw_ones.get(story.id, {}))
        found[essence(story.title), file] = story.id
    return found


def _file_of(entry: Mapping[str, object]) -> str:
    source = entry.get("source")
    return str(source.get("file", "")) if isinstance(source, dict) else ""


def examined(entries: list[Entry], shelf: Shelf, told: Sequence[str] = ()) -> Draft:
    stories = _values(entries, shelf.titles)
    found = remarks(stories, Listing({}, "userStories", list(entries)))
    return Draft(entries, stories.stories[: len(entries)], list(found), list(told))


def _values(entries: list[Entry], others: Mapping[str, str], place: str = "") -> StoryList:
    """The values of these stories beside others (id → title); InputError says all that is wrong."""
    own = {str(entry.get("id")) for entry in entries}
    stubs = [{"id": name, "title": "x"} for name in others if name not in own]
    if not (entries or stubs):
        return StoryList(stories=(), source="")
    try:
        data = json.dumps({"userStories": [*entries, *stubs]}).encode()
        return load(Path("plan"), data=data).list
    except InputError as error:
        message = error.message.removeprefix("plan: ")
        raise InputError(message, "Nothing was written.", place=place) from None


def _needs(entry: Mapping[str, object]) -> list[str]:
    needs = entry.get("dependsOn")
    return [str(one) for one in needs] if isinstance(needs, list) else []


def write(
    shelf: Shelf, entries: list[Entry], room: Path, *, replace: bool, **about: str
) -> Path | None:
    """Extend the list, begin it, or begin it anew; where the old one was kept, if it was."""
    kept = keep(shelf, room) if replace and shelf.path.exists() else None
    if not shelf.listing.entries:
        root = made(**about) | {str(key): value for key, value in shelf.listing.root.items()}
        data = json.dumps(root | {shelf.listing.key: entries}, indent=2, ensure_ascii=False)
        write_atomic(shelf.path, data.encode() + b"\n")
    else:
        rearrange(shelf.path, lambda now, _: [*([] if replace else now), *entries])
    return kept


def keep(shelf: Shelf, room: Path) -> Path:
    """A copy of the list as it is, in our own room."""
    place = plan_room(room)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    copy = place / f"{shelf.path.stem}-{stamp}{shelf.path.suffix}"
    write_atomic(copy, read(shelf.path), within=place)
    return copy


def plan_room(room: Path) -> Path:
    """Where proposals, transcripts and old lists are kept; made if it is missing."""
    ensure_private_dir(room)
    place = room / "plan"
    place.mkdir(exist_ok=True)
    logs = sorted(place.glob("plan-*.log*"), key=lambda path: path.lstat().st_mtime)
    for old in logs[:-_MOST_LOGS]:
        old.unlink(missing_ok=True)
    return place


def split_parts(shelf: Shelf, story: Story, found: Sequence[Entry], note: str) -> Draft:
    """Two to four stories for one; the first inherit what it waited for, the last its proof."""
    draft = drafted(found, shelf, renumber=True)  # the old id stays taken: the journal knows it
    if not 2 <= len(draft.entries) == len(found) <= 4:
        raise InputError(f"a split has two to four new stories, found {len(draft.entries)}")
    more = made(priority=story.priority, parent_spec=story.parent_spec, notes=note)
    parts = []
    for part in draft.entries:
        needs = [name for name in _needs(part) if name != story.id] or list(story.depends_on)
        parts.append({**more, **part, **made(dependsOn=needs)})
    if story.verify:
        parts[-1].setdefault("verify", list(story.verify))
    rest = shelf._replace(stories=tuple(one for one in shelf.stories if one.id != story.id))
    return examined(parts, rest)


def write_split(shelf: Shelf, old: str, parts: list[Entry], room: Path) -> Path:
    """Put the parts in the place of a story; what waited for it waits for the last of them."""
    kept = keep(shelf, room)
    needed = {name for part in parts for name in _needs(part)}
    last = [str(part["id"]) for part in parts if part["id"] not in needed]

    def arranged(
        now: list[int | Mapping[str, object]], listing: Listing
    ) -> list[int | Mapping[str, object]]:
        at = position(listing, old)
        pointed = {n: _pointing(raw, old, last) for n, raw in enumerate(listing.entries) if n != at}
        return [one for n in range(len(now)) for one in (parts if n == at else [pointed[n] or n])]

    rearrange(shelf.path, arranged)
    return kept


def _pointing(raw: object, old: str, new: list[str]) -> Entry | None:
    """A story that waits for `old`, made to wait for others; None for all that do not."""
    changed: Entry = {}
    for key, value in raw.items() if isinstance(raw, dict) else ():
        if key == "dependencies" and isinstance(value, dict):
            changed |= made(dependencies=_pointing(value, old, new))
        elif key in ("dependsOn", "depends_on", "dependencies") and old in map(str, value or ()):
            ids = [name for one in value for name in (new if str(one) == old else [one])]
            changed[str(key)] = list(dict.fromkeys(ids))
    return {**raw, **changed} if changed and isinstance(raw, dict) else None
