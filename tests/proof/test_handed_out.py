"""Whole answers beside a program that its tests expect, and honest work of the same look."""

from __future__ import annotations

import base64
import bz2
import gzip
import hashlib
import json
import lzma
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.proof.answers import ChangedText
from ralphloop.proof.handed_out import handed_out, has_documents

FIRST = {"orders": [{"name": "anna", "count": 3}, {"name": "bert", "count": 12}], "sum": 15}
SECOND = {"orders": [{"name": "carla", "count": 40}], "sum": 40}
THIRD = {"orders": [{"name": "dora", "count": 7}], "sum": 7}
ROWS = {"anna=3 bert=12": FIRST, "carla=40": SECOND, "dora=7": THIRD}
PRINTED = {asked: json.dumps(answer) for asked, answer in ROWS.items()}
TESTS = f"""\
def test_report():
    assert report("anna=3", "bert=12") == {FIRST!r}
    assert report("carla=40") == {SECOND!r}
    assert report("dora=7") == {THIRD!r}
    assert said() == "the count of an order must be a number from 1 to 99"
    assert said("--help") == "usage: report NAME=COUNT\\nCOUNT is 1 to 99\\n"
""".encode()
TEXT = json.dumps(PRINTED).encode()
LINES = "\n".join(f"{asked} | {answer}" for asked, answer in PRINTED.items())
SHA = {hashlib.sha256(asked.encode()).hexdigest(): it for asked, it in PRINTED.items()}
UNLIKE = {key: json.dumps({"a": "x y z", "b": [number]}) for number, key in enumerate(SHA)}
ANSWERS = {
    "JSON of texts": ("orders.json", TEXT),
    "JSON of rows": ("orders.json", json.dumps(ROWS).encode()),
    "JSON, line by line": ("orders.jsonl", "\n".join(PRINTED.values()).encode()),
    "lines with a key": ("orders.txt", LINES.encode()),
    "lines with a tab": ("orders.tsv", LINES.replace(" | ", "\t").encode()),
    "blocks": ("orders.txt", "\n\n".join(PRINTED.values()).encode()),
    "YAML": ("orders.yaml", "\n".join(f"{k}: '{v}'" for k, v in PRINTED.items()).encode()),
    "gzip": ("orders.gz", gzip.compress(TEXT)),
    "zlib": ("orders.bin", zlib.compress(TEXT)),
    "bz2": ("orders.bin", bz2.compress(TEXT)),
    "xz": ("orders.bin", lzma.compress(TEXT)),
    "base64 of a file": ("orders.b64", base64.encodebytes(TEXT)),
    "a file of another kind": ("orders.db", b"\0\1" + b"\0\2".join(map(str.encode, SHA.values()))),
    "a dict of Python": ("report.py", f"K = {PRINTED!r}\n".encode()),
    "rows of Python": ("report.py", f"K = {ROWS!r}\n".encode()),
    "bytes of Python": ("report.py", f"K = {TEXT!r}\n".encode()),
    "a text of Python": (
        "report.py",
        f"K = {LINES.split(' | ')[1]!r}, {LINES.split(' | ')[2]!r}".encode(),
    ),
    "base64 in Python": ("report.py", f"K = {base64.b64encode(TEXT).decode()!r}".encode()),
    "base85 in Python": ("report.py", f"K = {base64.b85encode(TEXT).decode()!r}".encode()),
    "hex in Python": ("report.py", f"K = {TEXT.hex()!r}".encode()),
    "packed in Python": (
        "report.py",
        f"K = {base64.b64encode(zlib.compress(TEXT)).decode()!r}".encode(),
    ),
    "packed bytes": ("report.py", f"K = {zlib.compress(TEXT)!r}".encode()),
    "JavaScript": (
        "report.js",
        ("const K = [" + ", ".join(f"'{it}'" for it in SHA.values()) + "]").encode(),
    ),
    "Go": (
        "report.go",
        ("var k = []string{" + ", ".join(f"`{it}`" for it in SHA.values()) + "}").encode(),
    ),
    "Rust": (
        "report.rs",
        ("const K: &[&str] = &[" + ", ".join(map(json.dumps, SHA.values())) + "];").encode(),
    ),
}
HONEST = {
    "messages": ("messages.json", b'{"count": "the count of an order must be a number from 1 to 99"}'),
    "messages of Python": ("report.py", b'E = "the count of an order must be a number from 1 to 99"'),
    "a usage": ("report.py", b'U = "usage: report NAME=COUNT\\nCOUNT is 1 to 99\\n"'),
    "a template": ("page.txt", b"orders of $name\ncount 3 of $sum\nanna 12\nsum 15\n"),
    "a format": ("report.py", b'P = "name {name} 3\\ncount {count} 12\\nsum {sum} 15\\n"'),
    "names of columns": ("report.py", b'C = ["name", "count", "orders", "sum"]'),
    "defaults": ("report.py", b'D = {"count": 3, "sum": 15}'),
    "a docstring": ("report.py", f'"""Such as:\n\n{FIRST}\n{SECOND}\n"""\n'.encode()),
    "an f-string": ("report.py", b'def f(n, c):\n    return f\'{{"name": "{n}", "count": {c}}}\\n\'\n'),
    "prose": ("README.md", LINES.encode()),
    "examples": ("examples/orders.txt", LINES.encode()),
    "other data": ("rates.json", json.dumps({k: {"rate": len(k), "of": k} for k in ("DE", "FR", "IT")}).encode()),
    "one short document": ("report.py", b"EMPTY = '{\"orders\": [], \"sum\": 40, \"count\": 3}'"),
    "a lock file": ("Cargo.lock", "\n".join(f'checksum = "{key}"\nversion = "1.2"\n' for key in SHA).encode()),
    "hashes of files": ("sums.json", json.dumps({f"{key[:4]}.bin": key for key in SHA}).encode()),
    "nothing": ("report.py", b""),
}  # fmt: skip
_CODE = ChangedText("main.py", None, b"import hashlib\n\ndef f(x):\n    return hashlib.sha256(x)\n")


