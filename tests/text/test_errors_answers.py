"""Whole final answers as agents write them, with Markdown, lists, fences and tool output."""

from __future__ import annotations

import pytest

from ralphloop.text.signatures import error_signature

CLEAN = [
    """\
## Summary

I implemented the retry logic for the webhook sender.

### Changes
- **`src/webhooks/sender.ts`**: retries with exponential backoff; throws `WebhookError` after 5 attempts
- **`src/errors.ts`**: new `WebhookError extends Error` with `cause`
- **`tests/webhooks.test.ts`**: 6 tests (success, retry, timeout, `Error: socket hang up`, abort, exhaustion)

### Error handling
| Case | Behaviour |
|------|-----------|
| 4xx | fails immediately with `WebhookError: rejected` |
| 5xx | retried, then `WebhookError: exhausted` |
| network error | retried |

All 142 tests pass, `tsc --noEmit` reports 0 errors and ESLint is clean.
""",
    """\
Done. What I verified:
- `pytest`: 58 passed in 3.21s
- `ruff check .`: All checks passed!
- `mypy`: Success: no issues found in 23 source files
- Manual: `curl -i /orders/999` → `404 {"error":"not_found"}`; bad token → `401 {"error": "unauthorized"}`
- Logs show `ERROR` only for real failures
""",
    """\
I updated the error messages:
- before: `Error: invalid input`
- after: `Error: "amount" must be a positive number`
Tests assert both the message and the exit code (2).
""",
    """\
Handled these failure modes:
1. Connection refused → retry
2. Timeout → retry, then fail
3. Permission denied → show a hint
4. Disk full → abort
""",
    """\
Added `ErrorBoundary` around the dashboard. Errors thrown by widgets render a fallback: "Something went wrong". Error: state is reset on navigation.
""",
    """\
Release notes:
- Fix: TypeError: Cannot read property 'x' of null when opening settings (#123)
- Fix crash on startup: panic: nil map
- Improve error: show the file name
""",
    """\
### Known errors
- E001: bad header
- E002: unknown field

Error codes are listed in docs.
""",
    """\
The test suite now covers the failing path: when the token is expired we expect `Error: token expired`.
""",
    """\
I also confirmed that the old failure (`KeyError: 'tenant'`) does not come back.
""",
    """\
No tests failed, no errors, no warnings.
Errors: None
Failures: 0
""",
    """\
Story US-7 is done: invalid CSV rows are rejected with a clear error ("Error: row 3: missing amount"), the rest is imported.
""",
    """\
The CLI exits with code 2 and prints `error: the following arguments are required: FILE` when no file is given.
""",
    """\
Implemented. `ralph analyze` prints `error: bad input` to stderr and exits 65.
""",
    """\
```bash
# Error: set -e is required here
set -euo pipefail
trap 'echo "Error: line $LINENO"' ERR
```
""",
    """\
```
class AppError(Exception): ...
class DbError(AppError): ...
raise DbError('x')
```
""",
    """\
Checks:
✅ build
✅ lint (0 errors)
✅ tests (58 passed, 0 failed)
❌ e2e (not run here)
""",
]
FAILING = [
    (
        """\
I couldn't finish the migration. Running `alembic upgrade head` fails:

```
sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused
	Is the server running on that host and accepting TCP/IP connections?
```

The database container isn't up.
""",
        "sqlalchemy.exc.OperationalError: (psycopg<n>.OperationalError) connection to server at 'localhost' (<address>), port <n> failed: Connection refused",
    ),
    (
        """\
Status: 3 of 4 acceptance criteria done.

Still failing:
- `tests/test_orders.py::test_refund` — `AssertionError: assert 200 == 409`

I'll look at this next.
""",
        "AssertionError: assert <n> == <n>",
    ),
    (
        """\
Build output:

```bash
$ npm run build
> app@1.0.0 build
> tsc -p .

src/cart.ts:12:7 - error TS2322: Type 'string' is not assignable to type 'number'.

12   const total: number = "x";
         ~~~~~

Found 1 error in src/cart.ts:12
```
""",
        "error TS2322: Type 'string' is not assignable to type 'number'",
    ),
    (
        """\
Could not run the tests: pytest is not installed.

/usr/bin/python3: No module named pytest
""",
        "<path>/python<n>: No module named pytest",
    ),
    (
        """\
The command is denied in this sandbox, so nothing could be built.

docker: permission denied while trying to connect to the Docker daemon socket
""",
        "docker: permission denied while trying to connect to the Docker daemon socket",
    ),
    (
        """\
I'm blocked. `cargo test` output:

running 3 tests
test parse::empty ... ok
test parse::nested ... FAILED
test parse::errors ... ok

failures:

---- parse::nested stdout ----
thread 'parse::nested' panicked at src/parse.rs:88:9:
assertion `left == right` failed
  left: 3
 right: 4
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

failures:
    parse::nested

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

error: test failed, to rerun pass `--lib`
""",
        "test parse::nested ... FAILED | assertion 'left == right' failed",
    ),
    (
        """\
npm test

> jest

 FAIL  src/cart.test.js
  ● Cart › adds up

    expect(received).toBe(expected) // Object.is equality

    Expected: 4
    Received: 3

Tests:       1 failed, 3 passed, 4 total
""",
        "● Cart › adds up",
    ),
    (
        """\
After the change the server does not start:

> node server.js

node:events:497
      throw er; // Unhandled 'error' event
      ^

Error: listen EADDRINUSE: address already in use :::3000
    at Server.setupListenHandle [as _listen2] (node:net:1817:16)
Emitted 'error' event on Server instance at:
  code: 'EADDRINUSE',
""",
        "Error: listen EADDRINUSE: address already in use :::<n>",
    ),
    (
        """\
Everything is implemented but two tests are red:

1) Cart adds up
   AssertionError: expected 3 to equal 4
2) Cart empties
   TypeError: cart.clear is not a function
""",
        "AssertionError: expected <n> to equal <n> | TypeError: cart.clear is not a function",
    ),
    (
        """\
Checks:
✅ build
❌ tests: 2 failed, 56 passed
""",
        "tests: <n> failed, <n> passed",
    ),
]


@pytest.mark.parametrize("answer", CLEAN)
def test_an_answer_that_reports_finished_work_has_no_error(answer: str) -> None:
    """Error words in lists, tables, code and descriptions of features are no error."""
    assert error_signature(answer) is None


@pytest.mark.parametrize("answer, signature", FAILING)
def test_an_answer_that_reports_a_failure_names_it(answer: str, signature: str) -> None:
    """The failure is found wherever it stands in the answer, and nothing else is."""
    assert error_signature(answer) == signature


def test_a_later_cure_does_not_hide_a_quoted_failure() -> None:
    """Claims of a cure come cheap: only the sentence that names an error can call it solved."""
    answer = "The run ends with:\n\nTypeError: x is not a function\n\nFixed the cause and moved on."
    assert error_signature(answer) == "TypeError: x is not a function"
