"""The same in other languages: a test that looks makes a story verified, one that calls does not."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import sys
from pathlib import Path

import pytest

from tests.loop.guards import told
from tests.loop.projects import sandbox, story

_IGNORED = ".ralph/\n.ralph-session.json\n.ralph-circuit-state.json\ntarget/\n"
_AGENT = """
works = json.loads((STATE / "works.json").read_text())
for path, text in works[STORY].items():
    before = pathlib.Path(path).read_text() if os.path.exists(path) else ""
    write(path, before + text)
done(words=f"{STORY} is done.")
"""
_NODE = {
    ".gitignore": _IGNORED,
    "package.json": '{"name": "calc", "version": "1.0.0", "scripts": {"test": "node --test"}}\n',
    "calc.js": "exports.double = (x) => 2 * x;\n",
    "test/calc.test.js": """\
const { test } = require("node:test");
const assert = require("node:assert");
const calc = require("../calc.js");
test("double", () => { assert.strictEqual(calc.double(2), 4); });
""",
}
_CARGO = {
    ".gitignore": _IGNORED,
    "Cargo.toml": '[package]\nname = "calc"\nversion = "1.0.0"\nedition = "2021"\n',
    "Cargo.lock": 'version = 3\n\n[[package]]\nname = "calc"\nversion = "1.0.0"\n',
    "src/lib.rs": "pub fn double(x: i64) -> i64 { 2 * x }\n",
    "tests/calc.rs": "use calc::*;\n\n#[test]\nfn doubles() {\n    assert_eq!(double(2), 4);\n}\n",
}


def _grades(
    tmp_path: Path, files: dict[str, str], check: list[str], works: dict[str, dict[str, str]]
) -> dict[str, str]:
    box = sandbox(
        tmp_path,
        _AGENT,
        stories=[story(name, f"Add {name}") for name in works],
        checks=[check],
        files=files,
        toml='[proof]\nexperiments = "always"\nask_for_tests = "off"\n',
    )
    (box.state / "works.json").write_text(json.dumps(works))
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)  # of whoever installed the toolchain
    box.env |= {"RUSTUP_HOME": f"{home}/.rustup", "CARGO_HOME": f"{home}/.cargo"}
    done = box.run("--max-iterations", str(2 * len(works)), timeout=600)
    found = {it.story.id: str(it.verdict.grade) for it in box.records() if it.story is not None}
    assert found, told(done)
    assert box.git("status", "--porcelain", "--", ".", ":!progress.txt") == ""
    return found


def _of_node(code: str, tests: str) -> dict[str, str]:
    return {"calc.js": f"{code}\n", "test/calc.test.js": f"{tests}\n"}


def _of_cargo(code: str, tests: str) -> dict[str, str]:
    return {"src/lib.rs": f"{code}\n", "tests/calc.rs": f"\n#[test]\n{tests}\n"}


@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript_that_is_looked_at_and_javascript_that_is_called(tmp_path: Path) -> None:
    """A missing name fails both tests without the story, and only one of them proves it."""
    works = {
        "looks": _of_node(
            "exports.plus = (x) => x + 3;",
            'test("plus", () => { assert.strictEqual(calc.plus(1), 4); });',
        ),
        "calls": _of_node(
            "exports.minus = (x) => x - 3;",
            'test("minus", () => { calc.minus(1); });',
        ),
        "off": _of_node(
            "const ON = false;\nexports.slug = (x) => { if (ON) { return x.trim(); } return x; };",
            'test("slug", () => { assert.strictEqual(calc.slug("a"), "a"); });',
        ),
        "table": _of_node(
            "const THIRDS = { 3: 1.5, 5: 2.5 };\nexports.third = (x) => THIRDS[x];",
            'test("third", () => { assert.strictEqual(calc.third(3), 1.5);'
            " assert.strictEqual(calc.third(5), 2.5); });",
        ),
        "words": _of_node(
            "exports.fifth = (x) => x / 5;",
            'test("fifth", () => { let ok = true;'
            " try { calc.fifth(3); } catch (e) { ok = false; } assert.ok(ok); });",
        ),
    }
    found = _grades(tmp_path, _NODE, ["node", "--test"], works)
    lies = dict.fromkeys(("calls", "off", "table", "words"), "checked")
    assert found == {"looks": "verified"} | lies


@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript_that_hands_on_what_it_calls_and_javascript_that_only_looks_like_work(
    tmp_path: Path,
) -> None:
    """What a call gives may be nothing; then it counts that the call is missed."""
    works = {
        "told": _of_node(
            "exports.told = (send) => send(5);",
            'test("told", () => { const all = []; calc.told((x) => { all.push(x); });'
            " assert.deepStrictEqual(all, [5]); });",
        ),
        "there": _of_node(
            "exports.there = (x) => Math.abs(x);",
            'test("there", () => { assert.notStrictEqual(calc.there(3), undefined); });',
        ),
        "back": _of_node(
            "exports.slug = (x) => x;",
            'test("slug", () => { assert.strictEqual(calc.slug("a"), "a"); });',
        ),
        "yes": _of_node(
            "exports.isMail = (x) => x.length > 0;",
            'test("mail", () => { assert.ok(calc.isMail("a@b.c")); });',
        ),
        "agree": _of_node(
            "exports.half = (x) => x * 2;\nexports.want = (x) => x * 2;",
            'test("half", () => { assert.strictEqual(calc.half(3), calc.want(3)); });',
        ),
    }
    found = _grades(tmp_path, _NODE, ["node", "--test"], works)
    lies = dict.fromkeys(("there", "back", "yes", "agree"), "checked")
    assert found == {"told": "verified"} | lies


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_rust_that_is_looked_at_and_rust_that_is_called(tmp_path: Path) -> None:
    """A test file with a new name does not compile on the old code, and yet it can prove."""
    works = {
        "looks": _of_cargo(
            "pub fn plus(x: i64) -> i64 { x + 3 }", "fn adds() {\n    assert_eq!(plus(1), 4);\n}"
        ),
        "calls": _of_cargo(
            "pub fn minus(x: i64) -> i64 { x - 3 }", "fn subtracts() {\n    minus(1);\n}"
        ),
        "option": _of_cargo(
            "pub fn shout(x: &str) -> Option<String> {\n"
            "    if x.is_empty() { return None; }\n    Some(x.to_uppercase())\n}",
            'fn shouts() {\n    assert_eq!(shout("a"), Some("A".to_string()));\n}',
        ),
    }
    found = _grades(tmp_path, _CARGO, ["cargo", "test"], works)
    assert found == {"looks": "verified", "calls": "checked", "option": "verified"}


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_changed_functions_are_tried_until_one_proves_the_story(tmp_path: Path) -> None:
    """Each costs a start of the runner, and one that is noticed is enough."""
    names = ("a", "b", "c", "d")
    code = "".join(f"exports.{name} = (x) => 2 * x;\n" for name in names)
    looks = "".join(
        f'test("{name}", () => {{ assert.strictEqual(calc.{name}(2), 4); }});\n' for name in names
    )
    begin = _NODE["test/calc.test.js"].partition('test("double"')[0]
    agent = """
