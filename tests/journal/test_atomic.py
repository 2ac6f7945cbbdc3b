"""Atomic writes and durable appends on real files, killed and refused in every way we know."""

from __future__ import annotations

import os
import re
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ralphloop.atomic import (
    append,
    clean_leftovers,
    temporary_name,
    write_atomic,
)
from ralphloop.errors import RepositoryError
from tests.journal.support import python
from tests.kill_points import ATOMIC_POINTS, to_be_killed_at

WRITE = """
import sys
from pathlib import Path
from ralphloop.atomic import append, write_atomic
path = Path(sys.argv[1])
(write_atomic if sys.argv[2] == "write" else append)(path, b"new\\n")
"""


def names(directory: Path) -> set[str]:
    """What is in a directory."""
    return {entry.name for entry in directory.iterdir()}


def test_write_replaces_the_content_and_leaves_nothing_else(tmp_path: Path) -> None:
    """After a write the file has the new content and no temporary file is left."""
    target = tmp_path / "view.json"
    write_atomic(target, b"one")
    write_atomic(target, b"two")
    assert target.read_bytes() == b"two"
    assert names(tmp_path) == {"view.json"}


def test_write_keeps_the_mode_of_an_existing_file(tmp_path: Path) -> None:
    """Permissions a person gave their file survive our writing to it."""
    target = tmp_path / "prd.json"
    target.write_bytes(b"old")
    target.chmod(0o640)
    write_atomic(target, b"new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_write_gives_a_new_file_the_usual_mode(tmp_path: Path) -> None:
    """A file we create is as readable as any other the user creates."""
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "new", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_write_as_root_leaves_the_file_to_its_owner(tmp_path: Path) -> None:
    """A run under sudo does not take the user's files away from them."""
    target = tmp_path / "prd.json"
    target.write_bytes(b"old")
    os.chown(target, 4321, 4321)
    write_atomic(target, b"new")
    assert (target.stat().st_uid, target.stat().st_gid) == (4321, 4321)


def test_write_and_append_follow_a_link_and_keep_it(tmp_path: Path) -> None:
    """A linked file is changed where it really is, and the link stays a link."""
    real = tmp_path / "docs" / "prd.json"
    real.parent.mkdir()
    real.write_bytes(b"old")
    link = tmp_path / "prd.json"
    link.symlink_to(real)
    write_atomic(link, b"new\n", within=tmp_path)
    append(link, b"more\n", within=tmp_path)
    assert link.is_symlink()
    assert real.read_bytes() == b"new\nmore\n"


@pytest.mark.parametrize("write", [write_atomic, append])
def test_a_link_out_of_the_project_is_refused(tmp_path: Path, write: Callable[..., None]) -> None:
    """A link planted inside the project cannot make us write outside of it."""
    outside = tmp_path / "bashrc"
    outside.write_bytes(b"precious")
    project = tmp_path / "project"
    project.mkdir()
    (project / "progress.txt").symlink_to(outside)
    with pytest.raises(RepositoryError, match="leads out of the project"):
        write(project / "progress.txt", b"evil", within=project)
    assert outside.read_bytes() == b"precious"


def test_a_circle_of_links_is_an_error_in_words(tmp_path: Path) -> None:
    """Links that lead in a circle end in an error with a next step."""
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(RepositoryError, match="cannot write") as caught:
        write_atomic(tmp_path / "a", b"x", within=tmp_path)
    assert "circle" in caught.value.next_step


@pytest.mark.parametrize("place", ["directory", "missing/file"])
def test_what_cannot_be_written_is_named_with_a_next_step(tmp_path: Path, place: str) -> None:
    """A directory in the file's place, or none around it, is a clear error, and nothing is left."""
    (tmp_path / "directory").mkdir()
    for write in (write_atomic, append):
        with pytest.raises(RepositoryError, match=re.escape(str(tmp_path / place))) as caught:
            write(tmp_path / place, b"x")
        assert "try again" in caught.value.next_step
    assert names(tmp_path) == {"directory"}


def test_append_refuses_a_pipe_without_hanging(tmp_path: Path) -> None:
    """A pipe put in the file's place neither blocks us nor gets our words."""
    pipe = tmp_path / "progress.txt"
    os.mkfifo(pipe)
    with pytest.raises(RepositoryError, match="cannot write"):
        append(pipe, b"x")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(RepositoryError, match="not a regular file"):
            append(pipe, b"x")
    finally:
        os.close(reader)


def test_append_adds_to_the_end(tmp_path: Path) -> None:
    """Appending creates the file and then only ever adds to it."""
    target = tmp_path / "progress.txt"
    append(target, b"one\n")
    append(target, b"two\n")
    assert target.read_bytes() == b"one\ntwo\n"


def test_a_full_disk_keeps_the_old_content(tmp_path: Path) -> None:
    """A write the disk refuses leaves the old file and no temporary one."""
    target = tmp_path / "view.json"
    target.write_bytes(b"old")
    script = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from ralphloop.atomic import write_atomic; from ralphloop.errors import RalphError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try: write_atomic(Path(sys.argv[1]), b'x' * 10_000)\n"
        "except RalphError as error: print(error.message, '|', error.next_step)\n"
    )
    done = python("-B", "-c", script, str(target))
    assert "cannot write" in done.stdout
    assert "try again" in done.stdout
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == {"view.json"}


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody without rights")
def test_a_read_only_directory_is_named(tmp_path: Path) -> None:
    """Without write permission the error says so and what to do."""
    tmp_path.chmod(0o555)
    script = (
        "import os, sys; from pathlib import Path\n"
        "from ralphloop.atomic import write_atomic; from ralphloop.errors import RalphError\n"
        "os.chdir(sys.argv[1]); os.setuid(65534)\n"
        "try: write_atomic(Path('view.json'), b'x')\n"
        "except RalphError as error: print(error.message, '|', error.next_step)\n"
    )
    done = python("-c", script, str(tmp_path))
    assert "Permission denied" in done.stdout
    assert "write permission" in done.stdout