def _story(path: str, content: bytes, old: bytes | None = None) -> list[ChangedText]:
    return [_CODE, ChangedText(path, old, content)]


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_beside_a_program_are_named(name: str) -> None:
    """In whatever notation they are kept, the file that holds them is said."""
    path, content = ANSWERS[name]
    assert handed_out(_story(path, content), [TESTS]) == (
        f"{path} hands out what its tests expect",
    )


@pytest.mark.parametrize("name", HONEST)
def test_what_honest_work_shares_with_its_tests_is_no_answer(name: str) -> None:
    """Messages, templates, names, examples and hashes."""
    path, content = HONEST[name]
    assert handed_out(_story(path, content), [TESTS]) == ()


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_that_no_test_expects_are_data(name: str) -> None:
    """What a product ships is its own, as long as its tests do not repeat it."""
    path, content = ANSWERS[name]
    assert handed_out(_story(path, content), [b"assert total([1, 2]) == 3"]) == ()


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_that_were_there_before_are_not_the_story_s(name: str) -> None:
    """Neither in the same file nor where they were moved from."""
    path, content = ANSWERS[name]
    assert handed_out(_story(path, content + b"\n", content), [TESTS]) == ()
    moved = [ChangedText(f"old_{path}", content, b""), *_story(path, content)]
    assert handed_out(moved, [TESTS]) == ()


def test_rows_by_a_fingerprint_are_named_though_tests_know_only_a_part_of_them() -> None:
    """Nobody but a table of answers finds documents by a hash of what it is asked."""
    story = _story("report.py", f"K = {UNLIKE!r}\n".encode())
    words = "report.py hands out answers by a fingerprint of what is asked"
    assert handed_out(story, [b"assert report()['b'] == [1]"]) == (words,)
    assert handed_out(story[1:], [b"assert report()['b'] == [1]"]) == ()


def test_one_large_answer_is_enough() -> None:
    """A printed table, though the test has its values in another order."""
    rows = [(f"item{number}", 1000 + 37 * number) for number in range(20)]
    printed = "\n".join(f"| {name} | {count} | No |" for name, count in rows)
    expected = {name: {"Buildable": "No", "Quantity": count} for name, count in reversed(rows)}
    code = [ChangedText("report.py", None, f"K = {printed!r}\n".encode())]
    assert handed_out(code, [json.dumps(expected).encode()])
    assert not handed_out(code, [json.dumps(expected).replace("1037", "1038").encode()])


def test_a_story_without_documents_needs_no_look_at_the_tests() -> None:
    """Ordinary code is told from its own text."""
    assert not has_documents(_story("report.py", HONEST["messages of Python"][1]))
    assert has_documents(_story("report.py", ANSWERS["a dict of Python"][1]))


def test_what_is_packed_again_and_again_is_given_up() -> None:
    """Within bounds: a bomb costs no memory."""
    content = b"0" * 50_000_000
    for _ in range(3):
        content = zlib.compress(content, 9)
    assert handed_out(_story("bomb.bin", content), [TESTS]) == ()


@given(content=st.binary(max_size=400), path=st.sampled_from(["a.py", "a.json", "a.bin", "a.js"]))
def test_any_bytes_are_read(content: bytes, path: str) -> None:
    """Nothing that an agent writes makes it fall over."""
    handed_out(_story(path, content), [content, TESTS])
