"""One run per repository, with real processes that hold, die and come back."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ralphloop.errors import ExitCode, LockedError, RepositoryError
from ralphloop.journal.holder import HOLDER_NAME, active_lease, read_holder
from ralphloop.journal.lock import LOCK_NAME, RunLock, hook_turn, live_holder
from ralphloop.proc.process_table import started_at
from tests.journal.support import NOON, environment, python, start_python

HOLD = """
import sys
from pathlib import Path
from ralphloop.journal.lock import RunLock
lock = RunLock(Path(sys.argv[1]), run=sys.argv[2], now=1_794_744_000.0)
print("held", flush=True)
sys.stdin.readline()
lock.release()
"""
LEASE_S = 1800.0


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """The directory the lock lives in; it does not exist yet."""
    return tmp_path / "a project" / ".ralph"


@contextmanager
def another_run(room: Path, run: str = "other") -> Iterator[subprocess.Popen[str]]:
    """A process that holds the project until it is told to let go, or killed."""
    child = start_python("-c", HOLD, str(room), run)
    assert child.stdin is not None
    assert child.stdout is not None
    with child.stdin, child.stdout:
        try:
            assert child.stdout.readline() == "held\n"
            yield child
        finally:
            child.kill()
            child.wait()


def acquire(room: Path, run: str = "mine", now: float = NOON) -> RunLock:
    """Take the project for a run of this process."""
    return RunLock(room, run=run, now=now)


def test_F34_a_second_run_is_refused_and_told_who_holds(room: Path) -> None:
    """A live run is named by id, process and time, with what to do, and exit code 75."""
    with another_run(room) as child, pytest.raises(LockedError) as caught:
        acquire(room)
    message = caught.value.message
    assert "other" in message
    assert f"process {child.pid}" in message
    assert "2026-11-15T12:00:00Z" in message
    assert "ralph status" in caught.value.next_step
    assert "ralph stop" in caught.value.next_step
    assert caught.value.exit_code is ExitCode.LOCKED


def test_F34_a_killed_holder_is_no_obstacle(room: Path) -> None:
    """After SIGKILL the project is free at once, though the holder's name is still there."""
    with another_run(room) as child:
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert (room / HOLDER_NAME).exists()
        assert live_holder(room, NOON) is None
        with acquire(room) as lock:
            assert lock.holder.run == "mine"


def test_letting_go_frees_the_project_and_removes_the_name(room: Path) -> None:
    """After a normal end nothing but the empty lock file is left, and letting go twice is fine."""
    lock = acquire(room)
    lock.release()
    lock.release()
    assert {entry.name for entry in room.iterdir()} == {LOCK_NAME}
    acquire(room).release()


def test_the_holder_names_this_process(room: Path) -> None:
    """Who holds the project can be asked without taking anything."""
    with acquire(room):
        holder = live_holder(room, NOON)
        assert holder is not None
        assert (holder.run, holder.mode, holder.pid) == ("mine", "script", os.getpid())
        assert holder.host == os.uname().nodename
        assert holder.pid_started == pytest.approx(started_at(os.getpid()) or 0, abs=1)


def test_a_process_id_that_came_round_again_is_not_the_holder(room: Path) -> None:
    """A name left behind by a dead run does not fit another process with its number."""
    with acquire(room):
        left = json.loads((room / HOLDER_NAME).read_text())
    left["pid_started"] -= 3600
    (room / HOLDER_NAME).write_text(json.dumps(left))
    assert live_holder(room, NOON) is None


