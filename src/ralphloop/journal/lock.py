"""One run per work tree.

The kernel's lock (`flock` on `.ralph/lock`) ends with its process, so there is no stale lock to
judge; the file beside it (`holder`) only names who has it, or is the lease of a session's loop.

It is held in the project's directory and in git's, because projects that share a work tree share
its commits and clean-ups.  Runs that keep to their projects (`[git] scope`) share the latter; each
signs there, so that whoever wants all of it knows whom to name.  They do their checks one after the
other, because these may want the same port, cache or database.

What a holder that was killed ran itself (checks, hooks of a commit) lives on in the tree: whoever
takes the project next ends it before anything else.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Self

from ralphloop.atomic import write_atomic
from ralphloop.errors import LockedError, RepositoryError
from ralphloop.journal.holder import HOLDER_NAME, Holder, read_holder
from ralphloop.project import RALPH_DIR, git_directory
from ralphloop.text.durations import told_iso

LOCK_NAME = "lock"


class KernelLock:
    """An open file with the kernel's exclusive lock on it; children do not inherit it."""

    def __init__(self, path: Path, descriptor: int, *, shared: bool) -> None:
        self._path = path
        self._descriptor = descriptor
        self.shared = shared

    @classmethod
    def attempt(cls, directory: Path, *, shared: bool = False) -> Self | None:
        """The lock, alone or with others, or None where another process has it."""
        path = directory / LOCK_NAME
        try:
            directory.mkdir(parents=True, exist_ok=True)
            while True:
                file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
                lock = cls(path, file, shared=shared)
                try:
                    fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
                except BlockingIOError:
                    lock.release()
                    return None
                except BaseException:  # whatever it was goes on; the descriptor must not
                    lock.release()
                    raise
                if lock.is_in_place():
                    return lock
                lock.release()  # the file was removed between opening and locking: once more
        except OSError as error:
            raise RepositoryError(
                f"cannot lock the project at {path}: {error.strerror or error}",
                "It must be writable, on a file system that knows locks; then try again.",
            ) from error

    @property
    def is_open(self) -> bool:
        return self._descriptor >= 0

    def is_in_place(self) -> bool:
        """True while the path still names the file we have locked."""
        with suppress(OSError):
            return os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        return False

    def release(self) -> None:
        if self.is_open:
            os.close(self._descriptor)
            self._descriptor = -1


_HOOK_PATIENCE_S = 2.0
_PAUSE_S = 0.02
_SAME_START_S = 2.0
_TURN_PAUSE_S = 0.1
_TREE_ROOM = "ralph"  # in git's directory of the work tree
_BESIDE = (
    " A run beside it needs a work tree of its own (git worktree add), or"
    ' `scope = "project"` under [git] in both, where neither lies in the other.'
)


class RunLock:
    def __init__(
        self, directory: Path, *, run: str, now: float, shared: bool = False, lane: bool = False
    ) -> None:
        """Take the project for a run in script mode; LockedError names a live holder.

        `shared` leaves the rest of the work tree to others that say so as well; `lane` takes the
        work tree alone, because the project is elsewhere.
        """
        from ralphloop.proc.process_table import started_at

        pid = os.getpid()
        host = os.uname().nodename
        began = started_at(pid) or 0.0
        here = str(directory.parent)
        self.holder = Holder(run, "script", pid, host, now, pid_started=began, project=here)
        places = _places(directory, shared=shared)
        if lane:
            del places[directory]
        # With what the last holder, which was killed, had left running.
        taken = _take_all(places, self.holder, now=now)
        self.held = taken.held
        self.ended = taken.ended

    def renew_if_deleted(self, now: float) -> bool:
        """Hold the project again where somebody deleted the lock; LockedError if taken by now."""
        renewed = False
        for place, kernel in self.held.items():
            # Without git's directory there is no work tree left to hold.
            if kernel.is_open and not kernel.is_in_place() and _can_be_held(place):
                self.held[place] = _take(place, self.holder, now=now, shared=kernel.shared)
                kernel.release()
                if not kernel.shared:
                    _write_holder(place, self.holder)
                renewed = True
        return renewed

    def release(self) -> None:
        """Give the project back; doing it twice changes nothing."""
        for place, kernel in self.held.items():
            if kernel.is_open:
                holder = read_holder(place)
                if holder is not None and holder.run == self.holder.run:
                    (place / HOLDER_NAME).unlink(missing_ok=True)
                kernel.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@contextmanager
