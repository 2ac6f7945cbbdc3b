"""The user's git repository: where it is, which state it is in, which branch work lands on.

What stands in the way of a run is a finding with its fix, never an exception.  The `index.lock` of
an agent that was stopped in a `git commit` would fail every commit of the night: it is taken away,
but only when it is old enough and no git process works in the repository.

Beside others a run may keep to a part of the work tree (`scope`): commits that do not touch it are
nobody's business, and a command that meets a lock waits for its turn.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.errors import Finding, Level, RepositoryError
from ralphloop.proc.run import CommandEnd
from ralphloop.proc.sandbox import Box
from ralphloop.repo.git import (
    STATUS_ARGS,
    Git,
    StatusReport,
    first_lines,
    parse_status,
    printable,
)
from ralphloop.room import read_regular
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import LazyRegex

_UNFINISHED = (
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
)
_NAME = LazyRegex(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_LARGEST_LOG = 16 << 20
_ELSEWHERE = "refs/heads/.invalid"  # what HEAD names where branches are not files
_FOR_THIS_MACHINE = (".ralph/", ".ralph-session.json", ".ralph-circuit-state.json")
_UNUSABLE_IN_REFS = LazyRegex(r"[\x00-\x1f\x7f]|^-|^HEAD$|^@$")


class Places(NamedTuple):
    """What has to be known to work in a repository again."""

    root: str
    git_dir: str
    common_dir: str
    objects: str
    object_format: str


class WayToBranch(NamedTuple):
    """How to come to a branch."""

    how: str  # `already`, `switched` or `created`
    words: tuple[str, ...] = ()  # for `git switch`


class HeadLogLine(NamedTuple):
    """One line of HEAD's log."""

    before: str
    after: str
    words: str  # of git: what moved it


class LostCommits(NamedTuple):
    """Commits that a branch no longer has."""

    number: int
    newest: list[str]  # with their subjects


class _Unusable(NamedTuple):
    """What git says of a place where it cannot work, and what that means here."""

    said: str
    words: str
    fix: str


_UNUSABLE = (
    _Unusable(
        "not a git repository",
        "{place} is not inside a git repository",
        "run `git init` and commit what you have, then start again",
    ),
    _Unusable(
        "dubious ownership",
        "git refuses this repository: {said}",
        "make yourself its owner, or run `git config --global --add safe.directory {place}`",
    ),
    _Unusable(
        "must be run in a work tree",
        "{place} lies inside a git directory, not in its work tree",
        "change to the directory that holds your files",
    ),
    _Unusable("", "git cannot read the repository at {place}: {said}", ""),
)


