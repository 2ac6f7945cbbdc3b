"""Final words of agents in the labelled decision cases, and the error each must give.

`None`: no error at all; words: the signature holds them.  The sequences at the end are those whose
decision hangs on which signatures are equal.
"""

from __future__ import annotations

import pytest

from ralphloop.text.signatures import error_signature

EXPECTED: list[tuple[str, str, str | None]] = [
    (
        "errors-jsonkeys-1",
        'The API answers {"is_error": false, "error": null, "error_count": 0, "errors": []} for a good order.',
        None,
    ),
    (
        "errors-feature-1",
        "Error handling implemented for the upload endpoint; failures are shown inline and the retry button works.",
        None,
    ),
    (
        "errors-testnames-1",
        "tests/test_api.py::test_error_page_renders PASSED\n"
        "tests/test_api.py::test_raises_value_error_on_empty PASSED\n"
        "tests/test_auth.py::test_failed_login_is_logged PASSED\n3 passed in 0.42s",
        None,
    ),
    (
        "errors-exceptions-1",
        "Added custom Exception classes for retries and removed the blanket exception handler.",
        None,
    ),
    (
        "errors-node-1",
        "node server.js stops at start:\n\nError: Cannot find module './routes/orders'\n"
        "    at Module._resolveFilename (node:internal/modules/cjs/loader:1144:15)\n"
        "    at Object.<anonymous> (/srv/app/server.js:12:16)",
        "annot find module",
    ),
    (
        "errors-rust-1",
        "cargo build says:\n\nerror[E0382]: borrow of moved value: `config`\n  --> src/main.rs:42:20\n   |\n"
        "42 |     start(config.clone());\n   |           ^^^^^^ value borrowed here after move",
        "borrow of moved value",
    ),
    (
        "errors-gcc-1",
        "make stops:\n\nsrc/parser.c:118:23: error: expected ';' before 'return'",
        "expected",
    ),
    (
        "errors-pytest-1",
        "=========================== short test summary info ============================\n"
        "FAILED tests/test_cart.py::test_total - AssertionError: assert Decimal('10.01') == Decimal('10.00')\n"
        "1 failed, 36 passed in 1.18s",
        "ssert",
    ),
    (
        "errors-permission-1",
        "The deploy step cannot start:\n\nbash: ./scripts/deploy.sh: Permission denied",
        "ermission denied",
    ),
    (
        "errors-words-1",
        "ruff check .\nAll checks passed!\nFound 0 errors.\n"
        "mypy: Success: no issues found in 41 source files\neslint: 0 errors, 0 warnings",
        None,
    ),
    (
        "errors-words-1",
        '```python\nclass ParseError(Exception):\n    """error: raised when the header is wrong"""\n\n'
        "try:\n    load()\nexcept ValueError as error:\n    raise ParseError(str(error)) from error\n```\n"
        "The class is used in two places.",
        None,
    ),
    (
        "errors-words-1",
        "```ts\nexport function handleError(error: Error): never {\n"
        "  throw new HttpError(500, error.message);\n}\n```\nMoved to src/errors.ts.",
        None,
    ),
    (
        "errors-words-1",
        "# Error Handling Guide\n\nEvery handler returns a typed error. See docs/errors.md for the list of"
        " error codes.\n\nI wrote the guide and linked it.",
        None,
    ),
    (
        "errors-words-1",
        "Build summary: Fatal: 0, Errors: 0, Warnings: 3. Output written to dist/.",
        None,
    ),
    (
        "error-reset-1",
        "The queue worker hands its lease back when it is asked to stop. Sessions are rotated when the role of a"
        " user changes. Avatars are scaled in the background and served with a long lifetime.",
        None,
    ),
    (
        "stderr-only-4",
        "Dropped the unused colour helpers and the two constants they needed. Sessions are rotated when the role"
        " of a user changes. The invoice export now groups lines by tax rate before it rounds.",
        None,
    ),
]
NOISE_SENTENCES = [
    "Fixed the crash when the input was empty; the error handling path is implemented and covered.",
    "Error handling for the upload endpoint is in place: 4xx and 5xx are mapped to typed errors.",
    "ruff: 0 errors, 0 warnings. mypy: Success: no issues found in 41 source files.",
    "Renamed `handleError` to `reportError` and deleted the unused `FatalError` class.",
    "Previously failing test `test_retry_after` is green now.",
    "Unblocked the import job: the deadlock came from holding the lock while waiting, no longer stuck.",
    "No permission denied responses any more after the role fix; checked with three roles.",
    "`test_error_page_renders` and `test_failed_login_is_logged` PASSED.",
    "Cleaned up: removed 'TODO: fix error' comments and the dead `on_failure` hook.",
    "Added an `exception` column to the audit table and a filter for it.",
    "Documented the error codes (E001 to E014) in docs/errors.md.",
    "Timeout handling: requests are cancelled after 30 s and the caller gets a typed error.",
    "Rate limit middleware returns 429 with a Retry-After header; documented the 5-hour limit.",
    "Two workers cannot pick the same job; the login form is not done yet.",
]


