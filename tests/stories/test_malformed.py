"""Every malformed prd.json: the place, the reason, exit 65, and the file as it was."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralphloop.errors import InputError
from ralphloop.stories.source import load
from tests.stories.builders import complaint, raw_story, write_prd, write_text

NOT_JSON = [
    ("", "is empty"),
    ("  \n\t ", "is empty"),
    ("\ufeff", "is empty"),
    ("hello", "line 1, column 1: not valid JSON"),
    ('{"userStories": [', "the file ends here"),
    ('{\n  "userStories": [}\n', "line 2, column 19"),
    ('{"userStories": [],}', "line 1, column 20"),
    ('{"a": 1 // note\n}', "JSON has no comments"),
    ('{"a": 1} # note', "JSON has no comments"),
    ("{'a': 1}", "use double quotes"),
    ('```json\n{"a": 1}\n```', "a Markdown fence"),
    ('{"a": 1,\n<<<<<<< HEAD\n"b": 2}', "line 2, column 1: not valid JSON: an unresolved merge"),
    ('{"a": 1}{"a": 2}', "line 1, column 9"),
    ('{"a": "tab\there"}', "line 1, column 11"),
    ('{"userStories": ' + "[" * 200_000, "is nested too deeply"),
    ('{"userStories": ' + '{"a":' * 200_000, "is nested too deeply"),
    ('{"userStories": ' + "9" * 10_000 + "}", "thousands of digits"),
]


@pytest.mark.parametrize("text, expected", NOT_JSON, ids=[text[:20] for text, _ in NOT_JSON])
def test_what_is_not_json_is_named_with_line_and_column(
    tmp_path: Path, text: str, expected: str
) -> None:
    """A file that is no JSON says where it stops being one, and the likely cause."""
    message = complaint(write_text(tmp_path, text))
    assert message.startswith("prd.json: ")
    assert expected in message


WRONG_ROOT: list[tuple[object, str]] = [
    ([], "must be an object with userStories (or tasks), found a list"),
    ([raw_story()], "must be an object with userStories (or tasks), found a list"),
    ("text", 'found the text "text"'),
    (None, "found null"),
    (3, "found the number 3"),
    ({}, 'has no "userStories"'),
    ({"userStories": None}, 'has no "userStories"'),
    ({"userStories": {}}, "userStories: must be a list, found an object"),
    ({"userStories": "US-1"}, "userStories: must be a list"),
    ({"userStories": []}, "userStories: is empty"),
    ({"userStories": [raw_story()], "stories": [raw_story()]}, "has both userStories and stories"),
    ({"userStories": [raw_story()], "project": 5}, "project: must be text, found the number 5"),
    ({"userStories": [raw_story()], "branchName": ["x"]}, "branchName: must be text, found a list"),
]


@pytest.mark.parametrize("root, expected", WRONG_ROOT)
def test_a_wrong_root_is_named(tmp_path: Path, root: object, expected: str) -> None:
    """The root must be an object with exactly one list of stories."""
    assert expected in complaint(write_text(tmp_path, json.dumps(root)))


WRONG_STORY: list[tuple[object, str]] = [
    (5, "userStories[1]: must be an object, found the number 5"),
    (None, "userStories[1]: must be an object, found null"),
    ([], "userStories[1]: must be an object, found a list"),
    ({"title": "x"}, "userStories[1].id: missing"),
    ({"id": "x"}, "userStories[1].title: missing"),
    (raw_story(None), "userStories[1].id: is null"),
    (raw_story(""), "userStories[1].id: is empty"),
    (raw_story("  "), "userStories[1].id: is empty"),
    (raw_story(True), "userStories[1].id: must be text, found true"),
    (raw_story(1.5), "userStories[1].id: must be text, found the number 1.5"),
    (raw_story(10**30), "userStories[1].id: must be text, found a number out of range"),
    (raw_story("x" * 1001), "userStories[1].id: is longer than 1000 characters"),
    (raw_story("a\0b", title="t"), r'userStories[1].id: holds a character that cannot be used: "\x00"'),
    (raw_story("a\ud800", title="t"), r'userStories[1].id: holds a character that cannot be used: "\ud800"'),
    (raw_story("B", title=""), "userStories[1].title: is empty"),
    (raw_story("B", title=7), "userStories[1].title: must be text, found the number 7"),
    (raw_story("B", description=[]), "userStories[1].description: must be text, found a list"),
    (raw_story("B", notes={}), "userStories[1].notes: must be text, found an object"),
    (raw_story("B", passes="true"), 'userStories[1].passes: must be true or false, found the text "true"'),
    (raw_story("B", passes=1), "userStories[1].passes: must be true or false, found the number 1"),
    (raw_story("B", priority="high"), 'userStories[1].priority: must be a number (the lowest comes first), found the text "high"'),
    (raw_story("B", priority=True), "userStories[1].priority: must be a number"),
    (raw_story("B", priority=10**20), "userStories[1].priority: is out of range"),
    (raw_story("B", acceptanceCriteria=5), "userStories[1].acceptanceCriteria: must be a list, found the number 5"),
    (raw_story("B", acceptanceCriteria=["a", 5]), "userStories[1].acceptanceCriteria[1]: must be text"),
    (raw_story("B", acceptanceCriteria=[{"id": "x"}]), "userStories[1].acceptanceCriteria[0]: has no description"),
    (raw_story("B", acceptanceCriteria=[{"description": 1}]), "userStories[1].acceptanceCriteria[0].description: must be text"),
    (raw_story("B", tasks=7), "userStories[1].tasks: must be a list"),
    (raw_story("B", dependsOn={}), "userStories[1].dependsOn: must be a list, found an object"),
    (raw_story("B", dependsOn=[["A"]]), "userStories[1].dependsOn[0]: must be a story id, found a list"),
    (raw_story("B", dependsOn=[""]), 'userStories[1].dependsOn[0]: must be a story id, found the text ""'),
    (raw_story("B", dependsOn=["A", "Z"]), 'userStories[1].dependsOn[1]: no story has the id "Z"'),
    (raw_story("B", dependencies={"depends_on": ["Z"]}), 'userStories[1].dependencies.depends_on[0]: no story has the id "Z"'),
    (raw_story("B", dependsOn=["B"]), "userStories[1].dependsOn[0]: the story depends on itself"),
    (raw_story("A"), 'userStories[1].id: "A" is already the id of userStories[0]'),
    (raw_story("B", parent_spec=5), "userStories[1].parent_spec: must be text"),
    (raw_story("B", context={"parent_spec": 5}), "userStories[1].context.parent_spec: must be text"),
    (raw_story("B", verify=5), "userStories[1].verify: must be a list, found the number 5"),
    (raw_story("B", verify=["a", 5]), "userStories[1].verify[1]: must be text"),
    (raw_story("B", verify=[["a"]]), "userStories[1].verify[0]: must be text, found a list"),
    (raw_story("B", verify=["", "a"]), "userStories[1].verify[0]: names no program"),
    (raw_story("B", verify=["npm test", "npm run lint"]), 'userStories[1].verify[0]: the program is "npm test"'),
    (raw_story("B", verify="a 'b"), "userStories[1].verify: cannot be split into arguments"),
    (raw_story("B", verify="make && make check"), 'userStories[1].verify: uses "&&": no shell runs it'),
]  # fmt: skip


@pytest.mark.parametrize("bad, expected", WRONG_STORY, ids=[text for _, text in WRONG_STORY])
def test_a_wrong_story_is_named_with_its_place(tmp_path: Path, bad: object, expected: str) -> None:
    """Each mistake in a story is named by its place in the file and what is expected there."""
    assert f"prd.json: {expected}" in complaint(write_prd(tmp_path, raw_story("A"), bad))


def test_several_problems_are_shown_at_once(tmp_path: Path) -> None:
    """One look is enough to repair a file with several mistakes."""
    message = complaint(write_prd(tmp_path, raw_story("A", passes=2), {"id": "B"}, 7))
    assert message.splitlines() == [
        "prd.json: 3 problems",
        "  userStories[0].passes: must be true or false, found the number 2",
        "  userStories[1].title: missing",
        "  userStories[2]: must be an object, found the number 7",
    ]


def test_at_most_ten_problems_are_shown(tmp_path: Path) -> None:
    """A file full of mistakes does not flood the terminal."""
    lines = complaint(write_prd(tmp_path, *range(500))).splitlines()
    assert (lines[0], lines[-1]) == ("prd.json: 500 problems", "  and 490 more")
    assert len(lines) == 12


def test_a_misspelt_dependency_gets_a_suggestion(tmp_path: Path) -> None:
    """The id that was probably meant is named."""
    path = write_prd(tmp_path, raw_story("US-001"), raw_story("US-002", dependsOn=["us-01"]))
    assert 'no story has the id "us-01"; did you mean "US-001"?' in complaint(path)


def test_a_cycle_is_written_out(tmp_path: Path) -> None:
    """The stories of a cycle are named in order; those that only lead into it are not."""
    path = write_prd(
        tmp_path,
        raw_story("D", dependsOn=["A"]),
        raw_story("A", dependsOn=["C"]),
        raw_story("B", dependsOn=["A"]),
        raw_story("C", dependsOn=["B"]),
        raw_story("free"),
    )
    assert complaint(path) == "prd.json: userStories[1]: dependencies in a circle: A → C → B → A"


def test_every_separate_cycle_is_named(tmp_path: Path) -> None:
    """Two cycles are two problems."""
    pairs = [("A", "B"), ("B", "A"), ("C", "D"), ("D", "C")]
    path = write_prd(tmp_path, *(raw_story(one, dependsOn=[other]) for one, other in pairs))
    message = complaint(path)
    assert "A → B → A" in message
    assert "C → D → C" in message


def test_a_story_that_needs_itself_does_not_hide_a_cycle(tmp_path: Path) -> None:
    """Depending on oneself and on others in a circle are two problems."""
    path = write_prd(
        tmp_path, raw_story("A", dependsOn=["A", "B"]), raw_story("B", dependsOn=["A"])
    )
    assert complaint(path).splitlines()[1:] == [
        "  userStories[0].dependsOn[0]: the story depends on itself",
        "  userStories[0]: dependencies in a circle: A → B → A",
    ]


def test_a_long_cycle_is_cut(tmp_path: Path) -> None:
    """A cycle through thousands of stories fits on a line and takes no time."""
    size = 5000
    stories = (raw_story(f"S{n}", dependsOn=[f"S{(n + 1) % size}"]) for n in range(size))
    message = complaint(write_prd(tmp_path, *stories))
    assert "S0 → S1 → " in message
    assert "(4990 more) → S0" in message


def test_a_key_twice_in_one_object_is_an_error(tmp_path: Path) -> None:
    """Which of two equal keys counts would be a guess, so it is not made."""
    text = '{"userStories": [{"id": "A", "title": "t", "x": {"k": 1, "k": 2}, "passes": true, "passes": false}]}'
    assert complaint(write_text(tmp_path, text)).splitlines()[1:] == [
        '  userStories[0]: the key "passes" stands here twice',
        '  userStories[0].x: the key "k" stands here twice',
    ]


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_what_only_javascript_knows_is_an_error(tmp_path: Path, word: str) -> None:
    """NaN and infinities are no JSON, wherever they stand."""
    text = f'{{"userStories": [{{"id": "A", "title": "t", "odd key": [1, {word}]}}]}}'
    expected = f'userStories[0]["odd key"][1]: {word} is not a JSON value'
    assert expected in complaint(write_text(tmp_path, text))


def test_a_number_too_large_for_a_float_is_out_of_range(tmp_path: Path) -> None:
    """1e999 reads as infinity, which orders nothing."""
    text = '{"userStories": [{"id": "A", "title": "t", "priority": 1e999}]}'
    assert "priority: is out of range" in complaint(write_text(tmp_path, text))


def test_text_that_is_not_utf8_is_named_by_line(tmp_path: Path) -> None:
    """A file in another encoding says where it is not UTF-8."""
    path = tmp_path / "prd.json"
    path.write_bytes(b'{"userStories": [\n{"id": "A", "title": "caf\xe9"}]}')
    assert "prd.json: line 2: is not UTF-8 text" in complaint(path)


def test_messages_carry_no_control_characters(tmp_path: Path) -> None:
    """An id cannot speak to the terminal through an error message."""
    path = write_prd(tmp_path, raw_story("A", dependsOn=["\x1b[31m\u202e\x9b\nowned" + "x" * 500]))
    message = complaint(path)
    assert message.isprintable()
    assert len(message) < 300


def test_a_file_over_the_bound_is_refused(tmp_path: Path) -> None:
    """More than 50 MB are not read into memory."""
    path = tmp_path / "prd.json"
    with path.open("wb") as file:
        file.truncate(50_000_001)
    with pytest.raises(InputError, match=r"prd\.json: is larger than 50 MB"):
        load(path)


def test_a_missing_file_a_directory_and_a_pipe_are_refused(tmp_path: Path) -> None:
    """What is no regular file is an error at once; a pipe does not hang the run."""
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "prd.json")
    (tmp_path / "prd.json").mkdir()
    with pytest.raises(InputError, match="is a directory"):
        load(tmp_path / "prd.json")
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(InputError, match="not a regular file"):
        load(tmp_path / "pipe.json")


def test_many_wrong_dependencies_take_no_time(tmp_path: Path) -> None:
    """A hostile file with a hundred thousand dangling dependencies is refused quickly."""
    names = [f"none-{n}" for n in range(100_000)]
    path = write_prd(tmp_path, raw_story("A", dependsOn=names), raw_story("B", dependsOn=names))
    assert complaint(path).startswith("prd.json: 200000 problems")


@settings(max_examples=200)
@given(st.one_of(st.binary(max_size=200), st.text(alphabet='{}[]",:\\ntfu0123 ab', max_size=80)))
def test_no_file_content_does_more_than_raise_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes | str
) -> None:
    """Arbitrary bytes are refused in words, never by a crash."""
    path = tmp_path_factory.getbasetemp() / "prd.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError):
        load(path)
