"""The lists of other tools, as they lie on disk, become stories with everything they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.errors import RalphError
from ralphloop.plan.convert import FORMATS, Gathered, convert_gathered
from ralphloop.plan.finding import gather
from ralphloop.plan.importers.reading import Conversion, Document
from tests.conftest import RunRalph
from tests.plan.projects import Json, listed

SPEC_TASKS = """\
# Tasks: Recipe box

**Input**: Design documents from `/specs/001-recipes/`

## Phase 1: Setup

- [x] T001 Create the project structure
- [ ] T002 [P] Configure the linter in ruff.toml
- [ ] T003 [P] Configure the type checker in mypy.ini

## Phase 2: Foundational (Blocking Prerequisites)

**Purpose**: What every story needs

- [ ] T004 Create the recipe table in src/store.py

## Phase 3: User Story 1 - Save a recipe (Priority: P1)

**Goal**: A cook keeps a recipe

**Independent Test**: `recipes add soup` and then `recipes list` prints soup

### Tests for User Story 1

- [ ] T005 [P] [US1] Contract test in tests/test_add.py

### Implementation for User Story 1

- [ ] T006 [US1] Write `add` in src/add.py
  - refuses an empty name

## Phase 4: User Story 2 - Share a recipe (Priority: P2)

- [ ] T007 [US2] Write `share` in src/share.py (depends on T004)

## Phase 5: Polish

- [ ] T008 Write the manual
- [ ] Ask the cooks

## Dependencies

- **User Story 2 (Phase 4)**: Depends on US1 (needs a saved recipe)
- T008 depends on T006
"""
SPEC = """\
# Feature Specification: Recipe box

### User Story 1 - Save a recipe (Priority: P1)

**Acceptance Scenarios**:

1. **Given** no recipe, **When** I add soup, **Then** soup is listed
2. **Given** soup, **When** I add soup again, **Then** I am told it is there

### User Story 2 - Share a recipe (Priority: P2)

**Acceptance Scenarios**:

1. **Given** soup, **When** I share it, **Then** a link is printed
"""
CHANGE_TASKS = """\
## 1. Store

- [x] 1.1 Add the table
- [ ] 1.2 Add the query
  - sorted by name

## 2. Screen

- [ ] 2.1 Show the list
- a loose thought
"""
CHANGE_SPEC = """\
## ADDED Requirements

### Requirement: Listing
The system SHALL list recipes.

#### Scenario: Two recipes
- **GIVEN** soup and bread
- **WHEN** the list is shown
- **THEN** bread comes first
- **AND** soup second

## REMOVED Requirements

### Requirement: Printing

#### Scenario: Paper
- **WHEN** printed
- **THEN** paper comes out
"""
KIRO_TASKS = """\
# Implementation Plan

- [ ] 1. Build the store
  - [x] 1.1 Create the table
    - _Requirements: 1.1_
  - [ ] 1.2 Write the query
    - sorted by name
    - _Requirements: 1.2, 2.1, 9.9_
  - [ ]* 1.3 Write property tests
    - _Requirements: 1.1_
- [ ] 2. Show the list
  - _Requirements: 2_
"""
KIRO_REQUIREMENTS = """\
# Requirements Document

### Requirement 1: Keeping

**User Story:** As a cook, I want to keep recipes.

#### Acceptance Criteria

1. WHEN a recipe is added THEN the system SHALL store it
2. WHEN recipes are asked for THEN the system SHALL sort them by name

### Requirement 2: Showing

#### Acceptance Criteria

1. WHEN the list is shown THEN the system SHALL print one line a recipe
2. IF there is none THEN the system SHALL print `nothing`
"""
EPICS = """\
# Recipes - Epic Breakdown

## Epic 1: Keeping

### Story 1.1: Add a recipe

As a cook,
I want to add a recipe,
So that I find it again.

**Acceptance Criteria:**

**Given** no recipe
**When** I run `recipes add soup`
**Then** soup is stored
**And** its name is printed

**Given** soup is there
**When** I add it again
**Then** I am told

**Prerequisites:** None

### Story 1.2: List recipes

**Acceptance Criteria:**

1. `recipes list` prints one line a recipe

**Prerequisites:** Story 1.1

### Story 1.3: Forget a recipe

**Acceptance Criteria:**

- `recipes rm soup` removes it

**Prerequisites:** Story 1.2, a good night's sleep

### Story 1.4: Print a recipe

**Prerequisites:** a printer
"""
STORY_FILE = """\
# Story 1.2: List recipes

