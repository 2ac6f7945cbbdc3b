"""How the state of a story is stored: the keys of all its parts side by side.

The first version knew no parts, and what it wrote loads for ever; so does what we write, in every
version there ever was.  A key belongs to one part alone, and is never given to another.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from ralphloop.core.run_state import RunState, StoryState

Stored = dict[str, Any]


def _parts_of_stories() -> dict[str, frozenset[str]]:
    """The stored keys of each part."""
    parts = {}
    for field in msgspec.structs.fields(StoryState):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            inner = msgspec.structs.fields(field.type)
            parts[field.name] = frozenset(one.encode_name for one in inner)
    return parts


PARTS_OF_STORIES = _parts_of_stories()
_OUTSIDE = set(StoryState.__struct_fields__) - PARTS_OF_STORIES.keys()  # of any part


def stored_story(state: StoryState) -> Stored:
    """The state as it is stored, without its defaults."""
    stored = Stored(msgspec.to_builtins(state))
    for part in PARTS_OF_STORIES:
        stored |= stored.pop(part, {})
    return stored


def story_in_parts(stored: object) -> object:
    """What was stored, part by part, to be read as a `StoryState`; what no part knows is left out.

    What is no state at all stays what it is: whoever reads it says so.
    """
    if not isinstance(stored, Mapping):
        return stored
    whole = {name: stored[name] for name in _OUTSIDE & stored.keys()}
    for part, keys in PARTS_OF_STORIES.items():
        whole[part] = {key: stored[key] for key in keys & stored.keys()}
    return whole


def stored_run_state(state: RunState) -> Stored:
    """A run's state with its stories, as it is stored."""
    stored = Stored(msgspec.to_builtins(msgspec.structs.replace(state, stories={})))
    if state.stories:
        stored["stories"] = {name: stored_story(one) for name, one in state.stories.items()}
    return stored


def run_state_in_parts(stored: object) -> object:
    """The same, to be read as a `RunState`."""
    if not isinstance(stored, Mapping):
        return stored
    stories = stored.get("stories", {})
    if not isinstance(stories, Mapping):
        return stored
    return {**stored, "stories": {name: story_in_parts(one) for name, one in stories.items()}}