def hook_turn(
    directory: Path,
    *,
    session: str,
    run: str,
    now: float,
    lease_s: float,
    goes_on: Callable[[], bool] = lambda: True,
) -> Iterator[Holder]:
    """Hold the project during one turn of a session's loop, and by lease until the next one."""
    before = read_holder(directory)
    holder = Holder(
        run=run,
        mode="hook",
        pid=os.getpid(),
        host=os.uname().nodename,
        since=before.since if before is not None and before.session == session else now,
        session=session,
        renewed_at=now,
        expires_at=now + lease_s,
        project=str(directory.parent),
    )
    held = _take_all(_places(directory), holder, now=now, patience_s=_HOOK_PATIENCE_S).held
    try:
        yield holder
    finally:
        is_over = not goes_on()
        is_ours = live_holder(directory, now) == holder
        for place in held:
            if is_over and read_holder(place) == holder:  # our directory itself may be gone
                (place / HOLDER_NAME).unlink(missing_ok=True)
            elif is_ours and not is_over:
                _write_holder(place, holder._replace(pid=0))  # it was not killed
        for kernel in held.values():
            kernel.release()


def tree_holder(directory: Path, now: float, *, shared: bool = False) -> Holder | None:
    """Who keeps us out of the work tree from another directory of it; looks only."""
    _, *trees = _places(directory)
    found = [live_holder(tree, now) for tree in trees]
    found += [one for one in neighbours(directory, now) if not shared or _overlaps(one, directory)]
    here = str(directory.parent)
    return next((holder for holder in found if holder and holder.project != here), None)


def neighbours(directory: Path, now: float) -> Iterator[Holder]:
    """Who works beside us in the same work tree, each in a project of its own."""
    git = git_directory(directory.parent)
    for room in sorted(git.glob(f"{_TREE_ROOM}-*")) if git else ():
        holder = live_holder(room, now)
        if holder is not None and holder.project != str(directory.parent):
            yield holder


def _overlaps(holder: Holder, directory: Path) -> bool:
    theirs = Path(holder.project)
    ours = directory.parent
    return theirs.is_relative_to(ours) or ours.is_relative_to(theirs)


def wait_for_turn(directory: Path, stop: Callable[[], bool]) -> KernelLock | None:
    """Be the only one in the work tree that runs checks; None where that is not wanted any more."""
    while not stop():
        if (turn := try_turn(directory)) is not None:
            return turn
        time.sleep(_TURN_PAUSE_S)
    return None


def try_turn(directory: Path) -> KernelLock | None:
    """The same at once, or None where another has the turn; a dead one's ends with it."""
    git = git_directory(directory.parent)
    return KernelLock.attempt((git / _TREE_ROOM if git else directory) / "checks")


def live_holder(directory: Path, now: float) -> Holder | None:
    """Who holds the project now; looks only, and takes nothing."""
    holder = read_holder(directory)
    if holder is None:
        return None
    if holder.is_lease:
        return holder if holder.lease_holds(now) else None
    if holder.host != os.uname().nodename:
        return holder  # out of sight; the kernel's lock decided already
    from ralphloop.proc.process_table import started_at

    started = started_at(holder.pid)
    if started is None:
        return None
    is_same = not holder.pid_started or abs(started - holder.pid_started) <= _SAME_START_S
    return holder if is_same else None


def _places(directory: Path, *, shared: bool = False) -> dict[Path, bool]:
    """Where a run is held, each alone or with others: the project's directory, rooms in git's."""
    git = git_directory(directory.parent)
    room = git / _TREE_ROOM if git else None
    if room is None or not _can_be_held(room):
        return {directory: False}
    if not shared:
        return {directory: False, room: False}
    import hashlib

    name = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:16]
    return {directory: False, room: True, room.with_name(f"{_TREE_ROOM}-{name}"): False}


def _can_be_held(place: Path) -> bool:
    return not place.name.startswith(_TREE_ROOM) or os.access(place.parent, os.W_OK)


