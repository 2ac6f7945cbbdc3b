"""Committing what a story changed, with the user's own hooks and signing.

Left out are our private files and what was dirty before and nobody touched since; what anybody else
has staged stays staged.  Nothing is ever pushed, forced, reset or stashed.

Exit code and words of `git commit` do not tell a refusing hook from a signing failure for sure, so
git keeps a record (trace2) of its hooks.  A hook that says no is feedback for the agent, except
about the message, which is ours; signing that fails is a problem of the machine.  There is no
terminal for a passphrase prompt to wait at.  A hook that rewrites files gets one second try, and
the caller is told that the committed tree was not checked.

Story ids and titles are free text: in the message they become one bounded line, so that no title
can start a second paragraph or fake a trailer.
"""

import os
import stat
import tempfile
import textwrap
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec

from ralphloop.core.model import Value
from ralphloop.errors import GitDisturbed, RepositoryError
from ralphloop.proc.run import CommandEnd
from ralphloop.redaction import redact, redact_bytes
from ralphloop.repo.git import (
    ANYHOW,
    PATHSPECS_ON_STDIN,
    Git,
    StatusEntry,
    failure,
    first_lines,
    literal_pathspecs,
    lock_in_the_way,
    nul_ended,
    printable,
)
from ralphloop.repo.inner import is_checkout_of
from ralphloop.repo.reports import plain_text
from ralphloop.repo.work_tree import (
    OwnFiles,
    Repository,
    is_name,
    run_retrying_on_lock,
    wait_for_locks,
)
from ralphloop.room import read_regular
from ralphloop.text.plain import LazyRegex, one_line

LARGEST_NEW_FILE = 50 * 1024 * 1024
MAX_SUBJECT = 120
_MAX_TRAILER = 200
_MAX_BODY = 1_600
_MAX_PARAGRAPH = 700
_BODY_WIDTH = 72
# A line that git may take for a comment, or for a trailer of ours.
_NO_MARK = LazyRegex(r"^(?:[#>;\s]+|(?i:ralph-))+")
_MAX_SAID = 4_000
_MOST_COMMITS = 50  # of others, made in the very moment
_COMMITTABLE = (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)
_READ_FOR_SECRETS = 256 * 1024
_SAMPLES = (".dist", ".example", ".sample", ".template")

_RAW = ("--raw", "-z", "--no-renames", "--no-abbrev")
_CHANGED = ("diff-files", "--name-only", "-z", "--no-renames", "--ignore-submodules=dirty")
_Staged = dict[str, str]  # path to mode and content
_NOTHING = "000000"  # the mode of a path that is gone
_REPOSITORY = "a repository of its own"
_CHECKOUT = "another work tree of this repository"


class CommitStatus(StrEnum):
    COMMITTED = "committed"
    NOTHING = "nothing"  # there was nothing to commit
    REFUSED = "refused"  # by a hook or a half-done merge: `feedback` is for the agent


class CommitResult(Value, frozen=True, kw_only=True):
    status: CommitStatus
    head: str | None = None  # afterwards
    commit: str = ""  # that was made; empty: none, or a hook took it away again
    rewritten: bool = False  # a hook changed what is committed: check again
    feedback: str = ""
    notes: tuple[str, ...] = ()  # what was left out, and what a person should look at
    leaves_out: bool = False  # something of the story is in no commit


class MarkedCommit(NamedTuple):
    """A commit and the iteration it says it was made for."""

    commit: str
    mark: str


class _Made(NamedTuple):
    """A commit of ours, and what it was made on."""

    parent: str
    commit: str


class _Tried(NamedTuple):
    """How a `git commit` went."""

    ended: CommandEnd
    hook: str  # that said no; empty: none did
    said: str  # what was printed, redacted and bounded

    @property
    def ended_well(self) -> bool:
        return self.ended.returncode == 0 and not self.ended.timed_out


