"""What a fresh work tree of a repository lacks, and the settings that bring it.

A lane, and the clean tree in which stories are judged, have what git has.  What a person installed
beside it (a virtual environment, `node_modules`) is brought by `[lanes] copy` and `setup`.  An
environment that installs the project from the checkout is made anew: copied, it would test the
checkout.  Rust and Go build from what is committed and need nothing.
"""

import shlex
import shutil
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ralphloop.room import read_regular

_MOST_BYTES = 1 << 20
_ENVIRONMENTS = (".venv", "venv", "env")
_EXTRAS = ("dev", "test", "tests", "all")
_NODE = {
    "package-lock.json": ("npm", "ci"),
    "pnpm-lock.yaml": ("pnpm", "install", "--frozen-lockfile"),
    "yarn.lock": ("yarn", "install", "--frozen-lockfile"),
}
LOCKS = ("uv.lock", *_NODE)
_MODULES = "node_modules"
_USES_MODULES = ("npm", "npx", "yarn", "pnpm", "node")
# What setups are made of; a script or a Makefile may make anything.
_MAKES_MODULES = ("npm", "npx", "yarn", "pnpm", "bun")
_MAKES_ENVIRONMENTS = ("uv", "poetry", "pdm", "pipenv", "hatch", "virtualenv")
_MAKES_NEITHER = ("git", "pip", "pip3", "cargo", "go", "docker", "createdb", "mkdir", "touch", "cp")


class LaneRecipe(NamedTuple):
    """What `[lanes]` should say."""

    copy: tuple[str, ...] = ()
    setup: tuple[tuple[str, ...], ...] = ()


def lane_recipe(root: Path, ignored: Collection[str] = ()) -> LaneRecipe:
    """The settings that make a fresh work tree ready, by what is installed in this one.

    `ignored`: lock files that git ignores, which no fresh work tree has.
    """
    copy = list[str]()
    setup = list[tuple[str, ...]]()
    environment = next((it for it in _ENVIRONMENTS if (root / it / "pyvenv.cfg").is_file()), "")
    locks = [it for it in LOCKS if it not in ignored and (root / it).is_file()]
    if environment and "uv.lock" in locks and shutil.which("uv"):
        setup.append(("uv", "sync"))
    elif environment and _installs_project(root / environment):
        setup.append(("python3", "-m", "venv", environment))
        setup.append((f"{environment}/bin/python", *_install(root)))
    elif environment:
        copy.append(environment)
    if (root / _MODULES).is_dir():
        lock = next((name for name in _NODE if name in locks and shutil.which(_NODE[name][0])), "")
        if lock:
            setup.append(_NODE[lock])
        else:
            copy.append(_MODULES)
    return LaneRecipe(tuple(copy), tuple(setup))


def _installs_project(environment: Path) -> bool:
    """Whether something in it is installed from a directory, as `pip install -e .` does."""
    marks = ("__editable__*", "_*_editable*.pth", "*.egg-link", "easy-install.pth", "_editable_*")
    for place in environment.glob("lib/python*/site-packages"):
        if any(any(place.glob(mark)) for mark in marks):
            return True
        # Most tools name the file after the project, and write where it stands into it.
        if any(_leads_into(path, environment.parent) for path in place.glob("*.pth")):
            return True
    return False


def _leads_into(path: Path, root: Path) -> bool:
    """Whether a line of a file of paths is the project, or lies in it."""
    with suppress(OSError, ValueError):
        lines = read_regular(path, most=_MOST_BYTES).decode().splitlines()
        return any(Path(line).is_relative_to(root) for line in lines if line.startswith("/"))
    return False


def _install(root: Path) -> tuple[str, ...]:
    """How a project is installed for its tests, as words behind the interpreter."""
    pip = ("-m", "pip", "install")
    told = _pyproject(root)
    known = _table(_table(told, "project"), "optional-dependencies")
    extras = [name for name in _EXTRAS if name in known][:1]
    project = f".[{extras[0]}]" if extras else "."
    wanted = [] if extras else _group_for_tests(_table(told, "dependency-groups"))
    for name in ("requirements-dev.txt", "requirements.txt"):
        if (root / name).is_file():
            wanted += ["-r", name]
            break
    return (*pip, *wanted, "-e", project)


