"""tasks.yaml: the same stories, with comments that survive and nothing that YAML can smuggle in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralphloop.errors import InputError
from ralphloop.stories.source import load, mark
from tests.stories.builders import complaint, write_text

TASKS = """\
# The night's work
project: "demo"   # shown in the report

tasks:
  - id: T1          # first
    title: 'Set up: the base'
    passes: true
  - id: T2
    title: Build it, at last  # a comment
    # about the next key
    exit_signal: true
    passes: false   # ← set by the supervisor
    depends_on: [T1]
    description: |
      Two lines
      of text
    acceptance_criteria:
    - "quoted"
    -   oddly indented
  - {id: 3, title: "flow", priority: 0x0A}
  # the end
"""


def write_tasks(directory: Path, text: str) -> Path:
    """A tasks.yaml with exactly this text."""
    return write_text(directory, text, "tasks.yaml")


def test_a_tasks_file_gives_every_field(tmp_path: Path) -> None:
    """Tasks are read like stories, with the permission to end the run."""
    file = load(write_tasks(tmp_path, TASKS))
    first, second, third = file.list.stories
    assert file.list.project == "demo"
    assert (first.title, first.passes, first.exit_signal) == ("Set up: the base", True, False)
    assert (second.exit_signal, second.passes, second.depends_on) == (True, False, ("T1",))
    assert second.description == "Two lines\nof text\n"
    assert second.criteria == ("quoted", "oddly indented")
    assert (third.id, third.priority, third.title) == ("3", 10, "flow")


def test_a_mark_changes_one_word(tmp_path: Path) -> None:
    """Comments, quotes, order and indentation survive a mark to the byte."""
    path = write_tasks(tmp_path, TASKS)
    mark(path, {"T2": True})
    assert path.read_text() == TASKS.replace("passes: false   #", "passes: true   #")


@pytest.mark.parametrize(
    "before, after",
    [
        (
            "tasks:\n- id: A\n  title: t  # c\n  notes: n\n",
            "tasks:\n- id: A\n  title: t  # c\n  passes: true\n  notes: n\n",
        ),
        ("tasks:\n  - title: t\n    id: A", "tasks:\n  - title: t\n    passes: true\n    id: A"),
        ("tasks:\n- id: A\n  title: t", "tasks:\n- id: A\n  title: t\n  passes: true"),
        ("tasks: [{id: A, title: t}]\n", "tasks: [{id: A, title: t, passes: true}]\n"),
        (
            "tasks:\n- id: A\n  title: >\n    long\n    title\n  x: 1\n",
            "tasks:\n- id: A\n  passes: true\n  title: >\n    long\n    title\n  x: 1\n",
        ),
        (
            "tasks:\n- id: A\n  title: over\n    two lines\n",
            "tasks:\n- id: A\n  title: over\n    two lines\n  passes: true\n",
        ),
        (
            "tasks:\n- id: A\n  title: t\n  passes:\n",
            "tasks:\n- id: A\n  title: t\n  passes: true\n",
        ),
        ("tasks: [{passes, id: A, title: t}]", "tasks: [{passes: true, id: A, title: t}]"),
        (
            "tasks:\n- id: A\n  passes: # open\n  title: t\n",
            "tasks:\n- id: A\n  passes: true # open\n  title: t\n",
        ),
        (
            "tasks:\n- id: A\n  title: t\n  passes: ~\n",
            "tasks:\n- id: A\n  title: t\n  passes: true\n",
        ),
        (
            "tasks:\n- id: A\n  title: t\n  status: todo\n",
            "tasks:\n- id: A\n  title: t\n  status: done\n",
        ),
        (
            "tasks:\r\n- id: A\r\n  title: t\r\n  x: 1\r\n",
            "tasks:\r\n- id: A\r\n  title: t\r\n  passes: true\r\n  x: 1\r\n",
        ),
    ],
)
def test_a_mark_finds_its_place(tmp_path: Path, before: str, after: str) -> None:
    """A missing or empty mark is added where YAML allows it, in the file's own style."""
    path = write_tasks(tmp_path, before)
    mark(path, {"A": True})
    assert path.read_bytes() == after.encode()


def test_a_byte_order_mark_survives(tmp_path: Path) -> None:
    """A tasks file with a byte order mark keeps it, and its positions are right."""
    path = write_tasks(tmp_path, "\ufeff" + TASKS)
    mark(path, {"T2": True})
    assert path.read_text() == "\ufeff" + TASKS.replace("passes: false   #", "passes: true   #")


def test_several_marks_in_one_write(tmp_path: Path) -> None:
    """Marks added and changed together all arrive."""
    path = write_tasks(tmp_path, TASKS)
    mark(path, {"3": True, "T1": False, "T2": True})
    assert [story.passes for story in load(path).list.stories] == [False, True, True]


