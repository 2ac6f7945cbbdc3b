"""What already is a list of tasks becomes stories without any model.  Pure.

`FORMATS` is the table of what can be read: by which files one is known, what else is read beside
them, and the module that makes stories of it.  Besides those it is a story file of this or another
tool, a PRD whose headings are stories, or a checklist.
"""

import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ralphloop.plan.importers import (
    backlog,
    beads,
    bmad,
    kiro,
    lists,
    openspec,
    spec_kit,
    story_file,
    task_master,
)
from ralphloop.plan.importers.reading import Conversion, Document, Entry, Unread
from ralphloop.text.plain import clean

_DATA = frozenset({".json", ".yaml", ".yml"})


class Format(NamedTuple):
    """One kind of list, as it is found on disk."""

    name: str
    lists: tuple[str, ...]  # where its lists stand, from a directory that a person may name
    beside: tuple[str, ...]  # what is read with one, from the directory of the list
    read: Callable[[Sequence[Document]], Conversion]
    is_one: Callable[[Document, Collection[str]], bool]  # of a list, and names that stand beside it
    is_many_files: bool = False  # its lists together are one
    is_in_words: bool = False  # what waits for what is told in sentences, which may be misread


def _is_openspec(document: Document, beside: Collection[str]) -> bool:
    in_change = "changes" in PurePosixPath(document.path).parts or "proposal.md" in beside
    return document.name == "tasks.md" and in_change


def _is_kiro(document: Document, beside: Collection[str]) -> bool:
    is_at_home = ".kiro" in PurePosixPath(document.path).parts or "requirements.md" in beside
    return document.name == "tasks.md" and (is_at_home or "_Requirements:" in document.text)


def _is_spec_kit(document: Document, beside: Collection[str]) -> bool:
    is_at_home = "spec.md" in beside or "plan.md" in beside
    return document.name == "tasks.md" and (is_at_home or "] T0" in document.text)


def _is_backlog(document: Document, _: Collection[str]) -> bool:
    front = document.text.partition("\n---")[0]
    return front.startswith("---") and "\nid:" in front and "\nstatus:" in front


def _is_task_master(document: Document, _: Collection[str]) -> bool:
    if not document.path.endswith(".json"):
        return False
    try:
        return task_master.is_one(json.loads(document.text))
    except (ValueError, RecursionError):  # whoever reads it says what is wrong
        return False


def _is_beads(document: Document, _: Collection[str]) -> bool:
    return document.path.endswith(".jsonl")


def _is_bmad(document: Document, _: Collection[str]) -> bool:
    return document.path.endswith(".md") and bmad.has_stories(document)


FORMATS = (
    Format(
        "Backlog.md",
        ("tasks/*.md", "backlog/tasks/*.md", "completed/*.md", "backlog/completed/*.md"),
        ("*.md", "../completed/*.md"),
        backlog.read,
        _is_backlog,
        is_many_files=True,
    ),
    Format(
        "beads",
        ("issues.jsonl", "beads.jsonl", ".beads/issues.jsonl", ".beads/beads.jsonl"),
        (),
        beads.read,
        _is_beads,
    ),
    Format(
        "task-master",
        ("tasks/tasks.json", "tasks.json", ".taskmaster/tasks/tasks.json"),
        ("../state.json",),
        task_master.read,
        _is_task_master,
    ),
    Format(
        "OpenSpec",
        ("tasks.md", "changes/*/tasks.md", "*/tasks.md", "openspec/changes/*/tasks.md"),
        ("proposal.md", "specs/**/spec.md"),
        openspec.read,
        _is_openspec,
    ),
    Format(
        "Kiro",
        ("tasks.md", "specs/*/tasks.md", "*/tasks.md", ".kiro/specs/*/tasks.md"),
        ("requirements.md",),
        kiro.read,
        _is_kiro,
    ),
    Format(
        "spec-kit",
        ("tasks.md", "specs/*/tasks.md", "*/tasks.md", "../specs/*/tasks.md"),
        ("spec.md", "plan.md"),
        spec_kit.read,
        _is_spec_kit,
        is_in_words=True,
    ),
    Format(
        "BMAD",
        (
            "*epic*.md", "epics/*.md", "*.story.md", "stories/*.md", "prd/epic*.md",
            "[0-9]*-[0-9]*-*.md", "docs/*epic*.md", "docs/epics/*.md", "docs/prd/epic*.md",
            "docs/stories/*.md", "planning-artifacts/*epic*.md", "planning-artifacts/epics/*.md",
            "implementation-artifacts/[0-9]*-[0-9]*-*.md",
        ),
        (
            "sprint-status.yaml", "stories/*.md", "../stories/*.md",
            "../implementation-artifacts/[0-9]*-[0-9]*-*.md",
            "../implementation-artifacts/sprint-status.yaml",
            "../../implementation-artifacts/sprint-status.yaml",
            "sprint-artifacts/sprint-status.yaml", "stories/sprint-status.yaml",
        ),
        bmad.read,
        _is_bmad,
        is_many_files=True,
        is_in_words=True,
    ),
)  # fmt: skip


