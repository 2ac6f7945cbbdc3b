"""From the index to files that agents read: skills, and the managed block in CLAUDE.md.

Three measured or approved patterns of a category make a skill, by a fixed template; its last line
carries a digest of all the rest: where it no longer fits, a person has edited the file, and from
then on new versions are only proposed beside it.  The block is a short digest of all patterns in
CLAUDE.md, or in AGENTS.md where CLAUDE.md is missing or only points there; only the bytes between
our two markers are ever changed, and where the markers are damaged, nothing is.  In both a pattern
is one harmless line that ends in its id.

Published files are shared, so they are merged into: a line stays unless its pattern was known on
this machine and no longer holds, or was forgotten by a person.  A skill that is left with too few
is removed, if it is still as we wrote it and all of it was known here.  A run makes no file that
nobody asked for: a memory file and a place for skills must be there, or be named in the settings.
While every Nth story is held out nothing is published: what lies in the repository would be read by
the held out ones too.

Published files get a commit of their own.  A memory file that a person has uncommitted changes in
is left alone, because our commit would take them along; files that git ignores are written and not
committed; where the commit is refused, the memory file is put back and the skills wait for the next
time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.config.model import LearningSection, MemoryFile, SkillStyle
from ralphloop.errors import RalphError
from ralphloop.learning import store
from ralphloop.learning.model import Index, NoteKind, Pattern
from ralphloop.learning.wording import CATEGORIES, plain_line
from ralphloop.project import Project
from ralphloop.repo.commit import CommitStatus, commit_paths, with_trailers
from ralphloop.repo.git import PATHSPECS_ON_STDIN, literal_pathspecs
from ralphloop.repo.own_files import project_prefix
from ralphloop.repo.work_tree import Repository
from ralphloop.room import open_regular

HELD_OUT = "nothing is published while learning.holdout is set: held out stories would read it"
BEGIN = b"<!-- ralph learned: begin (this block is rewritten; see `ralph learnings`) -->"
END = b"<!-- ralph learned: end -->"
ENOUGH_PATTERNS = 3
PROPOSED = ".proposed"  # no agent loads a file of that name
_MARK = re.compile(rb"<!-- ralph learned: (?:begin|end)\b")
_ID = re.compile(r"\[([0-9a-f]{8})\]$")
_LARGEST = 1 << 20
_POINTER = 400  # characters: a file that says more than "see AGENTS.md" stands for itself
_BLOCK_HEADING = (
    "## Codebase patterns\n\nObserved in two stories or more, or approved by a person:\n"
)
_MOST_FILES = 6
_TOUCHED = re.compile(r"^The task is about .+ touches one of: (?!see below)(.+)\.$", re.M)
_DIGEST = re.compile(r"<!-- made by ralph from learnings: ([0-9a-f]{64}) -->\n?")
_INTRODUCTION = """\
Notes from earlier stories, each measured in at least two of them or approved by a person. They say
what was observed; what you are asked to do and which checks must be green is said elsewhere."""
_BLOCK, _SKILL = (12, 2_400), (25, 16_000)  # lines and characters, at most


def after_story(
    project: Project, config: LearningSection, *, ended_stories: int, now: float
) -> list[str]:
    """Aggregate every so many stories; returns problems in words, never raises."""
    if not config.enabled or not config.every or ended_stories % config.every:
        return []
    try:
        return list(store.rebuild(project, now=now).problems)
    except (RalphError, OSError) as error:
        return [f"learnings were not aggregated: {error}"]


def at_end(
    project: Project,
    repo: Repository | None,
    config: LearningSection,
    *,
    run: str,
    commit: bool,
    now: float,
) -> list[str]:
    """Aggregate, publish and commit at the end of a run; returns what was done, never raises."""
    if not config.enabled or not store.directory(project).is_dir():
        return []
    target, skills, memory = memory_file(project.root, config.memory), config.skills, config.memory
    if skills is SkillStyle.AUTO and not (project.root / ".claude/skills").is_dir():
        skills = SkillStyle.OFF
    if memory is MemoryFile.AUTO and not (target and target.exists()):
        memory = MemoryFile.OFF
    config = msgspec.structs.replace(config, skills=skills, memory=memory)
    try:
        index = store.rebuild(project, now=now)
        if not commit or repo is None:
            return publish(project, index, config)
        return _publish_and_commit(project, index, config, repo, run)
    except (RalphError, OSError) as error:
        return [f"what was learned was not published: {error}"]


def publish(project: Project, index: Index, config: LearningSection) -> list[str]:
    """Write the skills and the block; returns what was done, in words."""
    if config.holdout:
        return [HELD_OUT]
    fit = {pattern.id for pattern in index.patterns if pattern.is_published}
    decisions = store.load_decisions(project)
    forgotten = {decided.id for decided in decisions if decided.word == "forgotten"}
    lost = (store.add_known(project, fit) | forgotten) - fit
    return [
        *publish_skills(project.root, index, config.skills, lost),
        *publish_block(project.root, index, config.memory, lost),
    ]


def _publish_and_commit(
    project: Project, index: Index, config: LearningSection, repo: Repository, run: str
) -> list[str]:
    if problems := tuple(repo.problems()):
        return [f"what was learned was not published: {problems[0].message}"]
    prefix, dirty = project_prefix(repo.root, project.root), []
    target = memory_file(project.root, config.memory)
    if target is not None and f"{prefix}{target.name}" in repo.dirty_paths():
        dirty = [f"{target.name} has uncommitted changes: its learned block was left as it is"]
        config, target = msgspec.structs.replace(config, memory=MemoryFile.OFF), None
    before = target.read_bytes() if target is not None and target.is_file() else None
    done = publish(project, index, config)
    ours = [
        path
        for path in _places(config.skills).values()
        if not (project.root / path).exists() or _our_skill(project.root / path)
    ]
    paths = [f"{prefix}{path}" for path in (*ours, *([target.name] if target else []))]
    refused = _commit(repo, paths, run)
    if not refused:
        return [*done, *dirty]
    if target is not None:
        target.unlink(missing_ok=True) if before is None else target.write_bytes(before)
    specs = literal_pathspecs(paths)
    repo.git.writing().attempt("reset", "--quiet", *PATHSPECS_ON_STDIN, stdin=specs)
    return [f"what was learned was not committed: {refused}"]


def _commit(repo: Repository, paths: list[str], run: str) -> str:
    """Why the commit was refused; empty where it was not, or there was nothing to commit."""
    message = with_trailers("Learned from this run", {"Ralph-Run": run})
    try:
        result = commit_paths(repo, paths, message)
    except RalphError as error:
        return error.message
    return result.feedback if result.status is CommitStatus.REFUSED else ""


# --- what both have in common ----------------------------------------------------------------


def _lines_in(text: str) -> dict[str, str]:
    """Published lines by the pattern they are about; a line that names none is its own."""
    lines = (line for line in text.splitlines() if line.startswith("- "))
    return {named[1] if (named := _ID.search(line)) else line: line for line in lines}


def _merged(
    before: Mapping[str, str],
    ours: Mapping[str, str],
    lost: AbstractSet[str],
    size: tuple[int, int],
) -> dict[str, str]:
    """Lines of others stay, each line where it stood; ours come in while there is room."""
    lines = {key: line for key, line in before.items() if key not in lost and key not in ours}
    most, room = size[0], size[1] - sum(map(len, lines.values()))
    for key, line in ours.items():
        if len(line) < room and len(lines) < most:
            lines[key] = line
            room -= len(line)
    return {key: lines.pop(key) for key in before if key in lines} | lines


def _read(path: Path) -> bytes | None:
    """The file's bytes, nothing for a missing one; None where it is not ours to judge."""
    try:
        with open_regular(path) as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return b""
    except OSError:
        return None
    return None if len(data) > _LARGEST else data


