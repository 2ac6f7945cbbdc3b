"""From an agent that has ended to a decision that is written down.

The place in which a story is judged need not be the one in which its agent worked.  What learning
makes of it decides nothing and ends no run.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ralphloop.core.events import IterationFinished, StoryBlocked, StorySetAside
from ralphloop.core.iteration import Result
from ralphloop.core.model import CheckStatus, Evidence, Outcome, StoryList, Value
from ralphloop.core.planning import facts_of
from ralphloop.core.progress import footprint, is_trodden
from ralphloop.core.proof import Trial
from ralphloop.core.proposals import Proposal
from ralphloop.core.run_state import RunState, Standing
from ralphloop.core.sealed_tests import SEALED
from ralphloop.core.sentences import NO_PRICE
from ralphloop.core.step import Need, Step, needs, step
from ralphloop.core.story_after import accounted
from ralphloop.errors import RalphError
from ralphloop.journal.records import FinishedIteration
from ralphloop.loop import repair
from ralphloop.loop.before import results_before, results_to_keep
from ralphloop.loop.begin import Round
from ralphloop.loop.effects import take_back, tell_taken_back
from ralphloop.loop.prepare import at_work
from ralphloop.loop.proposing import Finds, finds_of
from ralphloop.loop.run import Run
from ralphloop.loop.steadily import steadily
from ralphloop.loop.workspace import Workspace
from ralphloop.repo.snapshot import Snapshot

_WAITING = {Standing.SET_ASIDE: StorySetAside, Standing.BLOCKED: StoryBlocked}


class Measurement(Value, kw_only=True):
    """The work tree and the story list after the agent ended."""

    after: Snapshot
    evidence: Evidence  # as far as it is known without running anything
    stories: StoryList | None  # as the list is now, claims put back
    doubts: tuple[str, ...] = ()  # what was taken away or was not its to change, in words


class Repaired(msgspec.Struct):
    """What an agent broke that is not its own, as far as it is put right; None: not yet."""

    number: int  # of the iteration
    elsewhere: str | None = None
    meddled: tuple[str, ...] | None = None
    listed: repair.ListAfter | None = None
    gone: dict[str, str] | None = None


class Judgement(Value, kw_only=True):
    begun: Round
    result: Result
    measured: Measurement
    evidence: Evidence  # with everything that was found out
    before: RunState  # the state the step was taken from
    step: Step

    @property
    def cut_short(self) -> bool:
        """Not all checks could be run: nothing of this may be written down."""
        return self.step.iteration.evidence.checks_cut


async def judge(
    run: Run,
    workspace: Workspace,
    begun: Round,
    result: Result,
    look: Callable[[], Measurement] | None = None,
) -> Judgement:
    """Find out what the step needs and take it; begun again where git was not left in peace.

    `workspace` is where the agent worked; checks and experiments run in its clean tree, where it
    has one.
    """
    if result.account:  # which is known only where it worked
        begun = replace(begun, worker=replace(begun.worker, account=result.account))
    look = look or partial(_measured, run, workspace, begun)
    is_first = True

    async def judged() -> Judgement:
        nonlocal is_first
        if not (is_first or workspace.number):  # no experiment is ever made in a lane
            workspace.restore_experiment(run.journal)
        is_first = False
        return await _judge(run, workspace, begun, result, look)

    return await steadily(run, judged)


async def _judge(
    run: Run,
    workspace: Workspace,
    begun: Round,
    result: Result,
    look: Callable[[], Measurement],
) -> Judgement:
    measured = look()
    place = workspace  # where it is judged
    start = begun.start
    policy = run.policy
    evidence = measured.evidence
    state = run.session.state
    disturbed = ""
    while need := needs(state, start, result, evidence, policy):
        if need is Need.CHECKS:
            checked = await _checked(run, workspace, begun, measured.after, evidence)
            place = checked.place
            evidence = checked.evidence
        elif need is Need.DOUBTS:
            evidence = _doubted(run, workspace, begun, measured, evidence)
        elif need is Need.OPINIONS:
            from ralphloop.loop.doubting import opinions

            asked = () if result.asked is None else (result.asked,)
            own = accounted(begun.state.conversation, result.response, *asked).own
            spent = own + evidence.reviewed
            heard = await opinions(run, workspace, begun, measured.after, spent)
            evidence = replace(
                evidence,
                opinions=heard.said,
                # A lane has asked before, where its work was not yet with what landed.
                reviewed=evidence.reviewed + heard.usage,
                doubters=(*evidence.doubters, *heard.doubters),
            )
        elif disturbed:
            untried = Trial(untried=(f"not tried again: {disturbed}",))
            evidence = replace(evidence, trial=untried)
        else:
            from ralphloop.loop.trying import try_story

            tried = await try_story(run, place, begun, measured.after, evidence)
            evidence = tried.evidence
            if place is not workspace and evidence.checked_tree:
                # What ran elsewhere wrote nothing here.
                evidence = replace(evidence, checked_tree=measured.after.tree)
            disturbed = tried.disturbed
            if disturbed:  # what was checked is there no more: look at all again
                workspace.remarks = (*measured.evidence.remarks, disturbed)
                measured = look()
                evidence = measured.evidence
    if evidence.trial is not None and begun.story is not None and begun.story.criteria:
        from ralphloop.loop.showing import criteria_shown

        evidence = replace(evidence, criteria=criteria_shown(run, place, begun, evidence))
    evidence = _with_surroundings(run, workspace, begun, result, measured, evidence)
    state = run.session.state  # a person may have been heard meanwhile
    return Judgement(
        begun=begun,
        result=result,
        measured=measured,
        evidence=evidence,
        before=state,
        step=step(state, start, result, evidence, policy),
    )


def _doubted(
    run: Run, workspace: Workspace, begun: Round, measured: Measurement, evidence: Evidence
) -> Evidence:
    """With what speaks against the story beside its tests."""
    from ralphloop.loop.doubting import beside_the_tests

    after = measured.after
    beside = beside_the_tests(run, workspace, begun, after, evidence)
    return replace(
        evidence,
        doubts=tuple(dict.fromkeys((*measured.doubts, *beside))),
        work=_known_by(workspace, begun, after),
        hollow=_is_hollow(workspace, begun, after),
    )


def _with_surroundings(
    run: Run,
    workspace: Workspace,
    begun: Round,
    result: Result,
    measured: Measurement,
    evidence: Evidence,
) -> Evidence:
    """With what the step has to know of other stories, other agents and the run."""
    now = run.clock()
    clocks = begun.worker.clocks
    mine = clocks.of_failure if result.response.outcome is Outcome.FATAL else clocks.of_limit
    others = [
        one for one in run.workers if mine not in (one.clocks.of_limit, one.clocks.of_failure)
    ]
    only = run.setup.options.only
    states = run.session.stories
    stories = run.as_known(measured.stories) if workspace.number else measured.stories
    return replace(
        evidence,
        stories=facts_of(stories, states, begun.story, only=only),
        used=run.totals(),
        fallback=at_work(others, run.session.state.agent_available_at, now) is not None,
        left_tree=_left(workspace, evidence),
        at=now,
    )


def _known_by(workspace: Workspace, begun: Round, after: Snapshot) -> str:
    """What the story's own change is known by, wherever it stands."""
    from ralphloop.repo.story_change import id_of_change

    measure = workspace.measure
    return id_of_change(measure.git(), measure.known(begun.story_began).tree, after.tree)