Status: ready-for-dev

## Story

As a cook, I want a list.

## Acceptance Criteria

1. `recipes list` prints one line a recipe
2. `recipes list --json` prints JSON

## Tasks / Subtasks

- [ ] Write the query

## Dev Agent Record

Nothing yet.
"""
BACKLOG_TASK = """\
---
id: task-7
title: Export recipes as CSV
status: To Do
assignee: []
labels: [cli]
dependencies: [task-6, task-2, task-99]
priority: high
---

## Description

<!-- SECTION:DESCRIPTION:BEGIN -->
For people with spreadsheets.
<!-- SECTION:DESCRIPTION:END -->

## Acceptance Criteria
<!-- AC:BEGIN -->
- [ ] #1 `recipes export` prints a head line
- [x] #2 One line a recipe
<!-- AC:END -->

## Implementation Plan

Use the csv module.
"""
TASK_MASTER: Json = {
    "master": {
        "tasks": [
            {"id": 1, "title": "Create the store", "status": "done", "dependencies": []},
            {
                "id": 2,
                "title": "Write the commands",
                "description": "All of them.",
                "status": "pending",
                "priority": "high",
                "dependencies": [1],
                "testStrategy": "Run every command once",
                "subtasks": [
                    {"id": 1, "title": "Write add", "status": "done", "dependencies": []},
                    {"id": 2, "title": "Write list", "status": "pending", "dependencies": [1]},
                    {"id": 3, "title": "Write rm", "status": "pending", "dependencies": ["2.2"]},
                ],
            },
            {
                "id": 3,
                "title": "Write the manual",
                "status": "pending",
                "dependencies": [2, 77],
                "details": "One page.",
            },
            {"id": 4, "title": "Sell it", "status": "cancelled", "dependencies": []},
        ],
        "metadata": {"description": "Recipes"},
    },
    "mobile": {"tasks": [{"id": 1, "title": "Draw an icon", "status": "pending"}]},
}
BEADS = [
    {"id": "rb-1", "title": "Recipes", "issue_type": "epic", "status": "open"},
    {
        "id": "rb-2",
        "title": "Store recipes",
        "status": "open",
        "priority": 1,
        "issue_type": "task",
        "acceptance_criteria": "- [ ] `recipes add` stores\n- [ ] it survives a restart",
        "dependencies": [{"depends_on_id": "rb-1", "type": "parent-child"}],
    },
    {
        "id": "rb-3",
        "title": "List recipes",
        "status": "in_progress",
        "priority": 2,
        "design": "Text.\n\n## Acceptance Criteria\n- one line each\n\n## Files\n- a.py",
        "dependencies": [
            {"depends_on_id": "rb-2", "type": "blocks"},
            {"depends_on_id": "rb-4", "type": "blocks"},
            {"depends_on_id": "rb-9", "type": "blocks"},
            {"depends_on_id": "rb-5", "type": "related"},
        ],
    },
    {"id": "rb-4", "title": "Choose a table", "status": "closed"},
    {
        "id": "rb-5",
        "title": "Ship it",
        "status": "open",
        "dependencies": [{"depends_on_id": "rb-1", "type": "blocks"}],
    },
]


def laid(root: Path, **files: str) -> Path:
    """These files in this place."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def read(root: Path, name: str) -> Conversion:
    """What comes of the list that this path means."""
    found = convert_gathered(gather(root / name, root))
    assert found is not None
    return found


def by_id(found: Conversion) -> dict[str, dict[str, Any]]:
    """Its stories in order."""
    return {str(entry.get("id", entry["title"])): entry for entry in found.entries}


def spec_kit_project(root: Path) -> Path:
    """A feature with its spec."""
    return laid(root, **{
        ".specify/memory/constitution.md": "# Rules\n",
        "specs/001-recipes/tasks.md": SPEC_TASKS,
        "specs/001-recipes/spec.md": SPEC,
    })  # fmt: skip