def test_children_do_not_keep_the_lock(room: Path) -> None:
    """An agent that outlives a killed supervisor does not lock the project."""
    script = (
        "import subprocess, sys; from pathlib import Path\n"
        "from ralphloop.journal.lock import RunLock\n"
        "lock = RunLock(Path(sys.argv[1]), run='other', now=0.0)\n"
        "quiet = subprocess.DEVNULL\n"
        "child = subprocess.Popen(\n"
        "    ['sleep', '60'], stdout=quiet, stderr=quiet, close_fds=False)\n"
        "print(child.pid, flush=True)\n"
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = python("-c", script, str(room))
    assert done.returncode == -signal.SIGKILL
    child = int(done.stdout)
    assert started_at(child) is not None
    try:
        acquire(room).release()
    finally:
        os.kill(child, signal.SIGKILL)


def test_an_unnamed_holder_is_still_a_holder(room: Path) -> None:
    """Where the name is missing or damaged, the kernel's word is enough."""
    with another_run(room):
        (room / HOLDER_NAME).unlink()
        for content in (None, b"", b"[" * 100_000, b'{"run": "x"}', b"\x80"):
            if content is not None:
                (room / HOLDER_NAME).write_bytes(content)
            with pytest.raises(LockedError, match="has not given its name"):
                acquire(room)


def test_a_lock_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    """Where the lock's directory cannot be, the error says so, with a next step."""
    (tmp_path / ".ralph").write_text("a file in its place")
    with pytest.raises(RepositoryError, match="cannot lock") as caught:
        acquire(tmp_path / ".ralph")
    assert caught.value.next_step


def test_many_at_once_and_only_one_wins(room: Path) -> None:
    """Of several runs started in the same moment exactly one gets the project."""
    script = (
        "import sys; from pathlib import Path\n"
        "from ralphloop.errors import LockedError; from ralphloop.journal.lock import RunLock\n"
        "sys.stdin.readline()\n"
        "try: lock = RunLock(Path(sys.argv[1]), run=sys.argv[2], now=0.0)\n"
        "except LockedError: print('refused', flush=True)\n"
        "else: print('held', flush=True); sys.stdin.readline()\n"
    )
    children = [start_python("-c", script, str(room), f"run{i}") for i in range(4)]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    answers = [child.stdout.readline().strip() for child in children if child.stdout]
    for child in children:
        child.communicate("\n", timeout=60)
    assert sorted(answers) == ["held", "refused", "refused", "refused"]


# --- loops inside an agent session -----------------------------------------------------------


def test_a_lease_holds_the_project_between_turns(room: Path) -> None:
    """After a session's turn a script run is refused and told which session, and until when."""
    with hook_turn(room, session="s-1", run="h1", now=NOON, lease_s=LEASE_S) as holder:
        assert holder.expires_at == NOON + LEASE_S
    with pytest.raises(LockedError, match="session s-1") as caught:
        acquire(room, now=NOON + 60)
    assert "/cancel-ralph" in caught.value.next_step
    assert "12:30:00Z" in caught.value.next_step


def test_a_lease_expires(room: Path) -> None:
    """A session that gave no sign for the time of its lease no longer holds the project."""
    with hook_turn(room, session="s-1", run="h1", now=NOON, lease_s=LEASE_S):
        pass
    assert active_lease(room, "s-1", NOON + LEASE_S - 1) is not None
    assert active_lease(room, "s-1", NOON + LEASE_S) is None
    acquire(room, now=NOON + LEASE_S).release()


def test_a_clock_set_back_does_not_lock_for_years(room: Path) -> None:
    """A lease renewed in the future, by a clock that was wrong, is void."""
    with hook_turn(room, session="s-1", run="h1", now=NOON + 10**8, lease_s=LEASE_S):
        pass
    assert active_lease(room, "s-1", NOON) is None
    acquire(room).release()


def test_a_session_renews_its_own_lease_and_keeps_its_beginning(room: Path) -> None:
    """Each turn moves the end, not the beginning."""
    for minutes in (0, 20, 40):
        now = NOON + minutes * 60
        with hook_turn(room, session="s-1", run="h1", now=now, lease_s=LEASE_S):
            pass
    holder = active_lease(room, "s-1", NOON + 3600)
    assert holder is not None
    assert (holder.since, holder.expires_at) == (NOON, NOON + 40 * 60 + LEASE_S)


def test_two_sessions_do_not_share_a_project(room: Path) -> None:
    """A second session's turn is refused while the first one's lease runs."""
    with hook_turn(room, session="s-1", run="h1", now=NOON, lease_s=LEASE_S):
        pass
    turn = hook_turn(room, session="s-2", run="h2", now=NOON, lease_s=LEASE_S)
    with pytest.raises(LockedError, match="s-1"), turn:
        pytest.fail("the second session got in")
    assert active_lease(room, "s-2", NOON) is None


def test_a_session_is_refused_while_a_run_holds(room: Path) -> None:
    """Script mode keeps hook mode out, and names itself."""
    with another_run(room) as child:
        turn = hook_turn(room, session="s-1", run="h1", now=NOON, lease_s=LEASE_S)
        with pytest.raises(LockedError, match=f"process {child.pid}"), turn:
            pytest.fail("the session got in")
        holder = read_holder(room)
    assert holder is not None
    assert holder.mode == "script"


def test_a_turn_that_fails_keeps_the_lease(room: Path) -> None:
    """An error inside a turn does not open the project to others."""
    turn = hook_turn(room, session="s-1", run="h1", now=NOON, lease_s=LEASE_S)
    with pytest.raises(ZeroDivisionError), turn:
        raise ZeroDivisionError
    assert active_lease(room, "s-1", NOON + 1) is not None


def test_only_the_session_itself_ends_its_lease(room: Path) -> None:
    """Its last turn frees the project for others; a stranger's ends nothing."""
    with hook_turn(room, session="s-1", run="h1", now=NOON, lease_s=LEASE_S):
        pass
    last = hook_turn(
        room, session="s-2", run="h2", now=NOON, lease_s=LEASE_S, goes_on=lambda: False
    )
    with pytest.raises(LockedError), last:
        pytest.fail("the second session got in")
    assert active_lease(room, "s-1", NOON) is not None
    last = hook_turn(
        room, session="s-1", run="h1", now=NOON, lease_s=LEASE_S, goes_on=lambda: False
    )
    with pytest.raises(ZeroDivisionError), last:
        raise ZeroDivisionError  # also where it fails
    assert read_holder(room) is None
    acquire(room).release()


def test_a_lease_ends_in_the_work_tree_also_where_our_directory_is_gone(room: Path) -> None:
    """A check may have run `git clean -fdx` during the last turn."""
    room.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(room.parent)], check=True)
    last = hook_turn(
        room, session="s-1", run="h1", now=NOON, lease_s=LEASE_S, goes_on=lambda: False
    )
    with last:
        shutil.rmtree(room)
    room.mkdir()
    acquire(room).release()