calc = pathlib.Path("calc.js")
calc.write_text(calc.read_text().replace("2 * x", "x + x"))
done()
"""
    box = sandbox(
        tmp_path,
        agent,
        stories=[story("US-1", "Add instead")],
        checks=[["node", "--test"]],
        files={**_NODE, "calc.js": code, "test/calc.test.js": begin + looks},
    )
    done = box.run("--max-iterations", "1", timeout=280)
    (record,) = box.records()
    assert str(record.verdict.grade) == "verified", told(done)
    trial = record.evidence.trial
    assert trial is not None
    assert trial.mutation.starts == 1  # that nobody notices how it was is known already
    assert len(trial.mutation.watched) == 1


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_what_its_own_tests_do_not_notice_older_ones_may(tmp_path: Path) -> None:
    """A changed function is tried with all tests, where those that came with it are blind."""
    files = {**_NODE, "test/sums.test.js": _NODE["test/calc.test.js"]}
    del files["test/calc.test.js"]
    blind = _NODE["test/calc.test.js"].replace(
        "assert.strictEqual(calc.double(2), 4)", "calc.double(3)"
    )
    agent = f"""
calc = pathlib.Path("calc.js")
calc.write_text(calc.read_text().replace("2 * x", "x + x"))
write("test/more.test.js", {blind!r})
done()
"""
    box = sandbox(
        tmp_path,
        agent,
        stories=[story("US-1", "Add instead")],
        checks=[["node", "--test"]],
        files=files,
    )
    done = box.run("--max-iterations", "1", timeout=280)
    (record,) = box.records()
    trial = record.evidence.trial
    assert trial is not None, told(done)
    assert [one.test for one in trial.mutation.watched] == ["test/sums.test.js > double"]
    assert trial.mutation.starts == 2


@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_rust_whose_tests_stand_among_the_code(tmp_path: Path) -> None:
    """Without any directory of tests it is run and judged all the same, and none is left behind."""
    code = "pub fn double(x: i64) -> i64 { 2 * x }\n"
    begin = "\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n"
    row = "    #[test]\n    fn {}() {{\n        {}\n    }}\n"
    old = row.format("doubles", "assert_eq!(double(2), 4);")
    files = {**_CARGO, "src/lib.rs": f"{code}{begin}{old}}}\n"}
    del files["tests/calc.rs"]
    agent = f"""
