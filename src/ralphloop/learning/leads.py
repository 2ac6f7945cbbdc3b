"""Which files words lead to: by path, by a test's name and imports, by the names code defines.

A story says "SpooledStringIO" or "tests/test_ioutils.py", a learned line the same or another word
for it; both mean pkg/ioutils.py.  Only what is committed is looked at, so the answer is one of a
tree and kept with it: the list of its files, and for names one search by git.  All of it is
bounded: a name that many files define, a directory with half of the project leads nowhere.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ralphloop.core.model import Story
from ralphloop.core.proof import is_test_path
from ralphloop.errors import RalphError
from ralphloop.learning.wording import paths_in
from ralphloop.repo.git import Git
from ralphloop.room import read_regular
from ralphloop.text.plain import LazyRegex

_MOST_FILES = 50_000
_MOST_BELOW = 50  # files of a directory or a pattern that still say something
_MOST_OF_A_NAME = 3
_MOST_NAMES = 300
_MOST_IMPORTED = 6
_MOST_TESTS = 10
_MOST_LINES = 5_000
_LARGEST_TEST = 128 * 1024
_MOST_TEXT = 8_000
_SEARCH_S = 5.0
_LONGEST_LINE = 500
# Words that may be names of code: written like one, called, or put into code spans.
_NAME = LazyRegex(
    r"`([A-Za-z_][\w.]*)(?:\(\))?`|\b([A-Za-z_]\w*)(?=\()|\b([A-Za-z]\w*_\w+|_\w+)\b"
    r"|\b([A-Za-z]*[a-z0-9][A-Z]\w*)\b|\b([A-Z][a-z]\w{2,}|[A-Z]{2,}\w*)\b"
)
_WORD = LazyRegex(r"[A-Za-z_]\w{3,}")
_PLAIN = re.compile(r"[A-Za-z_]\w{1,60}")
_KEYWORDS = (
    "class|def|fn|func|function|struct|enum|trait|interface|type|const|let|var|val|module|object"
    "|protocol|record|union|fun|defmodule|defp|macro"
)
_NO_DEFINITION = LazyRegex(r"\s*(?:if|for|while|switch|return|else|elif|catch|await|yield)\b")
_IMPORTS = LazyRegex(
    r"\s*(?:from|import|use|using|require|require_relative|require_once|include|#\s*include|export)\b"
    r"|.{0,200}\b(?:require|import)\s*\(|.{0,200}\bfrom\s+['\"]"
)
_MODULE = LazyRegex(r"[\w@.:/\\-]+")
_TEST_AFFIXES = LazyRegex(
    r"^(?:tests?_)(?=.)|(?:[_.-](?:tests?|spec|it))$|(?<=[a-z0-9])(?:Tests?|Spec|IT)$"
)
_NOISE = LazyRegex(r"[\W_]+")
_NOT_CODE = frozenset(("", "md", "rst", "txt", "json", "toml", "lock", "yaml", "yml", "cfg", "ini"))


class Tree(NamedTuple):
    """The files of a commit, as far as they are looked at."""

    root: Path
    id: str
    files: tuple[str, ...] = ()
    by_stem: Mapping[str, tuple[str, ...]] = {}  # by the name without its ending, in plain letters

    def below(self, directory: str) -> tuple[str, ...]:
        """What lies below; nothing where that is too much to say anything."""
        found = [path for path in self.files if path.startswith(f"{directory}/")]
        return tuple(found) if len(found) <= _MOST_BELOW else ()


def tree_of(root: Path) -> Tree:
    """What is committed; an empty one where nothing is, or no git."""
    try:
        ended = Git(root).attempt("rev-parse", "HEAD^{tree}")
    except RalphError:
        return Tree(root, "")
    commit = ended.stdout.decode("ascii", "replace").strip()
    return _listed(root, commit) if ended.returncode == 0 else Tree(root, "")


@lru_cache(maxsize=8)
def _listed(root: Path, tree: str) -> Tree:
    ended = Git(root).attempt("ls-tree", "-r", "--name-only", "-z", "HEAD")
    names = ended.stdout.decode("utf-8", "replace").split("\0")[:_MOST_FILES]
    files = tuple(name for name in names if name and not name.startswith(".ralph/"))
    by_stem: dict[str, list[str]] = defaultdict(list)
    for path in files:
        by_stem[_plain_stem(path)].append(path)
    return Tree(root, tree, files, {stem: tuple(paths) for stem, paths in by_stem.items()})


def story_files(tree: Tree, story: Story) -> frozenset[str]:
    """The files that a story leads to, by all that it says; paths as they are written, too."""
    said = "\n".join((story.title, story.description, *story.criteria, story.notes))
    found = set(text_files(tree, said))
    for pattern in story.touches:
        found |= set(_matching(tree, pattern))
    argv = story.verify or ()
    found |= set(text_files(tree, " ".join(argv[1:])))
    for word in argv[1:]:
        found |= set(_tests_called(tree, word))
    return frozenset(_with_subjects(tree, found))


def text_files(tree: Tree, text: str) -> frozenset[str]:
    """The files that a text names by path, or whose code defines what it names."""
    text = text[:_MOST_TEXT]
    found = set(_named_paths(tree, text))
    for paths in definitions(tree, names_in(text)).values():
        found |= set(paths)
    return frozenset(found)


def names_in(text: str) -> frozenset[str]:
    """Words of a text that may be names of code; whether they are, only the code can say."""
    found = set[str]()
    without_paths = " ".join(word for word in text[:_MOST_TEXT].split() if "/" not in word)
    for groups in _NAME.findall(without_paths):
        for part in "".join(groups).split("."):
            if _PLAIN.fullmatch(part) and len(part) > 2:
                found.add(part)
    return frozenset(found)


def definitions(tree: Tree, names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Where names are defined, outside tests; a name that many files define says nothing."""
    wanted = tuple(sorted(set(names))[:_MOST_NAMES])
    if not wanted or not tree.id:
        return {}
    return _defined(tree.root, tree.id, wanted)


