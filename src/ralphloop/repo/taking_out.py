"""Taking a story out of a branch again: the tree without it, and what is in the way of that.

A story's change is turned round and put onto what the branch holds now, as `git revert` would
(`core.merging`).  In a file that others changed as well the lines alone decide, not those around
them: who appended to the same list, or wrote the next test into the same file, is not in the way.
In the way is only who changed the very lines, or made another thing of the file; those commits are
named.

Whether what is left still works is for the checks to say, not for us.  Our own files are not
undone: the mark is changed by whoever owns it.  All is thought out in objects first; then one
ordinary commit takes the story out of the work tree.
"""

import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ralphloop.core.merging import Conflict, ConflictKind, Contents, Entry, Put, SideChange, plan
from ralphloop.core.model import Value
from ralphloop.errors import RepositoryError
from ralphloop.repo.commit import CommitStatus, commit_paths, take_from_index
from ralphloop.repo.git import ANYHOW, Git, printable
from ralphloop.repo.merge import changes, content_of, entries, store_lines, tree_of_index
from ralphloop.repo.set_aside import restore_files, scratch_index
from ralphloop.repo.snapshot import changes_between
from ralphloop.repo.work_tree import OwnFiles, Repository, wait_for_locks
from ralphloop.text.line_changes import (
    LineChange,
    followed,
    line_changes,
    lines_of,
    merged_lines,
)

_MOST_COMMITS = 500
_MOST_WORDS = 200
_MOST_LINES = 200
_LINE_BY_LINE = (
    "diff",
    "-U0",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--text",
    "--inter-hunk-context=0",
)
_SAME_LINES = "changed the same lines of"
_HOW = {
    ConflictKind.BINARY: "changed",
    ConflictKind.LINK: "made something else of",
    ConflictKind.SUBMODULE: "moved the submodule",
    ConflictKind.DIRECTORY: "put something in the place of",
    ConflictKind.RENAMED_APART: "renamed",
    ConflictKind.RENAMED_ONTO: "put another file in the place of",
    ConflictKind.MODE: "changed the mode of",
}
_IDENTIFIER = re.compile(rb"[A-Za-z_]\w{2,80}")
_BLAMED = re.compile(rb"^([0-9a-f]{40}|[0-9a-f]{64}) \d+ (\d+)", re.MULTILINE)


class ShownChange(NamedTuple):
    """What `git show` was told of a story: between these two commits is its change."""

    old: str
    new: str


class InTheWay(Value, kw_only=True):
    """Why a file cannot be as it would be without the story."""

    path: str
    how: str  # what was done to it since
    commits: tuple[str, ...]  # by these, oldest first


class Without(Value, kw_only=True):
    """What a branch would hold without some changes."""

    tree: str
    in_the_way: tuple[InTheWay, ...] = ()


class KeptAttempt(NamedTuple):
    """A ref that keeps an attempt."""

    ref: str
    commit: str


def shown_change(repo: Repository, show: str) -> ShownChange:
    """The two sides of a commit, or of a range `A..B`."""
    first, _, last = show.partition("..")
    if last:
        return ShownChange(repo.commit_of(first), repo.commit_of(last))
    return ShownChange(repo.commit_of(f"{show}~1") or repo.empty_tree(), repo.commit_of(show))


def commits_of_change(repo: Repository, change: ShownChange) -> list[str]:
    """The commits that a change consists of."""
    span = f"{change.old}..{change.new}"
    if repo.commit_of(f"{change.new}~1") == change.old:
        return [change.new]
    args = ("rev-list", f"--max-count={_MOST_COMMITS}", span, "--")
    return repo.git.line(*args, ok=ANYHOW).splitlines() or [change.new]


def newest_first(repo: Repository, shown: Iterable[ShownChange]) -> list[ShownChange]:
    """The changes in the order in which they can be taken off the branch."""
    order = repo.git.line("rev-list", "--topo-order", "HEAD", "--").split()
    place = {commit: number for number, commit in enumerate(order)}
    return sorted(shown, key=lambda change: place.get(change.new, len(order)))


