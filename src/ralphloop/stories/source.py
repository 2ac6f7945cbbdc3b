"""Where stories come from: find the file, load it, mark a story in it.

Marking trusts nothing read earlier: the file is read again, one value spliced into its text and the
file replaced, unless somebody wrote it in between (then once more).  So a person may edit the file
while a run goes on.  Reads never block: an agent may have left a pipe where a file was.  An edit of
the list is refused unless the data, read again, is exactly what was asked for.

Only the supervisor says what passed and only a person says what is asked.  Where an agent changed a
mark, it is a claim and is put back; a story that vanished is reported; one that asks for less than
before is tampering.  All other edits are simply the file as it is now.

A story list is untrusted and a spec ends up in a prompt: paths that lead out of the repository, or
into git's own directory, are errors, not reads.
"""

import codecs
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ralphloop.atomic import write_atomic
from ralphloop.core.model import Story, StoryList
from ralphloop.errors import InputError, RepositoryError, UsageError
from ralphloop.room import read_regular
from ralphloop.stories import graph, shapes
from ralphloop.stories.documents import Entry, JsonDocument, YamlDocument
from ralphloop.stories.names import essence, label, quoted
from ralphloop.stories.shapes import Listing, Problems

_NAMES = ("prd.json", "tasks.yaml", "tasks.yml")
_WAYS_OUT = (
    "Is your project elsewhere? Then `cd` there. Else make a list with `ralph plan` or"
    " `ralph init`, or name one: --prd FILE"
)
# Lists of other tools that `ralph plan` makes stories of, as people have them in a repository.
_OF_OTHERS = (
    ".ralph/fix_plan.md", "fix_plan.md", "@fix_plan.md", ".specify", "openspec", ".kiro/specs",
    ".taskmaster", ".beads", "backlog", "docs/plans",
)  # fmt: skip
_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


class StoryFile(NamedTuple):
    path: Path
    list: StoryList


def find_source(specs_dir: Path, *, other_ways: str = "") -> Path:
    """The story file of a directory: prd.json, else tasks.yaml; without one, ways out are told."""
    other = list_of_another_tool(specs_dir)
    found = f"There is {other}: `ralph plan {other}` makes stories of it. " if other else ""
    ways = f"{found}{_WAYS_OUT}{other_ways}."
    if specs_dir.is_file():
        reason = "is a file; a directory with a prd.json was expected"
        raise InputError(reason, f"Use `--prd {specs_dir}`.", place=str(specs_dir))
    for name in _NAMES:
        if (specs_dir / name).exists():
            return specs_dir / name
    if not specs_dir.is_dir():
        raise InputError("there is no such directory", ways, place=str(specs_dir))
    raise InputError(f"no prd.json or tasks.yaml in {specs_dir}", ways)


def list_of_another_tool(directory: Path) -> str:
    """What lies there that `ralph plan` can make stories of; empty where nothing does."""
    return next((name for name in _OF_OTHERS if (directory / name).exists()), "")


def load(path: Path, *, data: bytes | None = None) -> StoryFile:
    """Read and validate a story file, or `data` in its place; all that is wrong is one error."""
    problems = Problems(path)
    listing = story_text(path, data).listing
    story_list = shapes.read_list(listing, problems)
    graph.check(story_list.stories, listing, problems)
    problems.raise_if_any()
    return StoryFile(path, story_list)


class StoryText(NamedTuple):
    document: JsonDocument | YamlDocument
    listing: Listing
    bom: bytes
    codec: str


def story_text(path: Path, data: bytes | None = None) -> StoryText:
    """What the file holds, or `data` in its place, as far as it is a list of anything."""
    data = read(path) if data is None else data
    problems = Problems(path)
    # UTF-8 unless a byte order mark says otherwise.
    bom = next((bom for bom in _BOMS if data.startswith(bom)), b"")
    codec = _BOMS.get(bom, "utf-8")
    try:
        text = data[len(bom) :].decode(codec)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, len(bom) + error.start) + 1
        step = f"Save {path} as UTF-8 and run the command again. Nothing was changed."
        place = f"{path.name}: line {line}"
        raise InputError("is not UTF-8 text", step, place=place) from None
    if not text.strip():
        raise problems.fail("", "is empty")
    document = _format(path)(text, problems)
    problems.raise_if_any()
    return StoryText(document, shapes.find_list(document.data, problems), bom, codec)


def _format(path: Path) -> type[JsonDocument | YamlDocument]:
    return YamlDocument if path.suffix in shapes.YAML_SUFFIXES else JsonDocument


class Rewritten(NamedTuple):
    """A file's content around one write."""

    before: bytes
    after: bytes


def mark(path: Path, wanted: Mapping[str, bool], *, within: Path | None = None) -> Rewritten:
    """Set marks in one write, through no link out of `within`; the file before and after it."""
    return rewrite(path, partial(marked, path, wanted=wanted), within=within)