class Repository(msgspec.Struct, frozen=True):
    root: Path
    git_dir: Path  # of this work tree
    common_dir: Path  # shared by all work trees
    objects: Path
    object_format: str
    git: Git
    scope: str = ""  # the part that is looked at, as a prefix of paths; empty: all of it

    @classmethod
    def open(cls, path: Path) -> Repository:
        """The repository a path lies in; RepositoryError where there is none to work in."""
        start = path.resolve()
        if "\n" in str(start):
            raise RepositoryError("a path with a line break in it cannot be worked in")
        asked = "--is-bare-repository --show-object-format --absolute-git-dir --git-common-dir"
        ended = Git(start).attempt(
            "rev-parse", *asked.split(), "--git-path", "objects", "--show-toplevel"
        )
        answers = os.fsdecode(ended.stdout).splitlines()
        said = first_lines(ended.stderr)
        if ended.returncode != 0 and answers[:1] == ["true"]:
            raise RepositoryError(
                f"{start} is a bare repository without files to work on",
                "make a work tree with `git clone` or `git worktree add`",
            )
        if ended.returncode != 0:
            meant = next(one for one in _UNUSABLE if one.said in said)
            words = meant.words.format(place=start, said=said)
            raise RepositoryError(words, meant.fix.format(place=start))
        _, kind, git_dir, common_dir, objects, root = answers
        return cls.at(
            Places(
                root=root,
                git_dir=git_dir,
                common_dir=str((start / common_dir).resolve()),
                objects=str((start / objects).resolve()),
                object_format="sha256" if kind == "sha256" else "sha1",
            )
        )

    @classmethod
    def at(cls, places: Places) -> Repository:
        """A repository whose places are known; git is not asked."""
        root = Path(places.root)
        return cls(
            root,
            Path(places.git_dir),
            Path(places.common_dir),
            Path(places.objects),
            places.object_format,
            Git(root),
        )

    @property
    def places(self) -> Places:
        """What has to be known to work in it again."""
        return Places(
            str(self.root),
            str(self.git_dir),
            str(self.common_dir),
            str(self.objects),
            self.object_format,
        )

    @property
    def only(self) -> tuple[str, ...]:
        """What a command ends with that is to look at the scope alone."""
        return ("--", f":(top,literal){self.scope.rstrip('/')}") if self.scope else ()

    def scoped(self, scope: str) -> Repository:
        return msgspec.structs.replace(self, scope=scope)

    def confined(self, box: Box, *, guarded: bool) -> Repository:
        """The same, whose hooks and filters run in a box.

        `guarded`: an agent writes in git's directory, and a file there could lead git elsewhere.
        """
        env = {"GIT_COMMON_DIR": str(self.common_dir)} if guarded else {}
        return msgspec.structs.replace(self, git=self.git.adapted(env=env).confined(box))

    def head(self) -> str | None:
        """The commit HEAD stands on; None before the first commit."""
        ref = _named_in(self.git_dir / "HEAD")
        commit = _named_in(self.common_dir / ref) if ref.startswith("refs/heads/") else ref
        return commit if is_name(commit) else self.commit_of("HEAD") or None

    def commit_of(self, name: str) -> str:
        """The commit a name stands for; empty where there is none."""
        return self.git.line("rev-parse", "--verify", "--quiet", name, ok=(0, 1))

    def empty_tree(self) -> str:
        return self.git.line("hash-object", "-t", "tree", os.devnull)

    def paths_between(self, base: str | None, other: str, *wanted: str) -> list[str]:
        """What differs between two commits; None stands for before the first."""
        args = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", *wanted)
        return self.git.names(*args, base or self.empty_tree(), other)

    def stashes(self) -> dict[str, str]:
        """What is stashed, oldest first, with git's words for it; git itself is not asked."""
        try:
            log = read_regular(self.common_dir / "logs" / "refs" / "stash", most=1 << 20)
        except OSError:
            return {}
        pairs = (line.partition("\t") for line in log.decode("utf-8", "replace").splitlines())
        return {who.split(" ")[1]: words for who, _, words in pairs if " " in who}

    def length_of_head_log(self) -> int:
        """In bytes; 0 where nobody keeps one."""
        try:
            return (self.git_dir / "logs" / "HEAD").stat().st_size
        except OSError:
            return 0

    def head_moves(self, since: int) -> list[HeadLogLine]:
        """How HEAD of this work tree moved since its log was so long; git itself is not asked."""
        try:
            log = read_regular(self.git_dir / "logs" / "HEAD", most=_LARGEST_LOG)
        except OSError:
            return []
        moves = []
        for line in log[since:].decode("utf-8", "replace").splitlines():
            who, _, words = line.partition("\t")
            before, after, *_ = (*who.split(" ", 2), "", "")
            if is_name(before) and is_name(after):
                moves.append(HeadLogLine(before, after, words))
        return moves

    def branch(self) -> str | None:
        """The branch HEAD is on, born or not; None when detached."""
        ref = _named_in(self.git_dir / "HEAD")
        if ref.startswith("refs/heads/") and ref != _ELSEWHERE:
            return ref.removeprefix("refs/heads/")
        return self.git.line("symbolic-ref", "--quiet", "--short", "HEAD", ok=(0, 1)) or None

    def status(self, *, deep: bool = True) -> StatusReport:
        """Head, branch and all paths that differ, as git sees them; `deep`: within submodules."""
        report = parse_status(self.git.run(*STATUS_ARGS, *self.only))
        if not deep or not (self.root / ".gitmodules").exists():
            return report
        from ralphloop.repo.inner import gitlinks, with_inner_changes

        links = [link for link in gitlinks(self.git) if os.fsdecode(link).startswith(self.scope)]
        entries = with_inner_changes(report.entries, self.root, links, self.common_dir)
        return msgspec.structs.replace(report, entries=entries)

    def dirty_paths(self, own: Container[str] = (), *, deep: bool = True) -> tuple[str, ...]:
        """Paths with uncommitted changes, untracked ones included, `own` ones left out."""
        paths = (os.fsdecode(entry.path) for entry in self.status(deep=deep).entries)
        return tuple(path for path in paths if path not in own)

    def unfinished_operation(self) -> str | None:
        for name, operation in _UNFINISHED:
            if os.path.exists(f"{self.git_dir}/{name}"):  # noqa: PTH110 - asked before every start
                return operation
        return None

    def signs_commits(self) -> bool:
        wanted = self.git.line("config", "--type=bool", "--get", "commit.gpgSign", ok=(0, 1))
        return wanted == "true"

    def unfinished(self) -> Finding | None:
        """What git is in the middle of, with the way out of it."""
        if (operation := self.unfinished_operation()) is None:
            return None
        fix = f"`git {operation} --continue` finishes it, `git {operation} --abort` leaves it"
        if operation == "bisect":
            fix = "end it with `git bisect reset`"
        return Finding(Level.ERROR, f"a {operation} is in progress", fix, "unfinished")

    def problems(self) -> Iterator[Finding]:
        """What stands in the way of committing here: `unfinished`, `detached`, `locked`."""
        if unfinished := self.unfinished():
            yield unfinished
        elif self.branch() is None:  # a rebase or bisect detaches HEAD by itself
            message = "HEAD is detached, so commits would belong to no branch"
            fix = "be on a branch: `git switch <branch>`, or `git switch -c <new>`"
            yield Finding(Level.ERROR, message, fix, "detached")
        # Beside others it is a neighbour's commit, and waited for.
        if (lock := self.git_dir / "index.lock").exists() and not self.scope:
            found = who_holds(lock)
            yield Finding(Level.ERROR, found.words, found.fix, "locked")

    def switch_or_create_branch(self, name: str) -> str:
        """Be on a branch: `already`, `switched` or `created`; refuses rather than lose changes."""
        self.check_branch_name(name)
        way = self.way_to(name)
        if way.how == "already":
            return way.how
        ended = self.git.writing().attempt("switch", "--quiet", *way.words)
        # A post-checkout hook can fail although the switch is done; the branch is what counts.
        if ended.returncode != 0 and self.branch() != name:
            raise RepositoryError(
                f"could not switch to branch {name}: {first_lines(ended.stderr)}",
                "commit the changes that stand in the way, or switch by hand",
            )
        return way.how

    def way_to(self, name: str) -> WayToBranch:
        """How to be on a branch, and the words for `git switch`."""
        if self.branch() == name:
            return WayToBranch("already")
        if self.commit_of(f"refs/heads/{name}"):
            return WayToBranch("switched", ("--no-guess", name))
        refs = self.git.line("for-each-ref", "--format=%(refname)", "refs/remotes").splitlines()
        found = [ref for ref in refs if ref.split("/", 3)[3:] == [name]]
        if len(found) == 1:  # which of several remotes is meant, nobody says
            return WayToBranch("switched", ("--track", "-c", name, found[0]))
        return WayToBranch("created", ("-c", name))

    def check_branch_name(self, name: str) -> None:
        asked = ("check-ref-format", f"refs/heads/{name}")
        if not name or _UNUSABLE_IN_REFS.search(name) or self.git.attempt(*asked).returncode:
            raise RepositoryError(
                f"{name[:100]!r} is no valid branch name",
                "change branchName in the story file to letters, digits, `-`, `_`, `.` and `/`",
            )


