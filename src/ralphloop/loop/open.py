"""Everything around the loop itself: beginning or continuing a session, and ending it."""

import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from functools import partial
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
from ralphloop.journal.known_projects import remember_project
from ralphloop.journal.lock import RunLock
from ralphloop.journal.queries import NOTES_KEY, JournalReader
from ralphloop.journal.records import RunRecord, RunStatus
from ralphloop.journal.views import PROGRESS_VIEW, archive_progress
from ralphloop.loop.commands import begin_command
from ralphloop.loop.confine import confine
from ralphloop.loop.effects import apply_effects, take_back
from ralphloop.loop.judge_place import CleanTree
from ralphloop.loop.loop import finish_iteration, run_loop
from ralphloop.loop.offline_requests import finish_decisions
from ralphloop.loop.prepare import Setup
from ralphloop.loop.readiness import PreflightReport, look_at_agents, preflight
from ralphloop.loop.repair import put_back_own_files
from ralphloop.loop.requests import handle_requests
from ralphloop.loop.run import Asks, Audience, Run, Sink, Tell, nobody_says_yes
from ralphloop.loop.steadily import steadily, steadily_now
from ralphloop.loop.workspace import Workspace
from ralphloop.proc import programs
from ralphloop.proc.process_table import started_at
from ralphloop.proc.run import Output, ourselves, run_command, run_in_front
from ralphloop.proc.threads import StopSignal
from ralphloop.repo.private_git import make_directory
from ralphloop.text.durations import format_duration, next_clock
from ralphloop.text.plain import counted

_A_PERSON_WENT_ON = (ExitDecision.BLOCKED, ExitDecision.ERROR, ExitDecision.TEST_SATURATION)
_ATTENTION_S = 1.0
_ON_END_TIMEOUT_S = 60.0
_PR_TIMEOUT_S = 1_200.0
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


MakesCleanTree = Callable[[Setup, Workspace], CleanTree | None]


def no_clean_tree(_setup: Setup, _checkout: Workspace) -> CleanTree | None:
    """Stories are judged where they are made."""
    return None


async def run_session(
    setup: Setup,
    *,
    stop: StopSignal,
    sink: Sink,
    tell: Tell,
    asks: Asks = nobody_says_yes,
    clean_tree: MakesCleanTree = no_clean_tree,
) -> EndedRun:
    with hold_project(setup, stop=stop, sink=sink, tell=tell, asks=asks) as new:
        new.checkout.clean_tree = clean_tree(new.run.setup, new.checkout)
        run = await open_run(new.run, new.checkout)
        async with carried(run, new.checkout) as under_way:
            under_way.decision = await run_loop(run, new.checkout)
        return under_way.ended


class HeldProject(NamedTuple):
    """A project that nobody else works on, and nothing begun yet."""

    run: Run
    checkout: Workspace


@contextmanager
def hold_project(
    setup: Setup, *, stop: StopSignal, sink: Sink, tell: Tell, asks: Asks = nobody_says_yes
) -> Iterator[HeldProject]:
    """The project for one run: all of it confined, locked and open."""
    directory = setup.project.directory
    now = time.time()
    setup.insist_on_trust()
    make_directory(directory)
    setup = confine(setup)
    tell(f"{setup.confined}.")
    name = run_to_hold(setup, now)
    with (
        RunLock(directory, run=name, now=now, shared=setup.site.has_neighbours) as lock,
        Journal.open(setup.project.journal) as journal,
    ):
        if lock.ended:
            tell(f"Ended what a run that was killed had left at work: {', '.join(lock.ended)}.")
        journal.insist_on_belief(accepts_foreign=setup.trusts_all)
        if journal.note:
            tell(journal.note)
        # Where a process that was killed may have left half a file; the journal sees to its own.
        places = {setup.project.root, *lock.held}
        places.update(path for path in directory.iterdir() if path.is_dir())
        if setup.stories:
            places.add(setup.stories.path.parent)
        for place in places:
            clean_leftovers(place, now=now)
        run = Run(setup, Session(run=name), journal, stop, Audience(sink, tell, asks))
        yield HeldProject(run, Workspace(setup.site, lock=lock))


class CarriedRun:
    """A run under way: its loop says here how it ended."""

    def __init__(self) -> None:
        self.decision = Decision(word=ExitDecision.ERROR, reasons=("nobody said how it ended",))
        self._ended: EndedRun | None = None

    @property
    def ended(self) -> EndedRun:
        """How it ended, once it has."""
        if self._ended is None:
            raise RuntimeError("the run is still under way")
        return self._ended

    def end_as(self, ended: EndedRun) -> None:
        self._ended = ended


