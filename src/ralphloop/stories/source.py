"""Where stories come from: find the file, load it, mark a story in it.

Loading validates everything at once and changes nothing.  Marking trusts nothing read earlier: the
file is read again, the story found by its id, one value spliced into the text and the file
replaced, unless somebody wrote it in between (then once more).  So a person may edit the file
while a run goes on, and marking twice is the same as once.  Reads are bounded and never block (an
agent may have left a pipe where a file was).

The spec file a story belongs to is read only if it lies inside the repository.  A story list is
untrusted and a spec ends up in a prompt, so `../../etc/passwd`, absolute paths, links that lead out
and git's own directory are errors, not reads.
"""

import codecs
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ralphloop.atomic import write_atomic
from ralphloop.core.story import Kind, Story, StoryList
from ralphloop.errors import InputError, RepositoryError
from ralphloop.room import read_regular
from ralphloop.stories import graph, shapes
from ralphloop.stories.documents import JsonDocument, YamlDocument
from ralphloop.stories.names import label, quoted
from ralphloop.stories.shapes import Listing, Problems

_NAMES = ("prd.json", "tasks.yaml", "tasks.yml")
_YAML_SUFFIXES = frozenset({".yaml", ".yml"})
_WAYS_OUT = (
    "Make one with `ralph plan` or `ralph init`, name it with `--prd FILE`, "
    "or use `--prompt FILE` for a plain loop without stories."
)
_WRITE_ATTEMPTS = 5
_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


class StoryFile:
    """One story file: what it said when it was loaded, and the way to mark stories in it."""

    def __init__(self, path: Path, story_list: StoryList, *, within: Path | None = None) -> None:
        self.path = path
        self.list = story_list
        self._within = within

    def mark(self, story_id: str, passes: bool) -> None:
        self.mark_all({story_id: passes})

    def mark_all(self, wanted: Mapping[str, bool]) -> tuple[bytes, bytes]:
        """Set several marks in one write; the content of the file before and after it."""
        change = partial(marked, self.path, wanted=wanted)
        before, after = rewrite(self.path, change, within=self._within)
        self.list = self.list.with_passes(wanted)
        return before, after


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


def load(path: Path, *, within: Path | None = None, data: bytes | None = None) -> StoryFile:
    """Read and validate a story file, or `data` in its place; all that is wrong is one error.

    Marks are written through links, but never to a file outside `within`.
    """
    problems, listing = Problems(path), story_text(path, data).listing
    kind: Kind = "tasks" if path.suffix in _YAML_SUFFIXES else "prd"
    story_list = shapes.read_list(listing, source=str(path), kind=kind, problems=problems)
    graph.check(story_list.stories, listing, problems)
    problems.raise_if_any()
    return StoryFile(path, story_list, within=within)


class StoryText(NamedTuple):
    """A story file as text, the list in it, and what it takes to make bytes of it again."""

    document: JsonDocument | YamlDocument
    listing: Listing
    bom: bytes
    codec: str

    def encoded(self, text: str) -> bytes:
        return self.bom + text.encode(self.codec)


def story_text(path: Path, data: bytes | None = None) -> StoryText:
    """What the file holds, or `data` in its place, as far as it is a list of anything."""
    data = read(path) if data is None else data
    (text, bom, codec), problems = _decoded(data, path), Problems(path)
    if not text.strip():
        raise problems.fail("", "is empty")
    document = _format(path)(text, problems)
    problems.raise_if_any()
    return StoryText(document, shapes.find_list(document.data, problems), bom, codec)


def _format(path: Path) -> type[JsonDocument | YamlDocument]:
    return YamlDocument if path.suffix in _YAML_SUFFIXES else JsonDocument


