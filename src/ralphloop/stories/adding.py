"""A new story in a file of stories, spliced in so that everything else stays as it is written."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ralphloop.stories import shapes
from ralphloop.stories.documents import Entry
from ralphloop.stories.names import next_id
from ralphloop.stories.sample import is_sample
from ralphloop.stories.shapes import Listing
from ralphloop.stories.source import position, rearrange


def add_story(path: Path, fields: Mapping[str, object], *, after: str | None = None) -> str:
    """Add a story with these fields, at the end or behind another one; its id.

    Without an `id` it gets the next number; empty fields are left out.  The first one takes the
    place of the sample of `ralph init`.
    """
    made: list[str] = []

    def arranged(now: list[int | Entry], listing: Listing) -> list[int | Entry]:
        if is_sample(listing):
            now = []
            listing = msgspec.structs.replace(listing, entries=[])
        known = [shapes.identity(raw) or "" for raw in listing.entries]
        story = str(fields.get("id") or next_id(known))
        made[:] = [story]
        given = {"id": story, **{key: value for key, value in fields.items() if key != "id"}}
        entry = {key: value for key, value in given.items() if value not in ("", [], None)}
        at = len(now) if after is None else position(listing, after) + 1
        return [*now[:at], entry | {"passes": False}, *now[at:]]

    rearrange(path, arranged)
    return made[0]
