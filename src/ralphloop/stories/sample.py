"""The stories that `ralph init` writes to show what one looks like; nobody wants them built."""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from ralphloop.stories import shapes
from ralphloop.stories.shapes import Listing

_BLANK = re.compile(r"\{\{.*?\}\}")


def is_sample(listing: Listing) -> bool:
    """True for nobody's stories: those of `ralph init` to the letter, or none."""
    return all(raw in _sample() for raw in listing.entries)


def sample_ids(listing: Listing) -> Iterator[str]:
    """The stories that are still the sample's, to the letter: what a person changed is theirs."""
    for raw in listing.entries:
        if raw in _sample():
            yield shapes.identity(raw) or ""


@cache
def _sample() -> list[object]:
    template = files("ralphloop.prompts").joinpath("templates/prd.json.j2")
    text = _BLANK.sub('""', template.read_text(encoding="utf-8"))
    stories: list[object] = json.loads(text)["userStories"]
    return stories