# --- skills ----------------------------------------------------------------------------------


def publish_skills(
    root: Path, index: Index, style: SkillStyle, lost: AbstractSet[str] = frozenset()
) -> list[str]:
    """Write, propose or remove skills; returns what was done, in words."""
    done = []
    for name, path in _places(style).items():
        about = name.removesuffix("-learned")
        known = [one for one in index.patterns if one.is_published and one.category == about]
        before = _our_skill(root / path)
        there = _lines_in(before)
        lines = _merged(there, {one.id: _skill_line(one) for one in known}, lost, _SKILL)
        strange = lines.keys() - {one.id for one in known}
        if strange or len(known) >= ENOUGH_PATTERNS:
            if lines != there:
                word = _write(root, path, _render_skill(about, lines, known, before))
                done += [f"{word} {path}"] if word else []
        elif before:
            (root / path).unlink()
            done.append(f"removed {path}: too few of its patterns are left")
    return done


def generated_skills(root: Path, style: SkillStyle) -> dict[str, str]:
    """The generated skills on disk that nobody has edited, by name, with their text."""
    if not (root / ".claude").is_dir():
        return {}
    places = _places(style).items()
    return {name: text for name, path in places if (text := _our_skill(root / path))}


def _places(style: SkillStyle) -> dict[str, str]:
    """Where the skill of each category may be, by its name."""
    if style is SkillStyle.OFF:
        return {}
    place = ".claude/skills/{}/SKILL.md"
    if style is SkillStyle.COMMANDS:
        place = ".claude/commands/{}.md"
    names = [f"{category}-learned" for category in sorted(CATEGORIES - {"general"})]
    return {name: place.format(name) for name in names}


