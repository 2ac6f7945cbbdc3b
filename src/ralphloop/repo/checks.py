"""The commands that prove a story, run by us after the agent has ended.

A check that fails is run once more before it counts: green then means flaky, and never counts as
turned green.  Finding no test to run is neither red nor green, but for a story's own `verify`: that
was to prove something, so it is red, whatever it ended with.

Checks run without a shell: what joins commands (`cd x && make`) never works and stops a run; what
might be a word of some program (`|`, `>`) is only held against a check that is red.

`tolerate` lets a red check through when every test that fails now is named and failed before under
the same name; a failure without names, or a list so long that it was cut, never.
"""

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
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from ralphloop.config.model import Baseline
from ralphloop.core.grading import VERIFY
from ralphloop.core.model import CheckResult, CheckStatus, Comparison, Value
from ralphloop.core.proof import Canary
from ralphloop.proc.run import CommandEnd, Output, run_command
from ralphloop.proc.sandbox import Box, in_words, refused_paths
from ralphloop.project import LANE_VARIABLE
from ralphloop.redaction import redact, secret_values
from ralphloop.repo import reports
from ralphloop.repo.git import printable
from ralphloop.repo.named import Reporting, canary, canary_in_place, is_hidden
from ralphloop.repo.runners import FoundRunner, find_runner
from ralphloop.room import read_regular
from ralphloop.text.durations import format_duration

DEFAULT_TIMEOUT_S = 900.0
MAX_TAIL = 16 * 1024
_READ_FOR_NAMES = 512 * 1024
_READ_IF_PLAIN = 16 << 20  # where the output itself names every test
_LONGEST_NAME = 100
_NOT_STARTED = 127
NOT_RUN = "could not run "  # how what is said of a program begins that is not there


class Check(Value, frozen=True, kw_only=True):
    name: str
    argv: tuple[str, ...]
    timeout_s: float = DEFAULT_TIMEOUT_S
    box: Box | None = None  # what it is confined to: an agent may have written what it runs
    needs_tests: bool = False  # where it finds none to run it is red
    lane: int = 0  # in which it runs; 0: the checkout, or where stories land


def check_of(
    argv: Sequence[str],
    timeout_s: float = DEFAULT_TIMEOUT_S,
    box: Box | None = None,
    *,
    lane: int = 0,
) -> Check:
    """A check named after its command line, without the program's directory."""
    name = shlex.join([Path(argv[0]).name, *argv[1:]])[:_LONGEST_NAME]
    return Check(name=name, argv=tuple(argv), timeout_s=timeout_s, box=box, lane=lane)


def verify_of(
    argv: Sequence[str], timeout_s: float, box: Box | None = None, *, lane: int = 0
) -> Check:
    """A story's own command."""
    return Check(
        name=VERIFY, argv=tuple(argv), timeout_s=timeout_s, box=box, needs_tests=True, lane=lane
    )


def run_checks(
    checks: Iterable[Check], cwd: Path, *, stop: Callable[[], bool] = lambda: False
) -> tuple[CheckResult, ...]:
    """Run checks one after the other; once `stop` says so, only finished ones are returned."""
    results: list[CheckResult] = []
    for check in checks:
        result = _run_check(check, cwd, stop)
        if result is None:
            break
        results.append(result)
    return tuple(results)


def _run_check(check: Check, cwd: Path, stop: Callable[[], bool]) -> CheckResult | None:
    """Run a check, once more where it fails; None where it was stopped."""
    found = find_runner(check.argv, cwd)
    first = run_once(check, found, cwd, whole=True, stop=stop)
    last = first
    if first is not None and first.status is CheckStatus.FAILED:
        if first.report is None:
            found = None  # perhaps it does not bear being asked to report
        last = run_once(check, found, cwd, whole=True, stop=stop)
    if first is None or last is None:
        return None
    if found is not None and is_hidden(found) and last.status is CheckStatus.PASSED:
        asked = run_once(check, found, cwd, stop=stop)
        last = msgspec.structs.replace(last, report=asked and asked.report)
    if first.status is not CheckStatus.FAILED:
        return last
    last = msgspec.structs.replace(last, duration_s=first.duration_s + last.duration_s)
    if last.status is CheckStatus.FAILED:
        return last
    # The first run's output says what is flaky; the second has nothing to tell but the tests.
    is_flaky = last.status is CheckStatus.PASSED
    kept = {name: getattr(last, name) for name in ("status", "duration_s", "report", "counts")}
    return msgspec.structs.replace(first, flaky=is_flaky, **kept)