def _left(workspace: Workspace, evidence: Evidence) -> str:
    """The work tree after the checks, which may have written into it; empty where none ran."""
    if not evidence.checks:
        return ""
    return evidence.checked_tree or workspace.tree().tree


def _put_right(run: Run, workspace: Workspace, begun: Round) -> Repaired:
    """Put right what is not the agent's to change; what was found.

    That is found once: git may be killed before all of it is measured.
    """
    number = begun.number
    repair.put_back_own_files(run, workspace)
    repaired = workspace.repaired
    if repaired is None or repaired.number != number:
        repaired = Repaired(number)
        workspace.repaired = repaired
    if repaired.elsewhere is None:
        repaired.elsewhere = repair.back_on_the_branch(
            run, workspace, number, begun.before, begun.list_bytes
        )
    if repaired.meddled is None:
        repaired.meddled = repair.put_back_settings(run, workspace, number, begun.settings)
    if repaired.listed is None:
        repaired.listed = repair.read_back(
            run, workspace, begun.stories, begun.list_bytes, begun.state.proof.asked
        )
    return repaired


def _measured(run: Run, workspace: Workspace, begun: Round) -> Measurement:
    """What is different now that the agent has ended, and what it broke that is not its own."""
    number = begun.number
    before = begun.before
    repaired = _put_right(run, workspace, begun)
    elsewhere = repaired.elsewhere or ""
    meddled = repaired.meddled or ()
    listed = repaired.listed or repair.ListAfter()
    workspace.touched()
    after = workspace.tree()
    workspace.expected_head = after.head or ""  # if it moves, somebody else moved it
    lost = repair.lost_heads(run, workspace, number, begun.state, before, after)
    if repaired.gone is None:  # a lane holds no landed work
        repaired.gone = take_back(run, workspace) if lost and not workspace.number else {}
        tell_taken_back(run, workspace, number, repaired.gone)
    gone = repaired.gone
    unfinished = repair.note_left_open(workspace) or elsewhere or workspace.left_lane()
    remarks = workspace.remarks
    changed, work_files = workspace.measure.change_counts_and_paths(before, after)
    commits, subjects = workspace.measure.commits(before.head, after.head)
    hidden = repair.stashed(workspace, begun.stashes)
    left = repair.left_on_a_branch(workspace, begun.head_log, before, after)
    said = (*listed.findings, *meddled, *remarks, *lost.values(), unfinished, hidden, left)
    evidence = Evidence(
        files_changed=changed.count,
        commits=commits,
        tree=after.tree,
        head=after.head or "",
        work_files=work_files,
        changed=replace(changed, subjects=subjects),
        remarks=tuple(filter(None, said)),
        unfinished=unfinished,
        passes_set=begun.story is not None and listed.marks.get(begun.story.id) is False,
        asked=listed.asked,
        lost=lost,
    )
    if workspace.number:  # what costs more is found out where it lands
        evidence = replace(evidence, doubts=(), trial=Trial(), opinions=())
    window = run.policy.treading_window
    trail = (*begun.state.streak.trail, footprint(before.tree, evidence))[-window:]
    if 0 < window <= len(trail) and is_trodden(trail):  # the story may tread water
        net_lines = workspace.measure.net_lines(trail[0].tree, after.tree)
        evidence = replace(evidence, net_lines=net_lines)
    stories = listed.stories.with_passes(dict.fromkeys(gone, False)) if listed.stories else None
    doubts = (*lost.values(), *meddled, *listed.doubts)
    workspace.repaired = None
    workspace.remarks = ()
    return Measurement(after=after, evidence=evidence, stories=stories, doubts=doubts)


