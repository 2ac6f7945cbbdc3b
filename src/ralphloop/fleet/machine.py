"""A machine that works for others: what its person allows, and its clones and work trees.

A repository is taken by the name on the person's list, never by an address from an order.  Its
clone has no files of its own but those that `lanes.copy` is to bring along; an order works in a
work tree of it, its *slot*, which one hand has at a time.  All of them share what the person has
said yes to (`ralph trust`, in any of them).
"""

import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.config.load import load_config, user_file
from ralphloop.core import Value
from ralphloop.errors import InputError, RalphError
from ralphloop.fleet.logins import accounts_here
from ralphloop.journal.lock import KernelLock
from ralphloop.proc.run import run_command
from ralphloop.proc.tree import stop_tree
from ralphloop.repo.git import Git, first_lines
from ralphloop.repo.work_tree import Repository
from ralphloop.room import ensure_private_dir

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_CLONE_S = 3600.0
_GLANCE_S = 0.1
_MOST_SLOTS = 1_000
IsOver = Callable[[], bool]  # whether nobody wants it any more


class OrderRefused(RalphError):
    """Nothing was started, and why."""

    until = 0.0  # when that may be another matter; 0: nobody knows


class AccountWaits(OrderRefused):
    """The account of the agent on this machine waits for a reset that another machine met."""

    def __init__(self, words: str, until: float) -> None:
        super().__init__(words)
        self.until = until


class Machine(Value, kw_only=True):
    """What a person lets this machine do for others."""

    name: str
    repos: Mapping[str, str]  # name → where it is fetched from and reported to
    slots: int = 1
    labels: tuple[str, ...] = ()
    accounts: Mapping[str, str] = msgspec.field(default_factory=dict)  # labels, by agent
    where: str = ""
    trust: str = ""  # as --trust: a yes to whatever is there, or the hash of what it is a yes to

    @property
    def directory(self) -> Path:
        return Path(self.where).expanduser()


def own_name() -> str:
    """What a machine calls itself where nobody gave it a name."""
    return socket.gethostname().partition(".")[0] or "machine"


def machine_of(env: Mapping[str, str], name: str = "") -> Machine:
    """This machine, as its person's own settings have it; no repository has a say."""
    own = user_file(env)
    section = load_config(own.parent if own else Path("/"), env=env).without.fleet
    base = env.get("XDG_DATA_HOME", "")
    data = Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "share"
    return Machine(
        name=name or own_name(),
        repos=section.repos,
        slots=section.slots,
        labels=section.labels,
        accounts=accounts_here(section.account, env),
        where=section.where or str(data / "ralph-fleet"),
    )


def repository_list(given: tuple[str, ...]) -> dict[str, str]:
    """NAME=URL of a command line, each name fit to be one of a directory."""
    found = {}
    for words in given:
        name, equals, address = words.partition("=")
        if not equals or not address or not _NAME.fullmatch(name):
            raise InputError(f"{words!r} is not NAME=URL", "Such as app=git@example.com:me/app.git")
        found[name] = address
    return found


class Slot(NamedTuple):
    """A place that one hand has for itself."""

    number: int
    clone: Repository
    address: str
    directory: Path  # of the repository: its clone, its work trees, its locks

    @property
    def trees(self) -> Path:
        return self.directory / "trees"

    @property
    def own(self) -> Path:
        """Where what is ours lies, outside of the work tree."""
        return self.directory / "own" / str(self.number)


@contextmanager
def taken_slot(
    machine: Machine, repository: str, wanted: int, mark: str, is_over: IsOver
) -> Iterator[Slot]:
    """A free slot of a repository's, with its clone; what a hand that died left there is ended.

    Taking it may take minutes, as long as a clone takes; `is_over` ends that.
    """
    address = machine.repos.get(repository, "")
    if not address or not _NAME.fullmatch(repository):
        known = ", ".join(sorted(machine.repos)) or "none"
        raise OrderRefused(
            f"the repository {repository!r} is not on the list of {machine.name} ({known})"
        )
    directory = machine.directory / repository
    ensure_private_dir(machine.directory)
    directory.mkdir(parents=True, exist_ok=True)
    lock, number = _locked(directory, wanted)
    try:
        _end_predecessor(directory, number, mark)
        yield Slot(number, _clone(directory, address, is_over), address, directory)
        (directory / "locks" / str(number) / "mark").unlink(missing_ok=True)
    finally:
        lock.release()


class _Locked(NamedTuple):
    lock: KernelLock
    number: int


def _locked(directory: Path, wanted: int) -> _Locked:
    for number in (wanted,) if wanted else range(1, _MOST_SLOTS):
        lock = KernelLock.attempt(directory / "locks" / str(number))
        if lock is not None:
            return _Locked(lock, number)
    raise OrderRefused(f"the work tree {wanted} is in use")


def _end_predecessor(directory: Path, number: int, mark: str) -> None:
    """End what the last hand here left at work, where it was killed; then say whose slot it is."""
    note = directory / "locks" / str(number) / "mark"
    before = note.read_text() if note.exists() else ""
    if before and before != mark:
        stop_tree(None, None, before)
    note.write_text(mark)


def _clone(directory: Path, address: str, is_over: IsOver) -> Repository:
    """The clone of a repository, made where it is missing."""
    root = directory / "clone"
    with _alone(directory / "locks" / "clone", is_over):
        if not (root / ".git" / "HEAD").exists():
            _make_clone(directory, address, root, is_over)
    return Repository.open(root)


def _make_clone(directory: Path, address: str, root: Path, is_over: IsOver) -> None:
    """Clone a repository; one that was cut off is never taken for a whole one."""
    half = root.with_name("clone.half")
    if half.exists():
        shutil.rmtree(half)
    git = Git(directory).writing()
    ended = run_command(
        git.command("clone", "--quiet", "--no-checkout", "--", address, str(half)),
        cwd=directory,
        env=git.environment,
        timeout_s=_CLONE_S,
        stop=is_over,
    )
    if ended.returncode != 0:
        said = first_lines(ended.stderr) or "it was stopped before it was through"
        raise OrderRefused(f"git clone {address}: {said}")
    half.rename(root)


@contextmanager
def _alone(directory: Path, is_over: IsOver) -> Iterator[None]:
    """Nobody else does the same at the same time."""
    while (lock := KernelLock.attempt(directory)) is None:
        if is_over():
            raise OrderRefused("it was stopped while another order cloned the repository")
        time.sleep(_GLANCE_S)
    try:
        yield
    finally:
        lock.release()