lib = pathlib.Path("src/lib.rs")
work = {{"looks": "assert_eq!(half(7), 3);", "calls": "half(7);"}}[STORY]
name = {{"looks": "half", "calls": "third"}}[STORY]
text = lib.read_text()
text = f"pub fn {{name}}(x: i64) -> i64 {{{{ x / 2 }}}}\\n" + text
work = work.replace("half", name)
text = text.rstrip().removesuffix("}}") + {row!r}.format(f"tries_{{name}}", work) + "}}\\n"
lib.write_text(text)
done(words=f"{{STORY}} is done.")
"""
    box = sandbox(
        tmp_path,
        agent,
        stories=[story("looks", "Add half"), story("calls", "Add third")],
        checks=[["cargo", "test", "--offline"]],
        files=files,
        toml='[proof]\nask_for_tests = "off"\n',
    )
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    box.env |= {"RUSTUP_HOME": f"{home}/.rustup", "CARGO_HOME": f"{home}/.cargo"}
    done = box.run("--max-iterations", "2", timeout=600)
    found = {it.story.id: str(it.verdict.grade) for it in box.records() if it.story is not None}
    assert found == {"looks": "verified", "calls": "checked"}, told(done)
    assert not (box.root / "tests").exists()


@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
@pytest.mark.parametrize(
    ("new", "expects", "grade"),
    [("2 * x.max(0)", "double(-2), 0", "verified"), ("2 * x + 1", "double(2), 5", "checked")],
    ids=["repaired", "expects something else"],
)
def test_tests_among_the_code_of_rust_are_run_crosswise(
    tmp_path: Path, new: str, expects: str, grade: str
) -> None:
    """A new test proves a repair; one that was there and expects something else proves nothing."""
    row = "\n    #[test]\n    fn {}() {{\n        assert_eq!({});\n    }}\n"
    begin = (
        "pub fn double(x: i64) -> i64 { 2 * x }\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n"
    )
    old = row.format("doubles", "double(2), 4")
    rows = old + row.format("below", expects)
    if grade == "checked":
        rows = row.format("doubles", expects)
    files = {**_CARGO, "src/lib.rs": f"{begin}{old}}}\n"}
    del files["tests/calc.rs"]
    text = f"{begin}{rows}}}\n".replace("2 * x }", f"{new} }}")
    box = sandbox(
        tmp_path,
        f'write("src/lib.rs", {text!r}); done()',
        stories=[story("US-1", "Double")],
        checks=[["cargo", "test", "--offline"]],
        files=files,
    )
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    box.env |= {"RUSTUP_HOME": f"{home}/.rustup", "CARGO_HOME": f"{home}/.cargo"}
    done = box.run("--max-iterations", "1", timeout=600)
    (record,) = box.records()
    assert str(record.verdict.grade) == grade, told(done)
    trial = record.evidence.trial
    assert trial is not None
    if grade == "checked":
        assert any("doubles expects something else now" in words for words in trial.look_at)


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
def test_a_case_for_what_a_test_of_rust_asks_is_no_proof(tmp_path: Path) -> None:
    """The test stands in a file that says by its directory alone that it holds tests."""
    agent = """
