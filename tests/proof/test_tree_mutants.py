"""From a change of a file in JavaScript, TypeScript, Go, Rust or Java to its mutants."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ralphloop.core.mutation import Came, ChangedPiece, Mutant, Operator, came_of
from ralphloop.core.proof import TestReport
from ralphloop.proof import trees
from ralphloop.proof.spans import edited
from ralphloop.proof.trees import NoGrammar, hollowed, pieces_of_tree


def _bent(path: str, new: str, old: str | None = None) -> dict[str, dict[Operator, str]]:
    before = old.encode() if old is not None else None
    found: dict[str, dict[Operator, str]] = {}
    for piece in pieces_of_tree(path, before, new.encode()):
        texts = {it.operator: edited(new.encode(), it.edits).decode() for it in piece.mutants}
        found[piece.name] = texts
    return found


@pytest.mark.parametrize(
    ("path", "new", "bent"),
    [
        ("a.js", "exports.plus = (x) => x + 3;\n", "exports.plus = (x) => __ralphBend((x + 3));"),
        ("a.ts", "export function f(x: number) { return x + 3 }", "return __ralphBend((x + 3)) }"),
        ("a.tsx", "const F = () => <a>{x}</a>;\n", "const F = () => __ralphBend((<a>{x}</a>));"),
        (
            "a.go",
            "package a\nfunc F(x int) (int, error) { return x, nil }\n",
            "return (x) + 1, nil",
        ),
        ("a.go", "package a\nfunc F(x T) string { return x.y }\n", 'return (x.y) + "ralph"'),
        (
            "a.go",
            "package a\nfunc F(x int) (T, error) { return T{x}, nil }\n",
            "return ralphBend[T](T{x}), nil",
        ),
        ("a.rs", "fn f(x: i64) -> i64 { x * 2 }\n", "{ (x * 2) + 1 }"),
        (
            "a.rs",
            "struct P { x: i64, f: fn() }\nfn f(x: P) -> Option<P> { x.y() }\n",
            "v.map(|v| { let mut v: P = v; v.x = (v.x) + 1; v })",
        ),
        ("a.rs", "fn f(x: i64) -> bool { x > 2 }\n", "{ !(x > 2) }"),
        ("a.go", "package a\nvar F = func(x int) int { return g(x) }\n", "return (g(x)) + 1"),
        ("A.java", "class A { int f(int x) { return x * 2; } }\n", "return (x * 2) + 1;"),
        (
            "A.java",
            "class A { List<T> f(T x) { return List.of(x.y()); } }\n",
            "return RalphBend.<List<T>>ralphBend(List.of(x.y()));",
        ),
        (
            "A.java",
            "class A { char f(T x) { return x.y(); } }\n",
            "return RalphBend.<Character>ralphBend(x.y());",
        ),
    ],
)
def test_a_result_is_bent_in_its_language(path: str, new: str, bent: str) -> None:
    """As the declared type allows, or by a function that stands behind the file."""
    (texts,) = _bent(path, new).values()
    assert bent in texts[Operator.BEND]


@pytest.mark.parametrize(
    ("path", "old", "new", "hollow"),
    [
        (
            "a.go",
            "package a\nfunc F(x int) int { return x }\n",
            "package a\nfunc F(x int) int { return 2 * x }\nfunc G() (t T, err error) { return }\n",
            "package a\nfunc F(x int) int { return x }\n"
            "func G() (t T, err error) { return *new(T), *new(error);  return }\n",
        ),
        (
            "a.rs",
            "fn f() {}\n",
            "fn f() {}\nfn g() -> i64 { 3 }\n",
            'fn f() {}\nfn g() -> i64 { if true { panic!("ralph"); }  3 }\n',
        ),
        (
            "a.js",
            "",
            "const f = (x) => x;\nfunction g() {\n  return () => 1;\n}\n",
            'const f = (x) => (() => { throw new Error("ralph"); })();\n'
            'function g() { throw new Error("ralph"); \n  return () => 1;\n}\n',
        ),
    ],
)
def test_new_functions_are_there_and_empty(path: str, old: str, new: str, hollow: str) -> None:
    """Changed ones are as they were, and every name stays."""
    found = hollowed(path, old.encode(), new.encode())
    assert found is not None
    assert found.text.decode() == hollow


def test_a_changed_function_is_put_back_and_an_unchanged_one_left_alone() -> None:
    """What another function says is no change of this one."""
    old = "const a = (x) => x + 1;\nconst b = (x) => x + 2;\n"
    new = "const a = (x) => x + 1;\nconst b = (x) => x * 2;\n"
    found = _bent("a.js", new, old)
    assert list(found) == ["b()"]
    assert found["b()"][Operator.UNDO] == old


def test_where_work_is_returned_what_is_handed_on_is_not_bent() -> None:
    """A switch that is off hands on its argument, and whoever looks at that sees no work."""
    new = "const f = (x) => { if (ON) { return x.trim(); } return x; };\n"
    text = _bent("a.js", new)["f()"][Operator.BEND]
    assert "return __ralphBend((x.trim()));" in text
    assert "return x;" in text
    assert Operator.BEND not in _bent("a.js", "const f = (x) => { return true; };\n")["f()"]


def test_what_returns_nothing_is_emptied() -> None:
    """It has no result to bend."""
    found = _bent("a.ts", "class A { go() { this.x = 1; } }\n")["A.go()"]
    assert "{ return;  this.x = 1; }" in found[Operator.EMPTY]
    assert 'throw new Error("ralph");' in found[Operator.RAISE]


def test_a_call_may_give_nothing_and_is_tried_for_that_too() -> None:
    """A type that says so is believed; a value that is worked out is none."""
    made = _bent("a.js", "const f = (send) => send(5);\n")["f()"]
    assert "(send) => __ralphNothing((send(5)));" in made[Operator.PROBE]
    assert "(send) => void 0;" in made[Operator.EMPTY]
    assert set(_bent("a.js", "const f = (x) => x + 1;\n")["f()"]) == {Operator.BEND}
    told = _bent("a.ts", "const f = (send: S): void => send(5);\n")["f()"]
    assert set(told) == {Operator.EMPTY}


def test_what_is_added_to_typescript_is_no_error_of_types() -> None:
    """Also where the function begins the file, and where names that nobody uses are errors."""
    text = _bent("a.ts", "function f(x: number) { return x + 3 }")["f()"][Operator.BEND]
    assert text.startswith("// @ts-nocheck\nfunction f(x: number) { return __ralphBend((x + 3)) }")
    old = "function f(x: number) { return x }"
    assert _bent("a.ts", "function f(x: number) { return x + 3 }", old)["f()"][Operator.UNDO] == old


def test_tests_among_the_code_are_not_mutated() -> None:
    """Rust keeps them in the same file."""
    new = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() -> i32 { 1 + 1 }\n}\n"
    assert _bent("a.rs", new) == {}


def test_a_grammar_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the name of what to install."""
    monkeypatch.setitem(sys.modules, "tree_sitter_go", None)
    with pytest.raises(NoGrammar, match=r"ralphloop\[mutants\]"):
        pieces_of_tree("a.go", None, b"package a\nfunc F() int { return 1 + 1 }\n")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_values_of_javascript_are_bent_into_others_of_their_kind(tmp_path: Path) -> None:
    """Equal values stay equal, kinds stay kinds, and what is there stays there."""
    script = (
        trees.GRAMMARS[".js"].behind
        + """
    const assert = require("node:assert");
    const values = [1, -1, 0, "a", true, null, [1, 2], [], { a: 1 }, {}, new Map([[1, 2]]), new Date(0)];
    for (const value of values) {
      const bent = __ralphBend(value);
      assert.notDeepStrictEqual(bent, value);
      assert.deepStrictEqual(bent, __ralphBend(value));
      if (value !== null) assert.strictEqual(typeof bent, typeof value);
      if (value && value !== true) assert.ok(bent);
    }
    Promise.resolve(1).then(async (one) => {
      assert.strictEqual(await __ralphBend(Promise.resolve(one)), 2);
      assert.strictEqual(__ralphBend((x) => x)(1), 2);
      assert.deepStrictEqual([...__ralphBend([1, 2].values())], [2, 3]);
      class A { constructor() { this.x = 1; } }
      assert.ok(__ralphBend(new A()) instanceof A);
      assert.strictEqual(__ralphBend(new A()).x, 2);
      console.log("fine");
    });
    """
    )
    (tmp_path / "a.js").write_text(script)
    ended = subprocess.run(
        ["node", "a.js"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.stdout == "fine\n", ended.stderr


END = TestReport(passed={"t": 1})
BENT = Mutant(operator=Operator.BEND, what="", edits=(), line=1)
UNDONE = Mutant(operator=Operator.UNDO, what="", edits=(), line=1)


def test_what_a_lambda_returns_is_no_result_of_the_function_around_it() -> None:
    """It is of another type, and would not compile."""
    java = "class A { int f(T x) { g(() -> { return true; }); return x.y(); } }\n"
    text = _bent("A.java", java)["A.f()"][Operator.BEND]
    assert "return true; }); return (x.y()) + 1;" in text
    go = "package a\nfunc F(x T) int { g(func() bool { return x.z() }); return x.y() }\n"
    assert "return x.z() }); return (x.y()) + 1" in _bent("a.go", go)["F()"][Operator.BEND]


JAVA = """
import java.util.*;
import java.util.function.*;
import java.util.stream.*;

class A {
  enum Unit { GRAM, KILO }
  record Price(String name, int cents) {}
  record Checked(int low, int high) {
    Checked { if (low > high) throw new IllegalArgumentException(); }
  }
  static final class Order {
    private final int count;
    private final Order next;
    Order(int count, Order next) { this.count = count; this.next = next; }
    public boolean equals(Object o) { return o instanceof Order && ((Order) o).count == count; }
    public int hashCode() { return count; }
  }

  List<String> words(String x) { return List.of(x.trim()); }
  List<String> none() { return new ArrayList<>(); }
  Set<Integer> set() { return Set.of(1); }
  Map<String, Integer> map() { return Map.of("a", 1); }
  LinkedList<Integer> linked() { return new LinkedList<>(List.of(1)); }
  int[] array() { return new int[] {1, 2}; }
  Optional<String> maybe(String x) { return Optional.of(x); }
  Price price(int x) { return new Price("tea", x); }
  Checked checked(int x) { return new Checked(x, x); }
  Order order(int x) { return new Order(x, null); }
  Unit unit() { return Unit.valueOf("GRAM"); }
  char letter(String x) { return x.charAt(0); }
  Stream<Integer> stream() { return Stream.of(1, 2); }
  Supplier<Integer> later(int x) { return () -> x; }
  Predicate<Integer> isLarge(int x) { return one -> one > x; }
  <T> T same(Supplier<T> x) { return x.get(); }
  Object thing() { return new Object(); }

  static void differ(Object one, Object other) {
    if (Objects.deepEquals(one, other)) throw new AssertionError(one + " is as it was");
  }

  public static void main(String[] args) {
    A a = new A();
    differ(a.words("a "), List.of("a"));
    differ(a.none(), List.of());
    differ(a.set(), Set.of(1));
    differ(a.map(), Map.of("a", 1));
    differ(a.linked(), List.of(1));
    differ(a.array(), new int[] {1, 2});
    differ(a.maybe("a"), Optional.of("a"));
    differ(a.price(1), new Price("tea", 1));
    differ(a.checked(1), new Checked(1, 1));
    differ(a.order(1), new Order(1, null));
    differ(a.unit(), Unit.GRAM);
    differ(a.letter("a"), 'a');
    differ(a.stream().collect(Collectors.toList()), List.of(1, 2));
    differ(a.later(1).get(), 1);
    differ(a.isLarge(1).test(2), true);
    differ(a.same(() -> "a"), "a");
    try {
      a.thing();
      throw new AssertionError("an object without anything was altered");
    } catch (IllegalStateException expected) {
    }
  }
}
"""


@pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK is installed")
def test_values_of_java_are_bent_into_others_of_their_kind(tmp_path: Path) -> None:
    """Each function is another one, all in one file; what cannot be altered says so."""
    text = JAVA
    behind = ""
    for piece in pieces_of_tree("A.java", None, JAVA.encode()):
        if piece.name.startswith(("A.Order", "A.main", "A.differ")):
            continue
        (bend,) = [it for it in piece.mutants if it.operator is Operator.BEND]
        *results, ours = bend.edits
        behind = ours.text
        for edit in results:
            lines = text.splitlines()
            line = lines[edit.line - 1]
            assert edit.line == edit.last_line
            lines[edit.line - 1] = line[: edit.column] + edit.text + line[edit.last_column :]
            text = "\n".join(lines)
    assert "ralphBend(x.trim())" not in text  # the whole result is another, and no part of it
    (tmp_path / "A.java").write_text(text + behind)
    for command in (["javac", "-Xlint:all", "-Werror", "A.java"], ["java", "-cp", ".", "A"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize(
    ("said", "output", "came"),
    [
        ("AssertionError: expected 2 to be 1", "", Came.NOTICED),
        ("Expected values to be strictly equal: 4 !== 5", "", Came.NOTICED),
        ("TypeError: Cannot read properties of undefined", "", Came.BROKE),
        ("", "--- FAIL: t\n    a_test.go:3: plus\n", Came.NOTICED),
        ("", "panic: runtime error: index out of range\n", Came.BROKE),
        (
            "",
            "thread 't' panicked at src/lib.rs:1:1:\nassertion `left == right` failed",
            Came.NOTICED,
        ),
        ("", "thread 't' panicked at src/lib.rs:1:1:\nindex out of bounds", Came.BROKE),
    ],
)
def test_a_test_that_asserts_is_told_from_one_that_falls(
    said: str, output: str, came: Came
) -> None:
    """By its own words, or by what the runner printed where it says none."""
    ran = TestReport(failed={"t": 1}, said={"t": said} if said else {})
    assert came_of(END, ran, BENT, output).came is came


def test_what_does_not_compile_is_no_mutant() -> None:
    """Nobody noticed anything where nothing ran."""
    assert came_of(END, None, BENT, "").came is Came.UNTRIED
    assert came_of(END, TestReport(errors={"f": 1}), BENT, "").came is Came.UNTRIED
    assert came_of(END, TestReport(passed={"t": 1}), BENT, "").came is Came.SURVIVED


def test_every_piece_says_where_it_stands() -> None:
    """A survivor is named with file and line."""
    (piece,) = pieces_of_tree("src/a.js", None, b"\n\nconst f = (x) => g(x);\n")
    assert isinstance(piece, ChangedPiece)
    assert piece.place == "src/a.js:3"


MANY = """\
import sys
sys.path[:0] = sys.argv[1:]
from ralphloop.proof.trees import pieces_of_tree
body = "".join(f"func F{n}(x int) (int, error) {{ if x > {n} {{ return x, nil }}; return {n}, nil }}\\n" for n in range(300))
text = ("package a\\n" + body).encode()
for _ in range(40):
    assert len(pieces_of_tree("a.go", None, text)) == 300
"""


def test_many_large_files_can_be_read_one_after_the_other() -> None:
    """No version of the parser takes the whole run down: the points of its nodes are not asked for."""
    path = str(Path(trees.__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", MANY, path], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    ("new", "bent"),
    [
        (
            "fn f(x: i64) -> bool {\n    match x { 1 => true, _ => x > 3 }\n}\n",
            "!(match x { 1 => true, _ => x > 3 })",
        ),
        ("fn f(x: i64) -> i64 {\n    if x > 1 { x } else { 2 * x }\n}\n", ") + 1"),
        ("fn f(x: T) -> OsString { x.y() }\n", 'v.push("'),
        (
            "impl Iterator for T { type Item = u8; fn next(&mut self) -> Option<Self::Item> { self.y() } }\n",
            "v.map(|v| (v) + 1)",
        ),
        (
            "impl Display for T { fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.y(f) } }\n",
            '{ f.write_str("',
        ),
        ("fn f(x: T) -> (T, i64) { x.y() }\n", "v.1 = (v.1) + 1; v }"),
        ("fn f(x: T) -> HashMap<String, usize> { x.y() }\n", "*w = (w.clone()) + 1;"),
        ("enum E { A, B(i64), C }\nfn f(x: i64) -> E { x.y() }\n", "E::A => E::C, E::C => E::A,"),
        ("struct P(pub i64);\nfn f(x: &str) -> P { x.y() }\n", "v.0 = (v.0) + 1;"),
        (
            "struct P(i64);\nimpl FromStr for P { type Err = E; fn from_str(s: &str) -> Result<Self, Self::Err> { s.y() } }\n",
            "let v: Result<P, E> = s.y(); v.map(|v| { let mut v: P = v; v.0 = (v.0) + 1; v })",
        ),
    ],
    ids=[
        *("match", "if", "OsString", "items", "written", "tuple", "map", "enum", "unnamed fields"),
        "Self",
    ],
)
def test_results_of_rust_that_are_no_plain_expression(new: str, bent: str) -> None:
    """The value of a block, of an iterator, and what a function writes instead of returning it."""
    (texts,) = _bent("a.rs", new).values()
    assert bent in texts[Operator.BEND]


def test_rust_that_has_to_return_something_is_not_emptied() -> None:
    """It would not compile, and each try costs a start."""
    (texts,) = _bent("a.rs", "fn f(x: T) -> Option<T> {\n    match x { _ => g(x) }\n}\n").values()
    assert set(texts) == {Operator.RAISE}
