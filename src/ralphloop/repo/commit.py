"""Committing what a story changed, with the user's own hooks and signing.

Only wanted paths are staged: everything that differs from HEAD, without our private files and
without what was dirty before and nobody touched since.  If the user has other things staged, a
partial commit leaves them as they are.  Nothing is ever pushed, forced, reset or stashed.

A hook that says no is feedback for the agent, except about the message, which is ours; signing
that fails is a problem of the machine.  A hook that rewrites files gets one second try, and the
caller is told that the committed tree is not the one that was checked.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ralphloop.core.model import Value
from ralphloop.errors import RepositoryError
from ralphloop.redaction import redact_bytes
from ralphloop.repo.commit_run import CommitRun, iteration_mark, run_commit, story_message
from ralphloop.repo.git import PATHSPECS_ON_STDIN, Entry, Git, first_lines, literal_pathspecs
from ralphloop.repo.measures import printable
from ralphloop.repo.own_files import OwnFiles, never_committed
from ralphloop.repo.work_tree import Repository, wait_for_locks
from ralphloop.room import open_regular

COMMIT_TIMEOUT_S = 600.0  # hooks may run a test suite
LARGEST_NEW_FILE = 50 * 1024 * 1024
_SEARCHED_COMMITS = 1_000
_COMMITTABLE = (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)
_READ_FOR_SECRETS = 256 * 1024
_SAMPLES = (".dist", ".example", ".sample", ".template")
_MESSAGE_HOOKS = ("commit-msg", "prepare-commit-msg")


class CommitStatus(StrEnum):
    COMMITTED = "committed"
    NOTHING = "nothing"  # there was nothing to commit
    REFUSED = "refused"  # by a hook or a half-done merge: `feedback` is for the agent


class CommitResult(Value, frozen=True, kw_only=True):
    """What became of a commit."""

    status: CommitStatus
    head: str | None = None  # afterwards
    rewritten: bool = False  # a hook changed what is committed: check again
    feedback: str = ""
    notes: tuple[str, ...] = ()  # what was left out, and what a person should look at


class PathsPolicy(NamedTuple):
    """Which of the changed paths are committed."""

    own: OwnFiles = never_committed()
    leave: Collection[str] = frozenset()  # dirty before the run and untouched since
    largest_new_file: int = LARGEST_NEW_FILE


EVERYTHING = PathsPolicy()


def commit_story(
    repo: Repository,
    *,
    story_id: str,
    title: str,
    run: str,
    iteration: int,
    grade: str,
    paths: PathsPolicy = EVERYTHING,
    timeout_s: float = COMMIT_TIMEOUT_S,
) -> CommitResult:
    """Commit everything a story changed, with the mark and the progress entry."""
    message = story_message(story_id, title, run=run, iteration=iteration, grade=grade)
    wait_for_locks(repo)
    entries = repo.status().entries
    if obstacle := _obstacle(repo, entries):
        return CommitResult(status=CommitStatus.REFUSED, head=repo.head(), feedback=obstacle)
    wanted, notes = _wanted(repo, entries, paths)
    return _commit(repo, wanted, message, notes, timeout_s)


def commit_paths(
    repo: Repository,
    paths: Iterable[str],
    message: str,
    *,
    timeout_s: float = COMMIT_TIMEOUT_S,
) -> CommitResult:
    """Commit those of the given paths that differ from HEAD, and nothing else."""
    wait_for_locks(repo)
    wanted = frozenset(paths).intersection(repo.dirty_paths())
    return _commit(repo, wanted, message, (), timeout_s)


def _commit(
    repo: Repository,
    paths: frozenset[str],
    message: str,
    notes: tuple[str, ...],
    timeout_s: float,
) -> CommitResult:
    head = repo.head()
    for is_first in (True, False):
        staged = _stage(repo, paths)
        ours = {path: state for path, state in staged.items() if path in paths}
        if not ours:
            return CommitResult(status=CommitStatus.NOTHING, head=repo.head(), notes=notes)
        only = () if len(ours) == len(staged) else tuple(ours.keys() - _behind_links(repo, paths))
        done = run_commit(repo, message, only, timeout_s)
        if done.committed:
            now = repo.head()
            rewritten = not is_first or _changes_between(repo, head, now) != ours
            if rewritten and only:
                _stage(repo, paths)  # a partial commit leaves the user's index behind its hooks
            return CommitResult(
                status=CommitStatus.COMMITTED, head=now, rewritten=rewritten, notes=notes
            )
        if not (is_first and done.failed_hook and _changed_since_staging(repo, ours)):
            break
    return _refusal(repo, done, notes)


def find_commit(repo: Repository, *, run: str, iteration: int) -> str | None:
    """The commit an earlier process made for an iteration, if it came that far."""
    if repo.head() is None:
        return None
    wanted = iteration_mark(run, iteration)
    marked = marked_commits(repo.git, f"--max-count={_SEARCHED_COMMITS}", "HEAD")
    return next((commit for commit, mark in marked if mark == wanted), None)


def marked_commits(git: Git, *wanted: str) -> Iterator[tuple[str, str]]:
    """Commits with the iterations they say they were made for, newest first."""
    form = "--format=%H%n%(trailers:key=Ralph-Iteration,valueonly)"
    output = git.run("log", "-z", form, *wanted, "--")
    for record in output.decode("utf-8", "replace").split("\0"):
        commit, *marks = record.strip().splitlines()[:20] or [""]
        yield from ((commit, mark.strip()) for mark in marks)


def marks_since(repo: Repository, base: str) -> set[str]:
    """The iterations whose commits HEAD contains; what `base` contains is not looked at."""
    args = ("log", "-z", "--format=%(trailers:key=Ralph-Iteration,valueonly)")
    wanted = ("--fixed-strings", "--grep=Ralph-Iteration: ", "HEAD")
    ended = repo.git.attempt(*args, *wanted, *([f"^{base}"] if base else []), "--")
    if ended.returncode != 0 and base and repo.head() is not None:
        return marks_since(repo, "")  # a person rewrote what the run began with
    found = ended.stdout.decode("utf-8", "replace").replace("\0", "\n").splitlines()
    return {mark.strip() for mark in found}


def _obstacle(repo: Repository, entries: list[Entry]) -> str:
    """What the agent left half done, so that a commit would seal it; empty where nothing is."""
    operation = repo.unfinished_operation()
    if operation is not None:
        return f"a {operation} is in progress in the repository: finish or abort it"
    conflicts = [printable(os.fsdecode(entry.path)) for entry in entries if entry.is_unmerged]
    return f"unresolved conflicts: {', '.join(conflicts[:5])}" if conflicts else ""


def _wanted(
    repo: Repository, entries: list[Entry], policy: PathsPolicy
) -> tuple[frozenset[str], tuple[str, ...]]:
    wanted: set[str] = set()
    notes: list[str] = []
    for entry in entries:
        path = os.fsdecode(entry.path)
        if path in policy.own or path in policy.leave:
            continue
        if reason := _left_out(repo, entry, policy):
            notes.append(f"not committed: {printable(path)} ({reason})")
            continue
        wanted.add(path)
        if entry.is_untracked and _may_hold_secrets(repo.root / path):
            notes.append(f"{printable(path)} may hold a secret: look at it before you push")
    return frozenset(wanted), tuple(notes[:20])


def _left_out(repo: Repository, entry: Entry, policy: PathsPolicy) -> str:
    """Why a path cannot or should not be committed; empty where it can."""
    if entry.is_untracked and entry.path.endswith(b"/"):
        return "a repository of its own"
    if entry.submodule.startswith("S") and entry.staged == "." and "C" not in entry.submodule:
        return "a submodule with uncommitted changes"
    path = repo.root / os.fsdecode(entry.path)
    try:
        found = path.lstat()
    except OSError:
        return ""  # deleted, or not there for us
    if stat.S_ISREG(found.st_mode) and not os.access(path, os.R_OK):
        return "it cannot be read"
    if stat.S_IFMT(found.st_mode) not in _COMMITTABLE:
        return "a pipe or a device"
    if entry.is_untracked and found.st_size > policy.largest_new_file:
        return f"a new file of {found.st_size // 1024**2} MB"
    return ""


def _may_hold_secrets(path: Path) -> bool:
    """A new file that is named or reads like one that nobody means to publish."""
    name = path.name.lower()
    if name == ".env" or (name.startswith(".env.") and not name.endswith(_SAMPLES)):
        return True
    try:
        with open_regular(path) as file:
            start = file.read(_READ_FOR_SECRETS)
    except OSError:
        return False  # gone again, or a directory
    return redact_bytes(start) != start


_Staged = dict[str, str]  # path to mode and content


def _stage(repo: Repository, paths: frozenset[str]) -> _Staged:
    """Take the paths into the index; everything that is staged then, ours or not."""
    git = repo.git.writing()
    if behind := _behind_links(repo, paths):
        gone = b"".join(os.fsencode(path) + b"\0" for path in behind)
        git.run("update-index", "--force-remove", "-z", "--stdin", stdin=gone)
    if paths - behind:
        args = ("add", "--all", *PATHSPECS_ON_STDIN)
        specs = literal_pathspecs(paths - behind)
        ended = git.attempt(*args, stdin=specs, timeout_s=COMMIT_TIMEOUT_S)
        if ended.returncode != 0 and b"sparse" in ended.stderr:
            ended = git.attempt("add", "--sparse", *args[1:], stdin=specs)
        if ended.returncode != 0:
            raise RepositoryError(f"git add failed: {first_lines(ended.stderr)}")
    base = repo.head() or _empty_tree(git)
    raw = git.run("diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", base)
    return _raw_states(raw)


def _behind_links(repo: Repository, paths: Collection[str]) -> frozenset[str]:
    """Files whose directory became a link: gone, and git takes no such path for a name."""
    directories = {directory for path in paths for directory in PurePosixPath(path).parents}
    links = {one for one in directories if (repo.root / one).is_symlink()}
    return frozenset(p for p in paths if not links.isdisjoint(PurePosixPath(p).parents))


def _empty_tree(git: Git) -> str:
    return git.line("hash-object", "-t", "tree", os.devnull)


def _changes_between(repo: Repository, before: str | None, after: str | None) -> _Staged:
    git = repo.git
    base = before or _empty_tree(git)
    args = ("diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev")
    return _raw_states(git.run(*args, base, after or base))


def _raw_states(output: bytes) -> _Staged:
    fields = output.split(b"\0")
    states: _Staged = {}
    for meta, path in zip(fields[0::2], fields[1::2], strict=False):
        _, mode, _, content, _ = meta.decode().split(" ")
        states[os.fsdecode(path)] = f"{mode} {content}"
    return states


def _changed_since_staging(repo: Repository, ours: _Staged) -> bool:
    """True where a hook rewrote one of our files after it was staged."""
    changed = repo.git.run(
        "diff-files", "--name-only", "-z", "--no-renames", "--ignore-submodules=dirty"
    )
    return any(os.fsdecode(path) in ours for path in changed.split(b"\0"))


def _refusal(repo: Repository, done: CommitRun, notes: tuple[str, ...]) -> CommitResult:
    """What a commit that did not happen means, and for whom."""
    if done.failed_hook in _MESSAGE_HOOKS:
        raise RepositoryError(
            f"the {done.failed_hook} hook refuses our commit message: {done.said}",
            'let the hook accept `<story>: <title>`, or set `commit = "never"` under [git]',
        )
    if done.failed_hook:
        how = "did not finish in time" if done.timed_out else "failed"
        return CommitResult(
            status=CommitStatus.REFUSED,
            head=repo.head(),
            feedback=f"the {done.failed_hook} hook {how}:\n{done.said}",
            notes=notes,
        )
    if done.signing_failed:
        raise RepositoryError(
            f"the commit could not be signed: {done.said}",
            "unlock the signing key for this session, or set commit.gpgSign to false here",
        )
    raise RepositoryError(f"git commit failed: {done.said}")