@pytest.mark.parametrize(
    "name", [".specify", "specs", "specs/001-recipes", "specs/001-recipes/tasks.md"]
)
def test_spec_kit_keeps_ids_order_phases_and_scenarios(tmp_path: Path, name: str) -> None:
    """What proves a user story is asked of its last task; `[P]` tasks do not wait for each other."""
    found = read(spec_kit_project(tmp_path), name)
    assert (found.kind, found.done, found.project) == ("spec-kit", 1, "Recipe box")
    stories = by_id(found)
    assert list(stories) == ["T002", "T003", "T004", "T005", "T006", "T007", "T008"]
    needs = {name: one.get("dependsOn", []) for name, one in stories.items()}
    assert needs == {
        "T002": [],
        "T003": [],
        "T004": ["T002", "T003"],
        "T005": ["T004"],
        "T006": ["T005"],
        "T007": ["T004", "T006"],
        "T008": ["T004", "T006", "T007"],
    }
    assert stories["T006"]["acceptanceCriteria"] == [
        "refuses an empty name",
        "Independent test: `recipes add soup` and then `recipes list` prints soup",
        "Given no recipe, When I add soup, Then soup is listed",
        "Given soup, When I add soup again, Then I am told it is there",
    ]
    assert "acceptanceCriteria" not in stories["T005"]
    assert stories["T005"]["labels"] == ["US1"]
    assert "Goal: A cook keeps a recipe" in stories["T005"]["description"]
    assert stories["T006"]["parent_spec"] == "specs/001-recipes/spec.md"
    source = stories["T006"]["source"]
    assert (source["file"], source["line"]) == ("specs/001-recipes/tasks.md", 29)
    assert [str(one) for one in found.unread] == [
        "specs/001-recipes/tasks.md:39: has no number: Ask the cooks"
    ]


def test_openspec_asks_the_scenarios_of_the_task_that_closes_the_change(tmp_path: Path) -> None:
    """A removed requirement asks for nothing, and a line that is no task is named."""
    laid(tmp_path, **{
        "openspec/project.md": "# Recipes\n",
        "openspec/changes/add-list/proposal.md": "# Why\n",
        "openspec/changes/add-list/tasks.md": CHANGE_TASKS,
        "openspec/changes/add-list/specs/listing/spec.md": CHANGE_SPEC,
        "openspec/changes/archive/2025-01-01-old/tasks.md": "- [ ] 1.1 Old\n",
    })  # fmt: skip
    for name in ("openspec", "openspec/changes/add-list", "openspec/changes/add-list/tasks.md"):
        found = read(tmp_path, name)
        assert (found.kind, found.done) == ("OpenSpec", 1)
        stories = by_id(found)
        assert list(stories) == ["1.2", "2.1"]
        assert stories["1.2"]["acceptanceCriteria"] == ["sorted by name"]
        assert stories["2.1"]["acceptanceCriteria"] == [
            "Two recipes: given soup and bread, when the list is shown, then bread comes first, then soup second"
        ]
        assert stories["2.1"]["description"] == "2. Screen"
        spec = "openspec/changes/add-list/specs/listing/spec.md"
        assert stories["1.2"]["parent_spec"] == spec
        told = [str(one) for one in found.unread]
        assert any("tasks.md:10: an item without a box: a loose thought" in one for one in told)


def test_kiro_resolves_requirements_and_leaves_out_what_is_optional(tmp_path: Path) -> None:
    """`1.2` is one criterion, `2` all of that requirement; a number that is not there is named."""
    laid(tmp_path, **{
        ".kiro/specs/recipes/tasks.md": KIRO_TASKS,
        ".kiro/specs/recipes/requirements.md": KIRO_REQUIREMENTS,
    })  # fmt: skip
    for name in (".kiro", ".kiro/specs/recipes", ".kiro/specs/recipes/tasks.md"):
        found = read(tmp_path, name)
        assert (found.kind, found.done) == ("Kiro", 1)
        stories = by_id(found)
        assert list(stories) == ["1.2", "2"]
        assert stories["1.2"]["acceptanceCriteria"] == [
            "sorted by name",
            "1.2: WHEN recipes are asked for THEN the system SHALL sort them by name",
            "2.1: WHEN the list is shown THEN the system SHALL print one line a recipe",
        ]
        assert stories["1.2"]["description"] == "Build the store"
        assert len(stories["2"]["acceptanceCriteria"]) == 2
        assert [one.why for one in found.unread] == ["requirement 9.9 is not in requirements.md"]
        assert found.told == ("1 task optional there (`*`): left out: 1.3 (line 9)",)


