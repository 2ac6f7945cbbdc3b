"""The files behind a command that judges: what it runs, includes, names and reads.

They are found in texts alone, two steps deep: nothing is run.  A source file is the judge's only
where its name or its place says so; the rest is taken for the product, which every test names.
Data that only judges name is theirs, data that only the product names is the product's.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

from ralphloop.core.proof import is_test_path
from ralphloop.core.sides import PathFacts, Side, side_of
from ralphloop.repo.runners import Read, is_named, known_runners, texts_behind
from ralphloop.stacks.detect import parsed, value_at
from ralphloop.text.asserting import imported_names, is_asserting

SOURCES = frozenset(
    ".py .pyi .js .jsx .ts .tsx .mjs .cjs .go .rs .rb .java .kt .c .h .cc .cpp .cs .php .swift"
    " .scala .ex .exs .vue .svelte .lua .dart".split()
)
PROSE = (".md", ".rst", ".adoc")
_SETTINGS = frozenset({".npmrc", ".yarnrc", ".yarnrc.yml", ".env.test", "tox.ini", "noxfile.py"})
_PLUGINS = "entry_points.txt"  # of a distribution that lies in the tree: plugins are loaded by it
# Whole words of a path: a module `checkout` or `latest` is the product's.
_JUDGING = re.compile(
    r"(?:^|/)(?:scripts?|tools?|ci|hack)/"
    r"|(?:^|[/_.-])(?:checks?|checker|verify|verif\w+|accept|acceptance|smoke|tests?|testing|testutils?"
    r"|lint|helpers?|fixtures?|expected|expectations?|golden|oracle|compare|harness|asserts?"
    r"|assertions|snapshots?|baseline|conformance|mocks?|fakes?)(?:[/_.-]|$)"
)
_WORD = re.compile(r"[\w@.+~-][\w@./+~-]{0,199}")
_NAME = re.compile(r"[\w+-]+")
_INCLUDE = re.compile(r"^-?s?include\s+(.+)$", re.MULTILINE)
_SOURCED = re.compile(r"(?:^|[\s;&|])(?:\.|source)[ \t]+[\"']?([\w./-]*[\w-])", re.MULTILINE)
_IMPORT = re.compile(r"^\s*(?:from|import)\s+([\w.]+)", re.MULTILINE)
_RECIPES = ("GNUmakefile", "makefile", "Makefile", "justfile", "Justfile", ".justfile")
_MAKERS = frozenset({"make", "gmake"})
_MOST_FILES = 200
_DEEPEST = 3


@cache
def _settings() -> tuple[str, ...]:
    return tuple({name for runner in known_runners() for name in runner.settings})


def is_setting(path: str) -> bool:
    """Whether some runner obeys a file of this name."""
    name = PurePosixPath(path).name
    if name == _PLUGINS:
        return True
    return name in _SETTINGS or any(is_named(path, it) for it in _settings())


_OF_PACKAGES = frozenset(
    "go.mod go.sum package.json package-lock.json npm-shrinkwrap.json pnpm-lock.yaml cargo.toml"
    " pom.xml pyproject.toml setup.cfg dockerfile license makefile".split()
)


def is_about_packages(path: str) -> bool:
    """Whether a file says what is installed or shipped, and no test expects it by its text."""
    name = PurePosixPath(path).name.lower()
    return name in _OF_PACKAGES or name.endswith(".lock") or path.startswith(".")


def is_source(path: str) -> bool:
    return PurePosixPath(path).suffix in SOURCES


class Judge:
    """A command, and the files behind it as one tree has them."""

    def __init__(self, argv: Sequence[str], read: Read, listed: Iterable[str]) -> None:
        """`read` gives the text of a file, `listed` are all paths, both from the project's root."""
        self._argv = tuple(argv)
        self._read = read
        self._paths = frozenset(listed)
        self._directories = frozenset(
            str(parent) for path in self._paths for parent in PurePosixPath(path).parents
        ) - {"."}
        self.files: frozenset[str] = frozenset(self._find(argv))

    @cached_property
    def taken_in(self) -> frozenset[str]:
        """Files that become part of the judge where they are there: included, or sourced."""
        recipes = [name for name in _RECIPES if name in self._paths]
        included = (_INCLUDE.findall(self._read(name)) for name in recipes)
        texts = [shlex.join(self._argv), *(self._read(path) for path in sorted(self.files))]
        found = [word for lines in included for words in lines for word in words.split()]
        found += (word for text in texts for word in _SOURCED.findall(text))
        return frozenset(os.path.normpath(word) for word in found)

    def text_of(self, path: str) -> str:
        return self._read(path)

    def says(self, name: str) -> bool:
        """Whether the command, or a file behind it, has this name for a word."""
        paths = {*self.files, *self._begun_with}
        texts = (shlex.join(self._argv), *(self._read(path) for path in sorted(paths)))
        return any(name in _NAME.findall(text) for text in texts)

    @cached_property
    def _begun_with(self) -> frozenset[str]:
        """Files of the project that the command runs by their path, or as a module."""
        modules = (f"{word.replace('.', '/')}.py" for word in self._argv)
        return self._paths.intersection((*self._argv, *modules))

    @cached_property
    def homes(self) -> frozenset[str]:
        """Directories of their own in which files stand that judge."""
        judging = (path for path in self.files if is_judging(path) and is_source(path))
        return frozenset(str(PurePosixPath(path).parent) for path in judging) - {"."}

    @property
    def tests(self) -> list[str]:
        """The sources of tests that were there, whoever runs them."""
        return sorted(path for path in self._paths if is_test_path(path) and is_source(path))

    def runs(self, path: str) -> bool:
        """Whether a file that is there is run, by its path or as a module."""
        return path in self._begun_with or path in self.files

    def makes(self, path: str) -> bool:
        """Whether a file is what a recipe makes: where it is there, nothing has to be done."""
        program = PurePosixPath(self._argv[0]).name if self._argv else ""
        return program in _MAKERS and path in self._argv[1:]

    def has_elsewhere(self, path: PurePosixPath) -> bool:
        """Whether a file of this name was there in another place."""
        return any(PurePosixPath(one).name == path.name for one in self._paths)

    def _find(self, argv: Sequence[str]) -> Iterator[str]:
        """Every file behind the command, nearest first."""
        run = texts_behind(argv, self._read)
        found = dict.fromkeys(path for path in run if path in self._paths)
        waiting = [*found, *self._named(shlex.join(argv), ".")]
        recipes = [name for name in _RECIPES if name in found]
        waiting += [path for name in recipes for path in self._included(name)]
        for _ in range(_DEEPEST):
            fresh = [path for path in dict.fromkeys(waiting) if path not in found or path in run]
            found |= dict.fromkeys(fresh)
            waiting = []
            for path in fresh[:_MOST_FILES]:
                if path in recipes:
                    waiting += self._named(run.get(path, ""), ".")
                elif not is_data(path):
                    text = self._read(path)
                    waiting += self._named(text, str(PurePosixPath(path).parent))
                    waiting += self._imported(text, str(PurePosixPath(path).parent))
            run = {}
            if len(found) > _MOST_FILES:
                break
        yield from found

    def _named(self, text: str, beside: str) -> Iterator[str]:
        """Files that a text names and that judge: data, and sources that look like it."""
        for word in dict.fromkeys(_WORD.findall(text)):
            for place in ("", beside):
                path = os.path.normpath(f"{place}/{word}") if place else os.path.normpath(word)
                if path in self._paths and self._may_judge(path):
                    yield path
                elif path in self._directories and is_judging(f"{path}/"):
                    yield from (it for it in self._paths if it.startswith(f"{path}/"))

    def _imported(self, text: str, beside: str) -> Iterator[str]:
        """Modules that a text imports and that look like helpers of a judge."""
        for module in dict.fromkeys(_IMPORT.findall(text)):
            name = module.replace(".", "/")
            for place in ("", f"{beside}/"):
                for path in (f"{place}{name}.py", f"{place}{name}/__init__.py"):
                    if path in self._paths and is_judging(path):
                        yield path

    def _included(self, recipe: str) -> Iterator[str]:
        for words in _INCLUDE.findall(self._read(recipe)):
            yield from (word for word in words.split() if word in self._paths)

    def _may_judge(self, path: str) -> bool:
        return is_judging(path) or not is_source(path)


