"""The commands that prove a story, run by us after the agent has ended.

Each check is an argv list with a deadline, run without a terminal in a process group of which
nothing is left afterwards.  A check that fails is run once more before it counts: green then means
flaky, not red.  Finding no test to run is neither.  Of the output the end is kept, as text,
without secrets.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from ralphloop.core.model import CheckResult, CheckStatus, Value
from ralphloop.proc.run import Ended, Output, run_command
from ralphloop.text.durations import format_duration

DEFAULT_TIMEOUT_S = 900.0
MAX_TAIL = 16 * 1024
_READ_FOR_NAMES = 512 * 1024
_LONGEST_NAME = 100
_NOT_STARTED = 127


class Check(Value, frozen=True, kw_only=True):
    """One command that must end well."""

    name: str
    argv: tuple[str, ...]
    timeout_s: float = DEFAULT_TIMEOUT_S


def check_of(argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S) -> Check:
    """A check named after its command line, without the program's directory."""
    name = shlex.join([Path(argv[0]).name, *argv[1:]])[:_LONGEST_NAME]
    return Check(name=name, argv=tuple(argv), timeout_s=timeout_s)


def run_checks(
    checks: Iterable[Check],
    cwd: Path,
    env: Mapping[str, str] | None = None,
    *,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[CheckResult, ...]:
    """Run checks one after the other; once `stop` says so, only finished ones are returned."""
    results: list[CheckResult] = []
    for check in checks:
        result = _run_check(check, cwd, os.environ if env is None else env, stop)
        if result is None:
            break
        results.append(result)
    return tuple(results)


def _run_check(
    check: Check,
    cwd: Path,
    env: Mapping[str, str],
    stop: Callable[[], bool],
) -> CheckResult | None:
    """Run one check, a failing one twice; None where it was stopped."""
    started = time.monotonic()
    first = _run(check, cwd, env, stop)
    if first.stopped:
        return None
    result = _result(check, first, env, started)
    if result.status is not CheckStatus.FAILED or first.returncode == _NOT_STARTED:
        return result
    second = _run(check, cwd, env, stop)
    if second.stopped:
        return None
    again = _result(check, second, env, started)
    if again.status is CheckStatus.FAILED:
        return again
    # The first run's output says what is flaky; the second has nothing to tell.
    is_flaky = again.status is CheckStatus.PASSED
    return msgspec.structs.replace(
        result, status=again.status, duration_s=again.duration_s, flaky=is_flaky
    )


def _run(check: Check, cwd: Path, env: Mapping[str, str], stop: Callable[[], bool]) -> Ended:
    try:
        return run_command(
            check.argv,
            cwd=cwd,
            env=env,
            timeout_s=check.timeout_s,
            output=Output.TAIL,
            keep=_READ_FOR_NAMES,
            stop=stop,
        )
    except (OSError, ValueError) as error:  # missing, not executable, a NUL in an argument
        return Ended(_NOT_STARTED, f"could not run {check.name}: {_reason(error)}\n".encode())


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "command not found"
    return getattr(error, "strerror", None) or str(error)


def _result(check: Check, ended: Ended, env: Mapping[str, str], started: float) -> CheckResult:
    from ralphloop.workspace.check_output import failing_tests, plain_text

    text = plain_text(ended.stdout)
    status = _status(ended, text)
    if ended.timed_out:
        text = f"{text.rstrip()}\ntimed out after {format_duration(check.timeout_s)}\n".lstrip()
    return CheckResult(
        name=check.name,
        status=status,
        output_tail=_tail(text, env),
        duration_s=time.monotonic() - started,
        failing_tests=failing_tests(text) if status is CheckStatus.FAILED else (),
    )


def _status(ended: Ended, text: str) -> CheckStatus:
    from ralphloop.workspace.check_output import collected_nothing

    if ended.timed_out or ended.returncode == _NOT_STARTED:
        return CheckStatus.FAILED
    if collected_nothing(text, ended.returncode):
        return CheckStatus.NO_TESTS
    return CheckStatus.PASSED if ended.returncode == 0 else CheckStatus.FAILED


def _tail(text: str, env: Mapping[str, str]) -> str:
    """The last whole lines that fit, without secrets."""
    from ralphloop.redaction import redact, secret_values

    # Cut generously first: redaction may change the length, and must see whole secrets.
    text = redact(text[-4 * MAX_TAIL :], secret_values(env))
    if len(text) <= MAX_TAIL:
        return text
    cut = text[-MAX_TAIL:]
    return cut.partition("\n")[2] or cut
