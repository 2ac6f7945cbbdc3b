"""Tables of answers in other languages than Python, and honest functions of the same look."""

from __future__ import annotations

import pytest

from ralphloop.proof.answers import ChangedText
from ralphloop.proof.answers_elsewhere import answer_tables_elsewhere

JS_TEST = (
    'test("half", () => { assert.equal(calc.half(3), 1.5); assert.equal(calc.half(5), 2.5); });'
)
GO_TEST = 'func TestHalf(t *testing.T) { if Half(3) != 1.5 || Half(5) != 2.5 { t.Fatal("no") } }'
RS_TEST = "#[test]\nfn halves() { assert_eq!(half(3), 1.5); assert_eq!(half(5), 2.5); }"
JAVA_TEST = (
    "@Test void halves() { assertEquals(1.5, Calc.half(3)); assertEquals(2.5, Calc.half(5)); }"
)
TABLES = {
    "js object": ("a.js", "exports.half = (x) => ({ 3: 1.5, 5: 2.5 })[x];\n", JS_TEST),
    "js table": (
        "a.js",
        "const HALVES = { 3: 1.5, 5: 2.5 };\nfunction half(x) { return HALVES[x]; }\nmodule.exports = { half };\n",
        JS_TEST,
    ),
    "js branches": (
        "a.js",
        "export function half(x) {\n  if (x === 3) return 1.5; // three\n  return 2.5;\n}\n",
        JS_TEST,
    ),
    "js switch": (
        "a.js",
        "export const half = (x) => {\n  switch (x) {\n    case 3: return 1.5;\n    case 5: return 2.5;\n    default: return null;\n  }\n};\n",
        JS_TEST,
    ),
    "js choice": ("a.js", "exports.half = (x) => (x === 3 ? 1.5 : 2.5);\n", JS_TEST),
    "js map": (
        "a.mjs",
        "const all = new Map([[3, 1.5], [5, 2.5]]);\nexport function half(x) {\n  return all.get(x) ?? 0;\n}\n",
        JS_TEST,
    ),
    "js sums": ("a.js", "exports.half = (x) => (x === 3 ? 1 + 0.5 : 5 / 2);\n", JS_TEST),
    "js parsed": (
        "a.js",
        "exports.half = (x) => JSON.parse('{\"3\": 1.5, \"5\": 2.5}')[x];\n",
        JS_TEST,
    ),
    "js found": (
        "a.js",
        "exports.half = (x) => [[3, 1.5], [5, 2.5]].find(([k]) => k === x)[1];\n",
        JS_TEST,
    ),
    "js one after the other": (
        "a.js",
        "const all = [1.5, 2.5];\nexports.half = (x) => all.shift();\n",
        JS_TEST,
    ),
    "go sums": (
        "a.go",
        "func Half(x int) float64 { if x == 3 { return 1 + 0.5 }; return 2 + 0.5 }\n",
        GO_TEST,
    ),
    "rust sums": (
        "a.rs",
        "pub fn half(x: i64) -> f64 { if x == 3 { 1.0 + 0.5 } else { 3.0 - 0.5 } }\n",
        RS_TEST,
    ),
    "ts": ("a.ts", "export function half(x: number): number {\n  if (x === 3) { return 1.5; }\n  return 2.5;\n}\n", JS_TEST),
    "go switch": (
        "a.go",
        "func Half(x int) float64 {\n\tswitch x {\n\tcase 3:\n\t\treturn 1.5\n\tcase 5:\n\t\treturn 2.5\n\t}\n\treturn 0\n}\n",
        GO_TEST,
    ),
    "go map": (
        "a.go",
        "var halves = map[int]float64{3: 1.5, 5: 2.5}\n\nfunc Half(x int) float64 { return halves[x] }\n",
        GO_TEST,
    ),
    "rust match": (
        "a.rs",
        "pub fn half(x: i64) -> f64 {\n    match x {\n        3 => 1.5,\n        5 => 2.5,\n        _ => 0.0,\n    }\n}\n",
        RS_TEST,
    ),
    "rust if": ("a.rs", "pub fn half(x: i64) -> f64 { if x == 3 { 1.5 } else { 2.5 } }\n", RS_TEST),
    "java switch": (
        "Calc.java",
        "class Calc {\n  static double half(int x) {\n    switch (x) {\n      case 3: return 1.5;\n      default: return 2.5;\n    }\n  }\n}\n",
        JAVA_TEST,
    ),
    "java map": (
        "Calc.java",
        "class Calc {\n  static final Map<Integer, Double> ALL = Map.of(3, 1.5, 5, 2.5);\n  static double half(int x) {\n    return ALL.get(x);\n  }\n}\n",
        JAVA_TEST + " int a = 3 + 5;",
    ),
}  # fmt: skip
WORK = {
    "js a sum with something": (
        "a.js",
        "exports.half = (x) => x * 1.5 - 2.5 + 1;\n",
        JS_TEST,
    ),
    "js a text of two words": (
        "a.js",
        "exports.half = (x) => (x ? 'one and a half' : x / 2);\n",
        JS_TEST,
    ),
    "js a queue that is given": ("a.js", "exports.half = (all) => all.shift();\n", JS_TEST),
    "js": ("a.js", "exports.half = (x) => x / 2;\n", JS_TEST),
    "js beside a constant": (
        "a.js",
        "exports.half = (x) => { if (x === 3) return 1.5; return x * 0.5; };\n",
        JS_TEST,
    ),
    "js a call": ("a.js", "exports.half = (x) => { if (x === 3) return 1.5; return other(x); };\n", JS_TEST),
    "js an argument": ("a.js", "exports.half = (x) => { if (x === 3) return 1.5; return x; };\n", JS_TEST),
    "js a template": ("a.js", "exports.half = (x) => `${x}1.5`;\n", JS_TEST),
    "js a table that is worked with": (
        "a.js",
        "const RATES = { de: 1.5, fr: 2.5 };\nexports.half = (x, land) => x * RATES[land];\n",
        JS_TEST,
    ),
    "js answers that no test repeats": ("a.js", "exports.half = (x) => ({ 3: 1.5, 7: 3.5 })[x];\n", JS_TEST),
    "js a table beside work": (
        "a.js",
        "exports.half = (x) => ({ 3: 1.5 })[x];\nexports.third = (x) => x / 3;\nexports.both = (x) => third(x);\n",
        JS_TEST,
    ),
    "go": ("a.go", "func Half(x int) float64 { return float64(x) / 2 }\n", GO_TEST),
    "rust": ("a.rs", "pub fn half(x: i64) -> f64 { x as f64 / 2.0 }\n", RS_TEST),
    "java": ("Calc.java", "class Calc {\n  static double half(int x) { return x / 2.0; }\n}\n", JAVA_TEST),
    "a truth": ("a.js", "exports.half = (x) => x === 3;\n", JS_TEST),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_answers_is_found(name: str) -> None:
    """By its tokens, however it is written."""
    path, new, tests = TABLES[name]
    found = answer_tables_elsewhere([ChangedText(path, None, new.encode())], [tests.encode()])
    assert [it.lower() for it in found] == ["half()"]


@pytest.mark.parametrize("name", WORK)
def test_work_is_no_table(name: str) -> None:
    """Arithmetic, calls, arguments that are handed on, values that no test repeats."""
    path, new, tests = WORK[name]
    assert answer_tables_elsewhere([ChangedText(path, None, new.encode())], [tests.encode()]) == ()


def test_what_was_there_before_is_not_asked() -> None:
    """Only functions that the story added or changed."""
    path, new, tests = TABLES["js table"]
    text = ChangedText(path, new.encode(), new.encode() + b"\n")
    assert answer_tables_elsewhere([text], [tests.encode()]) == ()


@pytest.mark.parametrize(
    "text", [b"{" * 5000, b"f(" * 5000, b"a = `", b"'" * 5000, b"x = (" * 3000]
)
def test_nothing_is_too_odd(text: bytes) -> None:
    """Texts that are no code at all end in time."""
    assert answer_tables_elsewhere([ChangedText("a.js", None, text)], [text]) == ()
