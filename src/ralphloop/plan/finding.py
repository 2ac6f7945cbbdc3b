"""Which files a path means: a list by itself, or with what stands beside it.

A directory is looked through for the lists of `convert.FORMATS`.  One that holds several lists with
something to do is never guessed at: a person names one.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from ralphloop.errors import InputError, UsageError, unreadable
from ralphloop.plan.convert import FORMATS, Format, Gathered, convert_gathered
from ralphloop.plan.importers.reading import Document
from ralphloop.project import relative
from ralphloop.room import read_regular
from ralphloop.text.plain import some

_MOST_BYTES = 20_000_000
_MOST_FILES = 2_000


def gather(path: Path, root: Path) -> Gathered:
    """Read the list that a file or a directory means; names are those from the project's root."""
    if not path.is_dir():
        return _of_file(path, root)
    for one in FORMATS:
        places = _globbed(path, _patterns_for(path, one))
        if one.is_many_files:
            found = _all_of(places, one, root)
        else:
            found = [gathered for place in places if (gathered := _as_one(place, one, root))]
        if found and one.is_many_files:
            together = {document.path: document for it in found for document in it.documents}
            return Gathered(tuple(together.values()), one)
        if found:
            return _only_open(found, path)
    known = ", ".join(one.name for one in FORMATS)
    step = f"Name the file itself. In a directory these are known: {known}."
    raise InputError("no list of tasks was found in it", step, place=str(path))


def _all_of(places: Sequence[Path], one: Format, root: Path) -> list[Gathered]:
    """The lists of a format that has a file a task; what stands beside them is read once."""
    beside: dict[Path, list[Path]] = {}
    for place in places:
        if place.parent not in beside:
            beside[place.parent] = _globbed(place.parent, one.beside)
    found = dict[str, Gathered]()
    for place in places:
        document = _document(place, root)
        if one.is_one(document, {other.name for other in beside[place.parent]}):
            found[os.path.realpath(place)] = Gathered((document,), one)
    others = {os.path.realpath(other): other for around in beside.values() for other in around}
    more = [_beside(other, root) for real, other in others.items() if real not in found]
    return [*found.values(), Gathered(tuple(more), one)] if found else []


def _patterns_for(directory: Path, one: Format) -> list[str]:
    """Where the lists of a format stand; only a tool's own directory leads out of itself."""
    name = Path(os.path.realpath(directory)).name
    is_tools_own = name.startswith(".")
    patterns = [it for it in one.lists if is_tools_own or not it.startswith("../")]
    # The directory that holds the files may be named itself: `backlog/tasks`.
    inside = [PurePosixPath(it).name for it in patterns if PurePosixPath(it).parent.name == name]
    return [*patterns, *inside]


def _only_open(found: Sequence[Gathered], path: Path) -> Gathered:
    """The one that has something to do; several are a person's to choose from."""
    if len(found) == 1:
        return found[0]
    is_open = [one for one in found if _has_open(one)]
    if len(is_open) <= 1:
        return (is_open or found)[0]
    names = [str(PurePosixPath(one.documents[0].path).parent) for one in is_open]
    told = f"holds {len(names)} lists with open tasks: {some(names, 20)}"
    raise UsageError(f"{path} {told}", f"Name one: ralph plan {names[0]}")


def _has_open(gathered: Gathered) -> bool:
    found = convert_gathered(gathered)
    return found is not None and bool(found.entries)


def _of_file(path: Path, root: Path) -> Gathered:
    for one in FORMATS:
        if found := _as_one(path, one, root):
            return found._replace(is_one_of_many=one.is_many_files)
    return Gathered((_document(path, root),))


def _as_one(path: Path, one: Format, root: Path) -> Gathered | None:
    """The list with what is read beside it, where it is one of this format."""
    document = _document(path, root)
    beside = [other for other in _globbed(path.parent, one.beside) if not other.samefile(path)]
    if not one.is_one(document, {other.name for other in beside}):
        return None
    return Gathered((document, *(_beside(other, root) for other in beside)), one)


def _beside(path: Path, root: Path) -> Document:
    """A file that nobody named; one that cannot be read has nothing in it."""
    try:
        return _document(path, root)
    except InputError:
        return Document(named_from(path, root), "")


def _globbed(directory: Path, patterns: Iterable[str]) -> list[Path]:
    """The regular files of these patterns, each once; `..` leads to the directory above."""
    found = dict[str, Path]()  # by what they really are: two patterns may lead to one file
    for pattern in patterns:
        base = directory
        steps = pattern.split("/")
        while steps[0] == "..":
            base = Path(os.path.realpath(base)).parent
            steps = steps[1:]
        for path in sorted(base.glob("/".join(steps)))[:_MOST_FILES]:
            if path.is_file() and "archive" not in path.relative_to(base).parts:
                found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def _document(path: Path, root: Path) -> Document:
    try:
        data = read_regular(path, most=_MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise unreadable(error, path) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"is not UTF-8 text (line {line})", "Save it as UTF-8.", place=str(path)
        ) from None
    if len(data) > _MOST_BYTES:
        raise InputError(f"is larger than {_MOST_BYTES // 1_000_000} MB", place=str(path))
    return Document(named_from(path, root), text)


def named_from(path: Path, root: Path) -> str:
    """The name of a file from the project's root, with slashes; as it was named where it is out."""
    real = Path(os.path.realpath(path))
    home = Path(os.path.realpath(root))
    return relative(real, home) if real.is_relative_to(home) else path.as_posix()
