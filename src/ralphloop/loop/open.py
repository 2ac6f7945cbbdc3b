"""Everything around the loop itself: beginning or continuing a session, and ending it."""

import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.atomic import clean_leftovers
from ralphloop.config.values import storable
from ralphloop.core import breaker
from ralphloop.core.events import RunFinished, RunStarted
from ralphloop.core.interventions import CircuitReset, Reopened
from ralphloop.core.model import Circuit, Decision, ExitDecision
from ralphloop.core.planning import ENDINGS, choose, unless_taken_away
from ralphloop.core.policy import named, reached
from ralphloop.core.run_state import Session, Standing, first_state
from ralphloop.core.totals import spent_words, valid
from ralphloop.errors import CircuitOpen, ExitCode, GitDisturbed, RalphError
from ralphloop.journal.journal import Journal, new_run_id
from ralphloop.journal.lock import RunLock
from ralphloop.journal.queries import NOTES_KEY, JournalReader
from ralphloop.journal.records import RunRecord, RunStatus
from ralphloop.journal.views import PROGRESS_VIEW, archive_progress
from ralphloop.loop.commands import begin_command
from ralphloop.loop.confine import confine
from ralphloop.loop.effects import apply_effects, land, take_back
from ralphloop.loop.loop import concluded, run_loop
from ralphloop.loop.prepare import Setup
from ralphloop.loop.readiness import PreflightReport, look_at_agents, preflight
from ralphloop.loop.repair import put_back_own_files
from ralphloop.loop.requests import handle_requests
from ralphloop.loop.runner import Asks, Runner, Sink, Tell, measure_of, nobody_says_yes
from ralphloop.loop.steadily import steadily
from ralphloop.proc import programs
from ralphloop.proc.process_table import started_at
from ralphloop.proc.run import Output, ourselves, run_command, run_in_front
from ralphloop.proc.steps import Steps, StopSignal, beside, short
from ralphloop.repo.private_git import make_directory
from ralphloop.text.durations import format_duration, next_clock
from ralphloop.text.plain import counted

_A_PERSON_WENT_ON = (ExitDecision.BLOCKED, ExitDecision.ERROR, ExitDecision.TEST_SATURATION)
_ATTENTION_S = 1.0
_ON_END_TIMEOUT_S, _PR_TIMEOUT_S = 60.0, 1_200.0
_RUNS_WITH_EVENTS = 20
EXIT_CODES = {
    ExitDecision.PROJECT_COMPLETE: ExitCode.COMPLETE,
    ExitDecision.CIRCUIT_OPEN: ExitCode.HALTED,
    ExitDecision.TEST_SATURATION: ExitCode.HALTED,
    ExitDecision.BLOCKED: ExitCode.BLOCKED,
    ExitDecision.MAX_ITERATIONS: ExitCode.LIMIT,
    ExitDecision.BUDGET_EXHAUSTED: ExitCode.LIMIT,
    ExitDecision.USAGE_LIMIT: ExitCode.LIMIT,
    ExitDecision.NO_RUNNABLE_STORY: ExitCode.NOTHING_RUNNABLE,
    ExitDecision.ERROR: ExitCode.AGENT_UNAVAILABLE,
    ExitDecision.INTERRUPTED: ExitCode.INTERRUPTED,
}


class EndedRun(NamedTuple):
    run: str
    told: RunFinished


async def run_session(
    setup: Setup, *, stop: StopSignal, sink: Sink, tell: Tell, asks: Asks = nobody_says_yes
) -> EndedRun:
    with held(setup, stop=stop, sink=sink, tell=tell, asks=asks) as new:
        return await attended(await beside(open_runner(new)), run_loop)


