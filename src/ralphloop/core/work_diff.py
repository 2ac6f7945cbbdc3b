"""A story's change as a person reads it: the work alone, tests first, with what was found out about
single lines written beside them.

Read from a patch as git writes it (`--src-prefix=a/ --dst-prefix=b/`).  Everything is bounded, and
what was left out is counted.  Our own files, which every story changes, are counted and not shown.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple

from msgspec.structs import replace

from ralphloop.core import Value
from ralphloop.core.proof import is_test_path
from ralphloop.text.plain import some

MOST_LINES = 4_000
_LONGEST_LINE = 500
_MOST_LITERALS = 12
_PROSE = (".md", ".rst", ".txt", ".adoc")
_FILE = re.compile(r"^diff --git ", re.MULTILINE)
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)")
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.){2,60})\"|'((?:[^'\\\n]|\\.){2,60})'")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[._]\d+)*(?![\w.])")
_COMMENT = ("#", "//", "*", "/*", '"""', "'''", "--")
_IMPORT = ("import ", "from ", "use ", "using ", "#include", "require(", "package ")


class FileSide(StrEnum):
    TEST = "test"
    CODE = "code"
    OTHER = "other"  # prose


class MarkKind(StrEnum):
    PROVES = "proves"  # a test that fails without the story
    WEAKENED = "weakened"  # a test that asks for less than before, or is gone
    CHANGED = "changed"  # a test that expects something else now
    VACUOUS = "vacuous"  # a new test that passes without the story
    SURVIVOR = "survivor"  # code that could do something else, and no test would notice
    UNWATCHED = "unwatched"  # a line that no test watches
    LITERAL = "literal"  # a value that stands in code and test alike


class Mark(Value, frozen=True, kw_only=True):
    """What was found out about a line."""

    kind: MarkKind
    words: str


class DiffLine(Value, frozen=True, kw_only=True):
    sign: Literal["+", "-", " "]
    text: str
    old: int = 0  # its number before; 0: it was not there
    new: int = 0  # and after; 0: it is gone
    marks: tuple[Mark, ...] = ()


class Hunk(Value, frozen=True, kw_only=True):
    """Lines that stand together."""

    where: str = ""  # the function or class around it, as git names it
    old: int = 0
    new: int = 0
    lines: tuple[DiffLine, ...] = ()


class ChangedFile(Value, frozen=True, kw_only=True):
    path: str
    side: FileSide
    added: int = 0
    removed: int = 0
    note: str = ""  # new, removed, renamed from …, not text
    hunks: tuple[Hunk, ...] = ()
    left_out: int = 0  # lines that are not shown

    @property
    def marked(self) -> tuple[Mark, ...]:
        """All that was found out about its lines."""
        return tuple(mark for hunk in self.hunks for line in hunk.lines for mark in line.marks)


class SharedLiteral(Value, frozen=True, kw_only=True):
    """A value that stands in code and test alike."""

    value: str
    code: str  # where it stands, as path:line
    test: str


class WorkDiff(Value, frozen=True, kw_only=True):
    files: tuple[ChangedFile, ...] = ()  # tests first, then code, then prose
    own: tuple[str, ...] = ()  # files of ralph's in the same commits, which are not shown
    literals: tuple[SharedLiteral, ...] = ()
    left_out: int = 0  # lines of a very large change

    @property
    def added(self) -> int:
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        return sum(file.removed for file in self.files)


class _LiteralAt(NamedTuple):
    value: str
    place: str  # path:line


class LineFinding(Value, frozen=True, kw_only=True):
    """A mark for the line of a file, or for the line that names a test."""

    mark: Mark
    path: str = ""
    line: int = 0
    test: str = ""  # by its short name; then path and line are not known


