"""Lists of other tools and of people become stories without any model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.errors import RalphError
from ralphloop.plan.convert import convert
from tests.conftest import RunRalph
from tests.plan.projects import Json, listed

FIX_PLAN = """\
# Fix Plan: Shop

## High Priority
- [ ] Store orders in SQLite
  - `shop orders` lists what was stored
  - [ ] tests/test_store.py passes
- [x] Set up the repository

## Medium Priority
* [ ] SHOP-12: Export orders as CSV

```
- [ ] not this one
```

## Completed
- [ ] Something old

## Notes
- Focus on MVP first
"""
PRD = """\
# PRD: Notes

Notes for people who forget.

## Goals
- keep notes

## User Stories

### US-001: Store notes
**Description:** As a user I want my notes kept.

**Acceptance Criteria:**
- [ ] `notes add x` writes x to notes.db
- [x] Typecheck passes

### US-002: List notes
As a user I want to see them.
**Depends on:** US-001
**Priority:** 2
**Verify:** `pytest -q tests/test_list.py`

#### Acceptance Criteria
1. `notes list` prints one line per note

### **US-003** - Search notes
**Status:** done

### Story 4: Delete notes
- Depends on: US-001, US-002
- `notes rm 1` removes the first note

## Non-Goals
- [ ] Sync
"""


def line_of(entry: Json) -> int:
    """The line that a story came from, which is then taken out."""
    return int(entry.pop("source")["line"])


def test_a_checklist_becomes_stories() -> None:
    """Open items in order, what stands below one is its criteria, sections give the priority."""
    found = convert(FIX_PLAN, "fix_plan.md")
    assert found is not None
    assert [line_of(one) for one in found.entries] == [4, 10]
    assert found.entries == [
        {
            "title": "Store orders in SQLite",
            "acceptanceCriteria": ["`shop orders` lists what was stored", "tests/test_store.py passes"],
            "priority": 1,
        },
        {"id": "SHOP-12", "title": "Export orders as CSV", "priority": 2},
    ]  # fmt: skip
    assert (found.kind, found.done, found.project) == ("checklist", 2, "Fix Plan: Shop")


def test_headings_become_stories() -> None:
    """Labels say what belongs where; what is done there is left out, other sections are not read."""
    found = convert(PRD, "prd.md")
    assert found is not None
    assert (found.kind, found.done, found.project) == ("headings", 1, "Notes")
    assert found.description == "Notes for people who forget."
    assert [line_of(one) for one in found.entries] == [10, 17, 29]
    assert found.entries == [
        {
            "id": "US-001",
            "title": "Store notes",
            "description": "As a user I want my notes kept.",
            "acceptanceCriteria": ["`notes add x` writes x to notes.db", "Typecheck passes"],
        },
        {
            "id": "US-002",
            "title": "List notes",
            "description": "As a user I want to see them.",
            "acceptanceCriteria": ["`notes list` prints one line per note"],
            "priority": 2,
            "dependsOn": ["US-001"],
            "verify": ["pytest", "-q", "tests/test_list.py"],
        },
        {
            "id": "Story 4",
            "title": "Delete notes",
            "acceptanceCriteria": ["`notes rm 1` removes the first note"],
            "dependsOn": ["US-001", "US-002"],
        },
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prd.json", json.dumps({"project": "P", "branchName": "ralph/x", "userStories": [
            {"id": "US-001", "title": "One", "acceptanceCriteria": ["Typecheck passes"],
             "priority": 1, "passes": True, "notes": ""},
            {"id": "US-002", "title": "Two", "acceptanceCriteria": ["Typecheck passes"],
             "priority": 2, "passes": False, "notes": "", "dependsOn": ["US-001"]}]})),
        ("tui.json", json.dumps({"name": "P", "metadata": {"version": "1"}, "userStories": [
            {"id": "US-002", "title": "Two", "acceptanceCriteria": ["Typecheck passes"],
             "priority": 2, "passes": False, "labels": ["ui"]}]})),
        ("tasks.yaml", "project: P\ntasks:\n  - id: US-002\n    title: Two\n    priority: 2\n"
                       "    acceptanceCriteria: [Typecheck passes]\n    exit_signal: true\n"),
        ("nested.json", json.dumps({"project": "P", "userStories": [
            {"id": "US-002", "title": "Two", "status": "pending", "priority": 2,
             "acceptanceCriteria": [{"description": "Typecheck passes", "done": False}]}]})),
    ],
)  # fmt: skip
def test_story_files_of_other_tools_are_read(name: str, text: str) -> None:
    """Whatever their shape, the same open story comes out, and passed ones are no dependency."""
    found = convert(text, name)
    assert found is not None
    (entry,) = found.entries
    entry.pop("labels", None)  # kept, as all that nobody reads
    if name.endswith(".json"):
        assert entry.pop("source") == {
            "file": name,
            "line": 1,
            "format": "story file",
            "item": "US-002",
        }
    assert entry == {
        "id": "US-002", "title": "Two", "acceptanceCriteria": ["Typecheck passes"], "priority": 2
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "Let people export their notes as CSV.",
        "# Idea\n\nWe want a shop. It sells things.\n\nAnd it has orders.\n\n- [ ] ask legal\n",
        "# Title\n\n## Goals\n\n- fast\n- small\n",
    ],
)
def test_prose_is_left_to_an_agent(text: str) -> None:
    """A few boxes in a text do not make it a list."""
    assert convert(text, "idea.md") is None


@given(
    st.text(alphabet=" -*[]xX#\n:`US-0123ab\t", max_size=400),
    st.sampled_from(["a.md", "a.json", ""]),
)
def test_whatever_is_in_a_text_it_is_read_or_refused(text: str, name: str) -> None:
    """A document of any kind ends in stories, in None, or in an error of ours."""
    try:
        found = convert(text, name)
    except RalphError:
        return
    assert found is None or all(str(entry["title"]).strip() for entry in found.entries)


# --- through the front door ----------------------------------------------------------------------


def plan(run_ralph: RunRalph, root: Path, *arguments: str, code: int = 0, stdin: str = "") -> str:
    """What `ralph plan` says on both streams."""
    done = run_ralph("plan", *arguments, cwd=root, stdin=stdin)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_converted_list_is_shown_and_written(tmp_path: Path, run_ralph: RunRalph) -> None:
    """With --yes; ids that nobody gave are the next ones, and nothing has passed."""
    (tmp_path / "fix_plan.md").write_text(FIX_PLAN)
    said = plan(run_ralph, tmp_path, "fix_plan.md", "--yes")
    assert "2 stories written to prd.json." in said
    assert "2 stories marked as done there: left out" in said
    assert [(one["id"], one["passes"]) for one in listed(tmp_path)] == [
        ("SHOP-13", False), ("SHOP-12", False),
    ]  # fmt: skip


def test_planning_twice_adds_nothing_and_a_taken_id_moves_on(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """The list that is there keeps every byte; new stories stand behind, with ids of their own."""
    (tmp_path / "prd.md").write_text(PRD)
    own = '{"mine": 1.50, "userStories": [{"id":"US-001","title":"Own","passes":true}]}\n'
    (tmp_path / "prd.json").write_text(own)
    said = plan(run_ralph, tmp_path, "prd.md", "--yes")
    assert "US-001 is taken: it becomes US-003" in said
    text = (tmp_path / "prd.json").read_text()
    assert text.startswith(own[: own.index("]")])
    ids = {one["title"]: (one["id"], one.get("dependsOn")) for one in listed(tmp_path)}
    assert ids["Store notes"] == ("US-003", None)
    assert ids["List notes"] == ("US-002", ["US-003"])
    assert ids["Delete notes"] == ("US-004", ["US-003", "US-002"])
    assert "There is nothing to add." in plan(run_ralph, tmp_path, "prd.md", "--yes")
    assert (tmp_path / "prd.json").read_text() == text


def test_replace_begins_anew_and_keeps_the_old_list(tmp_path: Path, run_ralph: RunRalph) -> None:
    """What it says of the project stays; the whole file before is in .ralph/plan."""
    own = '{"project": "Own", "userStories": [{"id": "US-009", "title": "Own"}]}\n'
    (tmp_path / "prd.json").write_text(own)
    plan(run_ralph, tmp_path, "-", "--replace", "--yes", stdin="- [ ] New\n  - `x` prints 1\n")
    assert [one["title"] for one in listed(tmp_path)] == ["New"]
    assert json.loads((tmp_path / "prd.json").read_text())["project"] == "Own"
    (kept,) = (tmp_path / ".ralph" / "plan").glob("prd-*.json")
    assert kept.read_text() == own


def test_the_sample_of_init_makes_room(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Nobody wants its two stories beside their own."""
    assert run_ralph("init", "--yes", "--agent", "scripted", cwd=tmp_path).returncode == 0
    plan(run_ralph, tmp_path, "-", "--yes", stdin="- [ ] New\n  - `x` prints 1\n")
    assert [one["title"] for one in listed(tmp_path)] == ["New"]