@contextmanager
def held(
    setup: Setup, *, stop: StopSignal, sink: Sink, tell: Tell, asks: Asks = nobody_says_yes
) -> Iterator[Runner]:
    """The project for one run: all that is confined, locked and open, and nothing begun yet."""
    directory, now = setup.project.directory, time.time()
    setup.insist_on_trust()
    make_directory(directory)
    setup = confine(setup)
    tell(f"{setup.confined}.")
    run = run_to_hold(setup, now)
    with (
        RunLock(directory, run=run, now=now, shared=setup.shares) as lock,
        Journal.open(setup.project.journal) as journal,
    ):
        if lock.ended:
            tell(f"Ended what a run that was killed had left at work: {', '.join(lock.ended)}.")
        journal.insist_on_belief(accepts_foreign=setup.trusts_all)
        if journal.note:
            tell(journal.note)
        # Where a process that was killed may have left half a file; the journal sees to its own.
        places = {setup.project.root, *lock.held, *filter(Path.is_dir, directory.iterdir())}
        for place in places | ({setup.stories.path.parent} if setup.stories else set()):
            clean_leftovers(place, now=now)
        new = Session(run=run)
        measure = measure_of(setup)
        yield Runner(setup, new, journal, measure, stop, sink=sink, tell=tell, asks=asks, lock=lock)


async def attended(runner: Runner, loop: Callable[[Runner], Awaitable[Decision]]) -> EndedRun:
    """Carry an open run to its end, and answer what is asked of it meanwhile."""
    import asyncio

    async def attend() -> None:  # also while an agent works
        while True:
            await asyncio.sleep(_ATTENTION_S)
            with suppress(RalphError):  # the loop meets it too, and says so
                put_back_own_files(runner)
                handle_requests(runner)

    attending = asyncio.create_task(attend())
    try:
        decision = await loop(runner)
        decision = unless_taken_away(decision, runner.story_list(), runner.session.stories)
        await beside(steadily(runner, partial(short, partial(_bring_out, runner))))
    except GitDisturbed as error:
        given_up = _no_more_waiting(runner, error)
        failed = Decision(word=ExitDecision.ERROR, reasons=(error.message,))
        ended = end_run(runner, given_up or failed, publish=False)
        if given_up is None:
            raise
        return ended
    except RalphError as error:
        failed = Decision(word=ExitDecision.ERROR, reasons=(error.message,))
        with suppress(RalphError):  # what went wrong first is what is said
            end_run(runner, failed, publish=False)
        runner.measure.close()
        raise
    finally:
        attending.cancel()
    ended = end_run(runner, decision, publish=False)
    runner.measure.close()
    return ended


def _no_more_waiting(runner: Runner, error: GitDisturbed) -> Decision | None:
    """Why git was not waited for any longer, where that is a person's word or the time's."""
    decision = reached(runner.limits.of_time, runner.totals(), runner.clock())
    if error.stopped:
        decision = runner.interrupted
    if decision is None:
        return None
    owed = f"{error.message}: what is still to be done then is done by `ralph run --continue`"
    return msgspec.structs.replace(decision, reasons=(*decision.reasons, owed))


def run_to_hold(setup: Setup, now: float) -> str:
    """The id this process answers to: the run it will continue, or a new one."""
    if setup.options.resume:
        with JournalReader.open(setup.project.journal) as journal:
            candidate = journal.resume_candidate(now, errand=setup.is_errand)
        if candidate is not None and not candidate.expired:
            return candidate.run.id
    return new_run_id(now)