def _skill_line(pattern: Pattern) -> str:
    """The pattern, and the first commit that shows it."""
    example = next((one for one in pattern.commits if re.fullmatch(r"[0-9a-f]{7,64}", one)), "")
    shown = f" (`git show {example[:12]}`)" if example else ""
    return f"- {plain_line(pattern.sentence, 500)}{shown} [{pattern.id}]"


def _render_skill(
    about: str, lines: Mapping[str, str], known: Sequence[Pattern], before: str
) -> str:
    """The skill's file; `before` tells what the lines of others are about."""
    theirs = _TOUCHED.search(before)
    files = [
        *(theirs[1].split(", ") if theirs else ()),
        *(path for one in known for path in one.files),
    ]
    where = ", ".join(list(dict.fromkeys(files))[:_MOST_FILES]) or "see below"
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
    gotchas |= _lines_in(before.partition("## Gotchas\n")[2]).keys()
    for title, are_gotchas in (("Patterns", False), ("Gotchas", True)):
        chosen = [line for key, line in lines.items() if (key in gotchas) is are_gotchas]
        sections += [f"## {title}\n\n" + "\n".join(chosen)] if chosen else []
    body = "\n\n".join(sections) + "\n\n"
    return f"{body}<!-- made by ralph from learnings: {_digest(body)} -->\n"


def is_ours(text: str) -> bool:
    """True for a skill exactly as we wrote it."""
    head, _, last = text.removesuffix("\n").rpartition("\n")
    found = _DIGEST.fullmatch(last)
    return found is not None and found[1] == _digest(head + "\n")


def _our_skill(path: Path) -> str:
    """Its text as we wrote it, else nothing; a link is a person's way to keep it elsewhere."""
    text = "" if path.is_symlink() else (_read(path) or b"").decode("utf-8", "replace")
    return text if is_ours(text) else ""


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _write(root: Path, path: str, text: str) -> str:
    """What was done to the file, in a word; empty where nothing was to be done."""
    target, data = root / path, text.encode()
    existing = _read(target)
    if existing == data:
        return ""
    if target.is_symlink() or (existing != b"" and not _our_skill(target)):
        beside = target.with_name(target.name + PROPOSED)
        if _read(beside) == data:
            return ""
        write_atomic(beside, data, within=root)
        return "proposed a new version beside"
    if target.parent.resolve().is_relative_to(root.resolve()):
        target.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(target, data, within=root)  # refuses links that lead out of the project
    return "updated" if existing else "made"