def is_judging(path: str) -> bool:
    """Whether a path looks like something that judges."""
    return is_test_path(path) or is_setting(path) or _JUDGING.search(path.lower()) is not None


def is_data(path: str) -> bool:
    """Neither source nor script nor prose: something that is read."""
    suffix = PurePosixPath(path).suffix
    return suffix not in SOURCES and suffix not in (".sh", ".bash", ".mk", "")


Naming = Callable[[str], frozenset[str]]  # the files in which a name occurs


def place_of(path: str, *, existed: bool, judge: Judge, naming: Naming) -> Side:
    """Whose word a changed path is for the command behind `judge`."""
    judges = path in judge.files and (is_judging(path) or not is_data(path))
    if judges and is_source(path) and not is_test_path(path):
        # Helpers of tests and of the product bear the same names: whoever needs it tells.
        users = naming(PurePosixPath(path).stem) - {path}
        judges = all(one in judge.files or is_judging(one) for one in users if is_source(one))
    if existed and not judges and is_source(path) and not is_test_path(path):
        judges = _asserts_for_tests(path, judge, naming)
    if not existed:
        judges = judges or path in judge.taken_in or _stands_in(path, judge, naming)
    facts = PathFacts(
        existed=existed,
        is_test=is_test_path(path) or is_setting(path),
        judges=judges,
        is_source=is_source(path),
        is_prose=path.endswith(PROSE),
    )
    side = side_of(facts)
    if side is not Side.UNKNOWN:
        return side
    named_by = naming(PurePosixPath(path).name)
    theirs = {one for one in named_by if one in judge.files or is_judging(one)}
    return side_of(
        PathFacts(
            existed=existed,
            named_by_judges=path in judge.files or bool(theirs),
            named_by_product=bool({one for one in named_by if is_source(one)} - theirs),
        )
    )


