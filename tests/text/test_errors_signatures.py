"""Which failures are the same: pairs that must be equal and pairs that must not."""

from __future__ import annotations

import pytest

from ralphloop.text.signatures import error_signature

SAME = [
    (
        "TypeError: x is not a function\n    at load (/srv/app/src/job0.ts:41:7)",
        "TypeError: x is not a function\n    at save (/srv/app/src/job7.ts:48:14)",
    ),
    (
        '  File "/srv/app/jobs/job0.py", line 41, in load\nsqlite3.OperationalError: locked',
        '  File "/home/ci/jobs/job9.py", line 7, in load\nsqlite3.OperationalError: locked',
    ),
    (
        "src/lexer.c:88:5: error: unknown type name 'token_t'\nbuild id 9f0c2e7a0b41",
        "src/lexer.c:92:9: error: unknown type name 'token_t'\nbuild id 9f4c2e7a4b41",
    ),
    (
        "src/lexer.c:88:5: error: unknown type name 'token_t'",
        "src/parser.c:3:1: error: unknown type name 'token_t'",
    ),
    (
        "src/a.ts(3,5): error TS2345: Argument of type 'x'",
        "src/b.ts:9:1 - error TS2345: Argument of type 'x'",
    ),
    (
        "2026-01-10T03:10:27.100Z pid=4200 ERROR: could not open database file /tmp/pytest-0/db.sqlite",
        "2026-01-14T03:14:27.104Z pid=4252 ERROR: could not open database file /tmp/pytest-4/db.sqlite",
    ),
    (
        "[12:00:01] ERROR: could not open database file",
        "Jan 10 03:10:27 host app[123]: ERROR: could not open database file",
    ),
    (
        "error: linker `cc` exited with code 1 after 1.5 s in /var/tmp/build-04f0/out",
        "error: linker `cc` exited with code 3 after 310 ms in /var/tmp/build-24f2/out",
    ),
    (
        "FileNotFoundError: [Errno 2] No such file or directory: '/home/ci/app/config.json'",
        "FileNotFoundError: [Errno 2] No such file or directory: '/srv/work/config.json'",
    ),
    (
        "PermissionError: [Errno 13] Permission denied: '/tmp/tmpab12cd9x/x.lock'",
        "PermissionError: [Errno 13] Permission denied: '/tmp/tmpzzk3_q0a/y.lock'",
    ),
    ("Error: connect ECONNREFUSED 127.0.0.1:5432", "Error: connect ECONNREFUSED 10.0.0.7:49152"),
    (
        "Error: order 1c6a7b1e-52f7-4c4e-9d5a-6a5a3a5f0b11 not found",
        "Error: order 9b2d8f00-1111-4222-8333-444455556666 not found",
    ),
    ("Error: bad object 9f0c2e7a", "Error: bad object 1b2c3d4e5f60718293a4b5c6d7e8f90112233445"),
    ("KeyError: 'order-8231'", "KeyError: 'order-17'"),
    ("ValueError: invalid id 'req_9fK2xQ7p3'", "ValueError: invalid id 'req_1aB3cD5e7'"),
    ("Error: no such row xy12zz34", "Error: no such row kp7wvq51"),
    ("Error: bad statement (PAY001, line 3)", "Error: bad statement (PAY002, line 9)"),
    (
        "TypeError: <Cart object at 0x7f3a1c> has no len()",
        "TypeError: <Cart object at 0x55d2> has no len()",
    ),
    (
        "java.lang.IllegalStateException: Foo@1a2b3c4d",
        "java.lang.IllegalStateException: Foo@9c8b7a6f",
    ),
    ("Error: Timeout 30000ms exceeded", "Error: Timeout 5s exceeded"),
    ("Error: heap limit 512 MB reached", "Error: heap limit 2 GiB reached"),
    (
        "AssertionError: assert Decimal('10.01') == 3",
        "AssertionError: assert Decimal('9.99') == -4.5",
    ),
    (
        "FAILED tests/test_cart.py::test_total[3-4] - assert 3 == 4",
        "FAILED tests/unit/test_cart.py::test_total[5-7] - assert 5 == 7",
    ),
    ("--- FAIL: TestTotal (0.00s)", "--- FAIL: TestTotal (1.27s)"),
    ("  ✕ adds up totals (3 ms)", "  ✕ adds up totals (41 ms)"),
    ("not ok 3 - adds up", "not ok 17 - adds up"),
    ("./cart.go:3:2: undefined: total", "./cart.go:77:10: undefined: total"),
    ("app.rb:3:in `total': nope (NoMethodError)", "lib/app.rb:9:in `total': nope (NoMethodError)"),
    (
        "SyntaxError: invalid syntax (cart.py, line 3)",
        "SyntaxError: invalid syntax (order.py, line 9)",
    ),
    ("\x1b[1;31merror\x1b[0m: missing symbol foo", "error: missing symbol foo"),
    ("- `Error: the pool is closed`", "    Error: the pool is closed."),
    ("**Error:** the pool is closed", "> Error: the pool is closed"),
    (
        "Error: the pool is closed",
        "Tests still fail with `Error: the pool is closed`, no idea why.",
    ),
    (
        "thread 'main' panicked at src/a.rs:4:5:\nno config",
        "thread 'main' panicked at src/b.rs:9:1:\nno config",
    ),
    ("error: unknown type name ‘token_t’", "error: unknown type name 'token_t'"),
    ("Error: no such table: orders", "Error: no such table: orders\nError: no such table: orders"),
    (
        "C:\\Users\\ann\\app\\a.ts(3,5): error TS2322: Type 'x'",
        "D:\\ci\\app\\b.ts(30,51): error TS2322: Type 'x'",
    ),
    (
        "Error: cannot read C:\\Users\\ann\\app\\a.txt",
        "Error: cannot read C:\\Users\\bob\\app\\a.txt",
    ),
    (
        "Error: build of Sat, 10 Jan 2026 03:10:27 is broken",
        "Error: build of Mon, 2 Feb 2026 17:00:01 is broken",
    ),
    (
        "TypeError: x is not a function at /srv/a/cart.js:12:3",
        "TypeError: x is not a function at /srv/b/order.js:4:1",
    ),
    (
        "PHP Fatal error: boom in /srv/a.php on line 3",
        "PHP Fatal error: boom in /srv/b.php on line 99",
    ),
    (
        "KeyError: 'tenant'",
        "`test_refund` still fails with `KeyError: 'tenant'`.",
    ),
]
NOISE_AROUND = [
    ("src/a.c:1:2: error: expected ';'", "make: *** [Makefile:3: all] Error 2"),
    (
        "error[E0382]: borrow of moved value: `x`",
        "error: could not compile `app` due to 2 previous errors",
    ),
    (
        "Error: Cannot find module './db'",
        "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! Exit status 1",
    ),
    ("FAILED tests/test_a.py::test_b - KeyError: 'x'", "1 failed, 36 passed in 1.18s"),
    (
        "FAILED tests/test_a.py::test_b - KeyError: 'x'",
        "E       KeyError: 'x'\n\ntests/test_a.py:5: KeyError",
    ),
    (
        "FAILED tests/test_a.py::test_b - assert 1 == 2",
        ">       assert total() == 2\nE       assert 1 == 2",
    ),
    (
        "[ERROR] /srv/Cart.java:[12,5] cannot find symbol",
        "[INFO] BUILD FAILURE\n[ERROR] COMPILATION ERROR :",
    ),
    ("--- FAIL: TestTotal (0.00s)", "FAIL\nFAIL\texample.com/cart\t0.004s\nexit status 1"),
    ("  ● Cart › adds up", "FAIL src/cart.test.ts\nTests:       1 failed, 12 passed, 13 total"),
    ("TypeError: x is not a function", "Process exited with code 1"),
    ("test tests::adds_up ... FAILED", "test result: FAILED. 3 passed; 1 failed; 0 ignored"),
    (
        "Cart.java:3: error: ';' expected",
        "FAILURE: Build failed with an exception.\nBUILD FAILED in 3s",
    ),
    ("/usr/bin/ld: cannot find -lssl", "collect2: error: ld returned 1 exit status"),
]
DIFFERENT = [
    "Error: Cannot find module './db'",
    "Error: Cannot find module './routes/orders'",
    "Error: Cannot find module 'k./db'",
    "TypeError: order.total is not a function",
    "TypeError: order.sum is not a function",
    "ReferenceError: order is not defined",
    "src/a.c:3:1: error: unknown type name 'foo_t'",
    "src/a.c:3:1: error: unknown type name 'token_t'",
    "src/a.c:3:1: error: expected ';' before 'return'",
    "src/a.c:3:1: error: expected ')' before 'return'",
    "FAILED tests/test_mail.py::test_subject - AssertionError: subject is empty",
    "FAILED tests/test_mail.py::test_body - AssertionError: subject is empty",
    "FAILED tests/test_mail.py::test_case_1 - AssertionError: subject is empty",
    "FAILED tests/test_mail.py::test_case_2 - AssertionError: subject is empty",
    "FAILED tests/test_mail.py::test_subject - KeyError: 'subject'",
    "FAILED tests/test_step_a.py - AssertionError: step a is missing",
    "FAILED tests/test_step_b.py - AssertionError: step b is missing",
    "fatal: pathspec 'docs/x.md' did not match any files",
    "fatal: pathspec 'docs/y.md' did not match any files",
    "ImportError: cannot import name 'Clock' from 'app.time'",
    "ImportError: cannot import name 'Timer' from 'app.time'",
    "ImportError: cannot import name 'Clock' from 'app.clock'",
    "error[E0599]: no method named `trim_all` found for struct `Row`",
    "error[E0382]: borrow of moved value: `config`",
    "error[E0382]: borrow of moved value: `client`",
    "sqlite3.OperationalError: no such table: orders",
    "sqlite3.OperationalError: no such table: users",
    "sqlite3.OperationalError: database is locked",
    "error TS2345: Argument of type 'x' is not assignable",
    "error TS2322: Argument of type 'x' is not assignable",
    "AxiosError: Request failed with status code 404",
    "AxiosError: Request failed with status code 500",
    "bash: pyhton: command not found",
    "bash: nmp: command not found",
    "bash: ./scripts/deploy.sh: Permission denied",
    "bash: ./scripts/build.sh: Permission denied",
    "FileNotFoundError: [Errno 2] No such file or directory: '/srv/app/config.json'",
    "FileNotFoundError: [Errno 2] No such file or directory: '/srv/app/orders.csv'",
    "--- FAIL: TestTotal (0.00s)",
    "--- FAIL: TestTotal2 (0.00s)",
    "./cart.go:3:2: undefined: total",
    "./cart.go:3:2: undefined: sum",
    "app/cart.py:12:5: F401 'os' imported but unused",
    "app/cart.py:12:5: F841 local variable 'os' is assigned to but never used",
    "ORA-00942: table or view does not exist",
    "ORA-00904: table or view does not exist",
    "java.lang.NullPointerException: order is null",
    "java.lang.IllegalStateException: order is null",
    "npm ERR! code ERESOLVE",
    "npm ERR! code E404",
]


