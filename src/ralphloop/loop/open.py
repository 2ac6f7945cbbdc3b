"""Beginning or continuing a session, and ending it: everything around the loop itself.

What can fail later is looked at before the first start (`readiness`).
"""

import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from ralphloop.atomic import clean_leftovers
from ralphloop.config.values import storable
from ralphloop.core import breaker
from ralphloop.core.events import RunStarted
from ralphloop.core.interventions import CircuitReset, Reopened
from ralphloop.core.model import Circuit, Decision, ExitDecision
from ralphloop.core.planning import ENDINGS, choose, unless_taken_away
from ralphloop.core.policy import named
from ralphloop.core.run_state import Session, first_state
from ralphloop.core.story_state import load_states
from ralphloop.core.totals import spent_words
from ralphloop.errors import CircuitOpen, RalphError
from ralphloop.journal.journal import Journal, new_run_id
from ralphloop.journal.lock import RunLock
from ralphloop.journal.queries import JournalReader
from ralphloop.journal.records import RunRecord
from ralphloop.journal.session import NOTES_KEY, load_circuit, load_session, save_part
from ralphloop.journal.views import PROGRESS_VIEW, archive_progress
from ralphloop.loop.confine import confine
from ralphloop.loop.effects import take_back
from ralphloop.loop.ending import EndedRun, end_run
from ralphloop.loop.loop import run_loop
from ralphloop.loop.prepare import Setup
from ralphloop.loop.readiness import PreflightReport, look_at_agents, preflight
from ralphloop.loop.repair import put_back_own_files
from ralphloop.loop.requests import handle_requests
from ralphloop.loop.runner import Patience, Runner, Sink, Tell, measure_of, nobody, restored
from ralphloop.proc.process_table import started_at
from ralphloop.proc.steps import Steps, StopSignal, beside
from ralphloop.repo.private_git import make_directory
from ralphloop.text.durations import format_duration, next_clock
from ralphloop.text.plain import counted

_A_PERSON_WENT_ON = (ExitDecision.BLOCKED, ExitDecision.ERROR, ExitDecision.TEST_SATURATION)
_ATTENTION_S = 1.0


async def run_session(setup: Setup, *, stop: StopSignal, sink: Sink, tell: Tell) -> EndedRun:
    """Hold the project, begin or continue, loop, and end it properly."""
    with held(setup, tell) as (ready, journal, lock, run):
        opening = open_runner(ready, journal, run, stop=stop, sink=sink, tell=tell)
        return await carried(await beside(opening), lock, run_loop)


@contextmanager
def held(setup: Setup, tell: Tell) -> Iterator[tuple[Setup, Journal, RunLock, str]]:
    """The project for one run: its confined setup, its journal, its lock and the run's name."""
    directory, now = setup.project.directory, time.time()
    setup.insist_on_trust()
    make_directory(directory)
    setup = confine(setup)
    tell(f"{setup.confined}.")
    run = run_to_hold(setup, now)
    with (
        RunLock.acquire(directory, run=run, now=now, shared=setup.shares) as lock,
        Journal.open(setup.project.journal) as journal,
    ):
        if lock.ended:
            tell(f"Ended what a run that was killed had left at work: {', '.join(lock.ended)}.")
        journal.insist_on_belief(accepts_foreign=setup.trusts_all)
        if journal.note:
            tell(journal.note)
        # Where a process that was killed may have left half a file; the journal sees to its own.
        places = {setup.project.root, *lock.places, *filter(Path.is_dir, directory.iterdir())}
        for place in places | ({setup.stories.path.parent} if setup.stories else set()):
            clean_leftovers(place, now=now)
        yield setup, journal, lock, run


async def carried(
    runner: Runner, lock: RunLock, loop: Callable[[Runner], Awaitable[Decision]]
) -> EndedRun:
    """Carry an open run to its end, and answer what is asked of it meanwhile."""
    import asyncio

    runner.lock = lock
    attending = asyncio.create_task(_attend(runner))
    try:
        decision = await loop(runner)
        decision = unless_taken_away(decision, runner.story_list(), runner.session.stories)
    except RalphError as error:
        failed = Decision(word=ExitDecision.ERROR, reasons=(error.message,))
        end_run(runner, failed, publish=False)
        raise
    finally:
        attending.cancel()
    ended = end_run(runner, decision)
    runner.measure.close()
    return ended


async def _attend(runner: Runner) -> None:
    """Answer what is asked of the run, also while an agent works."""
    import asyncio

    while True:
        await asyncio.sleep(_ATTENTION_S)
        with suppress(RalphError):  # the loop meets it too, and says so
            put_back_own_files(runner)
            handle_requests(runner)


def run_to_hold(setup: Setup, now: float) -> str:
    """The id this process answers to: the run it will continue, or a new one."""
    if setup.options.resume:
        with JournalReader.open(setup.project.journal) as journal:
            candidate = journal.resume_candidate(now, errand=setup.is_errand)
        if candidate is not None and not candidate.expired:
            return candidate.run.id
    return new_run_id(now)


