"""The managed block in CLAUDE.md (or AGENTS.md): a short digest of what the code base taught.

Only the bytes between our two markers are ever changed; where the markers are damaged, nothing is.
The block goes to CLAUDE.md, or to AGENTS.md where CLAUDE.md is missing or only points there.  Only
measured or approved patterns get in, as harmless lines.  Lines that are there already stay unless
their pattern is known to be lost: they may come from another machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path

from ralphloop.atomic import write_atomic
from ralphloop.config.model import MemoryFile
from ralphloop.learning.caution import plain_line
from ralphloop.learning.model import Index, Pattern
from ralphloop.room import open_regular

BEGIN = b"<!-- ralph learned: begin (this block is rewritten; see `ralph learnings`) -->"
END = b"<!-- ralph learned: end -->"
_MARK = re.compile(rb"<!-- ralph learned: (?:begin|end)\b")
_LARGEST = 1 << 20
_POINTER = 400  # characters: a file that says more than "see AGENTS.md" stands for itself
_MOST = 12
_ID = re.compile(r"\[([0-9a-f]{8})\]$")
_CHARACTERS = 2_400
_HEADING = "## Codebase patterns\n\nObserved in two stories or more, or approved by a person:\n"


def target(root: Path, setting: MemoryFile) -> Path | None:
    """The file that carries the block; None where there is to be none."""
    claude, agents = root / "CLAUDE.md", root / "AGENTS.md"
    if setting is MemoryFile.OFF:
        return None
    if setting is MemoryFile.AUTO:
        has_claude = claude.exists() and not _points_to_agents(claude)
        return agents if agents.exists() and not has_claude else claude
    return claude if setting is MemoryFile.CLAUDE else agents


def publish(
    root: Path, index: Index, setting: MemoryFile, lost: AbstractSet[str] = frozenset()
) -> list[str]:
    """Bring the block up to date; returns what was done, in words."""
    path = target(root, setting)
    if path is None:
        return []
    before = _read(path)
    if before is None:
        return [f"{path.name} was left alone: it cannot be read, or is too large"]
    after = with_block(before, render(index.patterns, _block(before), lost))
    if after is None:
        return [f"{path.name} was left alone: the markers of its learned block are damaged"]
    if after == before:
        return []
    write_atomic(path, after, within=root)
    return [f"updated the learned block in {path.name}"]


def render(
    patterns: Iterable[Pattern], before: str = "", lost: AbstractSet[str] = frozenset()
) -> bytes:
    """The block's text with what stood there before; empty where there is nothing to say."""
    fit = {one.id: one for one in patterns if one.is_published}
    there = {_id_in(line): line for line in before.splitlines() if line.startswith("- ")}
    lines = {key: line for key, line in there.items() if key not in lost and key not in fit}
    room = _CHARACTERS - sum(map(len, lines.values()))
    for pattern in fit.values():
        line = f"- {plain_line(pattern.sentence, 400)} [{pattern.id}]"
        if len(line) < room and len(lines) < _MOST:
            lines[pattern.id] = line
            room -= len(line)
    ordered = {key: lines.pop(key) for key in there if key in lines} | lines
    text = "\n".join((_HEADING, *ordered.values(), "")) if ordered else ""
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
        gap = b"" if not text else newline if text.endswith(b"\n") else newline * 2
        return text + gap + made
    start, end = text.find(BEGIN), text.find(END)
    if marks != 2 or start < 0 or end < start:
        return None
    after = end + len(END)
    after += len(newline) if text.startswith(newline, after) else 0
    return text[:start] + made + text[after:]


def block_read_by(root: Path, setting: MemoryFile, agent: str) -> str:
    """The block as far as this agent loads the file it stands in."""
    path = target(root, setting)
    if path is None or not _loads(agent, path, root):
        return ""
    return _block(_read(path) or b"")


def _block(text: bytes) -> str:
    start, end = text.find(BEGIN), text.find(END)
    return text[start:end].decode("utf-8", "surrogateescape") if 0 <= start < end else ""


def _id_in(line: str) -> str:
    """The pattern a line is about; a line that names none is its own."""
    found = _ID.search(line)
    return found[1] if found else line


def _loads(agent: str, path: Path, root: Path) -> bool:
    if agent == "claude":
        return path.name == "CLAUDE.md" or (root / "CLAUDE.md").exists()
    return agent in ("codex", "opencode") and path.name == "AGENTS.md"


def _points_to_agents(claude: Path) -> bool:
    """True for a link to AGENTS.md, or a file that says nothing but to read it."""
    if claude.is_symlink() and claude.resolve().name == "AGENTS.md":
        return True
    text = (_read(claude) or b"").strip()
    return len(text) <= _POINTER and b"AGENTS.md" in text and BEGIN not in text


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