LIST_NAMES = frozenset({"tasks.md", "epics.md", "issues.jsonl", "beads.jsonl"})


class Gathered(NamedTuple):
    """The files that a path means, the list first, and what they are; None: none of the table."""

    documents: tuple[Document, ...]
    format: Format | None = None
    is_one_of_many: bool = False  # only what the first of them holds is wanted


def convert_gathered(gathered: Gathered, known: Collection[str] = ()) -> Conversion | None:
    """The stories of a list; `known` are ids that they may wait for besides each other."""
    documents = gathered.documents
    if gathered.format is None:
        return convert(documents[0].text, documents[0].path)
    found = gathered.format.read(documents)
    if not found.entries and not found.done and documents[0].name.endswith(".md"):
        # a list that only lies where those of a tool lie: what it has is read all the same
        found = lists.read(documents) or found
    if gathered.is_one_of_many:
        own = {entry["id"] for entry in gathered.format.read(documents[:1]).entries}
        found = found._replace(entries=[one for one in found.entries if one.get("id") in own])
    found = _with_known_needs(_with_own_ids(found), known)
    return _without_circles(found) if gathered.format.is_in_words else found


def convert(text: str, name: str) -> Conversion | None:
    """The stories of a text of this name; None where it is prose."""
    if Path(name).suffix.lower() in _DATA:
        return story_file.read([Document(name, text)])
    text = clean(text)
    if text.lstrip().startswith("{"):
        return story_file.read([Document(story_file.STDIN, text)])
    return lists.read([Document(name, text)])


def _with_own_ids(found: Conversion) -> Conversion:
    """The same, each id once: the second story of an id gets another one, which is told."""
    seen = set[str]()
    entries = list[Entry]()
    unread = list(found.unread)
    for entry in found.entries:
        name = str(entry.get("id", ""))
        source = entry.get("source")
        if name in seen and isinstance(source, dict):
            place = (str(source["file"]), int(source["line"]))
            unread.append(Unread(*place, "its id stands there twice: it gets another", name))
            entries.append({key: value for key, value in entry.items() if key != "id"})
        else:
            entries.append(entry)
        if name:
            seen.add(name)
    return found._replace(entries=entries, unread=tuple(unread))


def _with_known_needs(found: Conversion, known: Collection[str]) -> Conversion:
    """The same without waiting for what is nowhere; that is named."""
    there = {str(entry.get("id")) for entry in found.entries} | set(known)
    entries = list[Entry]()
    unread = list(found.unread)
    for entry in found.entries:
        listed = entry.get("dependsOn")
        needs = [str(one) for one in listed] if isinstance(listed, list) else []
        source = entry.get("source")
        for name in needs:
            if name not in there and isinstance(source, dict):
                place = (str(source["file"]), int(source["line"]))
                unread.append(Unread(*place, "waits for what is not among these", name))
        kept = [name for name in needs if name in there]
        rest = {key: value for key, value in entry.items() if key != "dependsOn"}
        entries.append({**rest, "dependsOn": kept} if kept else rest)
    return found._replace(entries=entries, unread=tuple(unread))


def _without_circles(found: Conversion) -> Conversion:
    """The same without what would make stories wait for each other; that is named.

    Of a circle the waiting for what stands later in the list is left out.
    """
    order = {str(entry.get("id", "")): at for at, entry in enumerate(found.entries)}
    wanted = {name: _needs_of(found.entries[at]) for name, at in order.items()}
    needs = {
        name: [one for one in wanted[name] if order.get(one, -1) < at] for name, at in order.items()
    }
    entries = list[Entry]()
    unread = list(found.unread)
    for entry in found.entries:
        name = str(entry.get("id", ""))
        kept = list[str]()
        for needed in _needs_of(entry):
            if needed in needs[name] or not _leads_to(needed, name, needs):
                kept.append(needed)
                continue
            source = entry.get("source")
            if isinstance(source, dict):
                place = (str(source["file"]), int(source["line"]))
                unread.append(Unread(*place, "waits for what waits for it", needed))
        needs[name] = kept
        rest = {key: value for key, value in entry.items() if key != "dependsOn"}
        entries.append({**rest, "dependsOn": kept} if kept else rest)
    return found._replace(entries=entries, unread=tuple(unread))


def _needs_of(entry: Entry) -> list[str]:
    listed = entry.get("dependsOn")
    return [str(one) for one in listed] if isinstance(listed, list) else []


def _leads_to(start: str, end: str, needs: dict[str, list[str]]) -> bool:
    """Whether who waits for the first waits for the second as well."""
    seen = set[str]()
    left = [start]
    while left:
        name = left.pop()
        if name == end:
            return True
        if name not in seen:
            seen.add(name)
            left += needs.get(name, [])
    return False
