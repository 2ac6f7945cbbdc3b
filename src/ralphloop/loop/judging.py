"""From an agent that has ended to a decision that is written down.

What learning makes of it decides nothing and ends no run.  Beside its tests these speak against a
green story, and none can raise a grade: scripts that a check or the story's own command runs are
guarded by their paths, since running them cannot show whether they were made easier; work outside
the commit is named, unless the story's own command asks for just that; and of the commands in
`checks.doubt`, exit code 1 with words is a finding, anything else, crashes included, no obstacle.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial

import msgspec

from ralphloop.core.events import IterationFinished, StoryBlocked, StorySetAside
from ralphloop.core.grading import DOUBT, VERIFY
from ralphloop.core.iteration import Result
from ralphloop.core.model import CheckStatus, Evidence, Outcome, StoryList, Value
from ralphloop.core.planning import facts_of
from ralphloop.core.progress import footprint, is_trodden
from ralphloop.core.proof import Trial
from ralphloop.core.run_state import RunState, Standing, verify_was
from ralphloop.core.step import Need, Step, needs, step
from ralphloop.errors import RalphError
from ralphloop.journal.records import FinishedIteration
from ralphloop.loop import repair
from ralphloop.loop.before import results_before, results_to_keep
from ralphloop.loop.begin import Round
from ralphloop.loop.effects import take_back, tell_taken_back
from ralphloop.loop.prepare import at_work
from ralphloop.loop.run import Run
from ralphloop.loop.steadily import steadily
from ralphloop.loop.workspace import Workspace
from ralphloop.proc.threads import in_thread
from ralphloop.repo.snapshot import Change, Snapshot
from ralphloop.repo.work_tree import project_prefix
from ralphloop.text.diffs import diff_parts
from ralphloop.text.plain import one_line, some

_LONGEST_DIFF = 400_000  # characters of a change that a doubter is given at a time
_MOST_PARTS = 25
_LONGEST_WORDS = 2_000
_LARGEST_SCRIPT = 256 * 1024
_LOOKED_BACK = 20  # iterations
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
    """Find out what the step needs and take it; begun again where git was not left in peace."""

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
    run: Run, workspace: Workspace, begun: Round, result: Result, look: Callable[[], Measurement]
) -> Judgement:
    measured = look()
    start = begun.start
    policy = run.policy
    evidence = measured.evidence
    state = run.session.state
    disturbed = ""
    while need := needs(state, start, result, evidence, policy):
        found: dict[str, object] = {}
        if need is Need.CHECKS:
            found = await _checked(run, workspace, begun)
        elif need is Need.DOUBTS:
            doubts = (
                *measured.doubts,
                *beside_the_tests(run, workspace, begun, measured.after, evidence),
            )
            found = {
                "doubts": tuple(dict.fromkeys(doubts)),
                "work": _known_by(workspace, begun, measured.after),
                "hollow": _is_hollow(workspace, begun, measured.after),
            }
        elif need is Need.OPINIONS:
            found = {"opinions": (await opinions(run, workspace, begun, measured.after))}
        elif disturbed:
            found = {"trial": Trial(untried=(f"not tried again: {disturbed}",))}
        else:
            from ralphloop.loop.trying import tried

            evidence, disturbed = await tried(run, workspace, begun, measured.after, evidence)
            if disturbed:  # what was checked is there no more: look at all again
                workspace.remarks = (*measured.evidence.remarks, disturbed)
                measured = look()
                evidence = measured.evidence
        evidence = msgspec.structs.replace(evidence, **found)
    now = run.clock()
    clocks = begun.worker.clocks
    mine = clocks.of_failure if result.response.outcome is Outcome.FATAL else clocks.of_limit
    others = [
        one for one in run.setup.workers if mine not in (one.clocks.of_limit, one.clocks.of_failure)
    ]
    only = run.setup.options.only
    states = run.session.stories
    stories = run.as_known(measured.stories) if workspace.number else measured.stories
    evidence = msgspec.structs.replace(
        evidence,
        stories=facts_of(stories, states, begun.story, only=only),
        used=run.totals(),
        fallback=at_work(others, run.session.state.available_at, now) is not None,
        left_tree=_left(workspace, evidence),
        at=now,
    )
    state = run.session.state  # a person may have been heard meanwhile
    return Judgement(
        begun=begun,
        result=result,
        measured=measured,
        evidence=evidence,
        before=state,
        step=step(state, start, result, evidence, policy),
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
            run, workspace, begun.stories, begun.list_bytes, begun.state.asked
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
    unfinished = repair.left_open(workspace) or elsewhere or workspace.left_lane()
    remarks = workspace.remarks
    changed, work_files = workspace.measure.diff(before, after)
    commits, subjects = workspace.measure.commits(before.head, after.head)
    hidden = repair.stashed(workspace, begun.stashes)
    said = (*listed.findings, *meddled, *remarks, *lost.values(), unfinished, hidden)
    evidence = Evidence(
        files_changed=changed.count,
        commits=commits,
        tree=after.tree,
        head=after.head or "",
        work_files=work_files,
        changed=msgspec.structs.replace(changed, subjects=subjects),
        remarks=tuple(filter(None, said)),
        unfinished=unfinished,
        passes_set=begun.story is not None and listed.marks.get(begun.story.id) is False,
        asked=listed.asked,
        lost=lost,
    )
    if workspace.number:  # what costs more is found out where it lands
        evidence = msgspec.structs.replace(evidence, doubts=(), trial=Trial(), opinions=())
    window = run.policy.treading_window
    trail = (*begun.state.trail, footprint(before.tree, evidence))[-window:]
    if 0 < window <= len(trail) and is_trodden(trail):  # the story may tread water
        net_lines = workspace.measure.net_lines(trail[0].tree, after.tree)
        evidence = msgspec.structs.replace(evidence, net_lines=net_lines)
    stories = listed.stories.with_passes(dict.fromkeys(gone, False)) if listed.stories else None
    doubts = (*lost.values(), *meddled, *listed.doubts)
    workspace.repaired = None
    workspace.remarks = ()
    return Measurement(after=after, evidence=evidence, stories=stories, doubts=doubts)


async def _checked(run: Run, workspace: Workspace, begun: Round) -> dict[str, object]:
    from ralphloop.repo.checks import compare

    workspace.touched()  # checks leave files behind
    frozen = run.session.frozen
    verify = begun.story.verify if begun.story else None
    checks = await workspace.run_checks(run, frozen.checks, verify=verify)
    wanted = len(frozen.checks) + (verify is not None)
    before = results_before(run, workspace, begun.story_began.tree).results.values()
    return {
        "checks": checks,
        "checks_cut": run.stop.requested and len(checks) < wanted,
        "comparison": compare(frozen.baseline, checks, run.config.checks.baseline, before),
    }


def _is_hollow(workspace: Workspace, begun: Round, after: Snapshot) -> bool:
    """Whether all that the story did is to make files without content."""
    measure = workspace.measure
    start = measure.known(begun.story_began)
    return measure.are_empty(measure.changes(start.tree, after.tree))


def beside_the_tests(
    run: Run, workspace: Workspace, begun: Round, after: Snapshot, evidence: Evidence
) -> Iterator[str]:
    """What the agent has to answer for that no test shows, in words."""
    from ralphloop.repo.runners import changed_scripts

    measure = workspace.measure
    repo = workspace.repo
    root = workspace.project.root
    start = measure.known(begun.story_began)
    changes = measure.changes(start.tree, after.tree)
    prefix = project_prefix(repo.root, root) if repo else ""
    commands = [*run.session.frozen.checks, *run.config.checks.doubt]
    # Those of stories to come as well: who works on this one must not make them easier.
    open_stories = [it for it in begun.stories.stories if not it.passes] if begun.stories else []
    commands += [it.verify for it in (begun.story, *open_stories) if it and it.verify]

    def text(tree: str, path: str) -> str:
        ended = measure.git().attempt("cat-file", "blob", f"{tree}:{prefix}{path}")
        found = ended.stdout[:_LARGEST_SCRIPT] if ended.returncode == 0 else b""
        return found.decode("utf-8", "replace")

    old, new = (cache(partial(text, tree)) for tree in (start.tree, after.tree))
    for argv in dict.fromkeys(commands) if changes else ():
        yield from changed_scripts(argv, old, new)
    paths = {change.path for change in changes if change.before is not None}
    for word in _words_of_filters(run.session.frozen.filters or ()):
        if os.path.normpath(word) in paths:
            yield f"{word}, a filter through which git commits files, was changed"
    yield from _outside(run, workspace, begun, evidence, changes)


def _words_of_filters(filters: Iterable[str]) -> Iterator[str]:
    """The words of the commands that make of a file what is committed."""
    for setting in filters:
        key, _, command = setting.partition("\n")
        if key.endswith((".clean", ".process")):
            yield from command.split()


def _outside(
    run: Run, workspace: Workspace, begun: Round, evidence: Evidence, changes: Sequence[Change]
) -> Iterator[str]:
    """Work that the checks saw and a commit will not hold."""
    repo = workspace.repo
    begun_run = run.journal.find_run(run.id)
    now = next((it.status for it in evidence.checks or () if it.name == VERIFY), None)
    was = verify_was(begun.state, begun.story) if begun.story else None
    # Its own command was red and is green: what was ignored before may be what it asks for.
    asked_for = (was, now) == (CheckStatus.FAILED, CheckStatus.PASSED)
    if repo is None or begun_run is None:
        return
    from ralphloop.repo.outside import (
        excludes_changed,
        hidden,
        ignored_since,
        newly_ignored,
        newly_imported,
    )

    if unseen := hidden(repo, [change.path for change in changes]):
        words = "is changed, but git was told not to look: no commit will hold it"
        yield f"{some(unseen)} {words}"
    if excludes_changed(repo, begun_run.started_at):
        yield ".git/info/exclude was changed: what it hides is in no commit"
    took = sum(check.duration_s for check in evidence.checks or ())
    until = time.time() - took - 1  # what the checks wrote themselves is not meant
    ignored = ignored_since(repo, begun_run.started_at, until, workspace.measure.own)
    if asked_for:
        start = workspace.measure.known(begun.story_began).tree
        away = newly_ignored(repo, workspace.measure, start, ignored, begun_run.started_at)
        if away:
            yield f"ignored by git only since this story, no commit will hold them: {some(away)}"
    elif ignored and evidence.comparison.turned_green:
        words = "a check turned green, and files that git ignores were written for it"
        yield f"{words}: {some(ignored)}"
    elif ignored:
        texts = workspace.measure.sides(changes)
        sides = [
            (texts.get(it.before or "", b""), texts.get(it.after or "", b"")) for it in changes
        ]
        if needed := newly_imported(ignored, sides):
            yield f"imported from files that git ignores, no commit will hold them: {some(needed)}"


async def opinions(
    run: Run, workspace: Workspace, begun: Round, after: Snapshot
) -> tuple[str, ...]:
    """What each command that may doubt has to say; a doubter that cannot be run says nothing."""
    from ralphloop.redaction import redact, secret_values
    from ralphloop.repo.checks import check_of, run_confined

    story = begun.story
    said = []
    timeout = run.config.checks.timeout
    if story is None:
        return ()
    start = workspace.measure.known(begun.story_began)
    # As text whatever the repository says of its files: attributes are the agent's to write.
    args = ("diff-tree", "-r", "-p", "--text", "--no-ext-diff", "--no-textconv")
    shown = workspace.measure.git().attempt(*args, start.tree, after.tree)
    parts = diff_parts(shown.stdout.decode("utf-8", "replace"), _LONGEST_DIFF)
    given = {
        "v": 1,
        "story": {"id": story.id, "title": story.title, "description": story.description},
        "criteria": story.criteria,
        "parts": len(parts),
    }

    def asked(argv: tuple[str, ...], part: int, gone: Callable[[], bool]) -> str:
        left = run.patience.left() if run.patience else timeout
        ended = run_confined(  # an agent may have written what it runs
            check_of(argv, min(left, timeout), workspace.check_box),
            workspace.project.root,
            stdin=msgspec.json.encode({**given, "part": part, "diff": parts[part - 1]}),
            keep=_LONGEST_WORDS * 4,
            stop=lambda: gone() or run.stop.requested,
        )
        words = redact(ended.stdout.decode("utf-8", "replace"), secret_values(os.environ))
        doubts = ended.returncode == 1 and not ended.timed_out and not ended.stopped
        return one_line(words, _LONGEST_WORDS) if doubts else ""

    for argv in run.config.checks.doubt:
        for part in range(1, min(len(parts), _MOST_PARTS) + 1):
            if words := (await in_thread(partial(asked, argv, part))):
                said.append(f"{DOUBT}{check_of(argv).name}: {words}")
                break  # one doubt is enough
    if run.config.checks.doubt and (shown.returncode or len(parts) > _MOST_PARTS):
        size = f"{len(shown.stdout) / 1_000_000:.1f} MB"
        said.append(f"{DOUBT}the change ({size}) is too large to be shown to a doubter whole")
    return tuple(said)


def record(run: Run, judged: Judgement) -> Judgement:
    """Fold the iteration into the session and write everything at once; what was decided."""
    begun = judged.begun
    result = judged.result
    before = run.session.state
    if before is not judged.before:  # something changed the run since: decide again
        again = step(before, begun.start, result, judged.evidence, run.policy)
        judged = msgspec.structs.replace(judged, before=before, step=again)
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
        attempts=state.attempts,
        warnings=tuple(_without_a_price(run, judged)),
    )
    ended = run.new_event(told, begun.number)
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
            events=(ended,),
        )
    )
    run.session.state = done.state
    run.sink(ended)
    kind = _WAITING.get(state.standing)
    story = begun.story
    if story is not None and kind is not None:
        waits = kind(story=story.id, title=story.title, reason=state.reason)
        run.emit(waits, begun.number)
    run.tell_circuit(before.breaker)
    return judged


def _without_a_price(run: Run, judged: Judgement) -> Iterator[str]:
    """Said once, and only where it could not be known before: a limit that is none."""
    worker = judged.begun.worker
    limit = run.limits.max_cost_usd
    if not judged.step.spent.unpriced or not limit or run.totals().unpriced:
        return
    from ralphloop.agents.prices import CANNOT_BE_KEPT, why_unpriced

    if why_unpriced(worker.name, worker.config, run.setup.options.env):
        return
    response = judged.result.response
    model = response.model or worker.config.model
    why = f"no price is known for {model}" if model else "no cost was told"
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
    has_commit = state.standing is Standing.PASSED and head != state.start_head
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
