"""The work trees of lanes: made, made ready, reused, and never cleaned before they are saved.

They lie outside of the checkout (`<repository>.lanes/<n>`), so that no tool resolves upward into
the user's files.  Number 0 is the landing tree, on no branch; a lane stands on `ralph/lane-<n>`,
whose commits never leave it: what lands is one commit made of the lane's files.

What `copy`, `.worktreeinclude` and `setup` brought is brought again whenever a file that names
dependencies changed; in the landing tree nothing else that is ignored survives.  A copied virtual
environment that installs the project from the user's checkout would test that one: it is refused,
and so is a link into it.
"""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ralphloop.atomic import kill_point, write_atomic
from ralphloop.config.model import Config
from ralphloop.core.merging import Conflict
from ralphloop.core.model import Value
from ralphloop.errors import InputError, RepositoryError
from ralphloop.lanes import inner
from ralphloop.loop.runner import lane_branch
from ralphloop.proc.run import Output, run_command
from ralphloop.repo.commit import with_trailers
from ralphloop.repo.git import (
    ANYHOW,
    PATHSPECS_ON_STDIN,
    Git,
    first_lines,
    literal_pathspecs,
    nul_ended,
    printable,
)
from ralphloop.repo.merge import Labels, Merged, merged
from ralphloop.repo.set_aside import scratch_index
from ralphloop.repo.work_tree import Repository, project_prefix, wait_for_locks
from ralphloop.room import read_regular
from ralphloop.text.plain import some

MARK = "ralph-lane"
INCLUDE = ".worktreeinclude"
MAKE_IT = 'make one in lanes.setup, such as ["uv", "sync"]'
_LONG_S = 600.0
_SETUP_S = 1800.0
_KEPT_OUTPUT = 4_000
_LARGEST_MANIFEST = 16 << 20
_MODULE_PATHS = ("PYTHONPATH", "NODE_PATH", "RUBYLIB", "PERL5LIB", "CLASSPATH")
_MANIFESTS = (
    "package.json package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lockb bun.lock"
    " pyproject.toml setup.py setup.cfg poetry.lock uv.lock Pipfile.lock requirements.txt"
    " requirements-dev.txt Cargo.toml Cargo.lock go.mod go.sum Gemfile.lock composer.lock"
).split()


class ReadyMark(Value, kw_only=True):
    """What a work tree of ours was made ready with; a mark in git's directory of it."""

    home: str = ""  # the checkout it belongs to
    digest: str = ""
    brought: tuple[str, ...] = ()  # what is ignored and is to stay
    proven: bool = False  # the checks that were green before any work were so in here


class LaneTree(msgspec.Struct, frozen=True):
    """One work tree of ours; 0 is the landing tree."""

    number: int
    repo: Repository

    @property
    def root(self) -> Path:
        return self.repo.root

    @property
    def git(self) -> Git:
        """Git that changes this work tree, without anybody's hooks."""
        return self.repo.git.writing().adapted(config=(f"core.hooksPath={os.devnull}",))

    def mark(self) -> ReadyMark:
        return read_mark(self.repo.git_dir) or ReadyMark()

    @property
    def home(self) -> Path:
        """The checkout it belongs to."""
        return Path(self.mark().home)


def read_mark(git_dir: Path) -> ReadyMark | None:
    """What is known of a work tree of ours; None where it is not."""
    try:
        # Not by `msgspec.json`: paths may be no text.
        return msgspec.convert(json.loads(read_regular(git_dir / MARK, most=1 << 20)), ReadyMark)
    except (OSError, ValueError, RecursionError):
        return None


def directory_of(home: Repository, where: str) -> Path:
    if where:
        place = Path(os.path.normpath(home.root / Path(where).expanduser()))
        if place == home.root or place.is_relative_to(home.root):
            raise InputError(
                f"{where} lies inside the repository",
                "Name a directory beside it.",
                place="lanes.where",
            )
        return place
    return home.root.with_name(f"{home.root.name}.lanes")


def listed(home: Repository) -> Iterator[tuple[Path, Path, str]]:
    """Every linked work tree: its root, git's directory of it, its branch."""
    places = {}
    for place in (home.common_dir / "worktrees").glob("*"):
        with suppress(OSError):
            told = os.fsdecode(read_regular(place / "gitdir", most=1 << 16)).strip()
            places[Path(told).parent] = place
    for entry in home.git.line("worktree", "list", "--porcelain").split("\n\n"):
        lines = dict(line.partition(" ")[::2] for line in entry.splitlines())
        root = Path(lines.get("worktree", ""))
        if root in places:
            yield root, places[root], lines.get("branch", "").removeprefix("refs/heads/")


