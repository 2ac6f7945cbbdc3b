"""Names that came with a change, and tests that read the code instead of running it."""

from __future__ import annotations

import pytest

from ralphloop.text.definitions import added_lines, added_names, reads_text_of, starts_programs

NEW = {
    "shop.py": ("RATE = 2\n\n\nclass Cart:\n    def size(self): ...\n", {"RATE", "Cart", "size"}),
    "shop.js": (
        "const plus = (x) => x;\nexports.minus = 1;\nclass Cart {\n  size(all) {\n    return 1;\n  }\n}\n",
        {"plus", "minus", "Cart", "size"},
    ),
    "shop.go": (
        "type Cart struct{}\n\nfunc (c *Cart) Size(x int) int { return x }\n\nfunc Plus(x int) int { return x }\n",
        {"Cart", "Size", "Plus"},
    ),
    "shop.rs": (
        "pub struct Cart;\n\npub fn plus(x: i64) -> i64 { x }\n",
        {"Cart", "plus"},
    ),
    "Shop.java": (
        "public class Shop {\n  public static int plus(int x) {\n    return x;\n  }\n}\n",
        {"Shop", "plus"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", NEW)
def test_what_a_text_defines_is_known_in_each_language(path: str) -> None:
    """Also methods; what was a word of the file before is not new."""
    text, names = NEW[path]
    assert names <= added_names(path, None, text)
    assert not added_names(path, text, text)


def test_a_branch_is_no_definition() -> None:
    """What stands before a brace is not always a function."""
    assert not added_names("a.js", None, "if (x) {\n}\nfor (y of z) {\n}\n")


@pytest.mark.parametrize(
    ("test", "is_reading"),
    [
        ("assert 'x' in open(shop.__file__).read()", True),
        ("assert 'x' in inspect.getsource(shop.total)", True),
        ('readFileSync("shop.py")', True),
        ("subprocess.run([sys.executable, 'shop.py'])", False),
        ("open('out.txt').read()", False),
    ],
)
def test_who_reads_the_code_is_told_from_who_runs_it(test: str, is_reading: bool) -> None:
    """A program that is started by its name is run."""
    assert reads_text_of(test, "src/shop.py") == is_reading


def test_lines_that_are_new_are_told_by_their_text() -> None:
    """Wherever they stand."""
    assert added_lines("a\nb\n", "b\nc\na\n") == "c"


@pytest.mark.parametrize(
    ("test", "is_outside"),
    [
        ("ended = subprocess.run([sys.executable, '-m', 'shop'])", True),
        ("const { spawnSync } = require('node:child_process')", True),
        ('out, err := exec.Command("go", "run", ".").Output()', True),
        ("result = CliRunner().invoke(cli, ['count'])", True),
        ("assert shop.run('count') == 3  # a subprocessor", False),
    ],
)
def test_who_starts_programs_is_told_from_who_calls(test: str, is_outside: bool) -> None:
    """By the words that start one, in each language."""
    assert starts_programs(test) == is_outside