def tree_without(repo: Repository, shown: Iterable[ShownChange], own: OwnFiles) -> Without:
    """What HEAD would hold without these changes, and who is in the way of it."""
    wait_for_locks(repo)
    ordered = newest_first(repo, shown)
    leaving = {commit for change in ordered for commit in commits_of_change(repo, change)}
    tree = repo.git.line("rev-parse", "HEAD^{tree}")
    found: list[InTheWay] = []
    for change in ordered:
        taking = _Taking(repo, change, tree, own, leaving)
        tree = taking.take()
        found += taking.in_the_way
    return Without(tree=tree, in_the_way=tuple(found))


def refuse_own_changes(repo: Repository, tree: str) -> None:
    """Raise where a person has uncommitted changes in what is about to be written."""
    dirty = sorted(set(repo.paths_between("HEAD", tree)) & set(repo.dirty_paths()))
    if dirty:
        names = ", ".join(map(printable, dirty[:3]))
        raise RepositoryError(f"{names} has changes of yours", "Commit or stash them first.")


def take_out(
    repo: Repository, tree: str, message: str, *, also: Iterable[str], keep: Sequence[KeptAttempt]
) -> str:
    """Keep the attempts and commit that tree; what a hook said that refused it, or nothing."""
    for kept in keep:
        repo.git.writing().run("update-ref", kept.ref, kept.commit)
    return commit_tree(repo, tree, message, also=also, ref=keep[0].ref)


def commit_tree(repo: Repository, tree: str, message: str, *, also: Iterable[str], ref: str) -> str:
    """Commit that tree, with `also` as on disk; what a hook said that refused it, or nothing.

    What stands in the way of a file is kept at `ref`-in-the-way.  Done twice it ends as done once.
    """
    taken = changes_between(repo, tree, "HEAD")
    restore_files(repo, tree, taken, ref=ref)
    take_from_index(repo, [change.path for change in taken if change.before is None])
    paths = [change.path for change in taken]
    made = commit_paths(repo, [*paths, *also], message)
    return made.feedback if made.status is CommitStatus.REFUSED else ""


