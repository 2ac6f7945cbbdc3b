"""Modules of tests in a Rust file: tests that stand among the code.

Two versions of a file are crossed: the code of the one with the test modules of the other.  Such a
module stands behind `#[cfg(test)]` at the margin, and so does a function or an `impl` that is there
for tests alone; braces are counted, those in texts and comments left out.
"""

import re
from typing import NamedTuple

from ralphloop.text.doctests import Crossed

_LARGEST = 1 << 20
_BEGIN = re.compile(
    rb"^#\[cfg\(test\)\][ \t]*\n(?:#\[[^\n]*\][ \t]*\n){0,8}(?:pub(?:\([^)\n]{0,40}\))? )?"
    rb"(mod \w+|(?:(?:const|async|unsafe) ){0,3}fn \w+(?:[<(][^{;]{0,500}?)?"
    rb"|impl\b[^{;]{1,300}?) \{",
    re.MULTILINE,
)
_MARKS = re.compile(rb"""//|/\*|\bb?r#{0,8}"|"|'|[{}]""")
_CHARACTER = re.compile(rb"'(?:\\u\{[0-9a-fA-F_]{1,8}\}|\\x[0-9a-fA-F]{2}|\\.|[^'\\\n]{1,4})'")
_BLANK_LINES = re.compile(rb"\n*")
_TEST = b"#[test]"


class RustModule(NamedTuple):
    """A module of tests, or what is there for them alone: how it begins, and where it stands."""

    name: bytes
    start: int
    end: int


def crossed_modules(old: bytes, new: bytes) -> Crossed | None:
    """The two versions crossed; None where their test modules are the same.

    Raises ValueError where one cannot be read, or has tests outside of such modules.
    """
    was = _texts(old)
    now = _texts(new)
    if was == now:
        return None
    return Crossed(new_code=_with_modules(new, was), old_code=_with_modules(old, now))


def doc_examples(source: bytes) -> tuple[bytes, ...]:
    """The comments of a file that hold examples, which cargo runs as well; line by line."""
    if b"```" not in source:
        return ()
    lines = (line.strip() for line in source.splitlines())
    return tuple(line for line in lines if line.startswith((b"///", b"//!")))


def _texts(source: bytes) -> dict[bytes, bytes]:
    """What the modules of tests hold, by name."""
    modules = modules_of_tests(source)
    found = {it.name: source[it.start : it.end] for it in modules}
    inside = sum(text.count(_TEST) for text in found.values())
    if len(found) < len(modules) or source.count(_TEST) > inside:
        raise ValueError("tests stand outside of the modules of tests")
    return found


def _with_modules(source: bytes, wanted: dict[bytes, bytes]) -> bytes:
    """The code of a file with these modules of tests instead of its own."""
    left = dict(wanted)
    parts = list[bytes]()
    at = 0
    for module in modules_of_tests(source):
        parts.append(source[at : module.start])
        other = left.pop(module.name, b"")
        parts.append(other)
        at = module.end if other else _behind_blank_lines(source, module.end)
    parts.append(source[at:])
    for text in left.values():
        parts.append(b"\n" + text + b"\n")
    return b"".join(parts)


def _behind_blank_lines(source: bytes, at: int) -> int:
    found = _BLANK_LINES.match(source, at)
    return found.end() if found else at


def modules_of_tests(source: bytes) -> list[RustModule]:
    """The modules of tests at the margin of a file; ValueError where one has no end."""
    if len(source) > _LARGEST:
        raise ValueError("the file is too large")
    found = list[RustModule]()
    at = 0
    while begin := _BEGIN.search(source, at):
        at = _end(source, begin.end())
        found.append(RustModule(begin[1], begin.start(), at))
    return found


def _end(source: bytes, at: int) -> int:
    """Behind the brace that closes what was opened before this place."""
    depth = 1
    while mark := _MARKS.search(source, at):
        at = _behind(source, mark)
        if mark[0] == b"{":
            depth += 1
        elif mark[0] == b"}":
            depth -= 1
            if depth == 0:
                return at
    raise ValueError("a module has no end")


def _behind(source: bytes, mark: re.Match[bytes]) -> int:
    """Where reading goes on: behind a comment or a text, or just behind the mark."""
    kind = mark[0]
    if kind == b"//":
        return _found(source, b"\n", mark.end())
    if kind == b"/*":
        return _found(source, b"*/", mark.end())
    if kind == b"'":  # a character, or a lifetime
        character = _CHARACTER.match(source, mark.start())
        return character.end() if character else mark.end()
    if kind == b'"':
        at = mark.end()
        while at < len(source) and source[at : at + 1] != b'"':
            at += 2 if source[at : at + 1] == b"\\" else 1
        return at + 1
    if kind.endswith(b'"'):
        return _found(source, b'"' + b"#" * kind.count(b"#"), mark.end())
    return mark.end()


def _found(source: bytes, end: bytes, at: int) -> int:
    place = source.find(end, at)
    if place < 0:
        raise ValueError("a text or a comment has no end")
    return place + len(end)
