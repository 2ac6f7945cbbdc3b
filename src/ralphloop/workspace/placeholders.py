"""Stand-ins for content that is not hashed: large files, unreadable ones, repositories inside.

A placeholder is a small blob in our own object store that says size and time (or head and state),
so that a change of the real thing changes the tree, at the cost of one `lstat`.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from pathlib import Path

from ralphloop.errors import RepositoryError
from ralphloop.workspace.git import Git
from ralphloop.workspace.porcelain import STATUS_ARGS, parse_status

LONGEST = 200
_PREFIX = b"ralph: content not measured\n"
_MAX_INNER_PATHS = 2_000
_INNER_TIMEOUT_S = 20.0


def for_file(info: os.stat_result) -> bytes:
    """What is known of a file without reading it."""
    return _PREFIX + b"file %d %d\n" % (info.st_size, info.st_mtime_ns)


def for_repository(path: Path) -> bytes:
    """What is known of a repository inside this one: its head and what differs from it."""
    try:
        git = Git(path, config=(f"core.hooksPath={os.devnull}",))
        report = parse_status(git.run(*STATUS_ARGS, timeout_s=_INNER_TIMEOUT_S))
    except RepositoryError:
        return _PREFIX + b"repository that git cannot read\n"
    digest = hashlib.sha256()
    for entry in report.entries[:_MAX_INNER_PATHS]:
        digest.update(b"%s\0%s\0" % (entry.path, _stamp(path, entry.path)))
    return _PREFIX + f"repository {report.head} {digest.hexdigest()}\n".encode()


def is_placeholder(content: bytes) -> bool:
    """True for what this module made."""
    return content.startswith(_PREFIX)


def store_blob(store: Path, object_format: str, content: bytes) -> str:
    """Write a loose blob; cheaper than a process for each."""
    body = b"blob %d\0%s" % (len(content), content)
    name = hashlib.new(object_format, body, usedforsecurity=False).hexdigest()
    target = store / name[:2] / name[2:]
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f"tmp_{os.getpid()}_{name[2:10]}")
        temporary.write_bytes(zlib.compress(body, 1))
        temporary.replace(target)
    return name


def _stamp(root: Path, path: bytes) -> bytes:
    try:
        info = os.lstat(os.path.join(os.fsencode(root), path))  # noqa: PTH118 - bytes paths
    except OSError:
        return b"absent"
    return b"%d %d" % (info.st_size, info.st_mtime_ns)
