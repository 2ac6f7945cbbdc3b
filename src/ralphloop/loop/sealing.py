"""Running sealed tests: laid into the place where a story is judged, and gone before anybody looks.

Only a tree in which no agent works takes them.  They run apart from the other checks, so that what
they print is never part of what an agent is told.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ralphloop.core.model import CheckResult, CheckStatus, Story
from ralphloop.core.proof import TestReport
from ralphloop.core.sealed_tests import SealedRun, SealedVerdict, judge_sealed
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace
from ralphloop.proc.threads import in_thread
from ralphloop.repo import beneath
from ralphloop.repo.checks import Check, check_of, run_once
from ralphloop.repo.experiment import is_test_file
from ralphloop.repo.named import file_of
from ralphloop.repo.runners import FoundRunner, find_runner
from ralphloop.repo.work_tree import project_prefix
from ralphloop.sealed import SealedFile, sealed_files, sealed_text

_KINDS = {  # what each runner takes as a file of tests
    "pytest": (".py",),
    "unittest": (".py",),
    "go": (".go",),
}
_ASIDE = "sealed"  # what stands where a sealed file is laid
_SCRIPTS = (".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts")


def takes_sealed(place: Workspace) -> bool:
    """Whether no agent works in this place, so that sealed files may lie in it for a while."""
    return place.is_clean_tree or bool(place.lands_on)


def files_sealed_for(run: Run) -> tuple[SealedFile, ...]:
    """Everything that is sealed in the project of a run."""
    return sealed_files(run.setup.project.root, run.setup.options.env)


def names_sealed(run: Run, place: Workspace, story: Story | None) -> bool:
    """Whether a story's own command names a sealed file: then sealed tests speak in its place."""
    if story is None or not story.verify:
        return False
    prefix = project_prefix(place.repo.root, place.root) if place.repo else ""
    words = " ".join(story.verify)
    return any(file.path.removeprefix(prefix) in words for file in files_sealed_for(run))


def read_sealed(run: Run, place: Workspace, path: str) -> bytes:
    """The content of a file that is sealed, by its path in the project; empty where none is."""
    prefix = project_prefix(place.repo.root, place.root) if place.repo else ""
    for file in files_sealed_for(run):
        if file.path.removeprefix(prefix) == path:
            return sealed_text(run.setup.project.root, run.setup.options.env, file)
    return b""


def own_files(files: Sequence[SealedFile], story: Story | None, prefix: str) -> frozenset[str]:
    """The files that have to be green for a story: sealed for it, or named by its command."""
    if story is None:
        return frozenset()
    named = " ".join(story.verify or ())
    mine = set()
    for file in files:
        path = file.path.removeprefix(prefix)
        if story.id in file.stories or path in named:
            mine.add(path)
    return frozenset(mine)


async def run_sealed(
    run: Run, place: Workspace, story: Story | None, before: CheckResult | None
) -> SealedVerdict | None:
    """What the sealed tests say of what lies in this place; None where there are none, or nobody
    may lay them here."""
    files = files_sealed_for(run)
    if not files or not takes_sealed(place) or place.repo is None:
        return None
    prefix = project_prefix(place.repo.root, place.root)
    ran = await in_thread(lambda gone: _run_laid(run, place, files, prefix, gone))
    place.touched()
    if ran is None:
        return None
    mine = own_files(files, story, prefix)
    return judge_sealed(ran, before, mine, shows_output=run.config.proof.sealed_output == "full")


def _run_laid(
    run: Run,
    place: Workspace,
    files: Sequence[SealedFile],
    prefix: str,
    gone: Callable[[], bool],
) -> SealedRun | None:
    """Lay the files, run what can run them, take them away; None where that was stopped."""
    began = time.monotonic()
    tests = [file.path.removeprefix(prefix) for file in files if is_test_file(file.path)]
    stop = lambda: gone() or run.stop.requested  # noqa: E731
    report = TestReport()
    outputs = []
    is_green = True
    is_named = False
    with _laid(run, place, files):
        for one in _ways(run, place, tests):
            result = run_once(
                one.check, one.found, place.root, files=one.files, whole=not one.files, stop=stop
            )
            if result is None:
                return None
            outputs.append(result.output_tail)
            if result.report is None:
                is_green = is_green and result.status is not CheckStatus.FAILED
            else:
                is_named = True
                report = _joined(report, _only(result.report, tests))
    return SealedRun(
        report=report if is_named else None,
        is_green=is_green,
        output="\n".join(outputs),
        duration_s=time.monotonic() - began,
    )


class _Way(NamedTuple):
    """One command that runs sealed tests; without files it runs all there are."""

    check: Check
    found: FoundRunner | None
    files: list[str] | None


def _ways(run: Run, place: Workspace, tests: Sequence[str]) -> Iterator[_Way]:
    """The checks that take some of these files, told just these where they can be."""
    timeout = run.config.checks.timeout
    left = set(tests)
    whole = []
    for argv in run.session.baseline.checks or run.config.checks.commands:
        found = find_runner(argv, place.root)
        check = check_of(argv, timeout, place.check_box, lane=place.seat)
        if found is None or not found.callable or not found.runner.only:
            whole.append(_Way(check, found, None))
            continue
        kinds = _KINDS.get(found.runner.name, _SCRIPTS)
        mine = sorted(path for path in left if path.endswith(kinds))
        if mine:
            left.difference_update(mine)
            yield _Way(check, found, mine)
    if left:
        yield from whole


@contextmanager
def _laid(run: Run, place: Workspace, files: Sequence[SealedFile]) -> Iterator[None]:
    """The sealed files in the place, over whatever stands there; then as it was."""
    repo = place.repo
    if repo is None:
        yield
        return
    project = run.setup.project.root
    aside = place.scratch / _ASIDE
    aside.mkdir(parents=True, exist_ok=True)
    laid: dict[str, str] = {}  # by path: where what stood there is
    try:
        for number, file in enumerate(files):
            content = sealed_text(project, run.setup.options.env, file)
            laid[file.path] = str(number)
            if beneath.look_at(repo.root, file.path) is not None:
                beneath.move_out(repo.root, file.path, aside, str(number))
            _put(repo.root, file.path, content, is_executable=file.is_executable)
        yield
    finally:
        for path, name in laid.items():
            beneath.remove(repo.root, path)
            if beneath.look_at(aside, name) is not None:
                beneath.move_in(aside, name, repo.root, path)
        aside.rmdir()


def _put(root: Path, path: str, content: bytes, *, is_executable: bool = False) -> None:
    """Write a file in a tree of ours; what stands in its way, a link say, is removed."""
    beneath.clear(root, path)
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    if is_executable:
        os.chmod(target, 0o755)  # noqa: PTH101, S103 - as it was when it was sealed


def _only(report: TestReport, tests: Sequence[str]) -> TestReport:
    """What a report says of these files; a runner that names none speaks of nothing else."""
    wanted = frozenset(tests)

    def kept(rows: dict[str, int]) -> dict[str, int]:
        return {name: count for name, count in rows.items() if file_of(name) in ("", *wanted)}

    return TestReport(
        passed=kept(report.passed),
        failed=kept(report.failed),
        errors=kept(report.errors),
        skipped=kept(report.skipped),
    )


def _joined(one: TestReport, other: TestReport) -> TestReport:
    return TestReport(
        passed=one.passed | other.passed,
        failed=one.failed | other.failed,
        errors=one.errors | other.errors,
        skipped=one.skipped | other.skipped,
    )
