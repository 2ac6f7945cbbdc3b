"""What can fail at 01:00 fails at 22:00: everything is looked at before the first start.

The checks run once, so that what is red already is known before an agent touches anything.
"""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import msgspec

from ralphloop.agents.base import Inquiry
from ralphloop.agents.environment import find_program
from ralphloop.agents.prices import cost_problems
from ralphloop.core.events import Preflight
from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.core.policy import time_left
from ralphloop.core.run_state import RunBaseline
from ralphloop.errors import (
    AgentUnavailable,
    Finding,
    Level,
    LockedError,
    RalphError,
    RepositoryError,
)
from ralphloop.journal.lock import neighbours
from ralphloop.loop.before import results_to_keep
from ralphloop.loop.judge_place import run_baseline
from ralphloop.loop.prepare import remarks_on
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import CLEANED_UP, Workspace
from ralphloop.proc.threads import in_thread
from ralphloop.repo.checks import behaves, cannot_start, check_of, last_lines, why_red
from ralphloop.repo.inner import filters_of
from ralphloop.repo.named import CANARY, sweep
from ralphloop.repo.preflight import disk_space, inspect
from ralphloop.text.plain import counted, one_line, some

_MOST_TESTS = 5
_LONGEST_QUESTION = 800
_SPARE = "no experiments are made then; let it name what is to go (git clean -fdX build)"
_HURRY_S = 60.0  # of checks: a person waits for the turn of their session


class PreflightReport(msgspec.Struct):
    said: list[str] = msgspec.field(default_factory=list)
    warnings: list[str] = msgspec.field(default_factory=list)

    def heed(self, findings: Iterable[Finding], failure: type[RalphError] | None = None) -> None:
        for finding in findings:
            if finding.level is Level.ERROR and failure is not None:
                raise failure(finding.message, finding.fix)
            words = f"{finding.message} ({finding.fix})" if finding.fix else finding.message
            (self.said if finding.level is Level.INFO else self.warnings).append(words)


async def preflight(run: Run, workspace: Workspace, *, ours: frozenset[str]) -> PreflightReport:
    """Check everything and fix the checks of the run; what is dirty in trees of `ours` is not."""
    report = PreflightReport()
    commands = run.config.checks.commands
    sweep(workspace.project.root, workspace.project.directory / CANARY)
    dirty = _ready_repository(run, workspace, report, ours)
    look_at_agents(run, workspace, report)
    for argv in commands:  # one that can never start is no question of red or green
        makeable = run.setup.options.allow_red and "/" in argv[0]  # by a story
        found = find_program(argv[0], run.setup.options.env, workspace.project.root)
        if trouble := cannot_start(argv, found=bool(found) or makeable):
            words = f"check {check_of(argv).name}: {trouble.words}"
            raise RepositoryError(words, _sentences(trouble.fix))
    before = await run_baseline(run, workspace, commands)
    baseline = before.results
    report.said += before.said
    report.said += [f"check {it.name}: {it.status} in {it.duration_s:.1f} s" for it in baseline]
    stories = workspace.stories
    listed = [it for it in stories.list.stories if not it.passes] if stories else []
    if not commands and not (listed and all(it.verify for it in listed)):
        words = "no checks are configured: stories can only be `claimed` (set checks.commands)"
        report.warnings.append(words)
    report.warnings += remarks_on(run.setup)
    if workspace.checks_clean_up:
        report.warnings.append(f"{CLEANED_UP}; {_SPARE}")
        workspace.remarks = ()
    baseline = await _try_our_test(run, before.place, baseline)
    sealed = await _run_sealed_tests(run, before.place, report)
    baseline = (*baseline, *sealed.results)
    snapshot = workspace.measure.tree()
    # What cannot be measured is said once.
    (report.said if workspace.repo else report.warnings).extend(snapshot.notes)
    run.session.baseline = RunBaseline(
        checks=commands,
        results=tuple(msgspec.structs.replace(it, output_tail="", report=None) for it in baseline),
        dirty=dirty,
        start_head=snapshot.head or "",
        start_tree=snapshot.tree,
        branch=workspace.lands_on or snapshot.branch or "",
        filters=filters_of(workspace.repo.git) if workspace.repo else None,
        in_clean_tree=before.place is not workspace,
        sealed=sealed.names,
    )
    await _insist_on_green(run, baseline)
    run.journal.put("set_meta", results_to_keep(run, 0, baseline, [snapshot.tree]))
    run.emit(Preflight(said=tuple(report.said), warnings=tuple(report.warnings)))
    return report


