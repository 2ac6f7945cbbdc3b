"""The first story of an empty list is written as the file is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop.stories.source import load
from tests.conftest import RunRalph

EMPTY = {
    "one line": ("prd.json", '{"project": "x", "userStories": []}'),
    "lines": ("prd.json", '{\n  "project": "x",\n  "userStories": [],\n  "name": "y"\n}\n'),
    "tabs": ("prd.json", '{\n\t"userStories": [\n\t]\n}\n'),
    "yaml": ("tasks.yaml", "project: x\ntasks: []\nname: y\n"),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_a_story_can_be_added_to_nothing(tmp_path: Path, run_ralph: RunRalph, kind: str) -> None:
    """Everything else in the file stays; a second one stands behind it."""
    name, text = EMPTY[kind]
    path = tmp_path / name
    path.write_text(text)
    for title in ("Greet by name", "Greet loudly"):
        done = run_ralph("stories", "add", title, "-c", "`greet Ada` prints Hello", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    stories = load(path).list.stories
    assert [story.title for story in stories] == ["Greet by name", "Greet loudly"]
    written = path.read_text()
    assert ("\n" in written) is ("\n" in text)
    for word in ("project", "name: y", '"name": "y"'):
        assert (word in text) is (word in written)