def open_tree(home: Repository, directory: Path, number: int, commit: str) -> LaneTree:
    """The work tree of that number: the one that is there, or a new one without any file yet."""
    root = directory / (str(number) if number else "landing")
    known = {path: git_dir for path, git_dir, _ in listed(home)}
    if root in known and not (root / ".git").exists():
        home.git.writing().confined(None).run("worktree", "remove", "--force", "--force", str(root))
        known.pop(root)  # somebody deleted its files
    if root not in known:
        if root.exists() and any(root.iterdir()):
            raise _in_the_way(root)
        root.parent.mkdir(parents=True, exist_ok=True)
        how = ("--quiet", "--force", "--no-checkout", "--detach")
        git = home.git.writing().confined(None)  # nothing of anybody's runs: no file is written yet
        ended = git.attempt("worktree", "add", *how, str(root), commit, timeout_s=_LONG_S)
        if ended.returncode != 0:
            raise RepositoryError(f"no work tree could be made: {first_lines(ended.stderr)}")
        kill_point("lane.added")
    place = LaneTree(number, Repository.open(root))
    if (home.root / ".gitmodules").exists():
        # There before any sandbox is: what is not must not come into being, and is taken away.
        (place.repo.git_dir / "modules").mkdir(exist_ok=True)
    if read_mark(place.repo.git_dir) is None:
        if any(path.name != ".git" for path in root.iterdir()) and place.repo.dirty_paths():
            raise _in_the_way(root)
        write_mark(place, ReadyMark(home=str(home.root)))
    return place


def _in_the_way(root: Path) -> RepositoryError:
    return RepositoryError(
        f"{root} is in the way: it is no lane of this repository",
        "Move it away, or name another directory: lanes.where",
    )


def is_empty(place: LaneTree) -> bool:
    """Whether nothing was ever put into it."""
    return not (place.repo.git_dir / "index").exists()


def bring_back(place: LaneTree) -> bool:
    """A work tree whose files somebody deleted, as its last commit has it; False where it is."""
    link, git_dir = place.root / ".git", place.repo.git_dir
    if link.exists() or not git_dir.is_dir():
        return False
    place.root.mkdir(parents=True, exist_ok=True)
    emptied = not any(place.root.iterdir())
    write_atomic(link, b"gitdir: " + os.fsencode(git_dir) + b"\n", within=place.root)
    if emptied:
        place.git.run("reset", "--quiet", "--hard", timeout_s=_LONG_S)
    return True


def stand(place: LaneTree, commit: str, *, keep_inner: bool = False) -> None:
    """Hold exactly this commit; whatever else was there must have been saved.

    `keep_inner`: repositories that an agent made in here stay.
    """
    bring_back(place)
    wait_for_locks(place.repo)
    git = place.git
    if operation := place.repo.unfinished_operation():
        git.attempt(operation, "reset" if operation == "bisect" else "--quit")
    on = ("-B", lane_branch(place.number)) if place.number else ("--detach",)
    git.run("checkout", "--quiet", "--force", *on, commit, timeout_s=_LONG_S)
    git.run("clean", "-fdq" if keep_inner else "-ffdq", timeout_s=_LONG_S)
    inner.follow(place.repo, place.home)
    if not place.number:
        for path in set(_ignored(place)) - set(place.mark().brought):
            remove(place.root / path)
    kill_point("lane.stood")


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _ignored(place: LaneTree) -> list[str]:
    args = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    return [path.rstrip("/") for path in place.repo.git.names(*args)]


def work_of(
    place: LaneTree, base: str, leave: Iterable[str], words: str, ref: str, *, known: str = ""
) -> str:
    """One commit on top of `base` with all that the lane holds, kept under a ref; its name.

    Commits of the agent and forced additions are in it; what `leave` names is as in `base`.  Where
    the commit that is `known` has just that, it is the answer, and empty where there is nothing.
    Of repositories inside the lane it has the commits of submodules, which are kept as well.
    """
    wait_for_locks(place.repo)
    head = place.repo.head() or base
    made_inside = inner.made_inside(place.repo, base)
    paths = [*leave, *made_inside]
    staged = _staged(place.repo, head)
    with scratch_index(place.repo, head) as git:
        but = (f":(exclude,top,literal){path}" for path in made_inside)
        ended = git.attempt("add", "--all", "--ignore-errors", "--", ":/", *but, timeout_s=_LONG_S)
        if ended.returncode not in (0, 1):  # what cannot be read is left out, as by a commit
            said = first_lines(ended.stderr)
            raise RepositoryError(f"the work in {place.root} could not be saved: {said}")
        forced = [path for path in staged.added if path not in made_inside]
        if forced:
            args = ("add", "--force", "--ignore-errors", *PATHSPECS_ON_STDIN)
            git.attempt(*args, stdin=literal_pathspecs(forced), timeout_s=_LONG_S)
        specs = [f":(top,literal){path}" for path in (*paths, *staged.untracked)]
        git.run("rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--", *specs)
        theirs = git.run("ls-tree", "-r", "-z", base, "--", *(path.rstrip("/") for path in paths))
        git.run("update-index", "-z", "--index-info", stdin=theirs)
        tree = git.line("write-tree")
        inner.keep_commits(place.repo, place.home, base, ref)
        if tree == git.line("rev-parse", f"{base}^{{tree}}"):
            return ""
        # The same files on top of another commit would be another change.
        is_known = known and base == place.repo.commit_of(f"{known}~1")
        if is_known and tree == git.line("rev-parse", f"{known}^{{tree}}"):
            return known
        commit = git.line("commit-tree", tree, "-p", base, "-m", with_trailers(words, {}))
    place.git.run("update-ref", ref, commit)
    kill_point("lane.saved")
    return commit


