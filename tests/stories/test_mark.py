"""Marking a story in prd.json: one value changes, everything else stays to the byte."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralphloop.errors import InputError, RepositoryError
from ralphloop.stories import source
from ralphloop.stories.source import load, mark
from tests.kill_points import to_be_killed_at
from tests.stories.builders import raw_story, write_prd, write_text

SLOT = "@@slot@@"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
unknown_fields = st.dictionaries(
    st.sampled_from(["x-team", "labels", "é", "", "Passes", "passes ", "estimate", "a.b"]),
    json_values,
    max_size=4,
)


@st.composite
def styles(draw: st.DrawFn) -> dict[str, Any]:
    """Any way the standard library can write JSON."""
    indent = draw(st.sampled_from([None, 0, 1, 2, 4, "\t"]))
    item = draw(st.sampled_from([",", ", "]))
    colon = draw(st.sampled_from([":", ": ", " : "]))
    return {
        "indent": indent,
        "separators": (item, colon),
        "ensure_ascii": draw(st.booleans()),
        "newline": draw(st.sampled_from(["\n", "\r\n"])),
        "end": draw(st.sampled_from(["", "\n", "\r\n", "  \n\n"])),
        "bom": draw(st.sampled_from([b"", b"\xef\xbb\xbf"])),
    }


def written(data: object, style: dict[str, Any]) -> bytes:
    """The bytes of some data in this style."""
    options = {key: style[key] for key in ("indent", "separators", "ensure_ascii")}
    text: str = json.dumps(data, **options).replace("\n", style["newline"]) + style["end"]
    bom: bytes = style["bom"]
    return bom + text.encode()


@st.composite
def prds(draw: st.DrawFn, *, with_mark: bool) -> tuple[dict[str, Any], int]:
    """A prd with unknown fields everywhere, and the story to mark in it."""
    count = draw(st.integers(1, 4))
    stories = []
    for number in range(count):
        fields = {**raw_story(f"S-{number}"), **draw(unknown_fields), "passes": False}
        names = draw(st.permutations(sorted(fields)))
        stories.append({name: fields[name] for name in names})
    target = draw(st.integers(0, count - 1))
    if with_mark:
        stories[target]["passes"] = SLOT
    else:
        del stories[target]["passes"]
    root = {**draw(unknown_fields), "userStories": stories, "meta": draw(json_values)}
    return root, target


@settings(max_examples=100, deadline=None)
@given(prd=prds(with_mark=True), style=styles(), passes=st.booleans())
def test_only_the_value_of_the_mark_changes(
    tmp_path_factory: pytest.TempPathFactory,
    prd: tuple[dict[str, Any], int],
    style: dict[str, Any],
    passes: bool,
) -> None:
    """Whatever the file's style and unknown keys, all bytes but those of the value stay."""
    template = written(prd[0], style)
    path = tmp_path_factory.getbasetemp() / "prd.json"
    slot = json.dumps(SLOT).encode()
    path.write_bytes(template.replace(slot, json.dumps(not passes).encode()))
    mark(path, {f"S-{prd[1]}": passes})
    assert path.read_bytes() == template.replace(slot, json.dumps(passes).encode())


@settings(max_examples=100, deadline=None)
@given(prd=prds(with_mark=False), style=styles())
def test_a_missing_mark_is_added_in_the_style_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, prd: tuple[dict[str, Any], int], style: dict[str, Any]
) -> None:
    """A story without `passes` gets one as its last key, as if the file had been written so."""
    path = tmp_path_factory.getbasetemp() / "prd.json"
    path.write_bytes(written(prd[0], style))
    mark(path, {f"S-{prd[1]}": True})
    prd[0]["userStories"][prd[1]]["passes"] = True
    assert path.read_bytes() == written(prd[0], style)


def test_odd_spacing_and_escapes_survive(tmp_path: Path) -> None:
    """A file no tool would write is left as its author wrote it."""
    text = (
        '{ "userStories" :[\r\n\t{"title":"\\u00e9\\/é","id":"A" , "pa\\u0073ses"\n:\tfalse ,"n":1.50e+2},\n'
        '    {"id":"B","title":"b","passes":false}] ,"z":[ ]}'
    )
    path = write_text(tmp_path, text)
    mark(path, {"A": True})
    assert path.read_bytes() == text.replace("\tfalse ,", "\ttrue ,").encode()


@pytest.mark.parametrize(
    "before, after",
    [
        ('{"id":1,"title":"t"}', '{"id":1,"title":"t","passes":true}'),
        ('{ "id": 1, "title": "t" }', '{ "id": 1, "title": "t", "passes": true }'),
        ('{\n "id": 1,\n "title": "t"\n}', '{\n "id": 1,\n "title": "t",\n "passes": true\n}'),
        ('{"id": 1, "passes": null, "title": "t"}', '{"id": 1, "passes": true, "title": "t"}'),
        ('{"id": 1, "title": "t", "status": "open"}', '{"id": 1, "title": "t", "status": "done"}'),
        (
            '{"id": 1, "title": "t", "status": "open", "passes": false}',
            '{"id": 1, "title": "t", "status": "open", "passes": true}',
        ),
    ],
)
def test_the_field_that_counts_is_the_one_written(tmp_path: Path, before: str, after: str) -> None:
    """`passes` is written where it is, or where no status stands; else the status is."""
    path = write_text(tmp_path, f'{{"userStories": [{before}]}}')
    mark(path, {"1": True})
    assert path.read_text() == f'{{"userStories": [{after}]}}'
    assert load(path).list.stories[0].passes


