"""Where stories come from: find the file, load it, mark a story in it.

Loading validates everything at once and changes nothing.  Marking trusts nothing read earlier: the
file is read again, the story found by its id, one value spliced into the text and the file
replaced, unless somebody wrote it in between (then once more).  So a person may edit the file
while a run goes on, and marking twice is the same as once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ralphloop.core.story import Kind, StoryList
from ralphloop.errors import InputError, RepositoryError
from ralphloop.stories import files, graph, shapes
from ralphloop.stories.fields import Problems
from ralphloop.stories.json_text import JsonDocument
from ralphloop.stories.names import label, quoted

if TYPE_CHECKING:
    from ralphloop.stories.yaml_text import YamlDocument

_NAMES = ("prd.json", "tasks.yaml", "tasks.yml")
_YAML_SUFFIXES = frozenset({".yaml", ".yml"})
_WAYS_OUT = (
    "Run `ralph init` to make one, name it with `--prd FILE`, "
    "or use `--prompt FILE` for a plain loop without stories."
)
_WRITE_ATTEMPTS = 5


class StoryFile:
    """One story file: what it said when it was loaded, and the way to mark stories in it."""

    def __init__(self, path: Path, story_list: StoryList, *, within: Path | None = None) -> None:
        self.path = path
        self.list = story_list
        self._within = within

    def mark(self, story_id: str, passes: bool) -> None:
        """Set one story's mark in the file, and nothing else."""
        self.mark_all({story_id: passes})

    def mark_all(self, wanted: Mapping[str, bool]) -> tuple[bytes, bytes]:
        """Set several marks in one write; the content of the file before and after it."""
        for _ in range(_WRITE_ATTEMPTS):
            before = files.read(self.path, _format(self.path).max_bytes)
            after = _marked(self.path, before.data, wanted)
            if after == before.data or files.replace(self.path, after, before, within=self._within):
                self.list = self.list.with_passes(wanted)
                return before.data, after
        reason = f"{self.path.name}: somebody keeps changing the file while we write it"
        raise RepositoryError(reason, f"Close what writes {self.path} and run again.")


def find_source(specs_dir: Path) -> Path:
    """The story file of a directory: prd.json, else tasks.yaml."""
    if specs_dir.is_file():
        reason = "is a file; a directory with a prd.json was expected"
        raise InputError(reason, f"Use `--prd {specs_dir}`.", place=str(specs_dir))
    for name in _NAMES:
        if (specs_dir / name).exists():
            return specs_dir / name
    if not specs_dir.is_dir():
        raise InputError("there is no such directory", _WAYS_OUT, place=str(specs_dir))
    raise InputError(f"no prd.json or tasks.yaml in {specs_dir}", _WAYS_OUT)


def load(path: Path, *, within: Path | None = None) -> StoryFile:
    """Read and validate a story file; everything wrong with it is one error.

    Marks are written through links, but never to a file outside `within`.
    """
    problems = Problems(path)
    text = files.decode(files.read(path, _format(path).max_bytes).data, path)
    listing = shapes.find_list(_document(path, text.content, problems).data, problems)
    story_list = shapes.read_list(listing, source=str(path), kind=_kind(path), problems=problems)
    graph.check(story_list.stories, listing, problems)
    problems.raise_if_any()
    return StoryFile(path, story_list, within=within)


def _kind(path: Path) -> Kind:
    return "tasks" if path.suffix in _YAML_SUFFIXES else "prd"


def _format(path: Path) -> type[JsonDocument | YamlDocument]:
    if path.suffix not in _YAML_SUFFIXES:
        return JsonDocument
    from ralphloop.stories.yaml_text import YamlDocument

    return YamlDocument


def _document(path: Path, text: str, problems: Problems) -> JsonDocument | YamlDocument:
    if not text.strip():
        raise problems.fail("", "is empty")
    document = _format(path)(text, problems)
    problems.raise_if_any()
    return document


def _marked(path: Path, data: bytes, wanted: Mapping[str, bool]) -> bytes:
    """The bytes of the file with these stories marked, the same ones if they are already."""
    problems = Problems(path)
    text = files.decode(data, path)
    document = _document(path, text.content, problems)
    listing = shapes.find_list(document.data, problems)
    edits = _edits(listing.entries, wanted, path)
    return text.encoded(document.with_values(listing.key, edits)) if edits else data


def _edits(
    entries: list[object], wanted: Mapping[str, bool], path: Path
) -> dict[int, tuple[str, bool | str]]:
    places = _places(entries, wanted, path)
    words = shapes.status_words(entries)
    return {
        index: shapes.mark_for(raw, wanted[name], words)
        for name, (index, raw) in places.items()
        if not shapes.says(raw, wanted[name])
    }


def _places(
    entries: list[object], wanted: Mapping[str, bool], path: Path
) -> dict[str, tuple[int, dict[object, object]]]:
    """Where each wanted story stands; each must stand there exactly once."""
    places: dict[str, tuple[int, dict[object, object]]] = {}
    for index, raw in enumerate(entries):
        name = shapes.identity(raw)
        if name is None or name not in wanted or not isinstance(raw, dict):
            continue
        if name in places:
            raise _cannot_mark(path, f"two stories have the id {quoted(name)}")
        places[name] = (index, raw)
    for name in wanted:
        if name not in places:
            raise _cannot_mark(path, f"the story {label(name)} is no longer in the file")
    return places


def _cannot_mark(path: Path, reason: str) -> InputError:
    return InputError(reason, f"Correct {path}; nothing was changed.", place=path.name)
