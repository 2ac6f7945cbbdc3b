"""Old code with stubs for what only the new code defines."""

from __future__ import annotations

import pytest

from ralphloop.text.stubs import MARK, with_stubs, words_of_stub

TAG = "_a9f3"
OLD = b"class Cart:\n    def total(self):\n        return 1\n\n\ndef price():\n    return 2\n"
NEW = OLD.replace(b"        return 1\n", b"        return 1\n\n    @property\n    def size(self):\n        return 3\n") + (
    b"\n\nMOST = 5\n\n\nclass TooMuch(Exception):\n    pass\n\n\ndef tax():\n    return 4\n"
    b"\n\ndef rate(land, year=MOST):\n    'What a land takes.'\n    return 19\n"
    b"\n\ndef odd(land=MOST + 1):\n    return 19\n"
)  # fmt: skip


def names() -> dict[str, object]:
    """What the stubbed module defines."""
    text = with_stubs(OLD, NEW, TAG)
    assert text is not None
    found: dict[str, object] = {"__name__": "shop"}
    exec(compile(text, "shop.py", "exec"), found)
    return found


@pytest.mark.parametrize(
    "used", ["tax()", "odd()", "rate('de')", "MOST == 5", "TooMuch()", "Cart().size", "MOST + 1"]
)
def test_a_stub_raises_as_soon_as_it_is_used(used: str) -> None:
    """With the tag of the run, by which its error is known."""
    with pytest.raises(BaseException, match=TAG) as raised:
        eval(used, names())
    assert raised.type.__name__ == TAG
    assert not isinstance(raised.value, Exception)


@pytest.mark.parametrize("raised", [f"store.cart.{TAG}: {TAG}: total", f"{TAG}: total"])
def test_what_a_stub_says_is_told_once(raised: str) -> None:
    """A runner writes the class of an error before its words, with its module; both are ours."""
    assert words_of_stub(f"E   {raised}", TAG) == f"E   {MARK}: total"


def test_nothing_of_a_stub_has_a_name_that_could_be_looked_for() -> None:
    """Two runs have no name in common but those of the code itself."""
    other = with_stubs(OLD, NEW, "_77c1")
    assert other is not None
    found: dict[str, object] = {"__name__": "shop"}
    exec(compile(other, "shop.py", "exec"), found)
    own = {"Cart", "price", "MOST", "TooMuch", "tax", "rate", "odd", "__name__", "__builtins__"}
    assert found.keys() & names().keys() == own
    assert b"stub" not in other.lower()


@pytest.mark.parametrize(
    "asked",
    [
        "callable(tax)",
        "MOST is not None",
        "hasattr(Cart, 'size')",
        "price() == 2",
        "'takes' in rate.__doc__",
        "rate.__code__.co_varnames == ('land', 'year')",
        "'rate' in repr(rate)",
    ],
)
def test_to_be_there_is_no_use(asked: str) -> None:
    """So a test that asks no more passes, and proves nothing; what was there is as it was."""
    assert eval(asked, names())


def test_where_nothing_is_missing_there_is_nothing_to_stub() -> None:
    """Nor where it cannot be read; a file that is new is all stubs."""
    assert with_stubs(OLD, OLD, TAG) is None
    assert with_stubs(OLD, b"def (", TAG) is None
    assert b'tax = _a9f3function("tax")' in (with_stubs(None, NEW, TAG) or b"")


def test_who_reads_the_code_finds_it_alike() -> None:
    """The text of a function is no behaviour: a test that looks for it proves nothing."""
    assert b"def rate(land, year=MOST):" in (with_stubs(OLD, NEW, TAG) or b"")