def read_patch(patch: str, is_own: Callable[[str], bool]) -> WorkDiff:
    """The change that a patch tells, files that are ralph's own left out by name."""
    files: dict[str, ChangedFile] = {}
    own: dict[str, None] = {}
    room = MOST_LINES
    for section in _sections(patch):
        file = _read_file(section, room)
        if is_own(file.path):
            own[file.path] = None
            continue
        room -= sum(len(hunk.lines) for hunk in file.hunks)
        known = files.get(file.path)
        files[file.path] = _joined(known, file) if known else file
    order = list(FileSide)
    ordered = sorted(files.values(), key=lambda file: order.index(file.side))
    return WorkDiff(
        files=tuple(ordered),
        own=tuple(own),
        literals=tuple(_shared_literals(ordered)),
        left_out=sum(file.left_out for file in ordered),
    )


def _sections(patch: str) -> Iterator[str]:
    """What is said of each file."""
    starts = [found.start() for found in _FILE.finditer(patch)]
    for start, end in zip(starts, [*starts[1:], len(patch)], strict=True):
        yield patch[start:end]


def _joined(first: ChangedFile, second: ChangedFile) -> ChangedFile:
    """One file that two commits changed."""
    return replace(
        first,
        added=first.added + second.added,
        removed=first.removed + second.removed,
        hunks=(*first.hunks, *second.hunks),
        left_out=first.left_out + second.left_out,
    )


def _read_file(section: str, room: int) -> ChangedFile:
    head, _, body = section.partition("\n@@ ")
    path = _path_of(head)
    note = _note_of(head)
    if "\0" in body:
        return ChangedFile(
            path=path, side=side_of_path(path), note=note or "its content is no text"
        )
    lines = f"@@ {body}".split("\n") if body else []
    hunks = tuple(_hunks(lines, room))
    signs = Counter(line[:1] for line in lines)
    shown = sum(len(hunk.lines) for hunk in hunks)
    told = signs["+"] + signs["-"] + signs[" "]
    return ChangedFile(
        path=path,
        side=side_of_path(path),
        added=signs["+"],
        removed=signs["-"],
        note=note,
        hunks=hunks,
        left_out=told - shown,
    )


def side_of_path(path: str) -> FileSide:
    """Which kind of file it is, by its name."""
    if is_test_path(path):
        return FileSide.TEST
    return FileSide.OTHER if path.lower().endswith(_PROSE) else FileSide.CODE


