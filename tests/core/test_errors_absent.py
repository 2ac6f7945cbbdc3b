"""Texts full of error words that report no error: each must give none."""

from __future__ import annotations

import pytest

from ralphloop.core.errors import error_lines, error_signature

COUNTS = [
    "0 errors",
    "Found 0 errors.",
    "no errors",
    "No errors found in 41 files.",
    "12 passed, 0 failed",
    "37 passed, 0 failures, 0 errors in 0.42s",
    "Errors: 0",
    "Error: 0",
    "Errors: none",
    "Fatal: 0",
    "Summary: Fatal: 0",
    "Build summary: Fatal: 0, Errors: 0, Warnings: 3. Output written to dist/.",
    "eslint: 0 errors, 0 warnings",
    "✖ 0 problems (0 errors, 0 warnings)",
    "ruff: 0 errors, 0 warnings. mypy: Success: no issues found in 41 source files.",
    "Tests run: 12, Failures: 0, Errors: 0, Skipped: 1",
    "test result: ok. 12 passed; 0 failed; 0 ignored",
    "12 examples, 0 failures",
    "Tests:       0 failed, 13 passed, 13 total",
    "exit code: 0",
    "Process finished with exit code 0",
    "Fixed 3 errors and 2 failures in the parser.",
]
FEATURES = [
    "Error handling implemented for the upload endpoint; failures are shown inline.",
    "Error handling for the upload endpoint is in place: 4xx and 5xx are mapped to typed errors.",
    "# Error Handling Guide\n\nEvery handler returns a typed error. See docs/errors.md.",
    "## Error: states\n\nThe page has three.",
    "Added custom Exception classes for retries and removed the blanket exception handler.",
    "Renamed `handleError` to `reportError` and deleted the unused `FatalError` class.",
    "Cleaned up: removed 'TODO: fix error' comments and the dead `on_failure` hook.",
    "Documented the error codes (E001 to E014) in docs/errors.md.",
    "Added an `exception` column to the audit table and a filter for it.",
    "Timeout handling: requests are cancelled after 30 s and the caller gets a typed error.",
    "The client handles ECONNREFUSED by waiting and trying again.",
    "The endpoint returns 404 Not Found for unknown orders and 500 Internal Server Error otherwise.",
    "As a user I want to see an error message when the upload fails.",
    "Show an error message when the password is wrong.",
    'The form shows "Error: invalid password" below the field.',
    'The toast reads: "Error: could not save".',
    "`parse` throws `TypeError: bad header` when the header is empty.",
    "Login fails with `Error: bad password` if the password is wrong.",
    "Added a test that fails with `ValueError: bad header`.",
    "The command prints `Error: no such story` and exits with 65.",
    "Error messages are translated; error states have their own colour.",
    "Errors are logged at level ERROR, fatal ones at FATAL.",
    "The log level is one of DEBUG, INFO, WARNING, ERROR, CRITICAL.",
    "ERROR level messages go to stderr.",
    "- **Error handling**: every failure has a code\n- **Retries**: three, with jitter",
    "- `ParseError`: raised when the header is wrong\n- `ValueError`: raised when it is empty",
    "- **ValidationError**: the base class for bad input",
    "| Code | Meaning |\n|---|---|\n| Error: E001 | bad header |\n| fatal: x | bad body |",
    "No permission denied responses any more after the role fix; checked with three roles.",
    "Two workers cannot pick the same job; a worker is unable to steal a lease.",
    "US-001 cannot go on.",
    "The failure page, the failed-login page and the crash reporter share one layout.",
    "Unblocked the import job: the deadlock came from holding the lock while waiting.",
    "Failed logins are counted per address.",
    "On error: retry twice, then give up.",
    "Typed error: the code and the field it belongs to.",
]
SOLVED = [
    "Fixed the TypeError: x is not a function in cart.js.",
    "Fixed the crash when the input was empty; the error handling path is covered.",
    "- Fixed `Error: Cannot find module './db'` by adding the file",
    "Resolved `error[E0382]: borrow of moved value` with a clone.",
    "The `TypeError: x is not a function` is gone.",
    "`KeyError: 'tenant'` no longer happens: the key has a default.",
    "TypeError: x is not a function is fixed now.",
    "The suite was failing with AssertionError: subject is empty, now passes.",
    "Previously the build stopped with error: missing symbol foo.",
    "fix: TypeError: x is not a function in cart.js",
    "Previously failing test `test_retry_after` is green now.",
    "Wrote the next test, it fails as it should: FAILED tests/test_a.py - AssertionError: a is missing.",
]
TESTS = [
    "tests/test_api.py::test_error_page_renders PASSED",
    "tests/test_api.py::test_raises_value_error_on_empty PASSED                 [ 50%]",
    "PASSED tests/test_auth.py::test_failed_login_is_logged",
    "`test_error_page_renders` and `test_failed_login_is_logged` PASSED.",
    "  ✓ shows Error: invalid password (3 ms)",
    "✅ Error: page renders",
    "ok 3 - throws TypeError: bad header",
    "test errors::fatal_error_is_logged ... ok",
    "- [x] Error: page for unknown orders",
    "PASS src/error.test.ts",
    "--- PASS: TestFatalError (0.00s)",
]
CODE = [
    '{"is_error": false, "error": null, "error_count": 0, "errors": []}',
    'The API answers {"is_error": false, "error": null, "error_count": 0, "errors": []}.',
    '"error": null,\n"is_error": false',
    '{"error": "not_found", "message": "no such order"}',
    "error: null",
    "error: Error",
    "error: string | null;",
    "error: 'Not found',",
    "error_count: 0",
    "handleError(error: Error)",
    "Signature: `handleError(error: Error): never`",
    'raise ValueError("x")',
    "except KeyError:\n    pass",
    "except ValueError as error:",
    "throw new Error('error: x')",
    "catch (error) { console.error('Error: x', error) }",
    "console.error('Error: x')",
    'logger.error("Error: x")',
    'print("Error: file not found")',
    'echo "Error: file not found"',
    '$ grep -rn "Error: x" src',
    "Err(e) => return Err(e),",
    "if err != nil { return err }",
    "// error: raised when the header is wrong",
    "# Error: raised when the header is wrong",
    'assert "TypeError: x" in str(error)',
    '```python\nclass ParseError(Exception):\n    """error: raised when the header is wrong"""\n\n'
    "try:\n    load()\nexcept ValueError as error:\n    raise ParseError(str(error)) from error\n```\n"
    "The class is used in two places.",
    "```ts\nexport function handleError(error: Error): never {\n"
    "  throw new HttpError(500, error.message);\n}\n```\nMoved to src/errors.ts.",
    "```yaml\non:\n  error: notify the team\n  fatal: page the team\n```",
    '```json\n{\n  "error": "Error: x"\n}\n```',
    "```js\nconst messages = {\n  Error: 'Something went wrong',\n  TypeError: 'Wrong type',\n};\n```",
    "```diff\n-Error: old text\n+Error: new text\n Error: context\n```",
    "diff --git a/x b/x\n@@ -1,2 +1,2 @@\n-Error: old text\n+Error: new text\n Error: context",
    "+Error: new text",
    "  12 | Error: x",
    "  12→Error: x",
    "src/a.py:3:5: warning: unused variable 'error'",
    "warning: unused variable: `error`",
    "note: this error originates in a macro",
]
ROWS = COUNTS + FEATURES + SOLVED + TESTS + CODE


@pytest.mark.parametrize("text", ROWS)
def test_words_about_errors_are_no_error(text: str) -> None:
    """A count of zero, a feature, a cure, a passed test or code is no error."""
    assert error_lines(text) == ()
    assert error_signature(text) is None


def test_an_honest_answer_full_of_error_words_has_no_error() -> None:
    """All of it together is still no error."""
    assert error_signature("\n\n".join(ROWS[: len(COUNTS) + len(FEATURES)])) is None


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n", "Moved the mail templates.", "```", "\x00"])
def test_ordinary_words_have_no_error(text: str) -> None:
    """Nothing, blank lines and plain sentences give no error."""
    assert error_signature(text) is None
