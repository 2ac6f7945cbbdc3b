"""Skills: what a category's published patterns become.

Three distinct patterns make a skill, rendered by a fixed template.  The last line of a generated
file carries a digest of all the rest: where it no longer fits, a person has edited the file, and
from then on new versions are only proposed beside it.

A skill may come from another machine: its lines stay where they are, ours are added, and only a
pattern that is known to be lost is taken out.  A skill that is left with too few is removed, if it
is still as we wrote it and all of it was known here.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.config.model import SkillStyle
from ralphloop.learning.caution import plain_line
from ralphloop.learning.model import Index, Kind, Pattern
from ralphloop.learning.words import CATEGORIES
from ralphloop.room import open_regular

ENOUGH_PATTERNS = 3
PROPOSED = ".proposed"  # no agent loads a file of that name
_MOST = 25
_LARGEST = 64 * 1024
_NOWHERE = "see below"
_EXAMPLES = "Examples"
_DIGEST = re.compile(r"<!-- made by ralph from learnings: ([0-9a-f]{64}) -->\n")
_LINE = re.compile(r"- (?:\[([0-9a-f]{8})\]: .+|.+ \[([0-9a-f]{8})\])")
_TOUCHED = re.compile(r"^The task is about .+ touches one of: (.+)\.$", re.M)
_Sections = Mapping[str, Mapping[str, str]]  # heading → pattern → line
_INTRODUCTION = """\
Notes from earlier stories, each measured in at least two of them or approved by a person. They say
what was observed; what you are asked to do and which checks must be green is said elsewhere."""
_PLACES = {
    SkillStyle.AUTO: ".claude/skills/{name}/SKILL.md",
    SkillStyle.SKILLS: ".claude/skills/{name}/SKILL.md",
    SkillStyle.COMMANDS: ".claude/commands/{name}.md",
}


def publish(
    root: Path, index: Index, style: SkillStyle, lost: AbstractSet[str] = frozenset()
) -> list[str]:
    """Write, propose or remove skills; returns what was done, in words."""
    if style is SkillStyle.OFF:
        return []
    there, fit = ours(root, style), _by_skill(index)
    done = []
    for name in sorted(there.keys() | fit.keys()):
        path, known, before = _place(name, style), fit.get(name, []), there.get(name, "")
        gone = _ids(before) & lost
        strange = _ids(before) - lost - {one.id for one in known}
        if strange or len(known) >= ENOUGH_PATTERNS:
            text = render(name, known, before, lost) if known or gone else before
            word = _write(root, path, text)
            done += [f"{word} {path}"] if word else []
        elif before:
            (root / path).unlink()
            done.append(f"removed {path}: too few of its patterns are left")
    return done


def _by_skill(index: Index) -> dict[str, list[Pattern]]:
    """What may be published of each category, by the skill's name."""
    found: dict[str, list[Pattern]] = defaultdict(list)
    for pattern in index.patterns:
        if pattern.is_published and pattern.category != "general":
            found[f"{pattern.category}-learned"].append(pattern)
    return found


def places(root: Path, style: SkillStyle) -> list[str]:
    """Where generated skills may be, leaving out what a person has edited."""
    if style is SkillStyle.OFF:
        return []
    paths = [_place(f"{category}-learned", style) for category in sorted(CATEGORIES)]
    return [path for path in paths if not (root / path).exists() or _is_made_by_us(root / path)]


def ours(root: Path, style: SkillStyle) -> dict[str, str]:
    """The generated skills on disk that nobody has edited, with their text."""
    if style is SkillStyle.OFF or not (root / ".claude").is_dir():
        return {}
    names = (f"{category}-learned" for category in sorted(CATEGORIES))
    paths = {name: root / _place(name, style) for name in names}
    return {name: _read(path) for name, path in paths.items() if _is_made_by_us(path)}


def _place(name: str, style: SkillStyle) -> str:
    return _PLACES[style].format(name=name)


