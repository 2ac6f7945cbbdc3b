"""What can fail at 01:00 fails at 22:00.

Everything is looked at before the first start; errors end the command with their fix, warnings are
said.  The checks run once, so that what is red already is known before an agent touches anything.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from ralphloop.agents.base import Inquiry
from ralphloop.agents.environment import find_program
from ralphloop.agents.prices import cost_problems
from ralphloop.config.model import Baseline, CommitPolicy
from ralphloop.core.events import Preflight
from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.core.session import Frozen
from ralphloop.errors import AgentUnavailable, Finding, Level, RalphError, RepositoryError
from ralphloop.loop.runner import Runner
from ralphloop.proc.steps import Steps
from ralphloop.repo.checks import cannot_start, check_of, last_lines, why_red
from ralphloop.repo.preflight import disk_space, inspect

_Red = Mapping[tuple[str, ...], CheckResult]


@dataclass
class Report:
    """What was found, in words."""

    said: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def preflight(runner: Runner, *, ours: frozenset[str]) -> Steps[Report]:
    """Check everything and fix the checks of the run; raises where the run must not begin.

    `ours` are trees we left ourselves: dirt that is in one of them is not dirt.
    """
    report = Report()
    dirty = _repository(runner, report, ours)
    look_at_agents(runner, report)
    baseline = yield from _baseline(runner, report)
    runner.session.frozen = _frozen(runner, report, baseline, dirty)
    _insist_on_green(runner, baseline)
    runner.emit(Preflight(said=tuple(report.said), warnings=tuple(report.warnings)))
    return report


def _repository(runner: Runner, report: Report, ours: frozenset[str]) -> tuple[str, ...]:
    """The paths that were dirty before us; raises where a run must not begin."""
    repo = runner.setup.repo
    if repo is None:
        _heed(disk_space(runner.setup.project.root), report, RepositoryError)
        return ()
    is_ours = runner.measure.tree().tree in ours
    _branch(runner, report)
    findings = inspect(
        repo,
        store=runner.setup.project.directory / "objects",
        own=runner.setup.own,
        commits=runner.config.git.commit is CommitPolicy.STORY,
        allow_dirty=runner.setup.options.allow_dirty or is_ours,
        story_files=[runner.setup.source_name] if runner.setup.source_name else (),
    )
    _heed(findings, report, RepositoryError)
    return () if is_ours else repo.dirty_paths(runner.setup.own)


def _heed(
    findings: Iterable[Finding], report: Report, failure: type[RalphError] | None = None
) -> None:
    """Errors end the command where they are to, the rest is said."""
    for finding in findings:
        if finding.level is Level.ERROR and failure is not None:
            raise failure(finding.message, finding.fix)
        words = f"{finding.message} ({finding.fix})" if finding.fix else finding.message
        (report.said if finding.level is Level.INFO else report.warnings).append(words)


def _branch(runner: Runner, report: Report) -> None:
    """Be on the branch the story list names."""
    repo, stories = runner.setup.repo, runner.setup.stories
    wanted = stories.list.branch_name if stories else None
    if repo is None or not wanted or repo.unfinished_operation():
        return
    how = repo.switch_or_create_branch(wanted)
    if how != "already":
        report.said.append(f"branch {wanted} was {how}")


def look_at_agents(runner: Runner, report: Report) -> None:
    """The first agent must be there; a fallback that is not is only said."""
    for member in runner.setup.crew:
        setup = runner.setup
        inquiry = Inquiry(member.config, setup.project.root, setup.options.env)
        findings = member.agent.check(inquiry)
        is_first = member is runner.setup.crew[0]
        _heed(findings, report, AgentUnavailable if is_first else None)
        limited = runner.limits.max_cost_usd > 0
        _heed(cost_problems(member.name, member.config, limited=limited), report)


def _baseline(runner: Runner, report: Report) -> Steps[tuple[CheckResult, ...]]:
    commands = runner.config.checks.commands
    if not commands:
        report.warnings.append(
            "no checks are configured: stories can only be `claimed` (set checks.commands)"
        )
        return ()
    _insist_on_commands(runner, commands)
    results = yield from runner.run_checks(commands)
    for result in results:
        report.said.append(f"check {result.name}: {result.status} in {result.duration_s:.1f} s")
    return results


def _insist_on_green(runner: Runner, baseline: tuple[CheckResult, ...]) -> None:
    """A red baseline asks on a terminal and ends the command without one."""
    red = {
        argv: result
        for argv, result in zip(runner.config.checks.commands, baseline, strict=False)
        if result.status is CheckStatus.FAILED
    }
    if (
        not red
        or runner.setup.options.allow_red
        or runner.config.checks.baseline is Baseline.TOLERATE
    ):
        return
    names = ", ".join(result.name for result in red.values())
    words = "\n".join([f"{names} fails before any work was done", *_reasons(red)])
    if sys.stdin.isatty() and _confirmed(f"{words}\nGo on? [y/N] "):
        return
    raise RepositoryError(words, _advice(red))


def _insist_on_commands(runner: Runner, commands: Iterable[Sequence[str]]) -> None:
    """A check that can never start is no question of red or green."""
    for argv in commands:
        found = find_program(argv[0], runner.setup.options.env, runner.setup.project.root)
        makeable = runner.setup.options.allow_red and "/" in argv[0]  # by a story
        if trouble := cannot_start(argv, found=bool(found) or makeable):
            words = f"check {check_of(argv).name}: {trouble.words}"
            raise RepositoryError(words, _sentences(trouble.fix))


def _reasons(red: _Red) -> Iterator[str]:
    """Why each of them is red, the end of its output if nothing else is known."""
    for argv, result in red.items():
        trouble = why_red(argv, result.output_tail)
        yield f"  {result.name}: {trouble.words}" if trouble else f"  {result.name}:"
        yield from (f"    {line}" for line in last_lines(result.output_tail))


def _advice(red: _Red) -> str:
    troubles = [why_red(argv, result.output_tail) for argv, result in red.items()]
    fixes = [trouble.fix for trouble in troubles if trouble]
    if len(fixes) < len(troubles):
        fixes.append("fix it, or run with --allow-red if the stories are to make it green")
    return _sentences(*dict.fromkeys(fixes))


def _sentences(*fixes: str) -> str:
    return " ".join(f"{fix[0].upper()}{fix[1:]}." for fix in fixes)


def _confirmed(question: str) -> bool:
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _frozen(
    runner: Runner, report: Report, baseline: tuple[CheckResult, ...], dirty: tuple[str, ...]
) -> Frozen:
    """What the run holds on to; what cannot be measured is said once."""
    snapshot = runner.measure.tree()
    (report.said if runner.setup.repo else report.warnings).extend(snapshot.notes)
    return Frozen(
        checks=runner.config.checks.commands,
        baseline=tuple(msgspec.structs.replace(result, output_tail="") for result in baseline),
        dirty=dirty,
        start_head=snapshot.head or "",
        start_tree=snapshot.tree,
        branch=snapshot.branch or "",
    )