def test_bmad_epics_with_story_files_and_the_status_of_the_sprint(tmp_path: Path) -> None:
    """Each thing that is seen is a criterion; a story's own file counts more than its epic."""
    laid(tmp_path, **{
        "docs/epics.md": EPICS,
        "docs/stories/1-2-list-recipes.md": STORY_FILE,
        "docs/sprint-status.yaml": "development_status:\n  epic-1: in-progress\n  1-3-forget-a-recipe: done\n",
    })  # fmt: skip
    for name in ("docs", "docs/epics.md"):
        found = read(tmp_path, name)
        assert (found.kind, found.done, found.project) == ("BMAD", 1, "Recipes")
        stories = by_id(found)
        assert list(stories) == ["1.1", "1.2", "1.4"]
        assert stories["1.1"]["acceptanceCriteria"] == [
            "Given no recipe, when I run `recipes add soup`, then soup is stored",
            "Given no recipe, when I run `recipes add soup`, then its name is printed",
            "Given soup is there, when I add it again, then I am told",
        ]
        assert "I want to add a recipe" in stories["1.1"]["description"]
        assert len(stories["1.2"]["acceptanceCriteria"]) == 2
        assert stories["1.2"]["source"]["file"] == "docs/stories/1-2-list-recipes.md"
        assert stories["1.1"]["source"]["line"] == 5
        assert [one.why for one in found.unread] == ["waits for what is no story here"]


def test_bmad_story_waits_for_its_prerequisites(tmp_path: Path) -> None:
    """Those that are done are waited for no longer."""
    laid(tmp_path, **{"docs/epics.md": EPICS})
    stories = by_id(read(tmp_path, "docs/epics.md"))
    assert stories["1.2"]["dependsOn"] == ["1.1"]
    assert stories["1.3"]["dependsOn"] == ["1.2"]


def test_backlog_reads_front_matter_and_criteria(tmp_path: Path) -> None:
    """Completed tasks are known as done; a task that is nowhere is named, not waited for."""
    other = BACKLOG_TASK.replace("task-7", "TASK-6").replace("[task-6, task-2, task-99]", "[]")
    done = other.replace("TASK-6", "task-2").replace("To Do", "Done")
    laid(tmp_path, **{
        "backlog/config.yml": "project_name: recipes\n",
        "backlog/tasks/task-7 - Export.md": BACKLOG_TASK,
        "backlog/tasks/task-6 - Import.md": other.replace("Export", "Import"),
        "backlog/completed/task-2 - Store.md": done.replace("Export", "Store"),
        "backlog/tasks/readme.md": "Words.\n",
    })  # fmt: skip
    found = read(tmp_path, "backlog")
    assert (found.kind, found.done) == ("Backlog.md", 1)
    stories = by_id(found)
    assert list(stories) == ["TASK-6", "task-7"]
    task = stories["task-7"]
    assert task["acceptanceCriteria"] == [
        "`recipes export` prints a head line",
        "One line a recipe",
    ]
    assert (task["dependsOn"], task["priority"], task["labels"]) == (["TASK-6"], 1, ["cli"])
    assert (task["description"], task["notes"]) == (
        "For people with spreadsheets.",
        "Use the csv module.",
    )
    assert any("task-99" in str(one) for one in found.unread)
    alone = read(tmp_path, "backlog/tasks/task-7 - Export.md")
    assert [entry["id"] for entry in alone.entries] == ["task-7"]


def test_task_master_reads_tags_and_subtasks(tmp_path: Path) -> None:
    """Whoever waits for a task waits for all its open parts; another tag stands before its ids."""
    text = json.dumps(TASK_MASTER, indent=2)
    laid(tmp_path, **{".taskmaster/tasks/tasks.json": text})
    for name in (".taskmaster", ".taskmaster/tasks/tasks.json"):
        found = read(tmp_path, name)
        assert (found.kind, found.done) == ("task-master", 2)
        stories = by_id(found)
        assert list(stories) == ["2.2", "2.3", "3", "mobile/1"]
        needs = {name: one.get("dependsOn", []) for name, one in stories.items()}
        assert needs == {"2.2": [], "2.3": ["2.2"], "3": ["2.2", "2.3"], "mobile/1": []}
        assert stories["2.3"]["acceptanceCriteria"] == ["Run every command once"]
        assert "acceptanceCriteria" not in stories["2.2"]
        assert stories["2.2"]["priority"] == 1
        assert text.splitlines()[stories["2.2"]["source"]["line"]].strip() == '"id": 2,'
        assert [one.words for one in found.unread] == ["77"]
        assert "1 task cancelled or deferred there: left out" in found.told


