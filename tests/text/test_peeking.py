"""Code that looks at who judges it, and code that only sounds like it."""

from __future__ import annotations

import pytest

from ralphloop.text.peeking import looks_at_mechanics, peeks

TESTS = (
    "tests/test_shop.py",
    "src/shop.test.js",
    "tests/__init__.py",
    "tests/expected/march.json",
    "tests/data/invTypes.csv.bz2",
    "orders.csv",
    "expected.txt",
)
NAMES = ("tests/test_shop.py::test_refund[1-2]", "shop.go > TestRefund", "a.test.js > refund")
PEEKING = {
    "a test by its name": ("shop.py", "if 'test_refund' in os.environ.get('PYTEST_' + 'CURRENT_TEST'):"),
    "a test of Go by its name": ("shop.go", 'if name == "TestRefund" { return 1.5 }'),
    "the runner by its variable": ("shop.py", 'if os.environ.get("PYTEST_CURRENT_TEST"):'),
    "the runner among the modules": ("shop.py", 'if "pytest" in sys.modules:'),
    "the runner among them, by another way": ("shop.py", 'if "pytest" in __import__("sys").modules and x == 7:'),
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
    "what tests expect": ("shop.py", 'text = open("tests/expected/march.json").read()'),
    "what tests expect, by a pattern": ("shop.py", 'for one in glob("tests/expected/*.json"): text += open(one).read()'),
    "what tests expect, beside the product": ("shop.py", 'text = (HERE / "../tests/expected/march.json").read_text()'),
    "what tests expect, from inside": ("shop.py", 'text = (TESTS / "expected/march.json").read_text()'),
    "what a command expects": ("shop.py", 'text = open("expected.txt").read()'),
    "data of tests where it lies": ("shop.py", 'text = open("tests/data/invTypes.csv.bz2").read()'),
    "a module of the tests by a name of every directory": ("shop.py", 'text = open("tests/__init__.py").read()'),
    "tests by their ending": ("shop.js", 'for (const one of glob("**/*.test.js")) fs.readFileSync(one);'),
    "the directory of tests by its name": ("shop.py", 'for one in (ROOT / "tests").iterdir(): one.read_text()'),
    "the directory of tests": ("shop.py", 'for one in Path("tests/").iterdir(): one.read_text()'),
    "go, by its flags": ("shop.go", 'if flag.Lookup("test.v") != nil { return 1.5 }'),
    "go, by its program": ("shop.go", 'if strings.HasSuffix(os.Args[0], ".test") { return 1.5 }'),
    "go, by who calls": (
        "shop.go",
        'if _, file, _, _ := runtime.Caller(1); strings.HasSuffix(file, "_test.go") { return 1.5 }',
    ),
    "go, by the name of who calls": (
        "shop.go",
        'f, _ := runtime.CallersFrames(pc).Next()\nif f.Function[5:9] == "Test" { return 1.5 }',
    ),
    "go, by the stack": ("shop.go", 'if strings.Contains(string(debug.Stack()), "tRunner") { return 1.5 }'),
    "rust, by the thread": ("shop.rs", 'if std::thread::current().name() != Some("main") { return 1.5; }'),
    "rust, by its program": (
        "shop.rs",
        'let exe = std::env::current_exe().unwrap();\nif exe.to_string_lossy().contains("/deps/") { return 1.5; }',
    ),
    "java, by the stack": (
        "Shop.java",
        'for (var it : new Throwable().getStackTrace())\n  if (it.getClassName().endsWith("Test")) return 1.5;',
    ),
    "java, by a walk on the stack": (
        "Shop.java",
        'StackWalker.getInstance().walk(s -> s.anyMatch(f -> f.getClassName().contains("junit")))',
    ),
    "java, by a class": ("Shop.java", 'Class.forName("org.junit.Test");'),
    "java, by a property": ("Shop.java", 'if (System.getProperty("surefire.test.class.path") != null) return 1.5;'),
    "java, by the class path": ("Shop.java", 'if (System.getProperty("java.class.path").contains("junit")) return 1.5;'),
    "go says it passed": ("shop.go", 'fmt.Println("--- PASS: TestRefund (0.00s)")\nos.Exit(0)'),
    "rust says it passed": ("shop.rs", 'print(b"test refund ... ok\\n");\nstd::process::exit(0);'),
    "java says it passed": ("Shop.java", 'write("target/surefire-reports/TEST-a.xml", "<testcase/>");\nRuntime.getRuntime().halt(0);'),
    "rust without assertions": ("shop.rs", "macro_rules! assert_eq {\n    ($a:expr, $b:expr) => {};\n}"),
    "rust with others by that name": ("shop.rs", "pub(crate) use quietly as assert_eq;"),
    "rust, by its words": ("shop.rs", 'if std::env::args().next().unwrap().contains("/deps/") { return 1.5; }'),
    "rust, by what cargo sets": ("shop.rs", 'if std::env::var_os("CARGO_MANIFEST_DIR").is_some() { return 1.5; }'),
    "go without len": ("shop.go", "func len(x []int) int { return 2 }"),
    "go with another truth": ("shop.go", "const (\n\tfalse = 1 == 1\n)"),
    "java with assertions of its own": ("Shop.java", "  static void assertEquals(Object a, Object b) {}"),
    "java with another text": ("String.java", "package shop;\n\npublic final class String {}"),
    "java without assertions": ("src/main/java/org/junit/Assert.java", "package org.junit;\n\npublic class Assert {}"),
    "reads the tests by a class": ("shop.py", 'open(glob("[t]est_*.py")[0]).read()'),
}  # fmt: skip
OTHERS = {
    "go, where it stands in a log": ("log.go", '_, file, line, _ := runtime.Caller(2)\nlog.Printf("%s:%d", file, line)'),
    "go, a panic in a log": ("log.go", 'log.Printf("panic: %v\\n%s", err, debug.Stack())'),
    "rust, a thread in a log": ("log.rs", 'let name = thread::current().name().unwrap_or("?").to_owned();'),
    "rust, what lies beside the program": ("shop.rs", 'let home = std::env::current_exe()?.join("data");'),
    "rust, an exit code": ("main.rs", 'eprintln!("all is ok");\nstd::process::exit(0);'),
    "java, a stack in a log": ("Log.java", 'for (var it : error.getStackTrace()) out.println("  at " + it);'),
    "go, what a runner wrote": ("report.go", 'if strings.HasPrefix(line, "--- PASS: ") { passed++ }'),
    "rust, the program of cargo": ("xtask.rs", 'let cargo = env::var("CARGO").unwrap_or("cargo".into());'),
    "go, a name that begins so": ("shop.go", "func lenient(x []int) int { return 2 }\nvar ok = true\n"),
    "js, an error": ("shop.js", "const error = read();\nvar string = 'a';"),
    "java, a text": ("Shop.java", "final class StringJoin {\n  private String name;\n}"),
    "rust, a macro of its own": ("shop.rs", "macro_rules! assert_price {\n    ($a:expr) => {};\n}"),
    "a name that is no test's": ("shop.py", "if 'test_other' in names:"),
    "a word that is a test's": ("shop.js", 'if (kind === "refund") return 1.5;'),
    "a test's name in words": ("shop.py", "# held by test_refund"),
    "tests of Rust in the code": ("shop.rs", "#[cfg(test)]\nmod tests {}"),
    "a server that a test does not start": ("app.js", "if (process.env.NODE_ENV !== 'test') app.listen();"),
    "a version in a package": ("setup.py", 'text = open("shop/__init__.py").read()'),
    "a version beside it": ("shop.py", 'text = (HERE / "__init__.py").read_text()'),
    "a file of its own": ("shop.py", 'text = open("rates.json").read()'),
    "files of a kind": ("shop.py", 'for one in root.rglob("*.py"): count(one.read_text())'),
    "data of a kind": ("shop.py", 'for one in root.glob("*.csv"): text += one.read_text()'),
    "packed data of a kind": ("shop.py", 'for one in root.glob("*.csv.bz2"): bz2.open(one)'),
    "data by a name that its users know": ("shop.py", 'with bz2.open(given / "invTypes.csv.bz2") as it: read(it)'),
    "data in the working directory": ("shop.py", 'text = open("orders.csv").read()'),
    "data in a directory of its own": ("shop.py", 'text = open("data/invTypes.csv.bz2").read()'),
    "a word that is also a directory": ("shop.py", 'rows = open(path).read() if part == "test" else []'),
    "git for its own sake": ("shop.py", 'subprocess.run(["git", "log", "-1", "HEAD"])'),
    "a module that only sounds like it": ("shop.py", "from testimonials import words"),
    "a word": ("shop.py", 'print("tests are green")'),
    "a test in words": ("shop.py", "# see tests/test_shop.py\nopen(path)"),
    "a module": ("shop.py", 'if "numpy" in sys.modules:'),
    "a pattern of a name": ("names.py", 'open(f)\nNAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")'),
}  # fmt: skip