def open_runner(new: Runner) -> Steps[Runner]:
    """Do what a crash left, then go on with the unfinished run or begin the new one."""
    setup, journal, tell = new.setup, new.journal, new.tell
    if done := new.restored():
        tell(f"Recovered: {done}.")
    now = time.time()
    candidate = journal.resume_candidate(now, errand=setup.is_errand)
    again = msgspec.structs.replace
    old = again(new, session=journal.session(candidate.run.id)) if candidate else None
    beside = (
        again(new, session=journal.session(it.id), setup=setup.for_stories_of(it.prd_path))
        for it in journal.unfinished_runs(errand=not setup.is_errand)
        if journal.owed_effects(it.id) or journal.unfinished_iterations(it.id)
    )
    for one in (*([old] if old else ()), *beside):
        for done in (yield from recover(one)):
            tell(f"Recovered: {done}.")
    goes_on = new.stop.requested or (setup.options.resume and candidate and not candidate.expired)
    if old is not None and candidate is not None and goes_on:
        # A stop asked for meanwhile ends it as it was.
        return (yield from _continued(old, candidate.run))
    _refuse_if_open(journal, setup, now)
    if setup.options.resume:
        age = "it is older than 24 hours" if candidate else "there is none to continue"
        tell(f"A new session begins: {age}.")
    elif candidate is not None and not candidate.expired:
        used = candidate.run.totals
        tell(
            f"A new session begins beside the unfinished run {candidate.run.id}; story states are"
            f" kept. `ralph run --continue` would also have kept what it used:"
            f" {counted(used.iterations, 'iteration')}, ${used.cost_usd:.2f}."
        )
    return (yield from _begun(new, old))


def recover(runner: Runner) -> Steps[list[str]]:
    """Do what a crash left, and nothing twice; returns what was done, in words."""
    from ralphloop.loop.agent import recover_iteration  # few runs were cut off

    done: list[str] = []
    if runner.journal.meta(f"lanes:{runner.run}") is not None:
        return done  # its work is in other trees: `lanes.opening` settles it
    for owing in runner.journal.owed_effects(runner.run):
        yield from steadily(runner, partial(apply_effects, runner, owing.n, owing.effects))
        done.append(f"finished what iteration {owing.n} had left to do")
    cuts = runner.journal.unfinished_iterations(runner.run)
    gone = take_back(runner) if cuts else {}  # an agent may have written what the journal says
    done += [f"{story} is open again: {reason}" for story, reason in gone.items()]
    for cut in cuts:
        done.append((yield from recover_iteration(runner, cut, partial(concluded, runner))))
    return done


def _refuse_if_open(journal: Journal, setup: Setup, now: float) -> None:
    """A start that could not run anything is none: the session that opened the circuit stays."""
    if setup.options.reset_circuit:
        return
    circuit = breaker.cool_down(journal.circuit(), iteration=0, at=now, policy=setup.policy)
    if circuit.circuit is Circuit.OPEN:
        end = ENDINGS[ExitDecision.CIRCUIT_OPEN]
        words = f"the circuit is OPEN: {circuit.reason}"
        raise CircuitOpen(words, f"{end.advice} {end.command}")


def _continued(runner: Runner, record: RunRecord) -> Steps[Runner]:
    """Go on where the journal left off; said in one sentence."""
    now, report = runner.clock(), PreflightReport()
    look_at_agents(runner, report)  # a login may be gone, or another agent chosen since
    runner.journal.reopen_run(
        record.id,
        now=now,
        pid=os.getpid(),
        pid_started=started_at(os.getpid()) or 0.0,
        config=storable(runner.config),
    )
    if record.decision in _A_PERSON_WENT_ON:
        stories = runner.story_list()
        # Where a person answered some of the questions, the other stories still wait for theirs.
        if stories is None or choose(stories, runner.session.stories) is None:
            runner.intervene(Reopened(waiting_only=True))
    yield from _ready(runner, report)
    totals = runner.totals()  # what was recovered just now is part of it
    runner.tell(
        f"Continuing run {record.id} from {format_duration(now - record.last_activity)} ago:"
        f" {counted(totals.iterations, 'iteration')},"
        f" {spent_words(totals.cost_usd, totals.unpriced)},"
        f" circuit {runner.session.state.breaker.circuit}; next is the first open story."
    )
    _started(runner, continued=True)
    return runner