class _SealedBaseline(NamedTuple):
    """What sealed tests show before any work; empty where there are none, or none could run."""

    results: tuple[CheckResult, ...] = ()
    names: tuple[str, ...] = ()


async def _run_sealed_tests(run: Run, place: Workspace, report: PreflightReport) -> _SealedBaseline:
    """Run what is sealed before any work, so that it is known what turns green."""
    from ralphloop.core.sentences import short_name
    from ralphloop.loop.sealing import files_sealed_for, run_sealed, takes_sealed

    files = files_sealed_for(run)
    if not files:
        return _SealedBaseline()
    if not takes_sealed(place):
        words = "sealed tests do not run: there is no clean tree to lay them into"
        report.warnings.append(words)
        return _SealedBaseline()
    verdict = await run_sealed(run, place, None, None)
    if verdict is None:
        return _SealedBaseline()
    told = verdict.result.report
    names = sorted({*told.passed, *told.failed, *told.errors}) if told else []
    red = len({*told.failed, *told.errors}) if told else 0
    report.said.append(f"sealed tests: {counted(len(names), 'test')}, {red} red before any work")
    short = tuple(dict.fromkeys(short_name(name) for name in names))
    return _SealedBaseline((verdict.result,), short)


async def _try_our_test(
    run: Run, workspace: Workspace, baseline: tuple[CheckResult, ...]
) -> tuple[CheckResult, ...]:
    """The baseline with what a failing test of ours makes of each check that names its tests.

    Also of a red one: what turns it green has to be believed.
    """
    tried = list(baseline)
    in_a_hurry = run.patience and sum(it.duration_s for it in baseline) > _HURRY_S
    if run.setup.policy.experiments == "off" or in_a_hurry or workspace.checks_clean_up:
        return baseline
    note = workspace.project.directory / CANARY
    checks = run.config.checks
    for number, (argv, result) in enumerate(zip(checks.commands, baseline, strict=False)):
        if result.report is not None:
            check = check_of(argv, checks.timeout, workspace.check_box)
            tests = [*result.report.passed, *result.report.failed]
            behaved = await in_thread(partial(behaves, check, workspace.root, tests, note))
            tried[number] = msgspec.structs.replace(result, behaved=behaved)
    return tuple(tried)


def _ready_repository(
    run: Run, workspace: Workspace, report: PreflightReport, ours: frozenset[str]
) -> tuple[str, ...]:
    """The paths that were dirty before us; raises where a run must not begin."""
    site = workspace.site
    repo = workspace.repo
    stories = workspace.stories
    if repo is None:
        report.heed(disk_space(workspace.root), RepositoryError)
        return ()
    is_ours = workspace.measure.tree().tree in ours or bool(site.lands_on)
    wanted = stories.list.branch_name if stories and not site.lands_on else None
    if wanted and not repo.unfinished_operation():
        beside = neighbours(site.project.directory, run.clock())
        branch = repo.branch()
        if branch != wanted and (other := next(beside, None)):  # their files stay where they are
            raise LockedError(
                f"run {other.run} in {other.project} works on branch {branch} in this work tree,"
                f" and the stories here want {wanted}",
                "Wait for it, use the same branch, or give one a work tree of its own:"
                " git worktree add.",
            )
        how = repo.switch_or_create_branch(wanted)
        report.said += [f"branch {wanted} was {how}"] if how != "already" else []
    findings = inspect(
        repo,
        store=site.project.directory / "objects",
        own=site.own,
        commits=run.config.git.commit == "story",
        allow_dirty=run.setup.options.allow_dirty or is_ours,
        story_files=[site.source_name] if site.source_name and not site.is_errand else (),
    )
    on_none = bool(site.lands_on)  # the landing tree is on no branch
    report.heed((it for it in findings if not (on_none and it.code == "detached")), RepositoryError)
    return () if is_ours else repo.dirty_paths(site.own)


