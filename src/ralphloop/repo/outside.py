"""Work that a check sees and a commit does not hold.

Files that git was told not to look at (`skip-worktree`, `assume-unchanged`) are measured by us and
stay out of the commit; ignored files are in neither, and may be what turned a check green.
"""

import os
import re
from collections.abc import Collection, Container, Iterable, Iterator
from pathlib import Path, PurePosixPath

from ralphloop.repo.git import ANYHOW, nul_ended, printable
from ralphloop.repo.inner import without_filters
from ralphloop.repo.snapshot import GENERATED, Snapshot, Snapshotter
from ralphloop.repo.work_tree import Repository

_MOST_ASKED = 500
_MOST_COMMITS = 1_000
_MOST_FILES = 5_000
_MOST_NAMED = 5
_LARGEST_SOURCE = 256 * 1024
_IMPORTS = frozenset({"import", "from", "require", "include", "source", "mod", "use"})
_BUILT = frozenset(
    (*GENERATED, ".ralph", "dist", "out", "target", "coverage", "htmlcov", ".eggs", ".nyc_output")
)
_DATA = frozenset(".json .toml .yaml .yml .ini .cfg".split())
_SOURCES = _DATA.union(
    ".py .pyi .js .jsx .ts .tsx .mjs .cjs .go .rs .rb .java .kt .c .h .cpp .cs .php .swift .sh"
    " .sql".split()
)


def hidden(repo: Repository, changed: Iterable[str]) -> list[str]:
    """Those of the changed paths that a commit would leave out, because git does not look."""
    specs = [f":(top,literal){path}" for _, path in zip(range(_MOST_ASKED), changed, strict=False)]
    if not specs:
        return []
    listed = repo.git.names("ls-files", "-v", "-z", "--", *specs, ok=ANYHOW)
    return [printable(it[2:]) for it in listed if it[0].islower() or it[0] == "S"]


def differing(
    repo: Repository,
    measure: Snapshotter,
    start: str,
    checked: str,
    commit: str,
    filters: Collection[str] | None = None,
) -> list[str]:
    """Paths of a story in which its commit is not the tree that was checked.

    Measuring runs no filters and reads no large file: a file that is what was committed for it, and
    has not changed since it was checked, is none of them.  What is committed for a file is what the
    `filters` make of it that were set when the run began; one that came later is nobody's word.
    """
    if not measure.has(checked):
        return []  # kept for a crash only as long as nobody tidied up
    changes = measure.changes(checked, f"{commit}^{{tree}}")[:_MOST_ASKED]
    found = [change for change in changes if change.path not in measure.own]
    if not found:
        return []
    began = measure.known(Snapshot(tree=start or checked, head=f"{commit}~1")).tree
    since = {change.path for change in measure.changes(checked, measure.tree().tree)}
    theirs = since | {change.path for change in measure.changes(began, checked)}
    new = nul_ended(os.fsencode(it.path) for it in found if it.before is None)
    args = ("check-ignore", "--no-index", "-z", "--stdin")
    forced = repo.git.names(*args, stdin=new, ok=ANYHOW) if new else ()
    differ = []
    git = repo.git
    if filters is not None:
        git = git.adapted(config=without_filters(git, filters))
    for it in found:
        if it.path not in theirs or it.path in forced:
            continue
        if it.path not in since and (repo.root / it.path).is_file():  # a pipe would never end
            now = git.attempt("hash-object", "--", it.path).stdout.decode().strip()
            if now == it.after:  # the content that a commit would hold of it
                continue
        differ.append(printable(it.path))
    return differ


def find_by_content(repo: Repository, measure: Snapshotter, *, parent: str, tree: str) -> str:
    """The commit on top of `parent` that holds `tree`, apart from our own files; empty: none."""
    now = repo.head()
    if not parent or not tree or now in (None, parent) or not measure.has(tree):
        return ""
    span = ("rev-list", "--parents", f"--max-count={_MOST_COMMITS}", f"{parent}..{now}", "--")
    ended = repo.git.attempt(*span)
    if ended.returncode != 0:
        return ""
    for line in ended.stdout.decode().splitlines():
        commit, *parents = line.split()
        if parents != [parent]:
            continue
        changes = measure.changes(tree, f"{commit}^{{tree}}")
        if all(change.path in measure.own for change in changes):
            return commit
    return ""


