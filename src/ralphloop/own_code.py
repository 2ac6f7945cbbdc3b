"""Which commands run nothing but code of the work tree.

Such a command needs no yes of its own where a person has agreed to one that runs that code anyway:
`pytest tests/test_new.py` can do nothing that `pytest` could not.  That holds for a known test
runner as PATH finds it, or as it lies in the work tree, with words that stay in the work tree and
options that are known to choose, count or print.  A runner elsewhere, an option nobody has thought
about (many load code: `pytest -p`, `make --eval`, `go test -exec`) and inline code are asked about.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePath

import msgspec


class _Runner(msgspec.Struct, frozen=True):
    options: frozenset[str] = frozenset()  # a final * stands for whatever follows
    verbs: frozenset[str] = frozenset()  # what it may be told to do; empty: anything
    no_words_with: str = ""  # characters by which a word sets or fetches something

    def takes(self, option: str) -> bool:
        """True for an option that is known to load nothing."""
        if option in self.options:
            return True
        return any(option.startswith(known[:-1]) for known in self.options if known.endswith("*"))


def _runner(options: str, verbs: str = "", no_words_with: str = "") -> _Runner:
    return _Runner(frozenset(options.split()), frozenset(verbs.split()), no_words_with)


_PYTEST = _runner(
    "-q -qq -v -vv -vvv -x -s -l -k -m -n -r* --quiet --verbose --exitfirst --maxfail --tb"
    " --lf --last-failed --ff --failed-first --nf --sw --stepwise --no-header --no-summary"
    " --durations --durations-min --co --collect-only --color --capture --showlocals --runxfail"
    " --strict-markers --strict-config --strict --disable-warnings --dist --timeout --cov"
    " --cov-branch --cov-fail-under --no-cov --import-mode --deselect --ignore --doctest-modules"
    " --asyncio-mode --randomly-seed --reruns --benchmark-skip --benchmark-disable"
)
_MAKE = _runner(
    "-j* -k -s -B -i -n -w -C -O* --jobs --keep-going --silent --quiet --always-make --directory"
    " --no-print-directory --output-sync --warn-undefined-variables",
    no_words_with="=",
)
_SCRIPTS = "-t -s --silent --run --coverage --ci --verbose --watch --watchAll --testNamePattern"
_JEST = _runner(
    "-t -i -b --testNamePattern --testPathPattern --testPathPatterns --coverage --ci --silent"
    " --verbose --runInBand --watch --watchAll --passWithNoTests --bail --maxWorkers --colors"
    " --no-cache --findRelatedTests --onlyChanged --forceExit --detectOpenHandles"
)
_VITEST = _runner(
    "-t --run --testNamePattern --coverage --silent --watch --bail --passWithNoTests --no-color"
    " --no-file-parallelism --project --retry --testTimeout --typecheck --changed",
)
_MAVEN = _runner(
    "-q -B -e -o -U -ntp -T* -pl -am -Dtest -Dit.test -DskipITs -DfailIfNoTests --quiet"
    " --batch-mode --no-transfer-progress --offline --projects --also-make --fail-at-end"
    " -Dsurefire.failIfNoSpecifiedTests",
    no_words_with=":",
)
_GRADLE = _runner(
    "-q -i -s --quiet --info --stacktrace --tests --offline --no-daemon --parallel --continue"
    " --rerun-tasks --console --warning-mode --build-cache --no-build-cache"
)
_TOX = _runner("-e -q -v -p -s --parallel -r --recreate --notest --skip-missing-interpreters")
_NOX = _runner(
    "-s -k -t -r -R -v --sessions --session --keywords --tags --reuse-existing-virtualenvs"
)
_CARGO = _runner(
    "-q -v -j* -p --quiet --verbose --package --workspace --all --lib --bins --bin --tests --test"
    " --examples --example --benches --doc --all-targets --all-features --no-default-features"
    " --features -F --release --locked --frozen --offline --no-run --no-fail-fast --check -D -W"
    " --nocapture --test-threads --ignored --include-ignored --exact --skip --show-output -E",
    "test nextest check build clippy fmt",
)
_GO = _runner(
    "-run -count -race -v -short -timeout -cover -failfast -bench -benchmem -benchtime -parallel"
    " -p -cpu -shuffle -skip -json -tags -list -fullpath -trimpath -vet",
    "test vet build",
)
_NPM = _runner(f"{_SCRIPTS} -w --workspace --workspaces --if-present", "test t run run-script")
_PNPM = _runner(f"{_SCRIPTS} -r --recursive --filter --if-present", "test t run")
_DENO = _runner(
    "-A -q --quiet --allow-all --allow-read --allow-write --allow-env --allow-net --allow-run"
    " --filter --fail-fast --parallel --shuffle --trace-leaks --no-check --doc --permit-no-files",
    "test task check lint",
)
_DOTNET = _runner(
    "-c -f -q --configuration --framework --filter --no-build --no-restore --nologo --blame"
    " --list-tests --verbosity -v",
    "test build",
)
_UNITTEST = _runner(
    "-v -q -f -b -c -k -s -t -p --verbose --quiet --failfast --buffer --catch --locals"
    " --start-directory --pattern --top-level-directory --durations"
)
_RSPEC = _runner("-e -t -b --example --tag --fail-fast --backtrace --order --seed --dry-run")
_RUNNERS = {
    "pytest": _PYTEST,
    "py.test": _PYTEST,
    "unittest": _UNITTEST,  # as a module of Python
    "doctest": _runner("-v -f"),
    "tox": _TOX,
    "nox": _NOX,
    "make": _MAKE,
    "gmake": _MAKE,
    "just": _runner("-q -v -n --quiet --verbose --dry-run", no_words_with="="),
    "rake": _runner("-q -s -v -m -t --quiet --silent --verbose --trace", no_words_with="="),
    "rspec": _RSPEC,
    "jest": _JEST,
    "vitest": _VITEST,
    "mocha": _runner("-g -f -b -s -t --grep --fgrep --bail --timeout --exit --recursive --slow"),
    "ava": _runner("-m -v -s -c -T --match --verbose --serial --concurrency --fail-fast --timeout"),
    "phpunit": _runner("-v --filter --testdox --testsuite --group --colors --stop-on-failure"),
    "ctest": _runner(
        "-R -E -L -V -VV -N -j* -C --output-on-failure --test-dir --tests-regex --exclude-regex"
        " --verbose --parallel --timeout --stop-on-failure --rerun-failed --build-config"
    ),
    "mvn": _MAVEN,
    "mvnw": _MAVEN,
    "gradle": _GRADLE,
    "gradlew": _GRADLE,
    "cargo": _CARGO,
    "go": _GO,
    "npm": _NPM,
    "pnpm": _PNPM,
    "yarn": _runner(_SCRIPTS, "test run"),
    "bun": _runner(f"{_SCRIPTS} --bail --timeout --test-name-pattern", "test run"),
    "deno": _DENO,
    "dotnet": _DOTNET,
    "swift": _runner("-c -q -v --filter --skip --parallel --configuration", "test build"),
    "mix": _runner(
        "--only --exclude --include --seed --trace --stale --failed --max-failures --cover",
        "test compile",
    ),
}
_WRAPPERS = {"uv": "run", "poetry": "run", "pipenv": "run", "hatch": "run", "bundle": "exec"}
_INTERPRETERS = frozenset("sh bash dash zsh ksh fish python node ruby perl php lua Rscript".split())
# Names of programs that take what they run from where they are started, or from their words.
RUNS_CODE = frozenset((*_RUNNERS, *_WRAPPERS, *_INTERPRETERS))
_MODULES = frozenset("pytest unittest tox nox doctest".split())
_INLINE = frozenset("-c -e -exec --eval --exec --execute --command".split())
_VERSION = re.compile(r"[0-9.]+$")
_REST = "--"  # what follows is told to what the runner runs


def runs_code_of(root: Path, argv: Sequence[str]) -> bool:
    """True where the command can run nothing but code of the work tree."""
    if not argv:
        return False
    program = argv[0]
    rest = tuple(argv[1:])
    if "/" in program and not _is_of_the_tree(root, program):
        return False
    name = PurePath(program).name
    family = _family(name)
    if name in _WRAPPERS:
        is_plain = rest[:1] == (_WRAPPERS[name],) and not "".join(rest[1:2]).startswith("-")
        return is_plain and runs_code_of(root, rest[1:])
    if family == "python" and rest[:1] == ("-m",):
        module = "".join(rest[1:2])
        return module in _MODULES and _stays_calm(root, module, rest[2:])
    if family in _INTERPRETERS:
        is_script = bool(rest) and not rest[0].startswith("-") and _is_inside(root, rest[0])
        return is_script and _script_stays_calm(root, rest[1:])
    if name in _RUNNERS:
        return _stays_calm(root, name, rest)
    return "/" in program and _script_stays_calm(root, rest)


def reaches_code_of(root: Path, argv: Sequence[str]) -> bool:
    """True where the command, which somebody has looked at, runs code of the work tree as well."""
    if not argv:
        return False
    name = PurePath(argv[0]).name
    rest = tuple(argv[1:])
    if name in _WRAPPERS:
        return rest[:1] == (_WRAPPERS[name],) and reaches_code_of(root, rest[1:])
    if _family(name) == "python" and rest[:1] == ("-m",):
        return "".join(rest[1:2]) in _MODULES
    if _family(name) in _INTERPRETERS:
        return bool(rest) and not rest[0].startswith("-") and _is_inside(root, rest[0])
    if name in _RUNNERS:
        verbs = _RUNNERS[name].verbs
        return not verbs or "".join(rest[:1]) in verbs
    return "/" in argv[0] and _is_inside(root, argv[0])


def is_written_inside(root: Path, path: Path) -> bool:
    """True for a path that reads as one of the project, wherever links on it may lead."""
    real_root = Path(os.path.realpath(root))
    return Path(os.path.normpath(real_root / path)).is_relative_to(real_root)


def leads_out(root: Path, path: Path) -> Path | None:
    """Where a path that reads as one of the project really leads, if that is elsewhere."""
    real_root = Path(os.path.realpath(root))
    real = Path(os.path.realpath(real_root / path))
    is_outside = not real.is_relative_to(real_root)
    return real if is_outside and is_written_inside(root, path) else None


def _family(name: str) -> str:
    """The name without a version: python3.12 is a python."""
    return _VERSION.sub("", name) or name


def _is_of_the_tree(root: Path, program: str) -> bool:
    """A program in the work tree; the interpreter of a virtual environment may be a link."""
    if _is_inside(root, program):
        return True
    real = leads_out(root, Path(program))
    family = _family(PurePath(program).name)
    return real is not None and family in _INTERPRETERS and _family(real.name) == family


def _stays_calm(root: Path, name: str, rest: Sequence[str]) -> bool:
    """True where a runner is told only to do what is known of it, in the work tree."""
    runner = _RUNNERS[name]
    if runner.verbs:
        if not rest or rest[0] not in runner.verbs:
            return False
        rest = rest[1:]
    words = _without_plugins_off(rest) if runner is _PYTEST else rest
    for word in words:
        if word == _REST:
            continue
        if word.startswith("-"):
            option, _, value = word.partition("=")
            if not runner.takes(option) or not _is_inside(root, value):
                return False
        elif not _is_calm_word(root, name, word):
            return False
    return True


def _without_plugins_off(words: Sequence[str]) -> list[str]:
    """The words without `-p no:name`, which keeps pytest from loading something."""
    left: list[str] = []
    for word in words:
        if word.startswith("no:") and left[-1:] == ["-p"]:
            left.pop()
        else:
            left.append(word)
    return left


def _is_calm_word(root: Path, name: str, word: str) -> bool:
    """A name, or a path that stays in the work tree."""
    if any(sign in word for sign in _RUNNERS[name].no_words_with):
        return False
    if name == "go" and "/" in word and not word.startswith("./"):
        return False  # a package of somebody else
    return _is_inside(root, word)


def _script_stays_calm(root: Path, rest: Sequence[str]) -> bool:
    """What a script of the tree does with its words is its own; but code is never a word."""
    for word in rest:
        option, _, value = word.partition("=")
        if option in _INLINE:
            return False
        if not _is_inside(root, value if word.startswith("-") else word):
            return False
    return True


def _is_inside(root: Path, word: str) -> bool:
    """True for a word that is no place at all, or one in the work tree, links followed."""
    if word.startswith(("@", "~")) or "://" in word:
        return False
    try:
        return (root / word.partition("::")[0]).resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError):
        return False
