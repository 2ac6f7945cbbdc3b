"""What to look at, as SARIF: at the file that is named, else at the story."""

from __future__ import annotations

from typing import Any

from ralphloop.ui.report.sarif import StoryPlace, as_sarif
from ralphloop.ui.report.values import Group, StoryLine

PLACE = StoryPlace("app/prd.json", {"US-1": 7})


def story(**more: Any) -> StoryLine:
    """A story that needs a look."""
    known = {"id": "US-1", "title": "Sell", "reason": "", "attempts": 0, "look": "", "proof": ()}
    return StoryLine(**{**known, "bring_back": "", **more})


def results(key: str, *stories: StoryLine) -> list[dict[str, Any]]:
    """The findings of a report with one group."""
    group = Group(key, key, "!", "", len(stories), stories, 0)
    found: Any = as_sarif([group], PLACE, lambda path: path == "src/shop.py")
    return list(found["runs"][0]["results"])


def place_of(result: dict[str, Any]) -> tuple[str, int]:
    """File and line."""
    where = result["locations"][0]["physicalLocation"]
    return where["artifactLocation"]["uri"], where["region"]["startLine"]


def test_a_finding_stands_where_it_says() -> None:
    """At a file of the repository, with its line; a name that is none leads to the story."""
    found = results(
        "review",
        story(
            reason="a test was weakened",
            look_at=("src/shop.py:12 expects 3 instead of 2", "../etc/passwd.txt:3 is gone"),
            doubts=("Is src/shop.py right?",),
        ),
    )
    assert [(one["ruleId"], one["level"], place_of(one)) for one in found] == [
        ("needs-review", "warning", ("app/prd.json", 7)),
        ("look-at", "note", ("src/shop.py", 12)),
        ("look-at", "note", ("app/prd.json", 7)),
        ("doubt", "note", ("src/shop.py", 1)),
    ]


def test_what_is_fine_or_accepted_is_no_finding() -> None:
    """Nobody has to look at it."""
    assert results("verified", story()) == []
    assert results("review", story(accepted=True, look_at=("x",))) == []