def commit_story(
    repo: Repository, message: str, *, own: OwnFiles, leave: Collection[str] = ()
) -> CommitResult:
    """Commit all that a story changed, but for `own` files and what was dirty before (`leave`)."""
    wait_for_locks(repo)
    entries = repo.status().entries
    operation = repo.unfinished_operation()
    conflicts = [printable(os.fsdecode(entry.path)) for entry in entries if entry.is_unmerged]
    obstacle = ""
    if operation is not None:
        obstacle = f"a {operation} is in progress in the repository: finish or abort it"
    elif conflicts:
        obstacle = f"unresolved conflicts: {', '.join(conflicts[:5])}"
    if obstacle:  # left half done by the agent: a commit would seal it
        return CommitResult(status=CommitStatus.REFUSED, head=repo.head(), feedback=obstacle)
    wanted: list[StatusEntry] = []
    unstaged: list[str] = []
    notes: list[str] = []
    leaves_out = False
    modules = _named_submodules(repo, entries)
    for entry in entries:
        path = os.fsdecode(entry.path)
        if path in own or path in leave:
            continue
        if reason := _left_out(repo, entry, modules):
            notes.append(f"not committed: {printable(path)} ({reason})")
            leaves_out = True
            if entry.staged == "A":
                unstaged.append(path)
            continue
        wanted.append(entry)
        if entry.is_new and _may_hold_secrets(repo.root / path):
            notes.append(f"{printable(path)} may hold a secret: look at it before you push")
    take_from_index(repo, unstaged)
    done = _commit(repo, wanted, message, tuple(notes[:20]))
    return msgspec.structs.replace(done, leaves_out=leaves_out)


def commit_paths(repo: Repository, paths: Iterable[str], message: str) -> CommitResult:
    """Commit those of the given paths that differ from HEAD, and nothing else."""
    wait_for_locks(repo)
    return _commit(repo, _differing(repo, frozenset(paths)), message, ())


def _differing(repo: Repository, paths: frozenset[str]) -> list[StatusEntry]:
    """What git says about those of the paths that differ from HEAD or from the index."""
    return [entry for entry in repo.status().entries if os.fsdecode(entry.path) in paths]


def _commit(
    repo: Repository, entries: Sequence[StatusEntry], message: str, notes: tuple[str, ...]
) -> CommitResult:
    """Stage these and commit them alone; once more where a hook rewrote one of them."""
    head = repo.head()
    paths = frozenset(os.fsdecode(entry.path) for entry in entries)
    for is_first in (True, False):
        if not is_first:
            entries = _differing(repo, paths)
        staged = _stage(repo, entries)
        ours = {path: state for path, state in staged.items() if path in paths}
        if not ours:
            return CommitResult(status=CommitStatus.NOTHING, head=repo.head(), notes=notes)
        is_all = len(ours) == len(staged) and not repo.scope
        only = {} if is_all else ours
        tried = _try(repo, message, only)
        made = _find_made(repo, message, ours, head, ended_well=tried.ended_well)
        if made is not None:
            if repo.git.box and repo.signs_commits():
                made = made._replace(commit=_sign(repo, made.commit))
            states = _states(repo.git.run("diff-tree", "-r", *_RAW, *made))
            rewritten = not is_first or states != ours
            if rewritten and only:
                # A partial commit leaves the user's index behind its hooks.
                _stage(repo, _differing(repo, paths))
            return CommitResult(
                status=CommitStatus.COMMITTED,
                head=made.commit,
                commit=_on_top(repo, made),
                rewritten=rewritten,
                notes=notes,
            )
        # A hook may have rewritten one of our files after it was staged.
        changed = repo.git.names(*_CHANGED) if tried.hook else ()
        is_rewritten = not ours.keys().isdisjoint(changed)
        # Somebody beside us may have written an index without what we had staged.
        is_unstaged = bool(repo.scope) and "did not match any file" in tried.said
        if not (is_rewritten or is_unstaged):
            break
    feedback = _refusal(repo, tried)
    return CommitResult(status=CommitStatus.REFUSED, head=head, feedback=feedback, notes=notes)