def _begun(runner: Runner, old: Runner | None) -> Steps[Runner]:
    """A new session; story states are taken over, blocked stories are tried again."""
    setup, session, journal = runner.setup, runner.session, runner.journal
    latest = None if setup.is_errand else journal.latest_night()
    last = None if setup.is_errand else latest or journal.latest_run()
    newest = journal.latest_iterations(last.id, 1) if last else ()
    # What is dirty in the tree the last iteration of the last run ended in, we left.
    ours = frozenset(record.end_tree for record in newest if record.end_tree)
    # What the last run knew of its stories, also if it is over: their grades are still true.
    known = journal.story_states(latest.id) if latest else {}
    report = yield from steadily(runner, partial(preflight, runner, ours=ours))
    frozen = session.frozen
    journal.save_part(runner.run, frozen)  # before the run exists: none is ever without its checks
    stories = old.session.stories if old else known
    session.state = first_state(frozen, journal.circuit(), stories)
    journal.begin_run(
        RunRecord(
            id=runner.run,
            started_at=runner.clock(),
            mode=setup.policy.mode,
            session=setup.options.session,
            prd_path=setup.source_name,
            branch=frozen.branch,
            head=frozen.start_head,
            pid=os.getpid(),
            pid_started=started_at(os.getpid()) or 0.0,
            config=msgspec.to_builtins(storable(setup.config)),
            continues=old.run if old else None,
        )
    )
    journal.put_stories(runner.run, session.stories)
    journal.save_part(runner.run, session.state)
    _put_progress_away(runner, latest)
    runner.intervene(Reopened())
    yield from _ready(runner, report)
    _started(runner, continued=False)
    return runner


def _put_progress_away(runner: Runner, latest: RunRecord | None) -> None:
    """A new branch, or a list of other stories, is another feature: it begins its own progress."""
    stories, project = runner.story_list(), runner.setup.project
    if stories is None or runner.setup.is_errand or runner.setup.lands_on:
        return
    wanted = stories.branch_name
    is_new = bool(wanted and latest and latest.branch and wanted != latest.branch)
    tasks = () if is_new else [f"{story.id}: {story.title}" for story in stories.stories]
    path, archive = project.root / PROGRESS_VIEW, project.directory / "archive"
    if said := archive_progress(path, tasks, archive, now=runner.clock()):
        runner.tell(said)


def _ready(runner: Runner, report: PreflightReport) -> Steps[None]:
    for line in (*runner.setup.handed, *(f"warning: {line}" for line in report.warnings)):
        runner.tell(line)
    upheld = partial(take_back, runner, agent_ran=False)
    for story, reason in (yield from steadily(runner, partial(short, upheld))).items():
        runner.tell(f"{story} is open again: {reason}.")
    for note in runner.journal.meta(NOTES_KEY) or ():
        runner.add_note(note)
    runner.journal.set_meta(NOTES_KEY, [])
    if runner.setup.options.reset_circuit:
        runner.intervene(CircuitReset(at=runner.clock()))


def _started(runner: Runner, *, continued: bool) -> None:
    # When `limits.until` is: once for a session, unless a person says it anew.
    desk, until = runner.session.desk, runner.config.limits.until
    anew = "limits.until" in runner.setup.options.flags
    if anew or not (continued and desk.extra.ends_at):
        ends_at = next_clock(until, runner.clock()) if until else 0.0
        extra = msgspec.structs.replace(desk.extra, ends_at=ends_at)
        runner.change_desk(msgspec.structs.replace(desk, extra=extra))
    stories, totals = runner.story_list(), runner.totals()
    session, agent, limits = runner.session, runner.config.agent, runner.limits
    started = RunStarted(
        continued=continued,
        project=runner.setup.project.root.name,
        branch=session.frozen.branch,
        agent=str(agent.name),
        model=agent.models,
        stories=stories.total if stories else 0,
        passed=stories.passed if stories else 0,
        cost_usd=totals.cost_usd,
        unpriced=totals.unpriced,
        tokens=totals.fresh_tokens,
        active_s=totals.active_s,
        ends_at=limits.ends_at,
        reserve=limits.reserve,
        quota=session.state.quota,
        circuit=session.state.breaker.circuit,
    )
    runner.emit(msgspec.structs.replace(started, **named(limits)))
    runner.publish(at_once=True)


