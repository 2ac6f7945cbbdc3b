"""The commands that prove a story, run by us after the agent has ended.

Each check is an argv list with a deadline, run without a terminal in a process group of which
nothing is left afterwards.  A check that fails is run once more before it counts: green then means
flaky, not red.  Finding no test to run is neither.  Of the output the end is kept, as text,
without secrets.

What is wrong with the command of a check, as far as its words or its output tell.  Pure.  Checks
are run without a shell: `cd x && make` starts a program called cd, if there is one.  What joins
commands never works and stops a run; what might be a word of some program (`|`, `>`) is only held
against a check that is red.

Checks now against checks before: what is new, what was red already, what turned green.  `strict`
lets nothing red through.  `tolerate` lets a red check through when every test that fails now is
named and failed before under the same name; a failure that cannot be named test by test, or a list
so long that it was cut, is never tolerated.  A flaky pass never counts as turned green.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ralphloop.config.model import Baseline
from ralphloop.core.model import CheckResult, CheckStatus, Comparison, Value
from ralphloop.core.proof import Canary
from ralphloop.proc.run import Ended, Output, run_command
from ralphloop.proc.sandbox import Box, in_words, refused_paths
from ralphloop.room import read_regular
from ralphloop.text.durations import format_duration

if TYPE_CHECKING:
    from ralphloop.core.proof import TestReport
    from ralphloop.repo.named import Reporting
    from ralphloop.repo.runners import FoundRunner

DEFAULT_TIMEOUT_S = 900.0
MAX_TAIL = 16 * 1024
_READ_FOR_NAMES = 512 * 1024
_READ_IF_PLAIN = 16 << 20  # where the output itself names every test
_LONGEST_NAME = 100
_NOT_STARTED = 127


class Check(Value, frozen=True, kw_only=True):
    """One command that must end well."""

    name: str
    argv: tuple[str, ...]
    timeout_s: float = DEFAULT_TIMEOUT_S
    box: Box | None = None  # what it is confined to: an agent may have written what it runs
    named: bool = True  # it is to say what became of each test, if its runner is known


def check_of(
    argv: Sequence[str], timeout_s: float = DEFAULT_TIMEOUT_S, box: Box | None = None
) -> Check:
    """A check named after its command line, without the program's directory."""
    name = shlex.join([Path(argv[0]).name, *argv[1:]])[:_LONGEST_NAME]
    return Check(name=name, argv=tuple(argv), timeout_s=timeout_s, box=box)


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
    from ralphloop.repo.named import is_hidden, reporting
    from ralphloop.repo.runners import find_runner

    started = time.monotonic()
    found = find_runner(check.argv, cwd) if check.named else None
    results: list[CheckResult] = []
    for _ in range(2):
        with reporting(check.argv, found, cwd, env) as how:
            ended = _run(check, how, cwd, stop)
            if ended.stopped:
                return None
            results.append(_result(check, ended, how, time.monotonic() - started))
        if results[-1].status is not CheckStatus.FAILED or ended.returncode == _NOT_STARTED:
            break
        if results[-1].report is None:
            found = None  # perhaps it does not bear being asked to report
    first, last = results[0], results[-1]
    if found is not None and is_hidden(found) and last.status is CheckStatus.PASSED:
        asked = run_named(check, found, cwd, env, stop=stop)
        last = msgspec.structs.replace(last, report=asked and asked.report)
    if first is results[-1] or last.status is CheckStatus.FAILED:
        return last
    # The first run's output says what is flaky; the second has nothing to tell but the tests.
    is_flaky = last.status is CheckStatus.PASSED
    kept = {name: getattr(last, name) for name in ("status", "duration_s", "report", "counts")}
    return msgspec.structs.replace(first, flaky=is_flaky, **kept)


def run_named(
    check: Check,
    found: FoundRunner,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    *,
    files: Sequence[str] | None = None,
    whole: bool = False,
    select: str = "",
    stop: Callable[[], bool] = lambda: False,
) -> CheckResult | None:
    """Run the tests of a check once, apart from what else it does; None where it was stopped.

    `files` are the only test files to run, where the runner can be told.  `whole` runs the check's
    own command, with the tests that `select` names.  The check's deadline is the budget.
    """
    from ralphloop.repo.named import reporting

    env, started = os.environ if env is None else env, time.monotonic()
    with reporting(check.argv, found, cwd, env, apart=not whole, only=files, select=select) as how:
        ended = _run(check, how, cwd, stop)
        if ended.stopped:
            return None
        return _result(check, ended, how, time.monotonic() - started)


