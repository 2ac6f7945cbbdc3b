"""The managed block: only the bytes between the markers are ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.config.model import MemoryFile
from ralphloop.learning.model import Index
from ralphloop.learning.publish import (
    BEGIN,
    END,
    memory_file,
    publish_block,
    render_block,
    with_block,
)
from tests.learning.support import index_of, learning, measured

TEXT = "dates are parsed once in lib/when.py"
TAUGHT = index_of(learning("US-1", measured(TEXT)), learning("US-2", measured(TEXT)))
BLOCK = render_block(TAUGHT.patterns, "", ())
OUTSIDE = st.binary(max_size=200).filter(lambda data: b"ralph learned" not in data)


def published(
    root: Path,
    index: Index = TAUGHT,
    setting: MemoryFile = "auto",
    lost: frozenset[str] | set[str] = frozenset(),
    agent: str = "command",
) -> list[str]:
    """The block brought up to date where this agent reads it."""
    return publish_block(root, index.patterns, memory_file(root, setting, agent), lost)


@given(OUTSIDE, OUTSIDE)
def test_PRD_phase0_everything_outside_is_kept_byte_for_byte(before: bytes, after: bytes) -> None:
    """Any bytes around the block, UTF-8 or not, survive its making, renewal and removal."""
    made = with_block(before, BLOCK)
    assert made is not None
    assert made.startswith(before)
    whole = made + after
    renewed = with_block(whole, b"another\n")
    assert renewed is not None
    assert renewed.startswith(before)
    assert renewed.endswith(after)
    removed = with_block(renewed, b"")
    assert removed is not None
    assert BEGIN not in removed
    assert removed.startswith(before)
    assert removed.endswith(after)
    assert len(removed) <= len(before) + len(after) + 4


@given(OUTSIDE)
def test_the_same_block_again_changes_nothing(before: bytes) -> None:
    """Bringing it up to date twice writes the same bytes."""
    once = with_block(before, BLOCK)
    assert once is not None
    assert with_block(once, BLOCK) == once


def test_line_ends_are_the_files_own() -> None:
    """A file with CRLF gets a block with CRLF."""
    made = with_block(b"# Rules\r\n", BLOCK)
    assert made is not None
    assert made.count(b"\n") == made.count(b"\r\n")


@pytest.mark.parametrize(
    "text",
    [BEGIN, END, END + b"\n" + BEGIN, BEGIN + BEGIN + END, BEGIN + b"x" + END + b"\n" + END],
)
def test_damaged_markers_are_left_alone(text: bytes, tmp_path: Path) -> None:
    """Where it is not clear what is ours, nothing is touched and somebody is told."""
    path = tmp_path / "CLAUDE.md"
    path.write_bytes(text)
    (words,) = published(tmp_path)
    assert "damaged" in words
    assert path.read_bytes() == text


@pytest.mark.parametrize(
    "files, target",
    [
        ({}, "CLAUDE.md"),
        ({"CLAUDE.md": "# Rules\n"}, "CLAUDE.md"),
        ({"CLAUDE.md": "# Rules\n", "AGENTS.md": "# Rules\n"}, "CLAUDE.md"),
        ({"CLAUDE.md": "@AGENTS.md\n", "AGENTS.md": "# Rules\n"}, "AGENTS.md"),
        ({"CLAUDE.md": "Please read AGENTS.md.\n", "AGENTS.md": ""}, "AGENTS.md"),
        ({"CLAUDE.md": "See AGENTS.md\n" + "rule\n" * 200, "AGENTS.md": ""}, "CLAUDE.md"),
        ({"AGENTS.md": "# Rules\n"}, "AGENTS.md"),
    ],
)
def test_PRD_phase0_the_block_goes_where_agents_look(
    files: dict[str, str], target: str, tmp_path: Path
) -> None:
    """CLAUDE.md, or AGENTS.md where CLAUDE.md is missing or only points there."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    published(tmp_path)
    assert TEXT in (tmp_path / target).read_text()
    others = {"CLAUDE.md", "AGENTS.md"} - {target}
    assert all((tmp_path / name).read_text() == files[name] for name in others & files.keys())
    assert {path.name for path in tmp_path.iterdir()} == {target, *files}