def _find_made(
    repo: Repository, message: str, ours: _Staged, head: str | None, *, ended_well: bool
) -> _Made | None:
    """The commit of ours, if one was made; HEAD may be somebody else's by now."""
    now = repo.head()
    if repo.scope and head and now != head:
        marks = [line for line in message.splitlines() if line.startswith("Ralph-")]
        args = ("log", "--max-count=1", "--format=%H", "--fixed-strings", "--all-match")
        wanted = (*args, *(f"--grep={mark}" for mark in marks), f"{head}..{now}", "--")
        if found := repo.git.line(*wanted) or _made_of(repo, ours, f"{head}..{now}"):
            return _Made(f"{found}~1", found)
        if not ended_well:
            return None
    # Where nobody is beside us, a new HEAD means that only what comes after a commit went wrong.
    if not ended_well and now == head:
        return None
    return _Made(head or repo.empty_tree(), now or "HEAD")


def _on_top(repo: Repository, made: _Made) -> str:
    """The commit, where it stands on just what ours was made on; empty where it does not."""
    name, *parents = repo.git.line("rev-list", "--parents", "--max-count=1", made.commit).split()
    if not parents:
        return name if made.parent == repo.empty_tree() else ""
    made_on = made.parent if is_name(made.parent) else repo.commit_of(made.parent)
    return name if parents == [made_on] else ""


def _made_of(repo: Repository, ours: _Staged, span: str) -> str:
    """The newest of these commits that changes just what we had staged; empty: none does."""
    commits = repo.git.line("rev-list", f"--max-count={_MOST_COMMITS}", "--no-merges", span, "--")
    for commit in commits.splitlines():
        changed = repo.git.run("diff-tree", "-r", *_RAW, f"{commit}~1", commit)
        if _states(changed) == ours:
            return commit
    return ""


def _sign(repo: Repository, commit: str) -> str:
    """Put the same commit with a signature in its place; no hook runs, no file is read."""
    git = repo.git.confined(None).adapted(config=(f"core.hooksPath={os.devnull}",)).writing()
    form = "--format=%T%n%P%n%an%n%ae%n%aI%n%B"
    tree, parents, name, email, date, body = git.line("log", "-1", form, commit).split("\n", 5)
    who = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email, "GIT_AUTHOR_DATE": date}
    above = (word for parent in parents.split() for word in ("-p", parent))
    args = ("commit-tree", "-S", *above, "-F", "-", tree)
    ended = git.adapted(env=who).attempt(*args, stdin=body.encode())
    signed = ended.stdout.decode().strip()
    if ended.returncode != 0 or not signed:
        if parents:
            git.attempt("update-ref", "HEAD", parents.split()[0], commit)
        raise _unsigned(first_lines(ended.stderr))
    git.run("update-ref", "HEAD", signed, commit)
    return signed


def _unsigned(why: str) -> RepositoryError:
    way_out = "unlock the signing key for this session, or set commit.gpgSign to false here"
    return RepositoryError(f"the commit could not be signed: {why}", way_out)


def _refusal(repo: Repository, tried: _Tried) -> str:
    """What the agent has to hear of a commit that did not happen; the rest is for a person."""
    ended, hook, said = tried
    if hook in ("commit-msg", "prepare-commit-msg"):
        raise RepositoryError(
            f"the {hook} hook refuses our commit message: {said}",
            'let the hook accept `<story>: <title>`, or set `commit = "never"` under [git]',
        )
    if hook:
        how = "did not finish in time" if ended.timed_out else "failed"
        return f"the {hook} hook {how}:\n{said}"
    if lock_in_the_way(ended):
        raise failure(("commit",), ended)
    # It had everything and made no commit of it.
    gave_up = ended.timed_out or b"failed to write commit object" in ended.stderr
    if gave_up and repo.signs_commits():
        raise _unsigned(said)
    raise RepositoryError(f"git commit failed: {said}")


def find_commit(repo: Repository, *, run: str, iteration: int) -> str | None:
    """The commit an earlier process made for an iteration, if it came that far."""
    if repo.head() is None:
        return None
    wanted = _plain(f"{run}/{iteration}", _MAX_TRAILER)
    marked = marked_commits(repo.git, "--max-count=1000", "HEAD")
    return next((it.commit for it in marked if it.mark == wanted), None)


