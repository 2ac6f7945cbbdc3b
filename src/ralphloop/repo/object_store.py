"""Our own git objects under `.ralph/objects`: reading them back, and keeping them few.

Every measurement may leave loose objects behind.  Once there are many, the ones that named trees
still need are packed and the rest goes; objects the user's repository has are never stored twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ralphloop.repo.git import Git

MAX_TEXT = 1024 * 1024
MAX_TEXTS = 32 * 1024 * 1024
MAX_LOOSE_OBJECTS = 20_000
MAX_STORE_BYTES = 256 * 1024 * 1024
_PACK_TIMEOUT_S = 300.0


def prepare(store: Path) -> None:
    """Make the store, in a directory that git does not look into."""
    if not store.is_dir():
        store.mkdir(parents=True, exist_ok=True)
    ignore = store.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


def contents(git: Git, names: Iterable[str], largest: int = MAX_TEXT) -> dict[str, bytes]:
    """Blobs by name; missing and large ones are left out."""
    wanted = _within_limits(git, sorted(set(names)), largest)
    if not wanted:
        return {}
    output = git.run("cat-file", "--batch", stdin=_lines(wanted))
    return dict(_batch(output))


def blobs_among(git: Git, names: Iterable[str]) -> frozenset[str]:
    """Those names whose content is there."""
    found = _checked(git, sorted(set(names)))
    return frozenset(name for name, kind, _ in found if kind == "blob")


def prune(git: Git, store: Path, keep: Iterable[str]) -> None:
    """Once the store has grown too large, keep only what the given trees need."""
    loose, packs = _listed(store)
    size = sum(file.stat().st_size for file in (*loose, *packs))
    if len(loose) <= MAX_LOOSE_OBJECTS and size <= MAX_STORE_BYTES:
        return
    trees = _existing(git, sorted(set(keep)))
    new = _pack(git, store, trees) if trees else ""
    for file in loose:
        file.unlink(missing_ok=True)
    for pack in packs:
        if not new or new not in pack.name:
            pack.unlink(missing_ok=True)


def _within_limits(git: Git, names: list[str], largest: int) -> list[str]:
    wanted: list[str] = []
    total = 0
    for name, kind, size in _checked(git, names):
        if kind == "blob" and size <= largest and total + size <= MAX_TEXTS:
            total += size
            wanted.append(name)
    return wanted


def _checked(git: Git, names: list[str]) -> Iterator[tuple[str, str, int]]:
    """Name, kind and size of those objects that are there."""
    if not names:
        return
    for line in git.run("cat-file", "--batch-check", stdin=_lines(names)).decode().splitlines():
        name, kind, *size = line.split(" ")
        if size:
            yield name, kind, int(size[0])


def _batch(output: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        name, _, size = output[at:end].decode().split(" ")
        start = end + 1
        yield name, output[start : start + int(size)]
        at = start + int(size) + 1


def _existing(git: Git, trees: list[str]) -> list[str]:
    return [name for name, kind, _ in _checked(git, trees) if kind == "tree"]


def _pack(git: Git, store: Path, trees: list[str]) -> str:
    """Pack what the trees need and the user's repository has not; the pack's hash."""
    (store / "pack").mkdir(exist_ok=True)
    # --missing: content too plentiful to keep is named in trees without being there
    output = git.run(
        "pack-objects",
        "--quiet",
        "--revs",
        "--local",
        "--missing=allow-any",
        str(store / "pack" / "pack"),
        stdin=_lines(trees),
        timeout_s=_PACK_TIMEOUT_S,
    )
    return output.decode().strip()


def _listed(store: Path) -> tuple[list[Path], list[Path]]:
    """Loose objects, and packs with their companions."""
    loose = [
        file
        for directory in store.iterdir()
        if len(directory.name) == 2 and directory.is_dir()
        for file in directory.iterdir()
    ]
    pack = store / "pack"
    return loose, list(pack.iterdir()) if pack.is_dir() else []


def _lines(names: Iterable[str]) -> bytes:
    return b"".join(name.encode() + b"\n" for name in names)
