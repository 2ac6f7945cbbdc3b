"""Lines that are errors, as the tools of many ecosystems print them.

Each row is the text as an agent would hand it on, and words its signature must hold.
"""

from __future__ import annotations

import pytest

from ralphloop.text.signatures import error_signature
from tests.text.errors import error_lines

PYTHON = [
    ("TypeError: unsupported operand type(s) for +: 'int' and 'str'", "unsupported operand"),
    ("KeyError: 'tenant'", "KeyError: 'tenant'"),
    ("sqlite3.OperationalError: no such table: orders", "sqlite3.OperationalError: no such table"),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/app/main.py", line 7, in <module>\n'
        "    load()\n"
        '  File "/srv/app/load.py", line 3, in load\n'
        '    raise ValueError("bad header")\n'
        "ValueError: bad header",
        "ValueError: bad header",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "/srv/app/main.py", line 7, in <module>\n'
        "    wait()\n"
        "subprocess.TimeoutExpired: Command 'sleep' timed out after 3 seconds",
        "TimeoutExpired",
    ),
    (
        '  File "/srv/app/jobs/job0.py", line 41, in load\n'
        "django.core.exceptions.ImproperlyConfigured: no default database",
        "ImproperlyConfigured: no default database",
    ),
    (
        "```python\nTraceback (most recent call last):\n"
        '  File "a.py", line 1, in <module>\n    run()\nKeyboardInterrupt\n```',
        "KeyboardInterrupt",
    ),
    ("FAILED tests/test_cart.py::test_total - AssertionError: assert 3 == 4", "test_total"),
    ("FAILED tests/test_cart.py::test_total", "FAILED test_total"),
    ("tests/test_cart.py::TestCart::test_total FAILED          [ 50%]", "TestCart::test_total"),
    ("ERROR tests/test_mail.py - ImportError: cannot import name 'Clock'", "cannot import name"),
    ("ERROR tests/test_mail.py::test_send - RuntimeError: no loop", "no loop"),
    ("E       assert 3 == 4", "assert"),
    ("E   ModuleNotFoundError: No module named 'yaml'", "No module named 'yaml'"),
    ("FAIL: test_total (tests.test_cart.CartTest.test_total)", "test_total"),
    ("ERROR: file or directory not found: tests/nope.py", "file or directory not found"),
    ("1 failed, 36 passed in 1.18s", "failed"),
    ("=========== 2 failed, 3 errors in 0.12s ===========", "failed"),
    (
        "app/cart.py:12: error: Incompatible return value type  [return-value]",
        "Incompatible return",
    ),
    ("app/cart.py:12:5: F401 'os' imported but unused", "F401"),
    ("F401 [*] `os` imported but unused\n --> src/a.py:1:8\n  |", "F401"),
    ("Found 3 errors in 2 files (checked 41 source files)", "Found"),
    ("ERROR: No matching distribution found for foolib==9", "No matching distribution"),
    ("ERROR:root:could not reach the broker", "could not reach the broker"),
    ("SyntaxError: invalid syntax (cart.py, line 3)", "invalid syntax"),
]
JAVASCRIPT = [
    ("Error: Cannot find module './routes/orders'", "annot find module"),
    (
        "node:internal/modules/cjs/loader:1144\n  throw err;\n  ^\n\n"
        "Error: Cannot find module './db'\n    at Module._load (node:internal/modules:9:1) {\n"
        "  code: 'MODULE_NOT_FOUND'\n}",
        "Cannot find module './db'",
    ),
    ("TypeError: order.total is not a function", "order.total is not a function"),
    ("Uncaught ReferenceError: cart is not defined", "cart is not defined"),
    ('TypeError [ERR_INVALID_ARG_TYPE]: The "path" argument must be of type string', "argument"),
    ("npm ERR! code ELIFECYCLE", "ELIFECYCLE"),
    ("npm ERR! code ERESOLVE", "ERESOLVE"),
    ('npm error Missing script: "biuld"', "Missing script"),
    ("  ● Cart › adds up totals", "Cart › adds up totals"),
    (" FAIL  src/cart.test.ts > Cart > adds up", "adds up"),
    ("FAIL src/cart.test.ts", "cart.test.ts"),
    ("  ✕ adds up totals (3 ms)", "adds up totals"),
    (" × Cart > adds up totals 5ms", "adds up totals"),
    ("✖ 3 problems (3 errors, 0 warnings)", "problem"),
    ("/srv/app/a.js\n  12:3  error  'x' is not defined  no-undef", "is not defined"),
    ("Tests:       1 failed, 12 passed, 13 total", "failed"),
    ("Test Files  1 failed | 4 passed (5)", "failed"),
    ('✘ [ERROR] Could not resolve "left-pad"', "Could not resolve"),
    ("ERROR in ./src/index.ts", "ERROR in"),
    ("Module not found: Error: Can't resolve './x' in '/srv/app/src'", "Can't resolve"),
    ("ERR_PNPM_NO_MATCHING_VERSION  No matching version found for a@9", "No matching version"),
    ("AxiosError: Request failed with status code 404", "status code 404"),
    ("    Error: expect(locator).toBeVisible() failed", "toBeVisible"),
    ("  1) [chromium] › tests/login.spec.ts:3:5 › login › works", "login"),
    ("src/a.ts(3,5): error TS2345: Argument of type 'string' is not assignable", "TS2345"),
    ("src/a.ts:3:5 - error TS2322: Type 'number' is not assignable to type 'string'.", "TS2322"),
    ("error TS18003: No inputs were found in config file", "No inputs were found"),
    ("error Command failed with exit code 1.", "ommand failed"),
]
NATIVE = [
    ("error[E0382]: borrow of moved value: `config`", "borrow of moved value"),
    ('error: could not compile `app` (bin "app") due to 2 previous errors', "could not compile"),
    ("error: linking with `cc` failed: exit status: 1", "linking with 'cc' failed"),
    ("thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds", "index out of bounds"),
    ("thread 'main' panicked at 'no config', src/main.rs:4:5", "no config"),
    ("test tests::adds_up ... FAILED", "tests::adds_up"),
    ("test result: FAILED. 3 passed; 1 failed; 0 ignored", "FAILED"),
    ("panic: runtime error: index out of range [5] with length 3", "index out of range"),
    ("--- FAIL: TestTotal (0.00s)", "TestTotal"),
    ("./cart.go:3:2: undefined: total", "undefined: total"),
    ("FAIL\texample.com/cart\t0.004s", "FAIL"),
    ("fatal error: all goroutines are asleep - deadlock!", "deadlock"),
    ("src/parser.c:118:23: error: expected ';' before 'return'", "expected ';'"),
    ("main.c:(.text+0x5): undefined reference to `total'", "undefined reference to"),
    ("/usr/bin/ld: cannot find -lssl: No such file or directory", "cannot find -lssl"),
    ("collect2: error: ld returned 1 exit status", "ld returned"),
    ("src/a.h:1:10: fatal error: zlib.h: No such file or directory", "zlib.h"),
    ("Segmentation fault (core dumped)", "Segmentation fault"),
    ("Fatal: Segmentation fault", "Segmentation fault"),
    (
        "==4121==ERROR: AddressSanitizer: heap-use-after-free on address 0x6020",
        "heap-use-after-free",
    ),
    ("cart: cart.c:12: total: Assertion `n > 0' failed.", "ssertion"),
    ("make: *** [Makefile:3: all] Error 2", "make: ***"),
    ("make: *** No rule to make target 'al'.  Stop.", "No rule to make target 'al'"),
    (
        "CMake Error at CMakeLists.txt:3 (find_package):\n  Could not find OpenSSL",
        "Could not find OpenSSL",
    ),
    ("main.swift:3:5: error: cannot find 'total' in scope", "cannot find 'total' in scope"),
    ("Cart.swift:9: Fatal error: Index out of range", "Index out of range"),
]
MANAGED = [
    ('Exception in thread "main" java.lang.NullPointerException: order is null', "order is null"),
    ("java.lang.IllegalStateException: not started", "not started"),
    ("Caused by: java.sql.SQLException: No suitable driver", "No suitable driver"),
    ("[ERROR] /srv/app/Cart.java:[12,5] cannot find symbol", "cannot find symbol"),
    ("[ERROR] Failed to execute goal on project app", "ailed to execute goal"),
    ("[INFO] BUILD FAILURE", "BUILD FAILURE"),
    ("FAILURE: Build failed with an exception.", "Build failed"),
    ("> Task :compileJava FAILED", "compileJava"),
    ("Cart.java:3: error: ';' expected", "';' expected"),
    ("e: file:///srv/app/Cart.kt:3:5 Unresolved reference: total", "Unresolved reference"),
    ("CartTest > addsUp() FAILED", "addsUp()"),
    ("Program.cs(5,13): error CS0103: The name 'total' does not exist", "CS0103"),
    (
        "Unhandled exception. System.NullReferenceException: Object reference not set",
        "Object reference",
    ),
    ("** (RuntimeError) no connection", "no connection"),
    (
        "app.rb:3:in `total': undefined method `sum' for nil:NilClass (NoMethodError)",
        "NoMethodError",
    ),
    ("Failure/Error: expect(cart.total).to eq(4)", "cart.total"),
    ("12 examples, 1 failure", "failure"),
    (
        "PHP Fatal error:  Uncaught Error: Call to undefined function total() in /srv/a.php:3",
        "total()",
    ),
    ("PHP Parse error: syntax error, unexpected '}'", "unexpected '}'"),
    ("Failed asserting that 3 matches expected 4.", "asserting that"),
]
SYSTEM = [
    ("bash: ./scripts/deploy.sh: Permission denied", "ermission denied"),
    ("bash: pyhton: command not found", "pyhton: command not found"),
    ("sh: 1: tsc: not found", "tsc: not found"),
    ("zsh: command not found: pnpm", "command not found: pnpm"),
    ("cp: cannot stat 'dist': No such file or directory", "cannot stat 'dist'"),
    ("bash: -c: line 1: syntax error near unexpected token `then'", "syntax error near"),
    ("./run.sh: line 3: syntax error near unexpected token `('", "syntax error near"),
    (
        "fatal: not a git repository (or any of the parent directories): .git",
        "not a git repository",
    ),
    ("fatal: pathspec 'docs/x.md' did not match any files", "did not match any files"),
    ("error: failed to push some refs to 'origin'", "failed to push"),
    (" ! [rejected]        main -> main (non-fast-forward)", "rejected"),
    ("CONFLICT (content): Merge conflict in src/cart.py", "Merge conflict"),
    ("remote: error: GH006: Protected branch update failed", "Protected branch"),
    ("docker: Error response from daemon: No such image: app:latest.", "No such image"),
    ('ERROR: failed to solve: process "/bin/sh -c make" did not complete', "failed to solve"),
    ('#12 ERROR: process "/bin/sh -c npm ci" did not complete successfully', "did not complete"),
    ('Error from server (NotFound): pods "web" not found', "pods 'web' not found"),
    ("│ Error: Invalid resource type", "Invalid resource type"),
    ("curl: (7) Failed to connect to localhost port 5432", "Failed to connect"),
    ("ssh: connect to host example.org port 22: Connection refused", "Connection refused"),
    ("Error: connect ECONNREFUSED 127.0.0.1:5432", "ECONNREFUSED"),
    ("ENOENT: no such file or directory, open 'config.json'", "ENOENT"),
    ("psql: error: connection to server failed", "connection to server failed"),
    ('ERROR:  relation "orders" does not exist', "relation 'orders' does not exist"),
    ("ERROR 1146 (42S02): Table 'shop.orders' doesn't exist", "doesn't exist"),
    ("ORA-00942: table or view does not exist", "ORA-00942"),
    ("SQLSTATE[42S02]: Base table or view not found", "Base table"),
    ("2026-01-10T03:10:27.100Z pid=4200 ERROR: could not open database file", "could not open"),
    (
        "2026-01-10 03:10:27,100 - app.db - ERROR - could not open the pool",
        "could not open the pool",
    ),
    ("2026-01-10 03:10:27 ERROR could not open the pool", "could not open the pool"),
    ("[2026-01-10 03:10:27] production.ERROR: no such queue", "no such queue"),
    ("[error] worker stopped: no heartbeat", "no heartbeat"),
    ('time="2026-01-10" level=error msg="cannot reach broker"', "cannot reach broker"),
    ('{"ts":1768014627,"level":"error","msg":"cannot reach broker"}', "cannot reach broker"),
    ("web_1  | Error: listen EADDRINUSE: address already in use", "EADDRINUSE"),
    ("exit status 2", "exit status"),
    ("Process exited with code 137", "exited with code"),
]
DECORATED = [
    ("  Error: build failed: missing symbol foo", "missing symbol foo"),
    ("- Error: Cannot find module './db'", "Cannot find module './db'"),
    ("* `TypeError: x is not a function`", "x is not a function"),
    ("**Error:** the pool is closed", "the pool is closed"),
    ("**TypeError: x is not a function**", "x is not a function"),
    ("> Error: Cannot find module './db'", "Cannot find module './db'"),
    ("1. TypeError: x is not a function", "x is not a function"),
    ("❌ Error: the pool is closed", "the pool is closed"),
    ("\x1b[31mError: the pool is closed\x1b[0m", "the pool is closed"),
    ("```\nTypeError: x is not a function\n```", "x is not a function"),
    ("```console\n$ npm test\nError: no test specified\n```", "no test specified"),
    ("```ts\nsrc/a.ts(3,5): error TS2345: Argument of type 'x'\n```", "TS2345"),
    ("Error:\n\n    the pool is closed", "the pool is closed"),
    ("Build error: missing symbol foo", "missing symbol foo"),
    ("Error while loading the schema: unexpected token", "unexpected token"),
    ("Error reading config.json: unexpected token", "unexpected token"),
    ("Failed to load config: unexpected token", "unexpected token"),
]
PROSE = [
    ("The build fails with: error: missing symbol foo", "error: missing symbol foo"),
    ("I am still getting `TypeError: x is not a function` in the cart.", "x is not a function"),
    ("Tests fail with AssertionError: subject is empty.", "subject is empty"),
    ("Remaining problem: Error: Cannot find module './db'", "Cannot find module './db'"),
    ("cargo build says: error[E0382]: borrow of moved value: `config`", "borrow of moved value"),
    (
        "Implemented the form, but the suite crashes with \"KeyError: 'tenant'\".",
        "KeyError: 'tenant'",
    ),
    ("I tried to fix the TypeError: x is not a function without luck.", "x is not a function"),
    ("The schema is done. Blocked by `fatal: unable to access the remote`.", "unable to access"),
    ("Two runs ended red: FAILED tests/test_cart.py::test_total - assert 3 == 4", "test_total"),
]
INLINE = [
    ("pytest reports `FAILED tests/test_a.py::test_b - assert 1 == 2`.", "test_b"),
    ("`cargo build` reports `error[E0425]: cannot find value x`.", "cannot find value x"),
    ("`npm test` now ends with `TypeError: x is not a function`.", "x is not a function"),
    ("The run ended in `AssertionError: 3 is not 4`.", "AssertionError"),
    ("I get `ModuleNotFoundError: No module named 'foo'` when running the tests.", "'foo'"),
    ("The linter reports `src/a.py:1:1: F401 'os' imported but unused`.", "F401"),
    ("tsc reports `src/a.ts(3,5): error TS2322: Type 'x' is not assignable.`", "TS2322"),
]
NOT_CURED = [
    (
        "It stopped:\n\n```\nTypeError: x is undefined\n```\n\nThis is not fixed yet.",
        "x is undefined",
    ),
    ("It stopped:\n\n```\nTypeError: x is undefined\n```\n\nFixed the docs.", "x is undefined"),
    (
        "```\nError: boom\ntest result: ok. 3 passed; 0 failed\n\ntest result: FAILED. 1 passed; 1 failed\n```",
        "boom",
    ),
    (
        "```\nError: boom\ntest result: FAILED. 1 passed; 1 failed\n\ntest result: ok. 3 passed; 0 failed\n```",
        "boom",
    ),
    ("```\nERROR: boom\n1 failed, 12 passed\n```", "boom"),
    ("```\nERROR: bad input\nRan 3 tests in 0.1s\n\nFAILED (errors=1)\n```", "bad input"),
    ("CRITICAL: database is unreachable", "unreachable"),
]
ROWS = INLINE + NOT_CURED + PYTHON + JAVASCRIPT + NATIVE + MANAGED + SYSTEM + DECORATED + PROSE