def _asserts_for_tests(path: str, judge: Judge, naming: Naming) -> bool:
    """Whether a module asserts, for the most part, and none but tests import it."""
    if not path.endswith(".py") or not is_asserting(judge.text_of(path)):
        return False
    stem = PurePosixPath(path).stem
    module = PurePosixPath(path).parent.name if stem == "__init__" else stem
    users = [one for one in naming(module) if one != path and one.endswith(".py")]
    importing = [one for one in users if module in imported_names(judge.text_of(one))]
    return bool(importing) and all(is_judging(one) for one in importing)


class AskedCrates(NamedTuple):
    """Directories of crates in the project that a manifest asks for."""

    for_tests: frozenset[str]
    for_product: frozenset[str]


def crates_asked_for(manifest: str, text: str) -> AskedCrates:
    """What a `Cargo.toml` asks for by a path, from the project's root."""
    document = parsed(manifest, text)
    home = PurePosixPath(manifest).parent

    def paths(*keys: str) -> frozenset[str]:
        tables = [table for key in keys if isinstance(table := value_at(document, key), Mapping)]
        asked = [it for table in tables for it in table.values() if isinstance(it, Mapping)]
        named = [str(it["path"]) for it in asked if isinstance(it.get("path"), str)]
        return frozenset(os.path.normpath(home / name) for name in named)

    return AskedCrates(
        for_tests=paths("dev-dependencies"),
        for_product=paths("dependencies", "build-dependencies"),
    )


def _stands_in(path: str, judge: Judge, naming: Naming) -> bool:
    """Whether a new file bears the name of something that judges use, or is loaded before it."""
    name = PurePosixPath(path)
    if not name.suffix:
        is_program = shutil.which(name.name) is not None
        return (is_program and judge.says(name.name)) or judge.makes(path)
    return name.suffix == ".py" and _is_loaded_before(name, judge, naming)


def _is_loaded_before(path: PurePosixPath, judge: Judge, naming: Naming) -> bool:
    """Whether Python finds a new file before a module that judges use, or runs it before them."""
    is_package = path.name == "__init__.py"
    module = path.parent.name if is_package else path.stem
    home = path.parent.parent if is_package else path.parent
    if module in sys.stdlib_module_names and judge.says(module):
        return True
    if is_package:
        beside = str(home / f"{module}.py")
        is_for_judges = judge.runs(beside) or _asserts_for_tests(beside, judge, naming)
        return str(path.parent) in judge.homes or is_for_judges
    return str(home) in judge.homes and judge.says(module) and judge.has_elsewhere(path)