def _group_for_tests(groups: Mapping[str, object]) -> list[str]:
    """What a group of `[dependency-groups]` asks for, without other groups that it includes.

    Named one by one, since a pip that knows `--group` is younger than most environments.
    """
    found = [group for name in _EXTRAS if isinstance(group := groups.get(name), list) and group]
    lists = [[it for it in group if isinstance(it, str)] for group in found]
    with_runner = (group for group in lists if any(it.startswith("pytest") for it in group))
    return next(with_runner, next(iter(lists), []))


def _pyproject(root: Path) -> Mapping[str, object]:
    with suppress(OSError, ValueError):  # none, or none that can be read
        return tomllib.loads(read_regular(root / "pyproject.toml", most=_MOST_BYTES).decode())
    return {}


def _table(within: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = within.get(name)
    return found if isinstance(found, dict) else {}


class LaneLack(NamedTuple):
    """Something that checks need and a fresh work tree will not have."""

    words: str
    fix: str  # what to write; empty where nobody can say

    def __str__(self) -> str:
        return f"{self.words}: {self.fix}" if self.fix else self.words


def lacking_in_lane(
    root: Path,
    checks: Sequence[Sequence[str]],
    recipe: LaneRecipe,
    untracked: Collection[str] = (),
) -> Iterator[LaneLack]:
    """What checks need and a fresh work tree will not have, or would have in vain.

    `recipe`: what `[lanes]` says now.  `untracked`: paths of the project that git does not have, a
    directory as one.
    """
    known = [path.strip("/") for path in untracked]
    places = dict.fromkeys((*_ENVIRONMENTS, _MODULES, *known))
    for place in places:
        uses = [argv for argv in checks if argv and _uses(argv, place)]
        if not uses or not (root / place).exists():
            continue
        needed = f"{shlex.join(uses[0])} needs it"
        if _is_brought(place, recipe.copy):
            if place in _ENVIRONMENTS and _installs_project(root / place):
                words = f"{place} installs the project from here: copied, it would test this one"
                yield LaneLack(words, _what_to_write(root, place))
        elif not any(_makes(argv, place) for argv in recipe.setup):
            yield LaneLack(f"{place} is not in git, and {needed}", _what_to_write(root, place))


def _what_to_write(root: Path, place: str) -> str:
    found = lane_recipe(root)
    is_known = place in found.copy or any(_makes(argv, place) for argv in found.setup)
    wanted = found if is_known else LaneRecipe(copy=(place,))
    lines = [f"[lanes] {line}" for line in recipe_lines(wanted)]
    return f"write {' and '.join(lines)} in ralph.toml"


def _is_brought(place: str, copy: Collection[str]) -> bool:
    """Whether one of the copied paths is it, or lies around it."""
    whole = f"{place}/"
    return any(whole.startswith(f"{path.strip('/').removeprefix('./')}/") for path in copy)


def _makes(argv: Sequence[str], place: str) -> bool:
    """Whether a command may make this: it names it, it is the tool for it, or nobody can say."""
    if not argv:
        return False
    if any(place in word for word in argv):
        return True
    program = Path(argv[0]).name
    if program in _MAKES_MODULES:
        return place == _MODULES
    if program in _MAKES_ENVIRONMENTS:
        return place in _ENVIRONMENTS
    return program not in _MAKES_NEITHER and not program.startswith("python")


def _uses(argv: Sequence[str], place: str) -> bool:
    if place == _MODULES and Path(argv[0]).name in _USES_MODULES:
        return True
    words = (word.removeprefix("./") for word in argv)
    return any(word == place or word.startswith(f"{place}/") for word in words)


def recipe_lines(recipe: LaneRecipe) -> Iterator[str]:
    """The lines as they stand in ralph.toml."""
    if recipe.copy:
        yield f"copy = [{', '.join(map(_quoted, recipe.copy))}]"
    if recipe.setup:
        commands = (f"[{', '.join(map(_quoted, argv))}]" for argv in recipe.setup)
        yield f"setup = [{', '.join(commands)}]"


def _quoted(word: str) -> str:
    return f'"{word}"'