@asynccontextmanager
async def carried(run: Run, workspace: Workspace) -> AsyncIterator[CarriedRun]:
    """Carry an open run to its end: the loop runs inside, and what is asked of it is answered."""
    under_way = CarriedRun()
    with closing(workspace):
        with attended(run, workspace):
            try:
                yield under_way
                decision = under_way.decision
                decision = unless_taken_away(decision, workspace.story_list(), run.session.stories)
                await steadily_now(run, partial(_bring_out, run, workspace))
            except GitDisturbed as error:
                given_up = _no_more_waiting(run, error)
                failed = Decision(word=ExitDecision.ERROR, reasons=(error.message,))
                under_way.end_as(end_run(run, workspace, given_up or failed, publish=False))
                if given_up is None:
                    raise
                return
            except RalphError as error:
                failed = Decision(word=ExitDecision.ERROR, reasons=(error.message,))
                with suppress(RalphError):  # what went wrong first is what is said
                    end_run(run, workspace, failed, publish=False)
                raise
        under_way.end_as(end_run(run, workspace, decision, publish=False))


@contextmanager
def attended(run: Run, workspace: Workspace) -> Iterator[None]:
    """Hear what is asked of a run while something else is waited for."""
    import asyncio

    attending = asyncio.create_task(_attend(run, workspace))
    try:
        yield
    finally:
        attending.cancel()


async def _attend(run: Run, workspace: Workspace) -> None:
    """Hear what is asked of a run, also while an agent works; ends when it is cancelled."""
    import asyncio

    while True:
        await asyncio.sleep(_ATTENTION_S)
        with suppress(RalphError):  # the loop meets it too, and says so
            run.beat()
            put_back_own_files(run, workspace)
            handle_requests(run, workspace)


def _no_more_waiting(run: Run, error: GitDisturbed) -> Decision | None:
    """Why git was not waited for any longer, where that is a person's word or the time's."""
    decision = reached(run.limits.of_time, run.totals(), run.clock())
    if error.stopped:
        decision = run.interrupted
    if decision is None:
        return None
    owed = f"{error.message}: what is still to be done then is done by `ralph run --continue`"
    return msgspec.structs.replace(decision, reasons=(*decision.reasons, owed))


def run_to_hold(setup: Setup, now: float) -> str:
    """The id this process answers to: the run it will continue, or a new one."""
    if setup.options.resume:
        with JournalReader.open(setup.project.journal) as journal:
            candidate = journal.resume_candidate(now, errand=setup.site.is_errand)
        if candidate is not None and not candidate.expired:
            return candidate.run.id
    return new_run_id(now)


async def open_run(new: Run, workspace: Workspace) -> Run:
    """Do what a crash left; then the unfinished run to go on with, or the new one, begun."""
    setup = new.setup
    journal = new.journal
    tell = new.tell
    if done := workspace.restore_experiment(journal):
        tell(f"Recovered: {done}.")
    for done in finish_decisions(setup.project, journal):
        tell(f"Recovered: {done}.")
    now = time.time()
    remember_project(setup.project.root, setup.options.env, now)
    is_errand = workspace.site.is_errand
    candidate = journal.resume_candidate(now, errand=is_errand)
    old = new.of_session(journal.session(candidate.run.id)) if candidate else None
    if old is not None:
        await _tell_recovered(old, workspace)
    for other in journal.unfinished_runs(errand=not is_errand):
        if journal.owed_effects(other.id) or journal.unfinished_iterations(other.id):
            beside = Workspace(setup.site_of_stories(other.prd_path), lock=workspace.lock)
            await _tell_recovered(new.of_session(journal.session(other.id)), beside)
    if old is not None and candidate is not None:
        can_go_on = setup.options.resume and not candidate.expired
        # A stop asked for meanwhile ends it as it was.
        if can_go_on or new.stop.requested:
            await _continue_run(old, workspace, candidate.run)
            return old
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
    await _begin_run(new, workspace, old)
    return new


async def _tell_recovered(run: Run, workspace: Workspace) -> None:
    for words in await recover(run, workspace):
        run.tell(f"Recovered: {words}.")


