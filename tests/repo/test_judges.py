"""The files behind a command that judges, found in texts alone."""

from __future__ import annotations

from ralphloop.core.sides import Side
from ralphloop.repo.judges import Judge, place_of

FILES = {
    "verify.sh": "python3 accept/run.py > out\ndiff out answer.txt\n",
    "accept/run.py": "import compare\nimport shop\n",
    "accept/compare.py": "",
    "answer.txt": "6\n",
    "rates.json": "{}",
    "shop.py": "open('rates.json')\n",
    "checkout.py": "",
    "Makefile": "include rules.mk\n\naccept:\n\t@$(JUDGE)\n",
    "rules.mk": "JUDGE = true\n",
    "judge.py": "import shop\nimport filecmp\n",
    "accept/test_shop.py": "import shop\nfrom same import same\n",
    "same.py": "def same(one, other):\n    assert one == other\n",
    "tests/test_shop.py": "import shop\nimport checkout\nopen('tests/data/cart.json')\n",
    "tests/data/cart.json": "{}",
}


def judge(*argv: str) -> Judge:
    """A command in the small project."""
    return Judge(argv, lambda path: FILES.get(path, ""), FILES)


def side(path: str, *argv: str) -> Side:
    """Whose word a changed file is for that command."""

    def naming(name: str) -> frozenset[str]:
        return frozenset(file for file, text in FILES.items() if name in text)

    return place_of(path, existed=path in FILES, judge=judge(*argv), naming=naming)


def test_a_script_has_behind_it_what_it_runs_reads_and_imports() -> None:
    """Two steps away too; the product that it runs is none of it."""
    found = judge("sh", "verify.sh").files
    assert {"verify.sh", "accept/run.py", "accept/compare.py", "answer.txt"} <= found
    assert "shop.py" not in found


def test_a_recipe_has_behind_it_what_it_includes() -> None:
    """Its variables may be all that it runs."""
    assert "rules.mk" in judge("make", "accept").files
    assert side("rules.mk", "make", "accept") is Side.PERSON


def test_data_is_whose_it_is_by_who_names_it() -> None:
    """An expected output is the person's, a table of the product is not."""
    assert side("answer.txt", "sh", "verify.sh") is Side.PERSON
    assert side("rates.json", "sh", "verify.sh") is Side.PRODUCT
    assert side("tests/data/cart.json", "pytest", "tests/test_shop.py") is Side.PERSON


def test_a_module_is_the_products_however_much_its_name_begins_like_a_check() -> None:
    """`checkout` is no check; settings and tests are told by their names."""
    assert side("checkout.py", "pytest", "tests/test_shop.py") is Side.PRODUCT
    assert side("conftest.py", "pytest") is Side.AGENT
    assert side(".npmrc", "npm", "test") is Side.AGENT


def test_a_new_file_with_the_name_of_a_program_that_judges_use_is_no_product() -> None:
    """A `diff` or a `pathlib.py` of one's own speaks for the verify; other new files are work."""
    assert side("bin/diff", "sh", "verify.sh") is Side.AGENT
    assert side("accept/json.py", "python3", "-c", "import json, shop") is Side.AGENT
    assert side("accept/json.py", "sh", "verify.sh") is Side.PRODUCT
    assert side("bin/refund", "sh", "-c", "bin/refund") is Side.PRODUCT
    assert side("refund.py", "python3", "-c", "import refund") is Side.PRODUCT


def test_what_is_loaded_before_a_judge_speaks_for_it() -> None:
    """A package in the place of a module, of a helper, of the library, or around the judges."""
    assert side("judge/__init__.py", "python", "-m", "judge") is Side.AGENT
    assert side("filecmp/__init__.py", "python", "judge.py") is Side.AGENT
    assert side("same/__init__.py", "pytest", "accept/test_shop.py") is Side.AGENT
    assert side("accept/__init__.py", "pytest", "accept/test_shop.py") is Side.AGENT
    assert side("accept/shop.py", "pytest", "accept/test_shop.py") is Side.AGENT


def test_a_new_package_of_the_product_is_work() -> None:
    """Also where a module of the product becomes one, or a file bears the name of no target."""
    assert side("shop/__init__.py", "pytest", "accept/test_shop.py") is Side.PRODUCT
    assert side("cart/__init__.py", "python", "-m", "judge") is Side.PRODUCT
    assert side("accepted", "make", "accept") is Side.PRODUCT
    assert side("accept", "make", "accept") is Side.AGENT
