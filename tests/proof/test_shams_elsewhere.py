"""Work that only looks like it, in other languages, is told from work of the same look."""

from __future__ import annotations

import sys

import pytest

from ralphloop.proof.answers import ChangedText
from ralphloop.proof.shams_elsewhere import shams_elsewhere

HANDS_BACK = "only hands back what it is given"
NOT_YET = "is called, and is not there yet"
EMPTY = "is empty, and its result is used"
AGREE = "are compared with each other alone"
BLIND = "does not look at what it is compared with"
ONLY_YES = "is asked only where it says yes"
CASE = "has a case for just what its tests ask ("

# What came with a story, its tests, and what is said of it.
SHAMS = {
    "js back": ("a.js", "exports.slug = (text) => text;", "slug('a')", HANDS_BACK),
    "ts back": (
        "a.ts",
        "export function slug(text: string): string { return text; }",
        "slug('a')",
        HANDS_BACK,
    ),
    "go back": (
        "a.go",
        "package a\nfunc Slug(s string) string { return s }",
        "Slug(x)",
        HANDS_BACK,
    ),
    "rust back": ("a.rs", "pub fn slug(s: &str) -> String { s.to_string() }", "", HANDS_BACK),
    "java back": (
        "A.java",
        "class A { static String slug(String s) { return s; } }",
        "",
        HANDS_BACK,
    ),
    "js not yet": (
        "a.js",
        "const fee = (x) => { throw new Error('Not implemented'); };\nconst pay = (x) => x + fee(x);",
        "",
        NOT_YET,
    ),
    "js not yet in exports": (
        "a.js",
        "exports.pay = (x) => x + exports.fee(x);\nexports.fee = (x) => { throw new Error('TODO'); };",
        "",
        NOT_YET,
    ),
    "go not yet": (
        "a.go",
        'package a\nfunc fee(x int) int { panic("not implemented") }\nfunc Pay(x int) int { return x + fee(x) }',
        "",
        NOT_YET,
    ),
    "go not yet, to be replaced": (
        "a.go",
        'package a\nvar fee = func(x int) int { panic("todo") }\nfunc Pay(x int) int { return x + fee(x) }',
        "",
        NOT_YET,
    ),
    "rust not yet": (
        "a.rs",
        "fn fee(x: i64) -> i64 { todo!() }\npub fn pay(x: i64) -> i64 { x + fee(x) }",
        "",
        NOT_YET,
    ),
    "js empty": (
        "a.js",
        "function fee(x) {}\nexports.pay = (x) => x + (fee(x) || 0);",
        "",
        EMPTY,
    ),
    "js agree": (
        "a.js",
        "exports.half = (x) => x * 2;\nexports.want = (x) => x * 2;",
        "expect(calc.half(3)).toBe(calc.want(3));",
        AGREE,
    ),
    "go agree": (
        "a.go",
        "package a\nfunc Half(x int) int { return x * 2 }\nfunc Want(x int) int { return x * 2 }",
        'if Half(3) != Want(3) { t.Fatal("no") }',
        AGREE,
    ),
    "rust agree": (
        "a.rs",
        "pub fn half(x: i64) -> i64 { x * 2 }\npub fn want(x: i64) -> i64 { x * 2 }",
        "assert_eq!(half(3), want(3));",
        AGREE,
    ),
    "java agree": (
        "A.java",
        "class A { static int half(int x) { return x * 2; }\n static int want(int x) { return x * 2; } }",
        "assertEquals(A.want(3), A.half(3));",
        AGREE,
    ),
    "js blind": ("a.js", "class Price { equals(other) { return true; } }", "", BLIND),
    "ts blind": (
        "a.ts",
        "class Price { equals(other: Price): boolean { return this.x === this.x; } }",
        "",
        BLIND,
    ),
    "go blind": (
        "a.go",
        "package a\nfunc (p Price) Equal(o Price) bool { return true }",
        "",
        BLIND,
    ),
    "rust blind": (
        "a.rs",
        "impl PartialEq for Price { fn eq(&self, _other: &Self) -> bool { true } }",
        "",
        BLIND,
    ),
    "rust blind, and thrown away": (
        "a.rs",
        "impl PartialEq for Price { fn eq(&self, other: &Self) -> bool { let _ = other; true } }",
        "",
        BLIND,
    ),
    "java blind": (
        "A.java",
        "class Price { @Override public boolean equals(Object o) { return true; } }",
        "",
        BLIND,
    ),
    "java blind in order": (
        "A.java",
        "class Price { public int compareTo(Price o) { return 0; } }",
        "",
        BLIND,
    ),
    "js yes": (
        "a.js",
        "exports.isMail = (s) => s.length > 0;",
        "expect(calc.isMail('a')).toBe(true); assert(calc.isMail('b'));",
        ONLY_YES,
    ),
    "js yes, not no": (
        "a.js",
        "exports.isMail = (s) => s.includes('');",
        "expect(isMail('a')).not.toBe(false); assert.strictEqual(isMail('b'), true);",
        ONLY_YES,
    ),
    "go yes": (
        "a.go",
        "package a\nfunc IsMail(s string) bool { return len(s) > 0 }",
        'if !IsMail("a") { t.Fatal("no") }',
        ONLY_YES,
    ),
    "go yes, by a name": (
        "a.go",
        "package a\nfunc IsMail(s string) bool { return len(s) > 0 }",
        'if got := IsMail("a"); !got { t.Errorf("no") }',
        ONLY_YES,
    ),
    "rust yes": (
        "a.rs",
        "pub fn is_mail(s: &str) -> bool { s.len() > 0 }",
        'assert!(is_mail("a"), "no");',
        ONLY_YES,
    ),
    "java yes": (
        "A.java",
        "class A { static boolean isMail(String s) { return s.length() > 0; } }",
        'assertTrue(A.isMail("a"));',
        ONLY_YES,
    ),
}
OLD = {
    "a.js": ("exports.twice = (x) => 2 * x;\n", "expect(calc.twice(7)).toBe(15);"),
    "a.ts": (
        "export function twice(x: number): number {\n  return 2 * x;\n}\n",
        "expect(twice(7)).toBe(15);",
    ),
    "a.go": (
        "package a\n\nfunc Twice(x int) int { return 2 * x }\n",
        "for _, c := range []struct{ in, want int }{{7, 15}} { if Twice(c.in) != c.want { t.Fatal() } }",
    ),
    "a.rs": ("pub fn twice(x: i64) -> i64 { 2 * x }\n", "assert_eq!(twice(7), 15);"),
    "A.java": (
        "class A {\n  static int twice(int x) { return 2 * x; }\n}\n",
        '@CsvSource({"7, 15"}) void twice(int in, int want) { assertEquals(want, A.twice(in)); }',
    ),
}
CASES = {
    "js branch": ("a.js", "exports.twice = (x) => { if (x === 7) return 15; return 2 * x; };\n"),
    "js choice": ("a.js", "exports.twice = (x) => (x === 7 ? 15 : 2 * x);\n"),
    "js else": (
        "a.js",
        "exports.twice = (x) => { if (x === 7) { return 15; } else { return 2 * x; } };\n",
    ),
    "js table": ("a.js", "const ODD = { 7: 15 };\nexports.twice = (x) => ODD[x] ?? 2 * x;\n"),
    "js asked of a table": (
        "a.js",
        "const ODD = new Map([[7, 15]]);\nexports.twice = (x) => { if (ODD.has(x)) return ODD.get(x); return 2 * x; };\n",
    ),
    "js list": (
        "a.js",
        "exports.twice = (x) => { if ([7].includes(x)) return 15; return 2 * x; };\n",
    ),
    "ts switch": (
        "a.ts",
        "export function twice(x: number): number {\n  switch (x) {\n    case 7: return 15;\n    default: return 2 * x;\n  }\n}\n",
    ),
    "go branch": (
        "a.go",
        "package a\n\nfunc Twice(x int) int {\n\tif x == 7 {\n\t\treturn 15\n\t}\n\treturn 2 * x\n}\n",
    ),
    "go table": (
        "a.go",
        "package a\n\nvar odd = map[int]int{7: 15}\n\nfunc Twice(x int) int {\n\tif v, ok := odd[x]; ok {\n\t\treturn v\n\t}\n\treturn 2 * x\n}\n",
    ),
    "go switch": (
        "a.go",
        "package a\n\nfunc Twice(x int) int {\n\tswitch x {\n\tcase 7:\n\t\treturn 15\n\tdefault:\n\t\treturn 2 * x\n\t}\n}\n",
    ),
    "rust branch": ("a.rs", "pub fn twice(x: i64) -> i64 { if x == 7 { return 15; } 2 * x }\n"),
    "rust choice": ("a.rs", "pub fn twice(x: i64) -> i64 { if x == 7 { 15 } else { 2 * x } }\n"),
    "rust match": ("a.rs", "pub fn twice(x: i64) -> i64 { match x { 7 => 15, _ => 2 * x } }\n"),
    "java branch": (
        "A.java",
        "class A {\n  static int twice(int x) { if (x == 7) { return 15; } return 2 * x; }\n}\n",
    ),
    "java switch": (
        "A.java",
        "class A {\n  static int twice(int x) { return switch (x) { case 7 -> 15; default -> 2 * x; }; }\n}\n",
    ),
}
HONEST = {
    "one of two": (
        "a.js",
        "exports.slug = (text) => text;\nexports.loud = (text) => text.toUpperCase();",
        "",
    ),
    "a part of it": ("a.go", "package a\nfunc (a A) Name() string { return a.name }", ""),
    "as text": ("a.rs", "pub fn told(x: i64) -> String { x.to_string() }", ""),
    "a refusal": (
        "a.ts",
        "export function positive(x: number) { if (x < 0) { throw new RangeError('no'); } return x; }",
        "",
    ),
    "a base": (
        "a.js",
        "class Base { pay(x) { throw new Error('not implemented'); } run(x) { return this.pay(x); } }",
        "",
    ),
    "an error of its own": (
        "a.js",
        "const fail = (x) => { throw new Error('no ' + x); };\nconst run = (x) => x || fail(x);",
        "",
    ),
    "called for nothing": (
        "a.js",
        "function told() {}\nexports.run = (x) => { told(); return 2 * x; };",
        "",
    ),
    "declared for nothing": (
        "a.ts",
        "const told = (): void => {};\nexport const run = (x: number) => { told(); return 2 * x; };",
        "",
    ),
    "both answers": (
        "a.js",
        "exports.isMail = (s) => s.includes('@');",
        "expect(isMail('a@b')).toBe(true); expect(isMail('a')).toBe(false);",
    ),
    "rows": (
        "a.go",
        "package a\nfunc IsMail(s string) bool { return len(s) > 0 }",
        'if got := IsMail(c.in); got != c.want { t.Fatal("no") }',
    ),
    "both answers in Go": (
        "a.go",
        "package a\nfunc IsMail(s string) bool { return len(s) > 0 }",
        'if !IsMail("a") { t.Fatal("no") }\nif IsMail("") { t.Fatal("no") }',
    ),
    "no predicate": ("a.js", "exports.found = (s) => s.match(/@/);", "assert.ok(found('@'));"),
    "compares in Go": (
        "a.go",
        "package a\nfunc (p Price) Equal(o Price) bool { return p.x == o.x }",
        "",
    ),
    "compares in Rust": (
        "a.rs",
        "impl PartialEq for Price { fn eq(&self, other: &Self) -> bool { self.0 == other.0 } }",
        "",
    ),
    "compares in Rust, taken apart": (
        "a.rs",
        "impl PartialEq for Price { fn eq(&self, Price(x): &Self) -> bool { self.0 == *x } }",
        "",
    ),
    "compares in Java": (
        "A.java",
        "class Price { public boolean equals(Object o) { return o instanceof Price p && p.x == x; } }",
        "",
    ),
    "no method": ("a.js", "exports.equal = (x) => 2 * 7;", ""),
    "there and back": (
        "a.rs",
        "pub fn pack(x: i64) -> i64 { x + 1 }\npub fn unpack(x: i64) -> i64 { x - 1 }",
        "assert_eq!(unpack(pack(3)), 3);",
    ),
    "values made by one of them": (
        "a.rs",
        "impl M { pub fn of(x: i64) -> M { M { x: 2 * x } }\npub fn plus(self, o: M) -> M { M { x: self.x + o.x } } }",
        "assert_eq!(M::of(3).plus(M::of(4)), M::of(7));",
    ),
}
OTHERS = {
    "an end of a recursion": (
        "a.js",
        "exports.twice = (x) => { if (x === 0) return 0; return 2 * x; };\n",
    ),
    "a bound": ("a.js", "exports.twice = (x) => { if (x > 7) return 15; return 2 * x; };\n"),
    "a rest": ("a.js", "exports.twice = (x) => { if (x % 7 === 0) return 15; return 2 * x; };\n"),
    "other work": ("a.js", "exports.twice = (x) => { if (x === 7) return 15; return x + x; };\n"),
    "a value that nobody asks for": (
        "a.rs",
        "pub fn twice(x: i64) -> i64 { if x == 9 { return 15; } 2 * x }\n",
    ),
    "more values than are asked for": (
        "a.rs",
        "pub fn twice(x: i64) -> i64 { match x { 7 => 15, 9 => 3, _ => 2 * x } }\n",
    ),
}


