"""Skills: three published patterns of a category, by a fixed template, with hunks as examples.

The last line of a skill carries a mark of every line above it.  Where they no longer fit, a person
has edited the file: it is theirs from then on, and new versions are only proposed beside it.  Two
of our versions that git merged by union still fit their two marks, and are written anew.  Every
pattern is one harmless line that ends in its id, and hunks are indented: nothing but text.
"""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.config.model import SkillStyle
from ralphloop.learning.model import NoteKind, Pattern
from ralphloop.learning.wording import CATEGORIES, is_same, plain_line, words_of
from ralphloop.room import read_regular
from ralphloop.text.plain import clean

ENOUGH_PATTERNS = 3
PROPOSED = ".proposed"  # no agent loads a file of that name
HUNK_LINES = 8
_ID = re.compile(r"\[([0-9a-f]{8})\]$")
_LARGEST = 1 << 20
_MOST_FILES = 6
_MOST_EXAMPLES = 3
_MADE = re.compile(r"<!-- made by ralph from learnings: ([0-9a-f ]+) -->")
_INTRODUCTION = """\
Notes from earlier stories, each measured in at least two of them or approved by a person. They say
what was observed; what you are asked to do and which checks must be green is said elsewhere."""
_SIZE = (25, 16_000)  # lines and characters, at most
_CLAUDE = ".claude/skills/{}/SKILL.md"
_AGENTS = ".agents/skills/{}/SKILL.md"
_COMMANDS = ".claude/commands/{}.md"
_WHERE: dict[SkillStyle, tuple[str, ...]] = {
    "skills": (_CLAUDE,),
    "agents": (_AGENTS,),
    "both": (_CLAUDE, _AGENTS),
    "commands": (_COMMANDS,),
}
EVERYWHERE: tuple[SkillStyle, ...] = ("both", "commands")


class SkillPlace(NamedTuple):
    """Where the skill of a category may be."""

    name: str
    path: str


def publish_skills(
    root: Path, patterns: Sequence[Pattern], style: SkillStyle, lost: Collection[str] = frozenset()
) -> list[str]:
    """Write, propose or remove skills; returns what was done, in words."""
    done = []
    wanted = places(style)
    for name, path in wanted:
        about = name.removesuffix("-learned")
        known = [one for one in patterns if one.is_published and one.category == about]
        before = our_skill(root / path)
        there = lines_in(before)
        ours: dict[str, str] = {}
        for one in known:  # with the commit that shows it
            has_example = re.fullmatch(r"[0-9a-f]{7,64}", one.commit)
            shown = f" (`git show {one.commit[:12]}`)" if has_example else ""
            ours[one.id] = f"- {plain_line(one.sentence, 500)}{shown} [{one.id}]"
        lines = merged_lines(there, ours, lost, _SIZE)
        strange = lines.keys() - {one.id for one in known}
        if strange or len(known) >= ENOUGH_PATTERNS:
            if lines != there or len(_MADE.findall(before)) > 1:
                word = _write(root, path, _render(about, lines, known))
                done += [f"{word} {path}"] if word else []
        elif before:
            (root / path).unlink()
            done.append(f"removed {path}: too few of its patterns are left")
    if wanted:
        done += _remove_elsewhere(root, wanted)
    return done


def _remove_elsewhere(root: Path, wanted: Sequence[SkillPlace]) -> list[str]:
    """Remove what we made in other places, where some agents would load it as well."""
    done = []
    # One directory may be a link to the other.
    kept = {(root / place.path).resolve() for place in wanted}
    for place in made_places(root):
        path = root / place.path
        if path.resolve() not in kept:
            path.unlink()
            done.append(f"removed {place.path}: skills are made elsewhere now")
    return done


def made_places(root: Path, *styles: SkillStyle) -> list[SkillPlace]:
    """Where there is a skill as we wrote it."""
    found = (place for style in styles or EVERYWHERE for place in places(style))
    there = (place for place in found if (root / Path(place.path).parts[0]).is_dir())
    return [place for place in there if our_skill(root / place.path)]


def made_skills(root: Path, *styles: SkillStyle) -> dict[str, str]:
    """The skills on disk as we wrote them, by name, with their text."""
    return {name: our_skill(root / path) for name, path in made_places(root, *styles)}


def places(style: SkillStyle) -> list[SkillPlace]:
    """Where the skill of each category may be."""
    names = [f"{category}-learned" for category in sorted(CATEGORIES - {"general"})]
    where = _WHERE.get(style, ())
    return [SkillPlace(name, one.format(name)) for one in where for name in names]


