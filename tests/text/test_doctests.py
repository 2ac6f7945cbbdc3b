"""The examples of a Python file, crossed with another version of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.text.doctests import crossed, examples

OLD = b'''\
"""A module."""
import math


class A:
    def double(self, x):
        """Twice.

        >>> A().double(2)
        4
        """
        return 2 * x


if math:
    def halve(x):
        """
        >>> halve(4)
        2
        """
        return x // 2
'''


def test_only_what_an_example_says_is_an_example() -> None:
    """Words around it and its margin do not matter; what it expects does."""
    assert examples("Words.\n\n    >>> f(1)\n    2\n\nMore.") == (">>> f(1)\n2",)
    assert examples(">>> f(\n... 1)\n2\n>>> g()\n") == (">>> f(\n... 1)\n2", ">>> g()")
    assert examples("no example > here") == ()


def test_an_edited_example_is_exchanged_and_nothing_else() -> None:
    """New code with the old example, old code with the new one; the other docstring stays."""
    new = OLD.replace(b"        4\n", b"        5\n").replace(b"2 * x", b"2 * x + 1")
    both = crossed(OLD, new)
    assert both is not None
    assert both.new_code == OLD.replace(b"2 * x", b"2 * x + 1")
    assert both.old_code == OLD.replace(b"        4\n", b"        5\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Twice.", b"Twice as much, in\n        other words."),
        (b"2 * x", b"x + x"),
        (b"import math\n", b"import math\n\n\ndef new():\n    '''\n    >>> new()\n    '''\n"),
    ],
    ids=["words", "code", "another definition"],
)
def test_what_is_no_change_of_an_example_is_not_crossed(old: bytes, new: bytes) -> None:
    """Prose, code and examples of something new."""
    assert crossed(OLD, OLD.replace(old, new)) is None


def test_a_docstring_that_went_is_brought_back_and_one_that_came_is_added() -> None:
    """Both sides can be read by Python, with the examples where they belong."""
    start, end = OLD.index(b'        """Twice'), OLD.index(b"        return 2")
    new = OLD[:start] + OLD[end:]
    both = crossed(OLD, new)
    assert both is not None
    for text, has_it in ((both.new_code, True), (both.old_code, False)):
        compile(text, "x", "exec")
        assert (b"A().double(2)" in text) is has_it


@pytest.mark.parametrize(
    "start", ["def f(x): return x", "def f(\n  x): return x", "def f(x):\n\treturn x"]
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "marked"])
def test_an_example_fits_into_whatever_there_is(start: str, mark: bytes) -> None:
    """A body on the line of its definition, tabs and a byte order mark included."""
    old = (
        mark
        + b'"""\n>>> 1\n1\n"""\ndef f(x):\n    """\n    >>> f(1)\n    1\n    """\n    return x\n'
    )
    both = crossed(old, mark + start.encode() + b"\n")
    assert both is not None
    for text in both:
        compile(text, "x", "exec")
    assert b">>> f(1)" in both.new_code
    assert b">>> 1" in both.new_code


def test_an_example_that_went_with_its_code_has_no_place() -> None:
    """It is a difference, and there is nothing to bring it back to."""
    new = OLD[: OLD.index(b"if math")]
    both = crossed(OLD, new)
    assert both is not None
    assert (both.new_code, both.old_code) == (new, OLD)


def test_what_python_cannot_read_is_an_error() -> None:
    """Whoever asks has to say that it could not be compared."""
    for broken in (b"def f(:\n", b"x = '\0'\n", b"\xff"):
        with pytest.raises(ValueError):
            crossed(OLD, broken)


_LINES = st.lists(
    st.sampled_from(
        ['    """', "    >>> f(1)", "    2", "def f(x):", "    return x", "é = 'ü'", ""]
    )
)


@given(_LINES, _LINES)
def test_whatever_is_crossed_is_python_again(old: list[str], new: list[str]) -> None:
    """Each crossed version can be read, and crossing what is the same finds nothing."""
    texts = ["\n".join(lines).encode() for lines in (old, new)]
    try:
        both = crossed(*texts)
    except ValueError:
        return
    assert crossed(texts[0], texts[0]) is None
    for text in both or ():
        compile(text, "x", "exec")