class TakenPlaces(NamedTuple):
    held: dict[Path, KernelLock]
    ended: tuple[str, ...]  # checks of a predecessor that were stopped


def _take_all(
    places: Mapping[Path, bool], asking: Holder, *, now: float, patience_s: float = 0.0
) -> TakenPlaces:
    """Take every place and sign where we are alone, or take none; end what was left running."""
    held = dict[Path, KernelLock]()
    here = Path(asking.project, RALPH_DIR)
    with ExitStack() as otherwise:
        for place, shared in places.items():
            held[place] = _take(place, asking, now=now, patience_s=patience_s, shared=shared)
            otherwise.callback(held[place].release)
            holder = read_holder(place)
            if holder is not None and holder.lease_holds(now) and not _is_same(holder, asking):
                raise _held_by(holder, asking)
        ended = _end_checks(read_holder(here))
        for place, kernel in held.items():
            if not kernel.shared:
                _write_holder(place, asking)
        if any(places.values()):
            # Signed before looking: of two that begin at once, at least one sees the other.
            for beside in neighbours(here, now):
                if _overlaps(beside, here):
                    raise _held_by(beside, asking)
        otherwise.pop_all()
    return TakenPlaces(held, ended)


def _end_checks(died: Holder | None) -> tuple[str, ...]:
    if died is None or not died.pid or died.host != os.uname().nodename:
        return ()
    from ralphloop.proc.process_table import OF_CHECKS, OF_SETUP, started_at
    from ralphloop.proc.tree import ASKED_ONCE, stop_tree

    began = started_at(died.pid)
    if began is not None and abs(began - died.pid_started) > _SAME_START_S:
        return ()  # its number is another process's by now, and so is the mark
    left = [
        stop_tree(None, None, mark.format(died.pid), stages=ASKED_ONCE)
        for mark in (OF_CHECKS, OF_SETUP)
    ]
    return tuple(chain(*left))


def _take(
    place: Path, asking: Holder, *, now: float, patience_s: float = 0.0, shared: bool = False
) -> KernelLock:
    """Take the kernel's lock within the given time; LockedError names who has it."""
    deadline = time.monotonic() + patience_s
    while True:
        lock = KernelLock.attempt(place, shared=shared)
        if lock is not None:
            return lock
        # Turns of a session are over soon; a run in script mode is not worth waiting for.
        holder = live_holder(place, now)
        here = Path(asking.project, RALPH_DIR)
        if time.monotonic() >= deadline or (holder and not holder.is_lease):
            if holder is None and not shared and place != here:
                holder = next(neighbours(here, now), None)  # one of those that share it
            raise _held_by(holder, asking)
        time.sleep(_PAUSE_S)


def _is_same(holder: Holder, asking: Holder) -> bool:
    """The same session in the same project; files from before name no project."""
    return holder.session == asking.session and holder.project in ("", asking.project)


def _write_holder(directory: Path, holder: Holder) -> None:
    data = (json.dumps(holder._asdict(), indent=2) + "\n").encode()
    write_atomic(directory / HOLDER_NAME, data, within=directory, durable=False)


def _held_by(holder: Holder | None, asking: Holder) -> LockedError:
    if holder is None:
        return LockedError(
            "another run holds this project (it has not given its name)",
            "Wait a moment and try again; `ralph status` shows what runs.",
        )
    elsewhere = holder.project not in ("", asking.project)
    since = told_iso(holder.since)
    if holder.is_lease:
        who = f"a loop inside agent session {holder.session} (run {holder.run}, since {since})"
        step = "Say /cancel-ralph in that session, or wait: without a sign of life it gives up at "
        step += f"{told_iso(holder.expires_at)}."
    else:
        where = "" if holder.host == os.uname().nodename else f" on {holder.host}"
        who = f"another run ({holder.run}, process {holder.pid}{where}, since {since})"
        there = " there" if elsewhere else ""
        step = f"Look at it with `ralph status`{there}, or end it with `ralph stop`{there}."
        step += _BESIDE * elsewhere
    what = f"holds this work tree from {holder.project}" if elsewhere else "holds this project"
    return LockedError(f"{who} {what}", step)