def _path_of(head: str) -> str:
    """The path of a file after the change; before it, where the file is gone."""
    for start in ("\n+++ b/", "\n--- a/", "\nrename to "):
        _, found, rest = head.partition(start)
        if found:
            return rest.partition("\n")[0].rstrip("\t")
    first = head.partition("\n")[0].removeprefix("diff --git a/")
    return first[: (len(first) - len(" b/")) // 2]  # both sides have the same name


def _note_of(head: str) -> str:
    if "\nnew file mode " in head:
        return "new"
    if "\ndeleted file mode " in head:
        return "removed"
    _, is_renamed, rest = head.partition("\nrename from ")
    if is_renamed:
        before = rest.partition("\n")[0]
        return f"renamed from {before}"
    return "not text" if "\nBinary files " in head else ""


def _hunks(lines: Sequence[str], room: int) -> Iterator[Hunk]:
    hunk = Hunk()
    kept = list[DiffLine]()
    old = 0
    new = 0
    for line in lines:
        begun = _HUNK.match(line)
        if begun:
            if kept:
                yield replace(hunk, lines=tuple(kept))
                kept = []
            old = int(begun[1])
            new = int(begun[2])
            hunk = Hunk(where=begun[3].strip()[:_LONGEST_LINE], old=old, new=new)
            continue
        if room <= 0 or line[:1] not in ("+", "-", " "):
            continue
        room -= 1
        text = line[1:].rstrip("\r")[:_LONGEST_LINE]
        if line[0] == "+":
            kept.append(DiffLine(sign="+", text=text, new=new))
            new += 1
        elif line[0] == "-":
            kept.append(DiffLine(sign="-", text=text, old=old))
            old += 1
        else:
            kept.append(DiffLine(sign=" ", text=text, old=old, new=new))
            old += 1
            new += 1
    if kept:
        yield replace(hunk, lines=tuple(kept))


def with_marks(diff: WorkDiff, findings: Iterable[LineFinding]) -> WorkDiff:
    """The change with what was found out written at its lines; literals are marked as well."""
    told = [*findings, *_literal_findings(diff.literals)]
    placed: dict[tuple[str, int], list[Mark]] = {}
    named: dict[str, list[Mark]] = {}
    for one in told:
        if one.test:
            named.setdefault(one.test, []).append(one.mark)
        else:
            placed.setdefault((one.path, one.line), []).append(one.mark)
    files = tuple(_marked_file(file, placed, named) for file in diff.files)
    return replace(diff, files=files)


def _marked_file(
    file: ChangedFile,
    placed: Mapping[tuple[str, int], Sequence[Mark]],
    named: Mapping[str, Sequence[Mark]],
) -> ChangedFile:
    tests = named if file.side is FileSide.TEST else {}
    hunks = []
    for hunk in file.hunks:
        lines = []
        waiting = [*_named_in(hunk.where, tests)]  # of a test that begins above these lines
        for line in hunk.lines:
            marks = [*placed.get((file.path, line.new), ())] if line.new else []
            marks += _named_in(line.text, tests)
            if line.sign == "+":
                marks += waiting
                waiting = []
            lines.append(replace(line, marks=tuple(dict.fromkeys(marks))) if marks else line)
        hunks.append(replace(hunk, lines=tuple(lines)))
    return replace(file, hunks=tuple(hunks))


def _named_in(text: str, tests: Mapping[str, Sequence[Mark]]) -> Iterator[Mark]:
    """The marks of the tests that a line names."""
    for test, marks in tests.items():
        if re.search(rf"(?<!\w){re.escape(test)}(?!\w)", text):
            yield from marks


def _literal_findings(literals: Iterable[SharedLiteral]) -> Iterator[LineFinding]:
    by_line: dict[str, list[str]] = {}
    for one in literals:
        by_line.setdefault(one.code, []).append(one.value)
    for place, values in by_line.items():
        path, _, line = place.rpartition(":")
        verb = "stands" if len(values) == 1 else "stand"
        words = f"{some(values, 4)} {verb} in the tests as well"
        mark = Mark(kind=MarkKind.LITERAL, words=words)
        yield LineFinding(mark=mark, path=path, line=int(line))


def _shared_literals(files: Sequence[ChangedFile]) -> Iterator[SharedLiteral]:
    """Values that the change brings into code and tests alike, the first place of each."""
    expected = dict[str, str]()
    for file in files:
        if file.side is FileSide.TEST:
            for value, place in _literals_in(file):
                expected.setdefault(value, place)
    seen = dict[str, str]()
    for file in files:
        if file.side is FileSide.CODE:
            for value, place in _literals_in(file):
                seen.setdefault(value, place)
    shared = [value for value in seen if value in expected]
    for value in shared[:_MOST_LITERALS]:
        yield SharedLiteral(value=value, code=seen[value], test=expected[value])


def _literals_in(file: ChangedFile) -> Iterator[_LiteralAt]:
    """The values on lines that the change added, each with its place."""
    for hunk in file.hunks:
        for line in hunk.lines:
            bare = line.text.strip()
            if line.sign != "+" or bare.startswith(_COMMENT) or bare.startswith(_IMPORT):
                continue
            place = f"{file.path}:{line.new}"
            for one in _STRING.finditer(bare):
                value = one[1] if one[1] is not None else one[2]
                yield _LiteralAt(value, place)
            for one in _NUMBER.finditer(_STRING.sub("", bare)):
                if len(one[0].strip("-0.")) >= 2:  # 0, 1 and 10 stand everywhere
                    yield _LiteralAt(one[0], place)
