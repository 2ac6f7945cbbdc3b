"""Adding, replacing, moving and removing stories in the text of their file.

The list is taken as pieces of text, one per story, and put together anew from those pieces and new
ones; what stands before, between and after them stays as it is.  The result is read again before
anybody else sees it: either the data is exactly what was asked for, or the edit is refused.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from ralphloop.errors import InputError, UsageError
from ralphloop.stories import shapes
from ralphloop.stories.documents import JsonDocument, YamlDocument
from ralphloop.stories.names import label
from ralphloop.stories.shapes import Listing, Problems
from ralphloop.stories.source import StoryText, decoded, load, rewrite, story_text

Entry = Mapping[str, object]
Arrange = Callable[[list[int | Entry], Listing], list[int | Entry]]


def rearrange(path: Path, arrange: Arrange, *, within: Path | None = None) -> None:
    """Let `arrange` say which stories the list has, by position or anew, and write just that."""

    def arranged(data: bytes) -> bytes:
        text = story_text(path, data)
        listing = shapes.find_list(text.document.data, Problems(path))
        wanted = arrange(list(range(len(listing.entries))), listing)
        after = text.encoded(_put_together(path, text, listing, wanted))
        load(path, data=after)  # says what is wrong with it; nothing was written yet
        return after

    rewrite(path, arranged, within=within)


def position(listing: Listing, story: str) -> int:
    for index, raw in enumerate(listing.entries):
        if shapes.identity(raw) == story:
            return index
    raise UsageError(f"there is no story {label(story)}", "`ralph stories` lists them.")


def _put_together(path: Path, text: StoryText, listing: Listing, wanted: list[int | Entry]) -> str:
    document = text.document
    made = _yaml(document, listing, wanted) if isinstance(document, YamlDocument) else None
    if isinstance(document, JsonDocument):
        made = _json(document, listing, wanted)
    expected = [listing.entries[one] if isinstance(one, int) else dict(one) for one in wanted]
    try:
        data = decoded(path, made) if made is not None else None
    except InputError:
        data = None
    if data != {**listing.root, listing.key: expected}:
        raise InputError(
            "the list cannot be changed in place", f"Edit {path} by hand.", place=path.name
        )
    return made or ""


def _json(document: JsonDocument, listing: Listing, wanted: list[int | Entry]) -> str:
    text, spans = document.text, document.spans(listing.key)
    if not spans:
        raise InputError("the list is empty", "Add the first story by hand.")
    start, end = spans[0][0], spans[-1][1]
    before = text[:start]
    alone = f",{before[len(before.rstrip()) :] or ' '}"
    between = text[spans[0][1] : spans[1][0]] if len(spans) > 1 else alone
    line = text[:start].rpartition("\n")[2]
    margin = line if not line.strip() else None
    pieces = [
        text[slice(*spans[one])] if isinstance(one, int) else _written(one, margin)
        for one in wanted
    ]
    return text[:start] + between.join(pieces) + text[end:]


def _written(entry: Entry, margin: str | None) -> str:
    """A new entry, indented like its neighbours; on one line where they are."""
    if margin is None:
        return json.dumps(entry, ensure_ascii=False)
    step = "\t" if "\t" in margin else " " * max(1, len(margin) // 2)
    return json.dumps(entry, ensure_ascii=False, indent=step).replace("\n", f"\n{margin}")


def _yaml(document: YamlDocument, listing: Listing, wanted: list[int | Entry]) -> str | None:
    """Entries of a block list as whole lines, from dash to dash."""
    text, starts, end = document.text, *document.entry_lines(listing.key)
    if not starts:
        return None
    ends = [*starts[1:], end]
    margin = re.match(r"[ \t]*-[ \t]*", text[starts[0] :])
    dash = margin[0] if margin else "- "
    pieces = [
        text[starts[one] : ends[one]] if isinstance(one, int) else _yaml_entry(one, dash)
        for one in wanted
    ]
    joined = "".join(piece if piece.endswith("\n") else f"{piece}\n" for piece in pieces)
    return text[: starts[0]] + joined + text[end:]


def _yaml_entry(entry: Entry, dash: str) -> str:
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
    return dash + f"\n{' ' * len(dash)}".join(lines) + "\n"