async def recover(run: Run, workspace: Workspace) -> list[str]:
    """Do what a crash left, and nothing twice; returns what was done, in words."""
    from ralphloop.loop.agent import recover_iteration, stop_agent_of  # few runs were cut off

    done: list[str] = []
    if run.journal.meta(f"lanes:{run.id}") is not None:
        return done  # its work is in other trees: `lanes.run_in_lanes` settles it
    for owing in run.journal.owed_effects(run.id):
        await steadily(run, partial(apply_effects, run, workspace, owing.n, owing.effects))
        done.append(f"finished what iteration {owing.n} had left to do")
    cuts = run.journal.unfinished_iterations(run.id)
    # An agent may have written what the journal says.
    gone = take_back(run, workspace) if cuts else {}
    done += [f"{story} is open again: {reason}" for story, reason in gone.items()]
    for cut in cuts:
        recovered = await recover_iteration(run, workspace, cut, stop_agent_of(cut))
        if recovered.judged is not None:
            await finish_iteration(run, workspace, recovered.judged)
        done.append(recovered.words)
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


async def _continue_run(run: Run, workspace: Workspace, record: RunRecord) -> None:
    """Go on where the journal left off; said in one sentence."""
    now = run.clock()
    report = PreflightReport()
    look_at_agents(run, workspace, report)  # a login may be gone, or another agent chosen since
    run.journal.reopen_run(
        record.id,
        now=now,
        pid=os.getpid(),
        pid_started=started_at(os.getpid()) or 0.0,
        config=storable(run.config),
    )
    if record.decision in _A_PERSON_WENT_ON:
        stories = workspace.story_list()
        # Where a person answered some of the questions, the other stories still wait for theirs.
        if stories is None or choose(stories, run.session.stories) is None:
            run.intervene(Reopened(waiting_only=True))
    await _settle_before_start(run, workspace, report)
    totals = run.totals()  # what was recovered just now is part of it
    run.tell(
        f"Continuing run {record.id} from {format_duration(now - record.last_activity)} ago:"
        f" {counted(totals.iterations, 'iteration')},"
        f" {spent_words(totals.cost_usd, totals.unpriced)},"
        f" circuit {run.session.state.breaker.circuit}; next is the first open story."
    )
    _tell_started(run, workspace, continued=True)


async def _begin_run(run: Run, workspace: Workspace, old: Run | None) -> None:
    """A new session; story states are taken over, blocked stories are tried again."""
    setup = run.setup
    session = run.session
    journal = run.journal
    is_errand = workspace.site.is_errand
    latest = None if is_errand else journal.latest_night()
    last = None if is_errand else latest or journal.latest_run()
    newest = journal.latest_iterations(last.id, 1) if last else ()
    # What is dirty in the tree the last iteration of the last run ended in, we left.
    ours = frozenset(record.end_tree for record in newest if record.end_tree)
    # What the last run knew of its stories, also if it is over: their grades are still true.
    known = journal.story_states(latest.id) if latest else {}
    report = await steadily(run, partial(preflight, run, workspace, ours=ours))
    baseline = session.baseline
    journal.save_part(run.id, baseline)  # before the run exists: none is ever without its checks
    stories = old.session.stories if old else known
    session.state = first_state(baseline, journal.circuit(), stories)
    journal.begin_run(
        RunRecord(
            id=run.id,
            started_at=run.clock(),
            mode=setup.policy.mode,
            session=setup.options.session,
            prd_path=workspace.site.source_name,
            branch=baseline.branch,
            head=baseline.start_head,
            pid=os.getpid(),
            pid_started=started_at(os.getpid()) or 0.0,
            config=msgspec.to_builtins(storable(setup.config)),
            continues=old.id if old else None,
        )
    )
    journal.put_stories(run.id, session.stories)
    journal.save_part(run.id, session.state)
    _put_progress_away(run, workspace, latest)
    run.intervene(Reopened())
    await _settle_before_start(run, workspace, report)
    _tell_started(run, workspace, continued=False)


def _put_progress_away(run: Run, workspace: Workspace, latest: RunRecord | None) -> None:
    """A new branch, or a list of other stories, is another feature: it begins its own progress."""
    stories = workspace.story_list()
    project = workspace.project
    if stories is None or workspace.site.is_errand or workspace.lands_on:
        return
    wanted = stories.branch_name
    is_new = bool(wanted and latest and latest.branch and wanted != latest.branch)
    tasks = () if is_new else [f"{story.id}: {story.title}" for story in stories.stories]
    path = project.root / PROGRESS_VIEW
    archive = project.directory / "archive"
    if said := archive_progress(path, tasks, archive, now=run.clock()):
        run.tell(said)


async def _settle_before_start(run: Run, workspace: Workspace, report: PreflightReport) -> None:
    """Say what has to be said before the first start, and do what is owed to the journal."""
    for line in run.setup.handed:
        run.tell(line)
    for warning in report.warnings:
        run.tell(f"warning: {warning}")
    upheld = partial(take_back, run, workspace, agent_ran=False)
    for story, reason in (await steadily_now(run, upheld)).items():
        run.tell(f"{story} is open again: {reason}.")
    for note in run.journal.meta(NOTES_KEY) or ():
        run.add_note(note)
    run.journal.set_meta(NOTES_KEY, [])
    if run.setup.options.reset_circuit:
        run.intervene(CircuitReset(at=run.clock()))