def test_a_status_is_written_in_the_words_of_the_file(tmp_path: Path) -> None:
    """Where other stories say `Completed` and `todo`, so do we."""
    path = write_prd(
        tmp_path,
        raw_story("A", status="Completed"),
        raw_story("B", status="todo"),
        raw_story("C", status="doing"),
    )
    mark(path, {"C": True})
    mark(path, {"A": False})
    statuses = [raw["status"] for raw in json.loads(path.read_text())["userStories"]]
    assert statuses == ["todo", "todo", "Completed"]


def test_marking_twice_writes_once(tmp_path: Path) -> None:
    """A mark that is there already is not written again."""
    path = write_prd(tmp_path, raw_story("A"))
    mark(path, {"A": True})
    first = path.stat()
    mark(path, {"A": True})
    mark(path, {"A": True})
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)


def test_an_open_story_without_a_mark_needs_none(tmp_path: Path) -> None:
    """To say that a story is open, nothing is added to the file."""
    path = write_prd(tmp_path, raw_story("A"), raw_story("B", status="todo"))
    before = path.read_bytes()
    mark(path, {"A": False, "B": False})
    assert path.read_bytes() == before


def test_a_mark_of_the_wrong_type_is_replaced(tmp_path: Path) -> None:
    """What an agent wrote instead of true or false gives way to the supervisor's word."""
    write_prd(tmp_path, raw_story("A"), raw_story("B"))
    path = write_prd(tmp_path, raw_story("A", passes="done"), raw_story("B", passes="done"))
    mark(path, {"A": True, "B": False})
    assert [story.passes for story in load(path).list.stories] == [True, False]


def test_a_mark_shows_in_the_list(tmp_path: Path) -> None:
    """After marking, the list with the marks says what the file says."""
    path = write_prd(tmp_path, raw_story("A"), raw_story("B"))
    known = load(path).list
    mark(path, {"B": True})
    assert known.with_passes({"B": True}) == load(path).list
    assert load(path).list.passed == 1


def test_several_marks_are_one_write(tmp_path: Path) -> None:
    """Claims are put back together, in whatever order they are given."""
    path = write_prd(tmp_path, *(raw_story(n, passes=bool(n % 2)) for n in range(6)))
    mark(path, {"5": False, "0": True, "3": False, "4": False})
    assert [story.passes for story in load(path).list.stories] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_an_edit_by_a_person_is_kept(tmp_path: Path) -> None:
    """What somebody changed since loading, around the mark, stays."""
    write_prd(tmp_path, raw_story("A"), raw_story("B"))
    edited = {"userStories": [raw_story("New"), raw_story("A", title="Better words", x=1)], "y": 2}
    path = write_text(tmp_path, json.dumps(edited, indent=3))
    mark(path, {"A": True})
    edited["userStories"][1]["passes"] = True  # type: ignore[index]
    assert path.read_text() == json.dumps(edited, indent=3)


def mark_while_somebody_saves(path: Path, edits: Iterable[str]) -> None:
    """Mark story A; right before we write, a person saves the file, as often as there are edits."""
    saved = iter(edits)

    def change(data: bytes) -> bytes:
        if text := next(saved, None):
            path.write_text(text)
        return source.marked(path, data, {"A": True})

    source.rewrite(path, change, within=None)


def test_a_file_changed_between_read_and_write_is_not_overwritten(tmp_path: Path) -> None:
    """An edit that falls into the moment of writing wins, also where no mark can be made then."""
    path = write_prd(tmp_path, raw_story("A"))
    with pytest.raises(InputError, match="not valid JSON"):
        mark_while_somebody_saves(path, ["[a person was faster"])
    assert path.read_text() == "[a person was faster"


def test_a_mark_that_met_an_edit_is_made_again(tmp_path: Path) -> None:
    """Both the person's edit and our mark are in the file in the end."""
    path = write_prd(tmp_path, raw_story("A", passes=False))
    edited = path.read_text().replace("Story A", "Other words")
    mark_while_somebody_saves(path, [edited])
    assert path.read_text() == edited.replace("false", "true")


def test_a_file_that_never_rests_is_an_error(tmp_path: Path) -> None:
    """Somebody who saves the file all the time is named, and wins."""
    path = write_prd(tmp_path, raw_story("A"))
    text = path.read_text()
    with pytest.raises(RepositoryError, match="keeps changing the file"):
        mark_while_somebody_saves(path, (text + " " * n for n in range(1, 100)))
    assert path.read_text().strip() == text.strip()