class _Checked(NamedTuple):
    evidence: Evidence  # with what the checks say
    place: Workspace  # in which they ran


async def _checked(
    run: Run, workspace: Workspace, begun: Round, after: Snapshot, evidence: Evidence
) -> _Checked:
    """What the checks say of what a commit would hold, the story's own command among them."""
    from ralphloop.loop.judge_place import run_judging_checks
    from ralphloop.loop.sealing import names_sealed, run_sealed
    from ralphloop.repo.bytecode import outdate_bytecode
    from ralphloop.repo.checks import compare

    workspace.touched()  # checks leave files behind
    if workspace.repo is not None:
        before_start = workspace.measure.known(begun.before)
        changed = workspace.measure.changes(before_start.tree, after.tree)
        outdate_bytecode(workspace.repo.root, (it.path for it in changed))
    baseline = run.session.baseline
    verify = begun.story.verify if begun.story else None
    if names_sealed(run, workspace, begun.story):
        verify = None
    has_changed = after.tree != begun.story_began.tree
    judged = await run_judging_checks(
        run, workspace, after, baseline.checks, verify, changed=has_changed
    )
    checks = judged.checks
    place = judged.place
    wanted = len(baseline.checks)
    if verify is not None:
        wanted += 1
    known = results_before(run, place, begun.story_began.tree)
    before = known.results.values()
    found = replace(
        evidence,
        checks=checks,
        checks_cut=run.stop.requested and len(checks) < wanted,
        comparison=compare(baseline.results, checks, run.config.checks.baseline, before),
    )
    is_red = any(it.status is CheckStatus.FAILED for it in checks)
    if is_red or found.checks_cut:
        return _Checked(found, place)
    sealed = await run_sealed(run, place, begun.story, known.of(SEALED))
    if sealed is not None:
        green = (*found.comparison.turned_green, *sealed.turned_green)
        found = replace(
            found,
            checks=(*checks, sealed.result),
            comparison=replace(found.comparison, turned_green=green),
        )
    return _Checked(found, place)


def _is_hollow(workspace: Workspace, begun: Round, after: Snapshot) -> bool:
    """Whether all that the story did is to make files without content."""
    measure = workspace.measure
    start = measure.known(begun.story_began)
    return measure.are_empty(measure.changes(start.tree, after.tree))


