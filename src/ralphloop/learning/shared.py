"""What everybody has: one tracked file beside the published skills, one line an entry.

Lines are JSON, sorted by id, so two clones that learned apart mostly merge by themselves; with
`merge=union` in `.gitattributes` always.  Of two lines about one pattern the later one holds, and
lines that are none (marks of a conflict) are left out and named, so the file can be read in any
state a merge leaves it in.  Nothing is ever removed: what no longer holds says so.

A pattern gets in once it is established, and a person's word about it at once.  What an agent said
is written only after a person's yes: of words that somebody forgot everybody gets the id alone.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ralphloop.atomic import write_atomic
from ralphloop.learning.model import MAX_TEXT, EntryWord, SharedEntry
from ralphloop.learning.wording import is_plain_path
from ralphloop.room import read_regular
from ralphloop.text.durations import iso
from ralphloop.text.plain import one_line

PLACES = (".claude/learned.jsonl", "learned.jsonl")  # beside the skills, or the memory file
MAX_ENTRIES = 2_000
_LARGEST = 4 << 20
_MAX_HUNK = 800


def moment(now: float) -> str:
    """When a line was written: a person may think again within a second."""
    return f"{iso(now)[:-1]}.{int(now % 1 * 1e6):06}Z"


def path_of(root: Path, *, has_skills: bool = False) -> Path:
    """The file that is there, else where it would be made."""
    places = [root / name for name in PLACES]
    made = places[0] if has_skills or (root / ".claude").is_dir() else places[1]
    return next((path for path in places if path.is_file()), made)


def load(root: Path) -> tuple[list[SharedEntry], list[str]]:
    entries, problems = list[SharedEntry](), list[str]()
    for name in PLACES:
        try:
            lines = read_regular(root / name, most=_LARGEST).splitlines()
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(f"{name}: {error.strerror or error}")
            continue
        for number, line in enumerate(lines[: 2 * MAX_ENTRIES], 1):
            try:
                entries.append(_bounded(msgspec.json.decode(line, type=SharedEntry)))
            except (msgspec.DecodeError, UnicodeDecodeError):
                if line.strip():
                    problems.append(f"{name}, line {number}: no entry")
    return entries, problems[:20]


def _bounded(entry: SharedEntry) -> SharedEntry:
    """Others wrote it: one line each, plain paths, no more than we would write."""
    return replace(
        entry,
        text=one_line(entry.text, MAX_TEXT),
        lesson=one_line(entry.lesson, MAX_TEXT),
        said=one_line(entry.said, 2 * MAX_TEXT),
        reason=one_line(entry.reason, MAX_TEXT),
        files=tuple(path for path in entry.files[:6] if is_plain_path(path)),
        hunk=entry.hunk[:_MAX_HUNK],
    )


def merged(entries: Iterable[SharedEntry]) -> dict[str, SharedEntry]:
    """One entry a pattern, by id: the latest, and of two at once the one that says more."""
    found: dict[str, SharedEntry] = {}
    for entry in entries:
        known = found.get(entry.id)
        if known is None or _weight(entry) > _weight(known):
            found[entry.id] = entry
    return dict(sorted(found.items())[:MAX_ENTRIES])


def _weight(entry: SharedEntry) -> tuple[str, bool, str, str]:
    # The rest only makes every clone choose the same.
    return entry.at, bool(entry.text), str(entry.word), entry.text


def for_everybody(entry: SharedEntry) -> SharedEntry:
    """What others are told: of forgotten or undecided words nothing but the id."""
    shown = entry.word in (EntryWord.APPROVED, EntryWord.ESTABLISHED)
    if shown or not entry.source.is_free_text:
        return entry
    return SharedEntry(
        id=entry.id, word=entry.word, kind=entry.kind, source=entry.source, at=entry.at
    )


def save(root: Path, entries: Mapping[str, SharedEntry], *, has_skills: bool = False) -> str:
    """Write the file; what was done, in words, empty where it says the same already."""
    path = path_of(root, has_skills=has_skills)
    data = b"".join(msgspec.json.encode(entries[key]) + b"\n" for key in sorted(entries))
    try:
        before = read_regular(path)
    except OSError:
        before = b""
    if data == before:
        return ""
    if path.parent.resolve().is_relative_to(root.resolve()):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, data, within=root)
    name = path.relative_to(root).as_posix()
    return f"updated {name}" if before else f"made {name}{_offer(root, name)}"


def _offer(root: Path, name: str) -> str:
    """The lines that keep merges free of conflicts, where they are not there yet."""
    lines = [f"{name} merge=union", ".claude/skills/*-learned/SKILL.md merge=union"]
    try:
        known = read_regular(root / ".gitattributes").decode("utf-8")
    except (OSError, ValueError):
        known = ""
    missing = " and ".join(f"`{line}`" for line in lines if line not in known)
    return f" (for merges without conflicts, add to .gitattributes: {missing})" if missing else ""