@pytest.mark.parametrize(
    "content", ["", "null", "[]", "{}", "not json", '{"run": 1}', '{"expires_at": NaN}']
)
def test_a_damaged_lease_holds_nothing(room: Path, content: str) -> None:
    """A file that cannot be read names nobody and stops nobody."""
    room.mkdir(parents=True)
    (room / HOLDER_NAME).write_text(content)
    assert read_holder(room) is None
    acquire(room).release()


def test_an_endless_lease_is_no_lease(room: Path) -> None:
    """Nobody gets the project for ever by writing Infinity."""
    with hook_turn(room, session="s-1", run="h1", now=NOON, lease_s=LEASE_S):
        pass
    file = room / HOLDER_NAME
    file.write_text(file.read_text().replace(str(NOON + LEASE_S), "Infinity"))
    assert active_lease(room, "s-1", NOON) is None


def test_the_question_of_a_hook_loads_next_to_nothing(room: Path) -> None:
    """Whether a loop is active is answered without msgspec, psutil, sqlite3 or the core."""
    script = (
        "import sys; from pathlib import Path\n"
        "from ralphloop.journal.holder import active_lease\n"
        "assert active_lease(Path(sys.argv[1]), 's', 0.0) is None\n"
        "print(*sys.modules)\n"
    )
    loaded = set(python("-c", script, str(room)).stdout.split())
    assert "ralphloop.journal.holder" in loaded
    assert not loaded & {"msgspec", "psutil", "sqlite3", "dataclasses", "asyncio", "subprocess"}
    assert {name for name in loaded if name.startswith("ralphloop")} == {
        "ralphloop",
        "ralphloop.journal",
        "ralphloop.journal.holder",
    }


def test_a_file_system_that_refuses_locks_is_none_to_run_on(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the kernel's lock is refused, nothing starts, and the way out is said."""

    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(RepositoryError, match="cannot lock") as caught:
        acquire(room)
    assert "file system" in caught.value.next_step


def test_a_process_that_is_gone_has_no_start() -> None:
    """Asking for a dead or impossible process is answered, not failed."""
    child = subprocess.Popen([sys.executable, "-c", ""], env=environment())
    child.wait()
    assert started_at(child.pid) is None
    assert started_at(-1) is None
    assert started_at(10**30) is None