def open_runner(
    setup: Setup,
    journal: Journal,
    run: str,
    *,
    stop: StopSignal,
    sink: Sink = nobody,
    tell: Tell,
    patience: Patience | None = None,
) -> Steps[Runner]:
    """Recover what a crash left, then continue or begin."""
    measure, now = measure_of(setup), time.time()
    if done := restored(journal, setup.repo, measure, setup.project):
        tell(f"Recovered: {done}.")
    candidate = journal.resume_candidate(now, errand=setup.is_errand)

    def made(session: Session, setup: Setup = setup) -> Runner:
        return Runner(
            setup=setup,
            session=session,
            journal=journal,
            measure=measure,
            stop=stop,
            sink=sink,
            tell=tell,
            patience=patience,
        )

    old = made(load_session(journal, candidate.run.id)) if candidate else None
    beside = (
        made(load_session(journal, run.id), setup.for_stories_of(run.prd_path))
        for run in journal.unfinished_runs(errand=not setup.is_errand)
        if journal.owed_effects(run.id) or journal.unfinished_iterations(run.id)
    )
    for cut_off in (*([old] if old else ()), *beside):
        from ralphloop.loop.recovery import recover

        for done in (yield from recover(cut_off)):
            tell(f"Recovered: {done}.")
    goes_on = stop.requested or (setup.options.resume and candidate and not candidate.expired)
    if old is not None and candidate is not None and goes_on:
        return _continued(old, candidate.run)  # a stop asked for meanwhile ends it as it was
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
    return (yield from _begun(made(Session(run=run)), old))


def _refuse_if_open(journal: Journal, setup: Setup, now: float) -> None:
    """A start that could not run anything is none: the session that opened the circuit stays."""
    if setup.options.reset_circuit:
        return
    circuit = breaker.cool_down(load_circuit(journal), iteration=0, at=now, policy=setup.policy)
    if circuit.circuit is Circuit.OPEN:
        advice = ENDINGS[ExitDecision.CIRCUIT_OPEN].next_step
        raise CircuitOpen(f"the circuit is OPEN: {circuit.reason}", advice)


def _continued(runner: Runner, record: RunRecord) -> Runner:
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
    if record.decision in _A_PERSON_WENT_ON and not _has_something_to_do(runner):
        runner.intervene(Reopened(waiting_only=True))
    _ready(runner, report)
    totals = runner.totals()  # what was recovered just now is part of it
    runner.tell(
        f"Continuing run {record.id} from {format_duration(now - record.last_activity)} ago:"
        f" {counted(totals.iterations, 'iteration')},"
        f" {spent_words(totals.cost_usd, totals.unpriced)},"
        f" circuit {runner.session.state.breaker.circuit}; next is the first open story."
    )
    _started(runner, continued=True)
    return runner


def _has_something_to_do(runner: Runner) -> bool:
    """A person answered some of the questions: the other stories still wait for theirs."""
    stories = runner.story_list()
    return stories is not None and choose(stories, runner.session.stories) is not None


def _begun(runner: Runner, old: Runner | None) -> Steps[Runner]:
    """A new session; story states are taken over, blocked stories are tried again."""
    setup, session, journal = runner.setup, runner.session, runner.journal
    latest = None if setup.is_errand else journal.latest_run()
    newest = journal.latest_iterations(latest.id, 1) if latest else ()
    # What is dirty in the tree the last iteration of the last run ended in, we left.
    ours = frozenset(record.end_tree for record in newest if record.end_tree)
    # What the last run knew of its stories, also if it is over: their grades are still true.
    known = load_states(journal.story_states(latest.id)) if latest else {}
    report = yield from preflight(runner, ours=ours)
    frozen = session.frozen
    save_part(journal, session, frozen)  # before the run exists: none is ever without its checks
    stories = old.session.stories if old else known
    session.state = first_state(frozen, load_circuit(journal), stories)
    journal.begin_run(
        RunRecord(
            id=runner.run,
            started_at=runner.clock(),
            mode=str(setup.policy.mode),
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
    save_part(journal, session, session.state)
    _put_progress_away(runner, latest)
    runner.intervene(Reopened())
    _ready(runner, report)
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


def _ready(runner: Runner, report: PreflightReport) -> None:
    """Say what is to be minded, open again what nothing upholds, reset the circuit if asked."""
    for line in (*runner.setup.handed, *(f"warning: {line}" for line in report.warnings)):
        runner.tell(line)
    for story, reason in take_back(runner, agent_ran=False).items():
        runner.tell(f"{story} is open again: {reason}.")
    for note in runner.journal.meta(NOTES_KEY) or ():
        runner.add_note(note)
    runner.journal.set_meta(NOTES_KEY, [])
    if runner.setup.options.reset_circuit:
        runner.intervene(CircuitReset(at=runner.clock()))


def _set_end(runner: Runner, *, continued: bool) -> None:
    """Fix when `limits.until` is: once for a session, unless a person says it anew."""
    desk, until, now = runner.session.desk, runner.config.limits.until, runner.clock()
    if continued and desk.extra.ends_at and "limits.until" not in runner.setup.options.flags:
        return
    ends_at = next_clock(until, now) if until else 0.0
    extra = msgspec.structs.replace(desk.extra, ends_at=ends_at)
    runner.change_desk(msgspec.structs.replace(desk, extra=extra))


def _started(runner: Runner, *, continued: bool) -> None:
    _set_end(runner, continued=continued)
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
    runner.publish()
