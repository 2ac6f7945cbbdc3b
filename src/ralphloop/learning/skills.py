"""Skills: what a category's established patterns become.

Three distinct patterns make a skill, rendered by a fixed template.  The last line of a generated
file carries a digest of all the rest: where it no longer fits, a person has edited the file, and
from then on new versions are only proposed beside it.  A skill whose patterns are gone is removed,
if it is still as we wrote it.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.config.model import SkillStyle
from ralphloop.learning.caution import plain_line
from ralphloop.learning.model import Index, Kind, Pattern
from ralphloop.learning.words import CATEGORIES
from ralphloop.regular import open_regular

ENOUGH_PATTERNS = 3
PROPOSED = ".proposed"  # no agent loads a file of that name
_MOST = 25
_LARGEST = 64 * 1024
_DIGEST = re.compile(r"<!-- made by ralph from learnings: ([0-9a-f]{64}) -->\n")
_INTRODUCTION = """\
Notes from earlier stories, each found by at least two of them or approved by a person. They say
what was observed; what you are asked to do and which checks must be green is said elsewhere."""
_PLACES = {
    SkillStyle.SKILLS: ".claude/skills/{name}/SKILL.md",
    SkillStyle.COMMANDS: ".claude/commands/{name}.md",
}


def wanted(index: Index) -> dict[str, list[Pattern]]:
    """The patterns of each category that has enough of them, by the skill's name."""
    found: dict[str, list[Pattern]] = defaultdict(list)
    for pattern in index.patterns:
        if pattern.is_trusted and pattern.category != "general":
            found[f"{pattern.category}-learned"].append(pattern)
    return {
        name: patterns[:_MOST]
        for name, patterns in sorted(found.items())
        if len(patterns) >= ENOUGH_PATTERNS
    }


def publish(root: Path, index: Index, style: SkillStyle) -> list[str]:
    """Write, propose or remove skills; returns what was done, in words."""
    if style is SkillStyle.OFF:
        return []
    skills = wanted(index)
    done = [
        f"{word} {path}"
        for name, patterns in skills.items()
        if (word := _write(root, path := _place(name, style), render(name, patterns)))
    ]
    for name in sorted(ours(root, style).keys() - skills.keys()):
        path = _place(name, style)
        (root / path).unlink()
        done.append(f"removed {path}: too few of its patterns are left")
    return done


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


def render(name: str, patterns: Iterable[Pattern]) -> str:
    """The skill's file; the same patterns give the same bytes."""
    known = sorted(patterns, key=lambda one: (-one.story_count, one.id))
    about = name.removesuffix("-learned")
    files = list(dict.fromkeys(path for one in known for path in one.files))[:6]
    where = ", ".join(files) or "see below"
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
        _section("Patterns", [one for one in known if one.kind is not Kind.FAILURE]),
        _section("Gotchas", [one for one in known if one.kind is Kind.FAILURE]),
        _examples(known),
    ]
    body = "\n\n".join(section for section in sections if section) + "\n\n"
    return f"{body}<!-- made by ralph from learnings: {_digest(body)} -->\n"


def is_ours(text: str) -> bool:
    """True for a file exactly as we wrote it."""
    head, _, last = text.removesuffix("\n").rpartition("\n")
    found = _DIGEST.fullmatch(last + "\n")
    return found is not None and found[1] == _digest(head + "\n")


def _section(title: str, patterns: list[Pattern]) -> str:
    lines = [f"- {plain_line(one.sentence, 500)} [{one.id}]" for one in patterns]
    return f"## {title}\n\n" + "\n".join(lines) if lines else ""


def _examples(patterns: list[Pattern]) -> str:
    lines = [
        f"- [{one.id}]: `git show {one.commits[-1][:12]}`"
        for one in patterns
        if one.commits and re.fullmatch(r"[0-9a-f]{7,64}", one.commits[-1])
    ]
    return "## Examples\n\n" + "\n".join(lines[:5]) if lines else ""


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