@pytest.mark.parametrize(
    "now, reason",
    [
        ({"userStories": [raw_story("B")]}, "the story A is no longer in the file"),
        ({"userStories": [raw_story("A"), raw_story("A")]}, 'two stories have the id "A"'),
        ({"userStories": {}}, "must be a list"),
        ([], "must be an object"),
    ],
)
def test_a_mark_that_has_no_place_any_more_is_an_error(
    tmp_path: Path, now: object, reason: str
) -> None:
    """If the story vanished or the file broke, nothing is written and the reason is said."""
    write_prd(tmp_path, raw_story("A"))
    path = write_text(tmp_path, json.dumps(now))
    with pytest.raises(InputError, match=r"prd\.json: ") as caught:
        mark(path, {"A": True})
    assert reason in caught.value.message
    assert path.read_text() == json.dumps(now)


def test_a_problem_elsewhere_does_not_keep_a_mark_away(tmp_path: Path) -> None:
    """A mistake somebody made in another story meanwhile does not lose this one's result."""
    write_prd(tmp_path, raw_story("A"), raw_story("B"))
    path = write_prd(tmp_path, raw_story("A"), {"id": "B", "dependsOn": ["nobody"]}, 7)
    mark(path, {"A": True})
    assert json.loads(path.read_text())["userStories"][0]["passes"] is True


def test_mode_and_links_are_kept(tmp_path: Path) -> None:
    """The file keeps its permissions, and a link to it stays a link."""
    path = write_prd(tmp_path, raw_story("A"))
    path.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    mark(link, {"A": True})
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert load(path).list.stories[0].passes


def test_a_link_that_leads_out_of_the_project_is_not_written_through(tmp_path: Path) -> None:
    """An agent that replaces the file by a link elsewhere does not make us write there."""
    outside = tmp_path / "outside"
    outside.mkdir()
    target = write_prd(outside, raw_story("A"))
    before = target.read_bytes()
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "prd.json").symlink_to(target)
    with pytest.raises(RepositoryError):
        mark(inside / "prd.json", {"A": True}, within=inside)
    assert target.read_bytes() == before


def test_a_crash_before_the_rename_leaves_the_old_file(tmp_path: Path) -> None:
    """A process killed when the new content is written but not in place has changed nothing."""
    path = write_prd(tmp_path, raw_story("A"))
    before = path.read_bytes()
    ended = mark_in_another_process(path, kill_at="atomic.written")
    assert ended == -signal.SIGKILL
    assert path.read_bytes() == before
    assert mark_in_another_process(path, kill_at="") == 0
    assert load(path).list.stories[0].passes


def test_a_crash_after_the_rename_leaves_the_new_file(tmp_path: Path) -> None:
    """A process killed right after the file is in place has done all of it."""
    path = write_prd(tmp_path, raw_story("A"))
    assert mark_in_another_process(path, kill_at="atomic.renamed") == -signal.SIGKILL
    assert load(path).list.stories[0].passes


def mark_in_another_process(path: Path, kill_at: str) -> int:
    """Mark story A in a process of its own and give its exit code."""
    code = (
        "import sys; from pathlib import Path; from ralphloop.stories.source import mark;"
        "mark(Path(sys.argv[1]), {'A': True})"
    )
    return run_python(code, path, **(to_be_killed_at(kill_at) if kill_at else {}))


def run_python(code: str, path: Path, **environment: str) -> int:
    """Run code that gets the path as its argument."""
    source = Path(__file__).parents[2] / "src"
    command = [sys.executable, "-c", code, str(path)]
    full = {**os.environ, "PYTHONPATH": str(source), **environment}
    return subprocess.run(command, env=full, check=False).returncode


def test_a_disk_that_takes_no_more_is_named(tmp_path: Path) -> None:
    """When the new content does not fit, the error says so and the old file is whole."""
    path = write_prd(tmp_path, raw_story("A"))
    before = path.read_bytes()
    code = (
        "import resource, sys; from pathlib import Path;"
        "from ralphloop.errors import RepositoryError; from ralphloop.stories.source import mark;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))\n"
        "try: mark(Path(sys.argv[1]), {'A': True})\n"
        "except RepositoryError as error: sys.exit(int('prd.json' not in error.message))\n"
        "else: sys.exit(2)"
    )
    assert run_python(code, path) == 0
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_named(tmp_path: Path) -> None:
    """A mark that cannot be written says so and leaves the file."""
    path = write_prd(tmp_path, raw_story("A"))
    before = path.read_bytes()
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(RepositoryError, match=r"prd\.json"):
            mark(path, {"A": True})
    finally:
        tmp_path.chmod(0o700)
    assert path.read_bytes() == before


def test_deeply_nested_unknown_data_is_kept(tmp_path: Path) -> None:
    """Data nested as deeply as we can read it is passed over unharmed."""
    deep = "[" * 200 + "]" * 200
    text = f'{{"userStories": [{{"id": "A", "deep": {deep}, "title": "t", "passes": false}}]}}'
    path = write_text(tmp_path, text)
    mark(path, {"A": True})
    assert path.read_text() == text.replace("false", "true")
