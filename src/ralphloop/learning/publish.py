"""From the index to files that others read: the shared file, skills, the block in a memory file.

Files are merged into: a line stays unless its pattern is known and no longer holds.  Of a memory
file only the bytes between our two markers are ever changed, and where those are damaged, nothing.
A run makes no file that nobody asked for.  Published files get a commit of their own; a memory file
with a person's uncommitted changes is left alone, because our commit would take them along.  Where
the commit is refused, the memory file is put back and the rest waits for the next time.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.agents.declared import memory_files
from ralphloop.atomic import write_atomic
from ralphloop.config.model import LearningSection, MemoryFile, SkillStyle
from ralphloop.errors import RalphError
from ralphloop.learning import SHARED_FILES, store
from ralphloop.learning.aggregate import GONE
from ralphloop.learning.model import (
    EntryWord,
    Index,
    Pattern,
    PatternStanding,
    SharedEntry,
    review_hint,
)
from ralphloop.learning.skills import (
    EVERYWHERE,
    HUNK_LINES,
    lines_in,
    made_skills,
    merged_lines,
    our_skill,
    places,
    publish_skills,
    read,
)
from ralphloop.learning.wording import plain_line
from ralphloop.project import Project
from ralphloop.redaction import redact
from ralphloop.repo.commit import CommitStatus, commit_paths, with_trailers
from ralphloop.repo.git import PATHSPECS_ON_STDIN, Git, literal_pathspecs
from ralphloop.repo.work_tree import Repository, project_prefix
from ralphloop.text.plain import clean

BEGIN = b"<!-- ralph learned: begin (this block is rewritten; see `ralph learnings`) -->"
END = b"<!-- ralph learned: end -->"
_MARK = re.compile(rb"<!-- ralph learned: (?:begin|end)\b")
_POINTER = 400  # characters: a file that says more than "see AGENTS.md" stands for itself
_ANY_OF = ("CLAUDE.md", "AGENTS.md", "GEMINI.md")  # for an agent that does not say what it reads
_BLOCK_HEADING = (
    "## Codebase patterns\n\nMeasured in two stories or more, or approved by a person:\n"
)
_READ_AGENTS_SKILLS = ("codex", "gemini")  # .agents/skills, by themselves
_SIZE = (12, 2_400)  # lines and characters of the block, at most
_HUNK_WIDTH = 100
_TOLD = ("id", "kind", "text", "lesson", "source", "category", "files", "hunk")


class Goal(NamedTuple):
    skills: SkillStyle  # never "auto"
    memory: Path | None  # the file that carries the block


def goal(root: Path, config: LearningSection, agent: str, *, asked: bool = False) -> Goal:
    """Where this agent reads; what is not there yet only where a person asked for it."""
    skills = config.skills
    target = memory_file(root, config.memory, agent)
    if skills == "auto":
        skills = _found_style(root, agent, asked=asked)
    if config.memory == "auto" and not asked and not (target and target.exists()):
        target = None
    return Goal(skills, target)


def _found_style(root: Path, agent: str, *, asked: bool) -> SkillStyle:
    """Where skills go by themselves: into directories that are there, or that this agent reads."""
    has_claude = (root / ".claude/skills").is_dir()
    has_agents = (root / ".agents/skills").is_dir()
    is_read = agent == "claude" or (not memory_files(agent, root) and has_claude)
    for_claude = is_read and (asked or has_claude)
    for_agents = has_agents or (asked and agent in _READ_AGENTS_SKILLS)
    if for_claude and for_agents:
        return "both"
    if for_claude:
        return "skills"
    return "agents" if for_agents else "off"


def publish_at_end(
    project: Project,
    repo: Repository | None,
    config: LearningSection,
    *,
    agent: str,
    run: str,
    now: float,
    on_branch: bool = True,
) -> list[str]:
    """Aggregate, publish and, given a repository, commit; returns what was done, never raises."""
    if not config.enabled or not store.directory(project).is_dir():
        return []
    try:
        index = store.rebuild(project, now=now)
        there = goal(project.root, config, agent)
        if repo is None:
            done = publish(project, index, there, now=now)
        elif problems := [it for it in repo.problems() if on_branch or it.code != "detached"]:
            done = [f"what was learned was not published: {problems[0].message}"]
        else:
            done = _publish_and_commit(project, index, there, repo, run, now)
        return [*done, *review_hint(index.patterns)]
    except (RalphError, OSError) as error:
        return [f"what was learned was not published: {error}"]


def publish(project: Project, index: Index, there: Goal, *, now: float) -> list[str]:
    root = project.root
    moment = store.moment(now)
    entries = store.load_entries(project).entries
    patterns = {one.id: one for one in index.patterns}
    for one in index.patterns:  # what was established, or refuted, since
        known = entries.get(one.id)
        known = known if known and known.word is EntryWord.ESTABLISHED else None
        if one.standing is PatternStanding.ESTABLISHED:
            if known is None or (known.text, known.lesson) != (one.text, one.lesson):
                shown = msgspec.structs.replace(one, hunk=_hunk(root, one))
                entries[one.id] = entry_of(shown, EntryWord.ESTABLISHED, moment)
                patterns[one.id] = shown
        elif known and one.standing is PatternStanding.RETIRED and one.reason != GONE:
            changes = {"word": EntryWord.RETIRED, "reason": one.reason, "at": moment}
            entries[one.id] = msgspec.structs.replace(known, **changes)
    has_skills = there.skills not in ("off", "agents")  # then .claude is there
    done = []
    if entries and (has_skills or there.memory or store.shared_file(root).is_file()):
        done = [store.share(root, entries.values(), has_skills=has_skills)]
    fit = {one.id for one in index.patterns if one.is_published}
    lost = (entries.keys() | patterns.keys()) - fit
    return [
        *filter(None, done),
        *publish_skills(root, [*patterns.values()], there.skills, lost),
        *publish_block(root, [*patterns.values()], there.memory, lost),
    ]


def entry_of(pattern: Pattern, word: EntryWord, now: str) -> SharedEntry:
    told = {name: getattr(pattern, name) for name in _TOLD}
    return SharedEntry(**told, word=word, at=now, commit=pattern.commit[:12])


def _hunk(root: Path, pattern: Pattern) -> str:
    """What the story's own commit changed in the files the pattern is about, the first lines."""
    if not re.fullmatch(r"[0-9a-f]{7,64}", pattern.commit) or not pattern.files:
        return pattern.hunk
    plain = ("--format=", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv")
    ended = Git(root).attempt("show", *plain, pattern.commit, "--", *pattern.files[:1])
    text = redact(clean(ended.stdout[:65_536].decode("utf-8", "replace")))
    lines = (line[:_HUNK_WIDTH] for line in text.splitlines() if line[:1] in ("+", "-"))
    changed = [line for line in lines if not line.startswith(("+++ ", "--- "))]
    return "\n".join(changed[:HUNK_LINES]) or pattern.hunk


def _publish_and_commit(
    project: Project, index: Index, there: Goal, repo: Repository, run: str, now: float
) -> list[str]:
    prefix = project_prefix(repo.root, project.root)
    dirty = []
    target = there.memory
    if target is not None and f"{prefix}{target.name}" in repo.dirty_paths():
        dirty = [f"{target.name} has uncommitted changes: its learned block was left as it is"]
        there = there._replace(memory=None)
        target = None
    before = target.read_bytes() if target is not None and target.is_file() else None
    done = publish(project, index, there, now=now)
    ours = [
        path
        for style in EVERYWHERE
        for _, path in places(style)
        if not (project.root / path).exists() or our_skill(project.root / path)
    ]
    paths = [f"{prefix}{path}" for path in (*ours, *([target.name] if target else []))]
    paths += [f"{prefix}{name}" for name in SHARED_FILES]
    message = with_trailers("Learned from this run", {"Ralph-Run": run})
    try:
        result = commit_paths(repo, paths, message)
        if result.status is not CommitStatus.REFUSED:
            return [*done, *dirty]
        refused = result.feedback
    except RalphError as error:
        refused = error.message
    if target is not None and before is None:
        target.unlink(missing_ok=True)
    elif target is not None and before is not None:
        target.write_bytes(before)
    specs = literal_pathspecs(paths)
    repo.git.writing().attempt("reset", "--quiet", *PATHSPECS_ON_STDIN, stdin=specs)
    return [f"what was learned was not committed: {refused}"]


def memory_file(root: Path, setting: MemoryFile, agent: str = "") -> Path | None:
    """The file that carries the block for this agent; None where there is to be none."""
    if setting == "off":
        return None
    if setting != "auto":
        return root / setting
    claude = root / "CLAUDE.md"
    agents = root / "AGENTS.md"
    names = memory_files(agent, root) or _ANY_OF
    if claude.name in names and agents.exists() and claude.exists():
        # A link to AGENTS.md, or a file that says nothing but to read it.
        text = (read(claude) or b"").strip()
        points = len(text) <= _POINTER and b"AGENTS.md" in text and BEGIN not in text
        if points or (claude.is_symlink() and claude.resolve().name == "AGENTS.md"):
            return agents
    there = [root / name for name in names if (root / name).exists()]
    return there[0] if there else root / names[0]


def publish_block(
    root: Path, patterns: Sequence[Pattern], path: Path | None, lost: Collection[str] = frozenset()
) -> list[str]:
    """Bring the block up to date; returns what was done, in words."""
    if path is None:
        return []
    before = read(path)
    if before is None:
        return [f"{path.name} was left alone: it cannot be read, or is too large"]
    after = with_block(before, render_block(patterns, _block(before), lost))
    if after is None:
        return [f"{path.name} was left alone: the markers of its learned block are damaged"]
    if after == before:
        return []
    write_atomic(path, after, within=root)
    return [f"updated the learned block in {path.name}"]


def render_block(patterns: Sequence[Pattern], before: str, lost: Collection[str]) -> bytes:
    """The block's text with what stood there before; empty where there is nothing to say."""
    fit = [one for one in patterns if one.is_published]
    ours = {one.id: f"- {plain_line(one.sentence, 400)} [{one.id}]" for one in fit}
    lines = merged_lines(lines_in(before), ours, lost, _SIZE)
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
        if not made:
            return text
        gap = newline if text.endswith(b"\n") else newline * 2
        return text + gap + made if text else made
    start = text.find(BEGIN)
    end = text.find(END)
    if marks != 2 or start < 0 or end < start:
        return None
    after = end + len(END)
    after += len(newline) if text.startswith(newline, after) else 0
    return text[:start] + made + text[after:]


def read_by(root: Path, config: LearningSection, agent: str) -> str:
    """What this agent loads by itself: skills, and the block."""
    reads_skills = agent == "claude" and config.skills in ("auto", "skills", "both")
    read_there = list(made_skills(root, "skills").values()) if reads_skills else []
    path = memory_file(root, config.memory, agent)
    names = memory_files(agent, root)
    if agent == "claude" and (root / "CLAUDE.md").exists():
        names = (*names, "AGENTS.md")  # it is told there to read the other
    block = _block(read(path) or b"") if path and path.name in names else ""
    return "\n".join([*read_there, block])


def _block(text: bytes) -> str:
    start = text.find(BEGIN)
    end = text.find(END)
    return text[start:end].decode("utf-8", "surrogateescape") if 0 <= start < end else ""