def look_at_agents(run: Run, workspace: Workspace, report: PreflightReport) -> None:
    """The first agent must be there; one that may take over, comes later or only doubts is said."""
    from ralphloop.loop.probing import login_problems, write_problems

    setup = run.setup
    limited = run.limits.max_cost_usd > 0
    left = time_left(run.limits, run.totals(), run.clock())
    until = run.clock() + (left.seconds if left else 0.0)
    env = setup.options.env
    seen = set[str]()
    # Of a fleet each machine looks at its own, at every start; its lanes land, nobody else does.
    is_elsewhere = bool(run.config.fleet.server and workspace.lands_on)
    for worker in setup.workers:
        if worker.name not in seen and not is_elsewhere:
            box = workspace.site.agent_boxes.get(worker.name)
            env_for_it = workspace.site.env_for(worker.name)
            inquiry = Inquiry(worker.config, workspace.root, env_for_it, box=box)
            report.heed(worker.agent.check(inquiry), None if seen else AgentUnavailable)
            report.heed(write_problems(worker, inquiry))
        seen.add(worker.name)
        prices = run.config.prices.models
        report.heed(cost_problems(worker.name, worker.config, env, prices, limited=limited))
        if not is_elsewhere:
            own = workspace.site.env_for(worker.name)
            report.heed(login_problems(worker, own, until=until))
    for worker in setup.reviewers:
        if worker.name in seen:
            continue
        seen.add(worker.name)
        env_for_it = workspace.site.env_for(worker.name)
        box = workspace.site.agent_boxes.get(worker.name)
        inquiry = Inquiry(worker.config, workspace.root, env_for_it, box=box)
        report.heed(_as_reviewer(it) for it in worker.agent.check(inquiry))
        report.heed(login_problems(worker, env_for_it, until=until))


def _as_reviewer(finding: Finding) -> Finding:
    """What is wrong with one that may only doubt stops no run: its doubts will be missing."""
    if finding.level is not Level.ERROR:
        return finding
    words = f"{finding.message}: it will doubt nothing"
    return finding._replace(level=Level.WARNING, message=words)


async def _insist_on_green(run: Run, baseline: tuple[CheckResult, ...]) -> None:
    """A red baseline asks on a terminal and ends the command without one."""
    commands = run.config.checks.commands
    tolerant = run.config.checks.baseline
    red = {
        argv: result
        for argv, result in zip(commands, baseline, strict=False)
        if result.status is CheckStatus.FAILED
    }
    if not red or run.setup.options.allow_red or tolerant == "tolerate":
        return
    names = ", ".join(result.name for result in red.values())
    words = [f"{names} fails before any work was done"]
    fixes = []
    for argv, result in red.items():
        trouble = why_red(argv, result.output_tail)
        words.append(f"  {result.name}: {trouble.words}" if trouble else f"  {result.name}:")
        words += [f"    {line}" for line in last_lines(result.output_tail)]
        if trouble:
            fixes.append(trouble.fix)
    if len(fixes) < len(red):
        fixes.append("fix it, or run with --allow-red if the stories are to make it green")
    question = f"{_red_words(red.values())}. Start anyway?"
    stop = run.stop
    asks = run.asks
    if await in_thread(lambda gone: asks(question, lambda: gone() or stop.requested)):
        return
    if stop.requested:
        return  # the run ends before its first start, as an interrupted one
    raise RepositoryError("\n".join(words), _sentences(*dict.fromkeys(fixes)))


def _red_words(red: Iterable[CheckResult]) -> str:
    """Which checks are red, with their tests, where they are known, else their last line."""
    said = []
    for result in red:
        what = some([one_line(test, 100) for test in result.failing_tests], _MOST_TESTS)
        what = what or one_line("".join(last_lines(result.output_tail)[-1:]), 200)
        said.append(f"{result.name} is red before any work" + (f": {what}" if what else ""))
    return one_line("; ".join(said), _LONGEST_QUESTION)


def _sentences(*fixes: str) -> str:
    return " ".join(f"{fix[0].upper()}{fix[1:]}." for fix in fixes)
