"""Finding and loading story files: both shapes of prd.json in the wild."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralphloop.errors import InputError
from ralphloop.stories.source import find_source, load
from tests.stories.builders import only_story, raw_story, write_prd, write_text

FLAT = {
    "project": "MyApp",
    "branchName": "ralph/task-priority",
    "description": "Task priorities",
    "userStories": [
        {
            "id": "US-001",
            "title": "Add priority field",
            "description": "As a developer I want a field.",
            "acceptanceCriteria": ["Column exists", "Typecheck passes"],
            "priority": 1,
            "passes": True,
            "notes": "mind the index",
        },
        {
            "id": "US-002",
            "title": "Show priority",
            "priority": 2,
            "passes": False,
            "dependsOn": ["US-001"],
            "parent_spec": "specs/S01.md",
            "verify": "pytest -q 'tests/test priority.py'",
        },
    ],
}

NESTED = {
    "name": "nested",
    "stories": [
        {
            "id": "US-001",
            "title": "First",
            "status": "completed",
            "acceptanceCriteria": [
                {"id": "AC1", "description": "It works", "done": True},
                {"id": "AC2", "description": "It is fast", "done": False},
            ],
            "tasks": [{"id": "T1", "description": "Write it", "done": True}, "Ship it"],
            "dependencies": {"depends_on": [], "blocks": ["US-002"]},
            "execution": {"attempts": 0},
            "context": {"parent_spec": "S01-first.md"},
        },
        {
            "id": "US-002",
            "title": "Second",
            "status": "pending",
            "dependencies": {"depends_on": ["US-001"]},
        },
    ],
}


def test_a_flat_prd_gives_every_field(tmp_path: Path) -> None:
    """All fields of the flat shape are read."""
    file = load(write_text(tmp_path, json.dumps(FLAT)))
    first, second = file.list.stories
    assert (file.list.project, file.list.branch_name) == ("MyApp", "ralph/task-priority")
    assert file.list.description == "Task priorities"
    assert (file.list.total, file.list.passed) == (2, 1)
    assert first.criteria == ("Column exists", "Typecheck passes")
    assert (first.priority, first.passes, first.notes) == (1, True, "mind the index")
    assert (second.depends_on, second.parent_spec) == (("US-001",), "specs/S01.md")
    assert second.verify == ("pytest", "-q", "tests/test priority.py")
    assert (second.index, second.exit_signal) == (1, False)


def test_a_nested_prd_gives_every_field(tmp_path: Path) -> None:
    """All fields of the nested shape are read; done flags of criteria pass nothing."""
    file = load(write_text(tmp_path, json.dumps(NESTED)))
    first, second = file.list.stories
    assert file.list.project == "nested"
    assert first.criteria == ("AC1: It works", "AC2: It is fast")
    assert first.description == "Tasks:\n- T1: Write it\n- Ship it"
    assert first.parent_spec == "S01-first.md"
    assert (first.passes, second.passes) == (True, False)
    assert second.depends_on == ("US-001",)


@pytest.mark.parametrize(
    "fields, passes",
    [
        ({}, False),
        ({"passes": None}, False),
        ({"passes": True}, True),
        ({"passes": False, "status": "done"}, False),
        ({"passes": True, "status": "pending"}, True),
        ({"passes": None, "status": "Done"}, True),
        ({"status": "complete"}, True),
        ({"status": "COMPLETED"}, True),
        ({"status": "in_progress"}, False),
        ({"status": "incomplete"}, False),
        ({"status": None}, False),
        ({"acceptanceCriteria": [{"description": "x", "done": True}]}, False),
    ],
)
def test_passes_counts_and_status_only_where_there_is_none(
    tmp_path: Path, fields: dict[str, object], passes: bool
) -> None:
    """`passes` says whether a story passed; `status` stands in where it is missing."""
    assert only_story(tmp_path, **fields).passes is passes


@pytest.mark.parametrize(
    "written, criteria",
    [
        (["a", "b"], ("a", "b")),
        ("one text", ("one text",)),
        ("first\nsecond\n\n", ("first", "second")),
        ([], ()),
        ("", ()),
        (None, ()),
        (["  padded  ", ""], ("padded",)),
        ([{"description": "no id"}, {"id": 3, "text": "other word"}], ("no id", "3: other word")),
    ],
)
def test_criteria_come_as_texts_one_text_or_objects(
    tmp_path: Path, written: object, criteria: tuple[str, ...]
) -> None:
    """Acceptance criteria are read in every form seen in the wild."""
    assert only_story(tmp_path, acceptanceCriteria=written).criteria == criteria


@pytest.mark.parametrize(
    "written, argv",
    [
        (["pytest", "-q", "a b"], ("pytest", "-q", "a b")),
        ("npm test -- --run 'a b'", ("npm", "test", "--", "--run", "a b")),
        (["sh", "-c", "make && make check"], ("sh", "-c", "make && make check")),
        (["./my tools/check"], ("./my tools/check",)),
        ("echo '$HOME' '`id`'", ("echo", "$HOME", "`id`")),
        ("", None),
        ([], None),
        (None, None),
    ],
)
def test_verify_is_argv_and_no_shell_reads_it(
    tmp_path: Path, written: object, argv: tuple[str, ...] | None
) -> None:
    """A verify text is split like a shell would, nothing in it is expanded."""
    assert only_story(tmp_path, verify=written).verify == argv


@pytest.mark.parametrize(
    "fields",
    [
        {"dependsOn": ["A", "B"]},
        {"depends_on": ["A", "B", "A"]},
        {"dependencies": {"depends_on": ["A", "B"]}},
        {"dependencies": ["A", "B"]},
        {"dependsOn": "A", "dependencies": {"depends_on": ["B"]}},
    ],
)
def test_dependencies_are_read_from_every_field(tmp_path: Path, fields: dict[str, object]) -> None:
    """Each way to write dependencies gives the same ids, each once."""
    path = write_prd(tmp_path, raw_story("A"), raw_story("B"), raw_story("C", **fields))
    assert load(path).list.stories[2].depends_on == ("A", "B")


def test_number_ids_become_text(tmp_path: Path) -> None:
    """Ids and dependencies may be written as numbers."""
    stories = load(write_prd(tmp_path, raw_story(1), raw_story(2, dependsOn=[1]))).list.stories
    assert [story.id for story in stories] == ["1", "2"]
    assert stories[1].depends_on == ("1",)


@pytest.mark.parametrize(
    "story_id",
    ["$(rm -rf ~)", "a\nb", "../../x", "--force", "ünïcode-日本", "x" * 300, "a'b\"c;|&", " pad "],
)
def test_hostile_ids_load_as_they_are(tmp_path: Path, story_id: str) -> None:
    """Whatever a story is called, it loads, and its id is kept exactly."""
    assert only_story(tmp_path, story_id=story_id).id == story_id


def test_a_prd_with_a_byte_order_mark_loads(tmp_path: Path) -> None:
    """UTF-8 and UTF-16 byte order marks, as Windows tools write them, are no problem."""
    text = json.dumps({"userStories": [raw_story(title="é")]}, ensure_ascii=False)
    for data in (
        text.encode("utf-8-sig"),
        text.encode("utf-16"),
        b"\xfe\xff" + text.encode("utf-16-be"),
    ):
        path = tmp_path / "prd.json"
        path.write_bytes(data)
        assert load(path).list.stories[0].title == "é"


def test_exit_signal_is_a_permission_of_tasks_files_only(tmp_path: Path) -> None:
    """`exit_signal` in a prd.json does not let a story end the run."""
    assert only_story(tmp_path, exit_signal=True).exit_signal is False


def test_prd_json_is_found_before_tasks_yaml(tmp_path: Path) -> None:
    """A directory is searched for prd.json, then tasks.yaml, then tasks.yml."""
    (tmp_path / "tasks.yml").touch()
    assert find_source(tmp_path).name == "tasks.yml"
    (tmp_path / "tasks.yaml").touch()
    assert find_source(tmp_path).name == "tasks.yaml"
    (tmp_path / "prd.json").touch()
    assert find_source(tmp_path).name == "prd.json"


@pytest.mark.parametrize("where", ["empty", "missing"])
def test_without_a_story_file_the_error_names_the_ways_out(tmp_path: Path, where: str) -> None:
    """No story file is exit 65 with what to do instead."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as caught:
        find_source(tmp_path / where)
    for way in ("ralph init", "ralph plan", "--prd"):
        assert way in caught.value.next_step


def test_a_file_in_place_of_a_directory_points_to_the_option(tmp_path: Path) -> None:
    """Who names the file itself is told which option takes it."""
    with pytest.raises(InputError, match="is a file") as caught:
        find_source(write_text(tmp_path, "{}"))
    assert "--prd" in caught.value.next_step