class _Taking:
    """One change while it is turned round."""

    def __init__(
        self,
        repo: Repository,
        change: ShownChange,
        landed: str,
        own: OwnFiles,
        leaving: set[str],
    ) -> None:
        self.in_the_way: list[InTheWay] = []
        self._repo = repo
        self._change = change
        self._landed = landed
        self._leaving = leaving  # commits that go as well: they are in nobody's way
        reverse = changes(repo.git, change.new, change.old)
        self._reverse = [it for it in reverse if os.fsdecode(it.path) not in own]
        self._began = {it.began: it for it in self._reverse}

    def take(self) -> str:
        """The tree of what landed without this change, as far as nobody is in the way."""
        git = self._repo.git
        found = plan(changes(git, self._change.new, self._landed), self._reverse)
        puts = dict(found.puts)
        gone = set(found.gone)
        with scratch_index(self._repo, self._landed) as index:
            for one in found.contents:
                text = self._both(index, one)
                if text == b"":  # all that was left in it was the story's
                    gone.add(one.path)
                elif text is not None:
                    entry = Entry(mode=one.mode, name=store_lines(index, text))
                    puts[one.target] = Put(entry=entry, source=one.source)
            for conflict in found.conflicts:
                self._settle(index, conflict, puts, gone)
            return tree_of_index(index, puts, gone)

    def _settle(
        self, index: Git, conflict: Conflict, puts: dict[bytes, Put], gone: set[bytes]
    ) -> None:
        """What two lists of paths could not decide."""
        if conflict.kind is ConflictKind.DELETED_CHANGED:
            return  # what the story did there is gone already
        if conflict.kind in (ConflictKind.CHANGED_DELETED, ConflictKind.RENAMED_DELETED):
            began = conflict.own_path
            was = self._began[began].old
            now = entries(index, self._landed, [conflict.path]).get(conflict.path)
            if was is not None and now is not None and was.is_file and now.is_file:
                self._empty(index, began, conflict.path, was, now, puts, gone)
                return
        self._note(conflict.own_path, _HOW.get(conflict.kind, "changed"), None)

    def _empty(
        self,
        index: Git,
        began: bytes,
        path: bytes,
        was: Entry,
        now: Entry,
        puts: dict[bytes, Put],
        gone: set[bytes],
    ) -> None:
        """A file that the story made and others went on with: what they wrote stays."""
        base = content_of(index, was.name)
        theirs = content_of(index, now.name)
        if base is None or theirs is None:
            self._note(began, "changed", None)
            return
        text = self._by_lines(index, began, base, theirs, b"")
        if text is None:
            return
        if text.strip():
            puts[path] = Put(entry=Entry(mode=now.mode, name=store_lines(index, text)))
        else:
            gone.add(path)

    def _both(self, index: Git, one: Contents) -> bytes | None:
        """A file without the story's lines; None where somebody is in the way."""
        base, theirs, ours = (content_of(index, it) for it in (one.base, one.theirs, one.ours))
        began = next((it.began for it in self._reverse if it.path == one.own), one.own)
        if base is None or theirs is None or ours is None:
            self._note(began, "changed", None)
            return None
        if not one.base:
            self._note(one.own, "wrote another file in the place of", None)
            return None
        return self._by_lines(index, began, base, theirs, ours)

    def _by_lines(
        self, index: Git, began: bytes, base: bytes, theirs: bytes, ours: bytes
    ) -> bytes | None:
        ends = theirs.endswith(b"\n") or not theirs
        base, theirs, ours = (_ended(text) for text in (base, theirs, ours))
        names = [store_lines(index, text) for text in (base, theirs, ours)]
        their_changes = _changes_of_lines(index, names[0], names[1], theirs)
        our_changes = _changes_of_lines(index, names[0], names[2], ours)
        merged = merged_lines(lines_of(base), their_changes, our_changes)
        if merged.clashes:
            self._note(began, _SAME_LINES, merged.clashes)
            return None
        return merged.text if ends else merged.text.removesuffix(b"\n")

    def _note(self, path: bytes, how: str, lines: Sequence[LineChange] | None) -> None:
        """Remember that somebody is in the way, and who, by the lines where they are known."""
        later = self._later_commits()
        commits: list[str] = []
        if lines is not None:
            commits = self._who_changed(later, path, lines)
        if not commits:
            name = os.fsdecode(path)
            args = ("log", "--reverse", "--format=%H", f"{self._change.new}..HEAD", "--")
            touched = self._repo.git.line(*args, f":(top,literal){name}").split()
            commits = [commit for commit in touched if commit not in self._leaving]
        shown = printable(os.fsdecode(path))
        self.in_the_way.append(InTheWay(path=shown, how=how, commits=tuple(commits)))

    def _later_commits(self) -> list[str]:
        span = f"{self._change.new}..HEAD"
        args = ("rev-list", "--reverse", "--topo-order", "--no-merges", span, "--")
        return self._repo.git.line(*args).split()[:_MOST_COMMITS]

    def _who_changed(
        self, later: Iterable[str], path: bytes, lines: Sequence[LineChange]
    ) -> list[str]:
        """The commits that changed these lines of a file, which are followed through all others."""
        git = self._repo.git
        spans = list(lines)
        found: list[str] = []
        for commit in later:
            touched = _change_at(git, commit, path)
            if touched is None:
                continue
            left = self._spans_after(touched, spans)
            if len(left) < len(spans) and commit not in self._leaving:
                found.append(commit)
            path = touched.path
            spans = left
            if not spans:
                break
        return found

    def _spans_after(self, touched: SideChange, spans: list[LineChange]) -> list[LineChange]:
        """Those of the lines that a commit left alone, where they stand after it."""
        git = self._repo.git
        before = content_of(git, touched.old.name) if touched.old else None
        after = content_of(git, touched.new.name) if touched.new else None
        if before is None or after is None or touched.old is None or touched.new is None:
            return []
        later = _changes_of_lines(git, touched.old.name, touched.new.name, after)
        kept: list[LineChange] = []
        for span in spans:
            moved = followed([span], later, lines_of(before))
            if moved is not None:
                kept += moved
        return kept