@pytest.mark.parametrize(
    ("point", "mode", "content"),
    [
        ("atomic.written", "write", b"old\n"),
        ("atomic.renamed", "write", b"new\n"),
        ("append.written", "append", b"old\nnew\n"),
    ],
)
def test_a_kill_leaves_the_old_or_the_new_content(
    tmp_path: Path, point: str, mode: str, content: bytes
) -> None:
    """Killed at any moment, the file is whole, and what is left over is found and removed."""
    target = tmp_path / "prd.json"
    target.write_bytes(b"old\n")
    done = python("-c", WRITE, str(target), mode, env=to_be_killed_at(point))
    assert done.returncode == -signal.SIGKILL
    assert target.read_bytes() == content
    clean_leftovers(tmp_path, now=time.time())
    assert names(tmp_path) == {"prd.json"}


def test_all_kill_points_of_this_module_are_covered_above() -> None:
    """The table of the test before this one knows every kill point."""
    assert set(ATOMIC_POINTS) == {"atomic.written", "atomic.renamed", "append.written"}


@pytest.mark.parametrize(("count", "killed"), [("1", True), ("2", False)])
def test_a_kill_point_counts_its_passes(tmp_path: Path, count: str, killed: bool) -> None:
    """`name:n` kills at the n-th pass and not before."""
    env = to_be_killed_at(f"atomic.written:{count}")
    done = python("-c", WRITE, str(tmp_path / "file"), "write", env=env)
    assert (done.returncode == -signal.SIGKILL) is killed


def test_leftovers_of_the_living_and_files_of_others_stay(tmp_path: Path) -> None:
    """Only old temporary files, or those of dead writers, are removed."""
    now = time.time()
    live = tmp_path / temporary_name()
    live.touch()
    (tmp_path / ".ralph-notes.tmp").touch()
    (tmp_path / ".ralph-1-0123abcd.tmp").mkdir()
    assert clean_leftovers(tmp_path, now=now) == []
    os.utime(live, (now - 120, now - 120))
    assert clean_leftovers(tmp_path, now=now) == [live]
    assert names(tmp_path) == {".ralph-notes.tmp", ".ralph-1-0123abcd.tmp"}
