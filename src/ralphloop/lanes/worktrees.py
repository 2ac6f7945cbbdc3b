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
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ralphloop.atomic import kill_point, write_atomic
from ralphloop.config.model import Config
from ralphloop.core.model import Value
from ralphloop.errors import InputError, RepositoryError
from ralphloop.loop.runner import lane_branch
from ralphloop.proc import programs
from ralphloop.proc.run import CommandEnd, Output, run_command
from ralphloop.proc.sandbox import Box, in_words, refused_paths
from ralphloop.repo.checks import check_of, run_confined
from ralphloop.repo.commit import with_trailers
from ralphloop.repo.git import Git, first_lines, printable
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


def read_mark(git_dir: Path) -> ReadyMark | None:
    """What is known of a work tree of ours; None where it is not."""
    try:
        return msgspec.json.decode(read_regular(git_dir / MARK, most=1 << 20), type=ReadyMark)
    except (OSError, msgspec.DecodeError):
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
        without_hooks(home).run("worktree", "remove", "--force", "--force", str(root))
        known.pop(root)  # somebody deleted its files
    if root not in known:
        if root.exists() and any(root.iterdir()):
            raise _in_the_way(root)
        root.parent.mkdir(parents=True, exist_ok=True)
        how = ("--quiet", "--force", "--no-checkout", "--detach")
        ended = without_hooks(home).attempt(
            "worktree", "add", *how, str(root), commit, timeout_s=_LONG_S
        )
        if ended.returncode != 0:
            raise RepositoryError(f"no work tree could be made: {first_lines(ended.stderr)}")
        kill_point("lane.added")
    place = LaneTree(number, Repository.open(root))
    if read_mark(place.repo.git_dir) is None:
        if any(path.name != ".git" for path in root.iterdir()) and place.repo.dirty_paths():
            raise _in_the_way(root)
        write_mark(place, ReadyMark(home=str(home.root)))
    return place


def without_hooks(home: Repository) -> Git:
    """Git that makes and removes work trees, outside of any box: no file of theirs is read."""
    git = home.git.writing().confined(None)
    return git.adapted(config=(f"core.hooksPath={os.devnull}",))


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


def stand(place: LaneTree, commit: str) -> None:
    """Hold exactly this commit; whatever else was there must have been saved."""
    bring_back(place)
    wait_for_locks(place.repo)
    git = place.git
    if operation := place.repo.unfinished_operation():
        git.attempt(operation, "reset" if operation == "bisect" else "--quit")
    on = ("-B", lane_branch(place.number)) if place.number else ("--detach",)
    git.run("checkout", "--quiet", "--force", *on, commit, timeout_s=_LONG_S)
    git.run("clean", "-ffdq", timeout_s=_LONG_S)
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
    """
    wait_for_locks(place.repo)
    head, paths = place.repo.head() or base, list(leave)
    with scratch_index(place.repo, head) as git:
        ended = git.attempt("add", "--all", "--ignore-errors", "--", ":/", timeout_s=_LONG_S)
        if ended.returncode not in (0, 1):  # what cannot be read is left out, as by a commit
            said = first_lines(ended.stderr)
            raise RepositoryError(f"the work in {place.root} could not be saved: {said}")
        specs = [f":(top,literal){path}" for path in paths]
        git.run("rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--", *specs)
        theirs = git.run("ls-tree", "-r", "-z", base, "--", *(path.rstrip("/") for path in paths))
        git.run("update-index", "-z", "--index-info", stdin=theirs)
        tree = git.line("write-tree")
        for same in (base, *filter(None, (known,))):
            if tree == git.line("rev-parse", f"{same}^{{tree}}"):
                return known if same == known else ""
        commit = git.line("commit-tree", tree, "-p", base, "-m", with_trailers(words, {}))
    place.git.run("update-ref", ref, commit)
    kill_point("lane.saved")
    return commit


def put_onto(place: LaneTree, commit: str) -> tuple[str, ...]:
    """Bring a lane's commit into this tree; the paths in conflict, left in files and not in git."""
    if not commit:
        return ()  # there was nothing to save
    ended = place.git.attempt("cherry-pick", "--no-commit", commit, timeout_s=_LONG_S)
    if ended.returncode == 0:
        return ()
    how = ("--name-only", "--ignore-submodules=dirty", "--diff-filter=U", "-z")
    found = place.repo.git.names("diff", *how)
    paths = tuple(map(printable, found))
    if not paths:
        raise RepositoryError(
            f"the work of the lane could not be put onto the landed commit:"
            f" {first_lines(ended.stderr)}"
        )
    place.git.run("reset", "--quiet")
    return paths


def unsolved(place: LaneTree) -> str:
    """Words where a conflict that we put into files still stands in them."""
    pattern = r"^>>>>>>> [0-9a-f]+ \(.*(work of|left in) lane [0-9]+\)$"
    found = place.repo.git.attempt("grep", "-lIzE", "--untracked", pattern).stdout.split(b"\0")
    paths = [printable(os.fsdecode(path)) for path in found if path]
    return f"conflict markers are left in {some(paths, 5)}" if paths else ""


def make_ready(
    place: LaneTree,
    home: Repository,
    project: Path,
    config: Config,
    stop: Callable[[], bool],
    box: Box | None = None,
) -> str:
    """Bring along and set up what is not committed; why that failed, in words.

    What sets it up may be a script of the tree, and an agent's by now: it runs as checks do.
    """
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
    for argv in section.setup:
        if box is not None and tuple(argv[:2]) == ("git", "submodule"):
            ended = _bring_submodules(place, home, argv)
        else:
            wanted = check_of(argv, _SETUP_S, box)
            ended = run_confined(wanted, lies_in, keep=_KEPT_OUTPUT, stop=stop)
        if ended.stopped:
            return ""  # the run ends; next time from the beginning
        if ended.returncode != 0:
            said = ended.said[-_KEPT_OUTPUT:]
            hints = in_words(refused_paths(said, box)) if box else []
            return "\n".join([f"setup failed: {' '.join(argv)}", said, *hints])
    brought = _ignored(place)
    if where := leads_back((place.root / path for path in brought), home):
        return where
    write_mark(place, ReadyMark(home=str(home.root), digest=digest, brought=tuple(brought)))
    return ""


def _bring_submodules(place: LaneTree, home: Repository, argv: Sequence[str]) -> CommandEnd:
    """Git's own command for submodules, which writes what no box lets be written.

    It is run outside, while it says the same as in the checkout where they are to come from.
    """
    name = ".gitmodules"
    with suppress(OSError):
        listed = read_regular(place.root / name, most=_LARGEST_MANIFEST)
        theirs = home.git.attempt("cat-file", "blob", f"HEAD:{name}")
        if theirs.returncode == 0 and theirs.stdout == listed:
            return without_hooks(place.repo).attempt(*argv[1:], timeout_s=_SETUP_S)
    return CommandEnd(1, b"", f"{name} is not as in your checkout: nothing is fetched".encode())


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
    write_atomic(place.repo.git_dir / MARK, msgspec.json.encode(mark), within=place.repo.git_dir)


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
    how = ("-c",) if sys.platform == "darwin" else ("--reflink=auto",)
    for path in dict.fromkeys(paths):
        source, target = home.root / path, place.root / path
        if not os.path.lexists(source) or os.path.lexists(target):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        argv = (programs.program("cp"), "-a", *how, str(source), str(target))
        ended = run_command(argv, timeout_s=_SETUP_S, output=Output.TOGETHER)
        if ended.returncode != 0:
            remove(target)
            raise RepositoryError(f"{path} could not be copied into a lane: {ended.said[:300]}")


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
