"""Trees without a story's own changes, and what its own change is known by.

`core.own_work` says which paths others have a word in.  Here their contents are merged, and the
tree is made of objects of ours: neither the work tree nor the user's repository is touched.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from ralphloop.core.own_work import PathChange, PathEntry, change_id, moved_on
from ralphloop.repo.git import Git
from ralphloop.repo.snapshot import Snapshotter

_AS_A_PATCH = (
    "diff-tree", "-r", "-p", "--full-index", "--unified=3", "--no-renames", "--no-ext-diff",
    "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip
_FILES = ("100644", "100755")


def tree_without(measure: Snapshotter, start: str, left: str, now: str) -> str:
    """What stands without a story: `start`, where it began, with all that others changed since.

    `left` is how its last start left the work tree, `now` how it is.  Where nobody kept the earlier
    trees, what is there now counts as what others did.
    """
    if not (measure.has(start) and measure.has(left)):
        return now
    own = measure.entries_changed(start, left)
    moved = moved_on(own, measure.entries_changed(left, now))
    merged = {path: _merge(measure, own[path], theirs) for path, theirs in moved.contested.items()}
    return measure.with_entries(start, {**moved.taken, **merged})


def _merge(measure: Snapshotter, own: PathChange, theirs: PathEntry | None) -> PathEntry | None:
    """A file as it would be without the story's lines; as it is now where that is not known."""
    versions = (own.before, own.after, theirs)
    if theirs is None or not all(it is not None and it.mode in _FILES for it in versions):
        return theirs
    names = [it.content for it in versions if it is not None]
    kept = measure.kept(names)
    contents = measure.contents(names)
    if not all(name in kept and name in contents for name in names):
        return theirs  # too large, or only a placeholder
    with TemporaryDirectory(prefix="ralph-") as place:
        files = [Path(place, str(number)) for number in range(len(names))]
        for file, name in zip(files, names, strict=True):
            file.write_bytes(contents[name])
        args = ("merge-file", "--stdout", "--quiet", *map(str, files))
        ended = measure.git().attempt(*args)
    if ended.returncode != 0 or ended.timed_out or ended.overflowed:
        return theirs
    content = measure.store(ended.stdout)
    return msgspec.structs.replace(theirs, content=content)


def id_of_change(git: Git, before: str, after: str, *paths: str) -> str:
    """What the change between two trees is known by, of these paths or of all; empty: unknown."""
    specs = ("--", *(f":(literal,top){path}" for path in paths)) if paths else ()
    ended = git.attempt(*_AS_A_PATCH, before, after, *specs)
    is_whole = ended.returncode == 0 and not (ended.overflowed or ended.timed_out)
    return change_id(ended.stdout) if is_whole else ""
