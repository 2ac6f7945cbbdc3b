"""The programs that we start outside of any sandbox: where they are taken from.

Whatever a confined process could have written is never executed or imported by us, who are not
confined.  So a program of ours (git, gh, tmux, …) is looked for once, on PATH, but only in places
that are neither in the work tree nor anywhere else that a sandbox lets be written; it is started by
its whole path, and what it starts itself finds nothing there either.  Checks, hooks and agents in
their boxes have the person's own PATH.

Places are distrusted for good: what an agent of this process, or of an earlier run, could write.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import ClassVar, NamedTuple

from ralphloop.errors import RepositoryError
from ralphloop.project import tree_top

_MOST_LINKS = 40  # as the kernel follows

_found: dict[tuple[str, str], str] = {}  # by PATH and name


class _Ground:
    """What this process takes nothing from."""

    places: ClassVar[dict[PurePath, None]] = {}
    is_known = False  # the work tree around us is among them
    confines = False  # something of ours runs in a sandbox


def distrust(places: Iterable[str | Path], *, confining: bool = False) -> None:
    """Take nothing from these places any more; `confining`: because boxes let them be written."""
    for place in places:
        whole = os.path.abspath(place)  # noqa: PTH100 - the link itself is meant, too
        for path in (whole, os.path.realpath(whole)):
            # A project in the root directory, as in a container, would leave nothing else.
            if path != "/":
                _Ground.places[PurePath(path)] = None
    _Ground.confines |= confining
    _found.clear()


def confines() -> bool:
    """Whether something of this process runs in a sandbox."""
    return _Ground.confines


def is_distrusted(path: str | Path) -> bool:
    """Whether a path lies in such a place, or a link on the way to it does, or leads there."""
    if not _Ground.is_known:
        _Ground.is_known = True
        with suppress(OSError):  # the directory we are in is gone
            distrust([tree_top(Path.cwd())])
    return any(_is_below(step) for step in _steps(os.fspath(path)))


def _is_below(path: str) -> bool:
    whole = PurePath(path)
    return any(whole.is_relative_to(place) for place in _Ground.places)


def links_to(path: str | Path) -> list[str]:
    """The links on the way to a path that lie in such a place: they could be exchanged."""
    return [link for link in _links(os.path.abspath(path)) if _is_below(link)]  # noqa: PTH100


def _steps(path: str) -> Iterator[str]:
    """The path, the links on the way to it, and where it leads."""
    whole = os.path.abspath(path)  # noqa: PTH100
    yield whole
    yield from _links(whole)
    yield os.path.realpath(whole)


def _links(path: str) -> Iterator[str]:
    """Every link on the way to a path, where it really is."""
    seen = 0
    done = "/"
    left = [part for part in path.split("/") if part]
    while left and seen < _MOST_LINKS:
        here = os.path.join(done, left.pop(0))  # noqa: PTH118
        try:
            target = os.readlink(here)  # noqa: PTH115
        except OSError:
            done = here
            continue
        seen += 1
        yield here
        whole = os.path.normpath(os.path.join(done, target))  # noqa: PTH118
        done = "/"
        left = [*(part for part in whole.split("/") if part), *left]


def trusted_path(path: str | None = None) -> str:
    """PATH, or the one given, without the places that are distrusted; relative ones are such."""
    given = os.environ.get("PATH", os.defpath) if path is None else path
    kept = (it for it in given.split(os.pathsep) if os.path.isabs(it) and not is_distrusted(it))  # noqa: PTH117
    return os.pathsep.join(kept)


def trusted_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of what we start unconfined: neither programs nor modules of such places."""
    made = own_environment(env)
    made["PATH"] = trusted_path(made.get("PATH", os.defpath))
    return made


def own_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The same for a start of ourselves, who pass PATH on to agents and checks."""
    made = dict(os.environ if env is None else env)
    if modules := made.get("PYTHONPATH"):
        kept = (it for it in modules.split(os.pathsep) if it and not is_distrusted(it))
        made["PYTHONPATH"] = os.pathsep.join(kept)
        if not made["PYTHONPATH"]:
            del made["PYTHONPATH"]
    return made


def find(name: str, path: str | None = None) -> str | None:
    """A program of ours by its whole path, looked for once; None where there is none to trust."""
    given = os.environ.get("PATH", os.defpath) if path is None else path
    if (given, name) not in _found:
        places = (it for it in given.split(os.pathsep) if os.path.isabs(it))  # noqa: PTH117
        there = filter(_is_program, (os.path.join(it, name) for it in places))  # noqa: PTH118
        _found[given, name] = next((it for it in there if not is_distrusted(it)), "")
    return _found[given, name] or None


def program(name: str) -> str:
    """The same; FileNotFoundError where there is none, in words where there is only another's."""
    if found := find(name):
        return found
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        other = os.path.join(directory, name)  # noqa: PTH118
        if _is_program(other):
            raise RepositoryError(
                f"{name} is only found as {other}, where an agent could have put it: it is not"
                " started",
                f"Install {name} outside of the work tree, and have its directory on PATH.",
            )
    raise FileNotFoundError(2, "no such program", name)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113


def own_places() -> list[str]:
    """Where this very program is: its interpreter, its libraries, its package."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    library = os.path.dirname(os.path.abspath(os.__file__))  # noqa: PTH100, PTH120
    prefixes = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
    return list(dict.fromkeys((*prefixes, library, package)))


@contextmanager
def only_trusted() -> Iterator[None]:
    """For a moment PATH leads to nothing else: a library looks for a pager or a browser on it."""
    before = os.environ.get("PATH")
    os.environ["PATH"] = trusted_path()
    try:
        yield
    finally:
        if before is None:
            del os.environ["PATH"]
        else:
            os.environ["PATH"] = before


class Beginning(NamedTuple):
    """How a command of the settings is begun."""

    argv: Sequence[str]
    env: Mapping[str, str]
    confined: bool = False  # in a sandbox: it is a command of the work tree


class ModulePlaces(NamedTuple):
    """Where Python looks for modules, among what is distrusted."""

    named: list[str]  # by PYTHONPATH, or the directory we were started in
    installed: list[str]  # by files of an installation: a project that is installed in place


def module_places(kept: Iterable[str | Path]) -> ModulePlaces:
    """Where modules would come from that agents could write, but for what is `kept` from them."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    named = {os.path.abspath(it) for it in ("", *given)}  # noqa: PTH100
    own = [PurePath(it) for it in kept]
    found = ModulePlaces([], [])
    for entry in sys.path:
        whole = os.path.abspath(entry)  # noqa: PTH100
        if is_distrusted(whole) and not any(PurePath(whole).is_relative_to(it) for it in own):
            places = found.named if whole in named else found.installed
            places.append(whole)
    return found


def import_nothing_from(places: ModulePlaces) -> None:
    """Look for no more modules there; parts of packages that were imported are known already."""
    left_out = {*places.named, *places.installed}
    sys.path[:] = [it for it in sys.path if os.path.abspath(it) not in left_out]  # noqa: PTH100