class _Staged(Value, kw_only=True):
    """What only the index of a work tree knows."""

    added: tuple[str, ...] = ()  # and still there
    untracked: tuple[str, ...] = ()  # taken out of git, still there, and ignored


def _staged(repo: Repository, head: str) -> _Staged:
    """What an agent added by force, or told git to forget."""
    args = ("diff-index", "--cached", "--name-status", "--no-renames", "-z", head, "--")
    fields = repo.git.names(*args, ok=ANYHOW)
    found = list(zip(fields[0::2], fields[1::2], strict=False))
    there = [it for it in found if os.path.lexists(repo.root / it[1])]
    gone = nul_ended(os.fsencode(path) for status, path in there if status == "D")
    ignored = ("check-ignore", "--no-index", "-z", "--stdin")
    return _Staged(
        added=tuple(path for status, path in there if status == "A"),
        untracked=tuple(repo.git.names(*ignored, stdin=gone, ok=ANYHOW)) if gone else (),
    )


def merge_onto(place: LaneTree, commit: str, onto: str) -> Merged:
    """What a lane's commit and a landed one are together, in objects; nothing is touched."""
    repo = place.repo
    landed = repo.git.line("log", "-1", "--format=%h (%s)", onto, "--")
    own = repo.git.line("log", "-1", "--format=%h (%s)", commit, "--")
    labels = Labels(landed=f"landed {landed}", own=own)
    return merged(repo, f"{commit}~1", onto, commit, labels)


def name_of(repo: Repository, commit: str) -> str:
    """The ref of ours that keeps a commit; the commit itself where none does."""
    args = ("for-each-ref", "--count=1", f"--points-at={commit}", "--format=%(refname)")
    return repo.git.line(*args, "refs/ralph/") or commit


def put_onto(place: LaneTree, commit: str, *, ref: str = "") -> tuple[Conflict, ...]:
    """Bring a lane's commit into this tree, on top of what it stands on; what is in conflict.

    `ref`: what is kept of the lane beside that commit belongs to this one.
    """
    if not commit:
        return ()  # there was nothing to save
    found = merge_onto(place, commit, place.repo.head() or "HEAD")
    place.git.run("read-tree", "--reset", "-u", found.tree, timeout_s=_LONG_S)
    inner.follow(place.repo, place.home, ref)
    return found.conflicts


def bring_inner(source: LaneTree, place: LaneTree, base: str) -> None:
    """Copy the repositories that an agent made in a lane: in the checkout they would be there."""
    for path in inner.made_inside(source.repo, base):
        if not os.path.lexists(place.root / path):
            _copy_one(source.root / path, place.root / path)


def unsolved(place: LaneTree) -> str:
    """Words where a conflict that we put into files still stands in them."""
    # As text, whatever attributes say.
    pattern = (
        r"^(>>>>>>> [0-9a-f]+ \(.*(work of|left in) lane [0-9]+\)|<<<<<<< landed [0-9a-f]+ \(.*)$"
    )
    found = place.repo.git.attempt("grep", "-lazE", "--untracked", pattern).stdout.split(b"\0")
    paths = [printable(os.fsdecode(path)) for path in found if path]
    return f"conflict markers are left in {some(paths, 5)}" if paths else ""


def make_ready(
    place: LaneTree, home: Repository, project: Path, config: Config, stop: Callable[[], bool]
) -> str:
    """Bring along and set up what is not committed; why that failed, in words."""
    mark, section = place.mark(), config.lanes
    lies_in = place.root / project_prefix(home.root, project)
    digest = _digest(config, [place.root, lies_in])
    if digest == mark.digest:
        return ""
    if not mark.digest:
        _copy(_included(home, section.copy, project_prefix(home.root, project)), home, place)
        copied = [settings.parent for settings in place.root.glob("*/pyvenv.cfg")]
        if where := installs_from(copied, home):
            return f"{where}. Leave it out of lanes.copy and {MAKE_IT}"
    inner.check_out_kept(place.repo, home.root)
    for argv in section.setup:
        ended = run_command(
            argv, cwd=lies_in, timeout_s=_SETUP_S, output=Output.TAIL, keep=_KEPT_OUTPUT, stop=stop
        )
        if ended.stopped:
            return ""  # the run ends; next time from the beginning
        if ended.returncode != 0:
            return f"setup failed: {' '.join(argv)}\n{ended.said[-_KEPT_OUTPUT:]}"
    brought = _ignored(place)
    if where := leads_back((place.root / path for path in brought), home):
        return where
    write_mark(place, ReadyMark(home=str(home.root), digest=digest, brought=tuple(brought)))
    return ""