@pytest.mark.parametrize("one, other", SAME)
def test_the_same_failure_in_another_place_is_the_same(one: str, other: str) -> None:
    """Places, numbers, times, hashes, ids, decoration and colours do not make a new failure."""
    assert error_signature(one) is not None
    assert error_signature(one) == error_signature(other)


@pytest.mark.parametrize("failure, noise", NOISE_AROUND)
def test_noise_around_a_failure_does_not_change_it(failure: str, noise: str) -> None:
    """Summaries, wrappers and details count only where nothing specific is said."""
    assert error_signature(f"{failure}\n{noise}") == error_signature(failure)
    assert error_signature(f"{noise}\n{failure}") == error_signature(failure)
    assert error_signature(noise) is not None


@pytest.mark.parametrize("one", DIFFERENT)
def test_two_failures_a_person_would_call_different_differ(one: str) -> None:
    """Another exception, code, message, name or test is another failure."""
    signature = error_signature(one)
    assert signature is not None
    assert [other for other in DIFFERENT if error_signature(other) == signature] == [one]


def test_a_signature_reads_like_the_error() -> None:
    """What the report shows is the error itself, with placeholders for the noise."""
    text = (
        "2026-01-10 03:10:27 ERROR: worker 7 lost 10.0.0.7:5432 after 31 s (0x7ffc, job 9f0c2e7a)"
    )
    assert error_signature(text) == (
        "ERROR: worker <n> lost <address> after <time> (<hex>, job <id>)"
    )
    plain = "TypeError: unsupported operand type(s) for +: 'int' and 'str'"
    assert error_signature(plain) == plain