@lru_cache(maxsize=64)
def _defined(root: Path, tree: str, names: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    listed = "|".join(names)
    space = "[[:space:]]"
    patterns = (
        rf"({_KEYWORDS}){space}+(\([^)]*\){space}*)?(self\.)?({listed})",
        rf"({listed}){space}*\([^;]*\{{",
        rf"({listed})::[A-Za-z_~]+{space}*\(",
        rf"^{space}*(export{space}+)?((const|let|var){space}+)?({listed}){space}*(:[^=]*)?=",
    )
    wanted = [part for pattern in patterns for part in ("-e", pattern)]
    try:
        ended = Git(root).attempt(
            "grep", "-I", "-E", "--null", "--max-depth=-1", *wanted, tree, timeout_s=_SEARCH_S
        )
    except RalphError:
        return {}
    known = frozenset(names)
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for line in ended.stdout.decode("utf-8", "replace").splitlines()[:_MOST_LINES]:
        place, _, text = line.partition("\0")
        path = place.partition(":")[2]
        if is_test_path(path) or _NO_DEFINITION.match(text):
            continue
        for name in known.intersection(_defined_in(text)):
            found[name][path] = None
    return {name: tuple(paths) for name, paths in found.items() if len(paths) <= _MOST_OF_A_NAME}


_BY_KEYWORD = LazyRegex(rf"\b(?:{_KEYWORDS})\s+(?:\([^()]{{0,80}}\)\s*)?(?:self\.)?(\w+)")
_QUALIFIED = LazyRegex(r"\b(\w+)::[A-Za-z_~]\w*\s*\(")
_ASSIGNED = LazyRegex(r"\s*(?:export\s+)?(?:(?:const|let|var)\s+)?(\w+)\s*(?::[^=]*)?=(?!=)")
_LAST_WORD = LazyRegex(r"(\w+)\s*$")


def _defined_in(line: str) -> Iterator[str]:
    """Names that a line of code defines, in whatever language."""
    line = line[:_LONGEST_LINE]
    yield from _BY_KEYWORD.findall(line)
    yield from _QUALIFIED.findall(line)
    if assigned := _ASSIGNED.match(line):
        yield assigned[1]
    head, opens, _ = line.partition("{")
    before, calls, _ = head.partition("(")
    if opens and calls and (called := _LAST_WORD.search(before)):
        yield called[1]


def words_defined_in(root: Path, path: str, text: str) -> frozenset[str]:
    """Words of a text that a file defines, however plain they are: somebody worked there."""
    try:
        data = read_regular(root / path, most=_LARGEST_TEST)
    except OSError:
        return frozenset()
    lines = data.decode("utf-8", "replace").splitlines()[:_MOST_LINES]
    defined = {name for line in lines for name in _defined_in(line)}
    return frozenset(_WORD.findall(text)) & defined


def _named_paths(tree: Tree, text: str) -> Iterator[str]:
    for word in paths_in(text):
        path = word.strip("/").removeprefix("./").removesuffix("/...")
        yield path  # it may be there without being committed
        yield from tree.below(path)
        name = path.rpartition("/")[2]
        close = [one for one in tree.files if one == path or one.endswith(f"/{path}")]
        yield from close[:_MOST_OF_A_NAME]
        if "/" not in path and "." not in path:
            yield from tree.by_stem.get(_plain(name), ())[:1]


def _matching(tree: Tree, pattern: str) -> Sequence[str]:
    """What a path or pattern of a story means: a file, a directory, or what fits."""
    path = pattern.strip("/").removeprefix("./")
    if not any(sign in path for sign in "*?["):
        return (path, *tree.below(path))
    plain = path.replace("**/", "*").removesuffix("/**")
    if path.endswith("/**") and not any(sign in plain for sign in "*?["):
        return tree.below(plain)
    found = [one for one in tree.files if fnmatchcase(one, plain)]
    return found if len(found) <= _MOST_BELOW else ()


def _tests_called(tree: Tree, word: str) -> Iterator[str]:
    """Test files that a word of a command names without a path: `--test pool`, `-Dtest=Pool`."""
    for part in re.split(r"[=:#,]+", word):
        pieces = part.split(".")
        if len(part) <= 2 or "/" in part:
            continue
        for size in range(len(pieces), 0, -1):  # the last ones may be a class and a method
            *directories, name = pieces[:size]
            paths = tree.by_stem.get(_plain(name), ())
            tests = [path for path in paths if _is_test(path) and _lies_in(path, directories)]
            if tests:
                yield from tests[:_MOST_OF_A_NAME]
                break


def _with_subjects(tree: Tree, found: Iterable[str]) -> Iterator[str]:
    """The same files, and what those of them that are tests are about."""
    tests = 0
    for path in found:
        yield path
        yield from _siblings(tree, path)
        if _is_test(path) and tests < _MOST_TESTS:
            tests += 1
            yield from subjects_of(tree, path)


def subjects_of(tree: Tree, test: str) -> Iterator[str]:
    """The files a test is about: those called like it, and those it imports."""
    stem = PurePosixPath(test).stem.partition(".")[0]
    about = _TEST_AFFIXES.sub("", PurePosixPath(test).name.rsplit(".", 1)[0])
    for name in {about, stem}:
        called = [path for path in tree.by_stem.get(_plain(name), ()) if not _is_test(path)]
        yield from called[:_MOST_OF_A_NAME]
    imported = list(dict.fromkeys(_imported(tree, test)))
    yield from imported[:_MOST_IMPORTED]


def _siblings(tree: Tree, path: str) -> Iterator[str]:
    """Header and source of one thing, wherever they lie."""
    if PurePosixPath(path).suffix in (".h", ".hpp", ".hh", ".c", ".cc", ".cpp", ".cxx"):
        same = tree.by_stem.get(_plain_stem(path), ())
        yield from (one for one in same if not _is_test(one))


def _imported(tree: Tree, test: str) -> Iterator[str]:
    try:
        data = read_regular(tree.root / test, most=_LARGEST_TEST)
    except OSError:
        return
    for line in data.decode("utf-8", "replace").splitlines()[:_MOST_LINES]:
        if not _IMPORTS.match(line[:_LONGEST_LINE]):
            continue
        words = [word.strip("./:\\-") for word in _MODULE.findall(line[:_LONGEST_LINE])]
        base = ""
        for word in words:
            yield from _module_files(tree, word)
            yield from _module_files(tree, f"{base}/{word}" if base else "")
            if "." in word or "/" in word or ":" in word or word in _packages(tree):
                base = word


@lru_cache(maxsize=8)
def _directory_names(files: tuple[str, ...]) -> frozenset[str]:
    return frozenset(part for path in files for part in path.split("/")[:-1])


def _packages(tree: Tree) -> frozenset[str]:
    return _directory_names(tree.files)


def _module_files(tree: Tree, module: str) -> Iterator[str]:
    """Files whose path ends like a module is called; its last word may be what it has."""
    parts = [part for part in re.split(r"[/\\:]+", module) if part not in ("", ".", "..")]
    if len(parts) == 1:
        parts = parts[0].split(".")
    elif parts:
        parts[-1] = parts[-1].partition(".")[0]
        parts = [piece for part in parts for piece in part.split(".")]
    for size in (len(parts), len(parts) - 1):
        if size < 1 or (size == 1 and len(parts) > 2):
            return
        *directories, last = parts[:size]
        found = []
        for path in tree.by_stem.get(_plain(last), ()):
            if not _is_test(path) and _lies_in(path, directories):
                found.append(path)
        if found and len(found) <= _MOST_OF_A_NAME:
            yield from found
            return


def _lies_in(path: str, directories: Sequence[str]) -> bool:
    """Whether these directories stand in the path, in this order."""
    inside = iter(path.split("/")[:-1])
    return all(part in inside for part in directories)


def _is_test(path: str) -> bool:
    """By its path, or by a name like `BasketTests.cs`."""
    stem = path.rpartition("/")[2].rpartition(".")[0]
    return is_test_path(path) or _TEST_AFFIXES.search(stem) is not None


def _plain_stem(path: str) -> str:
    return _plain(path.rpartition("/")[2].partition(".")[0] or path)


def _plain(name: str) -> str:
    return _NOISE.sub("", name).lower()


def is_code(path: str) -> bool:
    """Whether it is more than words or settings, which every story may touch."""
    return path.rpartition("/")[2].rpartition(".")[2].lower() not in _NOT_CODE