# --- the block -------------------------------------------------------------------------------


def memory_file(root: Path, setting: MemoryFile) -> Path | None:
    """The file that carries the block; None where there is to be none."""
    claude, agents = root / "CLAUDE.md", root / "AGENTS.md"
    if setting is MemoryFile.OFF:
        return None
    if setting is MemoryFile.AUTO:
        has_claude = claude.exists() and not _points_to_agents(claude)
        return agents if agents.exists() and not has_claude else claude
    return claude if setting is MemoryFile.CLAUDE else agents


def publish_block(
    root: Path, index: Index, setting: MemoryFile, lost: AbstractSet[str] = frozenset()
) -> list[str]:
    """Bring the block up to date; returns what was done, in words."""
    path = memory_file(root, setting)
    if path is None:
        return []
    before = _read(path)
    if before is None:
        return [f"{path.name} was left alone: it cannot be read, or is too large"]
    after = with_block(before, render_block(index.patterns, _block(before), lost))
    if after is None:
        return [f"{path.name} was left alone: the markers of its learned block are damaged"]
    if after == before:
        return []
    write_atomic(path, after, within=root)
    return [f"updated the learned block in {path.name}"]


def render_block(
    patterns: Sequence[Pattern], before: str = "", lost: AbstractSet[str] = frozenset()
) -> bytes:
    """The block's text with what stood there before; empty where there is nothing to say."""
    fit = [one for one in patterns if one.is_published]
    ours = {one.id: f"- {plain_line(one.sentence, 400)} [{one.id}]" for one in fit}
    lines = _merged(_lines_in(before), ours, lost, _BLOCK)
    text = "\n".join((_BLOCK_HEADING, *lines.values(), "")) if lines else ""
    return text.encode("utf-8", "surrogateescape")


def with_block(text: bytes, block: bytes) -> bytes | None:
    """The text with the block in its place; None where the markers are damaged."""
    newline = b"\r\n" if 2 * text.count(b"\r\n") > text.count(b"\n") else b"\n"
    made = b""
    if block:
        made = newline.join((BEGIN, block.replace(b"\n", newline), END)) + newline
    marks = len(_MARK.findall(text))
    if not marks:
        gap = b"" if not text else newline if text.endswith(b"\n") else newline * 2
        return text + gap + made if made else text
    start, end = text.find(BEGIN), text.find(END)
    if marks != 2 or start < 0 or end < start:
        return None
    after = end + len(END)
    after += len(newline) if text.startswith(newline, after) else 0
    return text[:start] + made + text[after:]


def block_read_by(root: Path, setting: MemoryFile, agent: str) -> str:
    """The block as far as this agent loads the file it stands in."""
    path = memory_file(root, setting)
    if path is None:
        return ""
    loads = agent in ("codex", "opencode") and path.name == "AGENTS.md"
    if agent == "claude":
        loads = path.name == "CLAUDE.md" or (root / "CLAUDE.md").exists()
    return _block(_read(path) or b"") if loads else ""


def _block(text: bytes) -> str:
    start, end = text.find(BEGIN), text.find(END)
    return text[start:end].decode("utf-8", "surrogateescape") if 0 <= start < end else ""


def _points_to_agents(claude: Path) -> bool:
    """True for a link to AGENTS.md, or a file that says nothing but to read it."""
    if claude.is_symlink() and claude.resolve().name == "AGENTS.md":
        return True
    text = (_read(claude) or b"").strip()
    return len(text) <= _POINTER and b"AGENTS.md" in text and BEGIN not in text
