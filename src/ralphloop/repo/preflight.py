"""What can fail at 01:00 fails at 22:00: looking at the repository before the first agent starts.

Nothing is changed: signing is tried on a commit object in our own store that no ref names.  Whoever
is only `looking` has not said that this repository may run anything: then nothing is signed, and
where its own settings name filters, git is not asked what has changed.
"""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from ralphloop.errors import Finding, Level, RepositoryError
from ralphloop.repo.git import ANYHOW, first_lines, nul_ended, printable
from ralphloop.repo.private_git import object_variables, prepare
from ralphloop.repo.work_tree import OwnFiles, Repository
from ralphloop.room import read_regular
from ralphloop.text.plain import some

DISK_FLOOR = 200 * 1024**2
DISK_LOW = 2 * 1024**3
TEMPORARY_FLOOR = 1024**2
_FULL = ("no space left", "disk quota exceeded", "out of diskspace")
_SIGNING_TIMEOUT_S = 20.0
_OLDEST_GIT = (2, 25)
_COMMIT_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")


def inspect(
    repo: Repository,
    *,
    store: Path,
    own: OwnFiles,
    commits: bool = True,
    allow_dirty: bool = False,
    looking: bool = False,
    story_files: Collection[str] = (),
) -> tuple[Finding, ...]:
    """What stands in the way of a night in this repository, and what is to know, worst first."""
    findings = [*_git_itself(repo, commits=commits)]
    if not looking:
        findings += _filters(repo)
    findings += _dirt(repo, own, allow_dirty=allow_dirty, looking=looking)
    findings += disk_space(repo.root)
    if commits:
        findings += _committing(repo, story_files)
        findings += _signing(repo, None if looking else store)
    order = list(Level)
    return tuple(sorted(findings, key=lambda finding: order.index(finding.level)))


def disk_space(path: Path) -> tuple[Finding, ...]:
    """Whether there is room left to work; also asked during a run."""
    disk = os.statvfs(path)
    free = disk.f_bavail * disk.f_frsize
    if free >= DISK_LOW:
        return ()
    level = Level.ERROR if free < DISK_FLOOR else Level.WARNING
    message = f"only {free // 1024**2} MB are free where the repository lies"
    return (Finding(level, message, "make room; `ralph clean` removes what old runs left", "disk"),)


def no_room(*places: Path, said: object = "") -> str:
    """Why nothing can be written, by what is free or what an error said; empty where it can."""
    there = filter(Path.is_dir, places)  # an agent may have deleted one
    found = (it for place in there for it in disk_space(place) if it.level is Level.ERROR)
    if low := next(found, None):
        return low.message
    if full := no_temporary_room():
        return full
    words = str(said).lower()
    return next((sign for sign in _FULL if sign in words), "")


def no_temporary_room() -> str:
    """Words where next to nothing is left for temporary files, of ours and of every check."""
    import tempfile

    place = Path(os.environ.get("TMPDIR") or tempfile.gettempdir())
    try:
        disk = os.statvfs(place)
    except OSError:
        return ""  # whoever needs it names what is wrong with it
    free = disk.f_bavail * disk.f_frsize
    if free >= TEMPORARY_FLOOR:
        return ""
    return f"only {free // 1024} KB are free for temporary files in {place}"


def _git_itself(repo: Repository, *, commits: bool) -> Iterator[Finding]:
    """Whether git is new enough, in the middle of something, and free to write."""
    words = repo.git.line("version").split()
    numbers = [int(part) for part in words[2].split(".")[:2] if part.isdigit()]
    if tuple(numbers) < _OLDEST_GIT:
        fix = "install git {}.{} or newer".format(*_OLDEST_GIT)
        yield Finding(Level.ERROR, f"git {words[2]} is too old", fix, "git")
    for found in repo.problems():
        # Without commits of ours it does not matter which branch they would land on.
        level = found.level if commits or found.code == "unfinished" else Level.WARNING
        yield found._replace(level=level)
    for place in (repo.root, repo.git_dir):
        if not os.access(place, os.W_OK):
            fix = "make yourself its owner, or run as the user who is"
            yield Finding(Level.ERROR, f"{place} cannot be written to", fix, "permission")


def _dirt(
    repo: Repository, own: OwnFiles, *, allow_dirty: bool, looking: bool
) -> Iterator[Finding]:
    """What is uncommitted, with the way to begin all the same."""
    if looking:
        # Git would start filters here that are not the user's own in all repositories.
        asked = ("--null", "--get-regexp", r"^filter\..*\.(clean|process)$")
        here, *users = (
            set(repo.git.attempt("config", *scope, *asked).stdout.split(b"\0"))
            for scope in ((), ("--global", "--includes"), ("--system", "--includes"))
        )
        if theirs := here.difference(*users, (b"",)):
            names = sorted(printable(os.fsdecode(entry.partition(b"\n")[0])) for entry in theirs)
            message = "uncommitted changes were not looked for; not started: the project names"
            yield Finding(Level.INFO, f"{message} {', '.join(names)}", code="dirty")
            return
    dirty = repo.dirty_paths(own, deep=not looking)
    if not dirty:
        return
    named = some([printable(path) for path in dirty])
    if repo.head() is None and not allow_dirty:
        fix = "make the first one: git add -A && git commit -m 'Start'"
        yield Finding(Level.ERROR, f"there is no commit yet, and files: {named}", fix, "dirty")
        return
    message = f"uncommitted changes: {named}"
    if allow_dirty:
        message += "; they are committed only if the agent changes them"
        yield Finding(Level.WARNING, message, code="dirty")
    else:
        fix = "commit or stash them, or start with --allow-dirty to leave them as they are"
        yield Finding(Level.ERROR, message, fix, "dirty")