def test_several_errors_are_named_in_order_of_appearance() -> None:
    """A text with several failures names the first five, each once."""
    lines = [
        f"Error: {word} is missing" for word in ("tea", "milk", "tea", "ham", "jam", "pie", "fig")
    ]
    assert error_signature("\n".join(lines)) == " | ".join(
        f"Error: {word} is missing" for word in ("tea", "milk", "ham", "jam", "pie")
    )


def test_a_failure_that_is_shown_as_nothing_but_signs_has_no_name() -> None:
    """An ellipsis where the error should stand names nothing; a count beside it does."""
    for signs in ("...", "…", "---", "!!!"):
        assert error_signature(f"The build stops here:\n{signs}") is None
    told = "The tests fail with:\n...\n\n1 failed, 36 passed in 1.18s"
    assert error_signature(told) == error_signature("1 failed, 36 passed in 1.18s")


def test_a_failure_whose_words_end_another_one_is_named_too() -> None:
    """Only what another line holds as whole words is left out: `Error` is not in `TypeError`."""
    assert error_signature("TypeError: no table\nError: no table") == (
        "TypeError: no table | Error: no table"
    )


def test_a_solved_part_of_several_errors_is_another_signature() -> None:
    """Two failing tests and one failing test are not the same state."""
    both = "FAILED tests/test_a.py::test_b - x\nFAILED tests/test_a.py::test_c - x"
    assert error_signature(both) != error_signature(both.splitlines()[0])


def test_a_long_message_is_cut() -> None:
    """A signature is one line of at most four hundred characters."""
    text = "\n".join(f"Error: {word} " + "very long words " * 40 for word in ("tea", "milk", "ham"))
    signature = error_signature(text)
    assert signature is not None
    assert len(signature) <= 400
    assert "\n" not in signature