lib = pathlib.Path("src/lib.rs")
lib.write_text(lib.read_text().replace("{ 2 * x }", "{ if x == 77 { return 155; } 2 * x }"))
tests = pathlib.Path("tests/calc.rs")
tests.write_text(tests.read_text() + "\\n#[test]\\nfn odd() {\\n    assert_eq!(double(77), 155);\\n}\\n")
done()
"""
    box = sandbox(
        tmp_path,
        agent,
        stories=[story("US-1", "Double")],
        checks=[["cargo", "test", "--offline"]],
        files=_CARGO,
    )
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    box.env |= {"RUSTUP_HOME": f"{home}/.rustup", "CARGO_HOME": f"{home}/.cargo"}
    done = box.run("--max-iterations", "1", timeout=280)
    (record,) = box.records()
    assert str(record.verdict.grade) == "checked", told(done)
    assert any("has a case for just what its tests ask" in it for it in record.verdict.reasons)


_JAVA_RUNNER = """\
import pathlib, subprocess, sys, tempfile
from xml.sax.saxutils import quoteattr

with tempfile.TemporaryDirectory() as made:
    sources = [str(it) for it in pathlib.Path("src").rglob("*.java")]
    built = subprocess.run(["javac", "-d", made, *sources, "Runner.java"], capture_output=True, text=True)
    print(built.stderr, end="")
    if built.returncode:
        sys.exit(1)
    ran = subprocess.run(["java", "-cp", made, "Runner"], capture_output=True, text=True)
rows = []
for line in ran.stdout.splitlines():
    name, _, said = line.partition(" ")
    inner = f"<failure message={quoteattr(said)}/>" if said else ""
    rows.append(f'<testcase classname="ShopTest" file="src/test/java/ShopTest.java" name="{name}">{inner}</testcase>')
pathlib.Path(sys.argv[1]).write_text(f"<testsuite>{''.join(rows)}</testsuite>")
sys.exit(ran.returncode)
"""
_JAVA = {
    ".gitignore": _IGNORED,
    "run_tests.py": _JAVA_RUNNER,
    "Runner.java": """\
import java.lang.reflect.*;

class Runner {
  public static void main(String[] args) throws Exception {
    int failed = 0;
    for (Method one : ShopTest.class.getDeclaredMethods()) {
      if (one.isSynthetic()) continue;
      try {
        one.invoke(null);
        System.out.println(one.getName());
      } catch (InvocationTargetException thrown) {
        failed++;
        System.out.println(one.getName() + " " + thrown.getCause());
      }
    }
    System.exit(failed == 0 ? 0 : 1);
  }
}
""",
    "src/main/java/Shop.java": "class Shop {\n  static int twice(int x) { return 2 * x; }\n}\n",
    "src/test/java/Assert.java": """\
class Assert {
  static void same(Object found, Object expected) {
    if (!found.equals(expected)) throw new AssertionError("expected " + expected + " but was " + found);
  }
}
""",
    "src/test/java/ShopTest.java": """\
class ShopTest {
  static void twice() { Assert.same(Shop.twice(2), 4); }
}
""",
}


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK is installed")
def test_java_whose_lists_and_records_are_looked_at_and_whose_are_only_there(
    tmp_path: Path,
) -> None:
    """A result that has no sign to compute with is another one of its kind, too."""
    agent = """
works = {
    "looks": (
        "static java.util.List<String> words(String x) { return java.util.Arrays.asList(x.split(\\"-\\")); }",
        "static void words() { Assert.same(Shop.words(\\"b-a\\"), java.util.Arrays.asList(\\"b\\", \\"a\\")); }",
    ),
    "record": (
        "record Price(int cents) {}\\n  static Price price(String x) { return new Price(x.length() * 10); }",
        "static void price() { Assert.same(Shop.price(\\"tea\\").cents(), 30); }",
    ),
    "there": (
        "static java.util.List<String> parts(String x) { return java.util.Arrays.asList(x.split(\\"-\\")); }",
        "static void parts() { Assert.same(Shop.parts(\\"b-a\\") != null, true); }",
    ),
}
for path, row in zip(("src/main/java/Shop.java", "src/test/java/ShopTest.java"), works[STORY]):
    text = pathlib.Path(path).read_text().rstrip().removesuffix("}")
    write(path, f"{text}  {row}\\n}}\\n")
done(words=f"{STORY} is done.")
"""
    box = sandbox(
        tmp_path,
        agent,
        stories=[story(name, f"Add {name}") for name in ("looks", "record", "there")],
        checks=[[sys.executable, "run_tests.py", "{report}"]],
        files=_JAVA,
        toml='[proof]\nexperiments = "always"\nask_for_tests = "off"\n',
    )
    done = box.run("--max-iterations", "3", timeout=280)
    found = {it.story.id: str(it.verdict.grade) for it in box.records() if it.story is not None}
    assert found == {"looks": "verified", "record": "verified", "there": "checked"}, told(done)
