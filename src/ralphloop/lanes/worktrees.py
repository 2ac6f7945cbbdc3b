"""The work trees of lanes: made, made ready, reused, and never cleaned before they are saved.

They lie outside of the checkout (`<repository>.lanes/<n>`), so that no tool resolves upward into
the user's files.  Number 0 is the landing tree, on no branch, or one of the further ones of a train
(`lanes.train`); a lane has a branch (`lanes.branch_names`) whose commits never leave it: what lands
is one commit made of the lane's files.

What `copy` and `.worktreeinclude` name is copied whenever that changes, and what they name no more
goes; `setup` runs again whenever that, itself or a file that names dependencies changed.  What it
left at work serves its tree until the run ends; then the next run sets up again.  In the landing
tree nothing else that is ignored survives.  A copied virtual environment that installs the project
from the user's checkout would test that one: it is refused, and so is a link into it.
"""

import hashlib
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.atomic import kill_point, write_atomic
from ralphloop.config.model import Config
from ralphloop.core.merging import Conflict
from ralphloop.core.model import Value
from ralphloop.errors import GitDisturbed, InputError, RepositoryError
from ralphloop.lanes import inner_repositories
from ralphloop.lanes.branch_names import lane_branch, owner_of, part_of_name
from ralphloop.proc import programs
from ralphloop.proc.process_table import OF_SETUP
from ralphloop.proc.run import CommandEnd, Output, marked_as_setup, run_command
from ralphloop.proc.sandbox import Box, in_words, refused_paths
from ralphloop.proc.tree import ASKED_ONCE, marked_processes, stop_tree
from ralphloop.project import LANDING
from ralphloop.repo.checks import NOT_RUN, check_of, run_confined
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
from ralphloop.repo.work_tree import Repository, is_name, project_prefix, wait_for_locks
from ralphloop.room import read_regular
from ralphloop.text.plain import some

MARK = "ralph-lane"
SIGNED = "(ralph lane "  # how a signature begins
INCLUDE = ".worktreeinclude"
MAKE_IT = 'make one in lanes.setup, such as ["uv", "sync"]'
_FIRST_BAY = 1000  # lanes have lower numbers
_LONG_S = 600.0
_SETUP_S = 1800.0
_KEPT_OUTPUT = 64_000
_SHOWN_FIRST = 1_000  # of what a command said that failed: its cause, mostly
_SHOWN_LAST = 3_000
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
    project: str | None = None  # where its project lies in there; None: not known
    digest: str = ""
    recipe: str = ""  # what was to be copied, as a digest
    copied: tuple[str, ...] = ()  # what was, and was not there before
    serving: str = ""  # the mark of processes that its setup left at work
    brought: tuple[str, ...] = ()  # what is ignored and is to stay
    proven: bool = False  # the checks that were green before any work were so in here


class LaneTree(msgspec.Struct, frozen=True):
    """One work tree of ours; 0 is the landing tree."""

    number: int
    repo: Repository
    branch: str = ""  # what its agent stands on; empty: a landing tree
    project: str = ""  # where the project lies in the checkout, as a prefix of paths
    bay: int = 0  # of a further landing tree, in which a story of a train is judged

    @property
    def root(self) -> Path:
        return self.repo.root

    @property
    def seat(self) -> int:
        """What tells it from all others at work: the RALPH_LANE of what runs in it."""
        return _FIRST_BAY + self.bay if self.bay else self.number

    @property
    def name(self) -> str:
        """What a person calls it."""
        if self.bay:
            return f"landing tree {self.bay} of the train"
        return f"lane {self.number}" if self.number else "the tree that stories land in"

    @property
    def git(self) -> Git:
        """Git that changes this work tree, without anybody's hooks."""
        return self.repo.git.writing().adapted(config=(f"core.hooksPath={os.devnull}",))

    @property
    def signature(self) -> str:
        """What stands behind the committer's name in the reflogs of its agent, and of no other."""
        return f"{SIGNED}{self.branch.rpartition('/lane-')[2]})"

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


