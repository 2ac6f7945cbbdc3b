"""`ralph stories`: the whole list, in the order it runs, with what became of each."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from ralphloop.core.run_state import Standing
from tests.cli.nights import RUN, Night
from tests.conftest import RunRalph

STORIES = [
    {"id": "A", "title": "Apples", "priority": 2, "passes": False},
    {"id": "B", "title": "Bread", "priority": 1, "passes": False, "dependsOn": ["A"]},
    {"id": "C", "title": "Cheese", "priority": 1, "passes": False},
    {"id": "D", "title": "Dates", "priority": 3, "passes": True},
    {"id": "E", "title": "Eggs", "priority": 4, "passes": True},
]


def listed(run_ralph: RunRalph, root: Path) -> list[dict[str, Any]]:
    """The stories of `ralph stories --json`."""
    done = run_ralph("stories", "--json", cwd=root)
    assert done.returncode == 0, done.stderr
    stories: list[dict[str, Any]] = json.loads(done.stdout)["stories"]
    return stories


def write(root: Path, stories: list[dict[str, Any]]) -> None:
    """Put a story list there."""
    (root / "prd.json").write_text(json.dumps({"userStories": stories}))


def test_stories_come_in_the_order_they_run(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Dependencies first, then priority; each with its number and its reason."""
    write(tmp_path, STORIES)
    stories = listed(run_ralph, tmp_path)
    assert [(s["id"], s["order"]) for s in stories] == [
        ("C", 1), ("A", 2), ("B", 3), ("D", None), ("E", None),
    ]  # fmt: skip
    assert stories[2]["why"] == "priority 1, after A"
    out = run_ralph("stories", cwd=tmp_path).stdout
    assert out.startswith("  1  C: Cheese\n     open: priority 1\n  2  A: Apples\n")
    assert "2 of 5 stories passed, $0.00, from prd.json" in out


def test_what_became_of_each_is_told(tmp_path: Path, run_ralph: RunRalph) -> None:
    """State, grade, attempts, iterations, cost and reason come from the journal."""
    night = Night(tmp_path).begin()
    write(tmp_path, STORIES)
    night.story("D", standing=Standing.PASSED, grade="verified", reason="tests were added",
                iterations=2, cost_usd=1.25)  # fmt: skip
    night.story("A", attempts=1, iterations=2, cost_usd=0.5, reason="pytest failed")
    stories = {s["id"]: s for s in listed(run_ralph, tmp_path)}
    assert stories["D"]["grade"] == "verified"
    assert stories["E"]["grade"] == "by hand"
    assert (stories["A"]["attempts"], stories["A"]["reason"]) == (1, "pytest failed")
    out = " ".join(run_ralph("stories", cwd=tmp_path).stdout.split())
    assert "D: Dates passed (verified), 2 iterations, $1.25: tests were added" in out
    assert "E: Eggs passed (by hand): marked by a person" in out
    assert "A: Apples open, 2 iterations, 1 failed attempt, $0.50: priority 2" in out
    assert "passed, $1.75, from" in out


def test_a_story_that_waits_for_a_person_says_for_what(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A blocked story shows its question; what depends on it waits for it."""
    night = Night(tmp_path).begin()
    write(tmp_path, STORIES)
    night.story("A", standing=Standing.BLOCKED, reason="Which database?")
    stories = {s["id"]: s for s in listed(run_ralph, tmp_path)}
    assert stories["A"]["state"] == "blocked"
    assert stories["A"]["why"] == "waits for a person: Which database?"
    assert (stories["B"]["order"], stories["B"]["why"]) == (None, "waits for A")


def test_leftovers_of_a_story_set_aside_can_be_brought_back(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """The printed command, as it stands, puts the saved work into the work tree."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "-q")
    (tmp_path / "base.txt").write_text("base\n")
    git("add", "base.txt")
    git("commit", "-qm", "base")
    (tmp_path / "half.txt").write_text("half done\n")
    git("add", "half.txt")
    git("commit", "-qm", "leftovers")
    ref = f"refs/ralph/set-aside/{RUN}/7"
    git("update-ref", ref, "HEAD")
    git("reset", "-q", "--hard", "HEAD~1")
    night = Night(tmp_path).begin()
    write(tmp_path, STORIES)
    night.story(
        "C", standing=Standing.SET_ASIDE, attempts=3, reason="3 attempts failed", saved_ref=ref
    )
    story = next(s for s in listed(run_ralph, tmp_path) if s["id"] == "C")
    assert story["state"] == "set_aside"
    assert story["why"].endswith("one more chance when all else is done")
    command = story["bring_back"]
    assert f"`{command}`" in run_ralph("stories", cwd=tmp_path).stdout
    assert not (tmp_path / "half.txt").exists()
    subprocess.run(command.split(), cwd=tmp_path, check=True)
    assert (tmp_path / "half.txt").read_text() == "half done\n"


def test_a_second_chance_that_was_given_is_not_promised(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """A story that had its second chance stays aside."""
    night = Night(tmp_path).begin()
    night.story("S-1", standing=Standing.SET_ASIDE, second_chance=True, reason="stuck")
    why = next(s["why"] for s in listed(run_ralph, tmp_path) if s["id"] == "S-1")
    assert why == "set aside: stuck"


def test_a_mark_taken_away_by_hand_opens_the_story(tmp_path: Path, run_ralph: RunRalph) -> None:
    """The file has the last word on what passed."""
    night = Night(tmp_path).begin()
    night.story("S-1", standing=Standing.PASSED, grade="verified")
    story = next(s for s in listed(run_ralph, tmp_path) if s["id"] == "S-1")
    assert (story["state"], story["grade"], story["order"]) == ("open", None, 1)


def test_without_stories_it_is_65_with_the_way_out(tmp_path: Path, run_ralph: RunRalph) -> None:
    """No list, and a broken one, are errors with their place and a next step."""
    done = run_ralph("stories", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (65, "")
    assert "ralph init" in done.stderr
    (tmp_path / "prd.json").write_text('{"userStories": [{"id": 1.5}]}')
    done = run_ralph("stories", cwd=tmp_path)
    assert done.returncode == 65
    assert "userStories[0]" in done.stderr


def test_after_a_plain_loop_there_is_nothing_to_list(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A run without stories is named as such."""
    Night(tmp_path).begin(prd="")
    done = run_ralph("stories", cwd=tmp_path)
    assert done.returncode == 65
    assert "plain loop" in done.stderr


def test_hostile_titles_are_shown_as_text(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Escape sequences and line breaks in ids and titles change nothing on the screen."""
    evil = "\x1b[2J\x07\n  9  FAKE: passed"
    write(tmp_path, [{"id": evil, "title": evil * 50, "passes": False}])
    out = run_ralph("stories", cwd=tmp_path).stdout
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "\n  9  FAKE" not in out
    assert max(map(len, out.splitlines())) <= 100


def test_ten_thousand_stories_are_listed_at_once(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A long list is printed whole."""
    write(tmp_path, [{"id": f"S{n}", "title": "x", "passes": n % 2 == 0} for n in range(10_000)])
    assert len(listed(run_ralph, tmp_path)) == 10_000
