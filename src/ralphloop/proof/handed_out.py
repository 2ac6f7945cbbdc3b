"""Whole answers that lie beside a program, and that its tests expect: in a file, or in a literal.

A test that starts a program compares what it prints.  A program that knows these outputs by heart
passes it, and every mutant of it is noticed.  What gives it away is that the outputs stand in the
product: documents with their values filled in (JSON, rows of a table), of which the tests know each
word.  Honest code shares messages, names and templates with its tests, and these are no documents:
they are one line of prose, or have gaps to be filled.

Words and their order are compared, not the text: a test says `{"id": 1}` in its own notation.
Texts that are packed (base64, hex, zlib, gzip, bz2, xz) are unpacked, within bounds.  Of large
texts the first part is looked at.
"""

import ast
import base64
import binascii
import bz2
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ralphloop.proof.answers import ChangedText

_LEAST_LEAVES = 2  # of a document in JSON
_LEAST_WORDS = 5  # of rows
_LEAST_DOCUMENTS = 2
_LEAST_ROWS = 3  # of a table that is written as one
_LEAST_FINGERPRINTS = 3
_MANY_WORDS = 30  # one document of so many, with numbers in it, is enough
_MANY_NUMBERS = 4
_SHARE_OF_WORDS = 0.9
_SHARE_OF_PAIRS = 0.55
_LEAST_PACKED = 48  # characters: shorter ones are keys and hashes
_LARGEST_TEXT = 1_000_000
_MOST_TEXTS = 4_000  # of one file
_DEEPEST = 4  # a text in a text in a text