def directory_of(home: Repository, project: Path, where: str) -> Path:
    """Where the lanes of a project lie; no two projects or checkouts share a place."""
    if not where:
        place = home.root.with_name(f"{home.root.name}.lanes")
        part = part_of_name(project_prefix(home.root, project))
        return place / part if part else place
    place = Path(os.path.normpath(home.root / Path(where).expanduser()))
    if place == home.root or place.is_relative_to(home.root):
        raise InputError(
            f"{where} lies inside the repository",
            "Name a directory beside it.",
            place="lanes.where",
        )
    owner = owner_of(home, project)
    return place / owner if owner else place


class LinkedTree(NamedTuple):
    """A linked work tree, whoever made it."""

    root: Path
    git_dir: Path  # git's directory of it
    branch: str  # empty: it stands on none


def linked_trees(home: Repository) -> Iterator[LinkedTree]:
    """Every linked work tree of a repository."""
    places = {}
    for place in (home.common_dir / "worktrees").glob("*"):
        with suppress(OSError):
            told = os.fsdecode(read_regular(place / "gitdir", most=1 << 16)).strip()
            places[Path(told).parent] = place
    for entry in home.git.line("worktree", "list", "--porcelain").split("\n\n"):
        lines = dict(line.partition(" ")[::2] for line in entry.splitlines())
        root = Path(lines.get("worktree", ""))
        if root in places:
            branch = lines.get("branch", "").removeprefix("refs/heads/")
            yield LinkedTree(root, places[root], branch)


def open_tree(
    home: Repository, project: Path, directory: Path, number: int, commit: str, *, bay: int = 0
) -> LaneTree:
    """The work tree of that number: the one that is there, or a new one without any file yet."""
    landing = f"{LANDING}-{bay}" if bay else LANDING
    root = directory / (str(number) if number else landing)
    known = {tree.root: tree.git_dir for tree in linked_trees(home)}
    if root in known and not (root / ".git").exists():
        without_hooks(home).run("worktree", "remove", "--force", "--force", str(root))
        known.pop(root)  # somebody deleted its files
    if root not in known:
        if root.exists() and any(root.iterdir()):
            raise _in_the_way(root)
        root.parent.mkdir(parents=True, exist_ok=True)
        how = ("--quiet", "--force", "--no-checkout", "--detach")
        try:
            ended = without_hooks(home).attempt(
                "worktree", "add", *how, str(root), commit, timeout_s=_LONG_S
            )
        except GitDisturbed:
            _take_down(home, root)  # it may be half of one
            raise
        if ended.returncode != 0:
            raise RepositoryError(f"no work tree could be made: {first_lines(ended.stderr)}")
        kill_point("lane.added")
    branch = lane_branch(home, project, number) if number else ""
    prefix = project_prefix(home.root, project)
    place = LaneTree(number, Repository.open(root), branch, prefix, bay)
    if (home.root / ".gitmodules").exists():
        # There before any sandbox is: what is not must not come into being, and is taken away.
        (place.repo.git_dir / "modules").mkdir(exist_ok=True)
    mark = read_mark(place.repo.git_dir)
    if mark is not None and mark.home != str(home.root) and Path(mark.home).is_dir():
        raise _in_the_way(root, f"it is a lane of {mark.home}")
    if mark is None:
        if any(path.name != ".git" for path in root.iterdir()) and place.repo.dirty_paths():
            raise _in_the_way(root)
        write_mark(place, ReadyMark(home=str(home.root), project=place.project))
    return place


def _take_down(home: Repository, root: Path) -> None:
    """Nothing where git was killed while it made a work tree without any file."""
    without_hooks(home).attempt("worktree", "remove", "--force", "--force", str(root))
    remove(root)


def without_hooks(home: Repository) -> Git:
    """Git that makes and removes work trees, outside of any box: no file of theirs is read."""
    git = home.git.writing().confined(None)
    return git.adapted(config=(f"core.hooksPath={os.devnull}",))