def marked(path: Path, data: bytes, wanted: Mapping[str, bool]) -> bytes:
    """The bytes of the file with these stories marked, the same ones if they are already."""
    text = story_text(path, data)
    listing = text.listing
    words, found = shapes.status_words(listing.entries), set[str]()
    edits: dict[int, tuple[str, bool | str]] = {}
    for index, raw in enumerate(listing.entries):
        name = shapes.identity(raw)
        if name is None or name not in wanted or not isinstance(raw, dict):
            continue
        if name in found:
            raise _cannot_mark(path, f"two stories have the id {quoted(name)}")
        found.add(name)
        if edit := shapes.mark_for(raw, wanted[name], words):
            edits[index] = edit
    for name in wanted:
        if name not in found:
            raise _cannot_mark(path, f"the story {label(name)} is no longer in the file")
    return text.encoded(text.document.with_values(listing.key, edits)) if edits else data


def _cannot_mark(path: Path, reason: str) -> InputError:
    return InputError(reason, f"Correct {path}; nothing was changed.", place=path.name)


# --- the file as bytes -----------------------------------------------------------------------


def read(path: Path) -> bytes:
    """The whole file, refused where it is none or too large."""
    max_bytes = _format(path).max_bytes
    try:
        data = read_regular(path, most=max_bytes + 1)
    except OSError as error:
        reason = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise InputError(reason, f"Check {path}.", place=path.name) from None
    if len(data) > max_bytes:
        reason = f"is larger than {max_bytes // 1_000_000} MB"
        raise InputError(reason, "Split it into several files.", place=path.name)
    return data


def rewrite(
    path: Path, changed: Callable[[bytes], bytes], *, within: Path | None
) -> tuple[bytes, bytes]:
    """Change the file's content, again where somebody wrote it meanwhile; before and after."""
    for _ in range(_WRITE_ATTEMPTS):
        before = read(path)
        after = changed(before)
        if after == before or replace(path, after, before, within=within):
            return before, after
    reason = f"{path.name}: somebody keeps changing the file while we write it"
    raise RepositoryError(reason, f"Close what writes {path} and run again.")


def replace(path: Path, data: bytes, before: bytes, *, within: Path | None) -> bool:
    """Put `data` in the file's place; False, and nothing done, if that no longer is `before`."""
    if read(path) != before:
        return False
    write_atomic(path, data, within=within)
    return True


def _decoded(data: bytes, path: Path) -> tuple[str, bytes, str]:
    """The text, its byte order mark and its codec: UTF-8 unless such a mark says otherwise."""
    bom = next((bom for bom in _BOMS if data.startswith(bom)), b"")
    codec = _BOMS.get(bom, "utf-8")
    try:
        return data[len(bom) :].decode(codec), bom, codec
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, len(bom) + error.start) + 1
        place = f"{path.name}: line {line}"
        step = f"Save {path} as UTF-8 and run the command again. Nothing was changed."
        raise InputError("is not UTF-8 text", step, place=place) from None


# --- parent specs ----------------------------------------------------------------------------


def resolve_parent_spec(story: Story, *, specs_dir: Path, repo_root: Path) -> Path | None:
    """The real path of the story's spec, looked for in the specs directory, then the root."""
    if story.parent_spec is None:
        return None
    if Path(story.parent_spec).is_absolute():
        raise _no_spec(story, "must be relative to the repository")
    root, bases = Path(os.path.realpath(repo_root)), list(dict.fromkeys((specs_dir, repo_root)))
    is_inside = False
    for candidate in (base / story.parent_spec for base in bases):
        # Not Path.resolve: it raises on loops of links.
        real = Path(os.path.realpath(candidate))
        if real.is_relative_to(root) and ".git" not in real.relative_to(root).parts:
            is_inside = True
            if os.path.isfile(real):  # noqa: PTH113 - Path.is_file raises on too long names
                return real
        elif os.path.lexists(candidate):
            raise _no_spec(story, "leads out of the repository")
    looked = f"is not a file in {' or '.join(map(str, bases))}"
    raise _no_spec(story, looked if is_inside else "leads out of the repository")


def _no_spec(story: Story, reason: str) -> InputError:
    return InputError(
        f"{quoted(story.parent_spec or '')} {reason}",
        "Point parent_spec to a file of this repository, or remove it.",
        place=f"story {label(story.id)}: parent_spec",
    )