def record(run: Run, judged: Judgement) -> Judgement:
    """Fold the iteration into the session and write everything at once; what was decided."""
    begun = judged.begun
    result = judged.result
    before = run.session.state
    if before is not judged.before:  # something changed the run since: decide again
        again = step(before, begun.start, result, judged.evidence, run.policy)
        judged = replace(judged, before=before, step=again)
    done = judged.step
    analysis = judged.step.analysis
    state = done.state.story(done.story)
    meta: dict[str, object] = {}
    checks = judged.evidence.checks or ()
    if done.verdict.passed and checks:  # what the next story is compared with
        trees = (judged.measured.after.tree, judged.evidence.left_tree)
        meta |= results_to_keep(run, begun.number, checks, trees)
    told = IterationFinished(
        iteration=done.iteration,
        spent=done.spent,
        attempts=state.attempt.failed,
        warnings=tuple(_without_a_price(run, judged)),
    )
    ended = run.new_event(told, begun.number)
    finds = _finds(run, judged)
    meta |= finds.rows
    proposed = tuple(run.new_event(what, begun.number) for what in finds.events)
    run.journal.finish_iteration(
        FinishedIteration(
            run=run.id,
            n=begun.number,
            finished_at=run.clock(),
            outcome=str(analysis.outcome),
            decision=str(done.decision.word),
            status=str(analysis.status.status or "") if analysis.status else "",
            end_tree=judged.measured.after.tree,
            spent=done.spent,
            record=done.iteration,
            effects=done.effects,
            state=done.state,
            stories={done.story: state},
            meta=meta,
            events=(ended, *proposed),
        )
    )
    run.session.state = done.state
    for event in (ended, *proposed):
        run.sink(event)
    kind = _WAITING.get(state.standing)
    story = begun.story
    if story is not None and kind is not None:
        waits = kind(story=story.id, title=story.title, reason=state.reason)
        run.emit(waits, begun.number)
    run.tell_circuit(before.breaker)
    return judged


def _finds(run: Run, judged: Judgement) -> Finds:
    """What the agent found outside of its story, where it came to its own end."""
    if judged.step.analysis.outcome.is_infrastructure:
        return Finds()
    begun = judged.begun
    like = Proposal(
        id="",
        text="",
        story=begun.story.id if begun.story else "",
        run=run.id,
        iteration=begun.number,
        at=run.clock(),
        by=begun.worker.name,
    )
    return finds_of(run.journal, judged.result.response.final_text, like)


def _without_a_price(run: Run, judged: Judgement) -> Iterator[str]:
    """Said once, and only where it could not be known before: a limit that is none."""
    worker = judged.begun.worker
    limit = run.limits.max_cost_usd
    if not judged.step.spent.unpriced or not limit or run.totals().unpriced:
        return
    from ralphloop.agents.prices import CANNOT_BE_KEPT, why_unpriced

    if why_unpriced(worker.name, worker.config):
        return
    response = judged.result.response
    model = response.model or worker.config.model
    why = f"{NO_PRICE} {model}" if model else "no cost was told"
    if response.reader == "codex" and not model:
        why = "codex does not name its model"
    if judged.step.analysis.outcome.is_infrastructure:
        why = "this start was cut off before it told its cost"
    yield f"{CANNOT_BE_KEPT}{why}"


def learn_from(run: Run, workspace: Workspace, judged: Judgement) -> None:
    """Write down what an attempt taught, and aggregate every few stories."""
    config = run.config.learning
    story = judged.begun.story
    step = judged.step
    silent = step.analysis.outcome is Outcome.EMPTY and not step.iteration.changed.count
    silent = silent or step.analysis.refused
    if run.setup.options.session and not step.verdict.passed:
        return  # a person waits for the turn to end
    if not config.enabled or story is None or silent:
        return
    from ralphloop.learning import store
    from ralphloop.learning.capturing import capture
    from ralphloop.redaction import secret_values

    project = workspace.project
    state = run.session.story(story.id)
    head = workspace.expected_head  # of the commit made for the story, or the agent's last one
    has_commit = state.standing is Standing.PASSED and head != state.base.start_head
    capture(
        project,
        run.journal,
        run.id,
        judged.begun.number,
        story,
        commit=head if has_commit else "",
        secrets=secret_values(run.setup.options.env),
    )
    ended = sum(s.standing is not Standing.OPEN for s in run.session.stories.values())
    if state.standing is not Standing.OPEN and config.every and ended % config.every == 0:
        with suppress(RalphError, OSError):  # said at the end; what is learned never ends a run
            store.rebuild(project, now=run.clock())
