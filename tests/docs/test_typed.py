"""What the pages have a reader type can be typed into the shells that readers have."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, commands

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_INLINE = re.compile(r"`((?:ralph|git|pipx|uv|npm|pytest|make) [^`\n]+)`")


def typed(page: Path) -> list[str]:
    """Every command that a reader may type, or copy, from a page; scripts are no such thing."""
    found = []
    for language, text in blocks(page):
        if language == "console":
            found += [command.typed for command in commands(text)]
        if language in ("sh", "bash") and not text.startswith("#!"):
            found += text.splitlines()
    return found + _INLINE.findall(page.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_command_of_a_page_asks_for_history(page: Path) -> None:
    """In bash and zsh a `!` is replaced by what was typed before, also in double quotes."""
    assert [line for line in typed(page) if "!" in line] == []


def test_pages_have_commands() -> None:
    """The rule above has something to hold."""
    assert sum(len(typed(page)) for page in PAGES) > 150


def test_a_shell_that_keeps_a_history_takes_the_first_commands(tmp_path: Path) -> None:
    """Bash with history expansion, as on a terminal, reads each line of the README as it stands."""
    lines = [line for line in typed(ROOT / "README.md") if line.startswith("ralph stories add")]
    assert lines
    for line in lines:
        said = f"set -o history -o histexpand\nralph() {{ printf '%s\\n' \"$*\"; }}\n{line}\n"
        done = subprocess.run(
            ["bash", "--norc", "--noprofile", "-i"],
            input=said,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "event not found" not in done.stderr
        assert "stories add" in done.stdout
