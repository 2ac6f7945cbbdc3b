"""Adding, replacing, moving and removing stories in the text of their file.

The list is taken as pieces of text, one per story, and put together anew from those pieces and new
ones; what stands before, between and after them stays as it is.  The result is read again before
anybody else sees it: either the data is exactly what was asked for, or the edit is refused.
"""

from collections.abc import Callable
from pathlib import Path

from ralphloop.errors import InputError, UsageError
from ralphloop.stories import shapes
from ralphloop.stories.documents import Entry
from ralphloop.stories.names import label
from ralphloop.stories.shapes import Listing
from ralphloop.stories.source import StoryText, load, rewrite, story_text

Arrange = Callable[[list[int | Entry], Listing], list[int | Entry]]


def rearrange(path: Path, arrange: Arrange) -> None:
    """Let `arrange` say which stories the list has, by position or anew, and write just that."""

    def arranged(data: bytes) -> bytes:
        text = story_text(path, data)
        wanted = arrange(list(range(len(text.listing.entries))), text.listing)
        after = _put_together(path, text, wanted)
        load(path, data=after)  # says what is wrong with it; nothing was written yet
        return after

    rewrite(path, arranged, within=None)


def position(listing: Listing, story: str) -> int:
    for index, raw in enumerate(listing.entries):
        if shapes.identity(raw) == story:
            return index
    raise UsageError(f"there is no story {label(story)}", "`ralph stories` lists them.")


def _put_together(path: Path, text: StoryText, wanted: list[int | Entry]) -> bytes:
    document, listing = text.document, text.listing
    whole, spans, made = document.text, document.spans(listing.key), b""
    if spans:
        before, after = whole[: spans[0][0]], whole[spans[-1][1] :]
        pieces = [
            whole[slice(*spans[one])] if isinstance(one, int) else document.written(one, before)
            for one in wanted
        ]
        made = text.encoded(before + document.joined(pieces, spans) + after)
    expected = [listing.entries[one] if isinstance(one, int) else dict(one) for one in wanted]
    try:
        data = story_text(path, made).document.data
    except InputError:
        data = None
    if data != {**listing.root, listing.key: expected}:
        reason = "the list cannot be changed in place"
        raise InputError(reason, f"Edit {path} by hand.", place=path.name)
    return made