def _in_the_way(root: Path, why: str = "it is no lane of this repository") -> RepositoryError:
    return RepositoryError(
        f"{root} is in the way: {why}",
        "Move it away, or name another directory: lanes.where",
    )


def is_empty(place: LaneTree) -> bool:
    """Whether nothing was ever put into it."""
    return not (place.repo.git_dir / "index").exists()


def is_gone(place: LaneTree) -> bool:
    """Whether somebody deleted its files, or git's directory of it."""
    return not (place.root / ".git").exists() or not place.repo.git_dir.is_dir()


def bring_back(home: Repository, place: LaneTree, commit: str) -> None:
    """Make a tree again that is gone: as its last commit has it, or this one if none is known."""
    link = place.root / ".git"
    link.unlink(missing_ok=True)
    place.root.mkdir(parents=True, exist_ok=True)
    was_emptied = not any(place.root.iterdir())
    was_forgotten = not place.repo.git_dir.is_dir()
    if was_forgotten:
        _register_again(home, place, commit)
    write_atomic(link, b"gitdir: " + os.fsencode(place.repo.git_dir) + b"\n", within=place.root)
    if was_forgotten:
        bring_branch_back(place, commit)
        if place.branch:
            place.git.run("symbolic-ref", "HEAD", f"refs/heads/{place.branch}")
        write_mark(place, ReadyMark(home=str(home.root), project=place.project))
    if was_emptied or was_forgotten:
        how = "--hard" if was_emptied else "--mixed"
        place.git.run("reset", "--quiet", how, timeout_s=_LONG_S)


def _register_again(home: Repository, place: LaneTree, commit: str) -> None:
    """Give a tree git's directory again, by the name that it had."""
    git_dir = place.repo.git_dir
    how = ("--quiet", "--force", "--no-checkout", "--detach")
    git = home.git.writing().confined(None)  # nothing of anybody's runs: no file is written yet
    with tempfile.TemporaryDirectory(prefix="ralph-", dir=place.root.parent) as room:
        made = Path(room, git_dir.name)  # git takes the last part for its own name
        git.run("worktree", "add", *how, str(made), commit, timeout_s=_LONG_S)
        told = os.fsdecode(read_regular(made / ".git", most=1 << 16))
        if Path(told.removeprefix("gitdir: ").strip()).resolve() != git_dir.resolve():
            git.run("worktree", "remove", "--force", "--force", str(made))
            raise RepositoryError(
                f"{git_dir} is gone, and git made another directory in its place",
                "Go on with: ralph run --continue",
            )
        link = os.fsencode(place.root / ".git") + b"\n"
        write_atomic(git_dir / "gitdir", link, within=git_dir)


def bring_branch_back(place: LaneTree, commit: str) -> bool:
    """Make the branch of a lane again where somebody deleted it; whether it was."""
    ref = f"refs/heads/{place.branch}"
    if not place.branch or place.repo.commit_of(ref):
        return False
    log = b""
    with suppress(OSError):
        log = read_regular(place.repo.git_dir / "logs" / "HEAD")
    last = log.splitlines()[-1:] or [b""]
    _, _, named = last[0].partition(b" ")
    newest = os.fsdecode(named.partition(b" ")[0])
    if not is_name(newest) or not place.repo.commit_of(f"{newest}^{{commit}}"):
        newest = commit
    place.git.run("update-ref", ref, newest)
    return True


def reset_to_commit(place: LaneTree, commit: str, *, keep_inner: bool = False) -> None:
    """Hold exactly this commit; whatever else was there must have been saved.

    `keep_inner`: repositories that an agent made in here stay.
    """
    wait_for_locks(place.repo)
    git = place.git
    if operation := place.repo.unfinished_operation():
        git.attempt(operation, "reset" if operation == "bisect" else "--quit")
    on = ("-B", place.branch) if place.branch else ("--detach",)
    git.run("checkout", "--quiet", "--force", *on, commit, timeout_s=_LONG_S)
    git.run("clean", "-fdq" if keep_inner else "-ffdq", timeout_s=_LONG_S)
    inner_repositories.follow(place.repo, place.home)
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
    made_inside = inner_repositories.made_inside(place.repo, base)
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
        inner_repositories.keep_commits(place.repo, place.home, base, ref)
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


