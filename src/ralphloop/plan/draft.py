"""A plan before it is written: free ids, dependency order, what is wrong with it; then the writing.

Ids of a source that are free are kept; others become the next ones in the style of the list that is
there, and every `dependsOn` follows.  A story whose title stands in the list already is the same
story and is left out, so that planning the same text twice adds nothing.  What cannot be run at all
(an id twice, a circle, a dependency on nobody) is a mistake; what may well go wrong is a remark.
Nothing here sets `passes` to anything but false.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ralphloop.atomic import write_atomic
from ralphloop.core.story import Story
from ralphloop.errors import InputError
from ralphloop.plan.convert import Entry, story_values
from ralphloop.room import claim
from ralphloop.stories import shapes
from ralphloop.stories.edit import position, rearrange
from ralphloop.stories.lint import Remark, remarks
from ralphloop.stories.names import label, labels, next_id
from ralphloop.stories.shapes import Listing, Problems
from ralphloop.stories.source import load, read, story_text

MOST_STORIES = 500
_MOST_BYTES = 50_000_000
_NOISE = re.compile(r"[\W_]+")


class Shelf(NamedTuple):
    """The story list that is there, or will be."""

    path: Path
    listing: Listing | None = None  # None: there is no file yet
    stories: tuple[Story, ...] = ()

    @property
    def titles(self) -> dict[str, str]:
        return {story.id: story.title for story in self.stories}

    def story(self, name: str) -> Story:
        """The story of this id; UsageError where there is none."""
        return self.stories[position(self.listing or Listing({}, "", []), name)]


def look_at_shelf(path: Path) -> Shelf:
    """The list of this file; one that is there and cannot be read is an error."""
    if not path.exists():
        return Shelf(path)
    document = story_text(path, read(path, _MOST_BYTES).data).document
    listing = shapes.find_list(document.data, Problems(path))
    return Shelf(path, listing, load(path).list.stories if listing.entries else ())


class Draft(NamedTuple):
    """Stories as they would be written, their values, and what is said about them."""

    entries: list[Entry]
    stories: tuple[Story, ...]
    remarks: list[Remark]
    told: list[str]  # what was left out or renamed


def drafted(found: Sequence[Entry], shelf: Shelf, *, renumber: bool = False) -> Draft:
    """The plan for this list; InputError with every mistake where it cannot be run."""
    if len(found) > MOST_STORIES:
        raise InputError(f"{len(found):,} stories at once", f"Plan at most {MOST_STORIES}.")
    others, told = shelf.titles, list[str]()
    known = {_essence(title): name for name, title in others.items()}
    names: dict[str, str] = {}  # what the source calls it → what it will be called
    fresh: list[Entry] = []
    for number, entry in enumerate(found, start=1):
        name, there = str(entry.get("id") or f"#{number}"), known.get(_essence(str(entry["title"])))
        if there is not None:
            names[name] = there
            told.append(f"{label(str(entry['title']))}: already in the list as {label(there)}")
        else:
            fresh.append({**entry, "id": name})
    own = [str(entry["id"]) for entry in fresh]
    stubs = {name: title for name, title in {**others, **names}.items() if name not in own}
    values = story_values(fresh, stubs).stories[: len(fresh)] if fresh else ()
    ordered = _in_order(values)
    free = [one.id for one in ordered if _is_name(one.id) and one.id not in others and not renumber]
    taken = [*free, *others]  # the style of the last counts, which is that of the list
    for story in ordered:
        new = story.id if story.id in free else next_id(taken)
        taken += [] if story.id in free else [new]
        names[story.id] = new
        if new != story.id and story.id in others:
            told.append(f"{label(story.id)} is taken: it becomes {label(new)}")
    entries = [_named(fresh[story.index], names) for story in ordered]
    return examined(entries, shelf, told)


def examined(entries: list[Entry], shelf: Shelf, told: Sequence[str] = ()) -> Draft:
    """The same list, read and remarked upon."""
    if not entries:
        return Draft([], (), [], list(told))
    stories = story_values(entries, shelf.titles)
    listing = Listing({}, "userStories", list(entries))
    new = stories.stories[: len(entries)]
    return Draft(entries, new, list(remarks(stories, listing)), list(told))


def _is_name(story: str) -> bool:
    """Not a number in the text, nor words such as "Story 4"."""
    return not story.startswith("#") and " " not in story


def _named(entry: Entry, names: Mapping[str, str]) -> Entry:
    needs = entry.get("dependsOn")
    ids = (
        {"dependsOn": [names.get(str(one), str(one)) for one in needs]}
        if isinstance(needs, list)
        else {}
    )
    rest = {key: value for key, value in entry.items() if key not in ("id", "passes")}
    return {"id": names[str(entry["id"])], **rest, **ids, "passes": False}


def _in_order(stories: Sequence[Story]) -> list[Story]:
    """Each behind those it depends on, otherwise as they came."""
    own, done, order = {story.id for story in stories}, set[str](), list[Story]()
    waiting = list(stories)
    while waiting:  # there is no circle: the list was read
        ready = next(one for one in waiting if not (set(one.depends_on) & own) - done)
        waiting.remove(ready)
        done.add(ready.id)
        order.append(ready)
    return order


def _essence(title: str) -> str:
    return _NOISE.sub(" ", title.casefold()).strip()


# --- writing -------------------------------------------------------------------------------------


class About(NamedTuple):
    """What a new list says of the whole."""

    project: str = ""
    description: str = ""


def write(
    shelf: Shelf, entries: list[Entry], room: Path, *, replace: bool = False, about: About
) -> Path | None:
    """Extend the list, begin it, or begin it anew; where the old one was kept, if it was."""
    kept = None
    if replace and shelf.listing is not None:
        kept = keep(shelf, room)
    if shelf.listing is None or not shelf.listing.entries:
        root = dict(shelf.listing.root) if shelf.listing else {}
        root |= {key: value for key, value in about._asdict().items() if value and key not in root}
        key = shelf.listing.key if shelf.listing else "userStories"
        data = json.dumps({**root, key: entries}, indent=2, ensure_ascii=False) + "\n"
        write_atomic(shelf.path, data.encode())
    elif replace:
        rearrange(shelf.path, lambda _, __: list(entries))
    else:
        rearrange(shelf.path, lambda now, _: [*now, *entries])
    return kept


def keep(shelf: Shelf, room: Path) -> Path:
    """A copy of the list as it is, in our own room."""
    place = plan_room(room)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    copy = place / f"{shelf.path.stem}-{stamp}{shelf.path.suffix}"
    write_atomic(copy, read(shelf.path, _MOST_BYTES).data, within=place)
    return copy


def plan_room(room: Path) -> Path:
    """Where proposals, transcripts and old lists are kept; made if it is missing."""
    claim(room)
    place = room / "plan"
    place.mkdir(exist_ok=True)
    return place


def write_split(shelf: Shelf, old: str, parts: list[Entry], room: Path) -> Path:
    """Put the parts in the place of a story; what waited for it waits for the last of them."""
    kept = keep(shelf, room)
    needed = {str(name) for part in parts for name in _needs(part)}
    last = [str(part["id"]) for part in parts if part["id"] not in needed]

    def arranged(
        now: list[int | Mapping[str, object]], listing: Listing
    ) -> list[int | Mapping[str, object]]:
        at = position(listing, old)
        rest: list[int | Mapping[str, object]] = []
        for one in now:
            raw = listing.entries[one] if isinstance(one, int) else one
            if one == at:
                rest += parts
            else:
                changed = _pointing(raw, old, last)
                rest.append(one if changed is None else changed)
        return rest

    rearrange(shelf.path, arranged)
    return kept


def _needs(entry: Mapping[str, object]) -> list[object]:
    needs = entry.get("dependsOn")
    return needs if isinstance(needs, list) else []


def _pointing(raw: object, old: str, new: list[str]) -> Entry | None:
    """A story that waits for `old`, made to wait for others; None for all that do not."""
    if not isinstance(raw, dict):
        return None
    changed: Entry = {}
    for key in ("dependsOn", "depends_on", "dependencies"):
        value = raw.get(key)
        if isinstance(value, dict):
            inner = _pointing(value, old, new)
            changed |= {key: inner} if inner else {}
        elif isinstance(value, list) and old in map(str, value):
            ids = [name for one in value for name in (new if str(one) == old else [one])]
            changed[key] = list(dict.fromkeys(ids))
    return {**raw, **changed} if changed else None


def split_parts(shelf: Shelf, story: Story, found: Sequence[Entry], note: str) -> Draft:
    """Two to four stories for one; the first inherit what it waited for, all its priority."""
    if not 2 <= len(found) <= 4:
        raise InputError(f"a split has two to four stories, found {len(found)}")
    rest = shelf._replace(stories=tuple(one for one in shelf.stories if one.id != story.id))
    # The old id stays taken: the journal knows what became of it.
    draft = drafted(found, shelf, renumber=True)
    if len(draft.entries) != len(found):
        raise InputError(f"a part is called like another story: {labels(draft.told)}")
    parts = []
    for part in draft.entries:
        own = [name for name in map(str, _needs(part)) if name != story.id]
        inherited = {} if own else {"dependsOn": list(story.depends_on)}
        more = {"priority": story.priority, "parent_spec": story.parent_spec, "notes": note}
        given = {
            key: value for key, value in {**more, **inherited}.items() if value and key not in part
        }
        parts.append({**part, **({"dependsOn": own} if own else {}), **given, "passes": False})
    if story.verify and "verify" not in parts[-1]:
        parts[-1]["verify"] = list(story.verify)  # what proved the whole proves the last of it
    return examined(parts, rest)