def marked_commits(git: Git, *wanted: str) -> Iterator[MarkedCommit]:
    """Commits with the iterations they say they were made for, newest first."""
    form = "--format=%H%n%(trailers:key=Ralph-Iteration,valueonly)"
    output = git.run("log", "-z", form, *wanted, "--")
    for record in output.decode("utf-8", "replace").split("\0"):
        commit, *marks = record.strip().splitlines()[:20] or [""]
        for mark in marks:
            yield MarkedCommit(commit, mark.strip())


def marks_since(repo: Repository, base: str) -> set[str]:
    """The iterations whose commits HEAD contains; what `base` contains is not looked at."""
    wanted = ("--fixed-strings", "--grep=Ralph-Iteration: ", "HEAD")
    since = (f"^{base}",) if base else ()
    try:
        return {it.mark for it in marked_commits(repo.git, *wanted, *since)}
    except GitDisturbed:
        raise
    except RepositoryError:
        if not base or repo.head() is None:
            return set()
        return marks_since(repo, "")  # a person rewrote what the run began with


def _named_submodules(repo: Repository, entries: Iterable[StatusEntry]) -> frozenset[str]:
    """The paths that `.gitmodules` names; it is read only where a new submodule is among these."""
    if not any(entry.is_new and entry.submodule.startswith("S") for entry in entries):
        return frozenset()
    args = ("config", "-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$")
    named = repo.git.names(*args, ok=ANYHOW)
    return frozenset(line.partition("\n")[2] for line in named)


def _left_out(repo: Repository, entry: StatusEntry, modules: Container[str]) -> str:
    """Why a path cannot or should not be committed; empty where it can."""
    path = repo.root / os.fsdecode(entry.path)
    if entry.is_untracked and entry.path.endswith(b"/"):
        return _CHECKOUT if is_checkout_of(path, repo.common_dir) else _REPOSITORY
    is_submodule = entry.submodule.startswith("S")
    if is_submodule and entry.staged == "." and "C" not in entry.submodule:
        return "a submodule with uncommitted changes"
    if is_submodule and os.fsdecode(entry.path) not in modules and not entry.was_submodule:
        return _REPOSITORY  # a commit would hold its name and none of its files
    try:
        found = path.lstat()
    except OSError:
        return ""  # deleted, or not there for us
    if stat.S_ISREG(found.st_mode) and not os.access(path, os.R_OK):
        return "it cannot be read"
    if stat.S_IFMT(found.st_mode) not in _COMMITTABLE:
        return "a pipe or a device"
    if entry.is_new and found.st_size > LARGEST_NEW_FILE and stat.S_ISREG(found.st_mode):
        return f"a new file of {found.st_size // 1024**2} MB"
    return ""


def _may_hold_secrets(path: Path) -> bool:
    """A new file that is named or reads like one that nobody means to publish."""
    name = path.name.lower()
    if name == ".env" or (name.startswith(".env.") and not name.endswith(_SAMPLES)):
        return True
    try:
        start = read_regular(path, most=_READ_FOR_SECRETS)
    except OSError:
        return False  # gone again, or a directory
    return redact_bytes(start) != start


def _stage(repo: Repository, entries: Iterable[StatusEntry]) -> _Staged:
    """Take these paths into the index; everything that is staged then, ours or not."""
    git = repo.git.writing()
    here: list[str] = []
    gone: list[str] = []
    behind = _behind_links(repo, [os.fsdecode(entry.path) for entry in entries])
    for entry in entries:
        path = os.fsdecode(entry.path)
        if entry.unstaged == ".":
            continue  # the agent staged it: the index has it as the work tree does
        if path not in behind and _is_there(repo, entry):
            here.append(path)
        else:
            gone.append(path)
    take_from_index(repo, gone)
    if here:
        args = ("add", "--all", *PATHSPECS_ON_STDIN)
        specs = literal_pathspecs(here)
        ended = run_retrying_on_lock(repo, git, *args, stdin=specs)
        if ended.returncode != 0 and b"sparse" in ended.stderr:
            ended = git.attempt("add", "--sparse", *args[1:], stdin=specs)
        if ended.returncode != 0:
            raise failure(args, ended)
    return _states(git.run("diff-index", "--cached", *_RAW, repo.head() or repo.empty_tree()))