def _render(about: str, lines: Mapping[str, str], known: Sequence[Pattern]) -> str:
    files = dict.fromkeys(path for one in known for path in one.files)
    where = ", ".join(list(files)[:_MOST_FILES]) or "see below"
    description = (
        f"What earlier work in this repository taught about {about} ({where})."
        f" Use it when a task touches {about} or these files."
    )
    quoted = msgspec.json.encode(description[:1000]).decode()
    sections = [
        f"---\nname: {about}-learned\ndescription: {quoted}\n---",
        f"# {about}: learned in this repository",
        _INTRODUCTION,
        f"## When to use\n\nThe task is about {about}, or touches one of: {where}.",
    ]
    gotchas = {one.id for one in known if one.kind is NoteKind.FAILURE}
    gotchas |= {key for key, line in lines.items() if " → " in line}
    for title, are_gotchas in (("Patterns", False), ("Gotchas", True)):
        chosen = [line for key, line in lines.items() if (key in gotchas) is are_gotchas]
        sections += [f"## {title}\n\n" + "\n".join(chosen)] if chosen else []
    shown = [one for one in known if one.hunk and one.id in lines][:_MOST_EXAMPLES]
    if shown:
        sections.append("## Examples")
    for one in shown:
        hunk = clean(one.hunk).replace("!`", "! `").splitlines()[:HUNK_LINES]
        named = f"`{one.files[0]}`" if one.files else "It"
        sections.append("\n".join([f"{named} [{one.id}]:\n", *(f"    {line}" for line in hunk)]))
    body = "\n\n".join(sections)
    marks = " ".join(sorted({_mark(line) for line in body.splitlines()}))
    return f"{body}\n\n<!-- made by ralph from learnings: {marks} -->\n"


def is_ours(text: str) -> bool:
    """True for a skill with exactly the lines we wrote, or two of them in one."""
    marks = _MADE.findall(text)
    if len(marks) == 1 and len(marks[0]) == 64:  # of an older version
        body = text.partition("<!-- made by ralph")[0]
        return bool(marks[0] == hashlib.sha256(body.encode()).hexdigest())
    wanted = {mark for line in marks for mark in line.split()}
    return bool(wanted) and wanted == {
        _mark(line) for line in text.splitlines() if not _MADE.fullmatch(line)
    }


def _mark(line: str) -> str:
    return hashlib.sha256(line.encode("utf-8", "replace")).hexdigest()[:6] if line else "0"


def our_skill(path: Path) -> str:
    """Its text as we wrote it, else nothing; a link is a person's way to keep it elsewhere."""
    text = "" if path.is_symlink() else (read(path) or b"").decode("utf-8", "replace")
    return text if is_ours(text) else ""


def _write(root: Path, path: str, text: str) -> str:
    """What was done to the file, in a word; empty where nothing was to be done."""
    target = root / path
    data = text.encode()
    existing = read(target)
    if existing == data:
        return ""
    if target.is_symlink() or (existing != b"" and not our_skill(target)):
        beside = target.with_name(target.name + PROPOSED)
        if read(beside) == data:
            return ""
        write_atomic(beside, data, within=root)
        return "proposed a new version beside"
    write_atomic(target, data, within=root, parents=True)  # refuses links that lead out
    return "updated" if existing else "made"


def lines_in(text: str) -> dict[str, str]:
    """Published lines by the pattern they are about; a line that names none is its own."""
    lines = (line for line in text.splitlines() if line.startswith("- "))
    return {named[1] if (named := _ID.search(line)) else line: line for line in lines}


def merged_lines(
    before: Mapping[str, str],
    ours: Mapping[str, str],
    lost: Collection[str],
    size: tuple[int, int],
) -> dict[str, str]:
    """Lines of others stay, each line where it stood; ours come in while there is room."""
    said = [words_of(_ID.sub("", line)) for line in ours.values()]
    lines: dict[str, str] = {}
    for key, line in before.items():
        words = words_of(_ID.sub("", line))
        repeated = any(is_same(words, known) for known in said)  # under another id
        if key not in lost and key not in ours and not repeated:
            lines[key] = line
    most = size[0]
    room = size[1] - sum(map(len, lines.values()))
    for key, line in ours.items():
        if len(line) < room and len(lines) < most:
            lines[key] = line
            room -= len(line)
    return {key: lines.pop(key) for key in before if key in lines} | lines


def read(path: Path) -> bytes | None:
    """The file's bytes, nothing for a missing one; None where it is not ours to judge."""
    try:
        data = read_regular(path, most=_LARGEST + 1)
    except FileNotFoundError:
        return b""
    except OSError:
        return None
    return None if len(data) > _LARGEST else data