def marked(path: Path, data: bytes, wanted: Mapping[str, bool]) -> bytes:
    """The bytes of the file with these stories marked, the same ones if they are already."""
    document, listing, bom, codec = story_text(path, data)
    stories = {at: raw for at, raw in enumerate(listing.entries) if isinstance(raw, dict)}
    # The words this file uses for passed and open stories, else the usual ones.
    words = {True: "done", False: "pending"}
    found = set[str]()
    for raw in reversed(stories.values()):
        if (passed := shapes.status_passed(raw)) is not None:
            words[passed] = raw["status"]
    edits: dict[int, tuple[str, bool | str]] = {}
    for index, raw in stories.items():
        name = shapes.identity(raw)
        if name is None or name not in wanted:
            continue
        if name in found:
            raise _cannot_mark(path, f"two stories have the id {quoted(name)}")
        found.add(name)
        value = raw.get("passes")
        passed = shapes.status_passed(raw)
        passes = wanted[name]
        if passed is None and value is not passes and (passes or value is not None):
            edits[index] = "passes", passes
        elif passed is not None and passed != passes:
            edits[index] = "status", words[passes]
    for name in wanted:
        if name not in found:
            raise _cannot_mark(path, f"the story {label(name)} is no longer in the file")
    return bom + document.with_values(listing.key, edits).encode(codec) if edits else data


def _cannot_mark(path: Path, reason: str) -> InputError:
    return InputError(reason, f"Correct {path}; nothing was changed.", place=path.name)


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


def rewrite(path: Path, changed: Callable[[bytes], bytes], *, within: Path | None) -> Rewritten:
    """Change the file's content, again where somebody wrote it meanwhile; before and after."""
    for _ in range(5):
        before = read(path)
        after = changed(before)
        if after == before:
            return Rewritten(before, after)
        if read(path) == before:
            write_atomic(path, after, within=within)
            return Rewritten(before, after)
    reason = f"{path.name}: somebody keeps changing the file while we write it"
    raise RepositoryError(reason, f"Close what writes {path} and run again.")


Arrange = Callable[[list[int | Entry], Listing], list[int | Entry]]


def rearrange(path: Path, arrange: Arrange) -> None:
    """Let `arrange` say which stories the list has, by position or anew, and write just that."""

    def arranged(data: bytes) -> bytes:
        document, listing, bom, codec = story_text(path, data)
        wanted = arrange(list(range(len(listing.entries))), listing)
        whole = document.text
        spans = document.spans(listing.key)
        made = b""
        if spans:
            before = whole[: spans[0][0]]
            after = whole[spans[-1][1] :]
            pieces = [
                whole[slice(*spans[one])] if isinstance(one, int) else document.written(one, before)
                for one in wanted
            ]
            made = bom + (before + document.joined(pieces, spans) + after).encode(codec)
        elif not listing.entries:
            new = [one for one in wanted if not isinstance(one, int)]
            made = bom + document.filled(listing.key, new).encode(codec)
        expected = [listing.entries[one] if isinstance(one, int) else dict(one) for one in wanted]
        try:
            read_back = story_text(path, made).document.data
        except InputError:
            read_back = None
        if read_back != {**listing.root, listing.key: expected}:
            reason = "the list cannot be changed in place"
            raise InputError(reason, f"Edit {path} by hand.", place=path.name)
        load(path, data=made)  # says what is wrong with it; nothing was written yet
        return made

    rewrite(path, arranged, within=None)


def position(listing: Listing, story: str) -> int:
    for index, raw in enumerate(listing.entries):
        if shapes.identity(raw) == story:
            return index
    raise UsageError(f"there is no story {label(story)}", "`ralph stories` lists them.")


class ListChange(NamedTuple):
    """What an agent did to a story list that is not its to do."""

    marks: dict[str, bool]  # to put back
    less: dict[str, list[str]]  # stories that ask for less than they did, each with how


def compare(before: StoryList, after: StoryList) -> ListChange:
    """The marks to put back, and the stories that are less than they were."""
    old = {story.id: story for story in before.stories}
    new = {story.id: story for story in after.stories}
    passed = {story.id for story in before.stories if story.passes}
    # A new story that arrives as passed is a claim as well.
    marks = {
        name: name in passed for name, story in new.items() if story.passes != (name in passed)
    }
    less = {name: ["was removed from the list"] for name in old if name not in new}
    for name, story in new.items():
        if what := list(_weaker(old.get(name, story), story)):  # a new one is no less than itself
            less[name] = [f"asks for less: {words}" for words in what]
    return ListChange(marks, less)


def _weaker(was: Story, now: Story) -> Iterator[str]:
    if was.criteria and not now.criteria:
        yield "all acceptance criteria were removed"
    # New punctuation, spacing or case is not a loss.
    verb = "removed" if len(now.criteria) < len(was.criteria) else "changed"
    left = Counter(essence(criterion) for criterion in now.criteria)
    for criterion in was.criteria if now.criteria else ():
        left[essence(criterion)] -= 1
        if left[essence(criterion)] < 0:
            yield f"a criterion was {verb}: {quoted(criterion)}"
    for name, words in (("verify", "verify command"), ("parent_spec", "parent spec")):
        asked = getattr(was, name)
        asks = getattr(now, name)
        if asked and asks != asked:
            yield f"the {words} was {'changed' if asks else 'removed'}"
    for name in ("title", "description"):
        if getattr(was, name).strip() and not getattr(now, name).strip():
            yield f"the {name} was emptied"
    if now.exit_signal and not was.exit_signal:
        yield "it was given the permission to end the run"


def resolve_parent_spec(story: Story, *, specs_dir: Path, repo_root: Path) -> Path | None:
    """The real path of the story's spec, looked for in the specs directory, then the root."""
    if story.parent_spec is None:
        return None
    if Path(story.parent_spec).is_absolute():
        raise _no_spec(story, "must be relative to the repository")
    root = Path(os.path.realpath(repo_root))
    bases = list(dict.fromkeys((specs_dir, repo_root)))
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
