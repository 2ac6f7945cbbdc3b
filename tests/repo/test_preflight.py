"""Looking before leaping: what pre-flight finds in a repository."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ralphloop.errors import Finding, Level
from ralphloop.repo.preflight import disk_space, inspect
from ralphloop.repo.work_tree import never_progress
from tests.repo.sandbox import Sandbox
from tests.timing import FOR_EVER_S


def _inspect(box: Sandbox, **options: Any) -> dict[str, Finding]:
    own = never_progress(also=("prd.json",))
    found = inspect(box.repository(), store=box.store, own=own, **options)
    return {finding.code: finding for finding in found if finding.code != "disk"}


def test_a_ready_repository_only_says_where_commits_land(box: Sandbox) -> None:
    """Nothing stands in the way."""
    found = _inspect(box)
    assert set(found) == {"branch"}
    assert found["branch"].message == "commits land on branch main"


def test_an_unborn_branch_is_said(unborn: Sandbox) -> None:
    """A repository without commits is fine, and said."""
    assert "no commit yet" in _inspect(unborn)["branch"].message


def test_dirt_is_an_error_unless_it_is_allowed(box: Sandbox) -> None:
    """Each way it is said which paths, and our own files are no dirt."""
    box.write("prd.json")
    box.write("progress.txt")
    assert "dirty" not in _inspect(box)
    for number in range(7):
        box.write(f"new{number}.py")
    dirty = _inspect(box)["dirty"]
    assert dirty.level is Level.ERROR
    assert dirty.message.startswith("uncommitted changes: new0.py, new1.py")
    assert dirty.message.endswith("and 2 more")
    assert "--allow-dirty" in dirty.fix
    assert _inspect(box, allow_dirty=True)["dirty"].level is Level.WARNING


def test_a_detached_head_an_operation_and_a_lock_are_errors(box: Sandbox) -> None:
    """What would stop the first commit is said before the first agent."""
    box.git("switch", "-q", "--detach")
    box.write(".git/index.lock", "")
    found = _inspect(box)
    assert found["detached"].level is Level.ERROR
    assert found["locked"].level is Level.ERROR
    assert "branch" not in found
    assert _inspect(box, commits=False)["detached"].level is Level.WARNING
    box.write(".git/MERGE_HEAD", box.git("rev-parse", "HEAD"))
    assert _inspect(box, commits=False)["unfinished"].level is Level.ERROR


def test_a_missing_identity_is_an_error(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git cannot commit without a name."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    box.git("config", "user.useConfigOnly", "true")
    box.git("config", "--unset", "user.email")
    found = _inspect(box)["identity"]
    assert found.level is Level.ERROR
    assert "user.email" in found.fix
    assert "identity" not in _inspect(box, commits=False)


def test_hooks_are_named_and_ones_that_cannot_run_are_warned_of(box: Sandbox) -> None:
    """The reader learns what runs with every commit, wherever hooks are kept."""
    hook = box.hook("pre-commit", "exit 0")
    assert _inspect(box)["hooks"].message == "hooks that run with every commit: pre-commit"
    hook.chmod(0o644)
    assert _inspect(box)["hooks"].level is Level.WARNING
    hook.unlink()
    box.write(".husky/commit-msg", "#!/bin/sh\n").chmod(0o755)
    box.git("config", "core.hooksPath", ".husky")
    assert "commit-msg" in _inspect(box, allow_dirty=True)["hooks"].message


def _sign_with(box: Sandbox, script: str) -> None:
    program = box.root.parent / "fake-gpg"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    box.git("config", "commit.gpgSign", "true")
    box.git("config", "gpg.program", str(program))


def test_signing_that_works_is_said_and_leaves_nothing_in_git(box: Sandbox) -> None:
    """The trial goes to our own store."""
    _sign_with(
        box,
        "cat >/dev/null; echo '-----BEGIN PGP SIGNATURE-----'; "
        "echo '[GNUPG:] SIG_CREATED ' >&2; echo '-----END PGP SIGNATURE-----'",
    )
    before = box.git_files()
    assert _inspect(box)["signing"].level is Level.INFO
    assert box.git_files() == before


def test_signing_that_fails_is_an_error(box: Sandbox) -> None:
    """At 22:00, not at 01:00."""
    _sign_with(box, "echo 'gpg: no secret key' >&2; exit 2")
    found = _inspect(box)["signing"]
    assert found.level is Level.ERROR
    assert "signing fails" in found.message
    assert "key" in found.fix


def test_signing_that_waits_for_a_passphrase_is_an_error(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prompt nobody sees is found by its silence."""
    monkeypatch.setattr("ralphloop.repo.preflight._SIGNING_TIMEOUT_S", 0.5)
    _sign_with(box, f"sleep {FOR_EVER_S}")
    assert "passphrase" in _inspect(box)["signing"].message


def test_a_story_file_that_git_ignores_is_said(box: Sandbox) -> None:
    """Its marks cannot be committed."""
    box.write(".gitignore", "prd.json\n")
    box.commit("ignore")
    assert "prd.json is ignored" in _inspect(box, story_files=["prd.json"])["ignored"].message
    assert "ignored" not in _inspect(box, story_files=["stories/prd.json.yaml"])


class _Disk(NamedTuple):
    f_bavail: int
    f_frsize: int


@pytest.mark.parametrize(
    "free_mb, level", [(50, Level.ERROR), (1_000, Level.WARNING), (10_000, None)]
)
def test_a_full_disk_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_mb: int, level: Level | None
) -> None:
    """Little room is a warning, almost none an error."""
    disk = _Disk(f_bavail=free_mb * 256, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    found = disk_space(tmp_path)
    assert [finding.level for finding in found] == ([] if level is None else [level])


def test_a_git_that_is_too_old_is_an_error(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version is read from git itself."""
    repo = box.repository()
    real = shutil.which("git")
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(
        '#!/bin/sh\nfor a; do [ "$a" = version ] && echo "git version 2.17.1 (Apple)" && exit; done\n'
        f'exec {real} "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    found = inspect(repo, store=box.store, own=never_progress())
    assert found[0].code == "git"
    assert found[0].message == "git 2.17.1 is too old"


def test_errors_come_first(box: Sandbox) -> None:
    """What stops the run is read before what is only good to know."""
    box.hook("pre-commit", "exit 0")
    box.write("new.py")
    found = inspect(box.repository(), store=box.store, own=never_progress())
    levels = [list(Level).index(finding.level) for finding in found]
    assert levels == sorted(levels)
    assert found[0].level is Level.ERROR