def is_name(text: str) -> bool:
    """A whole name of an object, not an expression that leads to one."""
    return _NAME.fullmatch(text) is not None


def _named_in(path: Path) -> str:
    """What a file of git's names, asked too often to start git; empty where only git can tell."""
    try:
        return read_regular(path, most=4096).decode("ascii").strip().removeprefix("ref: ")
    except (OSError, ValueError):
        return ""


class OwnFiles:
    """The files ralph itself writes into the repository: never progress, mostly never committed.

    A pattern is a path from the repository's root; one that ends in `/` is a whole directory, and
    `*` stands for any part of one name.  Whatever lies beside `within` counts as little.
    """

    def __init__(self, patterns: Iterable[str], *, within: str = "") -> None:
        wanted = sorted(set(patterns))
        self.patterns = tuple(wanted)
        if within:
            self.patterns += (f"!{within}",)
        self._within = within
        names = (re.escape(it).replace(r"\*", "[^/]*") for it in wanted)
        ours = (rf"{it[:-1]}(?:/|\Z)" if it.endswith("/") else rf"{it}\Z" for it in names)
        self._ours = LazyRegex("|".join(ours) or "(?!)")

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str):
            return False
        return not path.startswith(self._within) or self._ours.match(path) is not None


def never_committed(project: str = "", *, within: str = "", litter: Iterable[str] = ()) -> OwnFiles:
    """What only this machine needs: the journal's directory, the two JSON views, and what an agent
    leaves behind beside its work."""
    names = (f"{project}{name}" for name in (*_FOR_THIS_MACHINE, *litter))
    return OwnFiles(names, within=within)