def test_beads_reads_issues_and_what_blocks_them(tmp_path: Path) -> None:
    """An epic is told by its issues; a broken line and an unknown blocker are named by line."""
    lines = [json.dumps(one) for one in BEADS]
    laid(tmp_path, **{".beads/issues.jsonl": "\n".join([*lines, "{broken", ""])})
    for name in (".beads", ".beads/issues.jsonl"):
        found = read(tmp_path, name)
        assert (found.kind, found.done) == ("beads", 1)
        stories = by_id(found)
        assert list(stories) == ["rb-2", "rb-3", "rb-5"]
        needs = {name: one.get("dependsOn", []) for name, one in stories.items()}
        assert needs == {"rb-2": [], "rb-3": ["rb-2"], "rb-5": ["rb-2"]}
        assert stories["rb-2"]["acceptanceCriteria"] == [
            "`recipes add` stores",
            "it survives a restart",
        ]
        assert stories["rb-3"]["acceptanceCriteria"] == ["one line each"]
        assert stories["rb-3"]["source"]["line"] == 3
        assert [(one.line, one.why) for one in found.unread] == [
            (6, "is no JSON"),
            (3, "waits for what is not here"),
        ]


# --- whatever is in the files ---------------------------------------------------------------------

_TEXTS = st.text(alphabet=" -*[]xX#\n:`_TUS0123.ab\t{}\"',|é", max_size=300)


@given(st.sampled_from(FORMATS), _TEXTS, _TEXTS)
def test_whatever_stands_there_it_is_read_or_refused(kind: Any, first: str, second: str) -> None:
    """Any text ends in stories that have a title and a place, or in an error of ours."""
    beside = {"spec-kit": "spec.md", "Kiro": "requirements.md", "OpenSpec": "spec.md"}
    documents = (
        Document("a/tasks.md", first),
        Document(f"a/{beside.get(kind.name, 'b.md')}", second),
    )
    try:
        found = convert_gathered(Gathered(documents, kind))
    except RalphError:
        return
    assert found is not None
    for entry in found.entries:
        assert str(entry["title"]).strip()
        source: Any = entry["source"]
        assert 1 <= source["line"] <= first.count("\n") + second.count("\n") + 2
    ids = [entry["id"] for entry in found.entries if "id" in entry]
    assert len(ids) == len(set(ids))


# --- through the front door -----------------------------------------------------------------------