_WORD = re.compile(r"\w+(?:\.\d+)?")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_QUOTED = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`", re.DOTALL)
_ESCAPED = re.compile(r"\\([nrt\"'`\\/])")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_GAP = re.compile(r"%[sdifr(]|\$\{|\{\{|\{\w*(?:[!:.\[][^{}\n]{0,40})?\}|<[a-z_ -]{2,30}>|\$\w")
_SPACE = re.compile(r"\s+")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_BASE = re.compile(r"[\w+/-]+={0,2}", re.ASCII)
_PRINTED = re.compile(r"[\t\n\r\x20-\x7e\x80-\uffff]{4,}")
_HASHING = re.compile(
    r"\b(?:sha\d{1,3}|sha_\w+|md5|blake\w+|crc32|adler32|hashlib|createHash|Sum256|hexdigest"
    r"|MessageDigest|DefaultHasher|fnv|xxh\w+|hash)\b",
    re.IGNORECASE,
)
# A fingerprint that something else is found by; one that stands for something is its value.
_BY_FINGERPRINT = re.compile(
    r"(?:^|[{,(\[\s])[\"'`]?((?=[0-9a-f]{0,127}\d)[0-9a-f]{16,128})[\"'`]?"
    r"[ \t]*(?::|=>|=|,|\t)(?![ \t]*[\"'`]?[0-9a-f]{16})",
    re.MULTILINE,
)
_EXAMPLES = frozenset(
    "examples example samples sample docs doc demo demos fixtures testdata".split()
)
_PROSE = (".md", ".rst", ".adoc")
_PYTHON = (".py", ".pyi")
_CODE = frozenset(
    "js jsx ts tsx mjs cjs mts cts go rs rb java kt c h cc cpp cs php swift scala ex exs vue lua"
    " dart sh".split()
)


class _Document(NamedTuple):
    """A text with its values filled in."""

    words: tuple[str, ...]

    @property
    def numbers(self) -> set[str]:
        """Those that are not everywhere: of two digits or more."""
        return {it for it in self.words if len(it) > 1 and _NUMBER.fullmatch(it)}

    def is_known_to(self, tests: "_Known") -> bool:
        """Whether the tests have these words, and many of them in this order."""
        each = set(self.words)
        if len(each & tests.words) < _SHARE_OF_WORDS * len(each):
            return False
        pairs = _pairs(self.words)
        if len(pairs & tests.pairs) >= _SHARE_OF_PAIRS * len(pairs):
            return True
        return self.is_large and self.numbers <= tests.words

    @property
    def is_large(self) -> bool:
        return len(self.words) >= _MANY_WORDS and len(self.numbers) >= _MANY_NUMBERS


class _Known(NamedTuple):
    """What the tests say, as words and as words that follow each other."""

    words: set[str]
    pairs: set[tuple[str, str]]


class _Written(NamedTuple):
    """What a story wrote into one file of the product."""

    path: str
    documents: tuple[_Document, ...]
    is_by_fingerprint: bool


def has_documents(code: Sequence[ChangedText]) -> bool:
    """Whether a story wrote anything that could be an answer as a whole."""
    return any(one.documents for one in _written_in(code))


def handed_out(code: Sequence[ChangedText], tests: Iterable[bytes]) -> tuple[str, ...]:
    """What of a story hands out the answers of its tests, in words; `tests`: and what they read."""
    written = [one for one in _written_in(code) if one.documents]
    if not written:
        return ()
    known = _known(tests)
    is_hashing = any(_HASHING.search(_decoded(it.new)) for it in code)
    found = list[str]()
    for one in written:
        expected = [it for it in one.documents if it.is_known_to(known)]
        is_one_enough = any(it.is_large for it in expected)
        if len(expected) >= _LEAST_DOCUMENTS or is_one_enough:
            found.append(f"{one.path} hands out what its tests expect")
        elif one.is_by_fingerprint and is_hashing:
            found.append(f"{one.path} hands out answers by a fingerprint of what is asked")
    return tuple(found)


def _written_in(code: Sequence[ChangedText]) -> Iterator[_Written]:
    """Documents that stood in no changed file before: what was only moved is nobody's answer."""
    before = set[_Document]()
    for text in code:
        if text.old is not None:
            before.update(_documents(text.path, text.old))
    for text in code:
        if not text.path.endswith(_PROSE) and not _is_example(text.path, code):
            now = dict.fromkeys(_documents(text.path, text.new))
            documents = tuple(it for it in now if it not in before)
            yield _Written(text.path, documents, _is_by_fingerprint(text))


def _is_example(path: str, code: Sequence[ChangedText]) -> bool:
    """Whether a file lies among examples, and the product does not name it."""
    *directories, name = path.split("/")
    if _EXAMPLES.isdisjoint(directories):
        return False
    return not any(name in _decoded(it.new) for it in code if it.path != path)


def _is_by_fingerprint(text: ChangedText) -> bool:
    """Whether several rows are found by something like a hash."""
    before = set(_BY_FINGERPRINT.findall(_decoded(text.old or b"")))
    now = set(_BY_FINGERPRINT.findall(_decoded(text.new)))
    return len(now - before) >= _LEAST_FINGERPRINTS


def _decoded(content: bytes) -> str:
    return content[:_LARGEST_TEXT].decode("utf-8", "replace")


def _known(tests: Iterable[bytes]) -> _Known:
    known = _Known(set(), set())
    for test in tests:
        words = _words(_unescaped(_decoded(test)))
        known.words.update(words)
        known.pairs.update(_pairs(words))
    return known


def _words(text: str) -> tuple[str, ...]:
    """Words and numbers, as they are said in any notation."""
    same = {"none": "null", "nil": "null"}
    found = (word.lower() for word in _WORD.findall(text))
    return tuple(same.get(it, it.removesuffix(".0")) for it in found)


def _pairs(words: Sequence[str]) -> set[tuple[str, str]]:
    return set(pairwise(words))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), text)


# What a file holds


def _documents(path: str, content: bytes) -> Iterator[_Document]:
    for number, text in enumerate(_texts_in(path, content)):
        if number > _MOST_TEXTS:
            return
        if _is_document(text):
            yield _Document(_words(text))


def _texts_in(path: str, content: bytes) -> Iterator[str]:
    """Every text that may be an answer: literals of code, and what data is made of."""
    suffix = path.rpartition(".")[2].lower()
    if path.endswith(_PYTHON):
        yield from _texts_of_python(content)
    elif suffix in _CODE:
        for quoted in _QUOTED.findall(_decoded(content)):
            yield from _texts_of_literal(_unescaped(quoted[1:-1]), 0)
    else:
        yield from _texts_of_data(content, 0)


def _texts_of_python(content: bytes) -> Iterator[str]:
    try:
        tree = ast.parse(content[:_LARGEST_TEXT])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    silent = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):  # a docstring: its examples are meant to be tested
            silent.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            silent.update(id(it) for it in node.values)
        elif isinstance(node, ast.Dict | ast.List | ast.Tuple):
            yield from _rows_of(node)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in silent:
            continue
        if isinstance(node.value, str):
            yield from _texts_of_literal(node.value, 0)
        elif isinstance(node.value, bytes):
            yield from _texts_of_data(node.value, 0)


def _rows_of(node: ast.Dict | ast.List | ast.Tuple) -> Iterator[str]:
    """The rows of a table that is written as one, where each of them is made of others."""
    rows = node.values if isinstance(node, ast.Dict) else node.elts
    if len(rows) < _LEAST_ROWS:
        return
    for row in rows:
        try:
            value = ast.literal_eval(row)
            told = json.dumps(value) if isinstance(value, dict | list) else ""
        except (ValueError, TypeError, RecursionError, MemoryError):
            continue
        if told:
            yield told


def _texts_of_literal(text: str, depth: int) -> Iterator[str]:
    """A text of code: itself, and what is packed in it."""
    yield text
    if depth < _DEEPEST and (packed := _unpacked_text(text)):
        yield from _texts_of_data(packed, depth + 1)


def _texts_of_data(content: bytes, depth: int) -> Iterator[str]:
    """What a file is made of, or something that was packed."""
    if depth > _DEEPEST:
        return
    if (inner := _inflated(content)) is not None:
        yield from _texts_of_data(inner, depth + 1)
        return
    text = _decoded(content)
    if "\0" in text:  # a file of its own kind: whatever can be read in it
        yield from _PRINTED.findall(text)
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        yield from _parts_of(text, depth)
    else:
        yield from _texts_of_value(value, depth)


def _texts_of_value(value: object, depth: int) -> Iterator[str]:
    """The texts and the rows in a value of JSON, level by level."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield from _texts_of_literal(one, depth)
        elif isinstance(one, dict | list):
            inner = [*one.values()] if isinstance(one, dict) else one
            rows = [it for it in inner if isinstance(it, dict | list)]
            if len(rows) >= _LEAST_ROWS:
                yield from (json.dumps(it) for it in rows)
            waiting += inner


def _parts_of(text: str, depth: int) -> Iterator[str]:
    """Blocks and lines of a text, and what stands behind a key in them."""
    if packed := _unpacked_text(text):
        yield from _texts_of_data(packed, depth + 1)
        return
    yield from re.split(r"\n\s*\n", text)
    for line in text.splitlines():
        begins = re.search(r"[{\[]|\t", line)
        if begins is None:
            continue
        rest = line[begins.start() :].strip().rstrip("\"'`,;")
        yield rest
        if "\\n" in rest:
            yield _unescaped(rest)


def _is_document(text: str) -> bool:
    """Whether a text has its values filled in: JSON, or rows of which several have a number."""
    if len(text) > _LARGEST_TEXT:
        return False
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and lines[0].lstrip()[:1] in ("{", "["):
        leaves = _leaves(text)
        if leaves is None:
            each = [_leaves(line) for line in lines]
            leaves = None if None in each else sum(it or 0 for it in each)
        if leaves is not None:
            return leaves >= _LEAST_LEAVES
    numbered = [line for line in lines if re.search(r"\b\d", line)]
    has_rows = len(lines) >= 2 and len(numbered) >= 2
    return has_rows and len(_WORD.findall(text)) >= _LEAST_WORDS and not _GAP.search(text)


def _leaves(text: str) -> int | None:
    """How many values stand in a document of JSON; None where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict | list):
        return None
    count = 0
    waiting: list[object] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        else:
            count += 1
    return count


# What is packed


def _unpacked_text(text: str) -> bytes | None:
    """What a text of nothing but letters and digits stands for, where that is readable."""
    bare = _SPACE.sub("", text)
    if len(bare) < _LEAST_PACKED or len(bare) > _LARGEST_TEXT or not bare.isascii():
        return None
    makers = list[Callable[[str], bytes]]()
    if _HEX.fullmatch(bare):
        makers.append(binascii.unhexlify)
    if _BASE.fullmatch(bare) and len(bare) % 4 == 0:
        makers.append(lambda it: base64.b64decode(it, altchars=b"-_" if "-" in it else None))
    if len(bare) == len(text.strip()):
        makers.append(base64.b85decode)
    for make in makers:
        try:
            found = make(bare)
        except (ValueError, binascii.Error):
            continue
        if _inflated(found) is not None or _is_readable(found):
            return found
    return None


def _is_readable(content: bytes) -> bool:
    try:
        return content.decode("utf-8").replace("\n", "").replace("\t", "").isprintable()
    except UnicodeDecodeError:
        return False


def _inflated(content: bytes) -> bytes | None:
    """What was compressed, up to a bound; None where nothing was."""
    try:
        if content[:2] == b"\x1f\x8b":
            return zlib.decompressobj(wbits=31).decompress(content, _LARGEST_TEXT)
        if content[:1] == b"\x78":
            return zlib.decompressobj().decompress(content, _LARGEST_TEXT)
        if content[:3] == b"BZh":
            return bz2.BZ2Decompressor().decompress(content, _LARGEST_TEXT)
        if content[:6] == b"\xfd7zXZ\x00":
            return lzma.LZMADecompressor().decompress(content, _LARGEST_TEXT)
    except (zlib.error, OSError, lzma.LZMAError, EOFError):
        return None
    return None