def test_a_mark_without_a_place_is_refused(tmp_path: Path) -> None:
    """Where no line can be added safely, the person is asked to; the file stays."""
    text = "tasks:\n- id: |\n    A\n  title: |\n    t\n"
    path = write_tasks(tmp_path, text)
    with pytest.raises(InputError, match=r"tasks\[0\]: no place was found"):
        mark(path, {"A\n": True})
    assert path.read_text() == text


texts = st.text(alphabet="ab é-_:#,'\"[]{}&*!|>%@`\\日", min_size=1, max_size=12)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(texts, st.sampled_from(["", "true", "false"])), min_size=1, max_size=4))
def test_any_quoted_task_can_be_marked(
    tmp_path_factory: pytest.TempPathFactory, tasks: list[tuple[str, str]]
) -> None:
    """Whatever titles say, the marked task is passed and the others are what they were."""
    lines = ["# head", "tasks:"]
    for number, (title, passes) in enumerate(tasks):
        quoted = title.replace("'", "''")
        lines += [f"  - id: T{number} # note", f"    title: 'x{quoted}' # {title}"]
        lines += [f"    passes: {passes} # why"] if passes else []
    path = tmp_path_factory.getbasetemp() / "tasks.yaml"
    path.write_text("\n".join(lines) + "\n")
    before = load(path).list
    mark(path, {"T0": True})
    assert load(path).list == before.with_passes({"T0": True})


BAD = [
    ("", "is empty"),
    ("# only a comment\n", "found null"),
    ("- id: 1\n", "found a list"),
    ("tasks:\n", 'has no "userStories" (nor "stories" or "tasks")'),
    ("tasks: []\n", "tasks: is empty"),
    ("tasks:\n- id: 1\n title: x\n", "line 3, column 2: not valid YAML"),
    ("\ttasks: 1\n", "line 1, column 1: not valid YAML"),
    ("tasks: {id: 1\n", "not valid YAML"),
    ("tasks:\n- id: 1\n  id: 2\n  title: x\n", 'line 3, column 3: found duplicate key "id"'),
    ("a: 1\n---\nb: 2\n", "line 2, column 1: not valid YAML: expected a single document"),
    ("tasks: !!python/object/apply:os.system [id]\n", "line 1, column 8: the tag"),
    ("tasks: !custom x\n", 'the tag "!custom" is not allowed'),
    ("a: &a [1]\ntasks: *a\n", "line 1, column 4: is used again by an alias"),
    ("tasks: &a [*a]\n", "line 1, column 8: is used again by an alias"),
    ("base: {<<: {a: 1}}\n", "the tag"),
    ("? [a]\n: 1\n", "has a key that is no plain text"),
    ("x: 2024-99-99\n", "holds a value that is none"),
    ("x: \x01\n", "not valid YAML"),
    ("x: " + "[" * 1000, "is nested too deeply"),
    ("tasks:\n- id: 1\n  title: 2024-01-01\n", "tasks[0].title: must be text, found a date"),
    ("tasks:\n- id: 1\n  title: t\n  passes: yes\n", 'tasks[0].passes: must be true or false, found the text "yes"'),
    ("tasks:\n- id: 1\n  title: t\n  exit_signal: 1\n", "tasks[0].exit_signal: must be true or false"),
    ("tasks:\n- id: 1\n  title: t\n  depends_on: [2]\n", 'tasks[0].depends_on[0]: no story has the id "2"'),
    ("tasks:\n- id: 1\n  title: t\n  priority: .inf\n", "tasks[0].priority: is out of range"),
    ("tasks:\n- id: 0x" + "f" * 6000 + "\n  title: t\n", "tasks[0].id: must be text"),
]  # fmt: skip


@pytest.mark.parametrize("text, expected", BAD, ids=[text[:30] for text, _ in BAD])
def test_bad_yaml_is_named_with_its_place(tmp_path: Path, text: str, expected: str) -> None:
    """Malformed and malicious YAML is an error with its place, and the file stays."""
    message = complaint(write_tasks(tmp_path, text))
    assert message.startswith("tasks.yaml: ")
    assert expected in message
    assert message.isprintable()


def test_a_billion_laughs_are_refused_at_once(tmp_path: Path) -> None:
    """Aliases that would expand to gigabytes are never expanded."""
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "used again by an alias" in complaint(write_tasks(tmp_path, "\n".join(lines)))


def test_an_oversized_yaml_is_refused(tmp_path: Path) -> None:
    """YAML is slow to parse, so its bound is lower."""
    path = write_tasks(tmp_path, "x: " + "y" * 1_000_001)
    with pytest.raises(InputError, match="is larger than 1 MB"):
        load(path)


def test_yaml_is_imported_only_when_a_yaml_file_is_read(tmp_path: Path) -> None:
    """Who has a prd.json never pays for a YAML parser."""
    code = "import sys, ralphloop.stories.source; sys.exit('ruamel.yaml' in sys.modules)"
    source = Path(__file__).parents[2] / "src"
    environment = {"PYTHONPATH": str(source)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert done.returncode == 0