def test_a_directory_is_planned_without_an_agent(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Ids, order and provenance reach the story file; what was not read is said by its line."""
    spec_kit_project(tmp_path)
    done = run_ralph("plan", "specs/001-recipes", "--yes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "7 stories written to prd.json." in done.stdout
    assert "specs/001-recipes/tasks.md:39: has no number: Ask the cooks" in done.stdout
    assert "1 story marked as done there: left out" in done.stdout
    stories = listed(tmp_path)
    assert [one["id"] for one in stories][:2] == ["T002", "T003"]
    assert stories[0]["source"] == {
        "file": "specs/001-recipes/tasks.md",
        "line": 8,
        "format": "spec-kit",
        "item": "T002 [P] Configure the linter in ruff.toml",
    }
    again = run_ralph("plan", "specs", "--yes", cwd=tmp_path)
    assert "There is nothing to add." in again.stdout


def test_the_same_words_in_two_lists_are_two_stories(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A title is known only from the file it came from; a taken id moves on, and that is said."""
    laid(tmp_path, **{
        ".kiro/specs/a/tasks.md": "- [ ] 1. Write tests\n  - `a` prints a\n",
        ".kiro/specs/b/tasks.md": "- [ ] 1. Write tests\n  - `b` prints b\n",
    })  # fmt: skip
    for name in ("a", "b"):
        done = run_ralph("plan", f".kiro/specs/{name}", "--yes", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "1 is taken: it becomes 2" in done.stdout
    assert [one["id"] for one in listed(tmp_path)] == ["1", "2"]


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        (".kiro", 64, ".kiro holds 2 lists with open tasks: .kiro/specs/a, .kiro/specs/b"),
        ("empty", 65, "empty: no list of tasks was found in it"),
        ("specs/002-no", 65, "specs/002-no: no such file or directory"),
        ("prose/tasks.md", 65, "prose/tasks.md: no task was found in it"),
        ("circle/tasks.json", 65, "circle/tasks.json: "),
    ],
)
def test_what_cannot_be_planned_is_named_as_the_person_named_it(
    tmp_path: Path, run_ralph: RunRalph, name: str, code: int, words: str
) -> None:
    """Nothing is written, no agent is asked, and the error speaks of no other file."""
    circle = {"tasks": [
        {"id": 1, "title": "One", "details": "x", "dependencies": [2]},
        {"id": 2, "title": "Two", "details": "x", "dependencies": [1]},
    ]}  # fmt: skip
    laid(tmp_path, **{
        ".kiro/specs/a/tasks.md": "- [ ] 1. Write tests\n",
        ".kiro/specs/b/tasks.md": "- [ ] 1. Write more tests\n",
        "prose/tasks.md": "# Tasks\n\nAll of them are done, and everybody is happy.\n",
        "circle/tasks.json": json.dumps(circle),
    })  # fmt: skip
    (tmp_path / "empty").mkdir()
    done = run_ralph("plan", name, "--yes", cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stderr
    assert "asking" not in done.stderr
    assert not (tmp_path / "prd.json").exists()


def test_json_names_every_line_that_was_not_read(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Each with its file, its line, why, and the words that stand there."""
    laid(tmp_path, **{".beads/issues.jsonl": '{"id": "a-1", "title": "One"}\nnope\n'})
    done = run_ralph("plan", ".beads", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told: Json = json.loads(done.stdout)
    assert told["kind"] == "beads"
    assert told["unread"] == [
        {"file": ".beads/issues.jsonl", "line": 2, "why": "is no JSON", "words": "nope"}
    ]


def test_names_in_code_and_globs_are_no_emphasis(tmp_path: Path) -> None:
    """Bold marks go, `__init__.py` and `src/**/*.ts` stay as they were written."""
    tasks = """\
- [ ] 1. **Write** `pkg/__init__.py`, src/__main__.py and __all of__ `src/**/*.ts`
  - skip node/**/*.js, pass `**kwargs` and the lonely ` on
"""
    [story] = read(laid(tmp_path, **{".kiro/specs/x/tasks.md": tasks}), ".kiro").entries
    assert story["title"] == "Write `pkg/__init__.py`, src/__main__.py and all of `src/**/*.ts`"
    assert story["acceptanceCriteria"] == ["skip node/**/*.js, pass `**kwargs` and the lonely ` on"]


def test_words_that_do_not_fit_are_kept(tmp_path: Path) -> None:
    """A wrapped line belongs to its item; a title that is too long stands whole in the description."""
    long = "every word of this counts " * 12
    tasks = f"""\
## 1. Store
- [ ] 1.1 {long}end
- [ ] 1.2 Add the query that
      sorts by name
  - twice, the second
    time backwards
"""
    root = laid(tmp_path, **{"openspec/changes/x/tasks.md": tasks})
    first, second = read(root, "openspec").entries
    assert str(first["title"]).endswith("…")
    assert str(first["description"]) == f"{long}end\n1. Store"
    assert second["title"] == "Add the query that sorts by name"
    assert second["acceptanceCriteria"] == ["twice, the second time backwards"]


def test_spec_kit_in_another_language_with_ranges_and_wrapped_scenarios(tmp_path: Path) -> None:
    """`[US1]` and the template's `P1` name a user story, `T001-T003` are three, its last task proves it."""
    tasks = """\
# 任务清单
## Phase 1：后端（US1 + US2）
- [ ] T001 [P] [US1] 模型
- [ ] T002 [P] [US1] 存储
- [ ] T003 [P] [US2] 路由
## Phase 2：前端（US1 + US2）
- [ ] T004 [US1] 页面，见
      `src/page.tsx`
- [ ] T005 [US2] 编辑器 (Depends on T001-T003)
- T001–T003 的说明
"""
    spec = """\
### 用户故事 1 — 添加连接（优先级：P1）
**验收场景**：
1. **Given** 没有连接，**When** 输入 URL，
   **Then** 显示表

### 用户故事 2 — 查询（优先级：P2）
1. **Given** 已连接，**When** 执行，**Then** 有结果
"""
    files = {"specs/001-db/tasks.md": tasks, "specs/001-db/spec.md": spec}
    found = read(laid(tmp_path, **files), "specs")
    stories = by_id(found)
    assert stories["T004"]["title"] == "页面，见 `src/page.tsx`"
    asked = {name: one.get("acceptanceCriteria") for name, one in stories.items()}
    assert asked == {
        "T001": None,
        "T002": None,
        "T003": None,
        "T004": ["Given 没有连接，When 输入 URL， Then 显示表"],
        "T005": ["Given 已连接，When 执行，Then 有结果"],
    }
    assert stories["T005"]["dependsOn"] == ["T004", "T001", "T002", "T003"]
    assert found.unread == ()


def test_a_plain_checklist_beside_a_spec_is_read_as_one(tmp_path: Path) -> None:
    """A `tasks.md` that lies where spec-kit's lie, without its numbers, is a checklist."""
    files = {
        "specs/002-ci/tasks.md": "# CI\n- [x] Add it\n- [ ] Test it\n",
        "specs/002-ci/spec.md": "",
    }
    found = read(laid(tmp_path, **files), "specs/002-ci")
    assert (found.kind, found.done) == ("checklist", 1)
    assert [one["title"] for one in found.entries] == ["Test it"]


def test_kiro_ranges_validations_and_stars_that_an_editor_escaped(tmp_path: Path) -> None:
    """Every way to name a requirement is resolved, also those of another language."""
    tasks = """\
- [ ] 1. Ranged
  - _Requirements: 1.1-1.3_
- [ ] 2. Validated
  - **Validates: Requirements 1.2, 2.1**
- [ ] 3. 查询
  - _需求：2.1, 2.2_
- [ ]\\* 4. Optional
"""
    asked = """\
### Requirement 1: Store
#### Acceptance Criteria
1. WHEN saved THEN kept
2. WHEN saved twice THEN
   told so
3. WHEN gone THEN gone
### Requirement 2
#### Acceptance Criteria
1. WHEN asked THEN answered
2. WHEN not THEN not
"""
    files = {".kiro/specs/x/tasks.md": tasks, ".kiro/specs/x/requirements.md": asked}
    found = read(laid(tmp_path, **files), ".kiro")
    criteria = [one.get("acceptanceCriteria") for one in found.entries]
    assert criteria == [
        [
            "1.1: WHEN saved THEN kept",
            "1.2: WHEN saved twice THEN told so",
            "1.3: WHEN gone THEN gone",
        ],
        ["1.2: WHEN saved twice THEN told so", "2.1: WHEN asked THEN answered"],
        ["2.1: WHEN asked THEN answered", "2.2: WHEN not THEN not"],
    ]
    assert found.unread == ()
    assert len(found.told) == 1


@pytest.mark.parametrize(
    "heading", ["Akzeptanzkriterien", "Critères d'acceptation", "Criterios de aceptación (BDD)"]
)
def test_bmad_in_the_language_of_its_writer(tmp_path: Path, heading: str) -> None:
    """A plan's headings follow its language; its criteria are criteria all the same."""
    story = (
        f"# Story 1.1: Speichern\nStatus: ready-for-dev\n\nText.\n\n## {heading}\n- eins\n- zwei\n"
    )
    root = laid(tmp_path, **{"docs/stories/1.1.story.md": story})
    [found] = read(root, "docs/stories").entries
    assert found["acceptanceCriteria"] == ["eins", "zwei"]
    assert "eins" not in str(found["description"])


def test_bmad_as_people_write_it(tmp_path: Path) -> None:
    """Criteria in brackets, groups, scenarios on one line, parts of items, ids of three numbers."""
    story = """\
# Story 2.4.1: Merge *(new)*
Status: review
## Acceptance Criteria (BDD)
Save dialog (FR-7):
1. **Given** a file **When** saved **Then** it is there
2. **Given** none **When** saved **Then** told so
### AC3: Sizes
- small:
  - 1 KB
  - 2 KB
- large
### AC4: It prints nothing
## Tasks / Subtasks
- [ ] Write it (AC: 1)
"""
    epic = """\
# Epic 2: Files
## Story 2.5: Next
**Prerequisites:** Story 2.4.1
### Acceptance Criteria:
- works
## Story Status Legend
- Story 3.0 designed with care
"""
    sprint = "development_status:\n  2-4-2-old-one: done\n  2-5-3-ways-to-go: ready-for-dev\n"
    old = "# Story 2.4.2: Old\n## Acceptance Criteria\n- was\n"
    files = {
        "docs/epics/epic-2.md": epic,
        "docs/stories/2.4.1.story.md": story,
        "docs/stories/2.4.2.story.md": old,
        "docs/stories/sprint-status.yaml": sprint,
    }
    root = laid(tmp_path, **files)
    found = read(root, "docs/stories")
    [merge] = found.entries
    assert (merge["id"], merge["title"], found.done) == ("2.4.1", "Merge (new)", 1)
    assert merge["acceptanceCriteria"] == [
        "Save dialog (FR-7): Given a file When saved Then it is there",
        "Save dialog (FR-7): Given none When saved Then told so",
        "AC3: Sizes: small: 1 KB; 2 KB",
        "AC3: Sizes: large",
        "AC4: It prints nothing",
    ]
    whole = read(root, "docs")
    stories = by_id(whole)
    assert "3.0" not in stories
    assert whole.unread == ()
    assert stories["2.5"]["dependsOn"] == ["2.4.1"]


def test_backlog_takes_bare_names_groups_and_items_without_a_box(tmp_path: Path) -> None:
    """`assignee: @me` is read; only prose among the criteria of what is open is named."""
    front = "---\nid: {id}\ntitle: T{id}\nstatus: {status}\nassignee: @me\n---\n"
    body = "## Acceptance Criteria\n### Page\n- [ ] #1 shows it\n  - twice\n- hides it\nwhatever\n"
    files = {
        "backlog/tasks/task-1.md": front.format(id="task-1", status="To Do") + body,
        "backlog/tasks/task-2.md": front.format(id="task-2", status="Done") + body,
    }
    found = read(laid(tmp_path, **files), "backlog")
    [story] = found.entries
    assert (story["id"], found.done) == ("task-1", 1)
    assert story["acceptanceCriteria"] == ["Page: shows it; twice", "Page: hides it"]
    assert [str(one) for one in found.unread] == [
        "backlog/tasks/task-1.md:12: no item of the criteria: whatever"
    ]


def test_task_master_asks_how_to_test_of_the_last_part_that_is_open(tmp_path: Path) -> None:
    """A task whose last part is done is still tested."""
    parts = [
        {"id": 1, "title": "a", "status": "pending"},
        {"id": 2, "title": "b", "status": "done"},
    ]
    task = {
        "id": 1,
        "title": "t",
        "status": "in-progress",
        "testStrategy": "try it",
        "subtasks": parts,
    }
    text = json.dumps({"master": {"tasks": [task]}})
    [story] = read(laid(tmp_path, **{".taskmaster/tasks/tasks.json": text}), ".taskmaster").entries
    assert (story["id"], story["acceptanceCriteria"]) == ("1.1", ["try it"])


def test_a_directory_does_not_mean_what_lies_beside_it(tmp_path: Path) -> None:
    """`ralph plan docs` says nothing of the lists in `specs`."""
    root = spec_kit_project(tmp_path)
    laid(root, **{"docs/readme.md": "words\n"})
    with pytest.raises(RalphError, match="no list of tasks was found"):
        read(root, "docs")


def test_a_circle_is_opened_and_named(tmp_path: Path) -> None:
    """What a story blocks is not waited for; of two that wait for each other the later one does."""
    epic = """\
# Epic 1: Files
## Story 1.1: First
**Dependencies:** Story 1.2. Blocks: Story 1.3
## Story 1.2: Second
**Dependencies:** Story 1.1
## Story 1.3: Third
**Dependencies:** Story 1.2
"""
    found = read(laid(tmp_path, **{"docs/epics.md": epic}), "docs")
    needs = {name: one.get("dependsOn", []) for name, one in by_id(found).items()}
    assert needs == {"1.1": [], "1.2": ["1.1"], "1.3": ["1.2"]}
    assert [str(one) for one in found.unread] == [
        "docs/epics.md:2: waits for what waits for it: 1.2"
    ]


BOXES = """\
# Tasks: Boxes

## Phase 1: Setup

- [ ] T001 First
-[ ] T002 No space before the box
1. [ ] T003 Numbered
- [ ] T003 The same id again
"""


def test_boxes_as_people_write_them_and_an_id_that_stands_twice(tmp_path: Path) -> None:
    """A box without a space or behind a number is a task; the second of an id waits for the first."""
    (tmp_path / "tasks.md").write_text(BOXES)
    (tmp_path / "spec.md").write_text("# Feature Specification: Boxes\n")
    found = read(tmp_path, "tasks.md")
    needs = [(entry.get("id"), entry.get("dependsOn")) for entry in found.entries]
    assert needs == [("T001", None), ("T002", ["T001"]), ("T003", ["T002"]), (None, ["T003"])]


def test_the_directory_that_holds_the_tasks_may_be_named(tmp_path: Path) -> None:
    """`backlog/tasks` means what `backlog` means."""
    place = tmp_path / "backlog" / "tasks"
    place.mkdir(parents=True)
    text = "---\nid: task-1\ntitle: Search\nstatus: To Do\n---\n"
    (place / "task-1 - Search.md").write_text(text)
    assert list(by_id(read(tmp_path, "backlog/tasks"))) == ["task-1"]