def _filters(repo: Repository) -> Iterator[Finding]:
    """Filters without which git takes nothing in, tried on nothing: git-lfs may not be there."""
    import tempfile

    asked = ("config", "-z", "--type=bool", "--get-regexp", r"^filter\..*\.required$")
    settings = os.fsdecode(repo.git.attempt(*asked).stdout).split("\0")
    required = {s.removeprefix("filter.").removesuffix(".required\ntrue") for s in settings if s}
    if not required:
        return
    args = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = repo.git.names(*args, "--", ":(top,glob)**/.gitattributes")
    words: set[str] = set()
    for file in (*(repo.root / path for path in listed), repo.common_dir / "info" / "attributes"):
        with suppress(OSError):
            words.update(read_regular(file).decode("utf-8", "replace").split())
    for name in sorted(name for name in required if f"filter={name}" in words):
        with tempfile.NamedTemporaryFile("w", prefix="ralph-", encoding="utf-8") as attributes:
            attributes.write(f"* filter={name}\n")
            attributes.flush()
            git = repo.git.adapted(config=(f"core.attributesFile={attributes.name}",))
            probe = ("hash-object", "--stdin", "--path=.ralph-filter-probe")
            ended = git.attempt(*probe, timeout_s=60.0)
        if ended.returncode != 0:
            message = f"the git filter {name} is required here, but fails: "
            fix = (
                f"install what `git config filter.{name}.clean` names, or take `filter={name}` out"
                " of .gitattributes; without it git cannot add or commit these files"
            )
            yield Finding(Level.ERROR, message + first_lines(ended.stderr), fix, "filter")


def _committing(repo: Repository, story_files: Collection[str]) -> Iterator[Finding]:
    """Where commits go, who makes them, what runs with them, what they cannot hold."""
    if (branch := repo.branch()) is not None:
        born = "" if repo.head() else ", which has no commit yet"
        yield Finding(Level.INFO, f"commits land on branch {branch}{born}", code="branch")
    if repo.git.attempt("var", "GIT_COMMITTER_IDENT").returncode != 0:
        fix = "set `git config user.name` and `git config user.email`"
        yield Finding(Level.ERROR, "git does not know who commits", fix, "identity")
    directory = repo.root / repo.git.line("rev-parse", "--git-path", "hooks")
    present = [name for name in _COMMIT_HOOKS if (directory / name).is_file()]
    active = [name for name in present if os.access(directory / name, os.X_OK)]
    if active:
        message = f"hooks that run with every commit: {', '.join(active)}"
        yield Finding(Level.INFO, message, code="hooks")
    for name in sorted({*present} - {*active}):
        message = f"the {name} hook is not executable, so git leaves it out"
        yield Finding(Level.WARNING, message, f"chmod +x {directory / name}", "hooks")
    if not story_files:
        return
    names = nul_ended(map(os.fsencode, story_files))
    for path in repo.git.names("check-ignore", "-z", "--stdin", stdin=names, ok=ANYHOW):
        message = f"{printable(path)} is ignored by git: its marks are not committed"
        yield Finding(Level.INFO, message, code="ignored")


def _signing(repo: Repository, store: Path | None) -> Iterator[Finding]:
    """Whether commits that are to be signed can be; without a store it is not tried."""
    if not repo.signs_commits():
        return
    if store is None:
        yield Finding(Level.INFO, "commits are to be signed; not tried here", code="signing")
        return
    prepare(store)
    git = repo.git.confined(None).writing().adapted(env=object_variables(store, repo.objects))
    try:
        tree = git.line("hash-object", "-t", "tree", "-w", os.devnull)
        args = ("commit-tree", "-S", "-m", "can this be signed?", tree)
        ended = git.attempt(*args, timeout_s=_SIGNING_TIMEOUT_S)
        problem = first_lines(ended.stderr) if ended.returncode else ""
        if ended.timed_out:
            problem = "it waits for something, probably a passphrase"
    except RepositoryError as error:
        problem = error.message
    if problem:
        message = f"commits are to be signed, but signing fails: {problem}"
        fix = "unlock the key for this session, or set commit.gpgSign to false here"
        yield Finding(Level.ERROR, message, fix, "signing")
    else:
        yield Finding(Level.INFO, "commits are signed", code="signing")