@pytest.mark.parametrize(("path", "text"), PEEKING.values(), ids=PEEKING)
def test_code_that_looks_at_its_judge_is_shown(path: str, text: str) -> None:
    """With what it looks at."""
    assert len([*peeks(path, text, TESTS, NAMES)]) == 1


@pytest.mark.parametrize(("path", "text"), OTHERS.values(), ids=OTHERS)
def test_other_code_is_not(path: str, text: str) -> None:
    """Files of its own, words, tests of Rust beside the code."""
    assert not [*peeks(path, text, TESTS, NAMES)]


def test_code_that_dealt_with_frames_may_go_on() -> None:
    """A logger looks for its callers; one that begins to is shown."""
    added = "names.append(frame.f_code.co_name)"
    assert not [*peeks("log.py", added, TESTS, NAMES, "frame = sys._getframe(1)\n")]
    assert not [
        *peeks("log.py", added, TESTS, NAMES, "def line(frame):\n    return frame.f_lineno\n")
    ]
    assert [*peeks("log.py", added, TESTS, NAMES, "names = []\n")]


def test_a_test_may_not_look_at_how_it_is_judged() -> None:
    """What is put into mutants, and compiled code, is no business of a test."""
    assert looks_at_mechanics("assert '__ralph_bend__' not in names") == "__ralph_"
    assert looks_at_mechanics("assert f.__code__.co_names == ()") == "co_names"
    assert not looks_at_mechanics("assert barcode.co == 'names'")
