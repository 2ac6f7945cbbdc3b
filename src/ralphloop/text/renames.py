"""Code that was renamed, and a text that speaks of it by its old name.

A test loads code by the name of its file.  Where a story renames that file, its old tests cannot be
loaded any more, which says nothing about what the code does: with the new name in them they can.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

_LEAST_ALIKE = 0.3  # of their lines, for two files to be the same under another name
_MOST_PAIRS = 200
_NEAR = 40  # letters around a word that say what it is
_BEFORE_A_FILE = re.compile(r"(?:/|\bfrom\s+|\bmod\s+|(?:^|\n)\s*import\s+)$")
_BEHIND_A_FILE = re.compile(r"::|\.[A-Za-z_]|[ \t]+import\b")
# A script's own name for what it takes from a file.
_BOUND = r"\b(?:const|let|var|import(?:\s+\*\s+as)?)\s+{word}\s*(?:=|from\b)"
_DIRECTORY_FILES = frozenset({"__init__", "index", "mod"})  # they are called by their directory


class Renamed(NamedTuple):
    """What a text calls something, before and after."""

    old: str
    new: str
    is_file_alone: bool = False  # what the file holds has this name, too, and keeps it


class RenamedFile(NamedTuple):
    """One file under its two names."""

    gone: str
    came: str


def renamed_names(
    files: Iterable[RenamedFile], texts: Mapping[str, str] | None = None
) -> tuple[Renamed, ...]:
    """How files that have another name are called by others, before and now.

    `texts` are those of the files that came.
    """
    found: dict[str, Renamed] = {}
    for pair in files:
        held = (texts or {}).get(pair.came, "")
        for one in _names(_parts(pair.gone), _parts(pair.came)):
            is_held = re.search(rf"(?<!\w){re.escape(one.old)}(?!\w)", held) is not None
            found.setdefault(one.old, one._replace(is_file_alone=is_held))
        if own := _by_its_own_name(pair):
            found.setdefault(own.old, own)
    return tuple(found.values())


def with_new_names(text: str, renamed: Iterable[Renamed]) -> str:
    """The same text, speaking of what was renamed by its new name."""
    by_old = {one.old: one for one in renamed}
    if not by_old:
        return text
    longest_first = sorted(by_old, key=len, reverse=True)
    words = "|".join(map(re.escape, longest_first))

    def now(match: re.Match[str]) -> str:
        one = by_old[match[0]]
        is_kept = one.is_file_alone and not _speaks_of_a_file(text, match.start(), match.end())
        return one.old if is_kept else one.new

    return re.sub(rf"(?<!\w)(?:{words})(?!\w)", now, text)


def _speaks_of_a_file(text: str, begin: int, end: int) -> bool:
    """Whether a word stands where a file is named: in a path, beside `import`, before a member."""
    before = text[max(0, begin - _NEAR) : begin]
    behind = text[end : end + _NEAR]
    word = re.escape(text[begin:end])
    if before.endswith("/"):
        return True
    if re.search(_BOUND.format(word=word), text):
        return False
    return bool(_BEFORE_A_FILE.search(before) or _BEHIND_A_FILE.match(behind))


def renamed_files(gone: Mapping[str, str], came: Mapping[str, str]) -> list[RenamedFile]:
    """Each file that went with the one it is most likely to be now, by their texts."""
    free = dict(list(came.items())[:_MOST_PAIRS])
    pairs = []
    for path, text in list(gone.items())[:_MOST_PAIRS]:
        alike = {it: _alikeness(path, text, it, free[it]) for it in free}
        best = max(alike, key=alike.__getitem__, default=None)
        is_only_choice = len(gone) == len(came) == 1
        if best is None or (alike[best] < _LEAST_ALIKE and not is_only_choice):
            continue
        pairs.append(RenamedFile(path, best))
        del free[best]
    return pairs


def with_new_modules(test: str, files: Iterable[RenamedFile]) -> str:
    """The name of a test of Rust by the module it stands in now, where its file was renamed."""
    binary, mark, inside = test.partition("::")
    for pair in files:
        gone = _module_of_rust(pair.gone)
        came = _module_of_rust(pair.came)
        example = f"{pair.gone} - {gone}"
        if gone and came and inside.startswith(f"{gone}::"):
            return f"{binary}{mark}{came}{inside.removeprefix(gone)}"
        if gone and came and inside.startswith(example):
            return f"{binary}{mark}{pair.came} - {came}{inside.removeprefix(example)}"
    return test


def _module_of_rust(path: str) -> str:
    """What a file below `src` is called inside of its crate; empty where it is none."""
    before, mark, inside = f"/{path}".rpartition("/src/")
    if not (mark and inside.endswith(".rs")) or before.startswith("/tests/"):
        return ""
    return inside.removesuffix(".rs").removesuffix("/mod").replace("/", "::")


def stands_in(piece: str, texts: Iterable[str]) -> bool:
    """Whether these lines stand together in one of the texts, however deep they are indented."""
    wanted = _plain_lines(piece)
    return any(wanted in _plain_lines(text) for text in texts)


def _plain_lines(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return "".join(f"\n{line}\n" for line in lines if line)


def _alikeness(old_path: str, old: str, new_path: str, new: str) -> float:
    """The share of common lines; the same name in another directory is more than any of it."""
    old_name = old_path.rpartition("/")[2]
    new_name = new_path.rpartition("/")[2]
    if old_name.rpartition(".")[2] != new_name.rpartition(".")[2]:
        return 0.0
    old_lines = set(old.splitlines())
    new_lines = set(new.splitlines())
    either = old_lines | new_lines
    share = len(old_lines & new_lines) / len(either) if either else 1.0
    is_moved = old_name == new_name and old_name.partition(".")[0] not in _DIRECTORY_FILES
    return share + 1.0 if is_moved else share


def _parts(path: str) -> tuple[str, ...]:
    *directories, name = path.split("/")
    stem = name.partition(".")[0]
    return (*directories,) if stem in _DIRECTORY_FILES else (*directories, stem)


def _by_its_own_name(pair: RenamedFile) -> Renamed | None:
    """How scripts beside it speak of an `index` that has a name of its own now: `./index.js`."""
    before, _, old = pair.gone.rpartition("/")
    after, _, new = pair.came.rpartition("/")
    old_stem = old.partition(".")[0]
    new_stem = new.partition(".")[0]
    if old_stem != "index" or new_stem == "index" or before != after:
        return None
    return Renamed(old_stem, new_stem, is_file_alone=True)


def _names(old: Sequence[str], new: Sequence[str]) -> Iterable[Renamed]:
    """How others may speak of a file, from its whole path down to the one word that differs."""
    if not old or not new or old == new:
        return
    shared = 0
    while shared < min(len(old), len(new)) and old[shared] == new[shared]:
        shared += 1
    for first in range(shared + 1):
        for joint in (".", "/", "::"):
            before = joint.join(old[first:])
            after = joint.join(new[first:])
            if joint in before and after:
                yield Renamed(before, after)
    behind = 0
    while behind < min(len(old), len(new)) - shared and old[-1 - behind] == new[-1 - behind]:
        behind += 1
    old_words = old[shared : len(old) - behind]
    new_words = new[shared : len(new) - behind]
    if len(old_words) == len(new_words) == 1:
        yield Renamed(old_words[0], new_words[0])