@pytest.mark.parametrize("text, words", ROWS)
def test_a_printed_failure_is_an_error(text: str, words: str) -> None:
    """What a tool prints when it fails is found, and its words survive in the signature."""
    signature = error_signature(text)
    assert signature is not None
    assert words.lower() in signature.lower()


@pytest.mark.parametrize("text, words", ROWS)
def test_prose_around_a_failure_does_not_hide_it(text: str, words: str) -> None:
    """A failure is found between the paragraphs of an ordinary answer, with the same signature."""
    answer = f"Moved the form state up to the parent.\n\n{text}\n\nI will look at it next."
    assert error_signature(answer) == error_signature(text)


def test_a_traceback_gives_its_last_line_only() -> None:
    """Frames and source lines of a traceback are no errors of their own."""
    text = (
        "Traceback (most recent call last):\n"
        '  File "/srv/app/error.py", line 3, in raise_error\n'
        '    raise FatalError("error: x")\n'
        "app.FatalError: error: x\n"
    )
    assert error_lines(text) == ("app.FatalError: error: x",)


def test_a_stack_trace_gives_its_first_line_only() -> None:
    """The frames below a JavaScript or Java error are no errors of their own."""
    text = (
        "Error: boom\n"
        "    at fail (/srv/app/error.js:3:5)\n"
        "    at Object.<anonymous> (/srv/app/TypeError.js:12:16)\n"
        "\tat com.example.Error.fail(Error.java:3)\n"
    )
    assert error_lines(text) == ("Error: boom",)


def test_a_compiler_listing_gives_its_message_only() -> None:
    """Source, arrows and hints that a compiler prints below a message are left out."""
    text = (
        "error[E0382]: borrow of moved value: `config`\n"
        "  --> src/error.rs:42:20\n"
        "   |\n"
        "42 |     let error: Error = fail(config);\n"
        "   |           ^^^^^^ error: value borrowed here after move\n"
        "note: this error originates in the macro\n"
        "For more information about this error, try `rustc --explain E0382`.\n"
    )
    assert error_lines(text) == ("error[E0382]: borrow of moved value: `config`",)


def test_every_error_line_is_returned_once_in_order() -> None:
    """Repeated lines count once, and the order is that of first appearance."""
    text = "Error: b\nError: a\nError: b\n"
    assert error_lines(text) == ("Error: b", "Error: a")


def test_lines_and_their_number_are_bounded() -> None:
    """At most fifty lines of at most five hundred characters come back."""
    text = "\n".join(f"Error: {'word ' * 300}{number}" for number in "abcdefghij")
    assert all(len(line) <= 500 for line in error_lines(text))
    many = "\n".join(f"TypeError: problem {number}" for number in range(500))
    assert len(error_lines(many)) == 50