def behaves(
    check: Check,
    cwd: Path,
    tests: Sequence[str],
    note: Path,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Whether a failing test of ours, beside these tests, comes out failed, and the check with it.

    Where it does not at the baseline, later it means nothing.  `note` is where it is remembered.
    """
    from ralphloop.repo.named import canary, is_hidden, placed
    from ralphloop.repo.runners import find_runner

    found = find_runner(check.argv, cwd)
    if found is None or (bird := canary(found, tests, cwd)) is None:
        return False
    only = None if found.runner.select else [bird.path]
    run = partial(run_named, check, found, cwd, stop=stop)
    with placed(bird, cwd, note):
        whole = run(files=only, whole=True, select=bird.name)
        named = run(files=[bird.path]) if is_hidden(found) else whole
    is_red = whole is not None and whole.status is CheckStatus.FAILED
    return is_red and named is not None and bird.seen(named.report) is Canary.FAILED


def _run(check: Check, how: Reporting, cwd: Path, stop: Callable[[], bool]) -> Ended:
    asked = msgspec.structs.replace(check, argv=how.argv)
    keep = _READ_IF_PLAIN if how.is_plain else _READ_FOR_NAMES
    places = [how.scratch] if how.scratch else []
    return run_confined(asked, cwd, how.env, keep=keep, stop=stop, write=places)


def run_confined(
    check: Check,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    *,
    keep: int,
    stop: Callable[[], bool],
    stdin: bytes = b"",
    write: Sequence[str] = (),
) -> Ended:
    """Run the command of a check in its box, with its deadline; 127: it could not be started."""
    argv, env = list(check.argv), os.environ if env is None else env
    try:
        if check.box is not None:
            argv, env = check.box.start(argv, cwd, env, write=write)
        return run_command(
            argv,
            cwd=cwd,
            env=env,
            stdin=stdin,
            timeout_s=check.timeout_s,
            output=Output.TAIL,
            keep=keep,
            stop=stop,
        )
    except FileNotFoundError:
        reason = "command not found"
    except (OSError, ValueError) as error:  # not executable, a NUL in an argument
        reason = getattr(error, "strerror", None) or str(error)
    return Ended(_NOT_STARTED, f"could not run {check.name}: {reason}\n".encode())


def _result(check: Check, ended: Ended, how: Reporting, took_s: float) -> CheckResult:
    from ralphloop.repo.check_output import MAX_NAMES, collected_nothing, failing_tests, plain_text
    from ralphloop.repo.reports import failures, read_counts, tally

    text = how.without_traces(plain_text(ended.stdout))
    status = CheckStatus.PASSED if ended.returncode == 0 else CheckStatus.FAILED
    if ended.timed_out:
        status = CheckStatus.FAILED
        text = f"{text.rstrip()}\ntimed out after {format_duration(check.timeout_s)}\n".lstrip()
    elif ended.returncode != _NOT_STARTED and collected_nothing(text, ended.returncode):
        status = CheckStatus.NO_TESTS
    results = how.results(text) or []
    report, counts = tally(results), read_counts(text)
    failed = tuple(islice(dict.fromkeys(failures(results)), MAX_NAMES)) or failing_tests(text)
    if report is not None:
        report = _without_secrets(report, how.env)
        deselected = counts.deselected if counts else None
        counts = msgspec.structs.replace(report.counts, deselected=deselected)
    if check.box is not None and status is CheckStatus.FAILED:
        text = "\n".join([text.rstrip(), *in_words(refused_paths(text, check.box)), ""]).lstrip()
    return CheckResult(
        name=check.name,
        status=status,
        output_tail=_tail(text, how.env),
        duration_s=took_s,
        failing_tests=failed if status is CheckStatus.FAILED else (),
        report=report,
        counts=counts,
    )


def _without_secrets(report: TestReport, env: Mapping[str, str]) -> TestReport:
    from ralphloop.redaction import redact, secret_values

    secrets = secret_values(env)
    said = {name: redact(words, secrets) for name, words in report.said.items()}
    return msgspec.structs.replace(report, said=said)


def _tail(text: str, env: Mapping[str, str]) -> str:
    """The last whole lines that fit, without secrets."""
    from ralphloop.redaction import redact, secret_values

    # Cut generously first: redaction may change the length, and must see whole secrets.
    text = redact(text[-4 * MAX_TAIL :], secret_values(env))
    if len(text) <= MAX_TAIL:
        return text
    cut = text[-MAX_TAIL:]
    return cut.partition("\n")[2] or cut


_BUILTINS = frozenset({"cd", "export", "source", ".", "alias", "ulimit", "umask", "unset"})
_JOINS = frozenset({"&&", "||"})
_PIPES = frozenset({"|", ">", ">>", "<", "2>", "2>&1", "&>", "&"})
_TOOLS = frozenset({"pytest", "ruff", "mypy", "flake8", "pyright", "pylint", "black", "tox", "nox"})
_NO_MODULE = re.compile(r"No module named ['\"]?([\w.]{1,100})")
_MOST_LINES = 12
_LONGEST_LINE = 200


class Trouble(NamedTuple):
    """What is wrong, and what to do about it."""

    words: str
    fix: str


def cannot_start(argv: Sequence[str], *, found: bool) -> Trouble | None:
    """Why no run of this command can ever prove anything."""
    if joins := [word for word in argv if word in _JOINS] or [argv[0]] * (argv[0] in _BUILTINS):
        return _no_shell(argv, joins[0])
    if found:
        return None
    fix = f"install {argv[0]}, put it on PATH, or change checks.commands"
    if "/" in argv[0]:
        fix = "change checks.commands, or run with --allow-red if a story is to make it"
    return Trouble(f"{argv[0]} was not found", fix)


def may_need_shell(argv: Sequence[str]) -> Trouble | None:
    """Words that a shell would have understood; some program may mean them."""
    pipes = (word for word in argv if word in _PIPES)
    return _no_shell(argv, word) if (word := next(pipes, "")) else None


def why_red(argv: Sequence[str], output: str) -> Trouble | None:
    """What no story will make better; None where the work itself may be red."""
    if trouble := may_need_shell(argv):
        return trouble
    missing = _NO_MODULE.search(output)
    if missing and "-m" in argv[:-1] and argv[argv.index("-m") + 1] == missing[1]:
        return Trouble(missing[0], _install(argv[0], missing[1]))
    return None


def not_installed(argv: Sequence[str], root: Path) -> Trouble | None:
    """A tool that the virtual environment of a check does not have; nothing is run to find out."""
    place = (root / argv[0]).parent.parent
    if len(argv) < 3 or argv[1] != "-m" or argv[2] not in _TOOLS:
        return None
    with suppress(OSError, UnicodeDecodeError):
        is_alone = "include-system-site-packages = false" in read_regular(
            place / "pyvenv.cfg"
        ).decode("utf-8", "replace")
        libraries = [*place.glob("lib*/python*/site-packages")]
        if is_alone and libraries and not any((it / argv[2]).exists() for it in libraries):
            return Trouble(f"No module named {argv[2]}", _install(argv[0], argv[2]))
    return None


def _install(python: str, module: str) -> str:
    return f"{python} -m pip install {module}, or take the check out of checks.commands"


def last_lines(output: str) -> list[str]:
    """The end of an output, as much as fits on a screen."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return [line[:_LONGEST_LINE] for line in lines[-_MOST_LINES:]]


def _no_shell(argv: Sequence[str], word: str) -> Trouble:
    line = " ".join(part if part in _JOINS | _PIPES else shlex.quote(part) for part in argv)
    in_shell = json.dumps(["sh", "-c", line], ensure_ascii=False)
    words = f"no shell is used here, so `{word}` is only a word"
    return Trouble(words, f"make each command an entry of its own, or ask for a shell: {in_shell}")


def compare(
    baseline: Iterable[CheckResult],
    now: Iterable[CheckResult],
    mode: Baseline = "strict",
) -> Comparison:
    """Weigh checks that just ran against how they stood before; checks pair up by name."""
    red = {result.name: result for result in baseline if result.status is CheckStatus.FAILED}
    pairs = [(red[result.name], result) for result in now if result.name in red]
    green = [name for earlier, result in pairs for name in _turned_green(earlier, result)]
    tolerated = [
        result
        for earlier, result in pairs
        if mode == "tolerate"
        and result.status is CheckStatus.FAILED
        and _is_complete(result)
        and set(result.failing_tests) <= set(earlier.failing_tests)
    ]
    return Comparison(
        tolerated=tuple(result.name for result in tolerated),
        tolerated_failures=tuple(t for result in tolerated for t in result.failing_tests),
        turned_green=tuple(green),
    )


def _turned_green(earlier: CheckResult, result: CheckResult) -> list[str]:
    """The check itself, or tests of a check that still fails for other reasons."""
    if result.status is CheckStatus.PASSED:
        return [] if result.flaky else [result.name]
    if result.status is not CheckStatus.FAILED or not _is_complete(result):
        return []  # a crash before the first test names nothing, and proves nothing
    return [test for test in earlier.failing_tests if test not in result.failing_tests]


def _is_complete(result: CheckResult) -> bool:
    """True where the failures are named, and the list of names was not cut."""
    from ralphloop.repo.check_output import MAX_NAMES

    return 0 < len(result.failing_tests) < MAX_NAMES