def run_once(
    check: Check,
    found: FoundRunner | None,
    cwd: Path,
    *,
    files: Sequence[str] | None = None,
    whole: bool = False,
    select: str = "",
    afresh: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> CheckResult | None:
    """Run the tests of a check once, apart from what else it does; None where it was stopped.

    `files` are the only ones to run, where the runner can be told.  `whole` runs the check's own
    command, with the tests that `select` names, `afresh` without what it has built before.
    """
    started = time.monotonic()
    with TemporaryDirectory(prefix="ralph-", ignore_cleanup_errors=True) as scratch:
        known = (check.argv, found, cwd, scratch)
        how = Reporting(*known, apart=not whole, only=files, select=select, afresh=afresh)
        ended = run_confined(
            msgspec.structs.replace(check, argv=how.argv),
            cwd,
            how.env,
            keep=_READ_IF_PLAIN if how.is_plain else _READ_FOR_NAMES,
            stop=stop,
            write=[how.scratch],
        )
        return None if ended.stopped else _result(check, ended, how, time.monotonic() - started)


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
    found = find_runner(check.argv, cwd)
    canary_test = canary(found, tests, cwd) if found is not None else None
    if found is None or canary_test is None:
        return False
    only = None if found.runner.select else [canary_test.path]
    run = partial(run_once, check, found, cwd, stop=stop)
    with canary_in_place(canary_test, cwd, note):
        whole = run(files=only, whole=True, select=canary_test.name)
        named = run(files=[canary_test.path]) if is_hidden(found) else whole
    is_red = whole is not None and whole.status is CheckStatus.FAILED
    return is_red and named is not None and canary_test.seen(named.report) is Canary.FAILED


def run_confined(
    check: Check,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    *,
    keep: int,
    stop: Callable[[], bool],
    stdin: bytes = b"",
    write: Sequence[str] = (),
) -> CommandEnd:
    """Run the command of a check in its box, with its deadline; 127: it could not be started."""
    argv = list(check.argv)
    env = {**(os.environ if env is None else env), LANE_VARIABLE: str(check.lane)}
    try:
        if check.box is not None:
            inside = check.box.start(argv, cwd, env, write=write)
            argv = inside.argv
            env = inside.env
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
    finally:
        if check.box is not None:
            check.box.disarm()
    return CommandEnd(_NOT_STARTED, f"{NOT_RUN}{check.name}: {reason}\n".encode())


def _result(check: Check, ended: CommandEnd, how: Reporting, took_s: float) -> CheckResult:
    """What one run of a check has shown: red or green, its tests, the end of its output."""
    text = reports.plain_text(ended.stdout)
    secrets = secret_values(how.env)
    results = how.results(text) or []
    if how.scratch in text:  # lines that name our own files
        text = "".join(line for line in text.splitlines(True) if how.scratch not in line)
    status = CheckStatus.PASSED if ended.returncode == 0 else CheckStatus.FAILED
    why = ""
    if ended.timed_out:
        status = CheckStatus.FAILED
        text = f"{text.rstrip()}\ntimed out after {format_duration(check.timeout_s)}\n".lstrip()
    elif ended.returncode != _NOT_STARTED and reports.collected_nothing(text, ended.returncode):
        if not check.needs_tests:
            status = CheckStatus.NO_TESTS
        elif not results:
            status = CheckStatus.FAILED
            why = _without_tests(check.argv, how.root, ended.returncode)
    report = reports.tally(results)
    counts = reports.read_counts(text)
    failed = tuple[str, ...]()
    if status is CheckStatus.FAILED:
        named = islice(dict.fromkeys(reports.failures(results)), reports.MAX_NAMES)
        failed = tuple(named) or reports.failing_tests(text)
    if report is not None:
        said = {name: redact(words, secrets) for name, words in report.said.items()}
        report = msgspec.structs.replace(report, said=said)
        deselected = counts.deselected if counts else None
        counts = msgspec.structs.replace(report.counts, deselected=deselected)
    if check.box is not None and status is CheckStatus.FAILED:
        text = "\n".join(
            [text.rstrip(), *in_words(refused_paths(text, check.box), check.box), ""]
        ).lstrip()
    # Cut generously first: redaction may change the length, and must see whole secrets.
    tail = redact(text[-4 * MAX_TAIL :], secrets)
    if len(tail) > MAX_TAIL:
        tail = tail[-MAX_TAIL:].partition("\n")[2] or tail[-MAX_TAIL:]
    return CheckResult(
        name=check.name,
        status=status,
        output_tail=tail,
        duration_s=took_s,
        failing_tests=failed,
        report=report,
        counts=counts,
        why=why,
        ran_nothing=bool(why),
    )


def _without_tests(argv: Sequence[str], root: Path, exit_code: int) -> str:
    """That a command found no test, and which file it names that is not there."""
    named = (word.partition("::")[0] for word in argv[1:] if not word.startswith("-"))
    paths = (name for name in named if "/" in name and "://" not in name)
    # A word may be too long for a name, which `pathlib` does not take.
    missing = next((path for path in paths if not os.path.exists(root / path)), "")  # noqa: PTH110
    rest = f": {printable(missing)} does not exist" if missing else ""
    return f"found no test (exit {exit_code}){rest}"


_BUILTINS = frozenset({"cd", "export", "source", ".", "alias", "ulimit", "umask", "unset"})
_JOINS = frozenset({"&&", "||"})
_PIPES = frozenset({"|", ">", ">>", "<", "2>", "2>&1", "&>", "&"})
_TOOLS = frozenset({"pytest", "ruff", "mypy", "flake8", "pyright", "pylint", "black", "tox", "nox"})
_NO_MODULE = re.compile(r"No module named ['\"]?([\w.]{1,100})")
_MOST_LINES = 12
_LONGEST_LINE = 200


class Trouble(NamedTuple):
    words: str
    fix: str


def cannot_start(argv: Sequence[str], *, found: bool) -> Trouble | None:
    """Why no run of this command can ever prove anything."""
    builtin = _BUILTINS.intersection(argv[:1])
    if trouble := may_need_shell(argv, _JOINS) or may_need_shell(argv, builtin):
        return trouble
    if found:
        return None
    fix = f"install {argv[0]}, put it on PATH, or change checks.commands"
    if "/" in argv[0]:
        fix = "change checks.commands, or run with --allow-red if a story is to make it"
    return Trouble(f"{argv[0]} was not found", fix)


def may_need_shell(argv: Sequence[str], signs: frozenset[str] = _PIPES) -> Trouble | None:
    """Words that a shell would have understood; some program may mean them."""
    if not (word := next((word for word in argv if word in signs), "")):
        return None
    line = " ".join(part if part in _JOINS | _PIPES else shlex.quote(part) for part in argv)
    in_shell = json.dumps(["sh", "-c", line], ensure_ascii=False)
    words = f"no shell is used here, so `{word}` is only a word"
    return Trouble(words, f"make each command an entry of its own, or ask for a shell: {in_shell}")


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
    with suppress(OSError):
        is_alone = b"include-system-site-packages = false" in read_regular(place / "pyvenv.cfg")
        libraries = [*place.glob("lib*/python*/site-packages")]
        if is_alone and libraries and not any((it / argv[2]).exists() for it in libraries):
            return Trouble(f"No module named {argv[2]}", _install(argv[0], argv[2]))
    return None


def _install(python: str, module: str) -> str:
    return f"{python} -m pip install {module}, or take the check out of checks.commands"


def last_lines(output: str) -> list[str]:
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return [line[:_LONGEST_LINE] for line in lines[-_MOST_LINES:]]


def compare(
    baseline: Iterable[CheckResult],
    now: Iterable[CheckResult],
    mode: Baseline = "strict",
    newest: Iterable[CheckResult] = (),
) -> Comparison:
    """Weigh checks that just ran against how they stood before; checks pair up by name.

    `newest` are those of the last story that passed: what it turned green is nobody else's.
    """
    red = {result.name: result for result in baseline if result.status is CheckStatus.FAILED}
    since = {result.name: result for result in newest}
    green = list[str]()
    tolerated = list[CheckResult]()
    for result in now:
        earlier = red.get(result.name)
        if earlier is None:
            continue
        was = since.get(result.name, earlier)
        if was.status is CheckStatus.FAILED:
            green += _turned_green(was, result)
        is_old = _names_failures(result) and set(result.failing_tests) <= {*earlier.failing_tests}
        if mode == "tolerate" and is_old:
            tolerated.append(result)
    return Comparison(
        tolerated=tuple(result.name for result in tolerated),
        tolerated_failures=tuple(t for result in tolerated for t in result.failing_tests),
        turned_green=tuple(green),
    )


def _names_failures(result: CheckResult) -> bool:
    """A crash before the first test names nothing, and proves nothing; so does a list cut short."""
    is_red = result.status is CheckStatus.FAILED
    return is_red and 0 < len(result.failing_tests) < reports.MAX_NAMES


def _turned_green(was: CheckResult, now: CheckResult) -> list[str]:
    """A red check that is green, or those of its red tests that ran and passed, by name.

    A test that is gone or skipped has not turned green.
    """
    if now.status is CheckStatus.PASSED and not now.flaky:
        green = [test for test in was.failing_tests if _has_passed(now, test)]
        return [now.name] if len(green) == len(was.failing_tests) else green
    if _names_failures(now):
        others = (test for test in was.failing_tests if test not in now.failing_tests)
        return [test for test in others if _has_passed(now, test)]
    return []


def _has_passed(check: CheckResult, test: str) -> bool:
    """By name, where the check names its tests; a row by its function, a file by what it holds."""
    if check.report is None or test in check.report.passed:
        return True
    for name in check.report.passed:
        rest = test[len(name) :] if test.startswith(name) else name[len(test) :]
        is_part = test.startswith(name) or name.startswith(test)
        if is_part and not rest[0].isalnum() and rest[0] != "_":
            return True
    return False