@pytest.mark.parametrize("case, words, expected", EXPECTED)
def test_labelled_words(case: str, words: str, expected: str | None) -> None:
    """The final words of each labelled case give the error the label names."""
    signature = error_signature(words)
    if expected is None:
        assert signature is None
    else:
        assert signature is not None
        assert expected in signature


@pytest.mark.parametrize("start", range(len(NOISE_SENTENCES)))
def test_noise_sentences_in_any_order(start: int) -> None:
    """long-noise: sentences full of error words, joined in any order, hold no error."""
    turned = NOISE_SENTENCES[start:] + NOISE_SENTENCES[:start]
    assert error_signature(" ".join(turned)) is None
    assert error_signature("\n\n".join(turned)) is None


def test_same_error_five_times_with_other_times_pids_and_paths() -> None:
    """errors-same5-3: five answers, one signature."""
    words = [
        f"Added the flag.\n\n2026-01-1{n}T03:1{n}:27.10{n}Z pid={4200 + 13 * n} ERROR: could not open"
        f" database file /var/tmp/pytest-of-root/pytest-{n}/db.sqlite"
        for n in range(5)
    ]
    assert len({error_signature(text) for text in words}) == 1


def test_same_error_five_times_in_other_files() -> None:
    """error-reset-5: the same exception from other files and lines is one signature."""
    words = [
        "The run still ends with this:\n\nTypeError: Cannot read properties of undefined (reading 'tenantId')\n"
        f"    at load (/srv/app/src/job{n}.ts:{41 + n}:{7 + n})"
        for n in range(5)
    ]
    assert {error_signature(text) for text in words} == {
        "TypeError: Cannot read properties of undefined (reading 'tenantId')"
    }


def test_eight_errors_in_a_row_are_eight() -> None:
    """errors-differ-2: eight failures in a row, no two alike."""
    errors = [
        "sqlite3.OperationalError: no such table: orders",
        "error[E0599]: no method named `trim_all` found for struct `Row`",
        "ImportError: cannot import name 'Clock' from 'app.time'",
        "fatal: pathspec 'docs/x.md' did not match any files",
        "FAILED tests/test_mail.py::test_subject - AssertionError: subject is empty",
        "src/a.c:3:1: error: unknown type name 'foo_t'",
        "TypeError: order.total is not a function",
        "Error: Cannot find module './db'",
    ]
    words = [f"Gave it tests.\n\n{error}\n\nFixed the cause and moved on." for error in errors]
    assert len({error_signature(text) for text in words} - {None}) == len(errors)


def test_a_test_that_fails_on_purpose_is_no_error() -> None:
    """long-tdd-1: the red step of red, green, refactor is work, not failure."""
    words = "Wrote the next test, it fails as it should: FAILED tests/test_step_a.py - AssertionError: a."
    assert error_signature(words) is None