def end_run(runner: Runner, decision: Decision, *, publish: bool = True) -> EndedRun:
    if publish:
        _bring_out(runner)
    if runner.session.desk.paused:  # what is over is not paused, when it goes on
        runner.change_desk(msgspec.structs.replace(runner.session.desk, paused=""))
    runner.settle()
    complete = decision.word is ExitDecision.PROJECT_COMPLETE
    runner.journal.end_run(
        runner.run,
        now=runner.clock(),
        status=RunStatus.COMPLETE if complete else RunStatus.STOPPED,
        decision=str(decision.word),
        reason="; ".join(decision.reasons),
    )
    runner.journal.prune_events(keep_runs=_RUNS_WITH_EVENTS)
    runner.publish(at_once=True)
    stories, totals = runner.story_list(), runner.journal.totals(runner.run)
    told = RunFinished(
        decision=decision.word,
        reasons=decision.reasons,
        exit_code=int(EXIT_CODES[decision.word]),
        passed=stories.passed if stories else 0,
        total=stories.total if stories else 0,
        cost_usd=totals.cost_usd + runner.owed_usd,
        unpriced=totals.unpriced,
        tokens=totals.total_tokens,
        iterations=totals.iterations,
        duration_s=totals.active_s,
        quota=valid(runner.session.state.quota, runner.clock()),
        waiting=tuple(
            f"{story} waits for you: {state.reason}"
            for story, state in runner.session.stories.items()
            if story and state.standing is Standing.BLOCKED
        ),
    )
    runner.emit(told)
    return EndedRun(runner.run, told)


def _bring_out(runner: Runner) -> None:
    """What a run that ended by itself has learned, in commits; it can be done again."""
    if not runner.stop.requested and runner.session.number:
        _publish_learned(runner)
        land(runner)


def _publish_learned(runner: Runner) -> None:
    """Skills and the managed block, in a commit of their own, when a run ended by itself."""
    from ralphloop.learning.publish import at_end

    for line in at_end(
        runner.setup.project,
        runner.setup.repo if runner.config.git.commit == "story" else None,
        runner.config.learning,
        agent=runner.config.agent.name,
        run=runner.run,
        now=runner.clock(),
        on_branch=not runner.setup.lands_on,
    ):
        runner.tell(line)


def after_run(setup: Setup, ended: EndedRun) -> str:
    """Run the `on_end` command with the result on its input, or `ralph pr`; what is to be said.

    A command of the work tree may be an agent's by now: it runs in the sandbox, where there is one.
    """
    argv, root = setup.config.session.on_end, setup.project.root
    if not argv:
        return ""
    # The run is over: what fails now changes nothing.
    with suppress(OSError, ValueError):
        if argv[0] == "pr":
            opening = (*ourselves(), "pr", ended.run, *argv[1:])
            env = programs.own_environment()
            done = run_command(
                opening, cwd=root, env=env, timeout_s=_PR_TIMEOUT_S, output=Output.TOGETHER
            )
            return done.said
        result = msgspec.json.encode({"run": ended.run, **ended.told.published()})
        try:
            begun = begin_command(setup, argv)
        except RalphError as error:
            return f"session.on_end was not run: {error.message}"
        code = run_in_front(
            begun.argv, cwd=root, env=begun.env, given=result, timeout_s=_ON_END_TIMEOUT_S
        )
        if code and begun.confined:
            return (
                f"session.on_end: {argv[0]} ended with {code}, in the sandbox, because it is a"
                " command of the work tree; a program that lies elsewhere runs outside"
            )
    return ""