@pytest.mark.parametrize(
    "agent, target",
    [
        ("claude", "CLAUDE.md"),
        ("codex", "AGENTS.md"),
        ("opencode", "AGENTS.md"),
        ("gemini", "GEMINI.md"),
        ("command", "CLAUDE.md"),
    ],
)
def test_each_agent_has_its_own_file(agent: str, target: str, tmp_path: Path) -> None:
    """What Codex or Gemini never read is not written for them."""
    for name in ("CLAUDE.md", "AGENTS.md", "GEMINI.md"):
        (tmp_path / name).write_text("# Rules\n")
    published(tmp_path, agent=agent)
    assert [path.name for path in tmp_path.iterdir() if TEXT in path.read_text()] == [target]


def test_a_link_to_agents_md_is_followed(tmp_path: Path) -> None:
    """CLAUDE.md as a link to AGENTS.md stays a link."""
    (tmp_path / "AGENTS.md").write_text("# Rules\n")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    published(tmp_path)
    assert (tmp_path / "CLAUDE.md").is_symlink()
    assert TEXT in (tmp_path / "AGENTS.md").read_text()


def test_it_can_be_switched_off_or_directed(tmp_path: Path) -> None:
    """Opting out writes nothing; naming a file decides."""
    assert published(tmp_path, setting="off") == []
    assert list(tmp_path.iterdir()) == []
    published(tmp_path, setting="AGENTS.md")
    assert [path.name for path in tmp_path.iterdir()] == ["AGENTS.md"]


def test_nothing_learned_makes_no_file(tmp_path: Path) -> None:
    """Words of one story, or none at all, are no digest; what is gone leaves the block."""
    assert published(tmp_path, index_of(learning("US-1", TEXT))) == []
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "CLAUDE.md").write_text("# Rules\n")
    published(tmp_path)
    lost = {one.id for one in TAUGHT.patterns}
    published(tmp_path, Index(), lost=lost)
    assert (tmp_path / "CLAUDE.md").read_text() == "# Rules\n\n"


def test_lines_of_others_stay_where_they_are() -> None:
    """What another machine published keeps its place and words; ours are brought up to date."""
    theirs = "- the cache is cold after a restart [0123abcd]"
    before = f"- an old wording [{TAUGHT.patterns[0].id}]\n{theirs}\n- by hand\n"
    lines = render_block(TAUGHT.patterns, before, ()).decode().splitlines()[4:]
    assert lines == [f"- {TEXT} [{TAUGHT.patterns[0].id}]", theirs, "- by hand"]
    assert theirs.encode() not in render_block(TAUGHT.patterns, before, {"0123abcd"})


def test_it_is_short(tmp_path: Path) -> None:
    """Every session loads it, so a hundred patterns become a few lines."""
    texts = [
        measured(f"{'rule ' * 10} about thing{n} and place{n} and time{n}") for n in range(100)
    ]
    index = index_of(learning("US-1", *texts), learning("US-2", *texts))
    assert len(index.patterns) == 100
    block = render_block(index.patterns, "", ())
    assert len(block) < 3_000


@pytest.mark.parametrize("kind", ["directory", "large", "link"])
def test_odd_files_are_left_alone(kind: str, tmp_path: Path) -> None:
    """A directory, a huge file or a link out of the project is nothing to write to."""
    root = tmp_path / "project"
    root.mkdir()
    path, outside = root / "CLAUDE.md", tmp_path / "outside.md"
    outside.write_text("elsewhere")
    if kind == "directory":
        path.mkdir()
    elif kind == "large":
        path.write_bytes(b"x" * (1 << 20) + b"y")
    else:
        path.symlink_to(outside)
    try:
        words = published(root)
    except Exception as error:  # noqa: BLE001 - the caller turns it into words
        words = [str(error)]
    assert words
    assert outside.read_text() == "elsewhere"
    assert "updated" not in words[0]
