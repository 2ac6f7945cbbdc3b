"""Which test runner a check is, also behind `npm test`, `make test` or a script.

A check is looked through, a few steps deep; nothing is run, and nothing guessed: unless exactly one
call of one runner comes out of it, it is of no known runner.  What was read on the way decides what
a check does; a file that it merely reads, or a test that a runner is told to run, does not.
"""

import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib.resources import files
from itertools import dropwhile, pairwise, takewhile, zip_longest
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec

from ralphloop.core.model import Value
from ralphloop.core.proof import is_test_path
from ralphloop.repo.git import printable
from ralphloop.room import read_regular
from ralphloop.stacks.detect import parsed, value_at
from ralphloop.text.setting_parts import own_parts

Read = Callable[[str], str]  # the text of a file; empty: there is none
REPORTERS = Path(str(files("ralphloop.repo") / "data" / "reporters"))
_LARGEST_FILE = 256 * 1024
_DEEPEST = 4
_MOST_WORDS = 400
_MOST_NAMED = 40


class KnownRunner(Value, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of the table, which says what the fields mean."""

    name: str
    calls: tuple[str, ...]
    results: str
    only: str = ""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    apart: dict[str, str] = msgspec.field(default_factory=dict)
    select: dict[str, str] = msgspec.field(default_factory=dict)
    either: str = "|"
    early: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    report_option: str = ""
    reports: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    sections: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    canary: str = ""

    untracked: tuple[str, ...] = ()
    afresh: dict[str, str] = msgspec.field(default_factory=dict)

    def obeys(self, path: str) -> bool:
        return any(is_named(path, pattern) for pattern in self.settings)

    def is_blind_to(self, path: str) -> bool:
        """Whether what it has built is thought to be good though this file has changed."""
        return any(is_named(path, pattern) for pattern in self.untracked)

    def named(self, tests: Sequence[str]) -> str:
        """How it is told to run just these; empty where it cannot be, or they are too many."""
        functions = {re.split(r"::|[./ ]", test)[-1] for test in tests}
        is_plain = all(re.fullmatch(r"\w{1,100}", name) for name in functions)
        fits = self.select and is_plain and 0 < len(functions) <= _MOST_NAMED
        return self.either.join(sorted(functions)) if fits else ""

    def own_settings(self, path: str, content: bytes | None) -> object:
        """What it reads in a file that it shares with others; None where it reads nothing there."""
        keys = self.sections.get(PurePosixPath(path).name, ())
        if not keys or content is None:
            return None
        text = content.decode("utf-8", "replace")
        if path.endswith(".py"):
            return text if any(re.search(rf"\b{key}\b", text) for key in keys) else None
        if path.endswith((".xml", ".gradle", ".kts")):
            with suppress(ValueError):
                return own_parts(path, text, keys) or None
            return text
        document = parsed(path, text)
        found = {key: value_at(document, key) for key in keys}
        return {key: value for key, value in found.items() if value is not None} or None


def is_named(path: str, pattern: str) -> bool:
    """Whether a path ends like a pattern, part by part."""
    parts = PurePosixPath(path).parts
    wanted = pattern.split("/")
    last = parts[-len(wanted) :]
    return len(last) == len(wanted) and all(map(fnmatchcase, last, wanted))


class FoundRunner(Value, frozen=True, kw_only=True):
    runner: KnownRunner
    argv: tuple[str, ...]  # the call itself
    first: int  # the word of it that is the runner's first own
    env: dict[str, str] = msgspec.field(default_factory=dict)  # that the call is given
    callable: bool = True  # in this directory; False: only the whole check can be run
    scripts: tuple[str, ...] = ()  # files that were read on the way: they decide what runs

    def loads(self, root: Path) -> Iterator[str]:
        """What its settings have it load beside the tests: set-up files and plugins, by name."""
        runner = self.runner
        texts = [shlex.join(self.argv)]
        for path in (path for name in runner.settings for path in sorted(root.glob(name))):
            text = _on_disk(root, str(path.relative_to(root)))
            texts += _PLUGINS.findall(text) if path.suffix == ".py" else [text]
        for name in runner.sections:
            texts.append(json.dumps(runner.own_settings(name, _on_disk(root, name).encode())))
        for told in (match for text in texts for match in _LOADS.findall(text)):
            values = re.sub(r"[\"'][^\"']*[\"']\s*:", "", told)  # a pattern is no file
            for word in re.findall(r"[\w@./-]{2,200}", values):
                path = word.removeprefix("/").removeprefix("./")
                module = path.replace(".", "/")
                yield from (path, *(f"{path}.{kind}" for kind in ("js", "ts", "cjs", "mjs")))
                yield from (f"{module}.py", f"src/{module}.py", f"{module}/__init__.py")

    def apart(self, paths: Sequence[str] | None, root: Path) -> tuple[str, ...]:
        """The call by itself, going on after failures, for these files if it can be told."""
        runner = self.runner
        own = self.argv[self.first :]
        call = _without_finder(self.argv[: self.first], root)
        if not paths or runner.only not in ("arguments", "packages"):
            return (*call, *runner.early, *own, *runner.last)
        kept = [  # without those that name what to run
            word
            for before, word in pairwise(("", *own))
            if before in runner.values or word.startswith("-") or not _is_path(word, root)
        ]
        if runner.only == "packages":
            paths = list(dict.fromkeys(f"./{PurePosixPath(path).parent}" for path in paths))
        return (*call, *runner.early, *kept, *runner.last, *paths)


@cache
def known_runners() -> tuple[KnownRunner, ...]:
    text = files("ralphloop.repo").joinpath("data/runners.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text)["runner"], tuple[KnownRunner, ...])


def is_shared_setting(path: str) -> bool:
    """Whether some runner has its settings in a part of a file of this name."""
    return any(PurePosixPath(path).name in runner.sections for runner in known_runners())


def find_runner(argv: Sequence[str], root: Path) -> FoundRunner | None:
    """The one runner that a check calls; None where there is none, or more than one."""
    if any("{report}" in word for word in argv):
        return unknown(argv)
    found = list(_Search(partial(_on_disk, root)).calls(tuple(argv)))
    return found[0] if len(found) == 1 else None


def unknown(argv: Sequence[str]) -> FoundRunner:
    """Whatever it is: if it names tests at all, it was told in its argv where to report them."""
    runner = KnownRunner(name="any", calls=(), results="junit")
    return FoundRunner(runner=runner, argv=tuple(argv), first=len(argv), callable=False)


def texts_behind(argv: Sequence[str], read: Read) -> dict[str, str]:
    """What a command executes of the work tree, by file; of shared recipes only its part."""
    search = _Search(read)
    list(search.calls(tuple(argv)))
    return search.texts


def changed_scripts(argv: Sequence[str], old: Read, new: Read) -> Iterator[str]:
    """What was done to the files that decide what a command does, in words."""
    now = texts_behind(argv, new)
    for file, text in texts_behind(argv, old).items():
        is_part = file in _SHARED  # only some of its lines are meant
        if not text or text == (now.get(file, "") if is_part else new(file)):
            continue
        what = f"what {shlex.join(argv)[:80]} runs was changed in {file}"
        yield what if is_part else f"{printable(file)}, which a check runs, was changed"


def _on_disk(root: Path, name: str) -> str:
    with suppress(OSError, ValueError):  # what cannot be read says nothing
        return read_regular(root / name, most=_LARGEST_FILE).decode("utf-8", "replace")
    return ""


_LOADS = re.compile(
    r"""(?:\b(?:\w*[sS]etup\w*|pytest_plugins|testEnvironment|runner|resolver|preset|transform)"""
    r"""["']?\s*[:=]\s*|\brustc?(?:doc|-wrapper|-workspace-wrapper)?\s*=\s*|\b(?:require|import|loader)["']?\s*[:=(]\s*"""
    r"""|(?<![\w-])(?:-p|-r|--require|--import|--loader)[ =]+)"""
    r"""(\[[^\]]{0,500}|\([^)]{0,500}|\{[^}]{0,500}|[^,\n]{1,200})"""
)
_PLUGINS = re.compile(r"^pytest_plugins\s*=\s*(?:\[[^\]]*|\([^)]*|.*)", re.MULTILINE)


_OF_FINDER = frozenset({"--", "--no", "--no-install", "--yes", "-y"})


def _without_finder(call: Sequence[str], root: Path) -> tuple[str, ...]:
    """A call without `npx`, which only finds an installed program, and takes a while to do so.

    Whoever carries it out has that place on its PATH.
    """
    if call[:1] == ("npx",):
        rest = tuple(dropwhile(_OF_FINDER.__contains__, call[1:]))
        if rest and (root / "node_modules" / ".bin" / rest[0]).is_file():
            return rest
    return tuple(call)


def _is_path(word: str, root: Path) -> bool:
    name = word.partition("::")[0]
    # Any word may come here: `pathlib` does not take one that is too long for a name.
    is_there = bool(name) and os.path.exists(root / name)  # noqa: PTH110
    return is_there or "*" in name or name.startswith("./")


_STARTERS = frozenset(
    "uv uvx poetry pdm pipenv rye hatch npx pnpm yarn bunx bun coverage c8 nyc timeout xvfb-run"
    " dotenv env-cmd node nodejs tsx python python3 pypy3 pypy".split()
)
_MANAGERS = frozenset("npm pnpm yarn bun".split())
_MAKES = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
}
_SHARED = frozenset({"package.json", *(name for names in _MAKES.values() for name in names)})
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_INTERPRETER = re.compile(r"(?:python|pypy|node|ruby|perl|php|deno|bun|tsx)[\d.]*")
# Of what an interpreter is given, only what is named like a check: the rest may be the product.
_CHECKING = re.compile(
    r"(?:^|/)(?:scripts?|tools?|bin|ci|hack)/|check|verif|accept|smoke|test|lint|review"
)


class _Search(msgspec.Struct):
    look: Read
    texts: dict[str, str] = {}

    def calls(
        self,
        argv: tuple[str, ...],
        env: Mapping[str, str] | None = None,
        scripts: tuple[str, ...] = (),
    ) -> Iterator[FoundRunner]:
        """Every runner that a command calls, by itself or in scripts that it runs."""
        given = dict(env or {})
        at = 0
        while at < len(argv):  # what stands before the command, and sets its environment
            if assigned := _ASSIGNMENT.fullmatch(argv[at]):
                given[assigned[1]] = assigned[2]
            elif PurePosixPath(argv[at]).name not in _STEP_OVER:
                break
            at += 1
        argv = argv[at:]
        if not argv or len(scripts) > _DEEPEST:
            return
        if (first := _called(argv)) is not None:
            runner, start = first
            files = tuple(filter(None, scripts))
            yield FoundRunner(runner=runner, argv=argv, first=start, env=given, scripts=files)
            return
        for file, text in self._executed(argv):
            moved = False
            for command in _commands(text):
                moved = moved or command[0] in ("cd", "pushd")
                for found in self.calls(command, given, (*scripts, file)):
                    yield msgspec.structs.replace(found, callable=found.callable and not moved)

    def _executed(self, argv: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """The shell scripts that a command executes, each with the file it stands in, if any."""
        program = PurePosixPath(argv[0]).name
        rest = argv[1:]
        if program in _SHELLS:
            for word, value in zip_longest(rest, rest[1:]):
                if not word.startswith("-"):
                    yield word, self._read(word)
                    return
                if word.endswith("c") and not word.startswith("--") and value is not None:
                    yield "", value
                    return
        elif names := _package_scripts(program, rest):
            for name in names:
                yield from self._package_script(name)
        elif program in _MAKES:
            yield from self._recipes(program, rest)
        elif path := _script(argv, program):
            text = self._read(path)
            is_shell = text.startswith("#!") and text.partition("\n")[0].rstrip().endswith("sh")
            if is_shell and path == argv[0]:
                yield path, text

    def _package_script(self, name: str) -> Iterator[tuple[str, str]]:
        texts = value_at(parsed("package.json", self.look("package.json")), "scripts")
        known = texts if isinstance(texts, Mapping) else {}
        for part in (f"pre{name}", name, f"post{name}"):
            if isinstance(text := known.get(part), str):
                yield "package.json", self._noted("package.json", text)
        if not isinstance(known.get(name), str) and name not in ("test", "t"):
            yield "", shlex.quote(name)  # `yarn jest` is a program, not a script

    def _recipes(self, program: str, words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        file = next((name for name in _MAKES[program] if self.look(name)), None)
        if file is None or any(word.startswith("-C") for word in words):
            return
        recipes = _makefile(self.look(file))
        wanted = [word for word in words if not word.startswith("-") and "=" not in word]
        waiting = wanted or list(recipes)[:1]
        seen = set[str]()
        while waiting:
            name = waiting.pop(0)
            if name in seen or name not in recipes:
                continue
            seen.add(name)
            waiting += recipes[name].needs
            lines = self._noted(file, "\n".join(recipes[name].lines)).splitlines()
            yield file, "\n".join(line.removeprefix("-") for line in lines)

    def _read(self, name: str) -> str:
        path = name.removeprefix("./")
        self.texts[path] = self.look(path)
        return self.texts[path]

    def _noted(self, file: str, text: str) -> str:
        """A part of a file that others share."""
        self.texts[file] = f"{self.texts.get(file, '')}{text}\n"
        return text


def _called(argv: tuple[str, ...]) -> tuple[KnownRunner, int] | None:
    """The runner that this command is, perhaps behind others, and where its own words begin."""
    head = PurePosixPath(argv[0]).name
    starts = head in _STARTERS or _PYTHON.fullmatch(head)
    calls = [(runner, call.split()) for runner in known_runners() for call in runner.calls]
    for at in range(min(len(argv), _MOST_WORDS) if starts else 1):
        name = PurePosixPath(argv[at]).name
        rest = argv[at + 1 :]
        for runner, (first, *more) in calls:
            if first != (argv[at] if first.startswith("-") else name):
                continue
            if len(more) == 1 and more[0].startswith("-"):
                if more[0] in rest:
                    return runner, at + 1
            elif list(rest[: len(more)]) == more:
                return runner, at + 1 + len(more)
    return None


def _script(argv: Sequence[str], program: str) -> str:
    """The file that a command executes; empty where it is none of the work tree's."""
    if not _INTERPRETER.fullmatch(program):
        return argv[0] if "/" in argv[0] and not argv[0].startswith("/") else ""
    plain = next((word for word in argv[1:] if not word.startswith("-")), "")
    return plain if _CHECKING.search(plain) and not (is_test_path(plain) and "-m" in argv) else ""


def _package_scripts(program: str, words: Sequence[str]) -> Sequence[str]:
    if program in ("run-s", "run-p", "npm-run-all"):
        return words
    elsewhere = ("-w", "--workspace", "--prefix", "-C", "--filter")
    if program not in _MANAGERS or any(word.startswith(elsewhere) for word in words):
        return ()
    plain = [word for word in words if not word.startswith("-")]
    if plain[:1] in (["run"], ["run-script"], ["exec"], ["x"]):
        return plain[1:2]
    return ["test" if word == "t" else word for word in plain[:1]]


_SHELLS = frozenset("sh bash dash zsh ash ksh . source".split())
_LONGEST_LINE = 20_000
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w{0,99})=(.*)", re.DOTALL)
_STEP_OVER = frozenset(
    "env cross-env cross-env-shell exec command time nice nohup stdbuf if then do else !".split()
)
_ENDS = frozenset({"&&", "||", ";", "|", "&", ";;", "\n"})


def _commands(text: str) -> Iterator[tuple[str, ...]]:
    """The commands in a shell script, as far as they can be told apart without a shell."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words: list[str] = []
        with suppress(ValueError):  # an open quote: the rest of the line is unknown
            for word in lexer:
                if word in _ENDS or set(word) <= set("()"):
                    if words:
                        yield tuple(words)
                    words = []
                else:
                    words.append(word)
            if words := list(takewhile(lambda word: word[0] not in "<>", words)):
                yield tuple(words)


_VARIABLE = re.compile(r"^(?:export )?(\w+)\s*(?::|\?|\+)?:?=\s*(.*)$")
_RULE = re.compile(r"^([^\s:#=][^:#=]*?)(?:\s+[^:=]*)?:(?!=)([^#]*)")
_USE = re.compile(r"\$\((\w+)\)|\$\{(\w+)\}|\{\{\s*(\w+)\s*\}\}")


class _Recipe(NamedTuple):
    needs: list[str]
    lines: list[str]


def _makefile(text: str) -> dict[str, _Recipe]:
    variables: dict[str, str] = {}
    recipes: dict[str, _Recipe] = {}
    current: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line[:1] in ("\t", " ") and line.strip():
            words = line.strip().lstrip("@-+ ")
            ignored = "-" in line[: line.index(words)]  # whether it fails; how loud it is, is not
            for name in current:
                recipes[name].lines.append(f"{'-' * ignored}{words}")
        elif found := _VARIABLE.match(line):
            variables.setdefault(found[1], found[2].partition(" #")[0].strip())
        elif (found := _RULE.match(line)) and not line.startswith("."):
            current = found[1].split()
            for name in current:
                recipes.setdefault(name, _Recipe([], [])).needs.extend(found[2].split())

    def value(used: re.Match[str]) -> str:
        return variables.get(next(filter(None, used.groups())), "")

    for recipe in recipes.values():
        for _ in range(3):
            recipe.lines[:] = [_USE.sub(value, line)[:_LONGEST_LINE] for line in recipe.lines]
    return recipes