def never_progress(project: str = "", also: Iterable[str] = (), *, within: str = "") -> OwnFiles:
    """Everything ralph writes; `also` names story files and learned files, from the root."""
    ours = (f"{project}{name}" for name in (*_FOR_THIS_MACHINE, "progress.txt"))
    return OwnFiles((*ours, *also), within=within)


def project_prefix(root: Path, project: Path) -> str:
    """Where the project lies in its repository, as a prefix of paths: `` or `packages/api/`."""
    place = project.resolve()
    if not place.is_relative_to(root.resolve()):
        return ""
    relative = place.relative_to(root.resolve()).as_posix()
    return "" if relative == "." else f"{relative}/"


def has_again(repo: Repository, head: str | None, base: str) -> bool:
    """The same, or the same changes in other commits: what was cherry-picked is back."""
    if head is None or repo.git.contains(head, base):
        return head is not None
    args = ("rev-list", "--count", "--cherry-pick", "--right-only", "--no-merges")
    return repo.git.attempt(*args, f"{head}...{base}", "--").stdout.strip() == b"0"


def concerns(repo: Repository, *span: str) -> bool:
    """Whether any of these commits touches what we look at."""
    args = ("rev-list", "--count", "--max-count=1", "--full-history", *span)
    return not repo.scope or repo.git.line(*args, *repo.only) != "0"


def keep_lost(repo: Repository, ref: str, before: str, after: str | None) -> LostCommits | None:
    """Keep under `ref` the commits that `after` lacks; None: git no longer has them."""
    if repo.git.writing().attempt("update-ref", ref, before).returncode != 0:
        return None
    span = (before, f"^{after}") if after else (before,)
    count = int(repo.git.line("rev-list", "--count", *span, "--"))
    args = ("log", "-z", "--max-count=3", "--format=%h %s")
    said = repo.git.run(*args, *span, "--").decode("utf-8", "replace")
    return LostCommits(count, said.strip("\0").split("\0"))


OLD_ENOUGH_S = 10.0
_PAUSE_S = 0.5
_MOST_PATIENCE_S = 600.0
_ABOUT_S = 2.0  # clocks of files and of processes differ by less
_TAKEN = (b".lock': File exists", b" but expected ")  # another git writes, or was faster