def _digest(config: Config, places: Sequence[Path]) -> str:
    """Of everything that says what has to be there."""
    parts = hashlib.sha256(repr((config.lanes.setup, config.lanes.copy)).encode())
    for place in dict.fromkeys(places) if config.lanes.setup else ():
        for name in _MANIFESTS:
            with suppress(OSError):
                content = read_regular(place / name, most=_LARGEST_MANIFEST)
                parts.update(name.encode() + b"\0" + content)
    return parts.hexdigest()


def write_mark(place: LaneTree, mark: ReadyMark) -> None:
    written = json.dumps(msgspec.to_builtins(mark)).encode()
    write_atomic(place.repo.git_dir / MARK, written, within=place.repo.git_dir)


def _included(home: Repository, copy: Iterable[str], prefix: str) -> Iterator[str]:
    """The paths to be copied, from the repository's root."""
    for path in copy:
        inside = os.path.normpath(f"{prefix}{path}")
        if inside.startswith(("/", "..")) or inside in (".", ".git"):
            raise InputError(
                f"{path!r} is no path inside of the project",
                "Name a file or directory in it.",
                place="lanes.copy",
            )
        yield inside
    if (home.root / INCLUDE).is_file():
        args = ("ls-files", "--others", "--ignored", f"--exclude-from={INCLUDE}", "--directory")
        yield from (path.rstrip("/") for path in home.git.names(*args, "-z"))


def _copy(paths: Iterable[str], home: Repository, place: LaneTree) -> None:
    """Copy without what is missing or there; blocks are shared where the file system can."""
    for path in dict.fromkeys(paths):
        source, target = home.root / path, place.root / path
        if not os.path.lexists(source) or os.path.lexists(target):
            continue
        _copy_one(source, target)


def _copy_one(source: Path, target: Path) -> None:
    how = ("-c",) if sys.platform == "darwin" else ("--reflink=auto",)
    target.parent.mkdir(parents=True, exist_ok=True)
    argv = ("cp", "-a", *how, str(source), str(target))
    ended = run_command(argv, timeout_s=_SETUP_S, output=Output.TOGETHER)
    if ended.returncode != 0:
        remove(target)
        where = printable(str(source))
        raise RepositoryError(f"{where} could not be copied into a lane: {ended.said[:300]}")


def tested_instead(home: Repository, commands: Iterable[Sequence[str]]) -> str:
    """Words where checks that run in a lane would find modules of the user's checkout."""
    # Environments whose programs they start: by name, or by a whole path.
    used = [Path(place).parent for place in os.environ.get("PATH", "").split(os.pathsep)]
    used += [Path(argv[0]).parent.parent for argv in commands if argv[0].startswith("/")]
    if where := installs_from(dict.fromkeys(used), home):
        return where
    for name in _MODULE_PATHS:
        for place in os.environ.get(name, "").split(os.pathsep):
            if place.startswith("/") and Path(place).is_relative_to(home.root):
                return f"{name} names {place}: in a lane your checkout would be tested"
    return ""


def leads_back(brought: Iterable[Path], home: Repository) -> str:
    """Words where something that was brought along is a link to a directory of the checkout."""
    for path in brought:
        inside = path.glob("*") if path.is_dir() and not path.is_symlink() else ()
        scoped = (it for one in path.glob("@*") for it in one.glob("*"))  # packages of npm
        for link in (path, *inside, *scoped):
            if link.is_symlink() and link.is_dir() and link.resolve().is_relative_to(home.root):
                return f"{link} leads to {link.resolve()}: in a lane your checkout would be tested"
    return ""


def installs_from(environments: Iterable[Path], home: Repository) -> str:
    """Words where an environment takes the project from the user's checkout."""
    own = os.fsencode(home.root) + b"/"
    for place in environments:
        site = place.glob("lib/python*/site-packages/*")
        names = (p for p in site if p.suffix == ".pth" or p.name.startswith("__editable__"))
        for path in names:
            with suppress(OSError):
                text = read_regular(path, most=_LARGEST_MANIFEST) + b"/"
                if own in text.replace(b"\n", b"/\n"):
                    return (
                        f"{place} installs the project from {home.root}: in a lane it would test"
                        " your checkout"
                    )
    return ""
