"""Small story files and lists for the tests of this room."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralphloop.core.model import Story, StoryList
from ralphloop.errors import ExitCode, InputError
from ralphloop.stories.source import load


def raw_story(story_id: object = "US-001", **fields: object) -> dict[str, Any]:
    """A raw story with what every story needs."""
    return {"id": story_id, "title": f"Story {story_id}", **fields}


def write_prd(directory: Path, *stories: object, **root: object) -> Path:
    """A prd.json with these raw stories."""
    path = directory / "prd.json"
    path.write_text(json.dumps({"userStories": list(stories), **root}, indent=2) + "\n")
    return path


def write_text(directory: Path, text: str, name: str = "prd.json") -> Path:
    """A story file with exactly this text."""
    path = directory / name
    path.write_bytes(text.encode())
    return path


def only_story(directory: Path, **fields: object) -> Story:
    """Load a prd.json with one story and give that story."""
    return load(write_prd(directory, raw_story(**fields))).list.stories[0]


def complaint(path: Path) -> str:
    """What loading says about a bad file; it must exit 65 and leave the file alone."""
    before = path.read_bytes()
    with pytest.raises(InputError) as caught:
        load(path)
    assert path.read_bytes() == before
    assert caught.value.exit_code == ExitCode.BAD_INPUT
    assert caught.value.next_step
    return caught.value.message


def story_list(*stories: Story) -> StoryList:
    """A list of stories, numbered in this order."""
    numbered = [_numbered(story, index) for index, story in enumerate(stories)]
    return StoryList(stories=tuple(numbered), source="prd.json")


def story(story_id: str, **fields: Any) -> Story:
    """One story; its place in the file is set by `story_list`."""
    return Story(**{"id": story_id, "title": f"Story {story_id}", "index": 0, **fields})


def _numbered(one: Story, index: int) -> Story:
    return Story(**{**{name: getattr(one, name) for name in one.__struct_fields__}, "index": index})
