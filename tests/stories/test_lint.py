"""What a story list is likely to be missing: found where it is, and not cried where it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RunRalph

GOOD: dict[str, Any] = {
    "id": "US-1",
    "title": "Greet in French",
    "description": "Visitors from Lyon are greeted in their own language.",
    "acceptanceCriteria": ["`greet --lang fr` prints Bonjour", "an unknown language exits 64"],
    "passes": False,
}
CLEAN = [
    "The list is sorted by date",
    "Typecheck passes",
    "GET /health returns 200 within 100 ms",
    "Clicking Save stores the form and shows a toast",
    "Works as expected in Firefox: test_firefox.py passes",
    "A file that is too large is rejected with an error that names the limit",
    "The old command is removed from --help",
    "Tests cover empty and invalid input",
]
VAGUE = [
    "It works well",
    "The code is robust",
    "Should be user-friendly and intuitive",
    "Handles edge cases properly",
    "Looks modern, nice, etc.",
    "ok",
    "Everything behaves as expected",
]


def check(
    run_ralph: RunRalph, root: Path, *stories: dict[str, Any], **more: Any
) -> tuple[int, list[str]]:
    """What `ralph stories check` ends with and says."""
    (root / "prd.json").write_text(json.dumps({"userStories": list(stories), **more}))
    done = run_ralph("stories", "check", "--json", cwd=root)
    return done.returncode, [f"{one['story']}: {one['words']}" for one in json.loads(done.stdout)]


@pytest.mark.parametrize("criterion", CLEAN)
def test_what_can_be_seen_is_no_remark(tmp_path: Path, run_ralph: RunRalph, criterion: str) -> None:
    """A linter that cries wolf is switched off."""
    story = GOOD | {"acceptanceCriteria": [criterion]}
    assert check(run_ralph, tmp_path, story) == (0, [])


@pytest.mark.parametrize("criterion", VAGUE)
def test_what_nobody_can_check_is_named(
    tmp_path: Path, run_ralph: RunRalph, criterion: str
) -> None:
    """Each with the words that make it so."""
    code, found = check(run_ralph, tmp_path, GOOD | {"acceptanceCriteria": [criterion]})
    assert code == 1
    assert "cannot be checked" in found[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"acceptanceCritera": ["x"]}, '"acceptanceCritera" is not read'),
        ({"dependOn": ["US-0"]}, '"dependOn" is not read'),
        ({"acceptanceCriteria": []}, "has no acceptance criteria"),
        ({"acceptanceCriteria": [f"`cmd {n}` prints {n}" for n in range(13)]}, "has 13 acceptance"),
        ({"title": "Add the login page and implement password reset"}, "is two stories"),
        ({"description": "Do this after the above is finished."}, "leans on another story"),
        ({"description": "x " * 2000}, "has a description of 4,000 characters"),
    ],
)
def test_each_kind_of_trouble_is_found(
    tmp_path: Path, run_ralph: RunRalph, changes: dict[str, Any], words: str
) -> None:
    """One story, one mistake, one remark."""
    code, found = check(run_ralph, tmp_path, GOOD | changes)
    assert code == 1
    assert len(found) == 1
    assert words in found[0]


def test_what_has_passed_and_keys_of_others_are_left_alone(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Somebody else's bookkeeping is no mistake, and what is done is done."""
    done = GOOD | {"id": "US-2", "acceptanceCriteria": [], "passes": True}
    own = GOOD | {"_mine": 1, "x-team": "red", "storypoints_total": 3}
    assert check(run_ralph, tmp_path, own, done, sprint=4) == (0, [])


def test_the_schema_knows_what_is_read(run_ralph: RunRalph, tmp_path: Path) -> None:
    """Every key of a story that the reader knows in its first spelling stands in the schema."""
    schema = json.loads(run_ralph("stories", "schema", cwd=tmp_path).stdout)
    known = schema["$defs"]["story"]["properties"].keys()
    assert {"id", "title", "description", "acceptanceCriteria", "priority", "passes", "notes",
            "dependsOn", "verify", "parent_spec"} <= known  # fmt: skip