def _is_there(repo: Repository, entry: StatusEntry) -> bool:
    """Whether the work tree has something to commit at this path, and not in a directory there."""
    try:
        found = (repo.root / os.fsdecode(entry.path)).lstat()
    except OSError:
        return False
    return not stat.S_ISDIR(found.st_mode) or entry.submodule.startswith("S")


def take_from_index(repo: Repository, paths: Iterable[str]) -> None:
    """Have none of the paths in the index; `git add` knows no path that is in neither place."""
    gone = nul_ended(map(os.fsencode, paths))
    if not gone:
        return
    args = ("update-index", "--force-remove", "-z", "--stdin")
    ended = run_retrying_on_lock(repo, repo.git.writing(), *args, stdin=gone)
    if ended.returncode != 0:
        raise failure(args, ended)


def _behind_links(repo: Repository, paths: Collection[str]) -> frozenset[str]:
    """Files whose directory became a link: gone, and git takes no such path for a name."""
    directories = {directory for path in paths for directory in PurePosixPath(path).parents}
    links = {one for one in directories if (repo.root / one).is_symlink()}
    return frozenset(p for p in paths if not links.isdisjoint(PurePosixPath(p).parents))


def _states(output: bytes) -> _Staged:
    """The new mode and content of each path of a raw diff."""
    fields = output.split(b"\0")
    states: _Staged = {}
    for meta, path in zip(fields[0::2], fields[1::2], strict=False):
        _, mode, _, content, _ = meta.decode().split(" ")
        states[os.fsdecode(path)] = f"{mode} {content}"
    return states


def _try(repo: Repository, message: str, only: _Staged) -> _Tried:
    """Commit the index, or these paths alone, and say how that went."""
    args = ["commit", "--cleanup=whitespace", f"--message={message}"]
    # Keys are not in a sandbox, where hooks run: it is signed afterwards, outside.
    if repo.git.box:
        args.append("--no-gpg-sign")
    with tempfile.TemporaryDirectory(prefix="ralph-") as place:
        # Hooks are the user's programs: they get their language back, but messages stay English.
        env = {"LC_ALL": "C.UTF-8", "GIT_TRACE2_EVENT": f"{place}/trace"}
        git = repo.git.writing().adapted(env=env)
        if _cannot_be_named(repo, only):
            ended = _commit_index(repo, git, args, only, Path(place, "index"))
        elif only:
            named = only.keys() - _behind_links(repo, only)
            args += ["--only", *PATHSPECS_ON_STDIN]
            ended = run_retrying_on_lock(repo, git, *args, stdin=literal_pathspecs(named))
        else:
            ended = run_retrying_on_lock(repo, git, *args)
        is_done = ended.returncode == 0 and not ended.timed_out
        hook = "" if is_done else _failed_hook(Path(place, "trace"))
    said = redact(plain_text(ended.stderr + b"\n" + ended.stdout)).strip()
    if len(said) > _MAX_SAID:
        said = f"…{said[-_MAX_SAID:]}"
    if ended.timed_out:
        said = f"{said}\nit did not finish within {ended.given_s:g} s".strip()
    return _Tried(ended, hook, said)


def _cannot_be_named(repo: Repository, only: _Staged) -> bool:
    """Whether `git commit --only` would not commit just this.

    It looks at the files again: it takes back the removal of one that is still there (and ignored
    now), and stops at a directory where a file was.
    """
    gone = (path for path, state in only.items() if state.startswith(_NOTHING))
    return any(os.path.lexists(repo.root / path) for path in gone)


