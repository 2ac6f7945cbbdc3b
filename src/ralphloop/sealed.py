"""Acceptance tests that agents can neither read nor change: where they are kept, and who said so.

Sealed files leave the work tree and the branch.  Their contents lie in the person's state
directory, by digest, which no sandbox shows to an agent; a record beside them says which path each
has, who sealed it, when, and for which stories.  They are laid into a clean tree for as long as
they run there, and nowhere else.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ralphloop.errors import InputError, RepositoryError
from ralphloop.room import common_place, file_of, read_state, write_state

LARGEST_FILE = 4 << 20
MOST_FILES = 500


class SealedFile(msgspec.Struct, frozen=True, kw_only=True):
    path: str  # from the repository's root
    digest: str
    is_executable: bool = False
    sealed_at: str = ""
    by: str = ""
    stories: tuple[str, ...] = ()  # it has to be green for these; empty: it speaks for the project


class SealedRecord(msgspec.Struct, frozen=True, kw_only=True):
    place: str = ""  # the repository they were taken from
    files: dict[str, SealedFile] = {}


def sealed_files(root: Path, env: Mapping[str, str]) -> tuple[SealedFile, ...]:
    """What was sealed of a project, by path."""
    found = read_state(_record_path(root, env))
    if found is None:
        return ()
    try:
        record = msgspec.json.decode(found, type=SealedRecord)
    except msgspec.DecodeError as error:
        raise InputError(
            f"the record of sealed tests cannot be read: {error}",
            "Bring it back from a backup: sealed tests are nowhere else.",
            place=str(_record_path(root, env)),
        ) from None
    return tuple(record.files[path] for path in sorted(record.files))


def sealed_text(root: Path, env: Mapping[str, str], file: SealedFile) -> bytes:
    """The content of a sealed file; raises where it is not what was sealed."""
    content = read_state(_content_path(root, env, file.digest))
    if content is None or hashlib.sha256(content).hexdigest() != file.digest:
        raise RepositoryError(
            f"the sealed file {file.path} is gone or was changed",
            "Bring it back from a backup, or forget it: ralph unseal --forget " + file.path,
        )
    return content


def seal_file(root: Path, env: Mapping[str, str], file: SealedFile, content: bytes) -> None:
    """Keep a file: first its content, then that it is sealed."""
    write_state(_content_path(root, env, file.digest), content)
    known = {one.path: one for one in sealed_files(root, env)}
    _write_record(root, env, {**known, file.path: file}.values())


def forget_sealed(root: Path, env: Mapping[str, str], paths: Iterable[str]) -> None:
    """Let these be sealed no more; contents that no record names are removed."""
    gone = frozenset(paths)
    files = sealed_files(root, env)
    kept = [one for one in files if one.path not in gone]
    _write_record(root, env, kept)
    still_needed = {one.digest for one in kept}
    for one in files:
        content = _content_path(root, env, one.digest)
        if one.digest not in still_needed and content is not None:
            content.unlink(missing_ok=True)


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write_record(root: Path, env: Mapping[str, str], files: Iterable[SealedFile]) -> None:
    record = SealedRecord(place=str(common_place(root)), files={one.path: one for one in files})
    write_state(_record_path(root, env), msgspec.json.format(msgspec.json.encode(record)))


def _record_path(root: Path, env: Mapping[str, str]) -> Path | None:
    return file_of("sealed", common_place(root), env)


def _content_path(root: Path, env: Mapping[str, str], digest: str) -> Path | None:
    record = _record_path(root, env)
    return record.parent / f"{record.stem}-{digest}" if record else None