def clear_dead_locks(repo: Repository) -> tuple[str, ...]:
    """Remove locks nobody holds; the names of those removed."""
    removed = []
    for lock in (repo.git_dir / "index.lock", repo.git_dir / "HEAD.lock"):
        try:
            age = time.time() - lock.stat().st_mtime
        except FileNotFoundError:
            continue
        if age >= OLD_ENOUGH_S and not _git_works_in(repo):
            lock.unlink(missing_ok=True)
            removed.append(lock.name)
    return tuple(removed)


def wait_for_locks(repo: Repository) -> None:
    """Give a running git time to finish, then clear what is dead."""
    deadline = time.monotonic() + OLD_ENOUGH_S + 2
    lock = repo.git_dir / "index.lock"
    while lock.exists() and time.monotonic() < deadline and not clear_dead_locks(repo):
        time.sleep(_PAUSE_S)


def run_retrying_on_lock(repo: Repository, git: Git, *args: str, stdin: bytes = b"") -> CommandEnd:
    """Run a command that writes; once more where somebody beside us wrote at the same moment."""
    deadline = time.monotonic() + (_MOST_PATIENCE_S if repo.scope else 0)
    while True:
        ended = git.once(*args, stdin=stdin)
        is_taken = ended.returncode != 0 and any(sign in ended.stderr for sign in _TAKEN)
        if not is_taken or time.monotonic() >= deadline:
            return ended
        clear_dead_locks(repo)
        time.sleep(_PAUSE_S)


def _git_works_in(repo: Repository) -> bool:
    return next(_gits_in([repo.root, repo.common_dir]), None) is not None


class _RunningGit(NamedTuple):
    pid: int
    words: list[str]  # of its command line
    started_at: float


def _gits_in(places: Sequence[Path]) -> Iterator[_RunningGit]:
    """Every git that works below one of these directories; ours that are held open only read."""
    import psutil

    for process in psutil.process_iter(["name"]):
        if not (process.info["name"] or "").startswith("git"):
            continue
        # A process that ends while we look, or is somebody else's, tells nothing.
        with contextlib.suppress(psutil.Error):
            place = Path(process.cwd())
            if any(place.is_relative_to(it) for it in places):
                yield _RunningGit(process.pid, process.cmdline(), process.create_time())


class LockFound(NamedTuple):
    """What is known of a lock that is in the way."""

    words: str
    fix: str


def who_holds(lock: Path) -> LockFound:
    """Which git holds a lock of its repository and since when; how to remove one that none does."""
    try:
        made_at = lock.stat().st_mtime
    except OSError:
        return LockFound(f"another git process held {lock}", "try again")
    age = format_duration(max(0.0, time.time() - made_at))
    remove = f"rm {shlex.quote(str(lock))}"
    for git in _gits_in(_work_trees_of(lock)):
        if git.started_at <= made_at + _ABOUT_S:  # a younger one did not make it
            name = " ".join(["git", *_subcommand(git.words)])
            words = f"`{name}` (process {git.pid}) holds {lock}, for {age} now"
            return LockFound(words, f"let it end; if the lock is not its own: {remove}")
    words = f"{lock} is in the way: it is {age} old, and no git that could have made it is running"
    return LockFound(words, f"remove it: {remove}")


def _work_trees_of(lock: Path) -> list[Path]:
    """Where a git may work that holds a lock in this git directory: its work trees, and itself."""
    common = next((it for it in lock.parents if (it / "objects").is_dir()), lock.parent)
    places = [common, common.parent]
    for link in common.glob("worktrees/*/gitdir"):
        with contextlib.suppress(OSError):
            places.append(Path(os.fsdecode(read_regular(link, most=1 << 16)).strip()).parent)
    return places


def _subcommand(words: list[str]) -> list[str]:
    """What a git was asked, by its first word that is no option and no option's value."""
    rest = iter(words[1:])
    for word in rest:
        if word in ("-c", "-C"):
            next(rest, None)
        elif not word.startswith("-"):
            return [printable(word)[:40]]
    return []