def _commit_index(
    repo: Repository, git: Git, args: Sequence[str], only: _Staged, place: Path
) -> CommandEnd:
    """Commit HEAD and these changes alone, by an index that holds nothing else."""
    git = git.adapted(env={"GIT_INDEX_FILE": str(place)})
    with suppress(FileNotFoundError):  # with what is known of the files, so that none is read again
        place.write_bytes((repo.git_dir / "index").read_bytes())
    while True:
        base = repo.head()
        git.run("read-tree", *(["--reset", base] if base else ["--empty"]))
        # What goes makes room for what comes: a file where a directory was.
        states = sorted(only.items(), key=lambda one: not one[1].startswith(_NOTHING))
        lines = (f"{state}\t".encode() + os.fsencode(path) for path, state in states)
        git.run("update-index", "-z", "--index-info", stdin=nul_ended(lines))
        ended = run_retrying_on_lock(repo, git, *args)
        if not _takes_back(repo, git, base):
            return ended


def _takes_back(repo: Repository, git: Git, base: str | None) -> bool:
    """Whether our commit stands on what somebody committed meanwhile, and so takes that out again.

    Then it is no longer there when this returns.
    """
    now = repo.head()
    if now is None or base is None or now == base:
        return False
    commit, tree, *parents = repo.git.line("show", "-s", "--format=%H %T %P", now).split()
    if tree != git.line("write-tree") or parents == [base]:
        return False
    repo.git.writing().run("update-ref", "HEAD", parents[0], commit)
    return True


class _Event(msgspec.Struct):
    event: str
    sid: str = ""
    child_id: int = -1
    child_class: str = ""
    hook_name: str = ""
    code: int = 0


def _failed_hook(trace: Path) -> str:
    """The hook that ended badly, or was running when git ended; empty: none."""
    if not trace.exists():
        return ""
    running: dict[int, str] = {}
    for line in trace.read_bytes().splitlines():
        try:
            event = msgspec.json.decode(line, type=_Event)
        except msgspec.DecodeError:
            continue  # the last line of a git that was killed
        if "/" in event.sid:
            continue  # a git that a hook started
        if event.event == "child_start" and event.child_class == "hook":
            running[event.child_id] = event.hook_name
        elif event.event == "child_exit":
            name = running.pop(event.child_id, "")
            if name and event.code != 0 and not name.startswith("post-"):
                return name
    return next((name for name in running.values() if not name.startswith("post-")), "")


def story_message(
    story_id: str, title: str, *, run: str, iteration: int, grade: str, body: str = ""
) -> str:
    """Subject `<story id>: <title>`, the agent's words, and the trailers that name run, iteration,
    story, grade."""
    trailers = {
        "Ralph-Run": run,
        "Ralph-Iteration": f"{run}/{iteration}",
        "Ralph-Story": story_id,
        "Ralph-Grade": grade,
    }
    subject = f"{story_id}: {title}" if title.strip() else story_id
    # These are the texts of a story that are pushed.
    return with_trailers(redact(subject), trailers, redact(body))


def with_trailers(subject: str, trailers: dict[str, str], body: str = "") -> str:
    """A commit message: one bounded line, a bounded text of short lines, and these trailers."""
    lines = [f"{name}: {_plain(value, _MAX_TRAILER)}" for name, value in trailers.items()]
    head = _plain(subject, MAX_SUBJECT) or "work"
    return "\n\n".join(filter(None, (head, _wrapped(body), "\n".join(lines)))) + "\n"


def _wrapped(body: str) -> str:
    """Paragraphs in lines that every hook takes; none of them is a comment or a trailer."""
    paragraphs = list[str]()
    for text in body.splitlines():
        words = _plain(text, _MAX_PARAGRAPH)
        # A word longer than a line, such as an address, is cut: hooks count characters.
        lines = textwrap.wrap(words, _BODY_WIDTH)
        paragraphs.append("\n".join(_NO_MARK.sub("", line) for line in lines))
    return "\n\n".join(filter(None, paragraphs))[:_MAX_BODY].rstrip()


def _plain(text: str, limit: int) -> str:
    return one_line(text.encode("utf-8", "ignore").decode(), limit)
