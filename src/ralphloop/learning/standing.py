"""What the repository says about words that were learned: the files they mean, and changes since.

Only words are looked at.  What was measured says what happened, and stays true.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from ralphloop.errors import RalphError
from ralphloop.learning.leads import definitions, names_in, subjects_of, text_files, tree_of
from ralphloop.learning.model import Pattern
from ralphloop.learning.wording import is_plain_path
from ralphloop.repo.git import Git
from ralphloop.text.durations import parse_iso

_MOST_FILES = 5  # that a pattern is about
_MOST_COMMITS = 2_000
_A_MOMENT = 1.0  # seconds: the clocks of git count no parts of one


def with_files(root: Path, patterns: Iterable[Pattern]) -> list[Pattern]:
    """The same patterns; words that name no file are about those that define what they name."""
    known = list(patterns)
    wordy = [one for one in known if one.source.is_free_text and not one.files]
    if not wordy:
        return known
    tree = tree_of(root)
    definitions(tree, {name for one in wordy for name in names_in(one.sentence)})
    made: dict[str, Pattern] = {}
    for one in wordy:
        found = set(text_files(tree, one.sentence)) & set(tree.files)
        about = {path for test in found for path in subjects_of(tree, test)} if found else set()
        files = sorted(path for path in found | about if is_plain_path(path))
        made[one.id] = replace(one, files=tuple(files[:_MOST_FILES]))
    return [made.get(one.id, one) for one in known]


class FileChange(NamedTuple):
    commit: str
    at: float


def with_changes(
    root: Path, patterns: Sequence[Pattern], own_commits: Collection[str]
) -> Iterator[Pattern]:
    """The same patterns; words about a file that was changed since say which and by what."""
    wordy = [one for one in patterns if one.source.is_free_text and one.files]
    since = min((_stands_since(one) for one in wordy), default=0.0)
    changes = _changes(root, since) if since else {}
    for one in patterns:
        changed = ""
        if one.source.is_free_text:
            changed = _changed_since(one, changes, own_commits)
        yield replace(one, changed=changed) if changed != one.changed else one


def _changed_since(
    pattern: Pattern, changes: Mapping[str, Sequence[FileChange]], own_commits: Collection[str]
) -> str:
    """Which of its files was changed after it was last said, and by which commit; or nothing."""
    since = _stands_since(pattern)
    for path in pattern.files:
        for change in changes.get(path, ()):
            is_own = any(change.commit.startswith(own) for own in own_commits)
            if change.at > since + _A_MOMENT and not is_own:
                return f"{path} was changed since, in {change.commit[:10]}"
    return ""


def _stands_since(pattern: Pattern) -> float:
    """When somebody last said or approved it; 0 where nobody knows."""
    try:
        return parse_iso(pattern.stands_since or pattern.last_seen)
    except ValueError:
        return 0.0


def _changes(root: Path, since: float) -> dict[str, list[FileChange]]:
    """By path the commits that changed it since then, newest first."""
    plain = ("--no-merges", "--name-only", "--relative", f"--max-count={_MOST_COMMITS}")
    form = "--format=%x00%H %ct"
    try:
        ended = Git(root).attempt("log", *plain, f"--since={int(since)}", form)
    except RalphError:
        return {}
    found: dict[str, list[FileChange]] = defaultdict(list)
    for part in ended.stdout.decode("utf-8", "replace").split("\0")[1:]:
        head, _, listed = part.partition("\n")
        commit, _, at = head.partition(" ")
        for path in listed.split("\n"):
            if path:
                found[path].append(FileChange(commit, float(at or 0)))
    return found
