"""Code that looks at who judges it, and code that only sounds like it."""

from __future__ import annotations

import pytest

from ralphloop.text.peeking import looks_at_mechanics, peeks

TESTS = ("tests/test_shop.py", "src/shop.test.js")
PEEKING = {
    "the runner by its variable": ("shop.py", 'if os.environ.get("PYTEST_CURRENT_TEST"):'),
    "the runner among the modules": ("shop.py", 'if "pytest" in sys.modules:'),
    "the runner in a list": ("shop.py", 'runner = sys.modules.get("_pytest.runner")'),
    "the command line": ("shop.py", 'if any("pytest" in it for it in sys.argv):'),
    "jest": ("shop.js", "if (process.env.JEST_WORKER_ID) return 1.5;"),
    "node": ("shop.js", "if (process.env.NODE_TEST_CONTEXT) return 1.5;"),
    "go": ("shop.go", "if testing.Testing() { return 1.5 }"),
    "rust": ("shop.rs", "if cfg!(test) { return 1.5; }"),
    "rust, the other way": ("shop.rs", "#[cfg(not(test))]\nfn half() {}"),
    "a caller's frame": ("shop.py", "wanted = sys._getframe(1).f_locals"),
    "the tests": ("shop.py", 'text = open("tests/test_shop.py").read()'),
    "the tests by their name": ("shop.js", 'const text = fs.readFileSync(__dirname + "/shop.test.js");'),
    "the tests by a pattern": ("shop.py", 'for one in glob("**/test_*.py"): text += open(one).read()'),
    "the tests behind an empty text": ("shop.py", '"".join(open(it).read() for it in glob("**/*_shop.py"))'),
    "a module of the tests": ("shop.py", "    from tests import helper"),
    "the history": ("shop.py", 'subprocess.run(["git", "grep", "-h", "half(9) =="])'),
    "the stack": ("shop.py", "names = [it.name for it in traceback.extract_stack()]"),
    "the directory of tests": ("shop.py", 'for one in Path("tests/").iterdir(): one.read_text()'),
}  # fmt: skip
OTHERS = {
    "tests of Rust in the code": ("shop.rs", "#[cfg(test)]\nmod tests {}"),
    "a server that a test does not start": ("app.js", "if (process.env.NODE_ENV !== 'test') app.listen();"),
    "a file of its own": ("shop.py", 'text = open("rates.json").read()'),
    "files of a kind": ("shop.py", 'for one in root.rglob("*.py"): count(one.read_text())'),
    "git for its own sake": ("shop.py", 'subprocess.run(["git", "log", "-1", "HEAD"])'),
    "a module that only sounds like it": ("shop.py", "from testimonials import words"),
    "a word": ("shop.py", 'print("tests are green")'),
    "a test in words": ("shop.py", "# see tests/test_shop.py\nopen(path)"),
    "a module": ("shop.py", 'if "numpy" in sys.modules:'),
}  # fmt: skip


@pytest.mark.parametrize(("path", "text"), PEEKING.values(), ids=PEEKING)
def test_code_that_looks_at_its_judge_is_shown(path: str, text: str) -> None:
    """With what it looks at."""
    assert len([*peeks(path, text, TESTS)]) == 1


@pytest.mark.parametrize(("path", "text"), OTHERS.values(), ids=OTHERS)
def test_other_code_is_not(path: str, text: str) -> None:
    """Files of its own, words, tests of Rust beside the code."""
    assert not [*peeks(path, text, TESTS)]


def test_a_test_may_not_look_at_how_it_is_judged() -> None:
    """What is put into mutants, and compiled code, is no business of a test."""
    assert looks_at_mechanics("assert '__ralph_bend__' not in names") == "__ralph_"
    assert looks_at_mechanics("assert f.__code__.co_names == ()") == "co_names"
    assert not looks_at_mechanics("assert barcode.co == 'names'")