def _tell_started(run: Run, workspace: Workspace, *, continued: bool) -> None:
    # When `limits.until` is: once for a session, unless a person says it anew.
    overrides = run.session.overrides
    until = run.config.limits.until
    anew = "limits.until" in run.setup.options.flags
    if anew or not (continued and overrides.extra.ends_at):
        ends_at = next_clock(until, run.clock()) if until else 0.0
        extra = msgspec.structs.replace(overrides.extra, ends_at=ends_at)
        run.change_overrides(msgspec.structs.replace(overrides, extra=extra))
    stories = workspace.story_list()
    totals = run.totals()
    session = run.session
    agent = run.config.agent
    limits = run.limits
    started = RunStarted(
        continued=continued,
        project=run.setup.project.root.name,
        branch=session.baseline.branch,
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
        quota=session.state.usage_windows,
        circuit=session.state.breaker.circuit,
    )
    run.emit(msgspec.structs.replace(started, **named(limits)))
    workspace.publish(run, at_once=True)


def end_run(
    run: Run, workspace: Workspace, decision: Decision, *, publish: bool = True
) -> EndedRun:
    """End the run with this decision, in the journal and for everybody who listens."""
    if publish:
        _bring_out(run, workspace)
    if run.session.overrides.paused:  # what is over is not paused, when it goes on
        run.change_overrides(msgspec.structs.replace(run.session.overrides, paused=""))
    complete = decision.word is ExitDecision.PROJECT_COMPLETE
    run.journal.end_run(
        run.id,
        now=run.clock(),
        status=RunStatus.COMPLETE if complete else RunStatus.STOPPED,
        decision=str(decision.word),
        reason="; ".join(decision.reasons),
        used_up=decision.limit,
    )
    run.journal.prune_events(keep_runs=_RUNS_WITH_EVENTS)
    workspace.publish(run, at_once=True)
    stories = workspace.story_list()
    totals = run.journal.totals(run.id)
    told = RunFinished(
        decision=decision.word,
        reasons=decision.reasons,
        limit=decision.limit,
        exit_code=int(EXIT_CODES[decision.word]),
        passed=stories.passed if stories else 0,
        total=stories.total if stories else 0,
        cost_usd=totals.cost_usd + run.owed_usd,
        unpriced=totals.unpriced,
        tokens=totals.total_tokens,
        iterations=totals.iterations,
        duration_s=totals.active_s,
        quota=valid(run.session.state.usage_windows, run.clock()),
        waiting=tuple(
            f"{story} waits for you: {state.reason}"
            for story, state in run.session.stories.items()
            if story and state.standing is Standing.BLOCKED
        ),
    )
    run.emit(told)
    return EndedRun(run.id, told)


def _bring_out(run: Run, workspace: Workspace) -> None:
    """What a run that ended by itself has learned, in commits; it can be done again."""
    if not run.stop.requested and run.session.number:
        _publish_learned(run, workspace)
        workspace.land()


def _publish_learned(run: Run, workspace: Workspace) -> None:
    """Skills and the managed block, in a commit of their own, when a run ended by itself."""
    from ralphloop.learning.publish import publish_at_end

    for line in publish_at_end(
        workspace.project,
        workspace.repo if run.config.git.commit == "story" else None,
        run.config.learning,
        agent=run.config.agent.name,
        run=run.id,
        now=run.clock(),
        on_branch=not workspace.lands_on,
    ):
        run.tell(line)


def _same_trust(setup: Setup) -> tuple[str, ...]:
    """A yes that was given for this run is one for what follows it."""
    trust = setup.options.trust
    if not trust:
        return ()
    return ("--trust",) if setup.trusts_all else ("--trust-pin", trust)


def after_run(setup: Setup, ended: EndedRun) -> str:
    """Run the `on_end` command with the result on its input, or `ralph pr`; what is to be said.

    A command of the work tree may be an agent's by now: it runs in the sandbox, where there is one.
    """
    argv = setup.config.session.on_end
    root = setup.project.root
    if not argv:
        return ""
    # The run is over: what fails now changes nothing.
    with suppress(OSError, ValueError):
        if argv[0] == "pr":
            opening = (*ourselves(), "pr", ended.run, *argv[1:])
            env = programs.own_environment()
            if "--follow" in argv:  # it may take all night, and a person may watch
                run_in_front((*opening, *_same_trust(setup)), cwd=root, env=env)
                return ""
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
