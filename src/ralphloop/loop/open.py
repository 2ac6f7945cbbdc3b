"""Beginning or continuing a session, and ending it: everything around the loop itself."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from ralphloop.atomic import clean_leftovers
from ralphloop.config.values import storable
from ralphloop.core.events import RunStarted
from ralphloop.core.interventions import CircuitReset, Reopened
from ralphloop.core.model import Decision, ExitDecision
from ralphloop.core.planning import unless_taken_away
from ralphloop.core.run_state import RunState
from ralphloop.core.session import Session, first_state
from ralphloop.core.story_state import StoryState, load_states
from ralphloop.core.totals import spent_words
from ralphloop.errors import RalphError, RepositoryError
from ralphloop.journal.lock import RunLock
from ralphloop.journal.queries import JournalReader
from ralphloop.journal.records import NewRun, RunRecord
from ralphloop.journal.session import load_circuit, load_session, save_beginning, save_frozen
from ralphloop.journal.store import Journal, new_run_id
from ralphloop.loop.effects import take_back
from ralphloop.loop.ending import Ended, end_run, refuse_if_open
from ralphloop.loop.learning_steps import publish_learned
from ralphloop.loop.loop import run_loop
from ralphloop.loop.preflight import Report, look_at_agents, preflight
from ralphloop.loop.prepare import Setup
from ralphloop.loop.repair import put_back_own_files
from ralphloop.loop.requests import handle_requests
from ralphloop.loop.runner import Bus, Checker, Runner, Sink, measure_of
from ralphloop.proc.steps import Steps, StopSignal, beside
from ralphloop.proc.table import started_at
from ralphloop.repo import object_store
from ralphloop.repo.git import Git
from ralphloop.room import cannot_write, claim
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted

_ATTENTION_S = 1.0


async def run_session(
    setup: Setup,
    *,
    stop: StopSignal,
    sinks: Sequence[Sink] = (),
    tell: Callable[[str], None],
    clock: Callable[[], float] = time.time,
) -> Ended:
    """Hold the project, begin or continue, loop, and end it properly."""
    now = clock()
    make_directory(setup.project.directory)
    run = run_to_hold(setup, now)
    with ExitStack() as stack:
        lock = stack.enter_context(RunLock.acquire(setup.project.directory, run=run, now=now))
        if lock.note:
            tell(lock.note)
        journal = stack.enter_context(Journal.open(setup.project.journal))
        if journal.note:
            tell(journal.note)
        for place in {*_written_to(setup), *lock.places}:
            clean_leftovers(place, now=now)
        runner = await beside(open_runner(setup, journal, stop, sinks, tell, clock, run))
        runner.lock = lock
        return await _carried(runner, tell)


def _written_to(setup: Setup) -> set[Path]:
    """Where a process that was killed may have left half a file; the journal sees to its own."""
    places = {path for path in setup.project.directory.iterdir() if path.is_dir()}
    if setup.stories is not None:
        places.add(setup.stories.path.parent)
    return {setup.project.root, *places}


def make_directory(directory: Path) -> None:
    """Our own directory, ignored by git even where nobody said so."""
    _refuse_tracked(directory)
    claim(directory)
    try:
        object_store.prepare(directory / "objects")
    except OSError as error:
        raise cannot_write(directory, error) from None


def _refuse_tracked(directory: Path) -> None:
    """What a clone brings along is not what a run of ours wrote."""
    names = Git(directory.parent).attempt("ls-files", "-z", "--", *_never_tracked(directory))
    if names.returncode == 0 and names.stdout:
        first = os.fsdecode(names.stdout.split(b"\0")[0])
        raise RepositoryError(
            f"git tracks {first}, but {directory.name} is for this machine alone",
            f"Take it out of git and away: git rm -r -q --cached {directory.name}"
            f" && mv {directory.name} {directory.name}.old, then commit.",
        )


def _never_tracked(directory: Path) -> tuple[str, ...]:
    # Declared agents and the line that keeps git out may be committed: nothing of ours is there.
    name = directory.name
    return name, f":(exclude){name}/agents/", f":(exclude){name}/.gitignore"


def run_to_hold(setup: Setup, now: float) -> str:
    """The id this process answers to: the run it will continue, or a new one."""
    if setup.options.resume:
        with JournalReader.open(setup.project.journal) as journal:
            candidate = journal.resume_candidate(now)
        if candidate is not None and not candidate.expired:
            return candidate.run.id
    return new_run_id(now)


async def _carried(runner: Runner, tell: Callable[[str], None]) -> Ended:
    """The loop with its end: whatever happens is written down."""
    import asyncio

    attending = asyncio.create_task(_attend(runner))
    try:
        decision = await run_loop(runner)
        decision = unless_taken_away(decision, runner.story_list(), runner.session.stories)
    except RalphError as error:
        end_run(runner, Decision(word=ExitDecision.ERROR, reasons=(error.message,)))
        raise
    finally:
        attending.cancel()
    publish_learned(runner, tell)
    return end_run(runner, decision)


async def _attend(runner: Runner) -> None:
    """Answer what is asked of the run, also while an agent works."""
    import asyncio

    while True:
        await asyncio.sleep(_ATTENTION_S)
        with suppress(RalphError):  # the loop meets it too, and says so
            put_back_own_files(runner)
            handle_requests(runner)


def open_runner(
    setup: Setup,
    journal: Journal,
    stop: StopSignal,
    sinks: Sequence[Sink],
    tell: Callable[[str], None],
    clock: Callable[[], float],
    run: str,
    checker: Checker | None = None,
) -> Steps[Runner]:
    """Recover what a crash left, then continue or begin."""
    measure = measure_of(setup)
    candidate = journal.resume_candidate(clock())

    def made(session: Session) -> Runner:
        return Runner(
            setup=setup,
            session=session,
            journal=journal,
            bus=Bus(session.run, clock, journal, *sinks),
            measure=measure,
            clock=clock,
            stop=stop,
            checker=checker,
        )

    old = made(load_session(journal, candidate.run.id)) if candidate else None
    if old is not None:
        from ralphloop.loop.recovery import recover

        for done in (yield from recover(old)):
            tell(f"Recovered: {done}.")
    goes_on = stop.requested or (setup.options.resume and candidate and not candidate.expired)
    if old is not None and candidate is not None and goes_on:
        return _continued(old, candidate.run, tell)  # a stop asked for meanwhile ends it as it was
    refuse_if_open(journal, setup, clock())
    if setup.options.resume:
        age = "it is older than 24 hours" if candidate else "there is none to continue"
        tell(f"A new session begins: {age}.")
    elif candidate is not None and not candidate.expired:
        tell(_what_continue_would_keep(candidate.run))
    stories = old.session.stories if old else _last(journal)
    session = Session(run=run, state=RunState(stories=stories))
    return (yield from _begun(made(session), old, tell))


def _continued(runner: Runner, record: RunRecord, tell: Callable[[str], None]) -> Runner:
    """Go on where the journal left off; said in one sentence."""
    now, report = runner.clock(), Report()
    look_at_agents(runner, report)  # a login may be gone, or another agent chosen since
    _warn(report, tell)
    runner.journal.reopen_run(
        record.id,
        now=now,
        pid=os.getpid(),
        pid_started=started_at(os.getpid()) or 0.0,
        config=storable(runner.config),
    )
    if record.decision in (ExitDecision.BLOCKED, ExitDecision.TEST_SATURATION):
        runner.intervene(Reopened(waiting_only=True))
    _open_again(runner, tell)
    _reset_if_asked(runner)
    totals = runner.totals()  # what was recovered just now is part of it
    tell(
        f"Continuing run {record.id} from {format_duration(now - record.last_activity)} ago:"
        f" {counted(totals.iterations, 'iteration')},"
        f" {spent_words(totals.cost_usd, totals.unpriced)},"
        f" circuit {runner.session.state.breaker.circuit}; next is the first open story."
    )
    _started(runner, continued=True)
    return runner


def _begun(runner: Runner, old: Runner | None, tell: Callable[[str], None]) -> Steps[Runner]:
    """A new session; story states are taken over, blocked stories are tried again."""
    setup, session, journal = runner.setup, runner.session, runner.journal
    report = yield from preflight(runner, ours=_our_trees(journal))
    _warn(report, tell)
    frozen = session.frozen
    save_frozen(journal, session)  # before the run exists: none is ever without its checks
    session.state = first_state(frozen, load_circuit(journal), session.stories)
    journal.begin_run(
        NewRun(
            id=runner.run,
            started_at=runner.clock(),
            mode=str(setup.policy.mode),
            session=setup.options.session,
            prd_path=setup.source_name,
            branch=frozen.branch,
            head=frozen.start_head,
            pid=os.getpid(),
            pid_started=started_at(os.getpid()) or 0.0,
            config=storable(setup.config),
            continues=old.run if old else None,
        )
    )
    journal.put_stories(runner.run, session.stories)
    save_beginning(journal, session)
    runner.intervene(Reopened())
    _open_again(runner, tell)
    _reset_if_asked(runner)
    _started(runner, continued=False)
    return runner


def _open_again(runner: Runner, tell: Callable[[str], None]) -> None:
    """What nothing upholds any more is said before the first start."""
    for story, reason in take_back(runner, agent_ran=False).items():
        tell(f"{story} is open again: {reason}.")


def _warn(report: Report, tell: Callable[[str], None]) -> None:
    for line in report.warnings:
        tell(f"warning: {line}")


def _started(runner: Runner, *, continued: bool) -> None:
    stories, totals = runner.story_list(), runner.totals()
    config = runner.config
    runner.bus.emit(
        RunStarted(
            continued=continued,
            project=runner.setup.project.root.name,
            branch=runner.session.frozen.branch,
            agent=str(config.agent.name),
            model=config.agent.model,
            stories=stories.total if stories else 0,
            passed=stories.passed if stories else 0,
            cost_usd=totals.cost_usd,
            unpriced=totals.unpriced,
            active_s=totals.active_s,
            max_iterations=runner.limits.max_iterations,
            max_cost_usd=runner.limits.max_cost_usd,
            max_time_s=runner.limits.max_time,
            circuit=runner.session.state.breaker.circuit,
        )
    )
    runner.publish()


def _reset_if_asked(runner: Runner) -> None:
    if runner.setup.options.reset_circuit:
        runner.intervene(CircuitReset(at=runner.clock()))


def _last(journal: Journal) -> dict[str, StoryState]:
    """What the last run knew of its stories, also if it is over: their grades are still true."""
    latest = journal.latest_run()
    return load_states(journal.story_states(latest.id)) if latest else {}


def _our_trees(journal: Journal) -> frozenset[str]:
    """The tree the last iteration of the last run ended in: what is dirty there, we left."""
    latest = journal.latest_run()
    if latest is None:
        return frozenset()
    newest = journal.latest_iterations(latest.id, 1)
    return frozenset(record.end_tree for record in newest if record.end_tree)


def _what_continue_would_keep(record: RunRecord) -> str:
    return (
        f"A new session begins beside the unfinished run {record.id}; story states are kept."
        f" `ralph run --continue` would also have kept its {record.totals.iterations} iterations"
        f" and ${record.totals.cost_usd:.2f} of budget."
    )
