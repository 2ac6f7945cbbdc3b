"""What README and the page of benchmarks say is what the raw results say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.checkpoints import __main__ as checkpoints
from benchmarks.checkpoints.play import Replay
from benchmarks.checkpoints.show import table as checkpoints_table
from benchmarks.nights import __main__ as nights
from benchmarks.nights.show import STORIES, picture, sums_of
from benchmarks.nights.show import table as nights_table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
# How README calls them.
CALLED = {
    "bare loop": "a bare loop",
    "frankbria/ralph-claude-code": "ralph-claude-code",
    "claude /goal": "`/goal`",
}


def _nights() -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(nights.RESULTS.read_text())
    return whole


def _replays() -> list[Replay]:
    return [Replay(**it) for it in json.loads(checkpoints.RESULTS.read_text())["replays"]]


def _verified() -> list[Replay]:
    return [it for it in _replays() if it.grade == "verified" and not it.note]


def _words(path: Path) -> str:
    """A page without its line breaks."""
    return " ".join(path.read_text().split())


def test_the_page_has_the_tables_of_the_results() -> None:
    """`--page` was run after the results were changed."""
    page = PAGE.read_text()
    assert nights_table(_nights()) in page
    assert checkpoints_table(_replays()) in page


def test_the_picture_is_the_one_of_the_results() -> None:
    """It is drawn by the same command."""
    assert (PAGE.parent / "images" / "nights.svg").read_text() == picture(_nights())


@pytest.mark.parametrize("name", [it for it in _nights()["versions"] if it != "ralph"])
def test_readme_quotes_every_other_supervisor(name: str) -> None:
    """How many stories were truly done, and how many falsely called done."""
    sums = sums_of(_nights(), name)
    assert f"{CALLED.get(name, name)} {sums.done} and {sums.false}" in _words(ROOT / "README.md")


def test_readme_and_the_first_lines_of_the_page_quote_ours() -> None:
    """Also what it said of the false ones, and in how many nights a person was told."""
    sums = sums_of(_nights(), "ralph")
    assert sums.admitted == sums.false == 2
    whole = f"ralph had {sums.done} stories truly done and called {sums.false} done that were not"
    assert f"{whole}, both said to be unproven" in _words(ROOT / "README.md")
    first, _, _ = _words(PAGE).partition("## The nights")
    assert (
        f"{sums.done} of {STORIES * sums.nights} stories truly done, {sums.false} called" in first
    )
    assert f"${sums.dollars:.2f}" in first
    assert sums.told == sums.not_whole


def test_the_first_lines_of_the_page_quote_the_others() -> None:
    """The least and the most of them."""
    whole = _nights()
    others = [sums_of(whole, name) for name in whole["versions"] if name != "ralph"]
    first, _, _ = _words(PAGE).partition("## The nights")
    done = [it.done for it in others]
    paid = [it.dollars for it in others]
    assert {it.false for it in others} == {8}
    assert f"{min(done)} to {max(done)}, and 8" in first
    assert f"${min(paid):.0f} to ${max(paid):.0f}" in first


def test_readme_quotes_what_a_grade_is_worth() -> None:
    """Of all that were called `verified`, and of the wrong ones."""
    verified = _verified()
    right = [it for it in verified if it.is_right]
    wrong = [it for it in verified if not it.is_right]
    readme = _words(ROOT / "README.md")
    assert (
        f"Of {len(verified)} `verified` stories in replayed public tasks {len(right)} were"
        in readme
    )
    assert {it.agent for it in wrong} == {"half"}
    assert f"the {len(wrong)} others do half of what was asked" in readme