def render(
    name: str, patterns: Sequence[Pattern], before: str = "", lost: AbstractSet[str] = frozenset()
) -> str:
    """The skill's file with what stood there before; the same patterns give the same bytes."""
    strange = _ids(before) - lost - {one.id for one in patterns}
    best = patterns[: max(0, _MOST - len(strange))]
    known = sorted(best, key=lambda one: (-one.story_count, one.id))
    kept = _kept(before, strange | {one.id for one in known})
    about = name.removesuffix("-learned")
    files = _files(before) if strange else []
    files = list(dict.fromkeys([*files, *(path for one in known for path in one.files)]))[:6]
    where = ", ".join(files) or _NOWHERE
    description = (
        f"What earlier work in this repository taught about {about} ({where})."
        f" Use it when a task touches {about} or these files."
    )
    quoted = msgspec.json.encode(description[:1000]).decode()
    sections = [
        f"---\nname: {name}\ndescription: {quoted}\n---",
        f"# {about}: learned in this repository",
        _INTRODUCTION,
        f"## When to use\n\nThe task is about {about}, or touches one of: {where}.",
        _section("Patterns", [one for one in known if one.kind is not Kind.FAILURE], kept),
        _section("Gotchas", [one for one in known if one.kind is Kind.FAILURE], kept),
        _examples(known, kept),
    ]
    body = "\n\n".join(section for section in sections if section) + "\n\n"
    return f"{body}<!-- made by ralph from learnings: {_digest(body)} -->\n"


def is_ours(text: str) -> bool:
    """True for a file exactly as we wrote it."""
    head, _, last = text.removesuffix("\n").rpartition("\n")
    found = _DIGEST.fullmatch(last + "\n")
    return found is not None and found[1] == _digest(head + "\n")


def _section(title: str, patterns: list[Pattern], kept: _Sections) -> str:
    made = {one.id: f"- {plain_line(one.sentence, 500)} [{one.id}]" for one in patterns}
    lines = {**kept.get(title, {}), **made}  # each where it stood
    return f"## {title}\n\n" + "\n".join(lines.values()) if lines else ""


def _examples(patterns: list[Pattern], kept: _Sections) -> str:
    made = {
        one.id: f"- [{one.id}]: `git show {one.commits[-1][:12]}`"
        for one in patterns
        if one.commits and re.fullmatch(r"[0-9a-f]{7,64}", one.commits[-1])
    }
    lines = [*{**kept.get(_EXAMPLES, {}), **made}.values()]
    return f"## {_EXAMPLES}\n\n" + "\n".join(lines[:5]) if lines else ""


def _kept(text: str, wanted: AbstractSet[str]) -> _Sections:
    """The lines of a skill that are about these patterns, under their headings."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    title = ""
    for line in text.splitlines():
        if line.startswith("## "):
            title = line[3:]
        elif (named := _LINE.fullmatch(line)) and (named[1] or named[2]) in wanted:
            found[title][named[1] or named[2]] = line
    return found


def _ids(text: str) -> set[str]:
    """The patterns a skill names."""
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return {named[1] or named[2] for named in found if named}


def _files(text: str) -> list[str]:
    """The files a skill says it is about."""
    found = _TOUCHED.search(text)
    return found[1].split(", ") if found and found[1] != _NOWHERE else []


def _write(root: Path, path: str, text: str) -> str:
    """What was done to the file, in a word; empty where nothing was to be done."""
    target = root / path
    existing = _read(target)
    if existing == text:
        return ""
    if target.is_symlink() or (existing and not _is_made_by_us(target)):
        beside = target.with_name(target.name + PROPOSED)
        if _read(beside) == text:
            return ""
        write_atomic(beside, text.encode(), within=root)
        return "proposed a new version beside"
    if target.parent.resolve().is_relative_to(root.resolve()):
        target.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(target, text.encode(), within=root)  # refuses links that lead out of the project
    return "updated" if existing else "made"


def _is_made_by_us(path: Path) -> bool:
    """A link is a person's way to keep the file elsewhere."""
    return not path.is_symlink() and is_ours(_read(path))


def _read(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