class PutOnto(Value, kw_only=True):
    """What came of putting a lane's commit onto what landed."""

    conflicts: tuple[Conflict, ...] = ()
    joined: tuple[bytes, ...] = ()  # paths where both sides only added lines: both are there


def put_onto(place: LaneTree, commit: str, *, ref: str = "") -> PutOnto:
    """Bring a lane's commit into this tree, on top of what it stands on; how they met.

    `ref`: what is kept of the lane beside that commit belongs to this one.
    """
    if not commit:
        return PutOnto()  # there was nothing to save
    found = merge_onto(place, commit, place.repo.head() or "HEAD")
    place.git.run("read-tree", "--reset", "-u", found.tree, timeout_s=_LONG_S)
    inner_repositories.follow(place.repo, place.home, ref)
    return PutOnto(conflicts=found.conflicts, joined=found.joined)


def bring_inner(source: LaneTree, place: LaneTree, base: str) -> None:
    """Copy the repositories that an agent made in a lane: in the checkout they would be there."""
    for path in inner_repositories.made_inside(source.repo, base):
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


def what_to_do(place: LaneTree, home: Repository, project: Path, config: Config) -> str:
    """What making this tree ready would do now, in words; empty where nothing is to be done."""
    mark = place.mark()
    section = config.lanes
    recipe = _recipe(home, section.copy)
    lies_in = place.root / project_prefix(home.root, project)
    if _is_ready(mark, _digest(recipe, config, [place.root, lies_in])):
        return ""
    steps = [shlex.join(argv) for argv in section.setup]
    if section.copy and recipe != mark.recipe:
        steps.insert(0, f"copy {some(section.copy)}")
    return "; ".join(steps)


def _is_ready(mark: ReadyMark, digest: str) -> bool:
    # What its setup had left at work ended with the run that it served.
    is_served = mark.serving in ("", OF_SETUP.format(os.getpid()))
    return digest == mark.digest and is_served


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
    mark = place.mark()
    section = config.lanes
    serving = OF_SETUP.format(os.getpid())
    lies_in = place.root / project_prefix(home.root, project)
    recipe = _recipe(home, section.copy)
    digest = _digest(recipe, config, [place.root, lies_in])
    if _is_ready(mark, digest):
        return ""
    if recipe != mark.recipe:
        wanted = list(included(home, section.copy, project_prefix(home.root, project)))
        mark = _copied_anew(place, home, mark, recipe, wanted)
        own = [path.parent for path in place.root.glob("*/pyvenv.cfg")]
        if where := installs_from(own, home):
            _copied_anew(place, home, mark, "", ())  # the next start may find a better one
            return f"{where}. Leave it out of lanes.copy and {MAKE_IT}"
    inner_repositories.check_out_kept(place.repo, home.root)
    before = {proc.identity for proc in marked_processes(serving)} if section.setup else set()
    for argv in section.setup:
        if box is not None and _is_about_submodules(argv):
            ended = _bring_submodules(place, home, argv)
        else:
            wanted_command = check_of(argv, _SETUP_S, box, lane=place.seat)
            ended = run_confined(
                wanted_command, lies_in, keep=_KEPT_OUTPUT, stop=stop, env=marked_as_setup()
            )
        if ended.stopped:
            return ""  # the run ends; next time from the beginning
        if ended.returncode != 0:
            said = _both_ends(ended.said)
            hints = in_words(refused_paths(said, box), box) if box else []
            told = "" if said.startswith(NOT_RUN) else f"{' '.join(argv)}\n"
            return "\n".join([f"setup failed: {told}{said}", *hints])
    left = {proc.identity for proc in marked_processes(serving)} if section.setup else set()
    brought = _ignored(place)
    if where := leads_back((place.root / path for path in brought), home):
        return where
    is_serving = bool(left - before)
    ready = msgspec.structs.replace(
        mark,
        digest=digest,
        brought=tuple(brought),
        serving=serving if is_serving else "",
        proven=False,
    )
    write_mark(place, ready)
    return ""


