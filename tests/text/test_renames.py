"""What a text calls code that was renamed."""

from __future__ import annotations

import pytest

from ralphloop.text.renames import (
    RenamedFile,
    renamed_files,
    renamed_names,
    stands_in,
    with_new_modules,
    with_new_names,
)

TEXT = "def total(prices):\n    return sum(prices)\n\n\ndef mean(prices):\n    return 1\n"


@pytest.mark.parametrize(
    "gone, came, said, becomes",
    [
        (
            "shop/cart.py",
            "shop/basket.py",
            "from shop.cart import total",
            "from shop.basket import total",
        ),
        ("shop/cart.py", "shop/basket.py", "from shop import cart", "from shop import basket"),
        (
            "src/shop/cart.py",
            "src/shop/core/cart.py",
            "import shop.cart as c",
            "import shop.core.cart as c",
        ),
        ("lib/cart.js", "lib/basket.js", "require('../lib/cart')", "require('../lib/basket')"),
        ("src/cart.rs", "src/basket.rs", "use crate::cart::total;", "use crate::basket::total;"),
        (
            "web/index.js",
            "web/page.js",
            "require('./index.js').index(index)",
            "require('./page.js').index(index)",
        ),
        ("web/index.js", "site/page.js", "require('./index.js')", "require('./index.js')"),
        ("shop/__init__.py", "store/__init__.py", "import shop", "import store"),
        ("cart.py", "basket.py", "cartography = cart.total", "cartography = basket.total"),
    ],
)
def test_a_renamed_file_is_called_by_its_new_name(
    gone: str, came: str, said: str, becomes: str
) -> None:
    """As a module, as a path and as the word that differs; never inside of another word."""
    renamed = renamed_names(renamed_files({gone: TEXT}, {came: TEXT}))
    assert with_new_names(said, renamed) == becomes


@pytest.mark.parametrize(
    "path, said, becomes",
    [
        (
            "src/{}.ts",
            'import { total } from "../src/total";\ntest("total", () => total(3));',
            'import { total } from "../src/cart";\ntest("total", () => total(3));',
        ),
        (
            "src/{}.js",
            'import total from "../src/total.js";\ntotal.each(3);',
            'import total from "../src/cart.js";\ntotal.each(3);',
        ),
        ("{}.py", "from total import total\n\ntotal([3])", "from cart import total\n\ntotal([3])"),
        ("{}.py", "import total\n\ntotal.total([3])", "import cart\n\ncart.total([3])"),
    ],
)
def test_what_is_called_like_its_file_keeps_its_name(path: str, said: str, becomes: str) -> None:
    """A function has the name of its file in many projects; only the file got another."""
    old, new = path.format("total"), path.format("cart")
    renamed = renamed_names(renamed_files({old: TEXT}, {new: TEXT}), {new: TEXT})
    assert with_new_names(said, renamed) == becomes


def test_of_several_files_each_is_the_one_it_is_most_like() -> None:
    """What is like nothing that came was not renamed."""
    gone = {"a.py": "one\ntwo\nthree\n", "b.py": "four\nfive\nsix\n", "c.py": "other\n"}
    came = {"x.py": "four\nfive\nseven\n", "y.py": "one\ntwo\n"}
    assert dict(renamed_files(gone, came)) == {"a.py": "y.py", "b.py": "x.py"}


def test_nothing_is_renamed_where_the_kinds_differ() -> None:
    """A page that came is not the module that went, beside others."""
    gone = {"a.py": "one\n", "b.py": "two\n"}
    assert renamed_files(gone, {"a.md": "one\n"}) == []


def test_a_piece_that_was_moved_is_known_by_its_lines() -> None:
    """In another file and another depth; a changed line makes it another."""
    moved = "    def total(prices):\n\n        return sum(prices)\n"
    assert stands_in(moved, ["x = 1\n", TEXT])
    assert not stands_in(moved.replace("sum", "max"), [TEXT])


def test_tests_of_rust_move_with_the_file_they_stand_in() -> None:
    """By the path of their module, examples as well; those of others keep their names."""
    files = [
        RenamedFile("src/money.rs", "src/shop/cash.rs"),
        RenamedFile("src/a/mod.rs", "src/b.rs"),
    ]
    moved = {
        "src/lib.rs::money::tests::cents": "src/lib.rs::shop::cash::tests::cents",
        "src/lib.rs::a::tests::one": "src/lib.rs::b::tests::one",
        "calc (doc)::src/money.rs - money::cents": "calc (doc)::src/shop/cash.rs - shop::cash::cents",
        "src/lib.rs::moneybox::tests::cents": "src/lib.rs::moneybox::tests::cents",
        "tests/money.rs::cents": "tests/money.rs::cents",
    }
    assert {name: with_new_modules(name, files) for name in moved} == moved
    other = [RenamedFile("build/money.rs", "build/cash.rs"), RenamedFile("src/a.py", "src/b.py")]
    assert with_new_modules("src/lib.rs::money::a", other) == "src/lib.rs::money::a"