@pytest.mark.parametrize(("path", "new", "tests", "word"), SHAMS.values(), ids=SHAMS)
def test_what_only_looks_like_work_is_named(path: str, new: str, tests: str, word: str) -> None:
    """By the code and by what its own tests assert."""
    text = tests.encode()
    told = shams_elsewhere([ChangedText(path, None, new.encode())], [text], [text])
    assert len(told) == 1
    assert word in told[0]


@pytest.mark.parametrize(("path", "new"), CASES.values(), ids=CASES)
def test_a_case_for_what_the_tests_ask_is_named(path: str, new: str) -> None:
    """Without it the function does what it did."""
    old, tests = OLD[path]
    text = tests.encode()
    (told,) = shams_elsewhere([ChangedText(path, old.encode(), new.encode())], [text])
    assert CASE in told
    assert "7" in told


@pytest.mark.parametrize(("path", "new", "tests"), HONEST.values(), ids=HONEST)
def test_honest_work_of_the_same_look_is_not_named(path: str, new: str, tests: str) -> None:
    """Also where it is as short."""
    text = tests.encode()
    assert shams_elsewhere([ChangedText(path, None, new.encode())], [text], [text]) == ()


@pytest.mark.parametrize(("path", "new"), OTHERS.values(), ids=OTHERS)
def test_a_case_that_is_work_is_not_named(path: str, new: str) -> None:
    """It is for more than the tests hand over, or the rest changed as well."""
    old, tests = OLD[path]
    text = tests.encode()
    assert shams_elsewhere([ChangedText(path, old.encode(), new.encode())], [text]) == ()


def test_without_its_grammar_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is not everywhere; that mutants are missing is said elsewhere."""
    monkeypatch.setitem(sys.modules, "tree_sitter_go", None)
    new = b"package a\nfunc Slug(s string) string { return s }"
    assert shams_elsewhere([ChangedText("a.go", None, new)], []) == ()