def _both_ends(said: str) -> str:
    """What a command said, without the middle of much: why it failed stands first, or last."""
    if len(said) <= _SHOWN_FIRST + _SHOWN_LAST:
        return said
    first = said[:_SHOWN_FIRST].rpartition("\n")[0]
    last = said[-_SHOWN_LAST:].partition("\n")[2]
    return f"{first}\n…\n{last}"


def _is_about_submodules(argv: Sequence[str]) -> bool:
    """Whether this is git's own command for submodules, with settings before it or without."""
    program, *rest = argv
    if program != "git":
        return False
    while rest[:1] == ["-c"]:
        rest = rest[2:]
    return rest[:1] == ["submodule"]


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


def end_setups() -> tuple[str, ...]:
    """End what setups of this process left at work; what that was, by name."""
    return stop_tree(None, None, OF_SETUP.format(os.getpid()), stages=ASKED_ONCE)


def _recipe(home: Repository, copy: Iterable[str]) -> str:
    """Of everything that says what has to be copied."""
    parts = hashlib.sha256(repr(tuple(copy)).encode())
    with suppress(OSError):
        parts.update(read_regular(home.root / INCLUDE, most=_LARGEST_MANIFEST))
    return parts.hexdigest()


def _digest(recipe: str, config: Config, places: Sequence[Path]) -> str:
    """Of everything that says what has to be there."""
    parts = hashlib.sha256(repr((config.lanes.setup, recipe)).encode())
    if config.lanes.setup:
        parts.update(manifests_digest(places).encode())
    return parts.hexdigest()


def manifests_digest(places: Sequence[Path]) -> str:
    """Of every file in these directories that says which packages a project needs."""
    parts = hashlib.sha256()
    for place in dict.fromkeys(places):
        for name in _MANIFESTS:
            with suppress(OSError):
                content = read_regular(place / name, most=_LARGEST_MANIFEST)
                parts.update(name.encode() + b"\0" + content)
    return parts.hexdigest()


def _copied_anew(
    place: LaneTree, home: Repository, mark: ReadyMark, recipe: str, wanted: Sequence[str]
) -> ReadyMark:
    """Bring what is to be copied now and take away what was before; the mark that says so."""
    args = ("ls-files", "-z", "--", *(f":(top,literal){path}" for path in mark.copied))
    tracked = place.repo.git.names(*args) if mark.copied else []
    for path in set(mark.copied).difference(wanted):
        if not any(name == path or name.startswith(f"{path}/") for name in tracked):
            remove(place.root / path)
    missing = [path for path in wanted if not os.path.lexists(place.root / path)]
    _copy(missing, home, place)
    copied = {*mark.copied, *missing}.intersection(wanted)
    known = msgspec.structs.replace(
        mark,
        home=str(home.root),
        project=place.project,
        recipe=recipe,
        copied=tuple(sorted(copied)),
        digest="",
    )
    write_mark(place, known)  # ahead of what may fail
    return known


def write_mark(place: LaneTree, mark: ReadyMark) -> None:
    written = json.dumps(msgspec.to_builtins(mark)).encode()
    write_atomic(place.repo.git_dir / MARK, written, within=place.repo.git_dir)


def included(home: Repository, copy: Iterable[str], prefix: str) -> Iterator[str]:
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
        source = home.root / path
        target = place.root / path
        if not os.path.lexists(source) or os.path.lexists(target):
            continue
        _copy_one(source, target)


def _copy_one(source: Path, target: Path) -> None:
    how = ("-c",) if sys.platform == "darwin" else ("--reflink=auto",)
    target.parent.mkdir(parents=True, exist_ok=True)
    argv = (programs.program("cp"), "-a", *how, str(source), str(target))
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