def excludes_changed(repo: Repository, since: float) -> bool:
    """Whether somebody told git since then to ignore more, where no commit shows it."""
    return _written_since(repo.common_dir / "info" / "exclude", since)


def ignored_since(
    repo: Repository, since: float, until: float, own: Container[str] = ()
) -> list[str]:
    """Sources that git ignores and that were written in that time; what is built is left out."""
    args = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    found: list[str] = []
    for path in _files(repo.root, repo.git.names(*args, *repo.only, ok=ANYHOW)):
        try:
            written = (repo.root / path).stat().st_mtime
        except OSError:
            continue
        if since <= written < until and path not in own and len(found) < _MOST_NAMED:
            found.append(printable(path))
    return found


def newly_ignored(
    repo: Repository, measure: Snapshotter, start: str, ignored: Iterable[str], since: float
) -> list[str]:
    """Code that only a rule hides which the tree `start` has not; data may be generated."""
    code = (path for path in ignored if PurePosixPath(path).suffix not in _DATA)
    asked = nul_ended(os.fsencode(path) for path in code)
    if not asked:
        return []
    told = repo.git.names("check-ignore", "-v", "-z", "--stdin", stdin=asked, ok=ANYHOW)
    found = []
    for source, _, rule, path in zip(*(told[at::4] for at in range(4)), strict=False):
        kept = measure.git().attempt("cat-file", "blob", f"{start}:{source}")
        if kept.returncode == 0:
            is_new = os.fsencode(rule) not in map(bytes.strip, kept.stdout.splitlines())
        else:  # ignored itself, or none of the repository's
            is_new = _is_inside(source) and _written_since(repo.root / source, since)
        if is_new:
            found.append(printable(path))
    return found


def _is_inside(source: str) -> bool:
    """A file of the work tree, as git names it from the root, and not of the user or of git."""
    return not source.startswith(("/", ".git/"))


def _written_since(path: Path, since: float) -> bool:
    try:
        return path.stat().st_mtime >= since
    except OSError:
        return False


def newly_imported(
    ignored: Iterable[str], sides: Iterable[tuple[bytes | None, bytes | None]]
) -> list[str]:
    """Those of the ignored sources that a line imports which the change, old and new, brought."""
    lines = [words for old, new in sides for words in _imports(new) - _imports(old)]
    found = []
    for path in ignored:
        # The names without which nothing imports this file.
        file = PurePosixPath(path)
        names = {file.stem} - {"__init__", "index", "mod"} | {file.parent.name} - {""}
        if any(names <= words for words in lines):
            found.append(path)
    return found


def _imports(text: bytes | None) -> set[frozenset[str]]:
    lines = (text or b"")[:_LARGEST_SOURCE].decode("utf-8", "replace").splitlines()
    found = (frozenset(re.findall(r"\w{1,100}", line[:500])) for line in lines)
    return {words for words in found if not _IMPORTS.isdisjoint(words)}


def _files(root: Path, listed: Iterable[str]) -> Iterator[str]:
    """The sources among these, also in directories that are ignored as a whole."""
    left = _MOST_FILES
    for name in listed:
        if not _BUILT.isdisjoint(PurePosixPath(name).parts):
            continue
        if not name.endswith("/"):
            if PurePosixPath(name).suffix in _SOURCES:
                yield name
            continue
        for place, folders, files in os.walk(root / name):
            folders[:] = [folder for folder in folders if folder not in _BUILT]
            left -= len(files)
            if left < 0 or "pyvenv.cfg" in files:
                break
            inside = PurePosixPath(os.path.relpath(place, root))
            yield from (str(inside / one) for one in files if Path(one).suffix in _SOURCES)