@pytest.mark.parametrize("flags", [["--dry-run"], ["--json"], ["--json", "--dry-run"]])
def test_looking_writes_nothing(tmp_path: Path, run_ralph: RunRalph, flags: list[str]) -> None:
    """Neither the list nor a directory of ours."""
    (tmp_path / "fix_plan.md").write_text(FIX_PLAN)
    done = run_ralph("plan", "fix_plan.md", *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["fix_plan.md"]
    if "--json" in flags:
        told: Json = json.loads(done.stdout)
        assert [one["title"] for one in told["stories"]] == [
            "Store orders in SQLite",
            "Export orders as CSV",
        ]
        assert told["written"] is None
        assert "a guess" in told["estimate"]["basis"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("### US-1: A\n- `a` prints\n\n### US-1: B\n- `b` prints\n", "already the id of"),
        ("### US-1: A\nDepends on: US-2\n\n### US-2: B\nDepends on: US-1\n", "in a circle"),
        ("### US-1: A\nDepends on: US-9\n", 'no story has the id "US-9"'),
    ],
)
def test_a_list_that_could_not_be_run_is_refused(
    tmp_path: Path, run_ralph: RunRalph, text: str, words: str
) -> None:
    """The reason is said, and nothing is written."""
    assert words in plan(run_ralph, tmp_path, "-", "--yes", code=65, stdin=text)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 64, "say what to plan"),
        (["missing.md"], 65, "no such file"),
        (["--split", "US-1", "words"], 64, "takes its words from the story"),
        (["an idea"], 64, "nobody can be asked here"),
        (["an idea of many words " * 200], 64, "nobody can be asked here"),
    ],
)
def test_what_cannot_be_planned_says_why(
    tmp_path: Path, run_ralph: RunRalph, arguments: list[str], code: int, words: str
) -> None:
    """With the way out, before anything is spent."""
    assert words in plan(run_ralph, tmp_path, *arguments, code=code).lower()


def test_a_run_over_markdown_says_what_to_do(tmp_path: Path, run_ralph: RunRalph) -> None:
    """`ralph run --prd plan.md` names the command that makes stories of it."""
    (tmp_path / "plan.md").write_text(PRD)
    done = run_ralph("run", "--prd", "plan.md", cwd=tmp_path)
    assert done.returncode == 65
    assert "this is Markdown" in done.stderr
    assert "ralph plan plan.md" in done.stderr