def _ended(text: bytes) -> bytes:
    """A text whose last line has an end, so that to append to it changes no line."""
    return text if not text or text.endswith(b"\n") else text + b"\n"


def _changes_of_lines(git: Git, before: str, after: str, text: bytes) -> list[LineChange]:
    if before == after:
        return []
    return line_changes(git.run(*_LINE_BY_LINE, before, after, ok=(0, 1)), lines_of(text))


def _change_at(git: Git, commit: str, path: bytes) -> SideChange | None:
    """What a commit did to a file; None where it left it alone."""
    for change in changes(git, f"{commit}~1", commit):
        if change.began == path and change.old is not None:
            return change
    return None


def authors_of_word(repo: Repository, word: str, path: str = "") -> list[str]:
    """The commits whose lines of HEAD hold this word; `path` is the one file that is meant."""
    if not word or "\n" in word:
        return []
    found: dict[str, None] = {}
    for file, numbers in _lines_with(repo.git, [os.fsencode(word)]).items():
        if path in ("", file):
            found |= dict.fromkeys(_blame(repo.git, file, numbers[:_MOST_LINES]))
    return list(found)


def _blame(git: Git, path: str, numbers: Sequence[int]) -> list[str]:
    """The commits these lines of HEAD are from, in the order of the lines."""
    if not numbers:
        return []
    asked = [f"-L{number},{number}" for number in numbers]
    args = ("blame", "--porcelain", *asked, "HEAD", "--", path)
    said = git.run(*args)
    by_line = {int(found[2]): found[1].decode() for found in _BLAMED.finditer(said)}
    return list(dict.fromkeys(by_line[number] for number in numbers if number in by_line))


def users_of_its_names(repo: Repository, shown: Iterable[ShownChange], without: str) -> list[str]:
    """The commits that use names which only these changes brought, and which are gone with them."""
    git = repo.git
    changed = newest_first(repo, shown)
    names: dict[bytes, None] = {}
    for line in git.run(*_LINE_BY_LINE, "HEAD", without, ok=(0, 1)).split(b"\n"):
        if line.startswith(b"-") and not line.startswith(b"---"):
            names |= dict.fromkeys(_IDENTIFIER.findall(line))
    longest = sorted(names, key=len, reverse=True)[:_MOST_WORDS]
    before = changed[-1].old
    new = [name for name in longest if not _holds_word(git, before, name)]
    found: dict[str, None] = {}
    for path, numbers in _lines_with(git, new).items():
        found |= dict.fromkeys(_blame(git, path, numbers[:_MOST_LINES]))
    leaving = {commit for change in changed for commit in commits_of_change(repo, change)}
    return [commit for commit in found if commit not in leaving]


def _holds_word(git: Git, tree: str, word: bytes) -> bool:
    args = ("grep", "--quiet", "-w", "-I", "-F", "-e", os.fsdecode(word), tree)
    return git.attempt(*args).returncode == 0


def _lines_with(git: Git, words: Sequence[bytes]) -> dict[str, list[int]]:
    """The numbers of the lines of HEAD that hold one of these words, by file."""
    if not words:
        return {}
    asked = b"\n".join(words) + b"\n"
    said = git.run("grep", "-n", "-z", "-w", "-I", "-F", "-f", "-", "HEAD", stdin=asked, ok=(0, 1))
    found: dict[str, list[int]] = {}
    for line in said.split(b"\n"):
        path, _, rest = line.removeprefix(b"HEAD:").partition(b"\0")
        number = rest.partition(b"\0")[0]
        if number.isdigit():
            found.setdefault(os.fsdecode(path), []).append(int(number))
    return found
