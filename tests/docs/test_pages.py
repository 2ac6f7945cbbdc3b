"""What the documents say to type does what they say: every page, command by command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ralphloop.config.load import check_config
from ralphloop.stories.lint import remarks
from ralphloop.stories.shapes import Problems, find_list
from ralphloop.stories.source import load
from tests.docs import rooms
from tests.docs.pages import ROOT, Command, Shell, blocks, commands, file_in

GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
PAGES = [ROOT / "README.md", *GUIDES, *sorted((ROOT / "docs" / "reference").glob("*.md"))]
# How a page's reader got there.
BEGINNINGS: dict[str, Callable[[Shell], None]] = {
    "README.md": rooms.in_project,
    "first-night.md": rooms.nothing,
    "the-morning.md": rooms.a_night,
    "morning-report.md": rooms.a_night,
    "agents.md": rooms.one_story,
    "coming-from-other-loops.md": rooms.with_stories,
    "safety.md": rooms.one_story,
    "stories.md": rooms.with_stories,
    "troubleshooting.md": rooms.one_story,
}
UNTIL_IT_ENDS = 'while ralph status --json | grep -q \'"state": "running"\'; do sleep 0.2; done'
OTHER_TOML = re.compile(
    r"(# agents\.d/.*\n)?name = |(# prices\.toml\n)?\[models\]"
)  # agents, prices
SHELLS = {"", "sh", "bash", "shell", "zsh"}


def typed(page: Path) -> str:
    """All blocks of a page that are typed."""
    return "".join(text for language, text in blocks(page) if language == "console")


@pytest.mark.timeout(600)  # some pages have twenty commands, and machines are busy
@pytest.mark.parametrize("page", [it for it in PAGES if typed(it)], ids=lambda it: str(it.name))
def test_what_a_page_says_to_type_works(page: Path, tmp_path: Path) -> None:
    """Every command of it, in order, in a fresh place, with the result that is shown."""
    room = rooms.shell(tmp_path)
    BEGINNINGS.get(page.name, rooms.set_up)(room)
    for language, text in blocks(page):
        if name := file_in(text):
            room.save(name, text)
        for command in commands(text) if language == "console" else ():
            code, said = room.run(command)
            assert code == command.code, f"$ {command.typed}\n{said}"
            shown = "\n".join(command.shown)
            assert command.agrees(said), f"$ {command.typed}\n{said}\n--- shown is:\n{shown}"
    room.run(Command(UNTIL_IT_ENDS))


@pytest.mark.parametrize("page", PAGES, ids=lambda it: str(it.name))
def test_a_block_that_is_not_run_says_so(page: Path) -> None:
    """Commands are `console` (run by these tests) or `text`; a script that is shown begins as one."""
    for language, text in blocks(page):
        assert language not in SHELLS or text.startswith("#!"), text
        assert language == "console" or not re.search(r"^\$ ", text, re.M), text


@pytest.mark.parametrize("name", ["first-night.md", "the-morning.md"])
def test_the_keystrokes_that_a_guide_promises_are_those_it_shows(name: str) -> None:
    """The number stands before the block whose keys it counts, answers and Enter included."""
    text = (ROOT / "docs" / "guides" / name).read_text(encoding="utf-8")
    told = re.findall(r"\*\*(\d+) keystrokes\*\*.*?^```console\n(.*?)^```", text, re.M | re.S)
    assert told
    assert [int(number) for number, _ in told] == [
        sum(command.keystrokes for command in commands(block)) for _, block in told
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda it: str(it.name))
def test_settings_and_stories_that_are_shown_can_be_used(page: Path, tmp_path: Path) -> None:
    """Who copies a piece of ralph.toml or a story list from a page gets no error, and no remark."""
    for language, text in blocks(page):
        if language == "toml" and not OTHER_TOML.match(text):
            (tmp_path / "ralph.toml").write_text(text, encoding="utf-8")
            assert not check_config(tmp_path, env={})[1], text
        if language == "json" and '"userStories"' in text:
            path = tmp_path / "prd.json"
            path.write_text(text, encoding="utf-8")
            listing = find_list(json.loads(text), Problems(path))
            assert list(remarks(load(path).list, listing)) == []
